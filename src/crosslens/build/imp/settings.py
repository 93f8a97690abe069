"""What decides an IMP build besides its images, its pool and its encoders."""

from __future__ import annotations

import math
from dataclasses import dataclass

from crosslens.core import Options, UsageError, option

UMAP, FULL = "umap", "full"
LOWEST, K_MEANS = "lowest-similarity", "k-means"


@dataclass(frozen=True)
class SamplingSettings(Options):
    """Which images the benchmark begins with, and which captions of the pool people are shown for them."""

    count: int | None = option(
        None, "How many images are sampled. [default: 5000, or all where there are fewer]", metavar="N", minimum=1
    )
    sampling: str = option(
        UMAP, "Where images are sampled far from each other: in a 2-D UMAP map, or in the full space.",
        metavar="NAME", choices=(UMAP, FULL),
    )  # fmt: skip
    compare_sampling: bool = option(
        True,
        "Sample in the other space as well, and show how far apart the images of both are.",
        flags=("--compare-sampling/--no-compare-sampling",),
    )
    band: tuple[float, float] = option(
        (0.7, 0.8), "Captions come from pool images with a cosine in this band.", metavar="LOW HIGH"
    )
    cluster_sizes: tuple[int, int] = option(
        (800, 3000),
        "How many pool images an image must have in the band, and how many of them are used: the most similar.",
        metavar="LEAST MOST",
    )
    near_duplicate: float = option(
        0.7, "Candidates of an image that share this much of their n-grams count as one; 2 for never.", metavar="SHARE"
    )
    candidates: int | None = option(
        None, "The most candidate captions of an image, drawn at random. [default: all]", metavar="N", minimum=1
    )
    captions: int = option(5, "How many captions each image of the benchmark has.", metavar="N", minimum=1)
    annotators: int = option(2, "How many people judge every caption.", metavar="N", minimum=1, maximum=9)
    seed: int = option(0, "Decides whatever is drawn at random.", metavar="N")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, (low, high), bounds in (
            ("band", self.band, (-1, 1)),
            ("cluster_sizes", self.cluster_sizes, (1, math.inf)),
        ):
            object.__setattr__(self, name, (low, high))
            if not bounds[0] <= low <= high <= bounds[1]:
                limits = "of cosines, -1 to 1" if name == "band" else "of at least 1"
                raise UsageError(
                    f"{name} is {low:g} {high:g}", fix=f"{name} must be two numbers {limits}, the lower first",
                    option=name,
                )  # fmt: skip
        if not 0.1 <= self.near_duplicate <= 2:
            fix = "near_duplicate must be from 0.1 to 1, or 2 for never"
            raise UsageError(f"near_duplicate is {self.near_duplicate}", fix=fix, option="near_duplicate")


@dataclass(frozen=True)
class SelectionSettings(Options):
    """Which of the captions that people called good become the benchmark."""

    diverse: str = option(
        LOWEST,
        "How diverse captions are chosen: lowest pairwise similarity, or one of each K-means cluster in a UMAP map.",
        metavar="NAME",
        choices=(LOWEST, K_MEANS),
    )
    drop_leaks: bool = option(False, "Leave out captions and images that a --corpus has.")
    leak_bits: int = option(
        12, "Pictures whose hashes differ in at most N of 192 bits are the same.", metavar="N", minimum=0, maximum=192
    )

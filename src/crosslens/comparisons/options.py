"""How runs are tested against each other: the options that every comparison takes."""

from __future__ import annotations

from dataclasses import dataclass

from crosslens.core import Options, option

PRIMARY = "The metric that decides; the others are secondary. [default: Hit@1 or the first, of t2i if there]"


@dataclass(frozen=True)
class PermutationOptions(Options, group="Statistics and seeds"):
    """How differences between runs are tested."""

    primary: str | None = option(None, PRIMARY)
    correction: str = option("holm", "For multiple comparisons: holm, bh or none.")
    permutations: int = option(10_000, "Permutations of the paired test.", minimum=1, maximum=10_000_000)
    seed: int = option(0, "Seed of the permutations.")

    def __post_init__(self) -> None:
        from crosslens.statistics import correct  # help texts are shown without loading numpy

        super().__post_init__()
        correct([], self.correction)  # an unknown name raises

"""What decides a build besides its data, encoders and generators: the options of RECOS, of IMP and of cleaning."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from crosslens.analyze import DiscriminabilityOptions
from crosslens.core import Options, UnknownNameError, UsageError, argument, option

UMAP, FULL = "umap", "full"
LOWEST, K_MEANS = "lowest-similarity", "k-means"
PAPER = "paper"
"""ReCoS: 50 images for each of seven tasks, 30 for each of five."""
_PAPER_QUOTAS = {
    **dict.fromkeys(("color", "count", "location", "figure", "object", "action", "scene"), 50),
    **dict.fromkeys(("ocr", "celebrity", "calculation", "code", "translation"), 30),
}
_ALSO = {"color": "colour", "celebrity": "landmark"}
"""Other names of the paper's tasks."""


@dataclass(frozen=True)
class Quotas:
    """``each`` is for every task that ``by_task`` does not name; without it those have no originals."""

    each: int | None = None
    by_task: Mapping[str, int] = field(default_factory=dict)
    paper: bool = False

    @staticmethod
    def of(quota: str | int | Mapping[str, int]) -> Quotas:
        """``50``, ``color=50,ocr=30``, ``50,ocr=30`` or ``paper``; from Python also a number or a mapping."""
        if isinstance(quota, Mapping):
            quota = ",".join(f"{task}={count}" for task, count in quota.items())
        each, paper, by_task = None, False, dict[str, int]()
        for part in map(str.strip, str(quota).split(",")):
            task, mark, count = (text.strip() for text in part.rpartition("="))
            if part == PAPER:
                paper = True
            elif not mark:
                if each is not None:
                    raise _wrong(f"the quota of every task is given twice: {each} and {part}")
                each = _number(part, part)
            elif not task or task in by_task:
                raise _wrong(f"{part!r} names no task" if not task else f"the quota of {task!r} is given twice")
            else:
                by_task[task] = _number(count, part)
        return Quotas(each, dict(sorted(by_task.items())), paper)

    def __str__(self) -> str:
        quotas = [f"{task}={count}" for task, count in self.by_task.items()]
        return ",".join([PAPER] * self.paper + ([] if self.each is None else [str(self.each)]) + quotas)

    def among(self, tasks: Sequence[str]) -> dict[str, int]:
        """How many originals each of these tasks should have; those of the paper that are missing are named, too."""
        present = sorted(set(tasks))
        for name in self.by_task:
            if name not in present:
                error = UnknownNameError("task", name, present)
                error.option = "quota"
                raise error
        quotas = dict.fromkeys(present, self.each or 0)
        if self.paper:
            folded = {task.casefold(): task for task in present}
            for name, count in _PAPER_QUOTAS.items():
                quotas[folded.get(name) or folded.get(_ALSO.get(name, "")) or name] = count
        return quotas | dict(self.by_task)


def even_quotas(tasks: Sequence[str], total: int) -> dict[str, int]:
    """``total`` originals, evenly over the tasks; what a small task lacks goes to the others."""
    counts = Counter(sorted(tasks))
    quotas = dict.fromkeys(counts, 0)
    while total and (open_tasks := [task for task in counts if quotas[task] < counts[task]]):
        for task in open_tasks[:total]:
            quotas[task] += 1
        total -= min(total, len(open_tasks))
    return quotas


def _number(text: str, part: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise _wrong(f"quota {part!r:.60} is not a whole number")
    return int(text)


def _wrong(problem: str) -> UsageError:
    fix = f"write a number for every task (50), tasks by name (color=50,ocr=30), or {PAPER}"
    return UsageError(problem, fix=fix, option="quota")


@dataclass(frozen=True)
class RecosSettings(DiscriminabilityOptions):
    """What decides a RECOS build besides its candidates, encoders and generator.

    The check: dis(t) over the ``k`` most similar images must lie in the band of ``eta``.
    """

    descriptions: int = option(5, "How many each image has.", minimum=1)
    attempts: int = option(3, "How often a description may be rewritten.", minimum=0)
    originals: int | None = option(None, "How many images v0 has. [default: a third of the candidates]", minimum=1)
    quota: str | int | Mapping[str, int] | None = option(
        None,
        "Originals of each task instead: 50 for all, color=50 for one, paper for the paper's; may be repeated.",
        metavar="[TASK=]N",
        joins=",",
    )
    check_gallery: str = option(
        "candidates",
        "The images a description is checked against: all candidates, or the selected ones (v0), as in the paper.",
        choices=("candidates", "selected"),
    )
    similar: int = option(20, "For v2: similar images without text for each image.", minimum=0)
    duplicate_cosine: float = option(
        0.98, "Images with at least this cosine are duplicates; 2 for never.", metavar="COSINE", minimum=-1
    )
    duplicate_bits: int = option(
        12, "Images whose hashes differ in at most N of 192 bits, too; -1 for never.", minimum=-1
    )
    task_column: str = option("task", "The images' column with the task.")
    source_column: str = option("source", "The images' column with the source.")
    seed: int = option(0, "Decides which candidates become originals.")

    def __post_init__(self) -> None:
        from crosslens.analyze import HASH_BITS

        super().__post_init__()
        if self.quota is not None:
            if self.originals is not None:
                raise UsageError(
                    f"{argument('quota')} does not go with {argument('originals')}",
                    fix=f"leave {argument('originals')} out: the quotas say how many there are",
                    option="quota",
                )
            object.__setattr__(self, "quota", str(Quotas.of(self.quota)))  # written in one way only
        for name, most in (("duplicate_cosine", 2), ("duplicate_bits", HASH_BITS)):
            if not getattr(self, name) <= most:  # also where it is NaN
                raise UsageError(f"{name} = {getattr(self, name)}", fix=f"{name} must be at most {most}", option=name)


@dataclass(frozen=True)
class SamplingSettings(Options):
    """Which images the benchmark begins with, and which captions of the pool people are shown for them."""

    count: int | None = option(
        None, "How many images are sampled. [default: 5000, or all where there are fewer]", minimum=1
    )
    sampling: str = option(
        UMAP,
        "Where images are sampled far from each other: in a 2-D UMAP map, or in the full space.",
        choices=(UMAP, FULL),
    )
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
        None, "The most candidate captions of an image, drawn at random. [default: all]", minimum=1
    )
    captions: int = option(5, "How many captions each image of the benchmark has.", minimum=1)
    annotators: int = option(2, "How many people judge every caption.", minimum=1, maximum=9)
    seed: int = option(0, "Decides whatever is drawn at random.")

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
                    f"{name} is {low:g} {high:g}",
                    fix=f"{name} must be two numbers {limits}, the lower first",
                    option=name,
                )
        if not 0.1 <= self.near_duplicate <= 2:
            fix = "near_duplicate must be from 0.1 to 1, or 2 for never"
            raise UsageError(f"near_duplicate is {self.near_duplicate}", fix=fix, option="near_duplicate")


@dataclass(frozen=True)
class SelectionSettings(Options):
    """Which of the captions that people called good become the benchmark."""

    diverse: str = option(
        LOWEST,
        "How diverse captions are chosen: lowest pairwise similarity, or one of each K-means cluster in a UMAP map.",
        choices=(LOWEST, K_MEANS),
    )
    drop_leaks: bool = option(False, "Leave out captions and images that a --corpus has.")
    leak_bits: int = option(
        12, "Pictures whose hashes differ in at most N of 192 bits are the same.", minimum=0, maximum=192
    )


@dataclass(frozen=True)
class CleaningSettings(Options):
    """How captions are cleaned."""

    languages: tuple[str, ...] = option(
        ("en",), "Languages that are kept, as ISO 639-1 codes; any keeps all. May be repeated.", metavar="CODE"
    )
    minimum_words: int = option(5, "The fewest words of a caption.", minimum=0)
    maximum_characters: int = option(
        1000, "The most characters of a text: pages are no captions.", minimum=1, maximum=10_000
    )
    maximum_repetition: float = option(
        0.4, "The largest share of content words that may be repetitions.", metavar="SHARE", minimum=0, maximum=1
    )
    hashtags: str = option(
        "words",
        "words: a single hashtag in a sentence becomes words, others are removed; drop: all are removed.",
        metavar="HOW",
        choices=("words", "drop"),
    )
    capitals: str = option(
        "lower",
        "What becomes of a caption all in capitals: lower (put in lower case), keep or drop.",
        metavar="HOW",
        choices=("lower", "keep", "drop"),
    )
    tagging: bool = option(
        True,
        "Drop English captions without a noun, or without a verb or an adjective.",
        flags=("--tagging/--no-tagging",),
    )

"""A RECOS benchmark: the settings of its build, and what a build gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crosslens.analyze import DiscriminabilityOptions
from crosslens.build.quotas import Quotas
from crosslens.core import UsageError, argument, option

if TYPE_CHECKING:
    from crosslens.analyze import Discriminability
    from crosslens.build.log import DecisionLog
    from crosslens.build.verification import VerificationSheet
    from crosslens.core import Dataset


@dataclass(frozen=True)
class RecosSettings(DiscriminabilityOptions):
    """What decides a RECOS build besides its candidates, encoders and generator.

    The check: dis(t) over the ``k`` most similar images must lie in the band of ``eta``.
    """

    descriptions: int = option(5, "How many each image has.", metavar="N", minimum=1)
    attempts: int = option(3, "How often a description may be rewritten.", metavar="N", minimum=0)
    originals: int | None = option(
        None, "How many images v0 has. [default: a third of the candidates]", metavar="N", minimum=1
    )
    quota: str | int | Mapping[str, int] | None = option(
        None,
        "Originals of each task instead: 50 for all, color=50 for one, paper for the paper's; may be repeated.",
        metavar="[TASK=]N",
        joins=",",
    )
    check_gallery: str = option(
        "candidates",
        "The images a description is checked against: all candidates, or the selected ones (v0), as in the paper.",
        metavar="NAME",
        choices=("candidates", "selected"),
    )
    similar: int = option(20, "For v2: similar images without text for each image.", metavar="N", minimum=0)
    duplicate_cosine: float = option(
        0.98, "Images with at least this cosine are duplicates; 2 for never.", metavar="COSINE", minimum=-1
    )
    duplicate_bits: int = option(
        12, "Images whose hashes differ in at most N of 192 bits, too; -1 for never.", metavar="N", minimum=-1
    )
    task_column: str = option("task", "The images' column with the task.", metavar="NAME")
    source_column: str = option("source", "The images' column with the source.", metavar="NAME")
    seed: int = option(0, "Decides which candidates become originals.", metavar="N")

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


@dataclass(frozen=True, eq=False)
class Recos:
    """A finished benchmark: its three versions, the check of the candidates' descriptions, how many originals each
    task should have, every decision, and notes.
    """

    versions: Mapping[str, Dataset]
    check: Discriminability
    quotas: Mapping[str, int]
    settings: RecosSettings
    log: DecisionLog
    notes: tuple[str, ...]
    sheet: VerificationSheet
    """What people said about descriptions; empty where nobody did."""
    already: bool = False
    """True where the output folder contained it before."""

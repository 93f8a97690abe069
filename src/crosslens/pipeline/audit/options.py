"""What an audit computes: the options that all of its stages share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from crosslens.core import Options, option

_PERTURBATIONS = (
    "What robustness changes: names and groups, as in crosslens robustness. [default: all; with --quick char_swap,"
    "shuffle_all_words]"
)
_HARD_NEGATIVES = "Captions that are nearly right: SugarCrepe's, ARO's or Winoground's files, or your own table."
_SELECTING = ("only", "skip")


@dataclass(frozen=True)
class AuditOptions(Options):
    """What an audit computes, and how."""

    quick: bool = option(False, "Fewer perturbations, a sample of explanations: about a minute for 1,000 images.")
    only: tuple[str, ...] = option((), "Only this stage; may be repeated (see --list).", metavar="STAGE")
    skip: tuple[str, ...] = option((), "Without this stage; may be repeated.", metavar="STAGE")
    similarity: str | None = option(
        None,
        "The similarity φ of graded metrics, curves and missing positives. [default: cider; for missing positives "
        "semantic, where it is installed, unless --quick]",
        metavar="NAME",
    )
    perturbations: str | None = option(None, _PERTURBATIONS, metavar="NAMES", joins=",")
    hard_negatives: str | None = option(None, _HARD_NEGATIVES, metavar="PATH")
    seed: int = option(0, "Seed of intervals, tests and perturbations.", metavar="N", minimum=0)
    resamples: int = option(1000, "Resamples for the intervals.", metavar="N", minimum=1, maximum=10_000_000)
    level: float = option(0.95, "Confidence level of the intervals.", metavar="SHARE")
    threads: int | None = option(None, "Threads to use.", metavar="N", minimum=1, maximum=4096)

    @property
    def phi(self) -> str:
        """The similarity of graded metrics and curves."""
        return self.similarity or "cider"

    def facts(self) -> Mapping[str, Any]:
        """Everything that results depend on."""
        return {name: value for name, value in asdict(self).items() if name not in (*_SELECTING, "threads")}

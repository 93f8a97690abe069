"""The options of a search for counterfactuals, apart from it: help texts need no numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crosslens.core import Options, UnknownNameError, option

if TYPE_CHECKING:
    from crosslens.encode import Summariser

RIGHT, WRONG = "right", "wrong"


@dataclass(frozen=True)
class CounterfactualOptions(Options):
    """Which queries are searched for counterfactuals, and by which edits."""

    sample: int | None = option(None, "Draw N queries by the seed.", minimum=1)
    only: str | None = option(
        None, "Only queries that rank their image first, or only the failures.", metavar=f"{RIGHT}|{WRONG}"
    )
    perturbations: str | Sequence[str] = option(
        "everything", "Possible edits: names or groups (see crosslens perturb --list).", joins=","
    )
    budget: int = option(200, "Edited texts to encode per query, at most.", minimum=1)
    image_text: str | Summariser | None = option(
        None, "Text-only retrieval: an image is the mean of its other captions (mean), or a summary."
    )
    query_caption: int = option(0, "Which caption is the query in text-only retrieval, from 0.", minimum=0)
    score: str | None = option(None, "The score function of the vectors. [default: by their kind; cosine]")
    seed: int = option(0, "Decides which queries a sample has.")
    pipeline: str | None = option(None, "The spaCy pipeline that tags. [default: the first installed]")
    threads: int | None = option(None, "Processes that tag captions. [default: all cores]", minimum=1, maximum=4096)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.only not in (None, RIGHT, WRONG):
            raise UnknownNameError("kind of query", str(self.only), (RIGHT, WRONG))

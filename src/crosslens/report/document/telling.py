"""The failures that say most about a run: confident, far off and explained; doubtful labels are said to be so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from crosslens.core import IMAGE_TO_TEXT, CrosslensError
from crosslens.explanations import Explanation, explain_queries
from crosslens.report.document.choice import FAILED
from crosslens.report.document.context import ReportContext
from crosslens.report.document.facts import stage_of

MOST = 3
_CANDIDATES = 24
"""Failures that are explained, to choose from."""
_BY_MODELS = {"another image", "far"}
"""Reasons to suspect a label that are nothing but failures of models."""
_FITS = "Perhaps not a failure."
_NO_EVIDENCE = "The label may be wrong."
_SUSPECT = "The label is suspect: {}."
_UNANNOTATED = "Perhaps not a failure: by its captions, what was retrieved fits as well as annotated pairs do."


@dataclass(frozen=True)
class TellingFailure:
    """A failed query: its row of :func:`query_outcomes`, what is wrong in words, and why the label may be at fault.

    ``kind`` is what is wrong, such as an object or a colour; empty where nothing explains the failure.
    """

    row: Mapping[str, Any]
    reason: str
    kind: str = ""
    doubt: str = ""
    gallery: int | None = None


def telling_failures(context: ReportContext, name: str) -> list[TellingFailure]:
    """Up to three failures of a run; none without its dataset."""
    run, outcomes = context.inputs.runs[name], context.outcomes(name)
    dataset = context.inputs.dataset_of(run)
    if outcomes is None or dataset is None:
        return []
    rows = most_telling(outcomes.filter(FAILED)).head(_CANDIDATES).to_dicts()
    explained: list[Explanation | None] = [None] * len(rows)
    try:
        explained = [*explain_queries(run, dataset, [row["query"] for row in rows], context.direction)]
    except CrosslensError as error:
        context.notes.append(f"The failures of {name} are not explained: {error.problem}.")
    no_labels: dict[str, str] = {}
    no_pairs: set[tuple[str, str]] = set()
    suspect = context.read_stored(lambda: _suspect_labels(context, name), "the first screen", no_labels)
    fitting = context.read_stored(lambda: _unannotated_pairs(context, name), "the first screen", no_pairs)
    judged = []
    for row, explanation in zip(rows, explained, strict=True):
        failure = _judged(row, explanation)
        pair = (row["query"], row["item"]) if context.direction == IMAGE_TO_TEXT else (row["retrieved"], row["query"])
        doubt = _SUSPECT.format(suspect[row["query"]]) if row["query"] in suspect else failure.doubt
        doubt = doubt or (_UNANNOTATED if pair in fitting else "")
        judged.append(TellingFailure(row, failure.reason, failure.kind, doubt, failure.gallery))
    return choose_telling(judged)


def most_telling(failures: pl.DataFrame) -> pl.DataFrame:
    """Failures in order: first those that are among the most confident *and* have the right item among the furthest."""
    lead = pl.coalesce("margin", "margin_at_least").fill_null(0.0)
    far = pl.col("rank").fill_null(pl.col("rank").max() + 1).fill_null(0)
    telling = pl.min_horizontal(lead.rank(), far.rank())
    return failures.sort(telling, "query", descending=[True, False])


def choose_telling(judged: Sequence[TellingFailure], most: int = MOST) -> list[TellingFailure]:
    """The first ones: of different kinds, then explained ones, then others; doubtful labels only where nothing else is.

    No image is the retrieved one twice, while there are others.
    """
    chosen: list[TellingFailure] = []

    def add(candidates: Iterable[TellingFailure], *, kinds: bool = False, images: bool = True) -> None:
        for failure in candidates:
            if len(chosen) == most:
                return
            known = {other.row["retrieved"] for other in chosen} if images else set()
            same = failure in chosen or failure.row["retrieved"] in known
            if not same and not (kinds and failure.kind in {other.kind for other in chosen}):
                chosen.append(failure)

    clear = [failure for failure in judged if not failure.doubt]
    explained = [failure for failure in clear if failure.kind]
    add(explained, kinds=True)
    for candidates in (explained, clear):
        add(candidates)
        add(candidates, images=False)
    add([failure for failure in judged if failure.doubt])
    return chosen


def _judged(row: Mapping[str, Any], explanation: Explanation | None) -> TellingFailure:
    """A failure with what its explanation says is wrong; without one, by how much it is wrong."""
    lead = row["margin"] if row["margin"] is not None else row["margin_at_least"]
    scored = "" if not lead else f"It scores {row['score']:.3g}, {lead:.2g} above the right one."
    if explanation is None:
        return TellingFailure(row, scored)
    words = explanation.sentences[0]
    kinds = [claim.kind for claim in words.claims if claim.about == "words"]
    lacking = [{claim.name for claim in words.claims if (claim.about, claim.kind) == (side, "lacks")}
               for side in ("right", "other")]  # fmt: skip
    doubt = _FITS if "no fault" in kinds else _NO_EVIDENCE if lacking[0] & lacking[1] else ""
    kind = next((kind for kind in kinds if kind not in ("no fault", "unchecked")), "")
    return TellingFailure(row, words.text if kind else scored or words.text, kind, doubt, explanation.gallery)


def _suspect_labels(context: ReportContext, name: str) -> dict[str, str]:
    """Captions with a label that is suspect for more than the failures of models, and why."""
    result = stage_of(context, "label-quality", name)
    if result is None:
        return {}
    rows: Sequence[Mapping[str, Any]] = list(result.payload.get("review", ()))
    if result.folder is not None and (file := result.folder / "review.csv").exists():
        rows = pl.read_csv(file, infer_schema=False).to_dicts()
    reasons = {str(row["caption"]): set(str(row["reason"]).split(" + ")) - _BY_MODELS for row in rows if row["caption"]}
    return {caption: ", ".join(sorted(own)) for caption, own in reasons.items() if own}


def _unannotated_pairs(context: ReportContext, name: str) -> set[tuple[str, str]]:
    """Image and caption of pairs that nobody annotated, and that are as similar as annotated ones."""
    result = stage_of(context, "missing-positives", name)
    file = None if result is None or result.folder is None else result.folder / "missing.csv"
    if file is None or not file.exists():
        return set()
    return set(pl.read_csv(file, columns=["image", "caption"], infer_schema=False).iter_rows())

"""What is finally said of an item: the adjudicated answer, or that of the majority; and where judges disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import polars as pl

from crosslens.web.judging.tasks.answers import Answer

ALL, MAJORITY, ADJUDICATED, UNDECIDED = "all", "majority", "adjudicated", "undecided"
"""Who decided: every judge says the same; more than half do; the owner did; nobody has yet."""

_DECIDED: dict[str, Any] = {
    "item": pl.String,
    "labels": pl.List(pl.String),
    "rating": pl.Float64,
    "text": pl.String,
    "judges": pl.Int64,
    "by": pl.String,
}


def decide(table: pl.DataFrame, adjudicated: Mapping[str, Answer] | None = None) -> pl.DataFrame:
    """One row per judged or adjudicated item: its labels, mean rating, text, number of judges, and who decided.

    A label holds where more than half of the judges gave it. An item is undecided where a label has exactly half of
    them, or where no label has more than half and they did not all leave it without one; an adjudicated answer wins
    over any number of judges. The text is that of all judges who wrote one, if they wrote the same.
    """
    final = dict(adjudicated or {})
    rows = []
    for (item,), part in table.group_by(["item"], maintain_order=True):
        labels, by = _majority(part["labels"].to_list())
        rating, text = part["rating"].mean(), _same(part["text"].to_list())
        if (answer := final.pop(str(item), None)) is not None:
            labels, by, text = list(answer.labels), ADJUDICATED, answer.text or text
            rating = rating if answer.rating is None else answer.rating
        rows.append((item, labels, rating, text, part.height, by))
    rows += [(item, list(answer.labels), answer.rating, answer.text or None, 0, ADJUDICATED)
             for item, answer in final.items()]  # fmt: skip
    return pl.DataFrame(rows, schema=_DECIDED, orient="row")


def _majority(answers: Sequence[Sequence[str]]) -> tuple[list[str] | None, str]:
    votes = Counter(label for labels in answers for label in dict.fromkeys(labels))
    if len({frozenset(labels) for labels in answers}) == 1:
        return list(answers[0]), ALL
    half = len(answers) / 2
    held = [label for label, count in votes.items() if count > half]
    if not held or any(count == half for count in votes.values()):
        return None, UNDECIDED
    return held, MAJORITY


def _same(texts: Sequence[str | None]) -> str | None:
    written = {text for text in texts if text}
    return written.pop() if len(written) == 1 else None


@dataclass(frozen=True)
class Disagreement:
    """An item that its judges answered differently; ``share`` of the pairs of judges disagree on their labels."""

    item: str
    answers: Mapping[str, Answer]
    share: float
    spread: float
    """The highest rating less the lowest."""
    adjudicated: Answer | None = None


def disagreements(table: pl.DataFrame, adjudicated: Mapping[str, Answer] | None = None) -> tuple[Disagreement, ...]:
    """The items on whose labels judges differ, each with what everyone said: open ones first, the most disputed first.

    An item that was adjudicated is listed with its answer, behind the open ones.
    """
    final = adjudicated or {}
    listed = []
    for (item,), part in table.group_by(["item"], maintain_order=True):
        answers = {
            account: Answer(tuple(labels), None if rating is None else int(rating), text or "")
            for account, labels, rating, text in part.select("account", "labels", "rating", "text").iter_rows()
        }
        pairs = [set(a.labels) != set(b.labels) for a, b in combinations(answers.values(), 2)]
        if any(pairs):
            ratings = [answer.rating for answer in answers.values() if answer.rating is not None]
            spread = max(ratings) - min(ratings) if ratings else 0.0
            share = sum(pairs) / len(pairs)
            listed.append(Disagreement(str(item), answers, share, spread, final.get(str(item))))
    return tuple(sorted(listed, key=lambda case: (case.adjudicated is not None, -case.share, -case.spread)))

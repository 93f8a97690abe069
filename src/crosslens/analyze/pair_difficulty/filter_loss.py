"""What filtering by similarity throws away: the share of valid captions below a threshold (IMP 6.2).

Web data are filtered by the cosine of CLIP: LAION kept pairs from 0.28 on (0.30 for its first release), and DataComp
reports the thresholds that keep given shares of its pool. Captions that people confirmed can fall below them too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.options import DIFFICULTY, WEB_THRESHOLDS
from crosslens.analyze.pair_difficulty.assignment import Difficulty
from crosslens.core import Cell, Figure, InputError, Lines, Presented, Section, Series, Table, Text, UsageError
from crosslens.metrics import format_count
from crosslens.statistics import share_of_sums
from crosslens.storage import Array, json_form

ALL_LEVELS = "all"
_CURVE_POINTS = 101


@dataclass(frozen=True, eq=False)
class FilterLoss(Presented):
    """The share of valid captions that each threshold throws away, by level; prints as a table.

    ``table`` has a row per threshold and level (``all``, then the levels): ``threshold``, ``keeps`` (the share of web
    pairs that reach it, null where they are not known), ``level``, ``pairs``, ``lost``, ``low``, ``high``. ``curve`` is
    the same without intervals over the whole range of scores.
    """

    table: pl.DataFrame = field()
    curve: pl.DataFrame
    dataset: str
    model: str
    web_pairs: int = 0
    level: float = 0.95

    @property
    def levels(self) -> tuple[str, ...]:
        return tuple(self.table["level"].unique(maintain_order=True))

    title = "Valid captions that a similarity filter throws away"

    def sections(self) -> Iterator[Section]:
        """A line per level over all thresholds, the table, and what its numbers are."""
        counts = dict(self.table.select("level", "pairs").unique(maintain_order=True).iter_rows())
        pairs = ", ".join(f"{level} {count:,}" for level, count in counts.items())
        note = (
            f"Percent of pairs of {self.dataset} that {self.model} scores below the threshold, with "
            f"{100 * self.level:g}% intervals over images. Pairs: {pairs}."
        )
        web = f"web kept: percent of {format_count(self.web_pairs, 'web pair')} that reach the threshold."
        rows: list[tuple[Cell, ...]] = []
        for part in self.table.partition_by("threshold", maintain_order=True):
            cells = (Figure.percent(row["lost"], row["low"], row["high"]) for row in part.to_dicts())
            keeps = (Figure.percent(part["keeps"][0]),) if self.web_pairs else ()
            rows.append((f"{part['threshold'][0]:.4g}", *keeps, *cells))
        header = ("threshold", *(("web kept",) if self.web_pairs else ()), *self.levels)
        losses = Table(header, tuple(rows), "r" * len(header))
        # The levels in their order, as in every chart of levels, then all pairs.
        levels = dict.fromkeys(self.curve["level"])
        lost = {level: self.curve.filter(pl.col("level") == level)["lost"] for level in levels}
        lost[ALL_LEVELS] = lost.pop(ALL_LEVELS)
        lines = Lines(
            title="Pairs below the threshold", about=f"percent of pairs of {self.dataset}, scores of {self.model}",
            across=tuple(self.curve["threshold"].unique(maintain_order=True)),
            series=tuple(
                Series(level, tuple(Figure.percent(share, unit=" %") for share in shares))
                for level, shares in lost.items()
            ),
            axis="threshold", limits=(0.0, 1.0),
        )  # fmt: skip
        yield Section("", (lines, losses, Text.of(note, web if self.web_pairs else "", note=True)))

    def as_dict(self) -> dict[str, Any]:
        tables = {"thresholds": self.table, "curve": self.curve}
        names = ("dataset", "model", "web_pairs", "level")
        return json_form({name: getattr(self, name) for name in names} | tables)


def measure_filter_loss(
    difficulty: Difficulty,
    model: str | None = None,
    *,
    thresholds: Sequence[float] | None = None,
    keep: Sequence[float] = (),
    web_scores: Any = None,
    level: float = 0.95,
) -> FilterLoss:
    """What share of a dataset's pairs a filter of one model's scores throws away, by level.

    A pair is lost where its score is below the threshold. ``thresholds`` are numbers (default: those LAION filtered
    with, unless ``keep`` is given); ``keep`` are shares of ``web_scores``, the same model's scores of unfiltered pairs:
    each becomes the highest score that at least that share of them reaches. ``model`` names the scores; it may be left
    out where there is one.
    """
    name = difficulty.model_named(model)
    scores = difficulty.scores(name)
    if not len(scores):
        raise InputError("no pairs", expected="a table of levels with at least one pair")
    web: Array | None = None
    if web_scores is not None:
        array = np.asarray(web_scores)
        if array.dtype.kind not in "fiu" or not array.size:
            problem = f"web scores of type {array.dtype}, {array.size} of them"
            raise InputError(problem, expected="numbers, one per pair")
        web = array.reshape(-1).astype(np.float64)
        if not np.isfinite(web).all():
            row = int(np.argmax(~np.isfinite(web)))
            raise InputError(f"{web[row]} among the web scores", row=row, expected="finite numbers")
    cutoffs = _thresholds(thresholds, keep, web)
    _, images = np.unique(difficulty.table["image"].to_numpy(), return_inverse=True)
    labels = difficulty.table[DIFFICULTY].to_numpy()
    groups = {ALL_LEVELS: np.ones(len(scores), np.bool_)} | {kind: labels == kind for kind in difficulty.levels}
    rows = []
    for threshold in cutoffs:
        keeps = None if web is None else float(np.mean(web >= threshold))
        for kind, members in groups.items():
            below, owners = scores[members] < threshold, images[members]
            lost = share_of_sums(np.bincount(owners, below), np.bincount(owners), level)
            rows.append((threshold, keeps, kind, int(members.sum()), lost.mean, lost.low, lost.high))
    columns = {"threshold": pl.Float64, "keeps": pl.Float64, "level": pl.String, "pairs": pl.Int64}
    columns |= dict.fromkeys(("lost", "low", "high"), pl.Float64)
    table = pl.DataFrame(rows, schema=columns, orient="row")
    # The loss from the lowest to the highest score or threshold.
    steps = np.linspace(min(scores.min(), *cutoffs), max(scores.max(), *cutoffs), _CURVE_POINTS)
    parts = []
    for kind, members in groups.items():
        if members.any():
            lost_at = np.searchsorted(np.sort(scores[members]), steps, side="left") / members.sum()
            parts.append(pl.DataFrame({"threshold": steps, "level": [kind] * len(steps), "lost": lost_at}))
    web_pairs = 0 if web is None else len(web)
    return FilterLoss(table, pl.concat(parts), difficulty.dataset, name, web_pairs, level)


def _thresholds(thresholds: Sequence[float] | None, keep: Sequence[float], web: Array | None) -> list[float]:
    """All thresholds in ascending order, each once."""
    for share in keep:
        if not 0 < share <= 1:
            fix = "use shares above 0, up to 1: 0.3 keeps 30%"
            raise UsageError(f"keep = {share}", fix=fix, option="keep")
    if keep and web is None:
        fix = "pass the same model's scores of unfiltered web pairs"
        raise UsageError("a share of web pairs to keep, without their scores", fix=fix, option="web_scores")
    numbers = WEB_THRESHOLDS if thresholds is None and not keep else thresholds or ()
    for threshold in numbers:
        if not np.isfinite(threshold):
            raise UsageError(f"threshold = {threshold}", fix="use finite numbers", option="thresholds")
    falling = np.empty(0) if web is None else np.sort(web)[::-1]
    by_share = [float(falling[int(np.ceil(round(share * len(falling), 9))) - 1]) for share in keep]
    return sorted({*map(float, numbers), *by_share})

"""How two scorers are shown: their distributions, how far they agree, and where they disagree most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from crosslens.analyze.agreement.sections import COEFFICIENT_LABELS
from crosslens.analyze.caption_features import distribution_lines, value_steps
from crosslens.analyze.categories.labels import TOTAL
from crosslens.core import Cards, Cell, Cloud, Figure, PictureCard, Row, Scatter, Section, Table, Text, random_stream
from crosslens.metrics import format_count
from crosslens.statistics import Estimate, rescaled

if TYPE_CHECKING:
    from crosslens.analyze.scorers.comparison import ScorerComparison

SCALE_WORDS = {
    "raw": "scores as they are",
    "z": "standardised",
    "rank": "rank, from 0 to 1",
    "range": "range, from 0 to 1",
}
_MOST_DOTS = 2000


def scorer_sections(result: ScorerComparison) -> Iterator[Section]:
    """Distributions, correlations, Bland–Altman figures, and the largest disagreements."""
    head = f"{result.first} and {result.second}: {format_count(len(result), 'pair')} of {result.dataset}"
    left_out = f"{format_count(result.left_out, 'pair')} without a score of both left out." if result.left_out else ""
    notes = [
        "Limits of agreement: mean ± 1.96 standard deviations of the differences. Standardised and ranked scores have "
        "the same mean by construction: there the limits alone say how far the two agree."
    ]
    if isfinite(result.agreement["raw"].mean.low):
        notes.append(f"In brackets: {100 * result.level:g}% intervals over images.")
    yield Section(
        head,
        (
            Text.of(left_out),
            Row(_distributions(result)),
            _distribution_table(result),
            _correlation_table(result),
            Row(_scatters(result)),
            _agreement_table(result),
            Text(tuple(notes), note=True),
        ),
    )
    if result.shown:
        rows = result.disagreements(result.shown).iter_rows(named=True)
        cards = tuple(PictureCard(_facts(result, row), (row["text"],), image=row["image"]) for row in rows)
        yield Section("", (Cards("Largest disagreements, by rank", cards, result.pictures),))


def _distribution_table(result: ScorerComparison) -> Table:
    """A row per scorer and category."""
    header = ("scorer", result.column or "pairs of", "pairs", "mean", "sd", "25%", "median", "75%")
    names = ("mean", "sd", "lower_quartile", "median", "upper_quartile")
    rows = tuple(
        (row["scorer"], row["category"], row["pairs"], *(_score(row[name]) for name in names))
        for row in result.distributions.iter_rows(named=True)
    )
    title = f"Scores by {result.column}" if result.column else "Scores"
    return Table(header, rows, "llrrrrrr", title=title, names=2)


def _correlation_table(result: ScorerComparison) -> Table:
    """A row per coefficient, over all pairs and within each category."""
    # With intervals of every category the table would be too wide: those are in the JSON form.
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (label, *(_estimate(own[name], part == TOTAL) for part, own in result.correlations.items()))
        for name, label in COEFFICIENT_LABELS.items()
        if name in result.correlations[TOTAL]
    )
    return Table(("", *result.correlations), rows, title="Correlation")


def _agreement_table(result: ScorerComparison) -> Table:
    """A row per scale: the mean difference and the limits of agreement."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (SCALE_WORDS[scale], *map(_estimate, (figures.mean, figures.lower, figures.upper)))
        for scale, figures in result.agreement.items()
    )
    header = ("scale", "mean difference", "lower limit", "upper limit")
    return Table(header, rows, title=f"Bland–Altman: {result.second} − {result.first}")


def _estimate(estimate: Estimate, interval: bool = True) -> Figure:
    return _score(estimate.mean, *(estimate.low, estimate.high) if interval else ())


def _score(value: float | None, low: float = nan, high: float = nan) -> Figure:
    """Three digits that count: scores may be of any size."""
    large = value is not None and isfinite(value) and abs(round(value, 3)) >= 100
    return Figure(value, low, high, digits=1 if large else 3)


def _facts(result: ScorerComparison, row: Mapping[str, Any]) -> str:
    """What both say of a pair, and which of them ranks it higher."""
    scores = ", ".join(f"{name} {_score(row[f'score[{name}]'])}" for name in (result.first, result.second))
    higher = result.second if row["rank_difference"] > 0 else result.first
    gap = f"{higher} ranks it {100 * abs(row['rank_difference']):.0f} points higher"
    category = f", {row['category']}" if "category" in row else ""
    return f"{scores}; {gap}; image {row['image']}{category}"


def _members(result: ScorerComparison) -> dict[str, Any]:
    """Which pairs are in each category; of pairs without categories, all."""
    if not result.categories:
        return {TOTAL: np.ones(len(result), np.bool_)}
    labels = result.table["category"].to_numpy()
    return {name: labels == name for name in result.categories}


def _distributions(result: ScorerComparison) -> tuple[Any, ...]:
    charts = []
    for scorer in (result.first, result.second):
        scores = result.scores(scorer)
        samples = {name: scores[own] for name, own in _members(result).items()}
        lines = distribution_lines(scorer, "score", samples, value_steps([scores]), about="percent of pairs by score")
        charts.append(lines)
    return tuple(charts)


def _scatters(result: ScorerComparison) -> tuple[Scatter, ...]:
    """One scorer against the other, and Bland–Altman by rank."""
    drawn = np.zeros(len(result), np.bool_)
    drawn[random_stream(0, "dots").permutation(len(result))[:_MOST_DOTS]] = True
    first, second = result.scores(result.first), result.scores(result.second)
    ranks = rescaled(first, "rank"), rescaled(second, "rank")
    fewer = f", {int(drawn.sum()):,} of them drawn" if not drawn.all() else ""
    about = f"{format_count(len(result), 'pair')}{fewer}"
    agreement = result.agreement["rank"]
    ends = [float(end((ranks[0] + ranks[1])[drawn] / 2)) for end in (np.min, np.max)]
    trends = (("mean", agreement.mean), ("lower limit", agreement.lower), ("upper limit", agreement.upper))
    return (
        Scatter(
            title=f"{result.first} and {result.second}", about=about, axis=result.first, up=result.second,
            clouds=_clouds(result, first, second, drawn),
        ),
        Scatter(
            title=f"Bland–Altman, {SCALE_WORDS['rank']}", about=f"{about}; lines: mean ± 1.96 standard deviations",
            axis="mean of the two", up=f"{result.second} − {result.first}",
            clouds=_clouds(result, (ranks[0] + ranks[1]) / 2, ranks[1] - ranks[0], drawn),
            trends=tuple(Cloud(name, tuple((end, line.mean) for end in ends)) for name, line in trends),
        ),
    )  # fmt: skip


def _clouds(result: ScorerComparison, across: Any, up: Any, drawn: Any) -> tuple[Cloud, ...]:
    captions = result.table["caption"].to_numpy()
    clouds = []
    for name, members in _members(result).items():
        own = members & drawn
        points = zip(across[own].tolist(), up[own].tolist(), strict=True)
        clouds.append(Cloud(name, tuple(points), tuple(map(str, captions[own]))))
    return tuple(clouds)

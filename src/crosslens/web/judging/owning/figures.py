"""Charts and tables of a project's results, as the owner's pages show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import polars as pl

from crosslens.core import Bars, Chart, Figure, Heat, Series, percent
from crosslens.web.judging.results.summary import ProjectResults


def number(value: float | None, digits: int = 2) -> str:
    """``0.58``; a dash where there is no value."""
    return f"{value:.{digits}f}".replace("-", "−") if value is not None and isfinite(value) else "–"


def interval(value: float | None, low: float | None, high: float | None) -> str:
    """``0.58 [0.51, 0.64]``."""
    ends = "" if low is None or high is None else f" [{number(low)}, {number(high)}]"
    return f"{number(value)}{ends}"


def charts(results: ProjectResults) -> Iterator[Chart]:
    """How often each label and rating was given, how many causes items have, and which occur together."""
    titles, shares = results.answers.titles, results.shares
    if results.judged.height:
        yield _share_bars(
            "How often each label was given", [titles.get(label, label) for label in shares["label"]], shares,
            heading="label", axis="percent of judgements",
        )  # fmt: skip
    ratings, scale = results.ratings, results.answers.project.form.rating
    if ratings is not None and scale is not None and ratings["count"].sum():
        figures = tuple(Figure(float(count), digits=0) for count in ratings["count"])
        yield Bars(
            title=scale.title, groups=tuple(map(str, ratings["rating"])), series=(Series("judgements", figures),),
            heading="rating", axis="judgements",
        )  # fmt: skip
    counts = results.numbers_of_causes
    if counts is not None and counts["count"].sum():
        names = ["no cause", "one cause", "two causes", "three causes"]
        groups = [names[many] if many < len(names) else f"{many} causes" for many in counts["causes"]]
        yield _share_bars(
            "Items by their number of causes", groups, counts, heading="causes", axis="percent of decided items"
        )
    if results.causes and results.together["count"].sum():
        yield _together(results)


def _share_bars(title: str, groups: Sequence[str], shares: pl.DataFrame, *, heading: str, axis: str) -> Bars:
    ends = shares.select(pl.col("share", "low", "high").fill_null(float("nan"))).iter_rows()
    series = Series("share", tuple(Figure.percent(*row) for row in ends))
    return Bars(title=title, groups=tuple(groups), series=(series,), heading=heading, axis=axis)


def _together(results: ProjectResults) -> Heat:
    """How often two causes hold together."""
    cells = {(first, second): count for first, second, count, _ in results.together.iter_rows()}
    names = [label for label in results.answers.labels if any(label in pair and count for pair, count in cells.items())]
    titles = tuple(results.answers.titles[name] for name in names)
    grid = tuple(
        tuple(Figure(cells.get((row, column), cells.get((column, row))), digits=0) for column in names) for row in names
    )
    return Heat(title="Causes that occur together", rows=titles, columns=titles, cells=grid, heading="cause")


@dataclass(frozen=True)
class ShownRule:
    """A rule between labels, as a sentence's parts."""

    first: str
    then: str
    count: int
    support: str
    confidence: str
    lift: str
    p_value: str


def shown_rules(results: ProjectResults) -> list[ShownRule]:
    """The rules between causes, the surest first."""
    if not results.causes:
        return []
    titles: Mapping[str, str] = results.answers.titles
    return [
        ShownRule(
            " and ".join(titles.get(name, name) for name in row["if"]), titles.get(row["then"], row["then"]),
            row["count"], percent(row["support"]), percent(row["confidence"]), number(row["lift"]),
            number(row["p_adjusted"], 3),
        )
        for row in results.rules.iter_rows(named=True)
    ]  # fmt: skip

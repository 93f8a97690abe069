"""Charts and tables of a project's results, as the owner's pages show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

import polars as pl

from crosslens.core import percent
from crosslens.report import ChartHtml, Point, bar_chart, heat_map
from crosslens.web.judging.results.summary import ProjectResults


def number(value: float | None, digits: int = 2) -> str:
    """``0.58``; a dash where there is no value."""
    return f"{value:.{digits}f}".replace("-", "−") if value is not None and isfinite(value) else "–"


def interval(value: float | None, low: float | None, high: float | None) -> str:
    """``0.58 [0.51, 0.64]``."""
    ends = "" if low is None or high is None else f" [{number(low)}, {number(high)}]"
    return f"{number(value)}{ends}"


def label_chart(results: ProjectResults) -> ChartHtml | None:
    """How often each label was given, in percent of the judgements."""
    shares = results.shares
    if not results.judged.height:
        return None
    titles = [results.answers.titles.get(label, label) for label in shares["label"]]
    return bar_chart(
        "How often each label was given", titles, {"share": _points(shares)}, number=lambda value: f"{value:.1f}",
        heading="label", axis="percent of judgements", about="A bar per label; the line is the 95 % interval.",
    )  # fmt: skip


def rating_chart(results: ProjectResults) -> ChartHtml | None:
    """How often each rating was given."""
    counts = results.ratings
    if counts is None or not counts["count"].sum():
        return None
    scale = results.answers.project.form.rating
    assert scale is not None
    points = [Point(float(count)) for count in counts["count"]]
    return bar_chart(
        scale.title, [str(rating) for rating in counts["rating"]], {"judgements": points},
        number=lambda value: f"{value:,.0f}", heading="rating", axis="judgements",
    )  # fmt: skip


def cause_chart(results: ProjectResults) -> ChartHtml | None:
    """How many causes items have."""
    counts = results.numbers_of_causes
    if counts is None or not counts["count"].sum():
        return None
    names = ["no cause", "one cause", "two causes", "three causes"]
    groups = [names[many] if many < len(names) else f"{many} causes" for many in counts["causes"]]
    return bar_chart(
        "Items by their number of causes", groups, {"share": _points(counts)}, number=lambda value: f"{value:.1f}",
        heading="causes", axis="percent of decided items",
    )  # fmt: skip


def together_chart(results: ProjectResults) -> ChartHtml | None:
    """How often two labels hold together."""
    together = results.together
    if not results.causes or not together["count"].sum():
        return None
    cells = {(first, second): count for first, second, count, _ in together.iter_rows()}
    names = [label for label in results.answers.labels
             if any(label in pair and count for pair, count in cells.items())]  # fmt: skip
    grid = [[Point(float(cells.get((row, column), cells.get((column, row), float("nan"))))) for column in names]
            for row in names]  # fmt: skip
    titles = [results.answers.titles[name] for name in names]
    return heat_map(
        "Causes that occur together", titles, titles, grid, number=lambda value: f"{value:,.0f}", heading="cause"
    )


def _points(shares: pl.DataFrame) -> list[Point]:
    nan = float("nan")
    return [
        Point(*(nan if value is None else 100 * value for value in row))
        for row in shares.select("share", "low", "high").iter_rows()
    ]


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

"""Charts: what is drawn is what the numbers say, every one has its table, and names stay text."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html import unescape
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st

from crosslens.core import (
    Bars,
    Chart,
    Cloud,
    Figure,
    Heat,
    Histogram,
    Interval,
    Lines,
    Multiple,
    Scatter,
    Series,
    Shares,
    SmallMultiples,
    cell_text,
)
from crosslens.report import chart_html
from crosslens.report.forms.charts import draw
from crosslens.report.forms.drawing import drawn_file, fitting, ticks
from crosslens.report.forms.scales import Scale, multiples_html

PLAIN = Figure(None, digits=4, plain=True)
NASTY = "<script>alert('x')</script> \"&\" שלום"


def percents(*values: float) -> Figure:
    return Figure.percent(*values)


def plain(value: float) -> Figure:
    return Figure(value, digits=0)


def series(**figures: list[Figure]) -> tuple[Series, ...]:
    return tuple(Series(name, tuple(values)) for name, values in figures.items())


LEVELS = ("rank 1", "2–5", "6–10", "11–100", "below 100")


def strip(groups: dict[str, tuple[float, ...]]) -> Shares:
    return Shares(title="t", groups=tuple(groups), levels=LEVELS, counts=tuple(groups.values()))


def drawing(chart: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(draw(chart).svg)


def rows_of(chart: Chart) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(map(cell_text, row)) for row in chart.table.rows)


def numbers(element: ElementTree.Element | None, *names: str) -> list[float]:
    assert element is not None
    return [float(str(element.get(name))) for name in names]


def every_chart(name: str) -> list[Chart]:
    figure = percents(0.5, 0.4, 0.6)
    two = (Series(name, (figure, figure)), Series("b", (figure, figure)))
    return [
        Bars(title=name, groups=(name, "c"), series=two, axis=name, heading=name, mark=two[0]),
        Lines(title=name, across=(1, 2), series=two, axis=name, about=name, band=(1, 2, name)),
        Heat(title=name, rows=(name,), columns=(name,), cells=((figure,),), heading=name),
        Histogram(title=name, edges=(0, 1, 2), counts=(3, 4), axis=name, noun=name),
        Shares(title=name, groups=(name, "b"), levels=(name, "c"), counts=((1, 2), (3, 4))),
        Scatter(title=name, clouds=(Cloud(name, ((1.0, 2.0), (2.0, 3.0))),), axis=name, up=name,
                trends=(Cloud("b", ((1.0, 2.0), (2.0, 2.5))),)),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(6))
def test_every_chart_has_a_name_a_description_and_a_table_and_names_stay_text(number: int) -> None:
    chart = every_chart(NASTY)[number]
    page = chart_html(chart)
    root = ElementTree.fromstring(page)  # well-formed as XML, too
    assert "<script" not in page
    svg = root.find(".//svg")
    assert svg is not None
    assert svg.get("role") == "img"
    assert [child.tag for child in svg[:2]] == ["title", "desc"]
    assert svg.findtext("title") == NASTY
    assert svg.findtext("desc")
    assert "style=" not in page, "a page may forbid styles in its markup"
    rows = root.findall("./details//tbody/tr")
    assert len(rows) == len(chart.table.rows) > 0
    for row, cells in zip(rows, rows_of(chart), strict=True):
        assert tuple("".join(cell.itertext()) for cell in row) == cells


@pytest.mark.parametrize("number", range(6))
def test_a_chart_in_a_file_of_its_own_needs_no_variables(number: int) -> None:
    text = drawn_file([draw(every_chart("t")[number])], ".svg").decode()
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert float(str(root.get("width"))) > 100
    assert "var(" not in text
    used = {name for element in root.iter() for name in str(element.get("class") or "").split()}
    styled = set(re.findall(r"\.([a-z]\w*)", text.partition("</style>")[0]))
    assert used <= styled | {"strip", "cell"}


def test_bars_are_as_long_as_their_values() -> None:
    values = [percents(0.5, 0.25, 0.75), percents(1.0), percents(math.nan)]
    chart = Bars(title="t", groups=("a", "b", "c"), series=series(run=values), limits=(0, 1))
    half, whole = (numbers(bar, "x", "width") for bar in drawing(chart).findall(".//rect[@class='bar']"))
    assert half[0] == whole[0]
    assert half[1] * 2 == pytest.approx(whole[1], abs=0.2)
    line = next(line for line in drawing(chart).findall("line[@class='interval']") if line.get("y1") == line.get("y2"))
    low, high = numbers(line, "x1", "x2")
    assert low - half[0] == pytest.approx(whole[1] / 4, abs=0.2)
    assert high - half[0] == pytest.approx(whole[1] * 3 / 4, abs=0.2)
    assert rows_of(chart) == (("a", "50.0 [25.0, 75.0]"), ("b", "100.0"), ("c", "–"))


def test_bars_of_negative_values_end_where_the_others_begin() -> None:
    chart = Bars(title="t", groups=("a", "b"), series=series(run=[Figure(-1.0), Figure(1.0)]), limits=(-1, 1))
    left, right = (numbers(bar, "x", "width") for bar in drawing(chart).findall(".//rect[@class='bar']"))
    assert left[0] + left[1] == pytest.approx(right[0], abs=0.2)


def test_the_marked_point_is_where_its_numbers_are() -> None:
    lines = series(x=[plain(value) for value in (0.0, 5.0, 10.0)])
    drawn = drawing(Lines(title="x", across=(10, 20, 40), series=lines, axis="step", marked=1))
    points = drawn.findall(".//circle[@class='point']")
    assert numbers(drawn.find("circle[@class='best']"), "cx", "cy") == numbers(points[1], "cx", "cy")
    left, middle, right = (numbers(point, "cx")[0] for point in points)
    assert (middle - left) * 2 == pytest.approx(right - middle, abs=0.3)
    low, half, high = (numbers(point, "cy")[0] for point in points)
    assert low - half == pytest.approx(half - high, abs=0.2)
    assert points[2].findtext("title") == "step 40: 10"


def test_what_was_not_measured_is_drawn_and_named_so() -> None:
    lines = series(x=[percents(0.9), percents(0.5), percents(0.3)], y=[percents(0.8)] * 3)
    chart = Lines(
        title="x", across=(10, 1000, 2e6), series=lines, axis="items", logarithmic=True, measured={"x": 1000.0}
    )
    drawn = drawing(chart)
    lines = [str(line.get("class")) for line in drawn.iter("polyline")]
    assert lines == ["curve", "curve beyond", "curve"]
    solid, dotted = (str(line.get("points")).split() for line in list(drawn.iter("polyline"))[:2])
    assert dotted[0] == solid[-1], "the dotted part goes on where the other ends"
    assert [point.findtext("title") for point in drawn.findall(".//circle[@class='point beyond']")] == [
        "x, items 2,000,000: 30.0 extrapolated"
    ]
    assert rows_of(chart)[2] == ("2,000,000", "30.0 extrapolated", "80.0")
    assert "10⁶" in [text.text for text in drawn.iter("text")]


def test_equal_factors_are_equal_steps() -> None:
    lines = series(x=[percents(0.1, 0.0, 0.2)] * 3)
    drawn = drawing(Lines(title="x", across=(1, 10, 100), series=lines, axis="k", logarithmic=True))
    left, middle, right = (numbers(point, "cx")[0] for point in drawn.findall(".//circle[@class='point']"))
    assert middle - left == pytest.approx(right - middle, abs=0.2)
    band = drawn.find(".//polygon[@class='band']")
    assert band is not None
    assert len(str(band.get("points")).split()) == 6


@pytest.mark.parametrize("values", [[1.0], [3.0, 3.0], [0.0, 0.0], [-2.0, -2.0], [1e-9, 2e-9], [float("nan"), 2.0], []])
def test_charts_of_few_or_equal_values(values: list[float]) -> None:
    steps = [10 * (row + 1) for row in range(len(values))]
    line, names = series(x=[Figure(value) for value in values]), tuple(map(str, steps))
    drawing(Lines(title="x", across=tuple(steps), series=line, axis="step"))
    drawing(Bars(title="x", groups=names, series=line))
    drawing(Heat(title="x", rows=("r",), columns=names, cells=(line[0].figures,)))


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 30), (283.5, 502.1), (1e-6, 2e-4), (-3, 0.2), (0, 11_250)])
def test_ticks_are_round_and_enclose_the_values(low: float, high: float) -> None:
    marks = ticks(low, high)
    assert marks[0] <= low + 1e-12
    assert marks[-1] >= high - 1e-12
    assert 3 <= len(marks) <= 8
    step = marks[1] - marks[0]
    assert marks[0] > low - step
    assert marks[-1] < high + step
    assert float(f"{step:e}".partition("e")[0]) == pytest.approx(round(float(f"{step:e}".partition("e")[0])))


def test_losses_and_gains_have_two_colours_and_uncertain_ones_brackets() -> None:
    cells = (percents(0.2, 0.1, 0.3), percents(-0.1, -0.2, -0.05), percents(0.05, -0.1, 0.2), percents(math.nan))
    chart = Heat(title="t", rows=("model",), columns=("a", "b", "c", "d"), cells=(cells,), worse=True)
    boxes = drawing(chart).findall(".//rect")
    assert [box.get("class") for box in boxes] == ["cell worse", "cell better", "cell worse"]
    assert [numbers(box, "fill-opacity")[0] for box in boxes] == [0.5, 0.25, 0.125]
    labels = [text.text for text in drawing(chart).findall(".//text[@class='middle']")]
    assert labels == ["20.0", "-10.0", "(5.0)"]


def test_whole_numbers_have_bars_of_their_own() -> None:
    chart = Histogram(title="t", edges=(3, 4, 5, 6), counts=(2, 0, 4), axis="words", unit=PLAIN, whole=True)
    assert rows_of(chart) == (("3", "2"), ("4", "0"), ("5", "4"))
    bars = drawing(chart).findall(".//rect[@class='bar']")
    assert [bar.findtext("title") for bar in bars] == ["3: 2 queries", "4: 0 queries", "5: 4 queries"]
    labels = {text.text: numbers(text, "x")[0] for text in drawing(chart).findall(".//text[@class='soft middle']")}
    left, wide = numbers(bars[0], "x", "width")
    assert labels["3"] == pytest.approx(left + wide / 2, abs=0.6), "under the middle of its bar"


def test_names_of_columns_and_runs_have_room() -> None:
    """A long name is turned beside the last column and still inside the drawing; two that differ late stay apart."""
    names = ["clip-vit-base-a", "clip-vit-base-b"]
    chart = Heat(title="t", rows=("row",), columns=tuple(names), cells=((percents(0.1), percents(0.2)),))
    texts = [text.text for text in drawing(chart).iter("text")]
    assert set(names) <= set(texts), "whole"
    cells = [numbers(cell, "x", "width") for cell in drawing(chart).findall(".//rect")]
    reach = 7.4 * len(names[1]) * math.cos(math.radians(35))
    assert draw(chart).width >= cells[-1][0] + cells[-1][1] / 2 + reach - 8
    long = strip({"a-rather-long-name-of-a-run": (1, 1, 0, 0, 0), "b": (1, 1, 0, 0, 0)})
    assert "a-rather-long-name-of-a-run" in [text.text for text in drawing(long).iter("text")]


def test_a_strip_alone_has_no_name_beside_it() -> None:
    alone = [text.text for text in drawing(strip({"run": (1, 1, 0, 0, 0)})).iter("text")]
    assert "run" not in alone


def test_counts_are_heights() -> None:
    chart = Histogram(title="t", edges=(0, 1, 2, 3), counts=(2, 0, 4), axis="x", unit=PLAIN)
    first, empty, last = (numbers(bar, "height")[0] for bar in drawing(chart).findall(".//rect[@class='bar']"))
    assert empty == 0
    assert first * 2 == pytest.approx(last, abs=0.2)
    assert rows_of(chart) == (("0 to 1", "2"), ("1 to 2", "0"), ("2 to 3", "4"))


def test_strips_fill_their_row() -> None:
    chart = strip({"a": (2, 1, 0, 0, 1), "b": (0, 0, 0, 0, 1)})
    boxes = [numbers(box, "y", "width") for box in drawing(chart).findall("rect")][len(LEVELS) :]
    first = [wide for y, wide in boxes if y == boxes[0][0]]
    second = [wide for y, wide in boxes if y != boxes[0][0]]
    assert sum(first) == pytest.approx(sum(second), abs=0.3)
    assert first[0] * 2 == pytest.approx(sum(first), abs=0.3)
    assert second[:-1] == [0, 0, 0, 0]


@given(st.text(max_size=50), st.floats(1, 300))
def test_cut_texts_fit_and_say_that_they_are_cut(text: str, room: float) -> None:
    cut_text = fitting(text, room)
    assert len(cut_text) <= max(2, room / 7.4)
    start, cut, end = cut_text.partition("…")
    assert cut_text == text or (cut and text.startswith(start) and text.endswith(end))


def test_names_that_differ_at_their_end_stay_apart() -> None:
    assert fitting("tiny-scenes-v0", 98) != fitting("tiny-scenes-v1", 98)


def test_a_long_name_is_whole_under_the_pointer() -> None:
    name = "a very long name of a group that no axis has room for"
    chart = Bars(title="t", groups=(name,), series=series(run=[Figure(1.0)]))
    assert f"<title>{name}</title>" in unescape(draw(chart).svg)


def test_the_names_of_levels_are_whole_where_there_is_room() -> None:
    chart = Shares(title="t", groups=("run",), levels=LEVELS, counts=((1, 2, 3, 4, 5),))
    assert {text.text for text in drawing(chart).findall("text")} >= set(LEVELS)
    many = replace(chart, levels=tuple(f"level number {number}" for number in range(12)), counts=((1,) * 12,))
    right = max(float(text.get("x", 0)) + 6 * len(text.text or "") for text in drawing(many).findall("text"))
    assert right < 420


@pytest.mark.parametrize(("limits", "middle"), [((-0.05, 0.15), "0"), ((0.0, 1.0), "50"), ((-0.4, 0.4), "0")])
def test_an_axis_says_where_zero_is_if_there_is_room(limits: tuple[float, float], middle: str) -> None:
    scale = Scale([Figure(limits[1], scale=100, digits=0, signed=limits[0] < 0)], limits)
    assert re.findall(r">([^<>]+)</text>", scale.axis())[1] == middle


def test_an_end_beside_zero_makes_room_for_it() -> None:
    scale = Scale([Figure(0.25, scale=100, digits=0)], (-0.03, 0.22))
    assert re.findall(r">([^<>]+)</text>", scale.axis()) == ["0", "25"]


def test_the_scale_of_small_multiples_has_what_is_dashed() -> None:
    cells = tuple(Interval(Figure(value, value - 1, value + 1)) for value in (13.0, 15.0))
    chart = SmallMultiples(title="t", columns=("a", "b"), rows=(Multiple("x", cells),), means=(Figure(0.0),) * 2)
    lines = re.findall(r'class="reference" x1="([^"]+)%"', multiples_html(chart))
    dots = [float(place) for place in re.findall(r'class="dot" cx="([^"]+)%"', multiples_html(chart))]
    assert lines == ["0", "0"]
    assert min(dots) > 50, "they are far from 0"

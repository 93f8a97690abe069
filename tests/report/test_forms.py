"""Parts in every form: the same numbers on a terminal, on a page, in drawings and in files."""

from __future__ import annotations

import csv
import importlib
import io
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from crosslens.core import (
    SECTIONS,
    Bars,
    Cards,
    Chart,
    Cloud,
    ConflictError,
    FactList,
    Figure,
    Heat,
    Histogram,
    Interval,
    Intervals,
    Lines,
    Link,
    Multiple,
    PairedBar,
    PairedBars,
    PictureCard,
    Presented,
    Row,
    Scatter,
    Section,
    Series,
    Shares,
    SmallMultiples,
    Table,
    Text,
    UsageError,
)
from crosslens.report.forms.charts import draw
from crosslens.report.forms.drawing import drawn_file
from tests.tables import each_row
from tests.test_layers import SOURCE, modules_in

HALF, LESS = Figure.percent(0.5, 0.4, 0.6), Figure.percent(0.25)
CHARTS: tuple[Chart, ...] = (
    Bars(title="bars", groups=("a <b>", "c"), series=(Series("m", (HALF, LESS)), Series("n", (LESS, HALF))),
         mark=Series("chance", (HALF, HALF))),
    Bars(title="negative", groups=("a",), series=(Series("m", (Figure(-3.0, -4.0, -2.0),)),)),
    Intervals(title="strip", rows=(Interval(HALF, "a <b>", change=LESS), Interval(Figure(None), "none")), mark=0.5),
    SmallMultiples(title="multiples", columns=("a", "b"), means=(HALF, HALF), limits=(0, 1),
                   rows=(Multiple("x", (Interval(HALF, tone="bad"), None), "by x"), Multiple("y", (None, None)))),
    PairedBars(title="pairs", levels=(("both right", "good"), ("same", "bad"), ("swapped", "unsure")), chance=0.25,
               rows=(PairedBar("left", (1, 3, 0), HALF), PairedBar("none", (0, 0, 0)))),
    Shares(title="shares", groups=("a", "b"), levels=("rank 1", "below"), counts=((3, 1), (0, 0))),
    Lines(title="lines", across=(1.0, 10.0, 1000.0), series=(Series("m", (HALF, LESS, HALF)),), axis="k",
          logarithmic=True, marked=1, measured={"m": 10.0}),
    Lines(title="zone", across=(0.0, 1.0), series=(Series("m", (HALF, Figure.percent(None))),), axis="k",
          band=(0.2, 0.4, "kept")),
    Heat(title="heat", rows=("a", "b"), columns=("c", "d"), worse=True,
         cells=((HALF, Figure.percent(-0.1, -0.2, 0.1)), (Figure.percent(math.nan), LESS))),
    Histogram(title="histogram", edges=(0.0, 1.0, 2.0), counts=(3, 0), axis="value", band=(0.5, 1.5, "kept")),
    Histogram(title="whole", edges=(0.0, 1.0, 2.0), counts=(3, 4), axis="value", whole=True),
    Scatter(title="scatter", clouds=(Cloud("c", ((0.0, 1.0), (2.0, 3.0)), ("x", "y")),), axis="a", up="b",
            trends=(Cloud("trend", ((0.0, 1.0), (2.0, 2.0))),), spread=0.3),
)  # fmt: skip


@dataclass(frozen=True)
class Shown(Presented):
    parts: tuple[Any, ...]

    @property
    def title(self) -> str:
        return "Shown"

    def sections(self) -> Iterator[Section]:
        yield Section("A title", self.parts)

    def as_dict(self) -> dict[str, Any]:
        return {"value": 0.5, "missing": math.nan}


TABLE = Table(
    ("", "cases", "accuracy", "chance"),
    (("all | cases", 1200, HALF, LESS), ("[few]", 3, Figure.percent(1.0), Figure.percent(None))),
    notes=("In percent.",), best=frozenset({(1, 2)}),
)  # fmt: skip


@each_row(
    ("figure", "text"),
    [
        (Figure.percent(0.583, 0.569, 0.597), "58.3 [56.9, 59.7]"),
        (Figure.percent(None), "–"),
        (Figure.percent(math.nan, 0.1, 0.2), "–"),
        (Figure.percent(-0.0002, -0.01, 0.01, signed=True), "0.0 [-1.0, +1.0]"),
        (Figure.percent(0.02, signed=True, unit=" pp"), "+2.0 pp"),
        (Figure.percent(0.02, 0.01, 0.03, unit=" %"), "2.0 % [1.0, 3.0]"),
        (Figure(5.0, digits=1, plain=True), "5"),
        (Figure(5.5, digits=1, plain=True), "5.5"),
        (Figure(12345.678), "12345.68"),
        (Figure.p(0.0139), "0.0139"),
        (Figure.p(0.00001), "<0.0001"),
        (Figure.p(0.0002, 100), "<0.001"),
        (Figure.p(math.nan), "–"),
        (replace(HALF, mark="*"), "50.0 [40.0, 60.0] *"),
        (replace(LESS, mark="*"), "25.0 *"),
        (Figure(12345.678, digits=0), "12,346"),
    ],
)
def test_a_figure_is_written_once_and_for_all(figure: Figure, text: str) -> None:
    assert str(figure) == text


@given(st.floats(-1e6, 1e6), st.integers(0, 4), st.booleans())
def test_a_number_that_rounds_to_zero_has_no_sign(value: float, digits: int, signed: bool) -> None:
    text = str(Figure(value, digits=digits, signed=signed))
    assert float(text.replace(",", "")) == pytest.approx(round(value, digits), abs=1e-9)
    if not float(text.replace(",", "")):
        assert text[0] not in "+-"


def test_a_terminal_aligns_numbers_and_intervals() -> None:
    assert Shown((TABLE, Text.of("First.", "", "Second."))).text() == (
        "A title\n\n"
        "              cases   accuracy              chance\n"
        "all | cases   1,200    50.0  [40.0, 60.0]     25.0\n"
        "[few]             3   100.0                      –\n\n"
        "In percent.\n\nFirst.\nSecond."
    )


@pytest.mark.parametrize("width", [40, 80, 120, None])
def test_texts_wrap_and_tables_break_into_blocks(width: int | None) -> None:
    text = Shown((Text.of("word " * 60), TABLE)).text(width)
    longest = max(map(len, text.splitlines()))
    assert longest <= (80 if width is None else min(width, 80))


def test_facts_stand_beside_their_names() -> None:
    result = Shown((FactList((("phi", "cider"), ("tokens", "words")), "Protocol five"),))
    assert result.text() == "A title\n\nProtocol five\n  phi      cider\n  tokens   words"
    assert "<td>cider</td>" in result._repr_html_()


def test_a_folded_table_is_for_pages_and_a_long_one_an_overview(tmp_path: Path) -> None:
    rows = tuple((Link(f"row {number}", f"{number}.html"), number) for number in range(10))
    rows_with_links = tuple(("", *row) for row in rows)
    folded, long = (
        Table(("", "link", "n"), rows_with_links, title="All", folded=True),
        Table(("link", "n"), rows, most=4),
    )
    assert "All" not in Shown((folded,)).text()
    assert "row 3" not in Shown((folded,)).save(tmp_path / "a.tex").read_text()
    assert '<a href="3.html">row 3</a>' in Shown((folded,))._repr_html_()
    assert [line.split()[1] for line in Shown((long,)).text().splitlines()[3:]] == ["0", "3", "6", "9"]
    assert len(Shown((long,)).save(tmp_path / "a.csv").read_text().splitlines()) == 11
    assert "<summary>Table of 10 rows</summary>" in Shown((long,))._repr_html_()


def test_a_table_aside_is_printed_and_folded_on_pages() -> None:
    result = Shown((Table(("link", "n"), (("row", 1),), title="Aside", aside=True),))
    assert "Aside\nlink   n\nrow    1" in result.text()
    assert "<summary>Aside</summary>" in result._repr_html_()


def test_a_table_without_a_header_begins_with_its_rows() -> None:
    result = Shown((Table(("", ""), (("time", "3 s"), ("limit", "network"))),))
    assert result.text() == "A title\n\ntime    3 s\nlimit   network"
    assert "<thead>" not in result._repr_html_()


def test_cards_are_indented_lines() -> None:
    cards = Cards("Worst:", (PictureCard("−1 case 4", ("right: a\nred square", "wrong: b")),))
    assert Shown((cards,)).text() == "A title\n\nWorst:\n  −1 case 4\n    right: a red square\n    wrong: b"


def test_csv_has_unrounded_values_and_interval_ends(tmp_path: Path) -> None:
    figure = Figure.percent(1 / 3, 0.123456789, 0.7)
    file = Shown((Table(("", "", "share"), (("a", "x", figure), ("b", "y", None))),)).save(tmp_path / "a.csv")
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    assert [row["share"] for row in rows] == [str(1 / 3), ""]
    assert rows[0]["share low"] == "0.123456789"
    assert list(rows[0]) == ["name", "column 2", "share", "share low", "share high"]


def test_latex_and_markdown_escape_and_mark_the_best(tmp_path: Path) -> None:
    result = Shown((TABLE,))
    latex = result.save(tmp_path / "a.tex").read_text()
    assert r"{[few]} & 3 & \textbf{100.0} & -- \\" in latex
    assert r"50.0 {\small [40.0, 60.0]}" in latex
    markdown = result.save(tmp_path / "a.md").read_text()
    assert r"| all \| cases | 1,200 | 50.0 [40.0, 60.0] | 25.0 |" in markdown
    assert "**100.0**" in markdown


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.title)
def test_charts_are_drawn_inside_their_frame(chart: Chart, tmp_path: Path) -> None:
    root = ElementTree.fromstring(drawn_file([draw(chart)], ".svg").decode())
    drawing = root.find("{http://www.w3.org/2000/svg}svg")
    assert drawing is not None
    wide, high = float(drawing.get("width", "")), float(drawing.get("height", ""))
    for element in drawing.iter():
        for name, most in (("x", wide), ("cx", wide), ("x1", wide), ("y", high), ("cy", high), ("y2", high)):
            if element.get(name) is not None:
                assert -1 <= float(element.get(name, "")) <= most + 1, ElementTree.tostring(element)
    assert len(chart.table.rows) > 0
    page = Shown((chart, Row((chart,)))).save(tmp_path / "a.html").read_text()
    classes = re.findall(r'<svg class="(chart[^"]*)"', page)
    if isinstance(chart, Intervals | SmallMultiples | PairedBars):  # text beside drawings: one for each of its bars
        assert classes
        assert 'style="' not in page
    else:
        assert classes == ["chart", "chart"]
    assert "a <b>" not in page


@pytest.mark.parametrize("ending", [".png", ".pdf"])
def test_pictures_need_no_browser(ending: str, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="pip install 'crosslens[pictures]'")
    content = Shown(CHARTS).save(tmp_path / f"a{ending}").read_bytes()
    assert content.startswith({".png": b"\x89PNG", ".pdf": b"%PDF"}[ending])
    again = Shown(CHARTS).save(tmp_path / f"b{ending}").read_bytes()
    assert again == content if ending == ".png" else len(again) == len(content)  # a PDF's objects come in any order


def test_a_notebook_shows_the_same_sections() -> None:
    page = Shown((TABLE, CHARTS[0], Text.of("<script>")))._repr_html_()
    assert 'class="crosslens"' in page
    assert "all | cases" in page
    assert "&lt;script&gt;" in page
    assert "<script>" not in page


def test_json_has_no_nan(tmp_path: Path) -> None:
    assert json.loads(Shown(()).save(tmp_path / "a.json").read_text()) == {"value": 0.5, "missing": None}


def test_the_values_are_a_frame() -> None:
    result = Shown((TABLE,))
    assert result.table["accuracy"].to_list() == [0.5, 1.0]
    assert result.table["cases"].to_list() == [1200, 3]


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    result = Shown((TABLE,))
    with pytest.raises(UsageError, match=r"a\.xls: unknown form \.xls"):
        result.save(tmp_path / "a.xls")
    with pytest.raises(UsageError, match=r"no chart for a \.svg file"):
        result.save(tmp_path / "a.svg")
    with pytest.raises(UsageError, match="no table"):
        Shown((CHARTS[0],)).save(tmp_path / "a.csv")
    result.save(tmp_path / "a.md")
    result.save(tmp_path / "a.md")  # the same content is no conflict
    with pytest.raises(ConflictError, match="already exists"):
        Shown(()).save(tmp_path / "a.md")
    (tmp_path / "b.md").mkdir()
    with pytest.raises(ConflictError, match="is a folder"):
        result.save(tmp_path / "b.md")


def test_names_of_rows_are_said_once_and_open_every_block() -> None:
    rows = (("a", "x", 1000, 2), ("a", "y", 3, 4), ("b", "y", 5, 6))
    table = Table(("group", "name", "first", "second"), rows, names=2)
    assert [line[0] for line in table.lines] == ["a", "", "b"]
    assert table.frame["group"].to_list() == ["a", "a", "b"]
    text = Shown((table,)).text(24)
    assert text.splitlines()[2:7] == [
        "group   name   first", "a       x      1,000", "        y          3", "b       y          5", ""
    ]  # fmt: skip
    assert "group   name   second\na       x           2" in text


def test_points_that_lie_on_one_another_are_drawn_apart() -> None:
    cloud = Cloud("c", ((1.0, 1.0),) * 50 + ((2.0, 2.0),))
    drawn = draw(Scatter(title="s", clouds=(cloud,), axis="a", up="b", spread=0.2)).svg
    assert len({line for line in drawn.splitlines() if line.startswith("<circle")}) == 51
    assert "<circle" in drawn
    assert {row[2].value for row in Scatter(title="s", clouds=(cloud,), axis="a", up="b").table.rows} == {1.0, 2.0}  # type: ignore[union-attr]


def test_a_histogram_can_be_bars_of_text() -> None:
    edges = (0.0, 1.0, 2.0, 3.0)
    chart = Histogram(title="Ages", edges=edges, counts=(80, 0, 1), axis="years", band=(1.0, 2.0, "kept"), printed=True)
    assert Shown((chart,)).text().splitlines()[2:] == [
        "Ages",
        "years      queries",
        f"0 to 1          80   {'█' * 40}",
        "1 to 2 ·         0",
        "2 to 3           1   █",
    ]
    assert "Ages" not in Shown((replace(chart, printed=False),)).text()


def test_a_terminal_shows_the_narrow_form_of_a_table_that_is_too_wide() -> None:
    narrow = Table(("", "m"), (("a", LESS),), notes=("no room",))
    wide = Table(("", "m"), (("a" * 40, HALF),), narrow=narrow, notes=("intervals",))
    assert "intervals" in Shown((wide,)).text(80)
    assert "intervals" in Shown((wide,)).text()
    text = Shown((wide,)).text(30)
    assert "no room" in text
    assert "intervals" not in text


_CLASS = re.compile(r"^class (\w+)(?:\[[^]]*\])?(?:\((.*?)\))?:", re.MULTILINE | re.DOTALL)


def result_classes() -> list[type[Presented]]:
    """Every class of the package that derives from Presented, and that no other class derives from."""
    defined: dict[str, tuple[str, set[str]]] = {}
    for module, file in modules_in(SOURCE).items():
        for name, bases in _CLASS.findall(file.read_text(encoding="utf-8")):  # parsing all modules takes seconds
            defined[name] = module, set(re.findall(r"[\w.]+", re.sub(r"\[.*\]", "", bases)))
    derived = {"Presented"}
    while more := {name for name, (_, bases) in defined.items() if bases & derived} - derived:
        derived |= more
    leaves = derived.difference(*(bases for name, (_, bases) in defined.items() if name in derived))
    return [getattr(importlib.import_module(defined[name][0]), name) for name in sorted(leaves)]


def test_every_result_has_what_its_files_need() -> None:
    """``save("x.json")`` calls ``as_dict``, a page needs the title, and every form the sections."""
    classes = result_classes()
    assert len(classes) > 20
    for result_class in classes:
        assert result_class.as_dict is not Presented.as_dict, f"{result_class.__name__} has no as_dict"
        assert result_class.title is not Presented.title, f"{result_class.__name__} has no title"
        assert result_class.sections is not Presented.sections or result_class.__name__ in SECTIONS, (
            f"{result_class.__name__} has no sections"
        )


def test_an_incomplete_result_cannot_be_made() -> None:
    class Incomplete(Presented):
        """Without title and as_dict."""

    class Bare(Chart):
        """Without table."""

    with pytest.raises(TypeError, match="abstract"):
        Incomplete()  # type: ignore[abstract]
    with pytest.raises(TypeError, match="abstract"):
        Bare(title="bare")  # type: ignore[abstract]


def test_every_kind_of_chart_is_tried() -> None:
    kinds = {kind for kind in Chart.__subclasses__() if kind.__module__.startswith("crosslens.")}
    assert {type(chart) for chart in CHARTS} == kinds

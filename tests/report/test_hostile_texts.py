"""Hostile texts in every field of every part: no form lets them be more than text, and each shows them whole."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest
from hypothesis import assume, given, strategies as st
from markdown_it import MarkdownIt

from crosslens.core import (
    AnsweredQuestion,
    Answers,
    Cards,
    Diffs,
    EvidenceList,
    Facet,
    FacetValue,
    FactList,
    Figure,
    Folded,
    InputError,
    MarkedText,
    PairedBars,
    PictureBox,
    PictureCard,
    Presented,
    QueryCard,
    QueryCards,
    Row,
    Section,
    Table,
    Text,
    TextDiff,
    markdown_text,
    well_formed,
)
from crosslens.data import load_dataset, read_table, write_dataset
from crosslens.report.forms.charts import draw
from crosslens.report.forms.drawing import drawn_file
from crosslens.report.forms.tables import latex_text
from crosslens.storage import for_spreadsheets, from_spreadsheets
from crosslens.values import Dataset
from tests.report.test_forms import CHARTS
from tests.tables import each_row
from tests.test_layers import SOURCE


def one_line(text: str) -> str:
    return " ".join(well_formed(text).split())


PAYLOADS = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[click](javascript:alert(1))",
    "<javascript:alert(1)>", "![x](javascript:alert(1))", "[x][y]", "[x]: javascript:alert(1)", "<https://example.org>",
    "&lt;script&gt;", "&#60;b&#62;", "`code` ``more``", "a | b", "\\| b \\", "*bold* **x** _it_ __init__ a_b",
    "~~gone~~", "# head #", "- item", "+ item", "1. item", "2) item", "> quote", "---", "===", "```\n<b>\n```", "~~~",
    "[ ] todo", "[x] done", "{: onclick=alert(1)}", "{{ 7 * 7 }}", "$x$", "</style></svg><script>", "]]>", "<![CDATA[",
    "<!-- x", "--> x", "\x1b]0;title\x07", "\x1b[2J", "\x00\x0b\x1f\x08", "\ud800", "\ufffe\uffff", "a\u2028b",
    "\u202eabc", "=1+1", "+1+1", "-1+1", "@SUM(A1)", "'=1", "\t=1", "\r=1", "＝1", "-3", '=HYPERLINK("http://x")',
    "\\input{/etc/passwd}", "\\write18{id}", "^^5cinput", "100 % $5 & #1 _a {b} ~ ^", "--option -3", "[1]",
    " =1", "\xa0@x", "\ufeff=1", "\u200b=1", "﹦1",
    "javascript:alert(1)", '" onmouseover="alert(1)', "' onmouseover='alert(1)", "a\nb\n\n<b>c</b>", "    code",
)  # fmt: skip
SPECIAL = "<>&[]()!*_`~#-+.=|\\\"'\n\t\r$:{}/^% a1@x\x00\x1b\ud800\ufffe\u2028é−→φ"
HOSTILE = st.one_of(st.sampled_from(PAYLOADS), st.text(SPECIAL, min_size=1, max_size=24))
PLAIN = "plainword"

PARTS: tuple[Any, ...] = (
    Text(("t", "t")),
    FactList((("t", "t"), ("1.", "t")), title="t"),
    Table(("t", "t"), (("t", Figure.percent(-0.5, -0.6, -0.4)), ("t", "t")), title="t", notes=("t",),
          best=frozenset({(1, 1)})),
    Cards("t", (PictureCard("t", ("t", "t"), details=("t",), boxes=(PictureBox((0, 0, 5, 5), "t", "t", 1),),
                            size=(10, 10)),), key="t"),
    MarkedText("t", (("t", "yes", "t"), ("t", "", "")), "t", "t"),
    Diffs((TextDiff("t", (("t", "t"), ("t", "")), "t", ("t",)),), title="t", about="t"),
    *CHARTS,
    Row(CHARTS[:2]),
    Answers((AnsweredQuestion("t", "t", "likely", "t", "#t", "t"),)),
    QueryCards((QueryCard("t", "t", (PictureCard("t", ("t",)),), ("t",), ("t",), ("t",)),), title="t",
               facets=(Facet("t", (FacetValue("t", 1),)),)),
    EvidenceList("e", "t", (("t", "t"),)),
    Folded("t", (Text(("t",)),), about="t", open=True),
)  # fmt: skip
_NO_TEXT = {"align", "mark", "look", "image", "pictures", "narrow", "unit", "tone", "certainty", "address", "files"}
"""Fields of type text that nobody's data reaches."""


def filled(part: Any, text: str) -> Any:
    """The part with this text in every field that holds one."""
    if isinstance(part, str):
        return text if part and not part.removesuffix(".").isdecimal() else part
    if isinstance(part, tuple):
        return tuple(filled(entry, text) for entry in part)
    if isinstance(part, Figure) or not is_dataclass(part) or isinstance(part, type):
        return part
    if isinstance(part, MarkedText):  # what a stretch is marked as is no text
        spans = tuple((text, mark, text) for _, mark, _ in part.spans)
        return MarkedText(text, spans, text, text)
    if isinstance(part, PairedBars):
        part = replace(part, levels=tuple((text, tone) for _, tone in part.levels))
        return replace(part, title=text, rows=filled(part.rows, text), heading=text, noun=text)
    changed = {
        field.name: filled(getattr(part, field.name), text) for field in fields(part) if field.name not in _NO_TEXT
    }
    return replace(part, **changed)


@dataclass(frozen=True)
class Shown(Presented):
    text_: str
    parts: tuple[Any, ...] = PARTS

    @property
    def title(self) -> str:
        return self.text_

    def sections(self) -> Iterator[Section]:
        yield Section(f"{self.text_} below", tuple(filled(part, self.text_) for part in self.parts), self.text_)

    def as_dict(self) -> dict[str, Any]:
        return {"title": self.text_}


class Page(HTMLParser):
    """The elements of a page, with their attributes, and its text."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.values: list[tuple[str, str]] = []
        self.text = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.values += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += f" {data} " if self.elements and self.elements[-1][0] != "code" else data

    def handle_decl(self, decl: str) -> None:
        assert decl == "DOCTYPE html"

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


def rendered(text: str) -> Page:
    markdown = Shown(text).content(".md").decode()
    return Page(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown))


@given(HOSTILE)
def test_markdown_shows_every_text_and_is_never_more_than_text(text: str) -> None:
    assume(one_line(text) and not re.fullmatch(r"\d+\.", one_line(text)))  # which is the number of an entry
    page, plain = rendered(text), rendered(PLAIN)
    assert page.elements == plain.elements
    expected = plain.text.replace(PLAIN, well_formed(text))
    assert "".join(page.text.split()) == "".join(expected.split())


@each_row("text", [text for text in PAYLOADS if one_line(text)])
def test_markdown_of_every_payload(text: str) -> None:
    assert rendered(text).elements == rendered(PLAIN).elements
    markdown = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    assert one_line(Page(markdown.render(markdown_text(text))).text) == one_line(text)


@given(HOSTILE)
def test_a_page_has_the_same_elements_whatever_its_texts_are(text: str) -> None:
    short = text[:8]  # a text that is cut in a drawing has an element of its own
    page, plain = (Page(Shown(value).content(".html").decode()) for value in (short, "p" * len(short)))
    assert page.elements == plain.elements
    assert not [
        value for name, value in page.values if name in ("href", "src") and not value.startswith(("#", "data:"))
    ]


@given(HOSTILE)
def test_drawings_are_well_formed(text: str) -> None:
    for chart in (filled(chart, text) for chart in CHARTS):
        svg = drawn_file([draw(chart)], ".svg").decode()
        root = ElementTree.fromstring(svg)
        tags = {element.tag.removeprefix("{http://www.w3.org/2000/svg}") for element in root.iter()}
        assert tags <= {"svg", "style", "rect", "text", "title", "desc", "line", "g", "circle", "polygon", "polyline"}
        assert one_line(root.findtext(".//{*}text[@class='title']") or "") == one_line(text)
        assert well_formed(draw(chart).svg) == draw(chart).svg
    assert re.search("[\ud800-\udfff]", Shown(text)._repr_html_()) is None


def test_drawings_of_hostile_texts_become_pictures() -> None:
    pytest.importorskip("vl_convert")
    drawings = [draw(filled(CHARTS[0], text)) for text in ("\x00\x1b\ud800\ufffe]]>&<", "</svg><script>")]
    assert drawn_file(drawings, ".png").startswith(b"\x89PNG")
    assert drawn_file(drawings, ".pdf").startswith(b"%PDF")


_LATEX = re.compile(
    r"(?:[^\\&%$#_{}~^<>|]|~|\\[&%$#_{}]|\\textbackslash\{\}|\\textasciitilde\{\}|\\textasciicircum\{\}"
    r"|\\ldots\{\}|\\dag\{\}|\\ddag\{\}|-\{\}-|\$\\[a-zA-Z|]+(?:\{1\}\{2\})?\$|\$[-'<>]\$|\$[\^_]\{[0-9+Tn-]\}\$)*"
)


@given(HOSTILE)
def test_latex_is_never_more_than_text(text: str) -> None:
    written = latex_text(text)
    assert _LATEX.fullmatch(written.removeprefix("{").removesuffix("}") if written.startswith("{[") else written)
    assert not re.search("[\x00-\x1f\ud800-\udfff]", written)
    page, plain = (Shown(value).content(".tex").decode() for value in (text, PLAIN))
    assert [line for line in page.splitlines() if not line.startswith("%")] == [
        line.replace(PLAIN, written) for line in plain.splitlines() if not line.startswith("%")
    ]


@each_row(
    ("text", "written"),
    [
        ("-3.2", "$-$3.2"),
        ("−3.2", "$-$3.2"),
        ("-.5", "$-$.5"),
        ("+1.2", "+1.2"),
        ("clip-b32 2024-05-01 3-5", "clip-b32 2024-05-01 3-5"),
        ("--metrics", "-{}-metrics"),
        ("58.3 – 59.1 ± 0.4", "58.3 -- 59.1 $\\pm$ 0.4"),
        ("κ ≥ 0.8, φ × 2 → 10⁻³", "$\\kappa$ $\\geq$ 0.8, $\\varphi$ $\\times$ 2 $\\rightarrow$ 10$^{-}$$^{3}$"),
        ("“a…b”", "``a\\ldots{}b''"),
    ],
)
def test_signs_in_latex(text: str, written: str) -> None:
    assert latex_text(text) == written


def test_negative_figures_and_the_ends_of_their_intervals_have_a_minus_sign_in_latex() -> None:
    figure = Figure.percent(-0.032, -0.041, -0.02, signed=True)
    content = Shown("a", (Table(("run", "Δ"), (("a", figure),)),)).content(".tex").decode()
    assert "a & $-$3.2 {\\small [$-$4.1, $-$2.0]} \\\\" in content
    assert content.isascii()


def test_every_sign_that_results_are_written_with_is_ascii_in_latex() -> None:
    """Letters of languages stay: which of them compile depends on the program and its fonts."""
    used = {
        sign
        for package in ("pipeline", "analyze", "explanations", "metrics", "statistics")
        for file in (SOURCE / package).rglob("*.py")
        for sign in file.read_text(encoding="utf-8")
        if not sign.isascii() and unicodedata.category(sign)[0] not in "LZ"
    }
    assert not [sign for sign in used | set("φκρτσαηλμΔΣ") if not latex_text(sign).isascii()]


@given(HOSTILE)
def test_a_terminal_gets_no_control_characters(text: str) -> None:
    terminal_text = Shown(text).text(80)
    assert not re.search(
        "\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]",
        terminal_text,
    )
    terminal_text.encode()


TEXTS = HOSTILE.filter(lambda text: not re.search("[\ud800-\udfff]", text))


@given(st.lists(TEXTS, min_size=1), TEXTS)
def test_no_cell_of_a_table_for_spreadsheets_is_a_formula_and_all_come_back(texts: list[str], name: str) -> None:
    table = pl.DataFrame({name: texts, "figure": [-0.5] * len(texts)})
    content = for_spreadsheets(table).write_csv()
    for cell in (cell for row in csv.reader(io.StringIO(content, newline="")) for cell in row):
        assert not re.match(r"[\s\ufeff\u200b]*[=+\-@\t\r\n＝＋－＠﹦]", cell) or re.fullmatch(
            r"[+-]?[\d.,]+(e[+-]?\d+)?", cell
        )
    assert from_spreadsheets(for_spreadsheets(table)).equals(table)
    assert "-0.5" in content.splitlines()[-1]


@given(HOSTILE)
def test_a_result_as_csv_has_no_formulas(text: str) -> None:
    content = Shown(well_formed(text)).content(".csv").decode()
    for cell in (cell for row in csv.reader(io.StringIO(content, newline="")) for cell in row):
        assert not re.match(r"[\s\ufeff\u200b]*[=+\-@\t\r\n＝＋－＠﹦]", cell) or re.fullmatch(
            r"[+-]?[\d.,]+(e[+-]?\d+)?", cell
        )


@each_row("ending", [".csv", ".tsv"])
def test_ids_and_texts_that_look_like_formulas_come_back_from_files(ending: str, tmp_path: Any) -> None:
    dataset = Dataset.of({"=1": ["@home", "'=quoted"], "-2+3": ["+1 more", "plain"], "-5": ["-", "''@"]})
    write_dataset(dataset, tmp_path / f"captions{ending}")
    written = (tmp_path / f"captions{ending}").read_text(encoding="utf-8")
    assert re.findall(r"'+[=@]\w+", written) == ["'=1", "'=1", "'@home", "'=1", "'=1", "''=quoted"]
    again = load_dataset(tmp_path / f"captions{ending}")
    assert (again.image_ids, again.texts) == (dataset.image_ids, dataset.texts)


def test_every_table_that_is_written_goes_through_the_same_rule() -> None:
    """Runs and qrels of TREC have columns without a header, apart by blanks: no spreadsheet opens them."""
    texts = {str(file.relative_to(SOURCE)): file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py")}
    writing = [file for file, text in texts.items() if ".write_csv(" in text]
    assert len(writing) > 10
    assert [file for file in writing if "for_spreadsheets(" not in texts[file]] == ["data/rankings.py"]


def test_columns_that_become_one_name_are_refused(tmp_path: Any) -> None:
    (tmp_path / "a.csv").write_text("'=a,=a\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match="two columns are named '=a'"):
        read_table(tmp_path / "a.csv")

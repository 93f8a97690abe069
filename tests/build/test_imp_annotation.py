"""Annotation sheets: what people may write, what is refused, and when several people have to agree first."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crosslens.build import Verdict
from crosslens.build.imp.people import (
    AnnotationSheet,
    PeoplesVerdicts,
    annotation_table,
    measure_agreement,
    open_captions,
    read_annotations,
    read_verdicts,
)
from crosslens.core import InputError, UsageError

CANDIDATES = pl.DataFrame(
    {
        "image": ["a", "a", "b"],
        "caption": ["a#0", "a#1", "b#0"],
        "source": ["pool", "title", "pool"],
        "text": ["a red boat, on a lake", 'the "old" man', "a grey cat"],
    }
)
FILES: dict[str, str | None] = {"a": "/photos/a.jpg", "b": None}
HEADER = "image,file,caption,text,verdict,correction,change\n"
ROWS = (
    'a,,a#0,"a red boat, on a lake",{},{},{}\n',
    'a,,a#1,"the ""old"" man",{},{},{}\n',
    "b,,b#0,a grey cat,{},{},{}\n",
)


def sheet_text(*cells: tuple[str, str, str]) -> str:
    return HEADER + "".join(row.format(*cells_of_row) for row, cells_of_row in zip(ROWS, cells, strict=True))


def sheet(*verdicts: str) -> AnnotationSheet:
    """``good``, ``bad``, or a corrected text."""
    rows = [Verdict("good", text) if " " in text else Verdict(text) for text in verdicts]
    return AnnotationSheet({f"c{number}": verdict for number, verdict in enumerate(rows)})


def test_a_sheet_comes_back_as_it_was_filled_in(tmp_path: Path) -> None:
    empty = AnnotationSheet(dict.fromkeys(CANDIDATES["caption"], Verdict()))
    table = annotation_table(CANDIDATES, FILES, empty)
    assert table.columns == ["image", "file", "caption", "source", "text", "verdict", "correction", "change"]
    table.write_csv(tmp_path / "sheet.csv")
    assert read_annotations(tmp_path / "sheet.csv", CANDIDATES).judged == 0
    verdicts = {"a#0": Verdict("good", "a blue boat, on a lake", "colour"), "a#1": Verdict("generic"), "b#0": Verdict()}
    filled = AnnotationSheet(verdicts)
    annotation_table(CANDIDATES, FILES, filled).write_csv(tmp_path / "sheet.csv")
    again = read_annotations(tmp_path / "sheet.csv", CANDIDATES)
    assert again.verdicts == verdicts
    assert (again.judged, again.complete, again.key) == (2, False, filled.key)
    assert sorted(verdict.verdict for verdict in again.verdicts.values()) == ["", "generic", "good"]


def test_people_may_write_carelessly(tmp_path: Path) -> None:
    """Capitals, spaces, another order of rows, columns of their own, a correction without a verdict, JSON lines."""
    lines = sheet_text((" Good ", "", ""), ("", " the new man", "Object"), ("UNSURE", "", "")).splitlines()
    (tmp_path / "sheet.csv").write_text(
        "\n".join([f"{lines[0]},mine", f"{lines[3]},x", f"{lines[1]},", f"{lines[2]},"])
    )
    verdicts = read_annotations(tmp_path / "sheet.csv", CANDIDATES).verdicts
    assert verdicts == {
        "b#0": Verdict("unsure"), "a#0": Verdict("good"), "a#1": Verdict("good", "the new man", "object"),
    }  # fmt: skip
    rows = [{**row, "verdict": "bad"} for row in CANDIDATES.iter_rows(named=True)]
    (tmp_path / "sheet.jsonl").write_text("\n".join(map(json.dumps, rows)))
    read = read_annotations(tmp_path / "sheet.jsonl", CANDIDATES)
    assert [verdict.verdict for verdict in read.verdicts.values()] == ["bad"] * 3


FINE = ("good", "", "")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (sheet_text(FINE, ("goood", "", ""), FINE), "line 3", "the verdict of caption 'a#1' is 'goood'"),
        (sheet_text(FINE, FINE, ("bad", "a white cat", "")), "line 4", "is bad, and there is a correction"),
        (sheet_text(("unsure", "x y", ""), FINE, FINE), "line 2", "is unsure, and there is a correction"),
        (sheet_text(("", "a boat", "size"), FINE, FINE), "line 2", "the change of caption 'a#0' is 'size'"),
        (sheet_text(FINE, ("good", "", "colour"), FINE), "line 3", "a change and no correction"),
        (
            sheet_text(FINE, FINE, FINE).replace("a grey cat", "a white cat"),
            "line 4",
            "text of caption 'b#0' was changed",
        ),
        (sheet_text(FINE, FINE, FINE).replace("b,,b#0", "a,,b#0"), "line 4", "belongs to image 'b'"),
        (sheet_text(FINE, FINE, FINE).replace("a#1", "a#0"), "line 3", "duplicate caption id 'a#0'"),
        (sheet_text(FINE, FINE, FINE).replace("b#0", "b#7"), "line 4", "unknown caption id 'b#7'"),
        (HEADER + ROWS[0].format(*FINE), "", "2 captions are missing, such as 'a#1'"),
        (sheet_text(FINE, FINE, FINE).replace("verdict", "judgement"), "line 1", "no column 'verdict'"),
        (HEADER + "a,,a#0\n", "line 2", "3"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, text: str, line: str, message: str) -> None:
    (tmp_path / "sheet.csv").write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_annotations(tmp_path / "sheet.csv", CANDIDATES)
    assert "sheet.csv" in str(caught.value)
    assert line in str(caught.value)
    assert caught.value.fix


def test_when_people_have_to_agree() -> None:
    """Every pair of verdicts against the rule in words."""
    kinds = ("good", "bad", "unsure", "generic", "a corrected text", "another text")
    for first, second in product(kinds, kinds):
        sheets = sheet(first), sheet(second)
        rejects = {first, second} <= {"bad", "generic"}
        settled = "unsure" not in (first, second) and (first == second or rejects)
        assert bool(open_captions(sheets)) != settled, (first, second)
        if settled:
            verdict = PeoplesVerdicts(sheets).final["c0"]
            kept = first not in ("bad", "generic")
            assert (verdict.verdict == "good") == kept
            assert verdict.correction == (first if " " in first else "")
            assert (verdict.verdict == "generic") == (first == second == "generic")
    alone = (sheet("good", "unsure", "bad"),)
    assert open_captions(alone) == ["c1"]


def test_kappa_is_what_loops_say() -> None:
    random = np.random.default_rng(0)
    kinds = ("good", "bad", "unsure", "generic")
    first, second = ([kinds[at] for at in random.choice(4, 200, p=shares)] for shares in
                     ((0.5, 0.3, 0.1, 0.1), (0.4, 0.4, 0.1, 0.1)))  # fmt: skip
    second = [a if number % 2 else b for number, (a, b) in enumerate(zip(first, second, strict=True))]
    result = measure_agreement([sheet(*first), sheet(*second)])

    def kappa(left: list[str], right: list[str]) -> float:
        observed = sum(a == b for a, b in zip(left, right, strict=True)) / len(left)
        chance = sum(left.count(kind) * right.count(kind) for kind in set(left)) / len(left) ** 2
        return (observed - chance) / (1 - chance)

    assert result.kappa == pytest.approx(kappa(first, second))
    kept = [["good" if verdict == "good" else "not" for verdict in verdicts] for verdicts in (first, second)]
    assert result.kappa_kept == pytest.approx(kappa(*kept))
    assert result.share == sum(a == b for a, b in zip(first, second, strict=True)) / 200
    assert result.captions == 200


def test_the_way_through_both_stages(tmp_path: Path) -> None:
    people = PeoplesVerdicts.none(CANDIDATES, 2)
    assert people.status == "annotate"
    for name, table in people.tables(CANDIDATES, FILES).items():
        table.write_csv(tmp_path / name)
    paths = [tmp_path / "annotate-1.csv", tmp_path / "annotate-2.csv"]
    assert sorted(tmp_path.iterdir()) == paths
    paths[0].write_text(sheet_text(FINE, FINE, ("", "", "")))
    assert read_verdicts(paths, CANDIDATES, 2).waiting == {"annotate-1.csv": (2, 3), "annotate-2.csv": (0, 3)}
    paths[0].write_text(sheet_text(FINE, FINE, ("bad", "", "")))
    paths[1].write_text(sheet_text(("good", "a new boat", "object"), FINE, ("unsure", "", "")))
    people = read_verdicts(paths, CANDIDATES, 2)
    assert (people.status, people.waiting) == ("agree", {"agree.csv": (0, 2)})
    table = people.tables(CANDIDATES, FILES)["agree.csv"]
    assert table["caption"].to_list() == ["a#0", "b#0"]
    assert table["verdict_2"].to_list() == ["good", "unsure"]
    assert table["correction_2"].to_list() == ["a new boat", None]
    agree = tmp_path / "agree.csv"
    table.with_columns(verdict=pl.Series(["good", "good"])).write_csv(agree)
    done = read_verdicts([agree, *paths], CANDIDATES, 2)
    assert done.status == "done"
    assert {caption: verdict.verdict for caption, verdict in done.final.items()} == dict.fromkeys(
        ("a#0", "a#1", "b#0"), "good"
    )
    again = PeoplesVerdicts.of_log(list(done.entries()), CANDIDATES, 2)
    assert again.key == done.key
    assert again.final == done.final


def test_sheets_that_do_not_belong_together(tmp_path: Path) -> None:
    only_sheet, agree = tmp_path / "one.csv", tmp_path / "agree.csv"
    only_sheet.write_text(sheet_text(FINE, FINE, FINE))
    with pytest.raises(UsageError, match="1 sheets for 2 annotators"):
        read_verdicts([only_sheet], CANDIDATES, 2)
    settled = (
        sheet_text(FINE, FINE, FINE).replace("change\n", "change,verdict_1\n", 1).replace(",good,,", ",good,,,bad")
    )
    agree.write_text(settled)
    with pytest.raises(InputError, match="all annotators agree on caption 'a#0' already: good"):
        read_verdicts([only_sheet, only_sheet.with_name("one.csv"), agree], CANDIDATES, 2)
    only_sheet.write_text(sheet_text(FINE, FINE, ("", "", "")))
    with pytest.raises(InputError, match="captions without a verdict"):
        read_verdicts([only_sheet, agree], CANDIDATES, 1)

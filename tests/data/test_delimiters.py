"""CSV files of spreadsheet programs: semicolons and tabs are found in the header, in every place that reads a table."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.core import CrosslensError
from crosslens.data import read_image_names, read_relevance, read_table
from crosslens.pipeline import read_columns
from crosslens.similarity import read_pairs
from crosslens.similarity.precomputed import _read_table
from crosslens.storage import DELIMITERS, csv_delimiter
from tests.commands import Call, call as call
from tests.tables import each_row

TEXTS = st.text(st.sampled_from('ab,;\t|"\n 1'), max_size=8).map(lambda text: f"x{text}")
"""Fields that hold every delimiter, quotes and line breaks; never a blank line or a number."""
TABLES = st.integers(2, 4).flatmap(lambda width: st.lists(st.lists(TEXTS, min_size=width, max_size=width), max_size=6))


def write(path: Path, rows: list[list[str]], delimiter: str, start: str = "") -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(start)
        csv.writer(file, delimiter=delimiter).writerows(rows)
    return path


@given(rows=TABLES, delimiter=st.sampled_from(list(DELIMITERS)), mark=st.sampled_from(["", "\ufeff"]))
def test_rows_written_with_any_delimiter_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], delimiter: str, mark: str
) -> None:
    header = ["image", "text", "style", "extra"][: len(rows[0]) if rows else 2]
    path = write(tmp_path_factory.mktemp("csv") / "table.csv", [header, *rows], delimiter, mark)
    frame = read_table(path).frame
    assert frame.columns == header
    assert [list(row) for row in frame.iter_rows()] == rows


@each_row(
    ("text", "delimiter"),
    [
        ("image,text\na,b\n", ","),  # comma
        ("image;text\na;b, c\n", ";"),  # semicolon
        ("image\ttext\na\tb; c, d\n", "\t"),  # tab
        ("image,text\na,b; c; d; e\na,b; c\n", ","),  # captions with semicolons
        ("image,text\na,b, c, d\n", ","),  # captions with commas that are not quoted
        ("image;text;style\na;b, c, d, e, f;g\n", ";"),  # captions with commas under semicolons
        ("image,text;note\na,b\nc,d; e\n", ","),  # a semicolon in a name
        ("image;text, in English\na;b\nc;d, e\n", ";"),  # a comma in a name
        ('"image;a";"text,b"\nc;d\n', ";"),  # quoted names
        ("image\na;b\n", ","),  # one column
        ('"image\nname";text\na;b\n', ";"),  # a quoted line break in the header
        ("image;text\na;" + "b," * 40_000 + "\nc;d\n", ";"),  # a long row
        ("", ","),  # nothing
    ],
)
def test_the_header_decides(text: str, delimiter: str) -> None:
    assert csv_delimiter(text) == delimiter


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_every_place_that_reads_a_table(tmp_path: Path, delimiter: str) -> None:
    def table(name: str, *rows: str) -> Path:
        return write(tmp_path / name, [row.split() for row in rows], delimiter)

    captions = table("captions.csv", "image caption_id text", "a.jpg c1 dog", "b.jpg c2 cat")
    images = table("images.csv", "image style", "b.jpg flat", "a.jpg round")
    dataset = cl.load_dataset(captions, images=images)
    assert sorted(dataset.texts) == ["cat", "dog"]
    assert list(dataset.image_ids) == ["b.jpg", "a.jpg"]
    assert sorted(cl.load_dataset("csv", captions=table("kaggle.csv", "image caption", "a.jpg dog")).texts) == ["dog"]
    assert read_relevance(table("judged.csv", "image caption grade", "a.jpg c1 1", "b.jpg c1 0"))
    groups = read_columns(table("groups.csv", "caption style", "c1 flat", "c2 round"))
    assert groups.table.columns == ["caption", "style"]
    assert [name.file for name in read_image_names(images)] == ["b.jpg", "a.jpg"]
    rows, columns = read_pairs(table("pairs.csv", "image caption", "a.jpg c1"), dataset)
    assert dataset.image_ids[int(rows[0])] == "a.jpg"
    assert dataset.caption_ids[int(columns[0])] == "c1"
    fraction = "0,5" if delimiter == ";" else "0.5"
    scores = table("scores.csv", "image caption score", f"a.jpg c1 {fraction}", "a.jpg c2 1")
    assert _read_table(scores)[2].tolist() == [[0.5, 1.0]]
    matrix = table("matrix.csv", "id c1 c2", f"a.jpg {fraction} 1", "b.jpg 0 2")
    assert np.array_equal(_read_table(matrix)[2], [[0.5, 1.0], [0.0, 2.0]])


def test_decimal_commas_are_numbers_beside_semicolons_only(tmp_path: Path) -> None:
    rows = [["image", "text", "score", "size"], ["a", "1,5 dogs", "0,25", "3"], ["b", "1,5", "1", ""]]
    frame = read_table(write(tmp_path / "a.csv", rows, ";")).frame
    assert frame.rows() == [("a", "1,5 dogs", "0.25", "3"), ("b", "1,5", "1", "")]
    frame = read_table(write(tmp_path / "b.csv", rows, ",")).frame
    assert frame["score"].to_list() == ["0,25", "1"]


def test_what_was_seen_and_the_option_are_named(tmp_path: Path, call: Call) -> None:
    colons = write(tmp_path / "colons.csv", [["image", "text"], ["a.jpg", "a dog"]], ":")
    outcome = call("data", "describe", str(colons))
    assert outcome.code == 3
    assert "(found: image:text)" in outcome.err
    assert "or pass -D delimiter=" in outcome.err
    assert call("data", "describe", str(colons), "-D", "delimiter=:").code == 0
    tildes = write(tmp_path / "tildes.csv", [["image", "text"], ["a.jpg", "a dog, a cat"]], "~")
    outcome = call("data", "describe", str(tildes))  # commas of a caption are not the columns' either
    assert "expected: 1 column: image~text" in outcome.err
    assert "or pass -D delimiter=" in outcome.err
    assert call("data", "describe", str(tildes), "-D", "delimiter=~").code == 0
    semicolons = write(tmp_path / "semicolons.csv", [["photo", "words"], ["a.jpg", "a dog"]], ";")
    outcome = call("data", "describe", str(semicolons))
    assert "(found: photo, words)" in outcome.err
    assert "-D text_column=" in outcome.err
    assert call("data", "describe", str(semicolons), "-D", "text_column=words", "-D", "image_column=photo").code == 0
    bad = tmp_path / "bad.csv"
    bad.write_text("image;text\na;b;c\nd;e\n")
    with pytest.raises(
        CrosslensError, match=r"(?s)2 columns separated by a semicolon.*quote texts that contain semicolons"
    ):
        cl.load_dataset(bad)
    with pytest.raises(CrosslensError, match="one character"):
        cl.load_dataset(colons, delimiter="::")
    with pytest.raises(CrosslensError, match=r"delimiter= is for \.csv files"):
        cl.load_dataset(write(tmp_path / "a.tsv", [["image", "text"], ["a", "b"]], "\t"), delimiter=";")


def test_headers_of_spreadsheets(tmp_path: Path) -> None:
    """Names with capitals, and Excel's own first line, which says what the delimiter is."""
    path = tmp_path / "excel.csv"
    path.write_text("sep=;\r\nImage;Caption\r\nb.jpg;a dog; a cat\r\n".replace("; a", ", a"))
    dataset = cl.load_dataset(path)
    assert (dataset.image_ids, dataset.texts) == (("b.jpg",), ("a dog, a cat",))
    path.write_text("IMAGE,image,Text\nx,b.jpg,a dog\n")
    assert cl.load_dataset(path).image_ids == ("b.jpg",), "the exact name comes first"
    path.write_text("sep=;\nImage;Caption\nb.jpg;c;d\n")
    with pytest.raises(CrosslensError, match=r"line 3: 3 columns"):
        cl.load_dataset(path)

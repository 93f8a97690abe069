"""``crosslens build clean``: files in, table of reasons, files out."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from crosslens.cli import main

pytest.importorskip("ftfy")
pytest.importorskip("py3langid")

TITLES = [
    "A child is feeding ducks in the park | Flickr",
    "IMG_1234.jpg",
    "A BLACK BEAR IS WALKING THROUGH THE CAMP",
    "a child is feeding ducks, in the park",
    "Собака бежит по песчаному пляжу у моря",
]
CLEAN = ["build", "clean", "--no-tagging"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("titles.txt").write_text("\n".join(TITLES) + "\n", encoding="utf-8")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*CLEAN, *arguments]) != 0
    return capsys.readouterr().err


def test_the_table_fits_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CLEAN, "titles.txt"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "5 captions: 3 kept, 2 of them repaired"
    assert any(line.split()[:4] == ["empty", "1", "20.0%", "IMG_1234.jpg"] for line in lines)
    assert any(line.startswith("language") for line in lines)
    assert all(len(line) <= 80 for line in lines)


def test_other_columns_stay(capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame({"image": range(5), "headline": TITLES}).write_parquet("pool.parquet")
    options = ["--column", "headline", "--languages", "any", "--near-duplicates", "0.8", "-o", "out.parquet", "--json"]
    assert main([*CLEAN, "pool.parquet", *options]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["captions"], summary["kept"], summary["output"]) == (5, 3, "out.parquet")
    assert summary["dropped"]["near_duplicate"] == {"captions": 1, "example": TITLES[3]}
    table = pl.read_parquet("out.parquet")
    assert table.columns == ["image", "text", "cleaned", "kept", "reason", "changes"]
    assert table["image"].to_list() == [0, 1, 2, 3, 4]
    assert table["text"].to_list() == TITLES
    assert table["changes"].to_list()[0] == ["site_names"]


def test_csv_and_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CLEAN, "titles.txt", "-o", "out.csv"]) == 0
    assert main([*CLEAN, "out.csv", "--column", "text", "-o", "out.txt"]) != 0  # its own columns are there already
    assert "the column 'cleaned' is one that cleaning writes" in capsys.readouterr().err
    assert not Path("out.txt").exists()
    assert main([*CLEAN, "titles.txt", "-o", "out.txt"]) == 0
    assert Path("out.txt").read_text(encoding="utf-8").splitlines() == [
        "A child is feeding ducks in the park",
        "A black bear is walking through the camp",
        "a child is feeding ducks, in the park",
    ]


def test_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    Path("table.csv").write_text("image,words\n1,a dog\n", encoding="utf-8")
    assert "--column image or words" in refused(capsys, "table.csv")
    assert "no column 'title'" in refused(capsys, "table.csv", "--column", "title")
    assert "has lines, not columns" in refused(capsys, "titles.txt", "--column", "title")
    assert "ends in '.xls'" in refused(capsys, "titles.txt", "-o", "out.xls")
    assert "no such file" in refused(capsys, "nothing.txt").lower()
    assert "english" in refused(capsys, "titles.txt", "--languages", "english")
    pl.DataFrame({"caption": ["a", None]}).write_parquet("null.parquet")
    assert "no text in the column 'caption'" in refused(capsys, "null.parquet")
    pl.DataFrame({"caption": [1, 2]}).write_parquet("numbers.parquet")
    assert "is of type Int64" in refused(capsys, "numbers.parquet")
    Path("there.csv").write_text("x", encoding="utf-8")
    assert "--overwrite" in refused(capsys, "titles.txt", "-o", "there.csv")

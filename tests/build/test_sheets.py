"""Sheets for people: no text of theirs runs as a formula, and every text comes back as it was."""

from __future__ import annotations

import csv
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from crosslens.build.folder import read_columns
from crosslens.storage import for_spreadsheets

FORMULAS = (
    "=1+1",
    "+49 30",
    "-5 degrees",
    "@home",
    "\tindented",
    "'=1+1",
    "''@x",
    "'quoted' words",
    "'",
    "a=b",
    '"=1"',
)
TEXTS = st.text(st.sampled_from("'=+-@\t\" ,\nab"), min_size=1, max_size=6).filter(str.strip)


@given(texts=st.lists(TEXTS, min_size=1, max_size=5))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_text_comes_back(texts: list[str], tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    table = pl.DataFrame({"caption": [f"-{n} left" for n in range(len(texts))], "text": texts})
    for_spreadsheets(table).write_csv(sheet)
    columns, _ = read_columns(sheet, ("caption", "text"), ("caption",), "sheet.csv")
    assert columns == table.to_dict(as_series=False)
    with sheet.open(newline="") as file:
        assert not any(cell.startswith(tuple("=+-@\t\r")) for row in csv.reader(file) for cell in row)


@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".csv"])
def test_a_sheet_saved_in_another_form(text: str, suffix: str, tmp_path: Path) -> None:
    """Programs copy the apostrophe into what they save."""
    for_spreadsheets(pl.DataFrame({"text": [text]})).write_csv(tmp_path / "sheet.csv")
    table, saved = pl.read_csv(tmp_path / "sheet.csv", infer_schema=False), tmp_path / f"saved{suffix}"
    {".jsonl": table.write_ndjson, ".parquet": table.write_parquet, ".csv": table.write_csv}[suffix](saved)  # type: ignore[operator]
    assert read_columns(saved, ("text",), (), "sheet.csv")[0] == {"text": [text]}


def test_a_sheet_without_apostrophes(tmp_path: Path) -> None:
    """A program that drops them, or a sheet of an earlier version, does no harm."""
    (tmp_path / "sheet.csv").write_text("text\n=1+1\n")
    assert read_columns(tmp_path / "sheet.csv", ("text",), (), "sheet.csv")[0] == {"text": ["=1+1"]}

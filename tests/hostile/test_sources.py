"""Hostile files where rankings, qrels, judgements, recipes, similarities or a dataset of any format are expected."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from crosslens.analyze import apply_review, read_difficulty, read_thresholds
from crosslens.build import DecisionLog
from crosslens.core import CrosslensError, Dataset, read_header
from crosslens.data import load_dataset, read_judgements, read_qrels, read_run, read_table
from crosslens.encode import load_encoder
from crosslens.pipeline import Recipe, read_columns
from crosslens.similarity import load_similarity
from tests.hostile.conftest import Refused, Refuses, refused_path
from tests.hostile.inputs import PATHS, SPECIAL, TEXTS

DATASET = Dataset.of({"a": ["A dog."], "b": ["A cat."]})
READ: dict[str, tuple[str, Callable[[Path], object]]] = {
    "recipe": ("r.toml", Recipe.read),
    "run": ("r.run", read_run),
    "JSON run": ("r.json", read_run),
    "JSON-lines run": ("r.jsonl", read_run),
    "qrels": ("q.qrels", read_qrels),
    "JSON qrels": ("q.json", read_qrels),
    "JSON-lines qrels": ("q.jsonl", read_qrels),
    "judgements": ("j.csv", lambda path: read_judgements(path, DATASET)),
    "Flickr8k judgements": ("j.txt", lambda path: read_judgements(path, DATASET)),
    "CSV table": ("t.csv", read_table),
    "TSV table": ("t.tsv", read_table),
    "Parquet table": ("t.parquet", read_table),
    "JSON dataset": ("d.json", load_dataset),
    "CSV dataset": ("d.csv", load_dataset),
    "matrix of similarity": ("m.csv", load_similarity),
    "weights of semantic": ("w.json", lambda path: load_similarity(f"semantic:{path}")),
    "ONNX description": ("o.json", lambda path: load_encoder(f"onnx:{path}")),
    "stored header": ("h.json", lambda path: read_header(path, "run")),
    "review": ("v.csv", lambda path: apply_review(DATASET, path)),
    "JSON-lines review": ("v.jsonl", lambda path: apply_review(DATASET, path)),
    "decision log": ("d.jsonl", DecisionLog.load),
    "levels of difficulty": ("l.csv", read_difficulty),
    "Parquet levels": ("l.parquet", read_difficulty),
    "thresholds": ("thresholds.json", read_thresholds),
    "columns": ("c.csv", read_columns),
}
"""Kind of file → its name, and what reads it."""
TABLES = ("CSV table", "TSV table")


@pytest.mark.parametrize("content", TEXTS)
@pytest.mark.parametrize("kind", READ)
def test_content(kind: str, content: str, tmp_path: Path, refuses: Refuses) -> None:
    name, read = READ[kind]
    (tmp_path / name).write_bytes(TEXTS[content])
    if kind in TABLES:  # some are tables with a strange header: enough that nothing worse happens
        with suppress(CrosslensError):
            read(tmp_path / name)
    else:
        assert name in refuses(lambda: read(tmp_path / name))


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("kind", READ)
def test_special_file(kind: str, special: str, tmp_path: Path, refuses: Refuses) -> None:
    name, read = READ[kind]
    SPECIAL[special](tmp_path / name)
    refuses(lambda: read(tmp_path / name))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", READ)
def test_path(kind: str, path: str) -> None:
    refused_path(lambda: READ[kind][1](Path(PATHS[path])))


@pytest.mark.parametrize(
    "dataset", ["\ud800", "a\x00b", "~nobody/x.json", "file:///etc/passwd", "-D", "x" * 100_000, "'", " "]
)
def test_dataset_on_the_command_line(dataset: str, refused: Refused) -> None:
    refused("data", "describe", dataset)


def test_parquet_types(tmp_path: Path, refuses: Refuses) -> None:
    for column in ([1.5, 2.5], [True, False], [None, None], [b"x", b"y"], [["a"], ["b"]], [{"a": 1}, {"a": 2}]):
        pl.DataFrame({"image": ["a", "b"], "text": column}).write_parquet(tmp_path / "c.parquet")
        refuses(lambda: load_dataset(tmp_path / "c.parquet"))

"""Hostile files where rankings, qrels, judgements, recipes, similarities or a dataset of any format are expected."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.analyze import apply_review, read_difficulty, read_thresholds
from crosslens.build import DecisionLog
from crosslens.core import CrosslensError
from crosslens.data import load_dataset, read_judgements, read_qrels, read_run, read_table
from crosslens.encode import load_encoder
from crosslens.pipeline import Recipe, read_columns
from crosslens.similarity import load_similarity
from crosslens.storage import hold_output, read_header, write_text
from crosslens.values import Dataset
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


NO_PATHS = ("a\0b", "a\0b.jsonl", "a\ud800b")
CALLS: dict[str, Callable[[str | Path], object]] = {
    "load_dataset": cl.load_dataset,
    "Dataset.load": cl.Dataset.load,
    "Dataset.save": DATASET.save,
    "Run.load": cl.Run.load,
    "Run.save": lambda path: RUN.save(path),
    "page": lambda path: RUN.save(f"{path}.html"),
    "chart": lambda path: RUN.save(f"{path}.svg"),
    "Embeddings.load": cl.Embeddings.load,
    "Embeddings.save": lambda path: cl.Embeddings(("a",), np.ones((1, 2), np.float32)).save(path),
    "evaluate": lambda path: cl.evaluate(DATASET, scores=np.eye(2), metrics="Hit@1", resamples=0, output=path),
    "audit's folder": lambda path: cl.audit(DATASET, scores="scores.npy", output=path),
    "compare": lambda path: cl.compare([path, RUN]),
    "write_report": lambda path: cl.write_report(RUN, f"{path}.html"),
    "report on": lambda path: cl.write_report(path, "page.html"),
    "write_dataset": lambda path: cl.write_dataset(DATASET, f"{path}.csv", to="plain"),
    "write_run": lambda path: cl.write_run(RUN.rankings["t2i"], f"{path}.run"),
    "read_run": cl.read_run,
    "write_qrels": lambda path: cl.write_qrels(cl.Relevance.from_pairs(["q"], ["a"]), f"{path}.qrels"),
    "read_qrels": cl.read_qrels,
    "read_judgements": lambda path: cl.read_judgements(path, DATASET),
    "read_difficulty": cl.analyze.read_difficulty,
    "read_results": cl.read_results,
    "relevance_matrix": lambda path: cl.relevance_matrix(DATASET, "bleu", output=f"{path}.npy"),
    "load_plugin": cl.load_plugin,
    "robustness": lambda path: cl.robustness(DATASET, model="colour", output=path),
    "write_text": lambda path: write_text(path, "text"),
    "hold_output": lambda path: hold_output(path).__enter__(),
}
"""What takes a path of the user."""
RUN = cl.evaluate(DATASET, scores=np.eye(2), metrics="Hit@1", resamples=0)


@pytest.mark.parametrize("call", CALLS)
def test_what_no_path_can_be_is_refused(
    call: str, tmp_path: Path, refuses: Refuses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in NO_PATHS:
        for given in (path, Path(path)):
            refuses(lambda: CALLS[call](given))  # noqa: B023


def test_a_nul_in_an_id_is_refused(tmp_path: Path) -> None:
    """Of whatever names something: programs written in C would cut it off there."""
    files = {
        "r.run": "q Q0 a\0b 1 0.5 x\n",
        "q.run": "q\0 Q0 a 1 0.5 x\n",
        "r.json": '{"q": {"a\\u0000b": 0.5}}',
        "r.jsonl": '{"query": "q\\u0000", "items": ["a"], "scores": [0.5]}\n',
        "q.qrels": "q 0 a\0b 1\n",
        "q.json": '{"q": {"a\\u0000b": 1}}',
        "d.csv": "image,text\na\0b,A dog.\n",
        "d.jsonl": '{"image": "a\\u0000b", "text": "A dog."}\n',
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
        read = {"r": cl.read_run, "q": cl.read_run if name == "q.run" else cl.read_qrels, "d": cl.load_dataset}[name[0]]
        with pytest.raises(CrosslensError, match="has a NUL") as caught:
            read(tmp_path / name)
        assert name in str(caught.value)
    with pytest.raises(CrosslensError, match="the image id 'a\\\\x00' has a NUL"):
        cl.Dataset.of({"a\0": ["A dog."]})
    with pytest.raises(CrosslensError, match="has a NUL"):
        cl.Embeddings(("a\0",), np.ones((1, 2), np.float32))


MEMBERS = ("named pipe", "socket", "endless device", "link to a pipe")


@pytest.mark.parametrize("special", MEMBERS)
def test_a_member_of_a_folder_that_is_no_file(special: str, tmp_path: Path) -> None:
    """Every file of every folder that is read, in turn."""
    dataset = cl.Dataset.of({"a": ["A dog."], "b": ["A cat."]})
    RUN.save(tmp_path / "run")
    cl.write_dataset(dataset, tmp_path / "coco.json", to="coco")
    cl.write_dataset(dataset, tmp_path / "genome", to="visual_genome")
    dataset.save(tmp_path / "data")
    cl.Embeddings(("a", "b"), np.eye(2, dtype=np.float32)).save(tmp_path / "vectors")
    (tmp_path / "shards").mkdir()
    shard(tmp_path / "shards" / "0.tar", {"a.txt": tarfile.REGTYPE})
    (tmp_path / "pictures").mkdir()
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / "pictures" / name).write_bytes(b"picture")
    readers: dict[str, Callable[[Path], object]] = {
        "run": lambda path: [ranking.top_items for ranking in cl.Run.load(path).rankings.values()],
        "genome": lambda path: load_dataset("visual_genome", folder=path),
        "data": cl.Dataset.load,
        "vectors": cl.Embeddings.load,
        "shards": lambda path: load_dataset("webdataset", shards=path),
        "pictures": lambda path: load_dataset(tmp_path / "coco.json", extra_images=path),
    }
    for folder, read in readers.items():
        read(tmp_path / folder)
        for file in sorted(path for path in (tmp_path / folder).rglob("*") if path.is_file()):
            content = file.read_bytes()
            file.unlink()
            SPECIAL[special](file)
            with pytest.raises(CrosslensError) as caught:
                read(tmp_path / folder)
            assert file.name in str(caught.value) or folder in str(caught.value)
            file.unlink()
            file.with_name("pipe").unlink(missing_ok=True)
            file.write_bytes(content)


def shard(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, kind in {"a.jpg": tarfile.REGTYPE, **members}.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "a.jpg" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            member.size = 6 if kind == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(b"A dog."))


def test_a_member_of_a_tar_file_that_is_no_file(tmp_path: Path, refuses: Refuses) -> None:
    shard(tmp_path / "s.tar", {"a.txt": tarfile.REGTYPE, "folder": tarfile.DIRTYPE})
    assert load_dataset("webdataset", shards=tmp_path / "s.tar").texts == ("A dog.",)
    kinds = {"named pipe": tarfile.FIFOTYPE, "device": tarfile.CHRTYPE, "link": tarfile.SYMTYPE}
    for kind, code in kinds.items():
        shard(tmp_path / "s.tar", {"a.txt": code})
        message = refuses(lambda: load_dataset("webdataset", shards=tmp_path / "s.tar"))
        assert f"the member is a {kind}" in message
        assert "a.txt" in message


@pytest.mark.parametrize(
    "dataset", ["\ud800", "a\x00b", "~nobody/x.json", "file:///etc/passwd", "-D", "x" * 100_000, "'", " "]
)
def test_dataset_on_the_command_line(dataset: str, refused: Refused) -> None:
    refused("data", "describe", dataset)


def test_parquet_types(tmp_path: Path, refuses: Refuses) -> None:
    for column in ([1.5, 2.5], [True, False], [None, None], [b"x", b"y"], [["a"], ["b"]], [{"a": 1}, {"a": 2}]):
        pl.DataFrame({"image": ["a", "b"], "text": column}).write_parquet(tmp_path / "c.parquet")
        refuses(lambda: load_dataset(tmp_path / "c.parquet"))

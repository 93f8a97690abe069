"""Commands with another engine: the same JSON, the same folders, byte by byte."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.cli.stored_runs import recorded_command
from crosslens.engine import ray_engine
from crosslens.rank import parts
from tests.commands import Call, call as call
from tests.engine.stand_in import StandInEngine

QUICK = ("--permutations", "20", "--resamples", "20")


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> list[StandInEngine]:
    """``--engine ray`` is the stand-in; those that were started."""
    started: list[StandInEngine] = []

    def start(address: str | None) -> StandInEngine:
        started.append(StandInEngine())
        return started[-1]

    monkeypatch.setattr(ray_engine, "RayEngine", start)
    monkeypatch.setattr(parts, "_FEWEST_QUERIES", 1)
    monkeypatch.setattr(parts, "TILE", 4)
    return started


@pytest.fixture
def data(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    captions = {f"i{number}": [f"{number} red dogs", f"a cat on {number} mats", "a bird"] for number in range(20)}
    from crosslens.data import write_dataset

    write_dataset(cl.Dataset.of(captions), tmp_path / "captions.jsonl")
    images = random.standard_normal((20, 8)).astype(np.float32)
    np.save(tmp_path / "img.npy", images)
    np.save(tmp_path / "cap.npy", np.repeat(images, 3, 0) + random.standard_normal((60, 8)).astype(np.float32))
    return tmp_path


@contextmanager
def within(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    yield folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def both(call: Call, data: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> list[Any]:
    """What the command prints on either engine, each in a folder of its own; what it wrote is compared."""
    printed, written = [], []
    for name, engine in (("local", ()), ("ray", ("--engine", "ray"))):
        with within(data / name, monkeypatch) as folder:
            monkeypatch.setattr(sys, "argv", ["crosslens", *words, *engine])
            monkeypatch.setenv("CROSSLENS_CACHE", str(data / f"cache of {name}"))  # neither finds what is cached
            outcome = call(*words, *engine)
            assert outcome.code == 0, outcome.err
            printed.append(outcome.json)
            written.append(contents(folder))
    assert printed[0] == printed[1]
    assert written[0] == written[1]
    return printed


VECTORS = ("--dataset", "../captions.jsonl", "--image-embeddings", "../img.npy", "--caption-embeddings", "../cap.npy")


def test_evaluate(call: Call, data: Path, ray: list[StandInEngine], monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("evaluate", *VECTORS, "--metrics", "Hit@1 MRR NCS[cider]@5", "-o", "run", "--json")
    local, remote = both(call, data, monkeypatch, *words)
    assert local["metrics"] == remote["metrics"]
    assert ray[0].attempts["rank_part"]
    assert ray[0].attempts["_block"]


@pytest.mark.slow  # evaluate above, and test_parts
def test_folds(call: Call, data: Path, ray: list[StandInEngine], monkeypatch: pytest.MonkeyPatch) -> None:
    both(call, data, monkeypatch, "evaluate", *VECTORS, "--folds", "4", "--depth", "3", "-o", "run", "--json")


def test_similarity(call: Call, data: Path, ray: list[StandInEngine], monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("similarity", "--dataset", "../captions.jsonl", "--phi", "cider", "-o", "phi.npy", "--json")
    both(call, data, monkeypatch, *words)
    assert ray[0].results


@pytest.mark.slow
def test_robustness(call: Call, data: Path, ray: list[StandInEngine], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("char_swap", "antonym"):
        (data / "vectors").mkdir(exist_ok=True)
        noise = np.random.default_rng(len(name)).standard_normal((60, 8))
        np.save(data / "vectors" / f"{name}.npy", (np.load(data / "cap.npy") + noise).astype(np.float32))
    words = ("robustness", *VECTORS, "--variants", "../vectors", *QUICK, "-o", "study", "--json")
    both(call, data, monkeypatch, *words)
    assert ray[0].attempts["rank_part"]
    with within(data / "ray", monkeypatch):
        before = contents(data / "ray")
        assert call(*words, "--engine", "ray").code == 0
        assert not ray[1].results, "all of it is there"
        assert contents(data / "ray") == before


def test_an_interrupted_study_resumes(
    call: Call, data: Path, ray: list[StandInEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    (data / "vectors").mkdir()
    for name in ("char_swap", "antonym", "synonym"):
        np.save(data / "vectors" / f"{name}.npy", np.load(data / "cap.npy"))
    words = ("robustness", *VECTORS, "--variants", "../vectors", *QUICK, "-o", "study", "--json")
    with within(data / "again", monkeypatch):
        with pytest.raises(KeyboardInterrupt), cl.use_engine(StandInEngine(stops_after=20)):
            _study(data)
        assert call(*words, "--engine", "ray").code == 0
    assert ray[-1].results == 16, "each of four evaluations has eight parts, and two were finished"


def _study(data: Path) -> None:
    caption_vectors = np.load(data / "cap.npy")
    names = ("antonym", "char_swap", "synonym")
    cl.robustness(
        cl.load_dataset(data / "captions.jsonl"), images=np.load(data / "img.npy"), captions=caption_vectors,
        variants=dict.fromkeys(names, caption_vectors), permutations=20, resamples=20, output=data / "again" / "study",
    )  # fmt: skip


@pytest.mark.slow  # test_parts has the same work without the commands
def test_curve_and_neighbours(
    call: Call, data: Path, ray: list[StandInEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("evaluate", "--dataset", data / "captions.jsonl", "--image-embeddings", data / "img.npy",
                "--caption-embeddings", data / "cap.npy", "-o", data / "run").code == 0  # fmt: skip
    both(call, data, monkeypatch, "curve", "../run", "--m", "1..5", "--resamples", "20", "--json")
    both(call, data, monkeypatch, "analyze", "polysemy", *VECTORS, "--sizes", "1,5", "--no-cider", "--json")
    both(call, data, monkeypatch, "analyze", "discriminability", *VECTORS, "--k", "5", "--temperature", "0.1", "--json")
    assert ray[0].attempts["_block"]
    assert ray[1].attempts["_nearest"]
    assert ray[2].attempts["_nearest"]


@pytest.mark.slow  # test_encoding has the same work without the command
def test_encode(call: Call, tmp_path: Path, ray: list[StandInEngine], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("PIL")
    from crosslens.synth import write_scenes

    write_scenes(tmp_path / "scenes", 5, seed=7, version="v0")
    words = ("encode", "--dataset", "../scenes", "--model", "tiny", "--cache", "cache", "-o", "vectors", "--json")
    both(call, tmp_path, monkeypatch, *words)
    assert ray[0].attempts["encode_batches"]
    assert ray[0].attempts["read_facts_of"]


def test_the_engine_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["crosslens", "evaluate", "--engine", "ray", "-o", "run", "--ray-address=10.0.0.1:6379", "--json"]
    monkeypatch.setattr(sys, "argv", words)
    assert recorded_command() == ["crosslens", "evaluate", "-o", "run", "--json"]


def test_an_address_without_the_engine(call: Call, data: Path) -> None:
    outcome = call("similarity", "--dataset", data / "captions.jsonl", "--ray-address", "10.0.0.1:6379")
    assert outcome.code == 2
    assert "--ray-address requires --engine ray" in outcome.err

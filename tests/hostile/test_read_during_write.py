"""Readers while another process replaces what they read: each sees the old output or the new one, whole."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import crosslens as cl
from crosslens.audits import AuditFolder, load_audit
from crosslens.cli import main
from crosslens.core import InputError
from crosslens.data import write_dataset
from crosslens.encode import EncodeOptions
from crosslens.pipeline import InputOptions, Recipe, Robustness, load_inputs
from crosslens.pipeline.recipe.inputs import _from_embeddings
from crosslens.similarity import PrecomputedSimilarity
from crosslens.storage import FORMAT_VERSION, HEADER_FILE, being_written, output as reading, write_header
from crosslens.storage.output import LOCK_FILE
from crosslens.train.stored.model_folder import KIND, WEIGHTS, read_model
from crosslens.values import Dataset, Embeddings, Run, run as stored_run
from tests.hostile.test_races import held_by_another
from tests.pipeline.robustness_study.letters import Letters, captions, text_study
from tests.tables import rest_slow

_WRITER = """
import itertools, shutil, sys, time
from pathlib import Path
from crosslens.storage import output as workspace

at_once, target, *sources = sys.argv[1:]
if at_once == "in two steps":  # as on a file system that cannot exchange two folders
    workspace._exchange = lambda first, second: False
for number, source in enumerate(itertools.cycle(sources)):
    start = time.monotonic()
    with workspace.workspace(target) as work:
        shutil.copytree(source, work.new)
        work.publish()
    # Where everything takes longer than usual, so does a reader, which must come to an end between two writes.
    time.sleep(max(0.1, 10 * (time.monotonic() - start)))
    Path(f"{target}.count").write_text(str(number))
"""
_MATRIX_WRITER = """
import itertools, sys
from pathlib import Path
import crosslens as cl

dataset, target = cl.Dataset.load(sys.argv[2]), sys.argv[1]
for number, phi in enumerate(itertools.cycle(["bleu", "rouge-l"])):
    cl.relevance_matrix(dataset, phi, output=target, overwrite=True)
    Path(f"{target}.count").write_text(str(number))
"""
TEXTS = {f"{n}": [f"a cat and {n} dogs", f"{n} dogs beside a cat"] for n in range(1, 31)}
MORE = TEXTS | {"31": ["a horse"]}


@contextmanager
def written(program: str, target: Path, *words: str | Path) -> Iterator[Callable[[], int]]:
    """Another process that writes the target without end; how often it has done so by now."""
    process = subprocess.Popen([sys.executable, "-c", program, *map(str, words)])
    counter = target.with_name(f"{target.name}.count")

    def count() -> int:
        assert process.poll() is None, "the writer goes on"
        return int(counter.read_text() or 0) if counter.exists() else 0

    try:
        while count() < 2:
            time.sleep(0.01)
        yield count
    finally:
        process.kill()
        process.wait()


def copies(folder: Path, target: Path, at_once: bool = True) -> tuple[str | Path, ...]:
    return "in one step" if at_once else "in two steps", target, folder / "a", folder / "b"


def read_again_and_again(read: Callable[[], str], expected: set[str], times: int, count: Callable[[], int]) -> None:
    before, readings = count(), []
    while len(readings) < times or count() - before < 5 or (set(readings) < expected and len(readings) < 20 * times):
        readings.append(read())
        if len(readings) > times:  # often enough: the rest is for the writer to get on
            time.sleep(0.05)
    assert set(readings) == expected, "old or new, and both of them"


def both_runs(folder: Path) -> set[str]:
    dataset = cl.Dataset.of(TEXTS)
    dataset.save(folder / "data", overwrite=True)
    for seed, name in enumerate("ab"):
        scores = np.random.default_rng(seed).standard_normal((30, 60)).astype(np.float32)
        np.save(folder / f"{name}.npy", scores)
        recipe = f'version = 1\nname = "{name}"\n[dataset]\nsource = "../data"\n'
        run = cl.evaluate(dataset, scores=scores, metrics=["Hit@1", "MRR"], resamples=5, name=name)
        Run(run.name, run.values, run.rankings, run.columns, run.provenance, recipe).save(folder / name)
    return {run_content(folder / name) for name in "ab"}


def run_content(folder: Path) -> str:
    run = Run.load(folder)
    rankings = [run.rankings[direction].fingerprint for direction in sorted(run.rankings)]
    return json.dumps([run.name, run.fingerprint, *rankings, run.recipe])


@pytest.mark.parametrize("times", [10, pytest.param(600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("at_once", rest_slow([False, True]))  # True: as the other outputs below
def test_no_read_of_a_run_fails(tmp_path: Path, at_once: bool, times: int) -> None:
    expected, target = both_runs(tmp_path), tmp_path / "out"
    with written(_WRITER, target, *copies(tmp_path, target, at_once)) as count:
        read_again_and_again(lambda: run_content(target), expected, times, count)


@pytest.mark.parametrize("times", [4, pytest.param(300, marks=pytest.mark.slow)])
def test_commands_and_pages_read_whole_runs(
    tmp_path: Path, times: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    testclient = pytest.importorskip("fastapi.testclient", reason="pip install 'crosslens[web]'")
    from crosslens.web import WebSettings, create_app, library

    both_runs(tmp_path)
    target = tmp_path / "served" / "out"
    target.parent.mkdir()
    monkeypatch.setattr(library, "_SECONDS", -1.0)  # each page looks at the folder
    app = create_app(WebSettings(target.parent, cache=tmp_path / "cache"))
    client = testclient.TestClient(app, base_url="http://127.0.0.1:8000")

    def listed() -> str:
        row = next(row for row in client.get("/api/runs").json()["runs"] if row["id"] == "out")
        assert not row["problem"], row
        return str(row["name"])

    def page_of(path: str) -> str:
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        return ""

    def command(*words: str | Path) -> str:
        assert main(list(map(str, words))) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    with written(_WRITER, target, *copies(tmp_path, target)) as count:
        read_again_and_again(listed, {"a", "b"}, times, count)
        read_again_and_again(lambda: page_of("/api/runs/out/query?id=3%230&direction=t2i"), {""}, times, count)
        read_again_and_again(lambda: page_of("/runs/out"), {""}, times, count)
        for _ in range(1 + times // 10):
            command("compare", tmp_path / "a", target, "--json")
            command("report", target, "-o", tmp_path / "page.html", "--overwrite")


def both_outputs(folder: Path, kind: str) -> Callable[[Path], str]:
    """Two outputs of a kind, in the folders ``a`` and ``b``, and what reads one of them."""
    datasets, rng = {"a": cl.Dataset.of(TEXTS, name="a"), "b": cl.Dataset.of(MORE, name="b")}, np.random.default_rng(0)
    datasets["a"].save(folder / "data")
    for name, dataset in datasets.items():
        if kind == "dataset":
            dataset.save(folder / name)
        elif kind == "Visual Genome":
            write_dataset(dataset, folder / name, to="visual_genome")
        elif kind == "study":
            text_study(captions(4), Letters(), "char_swap", output=folder / name, cache=False, seed=ord(name))
        elif kind == "trained model":
            numpy_save = pytest.importorskip("safetensors.numpy", reason="pip install 'crosslens[train]'").save
            (folder / name).mkdir()
            (folder / name / WEIGHTS).write_bytes(numpy_save({"weights": np.full(3, ord(name), np.float32)}))
            header = {"format": f"crosslens/{KIND}", "version": FORMAT_VERSION, "name": name}
            write_header(folder / name / HEADER_FILE, header, (WEIGHTS,))
        else:
            for side, ids in (("images", datasets["a"].image_ids), ("captions", datasets["a"].caption_ids)):
                Embeddings(ids, rng.standard_normal((len(ids), 4)).astype(np.float32)).save(folder / name / side)

    def read_sides(target: Path) -> str:
        inputs = InputOptions(image_embeddings=str(target / "images"), caption_embeddings=str(target / "captions"))
        loaded = load_inputs(Recipe(str(folder / "data"), inputs=inputs), EncodeOptions())
        assert loaded.images is not None
        assert loaded.captions is not None
        return f"{loaded.images.fingerprint} {loaded.captions.fingerprint}"

    def read_model_of(target: Path) -> str:
        stored = read_model(target)
        return f"{stored.card['name']} {stored.weights['weights'].tolist()}"

    def read_study(target: Path) -> str:
        study = Robustness.load(target)
        return json.dumps([str(study.about), *(str(table.to_dicts()) for table in study.tables.values())])

    readers: dict[str, Callable[[Path], str]] = {
        "dataset": lambda target: cl.load_dataset(target).fingerprint,
        "Visual Genome": lambda target: cl.load_dataset("visual_genome", folder=target).fingerprint,
        "embeddings": lambda target: Embeddings.load(target / "images").fingerprint,
        "both sides": read_sides,
        "relevance encoder": lambda target: " ".join(side.fingerprint for side in _from_embeddings(target)),
        "study": read_study,
        "trained model": read_model_of,
    }
    return readers[kind]


KINDS = (
    "dataset",
    "Visual Genome",
    pytest.param("embeddings", marks=pytest.mark.slow),  # as both sides
    "both sides",
    pytest.param("relevance encoder", marks=pytest.mark.slow),
    pytest.param("study", marks=pytest.mark.slow),
    pytest.param("trained model", marks=pytest.mark.slow),
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("times", "at_once"), [(10, True), *rest_slow([(30, True), (30, False)], fast=0)])
def test_no_read_of_another_output_fails(tmp_path: Path, kind: str, times: int, at_once: bool) -> None:
    target, read = tmp_path / "out", both_outputs(tmp_path, kind)
    expected = {read(tmp_path / name) for name in "ab"}
    assert len(expected) == 2
    with written(_WRITER, target, *copies(tmp_path, target, at_once)) as count:
        read_again_and_again(lambda: read(target), expected, times, count)


@pytest.mark.slow
def test_a_matrix_is_read_with_its_description(tmp_path: Path) -> None:
    """A writer replaces the matrix, then what describes it: without, its rows would be taken for the dataset's."""
    cl.Dataset.of(TEXTS).save(tmp_path / "data")
    target = tmp_path / "out.npy"

    def read() -> str:
        matrix = PrecomputedSimilarity(target)
        assert matrix.description is not None
        return f"{matrix.description.phi} {float(np.asarray(matrix.values).sum()):.3f}"

    expected = set()
    for phi in ("bleu", "rouge-l"):
        cl.relevance_matrix(Dataset.load(tmp_path / "data"), phi, output=target, overwrite=True)
        expected.add(read())
    with written(_MATRIX_WRITER, target, target, tmp_path / "data") as count:
        read_again_and_again(read, expected, 30, count)


def test_large_rankings_of_a_replaced_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read when they are used: those of another run are never taken for its own."""
    both_runs(tmp_path)
    monkeypatch.setattr(stored_run, "_SMALL", 0)
    target = Run.load(tmp_path / "a").save(tmp_path / "out")
    opened = Run.load(target)
    Run.load(tmp_path / "b").save(target, overwrite=True)
    with pytest.raises(InputError, match="the run was replaced or removed after it was opened") as caught:
        opened.rankings["t2i"]
    assert caught.value.code == "replaced"
    assert Run.load(target).rankings["t2i"].fingerprint == Run.load(tmp_path / "b").rankings["t2i"].fingerprint


def test_who_cannot_wait_is_told_of_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reading, "_PATIENCE", 0.1)
    expected, target = both_runs(tmp_path), tmp_path / "out"
    with held_by_another(target):
        assert main(["report", str(target), "-o", str(tmp_path / "page.html")]) == 3
        with pytest.raises(InputError, match=f"is being written by process {os.getpid()}, since"):
            Run.load(target)
        Run.load(tmp_path / "a").save(tmp_path / "damaged")
        (tmp_path / "damaged" / "queries.parquet").write_bytes(b"")
        with pytest.raises(InputError, match="the file has changed since it was written"):
            Run.load(tmp_path / "damaged")
    message = capsys.readouterr().err
    assert f"out is being written by process {os.getpid()}" in message
    assert "fix: read it again when that is done" in message
    with pytest.raises(InputError, match=r"no run\.json here"):
        Run.load(target)
    Run.load(tmp_path / "a").save(target)
    with held_by_another(target):
        assert run_content(target) in expected, "the old one, while the new one is computed"


def test_half_an_audit_is_not_taken_for_a_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_PATIENCE", 0.1)
    target = tmp_path / "out"
    folder = AuditFolder.open(target, "key", {"runs": {}}, overwrite=False)
    assert load_audit(target).results == (), "an interrupted one is read as far as it goes"
    with held_by_another(target), pytest.raises(InputError, match=f"is being written by process {os.getpid()}"):
        load_audit(target)
    folder.conclude((), ())
    with held_by_another(target):
        assert load_audit(target).findings == (), "while its report is written"


def test_a_killed_writer_is_no_writer(tmp_path: Path) -> None:
    """Its lock file stays: whoever reads what is damaged is told so at once."""
    both_runs(tmp_path)
    target = tmp_path / "out"
    with written(_WRITER, target, *copies(tmp_path, target)):
        pass
    lock = tmp_path / ".out.crosslens-partial" / LOCK_FILE
    lock.parent.mkdir(exist_ok=True)
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    lock.write_text(json.dumps({"process": int(dead.stdout), "computer": platform.node(), "since": "now"}))
    Run.load(tmp_path / "a").save(tmp_path / "whole")
    assert being_written(target) is None
    start = time.monotonic()
    with pytest.raises(InputError, match=r"no run\.json here"):
        Run.load(tmp_path / "out" / "nothing")
    assert time.monotonic() - start < 2

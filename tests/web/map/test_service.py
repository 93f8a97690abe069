"""Maps are computed once, kept by content, and a process killed in the middle leaves nothing broken."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import ConflictError, InputError
from crosslens.engine import Progress
from crosslens.pipeline import InputOptions, Recipe, run_recipe
from crosslens.values import Run
from crosslens.web.background import BUG, MOST_JOBS, JobProgress, Jobs, carry_out
from crosslens.web.map.maps import ABSENT, IMPOSSIBLE, READY, Maps, MapStore, map_key
from tests.web.conftest import toys
from tests.web.serving import write_vector_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vectors")
    toys().save(folder / "toys")
    write_vector_run(folder, "first", folder / "toys")
    return folder


def finished(maps: Maps, run: Run, method: str = "pca") -> str:
    state = maps.start("first", run, method)
    while state.state in ("waiting", "running"):
        time.sleep(0.01)
        state = maps.state("first", run, method)
    return state.state


def test_a_map_is_computed_once_and_survives_a_restart(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run.load(folder / "first")
    maps = Maps(tmp_path)
    assert maps.state("first", run, "pca").state == ABSENT
    with pytest.raises(InputError, match="not been computed"):
        maps.drawn("first", run, "pca")
    assert finished(maps, run) == READY
    drawn = maps.drawn("first", run, "pca")
    assert drawn.image_ids == toys().image_ids
    assert drawn.caption_ids == toys().caption_ids
    monkeypatch.setattr("crosslens.web.map.maps.vectors_of_run", pytest.fail)
    again = Maps(tmp_path)
    assert again.state("first", run, "pca").state == READY
    np.testing.assert_array_equal(again.drawn("other id", run, "pca").points, drawn.points)
    assert again.drawn("first", run, "pca").regions == drawn.regions


def test_the_usual_method_depends_on_the_number_of_points(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, maps = Run.load(folder / "first"), Maps(tmp_path)
    points = len(toys().image_ids) + len(toys().caption_ids)
    for most, installed, usual in ((points, True, "umap"), (points - 1, True, "pca"), (points, False, "pca")):
        monkeypatch.setattr("crosslens.web.map.maps.MOST_FOR_UMAP", most)
        monkeypatch.setattr("crosslens.web.map.maps.has_umap", lambda installed=installed: installed)
        assert maps.state("first", run).method == usual
        assert maps.state("first", run, "umap").method == ("umap" if installed else "pca")


def test_equal_vectors_share_a_map_and_others_do_not(folder: Path, tmp_path: Path) -> None:
    maps = Maps(tmp_path)
    assert finished(maps, Run.load(folder / "first")) == READY
    write_vector_run(folder, "same", folder / "toys")
    write_vector_run(folder, "other", folder / "toys", seed=5)
    assert maps.state("same", Run.load(folder / "same"), "pca").state == READY
    assert maps.state("other", Run.load(folder / "other"), "pca").state == ABSENT


def test_a_damaged_map_is_computed_again(folder: Path, tmp_path: Path) -> None:
    run, maps = Run.load(folder / "first"), Maps(tmp_path)
    assert finished(maps, run) == READY
    key = maps.drawn("first", run, "pca").key
    file = maps.store.folder / key / "points.npy"
    for content in (file.read_bytes()[:-8], b"", b"\0" * 400):
        file.write_bytes(content)
        assert MapStore(tmp_path).load(key) is None
        assert finished(Maps(tmp_path), run) == READY
    (maps.store.folder / key / "header.json").unlink()  # no longer known to be ours to replace
    foreign = Maps(tmp_path)
    assert finished(foreign, run) == "failed"
    assert "not replaced" in (foreign.state("first", run, "pca").progress or JobProgress()).fix


def test_changed_embeddings_are_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    changed = tmp_path / "copy"
    images = cl.Embeddings.load(changed / "vectors" / "first" / "images")
    cl.Embeddings(images.ids, images.vectors * 2 + 1).save(changed / "vectors" / "first" / "images", overwrite=True)
    run, maps = Run.load(changed / "first"), Maps(tmp_path / "cache")
    assert finished(maps, run) == "failed"
    assert "image embeddings changed since" in maps.state("first", run, "pca").reason


def test_runs_without_vectors_say_why(tmp_path: Path) -> None:
    run = cl.evaluate(toys(), scores=np.random.default_rng(0).normal(size=(12, 24)), metrics=["Hit@1"], resamples=10)
    state = Maps(tmp_path).state("x", run)
    assert state.state == IMPOSSIBLE
    assert "keeps no recipe" in state.reason
    np.save(tmp_path / "s.npy", np.random.default_rng(0).normal(size=(12, 24)))
    toys().save(tmp_path / "toys")
    recipe = Recipe(str(tmp_path / "toys"), inputs=InputOptions(scores=str(tmp_path / "s.npy")))
    scored = run_recipe(recipe, tmp_path / "run")
    assert "a score matrix" in Maps(tmp_path).state("x", Run.load(tmp_path / "run")).reason
    assert Maps(tmp_path).start("x", scored).state == IMPOSSIBLE


KILLED = """
import sys, time
from pathlib import Path
from crosslens.values import Run
import crosslens.web.map.maps as stored
from crosslens.web.map.maps import Maps

write = stored.write_parts
def slow(*words, **parts):
    print("writing", flush=True)
    write(*words, **parts)
    time.sleep(60)
stored.write_parts = slow
Maps(Path(sys.argv[2])).start("first", Run.load(sys.argv[1]), "pca")
time.sleep(60)
"""


@pytest.mark.slow
def test_a_process_killed_while_it_writes_leaves_nothing_broken(folder: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-c", KILLED, str(folder / "first"), str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ}) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
    run, maps = Run.load(folder / "first"), Maps(tmp_path)
    assert maps.state("first", run, "pca").state == ABSENT
    assert finished(maps, run) == READY


def test_keys_tell_maps_apart() -> None:
    keys = {map_key("a", "pca"), map_key("b", "pca"), map_key("a", "umap")}
    assert len(keys) == 3
    assert map_key("a", "pca") == map_key("a", "pca")


def test_jobs_have_a_limit_and_report_mistakes() -> None:
    jobs, gate = Jobs(), []

    def wait(progress: object) -> None:
        while not gate:
            time.sleep(0.005)

    first = jobs.start("first", wait)
    while first.state == "waiting":
        time.sleep(0.005)
    for number in range(MOST_JOBS - 1):
        assert jobs.start(str(number), wait) is jobs.start(str(number), wait)
    with pytest.raises(ConflictError, match="8 jobs are under way"):
        jobs.start("one too many", wait)
    gate.append(1)
    while jobs.progress(str(MOST_JOBS - 2)).state != "done":
        time.sleep(0.005)
    assert jobs.start("first", wait) is not first, "there is room again, and what has ended begins again"
    jobs.stop()
    progress = JobProgress()
    carry_out(progress, lambda: 1 / 0)
    assert (progress.state, progress.problem) == ("failed", BUG)


def test_a_stopped_server_does_not_wait_for_its_jobs() -> None:
    jobs = Jobs()

    def endless(progress: Progress) -> None:
        while True:
            progress.advance()
            time.sleep(0.001)

    progress = jobs.start("endless", endless)
    while not progress.done:
        time.sleep(0.001)
    jobs.stop()
    for _ in range(500):
        if progress.state == "failed":
            break
        time.sleep(0.01)
    assert progress.problem == "the server is stopping"

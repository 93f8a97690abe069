"""Sets of scenes as folders: readable, repeatable, resumable."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import crosslens as cl
from crosslens.cli import main
from crosslens.core import ConflictError, InputError
from crosslens.storage import Workspace, write_header
from crosslens.synth import write_scenes
from crosslens.synth.generation import SHARD_SIZE, SPEC_FILE, SceneRecipe, part_file, set_spec

pytest.importorskip("PIL", reason="pip install 'crosslens[scenes]'")

TASKS = "colour,count,figure,code"
IMAGES = 2 * SHARD_SIZE + 5


def content(folder: Path) -> dict[str, str]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scenes") / "set"
    write_scenes(folder, IMAGES, TASKS, seed=1, workers=1)
    return folder


def test_the_folder_is_a_dataset(scenes: Path) -> None:
    dataset = cl.load_dataset(scenes)
    assert (dataset.name, dataset.images.height, dataset.captions.height) == ("scenes-v0", IMAGES, 5 * IMAGES)
    assert all((scenes / file).is_file() for file in dataset.images["file"])
    assert set(dataset.images["task"]) == set(TASKS.split(","))
    assert set(dataset.captions["style"]) == {"literal", "sparse", "detailed", "paraphrased", "figurative"}
    assert set(dataset.captions["difficulty"]) == {"easy", "medium", "hard"}
    assert "seed 1" in dataset.card.notes
    assert not [name for name in content(scenes) if "parts" in name or ".partial" in name]


def test_coco_and_visual_genome_say_the_same(scenes: Path) -> None:
    dataset = cl.load_dataset(scenes)
    assert dataset.objects is not None
    assert dataset.relations is not None
    coco = cl.load_dataset(
        "coco", captions=scenes / "coco" / "captions.json", instances=scenes / "coco" / "instances.json"
    )
    graphs = cl.load_dataset("visual_genome", folder=scenes / "visual_genome")
    for written in (coco, graphs):
        assert written.image_ids == dataset.image_ids
        assert written.texts == dataset.texts
        assert written.images["file"].to_list() == dataset.images["file"].to_list()
        assert written.objects is not None
        for column in ("object", "name", "x", "y", "w", "h"):
            assert written.objects[column].to_list() == dataset.objects[column].to_list()
    assert graphs.objects is not None
    assert graphs.objects["synset"].to_list() == dataset.objects["synset"].to_list()
    assert graphs.objects["attributes"].to_list() == dataset.objects["attributes"].to_list()
    assert graphs.relations is not None
    assert graphs.relations.rows() == dataset.relations.select(graphs.relations.columns).rows()


@pytest.mark.slow  # the resumed set below is drawn by two workers
def test_any_number_of_workers_gives_the_same_bytes(scenes: Path, tmp_path: Path) -> None:
    write_scenes(tmp_path / "set", IMAGES, TASKS, seed=1, workers=3)
    assert content(tmp_path / "set") == content(scenes)


def test_a_finished_set_is_left_alone(scenes: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in scenes.rglob("*")}
    again = write_scenes(scenes, IMAGES, TASKS, seed=1)
    assert again.fingerprint == cl.load_dataset(scenes).fingerprint
    assert {file: file.stat().st_mtime_ns for file in scenes.rglob("*")} == before


def test_another_set_is_not_overwritten(scenes: Path, tmp_path: Path) -> None:
    with pytest.raises(ConflictError, match="different: seed"):
        write_scenes(scenes, IMAGES, TASKS, seed=2)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConflictError, match="not a set of scenes"):
        write_scenes(tmp_path, 3, "colour", overwrite=True)
    write_scenes(tmp_path / "set", 3, "colour", workers=1)
    replaced = write_scenes(tmp_path / "set", 4, "ocr", workers=1, overwrite=True)
    assert replaced.images.height == len(list((tmp_path / "set" / "images").iterdir())) == 4
    (tmp_path / "set" / "notes.txt").write_text("mine")
    with pytest.raises(ConflictError, match=r"also holds notes\.txt"):
        write_scenes(tmp_path / "set", 3, "colour", workers=1, overwrite=True)
    assert (tmp_path / "set" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("damaged", ["captions.parquet", "synth.json"])
def test_a_damaged_set_is_refused_and_drawn_again_on_request(damaged: str, tmp_path: Path) -> None:
    written = write_scenes(tmp_path / "set", 2, "colour", workers=1)
    with (tmp_path / "set" / damaged).open("ab") as file:
        file.write(b"x")
    with pytest.raises(InputError, match=damaged):
        write_scenes(tmp_path / "set", 2, "colour", workers=1)
    replaced = write_scenes(tmp_path / "set", 2, "colour", workers=1, overwrite=True)
    assert replaced.fingerprint == written.fingerprint == cl.Dataset.load(tmp_path / "set").fingerprint


def test_after_a_kill_the_same_command_resumes(
    scenes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, begun = tmp_path / "set", Workspace(tmp_path / "set").new
    arguments = ["synth", "--images", str(IMAGES), "--tasks", TASKS, "--seed", "1", "--workers", "2", "-o", str(folder)]
    running = subprocess.Popen([sys.executable, "-m", "crosslens", *arguments], start_new_session=True)
    deadline = time.monotonic() + 120
    while not list(begun.glob("parts/*.jsonl")) and time.monotonic() < deadline and running.poll() is None:
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGKILL)  # its workers, too: they would go on with what they have begun
    running.wait()
    time.sleep(0.1)
    if running.returncode == 0:
        pytest.skip("it was done before it could be killed")
    done = [shard for shard in range(3) if part_file(begun, shard).exists()]
    assert done
    assert not folder.exists()
    assert main(arguments) == 0
    assert (
        f"note: drawing scenes: resumed at scene {min(len(done) * SHARD_SIZE, IMAGES):,} of {IMAGES:,}\n"
        in capsys.readouterr().err
    )
    assert content(folder) == content(scenes)


def test_versions_in_a_folder(tmp_path: Path) -> None:
    dataset = write_scenes(tmp_path / "set", 8, "colour,calculation", seed=3, version="v2", gallery=30, workers=1)
    assert dataset.images["role"].value_counts().sort("role").rows() == [("original", 8), ("similar", 14), ("twin", 8)]
    assert dataset.captions.height == 80
    twins = dataset.images.filter(dataset.images["role"] == "twin")
    assert set(twins["original"]) == set(map(str, range(1, 9)))
    assert set(twins["changed"]) == {"colour", "number"}


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "set")
    assert main(["synth", "--images", "4", "--tasks", "colour,ocr", "-o", folder, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["images"], printed["captions"], printed["tasks"]) == (4, 20, {"colour": 2, "ocr": 2})
    assert main(["synth", "--images", "4", "--tasks", "colour,ocr", "-o", folder]) == 0
    assert "4 pictures and 20 captions" in capsys.readouterr().out
    assert main(["synth", "--images", "5", "--tasks", "colour,ocr", "-o", folder]) == 5
    assert "--overwrite" in capsys.readouterr().err
    assert main(["synth", "--tasks", "colours", "-o", folder]) == 2
    assert "did you mean colour" in capsys.readouterr().err


def test_a_worker_whose_parent_is_gone_ends_without_a_word(tmp_path: Path) -> None:
    write_header(tmp_path / SPEC_FILE, set_spec(SceneRecipe.of(2, "colour")))
    for name in ("images", "parts"):
        (tmp_path / name).mkdir()
    command = [sys.executable, "-m", "crosslens.synth.generation", str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stderr is not None
        worker.stdout.close()
        worker.stdin.write("0\n")
        worker.stdin.close()
        assert worker.stderr.read() == ""
    assert worker.returncode == 0
    assert part_file(tmp_path, 0).exists(), "what it had begun is finished"

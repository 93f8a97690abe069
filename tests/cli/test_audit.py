"""``crosslens audit``: the contract, what it prints, what it refuses, and that a killed audit goes on."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.audits import load_audit
from tests.cli.test_scenes import MODEL

from .conftest import Call

pytest.importorskip("PIL", reason="pip install 'crosslens[scenes]'")
IMAGES = 8
WORDS = ("a red box", "two green dogs", "a blue car on a road", "three cats", "a tree", "an old man", "snow", "a boat")
OWN_MODEL = ("--model", "callable:model.py:Model", "--trust-code")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a person has it: captions.jsonl, a folder of pictures, vectors, a model of one's own."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("photos")
    (folder / "DIR").mkdir()
    noise = np.random.default_rng(0)
    lines = []
    for number, word in enumerate(WORDS):
        pixels = noise.integers(0, 255, (24, 24, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "DIR" / f"{number}.png")
        captions = [f"{word} outside", f"there is {word} in the picture"]
        lines.append(json.dumps({"image": f"{number}.png", "captions": captions, "kind": "ab"[number % 2]}))
    (folder / "captions.jsonl").write_text("\n".join(lines) + "\n")
    points = noise.standard_normal((IMAGES, 6))
    np.save(folder / "img.npy", points)
    np.save(folder / "cap.npy", np.repeat(points, 2, axis=0) + 0.7 * noise.standard_normal((2 * IMAGES, 6)))
    (folder / "model.py").write_text(MODEL)
    return folder


@pytest.fixture
def here(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same files in a folder of its own, with a cache of its own."""
    for entry in photos.iterdir():
        (tmp_path / entry.name).symlink_to(entry)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_pictures_of_vectors(call: Call, here: Path) -> None:
    """The pictures belong to the dataset, whoever made the vectors: the report and the explorer show them."""
    from crosslens.web.library import RunLibrary
    from crosslens.web.pictures import PictureStore

    vectors = ("--image-embeddings", "img.npy", "--caption-embeddings", "cap.npy")
    words = ("audit", "--dataset", "captions.jsonl", *vectors, "--image-folder", "DIR", "--only", "explain", "--quick")
    outcome = call(*words, "-o", "OUT")
    assert outcome.code == 0, outcome.err
    assert "data:image/" in (here / "OUT" / "report.html").read_text()
    recipe = (here / "OUT" / "runs" / "embeddings" / "recipe.toml").read_text()
    assert "image_folder = " in recipe
    library = RunLibrary(here / "OUT")
    (dataset,) = library.datasets()
    assert PictureStore(library, (), here / "cache").exists(dataset.id, "0.png")


@pytest.mark.parametrize(
    ("option", "message"),
    [(("--skip-bad",), "--skip-bad, but no model"), (("--precision", "bf16"), "--precision, but no model")],
)
def test_an_option_of_a_model_that_is_not_there_is_named(
    call: Call, here: Path, option: tuple[str, ...], message: str
) -> None:
    vectors = ("--image-embeddings", "img.npy", "--caption-embeddings", "cap.npy")
    outcome = call("audit", "--dataset", "captions.jsonl", *vectors, *option, "-o", "OUT")
    assert outcome.code == 2
    assert message in outcome.err


@pytest.mark.slow
def test_the_contract(call: Call, here: Path) -> None:
    """Every stage that pictures and captions allow, with the model that comes with crosslens."""
    pytest.importorskip("onnxruntime", reason="pip install 'crosslens[onnx]'")
    words = ("audit", "--dataset", "captions.jsonl", "--image-folder", "DIR", "--model", "tiny", "--quick", "-o", "OUT")
    outcome = call(*words)
    assert outcome.code == 0, outcome.err
    page = (here / "OUT" / "report.html").read_text()
    assert page.lstrip().startswith("<!DOCTYPE html>")
    audit = load_audit("OUT")
    for finding in audit.findings[:3]:
        assert finding.text.split(" [")[0] in " ".join(outcome.out.split())
    assert "Report: OUT/report.html" in outcome.out
    done, left_out = {result.stage for result in audit.results}, {entry.stage for entry in audit.skipped}
    assert {
        "evaluate",
        "soundness",
        "groups",
        "probes",
        "twins",
        "robustness",
        "polysemy",
        "difficulty",
        "curve",
    } <= done
    assert {"hard-negatives", "comparison", "leaderboard"} <= left_out
    assert not done & left_out
    for result in audit.results:
        assert result.command.startswith("crosslens ") or result.stage in ("soundness", "probes", "twins")
        assert result.folder is None or result.folder.is_dir()


@pytest.mark.slow
def test_the_contract_on_photographs(call: Call, shared_data: Path, tmp_path: Path) -> None:
    content = json.loads((shared_data / "coco_val2017_1k" / "captions.json").read_text())
    texts: dict[int, list[str]] = {}
    for annotation in content["annotations"]:
        texts.setdefault(annotation["image_id"], []).append(annotation["caption"])
    first = content["images"][:20]
    lines = [json.dumps({"image": image["file_name"], "captions": texts[image["id"]]}) for image in first]
    file = tmp_path / "captions.jsonl"
    file.write_text("\n".join(lines))
    folder = shared_data / "coco_val2017_1k" / "images"
    words = ("--dataset", file, "--image-folder", folder, "--model", "tiny", "--quick", "-o", tmp_path / "out")
    outcome = call("audit", *words)
    assert outcome.code == 0, outcome.err
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000


def test_stages_are_listed_with_their_needs(call: Call) -> None:
    outcome = call("audit", "--list")
    assert outcome.code == 0
    lines = " ".join(outcome.out.split())
    assert "Needs a dataset; several captions per image; a similarity that agrees with people." in lines
    listed = call("audit", "--list", "--json").json
    assert [entry["stage"] for entry in listed][:2] == ["evaluate", "soundness"]
    assert all(entry["summary"] for entry in listed)


def test_vectors_alone(call: Call, here: Path) -> None:
    words = ("--dataset", "captions.jsonl", "--image-embeddings", "img.npy", "--caption-embeddings", "cap.npy")
    stages = ("--only", "groups", "--only", "robustness", "--only", "polysemy")
    outcome = call("audit", *words, *stages, "--resamples", "50", "--json", "-o", "out")
    assert outcome.code == 0, outcome.err
    content = outcome.json
    assert {entry["stage"] for entry in content["stages"]} == {"evaluate", "groups", "polysemy"}
    assert [entry["stage"] for entry in content["skipped"]] == ["robustness"]
    assert content["runs"] == {"embeddings": "out/runs/embeddings"}
    groups = next(result.payload for result in load_audit("out").results if result.stage == "groups")
    stored_run = call("show", "out/runs/embeddings", "--by", "kind", "--metrics", "t2i/Hit@1", "--json").json
    table = next(table for table in groups["groups"] if table["by"] == "kind")
    means = {group: figure["mean"] for group, figure in table["metrics"]["t2i/Hit@1"].items()}
    assert means == {group: figure["mean"] for group, figure in stored_run["metrics"]["t2i/Hit@1"].items()}


def test_a_run_alone(call: Call, here: Path) -> None:
    """Ranked lists and judgements, and nothing else."""
    (here / "model.run").write_text("q1 Q0 a 1 2.0 m\nq1 Q0 b 2 1.0 m\nq2 Q0 b 1 2.0 m\nq2 Q0 a 2 1.0 m\n")
    (here / "qrels.txt").write_text("q1 0 a 1\nq2 0 a 1\n")
    outcome = call("audit", "--run", "model.run", "--qrels", "qrels.txt", "-o", "out")
    assert outcome.code == 0, outcome.err
    assert "50.0  [3.6, 96.4]" in outcome.out
    assert "Nothing was tested for faults: that needs a dataset: none is given." in outcome.out
    assert "Nothing stands out" not in outcome.out
    assert "explain: left out, needs a dataset: none is given" in outcome.err
    assert (here / "out" / "report.html").exists()


def test_a_stored_run_is_audited_from_its_recipe(call: Call, here: Path) -> None:
    vectors = ("--image-embeddings", "img.npy", "--caption-embeddings", "cap.npy")
    assert call("evaluate", "--dataset", "captions.jsonl", *vectors, "-o", "runs/mine").code == 0
    outcome = call("audit", "--run", "runs/mine", "--only", "soundness", "-o", "out")
    assert outcome.code == 0, outcome.err
    assert load_audit("out").runs["mine"].fingerprint == cl.Run.load("runs/mine").fingerprint
    mixed = call("audit", "--run", "runs/mine", "--dataset", "captions.jsonl", "-o", "other")
    assert mixed.code == 2
    assert "run folders beside other inputs" in mixed.err


@pytest.mark.slow
def test_two_models_on_two_datasets(call: Call, here: Path) -> None:
    (here / "other.py").write_text(MODEL.replace('"one"', '"two"').replace(".lower()", ".upper()"))
    lines = [json.dumps({"image": f"{number}.png", "captions": [f"{word} again"]}) for number, word in enumerate(WORDS)]
    (here / "more.jsonl").write_text("\n".join(lines))
    models = (*OWN_MODEL, "--model", "callable:other.py:Model")
    data = ("--dataset", "captions.jsonl", "--dataset", "more.jsonl", "--image-folder", "DIR")
    outcome = call("audit", *data, *models, "--only", "leaderboard", "--resamples", "50", "-o", "out")
    assert outcome.code == 0, outcome.err
    audit = load_audit("out")
    assert len(audit.runs) == 4
    table = next(result.payload for result in audit.results if result.stage == "leaderboard")
    assert len(table["models"]) == 2
    assert table["datasets"] == ["captions", "more"]
    cells = [cell for cell in table["cells"] if cell["metric"] == "t2i/Hit@1"]
    means = {name: run["t2i/Hit@1"].mean for name, run in audit.runs.items()}
    assert sorted(cell["mean"] for cell in cells) == sorted(means.values())


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--dataset", "captions.jsonl", "--model", "tiny"), 2, "missing option -o/--output"),
        (("--model", "tiny", "-o", "out"), 2, "--model requires --dataset"),
        (("--dataset", "captions.jsonl", "-o", "out"), 2, "nothing to evaluate"),
        (("--dataset", "captions.jsonl", "--model", "tiny", "--only", "robust", "-o", "out"), 2, "robustness"),
        (("--dataset", "captions.jsonl", "--model", "tiny", "--skip", "evaluate", "-o", "out"), 2, "needs evaluate"),
        (("--dataset", "gone.jsonl", "--model", "tiny", "-o", "out"), 3, "gone.jsonl"),
        (("--dataset", "captions.jsonl", "--model", "nope", "-o", "out"), 2, "unknown encoder 'nope'"),
        (("--split", "test", "-o", "out"), 2, "requires --dataset"),
    ],
)
def test_mistakes_are_named(call: Call, here: Path, words: tuple[str, ...], code: int, message: str) -> None:
    outcome = call("audit", *words)
    assert outcome.code == code, outcome.err
    assert message in outcome.err


def test_from_python(here: Path) -> None:
    dataset = cl.load_dataset("captions.jsonl")
    vectors: dict[str, Any] = {"image_embeddings": "img.npy", "caption_embeddings": "cap.npy"}
    audit = cl.audit(dataset, output="out", only=("soundness",), resamples=50, **vectors)
    assert audit.report.exists()
    assert str(audit).splitlines()[0].split() == ["run", "t2i/Hit@1", "t2i/Hit@10", "i2t/Hit@1"]
    assert not audit.findings, "eight pictures prove nothing"
    for form in (str(audit), audit.content(".md").decode(), audit._repr_html_()):
        assert "Nothing stands out: no test of this audit found a fault." in form
    again = cl.audit(dataset, output="out", only=("soundness",), resamples=50, **vectors)
    assert again.findings == audit.findings
    with pytest.raises(cl.CrosslensError, match="quikc"):
        cl.audit(dataset, output="out", quikc=True, **vectors)


AUDIT = (
    *("audit", "--dataset", "captions.jsonl", "--image-folder", "DIR", *OWN_MODEL, "--quick"),
    *("--resamples", "50", "--only", "groups", "--only", "soundness", "--only", "probes", "--only", "twins"),
    *("--only", "polysemy", "--only", "robustness", "--only", "difficulty", "--only", "curve"),
)


def start(folder: Path, output: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "crosslens", *AUDIT, "-o", output]
    return subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ)


def content(folder: Path) -> dict[str, Any]:
    files = sorted((folder / "results").iterdir())
    return {file.name: json.loads(file.read_text())["payload"] for file in files}


def page_of(folder: Path) -> str:
    """The report, without the minute in which its runs were written."""
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "", (folder / "report.html").read_text())


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_and_ends_with_the_same_result(here: Path) -> None:
    whole = start(here, "OUT")
    errors = whole.communicate()[1]
    assert whole.returncode == 0, errors.decode()
    expected, page = content(here / "OUT"), page_of(here / "OUT")
    (here / "OUT").rename(here / "whole")
    killed = 0
    for moment in ("header.json", "runs/*", "results/soundness-*.json", "robustness/*", "results/curve.json"):
        process = start(here, "OUT")
        while not list(here.glob(f"OUT/{moment}")) and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        load_audit(here / "OUT")
    last = start(here, "OUT")
    errors = last.communicate()[1]
    assert last.returncode == 0, errors.decode()
    assert killed >= 3, "it was hardly interrupted"
    assert content(here / "OUT") == expected
    assert page_of(here / "OUT") == page
    assert not list((here / "OUT").rglob("*crosslens-partial/new*")), "nothing half-made is left"


@pytest.mark.slow
def test_ctrl_c_is_clean(here: Path) -> None:
    process = start(here, "OUT")
    deadline = time.monotonic() + 120
    while (
        not list(here.glob("OUT/results/soundness-*.json")) and time.monotonic() < deadline and process.poll() is None
    ):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=120)[1].decode()
    if process.returncode == 0:
        pytest.skip("it was done before it could be stopped")
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert load_audit(here / "OUT").results
    last = start(here, "OUT")
    assert last.wait(timeout=300) == 0
    assert (here / "OUT" / "report.html").exists()

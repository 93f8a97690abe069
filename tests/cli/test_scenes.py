"""The demo: everything from nothing, resumed, and honest about it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import crosslens.cli.commands.start as demo
from crosslens.audits import Demo, load_audit
from crosslens.synth import SyntheticScene, write_scenes

from .conftest import Call

pytest.importorskip("PIL", reason="pip install 'crosslens[scenes]'")

MODEL = """
import numpy as np

class Model:
    '''Colours of a picture, letters of a text: an encoder, not a good one.'''
    revision = "one"
    def encode_images(self, images):
        return np.stack([np.asarray(one.resize((4, 4)), np.float32).reshape(-1)[:26] for one in images])
    def encode_texts(self, texts):
        letters = "abcdefghijklmnopqrstuvwxyz"
        return np.array([[text.lower().count(letter) + 0.01 for letter in letters] for text in texts], np.float32)
"""
IMAGES = 12


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model of one's own and a cache of its own."""
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    return tmp_path


WORDS = ("demo", "--model", "callable:model.py:Model", "--images", str(IMAGES), "-o", "tryout")


def test_the_expected_time_is_that_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture that takes twice as long to draw makes the demo twice as long; more cores make it shorter."""
    clock = [0.0]
    monkeypatch.setattr(demo.time, "perf_counter", lambda: clock[0])

    def seconds(each: float, cores: int = 2) -> float:
        def png(scene: SyntheticScene) -> bytes:
            clock[0] += each
            return b""

        monkeypatch.setattr(SyntheticScene, "png", png)
        monkeypatch.setattr(demo.core, "available_cores", lambda: cores)
        return demo.expected_seconds(120)

    assert seconds(0.02) == pytest.approx(2 * seconds(0.01))
    assert seconds(0.01, cores=8) < seconds(0.01) < seconds(0.01, cores=1)


@pytest.mark.slow
def test_the_whole_way(call: Call, root: Path) -> None:
    outcome = call(*WORDS)
    assert outcome.code == 0
    assert re.match(r"this takes about (\d+ h )?(\d+ min ?)?(\d+ s )?here and now, .* written to tryout\n", outcome.err)
    assert re.search(r"\ntook .*; processor time: .*\n", outcome.err)
    assert f"searches {IMAGES} drawn scenes with {5 * IMAGES} captions" in outcome.out
    folder = root / "tryout"
    assert {entry.name for entry in folder.iterdir()} == {"scenes", "scenes-v0", "scenes-v1", "audit"}
    audit = load_audit(folder / "audit")
    runs = dict(zip(("v0", "v1", "v2"), audit.runs.values(), strict=True))
    for version, factor in (("v0", 1), ("v1", 2), ("v2", 8)):
        assert runs[version].provenance["dataset"]["images"] == factor * IMAGES
    assert runs["v2"]["t2i/Hit@1"].n == 2 * 5 * IMAGES
    assert ["task", "v0", "v1", "v2"] in [line.split() for line in outcome.out.splitlines()]
    assert "What the audit found" in outcome.out
    assert " 1. " in outcome.out
    assert "Report: tryout/audit/report.html" in outcome.out
    page = (folder / "audit" / "report.html").read_text()
    assert "The top result is right for" in page

    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*") if file.is_file()}
    again = call(*WORDS)
    assert again.out == outcome.out
    changed = {
        file.name for file in folder.rglob("*") if file.is_file() and file.stat().st_mtime_ns != before.get(file)
    }
    assert changed <= {"findings.json", "report.html"}, "these are derived"
    for name in audit.runs:
        recipe = folder / "audit" / "runs" / name / "recipe.toml"
        assert "every query has the same value" in call("run", "--trust-code", recipe).err
    assert call(*WORDS, "--seed", "8").code == 5
    replaced = call(*WORDS, "--seed", "8", "--overwrite", "--json")
    assert replaced.code == 0
    assert set(replaced.json["runs"]) == set(audit.runs)
    assert set(replaced.json["side_by_side"]["metrics"]["t2i/Hit@1"]) == {"v0", "v1", "v2"}


@pytest.mark.slow
def test_versions_are_those_that_synth_writes(call: Call, root: Path) -> None:
    drawn = Demo(root / "tryout").draw(IMAGES)
    request = Demo(root / "tryout").request(drawn, "tiny")
    for version, source in zip(("v0", "v1"), request.datasets, strict=False):
        fresh = write_scenes(root / version, IMAGES, seed=7, version=version, workers=1)
        assert source.load().fingerprint == fresh.fingerprint


@pytest.mark.slow
def test_ctrl_c_is_clean_and_the_next_run_goes_on(root: Path) -> None:
    words = [sys.executable, "-m", "crosslens", *WORDS[:4], "20", "-o", "tryout"]
    running = subprocess.Popen(words, cwd=root, stderr=subprocess.PIPE, text=True, env=os.environ)
    deadline = time.monotonic() + 120
    while not list(root.glob("tryout/.scenes.crosslens-partial/new/parts/*.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    output = running.communicate(timeout=120)[1]
    if running.returncode == 0:
        pytest.skip("it was done before it could be stopped")
    assert running.returncode == 130
    assert "Traceback" not in output
    assert "interrupted" in output
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (root / "tryout" / "audit" / "report.html").exists()


def test_a_missing_package_is_named_before_any_work(call: Call, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    outcome = call(*WORDS)
    assert outcome.code == 4
    assert "pip install 'crosslens[demo]'" in outcome.err
    assert not (root / "tryout").exists()


@pytest.mark.parametrize(
    ("model", "code", "message"),
    [
        ("nope", 2, "unknown encoder 'nope'"),
        ("callable:gone.py:Model", 3, "gone.py"),
        ("callable:texts.py:Texts", 2, "encodes texts, not images"),
    ],
)
def test_a_wrong_model_is_named_before_any_work(call: Call, root: Path, model: str, code: int, message: str) -> None:
    (root / "texts.py").write_text(
        "class Texts:\n    def encode_texts(self, texts):\n        return [[1.0]] * len(texts)\n"
    )
    outcome = call("demo", "--model", model, "--images", str(IMAGES), "-o", "tryout")
    assert outcome.code == code
    assert message in outcome.err
    assert "drawing" not in outcome.err
    assert not (root / "tryout").exists()

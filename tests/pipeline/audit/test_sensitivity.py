"""What an audit could have noticed: planted into its own data, counted, resumed, and shown in its report."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.analyze import ANALYSES, Planted, Soundness, Subject
from crosslens.audits import NoticedDefect, Sensitivity, load_audit, sensitivity as module
from crosslens.core import (
    FINDING_KINDS,
    Effect,
    InputError,
    MissingExtraError,
    Observation,
    UnknownNameError,
    UsageError,
)
from tests.pipeline.small_world import world

ONLY = ("blank-vectors", "better")
STRENGTHS = [(kind, strength) for kind in ONLY for strength in FINDING_KINDS[kind].details["strengths"]]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited")
    dataset, images, captions = world(images=60, spread=0.8)
    np.save(folder / "images.npy", images)
    np.save(folder / "captions.npy", captions)
    files: Any = {"image_embeddings": folder / "images.npy", "caption_embeddings": folder / "captions.npy"}
    dataset.save(folder / "data")
    cl.audit(folder / "data", output=folder / "out", only=("soundness",), resamples=50, **files)
    return folder / "out"


@pytest.fixture
def folder(audited: Path, tmp_path: Path) -> Path:
    """A copy with the files that its recipe names: what is calibrated is kept in the audit's folder."""
    shutil.copytree(audited.parent, tmp_path / "copy")
    return tmp_path / "copy" / "out"


class Looks:
    """Counts what is planted, and says of it what the test wants."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.planted: list[tuple[str, float]] = []
        self.stop_at = -1
        for kind in ONLY:
            monkeypatch.setitem(FINDING_KINDS._entries, kind, replace(FINDING_KINDS[kind], value=self.plant(kind)))
        monkeypatch.setitem(ANALYSES._entries, "soundness", replace(ANALYSES["soundness"], value=self.look))
        monkeypatch.setattr(module, "compare_with_planted", lambda subject, planted: self.look(planted))

    def plant(self, kind: str) -> Any:
        def plant(subject: Subject, strength: float, stream: np.random.Generator) -> Planted:
            if len(self.planted) == self.stop_at:
                raise KeyboardInterrupt
            self.planted.append((kind, strength))
            return Planted(subject, frozenset({"im0"}))

        return plant

    def look(self, subject: Subject) -> Soundness:
        """Strong defects are seen always, weak ones in the first of two repeats."""
        kind, strength = self.planted[-1]
        detected = strength > 0.05 or subject.seed == 0
        words = {"share": "5 %", "side": "images", "what": "zeros", "best": "a", "second": "b", "metric": "m",
                 "points": "5 points", "interval": "[1, 9]", "others": ""}  # fmt: skip
        effect = Effect(strength, None, None, "share of images")
        evidence = [{"item": "im0"}]
        return Soundness((Observation(kind, words, effect, strength, p=0.0 if detected else 0.9, evidence=evidence),))


def test_each_defect_is_planted_and_counted(folder: Path) -> None:
    """With the plants and tests that there are: what is blank is counted, and cannot be missed."""
    result = cl.calibrate(folder, only=ONLY, repeats=2)
    assert [(row.kind, row.strength) for row in result.rows] == STRENGTHS
    assert result.run == "embeddings"
    assert not result.left_out
    for row in result.rows:
        assert row.planted == 2
        assert 0 <= row.first <= row.said <= 2
        assert row.words == FINDING_KINDS[row.kind].details["strength_words"].format(row.strength).replace("%", " %")
    blank = [row for row in result.rows if row.kind == "blank-vectors" and row.strength >= 0.05]
    assert [(row.said, row.first) for row in blank] == [(2, 2)] * len(blank)
    again = cl.calibrate(folder, only=ONLY, repeats=2)
    assert again == result
    page = (folder / "report.html").read_text()
    assert 'id="sensitivity"' in page
    for row in result.rows:
        assert row.words in page


def test_what_is_noticed_is_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    result = cl.calibrate(folder, only=ONLY, repeats=2)
    assert looks.planted == [case for case in STRENGTHS for _ in range(2)]
    assert {(row.kind, row.strength): (row.said, row.first) for row in result.rows} == {
        (kind, strength): (2, 2) if strength > 0.05 else (1, 1) for kind, strength in STRENGTHS
    }
    text = result.text(None)
    assert re.findall(r"([12]) of 2 +([12]) of 2", text) == [
        ("2", "2") if strength > 0.05 else ("1", "1") for _, strength in STRENGTHS
    ]


def test_it_resumes_from_what_is_kept_without_planting_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    first = cl.calibrate(folder, only=ONLY[:1], repeats=2)
    done = len(looks.planted)
    both = cl.calibrate(folder, only=ONLY, repeats=2)
    assert looks.planted[done:] == [case for case in STRENGTHS if case[0] == ONLY[1] for _ in range(2)]
    assert both.rows[: len(first.rows)] == first.rows
    assert cl.calibrate(folder, only=ONLY[:1], repeats=2) == first, "what else is kept was not asked for"
    assert len(looks.planted) == 2 * len(STRENGTHS)
    kept = json.loads((folder / "sensitivity.json").read_text())
    assert kept["format"] == "crosslens/audit-sensitivity"
    assert len(kept["runs"]["embeddings"]["planted"]) == len(STRENGTHS)
    cl.calibrate(folder, only=ONLY[:1], repeats=1)
    assert len(looks.planted) == 2 * len(STRENGTHS) + 3, "another number of repeats is another calibration"


def test_interrupted_anywhere_it_goes_on_with_the_same_result(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    whole = cl.calibrate(shutil.copytree(folder, folder.parent / "whole"), only=ONLY, repeats=2)
    before = load_audit(folder)
    looks.planted.clear()
    interrupted = 0
    for looks.stop_at in (0, 3, 6):  # before anything is kept, and in the middle of a strength
        with pytest.raises(KeyboardInterrupt):
            cl.calibrate(folder, only=ONLY, repeats=2)
        interrupted += 1
        audit = load_audit(folder)
        assert (audit.findings, audit.results) == (before.findings, before.results)
        cl.write_report(folder, folder.parent / "between.html", overwrite=True)
    looks.stop_at = -1
    assert cl.calibrate(folder, only=ONLY, repeats=2) == whole
    assert interrupted == 3
    assert not list(folder.rglob("*crosslens-partial/new*")), "nothing half-made is left"


def test_what_cannot_be_planted_says_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = cl.calibrate(folder, only=("typos",), repeats=1)
    assert (nothing.rows, nothing.left_out) == ((), {"typos": "this data has nothing to plant it into"})
    assert "typos: this data has nothing to plant it into." in nothing.text(None)

    def without(subject: Subject) -> Soundness:
        raise MissingExtraError("encoding", "onnxruntime", "onnx")

    monkeypatch.setitem(ANALYSES._entries, "soundness", replace(ANALYSES["soundness"], value=without))
    lacking = cl.calibrate(folder, only=("blank-vectors",), repeats=1)
    assert lacking.left_out == {"blank-vectors": "needs pip install 'crosslens[onnx]'"}


def test_mistakes_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown kind of finding 'hubs'") as unknown:
        cl.calibrate(folder, only=("hubs",))
    assert "hub" in str(unknown.value.fix)
    with pytest.raises(UnknownNameError, match="unknown run 'tiny'"):
        cl.calibrate(folder, run="tiny")
    with pytest.raises(UsageError, match="repeats=0 plants nothing"):
        cl.calibrate(folder, repeats=0)
    with pytest.raises(InputError):
        cl.calibrate(tmp_path / "nowhere")
    assert not (folder / "sensitivity.json").exists()


def test_an_audit_without_a_dataset_has_nothing_to_plant_into(tmp_path: Path) -> None:
    (tmp_path / "model.run").write_text("q1 Q0 a 1 2.0 m\nq1 Q0 b 2 1.0 m\nq2 Q0 b 1 2.0 m\nq2 Q0 a 2 1.0 m\n")
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq2 0 a 1\n")
    cl.audit(output=tmp_path / "out", run=tmp_path / "model.run", qrels=tmp_path / "qrels.txt", resamples=50)
    with pytest.raises(UsageError, match="names no dataset"):
        cl.calibrate(tmp_path / "out")


def test_what_is_kept_and_damaged_is_named(folder: Path) -> None:
    file = folder / "sensitivity.json"
    file.write_text('{"format": "crosslens/audit-sensitivity", "version": 1, "runs": {"embeddings": {"rows": 3}}}')
    with pytest.raises(InputError, match=r"sensitivity\.json"):
        cl.write_report(folder, folder.parent / "report.html")


def test_a_sensitivity_is_read_back() -> None:
    result = Sensitivity("m", (NoticedDefect("hub", 0.05, "a hub of 5 %", 10, 9, 6),), {"typos": "no words"})
    assert Sensitivity.from_dict(json.loads(json.dumps(result.as_dict()))) == result
    assert "mostly" in result.text(None)

"""``crosslens calibrate``, and what ``crosslens audit`` writes into ``findings.json``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.audits import load_audit
from crosslens.core import FINDING_KINDS
from tests.pipeline.small_world import world

from .conftest import Call

BLANK = 6
VECTORS = ("--image-embeddings", "images.npy", "--caption-embeddings", "captions.npy")
AUDIT = ("audit", "--dataset", "data", *VECTORS, "--only", "soundness", "--only", "groups", "--resamples", "50")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset and vectors, of which some images have a blank one."""
    dataset, images, captions = world(images=60, spread=0.8)
    images[:BLANK] = 1
    dataset.save(tmp_path / "data")
    np.save(tmp_path / "images.npy", images)
    np.save(tmp_path / "captions.npy", captions)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    return tmp_path


KEYS = {
    *("kind", "text", "certainty", "effect", "p", "evidence", "precision"),
    *("weight", "stage", "model", "dataset", "subject", "also"),
}


def test_the_contract_of_findings(call: Call, here: Path) -> None:
    outcome = call(*AUDIT, "-o", "out")
    assert outcome.code == 0, outcome.err
    content = json.loads((here / "out" / "findings.json").read_text())
    assert content["format"] == "crosslens/audit-findings"
    findings = content["findings"]
    dataset = cl.load_dataset("data")
    ids: dict[str, set[str]] = {"item": {*dataset.image_ids}, "query": {*dataset.caption_ids, *dataset.image_ids}}
    ids["items"] = ids["query"]
    for finding in findings:
        assert finding.keys() == KEYS
        kind = FINDING_KINDS[finding["kind"]]
        assert finding["stage"] == kind.details["stage"]
        assert finding["certainty"] in ("settled", "likely", "open")
        assert finding["effect"].keys() == {"value", "low", "high", "unit"}
        assert finding["effect"]["unit"]
        assert finding["p"] is None or 0 <= finding["p"] <= 1
        assert finding["precision"] is None or finding["precision"].keys() == {"value", "n", "where"}
        assert finding["evidence"], "what is counted can be opened"
        for entry in finding["evidence"]:
            assert set(entry) in ({"query"}, {"item"}, {"query", "item"}, {"items"})
            for side, named_ids in entry.items():
                assert ids[side].issuperset(named_ids if side == "items" else [named_ids])
    blank = next(finding for finding in findings if finding["kind"] == "blank-vectors")
    assert blank["effect"]["value"] == pytest.approx(BLANK / 60)
    assert {"item": "im0"} in blank["evidence"] or any("im0" in str(entry) for entry in blank["evidence"])
    assert (blank["model"], blank["dataset"]) == ("embeddings", dataset.name)
    printed = " ".join(outcome.out.split())
    page = (here / "out" / "report.html").read_text()
    assert findings[0]["kind"] == "blank-vectors", "unsound input is the first thing that is said"
    for finding in findings[:10]:
        assert f"{finding['text']} ({finding['certainty']})" in printed
    assert findings[0]["text"] in unescape(page)
    assert "such statements were true" in page, "how sure, and why"
    listed = call(*AUDIT, "-o", "out", "--json").json["findings"]
    assert listed == findings


def test_calibrate_counts_resumes_and_is_in_the_report(call: Call, here: Path) -> None:
    assert call(*AUDIT, "-o", "out").code == 0
    words = ("calibrate", "out", "--only", "blank-vectors", "--only", "better", "--repeats", "2")
    outcome = call(*words)
    assert outcome.code == 0, outcome.err
    content = call(*words, "--json").json
    assert content["run"] == "embeddings"
    strengths = [(kind, strength) for kind in ("blank-vectors", "better")
                 for strength in FINDING_KINDS[kind].details["strengths"]]  # fmt: skip
    assert [(row["kind"], row["strength"]) for row in content["planted"]] == strengths
    assert content["left_out"] == {}
    printed = " ".join(outcome.out.split())
    page = (here / "out" / "report.html").read_text()
    assert 'id="sensitivity"' in page
    for row in content["planted"]:
        assert 0 <= row["first"] <= row["said"] <= row["planted"] == 2
        assert f" {row['said']} of 2 {row['first']} of 2" in printed.partition(row["words"])[2][:40]
        assert row["words"] in page
    file = here / "out" / "sensitivity.json"
    assert call(*words, "--write", "noticed.csv").code == 0
    assert (here / "noticed.csv").exists()
    before = file.stat().st_mtime_ns
    assert call(*words).out == outcome.out
    assert file.stat().st_mtime_ns == before, "nothing was planted again"
    again = call(*AUDIT, "-o", "out")
    assert again.code == 0
    assert 'id="sensitivity"' in (here / "out" / "report.html").read_text(), "the audit resumed keeps it"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("out", "--only", "hubs"), 2, "unknown kind of finding 'hubs'"),
        (("out", "--run", "tiny"), 2, "unknown run 'tiny'"),
        (("out", "--repeats", "0"), 2, "--repeats"),
        (("nowhere",), 3, "nowhere"),
        (("data",), 3, "data"),
    ],
)
def test_mistakes_are_named(call: Call, here: Path, words: tuple[str, ...], code: int, message: str) -> None:
    audit: Any = {"image_embeddings": "images.npy", "caption_embeddings": "captions.npy", "resamples": 50}
    cl.audit("data", output="out", only=("evaluate",), **audit)
    outcome = call("calibrate", *words)
    assert outcome.code == code, outcome.err
    assert message in outcome.err
    assert not (here / "out" / "sensitivity.json").exists()


@pytest.mark.slow
def test_ctrl_c_is_clean(call: Call, here: Path) -> None:
    assert call(*AUDIT, "-o", "out").code == 0
    kinds = ("--only", "blank-vectors", "--only", "hub", "--only", "ties")
    words = [sys.executable, "-m", "crosslens", "calibrate", "out", *kinds, "--repeats", "5"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ)
    deadline = time.monotonic() + 300
    while not Path("out/sensitivity.json").exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=120)[1].decode()
    if process.returncode == 0:
        pytest.skip("it was done before it could be stopped")
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert load_audit("out").findings
    done = json.loads(Path("out/sensitivity.json").read_text())["runs"]["embeddings"]["planted"]
    outcome = call(*words[3:], "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["planted"][: len(done)] == done
    assert len(outcome.json["planted"]) == 9

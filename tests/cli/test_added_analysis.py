"""A whole analysis, added by one file: its command, table, chart and JSON, stage, finding, plant, report and page."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

import numpy as np
import pytest

from crosslens.analyze import ANALYSES, Subject
from crosslens.audits import all_stages
from crosslens.core import FINDING_KINDS, load_plugin
from crosslens.storage import random_stream
from crosslens.values import Run
from reference_pages.registries import findings
from tests.pipeline.small_world import world

from .conftest import Call

ROOT = Path(__file__).resolve().parents[2]
ADDED = Path(__file__).with_name("unretrieved.py")
AUDIT = ("--image-embeddings", "images.npy", "--caption-embeddings", "captions.npy", "--resamples", "20")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small world in which 8 of 40 images are far from all captions."""
    monkeypatch.chdir(tmp_path)
    dataset, images, captions = world(images=40, spread=0.8)
    images, captions = images + 5, captions + 5
    images[::5] *= -1
    dataset.save(tmp_path / "data")
    np.save("images.npy", images)
    np.save("captions.npy", captions)
    return tmp_path


def test_its_command_prints_a_table_a_chart_and_json(folder: Path, call: Call) -> None:
    call("evaluate", "--dataset", "data", *AUDIT, "-o", "run")
    words = ("analyze", "run", "occurrences", "run", "--plugin", ADDED)
    analysis = call(*words, "--write", "lists.svg", "--write", "lists.csv")
    assert "How often each image is in the top 10" in analysis.out
    assert "Images by their lists" in analysis.out
    assert Path("lists.svg").read_text().startswith("<svg")
    lists = Run.load("run").rankings["t2i"]
    expected = dict.fromkeys(lists.item_ids, 0)
    for row in lists.top_items:
        for item in row[:10]:
            expected[lists.item_ids[item]] += 1
    answer = call(*words, "--json").json
    assert answer["lists"] == expected
    assert answer["never"] == np.mean([count == 0 for count in expected.values()]) >= 0.2
    assert "occurrences" in call("analyze", "run", "--list", "--plugin", ADDED).out


def test_an_audit_says_its_finding_and_the_report_shows_it(folder: Path, call: Call) -> None:
    audited = call("audit", "--dataset", "data", *AUDIT, "--only", "occurrences", "-o", "out", "--plugin", ADDED)
    sentence = "20 % of the images are in no caption's top 10."
    assert sentence in audited.out
    (finding,) = [row for row in json.loads(Path("out/findings.json").read_text())["findings"]
                  if row["kind"] == "unretrieved"]  # fmt: skip
    assert finding["certainty"] == "open", "its precision was never measured"
    assert {entry["item"] for entry in finding["evidence"]} == {f"im{row}" for row in range(0, 40, 5)}
    page = Path("out/report.html").read_text()
    assert escape(sentence) in page
    assert "How often each image is among the first items of a caption" in page
    assert "Images by their lists" in page
    noticed = call("calibrate", "out", "--only", "unretrieved", "--repeats", "2", "--plugin", ADDED, "--json").json
    assert [(row["strength"], row["said"]) for row in noticed["planted"]] == [(0.2, 2), (0.4, 2)]


def test_it_is_found_where_it_is_planted_and_listed_where_everything_is() -> None:
    load_plugin(ADDED)
    dataset, images, captions = world(images=40, spread=0.8)
    clean = Subject.of(dataset, images, captions)
    planted = FINDING_KINDS["unretrieved"].value(clean, 0.4, random_stream(0, "added"))
    observations = [
        next(iter(ANALYSES["occurrences"].value(subject).findings())) for subject in (clean, planted.subject)
    ]
    assert [observation.p for observation in observations] == [1.0, 0.0]
    assert {entry["item"] for entry in observations[1].evidence} == planted.ids
    assert "occurrences" in {stage.name for stage in all_stages()}
    page = findings()
    assert "## unretrieved" in page
    assert "| `occurrences` | How often each image is among the first items of a caption. |" in page


def test_nothing_else_knows_it() -> None:
    """Code, tests, documentation: besides this test, what the analysis adds is named in its own file alone."""
    files = [file for part in ("src", "tests", "docs", "scripts", "reproduce") for file in (ROOT / part).rglob("*")]
    texts = {file: file.read_text("utf-8") for file in files if file.suffix in (".py", ".pyi", ".md", ".toml", ".json")}
    touched = {file for file, text in texts.items() if '"occurrences"' in text or '"unretrieved"' in text}
    assert touched == {ADDED, Path(__file__)}

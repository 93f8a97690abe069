"""Graded metrics and the curve over m on the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from crosslens.cli import main
from tests.tables import each_row

from .conftest import Call


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs with graded metrics, only to be read."""
    folder = tmp_path_factory.mktemp("graded")
    random = np.random.default_rng(0)
    rows = [
        {"image": f"i{n}", "captions": [f"a {['dog', 'cat', 'bird'][n % 3]} {n % 4}", "an animal"]} for n in range(9)
    ]
    (folder / "c.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for name in "ab":
        np.save(folder / f"{name}.npy", random.random((9, 18), dtype=np.float32))
        words = ("evaluate", "--dataset", folder / "c.jsonl", "--scores", folder / f"{name}.npy", "--resamples", "20")
        words = (*words, "--metrics", "NCS[cider]@10 SR[cider,m=4]@5 DCGcm@10", "-o", folder / name)
        assert main([str(word) for word in words]) == 0
    return folder


@pytest.fixture
def graded(prepared: Path, tmp_path: Path) -> Path:
    """The same in a folder of its own."""
    return Path(shutil.copytree(prepared, tmp_path / "graded"))


def test_graded_metrics(graded: Path, call: Call) -> None:
    stored_run = call("show", graded / "a")
    assert "NCS[cider]@10" in stored_run.out
    assert "NCS@k: φ of the top k ÷ the largest φ there is for k items." in stored_run.out
    content = call("show", graded / "a", "--json").json
    assert list(content["metrics"]) == [
        f"{direction}/{metric}"
        for metric in ("NCS[cider]@10", "SR[cider, m=4]@5", "DCGcm[scores_from=own]@10")
        for direction in ("i2t", "t2i")
    ]
    assert content["provenance"]["similarities"]["cider"]["fingerprint"]
    assert call("compare", graded / "a", graded / "b", "--metrics", "t2i/NCS@10").code == 0
    assert "NCS[cider]@10" in call("export", graded / "a", "--to", "csv").out
    assert call("metrics", "SR").out.startswith("SR@k")


def test_curve(graded: Path, call: Call) -> None:
    page = graded / "fig3.html"
    outcome = call("curve", graded / "a", graded / "b", "--m", "1..6", "--write", page, "--resamples", "20")
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("Semantic recall at 5 against m, text → image, outside the ground truth")
    lines = [line.split() for line in outcome.out.splitlines()]
    assert [line[0] for line in lines if line and line[0].isdigit()] == ["1", "2", "3", "4", "5", "6"]
    text = page.read_text()
    assert "a: share of them retrieved (SR)" in text
    assert "b: any of them retrieved (SRhit)" in text
    content = call("curve", graded / "a", graded / "b", "--m", "1..6", "--resamples", "20", "--json").json
    assert (content["m"], content["k"], content["phi"]) == ([1, 2, 3, 4, 5, 6], 5, "cider")
    hits = [entry["mean"] for entry in content["runs"]["a"]["SRhit"]]
    assert hits == sorted(hits)
    np.save(graded / "phi.npy", np.ones((9, 18), np.float32))
    assert call("curve", graded / "a", "--phi", graded / "phi.npy", "--m", "2", "--ground-truth").code == 0


@each_row(
    ("words", "message"),
    [
        (["--m", "5..1"], "cannot read the values of m"),
        (["--direction", "t2t"], "unknown direction 't2t'"),
        (["--phi", "cidr"], "cider"),
        (["--direction", "i2t", "--k", "12"], "items beside the ground truth were kept"),
        (["--write", "fig.doc"], "unknown form .doc"),
    ],
)
def test_mistakes(graded: Path, call: Call, words: list[str], message: str) -> None:
    outcome = call("curve", graded / "a", "--resamples", "0", *words)
    assert outcome.code != 0
    assert message in outcome.err


def test_a_run_without_a_dataset(graded: Path, call: Call) -> None:
    (graded / "a" / "recipe.toml").unlink()
    outcome = call("curve", graded / "a")
    assert "names no dataset" in outcome.err
    assert call("curve", graded / "a", "--dataset", graded / "c.jsonl", "--m", "1", "--resamples", "0").code == 0


def test_curve_by_the_rule_of_the_paper(graded: Path, call: Call) -> None:
    """Images that the query's captions vote for: a point of the curve is the metric of that name."""
    words = ("curve", graded / "a", "--protocol", "five", "--phi", "cider:split", "--m", "2,3", "--resamples", "20")
    content = call(*words, "--json").json
    assert (content["by_image"], content["non_gt"]) == (True, True)
    assert content["protocol"]["name"] == "five"
    assert content["protocol"]["tokens"] == {"cider:split": "captions in lower case, split at spaces"}
    metrics = "SR[cider:split, 3, by-image, non-gt]@5 SRhit[cider:split, 3, by-image, non-gt]@5"
    run = call(
        "evaluate", "--dataset", graded / "c.jsonl", "--scores", graded / "a.npy", "--metrics", metrics, "--json"
    )
    for family in ("SR", "SRhit"):
        expected = run.json["metrics"][f"t2i/{family}[cider:split, m=3, non-gt, by-image]@5"]["mean"]
        assert content["runs"]["a"][family][1]["mean"] == pytest.approx(expected)
    curve = call(*words)
    assert "m images that the captions of the query's image vote for by cider:split" in " ".join(curve.out.split())
    assert "Protocol five: Biten et al." in curve.out
    refused = call(*words, "--ground-truth")
    assert refused.err.startswith("error: --ground-truth contradicts the protocol five, which has the annotated items")

"""``crosslens curve --over gallery``: the contract, the table, the files, mistakes."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from .conftest import Call


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import crosslens as cl

    folder = tmp_path_factory.mktemp("curves")
    random = np.random.default_rng(0)
    dataset = cl.Dataset.of({f"i{n}": [f"c{n}"] for n in range(200)})
    for name, noise in (("good", 0.3), ("poor", 0.6)):
        scores = np.eye(200) + noise * random.standard_normal((200, 200))
        cl.evaluate(dataset, scores=scores.astype(np.float32), output=folder / name, resamples=20)
    return folder


def slow_hit(scores_above: list[int], gallery: int, size: int) -> float:
    """The chance that none of the items above is drawn, factor by factor."""
    chances = []
    for above in scores_above:
        chance = 1.0
        for step in range(size - 1):
            chance *= max(0, gallery - 1 - above - step) / (gallery - 1 - step)
        chances.append(chance)
    return float(np.mean(chances))


def test_contract(runs: Path, call: Call) -> None:
    import crosslens as cl

    words = ("--over", "gallery", "--metrics", "t2i/Hit@1", "--sizes", "10,50,150", "--json")
    content = call("curve", runs / "good", *words).json
    assert (content["over"], content["sizes"], content["galleries"]) == (
        "gallery",
        [10, 50, 150],
        {"good": {"t2i": 200}},
    )
    points = content["runs"]["good"]["t2i/Hit@1"]
    above = cl.Run.load(runs / "good").rankings["t2i"].above.tolist()
    for point, size in zip(points, (10, 50, 150), strict=True):
        assert point["size"] == size
        assert point["mean"] == pytest.approx(slow_hit(above, 200, size))
        assert point["low"] < point["mean"] < point["high"]
        assert point["extrapolated"] is False
    assert content["order_changes"] == []


def test_table_and_notes(runs: Path, call: Call) -> None:
    curve = call(
        "curve", runs / "good", runs / "poor", "--over", "gallery", "--metrics", "t2i/Hit@1 t2i/MedR", "--sizes",
        "20,200,2000", "--resamples", "3",
    )  # fmt: skip
    assert curve.code == 0, curve.err
    assert "Hit@1 against the size of the gallery, text → image" in curve.out
    rows = {line.split()[0]: line for line in curve.out.splitlines() if re.match(r" *[\d,]+ ", line)}
    assert "*" in rows["2,000"]
    assert "*" not in rows["200"]
    assert "In percent, MedR as a rank." in curve.out
    assert "Beyond a run's own gallery (*) figures are extrapolated" in curve.out
    assert "No two runs change places." in curve.out


def test_page_and_drawing(runs: Path, call: Call, tmp_path: Path) -> None:
    words = ("curve", runs / "good", runs / "poor", "--over", "gallery", "--resamples", "3", "--sizes", "10,200,1e4")
    page = tmp_path / "sizes.html"
    content = call(*words, "--metrics", "Hit@1", "--write", page, "--json").json
    assert content["files"] == [str(page)]
    text = page.read_text()
    assert text.count('<svg class="chart"') == 2, "both directions"
    assert "extrapolated" in text
    assert "http" not in text
    drawing = tmp_path / "hit.svg"
    outcome = call(*words, "--metrics", "t2i/Hit@1", "--write", drawing, "--json")
    assert outcome.json["runs"]["good"]["t2i/Hit@1"] == content["runs"]["good"]["t2i/Hit@1"], "the same again"
    root = ElementTree.fromstring(drawing.read_text())
    kinds = [element.get("class", "") for element in root.iter()]
    assert kinds.count("curve") == 2
    assert kinds.count("curve beyond") == 2
    assert kinds.count("point beyond") == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--over", "galery"], "unknown curve 'galery'"),
        (["--over", "gallery", "--phi", "cider:split"], "--phi is for curves over m"),
        (["--sizes", "10"], "--sizes is for curves over the gallery"),
        (["--over", "gallery", "--sizes", "ten"], "cannot read the sizes 'ten'"),
        (["--over", "gallery", "--write", "x.xyz"], "unknown form .xyz"),
        (["--over", "gallery", "--metrics", "NCS[cider]@10"], "has no closed form in smaller galleries"),
        (["--over", "gallery", "--metrics", "Recall@5", "--sizes", "900"], "is not extrapolated beyond the gallery"),
    ],
)
def test_mistakes(runs: Path, call: Call, words: list[str], message: str) -> None:
    outcome = call("curve", runs / "good", *words)
    assert outcome.code != 0
    assert message in outcome.err
    assert "Traceback" not in outcome.err

"""``crosslens perturb``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import crosslens as cl
from crosslens.perturbations import PERTURBATIONS

from .conftest import Call

ROWS = [
    {"image": "a", "captions": ["A dog runs over the grass.", "Two <b>dogs</b>"]},
    {"image": "b", "captions": ["42"]},
]


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    file = tmp_path / "captions.jsonl"
    file.write_text("\n".join(map(json.dumps, ROWS)))
    return file


def test_datasets_and_their_summary(call: Call, dataset: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "out", tmp_path / "changes.html"
    words = ("perturb", "--dataset", dataset, "--name", "char_swap,shuffle_all_words", "-o", out, "--seed", "3")
    done = call(*words, "--write", page, "--json")
    assert done.code == 0
    assert done.json["files"] == [str(out), str(page)]
    assert done.json["perturbations"]["char_swap"]["applied"] == 2
    loaded = cl.load_dataset(str(dataset))
    expected = cl.perturb("char_swap", loaded, seed=3)
    assert cl.load_dataset(out / "char_swap").texts == tuple(entry.text for entry in expected)
    assert "Two &lt;" in page.read_text(encoding="utf-8")
    again = call(*words, "--show", "1")
    assert again.code == 0
    assert again.out.count("\n  + ") == 2
    assert "2 of 3 captions changed (66.7%)" in again.out
    table = call(*words)
    assert "no two different letters side by side" in table.out
    assert call("data", "describe", out / "char_swap").code == 0
    assert call("perturb", "--dataset", dataset, "--name", "char_swap", "-o", out).code == 5
    assert call("perturb", "--dataset", dataset, "--name", "char_swap", "-o", out, "--overwrite").code == 0


def test_a_look_without_writing(call: Call, dataset: Path) -> None:
    done = call("perturb", "--dataset", dataset, "--name", "distraction_true,missing_char", "--show", "1")
    assert "  + A dog runs over the grass[ and true is true.]" in done.out
    as_json = call(
        "perturb", "--dataset", dataset, "--name", "missing_char", "--option", "k=2", "--show", "1", "--json"
    )
    (example,) = as_json.json["shown"]["missing_char"]
    assert example["caption"] == "a#0"
    assert len(example["edits"]) == 2


def test_all_are_listed(call: Call) -> None:
    text = call("perturb", "--list").out
    listed = call("perturb", "--list", "--json").json
    names = {entry["name"] for entry in listed["perturbations"]}
    assert {entry.name for entry in PERTURBATIONS} | {"blur"} <= names
    assert all(f"  {name}" in text for name in names)
    assert len(listed["groups"]["all"]) == 13
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--name", "char_swp"], 2, "did you mean char_swap"),
        (["--name", "char_swap", "--option", "k"], 2, "not KEY=VALUE"),
        (["--name", "char_swap", "--option", "k=two"], 2, "a whole number"),
        (["--name", "char_swap", "--option", "k=1", "--option", "k=2"], 2, "given twice"),
        (["--name", "distraction_true", "--option", "k=2"], 2, "no option 'k'"),
        (["--name", "blur@3"], 2, "pass -o"),
        (["--name", "blur@7"], 2, "severity '7'"),
    ],
)
def test_mistakes(call: Call, dataset: Path, words: list[str], code: int, message: str) -> None:
    done = call("perturb", "--dataset", dataset, *words)
    assert (done.code, message in done.err) == (code, True), done.err
    assert call("perturb").code == 2


def test_a_page_is_not_replaced_unasked(call: Call, dataset: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("mine")
    assert call("perturb", "--dataset", dataset, "--name", "char_swap", "--write", page).code == 5
    assert page.read_text() == "mine"
    assert call("perturb", "--dataset", dataset, "--name", "char_swap", "--write", page, "--overwrite").code == 0


def test_severities_to_look_at(call: Call, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pip install 'crosslens[scenes]'")
    for name in ("a", "b"):
        image.new("RGB", (40, 30), "red").save(tmp_path / f"{name}.png")
    file = tmp_path / "captions.jsonl"
    file.write_text("\n".join(json.dumps({**row, "file": f"{row['image']}.png"}) for row in ROWS))
    sheet = tmp_path / "sheet.png"
    here = ("perturb", "--dataset", file, "--image-folder", tmp_path)
    words = (*here, "--name", "blur@2,crop", "--sheet", sheet)
    done = call(*words, "--json")
    assert done.code == 0, done.err
    assert done.json["files"] == [str(sheet)]
    with image.open(sheet) as drawn:
        wide, high = drawn.size
    assert (wide // 6, high) == (187, 4 * (18 + 30 + 6) + 6), "two pictures by two changes, six fields in a row"
    assert call(*words).code == 5
    assert call(*words, "--overwrite").code == 0
    assert "changes captions" in call(*here, "--name", "char_swap", "--sheet", sheet).err
    odd = call(*here, "--name", "blur", "--sheet", tmp_path / "sheet.txt")
    assert (odd.code, ".png" in odd.err) == (2, True)
    (tmp_path / "a.png").write_bytes(b"no picture")
    bad = call(*here, "--name", "blur", "--sheet", tmp_path / "other.png")
    assert (bad.code, "image 'a' is not a readable image" in bad.err) == (3, True), bad.err

"""``crosslens gallery`` as a person calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

import crosslens as cl

from .conftest import IMAGES, PER_IMAGE, Call


def test_two_models_in_the_terminal(runs: tuple[Path, Path], call: Call) -> None:
    outcome = call("gallery", *runs, "--query", "the picture-07")
    assert outcome.code == 0
    assert max(map(len, outcome.out.splitlines())) <= 80
    assert f"Overlap@5 over all {IMAGES * PER_IMAGE} queries" in outcome.out
    content = call("gallery", *runs, "--query", "the picture-07", "--json").json
    assert content["models"] == ["a", "b"]
    (query,) = content["queries"]
    assert query["text"] == "the picture-07"
    for folder, ranked_list in zip(runs, query["lists"], strict=True):
        ranking = cl.Run.load(folder).rankings["t2i"]
        assert [(item["item"], item["score"]) for item in ranked_list["items"]] == ranking.top(query["query"], 5)


def test_the_page_says_what_it_lacks(runs: tuple[Path, Path], tmp_path: Path, call: Call) -> None:
    page = tmp_path / "top.html"
    outcome = call("gallery", *runs, "--hardest", "2", "--random", "1", "--k", "3", "--write", page)
    assert outcome.code == 0
    text = page.read_text(encoding="utf-8")
    assert text.count("<h2>") == 3
    assert "the pictures are missing: " in text
    assert call("gallery", *runs, "--write", page).code == 5
    again = call("gallery", *runs, "--write", page, "--overwrite", "--direction", "i2t", "--json")
    assert again.json["files"] == [str(page)]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--query", "zebra"], "no t2i query has the id 'zebra' or contains it"),
        (["--k", "11"], "keeps the first 10 items"),
        (["--write", "page.svg"], "the result has no chart for a .svg file"),
        (["--direction", "both"], "unknown direction 'both'"),
    ],
)
def test_bad_input(
    runs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call, words: list[str],
    problem: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    outcome = call("gallery", *runs, *words)
    assert outcome.code in (2, 3)
    assert problem in outcome.err
    assert not list(tmp_path.iterdir())

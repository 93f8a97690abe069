"""Captions, ids and names that somebody might write on purpose: refused in words, or carried through unharmed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crosslens.core import CrosslensError
from crosslens.data import load_dataset
from crosslens.language import tokenize
from crosslens.similarity import relevance_matrix
from crosslens.values import Dataset, RankedLists, Relevance
from tests.hostile.conftest import Call, Refuses

TEXTS = {
    "zero byte": "A\x00dog",
    "escape sequence": "\x1b[2J\x1b]0;title\x07A dog",
    "argument mark": "\x1foverwrite=True\x1f",
    "right to left": "\u202egod A\u202c",
    "joined emoji": "👩‍👩‍👧‍👦" * 50,
    "combining marks": "a" + "\u0301" * 5000,
    "no letters": "!?…",
    "zero width": "\u200b\u200b",
    "line separators": "A\u2028dog\u2029runs\x85",
    "carriage returns": "A\rdog\r\nruns",
    "tabs": "A\tdog",
    "quotes": '"\'`\\"',
    "markup": "<script>alert(1)</script>&amp;[link](javascript:x)",
    "LaTeX": "\\input{/etc/passwd} $ # % _ {",
    "formula": "=cmd|' /C calc'!A0",
    "format": "{} {0} %s %n {image!r}",
    "one long word": "x" * 99_000,
    "many words": "a dog " * 16_000,
    "many sentences": "A dog. " * 14_000,
    "brackets": "(" * 50_000,
    "backslashes": "\\" * 90_000,
    "digits": "9" * 90_000,
    "astral": "\U0010ffff\U000e0001",
    "not a character": "\ufffe\uffff",
    "private use": "\ue000\uf8ff",
    "half-width": "Ａ　ｄｏｇ",
    "Turkish": "İıŞ ß ſ ﬁ",
}
"""Texts that UTF-8 can hold, below the limit for a caption."""
UNFIT = {"high surrogate": "a\ud800", "low surrogate": "\udfffb", "escaped byte": "caf\udce9"}
"""Texts that no file can hold."""


@pytest.mark.parametrize("text", TEXTS)
def test_caption(text: str, tmp_path: Path, call: Call) -> None:
    """A caption goes through a file of every kind and comes back as it was."""
    row = {"image": "a", "text": TEXTS[text]}
    (tmp_path / "d.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    dataset = load_dataset(tmp_path / "d.jsonl")
    assert dataset.texts == (TEXTS[text],)
    assert Dataset.load(dataset.save(tmp_path / "saved")).texts == dataset.texts
    outcome = call("data", "convert", tmp_path / "d.jsonl", tmp_path / "coco.json", "--to", "coco")
    assert outcome.code == 0, outcome.err
    assert load_dataset(tmp_path / "coco.json").texts == dataset.texts
    assert dataset.fingerprint == Dataset.load(tmp_path / "saved").fingerprint


@pytest.mark.parametrize("text", TEXTS)
def test_caption_in_words(text: str) -> None:
    dataset = Dataset.of({"a": [TEXTS[text], "A dog."], "b": ["A cat runs.", TEXTS[text]]})
    assert relevance_matrix(dataset, "cider").shape == (2, 4)
    assert isinstance(tokenize(TEXTS[text]), list | tuple)


@pytest.mark.parametrize("text", TEXTS)
def test_id(text: str, tmp_path: Path, call: Call) -> None:
    """An id of any text is carried through every format; lines with tabs refuse what would break them."""
    rows = [{"image": TEXTS[text], "text": "A dog."}, {"image": "b", "text": "A cat."}]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert call("data", "describe", tmp_path / "d.jsonl").code == 0
    for kind, ending in (("coco", "json"), ("plain", "jsonl"), ("plain", "csv"), ("flickr", "txt")):
        file = tmp_path / f"{kind}.{ending}"
        outcome = call("data", "convert", tmp_path / "d.jsonl", file, "--to", kind)
        if kind == "flickr" and text in ("tabs", "carriage returns"):
            assert (outcome.code, file.exists()) == (3, False)
            assert "holds a tab or line break" in outcome.err
            continue
        assert outcome.code == 0, outcome.err
        loaded = load_dataset("flickr", captions=file) if kind == "flickr" else load_dataset(file)
        expected = TEXTS[text].strip() if kind == "flickr" else TEXTS[text]  # its lines may have blanks around them
        assert loaded.image_ids == (expected, "b")


@pytest.mark.parametrize("text", [*UNFIT, "empty", "blank", "too long"])
def test_unfit_caption(text: str, refuses: Refuses) -> None:
    content = {**UNFIT, "empty": "", "blank": " \n", "too long": "x" * 100_001}[text]
    refuses(lambda: Dataset.of({"a": [content]}))


@pytest.mark.parametrize("text", UNFIT)
def test_unfit_id(text: str, refuses: Refuses) -> None:
    refuses(lambda: Dataset.of({UNFIT[text]: ["A dog."]}))
    refuses(lambda: Relevance.of({UNFIT[text]: ["x"]}))
    refuses(lambda: Relevance.of({"q": [UNFIT[text]]}))
    refuses(lambda: RankedLists.of({"q": [UNFIT[text]]}))


@pytest.mark.parametrize("text", UNFIT)
def test_unfit_word_on_the_command_line(text: str, tmp_path: Path, call: Call) -> None:
    outcome = call("data", "describe", UNFIT[text])
    assert outcome.code == 2
    assert "is not UTF-8" in outcome.err
    (tmp_path / "d.jsonl").write_text('{"image": "a", "text": "A dog."}\n', encoding="utf-8")
    outcome = call("data", "convert", tmp_path / "d.jsonl", tmp_path / "x", "--to", UNFIT[text])
    assert outcome.code == 2
    assert "is not UTF-8" in outcome.err


@pytest.mark.parametrize("text", [*TEXTS, *UNFIT])
def test_message(text: str) -> None:
    """Whatever a message quotes, it can be rendered for every audience."""
    content = {**TEXTS, **UNFIT}[text]
    error = CrosslensError(f"the value is {content}", fix=content)
    assert str(error)
    assert error.render(lambda name, value: f"--{name}")

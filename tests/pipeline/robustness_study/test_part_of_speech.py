"""Which words an edit touches, and what it costs by their part of speech."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crosslens.encode import Cache
from crosslens.language import Parse
from crosslens.perturbations import Caption, Edit
from crosslens.pipeline.robustness_study.tables import parts_of
from tests.pipeline.robustness_study.letters import Letters, captions, text_study


def parsed(text: str, parts: str) -> Caption:
    words = tuple(text.split())
    empty = ("",) * len(words)
    return Caption(text, parse=Parse(words, empty, tuple(parts.split()), empty, empty, (0,) * len(words)))


def test_the_part_of_speech_of_an_edit() -> None:
    caption = parsed("A old dog runs", "DET ADJ NOUN VERB")
    assert parts_of(caption, [Edit(6, 9, "dog", "cat")]) == {"NOUN"}
    assert parts_of(caption, [Edit(7, 7, "", "x")]) == {"NOUN"}
    assert parts_of(caption, [Edit(9, 9, "", "s")]) == {"NOUN"}
    assert parts_of(caption, [Edit(0, 0, "", "x")]) == {"DET"}
    assert parts_of(caption, [Edit(0, 1, "A", "An"), Edit(2, 5, "old", "aged")]) == {"ADJ"}
    assert parts_of(caption, [Edit(0, 1, "A", "Q")]) == {"DET"}
    assert parts_of(caption, [Edit(2, 5, "old", "new"), Edit(10, 14, "runs", "sits")]) == {"ADJ", "VERB"}


def test_words_that_cost(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    result = text_study(captions(30), Letters(), "char_swap,missing_char")
    rows = result.words.filter(pl.col("perturbation") == "typos")
    single = result.words.filter(pl.col("perturbation") != "typos")
    assert rows["captions"].sum() == single["captions"].sum() >= 60
    nouns = single.filter(pl.col("part_of_speech") == "NOUN")
    pooled = rows.filter(pl.col("part_of_speech") == "NOUN")
    assert pooled["change"][0] == pytest.approx(np.average(nouns["change"], weights=nouns["captions"]))
    assert Cache(None).folder.exists()

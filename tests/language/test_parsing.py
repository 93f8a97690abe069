"""Parses: equal to spaCy's own, whatever the processes and the cache; kept, resumed, mended."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosslens.core import InputError, MissingExtraError, UsageError
from crosslens.language import Parse, find_pipeline, parse_texts, parsing, spacy_pipeline as pipelines
from crosslens.language.parse import repaired_lemma
from crosslens.language.parsing import ParseCache
from tests.language.pipelines import needs_a_pipeline
from tests.tables import each_row

TEXTS = ["A red kite over the sea.", "Two foxes riding a tram", "", "A red kite over the sea.", "Café №5 — “open”!"]


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "BATCH", 2)
    monkeypatch.setattr(parsing, "_WORTH_A_PROCESS", 0)


@needs_a_pipeline
def test_a_parse_is_what_spacy_says(tmp_path: Path) -> None:
    nlp = find_pipeline().load()
    for text, parse in zip(TEXTS, parse_texts(TEXTS, cache=tmp_path), strict=True):
        document = nlp(text)
        assert list(parse.words) == [token.text for token in document]
        assert list(parse.pos) == [token.pos_ for token in document]
        assert list(parse.tags) == [token.tag_ for token in document]
        assert list(parse.arcs) == [token.dep_ for token in document]
        assert list(parse.heads) == [token.head.i for token in document]
        assert parse.noun_chunks == tuple(" ".join(token.text for token in chunk) for chunk in document.noun_chunks)
    assert list(parse_texts(TEXTS, cache=tmp_path)[1].lemmas) == ["two", "fox", "ride", "a", "tram"]


@pytest.mark.slow
@needs_a_pipeline
@pytest.mark.usefixtures("small_batches")
def test_processes_and_caches_change_nothing(tmp_path: Path) -> None:
    alone = parse_texts(TEXTS, cache=False, threads=1)
    together = parse_texts(TEXTS, cache=tmp_path, threads=2)
    again = parse_texts(TEXTS[::-1], cache=tmp_path)
    assert list(alone) == list(together) == list(again)[::-1]
    assert len(alone) == len(TEXTS)


@needs_a_pipeline
@pytest.mark.usefixtures("small_batches")
def test_a_second_run_parses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = parse_texts(TEXTS, cache=tmp_path, threads=1)
    monkeypatch.setattr(parsing, "parse_batches", lambda *_: pytest.fail("parsed again"))
    assert list(parse_texts(TEXTS, cache=tmp_path)) == list(first)


@needs_a_pipeline
@pytest.mark.usefixtures("small_batches")
def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"A dog and {number} cats." for number in range(6)]
    real = parsing.parse_batches
    asked: list[list[str]] = []

    def dies_after_one(batches, pipeline, workers):  # type: ignore[no-untyped-def]
        yield next(iter(real(batches, pipeline, workers)))
        raise KeyboardInterrupt

    def watched(batches, pipeline, workers):  # type: ignore[no-untyped-def]
        asked.extend(batches)
        return real(batches, pipeline, workers)

    monkeypatch.setattr(parsing, "parse_batches", dies_after_one)
    with pytest.raises(KeyboardInterrupt):
        parse_texts(texts, cache=tmp_path, threads=1)
    monkeypatch.setattr(parsing, "parse_batches", watched)
    resumed = parse_texts(texts, cache=tmp_path, threads=1)
    assert asked == [texts[2:4], texts[4:]]
    assert list(resumed) == list(parse_texts(texts, cache=False, threads=1))


@needs_a_pipeline
@pytest.mark.parametrize("damage", [b"", b"PAR1 nonsense", None])
def test_a_damaged_file_is_said_removed_and_parsed_again(
    tmp_path: Path, damage: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    first = parse_texts(TEXTS, cache=tmp_path, threads=1)
    (file,) = ParseCache(find_pipeline(), tmp_path).folder.glob("*.parquet")
    content = file.read_bytes()
    file.write_bytes(content[:-9] + b"x" + content[-8:] if damage is None else damage)
    assert list(parse_texts(TEXTS, cache=tmp_path, threads=1)) == list(first)
    assert "damaged cache file was removed" in capsys.readouterr().err
    assert parse_texts(TEXTS, cache=tmp_path)
    assert capsys.readouterr().err == ""


@needs_a_pipeline
def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(InputError, match="row 1: None is not a text"):
        parse_texts(["a", None])  # type: ignore[list-item]
    with pytest.raises(InputError, match="one text where a list"):
        parse_texts("a dog")
    with pytest.raises(UsageError, match="threads 0"):
        parse_texts(["a"], threads=0)


def test_without_spacy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines, "installed_version", lambda package: None)
    with pytest.raises(MissingExtraError) as caught:
        find_pipeline()
    assert caught.value.fix == "pip install 'crosslens[language]'"


def test_without_a_pipeline_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines, "installed_version", lambda package: "3.8.1" if package == "spacy" else None)
    with pytest.raises(MissingExtraError, match="en_core_web_sm") as caught:
        find_pipeline()
    assert "python -m spacy download en_core_web_sm" in str(caught.value.fix)
    with pytest.raises(MissingExtraError, match="en_core_web_md"):
        find_pipeline("en_core_web_md")


@each_row(
    ("word", "lemma", "tag", "mended"),
    [
        ("riding", "rid", "VBG", "ride"),
        ("Rides", "rid", "VBZ", "ride"),
        ("stared", "star", "VBD", "stare"),
        ("ridding", "rid", "VBG", "rid"),
        ("running", "run", "VBG", "run"),
        ("eating", "eat", "VBG", "eat"),
        ("watches", "watch", "VBZ", "watch"),
        ("goes", "go", "VBZ", "go"),
        ("playing", "play", "VBG", "play"),
        ("kites", "kite", "NNS", "kite"),
        ("geese", "geese", "NNS", "goose"),
        ("people", "people", "NNS", "people"),
    ],
)
def test_lemmas_that_spelling_rules_out_are_mended(word: str, lemma: str, tag: str, mended: str) -> None:
    assert repaired_lemma(word, lemma, tag) == mended


def test_a_parse_knows_its_chunks() -> None:
    parse = Parse(["a", "dog", "barks"], ["a", "dog", "bark"], ["DET", "NOUN", "VERB"], ["DT", "NN", "VBZ"],
                  ["det", "nsubj", "ROOT"], [1, 2, 2], [0], [2])  # fmt: skip
    assert parse.noun_chunks == ("a dog",)
    assert len(parse) == 3


def test_a_pipeline_without_spacy_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from crosslens.language import spacy_pipeline

    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match="spacy"):
        spacy_pipeline._loaded("a pipeline that is not loaded yet")

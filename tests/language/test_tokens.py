"""Tokens, held against what the captioning package's own tokenizer gives."""

from __future__ import annotations

import gzip
import importlib.util
import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from crosslens.core import UnknownNameError
from crosslens.language import tokenize, tokenizer
from crosslens.language.tokens import PUNCTUATION, TOKENIZERS, ptb_tokens
from tests.tables import each_row, rest_slow

from .make_ptb_golden import GOLDEN as FILE, reference_tokens

GOLDEN = json.loads(FILE.read_text(encoding="utf-8"))


@each_row(("text", "expected"), GOLDEN, ids=[text[:40] for text, _ in GOLDEN])
def test_as_the_reference_tokenizer(text: str, expected: list[str]) -> None:
    assert ptb_tokens(text) == expected


@pytest.fixture(scope="session")
def jar() -> None:
    if shutil.which("java") is None or importlib.util.find_spec("pycocoevalcap") is None:
        pytest.skip("needs Java and pip install pycocoevalcap")


def coco(data: Path) -> list[str]:
    with gzip.open(data / "coco_karpathy_test" / "captions.tsv.gz", "rt", encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t")[2] for line in file][1:]


def flickr(data: Path) -> list[str]:
    lines = (data / "flickr8k" / "Flickr8k.token.txt").read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[1] for line in lines]


def some_of_flickr(data: Path) -> list[str]:
    return flickr(data)[::8]


@pytest.mark.usefixtures("jar")
@pytest.mark.parametrize("read", rest_slow([some_of_flickr, flickr, coco]))
def test_equal_on_every_caption_of_a_real_dataset(shared_data: Path, read: object) -> None:
    assert callable(read)
    texts = read(shared_data)
    expected = reference_tokens(texts, apart=False)
    assert [
        text
        for text, tokens, expected_tokens in zip(texts, tokenize(texts), expected, strict=True)
        if tokens != expected_tokens
    ] == []


@pytest.mark.slow
@pytest.mark.usefixtures("jar")
def test_golden_file_is_what_the_reference_gives() -> None:
    assert reference_tokens([text for text, _ in GOLDEN], apart=True) == [tokens for _, tokens in GOLDEN]


@given(st.text())
def test_any_text_gives_small_tokens_without_space_or_punctuation(text: str) -> None:
    for token in ptb_tokens(text):
        assert token
        assert token.split() == [token]
        assert token not in PUNCTUATION


WORDS = st.lists(st.from_regex(r"[A-Za-z]{2,8}", fullmatch=True), max_size=8)


@given(WORDS)
def test_plain_words_pass_unchanged(words: list[str]) -> None:
    plain = [word for word in words if word.lower() not in {"cannot", "gonna", "gotta", "gimme", "lemme", "wanna"}]
    assert ptb_tokens(" ".join(plain)) == [word.lower() for word in plain]


def test_split_cuts_at_white_space_only() -> None:
    assert tokenizer("split")("A man's dog,  two cats.") == ["a", "man's", "dog,", "two", "cats."]


def test_unknown_tokenizer_names_the_known() -> None:
    with pytest.raises(UnknownNameError, match="unknown tokenizer 'ptbb'"):
        tokenizer("ptbb")
    assert set(TOKENIZERS) == {"ptb", "split"}

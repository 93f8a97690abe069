"""Every input that is an array, with every hostile array."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from crosslens.data import load_dataset
from crosslens.pipeline import evaluate
from crosslens.similarity import relevance_matrix
from crosslens.values import Dataset, Embeddings, Relevance
from tests.hostile.conftest import Call, Refused, Refuses
from tests.hostile.inputs import ARRAYS, SPECIAL, npy

IMAGES = [str(number) for number in range(4)]
ROWS = [{"image": image, "text": f"Caption {image}."} for image in IMAGES]
GOOD = npy(np.eye(4, dtype=np.float32) + 0.1)
INPUTS: dict[str, tuple[str, ...]] = {
    "scores": ("--scores", "{hostile}"),
    "image embeddings": ("--image-embeddings", "{hostile}", "--caption-embeddings", "{good}"),
    "caption embeddings": ("--image-embeddings", "{good}", "--caption-embeddings", "{hostile}"),
    "similarity": ("--scores", "{good}", "--metrics", "NCS[mine]@1", "--phi", "mine={hostile}"),
    "relevance encoder": (
        "--scores", "{good}", "--metrics", "DCGcm[scores_from=mine]@1", "--scores-from", "mine={hostile}",
    ),
}  # fmt: skip
"""Input → the flags of evaluate."""
LATE = ("NaN", "infinity")
"""A matrix may be larger than memory: its numbers are checked as they are ranked, after the output folder is begun."""


@pytest.fixture
def words(tmp_path: Path) -> Callable[[str], list[str]]:
    """The words of an evaluation whose one input is ``hostile.npy``."""
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    (tmp_path / "good.npy").write_bytes(GOOD)
    names = {"hostile": tmp_path / "hostile.npy", "good": tmp_path / "good.npy"}

    def build(kind: str) -> list[str]:
        flags = [flag.format(**names) for flag in INPUTS[kind]]
        return ["evaluate", "--dataset", str(tmp_path / "d.jsonl"), *flags, "-o", str(tmp_path / "out")]

    return build


@pytest.mark.parametrize("content", ARRAYS)
@pytest.mark.parametrize("kind", INPUTS)
def test_content(
    kind: str, content: str, words: Callable[[str], list[str]], tmp_path: Path, refused: Refused, call: Call
) -> None:
    (tmp_path / "hostile.npy").write_bytes(ARRAYS[content])
    if content in LATE:
        assert call(*words(kind)).code == 3
        assert not (tmp_path / "out" / "run.json").exists()
    else:
        refused(*words(kind))
    assert not (tmp_path / "stolen").exists()
    assert not Path("stolen").exists()


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("kind", INPUTS)
def test_special_file(
    kind: str, special: str, words: Callable[[str], list[str]], tmp_path: Path, refused: Refused
) -> None:
    SPECIAL[special](tmp_path / "hostile.npy")
    refused(*words(kind))


@pytest.mark.parametrize("kind", INPUTS)
def test_good_array_is_taken(kind: str, words: Callable[[str], list[str]], tmp_path: Path, call: Call) -> None:
    (tmp_path / "hostile.npy").write_bytes(GOOD)
    outcome = call(*words(kind))
    assert outcome.code == 0, outcome.err


@pytest.mark.parametrize("content", ARRAYS)
def test_stored_array(content: str, tmp_path: Path, refuses: Refuses) -> None:
    """In the folder that crosslens wrote, too."""
    Embeddings.of(np.eye(4, dtype=np.float32)).save(tmp_path / "e")
    (tmp_path / "e" / "vectors.npy").write_bytes(ARRAYS[content])
    refuses(lambda: Embeddings.load(tmp_path / "e"))
    Relevance.of({"a": ["x"], "b": ["y"]}).save(tmp_path / "r")
    (tmp_path / "r" / "grades.npy").write_bytes(ARRAYS[content])
    refuses(lambda: Relevance.load(tmp_path / "r"))


@pytest.mark.parametrize("content", ARRAYS)
def test_precomputed_features(content: str, tmp_path: Path, refuses: Refuses) -> None:
    (tmp_path / "test_caps.txt").write_text("A dog.\nA cat.\nA cow.\nA pig.\n" * 5, encoding="utf-8")
    (tmp_path / "test_ims.npy").write_bytes(ARRAYS[content])
    if content not in PLAIN_FEATURES:
        refuses(lambda: load_dataset("precomputed", folder=tmp_path, split="test"))


PLAIN_FEATURES = ("texts", "truths", "complex", "dates", "four axes", "no columns", "NaN", "infinity", "type a list")
"""Four rows, which the captions fit: what is in them is checked by whoever reads the features."""

VALUES = {
    "None": None,
    "text": "scores",
    "list of texts": [["a"] * 4] * 4,
    "ragged": [[1.0, 2.0], [1.0]],
    "objects": np.full((4, 4), None),
    "NaN": np.full((4, 4), np.nan),
    "mapping": {"a": 1},
    "function": len,
    "empty": np.zeros((0, 0)),
}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("keyword", ["scores", "images"])
def test_value_from_python(keyword: str, value: str, refuses: Refuses) -> None:
    dataset = Dataset.of({row["image"]: [row["text"]] for row in ROWS})
    inputs = {keyword: VALUES[value], **({"captions": np.eye(4)} if keyword == "images" else {})}
    refuses(lambda: evaluate(dataset, **inputs))


@pytest.mark.parametrize("value", [value for value in VALUES if value not in ("None", "mapping", "function", "text")])
def test_similarity_from_python(value: str, refuses: Refuses) -> None:
    dataset = Dataset.of({row["image"]: [row["text"]] for row in ROWS})
    refuses(lambda: relevance_matrix(dataset, np.asarray(VALUES[value], object if value == "ragged" else None)))

"""Every kind of finding, enrolled by being registered: found where planted, silent where it is not.

The plants are those of the kinds, on worlds of ``reproduce/claims_worlds.py``. The proof with other plants and an
oracle is ``make claims``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np
import polars as pl
import pytest

from crosslens.analyze import Planted, Subject
from crosslens.core import FINDING_KINDS, Finding
from crosslens.storage import Array, random_stream
from tests.extras import skip_without

skip_without("all", "py3langid")

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "reproduce"))
import claims_audit  # noqa: E402
import claims_worlds  # noqa: E402

sys.path.pop(0)

KINDS = [entry.name for entry in FINDING_KINDS]
COMPARING = [entry.name for entry in FINDING_KINDS if entry.details["stage"] == "comparison"]
"""Kinds that are said of two models."""
QUICK = ("blank-vectors", "hub", "misaligned", "same-caption", "swapped-captions")
PICTURED = ("same-image", "object-size", "text", "twins", "missing-positives")


@pytest.fixture(scope="module", autouse=True)
def drawn(tmp_path_factory: pytest.TempPathFactory) -> None:
    claims_worlds.CACHE = tmp_path_factory.mktemp("claims")


@cache
def clean(world: str) -> Subject:
    """A world without a defect: vectors that bind facts, or drawn scenes with a perfect model."""
    if world == "scenes":
        subject: Subject = claims_worlds.scenes_world(0, "v1", "perfect", 130).subject()
        return subject
    grammar = claims_worlds.grammar_world(0)
    if world == "sizes":
        grammar = with_sizes(grammar)
    return replace(grammar, score="dot" if world == "inner products" else grammar.score).subject()


def with_sizes(world: Any) -> Any:
    """The captions state a size beside the colour; the model adds up the vectors of their words."""
    sizes = ["large", "small"]
    texts = [
        text.replace(colour, f"{sizes[int(image) % 2]} {colour}")
        for text, image in zip(world.dataset.texts, world.dataset.captions["image"], strict=True)
        for colour in claims_worlds.GRAMMAR["colour"] if colour in text.split()
    ]  # fmt: skip

    def encode(texts: Sequence[str]) -> Array:
        vectors = [sum(claims_worlds.hashed(word, 64) for word in text.split()) for text in texts]
        return claims_worlds.unit(np.array(vectors))

    captions = encode(texts)
    images = claims_worlds.unit(captions.reshape(len(world.images), -1, 64).mean(axis=1))
    table = world.dataset.captions.with_columns(pl.Series("text", texts))
    dataset = replace(world.dataset, captions=table)
    return replace(world, dataset=dataset, images=images, captions=captions, encode=encode)


def suited(kind: str) -> str:
    """The world in which a kind can be planted."""
    return "scenes" if kind in PICTURED else {"norms": "inner products", "size": "sizes"}.get(kind, "grammar")


@cache
def planted(kind: str) -> Planted:
    """The strongest defect of a kind."""
    entry = FINDING_KINDS[kind]
    result: Planted = entry.value(clean(suited(kind)), entry.details["strengths"][-1], random_stream(0, "kinds", kind))
    return result


@cache
def findings_of_planted(kind: str) -> Sequence[Finding]:
    """What is said where a kind is planted; of a clean world for its name."""
    subject = clean(kind) if kind in TRUE_OF_CLEAN else planted(kind).subject
    stages = () if kind in TRUE_OF_CLEAN else (FINDING_KINDS[kind].details["stage"],)
    return claims_audit.findings_of({"model": subject}, {*claims_audit.LEFT_OUT} - {*stages})


def each_kind(names: Sequence[str]) -> Any:
    """A test of each kind; those that take long are slow tests."""
    return pytest.mark.parametrize(
        "kind", [pytest.param(kind, marks=() if kind in QUICK else pytest.mark.slow) for kind in names]
    )


def ids_of(entry: Mapping[str, Any]) -> set[str]:
    return set(entry["items"]) if "items" in entry else {entry[key] for key in ("query", "item") if key in entry}


@pytest.mark.parametrize("kind", KINDS)
def test_registration(kind: str) -> None:
    details = FINDING_KINDS[kind].details
    fields = [name for _, name, _, _ in Formatter().parse(details["sentence"]) if name]
    assert fields, "a sentence without a figure"
    assert details["sentence"][0].isupper() or details["sentence"].startswith("{")
    strengths = details["strengths"]
    assert list(strengths) == sorted(set(strengths))
    assert strengths
    assert details["strength_words"].format(strengths[-1])
    assert set(details["causes"]) <= set(KINDS)
    assert set(details["silences"]) <= {"*", *KINDS}
    assert FINDING_KINDS[kind].value.__doc__


@each_kind([kind for kind in KINDS if kind not in COMPARING])
def test_found_where_planted(kind: str) -> None:
    findings = [finding for finding in findings_of_planted(kind) if finding.kind == kind]
    assert findings, [finding.text for finding in findings_of_planted(kind)]
    for finding in findings:
        assert "{" not in finding.text
        assert finding.effect.low is None or finding.effect.low <= finding.effect.value <= finding.effect.high
        affected = planted(kind).ids
        ids = [ids_of(entry) for entry in finding.evidence]
        if affected and ids:
            assert np.mean([bool(entry & affected) for entry in ids]) >= 0.9, finding.text


@each_kind([kind for kind in KINDS if kind not in COMPARING])
def test_evidence(kind: str) -> None:
    subject = planted(kind).subject
    ids = {*subject.dataset.image_ids, *subject.dataset.caption_ids}
    for finding in findings_of_planted(kind):
        for entry in finding.evidence:
            assert set(entry) in ({"query"}, {"item"}, {"query", "item"}, {"items"}), finding.text
            assert ids_of(entry) <= ids, finding.text


@each_kind([kind for kind in KINDS if kind not in COMPARING])
def test_silent_on_a_clean_world(kind: str) -> None:
    texts = [f.text for f in findings_of_planted(suited(kind)) if f.kind == kind and f.certainty != "open"]
    assert not texts or kind in TRUE_OF_CLEAN[suited(kind)], texts


@each_kind([kind for kind in KINDS if kind not in COMPARING])
def test_silent_where_something_else_is_planted(kind: str) -> None:
    causes = {kind, *FINDING_KINDS[kind].details["causes"], *TRUE_OF_CLEAN[suited(kind)]}
    others = [
        f"{f.kind}: {f.text}" for f in findings_of_planted(kind) if f.kind not in causes and f.certainty != "open"
    ]
    assert not others


TRUE_OF_CLEAN: Mapping[str, frozenset[str]] = {
    "grammar": frozenset({"group"}),  # captions of the third wording say less, and hit less often
    "inner products": frozenset({"group"}),
    "sizes": frozenset({"order", "position"}),  # sums of words know no order
    # A short caption may be that of two scenes, and may not be understood with a typing error.
    "scenes": frozenset({"same-caption", "typos"}),
}
"""What is true of a world in which nothing is planted."""

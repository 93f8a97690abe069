"""A query explained alone: the same as with the objects of the whole dataset, without reading them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.explanations import DatasetObjects, explain_queries, objects as objects_module

NOUNS = ("dog", "cat", "bench", "kite", "train", "boat", "horse", "umbrella")


def captioned(images: int = 40) -> tuple[cl.Dataset, cl.Run]:
    """Images that only captions describe, and a run of drawn scores."""
    random = np.random.default_rng(5)
    first, second = random.choice(NOUNS, (2, images))
    captions = {f"i{n}": [f"a {first[n]} and two {second[n]}s", f"a red {first[n]}"] for n in range(images)}
    dataset = cl.Dataset.of(captions)
    scores = random.normal(size=(images, 2 * images)).astype(np.float32)
    return dataset, cl.evaluate(dataset, scores=scores, metrics="Hit@1", resamples=0)


def test_only_the_captions_of_compared_images_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
    dataset, run = captioned()
    parsed: list[str] = []
    parse = objects_module.parse_texts

    def counting(texts: Any, **options: Any) -> Any:
        parsed.extend(texts)
        return parse(texts, **options)

    monkeypatch.setattr(objects_module, "parse_texts", counting)
    for query, direction in (("i3#0", "t2i"), ("i7", "i2t")):
        parsed.clear()
        alone = explain_queries(run, dataset, [query], direction)[0]
        assert len(parsed) == 4, "two images with two captions each"
        whole = DatasetObjects(dataset)
        assert len(whole.objects) > 40, "read before, so that nothing is left out"
        assert alone.as_dict() == explain_queries(run, dataset, [query], direction, objects=whole)[0].as_dict()

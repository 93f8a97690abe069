"""``protocol=`` of ``cl.explain``, ``cl.agreement`` and ``cl.granularity``: the settings of the paper, nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.analyze import FEATURES, Granularity
from crosslens.core import UsageError
from crosslens.pipeline import find_protocol
from crosslens.pipeline.protocols import analyses as analyses

NOTE = "The figures follow the protocol expl."


@pytest.fixture(scope="module")
def scenes() -> tuple[cl.Run, cl.Dataset]:
    without_objects = cl.Dataset.of({"a": ["a dog"], "b": ["a boat"]}, images={"width": [100, 100], "height": [50, 50]})
    rows = [("a", "dog", "dog.n.01", 0.0, 0.0, 40.0, 40.0), ("b", "dog", "dog.n.01", 0.0, 0.0, 10.0, 10.0)]
    objects = pl.DataFrame(rows, schema=["image", "name", "synset", "x", "y", "w", "h"], orient="row")
    dataset = replace(without_objects, objects=objects)
    scores = np.array([[0.1, 0.9], [0.9, 0.1]], np.float32)
    return cl.evaluate(dataset, scores=scores, metrics="Hit@1", resamples=0), dataset


def test_explain_follows_and_says_so(scenes: tuple[cl.Run, cl.Dataset]) -> None:
    run, dataset = scenes
    plain = cl.explain(run, dataset=dataset, resamples=0)
    followed = cl.explain(run, dataset=dataset, resamples=0, protocol="expl")
    assert followed.notes == (*plain.notes, NOTE)
    assert followed.settings == {**plain.settings, "threshold": 1.0, "base": "ground_truth", "areas": "share"}
    explanation = cl.explain(run, "a#0", dataset=dataset, protocol="expl")
    assert explanation.notes[-1] == NOTE
    assert [explained.notes[-1] for explained in cl.explain(run, ["a#0"], dataset=dataset, protocol="expl")] == [NOTE]


def test_explain_refuses_what_contradicts_it(scenes: tuple[cl.Run, cl.Dataset]) -> None:
    run, dataset = scenes
    with pytest.raises(UsageError, match="base='min' contradicts the protocol expl, which has ground_truth"):
        cl.explain(run, dataset=dataset, protocol="expl", base="min")
    assert cl.explain(run, dataset=dataset, protocol="expl", base="ground_truth", resamples=0).notes[-1] == NOTE
    with pytest.raises(UsageError, match="the protocol five says nothing about explain"):
        cl.explain(run, dataset=dataset, protocol="five")


def test_agreement_has_the_papers_functions_first(monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[tuple[Any, dict[str, Any]]] = []
    monkeypatch.setattr(
        analyses, "measure_agreement", lambda dataset, judgements, phi, **options: received.append((phi, options))
    )
    dataset = cl.Dataset.of({"a": ["a dog"]})
    five = find_protocol("five", "agreement")
    assert five is not None
    of_paper = list(five.setting("agreement", "phi"))
    for phi in (None, "bleu", ["bleu", of_paper[0]], {"mine": "bleu"}):
        cl.agreement(dataset, "file", phi, protocol="five", seed=3)
    assert [phi for phi, _ in received] == [
        of_paper, [*of_paper, "bleu"], [*of_paper, "bleu"], {**{name: name for name in of_paper}, "mine": "bleu"}
    ]  # fmt: skip
    assert all(options == {"seed": 3} for _, options in received)
    cl.agreement(dataset, "file")
    assert received[-1] == (("cider",), {})
    with pytest.raises(UsageError, match="the protocol brit says nothing about agreement"):
        cl.agreement(dataset, "file", protocol="brit")


def test_granularity_has_the_papers_features(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {feature: np.array([number, 2.0 * number]) for number, feature in enumerate(FEATURES)}
    measured = Granularity("toys", ("0", "1"), ("0", "1"), np.arange(2), values)
    monkeypatch.setattr(analyses, "measure_granularity", lambda captions, **options: measured)
    brit = cl.granularity(["a", "b"], protocol="brit")
    paper = find_protocol("brit", "granularity")
    assert paper is not None
    assert tuple(brit) == paper.setting("granularity", "features")
    assert dict(brit) == {feature: measured[feature] for feature in brit}
    assert brit.table.columns == ["caption", "image", *brit]
    assert cl.granularity(["a", "b"]) is measured

"""The model-index of a model card, read by huggingface_hub's own parser and by a YAML parser."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.core import UsageError
from crosslens.report import render_export
from crosslens.report.export import _yaml
from crosslens.values import Run


def test_the_hub_reads_it(run: Run) -> None:
    hub = pytest.importorskip("huggingface_hub")
    values = {name: replace(metric, low=0.25, high=0.75) for name, metric in run.values.items()}
    facts = {"dataset": {"name": "coco: 5k #1", "fingerprint": "abc"}, "protocol": {"name": "brit"}}
    exported = replace(run, values=values, provenance=facts)
    text = render_export(exported, "model-index")[""]
    card = hub.ModelCard(f"---\n{text}---\n# A card\n")
    card.data.to_yaml()
    assert card.data.model_name == "toy model"
    results = {result.metric_type: result for result in card.data.eval_results}
    assert set(results) == set(run)
    for name, result in results.items():
        assert result.metric_value == run[name].mean
        assert result.metric_args == {"queries": run[name].n, "low": 0.25, "high": 0.75, "level": 0.95}
        assert (result.dataset_name, result.dataset_type) == ("coco: 5k #1", "coco: 5k #1")
        assert (result.dataset_revision, result.dataset_args) == ("abc", {"protocol": "brit"})
        assert result.task_type == "image-text-retrieval"
    assert results["t2i/Hit@1"].task_name == "Text-to-image retrieval"


def test_several_runs(run: Run) -> None:
    yaml = pytest.importorskip("yaml")
    of_flickr = replace(run, provenance={"dataset": {"name": "flickr"}})
    (model,) = yaml.safe_load(render_export([run, of_flickr], "model-index", metrics="t2i/Hit@1")[""])["model-index"]
    assert [result["dataset"]["name"] for result in model["results"]] == ["toys", "flickr"]
    two = yaml.safe_load(render_export([run, replace(run, name="b")], "model-index")[""])["model-index"]
    assert [model["name"] for model in two] == ["toy model", "b"]
    nothing = {name: replace(metric, mean=float("nan")) for name, metric in run.values.items()}
    with pytest.raises(UsageError, match="'toy model' has no values"):
        render_export(replace(run, values=nothing), "model-index")


plain = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**9), 10**9)
keys = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True).filter(
    lambda key: key not in ("y", "n", "on", "off", "yes", "no", "true", "false", "null")
)
inner = st.lists(st.dictionaries(keys, plain | numbers, min_size=1, max_size=2), min_size=1, max_size=2)
contents = st.dictionaries(keys, plain | numbers | inner, min_size=1, max_size=3)


@given(contents)
def test_any_content_survives(content: dict[str, object]) -> None:
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load("\n".join(_yaml(content))) == content


@pytest.mark.parametrize("number", [1e-05, 1.5e-07, 1e22, 0.1, 1.0, -3e-9, float(np.float64(0.25))])
def test_numbers_stay_numbers(number: float) -> None:
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load("\n".join(_yaml({"value": number}))) == {"value": number}

"""Options of the pipeline's functions: declared once, checked, and refused by name where unknown."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import Options, UnknownNameError, UsageError, accepts_options, declarations, refuse_other_keywords
from crosslens.core.options import argument_helps
from crosslens.encode import EncodeOptions
from crosslens.explanations import explain_queries, explain_run
from crosslens.pipeline import (
    AuditOptions,
    CaptionSetOptions,
    EvaluateArguments,
    EvaluateOptions,
    InputOptions,
    ModelOptions,
    RerankOptions,
    RobustnessOptions,
)
from crosslens.pipeline.protocols.analyses import OverviewKeywords, QueryKeywords

KINDS = (EvaluateArguments, RobustnessOptions, CaptionSetOptions, InputOptions, ModelOptions, RerankOptions)
DATASET = cl.Dataset.of({"a": ["x"], "b": ["y"]})


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_a_declared_option(kind: type[Options]) -> None:
    assert list(declarations(kind)) == [entry.name for entry in fields(kind)]  # type: ignore[arg-type]
    assert all(declared.help for declared in declarations(kind).values())


def test_recipes_share_the_declarations_of_encoding() -> None:
    ours, theirs = declarations(ModelOptions), declarations(EncodeOptions)
    for name in ("image_folder", "precision", "skip_bad"):
        assert ours[name] == theirs[name]


@pytest.mark.parametrize(
    ("function", "keyword", "near"),
    [
        (lambda **more: cl.evaluate(DATASET, scores=np.eye(2), **more), "resample", "resamples"),
        (lambda **more: cl.evaluate(DATASET, **more), "image", "images"),
        (lambda **more: cl.robustness(DATASET, **more), "permutation", "permutations"),
        (lambda **more: cl.robustness(DATASET, **more), "batchsize", "batch_size"),
        (lambda **more: cl.compare_caption_sets(DATASET, DATASET, **more), "shared_image", "shared_images"),
        (lambda **more: cl.compare_caption_sets(DATASET, DATASET, **more), "image_folders", "image_folder"),
    ],
)
def test_unknown_keywords_suggest_near_names(function: Callable[..., Any], keyword: str, near: str) -> None:
    with pytest.raises(UnknownNameError, match=f"unknown option '{keyword}'\n  fix: did you mean {near}"):
        function(**{keyword: 1})


@pytest.mark.parametrize(
    ("kind", "option", "value"),
    [(EvaluateOptions, "folds", 0), (EvaluateOptions, "level", 1.0), (RobustnessOptions, "seeds", 0),
     (CaptionSetOptions, "level", 0.0), (RerankOptions, "depth", 0)],
)  # fmt: skip
def test_values_out_of_range_name_the_option(kind: type[Options], option: str, value: Any) -> None:
    with pytest.raises(UsageError) as error:
        kind(**{option: value})
    assert error.value.option == option


def test_both_stands_for_two_directions() -> None:
    for kind in (EvaluateOptions, RobustnessOptions):
        assert kind(directions=("both",)).directions == ("i2t", "t2i")
        assert kind(directions="t2i").directions == ("t2i",)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "kinds"),
    [(cl.evaluate, (EvaluateArguments,)), (cl.robustness, (RobustnessOptions, EncodeOptions)),
     (cl.compare_caption_sets, (CaptionSetOptions, EncodeOptions)), (cl.audit, (AuditOptions, EncodeOptions))],
)  # fmt: skip
def test_signatures_and_docstrings_list_every_option(
    function: Callable[..., Any], kinds: tuple[type[Options], ...]
) -> None:
    parameters = inspect.signature(function).parameters
    for entry in (entry for kind in kinds for entry in fields(kind)):
        parameter = parameters[entry.name]
        if entry.name == "metrics" and function is cl.evaluate:  # its own parameter: may be parsed metrics, too
            assert parameter.default is None
            continue
        assert parameter.default == entry.default
        assert argument_helps(function)[entry.name] == entry.metadata["option"].help


@pytest.mark.parametrize(
    ("keywords", "kinds", "parameters"),
    [("EvaluateKeywords", (EvaluateArguments,), {"metrics"}), ("ListStudyKeywords", (RobustnessOptions,), set()),
     ("RobustnessKeywords", (RobustnessOptions, EncodeOptions), set()),
     ("CaptionSetKeywords", (CaptionSetOptions, EncodeOptions), set())],
)  # fmt: skip
def test_editors_see_every_option(keywords: str, kinds: tuple[type[Options], ...], parameters: set[str]) -> None:
    stub = Path(str(inspect.getfile(EvaluateOptions))).with_name("keywords.pyi")
    classes = {node.name: node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ClassDef)}
    keys = {entry.target.id for entry in classes[keywords].body
            if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name)}  # fmt: skip
    assert keys == {name for kind in kinds for name in declarations(kind)} - parameters


def test_a_keyword_of_a_function_is_none_of_the_options_that_it_accepts() -> None:
    @accepts_options((EvaluateOptions, "depth ties"), EncodeOptions)
    def measure(data: int, *, ties: bool = True, **options: Any) -> None:
        """Do it."""
        refuse_other_keywords(options, measure)

    parameters = inspect.signature(measure).parameters
    assert list(parameters)[:3] == ["data", "ties", "depth"]
    assert parameters["ties"].default is True
    assert parameters["depth"].default == 10
    assert argument_helps(measure)["depth"].startswith("How many")
    assert "ties" not in argument_helps(measure)
    measure(1, depth=3, device="cpu")
    with pytest.raises(UnknownNameError, match="did you mean depth"):
        measure(1, dept=3)


def test_runs_record_options_that_change_results() -> None:
    always = {"ties": "stable", "folds": 1, "depth": 10, "seed": 0, "resamples": 1000, "level": 0.95}
    assert EvaluateOptions().recorded() == always
    changed = EvaluateOptions(queries=5, threads=2, device="cpu", metrics=("MRR",))
    assert changed.recorded() == {**always, "queries": 5}


def test_several_texts_may_be_one_or_none() -> None:
    assert EvaluateOptions(metrics="Hit@1").metrics == ("Hit@1",)  # type: ignore[arg-type]
    assert EvaluateOptions(metrics=["Hit@1", "MRR"]).metrics == ("Hit@1", "MRR")  # type: ignore[arg-type]
    assert AuditOptions(only=None).only == ()  # type: ignore[arg-type]


def test_editors_see_every_option_of_explanations() -> None:
    for keywords, function in ((QueryKeywords, explain_queries), (OverviewKeywords, explain_run)):
        parameters = inspect.signature(function).parameters.values()
        keywords_taken = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY} - {
            "objects"
        }
        assert keywords.__optional_keys__ == keywords_taken | {
            "protocol", "dataset", "dataset_options", "image_folder", "direction",
        }  # fmt: skip

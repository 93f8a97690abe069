"""Options of the pipeline's functions: declared once, checked, and refused by name where unknown."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.analyze import CaseOptions, DiscriminabilityOptions, JudgingOptions
from crosslens.analyze.options import DiscriminabilityKeywords, HardNegativesKeywords
from crosslens.build.options import ImpKeywords, ImpOptions, RecosKeywords, RecosOptions
from crosslens.core import Options, UnknownNameError, UsageError, declarations
from crosslens.encode import EncodeOptions
from crosslens.explanations import OverviewKeywords, QueryKeywords, explain_queries, explain_run
from crosslens.explanations.counterfactual_options import CounterfactualKeywords, CounterfactualOptions
from crosslens.pipeline import AuditOptions, InputOptions, ModelOptions, RerankOptions
from crosslens.pipeline.options import (
    CaptionSetKeywords,
    CaptionSetOptions,
    EvaluateArguments,
    EvaluateKeywords,
    EvaluateOptions,
    ListStudyKeywords,
    RobustnessKeywords,
    RobustnessOptions,
)
from crosslens.report.audits import AuditKeywords

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
    ("keywords", "classes", "parameters"),
    [
        (EvaluateKeywords, (EvaluateArguments,), {"metrics"}),
        (ListStudyKeywords, (RobustnessOptions,), set()),
        (RobustnessKeywords, (RobustnessOptions, EncodeOptions), set()),
        (CaptionSetKeywords, (CaptionSetOptions, EncodeOptions), set()),
        (DiscriminabilityKeywords, (DiscriminabilityOptions, EncodeOptions), set()),
        (HardNegativesKeywords, (CaseOptions, JudgingOptions, EncodeOptions), set()),
        (CounterfactualKeywords, (CounterfactualOptions, EncodeOptions), set()),
        (RecosKeywords, (RecosOptions, EncodeOptions), set()),
        (ImpKeywords, (ImpOptions, EncodeOptions), set()),
    ],
)
def test_editors_see_every_option(keywords: Any, classes: tuple[type, ...], parameters: set[str]) -> None:
    declared = {name for kind in classes for name in declarations(kind)}
    assert keywords.__optional_keys__ == declared - parameters


def test_editors_see_every_option_of_audits_and_explanations() -> None:
    assert AuditKeywords.__optional_keys__ >= declarations(AuditOptions).keys()
    for keywords, function in ((QueryKeywords, explain_queries), (OverviewKeywords, explain_run)):
        parameters = inspect.signature(function).parameters.values()
        named = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY} - {"objects"}
        assert keywords.__optional_keys__ == named | {"dataset", "dataset_options", "image_folder", "direction"}

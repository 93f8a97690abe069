"""A command and its function in Python take the same: flags and keywords of one name, or a reason why not."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable
from typing import Any

import pytest

import crosslens as cl
from crosslens.cli.app import _command_of

FORMS = "json write output overwrite show plugin no_verify help help_all engine ray_address"
"""How results are printed, written and computed, of every command alike: in Python, methods of the result,
``cl.load_plugin``, ``cl.storage.verification`` and ``cl.use_engine``."""
DATASET = "dataset captions instances images split extra_images data_folder data"
"""In Python a dataset is a value, or a name with ``dataset_options``."""
ENCODING = "batch_size cache no_cache device image_folder image_text model offline precision skip_bad trust_code"
ARRAYS = "image_embeddings caption_embeddings visual_embeddings before_embeddings after_embeddings"

RENAMED = {
    "query": "queries", "direction": "directions", "qrels": "relevance", "option": "options",
    "perturb": "perturbations", "size_base": "base", "image_embeddings": "images", "caption_embeddings": "captions",
    "by": "column", "all_groups": "largest", "runs": "scores", "rerank": "second_stage", "images_output": "images",
    "verify": "verified", "allow_host": "allow_hosts",
}  # fmt: skip
"""Flags whose keyword has another name, mostly because Python takes several values or the values themselves."""

PAIRS: dict[str, tuple[Callable[..., Any], dict[str, str]]] = {
    # command: its function, and the flags that it does not take, by reason
    "explain": (cl.explain, {"by columns": "pipeline.failures_by", "compare": "explanations.compare_overviews"}),
    "counterfactual": (cl.explanations.find_counterfactuals, {}),
    "evaluate": (
        cl.evaluate,
        {
            "image_ids caption_ids": "those of the embeddings",
            "image_text query_caption shared_images": "encode.text_only gives the captions' vectors",
            "rerank_depth": "of second_stage", "offline precision skip_bad trust_code": "of load_encoder",
            "allow_host": "of run_recipe: what Python passes is the caller's own",
        },
    ),
    "compare": (
        cl.compare,
        {
            "by columns": "pipeline.compare_groups",
            "changes dataset direction image_folder phi": "explanations.compare_queries",
        },
    ),
    "audit": (cl.audit, {"listing": "a list of stages, printed", "skip_unknown": "of cl.read_judgements"}),
    "agreement": (
        cl.agreement,
        {"form skip_unknown": "of cl.read_judgements", "kendall": "prints one of the coefficients that the result has"},
    ),
    "robustness": (
        cl.robustness,
        {"by columns tables": "of the result", "runs qrels": "cl.robustness_from_runs"},
    ),
    "perturb": (
        cl.perturb, {"option": "keywords themselves", f"{DATASET} image_folder skip_bad listing sheet": "of pictures"},
    ),
    "analyze labels": (
        cl.analyze.assess_label_quality,
        {
            "bits cosine far limit threshold": "of settings", "apply cleaned leave_out qrels": "of a reviewed list",
            f"{ARRAYS} image_folder": "of pictures",
        },
    ),
    "analyze granularity": (cl.granularity, {"by": "of the result", "level resamples seed": "of its estimates()"}),
    "analyze difficulty": (
        cl.difficulty,
        {
            f"{ENCODING} allow_host runs negatives": "of the panel: scores by model",
            "beside disagree levels repeats seed stability": "functions of what it returns",
            "calibration calibration_dataset save_thresholds": "thresholds are passed as values",
        },
    ),
    "analyze polysemy": (
        cl.polysemy,
        {
            f"{ENCODING} {ARRAYS} text_model visual_model": "vectors are passed as values",
            "by per_image purity_by": "of the result", "no_cider": "analyze.measure_caption_diversity",
            "clusters min_cluster_size umap_neighbours": "analyze.cluster_images",
        },
    ),
    "analyze discriminability": (
        cl.analyze.dataset_discriminability,
        {ARRAYS: "vectors are passed as values", "level resamples seed": "of its estimates()"},
    ),
    "hard-negatives": (cl.analyze.score_hard_negatives, {"failures without write_dataset": "of the result"}),
    "missing-positives": (
        cl.analyze.find_missing_positives,
        {"extra_only table": "of the result", "queries shared_images": "of the dataset's corpus"},
    ),
    "leaderboard": (cl.leaderboard, {}),
    "report": (cl.write_report, {}),
    "data describe": (cl.describe, {}),
    "data convert": (cl.write_dataset, {"name": "of the dataset"}),
    "plan": (cl.planning.plan_evaluation, {"calibrate name threads": "of the machine, measured by the command"}),
    "caption-sets": (
        cl.compare_caption_sets, {f"{ARRAYS} dataset": "passed as values", "by wide": "of the result"},
    ),
}  # fmt: skip


def keywords_of(function: Callable[..., Any]) -> set[str]:
    """What a function takes by keyword, also in ``**options: Unpack[…]``, in any of its overloads."""
    names: set[str] = set()
    for form in (function, *typing.get_overloads(function)):
        for name, parameter in inspect.signature(form).parameters.items():
            unpacked = re.search(r"Unpack\[(\w+)\]", str(parameter.annotation))
            names |= set(getattr(inspect.getmodule(form), unpacked[1]).__annotations__) if unpacked else {name}
    return names


@pytest.mark.parametrize("command", PAIRS)
def test_every_flag_is_a_keyword_or_has_a_reason(command: str) -> None:
    function, reasons = PAIRS[command]
    keywords = keywords_of(function)
    flags = {flag.name for flag in _command_of(command.split()).params if flag.param_type_name == "option"}
    excused = {flag for words in reasons for flag in words.split()}
    missing = set()
    for flag in flags - set(f"{FORMS} {DATASET}".split()) - excused:
        name = flag.removeprefix("no_")
        if not {flag, name, RENAMED.get(flag, flag)} & keywords:
            missing.add(flag)
    assert not missing, f"{command}: flags that {function.__name__} does not take"
    shared = set(f"{ENCODING} {ARRAYS} {DATASET}".split())
    assert not (excused - shared) - flags, f"{command} has no such flag any more"
    assert not ((excused - shared) & keywords) - {"runs", "images", "captions", "by"}, "a keyword that needs no reason"

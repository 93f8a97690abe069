"""``crosslens audit``: everything that can be computed from what is given, and a report."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import crosslens.pipeline as pipeline
import crosslens.report as report
from crosslens.cli.commands.evaluate import open_cache
from crosslens.cli.console import (
    confirm_code,
    print_json,
    print_list,
    print_note,
    progress_bar,
)
from crosslens.cli.datasets import DATASET_WORDS, DatasetOptions, dataset_sources
from crosslens.cli.flags import OUTPUT, Flags, Json, Overwrite, Plugins, TrustCodeFlag, command
from crosslens.core import UsageError, option
from crosslens.encode import EncodeOptions
from crosslens.pipeline import AuditOptions, EvaluateOptions, InputOptions, ModelOptions

_RUN = "Ranked lists, twice for both directions; or run folders, audited from their recipes."


@command(
    "crosslens audit --dataset captions.jsonl --image-folder photos \\",
    "    --model clip:openai/clip-vit-base-patch32 -o audits/clip",
    "crosslens audit --dataset captions.jsonl --image-folder photos \\",
    "    --model tiny --quick -o audits/tiny",
    "crosslens audit --dataset coco.jsonl --dataset flickr.jsonl \\",
    "    --model tiny --model path:models/triplet -o audits/all",
    "crosslens audit --dataset captions.jsonl --image-embeddings img.npy \\",
    "    --caption-embeddings cap.npy -o audits/mine",
    "crosslens audit --run runs/clip -o audits/clip",
    "crosslens audit --list",
)
def audit(
    source: Annotated[DatasetOptions, Flags(without=("dataset",))],
    settings: Annotated[ModelOptions, Flags(only=("image_folder", "precision", "skip_bad"))],
    encode: Annotated[EncodeOptions, Flags(only=("device", "batch_size", "cache", "offline"))],
    inputs: Annotated[InputOptions, Flags(without=("phi", "scores_from"), help={"runs": _RUN})],
    evaluate: Annotated[EvaluateOptions, Flags(only=("metrics", "directions", "score", "folds", "skip_unknown"))],
    options: AuditOptions,
    dataset: list[str] | None = option(
        None, "A dataset's path, or a reader with its options; may be repeated.", metavar=DATASET_WORDS
    ),
    model: list[str] | None = option(
        None, "A model (see crosslens encode --list); may be repeated.", metavar="KIND:SOURCE"
    ),
    name: str | None = option(None, "The name of what files hold. [default: by their kind]", metavar="TEXT"),
    output: Path | None = option(None, "Where everything is written.", metavar="FOLDER", flags=OUTPUT),
    listing: bool = option(False, "Print the stages and what each needs, and nothing else.", flags=("--list",)),
    overwrite: Overwrite = False,
    trust_code: TrustCodeFlag = False,
    plugin: Plugins = None,
    json: Json = False,
) -> pipeline.Audit | None:
    """Audit models: every analysis, one report.

    Metrics with intervals, groups, ties, labels, missing positives, robustness, explanations and more: every stage that
    what is given allows; the others say why not. Ends with the most important findings and a page, report.html. Running
    the same command again resumes where it was interrupted.
    """
    if listing:
        _list(json)
        return None
    if output is None:
        raise UsageError("missing option -o/--output", fix="name the folder of the audit: -o audits/mine")
    request = pipeline.AuditRequest(
        dataset_sources(dataset or [], source), tuple(model or ()), inputs, settings, evaluate, name,
        tuple(plugin or ()),
    )  # fmt: skip
    encoding = replace(encode, cache=open_cache(encode), notify=print_note)
    result = report.audit_with_report(
        request, output, options, encoding=encoding, overwrite=overwrite, display=progress_bar(), notify=print_note,
        command=sys.argv, trust_code=trust_code or confirm_code,
    )  # fmt: skip
    print_note("")
    return result


def _list(json: bool) -> None:
    stages = pipeline.all_stages()
    if json:
        print_json(
            [
                {"stage": stage.name, "summary": stage.summary, "needs": [need.text for need in stage.needs]}
                for stage in stages
            ]
        )
        return
    rows = []
    for stage in stages:
        needs = "; ".join(need.text for need in stage.needs)
        rows.append((stage.name, stage.summary + (f" Needs {needs}." if needs else "")))
    print_list(rows)

"""``crosslens robustness``: what small changes of captions or images do to a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from crosslens.cli.console import (
    check_outputs,
    print_json,
    print_note,
    print_notes,
    print_result,
    print_written,
    progress_bar,
    terminal_width,
)
from crosslens.cli.datasets import DatasetOptions
from crosslens.cli.flags import OUTPUT, Flags, Json, Overwrite, command
from crosslens.core import option
from crosslens.encode import EncodeOptions
from crosslens.pipeline import RobustnessOptions

if TYPE_CHECKING:
    from crosslens.pipeline import Robustness


@command(
    "crosslens robustness --dataset scenes/ --model tiny --perturbations all \\",
    "    -o runs/rob",
    "crosslens robustness --dataset captions.jsonl --image-folder photos \\",
    "    --model clip:openai/clip-vit-base-patch32 \\",
    "    --model siglip:google/siglip-base-patch16-224 --seeds 3 \\",
    "    --perturbations all,adversarial,blur@3 -o runs/rob --html heat.html",
    "crosslens robustness --dataset captions.jsonl \\",
    "    --model sentence:all-MiniLM-L6-v2 --image-text mean \\",
    "    --perturbations everything -o runs/rob-text",
    "crosslens robustness --dataset captions.jsonl --variants vectors/ \\",
    "    --image-embeddings img.npy --caption-embeddings cap.npy",
)
def robustness(
    source: Annotated[DatasetOptions, Flags(required=("dataset",))],
    encode: Annotated[EncodeOptions, Flags(without=("skip_bad",))],
    settings: Annotated[RobustnessOptions, Flags(without=("level",))],
    model: list[str] | None = option(
        None, "A model (see crosslens encode --list); may be repeated.", metavar="KIND:SOURCE"
    ),
    perturbations: str | None = option(
        None,
        "Names and groups, separated by commas: all, adversarial, beyond, everything, images, blur@3. "
        "[default: all, or what --variants holds]",
        metavar="NAMES",
    ),
    variants: Path | None = option(
        None,
        "Existing variants by perturbation: datasets that crosslens perturb wrote, embeddings folders, or "
        "NAME.npy aligned with the captions.",
        metavar="FOLDER",
    ),
    image_embeddings: str | None = option(None, "Of the original, without a model: .npy or a folder.", metavar="FILE"),
    caption_embeddings: str | None = option(
        None, "Of the original, without a model: .npy or a folder.", metavar="FILE"
    ),
    metrics: str | None = option(
        None, 'Such as "Hit@1 MRR Rsum[capped]". [default: Hit@1,5,10 MRR MedR Rsum]', metavar="NAMES"
    ),
    option: list[str] | None = option(None, "An option of the perturbations, such as k=2.", metavar="KEY=VALUE"),
    tables: str | None = option(
        None,
        "Which tables to print: models drops applied seeds metrics changes groups overlap words captions.",
        metavar="NAMES",
    ),
    output: Path | None = option(
        None, "Gets a run per model and variant, and the tables.", metavar="FOLDER", flags=OUTPUT
    ),
    html: Path | None = option(None, "The heat map: .html (with all tables), .svg, .png or .pdf.", metavar="FILE"),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Measure what small changes cost a model.

    Every variant is encoded and ranked once: running the same command again resumes where it was interrupted, and with
    more models or perturbations adds only those. Perturbed are the captions (the queries in t2i, the items in i2t), or
    with blur@3 and the like the images.
    """
    from crosslens.cli.commands.perturb import perturbation_options
    from crosslens.pipeline import read_variants, read_vectors, robustness as run_study
    from crosslens.report import figure_suffix

    names = None if tables is None else tables.replace(",", " ").split()
    check_tables(names)
    if html is not None:
        figure_suffix(html)
    check_outputs(html, overwrite=overwrite)
    dataset = source.load()
    vectors, perturbed = ({}, {}) if variants is None else read_variants(variants)
    perturbing = perturbation_options(option, _caption_perturbations(perturbations)) if option else None
    encoding = {name: value for name, value in vars(encode).items() if name != "skip_bad"}
    study = run_study(
        dataset,
        models=model,
        images=read_vectors(image_embeddings),
        captions=read_vectors(caption_embeddings),
        variants=vectors or None,
        perturbed=perturbed,
        perturbations=perturbations,
        metrics=metrics,
        output=output,
        overwrite=overwrite,
        progress=progress_bar(),
        **{**vars(settings), **encoding, "options": perturbing, "command": sys.argv, "notify": print_note},
    )
    print_study(study, names, html=html, overwrite=overwrite, json=json)
    if not json:
        print_written([] if output is None else [output])


def _caption_perturbations(perturbations: str | None) -> list[str]:
    """The perturbations of captions among those named: they declare their options."""
    from crosslens.perturbations import PERTURBATIONS, chosen_perturbations

    return [name for name in chosen_perturbations(perturbations or "all") if name in PERTURBATIONS]


def check_tables(names: list[str] | None) -> None:
    """Raise for an unknown table before the work begins."""
    from crosslens.core import UnknownNameError
    from crosslens.report import ROBUSTNESS_TABLES

    for name in names or ():
        if name not in ROBUSTNESS_TABLES:
            raise UnknownNameError("table", name, ROBUSTNESS_TABLES)


def print_study(study: Robustness, tables: list[str] | None, *, html: Path | None, overwrite: bool, json: bool) -> None:
    """Print the tables, and write the heat map into a file."""
    from crosslens.report import robustness_text

    written: dict[str, Any] = {}
    if html is not None:
        from crosslens.report import write_heat_map

        written = {"file": str(write_heat_map(study, html, overwrite=overwrite))}
    print_notes(study.about.get("notes", ()))
    if json:
        print_json({**study.as_dict(), **written})
        return
    print_result(robustness_text(study, tables, terminal_width()))
    if written:
        print_note(f"\nheat map: {written['file']}")

"""``crosslens robustness``: what small changes of captions or pictures do to a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosslens.cli.console import Json, examples, note, progress, say, say_json, width
from crosslens.cli.dataset_flags import Captions, Data, Images, Instances, Split, reader_options
from crosslens.cli.model_flags import BatchSize, CacheFolder, ImageFolder, NoCache, Offline, Precision

if TYPE_CHECKING:
    from crosslens.pipeline.robustness import Robustness

EXAMPLES = examples(
    "crosslens robustness --dataset scenes/ --model tiny --perturbations all -o runs/rob",
    "crosslens robustness --dataset captions.jsonl --image-folder photos \\",
    "    --model clip:openai/clip-vit-base-patch32 --model siglip:google/siglip-base-patch16-224 \\",
    "    --perturbations all,adversarial,blur@3 --seeds 3 -o runs/rob --html heat.html",
    "crosslens robustness --dataset captions.jsonl --model sentence:all-MiniLM-L6-v2 \\",
    "    --image-text mean --perturbations everything -o runs/rob-text",
    "crosslens robustness --dataset captions.jsonl --variants vectors/ \\",
    "    --image-embeddings img.npy --caption-embeddings cap.npy",
)


def robustness(
    dataset: Annotated[str, typer.Option(metavar="NAME|PATH", help="A reader's name, or a dataset's path.")],
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND:SOURCE", help="A model (see crosslens encode --list); may be given again."),
    ] = None,
    perturbations: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Names and groups with commas between: all, adversarial, beyond, everything, images, blur@3. "
            "[default: all, or what --variants holds]",
        ),
    ] = None,
    captions: Captions = None,
    instances: Instances = None,
    images: Images = None,
    split: Split = None,
    data: Data = None,
    image_folder: ImageFolder = None,
    image_text: Annotated[
        str | None, typer.Option(metavar="HOW", help="Text-only retrieval: mean, or a summariser, as in evaluate.")
    ] = None,
    query_caption: Annotated[
        int, typer.Option(min=0, metavar="N", help="Which caption asks in text-only retrieval, from 0.")
    ] = 0,
    variants: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Ready-made variants by perturbation: datasets that crosslens perturb wrote, embeddings folders, or "
            "NAME.npy aligned with the captions.",
        ),
    ] = None,
    image_embeddings: Annotated[
        str | None, typer.Option(metavar="FILE", help="Of the original, without a model: .npy or a folder.")
    ] = None,
    caption_embeddings: Annotated[
        str | None, typer.Option(metavar="FILE", help="Of the original, without a model: .npy or a folder.")
    ] = None,
    direction: Annotated[
        list[str] | None, typer.Option(metavar="i2t|t2i", help="May be given twice. [default: both]")
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help='Such as "Hit@1 MRR Rsum[capped]". [default: Hit@1,5,10 MRR MedR Rsum]'),
    ] = None,
    score: Annotated[
        str | None, typer.Option(metavar="NAME", help="How two embeddings are compared. [default: by their kind]")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the perturbations, intervals and tests.")] = 0,
    seeds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Perturb anew under so many seeds, and show the spread.")
    ] = 1,
    option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="An option of the perturbations, such as k=2.")
    ] = None,
    correction: Annotated[
        str, typer.Option(metavar="NAME", help="For several tests at once: holm, bh or none.")
    ] = "holm",
    permutations: Annotated[int, typer.Option(metavar="N", help="Permutations of the paired tests.")] = 10_000,
    resamples: Annotated[int, typer.Option(metavar="N", help="Resamples for the intervals; 0 for none.")] = 1000,
    tables: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Which tables to print: models drops applied seeds metrics changes groups overlap words captions.",
        ),
    ] = None,
    precision: Precision = "fp32",
    device: Annotated[str | None, typer.Option(metavar="NAME", help="For models: cpu, cuda, cuda:1.")] = None,
    batch_size: BatchSize = None,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    offline: Offline = False,
    threads: Annotated[int | None, typer.Option(min=1, metavar="N", help="Threads to use.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FOLDER", help="Gets a run per model and variant, and the tables."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The heat map: .html (with all tables), .svg, .png or .pdf.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what stands there.")] = False,
    json: Json = False,
) -> None:
    """Measure what small changes cost a model.

    Every variant is encoded and ranked once: the same command again goes on where it was stopped, and with more models
    or perturbations it adds only those. What is perturbed are the captions (they ask in t2i, and are found in i2t), or
    with blur@3 and the like the pictures.
    """
    from crosslens.cli.perturb import perturbation_options
    from crosslens.core.errors import ConflictError
    from crosslens.data import load_dataset
    from crosslens.encode import Cache
    from crosslens.pipeline.robustness import robustness as study
    from crosslens.pipeline.robustness.given import read_variants, read_vectors
    from crosslens.report.plots.paper import suffix_of

    names = None if tables is None else tables.replace(",", " ").split()
    check_tables(names)
    if html is not None:
        suffix_of(html)
        if html.exists() and not overwrite:
            raise ConflictError(f"{html} already exists", fix="choose another name, or pass --overwrite")
    reading = reader_options(dataset, data, captions=captions, instances=instances, images=images, split=split)
    loaded = load_dataset(dataset, **reading)
    vectors, perturbed = ({}, {}) if variants is None else read_variants(variants)
    found = study(
        loaded,
        models=model,
        images=read_vectors(image_embeddings),
        captions=read_vectors(caption_embeddings),
        variants=vectors or None,
        perturbed=perturbed,
        perturbations=perturbations,
        seed=seed,
        seeds=seeds,
        options=perturbation_options(option, _texts(perturbations)) if option else None,
        image_folder=image_folder,
        image_text=image_text,
        query_caption=query_caption,
        directions=direction,
        metrics=metrics,
        score=score,
        correction=correction,
        permutations=permutations,
        resamples=resamples,
        precision=precision,
        device=device,
        batch_size=batch_size,
        cache=False if no_cache else Cache(cache, tell=note),
        offline=offline,
        threads=threads,
        output=output,
        overwrite=overwrite,
        command=sys.argv,
        progress=progress(),
        tell=note,
    )
    print_study(found, names, html=html, overwrite=overwrite, json=json)
    if output is not None and not json:
        note(f"\nwritten to {output}")


def _texts(perturbations: str | None) -> list[str]:
    """The perturbations of captions among those named, whose options are known."""
    from crosslens.perturb import PERTURBATIONS, chosen_perturbations

    return [one for one in chosen_perturbations(perturbations or "all") if one in PERTURBATIONS]


def check_tables(names: list[str] | None) -> None:
    """Refuse a wrong name before the work, not after it."""
    from crosslens.core.errors import UnknownNameError
    from crosslens.report.robustness import SECTIONS

    for name in names or ():
        if name not in SECTIONS:
            raise UnknownNameError("table", name, SECTIONS)


def print_study(found: Robustness, tables: list[str] | None, *, html: Path | None, overwrite: bool, json: bool) -> None:
    """The tables on standard output, the heat map in a file."""
    from crosslens.report.robustness import robustness_text

    written: dict[str, Any] = {}
    if html is not None:
        from crosslens.report.plots.heat_map import write_heat_map

        written = {"file": str(write_heat_map(found, html, overwrite=overwrite))}
    for one in found.about.get("notes", ()):
        note(f"note: {one}")
    if json:
        say_json({**found.as_dict(), **written})
        return
    say(robustness_text(found, tables, width()))
    if written:
        note(f"\nheat map: {written['file']}")

"""``crosslens perturb`` and ``robustness``: small changes of captions or images, and what they do to a model."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import crosslens.core as core
import crosslens.data as data
import crosslens.perturbations as perturbations
import crosslens.pipeline as pipeline
from crosslens.cli.answers import Write, wrote
from crosslens.cli.console import print_note, print_notes, progress_bar
from crosslens.cli.datasets import DATASET_WORDS, QUERIES, DatasetOptions, key_values, load_dataset_words, typed
from crosslens.cli.flags import OUTPUT, ColumnOptions, Flags, Overwrite, Threads, command, recorded_command
from crosslens.cli.stored_runs import drops_by_column, named_tables
from crosslens.core import EngineOptions, UsageError, option
from crosslens.encode import EncodeOptions
from crosslens.pipeline import RobustnessOptions


@command(
    "crosslens robustness --dataset scenes/ --model tiny --perturbations all \\",
    "    -o runs/rob",
    "crosslens robustness --dataset captions.jsonl --image-folder photos \\",
    "    --model clip:openai/clip-vit-base-patch32 \\",
    "    --model siglip:google/siglip-base-patch16-224 --seeds 3 \\",
    "    --perturbations all,adversarial,blur@3 -o runs/rob --write heat.html",
    "crosslens robustness --dataset captions.jsonl \\",
    "    --model sentence:all-MiniLM-L6-v2 --image-text mean \\",
    "    --perturbations everything -o runs/rob-text",
    "crosslens robustness --dataset captions.jsonl --variants vectors/ \\",
    "    --image-embeddings img.npy --caption-embeddings cap.npy",
    "crosslens robustness --runs none=plain.run.gz \\",
    "    --runs char_swap=swapped.run.gz --qrels qrels.txt --direction t2i",
)
def robustness(
    source: DatasetOptions,
    *,
    encode: Annotated[EncodeOptions, Flags(without=("skip_bad",))],
    settings: Annotated[RobustnessOptions, Flags(without=("level",))],
    execution: EngineOptions,
    model: list[str] | None = option(
        None, "A model (see crosslens encode --list); may be repeated.", metavar="KIND:SOURCE"
    ),
    queries: str | None = option(None, QUERIES, metavar=DATASET_WORDS),
    perturbations: str | None = option(
        None,
        "Names and groups, separated by commas: all, adversarial, beyond, everything, images, blur@3. "
        "[default: all, or what --variants holds]",
        metavar="NAMES",
        joins=",",
    ),
    variants: Path | None = option(
        None,
        "Existing variants by perturbation: datasets that crosslens perturb wrote, embeddings folders, or "
        "NAME.npy aligned with the captions.",
        metavar="FOLDER",
    ),
    image_embeddings: str | None = option(
        None, "Of the original, without a model: .npy, .npz, .safetensors, .pt or a folder.", metavar="FILE"
    ),
    caption_embeddings: str | None = option(
        None, "Of the original, without a model: .npy, .npz, .safetensors, .pt or a folder.", metavar="FILE"
    ),
    runs: list[str] | None = option(
        None,
        "Ready-made ranked lists by perturbation, instead of a model; the unperturbed ones are none=FILE. Give a name "
        "twice for both directions, or a folder whose files have these names.",
        metavar="NAME=FILE|FOLDER",
    ),
    qrels: str | None = option(
        None, "Which items are relevant, for --runs: a file, or eccv, cxc or coco.", metavar="FILE|NAME"
    ),
    metrics: str | None = option(
        None,
        'Such as "Hit@1 MRR Rsum[capped]". [default: Hit@1,5,10 MRR MedR Rsum; of lists Hit@1,5,10 MRR@10]',
        metavar="NAMES",
        joins=" ",
    ),
    option: list[str] | None = option(None, "An option of the perturbations, such as k=2.", metavar="KEY=VALUE"),
    tables: str | None = option(
        None,
        "Which tables to print: models drops applied seeds metrics changes groups overlap words captions.",
        metavar="NAMES",
        joins=" ",
    ),
    by: str | None = option(None, "The drops by a column of --columns, instead of the tables.", metavar="COLUMN"),
    added: ColumnOptions,
    output: Path | None = option(
        None, "Gets a run per model and variant, and the tables.", metavar="FOLDER", flags=OUTPUT
    ),
    overwrite: Overwrite = False,
) -> pipeline.Robustness | pipeline.GroupedTable:
    """Measure what small changes cost a model.

    Every variant is encoded and ranked once: running the same command again resumes where it was interrupted, and with
    more models or perturbations adds only those. Perturbed are the captions (the queries in t2i, the items in i2t), or
    with blur@3 and the like the images. Of lists that another program made, --runs names one file per perturbation.
    """
    shown = named_tables(tables)
    if (by is None) != (added.columns is None):
        raise UsageError("--by and --columns require each other", fix="pass --columns FILE and --by COLUMN")
    if added.columns is not None:
        pipeline.read_columns(added.columns)  # a table that cannot be read is refused before the work begins
    vectors, perturbed = ({}, {}) if variants is None else pipeline.read_variants(variants)
    common: dict[str, Any] = {"perturbed": perturbed, "metrics": metrics, "output": output, "overwrite": overwrite}
    common |= {**vars(settings), "command": recorded_command(), "progress": progress_bar()}
    if runs:
        making = {"model": model, "perturbations": perturbations, "option": option, "variants": vectors}
        inputs = {"image-embeddings": image_embeddings, "caption-embeddings": caption_embeddings, "queries": queries}
        _refuse_with_runs(making | inputs)
        with core.use_engine(execution):
            study = pipeline.robustness_from_runs(
                pipeline.read_runs(runs, qrels),
                None if qrels is None else data.read_relevance(qrels),
                dataset=source.load_if_given(),
                **common,
            )
    elif qrels is not None:
        raise UsageError("--qrels requires --runs", fix="pass the ranked lists, or drop --qrels")
    else:
        perturbing = perturbation_options(option, _caption_perturbations(perturbations or "all")) if option else None
        encoding = {name: value for name, value in vars(encode).items() if name != "skip_bad"}
        with core.use_engine(execution):
            study = pipeline.robustness(
                source.load(),
                models=model,
                images=image_embeddings and data.read_vectors(image_embeddings, "image"),
                captions=caption_embeddings and data.read_vectors(caption_embeddings, "caption"),
                variants=vectors or None,
                queries=None if queries is None else load_dataset_words(queries),
                perturbations=perturbations,
                **{**common, **encoding, "options": perturbing, "notify": print_note},
            )
    wrote(output)
    if by is not None and added.columns is not None:
        return drops_by_column(study, by, added.columns)
    print_notes(study.about.get("notes", ()))
    return replace(study, shown=shown)


def _refuse_with_runs(given: Mapping[str, Any]) -> None:
    """Raise for what would make other results than the lists."""
    for name, value in given.items():
        if value:
            raise UsageError(f"both --runs and --{name}", fix="pass one or the other")


def _caption_perturbations(names: str) -> list[str]:
    """The perturbations of captions among those named: they declare their options."""
    return [name for name in perturbations.chosen_perturbations(names) if name in perturbations.PERTURBATIONS]


_SHOWN = 3
_PAGE_CAPTIONS = 100


@command(
    "crosslens perturb --dataset captions.jsonl --name char_swap --show 5",
    "crosslens perturb --dataset captions.jsonl --name all -o perturbed/ \\",
    "    --write perturbed.html",
    "crosslens perturb --dataset captions.jsonl --name synonym_noun,char_swap \\",
    "    --option k=2 -o two/",
    "crosslens perturb --dataset scenes/ --name blur,noise --sheet severities.png",
    "crosslens perturb --dataset scenes/ --name blur@3,noise@5 -o blurred/",
    "crosslens perturb --list",
)
def perturb(
    source: DatasetOptions,
    encode: Annotated[
        EncodeOptions,
        Flags(
            only=("image_folder", "skip_bad"), help={"skip_bad": "For pictures: leave out those that cannot be read."}
        ),
    ],
    name: str = option(
        "all", "Perturbations or groups (see --list), separated by commas; blur@3 and such.", metavar="NAMES", joins=","
    ),
    output: Path | None = option(None, "Gets one dataset per perturbation.", metavar="FOLDER", flags=OUTPUT),
    seed: int = option(0, "The same seed gives the same captions.", metavar="N"),
    option: list[str] | None = option(
        None, "An option of the perturbations, such as k=2; goes to all that know it.", metavar="KEY=VALUE"
    ),
    pipeline: str | None = option(None, "The spaCy pipeline that tags. [default: the first installed]", metavar="NAME"),
    threads: Threads = None,
    show: int | None = option(
        None,
        f"Show N changed captions of each. [default: {_SHOWN} without -o; {_PAGE_CAPTIONS} on pages]",
        metavar="N",
        minimum=0,
    ),
    sheet: Path | None = option(
        None, "For pictures: draw the first three at every severity, to look at.", metavar="FILE"
    ),
    write: Write = None,
    overwrite: Overwrite = False,
    listing: bool = option(False, "Print the perturbations, and nothing else.", flags=("--list",)),
) -> perturbations.PerturbedCaptions | perturbations.ListedPerturbations:
    """Perturb captions or pictures: small changes.

    Every perturbation becomes a dataset of its own, with the same ids, that every other command reads. A caption's
    change depends on the seed and its id alone. Running the same command again resumes where it was interrupted.
    """
    if listing:
        return perturbations.ListedPerturbations()
    if source.dataset is None:
        raise UsageError("missing option --dataset", fix="see crosslens perturb --help")
    chosen = perturbations.chosen_perturbations(name)
    pictures = [perturbation for perturbation in chosen if perturbations.is_image_perturbation(perturbation)]
    if sheet is not None:
        if not pictures:
            raise UsageError(
                f"--sheet requires a perturbation of pictures; {chosen[0]} changes captions",
                fix="pass --name blur, or drop --sheet",
            )
        perturbations.check_sheet(sheet, overwrite=overwrite)
    elif pictures and output is None:
        raise UsageError("missing option -o/--output", fix=f"{pictures[0]} changes pictures: pass -o FOLDER")
    texts = [perturbation for perturbation in chosen if perturbation not in pictures]
    options = perturbation_options(option or [], texts)
    dataset = source.load()
    common: dict[str, Any] = {"seed": seed, "pipeline": pipeline, "threads": threads, "progress": progress_bar()}
    on_pages = show or (_PAGE_CAPTIONS if write else 0)
    if show is None:
        show = _SHOWN if output is None else 0
    most = max(show, on_pages)
    counts: dict[str, Any] = {}
    captions: dict[str, dict[str, perturbations.Perturbed]] = {}
    if output is None:
        for name, results in perturbations.perturb_each(texts, dataset, **common, **options):
            counts[name] = perturbations.applied_counts(results)
            captions[name] = perturbations.changed_first(dataset, results, most)
    else:
        common |= {"image_folder": encode.image_folder, "skip_bad": encode.skip_bad, "overwrite": overwrite}
        counts = perturbations.write_perturbations(dataset, chosen, output, **common, **options)
        for name in texts if most else ():
            results = perturbations.read_perturbed(core.Dataset.load(output / name))
            captions[name] = perturbations.changed_first(dataset, results, most)
        wrote(output)
    if sheet is not None:
        perturbations.write_sheet(
            dataset, pictures, sheet, seed=seed, image_folder=encode.image_folder, overwrite=overwrite
        )
        wrote(sheet)
    return perturbations.PerturbedCaptions(dataset.name, counts, captions, show)


def perturbation_options(pairs: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """``k=2`` as the type that the perturbations declare; an unknown option is left for them to refuse."""
    known: dict[str, inspect.Parameter] = {}
    for name in names:
        known |= perturbations.options_of(perturbations.PERTURBATIONS[name])
    values = key_values("--option", [_with_underscores(pair) for pair in pairs], "k=2")
    return {key: typed(f"the option {key}", value, known.get(key)) for key, value in values.items()}


def _with_underscores(pair: str) -> str:
    key, equals, value = pair.partition("=")
    return f"{key.replace('-', '_')}{equals}{value}"

"""``crosslens perturb`` and ``robustness``: small changes of captions or images, and what they do to a model."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from crosslens import analyze, data, engine, perturbations, pipeline, values as value_types
from crosslens.analyze import CaseOptions, JudgingOptions
from crosslens.cli.answers import Write, check_tables, write_table, wrote
from crosslens.cli.commands.evaluate import encoding_of
from crosslens.cli.console import check_outputs, print_note, print_notes, progress_bar
from crosslens.cli.datasets import DATASET_WORDS, QUERIES, DatasetOptions, key_values, load_dataset_words
from crosslens.cli.flags import ColumnOptions, Flags, Overwrite, Threads, command, output_option, positional
from crosslens.cli.stored_runs import drops_by_column, named_tables, recorded_command
from crosslens.core import Options, UsageError, ValueType, option
from crosslens.encode import EncodeOptions
from crosslens.engine import EngineOptions
from crosslens.pipeline import RobustnessOptions


@dataclass(frozen=True)
class StudyInputs(Options, group="Input"):
    """What is perturbed: a model's captions or images, variants that exist, or ranked lists of another program."""

    model: tuple[str, ...] = option((), "A model (see crosslens encode --list); may be repeated.")
    queries: str | None = option(None, QUERIES, metavar=DATASET_WORDS)
    perturbations: str | None = option(
        None,
        "Names and groups, separated by commas: all, adversarial, beyond, everything, images, blur@3. "
        "[default: all, or what --variants holds]",
        joins=",",
        group="Method",
    )
    variants: Path | None = option(
        None,
        "Existing variants by perturbation: datasets that crosslens perturb wrote, embeddings folders, or "
        "NAME.npy aligned with the captions.",
        metavar="FOLDER",
    )
    image_embeddings: str | None = option(
        None, "Of the original, without a model: .npy, .npz, .safetensors, .pt or a folder."
    )
    caption_embeddings: str | None = option(
        None, "Of the original, without a model: .npy, .npz, .safetensors, .pt or a folder."
    )
    runs: tuple[str, ...] = option(
        (),
        "Ready-made ranked lists by perturbation, instead of a model; the unperturbed ones are none=FILE. Give a name "
        "twice for both directions, or a folder whose files have these names.",
        metavar="NAME=FILE|FOLDER",
    )
    qrels: str | None = option(
        None, "Which items are relevant, for --runs: a file, or eccv, cxc or coco.", metavar="FILE|NAME"
    )


@command(
    "crosslens robustness --dataset scenes/ --model tiny --perturbations all -o runs/rob",
    "crosslens robustness --dataset captions.jsonl --image-folder photos --model clip:openai/clip-vit-base-patch32 \\",
    "    --model siglip:google/siglip-base-patch16-224 --seeds 3 --perturbations all,adversarial,blur@3 -o runs/rob \\",
    "    --write heat.html",
    "crosslens robustness --dataset captions.jsonl --model sentence:all-MiniLM-L6-v2 --image-text mean \\",
    "    --perturbations everything -o runs/rob-text",
    "crosslens robustness --dataset captions.jsonl --variants vectors/ \\",
    "    --image-embeddings img.npy --caption-embeddings cap.npy",
    "crosslens robustness --runs none=plain.run.gz --runs char_swap=swapped.run.gz --qrels qrels.txt --direction t2i",
    common=("runs", "perturbations", "seeds"),
)
def robustness(
    source: DatasetOptions,
    *,
    encode: Annotated[EncodeOptions, Flags(without=("skip_bad",))],
    settings: Annotated[RobustnessOptions, Flags(without=("level",))],
    execution: EngineOptions,
    inputs: StudyInputs,
    metrics: str | None = option(
        None, 'Such as "Hit@1 MRR Rsum[capped]". [default: Hit@1,5,10 MRR MedR Rsum; of lists Hit@1,5,10 MRR@10]'
    ),
    option: list[str] | None = option(None, "An option of the perturbations, such as k=2.", metavar="KEY=VALUE"),
    tables: str | None = option(
        None, "Which tables to print: models drops applied seeds metrics changes groups overlap words captions."
    ),
    by: str | None = option(None, "The drops by a column of --columns, instead of the tables."),
    added: ColumnOptions,
    output: Path | None = output_option("Gets a run per model and variant, and the tables.", "FOLDER"),
    overwrite: Overwrite = False,
) -> pipeline.Robustness | pipeline.GroupedTable:
    """Measure what small changes cost a model.

    Every variant is encoded and ranked once: running the same command again resumes where it was interrupted, and with
    more models or perturbations adds only those. Perturbed are the captions (the queries in t2i, the items in i2t), or
    with blur@3 and the like the images. Of lists that another program made, --runs names one file per perturbation.
    """
    table_names = named_tables(tables)
    if (by is None) != (added.columns is None):
        raise UsageError("--by and --columns require each other", fix="pass --columns FILE and --by COLUMN")
    if added.columns is not None:
        pipeline.read_columns(added.columns)  # a table that cannot be read is refused before the work begins
    vectors, perturbed = ({}, {}) if inputs.variants is None else pipeline.read_variants(inputs.variants)
    common: dict[str, Any] = {"perturbed": perturbed, "metrics": metrics, "output": output, "overwrite": overwrite}
    common |= {**vars(settings), "command": recorded_command(), "progress": progress_bar()}
    if inputs.runs:
        making = {**vars(inputs), "variants": vectors, "option": option}
        for name, value in making.items():  # what would make other results than the lists
            if value and name not in ("runs", "qrels"):
                raise UsageError(f"both --runs and --{name.replace('_', '-')}", fix="pass one or the other")
        with engine.use_engine(execution):
            study = pipeline.robustness_from_runs(
                pipeline.read_runs(inputs.runs, inputs.qrels),
                None if inputs.qrels is None else data.read_relevance(inputs.qrels),
                dataset=source.load_if_given(),
                **common,
            )
    elif inputs.qrels is not None:
        raise UsageError("--qrels requires --runs", fix="pass the ranked lists, or drop --qrels")
    else:
        names = perturbations.chosen_perturbations(inputs.perturbations or "all") if option else ()
        of_captions = [name for name in names if name in perturbations.PERTURBATIONS]  # which declare options
        perturbing = perturbation_options(option, of_captions) if option else None
        encoding = {name: value for name, value in vars(encode).items() if name != "skip_bad"}
        with engine.use_engine(execution):
            study = pipeline.robustness(
                source.load(),
                models=inputs.model or None,
                images=inputs.image_embeddings and data.read_vectors(inputs.image_embeddings, "image"),
                captions=inputs.caption_embeddings and data.read_vectors(inputs.caption_embeddings, "caption"),
                variants=vectors or None,
                queries=None if inputs.queries is None else load_dataset_words(inputs.queries),
                perturbations=inputs.perturbations,
                **{**common, **encoding, "options": perturbing, "notify": print_note},
            )
    wrote(output)
    if by is not None and added.columns is not None:
        return drops_by_column(study, by, added.columns)
    print_notes(study.about.get("notes", ()))
    return replace(study, shown=table_names)


_SHOWN = 3
_PAGE_CAPTIONS = 100


@command(
    "crosslens perturb --dataset captions.jsonl --name char_swap --show 5",
    "crosslens perturb --dataset captions.jsonl --name all -o perturbed/ --write perturbed.html",
    "crosslens perturb --dataset captions.jsonl --name synonym_noun,char_swap --option k=2 -o two/",
    "crosslens perturb --dataset scenes/ --name blur,noise --sheet severities.png",
    "crosslens perturb --dataset scenes/ --name blur@3,noise@5 -o blurred/",
    "crosslens perturb --list",
    common=("name", "option", "sheet", "show", "listing"),
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
        "all", "Perturbations or groups (see --list), separated by commas; blur@3 and such.", joins=",", group="Method"
    ),
    output: Path | None = output_option("Gets one dataset per perturbation.", "FOLDER"),
    seed: int = option(0, "The same seed gives the same captions."),
    option: list[str] | None = option(
        None, "An option of the perturbations, such as k=2; goes to all that know it.", metavar="KEY=VALUE"
    ),
    pipeline: str | None = option(None, "The spaCy pipeline that tags. [default: the first installed]"),
    threads: Threads = None,
    show: int | None = option(
        None, f"Show N changed captions of each. [default: {_SHOWN} without -o; {_PAGE_CAPTIONS} on pages]", minimum=0
    ),
    sheet: Path | None = option(None, "For pictures: draw the first three at every severity, to look at."),
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
    names = perturbations.chosen_perturbations(name)
    pictures = [perturbation for perturbation in names if perturbations.is_image_perturbation(perturbation)]
    if sheet is not None:
        if not pictures:
            raise UsageError(
                f"--sheet requires a perturbation of pictures; {names[0]} changes captions",
                fix="pass --name blur, or drop --sheet",
            )
        perturbations.check_sheet(sheet, overwrite=overwrite)
    elif pictures and output is None:
        raise UsageError("missing option -o/--output", fix=f"{pictures[0]} changes pictures: pass -o FOLDER")
    texts = [perturbation for perturbation in names if perturbation not in pictures]
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
        counts = perturbations.write_perturbations(dataset, names, output, **common, **options)
        for name in texts if most else ():
            results = perturbations.read_perturbed(value_types.Dataset.load(output / name))
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
    parameters: dict[str, inspect.Parameter] = {}
    for name in names:
        parameters |= perturbations.options_of(perturbations.PERTURBATIONS[name])
    spelled = [f"{key.replace('-', '_')}{equals}{value}" for key, equals, value in (p.partition("=") for p in pairs)]
    values: dict[str, Any] = key_values("--option", spelled, "k=2")
    for key in values.keys() & parameters.keys():
        declared = ValueType.of(parameters[key].annotation)
        try:
            values[key] = declared.read(values[key])
        except ValueError as error:
            problem = f"the option {key} = {values[key]!r}"
            raise UsageError(problem, fix=f"the option {key} must be {declared.noun}") from error
    return values


@dataclass(frozen=True)
class ScorerOptions(Options, group="Model"):
    """What scores the cases."""

    model: tuple[str, ...] = option((), "A model, or file:FOLDER for its embeddings; may be repeated.")
    pair_model: tuple[str, ...] = option((), "A model that scores pairs, such as blip:…-itm-…; may be repeated.")
    scores: tuple[Path, ...] = option((), "A table: case, caption, image, score; may be repeated.")
    blind: tuple[str, ...] = option((), "shorter or longer: the caption's length alone; may be repeated.")
    image_text: bool = option(False, "For text models: an image is the mean of its other captions.")
    score: str | None = option(None, "The score function of the vectors. [default: by their kind]")


@command(
    "crosslens hard-negatives sugar-crepe --data-folder ~/data --model tiny",
    "crosslens hard-negatives sugar_crepe/ --image-folder val2017 \\",
    "    --model clip:openai/clip-vit-base-patch32 --blind shorter -o cases.csv",
    "crosslens hard-negatives visual_genome_relation.json --model siglip:google/siglip-base-patch16-224",
    "crosslens hard-negatives winoground/ --scores itm.csv --write page.html",
    "crosslens hard-negatives --dataset captions.jsonl --perturb adversarial --model file:embeddings/",
    common=("scores", "pair_model", "blind", "perturb", "by", "failures"),
)
def hard_negatives(
    dataset: Annotated[
        DatasetOptions,
        Flags(help={"dataset": "Captions to perturb (--perturb) or that stand for images (--image-text)."}),
    ],
    encode: Annotated[EncodeOptions, Flags(without=("skip_bad",))],
    options: CaseOptions,
    scorers: ScorerOptions,
    judging: JudgingOptions,
    source: Path | None = positional(
        None, "sugar-crepe, winoground or aro-relation; the folder or file of such a set; or a table of your own."
    ),
    without: list[str] | None = option(None, "Leave out a category; may be repeated.", metavar="CATEGORY"),
    failures: int = option(5, "How many of the worst failures are shown.", minimum=0),
    write_dataset: Path | None = option(None, "Write the cases as a dataset, for crosslens encode.", metavar="FOLDER"),
    output: Path | None = output_option("Every case as a row: .parquet or .csv."),
    overwrite: Overwrite = False,
) -> analyze.HardNegativesStudy | None:
    """Test a model on captions that are nearly right.

    Reads SugarCrepe, ARO and Winoground, cases of your own, or makes cases from a dataset's captions by perturbation.
    Prints how often the right caption scores strictly higher, by category, beside chance; for several models also
    their paired differences from the first.
    """
    check_outputs(write_dataset, overwrite=overwrite)
    check_tables(output, overwrite=overwrite)
    if source is not None and data.is_known(str(source)):
        entry = data.known_dataset(str(source))
        if entry.purpose != "hard negatives":
            raise UsageError(
                f"{entry.name} has no hard negatives",
                fix=f"make some from its captions: --dataset {entry.name} --perturb adversarial",
            )
        files = data.find_known(entry.name, dataset.data_folder)
        source = files.path
        encode = encode if encode.image_folder is not None else replace(encode, image_folder=files.pictures)
    described = dataset.load_if_given()
    cases = replace(options, dataset=described).load(source, judging.seed, progress_bar())
    cases = cases.without(without) if without else cases
    if write_dataset is not None:
        dataset_of_cases = cases.as_dataset()
        dataset_of_cases.save(write_dataset, overwrite=overwrite)
        counts = f"{len(dataset_of_cases.caption_ids):,} captions of {len(dataset_of_cases.image_ids):,} images"
        print_note(f"{counts} written to {write_dataset}")
    if described is not None and not (scorers.image_text or options.perturbations):
        raise UsageError("--dataset requires --perturb or --image-text", fix="pass one of them, or drop --dataset")
    if scorers.image_text and described is None:
        raise UsageError("--image-text requires --dataset", fix="pass --dataset, which has the images' captions")
    image_text = described if scorers.image_text else None
    if not (scorers.model or scorers.pair_model or scorers.scores or scorers.blind):
        if write_dataset is None:
            raise UsageError("nothing scores the cases", fix="pass --model, --pair-model, --scores or --blind")
        return None
    measure = partial(analyze.score_hard_negatives, cases, **vars(judging))
    encoding = {**vars(encoding_of(encode)), "progress": progress_bar()}
    results = [measure(model=name, image_text=image_text, score=scorers.score, **encoding) for name in scorers.model]
    results += [measure(pair_model=name, **encoding) for name in scorers.pair_model]
    results += [measure(scores=table) for table in scorers.scores]
    results += [measure(blind=name) for name in scorers.blind]
    seeing = len(results) - len(scorers.blind) or len(results)  # lengths are a baseline: they are not tested
    compared = tuple(
        analyze.compare_hard_negatives(results[0], other, resamples=judging.resamples, seed=judging.seed)
        for other in results[1:seeing]
    )
    if output is not None:
        import polars as pl

        rows = pl.concat([result.cases.select(pl.lit(result.model).alias("model"), pl.all()) for result in results])
        write_table(rows, output)
    return analyze.HardNegativesStudy(tuple(results), compared, failures, seeing)

"""``crosslens analyze``: how fine-grained and how discriminable captions are, and which labels may be wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from crosslens import analyze, audits, data, engine, pipeline, storage, values
from crosslens.analyze import DiscriminabilityOptions, LabelSettings
from crosslens.cli.answers import CommandAnswer, check_tables, write_table, wrote
from crosslens.cli.commands.evaluate import PROTOCOL_HELP, encoding_of, followed, with_protocol
from crosslens.cli.console import check_outputs, confirm_code, print_note, progress_bar
from crosslens.cli.datasets import (
    DATASETS,
    SPLIT_BY,
    DatasetOfRuns,
    DatasetOptions,
    image_vectors,
    load_datasets,
    picture_files,
)
from crosslens.cli.flags import (
    IMAGE_TEXT,
    Flags,
    IntervalOptions,
    Overwrite,
    Threads,
    TrustCodeFlag,
    command,
    output_option,
    positional,
)
from crosslens.cli.stored_runs import dataset_of, load_named_runs, load_run
from crosslens.core import FactList, Options, Presented, UsageError, option
from crosslens.encode import EncodeOptions
from crosslens.engine import EngineOptions

if TYPE_CHECKING:
    import polars as pl

_VALUES = output_option("Every caption's values: .parquet or .csv.")


@command(
    "crosslens analyze granularity --dataset captions.jsonl",
    'crosslens analyze granularity --dataset "coco captions=val2014.json" \\',
    '    --dataset "fine_grained captions=coco_fg.json coco_ids=true" --write fine.html',
    "crosslens analyze granularity --dataset scenes --by style -o captions.csv",
    common=("by",),
)
def granularity(
    source: Annotated[DatasetOptions, Flags(without=("dataset",))],
    intervals: IntervalOptions,
    dataset: list[str] = DATASETS,
    protocol: str | None = option(None, PROTOCOL_HELP.format("brit") + " Only the columns of its Table 1 are shown."),
    by: str | None = SPLIT_BY,
    output: Path | None = _VALUES,
    threads: Threads = None,
    overwrite: Overwrite = False,
) -> Presented:
    """Measure how fine-grained captions are.

    Adjectives, complement phrases, determiners, quantifiers, cardinals, depth of concepts, length and diversity: means
    per caption with intervals. Several datasets stand side by side, with the change against the first; where they
    describe the same images, the change is paired by image.
    """
    check_tables(output, overwrite=overwrite)
    paper, record = followed(protocol, "granularity")
    sets = caption_sets(load_datasets(dataset, source), by)
    progress = progress_bar()
    comparison = analyze.compare_granularity(
        [analyze.measure_granularity(captions, threads=threads, progress=progress) for captions in sets],
        **vars(intervals),
    )
    if paper is not None:
        comparison = comparison.only(paper.setting("granularity", "features"))
    write_table(comparison.table, output)
    return with_protocol(comparison, record)


def caption_sets(datasets: list[values.Dataset], by: str | None) -> list[values.Dataset]:
    """The datasets, or one dataset's captions split by a column."""
    if by is None:
        return datasets
    if len(datasets) > 1:
        raise UsageError(f"--by requires a single dataset, not {len(datasets)}", fix="name one dataset, or drop --by")
    parts = list(data.captions_by(datasets[0], by).values())
    if not parts:
        raise UsageError(f"no caption has a value of {by}", fix="choose another column")
    return parts


def joined_tables(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """The tables of several datasets in one, under a column with the name of the dataset."""
    import polars as pl

    with_names = [part.select(pl.lit(name).alias("dataset"), pl.all()) for name, part in tables.items()]
    return pl.concat(with_names, how="diagonal")


@command(
    "crosslens analyze discriminability --dataset scenes --model tiny",
    'crosslens analyze discriminability --dataset "coco captions=val2014.json" --dataset captions.jsonl \\',
    "    --model sentence:all-MiniLM-L6-v2 --image-text mean --temperature 0.05 --write dis.html",
    "crosslens analyze discriminability --dataset captions.jsonl --image-embeddings images.npy \\",
    "    --caption-embeddings captions.npy --temperature 0.01 -o dis.parquet",
    common=("k", "eta"),
)
def discriminability(
    source: Annotated[DatasetOptions, Flags(without=("dataset",))],
    encode: EncodeOptions,
    settings: DiscriminabilityOptions,
    intervals: IntervalOptions,
    execution: EngineOptions,
    dataset: list[str] = DATASETS,
    model: str | None = option(None, "A model that encodes (see crosslens encode --list)."),
    image_text: str | None = option(None, IMAGE_TEXT.format("a model")),
    image_embeddings: list[str] | None = option(
        None, "Instead of a model, image vectors: a file or folder per dataset, in their order."
    ),
    caption_embeddings: list[str] | None = option(None, "The captions' vectors, likewise."),
    show: int = option(10, "Show the N least and the N most discriminable captions.", minimum=0),
    output: Path | None = _VALUES,
    overwrite: Overwrite = False,
) -> analyze.DiscriminabilityComparison:
    """Measure how well captions single out an image.

    dis(t) is the entropy of a model's guess which of the k most similar images, its own left out, a caption means: 0
    where it is sure of one, ln k where all fit equally well. Several datasets stand side by side, with the change
    against the first; where they describe the same images, the change is paired by image.
    """
    check_tables(output, overwrite=overwrite)
    loaded = load_datasets(dataset, source)
    encoding = encoding_of(encode)
    vectors_of: list[dict[str, Any]] = [{} for _ in loaded]
    if image_embeddings or caption_embeddings:
        images, captions = image_embeddings or [], caption_embeddings or []
        for flag, files in (("--image-embeddings", images), ("--caption-embeddings", captions)):
            if len(files) != len(loaded):
                counts = f"{flag} is given {len(files)} times for {len(loaded)} datasets"
                raise UsageError(counts, fix="name a file for each dataset, in their order")
        pairs = [pipeline.read_both(*sources) for sources in zip(loaded, images, captions, strict=True)]
        vectors_of = [{"images": of_images, "captions": of_captions} for of_images, of_captions in pairs]
    keywords = {"image_text": image_text, **vars(settings), **vars(encoding)}
    with engine.use_engine(execution):
        measured = [
            analyze.dataset_discriminability(part, model, **vectors, **keywords, progress=progress_bar())
            for part, vectors in zip(loaded, vectors_of, strict=True)
        ]
    for part in measured:
        pipeline.note_skipped(dict(part.skipped), print_note)
    comparison = analyze.compare_discriminability(measured, **vars(intervals))
    write_table(comparison.table, output)
    return replace(comparison, shown=show)


@command(
    "crosslens analyze run soundness runs/clip",
    "crosslens analyze run probes runs/clip --write probes.html",
    "crosslens analyze run --list",
    common=("listing", "seed", "device"),
)
def run(
    encode: Annotated[EncodeOptions, Flags(only=("device", "batch_size", "cache", "offline"))],
    name: str | None = positional(None, "One of --list.", metavar="ANALYSIS", names="ANALYSIS"),
    folder: Path | None = positional(None, "A run over a dataset.", metavar="RUN"),
    seed: int = option(0, "Seed of what is drawn and permuted.", metavar="N"),
    listing: bool = option(False, "Print the analyses, and nothing else.", flags=("--list",)),
    trust_code: TrustCodeFlag = False,
) -> Presented:
    """Look at one run as an audit does: one of its analyses.

    Whether the input is sound, what the model reads, which groups are weak, and every analysis that is registered: its
    table and charts. What may be concluded from it, corrected for all that is looked at, an audit says.
    """
    if listing:
        summaries = {entry.name: entry.summary for entry in analyze.ANALYSES}
        return CommandAnswer("Analyses of a run", (FactList(tuple(summaries.items())),), summaries)
    if name is None or folder is None:
        raise UsageError("an analysis and a run are needed", fix="name both, or pass --list")
    look, loaded = analyze.ANALYSES[name].value, load_run(folder)
    with storage.offline(encode.offline), storage.trusting(trust_code or confirm_code):
        subject = audits.subject_of_run(loaded, encoding_of(encode), seed)
        return look(replace(subject, progress=progress_bar()))


@dataclass(frozen=True)
class LabelFiles(Options, group="Output"):
    """The files that are written of the labels to review."""

    limit: int | None = option(None, "Only the first N labels are written.", minimum=0)
    output: Path | None = output_option("The list: .csv, .parquet or .jsonl.")
    qrels: Path | None = option(None, "Judgements with suspected pairs (grade 1), or after --apply.", group="Output")
    leave_out: Path | None = option(None, "Ids of captions that should not be queries, one per line.")

    def write(self, result: analyze.LabelQuality) -> None:
        if self.output is not None:
            result.write(self.output, self.limit)
        if self.qrels is not None:
            data.write_qrels(result.relevance(self.limit), self.qrels)
        if self.leave_out is not None:
            captions = values.escape_ids(result.left_out(self.limit), values.ESCAPED_ON_LINES)
            storage.write_text(self.leave_out, "".join(f"{caption}\n" for caption in captions))
        wrote(self.output, self.qrels, self.leave_out)


@command(
    "crosslens analyze labels runs/clip runs/blip -o review.csv",
    "crosslens analyze labels --dataset captions.jsonl --image-folder photos",
    "crosslens analyze labels runs/clip --qrels new.qrels --leave-out queries.txt",
    "crosslens analyze labels --dataset captions.jsonl --apply review.csv --cleaned cleaned --qrels reviewed.qrels",
    common=("direction", "qrels", "leave_out", "apply", "cleaned", "show"),
)
def labels(
    source: DatasetOfRuns,
    encode: Annotated[EncodeOptions, Flags(only=("image_folder",))],
    settings: Annotated[LabelSettings, Flags(without=("shortest",))],
    files: LabelFiles,
    runs: list[Path] | None = positional(None, "Run folders of one dataset, one per model."),
    direction: str | None = option(None, "Caption queries against images, or against their texts.", metavar="t2i|t2t"),
    no_pictures: bool = option(False, "Do not open the image files."),
    image_embeddings: str | None = option(
        None, "Image vectors, to find duplicates: .npy, .npz, .safetensors, .pt or a folder.", metavar="FOLDER|FILE"
    ),
    no_words: bool = option(False, "Do without the keyword filter."),
    show: int = option(10, "How many labels are printed.", minimum=0),
    apply: Path | None = option(None, "Apply a reviewed list, by its column verdict."),
    cleaned: Path | None = option(None, "With --apply: where the cleaned dataset goes.", metavar="FOLDER"),
    overwrite: Overwrite = False,
) -> analyze.LabelQuality | analyze.ReviewedLabels:
    """List labels that a person should review, with reasons.

    To correct: pictures that are equal pixel for pixel up to how they were saved, captions that are equal word for
    word, captions that were exchanged. Worth a look: captions whose words nothing else about their image supports, or
    that rank far down. For each run it says which failures equal captions and pictures excuse. A reviewed list becomes
    a cleaned dataset and judgements with --apply.
    """
    check_outputs(files.output, files.qrels, files.leave_out, cleaned, overwrite=overwrite)
    if files.output is not None:
        analyze.check_table_file(files.output, analyze.REVIEW_ENDINGS)
    if apply is None and cleaned is not None:
        raise UsageError("--cleaned requires --apply", fix="name the reviewed list: --apply review.csv")
    stored = load_named_runs(runs or ())
    loaded = {name: run for name, (_, run) in stored.items()}
    dataset = source.load_if_given() or dataset_of(stored)
    if apply is not None:
        if files.output or files.leave_out:
            raise UsageError("--output and --leave-out do not go with --apply", fix="use --cleaned and --qrels")
        if cleaned is None and files.qrels is None:
            raise UsageError("--apply requires --cleaned or --qrels", fix="pass --cleaned FOLDER, --qrels FILE or both")
        reviewed = analyze.apply_review(dataset, apply)
        if cleaned is not None:
            reviewed.dataset.save(cleaned, overwrite=overwrite)
        if files.qrels is not None:
            data.write_qrels(reviewed.relevance, files.qrels)
        wrote(cleaned, files.qrels)
        return reviewed
    result = analyze.assess_label_quality(
        dataset,
        loaded,
        pictures=None if no_pictures else picture_files(dataset, loaded.values(), encode.image_folder),
        images=image_vectors(dataset, image_embeddings),
        direction=direction,
        words=not no_words,
        settings=settings,
        progress=progress_bar(),
    )
    files.write(result)
    return replace(result, shown=show)

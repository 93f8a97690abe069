"""``crosslens similarity``, ``agreement`` and ``missing-positives``: φ, φ against people, and unannotated matches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from crosslens import analyze, data, encode, engine, pipeline, similarity as similarities, storage
from crosslens.cli.answers import CommandAnswer, wrote
from crosslens.cli.commands.evaluate import PROTOCOL_HELP, followed, with_protocol
from crosslens.cli.console import check_outputs, print_file, print_json, print_note, progress_bar
from crosslens.cli.datasets import DATASET_WORDS, QUERIES, DatasetOptions, load_dataset_words
from crosslens.cli.flags import Flags, IntervalOptions, Json, Overwrite, Threads, command, output_option
from crosslens.core import FactList, Presented, UsageError, option
from crosslens.engine import EngineOptions


@command(
    "crosslens agreement --dataset captions.jsonl --judgements pairs.csv --phi cider --phi semantic",
    "crosslens agreement --dataset flickr --captions Flickr8k.token.txt \\",
    "    --judgements ExpertAnnotations.txt --phi cider --write page.html",
    "crosslens agreement --dataset karpathy --captions dataset_coco.json \\",
    "    --split test --judgements sits_test.csv --phi cider",
    common=("phi", "protocol", "form"),
)
def agreement(
    source: Annotated[DatasetOptions, Flags(required=("dataset",))],
    intervals: IntervalOptions,
    judgements: Path = option(
        ..., "A table with the columns image, caption, score; or CxC's or Flickr8k's file.", group="Input"
    ),
    phi: list[str] | None = option(
        None, "A relevance function, or its matrix; may be repeated. [default: cider]", metavar="NAME|FILE"
    ),
    protocol: str | None = option(None, PROTOCOL_HELP.format("five") + " Its φ come first, --phi adds to them."),
    form: str | None = option(None, "pairs, cxc, flickr8k-expert or flickr8k-cf. [default: by the file's content]"),
    skip_unknown: bool = option(False, "Leave out judged images and captions that the dataset lacks."),
    without_references: bool = option(False, "Also results without pairs whose caption equals a reference."),
    pooled: bool = option(False, "Every judge's score by itself, not the mean of a pair's judges."),
    kendall: str = option("b", "Which of Kendall's τ the table shows; --json has both.", metavar="b|c"),
    threads: Threads = None,
) -> Presented:
    """Correlate relevance functions with human judgements.

    Pearson, Spearman and Kendall between φ and the scores that people gave to pairs of an image and a caption: for all
    pairs, and for those outside the ground truth, where recall sees no difference. The captions of an image are the
    references that φ compares with.
    """
    if kendall not in ("b", "c"):
        raise UsageError(f"--kendall {kendall}", fix="--kendall must be b or c")
    _, record = followed(protocol, "agreement")
    dataset = source.load()
    result = pipeline.agreement(
        dataset,
        data.read_judgements(judgements, dataset, form, skip_unknown=skip_unknown),
        tuple(dict.fromkeys(phi)) if phi else None,
        protocol=protocol,
        without_references=without_references,
        pooled=pooled,
        threads=threads,
        progress=progress_bar(),
        **vars(intervals),
    )
    return with_protocol(replace(result, kendall=kendall), record)


@command(
    "crosslens missing-positives --dataset captions.jsonl --phi semantic -o completed.qrels",
    "crosslens evaluate --dataset captions.jsonl --qrels completed.qrels --scores scores.npy",
    "crosslens missing-positives --dataset karpathy --split test \\",
    "    --captions dataset_coco.json --verify eccv --table missing.csv",
    common=("phi", "quantile", "threshold", "verify", "table"),
)
def missing_positives(
    source: Annotated[DatasetOptions, Flags(required=("dataset",))],
    queries: str | None = option(None, QUERIES, metavar=DATASET_WORDS),
    shared_images: bool = option(False, encode.SHARED_IMAGES),
    phi: str = option("semantic", "The relevance function, or its matrix.", metavar="NAME|FILE"),
    quantile: float = option(0.5, "The threshold as a quantile of φ over the annotated pairs.", metavar="SHARE"),
    threshold: float | None = option(None, "The threshold itself. [default: from --quantile]", metavar="PHI"),
    most: int = option(1_000_000, "Keep at most N pairs, the highest first."),
    verify: str | None = option(
        None,
        "Positives that people verified: eccv or cxc (COCO 5K; needs the extra eccv), or a qrels file.",
        metavar="NAME|FILE",
    ),
    seed: int = option(0, "Decides which caption of each image is held out."),
    threads: Threads = None,
    output: Path | None = output_option("Judgements for evaluate --qrels; .json and .jsonl too."),
    extra_only: bool = option(False, "Write the missing positives without the ground truth."),
    table: Path | None = option(None, "A .csv of the missing positives with their texts."),
    overwrite: Overwrite = False,
) -> analyze.MissingPositives:
    """Find matches that nobody annotated.

    Pairs outside the ground truth that are worth a look: φ as high as annotated pairs', where each caption is compared
    with the others of its image, or with the texts of a corpus, and no caption denies the other. Where captions edited
    in one fact pass as well, similarity cannot tell, and none is listed. The judgements hold the ground truth too.
    """
    check_outputs(output, table, overwrite=overwrite)
    dataset = source.load()
    if queries is not None or shared_images:
        asking = None if queries is None else load_dataset_words(queries)
        dataset = encode.text_queries(dataset, encode.EACH, asking, shared_images=shared_images).dataset
    result = analyze.find_missing_positives(
        dataset,
        phi,
        quantile=quantile,
        threshold=threshold,
        verified=None if verify is None else data.read_relevance(verify),
        most=most,
        seed=seed,
        threads=threads,
        progress=progress_bar(),
    )
    if output is not None:
        data.write_qrels(result.relevance(extra_only=extra_only), output)
    if table is not None:
        result.write_table(table)
    wrote(output, table)
    return result


@command(
    "crosslens similarity --dataset captions.jsonl --phi cider -o cider.npy",
    "crosslens similarity --dataset karpathy --captions dataset_coco.json \\",
    "    --split test --phi embed-max:sentence:all-MiniLM-L6-v2 -o minilm.npy",
    "crosslens similarity --dataset captions.jsonl --phi cider --pairs pairs.csv -o scores.csv",
    "crosslens similarity --list",
    common=("phi", "pairs", "listing"),
)
def similarity(
    source: DatasetOptions,
    *,
    phi: str = option(
        "cider", "The similarity (see --list), or a matrix of it: .npy, .npz, .csv …", metavar="NAME|FILE"
    ),
    df_from: str | None = option(
        None, "For cider: the dataset that document frequencies come from. [default: the dataset]", metavar="PATH"
    ),
    pairs: Path | None = option(None, "Only these: a CSV with the columns image and caption."),
    output: Path | None = output_option("The matrix (.npy); with --pairs, the scores (.csv)."),
    execution: EngineOptions,
    threads: Threads = None,
    overwrite: Overwrite = False,
    listing: bool = option(False, "Print the similarities, and nothing else.", flags=("--list",)),
    json: Json = False,
) -> CommandAnswer | None:
    """Compare every caption with every image's captions.

    The matrix has one row per image and one column per caption, in the dataset's order; N.npy.json beside N.npy holds
    the ids. Running the same command again resumes where it was interrupted.
    """
    if listing:
        listed = [
            {"name": entry.name, "summary": entry.summary, **entry.details} for entry in similarities.SIMILARITIES
        ]
        return CommandAnswer(
            "Similarities", (FactList(tuple((entry["name"], entry["summary"]) for entry in listed)),), listed
        )
    suffix = ".npy" if pairs is None else ".csv"
    if output is not None and output.suffix != suffix:
        raise UsageError(f"-o {output} does not end in {suffix}", fix=f"name a file that ends in {suffix}")
    dataset = source.load()
    options: dict[str, Any] = {} if df_from is None else {"df": data.load_dataset(df_from)}
    loaded = similarities.load_similarity(phi, **options)
    if pairs is not None:
        if output is not None:
            storage.refuse_existing(output, overwrite)
        images, captions = similarities.read_pairs(pairs, dataset)
        scores = similarities.relevance_pairs(
            dataset, loaded, images, captions, threads=threads, progress=progress_bar()
        )
        table = storage.for_spreadsheets(similarities.pairs_table(dataset, images, captions, scores))
        if output is not None:
            with storage.atomic_file(output) as partial:
                table.write_csv(partial)
        if json:
            content: dict[str, Any] = {"phi": loaded.name, "revision": loaded.revision, "pairs": table.height}
            if table.height:
                content |= {"min": float(scores.min()), "mean": float(scores.mean()), "max": float(scores.max())}
            print_json({**content, "written": [] if output is None else [str(output)]})
        elif output is None:
            print_file(table.write_csv())
        else:
            print_note(f"{table.height:,} pairs written to {output}")
        return None
    existed = output is not None and output.exists() and not overwrite
    with engine.use_engine(execution):
        matrix = similarities.relevance_matrix(
            dataset, loaded, output=output, overwrite=overwrite, threads=threads, progress=progress_bar()
        )
    summary = similarities.summarise_matrix(matrix, dataset)
    files = [] if output is None else [output, similarities.description_file(output)]
    if existed:
        print_note(f"up to date: {output} (nothing to do)")
    else:
        wrote(*files)
    rows = {
        "φ": loaded.name,
        "images × captions": f"{summary.images:,} × {summary.captions:,}",
        "range": f"{summary.min:.4g} to {summary.max:.4g}",
        "mean": f"{summary.mean:.4g}",
    }
    for label, value in (("  of own captions", summary.mean_own), ("  of others", summary.mean_others)):
        if value is not None:
            rows[label] = f"{value:.4g}"
    facts = {"phi": loaded.name, "revision": loaded.revision, **vars(summary), "written": list(map(str, files))}
    return CommandAnswer(f"φ of {dataset.name}", (FactList(tuple(rows.items())),), facts)

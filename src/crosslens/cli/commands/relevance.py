"""``crosslens agreement`` and ``missing-positives``: relevance functions against people, and unannotated matches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from crosslens.cli.console import (
    check_outputs,
    print_json,
    print_result,
    print_written,
    progress_bar,
    terminal_width,
)
from crosslens.cli.datasets import DatasetOptions
from crosslens.cli.flags import OUTPUT, Flags, IntervalOptions, Json, Overwrite, Threads, command
from crosslens.core import option

if TYPE_CHECKING:
    from crosslens.core import Relevance


@command(
    "crosslens agreement --dataset captions.jsonl --judgements pairs.csv \\",
    "    --phi cider --phi semantic",
    "crosslens agreement --dataset flickr --captions Flickr8k.token.txt \\",
    "    --judgements ExpertAnnotations.txt --phi cider -o agreement.html",
    "crosslens agreement --dataset karpathy --captions dataset_coco.json \\",
    "    --split test --judgements sits_test.csv --phi cider",
)
def agreement(
    source: Annotated[DatasetOptions, Flags(required=("dataset",))],
    intervals: IntervalOptions,
    judgements: Path = option(
        ..., "A table with the columns image, caption, score; or CxC's or Flickr8k's file.", metavar="FILE"
    ),
    phi: list[str] | None = option(
        None, "A relevance function, or its matrix; may be repeated. [default: cider]", metavar="NAME|FILE"
    ),
    form: str | None = option(
        None, "pairs, cxc, flickr8k-expert or flickr8k-cf. [default: by the file's content]", metavar="NAME"
    ),
    skip_unknown: bool = option(False, "Leave out judged images and captions that the dataset lacks."),
    without_references: bool = option(False, "Also results without pairs whose caption equals a reference."),
    pooled: bool = option(False, "Every judge's score by itself, not the mean of a pair's judges."),
    kendall: str = option("b", "Which of Kendall's τ the table shows; --json has both.", metavar="b|c"),
    threads: Threads = None,
    output: Path | None = option(None, "A scatter plot: .html, .svg, .png or .pdf.", metavar="FILE", flags=OUTPUT),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Correlate relevance functions with human judgements.

    Pearson, Spearman and Kendall between φ and the scores that people gave to pairs of an image and a caption: for all
    pairs, and for those outside the ground truth, where recall sees no difference. The captions of an image are the
    references that φ compares with.
    """
    from crosslens.analyze import measure_agreement
    from crosslens.core import UsageError
    from crosslens.data import read_judgements

    if kendall not in ("b", "c"):
        raise UsageError(f"--kendall {kendall}", fix="--kendall must be b or c")
    check_outputs(output, overwrite=overwrite)
    dataset = source.load()
    result = measure_agreement(
        dataset,
        read_judgements(judgements, dataset, form, skip_unknown=skip_unknown),
        phi or ["cider"],
        without_references=without_references,
        pooled=pooled,
        threads=threads,
        progress=progress_bar(),
        **vars(intervals),
    )
    if output is not None:
        from crosslens.report import write_scatter

        write_scatter(result, output, overwrite=overwrite)
    if json:
        print_json({**result.as_dict(), "file": None if output is None else str(output)})
        return
    print_result(result.text(terminal_width(), kendall=kendall))
    print_written([] if output is None else [output])


@command(
    "crosslens missing-positives --dataset captions.jsonl --phi semantic \\",
    "    -o completed.qrels",
    "crosslens evaluate --dataset captions.jsonl --qrels completed.qrels \\",
    "    --scores scores.npy",
    "crosslens missing-positives --dataset karpathy --split test \\",
    "    --captions dataset_coco.json --verify eccv --table missing.csv",
)
def missing_positives(
    source: Annotated[DatasetOptions, Flags(required=("dataset",))],
    phi: str = option("semantic", "The relevance function, or its matrix.", metavar="NAME|FILE"),
    quantile: float = option(0.5, "The threshold as a quantile of φ over the annotated pairs.", metavar="SHARE"),
    threshold: float | None = option(None, "The threshold itself. [default: from --quantile]", metavar="PHI"),
    most: int = option(1_000_000, "Keep at most N pairs, the highest first.", metavar="N"),
    verify: str | None = option(
        None,
        "Positives that people verified: eccv or cxc (COCO 5K; needs the extra eccv), or a qrels file.",
        metavar="NAME|FILE",
    ),
    seed: int = option(0, "Decides which caption of each image is held out.", metavar="N"),
    threads: Threads = None,
    output: Path | None = option(
        None, "Judgements for evaluate --qrels; .json and .jsonl too.", metavar="FILE", flags=OUTPUT
    ),
    extra_only: bool = option(False, "Write the missing positives without the ground truth."),
    table: Path | None = option(None, "A .csv of the missing positives with their texts.", metavar="FILE"),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Find matches that nobody annotated.

    Pairs outside the ground truth with φ as high as annotated pairs', where each caption is compared with the others of
    its image. The written judgements hold the ground truth and these pairs.
    """
    from crosslens.analyze import find_missing_positives
    from crosslens.data import write_qrels

    check_outputs(output, table, overwrite=overwrite)
    result = find_missing_positives(
        source.load(),
        phi,
        quantile=quantile,
        threshold=threshold,
        verified=None if verify is None else _read_verified(verify),
        most=most,
        seed=seed,
        threads=threads,
        progress=progress_bar(),
    )
    if output is not None:
        write_qrels(result.relevance(extra_only=extra_only), output)
    if table is not None:
        result.write_table(table)
    written = [str(file) for file in (output, table) if file is not None]
    if json:
        print_json({**result.as_dict(), "files": written})
        return
    print_result(result.text(terminal_width()))
    print_written(written)


def _read_verified(verify: str) -> Relevance | dict[str, Relevance]:
    from crosslens.core import IMAGE_TO_TEXT, TEXT_TO_IMAGE
    from crosslens.data import read_eccv, read_qrels

    if verify in ("eccv", "cxc"):
        return {direction: read_eccv(verify, direction) for direction in (IMAGE_TO_TEXT, TEXT_TO_IMAGE)}
    return read_qrels(verify)

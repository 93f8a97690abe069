"""``crosslens analyze``: what a dataset is like."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosslens.cli.console import Json, examples, note, progress, say, say_json, width
from crosslens.cli.dataset_flags import Captions, Data, Images, Instances, Split
from crosslens.cli.dataset_words import SPELLING, dataset_of

if TYPE_CHECKING:
    from crosslens.analyze.granularity import Granularity
    from crosslens.core.dataset import Dataset

GRANULARITY_EXAMPLES = examples(
    "crosslens analyze granularity --dataset captions.jsonl",
    'crosslens analyze granularity --dataset "coco captions=captions_val2014.json" \\',
    '    --dataset "fine_grained captions=coco_fg.json coco_ids=true" --plot fine.html',
    "crosslens analyze granularity --dataset scenes --by style -o per-caption.parquet",
)


def granularity(
    dataset: Annotated[
        list[str],
        typer.Option(metavar=SPELLING, help="A dataset's path, or a reader with its options; may be given again."),
    ],
    captions: Captions = None,
    instances: Instances = None,
    images: Images = None,
    split: Split = None,
    data: Data = None,
    by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="One dataset's captions apart by this column, such as style.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the distributions: .html, .svg, .png or .pdf.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Every caption's values: .parquet or .csv.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the intervals.")] = 0,
    resamples: Annotated[int, typer.Option(metavar="N", help="Resamples for the intervals; 0 for none.")] = 1000,
    level: Annotated[float, typer.Option(metavar="SHARE", help="Confidence level of the intervals.")] = 0.95,
    threads: Annotated[int | None, typer.Option(metavar="N", help="Processes that parse.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that stand there.")] = False,
    json: Json = False,
) -> None:
    """Measure how fine-grained captions are.

    Adjectives, complement phrases, articles, quantifiers, numbers, depth of concepts, length and diversity: means per
    caption with intervals. Several datasets stand side by side, with the change against the first; where they describe
    the same images, the change is paired by image.
    """
    from crosslens.analyze.granularity import granularity as measure
    from crosslens.analyze.granularity_comparison import compare_granularity
    from crosslens.core.errors import ConflictError, UsageError

    named = {"captions": captions, "instances": instances, "images": images, "split": split}
    if len(dataset) > 1 and (data or any(named.values())):
        raise UsageError(
            "reader options beside several datasets", fix='write them with each: --dataset "coco captions=a.json"'
        )
    for file in (plot, output):
        if file is not None and file.exists() and not overwrite:
            raise ConflictError(f"{file} already exists", fix="choose another name, or pass --overwrite")
    _check_suffix(output)
    if plot is not None:
        from crosslens.report.plots.paper import suffix_of

        suffix_of(plot)  # a name that cannot be written should not cost the wait
    sets = _sets([dataset_of(one, data, **named) for one in dataset], by)
    shown = progress()
    found = compare_granularity(
        [measure(one, threads=threads, progress=shown) for one in sets], resamples=resamples, level=level, seed=seed
    )
    written = [] if output is None else [_write_table(found.sets, output)]
    if plot is not None:
        from crosslens.report.plots.distributions import write_distributions

        written.append(write_distributions(found, plot, overwrite=overwrite))
    if json:
        say_json({**found.as_dict(), "files": [str(one) for one in written]})
        return
    say(found.text(width()))
    if written:
        note(f"\nwritten to {' and '.join(map(str, written))}")


def _sets(datasets: list[Dataset], by: str | None) -> list[Dataset]:
    from crosslens.core.errors import UsageError
    from crosslens.data.subsets import captions_by

    if by is None:
        return datasets
    if len(datasets) > 1:
        raise UsageError(f"--by {by} beside {len(datasets)} datasets", fix="name one dataset, or leave --by out")
    found = list(captions_by(datasets[0], by).values())
    if not found:
        raise UsageError(f"no caption has a value of {by}", fix="choose another column")
    return found


def _check_suffix(output: Path | None) -> None:
    from crosslens.core.errors import UsageError

    if output is not None and output.suffix.lower() not in (".parquet", ".csv"):
        raise UsageError(f"{output}: values are not written as that", fix="end the name in .parquet or .csv")


def _write_table(sets: tuple[Granularity, ...], output: Path) -> Path:
    import polars as pl

    from crosslens.core.atomic import atomic_file

    table = pl.concat([one.table.select(pl.lit(one.name).alias("dataset"), pl.all()) for one in sets])
    with atomic_file(output) as partial:
        if output.suffix.lower() == ".csv":
            table.write_csv(partial)
        else:
            table.write_parquet(partial)
    return output

"""``crosslens hard-negatives``: does the right caption win against captions that are nearly right?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import crosslens.analyze as analyze
import crosslens.core as core
import crosslens.data as data
from crosslens.analyze import CaseOptions, JudgingOptions
from crosslens.cli.answers import wrote
from crosslens.cli.commands.evaluate import open_cache
from crosslens.cli.console import check_outputs, print_note, progress_bar
from crosslens.cli.datasets import DatasetOptions
from crosslens.cli.flags import OUTPUT, Flags, Overwrite, command
from crosslens.core import Options, UsageError, option
from crosslens.encode import EncodeOptions

_TABLE_SUFFIXES = (".parquet", ".csv")


@dataclass(frozen=True)
class ScorerOptions(Options):
    """What scores the cases."""

    model: tuple[str, ...] = option(
        (), "A model, or file:FOLDER for its embeddings; may be repeated.", metavar="KIND:SOURCE"
    )
    pair_model: tuple[str, ...] = option(
        (), "A model that scores pairs, such as blip:…-itm-…; may be repeated.", metavar="KIND:SOURCE"
    )
    scores: tuple[Path, ...] = option((), "A table: case, caption, image, score; may be repeated.", metavar="FILE")
    blind: tuple[str, ...] = option(
        (), "shorter or longer: the caption's length alone; may be repeated.", metavar="NAME"
    )
    image_text: bool = option(False, "For text models: an image is the mean of its other captions.")
    score: str | None = option(None, "The score function of the vectors. [default: by their kind]", metavar="NAME")


@command(
    "crosslens hard-negatives sugar-crepe --data-folder ~/data --model tiny",
    "crosslens hard-negatives sugar_crepe/ --image-folder val2017 \\",
    "    --model clip:openai/clip-vit-base-patch32 --blind shorter -o cases.csv",
    "crosslens hard-negatives visual_genome_relation.json \\",
    "    --model siglip:google/siglip-base-patch16-224",
    "crosslens hard-negatives winoground/ --scores itm.csv --write page.html",
    "crosslens hard-negatives --dataset captions.jsonl --perturb adversarial \\",
    "    --model file:embeddings/",
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
    source: Annotated[
        Path | None,
        typer.Argument(
            help="sugar-crepe, winoground or aro-relation; the folder or file of such a set; or a table of your own."
        ),
    ] = None,
    without: list[str] | None = option(None, "Leave out a category; may be repeated.", metavar="CATEGORY"),
    failures: int = option(5, "How many of the worst failures are shown.", metavar="N", minimum=0),
    write_dataset: Path | None = option(None, "Write the cases as a dataset, for crosslens encode.", metavar="FOLDER"),
    output: Path | None = option(None, "Every case as a row: .parquet or .csv.", metavar="FILE", flags=OUTPUT),
    overwrite: Overwrite = False,
) -> analyze.HardNegativesStudy | None:
    """Test a model on captions that are nearly right.

    Reads SugarCrepe, ARO and Winoground, cases of your own, or makes cases from a dataset's captions by perturbation.
    Prints how often the right caption scores strictly higher, by category, beside chance; for several models also
    their paired differences from the first.
    """
    check_outputs(output, write_dataset, overwrite=overwrite)
    if output is not None and output.suffix.lower() not in _TABLE_SUFFIXES:
        raise UsageError(f"{output}: unknown table format {output.suffix!r}", fix=f"use {' or '.join(_TABLE_SUFFIXES)}")
    source, encode = _as_known(source, encode, dataset.data_folder)
    described = dataset.load_if_given()
    cases = replace(options, dataset=described).load(source, judging.seed, progress_bar())
    cases = cases.without(without) if without else cases
    if write_dataset is not None:
        _write_dataset(cases, write_dataset, overwrite)
    image_text = _image_text(scorers.image_text, described, options)
    if not (scorers.model or scorers.pair_model or scorers.scores or scorers.blind):
        if write_dataset is None:
            raise UsageError("nothing scores the cases", fix="pass --model, --pair-model, --scores or --blind")
        return None
    results = _results(cases, scorers, image_text, encode, judging)
    seeing = len(results) - len(scorers.blind) or len(results)  # lengths are a baseline: they are not tested
    compared = tuple(
        analyze.compare_hard_negatives(results[0], other, resamples=judging.resamples, seed=judging.seed)
        for other in results[1:seeing]
    )
    if output is not None:
        import polars as pl

        rows = pl.concat([result.cases.select(pl.lit(result.model).alias("model"), pl.all()) for result in results])
        with data.writing_bytes(output) as out:
            rows.write_csv(out) if output.suffix.lower() == ".csv" else out.write(core.parquet_bytes(rows))
        wrote(output)
    return analyze.HardNegativesStudy(tuple(results), compared, failures, seeing)


def _image_text(given: bool, described: core.Dataset | None, options: CaseOptions) -> core.Dataset | None:
    if described is not None and not (given or options.perturbations):
        raise UsageError("--dataset requires --perturb or --image-text", fix="pass one of them, or drop --dataset")
    if given and described is None:
        raise UsageError("--image-text requires --dataset", fix="pass --dataset, which has the images' captions")
    return described if given else None


def _results(
    cases: analyze.HardNegatives,
    scorers: ScorerOptions,
    image_text: core.Dataset | None,
    encode: EncodeOptions,
    judging: JudgingOptions,
) -> list[analyze.HardNegativesResult]:
    measure = partial(analyze.score_hard_negatives, cases, **vars(judging))
    encoding = vars(replace(encode, cache=open_cache(encode), notify=print_note))
    return [
        *(
            measure(model=name, image_text=image_text, score=scorers.score, progress=progress_bar(), **encoding)
            for name in scorers.model
        ),
        *(measure(pair_model=name, progress=progress_bar(), **encoding) for name in scorers.pair_model),
        *(measure(scores=table) for table in scorers.scores),
        *(measure(blind=name) for name in scorers.blind),
    ]


def _write_dataset(cases: analyze.HardNegatives, folder: Path, overwrite: bool) -> None:
    written = cases.as_dataset()
    written.save(folder, overwrite=overwrite)
    print_note(f"{len(written.caption_ids):,} captions of {len(written.image_ids):,} images written to {folder}")


def _as_known(
    source: Path | None, encode: EncodeOptions, folder: str | Path | None
) -> tuple[Path | None, EncodeOptions]:
    """The files of a set that is named, and its pictures where they are known and no other folder is given."""
    if source is None or not data.is_known(str(source)):
        return source, encode
    known = data.known_dataset(str(source))
    if known.purpose != "hard negatives":
        raise UsageError(
            f"{known.name} has no hard negatives",
            fix=f"make some from its captions: --dataset {known.name} --perturb adversarial",
        )
    files = data.find_known(known.name, folder)
    pictures = files.pictures if encode.image_folder is None else encode.image_folder
    return files.path, replace(encode, image_folder=pictures)

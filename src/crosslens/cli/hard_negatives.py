"""``crosslens hard-negatives``: does the right caption win against captions that are nearly right?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosslens.cli.console import Json, examples, note, progress, say, say_json, width
from crosslens.cli.dataset_flags import Captions, Data, Images, Instances, Split, reader_options
from crosslens.cli.model_flags import BatchSize, CacheFolder, ImageFolder, NoCache, Offline, Precision

if TYPE_CHECKING:
    from crosslens.analyze.hard_negatives_result import HardNegativesResult
    from crosslens.core.dataset import Dataset
    from crosslens.data.hard_negatives import HardNegatives

EXAMPLES = examples(
    "crosslens hard-negatives sugar_crepe/ --image-folder val2017 \\",
    "    --model clip:openai/clip-vit-base-patch32 --blind shorter -o cases.parquet",
    "crosslens hard-negatives visual_genome_relation.json --model siglip:google/siglip-base-patch16-224",
    "crosslens hard-negatives winoground/ --scores itm.csv --plot winoground.html",
    "crosslens hard-negatives --dataset captions.jsonl --perturb adversarial --model file:embeddings/",
)

_TABLES = (".parquet", ".csv")


def hard_negatives(
    source: Annotated[
        Path | None,
        typer.Argument(help="SugarCrepe's, ARO's or Winoground's folder or file, or a table of cases of your own."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="sugar_crepe, aro, aro_order, winoground or cases. [default: what it looks like]"
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|PATH", help="Captions to perturb (--perturb) or that stand for images (--image-text)."
        ),
    ] = None,
    perturb: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Perturbations that make its captions wrong: antonym,size."),
    ] = None,
    together: Annotated[
        bool, typer.Option("--together", help="One case per caption, with all perturbations as its wrong captions.")
    ] = False,
    captions: Captions = None,
    instances: Instances = None,
    images: Images = None,
    split: Split = None,
    data: Data = None,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND:SOURCE", help="A model, or file:FOLDER for its embeddings; may be given again."),
    ] = None,
    pair_model: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND:SOURCE", help="A model of pairs, such as blip:…-itm-…; may be given again."),
    ] = None,
    scores: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A table: case, caption, image, score; may be given again."),
    ] = None,
    blind: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="shorter or longer: the caption's length alone; may be given again."),
    ] = None,
    image_text: Annotated[
        bool,
        typer.Option("--image-text", help="For text models: an image is the mean of its other captions."),
    ] = False,
    image_folder: ImageFolder = None,
    crop: Annotated[bool, typer.Option("--crop/--no-crop", help="ARO: show the box a case is about, or all.")] = True,
    by: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Group by this instead; may be given again.")
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(metavar="CATEGORY", help="Leave out a category; may be given again.")
    ] = None,
    score: Annotated[
        str | None, typer.Option(metavar="NAME", help="The score function of the vectors. [default: by their kind]")
    ] = None,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Leave out cases without a picture or a score, instead of stopping.")
    ] = False,
    tolerance: Annotated[
        float, typer.Option(metavar="X", help="Scores that differ by no more than this are tied.")
    ] = 0.0,
    precision: Precision = "fp32",
    device: Annotated[
        str | None, typer.Option(metavar="NAME", help="cpu, cuda, cuda:1. [default: a GPU if there is one]")
    ] = None,
    batch_size: BatchSize = None,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    offline: Offline = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of perturbations and intervals.")] = 0,
    resamples: Annotated[int, typer.Option(metavar="N", help="Resamples for the intervals; 0 for none.")] = 1000,
    level: Annotated[float, typer.Option(metavar="SHARE", help="Confidence level of the intervals.")] = 0.95,
    failures: Annotated[int, typer.Option(min=0, metavar="N", help="How many of the worst failures are shown.")] = 5,
    write_dataset: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write the cases as a dataset, for crosslens encode.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Every case as a row: .parquet or .csv.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Bars: .html, .svg, .png or .pdf.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that stand there.")] = False,
    json: Json = False,
) -> None:
    """Test a model on captions that are nearly right.

    Reads SugarCrepe, ARO and Winoground, cases of your own, or makes cases from a dataset's captions by perturbation.
    Prints how often the right caption scores strictly higher, by category, beside chance; of several models also their
    paired differences from the first.
    """
    from crosslens.analyze.hard_negatives_compare import compare_results

    _check_outputs(output, plot, write_dataset, overwrite)
    described = _dataset(dataset, data, captions=captions, instances=instances, images=images, split=split)
    cases = _cases(source, form, described, perturb, together, crop, by or [], without or [], seed)
    if write_dataset is not None:
        _write_dataset(cases, write_dataset, overwrite)
    encoding = {"device": device, "precision": precision, "offline": offline, "tell": note}
    options = {
        "score": score, "skip_missing": skip_missing, "tolerance": tolerance, "image_folder": image_folder,
        "batch_size": batch_size, "precision": precision, "resamples": resamples, "level": level, "seed": seed,
        "image_text": _image_text(image_text, described, perturb), "cache": None if no_cache else _cache(cache),
    }  # fmt: skip
    results = _results(
        cases, model or [], pair_model or [], scores or [], blind or [], encoding, options, write_dataset is not None
    )
    if not results:
        return
    seeing = len(results) - len(blind or []) or len(results)  # lengths are there to be read beside, not to be tested
    compared = [compare_results(results[0], other, resamples=resamples, seed=seed) for other in results[1:seeing]]
    written = _write(results, output, plot, overwrite)
    if json:
        say_json(
            {
                "results": [one.as_dict(failures) for one in results],
                "comparisons": [one.as_dict() for one in compared],
                "files": written,
            }
        )
        return
    told = [one.text(width(), failures if place < seeing else 0) for place, one in enumerate(results)]
    say("\n\n\n".join(told + [one.text(width()) for one in compared]))
    for file in written:
        note(f"\nwritten to {file}")


def _check_outputs(output: Path | None, plot: Path | None, folder: Path | None, overwrite: bool) -> None:
    from crosslens.core.errors import ConflictError, UsageError
    from crosslens.report.plots.paper import suffix_of

    if output is not None and output.suffix.lower() not in _TABLES:
        raise UsageError(f"{output}: no table is written as {output.suffix!r}", fix=f"use {' or '.join(_TABLES)}")
    if plot is not None:
        suffix_of(plot)
    for place in (output, plot, folder):
        if place is not None and place.exists() and not overwrite:
            raise ConflictError(f"{place} already exists", fix="choose another name, or pass --overwrite")


def _dataset(name: str | None, data: list[str] | None, **named: str | None) -> Dataset | None:
    from crosslens.data import load_dataset

    options = reader_options(name, data, **named)
    return None if name is None else load_dataset(name, **options)


def _cases(
    source: Path | None,
    form: str | None,
    described: Dataset | None,
    perturb: str | None,
    together: bool,
    crop: bool,
    by: list[str],
    without: list[str],
    seed: int,
) -> HardNegatives:
    from crosslens.pipeline.negative_cases import load_cases, one_source, perturbed_negatives

    one_source(source, described, perturb, form=form, by=by, crop=crop, together=together)
    if source is not None:
        found = load_cases(source, form, crop=crop, by=by, seed=seed, progress=progress())
    else:
        assert described is not None
        assert perturb is not None
        found = perturbed_negatives(described, perturb, together=together, seed=seed, progress=progress())
    return found.without(without) if without else found


def _image_text(wanted: bool, described: Dataset | None, perturb: str | None) -> Dataset | None:
    from crosslens.core.errors import UsageError

    if described is not None and not (wanted or perturb):
        raise UsageError("--dataset without a use", fix="pass --image-text, for text models, or leave it out")
    if wanted and described is None:
        raise UsageError("--image-text without captions", fix="pass --dataset, which has the images' captions")
    return described if wanted else None


def _cache(folder: str | None) -> Any:
    from crosslens.encode import Cache

    return Cache(folder, tell=note)


def _results(
    cases: HardNegatives,
    models: list[str],
    pair_models: list[str],
    tables: list[Path],
    blind: list[str],
    encoding: dict[str, Any],
    options: dict[str, Any],
    may_be_none: bool,
) -> list[HardNegativesResult]:
    from crosslens.core.errors import UsageError
    from crosslens.encode import load_encoder, load_pair_scorer
    from crosslens.pipeline.hard_negatives import hard_negatives as measure

    if not (models or pair_models or tables or blind or may_be_none):
        raise UsageError("nothing that scores the cases", fix="pass --model, --pair-model, --scores or --blind")
    found = [measure(cases, load_encoder(one, **encoding), progress=progress(), **options) for one in models]
    seeing = {key: one for key, one in options.items() if key not in ("score", "image_text")}
    found += [
        measure(cases, pair_model=load_pair_scorer(one, **encoding), progress=progress(), **seeing)
        for one in pair_models
    ]
    plain = {key: options[key] for key in ("skip_missing", "tolerance", "resamples", "level", "seed")}
    found += [measure(cases, scores=one, **plain) for one in tables]
    return found + [measure(cases, blind=one, **plain) for one in blind]


def _write_dataset(cases: HardNegatives, folder: Path, overwrite: bool) -> None:
    written = cases.as_dataset()
    written.save(folder, overwrite=overwrite)
    note(f"{len(written.caption_ids):,} captions of {len(written.image_ids):,} images written to {folder}")


def _write(results: list[HardNegativesResult], output: Path | None, plot: Path | None, overwrite: bool) -> list[str]:
    import polars as pl

    from crosslens.data.files import writing_bytes

    written = []
    if output is not None:
        rows = pl.concat([one.cases.select(pl.lit(one.model).alias("model"), pl.all()) for one in results])
        with writing_bytes(output) as out:
            rows.write_csv(out) if output.suffix.lower() == ".csv" else rows.write_parquet(out)
        written.append(str(output))
    if plot is not None:
        from crosslens.report.plots.hard_negatives import write_negatives_plot

        written.append(str(write_negatives_plot(results, plot, overwrite=overwrite)))
    return written

"""``crosslens build``: new benchmarks from candidates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosslens.cli.console import Json, examples, note, progress, say, say_json, width
from crosslens.cli.dataset_flags import Captions, Data, Images, Instances, Split, reader_options
from crosslens.cli.model_flags import BatchSize, CacheFolder, ImageFolder, NoCache, Offline, Precision, SkipBad
from crosslens.core.grid import PAGE_WIDTH

if TYPE_CHECKING:
    from crosslens.build import DecisionLog, Recos

RECOS_EXAMPLES = examples(
    "crosslens build recos --candidates scenes/ --encoder clip:openai/clip-vit-base-patch32 \\",
    "    --k 20 --eta 0.8 -o bench/",
    "crosslens build recos --candidates coco --captions captions.json --image-folder val2017 \\",
    "    --encoder sentence:all-MiniLM-L6-v2 --image-text mean --temperature 0.05 -o bench/",
    "crosslens build recos --candidates scenes/ --encoder file:vectors --text-encoder clip:… \\",
    "    --generator 'http:http://127.0.0.1:8000/v1?model=NAME' -o bench/",
    "crosslens build recos --repeat bench/decisions.jsonl -o again/",
)

_MODEL = "KIND:SOURCE"
_ORIGIN = ("encoder", "text_encoder", "image_encoder", "image_text", "image_folder", "precision", "skip_bad")
_SETTINGS = (
    "k", "eta", "temperature", "descriptions", "attempts", "originals", "similar", "duplicate_cosine",
    "duplicate_bits", "task_column", "source_column", "seed",
)  # fmt: skip


def recos(
    context: typer.Context,
    candidates: Annotated[
        str | None, typer.Option(metavar="NAME|PATH", help="The candidates: a reader's name, or a dataset's path.")
    ] = None,
    captions: Captions = None,
    instances: Instances = None,
    images: Images = None,
    split: Split = None,
    data: Data = None,
    encoder: Annotated[
        str | None,
        typer.Option(metavar=_MODEL, help="Compares descriptions with images (see crosslens encode --list)."),
    ] = None,
    text_encoder: Annotated[
        str | None,
        typer.Option(metavar=_MODEL, help="Encodes the descriptions, where --encoder holds images only (same space)."),
    ] = None,
    image_encoder: Annotated[
        str | None, typer.Option(metavar=_MODEL, help="Compares images with each other. [default: --encoder]")
    ] = None,
    image_text: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="For an --encoder of texts: an image is the mean of its captions' vectors (mean), or a summary of "
            "them (extractive).",
        ),
    ] = None,
    image_folder: ImageFolder = None,
    generator: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Rewrites descriptions: rules, http:ADDRESS (an OpenAI-compatible endpoint), or none."
        ),
    ] = "rules",
    k: Annotated[
        int, typer.Option(metavar="N", help="How many most similar images a description is held against.")
    ] = 20,
    eta: Annotated[
        float, typer.Option(metavar="SHARE", help="The share of 0 to ln k that is kept; larger keeps more.")
    ] = 0.8,
    temperature: Annotated[
        float | None, typer.Option(metavar="T", help="Of the softmax. [default: 1 / the encoder's logit scale]")
    ] = None,
    descriptions: Annotated[int, typer.Option(metavar="N", help="How many each image has.")] = 5,
    attempts: Annotated[int, typer.Option(metavar="N", help="How often a description may be rewritten.")] = 3,
    originals: Annotated[
        int | None, typer.Option(metavar="N", help="How many images v0 has. [default: a third of the candidates]")
    ] = None,
    similar: Annotated[int, typer.Option(metavar="N", help="For v2: similar images without text for each image.")] = 20,
    duplicate_cosine: Annotated[
        float, typer.Option(metavar="COSINE", help="From here on two images are one; 2 for never.")
    ] = 0.98,
    duplicate_bits: Annotated[
        int, typer.Option(metavar="N", help="Up to so many different bits of 192 two pictures are one; -1 for never.")
    ] = 12,
    task_column: Annotated[str, typer.Option(metavar="NAME", help="The images' column with the task.")] = "task",
    source_column: Annotated[str, typer.Option(metavar="NAME", help="The images' column with the source.")] = "source",
    seed: Annotated[int, typer.Option(metavar="N", help="Decides which candidates become originals.")] = 0,
    repeat: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A decisions.jsonl: do the same again, and check that it is.")
    ] = None,
    copy_images: Annotated[
        bool, typer.Option("--copy-images", help="Copy the pictures, so that the folder can be moved.")
    ] = False,
    precision: Precision = "fp32",
    device: Annotated[
        str | None, typer.Option(metavar="NAME", help="cpu, cuda, cuda:1. [default: a GPU if there is one]")
    ] = None,
    batch_size: BatchSize = None,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    offline: Offline = False,
    skip_bad: SkipBad = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="Where v0/, v1/ and v2/ are written.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace another benchmark there.")] = False,
    json: Json = False,
) -> None:
    """Build a RECOS benchmark: v0, v1 and v2.

    Keeps descriptions that neither fit too many images nor give theirs away, rewrites or drops the others (v0); adds
    for each image a confusable one of the same source (v1) and similar ones without text (v2). Every decision is in
    decisions.jsonl. Run the same command again to go on where it was stopped.
    """
    from crosslens.build import DecisionLog, RecosSettings, build_recos
    from crosslens.core.errors import UsageError
    from crosslens.data import load_dataset
    from crosslens.encode import Cache
    from crosslens.pipeline.recipe.model import say_skipped

    if output is None:
        raise UsageError("no -o", fix="say where the benchmark is written; see crosslens build recos --help")
    given = context.params
    log = None if repeat is None else DecisionLog.load(repeat)
    if log is not None:
        _refuse_settings(context)
        given = {**given, **_logged(log, context)}
    for flag in ("candidates", "encoder"):
        if given[flag] is None:
            raise UsageError(f"no --{flag}", fix="see crosslens build recos --help")
    source = given["candidates"]
    options = given.get("options") or reader_options(
        source, data, captions=captions, instances=instances, images=images, split=split
    )
    found = build_recos(
        load_dataset(source, **options),
        given["encoder"],
        RecosSettings(**(log.head["settings"] if log is not None else {name: given[name] for name in _SETTINGS})),
        generator=None if generator == "none" else generator,
        **{name: given[name] for name in _ORIGIN if name != "encoder"},
        cache=None if no_cache else Cache(cache, tell=note),
        batch_size=batch_size,
        device=device,
        offline=offline,
        output=output,
        copy_images=given["copy_images"],
        overwrite=overwrite,
        repeat=log,
        origin=_origin(source, options, given),
        progress=progress(),
        tell=note,
    )
    say_skipped(found.log.head["left_out"], note)
    _report(found, output, json)


def _refuse_settings(context: typer.Context) -> None:
    """A repeated build has the settings of its log; another one given beside would be ignored."""
    from crosslens.core.errors import UsageError

    for name in (*_SETTINGS, "generator", "copy_images"):
        if _said(context, name):
            raise UsageError(
                f"--repeat takes its settings from the log: --{name.replace('_', '-')} does not fit", fix="leave it out"
            )


def _said(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _logged(log: DecisionLog, context: typer.Context) -> dict[str, Any]:
    """Where the log says things are; what is said on the command line (data that was moved) goes first."""
    origin = dict(log.head["origin"])
    parts = {name: origin[name] for name in _ORIGIN if name in origin and not _said(context, name)}
    if "candidates" in origin and not _said(context, "candidates"):
        parts |= {"candidates": origin["candidates"], "options": origin["options"]}
    return parts | {"copy_images": log.head["copy_images"]}


def _origin(source: str, options: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What the command named, with paths that hold from any folder."""
    from crosslens.encode.encoder import map_path

    def full(value: Any) -> Any:
        there = isinstance(value, str) and value and Path(value).expanduser().exists()
        return str(Path(value).expanduser().resolve()) if there else value

    found = {"candidates": full(source), "options": {name: full(value) for name, value in options.items()}}
    for name in _ORIGIN:
        value = given[name]
        is_model = name.endswith("encoder") and value is not None
        found[name] = (
            map_path(value, Path(), lambda path: str(Path(path).expanduser().resolve())) if is_model else value
        )
    return found | {"image_folder": full(given["image_folder"])}


def _report(found: Recos, output: Path, json: bool) -> None:
    from crosslens.build.pages import check_summary, verdicts

    for one in found.notes:
        note(f"note: {one}")
    sizes = {
        name: {"images": len(one.image_ids), "captions": len(one.caption_ids), "fingerprint": one.fingerprint}
        for name, one in found.versions.items()
    }
    if json:
        say_json(
            {
                "output": str(output),
                "key": found.log.head["key"],
                "temperature": found.check.temperature,
                "descriptions": verdicts(found.log),
                "versions": sizes,
                "notes": list(found.notes),
            }
        )
        return
    say(check_summary(found.check, found.settings, found.log))
    say()
    for name, size in sizes.items():
        say(f"  {output / name}: {size['images']:,} images, {size['captions']:,} descriptions")
    say(f"\n{_by_task(found)}")
    note(f"\nalready there: {output} (nothing to do)" if found.already else f"\nwritten to {output}")


def _by_task(found: Recos) -> str:
    """How many originals each task has, in lines that fit; a name stays beside its number."""
    import textwrap

    counts = sorted(found.versions["v0"].images["task"].value_counts().iter_rows())
    text = "  ".join(f"{task} {count:,}".replace(" ", "\xa0") for task, count in counts)
    lines = textwrap.fill(
        f"originals by task: {text}",
        width() or PAGE_WIDTH,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines.replace("\xa0", " ")

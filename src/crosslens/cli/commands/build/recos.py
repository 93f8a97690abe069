"""``crosslens build recos``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

import crosslens.build as build
import crosslens.data as data
import crosslens.encode as encode
import crosslens.pipeline as pipeline
from crosslens.build import RecosSettings
from crosslens.cli.commands.build.origins import MODEL, absolute, is_given, refuse_on_repeat, resolved
from crosslens.cli.commands.evaluate import open_cache
from crosslens.cli.console import (
    confirm_code,
    print_json,
    print_note,
    print_notes,
    print_result,
    progress_bar,
    terminal_width,
)
from crosslens.cli.datasets import DatasetOptions
from crosslens.cli.flags import (
    IMAGE_TEXT,
    OUTPUT,
    CopyImages,
    Flags,
    Json,
    Overwrite,
    RepeatBuild,
    TrustCodeFlag,
    command,
)
from crosslens.core import PAGE_WIDTH, Options, UsageError, code_named_by, declarations, option, trusting
from crosslens.encode import EncodeOptions

_ENCODERS = ("encoder", "text_encoder", "image_encoder")
_ORIGIN = (*_ENCODERS, "image_text", "image_folder", "precision", "skip_bad")


@dataclass(frozen=True)
class RecosInputs(Options):
    """The candidates, and the models that encode them."""

    candidates: str | None = option(None, "The candidates: a reader's name, or a dataset's path.", metavar="NAME|PATH")
    encoder: str | None = option(
        None, "Compares descriptions with images (see crosslens encode --list).", metavar=MODEL
    )
    text_encoder: str | None = option(
        None, "Encodes the descriptions, where --encoder holds images only (same space).", metavar=MODEL
    )
    image_encoder: str | None = option(None, "Compares images with each other. [default: --encoder]", metavar=MODEL)
    image_text: str | None = option(None, IMAGE_TEXT.format("an --encoder"), metavar="HOW")


@command(
    "crosslens build recos --candidates scenes/ --k 20 --eta 0.8 -o bench/ \\",
    "    --encoder clip:openai/clip-vit-base-patch32",
    "crosslens build recos --candidates coco --captions captions.json \\",
    "    --image-folder val2017 --encoder sentence:all-MiniLM-L6-v2 \\",
    "    --image-text mean --temperature 0.05 -o bench/",
    "crosslens build recos --candidates scenes/ --encoder file:vectors \\",
    "    --text-encoder clip:… -o bench/ \\",
    "    --generator 'http:http://127.0.0.1:8000/v1?model=NAME'",
    "crosslens build recos --repeat bench/decisions.jsonl -o again/",
    "crosslens build recos --repeat bench/ --verified bench/verify.csv \\",
    "    -o checked/",
)
def recos(
    context: typer.Context,
    reader: Annotated[DatasetOptions, Flags(without=("dataset",))],
    encode: EncodeOptions,
    inputs: RecosInputs,
    settings: RecosSettings,
    generator: str = option(
        "rules", "Rewrites descriptions: rules, http:ADDRESS (an OpenAI-compatible endpoint), or none.", metavar="NAME"
    ),
    grammar: str = option("none", "Checks what the generator writes: rules, or none.", metavar="NAME"),
    verified: Path | None = option(
        None, "The filled-in verify.csv of an earlier build (.csv, .tsv, .jsonl).", metavar="FILE"
    ),
    repeat: RepeatBuild = None,
    copy_images: CopyImages = False,
    output: Path | None = option(None, "Where v0/, v1/ and v2/ are written.", metavar="FOLDER", flags=OUTPUT),
    overwrite: Overwrite = False,
    trust_code: TrustCodeFlag = False,
    json: Json = False,
) -> None:
    """Build a RECOS benchmark: v0, v1 and v2.

    Keeps descriptions that fit neither too many images nor only theirs, rewrites or drops the others (v0); adds for
    each image a confusable one of the same source (v1) and similar ones without text (v2). Every decision is in
    decisions.jsonl. Running the same command again resumes where it was interrupted.
    """
    if output is None:
        raise UsageError("missing option -o/--output", fix="say where the benchmark is written: -o FOLDER")
    log, logged = None, dict[str, Any]()
    if repeat is not None:
        log = build.DecisionLog.load(repeat)
        _refuse_settings(context, new_verdicts=verified is not None)
        logged, settings = _logged(log, context), RecosSettings(**log.head["settings"])
        generator, grammar = _logged_writers(log, context, generator, grammar)
        inputs = RecosInputs.pick({**vars(inputs), **logged})
        encode = EncodeOptions.pick({**vars(encode), **logged})
    if inputs.candidates is None or inputs.encoder is None:
        flag = "--candidates" if inputs.candidates is None else "--encoder"
        raise UsageError(f"missing option {flag}", fix="see crosslens build recos --help")
    options = logged.get("options") or reader.reader_options(inputs.candidates)
    names_encoders = any(logged.get(name) for name in _ENCODERS)
    with trusting(trust_code or confirm_code), code_named_by(repeat if names_encoders else None):
        result = build.build_recos(
            data.load_dataset(inputs.candidates, **options),
            inputs.encoder,
            settings,
            generator=None if generator == "none" else generator,
            grammar=None if grammar == "none" else grammar,
            verified=verified,
            text_encoder=inputs.text_encoder,
            image_encoder=inputs.image_encoder,
            image_text=inputs.image_text,
            output=output,
            copy_images=logged.get("copy_images", copy_images),
            overwrite=overwrite,
            repeat=None if verified else log,
            origin=_origin(inputs.candidates, options, {**vars(inputs), **vars(encode)}),
            progress=progress_bar(),
            **vars(replace(encode, cache=open_cache(encode), notify=print_note)),
        )
    pipeline.note_skipped(result.log.head["left_out"], print_note)
    _report(result, output, json)


def _refuse_settings(context: typer.Context, *, new_verdicts: bool) -> None:
    """A repeated build has the settings of its log: those of the command would be ignored.

    With new verdicts descriptions may have to be written, by whichever generator the command names.
    """
    writers = () if new_verdicts else ("generator", "grammar")
    refuse_on_repeat(context, (*declarations(RecosSettings), "copy_images", *writers))


def _logged(log: build.DecisionLog, context: typer.Context) -> dict[str, Any]:
    """Where the log says the inputs are; what the command line names (data that was moved) takes precedence."""
    origin = dict(log.head["origin"])
    parts = {name: origin[name] for name in _ORIGIN if name in origin and not is_given(context, name)}
    if "candidates" in origin and not is_given(context, "candidates"):
        parts |= {"candidates": origin["candidates"], "options": origin["options"]}
    return parts | {"copy_images": log.head["copy_images"]}


def _logged_writers(log: build.DecisionLog, context: typer.Context, generator: str, grammar: str) -> tuple[str, str]:
    """The generator and the grammar check of the log, unless the command names others.

    An address that a log names is not called unasked: only the built-in generator is.
    """
    if not is_given(context, "generator"):
        named = log.head["generator"]
        generator = "none" if named is None or named["name"] != "rules" else "rules"
    if not is_given(context, "grammar"):
        grammar = log.head["grammar"]["name"] if "grammar" in log.head else "none"
    return generator, grammar


def _origin(source: str, options: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """The inputs that the command names, as absolute paths."""
    origin = {"candidates": absolute(source), "options": {name: absolute(value) for name, value in options.items()}}
    for name in _ORIGIN:
        value = arguments[name]
        is_model = name.endswith("encoder") and value is not None
        origin[name] = encode.map_path(value, Path(), resolved) if is_model else value
    return origin | {"image_folder": absolute(arguments["image_folder"])}


def _report(result: build.Recos, output: Path, json: bool) -> None:
    print_notes(result.notes)
    sizes = {
        name: {
            "images": len(dataset.image_ids),
            "captions": len(dataset.caption_ids),
            "fingerprint": dataset.fingerprint,
        }
        for name, dataset in result.versions.items()
    }
    if json:
        print_json(
            {
                "output": str(output),
                "key": result.log.head["key"],
                "temperature": result.check.temperature,
                "descriptions": build.verdict_counts(result.log),
                "tasks": _tasks(result),
                "grammar": build.grammar_counts(result.log) if "grammar" in result.log.head else None,
                "verified": build.verification_counts(result.log, result.versions),
                "versions": sizes,
                "notes": list(result.notes),
            }
        )
        return
    print_result(build.check_summary(result.check, result.settings, result.log))
    print_result()
    for name, size in sizes.items():
        print_result(f"  {output / name}: {size['images']:,} images, {size['captions']:,} descriptions")
    print_result(f"\n{_by_task(result)}")
    print_note(f"\nup to date: {output} (nothing to do)" if result.already else f"\nwritten to {output}")


def _by_task(result: build.Recos) -> str:
    """How many originals each task has, in lines that fit; no line break between a name and its number."""
    import textwrap

    quotas = result.settings.quota is not None
    texts = [
        f"{task} {count['originals']:,}" + (f" of {count['quota']:,}" if quotas else "")
        for task, count in _tasks(result).items()
        if quotas or count["originals"]
    ]
    text = "  ".join(text.replace(" ", "\xa0") for text in texts)
    lines = textwrap.fill(
        f"originals by task: {text}",
        terminal_width() or PAGE_WIDTH,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines.replace("\xa0", " ")


def _tasks(result: build.Recos) -> dict[str, dict[str, int]]:
    """How many originals each task should have, and has."""
    counts = dict(result.versions["v0"].images["task"].value_counts().iter_rows())
    return {task: {"quota": quota, "originals": counts.get(task, 0)} for task, quota in sorted(result.quotas.items())}

"""What a command that repeats a logged build shares with others: where its inputs are, and what it may not be given."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from crosslens import build, data, encode, pipeline, storage
from crosslens.build import CleaningSettings, RecosSettings, SamplingSettings, SelectionSettings
from crosslens.cli.answers import wrote
from crosslens.cli.commands.evaluate import encoding_of
from crosslens.cli.console import check_outputs, confirm_code, print_note, print_notes, progress_bar
from crosslens.cli.datasets import DatasetOptions, dataset_words, image_vectors, load_dataset_words
from crosslens.cli.flags import IMAGE_TEXT, Flags, Json, Overwrite, command, output_option, positional
from crosslens.core import Options, UsageError, declarations, option, without_secrets
from crosslens.encode import EncodeOptions
from crosslens.storage import named_by, trusting


def refuse_on_repeat(context: typer.Context, names: Iterable[str]) -> None:
    """Raise for a setting on the command line: a repeated build has those of its log, and would ignore it."""
    for name in names:
        if is_given(context, name):
            raise UsageError(
                f"--{name.replace('_', '-')} does not go with --repeat, which takes its settings from the log",
                fix=f"drop --{name.replace('_', '-')}",
            )


def is_given(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def resolved(path: str) -> str:
    """A path in full."""
    return str(Path(path).expanduser().resolve())


def absolute(value: Any) -> Any:
    """A path of something that exists, in full; anything else as it is, without credentials of an address."""
    is_path = isinstance(value, str | Path) and str(value) and Path(value).expanduser().exists()
    return resolved(str(value)) if is_path else without_secrets(value) if isinstance(value, str) else value


@dataclass(frozen=True)
class BenchmarkOptions(Options, group="Output"):
    """Where a benchmark is written, and which build is repeated."""

    repeat: Path | None = option(None, "A decisions.jsonl: repeat that build, and verify the result.", group="Input")
    copy_images: bool = option(False, "Copy the images, so that the folder can be moved.")
    output: Path | None = output_option("Where the benchmark is written.", "FOLDER")
    trust_code: bool = option(False, "Run Python code that a recipe, a run or a log names, without asking.")

    @property
    def folder(self) -> Path:
        if self.output is None:
            raise UsageError("missing option -o/--output", fix="say where the benchmark is written: -o FOLDER")
        return self.output


_ENCODERS = ("encoder", "text_encoder", "image_encoder")
_ORIGIN = (*_ENCODERS, "image_text", "image_folder", "precision", "skip_bad")


@dataclass(frozen=True)
class RecosInputs(Options, group="Input"):
    """The candidates, and the models that encode them."""

    candidates: str | None = option(None, "The candidates: a reader's name, or a dataset's path.", metavar="NAME|PATH")
    encoder: str | None = option(None, "Compares descriptions with images (see crosslens encode --list).")
    text_encoder: str | None = option(None, "Encodes the descriptions, where --encoder holds images only (same space).")
    image_encoder: str | None = option(None, "Compares images with each other. [default: --encoder]")
    image_text: str | None = option(None, IMAGE_TEXT.format("an --encoder"))


@command(
    "crosslens build recos --candidates scenes/ --k 20 --eta 0.8 -o bench/ --encoder clip:openai/clip-vit-base-patch32",
    "crosslens build recos --candidates coco --captions captions.json --image-folder val2017 \\",
    "    --encoder sentence:all-MiniLM-L6-v2 --image-text mean --temperature 0.05 -o bench/",
    "crosslens build recos --candidates scenes/ --encoder file:vectors --text-encoder clip:… -o bench/ \\",
    "    --generator 'http:http://127.0.0.1:8000/v1?model=NAME'",
    "crosslens build recos --repeat bench/decisions.jsonl -o again/",
    "crosslens build recos --repeat bench/ --verified bench/verify.csv -o checked/",
    common=("candidates", "encoder", "k", "eta", "originals", "generator", "verified", "repeat"),
)
def recos(
    context: typer.Context,
    *,
    reader: Annotated[DatasetOptions, Flags(without=("dataset",))],
    encode: EncodeOptions,
    inputs: RecosInputs,
    settings: RecosSettings,
    generator: str = option(
        "rules", "Rewrites descriptions: rules, http:ADDRESS (an OpenAI-compatible endpoint), or none."
    ),
    grammar: str = option("none", "Checks what the generator writes: rules, or none."),
    verified: Path | None = option(None, "The filled-in verify.csv of an earlier build (.csv, .tsv, .jsonl)."),
    benchmark: Annotated[BenchmarkOptions, Flags(help={"output": "Where v0/, v1/ and v2/ are written."})],
    overwrite: Overwrite = False,
    json: Json = False,
) -> build.Recos:
    """Build a RECOS benchmark: v0, v1 and v2.

    Keeps descriptions that fit neither too many images nor only theirs, rewrites or drops the others (v0); adds for
    each image a confusable one of the same source (v1) and similar ones without text (v2). Every decision is in
    decisions.jsonl. Running the same command again resumes where it was interrupted.
    """
    output, repeat = benchmark.folder, benchmark.repeat
    log, logged = None, dict[str, Any]()
    if repeat is not None:
        log = build.DecisionLog.load(repeat)
        # With new verdicts descriptions may have to be written, by whichever generator the command names.
        writers = () if verified is not None else ("generator", "grammar")
        refuse_on_repeat(context, (*declarations(RecosSettings), "copy_images", *writers))
        # Where the log says the inputs are; what the command line names (data that was moved) takes precedence.
        origin, settings = log.head["origin"], RecosSettings(**log.head["settings"])
        logged = {name: origin[name] for name in _ORIGIN if name in origin and not is_given(context, name)}
        if "candidates" in origin and not is_given(context, "candidates"):
            logged |= {"candidates": origin["candidates"], "options": origin["options"]}
        logged["copy_images"] = log.head["copy_images"]
        if not is_given(context, "generator"):  # an address that a log names is not called unasked
            logged_generator = log.head["generator"]
            generator = "none" if logged_generator is None or logged_generator["name"] != "rules" else "rules"
        if not is_given(context, "grammar"):
            grammar = log.head["grammar"]["name"] if "grammar" in log.head else "none"
        inputs = RecosInputs.pick({**vars(inputs), **logged})
        encode = EncodeOptions.pick({**vars(encode), **logged})
    if inputs.candidates is None or inputs.encoder is None:
        flag = "--candidates" if inputs.candidates is None else "--encoder"
        raise UsageError(f"missing option {flag}", fix="see crosslens build recos --help")
    options = logged.get("options") or reader.reader_options(inputs.candidates)
    names_encoders = any(logged.get(name) for name in _ENCODERS)
    with trusting(benchmark.trust_code or confirm_code), named_by(repeat if names_encoders else None):
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
            copy_images=logged.get("copy_images", benchmark.copy_images),
            overwrite=overwrite,
            repeat=None if verified else log,
            origin=_origin(inputs.candidates, options, {**vars(inputs), **vars(encode)}),
            progress=progress_bar(),
            **vars(encoding_of(encode)),
        )
    pipeline.note_skipped(result.log.head["left_out"], print_note)
    print_notes(result.notes)
    if not result.already:
        wrote(output)
    elif not json:
        print_note(f"up to date: {output} (nothing to do)")
    return replace(result, output=output)


def _origin(source: str, options: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    origin = {"candidates": absolute(source), "options": {name: absolute(value) for name, value in options.items()}}
    for name in _ORIGIN:
        value = arguments[name]
        is_model = name.endswith("encoder") and value is not None
        origin[name] = encode.map_path(value, Path(), resolved) if is_model else value
    return origin | {"image_folder": absolute(arguments["image_folder"])}


@dataclass(frozen=True)
class ImpInputs(Options, group="Input"):
    """The images, the pool of captions, and the models or vectors that compare them."""

    images: str | None = option(
        None, "The images: a folder, a list of them, or a dataset.", metavar='PATH|"NAME KEY=VALUE …"'
    )
    pool: str | None = option(
        None,
        "Captions with the image each belongs to: a table (columns text, image), or a dataset.",
        metavar='FILE|"NAME KEY=VALUE …"',
    )
    pool_images: str | None = option(
        None, "Where the pool's image files are. [default: the pool's folder, or here]", metavar="FOLDER"
    )
    titles: str | None = option(
        None,
        "Captions of the images themselves, such as titles of web pages that show them (columns image, text).",
        metavar='FILE|"NAME KEY=VALUE …"',
    )
    encoder: str | None = option(None, "Compares images (see crosslens encode --list).")
    text_encoder: str | None = option(
        None, "Compares the captions of an image. [default: --encoder, if it encodes texts]"
    )
    image_embeddings: str | None = option(None, "Vectors of the images, instead of encoding them.")
    pool_embeddings: str | None = option(None, "The same of the pool's images.", metavar="FILE")
    corpus: tuple[str, ...] = option(
        (),
        "Captions (a table, a text) or pictures (a folder) that the benchmark must not share; may be repeated.",
        metavar="PATH",
    )


_IMP_ORIGIN = (*(name for name in declarations(ImpInputs)), "image_folder", "precision", "skip_bad")


@command(
    "crosslens build imp --images photos/ --pool captions.parquet --encoder dinov2:facebook/dinov2-base \\",
    "    --text-encoder sentence:all-MiniLM-L6-v2 -o bench/",
    "crosslens build imp --images photos/ --image-embeddings photos.npy --pool captions.parquet \\",
    "    --pool-embeddings pool.npy --text-encoder sentence:all-MiniLM-L6-v2 --band 0.6 0.8 --cluster-sizes 20 100 \\",
    "    --titles titles.csv -o bench/",
    "crosslens build imp --images photos/ --pool captions.parquet --encoder tiny -o bench/ --annotations one.csv \\",
    "    --annotations two.csv --map --map-image beach.jpg --write captions.html",
    "crosslens build imp --repeat bench/decisions.jsonl -o again/",
    common=("images", "pool", "encoder", "text_encoder", "count", "annotations", "repeat"),
)
def imp(
    context: typer.Context,
    *,
    inputs: ImpInputs,
    settings: SamplingSettings,
    cleaning: CleaningSettings,
    selection: SelectionSettings,
    encode: EncodeOptions,
    annotations: list[Path] | None = option(
        None, "A filled-in sheet; may be repeated. [default: the sheets in the output folder]", group="Input"
    ),
    caption_map: bool = option(
        False, "Show the good captions of an image in a plane, the chosen ones marked (--write).", flags=("--map",)
    ),
    map_image: str | None = option(
        None, "Whose captions --map shows. [default: the image with the most good ones]", metavar="IMAGE"
    ),
    benchmark: BenchmarkOptions,
    overwrite: Overwrite = False,
    json: Json = False,
) -> build.Imp:
    """Build an IMP benchmark: images with diverse captions.

    Samples images far from each other, collects captions of similar images of a pool, cleans them and writes sheets in
    which people judge them. Run the same command again when they are filled in: it goes on with the captions on which
    the annotators differ, then chooses diverse captions of each image. Every decision is in decisions.jsonl.
    """
    output, repeat, copy_images = benchmark.folder, benchmark.repeat, benchmark.copy_images
    if map_image is not None and not caption_map:
        raise UsageError("--map-image requires --map", fix="pass --map, or drop --map-image")
    log = None
    if repeat is not None:
        log = build.DecisionLog.load(repeat, build.IMP)
        kinds = (SamplingSettings, CleaningSettings, SelectionSettings)
        refuse_on_repeat(
            context, (*(name for kind in kinds for name in declarations(kind)), "copy_images", "annotations")
        )
        settings, cleaning, selection = (
            kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in log.head[part].items()})
            for kind, part in zip(kinds, ("settings", "cleaning", "selection"), strict=True)
        )
        logged = {name: value for name, value in log.head["origin"].items() if not is_given(context, name)}
        logged["corpus"] = tuple(logged.get("corpus") or inputs.corpus)
        inputs = ImpInputs.pick({**vars(inputs), **logged})
        encode = EncodeOptions.pick({**vars(encode), **logged})
        copy_images = log.head["copy_images"]
    if inputs.images is None or inputs.pool is None:
        flag = "--images" if inputs.images is None else "--pool"
        raise UsageError(f"missing option {flag}", fix="see crosslens build imp --help")
    folder = Path(inputs.images).expanduser()
    is_dataset = not folder.exists() or (folder / storage.HEADER_FILE).exists()
    images = load_dataset_words(inputs.images) if is_dataset else data.read_images(folder)
    pool = load_dataset_words(inputs.pool)
    with trusting(benchmark.trust_code or confirm_code), named_by(repeat):
        result = build.build_imp(
            images,
            pool,
            inputs.encoder,
            settings,
            cleaning=cleaning,
            selection=selection,
            text_encoder=inputs.text_encoder,
            image_embeddings=image_vectors(images, inputs.image_embeddings),
            pool_embeddings=image_vectors(pool, inputs.pool_embeddings),
            pool_images=inputs.pool_images,
            titles=None if inputs.titles is None else load_dataset_words(inputs.titles),
            annotations=annotations or (),
            corpora=inputs.corpus,
            output=output,
            copy_images=copy_images,
            overwrite=overwrite,
            repeat=log,
            origin=_imp_origin({**vars(inputs), **vars(encode)}),
            progress=progress_bar(),
            **vars(encoding_of(encode)),
        )
    pipeline.note_skipped(result.log.head["left_out"], print_note)
    print_notes(result.notes)
    mapped = None
    if caption_map and result.dataset is None:
        print_note("note: no map yet: captions are chosen when people have judged them")
    elif caption_map:
        mapped = build.map_captions(result, map_image)
    if not result.already:
        wrote(output)
    elif not json:
        print_note(f"waiting for verdicts in {output}" if result.waiting else f"up to date: {output} (nothing to do)")
    return replace(result, output=output, mapped=mapped)


def _imp_origin(arguments: dict[str, Any]) -> dict[str, Any]:
    origin: dict[str, Any] = {}
    for name in _IMP_ORIGIN:
        value = arguments[name]
        if name.endswith("encoder") and value is not None:
            value = encode.map_path(value, Path(), resolved)
        elif name in ("images", "pool", "titles") and value and not Path(value).expanduser().exists():
            source, options = dataset_words(value)
            words = [f"{key}={absolute(option)}" for key, option in options.items()]
            value = shlex.join([absolute(source), *words])
        elif isinstance(value, tuple):
            value = [absolute(part) for part in value]
        else:
            value = absolute(value)
        origin[name] = value
    return origin


@command(
    "crosslens build clean titles.txt",
    "crosslens build clean titles.csv --column title -o cleaned.parquet",
    "crosslens build clean pool.parquet --languages any --near-duplicates 0.8 -o cleaned.parquet",
    "crosslens build clean titles.txt --minimum-words 3 --no-tagging -o kept.txt",
    common=("column", "languages", "minimum_words", "near_duplicates"),
)
def clean(
    settings: CleaningSettings,
    source: Path = positional(..., "Captions: .txt (one per line), .csv, .tsv or .parquet.", metavar="FILE"),
    column: str | None = option(None, "The column with the captions. [default: caption, captions, text, title or alt]"),
    near_duplicates: float | None = option(
        None,
        "Also drop captions that share at least this much of their character trigrams with an earlier one.",
        metavar="SHARE",
        minimum=0.1,
        maximum=1,
    ),
    seed: int = option(0, "Seed of the search for near-duplicates."),
    output: Path | None = output_option(
        "Where the table is written: .parquet, .csv, or .txt for the kept captions alone."
    ),
    overwrite: Overwrite = False,
) -> build.CleanedCaptions:
    """Clean web titles: repair captions, drop the rest with a reason.

    Wrong encodings, markup, addresses, names of sites, hashtags, credits and advertising are repaired; what is no
    caption afterwards is dropped. The output has a row per caption: text, cleaned, kept, reason, changes.
    """
    if output is not None:
        build.check_cleaned_output(output)
    check_outputs(output, overwrite=overwrite)
    texts, others = build.read_captions(source, column)
    result = build.clean_captions(texts, settings, progress=progress_bar())
    if near_duplicates is not None:
        result = result.without_near_duplicates(near_duplicates, seed=seed)
    if output is not None:
        build.write_cleaned(result, output, others)
        wrote(output)
    return replace(result, output=output)

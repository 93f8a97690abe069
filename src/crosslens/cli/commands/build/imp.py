"""``crosslens build imp``."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

import crosslens.build as build
import crosslens.core as core
import crosslens.data as data
import crosslens.encode as encode
import crosslens.pipeline as pipeline
from crosslens.build import CleaningSettings, SamplingSettings, SelectionSettings
from crosslens.cli.answers import wrote
from crosslens.cli.commands.build.origins import MODEL, absolute, is_given, refuse_on_repeat, resolved
from crosslens.cli.commands.evaluate import open_cache
from crosslens.cli.console import confirm_code, print_note, print_notes, progress_bar
from crosslens.cli.datasets import dataset_words, load_dataset_words
from crosslens.cli.flags import OUTPUT, CopyImages, Json, Overwrite, RepeatBuild, TrustCodeFlag, command
from crosslens.core import Options, UsageError, code_named_by, declarations, option, trusting
from crosslens.encode import EncodeOptions


@dataclass(frozen=True)
class ImpInputs(Options):
    """The images, the pool of captions, and the models or vectors that compare them."""

    images: str | None = option(
        None, "The images: a folder, a list of them, or a dataset.", metavar='PATH|"NAME KEY=VALUE …"'
    )
    pool: str | None = option(
        None, "Captions with the image each belongs to: a table (columns text, image), or a dataset.",
        metavar='FILE|"NAME KEY=VALUE …"',
    )  # fmt: skip
    pool_images: str | None = option(
        None, "Where the pool's image files are. [default: the pool's folder, or here]", metavar="FOLDER"
    )
    titles: str | None = option(
        None, "Captions of the images themselves, such as titles of web pages that show them (columns image, text).",
        metavar='FILE|"NAME KEY=VALUE …"',
    )  # fmt: skip
    encoder: str | None = option(None, "Compares images (see crosslens encode --list).", metavar=MODEL)
    text_encoder: str | None = option(
        None, "Compares the captions of an image. [default: --encoder, if it encodes texts]", metavar=MODEL
    )
    image_embeddings: str | None = option(None, "Vectors of the images, instead of encoding them.", metavar="FILE")
    pool_embeddings: str | None = option(None, "The same of the pool's images.", metavar="FILE")
    corpus: tuple[str, ...] = option(
        (), "Captions (a table, a text) or pictures (a folder) that the benchmark must not share; may be repeated.",
        metavar="PATH",
    )  # fmt: skip


_IMP_ORIGIN = (*(name for name in declarations(ImpInputs)), "image_folder", "precision", "skip_bad")


@command(
    "crosslens build imp --images photos/ --pool captions.parquet \\",
    "    --encoder dinov2:facebook/dinov2-base \\",
    "    --text-encoder sentence:all-MiniLM-L6-v2 -o bench/",
    "crosslens build imp --images photos/ --image-embeddings photos.npy \\",
    "    --pool captions.parquet --pool-embeddings pool.npy \\",
    "    --text-encoder sentence:all-MiniLM-L6-v2 \\",
    "    --band 0.6 0.8 --cluster-sizes 20 100 --titles titles.csv -o bench/",
    "crosslens build imp --images photos/ --pool captions.parquet \\",
    "    --encoder tiny -o bench/ \\",
    "    --annotations one.csv --annotations two.csv \\",
    "    --map --map-image beach.jpg --write captions.html",
    "crosslens build imp --repeat bench/decisions.jsonl -o again/",
)
def imp(
    context: typer.Context,
    inputs: ImpInputs,
    settings: SamplingSettings,
    cleaning: CleaningSettings,
    selection: SelectionSettings,
    encode: EncodeOptions,
    annotations: list[Path] | None = option(
        None, "A filled-in sheet; may be repeated. [default: the sheets in the output folder]", metavar="FILE"
    ),
    repeat: RepeatBuild = None,
    caption_map: bool = option(
        False, "Show the good captions of an image in a plane, the chosen ones marked (--write).", flags=("--map",)
    ),
    map_image: str | None = option(
        None, "Whose captions --map shows. [default: the image with the most good ones]", metavar="IMAGE"
    ),
    copy_images: CopyImages = False,
    output: Path | None = option(None, "Where the benchmark is written.", metavar="FOLDER", flags=OUTPUT),
    overwrite: Overwrite = False,
    trust_code: TrustCodeFlag = False,
    json: Json = False,
) -> build.Imp:
    """Build an IMP benchmark: images with diverse captions.

    Samples images far from each other, collects captions of similar images of a pool, cleans them and writes sheets in
    which people judge them. Run the same command again when they are filled in: it goes on with the captions on which
    the annotators differ, then chooses diverse captions of each image. Every decision is in decisions.jsonl.
    """
    if output is None:
        raise UsageError("missing option -o/--output", fix="say where the benchmark is written: -o FOLDER")
    if map_image is not None and not caption_map:
        raise UsageError("--map-image requires --map", fix="pass --map, or drop --map-image")
    log = None
    if repeat is not None:
        log = build.DecisionLog.load(repeat, build.IMP)
        kinds = (SamplingSettings, CleaningSettings, SelectionSettings)
        refuse_on_repeat(context, (*(name for kind in kinds for name in declarations(kind)),
                                    "copy_images", "annotations"))  # fmt: skip
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
    images, pool = _load_images(inputs.images), load_dataset_words(inputs.pool)
    with trusting(trust_code or confirm_code), code_named_by(repeat):
        result = build.build_imp(
            images,
            pool,
            inputs.encoder,
            settings,
            cleaning=cleaning,
            selection=selection,
            text_encoder=inputs.text_encoder,
            image_embeddings=_vectors(images, inputs.image_embeddings),
            pool_embeddings=_vectors(pool, inputs.pool_embeddings),
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
            **vars(replace(encode, cache=open_cache(encode), notify=print_note)),
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


def _load_images(words: str) -> core.Dataset:
    path = Path(words).expanduser()
    is_dataset = not path.exists() or (path / core.HEADER_FILE).exists()
    return load_dataset_words(words) if is_dataset else data.read_images(path)


def _vectors(dataset: core.Dataset, file: str | None) -> core.Embeddings | None:
    if file is None:
        return None
    return core.align_embeddings(data.read_vectors(file, "image"), dataset.image_ids, "image")


def _imp_origin(arguments: dict[str, Any]) -> dict[str, Any]:
    """The inputs that the command names, as absolute paths."""
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

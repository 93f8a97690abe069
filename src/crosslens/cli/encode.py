"""``crosslens encode``: images and captions through a model, once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosslens.cli.console import Json, examples, note, progress, say_json, say_list
from crosslens.cli.dataset_flags import Captions, Data, Images, Instances, Split, reader_options
from crosslens.cli.model_flags import BatchSize, CacheFolder, ImageFolder, NoCache, Offline, Precision, SkipBad

if TYPE_CHECKING:
    from crosslens.core.embeddings import Embeddings
    from crosslens.encode import Encoded, Encoder

EXAMPLES = examples(
    "crosslens encode --model clip:openai/clip-vit-base-patch32 \\",
    "    --dataset coco --captions captions.json --image-folder val2017 -o clip-b32",
    "crosslens encode --model sentence:all-MiniLM-L6-v2 --dataset captions.jsonl -o minilm",
    "crosslens encode --list",
)


def encode(
    model: Annotated[
        str | None, typer.Option(metavar="KIND:SOURCE", help="Such as clip:openai/clip-vit-base-patch32 (see --list).")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME|PATH", help="A reader's name, or a dataset's path.")
    ] = None,
    captions: Captions = None,
    instances: Instances = None,
    images: Images = None,
    split: Split = None,
    data: Data = None,
    image_folder: ImageFolder = None,
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
        Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="Where images/ and captions/ are written.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace other embeddings there.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Print the kinds of models, and nothing else.")] = False,
    json: Json = False,
) -> None:
    """Encode a dataset's images and captions with a model.

    Vectors are kept in a cache, by content: the same command again, or another dataset with the same pictures, encodes
    only what is new. `crosslens evaluate --model` does this and evaluates at once.
    """
    from crosslens.core.errors import UsageError
    from crosslens.data import load_dataset
    from crosslens.encode import Cache, encode_dataset, load_encoder
    from crosslens.pipeline.recipe.model import say_skipped

    if listing:
        _list(json)
        return
    for flag, value in (("--model", model), ("--dataset", dataset), ("-o", output)):
        if value is None:
            raise UsageError(f"no {flag}", fix="see crosslens encode --help")
    assert model is not None
    assert dataset is not None
    assert output is not None
    options = reader_options(dataset, data, captions=captions, instances=instances, images=images, split=split)
    loaded = load_dataset(dataset, **options)
    encoder = load_encoder(model, device=device, precision=precision, offline=offline, tell=note)
    found = encode_dataset(
        loaded, encoder, image_folder=image_folder, cache=None if no_cache else Cache(cache, tell=note),
        batch_size=batch_size, precision=precision, skip_bad=skip_bad, progress=progress(),
    )  # fmt: skip
    say_skipped(found.skipped, note)
    _report(encoder, found, _write(found, output, overwrite), json)


def _write(found: Encoded, output: Path, overwrite: bool) -> dict[str, Path]:
    written = {}
    for part, embeddings in (("images", found.images), ("captions", found.captions)):
        if embeddings is not None:
            written[part] = _save(embeddings, output / part, overwrite)
    if found.skipped:
        # Embeddings of a part of the dataset can be evaluated only with that part.
        written["dataset"] = found.dataset.save(output / "dataset", overwrite=overwrite)
    return written


def _save(embeddings: Embeddings, folder: Path, overwrite: bool) -> Path:
    """Write, unless exactly this stands there already."""
    from crosslens.core.embeddings import Embeddings as Stored
    from crosslens.core.errors import CrosslensError

    if folder.exists() and not overwrite:
        try:
            if Stored.load(folder, mmap=True).fingerprint == embeddings.fingerprint:
                return folder
        except CrosslensError:
            pass  # something else stands there: saving says so
    return embeddings.save(folder, overwrite=overwrite)


def _report(encoder: Encoder, found: Encoded, written: dict[str, Path], json: bool) -> None:
    parts = {"images": found.images, "captions": found.captions}
    shapes = {part: list(one.vectors.shape) for part, one in parts.items() if one is not None}
    if json:
        facts: dict[str, Any] = {
            "model": encoder.name,
            "revision": encoder.revision,
            "logit_scale": encoder.logit_scale,
            "shapes": shapes,
            "skipped": found.skipped,
            "written": {part: str(place) for part, place in written.items()},
        }
        say_json(facts)
        return
    for part, shape in shapes.items():
        note(f"{shape[0]:,} {part} as {'×'.join(map(str, shape[1:]))} vectors in {written[part]}")
    if "dataset" in written:
        note(f"evaluate them with --dataset {written['dataset']}, which is without the images left out")


def _list(json: bool) -> None:
    from crosslens.encode import ENCODERS

    if json:
        say_json([{"kind": one.name, "summary": one.summary, **one.details} for one in ENCODERS])
    else:
        say_list([(f"{one.name}:{one.details.get('example', '')}", one.summary.replace("``", "")) for one in ENCODERS])

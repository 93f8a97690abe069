"""``crosslens encode``: images and captions through a model, once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosslens.cli.console import print_json, print_list, print_note, progress_bar
from crosslens.cli.datasets import DatasetOptions
from crosslens.cli.flags import OUTPUT, Json, Overwrite, command
from crosslens.core import option
from crosslens.encode import EncodeOptions

if TYPE_CHECKING:
    from crosslens.core import Embeddings
    from crosslens.encode import Cache, Encoded, Encoder


@command(
    "crosslens encode --model clip:openai/clip-vit-base-patch32 \\",
    "    --dataset coco --captions captions.json --image-folder val2017 \\",
    "    -o clip-b32",
    "crosslens encode --model sentence:all-MiniLM-L6-v2 \\",
    "    --dataset captions.jsonl -o minilm",
    "crosslens encode --list",
)
def encode(
    source: DatasetOptions,
    options: EncodeOptions,
    model: str | None = option(None, "Such as clip:openai/clip-vit-base-patch32 (see --list).", metavar="KIND:SOURCE"),
    output: Path | None = option(None, "Where images/ and captions/ are written.", metavar="FOLDER", flags=OUTPUT),
    overwrite: Overwrite = False,
    listing: bool = option(False, "Print the kinds of models, and nothing else.", flags=("--list",)),
    json: Json = False,
) -> None:
    """Encode a dataset's images and captions with a model.

    Vectors are cached by content: the same command again, or another dataset with the same images, encodes only what
    is new. `crosslens evaluate --model` encodes and evaluates at once.
    """
    from crosslens.core import UsageError
    from crosslens.encode import encode_dataset, load_encoder
    from crosslens.pipeline import note_skipped

    if listing:
        _list(json)
        return
    for flag, value in (("--model", model), ("--dataset", source.dataset), ("-o/--output", output)):
        if value is None:
            raise UsageError(f"missing option {flag}", fix="see crosslens encode --help")
    assert model is not None
    assert output is not None
    dataset = source.load()
    encoder = load_encoder(model, replace(options, notify=print_note))
    encoded = encode_dataset(
        dataset, encoder, image_folder=options.image_folder, cache=open_cache(options), batch_size=options.batch_size,
        precision=options.precision, skip_bad=options.skip_bad, progress=progress_bar(),
    )  # fmt: skip
    note_skipped(encoded.skipped, print_note)
    _report(encoder, encoded, _write(encoded, output, overwrite), json)


def open_cache(options: EncodeOptions) -> Cache | None:
    """The cache of vectors that the flags name; None with --no-cache."""
    from crosslens.encode import Cache

    return Cache.of(options.cache, print_note)


def _write(encoded: Encoded, output: Path, overwrite: bool) -> dict[str, Path]:
    written = {}
    for part, embeddings in (("images", encoded.images), ("captions", encoded.captions)):
        if embeddings is not None:
            written[part] = _save(embeddings, output / part, overwrite)
    if encoded.skipped:
        # Embeddings of a part of the dataset can be evaluated only with that part.
        written["dataset"] = encoded.dataset.save(output / "dataset", overwrite=overwrite)
    return written


def _save(embeddings: Embeddings, folder: Path, overwrite: bool) -> Path:
    """Write, unless the folder already holds exactly these."""
    from crosslens.core import CrosslensError, Embeddings as Stored

    if folder.exists() and not overwrite:
        try:
            if Stored.load(folder, mmap=True).fingerprint == embeddings.fingerprint:
                return folder
        except CrosslensError:
            pass  # something else is there: saving says so
    return embeddings.save(folder, overwrite=overwrite)


def _report(encoder: Encoder, encoded: Encoded, written: dict[str, Path], json: bool) -> None:
    parts = {"images": encoded.images, "captions": encoded.captions}
    shapes = {part: list(values.vectors.shape) for part, values in parts.items() if values is not None}
    if json:
        facts: dict[str, Any] = {
            "model": encoder.name,
            "revision": encoder.revision,
            "logit_scale": encoder.logit_scale,
            "shapes": shapes,
            "skipped": encoded.skipped,
            "written": {part: str(path) for part, path in written.items()},
        }
        print_json(facts)
        return
    for part, shape in shapes.items():
        print_note(f"{shape[0]:,} {part} as {'×'.join(map(str, shape[1:]))} vectors in {written[part]}")
    if "dataset" in written:
        print_note(f"evaluate them with --dataset {written['dataset']}, which is without the skipped images")


def _list(json: bool) -> None:
    from crosslens.encode import ENCODERS

    if json:
        print_json([{"kind": entry.name, "summary": entry.summary, **entry.details} for entry in ENCODERS])
    else:
        print_list(
            [
                (f"{entry.name}:{entry.details.get('example', '')}", entry.summary.replace("``", ""))
                for entry in ENCODERS
            ]
        )

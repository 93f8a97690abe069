"""The tables of a recipe besides its ``[options]``, and their keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from crosslens.core import Options, UsageError, argument, option
from crosslens.encode import QUERY_CAPTION, SHARED_IMAGES, EncodeOptions, query_choice

_EMBEDDINGS = (
    "Vectors in the dataset's order (.npy, .npz, .safetensors, .pt, .parquet), or a folder of embeddings or of shards."
)
_IMAGE_TEXT = (
    "Text-only retrieval: an image is the mean of its other captions' vectors (mean), or a summary of them "
    "(extractive, transformers:t5-small)."
)
_RERANK = (
    "Re-rank the top of every list by a model that looks at image and text together: blip:NAME, blip2:NAME or "
    "callable:FILE.py:NAME."
)
_QRELS = (
    "Which items are relevant, instead of the captions' own images: a file; or eccv, cxc or coco for the COCO 5K test "
    "split (extra eccv)."
)
_PHI = "A similarity of your own for graded metrics, images × captions (.npy, .npz, .csv …): NCS[NAME]@10."
_SCORES_FROM = (
    "A relevance encoder for DCGcm[scores_from=NAME]@10: a run folder, scores (.npy, .npz …), a folder that encode "
    "wrote, or KIND:SOURCE."
)


def _declared_by_encode(name: str) -> Any:
    """An option of :class:`EncodeOptions` that recipes have, too."""
    original = next(entry for entry in fields(EncodeOptions) if entry.name == name)
    return field(default=original.default, metadata=original.metadata)


@dataclass(frozen=True)
class InputOptions(Options, group="Input"):
    """The files that are evaluated: embeddings of both sides, or scores, or ranked lists."""

    image_embeddings: str | None = option(None, _EMBEDDINGS)
    caption_embeddings: str | None = option(None, _EMBEDDINGS)
    image_ids: str | None = option(None, "The image of each row of the vectors, one id per line.")
    caption_ids: str | None = option(None, "The caption of each row of the vectors, one id per line.")
    scores: str | None = option(None, "Scores, images × captions (.npy, .npz, .safetensors, .pt).")
    runs: tuple[str, ...] = option((), "Ranked lists; twice for both directions.", metavar="FILE", flags=("--run",))
    qrels: str | None = option(None, _QRELS, metavar="FILE|NAME")
    phi: tuple[str, ...] = option((), _PHI, metavar="NAME=FILE")
    scores_from: tuple[str, ...] = option((), _SCORES_FROM, metavar="NAME=SOURCE")


@dataclass(frozen=True)
class ModelOptions(Options, group="Model"):
    """The encoder that makes the embeddings, instead of files that hold them.

    ``image_text`` selects text-only retrieval: an image is represented by its captions, except the one that is the
    query; or by all of them, where the queries come from a second text set. ``image_folder`` has the pictures of the
    dataset, whatever is evaluated; ``precision`` is that of re-ranking, too.
    """

    name: str | None = option(
        None, "A model that encodes the dataset (see crosslens encode --list).", flags=("--model",)
    )
    image_folder: str | None = _declared_by_encode("image_folder")
    image_text: str | None = option(None, _IMAGE_TEXT)
    query_caption: int | str = option(0, QUERY_CAPTION, metavar="N|mean|each")
    shared_images: bool = option(False, SHARED_IMAGES)
    precision: str = _declared_by_encode("precision")
    skip_bad: bool = _declared_by_encode("skip_bad")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "query_caption", query_choice(self.query_caption))

    def encode_options(self, options: EncodeOptions) -> EncodeOptions:
        return replace(options, image_folder=self.image_folder, precision=self.precision, skip_bad=self.skip_bad)


@dataclass(frozen=True)
class RerankOptions(Options, group="Model"):
    """The pair scorer that re-ranks the top of every list."""

    model: str | None = option(None, _RERANK, metavar="KIND:SOURCE", flags=("--rerank",))
    depth: int = option(100, "How many items of every list are re-ranked.", minimum=1, flags=("--rerank-depth",))


NAMED_INPUTS = ("phi", "scores_from")
"""Inputs of the form ``NAME=SOURCE``: what names in graded metrics stand for."""


def parse_named_input(text: str, key: str) -> tuple[str, str]:
    """The name and the source in ``NAME=SOURCE``."""
    name, mark, source = text.partition("=")
    if not (mark and name.strip() and source.strip()):
        raise UsageError(
            f"{argument(key, text)}: not of the form NAME=SOURCE",
            fix=f"write {argument(key, 'mine=file.npy')}",
            option=key,
        )
    return name.strip(), source.strip()


def parse_named_inputs(texts: Sequence[str], key: str) -> dict[str, str]:
    """Names and sources; every name may occur once only."""
    sources: dict[str, str] = {}
    for name, source in (parse_named_input(text, key) for text in texts):
        if name in sources:
            raise UsageError(f"{argument(key, name)} is given twice", fix="give each source its own name", option=key)
        sources[name] = source
    return sources

"""The tables of a recipe besides its ``[options]``: their keys, and which of them exclude or require each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from crosslens.core import ONE_SOURCE, Options, UsageError, argument, excluding_sources, given_sources, option
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
class InputOptions(Options):
    """The files that are evaluated: embeddings of both sides, or scores, or ranked lists."""

    image_embeddings: str | None = option(None, _EMBEDDINGS, metavar="FILE")
    caption_embeddings: str | None = option(None, _EMBEDDINGS, metavar="FILE")
    image_ids: str | None = option(None, "The image of each row of the vectors, one id per line.", metavar="FILE")
    caption_ids: str | None = option(None, "The caption of each row of the vectors, one id per line.", metavar="FILE")
    scores: str | None = option(None, "Scores, images × captions (.npy, .npz, .safetensors, .pt).", metavar="FILE")
    runs: tuple[str, ...] = option((), "Ranked lists; twice for both directions.", metavar="FILE", flags=("--run",))
    qrels: str | None = option(None, _QRELS, metavar="FILE|NAME")
    phi: tuple[str, ...] = option((), _PHI, metavar="NAME=FILE")
    scores_from: tuple[str, ...] = option((), _SCORES_FROM, metavar="NAME=SOURCE")


@dataclass(frozen=True)
class ModelOptions(Options):
    """The encoder that makes the embeddings, instead of files that hold them.

    ``image_text`` selects text-only retrieval: an image is represented by its captions, except the one that is the
    query; or by all of them, where the queries come from a second text set. ``image_folder`` has the pictures of the
    dataset, whatever is evaluated; ``precision`` is that of re-ranking, too.
    """

    name: str | None = option(
        None,
        "A model that encodes the dataset (see crosslens encode --list).",
        metavar="KIND:SOURCE",
        flags=("--model",),
    )
    image_folder: str | None = _declared_by_encode("image_folder")
    image_text: str | None = option(None, _IMAGE_TEXT, metavar="HOW")
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
class RerankOptions(Options):
    """The pair scorer that re-ranks the top of every list."""

    model: str | None = option(None, _RERANK, metavar="KIND:SOURCE", flags=("--rerank",))
    depth: int = option(
        100, "How many items of every list are re-ranked.", metavar="N", minimum=1, flags=("--rerank-depth",)
    )


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


RECIPE_KEYS = {"model": "a name in [model]", "rerank": "a model in [rerank]", "dataset": "a [dataset]",
               "queries": "[queries]"}  # fmt: skip
"""How recipes write what is not simply a key."""


_Rule = tuple[Any, str, str, str]
"""Whether it is broken, the key under which to say so, the problem and its fix."""


class InputConflict(NamedTuple):
    """Inputs that exclude or require each other, under the key of a recipe."""

    key: tuple[str, ...]
    problem: str
    fix: str


def first_conflict(
    inputs: InputOptions, model: ModelOptions, rerank: RerankOptions, directions: Sequence[str], dataset: bool,
    spell: Callable[[str], str] = argument, *, queries: bool = False,
) -> InputConflict | None:  # fmt: skip
    """The first conflict of an evaluation; ``spell`` writes keys for the reader.

    ``dataset`` and ``queries`` say whether there are a dataset, and a second text set that has the queries.
    """
    text_only = model.name is not None and (model.image_text is not None or queries)
    rules = (
        *(
            (getattr(inputs, f"{side}_ids") and not getattr(inputs, f"{side}_embeddings"), f"inputs.{side}_ids",
             f"{side} ids without {side} embeddings", f"add {spell(f'{side}_embeddings')}")
            for side in ("image", "caption")
        ),
        (queries and not model.name, "queries",
         f"{spell('queries')} requires {spell('model')}", f"add {spell('model')}: it encodes both text sets"),
        *_model_rules(model, rerank, directions, dataset, spell, text_only),
        (model.shared_images and not queries, "model.shared_images",
         f"{spell('shared_images')} requires {spell('queries')}", f"add {spell('queries')}, or drop it"),
        *_source_rules(inputs, model, spell),
        (not text_only and not set(directions) <= {"i2t", "t2i"}, "options.directions",
         f"directions = {', '.join(directions)}",
         f"use i2t (image to text), t2i (text to image), or both; t2t is text-only retrieval: {spell('image_text')}"),
        (inputs.scores and not dataset, "inputs.scores", "scores without a dataset", f"add {spell('dataset')}"),
        (inputs.runs and not dataset and not inputs.qrels, "inputs.runs",
         "a run without judgements", f"add {spell('qrels')}, or {spell('dataset')}"),
        (inputs.runs and directions and len(directions) != len(inputs.runs), "inputs.runs",
         f"{len(inputs.runs)} run files and {len(directions)} directions",
         f"name {spell('directions')} for each of {spell('runs')}, in that order"),
    )  # fmt: skip
    return next((InputConflict(tuple(key.split(".")), *texts) for applies, key, *texts in rules if applies), None)


def _model_rules(
    model: ModelOptions, rerank: RerankOptions, directions: Sequence[str], dataset: bool, spell: Callable[[str], str],
    text_only: bool,
) -> tuple[_Rule, ...]:  # fmt: skip
    re_ranked, modelled, add_dataset = rerank.model is not None, model.name is not None, f"add {spell('dataset')}"
    # Pictures belong to the dataset, whoever made the vectors; a pair scorer has a precision, too.
    elsewhere = ("image_folder",) * dataset + ("precision",) * re_ranked
    own = [
        entry.name for entry in fields(model)
        if entry.name not in elsewhere and getattr(model, entry.name) != entry.default
    ]  # fmt: skip
    return (
        (not re_ranked and rerank != RerankOptions(), "rerank",
         "a re-ranking depth without a model", f"add {spell('rerank')}, or drop it"),
        (re_ranked and not dataset, "rerank.model", f"{spell('rerank')} requires {spell('dataset')}", add_dataset),
        (re_ranked and text_only, "rerank.model",
         "text-only retrieval has no images to re-rank", f"drop {spell('rerank')}, or {spell('image_text')}"),
        (not modelled and own == ["image_folder"], "model.image_folder",
         f"{spell('image_folder')} requires {spell('dataset')}", add_dataset),
        (not modelled and own, f"model.{own[0] if own else ''}",
         f"{' and '.join(map(spell, own))}, but no model", f"add {spell('model')}, or drop it"),
        (modelled and not dataset, "model.name", f"{spell('model')} requires {spell('dataset')}", add_dataset),
        (text_only and tuple(directions) not in ((), ("t2t",)), "model.image_text",
         "text-only retrieval has one direction, t2t", f"drop {spell('directions')}"),
    )  # fmt: skip


def _source_rules(inputs: InputOptions, model: ModelOptions, spell: Callable[[str], str]) -> tuple[_Rule, ...]:
    """Exactly one kind of input is evaluated, and of embeddings both sides."""
    images, captions = inputs.image_embeddings, inputs.caption_embeddings
    kinds = given_sources(embeddings=(images, captions), scores=inputs.scores, runs=inputs.runs, model=model.name)
    keys = {"embeddings": f"inputs.{'image' if images else 'caption'}_embeddings", "model": "model.name"}
    embeddings = f"{spell('image_embeddings')} and {spell('caption_embeddings')}"
    key = keys.get(kinds[-1], f"inputs.{kinds[-1]}") if kinds else "inputs"
    missing = "caption" if images else "image"
    return (
        (not kinds, key, "nothing to evaluate",
         f"add {embeddings}, or {spell('scores')}, or {spell('runs')}, or {spell('model')}"),
        (len(kinds) > 1, key, excluding_sources(kinds), ONE_SOURCE),
        (bool(images) != bool(captions), key, f"no {missing} embeddings", f"add {spell(f'{missing}_embeddings')}"),
    )  # fmt: skip

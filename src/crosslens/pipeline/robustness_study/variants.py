"""The variants of a dataset: the same ids with other captions or other pictures, made here or read from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import (
    HEADER_FILE,
    Dataset,
    Embeddings,
    InputError,
    Progress,
    UsageError,
    positions,
    read_header,
    read_json_file,
)
from crosslens.data import ARRAY_SUFFIXES, SHARD_SUFFIXES, Side, read_vectors
from crosslens.encode import TextQueries, sentence_parts
from crosslens.perturbations import (
    PERTURBATIONS,
    Edit,
    Perturbed,
    apply_edits,
    is_image_perturbation,
    perturb_all,
    read_perturbed,
)

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]

ORIGINAL = "original"
"""The name of the unchanged dataset among the variants."""
GIVEN = "given"
"""The level of a variant that is given and is not a registered perturbation."""
IMAGES = "images"
LISTS = "lists"
"""The level of a variant of which only ranked lists are known."""


@dataclass(frozen=True, eq=False)
class Variant:
    """A changed dataset: ``captions`` holds the edits of every caption; None where the pictures changed."""

    perturbation: str
    seed: int
    label: str
    level: str
    dataset: Dataset | None
    """None where only ranked lists are known."""
    captions: tuple[Perturbed, ...] | None = None
    pictures: Dataset | None = None
    """The dataset of the changed pictures, if they are given."""
    sentences: tuple[Perturbed, ...] | None = None
    """The edits of every sentence, where queries have several; ``captions`` are then those of whole queries."""

    @cached_property
    def applied(self) -> BoolArray | None:
        """Per caption, whether its text changed; None where the texts are not known, or the pictures changed."""
        if self.captions is None:
            return None
        return np.fromiter((caption.applied for caption in self.captions), np.bool_, len(self.captions))

    @property
    def applied_share(self) -> float:
        """Of all captions; NaN where only ranked lists are known."""
        if self.applied is not None:
            return float(self.applied.mean())
        return float("nan") if self.level == LISTS else 1.0

    def touched(self, count: int, *, images: bool) -> BoolArray:
        """Per caption or per image (of which there are ``count``), whether it changed; all where that is not known.

        An image did where one of its captions did.
        """
        if self.applied is None or self.dataset is None:
            return np.ones(count, np.bool_)
        if not images:
            return self.applied
        touched = np.zeros(count, np.bool_)
        touched[self.dataset.caption_image[self.applied]] = True
        return touched

    @property
    def texts(self) -> tuple[str, ...]:
        """The captions as they are after the change; none where they are not known."""
        return () if self.dataset is None else tuple(self.dataset.texts)

    def table(self) -> pl.DataFrame:
        """Every caption before and after, with its edits; nothing where only pictures changed."""
        rows = [
            (self.perturbation, self.seed, id, caption.original, caption.text, caption.applied, caption.reason,
             [{"start": e.start, "end": e.end, "before": e.before, "after": e.after} for e in caption.edits])
            for id, caption in zip(self.dataset.caption_ids if self.dataset else (), self.captions or (), strict=False)
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=CAPTION_COLUMNS, orient="row")


def grouped_variant(variant: Variant, queries: TextQueries) -> Variant:
    """The variant of sentences as one of queries, each of which changed where one of its sentences did."""
    if variant.captions is None or not queries.has_several_sentences:
        return variant
    changed = tuple(_join([variant.captions[row] for row in rows]) for rows in queries.rows)
    dataset = _with_texts(queries.dataset, changed)
    return replace(variant, dataset=dataset, captions=changed, sentences=variant.captions)


def _join(sentences: Sequence[Perturbed]) -> Perturbed:
    """Several changed sentences as one changed text."""
    parts = sentence_parts([sentence.original for sentence in sentences])
    starts = np.cumsum([0, *map(len, parts[:-1])])
    edits = tuple(
        edit._replace(start=int(start) + edit.start, end=int(start) + edit.end)
        for start, sentence in zip(starts, sentences, strict=True)
        for edit in sentence.edits
    )
    original, applied = "".join(parts), any(sentence.applied for sentence in sentences)
    return Perturbed(original, apply_edits(original, edits), applied, "" if applied else sentences[0].reason, edits)


CAPTION_COLUMNS: Mapping[str, Any] = {
    "perturbation": pl.String, "seed": pl.Int64, "caption": pl.String, "original": pl.String, "text": pl.String,
    "applied": pl.Boolean, "reason": pl.String,
    "edits": pl.List(pl.Struct({"start": pl.Int64, "end": pl.Int64, "before": pl.String, "after": pl.String})),
}  # fmt: skip


def make_variants(
    dataset: Dataset,
    names: Sequence[str],
    seeds: Sequence[int],
    *,
    corpus: Dataset | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    options: Mapping[str, Any] | None = None,
) -> list[Variant]:
    """Every perturbation of the dataset under every seed; captions are parsed once.

    ``corpus`` is the dataset that this one is a part of: what occurs in it decides what ``color_in`` chooses from.
    """
    texts = [name for name in names if not is_image_perturbation(name)]
    if options and not texts:
        raise UsageError(f"options ({', '.join(options)}), but no captions to perturb", fix="leave out the options")
    variants = []
    for seed in seeds:
        shared = {"corpus": corpus, "seed": seed, "threads": threads, "progress": progress}
        perturbed = perturb_all(texts, dataset, **shared, **(options or {})) if texts else {}
        for name in names:
            label = name if seed == seeds[0] else f"{name}.seed{seed}"
            if name in perturbed:
                level, captions = PERTURBATIONS[name].details["level"], perturbed[name]
                variants.append(Variant(name, seed, label, level, _with_texts(dataset, captions), captions))
            else:
                variants.append(Variant(name, seed, label, IMAGES, dataset))
    return variants


def given_variant(dataset: Dataset, name: str, changed: Dataset, seed: int = 0) -> Variant:
    """A variant given as a dataset with the same ids: other captions, or (``blur@3``) other pictures."""
    if is_image_perturbation(name):
        return Variant(name, seed, name, IMAGES, dataset, pictures=changed)
    try:
        rows = positions(dataset.caption_ids, changed.caption_ids, "caption")
    except InputError as error:
        raise InputError(
            f"the variant {name!r} is not of the same captions: {error.problem}",
            expected="a caption of the same id for every caption of the dataset",
            fix="perturb the dataset that is evaluated",
        ) from error
    complete = {"original", "applied", "reason", "edits"} <= set(changed.captions.columns)
    known = read_perturbed(changed) if complete else None
    results = []
    for number, row in enumerate(rows):
        old, new = dataset.texts[number], changed.texts[row]
        if known is not None and known[row].original != old:
            raise InputError(
                f"the variant {name!r} was made from another text of caption {dataset.caption_ids[number]!r}",
                expected=repr(old),
                fix="perturb the dataset that is evaluated",
            )
        results.append(Perturbed(old, new, old != new, edits=whole_edit(old, new)) if known is None else known[row])
    level = PERTURBATIONS[name].details["level"] if name in PERTURBATIONS else GIVEN
    return Variant(name, seed, name, level, _with_texts(dataset, results), tuple(results))


def whole_edit(old: str, new: str) -> tuple[Edit, ...]:
    """One edit from the first character that differs to the last; none where nothing does."""
    if old == new:
        return ()
    start = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    tail = 0
    while tail < min(len(old), len(new)) - start and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return (Edit(start, len(old) - tail, old[start : len(old) - tail], new[start : len(new) - tail]),)


def _with_texts(dataset: Dataset, results: Sequence[Perturbed]) -> Dataset:
    """The dataset with other texts, and columns about the edits for grouping."""
    columns = dataset.captions.with_columns(
        pl.Series("text", [result.text for result in results], dtype=pl.String),
        pl.Series("original", [result.original for result in results], dtype=pl.String),
        pl.Series("applied", [result.applied for result in results], dtype=pl.Boolean),
    )
    return replace(dataset, captions=columns)


def read_variants(folder: str | Path) -> tuple[dict[str, Any], dict[str, Dataset]]:
    """By perturbation, the vectors and the datasets in a folder.

    ``char_swap.npy`` (or .npz, .safetensors, .pt) holds vectors in the order of the dataset's captions
    (``blur@3.npy``: of its images), a folder ``char_swap/`` embeddings with ids, such vectors in shards, or a dataset.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError("no such folder", file=folder, expected="the folder of the variants", fix="check the path")
    vectors: dict[str, Any] = {}
    datasets: dict[str, Dataset] = {}
    for part in sorted(folder.iterdir()):
        is_array = part.suffix.lower() in ARRAY_SUFFIXES
        name = part.name.removesuffix(part.suffix) if is_array else part.name
        side: Side = "image" if is_image_perturbation(name) else "caption"
        if (part / HEADER_FILE).is_file():
            try:
                kind = read_json_file(part / HEADER_FILE).get("format")
            except (InputError, AttributeError):
                kind = read_header(part / HEADER_FILE, "dataset")  # raises
            if kind == "crosslens/embeddings":
                vectors[name] = Embeddings.load(part, mmap=True)
            elif kind == "crosslens/dataset":
                datasets[name] = Dataset.load(part)
        elif is_array or (part.is_dir() and any(file.suffix.lower() in SHARD_SUFFIXES for file in part.iterdir())):
            vectors[name] = read_vectors(part, side)
        if name in vectors and side == "image":
            vectors[name] = (vectors[name], None)
    if not vectors and not datasets:
        raise InputError(
            "no variants here",
            file=folder,
            expected="NAME.npy, or folders NAME with embeddings or a dataset, each named by its perturbation",
            fix="write them with crosslens perturb -o",
        )
    return vectors, datasets

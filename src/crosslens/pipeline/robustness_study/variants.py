"""The variants of a dataset, the same ids with other captions or other pictures, and the vectors of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from crosslens.core import InputError, UsageError, argument, reading
from crosslens.data import ARRAY_SUFFIXES, SHARD_SUFFIXES, Side, image_files, read_vectors
from crosslens.encode import (
    IMAGES,
    TEXTS,
    EncodeOptions,
    FeatureReader,
    MatrixScorer,
    ReadImages,
    StoredEmbeddings,
    TextQueries,
    encode_captions,
    encode_dataset,
    encode_images,
    encode_texts,
    images_from_captions,
    label,
    read_features,
    require_modality,
    require_one_source,
    score_texts,
    sentence_parts,
)
from crosslens.engine import Progress
from crosslens.perturbations import (
    PERTURBATIONS,
    Edit,
    Perturbed,
    apply_edits,
    is_image_perturbation,
    perturb_all,
    perturb_images,
    read_perturbed,
    with_changed_texts,
)
from crosslens.pipeline.evaluations.inputs import align_both
from crosslens.pipeline.options import RobustnessOptions
from crosslens.storage import HEADER_FILE, Array, BoolArray, read_header, read_json_file
from crosslens.values import Dataset, Embeddings, positions

ORIGINAL = "original"
"""The name of the unchanged dataset among the variants."""


@dataclass(frozen=True, eq=False)
class Variant:
    """A changed dataset: ``captions`` holds the edits of every caption; None where the pictures changed.

    The unchanged dataset is one, too, whose perturbation is called ``original``.
    """

    perturbation: str
    seed: int
    label: str
    dataset: Dataset | None
    """None where no texts are known."""
    captions: tuple[Perturbed, ...] | None = None
    pictures: Dataset | None = None
    """The dataset of the changed pictures, if they are given."""
    sentences: tuple[Perturbed, ...] | None = None
    """The edits of every sentence, where queries have several; ``captions`` are then those of whole queries."""
    only_lists: bool = False
    """Whether only ranked lists are known, and not what changed."""
    unchanged: bool = False
    """Whether its lists rank as those of the original, so that nothing did."""

    @cached_property
    def applied(self) -> BoolArray | None:
        """Per caption, whether its text changed; None where the texts are not known, or the pictures changed."""
        if self.captions is None:
            return None
        return np.fromiter((caption.applied for caption in self.captions), np.bool_, len(self.captions))

    @property
    def applied_share(self) -> float:
        """The share of captions that changed; NaN where only ranked lists are known."""
        if self.applied is not None:
            return float(self.applied.mean())
        if self.unchanged:
            return 0.0
        return float("nan") if self.only_lists else 1.0

    def touched(self, count: int, *, images: bool) -> BoolArray:
        """Per caption or per image (of which there are ``count``), whether it changed; all where that is not known.

        An image did where one of its captions did.
        """
        if self.applied is None or self.dataset is None:
            return np.full(count, not self.unchanged)
        if not images:
            return self.applied
        touched = np.zeros(count, np.bool_)
        touched[self.dataset.caption_image[self.applied]] = True
        return touched

    @property
    def texts(self) -> tuple[str, ...]:
        """The captions as they are after the change; none where they are not known."""
        return () if self.dataset is None else tuple(self.dataset.texts)

    @property
    def changed_sentences(self) -> tuple[list[int], list[str]]:
        """The rows of the sentences that change, and what they become."""
        sentences = self.sentences or self.captions or ()
        rows = [row for row, sentence in enumerate(sentences) if sentence.text != sentence.original]
        return rows, [sentences[row].text for row in rows]

    def table(self) -> pl.DataFrame:
        """Every caption before and after, with its edits; nothing where only pictures changed."""
        rows = [
            (self.perturbation, self.seed, id, caption.original, caption.text, caption.applied, caption.reason,
             [{"start": e.start, "end": e.end, "before": e.before, "after": e.after} for e in caption.edits])
            for id, caption in zip(self.dataset.caption_ids if self.dataset else (), self.captions or (), strict=False)
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=CAPTION_COLUMNS, orient="row")


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
    texts: TextQueries, names: Sequence[str], prepared: Mapping[str, Dataset], options: RobustnessOptions,
    progress: Progress,
) -> list[Variant]:  # fmt: skip
    """The variants that are prepared, and those that are made here, under every seed; captions are parsed once.

    Of a name that is neither prepared nor a perturbation only vectors exist.
    """
    dataset, seeds = texts.sentences, range(options.seed, options.seed + options.seeds)
    missing = [name for name in names if name not in prepared]
    registered = [name for name in missing if is_image_perturbation(name) or name in PERTURBATIONS]
    caption_names, perturbing = [name for name in registered if not is_image_perturbation(name)], options.options or {}
    if perturbing and not caption_names:
        problem = f"options ({', '.join(perturbing)}), but no captions to perturb"
        raise UsageError(problem, fix="leave out the options")
    # What occurs in the dataset that the queries are a part of decides what color_in chooses from.
    shared = {"corpus": texts.sources[0], "threads": options.threads, "progress": progress, **perturbing}
    variants = []
    for seed in seeds:
        perturbed = perturb_all(caption_names, dataset, seed=seed, **shared) if caption_names else {}
        for name in registered:
            captions = perturbed.get(name)
            changed = dataset if captions is None else with_changed_texts(dataset, captions)
            label = name if seed == seeds[0] else f"{name}.seed{seed}"
            variants.append(Variant(name, seed, label, changed, captions))
    variants += [given_variant(dataset, name, changed, seeds[0]) for name, changed in prepared.items() if name in names]
    if texts.has_several_sentences:  # a query changed where one of its sentences did
        for number, variant in enumerate(variants):
            if sentences := variant.captions:
                queries = tuple(_join([sentences[row] for row in rows]) for rows in texts.rows)
                changed = with_changed_texts(texts.dataset, queries)
                variants[number] = replace(variant, dataset=changed, captions=queries, sentences=sentences)
    variants += [Variant(name, seeds[0], name, texts.dataset) for name in missing if name not in registered]
    return sorted(variants, key=lambda variant: (variant.seed, names.index(variant.perturbation)))


def given_variant(dataset: Dataset, name: str, changed: Dataset, seed: int = 0) -> Variant:
    """A variant given as a dataset with the same ids: other captions, or (``blur@3``) other pictures."""
    if is_image_perturbation(name):
        return Variant(name, seed, name, dataset, pictures=changed)
    try:
        rows = positions(dataset.caption_ids, changed.caption_ids, "caption")
    except InputError as error:
        raise InputError(
            f"the variant {name!r} is not of the same captions: {error.problem}",
            expected="a caption of the same id for every caption of the dataset",
            fix="perturb the dataset that is evaluated",
        ) from error
    complete = {"original", "applied", "reason", "edits"} <= set(changed.captions.columns)
    edits = read_perturbed(changed) if complete else None
    results = []
    for number, row in enumerate(rows):
        old, new = dataset.texts[number], changed.texts[row]
        if edits is not None and edits[row].original != old:
            raise InputError(
                f"the variant {name!r} was made from another text of caption {dataset.caption_ids[number]!r}",
                expected=repr(old),
                fix="perturb the dataset that is evaluated",
            )
        results.append(Perturbed(old, new, old != new, edits=whole_edit(old, new)) if edits is None else edits[row])
    return Variant(name, seed, name, with_changed_texts(dataset, results), tuple(results))


def whole_edit(old: str, new: str) -> tuple[Edit, ...]:
    """One edit from the first character that differs to the last; none where nothing does."""
    if old == new:
        return ()
    start = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    tail = 0
    while tail < min(len(old), len(new)) - start and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return (Edit(start, len(old) - tail, old[start : len(old) - tail], new[start : len(new) - tail]),)


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


Inputs: TypeAlias = Callable[[Variant, Progress], dict[str, Any]]
"""What is evaluated of a variant, as keywords of :func:`evaluate`: vectors, scores, or ranked lists."""


@dataclass(eq=False)
class _Model:
    """A model in memory, which reads the original once, and of a variant only what changed.

    Perturbed pictures are in the folder ``pictures`` while they are needed.
    """

    encoder: Any
    dataset: Dataset
    asked: TextQueries
    options: EncodeOptions
    study: RobustnessOptions
    pictures: Path

    def with_changed_pictures(self, variant: Variant, progress: Progress) -> Dataset:
        """The dataset with a variant's pictures, which are made where they are not given."""
        return variant.pictures or perturb_images(
            self.dataset, variant.perturbation, self.pictures / variant.label, seed=variant.seed, overwrite=True,
            threads=self.study.threads, image_folder=self.options.image_folder, progress=progress,
        )  # fmt: skip


class ModelVectors(_Model):
    """The vectors of a model that has an encoder of images and one of texts."""

    _images: Embeddings | None = None
    _sentences: Embeddings

    def __call__(self, variant: Variant, progress: Progress) -> dict[str, Any]:
        stream, asked = self.options.stream(progress), self.asked
        if self._images is None and self.study.image_text is not None:
            self._images = images_from_captions(asked.corpus, self.encoder, self.study.image_text, **stream)
            self._sentences = encode_captions(asked.sentences, self.encoder, **stream)
        elif self._images is None:
            folder = self.options.image_folder
            encoded = encode_dataset(self.dataset, self.encoder, image_folder=folder, **stream)
            assert encoded.captions is not None
            self._images, self._sentences = encoded.images, encoded.captions
        images, captions = self._images, self._sentences
        rows, texts = variant.changed_sentences
        if is_image_perturbation(variant.perturbation):
            changed = self.with_changed_pictures(variant, progress)
            vectors = encode_images(self.encoder, image_files(changed), names=changed.image_ids, **stream).rows
            images = Embeddings(changed.image_ids, vectors, model=label(self.encoder))
        elif rows:
            captions = captions.with_rows(rows, encode_texts(self.encoder, texts, **stream).rows)
        if asked.has_several_sentences:
            averaged = asked.average(np.asarray(captions.vectors))
            captions = Embeddings(asked.dataset.caption_ids, averaged, model=label(self.encoder))
        return {"images": images, "captions": captions}


class MatrixScores(_Model):
    """All scores of a model that has no vectors."""

    _images: ReadImages | None = None
    _scores: Array

    def __call__(self, variant: Variant, progress: Progress) -> dict[str, Any]:
        stream, texts = self.options.stream(progress), list(self.dataset.texts)
        if self._images is None:
            folder = self.options.image_folder
            self._images = read_features(self.dataset, self.encoder, image_folder=folder, **stream)
            self._scores = score_texts(self.encoder, self._images, texts, progress)
        if is_image_perturbation(variant.perturbation):
            images = read_features(self.with_changed_pictures(variant, progress), self.encoder, **stream)
            return {"scores": score_texts(self.encoder, images, texts, progress)}
        rows, texts = variant.changed_sentences
        scores = self._scores.copy()
        if rows:
            scores[:, rows] = score_texts(self.encoder, self._images, texts, progress)
        return {"scores": scores}


def model_inputs(
    encoder: Any, dataset: Dataset, text_queries: TextQueries, variants: Sequence[Variant], options: EncodeOptions,
    study: RobustnessOptions, pictures: Path,
) -> Inputs:  # fmt: skip
    """What a model gives; one that cannot encode what the variants change raises."""
    changed = [variant.label for variant in variants if variant.captions is None]
    name = getattr(encoder, "name", "the model")
    if changed and isinstance(encoder, FeatureReader):
        raise UsageError(
            f"{name} reads stored features of images, and {changed[0]} changes their pixels",
            fix="choose perturbations of captions, or a model that was trained on what crosslens encode writes",
            option="perturbations",
        )
    is_text_only = study.image_text is not None
    if isinstance(encoder, MatrixScorer):
        if is_text_only:
            problem = f"{name} compares images with texts, and not texts with texts"
            raise UsageError(problem, fix=f"drop {argument('image_text')}", option="image_text")
        return MatrixScores(encoder, dataset, text_queries, options, study, pictures)
    if isinstance(encoder, StoredEmbeddings):
        raise UsageError(
            f"{name} holds vectors and cannot encode changed captions",
            fix=f"name the model that made them, or pass the variants' vectors: {argument('variants')}",
        )
    for ability in (TEXTS,) if is_text_only else (TEXTS, IMAGES):
        require_modality(encoder, ability)
    return ModelVectors(encoder, dataset, text_queries, options, study, pictures)


def given_vectors(
    dataset: Dataset, images: Any, captions: Any, variants: Mapping[str, Any], names: Sequence[str]
) -> Inputs:
    """Vectors of the original and of the variants ``names``: of captions, or a pair of images' and captions'.

    One of a pair may be None: those of the original.
    """
    require_one_source(embeddings=(images, captions))
    for name in names:
        if name not in variants:
            fix = f"pass them, or leave it out; there are: {', '.join(variants) or 'none'}"
            raise UsageError(f"no embeddings of the variant {name!r}", fix=fix)
    original = align_both(dataset, images, captions)
    pairs = {ORIGINAL: original}
    for name, vectors in variants.items():
        pair = vectors if isinstance(vectors, tuple) else (None, vectors)
        changed = (old if new is None else new for old, new in zip(original, pair, strict=True))
        with reading(f"variant {name!r}"):
            pairs[name] = align_both(dataset, *changed)
    return lambda variant, _: dict(zip(("images", "captions"), pairs[variant.perturbation], strict=True))

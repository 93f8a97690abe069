"""Candidate captions: an image's own titles and those of its cluster, cleaned, without near-duplicates.

Each decision has a reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from crosslens.build.folder import absolute_file
from crosslens.build.imp.cleaning.captions import clean_captions
from crosslens.build.imp.cleaning.duplicates import near_duplicates
from crosslens.build.imp.sampling import Clusters, check_clusters, find_clusters, sample_images
from crosslens.build.options import ImpOptions
from crosslens.build.settings import CleaningSettings, SamplingSettings
from crosslens.core import InputError, UsageError, argument, to_stderr
from crosslens.data import image_files
from crosslens.encode import (
    IMAGES,
    TEXTS,
    EncodeOptions,
    Encoder,
    StoredEmbeddings,
    StreamKeywords,
    caption_rows,
    encode_dataset,
    encode_texts,
)
from crosslens.engine import Progress
from crosslens.storage import Array, atomic_file, fingerprint, parquet_bytes, random_stream, read_parquet_file
from crosslens.values import Dataset, Embeddings, match_ids, positions


@dataclass(frozen=True, eq=False)
class ImpSources:
    """Images, the pool, and who encodes what; nothing is encoded before it is needed.

    ``encoder``        the visual encoder; None where both kinds of images come with their vectors
    ``text_encoder``   compares the captions of an image in the end
    """

    images: Dataset
    pool: Dataset
    encoder: Encoder | None
    text_encoder: Encoder
    asked: ImpOptions
    options: EncodeOptions

    def __post_init__(self) -> None:
        for vectors in ("image_embeddings", "pool_embeddings"):
            if getattr(self.asked, vectors) is None and self.encoder is None:
                fix = f"pass {argument('encoder')}, or {argument(vectors)}"
                raise UsageError("nothing encodes the images" + (" of the pool" if "pool" in vectors else ""), fix=fix)
        if self.encoder is not None and IMAGES not in self.encoder.abilities:
            raise UsageError(f"{self.encoder.name} encodes no images", fix=f"name another {argument('encoder')}")
        if TEXTS not in self.text_encoder.abilities or isinstance(self.text_encoder, StoredEmbeddings):
            raise UsageError(
                f"{self.text_encoder.name} does not encode texts",
                fix=f"name a text encoder, which compares the captions of an image: {argument('text_encoder')}",
            )
        if not self.pool.captions.height:
            fix = "name a table with the columns text and image"
            raise InputError("the pool has no captions", expected="captions with their images", fix=fix)
        assert self.own_titles is not None  # those of unknown images are refused here, before anything is encoded

    def identity(self, encoder: Encoder) -> dict[str, Any]:
        """What the vectors of an encoder depend on."""
        names = ("name", "revision", "preprocessing")
        return {**{name: getattr(encoder, name) for name in names}, "precision": self.options.precision}

    @cached_property
    def encoded_images(self) -> tuple[Dataset, Array, dict[str, str]]:
        """The images that can be read, their vectors, and why others cannot."""
        return self._encode(self.images, self.asked.image_embeddings, self.options.image_folder, "image")

    @cached_property
    def encoded_pool(self) -> tuple[Dataset, Array, dict[str, str]]:
        """The images of the pool that can be read, their vectors, and why others cannot."""
        try:
            return self._encode(self.pool, self.asked.pool_embeddings, self.asked.pool_images, "pool image")
        except InputError as error:
            if self.asked.pool_embeddings is None:
                error.add_context("the pool")
                fix = f"pass {argument('pool_images')}, the folder of its images, or {argument('pool_embeddings')}"
                error.fix = f"{error.fix}; {fix}" if error.fix else fix
            raise

    @cached_property
    def own_titles(self) -> dict[str, list[tuple[str, str]]]:
        """Image → the ids and texts of its titles, in the order of the file; one of an unknown image raises."""
        titles, by_image = self.asked.titles, dict[str, list[tuple[str, str]]]()
        if titles is None:
            return by_image
        rows = match_ids(titles.image_ids, self.images.image_ids)
        unknown = [image for image, row in zip(titles.image_ids, rows, strict=True) if row < 0]
        if unknown:
            raise InputError(
                f"{len(unknown):,} of the {len(titles.image_ids):,} images of the titles {titles.name!r} are not among "
                f"the images, such as {unknown[0]!r}",
                expected=f"ids of the {len(self.images.image_ids):,} images, such as {self.images.image_ids[0]!r}",
                fix=f"correct the column image of {argument('titles')}, or remove those rows",
            )
        for caption, text, row in zip(titles.caption_ids, titles.texts, titles.caption_image, strict=True):
            by_image.setdefault(self.images.image_ids[rows[row]], []).append((caption, text))
        return by_image

    def encode_captions(self, texts: list[str]) -> Array:
        return np.asarray(encode_texts(self.text_encoder, texts, **self._how).rows, np.float64)

    def files(self, images: Dataset) -> dict[str, str]:
        """Image → its picture file; empty where the pictures are not here."""
        try:
            return dict(zip(images.image_ids, image_files(images, self.options.image_folder), strict=True))
        except InputError:
            if self.asked.image_embeddings is None or self.options.image_folder is not None:
                raise
            return {}

    @property
    def _how(self) -> StreamKeywords:
        return self.options.stream(self.asked.progress, unasked_cache=False)

    def _encode(
        self, dataset: Dataset, vectors: Embeddings | None, folder: str | Path | None, what: str
    ) -> tuple[Dataset, Array, dict[str, str]]:
        if vectors is not None:
            rows = positions(dataset.image_ids, vectors.ids, what, any_ending=vectors.has_names)
            same = len(rows) == len(vectors.ids) and bool((rows == np.arange(len(rows))).all())
            # A file larger than memory stays on disk if it is in the pool's order.
            return dataset, _flat(vectors.vectors if same else np.asarray(vectors.vectors)[rows]), {}
        assert self.encoder is not None
        bare = replace(dataset, captions=dataset.captions.clear())
        encoded = encode_dataset(bare, self.encoder, image_folder=folder, skip_bad=self.options.skip_bad, **self._how)
        assert encoded.images is not None
        readable = dataset.select(encoded.dataset.image_ids) if encoded.skipped else dataset
        return readable, _flat(np.asarray(encoded.images.vectors)), encoded.skipped


def _facts_of(dataset: Dataset) -> dict[str, Any]:
    return {"name": dataset.name, "fingerprint": dataset.fingerprint, "images": len(dataset.image_ids)}


KEPT = "kept"
SMALL_CLUSTER = "cluster too small"
FEW_CANDIDATES = "too few candidates"
NEAR_DUPLICATE = "near-duplicate"
NOT_DRAWN = "not drawn"
"""Verdicts on sampled images, and reasons for dropped captions that are not those of cleaning."""
POOL, TITLE = "pool", "title"
"""Where a candidate comes from: it is the caption of a similar image, or a title of the image itself."""

IMAGE_COLUMNS: dict[str, Any] = {
    "image": pl.String, "file": pl.String, "order": pl.Int64, "cluster": pl.Int64, "nearest": pl.Float64,
    "candidates": pl.Int64, "verdict": pl.String,
}  # fmt: skip
CANDIDATE_COLUMNS: dict[str, Any] = {
    "image": pl.String, "caption": pl.String, "text": pl.String, "original": pl.String, "pool_caption": pl.String,
    "pool_image": pl.String, "cosine": pl.Float64, "reason": pl.String, "changes": pl.List(pl.String),
    "source": pl.String,
}  # fmt: skip

CleanText = tuple[str | None, str | None, list[str]]
"""What cleaning makes of a text: the cleaned text or None, the reason or None, the repairs."""


class _Caption(NamedTuple):
    """A text before cleaning: its id in the pool or among the titles; ``image`` and ``cosine`` are a pool image's."""

    text: str
    caption: str
    image: str | None = None
    cosine: float | None = None

    @property
    def source(self) -> str:
        return TITLE if self.image is None else POOL


@dataclass(frozen=True, eq=False)
class Candidates:
    """The sampled images with their verdicts, and all their titles and captions with what became of them."""

    images: pl.DataFrame
    captions: pl.DataFrame

    @property
    def kept(self) -> pl.DataFrame:
        """The captions that people judge, in the order of the images."""
        usable = self.images.filter(verdict=KEPT).select("image")
        return self.captions.filter(pl.col("reason").is_null()).join(usable, on="image", how="semi")


def collect_candidates(
    images: Sequence[tuple[str, str | None]],
    pool: Dataset,
    clusters: Clusters,
    settings: SamplingSettings,
    cleaning: CleaningSettings,
    progress: Progress | None = None,
    titles: Mapping[str, Sequence[tuple[str, str]]] = MappingProxyType({}),
) -> Candidates:
    """The candidates of ``images``, the ids and files of the sampled ones in the order of their choice.

    ``titles``: image → ids and texts of the titles that are its own. They come first: of near-duplicates the title
    stays, and no title is left out of a draw for a caption of the pool. A cluster that is too small gives no captions,
    but an image with enough titles needs none.
    """
    captions = caption_rows(pool)
    usable = clusters.sizes >= settings.cluster_sizes[0]
    rows = [
        [_Caption(text, caption) for caption, text in titles.get(image, ())]
        + [_Caption(pool.texts[caption], pool.caption_ids[caption], pool.image_ids[member], round(float(cosine), 6))
           for member, cosine in zip(clusters.members[order], clusters.cosines[order], strict=True) if usable[order]
           for caption in captions[member]]
        for order, (image, _) in enumerate(images)
    ]  # fmt: skip
    texts = list(dict.fromkeys(caption.text for captions_of_image in rows for caption in captions_of_image))
    table = clean_captions(texts, cleaning, progress=progress).table.select("cleaned", "reason", "changes")
    cleaned: dict[str, CleanText] = dict(zip(texts, table.iter_rows(), strict=True))
    image_rows, candidate_rows = [], []
    for order, ((image, file), captions_of_image) in enumerate(zip(images, rows, strict=True)):
        reasons = _reasons(image, captions_of_image, cleaned, settings)
        candidate_rows += [
            (image, f"{image}#{number}", text, *caption, reason, cleaned[caption.text][2], caption.source)
            for number, (caption, (text, reason)) in enumerate(zip(captions_of_image, reasons, strict=True))
        ]
        remaining = sum(reason is None for _, reason in reasons)
        verdict = KEPT if remaining >= settings.captions else FEW_CANDIDATES if usable[order] else SMALL_CLUSTER
        facts = (int(clusters.sizes[order]), round(float(clusters.nearest[order]), 6), remaining, verdict)
        image_rows.append((image, file, order, *facts))
    candidates = Candidates(
        pl.DataFrame(image_rows, schema=IMAGE_COLUMNS, orient="row"),
        pl.DataFrame(candidate_rows, schema=CANDIDATE_COLUMNS, orient="row"),
    )
    if not candidates.images["verdict"].eq(KEPT).any():  # nobody would have anything to judge
        most = max(row[5] for row in image_rows)
        dropped = Counter(candidates.captions["reason"].drop_nulls()).most_common()
        counted = ", ".join(f"{reason} {count:,}" for reason, count in dropped)
        raise UsageError(
            f"too few candidates: no image has {settings.captions} captions left to judge, the most are {most}"
            + (f"; of {len(candidate_rows):,} captions were dropped: {counted}" if dropped else ""),
            fix=f"pass a wider {argument('band')}, a larger pool or weaker rules of cleaning",
        )
    return candidates


def _reasons(
    image: str, captions: Sequence[_Caption], cleaned: Mapping[str, CleanText], settings: SamplingSettings
) -> list[tuple[str | None, str | None]]:
    """For each caption of an image its text, and the reason why it is dropped."""
    decided = [cleaned[caption.text][:2] for caption in captions]
    alive = [number for number, (_, reason) in enumerate(decided) if reason is None]
    if settings.near_duplicate <= 1 and alive:
        texts = [decided[number][0] or "" for number in alive]
        groups = near_duplicates(texts, threshold=settings.near_duplicate, seed=settings.seed)
        first: dict[int, int] = {}
        for number, group in zip(alive, groups, strict=True):
            if first.setdefault(int(group), number) != number:
                decided[number] = (decided[number][0], NEAR_DUPLICATE)
        alive = sorted(first.values())
    if settings.candidates is not None and len(alive) > settings.candidates:
        order = random_stream(settings.seed, "imp candidates", image).permutation(len(alive))
        shuffled = sorted(order, key=lambda at: captions[alive[at]].source != TITLE)
        for at in shuffled[settings.candidates :]:
            decided[alive[at]] = (decided[alive[at]][0], NOT_DRAWN)
    return decided


Tables = dict[str, pl.DataFrame]
_SAMPLING = ("count", "sampling", "compare_sampling", "seed")
_CLUSTERS = ("band", "cluster_sizes")


def _stage_tables(
    stages: Path | None, stage: str, key: str, names: Sequence[str], compute: Callable[[], Tables]
) -> Tables:
    """The tables of a stage: from a folder if they were computed with this key, or computed and kept there.

    So an interrupted build resumes.
    """
    if stages is None:
        return compute()
    folder = stages / f"{stage}-{key[:16]}"
    files = {name: folder / f"{name}.parquet" for name in names}
    if all(file.is_file() for file in files.values()):
        try:
            return {name: read_parquet_file(file) for name, file in files.items()}
        except (InputError, pl.exceptions.PolarsError) as error:
            to_stderr(f"note: a damaged table was removed, its stage is computed again: {folder} ({error})")
    tables = compute()
    folder.mkdir(parents=True, exist_ok=True)
    for name, file in files.items():
        with atomic_file(file) as partial:
            partial.write_bytes(parquet_bytes(tables[name]))
    return tables


@dataclass(frozen=True)
class CandidateStages:
    """Sampling, clusters and candidates of given images and a pool."""

    sources: ImpSources
    settings: SamplingSettings

    @cached_property
    def key(self) -> str:
        return fingerprint("imp candidates", self.inputs)

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """What decides the candidates."""
        sources, asked = self.sources, self.sources.asked
        image_vectors, pool_vectors, titles = asked.image_embeddings, asked.pool_embeddings, asked.titles
        return {
            "settings": asdict(self.settings),
            "cleaning": asdict(asked.cleaning),
            "skip_bad": sources.options.skip_bad,
            "images": _facts_of(sources.images),
            "pool": {**_facts_of(sources.pool), "captions": sources.pool.captions.height},
            "encoder": None if sources.encoder is None else sources.identity(sources.encoder),
            "image_vectors": None if image_vectors is None else image_vectors.fingerprint,
            "pool_vectors": None if pool_vectors is None else pool_vectors.fingerprint,
            # Not named where there are none, so that earlier builds keep their key.
            **({} if titles is None else {"titles": {**_facts_of(titles), "captions": titles.captions.height}}),
        }

    def run(self, folder: Path | None) -> tuple[Candidates, Tables]:
        """The candidates; and the tables of sampling: ``sampled``, ``spreads``, ``left_out``, ``notes``.

        Those of finished stages are kept in the folder.
        """
        tables_of = partial(_stage_tables, folder)
        inputs = {**self.inputs["settings"], **self.inputs}
        decisive = {name: inputs[name] for name in ("images", "encoder", "image_vectors", "skip_bad", *_SAMPLING)}
        names = ("sampled", "spreads", "left_out", "notes")
        sampling = tables_of("sampling", fingerprint("imp sampling", decisive), names, self._sample)
        decisive |= {name: inputs[name] for name in ("pool", "pool_vectors", *_CLUSTERS)}
        key, sampled = fingerprint("imp clusters", decisive), sampling["sampled"]
        clusters = tables_of("clusters", key, ("members", "sizes"), lambda: self._find(sampled))
        tables = tables_of("candidates", self.key, ("images", "captions"), lambda: self._collect(sampled, clusters))
        return Candidates(tables["images"], tables["captions"]), sampling

    def _sample(self) -> Tables:
        images, vectors, skipped = self.sources.encoded_images
        sample = sample_images(vectors, self.settings, self.sources.asked.progress)
        files = self.sources.files(images)
        ids = [images.image_ids[row] for row in sample.rows]
        paths = [absolute_file(files[image]) if image in files else None for image in ids]
        text = pl.String
        return {
            "sampled": pl.DataFrame({"image": ids, "file": paths}, schema={"image": text, "file": text}),
            "spreads": pl.DataFrame([asdict(spread) for spread in sample.spreads]),
            "left_out": pl.DataFrame(list(skipped.items()), schema={"image": text, "why": text}, orient="row"),
            "notes": pl.DataFrame({"note": list(sample.notes)}, schema={"note": text}),
        }

    def _find(self, sampled: pl.DataFrame) -> Tables:
        pool, pool_vectors, _ = self.sources.encoded_pool
        images, vectors, _ = self.sources.encoded_images
        row_of = {image: row for row, image in enumerate(images.image_ids)}
        rows = [row_of[image] for image in sampled["image"]]
        settings = self.settings
        most, progress = settings.cluster_sizes[1], self.sources.asked.progress
        clusters = find_clusters(vectors[rows], pool_vectors, settings.band, most, progress)
        check_clusters(clusters, settings.band, settings.cluster_sizes)
        numbers = np.repeat(np.arange(len(rows)), [len(members) for members in clusters.members])
        members = [pool.image_ids[member] for cluster in clusters.members for member in cluster]
        return {
            "members": pl.DataFrame(
                {"number": numbers, "member": members, "cosine": np.concatenate(clusters.cosines)},
                schema={"number": pl.Int64, "member": pl.String, "cosine": pl.Float64},
            ),
            "sizes": pl.DataFrame({"size": clusters.sizes, "nearest": clusters.nearest}),
        }

    def _collect(self, sampled: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Tables:
        pool, sizes, members = self.sources.pool, tables["sizes"], tables["members"]
        row_of = {image: row for row, image in enumerate(pool.image_ids)}
        rows = np.array([row_of[member] for member in members["member"]], np.int64)
        ends = np.searchsorted(members["number"].to_numpy(), np.arange(1, sampled.height))
        clusters = Clusters(
            tuple(np.split(rows, ends)), tuple(np.split(members["cosine"].to_numpy(), ends)),
            sizes["size"].to_numpy(), sizes["nearest"].to_numpy(),
        )  # fmt: skip
        images, asked = list(sampled.select("image", "file").iter_rows()), self.sources.asked
        candidates = collect_candidates(
            images, pool, clusters, self.settings, asked.cleaning, asked.progress, self.sources.own_titles
        )
        return {"images": candidates.images, "captions": candidates.captions}


def _flat(vectors: Array) -> Array:
    """One vector per image: the mean, where an image has several."""
    return vectors if vectors.ndim == 2 else np.asarray(vectors).mean(axis=1)

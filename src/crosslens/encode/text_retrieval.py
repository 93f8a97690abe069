"""Text-only retrieval: captions as queries, and one text representation per image as the gallery.

Queries and gallery come from one dataset (a caption of each image is the query, its others stand for the image) or from
two: the queries from one set of texts, the gallery from another, matched by image id.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Unpack

import numpy as np
import polars as pl

from crosslens.core import InputError, Registry, UsageError, argument, where_option
from crosslens.encode.encoder import TEXTS, Encoder, label, require_modality
from crosslens.encode.loading import PretrainedModel, ids_and_mask
from crosslens.encode.options import EACH, MEAN, EncodeOptions, StreamKeywords, query_choice
from crosslens.encode.stream import caption_rows, encode_captions, encode_texts
from crosslens.storage import Array
from crosslens.values import Dataset, Embeddings, match_ids

_BATCH, _LONGEST = 16, 64  # texts written at once, and the tokens of each


class Summariser(Protocol):
    """Makes one text of each group of sentences."""

    name: str
    revision: str

    def __call__(self, groups: Sequence[Sequence[str]]) -> list[str]:
        """One summary per group."""


SUMMARISERS: Registry[Callable[[str, EncodeOptions], Summariser]] = Registry("summariser", "summarisers")


def load_summariser(name: str, options: EncodeOptions | None = None) -> Summariser:
    """The summariser that ``extractive``, ``extractive:2`` or ``transformers:google/pegasus-xsum`` stands for."""
    kind, _, source = name.partition(":")
    return SUMMARISERS[kind].value(source, options or EncodeOptions())


@SUMMARISERS.register("extractive")
def load_extractive(source: str, options: EncodeOptions) -> Summariser:
    """The most central sentence, or with ``extractive:2`` the two most central ones, unchanged."""
    return Extractive(int(source) if source.isdigit() and int(source) else 1)


class Extractive:
    """Chooses the sentences that share most with the others: highest mean cosine of their TF-IDF vectors.

    Words are counted within the group only, so the choice does not depend on other images; of equals the earlier one.
    """

    revision = "1"

    def __init__(self, sentences: int = 1) -> None:
        self.sentences = sentences
        self.name = f"extractive:{sentences}"

    def __call__(self, groups: Sequence[Sequence[str]]) -> list[str]:
        return [self._choose(list(group)) for group in groups]

    def _choose(self, group: list[str]) -> str:
        if len(group) <= self.sentences:
            return " ".join(group)
        bags = [Counter(re.findall(r"\w+", sentence.casefold())) for sentence in group]
        spread = Counter(word for bag in bags for word in bag)
        weights = [
            {word: count * math.log(1 + len(group) / spread[word]) for word, count in bag.items()} for bag in bags
        ]

        def cosine(weights: dict[str, float], other: dict[str, float]) -> float:
            shared = sum(weight * other[word] for word, weight in weights.items() if word in other)
            lengths = math.sqrt(sum(w * w for w in weights.values()) * sum(w * w for w in other.values()))
            return shared / lengths if lengths else 0.0

        central = [sum(cosine(vector, other) for other in weights if other is not vector) for vector in weights]
        by_centrality = sorted(range(len(group)), key=lambda row: (-round(central[row], 12), row))
        return " ".join(group[row] for row in sorted(by_centrality[: self.sentences]))


@SUMMARISERS.register("transformers")
class Abstractive(PretrainedModel):
    """A text-to-text model of the transformers library, such as T5 or PEGASUS, by hub name or path.

    It writes greedily: the same sentences give the same summary.
    """

    def __init__(self, source: str, options: EncodeOptions) -> None:
        super().__init__("transformers", source, options, "a summariser", "AutoModelForSeq2SeqLM", images=False)
        # T5 needs the task in words; the others have only one.
        self._prompt = "summarize: " if self.model.config.model_type in ("t5", "mt5", "longt5") else ""

    def __call__(self, groups: Sequence[Sequence[str]]) -> list[str]:
        texts = [self._prompt + " ".join(group) for group in groups]
        summaries: list[str] = []
        for start in range(0, len(texts), _BATCH):
            text_inputs = ids_and_mask(self._tokens(texts[start : start + _BATCH]))
            with self._compute.torch.inference_mode():
                tokens = self.model.generate(**text_inputs, do_sample=False, num_beams=1, max_new_tokens=_LONGEST)
            summaries += [text.strip() for text in self._tokenizer.batch_decode(tokens, skip_special_tokens=True)]
        return summaries


_SENTENCE_ENDS = (".", "!", "?")


@dataclass(frozen=True, eq=False)
class TextQueries:
    """Queries over the images of a gallery, where a query may consist of several sentences.

    ``dataset`` has the images of the gallery and a caption for each query; the caption of a query of several sentences
    has the id of its image, and their texts one after the other. ``sentences`` has a caption for each sentence, and
    ``rows`` says which of them make up each query. ``corpus`` has the texts that stand for the images. ``sources`` are
    the query set and the corpus as they were given.

    The ``corpus`` of ``dataset`` are the texts that say what is in an image and do not ask: a text that is in both sets
    is left out of it, unless the image has no other.
    """

    dataset: Dataset
    sentences: Dataset
    rows: tuple[tuple[int, ...], ...]
    corpus: Dataset
    sources: tuple[Dataset, Dataset]
    query: int | str = 0
    notes: tuple[str, ...] = ()

    @staticmethod
    def over(dataset: Dataset) -> TextQueries:
        """All captions of a dataset, each a query of its own, where images are not represented by texts."""
        return TextQueries(dataset, dataset, _single(dataset), dataset, (dataset, dataset), EACH)

    @property
    def has_several_sentences(self) -> bool:
        return self.query == MEAN

    @property
    def two_sets(self) -> bool:
        return self.sources[0] is not self.sources[1]

    def average(self, vectors: Array) -> Array:
        """One vector per query from those of the sentences."""
        if not self.has_several_sentences:
            return vectors
        return np.stack([vectors[list(rows)].mean(axis=0) for rows in self.rows])


@dataclass(frozen=True, eq=False)
class TextOnly:
    """The queries and the gallery of text-only retrieval.

    ``dataset`` has a caption for every query; ``images`` holds one vector per image, made of the texts that stand for
    it; ``captions`` the vectors of the queries, and ``sentences`` those of the captions that they consist of.
    ``image_text`` is how the texts of an image became one vector.
    """

    dataset: Dataset
    images: Embeddings
    captions: Embeddings
    queries: TextQueries
    sentences: Embeddings
    image_text: str


def text_only(
    dataset: Dataset,
    encoder: Encoder,
    *,
    query: int | str = 0,
    image_text: str | Summariser = MEAN,
    queries: Dataset | None = None,
    shared_images: bool = False,
    **how: Unpack[StreamKeywords],
) -> TextOnly:
    """Caption number ``query`` of every image is the query; ``image_text`` makes the image's text of the others.

    ``mean`` is the mean of their vectors; anything else is a summariser (``extractive``, ``transformers:t5-small``, or
    an object), whose one text per image is encoded. An image needs the query caption and at least one other.

    With a second dataset as ``queries``, the queries are its captions, and all captions of ``dataset`` stand for their
    images; both are matched by image id. ``query`` may then also be ``mean`` (the vectors of all captions of an image
    are averaged into one query) or ``each`` (every caption is a query). See :func:`text_queries`.
    """
    require_modality(encoder, TEXTS)
    texts = text_queries(dataset, query, queries, shared_images=shared_images)
    gallery = images_from_captions(texts.corpus, encoder, image_text, **how)
    sentences = encode_captions(texts.sentences, encoder, **how)
    vectors = texts.average(np.asarray(sentences.vectors))
    captions = Embeddings(texts.dataset.caption_ids, vectors, model=label(encoder))
    return TextOnly(texts.dataset, gallery, captions, texts, sentences, str(getattr(image_text, "name", image_text)))


def images_from_captions(
    dataset: Dataset,
    encoder: Encoder,
    image_text: str | Summariser = MEAN,
    *,
    captions: Embeddings | None = None,
    **how: Unpack[StreamKeywords],
) -> Embeddings:
    """One vector per image that has captions, made of all of them: their mean, or a summariser's text.

    ``captions`` are their vectors, where they are encoded already.
    """
    rows_of = {image: rows for image, rows in zip(dataset.image_ids, caption_rows(dataset), strict=True) if rows}
    if not rows_of:
        expected = "captions that represent the images"
        raise InputError("no image has a caption", expected=expected, fix="check the captions of the dataset")
    ids, groups = tuple(rows_of), list(rows_of.values())
    if image_text == MEAN:
        encoded = encode_captions(dataset, encoder, **how) if captions is None else captions
        vectors = np.stack([np.asarray(encoded.vectors)[rows].mean(axis=0) for rows in groups])
    else:
        summarise = load_summariser(image_text) if isinstance(image_text, str) else image_text
        summaries = summarise([[dataset.texts[row] for row in rows] for rows in groups])
        vectors = encode_texts(encoder, summaries, **how).rows
    return Embeddings(ids, vectors, model=label(encoder))


def text_queries(
    dataset: Dataset, query: int | str = 0, queries: Dataset | None = None, *, shared_images: bool = False
) -> TextQueries:
    """Who is a query and what stands for the images, in one dataset or in two.

    Images of two datasets are matched by id, with or without the ending of an image file. A query whose image the
    corpus lacks raises; images of the corpus that have no query stay in the gallery. With ``shared_images`` both are
    left out.
    """
    query = query_choice(query)
    if queries is not None:
        return _from_two_sets(dataset, queries, query, shared_images)
    if shared_images:
        raise UsageError(
            f"{argument('shared_images', True)} without a second text set",
            fix=f"pass {argument('queries')}, or drop it",
            option="shared_images",
        )
    if not isinstance(query, int):
        raise UsageError(
            f"the query caption {query!r} leaves no caption to stand for the image",
            fix=f"name the caption by its number, or pass a second text set: {argument('queries')}",
            option="query_caption",
        )
    # For each image the row of the query caption, and the rows of its others.
    rows = caption_rows(dataset)
    for image, group in zip(dataset.image_ids, rows, strict=True):
        if len(group) < max(query + 1, 2):
            raise _too_few_captions(image, len(group), query, ", and another to stand for the image")
    asking, others = [group[query] for group in rows], [group[:query] + group[query + 1 :] for group in rows]
    corpus = replace(dataset, captions=dataset.captions[[row for group in others for row in group]])
    query_set = replace(dataset, captions=dataset.captions[asking], corpus=corpus.captions)
    return TextQueries(query_set, query_set, _single(query_set), corpus, (dataset, dataset), query)


def _too_few_captions(image: str, count: int, query: int, other: str = "") -> InputError:
    return InputError(
        f"image {image!r} has {count} captions",
        expected=f"caption number {query} (counted from 0) to ask{other}",
        fix="select images with enough captions"
        + where_option("query_caption", f", or ask with a lower {argument('query_caption')}"),
    )


def _single(dataset: Dataset) -> tuple[tuple[int, ...], ...]:
    return tuple((row,) for row in range(len(dataset.caption_ids)))


def _from_two_sets(dataset: Dataset, queries: Dataset, query: int | str, shared_images: bool) -> TextQueries:
    notes = []
    matches = match_ids(queries.image_ids, dataset.image_ids)
    asking = np.bincount(queries.caption_image, minlength=len(queries.image_ids)) > 0
    described = np.bincount(dataset.caption_image, minlength=len(dataset.image_ids)) > 0
    answerable = asking & (matches >= 0) & described[matches]
    if not answerable.any():
        raise InputError(
            f"no image of the queries ({queries.name}) is in the corpus ({dataset.name})",
            expected=f"shared image ids; there are {queries.image_ids[0]!r} and {dataset.image_ids[0]!r}",
            fix="name two sets of texts about the same images",
        )
    unanswered = int((asking & ~answerable).sum())
    if unanswered:
        first = queries.image_ids[int(np.argmax(asking & ~answerable))]
        problem = f"{unanswered:,} of {int(asking.sum()):,} images of the queries have no text in the corpus"
        if not shared_images:
            _refuse_unshared(f"{problem} (such as {first!r})")
        notes.append(f"{problem}: their queries are left out")
    is_query = np.zeros(len(dataset.image_ids), np.bool_)
    is_query[matches[answerable]] = True
    silent = int((~described).sum())
    if silent and not shared_images:
        first = dataset.image_ids[int(np.argmin(described))]
        _refuse_unshared(f"{silent:,} images of the corpus have no text (such as {first!r})")
    in_gallery = is_query if shared_images else described
    unasked = int((described & ~is_query).sum())
    if unasked:
        fate = "are left out" if shared_images else "stay in the gallery"
        notes.append(f"{unasked:,} of {int(described.sum()):,} images of the corpus have no query, and {fate}")
    corpus = dataset if in_gallery.all() else dataset.select(np.array(dataset.image_ids)[in_gallery].tolist())
    # The corpus' images with the captions of the query set, under the corpus' ids.
    matched = zip(queries.image_ids, matches, answerable, strict=True)
    name_of = {image: dataset.image_ids[row] for image, row, used in matched if used}
    captions = _renamed(queries.captions, name_of)
    more: dict[str, Any] = {}
    if corpus.objects is None and queries.objects is not None:  # the set that has annotations explains
        more["objects"] = _renamed(queries.objects, name_of)
        more["relations"] = None if queries.relations is None else _renamed(queries.relations, name_of)
    sentences = replace(corpus, captions=captions, **more)
    rows = [group for group in caption_rows(sentences) if group]
    if query not in (EACH, MEAN):
        for group in rows:
            if len(group) <= int(query):
                raise _too_few_captions(corpus.image_ids[sentences.caption_image[group[0]]], len(group), int(query))
        sentences = replace(sentences, captions=captions[[group[int(query)] for group in rows]])
    several = query == MEAN
    # The texts of the corpus that are no queries, whatever their ids; of an image that has none but queries, all.
    times = pl.int_range(pl.len()).over("image", "text").alias("nth")  # a text that an image has twice asks once
    of_queries = sentences.captions.select("image", "text", times)
    rest = corpus.captions.with_columns(times).join(of_queries, on=["image", "text", "nth"], how="anti")
    others = pl.col("caption").is_in(rest["caption"].implode()) | ~pl.col("image").is_in(rest["image"].implode())
    asking_set = replace(
        sentences,
        captions=_joined(sentences, rows) if several else sentences.captions,
        corpus=corpus.captions.filter(others),
    )
    made_of = tuple(map(tuple, rows)) if several else _single(asking_set)
    return TextQueries(asking_set, sentences, made_of, corpus, (queries, dataset), query, tuple(notes))


def _refuse_unshared(problem: str) -> None:
    raise InputError(
        problem,
        expected="a text in the corpus for every image of the queries",
        fix=f"pass {argument('shared_images', True)} to evaluate the images that both sets have",
    )


def _renamed(table: pl.DataFrame, name_of: dict[str, str]) -> pl.DataFrame:
    """The rows of the images that have a new name, under that name."""
    renamed = table.filter(pl.col("image").is_in(list(name_of)))
    return renamed.with_columns(image=pl.col("image").replace_strict(name_of, return_dtype=pl.String))


def _joined(sentences: Dataset, rows: Sequence[Sequence[int]]) -> pl.DataFrame:
    """A caption per query: the sentences of an image as one text, under the image's id."""
    images = [sentences.image_ids[sentences.caption_image[captions[0]]] for captions in rows]
    texts = ["".join(sentence_parts([sentences.texts[row] for row in captions])) for captions in rows]
    return pl.DataFrame({"caption": images, "image": images, "text": texts})


def sentence_parts(texts: Sequence[str]) -> list[str]:
    """The texts as parts of one: each ends as a sentence, and a space comes before the next."""
    ended = [text if text.rstrip().endswith(_SENTENCE_ENDS) else f"{text}." for text in texts]
    return [*(f"{text} " for text in ended[:-1]), *ended[-1:]]

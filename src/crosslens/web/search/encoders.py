"""The encoders that a search can use: which there are, and the thread that loads and runs one of them at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from crosslens.core import ConflictError, CrosslensError, InputError
from crosslens.data import readable_picture
from crosslens.encode import (
    IMAGES,
    TEXTS,
    Cache,
    EncodeOptions,
    Encoder,
    encode_dataset,
    load_encoder,
    require_modality,
)
from crosslens.engine import Progress
from crosslens.pipeline import recipe_of_run
from crosslens.rank import InnerProduct, Scorer, default_score, scorer_of, top_lists, unit_rows
from crosslens.storage import Array, fingerprint, named_by
from crosslens.values import Dataset, Embeddings
from crosslens.web.background import Jobs
from crosslens.web.library import RunLibrary, recipe_alone
from crosslens.web.pictures import IN_FLIGHT

MOST_BYTES = 12_000_000
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")


def check_upload(content: bytes) -> bytes:
    """The content of an upload, if it may be decoded: by its length, and by what its first bytes say of the picture."""
    if len(content) > MOST_BYTES:
        problem = f"the picture has {len(content):,} bytes"
        raise InputError(problem, expected=f"at most {MOST_BYTES:,}", fix="send a smaller one")
    with readable_picture(content) as picture:
        if picture.format not in FORMATS:
            problem = f"the picture is a {picture.format} file"
            raise InputError(problem, expected=", ".join(FORMATS), fix="save it as JPEG or PNG")
    return content


MOST_WORDS = 24
"""Words whose effect is measured: each takes one more encoding."""
_FEW = 100_000


class Hit(NamedTuple):
    """An item of the list: its rank from 1, its row in the gallery, its score."""

    rank: int
    row: int
    score: float


@dataclass(frozen=True)
class WordAnswer:
    """What a word adds to the score of the first hit, and to its lead over the second."""

    word: str
    start: int
    end: int
    effect: float
    lead: float | None


class SearchGallery:
    """The vectors of all items of one kind, brought to length 1 once where they are single vectors."""

    def __init__(self, embeddings: Embeddings) -> None:
        self.embeddings = embeddings
        self._unit = unit_rows(embeddings.vectors) if embeddings.kind == "single" else None

    def scorer(self, queries: Embeddings) -> Scorer:
        """Scores of the queries (rows) with all items (columns), by the score function of such vectors."""
        if queries.dimension != self.embeddings.dimension:
            problem = f"vectors of {queries.dimension} numbers for a gallery of {self.embeddings.dimension}"
            raise InputError(problem, fix="use one encoder for both")
        if self._unit is not None and queries.kind == "single":
            return InnerProduct(unit_rows(queries.vectors), self._unit, unit=True)
        return scorer_of(queries, self.embeddings, default_score(queries.kind, self.embeddings.kind))

    def search(self, query: Embeddings, depth: int) -> list[Hit]:
        """The items of highest score, best first; equal scores in the order of the gallery."""
        count = len(self.embeddings.ids)
        threads = 1 if count < _FEW else None  # starting threads takes longer than a short list
        items, scores = top_lists(self.scorer(query), min(depth, count), threads=threads)
        pairs = zip(items[0].tolist(), scores[0].tolist(), strict=True)
        return [Hit(rank, int(row), float(score)) for rank, (row, score) in enumerate(pairs, start=1) if row >= 0]

    def scores(self, queries: Embeddings, rows: Sequence[int]) -> Array:
        """The exact scores of several queries with some items: queries × rows."""
        count = len(queries.ids)
        left, right = np.repeat(np.arange(count), len(rows)), np.tile(np.asarray(rows, np.int64), count)
        return np.asarray(self.scorer(queries).exact(left, right)).reshape(count, len(rows))


def words_of(text: str) -> list[re.Match[str]]:
    """The words of a sentence, where they stand in it."""
    return list(re.finditer(r"[^\W_]+(?:['’-][^\W_]+)*", text))


def word_effects(
    text: str, hits: Sequence[Hit], gallery: SearchGallery, encode: Callable[[Sequence[str]], Embeddings]
) -> list[WordAnswer]:
    """What each word of a sentence contributes to the score of the first hit, and to its lead over the second."""
    words = words_of(text)[:MOST_WORDS]
    shortened = [re.sub(r"\s+", " ", text[: word.start()] + text[word.end() :]).strip() for word in words]
    left_out = [(word, rest) for word, rest in zip(words, shortened, strict=True) if re.search(r"\w", rest)]
    if not left_out or not hits:
        return []
    rows = [hit.row for hit in hits[:2]]
    lead = hits[0].score - hits[1].score if len(rows) > 1 else None
    effects = []
    for (word, _), scores in zip(left_out, gallery.scores(encode([rest for _, rest in left_out]), rows), strict=True):
        kept_lead = None if lead is None else lead - float(scores[0] - scores[1])
        effects.append(WordAnswer(word[0], *word.span(), hits[0].score - float(scores[0]), kept_lead))
    return effects


T = TypeVar("T")

BUILT_IN = "tiny"
MOST_SEARCHES = 6
LONGEST_WAIT = 120.0
_GALLERIES = 4


@dataclass(frozen=True)
class EncoderChoice:
    """An encoder that can be chosen: its id in addresses, its name, and what loads it.

    ``origin`` is the recipe that names it: code that a file names is not run without being trusted.
    """

    id: str
    name: str
    model: str
    origin: Path | None = None
    image_folder: Path | None = None


def encoder_choices(library: RunLibrary, models: Sequence[str] = ()) -> list[EncoderChoice]:
    """The built-in encoder, those that the server was started with, and those that the runs in the folder used."""
    choices = [_choice(model) for model in dict.fromkeys((*models, BUILT_IN))]
    for summary in library.runs():
        if summary.problem is not None:
            continue
        try:
            recipe = recipe_of_run(recipe_alone(summary))
        except CrosslensError:
            continue
        if recipe is None or recipe.model.name is None or recipe.model.image_text is not None:
            continue
        absolute = recipe.absolute().model
        folder = None if absolute.image_folder is None else Path(absolute.image_folder)
        choices.append(_choice(str(absolute.name), summary.folder / "recipe.toml", folder))
    return list({choice.id: choice for choice in reversed(choices)}.values())[::-1]


def _choice(model: str, origin: Path | None = None, image_folder: Path | None = None) -> EncoderChoice:
    kind, colon, source = model.partition(":")
    name = f"{kind}{colon}{'/'.join(Path(source).parts[-2:])}" if source.startswith("/") else model
    return EncoderChoice(fingerprint("encoder", {"model": model})[:12], name, model, origin, image_folder)


@dataclass(eq=False)
class LoadedEncoder:
    """An encoder in memory, with the galleries that it has encoded."""

    choice: EncoderChoice
    encoder: Encoder
    galleries: dict[tuple[str, str], tuple[Dataset, SearchGallery]] = field(default_factory=dict)

    def embed_texts(self, texts: Sequence[str]) -> Embeddings:
        require_modality(self.encoder, TEXTS)
        return _embeddings(self.encoder.encode_texts(list(texts)))

    def embed_picture(self, content: bytes) -> Embeddings:
        """The picture in an upload, decoded when there is room for it. Nothing of it is written to disk."""
        require_modality(self.encoder, IMAGES)
        with readable_picture(check_upload(content)) as picture, IN_FLIGHT.decoded(picture) as decoded:
            return _embeddings(self.encoder.encode_images([decoded]))


def _embeddings(vectors: Any) -> Embeddings:
    rows = np.asarray(vectors, np.float32)
    return Embeddings(tuple(map(str, range(len(rows)))), rows)


class EncoderWorker(Jobs):
    """The one thread in which encoders run; ``cache`` is where vectors of datasets are kept."""

    def __init__(self, cache: Path | None = None, *, most: int = MOST_SEARCHES) -> None:
        super().__init__(most, "searches")
        self._cache = cache
        self._loaded: LoadedEncoder | None = None

    def call(self, work: Callable[[], T], wait: float = LONGEST_WAIT) -> T:
        """The result of the work; raises where it takes too long."""
        future = self.submit(work)
        try:
            return future.result(wait)
        except FutureTimeout:
            future.cancel()
            problem = f"the encoder did not answer within {wait:g} seconds"
            raise ConflictError(problem, fix="try again when it has encoded the dataset", code="busy") from None

    def loaded(self, choice: EncoderChoice) -> LoadedEncoder:
        """The encoder, loaded instead of the one before; only to be called in the thread."""
        if self._loaded is None or self._loaded.choice != choice:
            self._loaded = None  # first: two large models may not fit into memory together
            with nullcontext() if choice.origin is None else named_by(choice.origin):
                self._loaded = LoadedEncoder(choice, load_encoder(choice.model, EncodeOptions(cache=self._cache)))
        return self._loaded

    def has(self, choice: EncoderChoice, dataset: Dataset, modality: str) -> bool:
        """Whether the vectors of a dataset's images or captions are in memory."""
        loaded = self._loaded
        return loaded is not None and loaded.choice == choice and (dataset.fingerprint, modality) in loaded.galleries

    def gallery(
        self, choice: EncoderChoice, dataset: Dataset, modality: str, folders: Sequence[Path], progress: Progress | None
    ) -> tuple[Dataset, SearchGallery]:
        """The vectors of a dataset's images or captions, and the dataset as far as it could be read.

        Only to be called in the thread. Vectors of earlier runs come from the cache.
        """
        loaded = self.loaded(choice)
        key = (dataset.fingerprint, modality)
        if key not in loaded.galleries:
            problem, encoded = None, None
            cache = Cache.of(self._cache, lambda _: None)
            for folder in dict.fromkeys([*folders, None]):
                try:
                    encoded = encode_dataset(
                        dataset, loaded.encoder, image_folder=folder, cache=cache, skip_bad=True, progress=progress
                    )
                    break
                except CrosslensError as error:
                    problem = problem or error
            if encoded is None:
                assert problem is not None
                raise problem
            galleries = dict(list(loaded.galleries.items())[-_GALLERIES:])
            for name, embeddings in ((IMAGES, encoded.images), (TEXTS, encoded.captions)):
                if embeddings is not None:
                    galleries[dataset.fingerprint, name] = (encoded.dataset, SearchGallery(embeddings))
            loaded.galleries = galleries
        if key not in loaded.galleries:
            require_modality(loaded.encoder, modality)
        return loaded.galleries[key]

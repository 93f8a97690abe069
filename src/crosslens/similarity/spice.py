"""SPICE: how many of a caption's facts the references state, and how many of theirs it states.

Facts are the tuples of scene graphs. A tuple of the caption counts if some tuple of the image's merged reference graph
is similar to it: position by position the same word, or one that shares a WordNet synset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core.errors import InputError
from crosslens.core.progress import Progress, Silent, stage
from crosslens.language.parsing import parse_texts
from crosslens.language.pipeline import find_pipeline
from crosslens.language.scene_graph import SceneGraph, scene_graph
from crosslens.language.scene_words import COLOURS, SIZES, is_number
from crosslens.similarity.similarity import SIMILARITIES
from crosslens.similarity.spice_index import Counted, Words, index_candidates, index_references, merge
from crosslens.similarity.threads import in_parallel, thread_count

Array = np.ndarray[Any, Any]

_RULES = 1
"""Changes whenever the graph of a parse, or the score of two graphs, may."""
_ROWS_AT_ONCE = 256
"""Rows that are held at once where single cells are asked for."""

PARTS = {
    "": Counted(objects=True, attributes=lambda word: True, relations=True),
    "object": Counted(objects=True, attributes=lambda word: False, relations=False),
    "attribute": Counted(objects=False, attributes=lambda word: True, relations=False),
    "relation": Counted(objects=False, attributes=lambda word: False, relations=True),
    "colour": Counted(objects=False, attributes=COLOURS.__contains__, relations=False),
    "cardinality": Counted(objects=False, attributes=is_number, relations=False),
    "size": Counted(objects=False, attributes=SIZES.__contains__, relations=False),
}
"""The score itself, and its sub-scores: the same over some of the tuples."""


@dataclass(frozen=True)
class Spice:
    """SPICE or one of its sub-scores; ``pipeline`` and ``cache`` are those of :func:`parse_texts`."""

    part: str = ""
    pipeline: str | None = None
    cache: str | Path | bool = True

    @property
    def name(self) -> str:
        return f"spice-{self.part}" if self.part else "spice"

    @property
    def revision(self) -> str:
        """The rules and the pipeline: another parser, other graphs."""
        return f"{_RULES}, {find_pipeline(self.pipeline)}"

    def prepare(
        self,
        references: Sequence[Sequence[str]],
        captions: Sequence[str],
        *,
        progress: Progress | None = None,
        threads: int | None = None,
    ) -> PreparedSpice:
        """Parse every text once, build the graphs, merge those of each image."""
        texts = list(dict.fromkeys([*captions, *(text for some in references for text in some)]))
        parses = parse_texts(texts, pipeline=self.pipeline, cache=self.cache, threads=threads, progress=progress)
        graph_of = {}
        with stage(progress or Silent(), "scene graphs", len(texts)) as watching:
            for text, parse in zip(texts, parses, strict=True):
                graph_of[text] = scene_graph(parse)
                watching.advance()
        graphs = [[graph_of[text] for text in some] for some in references]
        return prepare_graphs(graphs, [graph_of[text] for text in captions], part=self.part, threads=threads)


def prepare_graphs(
    references: Sequence[Sequence[SceneGraph]],
    captions: Sequence[SceneGraph],
    *,
    part: str = "",
    threads: int | None = None,
) -> PreparedSpice:
    """SPICE over graphs that are at hand: the reference graphs of each image, and one graph per caption."""
    words = Words([*captions, *(graph for some in references for graph in some)])
    counted = PARTS[part]
    merged = [merge(graphs, words) for graphs in references]
    return PreparedSpice(
        index_candidates(captions, words, counted), index_references(merged, words, counted), thread_count(threads)
    )


@dataclass(frozen=True, eq=False)
class PreparedSpice:
    """SPICE of a collection, its graphs indexed."""

    candidates: Any
    references: Any
    threads: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.references.sizes), len(self.candidates.sizes)

    def block(self, rows: slice) -> Array:
        """Whole rows: float32, (rows, captions)."""
        first, last, _ = rows.indices(self.shape[0])
        return self._rows(np.arange(first, max(first, last)))

    def pairs(self, images: Array, captions: Array) -> Array:
        """Single cells: float32, one per pair of positions. Costs a row for every distinct image."""
        images, captions = np.asarray(images, np.int64), np.asarray(captions, np.int64)
        _check_range(images, self.shape[0], "image")
        _check_range(captions, self.shape[1], "caption")
        found = np.empty(images.size, np.float32)
        wanted, group = np.unique(images, return_inverse=True)
        for start in range(0, wanted.size, _ROWS_AT_ONCE):
            rows = self._rows(wanted[start : start + _ROWS_AT_ONCE])
            here = (group >= start) & (group < start + len(rows))
            found[here] = rows[group[here] - start, captions[here]]
        return found

    def _rows(self, images: Array) -> Array:
        from crosslens.similarity.spice_kernel import score_rows

        out = np.empty((images.size, self.shape[1]), np.float32)
        score = partial(score_rows, self.candidates, self.references)
        in_parallel(lambda start, stop: score(images[start:stop], out[start:stop]), images.size, self.threads)
        return out


def _check_range(places: Array, count: int, what: str) -> None:
    if places.size and (places.min() < 0 or places.max() >= count):
        row = int(np.argmax((places < 0) | (places >= count)))
        raise InputError(f"{what} {places[row]}", row=row, expected=f"a position below {count}")


@SIMILARITIES.register("spice", extra="language")
def load_spice(source: str = "", *, pipeline: str | None = None, cache: str | Path | bool = True) -> Spice:
    """SPICE: F1 of scene-graph tuples (objects, attributes, relations), synonyms by WordNet."""
    return Spice("", source or pipeline, cache)


def _register_part(part: str, summary: str) -> None:
    def load(source: str = "", *, pipeline: str | None = None, cache: str | Path | bool = True) -> Spice:
        return Spice(part, source or pipeline, cache)

    load.__doc__ = f"SPICE over {summary} alone."
    SIMILARITIES.register(f"spice-{part}", extra="language")(load)


_register_part("object", "objects")
_register_part("attribute", "attributes")
_register_part("relation", "relations")
_register_part("colour", "attributes that are colours")
_register_part("cardinality", "attributes that count")
_register_part("size", "attributes that are sizes")

"""Why a query retrieved what it did, computed when somebody asks and kept."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

import numpy as np

from crosslens.core import CrosslensError, InputError, Ranking
from crosslens.explanations import AnnotatedImage, DatasetObjects, Explanation, explain_queries
from crosslens.language import find_pipeline, load_wordnet
from crosslens.report import EmbeddedImage, section_html
from crosslens.web.explorer.tables import QueryTables
from crosslens.web.kept import Kept

_KEPT, _DATASETS = 256, 4


class Explanations:
    """Explanations by run, direction and query."""

    def __init__(self, tables: QueryTables) -> None:
        self._tables = tables
        self._kept: Kept[Explanation] = Kept(_KEPT)
        self._objects: Kept[DatasetObjects] = Kept(_DATASETS)

    def explanation(self, run: str, direction: str | None, query: str) -> Explanation:
        """The explanation of a query; raises where the dataset is not there."""
        library = self._tables.services.library
        own = self._tables.table(run, direction).retrieval
        own.row(query)
        key = (run, library.summary(run).signature, own.direction, query)

        def make() -> Explanation:
            dataset = library.dataset_of(run)
            objects = self._objects.get(dataset.fingerprint, lambda: DatasetObjects(dataset))
            alone = replace(own.run, rankings={own.direction: one_query(own.run.rankings[own.direction], query)})
            return explain_queries(alone, dataset, [query], own.direction, objects=objects)[0]

        return self._kept.get(key, make)

    def load_parser(self) -> None:
        """Load the parser and WordNet, which take seconds: the first explanation need not wait for them."""
        if not self._tables.services.library.runs():
            return
        try:
            find_pipeline().load()
            load_wordnet().hypernym_closure("dog.n.01")
        except CrosslensError:  # not installed: explanations say so
            return

    def article(self, run: str, direction: str | None, query: str) -> str:
        """The explanation as HTML, its pictures under their addresses."""
        explained = self.explanation(run, direction, query)
        dataset = self._tables.services.library.summary(run).dataset
        shown = [picture for picture in (explained.right, explained.other) if picture is not None]
        drawn = {picture.image: self._drawn(dataset, picture) for picture in shown}
        known = {image: picture for image, picture in drawn.items() if picture is not None}
        return "".join(section_html(section, known) for section in explained.sections())

    def _drawn(self, dataset: str, picture: AnnotatedImage) -> EmbeddedImage | None:
        if not self._tables.has_picture(dataset, picture.image):
            return None
        try:
            width, height = self._tables.services.pictures.size(dataset, picture.image)
        except (CrosslensError, OSError):
            return None
        address = f"/pictures/{quote(dataset, safe='')}/{quote(picture.image, safe='')}?size=640"
        return EmbeddedImage(address, width, height)


def one_query(ranking: Ranking, query: str) -> Ranking:
    """The ranking of a single query: what is computed from it does not grow with the run."""
    if query not in ranking.query_ids:
        raise InputError(f"this run keeps no list for the query {query!r:.200}", code="no-list", subject=query)
    row = ranking.query_ids.index(query)
    start, stop = int(ranking.offsets[row]), int(ranking.offsets[row + 1])
    rows = ("top_items", "top_scores", "known")
    pairs = ("relevant", "grades", "above", "tied", "tied_before")
    return replace(
        ranking,
        query_ids=(query,),
        offsets=np.array([0, stop - start], np.int64),
        **{name: getattr(ranking, name)[row : row + 1] for name in rows},
        **{name: getattr(ranking, name)[start:stop] for name in pairs},
    )

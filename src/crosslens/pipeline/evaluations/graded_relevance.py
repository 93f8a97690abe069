"""What graded metrics measure with: the φ and the relevance encoders that they name, prepared for one evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import UsageError, argument, merged_notes, reading
from crosslens.engine import Progress
from crosslens.metrics import (
    OWN_SCORES,
    GainMatrix,
    MetricRequest,
    compute,
    family_of,
    format_count,
    graded_requests,
    ideal_depth,
    list_depth,
    option_values,
    requests_naming,
)
from crosslens.pipeline.evaluations.inputs import ScoreSource, score_source
from crosslens.similarity import (
    SIMILARITIES,
    CacheChoice,
    PrecomputedSimilarity,
    Similarity,
    load_similarity,
    relevance_matrix,
)
from crosslens.storage import Array, fingerprint
from crosslens.values import Dataset, Ranking, Relevance, as_array

_IN_MEMORY = 2 << 30
"""Bytes of a matrix that are kept in memory; a larger one is written to disk while it is needed."""


class GradedRelevance:
    """The values behind the graded metrics among ``requests``.

    ``phi`` and ``encoders`` give what names in the metrics stand for; a φ that is not among them is looked up in the
    registry. Names are checked at once; what takes time is done by :meth:`gains`.
    """

    def __init__(
        self,
        requests: Sequence[MetricRequest],
        dataset: Dataset | None,
        phi: Mapping[str, Any] | None = None,
        encoders: Mapping[str, Any] | None = None,
        cache: CacheChoice = None,
    ) -> None:
        self._cache = cache
        self._requests = graded_requests(requests)
        self._own = OWN_SCORES in option_values(requests, "scores_from")
        self._similarities: dict[str, Similarity] = {}
        self._encoders: dict[str, ScoreSource] = {}
        self.description: dict[str, Any] = {}
        inputs = [
            *requests_naming(requests, "φ"),
            *(pair for pair in requests_naming(requests, "scores_from") if pair[0] != OWN_SCORES),
        ]
        if not inputs:
            return
        if dataset is None:
            problem = f"{inputs[0][1]} requires the captions and images themselves"
            raise UsageError(problem, fix=f"pass {argument('dataset')}")
        self._dataset = dataset
        sources = {SIMILARITIES.canonical(name): source for name, source in (phi or {}).items()}
        for name in option_values(requests, "φ"):
            source = sources.get(name, name)
            if isinstance(source, list) or hasattr(source, "detach"):
                source = as_array(source, f"φ {name!r}")
            with reading(f"φ {name!r}"):
                similarity = load_similarity(source, cache=cache)
                if isinstance(similarity, PrecomputedSimilarity):
                    similarity.prepare_ids(dataset)  # a matrix of other items is refused before the long work
            self._similarities[name] = similarity
            facts = {"name": similarity.name, "revision": similarity.revision}
            self.description.setdefault("similarities", {})[name] = facts
        for name in option_values(requests, "scores_from"):
            if name != OWN_SCORES:
                if name not in (encoders or {}):
                    raise UsageError(
                        f"scores_from={name} is not defined",
                        fix=f"pass scores_from={{{name!r}: scores}} or scores_from={{{name!r}: (images, captions)}}",
                        subject=name,
                    )
                vectors = (encoders or {})[name]
                pair = isinstance(vectors, tuple) and len(vectors) == 2
                source = score_source(dataset, *vectors) if pair else score_source(dataset, scores=vectors)
                self._encoders[name] = source
                self.description.setdefault("scores_from", {})[name] = dict(source.description)

    @property
    def plugins(self) -> list[str]:
        kinds = [similarity.name.partition(":")[0] for similarity in self._similarities.values()]
        kinds += [name.partition(":")[0] for name in self._similarities]
        return [SIMILARITIES[kind].plugin for kind in kinds if kind in SIMILARITIES]

    def depth(self, relevance: Mapping[str, Relevance]) -> int:
        return list_depth(self._requests, relevance)

    def gains(
        self,
        relevance: Mapping[str, Relevance],
        parts: Sequence[tuple[Array, Array]],
        *,
        folder: Path | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[dict[str, GainMatrix], dict[str, Any]]:
        """The values by name, and the fingerprints of the matrices they come from."""
        gains = {name: GainMatrix.of_scorer(source.scorer) for name, source in self._encoders.items()}
        fingerprints = {}
        deepest = ideal_depth(self._requests, relevance)
        for name, similarity in self._similarities.items():
            ids = self._dataset.image_ids, self._dataset.caption_ids
            if isinstance(similarity, PrecomputedSimilarity) and (
                similarity.image_ids in (None, ids[0]) and similarity.caption_ids in (None, ids[1])
            ):
                # May be a memory map, and is not copied; the revision of a given matrix is its hash.
                matrix, digest = similarity.values, similarity.revision
            else:
                output = None
                if folder is not None and 4 * len(ids[0]) * len(ids[1]) > _IN_MEMORY:
                    folder.mkdir(parents=True, exist_ok=True)
                    output = folder / f"phi-{fingerprint('phi', self.description['similarities'][name])}.npy"
                matrix = relevance_matrix(
                    self._dataset, similarity, output=output, threads=threads, progress=progress, cache=self._cache
                )
                digest = fingerprint("similarity-matrix", {"values": matrix})
            fingerprints[name] = {"fingerprint": digest}
            with reading(getattr(similarity, "file", None) or f"φ {name!r}"):
                gains[name] = GainMatrix(
                    matrix, image_of=self._dataset.caption_image, parts=parts, deepest=deepest, threads=threads
                )
        return gains, fingerprints

    def notes(self, rankings: Mapping[str, Ranking], gains: Mapping[str, GainMatrix]) -> list[str]:
        """What values alone do not tell: queries that count as 0, as nothing is similar, and scores beyond cosines."""
        zeros: dict[str, str] = {}
        for request in self._requests:
            spec = request.spec
            if not spec.has("zero") or family_of(spec).across:
                continue
            skipping = replace(spec, options=tuple(option for option in spec.options if option != "zero"))
            for direction, ranking in rankings.items():
                if request.direction in (None, direction):
                    skipped = np.isnan(compute(skipping, ranking, gains=gains)) & (ranking.relevant_counts > 0)
                    name, number = f"{direction}/{replace(spec, cutoff=None)}", int(skipped.sum())
                    if number:
                        zeros[name] = f"{format_count(number, 'query')} counted as 0, as nothing is similar"
        notes = merged_notes(zeros.items())
        tops = (float(np.nanmax(np.abs(ranking.top_scores), initial=0)) for ranking in rankings.values())
        largest = max(tops, default=0)
        if self._own and largest > 1.001:
            text = "they are not cosines, so an unlabelled item can count for more than a labelled one"
            notes.append(f"DCGcm with the model's own scores, which reach {largest:.3g}: {text}")
        return notes

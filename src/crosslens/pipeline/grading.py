"""What graded metrics compare with: the φ and the relevance encoders that they name, made ready for one evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core.dataset import Dataset
from crosslens.core.errors import UsageError, reading
from crosslens.core.fingerprint import fingerprint
from crosslens.core.progress import Progress
from crosslens.core.ranking import Ranking
from crosslens.core.relevance import Relevance
from crosslens.metrics import Gains, MetricRequest, family_of
from crosslens.metrics.gain import OWN
from crosslens.metrics.total import CUTOFFS
from crosslens.pipeline.sources import Scores, as_array, scores_from
from crosslens.similarity import Similarity, load_similarity, relevance_matrix
from crosslens.similarity.precomputed import PrecomputedSimilarity

Array = np.ndarray[Any, Any]

_IN_MEMORY = 2 << 30
"""Bytes of a matrix that are kept in memory; a larger one goes to disk while it is needed."""


class Grading:
    """The values behind the graded metrics among ``requests``.

    ``phi`` and ``encoders`` say what names in the metrics stand for; a φ that is not among them is looked up in the
    registry. Names are checked at once; what takes time is done by :meth:`gains`.
    """

    def __init__(
        self,
        requests: Sequence[MetricRequest],
        dataset: Dataset | None,
        phi: Mapping[str, Any] | None = None,
        encoders: Mapping[str, Any] | None = None,
    ) -> None:
        self._requests = [one for one in requests if family_of(one.spec).graded]
        self._dataset = dataset
        names = dict.fromkeys(self._options("φ"))
        sources = [one for one in dict.fromkeys(self._options("scores_from")) if one != OWN]
        if (names or sources) and dataset is None:
            name = next(str(one) for one in self._requests if str(one.spec) != "nDCG")
            raise UsageError(f"{name} needs the captions and images themselves", fix="pass the dataset (--dataset)")
        self._similarities = {name: self._resolve(name, (phi or {}).get(name, name)) for name in names}
        self._encoders = {name: self._scores_of(name, encoders or {}) for name in sources}
        self.description: dict[str, Any] = {}
        if names:
            self.description["similarities"] = {
                name: {"name": one.name, "revision": one.revision} for name, one in self._similarities.items()
            }
        if sources:
            self.description["scores_from"] = {name: dict(self._encoders[name].description) for name in sources}

    def places(self, relevance: Mapping[str, Relevance]) -> int:
        """How many places of each list the metrics look at."""
        return max((self._looked_at(one) + self._removed(one, relevance) for one in self._requests), default=0)

    def gains(
        self,
        relevance: Mapping[str, Relevance],
        parts: Sequence[tuple[Array, Array]],
        *,
        folder: Path | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[dict[str, Gains], dict[str, Any]]:
        """The values by name, and the fingerprints of the matrices they come from."""
        found = {
            name: Gains.of_scorer(one.restricted(slice(None), slice(None))) for name, one in self._encoders.items()
        }
        prints = {}
        deepest = max((self._best(one) + self._removed(one, relevance) for one in self._requests), default=1)
        for name, similarity in self._similarities.items():
            assert self._dataset is not None
            matrix = self._matrix(name, folder, threads, progress)
            known = matrix is getattr(similarity, "values", None)  # the revision of a ready matrix is its hash
            hashed = similarity.revision if known else fingerprint("similarity-matrix", {"values": matrix})
            prints[name] = {"fingerprint": hashed}
            with reading(getattr(similarity, "file", None) or f"φ {name!r}"):
                found[name] = Gains(
                    matrix, image_of=self._dataset.caption_image, parts=parts, deepest=deepest, threads=threads
                )
        return found, prints

    def notes(self, rankings: Mapping[str, Ranking]) -> list[str]:
        """What a reader of the figures should know about them."""
        own = any(source == OWN for source in self._options("scores_from"))
        largest = max((float(np.nanmax(np.abs(one.top_scores), initial=0)) for one in rankings.values()), default=0)
        if not own or largest <= 1.001:
            return []
        return [
            f"DCGcm with the model's own scores, which reach {largest:.3g}: they are no cosines, so an unlabelled item "
            "can count for more than a labelled one"
        ]

    def _options(self, option: str) -> Iterable[str]:
        for request in self._requests:
            written = family_of(request.spec).value_of(request.spec, option)
            if written is not None:
                yield written

    def _resolve(self, name: str, meant: Any) -> Similarity:
        assert self._dataset is not None
        if isinstance(meant, list) or hasattr(meant, "detach"):
            meant = as_array(meant, f"φ {name!r}")
        with reading(f"φ {name!r}"):
            similarity = load_similarity(meant)
            if isinstance(similarity, PrecomputedSimilarity):
                similarity.prepare_ids(self._dataset)  # a matrix of something else should not cost the wait
        return similarity

    def _scores_of(self, name: str, encoders: Mapping[str, Any]) -> Scores:
        assert self._dataset is not None
        if name not in encoders:
            raise UsageError(
                f"nothing says whose scores {name!r} are",
                fix=f"pass scores_from={{{name!r}: scores}} or {{{name!r}: (images, captions)}} (--scores-from)",
            )
        given = encoders[name]
        if isinstance(given, tuple) and len(given) == 2:
            return scores_from(self._dataset, *given, None, None)[0]
        return scores_from(self._dataset, None, None, given, None)[0]

    def _matrix(self, name: str, folder: Path | None, threads: int | None, progress: Progress | None) -> Array:
        assert self._dataset is not None
        similarity, ids = self._similarities[name], (self._dataset.image_ids, self._dataset.caption_ids)
        if isinstance(similarity, PrecomputedSimilarity) and similarity.image_ids in (None, ids[0]) and (
            similarity.caption_ids in (None, ids[1])
        ):  # fmt: skip
            return similarity.values  # as it lies on disk
        output = None
        if folder is not None and 4 * len(ids[0]) * len(ids[1]) > _IN_MEMORY:
            folder.mkdir(parents=True, exist_ok=True)
            output = folder / f"phi-{fingerprint('phi', self.description['similarities'][name])}.npy"
        return relevance_matrix(self._dataset, similarity, output=output, threads=threads, progress=progress)

    def _looked_at(self, request: MetricRequest) -> int:
        return request.spec.cutoff or CUTOFFS[-1]

    def _best(self, request: MetricRequest) -> int:
        return int(request.spec.setting("m") or self._looked_at(request))

    def _removed(self, request: MetricRequest, relevance: Mapping[str, Relevance]) -> int:
        """The most ground-truth items that are taken out of a list."""
        if not request.spec.has("non-gt"):
            return 0
        counts = [np.bincount(one.rows[one.grades > 0], minlength=1).max(initial=0) for one in relevance.values()]
        return int(max(counts, default=0))

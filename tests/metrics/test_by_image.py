"""SR[by-image]: the captions of the query's image vote, in both directions; from FIVE's rule, in plain loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.metrics import GainMatrix, compute, parse_metric
from crosslens.pipeline import evaluate
from tests.metrics.brute import rank


@dataclass(frozen=True)
class Captioned:
    """Images with any number of captions, at least one each; φ and scores are images × captions."""

    image_of: list[int]
    phi: list[list[int]]
    scores: list[list[int]]

    def captions(self, image: int) -> list[int]:
        return [caption for caption, image_of_caption in enumerate(self.image_of) if image_of_caption == image]

    def semantic_recall(self, direction: str, query: int, m: int, k: int, non_gt: bool) -> float | None:
        """The rule once more: who votes, for whom, what is relevant, what is retrieved."""
        own_image = query if direction == "i2t" else self.image_of[query]
        voters = self.captions(own_image)
        votes = []
        for image in range(len(self.phi)):
            if non_gt and image == own_image:
                continue
            mean = sum(self.phi[image][caption] for caption in voters) / len(voters)
            votes.append((-mean, image))
        images = [image for _, image in sorted(votes)[:m]]
        if direction == "i2t":
            relevant = [caption for image in images for caption in self.captions(image)]
            gallery = range(len(self.image_of))
            order = sorted(gallery, key=lambda caption: (-self.scores[query][caption], caption))
            retrieved = [caption for caption in order if not (non_gt and caption in voters)]
        else:
            relevant = images
            order = sorted(range(len(self.phi)), key=lambda image: (-self.scores[image][query], image))
            retrieved = [image for image in order if not (non_gt and image == own_image)]
        return len(set(relevant) & set(retrieved[:k])) / len(relevant) if relevant else None


@st.composite
def captioned(draw: st.DrawFn) -> Captioned:
    """Up to five images of one to three captions, in any order; few different values, so that many are tied."""
    counts = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    image_of = draw(st.permutations([image for image, count in enumerate(counts) for _ in range(count)]))
    row = st.lists(st.integers(0, 3), min_size=len(image_of), max_size=len(image_of))
    tables = [draw(st.lists(row, min_size=len(counts), max_size=len(counts))) for _ in range(2)]
    return Captioned(image_of, *tables)


@pytest.mark.parametrize("non_gt", [False, True])
@pytest.mark.parametrize("direction", ["i2t", "t2i"])
@given(data=captioned(), m=st.integers(1, 4), k=st.integers(1, 4))
def test_by_image_is_the_authors_rule(direction: str, non_gt: bool, data: Captioned, m: int, k: int) -> None:
    scores, gains = np.array(data.scores, float), {"cider": GainMatrix(np.array(data.phi), image_of=data.image_of)}
    if direction == "i2t":
        ranking = rank(scores, [set(data.captions(image)) for image in range(len(data.phi))])
    else:
        ranking = rank(scores.T, [{image} for image in data.image_of], "t2i")
    spec = parse_metric(f"SR[cider, {m}, by-image{', non-gt' if non_gt else ''}]@{k}").spec
    expected = [data.semantic_recall(direction, query, m, k, non_gt) for query in range(len(ranking.query_ids))]
    actual = [None if np.isnan(value) else value for value in compute(spec, ranking, "stable", gains)]
    assert actual == pytest.approx(expected)


def test_it_is_the_query_image_that_votes() -> None:
    """By its own captions image 0 is most like image 1, by the candidates' captions like image 2."""
    phi = np.array([[9.0, 0.0, 8.0], [5.0, 9.0, 0.0], [1.0, 0.0, 9.0]])
    gains = {"cider": GainMatrix(phi, image_of=np.arange(3))}
    scores = np.array([[0.1, 0.9, 0.2], [0.0, 1.0, 0.5], [0.0, 0.5, 1.0]])  # image 0 retrieves caption 1 first
    for direction, table in (("i2t", scores), ("t2i", scores)):
        ranking = rank(table, [{0}, {1}, {2}], direction)
        spec = parse_metric("SR[cider, 1, by-image, non-gt]@1").spec
        assert compute(spec, ranking, "stable", gains)[0] == 1


def test_by_image_of_lists_and_folds() -> None:
    """Within folds only images of the fold get votes; ready-made lists give what scores give."""
    from crosslens.values import Dataset

    random = np.random.default_rng(5)
    dataset = Dataset.of({f"i{image}": [f"c{image}-{n}" for n in range(1 + image % 3)] for image in range(8)})
    images, captions = len(dataset.image_ids), len(dataset.caption_ids)
    phi, scores = random.random((images, captions)), random.random((images, captions))
    metric = "SR[mine, 2, by-image, non-gt]@2"
    halves = evaluate(dataset, scores=scores, phi={"mine": phi}, metrics=metric, folds=2)
    for fold in range(2):
        rows = np.arange(4 * fold, 4 * fold + 4)
        columns = np.flatnonzero(np.isin(dataset.caption_image, rows))
        part = Captioned((dataset.caption_image[columns] - 4 * fold).tolist(), phi[np.ix_(rows, columns)].tolist(),
                         scores[np.ix_(rows, columns)].tolist())  # fmt: skip
        for direction, queries in (("i2t", rows), ("t2i", columns)):
            expected = [part.semantic_recall(direction, query, 2, 2, True) for query in range(len(queries))]
            assert halves[f"{direction}/SR[mine, m=2, non-gt, by-image]@2"].values[queries] == pytest.approx(expected)
    lists = {
        caption: dict(zip(dataset.image_ids, scores[:, column].tolist(), strict=True))
        for column, caption in enumerate(dataset.caption_ids)
    }
    from_lists = evaluate(dataset, run=lists, phi={"mine": phi}, metrics=metric, directions=["t2i"])
    from_scores = evaluate(dataset, scores=scores, phi={"mine": phi}, metrics=metric, directions=["t2i"])
    name = "t2i/SR[mine, m=2, non-gt, by-image]@2"
    np.testing.assert_allclose(from_lists[name].values, from_scores[name].values)

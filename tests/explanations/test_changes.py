"""Queries won and lost by a second run: against plain loops, by hand, and what there is to say of their hits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import InputError, MissingExtraError
from crosslens.explanations import compare_queries
from crosslens.similarity import prepare_dataset

pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")

SCENES = {
    "dog": ["a black dog runs", "the dog is black"],
    "cats": ["two white cats sleep", "two cats"],
    "boy": ["a boy with a red ball", "a boy holds a ball"],
    "tree": ["a tall tree", "a tree and a dog"],
}
DATASET = cl.Dataset.of(SCENES, name="scenes")


def run_of(scores: Any, name: str, dataset: cl.Dataset = DATASET, **options: Any) -> cl.Run:
    return cl.evaluate(
        dataset, scores=np.asarray(scores, np.float32), metrics="Hit@1", resamples=0, name=name, **options
    )


def random_runs(seed: int) -> tuple[np.ndarray, np.ndarray]:
    stream = np.random.default_rng(seed)
    return stream.random((4, 8)), stream.random((4, 8))


@pytest.mark.parametrize("direction", ["t2i", "i2t"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_agrees_with_plain_loops(direction: str, seed: int) -> None:
    matrices = random_runs(seed)
    changes = compare_queries(*(run_of(scores, name) for scores, name in zip(matrices, "ab", strict=True)), DATASET,
                              direction, permutations=200)  # fmt: skip
    ids = DATASET.caption_ids if direction == "t2i" else DATASET.image_ids
    items = DATASET.image_ids if direction == "t2i" else DATASET.caption_ids
    phi = prepare_dataset(DATASET).block(slice(None))
    expected: dict[str, list[tuple[int, str, float]]] = {}
    for row, query in enumerate(ids):
        for scores in matrices:
            query_scores = scores[:, row] if direction == "t2i" else scores[row]
            order = sorted(range(len(items)), key=lambda item: (-query_scores[item], item))
            right = {row // 2} if direction == "t2i" else {2 * row, 2 * row + 1}
            rank = 1 + min(order.index(item) for item in right)
            value = phi[order[0], row] if direction == "t2i" else phi[row, order[0]]
            expected.setdefault(query, []).append((rank, items[order[0]], float(value)))
    gains = {query: 1 / after[0] - 1 / before[0] for query, (before, after) in expected.items()}
    assert changes.queries == len(ids)
    assert changes.wins == sum(gain > 0 for gain in gains.values())
    assert changes.losses == sum(gain < 0 for gain in gains.values())
    assert changes.ranks.difference == pytest.approx(np.mean(list(gains.values())))
    before, after = (np.mean([sides[side][2] for sides in expected.values()]) for side in (0, 1))
    assert changes.phi_means == pytest.approx((before, after))
    assert changes.phi.difference == pytest.approx(after - before)
    won = sorted((query for query in gains if gains[query] > 0), key=lambda query: -gains[query])
    lost = sorted((query for query in gains if gains[query] < 0), key=lambda query: gains[query])
    assert [change.query for change in changes.won] == won
    assert [change.query for change in changes.lost] == lost
    for change in (*changes.won, *changes.lost):
        hits = [(hit.rank, hit.item, pytest.approx(hit.phi)) for hit in (change.first, change.second)]
        assert hits == expected[change.query]
        assert change.first.right == (change.first.rank == 1)
        assert not (change.second.right and change.second.causes)


def test_what_is_wrong_with_a_hit() -> None:
    """By hand: "two white cats sleep" retrieves the dog first, and the cats after."""
    before, after = np.eye(4).repeat(2, axis=1), np.eye(4).repeat(2, axis=1)
    before[0, 2], before[1, 2] = 2.0, 1.0
    after[2, 0] = 3.0  # "a black dog runs" then retrieves the boy
    changes = compare_queries(run_of(before, "a"), run_of(after, "b"), DATASET, "t2i", permutations=50)
    (won,), (lost,) = changes.won, changes.lost
    assert (won.query, won.text, won.image) == ("cats#0", "two white cats sleep", "cats")
    assert (won.first.item, won.first.rank, won.first.causes) == ("dog", 2, ("object",))
    assert won.first.wrong == ("object: cats",)
    assert (won.second.item, won.second.rank, won.second.causes, won.second.wrong) == ("cats", 1, (), ())
    assert (lost.query, lost.second.item, lost.second.wrong) == ("dog#0", "boy", ("object: dog",))
    assert changes.causes.to_dicts() == [{"cause": "object", "first": 1, "second": 1, "gone": 1, "new": 1}]
    assert changes.as_dict()["won"][0]["first"]["wrong"] == ["object: cats"]
    assert set(changes.images) == {"cats", "dog", "boy"}


def test_equal_runs_change_nothing() -> None:
    run = run_of(random_runs(5)[0], "a")
    changes = compare_queries(run, run, DATASET, permutations=20)
    assert (changes.wins, changes.losses, changes.won, changes.lost) == (0, 0, (), ())
    assert changes.ranks.p_value == 1
    assert all(row["first"] == row["second"] and not row["gone"] for row in changes.causes.to_dicts())


def test_as_many_queries_as_asked_for() -> None:
    matrices = random_runs(1)
    changes = compare_queries(run_of(matrices[0], "a"), run_of(matrices[1], "b"), DATASET, most=1, permutations=20)
    assert len(changes.won) == len(changes.lost) == 1
    assert changes.wins + changes.losses > 2


def test_runs_of_other_queries_are_refused() -> None:
    other_ids = cl.Dataset.of({f"{name}-2": texts for name, texts in SCENES.items()}, name="other")
    with pytest.raises(InputError):
        compare_queries(run_of(np.eye(4, 8), "a"), run_of(np.eye(4, 8), "b", other_ids), DATASET)


def test_without_a_parser_causes_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from crosslens.explanations import changes as module

    def missing(*arguments: Any, **options: Any) -> None:
        raise MissingExtraError("parsing", "spacy", "language")

    monkeypatch.setattr(module, "mentioned_concepts", missing)
    matrices = random_runs(2)
    changes = compare_queries(run_of(matrices[0], "a"), run_of(matrices[1], "b"), DATASET, permutations=20)
    assert changes.causes.is_empty()
    assert "left out" in changes.notes[0]
    assert changes.wins

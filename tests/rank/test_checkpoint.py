"""An interrupted pass goes on from its checkpoint and finds exactly what an uninterrupted one does."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from crosslens.rank import merged, parts, rank_both, rank_queries, scorer_of
from crosslens.storage import read_folder
from tests.rank.test_exactness import many, random_relevance
from tests.tables import rest_slow


class Interrupting:
    """Progress that stops the work after some steps."""

    def __init__(self, after: int) -> None:
        self.left, self.seen = after, 0
        self.notes = []

    def start(self, label: str, total: int) -> None:
        self.total = total

    def advance(self, steps: int = 1) -> None:
        self.seen += steps
        self.left -= steps
        if self.left < 0:
            raise KeyboardInterrupt

    def finish(self) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def checkpoints(monkeypatch):
    """A checkpoint after every few tiles."""
    monkeypatch.setattr(parts, "_WORK_BETWEEN_CHECKPOINTS", 1)
    monkeypatch.setattr(merged, "SECONDS_BETWEEN_CHECKPOINTS", 0)
    monkeypatch.setattr(merged, "MOST_TIME_FOR_CHECKPOINTS", 1e9)


@pytest.mark.parametrize("resume_threads", rest_slow([3, 1]))
def test_resume_equals_one_go(tmp_path, checkpoints, resume_threads):
    scorer = scorer_of(*many())
    relevance = random_relevance(np.random.default_rng(0), *scorer.shape, 0.02)
    whole = rank_both(scorer, relevance, tile=16)
    for after in (100, 200, 300):
        with pytest.raises(KeyboardInterrupt):
            rank_both(scorer, relevance, tile=16, threads=2, checkpoint=tmp_path / "c", progress=Interrupting(after))
    watching = Interrupting(10**9)
    resumed = rank_both(
        scorer, relevance, tile=16, threads=resume_threads, checkpoint=tmp_path / "c", progress=watching
    )
    assert watching.seen == watching.total
    assert [note.partition(" row")[0] for note in watching.notes] == ["ranking: resumed at"]
    for direction, ranking in whole.items():
        assert resumed[direction].fingerprint == ranking.fingerprint


def test_a_checkpoint_of_other_work_is_ignored(tmp_path, checkpoints):
    scorer, other_scorer = scorer_of(*many()), scorer_of(*many(seed=1))
    relevance = random_relevance(np.random.default_rng(0), *scorer.shape, 0.02)
    with pytest.raises(KeyboardInterrupt):
        rank_both(other_scorer, relevance, tile=16, checkpoint=tmp_path / "c", progress=Interrupting(150))
    assert (tmp_path / "c" / "header.json").exists()
    rankings = rank_both(scorer, relevance, tile=16, checkpoint=tmp_path / "c")
    assert rankings["i2t"].fingerprint == rank_both(scorer, relevance)["i2t"].fingerprint


@pytest.mark.parametrize(
    ("as_rows", "resume_threads"), rest_slow([(True, 3), (False, 1), (True, 1), (False, 3)], fast=2)
)
def test_one_direction_resumes(tmp_path, checkpoints, as_rows, resume_threads):
    scorer = scorer_of(*many())
    judged = random_relevance(np.random.default_rng(0), *scorer.shape, 0.02)
    relevance, name = (judged, "i2t") if as_rows else (judged.flip(), "t2i")
    rank = partial(rank_queries, scorer, relevance, name, as_rows=as_rows, tile=8)
    for after in (40, 70, 100):
        with pytest.raises(KeyboardInterrupt):
            rank(threads=2, checkpoint=tmp_path / "c", progress=Interrupting(after))
    _, stored, _ = read_folder(tmp_path / "c", "checkpoint")
    assert stored["done"].sum() >= 4
    watching = Interrupting(10**9)
    resumed = rank(threads=resume_threads, checkpoint=tmp_path / "c", progress=watching)
    assert watching.seen == watching.total
    assert len(watching.notes) == 1
    assert resumed.fingerprint == rank_both(scorer, judged)[name].fingerprint


def test_a_finished_direction_is_not_ranked_again(tmp_path, monkeypatch):
    scorer = scorer_of(*many())
    relevance = random_relevance(np.random.default_rng(0), *scorer.shape, 0.02)
    rank = partial(rank_queries, scorer, relevance, "i2t", as_rows=True, tile=16, checkpoint=tmp_path / "c")
    first = rank()
    monkeypatch.setattr(scorer, "tile", lambda rows, columns: pytest.fail("a tile was computed again"))
    assert rank().fingerprint == first.fingerprint
    with pytest.raises(pytest.fail.Exception):
        rank(depth=11)  # other work than the checkpoint's

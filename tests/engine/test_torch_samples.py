"""Samples of queries and whole evaluations with torch in tasks, interrupted and not: the same folders, byte by byte."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.engine import LocalEngine
from crosslens.rank import parts, rank_both, rank_queries, scorer_of
from tests.engine.stand_in import Recorded, StandInEngine
from tests.rank.test_checkpoint import Interrupting
from tests.rank.test_exactness import many, random_relevance
from tests.tables import rest_slow

pytest.importorskip("torch")

from crosslens.rank.merged import Blocks
from tests.engine.test_torch_tasks import checkpoints as checkpoints, small_tasks as small_tasks

ENGINES = {"numpy": None, "torch": None, "numpy in tasks": StandInEngine, "torch in tasks": StandInEngine}


def _sample(kind: str, stops_after: int | None = None, slots: int = 4) -> tuple[Any, str]:
    engine = ENGINES[kind]
    engine_used = LocalEngine() if engine is None else engine(slots, 0.0, stops_after)
    return engine_used, kind.partition(" ")[0]


@pytest.mark.parametrize(
    ("kind", "as_rows"),
    [
        pytest.param(kind, as_rows, marks=() if (number % 2 == 0) == as_rows else pytest.mark.slow)
        for number, kind in enumerate(ENGINES)
        for as_rows in (True, False)
    ],
)
def test_queries_of_one_direction(kind, as_rows, monkeypatch):
    monkeypatch.setattr(parts, "_FEWEST_QUERIES", 1)
    monkeypatch.setattr(parts, "TILE", 5)
    scorer = scorer_of(*many())
    judged = random_relevance(np.random.default_rng(0), *scorer.shape, 0.02)
    name = "i2t" if as_rows else "t2i"
    engine, backend = _sample(kind)
    with cl.use_engine(engine):
        ranked = rank_queries(
            scorer, judged if as_rows else judged.flip(), name, as_rows=as_rows, depth=7, backend=backend
        )
    assert ranked.fingerprint == rank_both(scorer, judged, depth=7)[name].fingerprint


@pytest.mark.parametrize("as_rows", rest_slow([True, False]))
@pytest.mark.parametrize("kind", rest_slow(["numpy in tasks", "torch in tasks"]))
def test_an_interrupted_sample_resumes_in_tasks(tmp_path, checkpoints, monkeypatch, kind, as_rows):
    monkeypatch.setattr(parts, "_FEWEST_QUERIES", 1)
    monkeypatch.setattr(parts, "TILE", 5)
    scorer = scorer_of(*many())
    judged = random_relevance(np.random.default_rng(0), *scorer.shape, 0.02)
    relevance, name = (judged, "i2t") if as_rows else (judged.flip(), "t2i")
    rank = partial(rank_queries, scorer, relevance, name, as_rows=as_rows, checkpoint=tmp_path / "c")
    ranks = {"numpy": "rank_part", "torch": "rank_product_part"}
    engine, backend = _sample(kind)
    with cl.use_engine(engine):
        rank(backend=backend, checkpoint=None)
    whole = engine.attempts[ranks[backend]]
    others = engine.results - whole
    engine, _ = _sample(kind, stops_after=others + 6)
    with pytest.raises(KeyboardInterrupt), cl.use_engine(engine):
        rank(backend=backend)
    engine, _ = _sample(kind)
    with cl.use_engine(engine):
        ranked = rank(backend=backend)
    assert ranked.fingerprint == rank_both(scorer, judged)[name].fingerprint
    tasks = [task for work, task in engine.taken if work == ranks[backend]]
    if backend == "torch":
        assert len(tasks) == whole - 6
    else:
        assert min(block.start for block in tasks) == 6 * (10 if as_rows else 30)
    engine, _ = _sample(kind)
    with cl.use_engine(engine):  # the other direction may be interrupted, when this one is finished
        assert rank(backend=backend).fingerprint == ranked.fingerprint
    assert engine.attempts[ranks[backend]] == 0


@pytest.mark.parametrize("as_rows", rest_slow([False, True]))
def test_an_interrupted_sample_resumes_on_devices(tmp_path, checkpoints, monkeypatch, as_rows):
    monkeypatch.setattr("crosslens.rank.gpu.block_ranking.plan_blocks", lambda shape, *_: Blocks(shape, (50, 60), 1))
    scorer = scorer_of(*many())
    judged = random_relevance(np.random.default_rng(0), *scorer.shape, 0.02)
    relevance, name = (judged, "i2t") if as_rows else (judged.flip(), "t2i")
    rank = partial(
        rank_queries, scorer, relevance, name, as_rows=as_rows, checkpoint=tmp_path / "c", backend="torch", device="cpu"
    )
    with pytest.raises(KeyboardInterrupt):
        rank(progress=Interrupting(1050))
    progress = Recorded()
    ranked = rank(progress=progress)
    assert ranked.fingerprint == rank_both(scorer, judged)[name].fingerprint
    assert progress.steps["ranking"] == 2100
    monkeypatch.setattr(
        "crosslens.rank.gpu.block_ranking.rank_pair", lambda *_: pytest.fail("blocks were ranked again")
    )
    assert rank().fingerprint == ranked.fingerprint


# Evaluations


def world(images: int = 60) -> tuple[cl.Dataset, dict[str, Any]]:
    rng = np.random.default_rng(0)
    dataset = cl.Dataset.of({f"i{n}": [f"text {n} {m}" for m in range(3)] for n in range(images)})
    pictures = rng.standard_normal((images, 8))
    texts = pictures.repeat(3, 0) + 0.8 * rng.standard_normal((images * 3, 8))
    texts[7:11] = texts[0]  # copies
    return dataset, {"images": pictures.astype(np.float16), "captions": texts.astype(np.float16)}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


@pytest.mark.parametrize("queries", rest_slow([40, None]))
def test_run_folders_are_the_same_byte_by_byte(tmp_path, queries):
    dataset, vectors = world()
    runs, engine = {}, StandInEngine()
    for name, engine_used in (("local", LocalEngine()), ("tasks", engine)):
        with cl.use_engine(engine_used):
            runs[name] = cl.evaluate(
                dataset, **vectors, queries=queries, backend="torch", output=tmp_path / name / "run"
            )
    assert engine.attempts["rank_product_part"]
    assert contents(tmp_path / "tasks") == contents(tmp_path / "local")
    plain = cl.evaluate(dataset, **vectors, queries=queries)
    assert runs["tasks"].fingerprint == runs["local"].fingerprint
    for name, values in plain.values.items():
        tasks = runs["tasks"].values[name]
        np.testing.assert_array_equal(values.values, tasks.values)
        assert (values.mean, values.interval) == (tasks.mean, tasks.interval)
    for direction, ranking in plain.rankings.items():
        assert ranking.fingerprint == runs["tasks"].rankings[direction].fingerprint


def ranked_parts(engine: StandInEngine) -> int:
    return sum(work.startswith("rank_") for work, _ in engine.taken)


@pytest.mark.slow  # a sample in tasks resumes above, and an evaluation of one in test_kill
@pytest.mark.parametrize("kind", ["numpy in tasks", "torch in tasks"])
def test_an_interrupted_evaluation_of_a_sample_resumes(tmp_path, checkpoints, monkeypatch, kind):
    """Killed in the second direction: the first is not ranked again, and the folder is that of a run in one go."""
    monkeypatch.setattr(parts, "_FEWEST_QUERIES", 1)
    monkeypatch.setattr(parts, "TILE", 5)
    dataset, vectors = world()
    engine, backend = _sample(kind)
    evaluate = partial(cl.evaluate, dataset, **vectors, queries=40, backend=backend)
    evaluate(output=tmp_path / "local" / "run")
    with cl.use_engine(engine):
        evaluate(directions="i2t")
        first, alone = engine.results, ranked_parts(engine)
        evaluate()
    whole, both = engine.results - first, ranked_parts(engine) - alone
    engine, _ = _sample(kind, stops_after=whole - 3)
    with pytest.raises(KeyboardInterrupt), cl.use_engine(engine):
        evaluate(output=tmp_path / "tasks" / "run")
    engine, _ = _sample(kind)
    with cl.use_engine(engine):
        evaluate(output=tmp_path / "tasks" / "run")
    assert 0 < ranked_parts(engine) < both - alone, "neither the first direction nor the first parts of the second"
    assert contents(tmp_path / "tasks") == contents(tmp_path / "local")

"""The folder of a run: loaded, resumed, and never replaced unasked."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.core import ConflictError, InputError
from crosslens.storage import Workspace
from tests.pipeline.small_world import world


def test_saved_runs_load_and_group(tmp_path):
    dataset, pictures, texts = world()
    run = cl.evaluate(dataset, images=pictures, captions=texts, output=tmp_path / "run")
    again = cl.Run.load(tmp_path / "run")
    assert again.fingerprint == run.fingerprint
    assert again.rankings["t2i"].fingerprint == run.rankings["t2i"].fingerprint
    assert {name: values.interval for name, values in again.values.items()} == {
        name: values.interval for name, values in run.values.items()
    }
    queries = pl.read_parquet(tmp_path / "run" / "queries.parquet")
    assert set(queries.filter(direction="t2i")["category"]) == {"cat", "dog", "zebra"}
    content = json.loads((tmp_path / "run" / "run.json").read_text())
    assert content["provenance"]["dataset"]["fingerprint"] == dataset.fingerprint


def test_a_run_is_resumed_and_never_replaced_unasked(tmp_path):
    dataset, pictures, texts = world()
    first = cl.evaluate(dataset, images=pictures, captions=texts, output=tmp_path / "run")
    written = (tmp_path / "run" / "run.json").stat().st_mtime_ns
    assert (
        cl.evaluate(dataset, images=pictures, captions=texts, output=tmp_path / "run").fingerprint == first.fingerprint
    )
    assert (tmp_path / "run" / "run.json").stat().st_mtime_ns == written
    with pytest.raises(
        ConflictError,
        match="already contains a different run\n  fix: choose another output, or pass overwrite=True",
    ):
        cl.evaluate(dataset, images=pictures, captions=texts, seed=1, output=tmp_path / "run")
    changed = cl.evaluate(dataset, images=pictures, captions=-texts, output=tmp_path / "run", overwrite=True)
    assert cl.Run.load(tmp_path / "run").fingerprint == changed.fingerprint != first.fingerprint
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("keep me")
    with pytest.raises(ConflictError, match="is not a run"):
        cl.evaluate(dataset, images=pictures, captions=texts, output=tmp_path / "letters", overwrite=True)
    assert (tmp_path / "letters" / "dear.txt").read_text() == "keep me"


def test_a_run_is_replaced_only_by_a_complete_one(tmp_path):
    dataset, pictures, texts = world()
    old = cl.evaluate(dataset, images=pictures, captions=texts, output=tmp_path / "run")
    broken = np.full((len(pictures), len(texts)), np.nan)
    with pytest.raises(InputError, match="score nan"):
        cl.evaluate(dataset, scores=broken, output=tmp_path / "run", overwrite=True)
    assert cl.Run.load(tmp_path / "run").fingerprint == old.fingerprint
    new = cl.evaluate(dataset, images=pictures, captions=-texts, output=tmp_path / "run", overwrite=True)
    assert cl.Run.load(tmp_path / "run").fingerprint == new.fingerprint
    assert cl.Run.load(tmp_path / "run").name == "run"
    assert [part.name for part in tmp_path.iterdir()] == ["run"]
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(ConflictError, match=r"also holds notes\.txt"):
        cl.evaluate(dataset, images=pictures, captions=texts, output=tmp_path / "run", overwrite=True)
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"


def test_unfinished_work_of_another_command_is_replaced(tmp_path):
    dataset, pictures, texts = world()
    broken = np.full((len(pictures), len(texts)), np.nan)
    with pytest.raises(InputError, match="score nan"):
        cl.evaluate(dataset, scores=broken, output=tmp_path / "run")
    assert not list(tmp_path.iterdir()), "there is nothing to resume"
    run = cl.evaluate(dataset, scores=np.nan_to_num(broken), output=tmp_path / "run")
    assert cl.Run.load(tmp_path / "run").fingerprint == run.fingerprint


def test_saving_over_another_run_is_a_conflict(tmp_path):
    dataset, pictures, texts = world()
    first, second = (cl.evaluate(dataset, images=pictures, captions=sign * texts, resamples=20) for sign in (1, -1))
    first.save(tmp_path / "run")
    first.save(tmp_path / "run")
    with pytest.raises(ConflictError):
        second.save(tmp_path / "run")
    second.save(tmp_path / "run", overwrite=True)
    again = cl.Run.load(tmp_path / "run")
    assert again.rankings["i2t"].fingerprint == second.rankings["i2t"].fingerprint
    stored, kept = (cl.compare(run, first, permutations=200) for run in (tmp_path / "run", second))
    assert str(stored) == str(kept).replace(second.name, again.name)


def test_columns_named_like_a_metric_are_kept(tmp_path):
    dataset = cl.Dataset.of({"a": ["x"], "b": ["y"]}, images={"Hit@1": ["u", "v"], "query": ["w", "z"]})
    run = cl.evaluate(dataset, scores=np.eye(2), metrics="Hit@1", output=tmp_path / "run")
    queries = cl.Run.load(tmp_path / "run").queries()
    assert queries.filter(direction="i2t")["Hit@1_"].to_list() == ["u", "v"]
    assert queries.filter(direction="i2t")["Hit@1"].to_list() == run["i2t/Hit@1"].values.tolist()


def test_an_unfinished_run_resumes(tmp_path, monkeypatch):
    dataset, pictures, texts = world()
    whole = cl.evaluate(dataset, images=pictures, captions=texts)
    import crosslens.pipeline.evaluations.evaluation as module

    with monkeypatch.context() as patch:
        patch.setattr(module, "measure", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            cl.evaluate(dataset, images=pictures, captions=texts, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    Workspace(tmp_path / "run").beside("checkpoint").mkdir()  # as a kill right after ranking leaves it
    with pytest.raises(InputError, match=r"no run\.json here"):
        cl.Run.load(tmp_path / "run")
    from crosslens.pipeline.evaluations import rankers

    monkeypatch.setattr(rankers, "rank_both", lambda *a, **k: pytest.fail("ranked again"))
    assert (
        cl.evaluate(dataset, images=pictures, captions=texts, output=tmp_path / "run").fingerprint == whole.fingerprint
    )
    assert sorted(part.name for part in (tmp_path / "run").iterdir()) == [
        "queries.parquet",
        "ranking-i2t",
        "ranking-t2i",
        "run.json",
    ]
    assert [part.name for part in tmp_path.iterdir()] == ["run"]

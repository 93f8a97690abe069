"""``crosslens sweep``: its figures against plain ones, interruptions, processes, failures, and what is printed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

pytest.importorskip("torch")

import crosslens as cl
from crosslens.core import ConflictError
from crosslens.train import LOSSES, Sweep, plan_sweep, run_sweep
from crosslens.train.sweep import running
from crosslens.train.training import Training
from tests.commands import Call as Call, call as call

from .conftest import SWEEP_SETTINGS as SETTINGS

BROKEN = '''
from crosslens.train import LOSSES

@LOSSES.register("broken")
def broken(*, times: float = 1.0):
    """Not a number from the first step on.

    times: changes nothing
    """
    return lambda batch: batch.scores.sum() * float("nan")
'''


@pytest.fixture(scope="module")
def home(sweep_home: Path) -> Path:
    return sweep_home


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[Path]:
    """A plugin with a loss, which is unregistered afterwards."""
    (tmp_path / "broken.py").write_text(BROKEN)
    yield tmp_path / "broken.py"
    LOSSES._entries.pop("broken", None)


def finished(home: Path, **options: Any) -> Sweep:
    plan = plan_sweep(home / "small.toml", home / "data", SETTINGS, seeds=3, device="cpu")
    return run_sweep(plan, home / "finished", **options)


def words(home: Path, output: Path, *more: str | Path, settings: list[str] = SETTINGS, seeds: str = "3") -> list[Any]:
    return ["sweep", home / "small.toml", "--data", home / "data", "--set", *settings, "--seeds", seeds, "--device",
            "cpu", "-o", output, *more]  # fmt: skip


@pytest.fixture(scope="module")
def whole(home: Path) -> Sweep:
    return finished(home)


@pytest.fixture
def copy(home: Path, tmp_path: Path) -> Path:
    """A copy of the finished sweep, to be changed."""
    return Path(shutil.copytree(home / "finished", tmp_path / "sweep"))


# Figures


def test_figures_by_plain_reading(home: Path, whole: Sweep) -> None:
    """The table from the folders alone: JSON headers, and scipy's own functions."""
    sweep = whole
    values: dict[tuple[str, str], list[float]] = {}
    for loss in ("triplet", "sam-random"):
        for fraction in ("0.25", "1"):
            folders = [home / "finished" / f"loss={loss},fraction={fraction}" / f"seed-{seed}" for seed in range(3)]
            headers = [json.loads((folder / "header.json").read_text()) for folder in folders]
            values[loss, fraction] = [header["test"]["Rsum"] for header in headers]
            row = next(row for row in sweep.rows if list(row.combination.values.values()) == [loss, fraction])
            figure = row.test["Rsum"]
            assert list(figure.values.values()) == values[loss, fraction]
            expected = stats.t.interval(0.95, 2, np.mean(values[loss, fraction]), stats.sem(values[loss, fraction]))
            assert figure.mean.interval == pytest.approx(expected)
            best = [max(entry["value"] for entry in header["history"]) for header in headers]
            assert list(row.validation.values.values()) == best
    raw = []
    for fraction in ("0.25", "1"):
        row = next(row for row in sweep.rows if list(row.combination.values.values()) == ["sam-random", fraction])
        difference = row.test["Rsum"].difference
        assert difference is not None
        expected_test = stats.ttest_rel(values["sam-random", fraction], values["triplet", fraction])
        assert difference.over_seeds.p_value == pytest.approx(expected_test.pvalue)
        assert difference.over_seeds.low == pytest.approx(expected_test.confidence_interval().low)
        assert difference.over_seeds.smallest_p == 0.25
        raw.append((expected_test.pvalue, difference.adjusted_p))
    small, large = sorted(raw)
    assert small[1] == pytest.approx(min(1, 2 * small[0]))
    assert large[1] == pytest.approx(max(large[0], small[1]))


def test_the_test_over_queries_by_plain_reading(home: Path) -> None:
    """The mean over seeds of the queries' differences, from the stored tables."""
    row = finished(home, metrics="i2t/Hit@5").rows[-1]
    difference = row.test["i2t/Hit@5"].difference
    assert difference is not None
    assert difference.over_queries is not None
    differences = []
    for seed in range(3):
        tables = [
            pl.read_parquet(home / "finished" / f"loss={loss},fraction=1" / f"seed-{seed}" / "test" / "queries.parquet")
            .filter(pl.col("direction") == "i2t")["Hit@5"].to_numpy()
            for loss in ("sam-random", "triplet")
        ]  # fmt: skip
        differences.append(tables[0] - tables[1])
    means = np.mean(differences, axis=0)
    assert difference.over_queries.difference == pytest.approx(means.mean())
    assert difference.over_queries.difference == pytest.approx(difference.over_seeds.difference)
    flips = np.random.default_rng(0).choice([-1, 1], (20_000, len(means)))
    expected = np.mean(np.abs(flips @ means) >= abs(means.sum()) - 1e-9)
    assert difference.over_queries.p_value == pytest.approx(expected, abs=0.02)


def test_one_seed_over_queries_is_what_compare_says(home: Path) -> None:
    plan = plan_sweep(home / "small.toml", home / "data", SETTINGS, seeds=1, device="cpu")
    difference = run_sweep(plan, home / "finished").rows[-1].test["Rsum"].difference
    assert difference is not None
    assert difference.over_queries is not None
    runs = [home / "finished" / f"loss={loss},fraction=1" / "seed-0" / "test" for loss in ("triplet", "sam-random")]
    (result,) = cl.compare(*runs, metrics="Rsum").results
    assert difference.over_queries.p_value == result.p_value
    assert difference.over_queries.difference == pytest.approx(result.difference)
    assert np.isnan(difference.over_seeds.p_value)


def test_other_metrics_come_from_the_stored_rankings(home: Path) -> None:
    sweep = finished(home, metrics="t2i/MRR MedR")
    assert sweep.metrics == ("t2i/MRR", "i2t/MedR", "t2i/MedR")
    folder = home / "finished" / "loss=triplet,fraction=1" / "seed-0" / "test"
    ranking = cl.Run.load(folder).rankings["t2i"]
    ranks = [ranking.above[start] + 1 for start in ranking.offsets[:-1]]  # a caption has one image
    assert sweep.rows[1].test["t2i/MRR"].values[0] == pytest.approx(np.mean([1 / rank for rank in ranks]))
    assert sweep.rows[2].test["i2t/MedR"].difference.over_queries is None  # type: ignore[union-attr]


GRADED = ("i2t/NCS[cider]@5", "t2i/NCS[cider]@5")


def test_graded_metrics_are_those_of_the_cards(home: Path, copy: Path) -> None:
    """Of trainings that were finished without them, which are not trained again, and of new ones."""
    weights = {file: file.read_bytes() for file in copy.glob("*/seed-0/weights.safetensors")}
    settings = ["loss=triplet,sam-random", "fraction=0.25"]
    plan = plan_sweep(home / "small.toml", home / "data", settings, seeds="0,7", device="cpu")
    sweep = run_sweep(plan, copy, metrics="Rsum NCS[cider]@5")
    assert sweep.metrics == ("Rsum", *GRADED)
    assert weights == {file: file.read_bytes() for file in weights}
    for outcome in sweep.outcomes:
        training, row = outcome.training, sweep.rows[outcome.training.combination]
        card = json.loads((copy / training.folder / "header.json").read_text())
        table = pl.read_parquet(copy / training.folder / "test" / "queries.parquet")
        for name in GRADED:
            direction, _, metric = name.partition("/")
            queries = table.filter(pl.col("direction") == direction)[metric].to_numpy()
            assert row.test[name].values[training.seed] == card["test"][name] == pytest.approx(queries.mean())
    difference = sweep.rows[-1].test[GRADED[0]].difference
    assert difference is not None
    assert difference.over_queries is not None
    assert difference.over_queries.difference == pytest.approx(difference.over_seeds.difference)


def test_a_finished_training_is_measured_again_but_not_trained(
    home: Path, copy: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    settings: Any = {"settings": ["loss=triplet", "fraction=0.25"], "seeds": "1"}
    graded = ("--metrics", "Rsum NCS[cider]@5")
    listed = call(*words(home, copy, "--dry-run", *graded, **settings))
    assert listed.out.count("to be measured again") == 1
    monkeypatch.setattr(Training, "run", None)
    first = call(*words(home, copy, *graded, "--json", **settings))
    assert first.code == 0, first.err
    assert call(*words(home, copy, "--metrics", "NCS[bleu]@3", **settings)).code == 0
    monkeypatch.setattr(running, "train_model", None)
    again = call(*words(home, copy, *graded, "--json", **settings))
    assert again.code == 0, "what was measured first is still there"
    assert again.json["rows"] == first.json["rows"]


# Repetition and interruption


def test_a_finished_sweep_trains_nothing(home: Path, whole: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "train_model", None)
    assert same(finished(home), whole)


def same(first: Sweep, second: Sweep) -> bool:
    return json.dumps(first.as_dict()) == json.dumps(second.as_dict())  # NaN is not equal to itself


@pytest.mark.slow  # a seed is added to a sweep with graded metrics above
def test_more_seeds_and_values_add_to_a_sweep(home: Path, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = list[str]()
    train = running.train_model

    def watched(recipe: Any, data: Any, folder: Path, **options: Any) -> Any:
        trained.append(str(folder.relative_to(copy)))
        return train(recipe, data, folder, **options)

    monkeypatch.setattr(running, "train_model", watched)
    settings = ["loss=triplet,sam-random", "fraction=0.25"]
    plan = plan_sweep(home / "small.toml", home / "data", settings, seeds="0,5", device="cpu")
    assert run_sweep(plan, copy).rows[0].n == 2
    assert trained == ["loss=triplet,fraction=0.25/seed-5", "loss=sam-random,fraction=0.25/seed-5"]


def test_what_is_in_the_way_is_refused(home: Path, copy: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    plan = plan_sweep(home / "small.toml", home / "data", SETTINGS, seeds=3, device="cpu")
    with pytest.raises(ConflictError, match="is not empty and is not a sweep"):
        run_sweep(plan, tmp_path / "notes")
    (tmp_path / "other.toml").write_text((home / "small.toml").read_text().replace("epochs = 2", "epochs = 1"))
    more_seeds = plan_sweep(tmp_path / "other.toml", home / "data", SETTINGS, seeds=4, device="cpu")
    with pytest.raises(ConflictError, match="already contains a different trained model"):
        run_sweep(more_seeds, copy)
    assert not list(copy.glob("*/seed-3")), "found before the first training"
    shorter = plan_sweep(
        tmp_path / "other.toml", home / "data", ["loss=triplet", "fraction=0.25"], seeds=1, device="cpu"
    )
    (row,) = run_sweep(shorter, copy, overwrite=True).rows
    assert row.n == 1


FEWER: Any = {"settings": ["loss=triplet,sam-random", "fraction=0.25"], "seeds": "2"}


def process(home: Path, output: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "crosslens", *map(str, words(home, output, *more, **FEWER))]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ))


def content(sweep: Path) -> dict[str, bytes]:
    """Every file of a sweep of fewer trainings; but for where the data lie, seen from a model's folder."""
    files = {str(file.relative_to(sweep)): file for file in sorted(sweep.rglob("*")) if file.is_file()}
    kept = re.compile(r"[^/]*|loss=[\w-]+,fraction=0.25/\.?seed-[01][./].*")
    return {
        name: re.sub(rb'"(folder|checksum)": "[^"]*"', b"", file.read_bytes())
        if name.endswith("/header.json")
        else file.read_bytes()
        for name, file in files.items()
        if kept.fullmatch(name)
    }


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_killed_sweep_goes_on_to_the_same_table(
    call: Call, home: Path, copy: Path, tmp_path: Path, jobs: str
) -> None:
    """Killed twice, then finished, with one process or two: weights, runs, pages and tables are the same bytes."""
    for ended in (1, 2):
        with process(home, tmp_path / "killed", "--jobs", jobs) as running_sweep:
            while len(list((tmp_path / "killed").glob("*/seed-*"))) < ended:
                assert running_sweep.poll() is None
                time.sleep(0.01)
            running_sweep.send_signal(signal.SIGKILL)
    assert len(list((tmp_path / "killed").glob("*/seed-*"))) < 4
    assert call(*words(home, tmp_path / "killed", "--jobs", jobs, **FEWER)).code == 0
    assert call(*words(home, copy, **FEWER)).code == 0
    whole = content(copy)
    assert len(whole) > 100
    assert content(tmp_path / "killed") == whole


@pytest.mark.slow
def test_side_by_side_is_the_same_as_one_after_the_other(home: Path, copy: Path, tmp_path: Path, call: Call) -> None:
    assert call(*words(home, tmp_path / "two", "--jobs", "2", **FEWER)).code == 0
    assert call(*words(home, copy, **FEWER)).code == 0
    assert content(tmp_path / "two") == content(copy)


@pytest.mark.slow
def test_the_processes_of_an_interrupted_sweep_end(home: Path, tmp_path: Path) -> None:
    with process(home, tmp_path / "stopped", "--jobs", "2") as running_sweep:
        while not list((tmp_path / "stopped").glob("*/seed-*")):
            time.sleep(0.01)
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(running_sweep.pid)], capture_output=True, text=True, check=False
        ).stdout.split()  # fmt: skip
        running_sweep.send_signal(signal.SIGINT)
        assert running_sweep.wait(30) in (130, -signal.SIGINT)
    assert len(children) >= 2
    until = time.monotonic() + 20
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < until
        time.sleep(0.1)


# Failures


def test_a_failing_training_does_not_stop_the_others(call: Call, home: Path, copy: Path, broken: Path) -> None:
    settings = ["loss=triplet,broken,sam-random", "fraction=0.25"]
    more = ("--plugin", broken)
    outcome = call(*words(home, copy, *more, settings=settings, seeds="2"))
    assert outcome.code == 3
    assert "loss=broken, fraction=0.25, seed 1: the loss is nan at step 1" in " ".join(outcome.out.split())
    assert "0 of 2" in outcome.out
    table = call(*words(home, copy, *more, "--json", settings=settings, seeds="2"))
    assert table.code == 3
    assert "the loss is nan" in (copy / "sweep.html").read_text()
    rows = {row["settings"]["loss"]: row for row in table.json["rows"]}
    assert (rows["broken"]["n"], rows["broken"]["failed"], rows["broken"]["test"]) == (0, 2, {})
    without = call(
        *words(home, copy, "--json", settings=["loss=triplet,sam-random", "fraction=0.25"], seeds="2")
    )  # fmt: skip
    assert without.code == 0
    assert [rows["triplet"], rows["sam-random"]] == without.json["rows"]
    failures = [training["failure"] for training in table.json["trainings"] if training["failure"]]
    assert len(failures) == 2


@pytest.mark.slow
def test_a_loss_of_a_plugin_fails_in_other_processes_too(call: Call, home: Path, tmp_path: Path, broken: Path) -> None:
    settings = ["loss=triplet,broken", "fraction=0.25"]
    more = ("--plugin", broken, "--jobs", "2", "--json")
    outcome = call(*words(home, tmp_path / "sweep", *more, settings=settings, seeds="2"))
    assert outcome.code == 3
    assert [row["n"] for row in outcome.json["rows"]] == [2, 0]


@pytest.mark.slow  # failures are above
def test_all_failures_of_one_seed_leave_pairs_of_the_others(
    home: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = running.train_model

    def failing(recipe: Any, data: Any, folder: Path, **options: Any) -> Any:
        if recipe.settings.seed == 4 and len(recipe.losses) == 2:
            raise MemoryError("too large")
        return train(recipe, data, folder, **options)

    monkeypatch.setattr(running, "train_model", failing)
    plan = plan_sweep(
        home / "small.toml", home / "data", ["loss=triplet,sam-random", "fraction=0.25"], seeds="0,1,4", device="cpu"
    )
    sweep = run_sweep(plan, copy)
    assert [row.n for row in sweep.rows] == [3, 2]
    difference = sweep.rows[1].test["Rsum"].difference
    assert difference is not None
    assert difference.over_seeds.n == 2
    assert sweep.failures[0].failure.problem.startswith("MemoryError")  # type: ignore[union-attr]
    assert "2 of 3" in str(sweep)

"""Plans: rates found again from runs that have them, bytes against a real run folder, and what is not measured."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.core import InputError, UnknownNameError, UsageError
from crosslens.planning import (
    DeviceRates,
    MeasuredRun,
    add_rates,
    calibrate_device,
    calibration,
    plan_evaluation,
    read_rates,
)
from tests.engine.stand_in import StandInEngine
from tests.tables import rest_slow

COSTS = (0.01, 2e-9, 3e-11, 4e-6, 5e-9)
"""Once, per score, per product, per item, per number read."""


def seconds(images: float, captions: float, dim: int) -> float:
    scores, items = images * captions, images + captions
    return float(np.dot(COSTS, (1, scores, scores * dim, items, items * dim)))


def machine(name: str = "cpu", memory: int | None = None) -> DeviceRates:
    sizes = [(500, 64), (1000, 512), (2000, 64), (2000, 256), (1500, 1024), (4000, 64), (3000, 512)]
    ranking = tuple(MeasuredRun(n, 5 * n, d, seconds(n, 5 * n, d)) for n, d in sizes)
    rest = tuple(MeasuredRun(n, 5 * n, d, 0.05 + 6 * n * 1e-5) for n, d in sizes)
    held = tuple(MeasuredRun(n, 5 * n, 16, 2e8 + 6 * n * (1500 + 64)) for n in (1000, 16_000))
    return DeviceRates(name, "made up", memory, ranking, rest, held)


RATES = {"cpu": machine(), "gpu": machine("gpu", 10**9), "new": DeviceRates("new", "unknown", None, (), ())}


@given(st.integers(10**3, 10**9), st.integers(10**3, 10**9), st.sampled_from([64, 384, 768, 4096]))
def test_rates_are_found_again(images: int, captions: int, dim: int) -> None:
    plan = plan_evaluation(images, captions, dim, rates=RATES)
    assert plan.ranking_seconds == pytest.approx(seconds(images, captions, dim), rel=0.01)
    assert plan.evaluation_seconds == pytest.approx(0.05 + 1e-5 * (images + captions), rel=0.01)
    assert plan.host_memory_bytes == pytest.approx(2e8 + 1500 * (images + captions), rel=0.01)
    assert plan.seconds >= plan.ranking_seconds + plan.evaluation_seconds


def test_noisy_runs_give_rates_that_are_not_negative() -> None:
    random = np.random.default_rng(0)
    noisy = tuple(
        MeasuredRun(run.images, run.captions, run.dim, run.amount * random.uniform(0.8, 1.25))
        for run in machine().ranking
    )
    rates = {"cpu": DeviceRates("cpu", "noisy", None, noisy, machine().evaluation)}
    times = [plan_evaluation(n, 5 * n, 512, rates=rates).ranking_seconds for n in (10**3, 10**5, 10**7)]
    assert times == sorted(times)
    assert times[0] > 0


def test_nodes_share_the_longer_side() -> None:
    alone, many = (plan_evaluation(10**6, 10**6, 512, nodes=nodes, rates=RATES) for nodes in (1, 10))
    assert many.ranking_seconds == pytest.approx(alone.ranking_seconds / 10, rel=0.2)
    assert many.evaluation_seconds == alone.evaluation_seconds, "on one machine"
    assert alone.network_seconds == 0
    item = 512 * 2
    assert alone.vector_bytes == 2 * 10**6 * item
    assert many.read_bytes == 10**6 * item + 10 * 10**6 * item, "every node reads all captions"


def test_no_more_nodes_work_than_there_are_tasks() -> None:
    few, many = (plan_evaluation(10**6, 10**6, 512, nodes=nodes, rates=RATES) for nodes in (782, 10**4))
    assert few.tasks == many.tasks == math.ceil(10**6 / 1280)
    assert many.ranking_seconds == pytest.approx(few.ranking_seconds, rel=0.2)


@pytest.mark.parametrize("queries", rest_slow([50, None]))
def test_planned_tasks_and_results_are_those_of_a_ranking(queries: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks for four devices, and what they return, against the plan for four nodes."""
    pytest.importorskip("torch")
    from crosslens.rank.gpu import blocks

    for kind in ("cuda", "cpu"):
        monkeypatch.setitem(blocks.LEAST_WORK, kind, 1)
    sizes = []

    class Measured(StandInEngine):
        def run(self, work: Any, shared: Any, tasks: Any, **options: Any) -> Iterator[Any]:
            for result in super().run(work, shared, tasks, **options):
                if work.__name__ == "rank_product_part":
                    # Counts take as many bytes as they need, and in a large gallery four.
                    sizes.append(
                        sum(
                            lists.items.nbytes + lists.scores.nbytes + 4 * lists.counts.size
                            for lists in result.values()
                        )
                    )
                yield result

    random = np.random.default_rng(0)
    dataset = cl.Dataset.of({f"i{n}": [f"{n} {m}" for m in range(5)] for n in range(200)})
    images, captions = (random.standard_normal((n, 8)).astype(np.float32) for n in (200, 1000))
    with cl.use_engine(Measured(4, 0.0)):
        cl.evaluate(dataset, images=images, captions=captions, queries=queries, backend="torch", resamples=0)
    plan = plan_evaluation(200, 1000, 8, device="gpu", nodes=4, queries=queries, rates=RATES)
    assert len(sizes) == plan.tasks
    assert sum(sizes) == pytest.approx(plan.result_bytes, rel=0.01)
    assert any("--engine ray --backend torch" in note and f"{plan.tasks} tasks" in note for note in plan.notes)


def test_images_that_do_not_fit_are_read_past_in_parts() -> None:
    plan = plan_evaluation(10**6, 10**6, 512, device="gpu", precision="float32", rates=RATES)
    item = 512 * 4
    # Half of the memory is for buffers, three quarters of the rest for images: float32, rounded, and their lists.
    held = int(0.75 * 0.5 * 10**9 / (12 * 512 + 2560 + 10 * 224 + 44 + 8))
    assert plan.passes == math.ceil(10**6 / held) == 30
    assert plan.read_bytes == 10**6 * item + 30 * 10**6 * item
    assert plan.node_memory_bytes == 10**9
    assert any("ranked in 30 blocks" in note for note in plan.notes)


def test_a_sample_of_queries_costs_in_proportion() -> None:
    plan = plan_evaluation(10**6, 5 * 10**6, 512, queries=1000, rates=RATES)
    assert plan.scores == 1000 * 5 * 10**6 + 1000 * 10**6
    assert plan.ranking_seconds < plan_evaluation(10**6, 5 * 10**6, 512, rates=RATES).ranking_seconds / 100


def test_what_takes_longest_is_named() -> None:
    assert plan_evaluation(10**6, 10**6, 512, rates=RATES).limit == "compute"
    assert plan_evaluation(10**6, 10**6, 512, storage=1e-9, rates=RATES).limit == "storage"
    assert plan_evaluation(10**6, 10**6, 512, nodes=4, network=1e-9, rates=RATES).limit == "network"
    assert (
        plan_evaluation(10**7, 10**3, 512, nodes=10**4, network=1e9, rates=RATES).limit
        == "metrics and files on one machine"
    )


def test_a_device_that_was_not_measured_has_no_time() -> None:
    plan = plan_evaluation(10**9, 10**9, 768, device="new", nodes=64, rates=RATES)
    assert plan.ranking_seconds is None
    assert plan.seconds is None
    assert plan.vector_bytes == 2 * 10**9 * 768 * 2
    assert "have not been measured" in plan.notes[0]
    assert json.loads(json.dumps(plan.as_dict()))["seconds"] is None


def test_far_beyond_what_was_measured_is_said() -> None:
    assert any("order of magnitude" in note for note in plan_evaluation(10**7, 10**7, 64, rates=RATES).notes)
    assert not any("order of magnitude" in note for note in plan_evaluation(10**4, 10**4, 64, rates=RATES).notes)


def test_planned_bytes_are_those_of_a_run_folder(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    dataset = cl.Dataset.of({f"image {n:05}": [f"{n} {m}" for m in range(5)] for n in range(1500)})
    images, captions = (random.standard_normal((n, 8)).astype(np.float32) for n in (1500, 7500))
    cl.evaluate(dataset, images=images, captions=captions, output=tmp_path / "run", resamples=10)
    written = sum(file.stat().st_size for file in (tmp_path / "run").rglob("*") if file.is_file())
    assert plan_evaluation(1500, 7500, 8, rates=RATES).run_bytes == pytest.approx(written, rel=0.25)


# The files of rates


def test_packaged_rates() -> None:
    devices = read_rates()
    assert devices["cpu"].measured
    assert "h200" in devices
    plan = plan_evaluation(5000, 25_000, 512, rates=devices)
    assert 0.1 < plan.seconds < 100


def test_own_rates_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path))
    entry = {"about": "a fast one", "memory_bytes": 10**9, "evaluation": [],
             "ranking": [{"images": 10, "captions": 50, "dim": 8, "seconds": 1}]}  # fmt: skip
    file = add_rates("h200", entry)
    assert file.parent == tmp_path
    add_rates("other", entry)
    devices = read_rates()
    assert devices["h200"].about == devices["other"].about == "a fast one"
    assert devices["cpu"].measured, "the package's stay"
    assert set(json.loads(file.read_text())["devices"]) == {"h200", "other"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "not a file of rates"),
        ({"format": 2, "devices": {}}, "not a file of rates"),
        ({"format": 1, "devices": {"x": []}}, "the device 'x' is not an object"),
        (
            {"format": 1, "devices": {"x": {"about": "x", "ranking": [{"images": 1}], "evaluation": []}}},
            "positive numbers",
        ),
        ({"format": 1, "devices": {"x": {"about": 3, "ranking": [], "evaluation": []}}}, "about"),
    ],
)
def test_damaged_files_are_refused(content: object, message: str, tmp_path: Path) -> None:
    file = tmp_path / "rates.json"
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match=message):
        read_rates(file)


def test_calibration_measures_what_plans_need() -> None:
    lines: list[str] = []
    entry = calibrate_device("cpu", threads=1, sizes=[(30, 8), (60, 16)], rounds=1, memory=False, report=lines.append)
    assert [run["captions"] for run in entry["ranking"]] == [150, 300]
    assert all(run["seconds"] > 0 for part in ("ranking", "evaluation") for run in entry[part])
    assert "1 CPU core" in entry["about"]
    assert len(lines) == 2


@pytest.mark.slow
def test_memory_is_that_of_a_process() -> None:
    small, large = (calibration.memory_of(images) for images in (100, 3000))
    assert small["bytes"] > 10**7
    assert large["bytes"] > small["bytes"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"images": 0}, "images is 0"),
        ({"nodes": 0}, "nodes is 0"),
        ({"dim": 1.5}, "dim is 1.5"),
        ({"images": float("nan")}, "images is nan"),
        ({"captions": "many"}, "captions is 'many'"),
        ({"network": float("nan")}, "network is nan"),
        ({"precision": "int8"}, "vectors of int8"),
        ({"network": 0}, "network is 0"),
        ({"queries": 0}, "queries is 0"),
    ],
)
def test_mistakes_are_named(changed: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan_evaluation(**{"images": 10, "captions": 10, "dim": 8, "rates": RATES, **changed})
    with pytest.raises(UnknownNameError, match="unknown device"):
        plan_evaluation(10, 10, 8, device="h20", rates=RATES)

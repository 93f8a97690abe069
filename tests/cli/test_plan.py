"""``crosslens plan``: the table, JSON, numbers as people write them, mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosslens.planning.plan import format_bytes, format_duration, format_number
from tests.tables import each_row

from .conftest import Call


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))


def test_contract(call: Call) -> None:
    words = ("plan", "--images", "1e9", "--captions", "1e9", "--dim", "768", "--device", "h200", "--nodes", "64")
    plan = call(*words)
    assert plan.code == 0, plan.err
    assert " ".join(plan.out.split()).startswith(
        "1 · 10⁹ images × 1 · 10⁹ captions, d = 768 (float16), on 64 nodes of h200: NVIDIA H200"
    )
    assert "3.07 TB" in plan.out
    content = call(*words, "--json").json
    assert content["vector_bytes"] == 2e9 * 768 * 2
    assert content["scores"] == 1e18
    assert content["workload"]["nodes"] == 64
    assert content["seconds"] > content["ranking_seconds"] > 3600


def test_a_plan_for_a_cpu(call: Call) -> None:
    content = call("plan", "--images", "5,000", "--captions", "2.5e4", "--dim", "512", "--json").json
    assert content["workload"]["captions"] == 25_000
    assert content["seconds"] > content["ranking_seconds"] > 0
    plan = call("plan", "--images", "5000", "--captions", "25000", "--dim", "512", "--queries", "100")
    assert "100 queries per direction" in plan.out
    assert "not included" in plan.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--images", "10"], "--captions is missing"),
        (["--images", "1.5", "--captions", "1", "--dim", "1"], "images is '1.5'"),
        (["--images", "many", "--captions", "1", "--dim", "1"], "images is 'many'"),
        (["--images", "9" * 5000, "--captions", "1", "--dim", "1"], "images is '999"),
        (["--images", "１", "--captions", "1", "--dim", "1"], "images is"),
        (["--images", "0", "--captions", "1", "--dim", "1"], "images is 0"),
        (["--images", "1", "--captions", "1", "--dim", "1", "--device", "h20"], "unknown device 'h20'"),
        (["--images", "1", "--captions", "1", "--dim", "1", "--rates", "none.json"], "none.json"),
        (["--name", "x"], "--name requires --calibrate"),
        (["--calibrate", "--rates", "x.json"], "--rates is for plans"),
    ],
)
def test_mistakes(call: Call, words: list[str], message: str) -> None:
    outcome = call("plan", *words)
    assert outcome.code != 0
    assert message in outcome.err
    assert "Traceback" not in outcome.err


def test_calibration_is_used_from_then_on(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runs = [{"images": 100, "captions": 500, "dim": 64, "seconds": 1000.0}]
    entry = {"about": "a slow machine", "memory_bytes": None, "ranking": runs, "evaluation": runs}
    monkeypatch.setattr("crosslens.planning.calibrate_device", lambda *_, **__: entry)
    outcome = call("plan", "--calibrate", "--threads", "1")
    assert outcome.code == 0, outcome.err
    planned = call("plan", "--images", "100", "--captions", "500", "--dim", "64", "--json").json
    assert planned["about"] == "a slow machine"
    assert planned["ranking_seconds"] == pytest.approx(1000)
    elsewhere = tmp_path / "rates.json"
    assert call("plan", "--calibrate", "--name", "h200", "-o", elsewhere, "--json").json["file"] == str(elsewhere)
    words = ("plan", "--images", "100", "--captions", "500", "--dim", "64", "--device", "h200", "--rates", elsewhere)
    assert call(*words, "--json").json["measured"] is True


@each_row(
    ("written", "expected"),
    [
        (format_bytes(0), "0 B"), (format_bytes(1536), "1.54 kB"), (format_bytes(3.072e12), "3.07 TB"),
        (format_bytes(999.9), "1 kB"), (format_duration(0.5), "0.5 s"), (format_duration(5400), "1.5 hours"),
        (format_duration(86_400 * 3), "3 days"), (format_duration(None), "not measured"),
        (format_duration(3.2e9), "101 years"), (format_number(25_000), "25,000"), (format_number(5e10), "50 · 10⁹"),
    ],
)  # fmt: skip
def test_units(written: str, expected: str) -> None:
    assert written == expected

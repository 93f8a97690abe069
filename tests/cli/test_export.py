"""``crosslens export`` to where teams keep results."""

from __future__ import annotations

from pathlib import Path

import pytest

import crosslens.report as report
from crosslens.values import Run

from .conftest import Call


def test_a_model_index(runs: tuple[Path, Path], call: Call) -> None:
    outcome = call("export", runs[0], "--format", "model-index", "--metrics", "t2i/Hit@1")
    assert outcome.code == 0
    assert outcome.out.startswith('model-index:\n  - name: "a"\n')
    assert outcome.out == call("export", runs[0], "--to", "model-index", "--metrics", "t2i/Hit@1").out


def test_an_unknown_format_names_all(runs: tuple[Path, Path], call: Call) -> None:
    outcome = call("export", runs[0], "--to", "json")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: unknown export format 'json'\n  fix: choose one of ")
    listed = outcome.err.partition("choose one of ")[2].partition(";")[0].split(", ")
    assert listed == [*report.EXPORTS.names(), "fiftyone", "mlflow", "wandb"]


@pytest.mark.parametrize("tracker", ["mlflow", "wandb"])
def test_trackers(runs: tuple[Path, Path], call: Call, tracker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, object, dict[str, object]]] = []

    def log(run: Run, metrics: object, **options: object) -> report.TrackedAt:
        told.append((run.name, metrics, options))
        return report.TrackedAt(tracker, "7", "run 7", existed=run.name == "b")

    monkeypatch.setattr(report, f"log_to_{tracker}", log, raising=False)
    outcome = call("export", *runs, "--to", tracker, "--project", "p", "--metrics", "Hit@1", "--without-files")
    assert outcome.code == 0
    assert "a: logged as run 7" in outcome.err
    assert "b: already there as run 7" in outcome.err
    assert [(name, metrics) for name, metrics, _ in told] == [("a", "Hit@1"), ("b", "Hit@1")]
    assert told[0][2]["project"] == "p"
    assert told[0][2]["files"] is False
    content = call("export", runs[0], "--to", tracker, "--json").json
    assert content["runs"] == [{"run": "a", "tracker": tracker, "id": "7", "location": "run 7", "existed": False}]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--to", "mlflow", "--offline"), "--offline is for wandb"),
        (("--to", "wandb", "--tracking-uri", "x"), "--tracking-uri is for mlflow"),
        (("--to", "mlflow", "-o", "x"), "are not for mlflow"),
        (("--to", "csv", "--project", "p"), "are for mlflow and wandb"),
        (("--to", "mlflw"), "unknown export format 'mlflw'"),
    ],
)
def test_mistakes(runs: tuple[Path, Path], call: Call, words: tuple[str, ...], message: str) -> None:
    outcome = call("export", runs[0], *words)
    assert outcome.code == 2
    assert message in outcome.err

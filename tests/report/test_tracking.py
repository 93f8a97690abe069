"""Runs handed to MLflow and Weights & Biases: to stand-ins that remember, and (slow) to the real clients."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from crosslens.core import CrosslensError, MissingExtraError
from crosslens.report import log_to_mlflow, log_to_wandb
from crosslens.report.tracking import allowed_names, artifact_name, tracked
from crosslens.values import Run

RECIPE = """version = 1
name = "toy"
[dataset]
source = "coco"
[options]
metrics = ["Hit@1", "MedR"]
folds = 5
[fingerprints]
dataset = "abc"
"""


@pytest.fixture
def stored(run: Run, tmp_path: Path) -> Run:
    values = {name: replace(metric, low=0.1, high=0.9) for name, metric in run.values.items()}
    replace(run, values=values, recipe=RECIPE).save(tmp_path / "run")
    (tmp_path / "run" / "notes.txt").write_text("mine", encoding="utf-8")
    return Run.load(tmp_path / "run")


def test_what_is_told(stored: Run) -> None:
    content = tracked(stored, "t2i/Hit@1 MedR")
    assert set(content.figures) == {"t2i/Hit@1", "i2t/MedR", "t2i/MedR"}
    assert content.intervals["t2i/Hit@1"] == (0.1, 0.9)
    assert content.settings == {
        "version": "1", "name": "toy", "dataset.source": "coco", "options.metrics": "Hit@1 MedR", "options.folds": "5",
    }  # fmt: skip
    assert {file.name for file in content.files} >= {"run.json", "queries.parquet", "recipe.toml"}
    assert "notes.txt" not in {file.name for file in content.files}, "only what the run consists of"
    assert not tracked(stored, files=False).files
    assert tracked(replace(stored, name="other")).key != content.key
    assert tracked(stored).key == content.key


def test_figures_without_a_value_are_left_out(stored: Run) -> None:
    nan = float("nan")
    values = {"t2i/Hit@1": replace(stored["t2i/Hit@1"], mean=nan), "t2i/MedR": replace(stored["t2i/MedR"], low=nan)}
    content = tracked(replace(stored, values=values))
    assert list(content.figures) == ["t2i/MedR"]
    assert "t2i/MedR" not in content.intervals


@given(st.lists(st.text(max_size=20) | st.sampled_from(["a", "a_2", "a@", "a_2_2"]), max_size=8))
def test_names_are_allowed_and_distinct(names: list[str]) -> None:
    """MLflow's own rule: alphanumerics, underscores, dashes, periods, blanks, colons and slashes."""
    allowed = allowed_names(names)
    assert len(set(allowed)) == len(allowed) == len(names)
    for name in allowed:
        assert name
        assert all(letter.isascii() and (letter.isalnum() or letter in "_-. :/") for letter in name)


def test_names_stay_readable() -> None:
    names = ["t2i/Hit@1", "t2i/SR[spice, m=20]@5", "Hit@1", "Hit_at_1"]
    assert allowed_names(names) == ["t2i/Hit_at_1", "t2i/SR_spice_m_20_at_5", "Hit_at_1", "Hit_at_1_2"]
    assert artifact_name("clip b/32 (2)") == "clip-b-32-2"


@dataclass
class FakeMlflow:
    """A stand-in for the client: it remembers what it was told."""

    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    experiments: list[str] = field(default_factory=list)
    tracking_uri: str = "http://me:secret@tracker:5000/"
    artifacts: str | None = None

    def get_experiment_by_name(self, name: str) -> Any:
        return SimpleNamespace(experiment_id=name) if name in self.experiments else None

    def create_experiment(self, name: str, artifact_location: str | None) -> str:
        self.experiments.append(name)
        self.artifacts = artifact_location
        return name

    def search_runs(self, experiments: list[str], text: str) -> list[Any]:
        key = text.split("'")[1]
        return [
            SimpleNamespace(
                info=SimpleNamespace(run_id=id, status=told["status"]), data=SimpleNamespace(metrics=told["metrics"])
            )
            for id, told in self.runs.items()
            if told["tags"]["crosslens.run"] == key and told["experiment"] in experiments
        ]

    def create_run(self, experiment: str, run_name: str, tags: dict[str, str]) -> Any:
        id = str(len(self.runs))
        told = {
            "experiment": experiment,
            "tags": dict(tags),
            "metrics": {},
            "params": {},
            "files": [],
            "status": "RUNNING",
        }
        self.runs[id] = told
        return SimpleNamespace(info=SimpleNamespace(run_id=id))

    def log_batch(self, id: str, metrics: list[Any], params: list[Any], tags: list[Any]) -> None:
        self.runs[id]["metrics"] |= {name: value for name, value, *_ in metrics}
        self.runs[id]["params"] |= dict(params)
        self.runs[id]["tags"] |= dict(tags)

    def log_artifact(self, id: str, file: str, below: str | None) -> None:
        self.runs[id]["files"].append(f"{below or '.'}/{Path(file).name}")

    def set_terminated(self, id: str, status: str) -> None:
        self.runs[id]["status"] = status


@pytest.fixture
def mlflow(monkeypatch: pytest.MonkeyPatch) -> FakeMlflow:
    client = FakeMlflow()
    module, errors, entities = ModuleType("mlflow"), ModuleType("mlflow.exceptions"), ModuleType("mlflow.entities")
    module.MlflowClient = lambda tracking_uri=None: client  # type: ignore[attr-defined]
    errors.MlflowException = type("MlflowException", (Exception,), {})  # type: ignore[attr-defined]
    for name in ("Metric", "Param", "RunTag"):
        setattr(entities, name, lambda *parts: parts)
    for part in (module, errors, entities):
        monkeypatch.setitem(sys.modules, part.__name__, part)
    return client


def test_mlflow_is_told_everything_once(stored: Run, mlflow: FakeMlflow) -> None:
    first = log_to_mlflow(stored, project="p")
    told = mlflow.runs[first.id]
    assert told["metrics"]["t2i/Hit_at_1"] == stored["t2i/Hit@1"].mean
    assert (told["metrics"]["t2i/Hit_at_1_low"], told["metrics"]["t2i/Hit_at_1_high"]) == (0.1, 0.9)
    assert len(told["metrics"]) == 3 * len(stored)
    assert told["params"]["options.folds"] == "5"
    assert told["tags"]["crosslens.values"] == stored.fingerprint
    assert "./run.json" in told["files"]
    assert "ranking-t2i/header.json" in told["files"]
    assert told["status"] == "FINISHED"
    again = log_to_mlflow(stored, project="p")
    assert (again.id, again.existed, first.existed) == (first.id, True, False)
    assert len(mlflow.runs) == 1
    assert log_to_mlflow(stored, project="q").id != first.id, "another experiment"


def test_an_interrupted_export_is_completed(stored: Run, mlflow: FakeMlflow, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(mlflow, "log_artifact", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            log_to_mlflow(stored)
    assert next(iter(mlflow.runs.values()))["status"] == "RUNNING"
    result = log_to_mlflow(stored)
    assert not result.existed
    assert len(mlflow.runs) == 1
    assert mlflow.runs[result.id]["status"] == "FINISHED"


def test_a_metric_that_is_missing_is_added(stored: Run, mlflow: FakeMlflow) -> None:
    first = log_to_mlflow(stored, "t2i/Hit@1")
    second = log_to_mlflow(stored)
    assert (second.id, second.existed) == (first.id, False)
    assert len(mlflow.runs[first.id]["metrics"]) == 3 * len(stored)


def test_what_mlflow_refuses_is_an_error_of_ours(
    stored: Run, mlflow: FakeMlflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = sys.modules["mlflow.exceptions"].MlflowException
    monkeypatch.setattr(mlflow, "search_runs", lambda *_: (_ for _ in ()).throw(error("no server\nat all")))
    with pytest.raises(CrosslensError, match="MLflow refused the run: no server"):
        log_to_mlflow(stored)
    monkeypatch.setattr(
        mlflow, "search_runs", lambda *_: (_ for _ in ()).throw(error(f"{mlflow.tracking_uri}api refused"))
    )
    with pytest.raises(CrosslensError, match=r"http://\*\*\*@tracker:5000/api refused") as caught:
        log_to_mlflow(stored)
    assert "secret" not in str(caught.value)
    mlflow.tracking_uri = "/some/folder"
    with pytest.raises(CrosslensError, match=r"a database such as sqlite:///mlflow\.db"):
        log_to_mlflow(stored)


def test_mlflow_says_where_a_run_is(stored: Run, mlflow: FakeMlflow, tmp_path: Path) -> None:
    result = log_to_mlflow(stored, project="p")
    assert result.location == f"run 0 of the experiment p, at http://tracker:5000/#/experiments/p/runs/{result.id}"
    assert mlflow.artifacts is None, "the server knows"
    mlflow.tracking_uri = f"sqlite:///{tmp_path}/deep/mlflow.db"
    assert log_to_mlflow(stored, project="a/b").location.endswith(f", at {mlflow.tracking_uri}")
    assert mlflow.artifacts == (tmp_path / "deep/mlruns/a-b").as_uri(), "beside the database, not in the current folder"


@pytest.mark.parametrize(("log", "package"), [(log_to_mlflow, "mlflow"), (log_to_wandb, "wandb")])
def test_without_the_client(stored: Run, log: Any, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError) as caught:
        log(stored)
    assert f"crosslens[{package}]" in str(caught.value)


@dataclass
class FakeWandb:
    """A stand-in for the client's module."""

    begun: dict[str, Any] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    finished: bool = False

    def init(self, **options: Any) -> FakeWandb:
        self.begun = options
        return self

    def log(self, numbers: dict[str, float]) -> None:
        self.numbers |= numbers

    def log_artifact(self, artifact: Any) -> None:
        self.files += artifact.names

    def finish(self) -> None:
        self.finished = True


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> FakeWandb:
    class Artifact:
        def __init__(self, name: str, type: str) -> None:
            self.names: list[str] = []

        def add_file(self, file: str, name: str) -> None:
            self.names.append(name)

    fake = FakeWandb()
    fake.url, fake.settings = "https://somewhere", SimpleNamespace(sync_dir="wandb/offline")  # type: ignore[attr-defined]
    module = ModuleType("wandb")
    module.init, module.Artifact, module.Settings = fake.init, Artifact, dict  # type: ignore[attr-defined]
    module.Error = type("Error", (Exception,), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", module)
    return fake


def test_wandb_is_told_everything(stored: Run, wandb: FakeWandb) -> None:
    result = log_to_wandb(stored, project="p", offline=True)
    assert (wandb.begun["project"], wandb.begun["mode"], wandb.begun["id"]) == ("p", "offline", result.id)
    assert wandb.numbers["t2i/Hit@1"] == stored["t2i/Hit@1"].mean
    assert (wandb.numbers["t2i/Hit@1/low"], wandb.numbers["t2i/Hit@1/high"]) == (0.1, 0.9)
    assert wandb.begun["config"]["recipe"]["options.folds"] == "5"
    assert {"run.json", "ranking-t2i/header.json"} <= set(wandb.files)
    assert wandb.finished
    assert result.location == "offline in wandb/offline"
    assert log_to_wandb(stored).location == "https://somewhere"
    assert log_to_wandb(stored).id == result.id, "the same run is the same there"


def test_what_wandb_refuses_is_an_error_of_ours(stored: Run, wandb: FakeWandb, monkeypatch: pytest.MonkeyPatch) -> None:
    error = sys.modules["wandb"].Error
    monkeypatch.setattr(wandb, "log", lambda _: (_ for _ in ()).throw(error("not logged in")))
    with pytest.raises(CrosslensError, match="Weights & Biases refused the run: not logged in"):
        log_to_wandb(stored)


@pytest.mark.slow
def test_the_real_mlflow(stored: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store in SQLite, read back by MLflow's own client."""
    pytest.importorskip("sqlalchemy")
    client_of = pytest.importorskip("mlflow").MlflowClient
    for name in ("told", "elsewhere"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    uri = f"sqlite:///{tmp_path}/told/mlflow.db"
    result = log_to_mlflow(stored, project="retrieval", tracking_uri=uri)
    client = client_of(tracking_uri=uri)
    logged = client.get_run(result.id)
    assert logged.data.metrics["t2i/Hit_at_1"] == stored["t2i/Hit@1"].mean
    assert logged.data.metrics["t2i/Hit_at_1_low"] == 0.1
    assert logged.data.params["options.metrics"] == "Hit@1 MedR"
    assert logged.info.run_name == "toy model"
    assert logged.info.status == "FINISHED"
    assert {"run.json", "queries.parquet", "recipe.toml", "ranking-t2i"} <= {
        entry.path for entry in client.list_artifacts(result.id)
    }
    assert log_to_mlflow(stored, project="retrieval", tracking_uri=uri).existed
    assert len(client.search_runs([logged.info.experiment_id])) == 1
    assert result.location.endswith(f"at {uri}")
    assert not (tmp_path / "elsewhere" / "mlruns").exists()
    assert list((tmp_path / "told" / "mlruns").rglob("run.json"))


@pytest.mark.slow
def test_an_mlflow_server_that_is_not_there(stored: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(CrosslensError, match="MLflow refused the run"):
        log_to_mlflow(stored, project="retrieval", tracking_uri="http://127.0.0.1:9")


@pytest.mark.slow
def test_the_real_wandb_offline(stored: Run, tmp_path: Path) -> None:
    """In a process of its own: the client writes the last of its file when the process ends."""
    pytest.importorskip("wandb")
    words = ("export", str(stored.home), "--to", "wandb", "--project", "retrieval", "--offline", "--json")
    environment = {**os.environ, "WANDB_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "crosslens", *words],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    (told,) = json.loads(done.stdout)["runs"]
    (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    assert str(file.parent) in told["location"]
    content = file.read_bytes()
    for text in ("t2i/Hit@1", "t2i/Hit@1/low", "options.metrics", "retrieval", "queries.parquet", told["id"]):
        assert text.encode() in content, text

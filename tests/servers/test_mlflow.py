"""Runs handed to a real MLflow server, and read back by MLflow's own client."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crosslens.report import log_to_mlflow
from crosslens.values import Run
from tests.commands import Call
from tests.servers.conftest import evaluate
from tests.servers.processes import Proxy, free_port, running

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of ``mlflow server``, of the packages that tests use anyway."""
    for package in ("mlflow", "flask", "flask_cors", "sqlalchemy"):
        pytest.importorskip(package, reason=f"{package} is not installed: mlflow server needs it")
    folder, port = tmp_path_factory.mktemp("mlflow"), free_port()
    words = [
        sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
        "--backend-store-uri", f"sqlite:///{folder}/server.db", "--artifacts-destination", str(folder / "files"),
    ]  # fmt: skip
    with running(words, folder, f"http://127.0.0.1:{port}/health", {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}):
        yield port


def test_a_run_arrives_whole(
    server: int, folder: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metrics, parameters, tags and files, though the connection breaks the first time."""
    from mlflow import MlflowClient

    assert evaluate(call, "emb", "-o", "run").code == 0
    run, proxy = Run.load("run"), Proxy(server)
    words = ("export", "run", "--to", "mlflow", "--project", "retrieval", "--tracking-uri", proxy.address)
    with monkeypatch.context() as impatient:
        impatient.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        proxy.cut(sent=9_000)
        broken = call(*words)
    assert proxy.cuts
    assert broken.code == 3
    assert "MLflow" in broken.err
    proxy.heal()
    exported = call(*words, "--json")
    assert exported.code == 0, exported.err
    (told,) = exported.json["runs"]
    client = MlflowClient(tracking_uri=proxy.address)
    logged = client.get_run(told["id"])
    assert logged.data.metrics["t2i/MRR"] == run["t2i/MRR"].mean
    assert logged.data.metrics["t2i/MRR_low"] == run["t2i/MRR"].low
    assert logged.data.params["options.metrics"] == "MRR"
    assert logged.data.tags["crosslens.values"] == run.fingerprint
    assert (logged.info.run_name, logged.info.status) == ("run", "FINISHED")
    assert {"run.json", "queries.parquet", "ranking-t2i"} <= {entry.path for entry in client.list_artifacts(told["id"])}
    (tmp_path / "copied").mkdir()
    copied = client.download_artifacts(told["id"], "", str(tmp_path / "copied"))
    assert Run.load(copied).fingerprint == run.fingerprint, "the run can be opened where it was copied"
    assert log_to_mlflow(run, project="retrieval", tracking_uri=proxy.address).existed
    assert len(client.search_runs([logged.info.experiment_id])) == 1
    proxy.close()

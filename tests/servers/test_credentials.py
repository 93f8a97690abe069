"""Credentials reach the store and nothing else: no run, no cached file or name, no output, no error, no traceback."""

from __future__ import annotations

import base64
import json
import threading
import traceback
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosslens.core import InputError
from crosslens.storage import local_copy
from crosslens.values import Run
from tests.commands import Call
from tests.data.shard_files import vectors
from tests.servers.conftest import Store, evaluate, reset
from tests.servers.processes import Proxy

pytestmark = pytest.mark.slow
SECRET = "MARKED7f3a9secret"
USER = base64.b64encode(f"somebody:{SECRET}".encode()).decode()


@pytest.fixture
def told(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Call]:
    """Calls a command; afterwards the secret must be nowhere, in no form."""
    texts: list[str] = []

    def run(*words: str | Path, **more: Any) -> Any:
        outcome = call(*words, **more)
        texts.extend((outcome.out, outcome.err))
        return outcome

    monkeypatch.setenv("CROSSLENS_TRACEBACK", "1")
    yield run
    for secret in (SECRET, USER):
        assert not [text for text in texts if secret in text]
        for file in tmp_path.rglob("*"):
            assert secret not in file.name
            assert not file.is_file() or file.suffix == ".secret" or secret.encode() not in file.read_bytes(), file


@pytest.fixture
def site(folder: Path, tmp_path: Path) -> Iterator[Proxy]:
    """Vectors behind a password on a web server; below ``/broken`` it fails, and repeats what it was asked."""
    served = tmp_path / "served"
    served.mkdir()
    np.save(served / "img.npy", vectors(400, 256))
    np.save(served / "cap.npy", vectors(400, 256, seed=1))

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *parts: Any) -> None:
            super().__init__(*parts, directory=str(served))

        def send_head(self) -> Any:
            if self.path.startswith("/broken"):
                self.send_error(500, f"{self.path} failed")
            elif self.headers.get("Authorization") != f"Basic {USER}" or f"Signature={SECRET}" not in self.path:
                self.send_error(403)
            else:
                return super().send_head()
            return None

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # connections break
    threading.Thread(target=server.serve_forever, daemon=True).start()
    proxy = Proxy(server.server_port)
    yield proxy
    proxy.close()
    server.shutdown()
    server.server_close()


def signed(site: Proxy, file: str, secret: str = SECRET) -> str:
    return (
        f"http://somebody:{SECRET}@127.0.0.1:{site.port}/{file}?part=1&X-Amz-Signature={secret}&access_token={secret}"
    )


def test_signed_addresses(site: Proxy, told: Call, tmp_path: Path) -> None:
    def words(secret: str = SECRET, below: str = "") -> list[str]:
        pairs = (("--image-embeddings", "img.npy"), ("--caption-embeddings", "cap.npy"))
        return [word for flag, file in pairs for word in (flag, signed(site, below + file, secret))]

    few = ("evaluate", "--dataset", "emb", "--metrics", "MRR", "--resamples", "50")
    evaluation = told(*few, *words(), "-o", "run", "--json")
    assert evaluation.code == 0, evaluation.err
    run = Run.load(tmp_path / "run")
    hidden_address = f"http://***@127.0.0.1:{site.port}/img.npy?part=***&X-Amz-Signature=***&access_token=***"
    assert hidden_address in run.recipe
    assert hidden_address in run.provenance["command"]
    assert "up to date" in told(*few, *words(), "-o", "run").err
    again = told("run", "run/recipe.toml", "--allow-host", f"127.0.0.1:{site.port}")
    assert again.code == 3
    assert "its parts *** are not here: runs and recipes do not keep them" in again.err
    for wrong, reason in ((words("other"), "access is refused"), (words(below="no/"), "nothing is there"),
                          (words(below="broken/"), "cannot be read")):  # fmt: skip
        refused = told(*few, *wrong, "-o", "other")
        assert refused.code == 3
        assert reason in refused.err
        assert "http://***@127.0.0.1" in refused.err
    site.cut(received=100)
    assert told(*few, *words(below="x/../"), "-o", "other").code == 3


def test_tracebacks_in_python(site: Proxy) -> None:
    for address in (
        signed(site, "no.npy"),
        signed(site, "broken/img.npy"),
        signed(site, "img.npy").replace("127", "128"),
    ):
        with pytest.raises(InputError) as error:
            local_copy(address)
        assert SECRET not in "".join(traceback.format_exception(error.value))
        assert SECRET not in repr(error.value)


def test_s3(s3: Store, told: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SECRET_ACCESS_KEY", "SESSION_TOKEN"):
        monkeypatch.setenv(f"AWS_{name}", SECRET)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    s3.forget()
    assert evaluate(told, s3.address, "-o", f"{s3.outputs}/run", "--json").code == 0
    s3.forget()
    reset(s3.server, "reset-auth", b"0")
    assert evaluate(told, s3.address, "-o", "x").code == 3
    reset(s3.server, "reset-auth", b"inf")
    s3.proxy.cut(received=1_000)
    s3.forget()
    assert evaluate(told, s3.address.replace("laion", "lion"), "-o", "x").code == 3


def test_google(folder: Path, told: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gcsfs", reason="gs:// needs gcsfs")
    monkeypatch.setenv("CROSSLENS_MAX_REMOTE_SECONDS", "8")
    account = {
        "type": "service_account",
        "client_email": "a@b",
        "token_uri": "http://127.0.0.1:9",
        "private_key": SECRET,
    }
    for content in (json.dumps(account), f'{{"private_key": "{SECRET}"'):
        (tmp_path / "account.secret").write_text(content)
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.secret"))
        monkeypatch.setenv("FSSPEC_GS_TOKEN", "google_default")
        refused = evaluate(told, "gs://bucket/laion", "-o", "x")
        assert refused.code == 3, refused.err


def test_the_hub(hub: Store, told: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.server.private, hub.server.token = True, SECRET
    monkeypatch.setenv("HF_TOKEN", SECRET)
    assert evaluate(told, hub.address, "-o", "run").code == 0
    hub.server.token = "another"
    hub.forget()
    assert evaluate(told, hub.address.replace("emb", "other"), "-o", "x").code == 3


def test_trackers_and_databases(folder: Path, told: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    assert evaluate(told, "emb", "-o", "run").code == 0
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://somebody:{SECRET}@127.0.0.1:9")
    refused = told("export", "run", "--to", "mlflow")
    assert refused.code == 3
    assert "MLflow refused the run" in refused.err
    database = f"postgresql+psycopg://somebody:{SECRET}@127.0.0.1:9/judging"
    assert told("judging", "status", "--database", database).code == 3

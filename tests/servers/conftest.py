"""Stores as their users meet them: a server of the protocol, a folder of shards in it, a connection that may break."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.request import Request, urlopen

import pytest

from tests.commands import Call, Outcome
from tests.data.shard_files import vectors, write_shards
from tests.servers.hub import Hub
from tests.servers.processes import Proxy, free_port, program, running

Forget = Callable[[], None]


def files_of(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def call() -> Call:
    """Run ``crosslens`` with these words as a shell does: clients of stores keep much for the life of a process."""

    def run(*words: str | Path) -> Outcome:
        command = [sys.executable, "-m", "crosslens", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@dataclass(frozen=True)
class Store:
    """Where the folder of shards is, the connection to it, and what was asked of the server where that is known."""

    address: str
    proxy: Proxy
    forget: Forget = field(repr=False)
    """Has this process ask the store anew: clients keep what it said."""
    server: Any = None

    @property
    def outputs(self) -> str:
        return f"{self.address.rpartition('/')[0]}/runs"


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of moto's S3."""
    moto, port = program("moto_server"), free_port()
    with running([moto, "-H", "127.0.0.1", "-p", str(port)], tmp_path_factory.mktemp("s3"), f"http://127.0.0.1:{port}"):
        yield port


@pytest.fixture(scope="session")
def google_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of the emulator of Google's storage."""
    port, script = free_port(), Path(__file__).with_name("google_storage.py")
    program("gcp-storage-emulator")
    words = [program("python"), str(script), str(port)]
    with running(words, tmp_path_factory.mktemp("google"), f"http://127.0.0.1:{port}"):
        yield port


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of clip-retrieval; the cache, the credentials and the configuration are this test's own."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "HF_", "FSSPEC_", "MLFLOW_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CROSSLENS_MAX_REMOTE_SECONDS", "20")
    monkeypatch.chdir(tmp_path)
    return write_shards(tmp_path / "emb", vectors(400, 256), vectors(400, 256, seed=1), 4)


def evaluate(call: Call, address: str, *words: str) -> Any:
    few = ("--metrics", "MRR", "--resamples", "50")
    return call(
        "evaluate", "--dataset", "emb", "--image-embeddings", address, "--caption-embeddings", address, *few, *words
    )


@pytest.fixture
def s3(s3_server: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    s3fs = pytest.importorskip("s3fs", reason="s3:// needs s3fs")
    proxy = Proxy(s3_server)
    for name, value in {
        "ENDPOINT_URL": proxy.address, "DEFAULT_REGION": "us-east-1", "EC2_METADATA_DISABLED": "true",
        "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "MAX_ATTEMPTS": "2",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"AWS_{name}", value)
    reset(s3_server)
    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem()
    system.mkdir("bucket")
    for name, content in files_of(folder).items():
        system.pipe_file(f"bucket/laion/{name}", content)
    s3fs.S3FileSystem.clear_instance_cache()
    yield Store("s3://bucket/laion", proxy, s3fs.S3FileSystem.clear_instance_cache, s3_server)
    proxy.close()
    reset(s3_server)
    s3fs.S3FileSystem.clear_instance_cache()


def reset(port: int, what: str = "reset", content: bytes = b"") -> None:
    """Have moto forget all buckets, or with ``reset-auth`` look at credentials after so many requests."""
    address, kind = f"http://127.0.0.1:{port}/moto-api/{what}", {"Content-Type": "text/plain"}
    with urlopen(Request(address, content, kind, method="POST")):
        pass


@pytest.fixture
def google(google_server: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # it is read when the package is imported
    gcsfs = pytest.importorskip("gcsfs", reason="gs:// needs gcsfs")
    proxy = Proxy(google_server)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", proxy.address)
    gcsfs.GCSFileSystem.clear_instance_cache()
    for name, content in files_of(folder).items():
        address = f"http://127.0.0.1:{google_server}/upload/storage/v1/b/bucket/o?uploadType=media&name=laion/{name}"
        with urlopen(Request(address, content, {"Content-Type": "application/octet-stream"})):
            pass
    yield Store("gs://bucket/laion", proxy, gcsfs.GCSFileSystem.clear_instance_cache)
    proxy.close()
    with urlopen(f"http://127.0.0.1:{google_server}/wipe?keep-buckets=true"):
        pass
    gcsfs.GCSFileSystem.clear_instance_cache()


@pytest.fixture
def hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    pytest.importorskip("huggingface_hub", reason="hf:// needs huggingface_hub")

    class Served(Hub):
        content: ClassVar[Mapping[str, bytes]] = {f"emb/{name}": content for name, content in files_of(folder).items()}

    server = ThreadingHTTPServer(("127.0.0.1", 0), Served)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # connections break
    threading.Thread(target=server.serve_forever, daemon=True).start()
    proxy = Proxy(server.server_port)
    monkeypatch.setenv("HF_ENDPOINT", proxy.address)
    yield Store("hf://datasets/someone/laion/emb", proxy, lambda: None, Served)
    proxy.close()
    server.shutdown()
    server.server_close()


@pytest.fixture(params=["s3", "google", "hub"])
def store(request: pytest.FixtureRequest) -> Store:
    return request.getfixturevalue(request.param)

"""Stores behind addresses, against servers of their protocols on this machine: S3 (moto), Google's, the hub's.

They need ``pip install 'crosslens[remote]' 'moto[server]' gcp-storage-emulator``; those whose package is absent skip.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

import pytest

from tests.commands import Call, call as call
from tests.data.shard_files import vectors, write_shards

pytestmark = pytest.mark.slow
IMAGES, CAPTIONS = vectors(40), vectors(40, seed=1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of clip-retrieval; the cache, the credentials and the configuration are this test's own."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "HF_", "FSSPEC_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return write_shards(tmp_path / "emb", IMAGES, CAPTIONS, 4)


def evaluate(call: Call, address: str) -> Any:
    words = ("--image-embeddings", address, "--caption-embeddings", address, "--metrics", "MRR", "--resamples", "50")
    return call("evaluate", "--dataset", "emb", *words, "--json")


def check_same(call: Call, address: str) -> None:
    here, there = evaluate(call, "emb"), evaluate(call, address)
    assert there.code == 0, there.err
    assert there.json["metrics"] == here.json["metrics"]


def files_of(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


class Breaking:
    """A WSGI application that lets some downloads through, and cuts the next ones off in the middle."""

    def __init__(self, application: Any) -> None:
        self.application, self.left, self.served = application, 10**9, list[str]()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        content = self.application(environ, start_response)
        if environ["REQUEST_METHOD"] != "GET" or not environ["PATH_INFO"].endswith((".npy", ".parquet")):
            return content
        if self.left <= 0:
            return self.half(b"".join(content))
        self.left -= 1
        self.served.append(environ["PATH_INFO"])
        return content

    def half(self, content: bytes) -> Iterator[bytes]:
        yield content[: len(content) // 2]
        raise ConnectionAbortedError("the server is gone")


@pytest.fixture
def s3(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Breaking]:
    s3fs = pytest.importorskip("s3fs", reason="s3:// needs s3fs")
    pytest.importorskip("moto", reason="the S3 server of these tests is moto")
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    application = Breaking(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem()
    if not system.exists("bucket"):
        system.mkdir("bucket")
    for name, content in files_of(folder).items():
        system.pipe_file(f"bucket/laion/{name}", content)
    s3fs.S3FileSystem.clear_instance_cache()
    yield application
    server.shutdown()
    server.server_close()
    s3fs.S3FileSystem.clear_instance_cache()


def test_s3(s3: Breaking, call: Call) -> None:
    check_same(call, "s3://bucket/laion")


def test_s3_with_wrong_addresses(s3: Breaking, call: Call) -> None:
    missing = evaluate(call, "s3://bucket/lion")
    assert missing.code == 3
    assert "s3://bucket/lion: nothing is there" in missing.err
    assert "fix: check the address: s3://bucket has laion" in missing.err
    deeper = evaluate(call, "s3://bucket/laion/img/img_0.npy")
    assert "s3://bucket/laion has img_emb, metadata, text_emb" in deeper.err
    no_bucket = evaluate(call, "s3://bukket/laion")
    assert "there is no bukket, or you have no right to list it" in no_bucket.err


def test_s3_without_and_with_wrong_credentials(s3: Breaking, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec.config
    import s3fs
    from moto import settings

    with monkeypatch.context() as without:
        without.delenv("AWS_ACCESS_KEY_ID")
        without.delenv("AWS_SECRET_ACCESS_KEY")
        refused = evaluate(call, "s3://bucket/laion")
        assert refused.code == 3
        assert "s3://bucket/laion: access is refused: Unable to locate credentials" in refused.err
        assert "AWS_ACCESS_KEY_ID" in refused.err
        s3fs.S3FileSystem.clear_instance_cache()
        # What FSSPEC_S3_ANON=true sets; it is read when fsspec is imported.
        without.setitem(fsspec.config.conf, "s3", {"anon": "true"})
        assert "access is refused: Forbidden" in evaluate(call, "s3://bucket/laion").err  # it is not public
    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.setattr(settings, "INITIAL_NO_AUTH_ACTION_COUNT", 0.0)  # from now on credentials are looked at
    refused = evaluate(call, "s3://bucket/laion")
    assert refused.code == 3
    assert "s3://bucket/laion: access is refused: " in refused.err
    assert "AWS_PROFILE" in refused.err


def test_s3_interrupted_in_the_middle(s3: Breaking, call: Call, tmp_path: Path) -> None:
    import s3fs

    s3.left = 3
    cut = evaluate(call, "s3://bucket/laion")
    assert cut.code == 3, cut.err
    assert "s3://bucket/laion: " in cut.err
    assert "run the same command again" in cut.err
    copied = files_of(tmp_path / "cache")
    assert len(copied) == 3
    served = list(s3.served)
    s3.left, s3.served = 10**9, []
    s3fs.S3FileSystem.clear_instance_cache()
    check_same(call, "s3://bucket/laion")
    assert not set(served) & set(s3.served)


def test_s3_that_cannot_be_reached(s3: Breaking, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    import s3fs

    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    s3fs.S3FileSystem.clear_instance_cache()
    refused = evaluate(call, "s3://bucket/laion")
    assert refused.code == 3
    assert "cannot be read: Could not connect" in refused.err
    assert "check the address and the network" in refused.err


@pytest.fixture
def google(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    gcsfs = pytest.importorskip("gcsfs", reason="gs:// needs gcsfs")
    emulator = pytest.importorskip("gcp_storage_emulator.server", reason="Google's server is gcp-storage-emulator")
    monkeypatch.setattr(emulator.server, "HTTPServer", ThreadingHTTPServer)  # with one thread, a kept connection blocks
    server = emulator.create_server("127.0.0.1", 0, in_memory=True, default_bucket="bucket")
    server.start()
    host, port = server._api._httpd.server_address[:2]
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://{host}:{port}")
    gcsfs.GCSFileSystem.clear_instance_cache()
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    for name, content in files_of(folder).items():
        address = f"http://{host}:{port}/upload/storage/v1/b/bucket/o?uploadType=media&name=laion/{name}"
        with urlopen(Request(address, content, {"Content-Type": "application/octet-stream"})):
            pass
    yield
    server.stop()
    gcsfs.GCSFileSystem.clear_instance_cache()


def test_google(google: None, call: Call) -> None:
    check_same(call, "gs://bucket/laion")
    missing = evaluate(call, "gs://bucket/lion")
    assert "gs://bucket/lion: nothing is there" in missing.err
    assert "gs://bucket has laion" in missing.err


class Hub(BaseHTTPRequestHandler):
    """The part of the hub's HTTP interface that reading a dataset repository takes."""

    content: ClassVar[Mapping[str, bytes]] = {}
    private: ClassVar[bool] = False

    def log_message(self, *words: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        body = json.loads(asked) if asked.startswith("{") else {}
        if "/paths-info/" in self.path:
            names = body.get("paths") or [unquote(part.split("=")[1]) for part in asked.split("&") if "paths" in part]
            entries = [entry for name in names for entry in self.entries() if entry["path"] == name]
            self.answer(200, json.dumps(entries).encode())
        else:
            self.answer(404, b"{}")

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if self.private and self.headers.get("Authorization") != "Bearer good":
            self.answer(401, b'{"error": "Invalid credentials"}')
        elif "/datasets/someone/laion" not in path:
            self.answer(404, b'{"error": "Repository not found"}', {"X-Error-Code": "RepoNotFound"})
        elif "/tree/" in path:
            inside = path.partition("/tree/main")[2].strip("/")
            deep = "recursive=true" in self.path.lower()
            entries = [
                entry for entry in self.entries()
                if (entry["path"].startswith(f"{inside}/") if inside else True)
                and (deep or "/" not in entry["path"].removeprefix(f"{inside}/" if inside else ""))
            ]  # fmt: skip
            self.answer(200 if entries else 404, json.dumps(entries).encode())
        elif "/resolve/main/" in path:
            content = self.content.get(path.partition("/resolve/main/")[2])
            headers = {"ETag": '"x"', "X-Repo-Commit": "0" * 40, "X-Linked-Size": str(len(content or b""))}
            self.answer(404 if content is None else 200, content or b"", headers)
        else:
            about = {"id": "someone/laion", "sha": "0" * 40, "siblings": [], "private": self.private, "tags": []}
            self.answer(200, json.dumps(about).encode())

    def entries(self) -> list[dict[str, Any]]:
        folders = {str(parent) for name in self.content for parent in Path(name).parents} - {"."}
        files = [
            {"type": "file", "path": name, "size": len(content), "oid": f"{hash(content) & 0xFFFFFFFF:040x}"}
            for name, content in self.content.items()
        ]
        return [{"type": "directory", "path": name, "oid": "0" * 40, "size": 0} for name in sorted(folders)] + files

    def answer(self, code: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if wanted and code == 200:
            start, end = int(wanted[1]), min(int(wanted[2]), len(content) - 1)
            headers = {**(headers or {}), "Content-Range": f"bytes {start}-{end}/{len(content)}"}
            code, content = 206, content[start : end + 1]
        self.send_response(code)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


@pytest.fixture
def hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    hub_package = pytest.importorskip("huggingface_hub", reason="hf:// needs huggingface_hub")

    class Served(Hub):
        content: ClassVar[Mapping[str, bytes]] = {f"emb/{name}": content for name, content in files_of(folder).items()}

    server = ThreadingHTTPServer(("127.0.0.1", 0), Served)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    for module in ("huggingface_hub.constants", "huggingface_hub.hf_api", "huggingface_hub.hf_file_system"):
        loaded = __import__(module, fromlist=["constants"])
        if hasattr(loaded, "ENDPOINT"):  # it is read when the package is imported
            monkeypatch.setattr(loaded, "ENDPOINT", endpoint)
    hub_package.HfFileSystem.clear_instance_cache()
    yield Served
    server.shutdown()
    server.server_close()
    hub_package.HfFileSystem.clear_instance_cache()


def test_hub(hub: type[Hub], call: Call) -> None:
    check_same(call, "hf://datasets/someone/laion/emb")
    missing = evaluate(call, "hf://datasets/someone/laion/lion")
    assert "nothing is there" in missing.err
    assert "hf://datasets/someone/laion has emb" in missing.err


def test_hub_without_rights(hub: type[Hub], call: Call) -> None:
    hub.private = True
    refused = evaluate(call, "hf://datasets/someone/laion/emb")
    assert refused.code == 3
    assert "HF_TOKEN" in refused.err

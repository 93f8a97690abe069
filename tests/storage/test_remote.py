"""Files behind addresses: copied once, again when they change, never half; with fsspec's memory and a local server."""

from __future__ import annotations

import functools
import http.server
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosslens.core import ConflictError, InputError, MissingExtraError, UsageError, is_remote, without_secrets
from crosslens.pipeline import read_embeddings
from crosslens.storage import local_copy, remote
from crosslens.values import Embeddings, Run
from tests.data.shard_files import vectors, write_shards

fsspec = pytest.importorskip("fsspec")
IMAGES, CAPTIONS = vectors(12), vectors(12, seed=1)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A store in this process, which no address of a user opens."""
    monkeypatch.setitem(remote._STORES, "memory", ("fsspec.implementations.memory", "MemoryFileSystem", "fsspec"))
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


def upload(system: Any, folder: Path, target: str) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            system.pipe_file(f"{target}/{file.relative_to(folder).as_posix()}", file.read_bytes())


def read(address: str, side: Any) -> Embeddings:
    embeddings = read_embeddings(address, None, None, side)
    assert embeddings is not None
    return embeddings


def test_what_an_address_is():
    assert all(map(is_remote, ["s3://bucket/x", "hf://datasets/a/b", "memory://x", "https://h/x.npy"]))
    assert not any(map(is_remote, ["/data/x", "x.npy", "C:\\x", "c://", Path("s3://x"), None]))


def test_a_folder_of_shards_is_copied_once_and_only_the_side_that_is_read(tmp_path, memory, monkeypatch):
    upload(memory, write_shards(tmp_path / "emb", IMAGES, CAPTIONS, 3), "/bucket/emb")
    images = read("memory://bucket/emb", "image")
    np.testing.assert_array_equal(images.vectors, IMAGES)
    assert images.ids[3] == "photo3"
    copied = {file.name for file in (tmp_path / "cache").rglob("*") if file.is_file()}
    assert copied == {f"img_emb_{k}.npy" for k in range(3)} | {f"metadata_{k}.parquet" for k in range(3)}
    fetched: list[str] = []
    monkeypatch.setattr(type(memory), "get_file", lambda self, source, *rest, **more: fetched.append(source))
    assert read("memory://bucket/emb", "image").fingerprint == images.fingerprint
    assert fetched == []


def test_a_changed_file_is_copied_again(memory):
    for shift in (0, 1):
        with memory.open("/v.npy", "wb") as file:
            np.save(file, IMAGES + np.float16(shift))
        path = local_copy("memory://v.npy")
        np.testing.assert_array_equal(np.load(path), IMAGES + np.float16(shift))


def test_an_interrupted_copy_continues_and_leaves_no_half_file(tmp_path, memory, monkeypatch):
    upload(memory, write_shards(tmp_path / "emb", IMAGES, CAPTIONS, 4), "/emb")
    real, fetched = type(memory).get_file, []

    def breaking(self: Any, source: str, target: str, **more: Any) -> None:
        fetched.append(source)
        if len(fetched) == 3:
            Path(target).write_bytes(b"half")
            raise ConnectionError("connection reset")
        real(self, source, target, **more)

    monkeypatch.setattr(type(memory), "get_file", breaking)
    with pytest.raises(InputError, match="memory://emb: cannot be read: connection reset"):
        read("memory://emb", "image")
    np.testing.assert_array_equal(read("memory://emb", "image").vectors, IMAGES)
    assert len(fetched) == len(set(fetched)) + 1


def test_a_shard_with_nan_is_named_by_its_address(tmp_path, memory):
    bad = IMAGES.copy()
    bad[7, 0] = np.nan
    upload(memory, write_shards(tmp_path / "emb", bad, CAPTIONS, 4), "/emb")
    with pytest.raises(InputError, match=r"memory://emb/img_emb/img_emb_2\.npy, row 1: NaN"):
        read("memory://emb", "image")


def test_a_missing_file_and_an_unknown_protocol(memory):
    with pytest.raises(InputError, match=r"memory://nowhere/x\.npy: nothing is there"):
        read("memory://nowhere/x.npy", "image")
    with pytest.raises(InputError, match=r"carrier-pigeon:// is not supported"):
        read("carrier-pigeon://x.npy", "image")


@pytest.mark.parametrize(("address", "missing"), [("s3://bucket/x.npy", "s3fs"), ("gs://bucket/x.npy", "gcsfs")])
def test_a_store_without_its_package(monkeypatch, address, missing):
    monkeypatch.setitem(sys.modules, missing, None)  # an import of it fails
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, address.partition(":")[0], raising=False)
    with pytest.raises(MissingExtraError, match=rf"'{missing}'[^$]*crosslens\[remote\]"):
        local_copy(address)


def test_over_http(tmp_path):
    pytest.importorskip("aiohttp")
    (tmp_path / "served").mkdir()
    np.save(tmp_path / "served" / "v.npy", IMAGES)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "served"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_port}/v.npy"
        ids = tuple(map(str, range(12)))
        embeddings = read_embeddings(address, None, ids, "image")
        assert embeddings is not None
        np.testing.assert_array_equal(embeddings.vectors, IMAGES)
        with pytest.raises(InputError, match="nothing is there"):
            local_copy(address.replace("v.npy", "w.npy"))
    finally:
        server.shutdown()
        server.server_close()


def test_a_recipe_keeps_an_address_as_it_is(tmp_path):
    from crosslens.pipeline import InputOptions, Recipe

    recipe = Recipe(inputs=InputOptions(image_embeddings="s3://b/emb", caption_embeddings="t.npy"), base=tmp_path)
    assert recipe.absolute().inputs.image_embeddings == "s3://b/emb"
    assert recipe.absolute().inputs.caption_embeddings == str(tmp_path / "t.npy")


def evaluated(seed: int = 0, **options: Any) -> Run:
    import crosslens as cl

    dataset = cl.Dataset.of({f"i{row}": [f"text {row}"] for row in range(12)})
    return cl.evaluate(
        dataset,
        images=IMAGES.astype(np.float32),
        captions=CAPTIONS.astype(np.float32),
        metrics="MRR",
        seed=seed,
        **options,
    )


def test_a_run_at_an_address(memory, tmp_path, monkeypatch):
    address = "memory://bucket/runs/first"
    stored = evaluated(output=address)
    assert Run.load(address).fingerprint == stored.fingerprint
    assert Run.load(Path(address)).name == "first"
    assert evaluated(output=address).home is not None, "found complete"
    with pytest.raises(ConflictError, match="memory://bucket/runs/first: already contains a different run"):
        evaluated(1, output=address)
    evaluated(1, output=address, overwrite=True, directions=("i2t",))
    assert list(Run.load(address).rankings) == ["i2t"]
    assert not memory.exists("/bucket/runs/first/ranking-t2i/header.json"), "what it replaces is gone"
    memory.rm("/bucket/runs/first", recursive=True)
    assert evaluated(output=address).home is None, "somebody removed it: nothing is there"
    with pytest.raises(UsageError, match="a run cannot be written to https://"):
        stored.save("https://somewhere/run")
    with pytest.raises(UsageError, match="s3://b/x: only runs are written to a store"):
        Embeddings(tuple(map(str, range(12))), IMAGES).save(Path("s3://b/x"))
    memory.pipe_file("/bucket/other/notes.txt", b"mine")
    with pytest.raises(ConflictError, match=r"memory://bucket/other is not empty .* it has notes\.txt"):
        stored.save("memory://bucket/other")


def test_an_interrupted_copy_of_a_run_is_not_taken_for_one(memory, monkeypatch):
    address, real = "memory://bucket/run", type(memory).put_file

    def breaking(self: Any, source: str, target: str, **more: Any) -> None:
        if target.endswith("queries.parquet"):
            raise ConnectionError("connection reset")
        real(self, source, target, **more)

    with monkeypatch.context() as broken:
        broken.setattr(type(memory), "put_file", breaking)
        with pytest.raises(InputError, match="memory://bucket/run: cannot be written: connection reset"):
            evaluated(output=address)
    with pytest.raises(InputError):
        Run.load(address)
    assert evaluated(output=address).home is not None, "it is copied, and not computed again"
    assert Run.load(address).fingerprint == evaluated().fingerprint


@pytest.mark.parametrize(
    ("text", "text_without_secrets"),
    [
        ("s3://bucket/x#1?y", "s3://bucket/x#1?y"),
        ("s3://bucket/a;b=c/x?versionId=1", "s3://bucket/a;b=c/x?versionId=***"),
        ("at https://a:b@c/d@e, and http://t@f", "at https://***@c/d@e, and http://***@f"),
        ("'https://h/x?key=1&n=2' failed", "'https://h/x?key=***&n=***' failed"),
        ("https://h/x?sv=1&sig=a%2Fb&se=2#z", "https://h/x?sv=***&sig=***&se=***#***"),
        ("https://h/x?pass=1&code=2;jwt=3", "https://h/x?pass=***&code=***;jwt=***"),
        ("https://h/x?TOKEN", "https://h/x?***"),
        ("https:/h/x?sig=1 is a path", "https:/h/x?sig=*** is a path"),
        ("https://h/x#access_token=1", "https://h/x#access_token=***"),
        ("https://h/a;sid=1", "https://h/a;sid=***"),
        ("https://h/a&b/x?filter[x]=1", "https://h/a&b/x?filter[x]=***"),
        ("'/x?code=1&n=2' failed at http://h/x", "'/x?code=***&n=***' failed at http://h/x"),
        ("1HTTPS://h?a==b==", "1HTTPS://h?a=***"),
        ("NCS[embed:vectors:https://h/x?sig=abc]@10, MRR", "NCS[embed:vectors:https://h/x?sig=***]@10, MRR"),
        ("vqa:http://h/v1?model=NAME&timeout=3", "vqa:http://h/v1?model=NAME&timeout=3"),
        ("https://h/v1?model=NAME&code=3", "https://h/v1?model=***&code=***"),
        ("postgresql+psycopg://me:p@ss@h/db", "postgresql+psycopg://***@h/db"),
        (
            "https://h/x?token=abc: no, https://h?token=d, (https://h?token=e).",
            "https://h/x?token=***: no, https://h?token=***, (https://h?token=***).",
        ),
        ("mail a@b.c?token=1", "mail a@b.c?token=1"),
    ],
)
def test_what_is_hidden(text: str, text_without_secrets: str) -> None:
    assert without_secrets(text) == text_without_secrets
    assert without_secrets(text_without_secrets) == text_without_secrets

"""Encoding in tasks: the batches, the vectors to the last bit and the cache files of encoding without them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import CrosslensError, InputError
from crosslens.encode import Cache, batches as tasks, encode_images, encode_texts, load_encoder
from crosslens.encode.stream import Vectors
from tests.encode.conftest import Counting
from tests.engine.stand_in import Recorded, StandInEngine

Array = np.ndarray[Any, Any]
TEXTS = [f"{'very ' * (number % 7)}long text {number % 50}" for number in range(90)]


class Entangled(Counting):
    """Gives vectors that depend on the batch they were computed in, as the last bits of real models do."""

    def encode_texts(self, texts: Sequence[str]) -> Array:
        vectors = super().encode_texts(texts)
        return vectors + np.float32(1e-3) * vectors.sum() / len(texts)

    def encode_images(self, images: Sequence[Any]) -> Array:
        sums = np.array([np.asarray(image, np.float64).sum() for image in images])
        return np.stack([sums, np.full(len(images), sums.mean()), np.arange(len(images))], 1).astype(np.float32)


def assert_same(first: Vectors, second: Vectors) -> None:
    np.testing.assert_array_equal(first.rows, second.rows)
    assert first.keys == second.keys
    assert first.bad == second.bad


def shards(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("size", [1, 4, None])
def test_texts(size: int | None) -> None:
    progress = Recorded()
    with cl.use_engine(StandInEngine()):
        encoded = encode_texts(Entangled(), TEXTS, batch_size=size, progress=progress)
    assert_same(encode_texts(Entangled(), TEXTS, batch_size=size), encoded)
    assert progress.steps["encoding texts"] == len(TEXTS)


def test_the_cache_is_the_same_and_is_used(tmp_path: Path) -> None:
    caches = [Cache(tmp_path / name, shard_items=16) for name in ("local", "tasks")]
    local = [encode_texts(Entangled(), part, cache=caches[0], batch_size=4) for part in (TEXTS[:20], TEXTS)]
    engine = StandInEngine()
    with cl.use_engine(engine):
        for part, expected in zip((TEXTS[:20], TEXTS), local, strict=True):
            assert_same(expected, encode_texts(Entangled(), part, cache=caches[1], batch_size=4))
        before = engine.results
        encode_texts(Entangled(), TEXTS, cache=caches[1], batch_size=4)
    assert engine.results == before, "all of it is cached"
    assert shards(tmp_path / "local") == shards(tmp_path / "tasks")


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    pytest.importorskip("PIL")
    from tests.encode.tiny_models import pictures

    paths = []
    for number, picture in enumerate(pictures(12, seed=3)):
        paths.append(tmp_path / f"{number}.png")
        picture.save(paths[-1])
    return [*paths, paths[2], paths[5]]  # two occur again


def test_images(files: list[Path], tmp_path: Path) -> None:
    cache, progress = Cache(tmp_path / "cache"), Recorded()
    encode_images(Entangled(), files[3:5], cache=Cache(tmp_path / "other"))
    encode_images(Entangled(), files[3:5], cache=cache)
    with cl.use_engine(StandInEngine()):
        encoded = encode_images(Entangled(), files, batch_size=3, cache=cache, progress=progress)
    assert_same(encode_images(Entangled(), files, batch_size=3, cache=Cache(tmp_path / "other")), encoded)
    assert progress.steps["encoding images"] == len(files)


def damage(file: Path, *, header: bool) -> None:
    content = file.read_bytes()
    file.write_bytes(b"nothing" if header else content[: len(content) // 2])


@pytest.mark.parametrize("header", [True, False])
def test_unreadable_images_are_left_out(files: list[Path], header: bool) -> None:
    damage(files[1], header=header)
    damage(files[5], header=header)  # which occurs twice
    files[7].unlink()
    with cl.use_engine(StandInEngine()):
        encoded = encode_images(Entangled(), files, batch_size=3, skip_bad=True)
    assert_same(encode_images(Entangled(), files, batch_size=3, skip_bad=True), encoded)
    assert set(encoded.bad) == {1, 5, 7, 13}


@pytest.mark.parametrize("header", [True, False])
def test_unreadable_images_raise(files: list[Path], header: bool) -> None:
    damage(files[4], header=header)
    messages = []
    for engine in (StandInEngine(), "local"):
        with pytest.raises(InputError) as raised, cl.use_engine(engine):
            encode_images(Entangled(), files, batch_size=3)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


def test_a_node_without_the_images(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(file: str) -> bytes:
        raise FileNotFoundError(file)

    monkeypatch.setattr(tasks, "read_image_bytes", missing)
    with pytest.raises(CrosslensError, match=r"0.png does not exist on the node") as raised, \
            cl.use_engine(StandInEngine()):  # fmt: skip
        encode_images(Entangled(), files, skip_bad=True)
    assert "storage that all nodes mount" in str(raised.value)


def test_workers_load_a_model_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    loads = []
    monkeypatch.setattr(tasks, "load_encoder", lambda *given: loads.append(given[0]) or load_encoder(*given))
    tasks._LOADED.clear()
    encoder, engine = load_encoder("tiny"), StandInEngine()
    with cl.use_engine(engine):
        encoded = encode_texts(encoder, TEXTS, batch_size=4)
    assert_same(encode_texts(load_encoder("tiny"), TEXTS, batch_size=4), encoded)
    assert loads == ["tiny"], "once, however many tasks"
    assert engine.travelled < 10_000, "the weights stay where they are"


def test_a_node_with_other_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = Counting()
    monkeypatch.setattr(tasks, "loaded_as", lambda model: ("other", tasks.EncodeOptions()))
    monkeypatch.setattr(tasks, "load_encoder", lambda *given: type("Other", (Counting,), {"revision": "2"})())
    tasks._LOADED.clear()
    with pytest.raises(CrosslensError, match=r"counting of the node .* has other weights"), \
            cl.use_engine(StandInEngine()):  # fmt: skip
        encode_texts(encoder, TEXTS)

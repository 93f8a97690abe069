"""Every cache, with entries that do not fit: each is noticed, removed with a note, and its content computed again."""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens.similarity.matrix as matrix_cache
from crosslens.core import InputError
from crosslens.data import read_array
from crosslens.encode import Cache, encode_texts, stored_pixels
from crosslens.encode.cache import key_of
from crosslens.similarity import relevance_matrix
from crosslens.storage import file_fingerprint
from crosslens.values import Dataset
from tests.encode.conftest import Counting

Arrays = dict[str, np.ndarray[Any, Any]]
TEXTS = [f"text {number}" for number in range(9)]


ENTRIES: dict[str, Callable[[Arrays], Arrays]] = {
    "fewer rows": lambda entry: {**entry, "vectors": entry["vectors"][:-1]},
    "more rows": lambda entry: {**entry, "vectors": np.repeat(entry["vectors"], 2, axis=0)},
    "no axis": lambda entry: {**entry, "vectors": np.float32(1)},
    "one axis": lambda entry: {**entry, "vectors": entry["vectors"][:, 0]},
    "three axes": lambda entry: {**entry, "vectors": entry["vectors"][:, None, None]},
    "wider": lambda entry: {**entry, "vectors": np.hstack([entry["vectors"]] * 2)},
    "narrower": lambda entry: {**entry, "vectors": entry["vectors"][:, :1]},
    "float64": lambda entry: {**entry, "vectors": entry["vectors"].astype(np.float64)},
    "float16": lambda entry: {**entry, "vectors": entry["vectors"].astype(np.float16)},
    "whole numbers": lambda entry: {**entry, "vectors": entry["vectors"].astype(np.int32)},
    "texts": lambda entry: {**entry, "vectors": entry["vectors"].astype("U8")},
    "complex": lambda entry: {**entry, "vectors": entry["vectors"].astype(np.complex64)},
    "NaN": lambda entry: {**entry, "vectors": entry["vectors"] * np.float32("nan")},
    "no vectors": lambda entry: {"keys": entry["keys"], "store": entry["store"]},
    "no store": lambda entry: {"keys": entry["keys"], "vectors": entry["vectors"]},
    "no keys": lambda entry: {"vectors": entry["vectors"], "store": entry["store"]},
    "keys without an axis": lambda entry: {**entry, "keys": np.uint8(1)},
    "short keys": lambda entry: {**entry, "keys": entry["keys"][:, :8]},
    "keys of another type": lambda entry: {**entry, "keys": entry["keys"].astype(np.int64)},
    "store as numbers": lambda entry: {**entry, "store": np.arange(3)},
}


def encoded(folder: Path, notes: list[str]) -> np.ndarray[Any, Any]:
    return encode_texts(Counting(), TEXTS, cache=Cache(folder, shard_items=4, notify=notes.append), batch_size=2).rows


@pytest.mark.parametrize("change", ENTRIES)
@pytest.mark.parametrize("whole", [False, True], ids=["one entry", "all entries"])
def test_vectors(change: str, whole: bool, tmp_path: Path) -> None:
    """The name of each entry fits its new content: only what is in it can tell."""
    notes: list[str] = []
    right = encoded(tmp_path, notes)
    shards = sorted(tmp_path.rglob("*.npz"))
    assert len(shards) > 1
    for shard in shards if whole else shards[:1]:
        with np.load(shard) as entry:
            changed = ENTRIES[change](dict(entry))
        buffer = io.BytesIO()
        np.savez(buffer, **changed)
        shard.unlink()
        (shard.parent / f"{key_of(buffer.getvalue()).hex()}.npz").write_bytes(buffer.getvalue())
    np.testing.assert_array_equal(encoded(tmp_path, notes), right)
    assert len(notes) == (len(shards) if whole else 1)
    assert all(note.startswith("note: a damaged cache file was removed") for note in notes)
    np.testing.assert_array_equal(encoded(tmp_path, notes := []), right)
    assert notes == []


def test_an_entry_that_would_unpack_to_gigabytes_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    right = encoded(tmp_path, notes)
    monkeypatch.setenv("CROSSLENS_MAX_UNPACKED_BYTES", "100000")
    for shard in sorted(tmp_path.rglob("*.npz")):
        with np.load(shard) as entry:
            buffer = io.BytesIO()
            keys, vectors = np.zeros((1 << 17, 16), np.uint8), np.zeros((1 << 17, 3), np.float32)
            np.savez_compressed(buffer, keys=keys, vectors=vectors, store=entry["store"])
        shard.unlink()
        (shard.parent / f"{key_of(buffer.getvalue()).hex()}.npz").write_bytes(buffer.getvalue())
    np.testing.assert_array_equal(encoded(tmp_path, notes), right)
    assert "CROSSLENS_MAX_UNPACKED_BYTES" in notes[0]


MATRICES: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "fewer rows": lambda values: values[:-1],
    "other width": lambda values: values[:, :-1],
    "no axis": lambda values: values[0, 0],
    "float64": lambda values: values.astype(np.float64),
    "whole numbers": lambda values: values.astype(np.int64),
    "other numbers": lambda values: values + 1,
    "texts": lambda values: values.astype("U8"),
}
NUMBERS = ("other numbers", True)


def _replaced(file: Path, values: np.ndarray[Any, Any]) -> None:
    with file.open("wb") as raw:
        np.save(raw, values)


@pytest.mark.parametrize(
    ("change", "described"),
    # Other numbers of the right form that are described anew are what nothing can tell.
    [(change, described) for change in MATRICES for described in (False, True) if (change, described) != NUMBERS],
)
def test_similarities(
    change: str, described: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where the description beside the matrix was written anew."""
    monkeypatch.setattr(matrix_cache, "WORTH_KEEPING", 0.0)
    dataset = Dataset.of({f"i{n}": [f"a dog {n}", f"two cats and {n} dogs"] for n in range(4)})
    right = np.array(relevance_matrix(dataset, "cider", cache=tmp_path))
    (file,) = tmp_path.rglob("*.npy")
    changed = MATRICES[change](np.load(file))
    _replaced(file, changed)
    if described:
        redescribe(file)
    np.testing.assert_array_equal(relevance_matrix(dataset, "cider", cache=tmp_path), right)
    assert "note: a damaged cache file was removed" in capsys.readouterr().err
    np.testing.assert_array_equal(np.load(file), right)


def redescribe(file: Path) -> None:
    """The description that fits the file as it is now."""
    description = file.with_suffix(".json")
    content = json.loads(description.read_text())
    content["content"] = file_fingerprint([file])
    description.write_text(json.dumps(content))


@pytest.mark.parametrize("change", MATRICES)
def test_unpacked_columns(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Vectors of a table that were unpacked into a file."""
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("crosslens.data.vectors._IN_MEMORY", 0)
    table, right = tmp_path / "v.parquet", np.arange(12, dtype=np.float32).reshape(4, 3)
    pl.DataFrame({"vectors": right}).write_parquet(table)
    np.testing.assert_array_equal(read_array(table), right)
    (file,) = (tmp_path / "cache").rglob("*.npy")
    _replaced(file, MATRICES[change](right))
    np.testing.assert_array_equal(read_array(table), right)
    assert "note: a damaged cache file was removed" in capsys.readouterr().err


def test_a_table_of_the_same_size_and_time_is_unpacked_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of an entry covers the content that it was made of."""
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("crosslens.data.vectors._IN_MEMORY", 0)
    table = tmp_path / "v.parquet"
    for number in (1.5, 2.5):
        pl.DataFrame({"vectors": np.full((4, 3), number, np.float32)}).write_parquet(table)
        os.utime(table, ns=(1, 1))
        assert read_array(table)[0, 0] == number


def test_an_encoder_that_gives_other_vectors_than_it_says_is_not_cached(tmp_path: Path) -> None:
    class Wrong(Counting):
        dimension = 4

    notes: list[str] = []
    for _ in range(2):
        rows = encode_texts(Wrong(), TEXTS, cache=Cache(tmp_path, notify=notes.append), batch_size=2).rows
        assert rows.shape == (9, 3)
    assert notes == ["note: vectors of 3 numbers are not kept: the model says 4"] * 2


def test_of_entries_that_contradict_each_other_none_is_used(tmp_path: Path) -> None:
    """Where an encoder does not say how long its vectors are, what it gives decides, and otherwise nothing does."""

    class Unknown(Counting):
        dimension = None

    def again(notes: list[str], texts: list[str]) -> np.ndarray[Any, Any]:
        cache = Cache(tmp_path, shard_items=4, notify=notes.append)
        return encode_texts(Unknown(), texts, cache=cache, batch_size=2).rows

    right = again([], TEXTS)
    shards = sorted(tmp_path.rglob("*.npz"))
    for number, changed in enumerate((shards[:1], None)):
        for shard in changed or sorted(tmp_path.rglob("*.npz")):
            with np.load(shard) as entry:
                buffer = io.BytesIO()
                np.savez(buffer, **ENTRIES["wider"](dict(entry)))
            shard.unlink()
            (shard.parent / f"{key_of(buffer.getvalue()).hex()}.npz").write_bytes(buffer.getvalue())
        notes: list[str] = []
        more = [*TEXTS, f"a new text {number}"]
        np.testing.assert_array_equal(again(notes, more)[:9], right)
        assert notes


def test_entries_that_are_all_of_another_width_are_not_used(tmp_path: Path) -> None:
    """Also where the encoder does not say how long its vectors are: the store does."""

    class Unknown(Counting):
        dimension = None

    def again(notes: list[str]) -> np.ndarray[Any, Any]:
        cache = Cache(tmp_path, shard_items=4, notify=notes.append)
        return encode_texts(Unknown(), TEXTS, cache=cache, batch_size=2).rows

    right = again([])
    for change in ("wider", "narrower", "three axes"):
        for shard in sorted(tmp_path.rglob("*.npz")):
            with np.load(shard) as entry:
                buffer = io.BytesIO()
                np.savez(buffer, **ENTRIES[change](dict(entry)))
            shard.unlink()
            (shard.parent / f"{key_of(buffer.getvalue()).hex()}.npz").write_bytes(buffer.getvalue())
        np.testing.assert_array_equal(again(notes := []), right)
        assert notes
        np.testing.assert_array_equal(again(notes := []), right)
        assert notes == []


@pytest.mark.parametrize("state", ["empty", "part of it", "damaged"])
def test_a_cache_that_cannot_be_written_is_an_error_with_a_fix(
    state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A medium that may only be read; what is complete in it is used."""

    def read_only(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    right = encoded(tmp_path, [])
    shard = min(tmp_path.rglob("*.npz"))
    monkeypatch.setattr("crosslens.encode.cache.atomic_file", read_only)
    monkeypatch.setattr(Path, "unlink", read_only)
    np.testing.assert_array_equal(encoded(tmp_path, []), right)
    monkeypatch.setattr(Path, "unlink", lambda self, missing_ok=False: os.unlink(self))
    if state == "damaged":
        shard.write_bytes(shard.read_bytes()[:99])
    for file in tmp_path.rglob("*.npz") if state == "empty" else [shard] if state == "part of it" else []:
        file.unlink()
    monkeypatch.setattr(Path, "unlink", read_only)
    with pytest.raises(InputError, match="cannot be used as a cache: Read-only file system") as raised:
        encoded(tmp_path, notes := [])
    assert "cache" in raised.value.fix
    assert notes == []


class Preparing:
    """What makes pixels of pictures, and counts them."""

    preprocessing, model, count = "halves", "preparing", 0

    def pixels(self, pictures: list[Any]) -> np.ndarray[Any, Any]:
        self.count += len(pictures)
        return np.stack([np.asarray(picture, np.float16).transpose(2, 0, 1) for picture in pictures])


@pytest.mark.parametrize(
    "change", ["fewer rows", "no axis", "float64", "whole numbers", "other numbers", "one axis less"]
)
def test_pixels(change: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pictures as a model sees them."""
    image = pytest.importorskip("PIL.Image", reason="pip install 'crosslens[encoders]'")
    files = [str(tmp_path / f"{number}.png") for number in range(3)]
    for number, file in enumerate(files):
        image.new("RGB", (4, 2), (number, 10, 20)).save(file)
    prepared = Preparing()
    right = stored_pixels(prepared, files, cache=tmp_path / "cache").read()  # type: ignore[arg-type]
    (file,) = (tmp_path / "cache").rglob("*.npy")
    changes = {**MATRICES, "no axis": lambda values: values[0, 0, 0, 0], "one axis less": lambda values: values[:, 0]}
    _replaced(file, changes[change](np.load(file)))
    again = stored_pixels(prepared, files, cache=tmp_path / "cache").read()  # type: ignore[arg-type]
    np.testing.assert_array_equal(again, right)
    assert prepared.count == 6
    assert "note: a damaged cache file was removed" in capsys.readouterr().err
    stored_pixels(prepared, files, cache=tmp_path / "cache")  # type: ignore[arg-type]
    assert prepared.count == 6

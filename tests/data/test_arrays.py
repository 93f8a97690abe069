"""Arrays in files of other libraries: which one is meant, their ids, and that no file runs code."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosslens.core import InputError
from crosslens.data import read_array, read_vectors, read_vectors_and_ids
from crosslens.pipeline import read_embeddings
from crosslens.values import Embeddings

IMAGES = np.arange(6, dtype=np.float32).reshape(3, 2)
TEXTS = np.arange(8, dtype=np.float32).reshape(4, 2) + 10


def write_safetensors(path: Path, arrays: dict[str, np.ndarray[Any, Any]], kind: str = "F32") -> None:
    header, content = {"__metadata__": {"format": "np"}}, b""
    for name, array in arrays.items():
        offsets = [len(content), len(content) + array.nbytes]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": offsets}  # type: ignore[assignment]
        content += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content)


def write_torch(path: Path, content: Any) -> None:
    torch = pytest.importorskip("torch")
    tensors = {key: torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value
               for key, value in content.items()}  # fmt: skip
    torch.save(tensors["array"] if set(tensors) == {"array"} else tensors, path)


WRITERS = {
    ".npz": lambda path, arrays: np.savez(path, **arrays),
    ".safetensors": write_safetensors,
    ".pt": write_torch,
    ".pth": write_torch,
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_single_array(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"vectors{suffix}"
    WRITERS[suffix](path, {"array": IMAGES})
    for side in (None, "image", "caption"):
        assert np.array_equal(read_array(path, side), IMAGES)


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("names", [("image", "text"), ("image_features", "text_features"), ("img_emb", "caption-emb")])
def test_both_sides_in_one_file(suffix: str, names: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / f"both{suffix}"
    WRITERS[suffix](path, dict(zip(names, (IMAGES, TEXTS), strict=True)))
    assert np.array_equal(read_array(path, "image"), IMAGES)
    assert np.array_equal(read_array(path, "caption"), TEXTS)
    with pytest.raises(InputError, match="cannot be told from the others") as caught:
        read_array(path)
    assert caught.value.code == "ambiguous-array"


def test_the_array_of_the_other_side_is_not_taken(tmp_path: Path) -> None:
    np.savez(tmp_path / "images.npz", image_features=IMAGES)
    with pytest.raises(InputError, match="holds image_features"):
        read_array(tmp_path / "images.npz", "caption")


def test_ids_come_along(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "both.npz", image=IMAGES, text=TEXTS, image_ids=np.array(["c", "b", "a"]), text_ids=[4, 3, 2, 1]
    )
    assert read_vectors_and_ids(tmp_path / "both.npz", "image").ids == ("c", "b", "a")
    assert read_vectors_and_ids(tmp_path / "both.npz", "caption").ids == ("4", "3", "2", "1")
    write_torch(tmp_path / "one.pt", {"embeddings": IMAGES, "ids": ["c", "b", "a"]})
    assert read_vectors_and_ids(tmp_path / "one.pt", "image").ids == ("c", "b", "a")
    embeddings = read_embeddings(str(tmp_path / "both.npz"), None, ("a", "b"), "image")
    assert embeddings is not None
    assert embeddings.ids == ("c", "b", "a"), "matched by id, in any order, more than the dataset has"
    assert isinstance(read_vectors(tmp_path / "both.npz", "caption"), Embeddings)
    with pytest.raises(InputError, match="no vector for image 'd'"):
        read_embeddings(str(tmp_path / "both.npz"), None, ("a", "d"), "image")
    np.savez(tmp_path / "short.npz", image=IMAGES, image_ids=["a"])
    with pytest.raises(InputError, match="1 ids in 'image_ids' for 3 vectors in 'image'"):
        read_array(tmp_path / "short.npz", "image")


def test_half_precision_of_every_kind(tmp_path: Path) -> None:
    upper_half = (IMAGES.view(np.uint32) >> 16).astype(np.uint16)
    write_safetensors(tmp_path / "half.safetensors", {"vectors": upper_half}, "BF16")
    assert np.array_equal(read_array(tmp_path / "half.safetensors"), IMAGES)
    torch = pytest.importorskip("torch")
    torch.save(torch.from_numpy(IMAGES).bfloat16(), tmp_path / "half.pt")
    assert np.array_equal(read_array(tmp_path / "half.pt"), IMAGES)


def test_the_same_as_the_library_reads(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    arrays = {"image": IMAGES, "text": TEXTS.astype(np.float16), "steps": np.arange(5)}
    library.save_file(arrays, tmp_path / "file.safetensors")
    assert np.array_equal(read_array(tmp_path / "file.safetensors", "image"), IMAGES)
    assert np.array_equal(read_array(tmp_path / "file.safetensors", "caption"), TEXTS)


class Harmful:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".npz", ".npy", ".safetensors"])
def test_no_file_runs_code(suffix: str, tmp_path: Path) -> None:
    path, trace = tmp_path / f"harmful{suffix}", tmp_path / "trace"
    path.write_bytes(pickle.dumps(Harmful(trace)))
    with pytest.raises(InputError, match="cannot be read"):
        read_array(path)
    if suffix in (".pt", ".pth"):
        pytest.importorskip("torch").save({"image": IMAGES, "more": Harmful(trace)}, path)
        with pytest.raises(InputError, match="more than tensors"):
            read_array(path)
    if suffix == ".npz":
        np.savez(path, image=np.array([Harmful(trace)], object), allow_pickle=True)
        with pytest.raises(InputError, match="cannot be read"):
            read_array(path)
    assert not trace.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        (50).to_bytes(8, "little") + b"{}",
        (64).to_bytes(8, "little") + b'{"a": {"dtype": "F32", "shape": [9, 9], "data_offsets": [0, 4]}} ',
        (2).to_bytes(8, "little") + b"[]",
        (100_000).to_bytes(8, "little") + b"[" * 100_000,
    ],
)
def test_a_damaged_safetensors_file(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "damaged.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=r"cannot be read|holds no array|nested") as caught:
        read_array(tmp_path / "damaged.safetensors")
    assert caught.value.file == str(tmp_path / "damaged.safetensors")

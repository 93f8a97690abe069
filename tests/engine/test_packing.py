"""What travels to a task: arrays of files as names, all else by content."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.core import CrosslensError
from crosslens.engine.ray_engine import pack, unpack


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> np.ndarray[Any, Any]:
    file = tmp_path_factory.mktemp("arrays") / "stored.npy"
    np.save(file, np.arange(40_000, dtype=np.float32).reshape(1_000, 40))
    array: np.ndarray[Any, Any] = np.load(file, mmap_mode="r")
    return array


@given(st.data())
def test_a_part_of_a_file_travels_as_its_name(stored: np.ndarray[Any, Any], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, 1_000))
    last = data.draw(st.integers(first, 1_000))
    part = stored[first:last]
    views = [part, np.asarray(part), part.reshape(-1, 8), part[:, None], part.view(np.int32)]
    view = data.draw(st.sampled_from(views))
    packed = pack({"rows": view})
    assert packed.size < 2_000
    again = unpack(packed)["rows"]
    assert (again.dtype, again.shape) == (view.dtype, view.shape)
    np.testing.assert_array_equal(again, view)


def test_what_is_no_whole_part_travels_by_content(stored: np.ndarray[Any, Any]) -> None:
    for array in (stored[:, 3], stored[::2], stored.T, np.array(stored)):
        packed = pack(array)
        assert packed.size >= array.nbytes
        np.testing.assert_array_equal(unpack(packed), array)


def test_contents_are_not_copied() -> None:
    array = np.arange(100_000)
    packed = pack((array, array[10:20]))
    assert np.shares_memory(packed.buffers[0], array)
    assert np.shares_memory(unpack(packed)[0], array)


def test_a_node_without_the_file(tmp_path: Path) -> None:
    file = tmp_path / "rows.npy"
    np.save(file, np.ones((100, 4)))
    packed = pack(np.load(file, mmap_mode="r"))
    file.rename(tmp_path / "elsewhere.npy")
    with pytest.raises(CrosslensError, match=r"rows.npy does not exist on the node") as raised:
        unpack(packed)
    assert raised.value.code == "missing-on-node"
    np.save(file, np.ones((3, 4)))
    with pytest.raises(CrosslensError, match=r"rows.npy is another file on the node"):
        unpack(packed)


def test_buffers_of_threads_stay_behind() -> None:
    scratch = threading.local()
    scratch.tile = np.ones(1_000_000)
    packed = pack({"buffer": scratch})
    assert packed.size < 1_000
    assert not hasattr(unpack(packed)["buffer"], "tile")

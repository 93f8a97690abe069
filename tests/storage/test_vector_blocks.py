"""Vectors in blocks: whatever they are made of, they give the rows that a plain array gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.core import InputError, UsageError
from crosslens.storage import (
    ArrayBlocks,
    FlatBlocks,
    PatchedBlocks,
    SelectedBlocks,
    ShardedBlocks,
    VectorBlocks,
    blocks,
    each_block,
)
from crosslens.values import Embeddings, joined_vectors, zero_vectors

Array = np.ndarray[Any, Any]


def same(source: VectorBlocks, expected: Array, rng: np.random.Generator) -> None:
    assert source.shape == expected.shape
    assert source.dtype == expected.dtype
    for _ in range(5):
        start, stop = sorted(rng.integers(0, len(expected) + 3, 2).tolist())
        np.testing.assert_array_equal(source.block(start, stop), expected[start:stop])
        rows = rng.integers(0, len(expected), 7)
        np.testing.assert_array_equal(source.rows(rows), expected[rows])
    np.testing.assert_array_equal(np.concatenate([block for _, block in each_block(source)]), expected)


@given(sizes=st.lists(st.integers(0, 6), min_size=1, max_size=6).filter(sum), several=st.booleans(),
       seed=st.integers(0, 2**32))  # fmt: skip
def test_the_rows_of_shards_selections_and_patches_are_those_of_one_array(sizes, several, seed):
    rng = np.random.default_rng(seed)
    shards = [rng.random((size, 2, 3) if several else (size, 3)).astype(np.float16) for size in sizes]
    whole = np.concatenate(shards)
    sharded = ShardedBlocks.of(shards)
    same(sharded, whole, rng)
    same(ArrayBlocks(whole), whole, rng)
    rows = rng.permutation(len(whole))[: max(1, len(whole) // 2)]
    same(SelectedBlocks(sharded, rows), whole[rows], rng)
    same(SelectedBlocks(sharded, np.arange(len(whole))[1:] if len(whole) > 1 else rows),
         whole[1:] if len(whole) > 1 else whole[rows], rng)  # fmt: skip
    patched, values = whole.copy(), rng.random((len(rows), *whole.shape[1:])).astype(np.float16)
    patched[rows] = values
    same(PatchedBlocks(sharded, rows, values), patched, rng)


def test_a_row_is_located_in_its_shard_whatever_was_selected():
    shards = ShardedBlocks.of([np.ones((2, 3)), np.ones((0, 3)), np.ones((4, 3))], ["a.npy", "b.npy", "c.npy"])
    assert [shards.location(row) for row in (0, 1, 2, 5)] == [("a.npy", 0), ("a.npy", 1), ("c.npy", 0), ("c.npy", 3)]
    assert SelectedBlocks(shards, np.array([5, 0])).location(0) == ("c.npy", 3)
    assert shards.shard_rows == [2, 0, 4]


def test_few_shards_are_open_at_a_time(monkeypatch):
    opened: list[int] = []

    def open_shard(number: int) -> Array:
        opened.append(number)
        return np.full((2, 3), number, np.float32)

    monkeypatch.setattr(blocks, "_OPEN_SHARDS", 2)
    source = ShardedBlocks(open_shard, [str(number) for number in range(5)])
    assert source.block(8, 10)[0, 0] == 4
    assert opened == [0, 1, 2, 3, 4]
    assert source.block(0, 2)[0, 0] == 0
    assert opened[-1] == 0


def test_embeddings_of_shards_are_those_of_the_array():
    whole = np.random.default_rng(0).random((7, 4)).astype(np.float16)
    shards = ShardedBlocks.of([whole[:3], whole[3:]])
    ids = [f"v{row}" for row in range(7)]
    sharded, plain = Embeddings(ids, shards), Embeddings(ids, whole)
    assert sharded.fingerprint == plain.fingerprint
    np.testing.assert_array_equal(sharded.vectors, whole)
    assert (len(sharded), sharded.shape, sharded.dtype, sharded.kind) == (7, (7, 4), np.float16, "single")
    part = sharded.part(np.array([6, 0]))
    assert part.ids == ("v6", "v0")
    np.testing.assert_array_equal(part.vectors, whole[[6, 0]])
    assert part.fingerprint == plain.part(np.array([6, 0])).fingerprint


def test_changed_rows_leave_the_others_where_they_are():
    whole = np.arange(12, dtype=np.float16).reshape(4, 3)
    changed = Embeddings(tuple("abcd"), whole, model="m").with_rows([2, 0], np.array([[9.0] * 3, [8.0] * 3]))
    np.testing.assert_array_equal(changed.vectors, [[8] * 3, whole[1], [9] * 3, whole[3]])
    assert (changed.model, changed.dtype, whole[0, 0]) == ("m", np.float16, 0)
    with pytest.raises(InputError, match="NaN"):
        changed.with_rows([1], np.array([[np.nan] * 3]))
    with pytest.raises(UsageError, match="distributions"):
        Embeddings(tuple("abcd"), whole, np.ones((4, 3))).with_rows([0], whole[:1])


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_a_number_that_is_none_is_named_with_shard_and_row(value, word):
    shards = [np.ones((3, 2), np.float16) for _ in range(8)]
    shards[6][1, 1] = value
    source = ShardedBlocks.of(shards, [f"emb_{number}.npy" for number in range(8)])
    with pytest.raises(InputError, match=rf"emb_6\.npy, row 1: {word} in vectors"):
        Embeddings([str(row) for row in range(24)], source)


def test_shards_of_different_width_are_named():
    with pytest.raises(InputError, match=r"b: vectors of 3 numbers, and of 2 in a"):
        ShardedBlocks.of([np.ones((1, 2)), np.ones((1, 3))], ["a", "b"])
    with pytest.raises(InputError, match=r"a: an array of shape \(3,\)"):
        ShardedBlocks.of([np.ones(3)], ["a"])


@given(n=st.integers(1, 9), k=st.integers(1, 4), d=st.integers(1, 3), parts=st.integers(1, 4), seed=st.integers(0, 99))
def test_items_with_several_vectors_one_per_row(n, k, d, parts, seed):
    rng = np.random.default_rng(seed)
    array = rng.standard_normal((n, k, d)).astype(np.float16)
    flat, expected = FlatBlocks(ShardedBlocks.of(np.array_split(array, parts))), array.reshape(-1, d)
    assert flat.shape == expected.shape
    start, stop = sorted(rng.integers(0, n * k + 3, 2))
    np.testing.assert_array_equal(flat.block(start, stop), expected[start:stop])
    rows = rng.integers(0, n * k, 7)
    np.testing.assert_array_equal(flat.rows(rows), expected[rows])


def test_beyond_the_limit_a_joined_array_is_a_file_without_a_name(tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    array = np.arange(24, dtype=np.float16).reshape(6, 4)
    shards = ShardedBlocks.of(np.array_split(array, 3))
    for limit, kind in (("1000", np.ndarray), ("10", np.memmap)):
        monkeypatch.setenv("CROSSLENS_MAX_VECTOR_BYTES", limit)
        joined = Embeddings(list("abcdef"), shards).vectors
        assert type(joined) is kind
        assert not joined.flags.writeable
        np.testing.assert_array_equal(joined, array)
        assert np.shares_memory(joined_vectors(ArrayBlocks(array)), array)
    assert not list((tmp_path / "cache").iterdir())
    zeros = zero_vectors((3, 5))
    zeros[1] = 2
    assert zeros.sum() == 10


def test_no_room_on_the_disk_is_said_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path))
    monkeypatch.setenv("CROSSLENS_MAX_VECTOR_BYTES", "10")
    with pytest.raises(InputError, match=r"no room for .* GB of vectors[^$]*CROSSLENS_CACHE"):
        zero_vectors((1 << 40, 1 << 10))

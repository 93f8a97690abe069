"""How rankings are cut into blocks, and what devices are called and hold."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from crosslens.core import UsageError
from crosslens.encode import EncodeOptions
from crosslens.engine import torch_device, torch_devices
from crosslens.values import Relevance

torch = pytest.importorskip("torch")

from crosslens.rank.gpu.blocks import bytes_of_query, device_memory, needed_bytes, plan_blocks  # noqa: E402

CPU = torch.device("cpu")


@given(
    n=st.integers(1, 10**7), m=st.integers(1, 10**7), dimension=st.integers(1, 2048), devices=st.integers(1, 8),
    room=st.integers(10**5, 10**11), bytes_=st.integers(3_000, 60_000),
)  # fmt: skip
def test_blocks_fit_the_memory_and_cover_everything(n, m, dimension, devices, room, bytes_):
    item_bytes = (bytes_, bytes_ + 12 * dimension)
    blocks = plan_blocks((n, m), dimension, item_bytes, room, 10**16, devices)
    assert all(1 <= size <= length for size, length in zip(blocks.size, (n, m), strict=True))
    outer, _ = blocks.counts
    assert blocks.outer == (0 if n > m else 1)
    assert outer >= devices or max(n, m) < devices**2
    least = sum(item_bytes) + 4 * dimension
    assert needed_bytes(blocks, dimension, item_bytes) <= max(room, least)
    alone = plan_blocks((n, m), dimension, item_bytes, room, 10**16, 1)
    small = n * item_bytes[0] + m * item_bytes[1] <= room and n * m * dimension <= 10**16
    assert (alone.counts == (1, 1)) == small
    if outer <= 100:
        parts = blocks.parts(blocks.outer)
        assert [part.stop for part in parts[:-1]] == [part.start for part in parts[1:]]
        assert (parts[0].start, parts[-1].stop) == (0, max(n, m))


def test_memory_is_what_is_free_and_allowed(monkeypatch):
    gibi = 1 << 30

    class Gpu:
        type = "cuda"

    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: 3 * gibi)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: gibi)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (60 * gibi, 80 * gibi))
    assert device_memory(Gpu()) == 58 * gibi
    monkeypatch.setenv("CROSSLENS_MAX_DEVICE_BYTES", str(6 * gibi))
    assert device_memory(Gpu()) == 3 * gibi
    assert device_memory(CPU) == 3 * gibi
    relevance = Relevance.of({"a": ["x", "y"], "b": ["x"], "c": []})
    assert bytes_of_query(512, 10, relevance) == 12 * 512 + 2560 + 2240 + 44 + 24


def test_names_of_devices(monkeypatch):
    assert torch_devices("cpu, cpu") == [CPU]
    for bad in ("gpu", "", "cpu,", "cpu,cuda:99"):
        with pytest.raises(UsageError, match="cannot use the device"):
            torch_devices(bad)
    with pytest.raises(UsageError, match="cannot use the device 'gpu'"):
        torch_device("gpu")
    zeros = torch.zeros
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch, "zeros", lambda count, device: zeros(count))
    every = [torch.device("cuda", index) for index in range(3)]
    assert torch_devices(None) == torch_devices("cuda") == every
    assert torch_devices("cuda:1") == every[1:2]
    assert torch_devices("cuda:2,cuda:0") == [every[2], every[0]]
    assert torch_devices("cuda:1,cuda") == [every[1], every[0], every[2]]
    assert torch_device("cuda") == torch.device("cuda")
    assert EncodeOptions(device="cuda:2,cuda:0").model_device == "cuda:2", "a model runs on the first"
    assert EncodeOptions().model_device is None

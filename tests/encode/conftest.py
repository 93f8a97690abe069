"""What the tests of encoders share: no network, a small folder of pictures, encoders that need no library."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def photos(tmp_path: Path) -> cl.Dataset:
    """Six pictures on disk, two captions each."""
    pytest.importorskip("PIL", reason="pip install 'crosslens[encoders]'")
    from tests.encode.tiny_models import pictures

    (tmp_path / "photos").mkdir()
    for number, picture in enumerate(pictures(6, seed=3)):
        picture.save(tmp_path / "photos" / f"{number}.png")
    return cl.Dataset.of(
        {f"p{number}": [f"picture {number}", f"the same {number} again"] for number in range(6)},
        images={"file": [f"{number}.png" for number in range(6)]},
    )


class Counting:
    """An encoder that needs nothing and remembers what it was asked."""

    name, revision, preprocessing = "counting", "1", ""
    abilities = frozenset(("images", "texts"))
    dimension: int | None = 3
    logit_scale: float | None = None

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []

    @property
    def seen(self) -> list[Any]:
        return [content for batch in self.batches for content in batch]

    def encode_images(self, images: Sequence[Any]) -> np.ndarray[Any, Any]:
        self.batches.append(list(images))
        return np.stack([np.asarray(image, np.float32).mean(axis=(0, 1)) for image in images])

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        self.batches.append(list(texts))
        return np.array([[len(text), text.count("a"), sum(text.encode())] for text in texts], np.float32)


@pytest.fixture
def counting() -> Counting:
    return Counting()

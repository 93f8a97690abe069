"""Vectors kept between runs, found by content: the same model and the same item are never encoded twice.

A *shelf* is a folder for one encoder and one kind of item: its name is a hash of the encoder's name, revision,
preprocessing and precision. It holds shards, each a file of keys (hashes of the items' bytes) and vectors, named by a
hash of its own content. So a shard is never changed, two processes may fill the same shelf at the same time without a
lock, a killed one loses at most the shard it was filling, and a damaged file is found out when it is read.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core.atomic import PARTIAL, atomic_file, write_text
from crosslens.core.errors import InputError
from crosslens.core.fingerprint import fingerprint
from crosslens.core.machine import cache_folder
from crosslens.encode.encoder import Array, Tell, to_stderr

SHARD_ITEMS = 1_024
"""How many vectors a shard holds; the most that a killed process loses."""

_KEY_BYTES = 16
_ABANDONED = 3_600.0  # seconds after which a temporary file belongs to no living process


def key_of(content: bytes) -> bytes:
    """The key of an item: a hash of its bytes."""
    return hashlib.blake2b(content, digest_size=_KEY_BYTES).digest()


class Cache:
    """All shelves under one folder."""

    def __init__(self, folder: str | Path | None = None, *, shard_items: int = SHARD_ITEMS, tell: Tell = to_stderr):
        self.folder = cache_folder(folder)
        self.shard_items = shard_items
        self.tell = tell

    def shelf(self, about: Mapping[str, str]) -> Shelf:
        """The shelf of what ``about`` describes."""
        slug = re.sub(r"[^A-Za-z0-9]+", "-", about.get("encoder", "")).strip("-")[-48:]
        name = f"{slug}-{fingerprint('shelf', about)[:20]}"
        return Shelf(self.folder / "embeddings" / name, about, self.shard_items, self.tell)


class Shelf:
    """The cached vectors of one encoder and one kind of item."""

    def __init__(self, folder: Path, about: Mapping[str, str], shard_items: int, tell: Tell) -> None:
        self.folder, self.shard_items, self.tell = folder, shard_items, tell
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / "about.json").exists():
                write_text(folder / "about.json", json.dumps(dict(about), indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            raise InputError(
                f"cannot be used as a cache: {error.strerror}",
                file=folder,
                fix="choose another folder with --cache or CROSSLENS_CACHE, or pass --no-cache",
            ) from error
        self._forget_abandoned()
        self._place: dict[bytes, tuple[Path, int]] = {}
        for shard in sorted(folder.glob("*.npz")):
            if not shard.name.startswith(PARTIAL):  # another process may be writing it
                self._enlist(shard)
        self._keys: list[bytes] = []
        self._rows: list[Array] = []

    def __contains__(self, key: bytes) -> bool:
        return key in self._place

    def __len__(self) -> int:
        return len(self._place)

    def add(self, keys: Sequence[bytes], vectors: Array) -> None:
        """Keep these vectors; whole shards are written at once, the rest on :meth:`flush`."""
        self._keys += keys
        self._rows += list(vectors)
        while len(self._keys) >= self.shard_items:
            self._write(self.shard_items)

    def flush(self) -> None:
        """Write what is not written yet."""
        if self._keys:
            self._write(len(self._keys))

    def fetch(self, keys: Iterable[bytes]) -> Iterator[tuple[list[bytes], Array]]:
        """The vectors of those keys that are here, shard by shard, verified.

        A damaged shard is said, removed and forgotten: its keys are simply not among what comes.
        """
        wanted: dict[Path, list[bytes]] = {}
        for key in keys:
            if key in self._place:
                wanted.setdefault(self._place[key][0], []).append(key)
        for shard, here in wanted.items():
            vectors = self._verified(shard)
            if vectors is not None:
                yield here, vectors[[self._place[key][1] for key in here]]

    def _write(self, count: int) -> None:
        keys, self._keys = self._keys[:count], self._keys[count:]
        rows, self._rows = self._rows[:count], self._rows[count:]
        buffer = io.BytesIO()
        np.savez(buffer, keys=np.frombuffer(b"".join(keys), np.uint8).reshape(-1, _KEY_BYTES), vectors=np.stack(rows))
        content = buffer.getvalue()
        shard = self.folder / f"{_digest(content)}.npz"
        with atomic_file(shard) as partial:
            partial.write_bytes(content)
        self._place |= {key: (shard, row) for row, key in enumerate(keys)}

    def _enlist(self, shard: Path) -> None:
        # Only the keys are read here; whether the file is sound is asked when its vectors are.
        try:
            with np.load(shard, allow_pickle=False) as content:
                keys = content["keys"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            self._drop(shard, str(error))
            return
        for row, key in enumerate(keys):
            self._place.setdefault(key.tobytes(), (shard, row))

    def _verified(self, shard: Path) -> Array | None:
        try:
            content = shard.read_bytes()
            if _digest(content) != shard.stem:
                raise ValueError("its content is not what was written")
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                return np.asarray(arrays["vectors"])
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            self._drop(shard, str(error))
            return None

    def _drop(self, shard: Path, why: str) -> None:
        self.tell(f"note: a damaged cache file was removed, its items are encoded again: {shard} ({why})")
        shard.unlink(missing_ok=True)
        self._place = {key: place for key, place in self._place.items() if place[0] != shard}

    def _forget_abandoned(self) -> None:
        for leftover in self.folder.glob(PARTIAL + "*"):
            try:
                if time.time() - leftover.stat().st_mtime > _ABANDONED:
                    leftover.unlink(missing_ok=True)
            except FileNotFoundError:  # another process has just finished or removed it
                continue


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=_KEY_BYTES).hexdigest()


def about_shelf(model: Any, kind: str, precision: str) -> dict[str, str]:
    """What a shelf's vectors depend on besides the items."""
    return {
        "encoder": model.name,
        "revision": model.revision,
        "preprocessing": getattr(model, "preprocessing", ""),
        "precision": precision,
        "items": kind,
    }

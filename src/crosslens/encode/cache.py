"""Vectors kept between runs, found by content: the same model and the same item are never encoded twice.

A store is a folder for one encoder and one kind of item: its name is a hash of the encoder's name, revision,
preprocessing and precision. It holds shards, each a file of keys (hashes of the items' bytes) and vectors, named by a
hash of its own content, which includes the store's name. So a shard is never changed, two processes may fill the same
store at the same time without a lock, a killed one loses at most the shard it was filling, and a file that is damaged
or of another store is noticed when it is read.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from crosslens.core import InputError, Notify, argument, to_stderr
from crosslens.storage import (
    NPZ_ERRORS,
    Array,
    atomic_file,
    cache_folder,
    fingerprint,
    open_npz,
    read_json_file,
    remove_abandoned,
    write_text,
)
from crosslens.values import check_vectors

SHARD_ITEMS = 1_024
"""A shard is written as soon as it holds so many vectors; a killed process loses at most so many and a batch."""

_ABOUT = "about.json"
_SHAPE = "shape"
"""In that file: of each vector. Not every encoder says how long its vectors are."""
_KEY_BYTES = 16
_DAMAGED = (*NPZ_ERRORS, InputError)
"""What reading a damaged shard raises."""


def key_of(content: bytes) -> bytes:
    """A hash of some bytes: an item's key, a shard's name."""
    return hashlib.blake2b(content, digest_size=_KEY_BYTES).digest()


class Cache:
    """All embedding stores under one folder."""

    def __init__(self, folder: str | Path | None = None, *, shard_items: int = SHARD_ITEMS, notify: Notify = to_stderr):
        self.folder, self.shard_items, self.notify = cache_folder(folder), shard_items, notify

    @staticmethod
    def of(choice: Cache | str | Path | bool | None, notify: Notify = to_stderr) -> Cache | None:
        """The cache that ``EncodeOptions.cache`` stands for: None and True are the default folder, False is none."""
        if choice is False:
            return None
        return choice if isinstance(choice, Cache) else Cache(None if choice is True else choice, notify=notify)

    def store(self, description: Mapping[str, str], width: int | None = None) -> EmbeddingStore:
        """The store of what ``description`` says; vectors that do not have ``width`` numbers are not taken from it."""
        slug = re.sub(r"[^A-Za-z0-9]+", "-", description.get("encoder", "")).strip("-")[-48:]
        name = f"{slug}-{fingerprint('shelf', description)[:20]}"
        return EmbeddingStore(self.folder / "embeddings" / name, description, self.shard_items, self.notify, width)


class EmbeddingStore:
    """The cached vectors of one encoder and one kind of item."""

    def __init__(
        self, folder: Path, description: Mapping[str, str], shard_items: int, notify: Notify, width: int | None = None
    ) -> None:
        self.folder, self.about, self.shard_items, self.notify = folder, dict(description), shard_items, notify
        self._width, self._is_noted = width, False
        with self._changing():
            folder.mkdir(parents=True, exist_ok=True)
        if not (folder / _ABOUT).exists():
            self._describe(None)
        # Raises where the folder describes vectors of something else: nobody knows whose they are.
        file = self.folder / _ABOUT
        try:
            described = read_json_file(file)
            shape = described.pop(_SHAPE, None)
        except (InputError, AttributeError, TypeError):
            described = shape = None
        if described != self.about or not (shape is None or isinstance(shape, list)):
            problem = "the folder's name and this file describe different vectors"
            fix = f"remove the folder, whose items are then encoded again; or pass {argument('cache', False)}"
            expected = f"the vectors of {self.about.get('encoder', 'one encoder')}"
            raise InputError(problem, file=file, expected=expected, fix=fix, code="changed-file")
        self._shape = None if shape is None else tuple(shape)
        remove_abandoned(folder)
        self._rows: dict[bytes, tuple[Path, int]] = {}
        self._shapes: dict[Path, tuple[int, ...]] = {}
        for shard in sorted(folder.glob("*.npz")):
            self._read_keys(shard)
        if len(set(self._shapes.values())) > 1:  # nobody knows which of them are right
            self._drop_other_shapes(None)
        self._pending: list[tuple[bytes, Array]] = []

    def __contains__(self, key: bytes) -> bool:
        return key in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, keys: Sequence[bytes], vectors: Array) -> None:
        """Keep the vectors of a batch. A shard holds whole batches, so that a resumed run forms the same batches."""
        if self._width not in (None, vectors.shape[-1]):
            if not self._is_noted:
                self.notify(f"note: vectors of {vectors.shape[-1]} numbers are not kept: the model says {self._width}")
            self._is_noted = True
            return
        self._drop_other_shapes(vectors.shape[1:])
        self._pending += zip(keys, vectors, strict=True)
        if len(self._pending) >= self.shard_items:
            self.flush()

    def flush(self) -> None:
        if not self._pending:
            return
        keys, vectors = [key for key, _ in self._pending], np.stack([vector for _, vector in self._pending])
        self._pending = []
        if self._shape != vectors.shape[1:]:
            self._describe(vectors.shape[1:])
        buffer = io.BytesIO()
        packed_keys = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, _KEY_BYTES)
        np.savez(buffer, keys=packed_keys, vectors=vectors, store=np.array(self.folder.name))
        content = buffer.getvalue()
        shard = self.folder / f"{key_of(content).hex()}.npz"
        with self._changing(), atomic_file(shard, wait=True) as partial:  # another process may be writing the same
            partial.write_bytes(content)
        self._rows |= {key: (shard, row) for row, key in enumerate(keys)}
        self._shapes[shard] = vectors.shape[1:]

    def fetch(self, keys: Iterable[bytes]) -> Iterator[tuple[list[bytes], Array]]:
        """The vectors of those keys that are here, shard by shard, verified.

        A damaged shard is removed with a note: its keys are not among what comes.
        """
        by_shard: dict[Path, list[bytes]] = {}
        for key in keys:
            if key in self._rows:
                by_shard.setdefault(self._rows[key][0], []).append(key)
        for shard, keys_there in by_shard.items():
            try:
                content = shard.read_bytes()
                if key_of(content).hex() != shard.stem:
                    raise ValueError("its content is not what was written")
                stored = open_npz(content, ("vectors", "store"))
                if str(stored["store"].unpack()) != self.folder.name:
                    raise ValueError(f"it belongs to {stored['store'].unpack()}")
                vectors = check_vectors(stored["vectors"].unpack(), "vectors")
            except _DAMAGED as error:
                self._drop(shard, str(error))
                continue
            yield keys_there, vectors[[self._rows[key][1] for key in keys_there]]

    def _read_keys(self, shard: Path) -> None:
        # Only the keys are read here; the file is verified when its vectors are read.
        try:
            stored = open_npz(shard, ("keys", "vectors"))
            keys = stored["keys"]
            if keys.dtype != np.uint8 or keys.shape[1:] != (_KEY_BYTES,):
                raise ValueError(f"keys of shape {keys.shape} and type {keys.dtype}")
            shape, kind = stored["vectors"].shape, stored["vectors"].dtype
            if kind != np.float32 or len(shape) not in (2, 3) or shape[0] != len(keys):
                raise ValueError(f"vectors of shape {shape} and type {kind} for {len(keys)} keys")
            if self._width not in (None, shape[-1]):
                raise ValueError(f"vectors of {shape[-1]} numbers instead of {self._width}")
            if self._shape not in (None, shape[1:]):
                raise ValueError(f"vectors of shape {shape[1:]} instead of {self._shape}")
            rows, self._shapes[shard] = keys.unpack(), shape[1:]
        except _DAMAGED as error:
            self._drop(shard, str(error))
            return
        for row, key in enumerate(rows):
            self._rows.setdefault(key.tobytes(), (shard, row))

    def _describe(self, shape: tuple[int, ...] | None) -> None:
        """Say what is kept here and, before the first of them, of what shape the vectors are."""
        facts = self.about | ({} if shape is None else {_SHAPE: list(shape)})
        with self._changing():
            write_text(self.folder / _ABOUT, json.dumps(facts, indent=2, ensure_ascii=False) + "\n", wait=True)
        self._shape = shape

    @contextmanager
    def _changing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            fix = (
                f"choose another folder with {argument('cache')} or CROSSLENS_CACHE, or pass {argument('cache', False)}"
            )
            problem = f"cannot be used as a cache: {error.strerror}"
            raise InputError(problem, file=self.folder, fix=fix) from error

    def _drop_other_shapes(self, right: tuple[int, ...] | None) -> None:
        """Remove the shards whose vectors have another shape than those of the encoder."""
        for shard, shape in list(self._shapes.items()):
            if shape != right:
                self._drop(shard, f"its vectors have the shape {shape}, others {right or 'another'}")

    def _drop(self, shard: Path, reason: str) -> None:
        with self._changing():
            shard.unlink(missing_ok=True)
        self.notify(f"note: a damaged cache file was removed, its items are encoded again: {shard} ({reason})")
        self._shapes.pop(shard, None)
        self._rows = {key: row for key, row in self._rows.items() if row[0] != shard}

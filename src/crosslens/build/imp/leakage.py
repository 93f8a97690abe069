"""Whether a corpus has the benchmark's captions or pictures, by hashes of normalised texts and of pictures."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze import HASH_BITS, hash_files, words_of
from crosslens.core import InputError
from crosslens.data import (
    PLAIN_SUFFIXES,
    existing_file,
    format_suffix,
    image_files,
    load_dataset,
    read_lines,
    read_table,
)
from crosslens.engine import Progress
from crosslens.storage import HEADER_FILE, file_fingerprint, fingerprint
from crosslens.values import images_below

COLUMNS = {
    "kind": pl.String, "image": pl.String, "caption": pl.String, "corpus": pl.String, "match": pl.String,
    "bits": pl.Int64,
}  # fmt: skip
CAPTION, IMAGE = "caption", "image"
_TILE = 20_000_000
_TEXT_COLUMNS = ("text", "caption_text", "caption")


@dataclass(frozen=True, eq=False)
class Corpus:
    """Texts with a name for each, picture files with a name for each; either may be empty."""

    name: str
    texts: Sequence[tuple[str, str]]
    files: Mapping[str, str]
    revision: str

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "texts": len(self.texts), "images": len(self.files), "revision": self.revision}


def read_corpus(path: str | Path) -> Corpus:
    """A table of captions, a text with a caption per line, a dataset, or a folder of pictures."""
    path = Path(path).expanduser()
    if path.is_dir() and not (path / HEADER_FILE).exists():
        names = images_below(path)
        sizes = [(path / name).stat().st_size for name in names]
        revision = fingerprint("pictures", {"names": tuple(names), "sizes": sizes})
        return Corpus(path.name, (), {name: str(path / name) for name in names}, revision)
    if path.is_dir():
        dataset = load_dataset(path)
        texts = list(zip(dataset.caption_ids, dataset.texts, strict=True))
        files: dict[str, str] = {}
        with suppress(InputError):  # where the pictures are not here
            files = dict(zip(dataset.image_ids, image_files(dataset), strict=True))
        return Corpus(path.name, texts, files, dataset.fingerprint)
    path = existing_file(path)
    return Corpus(path.name, _texts(path), {}, file_fingerprint([path]))


def text_key(text: str) -> bytes:
    """Equal for texts that differ in case, punctuation, spaces or the form of their characters only."""
    words = " ".join(words_of(unicodedata.normalize("NFKC", text)))
    return hashlib.blake2b(words.encode(), digest_size=16).digest()


def find_leaks(
    captions: Sequence[tuple[str, str, str]],
    files: Mapping[str, str],
    corpora: Sequence[Corpus],
    *,
    bits: int,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """The hits of ``captions`` (image, caption, text) and of ``files`` (image → file) in the corpora.

    Every caption and image is listed once for each corpus that has it, with the first match in it.
    """
    ours = [(image, caption, text_key(text)) for image, caption, text in captions]
    pictured = any(corpus.files for corpus in corpora) and bool(files)
    hashes = hash_files(list(files.values()), progress) if pictured else np.zeros((0, HASH_BITS), bool)
    rows: list[tuple[Any, ...]] = []
    for corpus in corpora:
        keys = {key for _, _, key in ours}
        matches: dict[bytes, str] = {}
        for name, text in corpus.texts:
            if (key := text_key(text)) in keys:
                matches.setdefault(key, name)
        rows += [
            (CAPTION, image, caption, corpus.name, matches[key], None) for image, caption, key in ours if key in matches
        ]
        if corpus.files and len(hashes):
            theirs = hash_files(list(corpus.files.values()), progress)
            signs, others = (np.where(array, np.float32(1), np.float32(-1)) for array in (hashes, theirs))
            images, names, height = list(files), list(corpus.files), max(1, _TILE // len(others))
            for start in range(0, len(signs), height):
                different = (HASH_BITS - signs[start : start + height] @ others.T) / 2
                for row, at in enumerate(different.argmin(axis=1).tolist()):
                    if (distance := int(different[row, at])) <= bits:
                        rows.append((IMAGE, images[start + row], None, corpus.name, names[at], distance))
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def _texts(path: Path) -> list[tuple[str, str]]:
    if format_suffix(path) not in PLAIN_SUFFIXES:
        return [(f"line {number}", line) for number, line in enumerate(read_lines(path), start=1) if line.strip()]
    if format_suffix(path) == ".jsonl":
        dataset = load_dataset(path)
        return list(zip(dataset.caption_ids, dataset.texts, strict=True))
    frame, row_name = read_table(path)
    column = next((name for name in _TEXT_COLUMNS if name in frame.columns), None)
    if column is None:
        expected = f"a column {' or '.join(_TEXT_COLUMNS)}"
        raise InputError("no column for the captions", file=path, expected=expected, fix="rename the column")
    names = (row_name(row) for row in range(frame.height))
    texts = zip((f"row {name}" if isinstance(name, int) else name for name in names), frame[column], strict=True)
    return [(name, str(text)) for name, text in texts if text is not None]

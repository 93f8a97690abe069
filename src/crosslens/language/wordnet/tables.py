"""The compiled WordNet as plain arrays, the file that holds them, and relations as arrays.

The file is an ``.npz`` archive without pickled objects: numbers as arrays, words as text with one word per line. A
*member* is one word of one synset; members lie in the order of their synsets, so that ``member_counts`` alone says
which synset each belongs to. Synset ids are rows: nouns, verbs, adjectives, adverbs, each in the order of its file.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import NPZ_ERRORS, FormatVersionError, InputError, atomic_file, open_npz

Array = np.ndarray[Any, Any]

FORMAT = "crosslens/wordnet"
VERSION = 1
TEXTS = ("words", "cased_names", "exceptions")
"""What is kept as lines of text."""
PARTS = "nvars"
"""Part-of-speech letters by code: noun, verb, adjective, adverb, satellite (an adjective grouped around another)."""
NO_PATH = 255
"""The distance of synsets that no path connects; real distances stay below 50."""


@dataclass(frozen=True)
class Tables:
    """Everything that is kept of WordNet: words, senses, relations, exceptions of morphology; no glosses."""

    parts: Array  # per synset, the code of its part of speech
    offsets: Array  # per synset, its position in its data file
    words: list[str]  # every word in lower case, "_" for a space, sorted
    member_counts: Array  # per synset, how many members it has
    member_words: Array  # per member, the row of its word
    member_senses: Array  # per member, the number of this sense among the word's senses of that part of speech, from 1
    member_uses: Array  # per member, how often the sense was counted in WordNet's tagged texts
    cased_members: Array  # the members written with capitals …
    cased_names: list[str]  # … and how they are written
    hypernyms: Array  # edges as two rows: from, to; so are the next three
    instance_hypernyms: Array
    similar: Array
    attributes: Array
    antonyms: Array  # edges between members, not synsets: opposites are a matter of words
    exceptions: list[str]  # lines "part form base base …"


def write_tables(path: str | Path, tables: Tables) -> None:
    """Write the file; the same tables give the same bytes."""
    with atomic_file(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        _add(archive, "format", _as_text([FORMAT, str(VERSION)]))
        for field in fields(Tables):
            value = getattr(tables, field.name)
            _add(archive, field.name, _as_text(value) if field.name in TEXTS else value)


def read_tables(path: str | Path) -> Tables:
    """Read what :func:`write_tables` wrote."""
    path = Path(path)
    try:
        archive = open_npz(path)
        _check_format(path, _from_text(archive["format"].unpack()))
        stored = {field.name: archive[field.name].unpack() for field in fields(Tables)}
    except NPZ_ERRORS as error:
        raise InputError(
            f"damaged or missing WordNet file: {error}", file=path, fix="pip install --force-reinstall crosslens"
        ) from error
    values: dict[str, Any] = {name: _from_text(array) if name in TEXTS else array for name, array in stored.items()}
    return Tables(**values)


def _check_format(path: Path, lines: list[str]) -> None:
    kind, version = lines
    if kind != FORMAT:
        raise ValueError(f"holds {kind}, not {FORMAT}")
    if int(version) > VERSION:
        raise FormatVersionError(
            f"{path} has format version {version}, this crosslens reads up to version {VERSION}",
            fix="pip install --upgrade crosslens",
        )


def _add(archive: zipfile.ZipFile, name: str, array: Array) -> None:
    content = io.BytesIO()
    np.save(content, np.ascontiguousarray(array), allow_pickle=False)
    # An entry made by hand carries no clock and no file mode: nothing but the content decides the bytes.
    entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content.getvalue(), compresslevel=9)


def _as_text(lines: list[str]) -> Array:
    return np.frombuffer("\n".join(lines).encode("utf-8"), dtype=np.uint8)


def _from_text(array: Array) -> list[str]:
    return array.tobytes().decode("utf-8").split("\n")


@dataclass(frozen=True)
class Links:
    """The targets of row ``i`` are ``targets[starts[i]:starts[i + 1]]``, in the order they were given."""

    starts: Array
    targets: Array

    @classmethod
    def of(cls, sources: Array, targets: Array, rows: int) -> Links:
        """Sort edges by their source."""
        order = np.argsort(sources, kind="stable")
        return cls(_starts(np.bincount(sources, minlength=rows)), _frozen(targets[order].astype(np.int32, copy=False)))

    @classmethod
    def counted(cls, counts: Array, targets: Array) -> Links:
        """Edges that already lie in the order of their sources, ``counts[i]`` of them for row ``i``."""
        return cls(_starts(counts), _frozen(targets))

    def __getitem__(self, row: int) -> Array:
        return self.targets[self.starts[row] : self.starts[row + 1]]

    def sources(self) -> Array:
        """For every edge, the row it starts from."""
        return np.repeat(np.arange(self.starts.size - 1, dtype=np.int32), np.diff(self.starts))

    def reversed(self) -> Links:
        """The same edges, walked the other way; only where sources and targets are the same kind of rows."""
        return Links.of(self.targets, self.sources(), self.starts.size - 1)


def _starts(counts: Array) -> Array:
    starts = np.zeros(counts.size + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return _frozen(starts)


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array

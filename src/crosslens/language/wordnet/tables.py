"""The compiled WordNet as plain arrays, and the one file that holds them.

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

from crosslens.core.atomic import atomic_file
from crosslens.core.errors import FormatVersionError, InputError

Array = np.ndarray[Any, Any]

FORMAT = "crosslens/wordnet"
VERSION = 1
TEXTS = ("words", "cased_names", "exceptions")
"""What is kept as lines of text."""
PARTS = "nvars"
"""Part-of-speech letters by code: noun, verb, adjective, adverb, satellite (an adjective grouped around another)."""


@dataclass(frozen=True)
class Tables:
    """Everything that is kept of WordNet: words, senses, relations, exceptions of morphology; no glosses."""

    parts: Array
    """Per synset, the code of its part of speech."""
    offsets: Array
    """Per synset, where it stood in its data file."""
    words: list[str]
    """Every word in lower case, ``_`` for a space, sorted."""
    member_counts: Array
    """Per synset, how many members it has."""
    member_words: Array
    """Per member, the row of its word."""
    member_senses: Array
    """Per member, the number of this sense among the word's senses of that part of speech, from 1."""
    member_uses: Array
    """Per member, how often the sense was counted in WordNet's tagged texts."""
    cased_members: Array
    """The members written with capitals …"""
    cased_names: list[str]
    """… and how they are written."""
    hypernyms: Array
    """Edges as two rows: from, to. The same holds for the next three."""
    instance_hypernyms: Array
    similar: Array
    attributes: Array
    antonyms: Array
    """Edges between members, not synsets: opposites are a matter of words."""
    exceptions: list[str]
    """Lines ``part form base base …``."""


def write_tables(path: str | Path, tables: Tables) -> None:
    """Write the file; the same tables give the same bytes."""
    with atomic_file(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        _add(archive, "format", _as_text([FORMAT, str(VERSION)]))
        for one in fields(Tables):
            value = getattr(tables, one.name)
            _add(archive, one.name, _as_text(value) if one.name in TEXTS else value)


def read_tables(path: str | Path) -> Tables:
    """Read what :func:`write_tables` wrote."""
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            _check_format(path, _from_text(archive["format"]))
            stored = {one.name: archive[one.name] for one in fields(Tables)}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
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

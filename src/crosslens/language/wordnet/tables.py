"""The compiled WordNet as plain arrays, the file that holds them, and relations as arrays.

The file is an ``.npz`` archive without pickled objects: numbers as arrays, words as text with one word per line. A
*member* is one word of one synset; members lie in the order of their synsets, so that ``member_counts`` alone says
which synset each belongs to. Synset ids are rows: nouns, verbs, adjectives, adverbs, each in the order of its file.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import FormatVersionError, InputError, UsageError
from crosslens.storage import NPZ_ERRORS, Array, atomic_file, open_npz

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
        kind, version = _from_text(archive["format"].unpack())
        if kind != FORMAT:
            raise ValueError(f"holds {kind}, not {FORMAT}")
        if int(version) > VERSION:
            raise FormatVersionError(
                f"{path} has format version {version}, this crosslens reads up to version {VERSION}",
                fix="pip install --upgrade crosslens",
            )
        stored = {field.name: archive[field.name].unpack() for field in fields(Tables)}
    except NPZ_ERRORS as error:
        raise InputError(
            f"damaged or missing WordNet file: {error}", file=path, fix="pip install --force-reinstall crosslens"
        ) from error
    values: dict[str, Any] = {name: _from_text(array) if name in TEXTS else array for name, array in stored.items()}
    return Tables(**values)


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
        """The edges walked the other way; only where sources and targets are the same kind of rows."""
        return Links.of(self.targets, self.sources(), self.starts.size - 1)


def _starts(counts: Array) -> Array:
    starts = np.zeros(counts.size + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return _frozen(starts)


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array


RULES: dict[str, tuple[tuple[str, str], ...]] = {
    "n": (
        ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
        ("men", "man"), ("ies", "y"),
    ),
    "v": (
        ("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""),
    ),
    "a": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "r": (),
}  # fmt: skip


FILED = "nvar"
"""The parts of speech that senses are numbered within, and the order in which they are listed."""
SATELLITE = PARTS.index("s")


def filed_under(part: str) -> str:
    """Satellites are numbered among the adjectives."""
    return "a" if part == "s" else part


def plain(word: str) -> str:
    """As WordNet's index writes a word."""
    return word.strip().lower().replace(" ", "_")


def letters(pos: str | None) -> str:
    """The letters of ``pos``, checked; None: all but satellites."""
    if pos is None:
        return FILED
    if not pos or set(pos) - set(PARTS):
        raise UsageError(f"unknown part of speech {pos!r}", fix=f"one or several of the letters {' '.join(PARTS)}")
    return pos


class Lexicon:
    """Lookup in both directions between words and synsets."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.members = Links.counted(tables.member_counts, tables.member_words)
        self.rows = dict(zip(tables.words, range(len(tables.words)), strict=True))
        exceptions = (line.split(" ") for line in tables.exceptions)
        self._exceptions = {(part, form): bases for part, form, *bases in exceptions}

    @cached_property
    def member_synsets(self) -> Array:
        """The synset of every member."""
        return self.members.sources()

    @cached_property
    def _senses(self) -> Links:
        """Members by ``4 · word + part``, in the order of their senses."""
        parts = np.where(self.tables.parts == SATELLITE, FILED.index("a"), self.tables.parts)
        keys = 4 * self.tables.member_words.astype(np.int64) + parts[self.member_synsets]
        order = np.lexsort((self.tables.member_senses, keys))
        keys, synsets = keys[order], self.member_synsets[order]
        # A word that a synset lists twice, with capitals and without, has one sense there.
        new = np.append(True, (keys[1:] != keys[:-1]) | (synsets[1:] != synsets[:-1]))
        return Links.counted(np.bincount(keys[new], minlength=4 * len(self.rows)), order[new].astype(np.int32))

    def forms(self, word: str, part: str) -> list[str]:
        """The forms of ``word`` that the index lists for ``part``, itself first; none where WordNet knows none."""
        word, part = plain(word), filed_under(part)
        bases = self._exceptions.get((part, word))
        if bases is None:
            bases = [word.removesuffix(ending) + new for ending, new in RULES[part] if word.endswith(ending)]
        return [form for form in dict.fromkeys((word, *bases)) if self.sense_members_as_written(form, part).size]

    def irregular_forms(self, part: str) -> dict[str, tuple[str, ...]]:
        """The exceptions of one part of speech, turned round: base form → its irregular forms."""
        forms: dict[str, tuple[str, ...]] = {}
        for (filed, form), bases in self._exceptions.items():
            if filed == part:
                forms.update({base: (*forms.get(base, ()), form) for base in bases})
        return forms

    def sense_members(self, word: str, pos: str | None) -> Array:
        """For every sense of the word and of its base forms, in order, the member that is the word in that synset."""
        senses = [self.sense_members_as_written(form, part) for part in letters(pos) for form in self.forms(word, part)]
        return np.concatenate(senses) if senses else np.empty(0, dtype=np.int32)

    def name_of(self, member: int) -> str:
        """The member as WordNet writes it: ``Persian_cat``."""
        return self._cased.get(member) or self.tables.words[self.tables.member_words[member]]

    def members_of(self, synset: int) -> range:
        """The members of a synset."""
        return range(int(self.members.starts[synset]), int(self.members.starts[synset + 1]))

    def sense_members_as_written(self, word: str, part: str) -> Array:
        row = self.rows.get(word)
        if row is None:
            return np.empty(0, dtype=np.int32)
        members = self._senses[4 * row + FILED.index(filed_under(part))]
        return members[self.tables.parts[self.member_synsets[members]] == SATELLITE] if part == "s" else members

    @cached_property
    def _cased(self) -> dict[int, str]:
        return dict(zip(self.tables.cased_members.tolist(), self.tables.cased_names, strict=True))

"""Compile WordNet's ``dict`` files into the one file that crosslens ships.

    python scripts/compile_wordnet.py                      # from /usr/share/wordnet
    python scripts/compile_wordnet.py path/to/dict --output somewhere/wordnet.npz

Needs data.*, index.*, *.exc and index.sense of WordNet 3.0, as in Debian's packages wordnet-base and
wordnet-sense-index. The same files give the same bytes, and
the licence notice at their head is written beside. Glosses and the relations nobody here asks for stay behind.
"""

from __future__ import annotations

import argparse
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosslens.core.errors import InputError
from crosslens.language.wordnet import COMPILED
from crosslens.language.wordnet.tables import PARTS, Array, Tables, write_tables
from crosslens.storage.folders import write_text

FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
SENSE_TYPES = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
RELATIONS = {"@": "hypernyms", "@i": "instance_hypernyms", "&": "similar", "=": "attributes", "!": "antonyms"}
NOTICE = "LICENSE-WordNet.txt"
MARKER = re.compile(r"\([a-z]+\)$")
"""Where an adjective may stand, as in ``galore(ip)``: not part of the word."""


@dataclass(frozen=True)
class Entry:
    """One line of a data file."""

    file: str
    """The part of speech of its file: ``a`` for satellites, too."""
    part: str
    offset: int
    words: list[str]
    pointers: list[tuple[str, str, int, int, int]]
    """Relation, part and offset of the target, number of the source word and of the target word (0: the synset)."""


def parse_data_line(line: str, file: str) -> Entry:
    """Read the fields before the gloss, as wndb(5WN) describes them."""
    tokens = line.split("|", 1)[0].split()
    count = int(tokens[3], 16)
    words = [MARKER.sub("", word) for word in tokens[4 : 4 + 2 * count : 2]]
    rest = tokens[5 + 2 * count : 5 + 2 * count + 4 * int(tokens[4 + 2 * count])]
    pointers = [
        (RELATIONS[symbol], part.replace("s", "a"), int(offset), int(ends[:2], 16), int(ends[2:], 16))
        for symbol, offset, part, ends in zip(*[iter(rest)] * 4, strict=True)
        if symbol in RELATIONS
    ]
    return Entry(file, tokens[2], int(tokens[0]), words, pointers)


def content_lines(path: Path) -> Iterator[str]:
    """The lines of a dict file without the licence at its head."""
    if not path.exists():
        raise InputError("no such file", file=path, expected="the dict files of WordNet 3.0", fix="see --help")
    with path.open(encoding="utf-8") as file:
        yield from (line for line in file if line.strip() and not line.startswith("  "))


def read_entries(folder: Path) -> list[Entry]:
    """Every synset, in the order that gives them their ids."""
    head = folder.joinpath("data.noun").read_text(encoding="utf-8")[:3000] if (folder / "data.noun").exists() else ""
    if head and "WordNet 3.0 Copyright" not in head:
        raise InputError("not WordNet 3.0", file=folder / "data.noun", expected="the dict files of WordNet 3.0")
    return [
        parse_data_line(line, part) for part, name in FILES.items() for line in content_lines(folder / f"data.{name}")
    ]


def read_sense_numbers(folder: Path) -> dict[tuple[str, str, int], int]:
    """(part, word, offset) → the number of that sense, from the order in the index."""
    numbers = {}
    for part, name in FILES.items():
        for line in content_lines(folder / f"index.{name}"):
            tokens = line.split()
            for number, offset in enumerate(tokens[-int(tokens[2]) :], start=1):
                numbers[part, tokens[0], int(offset)] = number
    return numbers


def read_uses(folder: Path) -> dict[tuple[str, str, int], int]:
    """(part, word, offset) → how often that sense was counted in the tagged texts."""
    uses = {}
    for line in content_lines(folder / "index.sense"):
        key, offset, _, count = line.split()
        word, _, rest = key.partition("%")
        uses[SENSE_TYPES[rest[0]], word, int(offset)] = int(count)
    return uses


def read_exceptions(folder: Path) -> list[str]:
    """Irregular forms; where a form is listed twice, the later line holds, as in nltk."""
    found = {}
    for part, name in FILES.items():
        for line in content_lines(folder / f"{name}.exc"):
            form, *bases = line.split()
            found[part, form] = bases
    return [" ".join((part, form, *bases)) for (part, form), bases in found.items()]


def edges(entries: list[Entry]) -> dict[str, Array]:
    """Per relation, its edges as two rows of synset ids, or of member numbers for antonyms."""
    ids = {(entry.file, entry.offset): number for number, entry in enumerate(entries)}
    first = np.concatenate([[0], np.cumsum([len(entry.words) for entry in entries])])
    found: dict[str, list[tuple[int, int]]] = {name: [] for name in RELATIONS.values()}
    for source, entry in enumerate(entries):
        for name, part, offset, source_word, target_word in entry.pointers:
            target = ids[part, offset]
            if name == "antonyms":
                found[name].append((int(first[source]) + source_word - 1, int(first[target]) + target_word - 1))
            else:
                found[name].append((source, target))
    return {name: np.array(pairs, dtype=np.int32).T for name, pairs in found.items()}


def refuse_circles(entries: list[Entry], up: Array) -> None:
    """Depths and paths need a hierarchy. Princeton's own 3.0 files hold one circle of two verbs."""
    left, size = up, -1
    while left.size != size:
        # What has nothing above it, or nothing below it, lies on no circle.
        size = left.size
        left = left[:, np.isin(left[1], left[0]) & np.isin(left[0], left[1])]
    if size:
        raise InputError(
            f"hypernyms run in a circle: {', '.join(sorted({entries[row].words[0] for row in left[1]}))}",
            fix="take Debian's dict files, where `inhibit` is no longer a kind of `restrain`",
        )


def licence(folder: Path) -> str:
    """The notice that heads every dict file, without its line numbers; it has to go wherever the data goes."""
    with (folder / "data.noun").open(encoding="utf-8") as file:
        head = itertools.takewhile(lambda line: line.startswith("  "), file)
        return "".join(re.sub(r"^ +\d+ ?", "", line).rstrip() + "\n" for line in head)


def compile_tables(folder: Path) -> Tables:
    """Read the dict files in ``folder``."""
    entries = read_entries(folder)
    numbers, uses = read_sense_numbers(folder), read_uses(folder)
    members = [(entry, word) for entry in entries for word in entry.words]
    keys = [(entry.file, word.lower(), entry.offset) for entry, word in members]
    words = sorted({word for _, word, _ in keys})
    rows = {word: row for row, word in enumerate(words)}
    cased = [number for number, (_, word) in enumerate(members) if word != word.lower()]
    related = edges(entries)
    refuse_circles(entries, np.concatenate([related["hypernyms"], related["instance_hypernyms"]], axis=1))
    return Tables(
        parts=np.array([PARTS.index(entry.part) for entry in entries], dtype=np.uint8),
        offsets=np.array([entry.offset for entry in entries], dtype=np.int32),
        words=words,
        member_counts=np.array([len(entry.words) for entry in entries], dtype=np.uint8),
        member_words=np.array([rows[word] for _, word, _ in keys], dtype=np.int32),
        member_senses=np.array([numbers[key] for key in keys], dtype=np.uint8),
        member_uses=np.array([uses[key] for key in keys], dtype=np.uint16),
        cased_members=np.array(cased, dtype=np.int32),
        cased_names=[members[number][1] for number in cased],
        exceptions=read_exceptions(folder),
        **related,
    )


def main() -> None:
    """Compile, write, say what was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dict_folder", nargs="?", type=Path, default=Path("/usr/share/wordnet"))
    parser.add_argument("--output", type=Path, default=COMPILED)
    options = parser.parse_args()
    try:
        tables = compile_tables(options.dict_folder)
    except InputError as error:
        raise SystemExit(str(error)) from None
    write_tables(options.output, tables)
    write_text(options.output.with_name(NOTICE), licence(options.dict_folder))
    size = options.output.stat().st_size / 1e6
    print(f"{len(tables.parts):,} synsets, {len(tables.words):,} words, {size:.1f} MB: {options.output}")


if __name__ == "__main__":
    main()

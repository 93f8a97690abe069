"""WebDataset shards: tar files in which ``key.jpg`` stands beside ``key.txt`` or ``key.json``. Nothing is unpacked."""

from __future__ import annotations

import glob
import os
import re
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

import polars as pl

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, reading
from crosslens.data.checks import check_texts, check_unique, number_within
from crosslens.data.files import decode, existing_file, parse_json
from crosslens.data.inside import MARK
from crosslens.data.readers import READERS
from crosslens.data.records import Records

IMAGE_ENDINGS = ("jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff")
_TEXT_KEYS = ("caption", "captions", "text")
_AGAIN = "fetch or write the shard again: it may be cut off or damaged"


@dataclass
class _Sample:
    key: str
    file: str = ""
    place: str = ""
    texts: list[Any] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


@READERS.register("webdataset")
def read_webdataset(shards: str | Path, text_key: str | None = None) -> Dataset:
    """WebDataset shards: ``key.jpg`` (or .png, .webp, …) with its caption in ``key.txt`` or ``key.json``.

    shards: a tar file (.tar, .tar.gz, .tgz), a folder of them, or a pattern such as ``shards/*.tar`` or
        ``shard-{0000..0009}.tar``
    text_key: the entry of ``key.json`` that holds the caption or a list of captions; by default ``caption``,
        ``captions`` or ``text``, if there is no ``key.txt``

    An image's id is its key; its ``file`` is ``shard.tar::member``, which encoders read as it stands. Single values in
    ``key.json`` become columns.
    """
    samples: list[_Sample] = []
    found = _shards(str(shards))
    home = Path(os.path.commonpath([shard.parent.absolute() for shard in found]))
    for shard in found:
        with reading(shard):
            samples += _read_shard(shard, shard.absolute().relative_to(home).as_posix(), text_key)
    with reading(str(shards)):
        _check_captions(samples)
        check_unique([one.key for one in samples], "image", lambda index: samples[index].file)
        facts = Records([one.facts for one in samples], lambda index: samples[index].file)
        owners = [one.key for one in samples for _ in one.texts]
        texts = [text for one in samples for text in one.texts]
        captions = {"caption": number_within(owners), "image": owners, "text": texts}
        images = {"image": [one.key for one in samples], "file": [one.file for one in samples]}
        return Dataset(
            _name(Path(shards)),
            pl.DataFrame(
                {name: pl.Series(values, dtype=pl.String) for name, values in images.items()}
                | facts.free(("image", "file", "key", text_key or "caption", *_TEXT_KEYS))
            ),
            pl.DataFrame({name: pl.Series(values, dtype=pl.String) for name, values in captions.items()}),
            home=home,
        )


def _name(shards: Path) -> str:
    """The fixed start of a pattern (``shard`` of ``shard-{0..9}.tar``), otherwise the folder."""
    start = re.split(r"[*?{[]", shards.name)[0]
    return start.partition(".")[0].rstrip("-_") or shards.parent.name or "webdataset"


def _check_captions(samples: list[_Sample]) -> None:
    """No caption anywhere, but an entry of the JSON that sounds like one: it was not found."""
    keys = dict.fromkeys(key for one in samples for key in one.facts)
    likely = [key for key in keys if any(word.rstrip("s") in key.casefold() for word in _TEXT_KEYS)]
    if likely and not any(one.texts for one in samples):
        raise InputError(
            f"no sample has a caption (the JSON holds: {', '.join(list(keys)[:8])})",
            expected=f"a member key.txt, or an entry {' or '.join(_TEXT_KEYS)} in key.json",
            fix=f"name the entry that holds it: pass text_key={likely[0]}",
        )


def _shards(pattern: str) -> list[Path]:
    """The files a pattern stands for, in order."""
    if Path(pattern).is_dir():
        found = sorted(one for one in Path(pattern).iterdir() if one.name.endswith((".tar", ".tar.gz", ".tgz")))
    elif "{" in pattern:
        found = [existing_file(one) for one in _braces(pattern)]
    elif any(mark in pattern for mark in "*?["):
        found = [Path(one) for one in sorted(glob.glob(pattern))]
    else:
        found = [existing_file(pattern)]
    if not found:
        raise InputError("no tar file here", file=pattern, expected="one or more .tar files", fix="check the pattern")
    return found


def _braces(pattern: str) -> Iterator[str]:
    """``a-{00..02}.tar`` as ``a-00.tar``, ``a-01.tar``, ``a-02.tar``."""
    span = re.search(r"\{(\d+)\.\.(\d+)\}", pattern)
    if span is None:
        yield pattern
        return
    for number in range(int(span[1]), int(span[2]) + 1):
        yield from _braces(f"{pattern[: span.start()]}{number:0{len(span[1])}d}{pattern[span.end() :]}")


def _read_shard(shard: Path, called: str, text_key: str | None) -> list[_Sample]:
    samples: dict[str, _Sample] = {}
    texts: dict[str, str] = {}
    for name, content in _members(shard):
        folder, _, base = name.rpartition("/")
        stem, _, ending = base.partition(".")
        key, ending = f"{folder}/{stem}" if folder else stem, ending.lower()
        sample = samples.setdefault(key, _Sample(key))
        if ending in IMAGE_ENDINGS:
            if sample.file:
                raise InputError(
                    f"a second image for the key {key!r}",
                    row=name,
                    expected="one image per key",
                    fix="give it a key of its own, or remove it",
                )
            sample.file = f"{called}{MARK}{name}"
        elif ending in ("txt", "json"):
            with _inside(name):
                if ending == "txt":
                    texts[key] = decode(content).strip()
                    sample.place = name
                else:
                    sample.facts = _facts(decode(content))
                    sample.place = sample.place or name
    for sample in samples.values():
        if not sample.file and sample.place:
            raise InputError(
                f"no image for the key {sample.key!r}",
                row=sample.place,
                expected=f"a member {sample.key}.jpg (or {', '.join(IMAGE_ENDINGS[1:4])}, …)",
                fix="add the image, or remove the caption",
            )
        with _inside(sample.place):
            found = [texts[sample.key]] if sample.key in texts else _captions(sample.facts, text_key)
            sample.texts = check_texts(found, lambda index: "" if len(found) == 1 else f"caption {index}")  # noqa: B023
    return [sample for sample in samples.values() if sample.file]


@contextmanager
def _inside(member: str) -> Iterator[None]:
    """Name a member in any error raised inside."""
    try:
        yield
    except InputError as error:
        error.row = f"{member}, {error.row}" if error.row else member
        raise


def _members(shard: Path) -> Iterator[tuple[str, bytes]]:
    """Names of the members in order, with the content of those that hold text."""
    try:
        with tarfile.open(shard) as tar:
            for member in tar:
                if not member.isfile():
                    continue
                wanted = member.name.lower().endswith((".txt", ".json"))
                file = tar.extractfile(member) if wanted else None
                yield member.name, file.read() if file else b""
            _check_end(tar)
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise InputError(
            f"cannot be read as a tar file: {error}", expected="a complete tar file", fix=_AGAIN
        ) from error


def _check_end(tar: tarfile.TarFile) -> None:
    """A tar ends in empty blocks. tarfile stops without a word at a damaged header or a missing end."""
    source = cast(IO[bytes], tar.fileobj)
    source.seek(tar.offset)
    block = source.read(tarfile.BLOCKSIZE)
    if len(block) < tarfile.BLOCKSIZE or any(block):
        raise InputError(
            f"ends early, at byte {tar.offset}", expected="a complete tar file, with its end mark", fix=_AGAIN
        )


def _facts(text: str) -> dict[str, Any]:
    try:
        content = parse_json(text)
    except ValueError as error:
        raise InputError(f"not valid JSON: {error}", expected="a JSON object", fix="correct this member") from error
    if not isinstance(content, dict):
        raise InputError(f"{content!r:.60} is not an object", expected="a JSON object", fix="correct this member")
    return content


def _captions(facts: dict[str, Any], text_key: str | None) -> list[Any]:
    """The caption or captions in a sample's JSON; none if it has no such entry."""
    key = text_key or next((name for name in _TEXT_KEYS if name in facts), None)
    if key is None or not facts:
        return []
    if key not in facts:
        raise InputError(
            f"no key {key!r} (found: {', '.join(list(facts)[:8]) or 'none'})",
            expected="the caption under the key that text_key= names",
            fix="correct text_key=",
        )
    return facts[key] if isinstance(facts[key], list) else [facts[key]]

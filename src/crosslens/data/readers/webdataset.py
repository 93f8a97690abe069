"""WebDataset shards: tar files with ``key.jpg`` beside ``key.txt`` or ``key.json``. Nothing is unpacked."""

from __future__ import annotations

import glob
import os
import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from crosslens.core import InputError, reading
from crosslens.data.files import TAR_ERRORS, existing_file, open_tar
from crosslens.data.images import MEMBER_SEPARATOR
from crosslens.data.loading import READERS
from crosslens.data.rows import Records, check_ids, check_texts, check_unique, number_within, text_table
from crosslens.storage import MEMBER_BYTES, decode, parse_json
from crosslens.values import Dataset

IMAGE_ENDINGS = ("jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff")
_TEXT_KEYS = ("caption", "captions", "text")
_INCOMPLETE = "fetch or write the shard again: it may be cut off or damaged"
_KINDS = {
    tarfile.FIFOTYPE: "a named pipe",
    tarfile.SYMTYPE: "a link",
    tarfile.LNKTYPE: "a link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
}


@dataclass
class _Sample:
    key: str
    file: str = ""
    source: str = ""
    texts: list[Any] = field(default_factory=list)
    record: dict[str, Any] = field(default_factory=dict)


@READERS.register("webdataset", suggested_for=(".tar", ".tgz"))
def read_webdataset(shards: str | Path, text_key: str | None = None) -> Dataset:
    """WebDataset shards: ``key.jpg`` (or .png, .webp, …) with its caption in ``key.txt`` or ``key.json``.

    shards: a tar file (.tar, .tar.gz, .tgz), a folder of them, or a pattern such as ``shards/*.tar`` or
        ``shard-{0000..0009}.tar``
    text_key: the entry of ``key.json`` that holds the caption or a list of captions; by default ``caption``,
        ``captions`` or ``text``, if there is no ``key.txt``

    An image's id is its key; its ``file`` is ``shard.tar::member``, which encoders read. Single values in
    ``key.json`` become columns.
    """
    samples: list[_Sample] = []
    # The files that a pattern matches, in order.
    pattern = str(shards)
    if Path(pattern).is_dir():
        inside = sorted(file for file in Path(pattern).iterdir() if file.name.endswith((".tar", ".tar.gz", ".tgz")))
        files = list(map(existing_file, inside))
    elif "{" in pattern:
        files = [existing_file(name) for name in _braces(pattern)]
    elif any(mark in pattern for mark in "*?["):
        files = [existing_file(name) for name in sorted(glob.glob(pattern))]
    else:
        files = [existing_file(pattern)]
    if not files:
        raise InputError("no tar file here", file=pattern, expected="one or more .tar files", fix="check the pattern")
    home = Path(os.path.commonpath([shard.parent.absolute() for shard in files]))
    for shard in files:
        with reading(shard):
            samples += _read_shard(shard, shard.absolute().relative_to(home).as_posix(), text_key)
    with reading(str(shards)):
        # Raise where no sample has a caption, but an entry of the JSON is named like one.
        entries = dict.fromkeys(key for sample in samples for key in sample.record)
        likely = [key for key in entries if any(word.rstrip("s") in key.casefold() for word in _TEXT_KEYS)]
        if likely and not any(sample.texts for sample in samples):
            problem = f"no sample has a caption (the JSON holds: {', '.join(list(entries)[:8])})"
            expected = f"a member key.txt, or an entry {' or '.join(_TEXT_KEYS)} in key.json"
            raise InputError(problem, expected=expected, fix=f"name the entry that holds it: pass text_key={likely[0]}")
        keys = check_ids([sample.key for sample in samples], "key", lambda index: f"sample {index}")
        check_unique(keys, "image", lambda index: samples[index].file)
        records = Records([sample.record for sample in samples], lambda index: samples[index].file)
        owners = [sample.key for sample in samples for _ in sample.texts]
        texts = [text for sample in samples for text in sample.texts]
        return Dataset(
            # The fixed start of a pattern (``shard`` of ``shard-{0..9}.tar``), otherwise the folder.
            re.split(r"[*?{[.]", Path(shards).name)[0].rstrip("-_") or Path(shards).parent.name or "webdataset",
            text_table(
                records.free(("image", "file", "key", text_key or "caption", *_TEXT_KEYS)),
                image=keys,
                file=[sample.file for sample in samples],
            ),
            text_table(caption=number_within(owners), image=owners, text=texts),
            home=home,
        )


def _braces(pattern: str) -> Iterator[str]:
    """``a-{00..02}.tar`` as ``a-00.tar``, ``a-01.tar``, ``a-02.tar``."""
    span = re.search(r"\{(\d+)\.\.(\d+)\}", pattern)
    if span is None:
        yield pattern
        return
    for number in range(int(span[1]), int(span[2]) + 1):
        yield from _braces(f"{pattern[: span.start()]}{number:0{len(span[1])}d}{pattern[span.end() :]}")


def _read_shard(shard: Path, label: str, text_key: str | None) -> list[_Sample]:
    samples: dict[str, _Sample] = {}
    texts: dict[str, str] = {}
    for name, content in _members(shard):
        folder, _, base = name.rpartition("/")
        stem, _, ending = base.partition(".")
        key, ending = f"{folder}/{stem}" if folder else stem, ending.lower()
        sample = samples.setdefault(key, _Sample(key))
        if ending in IMAGE_ENDINGS:
            if sample.file:
                fix = "give it a key of its own, or remove it"
                raise InputError(f"a second image for the key {key!r}", row=name, expected="one image per key", fix=fix)
            sample.file = f"{label}{MEMBER_SEPARATOR}{name}"
        elif ending in ("txt", "json"):
            with _inside(name):
                if ending == "txt":
                    texts[key] = decode(content).strip()
                    sample.source = name
                else:
                    record = parse_json(decode(content), "a JSON object", "correct this member")
                    if not isinstance(record, dict):
                        problem, expected = f"{record!r:.60} is not an object", "a JSON object"
                        raise InputError(problem, expected=expected, fix="correct this member")
                    sample.record, sample.source = record, sample.source or name
    for sample in samples.values():
        if not sample.file and sample.source:
            expected = f"a member {sample.key}.jpg (or {', '.join(IMAGE_ENDINGS[1:4])}, …)"
            fix = "add the image, or remove the caption"
            raise InputError(f"no image for the key {sample.key!r}", row=sample.source, expected=expected, fix=fix)
        with _inside(sample.source):
            captions = [texts[sample.key]] if sample.key in texts else _captions(sample.record, text_key)
            sample.texts = check_texts(captions, lambda index: "" if len(captions) == 1 else f"caption {index}")  # noqa: B023
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
        with shard.open("rb") as file, open_tar(file) as tar:
            for member in tar:
                if member.isdir():
                    continue
                if not member.isfile():  # left out in silence, its image would have no caption
                    problem = f"the member is {_KINDS.get(member.type, 'not a file')}"
                    fix = "pack its content as a file, or leave it out"
                    raise InputError(problem, row=f"{member.name!r:.200}", expected="files and folders", fix=fix)
                MEMBER_BYTES.check(member.size, "the member", row=f"{member.name!r:.200}")
                is_text = member.name.lower().endswith((".txt", ".json"))
                content = tar.extractfile(member) if is_text else None
                yield member.name, content.read() if content else b""
            # A tar ends in empty blocks. tarfile silently stops at a damaged header or a missing end.
            source = cast(IO[bytes], tar.fileobj)
            source.seek(tar.offset)
            block = source.read(tarfile.BLOCKSIZE)
            if len(block) < tarfile.BLOCKSIZE or any(block):
                expected = "a complete tar file, with its end mark"
                raise InputError(f"ends early, at byte {tar.offset}", expected=expected, fix=_INCOMPLETE)
            while source.read(1 << 20):  # only at its very end does a compressed file show that it is complete
                pass
    except TAR_ERRORS as error:
        raise InputError(
            f"cannot be read as a tar file: {error}", expected="a complete tar file", fix=_INCOMPLETE
        ) from error


def _captions(record: dict[str, Any], text_key: str | None) -> list[Any]:
    """The caption or captions in a sample's JSON; none if it has no such entry."""
    key = text_key or next((name for name in _TEXT_KEYS if name in record), None)
    if key is None or not record:
        return []
    if key not in record:
        problem = f"no key {key!r} (found: {', '.join(list(record)[:8]) or 'none'})"
        raise InputError(problem, expected="the caption under the key that text_key= names", fix="correct text_key=")
    return record[key] if isinstance(record[key], list) else [record[key]]

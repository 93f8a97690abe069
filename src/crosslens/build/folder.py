"""The folder of a benchmark: its decisions, sheets that people fill in, copied pictures, pages that explain it.

An interrupted build resumes; neither another benchmark nor verdicts that people wrote are replaced unasked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from crosslens import __version__
from crosslens.core import ConflictError, FormatVersionError, InputError, Presented, Section, UsageError
from crosslens.data import MEMBER_SEPARATOR, RowName, format_suffix, read_image_bytes, read_records, read_table
from crosslens.storage import (
    Layout,
    Workspace,
    from_spreadsheets,
    other_content,
    parse_json,
    read_text_file,
    remove,
    write_text,
)
from crosslens.values import Dataset

RECOS, IMP = "crosslens/recos-decisions", "crosslens/imp-decisions"
"""The format of a log, which tells what was built."""
VERSION = 1
_NEAR = 1e-4  # how much a logged number may differ when it is computed again on another machine

LogEntry = dict[str, Any]


class DecisionLog:
    """Entries in the order they were made; ``log("step", …)`` adds one. Numbers are kept to six digits."""

    def __init__(self, entries: Iterable[LogEntry] = ()) -> None:
        self.entries: list[LogEntry] = list(entries)

    def __call__(self, step: str, **facts: Any) -> None:
        self.entries.append({"step": step, **{name: _plain(value) for name, value in facts.items()}})

    def __iter__(self) -> Iterator[LogEntry]:
        return iter(self.entries)

    def of(self, step: str) -> list[LogEntry]:
        return [entry for entry in self.entries if entry["step"] == step]

    @property
    def head(self) -> LogEntry:
        """The first entry: settings, models, fingerprints."""
        return self.entries[0]

    def save(self, file: str | Path) -> None:
        """Write JSON lines, all or nothing."""
        write_text(file, "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in self.entries))

    @staticmethod
    def load(file: str | Path, form: str = RECOS) -> DecisionLog:
        """Read what :meth:`save` wrote: the log of one kind of build."""
        file = Path(file)
        if file.is_dir():
            file = file / "decisions.jsonl"
        if not file.is_file():
            raise InputError("no such file", file=file, expected="the decisions.jsonl of a build", fix="check the path")
        entries = []
        for number, line in enumerate(read_text_file(file).rstrip("\n").split("\n"), start=1):
            try:
                entry = parse_json(line)
                entry["step"]
            except (InputError, KeyError, TypeError) as error:
                raise InputError(
                    f"not an entry of a decision log: {error}", file=file, row=f"line {number}", fix="write it again"
                ) from error
            entries.append(entry)
        if not entries or entries[0].get("format") != form:
            raise InputError(
                "not a decision log", file=file, expected=f"a first line with {form!r}", fix="check the path"
            )
        if entries[0].get("version") != VERSION:
            raise FormatVersionError(
                f"{file} has format version {entries[0].get('version')}, this crosslens reads version {VERSION}",
                fix="pip install --upgrade crosslens",
            )
        return DecisionLog(entries)

    def check_same(self, again: DecisionLog, *, so_far: bool = False) -> None:
        """Raise unless a repeated build decided as this log says (``so_far``: it is not finished yet).

        Numbers may differ in the fifth digit.
        """
        logged, repeated = self.entries[1:], again.entries[1:]
        for number, (entry, other) in enumerate(zip(logged, repeated, strict=False), start=2):
            if not _same(entry, other):
                raise UsageError(
                    f"the repeated build decides differently: line {number} of the log is {_short(entry)}; "
                    f"now it is {_short(other)}",
                    fix="use the same encoder, crosslens and cache as the first build; vectors differ here",
                )
        if len(logged) != len(repeated) and not so_far:
            raise UsageError(
                f"the repeated build has {len(repeated):,} decisions, the log {len(logged):,}",
                fix="use the same encoder, crosslens and cache as the first build",
            )


def log_head(form: str, key: str, inputs: Mapping[str, Any], **facts: Any) -> LogEntry:
    """The first entry of a log: its format, the key of the build, its inputs, and what else is worth knowing."""
    first = {"step": "settings", "format": form, "version": VERSION, "crosslens": __version__, "key": key}
    return {**first, **inputs, **facts}


def check_inputs(logged: Mapping[str, Any], head: Mapping[str, Any], not_inputs: Iterable[str] = ()) -> None:
    """Raise unless a repeated build has the inputs of the logged one; ``not_inputs`` names what is none."""
    if logged["key"] == head["key"]:
        return
    ignored = {"step", "format", "version", "crosslens", "key", *not_inputs}
    parts = [part for part in {**head, **logged} if part not in ignored and logged.get(part) != head.get(part)]
    raise UsageError(
        f"the log is of another build: different {', '.join(parts) or 'key'}",
        fix="pass the candidates and encoders of the first build, unchanged, and no other setting",
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return round(float(value), 6) if isinstance(value, float) else value


def _same(value: Any, other: Any) -> bool:
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(_same(value[key], other[key]) for key in value)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_same, value, other))
    if isinstance(value, float) and isinstance(other, (int, float)):
        return abs(value - other) <= _NEAR
    return bool(value == other)


def _short(entry: LogEntry) -> str:
    text = json.dumps(entry, ensure_ascii=False)
    return text if len(text) <= 160 else text[:159] + "…"


def read_columns(
    path: Path, columns: Sequence[str], needed: Sequence[str], name: str
) -> tuple[dict[str, list[str]], RowName]:
    """These columns of a .csv, .tsv, .parquet or .jsonl file, empty where they are missing, and its rows' names.

    ``needed`` columns must be there; ``name`` is what the sheet was called when it was written.
    """
    values: dict[str, Iterable[Any]]
    if format_suffix(path) == ".jsonl":
        records = read_records(path)
        for column in needed:
            records.values(column)
        values, row_name = {column: records.optional(column) for column in columns}, records.row_name
    else:
        frame, row_name = read_table(path)
        missing = [column for column in needed if column not in frame.columns]
        if missing:
            raise InputError(
                f"no column {missing[0]!r}",
                row="line 1",
                expected=f"the columns {', '.join(needed)}",
                fix=f"fill in the {name} of a benchmark, and keep its header",
            )
        empty = [None] * frame.height
        values = {c: frame[c].cast(pl.String) if c in frame.columns else empty for c in columns}
    texts = {column: ["" if cell is None else str(cell) for cell in cells] for column, cells in values.items()}
    if format_suffix(path) in (".jsonl", ".parquet"):  # a program that saved a sheet so has kept its apostrophes
        texts = from_spreadsheets(pl.DataFrame(texts, dict.fromkeys(texts, pl.String))).to_dict(as_series=False)
    return texts, row_name


@dataclass(frozen=True)
class FolderPage(Presented):
    """A page that explains a folder, as Markdown (README.md) or HTML."""

    heading: str
    shown: tuple[Section, ...]

    @property
    def title(self) -> str:
        return self.heading

    def sections(self) -> tuple[Section, ...]:
        return self.shown

    def as_dict(self) -> dict[str, Any]:
        return {"title": self.heading}


IMAGES = "images"
"""The folder of the copied pictures; datasets are folders beside it."""


def absolute_file(file: str) -> str:
    """The full path of a picture, also of one inside an archive."""
    archive, mark, member = file.partition(MEMBER_SEPARATOR)
    return f"{Path(archive).expanduser().resolve()}{mark}{member}"


LOG = "decisions.jsonl"


class BenchmarkFolder:
    """The benchmark in a folder, as far as it has come, and the new one that replaces it when it is done.

    A kind of benchmark says which ``form`` its log has, which ``datasets`` it consists of, and which other files may be
    there (``layout``; copied pictures are not in it: the datasets name them). The last dataset has all pictures.
    """

    form: ClassVar[str]
    datasets: ClassVar[tuple[str, ...]]
    layout: ClassVar[Layout]

    def __init__(self, target: Path) -> None:
        self.target = target
        self.log = DecisionLog.load(target / LOG, self.form) if self.layout.holds(target) else None

    def has(self, name: str, key: str) -> bool:
        """Whether the log has this key under this name."""
        return self.log is not None and self.log.head.get(name) == key

    def damaged(self) -> str:
        """The first part that was deleted or cannot be read though the log says that all are there; empty: none."""
        assert self.log is not None
        for name in self.datasets:
            try:
                Dataset.load(self.target / name)
            except InputError:
                return name
        return IMAGES if self.log.head.get("copy_images") and not (self.target / IMAGES).is_dir() else ""

    def refuse(self, *, different: bool, lost: int, sheets: str, fix: str) -> None:
        """Raise if something would be lost: another benchmark, verdicts that people wrote, files of others."""
        if different:
            raise other_content(self.target, "benchmark")
        if lost:
            raise ConflictError(f"{sheets} verdicts that would be lost: {lost:,}", fix=fix)
        self.layout.refuse_foreign_files(self.target, self._copied())

    def write_datasets(
        self, work: Workspace, datasets: Mapping[str, Dataset], *, copy_images: bool
    ) -> Mapping[str, Dataset]:
        """Begin the new folder with its datasets; returns them as written."""
        remove(work.new)
        work.new.mkdir()
        if datasets and copy_images:
            (work.new / IMAGES).mkdir()
            files: dict[str, str] = {}  # image → its path, seen from the folder of a dataset
            used: set[str] = set()
            for image, file in list(datasets.values())[-1].images.select("image", "file").iter_rows():
                stem = re.sub(r"[^\w.-]+", "_", image)[:100].strip(".") or "image"
                ending = Path(file.partition(MEMBER_SEPARATOR)[2] or file).suffix
                stem = stem.removesuffix(ending) if ending else stem
                name, number = f"{stem}{ending}", 1
                while name.casefold() in used:
                    number += 1
                    name = f"{stem}-{number}{ending}"
                used.add(name.casefold())
                files[image] = f"../{IMAGES}/{name}"
                (work.new / IMAGES / name).write_bytes(read_image_bytes(file))
            paths = pl.col("image").replace_strict(files, return_dtype=pl.String).alias("file")
            datasets = {
                name: replace(dataset, images=dataset.images.with_columns(paths), home=self.target / name)
                for name, dataset in datasets.items()
            }
        for name, dataset in datasets.items():
            (work.new / name).mkdir()
            dataset.write_into(work.new / name)
        return datasets

    def publish(self, work: Workspace, log: DecisionLog) -> None:
        """Put the new folder in place, its log last."""
        log.save(work.new / LOG)
        pictures = work.new / IMAGES
        new = [f"{IMAGES}/{file.name}" for file in pictures.iterdir()] if pictures.is_dir() else []
        work.publish(self.layout, [*self._copied(), *new])

    def _copied(self) -> list[str]:
        """The pictures that were copied into the folder, as far as its datasets can be read."""
        files: set[str] = set()
        for name in self.datasets:
            with suppress(InputError):
                images = Dataset.load(self.target / name).images
                files.update(images["file"].drop_nulls() if "file" in images.columns else ())
        return [file.removeprefix("../") for file in files if file.startswith(f"../{IMAGES}/")]

"""Runs as files that other programs read: one module per kind of file."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path

from crosslens.core.atomic import atomic_file
from crosslens.core.errors import ConflictError, UnknownNameError, UsageError
from crosslens.core.run import Run
from crosslens.report.export import clip_benchmark, csv, latex, lists, markdown, mteb
from crosslens.report.export.format import Files, Format

FORMATS: dict[str, Format] = {
    "trec": lists.TREC,
    "ranx": lists.RANX,
    "mteb": mteb.FORMAT,
    "clip-benchmark": clip_benchmark.FORMAT,
    "latex": latex.FORMAT,
    "csv": csv.FORMAT,
    "markdown": markdown.FORMAT,
}


def render(
    runs: Run | Sequence[Run], to: str, *, metrics: str | Sequence[str] | None = None, direction: str | None = None
) -> Files:
    """The content of each file of the format ``to``, by part (a direction, or ``""`` for a format of one file)."""
    runs = [runs] if isinstance(runs, Run) else list(runs)
    if to not in FORMATS:
        raise UnknownNameError("export format", to, FORMATS)
    if len(runs) != 1 and not FORMATS[to].several:
        fits = ", ".join(name for name, one in FORMATS.items() if one.several)
        raise UsageError(f"{to} files hold one run, not {len(runs)}", fix=f"export one at a time, or choose {fits}")
    files = FORMATS[to].render(runs, metrics)
    if direction is None or "" in files:
        return files
    if direction not in files:
        raise UnknownNameError("direction in this run", direction, files)
    return {"": files[direction]}


def write(files: Files, output: str | Path, *, overwrite: bool = False) -> list[Path]:
    """Write rendered files atomically; several become ``<name>-i2t<suffix>``, ``<name>-t2i<suffix>``.

    A name that ends in ``.gz`` is compressed. A different file that stands there is kept unless ``overwrite``.
    """
    output = Path(output)
    return _write({output if len(files) == 1 else _with_part(output, part): files[part] for part in files}, overwrite)


def write_named(files: Files, name: str, to: str, *, folder: str | Path = ".", overwrite: bool = False) -> list[Path]:
    """The same under the names that the format ``to`` gives its files: ``clip-b32.i2t.run``, ``clip-b32.t2i.run``."""
    ending = FORMATS[to].suffix
    places = {Path(folder) / f"{name}{part and f'.{part}'}{ending}": content for part, content in files.items()}
    return _write(places, overwrite)


def _write(content: Mapping[Path, str], overwrite: bool) -> list[Path]:
    """All of the files or none: what stands in the way is found before the first one is written."""
    # mtime=0: the same run exports to the same bytes.
    data = {
        place: gzip.compress(text.encode(), mtime=0) if place.suffix == ".gz" else text.encode()
        for place, text in content.items()
    }
    missing = {
        place: bytes_ for place, bytes_ in data.items() if not (place.is_file() and place.read_bytes() == bytes_)
    }
    for place in missing:
        if place.exists() and not overwrite:
            raise ConflictError(
                f"{place} already exists, and is another file", fix="choose another name, or pass --overwrite"
            )
    for place, bytes_ in missing.items():
        with atomic_file(place) as partial:
            partial.write_bytes(bytes_)
    return list(data)


def _with_part(output: Path, part: str) -> Path:
    gz = ".gz" if output.suffix == ".gz" else ""
    plain = output.with_name(output.name.removesuffix(gz))
    return plain.with_name(f"{plain.stem}-{part}{plain.suffix}{gz}")

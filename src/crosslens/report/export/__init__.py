"""Runs as files that other programs read: one module per kind of file."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
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

    A name that ends in ``.gz`` is compressed. Files that stand there already are kept unless ``overwrite``.
    """
    output = Path(output)
    places = {part: output if len(files) == 1 else _with_part(output, part) for part in files}
    for place in places.values():
        if place.exists() and not overwrite:
            raise ConflictError(f"{place} already exists", fix="choose another name, or pass --overwrite")
    for part, place in places.items():
        content = files[part].encode()
        with atomic_file(place) as partial:
            # mtime=0: the same run exports to the same bytes.
            partial.write_bytes(gzip.compress(content, mtime=0) if place.suffix == ".gz" else content)
    return list(places.values())


def _with_part(output: Path, part: str) -> Path:
    gz = ".gz" if output.suffix == ".gz" else ""
    plain = output.with_name(output.name.removesuffix(gz))
    return plain.with_name(f"{plain.stem}-{part}{plain.suffix}{gz}")

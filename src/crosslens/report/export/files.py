"""Runs as files that other programs read: the registry of formats, and how their files are written.

A format is a function ``(runs, metrics) -> files`` in a module of this package or of an installed one (entry-point
group ``crosslens.exports``), registered with ``@EXPORTS.register("name", suffix=".ext")``.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from crosslens.core import (
    ConflictError,
    Registry,
    Run,
    UnknownNameError,
    UsageError,
    argument,
    atomic_file,
    refuse_existing,
    tidy_output,
)

Files = Mapping[str, str]
"""Content by part: ``""`` for a format of one file, ``i2t`` and ``t2i`` for one file per direction."""

Metrics = str | Sequence[str] | None
"""The chosen metrics, as :func:`crosslens.metrics.select_metrics` reads them."""

Export = Callable[[Sequence[Run], Metrics], Files]

EXPORTS: Registry[Export] = Registry("export format", "exports", ("crosslens.report.export",))
"""Format name → export. Details: ``suffix`` ends the names of its files, each format's its own, so that all exports of
a run fit into one folder; ``several`` is True where many runs fit into one file."""


def render_export(
    runs: Run | Sequence[Run], to: str, *, metrics: str | Sequence[str] | None = None, direction: str | None = None
) -> Files:
    """The content of each file of the format ``to``, by part (a direction, or ``""`` for a format of one file)."""
    runs = [runs] if isinstance(runs, Run) else list(runs)
    export = EXPORTS[to]
    if len(runs) != 1 and not export.details.get("several"):
        names = ", ".join(entry.name for entry in EXPORTS if entry.details.get("several"))
        raise UsageError(f"{to} files hold one run, not {len(runs)}", fix=f"export one at a time, or choose {names}")
    if not runs:
        raise UsageError("no runs to export", fix="pass at least one")
    files = export.value(runs, metrics)
    if direction is None or "" in files:
        return files
    if direction not in files:
        raise UnknownNameError("direction in this run", direction, files)
    return {"": files[direction]}


def write_export(files: Files, output: str | Path, *, overwrite: bool = False) -> list[Path]:
    """Write rendered files atomically; several become ``<name>-i2t<suffix>``, ``<name>-t2i<suffix>``.

    A name that ends in ``.gz`` is compressed. An existing file with other content is kept unless ``overwrite``.
    """
    output = Path(output)
    return _write({output if len(files) == 1 else _with_part(output, part): files[part] for part in files}, overwrite)


def write_named_export(
    files: Files, name: str, to: str, *, folder: str | Path = ".", overwrite: bool = False
) -> list[Path]:
    """The same under the names that the format ``to`` gives its files: ``clip-b32.i2t.run``, ``clip-b32.t2i.run``."""
    suffix = EXPORTS[to].details["suffix"]
    paths = {Path(folder) / f"{name}{part and f'.{part}'}{suffix}": content for part, content in files.items()}
    return _write(paths, overwrite)


def _write(content: Mapping[Path, str], overwrite: bool) -> list[Path]:
    # mtime=0: the same run exports to the same bytes.
    data = {
        path: gzip.compress(text.encode(), mtime=0) if path.suffix == ".gz" else text.encode()
        for path, text in content.items()
    }
    return write_changed(data, overwrite)


def write_changed(content: Mapping[Path, bytes], overwrite: bool) -> list[Path]:
    """All of the files or none: conflicts are detected before the first file is written."""
    changed = {path: data for path, data in content.items() if not (path.is_file() and path.read_bytes() == data)}
    for path in content.keys() - changed.keys():
        tidy_output(path)
    for path in changed:
        if path.is_symlink() and not path.exists():
            refuse_existing(path, overwrite)
        if path.exists() and not overwrite:
            raise ConflictError(
                f"{path} already exists with other content",
                fix=f"choose another name, or pass {argument('overwrite', True)}",
            )
    for path, data in changed.items():
        with atomic_file(path) as partial:
            partial.write_bytes(data)
    return list(content)


def _with_part(output: Path, part: str) -> Path:
    gz = ".gz" if output.suffix == ".gz" else ""
    plain = output.with_name(output.name.removesuffix(gz))
    return plain.with_name(f"{plain.stem}-{part}{plain.suffix}{gz}")

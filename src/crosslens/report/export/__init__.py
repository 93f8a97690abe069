"""Runs as files that other programs read: the registry of formats, and how their files are written.

A format is a function ``(runs, metrics) -> files`` in a module of this package or of an installed one (entry-point
group ``crosslens.exports``), registered with ``@EXPORTS.register("name", suffix=".ext")``.
"""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import ConflictError, Registry, UnknownNameError, UsageError, argument, to_stderr
from crosslens.metrics import dataset_name, dataset_revision, select_metrics
from crosslens.pipeline import DropTable, runs_table
from crosslens.report.forms.tables import BOOKTABS, latex_table, markdown_table
from crosslens.storage import atomic_file, for_spreadsheets, refuse_existing, tidy_output
from crosslens.values import Run, split_name

Files = Mapping[str, str]
"""Content by part: ``""`` for a format of one file, ``i2t`` and ``t2i`` for one file per direction."""

Metrics = str | Sequence[str] | None
"""The chosen metrics, as :func:`crosslens.metrics.select_metrics` reads them."""

Export = Callable[[Sequence[Run], Metrics], Files]

EXPORTS: Registry[Export] = Registry("export format", "exports", ("crosslens.report.export",))
"""Format name → export. Details: ``suffix`` ends the names of its files, each format's its own, so that all exports of
a run fit into one folder; ``several`` is True where many runs fit into one file."""
_NOT_FILES = {"fiftyone": "A folder for FiftyOne.", "mlflow": "A run of MLflow.", "wandb": "A run of Weights & Biases."}


def export_formats() -> dict[str, str]:
    """All that runs can be exported to, each with what it is: files, folders and trackers."""
    return {**{entry.name: entry.summary for entry in EXPORTS}, **_NOT_FILES}


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
    gz = ".gz" if output.suffix == ".gz" else ""
    plain = output.with_name(output.name.removesuffix(gz))
    paths = {
        output if len(files) == 1 else plain.with_name(f"{plain.stem}-{part}{plain.suffix}{gz}"): content
        for part, content in files.items()
    }
    return write_changed({path: text.encode() for path, text in paths.items()}, overwrite)


def write_named_export(
    files: Files, name: str, to: str, *, folder: str | Path = ".", overwrite: bool = False
) -> list[Path]:
    """Write the files under the names of the format ``to``: ``clip-b32.i2t.run``, ``clip-b32.t2i.run``."""
    suffix = EXPORTS[to].details["suffix"]
    paths = {Path(folder) / f"{name}{part and f'.{part}'}{suffix}": content for part, content in files.items()}
    return write_changed({path: text.encode() for path, text in paths.items()}, overwrite)


def write_changed(content: Mapping[Path, bytes], overwrite: bool) -> list[Path]:
    """All of the files or none, gzipped if the name ends in ``.gz``: conflicts are found before the first is written.

    A file that holds the same already is no conflict, so that a command can be repeated.
    """
    # mtime=0: the same run exports to the same bytes.
    stored = {path: gzip.compress(data, mtime=0) if path.suffix == ".gz" else data for path, data in content.items()}
    changed = {path: data for path, data in stored.items() if not (path.is_file() and path.read_bytes() == data)}
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


_CSV_SCHEMA = {
    "run": pl.String, "direction": pl.String, "metric": pl.String, "mean": pl.Float64, "low": pl.Float64,
    "high": pl.Float64, "n": pl.Int64, "excluded": pl.Int64, "statistic": pl.String, "level": pl.Float64,
}  # fmt: skip


@EXPORTS.register("csv", suffix=".csv", several=True)
def csv(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """One row per run and metric, as fractions; with a column ``protocol`` where a run follows one."""
    rows = []
    followed = any(run.protocol for run in runs)
    schema = _CSV_SCHEMA | ({"protocol": pl.String} if followed else {})
    for run in runs:
        for name in select_metrics(run, metrics):
            direction, metric = split_name(name)
            row = {"run": run.name, "direction": direction, "metric": metric, **run[name].as_dict()}
            rows.append(row | {"protocol": run.protocol.get("name")})
    return {"": for_spreadsheets(pl.DataFrame(rows, schema=schema)).write_csv()}


@EXPORTS.register("latex", suffix=".tex", several=True)
def latex(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """A booktabs table."""
    return {"": BOOKTABS + latex_table(runs_table(runs, metrics))}


@EXPORTS.register("markdown", suffix=".md", several=True)
def markdown(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """A Markdown table with intervals."""
    return {"": markdown_table(runs_table(runs, metrics)) + "\n"}


def render_drop_table(table: DropTable, to: str) -> Files:
    """The drops of robustness studies: CSV has a row per cell, LaTeX and Markdown what is printed."""
    endings = {"csv": "", "latex": ".tex", "markdown": ".md"}
    if to not in endings:
        raise UnknownNameError("export format of robustness studies", to, endings)
    ending = endings[to]
    return {"": table.content(ending).decode() if ending else for_spreadsheets(pl.DataFrame(table.rows)).write_csv()}


@EXPORTS.register("trec", suffix=".run")
def trec(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """TREC run files, one per direction.

    ``query Q0 item rank score tag``; ids with blanks, which the format uses as separators, are escaped.
    """
    return _render(runs, ".run")


@EXPORTS.register("ranx", suffix=".ranx.json")
def ranx(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """ranx runs as JSON, one per direction.

    ``{query: {item: score}}``.
    """
    return _render(runs, ".json")


def _render(runs: Sequence[Run], suffix: str) -> Files:
    """The lists of each direction as :func:`crosslens.data.write_run` writes them for this suffix."""
    from crosslens.data import write_run

    (run,) = runs
    if not run.rankings:
        raise UsageError(
            f"the run {run.name!r} holds no ranked lists",
            fix="export from the folder that `crosslens evaluate -o` wrote, or choose csv, markdown or latex",
        )
    system = "_".join(run.name.split()) or "crosslens"
    files, notes = {}, list[str]()
    with tempfile.TemporaryDirectory() as folder:
        for direction, ranking in run.rankings.items():
            path = Path(folder) / f"{direction}{suffix}"
            write_run(ranking, path, system, notify=notes.append)
            files[direction] = path.read_text(encoding="utf-8")
    for note in notes[:1]:  # both directions have the same ids
        to_stderr(note)
    return files


_TASKS = {"t2i": "Text-to-image retrieval", "i2t": "Image-to-text retrieval", "t2t": "Text-to-text retrieval"}
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")


@EXPORTS.register("model-index", suffix=".model-index.yaml", several=True)
def model_index(runs: Sequence[Run], metrics: Metrics = None) -> Files:
    """The model-index of a Hugging Face model card.

    To be put between the ``---`` lines at the head of the card's README.md. One result per run and direction; values
    are fractions, with the interval, its level and the number of queries as arguments. Several runs are several results
    of one model where they have one name.
    """
    models: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        results = _results(run, select_metrics(run, metrics))
        if not results:
            raise UsageError(f"the run {run.name!r} has no values", fix="evaluate it again")
        models.setdefault(run.name, []).extend(results)
    if not models:
        raise UsageError("no runs to export", fix="pass at least one")
    content = [{"name": name, "results": results} for name, results in models.items()]
    return {"": "\n".join(_yaml({"model-index": content})) + "\n"}


def _results(run: Run, names: Sequence[str]) -> list[dict[str, Any]]:
    by_direction: dict[str, list[dict[str, Any]]] = {}
    for name in names:
        values = run[name]
        if isfinite(values.mean):
            facts: dict[str, Any] = {"queries": values.n}
            if all(map(isfinite, values.interval)):
                facts |= {"low": values.low, "high": values.high, "level": values.level}
            entry = {"type": name, "name": name, "value": values.mean, "args": facts}
            by_direction.setdefault(split_name(name)[0], []).append(entry)
    label = dataset_name(run) or "dataset"
    dataset: dict[str, Any] = {"type": label, "name": label}
    if dataset_revision(run):
        dataset["revision"] = dataset_revision(run)
    if run.protocol:
        dataset["args"] = {"protocol": str(run.protocol["name"])}
    return [
        {
            "task": {"type": "image-text-retrieval", "name": _TASKS.get(direction, "Image-text retrieval")},
            "dataset": dataset,
            "metrics": entries,
        }
        for direction, entries in by_direction.items()
    ]


def _yaml(value: Any, indent: str = "") -> list[str]:
    """Lines of block YAML for what JSON can hold; texts are quoted, so that none is read as anything else."""
    lines: list[str] = []
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, dict | list):
                lines += [f"{indent}{key}:", *_yaml(inner, indent + "  ")]
                continue
            text = json.dumps(inner, ensure_ascii=False)
            if isinstance(inner, float) and "e" in text and "." not in text:
                text = text.replace("e", ".0e")  # YAML 1.1 takes 1e-05 for a text
            # Characters that JSON leaves as they are, and YAML does not allow.
            text = _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
            lines.append(f"{indent}{key}: {text}")
        return lines
    for inner in value:
        first, *rest = _yaml(inner, indent + "  ")
        lines += [f"{indent}- {first.removeprefix(indent + '  ')}", *rest]
    return lines

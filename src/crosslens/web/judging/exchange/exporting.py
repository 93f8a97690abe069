"""Judgements of a project as the content of a file, by the form that is asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from crosslens.build import is_imp_folder
from crosslens.core import Dataset, UsageError, argument, parquet_bytes
from crosslens.data import format_suffix
from crosslens.web.judging.exchange.answer_files import ExportedItem, answers_csv, answers_jsonl
from crosslens.web.judging.exchange.judged_pairs import judged_pairs, with_ground_truth
from crosslens.web.judging.exchange.label_studio import label_studio_config, label_studio_tasks
from crosslens.web.judging.options import ANSWERS, IMP_SHEETS, LABEL_STUDIO, QRELS, ExportOptions
from crosslens.web.judging.results.stored import ProjectAnswers
from crosslens.web.judging.results.table import PERSON, REAL, judged_by
from crosslens.web.judging.tasks.form import label_grades

_BY_SUFFIX = {".csv": ANSWERS, ".jsonl": ANSWERS, ".parquet": QRELS, ".json": LABEL_STUDIO}
_SUFFIXES = {ANSWERS: (".csv", ".jsonl"), QRELS: (".parquet", ".csv"), LABEL_STUDIO: (".json",)}


def export_form(path: str | Path, options: ExportOptions) -> str:
    """The form that is asked for, or that the ending of the file stands for."""
    suffix = format_suffix(path)
    if options.form == IMP_SHEETS or (options.form is None and is_imp_folder(path)):
        return IMP_SHEETS
    form = options.form or _BY_SUFFIX.get(suffix)
    if form is None or suffix not in _SUFFIXES[form]:
        known = ", ".join(_SUFFIXES[form] if form else _BY_SUFFIX)
        raise UsageError(f"{path} does not end in {known}", fix="name a file with one of these endings")
    return form


def export_content(
    answers: ProjectAnswers, path: str | Path, options: ExportOptions | None = None, dataset: Dataset | None = None
) -> bytes:
    """The content of the file; a ``dataset`` adds its own pairs to qrels."""
    options = options or ExportOptions()
    form, suffix = export_form(path, options), format_suffix(path)
    if form == QRELS:
        pairs = qrels_table(answers, options, dataset)
        return bytes(parquet_bytes(pairs)) if suffix == ".parquet" else pairs.write_csv().encode()
    items = _exported(answers)
    if form == LABEL_STUDIO:
        tasks = label_studio_tasks(answers.table, items, answers.adjudicated, options.pictures)
        return (json.dumps(tasks, ensure_ascii=False, indent=1) + "\n").encode()
    write = answers_csv if suffix == ".csv" else answers_jsonl
    return write(answers.table, items, answers.adjudicated).encode()


def qrels_table(answers: ProjectAnswers, options: ExportOptions, dataset: Dataset | None = None) -> pl.DataFrame:
    """The judged pairs of a project (see :data:`PAIR_COLUMNS`), with those of the dataset where there is one."""
    form, given = answers.project.form, read_grades(options.grade)
    table = judged_by(answers.table, options.source, (REAL,))
    final = answers.adjudicated if options.source == PERSON else {}
    judged = judged_pairs(table, answers.pairs, form, options.rule, grades=given, adjudicated=final)
    if not judged.height:
        raise UsageError(
            "no judged item names an image and a caption: there is nothing to export as qrels",
            fix=f"judge items of a run or of a table of pairs first, or pass {argument('form', ANSWERS)}",
        )
    if dataset is None:
        return judged
    highest = options.truth_grade
    if highest is None and options.rule == "rating" and form.rating is not None:
        highest = float(form.rating.high)
    return with_ground_truth(judged, dataset, max(label_grades(form, given).values()) if highest is None else highest)


def read_grades(pairs: Sequence[str]) -> Mapping[str, float] | None:
    """``LABEL=NUMBER`` arguments."""
    grades = {}
    for pair in pairs:
        label, equals, number = pair.rpartition("=")
        try:
            grades[label] = float(number)
        except ValueError:
            equals = ""
        if not equals or not label or not 0 <= grades[label] < float("inf"):
            raise UsageError(
                f"{argument('grade')} {pair!r} is not LABEL=NUMBER", fix="write, for example, good=1", option="grade"
            )
    return grades or None


def interface_of(answers: ProjectAnswers) -> str:
    """The labelling interface of Label Studio for the tasks of this project."""
    return label_studio_config(answers.project.form, _exported(answers))


def _exported(answers: ProjectAnswers) -> list[ExportedItem]:
    return [ExportedItem(name, item.kind, item.content, item.expected) for name, item in answers.items.items()]

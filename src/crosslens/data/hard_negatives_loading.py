"""One way to read hard negatives: by the form's name, or by what the files look like."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crosslens.core.bundle import HEADER
from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UnknownNameError, UsageError, reading
from crosslens.data.files import existing_file, format_stem, format_suffix, read_json
from crosslens.data.hard_negatives import HardNegatives, of_dataset
from crosslens.data.hard_negatives_forms import (
    SUGAR_CREPE,
    WINOGROUND_FILE,
    read_annotations,
    read_aro,
    read_sugar_crepe,
    read_winoground,
)
from crosslens.data.json_lines import read_records
from crosslens.data.loading import load_dataset

FORMS = ("sugar_crepe", "aro", "aro_order", "winoground", "cases")
ORDER = "aro_order"


def load_hard_negatives(
    source: str | Path, form: str | None = None, *, crop: bool = True, by: Sequence[str] = ()
) -> HardNegatives | Dataset:
    """Read hard negatives.

    source: SugarCrepe's folder or one of its files; ARO's ``visual_genome_relation.json`` or ``…_attribution.json``;
        Winoground's folder or ``examples.jsonl``; or cases of one's own: a table or JSONL file or a dataset's folder
        whose captions have the columns ``case`` and ``right``
    form: ``sugar_crepe``, ``aro``, ``aro_order``, ``winoground`` or ``cases``; by default what it looks like
    crop: of ARO's photos, show the box that the case is about
    by: the columns to group by, instead of the form's own

    ``aro_order`` gives the captions' dataset: its wrong captions are made by perturbation.
    """
    path = Path(source)
    if not path.exists():
        existing_file(path)  # says what may be meant
    form = form or _form_of(path)
    if form not in FORMS:
        raise UnknownNameError("form of hard negatives", form, FORMS)
    if form == ORDER:
        return read_annotations(path)
    if form == "cases":
        with reading(path):
            return of_dataset(load_dataset(path), by)
    readers: dict[str, Any] = {"sugar_crepe": read_sugar_crepe, "winoground": read_winoground}
    found: HardNegatives = read_aro(path, crop=crop) if form == "aro" else readers[form](path)
    return found.by(by) if by else found


def _form_of(path: Path) -> str:
    if path.is_dir():
        if (path / WINOGROUND_FILE).exists():
            return "winoground"
        if (path / HEADER).exists():
            return "cases"
        if any((path / f"{kind}.json").exists() for kind in SUGAR_CREPE):
            return "sugar_crepe"
        raise InputError(
            "no hard negatives that are known here",
            file=path,
            expected=f"SugarCrepe's files, Winoground's {WINOGROUND_FILE}, or a dataset with case and right",
            fix="name the file inside it",
        )
    if format_suffix(path) == ".jsonl":
        with reading(path):
            rows = read_records(path).rows
        return "winoground" if rows and "caption_0" in rows[0] else "cases"
    if format_suffix(path) != ".json":
        return "cases"
    if format_stem(path) in SUGAR_CREPE:
        return "sugar_crepe"
    return _form_of_json(path)


def _form_of_json(path: Path) -> str:
    content = read_json(path)
    rows = list(content.values()) if isinstance(content, dict) else content
    first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
    marks = {"negative_caption": "sugar_crepe", "false_caption": "aro", "caption": ORDER}
    for key, form in marks.items():
        if key in first:
            return form
    raise UsageError(
        f"{path}: no form of hard negatives that is known", fix=f"pass form= (--form), one of {', '.join(FORMS)}"
    )

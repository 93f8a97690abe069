"""Items from tables of pairs: missing positives, label-quality lists, IMP's benchmark, and any table of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.build import candidate_captions
from crosslens.core import Dataset, InputError, UnknownNameError, is_finite_number, read_parquet_file, reading
from crosslens.data import RowName, existing_file, format_suffix, read_records, read_table, typed
from crosslens.web.judging.exchange.run_failures import sample
from crosslens.web.judging.tasks.content import KINDS, ItemContent, NewItem, ShownPicture, ShownText

CAPTION = "Caption"
_IMP_REJECTED, IMP_DATASET = "rejected.parquet", "dataset"
_OWN = ("image", "caption", "text", "kind", "expected", "why")


def pair_items(
    path: str | Path, dataset: Dataset | None, *, shown_as: str, limit: int | None = None, seed: int = 0
) -> list[NewItem]:
    """Items from a table with the columns ``image`` and ``caption`` (an id) or ``text``; .csv, .tsv, .parquet, .jsonl.

    That is also the form of ``missing-positives --table`` and of ``analyze labels -o``: where a row has a
    ``suggested_image``, the pair that is judged is that image with the caption. ``kind`` (real, practice, check,
    distractor), ``expected`` (labels, separated by ``;``) and ``why`` make practice items and attention checks. Other
    columns that hold numbers are kept for correlations.
    """
    with reading(path):
        frame, row_name = _table(path)
        if "image" not in frame.columns or not {"caption", "text"} & set(frame.columns):
            raise InputError(
                f"the columns are {', '.join(frame.columns)}",
                row="line 1",
                expected="image, and caption or text",
                fix="rename the columns",
            )
        rows = frame.with_row_index("__row")
        if "suggested_image" in frame.columns:  # rows about two copies of a picture have no caption to judge
            rows = rows.filter(pl.col("caption").is_not_null() & (pl.col("caption") != ""))
        known = _Known(dataset, shown_as)
        return [known.item(row, row_name(row.pop("__row"))) for row in sample(rows, limit, seed).iter_rows(named=True)]


def imp_items(
    folder: str | Path, *, shown_as: str, stage: str = "candidates", hardest: int = 100, distractors: int = 25,
    seed: int = 0,
) -> list[NewItem]:  # fmt: skip
    """Items from the folder that ``build imp`` wrote.

    ``candidates`` are the captions to call good or bad (the task validity). ``survey`` are the pairs of the finished
    benchmark with the lowest cosine (100 in the paper) and, as true negatives, rejected captions (the task pairs).
    """
    folder = Path(folder)
    readers: dict[str, Callable[[], list[NewItem]]] = {
        "candidates": lambda: _imp_candidates(folder, shown_as),
        "survey": lambda: _imp_survey(folder, shown_as, hardest, distractors, seed),
    }
    if stage not in readers:
        raise UnknownNameError("part of an IMP benchmark", stage, readers)
    return readers[stage]()


def _imp_candidates(folder: Path, shown_as: str) -> list[NewItem]:
    rows = candidate_captions(folder).select("image", "caption", "text", "cosine").iter_rows(named=True)
    return [_pair(shown_as, row, "imp candidates", {"cosine": row["cosine"]}) for row in rows]


def _imp_survey(folder: Path, shown_as: str, hardest: int, distractors: int, seed: int) -> list[NewItem]:
    captions = Dataset.load(folder / IMP_DATASET).captions.sort("cosine", "caption").head(hardest)
    items = [
        _pair(shown_as, row, "imp survey", {"cosine": row["cosine"]})
        for row in captions.select("image", "caption", "text", "cosine").iter_rows(named=True)
    ]
    bad = _imp_table(folder / _IMP_REJECTED).filter(pl.col("verdict") == "bad")
    return items + [
        _pair(shown_as, row, "imp survey", {}, kind="distractor", expected={"labels": ["bad"]})
        for row in sample(bad, distractors, seed).iter_rows(named=True)
    ]


def _imp_table(file: Path) -> pl.DataFrame:
    with reading(file):
        return read_parquet_file(existing_file(file))


def _pair(
    shown_as: str,
    row: Mapping[str, Any],
    origin: str,
    metrics: Mapping[str, float],
    kind: str = "real",
    expected: Mapping[str, Any] | None = None,
) -> NewItem:
    about = {"from": origin, "image": row["image"], "caption": row.get("caption"), "metrics": dict(metrics)}
    content = ItemContent((ShownPicture(shown_as, row["image"]),), (ShownText(row["text"], CAPTION),), about)
    return NewItem(content, kind, expected)


class _Known:
    """Images and captions of the dataset, where there is one."""

    def __init__(self, dataset: Dataset | None, shown_as: str) -> None:
        self.shown_as = shown_as
        self.images = None if dataset is None else set(dataset.image_ids)
        self.texts = {} if dataset is None else dict(zip(dataset.caption_ids, dataset.texts, strict=True))

    def item(self, row: Mapping[str, Any], where: int | str) -> NewItem:
        cells = {name: str(row[name]).strip() if row.get(name) is not None else "" for name in _OWN}
        image = str(row.get("suggested_image") or "").strip() or cells["image"]
        caption = cells["caption"]
        if not image or (self.images is not None and image not in self.images):
            raise InputError(f"image {image!r} is not in the dataset", row=where, fix="check the id", subject=image)
        text = cells["text"] or self.texts.get(caption, "")
        if not text:
            problem = f"caption {caption!r} is not in the dataset, and the row has no text"
            raise InputError(problem, row=where, fix="check the id, or add a column text", subject=caption)
        kind = cells["kind"] or "real"
        if kind not in KINDS:
            raise InputError(f"unknown kind {kind!r}", row=where, expected=" or ".join(KINDS), fix="correct it")
        labels = [label.strip() for label in cells["expected"].split(";") if label.strip()]
        expected = {"labels": labels, **({"why": cells["why"]} if cells["why"] else {})} if labels else None
        numbers = {name: float(value) for name, value in row.items() if name not in _OWN and is_finite_number(value)}
        pair = {"image": image, "caption": caption or None, "text": text}
        return _pair(self.shown_as, pair, "pairs", numbers, kind, expected)


def _table(path: str | Path) -> tuple[pl.DataFrame, RowName]:
    if format_suffix(path) == ".jsonl":
        records = read_records(path)
        names: Sequence[str] = list(dict.fromkeys(name for row in records.rows for name in row))
        columns = {name: [_plain(row.get(name)) for row in records.rows] for name in names}
        return pl.DataFrame(columns, strict=False), records.row_name
    frame, row_name = read_table(path)
    own = [name for name in frame.columns if name not in _OWN and name != "suggested_image"]
    return frame.with_columns(typed(frame[name]) for name in own), row_name


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | None) and not isinstance(value, bool) else str(value)

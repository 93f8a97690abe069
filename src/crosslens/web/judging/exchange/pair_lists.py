"""Items from tables: failures, missing positives, label-quality lists, IMP's pairs, and any table of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.analyze import DIFFICULTY, Categories, Difficulty, classification_pairs, read_difficulty
from crosslens.build import candidate_captions
from crosslens.core import Dataset, InputError, is_finite_number, read_json_file, reading
from crosslens.data import RowName, format_suffix, read_records, read_table, typed
from crosslens.web.judging.exchange.answer_files import is_answer_file
from crosslens.web.judging.exchange.run_failures import FAILURE_COLUMNS, failure_items, sample
from crosslens.web.judging.options import SURVEY, ImportOptions
from crosslens.web.judging.tasks.content import KINDS, ItemContent, NewItem, ShownPicture, ShownText

CAPTION, HARD = "Caption", "hard"
_OWN = ("image", "caption", "text", "kind", "expected", "why")


def pair_items(
    path: str | Path, dataset: Dataset, *, shown_as: str, limit: int | None = None, seed: int = 0
) -> list[NewItem]:
    """Items from a table with the columns ``image`` and ``caption`` (an id) or ``text``; .csv, .tsv, .parquet, .jsonl.

    That is also the form of ``missing-positives --table`` and of ``analyze labels -o``: where a row has a
    ``suggested_image``, the pair that is judged is that image with the caption. ``kind`` (real, practice, check,
    distractor), ``expected`` (labels, separated by ``;``) and ``why`` make practice items and attention checks. Other
    columns that hold numbers are kept for correlations. A table of failures (``failures.parquet`` of ``explain -o``)
    has an item per failure, as its run has.
    """
    with reading(path):
        frame, row_name = _table(path)
        if is_answer_file(frame.columns):
            raise InputError(
                "these are judgements, and their authors are named in the file",
                expected="a table of pairs",
                fix="import them with the command crosslens judging import",
            )
        if set(FAILURE_COLUMNS) <= set(frame.columns):
            failures = sample(frame, limit, seed)
            return failure_items(failures, dataset, shown_as=shown_as, origin=_explained(Path(path)))
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
        return [
            known.item(row, row_name(row.pop("__row")), "pairs")
            for row in sample(rows, limit, seed).iter_rows(named=True)
        ]


def _explained(path: Path) -> dict[str, str]:
    """The run and the direction of a table of failures, as the summary beside it names them."""
    summary = path.with_name("overview.json")
    stored = read_json_file(summary) if summary.is_file() else {}
    return {name: str(stored[name]) for name in ("run", "direction") if name in stored}


def candidate_items(folder: str | Path, *, shown_as: str) -> list[NewItem]:
    """The captions to call good or bad (the task validity), of the folder that ``build imp`` wrote."""
    rows = candidate_captions(folder).select("image", "caption", "text", "cosine").iter_rows(named=True)
    return [_pair(shown_as, row, "imp candidates", {"cosine": row["cosine"]}) for row in rows]


def survey_items(path: str | Path, dataset: Dataset, options: ImportOptions, *, shown_as: str) -> list[NewItem]:
    """IMP's survey (the task pairs), of a table that ``analyze difficulty -o`` wrote.

    Of the hard pairs, those that a model scores lowest; and true negatives: captions that people called bad, or else
    captions of other images, at most one per image.
    """
    levels = read_difficulty(path)
    score = f"score[{levels.model_named(options.model)}]"
    hard = levels.table.filter(pl.col(DIFFICULTY) == HARD)
    if not hard.height:
        raise InputError(
            f"no pair is {HARD} (levels: {', '.join(levels.levels)})",
            file=path,
            expected=f"pairs of the level {HARD}",
            fix="use a panel or a mapping that calls some pairs so",
        )
    known = _Known(dataset, shown_as)
    with reading(path):
        lowest = hard.with_row_index("__row").sort(score, "caption", "image").head(options.hardest)
        items = [known.item(row, row.pop("__row"), SURVEY) for row in lowest.iter_rows(named=True)]
    drawn = _true_negatives(dataset, levels, options)
    return items + [
        _pair(shown_as, row, SURVEY, {}, kind="distractor", expected={"labels": ["bad"]})
        for row in sample(drawn, options.distractors, options.seed).iter_rows(named=True)
    ]


def _true_negatives(dataset: Dataset, levels: Difficulty, options: ImportOptions) -> pl.DataFrame:
    rejected = None
    if options.rejected is not None:
        rejected = read_table(options.rejected).frame
        if "verdict" in rejected.columns:  # what is generic or unsure may fit
            rejected = rejected.filter(pl.col("verdict") == "bad")
    with reading(options.rejected or dataset.name):
        pairs = classification_pairs(dataset, Categories.of(levels), rejected, seed=options.seed)
    of, chosen = pairs.pairs.dataset, ~pairs.matches
    captions = pairs.pairs.captions[chosen]
    images = [of.image_ids[row] for row in pairs.pairs.images[chosen]]
    ids = [of.caption_ids[row] if rejected is None else None for row in captions]
    columns = {"image": images, "caption": ids, "text": [of.texts[row] for row in captions]}
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


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
    """Images and captions of the dataset."""

    def __init__(self, dataset: Dataset, shown_as: str) -> None:
        self.shown_as = shown_as
        self.images = set(dataset.image_ids)
        self.texts = dict(zip(dataset.caption_ids, dataset.texts, strict=True))

    def item(self, row: Mapping[str, Any], where: int | str, origin: str) -> NewItem:
        cells = {name: str(row[name]).strip() if row.get(name) is not None else "" for name in _OWN}
        image = str(row.get("suggested_image") or "").strip() or cells["image"]
        caption = cells["caption"]
        if image not in self.images:
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
        return _pair(self.shown_as, pair, origin, numbers, kind, expected)


def _table(path: str | Path) -> tuple[pl.DataFrame, RowName]:
    if format_suffix(path) == ".jsonl":
        records = read_records(path)
        names: Sequence[str] = list(dict.fromkeys(name for row in records.rows for name in row))
        columns = {name: [_plain(row.get(name)) for row in records.rows] for name in names}
        return pl.DataFrame(columns, strict=False), records.row_name
    frame, row_name = read_table(path)
    ids = (*_OWN, *FAILURE_COLUMNS, "suggested_image")
    return frame.with_columns(typed(frame[name]) for name in frame.columns if name not in ids), row_name


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | None) and not isinstance(value, bool) else str(value)

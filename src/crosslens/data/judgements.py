"""Which pairs of images and captions are relevant, as people judged them.

Human judgements of pairs are read from several file formats as rows (image, caption, scores) and aligned with a
dataset; the positives of published sets come from the files inside the ``eccv_caption`` package.
"""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import numpy as np
import polars as pl

from crosslens.core import InputError, MissingExtraError, UnknownNameError, UsageError, argument, reading
from crosslens.data.files import format_stem, format_suffix, numbered_lines, read_json, read_lines
from crosslens.data.rankings import read_qrels
from crosslens.data.rows import (
    IMAGE_COLUMNS,
    TABLE_SUFFIXES,
    RowName,
    by_row,
    check_ids,
    check_texts,
    on_lines,
    read_table,
    require_column,
    text_table,
    wrong_width,
)
from crosslens.data.vectors import read_array
from crosslens.storage import Array, BoolArray, FloatArray, IntArray, frozen
from crosslens.values import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Dataset, Relevance, without_image_ending

KINDS = {"eccv": "eccv", "cxc": "cxc", "coco": "original"}
_SPLIT = "coco_test_ids.npy"
_FILES = {IMAGE_TO_TEXT: "{}_image_to_caption.json", TEXT_TO_IMAGE: "{}_caption_to_image.json"}


def read_eccv(kind: str = "eccv", direction: str = IMAGE_TO_TEXT, outside: bool = False) -> Relevance:
    """The positives of the COCO 5K test split.

    kind: ``eccv`` (ECCV Caption, verified by people among what models found), ``cxc`` (Crisscrossed Captions), or
        ``coco`` (each image's own captions)
    direction: ``i2t`` or ``t2i``; ECCV Caption judged different queries in each, so one is not the other flipped
    outside: keep positives that are not in the split

    Ids are COCO's, in the order of the split: all 5,000 images and all 25,000 captions, whether judged or not. So both
    directions go with the Karpathy split: ``evaluate(dataset, …, relevance={"i2t": read_eccv("eccv", "i2t"), "t2i":
    read_eccv("eccv", "t2i")})``.

    ECCV Caption's i2t judgements name two captions that the split leaves out. No system can find them, yet the package
    ``eccv_caption`` counts them among the relevant ones, and so do published figures: they are lower by a hair (mAP@R
    0.2027555 instead of 0.2027888 for one system). ``outside=True`` keeps them, behind the captions of the split;
    evaluate ranked lists with it, and without a dataset, for the package's own figure.
    """
    if kind not in KINDS:
        raise UsageError(f"unknown kind {kind!r}", fix=f"use one of: {', '.join(KINDS)}")
    if direction not in _FILES:
        raise UsageError(f"unknown direction {direction!r}", fix="use 'i2t' or 't2i'")
    folder = _folder()
    # Images and captions in the order of the Karpathy test split.
    captions = tuple(str(caption) for caption in np.asarray(read_array(folder / _SPLIT)))
    owner = _pairs(folder / _FILES[TEXT_TO_IMAGE].format(KINDS["coco"]))
    images = tuple(dict.fromkeys(str(owner[caption][0]) for caption in captions))
    file = folder / _FILES[direction].format(KINDS[kind])
    pairs = _pairs(file)
    query_ids, item_ids = (images, captions) if direction == IMAGE_TO_TEXT else (captions, images)
    if outside:
        item_ids = tuple(dict.fromkeys((*item_ids, *(str(item) for items in pairs.values() for item in items))))
    else:
        captions_of_split = set(item_ids)
        pairs = {query: [item for item in items if str(item) in captions_of_split] for query, items in pairs.items()}
    queries = [query for query, items in pairs.items() for _ in items]
    listed = [item for items in pairs.values() for item in items]
    with reading(file):
        return Relevance.from_pairs(queries, listed, query_ids=query_ids, item_ids=item_ids, source=kind)


def _folder() -> Path:
    # Found, not imported: the package itself warns about optional parts on import, and only its data are needed.
    spec = importlib.util.find_spec("eccv_caption")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("reading ECCV Caption and CxC positives", "eccv_caption", "eccv")
    return Path(spec.submodule_search_locations[0]) / "data"


def _pairs(file: Path) -> dict[str, list[Any]]:
    content = read_json(file)
    if not isinstance(content, dict) or not all(isinstance(items, list) for items in content.values()):
        raise InputError(
            "not a table of positives", file=file, expected="{query: [items]}", fix="install eccv_caption again"
        )
    return content


By = Literal["id", "text", "either"]

GRADE = "grade"
"""The column with the grade that was decided on for a pair, whoever judged it."""
_TEXT_COLUMNS = ("text", "caption_text")
_SCORE_COLUMNS = ("score", "agg_score")


@dataclass(frozen=True)
class JudgedRows:
    """One entry per row of the file; ``scores`` holds one list per row, a number per judge.

    ``by`` says how captions are named: by their ids, by their texts, or by either, which the dataset decides.
    ``judges`` names the judge of each row, where the file does. ``same_persons``: a column of scores is one person's
    throughout; Flickr8k's files sort the scores of a pair.
    """

    images: list[str]
    captions: list[str]
    by: By
    scores: list[list[float]]
    row_name: RowName
    judges: list[str] | None = None
    same_persons: bool = True


def read_pairs(path: str | Path) -> JudgedRows:
    """A table with the columns image, caption (an id or the text) and score; a pair judged by several has several rows.

    ``caption_id`` or ``text`` instead of ``caption`` says which of the two it is. A column ``judge`` names the judge of
    each row; columns ``score_1``, ``score_2``, … hold one judge each (empty: did not judge). Beside a column ``grade``,
    rows without a score are not judgements: the pairs of the ground truth in exported judgements.
    """
    frame, name_of = read_table(path)
    rows = list(range(frame.height))
    if {"score", GRADE} <= set(frame.columns):
        rows = (frame["score"].is_not_null() & (frame["score"].cast(pl.String) != "")).arg_true().to_list()
        frame = frame[rows]

    def row_name(index: int) -> int | str:
        return name_of(rows[index])

    image_at = require_column(frame, "image", IMAGE_COLUMNS)
    caption_at = require_column(frame, "caption", ("caption_id", *_TEXT_COLUMNS, "caption"))
    by: By = "either" if caption_at == "caption" else "text" if caption_at in _TEXT_COLUMNS else "id"
    score_columns = [name for name in _SCORE_COLUMNS if name in frame.columns][:1]
    score_columns = score_columns or [name for name in frame.columns if re.fullmatch(r"score[ _-]?\w+", name)]
    if not score_columns:
        problem = f"no column for the score (found: {', '.join(frame.columns)})"
        expected = "a header with score, or with score_1, score_2, … for several judges"
        raise InputError(problem, row="line 1", expected=expected, fix="rename the column")
    columns = [
        _numbers(frame[name].to_list(), name, row_name, optional=len(score_columns) > 1) for name in score_columns
    ]
    scores = [list(row) for row in zip(*columns, strict=True)]
    for index, row in enumerate(scores):
        if all(map(math.isnan, row)):
            raise InputError("the pair has no score", row=row_name(index), expected="a score", fix="remove the row")
    captions = frame[caption_at].to_list()
    return JudgedRows(
        check_ids(frame[image_at].to_list(), "image id", row_name),
        check_texts(captions, row_name) if by == "text" else check_ids(captions, "caption", row_name),
        by,
        scores,
        row_name,
        check_ids(frame["judge"].to_list(), "judge", row_name) if "judge" in frame.columns else None,
    )


def read_cxc(path: str | Path) -> JudgedRows:
    """Crisscrossed Captions' image–text files (``sits_val.csv``, ``sits_test.csv``): caption, image, score from 0 to 5.

    The raw files, one row per judge, are read too. The files for two captions (sts) or two images (sis) are refused.
    """
    frame, row_name = read_table(path)
    for other, what in (("caption1", "two captions"), ("image1", "two images")):
        if other in frame.columns:
            raise InputError(
                f"the file judges {what}", row="line 1", expected="images against captions", fix="use a sits_ file"
            )
    score_at = next((name for name in (*_SCORE_COLUMNS, "annotator_score") if name in frame.columns), None)
    if score_at is None or not {"caption", "image"} <= set(frame.columns):
        expected = "caption, image, agg_score, sampling_method"
        fix = "check that the file is CxC's sits_val.csv or sits_test.csv"
        raise InputError(f"the columns are {', '.join(frame.columns)}", row="line 1", expected=expected, fix=fix)
    return JudgedRows(
        check_ids(frame["image"].to_list(), "image", row_name),
        check_ids(frame["caption"].to_list(), "caption", row_name),
        "id",
        [[score] for score in _numbers(frame[score_at].to_list(), score_at, row_name, low=0, high=5)],
        row_name,
    )


def read_flickr8k_expert(path: str | Path) -> JudgedRows:
    """Flickr8k's ``ExpertAnnotations.txt``: photo, caption id, and three experts' grades from 1 to 4."""
    images, captions, numbers, row_name = _flickr_lines(path, "photo.jpg, photo.jpg#n, three grades from 1 to 4")
    for index, row in enumerate(numbers):
        for grade in row:
            if grade not in (1, 2, 3, 4):
                raise InputError(
                    f"the grade is {grade:g}", row=row_name(index), expected="1, 2, 3 or 4", fix="correct the grade"
                )
    return JudgedRows(images, captions, "id", numbers, row_name, same_persons=False)


def read_flickr8k_crowd(path: str | Path) -> JudgedRows:
    """Flickr8k's ``CrowdFlowerAnnotations.txt``: photo, caption id, share of yes, number of yes, number of no."""
    images, captions, numbers, row_name = _flickr_lines(
        path, "photo.jpg, photo.jpg#n, share of yes, number of yes, of no"
    )
    scores = []
    for index, (share, yes, no) in enumerate(numbers):
        whole = all(count >= 0 and count == int(count) for count in (yes, no))
        if not whole or not yes + no or abs(share - yes / (yes + no)) > 1e-6:
            raise InputError(
                f"{share:g} of yes with {yes:g} yes and {no:g} no",
                row=row_name(index),
                expected="the share of yes, which is yes ÷ (yes + no)",
                fix="check that the file is CrowdFlowerAnnotations.txt",
            )
        scores.append([1.0] * int(yes) + [0.0] * int(no))
    return JudgedRows(images, captions, "id", scores, row_name, same_persons=False)


FORMAT_READERS: dict[str, Callable[[str | Path], JudgedRows]] = {
    "pairs": read_pairs,
    "cxc": read_cxc,
    "flickr8k-expert": read_flickr8k_expert,
    "flickr8k-cf": read_flickr8k_crowd,
}
"""Format → function that reads it."""


def _flickr_lines(path: str | Path, expected: str) -> tuple[list[str], list[str], list[list[float]], RowName]:
    lines, line_numbers = numbered_lines(path)
    row_name = on_lines(line_numbers)
    rows = [line.split("\t") for line in lines]
    for index, row in enumerate(rows):
        if len(row) != 5:
            fix = "check that tabs were not lost, or name another format of judgements"
            raise wrong_width(row, row_name(index), f"5 columns, tabs between them: {expected}", fix)
    images, captions, *columns = zip(*rows, strict=True)
    numbers = [_numbers(column, "score", row_name) for column in columns]
    return (
        check_ids(images, "image id", row_name),
        check_ids(captions, "caption id", row_name),
        [list(row) for row in zip(*numbers, strict=True)],
        row_name,
    )


def _numbers(
    values: Sequence[Any], what: str, row_name: RowName, *, optional: bool = False, low: float = -math.inf,
    high: float = math.inf,
) -> list[float]:  # fmt: skip
    """Finite numbers; an empty value is NaN where it is optional."""
    numbers = []
    for index, value in enumerate(values):
        if optional and (value is None or value == ""):
            numbers.append(math.nan)
            continue
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number) or not low <= number <= high:
            expected = "a finite number" + (f" from {low:g} to {high:g}" if math.isfinite(high) else "")
            fix = "correct the score, or remove the row"
            raise InputError(f"the {what} is {value!r}", row=row_name(index), expected=expected, fix=fix)
        numbers.append(number)
    return numbers


_MOST_PERSONS = 16
"""With more judges, most of whom judged few pairs, a column per person would be nearly empty."""


@dataclass(frozen=True, eq=False)
class Judgements:
    """Each judged pair once, in the order of the file.

    ``images``    the row of the image in the dataset
    ``captions``  the row of the caption; from the dataset's number of captions on, one of ``others``
    ``scores``    the mean of the judges
    ``judges``    pairs × judges, NaN where a pair has fewer
    ``same_persons``  whether a column of ``judges`` is one person's throughout
    ``others``    judged texts that the dataset does not have
    ``dataset``   the fingerprint of the dataset that the rows belong to
    ``skipped``   how many rows of the file were left out because the dataset does not have them
    """

    images: IntArray
    captions: IntArray
    scores: FloatArray
    judges: FloatArray
    dataset: str
    others: tuple[str, ...] = ()
    source: str = "judgements"
    skipped: int = 0
    same_persons: bool = True

    def __post_init__(self) -> None:
        for name in ("images", "captions", "scores", "judges"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @staticmethod
    def of(
        dataset: Dataset, images: Sequence[str], captions: Sequence[str], scores: Sequence[Any], source: str = "own"
    ) -> Judgements:
        """From ids (captions may be named by their texts) and scores, each a number or one number per judge."""
        if not len(images) == len(captions) == len(scores):
            counts = f"{len(images)} images, {len(captions)} captions, {len(scores)} scores"
            raise InputError(counts, expected="equal lengths")
        numbers = [np.atleast_1d(np.asarray(score, np.float64)) for score in scores]
        for row, values in enumerate(numbers):
            if not values.size or not np.isfinite(values).all():
                raise InputError(f"the score is {scores[row]}", row=row, expected="finite numbers", fix="correct it")
        lists = [values.tolist() for values in numbers]
        rows = JudgedRows(list(map(str, images)), list(map(str, captions)), "either", lists, by_row)
        return _aligned(rows, dataset, source, skip_unknown=False)

    def __len__(self) -> int:
        return len(self.scores)

    def select(self, rows: Array) -> Judgements:
        """Only these pairs, by row numbers or a boolean mask."""
        parts = {name: getattr(self, name)[rows] for name in ("images", "captions", "scores", "judges")}
        return replace(self, **parts)

    def check(self, dataset: Dataset) -> None:
        """Raise for another dataset than the one that the rows belong to."""
        if self.dataset != dataset.fingerprint:
            raise UsageError("the judgements were read for another dataset", fix="read them again with this dataset")

    def is_relevant(self, relevance: Relevance) -> BoolArray:
        """Which pairs are relevant by ``relevance``, whose queries are the dataset's images and items its captions."""
        relevant = relevance.relevant()
        width = len(relevant.item_ids) + len(self.others)
        return np.isin(self.images * width + self.captions, relevant.rows * width + relevant.items)

    def among_references(self, dataset: Dataset) -> BoolArray:
        """Which pairs have a caption whose text equals that of one of the image's own captions, spaces aside."""
        texts = [_normal_spaces(text) for text in (*dataset.texts, *self.others)]
        references = set(zip(dataset.caption_image.tolist(), texts, strict=False))
        pairs = zip(self.images.tolist(), self.captions.tolist(), strict=True)
        return np.array([(image, texts[caption]) in references for image, caption in pairs], np.bool_)

    def __repr__(self) -> str:
        return f"Judgements({self.source!r}, {len(self):,} pairs, {int(np.isfinite(self.judges).sum()):,} scores)"


def read_judgements(
    path: str | Path, dataset: Dataset, form: str | None = None, *, skip_unknown: bool = False
) -> Judgements:
    """Human scores of image–caption pairs.

    A pair may have several rows, one per judge: its score is the mean.

    Args:
        path: The file.
        dataset: What the pairs are of.
        form: ``pairs`` (a table with the columns image, caption, score), ``cxc`` (Crisscrossed Captions),
            ``flickr8k-expert`` or ``flickr8k-cf``; by default guessed from the file.
        skip_unknown: Leave out rows of images and captions that the dataset does not have, and count them; otherwise
            the first one raises.
    """
    with reading(path):
        if form is None:
            lines = [""] if format_suffix(path) == ".parquet" else read_lines(path)
            scores = {score for line in lines for score in line.split("\t")[2:]}
            if "agg_score" in lines[0] or "sampling_method" in lines[0]:
                form = "cxc"
            elif format_suffix(path) in TABLE_SUFFIXES:
                form = "pairs"
            else:  # lines of five columns are Flickr8k's, by their scores
                form = "flickr8k-expert" if scores <= set("1234") else "flickr8k-cf"
        if form not in FORMAT_READERS:
            raise UnknownNameError("format of judgements", form, FORMAT_READERS)
        return _aligned(FORMAT_READERS[form](path), dataset, format_stem(path), skip_unknown=skip_unknown)


def where_coco_ids_are(unknown: str, dataset_ids: Iterable[str]) -> str:
    """What to do where judgements name COCO's captions by number, and the dataset's file has no ids; else nothing."""
    first = next(iter(dataset_ids), "")
    named_by_file = "#" in first or first.startswith("COCO_")  # as readers call what has no id
    if not (named_by_file and unknown.rpartition(":")[2].isdecimal()):
        return ""
    return (
        "the judgements name captions by COCO's ids, which the dataset's file does not hold (BLIP's and fine-grained "
        "captions have none): read Karpathy's dataset_coco.json, or COCO's captions_val2014.json, which have them"
    )


def _aligned(rows: JudgedRows, dataset: Dataset, source: str, *, skip_unknown: bool) -> Judgements:
    """The judged pairs by their rows in the dataset; an unknown image or caption raises or is skipped.

    A caption that is named by its text is the image's own of that text, otherwise the first of the dataset. A text that
    the dataset lacks is one of the ``others``, if it is surely a text or has spaces.
    """
    image_rows, caption_rows = image_names(dataset), {name: row for row, name in enumerate(dataset.caption_ids)}
    by_text = rows.by == "text" or (rows.by == "either" and not any(name in caption_rows for name in rows.captions))
    first: dict[str, int] = {}
    of_image: dict[tuple[int, str], int] = {}
    if by_text:
        for row, (text, image) in enumerate(zip(dataset.texts, dataset.caption_image.tolist(), strict=True)):
            first.setdefault(_normal_spaces(text), row)
            of_image.setdefault((image, _normal_spaces(text)), row)
    others: list[str] = []
    pairs: dict[tuple[int, int], list[int]] = {}
    for index, (image_name, name) in enumerate(zip(rows.images, rows.captions, strict=True)):
        image_row, caption_row = _row_of(image_name, image_rows), None if by_text else _row_of(name, caption_rows)
        if by_text and image_row is not None:
            key = _normal_spaces(name)
            caption_row = of_image.get((image_row, key), first.get(key))
            if caption_row is None and (rows.by == "text" or " " in key):
                caption_row = first[key] = len(dataset.texts) + len(others)
                others.append(name)
        if image_row is not None and caption_row is not None:
            pairs.setdefault((image_row, caption_row), []).append(index)
        elif not skip_unknown:
            is_image = image_row is None
            noun, unknown = ("image", image_name) if is_image else ("caption", name)
            ids = image_rows if is_image else caption_rows
            near = UnknownNameError(noun, unknown, list(ids)[:20_000]).suggestions
            number = len(dataset.image_ids if is_image else dataset.caption_ids)
            expected = f"one of the {number:,} {noun}s of the dataset, by its id" + ("" if is_image else " or its text")
            skip = f"or leave out rows of unknown images and captions: {argument('skip_unknown', True)}"
            fix = f"did you mean {near[0]!r}? {skip}" if near else f"check that both are of one split, {skip}"
            fix = where_coco_ids_are(unknown, ids) or fix
            raise InputError(f"unknown {noun} {unknown!r:.80}", row=rows.row_name(index), expected=expected, fix=fix)
    if not rows.images:
        raise InputError("no judged pairs", expected="a row per pair below the header", fix="check the file")
    if not pairs:
        expected = f"images such as {dataset.image_ids[0]!r}; found {rows.images[0]!r}"
        fix = "check that both are of the same collection and split"
        raise InputError("none of the judged pairs is in the dataset", expected=expected, fix=fix)
    judges, same_persons = _by_person(rows, list(pairs.values()))
    images, captions = np.array(list(pairs), np.int64).reshape(-1, 2).T
    skipped = len(rows.images) - sum(map(len, pairs.values()))
    means = np.nanmean(judges, axis=1)
    return Judgements(
        images, captions, means, judges, dataset.fingerprint, tuple(others), source, skipped, same_persons
    )


def _by_person(rows: JudgedRows, pairs: list[list[int]]) -> tuple[FloatArray, bool]:
    """The scores of every pair, and whether a column is one person's: by the judge's name, or as the file has them."""
    judge_of, same_persons = rows.judges or [], rows.same_persons
    names = sorted(set(judge_of))
    for members in pairs if judge_of else ():
        first_rows: dict[str, int] = {}
        for row in members:
            if (earlier := first_rows.setdefault(judge_of[row], row)) != row:
                pair = f"image {rows.images[row]!r} and caption {rows.captions[row]!r:.60}"
                raise InputError(
                    f"judge {judge_of[row]!r} judged {pair} before (at {rows.row_name(earlier)})",
                    row=rows.row_name(row),
                    expected="each pair at most once per judge",
                    fix="keep one of the two rows",
                )
    if names and len(names) <= _MOST_PERSONS and all(len(scores) == 1 for scores in rows.scores):
        column = {name: number for number, name in enumerate(names)}
        cells = [[(column[judge_of[row]], rows.scores[row][0]) for row in members] for members in pairs]
    elif same_persons and not names and all(len(members) == 1 for members in pairs):
        cells = [list(enumerate(rows.scores[members[0]])) for members in pairs]
    else:
        lists = ((score for row in members for score in rows.scores[row] if not math.isnan(score)) for members in pairs)
        cells, same_persons = [list(enumerate(scores)) for scores in lists], False
    judges = np.full((len(cells), max(at + 1 for pair in cells for at, _ in pair)), np.nan)
    for number, scores in enumerate(cells):
        for at, score in scores:
            judges[number, at] = score
    return judges, same_persons


def _normal_spaces(text: str) -> str:
    return " ".join(text.split())


def image_names(dataset: Dataset) -> dict[str, int]:
    """Id or file name, with or without its ending → row of the image; ids come first where both occur.

    A name without ending that two images share is left out.
    """
    files = dataset.images["file"].to_list() if "file" in dataset.images.columns else []
    names = {PurePosixPath(file).name: row for row, file in enumerate(files) if isinstance(file, str) and file}
    names |= {image: row for row, image in enumerate(dataset.image_ids)}
    stems: dict[str, set[int]] = {}
    for name, row in names.items():
        stems.setdefault(without_image_ending(name), set()).add(row)
    return {**{stem: min(rows) for stem, rows in stems.items() if len(rows) == 1}, **names}


def _row_of(name: str, rows: dict[str, int]) -> int | None:
    """The row of a name, which is also tried in the spellings that datasets use for the same image or caption.

    ``COCO_val2014_000000391895.jpg`` is image 391895, ``COCO_val2014:sentid:770337`` caption 770337. Any other image
    may be called with the ending of its file.
    """
    spellings = [name, without_image_ending(name)]
    if name.startswith("COCO_"):
        last = name.rpartition(":")[2] if ":" in name else PurePosixPath(name).stem.rpartition("_")[2]
        spellings = [name, PurePosixPath(name).stem, last, last.lstrip("0")]
    return next((rows[spelling] for spelling in spellings if spelling in rows), None)


JUDGEMENT_SETS = tuple(KINDS)
"""Judgements that are known by name: those of the COCO 5K test split that :func:`read_eccv` reads."""


def read_relevance(source: str | Path) -> Relevance | dict[str, Relevance]:
    """The judgements of a set by its name, in both directions; or of a qrels file, in the direction that it has.

    A ``.parquet`` or ``.csv`` file is a table of judged pairs (see :func:`read_graded_table`).
    """
    if source in KINDS:
        return {direction: read_eccv(str(source), direction) for direction in _FILES}
    return read_graded_table(source) if format_suffix(source) in (".parquet", ".csv") else read_qrels(source)


def relevance_files(source: str | Path) -> list[Path]:
    """The files that :func:`read_relevance` reads."""
    if source not in KINDS:
        return [Path(source)]
    folder = _folder()
    kinds = {KINDS[str(source)], KINDS["coco"]}  # the order of the split comes from the latter
    return [folder / _SPLIT, *(folder / name.format(kind) for kind in sorted(kinds) for name in _FILES.values())]


def read_graded_table(path: str | Path) -> Relevance:
    """Judged pairs of images and captions, by their ids.

    A column ``grade`` is the grade of the pair, the same in all its rows; empty where nothing was decided, which makes
    the pair unjudged. Without it the grade is the mean of the pair's scores, as :func:`read_pairs` reads them.
    """
    with reading(path):
        frame, row_name = read_table(path)
        if GRADE in frame.columns:
            images = frame[require_column(frame, "image", IMAGE_COLUMNS)].to_list()
            captions = frame[require_column(frame, "caption", ("caption_id", "caption"))].to_list()
            numbers = _numbers(frame[GRADE].to_list(), GRADE, row_name, optional=True)
            names = check_ids(images, "image id", row_name), check_ids(captions, "caption", row_name)
        else:
            rows = read_pairs(path)
            names, row_name = (rows.images, rows.captions), rows.row_name
            numbers = [float(np.nanmean(scores)) for scores in rows.scores]
        table = text_table({"grade": pl.Series(numbers, dtype=pl.Float64)}, image=names[0], caption=names[1])
        first = table.select(pl.col("grade").first().over("image", "caption")).to_series()
        others = (table["grade"] != first).arg_true()  # an empty grade, NaN, equals another one
        if GRADE in frame.columns and len(others):
            problem = f"the pair has the grades {first[others[0]]:g} and {numbers[others[0]]:g}"
            expected, fix = "one grade in all rows of a pair", "correct one of the two"
            raise InputError(problem, row=row_name(others[0]), expected=expected, fix=fix)
        grade = pl.col("grade").first() if GRADE in frame.columns else pl.col("grade").mean()
        pairs = table.group_by("image", "caption", maintain_order=True).agg(grade).filter(pl.col("grade").is_not_nan())
        if not pairs.height:
            raise InputError("no pair has a grade", expected="at least one judged pair", fix="judge some items first")
        image_ids, caption_ids, grades = (pairs[name].to_list() for name in ("image", "caption", "grade"))
        return Relevance.from_pairs(image_ids, caption_ids, grades, source=format_stem(path))

"""Whether the ids in a person's files are those of the dataset; one that is not is named with its file and line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UnknownNameError, reading
from crosslens.core.ids import Ids
from crosslens.core.lists import RankedLists
from crosslens.core.relevance import Relevance
from crosslens.data.checks import check_ids, check_known, check_unique, on_lines
from crosslens.data.files import read_lines
from crosslens.pipeline.sources import gallery_of, relevance_from

_SAME_SPLIT = "check that both are of the same split and use the same ids"


def read_ids(path: str, known: Ids | None, what: str) -> Ids:
    """The ids in a file, one per line. They may be more than the ``known`` ones of the dataset, but not fewer."""
    with reading(path):
        lines = [line.strip() for line in read_lines(path)]
        place = on_lines(range(1, len(lines) + 1))
        ids = check_ids(lines, f"{what} id", place)
        check_unique(ids, what, place)
        if known is not None and not set(known) <= set(ids):
            check_known(ids, known, what, place)
            demand_all(ids, known, what)
        return tuple(ids)


def demand_all(ids: Sequence[str], known: Ids | None, what: str) -> None:
    """Every item of the dataset must be among the ids."""
    there = set(ids)
    missing = [one for one in known or () if one not in there]
    if missing:
        raise InputError(
            f"no vector for {what} {missing[0]!r}" + (f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""),
            expected=f"a vector for each of the {len(known or ()):,} {what}s of the dataset",
            fix="encode what is missing, or evaluate on the images that have one",
        )


def check_judgements(path: str, relevance: Relevance, dataset: Dataset) -> None:
    """Judged queries and items must be images and captions of the dataset."""
    known = {*dataset.image_ids, *dataset.caption_ids}
    for what, ids in (("query", relevance.query_ids), ("item", relevance.item_ids)):
        _refuse_strange(path, ids, known, what, _SAME_SPLIT)
    with reading(path):
        relevance_from(dataset, relevance)


def check_company(path: str, relevance: Relevance, lists: Iterable[RankedLists]) -> None:
    """Judgements that know no query of ranked lists are of something else."""
    judged = {*relevance.query_ids, *relevance.item_ids}
    for one in lists:
        if not judged.intersection(one.query_ids):
            raise InputError(
                f"none of the {len(one.query_ids):,} queries of the run is judged here (such as {one.query_ids[0]!r})",
                file=path,
                expected=f"judgements of those queries; here are ids such as {relevance.query_ids[0]!r}",
                fix=_SAME_SPLIT,
            )


def check_lists(path: str, lists: RankedLists, direction: str, dataset: Dataset) -> None:
    """Queries and items of ranked lists must be those of the dataset."""
    queries, items = gallery_of(dataset, direction)
    _refuse_strange(path, lists.query_ids, set(queries), "query", _SAME_SPLIT)
    unjudged = "or give judgements instead of a dataset: an item that nobody judged then counts as irrelevant"
    _refuse_strange(path, lists.item_ids, set(items), "item", f"{_SAME_SPLIT}, {unjudged}")


def _refuse_strange(path: str, ids: Ids, known: set[str], what: str, fix: str) -> None:
    strange = [one for one in ids if one not in known]
    if not strange:
        return
    near = UnknownNameError(what, strange[0], list(known)[:20_000]).suggestions
    raise InputError(
        f"unknown {what} id {strange[0]!r}" + (f", and {len(strange) - 1:,} more" if len(strange) > 1 else ""),
        file=path,
        row=_line_with(path, strange[0]),
        expected="ids of the dataset",
        fix=f"did you mean {near[0]!r}?" if near and len(strange) == 1 else fix,
    )


def _line_with(path: str, name: str) -> str | None:
    """The line on which a name first stands by itself; None in files that are one line."""
    alone = re.compile(rf"(?<![^\s\"\[{{:,]){re.escape(name)}(?![^\s\"\]}}:,])")
    lines = read_lines(path)
    found = next((number for number, line in enumerate(lines, start=1) if alone.search(line)), None)
    return f"line {found}" if found and len(lines) > 1 else None

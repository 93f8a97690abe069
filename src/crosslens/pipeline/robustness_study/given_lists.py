"""Ranked lists by perturbation: read from files, brought into one form, and checked against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import (
    TEXT_TO_IMAGE,
    Dataset,
    Ids,
    InputError,
    Progress,
    RankedLists,
    Relevance,
    UsageError,
    argument,
    fingerprint,
    match_ids,
    reading,
)
from crosslens.data import format_stem, read_run
from crosslens.perturbations import chosen_perturbations
from crosslens.pipeline.inputs import lists_by_direction
from crosslens.pipeline.known_ids import SAME_SPLIT, direction_ids
from crosslens.pipeline.robustness_study.variants import Variant

UNPERTURBED = "none"
"""The name of the unperturbed list among those of the perturbations."""
_NAMED = 5
"""How many missing ids a message names."""
_EXAMPLE = "none=plain.run"

Lists = dict[str, RankedLists]
"""The ranked lists of one system by direction."""


def read_runs(sources: Sequence[str], qrels: str | Path | None = None) -> dict[str, tuple[RankedLists, ...]]:
    """The lists by perturbation, from ``NAME=FILE`` words or folders, whose files are named by their perturbation.

    A name that is given twice has a file for each direction. In a folder, ``qrels`` and hidden files are passed over.
    """
    lists: dict[str, list[RankedLists]] = {}
    for source in sources:
        name, equals, file = source.partition("=")
        if Path(source).is_dir():
            for path in _run_files(Path(source), qrels):
                lists.setdefault(format_stem(path), []).append(read_run(path))
        elif equals and name and file:
            lists.setdefault(name.strip(), []).append(read_run(file))
        else:
            raise UsageError(
                f"{source!r} is neither NAME=FILE nor a folder", fix=f"write, for example, {_EXAMPLE}", option="runs"
            )
    return {name: tuple(several) for name, several in lists.items()}


def _run_files(folder: Path, qrels: str | Path | None) -> list[Path]:
    """The files of a folder but hidden ones and judgements, in the order of the known perturbations, then by name."""
    judged = None if qrels is None else Path(qrels).absolute()
    order = {name: number for number, name in enumerate(chosen_perturbations("everything"))}
    files = [
        path
        for path in sorted(folder.iterdir(), key=lambda path: (order.get(format_stem(path), len(order)), path.name))
        if path.is_file() and not path.name.startswith((".", "qrels")) and path.absolute() != judged
    ]
    if not files:
        raise InputError(
            "no lists here",
            file=folder,
            expected="a file for each perturbation, named by it, such as char_swap.run.gz; and none.run.gz",
            fix="check the path",
        )
    return files


class GivenLists:
    """The lists of one system: of the unperturbed queries and of every perturbation, in the same directions."""

    def __init__(self, name: str | None, lists: Mapping[str, Lists], relevance: Any, *, skip_unknown: bool) -> None:
        systems = {ranked.system for by_direction in lists.values() for ranked in by_direction.values()} - {""}
        self.name = name or (systems.pop() if len(systems) == 1 else "") or "lists"
        self._lists, self._relevance, self._skip_unknown = lists, relevance, skip_unknown

    def key(self, variant: Variant | None) -> str:
        """A hash of the lists and of what is relevant."""
        lists = {direction: ranked.fingerprint for direction, ranked in self._of(variant).items()}
        return fingerprint("ready lists", {**lists, "relevance": self.relevance_key})

    @property
    def relevance_key(self) -> str:
        """A hash of the judgements, and of how ids that are not known are treated."""
        judged = self._relevance if isinstance(self._relevance, Mapping) else {"any": self._relevance}
        hashes = {name: "" if relevance is None else relevance.fingerprint for name, relevance in judged.items()}
        return fingerprint("judged", {**hashes, "skip_unknown": str(self._skip_unknown)})

    def inputs(self, variant: Variant | None, progress: Progress) -> dict[str, Any]:
        """The lists of a variant, or of the original (None), as keywords of ``evaluate``."""
        return {"run": self._of(variant), "relevance": self._relevance, "skip_unknown": self._skip_unknown}

    def _of(self, variant: Variant | None) -> Lists:
        return self._lists[UNPERTURBED if variant is None else variant.perturbation]


def lists_of_runs(dataset: Dataset | None, runs: Mapping[str, Any], directions: tuple[str, ...]) -> dict[str, Lists]:
    """The lists of every perturbation by direction; the unperturbed ones say which directions there are."""
    if UNPERTURBED not in runs:
        known = ", ".join(map(str, runs)) or "nothing"
        raise UsageError(
            f"the unperturbed list is missing: there is no {UNPERTURBED!r} among the lists of {known}",
            fix=f"pass the list of the unchanged queries as {UNPERTURBED!r}",
            option="runs",
        )
    lists = {}
    for name, given in runs.items():
        with reading(f"the list {name!r}"):
            lists[name] = _of_one(dataset, name, given, directions)
    for name, own in lists.items():
        missing = [direction for direction in lists[UNPERTURBED] if direction not in own]
        extra = [direction for direction in own if direction not in lists[UNPERTURBED]]
        if missing or extra:
            having, lacking = (UNPERTURBED, name) if missing else (name, UNPERTURBED)
            raise UsageError(
                f"{having!r} has lists of {(missing or extra)[0]}, and {lacking!r} has none",
                fix=f"pass the same directions for every perturbation, or choose with {argument('directions')}",
                option="runs",
            )
    return lists


def _of_one(dataset: Dataset | None, name: str, given: Any, directions: tuple[str, ...]) -> Lists:
    """The lists of one perturbation, in the directions that are chosen."""
    several = given if isinstance(given, tuple) else (given,)
    named = _directions_of(dataset, name, len(several), directions)
    lists: Lists = {}
    for ranked, own in zip(several, named, strict=True):
        ranked = read_run(ranked) if isinstance(ranked, str | Path) else ranked
        for direction, part in lists_by_direction(dataset, ranked, own).items():
            if direction in lists:
                raise UsageError(f"two lists of {name!r} for {direction}", fix="pass one for each direction")
            lists[direction] = part
    missing = [direction for direction in directions if direction not in lists]
    if missing:
        raise UsageError(f"no lists of {name!r} for {missing[0]}", fix="pass them, or leave out the direction")
    return {direction: part for direction, part in lists.items() if direction in directions or not directions}


def _directions_of(
    dataset: Dataset | None, name: str, count: int, directions: tuple[str, ...]
) -> list[tuple[str, ...]]:
    """Per list, its direction; none where the ids of the dataset tell."""
    if len(directions) == count:
        return [(direction,) for direction in directions]
    if dataset is not None:
        return [()] * count
    if count == 1:
        return [directions or (TEXT_TO_IMAGE,)]
    raise UsageError(
        f"{count} lists of {name!r} and {len(directions)} directions",
        fix="name the direction of each list, in their order",
        option="directions",
    )


def check_same_queries(lists: Mapping[str, Lists], dataset: Dataset | None, *, skip_unknown: bool) -> None:
    """Raise for a perturbation whose queries are not those of the unperturbed list."""
    for direction, plain in lists[UNPERTURBED].items():
        known = direction_ids(dataset, direction)[0] if dataset is not None and skip_unknown else None
        for name, own in lists.items():
            missing = _missing(plain.query_ids, own[direction].query_ids, known)
            extra = _missing(own[direction].query_ids, plain.query_ids, known)
            if missing or extra:
                lacking, having = (name, UNPERTURBED) if missing else (UNPERTURBED, name)
                raise InputError(
                    f"{direction}: the list {lacking!r} lacks {_names(missing or extra)}, which {having!r} has",
                    expected="the same queries in every list",
                    fix="rank every query under every perturbation",
                    code="unknown-id",
                    subject=(missing or extra)[0],
                )


def judged_by_direction(relevance: Relevance, lists: Lists) -> dict[str, Relevance]:
    """The judgements of every direction, turned round where they are of the other one."""
    judged = {}
    for direction, ranked in lists.items():
        queries, sides = ranked.query_ids, (relevance, relevance.flip())
        # Ids of images and captions may overlap: numbers often do.
        known = [int((match_ids(queries, side.query_ids) >= 0).sum()) for side in sides]
        if not any(known):
            raise InputError(
                f"{direction}: none of the {len(queries):,} queries of the lists is judged (such as {queries[0]!r})",
                expected=f"judgements of those queries; there are ids such as {relevance.query_ids[0]!r}",
                fix=SAME_SPLIT,
            )
        judged[direction] = sides[int(np.argmax(known))]
    return judged


def _missing(names: Ids, ids: Ids, known: Ids | None) -> list[str]:
    """Those of the names that are not among the ids; of the ``known`` ones, where some are not to count."""
    missing = match_ids(names, ids) < 0
    if known is not None:
        missing &= match_ids(names, known) >= 0
    return [names[row] for row in np.flatnonzero(missing)]


def _names(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else ""
    plural = "query" if len(ids) == 1 else f"{len(ids):,} queries:"
    return f"{plural} {', '.join(map(repr, ids[:_NAMED]))}{more}"

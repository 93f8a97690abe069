"""Candidates that people judge elsewhere than in sheets: a dataset to show them, and their verdicts as the sheets."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from crosslens.build.imp.candidates import Candidates
from crosslens.build.imp.folder import CANDIDATES, LOG, SAMPLED, ImpFolder
from crosslens.build.imp.people.agreement import open_captions
from crosslens.build.imp.people.annotation import AnnotationSheet, Verdict
from crosslens.build.imp.people.verdicts import PeoplesVerdicts, lost_verdicts
from crosslens.build.sheets import write_sheet
from crosslens.core import ConflictError, Dataset, InputError, argument, atomic_file, hold_output, remove


def is_imp_folder(folder: str | Path) -> bool:
    """Whether ``build imp`` wrote the folder, at least as far as its candidates."""
    return all((Path(folder) / name).is_file() for name in (LOG, CANDIDATES, SAMPLED))


def candidate_captions(folder: str | Path) -> pl.DataFrame:
    """The captions that people are to judge, of the benchmark that is built in a folder."""
    return _opened(Path(folder))[0].kept


def candidate_dataset(folder: str | Path) -> Dataset:
    """The images of the benchmark that is built in a folder, with those captions."""
    candidates, _ = _opened(Path(folder))
    captions = candidates.kept.select("caption", "image", "text", "cosine")
    images = candidates.images.select("image", "file").join(captions, on="image", how="semi")
    files = images["file"].to_list()
    home = os.path.commonpath([Path(file).parent for file in files]) if files and None not in files else os.sep
    if Path(home) == Path(home).parent:
        raise InputError(
            "the images are not in one folder", file=folder, fix=f"pass {argument('dataset')} and the dataset of them"
        )
    plain = Dataset.of({image: [] for image in images["image"]}, name=f"{Path(folder).resolve().name}-candidates")
    relative = pl.Series("file", [file.removeprefix(home).lstrip(os.sep) for file in files])
    return replace(plain, images=plain.images.with_columns(relative), captions=captions, home=Path(home))


def write_verdicts(
    folder: str | Path,
    said: Mapping[str, Mapping[str, Verdict]],
    decided: Mapping[str, Verdict],
    *,
    overwrite: bool = False,
) -> list[Path]:
    """Write what people said as the sheets of the build in a folder; returns them. The build goes on with them.

    ``said``: caption → person → verdict. Everybody has a sheet of their own where there are as many people as sheets;
    where there are more, a sheet holds the verdicts of several. ``decided`` are the verdicts on captions on which
    they differ. Verdicts in the folder that would be lost raise, unless ``overwrite``.
    """
    target = Path(folder)
    with hold_output(target):
        candidates, annotators = _opened(target)
        people = _peoples_verdicts(candidates.kept["caption"].to_list(), said, decided, annotators)
        stored = ImpFolder(target)
        lost = 0 if overwrite else lost_verdicts(stored.sheets, people)
        if lost:
            raise ConflictError(
                f"the sheets in {target} have verdicts that would be lost: {lost:,}",
                fix=f"pass {argument('overwrite', True)} if nobody needs them",
            )
        tables = people.tables(candidates.kept, dict(candidates.images.select("image", "file").iter_rows()))
        for name, table in tables.items():
            with atomic_file(target / name) as file:
                write_sheet(table, file)
        for stale in stored.sheets:
            if stale.name not in tables:
                remove(stale)
        return [target / name for name in tables]


def _opened(folder: Path) -> tuple[Candidates, int]:
    """The candidates in a folder, and how many people judge each."""
    log = ImpFolder(folder).log if is_imp_folder(folder) else None
    candidates = None if log is None else ImpFolder(folder).candidates()
    if log is None or candidates is None:
        raise InputError(
            "no candidates of an IMP benchmark", file=folder, expected="a folder that build imp wrote",
            fix="run build imp first",
        )  # fmt: skip
    return candidates, int(log.head["settings"]["annotators"])


def _peoples_verdicts(
    captions: Sequence[str], said: Mapping[str, Mapping[str, Verdict]], decided: Mapping[str, Verdict], annotators: int
) -> PeoplesVerdicts:
    people = {person: number for number, person in enumerate(sorted({name for by in said.values() for name in by}))}
    sheets = [dict.fromkeys(captions, Verdict()) for _ in range(annotators)]
    for caption in captions:
        by = said.get(caption, {})
        if len(by) > annotators:
            raise InputError(
                f"caption {caption!r} was judged by {len(by)} people, and the benchmark has {annotators} annotators",
                fix=f"build it with {argument('annotators', len(by))}, or have each caption judged {annotators} times",
            )
        free = list(range(annotators))
        for person in sorted(by, key=people.__getitem__):
            # The sheet that is theirs, or the next free one.
            number = min(free, key=lambda slot: (slot - people[person]) % annotators)
            free.remove(number)
            sheets[number][caption] = by[person]
    complete = tuple(map(AnnotationSheet, sheets))
    undecided = set(open_captions(complete))
    return PeoplesVerdicts(complete, AnnotationSheet({name: decided[name] for name in decided if name in undecided}))

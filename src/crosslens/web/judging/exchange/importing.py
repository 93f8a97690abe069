"""Items for a project from wherever they are: a run, an IMP benchmark, a table of pairs. Nothing is added twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crosslens.build import candidate_dataset, is_imp_folder
from crosslens.core import RUN_FILE, Dataset, InputError, Run, UsageError, argument
from crosslens.explanations import dataset_of_run
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.projects import add_items, items
from crosslens.web.judging.exchange.pair_lists import IMP_DATASET, imp_items, pair_items
from crosslens.web.judging.exchange.run_failures import failure_items
from crosslens.web.judging.options import ImportOptions
from crosslens.web.judging.tasks.content import ItemContent, NewItem
from crosslens.web.run_folders import dataset_id


@dataclass(frozen=True)
class ImportedItems:
    """How many items of each kind were added, how many were there already, and whose pictures they show."""

    added: Mapping[str, int]
    known: int
    dataset: str


def import_items(
    database: Database, project: int, source: str | Path, dataset: Dataset | None, options: ImportOptions | None = None
) -> ImportedItems:
    """Add the items of a run folder, a folder that ``build imp`` wrote, or a table of pairs."""
    options = options or ImportOptions()
    source = Path(source)
    if (source / RUN_FILE).is_file():
        run = Run.load(source)
        dataset = dataset or dataset_of_run(run)
        new = failure_items(
            run, dataset, options.direction, shown_as=shown_as(dataset), with_truth=options.with_truth,
            limit=options.limit, seed=options.seed,
        )  # fmt: skip
    elif is_imp_folder(source):
        dataset = dataset or _imp_dataset(source, options.part)
        new = imp_items(
            source, shown_as=shown_as(dataset), stage=options.part, hardest=options.hardest,
            distractors=options.distractors, seed=options.seed,
        )  # fmt: skip
    elif source.is_dir():
        raise InputError(
            "neither a run nor an IMP benchmark", file=source, expected=f"{RUN_FILE}, or the files of build imp",
            fix="name a run's folder, a folder that build imp wrote, or a table of pairs",
        )  # fmt: skip
    else:
        if dataset is None:
            raise UsageError(
                "a table of pairs does not say whose images it names",
                fix=f"pass {argument('dataset')} and the dataset",
                option="dataset",
            )
        new = pair_items(source, dataset, shown_as=shown_as(dataset), limit=options.limit, seed=options.seed)
    return add_new_items(database, project, new, dataset.name)


def add_new_items(database: Database, project: int, new: list[NewItem], dataset: str) -> ImportedItems:
    """Add the items that the project does not have yet."""
    known = {_key(item.kind, item.content) for item in items(database, project)}
    fresh = [item for item in new if _key(item.kind, item.content) not in known]
    if fresh:
        add_items(database, project, fresh)
    return ImportedItems(dict(Counter(item.kind for item in fresh)), len(new) - len(fresh), dataset)


def shown_as(dataset: Dataset) -> str:
    """The name under which the server offers the pictures of a dataset."""
    return dataset_id(dataset.name, dataset.fingerprint)


def _imp_dataset(folder: Path, part: str) -> Dataset:
    if part == "survey":
        return Dataset.load(folder / IMP_DATASET)
    return candidate_dataset(folder)


def _key(kind: str, content: ItemContent) -> str:
    return f"{kind} {json.dumps(content.as_dict(), sort_keys=True)}"

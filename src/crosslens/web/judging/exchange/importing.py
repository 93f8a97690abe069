"""Items for a project from wherever they are: a run, an IMP benchmark, a table of pairs. Nothing is added twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from crosslens.build import candidate_dataset, is_imp_folder
from crosslens.core import (
    RUN_FILE,
    ConflictError,
    CrosslensError,
    Dataset,
    InputError,
    Progress,
    Run,
    UsageError,
    argument,
)
from crosslens.data import existing_file
from crosslens.explanations import dataset_of_run
from crosslens.web.judging.accounts.passwords import hash_password
from crosslens.web.judging.accounts.people import add_account, name_key
from crosslens.web.judging.accounts.tokens import new_token
from crosslens.web.judging.database.audit import add_entry
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.judging import record_within
from crosslens.web.judging.database.projects import (
    StoredItem,
    add_items_within,
    as_project,
    items_within,
    locked_project,
    replace_about,
)
from crosslens.web.judging.database.tables import MODEL, PERSON, AccountRow, AdjudicationRow, ItemRow
from crosslens.web.judging.exchange.answer_files import ADJUDICATED, AnswerRow, read_answers
from crosslens.web.judging.exchange.pair_lists import candidate_items, pair_items, survey_items
from crosslens.web.judging.exchange.run_failures import run_items
from crosslens.web.judging.options import SURVEY, ImportOptions
from crosslens.web.judging.tasks.answers import check_answer
from crosslens.web.judging.tasks.content import EXPORTED_AS, ItemContent, NewItem, ShownPicture, ShownText
from crosslens.web.judging.tasks.form import read_form
from crosslens.web.run_folders import dataset_id

TRUE_IMAGE = "True image"


@dataclass(frozen=True)
class ImportedItems:
    """How many items of each kind were added, how many were there already, and whose pictures they show.

    ``updated`` of those that were there already got other metrics or causes than they had.
    """

    added: Mapping[str, int]
    known: int
    dataset: str
    updated: int = 0
    note: str = ""
    judgements: int = 0
    """New ones, of a file that judging export wrote."""


def import_items(
    database: Database,
    project: int,
    source: str | Path,
    dataset: Dataset | None,
    options: ImportOptions | None = None,
    progress: Progress | None = None,
) -> ImportedItems:
    """Add the items of a run folder, a folder that ``build imp`` wrote, a table of pairs, failures or levels."""
    options = options or ImportOptions()
    source, note = Path(source), ""
    if source.is_dir() and options.part == SURVEY:
        raise UsageError(
            f"{argument('part', SURVEY)} requires a table with a score per pair, and {source} is a folder",
            fix="write one: crosslens analyze difficulty --runs RUN … -o difficulty.parquet",
            option="part",
        )
    if options.limit is not None and options.part == SURVEY:
        raise UsageError(
            f"{argument('limit')} draws items, and a survey takes the pairs with the lowest scores",
            fix=f"pass {argument('hardest', options.limit)}",
            option="limit",
        )
    if (source / RUN_FILE).is_file():
        run = Run.load(source)
        dataset = dataset or dataset_of_run(run)
        new, note = run_items(
            run, dataset, options.direction, shown_as=shown_as(dataset), limit=options.limit, seed=options.seed,
            progress=progress,
        )  # fmt: skip
    elif is_imp_folder(source):
        dataset = dataset or candidate_dataset(source)
        new = candidate_items(source, shown_as=shown_as(dataset))
    elif source.is_dir():
        raise InputError(
            "neither a run nor an IMP benchmark", file=source, expected=f"{RUN_FILE}, or the files of build imp",
            fix="name a run's folder, a folder that build imp wrote, or a table of pairs",
        )  # fmt: skip
    else:
        source = existing_file(source)
        if dataset is None:
            raise UsageError(
                "a table of pairs does not say whose images it names",
                fix=f"pass {argument('dataset')} and the dataset",
                option="dataset",
            )
        served = shown_as(dataset)
        if (answers := read_answers(source)) is not None:
            return import_answers(database, project, answers, dataset)
        if options.part == SURVEY:
            new = survey_items(source, dataset, options, shown_as=served)
        else:
            new = pair_items(source, dataset, shown_as=served, limit=options.limit, seed=options.seed)
    return add_new_items(database, project, new, dataset.name, note)


def add_new_items(
    database: Database, project: int, new: list[NewItem], dataset: str, note: str = "", by: int | None = None
) -> ImportedItems:
    """Add the items that the project does not have yet; those that it has get the metrics and causes of the new ones.

    In a project that shows the true image, failures show it beside the retrieved one. What the project has is looked up
    in the transaction that adds to it: two imports at once add nothing twice.
    """
    with database.writing() as session:
        row = locked_project(session, project)
        if as_project(row).settings.with_truth:
            new = [_with_truth(item) for item in new]
        known = {_key(item.kind, item.content): item for item in items_within(session, project)}
        fresh = [item for item in new if _key(item.kind, item.content) not in known]
        add_items_within(session, row, fresh)
        changed = {}
        for item in new:
            if (before := known.get(_key(item.kind, item.content))) is not None:
                about = {**before.content.about, **item.content.about}
                about["metrics"] = {**before.content.about.get("metrics", {}), **item.content.about.get("metrics", {})}
                if about != before.content.about:
                    changed[before.id] = about
        if changed:
            replace_about(session, row, changed)
        detail = f"{len(fresh)} items added, {len(changed)} changed: {dataset}"
        add_entry(database, session, "items imported", by, project=project, detail=detail)
    added = dict(Counter(item.kind for item in fresh))
    return ImportedItems(added, len(new) - len(fresh), dataset, len(changed), note)


def import_answers(database: Database, project: int, rows: Sequence[AnswerRow], dataset: Dataset) -> ImportedItems:
    """Add the judgements of an export, with their items where the project does not have them: all or nothing.

    People whom the database does not know get accounts that nobody can log in to. Who has judged an item already keeps
    that judgement.
    """
    unusable = hash_password(new_token())
    with database.writing(alone=True) as session:
        stored = locked_project(session, project)
        form = read_form(stored.labels)
        new = _items_of_answers(rows, dataset)
        numbers = _same_items(new, items_within(session, project))
        fresh = {name: item for name, item in new.items() if name not in numbers}
        numbers |= dict(zip(fresh, add_items_within(session, stored, list(fresh.values())), strict=True))
        accounts: dict[tuple[str, str], int] = {}
        added = 0
        for place, row in enumerate(rows, start=1):
            try:
                answer = check_answer(form, row.answer)
            except CrosslensError as error:
                raise InputError(error.problem, row=place, fix="import into a project with the same labels") from error
            if row.source == ADJUDICATED:
                who = _account(database, session, accounts, _IMPORT, MODEL, unusable)
                item = numbers[row.item]
                if session.get(AdjudicationRow, item) is None:
                    session.add(
                        AdjudicationRow(
                            item=item, account=who, labels=list(answer.labels), rating=answer.rating,
                            text=answer.text, created=database.now(),
                        )
                    )  # fmt: skip
                continue
            who = _account(database, session, accounts, row.judge, row.source, unusable)
            item_row = session.get_one(ItemRow, numbers[row.item])
            moment = row.created or database.now()
            added += record_within(session, item_row, who, answer, row.source, row.seconds, moment).is_new
        detail = f"{len(fresh)} items and {added} judgements added"
        add_entry(database, session, "judgements imported", None, project=project, detail=detail)
    kinds = dict(Counter(item.kind for item in fresh.values()))
    return ImportedItems(kinds, len(new) - len(fresh), dataset.name, judgements=added)


_IMPORT = "import"
"""The account whose decisions came from a file."""


def _items_of_answers(rows: Sequence[AnswerRow], dataset: Dataset) -> dict[str, NewItem]:
    """The items of an export by their names, in the order of these: numbers as numbers."""
    known, served = set(dataset.image_ids), shown_as(dataset)
    new: dict[str, NewItem] = {}
    for place, row in enumerate(rows, start=1):
        if row.source not in (PERSON, MODEL, ADJUDICATED):
            raise InputError(f"unknown source {row.source!r}", row=place, expected="person, model or adjudicated")
        if row.image is not None and row.image not in known:
            raise InputError(
                f"image {row.image!r} is not in the dataset {dataset.name}",
                row=place,
                fix=f"check {argument('dataset')}",
            )
        pictures = () if row.image is None else (ShownPicture(served, row.image),)
        texts = (ShownText(row.shown_text),) if row.shown_text else ()
        about = {"from": "answers", "image": row.image, "caption": row.caption, "metrics": dict(row.metrics)}
        content = ItemContent(pictures, texts, about | {EXPORTED_AS: row.item})
        item = NewItem(content, row.kind, {"labels": list(row.expected)} if row.expected else None)
        if new.setdefault(row.item, item) != item:
            raise InputError(f"item {row.item!r} shows something else than in a row before", row=place)
    return dict(
        sorted(new.items(), key=lambda entry: (len(entry[0]), entry[0]) if entry[0].isdigit() else (10**6, entry[0]))
    )


def _same_items(new: Mapping[str, NewItem], stored: Sequence[StoredItem]) -> dict[str, int]:
    """The items that a project has already, by their names in the export; of several alike, the one of that name."""
    alike: dict[tuple[object, ...], dict[str, int]] = {}
    for item in stored:
        name = str(item.content.about.get(EXPORTED_AS, item.id))
        alike.setdefault(_shown(item.kind, item.content), {})[name] = item.id
    numbers: dict[str, int] = {}
    for by_name in (True, False):
        for name, wanted in new.items():
            left = alike.get(_shown(wanted.kind, wanted.content), {})
            if name not in numbers and left and (name in left or not by_name):
                numbers[name] = left.pop(name if by_name else next(iter(left)))
    return numbers


def _shown(kind: str, content: ItemContent) -> tuple[object, ...]:
    """What an export says of what an item shows."""
    about = content.about
    return kind, about.get("image"), about.get("caption"), " / ".join(shown.text for shown in content.texts)


def _account(
    database: Database, session: Session, known: dict[tuple[str, str], int], name: str, source: str, unusable: str
) -> int:
    """The account of a judge, made where there is none."""
    if (name, source) not in known:
        row = session.scalar(select(AccountRow).where(AccountRow.name_key == name_key(name)))
        if row is None:
            account = add_account(database, session, name, unusable if source == PERSON else None).id
        elif (source == MODEL) != (row.password_hash is None and row.closed is None):
            kind = "a person" if source == MODEL else "a model"
            raise ConflictError(f"{name!r} is the name of {kind} here", fix="rename the judge in the file")
        else:
            account = row.id
        known[name, source] = account
    return known[name, source]


def shown_as(dataset: Dataset) -> str:
    """The name under which the server offers the pictures of a dataset."""
    return dataset_id(dataset.name, dataset.fingerprint)


def _with_truth(item: NewItem) -> NewItem:
    content = item.content
    image = content.about.get("expected_image")
    if image is None or any(picture.image == image for picture in content.pictures):
        return item
    truth = ShownPicture(content.pictures[0].dataset, image, TRUE_IMAGE)
    return replace(item, content=replace(content, pictures=(*content.pictures, truth)))


def _key(kind: str, content: ItemContent) -> str:
    """What makes an item the same: everything but its numbers, which may have been computed again."""
    about = {name: value for name, value in content.about.items() if name not in ("metrics", "causes")}
    return f"{kind} {json.dumps(replace(content, about=about).as_dict(), sort_keys=True)}"

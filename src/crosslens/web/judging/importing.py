"""Items of projects: from the failures of a run, tables of pairs, IMP benchmarks, and exported judgements."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.analyze import DIFFICULTY, Categories, classification_pairs, read_difficulty
from crosslens.build import candidate_captions, candidate_dataset, is_imp_folder
from crosslens.core import ConflictError, CrosslensError, InputError, MissingExtraError, UsageError, argument, reading
from crosslens.data import RowName, as_numbers, existing_file, format_suffix, read_records, read_table
from crosslens.engine import Progress
from crosslens.explanations import dataset_of_run, explain_run, failed_queries, ranking_of
from crosslens.storage import is_finite_number, json_form, random_stream, read_json_file
from crosslens.values import IMAGE_TO_TEXT, RUN_FILE, TEXT_TO_IMAGE, Dataset, Run, listed_id
from crosslens.web.judging.accounts import UNUSABLE_PASSWORD, add_account, row_of_name
from crosslens.web.judging.database.engine import Database, Transaction
from crosslens.web.judging.database.judgements import record_within
from crosslens.web.judging.database.projects import add_items, as_project, items, locked_project
from crosslens.web.judging.database.tables import MODEL, PERSON, AdjudicationRow, ItemRow
from crosslens.web.judging.exporting import ADJUDICATED, AnswerRow, is_answer_file, read_answers
from crosslens.web.judging.options import SURVEY, ImportOptions
from crosslens.web.judging.tasks import (
    EXPORTED_AS,
    KINDS,
    ItemContent,
    NewItem,
    ShownPicture,
    ShownText,
    check_answer,
    read_form,
)
from crosslens.web.library import dataset_id

QUERY, RETRIEVED = "Query", "Retrieved"
FAILURE_COLUMNS = ("query", "text", "ground_truth", "retrieved", "item", "answer")
"""The columns by which a table of failures is known: ``failures.parquet`` of ``crosslens explain -o`` has them."""
_CONCEPTS = ("CA", "NonCommonSimilarity", "CE", "SD", "SD[binary]")
_METRICS = ("rank", "score", "truth_score", "margin", *_CONCEPTS, *(f"query {name}" for name in _CONCEPTS))
_CAUSE = "cause_"


def run_items(
    run: Run, dataset: Dataset, direction: str | None = None, *, shown_as: str, limit: int | None = None,
    seed: int = 0, progress: Progress | None = None,
) -> tuple[list[NewItem], str]:  # fmt: skip
    """One item per failed query of a direction, in their order; ``limit`` draws so many of them.

    Where the dataset has objects, items come with concept metrics and derived causes, as ``crosslens explain`` has
    them; otherwise the second value says why not. ``shown_as`` is the name under which the server shows the
    dataset's pictures.
    """
    ranking = ranking_of(run, direction, dataset)
    failures = sample(failed_queries(run, dataset, direction), limit, seed)
    note = ""
    if dataset.objects is None or not dataset.objects.height:
        note = f"no concept metrics and causes: the dataset {dataset.name} has no objects"
    elif failures.height:
        queries = set(failures["query"])
        rows = [row for row, query in enumerate(ranking.query_ids) if query in queries]
        failed_run = replace(run, rankings={ranking.direction: ranking.of_queries(rows)})
        try:
            failures = explain_run(failed_run, dataset, ranking.direction, resamples=0, progress=progress).failures
        except MissingExtraError as error:
            note = f"no concept metrics and causes: {error.problem}; {error.fix}"
    origin = {"run": run.name, "direction": ranking.direction}
    return failure_items(failures, dataset, shown_as=shown_as, origin=origin), note


def failure_items(
    failures: pl.DataFrame, dataset: Dataset, *, shown_as: str, origin: Mapping[str, str]
) -> list[NewItem]:
    """One item per row of a table of failures.

    A text query shows its text and the retrieved picture, an image query its picture and the retrieved caption.
    ``origin`` names the run and the direction; the direction is otherwise that of the rows.
    """
    items = []
    for number, row in enumerate(failures.iter_rows(named=True)):
        if unknown := [row[name] for name in ("ground_truth", "retrieved") if row[name] not in dataset.image_rows]:
            raise InputError(
                f"image {unknown[0]!r} is not in the dataset {dataset.name!r}", row=number,
                fix="name the dataset of the run", subject=str(unknown[0]),
            )  # fmt: skip
        if row["text"] is None:
            direction, image, caption = IMAGE_TO_TEXT, row["query"], row["item"]
            text, picture = ShownText(row["answer"], RETRIEVED), ShownPicture(shown_as, image, QUERY)
        else:
            direction, image, caption = TEXT_TO_IMAGE, row["retrieved"], row["query"]
            text, picture = ShownText(row["text"], QUERY), ShownPicture(shown_as, image, RETRIEVED)
        facts = {
            "from": "failures", "run": "", "direction": direction, **origin, "query": row["query"],
            "item": row["item"], "image": image, "caption": caption, "expected_image": row["ground_truth"],
            "dataset": dataset.name, "metrics": {name: row[name] for name in _METRICS if row.get(name) is not None},
        }  # fmt: skip
        causes = {name.removeprefix(_CAUSE).replace("_", " "): row[name] for name in row if name.startswith(_CAUSE)}
        items.append(NewItem(ItemContent((picture,), (text,), facts | ({"causes": causes} if causes else {}))))
    return items


def sample(rows: pl.DataFrame, limit: int | None, seed: int) -> pl.DataFrame:
    """All rows, or so many of them, drawn by the seed and in their order."""
    if limit is None or rows.height <= limit:
        return rows
    numbers = random_stream(seed, "judging", "sample").choice(rows.height, limit, replace=False)
    return rows[sorted(numbers.tolist())]


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
            summary = Path(path).with_name("overview.json")  # beside a table of explain -o
            stored = read_json_file(summary) if summary.is_file() else {}
            origin = {name: str(stored[name]) for name in ("run", "direction") if name in stored}
            return failure_items(sample(frame, limit, seed), dataset, shown_as=shown_as, origin=origin)
        if "image" not in frame.columns or not {"caption", "text"} & set(frame.columns):
            raise InputError(
                f"the columns are {', '.join(frame.columns)}", row="line 1", expected="image, and caption or text",
                fix="rename the columns",
            )  # fmt: skip
        rows = frame.with_row_index("__row")
        if "suggested_image" in frame.columns:  # rows about two copies of a picture have no caption to judge
            rows = rows.filter(pl.col("caption").is_not_null() & (pl.col("caption") != ""))
        return [
            _checked_pair(row, row_name(row.pop("__row")), "pairs", dataset, shown_as)
            for row in sample(rows, limit, seed).iter_rows(named=True)
        ]


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
            f"no pair is {HARD} (levels: {', '.join(levels.levels)})", file=path,
            expected=f"pairs of the level {HARD}", fix="use a panel or a mapping that calls some pairs so",
        )  # fmt: skip
    with reading(path):
        lowest = hard.with_row_index("__row").sort(score, "caption", "image").head(options.hardest)
        items = [
            _checked_pair(row, row.pop("__row"), SURVEY, dataset, shown_as) for row in lowest.iter_rows(named=True)
        ]
    rejected = None
    if options.rejected is not None:
        rejected = read_table(options.rejected).frame
        if "verdict" in rejected.columns:  # what is generic or unsure may fit
            rejected = rejected.filter(pl.col("verdict") == "bad")
    with reading(options.rejected or dataset.name):
        pairs = classification_pairs(dataset, Categories.of(levels), rejected, seed=options.seed)
    of, unlike = pairs.pairs.dataset, ~pairs.matches
    captions = pairs.pairs.captions[unlike]
    images = [of.image_ids[row] for row in pairs.pairs.images[unlike]]
    ids = [of.caption_ids[row] if rejected is None else None for row in captions]
    columns = {"image": images, "caption": ids, "text": [of.texts[row] for row in captions]}
    negatives = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return items + [
        _pair(shown_as, row, SURVEY, {}, kind="distractor", expected={"labels": ["bad"]})
        for row in sample(negatives, options.distractors, options.seed).iter_rows(named=True)
    ]


def _pair(
    shown_as: str, row: Mapping[str, Any], origin: str, metrics: Mapping[str, float], kind: str = "real",
    expected: Mapping[str, Any] | None = None,
) -> NewItem:  # fmt: skip
    facts = {"from": origin, "image": row["image"], "caption": row.get("caption"), "metrics": dict(metrics)}
    content = ItemContent((ShownPicture(shown_as, row["image"]),), (ShownText(row["text"], CAPTION),), facts)
    return NewItem(content, kind, expected)


def _checked_pair(row: Mapping[str, Any], where: int | str, origin: str, dataset: Dataset, shown_as: str) -> NewItem:
    """The item of a row, whose image and caption the dataset must have."""
    cells = {name: str(row[name]).strip() if row.get(name) is not None else "" for name in _OWN}
    ids = (listed_id(row.get(name), dataset.image_rows) for name in ("suggested_image", "image"))
    image = next(filter(None, ids), "")
    caption, text = listed_id(row.get("caption"), dataset.caption_rows) or "", cells["text"]
    if image not in dataset.image_rows:
        raise InputError(f"image {image!r} is not in the dataset", row=where, fix="check the id", subject=image)
    if not text and caption in dataset.caption_rows:
        text = dataset.texts[dataset.caption_rows[caption]]
    if not text:
        problem = f"caption {caption!r} is not in the dataset, and the row has no text"
        raise InputError(problem, row=where, fix="check the id, or add a column text", subject=caption)
    kind = cells["kind"] or "real"
    if kind not in KINDS:
        raise InputError(f"unknown kind {kind!r}", row=where, expected=" or ".join(KINDS), fix="correct it")
    labels = [label.strip() for label in cells["expected"].split(";") if label.strip()]
    expected = {"labels": labels, **({"why": cells["why"]} if cells["why"] else {})} if labels else None
    numbers = {name: float(value) for name, value in row.items() if name not in _OWN and is_finite_number(value)}
    return _pair(shown_as, {"image": image, "caption": caption or None, "text": text}, origin, numbers, kind, expected)


def _table(path: str | Path) -> tuple[pl.DataFrame, RowName]:
    if format_suffix(path) == ".jsonl":
        records = read_records(path)
        names: Sequence[str] = list(dict.fromkeys(name for row in records.rows for name in row))
        plain = (str, int, float, type(None))  # bool is an int to isinstance
        columns = {
            name: [value if type(value := row.get(name)) in plain else str(value) for row in records.rows]
            for name in names
        }
        return pl.DataFrame(columns, strict=False), records.row_name
    frame, row_name = read_table(path)
    ids = (*_OWN, *FAILURE_COLUMNS, "suggested_image")
    return frame.with_columns(as_numbers(frame[name]) for name in frame.columns if name not in ids), row_name


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
    database: Database, project: int, source: str | Path, dataset: Dataset | None,
    options: ImportOptions | None = None, progress: Progress | None = None,
) -> ImportedItems:  # fmt: skip
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
        rows = candidate_captions(source).select("image", "caption", "text", "cosine").iter_rows(named=True)
        served = shown_as(dataset)
        new = [_pair(served, row, "imp candidates", {"cosine": row["cosine"]}) for row in rows]
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
        if (answers := read_answers(source, served)) is not None:
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
            for number, item in enumerate(new):
                pictures, image = item.content.pictures, item.content.about.get("expected_image")
                if image is not None and image not in {picture.image for picture in pictures}:
                    truth = ShownPicture(pictures[0].dataset, image, TRUE_IMAGE)
                    new[number] = replace(item, content=replace(item.content, pictures=(*pictures, truth)))
        existing = {_key(item): item for item in items(session, project)}
        fresh = [item for item in new if _key(item) not in existing]
        add_items(session, row, fresh)
        changed = set()
        for item in new:
            if (before := existing.get(_key(item))) is not None:
                facts = {**before.content.about, **item.content.about}
                facts["metrics"] = {**before.content.about.get("metrics", {}), **item.content.about.get("metrics", {})}
                if facts != before.content.about:
                    stored = session.get_one(ItemRow, before.id)
                    stored.content = {**stored.content, "about": facts}
                    changed.add(before.id)
        if changed:
            row.settings = {**row.settings, "revision": as_project(row).settings.revision + 1}
        detail = f"{len(fresh)} items added, {len(changed)} changed: {dataset}"
        session.note("items imported", by, project=project, detail=detail)
    counts = dict(Counter(item.kind for item in fresh))
    return ImportedItems(counts, len(new) - len(fresh), dataset, len(changed), note)


def import_answers(database: Database, project: int, rows: Sequence[AnswerRow], dataset: Dataset) -> ImportedItems:
    """Add the judgements of an export, with their items where the project does not have them: all or nothing.

    People whom the database does not know get accounts that nobody can log in to. Who has judged an item already keeps
    that judgement.
    """
    with database.writing(alone=True) as session:
        stored = locked_project(session, project)
        form = read_form(stored.labels)
        new = _items_of_answers(rows, dataset)
        # The items that the project has already, by their names in the export; of several alike, the one of that name.
        alike: dict[tuple[object, ...], dict[str, int]] = {}
        for stored_item in items(session, project):
            name = str(stored_item.content.about.get(EXPORTED_AS, stored_item.id))
            alike.setdefault(_exported_view(stored_item), {})[name] = stored_item.id
        numbers: dict[str, int] = {}
        for by_name in (True, False):
            for name, new_item in new.items():
                candidates = alike.get(_exported_view(new_item), {})
                if name not in numbers and candidates and (name in candidates or not by_name):
                    numbers[name] = candidates.pop(name if by_name else next(iter(candidates)))
        fresh = {name: item for name, item in new.items() if name not in numbers}
        numbers |= dict(zip(fresh, add_items(session, stored, list(fresh.values())), strict=True))
        accounts: dict[tuple[str, str], int] = {}
        new_judgements = 0
        for place, row in enumerate(rows, start=1):
            try:
                answer = check_answer(form, row.answer)
            except CrosslensError as error:
                raise InputError(error.problem, row=place, fix="import into a project with the same labels") from error
            if row.source == ADJUDICATED:
                who = _account(session, accounts, _IMPORT, MODEL)
                item = numbers[row.item]
                if session.get(AdjudicationRow, item) is None:
                    values = asdict(answer) | {"labels": list(answer.labels)}
                    session.add(AdjudicationRow(item=item, account=who, created=session.now, **values))
                continue
            who = _account(session, accounts, row.judge, row.source)
            item_row = session.get_one(ItemRow, numbers[row.item])
            moment = row.created or session.now
            new_judgements += record_within(session, item_row, who, answer, row.source, row.seconds, moment).is_new
        detail = f"{len(fresh)} items and {new_judgements} judgements added"
        session.note("judgements imported", None, project=project, detail=detail)
    kinds = dict(Counter(item.kind for item in fresh.values()))
    return ImportedItems(kinds, len(new) - len(fresh), dataset.name, judgements=new_judgements)


_IMPORT = "import"
"""The account whose decisions came from a file."""


def _items_of_answers(rows: Sequence[AnswerRow], dataset: Dataset) -> dict[str, NewItem]:
    """The items of an export by their names, in the order of these: numbers as numbers."""
    served = shown_as(dataset)
    new: dict[str, NewItem] = {}
    for place, row in enumerate(rows, start=1):
        if row.source not in (PERSON, MODEL, ADJUDICATED):
            raise InputError(f"unknown source {row.source!r}", row=place, expected="person, model or adjudicated")
        if row.image is not None and row.image not in dataset.image_rows:
            raise InputError(
                f"image {row.image!r} is not in the dataset {dataset.name}",
                row=place,
                fix=f"check {argument('dataset')}",
            )
        pictures = () if row.image is None else (ShownPicture(served, row.image),)
        texts = (ShownText(row.shown_text),) if row.shown_text else ()
        facts = {"from": "answers", "image": row.image, "caption": row.caption, "metrics": dict(row.metrics)}
        content = ItemContent(pictures, texts, facts | {EXPORTED_AS: row.item})
        item = NewItem(content, row.kind, {"labels": list(row.expected)} if row.expected else None)
        if new.setdefault(row.item, item) != item:
            raise InputError(f"item {row.item!r} shows something else than in a row before", row=place)
    return dict(
        sorted(new.items(), key=lambda entry: (len(entry[0]), entry[0]) if entry[0].isdigit() else (10**6, entry[0]))
    )


def _exported_view(item: NewItem) -> tuple[object, ...]:
    """What an export says of what an item shows."""
    facts, texts = item.content.about, " / ".join(text.text for text in item.content.texts)
    return item.kind, facts.get("image"), facts.get("caption"), texts


def _account(session: Transaction, accounts: dict[tuple[str, str], int], name: str, source: str) -> int:
    """The account of a judge, made where there is none."""
    if (name, source) not in accounts:
        row = row_of_name(session, name)
        if row is None:
            account = add_account(session, name, UNUSABLE_PASSWORD if source == PERSON else None).id
        elif (source == MODEL) != (row.password_hash is None and row.closed is None):
            kind = "a person" if source == MODEL else "a model"
            raise ConflictError(f"{name!r} is the name of {kind} here", fix="rename the judge in the file")
        else:
            account = row.id
        accounts[name, source] = account
    return accounts[name, source]


def shown_as(dataset: Dataset) -> str:
    """The name under which the server offers the pictures of a dataset."""
    return dataset_id(dataset.name, dataset.fingerprint)


def _key(item: NewItem) -> str:
    """What makes an item the same: everything but its numbers, which may have been computed again."""
    facts = {name: value for name, value in item.content.about.items() if name not in ("metrics", "causes")}
    return f"{item.kind} {json.dumps(json_form(replace(item.content, about=facts)), sort_keys=True)}"

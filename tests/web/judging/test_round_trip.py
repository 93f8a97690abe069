"""What was exported can be imported, and exported again to the same bytes."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

import crosslens as cl
from crosslens.core import CrosslensError, InputError
from crosslens.web import (
    ExportOptions,
    account_named,
    close_account,
    export_content,
    import_items,
    list_accounts,
    load_answers,
)
from crosslens.web.judging.accounts import log_in, model_account
from crosslens.web.judging.database.assigning import next_item
from crosslens.web.judging.database.engine import Database, open_database
from crosslens.web.judging.database.judgements import judge, record_judgement
from crosslens.web.judging.database.projects import create_project, join
from crosslens.web.judging.importing import pair_items, shown_as
from crosslens.web.judging.results import adjudicate
from crosslens.web.judging.tasks import Answer, ItemContent, NewItem, ShownPicture, ShownText
from tests.tables import each_row, rest_slow
from tests.web.conftest import NASTY
from tests.web.judging.samples import add_items, create_account, items, person

DATASET = cl.Dataset.of({f"img{n}": [f"caption {n}"] for n in range(8)}, name="toys")
TEXTS = (
    "plain",
    NASTY,
    "=1+1",
    "'=1+1",
    "''@x",
    "-",
    "two\nlines",
    'quotes "" and, commas; semicolons',
    "ünï – ",
    "\u2028",
)


def filled(database: Database) -> int:
    """A project with every kind of item and answer: some judged, some not, by people, a model and the owner."""
    create_project(database, "Another one, so that items do not begin at 1", "validity")
    project_id = create_project(database, "Captions", "validity", overlap=2).id

    def content(n: int) -> ItemContent:
        facts = {"image": f"img{n}", "caption": f"img{n}-0" if n % 2 else None, "metrics": {"CE": 0.1 + n / 3, "k": n}}
        pictures = (ShownPicture(shown_as(DATASET), f"img{n}", "Retrieved"),)
        return ItemContent(pictures, (ShownText(TEXTS[n], "Query"), ShownText("second")), facts | {"query": "q"})

    expected = {"labels": ["bad"], "why": "it is"}
    new = [NewItem(content(n)) for n in (0, 1, 2, 3, 4, 5, 4)]  # of two alike, the second is judged
    new += [NewItem(content(6), "practice", expected), NewItem(content(7), "check", expected)]
    new += [NewItem(content(5), "distractor"), NewItem(ItemContent(texts=(ShownText("no picture"),)))]
    numbers = add_items(database, project_id, new)
    people = [create_account(database, name, "a long password").id for name in ("=ann", "Zoë", "Cleo")]
    model = model_account(database, "qwen").id
    for at, number in reversed(list(enumerate(numbers))):
        if at in (1, 4):
            continue
        for who, account in enumerate(people):
            if (at + who) % 3:
                answer = Answer(
                    (("good", "bad", "unsure")[(at + who) % 3],), None, TEXTS[(at + who) % len(TEXTS)].strip()
                )
                record_judgement(database, number, account, answer, source="person", seconds=0.1 + at / 7)
        record_judgement(database, number, model, Answer(("good",)), source="model")
    for number in (numbers[3], numbers[0], numbers[1]):  # the last was judged by nobody
        adjudicate(database, project_id, number, people[2], Answer(("bad",), None, "=decided"))
    return project_id


def exported(database: Database, project: int, name: str) -> bytes:
    return export_content(load_answers(database, project), name, ExportOptions())


@pytest.mark.parametrize("with_tables", rest_slow(["postgresql", "sqlite"]), indirect=True)
@pytest.mark.parametrize("name", rest_slow(["answers.csv", "answers.jsonl"]))
def test_export_import_export_is_the_same_bytes(
    database: Database, tmp_path: Path, name: str, sqlite_file: Path
) -> None:
    project_id = filled(database)
    first = exported(database, project_id, name)
    file = tmp_path / name
    file.write_bytes(first)
    copies = {
        "the same database": database,
        "a new one": open_database(shutil.copy(sqlite_file, tmp_path / "new.sqlite")),
    }
    for where, target in copies.items():
        copy = create_project(target, "Copy", "validity", overlap=2).id
        imported = import_items(target, copy, file, DATASET)
        assert imported.judgements == len(load_answers(database, project_id).table), where
        assert exported(target, copy, name) == first, where
        again = import_items(target, copy, file, DATASET)
        assert (again.judgements, again.added) == (0, {}), "nothing is added twice"
        assert exported(target, copy, name) == first, where
    assert import_items(database, project_id, file, DATASET).added == {}, "into the project that it came from"
    assert exported(database, project_id, name) == first
    copies["a new one"].close()


def test_the_two_forms_hold_the_same(sqlite_database: Database, tmp_path: Path) -> None:
    project_id = filled(sqlite_database)
    (tmp_path / "a.csv").write_bytes(exported(sqlite_database, project_id, "a.csv"))
    copy = create_project(sqlite_database, "Copy", "validity").id
    import_items(sqlite_database, copy, tmp_path / "a.csv", DATASET)
    for name in ("a.jsonl", "a.json"):
        whole = exported(sqlite_database, copy, name)
        assert name == "a.json" or whole == exported(sqlite_database, project_id, name)


def test_judges_get_accounts_that_nobody_can_log_in_to(sqlite_database: Database, tmp_path: Path) -> None:
    project_id = filled(sqlite_database)
    pseudonym = close_account(sqlite_database, account_named(sqlite_database, "Cleo").id)
    (tmp_path / "a.csv").write_bytes(exported(sqlite_database, project_id, "a.csv"))
    target = open_database(tmp_path / "new.sqlite")
    copy = create_project(target, "Copy", "validity")
    import_items(target, copy.id, tmp_path / "a.csv", DATASET)
    kinds = {line.name: (line.kind, line.projects) for line in list_accounts(target)}
    people, models = ("=ann", "Zoë", pseudonym), ("qwen", "import")
    assert kinds == dict.fromkeys(people, ("person", ())) | dict.fromkeys(models, ("model", ()))
    for password in ("", "x", "a long password"):
        with pytest.raises(CrosslensError, match="password is wrong"):
            log_in(target, "Zoë", password)
    join(target, copy.id, person(target, "new judge"))
    assert next_item(target, copy, account_named(target, "new judge").id) is not None
    target.close()


BROKEN = {
    "labels": ("other project", "is not a label"), "image": ("img99", "is not in the dataset"),
    "source": ("robot", "unknown source"), "seconds": ("soon", "not a judgement"),
    "created": ("2025", "not a judgement"), "rating": ("1.5", "not a judgement"),
    "metrics": ("[1", "not a judgement"), "kind": ("odd", "something else"),
    "judge": ("qwen", "name of a model"),
}  # fmt: skip


@pytest.fixture
def rows(sqlite_database: Database) -> pl.DataFrame:
    """The export of a project."""
    return pl.read_csv(exported(sqlite_database, filled(sqlite_database), "a.csv"), infer_schema=False)


@each_row("column", BROKEN)
def test_a_broken_export_adds_nothing(
    sqlite_database: Database, rows: pl.DataFrame, tmp_path: Path, column: str
) -> None:
    value, problem = BROKEN[column]
    last = pl.int_range(pl.len()) == rows.select(pl.col("source").eq("person").arg_true().max()).item()
    rows.with_columns(pl.when(last).then(pl.lit(value)).otherwise(pl.col(column)).alias(column)).write_csv(
        tmp_path / "b.csv"
    )
    copy = create_project(sqlite_database, "Copy", "validity").id
    with pytest.raises(CrosslensError, match=problem):
        import_items(sqlite_database, copy, tmp_path / "b.csv", DATASET)
    assert items(sqlite_database, copy) == []


def test_pages_take_no_judgements_of_others(sqlite_database: Database, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(exported(sqlite_database, filled(sqlite_database), "a.csv"))
    with pytest.raises(InputError, match="their authors are named"):
        pair_items(tmp_path / "a.csv", DATASET, shown_as="x")


def test_judging_goes_on_where_an_import_ended(sqlite_database: Database, tmp_path: Path) -> None:
    project_id = filled(sqlite_database)
    (tmp_path / "a.jsonl").write_bytes(exported(sqlite_database, project_id, "a.jsonl"))
    copy = create_project(sqlite_database, "Copy", "validity", overlap=4)
    import_items(sqlite_database, copy.id, tmp_path / "a.jsonl", DATASET)
    who = person(sqlite_database, "new", project=copy.id)
    before = load_answers(sqlite_database, copy.id).table.height
    given = 0
    while (assigned := next_item(sqlite_database, copy, who)) is not None:
        judge(sqlite_database, assigned.assignment, who, Answer(("good",)))
        given += 1
    assert given == len(items(sqlite_database, copy.id))
    assert load_answers(sqlite_database, copy.id).table.height == before + given

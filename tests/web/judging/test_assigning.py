"""Who gets which item: exactly n people each, nobody twice, nothing lost, in every order of events."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st
from sqlalchemy import Connection, select

from crosslens.core import CrosslensError
from crosslens.web import remove_member
from crosslens.web.judging.database import assigning
from crosslens.web.judging.database.assigning import (
    AccountCounts,
    Assigned,
    annotator_progress,
    assigned_item,
    next_item,
    project_progress,
)
from crosslens.web.judging.database.engine import Database, open_database
from crosslens.web.judging.database.judgements import judge, record_judgement, undo
from crosslens.web.judging.database.projects import JudgingProject, ProjectSettings, change_project, join
from crosslens.web.judging.database.tables import AssignmentRow, ItemRow, JudgementRow
from crosslens.web.judging.tasks import Answer, checks_due, in_order, is_expected, shuffled_positions
from tests.tables import rest_slow
from tests.web.judging.conftest import Clock
from tests.web.judging.samples import add_items, item, items, judgements, person, project, taken_back

GOOD, BAD = Answer(("good",)), Answer(("bad",))


def given_to(database: Database, project: JudgingProject, account: int) -> Assigned:
    assigned = next_item(database, project, account)
    assert assigned is not None
    return assigned


def work(database: Database, project: JudgingProject, account: int, most: int = 1_000) -> list[str]:
    """Judge until nothing is left; the texts in the order in which they came."""
    texts: list[str] = []
    while len(texts) < most and (assigned := next_item(database, project, account)) is not None:
        assert judge(database, assigned.assignment, account, GOOD, 2.0).is_new
        texts.append(assigned.item.content.texts[0].text)
    return texts


def check_whole(database: Database, project: int, overlap: int, real: int) -> None:
    """From the rows alone: every item was judged by exactly `overlap` different people."""
    per_item: dict[int, list[str]] = {}
    for entry in judgements(database, project):
        if entry.kind == "real":
            per_item.setdefault(entry.item, []).append(entry.account)
    assert len(per_item) == real
    assert {len(people) for people in per_item.values()} == {overlap}
    assert all(len(set(people)) == overlap for people in per_item.values())


@pytest.mark.parametrize(("people", "overlap"), rest_slow([(3, 2), (4, 4), (1, 1)]))
def test_each_item_goes_to_exactly_n_people(database: Database, people: int, overlap: int) -> None:
    new_project = project(database, 7, overlap=overlap)
    accounts = [person(database, f"p{n}", project=new_project.id) for n in range(people)]
    waiting, turn = set(accounts), random.Random(3)
    while waiting:
        account = turn.choice(sorted(waiting))
        if not work(database, new_project, account, most=1):
            waiting.remove(account)
    check_whole(database, new_project.id, overlap, 7)
    assert (
        project_progress(database, new_project.id).done
        == project_progress(database, new_project.id).needed
        == 7 * overlap
    )


def test_too_few_people_leave_items_vacant(sqlite_database: Database) -> None:
    new_project = project(sqlite_database, 4, overlap=3)
    who = person(sqlite_database, "ann", project=new_project.id)
    assert len(work(sqlite_database, new_project, who)) == 4
    assert next_item(sqlite_database, new_project, who) is None
    assert project_progress(sqlite_database, new_project.id).done == 4
    change_project(sqlite_database, new_project.id, 1)
    ben = person(sqlite_database, "ben", project=new_project.id)
    assert next_item(sqlite_database, new_project, ben) is None


def test_asking_again_gives_the_same_item(database: Database) -> None:
    new_project = project(database, 5)
    who = person(database, "ann", project=new_project.id)
    first = given_to(database, new_project, who)
    assert given_to(database, new_project, who) == first
    assert first.following is not None
    judge(database, first.assignment, who, GOOD)
    assert given_to(database, new_project, who).item == first.following


def test_only_members_get_items(sqlite_database: Database) -> None:
    new_project = project(sqlite_database)
    with pytest.raises(CrosslensError, match="not a member"):
        next_item(sqlite_database, new_project, person(sqlite_database, "eve"))


def test_a_second_submission_is_not_a_second_judgement(database: Database) -> None:
    new_project = project(database, 2)
    who = person(database, "ann", project=new_project.id)
    assigned = given_to(database, new_project, who)
    first = judge(database, assigned.assignment, who, GOOD)
    again = judge(database, assigned.assignment, who, BAD)
    assert (first.is_new, again.is_new, again.judgement) == (True, False, first.judgement)
    assert [entry.labels for entry in judgements(database, new_project.id)] == [("good",)]


def test_nobody_answers_for_somebody_else(sqlite_database: Database) -> None:
    new_project = project(sqlite_database, 2)
    ann, eve = (person(sqlite_database, name, project=new_project.id) for name in ("ann", "eve"))
    assigned = given_to(sqlite_database, new_project, ann)
    for number in (assigned.assignment, 12345):
        with pytest.raises(CrosslensError, match="no longer assigned to you"):
            judge(sqlite_database, number, eve, GOOD)
    assert assigned_item(sqlite_database, assigned.assignment, eve) is None
    assert assigned_item(sqlite_database, assigned.assignment, ann) == (assigned.item, "open")


def test_an_abandoned_item_goes_to_somebody_else(database: Database, clock: Clock) -> None:
    new_project = project(database, 1, settings=ProjectSettings(expires=60))
    ann, ben = (person(database, name, project=new_project.id) for name in ("ann", "ben"))
    mine = given_to(database, new_project, ann)
    clock.advance(50)
    assert next_item(database, new_project, ben) is None
    assert given_to(database, new_project, ann) == mine
    clock.advance(50)
    assert next_item(database, new_project, ben) is None, "looking at it again renewed it"
    clock.advance(20)
    taken = given_to(database, new_project, ben)
    assert taken.item.id == mine.item.id
    assert taken.assignment != mine.assignment
    with pytest.raises(CrosslensError, match="no longer assigned"):
        judge(database, mine.assignment, ann, GOOD)
    judge(database, taken.assignment, ben, GOOD)
    assert next_item(database, new_project, ann) is None
    check_whole(database, new_project.id, 1, 1)


def test_a_late_answer_counts_if_nobody_else_got_the_item(database: Database, clock: Clock) -> None:
    new_project = project(database, 1, settings=ProjectSettings(expires=60))
    ann, ben = (person(database, name, project=new_project.id) for name in ("ann", "ben"))
    mine = given_to(database, new_project, ann)
    clock.advance(1_000)
    assert judge(database, mine.assignment, ann, GOOD).is_new
    assert next_item(database, new_project, ben) is None
    check_whole(database, new_project.id, 1, 1)


def test_undo_takes_back_the_last_judgement_and_keeps_it(database: Database) -> None:
    new_project = project(database, 3)
    who = person(database, "ann", project=new_project.id)
    first = given_to(database, new_project, who)
    judge(database, first.assignment, who, GOOD)
    second = given_to(database, new_project, who)
    judge(database, second.assignment, who, GOOD)
    third = given_to(database, new_project, who)
    last = annotator_progress(database, new_project, who).last
    assert undo(database, new_project.id, who, last) == second.assignment
    assert undo(database, new_project.id, who, last) is None, "pressed twice"
    assert given_to(database, new_project, who).item == second.item
    assert undo(database, new_project.id, who) == first.assignment
    assert undo(database, new_project.id, who) is None
    assert given_to(database, new_project, who).item == first.item
    for assigned in (first, second, third):
        assert given_to(database, new_project, who).item == assigned.item
        assert judge(database, assigned.assignment, who, BAD).is_new
    assert [entry.labels for entry in judgements(database, new_project.id)] == [("bad",)] * 3
    assert [labels for labels, _ in taken_back(database, new_project.id)] == [("good",)] * 2
    check_whole(database, new_project.id, 1, 3)


def test_practice_comes_first_and_everybody_gets_it(sqlite_database: Database) -> None:
    new_project = project(sqlite_database, 3, practice=2)
    for name in ("ann", "ben"):
        who = person(sqlite_database, name, project=new_project.id)
        for text in ("practice 0", "practice 1"):
            assigned = given_to(sqlite_database, new_project, who)
            assert assigned.item.content.texts[0].text == text
            assert assigned.item.expected == {"labels": ["good"], "why": f"because of {text}"}
            answer = GOOD if text == "practice 0" else BAD
            assert judge(sqlite_database, assigned.assignment, who, answer).kind == "practice"
            assert is_expected(assigned.item.expected, answer) is (text == "practice 0")
        assert given_to(sqlite_database, new_project, who).item.kind == "real"


def test_attention_checks_are_interleaved(sqlite_database: Database) -> None:
    new_project = project(sqlite_database, 40, checks=4, settings=ProjectSettings(check_every=10))
    who = person(sqlite_database, "ann", project=new_project.id)
    texts = work(sqlite_database, new_project, who)
    checks = [number for number, text in enumerate(texts) if text.startswith("check")]
    assert len(texts) == 44
    assert len(set(texts)) == 44
    assert len(checks) == 4
    for block, number in enumerate(checks):
        assert block * 10 < number - block <= (block + 1) * 10
    assert len({(number - block) % 10 for block, number in enumerate(checks)}) > 1, "not at the same point each time"


def test_distractors_are_given_out_like_any_item(sqlite_database: Database) -> None:
    new_project = project(sqlite_database, 4, overlap=2)
    add_items(sqlite_database, new_project.id, [item(f"distractor {n}", "distractor", ("bad",)) for n in range(2)])
    people = [person(sqlite_database, name, project=new_project.id) for name in ("ann", "ben", "cem")]
    orders = [work(sqlite_database, new_project, account) for account in people]
    assert [len(order) for order in orders] == [6, 6, 0]
    assert project_progress(sqlite_database, new_project.id).needed == 12
    kinds = Counter(entry.kind for entry in judgements(sqlite_database, new_project.id))
    assert kinds == {"real": 8, "distractor": 4}


def test_nobody_gets_more_than_the_quota(sqlite_database: Database) -> None:
    new_project = project(sqlite_database, 9, practice=1, overlap=2, settings=ProjectSettings(per_person=4))
    who = person(sqlite_database, "ann", project=new_project.id)
    assert len(work(sqlite_database, new_project, who)) == 5
    progress = annotator_progress(sqlite_database, new_project, who)
    assert (progress.done, progress.left) == (4, 0)


def test_the_same_seed_gives_the_same_order(sqlite_database: Database) -> None:
    ann, ben = (person(sqlite_database, name) for name in ("ann", "ben"))
    orders = {}
    for account, seed, run in ((ann, 1, 0), (ann, 1, 1), (ann, 2, 0), (ben, 1, 0)):
        new_project = project(sqlite_database, 18, seed=seed)
        join(sqlite_database, new_project.id, account)
        orders[account, seed, run] = work(sqlite_database, new_project, account)
    assert orders[ann, 1, 0] == orders[ann, 1, 1]
    assert orders[ann, 1, 0] != orders[ann, 2, 0]
    assert orders[ann, 1, 0] != orders[ben, 1, 0], "people see the items in different orders"
    assert len({frozenset(order) for order in orders.values()}) == 1


def test_progress_and_time_left(database: Database) -> None:
    new_project = project(database, 10, practice=1, overlap=2)
    ann, ben = (person(database, name, project=new_project.id) for name in ("ann", "ben"))
    assert annotator_progress(database, new_project, ann).seconds_left is None
    work(database, new_project, ann, most=4)
    progress = annotator_progress(database, new_project, ann)
    assert (progress.done, progress.left, progress.practice_done, progress.practice) == (3, 7, 1, 1)
    assert progress.seconds_left == pytest.approx(7 * 2.0)
    next_item(database, new_project, ben)
    whole = project_progress(database, new_project.id)
    assert (whole.done, whole.open, whole.needed) == (3, 0, 20)


def test_a_model_takes_nobodys_turn(database: Database) -> None:
    new_project = project(database, 3)
    ann, model = person(database, "ann", project=new_project.id), person(database, "some model")
    for entry in items(database, new_project.id):
        assert record_judgement(database, entry.id, model, BAD, source="model").is_new
        assert not record_judgement(database, entry.id, model, GOOD, source="model").is_new
    assert len(work(database, new_project, ann)) == 3
    assert Counter(entry.source for entry in judgements(database, new_project.id)) == {"model": 3, "person": 3}
    assert project_progress(database, new_project.id).done == 3
    assert undo(database, new_project.id, model) is None


def test_a_recorded_answer_of_a_person_takes_a_turn(sqlite_database: Database) -> None:
    new_project = project(sqlite_database, 3, overlap=1)
    ann, ben = (person(sqlite_database, name, project=new_project.id) for name in ("ann", "ben"))
    number = items(sqlite_database, new_project.id)[0].id
    record_judgement(sqlite_database, number, ann, GOOD, source="person")
    assert len(work(sqlite_database, new_project, ben)) == 2


def test_items_may_be_added_later(sqlite_database: Database) -> None:
    new_project = project(sqlite_database, 2)
    who = person(sqlite_database, "ann", project=new_project.id)
    assert len(work(sqlite_database, new_project, who)) == 2
    add_items(sqlite_database, new_project.id, [item("late")])
    assert work(sqlite_database, new_project, who) == ["late"]


def test_many_at_once_lose_and_double_nothing(database: Database) -> None:
    """Five people in threads, some of whom send everything twice, take back, or open the page in two windows."""
    real, overlap, people = 10, 3, 5
    new_project = project(database, real, overlap=overlap)
    accounts = [person(database, f"p{n}", project=new_project.id) for n in range(people)]
    acknowledged: Counter[int] = Counter()
    faults: list[BaseException] = []

    def run(account: int) -> None:
        turn = random.Random(account)
        try:
            while (assigned := next_item(database, new_project, account)) is not None:
                senders = [
                    threading.Thread(target=judge, args=(database, assigned.assignment, account, GOOD))
                    for _ in range(2)
                ]
                for sender in senders:
                    sender.start()
                for sender in senders:
                    sender.join()
                acknowledged[account] += 1
                if turn.random() < 0.1 and undo(database, new_project.id, account) is not None:
                    acknowledged[account] -= 1
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=run, args=(account,)) for account in accounts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    check_whole(database, new_project.id, overlap, real)
    with database.reading() as session:
        stored = Counter(session.scalars(select(JudgementRow.account)))
        assert stored == +acknowledged
        assert set(session.scalars(select(AssignmentRow.state))) == {"done"}


@given(st.integers(0, 5), st.integers(0, 50), st.integers(0, 40))
def test_positions_are_a_permutation(seed: int, first: int, count: int) -> None:
    assert sorted(shuffled_positions(seed, first, count)) == list(range(first, first + count))


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 15))
def test_one_check_falls_into_each_block(seed: int, account: int, every: int) -> None:
    due = [checks_due(seed, account, shared, every) for shared in range(5 * every + 1)]
    assert due[0] == 0
    assert all(0 <= later - earlier <= 1 for earlier, later in pairwise(due))
    assert [due[block * every] for block in range(6)] == list(range(6))
    assert checks_due(seed, account, 10, 0) == 0


@given(st.integers(0, 99), st.integers(0, 99), st.lists(st.integers(0, 1_000), unique=True))
def test_an_order_does_not_depend_on_who_asks_first(seed: int, account: int, positions: list[int]) -> None:
    ordered = in_order(seed, account, positions)
    assert ordered == in_order(seed, account, sorted(positions))
    assert sorted(ordered) == sorted(positions)


@pytest.mark.parametrize("count", [1, 2])
def test_somebody_else_takes_the_item_in_the_last_moment(
    postgresql_server: Callable[[], str], monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    database = open_database(postgresql_server())
    new_project = project(database, count)
    ann, ben = (person(database, name, project=new_project.id) for name in ("ann", "ben"))
    faster: list[Assigned | None] = []
    meanwhile(monkeypatch, ann, lambda: faster.append(next_item(database, new_project, ben)))
    late = next_item(database, new_project, ann)
    assert faster[0] is not None
    if count == 1:
        assert late is None
    else:
        assert late is not None
        assert late.item.id != faster[0].item.id
    with database.reading() as session:
        assert set(session.scalars(select(ItemRow.vacancies))) == {0}
    database.close()


@pytest.mark.parametrize("event", ["opened", "judged", "undone"])
def test_another_window_of_the_same_person_is_faster(
    database: Database, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    new_project = project(database, 4, overlap=2, settings=ProjectSettings(per_person=2))
    ann = person(database, "ann", project=new_project.id)
    first = given_to(database, new_project, ann)
    judge(database, first.assignment, ann, GOOD)
    later_items: list[Assigned] = []

    def in_other_window() -> None:
        if event == "undone":
            undo(database, new_project.id, ann)
        else:
            later_items.append(given_to(database, new_project, ann))
        if event == "judged":
            judge(database, later_items[0].assignment, ann, GOOD)

    meanwhile(monkeypatch, ann, in_other_window)
    late = next_item(database, new_project, ann)
    if event == "judged":
        assert late is None, "ann has judged as many as she may"
    else:
        assert late is not None
        assert late.assignment == (first if event == "undone" else later_items[0]).assignment
    with database.reading() as session:
        given = session.scalars(select(AssignmentRow.item)).all()
        assert len(given) == len(set(given)) == (1 if event == "undone" else 2)
        assert sum(session.scalars(select(ItemRow.vacancies))) == 8 - len(given)


@pytest.mark.parametrize("event", ["judged", "removed"])
def test_an_open_item_changes_while_it_is_looked_up(
    database: Database, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    new_project = project(database, 2)
    ann = person(database, "ann", project=new_project.id)
    first = given_to(database, new_project, ann)
    if event == "removed":
        meanwhile(monkeypatch, ann, lambda: remove_member(database, new_project.id, ann))
        with pytest.raises(CrosslensError, match="not a member"):
            next_item(database, new_project, ann)
        with database.reading() as session:
            assert session.scalars(select(AssignmentRow.id)).all() == []
    else:
        meanwhile(monkeypatch, ann, lambda: judge(database, first.assignment, ann, GOOD))
        assert given_to(database, new_project, ann).item == first.following


def meanwhile(monkeypatch: pytest.MonkeyPatch, account: int, event: Callable[[], object]) -> None:
    """Let something happen once, after it was read what the account may get and before it gets it."""
    candidates, happened = assigning._candidates, []

    def interrupted(connection: Connection, project: JudgingProject, who: int, counts: AccountCounts) -> list[int]:
        positions = candidates(connection, project, who, counts)
        if who == account and not happened:
            happened.append(connection)
            event()
        return positions

    monkeypatch.setattr(assigning, "_candidates", interrupted)

"""What works once works once, also for many who come at the same moment: on SQLite and on PostgreSQL."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher
from sqlalchemy import func, select

from crosslens.web import create_invitation, members
from crosslens.web.judging import accounts
from crosslens.web.judging.database.tables import AccountRow
from crosslens.web.judging.importing import add_new_items
from tests.tables import rest_slow
from tests.web.judging.samples import item, items, person, project
from tests.web.judging.site import Site

PASSWORD = "correct horse battery"
PEOPLE = 6


@pytest.fixture
def site(with_tables: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server without any account, on each database; hashing takes its time, as it does outside of tests.

    With a thread for each password: transactions of one server overlap as those of several servers do.
    """
    monkeypatch.setattr(accounts, "_HASHER", PasswordHasher(time_cost=1, memory_cost=4096, parallelism=1))
    monkeypatch.setattr(accounts, "_HASHING", ThreadPoolExecutor(PEOPLE))
    opened = Site(tmp_path / "runs", ["judging"], database=with_tables)
    yield opened
    opened.database.close()


def at_once(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """What the calls return, all started at the same moment."""
    barrier = threading.Barrier(len(calls))

    def wait_and(call: Callable[[], Any]) -> Any:
        barrier.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(wait_and, calls))


def posts(
    site: Site, path: str, fields: Callable[[int], dict[str, str]], accounts: Sequence[int | None]
) -> Counter[int]:
    """The statuses of simultaneous posts, each of a browser of its own."""
    visitors = [site.visitor(account) for account in accounts]
    for visitor in visitors:
        visitor.get("/login")
    calls = [lambda n=n: visitors[n].post(path, fields(n)).status_code for n in range(len(visitors))]
    return Counter(at_once(calls))


def new_person(number: int) -> dict[str, str]:
    return {"name": f"person {number}", "password": PASSWORD}


def owners(site: Site) -> int:
    with site.database.reading() as session:
        return session.scalar(select(func.count()).select_from(AccountRow).where(AccountRow.is_owner)) or 0


@pytest.mark.parametrize("with_tables", rest_slow(["sqlite", "postgresql"]), indirect=True)
def test_the_setup_link_makes_one_owner(site: Site) -> None:
    (note,) = site.app.state.services.start_notes
    statuses = posts(site, "/" + note.partition("{address}")[2], new_person, [None] * PEOPLE)
    assert owners(site) == 1
    assert statuses == {303: 1, 404: PEOPLE - 1}


@pytest.mark.parametrize("with_tables", rest_slow(["postgresql", "sqlite"]), indirect=True)
def test_the_setup_links_of_two_servers_make_one_owner(site: Site, tmp_path: Path) -> None:
    servers = [site, *(Site(tmp_path / "runs", ["judging"], database=site.address) for _ in range(2))]
    paths = ["/" + server.app.state.services.start_notes[0].partition("{address}")[2] for server in servers]
    visitors = [server.visitor() for server in servers]
    for visitor in visitors:
        visitor.get("/login")
    calls = [lambda n=n: visitors[n].post(paths[n], new_person(n)).status_code for n in range(len(servers))]
    assert Counter(at_once(calls)) == {303: 1, 404: len(servers) - 1}
    assert owners(site) == 1
    for server in servers[1:]:
        server.database.close()


@pytest.mark.parametrize("with_tables", rest_slow(["postgresql", "sqlite"]), indirect=True)
@pytest.mark.parametrize("uses", rest_slow([3, 1]))
def test_an_invitation_lets_in_as_many_as_it_says(site: Site, uses: int) -> None:
    new_project = project(site.database, 1)
    path = f"/join/{create_invitation(site.database, new_project.id, uses=uses)}"
    with_account = [person(site.database, f"member {n}") for n in range(PEOPLE // 2)]
    statuses = posts(site, path, lambda _: {}, with_account)
    assert statuses[303] == len(members(site.database, new_project.id)) == min(uses, len(with_account))
    path = f"/join/{create_invitation(site.database, new_project.id, uses=uses)}"
    before = len(members(site.database, new_project.id))
    statuses = posts(site, f"{path}/account", new_person, [None] * PEOPLE)
    assert statuses[303] == len(members(site.database, new_project.id)) - before == uses


@pytest.mark.parametrize("with_tables", rest_slow(["sqlite", "postgresql"]), indirect=True)
def test_a_name_is_taken_once(site: Site) -> None:
    new_project = project(site.database, 1)
    path = f"/join/{create_invitation(site.database, new_project.id, uses=PEOPLE)}/account"
    statuses = posts(site, path, lambda n: {"name": ("Ann", "ANN", " ann ")[n % 3], "password": PASSWORD}, [None] * 6)
    assert statuses == {303: 1, 422: 5}


def test_the_same_items_imported_at_once_are_added_once(site: Site) -> None:
    new_project = project(site.database, 1)
    new = [item(f"item {n}") for n in range(20)]
    results = at_once([lambda: add_new_items(site.database, new_project.id, new, "x") for _ in range(4)])
    assert len(items(site.database, new_project.id)) == 21
    assert sorted(sum(result.added.values()) for result in results) == [0, 0, 0, 20]

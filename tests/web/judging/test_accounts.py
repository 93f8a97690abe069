"""Accounts: passwords, sessions, invitation links, who may see what."""

from __future__ import annotations

import asyncio
import re
import threading
from pathlib import Path

import pytest
import uvicorn
from argon2 import PasswordHasher
from httpx import ASGITransport, AsyncClient
from sqlalchemy import select, text

from crosslens.core import ConflictError, CrosslensError, UnknownNameError
from crosslens.web import WebSettings, account_named, create_invitation, make_reset_link, members, serve_pages
from crosslens.web.judging import accounts
from crosslens.web.judging.accounts import (
    SESSION_SECONDS,
    accept_invitation,
    accept_with_new_account,
    invitation,
    log_in,
    log_out,
    model_account,
    owner_count,
    session_account,
    set_password,
)
from crosslens.web.judging.context import local_path
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.tables import AccountRow, InvitationRow
from tests.web.judging.conftest import HASHER, Clock
from tests.web.judging.samples import create_account, person, project
from tests.web.judging.site import ADDRESS, Site, Visitor, addresses

PASSWORD = "correct horse battery"


def test_passwords_are_kept_as_argon2_hashes(sqlite_database: Database) -> None:
    account = create_account(sqlite_database, "Ann", PASSWORD)
    with sqlite_database.reading() as session:
        stored = session.scalar(select(AccountRow.password_hash))
    assert stored is not None
    assert stored.startswith("$argon2id$")
    token = log_in(sqlite_database, " ANN ", PASSWORD)
    assert session_account(sqlite_database, token) == account
    with sqlite_database.reading() as session:
        everything = str(
            [session.execute(text(f"SELECT * FROM {table}")).all() for table in ("account", "login_session")]
        )
    assert PASSWORD not in everything
    assert (HASHER.memory_cost, HASHER.time_cost) == (19 * 1024, 2), "OWASP's least for one lane"
    other_parameters = PasswordHasher(time_cost=1, memory_cost=64, parallelism=4)
    assert accounts.is_password(other_parameters.hash(PASSWORD), PASSWORD), "a hash of an earlier version"
    assert token not in everything


def test_no_form_brings_a_character_that_a_database_refuses(address: str, tmp_path: Path) -> None:
    """PostgreSQL keeps no NUL: the answer was a bug (500), also to those who had not logged in."""
    site = Site(tmp_path / "runs", ["judging"], database=address)
    owner, number = site.owner(), project(site.database, 1).id
    changed = {"overlap": "1", "guidelines": "a\0b"}
    assert site.visitor().post("/login", {"name": "a\0b", "password": "x"}).status_code == 422
    assert site.visitor(owner).post(f"/projects/{number}/owner/settings", changed).status_code == 422
    site.database.close()


def test_sessions_end(sqlite_database: Database, clock: Clock) -> None:
    account = create_account(sqlite_database, "Ann", PASSWORD)
    first, second, third = (log_in(sqlite_database, "Ann", PASSWORD) for _ in range(3))
    log_out(sqlite_database, first)
    assert session_account(sqlite_database, first) is None
    assert session_account(sqlite_database, second) == account
    set_password(sqlite_database, account.id, "another long password")
    assert session_account(sqlite_database, third) is None
    fourth = log_in(sqlite_database, "Ann", "another long password")
    clock.advance(SESSION_SECONDS + 1)
    assert session_account(sqlite_database, fourth) is None
    for wrong in ("", "x", "a" * 43, "ü" * 43):
        assert session_account(sqlite_database, wrong) is None


@pytest.mark.parametrize(("name", "password"), [("Ann", "wrong password"), ("Bob", PASSWORD), ("a model", PASSWORD)])
def test_a_wrong_login_says_nothing_about_names(sqlite_database: Database, name: str, password: str) -> None:
    create_account(sqlite_database, "Ann", PASSWORD)
    model_account(sqlite_database, "a model")
    with pytest.raises(CrosslensError, match="the name or the password is wrong"):
        log_in(sqlite_database, name, password)


def test_names_that_look_alike_are_one_name(database: Database) -> None:
    create_account(database, "Ann  Lee", None)
    for name in ("ann lee", "ANN LEE", "Ａｎｎ Lee"):
        with pytest.raises(ConflictError, match="already used"):
            create_account(database, name, None)
    account = account_named(database, "ann LEE")
    assert account.name == "Ann Lee"


@pytest.mark.parametrize("name", ["", "   ", "x" * 81, "a\x00b", "a\u202eb"])
def test_bad_names(sqlite_database: Database, name: str) -> None:
    with pytest.raises(CrosslensError, match="printable characters"):
        create_account(sqlite_database, name, None)


@pytest.mark.parametrize("password", ["short", "x" * 201])
def test_bad_passwords(sqlite_database: Database, password: str) -> None:
    with pytest.raises(CrosslensError, match="a password has 10 to 200 characters"):
        create_account(sqlite_database, "Ann", password)


def test_a_models_account(sqlite_database: Database) -> None:
    assert model_account(sqlite_database, "qwen") == model_account(sqlite_database, "qwen")
    create_account(sqlite_database, "Ann", PASSWORD)
    with pytest.raises(ConflictError, match="name of a person"):
        model_account(sqlite_database, "ann")


def test_an_invitation_is_used_up(database: Database) -> None:
    new_project = project(database)
    token = create_invitation(database, new_project.id, uses=2)
    with database.reading() as session:
        assert session.scalar(select(InvitationRow.token_hash)) != token
    ann, ben, eve = (person(database, name) for name in ("ann", "ben", "eve"))
    assert accept_invitation(database, token, ann) == new_project.id
    assert accept_invitation(database, token, ann) == new_project.id, "again by the same person uses nothing up"
    assert accept_invitation(database, token, ben) == new_project.id
    assert invitation(database, token) is None
    with pytest.raises(CrosslensError, match="used or has expired"):
        accept_invitation(database, token, eve)
    assert [name for _, name, _ in members(database, new_project.id)] == ["ann", "ben"]


def test_an_invitation_expires(database: Database, clock: Clock) -> None:
    new_project = project(database)
    token = create_invitation(database, new_project.id, days=1, role="owner")
    offer = invitation(database, token)
    assert offer is not None
    assert (offer.project_name, offer.role) == ("Survey", "owner")
    clock.advance(24 * 3600)
    assert invitation(database, token) is None
    with pytest.raises(CrosslensError, match="used or has expired"):
        accept_with_new_account(database, token, "Ann", PASSWORD)
    with pytest.raises(UnknownNameError, match="unknown account 'Ann'"):
        account_named(database, "Ann")


def test_an_invitation_for_an_owner(sqlite_database: Database) -> None:
    token = create_invitation(sqlite_database, None, role="owner")
    with sqlite_database.reading() as session:
        assert owner_count(session) == 0
    owner = session_account(sqlite_database, accept_with_new_account(sqlite_database, token, "Olga", PASSWORD))
    assert owner is not None
    assert owner.is_owner
    with sqlite_database.reading() as session:
        assert owner_count(session) == 1


@pytest.mark.parametrize(
    ("values", "problem"),
    [({"role": "king"}, "not a role"), ({"uses": 0}, "uses is 0"), ({"days": 0}, "days is 0"), ({"days": 999}, "days")],
)
def test_bad_invitations(sqlite_database: Database, values: dict[str, object], problem: str) -> None:
    with pytest.raises(CrosslensError, match=problem):
        create_invitation(sqlite_database, project(sqlite_database).id, **values)  # type: ignore[arg-type]
    with pytest.raises(CrosslensError, match="not a role"):
        create_invitation(sqlite_database, None)


# The pages.


def test_the_first_account_is_made_with_the_link_of_the_terminal(tmp_path: Path) -> None:
    site = Site(tmp_path / "runs", ["judging"])
    assert not (tmp_path / "runs" / "judging.sqlite").exists(), "a folder that is only looked at stays as it is"
    visitor = site.visitor()
    assert "no account yet" in visitor.get("/judging").text
    assert visitor.post("/login", {"name": "a", "password": PASSWORD}).status_code == 401
    (note,) = site.app.state.services.start_notes
    path = "/" + note.partition("{address}")[2]
    assert visitor.get("/setup/" + "x" * 43).status_code == 404
    assert visitor.get(path).status_code == 200
    assert visitor.post(path, {"name": "Olga", "password": "short"}).status_code == 422
    response = visitor.post(path, {"name": "Olga", "password": PASSWORD})
    assert (response.status_code, response.headers["location"]) == (303, "/judging")
    assert "Olga" in visitor.get("/judging").text
    assert site.visitor().get(path).status_code == 404
    assert site.visitor().post(path, {"name": "Eve", "password": PASSWORD}).status_code == 404
    assert Site(tmp_path / "runs", ["judging"]).app.state.services.start_notes == []


def test_the_server_prints_the_link_until_there_is_an_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: [listener.close() for listener in sockets])
    (tmp_path / "runs").mkdir()
    settings = WebSettings(tmp_path / "runs", port=0, cache=tmp_path)
    lines: list[str] = []
    serve_pages(settings, lines.append, lines.append)
    assert re.fullmatch(r"to judge, make the first account at http://127\.0\.0\.1:\d+/setup/[\w-]{43}", lines[-1])
    Site(tmp_path / "runs", ["judging"]).owner()
    lines.clear()
    serve_pages(settings, lines.append, lines.append)
    assert not [line for line in lines if "/setup/" in line]


def test_login_and_logout(site: Site) -> None:
    create_account(site.database, "Ann", PASSWORD)
    visitor = site.visitor()
    sent_away = visitor.get("/projects/1/annotate?note=x")
    assert (sent_away.status_code, sent_away.headers["location"]) == (
        303,
        "/login?next=%2Fprojects%2F1%2Fannotate%3Fnote%3Dx",
    )
    wrong = visitor.post("/login", {"name": "Ann", "password": "wrong password"})
    assert wrong.status_code == 401
    assert "The name or the password is wrong." in wrong.text
    done = visitor.post("/login", {"name": "Ann", "password": PASSWORD, "next": "/judging"})
    assert done.status_code == 303
    cookie = next(value for value in done.headers.get_list("set-cookie") if value.startswith("crosslens_session="))
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert visitor.get("/account").status_code == 200
    assert visitor.post("/logout").status_code == 303
    assert visitor.get("/account").status_code == 303


def test_the_cookie_is_for_https_only_where_there_is_https(site: Site) -> None:
    create_account(site.database, "Ann", PASSWORD)
    visitor = site.visitor(address="https://127.0.0.1:8000")
    done = visitor.post("/login", {"name": "Ann", "password": PASSWORD})
    assert all("Secure" in cookie for cookie in done.headers.get_list("set-cookie"))


def test_guessing_is_slowed_down(site: Site) -> None:
    visitor = site.visitor()
    tries = [visitor.post("/login", {"name": f"n{n}", "password": "wrong password"}).status_code for n in range(11)]
    assert tries == [401] * 10 + [429]


def test_change_of_password(site: Site) -> None:
    account = create_account(site.database, "Ann", PASSWORD)
    visitor, second_visitor = site.visitor(account.id), site.visitor(account.id)
    assert visitor.post("/account/password", {"old": "not the password", "new": "a new password"}).status_code == 422
    assert visitor.post("/account/password", {"old": PASSWORD, "new": "short"}).status_code == 422
    changed = visitor.post("/account/password", {"old": PASSWORD, "new": "a new password"})
    assert "has been changed" in visitor.get(changed.headers["location"]).text
    assert visitor.get("/account").status_code == 200
    assert second_visitor.get("/account").status_code == 303
    assert site.visitor().post("/login", {"name": "Ann", "password": PASSWORD}).status_code == 401


def test_joining_by_link(site: Site) -> None:
    new_project = project(site.database)
    path = "/join/" + create_invitation(site.database, new_project.id, uses=2)
    visitor = site.visitor()
    assert "Join “Survey”" in visitor.get(path).text
    assert visitor.post(f"{path}/account", {"name": "", "password": PASSWORD}).status_code == 422
    joined = visitor.post(f"{path}/account", {"name": "Ann", "password": PASSWORD})
    assert (joined.status_code, joined.headers["location"]) == (303, f"/projects/{new_project.id}")
    assert visitor.get(f"/projects/{new_project.id}").status_code == 200
    taken = site.visitor().post(f"{path}/account", {"name": "ann", "password": PASSWORD})
    assert taken.status_code == 422
    assert "already used" in taken.text
    ben = site.visitor(person(site.database, "ben"))
    assert "Join as ben" in ben.get(path).text
    assert ben.post(path).status_code == 303
    for late in (site.visitor().get(path), site.visitor().post(f"{path}/account", {"name": "x", "password": PASSWORD})):
        assert late.status_code == 404
    assert site.visitor().get("/join/nonsense").status_code == 404


class WatchedHasher:
    """A hasher that notes in which threads it was asked, and waits while it is held."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._hasher, self.threads = accounts._HASHER, list[str]()
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        monkeypatch.setattr(accounts, "_HASHER", self)

    def hash(self, password: str) -> str:
        self._note()
        return self._hasher.hash(password)

    def verify(self, stored: str, password: str) -> bool:
        self._note()
        return self._hasher.verify(stored, password)

    def _note(self) -> None:
        self.threads.append(threading.current_thread().name)
        self.may_go_on.wait(60)


def test_many_who_join_keep_nobody_else_waiting(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """More people than there are threads for requests join while no hash is finished; the login page is answered."""
    people = 45
    new_project = project(site.database)
    path = "/join/" + create_invitation(site.database, new_project.id, uses=people)
    hasher = WatchedHasher(monkeypatch)
    hasher.may_go_on.clear()
    token = "x" * 43
    browser = {"base_url": ADDRESS, "cookies": {"crosslens_csrf": token}, "transport": ASGITransport(site.app)}

    async def join_together() -> list[int]:
        async with AsyncClient(**browser) as client:  # type: ignore[arg-type]
            fields = {"password": PASSWORD, "csrf_token": token}
            joining = [
                asyncio.create_task(client.post(f"{path}/account", data=fields | {"name": f"n{number}"}))
                for number in range(people)
            ]
            try:
                while not hasher.threads:
                    await asyncio.sleep(0.01)
                page = await asyncio.wait_for(client.get("/login"), 20)
                assert page.status_code == 200
                assert not any(task.done() for task in joining)
            finally:
                hasher.may_go_on.set()
            return [(await task).status_code for task in joining]

    assert asyncio.run(join_together()) == [303] * people
    assert len(members(site.database, new_project.id)) == people
    assert len(hasher.threads) == people, "a password is hashed once, not again to log in with it"


def test_passwords_are_hashed_in_threads_of_their_own(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    hasher = WatchedHasher(monkeypatch)
    ann = create_account(site.database, "Ann", PASSWORD)
    joining = create_invitation(site.database, project(site.database).id)
    reset = make_reset_link(site.database, create_account(site.database, "Resi", PASSWORD).id)
    new = Site(site.settings.folder.parent / "new", ["judging"])
    (note,) = new.app.state.services.start_notes
    requests: list[tuple[Visitor, str, dict[str, str], int]] = [
        (site.visitor(), "/login", {"name": "Ann", "password": PASSWORD}, 1),
        (site.visitor(), "/login", {"name": "nobody", "password": PASSWORD}, 1),
        (site.visitor(), f"/join/{joining}/account", {"name": "Ben", "password": PASSWORD}, 1),
        (site.visitor(), f"/reset/{reset}", {"password": PASSWORD}, 1),
        (site.visitor(ann.id), "/account/password", {"old": PASSWORD, "new": "another password"}, 2),
        (site.visitor(site.owner("Ola")), f"/accounts/{ann.id}/reset", {}, 0),
        (new.visitor(), "/" + note.partition("{address}")[2], {"name": "Olga", "password": PASSWORD}, 1),
    ]
    for visitor, path, fields, hashes in requests:
        hasher.threads.clear()
        assert visitor.post(path, fields).status_code in (200, 303, 401), path
        assert len(hasher.threads) == hashes, path
        assert all(name.startswith("passwords") for name in hasher.threads), path


@pytest.mark.parametrize(
    "address",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)", "",
     "/\t/evil.example", "evil", "/%0d%0aSet-Cookie:x\r\n"],
)  # fmt: skip
def test_a_login_leads_nowhere_else(address: str) -> None:
    assert local_path(address) == "/judging"
    assert local_path("/projects/1?note=x") == "/projects/1?note=x"


def test_every_form_needs_its_token(site: Site) -> None:
    assert project(site.database, 1).id == 1
    visitor = site.visitor(person(site.database, "ann", project=1))
    for path in (
        "/login", "/logout", "/account/password", "/join/x", "/join/x/account", "/setup/x", "/projects/1/judge",
        "/projects/1/undo",
    ):  # fmt: skip
        assert visitor.post(path, token="x" * 43).status_code == 403, path


def test_every_address_that_changes_something_checks_the_token(site: Site) -> None:
    """Not a list by hand: whatever the application offers."""
    visitor = site.visitor(site.owner("second"))
    assert project(site.database, 1).id == 1, "the addresses below are of a project that is there"
    changing = [entry for entry in addresses(site.app.routes) if entry[0] not in ("GET", "HEAD", "OPTIONS")]
    assert ("POST", "/login") in changing
    for method, path in changing:
        filled = re.sub(r"\{[^}]+\}", "1", path)
        assert visitor.client.request(method, filled).status_code == 403, (method, path)


# Who may see what.


def test_an_annotator_reaches_no_owner_page(site: Site) -> None:
    new_project = project(site.database, 2)
    other_project = project(site.database, 2)
    ann = site.visitor(person(site.database, "ann", project=new_project.id))
    owner = site.visitor(person(site.database, "own", project=new_project.id, role="owner"))
    for path in (
        f"/projects/{other_project.id}",
        f"/projects/{other_project.id}/annotate",
        f"/projects/{other_project.id}/guidelines",
    ):
        assert ann.get(path).status_code == 404
        assert owner.get(path).status_code == 404
    assert "/owner" not in ann.get(f"/projects/{new_project.id}").text
    assert f"/projects/{new_project.id}/owner" in owner.get(f"/projects/{new_project.id}").text
    for number in (0, -1, 2**31, 10**30, f"0{new_project.id}", f"{new_project.id}.0", f"+{new_project.id}"):
        assert ann.get(f"/projects/{number}").status_code == 404


def test_every_owner_page_asks_who_is_there(site: Site) -> None:
    new_project = project(site.database, 2)
    ann = site.visitor(person(site.database, "ann", project=new_project.id))
    eve, nobody = site.visitor(person(site.database, "eve")), site.visitor()
    for method, path in addresses(site.app.routes):
        if not path.startswith("/projects/{project}/owner"):
            continue
        filled = re.sub(r"\{[^}]+\}", "1", path.replace("{project}", str(new_project.id)))
        for visitor, status in ((ann, 403), (eve, 404), (nobody, 303)):
            answer = visitor.get(filled) if method in ("GET", "HEAD") else visitor.post(filled)
            assert answer.status_code == status, (method, path)


def test_require_owner(site: Site) -> None:
    """What every owner page asks first."""
    from starlette.exceptions import HTTPException
    from starlette.requests import Request

    from crosslens.web.judging.accounts import open_session
    from crosslens.web.judging.context import JudgingContext

    new_project = project(site.database, 1)
    context = JudgingContext(site.settings)

    def status(account: int | None, number: int) -> int:
        cookie = b"" if account is None else f"crosslens_session={open_session(site.database, account)}".encode()
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"cookie", cookie)], "query_string": b""}
        try:
            assert context.require_owner(Request({**scope, "server": ("x", 80)}), number).id == account
        except HTTPException as error:
            return error.status_code
        return 200

    ann = person(site.database, "ann", project=new_project.id)
    project_owner = person(site.database, "own", project=new_project.id, role="owner")
    eve = person(site.database, "eve")
    statuses = [status(who, new_project.id) for who in (None, eve, ann, project_owner, site.owner("o"))]
    assert statuses == [303, 404, 403, 200, 200]
    assert status(project_owner, new_project.id + 1) == 404


def test_elsewhere_annotators_see_only_what_they_judge(tmp_path: Path) -> None:
    Site(tmp_path / "runs", ["judging"]).owner()
    site = Site(tmp_path / "runs", host="0.0.0.0")
    new_project = project(site.database, 1)
    nobody = site.visitor()
    ann = site.visitor(person(site.database, "ann", project=new_project.id))
    owner = site.visitor(site.owner("second"))
    for path in ("/", "/datasets", "/judging"):
        assert nobody.get(path).status_code == 303, path
    for path in ("/api/openapi.json", "/pictures/x/y"):
        assert nobody.get(path).status_code == 401, path
    assert nobody.get("/login").status_code == 200
    assert (ann.get("/").status_code, ann.get("/").headers["location"]) == (303, "/judging")
    assert ann.get("/datasets").status_code == 403
    assert ann.get(f"/projects/{new_project.id}/annotate").status_code == 200
    assert ann.get("/pictures/x/y").status_code == 404
    assert owner.get("/datasets").status_code == 200


def test_elsewhere_without_any_account_the_server_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(CrosslensError, match="no login is set up"):
        Site(tmp_path / "runs", host="0.0.0.0")

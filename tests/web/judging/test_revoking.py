"""What was given is taken back, at once: memberships, invitations, passwords, sessions, accounts; and who did it."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text

from crosslens.core import ConflictError, CrosslensError
from crosslens.web import (
    ExportOptions,
    audit_log,
    close_account,
    create_invitation,
    end_sessions,
    export_content,
    list_accounts,
    load_answers,
    make_reset_link,
    members,
    open_invitations,
    remove_member,
    revoke_invitation,
)
from crosslens.web.judging import accounts, routes
from crosslens.web.judging.accounts import (
    RESET_DAYS,
    Account,
    accept_invitation,
    accept_with_new_account,
    log_in,
    model_account,
    open_session,
    reset_account,
    reset_password,
    session_account,
    set_password,
)
from crosslens.web.judging.database.assigning import next_item
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.judgements import judge
from crosslens.web.judging.database.projects import join
from crosslens.web.judging.database.tables import JudgingTable
from crosslens.web.judging.tasks import Answer
from tests.tables import rest_slow
from tests.web.judging.conftest import Clock
from tests.web.judging.owned import Owned
from tests.web.judging.samples import create_account, person, project
from tests.web.judging.site import Site, Visitor, addresses
from tests.web.judging.test_once import at_once

PASSWORD, OTHER = "correct horse battery", "another long password"
NAME = "Zacharias Quillfeather"


def everything_in(database: Database) -> str:
    with database.reading() as session:
        return str([session.execute(table.select()).all() for table in JudgingTable.metadata.sorted_tables])


# Members and invitations.


def test_a_member_who_is_removed_is_out_and_open_items_go_to_others(database: Database) -> None:
    new_project = project(database, 2)
    ann, ben = (person(database, name, project=new_project.id) for name in ("ann", "ben"))
    first, _ = next_item(database, new_project, ann), next_item(database, new_project, ben)
    assert first is not None
    judge(database, first.assignment, ann, Answer(("good",)))
    remove_member(database, new_project.id, ben)
    with pytest.raises(CrosslensError, match="not a member"):
        next_item(database, new_project, ben)
    again = next_item(database, new_project, ann)
    assert again is not None, "the item that ben had open"
    remove_member(database, new_project.id, ann)
    with pytest.raises(CrosslensError, match="no longer assigned"):
        judge(database, again.assignment, ann, Answer(("good",)))
    assert members(database, new_project.id) == []
    assert load_answers(database, new_project.id).table["account"].to_list() == ["ann"], "judgements stay"
    with pytest.raises(CrosslensError, match="not a member"):
        remove_member(database, new_project.id, ben)


def test_the_last_owner_cannot_be_removed(database: Database) -> None:
    new_project = project(database, 1)
    ann, ben = (person(database, name, project=new_project.id, role="owner") for name in ("ann", "ben"))
    remove_member(database, new_project.id, ann)
    for change in (lambda: remove_member(database, new_project.id, ben), lambda: close_account(database, ben)):
        with pytest.raises(ConflictError, match=f"the last owner of project {new_project.id} cannot be removed"):
            change()
    assert [name for _, name, _ in members(database, new_project.id)] == ["ben"]
    olga = create_account(database, "Olga", None, is_owner=True)
    remove_member(database, new_project.id, ben)  # Olga owns everything
    with pytest.raises(ConflictError, match="the last owner cannot be removed"):
        close_account(database, olga.id)
    assert "Olga" in everything_in(database)


@pytest.mark.parametrize("with_tables", rest_slow(["sqlite", "postgresql"]), indirect=True)
def test_owners_who_close_each_other_at_once_leave_one(database: Database) -> None:
    new_project = project(database, 1)
    owners = [create_account(database, f"owner {n}", None, is_owner=True).id for n in range(4)]
    project_owners = [person(database, f"own {n}", project=new_project.id, role="owner") for n in range(4)]

    def closed(account: int) -> bool:
        try:
            close_account(database, account)
        except ConflictError:
            return False
        return True

    assert sum(at_once([lambda n=n: closed(n) for n in owners])) == 3
    assert [line.kind for line in list_accounts(database)].count("owner") == 1
    assert all(at_once([lambda n=n: closed(n) for n in project_owners])), (
        "the owner of the server owns the project, too"
    )


def test_a_revoked_invitation_lets_nobody_in(database: Database) -> None:
    new_project, other_project = project(database, 1), project(database, 1)
    token, kept = (create_invitation(database, new_project.id, uses=5) for _ in range(2))
    ann, ben = person(database, "ann"), person(database, "ben")
    accept_invitation(database, token, ann)
    first, second = open_invitations(database, new_project.id)
    assert (first.used, second.used) == (1, 0)
    with pytest.raises(CrosslensError, match="there is no invitation"):
        revoke_invitation(database, other_project.id, first.id)
    revoke_invitation(database, new_project.id, first.id)
    with pytest.raises(CrosslensError, match="used or has expired"):
        accept_invitation(database, token, ben)
    with pytest.raises(CrosslensError, match="used or has expired"):
        accept_with_new_account(database, token, "Cleo", PASSWORD)
    assert [name for _, name, _ in members(database, new_project.id)] == ["ann"], "who has joined stays"
    accept_invitation(database, kept, ben)


# Passwords and sessions.


def test_a_reset_ends_password_and_sessions_and_its_link_works_once(database: Database, clock: Clock) -> None:
    ann = create_account(database, "Ann", PASSWORD)
    session = log_in(database, "Ann", PASSWORD)
    token = make_reset_link(database, ann.id)
    assert session_account(database, session) is None
    with pytest.raises(CrosslensError, match="password is wrong"):
        log_in(database, "Ann", PASSWORD)
    assert token not in everything_in(database)
    assert reset_account(database, token) == ann
    with pytest.raises(CrosslensError, match="a password has"):
        reset_password(database, token, "short")

    def used(number: int) -> bool:
        try:
            reset_password(database, token, f"{OTHER} {number}")
        except CrosslensError:
            return False
        return True

    done = at_once([lambda n=n: used(n) for n in range(8)])
    assert sum(done) == 1
    assert session_account(database, log_in(database, "Ann", f"{OTHER} {done.index(True)}")) == ann
    for ending in ("expires", "is replaced", "password changes"):
        token = make_reset_link(database, ann.id)
        if ending == "expires":
            clock.advance(RESET_DAYS * 24 * 3600)
        elif ending == "is replaced":
            make_reset_link(database, ann.id)
        else:
            set_password(database, ann.id, PASSWORD)
        assert reset_account(database, token) is None, ending
        with pytest.raises(CrosslensError, match="used or has expired"):
            reset_password(database, token, PASSWORD)
    with pytest.raises(ConflictError, match="is a model"):
        make_reset_link(database, model_account(database, "qwen").id)


@pytest.mark.parametrize("change", ["closed", "reset", "changed"])
def test_a_login_that_is_overtaken_opens_no_session(
    database: Database, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the check of the password and the session, the account is closed or gets another password."""
    account = create_account(database, "Ann", PASSWORD)
    check = accounts.is_password

    def overtaken(stored: str | None, password: str) -> bool:
        is_right = check(stored, password)
        if change == "closed":
            close_account(database, account.id)
        elif change == "reset":
            make_reset_link(database, account.id)
        else:
            set_password(database, account.id, OTHER)
        return is_right

    monkeypatch.setattr(accounts, "is_password", overtaken)
    with pytest.raises(CrosslensError, match="password is wrong"):
        log_in(database, "Ann", PASSWORD)
    of_the_new_password = int(change == "changed")
    assert [line.sessions for line in list_accounts(database)] == [of_the_new_password]


@pytest.mark.parametrize("page", ["/account/password", "/reset/{token}"])
def test_a_new_password_that_is_overtaken_leaves_no_session(
    tmp_path: Path, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the answer with its session is sent, an owner resets the password again."""
    site = Site(tmp_path / "runs", ["judging"])
    account = create_account(site.database, "Ann", PASSWORD)
    path = page.format(token=make_reset_link(site.database, account.id)) if "{" in page else page
    visitor = site.visitor(account.id)
    name = "set_password" if page == "/account/password" else "reset_password"
    change = getattr(routes, name)

    def overtaken(*values: Any, **keywords: Any) -> Any:
        changed = change(*values, **keywords)
        make_reset_link(site.database, account.id)
        return changed

    monkeypatch.setattr(routes, name, overtaken)
    answer = visitor.post(path, {"old": PASSWORD, "new": OTHER, "password": OTHER})
    assert answer.status_code == 303, answer.text
    assert visitor.get("/account").headers["location"].startswith("/login")
    assert [line.sessions for line in list_accounts(site.database)] == [0]
    site.database.close()


def test_ending_sessions(database: Database) -> None:
    ann, ben = create_account(database, "Ann", PASSWORD), create_account(database, "Ben", PASSWORD)
    tokens = [open_session(database, ann.id) for _ in range(3)]
    ben_session = open_session(database, ben.id)
    assert end_sessions(database, ann.id) == 3
    assert [session_account(database, token) for token in (*tokens, ben_session)] == [None, None, None, ben]
    assert end_sessions(database, ann.id) == 0


# Closed accounts.


def judged(database: Database, name: str = NAME) -> tuple[int, Account]:
    """A project in which somebody with a name has judged, with an item left open."""
    new_project = project(database, 3, overlap=2)
    account = create_account(database, name, PASSWORD)
    join(database, new_project.id, account.id)
    for who in (account.id, person(database, "ann", project=new_project.id)):
        for _ in range(2):
            given = next_item(database, new_project, who)
            assert given is not None
            judge(database, given.assignment, who, Answer(("good",)))
        next_item(database, new_project, who)
    return new_project.id, account


def test_a_closed_account_leaves_its_judgements_and_no_name(database: Database, tmp_path: Path) -> None:
    new_project, account = judged(database)
    open_session(database, account.id)
    before = load_answers(database, new_project).table
    pseudonym = close_account(database, account.id)
    assert re.fullmatch(r"judge-[0-9a-f]{8}", pseudonym)
    after = load_answers(database, new_project).table
    assert after.drop("account").equals(before.drop("account"))
    assert set(after["account"]) == {"ann", pseudonym}
    stored = everything_in(database).casefold()
    assert NAME.casefold() not in stored
    assert "quillfeather" not in stored
    if database.is_sqlite:
        content = b"".join(path.read_bytes() for path in tmp_path.glob("judging.sqlite*")).lower()
        assert b"ann" in content
        assert b"quillfeather" not in content, "not in a part of the file that is free now, either"
    for form, file in (("answers", "a.csv"), ("answers", "a.jsonl"), ("label-studio", "a.json")):
        content = export_content(load_answers(database, new_project), file, ExportOptions(form=form))
        assert pseudonym.encode() in content
        assert b"quillfeather" not in content.lower()
    with pytest.raises(CrosslensError, match="has been closed"):
        close_account(database, account.id)
    with pytest.raises(CrosslensError, match="password is wrong"):
        log_in(database, NAME, PASSWORD)
    with pytest.raises(CrosslensError, match="password is wrong"):
        log_in(database, pseudonym, PASSWORD)
    for change in (make_reset_link, end_sessions):
        with pytest.raises(CrosslensError, match="has been closed"):
            change(database, account.id)
    with pytest.raises(CrosslensError, match="has been closed"):
        accept_invitation(database, create_invitation(database, new_project), account.id)
    with pytest.raises(ConflictError, match="name of a person"):
        model_account(database, pseudonym)
    assert create_account(database, NAME, PASSWORD).id != account.id, "the name is free, and the judgements are not its"
    assert set(load_answers(database, new_project).table["account"]) == {"ann", pseudonym}


@pytest.mark.parametrize("with_tables", rest_slow(["postgresql", "sqlite"]), indirect=True)
def test_closing_while_judging_loses_nothing_that_was_acknowledged(database: Database) -> None:
    new_project = project(database, 40, overlap=1)
    account = create_account(database, NAME, PASSWORD)
    join(database, new_project.id, account.id)
    acknowledged: list[int] = []

    def judge_on() -> None:
        try:
            while (given := next_item(database, new_project, account.id)) is not None:
                acknowledged.append(judge(database, given.assignment, account.id, Answer(("good",))).judgement)
        except CrosslensError:
            pass

    def close() -> None:
        while len(acknowledged) < 3:
            time.sleep(0.002)
        close_account(database, account.id)

    at_once([judge_on, close])
    stored = load_answers(database, new_project.id).table
    assert stored.height == len(acknowledged)
    ben = person(database, "ben", project=new_project.id)
    left = 0
    while (given := next_item(database, new_project, ben)) is not None:
        judge(database, given.assignment, ben, Answer(("good",)))
        left += 1
    assert left == 40 - stored.height, "what was open went to others"


# Pages.


def test_pages_take_effect_at_the_next_request(owned: Owned, owner: Visitor) -> None:
    site, number = owned.site, owned.project
    account = create_account(site.database, NAME, PASSWORD)
    join(site.database, number, account.id)
    visitor = site.visitor(account.id)
    page = f"/projects/{number}"
    assert visitor.get(page).status_code == 200
    assert owner.post(owned.address(f"/people/{account.id}/remove")).status_code == 303
    assert visitor.get(page).status_code == 404
    link = re.search(r'value="[^"]*(/join/[^"]+)"', owner.post(owned.address("/invite"), {"uses": "2"}).text)
    assert link is not None
    assert visitor.post(link[1]).status_code == 303
    assert visitor.get(page).status_code == 200
    listed = owner.get(owned.address("/people")).text
    (revoke,) = re.findall(r'action="(/projects/\d+/owner/invitations/\w+/revoke)"', listed)
    assert owner.post(revoke).status_code == 303
    assert site.visitor().get(link[1]).status_code == 404
    assert "There is no invitation" in owner.post(revoke).text
    assert "Sessions ended: 1." in owner.post(f"/accounts/{account.id}/sessions").text
    assert visitor.get(page).status_code == 303
    response = owner.post(f"/accounts/{account.id}/reset")
    reset = re.search(r'value="[^"]*(/reset/[^"]+)"', response.text)
    assert reset is not None
    fresh = site.visitor()
    assert fresh.post("/login", {"name": NAME, "password": PASSWORD}).status_code == 401
    assert NAME in fresh.get(reset[1]).text
    assert fresh.post(reset[1], {"password": "short"}).status_code == 422
    assert fresh.post(reset[1], {"password": OTHER}).headers["location"] == "/judging"
    assert fresh.get(page).status_code == 200
    assert site.visitor().get(reset[1]).status_code == 404
    assert site.visitor().post(reset[1], {"password": OTHER}).status_code == 404
    assert fresh.post("/account/sessions").status_code == 303
    assert fresh.get(page).status_code == 303
    again = site.visitor(account.id)
    closed = owner.post(f"/accounts/{account.id}/close")
    pseudonym = re.search(r"it is now (judge-\w+)\.", closed.text)
    assert pseudonym is not None
    assert again.get("/account").status_code == 303
    assert "last owner cannot be removed" in owner.post(f"/accounts/{owned.owner}/close").text
    assert owner.get("/accounts").status_code == 200


@pytest.mark.slow
def test_the_name_of_a_closed_account_is_on_no_page(owned: Owned, owner: Visitor) -> None:
    """Results are kept between requests: they are computed anew when a name is gone."""
    offered = addresses(owned.site.app.routes)
    asked = sorted({path for method, path in offered if method == "GET" and path.startswith(JUDGING)})
    values = {"project": owned.project, "name": "answers.csv", "judgement": 1, "item": 1}

    def showing() -> set[str]:
        pages = {path: owner.get(re.sub(r"\{(\w+)(?::\w+)?\}", lambda m: str(values.get(m[1], "1")), path)).text
                 for path in asked}  # fmt: skip
        pages["label-studio"] = owner.get(owned.address("/export/label-studio.json")).text
        return {path for path, content in pages.items() if re.search(r"\bann\b", content)}

    before = showing()
    assert {"/accounts", "/projects/{project}/owner/people", "/api/projects/{project}/results",
            "/projects/{project}/owner/export/{name}", "/projects/{project}/owner/disagreements"} <= before  # fmt: skip
    close_account(owned.site.database, owned.people["ann"])
    assert showing() == set()
    first = owner.get(owned.address("/export/answers.csv")).content
    assert first == owner.get(owned.address("/export/answers.csv")).content, "the pseudonym stays"


def test_only_owners_of_the_server_reach_accounts(owned: Owned) -> None:
    site = owned.site
    judge_ = site.visitor(person(site.database, "pia", project=owned.project))
    project_owner = site.visitor(person(site.database, "otto", project=owned.project, role="owner"))
    checked = 0
    for method, path in addresses(site.app.routes):
        if path.startswith("/accounts") and method in ("GET", "POST"):
            filled = (
                re.sub(r"\{other\}", str(owned.owner), path).replace("{action}", "close").replace("{invitation}", "x")
            )
            for visitor, status in ((judge_, 403), (project_owner, 403), (site.visitor(), 303)):
                answer = visitor.get(filled) if method == "GET" else visitor.post(filled)
                assert answer.status_code == status, (method, path)
            checked += 1
    assert checked == 5


ACTIONS = {"sessions": "sessions ended", "reset": "password reset", "close": "account closed"}
JUDGING = ("/login", "/logout", "/account", "/join", "/reset", "/setup", "/project", "/judging", "/api/projects")
UNLOGGED = {
    "/projects/{project}/judge": "kept with its time and its author",
    "/projects/{project}/undo": "kept in the history",
    "/logout": "ends one's own session",
}


def test_whatever_changes_something_is_in_the_log(tmp_path: Path) -> None:
    """Not a list by hand: every address that takes a form, as the application offers it."""
    owned = Owned(tmp_path / "runs")
    site, database = owned.site, owned.site.database
    account = create_account(database, NAME, PASSWORD)
    join(database, owned.project, account.id)
    setup = Site(tmp_path / "empty", ["judging"])
    (note,) = setup.app.state.services.start_notes
    item = owned.disputed[0]
    joined, opened = (create_invitation(database, owned.project) for _ in range(2))
    revoked = open_invitations(database, owned.project)
    create_invitation(database, owned.project)
    (revoke,) = [offer for offer in open_invitations(database, owned.project) if offer not in revoked]
    create_invitation(database, None, role="owner")
    (of_owner,) = open_invitations(database, None)
    reset = make_reset_link(database, create_account(database, "Resi", PASSWORD).id)
    dataset = site.app.state.services.library.datasets()[0].id
    runs = site.app.state.services.library.runs()
    run = next(summary.id for summary in runs if summary.problem is None)
    owner, base = owned.owner, "/projects/{project}/owner"
    cases: dict[str, list[tuple[int | None, dict[str, object], dict[str, str], str]]] = {
        "/login": [(None, {}, {"name": NAME, "password": PASSWORD}, "logged in")],
        "/account/password": [(account.id, {}, {"old": PASSWORD, "new": OTHER}, "password changed")],
        "/account/sessions": [(account.id, {}, {}, "sessions ended")],
        "/join/{token}": [(person(database, "jo"), {"token": joined}, {}, "invitation used")],
        "/join/{token}/account": [(None, {"token": opened}, {"name": "Mia", "password": OTHER}, "invitation used")],
        "/reset/{token}": [(None, {"token": reset}, {"password": OTHER}, "password changed")],
        f"{base}/settings": [(owner, {}, {"overlap": "4", "guidelines": "new"}, "settings changed")],
        f"{base}/invite": [(owner, {}, {}, "invitation made")],
        f"{base}/invitations/{{invitation}}/revoke": [(owner, {"invitation": revoke.id}, {}, "invitation revoked")],
        f"{base}/people/{{member}}/remove": [(owner, {"member": account.id}, {}, "member removed")],
        f"{base}/items/{{item}}/decide": [(owner, {"item": item}, {"label": "size", "rating": "3"}, "item decided")],
        f"{base}/items/{{item}}/reopen": [(owner, {"item": item}, {}, "decision taken back")],
        f"{base}/import": [(owner, {}, {"run": run}, "items imported")],
        "/judging/upload/{project}": [(owner, {}, {"dataset": dataset}, "items imported")],
        "/accounts/invite": [(owner, {}, {}, "invitation made")],
        "/accounts/invitations/{invitation}/revoke": [(owner, {"invitation": of_owner.id}, {}, "invitation revoked")],
        "/accounts/{other}/{action}": [
            (owner, {"other": account.id, "action": action}, {}, logged)
            for action, logged in ACTIONS.items()
        ],
    }  # fmt: skip
    offered = {path for method, path in addresses(site.app.routes) if method != "GET" and "HEAD" not in method}
    judging = {path for path in offered if path.startswith(JUDGING)}
    assert judging - set(UNLOGGED) - {"/setup/{token}"} == set(cases), "an address whose log nobody looked at"
    for path, requests in cases.items():
        for who, parts, fields, action in requests:
            values = {"project": owned.project, **parts}
            filled = re.sub(r"\{(\w+)\}", lambda m, values=values: str(values[m[1]]), path)
            visitor, before = site.visitor(who), audit_log(database, limit=10**6)
            if path.startswith("/judging/upload"):
                visitor.get("/login")
                token = {"csrf_token": visitor.client.cookies["crosslens_csrf"]}
                table = {"table": ("pairs.csv", b"image,text\nimg1,a dog\n")}
                answer = visitor.client.post(filled, data=fields | token, files=table)
            else:
                answer = visitor.post(filled, fields)
            assert answer.status_code in (200, 303), (path, answer.text)
            new = audit_log(database, limit=10**6)[: -len(before)]
            entries = [entry for entry in new if entry.action == action]
            assert entries, path
            if who == owner:
                assert entries[0].by == "olga", path
    visitor = setup.visitor()
    assert visitor.post("/" + note.partition("{address}")[2], {"name": "Olga", "password": PASSWORD}).status_code == 303
    assert [(entry.by, entry.action) for entry in audit_log(setup.database)] == [
        ("Olga", "logged in"),
        ("Olga", "account made"),
    ]
    log_page = site.visitor(owner).get("/accounts/log").text
    assert "member removed" in log_page
    assert NAME not in log_page
    assert "judge-" in log_page
    assert "member removed" in site.visitor(owner).get(f"/projects/{owned.project}/owner/log").text
    setup.database.close()
    database.close()


def test_no_name_is_taken_for_the_command_line(tmp_path: Path) -> None:
    """Names are free, and some look like others: the log names the account, too."""
    site = Site(tmp_path / "runs", ["judging"])
    create_account(site.database, "olga", PASSWORD, is_owner=True)
    (by_command,) = audit_log(site.database)
    liar = create_account(site.database, by_command.by, PASSWORD, is_owner=True)
    end_sessions(site.database, liar.id, liar.id)
    (forged,) = (entry for entry in audit_log(site.database) if entry.action == "sessions ended")
    assert (forged.who, forged.about) == (f"{by_command.by} (account {liar.id})",) * 2
    assert (forged.as_dict()["account"], by_command.as_dict()["account"], by_command.who) == (
        liar.id, None, by_command.by,
    )  # fmt: skip
    assert forged.who in site.visitor(liar.id).get("/accounts/log").text
    pseudonym = close_account(site.database, liar.id)
    (closed,) = (entry for entry in audit_log(site.database) if entry.action == "account closed")
    assert (closed.about, closed.as_dict()["subject_account"]) == (pseudonym, None), "a number would tell the name"
    site.database.close()


def test_an_owner_who_begins_to_judge_is_in_the_log(owned: Owned) -> None:
    oskar = owned.site.owner("oskar")
    assert owned.site.visitor(oskar).get(f"/projects/{owned.project}/annotate").status_code == 200
    entry = next(entry for entry in audit_log(owned.site.database) if entry.action == "member added")
    assert (entry.by, entry.project, entry.detail) == ("oskar", owned.project, "owner")


def test_the_log_is_written_in_the_transaction_that_it_is_about(database: Database) -> None:
    new_project = project(database, 1)
    ann = person(database, "ann", project=new_project.id, role="owner")
    before = audit_log(database)
    with pytest.raises(ConflictError):
        remove_member(database, new_project.id, ann)
    assert audit_log(database) == before, "what was refused was not done"
    with database.reading() as session:
        assert session.scalar(select(text("count(*)")).select_from(text("audit"))) == len(before)

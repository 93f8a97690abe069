"""``crosslens judging members``, ``accounts``, ``audit`` and the way back of answers, as typed."""

from __future__ import annotations

import json
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="pip install 'crosslens[web]'")

import crosslens as cl
from crosslens.web import running_address
from crosslens.web.judging.accounts import open_session, reset_account, session_account
from crosslens.web.judging.database.engine import Database, open_database
from crosslens.web.judging.database.judgements import record_judgement
from crosslens.web.judging.database.projects import join
from crosslens.web.judging.tasks import Answer
from crosslens.web.server import _findable
from tests.commands import Call, call as call
from tests.web.judging.samples import create_account

PASSWORD = "correct horse battery"


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> Iterator[Database]:
    """A project with an owner of the server and two people, of whom one has judged."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "typist")
    cl.Dataset.of({f"i{n}": [f"caption {n}"] for n in range(3)}, name="toys").save("toys")
    Path("pairs.csv").write_text("image,text\ni0,a dog\ni1,=a cat\n")
    assert call("judging", "new", "Pairs", "--task", "pairs").code == 0
    assert stat.S_IMODE(Path("runs/judging.sqlite").stat().st_mode) == 0o600
    assert call("judging", "import", "1", "pairs.csv", "--dataset", "toys").code == 0
    opened = open_database(Path("runs/judging.sqlite"))
    create_account(opened, "Olga", PASSWORD, is_owner=True)
    for name in ("Ann", "Ben"):
        join(opened, 1, create_account(opened, name, PASSWORD).id)
    record_judgement(opened, 2, 2, Answer(("good",)), source="person")
    yield opened
    opened.close()


def test_members_and_invitations(database: Database, call: Call) -> None:
    assert call("judging", "invite", "1", "--uses", "2").code == 0
    listed = json.loads(call("judging", "members", "1", "--json").out)
    assert [(row["name"], row["role"]) for row in listed["members"]] == [("Ann", "annotator"), ("Ben", "annotator")]
    (offer,) = listed["invitations"]
    assert (offer["uses"], offer["used"]) == (2, 0)
    output = call("judging", "members", "1").out
    assert "Ann" in output
    assert offer["id"] in output
    left = json.loads(call("judging", "members", "1", "--remove", "ann", "--revoke", offer["id"], "--json").out)
    assert ([row["name"] for row in left["members"]], left["invitations"]) == (["Ben"], [])
    for words, problem in (
        (("--remove", "Ann"), "not a member"), (("--remove", "Anne"), "unknown account 'Anne'"),
        (("--revoke", offer["id"]), "there is no invitation"),
    ):  # fmt: skip
        refused = call("judging", "members", "1", *words)
        assert refused.code != 0
        assert problem in refused.err


def test_an_invitation_leads_to_the_running_server(
    database: Database, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/"
        with _findable(Path("runs"), address):
            invited = call("judging", "invite", "1", "--folder", tmp_path / "runs")
            assert (invited.code, invited.err) == (0, "")
            assert invited.out.startswith(f"{address}join/")
            assert call("judging", "accounts", "--reset", "Ann").out.startswith(f"{address}reset/")
            invitation = call("judging", "invite", "1", "--address", "https://example.org/")
            assert invitation.out.startswith("https://example.org/join/")
        assert running_address(Path("runs")) is None
    with _findable(Path("runs"), address):  # left behind: nothing answers there
        guessed = call("judging", "invite", "1", "--json")
        assert guessed.json["link"].startswith("http://127.0.0.1:8000/join/")
        assert "no server of runs is known on this computer: the link is for http://127.0.0.1:8000" in guessed.err
    with _findable(Path("runs"), "http://0.0.0.0:80/"):
        assert running_address(Path("runs")) is None, "people cannot follow that"
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.prompt", lambda question, **options: " https://typed.example ")
    assert call("judging", "invite", "1").out.startswith("https://typed.example/join/")


def test_accounts(database: Database, call: Call) -> None:
    listed = json.loads(call("judging", "accounts", "--json").out)["accounts"]
    assert [(row["name"], row["kind"], row["judgements"]) for row in listed] == [
        ("Ann", "person", 1), ("Ben", "person", 0), ("Olga", "owner", 0),
    ]  # fmt: skip
    token = open_session(database, 2)
    assert "sessions ended: 1" in call("judging", "accounts", "--end-sessions", "Ann").out
    assert session_account(database, token) is None
    link = call("judging", "accounts", "--reset", "Ann", "--address", "https://example.org/").out.strip()
    assert link.startswith("https://example.org/reset/")
    account = reset_account(database, link.rpartition("/")[2])
    assert account is not None
    assert account.name == "Ann"
    pseudonym = json.loads(call("judging", "accounts", "--close", "Ann", "--json").out)["pseudonym"]
    assert call("judging", "export", "1", "-o", "a.csv").code == 0
    assert pseudonym in Path("a.csv").read_text()
    refused = call("judging", "accounts", "--close", "Olga")
    assert refused.code != 0
    assert "the last owner cannot be removed" in refused.err
    both = call("judging", "accounts", "--close", "Ben", "--reset", "Ben")
    assert both.code == 2
    assert call("judging", "invite", "--role", "owner").code == 0
    (offer,) = json.loads(call("judging", "accounts", "--json").out)["invitations"]
    assert json.loads(call("judging", "accounts", "--revoke", offer["id"], "--json").out)["invitations"] == []
    assert "is not a role" in call("judging", "invite").err, "a link without a project makes owners only"


def test_audit(database: Database, call: Call) -> None:
    call("judging", "members", "1", "--remove", "Ben")
    call("judging", "accounts", "--close", "Ben")
    entries = json.loads(call("judging", "audit", "--json").out)
    assert [(entry["by"], entry["action"]) for entry in entries[:2]] == [
        ("command line (typist)", "account closed"), ("command line (typist)", "member removed"),
    ]  # fmt: skip
    assert entries[0]["subject"] == entries[1]["subject"]
    assert "Ben" not in json.dumps(entries)
    of_project = json.loads(call("judging", "audit", "1", "--json").out)
    assert {entry["action"] for entry in of_project} == {
        "member added", "member removed", "items imported", "project made",
    }  # fmt: skip
    short = call("judging", "audit", "--limit", "1")
    assert "account closed" in short.out
    assert "there may be more" in short.err


def test_an_export_can_be_repeated(database: Database, call: Call) -> None:
    files = ("answers.csv", "answers.jsonl", "answers.csv.gz", "tasks.json")
    for name in files:
        words = ["judging", "export", "1", "-o", name]
        words += ["--interface", "tasks.xml"] if name == "tasks.json" else []
        for _ in range(2):
            done = call(*words)
            assert done.code == 0, done.err
        Path(name).write_bytes(b"something else")
        refused = call(*words)
        assert refused.code == 5
        assert f"{name} already exists with other content" in refused.err
        assert Path(name).read_bytes() == b"something else"
        assert call(*words, "--overwrite").code == 0


def test_exported_answers_come_back(database: Database, call: Call) -> None:
    for name in ("answers.csv", "answers.jsonl"):
        assert call("judging", "export", "1", "-o", name).code == 0
        assert call("judging", "new", f"Copy of {name}", "--task", "pairs").code == 0
        done = call("judging", "import", f"Copy of {name}", name, "--dataset", "toys")
        assert "1 judgements added" in done.out, done.err
        assert call("judging", "export", f"Copy of {name}", "-o", f"again-{name}").code == 0
        assert Path(f"again-{name}").read_bytes() == Path(name).read_bytes()

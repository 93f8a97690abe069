"""Every address of judging, asked by everybody: markup stays text, and nobody reads what others answered."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("PIL", reason="pip install 'crosslens[web]'")
pytest.importorskip("sqlalchemy", reason="pip install 'crosslens[web]'")

from crosslens.web import create_invitation, make_reset_link
from crosslens.web.judging.accounts import model_account
from crosslens.web.judging.database.judgements import record_judgement
from crosslens.web.judging.database.projects import create_project, join
from crosslens.web.judging.tasks import (
    Answer,
    AnswerForm,
    AnswerLabel,
    ItemContent,
    NewItem,
    ShownPicture,
    ShownText,
    TextField,
)
from tests.web.conftest import NASTY
from tests.web.judging.samples import add_items, create_account, items, person
from tests.web.judging.site import Site, Visitor, addresses

SECRET = "what-ben-answered"
JUDGING = ("/projects", "/judging", "/join", "/login", "/account", "/setup", "/reset", "/api/projects")
FORM = AnswerForm(
    NASTY,
    (AnswerLabel("yes", NASTY, "1", NASTY), AnswerLabel("no", f"No {NASTY}", "2", NASTY)),
    several=True,
    text=TextField(NASTY),
)


class Everything:
    """A project in which every text is markup, judged by ben and a model, partly by ann, who has not finished."""

    def __init__(self, folder: Path) -> None:
        self.site = Site(folder)
        database = self.site.database
        self.owner = self.site.owner(f"olga {NASTY}"[:60])
        self.project = create_project(
            database, f"Project {NASTY}", "failures", form=FORM, guidelines=f"Read {NASTY}", overlap=2
        ).id
        join(database, self.project, self.owner, "owner")
        content = ItemContent((ShownPicture("toys", NASTY, NASTY),), (ShownText(NASTY, NASTY),), {"query": NASTY})
        expected = {"labels": ["yes"], "why": NASTY}
        add_items(database, self.project, [*[NewItem(content)] * 3, NewItem(content, "practice", expected)])
        self.ann = person(database, "ann", project=self.project)
        self.ben = person(database, f"ben {NASTY}"[:60], project=self.project)
        model = model_account(database, "vlm").id
        stored = items(database, self.project)
        for item in stored:
            answer = Answer(("no",), None, f"{SECRET} {NASTY}")
            record_judgement(database, item.id, self.ben, answer, source="person", seconds=2)
            record_judgement(database, item.id, model, answer, source="model", seconds=2)
        real = next(item for item in stored if item.kind == "real")
        record_judgement(database, real.id, self.ann, Answer(("yes",), None, NASTY), source="person")
        practice = next(item for item in stored if item.kind == "practice")
        recorded = record_judgement(database, practice.id, self.ann, Answer(("no",), None, NASTY), source="person")
        self.judgement = recorded.judgement
        self.token = create_invitation(database, self.project)
        self.reset = make_reset_link(database, create_account(database, f"reset {NASTY}"[:60], "a long password").id)

    def filled(self, path: str) -> str:
        values = {
            "project": self.project, "judgement": self.judgement, "token": self.token, "item": 1, "name": "answers.csv",
        }  # fmt: skip
        values |= {"token": self.reset} if path.startswith("/reset") else {}
        return re.sub(r"\{(\w+)(?::\w+)?\}", lambda match: str(values[match[1]]), path)

    def pages(self) -> list[str]:
        offered = addresses(self.site.app.routes)
        return sorted({path for method, path in offered if method == "GET" and path.startswith(JUDGING)})


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everything]:
    every_page = Everything(tmp_path_factory.mktemp("every") / "runs")
    yield every_page
    every_page.site.database.close()


def asked(everything: Everything, visitor: Visitor) -> dict[str, str]:
    """Path → content, of all addresses that answer this visitor with a page or with data."""
    answers = {path: visitor.get(everything.filled(path)) for path in everything.pages()}
    assert all(answer.status_code < 500 for answer in answers.values())
    return {path: answer.text for path, answer in answers.items() if answer.status_code == 200}


def test_markup_stays_text_on_every_page(everything: Everything) -> None:
    content_of: dict[str, str] = {}
    pages_with_texts = 0
    for account in (everything.owner, everything.ann, None):
        for path, content in asked(everything, everything.site.visitor(account)).items():
            content_of[path] = content
            if "<!DOCTYPE html>" not in content:
                continue
            pages_with_texts += html.escape("<script>alert", quote=False) in content
            assert "<script>alert" not in content, path
            assert "<img src=x" not in content, path
            plain = re.sub(r"&lt;img src=x onerror=alert\(1\)&gt;", "", content)
            assert not re.search(r"\son\w+\s*=|\sstyle\s*=|<script(?![^>]*\ssrc=)|javascript:", plain), path
    assert pages_with_texts >= 10, "the texts of the project are on its pages"
    unseen = {path for path in everything.pages() if path not in content_of}
    assert unseen <= {"/setup/{token}"}, "a page that nobody looked at"


def test_nobody_reads_what_others_answered_before_or_after_finishing(everything: Everything) -> None:
    ann = everything.site.visitor(everything.ann)
    of_ann = asked(everything, ann)
    assert "/projects/{project}/annotate" in of_ann
    for path, content in of_ann.items():
        assert SECRET not in content, path
        assert "/owner" not in path, "an owner's page"
        assert not path.startswith("/api/"), "an owner's data"
    for judgement in range(1, everything.judgement):
        answer = ann.get(f"/projects/{everything.project}/feedback/{judgement}")
        assert answer.status_code == 404, "the judgement of somebody else"
    stranger = asked(everything, everything.site.visitor())
    assert set(stranger) <= {"/login", "/join/{token}", "/reset/{token}", "/judging/charts.css"}
    owner = asked(everything, everything.site.visitor(everything.owner))
    assert SECRET in owner["/projects/{project}/owner/disagreements"] + owner["/projects/{project}/owner/export/{name}"]


def test_uploads_are_limited(everything: Everything) -> None:
    owner = everything.site.visitor(everything.owner)
    owner.get("/login")
    fields = {"csrf_token": owner.client.cookies["crosslens_csrf"], "dataset": "x"}
    limit = everything.site.app.state.services.body_limit(f"/judging/upload/{everything.project}")
    before = len(items(everything.site.database, everything.project))

    def upload(name: str, content: bytes) -> tuple[int, str]:
        address = f"/judging/upload/{everything.project}"
        answer = owner.client.post(address, data=fields, files={"table": (name, content)})
        return answer.status_code, answer.text

    assert upload("pairs.csv", b"x" * (limit + 1))[0] == 413
    for name in ("pairs.csv.gz", "pairs.zip", "pairs.csv.zst"):  # may hold far more than they weigh
        status, text = upload(name, b"\x1f\x8b")
        assert status == 422
        assert "A table has one of the endings .csv, .tsv, .jsonl" in text
    assert len(items(everything.site.database, everything.project)) == before

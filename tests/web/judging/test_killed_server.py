"""A server that is killed while people judge: what it acknowledged is exported, on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from crosslens.web import export_content, load_answers
from crosslens.web.judging.accounts import open_session
from crosslens.web.judging.context import SESSION_COOKIE
from crosslens.web.judging.database.engine import open_database
from tests.web.judging.samples import person, project

pytestmark = pytest.mark.slow
PEOPLE, ITEMS, BEFORE_THE_KILL = 4, 12, 15


def start(folder: Path, database: str, port: int) -> subprocess.Popen[bytes]:
    """The server as a process of its own; returns when it answers."""
    words = ["serve", str(folder), "--port", str(port), "--database", database, "--cache", str(folder / "cache")]
    process = subprocess.Popen(
        [sys.executable, "-m", "crosslens", *words], stderr=subprocess.DEVNULL, env=dict(os.environ)
    )
    for _ in range(1200):
        try:
            httpx.get(f"http://127.0.0.1:{port}/login", timeout=5)
            return process
        except httpx.HTTPError:
            assert process.poll() is None, "the server did not start"
            time.sleep(0.05)
    raise AssertionError("the server does not answer")


class Judges:
    """People who judge until nothing is left, and begin again with what failed because the server was gone."""

    def __init__(self, port: int, number: int, cookies: list[str]) -> None:
        self.acknowledged: dict[tuple[str, str], str] = {}
        self.interrupted = 0
        self.problems: list[str] = []
        self._base, self._number = f"http://127.0.0.1:{port}", number
        self.threads = [
            threading.Thread(target=self._judge, args=(f"p{n}", cookie)) for n, cookie in enumerate(cookies)
        ]

    def _judge(self, name: str, cookie: str) -> None:
        token, turn = secrets.token_urlsafe(32), 0
        cookies = {SESSION_COOKIE: cookie, "crosslens_csrf": token}
        deadline = time.monotonic() + 600
        with httpx.Client(base_url=self._base, cookies=cookies, timeout=30) as client:
            while time.monotonic() < deadline:
                try:
                    page = client.get(f"/projects/{self._number}/annotate").text
                    asked = re.search(r'name="assignment" value="(\d+)"', page)
                    if asked is None:
                        break
                    label, turn = ("good", "bad")[turn % 2], turn + 1
                    fields = {"assignment": asked[1], "label": label, "csrf_token": token}
                    sent = client.post(f"/projects/{self._number}/judge", data=fields)
                except httpx.HTTPError:
                    self.interrupted += 1
                    time.sleep(0.1)
                    continue
                quotation = re.search(r"<blockquote[^>]*>([^<]*)</blockquote>", page)
                if sent.status_code == 303 and sent.headers["location"].endswith("/annotate") and quotation is not None:
                    self.acknowledged[name, quotation[1]] = label
                elif not sent.headers.get("location", "").endswith("note=again"):
                    self.problems.append(f"{sent.status_code} {sent.text[:300]}")


def test_what_a_killed_server_acknowledged_is_exported(address: str, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    database = open_database(address)
    new_project = project(database, ITEMS, overlap=PEOPLE)
    cookies = [open_session(database, person(database, f"p{n}", project=new_project.id)) for n in range(PEOPLE)]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = start(tmp_path / "runs", address, port)
    judges = Judges(port, new_project.id, cookies)
    try:
        for thread in judges.threads:
            thread.start()
        while len(judges.acknowledged) < BEFORE_THE_KILL:
            time.sleep(0.01)
        server.kill()
        server.wait()
        server = start(tmp_path / "runs", address, port)
        for thread in judges.threads:
            thread.join(700)
    finally:
        server.kill()
        server.wait()
    lines = export_content(load_answers(database, new_project.id), "answers.jsonl").decode().splitlines()
    rows = [json.loads(line) for line in lines]
    exported = {(row["judge"], row["shown_text"]): row["labels"] for row in rows}
    assert judges.problems == []
    assert judges.interrupted, "the server died while nobody asked for anything"
    assert {key: exported.get(key) for key in judges.acknowledged} == {
        key: [label] for key, label in judges.acknowledged.items()
    }
    assert len(rows) == len(exported) == PEOPLE * ITEMS, "nothing is doubled, and everything was judged in the end"
    database.close()

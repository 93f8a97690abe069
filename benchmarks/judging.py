"""Many annotators at once over HTTP: is every acknowledged judgement there, once, and how long does a page take?

    python benchmarks/judging.py                                  # 50 people × 200 judgements, SQLite
    python benchmarks/judging.py --database postgresql://…        # the same on PostgreSQL; --database test starts one
    python benchmarks/judging.py --kills 20 --judgements 60       # the server is killed (−9) twenty times in between

Each annotator asks for an item, answers it and asks again without a pause, so the times are those of a server that is
fully used. Fails where a judgement was lost, counted twice or given to more people than the overlap.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from sqlalchemy import select

from crosslens.web.judging.accounts.people import create_account
from crosslens.web.judging.accounts.sessions import open_session
from crosslens.web.judging.context import SESSION_COOKIE
from crosslens.web.judging.database.engine import Database, open_database
from crosslens.web.judging.database.projects import ProjectSettings, add_items, create_project, join
from crosslens.web.judging.database.tables import JudgementRow
from crosslens.web.judging.tasks.content import ItemContent, NewItem, ShownText

_ASSIGNMENT = re.compile(r'name="assignment" value="(\d+)"')
NO_SERVER = 77
"""The exit code where no PostgreSQL server can be started."""
_TOKEN = re.compile(r'name="csrf_token" value="([^"]+)"')


@dataclass
class Record:
    """What the annotators saw."""

    acknowledged: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Assignment → account and label, for each answer that the server took."""
    page_seconds: list[float] = field(default_factory=list)
    answer_seconds: list[float] = field(default_factory=list)
    kills: int = 0
    interruptions: int = 0
    again: int = 0
    """Answers that were sent again because the server died before it replied, and had been stored."""


class Server:
    """`crosslens serve` as a process of its own, at the same address after each start."""

    def __init__(self, folder: Path, database: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self._words = [
            sys.executable, "-m", "crosslens", "serve", str(folder), "--port", str(self.port), "--database", database,
            "--cache", str(folder / "cache"),
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and return when it answers."""
        self._process = subprocess.Popen(self._words, stderr=subprocess.DEVNULL, env=dict(os.environ))
        for _ in range(1_200):
            try:
                httpx.get(f"{self.address}/login", timeout=5)
                return
            except httpx.HTTPError:
                if self._process.poll() is not None:
                    raise SystemExit("the server did not start") from None
                time.sleep(0.05)
        raise SystemExit("the server does not answer")

    def kill(self) -> None:
        """As a power failure of the process: no signal handler runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


async def annotate(server: Server, project: int, account: int, cookie: str, most: int, record: Record) -> None:
    """One annotator, until nothing is left; what fails because the server is gone is tried again."""
    turn = random.Random(account)
    cookies = {SESSION_COOKIE: cookie}
    async with httpx.AsyncClient(base_url=server.address, cookies=cookies, timeout=60) as client:
        done = 0
        while done < most:
            try:
                start = time.perf_counter()
                page = await client.get(f"/projects/{project}/annotate")
                record.page_seconds.append(time.perf_counter() - start)
                asked, token = _ASSIGNMENT.search(page.text), _TOKEN.search(page.text)
                if asked is None or token is None:
                    if "Nothing is left" in page.text:
                        return
                    raise SystemExit(f"unexpected page ({page.status_code}): {page.text[:2000]}")
                label = turn.choice(("good", "bad"))
                fields = {"assignment": asked[1], "label": label, "csrf_token": token[1]}
                start = time.perf_counter()
                sent = await client.post(f"/projects/{project}/judge", data=fields)
                record.answer_seconds.append(time.perf_counter() - start)
            except httpx.HTTPError:
                record.interruptions += 1
                await asyncio.sleep(0.5)
                continue
            if sent.headers.get("location", "").endswith("note=again"):
                record.again += 1
            elif sent.status_code == 303 and sent.headers["location"].endswith("/annotate"):
                record.acknowledged[int(asked[1])] = (account, label)
            else:
                raise SystemExit(f"unexpected answer ({sent.status_code}): {sent.headers.get('location')}")
            done += 1


async def interrupt(server: Server, kills: int, record: Record, total: int) -> None:
    """Kill and restart the server at moments spread over the first part of the work.

    Not over all of it: what was stored while the reply was lost is missing from the count of acknowledged judgements.
    """
    turn = random.Random(0)
    for number in range(1, kills + 1):
        while len(record.acknowledged) < 0.6 * total * number / kills:
            await asyncio.sleep(0.01 + 0.05 * turn.random())
        server.kill()
        record.kills += 1
        await asyncio.to_thread(server.start)


def prepare(database: Database, people: int, judgements: int, overlap: int) -> tuple[int, list[tuple[int, str]]]:
    """A project with somewhat more room than needed (nobody judges an item twice), and logged-in members."""
    items = people * judgements * 5 // (4 * overlap)
    settings = ProjectSettings(per_person=judgements)
    project = create_project(database, "Load", "pairs", overlap=overlap, settings=settings).id
    add_items(database, project, [NewItem(ItemContent(texts=(ShownText(f"text {n}"),))) for n in range(items)])
    create_account(database, "owner", "a password of the owner", is_owner=True)
    members = []
    for number in range(people):
        account = create_account(database, f"annotator {number}", None).id
        join(database, project, account)
        members.append((account, open_session(database, account)))
    return project, members


def check(database: Database, record: Record, overlap: int) -> list[str]:
    """What is wrong, in sentences; empty where nothing is."""
    with database.reading() as session:
        columns = (JudgementRow.assignment, JudgementRow.account, JudgementRow.item, JudgementRow.labels)
        rows = session.execute(select(*columns)).all()
    stored = {assignment: (account, labels[0]) for assignment, account, _, labels in rows}
    lost = [number for number, answer in record.acknowledged.items() if stored.get(number) != answer]
    pairs = Counter((item, account) for _, account, item, _ in rows)
    items = Counter(item for _, _, item, _ in rows)
    faults = []
    if lost:
        faults.append(f"{len(lost)} acknowledged judgements are missing or different")
    if doubled := sum(count > 1 for count in pairs.values()):
        faults.append(f"{doubled} items were judged twice by the same person")
    if too_many := sum(count > overlap for count in items.values()):
        faults.append(f"{too_many} items were judged by more than {overlap} people")
    if len(rows) != len(record.acknowledged) + record.again and not record.interruptions:
        faults.append(f"{len(rows)} stored, {len(record.acknowledged)} acknowledged")
    return faults


@contextmanager
def address_of(name: str | None, folder: Path) -> Iterator[str]:
    """The URL of the database; ``test`` starts a PostgreSQL server for the occasion."""
    if name != "test":
        yield name or f"sqlite:///{folder}/judging.sqlite"
        return
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the server is the tests'
    from tests.web.judging.postgresql import NoServer, postgresql

    try:
        with postgresql() as url:
            yield url
    except NoServer as problem:
        print(problem, file=sys.stderr)
        raise SystemExit(NO_SERVER) from None


def milliseconds(seconds: list[float]) -> dict[str, float]:
    """Median, 95th and 99th percentile."""
    cuts = statistics.quantiles(seconds, n=100)
    return {name: round(1000 * cuts[at], 1) for name, at in (("p50", 49), ("p95", 94), ("p99", 98))}


async def run(server: Server, project: int, members: list[tuple[int, str]], kills: int, judgements: int) -> Record:
    """All annotators, and the interruptions."""
    record = Record()
    work = [annotate(server, project, account, cookie, judgements, record) for account, cookie in members]
    await asyncio.gather(*work, interrupt(server, kills, record, len(members) * judgements))
    return record


def main() -> int:
    """Print the figures as JSON; 1 where something was lost or doubled."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--annotators", type=int, default=50)
    parser.add_argument("--judgements", type=int, default=200, help="of each annotator")
    parser.add_argument("--overlap", type=int, default=5)
    parser.add_argument("--kills", type=int, default=0, help="how often the server is killed")
    parser.add_argument("--database", help="a URL, or 'test' for a PostgreSQL server of its own [default: SQLite]")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="crosslens-judging-") as name,
        address_of(options.database, Path(name)) as url,
    ):
        database = open_database(url)
        project, members = prepare(database, options.annotators, options.judgements, options.overlap)
        server = Server(Path(name), url)
        server.start()
        start = time.perf_counter()
        try:
            record = asyncio.run(run(server, project, members, options.kills, options.judgements))
        finally:
            server.kill()
        taken = time.perf_counter() - start
        faults = check(database, record, options.overlap)
        kind = database.engine.dialect.name
        database.close()
    figures = {
        "database": kind,
        "annotators": options.annotators,
        "acknowledged": len(record.acknowledged),
        "kills": record.kills,
        "requests interrupted": record.interruptions,
        "stored before the reply was lost": record.again,
        "seconds": round(taken, 1),
        "judgements per second": round(len(record.acknowledged) / taken, 1),
        "page, ms": milliseconds(record.page_seconds),
        "answer, ms": milliseconds(record.answer_seconds),
        "faults": faults,
    }
    print(json.dumps(figures, indent=2, ensure_ascii=False))
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())

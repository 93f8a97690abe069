"""Many annotators at once over HTTP: is every acknowledged judgement there, once, and how long does a request take?

    python benchmarks/judging.py                             # 50 people × 10 judgements at ease, then × 200; SQLite
    python benchmarks/judging.py --database postgresql://…   # the same on PostgreSQL; --database test starts one
    python benchmarks/judging.py --kills 20 --judgements 60 --paced 0    # it is killed (−9) twenty times in between
    python benchmarks/judging.py --arrive 1 --busy 4 --judgements 0      # all join at once, beside four busy processes

The annotators join one after another within ``--arrive`` seconds, by a link, with a name and a password. Whoever is in
asks for an item and its picture, answers it and asks again; after every tenth answer they look at how far they are:
first at the pace of people, who look at an item for ``--pause`` seconds on average, while others are joining. Then all
log in again within ``--arrive`` seconds. Then they judge without a pause: a server that is fully used, where everybody
waits for everybody else. All are printed, with how many requests took longer than ``--limit`` seconds, after which a
client would give up, and with the processor time of the server and of the annotators, who use the same cores. Fails
where a judgement was lost, counted twice or given to more people than the overlap.
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
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import polars as pl
from PIL import Image
from sqlalchemy import select

import crosslens as cl
from crosslens.web import WebSettings, create_app
from crosslens.web.judging.accounts import add_account, create_invitation, hash_password
from crosslens.web.judging.database.engine import Database, open_database
from crosslens.web.judging.database.projects import ProjectSettings, add_items, create_project, locked_project
from crosslens.web.judging.database.tables import AccountRow, JudgementRow
from crosslens.web.judging.tasks import ItemContent, NewItem, ShownPicture, ShownText

_ASSIGNMENT = re.compile(r'name="assignment" value="(\d+)"')
NO_SERVER = 77
"""The exit code where no PostgreSQL server can be started."""
_TOKEN = re.compile(r'name="csrf_token" value="([^"]+)"')
_PICTURE = re.compile(r'src="(/pictures/[^"]+)"')
_PASSWORD = "the password of every annotator"
_PICTURES = 24
_SHOWN_EVERY = 5.0
"""Seconds between two lines about how far it is."""


@dataclass
class Record:
    """What the annotators saw."""

    acknowledged: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Assignment → name and label, for each answer that the server took."""
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Of each kind of request, in the present phase."""
    kills: int = 0
    interruptions: int = 0
    again: int = 0
    """Answers that were sent again because the server died before it replied, and had been stored."""


@dataclass(frozen=True)
class Reply:
    """What came back; header names in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class Browser:
    """One connection, kept open, and cookies. A whole HTTP client would take as much processor time as the server."""

    def __init__(self, port: int) -> None:
        self._port, self._cookies = port, dict[str, str]()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def request(self, method: str, path: str, data: Mapping[str, str] | None = None) -> Reply:
        """Raises where the server is gone; the next request connects anew."""
        body = b"" if data is None else urlencode(data).encode()
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self._port}"]
        lines += ["Cookie: " + "; ".join(f"{name}={value}" for name, value in self._cookies.items())]
        lines += ["Content-Type: application/x-www-form-urlencoded"] if data is not None else []
        lines += [f"Content-Length: {len(body)}", "", ""]
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self._port)
            reader, writer = self._streams
            writer.write("\r\n".join(lines).encode() + body)
            first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            pairs = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in rest if line)]
            headers = dict(pairs)
            content = await reader.readexactly(int(headers.get("content-length", 0)))
        except Exception:
            self.close()
            raise
        if headers.get("connection") == "close":
            self.close()
        self._cookies |= [value.partition(";")[0].split("=", 1) for name, value in pairs if name == "set-cookie"]
        return Reply(int(first.split()[1]), headers, content)

    def close(self) -> None:
        """Let go of the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


class Server:
    """`crosslens serve` as a process of its own, at the same address after each start."""

    def __init__(self, folder: Path, database: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._words = [
            sys.executable, "-m", "crosslens", "serve", str(folder), "--port", str(self.port), "--database", database,
            "--cache", str(folder / "cache"), "--data", str(folder / "balls"),
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and return when it answers."""
        self._process = subprocess.Popen(self._words, stderr=subprocess.DEVNULL, env=dict(os.environ))
        for _ in range(1_200):
            try:
                urlopen(f"http://127.0.0.1:{self.port}/login", timeout=5).close()
                return
            except OSError:
                if self._process.poll() is not None:
                    raise SystemExit("the server did not start") from None
                time.sleep(0.05)
        raise SystemExit("the server does not answer")

    def processor_seconds(self) -> float | None:
        """What the present process has taken since its start; None where the system does not say."""
        try:
            entries = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()  # type: ignore[union-attr]
        except OSError:
            return None
        return (int(entries[11]) + int(entries[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """As a power failure of the process: no signal handler runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Annotator:
    """One person with a browser: what fails because the server is gone is tried again."""

    def __init__(self, server: Server, project: int, name: str, record: Record) -> None:
        self._project, self._name, self._record = project, name, record
        self._turn = random.Random(name)
        self._browser = Browser(server.port)

    async def join(self, after: float, link: str) -> None:
        """Make an account by the link, so many seconds from now."""
        await asyncio.sleep(after)
        await self._again_until_done(lambda: self._enter("join", f"/join/{link}", f"/join/{link}/account"))

    async def log_in(self, after: float) -> None:
        """Log in, so many seconds from now."""
        await asyncio.sleep(after)
        await self._again_until_done(lambda: self._enter("login", "/login", "/login"))

    async def work(self, most: int, pause: float) -> None:
        """Judge so many items, or until none is left; looking at one takes half to one and a half times the pause."""
        await asyncio.sleep(pause * self._turn.random())
        for number in range(most):
            if not await self._again_until_done(lambda: self._judge_one(pause)):
                return
            if number % 10 == 9:
                await self._again_until_done(self._look)

    def leave(self) -> None:
        """Close the browser."""
        self._browser.close()

    async def _again_until_done(self, step: Callable[[], Awaitable[bool]]) -> bool:
        while True:
            try:
                return await step()
            except (OSError, asyncio.IncompleteReadError):
                self._record.interruptions += 1
                await asyncio.sleep(0.5)

    async def _timed(self, kind: str, method: str, path: str, data: Mapping[str, str] | None = None) -> Reply:
        start = time.perf_counter()
        answer = await self._browser.request(method, path, data)
        self._record.seconds[kind].append(time.perf_counter() - start)
        return answer

    async def _enter(self, kind: str, page: str, address: str) -> bool:
        token = _TOKEN.search((await self._browser.request("GET", page)).text)
        fields = {"name": self._name, "password": _PASSWORD, "csrf_token": "" if token is None else token[1]}
        answer = await self._timed(kind, "POST", address, fields)
        if answer.status != 303:
            raise SystemExit(f"unexpected {kind} ({answer.status}): {answer.text[:2000]}")
        return True

    async def _look(self) -> bool:
        answer = await self._timed("status", "GET", f"/projects/{self._project}")
        return answer.status == 200

    async def _judge_one(self, pause: float) -> bool:
        page = await self._timed("next item", "GET", f"/projects/{self._project}/annotate")
        asked, token, picture = (wanted.search(page.text) for wanted in (_ASSIGNMENT, _TOKEN, _PICTURE))
        if asked is None or token is None or picture is None:
            if "Nothing is left" in page.text:
                return False
            raise SystemExit(f"unexpected page ({page.status}): {page.text[:2000]}")
        seen = await self._timed("picture", "GET", picture[1].replace("&amp;", "&"))
        if seen.status != 200:
            raise SystemExit(f"unexpected picture ({seen.status}): {seen.body[:2000]!r}")
        await asyncio.sleep(pause * (0.5 + self._turn.random()))
        label = self._turn.choice(("good", "bad"))
        fields = {"assignment": asked[1], "label": label, "csrf_token": token[1]}
        sent = await self._timed("answer", "POST", f"/projects/{self._project}/judge", fields)
        location = sent.headers.get("location", "")
        if location.endswith("note=again"):
            self._record.again += 1
        elif sent.status == 303 and location.endswith("/annotate"):
            self._record.acknowledged[int(asked[1])] = (self._name, label)
        else:
            raise SystemExit(f"unexpected answer ({sent.status}): {location}")
        return True


async def interrupt(server: Server, kills: int, record: Record, before: int, total: int) -> None:
    """Kill and restart the server at moments spread over the first part of the work.

    Not over all of it: what was stored while the reply was lost is missing from the count of acknowledged judgements.
    """
    turn = random.Random(0)
    for number in range(1, kills + 1):
        while len(record.acknowledged) < before + 0.6 * total * number / kills:
            await asyncio.sleep(0.01 + 0.05 * turn.random())
        server.kill()
        record.kills += 1
        await asyncio.to_thread(server.start)


def draw_pictures(folder: Path) -> str:
    """A dataset of pictures for the server; its id in addresses."""
    (folder / "balls").mkdir()
    names = [f"p{number}" for number in range(_PICTURES)]
    for number, name in enumerate(names):
        Image.effect_noise((640, 480), 20 + number).convert("RGB").save(folder / "balls" / f"{name}.jpg", quality=85)
    plain = cl.Dataset.of({name: [f"picture {name}"] for name in names}, name="balls")
    with_files = replace(plain, images=plain.images.with_columns(pl.Series("file", [f"{name}.jpg" for name in names])))
    with_files.write_into(folder / "balls")
    served = create_app(WebSettings(folder, (cl.Dataset.load(folder / "balls"),), cache=folder / "cache"))
    return str(served.state.services.library.datasets()[0].id)


def prepare(database: Database, dataset: str, people: int, judgements: int, overlap: int) -> tuple[int, str]:
    """A project with somewhat more room than needed (nobody judges an item twice), and the link to it."""
    items = people * judgements * 5 // (4 * overlap)
    settings = ProjectSettings(per_person=judgements)
    project = create_project(database, "Load", "pairs", overlap=overlap, settings=settings).id
    shown = [ShownPicture(dataset, f"p{number}", "Picture") for number in range(_PICTURES)]
    content = (ItemContent((shown[n % _PICTURES],), (ShownText(f"text {n}"),)) for n in range(items))
    with database.writing() as session:
        add_items(session, locked_project(session, project), list(map(NewItem, content)))
        add_account(session, "owner", hash_password("a password of the owner"), is_owner=True)
    return project, create_invitation(database, project, uses=people)


def check(database: Database, record: Record, overlap: int) -> list[str]:
    """What is wrong, in sentences; empty where nothing is."""
    with database.reading() as session:
        columns = (JudgementRow.assignment, AccountRow.name, JudgementRow.item, JudgementRow.labels)
        rows = session.execute(select(*columns).join(AccountRow, AccountRow.id == JudgementRow.account)).all()
    stored = {assignment: (name, labels[0]) for assignment, name, _, labels in rows}
    lost = [number for number, answer in record.acknowledged.items() if stored.get(number) != answer]
    pairs = Counter((item, name) for _, name, item, _ in rows)
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
def busy(processes: int) -> Iterator[None]:
    """So many other processes that use the processor, while the block lasts."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


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


def milliseconds(seconds: list[float], limit: float) -> dict[str, float]:
    """Median, 95th percentile and longest, how many there were, and how many took longer than the limit."""
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    times = (("p50", cuts[49]), ("p95", cuts[94]), ("longest", max(seconds)))
    late = sum(taken > limit for taken in seconds)
    return {"requests": len(seconds), **{name: round(1000 * time, 1) for name, time in times}, "over the limit": late}


async def show_progress(record: Record, total: int) -> None:
    """Say on stderr how far it is, until it is cancelled."""
    start = time.perf_counter()
    while True:
        await asyncio.sleep(_SHOWN_EVERY)
        done = len(record.acknowledged)
        print(f"{done:,} of {total:,} judgements after {time.perf_counter() - start:.0f} s", file=sys.stderr)


async def measure(record: Record, server: Server, limit: float, *work: Awaitable[None]) -> dict[str, Any]:
    """Do all of the work at once; how long its requests took, and what server and annotators took of the processor."""
    record.seconds.clear()
    done, start = len(record.acknowledged), time.perf_counter()
    own, used = time.process_time(), server.processor_seconds()
    await asyncio.gather(*work)
    taken, judged = time.perf_counter() - start, len(record.acknowledged) - done
    each = 1000 / max(judged, 1)
    after = server.processor_seconds()
    figures: dict[str, Any] = {"seconds": round(taken, 1)}
    if judged:
        figures["judgements per second"] = round(judged / taken, 1)
        if used is not None and after is not None and after > used:  # it was not restarted
            figures["processor milliseconds of the server per judgement"] = round(each * (after - used), 1)
        figures["processor milliseconds of the annotators per judgement"] = round(each * (time.process_time() - own), 1)
    kinds = {kind: milliseconds(seconds, limit) for kind, seconds in record.seconds.items() if len(seconds) > 1}
    return {**figures, "milliseconds": kinds}


async def run(
    server: Server, project: int, link: str, record: Record, options: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """All annotators, and the interruptions; the figures of each phase."""
    people = [Annotator(server, project, f"annotator {number}", record) for number in range(options.annotators)]
    paced, total = len(people) * options.paced, len(people) * options.judgements
    arrivals = [options.arrive * number / len(people) for number in range(len(people))]

    async def join_and_work(person: Annotator, after: float) -> None:
        await person.join(after, link)
        await person.work(options.paced, options.pause)

    shown = asyncio.create_task(show_progress(record, total + paced))
    try:
        work = [join_and_work(person, after) for person, after in zip(people, arrivals, strict=True)]
        phases = {f"joining, and looking at an item for {options.pause:g} s": work}
        phases["logging in"] = [person.log_in(after) for person, after in zip(people, arrivals, strict=True)]
        phases["without a pause"] = [person.work(options.judgements, 0.0) for person in people]
        phases["without a pause"].append(interrupt(server, options.kills, record, paced, total))
        return {name: await measure(record, server, options.limit, *work) for name, work in phases.items()}
    finally:
        shown.cancel()
        for person in people:
            person.leave()


def main() -> int:
    """Print the figures as JSON; 1 where something was lost or doubled."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--annotators", type=int, default=50)
    parser.add_argument("--paced", type=int, default=10, help="judgements of each annotator at the pace of people")
    parser.add_argument("--judgements", type=int, default=200, help="of each without a pause, after these")
    parser.add_argument("--pause", type=float, default=2.0, help="seconds for which people look at an item")
    parser.add_argument("--overlap", type=int, default=5)
    parser.add_argument("--kills", type=int, default=0, help="how often the server is killed")
    parser.add_argument("--arrive", type=float, default=10.0, help="seconds within which they join, and log in again")
    parser.add_argument("--limit", type=float, default=10.0, help="requests that took more seconds are counted")
    parser.add_argument("--busy", type=int, default=0, help="other processes that use the processor meanwhile")
    parser.add_argument("--database", help="a URL, or 'test' for a PostgreSQL server of its own [default: SQLite]")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="crosslens-judging-") as name,
        address_of(options.database, Path(name)) as url,
    ):
        dataset = draw_pictures(Path(name))
        database = open_database(url)
        judgements = options.judgements + options.paced
        project, link = prepare(database, dataset, options.annotators, judgements, options.overlap)
        server, record = Server(Path(name), url), Record()
        server.start()
        try:
            with busy(options.busy):
                phases = asyncio.run(run(server, project, link, record, options))
        finally:
            server.kill()
        faults = check(database, record, options.overlap)
        kind = database.engine.dialect.name
        database.close()
    figures = {
        "database": kind,
        "annotators": options.annotators,
        "busy processes": options.busy,
        "acknowledged": len(record.acknowledged),
        "kills": record.kills,
        "requests interrupted": record.interruptions,
        "stored before the reply was lost": record.again,
        **phases,
        "faults": faults,
    }
    print(json.dumps(figures, indent=2, ensure_ascii=False))
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())

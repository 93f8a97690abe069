"""Hostile requests to the web application: hosts, routes without a login, guesses, bodies, addresses to go back to."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="pip install 'crosslens[web]'")
pytest.importorskip("argon2", reason="pip install 'crosslens[web]'")

from hypothesis import example, given, strategies as st
from starlette.responses import RedirectResponse

from crosslens.web import WebSettings, create_app
from crosslens.web.judging.context import local_path
from crosslens.web.judging.database.engine import open_database
from crosslens.web.pages import RESPONSES, status_of
from crosslens.web.security import host_name, is_allowed_host
from tests.tables import each_row, rest_slow
from tests.web.asking import CSRF, Answered, ask, form, together
from tests.web.conftest import shared_between_applications  # noqa: F401  (a fixture)
from tests.web.judging.conftest import cheap_hashes  # noqa: F401  (a fixture)
from tests.web.judging.samples import create_account
from tests.web.judging.site import addresses

PASSWORD = "a long enough password"
SOURCE = Path(str(create_app.__code__.co_filename)).parent
OPEN = {
    "/static/{hashed}/{name:path}", "/charts.css", "/map-frame/{hashed}", "/map-frame/{hashed}/{name}", "/login",
    "/logout", "/join/{token}", "/join/{token}/account", "/setup/{token}", "/reset/{token}",
}  # fmt: skip
"""All routes that nobody has to log in for."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder with an owner's account."""
    runs = tmp_path_factory.mktemp("served") / "runs"
    runs.mkdir()
    database = open_database(runs / "judging.sqlite")
    create_account(database, "olga", PASSWORD, is_owner=True)
    database.close()
    return runs


def application(folder: Path, **settings: Any) -> Any:
    return create_app(WebSettings(folder, cache=folder.parent / "cache", **settings))


@pytest.fixture(scope="module")
def with_password(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("password")
    return application(folder, host="0.0.0.0", password=PASSWORD)


@pytest.fixture(scope="module")
def with_accounts(folder: Path) -> Any:
    return application(folder, host="0.0.0.0")


@pytest.fixture(scope="module")
def local(folder: Path) -> Any:
    return application(folder)


@pytest.fixture
def fresh(folder: Path) -> Any:
    """A server on which nobody has guessed yet."""
    return application(folder)


# Hosts.

NAMES = ("127.0.0.1", "localhost", "[::1]", "127.0.0.1:8000", "runs.example")
ADDED = (
    "/", "/login", "/login?", "/static/?", "/static/x/../..", "?", "?x", "#", "#x", "\\", "\\@evil", "@",
    "@evil.example", "x@", ":", "::", ":x", ":-1", ":+1", ":8000:9", ":99999", ":123456", ":８０", "%2f", "%00", "%",
    " ", "\t", "\x00",
    "\x0b", "\x7f", "\xa0", ",", ",evil.example", ";", "&", "=", "[", "]", "[]", ".", "..", "'", '"', "<", "*", "|",
    "é", ":8000/login?", ":8000#", " evil.example", "\r\nX: 1", "$", "!", "~", "^", "{}", "(", ")", "+",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_host_is_exactly_a_name_or_an_address(tmp_path: Path, name: str) -> None:
    bound = WebSettings(tmp_path, host="0.0.0.0", allowed_hosts=("runs.example",))
    assert is_allowed_host(name, bound)
    for added in ADDED:
        for text in (name + added, added + name, f"{added}{name}{added}"):
            assert host_name(text) is None or (":" not in name and text == name + added and added == ":"), text
            assert not is_allowed_host(text, bound), text


@given(st.text(max_size=40) | st.from_regex(r"\A[a-z0-9.:\[\]/?#@%\\-]{0,24}\Z"))
@example("127.0.0.1/login?")
@example("2130706433")
@example("0x7f.1")
@example("127.1")
@example("[::1%25lo]")
def test_whatever_is_taken_for_a_host_is_one(text: str) -> None:
    name = host_name(text)
    if name is not None:
        assert re.fullmatch(r"[0-9a-z._:-]+", name)
        rest = text.lower().replace("[", "").replace("]", "")
        assert re.fullmatch(r"(\[[0-9a-f:.]+\]|[0-9a-z._-]+)(:[0-9]{1,5})?", text.lower()), rest


def test_no_host_opens_a_page(with_password: Any) -> None:
    """The issue's case, and its neighbours: the login is asked for, whatever the header says."""
    for added in (
        "/login?",
        "/login#",
        "/static/?",
        "/static/",
        "/charts.css?",
        "/map-frame/",
        "?x",
        "#",
        "@127.0.0.1",
    ):
        for host in (f"127.0.0.1{added}", f"127.0.0.1:8000{added}", f"x@127.0.0.1{added}"):
            for target in ("/api/runs", "/", "/api/openapi.json"):
                answer = asyncio.run(ask(with_password, target, host=host))
                assert answer.status == 400, (host, target)
                assert b"runs" not in answer.body
    two = [("host", "127.0.0.1"), ("host", "127.0.0.1")]
    assert asyncio.run(ask(with_password, "/api/runs", host=None)).status == 400
    assert asyncio.run(ask(with_password, "/api/runs", host=None, headers=two)).status == 400
    assert asyncio.run(ask(with_password, "/api/runs", host="evil.example")).status == 421
    assert asyncio.run(ask(with_password, "/api/runs")).status == 401


@pytest.mark.parametrize(
    "target",
    ["/static/../api/runs", "/static/%2e%2e/api/runs", "//api/runs", "/login/../api/runs", "/login%2f..%2fapi/runs",
     "/loginx", "/login/", "http://127.0.0.1/login?/api/runs", "/charts.cssx", "/api/runs;/login", "/%6cogin/x"],
)  # fmt: skip
def test_no_path_opens_a_page(with_password: Any, target: str) -> None:
    answer = asyncio.run(ask(with_password, target))
    assert answer.status in (401, 404)
    assert answer.status == 401 or target.startswith("/static/"), "only static files are open as a folder"


def test_nothing_is_decided_by_what_the_browser_calls_the_server() -> None:
    """``request.url`` is made of the Host header; the path that routes decide by is ``scope["path"]``."""
    suspicious = re.compile(r"request\.url|base_url|url_for|\.url\.path")
    files = [file for file in SOURCE.rglob("*") if file.suffix in (".py", ".html")]
    assert len(files) > 50
    assert not [file.name for file in files if suspicious.search(file.read_text(encoding="utf-8"))]


# Who is there is asked before anything else.


def filled(path: str) -> str:
    return re.sub(r"\{[^}]+\}", "1", path)


def hostile_requests(app: Any, paths: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str, Any]]:
    """Every route with nothing, with bodies that are not valid, and with tokens that are."""
    token = [("cookie", f"crosslens_csrf={CSRF}"), ("x-csrf-token", CSRF)]
    bodies: list[tuple[list[tuple[str, str]], list[bytes]]] = [
        ([], []),
        ([*token, ("content-type", "application/json")], [b"{"]),
        ([*token, ("content-type", "application/json")], [b'{"text": 1}']),
        ([*token, ("content-type", "multipart/form-data")], [b"x"]),
        ([*token, ("content-type", "multipart/form-data; boundary=x")], [b"--y"]),
        ([*token, ("content-type", "application/x-www-form-urlencoded")], [b"overlap=x"]),
    ]
    for method, path in paths:
        for headers, body in bodies:
            yield method, path, ask(app, filled(path), method, headers=headers, body=body)
        yield method, path, ask(app, filled(path) + "?offset=x&limit=-1&size=x&note=%ff", method)
        yield method, path, ask(app, re.sub(r"\{[^}]+\}", "x", path), method)


def answers(requests: Iterable[tuple[str, str, Any]]) -> list[tuple[str, str, Answered]]:
    """One request after the other, in one event loop: a loop and its threads take longer to make than an answer."""

    async def in_turn() -> list[tuple[str, str, Answered]]:
        return [(method, path, await request) for method, path, request in requests]

    return asyncio.run(in_turn())


def all_routes(app: Any) -> list[tuple[str, str]]:
    routes = addresses(app.routes)
    assert len(routes) > 50
    return routes


@pytest.mark.parametrize("kind", ["with_password", "with_accounts"])
def test_every_route_asks_who_is_there_before_it_looks_at_a_request(kind: str, request: pytest.FixtureRequest) -> None:
    app = request.getfixturevalue(kind)
    closed = [(method, path) for method, path in all_routes(app) if path not in OPEN]
    is_open = app.state.services.is_open
    assert {path for _, path in all_routes(app) if is_open(path)} == OPEN, "a route that needs no login is on the list"
    for method, path, answer in answers(hostile_requests(app, iter(closed))):
        assert answer.status in (401, 303), (method, path, answer.status)
        assert answer.status == 401 or answer.headers["location"].startswith("/login")


def test_judging_asks_who_is_there_on_this_computer_too(local: Any) -> None:
    """Also ``/judging/upload``, which said 422."""
    patterns = [pattern for pattern, _ in local.state.services.route_checks]
    closed = [
        (method, path) for method, path in all_routes(local)
        if any(pattern.match(filled(path)) for pattern in patterns)
    ]  # fmt: skip
    assert {("POST", "/judging/upload/{project}"), ("GET", "/api/projects/{project}/results")} <= set(closed)
    others = {path for _, path in all_routes(local)} - OPEN - {path for _, path in closed}
    assert not [path for path in others if "project" in path or "judging" in path or "account" in path]
    for method, path, answer in answers(hostile_requests(local, iter(closed))):
        assert answer.status in (401, 303), (method, path, answer.status)


# Guesses.


def login(app: Any, password: str, address: str, *headers: tuple[str, str]) -> Any:
    sent = form({"name": "olga", "password": password})
    return ask(app, "/login", "POST", address=address, headers=[*sent["headers"], *headers], body=sent["body"])


def counted(answers: list[Answered]) -> Counter[int]:
    return Counter(answer.status for answer in answers)


@pytest.mark.parametrize("address", rest_slow(["203.0.113.9", "127.0.0.1"]))
def test_sixty_logins_at_once(fresh: Any, address: str) -> None:
    answers = asyncio.run(together(*(login(fresh, f"wrong {n}", address) for n in range(60))))
    assert counted(answers) == {401: 10, 429: 50}
    assert all("retry-after" in answer.headers for answer in answers if answer.status == 429)


def test_forged_headers_do_not_make_addresses(fresh: Any) -> None:
    async def guess() -> list[Answered]:
        return [
            await login(fresh, f"wrong {n}", "127.0.0.1", ("x-forwarded-for", f"10.0.{n // 250}.{n % 250}"))
            for n in range(100)
        ]

    assert counted(asyncio.run(guess())) == {401: 10, 429: 90}
    assert asyncio.run(login(fresh, PASSWORD, "127.0.0.1")).status == 303, "the owner, at the machine itself"


def test_wrong_guesses_from_elsewhere_do_not_lock_the_owner_out(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosslens.web.access.FIRST_DELAY", 0.05)
    monkeypatch.setattr("crosslens.web.access.LONGEST_DELAY", 0.2)

    async def guess() -> list[Answered]:
        guesses = [login(fresh, f"wrong {n}", f"198.51.100.{n}") for n in range(40)]
        await together(*guesses)
        return [await login(fresh, PASSWORD, address) for address in ("127.0.0.1", "::1", "192.0.2.44", "192.0.2.44")]

    assert counted(asyncio.run(guess())) == {303: 4}


# Bodies.


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "text/plain"])
@pytest.mark.parametrize("target", ["/login", "/api/search/picture?dataset=a&encoder=b", "/api/search/text"])
def test_a_body_in_parts_that_is_too_large(local: Any, target: str, kind: str) -> None:
    """The issue's case had 26 MB: 413 whatever half of it looks like, and not all of it is read."""
    read = 0

    def parts() -> Iterator[bytes]:
        nonlocal read
        yield b'--x\r\nContent-Disposition: form-data; name="csrf_token"\r\n\r\n' if "multipart" in kind else b"text="
        for _ in range(26 * 16):
            read += 1
            yield b"a" * 65_536

    headers = [("cookie", f"crosslens_csrf={CSRF}"), ("x-csrf-token", CSRF), ("content-type", kind)]
    answer = asyncio.run(ask(local, target, "POST", headers=headers, body=parts()))
    limit = local.state.services.body_limit(target.partition("?")[0])
    assert answer.status == 413
    assert read * 65_536 <= limit + 2 * 65_536


@pytest.mark.parametrize(
    "origin", ["http://[", "http://127.0.0.1]", "null", "", "//", "http://evil.example", "x" * 9000]
)
def test_origins_that_are_none(local: Any, origin: str) -> None:
    sent = form({"name": "x", "password": "y"})
    answer = asyncio.run(
        ask(local, "/login", "POST", headers=[*sent["headers"], ("origin", origin)], body=sent["body"])
    )
    assert answer.status == 403


# Where a login leads.

ELSEWHERE = (
    "///evil.example", "//evil.example", "////evil.example", "/\\evil.example", "\\/evil.example", "\\\\evil.example",
    "/\\/evil.example", "/%2fevil.example", "/%2Fevil.example", "/%5cevil.example", "/%252fevil.example",
    "/%25252fevil.example", "%2f%2fevil.example", "/%2f%2fevil.example", "https://evil.example", "https:evil.example",
    "http:/evil.example", "javascript:alert(1)", "data:text/html,x", "evil.example", "?next=x", "#x", "", " ",
    "/ /evil", " //evil.example", "\t//evil.example", "/\t/evil.example", "/\n/evil.example", "/\r\nSet-Cookie: x=1",
    "/\x00/evil",
    "/%0d%0aSet-Cookie:x", "/%09/evil.example", "/x\\y", "/\u2028/evil", "/\uff0f/evil.example", "/a//evil.example",
    "/\x7f/evil", "/é",
)  # fmt: skip


@each_row("address", ELSEWHERE)
def test_a_login_leads_to_this_server_only(address: str) -> None:
    assert local_path(address) == "/judging"


def test_a_foreign_cookie_costs_no_time(local: Any) -> None:
    """Python took ten seconds for its 30,000 backslashes, of somebody who had not logged in."""
    foreign = 'a="' + "\\\\" * 15_000 + '"'
    begin = time.monotonic()
    page = asyncio.run(ask(local, "/login", headers=[("cookie", f"{foreign}; crosslens_csrf={CSRF}; b=1")]))
    assert time.monotonic() - begin < 2
    assert page.status == 200
    assert CSRF.encode() in page.body, "the token of the browser's own cookie"


def test_a_long_address_costs_no_time() -> None:
    """Nobody has to log in for it: each of 30,000 layers would be a pass over the whole."""
    begin = time.monotonic()
    assert local_path("/%" + "25" * 30_000) == "/judging"
    assert time.monotonic() - begin < 0.5


@pytest.mark.parametrize("address", ["/", "/judging", "/projects/1/annotate?note=x", "/runs/a~b?search=%2F%2Fx&at=1"])
def test_a_login_leads_back(address: str) -> None:
    assert local_path(address) == address


@given(st.text("/\\%25fc.:@?#ab\t\n ", max_size=12))
def test_wherever_a_login_leads_it_is_here(address: str) -> None:
    location = RedirectResponse(local_path(address)).headers["location"]
    assert re.match(r"/(?![/\\]|%2f|%5c)", location, re.IGNORECASE)
    assert "\\" not in location.partition("?")[0]


def test_a_redirect_after_the_login(fresh: Any) -> None:
    sent = form({"name": "olga", "password": PASSWORD, "next": "///evil.example"})
    answer = asyncio.run(ask(fresh, "/login", "POST", address="127.0.0.1", **sent))
    assert (answer.status, answer.headers["location"]) == (303, "/judging")
    assert b"evil" not in asyncio.run(ask(fresh, "/login?next=///evil.example")).body


# The description says what is answered.


def test_every_answered_status_is_in_the_description(local: Any, with_password: Any, with_accounts: Any) -> None:
    answered: set[int] = set()
    for app in (local, with_password, with_accounts):
        operations = [
            (method.upper(), path.replace("image}", "image:path}"), set(operation["responses"]))
            for path, methods in app.openapi()["paths"].items()
            for method, operation in methods.items()
        ]
        assert len(operations) > 20
        declared = {(method, path): statuses for method, path, statuses in operations}
        questions = list(hostile_requests(app, iter(declared)))
        for method, path in declared:
            questions += [
                (method, path, ask(app, filled(path), method, host="evil.example")),
                (method, path, ask(app, filled(path), method, host="x/y")),
                (method, path, ask(app, filled(path), method, headers=[("content-length", "x")])),
                (method, path, ask(app, filled(path), method, headers=[("content-length", "9" * 12)])),
                (method, path, ask(app, filled(path), method, headers=[("origin", "http://evil.example")])),
                (method, path, ask(app, filled(path), method, headers=[("authorization", "Basic eDp5")])),
            ]
        for method, path, answer in answers(questions):
            answered.add(answer.status)
            assert str(answer.status) in declared[method, path], (method, path, answer.status)
            if answer.status >= 400:
                assert set(json.loads(answer.body)) == {"problem", "fix"}, (method, path, answer.status)
    assert {400, 401, 403, 404, 413, 421, 422, 429} <= answered, "the requests are really hostile"


def test_every_error_has_a_status_of_the_description() -> None:
    from crosslens.core import ConflictError, CrosslensError, InputError, MissingExtraError, UnknownNameError
    from crosslens.web.access import TooManyAttempts

    errors = [
        CrosslensError("x"), InputError("x"), ConflictError("x"), UnknownNameError("run", "x", ["y"]),
        MissingExtraError("x", "y", "web"), TooManyAttempts(1), InputError("x", code="outside"),
        InputError("x", code="gone"),
    ]  # fmt: skip
    assert {status_of(error) for error in errors} == {403, 404, 409, 422, 429, 501}
    assert {status_of(error) for error in errors} <= set(RESPONSES)

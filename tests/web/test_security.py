"""What protects the application: hosts, headers, forged requests, sizes, logins; captions that stay text."""

from __future__ import annotations

import re
from base64 import b64encode
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from crosslens.core import InputError, UsageError
from crosslens.web import ServeOptions, WebSettings, create_app
from crosslens.web.security import CSRF_COOKIE, check_csrf, csrf_token, is_allowed_host
from crosslens.web.settings import is_loopback
from tests.tables import each_row
from tests.web.conftest import NASTY, client_of

PASSWORD = "a long enough password"


def every_page(client: TestClient) -> list[str]:
    """One address of every kind of page that shows captions, names or ids."""
    dataset = client.get("/api/runs").json()["runs"][0]["dataset"]
    return [
        "/",
        "/?name=model&metric=Hit&sort=t2i/Hit@1",
        "/runs/model-a",
        "/runs/model-a?direction=i2t&where=kind%3Dodd",
        "/runs/model-a?where=kind%3Dodd&sort=MRR&outcome=failed&against=model-b&side=neither",
        "/runs/model-a?search=script",
        "/runs/model-a/query?id=img3%231&direction=t2i&at=0&search=script",
        "/runs/model-a/query?id=img3&direction=i2t",
        "/compare?run=model-a&run=model-b",
        "/datasets",
        f"/datasets/{dataset}?search=script",
        f"/datasets/{dataset}/image?id=img3",
        "/runs/nothing-of-that-name",
        "/nowhere",
    ]


def test_every_answer_has_the_headers(client: TestClient) -> None:
    dataset = client.get("/api/runs").json()["runs"][0]["dataset"]
    for address in (*every_page(client), "/api/runs", "/api/runs/none", f"/pictures/{dataset}/img1", "/pictures/x/y"):
        headers = client.get(address).headers
        policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == "'self'"
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"


def test_no_page_has_script_or_style_inside(client: TestClient) -> None:
    for address in every_page(client):
        page = client.get(address).text
        tags = re.findall(r"<[a-z][^>]*>", page)
        assert not [tag for tag in tags if re.search(r"\s(on[a-z]+|style)\s*=", tag)], address
        assert all(" src=" in tag for tag in tags if tag.startswith("<script")), address
        assert "<style" not in page


def test_captions_with_markup_stay_text(client: TestClient) -> None:
    pages = 0
    for address in every_page(client):
        page = client.get(address).text
        assert "<script>alert" not in page, address
        assert "<img src=x" not in page, address
        pages += "&lt;script&gt;alert" in page
    assert pages >= 5, "the caption is really on these pages"
    assert client.get("/api/runs/model-a/query?id=img3%231").json()["text"] == NASTY


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7*7777777 }}", "javascript:1"]
)
def test_what_is_asked_for_stays_text(client: TestClient, text: str) -> None:
    for path, name in (("/", "name"), ("/runs/model-a", "search"), ("/runs/model-a", "sort"), ("/nowhere", "x")):
        page = client.get(path, params={name: text}).text
        assert text not in page or "<" not in text
        assert "54444439" not in page or "{{" not in text


@pytest.mark.parametrize(
    ("host", "bound", "allowed"),
    [
        ("127.0.0.1:8000", "127.0.0.1", True),
        ("localhost", "127.0.0.1", True),
        ("LOCALHOST:1", "127.0.0.1", True),
        ("[::1]:8000", "::1", True),
        ("evil.example", "127.0.0.1", False),
        ("127.0.0.1.evil.example", "127.0.0.1", False),
        ("192.168.0.7:8000", "127.0.0.1", False),
        ("", "127.0.0.1", False),
        ("[::1", "127.0.0.1", False),
        ("named.example:8000", "127.0.0.1", True),
        ("192.168.0.7:8000", "0.0.0.0", True),
        ("evil.example", "0.0.0.0", False),
    ],
)
def test_host_names(tmp_path: Path, host: str, bound: str, allowed: bool) -> None:
    settings = WebSettings(tmp_path, host=bound, allowed_hosts=("Named.example",))
    assert is_allowed_host(host, settings) is allowed


def test_a_wrong_host_is_refused(client: TestClient) -> None:
    assert client.get("/", headers={"host": "evil.example"}).status_code == 421


def probed(folder: Path, cache: Path) -> TestClient:
    """The application with a page that sets a token, and an address that changes something."""
    client = client_of(folder, cache)
    app = client.app
    assert isinstance(app, FastAPI)

    @app.get("/probe")
    def token(request: Request) -> Response:
        return PlainTextResponse(csrf_token(request))

    @app.post("/probe")
    async def change(request: Request) -> Response:
        form = request.headers.get("content-type", "").startswith("application/x-www-form")
        return PlainTextResponse(str(len(await (request.form() if form else request.body()))))

    return client


def test_forged_requests(runs_folder: Path, tmp_path: Path) -> None:
    client = probed(runs_folder, tmp_path)
    assert client.post("/probe").status_code == 403, "no cookie"
    page = client.get("/probe")
    cookie, token = page.headers["set-cookie"], page.text
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert client.get("/probe").text == token, "one token for a browser"
    assert client.post("/probe").status_code == 403, "a cookie alone is what a forged request has"
    assert client.post("/probe", data={"csrf_token": "x" * 43}).status_code == 403
    assert client.post("/probe", json={"csrf_token": token}).status_code == 403, "not a form"
    assert client.post("/probe", data={"csrf_token": token}).status_code == 200
    assert client.post("/probe", headers={"X-CSRF-Token": token}).status_code == 200
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
        assert client.post("/probe", headers={"X-CSRF-Token": token, **headers}).status_code == 403
    same = {"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin", "X-CSRF-Token": token}
    assert client.post("/probe", headers=same).status_code == 200
    client.cookies.set(CSRF_COOKIE, "short")
    assert client.post("/probe", headers={"X-CSRF-Token": "short"}).status_code == 403, "not a token of ours"


def test_every_route_checks_tokens(client: TestClient) -> None:
    routes = [route for route in client.app.routes if isinstance(route, APIRoute)]  # type: ignore[attr-defined]
    forgotten = [
        route.path for route in routes if check_csrf not in [needed.call for needed in route.dependant.dependencies]
    ]
    assert len(routes) > 60
    assert not forgotten


def test_a_form_of_many_fields_is_refused(runs_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where Starlette takes any number of them, as older versions do; nothing looks for the fields one by one."""
    client = probed(runs_folder, tmp_path)
    token = client.get("/probe").text
    fields = {f"label{number}": "x" for number in range(1_000)}
    assert client.post("/probe", data={"csrf_token": token, **fields}).status_code == 400

    async def form(_: Request) -> FormData:
        return FormData({"csrf_token": token, **fields})

    monkeypatch.setattr(Request, "form", form)
    assert client.post("/probe", data={"a": "b"}).status_code == 400
    fields.pop("label0")
    assert client.post("/probe", data={"a": "b"}).status_code == 200


def test_bodies_are_limited(runs_folder: Path, tmp_path: Path) -> None:
    client = probed(runs_folder, tmp_path)
    headers = {"X-CSRF-Token": client.get("/probe").text}
    assert client.post("/probe", content=b"x" * (1 << 20), headers=headers).text == str(1 << 20)
    assert client.post("/probe", content=b"x" * ((1 << 20) + 1), headers=headers).status_code == 413
    assert client.post("/probe", content=(b"x" * 4096 for _ in range(257)), headers=headers).status_code == 413
    assert client.post("/probe", headers={**headers, "Content-Length": "-1"}).status_code == 400
    client.app.state.services.body_limits["/probe"] = 2 << 20  # type: ignore[attr-defined]
    assert client.post("/probe", content=b"x" * (2 << 20), headers=headers).status_code == 200


def test_other_computers_have_to_log_in(runs_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no login is set up"):
        create_app(WebSettings(runs_folder, host="0.0.0.0"))
    client = client_of(runs_folder, tmp_path, host="0.0.0.0", password=PASSWORD)
    for address in ("/", "/api/runs", "/api/openapi.json", "/pictures/x/y", "/nowhere"):
        answer = client.get(address)
        assert answer.status_code == 401
        assert "model a" not in answer.text
    assert client.get("/", auth=("anybody", PASSWORD)).status_code == 200
    style = re.search(r'/static/[^"]+css', client.get("/", auth=("me", PASSWORD)).text)
    assert style is not None
    assert client.get(style[0]).status_code == 200, "the style of the login page of accounts"
    statuses = [client.get("/", auth=("me", f"guess {n}")).status_code for n in range(12)]
    assert statuses[:10] == [401] * 10
    assert statuses[10:] == [429] * 2
    assert client.get("/", auth=("me", PASSWORD)).status_code == 429, "guessing goes on no faster with the right one"


@pytest.fixture
def with_password(runs_folder: Path, tmp_path: Path) -> TestClient:
    return client_of(runs_folder, tmp_path, password=PASSWORD)


@each_row("header", ["Basic", "Basic ???", "Bearer x", f"Basic {b64encode(b'no colon').decode()}", "basic"])
def test_bad_credentials(with_password: TestClient, header: str) -> None:
    assert with_password.get("/", headers={"Authorization": header}).status_code == 401


def test_accounts_can_take_over_the_login(runs_folder: Path, tmp_path: Path) -> None:
    client = client_of(runs_folder, tmp_path, host="0.0.0.0", password=PASSWORD)
    services = client.app.state.services  # type: ignore[attr-defined]

    async def require(request: Request) -> Response | None:
        return None if request.cookies.get("session") == "known" else RedirectResponse("/login", 303)

    services.require_login = require
    services.open_paths.append("/entrance")
    assert client.get("/", follow_redirects=False).headers["location"] == "/login"
    assert client.get("/entrance", follow_redirects=False).status_code == 404
    client.cookies.set("session", "known")
    assert client.get("/").status_code == 200


def test_password_files(tmp_path: Path) -> None:
    file = tmp_path / "password"
    options = ServeOptions(password_file=file)
    with pytest.raises(InputError, match="no such file"):
        WebSettings.of(tmp_path, options)
    for content in (b"", b"short", b"\n a long enough password"):
        file.write_bytes(content)
        with pytest.raises(InputError, match="characters"):
            WebSettings.of(tmp_path, options)
    file.write_text(f"{PASSWORD} \nsecond line")
    assert WebSettings.of(tmp_path, options).password == PASSWORD


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("[::1]", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("192.168.1.1", False), ("example.org", False), ("", False)],
)  # fmt: skip
def test_loopback(host: str, local: bool) -> None:
    assert is_loopback(host) is local


def test_errors_name_no_paths(client: TestClient, runs_folder: Path) -> None:
    for address in ("/runs/broken", "/api/runs/broken/queries", "/runs/nothing", "/compare?run=model-a&run=broken"):
        answer = client.get(address)
        assert 400 <= answer.status_code < 500
        assert str(runs_folder.parent) not in answer.text


def test_bugs_show_no_traceback(runs_folder: Path, tmp_path: Path) -> None:
    client = probed(runs_folder, tmp_path)

    @client.app.get("/bug")  # type: ignore[attr-defined, misc]
    def bug() -> None:
        raise RuntimeError("the secret of the server")

    answer = client.get("/bug")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "content-security-policy" in answer.headers

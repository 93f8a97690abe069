"""Behind nginx with HTTPS, set up as the page about serving says: addresses, cookies, forms, sizes of bodies."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from crosslens.web.judging.context import SESSION_COOKIE
from crosslens.web.judging.owner_pages import UPLOAD_BYTES
from crosslens.web.search.encoders import MOST_BYTES
from crosslens.web.security import CSRF_COOKIE
from tests.tables import rest_slow
from tests.web.judging.samples import create_account
from tests.web.judging.served import running
from tests.web.judging.site import Site
from tests.web.serving import served

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/sbin")
pytestmark = [
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed: make system-packages"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed"),
]
NAME = "runs.example.org"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "serve.md"
PASSWORD = "a long enough password"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate that it signed itself, and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}"]
    names = ["-addext", f"subjectAltName=DNS:{NAME}", "-keyout", "runs.key", "-out", "runs.pem"]
    subprocess.run([*words, *names], cwd=folder, check=True, capture_output=True)
    return folder


def documented(port: int, upstream: str, certificate: Path) -> str:
    """The server in the documentation, at this port and before this address."""
    block = re.search(r"```nginx\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    text = block[1]
    for written, meant in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("http://127.0.0.1:8000", upstream),
        ("/etc/ssl/", f"{certificate}/"),
    ):
        assert written in text
        text = text.replace(written, meant)
    return text


@contextmanager
def proxy(folder: Path, upstream: str, certificate: Path) -> Iterator[int]:
    """nginx as whoever runs the test, before an address; its port."""
    folder.mkdir()
    port = free_port()
    places = "".join(
        f"{kind}_temp_path {folder / kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/errors;\n"
        f"events {{}}\nhttp {{ access_log off; {places}\n{documented(port, upstream, certificate)} }}\n"
    )
    process = subprocess.Popen(
        [str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "errors")]
    )
    try:
        for _ in range(600):
            assert process.poll() is None, (folder / "errors").read_text()
            with socket.socket() as attempt:
                if attempt.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(20)


Browse = Callable[..., httpx.Client]


@pytest.fixture
def browse(certificate: Path) -> Iterator[Browse]:
    """Clients that speak HTTPS to the proxy under its name, each from an address of its own."""
    opened: list[httpx.Client] = []

    def client(port: int, address: str = "127.0.0.1") -> httpx.Client:
        trusted = ssl.create_default_context(cafile=str(certificate / "runs.pem"))
        new_client = httpx.Client(
            base_url=f"https://127.0.0.1:{port}", headers={"Host": f"{NAME}:{port}"}, timeout=30,
            transport=_Named(httpx.HTTPTransport(verify=trusted, local_address=address)),
        )  # fmt: skip
        opened.append(new_client)
        return new_client

    yield client
    for open_client in opened:
        open_client.close()


class _Named(httpx.BaseTransport):
    """Asks for the certificate of the name that the address would have."""

    def __init__(self, inner: httpx.HTTPTransport) -> None:
        self._inner = inner

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.extensions["sni_hostname"] = NAME
        return self._inner.handle_request(request)


async def asking(request: Request) -> Response:
    """Instead of a login: what the server knows of a request."""
    client = request.client
    return PlainTextResponse(f"{client.host if client else None} {request.url.scheme}")


@pytest.mark.parametrize(
    ("proxies", "reply"),
    rest_slow([(("127.0.0.1",), "127.0.0.9 https"), ((), "127.0.0.1 http"), (("192.0.2.1",), "127.0.0.1 http")]),
)
def test_the_server_knows_the_address_and_the_scheme(
    runs_folder: Path, tmp_path: Path, certificate: Path, browse: Browse, proxies: tuple[str, ...], reply: str
) -> None:
    settings = {"password": PASSWORD, "allowed_hosts": (NAME,), "proxies": proxies, "login": asking}
    with (
        served(runs_folder, tmp_path / "cache", **settings) as upstream,  # type: ignore[arg-type]
        proxy(tmp_path / "nginx", upstream, certificate) as port,
    ):
        client = browse(port, "127.0.0.9")
        assert client.get("/").text == reply
        forged = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "http", "Forwarded": "for=203.0.113.7"}
        assert client.get("/", headers=forged).text == reply, "what a client says of itself is not believed"


@contextmanager
def behind_proxy(runs_folder: Path, tmp_path: Path, certificate: Path) -> Iterator[int]:
    """The port of a proxy before a server with a password."""
    settings = {"password": PASSWORD, "allowed_hosts": (NAME,), "proxies": ("127.0.0.1",)}
    with (
        served(runs_folder, tmp_path / "cache", **settings) as upstream,
        proxy(tmp_path / "nginx", upstream, certificate) as port,
    ):
        yield port


def test_everybody_logs_in_under_the_proxys_name(
    runs_folder: Path, tmp_path: Path, certificate: Path, browse: Browse
) -> None:
    with behind_proxy(runs_folder, tmp_path, certificate) as port:
        client = browse(port, "127.0.0.1")
        assert client.get("/").status_code == 401
        client.headers["Authorization"] = f"Basic {b64encode(f'me:{PASSWORD}'.encode()).decode()}"
        page = client.get("/")
        assert page.status_code == 200
        assert "model a" in page.text
        assert "http://" not in "".join(re.findall(r'(?:href|src|action)="([^"]*)"', page.text)), "no way back to HTTP"
        assert client.get("/", headers={"Host": "evil.example"}).status_code == 421


def test_cookies_are_secure_and_forms_work(tmp_path: Path, certificate: Path, browse: Browse) -> None:
    create_account(Site(tmp_path / "runs").database, "olga", PASSWORD, is_owner=True)
    site = Site(tmp_path / "runs", allowed_hosts=(NAME,), proxies=("127.0.0.1",))
    with running(site) as upstream, proxy(tmp_path / "nginx", upstream, certificate) as port:
        client = browse(port, "127.0.0.9")
        assert client.get("/").headers["location"].startswith("/login"), "a server behind a proxy is not local"
        client.get("/login")
        token = client.cookies[CSRF_COOKIE]
        fields = {"name": "olga", "password": PASSWORD, "csrf_token": token}
        same = {"Origin": f"https://{NAME}:{port}", "Sec-Fetch-Site": "same-origin"}
        assert client.post("/login", data=fields, headers={"Origin": "https://evil.example"}).status_code == 403
        answer = client.post("/login", data=fields, headers=same)
        assert answer.status_code == 303
        set_cookies = [*client.get("/login").headers.get_list("set-cookie"), *answer.headers.get_list("set-cookie")]
        assert any(cookie.startswith(f"{SESSION_COOKIE}=") for cookie in set_cookies)
        assert all("; secure" in cookie.lower() and "; httponly" in cookie.lower() for cookie in set_cookies)
        assert client.get("/judging").status_code == 200
        fresh = httpx.get(f"{upstream}/login")
        assert "secure" not in fresh.headers["set-cookie"].lower(), "over HTTP, a browser would not send it back"


def test_bodies_reach_the_server_up_to_its_own_limits(
    runs_folder: Path, tmp_path: Path, certificate: Path, browse: Browse
) -> None:
    with behind_proxy(runs_folder, tmp_path, certificate) as port:
        client = browse(port, "127.0.0.1")
        client.headers["Authorization"] = f"Basic {b64encode(f'me:{PASSWORD}'.encode()).decode()}"
        larger = max(UPLOAD_BYTES, MOST_BYTES) + (2 << 20)
        answer = client.post("/api/search/picture", content=b"x" * larger)
        assert answer.status_code == 413
        assert "larger than" in answer.text, "the server's own words, not the proxy's"

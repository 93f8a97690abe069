"""``crosslens serve``: what it refuses before it listens, what it says, and what it needs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

import crosslens.web
from crosslens.web import WebSettings
from lowest_versions import lowest_versions
from tests.commands import Call, call  # noqa: F401  (a fixture)
from tests.web.conftest import toys


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[WebSettings]:
    """The settings that the command would serve."""
    settings: list[WebSettings] = []
    monkeypatch.setattr(crosslens.web, "serve_pages", lambda given, warn, announce: settings.append(given))
    return settings


def test_options_become_settings(call: Call, served: list[WebSettings], tmp_path: Path) -> None:  # noqa: F811
    pictures, dataset = tmp_path / "pictures", tmp_path / "data"
    pictures.mkdir()
    toys().save(dataset)
    outcome = call("serve", tmp_path, "--port", "8123", "--data", pictures, "--data", dataset)
    assert outcome.code == 0
    assert (served[0].folder, served[0].host, served[0].port) == (tmp_path, "127.0.0.1", 8123)
    assert served[0].image_folders == (pictures,)
    assert [given.name for given in served[0].datasets] == ["toys"]


def test_a_folder_that_is_not_there(call: Call, tmp_path: Path) -> None:  # noqa: F811
    outcome = call("serve", tmp_path / "none")
    assert outcome.code == 3
    assert "no such folder" in outcome.err


def test_other_computers_need_a_password(call: Call, tmp_path: Path) -> None:  # noqa: F811
    outcome = call("serve", tmp_path, "--host", "0.0.0.0")
    assert outcome.code == 2
    assert "no login is set up" in outcome.err
    assert "--password-file" in outcome.err


@pytest.mark.parametrize("words", [("--forwarded-allow-ips", "127.0.0.1"), ("--allowed-host", "runs.example.org")])
def test_a_proxy_needs_a_login(call: Call, tmp_path: Path, words: tuple[str, str]) -> None:  # noqa: F811
    """Behind a proxy on the same machine the server listens on 127.0.0.1, and everybody reaches it."""
    outcome = call("serve", tmp_path, *words)
    assert outcome.code == 2
    assert "and no login is set up" in outcome.err
    assert f"or leave {words[0]} out" in outcome.err


def test_an_occupied_port(call: Call, tmp_path: Path) -> None:  # noqa: F811
    with socket.create_server(("127.0.0.1", 0)) as busy_socket:
        port = busy_socket.getsockname()[1]
        outcome = call("serve", tmp_path, "--port", port)
    assert outcome.code == 2
    assert f"cannot listen on 127.0.0.1, port {port}" in outcome.err
    assert f"--port {port + 1}" in outcome.err


@pytest.mark.slow
def test_a_warning_for_other_computers(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("a long enough password")
    words = ["serve", str(tmp_path), "--host", "0.0.0.0", "--port", "0", "--password-file", str(password)]
    with subprocess.Popen(
        [sys.executable, "-m", "crosslens", *words], stderr=subprocess.PIPE, text=True, env={**os.environ}
    ) as server:
        assert server.stderr is not None
        try:
            assert "warning: other computers can reach this server" in server.stderr.readline()
            assert "http://0.0.0.0:" in server.stderr.readline()
        finally:
            server.terminate()


def test_the_wheel_holds_templates_and_scripts() -> None:
    """It takes every file of the package that git does not ignore."""
    root = Path(__file__).resolve().parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["src/crosslens"]}
    ignored = [line.strip("/") for line in (root / ".gitignore").read_text().splitlines() if line.strip()]
    files = [file.relative_to(root) for file in (root / "src/crosslens/web").rglob("*") if file.suffix != ".pyc"]
    assert {".html", ".css", ".js", ".svg"} <= {file.suffix for file in files}
    parts = {part for file in files for part in file.parts} - {"__pycache__"}
    assert not [(part, pattern) for part in parts for pattern in ignored if fnmatch(part, pattern)]


def test_lowest_versions_are_the_lower_bounds() -> None:
    """What ``make test-lowest`` installs; a package without a bound would be tested with its newest version."""
    lowest = dict(line.split("==") for line in lowest_versions("postgres"))
    root = Path(__file__).resolve().parents[2]
    web = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"][
        "web"
    ]
    assert {f"{name}>={version}" for name, version in lowest.items() if name != "psycopg"} == set(web)
    assert "psycopg" in lowest
    for name, at_least in {"starlette": (0, 49, 1), "h11": (0, 16), "python-multipart": (0, 0, 18)}.items():
        assert tuple(map(int, lowest[name].split("."))) >= at_least, "earlier ones have known holes"

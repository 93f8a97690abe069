"""The application answers, and the command starts it on this computer only."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient


def test_first_page(client: TestClient) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert "model a" in page.text
    assert "model b" in page.text


def test_static_files_are_kept_by_their_hash(client: TestClient) -> None:
    address = re.search(r'href="(/static/[^"]+style\.css)"', client.get("/").text)
    assert address is not None
    sheet = client.get(address[1])
    assert sheet.headers["content-type"].startswith("text/css")
    assert "immutable" in sheet.headers["cache-control"]
    assert client.get("/static/x/../../app.py").status_code == 404
    assert client.get("/static/x/layout/%2e%2e/rendering.py").status_code == 404


@pytest.mark.slow
def test_the_command_answers_on_this_computer(runs_folder: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "crosslens", "serve", str(runs_folder), "--port", "0", "--cache", str(tmp_path)]
    with subprocess.Popen([*words, "--json"], stdout=subprocess.PIPE, text=True, env={**os.environ}) as server:
        assert server.stdout is not None
        try:
            printed = "".join(iter(server.stdout.readline, "}\n")) + "}"
            address = json.loads(printed)["address"]
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address)
            assert httpx.get(address).status_code == 200
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=20)

"""Pictures of many pixels, sent to the live search of a real server by many people at once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="pip install 'crosslens[web]'")
pytest.importorskip("onnxruntime", reason="pip install 'crosslens[onnx]'")

from tests.web.serving import write_scene_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to measure another process"),
]
SIDE, UPLOADS = 9000, 12
PICTURE_MEGABYTES = SIDE * SIDE * 4 / 1e6
"""As Pillow holds it: four bytes a pixel."""


def colour_png(side: int) -> bytes:
    """A picture of one colour, in full colour: a few kilobytes, and four bytes a pixel once it is decoded."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    packer = zlib.compressobj(9)
    line = b"\0" + b"\x40\x80\xc0" * side
    data = b"".join(packer.compress(line) for _ in range(side)) + packer.flush()
    header = side.to_bytes(4, "big") * 2 + b"\x08\x02\x00\x00\x00"
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


class Server:
    """``crosslens serve`` in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process, self.address = process, address
        page = urllib.request.urlopen(f"{address}/search")
        self._cookie = page.headers["Set-Cookie"].partition(";")[0]
        token = re.search(r'data-token="([^"]+)"', page.read().decode())
        assert token is not None
        self._token = token[1]
        with urllib.request.urlopen(f"{address}/api/search") as answer:
            choices = json.load(answer)
        self._query = f"dataset={choices['datasets'][0]['id']}&encoder={choices['encoders'][0]['id']}"

    def megabytes(self, kind: str) -> float:
        """``VmRSS`` now, ``VmHWM`` at most so far."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{kind}:\s+(\d+) kB", status)[1]) / 1000  # type: ignore[index]

    def upload(self, picture: bytes) -> int:
        """The status of the answer."""
        body = (
            b'--x\r\nContent-Disposition: form-data; name="picture"; filename="a.png"\r\n\r\n'
            + picture
            + b"\r\n--x--\r\n"
        )
        headers = {
            "Content-Type": "multipart/form-data; boundary=x",
            "X-CSRF-Token": self._token,
            "Cookie": self._cookie,
        }
        request = urllib.request.Request(f"{self.address}/api/search/picture?{self._query}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                answer.read()
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = write_scene_run(tmp_path_factory.mktemp("served"), 6)
    cache = tmp_path_factory.mktemp("cache")
    words = ["serve", str(folder), "--port", "0", "--cache", str(cache)]
    process = subprocess.Popen(
        [sys.executable, "-m", "crosslens", *words], stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    try:
        assert process.stderr is not None
        address = next(match[0] for line in process.stderr if (match := re.search(r"http://127\.0\.0\.1:\d+", line)))
        yield Server(process, address)
    finally:
        process.terminate()
        process.wait(30)


def test_twelve_uploads_at_once_take_the_memory_of_one(server: Server) -> None:
    picture = colour_png(SIDE)
    assert len(picture) < 400_000
    assert server.upload(colour_png(64)) == 200  # the encoder is loaded
    before = server.megabytes("VmRSS")
    with ThreadPoolExecutor(UPLOADS) as people:
        statuses = list(people.map(server.upload, [picture] * UPLOADS))
    assert set(statuses) <= {200, 409}  # at most six searches wait; others are told to come again
    assert statuses.count(200) >= 6
    peak = server.megabytes("VmHWM") - before
    print(f"peak {peak:.0f} MB above {before:.0f} MB")
    assert peak < 3 * PICTURE_MEGABYTES, f"{peak:.0f} MB"
    time.sleep(0.5)
    kept = server.megabytes("VmRSS") - before
    print(f"kept {kept:.0f} MB")
    assert kept < PICTURE_MEGABYTES, f"{kept:.0f} MB"

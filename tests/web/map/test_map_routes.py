"""The JSON and the bytes of the map, and the policies of its page and its frame."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from fastapi.testclient import TestClient

from crosslens.storage import trusting
from crosslens.values import Run
from crosslens.web.map.routes import FRAME_POLICY, LIBRARY
from crosslens.web.security import CONTENT_SECURITY_POLICY
from tests.web.conftest import NASTY, client_of, fill
from tests.web.serving import write_vector_run


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = fill(tmp_path_factory.mktemp("mapped") / "runs")
    write_vector_run(folder, "vectors-run", folder / "toys")
    with client_of(folder, tmp_path_factory.mktemp("cache")) as client:
        compute(client, "vectors-run")
        yield client


def token(client: TestClient) -> dict[str, str]:
    attribute = re.search(r'data-token="([^"]+)"', client.get("/map/vectors-run").text)
    assert attribute is not None
    return {"X-CSRF-Token": attribute[1]}


def compute(client: TestClient, run: str) -> dict[str, object]:
    answer = client.post(f"/api/map/{run}?method=pca", headers=token(client)).json()
    while answer["state"] in ("waiting", "running"):
        time.sleep(0.02)
        answer = client.get(f"/api/map/{run}?method=pca").json()
    return answer


def unpack(content: bytes) -> tuple[dict[str, object], bytes]:
    length = int.from_bytes(content[:4], "little")
    return json.loads(content[4 : 4 + length]), content[4 + length :]


def test_state_points_and_colours_fit_each_other(mapped: TestClient) -> None:
    state = mapped.get("/api/map/vectors-run?method=pca").json()
    assert (state["state"], state["points"], state["images"]) == ("ready", 36, 12)
    assert sum(region["images"] + region["captions"] for region in state["regions"]) == 36
    header, content = unpack(mapped.get("/api/map/vectors-run/points?method=pca").content)
    assert header["points"] == 36
    points = np.frombuffer(content, "<f4").reshape(2, 36)
    assert np.abs(points).max() <= 1.0001
    for colouring in state["colourings"]:
        answer = mapped.get("/api/map/vectors-run/colours", params={"name": colouring["name"], "method": "pca"})
        summary, codes = unpack(answer.content)
        assert summary["label"] == colouring["label"]
        assert len(codes) == 36


def test_bytes_are_compressed_and_not_sent_twice(mapped: TestClient) -> None:
    address = "/api/map/vectors-run/points?method=pca"
    plain = mapped.get(address, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    packed = mapped.get(address, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.content == plain.content  # httpx unpacks
    assert len(gzip.compress(plain.content)) < len(plain.content) * 2
    again = mapped.get(address, headers={"If-None-Match": packed.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    colours = mapped.get("/api/map/vectors-run/colours?name=modality&method=pca")
    assert colours.headers["etag"] != packed.headers["etag"]


def test_items_and_finding(mapped: TestClient) -> None:
    rows = mapped.get("/api/map/vectors-run/find", params={"text": "<script> dog", "method": "pca"}).json()["rows"]
    items = mapped.get("/api/map/vectors-run/items", params={"rows": f"0,{rows[0]}", "method": "pca"}).json()["items"]
    assert items[0]["kind"] == "image"
    assert items[1]["text"] == NASTY
    picture = mapped.get(items[0]["picture"])
    assert picture.status_code == 200, picture.text
    assert picture.headers["content-type"] == "image/jpeg"
    for item in items:
        assert mapped.get(item["page"]).status_code == 200


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/api/map/nobody", 404), ("/map/nobody", 404), ("/api/map/vectors-run?method=tsne", 422),
        ("/api/map/vectors-run/colours?name=x&method=pca", 404), ("/api/map/vectors-run/items?rows=99&method=pca", 404),
        ("/api/map/vectors-run/items?rows=1,x&method=pca", 422), ("/api/map/vectors-run/items?rows=-1&method=pca", 404),
        ("/api/map/model-a/points", 404), ("/map-frame/x/%2e%2e%2froutes.py", 404), ("/map-frame/x/map.js", 404),
    ],
)  # fmt: skip
def test_mistakes(mapped: TestClient, address: str, status: int) -> None:
    answer = mapped.get(address)
    assert answer.status_code == status, answer.text


def test_starting_requires_the_token(mapped: TestClient) -> None:
    assert mapped.post("/api/map/vectors-run").status_code == 403


def test_a_run_without_vectors_says_so(mapped: TestClient) -> None:
    assert mapped.get("/api/map/model-a").json()["state"] == "impossible"
    assert "There is no map of this run" in mapped.get("/map/model-a").text
    assert mapped.post("/api/map/model-a", headers=token(mapped)).json()["state"] == "impossible"


def test_only_the_frame_may_evaluate_strings(mapped: TestClient) -> None:
    page = mapped.get("/map/vectors-run")
    assert page.headers["content-security-policy"] == f"{CONTENT_SECURITY_POLICY}; frame-src 'self'"
    address = re.search(r'data-frame="([^"]+)"', page.text)
    assert address is not None
    frame = mapped.get(address[1])
    policy = frame.headers["content-security-policy"]
    assert policy == FRAME_POLICY
    assert policy.startswith("sandbox allow-scripts;")
    assert "allow-same-origin" not in policy
    assert "connect-src" not in policy
    assert "default-src 'none'" in policy
    for name in re.findall(r'(?:src|href)="([^"]+)"', frame.text):
        part = mapped.get(name)
        assert part.status_code == 200
        assert part.headers["cross-origin-resource-policy"] == "cross-origin"
    for path in ("/", "/map", "/datasets", "/search"):
        assert "unsafe" not in mapped.get(path).headers["content-security-policy"]


def test_the_library_is_committed_with_all_its_licences() -> None:
    from crosslens.web.map import routes

    vendor = Path(routes.__file__).with_name("static") / "vendor"
    text = (vendor / LIBRARY.replace(".js", ".LICENSES.txt")).read_text()
    for name in ("regl-scatterplot", "regl ", "regl-line", "gl-matrix", "earcut", "pub-sub-es", "dom-2d-camera",
                 "camera-2d-simple", "@flekschas/utils", "kdbush", "simplify-js"):  # fmt: skip
        assert re.search(rf"^{re.escape(name)}.*\((MIT|ISC|BSD-2-Clause)\)$", text, re.MULTILINE), name


def test_closing_the_application_stops_the_work(
    runs_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[str] = []
    monkeypatch.setattr("crosslens.web.map.maps.Jobs.stop", lambda self: stopped.append("map"))
    monkeypatch.setattr("crosslens.web.search.encoders.EncoderWorker.stop", lambda self: stopped.append("search"))
    with client_of(runs_folder, tmp_path) as client:
        assert client.get("/map").status_code == 200
        assert stopped == []
    assert sorted(stopped) == ["map", "search"]


def test_the_frame_needs_no_login_and_the_map_does(runs_folder: Path, tmp_path: Path) -> None:
    with client_of(runs_folder, tmp_path, password="long enough password") as client:
        assert client.get("/map-frame/x/frame.js").status_code == 200
        for closed in ("/map/model-a", "/api/map/model-a", "/api/search"):
            assert client.get(closed, follow_redirects=False).status_code == 401, closed


def test_a_map_fetches_nothing_that_a_recipe_names(tmp_path: Path) -> None:
    """Not even from this machine, and not even if the same process may."""
    pytest.importorskip("aiohttp")
    asked: list[str] = []

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        do_HEAD = do_GET

    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    host = f"127.0.0.1:{server.server_port}"
    folder = fill(tmp_path / "runs")
    run = write_vector_run(folder, "vectors-run", folder / "toys")
    recipe = (run / "recipe.toml").read_text()
    recipe = re.sub(
        r'(?m)^(image_embeddings|caption_embeddings) = "[^"]*(images|captions)"',
        rf'\1 = "http://{host}/\2.npy"',
        recipe,
    )
    assert recipe.count(f"http://{host}/") == 2
    (run / "recipe.toml").write_text(recipe)
    loaded = replace(Run.load(run, verify=False), recipe=recipe)
    shutil.rmtree(run)
    loaded.save(run)
    with client_of(folder, tmp_path / "cache") as client, trusting(allow_hosts=[host]):
        answer = compute(client, "vectors-run")
        page = client.get("/map/vectors-run").text
    server.shutdown()
    server.server_close()
    assert asked == []
    assert answer["state"] == "failed"
    assert answer["reason"] == f"http://{host}/images.npy is not opened: the server opens no connection"
    assert str(tmp_path) not in page

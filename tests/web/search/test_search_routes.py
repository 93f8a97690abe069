"""The JSON of live search over drawn scenes, with the built-in encoder."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from crosslens.encode import load_encoder
from crosslens.values import Dataset
from tests.web.conftest import client_of
from tests.web.serving import write_scene_run

pytest.importorskip("onnxruntime", reason="pip install 'crosslens[onnx]'")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scene_run(tmp_path_factory.mktemp("searched"))


@pytest.fixture(scope="module")
def searching(scenes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with client_of(scenes, tmp_path_factory.mktemp("cache")) as client:
        token = re.search(r'data-token="([^"]+)"', client.get("/search").text)
        assert token is not None
        client.headers["X-CSRF-Token"] = token[1]
        yield client


@pytest.fixture(scope="module")
def parameters(searching: TestClient) -> dict[str, str]:
    choices = searching.get("/api/search").json()
    assert [encoder["name"] for encoder in choices["encoders"]] == ["tiny"]
    return {"dataset": choices["datasets"][0]["id"], "encoder": choices["encoders"][0]["id"]}


def ask(client: TestClient, parameters: dict[str, str], **question: Any) -> dict[str, Any]:
    answer = client.post("/api/search/text", json={**parameters, **question})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_preparing_ends(searching: TestClient, parameters: dict[str, str]) -> None:
    answer = searching.post("/api/search/prepare", params=parameters).json()
    while answer["state"] != "done":
        assert answer["state"] in ("waiting", "running"), answer
        time.sleep(0.05)
        answer = searching.post("/api/search/prepare", params=parameters).json()


def test_sentences_are_ranked_as_cosines_say(searching: TestClient, parameters: dict[str, str], scenes: Path) -> None:
    dataset, encoder = Dataset.load(scenes / "scenes"), load_encoder("tiny")
    files = [scenes / "scenes" / name for name in dataset.images["file"]]
    images = np.asarray(encoder.encode_images([str(file) for file in files]), np.float64)
    text = dataset.texts[7]
    query = np.asarray(encoder.encode_texts([text]), np.float64)[0]
    cosines = images @ query / np.linalg.norm(images, axis=1) / np.linalg.norm(query)
    answer = ask(searching, parameters, text=text, depth=5)
    assert [hit["id"] for hit in answer["hits"]] == [dataset.image_ids[row] for row in np.argsort(-cosines)[:5]]
    np.testing.assert_allclose([hit["score"] for hit in answer["hits"]], np.sort(cosines)[::-1][:5], atol=1e-5)
    assert answer["gallery"] == len(dataset.image_ids)
    assert set(answer["milliseconds"]) == {"encode", "rank", "words", "total"}
    shortened = np.asarray(encoder.encode_texts([text.partition(" ")[2]]), np.float64)[0]
    top = images[int(np.argmax(cosines))]
    without = top @ shortened / np.linalg.norm(top) / np.linalg.norm(shortened)
    assert answer["words"][0]["effect"] == pytest.approx(cosines.max() - without, abs=1e-5)
    for hit in answer["hits"][:1]:
        assert searching.get(hit["picture"]).headers["content-type"] == "image/jpeg"
        assert searching.get(hit["page"]).status_code == 200


def test_captions_and_pictures(searching: TestClient, parameters: dict[str, str], scenes: Path) -> None:
    dataset = Dataset.load(scenes / "scenes")
    answer = ask(searching, parameters, text=dataset.texts[3], among="captions", depth=3)
    assert answer["hits"][0]["text"] == dataset.texts[3]
    assert answer["hits"][0]["score"] == pytest.approx(1, abs=1e-5)
    assert len(answer["shared_words"]) == 2
    picture = (scenes / "scenes" / dataset.images["file"][5]).read_bytes()
    for among, expected in (("images", dataset.image_ids[5]), ("captions", None)):
        files = {"picture": ("any name ../../x.png", picture, "image/png")}
        by_picture = searching.post("/api/search/picture", params={**parameters, "among": among}, files=files).json()
        assert len(by_picture["hits"]) == 12
        assert by_picture["words"] == []
        assert expected is None or by_picture["hits"][0]["id"] == expected


def test_why(searching: TestClient, parameters: dict[str, str], scenes: Path) -> None:
    pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
    dataset = Dataset.load(scenes / "scenes")
    params = {"dataset": parameters["dataset"], "text": dataset.texts[0], "image": list(dataset.image_ids[:2])}
    answer = searching.get("/api/search/why", params=params).json()
    assert answer["images"] == list(dataset.image_ids[:2])
    assert answer["source"] == "annotations"
    assert all(len(mention["verdicts"]) == 2 for mention in answer["mentions"])
    alone = searching.get("/api/search/why", params={**params, "image": dataset.image_ids[0]}).json()
    assert all(len(mention["verdicts"]) == 1 for mention in alone["mentions"])
    assert searching.get("/api/search/why", params={**params, "image": "nobody"}).status_code == 404


def test_mistakes_are_messages(searching: TestClient, parameters: dict[str, str]) -> None:
    def status(**change: Any) -> int:
        return searching.post("/api/search/text", json={**parameters, "text": "a dog", **change}).status_code

    assert status(encoder="/etc/passwd") == 404
    assert status(encoder="callable:x.py:y") == 404
    assert status(dataset="../x") == 404
    assert status(text=" ") == 422
    assert status(text="x" * 1001) == 422
    assert status(depth=51) == 422
    assert status(among="videos") == 422
    files = {"picture": ("x.png", b"<script>", "image/png")}
    refused = searching.post("/api/search/picture", params=parameters, files=files)
    assert (refused.status_code, refused.json()["problem"][:20]) == (422, "not a readable image")
    large = {"picture": ("x.png", b"\0" * 12_100_000, "image/png")}
    assert searching.post("/api/search/picture", params=parameters, files=large).status_code == 413
    headers = {"X-CSRF-Token": "no"}
    assert searching.post("/api/search/text", json={**parameters, "text": "a"}, headers=headers).status_code == 403

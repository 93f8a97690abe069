"""VQAScore through an OpenAI-compatible endpoint: a stand-in server on this machine, its log probabilities."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosslens.core import CrosslensError, UsageError
from crosslens.encode import load_pair_scorer

Tokens = dict[str, float]


class StandIn:
    """Answers every request with the tokens that belong to the caption in its question."""

    def __init__(self) -> None:
        self.answers: dict[str, Tokens] = {}
        self.bodies: list[dict[str, Any]] = []
        self.raw: bytes | None = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.bodies.append(body)
                content = outer.raw if outer.raw is not None else outer.reply(body)
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *arguments: Any) -> None:
                pass

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.httpd.serve_forever, daemon=True).start()

    def reply(self, body: dict[str, Any]) -> bytes:
        question = body["messages"][0]["content"][1]["text"]
        tokens = self.answers[question.split('"')[1]]
        listed = [{"token": token, "logprob": log(share)} for token, share in tokens.items()]
        first = {**max(listed, key=lambda entry: entry["logprob"]), "top_logprobs": listed}
        return json.dumps({"choices": [{"message": {"content": ""}, "logprobs": {"content": [first]}}]}).encode()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.httpd.server_port}/v1?model=eyes&retries=0&timeout=10"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    monkeypatch.delenv("CROSSLENS_API_KEY", raising=False)
    stand_in = StandIn()
    yield stand_in
    stand_in.httpd.shutdown()
    stand_in.httpd.server_close()


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (8, 6), "red").save(tmp_path / "red.png")
    return tmp_path / "red.png"


def test_yes_in_every_spelling_counts(server: StandIn, picture: Path) -> None:
    server.answers = {
        "a dog": {"Yes": 0.5, " yes": 0.2, "No": 0.2, "Perhaps": 0.1},
        "a cat": {"No": 0.9, "▁Yes.": 0.05},
        "a hat": {"no": 0.99, "Well": 0.005},
    }
    notes: list[str] = []
    scorer = load_pair_scorer(f"vqa:{server.address}", notify=notes.append)
    scores = scorer.score_pairs([str(picture)] * 3, list(server.answers))
    np.testing.assert_allclose(scores, [0.7, 0.05, 0.0], atol=1e-6)
    assert notes == [f"note: captions and pictures are sent to {server.address[7:].partition('/')[0]} (model eyes)"]
    body = server.bodies[0]
    assert (body["model"], body["logprobs"], body["max_tokens"], body["temperature"]) == ("eyes", True, 1, 0)
    url = body["messages"][0]["content"][0]["image_url"]["url"]
    assert base64.b64decode(url.partition(",")[2]) == picture.read_bytes()
    assert 'Does this figure show "' in body["messages"][0]["content"][1]["text"]
    scorer.score_pairs([str(picture)], ["a dog"])
    assert len(notes) == 1


def test_a_picture_in_memory_is_sent_as_png(server: StandIn, picture: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    server.answers = {"a dog": {"Yes": 1.0}}
    scorer = load_pair_scorer(f"vqa:{server.address}", notify=lambda text: None)
    scorer.score_pairs([image.open(picture)], ["a dog"])
    assert server.bodies[0]["messages"][0]["content"][0]["image_url"]["url"].startswith("data:image/png;base64,")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"choices": [{"message": {"content": "Yes"}}]}', "sends no log probabilities"),
        (b"<html>", "sends no log probabilities"),
        (
            b'{"choices": [{"logprobs": {"content": [{"token": "<think>", "logprob": 0.0, "top_logprobs": []}]}}]}',
            "answers '<think>', and neither yes nor no",
        ),
    ],
)
def test_answers_that_are_no_probabilities(server: StandIn, picture: Path, raw: bytes, message: str) -> None:
    server.raw = raw
    scorer = load_pair_scorer(f"vqa:{server.address}", notify=lambda text: None)
    with pytest.raises(CrosslensError, match=message):
        scorer.score_pairs([str(picture)], ["a dog"])


def test_bad_addresses() -> None:
    with pytest.raises(UsageError, match="scorer vqa has no option 'wrokers'"):
        load_pair_scorer("vqa:http://127.0.0.1/v1?model=x&wrokers=3")
    with pytest.raises(UsageError, match="workers must be at least 1"):
        load_pair_scorer("vqa:http://127.0.0.1/v1?model=x&workers=0")

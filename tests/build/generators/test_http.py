"""The generator that asks a language model, against a server on this machine that misbehaves in every way."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from crosslens.build import CONFUSABLE, DESCRIBE, SHARPER, ObjectAnnotation, Recorded, Request, load_generator
from crosslens.build.generators.http import SYSTEM, request_prompt
from crosslens.core import CrosslensError, InputError, UsageError

Reply = tuple[int, dict[str, str], bytes]
KEY = "sk-very-secret"


def says(*texts: str) -> Reply:
    return content(json.dumps({"descriptions": list(texts)}))


def content(text: str) -> Reply:
    return 200, {}, json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


def fails(status: int, message: str = "", **headers: str) -> Reply:
    return status, headers, json.dumps({"error": {"message": message}}).encode()


class Server:
    """A chat endpoint that answers as it is told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.replies: list[Reply] = []
        self.answer: Callable[[dict[str, Any]], Reply] = lambda body: says("A dog.")
        self.lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server.lock:
                    server.asked.append(body)
                    server.headers.append(dict(self.headers))
                    server.paths.append(self.path)
                    reply = server.replies.pop(0) if server.replies else None
                status, headers, answer = reply or server.answer(body)
                if status == 0:  # hang up
                    return
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *args: object) -> None:
                pass

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.httpd.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.httpd.server_port}/v1"
        threading.Thread(target=self.httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.delenv("CROSSLENS_API_KEY", raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # must not be asked for this machine's own addresses
    running_server = Server()
    yield running_server
    running_server.httpd.shutdown()
    running_server.httpd.server_close()


def load(server: Server, told: list[str] | None = None, **options: Any) -> Any:
    notify = (told if told is not None else []).append
    return load_generator(f"http:{server.address}?model=small", notify=notify, **{"first_wait": 0.001, **options})


def request(image: str = "1", **changes: Any) -> Request:
    values: dict[str, Any] = {
        "image": image, "file": None, "task": "count", "texts": ("Some dogs.",), "purpose": SHARPER, "wanted": 2,
        "objects": (ObjectAnnotation("dog"), ObjectAnnotation("dog")), "rivals": ("Three dogs.",),
    }  # fmt: skip
    return Request(**{**values, **changes})


# What is sent


def test_the_request_says_everything(server: Server) -> None:
    server.replies = [says("Two dogs.", "A pair of dogs.", "One too many.")]
    assert load(server).generate([request()]) == [("Two dogs.", "A pair of dogs.")]
    asked = server.asked[0]
    assert server.paths == ["/v1/chat/completions"]
    assert (asked["model"], asked["temperature"]) == ("small", 0)
    assert isinstance(asked["seed"], int)
    assert [message["role"] for message in asked["messages"]] == ["system", "user"]
    assert asked["messages"][0]["content"] == SYSTEM
    text = asked["messages"][1]["content"]
    assert all(part in text for part in ("two dogs", "- Some dogs.", "- Three dogs.", "count"))
    assert "Authorization" not in server.headers[0]


def test_seed_and_attempt_reach_the_model(server: Server) -> None:
    load(server, workers=1).generate([request(), request(), request(attempt=1), request(seed=1)])
    seeds = [asked["seed"] for asked in server.asked]
    assert seeds[0] == seeds[1]
    assert len(set(seeds)) == 3
    assert "clearly different" in server.asked[2]["messages"][1]["content"]


def test_every_purpose_has_its_own_words() -> None:
    told = {request_prompt(request(purpose=purpose)) for purpose in (SHARPER, "vaguer", DESCRIBE, CONFUSABLE)}
    assert len(told) == 4
    confusable = request_prompt(
        request(purpose=CONFUSABLE, original_objects=(ObjectAnnotation("cat", box=(0.0, 0.4, 0.1, 0.1)),))
    )
    assert "In the other picture: a cat on the left side of the picture." in confusable


def test_the_picture_travels_only_if_asked(server: Server, tmp_path: Path) -> None:
    picture = tmp_path / "dog.png"
    picture.write_bytes(b"not really a picture")
    told: list[str] = []
    load(server, told, pictures=True).generate([request(file=picture)])
    text, image = server.asked[0]["messages"][1]["content"]
    assert text["type"] == "text"
    assert image["image_url"]["url"] == "data:image/png;base64," + base64.b64encode(picture.read_bytes()).decode()
    assert "pictures are sent to 127.0.0.1" in told[0]
    load(server).generate([request(file=picture)])
    assert isinstance(server.asked[1]["messages"][1]["content"], str)


@pytest.mark.parametrize(
    ("file", "problem"),
    [(None, "no file to send"), ("gone.png", "cannot be read"), ("dog.tiff", "not an image format")],
)
def test_a_picture_that_cannot_be_shown_is_named(
    server: Server, tmp_path: Path, file: str | None, problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        load(server, pictures=True).generate([request(file=file and tmp_path / file)])
    assert not server.asked


def test_the_network_is_announced_once_before_its_first_use(server: Server) -> None:
    told: list[str] = []
    generator = load(server, told)
    assert told == []
    generator.generate([request()])
    generator.generate([request()])
    assert told == [f"note: descriptions and annotations are sent to {server.address[7:-3]} (model small)"]


def test_offline_allows_this_machine_only(server: Server) -> None:
    assert load(server, offline=True).generate([request()]) == [("A dog.",)]
    with pytest.raises(UsageError, match="offline=True forbids it"):
        load_generator("http:https://models.example/v1?model=x", offline=True)


def test_the_key_is_sent_and_never_shown(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CROSSLENS_API_KEY", KEY)
    told: list[str] = []
    generator = load(server, told)
    Recorded(generator, tmp_path / "answers").generate([request()])
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    written = "".join(file.read_text() for file in (tmp_path / "answers").rglob("*.json"))
    assert KEY not in written + "".join(told) + generator.name + generator.revision + repr(vars(generator))
    server.replies = [fails(401, f"Incorrect API key provided: {KEY}")]
    with pytest.raises(UsageError, match="refuses the key") as caught:
        generator.generate([request()])
    assert KEY not in str(caught.value)
    assert "CROSSLENS_API_KEY" in str(caught.value)


def test_the_key_goes_to_no_other_place(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    monkeypatch.setenv("CROSSLENS_API_KEY", KEY)
    with pytest.raises(UsageError, match="unencrypted"):
        load_generator("http:http://models.example/v1?model=x")
    server.replies = [(307, {"Location": f"{server.address}/elsewhere"}, b"")]
    with pytest.raises(UsageError, match="redirects"):
        load(server).generate([request()])
    assert len(server.asked) == 1


# Answers


def test_answers_come_in_the_order_of_the_requests(server: Server) -> None:
    gate, images_answered = threading.Event(), []

    def answer(body: dict[str, Any]) -> Reply:
        image = body["messages"][1]["content"].split("- ")[1].split()[0]
        if image == "image0":
            assert gate.wait(5), "the others never came"
        images_answered.append(image)
        if len(images_answered) == 5:
            gate.set()
        return says(f"Answer to {image}.")

    server.answer = answer
    requests = [request(str(n), texts=(f"image{n} ",)) for n in range(6)]
    assert load(server, workers=2).generate(requests) == [(f"Answer to image{n}.",) for n in range(6)]
    assert images_answered[-1] == "image0"
    assert load(server).generate([]) == []


def test_old_and_repeated_texts_are_left_out(server: Server) -> None:
    server.replies = [says("some  DOGS", "Two dogs.", "two dogs", "  ", "Both dogs.")]
    assert load(server).generate([request(wanted=5)]) == [("Two dogs.", "Both dogs.")]


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("Sure! Two dogs.", "it is not JSON"),
        ('["Two dogs."]', "descriptions"),
        ('{"descriptions": "Two dogs."}', "descriptions"),
        ('{"descriptions": [2]}', "not a string"),
        (json.dumps({"descriptions": ["x" * 500]}), "400 characters"),
    ],
)
def test_a_malformed_answer_is_asked_for_again(server: Server, bad: str, problem: str) -> None:
    server.replies = [content(bad), says("Two dogs.")]
    assert load(server).generate([request()]) == [("Two dogs.",)]
    talk = server.asked[1]["messages"]
    assert talk[2] == {"role": "assistant", "content": bad}
    assert problem in talk[3]["content"]


def test_a_fenced_answer_is_read(server: Server) -> None:
    server.replies = [content('```json\n{"descriptions": ["Two dogs."]}\n```')]
    assert load(server).generate([request()]) == [("Two dogs.",)]


def test_a_model_that_never_answers_well_is_given_up_with_a_note(server: Server) -> None:
    server.answer = lambda body: content("no")
    told: list[str] = []
    assert load(server, told).generate([request("17")]) == [()]
    assert len(server.asked) == 3
    assert told[1] == "note: image 17: no usable answer from small: it is not JSON"


def test_a_server_without_json_mode_is_asked_without(server: Server) -> None:
    server.replies = [fails(400, "unknown field response_format"), says("Two dogs.")]
    assert load(server).generate([request()]) == [("Two dogs.",)]
    assert ["response_format" in asked for asked in server.asked] == [True, False]


# Failures


@pytest.mark.parametrize("trouble", [fails(429), fails(500), fails(503, Retry_After="0"), (0, {}, b"")])
def test_what_may_pass_is_tried_again(server: Server, trouble: Reply) -> None:
    server.replies = [trouble, trouble, says("Two dogs.")]
    assert load(server).generate([request()]) == [("Two dogs.",)]
    assert len(server.asked) == 3


@pytest.mark.parametrize("header", ["0", formatdate(0, usegmt=True)])
def test_the_server_says_how_long_to_wait(server: Server, header: str) -> None:
    """Seconds or a date: with a wait of a minute of our own the test would never end."""
    server.replies = [fails(429, Retry_After=header), says("Two dogs.")]
    assert load(server, first_wait=60.0).generate([request()]) == [("Two dogs.",)]


def test_it_gives_up_in_the_end(server: Server) -> None:
    server.answer = lambda body: fails(503, "overloaded")
    with pytest.raises(CrosslensError, match=r"still fails after 3 tries \(503\): overloaded") as caught:
        load(server, retries=2).generate([request()])
    assert "run the same command again" in str(caught.value)
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (fails(404, "no model small"), r"no such address or model \(404\): no model small"),
        (fails(403), "refuses the key"),
        (fails(400, "too long"), r"refuses the request \(400\): too long"),
        ((418, {}, b"<html>teapot</html>"), "teapot"),
        ((200, {}, b"<html>hello</html>"), "does not answer like a chat endpoint"),
        ((200, {}, b'{"choices": []}'), "does not answer like a chat endpoint"),
        ((200, {}, b'{"choices": [{"message": {"content": null}}]}'), "does not answer like a chat endpoint"),
    ],
)
def test_what_will_not_pass_is_explained_at_once(server: Server, reply: Reply, problem: str) -> None:
    server.replies = [reply]
    with pytest.raises(CrosslensError, match=problem) as caught:
        load(server).generate([request()])
    assert caught.value.fix
    assert len(server.asked) == 1


def test_nobody_there(server: Server) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as free:
        address = f"http:http://127.0.0.1:{free.server_port}/v1"
    with pytest.raises(CrosslensError, match=r"cannot be reached: .*tried 2 times"):
        load_generator(address, model="x", retries=1, first_wait=0.001, notify=lambda _: None).generate([request()])


def test_no_answer_in_time(server: Server) -> None:
    hold = threading.Event()

    def late(body: dict[str, Any]) -> Reply:
        hold.wait(5)
        return 0, {}, b""

    server.answer = late
    with pytest.raises(CrosslensError, match="no answer in time"):
        load(server, timeout=0.05, retries=0).generate([request()])
    hold.set()


def test_one_failure_stops_the_others(server: Server) -> None:
    server.answer = lambda body: fails(404)
    with pytest.raises(UsageError):
        load(server, workers=2).generate([request(str(n)) for n in range(50)])
    assert len(server.asked) < 10


def test_an_abandoned_stream_asks_no_further(server: Server) -> None:
    """What happens on Ctrl-C: the loop over the answers ends, and so does the asking."""
    stream = load(server, workers=1).stream([request(str(n)) for n in range(100)])
    next(stream)
    stream.close()
    assert len(server.asked) < 100


# Bad settings


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("http", {}, "needs a source"),
        ("http:http://127.0.0.1:1/v1", {}, "no model is named"),
        ("http:ftp://host/v1?model=x", {}, "not the address of an endpoint"),
        ("http:127.0.0.1:8000?model=x", {}, "not the address of an endpoint"),
        ("http:http://me:secret@127.0.0.1/v1?model=x", {}, "contains a name or a password"),
        ("http:http://127.0.0.1/v1?model=x", {"worker": 3}, "no option 'worker'"),
        ("http:http://127.0.0.1/v1?model=x", {"workers": 0}, "at least 1"),
        ("http:http://127.0.0.1/v1?model=x&workers=0", {}, "at least 1"),
        ("http:http://127.0.0.1/v1?model=x&workers=two", {}, "workers=two .*\n.*a whole number"),
        ("http:http://127.0.0.1/v1?model=x&pictures=", {}, "pictures= .*\n.*true or false"),
        ("http:http://127.0.0.1/v1?model=x&timeout=nan", {}, "timeout must be at least 0.001"),
        ("http:http://127.0.0.1/v1?model=x&retries=-1", {}, "retries must be at least 0"),
        (
            "http:http://127.0.0.1/v1?modle=x",
            {},
            "no option 'modle'\n.*known: model, pictures, workers, max_descriptions, timeout",
        ),
    ],
)
def test_bad_settings_are_explained(name: str, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as caught:
        load_generator(name, **options)
    assert "secret" not in str(caught.value)


def test_options_stand_in_the_address(server: Server, tmp_path: Path) -> None:
    """Two tries and no more, with the picture; the question itself goes to the bare address."""
    picture = tmp_path / "a.png"
    picture.write_bytes(b"picture")
    address = f"http:{server.address}?model=small&pictures=true&workers=2&timeout=7.5&retries=1&first_wait=0.001"
    model = load_generator(address, notify=lambda _: None)
    assert model.sees_pictures
    server.answer = lambda body: fails(503)
    with pytest.raises(CrosslensError, match=r"still fails after 2 tries \(503\)"):
        model.generate([request(file=picture)])
    assert len(server.asked) == 2
    assert all("?" not in path for path in server.paths)
    assert server.asked[0]["model"] == "small"
    assert base64.b64encode(b"picture").decode() in json.dumps(server.asked[0])
    assert not load_generator(f"{address}&pictures=no", notify=lambda _: None).sees_pictures
    assert not load_generator(address, pictures=False, notify=lambda _: None).sees_pictures, "from Python goes first"


def test_as_many_at_a_time_as_the_address_says(server: Server) -> None:
    together = threading.Barrier(3, timeout=10)

    def answer(body: dict[str, Any]) -> Reply:
        together.wait()  # breaks, and fails the request, unless three are under way at once
        return says("A dog.")

    server.answer = answer
    model = load_generator(f"http:{server.address}?model=small&workers=3&retries=0", notify=lambda _: None)
    assert len(model.generate([request(str(n)) for n in range(6)])) == 6

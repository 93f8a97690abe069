"""``http``: descriptions written by a language model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from crosslens.build.generators.answers import Unusable, read_answer
from crosslens.build.generators.chat import Endpoint, Message, Stopped
from crosslens.build.generators.generator import GENERATORS, Generator, Request, Settings, Tell
from crosslens.build.generators.prompts import REVISION, SYSTEM, again, question
from crosslens.core.errors import InputError, UsageError
from crosslens.core.seeds import derive_seed

_MEDIA = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp", ".gif": "gif"}
_REPAIRS = 2
_YES_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_OPTIONS: dict[str, tuple[Callable[[str], Any], str]] = {
    "pictures": (lambda text: _YES_NO[text.lower()], "true or false"),
    "workers": (int, "a whole number"),
    "timeout": (float, "a number of seconds"),
    "retries": (int, "a whole number"),
    "first_wait": (float, "a number of seconds"),
}


@GENERATORS.register("http", needs_source=True, example="http:http://127.0.0.1:8000/v1?model=NAME")
def load_http(source: str, settings: Settings) -> Generator:
    """A language model behind an OpenAI-compatible address, which may be shown the pictures; key: CROSSLENS_API_KEY."""
    parts = urlsplit(source)
    asked = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in (*asked, *settings.options):
        if name not in ("model", *_OPTIONS):
            known = ", ".join(("model", *_OPTIONS))
            raise UsageError(f"the generator http has no option {name!r}", fix=f"known: {known}")
    model = settings.model or asked.pop("model", "")
    if not model:
        raise UsageError(f"no model is named for {source}", fix="end the address with ?model=NAME")
    options = {name: _value(name, text) for name, text in asked.items() if name != "model"} | settings.options
    pictures, workers = bool(options.pop("pictures", False)), int(options.pop("workers", 4))
    endpoint = Endpoint(urlunsplit(parts._replace(query="", fragment="")), model, **options)
    if settings.offline and not endpoint.local:
        raise UsageError(
            f"{endpoint.host} is on the network, and the network is forbidden",
            fix="ask a server on this machine, or use the generator rules",
        )
    return Http(endpoint, pictures=pictures, workers=workers, tell=settings.tell)


def _value(name: str, text: str) -> Any:
    """What an option in the address says."""
    convert, expected = _OPTIONS[name]
    try:
        return convert(text)
    except (ValueError, KeyError):
        raise UsageError(f"{name}={text} in the address of the generator", fix=f"give {expected}") from None


class Http:
    """Asks a model for every request, several at a time; answers come in the order of the requests."""

    def __init__(self, endpoint: Endpoint, *, pictures: bool, workers: int, tell: Tell) -> None:
        if workers < 1:
            raise UsageError(f"{workers} requests at a time", fix="allow at least one")
        if not endpoint.timeout > 0 or not endpoint.first_wait >= 0 or endpoint.retries < 0:
            given = f"timeout={endpoint.timeout:g}, retries={endpoint.retries}, first_wait={endpoint.first_wait:g}"
            raise UsageError(given, fix="choose a timeout above 0, and nothing below 0")
        self.name = f"http:{endpoint.model}@{endpoint.host}"
        self.revision = f"prompt-{REVISION}"
        self.sees_pictures = pictures
        self._endpoint, self._workers, self._tell = endpoint, workers, tell
        self._announced = False

    def generate(self, requests: Sequence[Request]) -> list[tuple[str, ...]]:
        """One answer per request, in their order."""
        answers = dict(self.stream(requests))
        return [answers[at] for at in range(len(requests))]

    def stream(self, requests: Sequence[Request]) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Number of the request and answer, each as soon as it arrives."""
        if not requests:
            return
        self._announce()
        endpoint = replace(self._endpoint, stop=threading.Event())
        todo: SimpleQueue[int] = SimpleQueue()
        done: SimpleQueue[tuple[int, tuple[str, ...] | BaseException]] = SimpleQueue()
        for at in range(len(requests)):
            todo.put(at)
        for _ in range(min(self._workers, len(requests))):
            # Daemons, so that Ctrl-C ends the program at once instead of after the slowest answer.
            threading.Thread(target=self._work, args=(endpoint, requests, todo, done), daemon=True).start()
        try:
            for _ in requests:
                at, answer = done.get()
                if isinstance(answer, BaseException):
                    raise answer
                yield at, answer
        finally:
            endpoint.stop.set()

    def _work(
        self, endpoint: Endpoint, requests: Sequence[Request], todo: SimpleQueue[int], done: SimpleQueue[Any]
    ) -> None:
        while not endpoint.stop.is_set():
            try:
                at = todo.get_nowait()
            except Empty:
                return
            try:
                done.put((at, self._answer(endpoint, requests[at])))
            except Stopped:
                return
            except BaseException as error:  # raised again where the answers are awaited
                done.put((at, error))
                return

    def _answer(self, endpoint: Endpoint, request: Request) -> tuple[str, ...]:
        """Ask, and ask again with the reason where the answer has not the form it should have."""
        talk: list[Message] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": self._shown(request)},
        ]
        seed = derive_seed(request.seed, "http", request.image, request.purpose, request.attempt) % 2**31
        problem = ""
        for _ in range(_REPAIRS + 1):
            content = endpoint.ask(talk, seed)
            try:
                return read_answer(content, request)
            except Unusable as unusable:
                problem = str(unusable)
                talk += [{"role": "assistant", "content": content}, {"role": "user", "content": again(problem)}]
        self._tell(f"note: image {request.image}: no usable answer from {self._endpoint.model}: {problem}")
        return ()

    def _shown(self, request: Request) -> Any:
        text = question(request)
        if not self.sees_pictures:
            return text
        if request.file is None:
            raise InputError(
                f"image {request.image!r} has no file to show",
                expected="a picture for every image",
                fix="name the folder of the pictures, or do not show them",
            )
        return [
            {"type": "text", "text": text},
            {"type": "image_url", "image_url": {"url": _data_url(request.file)}},
        ]

    def _announce(self) -> None:
        if not self._announced:
            self._announced = True
            what = "descriptions, annotations and pictures" if self.sees_pictures else "descriptions and annotations"
            self._tell(f"note: {what} are sent to {self._endpoint.host} (model {self._endpoint.model})")


def _data_url(file: Path) -> str:
    media = _MEDIA.get(file.suffix.lower())
    if media is None:
        raise InputError(
            "not a kind of picture that can be sent", file=file, expected=", ".join(_MEDIA), fix="convert the picture"
        )
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=file, fix="check the file") from None
    return f"data:image/{media};base64,{base64.b64encode(content).decode()}"

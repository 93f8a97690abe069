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

from crosslens.build.generators.chat import Cancelled, Endpoint, Message
from crosslens.build.generators.prompts import (
    REVISION,
    SYSTEM,
    InvalidAnswer,
    read_answer,
    repair_prompt,
    request_prompt,
)
from crosslens.build.generators.protocol import GENERATORS, Generator, GeneratorSettings, Notify, Request
from crosslens.core import IMAGE_BYTES, InputError, UsageError, argument, derive_seed, regular_bytes

_MEDIA = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp", ".gif": "gif"}
_REPAIRS = 2
_MAX_DESCRIPTIONS = 1000
_MOST_REPEATED = 4000  # characters of an unusable answer that are sent back to the model
_YES_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_OPTIONS: dict[str, tuple[Callable[[str], Any], str]] = {
    "pictures": (lambda text: _YES_NO[text.lower()], "true or false"),
    "workers": (int, "a whole number"),
    "timeout": (float, "a number of seconds"),
    "retries": (int, "a whole number"),
    "first_wait": (float, "a number of seconds"),
    "max_bytes": (int, "a whole number"),
    "max_descriptions": (int, "a whole number"),
}


@GENERATORS.register("http", needs_source=True, example="http:http://127.0.0.1:8000/v1?model=NAME")
def load_http(source: str, settings: GeneratorSettings) -> Generator:
    """A language model behind an OpenAI-compatible address, which may see the images; key: CROSSLENS_API_KEY."""
    parts = urlsplit(source)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in (*query, *settings.options):
        if name not in ("model", *_OPTIONS):
            known = ", ".join(("model", *_OPTIONS))
            raise UsageError(f"the generator http has no option {name!r}", fix=f"known: {known}")
    model = settings.model or query.pop("model", "")
    if not model:
        raise UsageError(f"no model is named for {source}", fix="append ?model=NAME to the address")
    options = {name: _value(name, text) for name, text in query.items() if name != "model"} | settings.options
    own = {name: options.pop(name) for name in ("pictures", "workers", "max_descriptions") if name in options}
    endpoint = Endpoint(urlunsplit(parts._replace(query="", fragment="")), model, **options)
    if settings.offline and not endpoint.local:
        raise UsageError(
            f"{endpoint.host} is on the network, and {argument('offline', True)} forbids it",
            fix="use a server on this machine, or the generator rules",
        )
    return HttpGenerator(endpoint, notify=settings.notify, **own)


def _value(name: str, text: str) -> Any:
    """The value of an option in the address."""
    convert, expected = _OPTIONS[name]
    try:
        return convert(text)
    except (ValueError, KeyError):
        raise UsageError(f"{name}={text} in the address of the generator", fix=f"give {expected}") from None


class HttpGenerator:
    """Sends every request to a model, several at a time; answers come in the order of the requests."""

    def __init__(
        self, endpoint: Endpoint, *, notify: Notify, pictures: bool = False, workers: int = 4,
        max_descriptions: int = _MAX_DESCRIPTIONS,
    ) -> None:  # fmt: skip
        limits = {"workers": workers, "max_bytes": endpoint.max_bytes, "max_descriptions": max_descriptions}
        for name, value in limits.items():
            if value < 1:
                raise UsageError(f"{name} = {value}", fix=f"{name} must be at least 1", option=name)
        if not endpoint.timeout > 0 or not endpoint.first_wait >= 0 or endpoint.retries < 0:
            values = f"timeout={endpoint.timeout:g}, retries={endpoint.retries}, first_wait={endpoint.first_wait:g}"
            raise UsageError(values, fix="the timeout must be above 0, the others at least 0")
        self.name = f"http:{endpoint.model}@{endpoint.host}"
        self.revision = f"prompt-{REVISION}"
        self.sees_pictures = pictures
        self._endpoint, self._workers, self._notify = endpoint, workers, notify
        self._max_descriptions = max_descriptions
        self._announced = False

    def generate(self, requests: Sequence[Request]) -> list[tuple[str, ...]]:
        """One answer per request, in their order."""
        answers = dict(self.stream(requests))
        return [answers[at] for at in range(len(requests))]

    def stream(self, requests: Sequence[Request]) -> Iterator[tuple[int, tuple[str, ...]]]:
        """The number of a request and its answer, each as soon as it arrives."""
        if not requests:
            return
        if not self._announced:
            self._announced = True
            what = "descriptions, annotations and pictures" if self.sees_pictures else "descriptions and annotations"
            self._notify(f"note: {what} are sent to {self._endpoint.host} (model {self._endpoint.model})")
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
            except Cancelled:
                return
            except BaseException as error:  # raised again where the answers are awaited
                done.put((at, error))
                return

    def _answer(self, endpoint: Endpoint, request: Request) -> tuple[str, ...]:
        """Ask, and ask again with the reason where the answer does not have the required form."""
        messages: list[Message] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": self._prompt(request)},
        ]
        seed = derive_seed(request.seed, "http", request.image, request.purpose, request.attempt) % 2**31
        problem = ""
        for _ in range(_REPAIRS + 1):
            content = endpoint.ask(messages, seed)
            try:
                return read_answer(content, request, self._max_descriptions)
            except InvalidAnswer as unusable:
                problem = str(unusable)
                messages += [
                    {"role": "assistant", "content": content[:_MOST_REPEATED]},
                    {"role": "user", "content": repair_prompt(problem)},
                ]
        self._notify(f"note: image {request.image}: no usable answer from {self._endpoint.model}: {problem}")
        return ()

    def _prompt(self, request: Request) -> Any:
        text = request_prompt(request)
        if not self.sees_pictures:
            return text
        if request.file is None:
            raise InputError(
                f"image {request.image!r} has no file to send",
                expected="a file for every image",
                fix=f"pass {argument('image_folder')}, or turn off pictures=true in the address",
            )
        return [
            {"type": "text", "text": text},
            {"type": "image_url", "image_url": {"url": _data_url(request.file)}},
        ]


def _data_url(file: Path) -> str:
    media = _MEDIA.get(file.suffix.lower())
    if media is None:
        raise InputError(
            "not an image format that can be sent", file=file, expected=", ".join(_MEDIA), fix="convert the image"
        )
    try:
        content = regular_bytes(file, IMAGE_BYTES)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=file, fix="check the file") from None
    return f"data:image/{media};base64,{base64.b64encode(content).decode()}"

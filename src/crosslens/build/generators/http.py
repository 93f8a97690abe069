"""``http``: descriptions written by a language model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from crosslens.build.generators.prompts import (
    REVISION,
    SYSTEM,
    read_answer,
    repair_prompt,
    request_prompt,
)
from crosslens.build.generators.protocol import GENERATORS, Generator, GeneratorSettings, Notify, Request
from crosslens.core import (
    WORKERS,
    Endpoint,
    InputError,
    InvalidAnswer,
    Message,
    Reading,
    answers_of,
    argument,
    derive_seed,
    picture_file_url,
    read_address,
    refuse_network,
)

_REPAIRS = 2
_MAX_DESCRIPTIONS = 1000
_MOST_REPEATED = 4000  # characters of an unusable answer that are sent back to the model
_YES_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_OPTIONS: dict[str, Reading] = {
    "pictures": Reading(lambda text: _YES_NO[text.lower()], "true or false"),
    "workers": WORKERS,
    "max_descriptions": Reading(int, "a whole number", 1, 1_000_000),
}


@GENERATORS.register("http", needs_source=True, example="http:http://127.0.0.1:8000/v1?model=NAME")
def load_http(source: str, settings: GeneratorSettings) -> Generator:
    """A language model behind an OpenAI-compatible address, which may see the images; key: CROSSLENS_API_KEY."""
    endpoint, own = read_address(source, "generator http", _OPTIONS, settings.options, settings.model or "")
    if settings.offline:
        refuse_network(endpoint, "the generator rules")
    return HttpGenerator(endpoint, notify=settings.notify, **own)


class HttpGenerator:
    """Sends every request to a model, several at a time; answers come in the order of the requests."""

    def __init__(
        self, endpoint: Endpoint, *, notify: Notify, pictures: bool = False, workers: int = 4,
        max_descriptions: int = _MAX_DESCRIPTIONS,
    ) -> None:  # fmt: skip
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
        yield from answers_of(
            self._endpoint, len(requests), lambda endpoint, at: self._answer(endpoint, requests[at]), self._workers
        )

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
            {"type": "image_url", "image_url": {"url": picture_file_url(request.file)}},
        ]

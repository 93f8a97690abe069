"""``http``: descriptions written by a language model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from crosslens.build.generators.contents import ImageContents, ObjectAnnotation
from crosslens.build.generators.protocol import (
    CONFUSABLE,
    DESCRIBE,
    GENERATORS,
    SHARPER,
    VAGUER,
    Generator,
    GeneratorSettings,
    Request,
    folded,
)
from crosslens.core import InputError, Notify, ValueType, argument, printable
from crosslens.encode import (
    WORKERS,
    Endpoint,
    InvalidAnswer,
    Message,
    Reading,
    answers_of,
    parse_answer,
    picture_file_url,
    read_address,
)
from crosslens.storage import derive_seed

REVISION = "1"
"""Changed with every change of these texts: answers to other prompts are other answers."""

SYSTEM = (
    "You write short descriptions of pictures for a retrieval benchmark: a reader should be able to tell from a "
    "description which of many similar pictures is meant, without finding it trivial. Write plain, grammatical "
    "English, one sentence per description. Say only what you were told or can see; never invent. Answer with one "
    'JSON object and nothing else: {"descriptions": ["…", "…"]}.'
)

_TASKS = {
    SHARPER: (
        "The present descriptions are too vague: they fit other pictures as well. Rewrite each of them so that it fits "
        "this picture and none of the others. Add a detail or two that the others lack (number, colour, position, "
        "another object), and keep the rest as it is."
    ),
    VAGUER: (
        "The present descriptions give the picture away: they are too detailed. Rewrite each of them with fewer "
        "details (leave out a modifier or a clause, use a more general word). It must stay true."
    ),
    DESCRIBE: "There is no description yet. Write descriptions that differ from each other in what they mention.",
    CONFUSABLE: (
        "The present descriptions belong to a different, very similar picture. Change as few words of each as possible "
        "so that it becomes true of this picture and false of the other one: the number, a colour, a kind of thing, a "
        "side. Leave out a description where that cannot be done truthfully."
    ),
}


def request_prompt(request: Request) -> str:
    """The request in words."""
    parts = [_TASKS[request.purpose], f"Write {request.wanted} description{'s' if request.wanted > 1 else ''}."]
    if request.task:
        parts.append(f"What the descriptions should turn on: {request.task}.")
    parts.append("In the picture: " + (annotations_text(request.objects) or "nothing was annotated."))
    if request.original_objects:
        parts.append("In the other picture: " + annotations_text(request.original_objects))
    if request.texts:
        parts.append("The present descriptions:\n" + _lines(request.texts))
    if request.rivals:
        parts.append("Descriptions of other pictures, which yours must not fit:\n" + _lines(request.rivals))
    if request.attempt:
        parts.append(
            f"You were asked {request.attempt} time{'s' if request.attempt > 1 else ''} before, and what you wrote did "
            "not serve. Write something clearly different now."
        )
    return "\n\n".join(parts)


def annotations_text(objects: Sequence[ObjectAnnotation]) -> str:
    """The annotations as a list of phrases."""
    contents = ImageContents.of(objects)
    phrases = []
    for group in contents.groups:
        phrase = group.phrase() + group.position
        if group.single:
            details = [*group.single.attributes, *filter(None, [group.action])]
            phrase += f" ({', '.join(details)})" if details else ""
            phrase += f", on which is written: {group.single.text!r}" if group.single.text else ""
        phrases.append(phrase)
    if contents.setting:
        phrases.append(f"the setting is: {contents.setting}")
    return "; ".join(phrases) + ("." if phrases else "")


def _lines(texts: Sequence[str]) -> str:
    return "\n".join(f"- {' '.join(text.split())}" for text in texts)


_LONGEST_DESCRIPTION = 400


def read_answer(content: str, request: Request, most: int) -> tuple[str, ...]:
    """The descriptions of an answer: at most as many as wanted, without known ones. More than ``most`` are refused."""
    answer = parse_answer(content)
    if not isinstance(answer, dict) or not isinstance(answer.get("descriptions"), list):
        raise InvalidAnswer('it is not an object with a list under "descriptions"')
    if len(answer["descriptions"]) > most:
        raise InvalidAnswer(f"it has {len(answer['descriptions']):,} descriptions, and at most {most:,} are read")
    request_texts = {folded(text) for text in request.texts}
    new: dict[str, str] = {}
    for description in answer["descriptions"]:
        if not isinstance(description, str):
            raise InvalidAnswer("a description is not a string")
        if len(description) > _LONGEST_DESCRIPTION:
            raise InvalidAnswer(f"a description has more than {_LONGEST_DESCRIPTION} characters")
        if printable(description) != description:
            raise InvalidAnswer("a description has control characters")
        tidy = " ".join(description.split())
        if tidy and folded(tidy) not in request_texts:
            new.setdefault(folded(tidy), tidy)
    return tuple(new.values())[: request.wanted]


_REPAIRS = 2
_REPAIR = (
    "That answer cannot be used: {}. Answer again with the JSON object only, in the form "
    '{{"descriptions": ["…", "…"]}}.'
)
_MAX_DESCRIPTIONS = 1000
_MOST_REPEATED = 4000  # characters of an unusable answer that are sent back to the model
_OPTIONS: dict[str, Reading] = {
    "pictures": Reading(ValueType.of(bool).read, "true or false"),
    "workers": WORKERS,
    "max_descriptions": Reading(int, "a whole number", 1, 1_000_000),
}


@GENERATORS.register("http", needs_source=True, example="http:http://127.0.0.1:8000/v1?model=NAME")
def load_http(source: str, settings: GeneratorSettings) -> Generator:
    """A language model behind an OpenAI-compatible address, which may see the images; key: CROSSLENS_API_KEY."""
    endpoint, options = read_address(source, "generator http", _OPTIONS, settings.options, settings.model or "")
    return HttpGenerator(endpoint, notify=settings.notify, **options)


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
        answers = dict(self.stream(requests))
        return [answers[at] for at in range(len(requests))]

    def stream(self, requests: Sequence[Request]) -> Iterator[tuple[int, tuple[str, ...]]]:
        """The number of a request and its answer, each as soon as it arrives."""
        if not requests:
            return
        if not self._announced:
            self._announced = True
            data = "descriptions, annotations and pictures" if self.sees_pictures else "descriptions and annotations"
            self._notify(f"note: {data} are sent to {self._endpoint.host} (model {self._endpoint.model})")
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
                    {"role": "user", "content": _REPAIR.format(problem)},
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

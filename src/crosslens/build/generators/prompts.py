"""What a language model is asked (task, annotations, form of the answer), and its answer, read strictly."""

from __future__ import annotations

from collections.abc import Sequence

from crosslens.build.generators.annotations import ImageContents, ObjectAnnotation
from crosslens.build.generators.protocol import CONFUSABLE, DESCRIBE, SHARPER, VAGUER, Request, folded
from crosslens.core import InvalidAnswer, parse_answer, printable

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


def repair_prompt(problem: str) -> str:
    """The follow-up to an answer that cannot be used."""
    return (
        f"That answer cannot be used: {problem}. Answer again with the JSON object only, in the form "
        '{"descriptions": ["…", "…"]}.'
    )


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


_LONGEST = 400


def read_answer(content: str, request: Request, most: int) -> tuple[str, ...]:
    """The descriptions of an answer: at most as many as wanted, without known ones. More than ``most`` are refused."""
    known = {folded(text) for text in request.texts}
    new: dict[str, str] = {}
    for text in _descriptions(content, most):
        tidy = " ".join(text.split())
        if tidy and folded(tidy) not in known:
            new.setdefault(folded(tidy), tidy)
    return tuple(new.values())[: request.wanted]


def _descriptions(content: str, most: int) -> list[str]:
    answer = parse_answer(content)
    if not isinstance(answer, dict) or not isinstance(answer.get("descriptions"), list):
        raise InvalidAnswer('it is not an object with a list under "descriptions"')
    if len(answer["descriptions"]) > most:
        raise InvalidAnswer(f"it has {len(answer['descriptions']):,} descriptions, and at most {most:,} are read")
    for description in answer["descriptions"]:
        if not isinstance(description, str):
            raise InvalidAnswer("a description is not a string")
        if len(description) > _LONGEST:
            raise InvalidAnswer(f"a description has more than {_LONGEST} characters")
        if printable(description) != description:
            raise InvalidAnswer("a description has control characters")
    return list(answer["descriptions"])

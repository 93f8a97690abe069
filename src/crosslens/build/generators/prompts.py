"""What a language model is told: the task, what is known of the picture, and the form of the answer."""

from __future__ import annotations

from collections.abc import Sequence

from crosslens.build.generators.contents import Contents, whereabouts
from crosslens.build.generators.generator import CONFUSABLE, DESCRIBE, SHARPER, VAGUER, Annotation, Request

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


def question(request: Request) -> str:
    """The request in words."""
    parts = [_TASKS[request.purpose], f"Write {request.wanted} description{'s' if request.wanted > 1 else ''}."]
    if request.task:
        parts.append(f"What the descriptions should turn on: {request.task}.")
    parts.append("In the picture: " + (known(request.objects) or "nothing was annotated."))
    if request.original_objects:
        parts.append("In the other picture: " + known(request.original_objects))
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


def again(problem: str) -> str:
    """What is said when an answer cannot be used."""
    return (
        f"That answer cannot be used: {problem}. Answer again with the JSON object only, in the form "
        '{"descriptions": ["…", "…"]}.'
    )


def known(objects: Sequence[Annotation]) -> str:
    """The annotations as a list of phrases."""
    contents = Contents.of(objects)
    told = []
    for group in contents.groups:
        phrase = group.told()
        if group.single and group.single.box:
            phrase += f" {whereabouts(group.single.box)}"
        details = [*group.members[0].attributes, *([group.action] if group.action else [])] if group.single else []
        phrase += f" ({', '.join(details)})" if details else ""
        if group.single and group.single.text:
            phrase += f", on which is written: {group.single.text!r}"
        told.append(phrase)
    if contents.place:
        told.append(f"the setting is: {contents.place}")
    return "; ".join(told) + ("." if told else "")


def _lines(texts: Sequence[str]) -> str:
    return "\n".join(f"- {' '.join(text.split())}" for text in texts)

"""What a language model answered, read strictly."""

from __future__ import annotations

import json
import re

from crosslens.build.generators.generator import Request

_LONGEST = 400
_FENCE = re.compile(r"^```(?:json)?\s*\n(.*)\n```$", re.DOTALL)


class Unusable(Exception):
    """An answer that does not have the form asked for; says in what it fails."""


def read_answer(content: str, request: Request) -> tuple[str, ...]:
    """The descriptions of an answer: at most as many as wanted, without those there are already."""
    said = {_folded(text) for text in request.texts}
    new: dict[str, str] = {}
    for text in _descriptions(content):
        tidy = " ".join(text.split())
        if tidy and _folded(tidy) not in said:
            new.setdefault(_folded(tidy), tidy)
    return tuple(new.values())[: request.wanted]


def _descriptions(content: str) -> list[str]:
    text = content.strip()
    fenced = _FENCE.match(text)
    try:
        answer = json.loads(fenced[1] if fenced else text)
    except ValueError:
        raise Unusable("it is not JSON") from None
    if not isinstance(answer, dict) or not isinstance(answer.get("descriptions"), list):
        raise Unusable('it is not an object with a list under "descriptions"')
    for one in answer["descriptions"]:
        if not isinstance(one, str):
            raise Unusable("a description is not a string")
        if len(one) > _LONGEST:
            raise Unusable(f"a description has more than {_LONGEST} characters")
    return list(answer["descriptions"])


def _folded(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".!? ")

"""Answers that have to be JSON, as models write it: alone, or inside a fence."""

from __future__ import annotations

import json
import re
from typing import Any

_FENCE = re.compile(r"^```(?:json)?\s*\n(.*)\n```$", re.DOTALL)


class InvalidAnswer(Exception):
    """An answer that does not have the required form; the message says why, as the model is told."""


def parse_answer(content: str) -> Any:
    """The JSON of an answer; anything around it but a fence makes it invalid."""
    text = content.strip()
    fenced = _FENCE.match(text)
    try:
        return json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        raise InvalidAnswer("it is not JSON") from None

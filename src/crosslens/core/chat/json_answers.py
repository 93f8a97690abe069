"""Answers that have to be JSON, as models write it: alone, or inside a fence."""

from __future__ import annotations

import json
import re
from typing import Any

from crosslens.core.input_files.json_text import is_encodable

_FENCE = re.compile(r"^```(?:json)?\s*\n(.*)\n```$", re.DOTALL)


class InvalidAnswer(Exception):
    """An answer that does not have the required form; the message says why, as the model is told."""


def parse_answer(content: str) -> Any:
    """The JSON of an answer; anything around it but a fence makes it invalid."""
    text = content.strip()
    fenced = _FENCE.match(text)
    try:
        answer = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        raise InvalidAnswer("it is not JSON") from None
    if "\\ud" in text.lower() and not is_encodable(json.dumps(answer, ensure_ascii=False)):
        raise InvalidAnswer("it has half of a character: \\ud800 to \\udfff are used in pairs")
    return answer

"""Which language a text is in, by py3langid."""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from typing import Any

from crosslens.core import UnknownNameError, needs_extra
from crosslens.language.words import word_set

ANY_LANGUAGE = "any"
COMMON_LANGUAGES = word_set(
    """ar bg bn ca cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv ms nl no pl pt ro ru sk sl sr sv ta th
    tl tr uk ur vi zh"""
)
"""Short texts are easily taken for a rare language: only these and the wanted ones are considered."""


@lru_cache(maxsize=1)
def _model() -> Any:
    with needs_extra("identifying languages", "py3langid", "imp"):
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    return LanguageIdentifier.from_model_file(MODEL_FILE)


@lru_cache(maxsize=4)
def language_identifier(considered: frozenset[str]) -> Any:
    """A view of the model that knows these languages only."""
    identifier = copy(_model())
    codes = {*identifier.labels, ANY_LANGUAGE}
    for code in considered - codes:
        unknown = UnknownNameError("language", code, sorted(codes))
        unknown.option = "languages"
        raise unknown
    identifier.set_languages(sorted(considered))
    return identifier

"""Which language a caption is in: py3langid among the languages of the web, with the benefit of the doubt."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from typing import Any

from crosslens.build.imp.cleaning.settings import ANY_LANGUAGE
from crosslens.build.imp.cleaning.words import non_latin_share
from crosslens.core import MissingExtraError, UnknownNameError, UsageError
from crosslens.language import word_set

_COMMON = word_set(
    """ar bg bn ca cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv ms nl no pl pt ro ru sk sl sr sv ta th
    tl tr uk ur vi zh"""
)
"""Short texts are easily taken for a rare language: only these and the wanted ones are considered."""
_DOUBT = 16.0
"""A wanted language this close to the likeliest is taken instead (difference of log-likelihoods): names of places and
dishes, which captions are full of, look like other languages."""
_LATIN = word_set("en ca cs da de es et fi fr hr hu id it lt lv ms nl no pl pt ro sk sl sv tl tr vi")
_MOSTLY = 0.5


class LanguageFilter:
    """Says of each text which wanted language it is in, or that it is in none of them."""

    def __init__(self, wanted: Sequence[str]) -> None:
        if not wanted:
            raise UsageError("no language is wanted", fix=f"name some, or use {ANY_LANGUAGE}", option="languages")
        self._any = ANY_LANGUAGE in wanted
        self._wanted = frozenset(wanted) - {ANY_LANGUAGE}
        self._only_latin = not self._any and self._wanted <= _LATIN
        self._identifier = _identifier(_COMMON | self._wanted)

    def language(self, text: str) -> str | None:
        """The code of the language; None where it is not wanted."""
        if self._only_latin and non_latin_share(text) > _MOSTLY:
            return None
        ranked = self._identifier.rank(text.lower())
        likeliest, score = ranked[0]
        if self._any or likeliest in self._wanted:
            return str(likeliest)
        return next((str(code) for code, own in ranked if code in self._wanted and score - own <= _DOUBT), None)


@lru_cache(maxsize=1)
def _model() -> Any:
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError as error:
        raise MissingExtraError("identifying languages", "py3langid", "imp") from error
    return LanguageIdentifier.from_model_file(MODEL_FILE)


@lru_cache(maxsize=4)
def _identifier(considered: frozenset[str]) -> Any:
    """A view of the model that knows these languages only."""
    identifier = copy(_model())
    known = {*identifier.labels, ANY_LANGUAGE}
    for code in considered - known:
        unknown = UnknownNameError("language", code, sorted(known))
        unknown.option = "languages"
        raise unknown
    identifier.set_languages(sorted(considered))
    return identifier

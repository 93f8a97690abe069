"""What may be written for an option: the plain types of its annotation, and texts and values read as one of them.

Flags, recipes, files of settings, options of readers and settings of trainings all pass through here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

_PLAIN: dict[str, type] = {"str": str, "Path": Path, "int": int, "float": float, "bool": bool}
_ACCEPTED: dict[type, Any] = {str: str, Path: (str, PathLike), int: Integral, float: Real, bool: bool}
_SEVERAL = ("tuple", "list", "Sequence")
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_NOUNS = {str: "a text", Path: "a path", int: "a whole number", float: "a number", bool: "true or false"}
_EXPECTED = {
    "str": 'a text in quotes, for example "value"',
    "int": "a whole number, for example 10",
    "float": "a number, for example 0.95",
    "bool": "true or false",
    "strs": 'a list of texts, for example ["first", "second"]',
    "floats": "a list of numbers, for example [0.5, 0.95]",
    "str int": 'a whole number, or a text in quotes, for example "mean"',
}


@dataclass(frozen=True)
class ValueType:
    """The plain types that an annotation names, of a single value or of each of ``several``.

    ``length`` is how many there must be, if that is declared. An annotation that is not ``only_plain`` allows values of
    other types as well, which nobody can write down.
    """

    kinds: tuple[type, ...]
    several: bool = False
    length: int | None = None
    only_plain: bool = True
    optional: bool = False

    @staticmethod
    @cache
    def of(annotation: Any) -> ValueType:
        """That of an annotation, which may be a text; it may name types that are not loaded."""
        text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
        try:
            every = list(_alternatives(ast.parse(text, mode="eval").body))
        except SyntaxError:  # of an object that is no type
            every = []
        parts = [part for part in every if _name(part) != "None"]
        optional = len(parts) < len(every)
        single = {_name(part) for part in parts if not isinstance(part, ast.Subscript)}
        kinds = tuple(kind for name, kind in _PLAIN.items() if name in single)
        several = [part for part in parts if isinstance(part, ast.Subscript) and _name(part.value) in _SEVERAL]
        if kinds or not several:
            return ValueType(kinds, only_plain=bool(kinds) and len(kinds) == len(parts), optional=optional)
        entries = several[0].slice.elts if isinstance(several[0].slice, ast.Tuple) else [several[0].slice]
        kinds = tuple(kind for name, kind in _PLAIN.items() if name == _name(entries[0]))
        is_open = _name(several[0].value) != "tuple" or _name(entries[-1]) == "Ellipsis"
        return ValueType(kinds, True, None if is_open else len(entries), bool(kinds) and len(parts) == 1, optional)

    @property
    def noun(self) -> str:
        """What a value is, for messages."""
        return " or ".join(_NOUNS[kind] for kind in self.kinds)

    @property
    def expected(self) -> str:
        """How a value is written in a file, with an example."""
        names = " ".join(kind.__name__ for kind in self.kinds) + "s" * self.several
        parts = [names] if names in _EXPECTED else ["str" if kind is Path else kind.__name__ for kind in self.kinds]
        return " or ".join(dict.fromkeys(_EXPECTED[part] for part in parts))

    def read(self, text: str) -> Any:
        """A text as the first of the types that can hold it, a path as it is; ``ValueError`` where none can."""
        if not self.kinds or {str, Path} & set(self.kinds):
            return text
        for kind in self.kinds:
            with suppress(ValueError, KeyError):
                return _TRUTH[text.lower()] if kind is bool else kind(text)
        raise ValueError(text)

    def accepts(self, value: Any) -> bool:
        """Whether a single value is of one of the types; True and False are no numbers."""
        kinds = [kind for kind in self.kinds if isinstance(value, bool) == (kind is bool)]
        return any(isinstance(value, _ACCEPTED[kind]) for kind in kinds)

    def convert(self, value: Any) -> Any:
        """A value as one of the types, or None where it is something else; a single text is a list of one entry."""
        if self.several:
            single = ValueType(self.kinds)
            value = [value] if isinstance(value, str) else value
            entries = [single.convert(entry) for entry in value] if isinstance(value, list | tuple) else [None]
            return None if None in entries else tuple(entries)
        if not self.accepts(value):
            return None
        try:
            return float(value) if self.kinds == (float,) else value
        except OverflowError:  # a whole number may be too large for a float
            return None


def _alternatives(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp):
        yield from _alternatives(node.left)
        yield from _alternatives(node.right)
    else:
        yield node


def _name(node: ast.expr) -> str:
    """``Path`` of ``pathlib.Path``; ``None`` and ``Ellipsis`` of these constants."""
    if isinstance(node, ast.Constant):
        return "Ellipsis" if node.value is ... else str(node.value)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")

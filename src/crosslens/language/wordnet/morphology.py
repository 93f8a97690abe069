"""From a word as written to the forms that WordNet lists: its irregular forms, then its rules of detachment.

The rules are those of morphy(7WN), applied once. Like nltk's reader this looks at the whole word only: ``hot dogs``
loses its last letter, ``attorneys general`` is left alone unless the exceptions list it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

RULES: dict[str, tuple[tuple[str, str], ...]] = {
    "n": (
        ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
        ("men", "man"), ("ies", "y"),
    ),
    "v": (
        ("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""),
    ),
    "a": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "r": (),
}  # fmt: skip


def parse_exceptions(lines: Iterable[str]) -> dict[tuple[str, str], tuple[str, ...]]:
    """(part, form) → base forms."""
    split = (line.split(" ") for line in lines)
    return {(part, form): tuple(bases) for part, form, *bases in split}


def base_forms(
    word: str, part: str, exceptions: dict[tuple[str, str], tuple[str, ...]], listed: Callable[[str, str], bool]
) -> list[str]:
    """The forms of ``word`` that are ``listed`` for ``part``, the word itself first; none where WordNet knows none."""
    irregular = exceptions.get((part, word))
    candidates = irregular if irregular is not None else detached(word, part)
    return [form for form in dict.fromkeys((word, *candidates)) if listed(form, part)]


def detached(word: str, part: str) -> list[str]:
    """What the rules make of ``word``, listed or not."""
    return [word[: len(word) - len(ending)] + new for ending, new in RULES[part] if word.endswith(ending)]

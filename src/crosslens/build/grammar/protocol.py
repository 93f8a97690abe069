"""What every grammar check is: texts in, problems out, and a name that identifies the rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from crosslens.core import Registry


@runtime_checkable
class GrammarCheck(Protocol):
    """Something that finds mistakes. ``revision`` changes whenever the same text may get another answer than before."""

    name: str
    revision: str

    def problems(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """For each text what is wrong with it, in a few words; nothing where it is fine."""


GRAMMAR_CHECKS: Registry[Callable[[], GrammarCheck]] = Registry(
    "grammar check", "grammar_checks", ("crosslens.build.grammar",)
)


def load_grammar_check(check: str | GrammarCheck) -> GrammarCheck:
    """The check of a name; a check is used as it is."""
    return GRAMMAR_CHECKS[check].value() if isinstance(check, str) else check

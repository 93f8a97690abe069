"""What was changed in a caption, and where: enough to make the new text from the old one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


# Tuples, and not dataclasses, because a run makes them by the hundred thousand: a frozen dataclass takes three times as
# long to make.
class Edit(NamedTuple):
    """The characters ``start`` to ``end`` (excluded) of the original, ``before``, became ``after``.

    An insertion has an empty ``before``, a deletion an empty ``after``.
    """

    start: int
    end: int
    before: str
    after: str

    @property
    def span(self) -> tuple[int, int]:
        """Where it stands in the original: the first character, and one past the last."""
        return self.start, self.end


class Perturbed(NamedTuple):
    """One caption after a perturbation.

    ``applied`` is False where the perturbation found nothing to change; ``text`` is then the original, and ``reason``
    says why in a few words. ``edits`` stand in the order of the text and do not overlap.
    """

    original: str
    text: str
    applied: bool
    reason: str = ""
    edits: tuple[Edit, ...] = ()


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """The text with every edit made; raises ValueError where an edit does not fit the text or the one before it."""
    parts, place = [], 0
    for edit in edits:
        if edit.start < place or text[edit.start : edit.end] != edit.before:
            raise ValueError(f"{edit} does not fit {text!r} after character {place}")
        parts += [text[place : edit.start], edit.after]
        place = edit.end
    return "".join([*parts, text[place:]])

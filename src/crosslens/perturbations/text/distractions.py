"""Words that say nothing about the picture, put behind the caption."""

from __future__ import annotations

from crosslens.perturbations.caption import Caption, Edit, Edits
from crosslens.perturbations.draws import Draws
from crosslens.perturbations.registry import CannotApply, perturbation

_BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001))))
_AT_THE_END = f"{_BLANKS}.!?…,;:"


@perturbation("distraction_true", level="sentence", order=7, brit=True, keeps_meaning=True)
def distraction_true(caption: Caption, draws: Draws) -> Edits:
    """Append *and true is true.*"""
    return _appended(caption, " and true is true.")


@perturbation("distraction_false", level="sentence", order=8, brit=True, keeps_meaning=True)
def distraction_false(caption: Caption, draws: Draws) -> Edits:
    """Append *and false is false.*"""
    return _appended(caption, " and false is false.")


def _appended(caption: Caption, words: str) -> Edits:
    """The caption's own full stop gives way: the sentence goes on."""
    text = caption.text
    if not any(map(str.isalnum, text)):
        raise CannotApply("no words")
    end = len(text.rstrip(_AT_THE_END))
    return (Edit(end, len(text), text[end:], words),)

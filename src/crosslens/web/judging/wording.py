"""Times and errors in words."""

from __future__ import annotations

from crosslens.core import CrosslensError


def duration(seconds: float | None) -> str:
    """A rough time: ``about 5 minutes``; empty where it is not known."""
    if seconds is None:
        return ""
    minutes = seconds / 60
    if minutes < 1:
        return "less than a minute"
    if minutes < 90:
        rounded = round(minutes)
        return f"about {rounded} minute{'s' if rounded > 1 else ''}"
    hours = round(minutes / 30) / 2
    return f"about {hours:g} hours"


def sentence(error: CrosslensError) -> str:
    """The error as a sentence on a page."""
    text = error.problem if error.fix is None else f"{error.problem}: {error.fix}"
    return f"{text[:1].upper()}{text[1:]}."

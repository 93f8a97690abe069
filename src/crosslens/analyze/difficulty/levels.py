"""From votes to a name: easy, medium, hard, or whatever a mapping says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from crosslens.core import UsageError

DIFFICULTY = "difficulty"
"""The column that holds the level of a pair."""
DEFAULT_LEVELS = "easy=all medium=rest hard=none"
"""IMP 4.2: easy where every model says that the pair matches, hard where none does."""

_RANGE = re.compile(r"(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?(%?)")
_FORM = 'such as "easy=5-6 medium=2-4 hard=0-1", "easy=75-100% hard=0-74%" or "easy=all medium=rest hard=none"'


@dataclass(frozen=True)
class _Range:
    """Votes, or shares of them in percent, from ``low`` to ``high``, both included."""

    low: Fraction
    high: Fraction
    percent: bool

    def holds(self, votes: int, models: int) -> bool:
        value = Fraction(100 * votes, models) if self.percent else Fraction(votes)
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Levels:
    """Names of levels, each with its votes, in the order in which they were written; ``rest`` names all other votes."""

    text: str
    ranges: dict[str, _Range]
    rest: str | None

    @staticmethod
    def parse(text: str | None = None) -> Levels:
        """From ``NAME=VOTES`` parts, where VOTES is a number, a range, a share in percent, all, none or rest."""
        text = DEFAULT_LEVELS if text is None else " ".join(str(text).replace(",", " ").split())
        ranges: dict[str, _Range] = {}
        rest: str | None = None
        names: list[str] = []
        for part in text.split():
            name, separator, votes = part.partition("=")
            if not (name and separator and votes):
                raise _wrong(f"{part!r} in the mapping is not NAME=VOTES")
            if name in names:
                raise _wrong(f"the mapping names {name!r} twice")
            names.append(name)
            if votes == "rest":
                if rest is not None:
                    raise _wrong(f"both {rest} and {name} are the rest")
                rest = name
            else:
                ranges[name] = _parse_range(votes, part)
        if not names:
            raise _wrong("the mapping is empty")
        return Levels(text, ranges, rest)

    @property
    def names(self) -> tuple[str, ...]:
        """The levels in the order in which they were written."""
        return tuple(part.partition("=")[0] for part in self.text.split())

    @property
    def count_votes(self) -> bool:
        """Whether a level is a number of votes, not a share of them: then a panel of another size has other levels."""
        return any(not votes_of.percent for votes_of in self.ranges.values())

    def names_of(self, possible: Sequence[tuple[int, int]]) -> dict[tuple[int, int], str]:
        """The level of each (votes, models); raises for votes with no level or with two, and for ranges past them."""
        most = max(votes for votes, _ in possible)
        for name, votes_of in self.ranges.items():
            if votes_of.high > (100 if votes_of.percent else most):
                limit = "100%" if votes_of.percent else f"{most}, the most votes of the panel"
                raise _wrong(f"{name} in the mapping {self.text!r} goes past {limit}")
        return {(votes, models): self._name(votes, models) for votes, models in possible}

    def _name(self, votes: int, models: int) -> str:
        names = [name for name, votes_of in self.ranges.items() if votes_of.holds(votes, models)]
        if not names and self.rest is not None:
            return self.rest
        if len(names) != 1:
            count = f"{votes} of {models} votes"
            problem = f"{count} belong to both {names[0]} and {names[1]}" if names else f"{count} belong to no level"
            raise _wrong(f"{problem} of the mapping {self.text!r}")
        return names[0]


def _parse_range(votes: str, part: str) -> _Range:
    if votes in ("all", "none"):
        share = Fraction(100 if votes == "all" else 0)
        return _Range(share, share, percent=True)
    match = _RANGE.fullmatch(votes)
    if match is None:
        raise _wrong(f"{part!r} in the mapping is not NAME=VOTES")
    low, high = Fraction(match[1]), Fraction(match[2] or match[1])
    if low > high:
        raise _wrong(f"{part!r} in the mapping begins above its end")
    return _Range(low, high, percent=bool(match[3]))


def _wrong(problem: str) -> UsageError:
    return UsageError(problem, fix=f"give every number of votes one level, {_FORM}", option="mapping")

"""What a requirement says, read from one line.

::

    requirement = measure comparison number ["%"]
    measure     = METRIC
                | "drop"  "(" PERTURBATION ["," METRIC] ")"
                | "group" "(" COLUMN "=" VALUE "," METRIC ")"
                | "worst" "(" COLUMN "," METRIC ")"
                | "gap"   "(" METRIC ["," RUN] ")"
    comparison  = ">=" | "<=" | ">" | "<" | "≥" | "≤"

A name is a word, which may hold brackets with anything in them (``SR[spice, m=20]@5``), or a text in quotes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal, NamedTuple, cast

from crosslens.core import UnknownNameError, UsageError

Kind = Literal["metric", "drop", "group", "worst", "gap"]
_EXAMPLES = {
    "metric": "a metric, such as t2i/Hit@1", "perturbation": "a perturbation, such as char_swap",
    "column": "a column, such as category", "run": "a run folder",
}  # fmt: skip
_FUNCTIONS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "drop": (("", "subject", "perturbation"), (",?", "metric", "metric")),
    "group": (("", "subject", "column"), ("=", "value", "value"), (",", "metric", "metric")),
    "worst": (("", "subject", "column"), (",", "metric", "metric")),
    "gap": (("", "metric", "metric"), (",?", "subject", "run")),
}
"""The arguments of each function: the mark before it (``?``: may be missing), which part it is, and what it names."""
COMPARISONS = {">=": ">=", "<=": "<=", ">": ">", "<": "<", "≥": ">=", "≤": "<="}

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<comparison>>=|<=|≥|≤|>|<)
      | (?P<mark>[(),=])
      | (?P<quoted>"[^"]*"|'[^']*')
      | (?P<word>(?:\[[^\[\]]*\]|[^\s,()<>=≥≤"'\[\]])+)
      | (?P<other>.)""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_BARE = re.compile(r"(?:\[[^\[\]]*\]|[^\s,()<>=≥≤\"'\[\]])+")


@dataclass(frozen=True)
class Requirement:
    """One measure, and the bound that it has to keep.

    ``subject`` is the perturbation of a drop, the column of groups, or the other run of a gap; ``value`` the group.
    ``positions`` says where in ``text`` the parts stand, for messages; neither makes a requirement another one.
    """

    kind: Kind
    metric: str
    """As it was written; empty for a drop of the study's headline."""
    comparison: str
    bound: float
    percent: bool = False
    subject: str = ""
    value: str = ""
    text: str = field(default="", compare=False)
    positions: dict[str, int] = field(default_factory=dict, compare=False)

    def fail(self, part: str, problem: str, fix: str) -> UsageError:
        """An error about one part of the requirement, which says where it stands."""
        return _error(self.text or str(self), self.positions.get(part, 0), problem, fix)

    def __str__(self) -> str:
        """The shortest spelling; reading it again gives an equal requirement."""
        metric = _quoted(self.metric)
        inside = {
            "metric": metric,
            "drop": f"drop({_quoted(self.subject)}{', ' + metric if self.metric else ''})",
            "group": f"group({_quoted(self.subject)}={_quoted(self.value)}, {metric})",
            "worst": f"worst({_quoted(self.subject)}, {metric})",
            "gap": f"gap({metric}{', ' + _quoted(self.subject) if self.subject else ''})",
        }[self.kind]
        return f"{inside} {self.comparison} {self.bound!r}{'%' if self.percent else ''}"


def parse_requirement(text: str) -> Requirement:
    """Read one requirement; whatever cannot be read is named with its position."""
    return _Parser(text).requirement()


class _Token(NamedTuple):
    kind: str
    text: str
    position: int

    @property
    def name(self) -> str:
        return self.text[1:-1] if self.kind == "quoted" else self.text


class _Parser:
    """One pass over the tokens, one method per rule of the grammar."""

    def __init__(self, text: str) -> None:
        self._text = text
        matches = (match for match in _TOKEN.finditer(text) if match.lastgroup != "space")
        self._tokens = [_Token(str(match.lastgroup), match[0], match.start()) for match in matches]
        self._at = 0
        self._positions: dict[str, int] = {}

    def requirement(self) -> Requirement:
        first, names = self._next, {}
        kind: Kind = "metric"
        follower = self._tokens[self._at + 1].text if self._at + 1 < len(self._tokens) else ""
        if first.kind != "word" or follower != "(":
            names["metric"] = self._name("metric", _EXAMPLES["metric"])
        elif first.text not in _FUNCTIONS:
            near = UnknownNameError("function", first.text, _FUNCTIONS)
            raise _error(self._text, first.position, near.problem, near.fix or "")
        else:
            kind = cast(Kind, first.text)
            self._at += 2
            for mark, part, role in _FUNCTIONS[kind]:
                if self._follows(mark):
                    expected = f"a value of {names['subject']}" if role == "value" else _EXAMPLES[role]
                    names[part] = self._name(part, expected)
            self._follows(")")
        comparison = self._next
        if comparison.kind != "comparison":
            raise self._unexpected("one of >=, <=, > and <")
        self._at += 1
        token = self._next
        self._positions["bound"] = token.position
        number, percent = token.text.removesuffix("%"), token.text.endswith("%")
        if token.kind != "word" or not _NUMBER.fullmatch(number) or not isfinite(float(number)):
            raise self._unexpected("a number, such as 0.6 or 60%")
        self._at += 1
        if not percent and self._next.text == "%":
            self._at, percent = self._at + 1, True
        if self._next.kind != "end":
            raise self._unexpected("nothing more")
        return Requirement(
            kind, names.get("metric", ""), COMPARISONS[comparison.text], float(number), percent,
            names.get("subject", ""), names.get("value", ""), self._text, self._positions,
        )  # fmt: skip

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else _Token("end", "", len(self._text))

    def _follows(self, mark: str) -> bool:
        """Pass over a mark, which must be there unless it ends in ``?``; no mark is always there."""
        is_there = not mark or (self._next.kind == "mark" and self._next.text == mark.rstrip("?"))
        if not is_there and not mark.endswith("?"):
            raise self._unexpected(f"{mark!r}")
        self._at += bool(mark) and is_there
        return is_there

    def _name(self, part: str, expected: str) -> str:
        token = self._next
        if token.kind not in ("word", "quoted") or not token.name:
            raise self._unexpected(expected)
        self._positions[part] = token.position
        self._at += 1
        return token.name

    def _unexpected(self, expected: str) -> UsageError:
        token = self._next
        actual = "the end" if token.kind == "end" else f"{token.text!r:.40}"
        fix = 'write, for example, "t2i/Hit@1 >= 0.6" or "drop(char_swap) <= 5"'
        return _error(self._text, token.position, f"expected {expected}, not {actual}", fix)


def _error(text: str, position: int, problem: str, fix: str) -> UsageError:
    return UsageError(
        f"the requirement {text!r}, character {position + 1}: {problem}",
        fix=fix,
        code="requirement",
        subject=text,
        option="require",
    )


def _quoted(name: str) -> str:
    """A name as it has to be written: in quotes where it is not one word, or would be read as something else."""
    if _BARE.fullmatch(name):
        return name
    return f"'{name}'" if '"' in name else f'"{name}"'

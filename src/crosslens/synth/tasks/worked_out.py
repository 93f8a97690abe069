"""Tasks to be worked out: calculation (a sum), area (of a figure), code (what a program prints).

Sums and figures are in handwriting, and captions name the result. Captions of code state what the program prints, which
running it has shown. A dataset calls the task area ``calculation``, as ReCoS does. It is not among the twelve that
``all`` stands for: an old seed draws the old scenes.
"""

from __future__ import annotations

import tomllib
from abc import abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crosslens.synth.captions import Wording, a, number_word, pick
from crosslens.synth.kinds import KINDS
from crosslens.synth.scene import Part, Plan
from crosslens.synth.tasks.task import Change, Facts, Objects, Random, Task, another, choose, names, usual_colour

BOARDS = ("blackboard", "sheet of paper", "whiteboard")
NUMBER_BACKDROPS = names(
    "classroom, wooden board, brick wall, striped wallpaper, dotted wallpaper, tiled wall, blue carpet, living room"
)
_OPERATORS = {
    "+": ("plus", "the sum of {left} and {right}", "addition"),
    "-": ("minus", "{left} take away {right}", "subtraction"),
    "×": ("times", "the product of {left} and {right}", "multiplication"),
    "÷": ("divided by", "{left} shared out among {right}", "division"),
}


class BoardFacts(Facts):
    """Something written by hand on a board."""

    board: str
    colour: str
    backdrop: str

    @property
    @abstractmethod
    def text(self) -> str:
        """As it is written, or as annotations say what is drawn."""

    def plan(self) -> Plan:
        return Plan(self.backdrop, (Part(self.board, self.colour, text=self.text),))

    def phrases(self, objects: Objects, random: Random) -> dict[str, Any]:
        board = Wording(self.board, self.colour)
        return {"board": board, "other": pick(random, *board.kind.also)}


def _board_task(name: str, facts: type[Facts], change_number: Change, label: str = "") -> Task:
    changes = {
        "number": change_number,
        "board": another("board", BOARDS),
        "colour": another("colour", lambda facts: KINDS[facts.board].colours),
        "backdrop": another("backdrop", NUMBER_BACKDROPS),
    }
    return Task(name, facts, changes, core=("number",), essence=("result",), label=label)


@dataclass(frozen=True)
class CalculationFacts(BoardFacts):
    """Two numbers, what is done with them, and what they are written on."""

    left: int
    operator: str
    right: int
    board: str
    colour: str
    backdrop: str

    @property
    def text(self) -> str:
        return f"{self.left} {self.operator} {self.right} = ?"

    @property
    def result(self) -> int:
        """What comes out; divisions leave no remainder."""
        return {
            "+": self.left + self.right,
            "-": self.left - self.right,
            "×": self.left * self.right,
            "÷": self.left // self.right,
        }[self.operator]

    @classmethod
    def draw(cls, random: Random) -> CalculationFacts:
        operator = choose(random, tuple(_OPERATORS))
        if operator == "+":
            left, right = int(random.integers(2, 100)), int(random.integers(2, 100))
        elif operator == "-":
            right = int(random.integers(2, 70))
            left = right + int(random.integers(1, 60))
        elif operator == "×":
            left, right = int(random.integers(2, 20)), int(random.integers(2, 10))
        else:
            right = int(random.integers(2, 10))
            left = right * int(random.integers(2, 13))
        board = choose(random, BOARDS)
        return cls(left, operator, right, board, usual_colour(random, board), choose(random, NUMBER_BACKDROPS))

    def phrases(self, objects: Objects, random: Random) -> dict[str, Any]:
        verb, phrase, operation = _OPERATORS[self.operator]
        return super().phrases(objects, random) | {
            "formula": f"{self.left} {self.operator} {self.right}",
            "question": phrase.format(left=number_word(self.left), right=number_word(self.right)),
            "verb": verb,
            "operation": operation,
            "material": KINDS[self.board].riddle.split()[0],
        }


def _change_number(facts: CalculationFacts, random: Random) -> CalculationFacts:
    """One of the two numbers a little larger or smaller, so that another result comes out."""
    step = facts.right if facts.operator == "÷" else 1
    near = [replace(facts, left=facts.left + shift) for shift in (-step, step)]
    if facts.operator != "÷":
        near += [replace(facts, right=facts.right + shift) for shift in (-1, 1)]
    return choose(random, [change for change in near if change.left > 1 and change.right > 1 and change.result > 0])


CALCULATION = _board_task("calculation", CalculationFacts, _change_number)


_SIGNS = {"rectangle": "▭", "square": "□", "triangle": "△"}
_MEASURES = {
    "rectangle": "{} long and {} wide",
    "square": "with sides of {}",
    "triangle": "with a base of {} and a height of {}",
}
_AREA_RIDDLES = {
    "rectangle": "stretched square",
    "square": "four equal strokes",
    "triangle": "three strokes and a peak",
}
_LONGEST = 12


@dataclass(frozen=True)
class AreaFacts(BoardFacts):
    """A shape, its two lengths (of a triangle base and height), and what it is drawn on."""

    shape: str
    width: int
    height: int
    board: str
    colour: str
    backdrop: str

    @property
    def text(self) -> str:
        return f"{_SIGNS[self.shape]} {self.width} × {self.height}"

    @property
    def result(self) -> int:
        """The area; that of a triangle is a whole number."""
        return self.width * self.height // (2 if self.shape == "triangle" else 1)

    @property
    def is_possible(self) -> bool:
        """Whether the lengths make this shape, and an area without a fraction."""
        lengths = 2 <= self.height <= _LONGEST and 2 <= self.width <= _LONGEST
        fits = {
            "square": self.width == self.height,
            "rectangle": self.width > self.height,
            "triangle": self.width * self.height % 2 == 0,
        }
        return lengths and fits[self.shape]

    @classmethod
    def draw(cls, random: Random) -> AreaFacts:
        shape, board = choose(random, tuple(_SIGNS)), choose(random, BOARDS)
        colour, backdrop = usual_colour(random, board), choose(random, NUMBER_BACKDROPS)
        sides = [(width, height) for width in range(2, _LONGEST + 1) for height in range(2, _LONGEST + 1)]
        all_facts = [cls(shape, width, height, board, colour, backdrop) for width, height in sides]
        return choose(random, [facts for facts in all_facts if facts.is_possible])

    def phrases(self, objects: Objects, random: Random) -> dict[str, Any]:
        measures, words = _MEASURES[self.shape], (number_word(self.width), number_word(self.height))
        return super().phrases(objects, random) | {
            "figure": f"{a(self.shape)} {measures.format(self.width, self.height)}",
            "spoken": f"{a(self.shape)} {measures.format(*words)}",
            "riddle": _AREA_RIDDLES[self.shape],
        }


def _change_length(facts: AreaFacts, random: Random) -> AreaFacts:
    """One length a little larger or smaller, of a square both, so that another area comes out."""
    steps = (-2, -1, 1, 2)
    if facts.shape == "square":
        near = [replace(facts, width=facts.width + step, height=facts.height + step) for step in steps]
    else:
        near = [replace(facts, width=facts.width + step) for step in steps]
        near += [replace(facts, height=facts.height + step) for step in steps]
    return choose(random, [change for change in near if change.is_possible])


AREA = _board_task("area", AreaFacts, _change_length, label=CALCULATION.name)


Value = int | str


@dataclass(frozen=True)
class Snippet:
    """A program with blanks ``{0}``, ``{1}``, …, the values each blank can take, and what it does in words."""

    code: str
    blanks: tuple[tuple[Value, ...], ...]
    gist: str


_TABLE = tomllib.loads(Path(__file__).with_name("snippets.toml").read_text("utf-8"))


def _values(blank: str) -> tuple[Value, ...]:
    if blank[0].isdigit():
        return tuple(range(*map(int, blank.split())))
    return tuple(word for name in blank.split() for word in _TABLE["lists"][name].split())


SNIPPETS = {
    name: Snippet(entry["code"], tuple(map(_values, entry["blanks"])), entry["gist"])
    for name, entry in _TABLE["snippets"].items()
}
"""Every snippet by its name."""


def run(source: str) -> str:
    """What one of our own programs prints, on one line.

    It runs with the few built-in functions the snippets use and no way to import, open or reach anything else; only
    text from ``snippets.toml`` is ever run.
    """
    printed: list[str] = []

    def show(*values: Any, end: str = "\n") -> None:
        printed.append(" ".join(map(str, values)) + end)

    allowed = {"print": show, "range": range, "sum": sum, "len": len}
    exec(compile(source, "<snippet>", "exec"), {"__builtins__": allowed})
    return "".join(printed).strip()


_CODE_BACKDROPS = names(
    "living room, classroom, wooden board, brick wall, striped wallpaper, dotted wallpaper, tiled wall, city at night"
)


@dataclass(frozen=True)
class CodeFacts(Facts):
    """A snippet, the values in its blanks, and the screen it is on."""

    snippet: str
    values: tuple[Value, ...]
    colour: str
    backdrop: str

    @property
    def source(self) -> str:
        """The program with its blanks filled."""
        return SNIPPETS[self.snippet].code.format(*self.values)

    @property
    def output(self) -> str:
        return run(self.source)

    @classmethod
    def draw(cls, random: Random) -> CodeFacts:
        name = choose(random, tuple(SNIPPETS))
        values = tuple(choose(random, blank) for blank in SNIPPETS[name].blanks)
        return cls(name, values, usual_colour(random, "computer screen"), choose(random, _CODE_BACKDROPS))

    def plan(self) -> Plan:
        return Plan(self.backdrop, (Part("computer screen", self.colour, text=self.source),))

    def phrases(self, objects: Objects, random: Random) -> dict[str, Any]:
        screen, lines = Wording("computer screen", self.colour), self.source.count("\n") + 1
        other = pick(random, *screen.kind.also)
        return {
            "screen": screen,
            "output": self.output,
            "gist": SNIPPETS[self.snippet].gist.format(*self.values),
            "length": "a single line" if lines == 1 else f"{lines} lines",
            "other": other,
            "short": other.split(" of ")[0],
        }


def _change_values(facts: CodeFacts, random: Random) -> CodeFacts:
    """Another value in one blank, such that the output changes."""
    blanks = SNIPPETS[facts.snippet].blanks
    output = facts.output
    for blank in random.permutation(len(blanks)):
        for candidate in random.permutation(len(blanks[blank])):
            values = list(facts.values)
            values[blank] = blanks[blank][candidate]
            changed = replace(facts, values=tuple(values))
            if changed.output != output:
                return changed
    raise AssertionError(f"every value of {facts.snippet!r} prints {output}")


CODE = Task(
    "code",
    CodeFacts,
    {
        "values": _change_values,
        "colour": another("colour", KINDS["computer screen"].colours),
        "backdrop": another("backdrop", _CODE_BACKDROPS),
    },
    core=("values",),
    essence=("output",),
)

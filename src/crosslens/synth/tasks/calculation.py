"""Calculation: a sum in handwriting; captions name its result."""

from __future__ import annotations

from dataclasses import dataclass, replace

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import CaptionStyles, Wording, pick
from crosslens.synth.grammar import a, number_word
from crosslens.synth.kinds import KINDS
from crosslens.synth.layout import Part, Plan
from crosslens.synth.tasks.task import Facts, Objects, Random, Task, another, choose, names, usual_colour

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


@dataclass(frozen=True)
class CalculationFacts(Facts):
    """Two numbers, what is done with them, and what they are written on."""

    left: int
    operator: str
    right: int
    board: str
    colour: str
    backdrop: str

    @property
    def text(self) -> str:
        """As it is written."""
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
        left, right = _numbers(operator, random)
        board = choose(random, BOARDS)
        return cls(left, operator, right, board, usual_colour(random, board), choose(random, NUMBER_BACKDROPS))

    def plan(self) -> Plan:
        return Plan(self.backdrop, (Part(self.board, self.colour, text=self.text),))

    def describe(self, objects: Objects, random: Random) -> CaptionStyles:
        backdrop, board = BACKDROPS[self.backdrop], Wording(self.board, self.colour)
        verb, phrase, operation = _OPERATORS[self.operator]
        left, right, result = number_word(self.left), number_word(self.right), self.result
        formula = f"{self.left} {self.operator} {self.right}"
        question = phrase.format(left=left, right=right)
        plain, other = board.kind.name, pick(random, *board.kind.also)
        return CaptionStyles(
            literal=pick(
                random,
                f"{formula} = {result}, written on {a(board.plain)} {backdrop.at}",
                f"{a(board.plain)} {backdrop.at} with the calculation {formula}, which gives {result}",
                f"the calculation {formula} on {a(board.plain)} {backdrop.at}; the answer is {result}",
            ),
            sparse=pick(
                random, f"{result} is the answer on the {plain}", f"a {plain} with a calculation that gives {result}"
            ),
            detailed=(
                f"{a(board.plain)} {backdrop.at} shows {a(operation)} in handwriting, {self.left} {verb} {self.right}, "
                f"followed by a question mark; the missing result is {result}"
            ),
            paraphrased=pick(
                random,
                f"{question}, jotted down on {a(other)}, makes {number_word(result)}",
                f"on {a(other)} someone asks for {question}, which is {number_word(result)}",
            ),
            figurative=(
                f"{backdrop.riddle}, whoever solves {a(board.riddle.split()[0])} riddle of figures about {left} and "
                f"{right} will say {number_word(result)}"
            ),
        )


def _numbers(operator: str, random: Random) -> tuple[int, int]:
    if operator == "+":
        return int(random.integers(2, 100)), int(random.integers(2, 100))
    if operator == "-":
        right = int(random.integers(2, 70))
        return right + int(random.integers(1, 60)), right
    if operator == "×":
        return int(random.integers(2, 20)), int(random.integers(2, 10))
    right = int(random.integers(2, 10))
    return right * int(random.integers(2, 13)), right


def _change_number(facts: CalculationFacts, random: Random) -> CalculationFacts:
    """One of the two numbers a little larger or smaller, so that another result comes out."""
    step = facts.right if facts.operator == "÷" else 1
    near = [replace(facts, left=facts.left + shift) for shift in (-step, step)]
    if facts.operator != "÷":
        near += [replace(facts, right=facts.right + shift) for shift in (-1, 1)]
    return choose(random, [change for change in near if change.left > 1 and change.right > 1 and change.result > 0])


_CHANGES = {
    "number": _change_number,
    "board": another("board", BOARDS),
    "colour": another("colour", lambda facts: KINDS[facts.board].colours),
    "backdrop": another("backdrop", NUMBER_BACKDROPS),
}
CALCULATION = Task("calculation", CalculationFacts, _CHANGES, core=("number",), essence=("result",))

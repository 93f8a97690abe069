"""Area: a figure in handwriting with the lengths of its sides; captions name its area.

The task is ``calculation`` in a dataset, as in ReCoS. It is not among the twelve that ``all`` stands for: an old seed
draws the old scenes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import CaptionStyles, Wording, pick
from crosslens.synth.grammar import a, number_word
from crosslens.synth.kinds import KINDS
from crosslens.synth.layout import Part, Plan
from crosslens.synth.tasks.calculation import BOARDS, CALCULATION, NUMBER_BACKDROPS
from crosslens.synth.tasks.task import Facts, Objects, Random, Task, another, choose, usual_colour

_SIGNS = {"rectangle": "▭", "square": "□", "triangle": "△"}
_MEASURES = {
    "rectangle": "{width} long and {height} wide",
    "square": "with sides of {width}",
    "triangle": "with a base of {width} and a height of {height}",
}
_RIDDLES = {"rectangle": "stretched square", "square": "four equal strokes", "triangle": "three strokes and a peak"}
_LONGEST = 12


@dataclass(frozen=True)
class AreaFacts(Facts):
    """A shape, its two lengths (of a triangle base and height), and what it is drawn on."""

    shape: str
    width: int
    height: int
    board: str
    colour: str
    backdrop: str

    @property
    def text(self) -> str:
        """As annotations say what is drawn."""
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

    def plan(self) -> Plan:
        return Plan(self.backdrop, (Part(self.board, self.colour, text=self.text),))

    def describe(self, objects: Objects, random: Random) -> CaptionStyles:
        backdrop, board = BACKDROPS[self.backdrop], Wording(self.board, self.colour)
        plain, other = board.kind.name, pick(random, *board.kind.also)
        figure = f"{a(self.shape)} {_MEASURES[self.shape].format(width=self.width, height=self.height)}"
        words = {"width": number_word(self.width), "height": number_word(self.height)}
        spoken = f"{a(self.shape)} {_MEASURES[self.shape].format(**words)}"
        result, result_word = self.result, number_word(self.result)
        return CaptionStyles(
            literal=pick(
                random,
                f"{figure}, drawn on {a(board.plain)} {backdrop.at}; its area is {result}",
                f"{a(board.plain)} {backdrop.at} with {figure}, which has an area of {result}",
            ),
            sparse=pick(
                random,
                f"a figure with an area of {result} on the {plain}",
                f"{a(plain)} with {a(self.shape)} whose area is {result}",
            ),
            detailed=(
                f"{a(board.plain)} {backdrop.at} shows {figure}, drawn by hand, with the lengths beside the lines "
                f"and a question mark; the missing area is {result}"
            ),
            paraphrased=pick(
                random,
                f"{spoken}, sketched on {a(other)}, covers {result_word} units",
                f"on {a(other)} someone asks how large {spoken} is, which comes to {result_word}",
            ),
            figurative=(
                f"{backdrop.riddle}, whoever fences in the {_RIDDLES[self.shape]} by {words['width']} and "
                f"{words['height']} owns {result_word} tiles"
            ),
        )


def _change_number(facts: AreaFacts, random: Random) -> AreaFacts:
    """One length a little larger or smaller, of a square both, so that another area comes out."""
    steps = (-2, -1, 1, 2)
    if facts.shape == "square":
        near = [replace(facts, width=facts.width + step, height=facts.height + step) for step in steps]
    else:
        near = [replace(facts, width=facts.width + step) for step in steps]
        near += [replace(facts, height=facts.height + step) for step in steps]
    return choose(random, [change for change in near if change.is_possible])


_CHANGES = {
    "number": _change_number,
    "board": another("board", BOARDS),
    "colour": another("colour", lambda facts: KINDS[facts.board].colours),
    "backdrop": another("backdrop", NUMBER_BACKDROPS),
}
AREA = Task("area", AreaFacts, _CHANGES, core=("number",), essence=("result",), label=CALCULATION.name)

"""Code: a Python program on a screen; captions state what it prints, which running it has shown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import CaptionStyles, Wording, pick
from crosslens.synth.grammar import a
from crosslens.synth.kinds import KINDS
from crosslens.synth.layout import Part, Plan
from crosslens.synth.tasks.task import Facts, Objects, Random, Task, another, choose, names, usual_colour

Value = int | str


@dataclass(frozen=True)
class Snippet:
    """A program with blanks ``{0}``, ``{1}``, …, the values each blank can take, and what it does in words."""

    code: str
    blanks: tuple[tuple[Value, ...], ...]
    gist: str


def _to(low: int, high: int, step: int = 1) -> tuple[Value, ...]:
    return tuple(range(low, high, step))


_WORDS = ("cat", "lamp", "river", "stone", "apple", "music", "tiger", "cloud", "bread", "green", "level", "piano")
_NAMES = ("Ada", "Ben", "Eva", "Leo", "Mia", "Tom", "Zoe", "Max")

SNIPPETS: dict[str, Snippet] = {
    "product": Snippet("a = {0}\nb = {1}\nprint(a * b)", (_to(2, 20), _to(2, 13)), "multiplies {0} by {1}"),
    "difference": Snippet("x = {0}\ny = {1}\nprint(x - y)", (_to(20, 90), _to(2, 60)), "subtracts {1} from {0}"),
    "power": Snippet("n = {0}\nprint(n ** {1})", (_to(2, 10), _to(2, 4)), "raises {0} to the power of {1}"),
    "remainder": Snippet("print({0} % {1})", (_to(20, 100), _to(3, 12)), "finds the remainder of {0} divided by {1}"),
    "quotient": Snippet(
        "print({0} // {1})", (_to(20, 100), _to(3, 12)), "divides {0} by {1} and throws the remainder away"
    ),
    "loop total": Snippet(
        "total = 0\nfor i in range({0}):\n    total += {1}\nprint(total)",
        (_to(3, 10), _to(2, 12)),
        "adds {1} to a total {0} times",
    ),
    "sum of range": Snippet("print(sum(range({0})))", (_to(4, 14),), "adds up all the whole numbers below {0}"),
    "doubling": Snippet(
        "n = {0}\nwhile n < {1}:\n    n = n * 2\nprint(n)",
        (_to(2, 8), _to(20, 100, 10)),
        "doubles {0} until it is at least {1}",
    ),
    "larger": Snippet(
        "a, b = {0}, {1}\nif a > b:\n    print(a)\nelse:\n    print(b)",
        (_to(2, 60), _to(2, 60)),
        "picks the larger of {0} and {1}",
    ),
    "even or odd": Snippet(
        'n = {0} + {1}\nif n % 2 == 0:\n    print(n, "is even")\nelse:\n    print(n, "is odd")',
        (_to(2, 40), _to(2, 40)),
        "tells whether the sum of {0} and {1} is even or odd",
    ),
    "squares": Snippet(
        "print([n * n for n in\n       range({0}, {1})])",
        (_to(1, 5), _to(6, 9)),
        "lists the squares of the numbers from {0} up to but not including {1}",
    ),
    "length": Snippet('word = "{0}"\nprint(len(word) + {1})', (_WORDS, _to(1, 20)), "adds {1} to the length of {0}"),
    "shout": Snippet(
        'word = "{0}"\nprint(word.upper() * {1})', (_WORDS, _to(2, 5)), "writes {0} in capitals {1} times over"
    ),
    "backwards": Snippet('text = "{0}"\nprint(text[::-1])', (_WORDS + _NAMES,), "spells {0} backwards"),
    "letter": Snippet('word = "{0}"\nprint(word[{1}])', (_WORDS, _to(0, 3)), "takes the letter at index {1} of {0}"),
    "greeting": Snippet(
        'name = "{0}"\nprint("Hi " + name * {1})', (_NAMES, _to(2, 5)), "says hi and the name {0} {1} times over"
    ),
    "list item": Snippet(
        "xs = [{0}, {1}, {2}]\nxs.sort()\nprint(xs[{3}])",
        (_to(1, 30), _to(31, 60), _to(1, 60), _to(0, 3)),
        "sorts {0}, {1} and {2} and takes the one at index {3}",
    ),
    "function": Snippet(
        "def f(x):\n    return {0} * x + {1}\n\nprint(f({2}))",
        (_to(2, 10), _to(1, 20), _to(2, 10)),
        "defines a function of {0} times x plus {1} and calls it with {2}",
    ),
    "countdown": Snippet(
        "for n in range({0}, 0, -{1}):\n    print(n, end=' ')",
        (_to(5, 16), _to(2, 5)),
        "counts down from {0} in steps of {1}",
    ),
    "average": Snippet(
        "xs = [{0}, {1}, {2}]\nprint(sum(xs) // len(xs))",
        (_to(1, 40), _to(1, 40), _to(1, 40)),
        "rounds the average of {0}, {1} and {2} down",
    ),
}
"""Every snippet by its name."""


def run(source: str) -> str:
    """What one of our own programs prints, on one line.

    It runs with the few built-in functions the snippets use and no way to import, open or reach anything else; only
    text from this module is ever run.
    """
    printed: list[str] = []

    def show(*values: Any, end: str = "\n") -> None:
        printed.append(" ".join(map(str, values)) + end)

    allowed = {"print": show, "range": range, "sum": sum, "len": len}
    exec(compile(source, "<snippet>", "exec"), {"__builtins__": allowed})
    return "".join(printed).strip()


_BACKDROPS = names(
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
        """What it prints."""
        return run(self.source)

    @classmethod
    def draw(cls, random: Random) -> CodeFacts:
        name = choose(random, tuple(SNIPPETS))
        values = tuple(choose(random, blank) for blank in SNIPPETS[name].blanks)
        return cls(name, values, usual_colour(random, "computer screen"), choose(random, _BACKDROPS))

    def plan(self) -> Plan:
        return Plan(self.backdrop, (Part("computer screen", self.colour, text=self.source),))

    def describe(self, objects: Objects, random: Random) -> CaptionStyles:
        backdrop, screen = BACKDROPS[self.backdrop], Wording("computer screen", self.colour)
        output, gist = self.output, SNIPPETS[self.snippet].gist.format(*self.values)
        lines = self.source.count("\n") + 1
        length = "a single line" if lines == 1 else f"{lines} lines"
        other = pick(random, *screen.kind.also)
        return CaptionStyles(
            literal=pick(
                random,
                f"{a(screen.plain)} {backdrop.at} with Python code that {gist} and prints {output}",
                f"Python code on {a(screen.plain)} {backdrop.at}: it {gist} and prints {output}",
            ),
            sparse=pick(random, f"code that prints {output}", f"the program prints {output}", f"it prints {output}"),
            detailed=(
                f"{a(screen.plain)} {backdrop.at} shows {length} of Python; the program {gist}, "
                f"so that running it prints exactly this: {output}"
            ),
            paraphrased=pick(
                random,
                f"on {a(other)} {backdrop.also}, a little script {gist}; its output reads {output}",
                f"run the script on the {other.split(' of ')[0]} and you will see {output}, because it {gist}",
            ),
            figurative=f"{backdrop.riddle}, a snake-named interpreter fed with these lines would answer {output}",
        )


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


_CHANGES = {
    "values": _change_values,
    "colour": another("colour", KINDS["computer screen"].colours),
    "backdrop": another("backdrop", _BACKDROPS),
}
CODE = Task("code", CodeFacts, _CHANGES, core=("values",), essence=("output",))

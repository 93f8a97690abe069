"""Code: a rendered program; captions state what it prints, found out by running it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.captions import Five, Wording, pick
from crosslens.synth.grammar import a
from crosslens.synth.kinds import KINDS
from crosslens.synth.plan import Part, Plan
from crosslens.synth.scene import Thing
from crosslens.synth.snippets import SNIPPETS, Value, run
from crosslens.synth.tasks.task import Random, Task, another, choose, usual_colour

_BACKDROPS = (
    "living room",
    "classroom",
    "wooden board",
    "brick wall",
    "striped wallpaper",
    "dotted wallpaper",
    "tiled wall",
    "city at night",
)


@dataclass(frozen=True)
class CodeFacts:
    """A snippet, the values in its blanks, and the screen it is on."""

    snippet: str
    values: tuple[Value, ...]
    colour: str
    backdrop: str

    @property
    def source(self) -> str:
        """The program."""
        return SNIPPETS[self.snippet].source(self.values)

    @property
    def output(self) -> str:
        """What it prints."""
        return run(self.source)


def _draw(random: Random) -> CodeFacts:
    name = choose(random, tuple(SNIPPETS))
    values = tuple(choose(random, blank) for blank in SNIPPETS[name].blanks)
    return CodeFacts(name, values, usual_colour(random, "computer screen"), choose(random, _BACKDROPS))


def _plan(facts: CodeFacts) -> Plan:
    return Plan(facts.backdrop, (Part("computer screen", facts.colour, text=facts.source),))


def _describe(facts: CodeFacts, things: Sequence[Thing], random: Random) -> Five:
    place, screen = BACKDROPS[facts.backdrop], Wording("computer screen", facts.colour)
    output, gist = facts.output, SNIPPETS[facts.snippet].says(facts.values)
    lines = facts.source.count("\n") + 1
    length = "a single line" if lines == 1 else f"{lines} lines"
    other = pick(random, screen.kind.also)
    return Five(
        literal=pick(
            random,
            (
                f"{a(screen.plain)} {place.at} with Python code that {gist} and prints {output}",
                f"Python code on {a(screen.plain)} {place.at}: it {gist} and prints {output}",
            ),
        ),
        sparse=pick(random, (f"code that prints {output}", f"the program prints {output}", f"it prints {output}")),
        detailed=(
            f"{a(screen.plain)} {place.at} shows {length} of Python; the program {gist}, "
            f"so that running it prints exactly this: {output}"
        ),
        paraphrased=pick(
            random,
            (
                f"on {a(other)} {place.also}, a little script {gist}; its output reads {output}",
                f"run the script on the {other.split(' of ')[0]} and you will see {output}, because it {gist}",
            ),
        ),
        figurative=f"{place.riddle}, a snake-named interpreter fed with these lines would answer {output}",
    )


def _change_values(facts: CodeFacts, random: Random) -> CodeFacts:
    """Another value in one blank, such that another thing is printed."""
    blanks = SNIPPETS[facts.snippet].blanks
    output = facts.output
    for place in random.permutation(len(blanks)):
        for candidate in random.permutation(len(blanks[place])):
            values = list(facts.values)
            values[place] = blanks[place][candidate]
            changed = replace(facts, values=tuple(values))
            if changed.output != output:
                return changed
    raise AssertionError(f"every value of {facts.snippet!r} prints {output}")


TASK = Task(
    "code",
    _draw,
    _plan,
    _describe,
    {
        "values": _change_values,
        "colour": another("colour", KINDS["computer screen"].colours),
        "backdrop": another("backdrop", _BACKDROPS),
    },
    core=("values",),
    essence=lambda facts: facts.output,
)

"""A text about one picture retold about another: only the words in which the two pictures differ are changed.

Everything the text says must be known of the new picture. A word that the annotations cannot vouch for (a verb, a
colour nobody noted) makes the text untellable, and then there is none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from crosslens.build.generators.contents import Contents, Group, relation, whereabouts
from crosslens.build.generators.edits import Edit, apply
from crosslens.build.generators.pairing import pairs
from crosslens.build.generators.phrases import (
    GROUPED,
    INSIDE,
    NEAR,
    RELATIONS,
    STANDING_ON_TWO,
    Phrase,
    Thing,
    place_name,
    reader_of,
)
from crosslens.build.generators.vocabulary import NARROW, OTHER, PLAIN, colour_said, coloured, plural
from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.grammar import a, number_word
from crosslens.synth.tasks.action import SAID

T = TypeVar("T")

_CLAIMLESS = """
    a all also an and are around at be by can capitals carries close company else exactly found gathered has
    have here image in is it keeps left look looks met nearby nothing of on one our out passing photo photograph
    picture put reading reads says scene see seen sees set shares shows single so somebody someone spells spot
    stage that the their there this to view visible was watched way wears were which with word you
"""
_NEUTRAL = frozenset(_CLAIMLESS.split())
"""Words that claim nothing about a picture that its phrases do not."""
_TOUCHING = {"on", "in", "by"}
"""Between two things these say how they lie, and boxes do not tell a cup on a table from one before it."""
_OF_SEVERAL = {"is": "are", "has": "have", "was": "were"}
_OF_ONE = {several: one for one, several in _OF_SEVERAL.items()}
_REFERRING = {"this", "it", "its", "each", "them", "they", "their", "all"}
_TURNED = {
    "to the left of": "to the right of", "left of": "right of", "on the left of": "on the right of",
    "above": "below", "over": "under", "inside": "next to", "enclosed by": "not far from", "beneath": "above",
}  # fmt: skip
_TURNED |= {turned: said for said, turned in _TURNED.items() if said != "beneath"}


class Untellable(Exception):
    """The text says something that nobody knows of the other picture."""


def retell(text: str, source: Contents, target: Contents, turn: int = 0) -> str | None:
    """The text with everything put right that is otherwise in the target; None where that cannot be done.

    ``turn`` asks for other counterparts, where something in the source could stand for several things in the target.
    """
    try:
        return _Retelling(text, source, target, turn).told()
    except Untellable:
        return None


def fits(text: str, contents: Contents) -> bool:
    """Whether all that the text says is known to be so."""
    return retell(text, contents, contents) == text


@dataclass
class _Retelling:
    text: str
    source: Contents
    target: Contents
    turn: int = 0
    edits: list[Edit] = field(default_factory=list)
    crossed: dict[int, bool] = field(default_factory=dict)
    """Position of a thing whose number changed between one and several → whether it is several now."""

    def __post_init__(self) -> None:
        self.phrases = reader_of(self.source, self.target).read(self.text)
        self.pairs = pairs(self.source, self.target, self.turn)

    def told(self) -> str:
        self._check_named_once()
        for at, phrase in enumerate(self.phrases):
            new = getattr(self, f"_{phrase.kind}")(at, phrase)
            if new != phrase.text:
                self.edits.append(Edit(phrase.start, phrase.end, new))
        self._agree()
        self._check_nothing_else()
        return apply(self.text, self.edits) if self.edits else self.text

    def _counterpart(self, name: str) -> Group:
        if name in self.pairs:
            return self.pairs[name]
        # A name that only the target knows is there already: the text was told of it before.
        return _known(next((one for one in self.target.groups if one.name == name), None))

    def _group_at(self, at: int, step: int) -> Group:
        """The counterpart of the nearest thing before (step -1) or after (1) a phrase."""
        places = range(at + step, len(self.phrases) if step > 0 else -1, step)
        thing = _known(next((self.phrases[one] for one in places if self.phrases[one].kind == "thing"), None))
        return self._counterpart(thing.meaning)

    # One method per kind of phrase: what it must say of the target.

    def _thing(self, at: int, thing: Thing) -> str:
        group = self._counterpart(thing.meaning)
        colour = self._colour(thing, group)
        word = _known(group.noun.said(thing.register))
        if thing.register != NARROW and group.name == thing.meaning:
            word = thing.word
        many = group.count(colour or None)
        several = many != 1
        said = _known(colour_said(colour, thing.colour_register)) if colour else ""
        phrase = coloured(word, group.name, group.members[0].category, said) if said else word
        size = self._size(thing, group)
        phrase = f"{size} {phrase}".strip()
        if group.noun.unique:
            return f"the {phrase}" if group.noun.definite else phrase
        if several != thing.plural:
            self.crossed[at] = several
        return _determined(thing, phrase, many)

    def _colour(self, thing: Thing, group: Group) -> str:
        if not thing.colour:
            return ""
        if not group.colours:
            raise Untellable
        if thing.colour in group.colours and group.name == thing.meaning:
            return thing.colour
        if len(group.colours) != 1:
            raise Untellable
        return group.colours[0]

    def _size(self, thing: Thing, group: Group) -> str:
        """A size word stays where both are noted as equally large."""
        if not thing.size:
            return ""
        before = {one.attributes for name in self.source.groups if name.name == thing.meaning for one in name.members}
        now = {one.attributes for one in group.members}
        if len(now) != 1 or now == {()} or (before and before != now):
            raise Untellable
        return thing.size

    def _place(self, at: int, phrase: Phrase) -> str:
        name = _known(self.target.place)
        if phrase.meaning not in (self.source.place, name):
            raise Untellable
        if phrase.meaning == name:
            return phrase.text
        place = BACKDROPS.get(name)
        if place is None:
            raise Untellable
        said = {PLAIN: place.at, OTHER: place.also, "named": place_name(name)}
        return said.get(phrase.register, place.riddle)

    def _where(self, at: int, phrase: Phrase) -> str:
        one = _known(self._group_at(at, -1).single)
        now = whereabouts(_known(one.box))
        return now.replace("of the picture", "of the " + phrase.text.rsplit(" ", 1)[1])

    def _relation(self, at: int, phrase: Phrase) -> str:
        before, after = self._group_at(at, -1), self._group_at(at, 1)
        follows = self.phrases[at + 1].text if at + 1 < len(self.phrases) else ""
        subject, other = (after, before) if follows == "it" else (before, after)
        boxes = [_known(_known(group.single).box) for group in (subject, other)]
        now = relation(boxes[0], boxes[1])
        if now == phrase.meaning or (phrase.meaning == NEAR and now != INSIDE):
            return phrase.text
        turned = _TURNED.get(phrase.text.lower(), "")
        means = RELATIONS.get(turned)
        if means is None or not (now == means or (means == NEAR and now != INSIDE)):
            raise Untellable
        return turned

    def _hue(self, at: int, phrase: Phrase) -> str:
        colours = self._group_at(at, -1).colours
        return _known(colour_said(colours[0], phrase.register)) if len(colours) == 1 else _known(None)

    def _action(self, at: int, phrase: Phrase) -> str:
        actors = [group for group in self.source.groups if group.action == phrase.meaning] or [
            group for group in self.target.groups if group.action == phrase.meaning
        ]
        if len(actors) != 1:
            raise Untellable
        actor = self._counterpart(actors[0].name)
        action = _known(actor.action)
        if action == phrase.meaning:
            return phrase.text
        if phrase.register == PLAIN:
            return action
        if action == "standing" and phrase.register == OTHER and actor.noun.wider == "person":
            return STANDING_ON_TWO
        return SAID[action][0 if phrase.register == OTHER else 1] if action in SAID else _known(None)

    def _quote(self, at: int, phrase: Phrase) -> str:
        return f'"{self._written(phrase.text[1:-1])}"'

    def _spelled(self, at: int, phrase: Phrase) -> str:
        return "-".join(self._written(phrase.text.replace("-", "")))

    def _written(self, text: str) -> str:
        bearers = [group for group in self.source.groups if group.text == text]
        if len(bearers) != 1:
            raise Untellable
        return _known(self._counterpart(bearers[0].name).text)

    def _word(self, at: int, phrase: Phrase) -> str:
        if phrase.text.lower() not in _NEUTRAL or (phrase.text.lower() in _TOUCHING and self._between_things(at)):
            raise Untellable
        return phrase.text

    def _between_things(self, at: int) -> bool:
        around = (at - 1, at + 1) if 0 < at < len(self.phrases) - 1 else ()
        return bool(around) and all(self.phrases[one].kind == "thing" for one in around)

    def _mark(self, at: int, phrase: Phrase) -> str:
        return phrase.text

    # What the phrases need around them.

    def _agree(self) -> None:
        """Verbs follow the number of their subject."""
        words = {phrase.text.lower() for phrase in self.phrases if phrase.kind == "word"}
        if self.crossed and words & _REFERRING:
            raise Untellable
        for at, several in self.crossed.items():
            joined = at > 0 and self.phrases[at - 1].text.lower() in ("and", ",")
            self._turn_verb(at + 1, several or joined)
            if at > 1 and self.phrases[at - 2].text.lower() == "there":
                self._turn_verb(at - 1, several)

    def _turn_verb(self, at: int, several: bool) -> None:
        if 0 <= at < len(self.phrases):
            verb = self.phrases[at]
            right = (_OF_SEVERAL if several else _OF_ONE).get(verb.text.lower())
            if right:
                self.edits.append(Edit(verb.start, verb.end, right))

    def _check_named_once(self) -> None:
        """Two phrases for one group ("a man and a woman" for two people) share a number that nobody can divide."""
        named = [(one.meaning, one.colour) for one in self.phrases if isinstance(one, Thing) and not _again(one)]
        if len(set(named)) < len(named):
            raise Untellable

    def _check_nothing_else(self) -> None:
        if "nothing else" in self.text.lower():
            told = {self._counterpart(one.meaning).name for one in self.phrases if one.kind == "thing"}
            if told != {group.name for group in self.target.groups}:
                raise Untellable


def _known(value: T | None) -> T:
    if value is None:
        raise Untellable
    return value


def _again(thing: Thing) -> bool:
    return thing.determiner.lower() == "the"


def _determined(thing: Thing, phrase: str, many: int | None) -> str:
    """The phrase with its determiner, in the right number; the way a number is said stays if it can."""
    said = thing.determiner.lower()
    several = plural(phrase)
    if thing.number is not None:
        return _numbered(thing, phrase, _known(many))
    if said in ("a", "an", "another"):
        if many == 1:
            return a(phrase) if said != "another" else _known(None)
        return f"{number_word(_known(many))} {several}"
    if said in ("the", ""):
        return f"{said} {phrase if many == 1 else several}".strip()
    return a(phrase) if many == 1 else f"{said} {several}"


def _numbered(thing: Thing, phrase: str, many: int) -> str:
    said = thing.determiner.lower()
    exactly = "exactly " if said.startswith("exactly ") else ""
    noun = phrase if many == 1 else plural(phrase)
    if said.removeprefix("exactly ").isdigit():
        return f"{exactly}{many} {noun}"
    if said in GROUPED:
        again = {number: group for group, number in GROUPED.items() if group != "a couple of"}.get(many)
        return f"{said if GROUPED[said] == many else again or number_word(many)} {noun}"
    return f"{exactly}{number_word(many)} {noun}"

"""A description of one image transferred to another: only the words in which the two differ are changed.

The annotations of the new image must support every claim of the text. A word that they do not support (a verb, a colour
that is not annotated) makes the transfer impossible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from crosslens.build.generators.contents import (
    NARROW,
    OTHER,
    PLAIN,
    RIDDLE,
    ImageContents,
    ObjectGroup,
    colour_word,
    counterparts,
    plural,
)
from crosslens.build.generators.phrases import (
    GROUPED,
    INSIDE,
    NEAR,
    RELATIONS,
    NounPhrase,
    Phrase,
    PhraseEdit,
    apply_phrase_edits,
    reader_of,
)
from crosslens.synth import BACKDROPS, PERSON_STANDING, POSE_PHRASES, a, coloured, number_word, relation, setting_name

T = TypeVar("T")

_CLAIMLESS = """
    a all also an and are around at be by can capitals carries close company else exactly found gathered has
    have here image in is it keeps left look looks met nearby nothing of on one our out passing photo photograph
    picture put reading reads says scene see seen sees set shares shows single so somebody someone spells spot
    stage that the their there this to view visible was watched way wears were which with word you
"""
_NEUTRAL = frozenset(_CLAIMLESS.split())
"""Words that claim nothing about an image beyond its phrases."""
_TOUCHING = {"on", "in", "by"}
"""Between two objects these claim contact, and boxes do not tell a cup on a table from one in front of it."""
_OF_SEVERAL = {"is": "are", "has": "have", "was": "were"}
_OF_ONE = {several: singular for singular, several in _OF_SEVERAL.items()}
_REFERRING = {"this", "it", "its", "each", "them", "they", "their", "all"}
_TURNED = {
    "to the left of": "to the right of", "left of": "right of", "on the left of": "on the right of",
    "above": "below", "over": "under", "inside": "next to", "enclosed by": "not far from", "beneath": "above",
}  # fmt: skip
_TURNED |= {turned: relation for relation, turned in _TURNED.items() if relation != "beneath"}


class UnsupportedClaim(Exception):
    """The text claims something that the annotations of the other image do not support."""


def transfer(text: str, source: ImageContents, target: ImageContents, turn: int = 0) -> str | None:
    """The text with every claim adapted to the target; None where that cannot be done.

    ``turn`` selects other counterparts, where an object of the source matches several of the target.
    """
    try:
        return _Transfer(text, source, target, turn).result()
    except UnsupportedClaim:
        return None


def fits(text: str, contents: ImageContents) -> bool:
    """Whether the annotations support every claim of the text."""
    return transfer(text, contents, contents) == text


@dataclass
class _Transfer:
    text: str
    source: ImageContents
    target: ImageContents
    turn: int = 0
    edits: list[PhraseEdit] = field(default_factory=list)
    crossed: dict[int, bool] = field(default_factory=dict)
    """Position of a noun whose number changed between one and several → whether it is several now."""

    def __post_init__(self) -> None:
        self.phrases = reader_of(self.source, self.target).read(self.text)
        self.pairs = counterparts(self.source, self.target, self.turn)

    def result(self) -> str:
        # Two phrases for one group ("a man and a woman" for two people) share a number that cannot be divided.
        references = [
            (phrase.meaning, phrase.colour)
            for phrase in self.phrases
            if isinstance(phrase, NounPhrase) and phrase.determiner.lower() != "the"
        ]
        if len(set(references)) < len(references):
            raise UnsupportedClaim
        for at, phrase in enumerate(self.phrases):
            new = getattr(self, f"_{phrase.kind}")(at, phrase)
            if new != phrase.text:
                self.edits.append(PhraseEdit(phrase.start, phrase.end, new))
        words = {phrase.text.lower() for phrase in self.phrases if phrase.kind == "word"}
        if self.crossed and words & _REFERRING:
            raise UnsupportedClaim
        for at, several in self.crossed.items():  # verbs follow the number of their subject
            joined = at > 0 and self.phrases[at - 1].text.lower() in ("and", ",")
            self._turn_verb(at + 1, several or joined)
            if at > 1 and self.phrases[at - 2].text.lower() == "there":
                self._turn_verb(at - 1, several)
        if "nothing else" in self.text.lower():
            nouns = {self._counterpart(phrase.meaning).name for phrase in self.phrases if phrase.kind == "noun"}
            if nouns != {group.name for group in self.target.groups}:
                raise UnsupportedClaim
        return apply_phrase_edits(self.text, self.edits) if self.edits else self.text

    def _counterpart(self, name: str) -> ObjectGroup:
        # A name that only the target has: the text was transferred to it before.
        return _known(self.pairs.get(name) or self.target.by_name.get(name))

    def _group_at(self, at: int, step: int) -> ObjectGroup:
        """The counterpart of the nearest noun before (step -1) or after (1) a phrase."""
        others = self.phrases[at + 1 :] if step > 0 else reversed(self.phrases[:at])
        return self._counterpart(_known(next((phrase.meaning for phrase in others if phrase.kind == "noun"), None)))

    # One method per kind of phrase: its wording for the target.

    def _noun(self, at: int, noun_phrase: NounPhrase) -> str:
        group = self._counterpart(noun_phrase.meaning)
        colour = noun_phrase.colour
        if colour and not (colour in group.colours and group.name == noun_phrase.meaning):
            colour = _only(group.colours)
        # A narrower word is not known to fit the counterpart, so the plain one is used.
        noun, register = group.noun, noun_phrase.register
        word = _known(noun.riddle) if register == RIDDLE else noun.plain
        if register == OTHER and noun.other:
            word = noun.other[0]
        if register != NARROW and group.name == noun_phrase.meaning:
            word = noun_phrase.word
        many = group.count(colour or None)
        if colour:
            word_for_colour = _known(colour_word(colour, noun_phrase.colour_register))
            word = coloured(word, group.kind, word_for_colour)
        if noun_phrase.size:  # a size word stays where both are annotated as equally large
            source, now = self.source.by_name.get(noun_phrase.meaning), group.attributes
            if len(now) != 1 or now == {()} or (source and source.attributes != now):
                raise UnsupportedClaim
        phrase = f"{noun_phrase.size} {word}".strip()
        if group.noun.unique:
            return f"the {phrase}" if group.noun.definite else phrase
        if (many != 1) != noun_phrase.plural:
            self.crossed[at] = many != 1
        return _determined(noun_phrase, phrase, many)

    def _setting(self, at: int, phrase: Phrase) -> str:
        name = _known(self.target.setting)
        if phrase.meaning == name:
            return phrase.text
        backdrop = _known(BACKDROPS.get(name))
        if phrase.meaning != self.source.setting:
            raise UnsupportedClaim
        wordings = {PLAIN: backdrop.at, OTHER: backdrop.also, "named": setting_name(name)}
        return wordings.get(phrase.register, backdrop.riddle)

    def _position(self, at: int, phrase: Phrase) -> str:
        now = _known(self._group_at(at, -1).position or None)
        return now.strip().replace("of the picture", "of the " + phrase.text.rsplit(" ", 1)[1])

    def _relation(self, at: int, phrase: Phrase) -> str:
        before, after = self._group_at(at, -1), self._group_at(at, 1)
        follows = self.phrases[at + 1].text if at + 1 < len(self.phrases) else ""
        subject, other = (after, before) if follows == "it" else (before, after)
        boxes = [_known(_known(group.single).box) for group in (subject, other)]
        now = relation(boxes[0], boxes[1])
        for wording in (phrase.text, _TURNED.get(phrase.text.lower(), "")):
            meaning = RELATIONS.get(wording.lower())
            if meaning is not None and (meaning == now or (meaning == NEAR and now != INSIDE)):
                return wording
        raise UnsupportedClaim

    def _hue(self, at: int, phrase: Phrase) -> str:
        return _known(colour_word(_only(self._group_at(at, -1).colours), phrase.register))

    def _action(self, at: int, phrase: Phrase) -> str:
        actors = [
            [group for group in image.groups if group.action == phrase.meaning] for image in (self.source, self.target)
        ]
        actor = self._counterpart(_only(actors[0] or actors[1]).name)
        action = _known(actor.action)
        if action == phrase.meaning:
            return phrase.text
        if phrase.register == PLAIN:
            return action
        if action == "standing" and phrase.register == OTHER and actor.noun.wider == "person":
            return PERSON_STANDING
        return _known(POSE_PHRASES.get(action))[0 if phrase.register == OTHER else 1]

    def _quote(self, at: int, phrase: Phrase) -> str:
        return f'"{self._written(phrase.text[1:-1])}"'

    def _spelled(self, at: int, phrase: Phrase) -> str:
        return "-".join(self._written(phrase.text.replace("-", "")))

    def _written(self, text: str) -> str:
        bearer = _only([group for group in self.source.groups if group.text == text])
        return _known(self._counterpart(bearer.name).text)

    def _word(self, at: int, phrase: Phrase) -> str:
        word, around = phrase.text.lower(), [other.kind for other in self.phrases[max(at - 1, 0) : at + 2]]
        if word not in _NEUTRAL or (word in _TOUCHING and around == ["noun", "word", "noun"]):
            raise UnsupportedClaim
        return phrase.text

    def _mark(self, at: int, phrase: Phrase) -> str:
        return phrase.text

    def _turn_verb(self, at: int, several: bool) -> None:
        if 0 <= at < len(self.phrases):
            verb = self.phrases[at]
            right = (_OF_SEVERAL if several else _OF_ONE).get(verb.text.lower())
            if right:
                self.edits.append(PhraseEdit(verb.start, verb.end, right))


def _known(value: T | None) -> T:
    if value is None:
        raise UnsupportedClaim
    return value


def _only(values: Sequence[T]) -> T:
    if len(values) != 1:
        raise UnsupportedClaim
    return values[0]


def _determined(noun_phrase: NounPhrase, phrase: str, many: int | None) -> str:
    """The phrase with its determiner, in the right number; the wording of a number stays if it can."""
    determiner = noun_phrase.determiner.lower()
    several = plural(phrase)
    if noun_phrase.number is not None:
        noun, many = phrase if many == 1 else several, _known(many)
        exactly = "exactly " if determiner.startswith("exactly ") else ""
        if determiner.removeprefix("exactly ").isdigit():
            return f"{exactly}{many} {noun}"
        if determiner in GROUPED:
            again = {number: group for group, number in GROUPED.items() if group != "a couple of"}.get(many)
            return f"{determiner if GROUPED[determiner] == many else again or number_word(many)} {noun}"
        return f"{exactly}{number_word(many)} {noun}"
    if determiner in ("a", "an", "another"):
        if many == 1:
            return a(phrase) if determiner != "another" else _known(None)
        return f"{number_word(_known(many))} {several}"
    if determiner in ("the", ""):
        return f"{determiner} {phrase if many == 1 else several}".strip()
    return a(phrase) if many == 1 else f"{determiner} {several}"

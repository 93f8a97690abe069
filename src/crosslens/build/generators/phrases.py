"""A text taken apart into phrases: things with their number and colour, places, sides, actions, words between."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from crosslens.build.generators.contents import Contents
from crosslens.build.generators.vocabulary import OTHER, PLAIN, RIDDLE, Noun, colour_words, plural
from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.grammar import a, number_word
from crosslens.synth.tasks.action import SAID

SIZES = ("small", "medium", "large", "big", "little", "tiny", "huge", "tall")
GROUPED = {"a lone": 1, "a pair of": 2, "a couple of": 2, "a trio of": 3, "a quartet of": 4, "half a dozen": 6}
_GATHERED = [f"{size}{many} of" for size in ("", "small ", "large ") for many in ("group", "herd", "flock", "bunch")]
_SEVERAL = ("a number of", "a lot of", "lots of", "a few", "several", "some", "many")
VAGUE = (*(f"a {one}" for one in _GATHERED), *_GATHERED, *_SEVERAL)
NUMBERS = {number_word(number): number for number in range(1, 21)}
NEAR, INSIDE = "near", "inside"
RELATIONS = {
    "to the left of": "left", "left of": "left", "on the left of": "left",
    "to the right of": "right", "right of": "right", "on the right of": "right",
    "above": "above", "over": "above", "below": "below", "under": "below", "beneath": "below",
    "inside": INSIDE, "enclosed by": INSIDE, "next to": NEAR, "not far from": NEAR, "near": NEAR,
    "beside": NEAR, "close to": NEAR,
}  # fmt: skip
STANDING_ON_TWO = "upright on both feet"
_NAMED = {
    "open sea": "the open sea",
    "underwater": "the world under water",
    "outer space": "outer space",
    "mountains": "the mountains",
}
_WITH = "hat and scarf|plate|shade|rim|bands|handles|handle|ribbon|blanket|frame|border|handwriting"
_ALREADY_A_PAIR = "scissors|skis|glasses|shears|spectacles|eyeglasses"


@dataclass(frozen=True)
class Phrase:
    """A stretch of a text; ``kind`` says what it is, ``meaning`` what it stands for, ``register`` how it says so."""

    kind: str
    start: int
    end: int
    text: str
    meaning: str = ""
    register: str = PLAIN


@dataclass(frozen=True)
class Thing(Phrase):
    """A noun phrase about something annotated: ``two small red cars``."""

    word: str = ""
    """The noun itself, in the singular."""
    determiner: str = ""
    size: str = ""
    colour: str = ""
    colour_register: str = PLAIN
    plural: bool = False
    noun_start: int = 0
    noun_end: int = 0
    modifies: bool = False
    """It stands before another noun (``train track``), and is not itself what the text speaks of."""

    @property
    def number(self) -> int | None:
        """The number it states; ``a`` states none."""
        said = self.determiner.lower().removeprefix("exactly ")
        if said.isdigit():
            return int(said)
        return GROUPED.get(said, NUMBERS.get(said))


def _either(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(set(words), key=lambda word: (-len(word), word)))


@lru_cache(maxsize=512)
def reader_of(*pictures: Contents) -> Reader:
    """A reader that knows the words for what these pictures hold."""
    return Reader(*pictures)


class Reader:
    """Takes texts apart, knowing the words for what some pictures hold."""

    def __init__(self, *pictures: Contents) -> None:
        self._nouns = {group.name: group.noun for contents in pictures for group in contents.groups}
        self._forms: dict[str, tuple[str, str, str, bool]] = {}
        for contents in pictures:
            for group in contents.groups:
                for form, register, word, several in _all_forms(group.noun):
                    self._forms.setdefault(form.lower(), (group.name, register, word, several))
        self._places = _place_forms()
        self._seen: dict[str, list[Phrase]] = {}
        self._pattern = _pattern(frozenset(self._forms))

    def read(self, text: str) -> list[Phrase]:
        """The phrases of a text, in order; only spaces lie between them."""
        if text not in self._seen:  # the same rivals are held against every text of a picture
            self._seen[text] = list(self._phrases(text))
        return self._seen[text]

    def things(self, text: str) -> list[Thing]:
        """The noun phrases about annotated things."""
        return [phrase for phrase in self.read(text) if isinstance(phrase, Thing)]

    def mentions(self, text: str) -> set[str]:
        """The names of what a text speaks of."""
        return {phrase.meaning for phrase in self.things(text)}

    def noun(self, name: str) -> Noun:
        """The words for a name that the pictures have."""
        return self._nouns[name]

    def _phrases(self, text: str) -> Iterator[Phrase]:
        for found in self._pattern.finditer(text):
            kind, said = next(name for name in _KINDS if found[name] is not None), found[0]
            if kind == "thing":
                yield self._thing(found, text)
                continue
            meaning, register = said, PLAIN
            if kind == "place":
                meaning, register = self._places[said.lower()]
            elif kind == "relation":
                meaning = RELATIONS[said.lower()]
            elif kind == "hue":
                meaning, register = _hues()[said.lower()], RIDDLE
            elif kind == "action":
                meaning, register = _actions()[said.lower()]
            yield Phrase(kind, found.start(), found.end(), said, meaning, register)

    def _thing(self, found: re.Match[str], text: str) -> Thing:
        name, register, word, several = self._forms[found["form"].lower()]
        said = (found["colour"] or found["worn"] or found["part"] or "").lower()
        colour, colour_register = colour_words().get(said, ("", PLAIN))
        determiner = (found["determiner"] or "").lower()
        if plural(word) == word:  # one sheep, two sheep
            several = determiner not in ("a", "an", "the", "one", "1", "a lone", "another", "exactly one")
        thing = Thing(
            "thing", found.start(), found.end(), found[0], name, register, word, found["determiner"] or "",
            (found["size"] or "").lower(), colour, colour_register, several, found.start("form"), found.end("form"),
        )  # fmt: skip
        return replace(thing, modifies=_modifies(thing, text))


_FOLLOWERS = """
    a above across after against all along also among an and are around as at away back be before behind being
    below beside between but by can down during each eat eats flies fly for from front gets goes had has have
    her here his hold holds if in inside into is it its jumps lay laying lays left lie lies like look looks near
    nearby next not of off on onto or out outside over past play plays pose poses rests ride rides right rolls
    run runs sit sits stand stands surrounded swims takes that the their them there they this through to
    together toward towards two under underneath up upon waits walk walks was wear wears were what when where
    which while who whose with within without you
"""
_AFTER_A_NOUN = frozenset(_FOLLOWERS.split())
_KINDS = ("place", "where", "relation", "hue", "action", "thing", "quote", "spelled", "word", "mark")


@lru_cache(maxsize=512)
def _pattern(words: frozenset[str]) -> re.Pattern[str]:
    """What stands in a text, longer readings first: ``under water`` is a place before ``under`` is a side."""
    colours = _colours()
    determiner = (
        rf"(?P<determiner>(?:exactly )?(?:{_either(NUMBERS)}|\d+)"
        rf"|(?:{_either(GROUPED)}|{_either(VAGUE)})(?! (?:{_ALREADY_A_PAIR})\b)|another|an?|the) "
    )
    described = rf"(?:(?P<size>{_either(SIZES)}) )?(?:(?P<colour>{colours}) )?"
    # "in red" is a person's clothes; "with a red shade" and the like a part of a thing.
    after = rf"(?: in (?P<worn>{colours})\b| (?:with|on)(?: an?)? (?P<part>{colours}) (?:{_WITH})\b)"
    return re.compile(
        rf"(?P<place>\b(?:{_either(_place_forms())})\b)"
        r"|(?P<where>\b(?:in the (?:upper|lower)(?: left| right)? part|on the (?:left|right) side|in the middle)"
        r" of the (?:picture|photo|image)\b)"
        rf"|(?P<relation>\b(?:{_either(RELATIONS)})\b)"
        rf"|(?P<hue>\b(?:{_either(_hues())})\b)"
        rf"|(?P<action>\b(?:{_either(_actions())})\b)"
        rf"|(?P<thing>\b(?:{determiner})?{described}(?P<form>{_either(words) or '(?!)'})\b{after}?)"
        r'|(?P<quote>"[^"]*")|(?P<spelled>\b[A-Z](?:-[A-Z])+\b)'
        r"|(?P<word>[\w'’-]+)|(?P<mark>[^\w\s])",
        re.IGNORECASE,
    )


def _modifies(thing: Thing, text: str) -> bool:
    """Whether a noun is probably only the first half of one: of ``train track``, of ``five car train``."""
    odd = thing.determiner.lower() in ("a", "an") if thing.plural else (thing.number or 1) > 1
    if odd:
        return True
    follows = re.match(r" ([a-z][\w'-]*)", text[thing.end :], re.IGNORECASE)
    word = follows[1].lower() if follows else ""
    return bool(word) and word not in _AFTER_A_NOUN and not word.endswith(("ing", "ed", "ly"))


def _all_forms(words: Noun) -> Iterator[tuple[str, str, str, bool]]:
    """Singular and plural of every word: form, register, singular, whether it is the plural."""
    for word, register in words.forms():
        yield word, register, word, False
        if plural(word) != word:
            yield plural(word), register, word, True


def place_name(name: str) -> str:
    """A place with its article, if it takes one."""
    return _NAMED.get(name) or a(name)


@lru_cache(maxsize=1)
def _hues() -> dict[str, str]:
    return {word: colour for word, (colour, register) in colour_words().items() if register == RIDDLE}


def _colours() -> str:
    return _either(word for word, (_, register) in colour_words().items() if register != RIDDLE)


@lru_cache(maxsize=1)
def _place_forms() -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for name, place in BACKDROPS.items():
        forms = (
            (place.at, PLAIN),
            (place.also, OTHER),
            (place.riddle, RIDDLE),
            (f"the {name}", "the"),
            (place_name(name), "named"),  # last: "the mountains" is the name itself
        )
        found |= {form.lower(): (name, register) for form, register in forms}
    return found


@lru_cache(maxsize=1)
def _actions() -> dict[str, tuple[str, str]]:
    found = {STANDING_ON_TWO: ("standing", OTHER)}
    for action, (other, story) in SAID.items():
        found |= {action: (action, PLAIN), other: (action, OTHER), story: (action, RIDDLE)}
    return found

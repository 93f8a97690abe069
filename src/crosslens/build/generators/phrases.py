"""A text taken apart into phrases (nouns with number and colour, settings, sides, actions), and edited by phrase."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from crosslens.build.generators.contents import COLOUR_MEANINGS, OTHER, PLAIN, RIDDLE, ImageContents, plural
from crosslens.synth import BACKDROPS, PERSON_STANDING, POSE_PHRASES, a, number_word, setting_name

SIZES = ("small", "medium", "large", "big", "little", "tiny", "huge", "tall")
GROUPED = {"a lone": 1, "a pair of": 2, "a couple of": 2, "a trio of": 3, "a quartet of": 4, "half a dozen": 6}
_GATHERED = [f"{size}{many} of" for size in ("", "small ", "large ") for many in ("group", "herd", "flock", "bunch")]
_SEVERAL = ("a number of", "a lot of", "lots of", "a few", "several", "some", "many")
VAGUE = (*(f"a {words}" for words in _GATHERED), *_GATHERED, *_SEVERAL)
NUMBERS = {number_word(number): number for number in range(1, 21)}
NEAR, INSIDE = "near", "inside"
RELATIONS = {
    "to the left of": "left of", "left of": "left of", "on the left of": "left of",
    "to the right of": "right of", "right of": "right of", "on the right of": "right of",
    "above": "above", "over": "above", "below": "below", "under": "below", "beneath": "below",
    "inside": INSIDE, "enclosed by": INSIDE, "next to": NEAR, "not far from": NEAR, "near": NEAR,
    "beside": NEAR, "close to": NEAR,
}  # fmt: skip
_WITH = "hat and scarf|plate|shade|rim|bands|handles|handle|ribbon|blanket|frame|border|handwriting"
_ALREADY_A_PAIR = "scissors|skis|glasses|shears|spectacles|eyeglasses"


_SETTINGS = {
    form.lower(): (name, register)
    for name, backdrop in BACKDROPS.items()
    for form, register in (
        (backdrop.at, PLAIN),
        (backdrop.also, OTHER),
        (backdrop.riddle, RIDDLE),
        (f"the {name}", "the"),
        (setting_name(name), "named"),  # last: "the mountains" is the name itself
    )
}
_ACTIONS = {PERSON_STANDING: ("standing", OTHER)} | {
    form: (action, register)
    for action, (other, story) in POSE_PHRASES.items()
    for form, register in ((action, PLAIN), (other, OTHER), (story, RIDDLE))
}
_MEANINGS = {
    "setting": _SETTINGS,
    "relation": {form: (relation, PLAIN) for form, relation in RELATIONS.items()},
    "hue": {word: meaning for word, meaning in COLOUR_MEANINGS.items() if meaning[1] == RIDDLE},
    "action": _ACTIONS,
}
"""For each kind of phrase its wordings, with what they mean and their register."""


@dataclass(frozen=True)
class Phrase:
    """A part of a text: its ``kind``, its ``meaning``, and the ``register`` of its wording."""

    kind: str
    start: int
    end: int
    text: str
    meaning: str = ""
    register: str = PLAIN


@dataclass(frozen=True)
class NounPhrase(Phrase):
    """A noun phrase about an annotated object: ``two small red cars``."""

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
    """Whether it only modifies another noun (``train track``), which is what the text mentions."""

    @property
    def number(self) -> int | None:
        """The number it states; ``a`` states none."""
        number = self.determiner.lower().removeprefix("exactly ")
        if number.isdigit():
            return int(number)
        return GROUPED.get(number, NUMBERS.get(number))


def _either(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(set(words), key=lambda word: (-len(word), word)))


@lru_cache(maxsize=512)
def reader_of(*images: ImageContents) -> PhraseReader:
    """A reader that knows the words for what is in these images."""
    return PhraseReader(*images)


class PhraseReader:
    """Takes texts apart, knowing the words for what is in some images."""

    def __init__(self, *images: ImageContents) -> None:
        self.nouns = {group.name: group.noun for contents in images for group in contents.groups}
        self._forms: dict[str, tuple[str, str, str, bool]] = {}
        for group in (group for contents in images for group in contents.groups):
            for word, register in group.noun.forms():
                for form in (word, plural(word)):
                    self._forms.setdefault(form.lower(), (group.name, register, word, form != word))
        self._seen: dict[str, list[Phrase]] = {}
        self._patterns = _BEFORE_NOUNS, _nouns(frozenset(self._forms)), _AFTER_NOUNS

    def read(self, text: str) -> list[Phrase]:
        """The phrases of a text, in order; only spaces lie between them."""
        if text not in self._seen:  # the same rivals are compared with every text of an image
            phrases = self._seen[text] = list[Phrase]()
            place = 0
            while place < len(text):
                if text[place].isspace():
                    place += 1
                    continue
                tried = (pattern.match(text, place) for pattern in self._patterns)
                match = next(match for match in tried if match)  # the last one matches any word or mark
                place = match.end()
                kind = match.lastgroup or ""  # of the groups within a noun phrase the outer one ends last
                if kind == "noun":
                    phrases.append(self._noun_phrase(match, text))
                else:
                    meaning, register = _MEANINGS[kind][match[0].lower()] if kind in _MEANINGS else (match[0], PLAIN)
                    phrases.append(Phrase(kind, match.start(), match.end(), match[0], meaning, register))
        return self._seen[text]

    def noun_phrases(self, text: str) -> list[NounPhrase]:
        """The noun phrases about annotated objects."""
        return [phrase for phrase in self.read(text) if isinstance(phrase, NounPhrase)]

    def mentions(self, text: str) -> set[str]:
        """The names of the objects that a text mentions."""
        return {phrase.meaning for phrase in self.noun_phrases(text)}

    def _noun_phrase(self, match: re.Match[str], text: str) -> NounPhrase:
        name, register, word, several = self._forms[match["form"].lower()]
        colour_text = (match["colour"] or match["worn"] or match["part"] or "").lower()
        colour, colour_register = COLOUR_MEANINGS.get(colour_text, ("", PLAIN))
        determiner = (match["determiner"] or "").lower()
        if plural(word) == word:  # one sheep, two sheep
            several = determiner not in ("a", "an", "the", "one", "1", "a lone", "another", "exactly one")
        phrase = NounPhrase(
            "noun", match.start(), match.end(), match[0], name, register, word, match["determiner"] or "",
            (match["size"] or "").lower(), colour, colour_register, several, match.start("form"), match.end("form"),
        )  # fmt: skip
        # A noun is probably only the first half of one: of ``train track``, of ``five car train``.
        follows = re.match(r" ([a-z][\w'-]*)", text[phrase.end :], re.IGNORECASE)
        word = follows[1].lower() if follows else ""
        leads = bool(word) and word not in _AFTER_A_NOUN and not word.endswith(("ing", "ed", "ly"))
        disagrees = determiner in ("a", "an") if several else (phrase.number or 1) > 1
        return replace(phrase, modifies=disagrees or leads)


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


_COLOURS = _either(word for word, (_, register) in COLOUR_MEANINGS.items() if register != RIDDLE)
_KNOWN = {kind: rf"(?P<{kind}>\b(?:{_either(wordings)})\b)" for kind, wordings in _MEANINGS.items()}
# Longer readings come first: "under water" is a setting before "under" is a side.
_BEFORE_NOUNS = re.compile(
    rf"{_KNOWN['setting']}"
    r"|(?P<position>\b(?:in the (?:upper|lower)(?: left| right)? part|on the (?:left|right) side|in the middle)"
    r" of the (?:picture|photo|image)\b)"
    rf"|{_KNOWN['relation']}|{_KNOWN['hue']}|{_KNOWN['action']}",
    re.IGNORECASE,
)
_AFTER_NOUNS = re.compile(
    r'(?P<quote>"[^"]*")|(?P<spelled>\b[A-Z](?:-[A-Z])+\b)|(?P<word>[\w\'’-]+)|(?P<mark>[^\w\s])', re.IGNORECASE
)


@lru_cache(maxsize=512)
def _nouns(words: frozenset[str]) -> re.Pattern[str]:
    """Noun phrases about these words. Other phrases are patterns of their own: compiling them takes longer."""
    determiner = (
        rf"(?P<determiner>(?:exactly )?(?:{_either(NUMBERS)}|\d+)"
        rf"|(?:{_either(GROUPED)}|{_either(VAGUE)})(?! (?:{_ALREADY_A_PAIR})\b)|another|an?|the) "
    )
    described = rf"(?:(?P<size>{_either(SIZES)}) )?(?:(?P<colour>{_COLOURS}) )?"
    # "in red" is a person's clothes; "with a red shade" and the like a part of an object.
    after = rf"(?: in (?P<worn>{_COLOURS})\b| (?:with|on)(?: an?)? (?P<part>{_COLOURS}) (?:{_WITH})\b)"
    form = _either(words) or "(?!)"
    return re.compile(rf"(?P<noun>\b(?:{determiner})?{described}(?P<form>{form})\b{after}?)", re.IGNORECASE)


_ARTICLE = re.compile(r"\b(an?) $", re.IGNORECASE)


class PhraseEdit(NamedTuple):
    """Replace the characters ``start`` to ``end`` (excluded) by ``text``."""

    start: int
    end: int
    text: str


def apply_phrase_edits(text: str, edits: Iterable[PhraseEdit]) -> str:
    """The text with all edits made; articles, capitals and spaces follow what is changed."""
    result, position = "", 0
    for edit in sorted(edits):
        result += text[position : edit.start]
        begins = not result.strip() or result.rstrip()[-1:] in ".!?"
        new = edit.text[:1].upper() + edit.text[1:] if begins else edit.text
        result = agree(result, (new + text[edit.end :]).lstrip()) + new
        position = edit.end
    return tidy(result + text[position:])


def agree(before: str, follows: str) -> str:
    """``before`` with the ``a`` or ``an`` at its end that fits the next word."""
    article, word = _ARTICLE.search(before), re.match(r"[\w'-]+", follows)
    if not article or not word:
        return before
    right = a(word[0]).split(" ")[0]
    return before[: article.start()] + (right.capitalize() if article[1][0].isupper() else right) + " "


def tidy(text: str) -> str:
    """Single spaces, none before a mark, a capital at the start."""
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r" ([,.;:!?])", r"\1", text)
    return text[:1].upper() + text[1:]

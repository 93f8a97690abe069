"""One fact of a caption made false, by word lists: a colour, a number, a side, a size, an action, a written word.

An edit must contradict the caption, and what else is said of its image: a colour becomes a clearly different one that
no caption of the image names, a number differs by two at least, a standing man runs. Where a word may mean something
else (*an orange*, *the left hand*, *under water*, *two years*) it is left alone: a missed caption costs nothing, a
wrong edit would accuse a model that reads well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from crosslens.language import NUMBERS, is_phrase, is_plural, number_word, takes_an, word_set
from crosslens.perturbations import cased_like

_WORD = re.compile(r"\w+(?:['’\-]\w+)*|[^\w\s]")


class Words:
    """A caption in words and punctuation, in lower case, with their positions; beyond its ends are empty words."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans = tuple(match.span() for match in _WORD.finditer(text))
        self.lower = tuple(text[start:end].lower() for start, end in self.spans)

    def __len__(self) -> int:
        return len(self.lower)

    def __getitem__(self, position: int) -> str:
        return self.lower[position] if 0 <= position < len(self.lower) else ""

    def written(self, position: int) -> str:
        """A word with its capitals."""
        start, end = self.spans[position]
        return self.text[start:end]

    def replaced(self, first: int, last: int, new: str) -> str:
        """The text with the words from ``first`` to ``last`` replaced; an *a* before them follows the new sound."""
        start, end = self.spans[first][0], self.spans[last][1]
        before, article = self.text[:start], self[first - 1]
        if article in ("a", "an"):
            at = self.spans[first - 1]
            written = cased_like(self.text[at[0] : at[1]], "an" if takes_an(new) else "a")
            before = self.text[: at[0]] + written + self.text[at[1] : start]
        return before + cased_like(self.text[start:end], new) + self.text[end:]


class Use(NamedTuple):
    """The words ``first`` to ``last`` state a fact; with any of ``options`` in their place it would be false."""

    first: int
    last: int
    value: str
    options: tuple[str, ...]
    sort: str = ""


Said = frozenset[str]
"""All words of all captions of an image, in lower case: what is said of it is no edit that contradicts."""
FindUses = Callable[[Words, Said], Iterator[Use]]


@dataclass(frozen=True)
class Fact:
    """A kind of fact that captions state. ``stated`` matches every word that an edit replaces or puts in."""

    name: str
    plural: str
    changed: str
    uses: FindUses
    stated: re.Pattern[str]

    def edited(
        self, words: Words, said: Said, used: Counter[str], stream: np.random.Generator
    ) -> tuple[str, str] | None:
        """The caption with one fact made false, by words that captions use, and its sort; None where it states none."""
        quoted = [match.span() for match in _QUOTED.finditer(words.text)] if self.name != "text" else []
        uses = [
            use
            for use in self.uses(words, said)
            if self._options(use, used) and not any(start < words.spans[use.first][0] < end for start, end in quoted)
        ]
        if not uses:
            return None
        use = uses[int(stream.integers(len(uses)))]
        options = self._options(use, used)
        weights = np.array([1 + used[option] for option in options], np.float64)
        option = options[int(stream.choice(len(options), p=weights / weights.sum()))]
        return words.replaced(use.first, use.last, option), use.sort

    def _options(self, use: Use, used: Counter[str]) -> tuple[str, ...]:
        if use.options:
            return use.options
        plain = use.value.lower()
        return tuple(text for text in used if text.lower() not in plain and plain not in text.lower())

    def without(self, text: str) -> str:
        """The text as a model sees it that does not read these facts."""
        return re.sub(r"\ban\b", "a", " ".join(self.stated.sub(" ", text).split()))


def _any_of(words: str | tuple[str, ...]) -> re.Pattern[str]:
    listed = sorted(words.split() if isinstance(words, str) else words, key=len, reverse=True)
    return re.compile(rf"(?<![\w'-])(?:{'|'.join(listed)})(?![\w'-])", re.IGNORECASE)


_PERSONS = word_set(
    """man men woman women boy boys girl girls guy guys male males female females lady ladies person persons people
    child children kid kids baby toddler gentleman couple american americans player players team family folks individual
    individuals hair haired haird african fellow youth teen"""
)
FUNCTION_WORDS = word_set(
    """a about above across after against along also am among an and another any are around as at away back be because
    been before behind being below beneath beside besides between both but by can do does down during each either else
    every for from had has have he her here hers him his how i if in inside into is it its just like many may me more
    most much my near nearby next no not of off on one only onto or other others our out outside over own past per same
    she so some such than that the their them then there these they this those through to together too toward towards
    two under underneath until up upon very was we were what when where which while who whose why will with within
    without you your himself herself itself themselves alongside amongst amid via where's"""
)


# Colours
_FAMILIES = {
    "red": "red scarlet crimson maroon burgundy ruby rust", "orange": "orange tangerine peach coral amber",
    "yellow": "yellow gold golden canary mustard blond blonde", "green": "green emerald olive lime greenish",
    "blue": "blue azure navy turquoise teal aqua bluish", "purple": "purple violet lavender magenta lilac plum",
    "pink": "pink fuchsia rose salmon magenta", "brown": "brown chestnut tan beige khaki chocolate bronze",
    "black": "black ebony dark", "white": "white ivory cream pale", "gray": "gray grey silver slate charcoal",
}  # fmt: skip
_NEAR = {
    "red": "orange pink purple brown", "orange": "red yellow brown pink", "yellow": "orange white green brown",
    "green": "yellow blue gray", "blue": "green purple gray black", "purple": "blue pink red",
    "brown": "red orange yellow gray black", "pink": "red purple orange white", "black": "brown gray blue",
    "white": "gray yellow pink", "gray": "white black blue brown green",
}  # fmt: skip
_FAMILY_OF = {word: family for family, words in _FAMILIES.items() for word in words.split()}
COLOUR_WORDS = {family: family for family in _FAMILIES} | {"grey": "gray"}
_PICTURES = word_set("photo photograph picture image pic shot film movie video print still portrait photography")
_NO_COLOUR_BEFORE = word_set(
    """juice wine tea pepper peppers belt card light lights onion onions cabbage tie meat bay sox house water board
    boards jacket's bean beans slice slices peel tree trees grove soda chips rice bread chocolate cheese berries berry
    jay squash potatoes potato eyed berets cross ray"""
)


def _colours(words: Words, said: Said) -> Iterator[Use]:
    families = {_FAMILY_OF[word] for word in said if word in _FAMILY_OF}
    for at, word in enumerate(words.lower):
        if word in COLOUR_WORDS and is_colour(words, at):
            family = COLOUR_WORDS[word]
            far = set(_FAMILIES) - families - {family} - set(_NEAR[family].split())
            if far:
                yield Use(at, at, family, tuple(sorted(far)))


def is_colour(words: Words, at: int) -> bool:
    """Whether the word at a position says what colour a thing has."""
    word, after, before = words[at], words[at + 1], words[at - 1]
    name = at > 0 and words.written(at)[:1].isupper() and not words.text.isupper()
    if name or after in _PERSONS or after in _NO_COLOUR_BEFORE or words[at + 2] in _PICTURES or after in _PICTURES:
        return False
    if after == "and" and (words[at + 3] in _PICTURES or words[at + 3] in _PERSONS):
        return False
    if before == "and" and words[at - 2] in COLOUR_WORDS and (after in _PICTURES or not after.isalpha()):
        return False  # in black and white
    if word == "orange" and (after in FUNCTION_WORDS or not after.isalpha() or after in COLOUR_WORDS):
        return False
    return not (after.isalpha() and after not in FUNCTION_WORDS and is_phrase(f"{word} {after}"))


# Numbers
_UNITS = word_set(
    """years year feet foot inches inch hours hour minutes minute seconds second miles times days weeks months ways way
    lane lanes story stories storey tier tiers levels level pieces parts halves different colors colours clock point
    points dollars kinds types thirds quarters o'clock meters metres yards pounds degrees percent plus minus lines toned
    units steps numbers characters letters words pairs pm am lengths ups thumbs glasses scissors pants shorts jeans
    sunglasses goggles jets teams sets rows groups handed legged wheeled hands arms legs feet eyes sides"""
)
_COUNTED_OTHERWISE = word_set("one each either some all any none both half neither most")
NUMBERS_READ = {word: number for number, word in enumerate(NUMBERS) if 2 <= number <= 12}
_LARGEST_PHRASE = 3


def _counts(words: Words, said: Said) -> Iterator[Use]:
    numbers = {number_word(word) for word in said}
    for at, word in enumerate(words.lower):
        value = NUMBERS_READ.get(number_word(word), 0)
        if value and counts_nouns(words, at):
            far = [
                (number, other)
                for other, number in NUMBERS_READ.items()
                if abs(number - value) >= 2 and max(number, value) >= 1.5 * min(number, value) and number <= 9
            ]
            options = tuple(str(number) if word.isdecimal() else other for number, other in far if other not in numbers)
            if options:
                yield Use(at, at, number_word(word), options)


def counts_nouns(words: Words, at: int) -> bool:
    """Whether the number at a position says how many of some thing there are."""
    before = words[at - 1]
    if before in (
        "number",
        "no",
        "#",
        "top",
        "page",
        "-",
        "/",
        "$",
        ".",
        "+",
        "=",
        "than",
        "least",
        "about",
        ":",
        "'",
        '"',
    ):
        return False
    if (before == "of" and words[at - 2] in _COUNTED_OTHERWISE) or (
        before == "the" and words[at - 2] in ("of", "between")
    ):
        return False
    if (
        before in NUMBERS_READ
        or before in ("or", "to", "between", "one", "into", "in")
        or words[at + 1] in ("or", "and", "of")
    ):
        return False
    for position in range(at + 1, at + 2 + _LARGEST_PHRASE):
        word = words[position]
        if (
            word in _UNITS
            or word in FUNCTION_WORDS
            or not word.replace("-", "").isalpha()
            or ("-" in word and position == at + 1)
        ):
            return False
        if word in ("men", "women", "children", "people"):
            return True
        if word.endswith("s") and _is_plural_noun(word):
            behind = words[position + 1]
            return behind not in _UNITS and behind not in ("of",)
    return False


@lru_cache(maxsize=1 << 14)
def _is_plural_noun(word: str) -> bool:
    return is_plural(word) and word not in ("grass", "glass", "dress", "across", "his", "its", "is")


# Positions
_SIDE_NOUNS = word_set("side part corner half edge portion section")
_BODY = word_set("hand arm leg foot eye ear shoulder knee paw wing fist thumb hands wrist elbow cheek wheel")
_NOT_UNDER = word_set(
    """water sky skies cloud clouds sun sunlight light lights moon stars surface construction sea ocean waves sunset
    weather supervision conditions water's attack canopy rain snow sea peaks ground age year way wraps night
    sunny arms arm"""
)
_NOT_BEHIND = word_set("him her them it himself herself back backs head bars wheel scenes time camera ear ears plate")
_NOT_OVER = word_set(
    "shoulder shoulders head heads face edge side eyes top world ear ears years place water wall arm arms"
)
_DETERMINERS = word_set("a an the his her its their another two three some one")
_HAPPEN_OVER = word_set(
    "jumps jumping jumped leaps leaping leaped flies flying hangs hanging jump leap fly soars soaring"
)


BETWEEN = "of two things (left, right, above or below)"
"""The sort of position of one thing to another that only order and direction tell."""
_OPPOSITE = {
    "left": "right", "upper": "lower", "top": "bottom", "background": "foreground", "above": "below",
    "on top of": "under", "in front of": "behind", "inside": "outside",
}  # fmt: skip
_OPPOSITE |= {there: here for here, there in _OPPOSITE.items()} | dict.fromkeys(("underneath", "beneath"), "on top of")
_OPPOSITE["over"] = "under"


def _positions(words: Words, said: Said) -> Iterator[Use]:
    del said  # captions of one image state the same relation from both ends: left of, right of
    for at in range(len(words)):
        last = at + 2 if words.lower[at : at + 3] in (("on", "top", "of"), ("in", "front", "of")) else at
        place = " ".join(words.lower[at : last + 1])
        if place in _OPPOSITE:
            of_thing = place in ("left", "right") and words[at + 1] == "of" and words[at - 2] != "on"
            sort = BETWEEN if of_thing else _BETWEEN.get(place, "in the picture")
            if (_between if place in _BETWEEN else _in_picture)(words, at):
                yield Use(at, last, place, (_OPPOSITE[place],), sort)


_BETWEEN = dict.fromkeys(("above", "below", "under", "underneath", "beneath", "over", "on top of"), BETWEEN)
_BETWEEN |= {"inside": "inside", "outside": "inside", "in front of": "in front", "behind": "in front"}


def _in_picture(words: Words, at: int) -> bool:
    """Whether a word names a part of the picture or of a thing: *on the left side*, *in the lower right part*."""
    word, before, after, two = words[at], words[at - 1], words[at + 1], words[at + 2]
    side = after in _SIDE_NOUNS or (after in ("left", "right", "hand") and two in _SIDE_NOUNS)
    if word in ("left", "right"):
        ends = after in FUNCTION_WORDS or not after.isalpha()
        there = before == "the" and words[at - 2] in ("on", "to", "at") and ends
        possessed = before in ("his", "her", "their", "its", "my", "your", "a")
        return (side or there or (after == "of" and before != "the")) and not possessed and after not in _BODY
    if word in ("upper", "lower"):
        return side and "body" not in (after, two)
    if word in ("top", "bottom"):
        return before == "the" and words[at - 2] in ("at", "near", "in") and (side or after == "of")
    return before == "the" and words[at - 2] == "in"


def _between(words: Words, at: int) -> bool:
    """Whether a word says where one thing is to another, which is named behind it."""
    word, before, after = words[at], words[at - 1], words[at + 1]
    determined, nouns = after in _DETERMINERS, {words[at + step] for step in range(1, 5)}
    if word in ("above", "below"):
        high = nouns & (_NOT_UNDER | _BODY | {"head", "heads", "waist"})
        return determined and before not in ("from", "the") and not high
    if word in ("under", "underneath", "beneath"):
        return determined and not nouns & _NOT_UNDER
    if word == "over":
        noun = before not in FUNCTION_WORDS and not before.endswith("ing") and before.isalpha()
        return after in ("a", "an") and not nouns & _NOT_OVER and (before in _HAPPEN_OVER or (noun and at <= 3))
    if word == "behind":
        return determined and before not in ("from", "left") and not nouns & _NOT_BEHIND
    if word in ("inside", "outside"):
        bound = before in ("the", "an", "on", "from", "side", "-", "is") or nouns & {"out", "of"}
        return not bound and (determined or not after.isalpha())
    return True


_POSITION_WORDS = (
    "left", "right", "upper", "lower", "top", "bottom", "background", "foreground", "above", "below", "on top of",
    "under", "underneath", "beneath", "over", "in front of", "behind", "inside", "outside",
)  # fmt: skip


# Sizes
_LARGE, _SMALL = ("big", "large", "huge", "giant", "enormous", "gigantic"), ("small", "tiny", "little")
_NO_SIZE_BEFORE = (
    word_set(
        """group groups crowd crowds bit league amount number portion body top rig screen ben apple toe dipper wheel
        smile bird grin kid party event scale city town air brother sister one ones by time game shot while water snow
        food breed foot deal way area quantity variety selection array collection pile talk wave waves splash jump"""
    )
    | _PERSONS
)


def _sizes(words: Words, said: Said) -> Iterator[Use]:
    for at, word in enumerate(words.lower):
        if word not in ("big", "large", "huge", "small", "tiny"):
            continue
        noun = [words[at + step] for step in range(1, 4)]
        others = set(_SMALL if word in _LARGE else _LARGE)
        stated = {"small", "tiny", "little", "miniature", "mini", "smaller"} if word in _LARGE else {
            *_LARGE, "larger", "bigger", "massive", "great", "tall", "oversized"
        }  # fmt: skip
        plain = noun[0].isalpha() and noun[0] not in FUNCTION_WORDS and noun[0] not in (*_LARGE, *_SMALL)
        if said & stated or not plain or set(noun[:2]) & _NO_SIZE_BEFORE:
            continue
        if not is_phrase(f"{word} {noun[0]}"):
            yield Use(at, at, word, tuple(sorted(others - {"little", "giant", "gigantic", "enormous"})))


# Actions
_ACTIONS = {
    "run": "running runs jogging jogs sprinting sprints racing races", "walk": "walking walks strolling strolls",
    "jump": "jumping jumps leaping leaps", "swim": "swimming swims", "climb": "climbing climbs",
    "dance": "dancing dances", "sit": "sitting sits seated", "stand": "standing stands",
    "sleep": "sleeping sleeps asleep lying lies laying lays resting rests", "fly": "flying flies",
    "ride": "riding rides", "ski": "skiing skis", "surf": "surfing surfs", "skate": "skating skates",
    "eat": "eating eats",
}  # fmt: skip
_ACTION_OF = {form: action for action, forms in _ACTIONS.items() for form in forms.split()}
_CONTRARY = {
    "run": "sit sleep", "walk": "sit sleep", "jump": "sit sleep", "swim": "stand dance", "climb": "sleep sit",
    "dance": "sleep sit", "sit": "run jump swim", "stand": "run sleep swim", "sleep": "run jump walk",
    "fly": "sit sleep",
}  # fmt: skip
_DONE_TO_OTHERS = word_set("fly climb jump run walk")
_NOT_AN_ACTION = word_set(
    """the of in at a an that bleacher concession rock water shoes shorts suit pool pools trunks stick area bag stream
    it race"""
)


def _actions(words: Words, said: Said) -> Iterator[Use]:
    done = {_ACTION_OF[word] for word in said if word in _ACTION_OF}
    done |= {word for word in said if word in _ACTIONS}
    done |= {"sit"} if said & {"bench", "chair"} else set()
    done |= {"sleep"} if said & {"lie", "lay", "bed"} else set()
    for at, word in enumerate(words.lower):
        action = _ACTION_OF.get(word, "")
        forms = word.endswith("ing")
        if action not in _CONTRARY or not (forms or word.endswith("s")):
            continue
        before, after = words[at - 1], words[at + 1]
        joined = {"-"} | _NOT_AN_ACTION - {"the", "of", "in", "at", "a", "an", "that"}
        if before in _NOT_AN_ACTION or before == "-" or after in joined:
            continue
        if not forms and (before in FUNCTION_WORDS or not before.isalpha() or after in ("of", "and", "")):
            continue
        if action in _DONE_TO_OTHERS and after in ("a", "an", "the", "his", "her"):
            continue  # a kite that somebody flies, a dog that is walked
        options = tuple(
            _ACTIONS[other].split()[0 if forms else 1] for other in _CONTRARY[action].split() if other not in done
        )
        if options:
            yield Use(at, at, action, options)


# Written words
_QUOTED = re.compile(r"(?:\"|“)\s*([^\"“”]{1,40}?)\s*(?:\"|”)")


def _written(words: Words, said: Said) -> Iterator[Use]:
    for match in _QUOTED.finditer(words.text):
        inside = [at for at, (start, end) in enumerate(words.spans) if match.start(1) <= start and end <= match.end(1)]
        if inside:
            yield Use(inside[0], inside[-1], words.text[words.spans[inside[0]][0] : words.spans[inside[-1]][1]], ())


FACTS = (
    Fact("colour", "colours", "a colour", _colours, _any_of(" ".join(_FAMILIES.values()))),
    Fact("count", "numbers", "a number", _counts, _any_of((*NUMBERS_READ, *map(str, range(2, 13))))),
    Fact("position", "positions", "a position", _positions, _any_of(_POSITION_WORDS)),
    Fact("action", "actions", "an action", _actions, _any_of(" ".join(_ACTIONS.values()))),
    Fact("size", "sizes", "a size", _sizes, _any_of((*_LARGE, *_SMALL))),
    Fact("text", "written words", "a written word", _written, _QUOTED),
)
"""What a word or two of a caption state, in the order in which it is shown."""

"""Where a caption says what colour something has: not every *orange* is a colour."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from crosslens.language.colours import Colour, colours
from crosslens.language.mending import is_phrase
from crosslens.perturb.caption import Caption, Token
from crosslens.perturb.description import in_phrase, kinds_of, noun_described, word_set

BASIC = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "gray")
"""What may follow *light* or *very*, and stand before *-haired*."""

_MOST_WORDS = 3
_SHADES = word_set("bright brightly dark deep dull faded light medium neon pale pastel soft vivid dusty dirty")
_WORN_AFTER = word_set("in wearing wears wear wore painted")
_AND = frozenset({"and", "&", ",", "or"})
_JOINED_TO = word_set("haired colored coloured clad painted striped tiled roofed checkered trimmed suited shirted")
_PICTURES = word_set("""photo photograph picture image pic shot photography film movie video portrait snapshot print
    still print illustration drawing sketch""")
_EASY_THINGS = frozenset({"orange", "gold", "silver", "tan"})

_NOT_BEFORE: dict[str, frozenset[str]] = {
    colour: word_set(nouns)
    for colour, nouns in {
        "black": "belt market hole magic eye ice pepper bean coffee tea tie sabbath friday olive pudding label",
        "blue": "collar cheese jay moon ray angel chip",
        "brown": "rice sugar nose bread",
        "cream": "cheese cake pie puff soup sauce pitcher filling",
        "gold": "medal medalist leaf rush mine standard finch fish coin",
        "golden": "retriever gate age eagle arch hour globe delicious bear",
        "green": "bean card thumb tea onion party grocer pepper pea belt bay lantern",
        "navy": "officer uniform ship base man sailor seal guy bean jet plane vessel personnel blues soldier",
        "olive": "oil tree branch garden",
        "orange": """juice slice wedge peel half segment tree grove section piece marmalade drink soda
        sauce chicken rind zest crush fruit quarter blossom bowl crate county""",
        "pink": "floyd panther slip eye lady salt",
        "purple": "heart",
        "red": "wine bull sox cross pepper onion meat eye tape cabbage panda herring sauce snapper",
        "rose": "bush garden petal bowl bud tree bouquet parade hip",
        "silver": "medal medalist ware fox lining birch",
        "white": "water wine rice bread noise board trash collar sox castle meat pepper tiger bean wolf",
        "yellow": "pages page squash belt cab pepper onion lab",
    }.items()
}
"""Beside WordNet's compounds: nouns that make something else of the colour before them."""


class ColourUse(NamedTuple):
    """A colour in a caption: its tokens from ``first`` to ``last``, its value, and the noun that has it, if named.

    ``plain``: only a basic colour can stand here. ``beside``: the other colours of the same thing.
    """

    first: int
    last: int
    colour: Colour
    noun: str
    plain: bool
    beside: tuple[str, ...] = ()


class _Named(NamedTuple):
    """The name of a colour among the tokens, whatever it means there."""

    first: int
    last: int
    colour: Colour


def colour_uses(caption: Caption) -> tuple[ColourUse, ...]:
    """Every colour that the caption gives to something, in order."""
    named = tuple(_named(caption))
    owners = [_owner(caption, one, named) for one in named]
    found = []
    for one, owner in zip(named, owners, strict=True):
        if owner is None or _is_something_else(caption, one, owner):
            continue
        beside = {other.colour.name for other, its in zip(named, owners, strict=True) if its == owner} - {
            one.colour.name
        }
        token = caption.tokens[owner]
        noun = token.lemma if owner > one.last or token.pos == "NOUN" else ""
        found.append(ColourUse(*one, noun, _is_plain(caption, one), tuple(sorted(beside))))
    return tuple(found)


def _named(caption: Caption) -> Iterator[_Named]:
    """Names of colours among the words, the longest first: *light blue*, *light-blue*, not *blue* in it."""
    words = [token.text.lower() for token in caption.tokens]
    place = 0
    while place < len(words):
        if words[place] in _first_words():
            match = _longest(caption, words, place)
            if match is not None:
                yield match
                place = match.last
        place += 1


def _longest(caption: Caption, words: list[str], place: int) -> _Named | None:
    found = None
    name, last = words[place], place
    if name == "light" and place and caption.tokens[place - 1].pos == "NOUN":
        return None  # the traffic light green
    for _ in range(_MOST_WORDS):
        if name in _usable():
            found = _Named(place, last, _usable()[name])
        step = 2 if words[last + 1 : last + 2] == ["-"] else 1
        if last + step >= len(words):
            break
        last += step
        name = f"{name} {words[last]}"
    return found


def _owner(caption: Caption, one: _Named, named: tuple[_Named, ...]) -> int | None:
    """The token that a colour belongs to: a noun, or the *in* or *wearing* before a colour that is worn."""
    tokens = caption.tokens
    if any(_is_name(caption, place) for place in range(one.first, one.last + 1)):
        return None
    after = tokens[one.last + 1] if one.last + 1 < len(tokens) else None
    before = tokens[one.first - 1] if one.first else None
    if before is not None and (before.text in "-/" or _ends_phrase(before, tokens[one.first])):
        return None
    if after is not None and (after.text.lower() in _JOINED_TO or after.text in "-/"):
        return _joined_owner(tokens, one)
    end = _end_of_colours(tokens, one, named)
    worn = _worn_after(tokens, _start_of_colours(tokens, one, named))
    if worn is not None and not _begins_noun(tokens, end + 1):
        return worn
    if in_phrase(caption, one.last):
        return None
    return _noun_ahead(tokens, end) if _begins_noun(tokens, end + 1) else noun_described(caption, one.last)


def _ends_phrase(before: Token, token: Token) -> bool:
    """*ice cream*, *a bowling green*: the word before makes something else of it."""
    return before.pos in ("NOUN", "PROPN", "VERB") and is_phrase(f"{before.text.lower()} {token.text.lower()}")


def _is_name(caption: Caption, place: int) -> bool:
    """A proper noun as it is written, not only as the parser takes it: *Brown*; not *tan*, nor *Grey* at the start."""
    token = caption.tokens[place]
    if not token.text[:1].isupper() or (token.pos == "ADJ" and place == 0):
        return False
    following = caption.tokens[place + 1].text if place + 1 < len(caption.tokens) else ""
    return place > 0 or following[:1].isupper()


def _joined_owner(tokens: tuple[Token, ...], one: _Named) -> int | None:
    """*red-haired*, *red haired*: the colour of the hair. Other words that a hyphen joins stay as they are."""
    place = one.last + (2 if tokens[one.last + 1].text == "-" else 1)
    fits = place < len(tokens) and tokens[place].text.lower() in _JOINED_TO
    return place if fits and one.first == one.last and one.colour.use == "adjective" else None


def _end_of_colours(tokens: tuple[Token, ...], one: _Named, named: tuple[_Named, ...]) -> int:
    """The last token of *red, white and blue*, from any of its colours."""
    by_first = {other.first: other.last for other in named}
    end = one.last
    while True:
        place = end + 1
        while place < len(tokens) and tokens[place].text.lower() in _AND:
            place += 1
        if place not in by_first:
            return end
        end = by_first[place]


def _start_of_colours(tokens: tuple[Token, ...], one: _Named, named: tuple[_Named, ...]) -> int:
    """The first token of *red, white and blue*, from any of its colours."""
    by_last = {other.last: other.first for other in named}
    start = one.first
    while True:
        place = start - 1
        while place >= 0 and tokens[place].text.lower() in _AND:
            place -= 1
        if place not in by_last:
            return start
        start = by_last[place]


def _worn_after(tokens: tuple[Token, ...], start: int) -> int | None:
    """The *in* of *a woman in black*, the *wearing* of *wearing all white*."""
    place = start - 1
    if place > 0 and tokens[place].text.lower() == "all":
        place -= 1
    return place if place >= 0 and tokens[place].text.lower() in _WORN_AFTER else None


def _begins_noun(tokens: tuple[Token, ...], place: int) -> bool:
    """Whether a noun, or what leads up to one, stands at a place."""
    if place >= len(tokens):
        return False
    token = tokens[place]
    participle = (
        token.pos == "VERB" and token.text.endswith("ed") and token.arc in ("amod", "compound", "advmod", "nmod")
    )
    leads = token.pos == "ADJ" or participle or (token.pos == "VERB" and token.arc in ("amod", "compound"))
    return token.pos in ("NOUN", "PROPN") or (leads and _begins_noun(tokens, place + 1))


def _noun_ahead(tokens: tuple[Token, ...], end: int) -> int | None:
    """The last noun of the row of words that a colour begins: *shirt* of *green striped tee shirt*."""
    place = end + 1
    while tokens[place].pos not in ("NOUN", "PROPN"):
        place += 1
    while place + 1 < len(tokens) and tokens[place].arc in ("compound", "nmod", "amod") and tokens[place].head > place:
        if not _begins_noun(tokens, place + 1):
            break
        place += 1
    return place


def _is_plain(caption: Caption, one: _Named) -> bool:
    before = caption.tokens[one.first - 1] if one.first else None
    after = caption.tokens[one.last + 1].text if one.last + 1 < len(caption.tokens) else ""
    shaded = before is not None and (
        before.text.lower() in _SHADES or (before.arc == "advmod" and before.head == one.last)
    )
    return shaded or after == "-" or after.lower() in _JOINED_TO


def _is_something_else(caption: Caption, one: _Named, owner: int) -> bool:
    """Whether the word only looks like the colour of its owner."""
    tokens = caption.tokens
    token, colour = tokens[owner], one.colour
    if token.pos not in ("NOUN", "PROPN"):  # worn, or joined
        return colour.use == "thing" and colour.name not in _EASY_THINGS
    kinds = kinds_of(token.lemma)
    if "person" in kinds:
        return True  # what people are called, not the colour they have
    forbidden = _NOT_BEFORE.get(colour.name.split()[-1], frozenset())
    if any(word.lemma in forbidden or word.text.lower() in forbidden for word in tokens[one.last + 1 : owner + 1]):
        return True
    if token.lemma in _PICTURES and colour.name in ("black", "white"):
        return True
    if colour.use != "thing" or colour.name in _EASY_THINGS:
        return colour.name in _EASY_THINGS and "food" in kinds and tokens[one.last].pos != "ADJ"
    return "artifact" not in kinds or owner < one.first


@lru_cache(maxsize=1)
def _usable() -> dict[str, Colour]:
    return {name: colour for name, colour in colours().items() if colour.use}


@lru_cache(maxsize=1)
def _first_words() -> frozenset[str]:
    return frozenset(name.split()[0] for name in _usable())

"""A colour made false, and where a caption says what colour something has: not every *orange* is a colour."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from crosslens.core import UsageError
from crosslens.language import (
    COLOUR_THRESHOLDS,
    Colour,
    ColourSpace,
    ColourValues,
    check_colour_space,
    colour_distance,
    is_phrase,
    load_wordnet,
    named_colours,
    word_set,
)
from crosslens.perturbations.caption import Caption, Draws, Edits, replaced
from crosslens.perturbations.perturbing import CannotApply, perturbation

TABLES = tomllib.loads(Path(__file__).with_name("nouns.toml").read_text(encoding="utf-8"))
"""Nouns as captions use them, read by hand."""

MODIFIERS = frozenset({"amod", "compound", "nmod"})
_NOUNS = ("NOUN", "PROPN")
_PREDICATES = frozenset({"acomp", "oprd", "attr", "ccomp"})
_JOINERS = frozenset("-/'’")
_FIXED_VERBS = frozenset({"fall"})
"""Verbs that make one expression with their adjective: *fall asleep*."""
_LITERAL_PHRASES = word_set(TABLES["literal_phrases"])
_BRANDS = word_set("Frisbee Frisbees Popsicle Jeep SUV TV Ferrari Harley Xbox Mohawk Ducati Honda Corvette")
"""Capitalised words for things."""
_KINDS = {kind: word_set(nouns) for kind, nouns in TABLES["kinds"].items()}
_NOT_MEANT = dict.fromkeys(TABLES["not_persons"].split(), frozenset({"person"})) | dict.fromkeys(
    TABLES["not_animals"].split(), frozenset({"person", "animal"})
)


def described_noun(caption: Caption, position: int) -> int | None:
    """The position of the noun that the word at ``position`` describes; None where it does something else.

    It describes the noun it precedes (*a red car*), or the subject of the verb it follows (*the car is red*).
    Parts of names, of fixed phrases (*hot dog*) and of words joined by a hyphen describe nothing by themselves.
    """
    tokens, text = caption.tokens, caption.text
    token = tokens[position]
    name = token.text[:1].isupper() and (position > 0 or token.pos == "PROPN")
    half = caption.token(position - 1).text.lower() in ("half", "middle")
    beside = text[: token.start][-1:] + text[token.end :][:1]
    if name or half or any(character.isalnum() or character in _JOINERS for character in beside):
        return None
    first = position
    while (head := tokens[first].head) < first and tokens[first].arc == "conj" and tokens[head].pos in ("ADJ", "NOUN"):
        first = head
    described = tokens[first]
    if described.arc in MODIFIERS:
        noun = tokens[described.head]
        # A common noun, or a brand used as one: a red Frisbee, not old London.
        common = noun.pos == "NOUN" or (noun.pos == "PROPN" and (noun.text.islower() or noun.text in _BRANDS))
        # A second noun phrase begins in between: an orange and two apples, a black and a white dog.
        between = pairwise(tokens[position + 1 : described.head])
        apart = any(left.pos == "CCONJ" and right.pos in ("DET", "NUM") for left, right in between)
        fits = common and described.head >= position and not apart and not in_phrase(caption, position)
        return described.head if fits else None
    if described.arc in _PREDICATES and tokens[described.head].lemma not in _FIXED_VERBS:
        return next(iter(caption.below(described.head, "nsubj", "nsubjpass")), None)
    return None


def in_phrase(caption: Caption, position: int) -> bool:
    """Whether the word and the next one name something of their own: *brown bear*, *orange juice*."""
    word, following = caption.tokens[position].text.lower(), caption.token(position + 1)
    literal = {f"{word}_{following.lemma}", f"{word}_{following.text.lower()}"} & _LITERAL_PHRASES
    return following.pos in _NOUNS and not literal and is_phrase(f"{word} {following.text.lower()}")


@lru_cache(maxsize=1 << 14)
def noun_kinds(noun: str) -> frozenset[str]:
    """The kinds of things that a noun names as captions use it, mostly in its first sense.

    Persons and animals are ``being`` as well.
    """
    kinds = {kind for kind, nouns in _KINDS.items() if noun in nouns}
    if not kinds:
        refused = _NOT_MEANT.get(noun, frozenset())
        for sense in load_wordnet().synsets(noun, "n").tolist():
            above = {sense, *load_wordnet().hypernym_closure(sense).tolist()}
            of_sense = {kind for kind, roots in _root_ids().items() if roots & above}
            if not of_sense & refused:
                kinds = of_sense
                break
    return frozenset(kinds | {"being"} if kinds & {"person", "animal"} else kinds)


@lru_cache(maxsize=1)
def _root_ids() -> dict[str, frozenset[int]]:
    return {kind: frozenset(map(load_wordnet().synset, names.split())) for kind, names in TABLES["roots"].items()}


BASIC = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "gray")
"""What may follow *light* or *very*, and stand before *-haired*."""

_HYPHENS = ("-", "/")
_MOST_WORDS = 3
_SHADES = word_set("bright brightly dark deep dull faded light medium neon pale pastel soft vivid dusty dirty")
_WORN_AFTER = word_set("in wearing wears wear wore painted")
_AND = frozenset({"and", "&", ",", "or"})
_JOINED_TO = word_set("haired colored coloured clad painted striped tiled roofed checkered trimmed suited shirted")
_PICTURES = word_set("""photo photograph picture image pic shot photography film movie video portrait snapshot print
    still print illustration drawing sketch""")
_EASY_THINGS = frozenset({"orange", "gold", "silver", "tan"})

_NOT_BEFORE = {colour: word_set(nouns) for colour, nouns in TABLES["not_colours"].items()}
"""Beside WordNet's compounds: nouns that make something else of the colour before them."""

_UNAMBIGUOUS = frozenset({"orange", "gold", "silver"})
"""Names of things that are understood as a colour beside any noun."""


class ColourUse(NamedTuple):
    """A colour in a caption: its tokens from ``first`` to ``last``, its value, and the noun that has it, if named.

    ``plain``: only a basic colour fits here. ``beside``: the other colours of the same object.
    """

    first: int
    last: int
    colour: Colour
    noun: str = ""
    plain: bool = False
    beside: tuple[str, ...] = ()


@perturbation("color_all", phrase="other colours", level="adversarial", tags=True, order=15)
def color_all(
    caption: Caption, draws: Draws, *, threshold: float | None = None, space: str = "rgb", every: bool = False
) -> Edits:
    """Replace a colour by any named colour that is far from it: *a red car* becomes *a teal car*.

    threshold: the least distance between the two; None: 0.5 in RGB, 50 in CIELAB
    space: where the distance is measured, rgb or lab
    every: replace every colour of the caption, not one of them
    """
    return _recoloured(caption, draws, _caption_colours(), threshold, check_colour_space(space), every)


def _occurring(captions: Sequence[Caption]) -> dict[str, Any]:
    occurring = {use.colour for caption in captions for use in colour_uses(caption)}
    return {"colors": sorted(colour.name for colour in occurring if colour.use != "mix")}


@perturbation(
    "color_in", phrase="other colours of the captions", level="adversarial", tags=True, order=16, corpus=_occurring
)
def color_in(
    caption: Caption,
    draws: Draws,
    *,
    colors: Sequence[str] | str = (),
    threshold: float | None = None,
    space: str = "rgb",
    every: bool = False,
) -> Edits:
    """Replace a colour by one that the captions use and that is far from it: *a red car* becomes *a blue car*.

    colors: the colours to choose from, in place of those that the captions use
    threshold: the least distance between the two; None: 0.5 in RGB, 50 in CIELAB
    space: where the distance is measured, rgb or lab
    every: replace every colour of the caption, not one of them
    """
    names = _checked_names(tuple(colors.split(",") if isinstance(colors, str) else colors))
    return _recoloured(caption, draws, names, threshold, check_colour_space(space), every)


def _recoloured(
    caption: Caption, draws: Draws, names: tuple[str, ...], threshold: float | None, space: ColourSpace, every: bool
) -> Edits:
    least = COLOUR_THRESHOLDS[space] if threshold is None else threshold
    if not isinstance(least, int | float) or not least >= 0:
        raise UsageError(f"threshold {least!r}", fix=f"a distance, 0 or more; without one: {COLOUR_THRESHOLDS[space]}")
    uses = colour_uses(caption)
    if not uses:
        raise CannotApply("no colour")
    fitting = {use: [name for name in _far(use.colour.rgb, names, least, space) if _fits(name, use)] for use in uses}
    fitting = {use: replacements for use, replacements in fitting.items() if replacements}
    if not fitting:
        raise CannotApply(f"no colour that is far from {' or '.join(dict.fromkeys(use.colour.name for use in uses))}")
    # Favourites, not choices: a colour that is new in the captions changes only those it is the favourite of.
    by_position = {use.first: use for use in fitting}
    if not every:
        use = by_position[draws.favourite(by_position)]
        return replaced(caption, use.first, draws.favourite(fitting[use]), last=use.last)
    edits: Edits = ()
    new_names: list[tuple[ColourUse, str]] = []
    for use, replacements in fitting.items():
        # Two colours of an object stay two: neither becomes the other's new name, nor a kind of it.
        used = [name for other, name in new_names if other.colour.name in use.beside]
        free = [name for name in replacements if not any(_both_true(name, other) for other in used)]
        if free:
            new_names.append((use, draws.favourite(free)))
            edits += replaced(caption, use.first, new_names[-1][1], last=use.last)
    return edits


def _fits(name: str, use: ColourUse) -> bool:
    """Whether the name reads as a colour there."""
    if name in use.beside or _both_true(name, use.colour.name):
        return False
    if use.plain:
        return name in BASIC
    if named_colours()[name].use == "thing" and name not in _UNAMBIGUOUS:
        return bool(noun_kinds(use.noun) & {"garment", "vehicle"})
    return True


@lru_cache(maxsize=65_536)
def _both_true(name: str, other: str) -> bool:
    """Whether one is a kind of the other: *sky blue* is a blue."""
    words, others = (set(colour.replace("grey", "gray").split()) for colour in (name, other))
    return words <= others or others <= words


@lru_cache(maxsize=4096)
def _far(rgb: ColourValues, names: tuple[str, ...], threshold: float, space: ColourSpace) -> tuple[str, ...]:
    return tuple(name for name in names if colour_distance(rgb, named_colours()[name].rgb, space) >= threshold)


@lru_cache(maxsize=1)
def _caption_colours() -> tuple[str, ...]:
    """Every name that a caption would use, in one spelling."""
    return tuple(
        name for name, colour in named_colours().items() if colour.use in ("adjective", "thing") and "grey" not in name
    )


@lru_cache(maxsize=16)
def _checked_names(names: tuple[str, ...]) -> tuple[str, ...]:
    distinct = dict.fromkeys(name.strip().lower() for name in names)
    for name in distinct:
        if name not in named_colours():
            raise UsageError(f"{name!r} is not a named colour", fix="use names of CSS4 or XKCD, such as 'navy blue'")
    return tuple(distinct)


def colour_uses(caption: Caption) -> tuple[ColourUse, ...]:
    """Every colour that the caption gives to something, in order."""
    lists: list[list[ColourUse]] = []  # red, white and blue
    for name in _colour_names(caption):
        between = caption.tokens[lists[-1][-1].last + 1 : name.first] if lists else ()
        if lists and all(token.text.lower() in _AND for token in between):
            lists[-1].append(name)
        else:
            lists.append([name])
    owned = [(name, _owner(caption, name, names[0].first, names[-1].last)) for names in lists for name in names]
    uses = []
    for name, owner in owned:
        if owner is None or _is_something_else(caption, name, owner):
            continue
        token, before, after = caption.tokens[owner], caption.token(name.first - 1), caption.token(name.last + 1).text
        shaded = before.text.lower() in _SHADES or (before.arc == "advmod" and before.head == name.last)
        uses.append(
            name._replace(
                noun=token.lemma if owner > name.last or token.pos == "NOUN" else "",
                plain=shaded or after == "-" or after.lower() in _JOINED_TO,
                beside=tuple(sorted({other.colour.name for other, its in owned if its == owner} - {name.colour.name})),
            )
        )
    return tuple(uses)


def _colour_names(caption: Caption) -> Iterator[ColourUse]:
    """Names of colours among the words, the longest first: *light blue*, *light-blue*, not *blue* in it."""
    words = [token.text.lower() for token in caption.tokens]
    position = 0
    while position < len(words):
        name, last, match = words[position], position, None
        traffic_light = name == "light" and caption.token(position - 1).pos == "NOUN"  # the traffic light green
        for _ in range(_MOST_WORDS if name in _first_words() and not traffic_light else 0):
            if name in _usable():
                match = ColourUse(position, last, _usable()[name])
            last += 2 if words[last + 1 : last + 2] == ["-"] else 1
            if last >= len(words):
                break
            name = f"{name} {words[last]}"
        if match:
            yield match
            position = match.last
        position += 1


def _owner(caption: Caption, name: ColourUse, start: int, end: int) -> int | None:
    """The token that a colour belongs to: a noun, or the *in* or *wearing* before a colour that is worn.

    ``start`` and ``end`` are the first and the last token of the list of colours that it is in.
    """
    tokens = caption.tokens
    for position in range(name.first, name.last + 1):
        # A name as it is written, not only as the parser takes it: *Brown*; not *tan*, nor *Grey* at the start.
        at_start = position == 0 and (tokens[0].pos == "ADJ" or not caption.token(1).text[:1].isupper())
        if tokens[position].text[:1].isupper() and not at_start:
            return None
    before, after = caption.token(name.first - 1), caption.token(name.last + 1)
    # ice cream, a bowling green: the word before makes something else of it.
    phrase = before.pos in (*_NOUNS, "VERB") and is_phrase(f"{before.text} {tokens[name.first].text}".lower())
    if phrase or before.text in _HYPHENS:
        return None
    if after.text.lower() in _JOINED_TO or after.text in _HYPHENS:
        # red-haired, red haired: the colour of the hair. Other words that a hyphen joins stay as they are.
        position = name.last + (2 if after.text == "-" else 1)
        joined = caption.token(position).text.lower() in _JOINED_TO
        return position if joined and name.first == name.last and name.colour.use == "adjective" else None
    noun = end + 1
    begins_noun = _begins_noun(caption, noun)
    worn = start - (2 if caption.token(start - 1).text.lower() == "all" else 1)  # wearing all white
    if not begins_noun and caption.token(worn).text.lower() in _WORN_AFTER:
        return worn
    if in_phrase(caption, name.last):
        return None
    if not begins_noun:
        return described_noun(caption, name.last)
    # The last noun of the row of words that a colour begins: shirt of green striped tee shirt.
    while tokens[noun].pos not in _NOUNS:
        noun += 1
    while tokens[noun].arc in MODIFIERS and tokens[noun].head > noun and _begins_noun(caption, noun + 1):
        noun += 1
    return noun


def _begins_noun(caption: Caption, position: int) -> bool:
    """Whether there is a noun, or what leads up to one, at a position."""
    token = caption.token(position)
    arcs = ("amod", "compound", "advmod", "nmod") if token.text.endswith("ed") else ("amod", "compound")
    leads = token.pos == "ADJ" or (token.pos == "VERB" and token.arc in arcs)
    return token.pos in _NOUNS or (leads and _begins_noun(caption, position + 1))


def _is_something_else(caption: Caption, name: ColourUse, owner: int) -> bool:
    """Whether the word only looks like the colour of its owner."""
    tokens = caption.tokens
    token, colour = tokens[owner], name.colour
    if token.pos not in _NOUNS:  # worn, or joined
        return colour.use == "thing" and colour.name not in _EASY_THINGS
    kinds = noun_kinds(token.lemma)
    if "person" in kinds:
        return True  # what people are called, not the colour they have
    forbidden = _NOT_BEFORE.get(colour.name.split()[-1], frozenset())
    if any(word.lemma in forbidden or word.text.lower() in forbidden for word in tokens[name.last + 1 : owner + 1]):
        return True
    if token.lemma in _PICTURES and colour.name in ("black", "white"):
        return True
    if colour.use != "thing" or colour.name in _EASY_THINGS:
        return colour.name in _EASY_THINGS and "food" in kinds and tokens[name.last].pos != "ADJ"
    return "artifact" not in kinds or owner < name.first


@lru_cache(maxsize=1)
def _usable() -> dict[str, Colour]:
    return {name: colour for name, colour in named_colours().items() if colour.use}


@lru_cache(maxsize=1)
def _first_words() -> frozenset[str]:
    return frozenset(name.split()[0] for name in _usable())

"""A colour made false, and where a caption says what colour something has: not every *orange* is a colour."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
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
from crosslens.perturbations.caption import Caption, Draws, Edits, Token, replaced
from crosslens.perturbations.perturbing import CannotApply, perturbation

TABLES = tomllib.loads(Path(__file__).with_name("nouns.toml").read_text(encoding="utf-8"))
"""Nouns as captions use them, read by hand."""

MODIFIERS = frozenset({"amod", "compound", "nmod"})
_SUBJECTS = frozenset({"nsubj", "nsubjpass"})
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
    tokens = caption.tokens
    token = tokens[position]
    name = token.text[:1].isupper() and (position > 0 or token.pos == "PROPN")
    half = position > 0 and tokens[position - 1].text.lower() in ("half", "middle")
    if name or half or is_joined(caption, position):
        return None
    first = position
    while (head := tokens[first].head) < first and tokens[first].arc == "conj" and tokens[head].pos in ("ADJ", "NOUN"):
        first = head
    described = tokens[first]
    if described.arc in MODIFIERS:
        noun = described.head
        apart = noun < position or _another_begins(tokens[position + 1 : noun])
        return None if apart or not _is_common_noun(caption, noun) or in_phrase(caption, position) else noun
    if described.arc in _PREDICATES and tokens[described.head].lemma not in _FIXED_VERBS:
        subjects = (at for at, other in enumerate(tokens) if other.head == described.head and other.arc in _SUBJECTS)
        return next(subjects, None)
    return None


def _another_begins(between: tuple[Token, ...]) -> bool:
    """Whether a second noun phrase begins there: *an orange and two apples*, *a black and a white dog*."""
    return any(left.pos == "CCONJ" and right.pos in ("DET", "NUM") for left, right in pairwise(between))


def _is_common_noun(caption: Caption, noun: int) -> bool:
    """A common noun, or a brand used as one: *a red Frisbee*, not *old London*."""
    token = caption.tokens[noun]
    return token.pos == "NOUN" or (token.pos == "PROPN" and (token.text.islower() or token.text in _BRANDS))


def is_joined(caption: Caption, position: int) -> bool:
    """Whether a hyphen or a slash ties the word to another."""
    token = caption.tokens[position]
    beside = caption.text[: token.start][-1:], caption.text[token.end :][:1]
    return any(character.isalnum() or character in _JOINERS for character in beside if character)


def in_phrase(caption: Caption, position: int) -> bool:
    """Whether the word and the next one name something of their own: *brown bear*, *orange juice*."""
    tokens = caption.tokens
    if position + 1 >= len(tokens) or tokens[position + 1].pos not in ("NOUN", "PROPN"):
        return False
    word, following = tokens[position].text.lower(), tokens[position + 1]
    literal = {f"{word}_{following.lemma}", f"{word}_{following.text.lower()}"} & _LITERAL_PHRASES
    return not literal and is_phrase(f"{word} {following.text.lower()}")


@lru_cache(maxsize=1 << 14)
def noun_kinds(noun: str) -> frozenset[str]:
    """The kinds of things that a noun names as captions use it, mostly in its first sense.

    Persons and animals are ``being`` as well.
    """
    kinds = {kind for kind, nouns in _KINDS.items() if noun in nouns}
    if not kinds:
        refused = _NOT_MEANT.get(noun, frozenset())
        by_sense = (_kinds_of_sense(int(sense)) for sense in load_wordnet().synsets(noun, "n"))
        kinds = set(next((of_sense for of_sense in by_sense if not of_sense & refused), ()))
    if kinds & {"person", "animal"}:
        kinds.add("being")
    return frozenset(kinds)


def _kinds_of_sense(sense: int) -> frozenset[str]:
    above = {sense, *load_wordnet().hypernym_closure(sense).tolist()}
    return frozenset(kind for kind, roots in _root_ids().items() if roots & above)


@lru_cache(maxsize=1)
def _root_ids() -> dict[str, frozenset[int]]:
    return {kind: frozenset(map(load_wordnet().synset, names.split())) for kind, names in TABLES["roots"].items()}


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
    noun: str
    plain: bool
    beside: tuple[str, ...] = ()


class _ColourName(NamedTuple):
    """The name of a colour among the tokens, whatever it means there."""

    first: int
    last: int
    colour: Colour


@perturbation("color_all", level="adversarial", tags=True, order=15)
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


@perturbation("color_in", level="adversarial", tags=True, order=16, corpus=_occurring)
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
    chosen: list[tuple[ColourUse, str]] = []
    for use, replacements in fitting.items():
        # Two colours of an object stay two: neither becomes the other's new name, nor a kind of it.
        taken = [name for other, name in chosen if other.colour.name in use.beside]
        left = [name for name in replacements if not any(_is_kind_of(*pair) for other in taken
                                                         for pair in ((name, other), (other, name)))]  # fmt: skip
        if left:
            chosen.append((use, draws.favourite(left)))
            edits += replaced(caption, use.first, chosen[-1][1], last=use.last)
    return edits


def _fits(name: str, use: ColourUse) -> bool:
    """Whether the name reads as a colour there."""
    if name in use.beside or _is_kind_of(name, use.colour.name) or _is_kind_of(use.colour.name, name):
        return False
    if use.plain:
        return name in BASIC
    if named_colours()[name].use == "thing" and name not in _UNAMBIGUOUS:
        return bool(noun_kinds(use.noun) & {"garment", "vehicle"})
    return True


@lru_cache(maxsize=65_536)
def _is_kind_of(name: str, other: str) -> bool:
    """*sky blue* is a blue: of such a pair, both can be true."""
    return set(other.replace("grey", "gray").split()) <= set(name.replace("grey", "gray").split())


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
    names = tuple(_colour_names(caption))
    owners = [_owner(caption, name, names) for name in names]
    uses = []
    for name, owner in zip(names, owners, strict=True):
        if owner is None or _is_something_else(caption, name, owner):
            continue
        together = {other.colour.name for other, its in zip(names, owners, strict=True) if its == owner}
        token = caption.tokens[owner]
        noun = token.lemma if owner > name.last or token.pos == "NOUN" else ""
        uses.append(ColourUse(*name, noun, _is_plain(caption, name), tuple(sorted(together - {name.colour.name}))))
    return tuple(uses)


def _colour_names(caption: Caption) -> Iterator[_ColourName]:
    """Names of colours among the words, the longest first: *light blue*, *light-blue*, not *blue* in it."""
    words = [token.text.lower() for token in caption.tokens]
    position = 0
    while position < len(words):
        if words[position] in _first_words():
            match = _longest_name(caption, words, position)
            if match is not None:
                yield match
                position = match.last
        position += 1


def _longest_name(caption: Caption, words: list[str], first: int) -> _ColourName | None:
    match, name, last = None, words[first], first
    if name == "light" and first and caption.tokens[first - 1].pos == "NOUN":
        return None  # the traffic light green
    for _ in range(_MOST_WORDS):
        if name in _usable():
            match = _ColourName(first, last, _usable()[name])
        step = 2 if words[last + 1 : last + 2] == ["-"] else 1
        if last + step >= len(words):
            break
        last += step
        name = f"{name} {words[last]}"
    return match


def _owner(caption: Caption, name: _ColourName, names: tuple[_ColourName, ...]) -> int | None:
    """The token that a colour belongs to: a noun, or the *in* or *wearing* before a colour that is worn."""
    tokens = caption.tokens
    if any(_is_proper_noun(caption, position) for position in range(name.first, name.last + 1)):
        return None
    after = tokens[name.last + 1] if name.last + 1 < len(tokens) else None
    before = tokens[name.first - 1] if name.first else None
    if before is not None and (before.text in "-/" or _ends_phrase(before, tokens[name.first])):
        return None
    if after is not None and (after.text.lower() in _JOINED_TO or after.text in "-/"):
        return _joined_owner(tokens, name)
    end = _end_of_list(tokens, name.last, {other.first: other.last for other in names}, 1)
    start = _end_of_list(tokens, name.first, {other.last: other.first for other in names}, -1)
    worn = _worn_after(tokens, start)
    if worn is not None and not _begins_noun(tokens, end + 1):
        return worn
    if in_phrase(caption, name.last):
        return None
    return _noun_ahead(tokens, end) if _begins_noun(tokens, end + 1) else described_noun(caption, name.last)


def _ends_phrase(before: Token, token: Token) -> bool:
    """*ice cream*, *a bowling green*: the word before makes something else of it."""
    return before.pos in ("NOUN", "PROPN", "VERB") and is_phrase(f"{before.text.lower()} {token.text.lower()}")


def _is_proper_noun(caption: Caption, position: int) -> bool:
    """As it is written, not only as the parser takes it: *Brown*; not *tan*, nor *Grey* at the start."""
    token = caption.tokens[position]
    if not token.text[:1].isupper() or (token.pos == "ADJ" and position == 0):
        return False
    following = caption.tokens[position + 1].text if position + 1 < len(caption.tokens) else ""
    return position > 0 or following[:1].isupper()


def _joined_owner(tokens: tuple[Token, ...], name: _ColourName) -> int | None:
    """*red-haired*, *red haired*: the colour of the hair. Other words that a hyphen joins stay as they are."""
    position = name.last + (2 if tokens[name.last + 1].text == "-" else 1)
    fits = position < len(tokens) and tokens[position].text.lower() in _JOINED_TO
    return position if fits and name.first == name.last and name.colour.use == "adjective" else None


def _end_of_list(tokens: tuple[Token, ...], end: int, next_end: Mapping[int, int], step: int) -> int:
    """The last (step 1) or first (-1) token of *red, white and blue*, from any of its colours."""
    while True:
        position = end + step
        while 0 <= position < len(tokens) and tokens[position].text.lower() in _AND:
            position += step
        if position not in next_end:
            return end
        end = next_end[position]


def _worn_after(tokens: tuple[Token, ...], start: int) -> int | None:
    """The *in* of *a woman in black*, the *wearing* of *wearing all white*."""
    position = start - 1
    if position > 0 and tokens[position].text.lower() == "all":
        position -= 1
    return position if position >= 0 and tokens[position].text.lower() in _WORN_AFTER else None


def _begins_noun(tokens: tuple[Token, ...], position: int) -> bool:
    """Whether there is a noun, or what leads up to one, at a position."""
    if position >= len(tokens):
        return False
    token = tokens[position]
    arcs = ("amod", "compound", "advmod", "nmod") if token.text.endswith("ed") else ("amod", "compound")
    leads = token.pos == "ADJ" or (token.pos == "VERB" and token.arc in arcs)
    return token.pos in ("NOUN", "PROPN") or (leads and _begins_noun(tokens, position + 1))


def _noun_ahead(tokens: tuple[Token, ...], end: int) -> int | None:
    """The last noun of the row of words that a colour begins: *shirt* of *green striped tee shirt*."""
    noun = end + 1
    while tokens[noun].pos not in ("NOUN", "PROPN"):
        noun += 1
    while noun + 1 < len(tokens) and tokens[noun].arc in ("compound", "nmod", "amod") and tokens[noun].head > noun:
        if not _begins_noun(tokens, noun + 1):
            break
        noun += 1
    return noun


def _is_plain(caption: Caption, name: _ColourName) -> bool:
    before = caption.tokens[name.first - 1] if name.first else None
    after = caption.tokens[name.last + 1].text if name.last + 1 < len(caption.tokens) else ""
    shaded = before is not None and (
        before.text.lower() in _SHADES or (before.arc == "advmod" and before.head == name.last)
    )
    return shaded or after == "-" or after.lower() in _JOINED_TO


def _is_something_else(caption: Caption, name: _ColourName, owner: int) -> bool:
    """Whether the word only looks like the colour of its owner."""
    tokens = caption.tokens
    token, colour = tokens[owner], name.colour
    if token.pos not in ("NOUN", "PROPN"):  # worn, or joined
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

"""One telling word of a caption made false: another colour, the other size, the opposite.

What is changed has to be what the caption says of something it shows, and the result has to be a caption again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from crosslens.core.errors import UsageError
from crosslens.language.colours import THRESHOLDS, Space, Triple, checked_space, colours, distance
from crosslens.language.inflection import inflected
from crosslens.language.wordnet import wordnet
from crosslens.perturb.antonyms import opposites_of, table
from crosslens.perturb.caption import Caption, Token
from crosslens.perturb.colour_uses import BASIC, ColourUse, colour_uses
from crosslens.perturb.description import kinds_of, noun_described
from crosslens.perturb.draws import Draws
from crosslens.perturb.perturbation import CannotApply, Edits, perturbation
from crosslens.perturb.rewording import replaced
from crosslens.perturb.sizes import size_uses

_UNAMBIGUOUS = frozenset({"orange", "gold", "silver"})
"""Names of things that are understood as a colour beside any noun."""


@perturbation("antonym", level="adversarial", tags=True)
def antonym(caption: Caption, draws: Draws) -> Edits:
    """Replace an adjective by its opposite: *a young man* becomes *an old man*."""
    found = _antonyms(caption)
    if not found:
        raise CannotApply("no adjective that has an opposite here")
    position, words = draws.choice(found)
    return replaced(caption, position, draws.choice(words))


@perturbation("color_all", level="adversarial", tags=True)
def color_all(caption: Caption, draws: Draws, *, threshold: float | None = None, space: str = "rgb") -> Edits:
    """Replace a colour by any named colour that is far from it: *a red car* becomes *a teal car*.

    threshold: the least distance between the two; None: 0.5 in RGB, 50 in CIELAB
    space: where the distance is measured, rgb or lab
    """
    return _recoloured(caption, draws, _offered(), threshold, checked_space(space))


def _occurring(captions: Sequence[Caption]) -> dict[str, Any]:
    found = {use.colour for caption in captions for use in colour_uses(caption)}
    return {"colors": sorted(colour.name for colour in found if colour.use != "mix")}


@perturbation("color_in", level="adversarial", tags=True, corpus=_occurring)
def color_in(
    caption: Caption,
    draws: Draws,
    *,
    colors: Sequence[str] | str = (),
    threshold: float | None = None,
    space: str = "rgb",
) -> Edits:
    """Replace a colour by one that the captions use and that is far from it: *a red car* becomes *a blue car*.

    colors: the colours to choose from, in place of those that the captions use
    threshold: the least distance between the two; None: 0.5 in RGB, 50 in CIELAB
    space: where the distance is measured, rgb or lab
    """
    return _recoloured(
        caption,
        draws,
        _known(tuple(colors.split(",") if isinstance(colors, str) else colors)),
        threshold,
        checked_space(space),
    )


@perturbation("size", level="adversarial", tags=True)
def size(caption: Caption, draws: Draws, *, minor: bool = False) -> Edits:
    """Replace a word for large by one for small, or the other way: *a big dog* becomes *a tiny dog*.

    minor: offer *minor* wherever another word for small can stand, not only where it reads well
    """
    found = size_uses(caption, minor=minor)
    if not found:
        raise CannotApply("no word for large or small")
    use = draws.choice(found)
    return replaced(caption, use.position, draws.choice(use.replacements))


def _antonyms(caption: Caption) -> list[tuple[int, tuple[str, ...]]]:
    """The adjectives with an opposite, each with its opposites in its own form."""
    coloured = {use.first for use in colour_uses(caption) if not use.beside and not use.plain}
    found: list[tuple[int, int | None, tuple[str, ...]]] = []
    for position, token in enumerate(caption.tokens):
        if token.pos != "ADJ":
            continue
        noun = noun_described(caption, position)
        if noun is None:
            continue
        base, tag = _base(token)
        between = frozenset(one.text.lower() for one in caption.tokens[position + 1 : noun])
        words = opposites_of(base, caption.tokens[noun].lemma, between=between, coloured=position in coloured)
        if tag != "JJ":
            words = tuple(inflected(word, tag) for word in words if word != "little")
        if words:
            found.append((position, noun, words))
    # Beside a word of the same meaning the opposite would be a contradiction: a small tiny dog.
    return [
        (position, words)
        for position, noun, words in found
        if not any(noun == other and position != place and set(words) & set(same) for place, other, same in found)
    ]


def _base(token: Token) -> tuple[str, str]:
    """An adjective as the table has it, and the tag of the degree to put its opposite into: taggers overlook some."""
    word = token.text.lower()
    if word in table():
        return word, "JJ"
    if token.tag == "JJ" and word.endswith(("er", "est")):
        base = wordnet().morphy(word, "a")
        if base not in (None, word):
            return base or word, "JJR" if word.endswith("er") else "JJS"
    return (word, "JJ") if token.tag == "JJ" else (token.lemma, token.tag)


def _recoloured(
    caption: Caption,
    draws: Draws,
    names: tuple[str, ...],
    threshold: float | None,
    space: Space,
) -> Edits:
    least = THRESHOLDS[space] if threshold is None else threshold
    if not isinstance(least, int | float) or not least >= 0:
        raise UsageError(f"threshold {least!r}", fix=f"a distance, 0 or more; without one: {THRESHOLDS[space]}")
    uses = colour_uses(caption)
    if not uses:
        raise CannotApply("no colour")
    far = {use: [name for name in _far(use.colour.rgb, names, least, space) if _fits(name, use)] for use in uses}
    far = {use: found for use, found in far.items() if found}
    if not far:
        raise CannotApply(f"no colour that is far from {' or '.join(dict.fromkeys(use.colour.name for use in uses))}")
    # Favourites, not choices: a colour that is new in the captions changes only those it is the favourite of.
    places = {use.first: use for use in far}
    use = places[draws.favourite(places)]
    return replaced(caption, use.first, draws.favourite(far[use]), last=use.last)


def _fits(name: str, use: ColourUse) -> bool:
    """Whether the name reads as a colour in that place."""
    if name in use.beside or _is_kind_of(name, use.colour.name) or _is_kind_of(use.colour.name, name):
        return False
    if use.plain:
        return name in BASIC
    if colours()[name].use == "thing" and name not in _UNAMBIGUOUS:
        return bool(kinds_of(use.noun) & {"garment", "vehicle"})
    return True


def _is_kind_of(name: str, other: str) -> bool:
    """*sky blue* is a blue: of such a pair, both can be true."""
    return set(other.replace("grey", "gray").split()) <= set(name.replace("grey", "gray").split())


@lru_cache(maxsize=4096)
def _far(rgb: Triple, names: tuple[str, ...], threshold: float, space: Space) -> tuple[str, ...]:
    return tuple(name for name in names if distance(rgb, colours()[name].rgb, space) >= threshold)


@lru_cache(maxsize=1)
def _offered() -> tuple[str, ...]:
    """Every name that a caption would use, in one spelling."""
    return tuple(
        name for name, colour in colours().items() if colour.use in ("adjective", "thing") and "grey" not in name
    )


@lru_cache(maxsize=16)
def _known(names: tuple[str, ...]) -> tuple[str, ...]:
    found = dict.fromkeys(name.strip().lower() for name in names)
    for name in found:
        if name not in colours():
            raise UsageError(f"{name!r} is not a named colour", fix="use names of CSS4 or XKCD, such as 'navy blue'")
    return tuple(found)

"""Fresh descriptions, told from annotations alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from crosslens.build.generators.contents import Contents, Group, relation, whereabouts
from crosslens.build.generators.phrases import INSIDE, reader_of
from crosslens.synth.backdrops import BACKDROPS
from crosslens.synth.grammar import listing, sentence

_SAID = {"left": "to the left of", "right": "to the right of", "above": "above", "below": "below", INSIDE: "inside"}


def tell(contents: Contents, rivals: Sequence[str]) -> list[str]:
    """Sentences that hold of a picture, those first that name what the rivals do not."""
    groups = by_rarity(contents, rivals)
    if not groups:
        return []
    found: list[str] = []
    for size in (2, 1, 3):
        for chosen in combinations(groups, min(size, len(groups))):
            found += _about(chosen, contents.place)
    found += _together(groups, contents.place)
    return list(dict.fromkeys(sentence(text) for text in found))


def by_rarity(contents: Contents, rivals: Sequence[str]) -> list[Group]:
    """The groups that the fewest rivals speak of first; of equals the larger one."""
    reader = reader_of(contents)
    spoken = [reader.mentions(rival) for rival in rivals]
    return sorted(contents.groups, key=lambda group: sum(group.name in names for names in spoken))


def place_phrase(place: str | None) -> str:
    """`` on a beach``, with the space before it; empty where the place is not known."""
    if place is None:
        return ""
    known = BACKDROPS.get(place)
    return f" {known.at}" if known else ""


def there_is(groups: Sequence[Group]) -> str:
    """``there is`` or ``there are``, as the first thing asks."""
    return (
        "there is"
        if groups[0].count() == 1 or (groups[0].count() is None and groups[0].name == "person")
        else "there are"
    )


def spot(group: Group) -> str:
    """Where its only member is, with the space before it; empty for several."""
    return f" {whereabouts(group.single.box)}" if group.single and group.single.box else ""


def _about(groups: Sequence[Group], place: str | None) -> Iterator[str]:
    at = place_phrase(place)
    rich = listing([_doing(group) for group in groups])
    plain = listing([group.told(colour=False) for group in groups])
    yield f"{rich}{at}"
    yield f"{there_is(groups)} {rich}{at}"
    yield f"a picture of {rich}{at}"
    if any(spot(group) for group in groups):
        yield listing([group.told() + spot(group) for group in groups])
    yield plain
    yield f"{plain}{at}" if at else f"a view of {plain}"


def _doing(group: Group) -> str:
    """With what is written on it, or what it is doing."""
    if group.text:
        return f'{group.told()} that says "{group.text}"'
    return f"{group.told()} {group.action}" if group.action else group.told()


def _together(groups: Sequence[Group], place: str | None) -> Iterator[str]:
    """How two single things lie to each other."""
    at = place_phrase(place)
    for one, other in combinations(groups, 2):
        if one.single and other.single and one.single.box and other.single.box:
            how = relation(one.single.box, other.single.box)
            if how is not None:
                yield f"{one.told()} {_SAID[how]} {other.told()}{at}"

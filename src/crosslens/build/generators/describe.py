"""New descriptions, written from annotations alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from crosslens.build.generators.annotations import ImageContents, ObjectGroup, position_phrase, spatial_relation
from crosslens.build.generators.phrases import INSIDE, reader_of
from crosslens.synth import BACKDROPS, listing, sentence

_RELATION_PHRASES = {
    "left": "to the left of",
    "right": "to the right of",
    "above": "above",
    "below": "below",
    INSIDE: "inside",
}


def describe(contents: ImageContents, rivals: Sequence[str]) -> list[str]:
    """Sentences that are true of an image, those first that name what the rivals do not."""
    groups = by_rarity(contents, rivals)
    if not groups:
        return []
    sentences: list[str] = []
    for size in (2, 1, 3):
        for chosen in combinations(groups, min(size, len(groups))):
            sentences += _about(chosen, contents.setting)
    sentences += _together(groups, contents.setting)
    return list(dict.fromkeys(sentence(text) for text in sentences))


def by_rarity(contents: ImageContents, rivals: Sequence[str]) -> list[ObjectGroup]:
    """The groups that the fewest rivals mention first; of equals the larger one."""
    reader = reader_of(contents)
    mentioned = [reader.mentions(rival) for rival in rivals]
    return sorted(contents.groups, key=lambda group: sum(group.name in names for names in mentioned))


def setting_phrase(setting: str | None) -> str:
    """`` on a beach``, with the space before it; empty where the setting is not known."""
    backdrop = BACKDROPS.get(setting or "")
    return f" {backdrop.at}" if backdrop else ""


def there_is(groups: Sequence[ObjectGroup]) -> str:
    """``there is`` or ``there are``, by the number of the first group."""
    count = groups[0].count()
    return "there is" if count == 1 or (count is None and groups[0].name == "person") else "there are"


def position_of(group: ObjectGroup) -> str:
    """Where its only member is, with the space before it; empty for several."""
    return f" {position_phrase(group.single.box)}" if group.single and group.single.box else ""


def _about(groups: Sequence[ObjectGroup], setting: str | None) -> Iterator[str]:
    at = setting_phrase(setting)
    rich = listing([_doing(group) for group in groups])
    plain = listing([group.phrase(colour=False) for group in groups])
    yield f"{rich}{at}"
    yield f"{there_is(groups)} {rich}{at}"
    yield f"a picture of {rich}{at}"
    if any(position_of(group) for group in groups):
        yield listing([group.phrase() + position_of(group) for group in groups])
    yield plain
    yield f"{plain}{at}" if at else f"a view of {plain}"


def _doing(group: ObjectGroup) -> str:
    """With what is written on it, or what it is doing."""
    if group.text:
        return f'{group.phrase()} that says "{group.text}"'
    return f"{group.phrase()} {group.action}" if group.action else group.phrase()


def _together(groups: Sequence[ObjectGroup], setting: str | None) -> Iterator[str]:
    """How two single objects lie to each other."""
    at = setting_phrase(setting)
    for first, other in combinations(groups, 2):
        if first.single and other.single and first.single.box and other.single.box:
            relation = spatial_relation(first.single.box, other.single.box)
            if relation is not None:
                yield f"{first.phrase()} {_RELATION_PHRASES[relation]} {other.phrase()}{at}"

"""Which thing in one picture stands in the place of which in another."""

from __future__ import annotations

from crosslens.build.generators.contents import Contents, Group


def pairs(source: Contents, target: Contents, turn: int = 0) -> dict[str, Group]:
    """For each name in the source its counterpart: the same name, else the likeliest thing that has no namesake."""
    found = {group.name: other for group in source.groups for other in target.groups if group.name == other.name}
    free = [group for group in target.groups if group.name not in found]
    for group in source.groups:
        alike = [one for one in free if one.noun.unique == group.noun.unique]
        if group.name not in found and alike:
            best = sorted(alike, key=lambda one, group=group: _unlike(group, one))[turn % len(alike)]  # type: ignore[misc]
            found[group.name] = best
            free.remove(best)
    return found


def _unlike(group: Group, other: Group) -> tuple[bool, int, float, str]:
    counts = abs((group.count() or 99) - (other.count() or 99))
    return group.noun.wider != other.noun.wider, counts, round(abs(group.area - other.area), 9), other.name

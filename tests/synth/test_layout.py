from __future__ import annotations

from itertools import combinations

import pytest

from crosslens.storage import random_stream
from crosslens.synth import KINDS, relation
from crosslens.synth.drawing import COLOURS, Look
from crosslens.synth.scene import OPPOSITE, Box, Slot, Zone, arrange, relations_between

pytest.importorskip("PIL", reason="pip install 'crosslens[scenes]'")


def slot(kind: str, length: int = 40, **details: object) -> Slot:
    pose = KINDS[kind].poses[0] if KINDS[kind].poses else ""
    return Slot(Look(kind, COLOURS["red"], length, pose=pose), **details)  # type: ignore[arg-type]


def test_nothing_overlaps_and_everything_is_inside() -> None:
    for seed in range(20):
        placed = arrange([slot("apple"), slot("dog"), slot("car"), slot("tree"), slot("cup")], 160, random_stream(seed))
        assert all(relation(item.box, Box(0, 0, 160, 160)) == "inside" for item in placed)
        assert not any(first.box.overlaps(second.box) for first, second in combinations(placed, 2))


def test_what_does_not_fit_is_drawn_smaller() -> None:
    placed = arrange([slot("circle", 90)] * 9, 160, random_stream(1))
    assert len(placed) == 9
    assert max(item.box.w for item in placed) < 60


def test_standing_objects_stand_in_their_band() -> None:
    zone = Zone(top=0.7, bottom=0.95, standing=True)
    for seed in range(10):
        (giraffe,) = arrange([slot("giraffe", 80, zone=zone)], 160, random_stream(seed))
        assert 0.7 * 160 - 1 <= giraffe.box.bottom <= 0.95 * 160 + 1


def test_inside() -> None:
    large, small = arrange([slot("circle", 90), slot("star", 30, inside=0)], 160, random_stream(3))
    assert relation(small.box, large.box) == "inside"
    predicates = {(1, 0): "inside"}
    assert [link.predicate for link in relations_between([large.box, small.box], predicates)] == ["inside"]


def test_relations_from_boxes() -> None:
    box, right, low = Box(0, 0, 10, 10), Box(20, 2, 10, 10), Box(1, 30, 10, 10)
    assert relation(box, right) == "left of"
    assert relation(right, box) == "right of"
    assert relation(box, low) == "above"
    assert relation(low, box) == "below"
    assert relation(box, Box(50, 50, 5, 5)) is None
    assert relation(Box(2, 2, 3, 3), box) == "inside"
    assert {OPPOSITE[OPPOSITE[name]] for name in OPPOSITE} == set(OPPOSITE)

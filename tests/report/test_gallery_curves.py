"""Curves over the gallery for people: sentences about runs that change places, and the page in a browser."""

from __future__ import annotations

from dataclasses import replace

from crosslens.pipeline import GalleryCurves, GalleryPoint, Lead, OrderChange
from crosslens.pipeline.curves import order_sentence

NASTY = "<b>run</b> & a name that is long enough to need a line of its own"
CHANGE = OrderChange(
    "t2i/Hit@1", ("a", NASTY), (37,), (Lead(NASTY, 10, 0.08, 0.001, 0.002), Lead("a", 100, 0.03, 0.02, 0.02))
)


def curves(change: OrderChange = CHANGE) -> GalleryCurves:
    points = {
        run: {
            "t2i/Hit@1": tuple(
                GalleryPoint(size, 0.9 - 0.1 * number, 0.8 - 0.1 * number, 0.95 - 0.1 * number, size > 100)
                for number, size in enumerate((10, 100, 1_000_000))
            )
        }
        for run in ("a", NASTY)
    }
    galleries = {run: {"t2i": 100} for run in points}
    return GalleryCurves((10, 100, 1_000_000), points, galleries, (change,), 0.95, "holm", ("beyond", "about i2t"))


def order_sentences(curves: GalleryCurves) -> list[str]:
    return [order_sentence(change, curves.correction) for change in curves.order_changes]


def test_runs_that_change_places_in_words() -> None:
    assert order_sentences(curves()) == [
        f"t2i/Hit@1: a and {NASTY} change places at 37 items: {NASTY} leads by 8.0 points at 10, p = 0.002, a leads by "
        "3.0 points at 100, p = 0.02; each lead is more than chance (paired tests, corrected: holm)."
    ]
    untested = OrderChange("t2i/MedR", ("a", "b"), (5, 9), (Lead("a", 2, 1), Lead("b", 7, 2), Lead("a", 20, 3)))
    assert order_sentences(curves(untested)) == [
        "t2i/MedR: a and b change places at 5 and 9 items: a leads by 1 at 2, b leads by 2 at 7, a leads by 3 at 20; "
        "not tested."
    ]
    chance = OrderChange("t2i/Hit@1", ("a", "b"), (5,), (Lead("a", 2, 0.1, 0.3, 0.6), Lead("b", 7, 0.1, 0.01, 0.02)))
    assert "not every lead is more than chance" in order_sentences(curves(chance))[0]


def test_extrapolated_figures_have_a_star() -> None:
    section = next(iter(curves().sections()))
    assert [str(row[1]) for row in section.tables[0].rows] == [
        "90.0 [80.0, 95.0]", "80.0 [70.0, 85.0]", "70.0 [60.0, 75.0] *",
    ]  # fmt: skip
    assert len(replace(section.tables[0], most=2).overview.rows) == 2
    assert section.tables[0].frame["a"].to_list() == [0.9, 0.8, 0.7]

"""Plain text in columns, and results that print through their renderer."""

from __future__ import annotations

from typing import Any

import pytest

from crosslens.core import RENDERERS, Grid, Printable, UnknownNameError, percent, two_columns


class Recount(Printable):
    """A made-up result."""

    def __init__(self, votes: int) -> None:
        self.votes = votes


def test_a_result_prints_through_its_renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RENDERERS, "_entries", dict(RENDERERS._entries))
    monkeypatch.setattr(RENDERERS, "_loaded", True)

    @RENDERERS.register("Recount")
    def recount_text(result: Recount, width: int | None = 80, *, bare: bool = False) -> str:
        """The votes."""
        return f"{result.votes} votes, {width} wide{', bare' if bare else ''}"

    assert str(Recount(3)) == "3 votes, 80 wide"
    assert Recount(3).text(None, bare=True) == "3 votes, None wide, bare"


def test_a_result_without_a_renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RENDERERS, "_loaded", True)
    with pytest.raises(UnknownNameError, match="unknown renderer 'Recount'"):
        str(Recount(3))


def test_wide_tables_continue_below() -> None:
    grid = Grid(("group", "one", "two", "three"), (("a", "x" * 20, "y" * 20, "z" * 20),), "llll")
    assert grid.text(60).splitlines() == [
        "group   one                    two",
        f"a       {'x' * 20}   {'y' * 20}",
        "",
        "group   three",
        f"a       {'z' * 20}",
    ]
    assert len(grid.text().splitlines()) == 2


def test_alignment() -> None:
    grid = Grid(("name", "n"), (("a", "1"), ("long one", "1,000")), "lr")
    assert grid.text().splitlines() == ["name           n", "a              1", "long one   1,000"]


def test_names_with_their_texts() -> None:
    text = two_columns([("a", "one two three four five six seven"), ("longer", "")], width=40, indent=2)
    assert text.splitlines() == ["  a        one two three four five six", "           seven", "  longer"]
    text = two_columns([("a", "the same model and budget as flickr8k-vse-triplet")], width=46)
    assert text.splitlines()[1] == "    flickr8k-vse-triplet", "names stay whole"


@pytest.mark.parametrize(
    ("value", "options", "shown"),
    [
        (0.58251, {}, "58.3"),
        (-0.0001, {}, "0.0"),
        (0.021, {"signed": True}, "+2.1"),
        (0.5, {"unit": "%"}, "50.0%"),
        (None, {"unit": "%"}, "–"),
        (float("nan"), {}, "–"),
    ],
)
def test_shares_in_percent(value: float | None, options: dict[str, Any], shown: str) -> None:
    assert percent(value, **options) == shown

"""Ids matched with ids, image file endings aside."""

from __future__ import annotations

import pytest

from crosslens.core import InputError
from crosslens.values import match_ids, positions, spelled_as, without_image_ending
from tests.tables import each_row


@each_row(
    ("names", "ids", "rows"),
    [
        (["b", "a", "b"], ["a", "b"], [1, 0, 1]),
        (["a", "b.jpg", "c"], ["a.jpg", "b", "x"], [0, 1, -1]),
        (["a.JPEG", "b.tiff"], ["b", "a.png"], [1, 0]),
        (["a"], ["a.jpg", "a.png"], [-1]),  # which of the two?
        (["a"], ["a.jpg", "a"], [1]),
        (["a", "a.jpg"], ["a"], [0, -1]),  # two names are two images
        (["a.jpg", "a.png"], ["a"], [-1, -1]),
        (["a.jpg", "a.jpg"], ["a"], [0, 0]),
        (["photo.jpg.1", "1.5", ".jpg"], ["photo.jpg", "1", ""], [-1, -1, -1]),
        ([], ["a"], []),
    ],
)
def test_matching(names: list[str], ids: list[str], rows: list[int]) -> None:
    assert match_ids(names, ids).tolist() == rows


def test_positions_and_spelling() -> None:
    assert positions(["a", "b.png"], ("b", "a.jpg"), "image", any_ending=True).tolist() == [1, 0]
    with pytest.raises(InputError, match="unknown image id 'c'"):
        positions(["a", "c"], ("b", "a.jpg"), "image", any_ending=True)
    with pytest.raises(InputError, match="unknown image id 'a'"):
        positions(["a"], ("b", "a.jpg"), "image")
    assert spelled_as(("b", "a.jpg"), ("a", "b.png", "c.png")) == ("a.jpg", "b", "c.png")
    assert without_image_ending("beach.JPG") == "beach"

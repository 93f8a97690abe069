from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest

from crosslens.core import UnknownNameError
from crosslens.synth import BACKDROPS, KINDS, pluralise
from crosslens.synth.backdrops import paint
from crosslens.synth.drawing import COLOURS, Look, tone
from crosslens.synth.kinds import kind_named, kinds_of
from crosslens.synth.scene import sprite
from tests.tables import each_row

pytest.importorskip("PIL", reason="pip install 'crosslens[scenes]'")

EVERYDAY = [kind.name for kind in KINDS.values() if kind.category not in ("panel", "landmark")]
TEXT = {"computer screen": "print(1)"}


def look(name: str, colour: str = "purple", length: int = 60, **details: object) -> Look:
    kind = KINDS[name]
    details.setdefault("pose", kind.poses[0] if kind.poses else "")
    return Look(name, COLOURS[colour], length, text=TEXT.get(name, "12"), **details)  # type: ignore[arg-type]


def test_there_are_many_kinds_and_places() -> None:
    assert len(EVERYDAY) >= 60
    assert len(BACKDROPS) >= 12
    assert len(kinds_of("landmark")) >= 5


@each_row("name", KINDS)
def test_every_kind_draws_something_in_its_box(name: str) -> None:
    drawn = sprite(look(name))
    width, height = drawn.size
    solid = np.argwhere(np.asarray(drawn)[..., 3] >= 128)
    assert (*solid.min(axis=0), *solid.max(axis=0)) == (0, 0, height - 1, width - 1)
    assert 0.45 * 60 <= max(width, height) <= 1.72 * 60


@each_row("name", [name for name in KINDS if len(KINDS[name].poses) > 1])
def test_poses_differ(name: str) -> None:
    pictures = {sprite(look(name, pose=pose)).tobytes() for pose in KINDS[name].poses}
    assert len(pictures) == len(KINDS[name].poses)


@each_row("name", EVERYDAY)
def test_an_object_shows_its_colour(name: str) -> None:
    """The tones of its colour take a good part of the drawing, so that calling it by the colour is fair."""
    pixels = np.asarray(sprite(look(name, "purple", 80))).reshape(-1, 4).astype(int)
    solid = pixels[pixels[:, 3] > 200, :3]
    tones = np.array([tone(COLOURS["purple"], name) for name in ("deep", "dark", "main", "light", "pale")])
    near = (np.abs(solid[:, None, :] - tones[None]).sum(axis=2) < 40).any(axis=1)
    assert near.mean() > 0.2


def test_catalogue_is_complete() -> None:
    for kind in KINDS.values():
        assert re.fullmatch(r"[a-z_-]+\.n\.\d\d", kind.synset), kind.name
        assert kind.also
        assert all(kind.also)
        assert kind.riddle
        assert set(kind.colours) <= set(COLOURS)
        assert 0.4 <= kind.size <= 2
        colours = [*COLOURS, "canary"]
        words = " ".join([*kind.also, kind.riddle]).split()
        if kind.category != "landmark":
            assert not set(words) & set(colours), f"{kind.name}: other names must be true in every colour"
            assert kind.name not in kind.riddle, f"{kind.name}: a riddle does not name it"
        assert pluralise(kind.riddle) != kind.riddle


def test_riddles_are_each_of_one_kind() -> None:
    assert len({kind.riddle for kind in KINDS.values()}) == len(KINDS)


def test_mirrored_and_tilted() -> None:
    plain, mirrored = sprite(look("dog")), sprite(look("dog", mirrored=True))
    assert plain.size == mirrored.size
    left, right = np.asarray(plain)[:, ::-1, 3], np.asarray(mirrored)[:, :, 3]
    assert np.mean(np.abs(left.astype(int) - right)) < 12
    assert sprite(look("dog", tilt=9)).size != plain.size


def test_unknown_kind_suggests() -> None:
    with pytest.raises(UnknownNameError, match="dog"):
        kind_named("dogg")


@each_row("name", BACKDROPS)
def test_backdrops_fill_the_picture(name: str) -> None:
    picture, again = paint(name, 64, 1), paint(name, 64, 1)
    assert picture.size == (64, 64)
    assert picture.mode == "RGB"
    assert picture.tobytes() == again.tobytes()


def test_backdrops_differ() -> None:
    pictures = [np.asarray(paint(name, 32, 5), dtype=int) for name in BACKDROPS]
    for first, second in combinations(pictures, 2):
        assert np.abs(first - second).mean() > 2

"""Changes of single pictures: what all have in common, and what each is for."""

from __future__ import annotations

import io
import itertools
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.core import InputError, UnknownNameError, UsageError
from crosslens.perturbations import (
    IMAGE_PERTURBATIONS,
    SEVERITIES,
    ImagePerturbation,
    parse_image_perturbation,
    perturb_picture,
    severity_sheet,
)
from crosslens.perturbations.images.changes import _poisson_table, crop_move, kept_part, patch, rotate_move
from crosslens.storage import random_stream
from tests.tables import each_row

Image = pytest.importorskip("PIL.Image", reason="pip install 'crosslens[scenes]'")

NAMES = [entry.name for entry in IMAGE_PERTURBATIONS]
PIXELS = ("brightness", "contrast", "grayscale", "noise", "occlusion", "shot_noise")
"""Changes of pixels where they are: more severity changes any picture more, not only the usual one."""


@pytest.fixture(scope="module")
def scenes() -> dict[str, Any]:
    from crosslens.synth import generate

    return {str(scene.number): scene.render() for scene in generate(4, seed=5)}


def distance(first: Any, second: Any) -> float:
    return float(np.sqrt(((np.asarray(first, np.float64) - np.asarray(second, np.float64)) ** 2).mean()))


def sizes() -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(1, 40), st.integers(1, 40))


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    height, width = draw(sizes())
    channels = draw(st.sampled_from([None, 1, 2, 3, 4]))
    shape = (height, width) if channels is None else (height, width, channels)
    pixels: np.ndarray[Any, Any] = (
        np.random.default_rng(draw(st.integers(0, 99))).integers(0, 256, shape).astype(np.uint8)
    )
    return pixels


def test_what_the_specification_names_is_there() -> None:
    assert {"blur", "noise", "jpeg", "crop", "occlusion"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
@given(picture=arrays(), severity=st.sampled_from(SEVERITIES), seed=st.integers(0, 3))
def test_any_array_gives_a_picture_of_the_same_kind(name: str, picture: Any, severity: int, seed: int) -> None:
    before = picture.copy()
    changed = perturb_picture(name, picture, severity=severity, seed=seed, key="a")
    assert (changed.shape, changed.dtype) == (picture.shape, np.uint8)
    assert np.array_equal(picture, before), "the picture that was given is not touched"
    again = perturb_picture(f"{name}@{severity}", picture, seed=seed, key="a")
    assert np.array_equal(changed, again)


@pytest.mark.parametrize("name", NAMES)
def test_more_severity_changes_scenes_more(name: str, scenes: dict[str, Any]) -> None:
    means = [
        np.mean(
            [distance(scene, perturb_picture(name, scene, severity=step, key=key)) for key, scene in scenes.items()]
        )
        for step in SEVERITIES
    ]
    assert means[0] > 0
    assert all(after > before for before, after in itertools.pairwise(means)), means


@pytest.mark.parametrize("name", PIXELS)
@given(picture=arrays(), key=st.text(max_size=3))
def test_more_severity_changes_any_picture_at_least_as_much(name: str, picture: Any, key: str) -> None:
    if name == "shot_noise":  # counts are whole: a few pixels alone may by luck fall back on their own value
        picture = np.broadcast_to(picture[:1, :1], (64, 64, *picture.shape[2:])).copy()
    steps = [distance(picture, perturb_picture(name, picture, severity=step, key=key)) for step in SEVERITIES]
    slack = 0.5 if name != "shot_noise" else 2.0  # values are rounded
    assert all(after >= before - slack for before, after in itertools.pairwise(steps)), steps


@pytest.mark.parametrize("name", NAMES)
def test_chance_depends_on_seed_and_key_alone(name: str, scenes: dict[str, Any]) -> None:
    first_scene, second_scene = list(scenes.values())[:2]
    first = np.asarray(perturb_picture(name, first_scene, key="1"))
    perturb_picture(name, second_scene, key="2")
    assert np.array_equal(first, np.asarray(perturb_picture(name, first_scene, key="1")))
    chancy = name not in ("blur", "contrast", "grayscale", "jpeg", "pixelate")
    keys = {np.asarray(perturb_picture(name, first_scene, key=str(key))).tobytes() for key in range(12)}
    seeds = {np.asarray(perturb_picture(name, first_scene, key="1", seed=seed)).tobytes() for seed in range(12)}
    assert (len(keys) > 1, len(seeds) > 1) == (chancy, chancy)


@given(size=st.tuples(st.integers(1, 900), st.integers(1, 900)), key=st.text(max_size=4), seed=st.integers(0, 9))
def test_patches_and_parts_nest(size: tuple[int, int], key: str, seed: int) -> None:
    def of(name: str, function: Any) -> list[Any]:
        return [function(size, ImagePerturbation(name, step).amount, random_stream(seed, key)) for step in SEVERITIES]

    for outer, inner in [*_pairs(of("occlusion", patch)[::-1]), *_pairs(of("crop", kept_part))]:
        assert all(0 <= each <= side for each, side in zip(outer, (*size, *size), strict=True))
        assert outer[0] <= inner[0] + 1e-9
        assert outer[1] <= inner[1] + 1e-9
        assert inner[2] <= outer[2] + 1e-9
        assert inner[3] <= outer[3] + 1e-9


def _pairs(values: list[Any]) -> list[tuple[Any, Any]]:
    return list(itertools.pairwise(values))


def test_severities_share_their_noise() -> None:
    grey = np.full((40, 50, 3), 128, np.uint8)
    patterns = [perturb_picture("noise", grey, severity=step, key="k").astype(float) - 128 for step in (1, 2, 3)]
    for pattern in patterns[1:]:
        assert np.corrcoef(patterns[0].ravel(), pattern.ravel())[0, 1] > 0.98
    assert np.std(patterns[2]) == pytest.approx(0.16 * 255, rel=0.03)


def test_noise_is_as_strong_in_a_large_picture_once_it_is_reduced() -> None:
    small, large = (Image.new("RGB", (side, side), (128, 128, 128)) for side in (256, 1024))
    spread = [
        np.asarray(perturb_picture("noise", grey, key="k").resize((256, 256), Image.Resampling.BOX)).std()
        for grey in (small, large)
    ]
    assert spread[1] == pytest.approx(spread[0], rel=0.02)


@pytest.mark.parametrize("quanta", [6.0, 60.0])
def test_shot_noise_is_poisson(quanta: float) -> None:
    from scipy.stats import poisson

    table = _poisson_table(quanta)
    chances = (np.arange(table.shape[1]) + 0.5) / table.shape[1]
    for level in (0, 1, 40, 128, 200, 255):
        expected = poisson.ppf(chances, quanta * level / 255) * 255 / quanta if level else np.zeros(len(chances))
        assert np.abs(table[level] - np.clip(expected, 0, 255)).max() <= 0.5 + 1e-3


def test_motion_blur_is_a_mean_of_shifted_pictures() -> None:
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 256, (30, 40, 1)).astype(np.uint8)
    changed = perturb_picture("motion_blur@4", picture, key="k")
    angle = random_stream(0, "image perturbation", "motion_blur", "k").uniform(0, np.pi)
    length = 75 / 1000 * 30
    steps = np.linspace(-length / 2, length / 2, 2 * int(np.ceil(length)) + 1)
    for row, column in [(0, 0), (29, 39), (15, 20), (3, 38)]:
        values = []
        for step in steps:
            down, right = round(step * np.sin(angle)), round(step * np.cos(angle))
            values.append(picture[min(29, max(0, row + down)), min(39, max(0, column + right)), 0])
        assert changed[row, column, 0] == pytest.approx(np.mean(values), abs=0.51)


def test_pixelate_and_grayscale_do_as_they_say() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (100, 100, 3)).astype(np.uint8)
    assert len(np.unique(perturb_picture("pixelate@5", picture, key="k").reshape(-1, 3), axis=0)) <= 27**2
    grey = perturb_picture("grayscale@5", picture, key="k")
    assert np.ptp(grey, axis=2).max() == 0
    expected = np.asarray(Image.fromarray(picture).convert("L"), float)
    assert np.abs(grey[..., 0] - expected).max() <= 1


def test_a_crop_shows_the_part_it_says() -> None:
    across = np.broadcast_to(np.arange(256, dtype=np.uint8)[None, :, None], (256, 256, 3)).copy()
    changed = perturb_picture("crop@4", across, key="k").astype(float)
    left, _, right, _ = kept_part((256, 256), 0.32, random_stream(0, "image perturbation", "crop", "k"))
    assert changed[:, 0].mean() == pytest.approx(left, abs=1.5)
    assert changed[:, -1].mean() == pytest.approx(right - 1, abs=1.5)


@pytest.mark.parametrize(("name", "move"), [("crop", crop_move), ("rotate", rotate_move)])
@pytest.mark.parametrize("key", ["a", "b", "c", "d"])
def test_boxes_go_where_the_pixels_go(name: str, move: Any, key: str) -> None:
    """A white rectangle on black is found again, in the changed pixels, where its box went."""
    box = (90, 110, 40, 24)
    picture = np.zeros((240, 320, 3), np.uint8)
    picture[box[1] : box[1] + box[3], box[0] : box[0] + box[2]] = 255
    wanted = ImagePerturbation(name, 2)
    changed = perturb_picture(wanted, picture, key=key)[..., 0]
    moved = move((320, 240), wanted.amount, random_stream(0, "image perturbation", name, key)).corners(np.array([box]))[
        0
    ]
    bright = np.argwhere(changed > 170)
    corners = [bright[:, 1].min(), bright[:, 0].min(), bright[:, 1].max() + 1, bright[:, 0].max() + 1]
    inside = np.clip(moved, 0, [320, 240, 320, 240])
    assert corners == pytest.approx(inside, abs=2.5)


@each_row("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "F", "YCbCr"])
def test_every_mode_and_size(mode: str) -> None:
    expected = {"1": "L", "L": "L", "LA": "LA", "RGBA": "RGBA"}.get(mode, "RGB")
    for name in NAMES:
        for size in ((1, 1), (23, 1), (31, 17)):
            changed = perturb_picture(name, Image.new(mode, size), severity=5, key="k")
            assert (changed.size, changed.mode) == (size, expected)


def test_a_palette_keeps_its_colours_and_its_transparency(scenes: dict[str, Any]) -> None:
    palette = next(iter(scenes.values())).quantize(16)
    coloured = perturb_picture("occlusion@1", palette, key="k")
    assert coloured.mode == "RGB"
    assert distance(coloured, palette.convert("RGB")) < 60
    palette.info["transparency"] = 0
    assert perturb_picture("blur", palette, key="k").mode == "RGBA"


def test_transparency_moves_with_things_and_stays_otherwise() -> None:
    pixels = np.zeros((60, 60, 4), np.uint8)
    pixels[:, :30, 3] = 255
    for name in ("blur", "noise", "jpeg", "brightness"):
        assert np.array_equal(perturb_picture(f"{name}@5", pixels, key="k")[..., 3], pixels[..., 3])
    covered = perturb_picture("occlusion@5", pixels, key="k")
    assert (covered[(covered[..., :3] == 128).all(-1)][:, 3] == 255).all(), "a patch is not transparent"
    assert not np.array_equal(perturb_picture("crop@5", pixels, key="k")[..., 3], pixels[..., 3])


def test_colours_under_transparency_are_not_lost() -> None:
    """Encoders drop the transparency, and then see what lies under it."""
    pixels = np.full((40, 40, 4), 200, np.uint8)
    pixels[..., 3] = 0
    for name in ("crop", "rotate@1", "blur", "pixelate"):
        assert perturb_picture(name, pixels, key="k")[20, 20, :3].tolist() == [200, 200, 200]


def test_which_way_up_is_kept() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    content = io.BytesIO()
    Image.new("RGB", (40, 20), (200, 30, 30)).save(content, "JPEG", exif=exif)
    changed = perturb_picture("noise", Image.open(content), key="k")
    assert changed.size == (40, 20)
    assert changed.getexif()[0x0112] == 6


@pytest.mark.parametrize(
    ("text", "problem"),
    [("blurr", "did you mean blur"), ("blur@6", "severity '6'"), ("blur@", "severity ''"), ("blur@2.5", "from 1"),
     ("blur@-1", "from 1"), ("Noize@2", "did you mean")],
)  # fmt: skip
def test_bad_names_and_severities(text: str, problem: str) -> None:
    with pytest.raises((UnknownNameError, UsageError)) as raised:
        parse_image_perturbation(text)
    assert problem in str(raised.value)


def test_names_print_as_they_parse() -> None:
    for name in NAMES:
        assert str(parse_image_perturbation(name)) == f"{name}@3"
        for step in SEVERITIES:
            assert parse_image_perturbation(str(ImagePerturbation(name, step))) == ImagePerturbation(name, step)
    assert parse_image_perturbation("blur", 2).severity == 2
    for bad in (0, 6, True, 2.5):
        with pytest.raises(UsageError):
            parse_image_perturbation("blur", bad)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="contradict"):
        parse_image_perturbation("blur@2", 3)


@pytest.mark.parametrize(
    "array", [np.zeros((4, 4)), np.zeros((4, 4, 5), np.uint8), np.zeros(4, np.uint8), np.zeros((0, 4, 3), np.uint8)]
)
def test_arrays_that_are_no_pictures(array: Any) -> None:
    with pytest.raises(InputError):
        perturb_picture("blur", array, key="k")


def test_a_sheet_has_a_row_for_each_change(scenes: dict[str, Any]) -> None:
    picture = next(iter(scenes.values()))
    of_blur = severity_sheet([picture], ["blur"], side=60)
    of_both = severity_sheet([picture, np.asarray(picture)], ["blur", "noise@2"], keys=["a", "b"], side=60)
    assert (of_both.width, of_both.height - 6) == (of_blur.width, 4 * (of_blur.height - 6))
    with pytest.raises(UsageError):
        severity_sheet([], ["blur"])
    with pytest.raises(UnknownNameError):
        severity_sheet([picture], ["blurr"])


def test_without_pillow_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['PIL'] = None\n"
        "import numpy as np\n"
        "from crosslens.perturbations import IMAGE_PERTURBATIONS, perturb_picture\n"
        "assert len(list(IMAGE_PERTURBATIONS)) > 5\n"
        "perturb_picture('noise', np.zeros((4, 4), np.uint8), key='k')\n"
        "perturb_picture('blur', np.zeros((4, 4), np.uint8), key='k')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "line 6" in done.stderr
    assert "crosslens[scenes]" in done.stderr


@pytest.mark.parametrize("picture", ["cat.png", None, [[1, 2], [3, 4]]])
def test_what_is_no_picture_is_refused(picture: object) -> None:
    with pytest.raises(InputError, match="is not a picture"):
        perturb_picture("blur@2", picture, key="k")

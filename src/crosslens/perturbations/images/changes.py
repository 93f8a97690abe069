"""Between Pillow's pictures and arrays: colours and transparency apart, what belongs to the file kept."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from crosslens.core import (
    CrosslensError,
    Entry,
    InputError,
    Registry,
    UsageError,
    call_function,
    needs_extra,
    wrong_code,
)
from crosslens.data import readable_picture
from crosslens.storage import random_stream

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
"""Height × width × channels; one channel for grey pictures, three for coloured ones."""

_MODES = {"L": "L", "LA": "LA", "RGB": "RGB", "RGBA": "RGBA", "1": "L", "PA": "RGBA", "La": "LA", "RGBa": "RGBA"}
_KEPT = ("exif", "icc_profile")
"""Pixels are changed as they are stored, so the note which way up they are shown stays true."""
_COMPRESSION = 3
"""Files are a few percent larger than at the default of 6, and written in half the time."""


def pillow() -> Any:
    """Pillow; raises with the install command where it is missing."""
    with needs_extra("changing images", "pillow", "scenes"):
        import PIL.Image
        import PIL.ImageDraw
        import PIL.ImageFilter
        import PIL.ImageFont
        import PIL.ImageOps
    return PIL


def opened(content: bytes) -> Any:
    """The picture in a file's bytes, as it is stored; whatever is wrong with it raises an ``InputError``."""
    pillow()
    with readable_picture(content) as picture:
        picture.load()
        return picture


def png(picture: Any) -> bytes:
    """The bytes of a file that loses nothing; the same picture gives the same bytes."""
    content = io.BytesIO()
    picture.save(content, "PNG", compress_level=_COMPRESSION, **_kept_info(picture))
    return content.getvalue()


def to_picture(pixels: Pixels) -> Any:
    """A Pillow picture of one or three channels (or two or four, the last being transparency)."""
    return pillow().Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


def from_picture(picture: Any) -> Pixels:
    """Height × width × channels."""
    pixels = np.asarray(picture)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def split(picture: Any) -> tuple[Pixels, Pixels | None]:
    """The colours of a Pillow picture or an array, and its transparency if it has one."""
    if isinstance(picture, np.ndarray):
        if picture.dtype != np.uint8 or not (picture.ndim == 2 or (picture.ndim == 3 and 1 <= picture.shape[2] <= 4)):
            raise InputError(
                f"an array of shape {picture.shape} and type {picture.dtype} is not a picture",
                expected="numbers of type uint8, height × width or height × width × 1 to 4 channels",
                fix="round colours to 0…255 and convert: array.astype(numpy.uint8)",
            )
        pixels = from_picture(picture)
    elif not isinstance(picture, pillow().Image.Image):
        raise InputError(f"{picture!r:.60} is not a picture", expected="a Pillow picture or a uint8 array")
    else:
        mode = _MODES.get(picture.mode, "RGB")
        if "transparency" in picture.info and picture.mode in ("P", "L", "RGB"):
            mode = "LA" if picture.mode == "L" else "RGBA"
        pixels = from_picture(picture if picture.mode == mode else picture.convert(mode))
    if not pixels.size:
        raise InputError("the picture has no pixels", expected="at least one pixel")
    return (pixels[..., :-1], pixels[..., -1:]) if pixels.shape[2] in (2, 4) else (pixels, None)


def join(colours: Pixels, alpha: Pixels | None, like: Any) -> Any:
    """A picture of the kind of ``like``."""
    pixels = colours if alpha is None else np.concatenate([colours, alpha], axis=2)
    if isinstance(like, np.ndarray):
        return pixels.reshape(like.shape)
    joined = to_picture(pixels)
    joined.info.update(_kept_info(like))
    return joined


def _kept_info(picture: Any) -> dict[str, Any]:
    return {name: picture.info[name] for name in _KEPT if name in picture.info}


Change = Callable[..., Pixels]
"""``change(pixels, amount, draws)``: other pixels of the same shape; ``draws`` is a ``numpy`` generator."""

IMAGE_PERTURBATIONS: Registry[Change] = Registry(
    "image perturbation", "image_perturbations", ("crosslens.perturbations.images",)
)
SEVERITIES = (1, 2, 3, 4, 5)
DEFAULT_SEVERITY = 3
_OPAQUE = 255


@dataclass(frozen=True)
class ImagePerturbation:
    """One change at one severity; it prints as it parses: ``blur@3``."""

    name: str
    severity: int = DEFAULT_SEVERITY

    def __post_init__(self) -> None:
        assert self.entry.name == self.name
        if isinstance(self.severity, bool) or self.severity not in SEVERITIES:
            raise _unknown_severity(self.name, self.severity)

    @property
    def entry(self) -> Entry[Change]:
        return IMAGE_PERTURBATIONS[self.name]

    @property
    def amount(self) -> float:
        """What the severity means, in the unit of the perturbation."""
        return float(self.entry.details["amounts"][self.severity - 1])

    def __str__(self) -> str:
        return f"{self.name}@{self.severity}"


def parse_image_perturbation(text: str | ImagePerturbation, severity: int | None = None) -> ImagePerturbation:
    """``blur@3`` or ``blur``; without a severity in the text, the one given, or 3."""
    if isinstance(text, ImagePerturbation):
        return text
    name, mark, number = text.strip().partition("@")
    full_name = IMAGE_PERTURBATIONS[name].name
    if not mark:
        return ImagePerturbation(full_name, DEFAULT_SEVERITY if severity is None else severity)
    if not number.isdecimal() or int(number) not in SEVERITIES:
        raise _unknown_severity(full_name, number)
    if severity is not None and severity != int(number):
        raise UsageError(f"{text!r} and severity={severity} contradict each other", fix="give the severity once")
    return ImagePerturbation(full_name, int(number))


def _unknown_severity(name: str, severity: object) -> UsageError:
    return UsageError(
        f"severity {severity!r} of {name!r}",
        fix=f"use a whole number from {SEVERITIES[0]} (hardly visible) to {SEVERITIES[-1]}, as in {name}@3",
    )


def image_perturbation(
    name: str, amounts: tuple[float, ...], unit: str, *, phrase: str = "", alpha: bool = False, move: Any = None
) -> Callable[[Change], Change]:
    """Register ``change(pixels, amount, draws)`` under a name, and under a ``phrase`` for titles and sentences.

    ``amounts`` are those of severities 1 to 5, ``unit`` says in words what they are. Every severity of an image is
    called with the same draws: draw first, in an order that does not depend on the amount, and the severities nest. A
    change of where things are or what covers them (``alpha``) is also called with the transparency of pictures that
    have one, as a single channel, and takes ``fill``, the value of pixels that show nothing. ``move(size, amount,
    draws)`` is for changes that move things: it gives the ``Move`` of their boxes.
    """
    if len(amounts) != len(SEVERITIES):
        problem = f"image perturbation {name!r} has {len(amounts)} amounts"
        raise CrosslensError(problem, fix=f"give one for each of {SEVERITIES}")
    return IMAGE_PERTURBATIONS.register(name, amounts=amounts, unit=unit, phrase=phrase, alpha=alpha, move=move)


def perturb_picture(
    name: str | ImagePerturbation, picture: Any, *, severity: int | None = None, seed: int = 0, key: str
) -> Any:
    """A picture changed by ``name`` (``blur@3``, or ``blur`` with ``severity``, by default 3).

    ``picture`` is a Pillow picture or a uint8 array; what comes back is of the same kind and size. ``key`` is the
    image's id: chance depends on it, on the seed and on the name of the perturbation, on nothing else. Pictures keep
    their mode, except that a palette, which cannot hold new colours, becomes colours, one bit becomes grey, and
    modes that encoders do not take (CMYK, 16 bits) become RGB. Pixels are changed as they are stored; a note in the
    file which way up they are shown is kept.
    """
    change = parse_image_perturbation(name, severity)
    colours, alpha = split(picture)
    changed = _changed_pixels(change, colours, seed, key)
    if alpha is not None and change.entry.details["alpha"]:
        alpha = _changed_pixels(change, alpha, seed, key, fill=_OPAQUE)
    return join(changed, alpha, picture)


def image_draws(change: ImagePerturbation, seed: int, key: str) -> np.random.Generator:
    """The random draws of one image, the same for every severity."""
    return random_stream(seed, "image perturbation", change.name, key)


def _changed_pixels(change: ImagePerturbation, pixels: Pixels, seed: int, key: str, **options: int) -> Pixels:
    changed = call_function(change.entry.value, pixels, change.amount, image_draws(change, seed, key), **options)
    if getattr(changed, "shape", None) != pixels.shape or changed.dtype != np.uint8:
        problem = f"image perturbation {change.name!r} did not return a picture of the same size"
        raise wrong_code(change.entry.value, problem, "it must return uint8 pixels of the shape it was given")
    return changed


_LUMA = np.array([0.299, 0.587, 0.114], np.float32)
"""How bright red, green and blue look (Rec. 601)."""
_ACROSS = 256
_QUANTILES = 4096
_MOST_COPIES = 65
"""Of a shaken picture; more are not told apart, and take their time with large pictures."""

Array = np.ndarray[Any, Any]
FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


@image_perturbation("brightness", (0.2, 0.35, 0.5, 0.65, 0.8), "way to white or to black", phrase="changed brightness")
def brightness(pixels: Pixels, amount: float, draws: np.random.Generator) -> Pixels:
    """Lighter or darker, a matter of chance: every pixel goes part of the way to white, or to black."""
    target = 255.0 if draws.random() < 0.5 else 0.0
    return _towards(pixels, np.float32(target), amount)


@image_perturbation("contrast", (0.3, 0.5, 0.65, 0.78, 0.88), "way to the picture's mean", phrase="less contrast")
def contrast(pixels: Pixels, amount: float, draws: np.random.Generator) -> Pixels:
    """Flatter: every pixel goes part of the way to the mean brightness of the picture."""
    return _towards(pixels, _grey(pixels).mean(), amount)


@image_perturbation("grayscale", (0.3, 0.5, 0.7, 0.85, 1.0), "share of the colour taken away", phrase="less colour")
def grayscale(pixels: Pixels, amount: float, draws: np.random.Generator) -> Pixels:
    """Paler, at severity 5 without any colour; brightness stays as it is."""
    return pixels if pixels.shape[2] == 1 else _towards(pixels, _grey(pixels), amount)


def _grey(pixels: Pixels) -> FloatArray:
    weights = _LUMA if pixels.shape[2] == 3 else np.ones(1, np.float32)
    return (pixels @ weights)[..., None]


def _towards(pixels: Pixels, target: FloatArray | np.float32, amount: float) -> Pixels:
    return as_pixels(pixels + (target - pixels) * np.float32(amount))


def as_pixels(values: Array) -> Pixels:
    """Rounded, and cut off at black and white."""
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


@image_perturbation(
    "noise", (0.06, 0.1, 0.16, 0.24, 0.35), "standard deviation, of the range from black to white", phrase="noise"
)
def noise(pixels: Pixels, amount: float, draws: np.random.Generator) -> Pixels:
    """Gaussian noise on every channel; all severities have one pattern, only stronger."""
    rows, columns = _grains(pixels)
    pattern = draws.standard_normal((rows[-1] + 1, columns[-1] + 1, pixels.shape[2]), np.float32)
    return as_pixels(pixels + _enlarged(pattern * np.float32(255 * amount), rows, columns))


@image_perturbation(
    "shot_noise", (150, 60, 25, 12, 6), "light quanta of a white pixel", phrase="noise of few light quanta"
)
def shot_noise(pixels: Pixels, amount: float, draws: np.random.Generator) -> Pixels:
    """The noise of few light quanta (Poisson): strong where it is bright; all severities have one pattern."""
    rows, columns = _grains(pixels)
    chances = draws.integers(_QUANTILES, size=(rows[-1] + 1, columns[-1] + 1, pixels.shape[2]), dtype=np.uint16)
    changed: Pixels = _poisson_table(amount)[pixels, _enlarged(chances, rows, columns)]
    return changed


def _grains(pixels: Pixels) -> tuple[Array, Array]:
    """For every row and every column of pixels, the row and column of its grain."""
    height, width = pixels.shape[:2]
    size = max(1.0, min(height, width) / _ACROSS)
    return (np.arange(height) / size).astype(np.int64), (np.arange(width) / size).astype(np.int64)


def _enlarged(pattern: Array, rows: Array, columns: Array) -> Array:
    return pattern if pattern.shape[:2] == (len(rows), len(columns)) else pattern[rows][:, columns]


@lru_cache(maxsize=8)
def _poisson_table(white: float) -> Pixels:
    """Brightness × quantile → brightness, when a white pixel catches ``white`` quanta on average."""
    counts = np.arange(int(white + 8 * white**0.5) + 8)
    chances = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])
    table = np.zeros((256, _QUANTILES), np.uint8)
    for level in range(1, 256):
        mean = white * level / 255
        below = np.cumsum(np.exp(counts * np.log(mean) - mean - log_factorial))
        caught = np.searchsorted(below, chances).clip(max=len(counts) - 1)
        table[level] = as_pixels((255 / white * caught).astype(np.float32))
    return table


@image_perturbation("blur", (4, 6, 10, 15, 22), "standard deviation in thousandths of the shorter side", phrase="blur")
def blur(pixels: Pixels, amount: float, draws: np.random.Generator) -> Pixels:
    """Out of focus: a Gaussian blur."""
    return from_picture(to_picture(pixels).filter(pillow().ImageFilter.GaussianBlur(_length(pixels, amount))))


@image_perturbation(
    "motion_blur", (16, 27, 47, 75, 110), "length in thousandths of the shorter side", phrase="motion blur"
)
def motion_blur(pixels: Pixels, amount: float, draws: np.random.Generator) -> Pixels:
    """Shaken: the picture smeared along a line whose direction is a matter of chance."""
    angle = draws.uniform(0, np.pi)
    length = _length(pixels, amount)
    steps = np.linspace(-length / 2, length / 2, min(_MOST_COPIES, 2 * int(np.ceil(length)) + 1))
    points = np.rint(np.stack([steps * np.sin(angle), steps * np.cos(angle)], axis=1)).astype(int)
    offsets, weights = np.unique(points, axis=0, return_counts=True)
    reach = int(np.abs(offsets).max())
    height, width = pixels.shape[:2]
    padded = np.pad(pixels, ((reach, reach), (reach, reach), (0, 0)), mode="edge")
    total = np.zeros(pixels.shape, np.uint32)
    for (down, right), weight in zip(offsets + reach, weights, strict=True):
        total += padded[down : down + height, right : right + width] * np.uint32(weight)
    count = int(weights.sum())
    return ((total + count // 2) // count).astype(np.uint8)


@image_perturbation(
    "pixelate", (7, 11, 17, 26, 37), "side of a square in thousandths of the shorter side", phrase="coarse squares"
)
def pixelate(pixels: Pixels, amount: float, draws: np.random.Generator) -> Pixels:
    """Coarse: squares of one colour each."""
    picture, side = to_picture(pixels), max(1.0, _length(pixels, amount))
    size = tuple(max(1, round(length / side)) for length in picture.size)
    resampling = pillow().Image.Resampling
    return from_picture(picture.resize(size, resampling.BOX).resize(picture.size, resampling.NEAREST))


@image_perturbation("jpeg", (30, 18, 12, 8, 5), "JPEG quality, of 100", phrase="JPEG compression")
def jpeg(pixels: Pixels, amount: float, draws: np.random.Generator) -> Pixels:
    """What JPEG compression leaves of the picture, at its own size: a large picture loses less that an encoder sees."""
    content = io.BytesIO()
    to_picture(pixels).save(content, "JPEG", quality=int(amount))
    return from_picture(pillow().Image.open(content))


def _length(pixels: Pixels, thousandths: float) -> Any:
    return thousandths / 1000 * min(pixels.shape[:2])


GREY = 128
Size = tuple[int, int]
"""Width, height."""


class Move(NamedTuple):
    """Where a point goes: (x, y) → (a·x + b·y + c, d·x + e·y + f), in pixels; arrays have a move for each box."""

    a: Any
    b: Any
    c: Any
    d: Any
    e: Any
    f: Any

    def corners(self, boxes: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Left, top, right, bottom around the moved corners of boxes given as x, y, width, height."""
        x, y, w, h = np.asarray(boxes, np.float64).T
        across, down = np.stack([x, x + w, x, x + w]), np.stack([y, y, y + h, y + h])
        right = self.a * across + self.b * down + self.c
        low = self.d * across + self.e * down + self.f
        return np.stack([right.min(0), low.min(0), right.max(0), low.max(0)], axis=1)


def kept_part(size: Size, amount: float, draws: np.random.Generator) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of the part that a crop keeps."""
    (width, height), (across, down) = size, draws.random(2)
    side = math.sqrt(amount)
    wide, high = max(1.0, width * side), max(1.0, height * side)
    left, top = across * (width - wide), down * (height - high)
    return left, top, min(width, left + wide), min(height, top + high)  # sums may round up beyond the frame


def crop_move(size: Size, amount: float, draws: np.random.Generator) -> Move:
    """The kept part fills the frame."""
    left, top, right, bottom = kept_part(size, amount, draws)
    wider, higher = size[0] / (right - left), size[1] / (bottom - top)
    return Move(wider, 0.0, -left * wider, 0.0, higher, -top * higher)


@image_perturbation(
    "crop",
    (0.8, 0.62, 0.46, 0.32, 0.2),
    "share of the area that is kept",
    phrase="cropping",
    alpha=True,
    move=crop_move,
)
def crop(pixels: Pixels, amount: float, draws: np.random.Generator, fill: int = GREY) -> Pixels:
    """A part cut out at random and enlarged to the size of the picture; a higher severity keeps a part of that part."""
    picture = to_picture(pixels)
    part = kept_part(picture.size, amount, draws)
    return from_picture(picture.resize(picture.size, pillow().Image.Resampling.BICUBIC, box=part))


def rotate_move(size: Size, amount: float, draws: np.random.Generator) -> Move:
    """A turn around the middle."""
    angle = math.radians(_turn(amount, draws))
    cos, sin = math.cos(angle), math.sin(angle)
    x, y = size[0] / 2, size[1] / 2
    return Move(cos, sin, x - cos * x - sin * y, -sin, cos, y + sin * x - cos * y)


@image_perturbation("rotate", (5, 10, 18, 28, 40), "degrees", phrase="a tilt", alpha=True, move=rotate_move)
def rotate(pixels: Pixels, amount: float, draws: np.random.Generator, fill: int = GREY) -> Pixels:
    """A tilt to the left or to the right, a matter of chance; the corners that come into view are grey."""
    picture = to_picture(pixels)
    colour = fill if pixels.shape[2] == 1 else (fill,) * pixels.shape[2]
    return from_picture(picture.rotate(_turn(amount, draws), pillow().Image.Resampling.BICUBIC, fillcolor=colour))


def patch(size: Size, amount: float, draws: np.random.Generator) -> tuple[int, int, int, int]:
    """Left, top, right, bottom of what an occlusion covers."""
    (width, height), (across, down) = size, draws.random(2)
    longer = math.sqrt(math.exp(draws.uniform(-0.3, 0.3)))
    side = math.sqrt(amount)
    wide, high = min(width, width * side * longer), min(height, height * side / longer)
    left, top = across * (width - wide), down * (height - high)
    return math.floor(left), math.floor(top), math.ceil(left + wide), math.ceil(top + high)


@image_perturbation(
    "occlusion", (0.04, 0.1, 0.19, 0.31, 0.46), "share of the area that is covered", phrase="a grey patch", alpha=True
)
def occlusion(pixels: Pixels, amount: float, draws: np.random.Generator, fill: int = GREY) -> Pixels:
    """A grey patch at a random place; that of a higher severity covers that of a lower one."""
    left, top, right, bottom = patch((pixels.shape[1], pixels.shape[0]), amount, draws)
    covered = pixels.copy()
    covered[top:bottom, left:right] = fill
    return covered


def _turn(amount: float, draws: np.random.Generator) -> float:
    return amount if draws.random() < 0.5 else -amount

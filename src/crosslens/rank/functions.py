"""Score functions by name, with options in brackets: ``cosine``, ``smooth-chamfer[alpha=16]``, ``match[samples=7]``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import InputError, UnknownNameError, UsageError
from crosslens.core.seeds import stream
from crosslens.rank.multivector import PooledProduct, best_pair, match_probability, smooth_chamfer
from crosslens.rank.scorers import InnerProduct, Scorer, single, unit_rows

Array = np.ndarray[Any, Any]


def scorer_of(images: Embeddings, captions: Embeddings, score: str = "cosine") -> Scorer:
    """The scorer that a name such as ``cosine`` or ``smooth-chamfer[alpha=8]`` stands for."""
    name, options = _parse(score)
    if name not in SCORES:
        raise UnknownNameError("score function", name, SCORES)
    kind, build, defaults = SCORES[name]
    for option in options:
        if option not in defaults:
            known = ", ".join(f"{key}={value:g}" for key, value in defaults.items()) or "none"
            raise UsageError(f"score function {name!r} has no option {option!r}", fix=f"its options: {known}")
    _check_kinds(images, captions, name, kind)
    return build(images, captions, **{**defaults, **options})


def _cosine(images: Embeddings, captions: Embeddings) -> Scorer:
    """Inner product of the vectors at length 1."""
    return InnerProduct(single(images, unit=True), single(captions, unit=True), unit=True)


def _dot(images: Embeddings, captions: Embeddings) -> Scorer:
    """Inner product of the vectors as they are."""
    return InnerProduct(single(images, unit=False), single(captions, unit=False))


def _max(images: Embeddings, captions: Embeddings) -> Scorer:
    """Largest cosine over all pairs of vectors of the two items (PVSE)."""
    return PooledProduct(unit_rows(_several(images)), unit_rows(_several(captions)), best_pair)


def _smooth_chamfer(images: Embeddings, captions: Embeddings, alpha: float) -> Scorer:
    """Soft best matches of all vectors of both items, averaged (DivE)."""
    if not alpha > 0:
        raise UsageError(f"smooth-chamfer with alpha={alpha:g}", fix="use an alpha above 0; 16 is usual")
    return PooledProduct(unit_rows(_several(images)), unit_rows(_several(captions)), smooth_chamfer(alpha))


def _csd(images: Embeddings, captions: Embeddings) -> Scorer:
    """Minus the expected squared distance of the two distributions: closed form, ranks like the match probability."""

    def spread(one: Embeddings) -> tuple[Array, Array]:
        mean, variance = one.vectors.astype(np.float64), np.asarray(one.variance, np.float64)
        return mean, (mean**2 + variance).sum(axis=1)

    def extend(mean: Array, *columns: Array) -> Array:
        return np.ascontiguousarray(np.column_stack([np.sqrt(2) * mean, *columns]), np.float32)

    (left, left_spread), (right, right_spread) = spread(images), spread(captions)
    return InnerProduct(
        extend(left, -left_spread, np.ones(len(left))), extend(right, np.ones(len(right)), -right_spread)
    )


def _match(images: Embeddings, captions: Embeddings, samples: float, a: float, b: float, seed: float) -> Scorer:
    """Match probability of PCME: mean of sigmoid(b - a · distance) over pairs of samples of the two distributions."""
    if samples < 1:
        raise UsageError(f"match with samples={samples:g}", fix="draw at least one sample; 7 is usual")

    def draw(one: Embeddings, what: str) -> Array:
        deviation = np.sqrt(np.asarray(one.variance, np.float64))[:, None, :]
        noise = np.stack(
            [stream(int(seed), "match", what, key).standard_normal((int(samples), one.dimension)) for key in one.ids]
        )
        return np.asarray(one.vectors[:, None, :] + noise * deviation, np.float64)

    def extend(points: Array, *, first: bool) -> Array:
        half = -0.5 * (points**2).sum(axis=2, keepdims=True)
        ones = np.ones_like(half)
        return np.concatenate([points, half, ones] if first else [points, ones, half], axis=2)

    return PooledProduct(
        extend(draw(images, "image"), first=True),
        extend(draw(captions, "caption"), first=False),
        match_probability(a, b),
        precision=np.float64,
    )


SCORES: Mapping[str, tuple[str, Callable[..., Scorer], Mapping[str, float]]] = {
    "cosine": ("single", _cosine, {}),
    "dot": ("single", _dot, {}),
    "max": ("multi", _max, {}),
    "smooth-chamfer": ("multi", _smooth_chamfer, {"alpha": 16.0}),
    "csd": ("probabilistic", _csd, {}),
    "match": ("probabilistic", _match, {"samples": 7, "a": 1.0, "b": 0.0, "seed": 0}),
}
"""Name → the kind of embeddings it scores, the function, its options with their defaults."""


def _parse(score: str) -> tuple[str, dict[str, float]]:
    found = re.fullmatch(r"\s*([\w-]+)\s*(?:\[(.*)\])?\s*", score)
    options: dict[str, float] = {}
    for part in (found[2] or "").split(",") if found else ():
        if part.strip():
            key, _, value = part.partition("=")
            try:
                options[key.strip()] = float(value)
            except ValueError:
                found = None
    if found is None:
        raise UsageError(f"cannot read the score function {score!r}", fix="write it as name or name[option=number]")
    return found[1], options


def _several(one: Embeddings) -> Array:
    """n×k×d: an item with one vector is a set of one."""
    return one.vectors if one.vectors.ndim == 3 else one.vectors[:, None, :]


def _check_kinds(images: Embeddings, captions: Embeddings, name: str, kind: str) -> None:
    for what, one in (("image", images), ("caption", captions)):
        fits = one.kind == kind or (kind == "multi" and one.kind == "single") or one.vectors.shape[1:-1] == (1,)
        if kind == "single" and one.kind == "probabilistic":
            fits = True  # the means are vectors like any others
        if not fits:
            usable = [other for other, (needs, *_) in SCORES.items() if needs == one.kind]
            raise InputError(
                f"score function {name!r} cannot score {one.kind} {what} embeddings of shape {one.vectors.shape}",
                expected=f"{kind} embeddings",
                fix="use " + " or ".join(f"score={other!r}" for other in usable),
            )

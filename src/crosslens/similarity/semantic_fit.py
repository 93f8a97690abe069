"""The three numbers that turn evidence into what people would say, and where they come from."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core.errors import InputError, UnknownNameError, reading
from crosslens.core.fingerprint import fingerprint
from crosslens.similarity.similarity import Array

FILE = "semantic_fit.json"


@dataclass(frozen=True)
class Fit:
    """A logistic curve over closeness and shared words, stretched so that no evidence is 0 and all of it is 1.

    The curve σ(closeness · x + words · y + constant) is the one that comes nearest to what people said about pairs;
    both weights are at least 0, so more evidence never lowers the result.
    """

    closeness: float
    words: float
    constant: float

    def __post_init__(self) -> None:
        values = (self.closeness, self.words, self.constant)
        if not all(math.isfinite(value) for value in values) or min(values[:2]) < 0 or not sum(values[:2]):
            raise InputError(
                f"a fit of {self.closeness}, {self.words}, {self.constant}",
                expected="finite numbers; closeness and words not negative, not both 0",
                fix="fit again with training/semantic/fit.py",
            )

    @property
    def revision(self) -> str:
        """Another revision, other numbers."""
        return fingerprint("semantic", {"fit": json.dumps([self.closeness, self.words, self.constant])})[:12]

    def __call__(self, closeness: Array, words: Array) -> Array:
        """Evidence → 0 to 1; cosines below 0 count as none."""
        low = _logistic(np.float64(self.constant))
        high = _logistic(np.float64(self.closeness + self.words + self.constant))
        curve = _logistic(self.closeness * closeness + self.words * words + self.constant)
        stretched: Array = np.clip((curve - low) / (high - low), 0.0, 1.0)
        return stretched


def load_fit(name: str | Path) -> Fit:
    """A fit that comes with the package, by the name of its encoders, or one in a JSON file of the same form."""
    if isinstance(name, Path) or name.endswith(".json"):
        return _only(Path(name).expanduser())
    known = fits()
    if name not in known:
        raise UnknownNameError("fit", name, known)
    return known[name]


def fits() -> dict[str, Fit]:
    """The fits that come with the package."""
    return {name: _fit(one) for name, one in packaged()["fits"].items()}


def packaged() -> Mapping[str, Any]:
    """The file in the package: fits, how they were made, and how well they do on pairs they have not seen."""
    found: Mapping[str, Any] = json.loads(files("crosslens.similarity").joinpath(FILE).read_text("utf-8"))
    return found


def _only(path: Path) -> Fit:
    expected = 'a JSON file with one entry in "fits", as training/semantic/fit.py writes it'
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        raise InputError(problem, file=path, expected=expected, fix="check the path") from error
    try:
        (one,) = json.loads(text)["fits"].values()
        numbers = {name: float(one[name]) for name in ("closeness", "words", "constant")}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError("this is no fit", file=path, expected=expected, fix="name a file with one fit") from error
    with reading(path):
        return Fit(**numbers)


def _fit(one: Mapping[str, Any]) -> Fit:
    return Fit(float(one["closeness"]), float(one["words"]), float(one["constant"]))


def _logistic(value: Array | np.float64) -> Any:
    return 1.0 / (1.0 + np.exp(-value))

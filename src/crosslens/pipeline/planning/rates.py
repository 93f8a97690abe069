"""Rates of devices, from measured runs: those of the package, and those that a calibration added.

``rates.json``: ``{"format": 1, "devices": {NAME: {"about", "memory_bytes", "ranking", "evaluation", "memory"}}}``. The
last three are lists of measured runs, each with ``images``, ``captions``, ``dim`` and ``seconds``, or ``bytes`` in
``memory``: the peak of a whole evaluation. An empty list means *not measured*.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import (
    InputError,
    UnknownNameError,
    atomic_file,
    cache_folder,
    parse_json,
    read_json_file,
    require_entries,
)

FORMAT = 1
HOST = "cpu"
"""Metrics, intervals and files are the work of a CPU, whatever ranks."""

FloatArray = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class MeasuredRun:
    """One run; ``amount`` are its seconds, or its bytes."""

    images: int
    captions: int
    dim: int
    amount: float

    @property
    def items(self) -> int:
        """Images and captions."""
        return self.images + self.captions


@dataclass(frozen=True)
class DeviceRates:
    """What is known of a device."""

    name: str
    about: str
    memory_bytes: int | None
    ranking: tuple[MeasuredRun, ...]
    evaluation: tuple[MeasuredRun, ...]
    memory: tuple[MeasuredRun, ...] = ()

    @property
    def measured(self) -> bool:
        """Whether ranking was measured on it."""
        return bool(self.ranking)

    def ranking_seconds(self, scores: float, items: float, dim: int) -> float:
        """The time to rank: so many scores of vectors of this dimension, of so many images and captions."""
        return float(self._ranking @ _ranking_terms(scores, items, dim))

    def evaluation_seconds(self, items: float) -> float:
        """The time of everything after ranking: metrics, intervals, files."""
        return float(self._evaluation @ (1.0, items))

    def host_bytes(self, items: float) -> float:
        """What an evaluation of so many items holds in memory, beside the vectors."""
        return float(self._memory @ (1.0, items))

    @cached_property
    def _ranking(self) -> FloatArray:
        terms = [_ranking_terms(run.images * run.captions, run.items, run.dim) for run in self.ranking]
        return _fitted(terms, [run.amount for run in self.ranking])

    @cached_property
    def _evaluation(self) -> FloatArray:
        return _fitted([(1.0, run.items) for run in self.evaluation], [run.amount for run in self.evaluation])

    @cached_property
    def _memory(self) -> FloatArray:
        held = [run.amount - 4 * run.items * run.dim for run in self.memory]
        return _fitted([(1.0, run.items) for run in self.memory], held)


def _ranking_terms(scores: float, items: float, dim: int) -> tuple[float, ...]:
    """What ranking takes time for: once, per score, per product of two numbers, per item, per number read."""
    return 1.0, scores, scores * dim, items, items * dim


def _fitted(terms: Sequence[Sequence[float]], measured: Sequence[float]) -> FloatArray:
    """Rates that are not negative and fit what was measured, each run in proportion; zeros where nothing was."""
    if not terms:
        return np.zeros(2)
    from scipy.optimize import nnls

    matrix = np.asarray(terms, np.float64) / np.asarray(measured, np.float64)[:, None]
    scale = np.maximum(np.abs(matrix).max(axis=0), 1e-300)
    rates, _ = nnls(matrix / scale, np.ones(len(matrix)))
    return np.asarray(rates / scale, np.float64)


def own_rates_file() -> Path:
    """Where ``--calibrate`` keeps what it measured."""
    return cache_folder() / "rates.json"


def read_rates(file: str | Path | None = None) -> dict[str, DeviceRates]:
    """The devices of the package, and those of ``file`` (default: what this machine measured), which come first."""
    packaged = (files("crosslens.pipeline.planning") / "rates.json").read_text(encoding="utf-8")
    devices = devices_of(parse_json(packaged), Path("rates.json"))
    own = own_rates_file() if file is None else Path(file)
    if file is not None or own.is_file():
        devices |= devices_of(read_json_file(own), own)
    return devices


def find_rates(device: str, devices: Mapping[str, DeviceRates]) -> DeviceRates:
    """The rates of a device; an unknown name raises with the known ones."""
    if device not in devices:
        raise UnknownNameError("device", device, devices)
    return devices[device]


def add_rates(name: str, entry: Mapping[str, Any], file: str | Path | None = None) -> Path:
    """Put the entry of a device into a file of rates, and leave the others in it as they are."""
    path = own_rates_file() if file is None else Path(file)
    content: Any = read_json_file(path) if path.is_file() else {"format": FORMAT, "devices": {}}
    devices_of(content, path)
    devices = {**content["devices"], name: dict(entry)}
    devices_of({"format": FORMAT, "devices": devices}, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as partial:
        partial.write_text(json.dumps({"format": FORMAT, "devices": devices}, indent=1) + "\n", encoding="utf-8")
    return path


def devices_of(content: Any, file: Path) -> dict[str, DeviceRates]:
    """The devices of a file of rates; ``file`` is named in errors."""
    expected = "a file of rates, as crosslens plan --calibrate writes it"
    if not isinstance(content, dict) or content.get("format") != FORMAT or not isinstance(content.get("devices"), dict):
        raise InputError("not a file of rates", file=file, expected=expected)
    return {name: _device(name, entry, file) for name, entry in content["devices"].items()}


def _device(name: str, entry: Any, file: Path) -> DeviceRates:
    if not isinstance(entry, dict):
        raise InputError(f"the device {name!r} is not an object", file=file, expected="about, ranking, evaluation")
    require_entries(entry, {"about": str, "ranking": list, "evaluation": list}, file, inside=name)
    capacity = entry.get("memory_bytes")
    amounts = {"ranking": "seconds", "evaluation": "seconds", "memory": "bytes"}
    runs = [tuple(_run(run, amount, name, file) for run in entry.get(part, ())) for part, amount in amounts.items()]
    return DeviceRates(
        name, entry.get("about", ""), int(capacity) if isinstance(capacity, int | float) else None, *runs
    )


def _run(run: Any, amount: str, name: str, file: Path) -> MeasuredRun:
    fields = ("images", "captions", "dim", amount)
    values = [run.get(key) for key in fields] if isinstance(run, dict) else []
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < len(fields) or not all(0 < value < float("inf") for value in numbers):
        raise InputError(
            f"a measured run of {name!r} is {run!r:.80}", file=file,
            expected=f"positive numbers for {', '.join(fields)}",
        )  # fmt: skip
    return MeasuredRun(int(numbers[0]), int(numbers[1]), int(numbers[2]), float(numbers[3]))

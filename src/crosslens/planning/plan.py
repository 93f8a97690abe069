"""A plan: time, memory, storage and traffic of an evaluation that has not been run.

Nodes share the ranking as the tasks of ``--engine ray`` do. Their counts and top lists are put together by one machine,
whose work metrics, intervals and files are, too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from crosslens.core import InputError, Presented, Section, Table, Text, UnknownNameError, UsageError, accepts_options
from crosslens.metrics import format_count
from crosslens.rank import device_blocks, device_item_bytes, part_height, task_blocks
from crosslens.storage import (
    FloatArray,
    atomic_file,
    cache_folder,
    json_form,
    parse_json,
    read_json_file,
    require_entries,
)

if TYPE_CHECKING:
    from crosslens.planning.keywords import WorkloadKeywords

FORMAT = 1
HOST = "cpu"
"""Metrics, intervals and files are the work of a CPU, whatever ranks."""


@dataclass(frozen=True)
class MeasuredRun:
    """One run; ``amount`` are its seconds, or its bytes."""

    images: int
    captions: int
    dim: int
    amount: float

    @property
    def items(self) -> int:
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
        return bool(self.ranking)

    def ranking_seconds(self, scores: float, items: float, dim: int) -> float:
        """The time to rank: so many scores of vectors of this dimension, of so many images and captions."""
        terms = [_ranking_terms(run.images * run.captions, run.items, run.dim) for run in self.ranking]
        return float(_fitted(terms, [run.amount for run in self.ranking]) @ _ranking_terms(scores, items, dim))

    def evaluation_seconds(self, items: float) -> float:
        """The time of everything after ranking: metrics, intervals, files."""
        rates = _fitted([(1.0, run.items) for run in self.evaluation], [run.amount for run in self.evaluation])
        return float(rates @ (1.0, items))

    def host_bytes(self, items: float) -> float:
        """What an evaluation of so many items holds in memory, beside the vectors."""
        amounts = [run.amount - 4 * run.items * run.dim for run in self.memory]
        return float(_fitted([(1.0, run.items) for run in self.memory], amounts) @ (1.0, items))


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
    packaged = (files("crosslens.planning") / "rates.json").read_text(encoding="utf-8")
    devices = devices_of(parse_json(packaged), Path("rates.json"))
    path = own_rates_file() if file is None else Path(file)
    if file is not None or path.is_file():
        devices |= devices_of(read_json_file(path), path)
    return devices


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
    parts = []
    for part, amount in {"ranking": "seconds", "evaluation": "seconds", "memory": "bytes"}.items():
        fields, runs = ("images", "captions", "dim", amount), []
        for run in entry.get(part, ()):
            values = [run.get(key) for key in fields] if isinstance(run, dict) else []
            numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
            if len(numbers) < len(fields) or not all(0 < value < float("inf") for value in numbers):
                raise InputError(
                    f"a measured run of {name!r} is {run!r:.80}",
                    file=file,
                    expected=f"positive numbers for {', '.join(fields)}",
                )
            runs.append(MeasuredRun(int(numbers[0]), int(numbers[1]), int(numbers[2]), float(numbers[3])))
        parts.append(tuple(runs))
    return DeviceRates(
        name, entry.get("about", ""), int(capacity) if isinstance(capacity, int | float) else None, *parts
    )


_COUNT_BYTES = 3 * 4
"""Bytes of the counts of a relevant pair that travel, at most."""
_KEY = 8
"""Bytes of an entry of a list that travels: score and item."""


def shared_out(
    work: Workload, shape: tuple[int, int], pairs: Mapping[int, float], device_memory: int | None
) -> tuple[int, float, float, float, int, float]:
    """Of ranking rows × columns: its tasks, the vectors that a node reads, the lists that travel and their bytes.

    And how often a task reads one of its sides because the other does not fit the device at once, and the bytes that a
    node holds. ``pairs`` is how many relevant items a query has, for each direction that is asked for;
    ``device_memory`` is None for CPUs.
    """
    dim, depth, nodes = work.dim, work.depth, work.nodes
    outer = 0 if shape[0] > shape[1] else 1
    if device_memory is None:
        share = -(-shape[outer] // nodes)
        height = shape[outer] if nodes == 1 else part_height(shape[outer], shape[1 - outer] * dim, nodes)
        counts = [1, 1]
        counts[outer] = -(-shape[outer] // height)
        items, passes = float(share + shape[1 - outer]), 1
        memory = float(work.item_bytes * share + (_KEY * depth + _COUNT_BYTES) * items)
    else:
        blocks = task_blocks(shape, dim, nodes, "cuda") if nodes > 1 else None
        size = shape if blocks is None else blocks.size
        counts = [-(-length // part) for length, part in zip(shape, size, strict=True)]
        blocks_on_device = device_blocks(device_memory, size, dim, depth)
        passes = blocks_on_device.counts[0]
        each = -(-counts[0] * counts[1] // nodes)
        items = float(each * (size[blocks_on_device.outer] + passes * size[1 - blocks_on_device.outer]))
        memory = float(min(device_memory, device_item_bytes(dim, depth) * sum(size)))
    tasks = counts[0] * counts[1]
    lists, results = 0.0, 0.0
    for axis, each_has in pairs.items() if nodes > 1 else ():
        lists += float(shape[axis]) * counts[1 - axis]
        results += float(shape[axis]) * counts[1 - axis] * (_KEY * depth + _COUNT_BYTES * each_has)
    return tasks, items, lists, results, passes, memory


_BYTES = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_TIMES = ((365.25 * 86_400, "years"), (86_400, "days"), (3_600, "hours"), (60, "minutes"))
_COUNTS = ((1e18, "· 10¹⁸"), (1e15, "· 10¹⁵"), (1e12, "· 10¹²"), (1e9, "· 10⁹"), (1e6, "· 10⁶"))


def format_bytes(count: float) -> str:
    """``1.5 TB``, in powers of 1,000."""
    power = 0
    while count >= 999.5 and power < len(_BYTES) - 1:
        count, power = count / 1000, power + 1
    return f"{count:.3g} {_BYTES[power]}"


def format_duration(seconds: float | None) -> str:
    """``3.2 hours``; what was not measured says so."""
    if seconds is None:
        return "not measured"
    for length, unit in _TIMES:
        if seconds >= 1.5 * length:
            return f"{seconds / length:,.3g} {unit}" if seconds / length < 1e3 else f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.3g} s"


def format_number(count: float) -> str:
    """``1 · 10¹⁸``, ``25,000``."""
    for size, unit in _COUNTS:
        if count >= size:
            return f"{count / size:,.4g} {unit}"
    return f"{count:,.0f}"


PRECISIONS = {"float16": 2, "float32": 4}
_LARGEST = 10**15
_PER_PAIR = 8 + 4 + 8 + 8 + 8
"""Bytes of a ranking per relevant pair: item, grade, items above, tied, tied before."""
_PER_QUERY = 8 + 8
"""Bytes per query beside its list: how many ranks are known, and where its pairs begin."""
_PER_ENTRY = 8 + 4
"""Bytes per entry of a list: item and score."""
_PER_VALUES = 16
"""Bytes per query of the values of all metrics, about: most are zeros and ones, and compressed."""
_PER_ID = 8
"""Bytes of an id in all tables together, about: they are compressed, too."""


@dataclass(frozen=True)
class Workload:
    """What is to be evaluated, and with what.

    Args:
        device: What ranks: the name of its rates.
        nodes: How many machines share the work.
        precision: How vectors are stored.
        depth: How many items of each list are kept.
        queries: How many queries of each direction are ranked; by default all.
        network: Gbit/s per node; taken as given, not measured.
        storage: GB/s per node; likewise.
    """

    images: int
    captions: int
    dim: int
    device: str = HOST
    nodes: int = 1
    precision: str = "float16"
    depth: int = 10
    queries: int | None = None
    network: float = 100.0
    storage: float = 2.0

    def __post_init__(self) -> None:
        for name in ("images", "captions", "dim", "nodes", "depth", "queries"):
            value = getattr(self, name)
            if value is None and name == "queries":
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not 1 <= value <= _LARGEST or value != int(value):
                raise UsageError(f"{name} is {value!r:.40}", fix="use a whole number from 1 on", option=name)
            object.__setattr__(self, name, int(value))  # 1e9 is a float
        if self.precision not in PRECISIONS:
            raise UsageError(f"vectors of {self.precision}", fix=f"use {' or '.join(PRECISIONS)}", option="precision")
        for name in ("network", "storage"):
            if not 0 < getattr(self, name) < math.inf:
                raise UsageError(f"{name} is {getattr(self, name)}", fix="use a number above 0", option=name)

    @property
    def item_bytes(self) -> int:
        """What a vector takes where it is stored."""
        return self.dim * PRECISIONS[self.precision]

    @property
    def scores(self) -> float:
        """How many pairs are scored: all of them, or those of a sample of queries in each direction."""
        if self.queries is None:
            return float(self.images) * self.captions
        images, captions = self.counted
        return float(images) * self.captions + float(captions) * self.images

    @property
    def counted(self) -> tuple[int, int]:
        """How many image queries and caption queries there are."""
        most = self.queries or _LARGEST
        return min(self.images, most), min(self.captions, most)

    @property
    def rankings(self) -> list[tuple[tuple[int, int], dict[int, float]]]:
        """The shape of every ranking, and for each of its directions how many relevant items a query has, about."""
        of_image, of_caption = max(1.0, self.captions / self.images), max(1.0, self.images / self.captions)
        if self.queries is None:
            return [((self.images, self.captions), {0: of_image, 1: of_caption})]
        images, captions = self.counted
        return [((images, self.captions), {0: of_image}), ((self.images, captions), {1: of_caption})]


@dataclass(frozen=True)
class EvaluationPlan(Presented):
    """Seconds are None where the device was not measured; bytes never are."""

    workload: Workload
    about: str
    measured: bool
    scores: float
    operations: float
    ranking_seconds: float | None
    evaluation_seconds: float
    network_seconds: float
    storage_seconds: float
    node_memory_bytes: float
    host_memory_bytes: float
    vector_bytes: float
    run_bytes: float
    read_bytes: float
    result_bytes: float
    passes: int
    tasks: int
    limit: str
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float | None:
        """All in all: reading goes on while ranking does, what follows waits for both."""
        if self.ranking_seconds is None:
            return None
        return max(self.ranking_seconds, self.network_seconds, self.storage_seconds) + self.evaluation_seconds

    title = "Plan of an evaluation"

    def sections(self) -> Iterator[Section]:
        work = self.workload
        sample = "" if work.queries is None else f", {format_number(work.queries)} queries per direction"
        title = (
            f"{format_number(work.images)} images × {format_number(work.captions)} captions, d = {work.dim:,} "
            f"({work.precision}){sample}, on {format_count(work.nodes, 'node')} of {work.device}: {self.about}"
        )
        rows = [
            ("time", format_duration(self.seconds), "reading goes on while ranking does; metrics and files follow"),
            (
                "  ranking",
                format_duration(self.ranking_seconds),
                f"{format_number(self.scores)} scores, all nodes at work",
            ),
            ("  metrics, files", format_duration(self.evaluation_seconds), "on one machine, by the rates of cpu"),
            ("  reading vectors", format_duration(self.storage_seconds), f"at {work.storage:g} GB/s for each node"),
        ]
        if work.nodes > 1:
            rows.append(
                ("  network", format_duration(self.network_seconds), f"at {work.network:g} Gbit/s for each node")
            )
        rows += [
            ("memory, each node", format_bytes(self.node_memory_bytes), "vectors, counts and lists"),
            ("memory, one machine", format_bytes(self.host_memory_bytes), "ids, ranks and values, beside the vectors"),
            ("storage, vectors", format_bytes(self.vector_bytes), f"as {work.precision}"),
            ("storage, run", format_bytes(self.run_bytes), f"ranks, lists of {work.depth}, values of every query"),
            ("traffic, vectors", format_bytes(self.read_bytes), "read by all nodes together"),
            ("traffic, results", format_bytes(self.result_bytes), "counts and lists of the nodes"),
            ("limit", self.limit, "what takes longest"),
        ]
        yield Section(title, (Table(("", "", ""), tuple(rows), "lll"), Text(self.notes)))

    def as_dict(self) -> dict[str, Any]:
        return json_form({**vars(self), "seconds": self.seconds, "notes": self.notes})


@accepts_options(Workload)
def plan_evaluation(
    images: int,
    captions: int,
    dim: int,
    *,
    rates: Mapping[str, DeviceRates] | None = None,
    **workload: Unpack[WorkloadKeywords],
) -> EvaluationPlan:
    """What an evaluation takes, by measured rates of this code.

    Args:
        images: How many vectors there are of images.
        captions: How many there are of captions.
        dim: How many numbers a vector has.
        rates: What devices do per second, by name; by default those that were measured for this package.
    """
    work = Workload(images, captions, dim, **workload)
    devices = read_rates() if rates is None else rates
    for name in (work.device, HOST):
        if name not in devices:
            raise UnknownNameError("device", name, devices)
    rated, host = devices[work.device], devices[HOST]
    shares = [shared_out(work, shape, pairs, rated.memory_bytes) for shape, pairs in work.rankings]
    tasks, items, lists, results, passes, memory = zip(*shares, strict=True)
    read, sent, blocks, largest = work.item_bytes * sum(items), sum(results), max(passes), 0
    ranking = None
    if rated.measured:
        ranking = sum(
            rated.ranking_seconds(float(shape[0]) * shape[1] / min(work.nodes, parts), vectors, work.dim)
            for parts, vectors, (shape, _) in zip(tasks, items, work.rankings, strict=True)
        )
        largest = max(run.images * run.captions for run in rated.ranking)
    queries = sum(work.counted)
    listed = queries * (_PER_QUERY + work.depth * _PER_ENTRY + _PER_VALUES)
    run_bytes = float(listed + 2 * max(work.counted) * _PER_PAIR + _PER_ID * (work.images + work.captions))
    times = {
        "compute": ranking or 0.0,
        "network": (read + sent) / (work.network * 1e9 / 8) if work.nodes > 1 else 0.0,
        "storage": read / (work.storage * 1e9),
        "metrics and files on one machine": host.evaluation_seconds(queries),
    }
    notes = []
    if not rated.measured:
        notes.append(
            f"The rates of {rated.name} have not been measured, so there is no time; measure them with crosslens plan "
            f"--calibrate on such a machine."
        )
    if blocks > 1:
        notes.append(
            "What a node ranks at a time does not fit its device: the longer side is ranked in "
            f"{blocks:,} blocks, and the other is read for each."
        )
    if work.nodes > 1:
        how = "--engine ray" if rated.memory_bytes is None else "--engine ray --backend torch"
        notes.append(
            f"crosslens evaluate {how} on a Ray cluster of these nodes does it in {sum(tasks):,} tasks. One machine "
            f"merges their {sum(lists):.2g} lists while others are made, which is not in the time."
        )
    if rated.measured and work.scores / work.nodes > 1000 * largest:
        notes.append(
            f"The largest measured run had {largest:.2g} scores, a node of this plan has "
            f"{work.scores / work.nodes:.2g}: take the time as an order of magnitude."
        )
    notes.append("Network and storage speeds are assumed, not measured. Encoding images and captions is not included.")
    return EvaluationPlan(
        work, rated.about, rated.measured, work.scores, 2 * work.scores * work.dim, ranking,
        times["metrics and files on one machine"], times["network"], times["storage"], max(memory),
        host.host_bytes(work.images + work.captions), float(work.item_bytes) * (work.images + work.captions),
        run_bytes, read * work.nodes, sent, blocks, sum(tasks),
        max(times, key=lambda name: times[name]) if rated.measured else "not known", tuple(notes),
    )  # fmt: skip

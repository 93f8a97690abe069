"""A plan: time, memory, storage and traffic of an evaluation that has not been run.

Nodes share the ranking as the tasks of ``--engine ray`` do. Their counts and top lists are put together by one machine,
whose work metrics, intervals and files are, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from crosslens.core import Presented, Section, UsageError
from crosslens.pipeline.planning.rates import HOST, DeviceRates, find_rates, read_rates
from crosslens.pipeline.planning.sections import plan_sections
from crosslens.pipeline.planning.sharing import shared_out

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
    """What is to be evaluated, and with what."""

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
    def scores(self) -> float:
        """How many pairs are scored: all of them, or those of a sample of queries in each direction."""
        if self.queries is None:
            return float(self.images) * self.captions
        return (
            float(min(self.queries, self.images)) * self.captions
            + float(min(self.queries, self.captions)) * self.images
        )

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

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "Plan of an evaluation"

    def sections(self, **options: Any) -> Iterator[Section]:
        """The figures of a plan, what each is about beside it."""
        return plan_sections(self)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: seconds, bytes and counts as plain numbers."""
        return {**asdict(self), "seconds": self.seconds, "notes": list(self.notes)}


def plan_evaluation(
    images: int,
    captions: int,
    dim: int,
    *,
    device: str = HOST,
    nodes: int = 1,
    precision: str = "float16",
    depth: int = 10,
    queries: int | None = None,
    network: float = 100.0,
    storage: float = 2.0,
    rates: Mapping[str, DeviceRates] | None = None,
) -> EvaluationPlan:
    """What evaluating ``images`` × ``captions`` vectors of ``dim`` numbers takes, by measured rates of this code.

    ``network`` (Gbit/s) and ``storage`` (GB/s) are per node, and are taken as given: they are not measured.
    """
    work = Workload(images, captions, dim, device, nodes, precision, depth, queries, network, storage)
    devices = read_rates() if rates is None else rates
    own, host = find_rates(device, devices), find_rates(HOST, devices)
    return _planned(work, own, host)


def _planned(work: Workload, own: DeviceRates, host: DeviceRates) -> EvaluationPlan:
    item_bytes = work.dim * PRECISIONS[work.precision]
    shares = [
        shared_out(shape, pairs, work.dim, work.depth, work.nodes, own.memory_bytes, item_bytes)
        for shape, pairs in work.rankings
    ]
    read, results = item_bytes * sum(share.items for share in shares), sum(share.result_bytes for share in shares)
    ranking = None
    if own.measured:
        ranking = sum(
            own.ranking_seconds(float(shape[0]) * shape[1] / share.used, share.items, work.dim)
            for share, (shape, _) in zip(shares, work.rankings, strict=True)
        )
    network = (read + results) / (work.network * 1e9 / 8) if work.nodes > 1 else 0.0
    plan = EvaluationPlan(
        work, own.about, own.measured, work.scores, 2 * work.scores * work.dim, ranking,
        host.evaluation_seconds(sum(work.counted)), network, read / (work.storage * 1e9),
        max(share.memory_bytes for share in shares),
        host.host_bytes(work.images + work.captions),
        float(item_bytes) * (work.images + work.captions), _run_bytes(work), read * work.nodes, results,
        max(share.passes for share in shares), sum(share.tasks for share in shares), "",
    )  # fmt: skip
    return _with_limit(plan, own, sum(share.lists for share in shares))


def _run_bytes(work: Workload) -> float:
    """The run folder: two rankings, the values of every query, and the ids."""
    queries = sum(work.counted)
    pairs = 2 * max(work.counted)
    lists = queries * (_PER_QUERY + work.depth * _PER_ENTRY + _PER_VALUES)
    return float(lists + pairs * _PER_PAIR + _PER_ID * (work.images + work.captions))


def _with_limit(plan: EvaluationPlan, own: DeviceRates, lists: float) -> EvaluationPlan:
    times = {
        "compute": plan.ranking_seconds or 0.0,
        "network": plan.network_seconds,
        "storage": plan.storage_seconds,
        "metrics and files on one machine": plan.evaluation_seconds,
    }
    limit = max(times, key=lambda name: times[name]) if plan.measured else "not known"
    notes = []
    if not plan.measured:
        notes.append(
            f"The rates of {own.name} have not been measured, so there is no time; measure them with crosslens plan "
            f"--calibrate on such a machine."
        )
    if plan.passes > 1:
        notes.append(
            "What a node ranks at a time does not fit its device: the longer side is ranked in "
            f"{plan.passes:,} blocks, and the other is read for each."
        )
    if plan.workload.nodes > 1:
        how = "--engine ray" if own.memory_bytes is None else "--engine ray --backend torch"
        notes.append(
            f"crosslens evaluate {how} on a Ray cluster of these nodes does it in {plan.tasks:,} tasks. One machine "
            f"merges their {lists:.2g} lists while others are made, which is not in the time."
        )
    largest = max((run.images * run.captions for run in own.ranking), default=0)
    if plan.measured and plan.scores / plan.workload.nodes > 1000 * largest:
        notes.append(
            f"The largest measured run had {largest:.2g} scores, a node of this plan has "
            f"{plan.scores / plan.workload.nodes:.2g}: take the time as an order of magnitude."
        )
    notes.append("Network and storage speeds are assumed, not measured. Encoding images and captions is not included.")
    return replace(plan, limit=limit, notes=tuple(notes))

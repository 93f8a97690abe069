"""How a plan is shown: durations, bytes and counts in the units that one reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from crosslens.core import Section, Table, Text
from crosslens.metrics import format_count

if TYPE_CHECKING:
    from crosslens.pipeline.planning.plan import EvaluationPlan

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


def plan_sections(plan: EvaluationPlan) -> Iterator[Section]:
    """What is planned, its figures, what each is about, and what to know of them."""
    work = plan.workload
    sample = "" if work.queries is None else f", {format_number(work.queries)} queries per direction"
    title = (
        f"{format_number(work.images)} images × {format_number(work.captions)} captions, d = {work.dim:,} "
        f"({work.precision}){sample}, on {format_count(work.nodes, 'node')} of {work.device}: {plan.about}"
    )
    rows = [
        ("time", format_duration(plan.seconds), "reading goes on while ranking does; metrics and files follow"),
        ("  ranking", format_duration(plan.ranking_seconds), f"{format_number(plan.scores)} scores, all nodes at work"),
        ("  metrics, files", format_duration(plan.evaluation_seconds), "on one machine, by the rates of cpu"),
        ("  reading vectors", format_duration(plan.storage_seconds), f"at {work.storage:g} GB/s for each node"),
    ]
    if work.nodes > 1:
        rows.append(("  network", format_duration(plan.network_seconds), f"at {work.network:g} Gbit/s for each node"))
    rows += [
        ("memory, each node", format_bytes(plan.node_memory_bytes), "vectors, counts and lists"),
        ("memory, one machine", format_bytes(plan.host_memory_bytes), "ids, ranks and values, beside the vectors"),
        ("storage, vectors", format_bytes(plan.vector_bytes), f"as {work.precision}"),
        ("storage, run", format_bytes(plan.run_bytes), f"ranks, lists of {work.depth}, values of every query"),
        ("traffic, vectors", format_bytes(plan.read_bytes), "read by all nodes together"),
        ("traffic, results", format_bytes(plan.result_bytes), "counts and lists of the nodes"),
        ("limit", plan.limit, "what takes longest"),
    ]
    yield Section(title, (Table(("", "", ""), tuple(rows), "lll"), Text(plan.notes)))

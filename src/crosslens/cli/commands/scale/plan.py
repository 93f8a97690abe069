"""``crosslens plan``: what an evaluation will cost, before it is paid for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import crosslens.pipeline as pipeline
from crosslens.cli.console import print_json, print_note, print_written
from crosslens.cli.flags import OUTPUT, Json, Threads, command
from crosslens.core import Options, UsageError, argument, option

_NUMBER = re.compile(r"([0-9][0-9_,]{0,20})(?:\.([0-9]{1,20}))?(?:[eE]\+?([0-9]{1,2}))?")


@dataclass(frozen=True)
class PlanOptions(Options):
    """What is planned."""

    images: str | None = option(None, "How many images: 5000, 1e9.", metavar="N")
    captions: str | None = option(None, "How many captions.", metavar="N")
    dim: str | None = option(None, "Numbers per vector.", metavar="N")
    device: str = option(
        "cpu", "A device whose rates are known; with --calibrate, the one to measure: cpu, cuda.", metavar="NAME"
    )
    nodes: str = option("1", "How many machines with one such device each.", metavar="N")
    precision: str = option("float16", "How vectors are stored.", metavar="float16|float32")
    depth: int = option(10, "Items of each list that are kept.", metavar="N", minimum=1)
    queries: str | None = option(None, "Rank a sample of so many queries per direction. [default: all]", metavar="N")
    network: float = option(100.0, "Network of a node in Gbit/s; assumed, not measured.", metavar="N")
    storage: float = option(2.0, "Reading speed of a node in GB/s; assumed, not measured.", metavar="N")


@command(
    "crosslens plan --images 1e9 --captions 1e9 --dim 768 \\",
    "    --device h200 --nodes 64",
    "crosslens plan --images 100000 --captions 500000 --dim 512 --json",
    "crosslens plan --calibrate",
    "crosslens plan --calibrate --device cuda --name h200 -o rates.json",
    reads_files=False,
)
def plan(
    asked: PlanOptions,
    rates: Path | None = option(None, "A file of rates, as --calibrate writes it.", metavar="FILE"),
    calibrate: bool = option(False, "Measure the rates of this machine, and plan with them from then on."),
    name: str | None = option(None, "With --calibrate: what the device is called. [default: --device]", metavar="NAME"),
    output: Path | None = option(
        None, "With --calibrate: where the rates go. [default: rates.json in the cache]", metavar="FILE", flags=OUTPUT
    ),
    threads: Threads = None,
    json: Json = False,
) -> pipeline.EvaluationPlan | None:
    """Plan an evaluation: time, memory, storage and traffic.

    Times come from runs of this code that were measured once (the package carries some, --calibrate measures your
    machine) and are extrapolated; a device that was not measured has none. Encoding is not included.
    """
    if calibrate:
        _calibrate(asked.device, name, output, rates, threads, json=json)
        return None
    for flag, value in (("name", name), ("output", output), ("threads", threads)):
        if value is not None:
            raise UsageError(f"{argument(flag)} requires {argument('calibrate', True)}", option=flag)
    return pipeline.plan_evaluation(
        *(_required(flag, getattr(asked, flag)) for flag in ("images", "captions", "dim")),
        device=asked.device, nodes=_whole("nodes", asked.nodes), precision=asked.precision, depth=asked.depth,
        queries=None if asked.queries is None else _whole("queries", asked.queries), network=asked.network,
        storage=asked.storage, rates=None if rates is None else pipeline.read_rates(rates),
    )  # fmt: skip


def _calibrate(
    device: str, name: str | None, output: Path | None, rates: Path | None, threads: int | None, *, json: bool
) -> None:
    if rates is not None:
        raise UsageError(f"{argument('rates')} is for plans", fix=f"say where to write with {argument('output')}")
    entry = pipeline.calibrate_device(device, threads=threads, shown=lambda line: None if json else print_note(line))
    file = pipeline.add_rates(name or device, entry, output)
    if json:
        print_json({"device": name or device, "file": str(file), **entry})
    else:
        print_written([file])


def _required(flag: str, value: str | None) -> int:
    if value is None:
        raise UsageError(f"{argument(flag)} is missing", fix="a plan needs images, captions and dim", option=flag)
    return _whole(flag, value)


def _whole(flag: str, text: str) -> int:
    """``5000``, ``1e9``, ``2.5e6``, ``1,000``: a whole number."""
    match = _NUMBER.fullmatch(text.strip())
    part, power = (match[2] or "", int(match[3] or 0)) if match else ("", 0)
    if match is None or len(part.rstrip("0")) > power:
        raise UsageError(f"{flag} is {text!r:.40}", fix="write a whole number, such as 5000 or 1e9", option=flag)
    digits = re.sub("[_,]", "", match[1]) + part.rstrip("0")
    return int(digits + "0" * (power - len(part.rstrip("0"))))

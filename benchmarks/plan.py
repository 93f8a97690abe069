"""How far plans are from real runs, at three sizes that were not measured for the rates.

    python benchmarks/plan.py                       # the rates at hand, one thread, CPU seconds
    python benchmarks/plan.py --calibrate           # rates measured now
    python benchmarks/plan.py --growth              # plans from 10⁴ to 10⁹ as a table, nothing is run
    python benchmarks/plan.py --device cuda --rates h200.json --name h200 --scale 16

Of a CPU one thread is measured in CPU seconds, which a busy machine changes little. Seconds are the best of the rounds.
The exit code is 1 if a plan is off by more than 25 %.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from crosslens.core.rendering import decimal
from crosslens.planning import calibrate_device, measure_run, memory_of, plan_evaluation, read_rates
from crosslens.planning.plan import FORMAT, devices_of, format_bytes, format_duration, format_number

SIZES = ((2500, 384), (5000, 256), (8000, 128))
PER_IMAGE, ALLOWED = 5, 0.25
MEMORY = 10_000


def rates_of(asked: argparse.Namespace) -> dict:
    if not asked.calibrate:
        return read_rates(asked.rates)
    threads = 1 if asked.device == "cpu" else None
    entry = calibrate_device(asked.device, threads=threads, rounds=asked.rounds, memory=False, report=print)
    return {
        **read_rates(asked.rates),
        **devices_of({"format": FORMAT, "devices": {asked.name: entry}}, Path("rates.json")),
    }


def compared(asked: argparse.Namespace) -> list[dict]:
    rates = rates_of(asked)
    rows = []
    for images, dim in SIZES:
        images *= asked.scale
        plan = plan_evaluation(images, images * PER_IMAGE, dim, device=asked.name, rates=rates)
        threads = 1 if asked.device == "cpu" else None
        run = measure_run(images, dim, asked.device, threads=threads, rounds=asked.rounds)
        planned = plan.ranking_seconds + (plan.evaluation_seconds if "evaluation" in run else 0)
        rows.append({"images": images, "dim": dim, "planned": planned, "measured": sum(run.values())})
        words = [format_duration(rows[-1][key]) for key in ("planned", "measured")]
        error = 100 * (planned / rows[-1]["measured"] - 1)
        print(
            f"{images:,} × {images * PER_IMAGE:,}, d = {dim}: planned {words[0]}, measured {words[1]}, "
            f"{decimal(error, 0, signed=True)} %"
        )
    return rows


def compared_memory(asked: argparse.Namespace) -> dict:
    plan = plan_evaluation(MEMORY, MEMORY * PER_IMAGE, 16, rates=read_rates(asked.rates))
    measured = memory_of(MEMORY)["bytes"] - 4 * 16 * MEMORY * (1 + PER_IMAGE)
    print(f"memory of {MEMORY:,} × {MEMORY * PER_IMAGE:,} beside the vectors: planned "
          f"{format_bytes(plan.host_memory_bytes)}, measured {format_bytes(measured)}, "
          f"{decimal(100 * (plan.host_memory_bytes / measured - 1), 0, signed=True)} %")  # fmt: skip
    return {"planned": plan.host_memory_bytes, "measured": measured}


def growth(asked: argparse.Namespace) -> None:
    """As many captions as images, d = 768."""
    columns = (
        "images, captions",
        "ranking",
        "metrics, files",
        "vectors",
        "run folder",
        "memory of one machine",
        "limit",
    )
    print(f"| {' | '.join(columns)} |\n|{'---:|' * 6}---|")
    for power in range(4, 10):
        plan = plan_evaluation(10**power, 10**power, 768, device=asked.name, rates=read_rates(asked.rates))
        times = [format_duration(seconds) for seconds in (plan.ranking_seconds, plan.evaluation_seconds)]
        sizes = [format_bytes(size) for size in (plan.vector_bytes, plan.run_bytes, plan.host_memory_bytes)]
        print(f"| {' | '.join([format_number(10**power), *times, *sizes, plan.limit])} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--name", help="what the device is called in the rates [default: --device]")
    parser.add_argument("--rates", help="a file of rates [default: the package's and this machine's]")
    parser.add_argument("--calibrate", action="store_true", help="measure the rates first")
    parser.add_argument("--growth", action="store_true", help="print plans of growing size, and run nothing")
    parser.add_argument("--scale", type=int, default=1, help="so many times as many images")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    asked.name = asked.name or asked.device
    if asked.growth:
        growth(asked)
        return 0
    rows = compared(asked)
    memory = compared_memory(asked) if asked.device == "cpu" else None
    if asked.json:
        print(json.dumps({"runs": rows, "memory": memory}))
    pairs = [*rows, *([memory] if memory else [])]
    return int(any(abs(row["planned"] / row["measured"] - 1) > ALLOWED for row in pairs))


if __name__ == "__main__":
    sys.exit(main())

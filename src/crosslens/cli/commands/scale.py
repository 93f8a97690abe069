"""``crosslens curve``: metrics over m, the number of similar items, or over the size of the gallery."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from crosslens import engine, explanations, pipeline, planning
from crosslens.cli.answers import CommandAnswer, wrote
from crosslens.cli.commands.evaluate import PROTOCOL_HELP, followed, with_protocol
from crosslens.cli.console import print_note, progress_bar
from crosslens.cli.datasets import DatasetOptions
from crosslens.cli.flags import Flags, IntervalOptions, Threads, command, output_option, positional
from crosslens.cli.stored_runs import load_run
from crosslens.core import Options, Presented, UnknownNameError, UsageError, argument, option
from crosslens.engine import EngineOptions

_PHI, _M, _K, _DIRECTION = "cider", "1..50", 5, "t2i"
_OVERS = ("m", "gallery")
_RUN_DATASET = "The runs' dataset. [default: the one that the first run's recipe names]"


@dataclass(frozen=True)
class SemanticOptions(Options):
    """What a curve over m shows."""

    phi: str = option(_PHI, "Over m: the similarity, or a matrix of it.", metavar="NAME|FILE")
    m: str = option(_M, "Over m: how many items count as relevant: 1..50, or 1,5,10.", metavar="VALUES", joins=",")
    k: int = option(_K, "Over m: the cutoff of the ranked lists.", minimum=1)
    direction: str = option(_DIRECTION, "Over m: which queries.", metavar="i2t|t2i")
    ground_truth: bool = option(False, "Over m: keep annotated items; otherwise they are left out of both sides.")
    by_image: bool = option(
        False, "Over m: m images that the captions of the query's image vote for, instead of m items."
    )
    protocol: str | None = option(None, PROTOCOL_HELP.format("five"))


@dataclass(frozen=True)
class GalleryOptions(Options):
    """What a curve over the size of the gallery shows."""

    metrics: str | None = option(None, "Over the gallery: such as t2i/Hit@1. [default: Hit@1 MRR MedR, all directions]")
    sizes: str | None = option(
        None, "Over the gallery: 10,50,150, 2..100 or 1e6; larger than the run's own are extrapolated. "
        "[default: 1, 2, 5, 10, … up to the gallery]", metavar="VALUES", joins=",",
    )  # fmt: skip


@command(
    "crosslens curve runs/clip-b32 runs/siglip --phi cider --m 1..50 --write fig3.html",
    "crosslens curve runs/clip-b32 --phi spice.npy --direction i2t --k 10 --json",
    "crosslens curve runs/clip-b32 runs/siglip --protocol five --write fig3.svg",
    "crosslens curve runs/clip-b32 runs/siglip --over gallery \\",
    '    --metrics "t2i/Hit@1 MedR" --sizes 10,100,1000,1e6 --write sizes.html',
    common=("over", "phi", "m", "k", "direction", "sizes"),
)
def curve(
    source: Annotated[DatasetOptions, Flags(help={"dataset": _RUN_DATASET})],
    intervals: IntervalOptions,
    semantic: SemanticOptions,
    sizes: GalleryOptions,
    execution: EngineOptions,
    runs: list[Path] = positional(..., "One or more run folders; over m, of one dataset."),
    over: str = option("m", "What grows: m, or the gallery.", metavar="m|gallery"),
    threads: Threads = None,
) -> Presented:
    """Plot metrics against m, or the size of the gallery.

    Over m: SR is the share of the m most similar items that is retrieved, SRhit whether any of them is: where one falls
    and the other rises with m, conclusions depend on the choice of m. Over the gallery: what a metric would be with
    fewer items, exactly, or with more, extrapolated; runs that change places are named. Rankings come from the run
    folders; nothing is ranked again.
    """
    if over not in _OVERS:
        raise UnknownNameError("curve", over, _OVERS)
    unused: Options = semantic if over == "gallery" else sizes  # of which any option would silently do nothing
    for name, value in vars(unused).items():
        if value != vars(type(unused)())[name]:
            needed, growing = ("m", "m") if over == "gallery" else ("gallery", "the gallery")
            raise UsageError(
                f"{argument(name)} is for curves over {growing}",
                fix=f"leave it out, or pass {argument('over', needed)}",
                option=name,
            )
    if over == "gallery":
        return pipeline.gallery_curve(
            [load_run(folder) for folder in runs],
            sizes.metrics,
            sizes=None if sizes.sizes is None else pipeline.parse_sizes(sizes.sizes),
            progress=progress_bar(),
            **vars(intervals),
        )
    phi, direction, by_image = semantic.phi, semantic.direction, semantic.by_image
    if direction not in ("i2t", "t2i"):
        raise UnknownNameError("direction", direction, ("i2t", "t2i"))
    paper, record = followed(semantic.protocol, "curve")
    if paper is not None and record is not None:
        if semantic.ground_truth:
            raise paper.contradiction("ground_truth", True, "the annotated items left out")
        phi = paper.setting("curve", "phi") if phi == _PHI else phi
        by_image = True
        record |= {"phi": [phi], "tokens": {phi: paper.phi[phi]} if phi in paper.phi else {}}
    counts = pipeline.parse_counts(semantic.m)
    with engine.use_engine(execution):
        loaded = [load_run(folder) for folder in runs]
        dataset = source.load_if_given() or explanations.dataset_of_run(loaded[0])
        curves = pipeline.curve(
            loaded, dataset, phi, m=counts, k=semantic.k, direction=direction, non_gt=not semantic.ground_truth,
            by_image=by_image, threads=threads, progress=progress_bar(), **vars(intervals),
        )  # fmt: skip
    return with_protocol(curves, record)


_NUMBER = re.compile(r"([0-9][0-9_,]{0,20})(?:\.([0-9]{1,20}))?(?:[eE]\+?([0-9]{1,2}))?")


@dataclass(frozen=True)
class PlanOptions(Options, group="Input"):
    """What is planned."""

    images: str | None = option(None, "How many images: 5000, 1e9.", metavar="N")
    captions: str | None = option(None, "How many captions.", metavar="N")
    dim: str | None = option(None, "Numbers per vector.", metavar="N")
    device: str = option("cpu", "A device whose rates are known; with --calibrate, the one to measure: cpu, cuda.")
    nodes: str = option("1", "How many machines with one such device each.", metavar="N")
    precision: str = option("float16", "How vectors are stored.", metavar="float16|float32")
    depth: int = option(10, "Items of each list that are kept.", minimum=1)
    queries: str | None = option(None, "Rank a sample of so many queries per direction. [default: all]", metavar="N")
    network: float = option(100.0, "Network of a node in Gbit/s; assumed, not measured.", metavar="N")
    storage: float = option(2.0, "Reading speed of a node in GB/s; assumed, not measured.", metavar="N")


@command(
    "crosslens plan --images 1e9 --captions 1e9 --dim 768 --device h200 --nodes 64",
    "crosslens plan --images 100000 --captions 500000 --dim 512 --json",
    "crosslens plan --calibrate",
    "crosslens plan --calibrate --device cuda --name h200 -o rates.json",
    reads_files=False,
    group="Execution",
    common=("images", "captions", "dim", "queries", "device", "nodes", "calibrate"),
)
def plan(
    asked: PlanOptions,
    rates: Path | None = option(None, "A file of rates, as --calibrate writes it."),
    calibrate: bool = option(False, "Measure the rates of this machine, and plan with them from then on."),
    name: str | None = option(None, "With --calibrate: what the device is called. [default: --device]"),
    output: Path | None = output_option("With --calibrate: where the rates go. [default: rates.json in the cache]"),
    threads: Threads = None,
) -> planning.EvaluationPlan | CommandAnswer:
    """Plan an evaluation: time, memory, storage and traffic.

    Times come from runs of this code that were measured once (the package carries some, --calibrate measures your
    machine) and are extrapolated; a device that was not measured has none. Encoding is not included.
    """
    if calibrate:
        if rates is not None:
            raise UsageError(f"{argument('rates')} is for plans", fix=f"say where to write with {argument('output')}")
        device = name or asked.device
        entry = planning.calibrate_device(asked.device, threads=threads, report=print_note)
        file = planning.add_rates(device, entry, output)
        wrote(file)
        return CommandAnswer(f"Rates of {device}", (), {"device": device, "file": str(file), **entry})
    for flag, value in (("name", name), ("output", output), ("threads", threads)):
        if value is not None:
            raise UsageError(f"{argument(flag)} requires {argument('calibrate', True)}", option=flag)
    return planning.plan_evaluation(
        *(_whole(flag, getattr(asked, flag)) for flag in ("images", "captions", "dim")),
        device=asked.device, nodes=_whole("nodes", asked.nodes), precision=asked.precision, depth=asked.depth,
        queries=None if asked.queries is None else _whole("queries", asked.queries), network=asked.network,
        storage=asked.storage, rates=None if rates is None else planning.read_rates(rates),
    )  # fmt: skip


def _whole(flag: str, text: str | None) -> int:
    """``5000``, ``1e9``, ``2.5e6``, ``1,000``: a whole number."""
    if text is None:
        raise UsageError(f"{argument(flag)} is missing", fix="a plan needs images, captions and dim", option=flag)
    match = _NUMBER.fullmatch(text.strip())
    part, power = (match[2] or "", int(match[3] or 0)) if match else ("", 0)
    if match is None or len(part.rstrip("0")) > power:
        raise UsageError(f"{flag} is {text!r:.40}", fix="write a whole number, such as 5000 or 1e9", option=flag)
    digits = re.sub("[_,]", "", match[1]) + part.rstrip("0")
    return int(digits + "0" * (power - len(part.rstrip("0"))))

"""``crosslens demo``: an audit of drawn scenes, from nothing to its report."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import crosslens.core as core
import crosslens.pipeline as pipeline
import crosslens.report as report
import crosslens.synth as synthesis
from crosslens.cli.commands.audits.audit import print_audit
from crosslens.cli.console import duration, print_note, print_result, progress_bar, terminal_width
from crosslens.cli.flags import OUTPUT, Json, Overwrite, command
from crosslens.core import option
from crosslens.encode import EncodeOptions

METRIC = "t2i/Hit@1"
_COLUMN = "task"
_START_UP, _DRAWN, _AUDITED = 22.0, 0.12, 0.3
"""Processor seconds: in any case, and for each scene with its twin and those like it, to draw and to audit."""
_PROBED, _PER_PICTURE = 12, 0.008
"""Pictures that are drawn to see how fast this machine is now, and the processor seconds of each."""


@command("crosslens demo", "crosslens demo -o tryout --images 60 --json")
def demo(
    output: Path = option(
        Path("runs/demo"), "Where pictures, runs and the report are written.", metavar="FOLDER", flags=OUTPUT
    ),
    images: int = option(
        120,
        "How many scenes to draw; the largest gallery has 8 times as many.",
        metavar="N",
        minimum=3,
        maximum=1_000_000,
    ),
    seed: int = option(7, "Seed of the scenes.", metavar="N"),
    model: str = option("tiny", "The encoder: the built-in one, or KIND:SOURCE as in encode.", metavar="NAME"),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Audit a model on drawn scenes: a report in a minute.

    Running the same command again resumes where it was interrupted, or finds everything complete.
    """
    begin = time.perf_counter()
    pipeline.require_extras(model)
    pipeline.require_model(model, print_note)
    work = pipeline.Demo(output, overwrite, progress_bar())
    print_note(
        f"this takes about {duration(expected_seconds(images))} here and now, less if an earlier call has done a part; "
        f"everything is written to {output}"
    )
    print_note(f"drawing {images:,} scenes, a confusable twin of each, and similar ones …")
    drawn = work.draw(images, seed)
    print_note(f"auditing {model} on {', '.join(synthesis.VERSIONS)} …")
    result = report.audit_with_report(
        work.request(drawn, model), work.audit, pipeline.AuditOptions(quick=True),
        encoding=EncodeOptions(notify=print_note), overwrite=overwrite, display=progress_bar(), notify=print_note,
        command=sys.argv, trust_code=True,
    )  # fmt: skip
    used = sum(os.times()[:4])  # its own and that of the processes that drew
    print_note(f"took {duration(time.perf_counter() - begin)}; processor time: {duration(used)}")
    named = zip(synthesis.VERSIONS, result.runs.values(), strict=True)
    runs = {version: replace(run, name=version) for version, run in named}
    table = report.side_by_side(list(runs.values()), METRIC, column=_COLUMN)
    if json:
        print_audit(result, json=True, side_by_side=table.as_dict())
        return
    print_note("")
    easiest = report.chart(runs["v0"], _COLUMN, METRIC)
    _print_tables(model, runs, easiest, table)
    print_result("\nWhat the audit found, the most important first\n")
    print_audit(result, json=False)
    print_result(f"\n{_next_steps(result)}")


def expected_seconds(images: int) -> float:
    """How long the demo takes: its processor time, times how much longer than that some pictures take to draw now.

    Drawing is shared among the cores, the audit mostly is not.
    """
    scenes = list(synthesis.generate(_PROBED, seed=0))
    begin = time.perf_counter()
    for scene in scenes:
        scene.png()
    slower = (time.perf_counter() - begin) / (_PROBED * _PER_PICTURE)
    return slower * (_START_UP + images * (_AUDITED + _DRAWN / core.available_cores()))


def _print_tables(model: str, runs: dict[str, core.Run], easiest: report.GroupChart, table: Any) -> None:
    (own,) = easiest.runs.values()
    groups = {group: own[group] for group in easiest.groups}
    sizes = {version: run.provenance["dataset"]["images"] for version, run in runs.items()}
    print_result(_about(model, sizes["v0"], runs["v0"].provenance["dataset"]["captions"]))
    print_result(f"\n{easiest.title}: the share of captions whose picture comes first\n")
    print_result(report.terminal_bars(_COLUMN, groups, terminal_width()))
    print_result(
        f"\nThe same with harder galleries: v0 has {sizes['v0']:,} pictures; v1 adds a confusable\n"
        f"twin of each, whose captions are queries too; v2 has {sizes['v2']:,} pictures.\n"
    )
    print_result(table.in_order(easiest.groups).text(terminal_width()))


def _about(model: str, images: int, captions: int) -> str:
    lines = [f"{model} searches {images:,} drawn scenes with {captions:,} captions."]
    if model == "tiny":
        lines += [
            "It comes with crosslens and was trained on other scenes of this kind: its results",
            "show what an evaluation looks like, and say nothing about photographs.",
        ]
    return "\n".join(lines)


def _next_steps(result: pipeline.Audit) -> str:
    easiest = result.folder / "runs" / next(iter(result.runs))
    steps = {
        f"open {result.report}": "the report (or xdg-open)",
        f"crosslens show {easiest}": "every metric, both directions",
        f"crosslens show {easiest} --by style": "which captions are hard?",
        f"crosslens data describe {result.folder.parent}/scenes-v0/": "what was drawn",
        f"crosslens run {easiest}/recipe.toml": "the same evaluation, repeated",
        "crosslens audit --help": "your own model, embeddings or lists",
    }
    width = max(map(len, steps))
    return "What to try next\n" + "\n".join(f"  {command:<{width}}   {why}" for command, why in steps.items())

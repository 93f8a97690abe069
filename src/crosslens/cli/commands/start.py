"""``crosslens demo``: an audit of drawn scenes, from nothing to its report; audits; and whether all is installed."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from crosslens import audits, core, pipeline, planning, report, synth as synthesis, values
from crosslens.cli.answers import CommandAnswer, end_with
from crosslens.cli.commands.evaluate import encoding_of
from crosslens.cli.console import confirm_code, print_note, progress_bar
from crosslens.cli.datasets import DATASET_WORDS, DatasetOptions, dataset_sources
from crosslens.cli.flags import OUTPUT, Flags, Overwrite, Plugins, TrustCodeFlag, command, output_option, positional
from crosslens.cli.stored_runs import recorded_command
from crosslens.core import Cell, FactList, MissingExtraError, Presented, Section, Table, Text, UsageError, option
from crosslens.encode import EncodeOptions
from crosslens.engine import duration
from crosslens.pipeline import AuditOptions, EvaluateOptions, InputOptions, ModelOptions

METRIC = "t2i/Hit@1"
_COLUMN = "task"
_START_UP, _DRAWN, _AUDITED = 22.0, 0.12, 0.3
"""Processor seconds: in any case, and for each scene with its twin and those like it, to draw and to audit."""
_LONGEST = 30
"""Letters of the bar of a share of 1."""
_PROBED, _PER_PICTURE = 12, 0.008
"""Pictures that are drawn to see how fast this machine is now, and the processor seconds of each."""


@dataclass(frozen=True, eq=False)
class DemoResult(Presented):
    """What the demo found: the easiest gallery by task, all galleries side by side, and the audit's findings."""

    model: str
    runs: Mapping[str, values.Run]
    easiest: pipeline.GroupChart
    galleries: pipeline.SideBySide
    audit: audits.Audit

    @property
    def title(self) -> str:
        return f"{self.model} on drawn scenes"

    def as_dict(self) -> dict[str, Any]:
        return {**self.audit.as_dict(), "side_by_side": self.galleries.as_dict()}

    def sections(self) -> Iterator[Section]:
        """What was searched, how well by task, in which galleries, what the audit says, and what to try next."""
        counts_of = {version: run.provenance["dataset"] for version, run in self.runs.items()}
        images = {version: f"{counts['images']:,}" for version, counts in counts_of.items()}
        searched = f"{self.model} searches {images['v0']} drawn scenes with {counts_of['v0']['captions']:,} captions."
        built_in = (
            "It comes with crosslens and was trained on other scenes of this kind: its results show what an evaluation "
            "looks like, and say nothing about photographs."
        )
        yield Section("", (Text.of(searched, built_in if self.model == "tiny" else ""),))
        (tasks,) = self.easiest.runs.values()
        rows: list[tuple[Cell, ...]] = [
            (group, tasks[group].n, pipeline.value_figure(tasks[group]), "█" * math.ceil(_LONGEST * tasks[group].mean))
            for group in self.easiest.groups
        ]
        bars = Table((_COLUMN, "queries", values.split_name(METRIC)[1], ""), tuple(rows), "lrrl", aside=True)
        (easiest,) = self.easiest.sections()
        head = f"{self.easiest.title}: the share of captions whose picture comes first"
        yield Section(head, (bars, *easiest.charts))
        harder = (
            f"The same captions in harder galleries: v0 has {images['v0']} pictures, v1 adds a near-twin of each, and "
            f"v2 has {images['v2']} pictures."
        )
        (galleries,) = self.galleries.in_order(self.easiest.groups).sections()
        yield Section("", (Text.of(harder), *galleries.parts))
        (findings,) = self.audit.sections()
        yield Section("What the audit found, the first thing first", findings.parts)
        run = self.audit.folder / "runs" / next(iter(self.audit.runs))
        steps = {
            f"open {self.audit.report}": "the report (or xdg-open)",
            f"crosslens show {run}": "every metric, both directions",
            f"crosslens show {run} --by style": "which captions are hard?",
            f"crosslens data describe {self.audit.folder.parent}/scenes-v0/": "what was drawn",
            f"crosslens run {run}/recipe.toml": "the same evaluation, repeated",
            "crosslens audit --help": "your own model, embeddings or lists",
        }
        yield Section("", (FactList(tuple(steps.items()), "What to try next"),))


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
    model: str = option("tiny", "The encoder: the built-in one, or KIND:SOURCE as in encode.", metavar="KIND:SOURCE"),
    overwrite: Overwrite = False,
) -> DemoResult:
    """Audit a model on drawn scenes: a report in a minute.

    Running the same command again resumes where it was interrupted, or finds everything complete.
    """
    begin = time.perf_counter()
    audits.require_model(model, print_note)
    work = audits.Demo(output, overwrite, progress_bar())
    print_note(
        f"this takes about {duration(expected_seconds(images))} here and now, less if an earlier call has done a part; "
        f"everything is written to {output}"
    )
    print_note(f"drawing {images:,} scenes, a confusable twin of each, and similar ones …")
    scenes = work.draw(images, seed)
    print_note(f"auditing {model} on {', '.join(synthesis.VERSIONS)} …")
    result = report.audit_with_report(
        work.request(scenes, model), work.audit, pipeline.AuditOptions(quick=True),
        encoding=EncodeOptions(notify=print_note), overwrite=overwrite, display=progress_bar(), notify=print_note,
        command=recorded_command(), trust_code=True,
    )  # fmt: skip
    used = sum(os.times()[:4])  # its own and that of the processes that drew
    print_note(f"took {duration(time.perf_counter() - begin)}; processor time: {duration(used)}")
    pairs = zip(synthesis.VERSIONS, result.runs.values(), strict=True)
    runs = {version: replace(run, name=version) for version, run in pairs}
    easiest = pipeline.plot(runs["v0"], _COLUMN, METRIC)
    print_note("")
    same_captions = list(pipeline.over_same_queries(runs, METRIC).values())
    galleries = pipeline.side_by_side(same_captions, METRIC, column=_COLUMN)
    return DemoResult(model, runs, easiest, galleries, result)


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


_RUN = "Ranked lists, twice for both directions; or run folders, audited from their recipes."


@command(
    "crosslens audit --dataset captions.jsonl --image-folder photos \\",
    "    --model clip:openai/clip-vit-base-patch32 -o audits/clip",
    "crosslens audit --dataset captions.jsonl --image-folder photos --model tiny --quick -o audits/tiny",
    "crosslens audit --dataset coco.jsonl --dataset flickr.jsonl \\",
    "    --model tiny --model path:models/triplet -o audits/all",
    "crosslens audit --dataset captions.jsonl --image-embeddings img.npy --caption-embeddings cap.npy -o audits/mine",
    "crosslens audit --run runs/clip -o audits/clip",
    "crosslens audit --list",
    common=("run", "quick", "only"),
)
def audit(
    source: Annotated[DatasetOptions, Flags(without=("dataset",))],
    settings: Annotated[ModelOptions, Flags(only=("image_folder", "precision", "skip_bad"))],
    encode: Annotated[EncodeOptions, Flags(only=("device", "batch_size", "cache", "offline"))],
    inputs: Annotated[InputOptions, Flags(without=("phi", "scores_from"), help={"runs": _RUN})],
    evaluate: Annotated[EvaluateOptions, Flags(only=("metrics", "directions", "score", "folds", "skip_unknown"))],
    options: AuditOptions,
    dataset: list[str] | None = option(
        None, "A dataset's path, or a reader with its options; may be repeated.", metavar=DATASET_WORDS
    ),
    model: list[str] | None = option(
        None, "A model (see crosslens encode --list); may be repeated.", metavar="KIND:SOURCE"
    ),
    name: str | None = option(None, "The name of what files hold. [default: by their kind]", metavar="TEXT"),
    output: Path | None = output_option("Where everything is written.", "FOLDER"),
    listing: bool = option(False, "Print the stages and what each needs, and nothing else.", flags=("--list",)),
    overwrite: Overwrite = False,
    trust_code: TrustCodeFlag = False,
    plugin: Plugins = None,
) -> audits.Audit | CommandAnswer:
    """Audit models: every analysis, one report.

    Metrics with intervals, groups, ties, labels, missing positives, robustness, explanations and more: every stage that
    what is given allows; the others say why not. Ends with the most important findings and a page, report.html. Running
    the same command again resumes where it was interrupted.
    """
    if listing:
        stages = audits.all_stages()
        needs = {stage.name: [need.text for need in stage.needs] for stage in stages}
        rows = tuple(
            (stage.name, stage.summary + (f" Needs {'; '.join(needs[stage.name])}." if stage.needs else ""))
            for stage in stages
        )
        content = [{"stage": stage.name, "summary": stage.summary, "needs": needs[stage.name]} for stage in stages]
        return CommandAnswer("Stages of an audit", (FactList(rows),), content)
    if output is None:
        raise UsageError("missing option -o/--output", fix="name the folder of the audit: -o audits/mine")
    request = audits.AuditRequest(
        dataset_sources(dataset or [], source), tuple(model or ()), inputs, settings, evaluate, name,
        tuple(plugin or ()),
    )  # fmt: skip
    encoding = encoding_of(encode)
    result = report.audit_with_report(
        request, output, options, encoding=encoding, overwrite=overwrite, display=progress_bar(), notify=print_note,
        command=recorded_command(), trust_code=trust_code or confirm_code,
    )  # fmt: skip
    print_note("")
    return result


@command(
    "crosslens calibrate audits/clip",
    "crosslens calibrate audits/clip --only hub --only ties --repeats 20",
    "crosslens calibrate audits/all --run tiny-flickr --write noticed.csv",
    common=("only", "repeats"),
)
def calibrate(
    encode: Annotated[EncodeOptions, Flags(only=("device", "batch_size", "cache", "offline"))],
    audit: Path = positional(..., "The folder of an audit.", metavar="AUDIT"),
    run: str | None = option(
        None, "The run of the audit that defects are planted into. [default: the first]", metavar="NAME"
    ),
    only: list[str] | None = option(
        None, "A kind of finding, such as hub; may be repeated. [default: all]", metavar="KIND"
    ),
    repeats: int = option(10, "How often each strength is planted.", metavar="N", minimum=1),
    seed: int = option(0, "Seed of what is planted where.", metavar="N"),
    trust_code: TrustCodeFlag = False,
) -> audits.Sensitivity:
    """Say what an audit could have noticed.

    Plants each defect into the audit's own data at several strengths, looks for it as the audit does, and counts: a hub
    of 5 %: always; 5 % swapped captions: 6 of 10. The audit's report shows it. Running the same command again resumes
    where it was interrupted.
    """
    return report.calibrate(
        audit, run=run, only=only or (), repeats=repeats, seed=seed, encoding=encoding_of(encode),
        progress=progress_bar(), trust_code=trust_code or confirm_code,
    )  # fmt: skip


@command("crosslens doctor", "crosslens doctor --load", "crosslens doctor --json", reads_files=False)
def doctor(
    load: bool = option(False, "Import every installed package, too, which finds broken ones (up to minutes)."),
) -> planning.Diagnosis:
    """Check the installation: versions, extras, caches, GPU.

    Says what is missing and how to get it, and changes nothing. A missing extra is no problem; where something that is
    installed does not work, the exit code is 4.
    """
    result = planning.diagnose(load=load)
    if result.problems:
        end_with(MissingExtraError.exit_code)
    return result

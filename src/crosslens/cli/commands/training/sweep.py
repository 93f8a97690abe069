"""``crosslens sweep``: train a grid of settings and seeds, and compare them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import crosslens.metrics as metrics
import crosslens.train as train
from crosslens.cli.answers import end_with, wrote
from crosslens.cli.console import print_json, print_list, print_note, progress_bar
from crosslens.cli.flags import OUTPUT, SEVERAL, Json, Overwrite, Plugins, command
from crosslens.core import Options, UsageError, option


@dataclass(frozen=True)
class SweepOptions(Options):
    """How the trainings of a sweep are run."""

    seeds: str = option("5", "How many seeds (5: the seeds 0 to 4), or which: 0,3,7.", metavar="N|N,N")
    jobs: int = option(1, "Trainings side by side, each a process. The results are the same.", metavar="N", minimum=1)
    threads: int = option(
        1, "Threads of each training; another number changes the last digits.", metavar="N", minimum=1
    )
    device: str | None = option(
        None, "Where to compute: cpu, cuda, cuda:1. [default: a GPU if there is one]", metavar="NAME"
    )
    metrics: str = option("Rsum", "Test figures of the table.", metavar="NAMES", joins=" ")
    correction: str = option("holm", "Correction for several tests: holm, bh or none.", metavar="NAME")
    level: float = option(0.95, "Confidence level of the intervals.", metavar="SHARE", above=0, below=1)


@command(
    "crosslens sweep flickr8k-vse-triplet --data flickr8k --seeds 5 \\",
    "    --set loss=triplet,sam-random fraction=0.1,0.25,1 -o sweeps/sam",
    "crosslens sweep flickr8k-vse-sam-random --data flickr8k --seeds 0,3,7 \\",
    "    --set sam.tau=3,5,10 fraction=0.1 --jobs 2 -o sweeps/tau",
    "crosslens sweep --data flickr8k --set recipe=a.toml,b.toml \\",
    "    --dry-run -o sweeps/models",
)
def sweep_command(
    recipe: Annotated[str | None, typer.Argument(help="A recipe that comes with crosslens, or a path.")] = None,
    *,
    data: Path | None = option(
        None, "The folder with captions and features.", metavar="FOLDER", flags=("--data", "--features")
    ),
    settings: list[str] | None = option(
        None,
        "A setting and its values: of [training] (fraction=0.1,1), [model] (model.dimension=256,512), a loss "
        "(sam.tau=3,5), phi=…, recipe=…, or loss=… by short names. May be repeated.",
        metavar=f"NAME=V1,V2{SEVERAL}",
        flags=("--set",),
    ),
    output: Path | None = option(None, "The folder of the sweep.", metavar="FOLDER", flags=OUTPUT),
    options: SweepOptions,
    dry_run: bool = option(False, "List the trainings and stop."),
    list_losses: bool = option(False, "List the short names of losses and stop."),
    overwrite: Overwrite = False,
    plugin: Plugins = None,
    json: Json = False,
) -> train.Sweep | None:
    """Train a grid of settings with several seeds.

    Each training is a folder below the output. An interrupted sweep is resumed by the same command; once finished, it
    prints the table again. Means have t intervals over seeds, and each combination is compared with that of the first
    value of the first setting by a paired t test over seeds.
    """
    if list_losses:
        _print_losses(json)
        return None
    if data is None:
        raise UsageError("no data", fix="pass --data and the folder with captions and features", option="data")
    if output is None:
        raise UsageError("no output folder", fix="pass -o and the folder that the sweep is written to", option="output")
    plan = train.plan_sweep(
        recipe, data, settings or (), seeds=options.seeds, device=options.device, threads=options.threads
    )
    if dry_run:
        state = train.sweep_state(plan, output, metrics=options.metrics, overwrite=overwrite)
        _print_plan(plan, state, json)
        return None
    sweep = train.run_sweep(
        plan, output, metrics=options.metrics, jobs=options.jobs, level=options.level, correction=options.correction,
        overwrite=overwrite, plugins=[str(file) for file in plugin or ()], progress=progress_bar(),
        watch=None if json else _told(plan),
    )  # fmt: skip
    wrote(*train.write_sweep_files(sweep, output))
    if sweep.failures:
        end_with(sweep.failures[0].failure.exit_code)  # type: ignore[union-attr]
    return sweep


def _print_losses(json: bool) -> None:
    named = {name: [dict(entry) for entry in entries] for name, entries in train.named_losses().items()}
    alone = [entry for entry in train.LOSSES if entry.name not in named]
    if json:
        print_json({"losses": named | {entry.name: [{"kind": entry.name}] for entry in alone}})
        return
    rows = [(name, " + ".join(_loss(entry) for entry in entries)) for name, entries in named.items()]
    rows += [(entry.name, f"{entry.name}, with its default settings") for entry in alone]
    print_list([*rows, ("recipe", "the losses of the recipe")])


def _loss(entry: dict[str, object]) -> str:
    settings = ", ".join(f"{name} {value}" for name, value in entry.items() if name not in ("kind", "weight"))
    weight = f"{entry['weight']:g} × " if entry.get("weight", 1) != 1 else ""
    return f"{weight}{entry['kind']} ({settings})"


def _print_plan(plan: train.SweepPlan, state: train.SweepState, json: bool) -> None:
    steps = {training.folder: state.steps.get(training.folder, 0) for training in plan.trainings}
    if json:
        rows = [
            {"folder": training.folder, "settings": dict(plan.combinations[training.combination].values),
             "seed": training.seed, "finished": training.folder in state.finished, "steps": steps[training.folder]}
            for training in plan.trainings
        ]  # fmt: skip
        print_json({"recipe": plan.name, "trainings": rows})
        return
    left = {folder: f"{count:,} steps" if count else "to be measured again" for folder, count in state.steps.items()}
    print_list([(folder, left.get(folder, "finished")) for folder in steps])
    print_note(f"\n{len(left)} of {metrics.format_count(len(steps), 'training')} to run")


def _told(plan: train.SweepPlan) -> train.SweepWatch:
    """Print a line for every training that ends."""

    def tell(outcome: train.TrainingOutcome, ended: int, total: int) -> None:
        training = outcome.training
        if outcome.failure is not None or outcome.card is None:
            result = f"failed: {outcome.failure.problem if outcome.failure else ''}"
        else:
            figures = {"validation": outcome.card["validation"], "test": {"Rsum": outcome.card["test"]["Rsum"]}}
            result = ", ".join(
                f"{split} {name} {metrics.format_figure(name, value)}"
                for split, values in figures.items()
                for name, value in values.items()
            )
        label = plan.combinations[training.combination].label
        print_note(f"{label}, seed {training.seed}: {result} ({ended} of {total})")

    return tell

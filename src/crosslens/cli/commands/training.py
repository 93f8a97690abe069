"""A training while it runs: the curve of the validation metric beside the bar, or plain lines."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from crosslens import metrics, train
from crosslens.cli.answers import CommandAnswer, end_with, wrote
from crosslens.cli.console import Bar, LogLines, confirm_code, print_note, print_notes, progress_bar
from crosslens.cli.flags import SEVERAL, Json, Overwrite, Plugins, TrustCodeFlag, command, output_option, positional
from crosslens.core import FactList, Options, Text, UsageError, declarations, option
from crosslens.storage import trusting

_BLOCKS = "▁▂▃▄▅▆▇█"
_LONGEST = 16
"""Characters of a curve."""


def sparkline(values: Sequence[float], longest: int = _LONGEST) -> str:
    """Values as a line of blocks, from the lowest to the highest; of many values, the last of each part."""
    ends = [round((part + 1) * len(values) / min(longest, len(values))) for part in range(min(longest, len(values)))]
    ends_of = [values[end - 1] for end in ends]
    low, high = min(ends_of, default=0.0), max(ends_of, default=0.0)
    scale = (len(_BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BLOCKS[round(scale * (value - low))] for value in ends_of)


class LiveCurve(Bar):
    """The bar, with the curve of the validation metric beside it."""

    def __init__(self, metric: str) -> None:
        super().__init__()
        self._metric, self._values = metric, list[float]()

    def watch(self, row: Mapping[str, Any]) -> None:
        self._values.append(row["value"])
        self.show_beside(self._curve())

    def start(self, label: str, total: int) -> None:
        super().start(label, total)
        if self._values:
            self.show_beside(self._curve())

    def _curve(self) -> str:
        return f"{sparkline(self._values)} {self._metric} {metrics.format_figure(self._metric, self._values[-1])}"


class PlainCurve(LogLines):
    """A line per validation, where the output is no terminal."""

    def __init__(self, metric: str) -> None:
        super().__init__()
        self._metric = metric

    def watch(self, row: Mapping[str, Any]) -> None:
        value = metrics.format_figure(self._metric, row["value"])
        print_note(f"epoch {row['epoch']:g}: loss {row['loss']:.4f}, validation {self._metric} {value}")


_AS_IN_RECIPE = " [default: as in the recipe]"
_RECIPE = "A recipe that comes with crosslens, or a path."
_DATA = option(
    None, "The folder with captions and features.", metavar="FOLDER", flags=("--data", "--features"), group="Input"
)


def _setting(name: str, default: str = "") -> Any:
    """A setting of recipes as a flag, whose help ends with its ``default``."""
    declaration = declarations(train.TrainingSettings)[name]
    return field(default=None, metadata={"option": replace(declaration, help=declaration.help + default)})


@dataclass(frozen=True)
class TrainingChanges(Options, group="Training"):
    """Settings of a recipe that a flag may change."""

    fraction: float | None = _setting("fraction", _AS_IN_RECIPE)
    seed: int | None = _setting("seed", _AS_IN_RECIPE)
    epochs: int | None = _setting("epochs", _AS_IN_RECIPE)
    batch_size: int | None = _setting("batch_size", _AS_IN_RECIPE)
    learning_rate: float | None = _setting("learning_rate", _AS_IN_RECIPE)
    precision: str | None = _setting("precision", _AS_IN_RECIPE)
    test_metrics: str | None = option(
        None,
        'Metrics of the test split besides those of the recipe, such as "NCS@10 Nsum[spice]".',
        flags=("--metrics",),
    )
    processes: int | None = _setting("processes", _AS_IN_RECIPE)
    device: str | None = _setting("device")
    threads: int | None = _setting("threads")


@command(
    "crosslens train --list",
    'crosslens train --list "f30k soft"',
    "crosslens train flickr8k-vse-triplet --data flickr8k --fraction 0.1 --seed 0 -o models/t",
    "crosslens train --recipe my-recipe.toml --data flickr8k -o models/mine",
    group="Training",
    common=("data", "recipe", "list_recipes", "fraction", "epochs", "seed", "device"),
)
def train_command(
    *,
    name: str | None = positional(None, _RECIPE, names="RECIPE"),
    recipe: Path | None = option(None, "A recipe file, in place of the name.", metavar="FILE.toml"),
    data: Path | None = _DATA,
    output: Path | None = output_option("Where the model is written.", "FOLDER"),
    changes: TrainingChanges,
    list_recipes: bool = option(
        False, "List the recipes and stop; with words in place of the name, those they describe.", flags=("--list",)
    ),
    overwrite: Overwrite = False,
    trust_code: TrustCodeFlag = False,
    json: Json = False,
) -> train.Trained | CommandAnswer:
    """Train a retrieval model on stored features.

    The checkpoint that is best on validation is kept and measured on the test split. Running the same command again
    resumes an interrupted training, and ends with the same weights. The folder also holds the curves as a page
    (curves.html) and the test split as a run (test), which crosslens compare and crosslens show read.
    """
    if list_recipes:
        return _listed_recipes(name or "")
    if (name is None) == (recipe is None):
        problem = "no recipe" if name is None else f"two recipes, {name} and {recipe}"
        raise UsageError(problem, fix="name one recipe (see crosslens train --list), or a file with --recipe")
    data, output = _required(data, output, "model")
    loaded = train.load_training_recipe(name or recipe or "", trust_code=trust_code or confirm_code)
    loaded = loaded.with_settings(vars(changes))
    features = train.load_features(loaded.layout, data, loaded.data, loaded.source)
    curve = LiveCurve if sys.stderr.isatty() else PlainCurve
    live = None if json else curve(loaded.settings.metric)
    try:
        trained = train.train_model(
            loaded, features, output, overwrite=overwrite, progress=live or progress_bar(),
            watch=live.watch if live else None,
        )  # fmt: skip
    except KeyboardInterrupt as interrupt:
        print_note(str(interrupt))
        raise
    if not json:
        print_notes(trained.notes)
    return trained


def _required(data: Path | None, output: Path | None, result: str) -> tuple[Path, Path]:
    if data is None:
        raise UsageError("no data", fix="pass --data and the folder with captions and features", option="data")
    if output is None:
        fix = f"pass -o and the folder that the {result} is written to"
        raise UsageError("no output folder", fix=fix, option="output")
    return data, output


def _listed_recipes(words: str) -> CommandAnswer:
    groups = train.recipe_groups(words)
    recipes = sorted((recipe for group in groups for recipe in group.recipes), key=lambda recipe: recipe.name)
    minutes = train.recipe_minutes()
    content = [
        {
            "name": recipe.name,
            "about": recipe.about,
            "minutes": minutes.recipe.get(recipe.name),
            "minutes_of_a_tenth": minutes.tenth.get(recipe.name),
            "published": [
                {"table": row.table, "row": row.row, "flags": row.flags, "figures": dict(row.figures)}
                for row in recipe.published
            ],
        }
        for recipe in recipes
    ]

    def described(recipe: train.TrainingRecipe) -> str:
        tables, whole = train.tables_of(recipe), minutes.recipe.get(recipe.name)
        summary = recipe.about + (f" ({tables})" if tables else "")
        if whole is None:
            return summary
        tenth = "" if recipe.settings.fraction < 1 else f", {minutes.tenth[recipe.name]:.0f} with --fraction 0.1"
        return f"{summary}; {whole:.0f} min{tenth}"

    lists = tuple(
        FactList(tuple((recipe.name, described(recipe)) for recipe in group.recipes), f"{group.title}:")
        for group in groups
    )
    notes = [
        f"min: expected processor minutes on {minutes.machine}, from a few steps and a validation; by the clock more "
        "on a busy machine. Recipes without were not measured."
    ]
    if not words:
        notes.append('crosslens train --list "flickr8k vse" lists those that the words describe')
    listed = {"recipes": content, "measured_on": minutes.machine}
    return CommandAnswer("Recipes of trainings", (*lists, *(Text.of(note) for note in notes)), listed)


@dataclass(frozen=True)
class SweepOptions(Options, group="Training"):
    """How the trainings of a sweep are run."""

    seeds: str = option("5", "How many seeds (5: the seeds 0 to 4), or which: 0,3,7.", metavar="N|N,N")
    jobs: int = option(1, "Trainings side by side, each a process. The results are the same.", minimum=1)
    threads: int = option(1, "Threads of each training; another number changes the last digits.", minimum=1)
    device: str | None = _setting("device")
    metrics: str = option("Rsum", "Test figures of the table.")
    correction: str = option("holm", "Correction for several tests: holm, bh or none.")
    level: float = option(0.95, "Confidence level of the intervals.", above=0, below=1)


@command(
    "crosslens sweep flickr8k-vse-triplet --data flickr8k --seeds 5 \\",
    "    --set loss=triplet,sam-random fraction=0.1,0.25,1 -o sweeps/sam",
    "crosslens sweep flickr8k-vse-sam-random --data flickr8k --seeds 0,3,7 \\",
    "    --set sam.tau=3,5,10 fraction=0.1 --jobs 2 -o sweeps/tau",
    "crosslens sweep --data flickr8k --set recipe=a.toml,b.toml --dry-run -o sweeps/models",
    group="Training",
    common=("data", "settings", "seeds", "jobs", "device", "dry_run"),
)
def sweep_command(
    *,
    recipe: str | None = positional(None, _RECIPE, names="RECIPE"),
    data: Path | None = _DATA,
    settings: list[str] | None = option(
        None,
        "A setting and its values: of [training] (fraction=0.1,1), [model] (model.dimension=256,512), a loss "
        "(sam.tau=3,5), phi=…, recipe=…, or loss=… by short names. May be repeated.",
        metavar=f"NAME=V1,V2{SEVERAL}",
        flags=("--set",),
    ),
    output: Path | None = output_option("The folder of the sweep.", "FOLDER"),
    options: SweepOptions,
    dry_run: bool = option(False, "List the trainings and stop."),
    list_losses: bool = option(False, "List the short names of losses and stop."),
    overwrite: Overwrite = False,
    trust_code: TrustCodeFlag = False,
    plugin: Plugins = None,
    json: Json = False,
) -> train.Sweep | CommandAnswer:
    """Train a grid of settings with several seeds.

    Each training is a folder below the output. An interrupted sweep is resumed by the same command; once finished, it
    prints the table again. Means have t intervals over seeds, and each combination is compared with that of the first
    value of the first setting by a paired t test over seeds.
    """
    if list_losses:
        return _listed_losses()
    data, output = _required(data, output, "sweep")
    with trusting(trust_code or confirm_code):
        plan = train.plan_sweep(
            recipe, data, settings or (), seeds=options.seeds, device=options.device, threads=options.threads
        )
    if dry_run:
        state = train.sweep_state(plan, output, metrics=options.metrics, overwrite=overwrite)
        return _listed_trainings(plan, state)

    def show(outcome: train.TrainingOutcome, ended: int, total: int) -> None:
        """Print a line for every training that ends."""
        if outcome.failure is not None or outcome.card is None:
            result = f"failed: {outcome.failure.problem if outcome.failure else ''}"
        else:
            figures = {"validation": outcome.card["validation"], "test": {"Rsum": outcome.card["test"]["Rsum"]}}
            result = ", ".join(
                f"{split} {name} {metrics.format_figure(name, value)}"
                for split, values in figures.items()
                for name, value in values.items()
            )
        label = plan.combinations[outcome.training.combination].label
        print_note(f"{label}, seed {outcome.training.seed}: {result} ({ended} of {total})")

    sweep = train.run_sweep(
        plan, output, metrics=options.metrics, jobs=options.jobs, level=options.level, correction=options.correction,
        overwrite=overwrite, plugins=[str(file) for file in plugin or ()], progress=progress_bar(),
        watch=None if json else show,
    )  # fmt: skip
    wrote(*train.write_sweep_files(sweep, output))
    if sweep.failures:
        end_with(sweep.failures[0].failure.exit_code)  # type: ignore[union-attr]
    return sweep


def _listed_losses() -> CommandAnswer:
    losses = {name: [dict(entry) for entry in entries] for name, entries in train.named_losses().items()}
    alone = [entry.name for entry in train.LOSSES if entry.name not in losses]
    rows = []
    for name, entries in losses.items():
        terms = []
        for entry in entries:
            settings = ", ".join(f"{key} {value}" for key, value in entry.items() if key not in ("kind", "weight"))
            weight = f"{entry['weight']:g} × " if entry.get("weight", 1) != 1 else ""
            terms.append(f"{weight}{entry['kind']} ({settings})")
        rows.append((name, " + ".join(terms)))
    rows += [(name, f"{name}, with its default settings") for name in alone]
    rows.append(("recipe", "the losses of the recipe"))
    return CommandAnswer(
        "Losses", (FactList(tuple(rows)),), {"losses": losses | {name: [{"kind": name}] for name in alone}}
    )


def _listed_trainings(plan: train.SweepPlan, state: train.SweepState) -> CommandAnswer:
    rows = [
        {
            "folder": training.folder,
            "settings": dict(plan.combinations[training.combination].values),
            "seed": training.seed,
            "finished": training.folder in state.finished,
            "steps": state.steps.get(training.folder, 0),
        }
        for training in plan.trainings
    ]
    steps = {folder: f"{count:,} steps" if count else "to be measured again" for folder, count in state.steps.items()}
    listed = tuple((training.folder, steps.get(training.folder, "finished")) for training in plan.trainings)
    many = f"{len(steps)} of {metrics.format_count(len(listed), 'training')} to run"
    return CommandAnswer(
        "Trainings of the sweep", (FactList(listed), Text.of(many)), {"recipe": plan.name, "trainings": rows}
    )

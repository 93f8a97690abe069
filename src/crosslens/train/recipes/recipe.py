"""A training written down: data, model, losses, and how long and how fast; a TOML file or one of the packaged ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from crosslens.core import InputError, Options, UnknownNameError, UsageError, option
from crosslens.train.recipes.files import RecipeFile, read_recipe_file
from crosslens.train.settings import check_type

CONSTANT, STEP, COSINE = "constant", "step", "cosine"
_TEXTS = ("table", "row", "flags")


@dataclass(frozen=True)
class TrainingSettings(Options):
    """How a model is trained: the same names in a recipe, in Python and as flags."""

    fraction: float = option(
        1.0,
        "Share of the training images; a smaller share is part of a larger one.",
        metavar="SHARE",
        above=0,
        maximum=1,
    )
    seed: int = option(0, "Seed of weights, order, dropout and sampling.", metavar="N", minimum=0)
    epochs: int = option(30, "Passes over the training captions.", metavar="N", minimum=1)
    max_steps: int = option(0, "Steps at most, where the epochs would take more; 0: no limit.", metavar="N", minimum=0)
    batch_size: int = option(128, "Pairs in a batch.", metavar="N", minimum=2)
    optimizer: str = option("adam", "What takes the steps: adam or adamw.", metavar="NAME", choices=("adam", "adamw"))
    learning_rate: float = option(2e-4, "Learning rate at its highest.", metavar="NUMBER", above=0)
    image_rate: float = option(
        1.0, "Factor of the learning rate for what reads images; 0: not trained.", metavar="FACTOR", minimum=0
    )
    text_rate: float = option(
        1.0, "Factor of the learning rate for what reads captions; 0: not trained.", metavar="FACTOR", minimum=0
    )
    weight_decay: float = option(0.0, "Weight decay.", metavar="NUMBER", minimum=0)
    schedule: str = option(
        CONSTANT, "How the rate falls: constant, step or cosine.", metavar="NAME", choices=(CONSTANT, STEP, COSINE)
    )
    decay_epochs: int = option(15, "With step: the rate is divided by 10 every N epochs.", metavar="N", minimum=1)
    warm_up: float = option(
        0.0, "Share of the steps in which the rate rises to its highest.", metavar="SHARE", minimum=0, below=1
    )
    clip: float = option(2.0, "Gradients are scaled down to this norm; 0: never.", metavar="NUMBER", minimum=0)
    precision: str = option(
        "fp32", "What the model computes in: fp32 or bf16.", metavar="NAME", choices=("fp32", "bf16")
    )
    validate_every: int = option(1, "Epochs between validations.", metavar="N", minimum=1)
    metric: str = option("Rsum", "The metric by which the best checkpoint is chosen.", metavar="NAME")
    test_metrics: str = option(
        "", "Metrics of the test split besides Hit@1, Hit@5, Hit@10, MedR and Rsum.", metavar="NAMES", joins=" "
    )
    patience: int = option(0, "Stop after N validations without a better value; 0: never.", metavar="N", minimum=0)
    device: str | None = option(
        None, "Where to compute: cpu, cuda, cuda:1. [default: a GPU if there is one]", metavar="NAME"
    )
    processes: int = option(1, "Processes that train together: one per GPU, or on the CPU.", metavar="N", minimum=1)
    threads: int | None = option(None, "Threads to use, of each process.", metavar="N", minimum=1)
    checkpoint_share: float = option(
        0.1,
        "The share of the time that may be spent on checkpoints; 1: one after every validation.",
        metavar="SHARE",
        above=0,
        maximum=1,
    )

    def steps(self, per_epoch: int) -> int:
        """Steps in all, with so many per epoch."""
        return min(self.epochs * per_epoch, self.max_steps or self.epochs * per_epoch)


IGNORED_FOR_IDENTITY = ("device", "threads", "processes", "checkpoint_share", "test_metrics")
"""What does not decide about the weights."""
_NOT_IDENTITY = ("settings", "name", "about", "source", "published")


@dataclass(frozen=True)
class TrainingRecipe:
    """What ``crosslens train`` repeats."""

    name: str
    about: str
    layout: str
    """A registered feature set: how the data folder is read."""
    data: Mapping[str, Any]
    model: str
    model_settings: Mapping[str, Any]
    losses: tuple[Mapping[str, Any], ...]
    phi: str = "cider"
    least_count: int = 4
    """A word of the vocabulary occurs at least this often in the training captions."""
    text_model: str = ""
    """An encoder, as KIND:SOURCE: frozen with the text ``sentence``, trained further with ``encoder``."""
    settings: TrainingSettings = field(default_factory=TrainingSettings)
    source: str = "recipe"
    """The file, for messages."""
    published: tuple[PublishedRow, ...] = ()
    """The rows of papers that it repeats."""

    def with_settings(self, changes: Mapping[str, Any]) -> TrainingRecipe:
        """The same recipe with other settings; None changes nothing."""
        return replace(self, settings=replace(self.settings, **{k: v for k, v in changes.items() if v is not None}))

    def identity(self) -> dict[str, Any]:
        """All that decides about the weights."""
        settings = {f.name: getattr(self.settings, f.name) for f in fields(self.settings)}
        kept = {name: value for name, value in settings.items() if name not in IGNORED_FOR_IDENTITY}
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NOT_IDENTITY}
        return {**own, "losses": [dict(entry) for entry in self.losses], "settings": kept}


def load_training_recipe(name: str | Path) -> TrainingRecipe:
    """A packaged recipe by its name, or a TOML file by its path."""
    return parse_training_recipe(read_recipe_file(name))


_TABLES = ("data", "model", "loss")
_TYPES = {"about": "str", "phi": "str", "text_model": "str", "least_count": "int"}


def parse_training_recipe(file: RecipeFile) -> TrainingRecipe:
    """The recipe that a file holds; a mistake names the file."""
    source, content = file.source, file.content
    known = (*_TYPES, *_TABLES, "training", "published")
    for key in content:
        if key not in known:
            raise InputError(f"unknown entry {key!r}", file=source, fix=UnknownNameError("entry", key, known).fix)
    for key, kind in _TYPES.items():
        if key in content:
            check_type(key, content[key], kind, source)
    if content.get("least_count", 1) < 1:
        raise InputError(f"least_count is {content['least_count']}", file=source, fix="write 1 or more")
    (layout, data), (model, model_settings) = (
        _kind_of(_table(content, name, source), name, source) for name in _TABLES[:2]
    )
    losses = content.get("loss")
    losses = [losses] if isinstance(losses, dict) else losses
    if not losses or not isinstance(losses, list) or not all(isinstance(entry, dict) for entry in losses):
        raise InputError("no loss", file=source, expected="one table [[loss]] or more", fix="add [[loss]]")
    for entry in losses:
        _kind_of(entry, "[loss]", source)
    return TrainingRecipe(
        file.name, content.get("about", ""), layout, data, model, model_settings, tuple(losses),
        **{key: content[key] for key in _TYPES if key in content and key != "about"},
        settings=_settings(content.get("training", {}), source), source=source,
        published=published_rows(content.get("published", []), source),
    )  # fmt: skip


def _table(content: Mapping[str, Any], name: str, source: str) -> dict[str, Any]:
    table = content.get(name)
    if not isinstance(table, dict):
        raise InputError(
            f"no table [{name}]" if table is None else f"{name} is {table!r:.60}", file=source,
            expected=f"a table [{name}]", fix=f"add [{name}]",
        )  # fmt: skip
    return table


def _kind_of(table: Mapping[str, Any], name: str, source: str) -> tuple[str, dict[str, Any]]:
    """The kind that a table names, and its other entries."""
    kind = table.get("kind")
    if not isinstance(kind, str):
        problem = f"[{name}] has no kind" if kind is None else f"the kind of [{name}] is {kind!r:.60}"
        raise InputError(problem, file=source, fix=f'name it in [{name}]: kind = "…"')
    return kind, {key: value for key, value in table.items() if key != "kind"}


def _settings(table: Any, source: str) -> TrainingSettings:
    if not isinstance(table, dict):
        raise InputError(f"training is {table!r:.60}", file=source, expected="a table [training]")
    texts = {entry.name for entry in fields(TrainingSettings) if "str" in str(entry.type)}
    try:
        for key in texts & table.keys():
            check_type(f"{key} of [training]", table[key], "str", source)
        return TrainingSettings.of(table)
    except (UsageError, UnknownNameError) as error:
        raise InputError(f"[training]: {error.args[0]}", file=source, fix=error.fix) from error


@dataclass(frozen=True)
class PublishedRow:
    """A row of a paper's table."""

    table: str
    row: str
    figures: Mapping[str, float]
    """By metric, as printed."""
    flags: str = ""
    """What to add to the command: the share of the data."""


def published_rows(entries: Any, source: str) -> tuple[PublishedRow, ...]:
    """The ``[[published]]`` entries of a recipe: table, row, maybe flags; every other key is a metric."""
    if not (isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)):
        raise InputError(f"published is {entries!r:.60}", file=source, expected="tables [[published]]")
    return tuple(_row(entry, source) for entry in entries)


def _row(entry: Mapping[str, Any], source: str) -> PublishedRow:
    for key in ("table", "row"):
        if key not in entry:
            raise InputError(f"[[published]] has no {key}", file=source, fix=f'write {key} = "…"')
    for key, value in entry.items():
        check_type(f"{key} of [[published]]", value, "str" if key in _TEXTS else "float", source)
    figures = {key: float(value) for key, value in entry.items() if key not in _TEXTS}
    return PublishedRow(entry["table"], entry["row"], figures, entry.get("flags", ""))

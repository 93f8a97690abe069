"""A recipe and data in, a model folder out, interrupted or not; and how the training is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crosslens.core import Cell, Figure, Lines, Presented, Row, Section, Series, Table, Text
from crosslens.encode import Pretrained
from crosslens.engine import Progress, shown_progress, torch_device
from crosslens.metrics import facts_of, format_count, metric_figure, unit_sentence
from crosslens.storage import fingerprint, tidy_output, workspace
from crosslens.train.captions import pretrained_of
from crosslens.train.evaluation import TrainingMetrics
from crosslens.train.features import TrainingData
from crosslens.train.processes import Group, check_processes, compute_together, require_torch, same_kernels
from crosslens.train.recipe import TrainingRecipe
from crosslens.train.stored.model_folder import MODEL_LAYOUT, TEST_RUN, finished_card, read_model, write_model
from crosslens.train.training import Training, Watch
from crosslens.values import DIRECTION_LABELS, Run

HERE = Path()
"""Where a model is, seen from its own page, which may be moved with it."""


@dataclass(frozen=True)
class Trained(Presented):
    """A trained model's folder, and what its best checkpoint reaches on the test split."""

    path: Path
    card: Mapping[str, Any]

    @property
    def test(self) -> Mapping[str, float]:
        """Test figures of the checkpoint that is best on validation."""
        return dict(self.card["test"])

    @property
    def notes(self) -> list[str]:
        """What a person should know of how the recipe's settings were met."""
        return list(self.card.get("notes", ()))

    def as_dict(self) -> dict[str, Any]:
        names = ("test", "validation", "best_step", "steps", "parameters", "history", "recipe")
        return {**{name: self.card[name] for name in names}, "notes": self.notes, "model": str(self.path)}

    @property
    def title(self) -> str:
        return f"Training of {self.card['recipe']}"

    def sections(self) -> Iterator[Section]:
        card = self.card
        where = "" if self.path == HERE else f"{self.path}: "
        head = (
            f"{where}{card['recipe']}, {card['parameters']:,} parameters, best at step {card['best_step']:,} of "
            f"{card['steps']:,}"
        )
        rows: dict[str, dict[str, Figure]] = {}
        for name, value in self.test.items():
            direction, slash, metric = name.rpartition("/")
            label = metric if slash else f"{metric} (both)"  # which stands in the first column
            rows.setdefault(label, {})[direction or "i2t"] = metric_figure(name, value)
        directions = ("i2t", "t2i")
        cells = tuple((label, *(figures.get(way) for way in directions)) for label, figures in rows.items())
        test = Table(("test", *(DIRECTION_LABELS[way] for way in directions)), cells, "lrr")
        validated, history = next(iter(card["validation"])), card["history"]
        measured: tuple[tuple[Cell, ...], ...] = tuple(
            (
                f"{row['step']:,}", f"{row['epoch']:g}", f"{row['loss']:.6g}", metric_figure(validated, row["value"]),
                f"{row['rate']:.3g}" if "rate" in row else "–", "best" if row["step"] == card["best_step"] else "",
            )
            for row in history
        )  # fmt: skip
        header = ("step", "epoch", "loss", f"validation {validated}", "learning rate", "")
        validations = Table(header, measured, "rrrrrl", title=f"Every validation ({len(history)})", folded=True)
        notes = Text.of(unit_sentence(self.test), f"With intervals: crosslens show {self.path / 'test'}")
        recipe = Table(
            ("",),
            tuple((line,) for line in recipe_text(card["identity"]).splitlines()),
            title="The recipe",
            folded=True,
        )
        yield Section(head, (Row(tuple(_charts(card))), test, notes, validations, recipe))


def _charts(card: Mapping[str, Any]) -> Iterator[Lines]:
    (metric, best), history = next(iter(card["validation"].items())), card["history"]
    data, settings = card["training"], card["identity"]["settings"]
    steps = tuple(float(row["step"]) for row in history)

    def line(title: str, figures: Iterator[Figure], note: str = "", marked: int | None = None) -> Lines:
        return Lines(
            title=title, about=note, across=steps, series=(Series(title, tuple(figures)),), axis="step", marked=marked
        )

    facts = (
        f"{data['dataset']}: {format_count(data['images'], 'image')} with {format_count(data['captions'], 'caption')} "
        f"({100 * settings['fraction']:g} % of the training images), seed {settings['seed']}, "
        f"{card['identity']['model']}"
    )
    yield line("Training loss", (Figure(row["loss"], digits=4) for row in history), facts)
    lower = "" if facts_of(metric).higher_is_better else " (lower is better)"
    ring = f"Ring: the checkpoint that is kept, at step {card['best_step']:,}, {metric} {metric_figure(metric, best)}."
    yield line(
        f"Validation {metric}{lower}", (metric_figure(metric, row["value"]) for row in history), ring,
        steps.index(card["best_step"]),
    )  # fmt: skip
    if all("rate" in row for row in history):
        yield line("Learning rate", (Figure(row["rate"], digits=7) for row in history))


def recipe_text(identity: Mapping[str, Any]) -> str:
    """What decides about a training, as the TOML file that repeats it."""
    tables = {"data": {"kind": identity["layout"], **identity["data"]},
              "model": {"kind": identity["model"], **identity["model_settings"]}}  # fmt: skip
    separate = ("layout", "data", "model", "model_settings", "losses", "settings")
    entries = {name: value for name, value in identity.items() if name not in separate}
    parts = [_entries(entries), *(f"[{name}]\n{_entries(table)}" for name, table in tables.items())]
    parts += [f"[[loss]]\n{_entries(entry)}" for entry in identity["losses"]]
    return "\n\n".join([*parts, f"[training]\n{_entries(identity['settings'])}"]) + "\n"


def _entries(table: Mapping[str, Any]) -> str:
    nonempty = {name: value for name, value in table.items() if value not in (None, "")}
    return "\n".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in nonempty.items())


CHECKPOINT = "checkpoint.safetensors"


def train_model(
    recipe: TrainingRecipe,
    data: TrainingData,
    output: str | Path,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> Trained:
    """Train, validate every few epochs, keep the best checkpoint, and measure it on the test split.

    An interrupted call leaves its last checkpoint beside ``output``; the same call resumes there and ends with the same
    weights. ``watch`` is called with the row of every validation, those before an interruption included.
    """
    output, progress = Path(output), shown_progress(progress)
    metrics = TrainingMetrics(recipe.settings)
    key = training_key(recipe, data.fingerprint(), pretrained_of(recipe, data))
    card = finished_card(output, key, overwrite)
    if card is None or not metrics.are_in(card["test"]):
        with workspace(output, key) as work:
            card = finished_card(output, key, overwrite)
            require_torch()
            if card is None:
                origin = data.train.origin
                facts = {"key": key, "features": {} if origin is None else origin.seen_from(output)}
                arguments = recipe, data, work.beside(CHECKPOINT), work.new, facts
                device, size = torch_device(recipe.settings.device), recipe.settings.processes
                check_processes(size, device, recipe.settings.batch_size)
                if size == 1:
                    card = _train_share(*arguments, Group(device=device), progress=progress, watch=watch)
                else:
                    card = compute_together(_train_share, arguments, size, device, progress=progress, watch=watch)
                work.publish(MODEL_LAYOUT)
            elif not metrics.are_in(card["test"]):
                card = _measured_again(recipe, data, output, work.new, card, progress)
                work.publish(MODEL_LAYOUT)
    tidy_output(output, key)
    return Trained(output, card)


def training_key(recipe: TrainingRecipe, data: str, pretrained: Pretrained | None) -> str:
    """Changes with everything that decides about the result; ``data`` is the fingerprint of the data."""
    identity = json.dumps(recipe.identity(), sort_keys=True, default=str)
    revision = "" if pretrained is None else pretrained.revision
    return fingerprint("training", {"recipe": identity, "data": data, "pretrained": revision})


def _train_share(
    recipe: TrainingRecipe, data: TrainingData, file: Path, folder: Path, facts: Mapping[str, Any],
    group: Group, *, progress: Progress | None = None, watch: Watch | None = None,
) -> Mapping[str, Any]:  # fmt: skip
    """What one of the processes does: the model is in its folder then, and the first process returns its card."""
    with same_kernels(recipe.settings.threads):
        training = Training(recipe, data, file, shown_progress(progress), watch, group)
        training.run()
        training.use_best()
        run = training.test_run()
    if run is None:
        return {}
    card = {**facts, **training.card(), "test": _figures(run)}
    write_model(folder, card, training.best, run, _page(card))
    return card


def _measured_again(
    recipe: TrainingRecipe, data: TrainingData, output: Path, folder: Path, card: Mapping[str, Any], progress: Progress
) -> Mapping[str, Any]:
    """The card of a finished training with figures of further metrics; the folder is written anew.

    The run keeps what was measured before.
    """
    stored = read_model(output)
    with same_kernels(recipe.settings.threads):
        group = Group(device=torch_device(recipe.settings.device))
        training = Training(recipe, data, output / "none", progress, None, group)
        training.best = dict(stored.weights)
        training.use_best()
        run = training.test_run()
    assert run is not None
    run = replace(run, values={**Run.load(output / TEST_RUN).values, **run.values})
    card = {**card, "test": {**card["test"], **_figures(run)}}
    write_model(folder, card, stored.weights, run, _page(card))
    return card


def _page(card: Mapping[str, Any]) -> str:
    return Trained(HERE, card).content(".html").decode()


def _figures(run: Run) -> dict[str, float]:
    return {name: float(values.mean) for name, values in run.values.items()}

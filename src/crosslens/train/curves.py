"""How a training is shown: loss, validation and learning rate against steps, the test figures, the recipe."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslens.core import DIRECTION_LABELS, Cell, Figure, Lines, Presented, Row, Section, Series, Table, Text
from crosslens.metrics import facts_of, format_count, metric_figure, unit_sentence

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
        figures: Mapping[str, float] = self.card["test"]
        return figures

    @property
    def notes(self) -> list[str]:
        """What a person should know of how the recipe's settings were met."""
        return list(self.card.get("notes", ()))

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        names = ("test", "validation", "best_step", "steps", "parameters", "history", "recipe")
        return {**{name: self.card[name] for name in names}, "notes": self.notes, "model": str(self.path)}

    @property
    def title(self) -> str:
        """The heading of the page."""
        return f"Training of {self.card['recipe']}"

    def sections(self, **options: Any) -> Iterator[Section]:
        """The curves, the test figures, every validation, and the recipe."""
        card = self.card
        where = "" if self.path == HERE else f"{self.path}: "
        head = (
            f"{where}{card['recipe']}, {card['parameters']:,} parameters, best at step {card['best_step']:,} of "
            f"{card['steps']:,}"
        )
        notes = Text.of(unit_sentence(self.test), f"With intervals: crosslens show {self.path / 'test'}")
        recipe = Table(
            ("",),
            tuple((line,) for line in recipe_text(card["identity"]).splitlines()),
            title="The recipe",
            folded=True,
        )
        yield Section(head, (Row(tuple(_charts(card))), _test_table(self.test), notes, _validations(card), recipe))


def _charts(card: Mapping[str, Any]) -> Iterator[Lines]:
    (metric, best), history = next(iter(card["validation"].items())), card["history"]
    data, settings = card["training"], card["identity"]["settings"]
    steps = tuple(float(row["step"]) for row in history)

    def line(title: str, figures: Iterator[Figure], about: str = "", marked: int | None = None) -> Lines:
        return Lines(
            title=title, about=about, across=steps, series=(Series(title, tuple(figures)),), axis="step", marked=marked
        )

    facts = (
        f"{data['dataset']}: {format_count(data['images'], 'image')} with {format_count(data['captions'], 'caption')} "
        f"({100 * settings['fraction']:g} % of the training images), seed {settings['seed']}, "
        f"{card['identity']['model']}"
    )
    yield line("Training loss", (Figure(row["loss"], digits=4) for row in history), facts)
    lower = "" if facts_of(metric).higher_is_better else " (lower is better)"
    kept = f"Ring: the checkpoint that is kept, at step {card['best_step']:,}, {metric} {metric_figure(metric, best)}."
    yield line(
        f"Validation {metric}{lower}", (metric_figure(metric, row["value"]) for row in history), kept,
        steps.index(card["best_step"]),
    )  # fmt: skip
    if all("rate" in row for row in history):
        yield line("Learning rate", (Figure(row["rate"], digits=7) for row in history))


def _test_table(test: Mapping[str, float]) -> Table:
    """A column per direction; a figure of both directions stands in the first."""
    rows: dict[str, dict[str, Figure]] = {}
    for name, value in test.items():
        direction, slash, metric = name.rpartition("/")
        label = metric if slash else f"{metric} (both)"
        rows.setdefault(label, {})[direction or "i2t"] = metric_figure(name, value)
    directions = ("i2t", "t2i")
    cells = tuple((label, *(figures.get(way) for way in directions)) for label, figures in rows.items())
    return Table(("test", *(DIRECTION_LABELS[way] for way in directions)), cells, "lrr")


def _validations(card: Mapping[str, Any]) -> Table:
    metric, history = next(iter(card["validation"])), card["history"]
    rows: list[tuple[Cell, ...]] = [
        (
            f"{row['step']:,}", f"{row['epoch']:g}", f"{row['loss']:.6g}", metric_figure(metric, row["value"]),
            f"{row['rate']:.3g}" if "rate" in row else "–", "best" if row["step"] == card["best_step"] else "",
        )
        for row in history
    ]  # fmt: skip
    header = ("step", "epoch", "loss", f"validation {metric}", "learning rate", "")
    return Table(header, tuple(rows), "rrrrrl", title=f"Every validation ({len(history)})", folded=True)


def recipe_text(identity: Mapping[str, Any]) -> str:
    """What decides about a training, as the TOML file that repeats it."""
    tables = {"data": {"kind": identity["layout"], **identity["data"]},
              "model": {"kind": identity["model"], **identity["model_settings"]}}  # fmt: skip
    known = ("layout", "data", "model", "model_settings", "losses", "settings")
    entries = {name: value for name, value in identity.items() if name not in known}
    parts = [_entries(entries), *(f"[{name}]\n{_entries(table)}" for name, table in tables.items())]
    parts += [f"[[loss]]\n{_entries(entry)}" for entry in identity["losses"]]
    return "\n\n".join([*parts, f"[training]\n{_entries(identity['settings'])}"]) + "\n"


def _entries(table: Mapping[str, Any]) -> str:
    kept = {name: value for name, value in table.items() if value not in (None, "")}
    return "\n".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in kept.items())

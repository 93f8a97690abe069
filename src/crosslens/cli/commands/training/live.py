"""A training while it runs: the curve of the validation metric beside the bar, or plain lines."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import crosslens.metrics as metrics
from crosslens.cli.console import Bar, LogLines, print_note

_BLOCKS = "▁▂▃▄▅▆▇█"
_LONGEST = 16
"""Characters of a curve."""


def sparkline(values: Sequence[float], longest: int = _LONGEST) -> str:
    """Values as a line of blocks, from the lowest to the highest; of many values, the last of each part."""
    ends = [round((part + 1) * len(values) / min(longest, len(values))) for part in range(min(longest, len(values)))]
    kept = [values[end - 1] for end in ends]
    low, high = min(kept, default=0.0), max(kept, default=0.0)
    scale = (len(_BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BLOCKS[round(scale * (value - low))] for value in kept)


class LiveCurve(Bar):
    """The bar, with the curve of the validation metric beside it."""

    def __init__(self, metric: str) -> None:
        super().__init__()
        self._metric, self._values = metric, list[float]()

    def watch(self, row: Mapping[str, Any]) -> None:
        """Add a validation to the curve."""
        self._values.append(row["value"])
        self.show_beside(self._curve())

    def start(self, label: str, total: int) -> None:
        """Show the stage, with the curve so far."""
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
        """Print the validation."""
        value = metrics.format_figure(self._metric, row["value"])
        print_note(f"epoch {row['epoch']:g}: loss {row['loss']:.4f}, validation {self._metric} {value}")


def live_training(metric: str) -> LiveCurve | PlainCurve:
    """What shows a training on standard error."""
    return LiveCurve(metric) if sys.stderr.isatty() else PlainCurve(metric)

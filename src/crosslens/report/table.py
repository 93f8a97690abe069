"""Plain tables: the same text on a terminal, in a pipe and in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from crosslens.core.metric_values import MetricValues
from crosslens.core.run import BOTH, Run
from crosslens.report.figures import DIRECTION_LABELS, Unit, count, figure, interval, select, split_name, unit

DEFINITIONS = {
    "Hit": "any relevant item in the top k: the “R@k” of most image–text papers",
    "Recall": "relevant items in the top k ÷ all relevant items",
    "CappedRecall": "relevant items in the top k ÷ the smaller of k and all relevant items",
}
"""Three metrics are called recall; every table says which one it holds."""

_UNITS: Mapping[Unit, str] = {"places": "as a rank", "points": "as a sum of percentages"}
_GAP = "   "


@dataclass(frozen=True)
class Grid:
    """Text in rows and columns. ``align`` has one letter per column: ``l`` or ``r``."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str

    def text(self, width: int | None = None) -> str:
        """Columns padded to their widest cell; past ``width`` they go on in a further block under the first column."""
        sizes = [max(map(len, column)) for column in zip(self.header, *self.rows, strict=True)]
        blocks = [self._block(columns, sizes) for columns in _fit(sizes, width)]
        return "\n\n".join(blocks)

    def _block(self, columns: Sequence[int], sizes: Sequence[int]) -> str:
        lines = (self.header, *self.rows)
        return "\n".join(_GAP.join(_pad(row[c], sizes[c], self.align[c]) for c in columns).rstrip() for row in lines)


def cells(values: Sequence[tuple[str, MetricValues | None]], decimals: int = 1) -> list[str]:
    """One column of figures with intervals, the numbers under each other."""
    numbers = ["" if one is None else figure(name, one.mean, decimals) for name, one in values]
    room = max((len(number) for number in numbers), default=0)
    return [
        "" if one is None else f"{number:>{room}}  {interval(name, one, decimals)}".rstrip()
        for number, (name, one) in zip(numbers, values, strict=True)
    ]


def run_grid(run: Run, metrics: str | Sequence[str] | None = None, decimals: int = 1) -> Grid:
    """One row per metric, one column per direction; figures over both directions, such as ``Rsum``, come last."""
    named = {split_name(name): (name, run[name]) for name in select(run, metrics)}
    directions = sorted({direction for direction, _ in named}, key=_place)
    if len(directions) > 1 and directions[-1] == BOTH:
        # A third, nearly empty column would push the table past 80 characters: sums stand in the first one.
        directions.pop()
        for direction, metric in [key for key in named if key[0] == BOTH]:
            named[directions[0], f"{metric} (both)"] = named.pop((direction, metric))
    metrics = list(dict.fromkeys(metric for _, metric in named))
    columns = [cells([named.get((d, metric), ("", None)) for metric in metrics], decimals) for d in directions]
    header = ("metric", *(DIRECTION_LABELS.get(d, d) for d in directions))
    return Grid(header, tuple(zip(metrics, *columns, strict=True)), "l" * len(header))


def run_table(
    run: Run, metrics: str | Sequence[str] | None = None, width: int | None = None, *, explained: bool = True
) -> str:
    """A run as a person reads it: its figures, then what they are and what they were computed from."""
    chosen = {name: run[name] for name in select(run, metrics)}
    parts = [run.name, run_grid(run, metrics).text(width), "\n".join(explanation(chosen)) if explained else ""]
    return "\n\n".join(part for part in parts if part)


def explanation(values: Mapping[str, MetricValues]) -> list[str]:
    """What stands under every table: the queries, the unit, the interval, which recall is which."""
    families = dict.fromkeys(split_name(name)[1].partition("@")[0] for name in values if "@" in name)
    definitions = [f"{family}@k: {DEFINITIONS[family]}." for family in families if family in DEFINITIONS]
    levels = sorted({f"{100 * one.level:g}%" for one in values.values() if interval("", one)})
    brackets = [f"In brackets: {' and '.join(levels)} intervals from resampling images."] if levels else []
    return [_queries(values), unit_sentence(values), *brackets, *definitions] if values else []


def unit_sentence(names: Iterable[str]) -> str:
    """In what these metrics are given: ``In percent, MedR as a rank.``"""
    named: dict[Unit, dict[str, None]] = {}
    for name in names:
        named.setdefault(unit(name), {})[split_name(name)[1]] = None
    parts = ["in percent"] if "share" in named else []
    parts += [f"{', '.join(named[kind])} {_UNITS[kind]}" for kind in _UNITS if kind in named]
    sentence = ", ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _queries(values: Mapping[str, MetricValues]) -> str:
    nouns = {"i2t": "image query", "t2i": "caption query", BOTH: "image"}
    sizes: dict[str, tuple[int, int]] = {}
    for name, one in values.items():
        sizes.setdefault(split_name(name)[0], (one.n, one.excluded))
    if len(sizes) > 1:
        sizes.pop(BOTH, None)  # the images are already there as queries
    parts = [
        count(n, nouns.get(direction, "query")) + (f" ({excluded:,} more without a relevant item)" if excluded else "")
        for direction, (n, excluded) in sizes.items()
    ]
    return ", ".join(parts) + "."


def _fit(sizes: Sequence[int], width: int | None) -> list[list[int]]:
    """Which columns stand in which block; the first column opens every block."""
    blocks: list[list[int]] = [[0]]
    used = sizes[0]
    for column in range(1, len(sizes)):
        needed = len(_GAP) + sizes[column]
        if width is not None and len(blocks[-1]) > 1 and used + needed > width:
            blocks.append([0])
            used = sizes[0]
        blocks[-1].append(column)
        used += needed
    return blocks


def _place(direction: str) -> tuple[bool, str]:
    return direction == BOTH, direction


def _pad(cell: str, size: int, align: str) -> str:
    return cell.rjust(size) if align == "r" else cell.ljust(size)

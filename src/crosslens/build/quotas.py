"""How many originals each task has: a number for all, one for each task by name, or the paper's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from crosslens.core import UnknownNameError, UsageError

PAPER = "paper"
"""ReCoS: 50 images for each of seven tasks, 30 for each of five."""
_PAPER_QUOTAS = {
    **dict.fromkeys(("color", "count", "location", "figure", "object", "action", "scene"), 50),
    **dict.fromkeys(("ocr", "celebrity", "calculation", "code", "translation"), 30),
}
_ALSO = {"color": "colour", "celebrity": "landmark"}
"""Other names of the paper's tasks."""


@dataclass(frozen=True)
class Quotas:
    """``each`` is for every task that ``by_task`` does not name; without it those have no originals."""

    each: int | None = None
    by_task: Mapping[str, int] = field(default_factory=dict)
    paper: bool = False

    @staticmethod
    def of(quota: str | int | Mapping[str, int]) -> Quotas:
        """``50``, ``color=50,ocr=30``, ``50,ocr=30`` or ``paper``; from Python also a number or a mapping."""
        if isinstance(quota, Mapping):
            quota = ",".join(f"{task}={count}" for task, count in quota.items())
        each, paper, by_task = None, False, dict[str, int]()
        for part in map(str.strip, str(quota).split(",")):
            task, mark, count = (text.strip() for text in part.rpartition("="))
            if part == PAPER:
                paper = True
            elif not mark:
                if each is not None:
                    raise _wrong(f"the quota of every task is given twice: {each} and {part}")
                each = _number(part, part)
            elif not task or task in by_task:
                raise _wrong(f"{part!r} names no task" if not task else f"the quota of {task!r} is given twice")
            else:
                by_task[task] = _number(count, part)
        return Quotas(each, dict(sorted(by_task.items())), paper)

    def __str__(self) -> str:
        named = [f"{task}={count}" for task, count in self.by_task.items()]
        return ",".join([PAPER] * self.paper + ([] if self.each is None else [str(self.each)]) + named)

    def among(self, tasks: Sequence[str]) -> dict[str, int]:
        """How many originals each of these tasks should have; those of the paper that are missing are named, too."""
        present = sorted(set(tasks))
        for name in self.by_task:
            if name not in present:
                error = UnknownNameError("task", name, present)
                error.option = "quota"
                raise error
        quotas = dict.fromkeys(present, self.each or 0)
        if self.paper:
            folded = {task.casefold(): task for task in present}
            for name, count in _PAPER_QUOTAS.items():
                quotas[folded.get(name) or folded.get(_ALSO.get(name, "")) or name] = count
        return quotas | dict(self.by_task)


def even_quotas(tasks: Sequence[str], total: int) -> dict[str, int]:
    """``total`` originals, evenly over the tasks; what a small task lacks goes to the others."""
    counts = Counter(sorted(tasks))
    quotas = dict.fromkeys(counts, 0)
    while total and (open_tasks := [task for task in counts if quotas[task] < counts[task]]):
        for task in open_tasks[:total]:
            quotas[task] += 1
        total -= min(total, len(open_tasks))
    return quotas


def _number(text: str, part: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise _wrong(f"quota {part!r:.60} is not a whole number")
    return int(text)


def _wrong(problem: str) -> UsageError:
    fix = f"write a number for every task (50), tasks by name (color=50,ocr=30), or {PAPER}"
    return UsageError(problem, fix=fix, option="quota")

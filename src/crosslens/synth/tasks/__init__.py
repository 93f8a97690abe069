"""The twelve tasks."""

from __future__ import annotations

from collections.abc import Iterable

from crosslens.core import UnknownNameError, UsageError
from crosslens.synth.tasks.objects import ACTION, COLOUR, COUNT, OBJECT
from crosslens.synth.tasks.places import FIGURE, LANDMARK, LOCATION, SCENE
from crosslens.synth.tasks.signs import OCR, TRANSLATION
from crosslens.synth.tasks.task import Task
from crosslens.synth.tasks.worked_out import AREA, CALCULATION, CODE

__all__ = ["ALL", "EVERY_TASK", "TASKS", "Task", "chosen_tasks"]

_SEEN = (COLOUR, COUNT, LOCATION, FIGURE, OBJECT, ACTION, SCENE, OCR, LANDMARK)
_WORKED_OUT = (CALCULATION, CODE, TRANSLATION)
TASKS: dict[str, Task] = {task.name: task for task in (*_SEEN, *_WORKED_OUT)}
"""Every task by its name, from what is seen to what is to be worked out."""
EVERY_TASK = TASKS | {AREA.name: AREA}
"""Also those that ``all`` does not stand for."""
ALL = "all"


def chosen_tasks(names: str | Iterable[str]) -> tuple[str, ...]:
    """``all``, or names separated by commas, in the usual order."""
    listed = names.split(",") if isinstance(names, str) else list(names)
    stripped = [name.strip() for name in listed if name.strip()]
    if not stripped:
        raise UsageError("tasks must name at least one task", fix=f"name some of {', '.join(EVERY_TASK)}, or all")
    for name in stripped:
        if name not in EVERY_TASK and name != ALL:
            raise UnknownNameError("task", name, [*EVERY_TASK, ALL])
    return tuple(name for name in EVERY_TASK if name in stripped or (ALL in stripped and name in TASKS))

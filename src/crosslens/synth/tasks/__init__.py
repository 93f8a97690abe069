"""The twelve tasks, and which of them can be drawn here."""

from __future__ import annotations

from collections.abc import Iterable

from crosslens.core.errors import UnknownNameError, UsageError
from crosslens.synth.fonts import CJK_VARIABLE, chinese_font_file
from crosslens.synth.tasks import (
    action,
    calculation,
    code,
    colour,
    count,
    figure,
    landmark,
    location,
    objects,
    ocr,
    place,
    translation,
)
from crosslens.synth.tasks.task import Task

__all__ = ["ALL", "TASKS", "Task", "available_tasks", "chosen_tasks"]

TASKS: dict[str, Task] = {
    module.TASK.name: module.TASK
    for module in (
        colour,
        count,
        location,
        figure,
        objects,
        action,
        place,
        ocr,
        landmark,
        calculation,
        code,
        translation,
    )
}
"""Every task by its name, from what is seen to what is to be worked out."""
ALL = "all"
NO_FONT = (
    "the task translation is left out: no Chinese font was found (pip install 'crosslens[cjk]', or name a font file in "
    f"the environment variable {CJK_VARIABLE})"
)


def available_tasks() -> tuple[str, ...]:
    """The tasks that can be drawn here: all, or all but translation where there is no Chinese font."""
    return tuple(name for name in TASKS if name != "translation" or chinese_font_file() is not None)


def chosen_tasks(names: str | Iterable[str]) -> tuple[str, ...]:
    """``all`` (those available), or names separated by commas, in the usual order."""
    listed = names.split(",") if isinstance(names, str) else list(names)
    wanted = [name.strip() for name in listed if name.strip()]
    if not wanted:
        raise UsageError("no tasks", fix=f"name some of {', '.join(TASKS)}, or all")
    if ALL in wanted:
        return available_tasks()
    for name in wanted:
        if name not in TASKS:
            raise UnknownNameError("task", name, [*TASKS, ALL])
    if "translation" in wanted and chinese_font_file() is None:
        raise UsageError(
            "the task translation needs a Chinese font, and none was found",
            fix=f"pip install 'crosslens[cjk]', or name a font file in the environment variable {CJK_VARIABLE}",
        )
    return tuple(name for name in TASKS if name in wanted)

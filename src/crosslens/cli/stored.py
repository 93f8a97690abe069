"""Stored runs, opened as a person names them."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

from crosslens.core.errors import InputError
from crosslens.core.run import RUN_FILE, Run

if TYPE_CHECKING:
    from crosslens.pipeline.robustness import Robustness

_MOST_SHOWN = 5


def load_run(folder: Path) -> Run:
    """The run in a folder; where there is none, the error names the runs that may be meant."""
    try:
        return Run.load(folder)
    except InputError as error:
        if (folder / RUN_FILE).exists():
            raise
        problem = "no run.json here" if folder.is_dir() else "this is a file" if folder.exists() else "no such folder"
        raise InputError(
            problem, file=folder, expected="a run folder, as evaluate -o writes it", fix=_meant(folder)
        ) from error


def load_study(folder: Path) -> Robustness | None:
    """The robustness study in a folder; None where there is none."""
    from crosslens.pipeline.robustness import Robustness
    from crosslens.pipeline.robustness.place import RESULT_FILE

    return Robustness.load(folder) if (folder / RESULT_FILE).exists() else None


def _meant(folder: Path) -> str:
    if inside := _runs_in(folder):
        return f"name a run inside it, such as {', '.join(inside[:_MOST_SHOWN])}"
    beside = {Path(one).name: one for one in _runs_in(folder.parent)}
    near = difflib.get_close_matches(folder.name, beside, n=1)
    if near:
        return f"did you mean {beside[near[0]]}?"
    return f"check the path; there are {', '.join(list(beside.values())[:_MOST_SHOWN])}" if beside else "check the path"


def _runs_in(folder: Path) -> list[str]:
    return sorted(str(file.parent) for file in folder.glob(f"*/{RUN_FILE}")) if folder.is_dir() else []

"""Every error a user can cause, each with the place, the expectation and the fix.

The command line prints these without a traceback and exits with ``exit_code``; anything that is not a
:class:`CrosslensError` is a bug in crosslens and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class CrosslensError(Exception):
    """A mistake that its author can mend: says what is wrong, and how to put it right."""

    exit_code = 3

    def __init__(self, problem: str, *, fix: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.fix = fix

    def __str__(self) -> str:
        return self.problem if self.fix is None else f"{self.problem}\n  fix: {self.fix}"


class InputError(CrosslensError):
    """Bad data: names the file and the row where they are known, what was expected, and the fix."""

    def __init__(
        self,
        problem: str,
        *,
        file: str | Path | None = None,
        row: int | str | None = None,
        expected: str | None = None,
        fix: str | None = None,
    ) -> None:
        super().__init__(problem, fix=fix)
        self.file = None if file is None else str(file)
        self.row = row
        self.expected = expected

    def __str__(self) -> str:
        row = f"row {self.row}" if isinstance(self.row, int) else self.row
        place = ", ".join(part for part in (self.file, row) if part)
        lines = [f"{place}: {self.problem}" if place else self.problem]
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)


class UnknownNameError(CrosslensError, KeyError):
    """A name that nothing is registered under; suggests the nearest ones."""

    exit_code = 2

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        known = sorted(known)
        self.suggestions = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        if not self.suggestions:
            folded = {one.casefold(): one for one in known}
            near = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)
            self.suggestions = [folded[one] for one in near]
        if self.suggestions:
            fix = "did you mean " + " or ".join(self.suggestions) + "?"
        else:
            fix = "known: " + (", ".join(known) or "none")
        super().__init__(f"unknown {kind} {name!r}", fix=fix)


class UsageError(CrosslensError):
    """Arguments that do not fit together."""

    exit_code = 2


class MissingExtraError(CrosslensError, ImportError):
    """An optional dependency is not installed; carries the exact command that installs it."""

    exit_code = 4

    def __init__(self, purpose: str, package: str, extra: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed",
            fix=f"pip install 'crosslens[{extra}]'",
        )


class ConflictError(CrosslensError):
    """Something else already stands where the result would go."""

    exit_code = 5


class FormatVersionError(CrosslensError):
    """A file written by a newer crosslens than this one."""


@contextmanager
def reading(file: str | Path) -> Iterator[None]:
    """Name ``file`` in any :class:`InputError` raised inside that does not name one yet."""
    try:
        yield
    except InputError as error:
        if error.file is None:
            error.file = str(file)
        raise

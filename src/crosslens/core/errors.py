"""Every error a user can cause, each with its location, the expectation and the fix.

The command line prints these without a traceback and exits with ``exit_code``; anything that is not a
:class:`CrosslensError` was raised by code of the user, or is a bug in crosslens and keeps its traceback. An error
carries its facts (``code``, ``subject``, ``option``), so that no code has to read its text.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crosslens.core.addresses import without_secrets
from crosslens.core.rendering import printable, printable_line

_MARK, _PART = "\x1f", "\x1e"
_ARGUMENT = re.compile(f"{_MARK}(\\w+)(?:=(.*?))?{_MARK}", re.DOTALL)
_OPTIONAL = re.compile(f"{_PART}(\\w+):(.*?){_PART}", re.DOTALL)
_LONGEST = 2_000
"""Characters of a line of a message."""

Spelling = Callable[[str, str | None], str | None]
"""How an audience writes an option: its name and, where one is proposed, its value (as Python writes it).

None where the audience has no such option.
"""


def argument(name: str, value: Any = None) -> str:
    """An option inside a message: ``overwrite=True`` for a call from Python, ``--overwrite`` on the command line."""
    return f"{_MARK}{name}{_MARK}" if value is None else f"{_MARK}{name}={value!r}{_MARK}"


def where_option(name: str, text: str) -> str:
    """A part of a message for those who have the option ``name``: not every command takes what Python does."""
    return f"{_PART}{name}:{text}{_PART}"


def python_spelling(name: str, value: str | None) -> str:
    """An option as a keyword argument."""
    return f"{name}=" if value is None else f"{name}={value}"


def spell(text: str, spelling: Spelling) -> str:
    """A message with every :func:`argument` in it written out, and with the parts that are for this audience."""
    text = _OPTIONAL.sub(lambda match: "" if spelling(match[1], None) is None else match[2], text)
    return _ARGUMENT.sub(lambda match: spelling(match[1], match[2]) or python_spelling(match[1], match[2]), text)


class CrosslensError(Exception):
    """A mistake that its author can fix: states what is wrong, and how to correct it.

    ``code`` is a short name for the kind of mistake (``"empty-caption"``), ``subject`` what it is about (an id, a
    name), ``option`` the option with the wrong value: what calling code may look at instead of the text.
    """

    exit_code = 3

    def __init__(
        self,
        problem: str,
        *,
        fix: str | None = None,
        code: str | None = None,
        subject: str | None = None,
        option: str | None = None,
    ) -> None:
        super().__init__(without_secrets(problem))  # what a pickled error or a debugger shows
        self._problem, self._fix = problem, fix
        self.code, self.subject, self.option = code, subject, option

    @property
    def problem(self) -> str:
        return without_secrets(spell(self._problem, python_spelling))

    @property
    def fix(self) -> str | None:
        return None if self._fix is None else spell(self._fix, python_spelling)

    @fix.setter
    def fix(self, text: str | None) -> None:
        self._fix = text

    def add_context(self, context: str) -> None:
        """Put ``context`` and a colon before the problem: what was being done when it occurred."""
        self._problem = f"{context}: {self._problem}"

    def rename(self, path: str, name: str) -> None:
        """Call what the message calls ``path`` by the name that its reader knows."""
        for part in ("_problem", "_fix", "file"):
            text = getattr(self, part, None)
            if text is not None:
                setattr(self, part, text.replace(path, name))

    def lines(self) -> list[str]:
        """The message, options still marked."""
        return [self._problem, *([f"  fix: {self._fix}"] if self._fix else [])]

    def render(self, spelling: Spelling) -> str:
        """The message for an audience that writes options in its own way."""
        lines = without_secrets(spell("\n".join(self.lines()), spelling)).split("\n")
        # A line that quotes a value of any length, without its middle.
        cut = (
            f"{line[: _LONGEST // 2]} … {line[-_LONGEST // 4 :]}" if len(line) > _LONGEST else line for line in lines
        )
        return printable("\n".join(cut))

    def __str__(self) -> str:
        return self.render(python_spelling)


class InputError(CrosslensError):
    """Bad data: names the file and the row where they are known, what was expected, and the fix."""

    def __init__(
        self,
        problem: str,
        *,
        file: str | Path | None = None,
        row: int | str | None = None,
        expected: str | None = None,
        **facts: str | None,
    ) -> None:
        super().__init__(problem, **facts)
        self.file, self.row, self.expected = None if file is None else str(file), row, expected

    def lines(self) -> list[str]:
        """The message, with file and row before it."""
        problem, *fix = super().lines()
        row = f"row {self.row}" if isinstance(self.row, int) else self.row
        location = ", ".join(printable_line(part) for part in (self.file, row) if part)
        expected = [f"  expected: {self.expected}"] if self.expected else []
        return [f"{location}: {problem}" if location else problem, *expected, *fix]


class UnknownNameError(CrosslensError, KeyError):
    """A name that nothing is registered under; suggests the nearest ones."""

    exit_code = 2

    def __init__(self, kind: str, name: str, names: Iterable[str]) -> None:
        names = sorted(names)
        folded = {candidate.casefold(): candidate for candidate in reversed(names)}
        near = [folded[match] for match in difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)]
        # An initial such as P is too short to be close to Precision.
        begun = [candidate for candidate in names if name and len(name) < 3 and candidate.startswith(name)]
        self.suggestions = list(dict.fromkeys([*begun, *near]))[:3]
        guess = f"did you mean {' or '.join(self.suggestions)}?"
        fix = guess if self.suggestions else f"known: {', '.join(names) or 'none'}"
        super().__init__(f"unknown {kind} {name!r}", fix=fix, code="unknown-name", subject=name)


class MetricNameWarning(UserWarning):
    """A metric was named as others name it: says which one it was read as."""


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
            code="missing-extra",
            subject=extra,
        )


@contextmanager
def needs_extra(purpose: str, package: str, extra: str) -> Iterator[None]:
    """Inside, an import that fails says which package is needed, what for, and how it is installed."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(purpose, package, extra) from error


class ConflictError(CrosslensError):
    """The output path already contains something else."""

    exit_code = 5


class UserCodeError(CrosslensError):
    """A mistake in code of the user (a model, a metric, a reader …): names the file and shows the line."""

    exit_code = 6

    def __init__(
        self, problem: str, *, file: str | Path | None = None, line: int = 0, source: str = "", **facts: str | None
    ) -> None:
        super().__init__(problem, **facts)
        self.file, self.line, self.source = None if file is None else str(file), line, source

    def lines(self) -> list[str]:
        """The message, with file and line before it and the code below it."""
        problem, *fix = super().lines()
        location = f"{self.file}:{self.line}" if self.file and self.line else self.file
        code = [f"  {self.line:>5} | {self.source}"] if self.source else []
        return [f"{location}: {problem}" if location else problem, *code, *fix]


class FormatVersionError(CrosslensError):
    """A file written by a newer crosslens than this one."""


@contextmanager
def reading(file: str | Path | None) -> Iterator[None]:
    """Name ``file``, where it is known, in any :class:`InputError` raised inside that does not name one yet."""
    try:
        yield
    except InputError as error:
        if error.file is None and file is not None:
            error.file = str(file)
        raise

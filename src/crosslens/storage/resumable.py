"""Output folders that belong to a key: interrupted work resumes, and different content is never replaced unasked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from crosslens.core import InputError, argument
from crosslens.storage.output import Layout, Workspace, tidy_output, workspace

Content = TypeVar("Content")
StoredKey = Callable[[Path], str | None]
"""The key of the content in a folder, None where it has none."""


@dataclass(frozen=True)
class ResumableFolder:
    """A folder whose content follows from ``key``, the fingerprint of everything it depends on.

    Content of another key is replaced only with ``overwrite``, and only when the new one is complete. ``why`` says what
    differs in it, and ``more`` names the files that it has besides those of the layout.
    """

    layout: Layout
    path: Path
    key: str
    overwrite: bool = False
    why: Callable[[Path], str] = lambda _: ""
    more: Callable[[Path], Iterable[str]] = lambda _: ()

    def finished(self, stored_key: StoredKey, read: Callable[[Path], Content]) -> Content | None:
        """The content of this key; None where it has to be made. Other content that must stay raises."""
        if not self.layout.holds(self.path):
            return None
        try:
            if stored_key(self.path) == self.key:
                content = read(self.path)
                tidy_output(self.path, self.key)
                return content
        except InputError as error:  # damaged
            if not self.overwrite:
                again = f"{argument('overwrite', True)} repeats the work"
                error.fix = f"{error.fix}; {again}" if error.fix else again
                raise
        why = "" if self.overwrite else self.why(self.path)
        more = self.more(self.path) if self.overwrite else ()
        self.layout.refuse_other(self.path, overwrite=self.overwrite, why=why, more=more)
        return None

    @contextmanager
    def prepare(
        self, stored_key: StoredKey, read: Callable[[Path], Content], keep: Iterable[str] = ()
    ) -> Iterator[tuple[Workspace | None, Content | None]]:
        """The content if it is finished; else a locked workspace, with what interrupted work of the key has left."""
        finished = self.finished(stored_key, read)
        if finished is not None:
            yield None, finished
            return
        with workspace(self.path, self.key, keep=keep) as work:
            finished = self.finished(stored_key, read)  # another process may have completed it meanwhile
            if finished is None:
                work.new.mkdir(exist_ok=True)
            yield work, finished

    def make(
        self, stored_key: StoredKey, read: Callable[[Path], Content], write: Callable[[Workspace], Content]
    ) -> Content:
        """The content: what is finished, or what ``write`` makes of it and publishes."""
        with self.prepare(stored_key, read) as (work, finished):
            return write(work) if finished is None and work is not None else finished  # type: ignore[return-value]

"""Output folders that belong to a key: interrupted work resumes, and different content is never replaced unasked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from crosslens.core.errors import ConflictError, InputError, argument
from crosslens.core.output import Layout, Workspace, tidy_output, workspace

Content = TypeVar("Content")


@dataclass(frozen=True)
class ResumableFolder:
    """A folder whose content follows from ``key``, the fingerprint of everything it depends on.

    Content of another key is replaced only with ``overwrite``, and only when the new one is complete.
    """

    layout: Layout
    path: Path
    key: str
    overwrite: bool = False

    def refuse_other(self, why: str = "") -> None:
        """Raise where the content, which is of another key, must not be replaced."""
        if not self.overwrite:
            raise ConflictError(
                f"{self.path}: already contains a different {self.layout.kind.partition(' ')[2]}{why}",
                fix=f"choose another output folder, or pass {argument('overwrite', True)}",
            )
        self.layout.refuse_foreign_files(self.path)

    def finished(self, stored_key: Callable[[Path], str | None], read: Callable[[Path], Content]) -> Content | None:
        """The content of this key; None where it has to be made. Other content that must stay raises.

        ``stored_key`` gives the key of a finished folder, None where there is none; ``read`` its content.
        """
        if not self.layout.holds(self.path):
            return None
        if stored_key(self.path) == self.key:
            try:
                content = read(self.path)
            except InputError as error:  # damaged
                if not self.overwrite:
                    error.fix = f"{error.fix}; {argument('overwrite', True)} repeats the work"
                    raise
            else:
                tidy_output(self.path, self.key)
                return content
        self.refuse_other()
        return None

    @contextmanager
    def prepare(
        self, stored_key: Callable[[Path], str | None], read: Callable[[Path], Content], keep: Iterable[str] = ()
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

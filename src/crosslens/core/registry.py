"""One registry per kind of extension; plug-ins arrive by decorator or by entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from crosslens.core.errors import CrosslensError, UnknownNameError

T = TypeVar("T")


@dataclass(frozen=True)
class Entry(Generic[T]):
    """A registered thing: its name, what it is, and one line that says what it does."""

    name: str
    value: T
    summary: str
    details: Mapping[str, Any] = field(default_factory=dict)


class Registry(Generic[T]):
    """Names → values of one kind (``metric``, ``dataset reader``, …).

    Installed packages add to it through the entry-point group ``crosslens.<group>``: an entry point's module is
    imported the first time a name is looked up, and registers by the same decorator as built-in code.
    """

    def __init__(self, kind: str, group: str) -> None:
        self.kind = kind
        self.group = f"crosslens.{group}"
        self._entries: dict[str, Entry[T]] = {}
        self._plugins_loaded = False

    def register(self, name: str, **details: Any) -> Callable[[T], T]:
        """Decorate a value to enrol it; the first line of its docstring is its summary."""

        def enrol(value: T) -> T:
            if name in self._entries:
                raise CrosslensError(
                    f"two {self.kind}s are registered as {name!r}", fix="give one of them another name"
                )
            summary = (getattr(value, "__doc__", None) or "").strip().split("\n")[0]
            if not summary:
                raise CrosslensError(
                    f"{self.kind} {name!r} has no docstring",
                    fix="say in its first line what it computes: the reference pages are made from it",
                )
            self._entries[name] = Entry(name, value, summary, details)
            return value

        return enrol

    def __getitem__(self, name: str) -> Entry[T]:
        if name not in self._entries:
            self._load_plugins()
        if name not in self._entries:
            raise UnknownNameError(self.kind, name, self._entries)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        self._load_plugins()
        return name in self._entries

    def __iter__(self) -> Iterator[Entry[T]]:
        self._load_plugins()
        return iter(sorted(self._entries.values(), key=lambda entry: entry.name))

    def _load_plugins(self) -> None:
        if not self._plugins_loaded:
            self._plugins_loaded = True
            for point in entry_points(group=self.group):
                point.load()

"""One registry per kind of extension; entries arrive by decorator, from built-in modules or from installed packages."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from threading import RLock
from typing import Any, Generic, TypeVar

from crosslens.core.errors import CrosslensError, UnknownNameError
from crosslens.core.user_code import loading_plugin, mark_user_package

T = TypeVar("T")


@dataclass(frozen=True)
class Entry(Generic[T]):
    """A registered value: its name, one line that says what it does, and the facts declared with it."""

    name: str
    value: T
    summary: str
    details: Mapping[str, Any] = field(default_factory=dict)
    plugin: str = ""
    """The path of the plugin that registered it; empty for what is built in or installed."""


class Registry(Generic[T]):
    """Names → values of one kind (``metric``, ``dataset reader``, …); iterating gives the entries, by name.

    ``modules`` contain the built-in entries: modules, or packages of which every module counts. They are imported the
    first time a name is looked up, and so are the modules that installed packages declare in the entry-point group
    ``crosslens.<group>``; all of them register by the same decorator. ``declared`` are names that crosslens itself
    registers through its entry points: without them, its code is newer than what is installed.
    """

    def __init__(self, kind: str, group: str, modules: Sequence[str] = (), *, declared: Collection[str] = ()) -> None:
        self.kind = kind
        self.group = f"crosslens.{group}"
        self._modules, self._declared = modules, declared
        self._entries: dict[str, Entry[T]] = {}
        self._loaded = self._loading = False
        self._lock = RLock()

    def register(self, name: str, **details: Any) -> Callable[[T], T]:
        """Decorate a value to register it; the first line of its docstring is its summary."""

        def add(value: T) -> T:
            plugin = loading_plugin()
            if plugin:
                self._load()  # so that the name of a built-in entry is refused here and now
            if name in self._entries and not (plugin and self._entries[name].plugin == plugin):
                raise CrosslensError(
                    f"two {self.kind}s are registered as {name!r}", fix="give one of them another name"
                )
            summary = (getattr(value, "__doc__", None) or "").strip().split("\n")[0]
            if not summary:
                fix = "describe it in one line: the reference pages are made from it"
                raise CrosslensError(f"{self.kind} {name!r} has no docstring", fix=fix)
            self._entries[name] = Entry(name, value, summary, details, plugin)
            return value

        return add

    def names(self) -> tuple[str, ...]:
        return tuple(entry.name for entry in self)

    def __getitem__(self, name: str) -> Entry[T]:
        """The entry of that name. Case alone is no error, unless the names of two entries differ in nothing else."""
        entry = self._find(name)
        if entry is None:
            if name in self._declared:
                raise CrosslensError(
                    f"the {self.kind} {name!r} is part of crosslens, but the installed package does not list it",
                    fix="install crosslens again, as you did before: pip install crosslens, or pip install -e .",
                    code="stale-installation",
                    subject=name,
                )
            raise UnknownNameError(self.kind, name, self._entries)
        return entry

    def __contains__(self, name: object) -> bool:
        return self._find(name) is not None

    def canonical(self, name: str) -> str:
        """A name as it was registered, whatever its case; of ``kind:source`` the kind. Any other name stays."""
        kind, colon, source = name.partition(":")
        entry = self._find(kind)
        return name if entry is None else f"{entry.name}{colon}{source}"

    def _find(self, name: object) -> Entry[T] | None:
        self._load()
        if name in self._entries or not isinstance(name, str):
            return self._entries.get(name)  # type: ignore[call-overload, no-any-return]
        alike = [entry for entry in self._entries.values() if entry.name.casefold() == name.casefold()]
        return alike[0] if len(alike) == 1 else None

    def __iter__(self) -> Iterator[Entry[T]]:
        self._load()
        return iter(sorted(self._entries.values(), key=lambda entry: entry.name))

    def _load(self) -> None:
        if self._loaded:
            return
        with self._lock:  # other threads wait until all entries are there
            if self._loaded or self._loading:
                return  # a look-up by one of the modules being imported must not start over
            self._loading = True
            try:
                installed = [point.module for point in entry_points(group=self.group)]
                for module in installed:
                    mark_user_package(module)
                for module in (*self._modules, *installed):
                    _import_all(module)
                self._loaded = True
            finally:
                self._loading = False


def _import_all(name: str) -> None:
    module = import_module(name)
    for part in pkgutil.iter_modules(getattr(module, "__path__", ())):
        _import_all(f"{name}.{part.name}")

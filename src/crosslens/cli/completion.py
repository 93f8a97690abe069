"""What a shell proposes for the value of a flag: names of registries, and the choices of an option.

Registries are loaded when somebody presses Tab, not before: ``crosslens --help`` does without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module

from crosslens.core import Declaration, Entry

_REGISTRIES = {
    "--metrics": ("crosslens.metrics", "METRICS"),
    "--metric": ("crosslens.metrics", "METRICS"),
    "--model": ("crosslens.encode", "ENCODERS"),
    "--rerank": ("crosslens.encode", "PAIR_SCORERS"),
    "--pair-model": ("crosslens.encode", "PAIR_SCORERS"),
    "--dataset": ("crosslens.data", "READERS"),
    "--phi": ("crosslens.similarity", "SIMILARITIES"),
    "--perturbations": ("crosslens.perturbations", "PERTURBATIONS"),
    "--score": ("crosslens.rank", "SCORES"),
    "--protocol": ("crosslens.pipeline", "PROTOCOLS"),
    "--format": ("crosslens.report", "EXPORTS"),
    "--to": ("crosslens.data", "WRITERS"),
}
"""Flag → the registry that its values are named in."""
_AFTER = {"--model": ":", "--rerank": ":", "--pair-model": ":"}
"""What follows a name in a value."""

Complete = Callable[[str], list[str]]


def completion_of(flags: Iterable[str], declared: Declaration) -> Complete | None:
    """What completes the value of a flag; None leaves it to the shell, which proposes files."""
    flag = max(flags, key=len)
    if not declared.choices and flag not in _REGISTRIES:
        return None

    def complete(incomplete: str) -> list[str]:
        if declared.choices:
            names = list(declared.choices)
        else:
            package, registry = _REGISTRIES[flag]
            entries: Iterable[Entry[object]] = getattr(import_module(package), registry)
            names = [entry.name + _AFTER.get(flag, "") for entry in entries]
        return [name for name in names if name.startswith(incomplete)]

    return complete


def complete_recipes(incomplete: str) -> list[str]:
    """The recipes of trainings that begin like this."""
    from crosslens.train import recipe_names

    return [name for name in recipe_names() if name.startswith(incomplete)]

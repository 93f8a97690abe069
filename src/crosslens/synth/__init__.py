"""A world of its own: drawn scenes with captions, objects and boxes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crosslens.synth.generation import generate
    from crosslens.synth.scene import Scene
    from crosslens.synth.tasks import TASKS
    from crosslens.synth.versions import select_version
    from crosslens.synth.writing import write_scenes

__all__ = ["TASKS", "Scene", "generate", "select_version", "write_scenes"]

_HOMES = {
    "generate": "generation",
    "Scene": "scene",
    "TASKS": "tasks",
    "select_version": "versions",
    "write_scenes": "writing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'crosslens.synth' has no attribute {name!r}")
    value = getattr(import_module(f"crosslens.synth.{_HOMES[name]}"), name)
    globals()[name] = value
    return value

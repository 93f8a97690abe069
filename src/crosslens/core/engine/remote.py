"""The side of the workers: a task arrives, is run with what this process has loaded before, and its result returned."""

from __future__ import annotations

import socket
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core.engine.packing import Packed, missing_on_node, unpack
from crosslens.core.errors import CrosslensError
from crosslens.core.integrity import verification
from crosslens.core.long_work import limit_cores
from crosslens.core.user_code import as_user_error, is_plugin_loaded, load_plugin

_KEPT = 2
"""Shared values that a worker keeps at the same time: the next task usually reads the same."""
_LARGE_BLOCK = 31 << 20
_SHARED: OrderedDict[str, Any] = OrderedDict()


@dataclass(frozen=True)
class TaskSetting:
    """What a worker needs to know of the process that started the work."""

    crosslens: str
    plugins: tuple[str, ...]
    verify: bool


@dataclass(frozen=True)
class TaskFailure:
    """An error for the user, to be raised where the user is."""

    kind: type[CrosslensError]
    facts: dict[str, Any]
    arguments: tuple[Any, ...]

    @staticmethod
    def of(error: CrosslensError) -> TaskFailure:
        """Whatever arguments its class takes."""
        return TaskFailure(type(error), dict(vars(error)), error.args)

    def error(self) -> CrosslensError:
        """The error again."""
        error = self.kind.__new__(self.kind)
        error.args = self.arguments
        vars(error).update(self.facts)
        return error


def execute(setting: TaskSetting, payload: Packed, shared_key: str, shared: Callable[[], Packed]) -> Any:
    """The result of a packed ``(work, task)``, or its :class:`TaskFailure`."""
    try:
        _prepare(setting)
        work, task = unpack(payload)
        with verification(setting.verify):
            return work(_loaded(shared_key, shared), task)
    except CrosslensError as error:
        return TaskFailure.of(error)
    except Exception as error:
        own = as_user_error(error)
        if own is None:
            raise
        return TaskFailure.of(own)


def _prepare(setting: TaskSetting) -> None:
    installed = version("crosslens")
    if installed != setting.crosslens:
        raise CrosslensError(
            f"the node {socket.gethostname()} has crosslens {installed}, and the work was started by "
            f"{setting.crosslens}",
            fix="install the same version on all nodes",
            code="other-version",
        )
    limit_cores(1)
    _keep_memory()
    for plugin in setting.plugins:
        if not Path(plugin).is_file():
            raise missing_on_node(f"the plugin {plugin} does not exist")
        if not is_plugin_loaded(plugin):
            load_plugin(plugin)


@cache
def _keep_memory() -> None:
    """Have the process reuse memory instead of giving it back to the system after every buffer, which costs a third.

    The GNU allocator gives back what is free beyond twice the largest block that was ever mapped and freed, up to
    32 MiB: the process that started the work had such blocks, and its workers have none.
    """
    np.empty(_LARGE_BLOCK, np.uint8)


def _loaded(key: str, shared: Callable[[], Packed]) -> Any:
    if key not in _SHARED:
        while len(_SHARED) >= _KEPT:
            _SHARED.popitem(last=False)
        _SHARED[key] = unpack(shared())
    _SHARED.move_to_end(key)
    return _SHARED[key]

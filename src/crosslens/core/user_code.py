"""Code of the user: every file and module that is loaded by name passes through here, and its errors are told apart.

:func:`load_module` is the only place that executes such code; whoever has to guard it guards that function.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import linecache
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple, TypeVar

from crosslens.core.errors import InputError, UsageError, UserCodeError

T = TypeVar("T")

TRACEBACK_VARIABLE = "CROSSLENS_TRACEBACK"
"""The environment variable that has the whole traceback of a user's error printed."""


class _LoadedFile(NamedTuple):
    content: str
    module: Any


_FILES: dict[str, _LoadedFile] = {}
"""Path → hash and module of every file of the user that is loaded."""
_LOADING: ContextVar[str] = ContextVar("plugin", default="")
_USER_CODE: set[Path] = set()
"""Files and folders that are the user's wherever they lie, even among the installed packages."""
_PACKAGE = Path(__file__).resolve().parents[1]
_STANDARD_LIBRARY = Path(sysconfig.get_paths()["stdlib"]).resolve()
_INSTALLED = {"site-packages", "dist-packages"}


def load_module(name: str) -> Any:
    """The module of that name, or the ``.py`` file at that path, executed; a file again only if it has changed."""
    path = Path(name).expanduser()
    if path.suffix != ".py":
        mark_user_package(name)
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise UsageError(
                f"cannot import {name!r}: {error}", fix="check the name, or write the path of a .py file"
            ) from error
    file = _existing(path)
    content = _hash_of(file)
    loaded = _FILES.get(str(file))
    if loaded is not None and loaded.content == content:
        return loaded.module
    spec = importlib.util.spec_from_file_location(file.stem, file, loader=_UncachedLoader(file.stem, str(file)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    _USER_CODE.add(file)
    sys.modules.setdefault(file.stem, module)
    current = _LOADING.set(str(file))
    try:
        spec.loader.exec_module(module)
    finally:
        _LOADING.reset(current)
    _FILES[str(file)] = _LoadedFile(content, module)
    return module


class _UncachedLoader(SourceFileLoader):
    """Compiles the file every time: Python takes a ``.pyc`` of the same size and second for current, and writes one
    into the user's folder."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def load_plugin(path: str | Path) -> None:
    """Execute a Python file that registers metrics, readers, similarities, perturbations or other extensions.

    A file whose content is loaded already is not executed again. Where a file has changed since, what it registers
    replaces what it registered before.

    Args:
        path: The file.
    """
    if not is_plugin_loaded(path):
        load_module(str(_existing(Path(path).expanduser())))


def loaded_plugins() -> list[str]:
    """The files of the user that were executed, in this order: what another process has to load to know the same."""
    return list(_FILES)


def is_plugin_loaded(path: str | Path) -> bool:
    """Whether a file of exactly this content is loaded, this one or a copy of it."""
    content = _hash_of(_existing(Path(path).expanduser()))
    return any(loaded.content == content for loaded in _FILES.values())


def loading_plugin() -> str:
    """The path of the user's file that is being executed; empty where none is.

    A file's first look-up has built-in modules imported, and what these register is not the file's.
    """
    plugin = _LOADING.get()
    frame = sys._getframe(1) if plugin else None
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    built_in = frame is not None and _PACKAGE in Path(frame.f_code.co_filename).resolve().parents
    return "" if built_in else plugin


def plugin_hashes(plugins: Iterable[str]) -> dict[str, str]:
    """File name → content hash of the plugins at these paths; what is no plugin is left out."""
    return {Path(plugin).name: _FILES[plugin].content for plugin in sorted(set(plugins)) if plugin in _FILES}


def mark_user_package(module: str) -> None:
    """Have errors in an installed package told as the errors of that package, not of crosslens."""
    try:
        spec = importlib.util.find_spec(module.partition(".")[0])
    except (ImportError, ValueError):
        return
    if spec is not None:
        homes = spec.submodule_search_locations or ([spec.origin] if spec.origin else [])
        _USER_CODE.update(Path(home).resolve() for home in homes)


def as_user_error(error: BaseException) -> UserCodeError | None:
    """The error of a user's code as a short message with its line; None where no such code was running."""
    if not _USER_CODE:
        return None
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_user_file(frame.filename)]
    if frames:
        frame = frames[-1]
        file, number, function, line = frame.filename, frame.lineno or 0, frame.name, frame.line or ""
    elif isinstance(error, SyntaxError) and error.filename and _is_user_file(error.filename):
        file, number, function = error.filename, error.lineno or 0, "<module>"
        line = linecache.getline(file, number).strip()
    else:
        return None
    text = str(error.msg if isinstance(error, SyntaxError) else error).strip()
    return UserCodeError(
        f"{type(error).__name__} in your code{'' if function == '<module>' else f', in {function}'}"
        + (f": {text}" if text else ""),
        file=file,
        line=number,
        source=line,
        fix=f"correct it there; with {TRACEBACK_VARIABLE}=1 in the environment, the whole traceback is printed",
    )


def call_function(function: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
    """Call what may be a user's function; where it does not take these arguments, the error names the function."""
    try:
        return function(*arguments, **keywords)
    except TypeError as error:
        # Raised in this frame and not below it: the call itself failed.
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise
        code = getattr(function, "__code__", None)
        if code is None or not (code.co_filename.startswith("<") or _is_user_file(code.co_filename)):
            raise  # written for crosslens itself, or for an installed library
        raise wrong_code(function, str(error), "see the how-to page of what you add for its parameters") from error


def wrong_code(function: Any, problem: str, fix: str) -> UserCodeError:
    """An error about a function of the user that does not do what it should, with the line where it is defined."""
    code = getattr(function, "__code__", None)
    file, line = (None, 0) if code is None else (code.co_filename, code.co_firstlineno)
    return UserCodeError(problem, file=file, line=line, fix=fix)


def _is_user_file(name: str) -> bool:
    if name.startswith("<"):
        return False
    file = Path(name).resolve()
    if _PACKAGE in file.parents:
        return False
    if any(path == file or path in file.parents for path in _USER_CODE):
        return True
    return not _INSTALLED & set(file.parts) and _STANDARD_LIBRARY not in file.parents


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InputError("no such file", file=path, expected="a Python file", fix="check the path")
    return path.resolve()


def _hash_of(file: Path) -> str:
    """The hash that runs record: that of ``file_fingerprint``, which is above this package."""
    return hashlib.blake2b(hashlib.sha256(file.read_bytes()).digest(), digest_size=16).hexdigest()

"""The command line called in this process: what it leaves behind, and what must hold for every call."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crosslens.cli import main
from crosslens.cli.app import _command_of


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Call = Callable[..., Outcome]


_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_MISTYPED = re.compile(r"error: (no such (option|command)|got unexpected extra|missing argument)", re.IGNORECASE)
_KEYWORD = re.compile(r"(?<![\w./'\"])[a-z_]+=(?=True|False|None|,|;| |$)")


def check_named_flags(words: list[str], messages: str) -> None:
    """Every flag in an error or a note is one of the command that prints it, and none is written as Python does."""
    command = _command_of(words)
    flags = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    for line in messages.splitlines():
        # Other commands may be proposed, and what was typed in may be repeated.
        if "crosslens " in line or "pip install" in line or "o such option" in line:
            continue
        assert set(_FLAG.findall(line)) <= {*flags, "--help"}, line
        if line.startswith("  fix: "):
            assert not _KEYWORD.search(line.replace("-D ", "")) or "-D " in line, line


_SESSIONS: dict[tuple[object, ...], Any] = {}


@pytest.fixture(scope="module", autouse=True)
def tiny_opened_once() -> Iterator[None]:
    """The built-in encoder, opened once for all tests: that takes longer than what they encode with it."""
    from crosslens.core import core_limit
    from crosslens.encode.adapters import onnx

    open_session = onnx._Session

    def opened(file: Path, output: str | None, options: Any, threads: int | None = None) -> Any:
        if onnx.TINY not in file.parents:
            return open_session(file, output, options, threads)
        key = file, output, options.model_device, threads, core_limit()
        if key not in _SESSIONS:
            _SESSIONS[key] = open_session(file, output, options, threads)
        return _SESSIONS[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx, "_Session", opened)
        yield


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run ``crosslens`` with these words; a bug's traceback fails the test, and so does a call of what does not exist,
    whose refusal proves nothing, unless it is what the test is about (``mistyped``)."""

    def run(*words: str | Path, mistyped: bool = False) -> Outcome:
        capsys.readouterr()
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        check_named_flags([str(word) for word in words], captured.err)
        assert mistyped or not _MISTYPED.match(captured.err), captured.err
        return Outcome(code, captured.out, captured.err)

    return run

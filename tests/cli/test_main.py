"""The promises that hold for every command: exit codes, help, suggestions, no traceback for a user's mistake."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import typer

from crosslens.cli import EXIT_CODES, app, main
from crosslens.core import errors
from tests.tables import rest_slow

from .conftest import Call

COMMANDS = (
    *((name,) for names in app.HEADINGS.values() for name, function in names.items() if function is not None),
    *((group, name) for group, (_, commands) in app.GROUPS.items() for name in commands),
)


def test_every_registered_command_is_tested() -> None:
    root = typer.main.get_command(app.app)
    groups = {name: getattr(command, "commands", {}) for name, command in root.commands.items()}  # type: ignore[attr-defined]
    registered = {(name, *part) for name, parts in groups.items() for part in ([(inner,) for inner in parts] or [()])}
    assert registered == set(COMMANDS)


def test_the_list_of_commands_is_whole(call: Call) -> None:
    text = call("--help").out
    for heading, names in app.HEADINGS.items():
        listed = text.partition(f"\n{heading}:\n")[2].partition("\n\n")[0].splitlines()
        assert [line.split()[0] for line in listed] == list(names)
    assert "..." not in text.partition("Start:")[2], "a one-line help that does not fit is cut off"
    assert max(map(len, text.splitlines())) <= 80
    for group in app.GROUPS:
        assert "..." not in call(group).out.partition("Commands:")[2]


def test_help_names_every_exit_code(call: Call) -> None:
    text = call().out
    for code, meaning in EXIT_CODES.items():
        assert f"{code:>3}  {meaning}" in text


def test_version(call: Call) -> None:
    from crosslens import __version__

    assert call("--version").out == f"crosslens {__version__}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("evalute",), "Did you mean 'evaluate'"),
        (("evaluate", "--metric", "x"), "--metrics"),
        (("data", "descrbe"), "Did you mean 'describe'"),
        (("data", "formats", "coca"), "did you mean coco"),
        (("metrics", "Hti"), "did you mean Hit"),
        (("evaluate", "--folds", "many"), "'--folds'"),
        (("show",), "missing argument"),
    ],
)
def test_wrong_use(words: tuple[str, ...], message: str, call: Call) -> None:
    outcome = call(*words, mistyped=True)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert message in outcome.err.lower() or message in outcome.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.UsageError("x"), 2),
        (errors.UnknownNameError("metric", "x", ["y"]), 2),
        (errors.InputError("x", file="f", row=3), 3),
        (errors.FormatVersionError("x"), 3),
        (errors.MissingExtraError("ranking on a GPU", "torch", "torch"), 4),
        (errors.ConflictError("x", fix=f"pass {errors.argument('overwrite', True)}"), 5),
        (KeyboardInterrupt(), 130),
        (PermissionError(13, "Permission denied", "/some/file"), 3),
        (OSError(28, "No space left on device"), 3),
        (OSError("4096 requested and 0 written"), 3),
        (pl.exceptions.ComputeError("parquet: underlying IO error: No space left on device (os error 28)"), 3),
        (BrokenPipeError(), 0),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_every_end_has_its_code(error: BaseException, code: int, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("crosslens.values.run.Run.load", fail)
    monkeypatch.setattr("crosslens.cli.app._drop_output", lambda: 0)
    outcome = call("export", "somewhere", "--to", "csv")
    assert outcome.code == code
    assert code in EXIT_CODES
    assert outcome.out == ""
    if code == 4:
        assert "pip install 'crosslens[torch]'" in outcome.err
    if code == 5:
        assert "--overwrite" in outcome.err
    if code == 130:
        assert outcome.err == "interrupted\n"
    if "space" in str(error) or "written" in str(error):
        assert outcome.err.count("\n") == 2
        assert "free some disk space" in outcome.err


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("crosslens.values.run.Run.load", fail)
    with pytest.raises(ZeroDivisionError):
        main(["show", "somewhere"])


OUTPUTS = [["--help"], ["metrics", "--json"]]
"""What is written when the process ends, and what is too long for that."""


@pytest.mark.parametrize("words", rest_slow(OUTPUTS))
def test_a_reader_that_leaves_is_no_error(words: list[str]) -> None:
    """``crosslens --help | head -0``, with a pipe that nobody reads."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "crosslens", *words],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", rest_slow(OUTPUTS))
def test_a_full_disk_is_no_bug(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "crosslens", *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 3
    assert done.stderr == "error: No space left on device\n  fix: free some disk space, or write to another disk\n"


def test_interrupting_while_modules_load() -> None:
    """Loading is the longest part of a short command."""
    program = "import builtins, sys\nfrom crosslens.cli import main\ndef stop(*_, **__): raise KeyboardInterrupt\n"
    program += "builtins.__import__ = stop\nsys.exit(main(['metrics']))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


@pytest.mark.slow
def test_as_a_module() -> None:
    """``python -m crosslens`` is ``crosslens``, exit codes and all."""
    done = subprocess.run(
        [sys.executable, "-m", "crosslens", "no-such-command"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no such command 'no-such-command'")


def test_help_loads_no_numbers() -> None:
    """``crosslens --help`` answers at once: arrays and tables are loaded by the commands that need them."""
    program = "import sys, crosslens.cli.app; print(*({'numpy', 'polars'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr

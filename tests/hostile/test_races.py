"""Two processes, one output: the second is refused at once, and the result is that of the first."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from crosslens.cli import main
from crosslens.storage import hold_output
from crosslens.values import Run
from tests.hostile.writing_commands import COMMANDS

_ALL = [pytest.param(name, marks=[pytest.mark.slow] if command.slow else []) for name, command in COMMANDS.items()]


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@contextmanager
def held_by_another(*outputs: Path) -> Iterator[None]:
    """The lock of the outputs in another thread, for which it is as for another process."""
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with ExitStack() as stack:
            for output in outputs:
                stack.enter_context(hold_output(output))
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("name", _ALL)
def test_the_second_writer_is_refused(
    name: str, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command, work = COMMANDS[name], tmp_path / "work"
    shutil.copytree(inputs, work)
    monkeypatch.chdir(work)
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    with held_by_another(*map(Path, command.outputs)):
        before = content(work)
        assert main(shlex.split(command.old)) == 5
        assert content(work) == before
    error = capsys.readouterr().err
    assert f"is being written by process {os.getpid()}, since" in error
    assert "fix: wait until it is done, or choose another output" in error
    assert main(shlex.split(command.old)) == 0
    assert not list(work.rglob("*crosslens-partial*"))


@pytest.mark.slow
def test_two_evaluations_at_once_leave_one_of_them(inputs: Path, tmp_path: Path) -> None:
    shutil.copytree(inputs, tmp_path / "work")
    words = [sys.executable, "-m", "crosslens", "evaluate", "--dataset", "data", "--resamples", "2000"]
    expected = {}
    for name in "ab":
        subprocess.run([*words, "--scores", f"{name}.npy", "-o", name], cwd=tmp_path / "work", check=True)
        expected[name] = Run.load(tmp_path / "work" / name).fingerprint
    for attempt in range(5):
        output = f"both-{attempt}"
        both = [
            subprocess.Popen([*words, "--scores", f"{name}.npy", "-o", output], cwd=tmp_path / "work") for name in "ab"
        ]
        codes = [process.wait() for process in both]
        assert sorted(codes) == [0, 5]
        run = Run.load(tmp_path / "work" / output)
        assert run.fingerprint == expected["ab"[codes.index(0)]]
        alone = Run.load(tmp_path / "work" / "ab"[codes.index(0)])
        for direction, ranking in run.rankings.items():
            assert ranking.fingerprint == alone.rankings[direction].fingerprint
        assert not list((tmp_path / "work").glob(".*"))

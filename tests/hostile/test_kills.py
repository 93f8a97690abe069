"""Killed at any step, a command leaves the old result or the new one; the same command again leaves nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.writing_commands import COMMANDS, WritingCommand

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
_QUICK = ("convert to a folder",)
RESUMED = WritingCommand(
    "report run-a -o other.html", "audit --dataset data --scores a.npy --quick --resamples 5 -o out", whole=False
)
"""Unlike one with --overwrite, it finds what the killed audit has left."""


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_kill_at_many_steps(name: str, inputs: Path, tmp_path: Path) -> None:
    assert kill(COMMANDS[name], inputs, tmp_path, points=25 if COMMANDS[name].slow else 60) == []


@pytest.mark.parametrize("name", _QUICK)
def test_kill_at_a_few_steps(name: str, inputs: Path, tmp_path: Path) -> None:
    assert kill(COMMANDS[name], inputs, tmp_path, points=3) == []


@pytest.mark.slow
def test_kill_an_audit_that_is_resumed(inputs: Path, tmp_path: Path) -> None:
    assert kill(RESUMED, inputs, tmp_path, points=25) == []


def kill(command: WritingCommand, inputs: Path, folder: Path, points: int) -> list[str]:
    """What does not hold after kills at so many steps, spread evenly."""
    shutil.copytree(inputs, folder / "inputs")
    script = Path(__file__).with_name("killing.py")
    words = [str(folder), command.old, command.new, ",".join(command.outputs), str(command.whole), str(points)]
    done = subprocess.run([sys.executable, str(script), *words], capture_output=True, text=True, check=False)
    log = folder / "log"
    assert done.returncode == 0, done.stderr + (log.read_text() if log.exists() else "")
    failures: list[str] = json.loads(done.stdout.splitlines()[-1])
    return failures

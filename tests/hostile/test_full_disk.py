"""A disk that is full is an error that says so, from every command, and the old result stays."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.test_races import content
from tests.hostile.writing_commands import COMMANDS

resource = pytest.importorskip("resource", reason="needs limits of processes")
LIMITED = """
import resource, sys
from crosslens.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.argv = ["crosslens", *sys.argv[2:]]
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_files_that_cannot_grow(name: str, inputs: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk: in both cases a write comes back short."""
    command, work = COMMANDS[name], tmp_path / "work"
    shutil.copytree(inputs, work)
    environment = {**os.environ, "CROSSLENS_CACHE": str(tmp_path / "cache")}

    def run(words: str, limit: int) -> subprocess.CompletedProcess[str]:
        code = [sys.executable, "-c", LIMITED, str(limit), *shlex.split(words)]
        return subprocess.run(code, cwd=work, env=environment, capture_output=True, text=True, check=False)

    assert run(command.old, 1 << 30).returncode == 0
    before = content(work)
    for limit in (100, 300):
        done = run(command.new, limit)
        if limit > 100 and done.returncode == 0:  # every file is smaller
            return
        assert done.returncode == 3, done.stderr
        assert "Traceback" not in done.stderr
        after = {path: data for path, data in content(work).items() if "crosslens-partial" not in path}
        assert after == before or not command.whole
    assert run(command.new, 1 << 30).returncode == 0
    assert not list(work.rglob("*crosslens-partial*"))

"""Killed at any moment, an evaluation leaves nothing half-written, and the same command ends with the same result."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from crosslens.core.run import Run

# Small tiles and a checkpoint after each: every stage of a long pass, in a short one.
EVALUATION = """
import sys
import numpy as np
from crosslens.rank import tiles
tiles._WORK_BETWEEN_CHECKPOINTS = 1
import crosslens as cl
dataset = cl.Dataset.load("dataset")
images, captions = np.load("images.npy"), np.load("captions.npy")
cl.evaluate(dataset, images=images, captions=captions, tile=100, output=sys.argv[1])
"""


KILLS = 50


@pytest.fixture
def run_folder(tmp_path):
    import crosslens as cl

    rng = np.random.default_rng(0)
    pictures = rng.standard_normal((400, 32)).astype(np.float32)
    cl.Dataset.of({f"i{k}": [f"c {k} {n}" for n in range(3)] for k in range(400)}).save(tmp_path / "dataset")
    np.save(tmp_path / "images.npy", pictures)
    np.save(tmp_path / "captions.npy", np.repeat(pictures, 3, axis=0) + rng.standard_normal((1200, 32), np.float32))
    return tmp_path


def start(run_folder: Path, output: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", EVALUATION, output], cwd=run_folder, stderr=subprocess.PIPE)


def finish(run_folder: Path, output: str) -> None:
    done = start(run_folder, output)
    _, errors = done.communicate()
    assert done.returncode == 0, errors.decode()


@pytest.mark.slow
def test_kill_and_rerun(run_folder):
    finish(run_folder, "whole")  # compiles, if need be
    begin = time.perf_counter()
    finish(run_folder, "timed")
    usual = time.perf_counter() - begin
    chance = random.Random(0)
    killed, series = 0, 0
    while killed < KILLS:
        output = f"killed-{series}"
        process = start(run_folder, output)
        time.sleep(chance.uniform(0.4, 1.0) * usual)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if (run_folder / output).exists():
            Run.load(run_folder / output)
        if process.returncode == 0:
            series += 1  # it was done before the signal came: go on with a new one
        else:
            killed += 1
    for number in range(series + 1):
        output = run_folder / f"killed-{number}"
        finish(run_folder, output.name)
        for name in (
            "queries.parquet",
            *(f"ranking-{d}/{part}.npy" for d in ("i2t", "t2i") for part in ("top_items", "above")),
        ):
            assert (output / name).read_bytes() == (run_folder / "whole" / name).read_bytes(), name
        mine, whole = (json.loads((folder / "run.json").read_text()) for folder in (output, run_folder / "whole"))
        assert mine["metrics"] == whole["metrics"]
        assert sorted(part.name for part in output.iterdir()) == [
            "queries.parquet", "ranking-i2t", "ranking-t2i", "run.json"
        ]  # fmt: skip
    assert not list(run_folder.glob(".*"))

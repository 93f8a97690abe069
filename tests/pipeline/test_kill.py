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

from crosslens.values import Run

# Small tiles and a checkpoint after each: every stage of a long pass, in a short one.
EVALUATION = """
import sys
import numpy as np
from crosslens.rank import merged, parts
parts._WORK_BETWEEN_CHECKPOINTS, merged.SECONDS_BETWEEN_CHECKPOINTS, merged.MOST_TIME_FOR_CHECKPOINTS = 1, 0, 1e9
import crosslens as cl
dataset = cl.Dataset.load("dataset")
images, captions = np.load("images.npy"), np.load("captions.npy")
queries = int(sys.argv[2]) or None
cl.evaluate(dataset, images=images, captions=captions, tile=100, threads=2, output=sys.argv[1], queries=queries)
"""


@pytest.fixture
def run_folder(tmp_path):
    import crosslens as cl

    rng = np.random.default_rng(0)
    pictures = rng.standard_normal((400, 32)).astype(np.float32)
    cl.Dataset.of({f"i{k}": [f"c {k} {n}" for n in range(3)] for k in range(400)}).save(tmp_path / "dataset")
    np.save(tmp_path / "images.npy", pictures)
    np.save(tmp_path / "captions.npy", np.repeat(pictures, 3, axis=0) + rng.standard_normal((1200, 32), np.float32))
    return tmp_path


def start(run_folder: Path, output: str, queries: int) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", EVALUATION, output, str(queries)]
    return subprocess.Popen(words, cwd=run_folder, stderr=subprocess.PIPE)


def finish(run_folder: Path, output: str, queries: int) -> None:
    done = start(run_folder, output, queries)
    _, errors = done.communicate()
    assert done.returncode == 0, errors.decode()


@pytest.mark.slow
@pytest.mark.parametrize(("queries", "kills"), [(0, 50), (300, 15)])
def test_kill_and_rerun(run_folder, queries, kills):
    finish(run_folder, "whole", queries)  # compiles, if need be
    begin = time.perf_counter()
    finish(run_folder, "timed", queries)
    usual = time.perf_counter() - begin
    chance = random.Random(0)
    killed, series = 0, 0
    while killed < kills:
        output = f"killed-{series}"
        process = start(run_folder, output, queries)
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
        finish(run_folder, output.name, queries)
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


COUNTED = """
import os, signal, sys
from crosslens.rank.scorers import InnerProduct
tiles, product, last = 0, InnerProduct.tile, int(sys.argv[3])
def tile(self, rows, columns):
    global tiles
    tiles += 1
    if tiles == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return product(self, rows, columns)
InnerProduct.tile = tile
"""


@pytest.mark.slow
def test_a_sample_of_queries_resumes_in_the_middle_of_either_direction(run_folder):
    """Parts of 200 items for two threads, each of 5 blocks with 2 tiles of queries: 6 parts of the captions, then 2 of
    the images."""

    def evaluated(output: str, last: int) -> tuple[int, int]:
        words = [sys.executable, "-c", f"{COUNTED}{EVALUATION}print(tiles)", output, "300", str(last)]
        done = subprocess.run(words, cwd=run_folder, capture_output=True, check=False)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
        return done.returncode, int(done.stdout or 0)

    whole = 6 * 10 + 2 * 10
    assert evaluated("whole", 0) == (0, whole)
    # At most one part is repeated after each kill.
    for output, kills in (("first", [31]), ("second", [73]), ("both", [31, 24, 15])):
        for last in kills:
            assert evaluated(output, last)[0] == -signal.SIGKILL
        code, tiles = evaluated(output, 0)
        assert code == 0
        assert whole - sum(kills) <= tiles <= whole - sum(kills) + 1 + 10 * len(kills)
        for ranking in ("ranking-i2t", "ranking-t2i"):
            for file in (run_folder / "whole" / ranking).iterdir():
                assert file.read_bytes() == (run_folder / output / ranking / file.name).read_bytes(), file
    assert not list(run_folder.glob(".*"))

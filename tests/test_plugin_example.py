"""``examples/plugin``: built as a wheel without a network, unpacked onto the path, its three entry points are found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PLUGIN = Path(__file__).resolve().parents[1] / "examples" / "plugin"


@pytest.mark.slow
def test_the_example_of_a_plugin(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)], cwd=PLUGIN, check=True,
        capture_output=True,
    )  # fmt: skip
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "installed")
    path = os.pathsep.join([str(tmp_path / "installed"), *filter(None, sys.path)])
    words = ["--dataset", "semicolons", "--captions", str(PLUGIN / "pets.txt"), "--model", "letters:"]
    words += ["--image-text", "mean", "--metrics", "Hit@1 Shallow@3", "--json", "-o", str(tmp_path / "run")]
    done = subprocess.run(
        [sys.executable, "-m", "crosslens", "evaluate", *words], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": path, "CROSSLENS_CACHE": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["metrics"]
    assert figures.keys() == {"t2t/Hit@1", "t2t/Shallow@3"}
    assert figures["t2t/Hit@1"]["mean"] + figures["t2t/Shallow@3"]["mean"] == pytest.approx(1), "of three images"

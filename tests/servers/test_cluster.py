"""A Ray cluster of several nodes on this machine that ranks what a store has: the run is that of this process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.test_ray import own_environment as own_environment, started_cluster
from tests.servers.conftest import Store
from tests.servers.test_stores import content_of

pytestmark = pytest.mark.slow


def test_nodes_rank_what_a_store_has(s3: Store, tmp_path: Path) -> None:
    def evaluate(output: str, *words: str) -> None:
        both = ("--image-embeddings", s3.address, "--caption-embeddings", s3.address)
        done = subprocess.run(
            [sys.executable, "-m", "crosslens", "evaluate", "--dataset", "emb", *both, "-o", output, *words],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    evaluate("here/run")
    with started_cluster(nodes=3) as cluster:
        evaluate("there/run", "--engine", "ray", "--ray-address", cluster.address)
    assert content_of(tmp_path / "there/run") == content_of(tmp_path / "here/run")

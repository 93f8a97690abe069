"""Many annotators at once, and a server that dies in the middle: nothing acknowledged is lost, nothing is doubled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "judging.py"
ON_POSTGRESQL = ("--database", "test")
NO_SERVER = 77

pytestmark = pytest.mark.slow


def measured(*words: str) -> dict[str, Any]:
    """What the benchmark prints; it fails where a judgement was lost or doubled."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *words], capture_output=True, text=True, timeout=3_600, check=False,
        env=dict(os.environ),
    )  # fmt: skip
    if done.returncode == NO_SERVER:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)  # the figures, with -s
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


@pytest.mark.parametrize("words", [(), ON_POSTGRESQL], ids=["sqlite", "postgresql"])
def test_fifty_annotators_at_once(words: tuple[str, ...]) -> None:
    figures = measured("--annotators", "50", "--judgements", "200", *words)
    assert figures["acknowledged"] == 50 * (200 + 10)
    assert figures["faults"] == []


@pytest.mark.parametrize("words", [(), ON_POSTGRESQL], ids=["sqlite", "postgresql"])
def test_a_server_killed_twenty_times(words: tuple[str, ...]) -> None:
    figures = measured("--annotators", "20", "--judgements", "60", "--paced", "0", "--kills", "20", *words)
    assert figures["kills"] == 20
    assert figures["requests interrupted"] > 0, "the server died while nobody asked for anything"
    assert figures["faults"] == []

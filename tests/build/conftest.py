"""Scenes that benchmarks are built from."""

from __future__ import annotations

from pathlib import Path

import pytest

import crosslens as cl


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scenes") / "set"


@pytest.fixture(scope="session")
def scenes(folder: Path) -> cl.Dataset:
    from crosslens.synth import write_scenes

    return write_scenes(folder, 60, "object,colour,count", seed=3, workers=1)

"""A harder version holds the easier ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from crosslens.core import InputError, UsageError
from crosslens.synth import select_version, write_scenes
from crosslens.values import Dataset
from tests.tables import rest_slow

pytest.importorskip("PIL", reason="pip install 'crosslens[scenes]'")

TASKS = "colour,count,ocr"


@pytest.fixture(scope="module")
def hardest(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("versions")
    return write_scenes(folder / "v2", 6, TASKS, seed=3, version="v2", gallery=20, workers=1)


@pytest.mark.parametrize("version", rest_slow(["v1", "v0"]))
def test_the_selection_is_what_would_be_drawn(hardest: Dataset, version: str, tmp_path: Path) -> None:
    fresh = write_scenes(tmp_path / version, 6, TASKS, seed=3, version=version, workers=1)
    selected = select_version(hardest, version)
    assert selected.fingerprint == fresh.fingerprint
    assert (selected.name, selected.card.revision) == (fresh.name, fresh.card.revision)
    for name in fresh.images["file"]:
        assert (tmp_path / version / name).exists()


def test_the_hardest_is_itself(hardest: Dataset) -> None:
    same = select_version(hardest, "v2")
    assert (same.name, same.fingerprint, same.card) == (hardest.name, hardest.fingerprint, hardest.card)


def test_what_cannot_be_selected(hardest: Dataset) -> None:
    with pytest.raises(UsageError, match="unknown version 'v3'"):
        select_version(hardest, "v3")
    with pytest.raises(UsageError, match="scenes-v0 has no twin scenes, so version v1 cannot be selected"):
        select_version(select_version(hardest, "v0"), "v1")
    with pytest.raises(InputError, match="no column 'role'"):
        select_version(replace(hardest, images=hardest.images.drop("role")), "v0")

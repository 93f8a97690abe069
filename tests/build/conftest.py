"""Scenes that benchmarks are built from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import crosslens as cl
from crosslens.build import Imp, Recos


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scenes") / "set"


@pytest.fixture(scope="session")
def scenes(folder: Path) -> cl.Dataset:
    from crosslens.synth import write_scenes

    return write_scenes(folder, 60, "object,colour,count", seed=3, workers=1)


@pytest.fixture(scope="session")
def built_recos(scenes: cl.Dataset, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Recos, Path]:
    """The benchmark that the usual settings give, and the folder it is in, only to be read."""
    from tests.build.recos_builds import build

    output = tmp_path_factory.mktemp("recos") / "bench"
    return build(scenes, folder, output=output), output


@pytest.fixture
def recos_folder(built_recos: tuple[Recos, Path], tmp_path: Path) -> Path:
    """A finished benchmark of the usual settings."""
    return Path(shutil.copytree(built_recos[1], tmp_path / "bench"))


@pytest.fixture(scope="session")
def waiting_imp(scenes: cl.Dataset, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Imp, Path]:
    """The sheets that the usual settings give, and the folder they are in, only to be read."""
    from tests.build.imp_builds import build

    output = tmp_path_factory.mktemp("imp") / "waiting"
    return build(scenes, folder, output=output), output


@pytest.fixture(scope="session")
def built_imp(
    waiting_imp: tuple[Imp, Path], scenes: cl.Dataset, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Imp, Path]:
    """The benchmark of annotators that find everything good, and the folder it is in, only to be read."""
    from tests.build.imp_builds import build, fill_in

    imp, sheets = waiting_imp
    output = Path(shutil.copytree(sheets, tmp_path_factory.mktemp("imp") / "bench"))
    for number in (1, 2):
        fill_in(output / f"annotate-{number}.csv", imp.candidates.captions, lambda *_: "good")
    return build(scenes, folder, output=output), output


@pytest.fixture
def sheets_folder(waiting_imp: tuple[Imp, Path], tmp_path: Path) -> Path:
    """A benchmark of the usual settings that waits for verdicts."""
    return Path(shutil.copytree(waiting_imp[1], tmp_path / "bench"))


@pytest.fixture
def imp_folder(built_imp: tuple[Imp, Path], tmp_path: Path) -> Path:
    """A finished benchmark of the usual settings."""
    return Path(shutil.copytree(built_imp[1], tmp_path / "bench"))

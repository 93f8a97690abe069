"""Every reader on every hostile file."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from crosslens.data import READERS, load_dataset
from tests.data.reader_samples import SAMPLES
from tests.hostile.conftest import Refused, Refuses, refused_path
from tests.hostile.inputs import PATHS, SPECIAL, TEXTS

NAMES = sorted(entry.name for entry in READERS)
pytestmark = pytest.mark.parametrize("name", NAMES)


def files_of(name: str, folder: Path) -> tuple[dict[str, Any], list[Path]]:
    """The options of a reader over a sample of its own, and the files that it reads."""
    options = SAMPLES[name].options(folder)
    return options, sorted(path for path in folder.rglob("*") if path.is_file())


def needed(name: str, files: list[Path]) -> Path:
    """A file that the reader cannot do without."""
    return next((file for file in files if name == "visual_genome" and file.name == "image_data.json"), files[-1])


@pytest.mark.parametrize("content", TEXTS)
def test_content(name: str, content: str, tmp_path: Path, refuses: Refuses) -> None:
    options, files = files_of(name, tmp_path)
    for file in [needed(name, files)] if content == "JSON list of nothing" else files:
        before = file.read_bytes()
        file.write_bytes(TEXTS[content])
        assert str(tmp_path) in refuses(lambda: load_dataset(name, **options))
        file.write_bytes(before)
    load_dataset(name, **options)  # what is refused is refused for its content


@pytest.mark.parametrize("kind", SPECIAL)
def test_special_file(name: str, kind: str, tmp_path: Path, refuses: Refuses) -> None:
    options, files = files_of(name, tmp_path)
    file = needed(name, files)
    file.unlink()
    SPECIAL[kind](file)
    assert str(tmp_path) in refuses(lambda: load_dataset(name, **options))


@pytest.mark.parametrize("path", PATHS)
def test_path(name: str, path: str, tmp_path: Path) -> None:
    options, _ = files_of(name, tmp_path)
    key = next(iter(options))
    refused_path(lambda: load_dataset(name, **{**options, key: PATHS[path]}))


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9, 0.99])
def test_cut_off(name: str, cut: float, tmp_path: Path, refuses: Refuses) -> None:
    """Binary files as they are, all others and tar files packed: a text that is cut off may still be one."""
    options, files = files_of(name, tmp_path)
    content = files[-1].read_bytes()
    if files[-1].suffix not in (".parquet", ".npy"):
        content = gzip.compress(content, mtime=0)
    files[-1].write_bytes(content[: int(len(content) * cut)])
    assert str(tmp_path) in refuses(lambda: load_dataset(name, **options))


@pytest.mark.parametrize("value", [-1, 0, 2**70, 1.5, "many", None, True, [], {}])
def test_option_value(name: str, value: Any, tmp_path: Path, refuses: Refuses) -> None:
    options, _ = files_of(name, tmp_path)
    for option in READERS[name].details["options"].values():
        if not option.accepts(value) or (value is None and option.is_required):
            refuses(lambda option=option: load_dataset(name, **{**options, option.name: value}))


@pytest.mark.parametrize("kind", [*TEXTS, *SPECIAL])
def test_command(name: str, kind: str, tmp_path: Path, refused: Refused) -> None:
    options, files = files_of(name, tmp_path)
    file = needed(name, files)
    file.unlink()
    if kind in TEXTS:
        file.write_bytes(TEXTS[kind])
    else:
        SPECIAL[kind](file)
    words = [word for key, value in options.items() for word in ("-D", f"{key}={value}")]
    assert str(tmp_path) in refused("data", "describe", name, *words)

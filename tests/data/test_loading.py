"""The way in: readers by name, datasets by path, and what is said when neither fits."""

from __future__ import annotations

import inspect
import subprocess
import sys
import typing
from pathlib import Path

import pytest

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UnknownNameError, UsageError
from crosslens.data import READERS, load_dataset
from tests.data import files
from tests.data.files import write, write_json

NAMES = {
    "coco",
    "csv",
    "fine_grained",
    "flickr",
    "huggingface",
    "karpathy",
    "plain",
    "precomputed",
    "visual_genome",
    "webdataset",
}


def test_every_format_is_registered() -> None:
    assert {entry.name for entry in READERS} >= NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_option_is_typed_and_explained(name: str) -> None:
    """The command line and the reference pages are made from signature and docstring."""
    reader = READERS[name].value
    assert typing.get_type_hints(reader)["return"] is Dataset
    documentation = inspect.getdoc(reader) or ""
    for option, parameter in inspect.signature(reader).parameters.items():
        assert parameter.annotation is not parameter.empty, f"{name}: {option} has no type"
        assert f"\n{option}: " in documentation, f"{name}: {option} is not explained"


def test_a_saved_dataset_by_its_folder(tmp_path: Path) -> None:
    dataset = Dataset.of({"a": ["x"]})
    dataset.save(tmp_path / "saved")
    assert load_dataset(tmp_path / "saved").fingerprint == dataset.fingerprint
    with pytest.raises(UsageError, match="no options"):
        load_dataset(tmp_path / "saved", split="test")


def test_a_reader_wins_over_a_file_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "coco", "")
    assert len(load_dataset("coco", captions=write_json(tmp_path / "c.json", files.coco())).image_ids) == 2


def test_unknown_reader_and_options(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean coco"):
        load_dataset("cocoo", captions="x.json")
    with pytest.raises(
        UsageError, match=r"has no option 'caption'(.|\n)*did you mean captions\? its options: captions"
    ):
        load_dataset("coco", caption="x.json")
    with pytest.raises(UsageError, match=r"needs the option 'captions'(.|\n)*captions, instances \(optional\)"):
        load_dataset("coco")
    with pytest.raises(UsageError, match=r"the option 'captions' is \['x.json'\](.|\n)*one path"):
        load_dataset("coco", captions=["x.json"])


def test_paths_that_do_not_tell_their_format(tmp_path: Path) -> None:
    file = write_json(tmp_path / "captions.json", files.coco())
    with pytest.raises(UsageError, match=r"load_dataset\('coco', captions='captions.json'\)"):
        load_dataset(file)
    with pytest.raises(InputError, match=r"captions\.jsn: no such file(.|\n)*did you mean captions.json"):
        load_dataset(tmp_path / "captions.jsn")
    with pytest.raises(InputError, match=r"not a saved dataset(.|\n)*name the reader"):
        load_dataset(tmp_path)


def test_importing_is_cheap() -> None:
    code = (
        "import sys, crosslens.data; "
        "print([m for m in ('torch', 'pandas', 'datasets', 'eccv_caption', 'matplotlib') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"

"""The way in: readers by name, datasets by path, and the errors when neither fits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crosslens.core import InputError, UnknownNameError, UsageError
from crosslens.data import load_dataset
from crosslens.values import Dataset
from tests.data import files
from tests.data.files import write, write_json
from tests.data.reader_samples import json_sample, json_samples


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
    with pytest.raises(UsageError, match=r"the option 'captions' is \['x.json'\](.|\n)*give it a path"):
        load_dataset("coco", captions=["x.json"])
    with pytest.raises(UsageError, match=r"the option 'captions_per_image' is '5'(.|\n)*a whole number"):
        load_dataset("precomputed", folder=tmp_path, split="test", captions_per_image="5")


OTHER_JSON_FILES: dict[str, Any] = {
    "coco": {**files.coco(), "annotations": []},
    "blip": [{"image": "p/1.jpg", "caption": "A bus.", "image_id": "coco_1"}],  # as for training
}
"""Further forms of what a reader's sample holds."""


@pytest.mark.parametrize("reader", json_samples())
@pytest.mark.parametrize("name", ["data.json", "dataset_coco.json", "captions_val2017.json.gz"])
def test_a_json_file_is_recognised_by_its_content(tmp_path: Path, reader: str, name: str) -> None:
    recognised(tmp_path / name, json_sample(reader, tmp_path), reader)


@pytest.mark.parametrize("reader", OTHER_JSON_FILES)
def test_other_forms_are_recognised(tmp_path: Path, reader: str) -> None:
    recognised(tmp_path / "data.json", OTHER_JSON_FILES[reader], reader)


def recognised(file: Path, content: Any, reader: str) -> None:
    path = write_json(file, content)
    assert load_dataset(path).fingerprint == load_dataset(reader, captions=path).fingerprint
    assert load_dataset(str(path)).name == load_dataset(reader, captions=path).name


def test_options_go_with_a_json_file(tmp_path: Path) -> None:
    karpathy = write_json(tmp_path / "splits.json", files.karpathy())
    assert load_dataset(karpathy, split="train", restval=True).image_ids == ("501", "502")
    captions = write_json(tmp_path / "c.json", files.coco())
    instances = write_json(tmp_path / "i.json", files.instances())
    expected = load_dataset("coco", captions=captions, instances=instances)
    assert load_dataset(captions, instances=instances).fingerprint == expected.fingerprint
    assert load_dataset(instances, captions=captions).fingerprint == expected.fingerprint
    with pytest.raises(UsageError, match="'coco' needs the option 'captions'"):
        load_dataset(instances)
    with pytest.raises(UsageError, match="'coco' has no option 'restval'"):
        load_dataset(captions, restval=True)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ({"query 1": {"item": 0.5}}, "an object with the keys query 1"),
        ({"images": [{"id": 1}], "annotations": [{"id": 1, "segments_info": []}]}, "the keys images, annotations"),
        ([{"image_id": 1, "url": "x.jpg"}], "the file holds a list"),
        ({}, "the keys none"),
        (7, "the file holds a int"),
    ],
)
def test_a_json_file_that_is_no_dataset(tmp_path: Path, content: Any, kind: str) -> None:
    path = write_json(tmp_path / "captions_val2017.json", content)
    with pytest.raises(InputError) as caught:
        load_dataset(path)
    assert caught.value.code == "unknown-format"
    for expected in (
        str(path),
        kind,
        "COCO captions",
        "COCO instances",
        "Karpathy",
        "fine-grained",
        "name the reader",
    ):
        assert expected in str(caught.value)


def test_a_broken_json_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"c\.json, line 1, column \d+: not valid JSON"):
        load_dataset(write(tmp_path / "c.json", '{"images": ['))


def test_paths_that_do_not_tell_their_format(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"load_dataset\('webdataset', shards='photos.tar'\)"):
        load_dataset(write(tmp_path / "photos.tar", "x"))
    with pytest.raises(UsageError, match=r"load_dataset\('flickr', captions='results.token'\)"):
        load_dataset(write(tmp_path / "results.token", "x"))
    write(tmp_path / "captions.json", "{}")
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

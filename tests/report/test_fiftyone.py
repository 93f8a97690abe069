"""A run as a FiftyOne dataset, and back: its tags and fields make groups, its captions a dataset."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import crosslens as cl
from crosslens.core import InputError, UsageError
from crosslens.data import load_dataset
from crosslens.pipeline import add_columns, group_metrics, read_columns
from crosslens.report import write_fiftyone
from crosslens.values import Dataset, Run
from tests.commands import Call, call as call
from tests.report.conftest import IMAGES


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    for image in IMAGES:
        Image.new("RGB", (4, 3)).save(tmp_path / f"{image}.png")
    texts = {image: [f"{image} from the front", f"{image} from behind"] for image in IMAGES}
    with_files = Dataset.of(texts, images={"file": [f"{image}.png" for image in IMAGES]})
    return replace(with_files, name="toys", home=tmp_path)


def test_samples_have_captions_predictions_metrics_and_tags(run: Run, dataset: Dataset, tmp_path: Path) -> None:
    folder = tmp_path / "exported"
    assert write_fiftyone(run, folder, dataset, k=2) == [folder / "metadata.json", folder / "samples.json"]
    metadata = json.loads((folder / "metadata.json").read_text())
    assert (metadata["name"], metadata["media_type"]) == ("toy model", "image")
    assert metadata["info"]["metrics"]["t2i/Hit@1"] == run["t2i/Hit@1"].mean
    samples = json.loads((folder / "samples.json").read_text())["samples"]
    assert [sample["image_id"] for sample in samples] == list(IMAGES)
    first = samples[0]
    assert first["filepath"] == str(tmp_path / "img1.png")
    assert first["i2t_Hit_at_1"] == run["i2t/Hit@1"].values[0]
    assert first["t2i_Hit_at_1"] == run["t2i/Hit@1"].values[:2].mean(), "of its captions"
    captions = first["captions"]["classifications"]
    assert first["captions"]["_cls"] == "Classifications"
    assert (captions[1]["_cls"], captions[1]["label"]) == ("Classification", "img1 from behind")
    assert captions[1]["caption_id"] == "img1#1"
    assert captions[1]["t2i_Hit_at_1"] == run["t2i/Hit@1"].values[1]
    assert captions[1]["retrieved"] == [item for item, _ in run.rankings["t2i"].top("img1#1", 2)]
    retrieved = first["retrieved"]["classifications"]
    assert [(label["caption_id"], label["rank"]) for label in retrieved] == [("img1#0", 1), ("img1#1", 2)]
    assert retrieved[0]["confidence"] == pytest.approx(0.9)
    for sample, hit in zip(samples, run["i2t/Hit@1"].values, strict=True):
        assert ("i2t_miss" in sample["tags"]) == (hit == 0)
    for sample in samples:
        missed = [label for label in sample["captions"]["classifications"] if label["tags"] == ["t2i_miss"]]
        assert ("t2i_miss" in sample["tags"]) == bool(missed)
    excluded = samples[int(next(i for i, value in enumerate(run["i2t/Hit@1"].values) if value != value))]
    assert "i2t_Hit_at_1" not in excluded, "a query that does not count has no value"


def test_what_people_tagged_there_makes_groups_here(run: Run, dataset: Dataset, tmp_path: Path) -> None:
    write_fiftyone(run, tmp_path / "exported", dataset, metrics="Hit@1")
    file = tmp_path / "exported" / "samples.json"
    content = json.loads(file.read_text())
    for number, sample in enumerate(content["samples"]):  # as the application saves it
        sample |= {"_id": {"$oid": "6afd"}, "_rand": 0.5, "created_at": {"$date": "2026"}, "checked": number < 2}
        sample["tags"] = ["blurred", "dark"] if number == 0 else ["dark"]
    file.write_text(json.dumps(content))
    again = load_dataset(tmp_path / "exported")
    assert (again.image_ids, again.caption_ids, again.texts) == (dataset.image_ids, dataset.caption_ids, dataset.texts)
    assert again.images["tags"].to_list()[:2] == [["blurred", "dark"], ["dark"]]
    assert again.images["checked"].to_list() == [True, True, False, False]
    assert not {"_id", "_rand", "created_at"} & set(again.images.columns)
    assert again.captions["t2i_Hit_at_1"].to_list() == run["t2i/Hit@1"].values.tolist()
    tagged, _ = add_columns(run, read_columns(tmp_path / "exported"))
    groups = group_metrics(tagged, "tags", "i2t/Hit@1").values["i2t/Hit@1"]
    assert {name: values.n for name, values in groups.items()} == {"dark": 3, "blurred": 1}


def test_datasets_of_others(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"filepath": "/data/a.jpg", "tags": [], "texts": ["one", "two"], "image": "x"},
        {"filepath": "/data/b.jpg", "texts": None, "label": {"label": "three", "_cls": "Classification"}},
    ]
    (tmp_path / "samples.json").write_text(json.dumps({"samples": rows}))
    dataset = load_dataset(tmp_path, captions="texts")
    assert (dataset.image_ids, dataset.caption_ids) == (("a.jpg", "b.jpg"), ("a.jpg#0", "a.jpg#1"))
    assert dataset.images["image_"].to_list() == ["x", None]
    assert load_dataset("fiftyone", folder=tmp_path, captions="label").texts == ("three",)
    with pytest.raises(InputError, match=r"no captions in the field 'captions'(.|\n)*one of: filepath, tags, texts"):
        load_dataset(tmp_path)
    (tmp_path / "samples.json").write_text("[]")
    with pytest.raises(InputError, match="the file holds an array"):
        load_dataset(tmp_path)


def test_the_command(run: Run, dataset: Dataset, tmp_path: Path, call: Call) -> None:
    run.save(tmp_path / "run")
    dataset.save(tmp_path / "toys")
    words = ("export", tmp_path / "run", "--to", "fiftyone", "--dataset", tmp_path / "toys")
    output = ("-o", tmp_path / "out")
    missing = call(*words, *output)
    assert missing.code != 0
    assert "pass --image-folder" in missing.err
    done = call(*words, *output, "--image-folder", tmp_path)
    assert (done.code, (tmp_path / "out" / "samples.json").is_file()) == (0, True)
    assert "dataset_type=fo.types.LegacyFiftyOneDataset" in done.err
    assert "is a folder of one run" in call(*words).err
    assert "are for fiftyone" in call("export", tmp_path / "run", "--to", "csv", "--image-folder", tmp_path).err
    assert "--by tags" not in call("show", tmp_path / "run", "--columns", tmp_path / "out", "--by", "tags").err


def test_pictures_in_archives_are_refused(run: Run, dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="FiftyOne shows pictures, and they are not there"):
        write_fiftyone(run, tmp_path / "x", cl.Dataset.of({image: ["a", "b"] for image in IMAGES}))

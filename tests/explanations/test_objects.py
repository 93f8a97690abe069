"""Objects of images from annotations and captions, and what their names mean."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crosslens.core import InputError, UsageError
from crosslens.data.readers.coco import read_coco
from crosslens.data.readers.visual_genome import read_visual_genome
from crosslens.explanations import ImageObjects, concept_table, image_objects, objects_of
from crosslens.explanations.lexicon import COCO_SYNSETS, synset_of_name
from crosslens.explanations.objects import caption_objects
from crosslens.language import load_wordnet
from crosslens.synth import write_scenes
from crosslens.values import Dataset
from tests.tables import each_row

NAMES = """person bicycle car motorcycle airplane bus train truck boat traffic_light fire_hydrant stop_sign
parking_meter bench bird cat dog horse sheep cow elephant bear zebra giraffe backpack umbrella handbag tie suitcase
frisbee skis snowboard sports_ball kite baseball_bat baseball_glove skateboard surfboard tennis_racket bottle wine_glass
cup fork knife spoon bowl banana apple sandwich orange broccoli carrot hot_dog pizza donut cake chair couch potted_plant
bed dining_table toilet tv laptop mouse remote keyboard cell_phone microwave oven toaster sink refrigerator book clock
vase scissors teddy_bear hair_drier toothbrush"""


def above(synset: str) -> set[str]:
    wn = load_wordnet()
    return {wn.name(int(row)) for row in wn.hypernym_closure(synset)}


# Names


def test_every_name_of_coco_is_in_the_table() -> None:
    assert sorted(COCO_SYNSETS) == sorted(name.replace("_", " ") for name in NAMES.split())


@each_row(("name", "synset"), COCO_SYNSETS.items())
def test_every_synset_exists_under_this_name_and_is_a_thing(name: str, synset: str) -> None:
    assert load_wordnet().name(synset) == synset
    assert synset_of_name(name) == synset
    signal = name in ("traffic light", "stop sign")  # WordNet files these under communication
    assert ("physical_entity.n.01" in above(synset)) != signal


def test_senses_that_the_first_one_gets_wrong() -> None:
    expected = {
        "mouse": "electronic_device.n.01",
        "kite": "plaything.n.01",
        "cake": "food.n.02",
        "banana": "food.n.02",
        "broccoli": "food.n.02",
        "carrot": "food.n.02",
        "orange": "food.n.02",
        "apple": "food.n.02",
        "hot dog": "food.n.01",
        "microwave": "kitchen_appliance.n.01",
        "toaster": "kitchen_appliance.n.01",
        "toilet": "plumbing_fixture.n.01",
        "tv": "receiver.n.01",
        "book": "artifact.n.01",
        "keyboard": "device.n.01",
        "tie": "clothing.n.01",
        "suitcase": "baggage.n.01",
    }
    for name, kind in expected.items():
        assert kind in above(COCO_SYNSETS[name]), name


def test_coco_instances_all_resolve(shared_data: Path) -> None:
    folder = shared_data / "coco_val2017_1k"
    dataset = read_coco(folder / "captions.json", folder / "instances.json")
    assert dataset.objects is not None
    assert set(dataset.objects["name"]) <= set(COCO_SYNSETS)
    objects = image_objects(dataset)
    assert len(objects) == dataset.objects.height
    assert objects.concepts.min() >= 0
    assert np.nanmax(objects.areas) <= 1.001
    assert np.nanmin(objects.areas) > 0
    table = concept_table(objects, range(999), range(1, 1000))
    assert table["CA"].is_between(0, 1).all()
    assert table["box_pairs"].sum() > 100


@pytest.mark.parametrize(
    ("name", "synset"),
    [
        ("Zebras", "zebra.n.01"),
        ("red fire truck", "fire_engine.n.01"),
        ("Dining  Table", "dining_table.n.01"),
        ("dining_table", "dining_table.n.01"),
        ("teddy bears", "teddy.n.01"),
        ("qwx", None),
        ("", None),
    ],
)
def test_what_a_name_means(name: str, synset: str | None) -> None:
    assert synset_of_name(name) == synset


# Annotations


def annotated(**columns: list[object]) -> Dataset:
    objects = pl.DataFrame(
        {"image": ["b", "a", "b"], "object": ["1", "2", "3"], "name": ["dog", "qwx", "mouse"], **columns}
    )
    images = pl.DataFrame({"image": ["a", "b", "c"], "width": [100, 10, 5], "height": [50, 20, 5]})
    captions = pl.DataFrame({"caption": ["1"], "image": ["a"], "text": ["Two black dogs and a bike."]})
    return Dataset("three", images, captions, objects)


def test_objects_lie_by_image_in_their_order() -> None:
    objects = image_objects(
        annotated(
            synset=[None, None, "mouse.n.01"],
            x=[1, None, 0],
            y=[2, None, 0],
            w=[4, None, 10],
            h=[5, None, 20],
            attributes=[["red", "big"], None, []],
        )
    )
    assert objects.image_ids == ("a", "b", "c")
    assert objects.offsets.tolist() == [0, 1, 3, 3]
    assert objects.names == ("qwx", "dog", "mouse")
    assert objects.ids == ("2", "1", "3")
    assert [objects.synset(index) for index in range(3)] == [None, "dog.n.01", "mouse.n.01"]
    assert objects.areas[1:].tolist() == [0.1, 1.0]
    assert np.isnan(objects.areas[0])
    assert np.isnan(objects.boxes[0]).all()
    assert objects.boxes[1].tolist() == [1, 2, 4, 5]
    assert objects.attributes == ((), ("red", "big"), ())
    assert objects.source == "annotations"
    assert list(objects.inside(1)) == [1, 2]
    assert objects.rows(["c", "a"]).tolist() == [2, 0]
    assert len(set(objects.keys.tolist())) == 3


def test_areas_in_pixels_and_without_the_picture_size() -> None:
    dataset = annotated(x=[1, 0, 0], y=[2, 0, 0], w=[4, 3, 2], h=[5, 3, 2])
    assert image_objects(dataset, areas="pixels").areas.tolist() == [9, 20, 4]
    bare = Dataset("three", dataset.images.select("image"), dataset.captions, dataset.objects)
    assert np.isnan(image_objects(bare).areas).all()
    assert not np.isnan(image_objects(bare, areas="pixels").areas).any()
    with pytest.raises(UsageError, match="areas"):
        image_objects(dataset, areas="inches")


def test_a_crowd_is_one_object_without_a_size() -> None:
    objects = image_objects(annotated(x=[1, 0, 0], y=[2, 0, 0], w=[4, 3, 2], h=[5, 3, 2], iscrowd=[1, 0, None]))
    assert np.isnan(objects.areas).tolist() == [False, True, False]
    assert not np.isnan(objects.boxes).any()


def test_a_bad_synset_names_its_object() -> None:
    with pytest.raises(InputError, match=r"object '3' of image 'b'.*mouse.n.99"):
        image_objects(annotated(synset=[None, None, "mouse.n.99"]))


def test_a_dataset_without_objects() -> None:
    dataset = Dataset.of({"a": ["A dog."]})
    with pytest.raises(InputError, match="has no objects"):
        image_objects(dataset)


def test_scenes_have_synsets_boxes_and_colours(tmp_path: Path) -> None:
    objects = objects_of(write_scenes(tmp_path / "scenes", 6, seed=1))
    assert objects.source == "annotations"
    assert objects.concepts.min() >= 0
    assert (objects.areas > 0).all()
    table = concept_table(objects, [0, 0], [0, 1])
    assert table["CA"][0] == 1
    assert table["SD"][0] == 0
    assert table["attribute_agreement"][0] == 1


def test_visual_genome_brings_its_synsets(tmp_path: Path) -> None:
    box = {"x": 1, "y": 2, "w": 30, "h": 20}
    things = [
        {"object_id": 1, "names": ["mouse"], "synsets": ["mouse.n.01"], **box},
        {"object_id": 2, "names": ["automobile"], "synsets": ["automobile.n.01"], **box},
        {"object_id": 3, "names": ["green hedge"], "synsets": [], **box},
    ]
    attributes = [{"image_id": 7, "attributes": [things[1] | {"attributes": ["light blue"]}]}]
    contents = {
        "image_data": [{"image_id": 7, "width": 60, "height": 20}],
        "objects": [{"image_id": 7, "objects": things}],
        "attributes": attributes,
    }
    for name, content in contents.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    objects = image_objects(read_visual_genome(tmp_path))
    assert [objects.synset(index) for index in range(3)] == ["mouse.n.01", "car.n.01", "hedge.n.01"]
    assert objects.areas.tolist() == [0.5] * 3
    assert objects.attributes[1] == ("light blue",)


# Captions


def test_captions_stand_in_for_annotations() -> None:
    dataset = Dataset.of(
        {
            "one": ["Two black dogs chase a red bicycle.", "Dogs near a bicycle with a wheel."],
            "two": ["A dog sleeps on a sofa."],
        }
    )
    objects = objects_of(dataset)
    assert objects.source == "captions"
    assert np.isnan(objects.boxes).all()
    assert np.isnan(objects.areas).all()
    first = [objects.synset(index) for index in objects.inside(0)]
    assert sorted(map(str, first)) == ["bicycle.n.01", "dog.n.01", "dog.n.01", "wheel.n.01"]
    words = {objects.synset(index): objects.attributes[index] for index in objects.inside(0)}
    assert "black" in words["dog.n.01"]
    assert "red" in words["bicycle.n.01"]
    row = concept_table(objects, [0], [1]).row(0, named=True)
    assert (row["CA"], row["CE"], row["SD"]) == (1 / 3, 1, None)
    assert caption_objects(annotated()).source == "captions"


def test_synsets_are_called_what_annotators_call_them() -> None:
    names = ("fire hydrant", "fire hydrant", "hydrant", "bat", "bat", "nothing known")
    synsets = ("fireplug.n.01", "fireplug.n.01", "fireplug.n.01", "bat.n.01", "bat.n.05", None)
    boxes = np.full((len(names), 4), np.nan)
    objects = ImageObjects.of(("a",), [len(names)], names, synsets, boxes, boxes[:, 0], [()] * len(names))
    assert objects.names_of_synsets() == {"fireplug.n.01": "fire hydrant"}
    assert replace(objects, source="captions").names_of_synsets() == {}

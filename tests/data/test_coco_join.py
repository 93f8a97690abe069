"""Visual Genome and COCO joined by ``coco_id``: files written to both formats, against loops over them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import crosslens as cl
from crosslens.cli import main
from crosslens.core import InputError
from crosslens.encode import text_queries
from crosslens.values import Dataset
from tests.data.files import visual_genome, write_json


def coco_file(file: Path, captions: list[tuple[int, int, str]], images: list[int]) -> Path:
    """A COCO captions file with these images, and captions (id, image, text)."""
    content = {
        "images": [{"id": image, "file_name": f"{image:012}.jpg", "width": 10, "height": 10} for image in images],
        "annotations": [{"id": number, "image_id": image, "caption": text} for number, image, text in captions],
    }
    write_json(file, content)
    return file


def genome_images(coco_ids: list[int | None]) -> dict[str, Any]:
    """The content of Visual Genome's files for images 1, 2, 3 …, each with an object."""
    numbers = range(1, len(coco_ids) + 1)
    return {
        "image_data": [
            {"image_id": n, "url": f"https://x.org/VG_100K/{n}.jpg", "width": 8, "height": 6, "coco_id": coco}
            for n, coco in zip(numbers, coco_ids, strict=True)
        ],
        "region_descriptions": [
            {"id": n, "regions": [{"region_id": 1000 + n, "phrase": f"region {n}", "x": 0, "y": 0, "width": 1,
                                   "height": 1}]} for n in numbers
        ],
        "objects": [
            {"image_id": n, "objects": [{"object_id": 10 + n, "names": ["dog"], "synsets": ["dog.n.01"], "x": 0, "y": 0,
                                         "w": 2, "h": 2}]} for n in numbers
        ],
        "attributes": None,
        "relationships": [
            {"image_id": n, "relationships": [{"predicate": "ON",
                "subject": {"object_id": 10 + n, "names": ["dog"], "x": 0, "y": 0, "w": 2, "h": 2},
                "object": {"object_id": 900 + n, "names": ["mat"], "x": 0, "y": 0, "w": 1, "h": 1}}]} for n in numbers
        ],
    }  # fmt: skip


def test_the_join_is_that_of_loops(tmp_path: Path) -> None:
    draw = random.Random(5)
    coco_images = draw.sample(range(100, 200), 30)
    captions = [(5000 + n, draw.choice(coco_images[:25]), f"caption {n} of an image") for n in range(60)]
    coco_ids = [draw.choice([None, *coco_images[10:], 7, 8, 9]) for _ in range(20)]
    folder = visual_genome(tmp_path / "vg", **genome_images(coco_ids))
    half = len(captions) // 2
    coco = tmp_path / "coco"
    coco_file(coco / "captions_train2017.json", captions[:half], coco_images)
    coco_file(coco / "captions_val2017.json", captions[half:], coco_images)
    joined = cl.load_dataset("visual_genome", folder=folder, coco_captions=coco)

    expected, used, unlinked, absent, repeated = {}, set(), 0, 0, 0
    described = {image for _, image, _ in captions}
    for number, coco_id in enumerate(coco_ids, start=1):
        if coco_id is None:
            unlinked += 1
        elif coco_id not in described:
            absent += 1
        elif coco_id in used:
            repeated += 1
        else:
            used.add(coco_id)
            expected[str(number)] = {(str(n), text) for n, image, text in captions if image == coco_id}
    assert min(unlinked, absent, repeated, len(expected)) > 0, "the draw has every case"
    captions_of: dict[str, set[tuple[str, str]]] = {image: set() for image in joined.image_ids}
    for caption, image, text in joined.captions.select("caption", "image", "text").iter_rows():
        captions_of[image].add((caption, text))
    assert captions_of == expected
    assert joined.objects is not None
    assert joined.relations is not None
    assert set(joined.objects["image"]) == set(joined.relations["image"]) == set(expected)
    dogs = joined.objects.filter(joined.objects["name"] == "dog")
    assert set(dogs["synset"]) == {"dog.n.01"}
    assert joined.card.notes == (
        f"{len(expected)} images of Visual Genome have captions in COCO. Left out: {unlinked} images of Visual Genome "
        f"have no coco_id; {absent} have a coco_id without captions here; {repeated} repeat the coco_id of an earlier "
        f"image; {len(described) - len(expected)} captioned images of COCO are not in Visual Genome"
    )


def test_a_complete_join_has_nothing_to_leave_out(tmp_path: Path) -> None:
    folder = visual_genome(tmp_path / "vg", **genome_images([3, 4]))
    coco = coco_file(tmp_path / "captions.json", [(1, 4, "four"), (2, 3, "three")], [3, 4])
    joined = cl.load_dataset("visual_genome", folder=folder, coco_captions=coco)
    assert joined.card.notes == "2 images of Visual Genome have captions in COCO"
    assert dict(zip(joined.captions["image"], joined.texts, strict=True)) == {"1": "three", "2": "four"}
    # The regions of the same images are a text set of their own, under the same ids.
    assert cl.load_dataset("visual_genome", folder=folder).image_ids == joined.image_ids


def test_captions_ask_for_the_regions_of_the_shared_images(tmp_path: Path) -> None:
    """EXPL's two text sets: COCO's captions and Visual Genome's regions, with the objects of the images."""
    folder = visual_genome(tmp_path / "vg", **genome_images([None, 4, 3, None]))
    coco = coco_file(tmp_path / "captions.json", [(1, 4, "four"), (2, 3, "three"), (5, 3, "two more.")], [3, 4])
    regions = cl.load_dataset("visual_genome", folder=folder)
    joined = cl.load_dataset("visual_genome", folder=folder, coco_captions=coco)
    texts = text_queries(regions, "mean", joined, shared_images=True)
    assert texts.corpus.texts == ("region 2", "region 3")
    assert dict(zip(texts.dataset.caption_ids, texts.dataset.texts, strict=True)) == {
        "2": "four.", "3": "three. two more.",
    }  # fmt: skip
    assert texts.dataset.objects is not None
    assert set(texts.dataset.objects["image"]) == {"2", "3"}
    assert texts.notes == ("2 of 4 images of the corpus have no query, and are left out",)


def test_what_cannot_be_joined(tmp_path: Path) -> None:
    folder = visual_genome(tmp_path / "vg", **genome_images([None, 4]))
    coco_without_image = coco_file(tmp_path / "other.json", [(1, 5, "five")], [5])
    with pytest.raises(InputError, match="no coco_id of Visual Genome's 2 images has captions here"):
        cl.load_dataset("visual_genome", folder=folder, coco_captions=coco_without_image)
    with pytest.raises(InputError, match="no captions_"):
        cl.load_dataset("visual_genome", folder=folder, coco_captions=tmp_path)
    for name in ("captions_val2014.json", "captions_val2017.json"):
        coco_file(tmp_path / "both" / name, [(1, 4, "four")], [4])
    with pytest.raises(InputError, match="duplicate caption id '1'"):
        cl.load_dataset("visual_genome", folder=folder, coco_captions=tmp_path / "both")
    without = genome_images([1])["image_data"]
    del without[0]["coco_id"]
    bare = visual_genome(tmp_path / "bare", **{**genome_images([1]), "image_data": without})
    with pytest.raises(InputError, match="no image has a coco_id"):
        cl.load_dataset("visual_genome", folder=bare, coco_captions=tmp_path / "both" / "captions_val2014.json")


def test_convert_says_what_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = visual_genome(tmp_path / "vg", **genome_images([None, 4]))
    coco = coco_file(tmp_path / "captions.json", [(1, 4, "four"), (2, 5, "five")], [4, 5])
    words = ["data", "convert", "visual_genome", str(tmp_path / "joined"), "-D", f"folder={folder}"]
    with pytest.raises(SystemExit) as end:
        raise SystemExit(main([*words, "-D", f"coco_captions={coco}", "--json"]))
    printed = capsys.readouterr()
    assert not end.value.code
    assert json.loads(printed.out)["notes"][0].startswith(
        "1 images of Visual Genome have captions in COCO. Left out: 1"
    )
    assert Dataset.load(tmp_path / "joined").texts == ("four",)

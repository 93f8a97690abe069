"""Names people know: each resolves from a small folder of the true layout, and says what to get where it is absent."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crosslens as cl
from crosslens.core import InputError, UnknownNameError, UsageError
from crosslens.data import (
    KNOWN,
    READERS,
    find_known,
    image_files,
    is_known,
    look_for_known,
    path_options,
    reader_options,
    where_to_get,
)
from tests.tables import rest_slow


def put(file: Path, content: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    if file.suffix == ".gz":
        file.write_bytes(gzip.compress(text.encode()))
    elif file.suffix == ".jpg":
        file.write_bytes(b"\xff\xd8")
    else:
        file.write_text(text, encoding="utf-8")


def karpathy(folder: str, cocoid: bool) -> dict[str, Any]:
    """Two test images and one of another split, as in ``dataset_*.json``."""
    images = []
    for number, split in enumerate(("test", "test", "train")):
        name = f"COCO_val2014_{number:012}.jpg" if cocoid else f"{number}.jpg"
        sentences = [{"raw": f"a caption {number}", "sentid": 10 + number, "tokens": [], "imgid": number}]
        row = {"filename": name, "split": split, "imgid": number, "sentences": sentences, "sentids": [10 + number]}
        images.append({**row, "filepath": folder, "cocoid": number} if cocoid else row)
    return {"images": images, "dataset": "coco" if cocoid else "flickr30k"}


def coco_karpathy(root: Path) -> None:
    put(root / "coco" / "dataset_coco.json", karpathy("val2014", cocoid=True))
    for number in (0, 1):
        put(root / "coco" / "val2014" / f"COCO_val2014_{number:012}.jpg", "")


def coco_val2017(root: Path) -> None:
    images = [{"id": number, "file_name": f"{number:012}.jpg"} for number in (0, 1)]
    annotations = [{"id": 10 + number, "image_id": number, "caption": "a cat"} for number in (0, 1)]
    put(root / "coco/annotations/captions_val2017.json", {"images": images, "annotations": annotations})
    boxes = [{"id": 5, "image_id": 0, "category_id": 3, "bbox": [0, 0, 2, 2]}]
    put(
        root / "coco/annotations/instances_val2017.json",
        {"images": images, "annotations": boxes, "categories": [{"id": 3, "name": "cat"}]},
    )
    for number in (0, 1):
        put(root / "coco" / "val2017" / f"{number:012}.jpg", "")


def flickr30k(root: Path) -> None:
    put(root / "flickr30k" / "dataset_flickr30k.json", karpathy("", cocoid=False))
    for number in (0, 1):
        put(root / "flickr30k" / "flickr30k-images" / f"{number}.jpg", "")


def flickr8k(root: Path) -> None:
    lines = [f"{number}.jpg#0\ta dog {number}" for number in range(3)]
    put(root / "flickr8k" / "Flickr8k.token.txt", "\n".join(lines) + "\n")
    put(root / "flickr8k" / "Flickr_8k.testImages.txt", "0.jpg\n1.jpg\n")
    for number in (0, 1):
        put(root / "flickr8k" / "Flicker8k_Dataset" / f"{number}.jpg", "")


def coco_fg(root: Path) -> None:
    content = {f"COCO_val2014_{number:012}": ["a finer caption"] for number in (0, 1)}
    put(root / "MSCOCO-Flikcr30K_FG" / "Annotations" / "MSCOCO_FG_ann.json", content)


def visual_genome(root: Path) -> None:
    put(root / "visual-genome/image_data.json", [{"image_id": n, "width": 9, "height": 9} for n in (0, 1)])
    regions = [
        {
            "id": n,
            "regions": [{"region_id": n, "image_id": n, "phrase": "a cat", "x": 0, "y": 0, "width": 1, "height": 1}],
        }
        for n in (0, 1)
    ]
    put(root / "visual-genome/region_descriptions.json", regions)


def sugar_crepe(root: Path) -> None:
    cases = {"0": {"filename": "1.jpg", "caption": "a cat", "negative_caption": "a dog"}}
    for kind in ("add_att", "add_obj", "replace_att", "replace_obj", "replace_rel", "swap_att", "swap_obj"):
        put(root / "sugar-crepe" / f"{kind}.json", cases)
    put(root / "coco" / "val2017" / "1.jpg", "")


def winoground(root: Path) -> None:
    row = {"id": 0, "image_0": "ex_0_img_0", "image_1": "ex_0_img_1", "caption_0": "a b", "caption_1": "b a"}
    put(root / "winoground" / "data" / "examples.jsonl", json.dumps({**row, "tag": "x"}) + "\n")
    put(root / "winoground" / "data" / "images" / "ex_0_img_0.png", "x")


def aro(kind: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        box = {f"bbox_{side}": 1 for side in "xywh"}
        case = {"image_path": "1.jpg", "true_caption": "a on b", "false_caption": "b on a", **box}
        label = {"relation_name": "on"} if kind == "relation" else {"attributes": ["red", "blue"]}
        put(root / "aro" / f"visual_genome_{kind}.json", [{**case, **label}])

    return make


def built(folder: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        cl.Dataset.of({"a": ["x"], "b": ["y"]}).save(root / folder)

    return make


LAYOUTS: dict[str, Callable[[Path], None]] = {
    **dict.fromkeys(("coco-karpathy-5k", "coco-karpathy-1k", "eccv", "cxc"), coco_karpathy),
    "coco-val2017": coco_val2017,
    "flickr30k": flickr30k,
    "flickr8k": flickr8k,
    "coco-fg": coco_fg,
    "visual-genome": visual_genome,
    "sugar-crepe": sugar_crepe,
    "winoground": winoground,
    "aro-relation": aro("relation"),
    "aro-attribution": aro("attribution"),
    **{f"recos-{version}": built(f"recos/{version}") for version in ("v0", "v1", "v2")},
    "imp": built("imp/dataset"),
}
RETRIEVAL = [name for name, entry in KNOWN.items() if entry.purpose == "retrieval"]
CASES = [name for name, entry in KNOWN.items() if entry.purpose == "hard negatives"]
WITH_PICTURES = ("coco-karpathy-5k", "coco-val2017", "flickr30k", "flickr8k")


def test_every_name_has_a_layout_here_and_no_reader_is_called_the_same() -> None:
    assert set(LAYOUTS) == set(KNOWN)
    assert not set(KNOWN) & set(READERS.names())


@pytest.mark.parametrize("name", RETRIEVAL)
def test_a_dataset_is_loaded_by_its_name(name: str, tmp_path: Path) -> None:
    assert look_for_known(name, tmp_path) is None
    LAYOUTS[name](tmp_path)
    dataset = cl.load_dataset(name, data_folder=tmp_path)
    assert len(dataset.image_ids) == 2, "of the test split only"
    assert dataset.name == (KNOWN[name].called or name)
    assert dataset.card.licence == KNOWN[name].licence
    if KNOWN[name].images:
        assert dataset.card.notes == f"{name} has {KNOWN[name].images:,} images, and this copy 2"


@pytest.mark.parametrize("name", CASES)
def test_hard_negatives_are_loaded_by_their_name(name: str, tmp_path: Path) -> None:
    from crosslens.analyze import load_hard_negatives

    LAYOUTS[name](tmp_path)
    files = find_known(name, tmp_path)
    assert len(load_hard_negatives(files.path).dataset.caption_ids) >= 2
    with pytest.raises(UsageError, match=f"{name} is a set of hard negatives"):
        cl.load_dataset(name, data_folder=tmp_path)


@pytest.mark.parametrize("name", WITH_PICTURES)
def test_pictures_are_found_without_being_named(name: str, tmp_path: Path) -> None:
    LAYOUTS[name](tmp_path)
    files = image_files(cl.load_dataset(name, data_folder=tmp_path))
    assert all(Path(file).is_file() for file in files)


def test_pictures_of_sugar_crepe_are_those_of_coco(tmp_path: Path) -> None:
    sugar_crepe(tmp_path)
    pictures = find_known("sugar-crepe", tmp_path).pictures
    assert pictures is not None
    assert (pictures / "1.jpg").is_file()


def test_boxes_come_along_where_they_are_there(tmp_path: Path) -> None:
    coco_val2017(tmp_path)
    assert cl.load_dataset("coco-val2017", data_folder=tmp_path).objects is not None
    (tmp_path / "coco/annotations/instances_val2017.json").unlink()
    assert cl.load_dataset("coco-val2017", data_folder=tmp_path).objects is None


def test_other_forms(tmp_path: Path) -> None:
    """BLIP's annotations, compressed files, and a data folder that is the dataset's own."""
    rows = [{"image": f"val2014/COCO_val2014_{number:012}.jpg", "caption": ["x", "y"]} for number in (4, 5)]
    put(tmp_path / "a" / "coco" / "coco_karpathy_test.json", rows)
    assert cl.load_dataset("coco-karpathy-5k", data_folder=tmp_path / "a").image_ids == ("4", "5")
    assert look_for_known("eccv", tmp_path / "a") is None, "its captions have no COCO ids, which judgements name"
    put(tmp_path / "b" / "dataset_flickr30k.json.gz", karpathy("", cocoid=False))
    assert len(cl.load_dataset("flickr30k", data_folder=tmp_path / "b").image_ids) == 2


def test_where_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    coco_karpathy(tmp_path / "data")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("CROSSLENS_DATA", raising=False)
    assert look_for_known("coco-karpathy-5k") is None
    monkeypatch.setenv("CROSSLENS_DATA", str(tmp_path / "data"))
    files = find_known("coco-karpathy-5k")
    assert (files.root, files.reader, files.options["split"]) == (tmp_path / "data", "karpathy", "test")
    flickr8k(tmp_path / "here")
    assert find_known("flickr8k").root == Path(), "the current folder, too"
    assert look_for_known("flickr8k", tmp_path / "data") is None, "a folder that is named is the only one"


@pytest.mark.parametrize("name", list(KNOWN))
def test_what_is_missing_is_named_with_address_path_and_licence(name: str, tmp_path: Path) -> None:
    entry = KNOWN[name]
    with pytest.raises(InputError) as caught:
        find_known(name, tmp_path)
    message = str(caught.value)
    assert f"the dataset {name} ({entry.title}) is not in {tmp_path}" in message
    assert f"licence: {entry.licence}" in message
    for part in entry.downloads:
        assert part.source in message
        assert all(str(tmp_path / path) in message for path in part.to)
    assert re.search(r"https?://|crosslens build ", message)


@pytest.mark.parametrize("name", list(KNOWN))
def test_following_the_instructions_is_enough(name: str, tmp_path: Path) -> None:
    """The files that downloads name are those that the first form of the dataset looks for."""
    entry = KNOWN[name]
    form = entry.forms[0]
    targets = {path for part in entry.downloads for path in part.to}
    for option, file in form.files.items():
        wanted = Path(form.folders[0]) / file
        assert option in form.optional or str(wanted) in targets or str(wanted.parent) in targets, wanted
    assert where_to_get(entry, tmp_path)[-1] == f"licence: {entry.licence}"


def test_addresses_are_secure_where_the_host_offers_it() -> None:
    # images.cocodataset.org has a certificate of another name; COCO itself writes http.
    plain = {source for entry in KNOWN.values() for part in entry.downloads for source in [part.source]}
    assert all("http://" not in source or "http://images.cocodataset.org/" in source for source in plain)


def test_options_of_the_reader(tmp_path: Path) -> None:
    coco_karpathy(tmp_path)
    dataset = cl.load_dataset("coco-karpathy-5k", data_folder=tmp_path, split="train")
    assert (dataset.image_ids, dataset.name) == (("2",), "coco/train")
    assert {"captions", "split", "data_folder"} <= set(reader_options("coco-karpathy-5k"))
    assert path_options("coco-karpathy-5k", {"data_folder": "x", "split": "test"}) == {"data_folder"}
    with pytest.raises(UnknownNameError, match="did you mean flickr30k"):
        cl.load_dataset("flicker30k")


def test_a_saved_dataset_of_that_name_is_meant_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flickr30k").mkdir()
    assert is_known("flickr30k"), "a folder of photos is no dataset"
    cl.Dataset.of({"mine": ["x"]}).save(tmp_path / "flickr30k")
    assert not is_known("flickr30k")
    assert cl.load_dataset("flickr30k").image_ids == ("mine",)


@pytest.mark.parametrize(
    ("name", "images", "captions"),
    rest_slow(
        [
            ("coco-karpathy-5k", 5000, 25000),
            ("flickr8k", 1000, 5000),
            ("eccv", 5000, 25000),
            ("coco-val2017", 4339, 21707),
        ]
    ),
)
def test_real_ones(shared_data: Path, name: str, images: int, captions: int) -> None:
    dataset = cl.load_dataset(name, data_folder=shared_data)
    assert (len(dataset.image_ids), len(dataset.caption_ids)) == (images, captions)


def test_the_real_sugar_crepe(shared_data: Path) -> None:
    from crosslens.analyze import load_hard_negatives

    assert len(load_hard_negatives(find_known("sugar-crepe", shared_data).path).dataset.caption_ids) == 2 * 7511

"""Every reader on a file of its kind: what it finds, in which order, under which ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crosslens.data import load_dataset, read_precomputed
from crosslens.values import Dataset
from tests.data import files
from tests.data.files import write, write_json, write_tar


def captions_of(dataset: Dataset) -> list[tuple[str, str, str]]:
    return dataset.captions.select("caption", "image", "text").rows()


class TestCoco:
    def test_images_keep_the_order_of_the_file_and_their_columns(self, tmp_path: Path) -> None:
        dataset = load_dataset("coco", captions=write_json(tmp_path / "captions.json.gz", files.coco()))
        assert dataset.image_ids == ("9", "25")
        assert dataset.images["file"].to_list() == ["000000000009.jpg", "000000000025.jpg"]
        assert dataset.images.columns == ["image", "file", "width", "height", "scene"]
        assert captions_of(dataset)[1] == ("102", "9", "Trays of food.\n")

    def test_instances_become_objects(self, tmp_path: Path) -> None:
        dataset = load_dataset(
            "coco",
            captions=write_json(tmp_path / "captions.json", files.coco()),
            instances=write_json(tmp_path / "instances.json", files.instances()),
        )
        assert dataset.objects is not None
        objects = dataset.objects.select("image", "object", "name", "x", "y", "w", "h", "iscrowd").rows()
        assert objects == [
            ("25", "1", "giraffe", 1.5, 2.0, 30.0, 40.0, 0),
            ("9", "2", "bowl", 0.0, 0.0, 10.0, 10.0, 1),
            ("9", "3", "bowl", None, None, None, None, 0),  # a box without height is no box
        ]

    def test_a_folder_and_a_split_name_the_files(self, tmp_path: Path) -> None:
        write_json(tmp_path / "captions_val2017.json", files.coco())
        write_json(tmp_path / "instances_val2017.json.gz", files.instances())
        dataset = load_dataset("coco", captions=tmp_path, instances=tmp_path, split="val2017")
        assert dataset.name == "coco/val2017"
        assert dataset.objects is not None
        assert dataset.objects.height == 3

    def test_split_of_a_single_file_filters_images(self, tmp_path: Path) -> None:
        content = files.coco()
        content["images"][0]["split"], content["images"][1]["split"] = "val", "test"
        dataset = load_dataset("coco", captions=write_json(tmp_path / "c.json", content), split="test")
        assert dataset.image_ids == ("25",)
        assert dataset.caption_ids == ("101", "103")

    def test_real_file(self, shared_data: Path) -> None:
        folder = shared_data / "coco_val2017"
        dataset = load_dataset("coco", captions=folder / "captions.json.gz", instances=folder / "instances.json.gz")
        assert (len(dataset.image_ids), len(dataset.caption_ids)) == (4339, 21707)
        assert sorted(dataset.images["file"]) == (folder / "names.txt").read_text().split()
        assert dataset.objects is not None
        assert (dataset.objects.height, dataset.objects["name"].n_unique()) == (32293, 80)
        assert dataset.objects["x"].null_count() == 1


class TestKarpathy:
    def test_all_splits(self, tmp_path: Path) -> None:
        dataset = load_dataset("karpathy", captions=write_json(tmp_path / "dataset_coco.json", files.karpathy()))
        assert dataset.name == "coco"
        assert dataset.image_ids == ("500", "501", "502")
        assert dataset.images["split"].to_list() == ["test", "restval", "train"]
        assert dataset.images["file"][0] == "val2014/COCO_val2014_000000000000.jpg"
        assert captions_of(dataset)[:2] == [("0", "500", "A red bus."), ("1", "500", "The bus is red.")]

    def test_restval_counts_as_training_when_asked(self, tmp_path: Path) -> None:
        file = write_json(tmp_path / "dataset_coco.json", files.karpathy())
        assert load_dataset("karpathy", captions=file, split="train").image_ids == ("502",)
        assert load_dataset("karpathy", captions=file, split="train", restval=True).image_ids == ("501", "502")
        assert load_dataset("karpathy", captions=file, split="test").name == "coco/test"

    def test_flickr_images_are_called_by_their_file(self, tmp_path: Path) -> None:
        content = files.karpathy()
        content["dataset"] = "flickr30k"
        for image in content["images"]:
            del image["cocoid"], image["filepath"]
        file = write_json(tmp_path / "dataset_flickr30k.json", content)
        dataset = load_dataset("karpathy", captions=file, split="test")
        assert dataset.image_ids == ("COCO_val2014_000000000000.jpg",)
        assert load_dataset("karpathy", captions=file, image_key="imgid").image_ids == ("0", "1", "2")


class TestFlickr:
    TOKENS = 'a.jpg#0\tA dog .\na.jpg#1\tThe dog runs , fast .\nb#c.jpg.1#0\tA "big" cat\r\n'

    def test_only_the_last_hash_counts(self, tmp_path: Path) -> None:
        dataset = load_dataset("flickr", captions=write(tmp_path / "Flickr8k.token.txt", self.TOKENS))
        assert dataset.name == "Flickr8k"
        assert dataset.image_ids == ("a.jpg", "b#c.jpg.1")
        assert captions_of(dataset)[2] == ("b#c.jpg.1#0", "b#c.jpg.1", 'A "big" cat')

    def test_a_list_gives_the_images_and_their_order(self, tmp_path: Path) -> None:
        tokens = write(tmp_path / "t.token", self.TOKENS + "z.jpg#0\tA zebra\n")
        listed = write(tmp_path / "test.txt", "z\n\na.jpg\n")
        dataset = load_dataset("flickr", captions=tokens, images=listed)
        assert dataset.image_ids == ("z.jpg", "a.jpg")
        assert dataset.caption_ids == ("z.jpg#0", "a.jpg#0", "a.jpg#1")

    @pytest.mark.slow  # test_known reads the same files
    def test_real_file(self, shared_data: Path) -> None:
        folder = shared_data / "flickr8k"
        dataset = load_dataset("flickr", captions=folder / "Flickr8k.token.txt")
        assert (len(dataset.image_ids), len(dataset.caption_ids)) == (8092, 40460)
        assert "2258277193_586949ec62.jpg.1" in dataset.image_ids
        listed = folder / "Flickr_8k.testImages.txt"
        test = load_dataset("flickr", captions=folder / "Flickr8k.token.txt", images=listed)
        assert test.image_ids == tuple(listed.read_text().split())
        assert len(test.caption_ids) == 5000


class TestKaggleCsv:
    def test_comma_table_with_and_without_quotes(self, tmp_path: Path) -> None:
        rows = 'image,caption\na.jpg,"A dog, running ."\na.jpg,A dog, a cat , and a bird\nb.jpg,"He says ""hi"" ."\n'
        dataset = load_dataset("csv", captions=write(tmp_path / "captions.txt", rows))
        assert captions_of(dataset) == [
            ("a.jpg#0", "a.jpg", "A dog, running ."),
            ("a.jpg#1", "a.jpg", "A dog, a cat , and a bird"),
            ("b.jpg#0", "b.jpg", 'He says "hi" .'),
        ]

    def test_pipe_table_with_the_line_that_lost_its_mark(self, tmp_path: Path) -> None:
        rows = "image_name| comment_number| comment\n1.jpg| 0| A man | or two .\n1.jpg| 4   A dog runs .\n"
        dataset = load_dataset("csv", captions=write(tmp_path / "results.csv", rows))
        assert captions_of(dataset) == [
            ("1.jpg#0", "1.jpg", "A man | or two ."),
            ("1.jpg#4", "1.jpg", "A dog runs ."),
        ]
        assert load_dataset(tmp_path / "results.csv").caption_ids == dataset.caption_ids


class TestPrecomputed:
    def folder(self, tmp_path: Path, rows: np.ndarray, captions: int = 10) -> Path:
        np.save(tmp_path / "test_ims.npy", rows)
        write(tmp_path / "test_caps.txt", "".join(f"caption {n}\n" for n in range(captions)))
        return tmp_path

    def test_one_row_per_image(self, tmp_path: Path) -> None:
        rows = np.arange(6, dtype=np.float32).reshape(2, 3)
        dataset, embeddings = read_precomputed(self.folder(tmp_path, rows), "test")
        assert dataset.image_ids == embeddings.ids == ("0", "1")
        assert dataset.caption_ids[4:6] == ("0#4", "1#0")
        np.testing.assert_array_equal(embeddings.vectors, rows)

    def test_rows_repeated_per_caption_are_counted_once(self, tmp_path: Path) -> None:
        rows = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
        folder = self.folder(tmp_path, np.repeat(rows, 5, axis=0))
        write(folder / "test_ids.txt", "".join(f"{name}\n" for name in ["x.jpg"] * 5 + ["y.jpg"] * 5))
        dataset, embeddings = read_precomputed(folder, "test")
        assert dataset.image_ids == ("x.jpg", "y.jpg")
        np.testing.assert_array_equal(embeddings.vectors, rows)
        assert embeddings.kind == "multi"
        assert load_dataset("precomputed", folder=folder, split="test").texts == dataset.texts

    def test_one_caption_per_image(self, tmp_path: Path) -> None:
        folder = self.folder(tmp_path, np.random.default_rng(0).random((10, 3)))
        dataset = load_dataset("precomputed", folder=folder, split="test", captions_per_image=1)
        assert len(dataset.image_ids) == 10

    def test_real_features(self, shared_data: Path, tmp_path: Path) -> None:
        """The real photo features of Flickr8k's test split in this layout, N and 5N rows: the same dataset."""
        names = (shared_data / "flickr8k/features/names.txt").read_text().split()
        flickr = load_dataset(
            "flickr",
            captions=shared_data / "flickr8k/Flickr8k.token.txt",
            images=shared_data / "flickr8k/Flickr_8k.testImages.txt",
        )
        features = np.load(shared_data / "flickr8k/features/efficientnet_lite0_global.npy", mmap_mode="r")
        row_of = {name: row for row, name in enumerate(names)}
        rows = features[[row_of[name] for name in flickr.image_ids]]
        for split, array in (("test", rows), ("dev", np.repeat(rows, 5, axis=0))):
            np.save(tmp_path / f"{split}_ims.npy", array)
            write(tmp_path / f"{split}_caps.txt", "".join(f"{text}\n" for text in flickr.texts))
        once, vectors = read_precomputed(tmp_path, "test")
        again, same = read_precomputed(tmp_path, "dev")
        assert [text.strip() for text in flickr.texts] == list(once.texts) == list(again.texts)
        assert vectors.vectors.shape == (1000, 1280)
        np.testing.assert_array_equal(vectors.vectors, same.vectors)


class TestVisualGenome:
    def test_regions_objects_attributes_relations(self, tmp_path: Path) -> None:
        dataset = load_dataset("visual_genome", folder=files.visual_genome(tmp_path))
        assert dataset.images.select("image", "file", "width").rows()[1] == ("2", "VG_100K_2/2.jpg", 640)
        assert captions_of(dataset)[2] == ("102", "2", "an empty street")
        assert dataset.captions.select("x", "y", "width", "height").row(0) == (3, 4, 50, 60)
        assert dataset.objects is not None
        assert dataset.relations is not None
        assert dataset.objects.select("object", "name", "synset", "attributes").rows() == [
            ("11", "tree", "tree.n.01", ["green", "tall"]),
            ("12", "man", "man.n.01", None),
            ("14", "shade", None, None),  # only a relationship mentions it
        ]
        assert dataset.relations.select("image", "subject", "predicate", "object").rows() == [
            ("1", "12", "NEAR", "11"),  # named by the id it had before it was merged
            ("1", "12", "IN", "14"),
        ]

    def test_parts_can_be_left_out(self, tmp_path: Path) -> None:
        folder = files.visual_genome(tmp_path, attributes=None, region_descriptions=None)
        dataset = load_dataset("visual_genome", folder=folder, relations=False)
        assert dataset.captions.is_empty()
        assert dataset.relations is None
        assert dataset.objects is not None
        assert dataset.objects["attributes"].null_count() == 2
        assert load_dataset("visual_genome", folder=folder, objects=False, relations=False).objects is None

    def test_empty_regions_can_be_skipped(self, tmp_path: Path) -> None:
        regions = [{"id": 1, "regions": [{"region_id": 1, "phrase": " "}, {"region_id": 2, "phrase": "a dog"}]}]
        folder = files.visual_genome(tmp_path, region_descriptions=regions)
        assert load_dataset("visual_genome", folder=folder, skip_empty=True).caption_ids == ("2",)


class TestWebdataset:
    def test_text_and_json_members(self, tmp_path: Path) -> None:
        write_tar(
            tmp_path / "shard-00.tar",
            {"a/001.jpg": b"\xff", "a/001.txt": "A dog.\n", "a/001.json": '{"width": 32, "tags": [1]}', "x.cls": "3"},
        )
        write_tar(
            tmp_path / "shard-01.tar.gz",
            {"002.json": '{"captions": ["A cat.", "The cat."], "width": 64}', "002.seg.png": b"0", "002.PNG": b"0"},
        )
        dataset = load_dataset("webdataset", shards=tmp_path)
        assert dataset.images.rows() == [
            ("a/001", "shard-00.tar::a/001.jpg", 32),
            ("002", "shard-01.tar.gz::002.PNG", 64),
        ]
        assert captions_of(dataset) == [
            ("a/001#0", "a/001", "A dog."),
            ("002#0", "002", "A cat."),
            ("002#1", "002", "The cat."),
        ]

    def test_patterns(self, tmp_path: Path) -> None:
        for number in range(3):
            write_tar(tmp_path / f"s{number:02d}.tar", {f"{number}.jpg": b"", f"{number}.txt": f"text {number}"})
        assert load_dataset("webdataset", shards=f"{tmp_path}/*.tar").image_ids == ("0", "1", "2")
        assert load_dataset("webdataset", shards=f"{tmp_path}/s{{01..02}}.tar").image_ids == ("1", "2")
        assert load_dataset("webdataset", shards=tmp_path / "s00.tar").image_ids == ("0",)

    @pytest.mark.parametrize(
        ("pattern", "name"),
        [("*.tar", "wds"), ("part-*.tar", "part"), ("part-{0..0}.tar", "part"), ("?art-0.tar", "wds")],
    )
    def test_a_pattern_is_no_name(self, tmp_path: Path, pattern: str, name: str) -> None:
        (tmp_path / "wds").mkdir()
        write_tar(tmp_path / "wds" / "part-0.tar", {"1.jpg": b"", "1.txt": "A dog"})
        assert load_dataset("webdataset", shards=tmp_path / "wds" / pattern).name == name

    def test_text_key(self, tmp_path: Path) -> None:
        shard = write_tar(tmp_path / "s.tar", {"1.jpg": b"", "1.json": '{"alt": "A dog.", "caption": "wrong"}'})
        assert load_dataset("webdataset", shards=shard, text_key="alt").texts == ("A dog.",)


class TestFineGrained:
    def test_stems_and_coco_ids(self, tmp_path: Path) -> None:
        content = {"COCO_val2014_000000000042": ["A small red bus.", "A bus with two doors."], "COCO_val2014_7": ["x"]}
        file = write_json(tmp_path / "mscoco_fg.json", content)
        dataset = load_dataset("fine_grained", captions=file)
        assert dataset.image_ids == tuple(content)
        assert dataset.images["file"][0] == "COCO_val2014_000000000042.jpg"
        numbered = load_dataset("fine_grained", captions=file, coco_ids=True)
        assert captions_of(numbered)[1] == ("42#1", "42", "A bus with two doors.")

    def test_names_that_have_an_ending_keep_it(self, tmp_path: Path) -> None:
        file = write_json(tmp_path / "fg.json", {"1007129816.jpg": ["x"], "photo.v2": ["y"], "COCO_7.png": ["z"]})
        dataset = load_dataset("fine_grained", captions=file)
        assert dataset.images.rows() == [
            ("1007129816.jpg", "1007129816.jpg"), ("photo.v2", "photo.v2.jpg"), ("COCO_7.png", "COCO_7.png")
        ]  # fmt: skip
        numbered = write_json(tmp_path / "coco.json", {"COCO_val2014_000000000042.jpg": ["x"]})
        assert load_dataset("fine_grained", captions=numbered, coco_ids=True).image_ids == ("42",)


class TestBlip:
    def test_files_for_evaluation(self, tmp_path: Path) -> None:
        rows = [
            {"image": "val2014/COCO_val2014_000000391895.jpg", "caption": ["A man.", "A moped."]},
            {"image": "val2014/COCO_val2014_000000060623.jpg", "caption": ["A girl."]},
        ]
        file = write_json(tmp_path / "coco_karpathy_test.json.gz", rows)
        dataset = load_dataset("blip", captions=file)
        name = "COCO_val2014_000000391895.jpg"
        assert dataset.name == "coco_karpathy_test"
        assert dataset.images.rows()[0] == (name, f"val2014/{name}")
        assert captions_of(dataset)[:2] == [(f"{name}#0", name, "A man."), (f"{name}#1", name, "A moped.")]
        numbered = load_dataset("blip", captions=file, coco_ids=True)
        assert numbered.image_ids == ("391895", "60623")
        assert captions_of(numbered)[2] == ("60623#0", "60623", "A girl.")

    def test_files_for_training_have_an_entry_per_caption(self, tmp_path: Path) -> None:
        rows = [
            {"caption": "A man.", "image": "a/1.jpg", "image_id": "coco_0", "source": "x"},
            {"caption": "A cat.", "image": "b/1.jpg", "image_id": "coco_1"},
            {"caption": "He runs.", "image": "a/1.jpg", "image_id": "coco_0"},
        ]
        dataset = load_dataset("blip", captions=write_json(tmp_path / "coco_train.json", rows))
        assert dataset.image_ids == ("a/1.jpg", "b/1.jpg")
        assert [caption for caption, _, _ in captions_of(dataset)] == ["a/1.jpg#0", "b/1.jpg#0", "a/1.jpg#1"]
        assert dataset.captions["image_id"].to_list() == ["coco_0", "coco_1", "coco_0"]
        assert dataset.captions["source"].to_list() == ["x", None, None]

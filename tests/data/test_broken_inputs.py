"""Broken files of every format: each is refused with its name, the place, what was expected, and the fix."""

from __future__ import annotations

import copy
import gzip
import io
import json
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from crosslens.core import CrosslensError, InputError
from crosslens.data import load_dataset, read_precomputed, read_qrels, read_run
from tests.data import files
from tests.data.files import write, write_json, write_tar

Content = Any
GONE = object()
AGAIN = "fetch or write"


@dataclass(frozen=True)
class Case:
    """Files, how they are read, and the parts of the message: place, problem, expectation, fix."""

    name: str
    content: Mapping[str, Content]
    read: Callable[[Path], object]
    file: str
    row: str
    problem: str
    expected: str
    fix: str


def edit(content: Any, *path: Any) -> Any:
    """A copy of ``content`` in which the value at ``path[:-1]`` is ``path[-1]``, or gone."""
    content = copy.deepcopy(content)
    *steps, key, value = path
    inner = content
    for step in steps:
        inner = inner[step]
    if value is GONE:
        del inner[key]
    else:
        inner[key] = value
    return content


def array_bytes(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def reader(name: str, **options: str) -> Callable[[Path], object]:
    """Load by a reader; option values are files in the test's folder."""
    return lambda folder: load_dataset(name, **{key: folder / value for key, value in options.items()})


def in_folder(name: str, **options: Any) -> Callable[[Path], object]:
    return lambda folder: load_dataset(name, folder=folder, **options)


coco = reader("coco", captions="c.json")
coco_boxes = reader("coco", captions="c.json", instances="i.json")
karpathy = reader("karpathy", captions="k.json")
flickr = reader("flickr", captions="t.token")
kaggle = reader("csv", captions="k.csv")
precomputed = in_folder("precomputed", split="test")
genome = in_folder("visual_genome")
tar = reader("webdataset", shards="s.tar")
fine = reader("fine_grained", captions="f.json")
blip = reader("blip", captions="b.json")

# One row per case reads better than one line per field.
# fmt: off
# ruff: noqa: E501
C, B, K = files.coco(), files.instances(), files.karpathy()
LONG = "a.jpg#0\tA dog\n"
COCO = [
    Case("folder instead of file", {"c.json/x": ""}, coco, "c.json", "", "is a folder", "", "name the file, or pass split"),
    Case("missing file", {"cc.json": C}, coco, "c.json", "", "no such file", "an existing file", "did you mean cc.json?"),
    Case("missing file, others beside", {"d.json": C, "c.txt": "x"}, coco, "c.json", "", "no such file", "an existing file", "check the path"),
    Case("key twice", {"c.json": json.dumps(C).replace('"image_id": 25', '"image_id": 9, "image_id": 25', 1)}, coco, "c.json", "", "the key 'image_id' occurs twice in {'id': 101, 'image_id': 9, 'image_id': 25, …}", "each key once", "merge the two"),
    Case("key twice at the top", {"c.json": json.dumps(C).replace('{', '{"images": [], ', 1)}, coco, "c.json", "", "the key 'images' occurs twice", "each key once", "merge the two"),
    Case("captions in UTF-16", {"c.json": json.dumps(C).encode("utf-16")}, coco, "c.json", "", "the text is UTF-16", "UTF-8 text", "iconv -f utf-16"),
    Case("empty file", {"c.json": ""}, coco, "c.json", "", "the file is empty", "some content", AGAIN),
    Case("truncated", {"c.json": json.dumps(C)[:-20]}, coco, "c.json", "line 1, column", "not valid JSON", "one complete JSON value", AGAIN),
    Case("an array at the top", {"c.json": []}, coco, "c.json", "", "holds an array at its top", '"annotations": [{"id"', "check that the file is of this format"),
    Case("a number at the top", {"c.json": 7}, coco, "c.json", "", "holds int at its top", '{"images"', "check that the file is of this format"),
    Case("instances given as captions", {"c.json": edit(C, "annotations", 0, {"id": 1, "image_id": 9, "bbox": [1, 2, 3, 4]})}, coco, "c.json", "annotation 0", "no key 'caption' (found: id, image_id, bbox)", "the key 'caption' in every entry", "add it, or remove"),
    Case("no annotations", {"c.json": edit(C, "annotations", GONE)}, coco, "c.json", "", "no key 'annotations' at the top (found: info, images)", '"annotations": [', "check that the file is complete"),
    Case("images not an array", {"c.json": edit(C, "images", {"9": {}})}, coco, "c.json", "", "found dict instead of an array", "'images' to be an array", "check that the file is of this format"),
    Case("annotation not an object", {"c.json": edit(C, "annotations", 1, "A dog")}, coco, "c.json", "annotation 1", "'A dog' is not an object", "array of objects", "remove this entry"),
    Case("image without id", {"c.json": edit(C, "images", 1, "id", GONE)}, coco, "c.json", "image 1", "no key 'id'", "the key 'id' in every entry", "add it, or remove"),
    Case("null id", {"c.json": edit(C, "images", 1, "id", None)}, coco, "c.json", "image 1", "the id is missing (null)", "a non-empty string or a whole number", "give this entry its id"),
    Case("fractional id", {"c.json": edit(C, "annotations", 0, "id", 1.5)}, coco, "c.json", "annotation 0", "the id is a number with a fraction", "a non-empty string or a whole number", "give this entry its id"),
    Case("duplicate image", {"c.json": edit(C, "images", 1, "id", 9)}, coco, "c.json", "image 1", "duplicate image id '9' (first at image 0)", "each image once", "remove or rename"),
    Case("duplicate caption", {"c.json": edit(C, "annotations", 2, "id", 101)}, coco, "c.json", "annotation 2", "duplicate caption id '101' (first at annotation 0)", "each caption once", "remove or rename"),
    Case("unknown image", {"c.json": edit(C, "annotations", 2, "image_id", 777)}, coco, "c.json", "annotation 2", "unknown image id '777'", "one of the 2 image ids", "add the image '777', or remove"),
    Case("empty caption", {"c.json": edit(C, "annotations", 1, "caption", " \n")}, coco, "c.json", "annotation 1", "empty caption", "a non-empty text", "write the caption or remove it"),
    Case("null caption", {"c.json": edit(C, "annotations", 1, "caption", None)}, coco, "c.json", "annotation 1", "the caption is missing (null)", "a string", "quote the caption"),
    Case("caption a list", {"c.json": edit(C, "annotations", 1, "caption", ["A"])}, coco, "c.json", "annotation 1", "the caption is a list", "a string", "quote the caption"),
    Case("width not a number", {"c.json": edit(C, "images", 1, "width", "640")}, coco, "c.json", "image 1", "'width' is '640'", "a whole number above 0", "correct it, or leave it out"),
    Case("no images", {"c.json": {"images": [], "annotations": []}}, coco, "c.json", "", "no images", "at least one image", "check the path and the split"),
    Case("latin-1", {"c.json": b'{"images":\n [{"id": 1, "file_name": "caf\xe9"}]}'}, coco, "c.json", "line 2", "byte 0xe9 at position 40 is not UTF-8", "UTF-8 text", "iconv"),
    Case("not gzip", {"c.json.gz": None}, reader("coco", captions="c.json.gz"), "c.json.gz", "", "not gzip", "a gzip file", "drop .gz from its name"),
    Case("gzip cut off", {"c.json": gzip.compress(json.dumps(C).encode())[:60]}, coco, "c.json", "", "damaged gzip", "a complete gzip file", AGAIN),
    Case("box NaN", {"c.json": C, "i.json": edit(B, "annotations", 0, "bbox", [float("nan"), 1, 2, 3])}, coco_boxes, "i.json", "annotation 0", "bad box [nan, 1, 2, 3]", "four finite numbers", "correct the box"),
    Case("box negative", {"c.json": C, "i.json": edit(B, "annotations", 1, "bbox", [4, 4, -2, 3])}, coco_boxes, "i.json", "annotation 1", "bad box [4, 4, -2, 3]", "width and height not negative", "correct the box"),
    Case("box of three", {"c.json": C, "i.json": edit(B, "annotations", 1, "bbox", [4, 4, 2])}, coco_boxes, "i.json", "annotation 1", "bad box [4, 4, 2]", "[x, y, width, height]", "correct the box"),
    Case("box of texts", {"c.json": C, "i.json": edit(B, "annotations", 1, "bbox", ["4", 4, 2, 2])}, coco_boxes, "i.json", "annotation 1", "bad box ['4', 4, 2, 2]", "four finite numbers", "correct the box"),
    Case("unknown category", {"c.json": C, "i.json": edit(B, "annotations", 0, "category_id", 99)}, coco_boxes, "i.json", "annotation 0", "unknown category id '99'", "one of the 2 category ids", "add the category '99', or remove"),
    Case("object in no image", {"c.json": C, "i.json": edit(B, "annotations", 0, "image_id", 99)}, coco_boxes, "i.json", "annotation 0", "unknown image id '99'", "one of the 3 image ids", ""),
    Case("captions given as instances", {"c.json": C, "i.json": C}, coco_boxes, "i.json", "", "no key 'categories' at the top", '"categories": [', "check that the file is complete"),
]
KARPATHY = [
    Case("sentence without raw", {"k.json": edit(K, "images", 2, "sentences", 1, "raw", GONE)}, karpathy, "k.json", "image 2, sentence 1", "no key 'raw'", "the key 'raw' in every entry", "add it, or remove"),
    Case("no split", {"k.json": edit(K, "images", 1, "split", GONE)}, karpathy, "k.json", "image 1", "no key 'split'", "the key 'split'", "add it, or remove"),
    Case("duplicate sentid", {"k.json": edit(K, "images", 1, "sentences", 0, "sentid", 1)}, karpathy, "k.json", "image 1, sentence 0", "duplicate caption id '1' (first at image 0, sentence 1)", "each caption once", "remove or rename"),
    Case("sentids differ", {"k.json": edit(K, "images", 0, "sentids", [0, 2])}, karpathy, "k.json", "image 0", "'sentids' is [0, 2]", "the sentid of every sentence, in order", "correct 'sentids'"),
    Case("sentences a text", {"k.json": edit(K, "images", 0, "sentences", "A dog")}, karpathy, "k.json", "image 0", "'sentences' is 'A dog'", "an array of objects", "check that the file is of this format"),
    Case("coco given as karpathy", {"k.json": C}, karpathy, "k.json", "image 0", "no key 'split'", "the key 'split' in every entry", "add it, or remove"),
]
FLICKR = [
    Case("lost tab", {"t.token": LONG + "a.jpg#1 The dog\n"}, flickr, "t.token", "line 2", "'a.jpg#1 The dog' is not a caption", "photo.jpg#0, a tab, and the caption", "the tab was not lost"),
    Case("no number", {"t.token": "a.jpg\tA dog\n"}, flickr, "t.token", "line 1", "is not a caption", "photo.jpg#0", "check that the file is a token file"),
    Case("same caption twice", {"t.token": LONG + "\n" + LONG}, flickr, "t.token", "line 3", "duplicate caption id 'a.jpg#0' (first at line 1)", "each caption once", "remove or rename"),
    Case("empty token", {"t.token": LONG + "a.jpg#1\t \n"}, flickr, "t.token", "line 2", "empty caption", "a non-empty text", "write the caption"),
    Case("token in latin-1", {"t.token": LONG.encode() + b"a.jpg#1\tcaf\xe9\n"}, flickr, "t.token", "line 2", "byte 0xe9 at position 25 is not UTF-8", "UTF-8 text", "iconv"),
    Case("listed photo unknown", {"t.token": LONG, "l.txt": "a.jpg\nb.jpg\n"}, reader("flickr", captions="t.token", images="l.txt"), "l.txt", "line 2", "photo 'b.jpg' has no captions", "one of the 1 photos", "belong together"),
    Case("photo listed twice", {"t.token": LONG, "l.txt": "a.jpg\na\n"}, reader("flickr", captions="t.token", images="l.txt"), "l.txt", "line 2", "duplicate image id 'a.jpg'", "each image once", "remove or rename"),
]
KAGGLE = [
    Case("no header", {"k.csv": "1.jpg,A dog\n2.jpg,A cat\n"}, kaggle, "k.csv", "line 1", "the first line is '1.jpg, A dog'", "a header such as image,caption", "add the header"),
    Case("caption missing", {"k.csv": "image,caption\n1.jpg,A dog\n2.jpg\n"}, kaggle, "k.csv", "line 3", "1 column", "2 columns: image, caption", "add what is missing"),
    Case("pipe missing", {"k.csv": "image_name| comment_number| comment\n1.jpg| A dog\n"}, kaggle, "k.csv", "line 2", "2 columns", "3 columns: image_name, comment_number, comment", "add what is missing"),
    Case("open quote", {"k.csv": 'image,caption\n1.jpg,A dog\n2.jpg,"A cat\n3.jpg,A bird\n'}, kaggle, "k.csv", "line 3", "badly quoted", "quotes in them doubled", "quote the whole field"),
    Case("photo without name", {"k.csv": "image,caption\n,A dog\n"}, kaggle, "k.csv", "line 2", "the photo's name is empty", "a non-empty string", "give this entry its photo's name"),
    Case("number twice", {"k.csv": "image_name| comment_number| comment\n1| 0| A\n1| 0| B\n"}, kaggle, "k.csv", "line 3", "duplicate caption id '1#0' (first at line 2)", "each caption once", "remove or rename"),
]
CAPS = "".join(f"caption {n}\n" for n in range(10))
PRECOMPUTED = [
    Case("rows neither N nor 5N", {"test_ims.npy": np.zeros((3, 4)), "test_caps.txt": CAPS}, precomputed, "test_ims.npy", "", "an array of shape (3, 4) beside 10 captions", "2 rows (one per image) or 10 rows (one per caption)", "of the same split, or pass captions_per_image="),
    Case("captions not five each", {"test_ims.npy": np.zeros((2, 4)), "test_caps.txt": CAPS[:-1] + "\nmore\n"}, precomputed, "test_caps.txt", "", "11 captions", "5 captions for every image", "pass captions_per_image="),
    Case("rows not repeated", {"test_ims.npy": np.arange(20.0).reshape(10, 2), "test_caps.txt": CAPS}, precomputed, "test_ims.npy", "row 1", "differs from row 0", "every image's row 5 times in a row", "pass captions_per_image=1"),
    Case("pickled array", {"test_ims.npy": array_bytes(np.array([{}, {}], object), allow_pickle=True), "test_caps.txt": CAPS}, precomputed, "test_ims.npy", "", "cannot be read: the array holds Python objects", "a .npy file of plain numbers", "numpy.save"),
    Case("numbers as text", {"test_ims.npy": "0.1 0.2\n0.3 0.4\n", "test_caps.txt": CAPS}, precomputed, "test_ims.npy", "", "cannot be read: this is text", "a .npy file of plain numbers", "numpy.save"),
    Case("an archive named npy", {"test_ims.npy": b"PK\x03\x04rest", "test_caps.txt": CAPS}, precomputed, "test_ims.npy", "", "cannot be read: this is an .npz archive", "a .npy file of plain numbers", "numpy.save"),
    Case("an empty array file", {"test_ims.npy": b"", "test_caps.txt": CAPS}, precomputed, "test_ims.npy", "", "cannot be read: the file is empty", "a .npy file of plain numbers", "copy or write it again"),
    Case("a pickle named npy", {"test_ims.npy": pickle.dumps([1, 2]), "test_caps.txt": CAPS}, precomputed, "test_ims.npy", "", "cannot be read: this is a pickle or PyTorch file", "a .npy file of plain numbers", "numpy.save"),
    Case("array cut off", {"test_ims.npy": array_bytes(np.zeros((2, 400)))[:900], "test_caps.txt": CAPS}, precomputed, "test_ims.npy", "", "cannot be read", "a .npy file of plain numbers", "copy or write it again"),
    Case("vectors with NaN", {"test_ims.npy": np.array([[1.0, 2.0], [np.nan, 3.0]]), "test_caps.txt": CAPS}, lambda folder: read_precomputed(folder, "test"), "test_ims.npy", "row 1", "NaN in vectors", "finite numbers", "encode that item again"),
    Case("blank caption", {"test_ims.npy": np.zeros((2, 4)), "test_caps.txt": CAPS.replace("caption 3", "")}, precomputed, "test_caps.txt", "line 4", "empty caption", "a non-empty text", "write the caption"),
    Case("no captions file", {"test_ims.npy": np.zeros((2, 4))}, precomputed, "test_caps.txt", "", "no such file", "an existing file", "check the path"),
    Case("ids of another split", {"test_ims.npy": np.zeros((2, 4)), "test_caps.txt": CAPS, "test_ids.txt": "a\nb\nc\n"}, precomputed, "test_ids.txt", "", "3 ids for 2 images", "2 lines (one per image)", "of the same split, or remove it"),
]
THING = {"object_id": 1, "names": ["tree"], "x": 0, "y": 0, "w": 1, "h": 1}
GENOME = [
    Case("no image data", {"vg": {"image_data": None}}, genome, "image_data.json", "", "no such file", "an existing file", "check the path"),
    Case("object without name", {"vg": {"objects": [{"image_id": 1, "objects": [edit(THING, "names", [])]}]}}, genome, "objects.json", "image 0, object 0", "object 1 has no name", "'names': [name, …]", "name the object, or remove it"),
    Case("objects of unknown image", {"vg": {"objects": [{"image_id": 5, "objects": [THING]}]}}, genome, "objects.json", "image 0", "unknown image id '5'", "one of the 2 image ids", "add the image"),
    Case("object with half a box", {"vg": {"objects": [{"image_id": 1, "objects": [edit(THING, "w", GONE)]}]}}, genome, "objects.json", "image 0, object 0", "bad box [0, 0, None, 1]", "[x, y, width, height]", "correct the box"),
    Case("attributes a text", {"vg": {"attributes": [{"image_id": 1, "attributes": [{**THING, "attributes": "red"}]}]}}, genome, "attributes.json", "image 0, attribute 0", "'attributes' is 'red'", "a list of words", "correct the list"),
    Case("relation to a name", {"vg": {"relationships": [{"image_id": 1, "relationships": [{"predicate": "ON", "subject": "man", "object": THING}]}]}}, genome, "relationships.json", "image 0, relationship 0", "'subject' is 'man'", "an object with object_id", "as published"),
    Case("region without phrase", {"vg": {"region_descriptions": [{"id": 1, "regions": [{"region_id": 1, "phrase": ""}]}]}}, genome, "region_descriptions.json", "image 0, region 0", "empty caption", "a non-empty text", "pass skip_empty=True"),
    Case("region at infinity", {"vg": {"region_descriptions": [{"id": 1, "regions": [{"region_id": 1, "phrase": "a", "x": float("inf")}]}]}}, genome, "region_descriptions.json", "image 0, region 0", "'x' is inf", "a finite number", "correct it, or leave it out"),
]
SAMPLE = {"1.jpg": b"\0" * 2000, "1.txt": "A dog"}
WEBDATASET = [
    Case("tar cut in a member", {"s.tar": SAMPLE, "cut": 1000}, tar, "s.tar", "", "cannot be read as a tar file", "a complete tar file", AGAIN),
    Case("tar cut between members", {"s.tar": SAMPLE, "cut": 512 + 2048}, tar, "s.tar", "", "ends early, at byte 2560", "with its end mark", AGAIN),
    Case("tar cut in a header", {"s.tar": SAMPLE, "cut": 512 + 2048 + 100}, tar, "s.tar", "", "ends early, at byte 2560", "with its end mark", AGAIN),
    Case("not a tar", {"s.tar": b"\x00\x01garbage" * 99}, tar, "s.tar", "", "cannot be read as a tar file", "a complete tar file", AGAIN),
    Case("caption without image", {"s.tar": {**SAMPLE, "2.txt": "A cat"}}, tar, "s.tar", "2.txt", "no image for the key '2'", "a member 2.jpg", "add the image, or remove the caption"),
    Case("two images", {"s.tar": {**SAMPLE, "1.png": b""}}, tar, "s.tar", "1.png", "a second image for the key '1'", "one image per key", "a key of its own"),
    Case("member not JSON", {"s.tar": {"1.jpg": b"", "1.json": "{"}}, tar, "s.tar", "1.json", "not valid JSON", "a JSON object", "correct this member"),
    Case("member empty", {"s.tar": {"1.jpg": b"", "1.txt": " \n"}}, tar, "s.tar", "1.txt", "empty caption", "a non-empty text", "write the caption"),
    Case("member in latin-1", {"s.tar": {"1.jpg": b"", "1.txt": b"caf\xe9"}}, tar, "s.tar", "1.txt, line 1", "byte 0xe9 at position 3", "UTF-8 text", "iconv"),
    Case("member of one of two shards", {"s0.tar": SAMPLE, "s1.tar": {"2.jpg": b"", "2.json": '{"captions": ["A", ""]}'}}, lambda folder: load_dataset("webdataset", shards=folder), "s1.tar", "2.json, caption 1", "empty caption", "a non-empty text", "write the caption"),
    Case("captions under another key", {"s.tar": {"1.jpg": b"", "1.json": '{"TEXT": "A dog", "url": "x"}'}}, tar, "s.tar", "", "no sample has a caption (the JSON holds: TEXT, url)", "an entry caption or captions or text", "pass text_key=TEXT"),
    Case("key twice in a member", {"s.tar": {"1.jpg": b"", "1.json": '{"text": "A", "text": "B"}'}}, tar, "s.tar", "1.json", "the key 'text' occurs twice", "each key once", "merge the two"),
    Case("no shards", {}, lambda folder: load_dataset("webdataset", shards=f"{folder}/*.tar"), "*.tar", "", "no tar file here", "one or more .tar files", "check the pattern"),
]
FINE = [
    Case("captions not a list", {"f.json": {"a": ["x"], "b": "A dog"}}, fine, "f.json", "image 'b'", "the captions are str", "a list of captions", "put the captions in a list"),
    Case("a number for a caption", {"f.json": {"a": ["x", 5]}}, fine, "f.json", "image 'a', caption 1", "the caption is a number", "a string", "quote the caption"),
    Case("stem twice", {"f.json": '{"a": ["x"], "a": ["y"]}'}, fine, "f.json", "", "the key 'a' occurs twice", "each key once", "merge the two entries"),
    Case("fine-grained list", {"f.json": ["a"]}, fine, "f.json", "", "holds list at its top", '{"file stem": ["caption", …]', "check that it is of this format"),
]


def plain(name: str, **options: str) -> Callable[[Path], object]:
    return lambda folder: load_dataset(folder / name, **{key: folder / value for key, value in options.items()})


PLAIN = [
    Case("row too wide", {"p.csv": "image,text\n1,A dog, running\n"}, plain("p.csv"), "p.csv", "line 2", "3 columns", "2 columns separated by a comma: image, text", "quote texts that contain commas"),
    Case("row too narrow", {"p.tsv": "image\ttext\n1\tA dog\n2\n"}, plain("p.tsv"), "p.tsv", "line 3", "1 column", "2 columns separated by a tab: image, text", "check for lost or extra tabs"),
    Case("no text column", {"p.csv": "image,words\n1,A dog\n"}, plain("p.csv"), "p.csv", "line 1", "no column for the caption's text (found: image, words)", "a header with text or caption_text or caption", "pass text_column="),
    Case("no image column", {"p.csv": "picture,text\n1,A dog\n"}, plain("p.csv"), "p.csv", "line 1", "no column for the image (found: picture, text)", "a header with image or image_id", "pass image_column="),
    Case("named column missing", {"p.csv": "image,text\n1,A dog\n"}, lambda folder: load_dataset("plain", captions=folder / "p.csv", text_column="txt"), "p.csv", "line 1", "no column 'txt'", "the column that text_column= names", "pass text_column=, one of: image, text"),
    Case("two columns alike", {"p.csv": "image,text,text\n1,A,B\n"}, plain("p.csv"), "p.csv", "line 1", "two columns are named 'text'", "a different name for every column", "name every column"),
    Case("empty text", {"p.csv": 'image,text\n1,"A\nB"\n2,\n'}, plain("p.csv"), "p.csv", "line 4", "empty caption", "a non-empty text", "write the caption"),
    Case("caption id twice", {"p.csv": "image,caption_id,text\n1,x,A\n2,x,B\n"}, plain("p.csv"), "p.csv", "line 3", "duplicate caption id 'x' (first at line 2)", "each caption once", "remove or rename"),
    Case("image not listed", {"p.csv": "image,text\n1,A\n9,B\n", "i.csv": "image\n1\n"}, plain("p.csv", images="i.csv"), "p.csv", "line 3", "unknown image id '9'", "one of the 1 image ids", "add the image"),
    Case("image listed twice", {"p.csv": "image,text\n1,A\n", "i.csv": "image\n1\n1\n"}, plain("p.csv", images="i.csv"), "i.csv", "line 3", "duplicate image id '1' (first at line 2)", "each image once", "remove or rename"),
    Case("line not JSON", {"p.jsonl": '{"image": 1, "text": "A"}\n{"image": 2,\n'}, plain("p.jsonl"), "p.jsonl", "line 2", "not valid JSON", "one JSON object per line", "on a line of its own"),
    Case("line not an object", {"p.jsonl": '["image", 1]\n'}, plain("p.jsonl"), "p.jsonl", "line 1", "is not an object", "one JSON object per line", "write {…} on each line"),
    Case("line without text", {"p.jsonl": '{"image": 1, "text": "A"}\n\n{"image": 2}\n'}, plain("p.jsonl"), "p.jsonl", "line 3", "no key 'text'", "the key 'text' in every entry", "add it, or remove"),
    Case("captions a text", {"p.jsonl": '{"image": 1, "captions": "A dog"}\n'}, plain("p.jsonl"), "p.jsonl", "line 1", "'captions' is 'A dog'", '"captions": [', "put the captions in a list"),
    Case("caption in a list not a text", {"p.jsonl": '{"image": 1, "captions": ["A", 3]}\n'}, plain("p.jsonl"), "p.jsonl", "line 1, caption 1", "the caption is a number", "a string", "quote the caption"),
    Case("object without a name", {"p.jsonl": '{"image": 1, "captions": ["A"], "objects": [{"box": [0, 0, 1, 1]}]}\n'}, plain("p.jsonl"), "p.jsonl", "line 1, object 0", "no key 'name'", "the key 'name' in every entry", "add it, or remove"),
    Case("relation to nothing", {"p.jsonl": '{"image": 1, "captions": ["A"], "objects": [{"name": "a", "id": "o"}], "relations": [{"subject": "o", "predicate": "on", "object": "u"}]}\n'}, plain("p.jsonl"), "p.jsonl", "line 1, relation 0", "unknown object id 'u'", "one of the 1 object ids", "add the object 'u'"),
    Case("image twice in JSON lines", {"p.jsonl": '{"image": 1, "captions": ["A"]}\n{"image": 1, "captions": ["B"]}\n'}, plain("p.jsonl"), "p.jsonl", "line 2", "duplicate image id '1' (first at line 1)", "each image once", "remove or rename"),
    Case("not parquet", {"p.parquet": b"PAR1 no"}, plain("p.parquet"), "p.parquet", "", "cannot be read", "a Parquet file", "write it again"),
    Case("NUL bytes", {"p.csv": b"image,text\n1,A\x00\xff\n"}, plain("p.csv"), "p.csv", "line 2", "byte 0xff at position 15 is not UTF-8", "UTF-8 text", "iconv"),
]


def run(folder: Path) -> object:
    return read_run(next(folder.glob("r.*")))


def qrels(folder: Path) -> object:
    return read_qrels(next(folder.glob("q.*")))


GOOD = "q1 Q0 a 1 0.5 m\n"
BLIP = [
    Case("object at the top", {"b.json": {"image": "a.jpg", "caption": ["A"]}}, blip, "b.json", "", "found dict instead of an array", '[{"image"', "check that the file is of this format"),
    Case("no entries", {"b.json": []}, blip, "b.json", "", "no images", "at least one image", "check how the file was written"),
    Case("entry without caption", {"b.json": [{"image": "a.jpg"}]}, blip, "b.json", "entry 0", "no key 'caption' (found: image)", "the key 'caption' in every entry", "add it, or remove"),
    Case("empty caption in a list", {"b.json": [{"image": "a.jpg", "caption": ["A", ""]}]}, blip, "b.json", "entry 0, caption 1", "empty caption", "a non-empty text", "write the caption"),
    Case("caption a number", {"b.json": [{"image": "a.jpg", "caption": 7}]}, blip, "b.json", "entry 0", "the caption is a number", "a string", "quote the caption"),
    Case("no COCO names", {"b.json": [{"image": "a.jpg", "caption": "A"}]}, lambda folder: load_dataset("blip", captions=folder / "b.json", coco_ids=True), "b.json", "image 'a.jpg'", "the file name 'a.jpg' does not end in a number", "COCO_val2014_000000391895", "coco_ids=False"),
]
RUNS = [
    Case("run missing", {}, lambda folder: read_run(folder / "r.run"), "r.run", "", "no such file", "an existing file", "check the path"),
    Case("run a folder", {"r.run/x": ""}, run, "r.run", "", "this is a folder", "a file", "name the file inside it"),
    Case("run empty", {"r.run": " \n"}, run, "r.run", "", "the file is empty", "a run or qrels", "check how it was written"),
    Case("run with five columns", {"r.run": GOOD + "\nq1 Q0 b 2 0.4\n"}, run, "r.run", "line 3", "5 columns", "6 columns: query Q0 item rank score system", "write an id with a space as %%my%20photo.jpg"),
    Case("qrels given as run", {"r.run": "q1 0 a 1\n"}, run, "r.run", "line 1", "4 columns", "6 columns", "this looks like a qrels file"),
    Case("run given as qrels", {"q.txt": GOOD}, qrels, "q.txt", "line 1", "6 columns", "4 columns: query iteration item grade", "this looks like a run"),
    Case("score a word", {"r.run": GOOD + "q1 Q0 b 2 high m\n"}, run, "r.run", "line 2", "the score is 'high'", "a number", "correct the score, or remove the line"),
    Case("score NaN", {"r.run": GOOD + "q1 Q0 b 2 nan m\n"}, run, "r.run", "line 2", "the score is 'nan'", "a finite number", "correct the score"),
    Case("score infinite, blank lines before", {"r.run": GOOD + "\n\nq1 Q0 b 2 -inf m\n"}, run, "r.run", "line 4", "the score is '-inf'", "a finite number", "correct the score"),
    Case("rank a word", {"r.run": GOOD + "q1 Q0 b second 0.4 m\n"}, run, "r.run", "line 2", "the rank is 'second'", "a whole number", "correct the rank"),
    Case("item twice", {"r.run": GOOD + "q2 Q0 a 1 0.5 m\nq1 Q0 a 2 0.4 m\n"}, run, "r.run", "line 3", "item 'a' is ranked twice for query 'q1'", "each item at most once per query", "remove the second occurrence"),
    Case("two systems", {"r.run": GOOD + "# more\nq1 Q0 b 2 0.4 other words\n"}, run, "r.run", "line 3", "the system is 'other'", "one system per file (the first is 'm')", "split the file"),
    Case("run in latin-1", {"r.run": GOOD.encode() + b"q1 Q0 caf\xe9 2 0.4 m\n"}, run, "r.run", "line 2", "byte 0xe9 at position 25 is not UTF-8", "UTF-8 text", "iconv"),
    Case("run of garbage", {"r.run": bytes(range(128, 256)) * 4}, run, "r.run", "line 1", "byte 0x80 at position 0 is not UTF-8", "UTF-8 text", "iconv"),
    Case("gzipped run cut off", {"r.run.gz": gzip.compress(GOOD.encode() * 50)[:40]}, run, "r.run.gz", "", "damaged gzip", "a complete gzip file", AGAIN),
    Case("grade infinite", {"q.txt": "# judged\nq1 0 a 1\nq1 0 b inf\n"}, qrels, "q.txt", "line 3", "the grade is 'inf'", "a finite number", "correct the grade"),
    Case("text after a grade", {"q.txt": "q1 0 a 1\nq1 0 b 1 sure\n"}, qrels, "q.txt", "line 2", "5 columns", "4 columns: query iteration item grade", "write an id with a space as %%my%20photo.jpg"),
    Case("comments only", {"r.run": "# nothing\n"}, run, "r.run", "", "no lines besides comments", "query Q0 item rank score system", "check how it was written"),
    Case("grade a word", {"q.txt": "q1 0 a yes\n"}, qrels, "q.txt", "line 1", "the grade is 'yes'", "a number", "correct the grade"),
    Case("pair judged twice", {"q.txt": "q1 0 a 1\nq1 0 a 0\n"}, qrels, "q.txt", "line 2", "item 'a' is judged twice for query 'q1'", "each item at most once", "remove the second occurrence"),
    Case("JSON run an array", {"r.json": ["a"]}, run, "r.json", "", "holds list at its top", "{query: [item, …]}", "write one entry per query"),
    Case("JSON run of texts", {"r.json": {"q1": "a"}}, run, "r.json", "query 'q1'", "the list is 'a'", "{query: [item, …]}", "write the query's items as a list"),
    Case("JSON item twice", {"r.json": {"q1": ["a", "b", "a"]}}, run, "r.json", "query 'q1', item 2", "duplicate item id 'a' (first at query 'q1', item 0)", "each item once", "remove or rename"),
    Case("JSON score a text", {"r.json": {"q1": {"a": "0.5"}}}, run, "r.json", "query 'q1'", "the number of item 'a' is '0.5'", "a finite number", "correct it, or leave the item out"),
    Case("JSON score NaN", {"r.json": '{"q1": {"a": NaN}}'}, run, "r.json", "query 'q1'", "the number of item 'a' is nan", "a finite number", "correct it, or leave the item out"),
    Case("run in UTF-16", {"r.run": GOOD.encode("utf-16")}, run, "r.run", "", "the text is UTF-16", "UTF-8 text", "iconv -f utf-16"),
    Case("key twice in a line", {"r.jsonl": '{"query": 1, "items": ["a"]}\n{"query": 2, "items": ["a"], "items": ["b"]}\n'}, run, "r.jsonl", "line 2", "the key 'items' occurs twice in {'query': 2, …}", "each key once", "merge the two"),
    Case("JSON query twice", {"r.json": '{"q1": ["a"], "q1": ["b"]}'}, run, "r.json", "", "the key 'q1' occurs twice", "each key once", "merge the two entries"),
    Case("lines with fewer scores", {"r.jsonl": '{"query": 1, "items": ["a", "b"], "scores": [1]}\n'}, run, "r.jsonl", "line 1", "1 scores for 2 items", "one of the scores for every item", "complete 'scores'"),
    Case("lines with a query twice", {"r.jsonl": '{"query": 1, "items": ["a"]}\n{"query": 1, "items": ["b"]}\n'}, run, "r.jsonl", "line 2", "duplicate query id '1' (first at line 1)", "each query once", "remove or rename"),
    Case("lines without items", {"r.jsonl": '{"query": 1}\n'}, run, "r.jsonl", "line 1", "no key 'items'", "the key 'items' in every entry", "add it, or remove"),
    Case("JSON run cut off", {"r.json": '{"q1": ["a", '}, run, "r.json", "line 1, column", "not valid JSON", "one complete JSON value", AGAIN),
]
HUGGINGFACE = [
    Case("caption column missing", {"h.parquet": {"image_id": [1], "words": ["A"]}}, lambda folder: load_dataset("huggingface", dataset=str(folder / "h.parquet")), "h.parquet", "", "no column 'caption'", "the column that caption= names", "pass caption= one of: image_id, words"),
    Case("null in a column", {"h.parquet": {"image_id": [1, 2], "caption": ["A", None]}}, lambda folder: load_dataset("huggingface", dataset=str(folder / "h.parquet")), "h.parquet", "row 1", "the caption is missing (null)", "a string", "quote the caption"),
    Case("folder not saved", {"h/x.txt": "x"}, lambda folder: load_dataset("huggingface", dataset=str(folder / "h")), "h", "", "not a saved dataset", "a folder written by save_to_disk", "check the path"),
]
# fmt: on
CASES = [
    *COCO,
    *KARPATHY,
    *FLICKR,
    *KAGGLE,
    *PRECOMPUTED,
    *GENOME,
    *WEBDATASET,
    *FINE,
    *PLAIN,
    *BLIP,
    *RUNS,
    *HUGGINGFACE,
]


def lay_out(folder: Path, content: Mapping[str, Content]) -> None:
    """Write the files of a case, each by the kind of its content."""
    for name, value in content.items():
        path = folder / name
        if name == "vg":
            files.visual_genome(folder, **value)
        elif name == "cut":
            shard = folder / "s.tar"
            shard.write_bytes(shard.read_bytes()[:value])
        elif name.endswith(".gz"):
            path.write_bytes(b"{}" if value is None else value)
        elif isinstance(value, np.ndarray):
            np.save(path, value)
        elif isinstance(value, (str, bytes)):
            write(path, value)
        elif name.endswith(".tar"):
            write_tar(path, value)
        elif name.endswith(".parquet"):
            pl.DataFrame(value).write_parquet(path)
        else:
            write_json(path, value)


def test_there_are_enough() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 60


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_broken(case: Case, tmp_path: Path) -> None:
    lay_out(tmp_path, case.content)
    with pytest.raises(CrosslensError) as caught:
        case.read(tmp_path)
    first, *rest = str(caught.value).split("\n")
    assert str(tmp_path / case.file) in first
    if case.row:
        assert f"{case.file}, {case.row}" in first
    elif isinstance(caught.value, InputError):
        assert caught.value.row is None
    assert case.problem in str(caught.value)
    tail = "\n".join(rest)
    assert "  fix: " in tail
    assert case.fix in tail[tail.index("  fix: ") :]
    if case.expected:
        assert case.expected in tail[tail.index("  expected: ") : tail.index("  fix: ")]

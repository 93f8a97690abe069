"""Toy files under the names that the commands of docs/reproduction.md use, each made when a command asks for it."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.cli import main
from crosslens.data import load_dataset, read_eccv, write_dataset
from crosslens.pipeline import find_protocol
from crosslens.synth import write_scenes
from crosslens.values import Dataset
from tests.encode.tiny_models import BERT, pictures, save_llava, save_model, save_tokenizer

IMAGES, CANDIDATES = 12, 40
PANEL = ("rn50", "vit-b-32", "clip")
Make = Callable[["Toys", Path], None]
MAKERS: dict[str, Make] = {}


def toy(*names: str) -> Callable[[Make], Make]:
    """Register what makes the files of these names."""

    def register(make: Make) -> Make:
        MAKERS.update(dict.fromkeys(names, make))
        return make

    return register


class Toys:
    """A folder of toy files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        drawn = write_scenes(folder / "scenes", CANDIDATES, seed=7, workers=1)
        self.scenes = drawn.select(drawn.image_ids[:IMAGES])
        self.training = drawn.select(drawn.image_ids[IMAGES : 2 * IMAGES])
        shutil.copytree(folder / "scenes" / "images", folder / "images")

    def path(self, name: str) -> Path:
        """The file or folder of this name, made where it is not there yet."""
        path = self.folder / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            MAKERS[name](self, path)
        return path

    def model(self, kind: str) -> str:
        """A tiny model of the architectures that the word stands for."""
        folder = self.folder / "models" / kind
        if not folder.exists():
            STAND_INS[kind](folder)
        return f"{kind}:{folder}"

    def crosslens(self, *words: object) -> None:
        """Run a command here, which must succeed."""
        with chdir(self.folder):
            succeed(*words)


def succeed(*words: object) -> None:
    """Run a command, which must succeed."""
    assert main([str(word) for word in words]) == 0, words


def judge(folder: Path) -> None:
    """Two people judge every item of the first project of a folder: good or bad, or causes with ratings."""
    from crosslens.web.judging.database.engine import open_database
    from crosslens.web.judging.database.judgements import record_judgement
    from crosslens.web.judging.database.projects import projects
    from crosslens.web.judging.tasks import Answer
    from tests.web.judging.samples import items, person

    database = open_database(folder / "judging.sqlite")
    (project,) = projects(database)
    people = [person(database, name, project=1) for name in ("ann", "bob")]
    for at, item in enumerate(items(database, 1)):
        for who, account in enumerate(people):
            if project.task == "pairs":
                good = item.kind == "real" and (who or at % 4)
                answer = Answer(("good",) if good else ("bad",))
            else:
                answer = Answer(("colour", "count") if at % 2 else ("details",), 5 + who)
            record_judgement(database, item.id, account, answer, source="person", seconds=2)
    database.close()


# Models


def save_t5(folder: Path) -> None:
    from transformers import T5Config, T5ForConditionalGeneration

    T5ForConditionalGeneration(
        T5Config(vocab_size=64, d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2, decoder_start_token_id=0,
                 pad_token_id=0, eos_token_id=3)
    ).save_pretrained(folder)  # fmt: skip
    save_tokenizer(folder)


def save_sentence_encoder(folder: Path) -> None:
    from sentence_transformers import SentenceTransformer, models
    from transformers import BertConfig, BertModel

    BertModel(BertConfig(**BERT)).save_pretrained(folder / "bert")
    save_tokenizer(folder / "bert")
    words = models.Transformer(str(folder / "bert"))
    SentenceTransformer(modules=[words, models.Pooling(16)], device="cpu").save(str(folder))


STAND_INS: dict[str, Callable[[Path], Any]] = {
    **{kind: (lambda folder, kind=kind: save_model(kind, folder)) for kind in ("clip", "align", "dinov2")},
    "vqa": save_llava,
    "transformers": save_t5,
    "sentence": save_sentence_encoder,
}
"""A tiny model of the same architecture, by the word before the colon."""


# Datasets


@toy("imp.jsonl")
def plain(toys: Toys, path: Path) -> None:
    """A line per picture."""
    texts: dict[str, list[dict[str, str]]] = {}
    for caption, image, text in toys.scenes.captions.select("caption", "image", "text").iter_rows():
        texts.setdefault(image, []).append({"caption_id": caption, "text": text})
    files = dict(toys.scenes.images.select("image", "file").iter_rows())
    lines = [
        json.dumps({"image": image, "file": files[image], "captions": captions}) for image, captions in texts.items()
    ]
    path.write_text("\n".join(lines) + "\n")


@toy("imp")
def finished_benchmark(toys: Toys, path: Path) -> None:
    """What `build imp` leaves when people have judged: a dataset with the full paths of its pictures, and captions
    that they rejected."""
    dataset, photos = load_dataset(str(toys.path("imp.jsonl"))), toys.path("photos").resolve()
    files = pl.Series("file", [str(photos / picture_name(int(image))) for image in dataset.image_ids])
    write_dataset(replace(dataset, images=dataset.images.with_columns(files)), path / "dataset", "folder")
    texts = [f"Nothing that picture {image} shows." for image in toys.scenes.image_ids]
    scores = {f"score[{name}]": np.linspace(0, 0.2, IMAGES) for name in PANEL}
    rows = pl.DataFrame({"image": toys.scenes.image_ids, "text": texts, **scores})
    rows.write_parquet(path / "rejected.parquet")


@toy("cc3m", "cc12m", "datacomp")
def shards(toys: Toys, path: Path) -> None:
    """As img2dataset writes them: a picture, and its caption in a file beside it."""
    path.mkdir()
    files = dict(toys.scenes.images.select("image", "file").iter_rows())
    with tarfile.open(path / "00000.tar", "w") as shard:
        for image, text in (
            toys.scenes.captions.unique("image", maintain_order=True).select("image", "text").iter_rows()
        ):
            for suffix, content in (
                (".png", (toys.folder / "scenes" / files[image]).read_bytes()),
                (".txt", text.encode()),
            ):
                member = tarfile.TarInfo(f"{image}{suffix}")
                member.size = len(content)
                shard.addfile(member, io.BytesIO(content))


@toy("coco/annotations")
def annotations(toys: Toys, path: Path) -> None:
    """Some images have each other's captions, so that there are failures."""
    path.mkdir()
    for kind in ("captions", "instances"):
        content = json.loads((toys.folder / "scenes" / "coco" / f"{kind}.json").read_text())
        for image in content["images"]:
            image["file_name"] = Path(image["file_name"]).name
        for caption in content["annotations"] if kind == "captions" else ():
            if caption["image_id"] <= 4:
                caption["image_id"] = 5 - caption["image_id"]
        (path / f"{kind}_val2017.json").write_text(json.dumps(content))


@toy("coco/val2017")
def pictures_by_name(toys: Toys, path: Path) -> None:
    shutil.copytree(toys.folder / "images", path)


@toy("visual-genome")
def visual_genome(toys: Toys, path: Path) -> None:
    shutil.copytree(toys.folder / "scenes" / "visual_genome", path)
    data = json.loads((path / "image_data.json").read_text())
    for entry in data:
        entry["coco_id"] = entry["image_id"] if entry["image_id"] <= IMAGES else None
    (path / "image_data.json").write_text(json.dumps(data))


@toy("dataset_coco.json", "dataset_flickr30k.json")
def karpathy(toys: Toys, path: Path) -> None:
    images = []
    for split, folder, part in (("test", "val2014", toys.scenes), ("train", "train2014", toys.training)):
        texts: dict[str, list[str]] = {}
        for image, text in part.captions.select("image", "text").iter_rows():
            texts.setdefault(image, []).append(text)
        images += [
            {
                **({"filepath": folder} if "coco" in path.name else {}),
                "filename": picture_name(int(image)), "imgid": int(image), "cocoid": int(image),
                "split": split, "sentids": [5 * int(image) + place for place in range(5)],
                "sentences": [{"raw": text, "imgid": int(image), "sentid": 5 * int(image) + place}
                              for place, text in enumerate(captions)],
            }
            for image, captions in texts.items()
        ]  # fmt: skip
    path.write_text(json.dumps({"dataset": path.stem.removeprefix("dataset_"), "images": images}))


def picture_name(number: int) -> str:
    return f"COCO_val2014_{number:012d}.jpg"


@toy("coco-2014")
def photos_in_a_folder(toys: Toys, path: Path) -> None:
    save_photos(toys, toys.scenes, path / "val2014")
    save_photos(toys, toys.training, path / "train2014")


@toy("photos", "flickr30k-images")
def photos(toys: Toys, path: Path) -> None:
    save_photos(toys, toys.scenes, path)
    save_photos(toys, toys.training, path)


def save_photos(toys: Toys, dataset: Dataset, path: Path) -> None:
    from PIL import Image

    path.mkdir(parents=True, exist_ok=True)
    for image, file in dataset.images.select("image", "file").iter_rows():
        Image.open(toys.folder / "scenes" / file).convert("RGB").save(path / picture_name(int(image)))


@toy("coco_fg.json")
def fine_grained(toys: Toys, path: Path) -> None:
    texts: dict[str, list[str]] = {}
    for image, text in toys.scenes.captions.select("image", "text").iter_rows():
        texts.setdefault(picture_name(int(image)).removesuffix(".jpg"), []).append(f"{text} In detail.")
    path.write_text(json.dumps(texts))


@toy("sits_test.csv")
def judgements(toys: Toys, path: Path) -> None:
    """With ids in the form of Crisscrossed Captions."""
    rows = []
    for place, image in enumerate(map(int, toys.scenes.image_ids)):
        next_image = int(toys.scenes.image_ids[(place + 1) % IMAGES])
        judged = ((5 * image, 4.5, "original"), (5 * image + 1, 3 + place % 3, "intrasim"),
                  (5 * next_image, place % 2, "intrasim"))  # fmt: skip
        rows += [
            f"COCO_val2014:sentid:{caption},{picture_name(image)},{score},c2i_{how}" for caption, score, how in judged
        ]
    path.write_text("caption,image,agg_score,sampling_method\n" + "\n".join(rows) + "\n")


@toy("Flickr8k.token.txt")
def flickr(toys: Toys, path: Path) -> None:
    write_dataset(toys.scenes, path, "flickr")


# Features to train on


@toy("f30k_precomp")
def regions(toys: Toys, path: Path) -> None:
    path.mkdir()
    random = np.random.default_rng(0)
    for split in ("train", "dev", "test"):
        np.save(path / f"{split}_ims.npy", random.normal(size=(2 * IMAGES, 3, 8)).astype(np.float32))
        (path / f"{split}_caps.txt").write_text("\n".join(2 * list(toys.scenes.texts)) + "\n")


@toy("pairs")
def trained_pictures(toys: Toys, path: Path) -> None:
    (path / "images").mkdir(parents=True)
    lines = []
    for split in ("train", "dev", "test"):
        names = [f"{split}{number}.png" for number in range(6)]
        for number, (name, picture) in enumerate(zip(names, pictures(6), strict=True)):
            picture.save(path / "images" / name)
            lines += [f"{name}#{place}\t{text}" for place, text in enumerate(toys.scenes.texts[number * 5 :][:5])]
        (path / f"Flickr_8k.{split}Images.txt").write_text("\n".join(names) + "\n")
    (path / "Flickr8k.token.txt").write_text("\n".join(lines) + "\n")


# Runs and ranked lists


@toy(*(f"{folder}/{name}" for folder in ("runs", "cal") for name in (*PANEL, "convnext", "eva02")))
def run_of_vectors(toys: Toys, path: Path) -> None:
    """A model is pictures in a space, captions near their pictures, and noise of its own."""
    dataset = toys.scenes
    random = np.random.default_rng(sum(path.name.encode()) + 1000 * (path.parent.name == "cal"))
    images = random.normal(size=(IMAGES, 16))
    captions = images[dataset.caption_image] + random.normal(size=(len(dataset.caption_ids), 16))
    vectors = toys.folder / "vectors" / path.parent.name / path.name
    vectors.mkdir(parents=True)
    np.save(vectors / "images.npy", images.astype(np.float32))
    np.save(vectors / "captions.npy", captions.astype(np.float32))
    toys.crosslens("evaluate", "--dataset", toys.path("imp") / "dataset", "--image-embeddings", vectors / "images.npy",
                   "--caption-embeddings", vectors / "captions.npy", "--resamples", 0,
                   "--depth", 15, "-o", path)  # fmt: skip


@toy("runs/model")
def run_of_a_model(toys: Toys, path: Path) -> None:
    toys.crosslens("evaluate", "--dataset", toys.path("imp.jsonl"), "--model", "tiny", "--resamples", 0, "-o", path)


@toy("align-coco5k-i2t.run.gz")
def published_lists(toys: Toys, path: Path) -> None:
    truth = read_eccv("coco", "i2t")
    captions = [truth.item_ids[item] for item in truth.items]
    owners = [truth.query_ids[row] for row in truth.rows]
    captions_of: dict[str, list[str]] = {}
    for image, caption in zip(owners, captions, strict=True):
        captions_of.setdefault(image, []).append(caption)
    lines = [
        f"{image} Q0 {caption} {rank} {1 / rank:.4f} toy"
        for place, (image, five) in enumerate(captions_of.items())
        for rank, caption in enumerate(dict.fromkeys([*captions[place : place + 6], *five, *captions[-12:]]), start=1)
        if rank <= 10
    ]
    path.write_bytes(gzip.compress("\n".join(lines).encode(), 1))


@toy("align-f30k-t2i", "align-f30k-t2i/qrels.txt")
def perturbed_lists(toys: Toys, path: Path) -> None:
    folder = toys.folder / "align-f30k-t2i"
    folder.mkdir(exist_ok=True)
    pairs = list(toys.scenes.captions.select("caption", "image").iter_rows())
    (folder / "qrels.txt").write_text("".join(f"{caption} 0 {image} 1\n" for caption, image in pairs))
    images = toys.scenes.image_ids
    names = find_protocol("brit", "robustness").setting("robustness", "perturbations")
    for late, name in enumerate(("none", *names)):
        lines = []
        for place, (caption, image) in enumerate(pairs):
            others = [far_image for far_image in images if far_image != image][:9]
            others.insert((place + late) % (2 + late % 5), image)
            lines += [f"{caption} Q0 {item} {rank} {1 / rank:.4f} toy" for rank, item in enumerate(others, start=1)]
        (folder / f"{name}.run.gz").write_bytes(gzip.compress("\n".join(lines).encode()))

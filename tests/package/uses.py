"""What each extra is installed for, done once: ``python uses.py EXTRA``, in an environment with that extra alone.

Run in an empty folder by ``test_installed.py``; every function is named after its extra and raises where that does not
do what it is for.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

import crosslens as cl
from crosslens.cli import main

COLOURS = ("red", "blue", "green", "black", "white", "small")
THINGS = ("dog", "cat", "car", "cup", "tree", "bird")
DATASET = Path("captions.jsonl")
VECTORS = ("--image-embeddings", "img.npy", "--caption-embeddings", "cap.npy")
EVALUATE = ("evaluate", "--dataset", str(DATASET), *VECTORS, "--metrics", "Hit@1")


def run(*words: str) -> None:
    """A command that must succeed."""
    code = main(list(words))
    assert code == 0, f"crosslens {' '.join(words)}: exit code {code}"


def prepare() -> None:
    """36 images with two captions each, and vectors of both."""
    vectors = np.random.default_rng(0).normal(size=(36, 8)).astype(np.float32)
    pairs = [(colour, thing) for colour in COLOURS for thing in THINGS]
    rows = [
        json.dumps({"image": f"{number}.png", "caption": text})
        for number, (colour, thing) in enumerate(pairs)
        for text in (f"a {colour} {thing} on the grass", f"the {thing} looks {colour} in the sun")
    ]
    DATASET.write_text("\n".join(rows), encoding="utf-8")
    np.save("img.npy", vectors)
    np.save("cap.npy", np.repeat(vectors, 2, axis=0) + np.float32(0.01))


def base() -> None:
    """Everything that needs no extra: evaluate, show, compare, export, similarity, perturb."""
    run(*EVALUATE, "-o", "runs/a")
    assert cl.Run.load("runs/a")["t2i/Hit@1"].mean == 1.0
    for command in (
        ("show", "runs/a"), ("compare", "runs/a", "runs/a"), ("export", "runs/a", "--to", "trec", "-o", "lists.run"),
        ("similarity", "--dataset", str(DATASET), "-o", "phi.npy"), ("doctor",),
        ("perturb", "--dataset", str(DATASET), "--name", "char_swap", "-o", "swapped"),
        ("show", "runs/a", "--write", "a.html", "--write", "a.svg"),
    ):  # fmt: skip
        run(*command)


def torch() -> None:
    import torch

    from crosslens.torch import RetrievalMetric

    metric = RetrievalMetric("t2i/Hit@1")
    ids = ["a", "b", "c"]
    metric.update(image_features=torch.eye(3), caption_features=torch.eye(3), image_ids=ids, caption_images=ids)
    assert metric.compute()["t2i/Hit@1"] == 1
    run(*EVALUATE, "--backend", "torch", "-o", "runs/a")


def hf() -> None:
    import datasets

    datasets.Dataset.from_dict({"image_id": ["a", "b"], "caption": ["a dog", "a cat"]}).save_to_disk("stored")
    assert cl.load_dataset("huggingface", dataset="stored").texts == ("a dog", "a cat")


def eccv() -> None:
    from crosslens.data import read_eccv

    assert len(read_eccv("eccv", "i2t").query_ids) == 5000


def language() -> None:
    """spaCy itself; without one of its pipelines, the command that brings one is printed."""
    import spacy

    assert [token.text for token in spacy.blank("en")("a dog")] == ["a", "dog"]
    assert main(["similarity", "--dataset", str(DATASET), "--phi", "spice", "-o", "phi.npy"]) in (0, 4)


def encoders() -> None:
    import tiny_models  # tests/encode is on the path

    folder = tiny_models.save_model("clip", Path("clip"))
    _draw(THINGS)
    run("encode", "--model", f"clip:{folder}", "--dataset", "drawn.jsonl", "--image-folder", ".", "-o", "encoded")


def _draw(texts: tuple[str, ...]) -> None:
    from PIL import Image

    for number, _ in enumerate(texts):
        Image.new("RGB", (40, 40), (40 * number, 90, 0)).save(f"{number}.png")
    rows = (json.dumps({"image": f"{number}.png", "caption": text}) for number, text in enumerate(texts))
    Path("drawn.jsonl").write_text("\n".join(rows), encoding="utf-8")


def sentence() -> None:
    import tiny_models
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertConfig, BertModel

    BertModel(BertConfig(**tiny_models.BERT)).save_pretrained("bert")
    tiny_models.save_tokenizer(Path("bert"))
    words = Transformer("bert")
    SentenceTransformer(modules=[words, Pooling(words.get_word_embedding_dimension())]).save("sentences")
    run("evaluate", "--dataset", str(DATASET), "--model", "sentence:sentences", "--image-text", "mean",
        "--metrics", "Hit@1", "-o", "runs/a")  # fmt: skip


def onnx() -> None:
    _draw(THINGS)
    run("evaluate", "--dataset", "drawn.jsonl", "--image-folder", ".", "--model", "tiny", "--metrics", "Hit@1",
        "-o", "runs/a")  # fmt: skip


def semantic() -> None:
    run("similarity", "--dataset", str(DATASET), "--phi", "semantic", "-o", "phi.npy")


def openclip() -> None:
    import open_clip
    import torch

    model = open_clip.create_model("RN50")  # with random weights: nothing is downloaded
    torch.save(model.state_dict(), "rn50.pt")
    _draw(THINGS)
    run("encode", "--model", "openclip:RN50/rn50.pt", "--dataset", "drawn.jsonl", "--image-folder", ".",
        "-o", "encoded")  # fmt: skip


def scenes() -> None:
    run("synth", "--images", "4", "-o", "scenes")


def pictures() -> None:
    run(*EVALUATE, "-o", "runs/a")
    run("show", "runs/a", "--write", "a.png", "--write", "a.pdf")
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")


def polysemy() -> None:
    run(
        "analyze",
        "polysemy",
        "--dataset",
        str(DATASET),
        *VECTORS,
        "--sizes",
        "1..10",
        "--clusters",
        "--min-cluster-size",
        "3",
    )


def approximate() -> None:
    run("analyze", "polysemy", "--dataset", str(DATASET), *VECTORS, "--sizes", "1..10", "--approximate")


def train() -> None:
    from crosslens.train import ImageFeatures, Split, TrainingData, load_training_recipe, train_model

    dataset = cl.load_dataset(str(DATASET))
    split = Split(dataset, ImageFeatures.of(np.load("img.npy")))
    recipe = load_training_recipe("flickr8k-vse-triplet").with_settings({"max_steps": 3, "batch_size": 8})
    assert train_model(recipe, TrainingData(split, split, split), "model").test["Rsum"] > 0


def imp() -> None:
    Path("titles.txt").write_text("A brown dog runs over the green grass\n", encoding="utf-8")
    run("build", "clean", "titles.txt", "--no-tagging", "-o", "kept.txt")
    assert "dog" in Path("kept.txt").read_text(encoding="utf-8")


def ray() -> None:
    run(*EVALUATE, "--engine", "ray", "-o", "runs/a")


def remote() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        run("evaluate", "--dataset", str(DATASET), "--image-embeddings", f"{address}/img.npy",
            "--caption-embeddings", f"{address}/cap.npy", "--metrics", "Hit@1", "-o", "runs/a")  # fmt: skip
        server.shutdown()
    import gcsfs
    import s3fs

    assert s3fs.S3FileSystem.protocol
    assert gcsfs.GCSFileSystem.protocol


def web() -> None:
    import subprocess
    import urllib.request

    run(*EVALUATE, "-o", "runs/a")
    serve = [sys.executable, "-m", "crosslens", "serve", "runs", "--port", "0"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        address = next(word for line in server.stdout for word in line.split() if word.startswith("http://"))
        assert b"crosslens" in urllib.request.urlopen(address, timeout=60).read()
        server.terminate()


def postgres() -> None:
    """The driver is there: a server that is not there is reported as that, not as a missing extra."""
    import psycopg

    assert psycopg.pq.version() > 0
    web()


def mlflow() -> None:
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # the extra has the client alone: no server, no database
    run(*EVALUATE, "-o", "runs/a")
    run(
        "export", "runs/a", "--to", "mlflow", "--project", "tried", "--tracking-uri", Path("tracked").resolve().as_uri()
    )


def wandb() -> None:
    run(*EVALUATE, "-o", "runs/a")
    run("export", "runs/a", "--to", "wandb", "--project", "tried", "--offline")


def demo() -> None:
    run("demo", "--images", "6", "-o", "tried")
    assert Path("tried/audit/report.html").is_file()


if __name__ == "__main__":
    prepare()
    uses: dict[str, Any] = globals()
    uses[sys.argv[1]]()

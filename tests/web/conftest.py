"""A folder of small runs with pictures, the application over it, and a client that speaks to it without a network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.analyze.missing_positives import Control

pytest.importorskip("fastapi", reason="pip install 'crosslens[web]'")
pytest.importorskip("PIL", reason="pip install 'crosslens[web]'")

from fastapi.testclient import TestClient
from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket
from PIL import Image

from crosslens.web import WebSettings, app as application, pages

NASTY = "<script>alert('x')</script> & \"a dog\" <img src=x onerror=alert(1)>"
IMAGES = 12
RECIPE = """version = 1
[dataset]
source = "{source}"
[model]
image_folder = "{source}"
"""


class CompiledTemplates(BytecodeCache):
    """What templates were compiled to, by name and content."""

    def __init__(self) -> None:
        self.code: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self.code:
            bucket.bytecode_from_string(self.code[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self.code[bucket.key] = bucket.bytecode_to_string()


@pytest.fixture(scope="session", autouse=True)
def shared_between_applications() -> Iterator[None]:
    """Templates are compiled once: tests make hundreds of applications."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "Environment", partial(Environment, bytecode_cache=CompiledTemplates()))
        yield


def toys(images: int = IMAGES) -> cl.Dataset:
    """Two captions per image, one with markup, two images with the same; a group column, and objects with boxes."""
    captions = {f"img{n}": [f"a dog and {n} cats", NASTY if n == 3 else f"picture number {n}"] for n in range(images)}
    captions |= {f"img{n}": ["two horses in the rain", "two wet horses in the rain"] for n in (8, 9) if n < images}
    plain = cl.Dataset.of(captions, name="toys")
    frame = plain.images.with_columns(
        pl.Series("file", [f"pictures/img{n}.png" for n in range(images)]),
        pl.Series("kind", ["odd" if n % 2 else "even" for n in range(images)]),
        pl.lit(64).alias("width"),
        pl.lit(48).alias("height"),
    )
    objects = pl.DataFrame(
        {
            "image": [f"img{n}" for n in range(images)],
            "object": [f"o{n}" for n in range(images)],
            "name": ["dog" if n % 3 else "cat" for n in range(images)],
            "synset": ["dog.n.01" if n % 3 else "cat.n.01" for n in range(images)],
            "x": [4.0] * images, "y": [6.0] * images, "w": [20.0] * images, "h": [15.0 + n for n in range(images)],
        }
    )  # fmt: skip
    return replace(plain, images=frame, objects=objects)


def write_run(folder: Path, dataset: cl.Dataset, name: str, seed: int, source: str = "../toys") -> Path:
    """A run of drawn scores that names its dataset, relative to its folder."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(len(dataset.image_ids), len(dataset.caption_ids))).astype(np.float32)
    matrix[dataset.caption_image, np.arange(len(dataset.caption_ids))] += 1.5
    metrics = ["Hit@1", "Hit@5", "MRR", "MedR"]
    run = cl.evaluate(dataset, scores=matrix, metrics=metrics, resamples=20, name=name)
    return replace(run, recipe=RECIPE.format(source=source)).save(folder / name.replace(" ", "-"))


@pytest.fixture(scope="session")
def runs_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs over one dataset, and a third folder that is damaged. Tests that write make their own."""
    return fill(tmp_path_factory.mktemp("served") / "runs")


def leave_out_control(patch: pytest.MonkeyPatch) -> None:
    """The toys count: captions that differ in a number are similar, and nothing would be worth a look."""
    for module in ("crosslens.analyze.missing_positives", "crosslens.web.explorer.queries"):
        patch.setattr(f"{module}.check_similarity", lambda *_: Control(0, 0, 0, 0))


@pytest.fixture
def without_control(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out_control(monkeypatch)


def explorer_of(folder: Path, cache: Path, **settings: object) -> TestClient:
    """A client of the explorer alone: analysing the addresses of the other features is most of what a test takes."""
    return client_of(folder, cache, ["explorer"], **settings)


def copy_of(folder: Path, target: Path) -> Path:
    """The same folder to write into; times are kept."""
    return Path(shutil.copytree(folder, target / "runs", symlinks=True))


def fill(folder: Path) -> Path:
    dataset = toys()
    dataset.save(folder / "toys")
    pictures = folder / "toys" / "pictures"
    pictures.mkdir()
    for row, image in enumerate(dataset.image_ids):
        Image.new("RGB", (64, 48), (20 * row, 90, 200 - 10 * row)).save(pictures / f"{image}.png")
    write_run(folder, dataset, "model a", 1)
    write_run(folder, dataset, "model b", 2)
    damaged = write_run(folder, dataset, "broken", 3)
    (damaged / "queries.parquet").write_bytes(b"PAR1 nothing")
    return folder


@pytest.fixture(scope="session")
def client(runs_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with client_of(runs_folder, tmp_path_factory.mktemp("cache")) as opened:
        yield opened


def client_of(
    folder: Path, cache: Path, features: Sequence[str] = application.FEATURES, **settings: object
) -> TestClient:
    """A client of a fresh application with some features or all; errors of the server come back as responses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(application, "FEATURES", features)
        app = application.create_app(WebSettings(folder, cache=cache, **settings))  # type: ignore[arg-type]
    return TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)

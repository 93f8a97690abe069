"""One encoder at a time, in one thread, with a limited queue; uploads are decoded only when they may be."""

from __future__ import annotations

import io
import shutil
import struct
import threading
import zlib
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from crosslens.core import ConflictError, InputError, UsageError
from crosslens.encode import IMAGES, TEXTS
from crosslens.storage import UntrustedCodeError
from crosslens.values import Run
from crosslens.web.library import RunLibrary
from crosslens.web.search.encoders import MOST_BYTES, EncoderChoice, EncoderWorker, LoadedEncoder, encoder_choices
from tests.web.conftest import toys


class Counting:
    """An encoder that notes which thread it runs in."""

    name, revision, preprocessing, dimension, logit_scale = "counting", "1", "", 2, None
    abilities = frozenset((TEXTS,))
    threads: ClassVar[set[str]] = set()

    def encode_texts(self, texts: list[str]) -> np.ndarray:
        self.threads.add(threading.current_thread().name)
        return np.array([[len(text), 1.0] for text in texts], np.float32)

    def encode_images(self, images: list[Image.Image]) -> np.ndarray:
        raise AssertionError


class Measuring(Counting):
    """An encoder whose vectors are width, height and number of channels."""

    abilities = frozenset((IMAGES,))

    def encode_images(self, images: list[Image.Image]) -> np.ndarray:
        return np.array([(*image.size, len(image.getbands())) for image in images], np.float32)


def choice(name: str) -> EncoderChoice:
    return EncoderChoice(name, name, name)


def test_one_encoder_is_in_memory_and_runs_in_one_thread(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    models_loaded: list[str] = []

    def load(model: str, options: object) -> Counting:
        models_loaded.append(model)
        return Counting()

    monkeypatch.setattr("crosslens.web.search.encoders.load_encoder", load)
    worker = EncoderWorker(tmp_path)

    def search(name: str) -> int:
        return len(worker.gallery(choice(name), toys(), TEXTS, (), None)[1].embeddings.ids)

    assert [worker.call(lambda name=name: search(name)) for name in ("a", "a", "b", "a")] == [24] * 4
    assert models_loaded == ["a", "b", "a"]
    assert worker.has(choice("a"), toys(), TEXTS)
    assert not worker.has(choice("b"), toys(), TEXTS)
    assert {name.rpartition("_")[0] for name in Counting.threads} == {"crosslens-searches"}
    with pytest.raises(UsageError, match="not images"):
        worker.call(lambda: worker.gallery(choice("a"), toys(), IMAGES, (), None))
    worker.stop()


def test_a_full_queue_is_refused_and_a_slow_encoder_given_up() -> None:
    worker, gate = EncoderWorker(most=2), threading.Event()
    worker.submit(gate.wait)
    second = worker.submit(gate.wait)
    with pytest.raises(ConflictError, match="2 searches are under way"):
        worker.submit(gate.wait)
    gate.set()
    second.result(5)
    gate.clear()
    with pytest.raises(ConflictError, match="did not answer within"):
        worker.call(gate.wait, wait=0.05)
    gate.set()
    worker.stop()


def test_choices_are_those_of_runs_and_of_the_command(runs_folder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(runs_folder, tmp_path / "runs"))
    recipe = folder / "model-a" / "recipe.toml"
    choices = encoder_choices(RunLibrary(folder), ("clip:x/y", "tiny"))
    assert [choice.model for choice in choices] == ["clip:x/y", "tiny"]
    text = recipe.read_text().replace("[model]", '[model]\nname = "onnx:towers.json"')
    replace(Run.load(folder / "model-a"), recipe=text).save(folder / "onnx-run")
    choices = encoder_choices(RunLibrary(folder))
    assert [choice.model for choice in choices] == ["tiny", "onnx:towers.json"]
    assert choices[1].origin == folder / "onnx-run" / "recipe.toml"


def test_code_that_a_recipe_names_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("raise SystemExit('ran')\n")
    choice = EncoderChoice("x", "x", f"callable:{tmp_path / 'model.py'}:encoder", tmp_path / "recipe.toml")
    worker = EncoderWorker(tmp_path)
    with pytest.raises(UntrustedCodeError):
        worker.call(lambda: worker.loaded(choice))
    worker.stop()


def encoded(kind: str, size: tuple[int, int] = (8, 6)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, (200, 10, 10)).save(file, kind)
    return file.getvalue()


def bomb() -> bytes:
    """A PNG of a few hundred bytes that claims 60,000 × 60,000 pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 1000))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP"])
def test_pictures_are_decoded(kind: str) -> None:
    assert LoadedEncoder(choice("a"), Measuring()).embed_picture(encoded(kind)).vectors.tolist() == [[8, 6, 3]]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "not a readable image: empty file"), (b"<svg onload='x'/>", "not a readable image"),
        (encoded("TIFF"), "the picture is a TIFF file"), (encoded("JPEG", (64, 64))[:400], "not a readable image"),
        (b"\0" * (MOST_BYTES + 1), "12,000,001 bytes"), (bomb(), "too many pixels"),
        (encoded("PNG", (4000, 1)), "4,000 × 1 pixels"),
    ],
    ids=["empty", "markup", "tiff", "cut off", "too large", "bomb", "strip"],
)  # fmt: skip
def test_other_uploads_are_refused(content: bytes, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        LoadedEncoder(choice("a"), Measuring()).embed_picture(content)

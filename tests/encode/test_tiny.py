"""The built-in encoder: small, without torch, and good at what it was trained for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="pip install 'crosslens[onnx]'")
pytest.importorskip("PIL", reason="pip install 'crosslens[scenes]'")

from crosslens.core import UsageError
from crosslens.encode import encode_dataset, load_encoder
from crosslens.encode.adapters.onnx import TINY
from crosslens.pipeline import evaluate, group_metrics
from crosslens.synth import generate, write_scenes
from crosslens.values import Dataset, Run

LARGEST = 8_000_000
TRAINING = Path(__file__).parents[2] / "training" / "tiny"


def evaluated(dataset: Dataset, folder: Path) -> Run:
    encoded = encode_dataset(dataset, load_encoder("tiny"), image_folder=folder)
    return evaluate(dataset, images=encoded.images, captions=encoded.captions)


def test_files_are_small() -> None:
    assert sum(file.stat().st_size for file in TINY.iterdir() if file.is_file()) <= LARGEST


def test_what_it_says_of_itself() -> None:
    tiny = load_encoder("tiny")
    assert (tiny.name, tiny.dimension, tiny.abilities) == ("tiny", 128, frozenset({"images", "texts"}))
    assert tiny.logit_scale is not None
    assert 1 < tiny.logit_scale <= 100
    with pytest.raises(UsageError, match="takes no source"):
        load_encoder("tiny:other")


def test_settings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError, match="tiny computes in fp32") as raised:
        load_encoder("tiny", precision="fp16")
    assert "leave out precision=" in str(raised.value.fix)
    with pytest.raises(UsageError, match="unknown device 'banana'"):
        load_encoder("tiny", device="banana")


def test_vectors_do_not_depend_on_the_batch() -> None:
    tiny = load_encoder("tiny")
    scenes = list(generate(5, "colour,count,ocr", seed=7))
    pictures = [scene.render() for scene in scenes]
    texts = [caption.text for scene in scenes for caption in scene.captions]
    for encode, items in ((tiny.encode_images, pictures), (tiny.encode_texts, texts)):
        together = encode(items)
        alone = np.concatenate([encode([item]) for item in items])
        np.testing.assert_allclose(together, alone, atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)


def test_odd_texts_have_vectors() -> None:
    vectors = load_encoder("tiny").encode_texts(["", "日本 ☃", "word " * 400, "A red car."])
    assert vectors.shape == (4, 128)
    assert np.isfinite(vectors).all()


def test_it_needs_no_torch() -> None:
    program = (
        "import sys; from crosslens.encode import load_encoder; load_encoder('tiny').encode_texts(['a red car']); "
        "print([name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_it_finds_scenes_it_has_not_seen(tmp_path: Path) -> None:
    run = evaluated(write_scenes(tmp_path, 30, "colour,object,scene,count,figure", 7, workers=1), tmp_path)
    assert run["t2i/Hit@1"].mean > 0.8  # chance is 1 in 30


@pytest.mark.slow
def test_a_thousand_scenes(tmp_path: Path) -> None:
    run = evaluated(write_scenes(tmp_path, 1000, "all", 7), tmp_path)
    assert run["t2i/Hit@10"].mean >= 0.6
    tasks = {task: metric.mean for task, metric in group_metrics(run, "task", "t2i/Hit@1").values["t2i/Hit@1"].items()}
    assert min(tasks["colour"], tasks["object"]) > max(tasks["calculation"], tasks["code"])


@pytest.mark.slow
def test_training_again_gives_the_same_model(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="pip install 'crosslens[torch]'")
    pytest.importorskip("onnx", reason="pip install 'crosslens[test]'")
    for attempt in ("one", "other"):
        size = ("--scenes", "36", "--epochs", "2", "--batch", "12", "--watched", "12", "--workers", "1")
        places = ("--output", str(tmp_path / attempt), "--corpus", str(tmp_path / "corpus"))
        subprocess.run([sys.executable, str(TRAINING / "train.py"), *size, *places], check=True, capture_output=True)
    first, second = ((tmp_path / attempt / "tiny.pt").read_bytes() for attempt in ("one", "other"))
    assert first == second
    curve = [json.loads(line) for line in (tmp_path / "one" / "curve.jsonl").read_text().splitlines()]
    assert [point["epoch"] for point in curve] == [1, 2]
    places = ("--trained", str(tmp_path / "one"), "--output", str(tmp_path / "made"))
    subprocess.run([sys.executable, str(TRAINING / "export.py"), *places], check=True, capture_output=True)
    vectors = load_encoder(f"onnx:{tmp_path / 'made' / 'towers.json'}").encode_texts(["A red car."])
    assert vectors.shape == (1, 128)

"""A small study with pictures, two runs with recipes, and the results of stages as their commands print them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.audits import Audit, StageResult, load_audit
from crosslens.cli import main
from crosslens.data import image_files

NASTY = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'> \"quoted\" & 'so' שלום"
IMAGES, PER_IMAGE = 24, 3
COLOURS = ("red", "green", "blue", "grey")
METRICS = "Hit@1 Hit@5 Hit@10 Recall@1 Recall@5 CappedRecall@5 MedR mAP@R NCS[cider]@5"


@dataclass(frozen=True)
class Study:
    """Folders of two runs, the dataset behind them, and the scores that they were made from."""

    folder: Path
    dataset: cl.Dataset
    scores: dict[str, np.ndarray[Any, Any]]

    @property
    def runs(self) -> list[Path]:
        return [self.folder / "runs" / name for name in self.scores]


def drawn_pictures(folder: Path, names: list[str], side: int = 64) -> None:
    """Noise in one colour each: pictures that do not compress well."""
    from PIL import Image

    random = np.random.default_rng(5)
    folder.mkdir(parents=True)
    for row, name in enumerate(names):
        pixels = random.integers(0, 255, (side, side, 3), np.uint8)
        pixels[..., row % 3] = 255
        Image.fromarray(pixels).save(folder / name, compress_level=0)


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("study")
    ids = [f"picture {number:02}" for number in range(IMAGES)]
    drawn_pictures(folder / "photos", [f"{image}.png" for image in ids])
    captions = {
        image: [f"a {COLOURS[row % 4]} picture of {row}", f"picture {row}, mostly {COLOURS[row % 4]}", NASTY]
        for row, image in enumerate(ids)
    }
    dataset = cl.Dataset.of(
        captions,
        images={"file": [f"{image}.png" for image in ids], "colour": [COLOURS[row % 4] for row in range(IMAGES)]},
        name="colours",
    )
    dataset.save(folder / "dataset")
    random = np.random.default_rng(1)
    owner = np.repeat(np.arange(IMAGES), PER_IMAGE)
    scores = {}
    for name, noise in (("first model", 0.55), ("second <b>model", 0.45)):
        matrix = (np.arange(IMAGES)[:, None] == owner[None, :]) + noise * random.standard_normal((IMAGES, len(owner)))
        matrix[:, owner % 4 == 3] = random.standard_normal((IMAGES, int((owner % 4 == 3).sum())))  # grey is hard
        scores[name] = matrix.astype(np.float32)
        np.save(folder / f"{len(scores)}.npy", scores[name])
        words = ["evaluate", "--dataset", folder / "dataset", "--scores", folder / f"{len(scores)}.npy", "--metrics",
                 METRICS, "--resamples", "200", "--name", name, "-o", folder / "runs" / name]  # fmt: skip
        command(*words)
    return Study(folder, dataset, scores)


def command(*words: str | Path) -> str:
    """What a command prints."""
    out, told = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(told):
        code = main([str(word) for word in words])
    assert code == 0, told.getvalue()
    return out.getvalue()


@dataclass(frozen=True)
class Drawn:
    """Drawn scenes, and the audit of a model on them with every stage."""

    folder: Path
    audit: Audit

    @property
    def results(self) -> tuple[StageResult, ...]:
        return self.audit.results


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drawn]:
    """Takes a while: for slow tests."""
    folder = tmp_path_factory.mktemp("drawn")
    scenes, cases = folder / "scenes", folder / "cases.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROSSLENS_CACHE", str(folder / "cache"))
        command("synth", "--images", "40", "--seed", "7", "-o", scenes)
        dataset = cl.load_dataset(scenes)
        pictures = dict(zip(dataset.image_ids, image_files(dataset), strict=True))
        rows = list(zip(dataset.caption_image, dataset.texts, dataset.texts[::-1], strict=True))
        lines = [
            json.dumps({"image": pictures[dataset.image_ids[image]], "text": text, "case": str(row), "right": right})
            for row, (image, *texts) in enumerate(rows)
            for text, right in zip(texts, (True, False), strict=True)
        ]
        cases.write_text("\n".join(lines))
        words = ("--model", "tiny", "--quick", "--hard-negatives", cases)
        command("audit", "--dataset", scenes, *words, "-o", folder / "audit")
        yield Drawn(folder, load_audit(folder / "audit"))

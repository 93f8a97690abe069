"""A panel of real scorers for Flickr8k and COCO: what stands in for the paper's seven CLIPs where there are no weights.

    python reproduce/panel.py      # the data: CROSSLENS_DATA, or ../shared/data beside the repository

Every member gives an images × captions matrix for the photos that are evaluated and one for photos that calibrate it:

- ``text L6``, ``text L3``: two sentence encoders, no pixels. The mean of a photo's captions stands for the photo. So
  that no caption meets itself, and no photo has a caption more than another, the caption in position k is compared with
  the means of all captions but those in position k, of every photo.
- ``ridge L6``, ``ridge L3``: ridge regression from image features to the mean caption vector (λ = 3,000).
- ``cca L6``: canonical correlation of features and caption vectors, in closed form.
- ``head L6``, ``head words``, ``grid L3``: two towers trained by InfoNCE (``panel_heads.py``), on features of the whole
  photo, or of a 3×3 grid, which exists for Flickr8k alone.
- ``tiny``: the built-in encoder, made for drawn scenes, on the photos themselves.

Flickr8k: fitted on its 6,000 training photos, calibrated on the 1,000 of ``dev``, evaluated on the 1,000 of ``test``.
COCO: evaluated on the 1,000 photos that are at hand as pictures, calibrated on 1,000 others (drawn with a seed), fitted
on the remaining 2,339 and Flickr8k's 6,000. ``tiny`` needs pictures, so the other dataset's evaluated photos calibrate
it; it was fitted on neither. Vectors are kept in crosslens' cache, trained weights and matrices in ``runs/panel``: an
interrupted call resumes, and a second one takes seconds.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import crosslens as cl
from crosslens.cli.console import progress_bar
from crosslens.encode import Cache, Encoder, caption_rows, encode_dataset, encode_texts, load_encoder
from flickr8k import encoders
from pages import real_data
from sugar_crepe import Ridge, features_of

if TYPE_CHECKING:
    from panel_heads import Head

Array = np.ndarray[Any, Any]

KEPT = Path(__file__).resolve().parents[1] / "runs" / "panel"
GRID = "efficientnet_lite0_grid3x3_pca256.npy"
SEED, CALIBRATION = 14, 1000
L6, L3 = "all-MiniLM-L6-v2", "paraphrase-MiniLM-L3-v2"
SHRINKAGE = 0.5
"""Share of the mean variance that is added to every covariance of the canonical correlation."""
METRICS = [f"{direction}/Hit@{k}" for direction in ("i2t", "t2i") for k in (1, 5, 10)]
EXPECTED = {"ridge L6": (14.9, 34.1, 46.5, 17.1, 40.7, 53.1)}
"""Known figures on Flickr8k's test photos, in percent, computed once without crosslens; ties count as hits there."""
NAMES = {"flickr8k": "Flickr8k", "coco": "COCO"}


@cache
def sentence_encoder(name: str) -> Encoder:
    """One of the two, loaded once."""
    return encoders()[name]


@dataclass(frozen=True, eq=False)
class Part:
    """Photos with their captions, image features and caption vectors; ``pictures`` is the folder of the photos."""

    name: str
    dataset: cl.Dataset
    features: Array
    grid: Array | None = None
    pictures: Path | None = None
    kept: dict[str, Array] = field(default_factory=dict)

    def vectors(self, encoder: str) -> Array:
        """Caption vectors of one sentence encoder."""
        if encoder not in self.kept:
            found = encode_texts(sentence_encoder(encoder), self.dataset.texts, cache=Cache(), progress=progress_bar())
            self.kept[encoder] = found.rows.astype(np.float64)
        return self.kept[encoder]

    def means(self, encoder: str) -> Array:
        """The mean caption vector of every photo."""
        return np.stack([self.vectors(encoder)[rows].mean(axis=0) for rows in caption_rows(self.dataset)])


Scorer = Callable[[Part], Array]


@dataclass(frozen=True)
class Split:
    """What one dataset's panel is fitted on, calibrated with and evaluated on."""

    fitted: tuple[Part, ...]
    calibration: Part
    test: Part


# The data


class Data:
    """Both datasets and how they are divided."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or real_data("flickr8k/features", "coco_val2017", "coco_val2017_1k")

    @cached_property
    def splits(self) -> dict[str, Split]:
        """Flickr8k as its authors divided it; COCO by which photos are at hand, and by lot."""
        flickr = self.flickr_parts()
        coco = self.coco_parts()
        return {
            "flickr8k": Split((flickr["train"],), flickr["dev"], flickr["test"]),
            "coco": Split((flickr["train"], coco["fitted"]), coco["calibration"], coco["test"]),
        }

    def flickr_parts(self) -> dict[str, Part]:
        """Flickr8k's three parts."""
        folder = self.folder / "flickr8k"
        names, features = features_of(folder / "features")
        row_of = {name: row for row, name in enumerate(names)}
        grid = np.load(folder / "features" / GRID).astype(np.float32)
        whole = cl.load_dataset("flickr", captions=folder / "Flickr8k.token.txt")
        parts = {}
        for name in ("train", "dev", "test"):
            images = (folder / f"Flickr_8k.{name}Images.txt").read_text(encoding="utf-8").split()
            rows = [row_of[image] for image in images]
            pictures = folder / "images" if name == "test" else None
            parts[name] = Part(f"Flickr8k {name}", whole.select(images), features[rows], grid[rows], pictures)
        return parts

    def coco_parts(self) -> dict[str, Part]:
        """COCO's photos: those at hand are evaluated, a thousand others calibrate, the rest is for fitting."""
        folder = self.folder / "coco_val2017"
        names, features = features_of(folder)
        row_of = {str(int(Path(name).stem)): row for row, name in enumerate(names)}
        whole = cl.load_dataset("coco", captions=folder / "captions.json.gz")
        pictured = cl.load_dataset("coco", captions=self.folder / "coco_val2017_1k" / "captions.json").image_ids
        others = sorted(set(whole.image_ids) - set(pictured), key=int)
        order = [others[position] for position in np.random.default_rng(SEED).permutation(len(others))]
        chosen = {"test": pictured, "calibration": order[:CALIBRATION], "fitted": order[CALIBRATION:]}
        return {
            name: Part(
                f"COCO {name}", whole.select(images), features[[row_of[image] for image in images]],
                pictures=self.folder / "coco_val2017_1k" / "images" if name == "test" else None,
            )
            for name, images in chosen.items()
        }  # fmt: skip


# Members


def unit(vectors: Array) -> Array:
    """Vectors of length 1."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def cosines(images: Array, captions: Array) -> Array:
    """Images × captions."""
    return (unit(images) @ unit(captions).T).astype(np.float32)


def text_only(encoder: str) -> Scorer:
    """Captions against captions: position by position, so that every photo lacks as many as the asking one."""

    def score(part: Part) -> Array:
        vectors = unit(part.vectors(encoder))
        rows = caption_rows(part.dataset)
        position = {row: place for own in rows for place, row in enumerate(own)}
        scores = np.empty((len(rows), len(vectors)), np.float32)
        for place in range(max(map(len, rows))):
            means = np.stack([np.delete(vectors[own], place % len(own), axis=0).mean(axis=0) for own in rows])
            asked = [row for row in range(len(vectors)) if position[row] == place]
            scores[:, asked] = cosines(means, vectors[asked])
        return scores

    return score


def ridge(encoder: str, fitted: tuple[Part, ...]) -> Scorer:
    """A regression from features to mean caption vectors."""
    model = Ridge.fit(
        np.concatenate([part.features for part in fitted]), np.concatenate([part.means(encoder) for part in fitted])
    )
    return lambda part: cosines(model.images(part.features), model.captions(part.vectors(encoder)))


def cca(encoder: str, fitted: tuple[Part, ...]) -> Scorer:
    """Canonical correlation: both sides whitened, rotated to their common directions, weighted by the correlations."""
    features = np.concatenate([np.repeat(part.features, counts(part), axis=0) for part in fitted])
    captions = np.concatenate([part.vectors(encoder)[by_image(part)] for part in fitted])
    sides = []
    for values in (features, captions):
        centre, spread = values.mean(axis=0), values.std(axis=0) + 1e-6
        scaled = (values - centre) / spread
        root = inverse_root(scaled.T @ scaled / len(scaled) + SHRINKAGE * np.eye(values.shape[1]))
        sides.append((centre, spread, root, scaled))
    (_, _, left_root, left), (_, _, right_root, right) = sides
    left_axes, correlations, right_axes = np.linalg.svd(
        left_root @ (left.T @ right / len(left)) @ right_root, full_matrices=False
    )
    maps = (left_root @ left_axes * correlations, right_root @ right_axes.T * correlations)

    def project(values: Array, side: int) -> Array:
        centre, spread, *_ = sides[side]
        return (values - centre) / spread @ maps[side]

    return lambda part: cosines(project(part.features, 0), project(part.vectors(encoder), 1))


def inverse_root(matrix: Array) -> Array:
    """The matrix to the power −½."""
    values, axes = np.linalg.eigh(matrix)
    return axes / np.sqrt(values) @ axes.T


def counts(part: Part) -> Array:
    """How many captions each photo has."""
    return np.array([len(rows) for rows in caption_rows(part.dataset)])


def by_image(part: Part) -> Array:
    """Rows of the captions, photo after photo."""
    return np.concatenate(caption_rows(part.dataset)).astype(int)


def trained(encoder: str | None, fitted: tuple[Part, ...], *, grid: bool = False) -> tuple[Head, Scorer]:
    """Two towers; without an encoder the text tower learns words."""
    from panel_heads import train

    seen = [inputs(part, grid) for part in fitted]
    offsets = np.cumsum([0, *(len(values) for values in seen)])
    head = train(
        np.concatenate(seen),
        [text for part in fitted for text in part.dataset.texts],
        None if encoder is None else np.concatenate([part.vectors(encoder) for part in fitted]),
        np.concatenate([part.dataset.caption_image + start for part, start in zip(fitted, offsets, strict=False)]),
        KEPT,
    )
    return head, lambda part: cosines(
        head.images(inputs(part, grid)), head.captions(part.dataset.texts, part.vectors(encoder or L6))
    )


def inputs(part: Part, grid: bool) -> Array:
    """What an image tower reads."""
    if not grid:
        return part.features
    assert part.grid is not None
    return part.grid


def tiny(part: Part) -> Array:
    """The built-in encoder on the photos themselves."""
    found = encode_dataset(
        part.dataset, load_encoder("tiny"), image_folder=part.pictures, cache=Cache(), progress=progress_bar()
    )
    assert found.images is not None
    assert found.captions is not None
    return cosines(found.images.vectors, found.captions.vectors)


def members(split: Split) -> dict[str, Callable[[], Scorer]]:
    """The panel of a dataset; a member is fitted when it is called."""
    fitted = split.fitted
    panel: dict[str, Callable[[], Scorer]] = {
        "text L6": lambda: text_only(L6),
        "text L3": lambda: text_only(L3),
        "ridge L6": lambda: ridge(L6, fitted),
        "ridge L3": lambda: ridge(L3, fitted),
        "cca L6": lambda: cca(L6, fitted),
        "head L6": lambda: trained(L6, fitted)[1],
        "head words": lambda: trained(None, fitted)[1],
        "grid L3": lambda: trained(L3, fitted, grid=True)[1],
        "tiny": lambda: tiny,
    }
    return {name: build for name, build in panel.items() if name != "grid L3" or split.test.grid is not None}


# What the other scripts take


@dataclass(frozen=True)
class Judged:
    """One member's matrices: of the photos that are evaluated, and of those that calibrate it."""

    scores: Array
    calibration: Array
    calibrated_on: Part


def panel(data: Data, name: str) -> dict[str, Judged]:
    """Every member of one dataset's panel; matrices that were computed before, by the same code, are read."""
    split = data.splits[name]
    other = next(found.test for key, found in data.splits.items() if key != name)
    folder = KEPT / code_version() / name
    folder.mkdir(parents=True, exist_ok=True)
    judged = {}
    for member, build in members(split).items():
        parts = (split.test, other if member == "tiny" else split.calibration)
        files = [folder / f"{member}-{use}.npy".replace(" ", "-") for use in ("test", "calibration")]
        if not all(file.exists() for file in files):
            score = build()
            for part, file in zip(parts, files, strict=True):
                keep(score(part), file)
        judged[member] = Judged(*(np.load(file, mmap_mode="r") for file in files), parts[1])
    return judged


def keep(scores: Array, file: Path) -> None:
    """Write a matrix so that it is never half written."""
    scratch = file.with_name(f"part-{file.name}")
    np.save(scratch, scores)
    scratch.replace(file)


def code_version() -> str:
    """Of the files that decide what the matrices are."""
    here = Path(__file__).resolve().parent
    return hashlib.sha256(
        b"".join((here / name).read_bytes() for name in ("panel.py", "panel_heads.py", "sugar_crepe.py"))
    ).hexdigest()[:12]


def figures(dataset: cl.Dataset, scores: Array, ties: str = "stable") -> tuple[float, ...]:
    """Hit@1, 5, 10 in both directions, in percent."""
    run = cl.evaluate(dataset, scores=scores, metrics=["Hit@1", "Hit@5", "Hit@10"], resamples=0, ties=ties)
    return tuple(round(100 * run.values[metric].mean, 1) for metric in METRICS)


def main() -> int:
    """Print what every member reaches; the exit status says whether the known figures came out."""
    data = Data()
    same = True
    for name in data.splits:
        start = time.perf_counter()
        dataset = data.splits[name].test.dataset
        print(f"\n{data.splits[name].test.name}: {dataset}\n\n{'':12}" + "".join(f"{metric:>11}" for metric in METRICS))
        for member, judged in panel(data, name).items():
            row = figures(dataset, judged.scores)
            print(f"{member:12}" + "".join(f"{value:>11.1f}" for value in row), flush=True)
            if name == "flickr8k" and member in EXPECTED:
                same &= figures(dataset, judged.scores, ties="optimistic") == EXPECTED[member]
                print(f"{'  known':12}" + "".join(f"{value:>11.1f}" for value in EXPECTED[member]), flush=True)
        print(f"{time.perf_counter() - start:.0f} s", flush=True)
    print("\nthe known figures came out" if same else "\nthe known figures did not come out")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())

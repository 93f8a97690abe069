"""A gallery larger than the captioned images: ranks, metrics, intervals and notes, against plain loops."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image

import crosslens as cl
from crosslens.cli import main
from crosslens.core import InputError, UsageError
from crosslens.encode import encode_dataset
from crosslens.encode.encoder import CallableEncoder
from crosslens.statistics import estimate
from tests.tables import rest_slow

METRICS = "Hit@1 Hit@5 Hit@10 MRR MeanR Rsum"
CUTOFFS = (1, 5, 10)


@dataclass
class World:
    """Captioned images first, then those without captions; a pixel is an image's vector."""

    captioned: int
    extra: int
    owners: list[int]
    pixels: np.ndarray[Any, Any]
    texts: np.ndarray[Any, Any]

    @property
    def small(self) -> cl.Dataset:
        captions: dict[str, list[str]] = {f"im{n}.png": [] for n in range(self.captioned)}
        for number, owner in enumerate(self.owners):
            captions[f"im{owner}.png"].append(f"caption number {number}")
        return cl.Dataset.of(captions)

    @property
    def extras(self) -> list[str]:
        return [f"extra{n}.png" for n in range(self.extra)]

    @property
    def dataset(self) -> cl.Dataset:
        return self.small.with_extra_images(self.extras)

    @property
    def scores(self) -> np.ndarray[Any, Any]:
        """Images × captions, in the dataset's order of captions."""
        units = [vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (self.pixels, self.texts)]
        return np.asarray(units[0] @ units[1].T)

    def write(self, folder: Path) -> None:
        for sub, names in (("own", self.small.image_ids), ("more", self.extras)):
            (folder / sub).mkdir(parents=True, exist_ok=True)
            for name in names:
                row = self.dataset.image_ids.index(name)
                Image.new("RGB", (2, 2), tuple(int(value) for value in self.pixels[row])).save(folder / sub / name)


class Pixels:
    """Encodes an image as the colour of its pixels, and a caption as what the world says."""

    def __init__(self, world: World) -> None:
        self._texts = dict(zip(world.small.texts, world.texts, strict=True))

    def encode_images(self, images: Any) -> Any:
        return np.array([image.convert("RGB").getpixel((0, 0)) for image in images], np.float32)

    def encode_texts(self, texts: Any) -> Any:
        return np.array([self._texts[text] for text in texts], np.float32)


@st.composite
def worlds(draw: Any) -> World:
    captioned, extra = draw(st.integers(2, 6)), draw(st.integers(0, 9))
    counts = [draw(st.integers(1, 3)) for _ in range(captioned)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    owners = [owner for owner, count in enumerate(counts) for _ in range(count)]
    pixels = rng.integers(1, 256, (captioned + extra, 3)).astype(np.float64)
    texts = pixels[owners] + rng.normal(0, 60, (len(owners), 3))
    return World(captioned, extra, owners, pixels, texts)


def plain_ranks(world: World) -> tuple[list[int], list[int]]:
    """For every captioned image the rank of its best caption, for every caption that of its image; counted by hand."""
    scores = world.scores
    of_images = []
    for image in range(world.captioned):
        ranks = []
        for caption, owner in enumerate(world.owners):
            if owner == image:
                above = sum(
                    1
                    for better_caption in range(len(world.owners))
                    if scores[image, better_caption] > scores[image, caption]
                )
                ranks.append(1 + above)
        of_images.append(min(ranks))
    of_captions = []
    for caption, owner in enumerate(world.owners):
        gallery = world.captioned + world.extra
        of_captions.append(1 + sum(1 for image in range(gallery) if scores[image, caption] > scores[owner, caption]))
    return of_images, of_captions


def lists_of(world: World) -> dict[str, Any]:
    dataset, scores = world.dataset, world.scores
    by_score = np.argsort(-scores, axis=0, kind="stable")
    t2i = {
        caption: {dataset.image_ids[image]: scores[image, column] for image in by_score[:, column]}
        for column, caption in enumerate(dataset.caption_ids)
    }
    i2t = {
        dataset.image_ids[row]: {dataset.caption_ids[c]: scores[row, c] for c in np.argsort(-scores[row])}
        for row in range(world.captioned)
    }
    return {"i2t": i2t, "t2i": t2i}


def check(world: World, run: cl.Run) -> None:
    of_images, of_captions = plain_ranks(world)
    clusters = {"i2t": np.arange(world.captioned), "t2i": np.array(world.owners)}
    rsum = 0.0
    for direction, ranks in (("i2t", of_images), ("t2i", of_captions)):
        for k in CUTOFFS:
            values = np.array([1.0 if rank <= k else 0.0 for rank in ranks])
            figure = run[f"{direction}/Hit@{k}"]
            assert figure.mean == pytest.approx(values.mean())
            rsum += 100 * float(values.mean())
            # The interval is that of the captioned images alone, whatever else is in the gallery.
            expected = estimate(values, clusters[direction], bounds=(0, 1))
            assert (figure.low, figure.high) == pytest.approx(expected.interval, nan_ok=True)
            assert (figure.n, figure.excluded) == (len(ranks), world.extra if direction == "i2t" else 0)
        assert run[f"{direction}/MRR"].mean == pytest.approx(np.mean([1 / rank for rank in ranks]))
        assert run[f"{direction}/MeanR"].mean == pytest.approx(np.mean(ranks))
    assert run["Rsum"].mean == pytest.approx(rsum)
    assert run["Rsum"].n == world.captioned
    images = world.captioned + world.extra
    expected_note = f"{world.extra} of {images} images have no caption: they are in the gallery, and no queries"
    assert [note for note in run.provenance["notes"] if "no caption" in note] == [expected_note] * bool(world.extra)


@given(worlds())
@settings(max_examples=3, deadline=None, derandomize=True)
def test_embeddings_scores_and_lists_against_plain_loops(world: World) -> None:
    check_all_inputs(world)


@pytest.mark.slow
@given(worlds())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_embeddings_scores_and_lists_of_many_worlds(world: World) -> None:
    check_all_inputs(world)


def check_all_inputs(world: World) -> None:
    common: dict[str, Any] = {"metrics": METRICS, "resamples": 100}
    check(world, cl.evaluate(world.dataset, images=world.pixels, captions=world.texts, **common))
    check(world, cl.evaluate(world.dataset, scores=world.scores, **common))
    check(world, cl.evaluate(world.dataset, run=lists_of(world), **common))
    shuffled = np.random.default_rng(0).permutation(len(world.pixels))
    by_id = cl.Embeddings(tuple(world.dataset.image_ids[row] for row in shuffled), world.pixels[shuffled])
    check(world, cl.evaluate(world.dataset, images=by_id, captions=world.texts, **common))


@given(worlds())
@settings(max_examples=3, deadline=None, derandomize=True)
def test_a_model_reads_the_files_of_both_folders(tmp_path_factory: pytest.TempPathFactory, world: World) -> None:
    folder = tmp_path_factory.mktemp("world")
    world.write(folder)
    dataset = world.small
    dataset = dataset.with_extra_images(folder / "more") if world.extra else dataset
    encoded = encode_dataset(dataset, CallableEncoder(Pixels(world), "pixels"), image_folder=folder / "own")
    assert encoded.dataset.image_ids == (*world.small.image_ids, *sorted(world.extras))
    check(world, cl.evaluate(encoded.dataset, images=encoded.images, captions=encoded.captions, metrics=METRICS))


def sample() -> World:
    rng = np.random.default_rng(5)
    pixels = rng.integers(1, 256, (30, 3)).astype(np.float64)
    owners = [number // 2 for number in range(40)]
    return World(20, 10, owners, pixels, pixels[owners] + rng.normal(0, 20, (40, 3)))


class TestGradedMetrics:
    def test_an_image_without_captions_gains_nothing(self) -> None:
        """φ is 0 for it: retrieved, it takes a rank; the ideal list, the idf of CIDEr and i2t are as without it."""
        captions = {"a": ["a red bus stops"], "b": ["a red bus goes"], "c": ["two dogs play"], "d": ["two dogs run"]}
        small, scores = cl.Dataset.of(captions), np.eye(4) + 0.1 * np.eye(4)[[1, 0, 3, 2]]
        large = small.with_extra_images(["x", "y"])
        phi = cl.relevance_matrix(large, "cider")
        assert (phi[4:] == 0).all()
        assert phi[:4] == pytest.approx(cl.relevance_matrix(small, "cider"))
        first = np.vstack([scores, np.full((2, 4), 2.0)])  # both are ranked above everything
        metrics = "NCS[cider]@1 NCS[cider]@3 SR[cider,m=2]@3 nDCG[cider]@3"
        before = cl.evaluate(small, scores=scores, metrics=metrics, resamples=0)
        after = cl.evaluate(large, scores=first, metrics=metrics, resamples=0)
        assert after["t2i/NCS[cider]@1"].mean == 0
        own_phi = np.array([phi[row, row] for row in range(4)])
        ideal = np.array([np.sort(phi[:, column])[::-1][:3].sum() for column in range(4)])
        assert after["t2i/NCS[cider]@3"].mean == pytest.approx((own_phi / ideal).mean())
        assert after["t2i/SR[cider, m=2]@3"].mean == 0.5
        for name in (name for name in before.values if name.startswith("i2t/")):
            assert after[name].mean == pytest.approx(before[name].mean)
            assert after[name].n == before[name].n


def test_phi_of_listed_images_without_captions() -> None:
    """Lists, like scores: what stands for an image without captions gains nothing."""
    world = sample()
    metrics = "t2i/NCS[cider]@5 t2i/SR[cider,m=3]@5 t2i/DCGcm@5"
    by_lists = cl.evaluate(world.dataset, run=lists_of(world), metrics=metrics, resamples=0)
    by_scores = cl.evaluate(world.dataset, scores=world.scores, metrics=metrics, resamples=0)
    for name in by_scores:
        assert by_lists[name].values == pytest.approx(by_scores[name].values, nan_ok=True)


class TestFoldsAndRefusals:
    def test_folds(self) -> None:
        world = sample()
        with pytest.raises(
            UsageError, match="5 folds, and the last 10 images have no captions: they belong to no fold"
        ):
            cl.evaluate(world.dataset, scores=world.scores, folds=5)

    def test_images_without_captions_among_the_others_belong_to_their_fold(self) -> None:
        captions = {f"im{n}": [f"caption {n}"] if n % 3 else [] for n in range(12)}
        scores = np.random.default_rng(0).standard_normal((12, 8))
        run = cl.evaluate(cl.Dataset.of(captions), scores=scores, folds=2, metrics="t2i/MeanR", resamples=0)
        ranks = []
        for column, image in enumerate(n for n in range(12) if n % 3):
            fold = range(6) if image < 6 else range(6, 12)
            ranks.append(1 + sum(scores[better_image, column] > scores[image, column] for better_image in fold))
        assert run["t2i/MeanR"].mean == pytest.approx(np.mean(ranks))

    def test_vectors_of_the_captioned_images_only(self) -> None:
        world = sample()
        with pytest.raises(InputError, match="20 is the number of images with captions: encode the 10 others, too"):
            cl.evaluate(world.dataset, images=world.pixels[:20], captions=world.texts)

    def test_lists_over_a_larger_gallery_name_the_option(self) -> None:
        world = sample()
        with pytest.raises(InputError, match="extra_images= adds images without captions"):
            cl.evaluate(world.small, run={"t2i": lists_of(world)["t2i"]})


def test_lists_count_at_their_rank_where_skip_unknown_would_promote_them() -> None:
    world = sample()
    lists = {"t2i": lists_of(world)["t2i"]}
    _, ranks = plain_ranks(world)
    within = cl.evaluate(world.small, run=lists, metrics="MeanR", skip_unknown=True)["t2i/MeanR"].mean
    whole = cl.evaluate(world.dataset, run=lists, metrics="MeanR")["t2i/MeanR"].mean
    assert whole == pytest.approx(np.mean(ranks))
    assert within < whole


def test_two_runs_are_compared_over_the_captioned_images() -> None:
    """The paired difference, its interval and its p-value do not depend on images that are no query."""
    world, rng = sample(), np.random.default_rng(1)
    noisy = world.scores + rng.normal(0, 0.01, world.scores.shape)
    low = np.full((5, 40), -2.0)  # five more images, ranked last for every caption
    larger = world.dataset.with_extra_images([f"more{n}" for n in range(5)])
    runs = [
        [cl.evaluate(dataset, scores=scores, name=name, metrics="Hit@1 Rsum") for name, scores in pairs]
        for dataset, pairs in (
            (world.dataset, (("first", world.scores), ("second", noisy))),
            (larger, (("first", np.vstack([world.scores, low])), ("second", np.vstack([noisy, low])))),
        )
    ]
    first, second = (cl.compare(*pair, permutations=200) for pair in runs)
    assert first.results == second.results


class TestCommandLine:
    @pytest.fixture
    def files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
        monkeypatch.chdir(tmp_path)
        world = sample()
        world.write(tmp_path)
        rows = zip(world.small.captions["image"], world.small.texts, strict=True)
        (tmp_path / "captions.csv").write_text("image,text\n" + "".join(f"{image},{text}\n" for image, text in rows))
        np.save(tmp_path / "scores.npy", world.scores.astype(np.float32))
        (tmp_path / "more.txt").write_text("\n".join(world.extras))
        return world

    @pytest.mark.parametrize("where", rest_slow(["more", "more.txt"]))
    def test_evaluate_and_repeat(self, files: World, where: str, capsys: pytest.CaptureFixture[str]) -> None:
        command = f"evaluate --dataset captions.csv --scores scores.npy --extra-images {where} -o out"
        assert main([*command.split(), "--metrics", METRICS]) == 0
        check(files, cl.Run.load("out"))
        assert 'extra_images = "../more' in Path("out/recipe.toml").read_text()
        capsys.readouterr()
        assert main(["run", "out", "-o", "again"]) == 0
        assert "every query has the same value" in capsys.readouterr().err
        (Path(where) / "added.png" if where == "more" else Path("more.txt")).write_text("another.png")
        assert main(["run", "out", "-o", "third"]) != 0

    @pytest.mark.slow
    def test_encode_and_robustness(self, files: World, capsys: pytest.CaptureFixture[str]) -> None:
        folders = "--dataset captions.csv --image-folder own --extra-images more"
        assert main(f"encode {folders} --model tiny -o vectors".split()) == 0
        assert len(cl.Embeddings.load("vectors/images").ids) == 30
        study = f"robustness {folders} --model tiny --perturbations char_swap --json --resamples 50 --permutations 50"
        assert main(study.split()) == 0

    def test_a_recipe_with_a_wrong_value(self, files: World, capsys: pytest.CaptureFixture[str]) -> None:
        Path("r.toml").write_text(
            '[dataset]\nsource = "captions.csv"\nextra_images = 3\n[inputs]\nscores = "scores.npy"\n'
        )
        assert main(["run", "r.toml"]) == 3
        assert "r.toml, line 3: extra_images = 3" in capsys.readouterr().err

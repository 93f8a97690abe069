"""Which images and descriptions a RECOS benchmark has: by hand, and every decision by other means."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.build import Recos, RecosSettings, build_recos
from tests.build.recos_builds import SETTINGS, angle, build, toy
from tests.build.toy_models import Words

PLANE = RecosSettings(k=2, eta=1, temperature=0.1, descriptions=2, similar=1, duplicate_cosine=2)


def confusables(benchmark: Recos) -> dict[str, str | None]:
    """Original → its confusable, as the log says in the end."""
    return {entry["image"]: entry["confusable"] for entry in benchmark.log.of("confusable")}


def test_neighbours_worked_out_by_hand(tmp_path: Path) -> None:
    """One original per task; the nearest of its source is the confusable, unless it is the same picture."""
    points = {"a": angle(0), "a copy": angle(1), "a near": angle(20), "b": angle(180), "b near": angle(200)}
    points |= {"a far": angle(50), "b far": angle(150)}
    tasks = {"a": "one", "b": "two"}
    dataset, encoder = toy(
        points, tmp_path, source=[name[0] for name in points], task=[tasks.get(name, "rest") for name in points]
    )
    settings = replace(PLANE, quota={"one": 1, "two": 1}, duplicate_cosine=math.cos(math.radians(2)))
    benchmark = build_recos(dataset, encoder, settings, generator=None)
    assert benchmark.versions["v0"].image_ids == ("a", "b")
    assert confusables(benchmark) == {"a": "a near", "b": "b near"}
    (copy,) = benchmark.log.of("confusable")[0]["passed_over"]
    assert copy["image"] == "a copy"
    assert copy["why"].startswith("the same picture as a (by vectors")


def test_originals_do_not_use_up_their_source(tmp_path: Path) -> None:
    """All images are asked for: of eight in one source four are originals, each with its own confusable; of three in
    another two, of which one has none; an image that is alone in its source is an original without one.
    """
    points = {f"image {number}": angle(7 * number + number**2) for number in range(12)}
    dataset, encoder = toy(points, tmp_path, source=["eight"] * 8 + ["three"] * 3 + ["alone"])
    for quota in (12, "paper"):
        tasks = pl.Series("task", ["colour"] * 6 + ["scene"] * 6)
        with_tasks = replace(dataset, images=dataset.images.with_columns(tasks))
        benchmark = build_recos(with_tasks, encoder, replace(PLANE, quota=quota), generator=None)
        images = benchmark.versions["v1"].images
        assert Counter(images.select("source", "role").iter_rows()) == {
            ("eight", "original"): 4, ("eight", "confusable"): 4, ("three", "original"): 2, ("three", "confusable"): 1,
            ("alone", "original"): 1,
        }  # fmt: skip
        taken = [image for image in confusables(benchmark).values() if image is not None]
        assert len(set(taken)) == len(taken) == 5
        assert not set(taken) & set(benchmark.versions["v0"].image_ids)
        assert any(
            "2 of 7 originals have no confusable: their source has no image left" in note for note in benchmark.notes
        )
        assert any("are confusables of others" in note for note in benchmark.notes)


def test_a_task_takes_what_another_can_do_without(tmp_path: Path) -> None:
    """Whichever image of x is drawn, the only one of y is nearest to it: it becomes an original all the same."""
    points = {"y": angle(0), "x one": angle(10), "x two": angle(-11), "other": angle(60)}
    dataset, encoder = toy(points, tmp_path, task=["y", "x", "x", "z"])
    for seed in range(4):
        settings = replace(PLANE, quota={"x": 1, "y": 1}, seed=seed)
        benchmark = build_recos(dataset, encoder, settings, generator=None)
        (drawn,) = set(benchmark.versions["v0"].image_ids) - {"y"}
        rest = "x two" if drawn == "x one" else "x one"
        assert confusables(benchmark) == {"y": rest, drawn: "other"} or confusables(benchmark) == {
            "y": "other",
            drawn: rest,
        }


def test_a_confusable_without_descriptions_is_replaced_by_the_next(tmp_path: Path) -> None:
    points = {"a": angle(0), "mute": angle(5), "b": angle(20), "c": angle(40), "d": angle(60)}
    dataset, encoder = toy(points, tmp_path, task=["x", *"yyyy"])
    dataset = replace(dataset, captions=dataset.captions.filter(pl.col("image") != "mute"))
    benchmark = build_recos(dataset, encoder, replace(PLANE, quota={"x": 1}), generator=None, output=tmp_path / "bench")
    assert confusables(benchmark) == {"a": "b"}
    assert [entry["confusable"] for entry in benchmark.log.of("confusable")] == ["mute", "b"]
    assert benchmark.versions["v1"].image_ids == ("a", "b")
    assert not [note for note in benchmark.notes if "no confusable" in note]
    assert "0 of the 2 descriptions of confusables (0.0%) are rewritten" in benchmark.versions["v1"].card.notes
    alone = replace(dataset, captions=dataset.captions.filter(image="a"))
    few = build_recos(alone, encoder, replace(PLANE, quota={"x": 1}), generator=None)
    assert "1 of 1 originals have no confusable: the nearest images have too few descriptions" in few.notes


def test_without_a_generator_what_is_outside_is_dropped(tmp_path: Path) -> None:
    """Six images in a row, 3° apart, and one opposite, to which the last of the row is nearer than any other by far."""
    points = {f"near {n}": angle(3 * n) for n in range(6)} | {"alone": angle(180)}
    dataset, encoder = toy(points, tmp_path, source=list(points))  # nothing is reserved as a confusable
    settings = RecosSettings(
        k=3, eta=0.9, temperature=0.001, descriptions=2, originals=7, duplicate_cosine=2, similar=2
    )
    benchmark = build_recos(dataset, encoder, settings, generator=None)
    for entry in benchmark.log.of("check"):
        kept = 0.05 * math.log(3) <= entry["dis"] <= 0.95 * math.log(3)
        assert (entry["verdict"] == "kept") == kept
    images = {entry["image"]: entry["verdict"] for entry in benchmark.log.of("original")}
    good = {entry["image"] for entry in benchmark.log.of("check") if entry["verdict"] == "kept"}
    assert {image for image, verdict in images.items() if verdict == "kept"} == good
    assert set(benchmark.versions["v0"].image_ids) == good
    assert good == set(dataset.image_ids) - {"alone"}
    assert "6 of 7 originals: 1 image had fewer than 2 descriptions in the band" in benchmark.notes


def test_too_few_originals_are_explained_by_what_became_of_the_others(tmp_path: Path) -> None:
    """Ten images in a row, the last three at the same point: of those only one can be in."""
    points = {f"image {n}": angle(20 * min(n, 7)) for n in range(10)}
    dataset, encoder = toy(points, tmp_path, source=list(points))
    settings = RecosSettings(k=3, eta=1, temperature=0.1, descriptions=2, originals=10, similar=0)
    twins = build_recos(dataset, encoder, settings, generator=None)
    (why,) = [note for note in twins.notes if "of 10 originals" in note]
    assert why.startswith("8 of 10 originals: 2 images were the same picture as others")
    assert "descriptions" not in why
    many = build_recos(dataset, encoder, replace(settings, originals=12), generator=None)
    assert any("8 of 12 originals: there are 10 candidates; 2 images were" in note for note in many.notes)
    tasks = ["x"] * 5 + ["y"] * 5
    with_tasks = replace(dataset, images=dataset.images.with_columns(pl.Series("task", tasks)))
    shared = build_recos(with_tasks, encoder, replace(settings, originals=9), generator=None)
    # Five of x were wanted and four of y, of which two are copies of a third.
    assert Counter(shared.versions["v0"].images["task"])["y"] == 3
    (why,) = [note for note in shared.notes if "of 9 originals" in note]
    assert "2 images were the same picture" in why
    half = build_recos(with_tasks, encoder, replace(settings, originals=8), generator=None)
    (why,) = [note for note in half.notes if "of 8 originals" in note]
    assert why.startswith("7 of 8 originals: 2 images were")
    assert why.endswith("; 1 image is of tasks that have their share already")


def test_how_many_originals_have_a_confusable_is_said(tmp_path: Path) -> None:
    """The images of task x are alone in their sources, those of y share one; each task has one original."""
    points = {f"image {n}": angle(10 * n) for n in range(8)}
    sources = [f"own {n}" for n in range(4)] + ["shared"] * 4
    dataset, encoder = toy(points, tmp_path, source=sources, task=[*"xxxxyyyy"])
    settings = RecosSettings(k=3, eta=1, temperature=0.1, descriptions=2, originals=2, similar=0, duplicate_cosine=2)
    benchmark = build_recos(dataset, encoder, settings, generator=None, output=tmp_path / "bench")
    assert Counter(benchmark.versions["v1"].images["role"]) == {"original": 2, "confusable": 1}
    for page in ("README.md", "v1/README.md"):
        assert "for 1 of 2 originals a confusable image" in (tmp_path / "bench" / page).read_text()
    (why,) = [note for note in benchmark.notes if "no confusable" in note]
    assert why.startswith("1 of 2 originals have no confusable")
    assert why.endswith("--source-column task takes confusables from the whole task")
    settings = replace(settings, source_column="task")
    whole = build_recos(dataset, encoder, settings, generator=None)
    assert "for each original a confusable image" in whole.versions["v1"].card.notes
    less = build_recos(dataset.select(dataset.image_ids[:7]), encoder, replace(settings, originals=7), generator=None)
    (why,) = [note for note in less.notes if "no confusable" in note]
    assert "--source-column" not in why, "it is the task already"


def test_what_is_built_is_what_was_asked_for(built_recos: tuple[Recos, Path]) -> None:
    benchmark = built_recos[0]
    v0, v1, v2 = (benchmark.versions[name] for name in ("v0", "v1", "v2"))
    assert v1.image_ids[: len(v0.image_ids)] == v0.image_ids
    assert v2.image_ids[: len(v1.image_ids)] == v1.image_ids
    assert v2.caption_ids == v1.caption_ids
    assert len(v0.image_ids) <= 12
    assert set(v0.images["task"]) <= {"object", "colour", "count"}
    for version in (v0, v1):
        assert set(Counter(version.captions["image"]).values()) == {3}, "three descriptions each"
        assert set(version.captions["image"]) == set(version.image_ids)
        words = [" ".join(text.lower().split()) for text in version.texts]
        assert len(set(words)) == len(words), "no text is given to two images"
    roles = Counter(v2.images["role"])
    assert roles["original"] == len(v0.image_ids)
    assert roles["similar"] > 0
    assert v2.objects is not None
    assert set(v2.objects["image"]) <= set(v2.image_ids)
    assert "text to image only" in v2.card.notes


def test_every_description_of_v0_is_in_the_band(
    scenes: cl.Dataset, folder: Path, built_recos: tuple[Recos, Path]
) -> None:
    from PIL import Image

    benchmark = built_recos[0]
    v0 = benchmark.versions["v0"]
    files = [folder / file for file in scenes.images["file"]]
    images = Words().encode_images([Image.open(file).convert("RGB") for file in files]).astype(np.float64)
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    texts = Words().encode_texts(v0.texts).astype(np.float64)
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    row_of = {image: row for row, image in enumerate(scenes.image_ids)}
    for vector, image, dis in zip(texts, v0.captions["image"], v0.captions["dis"], strict=True):
        scores = images @ vector
        scores[row_of[image]] = -np.inf
        logits = np.sort(scores)[-10:] * 20.0
        p = np.exp(logits - logits.max())
        p /= p.sum()
        assert dis == pytest.approx(-(p * np.log(p)).sum(), abs=1e-5)
        assert 0.1 * math.log(10) <= dis <= 0.9 * math.log(10)


def test_confusables_are_the_nearest_that_may_be(scenes: cl.Dataset, folder: Path) -> None:
    from PIL import Image

    benchmark = build(scenes, folder, replace(SETTINGS, duplicate_bits=-1))
    images = Words().encode_images([Image.open(folder / file).convert("RGB") for file in scenes.images["file"]])
    images = images.astype(np.float64) / np.linalg.norm(images.astype(np.float64), axis=1, keepdims=True)
    row_of = {image: row for row, image in enumerate(scenes.image_ids)}
    source = dict(scenes.images.select("image", "task").iter_rows())
    originals, used = set(benchmark.versions["v0"].image_ids), set(benchmark.versions["v1"].image_ids)
    cosines = images @ images.T
    confusable_of = confusables(benchmark)
    assert len(set(confusable_of.values())) == len(confusable_of) == len(originals)
    for original, confusable in confusable_of.items():
        assert confusable is not None
        assert confusable not in originals
        assert source[confusable] == source[original]
        similarities = cosines[row_of[original]]
        for image in set(scenes.image_ids) - used:
            if source[image] == source[original] and similarities[row_of[image]] > similarities[row_of[confusable]]:
                same = max(cosines[row_of[image], row_of[member]] for member in used)
                assert same >= 0.98, "a nearer one that is free is the same picture as one that is in"
    for entry in benchmark.log.of("confusable"):
        similarities = cosines[row_of[entry["image"]]]
        assert entry["cosine"] == pytest.approx(similarities[row_of[entry["confusable"]]], abs=1e-5)


def test_a_copied_picture_is_in_the_benchmark_once(scenes: cl.Dataset, folder: Path, tmp_path: Path) -> None:
    """Every picture twice, the second time packed as a JPEG."""
    from PIL import Image

    half = scenes.select(scenes.image_ids[:30])
    for row, file in enumerate(half.images["file"]):
        Image.open(folder / file).save(tmp_path / f"{row}.png")
        Image.open(folder / file).convert("RGB").save(tmp_path / f"{row}.jpg", quality=70)
    copies = half.images.with_columns(
        pl.Series("file", [f"{row}.jpg" for row in range(30)]), image=pl.lit("copy ") + pl.col("image")
    )
    images = pl.concat([half.images.with_columns(pl.Series("file", [f"{row}.png" for row in range(30)])), copies])
    doubled = cl.Dataset("doubled", images, half.captions)
    benchmark = build(doubled, tmp_path, replace(SETTINGS, duplicate_cosine=2, similar=40))
    inside = [image.removeprefix("copy ") for image in benchmark.versions["v2"].image_ids]
    assert len(inside) > 20
    assert len(set(inside)) == len(inside)

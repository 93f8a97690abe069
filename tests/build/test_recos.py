"""The RECOS builder: every decision checked by other means, stopped, repeated, and in every way of seeing."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.build import DecisionLog, Recos, RecosSettings, build_recos
from crosslens.core.errors import ConflictError, InputError, UsageError
from tests.build.toy_models import Fickle, OnlyTexts, Words

pytest.importorskip("PIL", reason="pip install 'crosslens[scenes]'")

SETTINGS = RecosSettings(k=10, originals=12, similar=3, descriptions=3, source_column="task")


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> cl.Dataset:
    from crosslens.synth import write_scenes

    return write_scenes(tmp_path_factory.mktemp("scenes") / "set", 60, "object,colour,count", seed=3, workers=1)


@pytest.fixture(scope="module")
def folder(scenes: cl.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return next(tmp_path_factory.getbasetemp().glob("scenes*")) / "set"


def build(scenes: cl.Dataset, folder: Path, settings: RecosSettings = SETTINGS, **options: Any) -> Recos:
    return build_recos(scenes, options.pop("encoder", Words()), settings, image_folder=folder, **options)


def content(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}


def toy(points: dict[str, tuple[float, float]], tmp_path: Path, **columns: Any) -> tuple[cl.Dataset, str]:
    """Images at points of a plane, two captions each at the same point; nothing but stored vectors."""
    dataset = cl.Dataset.of({image: [f"{image} one", f"{image} two"] for image in points}, images=columns)
    vectors = np.array(list(points.values()))
    cl.Embeddings(dataset.image_ids, vectors, model="toy").save(tmp_path / "vectors" / "images")
    cl.Embeddings(dataset.caption_ids, np.repeat(vectors, 2, axis=0), model="toy").save(
        tmp_path / "vectors" / "captions"
    )
    return dataset, f"file:{tmp_path / 'vectors'}"


# By hand


def angle(degrees: float) -> tuple[float, float]:
    return math.cos(math.radians(degrees)), math.sin(math.radians(degrees))


def test_neighbours_worked_out_by_hand(tmp_path: Path) -> None:
    """One original per task; the nearest of its source is the confusable, unless it is the same picture."""
    points = {"a": angle(0), "a copy": angle(1), "a near": angle(20), "b": angle(180), "b near": angle(200)}
    points |= {"a far": angle(50), "b far": angle(150)}
    sources = [name[0] for name in points]
    dataset, encoder = toy(points, tmp_path, source=sources, task=[*"xyyxyyy"])
    tasks = {"a": "one", "b": "two"}
    named = pl.Series("task", [tasks.get(image, "rest") for image in points])
    dataset = replace(dataset, images=dataset.images.with_columns(named))
    settings = RecosSettings(
        k=2, eta=1, temperature=0.1, descriptions=2, originals=2, similar=1, duplicate_cosine=math.cos(math.radians(2))
    )
    # Quotas go to the tasks in turn, alphabetically: "one" and "rest" have theirs.
    found = build_recos(dataset, encoder, replace(settings, originals=3), generator=None)
    roles = dict(found.versions["v2"].images.select("image", "role").iter_rows())
    originals = {image for image, role in roles.items() if role == "original"}
    assert {"a", "b"} <= originals
    (third,) = originals - {"a", "b"}
    chosen = {one["image"]: one["confusable"] for one in found.log.of("confusable")}
    free_a = [name for name in ("a near", "a far") if name != third]
    free_b = [name for name in ("b near", "b far") if name != third]
    if third != "a copy":
        assert chosen["a"] == free_a[0], "the copy is the same picture"
    assert chosen["b"] == free_b[0]
    assert any("a copy" in json.dumps(one) for one in found.log.of("confusable")), "the copy was passed over"


def test_without_a_generator_what_is_outside_is_dropped(tmp_path: Path) -> None:
    """Six images in a row, 3° apart, and one opposite, to which the last of the row is nearer than any other by far."""
    points = {f"near {n}": angle(3 * n) for n in range(6)} | {"alone": angle(180)}
    dataset, encoder = toy(points, tmp_path)
    settings = RecosSettings(
        k=3, eta=0.9, temperature=0.001, descriptions=2, originals=7, duplicate_cosine=2, similar=2
    )
    found = build_recos(dataset, encoder, settings, generator=None)
    for one in found.log.of("check"):
        kept = 0.05 * math.log(3) <= one["dis"] <= 0.95 * math.log(3)
        assert (one["verdict"] == "kept") == kept
    images = {one["image"]: one["verdict"] for one in found.log.of("original")}
    good = {one["image"] for one in found.log.of("check") if one["verdict"] == "kept"}
    assert {image for image, verdict in images.items() if verdict == "kept"} == good
    assert set(found.versions["v0"].image_ids) == good
    assert good == set(dataset.image_ids) - {"alone"}
    assert "6 of 7 originals: 1 image had fewer than 2 descriptions in the band" in found.notes


def test_too_few_originals_are_explained_by_what_became_of_the_others(tmp_path: Path) -> None:
    """Ten images in a row, the last three at the same point: of those only one can be in."""
    points = {f"image {n}": angle(20 * min(n, 7)) for n in range(10)}
    dataset, encoder = toy(points, tmp_path)
    settings = RecosSettings(k=3, eta=1, temperature=0.1, descriptions=2, originals=10, similar=0)
    twins = build_recos(dataset, encoder, settings, generator=None)
    (why,) = [one for one in twins.notes if "of 10 originals" in one]
    assert why.startswith("8 of 10 originals: 2 images were the same picture as others")
    assert "descriptions" not in why
    many = build_recos(dataset, encoder, replace(settings, originals=12), generator=None)
    assert any("8 of 12 originals: there are 10 candidates; 2 images were" in one for one in many.notes)
    tasks = ["x"] * 5 + ["y"] * 5
    named = replace(dataset, images=dataset.images.with_columns(pl.Series("task", tasks)))
    shared = build_recos(named, encoder, replace(settings, originals=9), generator=None)
    # Five of x were wanted and four of y, of which two are copies of a third.
    assert Counter(shared.versions["v0"].images["task"])["y"] == 3
    (why,) = [one for one in shared.notes if "of 9 originals" in one]
    assert "2 images were the same picture" in why
    half = build_recos(named, encoder, replace(settings, originals=8), generator=None)
    (why,) = [one for one in half.notes if "of 8 originals" in one]
    assert why.startswith("7 of 8 originals: 2 images were")
    assert why.endswith("; 1 image is of tasks that have their share already")


def test_how_many_originals_have_a_confusable_is_said(tmp_path: Path) -> None:
    """The images of task x are alone in their sources, those of y share one; each task has one original."""
    points = {f"image {n}": angle(10 * n) for n in range(8)}
    sources = [f"own {n}" for n in range(4)] + ["shared"] * 4
    dataset, encoder = toy(points, tmp_path, source=sources, task=[*"xxxxyyyy"])
    settings = RecosSettings(k=3, eta=1, temperature=0.1, descriptions=2, originals=2, similar=0, duplicate_cosine=2)
    found = build_recos(dataset, encoder, settings, generator=None, output=tmp_path / "bench")
    assert Counter(found.versions["v1"].images["role"]) == {"original": 2, "confusable": 1}
    for page in ("README.md", "v1/README.md"):
        assert "for 1 of 2 originals a confusable image" in (tmp_path / "bench" / page).read_text()
    (why,) = [one for one in found.notes if "no confusable" in one]
    assert why.startswith("1 of 2 originals have no confusable")
    assert why.endswith("--source-column task takes confusables from the whole task")
    settings = replace(settings, source_column="task")
    whole = build_recos(dataset, encoder, settings, generator=None)
    assert "for each original a confusable image" in whole.versions["v1"].card.notes
    less = build_recos(dataset, encoder, replace(settings, originals=7), generator=None)
    (why,) = [one for one in less.notes if "no confusable" in one]
    assert "--source-column" not in why, "it is the task already"


# Every decision, by other means


def test_what_is_built_is_what_was_asked_for(scenes: cl.Dataset, folder: Path) -> None:
    found = build(scenes, folder)
    v0, v1, v2 = (found.versions[name] for name in ("v0", "v1", "v2"))
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


def test_every_description_of_v0_is_in_the_band(scenes: cl.Dataset, folder: Path) -> None:
    from PIL import Image

    found = build(scenes, folder)
    v0 = found.versions["v0"]
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

    found = build(scenes, folder, replace(SETTINGS, duplicate_bits=-1))
    images = Words().encode_images([Image.open(folder / file).convert("RGB") for file in scenes.images["file"]])
    images = images.astype(np.float64) / np.linalg.norm(images.astype(np.float64), axis=1, keepdims=True)
    row_of = {image: row for row, image in enumerate(scenes.image_ids)}
    source = dict(scenes.images.select("image", "task").iter_rows())
    taken = set(found.versions["v0"].image_ids)
    for one in found.log.of("confusable"):
        own = row_of[one["image"]]
        allowed = [
            image
            for image in scenes.image_ids
            if image not in taken
            and source[image] == source[one["image"]]
            and (images[[row_of[other] for other in taken]] @ images[row_of[image]]).max() < 0.98
        ]
        best = max(allowed, key=lambda image: images[row_of[image]] @ images[own])
        assert one["confusable"] == best
        assert one["cosine"] == pytest.approx(images[row_of[best]] @ images[own], abs=1e-5)
        taken.add(best)


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
    found = build(doubled, tmp_path, replace(SETTINGS, duplicate_cosine=2, similar=40))
    inside = [image.removeprefix("copy ") for image in found.versions["v2"].image_ids]
    assert len(inside) > 20
    assert len(set(inside)) == len(inside)


# Stopped, repeated, replaced


def test_the_same_build_gives_the_same_bytes(scenes: cl.Dataset, folder: Path, tmp_path: Path) -> None:
    build(scenes, folder, output=tmp_path / "one")
    build(scenes, folder, output=tmp_path / "two")
    assert content(tmp_path / "one") == content(tmp_path / "two")
    other = build(scenes, folder, replace(SETTINGS, seed=1))
    assert other.versions["v0"].image_ids != cl.load_dataset(tmp_path / "one" / "v0").image_ids


def test_a_fickle_generator_is_repeated_from_the_log(scenes: cl.Dataset, folder: Path, tmp_path: Path) -> None:
    settings = replace(SETTINGS, eta=0.6)
    first = build(scenes, folder, settings, generator=Fickle(), output=tmp_path / "one")
    assert any(origin == "fickle" for origin in first.versions["v0"].captions["origin"])
    other = build(scenes, folder, settings, generator=Fickle())
    assert other.versions["v1"].texts != first.versions["v1"].texts, "it is fickle"
    log = DecisionLog.load(tmp_path / "one")
    silent = Fickle(patience=0)
    again = build(scenes, folder, first.settings, generator=silent, repeat=log, output=tmp_path / "two")
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert again.versions["v2"].fingerprint == first.versions["v2"].fingerprint
    assert silent.asked == 0


@pytest.mark.parametrize("patience", [1, 9, 15])
def test_a_killed_build_asks_nothing_twice(scenes: cl.Dataset, folder: Path, tmp_path: Path, patience: int) -> None:
    settings = replace(SETTINGS, eta=0.5, descriptions=5)
    dying = Fickle(patience)
    with pytest.raises(KeyboardInterrupt):
        build(scenes, folder, settings, generator=dying, output=tmp_path / "bench")
    assert not (tmp_path / "bench" / "decisions.jsonl").exists()
    heir = Fickle()
    found = build(scenes, folder, settings, generator=heir, output=tmp_path / "bench")
    assert heir.asked == len({one["request"] for one in found.log.of("answer")}) - patience
    assert not (tmp_path / "bench" / "answers").exists()
    build(scenes, folder, found.settings, repeat=found.log, output=tmp_path / "again")
    assert content(tmp_path / "bench") == content(tmp_path / "again")


def test_a_finished_build_stays(scenes: cl.Dataset, folder: Path, tmp_path: Path) -> None:
    first = build(scenes, folder, output=tmp_path / "bench")
    before = content(tmp_path / "bench")
    assert not first.already
    again = build(scenes, folder, output=tmp_path / "bench")
    assert again.already
    assert again.versions["v1"].fingerprint == first.versions["v1"].fingerprint
    assert any("no confusable" in one or "written by" in one for one in first.notes)
    assert again.notes == first.notes
    with pytest.raises(ConflictError, match="another benchmark"):
        build(scenes, folder, replace(SETTINGS, eta=0.7), output=tmp_path / "bench")
    assert content(tmp_path / "bench") == before
    build(scenes, folder, replace(SETTINGS, eta=0.7), output=tmp_path / "bench", overwrite=True)
    assert content(tmp_path / "bench") != before
    assert [one.name for one in tmp_path.iterdir()] == ["bench"]


@pytest.mark.parametrize("lost", ["v1", "v0/images.parquet", "images"])
def test_a_lost_version_is_written_again(scenes: cl.Dataset, folder: Path, tmp_path: Path, lost: str) -> None:
    bench, told = tmp_path / "bench", list[str]()
    settings = replace(SETTINGS, eta=0.6)
    options: dict[str, Any] = {"output": bench, "copy_images": True, "tell": told.append}
    build(scenes, folder, settings, generator=Fickle(), **options)
    before = content(bench)
    shutil.rmtree(bench / lost) if (bench / lost).is_dir() else (bench / lost).unlink()
    silent = Fickle(patience=0)
    again = build(scenes, folder, settings, generator=silent, **options)
    assert not again.already
    assert content(bench) == before, "to the byte, from the answers in the log"
    assert silent.asked == 0
    assert any(f"note: {lost.split('/')[0]} of" in one for one in told)
    assert build(scenes, folder, settings, generator=silent, **options).already


def test_a_foreign_folder_is_not_touched(scenes: cl.Dataset, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConflictError, match="no benchmark"):
        build(scenes, folder, output=tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["mine.txt"]


def test_a_repeat_notices_other_candidates_and_another_model(scenes: cl.Dataset, folder: Path) -> None:
    found = build(scenes, folder)
    fewer = scenes.select(scenes.image_ids[:-1])
    with pytest.raises(UsageError, match="different candidates"):
        build(fewer, folder, found.settings, repeat=found.log)

    class Other(Words):
        revision = "2"

    with pytest.raises(UsageError, match="different encoders"):
        build(scenes, folder, found.settings, encoder=Other(), repeat=found.log)

    class Liar(Words):
        def encode_texts(self, texts: Any) -> Any:
            return super().encode_texts(texts)[:, ::-1]

    with pytest.raises(UsageError, match="decides otherwise"):
        build(scenes, folder, found.settings, encoder=_called("Words", Liar()), repeat=found.log)


def _called(name: str, model: Any) -> Any:
    model.name = name
    return model


def test_a_log_without_its_answers_cannot_be_repeated(scenes: cl.Dataset, folder: Path) -> None:
    found = build(scenes, folder, replace(SETTINGS, eta=0.6))
    bare = DecisionLog(one for one in found.log if one["step"] != "answer")
    with pytest.raises(InputError, match="no answer"):
        build(scenes, folder, found.settings, repeat=bare)


# Ways of seeing


def test_text_only(scenes: cl.Dataset, folder: Path) -> None:
    with pytest.raises(UsageError, match="encodes no images"):
        build(scenes, folder, encoder=OnlyTexts())
    settings = replace(SETTINGS, eta=0.9)
    with pytest.raises(UsageError, match="no logit scale") as caught:
        build(scenes, folder, settings, encoder=OnlyTexts(), image_text="mean")
    proposed = float(str(caught.value).split("CLIP's; ")[1].split()[0])
    found = build(scenes, folder, replace(settings, temperature=proposed), encoder=OnlyTexts(), image_text="mean")
    assert np.median(found.check.values) == pytest.approx(math.log(10) / 2, rel=0.05)
    assert any("that of their captions" in note for note in found.notes)
    vectors = Words().encode_texts(scenes.texts).astype(np.float64)
    own = scenes.caption_image
    means = np.stack([vectors[own == row].mean(axis=0) for row in range(len(scenes.image_ids))])
    text = vectors[7] / np.linalg.norm(vectors[7])
    cosines = np.delete((means / np.linalg.norm(means, axis=1, keepdims=True)) @ text, own[7])
    np.testing.assert_allclose(found.check.neighbours.cosines[7], np.sort(cosines)[::-1][:10], atol=1e-6)


def test_images_without_captions_and_a_text_encoder(scenes: cl.Dataset, folder: Path) -> None:
    some = replace(scenes, captions=scenes.captions.filter(pl.col("image").cast(pl.Int64) <= 50))
    settings = replace(SETTINGS, temperature=0.1, eta=1.0)
    alone = build(some, folder, settings, encoder=OnlyTexts(), image_text="mean")
    assert any("10 images without captions are left out" in note for note in alone.notes)
    both = build(some, folder, settings, encoder=OnlyTexts(), image_text="mean", image_encoder=Words())
    assert len(both.check.neighbours.items) == some.captions.height
    assert not any("left out" in note for note in both.notes)
    assert {str(number) for number in range(51, 61)} & set(both.versions["v2"].image_ids)


def test_stored_images_with_a_text_encoder_are_as_good_as_the_model(
    scenes: cl.Dataset, folder: Path, tmp_path: Path
) -> None:
    from crosslens.encode import encode_dataset, load_encoder

    whole = build(scenes, folder)
    vectors = encode_dataset(scenes, load_encoder(Words()), image_folder=folder)
    assert vectors.images is not None
    assert vectors.captions is not None
    vectors.images.save(tmp_path / "images")
    stored = f"file:{tmp_path}"
    settings = replace(SETTINGS, temperature=1 / 20)
    halves = build(scenes, folder, settings, encoder=stored, text_encoder=OnlyTexts())
    assert halves.versions["v2"].fingerprint == whole.versions["v2"].fingerprint
    with pytest.raises(UsageError, match="does not encode texts"):
        build(scenes, folder, settings, encoder=stored)
    vectors.captions.save(tmp_path / "captions")
    only = build(scenes, folder, settings, encoder=stored)
    assert any("nothing encodes new descriptions" in note for note in only.notes)
    assert set(only.versions["v1"].captions["origin"]) == {"candidate"}
    np.testing.assert_array_equal(only.check.values, whole.check.values)


def test_missing_columns_are_said_aloud(scenes: cl.Dataset, folder: Path) -> None:
    bare = replace(scenes, images=scenes.images.select("image", "file"))
    found = build(bare, folder, replace(SETTINGS, source_column="source"))
    assert sum("no column" in note for note in found.notes) == 2
    assert set(found.versions["v0"].images["task"]) == {"all"}
    with pytest.raises(UsageError, match="no column 'kind'"):
        build(bare, folder, replace(SETTINGS, task_column="kind", source_column="source"))
    holes = replace(scenes, images=scenes.images.with_columns(task=pl.lit(None, pl.String)))
    with pytest.raises(InputError, match="no task"):
        build(holes, folder)


def test_too_few_candidates(scenes: cl.Dataset, folder: Path) -> None:
    with pytest.raises(UsageError, match="k = 10 and 8 images"):
        build(scenes.select(scenes.image_ids[:8]), folder)
    with pytest.raises(UsageError, match="no image is left"):
        build(scenes, folder, replace(SETTINGS, temperature=100.0, attempts=0))


def test_copied_pictures_make_a_folder_that_can_be_moved(scenes: cl.Dataset, folder: Path, tmp_path: Path) -> None:
    from crosslens.encode import encode_dataset, load_encoder

    build(scenes, folder, output=tmp_path / "bench", copy_images=True)
    (tmp_path / "bench").rename(tmp_path / "moved")
    v2 = cl.load_dataset(tmp_path / "moved" / "v2")
    assert len(list((tmp_path / "moved" / "images").iterdir())) == len(v2.image_ids)
    copied = encode_dataset(v2, load_encoder(Words())).images
    original = encode_dataset(scenes.select(v2.image_ids), load_encoder(Words()), image_folder=folder).images
    assert copied is not None
    assert original is not None
    np.testing.assert_array_equal(copied.vectors, original.vectors)

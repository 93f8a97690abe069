"""Whole IMP builds on drawn scenes: annotators that know them, interruptions, repetition, what must not be lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.build import IMP, DecisionLog, Imp, SelectionSettings
from crosslens.build.imp import candidates as stages
from crosslens.core import ConflictError, InputError, UsageError
from tests.build.imp_builds import SETTINGS, build, content, fill_in, split_scenes, truth
from tests.build.toy_models import OnlyTexts, Words
from tests.tables import rest_slow

WIDE = replace(SETTINGS, count=8, candidates=None, cluster_sizes=(3, 40))


def always(_: str, __: str) -> str:
    return "good"


def annotate(output: Path, imp: Imp, *judges: Any) -> None:
    """Fill in the sheets in a folder; the annotators of ``judges``, in their order."""
    for number, judge in enumerate(judges, start=1):
        fill_in(output / f"annotate-{number}.csv", imp.candidates.captions, judge)


def finished(scenes: cl.Dataset, folder: Path, output: Path, **options: Any) -> Imp:
    """A whole build: sheets, verdicts that all agree on, benchmark."""
    imp = build(scenes, folder, output=output, **options)
    annotate(output, imp, always, always)
    return build(scenes, folder, output=output, **options)


def test_from_scenes_to_a_benchmark(scenes: cl.Dataset, folder: Path, tmp_path: Path) -> None:
    output, judge = tmp_path / "bench", truth(scenes)
    first = build(scenes, folder, WIDE, output=output)
    assert (first.status, first.dataset) == ("annotate", None)
    judged = first.candidates.kept
    assert first.counts["captions to judge"] == judged.height == pl.read_csv(output / "annotate-1.csv").height

    def hesitant(image: str, pool_image: str) -> str:
        return "unsure" if (int(image) + int(pool_image)) % 7 == 0 else judge(image, pool_image)

    annotate(output, first, judge, hesitant)
    second = build(scenes, folder, WIDE, output=output)
    unsure = [row for row in judged.select("image", "pool_image").iter_rows() if hesitant(*row) == "unsure"]
    assert (second.status, second.waiting) == ("agree", {"agree.csv": (0, len(unsure))})
    fill_in(output / "agree.csv", first.candidates.captions, judge)
    third = build(scenes, folder, WIDE, output=output)
    assert third.status == "done"
    benchmark = cl.load_dataset(output / "dataset")
    good: dict[str, int] = {}
    for image, pool_image in judged.select("image", "pool_image").iter_rows():
        good[image] = good.get(image, 0) + (judge(image, pool_image) == "good")
    assert set(benchmark.image_ids) == {image for image, count in good.items() if count >= 3}
    assert benchmark.captions.height == 3 * len(benchmark.image_ids)
    assert all(judge(*row) == "good" for row in benchmark.captions.select("image", "pool_image").iter_rows())
    rejected = pl.read_parquet(output / "rejected.parquet")
    assert rejected.columns == ["image", "caption", "text", "verdict", "reason"]
    assert set(rejected["caption"]) == {
        caption for image, caption, pool in judged.select("image", "caption", "pool_image").iter_rows()
        if judge(image, pool) == "bad" and image in benchmark.image_ids
    }  # fmt: skip
    assert third.counts["captions rejected"] > rejected.height, "of images that are left out, too"
    assert not set(rejected["caption"]) & set(benchmark.caption_ids)
    assert third.counts["captions called good"] == sum(good.values())
    headings = [line for line in (output / "README.md").read_text().splitlines() if line.startswith("## ")]
    assert headings[:2] == ["## Spread of the sampled images", "## Agreement of the annotators"]
    assert "captions called good" in (output / "README.md").read_text()
    assert f"{len(unsure)} went to the agreement stage" in (output / "README.md").read_text().replace(",", "")


def test_the_chosen_captions_are_the_least_alike(built_imp: tuple[Imp, Path]) -> None:
    from itertools import combinations

    imp = built_imp[0]
    assert imp.dataset is not None
    words = Words()
    for image in imp.dataset.image_ids[:4]:
        kept = imp.candidates.kept.filter(image=image)
        vectors = words.encode_texts(kept["text"].to_list()).astype(np.float64)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        best = min(combinations(range(kept.height), 3),
                   key=lambda rows: sum(float(vectors[a] @ vectors[b]) for a, b in combinations(rows, 2)))  # fmt: skip
        captions = imp.dataset.captions.filter(image=image)["caption"].to_list()
        assert captions == [kept["caption"][row] for row in best]


def test_corrections_reach_the_benchmark(
    scenes: cl.Dataset, folder: Path, waiting_imp: tuple[Imp, Path], sheets_folder: Path
) -> None:
    imp, output = waiting_imp[0], sheets_folder
    texts = {
        number: {"correction": f"<person> number {number} stands here", "change": "person"} for number in range(40)
    }
    for number in (1, 2):
        fill_in(output / f"annotate-{number}.csv", imp.candidates.captions, always, texts)
    done = build(scenes, folder, output=output)
    assert done.dataset is not None
    corrected = done.dataset.captions.filter(pl.col("before").is_not_null())
    assert corrected.height
    assert all(text.startswith("<person> number") for text in corrected["text"])
    assert set(corrected["change"]) == {"person"}
    assert done.counts["captions corrected"] == 40


@pytest.mark.slow
def test_the_same_build_gives_the_same_bytes(
    scenes: cl.Dataset, folder: Path, built_imp: tuple[Imp, Path], tmp_path: Path
) -> None:
    first, second = built_imp
    finished(scenes, folder, tmp_path / "two")
    assert content(second) == content(tmp_path / "two")
    sampled = first.candidates.images["image"].to_list()
    other_seed = build(scenes, folder, replace(SETTINGS, seed=1))
    assert other_seed.candidates.images["image"].to_list() != sampled


def test_a_repeat_from_the_log_gives_the_same_bytes(
    scenes: cl.Dataset, folder: Path, built_imp: tuple[Imp, Path], tmp_path: Path
) -> None:
    first_folder = built_imp[1]
    log = DecisionLog.load(first_folder, IMP)
    again = build(scenes, folder, output=tmp_path / "three", repeat=log)
    assert again.status == "done"
    assert content(first_folder) == content(tmp_path / "three")
    with pytest.raises(UsageError, match="different settings"):
        build(scenes, folder, replace(SETTINGS, band=(0.1, 0.95)), repeat=log)

    class Mirrored(Words):
        name = "Words"

        def encode_images(self, images: Any) -> Any:
            return super().encode_images(images)[:, :7]

    with pytest.raises(UsageError, match="decides differently"):
        build(scenes, folder, encoder=Mirrored(), repeat=log)


def test_a_finished_build_stays_and_another_is_refused(
    scenes: cl.Dataset, folder: Path, built_imp: tuple[Imp, Path], imp_folder: Path, tmp_path: Path
) -> None:
    done, output = built_imp[0], imp_folder
    before = content(output)
    again = build(scenes, folder, output=output)
    assert again.already
    assert again.dataset is not None
    assert done.dataset is not None
    assert again.dataset.fingerprint == done.dataset.fingerprint
    assert (again.notes, again.counts, again.agreement) == (done.notes, done.counts, done.agreement)
    for options in ({"settings": replace(SETTINGS, seed=5)}, {"selection": SelectionSettings(leak_bits=3)}):
        with pytest.raises(ConflictError, match="a different benchmark"):
            build(scenes, folder, output=output, **options)
    with pytest.raises(ConflictError, match="verdicts that would be lost"):
        build(scenes, folder, replace(SETTINGS, seed=5), output=output, overwrite=True)
    assert content(output) == before
    build(scenes, folder, output=output, overwrite=True, selection=SelectionSettings(leak_bits=3))
    assert [path.name for path in tmp_path.iterdir()] == ["bench"]


@pytest.mark.parametrize("lost", rest_slow(["dataset", "candidates.parquet", "rejected.parquet"]))
def test_a_lost_part_is_written_again(scenes: cl.Dataset, folder: Path, imp_folder: Path, lost: str) -> None:
    output = imp_folder
    before = content(output)
    shutil.rmtree(output / lost) if (output / lost).is_dir() else (output / lost).unlink()
    build(scenes, folder, output=output)
    assert content(output) == before


@pytest.mark.parametrize("stage", rest_slow(["find_clusters", "sample_images", "collect_candidates"]))
def test_an_interrupted_build_computes_no_stage_twice(
    scenes: cl.Dataset, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    output, names = tmp_path / "bench", ("sample_images", "find_clusters", "collect_candidates")
    calls: list[str] = []

    def counted(name: str) -> Any:
        function = getattr(stages, name)

        def call(*arguments: Any) -> Any:
            if name == stage and "interrupted" not in calls:
                calls.append("interrupted")
                raise KeyboardInterrupt
            calls.append(name)
            return function(*arguments)

        return call

    for name in names:
        monkeypatch.setattr(stages, name, counted(name))
    with pytest.raises(KeyboardInterrupt):
        build(scenes, folder, output=output)
    assert not output.exists()
    build(scenes, folder, output=output)
    assert [name for name in calls if name != "interrupted"] == list(names)
    assert [path.name for path in tmp_path.iterdir()] == ["bench"]
    annotate(output, build(scenes, folder, output=output), always, always)
    build(scenes, folder, output=output)
    assert len(calls) == 4, "the candidates in the folder are enough"


def test_verdicts_given_as_files_are_kept_in_the_folder(
    scenes: cl.Dataset, folder: Path, waiting_imp: tuple[Imp, Path], sheets_folder: Path, tmp_path: Path
) -> None:
    imp, output = waiting_imp[0], sheets_folder
    sheets = [Path(shutil.copy(output / f"annotate-{number}.csv", tmp_path / f"{number}.csv")) for number in (1, 2)]
    fill_in(output / "annotate-1.csv", imp.candidates.captions, lambda *_: "bad")
    for sheet in sheets:
        fill_in(sheet, imp.candidates.captions, always)
    with pytest.raises(ConflictError, match="verdicts that would be lost"):
        build(scenes, folder, output=output, annotations=sheets)
    shutil.copy(tmp_path / "1.csv", output / "annotate-1.csv")
    done = build(scenes, folder, output=output, annotations=sheets)
    assert done.status == "done"
    assert (output / "annotate-2.csv").read_bytes() == sheets[1].read_bytes()
    for sheet in sheets:
        fill_in(sheet, imp.candidates.captions, lambda *_: "bad")
    with pytest.raises(UsageError, match="no image has 3 good captions"):
        build(scenes, folder, annotations=sheets)


def test_a_sheet_with_a_mistake_changes_nothing(
    scenes: cl.Dataset, folder: Path, waiting_imp: tuple[Imp, Path], sheets_folder: Path, tmp_path: Path
) -> None:
    imp, output = waiting_imp[0], sheets_folder
    fill_in(output / "annotate-1.csv", imp.candidates.captions, lambda *_: "excellent")
    before = content(output)
    with pytest.raises(InputError, match="'excellent'"):
        build(scenes, folder, output=output)
    assert content(output) == before
    assert [path.name for path in tmp_path.iterdir()] == ["bench"]


def test_leaks_are_listed_and_dropped_on_request(
    scenes: cl.Dataset, folder: Path, built_imp: tuple[Imp, Path], tmp_path: Path
) -> None:
    whole = built_imp[0]
    assert whole.dataset is not None
    corpus = tmp_path / "corpus.txt"
    leaked = whole.dataset.captions["text"].unique().sort().to_list()[:5]
    corpus.write_text("\n".join(text.upper() for text in leaked))
    listed = finished(scenes, folder, tmp_path / "listed", corpora=[corpus])
    assert listed.leaks is not None
    assert listed.dataset is not None
    assert listed.leaks.height >= 5
    assert listed.dataset.texts == whole.dataset.texts
    assert pl.read_csv(tmp_path / "listed" / "leaks.csv").height == listed.leaks.height
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    image = whole.dataset.image_ids[0]
    shutil.copy(whole.dataset.images["file"][0], pictures)
    dropped = finished(scenes, folder, tmp_path / "dropped", corpora=[corpus, pictures],
                       selection=SelectionSettings(drop_leaks=True))  # fmt: skip
    assert dropped.dataset is not None
    assert image not in dropped.dataset.image_ids
    assert not set(dropped.dataset.texts) & set(leaked)


def test_copied_pictures_make_a_folder_that_can_be_moved(scenes: cl.Dataset, folder: Path, tmp_path: Path) -> None:
    imp = finished(scenes, folder, tmp_path / "bench", copy_images=True)
    assert imp.dataset is not None
    (tmp_path / "bench").rename(tmp_path / "moved")
    from crosslens.data import image_files

    files = image_files(cl.load_dataset(tmp_path / "moved" / "dataset"))
    assert all(Path(file).is_file() for file in files)
    assert len(files) == len(list((tmp_path / "moved" / "images").iterdir()))


def test_stored_vectors_do_without_pictures(scenes: cl.Dataset, folder: Path, waiting_imp: tuple[Imp, Path]) -> None:
    from crosslens.encode import encode_dataset, load_encoder

    images, pool = split_scenes(scenes, folder)
    vectors = {
        name: encode_dataset(dataset, load_encoder(Words()), image_folder=folder).images
        for name, dataset in (("image_embeddings", images), ("pool_embeddings", pool))
    }
    whole = waiting_imp[0]
    images, pool = replace(images, home=None), replace(pool, home=None)
    stored = build(scenes, folder, images=images, pool=pool, encoder=None, text_encoder=OnlyTexts(), **vectors)
    assert stored.candidates.captions.equals(whole.candidates.captions)
    assert stored.candidates.images["file"].null_count() == stored.candidates.images.height
    with pytest.raises(UsageError, match="nothing encodes the images of the pool"):
        build(scenes, folder, encoder=None, text_encoder=OnlyTexts(), image_embeddings=vectors["image_embeddings"])


@pytest.mark.parametrize("kind", rest_slow(["inputs", "settings"]))
def test_what_cannot_be_built_is_said_at_once(scenes: cl.Dataset, folder: Path, tmp_path: Path, kind: str) -> None:
    """The command's mistakes have the settings, too."""
    output = tmp_path / "bench"
    _, pool = split_scenes(scenes, folder)

    class OnlyImages:
        revision = "1"
        encode_images = Words.encode_images

    inputs: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (UsageError, "no encoder encodes texts", {"encoder": None}),
        (UsageError, "OnlyImages encodes texts", {"encoder": OnlyImages()}),
        (UsageError, "encodes no images", {"encoder": OnlyTexts()}),
        (InputError, "the pool: .*image", {"pool": replace(pool, home=tmp_path)}),
        (InputError, "the pool has no captions", {"pool": replace(pool, captions=pool.captions.clear())}),
    ]
    settings: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (UsageError, "the band is empty", {"settings": replace(SETTINGS, band=(0.999, 1.0))}),
        (UsageError, "no image has 41 pool images", {"settings": replace(SETTINGS, cluster_sizes=(41, 50))}),
        (UsageError, "too few candidates", {"settings": replace(SETTINGS, captions=15)}),
        (UsageError, "count is 21, and there are 20", {"settings": replace(SETTINGS, count=21)}),
        (InputError, "no such file", {"annotations": [tmp_path / "none.csv", tmp_path / "none.csv"]}),
        (InputError, "no such file", {"corpora": [tmp_path / "none.txt"]}),
    ]
    for error, message, options in inputs if kind == "inputs" else settings:
        with pytest.raises(error, match=message):
            build(scenes, folder, output=output, **options)
        assert not list(tmp_path.iterdir()), message
    for wrong in ({"band": (0.8, 0.7)}, {"band": (0.1, 1.5)}, {"cluster_sizes": (0, 3)}, {"near_duplicate": 0.0}):
        with pytest.raises(UsageError, match=next(iter(wrong))):
            replace(SETTINGS, **wrong)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["find_clusters", "collect_candidates", "tables_fingerprint"])
def test_a_process_killed_for_good_is_gone_on_with(
    scenes: cl.Dataset, folder: Path, tmp_path: Path, stage: str
) -> None:
    script = tmp_path / "deadly.py"
    script.write_text(
        "import os, sys\n"
        "from pathlib import Path\n"
        "import crosslens as cl\n"
        "from crosslens.build.imp import build as steps, candidates as stages\n"
        "from tests.build.imp_builds import build\n"
        "module = steps if sys.argv[1] == 'tables_fingerprint' else stages\n"
        "if sys.argv[1] != 'none':\n"
        "    setattr(module, sys.argv[1], lambda *_: os._exit(9))\n"
        "build(cl.load_dataset(sys.argv[2]), Path(sys.argv[2]), output='bench')\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).resolve().parents[2]), *sys.path])}
    command = [sys.executable, str(script)]
    killed = subprocess.run([*command, stage, folder], check=False, cwd=tmp_path, env=environment)
    assert killed.returncode == 9
    assert not (tmp_path / "bench").exists()
    subprocess.run([*command, "none", folder], check=True, cwd=tmp_path, env=environment)
    build(scenes, folder, output=tmp_path / "whole")
    assert content(tmp_path / "bench") == content(tmp_path / "whole")

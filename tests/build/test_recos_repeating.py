"""Builds that are interrupted, repeated from their log, or written where something is already."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import crosslens as cl
from crosslens.build import DecisionLog, Recos
from crosslens.core import ConflictError, InputError, UsageError
from tests.build.recos_builds import SETTINGS, build, content
from tests.build.toy_models import Fickle, Words
from tests.tables import rest_slow


@pytest.mark.slow
def test_the_same_build_gives_the_same_bytes(
    scenes: cl.Dataset, folder: Path, built_recos: tuple[Recos, Path], tmp_path: Path
) -> None:
    build(scenes, folder, output=tmp_path / "again")
    assert content(tmp_path / "again") == content(built_recos[1])
    other_seed = build(scenes, folder, replace(SETTINGS, seed=1))
    assert other_seed.versions["v0"].image_ids != cl.load_dataset(tmp_path / "again" / "v0").image_ids


@pytest.mark.slow
def test_a_fickle_generator_is_repeated_from_the_log(scenes: cl.Dataset, folder: Path, tmp_path: Path) -> None:
    settings = replace(SETTINGS, eta=0.6)
    first = build(scenes, folder, settings, generator=Fickle(), output=tmp_path / "one")
    assert any(origin == "fickle" for origin in first.versions["v0"].captions["origin"])
    other_seed = build(scenes, folder, settings, generator=Fickle(seed=1))
    assert other_seed.versions["v1"].texts != first.versions["v1"].texts, "it is fickle"
    log = DecisionLog.load(tmp_path / "one")
    silent = Fickle(patience=0)
    again = build(scenes, folder, first.settings, generator=silent, repeat=log, output=tmp_path / "two")
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert again.versions["v2"].fingerprint == first.versions["v2"].fingerprint
    assert silent.asked == 0


@pytest.mark.parametrize("patience", rest_slow([9, 1, 15]))
def test_a_killed_build_asks_nothing_twice(scenes: cl.Dataset, folder: Path, tmp_path: Path, patience: int) -> None:
    settings = replace(SETTINGS, eta=0.5, descriptions=5)
    dying = Fickle(patience)
    with pytest.raises(KeyboardInterrupt):
        build(scenes, folder, settings, generator=dying, output=tmp_path / "bench")
    assert not (tmp_path / "bench" / "decisions.jsonl").exists()
    heir = Fickle()
    benchmark = build(scenes, folder, settings, generator=heir, output=tmp_path / "bench")
    assert heir.asked == len({entry["request"] for entry in benchmark.log.of("answer")}) - patience
    assert not (tmp_path / "bench" / "answers").exists()
    build(scenes, folder, benchmark.settings, repeat=benchmark.log, output=tmp_path / "again")
    assert content(tmp_path / "bench") == content(tmp_path / "again")


def test_a_finished_build_stays(
    scenes: cl.Dataset, folder: Path, built_recos: tuple[Recos, Path], recos_folder: Path, tmp_path: Path
) -> None:
    first = built_recos[0]
    before = content(tmp_path / "bench")
    assert not first.already
    again = build(scenes, folder, output=tmp_path / "bench")
    assert again.already
    assert again.versions["v1"].fingerprint == first.versions["v1"].fingerprint
    assert any("no confusable" in note or "written by" in note for note in first.notes)
    assert again.notes == first.notes
    with pytest.raises(ConflictError, match="a different benchmark"):
        build(scenes, folder, replace(SETTINGS, eta=0.7), output=tmp_path / "bench")
    assert content(tmp_path / "bench") == before
    build(scenes, folder, replace(SETTINGS, eta=0.7), output=tmp_path / "bench", overwrite=True)
    assert content(tmp_path / "bench") != before
    assert [file.name for file in tmp_path.iterdir()] == ["bench"]


@pytest.mark.parametrize("lost", rest_slow(["v1", "v0/images.parquet", "images"]))
def test_a_lost_version_is_written_again(scenes: cl.Dataset, folder: Path, tmp_path: Path, lost: str) -> None:
    bench, told = tmp_path / "bench", list[str]()
    settings = replace(SETTINGS, eta=0.6)
    options: dict[str, Any] = {"output": bench, "copy_images": True, "notify": told.append}
    build(scenes, folder, settings, generator=Fickle(), **options)
    before = content(bench)
    shutil.rmtree(bench / lost) if (bench / lost).is_dir() else (bench / lost).unlink()
    silent = Fickle(patience=0)
    again = build(scenes, folder, settings, generator=silent, **options)
    assert not again.already
    assert content(bench) == before, "to the byte, from the answers in the log"
    assert silent.asked == 0
    assert any(f"note: {lost.split('/')[0]} of" in message for message in told)
    assert build(scenes, folder, settings, generator=silent, **options).already


def test_a_foreign_folder_is_not_touched(scenes: cl.Dataset, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConflictError, match="is not a benchmark"):
        build(scenes, folder, output=tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_a_repeat_notices_other_candidates_and_another_model(
    scenes: cl.Dataset, folder: Path, built_recos: tuple[Recos, Path]
) -> None:
    benchmark = built_recos[0]
    fewer = scenes.select(scenes.image_ids[:-1])
    with pytest.raises(UsageError, match="different candidates"):
        build(fewer, folder, benchmark.settings, repeat=benchmark.log)

    class Other(Words):
        revision = "2"

    with pytest.raises(UsageError, match="different encoders"):
        build(scenes, folder, benchmark.settings, encoder=Other(), repeat=benchmark.log)

    class Liar(Words):
        def encode_texts(self, texts: Any) -> Any:
            return super().encode_texts(texts)[:, ::-1]

    with pytest.raises(UsageError, match="decides differently"):
        build(scenes, folder, benchmark.settings, encoder=_called("Words", Liar()), repeat=benchmark.log)


def _called(name: str, model: Any) -> Any:
    model.name = name
    return model


def test_a_log_without_its_answers_cannot_be_repeated(scenes: cl.Dataset, folder: Path) -> None:
    benchmark = build(scenes, folder, replace(SETTINGS, eta=0.6))
    bare = DecisionLog(entry for entry in benchmark.log if entry["step"] != "answer")
    with pytest.raises(InputError, match="no answer"):
        build(scenes, folder, benchmark.settings, repeat=bare)

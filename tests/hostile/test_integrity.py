"""A stored file that is no longer what was written is refused and named; foreign files and older folders are not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.cli.app import run_command
from crosslens.core import CrosslensError, InputError
from crosslens.encode import Cache, encode_texts
from crosslens.language import parsing
from crosslens.language.spacy_pipeline import Pipeline
from crosslens.perturbations import write_perturbations
from crosslens.similarity import PrecomputedSimilarity, relevance_matrix
from crosslens.storage import hashing as integrity, verification
from tests.encode.conftest import Counting
from tests.pipeline.robustness_study.letters import Letters, captions, text_study
from tests.pipeline.small_world import world


def load_run(folder: Path) -> None:
    run = cl.Run.load(folder)
    assert all(run.rankings[direction].query_ids for direction in run.rankings)


def load_study(folder: Path) -> None:
    cl.Robustness.load(folder)
    for file in folder.rglob("run.json"):
        load_run(file.parent)


LOADERS: dict[str, Callable[[Path], Any]] = {
    "run": load_run,
    "dataset": cl.Dataset.load,
    "embeddings": cl.Embeddings.load,
    "mapped": lambda folder: cl.Embeddings.load(folder, mmap=True),
    "relevance": cl.Relevance.load,
    "ranking": cl.Ranking.load,
    "study": load_study,
    "similarity": lambda folder: PrecomputedSimilarity(folder / "N.npy"),
}


def evaluated(folder: Path | None = None, **more: Any) -> cl.Run:
    dataset, images, texts = world(8)
    arguments = {"recipe": "name = 'a'\n", "resamples": 20, "metrics": ["Hit@1", "MRR"], **more}
    return cl.evaluate(dataset, images=images, captions=texts, output=folder, **arguments)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of each kind, as it was written."""
    home = tmp_path_factory.mktemp("stored")
    dataset, images, _ = world(8)
    objects = pl.DataFrame({"image": ["im0"], "object": ["o1"], "name": ["dog"]})
    relations = pl.DataFrame({"image": ["im0"], "subject": ["o1"], "predicate": ["near"], "object": ["o1"]})
    replace(dataset, objects=objects, relations=relations).save(home / "dataset")
    for name in ("embeddings", "mapped"):
        cl.Embeddings(dataset.image_ids, images, images**2, "m").save(home / name)
    evaluated(home / "run").rankings["t2i"].save(home / "ranking")
    cl.Relevance.from_dataset(dataset).save(home / "relevance")
    relevance_matrix(dataset, "cider", output=home / "similarity" / "N.npy")
    text_study(captions(4), Letters(), "char_swap", output=home / "study", cache=False)
    return home


def files_in(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def damaged(file: Path, flips: int = 1) -> Iterator[str]:
    """The file with one change after the other, each named; in the end it is as it was.

    ``flips`` is how many bits are flipped; of several, the first is in the first byte and the second in the last.
    """
    content = file.read_bytes()
    random = np.random.default_rng(len(content))
    ends = (0, len(content) - 1) if flips > 2 else ()
    for position in (*ends, *random.integers(0, len(content), flips - len(ends)).tolist()):
        bit = int(random.integers(0, 8))
        changed = bytearray(content)
        changed[position] ^= 1 << bit
        file.write_bytes(changed)
        yield f"{file}, bit {bit} of byte {position}"
    file.write_bytes(content[:-2])
    yield f"{file}, cut off"
    file.write_bytes(content + b"x")
    yield f"{file}, longer"
    file.unlink()
    yield f"{file}, removed"
    file.write_bytes(content)


def error_of(load: Callable[[Path], Any], folder: Path) -> str:
    try:
        load(folder)
    except CrosslensError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("kind", LOADERS)
@pytest.mark.parametrize("flips", [1, pytest.param(40, marks=pytest.mark.slow)])
def test_a_change_in_any_file_is_an_error_that_names_it(stored: Path, tmp_path: Path, kind: str, flips: int) -> None:
    folder = Path(shutil.copytree(stored / kind, tmp_path / kind))
    load, unnoticed = LOADERS[kind], []
    load(folder)
    files = files_in(folder)
    assert len(files) >= 2
    if kind == "study" and flips == 1:  # its runs are those of the kind "run"
        runs = [file.parent for file in files if file.name == "run.json"]
        files = [file for file in files if not any(file.is_relative_to(run) for run in runs)]
    for file in files:
        for change in damaged(file, flips):
            if change.endswith("removed") and file.name in ("run.json", "N.npy.json", "recipe.toml"):
                continue  # then there is no run here, a matrix without ids, a run that does not say how to repeat it
            message = error_of(load, folder)
            if file.name not in message:
                unnoticed.append(f"{change}: {message}")
    assert not unnoticed
    load(folder)


def edited(file: Path, change: Callable[[Any], None]) -> None:
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def double(metrics: dict[str, Any]) -> None:
    metrics["t2i/Hit@1"]["mean"] *= 2


def test_an_edited_mean_is_neither_shown_nor_exported(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(stored / "run", tmp_path / "run"))
    edited(folder / "run.json", lambda content: double(content["metrics"]))
    for command in (["show", str(folder)], ["export", str(folder), "-o", str(tmp_path / "out.csv"), "--to", "csv"]):
        assert run_command(command) == 3
        message = capsys.readouterr().err
        assert "run.json: the file has changed since it was written" in message
        assert "fix: restore it from a copy, or write it again; --no-verify reads it as it is" in message
    assert not (tmp_path / "out.csv").exists()
    assert run_command(["show", str(folder), "--no-verify"]) == 0
    assert cl.Run.load(folder, verify=False)["t2i/Hit@1"].mean > 0


def test_another_layout_of_the_same_json_is_no_change(stored: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(stored / "run", tmp_path / "run"))
    edited(folder / "run.json", lambda content: None)
    assert "\n" not in (folder / "run.json").read_text()
    load_run(folder)


def test_the_hashes_cannot_be_taken_out_of_a_header(stored: Path, tmp_path: Path) -> None:
    for key in ("files", "checksum"):
        folder = Path(shutil.copytree(stored / "run", tmp_path / key))
        edited(folder / "run.json", lambda content, key=key: content.pop(key))
        with pytest.raises(InputError, match=r"run\.json: the file has changed"):
            cl.Run.load(folder)


def test_a_ranking_of_another_run_is_refused(stored: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(stored / "run", tmp_path / "run"))
    dataset, images, texts = world(8)
    opposite_run = cl.evaluate(dataset, images=images, captions=-texts, resamples=0)
    opposite_run.rankings["t2i"].save(folder / "ranking-t2i", overwrite=True)
    run = cl.Run.load(folder)
    assert run.rankings["i2t"].query_ids
    with pytest.raises(InputError, match=r"ranking-t2i/header\.json: the file has changed"):
        run.rankings["t2i"]


def test_recipe_and_rankings_may_be_removed(stored: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(stored / "run", tmp_path / "run"))
    (folder / "recipe.toml").unlink()
    shutil.rmtree(folder / "ranking-t2i")
    run = cl.Run.load(folder)
    assert (run.recipe, list(run.rankings)) == ("", ["i2t"])


def test_foreign_files_are_ignored(stored: Path, tmp_path: Path) -> None:
    for kind, load in LOADERS.items():
        folder = Path(shutil.copytree(stored / kind, tmp_path / kind))
        (folder / "notes.txt").write_text("mine")
        (folder / "mine.npy").write_bytes(b"no array")
        (folder / "mine.parquet").write_bytes(b"no table")
        (folder / "ranking-mine").mkdir()
        load(folder)


def without_hashes(folder: Path) -> None:
    """The folder as an earlier version wrote it."""
    for file in folder.rglob("*.json"):
        edited(file, lambda content: [content.pop(key) for key in ("files", "checksum")])


@pytest.mark.parametrize("kind", LOADERS)
def test_a_folder_without_hashes_is_read(stored: Path, tmp_path: Path, kind: str) -> None:
    folder = Path(shutil.copytree(stored / kind, tmp_path / kind))
    without_hashes(folder)
    LOADERS[kind](folder)


def test_captions_that_do_not_fit_the_fingerprint_are_refused(stored: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(stored / "dataset", tmp_path / "dataset"))
    without_hashes(folder)
    table = pl.read_parquet(folder / "captions.parquet")
    table.with_columns(text=pl.lit("a dog")).write_parquet(folder / "captions.parquet")
    with pytest.raises(InputError, match=r"dataset: the tables have changed since .* not the one in header\.json"):
        cl.load_dataset(folder)
    assert cl.load_dataset(folder, verify=False).texts[0] == "a dog"
    with cl.storage.verification(False):
        assert cl.Dataset.load(folder).texts[0] == "a dog"


def test_a_damaged_run_is_replaced_when_told_to(tmp_path: Path) -> None:
    whole = evaluated(tmp_path / "run")
    file = tmp_path / "run" / "queries.parquet"
    content = file.read_bytes()
    file.write_bytes(content[:-9] + b"x" + content[-8:])
    with pytest.raises(InputError, match=r"queries\.parquet(.|\n)*overwrite=True repeats the work"):
        evaluated(tmp_path / "run")
    with pytest.raises(InputError, match=r"queries\.parquet"):
        whole.save(tmp_path / "run")
    evaluated(tmp_path / "run", overwrite=True)
    assert file.read_bytes() == content
    file.write_bytes(b"")
    whole.save(tmp_path / "run", overwrite=True)
    load_run(tmp_path / "run")


def test_a_damaged_study_is_made_again(stored: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(stored / "study", tmp_path / "study"))
    damaged = (folder / "letters" / "original" / "ranking-t2t" / "above.npy", folder / "drops.parquet")
    before = {file: file.read_bytes() for file in damaged}
    for file, content in before.items():
        file.write_bytes(content[:-9] + b"x" + content[-8:])
    text_study(captions(4), Letters(), "char_swap", output=folder, cache=False)
    assert {file: file.read_bytes() for file in before} == before
    load_study(folder)
    edited(folder / "robustness.json", lambda content: content.update(headline="x"))
    with pytest.raises(InputError, match=r"robustness\.json: the file has changed"):
        text_study(captions(4), Letters(), "char_swap", output=folder, cache=False)
    text_study(captions(4), Letters(), "char_swap", output=folder, cache=False, overwrite=True)
    load_study(folder)


def test_the_summary_of_perturbations_is_checked(tmp_path: Path) -> None:
    write_perturbations(captions(3), ["char_swap"], tmp_path / "out")
    edited(tmp_path / "out" / "perturbations.json", lambda content: content["perturbations"].clear())
    with pytest.raises(InputError, match=r"perturbations\.json: the file has changed"):
        write_perturbations(captions(3), ["char_swap"], tmp_path / "out")


# Similarities


def test_a_damaged_matrix_is_not_reused_and_can_be_replaced(tmp_path: Path) -> None:
    dataset, file = world(5)[0], tmp_path / "N.npy"
    matrix = np.array(relevance_matrix(dataset, "cider", output=file))
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(InputError, match=r"N\.npy: the file has changed"):
        relevance_matrix(dataset, "cider", output=file)
    with pytest.raises(InputError, match=r"N\.npy: the file has changed"):
        cl.evaluate(dataset, scores=matrix, phi={"mine": file}, metrics="NCS[mine]@1")
    edited(tmp_path / "N.npy.json", lambda content: content.update(phi="spice"))
    np.testing.assert_array_equal(relevance_matrix(dataset, "cider", output=file, overwrite=True), matrix)
    assert PrecomputedSimilarity(file).description is not None


def test_a_matrix_may_be_renamed_with_its_description(tmp_path: Path) -> None:
    relevance_matrix(world(5)[0], "cider", output=tmp_path / "N.npy")
    for ending in (".npy", ".npy.json"):
        (tmp_path / f"N{ending}").rename(tmp_path / f"M{ending}")
    assert PrecomputedSimilarity(tmp_path / "M.npy").description is not None


def test_similarities_of_another_dataset_are_refused(tmp_path: Path) -> None:
    dataset, file = world(5)[0], tmp_path / "N.npy"
    relevance_matrix(dataset, "cider", output=file)
    texts = ["another text" if text == "caption 0 of image 3" else text for text in dataset.texts]
    other_texts = replace(dataset, name="other", captions=dataset.captions.with_columns(text=pl.Series(texts)))
    scores = np.zeros((5, len(dataset.caption_ids)))
    with pytest.raises(InputError, match=r"caption 'im3#0' is not the same in .*'captions'.* this one \('other'\)"):
        cl.evaluate(other_texts, scores=scores, phi={"mine": file}, metrics="NCS[mine]@1")
    with verification(False):
        cl.evaluate(other_texts, scores=scores, phi={"mine": file}, metrics="NCS[mine]@1")
    assert PrecomputedSimilarity(file, verify=False).prepare_ids(other_texts).shape == scores.shape
    renamed = cl.Dataset.of({f"x{n}": ["a dog"] for n in range(5)})
    with pytest.raises(InputError, match=r"the first is 'x0'; the matrix begins with 'im0'"):
        PrecomputedSimilarity(file).prepare_ids(renamed)


def test_a_part_of_the_dataset_and_other_columns_fit(tmp_path: Path) -> None:
    dataset, file = world(5)[0], tmp_path / "N.npy"
    relevance_matrix(dataset, "cider", output=file)
    part = dataset.select(["im3", "im1"])
    more = replace(part, images=part.images.with_columns(width=pl.lit(7)))
    assert PrecomputedSimilarity(file).prepare_ids(more).shape == (2, len(part.caption_ids))


def test_a_matrix_of_an_earlier_version_is_compared_by_the_fingerprint(tmp_path: Path) -> None:
    dataset, file = world(5)[0], tmp_path / "N.npy"
    relevance_matrix(dataset, "cider", output=file)
    edited(tmp_path / "N.npy.json", lambda content: [content.pop(key) for key in ("files", "checksum", "captions")])
    PrecomputedSimilarity(file).prepare_ids(dataset)
    PrecomputedSimilarity(file).prepare_ids(dataset.select(["im3"]))
    other_texts = replace(dataset, captions=dataset.captions.with_columns(text=pl.lit("a dog")))
    with pytest.raises(InputError, match="the collection is not the same"):
        PrecomputedSimilarity(file).prepare_ids(other_texts)


# Caches


def cached(folder: Path, encoder: Counting, notes: list[str]) -> np.ndarray[Any, Any]:
    texts = [f"text {number}" for number in range(9)]
    return encode_texts(encoder, texts, cache=Cache(folder, shard_items=4, notify=notes.append), batch_size=2).rows


def test_a_change_in_a_cache_file_is_noticed(tmp_path: Path) -> None:
    notes: list[str] = []
    right = cached(tmp_path, Counting(), notes)
    assert notes == []
    for shard in sorted(tmp_path.rglob("*.npz")):
        for change in damaged(shard):
            if change.endswith("removed"):
                continue
            notes.clear()
            np.testing.assert_array_equal(cached(tmp_path, Counting(), notes), right)
            assert any(str(shard) in note for note in notes), change


def test_a_cache_file_of_another_encoder_is_not_used(tmp_path: Path) -> None:
    class Other(Counting):
        revision = "2"

        def encode_texts(self, texts: Any) -> np.ndarray[Any, Any]:
            return -super().encode_texts(texts)

    notes: list[str] = []
    right = cached(tmp_path, Counting(), notes)
    cached(tmp_path, Other(), notes)
    mine, others = sorted(
        tmp_path.glob("embeddings/*"), key=lambda folder: '"1"' not in (folder / "about.json").read_text()
    )
    for shard in mine.glob("*.npz"):
        shard.unlink()
    moved = [shutil.copy(shard, mine) for shard in others.glob("*.npz")]
    np.testing.assert_array_equal(cached(tmp_path, Counting(), notes), right)
    assert len(notes) == len(moved)
    assert f"it belongs to {others.name}" in notes[0]
    shutil.rmtree(mine)
    shutil.copytree(others, mine)
    with pytest.raises(InputError, match=r"about\.json: the folder's name and this file describe different vectors"):
        cached(tmp_path, Counting(), notes)


def test_parses_of_another_pipeline_are_not_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (parsing.ParseCache(Pipeline("p", version, "3"), tmp_path) for version in ("1", "2"))
    row = tuple([] if kind != pl.String else "x" for kind in list(parsing._SCHEMA.values())[1:])
    first.add(["a dog"], [row])
    assert first.fetch(pl.Series(["a dog"])).height == 1
    for file in first.folder.glob("*.parquet"):
        shutil.copy(file, second.folder)
    assert second.fetch(pl.Series(["a dog"])).height == 0
    assert f"it belongs to {first.folder.name}" in capsys.readouterr().err


# Large files


def test_a_large_file_is_hashed_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integrity, "CHUNK", 1000)
    vectors = np.random.default_rng(0).standard_normal((100, 8))
    folder = cl.Embeddings.of(vectors).save(tmp_path / "e")
    content = (folder / "vectors.npy").read_bytes()
    for position in (0, 999, 1000, 1001, len(content) - 1):
        changed = bytearray(content)
        changed[position] ^= 1
        (folder / "vectors.npy").write_bytes(changed)
        with pytest.raises(InputError, match=r"vectors\.npy: the file has changed"):
            cl.Embeddings.load(folder, mmap=True)
    swapped = content[1000:2000] + content[:1000] + content[2000:]
    (folder / "vectors.npy").write_bytes(swapped)
    with pytest.raises(InputError, match=r"vectors\.npy: the file has changed"):
        cl.Embeddings.load(folder)

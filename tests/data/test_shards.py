"""Folders of shards: the vectors of all files as one matrix, their ids, and whatever can be wrong with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.core import InputError
from crosslens.data import read_vectors_and_ids, vector_files
from crosslens.pipeline import read_embeddings
from crosslens.values import Embeddings
from tests.commands import call as call
from tests.data.shard_files import vectors, write_shards
from tests.data.test_arrays import write_safetensors

IMAGES, CAPTIONS = vectors(40), vectors(40, seed=1)


def stored(folder: Path, side: str = "image") -> Embeddings:
    read = read_embeddings(str(folder), None, None, side)  # type: ignore[arg-type]
    assert read is not None
    return read


@pytest.mark.parametrize("digits", [1, 4])
def test_the_layout_of_clip_retrieval(tmp_path, digits):
    write_shards(tmp_path / "emb", IMAGES, CAPTIONS, 12, digits=digits)
    images, captions = stored(tmp_path / "emb"), stored(tmp_path / "emb", "caption")
    np.testing.assert_array_equal(images.vectors, IMAGES)
    np.testing.assert_array_equal(captions.vectors, CAPTIONS)
    assert images.dtype == np.float16
    assert images.ids == tuple(f"photo{row}" for row in range(40))
    assert captions.ids == tuple(f"photo{row}#0" for row in range(40))
    inside = stored(tmp_path / "emb" / "img_emb")
    assert inside.fingerprint == images.fingerprint


def test_shards_stay_on_disk(tmp_path):
    write_shards(tmp_path, IMAGES, CAPTIONS)
    block = stored(tmp_path).block(0, 2)
    assert isinstance(block.base, np.memmap) or isinstance(block, np.memmap)


def test_shards_without_metadata_have_the_ids_of_the_dataset(tmp_path):
    write_shards(tmp_path, IMAGES, CAPTIONS, metadata=False)
    ids = tuple(f"x{row}" for row in range(40))
    read = read_embeddings(str(tmp_path), None, ids, "image")
    assert read is not None
    assert read.ids == ids
    with pytest.raises(cl.CrosslensError, match=r"ids of the rows of .* are unknown"):
        stored(tmp_path)


def test_the_dataset_of_such_a_folder_and_its_evaluation(tmp_path):
    write_shards(tmp_path, IMAGES, CAPTIONS)
    dataset = cl.load_dataset("clip_retrieval", folder=tmp_path)
    assert dataset.texts[7] == "caption number 7"
    run = cl.evaluate(dataset, images=stored(tmp_path), captions=stored(tmp_path, "caption"), resamples=0)
    wide = cl.evaluate(dataset, images=IMAGES.astype(np.float32), captions=CAPTIONS.astype(np.float32), resamples=0)
    for direction in ("i2t", "t2i"):
        assert run.rankings[direction].fingerprint == wide.rankings[direction].fingerprint


def test_numbered_shards_of_other_formats(tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    parts = np.array_split(IMAGES, 3)
    for kind in ("safetensors", "parquet", "npy"):
        (tmp_path / kind).mkdir()
    for number, part in enumerate(parts):
        write_safetensors(tmp_path / "safetensors" / f"part-{number}.safetensors", {"image": part}, "F16")
        table = pl.DataFrame({"id": [f"{number}/{row}" for row in range(len(part))]})
        table = table.with_columns(pl.Series("embedding", part.tolist(), pl.List(pl.Float32)))
        table.write_parquet(tmp_path / "parquet" / f"train-{number:05d}-of-00003.parquet")
        np.save(tmp_path / "npy" / f"v{number + 1}.npy", part)
    ids = tuple(map(str, range(40)))
    for kind in ("safetensors", "npy"):
        read = read_embeddings(str(tmp_path / kind), None, ids, "image")
        assert read is not None
        np.testing.assert_array_equal(read.vectors, IMAGES)
    from_table = stored(tmp_path / "parquet")
    np.testing.assert_array_equal(from_table.vectors, IMAGES)
    assert from_table.ids[-1] == "2/12"
    assert len(list((tmp_path / "cache").rglob("*.npy"))) == 3
    (tmp_path / "parquet" / "train-00002-of-00003.parquet").unlink()
    with pytest.raises(InputError, match="shard 2 missing"):
        stored(tmp_path / "parquet")


def test_the_files_that_are_hashed_are_those_of_the_side(tmp_path):
    write_shards(tmp_path, IMAGES, CAPTIONS, 2)
    names = [file.name for file in vector_files(tmp_path, "caption")]
    assert names == ["text_emb_0.npy", "text_emb_1.npy", "metadata_0.parquet", "metadata_1.parquet"]


# What can be wrong.


def replace_shard(folder: Path, number: int, values: np.ndarray, name: str = "img_emb") -> None:
    np.save(folder / name / f"{name}_{number}.npy", values)


def with_nan(folder: Path) -> None:
    values = np.load(folder / "img_emb" / "img_emb_6.npy")
    values[3, 2] = np.nan
    replace_shard(folder, 6, values)


def cut_off(folder: Path) -> None:
    file = folder / "img_emb" / "img_emb_5.npy"
    file.write_bytes(file.read_bytes()[:-7])


def repeat_id(folder: Path) -> None:
    file = folder / "metadata" / "metadata_2.parquet"
    frame = pl.read_parquet(file)
    frame[1, "image_path"] = "photo3"
    frame.write_parquet(file)


def fewer_rows(folder: Path) -> None:
    file = folder / "metadata" / "metadata_4.parquet"
    pl.read_parquet(file).head(3).write_parquet(file)


def damage_metadata(folder: Path) -> None:
    (folder / "metadata" / "metadata_1.parquet").write_bytes(b"PAR1 and nothing else")


def other_column(folder: Path) -> None:
    file = folder / "metadata" / "metadata_3.parquet"
    pl.read_parquet(file).rename({"image_path": "name"}).write_parquet(file)


DAMAGES = {
    r"img_emb_6\.npy, row 3: NaN in vectors": with_nan,
    r"img_emb_5\.npy: cannot be read: cut off": cut_off,
    r"img_emb_2\.npy: vectors of 5 numbers, and of 6 in .*img_emb_0\.npy":
        lambda folder: replace_shard(folder, 2, np.ones((5, 5), np.float16)),
    r"img_emb: shards 0, 1, 2, 3, 4 and 1 more missing\n.*files 0 to 7":
        lambda folder: [(folder / "img_emb" / f"img_emb_{number}.npy").unlink() for number in range(6)],
    r"img_emb: shards 3, 4 missing\n.*files 0 to 7":
        lambda folder: [(folder / "img_emb" / f"img_emb_{number}.npy").unlink() for number in (3, 4)],
    r"shard 0 has metadata, but no vectors": lambda folder: (folder / "img_emb" / "img_emb_0.npy").unlink(),
    r"shard 7 has metadata, but no vectors": lambda folder: (folder / "img_emb" / "img_emb_7.npy").unlink(),
    r"shard 7 has vectors, but no metadata": lambda folder: (folder / "metadata" / "metadata_7.parquet").unlink(),
    r"metadata_4\.parquet: 3 rows of metadata for 5 vectors in img_emb_4\.npy": fewer_rows,
    r"metadata_2\.parquet, row 1: duplicate image id 'photo3' \(first at metadata_0\.parquet, row 3\)": repeat_id,
    r"metadata_1\.parquet: cannot be read": damage_metadata,
    r"shard 3 is there twice: img_emb_03\.npy and img_emb_3\.npy":
        lambda folder: np.save(folder / "img_emb" / "img_emb_03.npy", IMAGES[:5]),
    r"notes\.npy: this file has no number": lambda folder: np.save(folder / "img_emb" / "notes.npy", IMAGES[:5]),
    r"img_emb_1\.npy: an array of shape \(5,\)": lambda folder: replace_shard(folder, 1, np.ones(5)),
    r"img_emb_2\.npy: an array of type <U1": lambda folder: replace_shard(folder, 2, np.full((5, 6), "x")),
    r"img_emb_2\.npy: cannot be read: the file is empty\n.*\n  fix: copy or write it again":
        lambda folder: (folder / "img_emb" / "img_emb_2.npy").write_bytes(b""),
    r"metadata_2\.parquet: 5 rows of metadata for 0 vectors":
        lambda folder: replace_shard(folder, 2, np.ones((0, 6), np.float16)),
    r"metadata_3\.parquet: no column 'image_path', which metadata_0\.parquet has\n": other_column,
    r"text_emb is here, but no img_emb": lambda folder: (folder / "img_emb").rename(folder / "other"),
}  # fmt: skip


@pytest.mark.parametrize("message", DAMAGES)
def test_bad_shards_are_named(tmp_path, message):
    write_shards(tmp_path, IMAGES, CAPTIONS, 8)
    DAMAGES[message](tmp_path)
    with pytest.raises(InputError, match=message) as raised:
        stored(tmp_path)
    assert raised.value.fix
    assert "\n" not in raised.value.problem


def test_shards_of_several_types_are_read_in_the_widest(tmp_path):
    write_shards(tmp_path, IMAGES, CAPTIONS, 8)
    replace_shard(tmp_path, 2, IMAGES[10:15].astype(np.float64) / 3)
    read = stored(tmp_path)
    assert read.dtype == np.float64
    np.testing.assert_array_equal(read.rows(np.arange(10, 15)), IMAGES[10:15].astype(np.float64) / 3)
    np.testing.assert_array_equal(read.rows(np.arange(10)), IMAGES[:10].astype(np.float64))


def test_an_empty_folder(tmp_path):
    with pytest.raises(InputError, match="no shards in this folder"):
        read_vectors_and_ids(tmp_path, "image")


# Columns of lists.


@pytest.mark.parametrize("kind", [pl.Float16, pl.Float32, pl.Float64])
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("fixed", [True, False])
def test_list_columns(tmp_path, suffix, kind, fixed):
    column = pl.Array(kind, 6) if fixed else pl.List(kind)
    table = pl.DataFrame({"image_id": [f"p{row}" for row in range(40)], "title": ["x"] * 40})
    table = table.with_columns(
        pl.Series("image_embedding", IMAGES.tolist(), column), pl.Series("text_embedding", CAPTIONS.tolist(), column)
    )
    file = tmp_path / f"v.{suffix}"
    table.write_parquet(file, row_group_size=7) if suffix == "parquet" else table.write_ipc(file)
    images, captions = read_vectors_and_ids(file, "image"), read_vectors_and_ids(file, "caption")
    np.testing.assert_array_equal(images.vectors, IMAGES)
    np.testing.assert_array_equal(captions.vectors, CAPTIONS)
    assert images.ids == tuple(f"p{row}" for row in range(40))
    assert captions.ids is None


def test_a_large_table_is_decoded_into_a_file_of_the_cache(tmp_path, monkeypatch):
    from crosslens.data import vectors as packed_arrays

    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(packed_arrays, "_IN_MEMORY", 100)
    monkeypatch.setattr(packed_arrays, "_PART_BYTES", 60)
    file = tmp_path / "v.parquet"
    pl.DataFrame({"v": pl.Series(IMAGES.tolist(), dtype=pl.Array(pl.Float16, 6))}).write_parquet(file)
    for _ in range(2):
        vectors_read = read_vectors_and_ids(file, "image").vectors
        assert isinstance(vectors_read.array, np.memmap)
        np.testing.assert_array_equal(vectors_read, IMAGES)
    assert len(list((tmp_path / "cache").rglob("*.npy"))) == 1
    pl.DataFrame({"v": pl.Series((IMAGES + 1).tolist(), dtype=pl.Array(pl.Float16, 6))}).write_parquet(file)
    np.testing.assert_array_equal(read_vectors_and_ids(file, "image").vectors, (IMAGES + 1).astype(np.float16))


def test_bad_list_columns_are_named(tmp_path):
    rows: list[list[float | None] | None] = [[1.0, 2.0], [3.0, 4.0], [5.0]]
    file = tmp_path / "v.parquet"
    for bad, message in (([5.0], "row 2: the list of the column 'v' has 1 numbers"),
                         (None, "row 2: the list of the column 'v' has 0 numbers"),
                         ([5.0, None], "row 2: a missing number in the column 'v'")):  # fmt: skip
        rows[2] = bad  # type: ignore[assignment]
        pl.DataFrame({"v": pl.Series(rows, dtype=pl.List(pl.Float32))}).write_parquet(file)
        with pytest.raises(InputError, match=message):
            np.asarray(read_vectors_and_ids(file, "image").vectors)
    pl.DataFrame({"v": ["a"]}).write_parquet(file)
    with pytest.raises(InputError, match="holds no array"):
        read_vectors_and_ids(file, "image")
    file.write_bytes(b"PAR1 broken")
    with pytest.raises(InputError, match="cannot be read"):
        read_vectors_and_ids(file, "image")


def test_the_recipe_of_a_run_of_shards_repeats_it(tmp_path, monkeypatch, call):
    write_shards(tmp_path / "emb", IMAGES, CAPTIONS)
    monkeypatch.chdir(tmp_path)
    vectors_in = ("--image-embeddings", "emb", "--caption-embeddings", "emb")
    done = call("evaluate", "--dataset", "emb", *vectors_in, "-o", "run", "--json")
    assert done.code == 0, done.err
    again = call("run", "run/recipe.toml", "-o", "again", "--json")
    assert again.json["metrics"] == done.json["metrics"]
    replace_shard(tmp_path / "emb", 3, IMAGES[:5])
    changed = call("run", "run/recipe.toml", "-o", "third")
    assert changed.code == 3
    assert "image embeddings changed since the recipe was stored" in changed.err


def test_shards_are_saved_a_block_at_a_time(tmp_path, monkeypatch):
    from crosslens.storage import blocks

    monkeypatch.setattr(blocks, "BLOCK_BYTES", 50)
    write_shards(tmp_path / "emb", IMAGES, CAPTIONS)
    read = stored(tmp_path / "emb")
    read.save(tmp_path / "saved")
    assert Embeddings.load(tmp_path / "saved").fingerprint == read.fingerprint
    assert "vectors" not in vars(read)


def test_shards_as_a_relevance_encoder_and_as_variants(tmp_path, monkeypatch, call):
    write_shards(tmp_path / "emb", IMAGES, CAPTIONS)
    monkeypatch.chdir(tmp_path)
    vectors_in = ("--image-embeddings", "emb", "--caption-embeddings", "emb")
    graded = ("--metrics", "DCGcm[scores_from=other]@5", "--scores-from", "other=emb")
    done = call("evaluate", "--dataset", "emb", *vectors_in, *graded, "--json")
    assert done.code == 0, done.err
    dataset = cl.load_dataset("emb")
    pair = IMAGES.astype(np.float32), CAPTIONS.astype(np.float32)
    wide = cl.evaluate(dataset, images=pair[0], captions=pair[1], metrics="DCGcm[scores_from=other]@5",
                       scores_from={"other": pair})  # fmt: skip
    name = "t2i/DCGcm[scores_from=other]@5"
    assert done.json["metrics"][name]["mean"] == wide[name].mean
    (tmp_path / "variants" / "char_swap").mkdir(parents=True)
    for number, part in enumerate(np.array_split(vectors(40, seed=2), 3)):
        np.save(tmp_path / "variants" / "char_swap" / f"v_{number}.npy", part)
    quick = ("--permutations", "20", "--resamples", "20")
    study = call("robustness", "--dataset", "emb", *vectors_in, "--variants", "variants", *quick, "--json")
    assert study.code == 0, study.err
    plain = cl.robustness(
        dataset,
        images=pair[0],
        captions=pair[1],
        variants={"char_swap": vectors(40, seed=2).astype(np.float32)},
        permutations=20,
        resamples=20,
    )
    assert study.json["drops"]
    assert study.json["drops"] == plain.as_dict()["drops"]

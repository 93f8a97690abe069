"""The vectors of the variants: text-only, given, of perturbed pictures; only what changed is encoded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.core import InputError, UsageError
from crosslens.encode import text_only
from crosslens.perturbations import Edit, perturb
from crosslens.pipeline.robustness_study.variants import whole_edit
from tests.pipeline.robustness_study.letters import QUICK, Letters, captions, pictures, text_study, with_files


def test_text_only_perturbs_the_queries_and_nothing_else(tmp_path: Path) -> None:
    dataset, encoder = captions(10), Letters()
    result = text_study(dataset, encoder, "char_swap", output=tmp_path / "rob", query_caption=1)
    asking = [text for id, text in zip(dataset.caption_ids, dataset.texts, strict=True) if id.endswith("#1")]
    assert result.captions["original"].to_list() == asking
    assert result.headline == "t2t/Rsum"
    runs = [cl.Run.load(tmp_path / "rob" / "letters" / name) for name in ("original", "char_swap")]
    inputs = [run.provenance["inputs"] for run in runs]
    assert inputs[0]["images"] == inputs[1]["images"]
    assert inputs[0]["captions"] != inputs[1]["captions"]
    plain = text_only(dataset, encoder, query=1)
    run = cl.evaluate(plain.dataset, images=plain.images, captions=plain.captions, directions=["t2t"], metrics="MRR")
    assert runs[0]["t2t/MRR"].mean == run["t2t/MRR"].mean


def test_only_what_changed_is_encoded() -> None:
    dataset, encoder = captions(10), Letters()
    result = text_study(dataset, encoder, "char_swap,size", cache=False)
    changed = result.captions.filter("applied")["text"].to_list()
    assert 10 < len(changed) < 20, "the words have sizes in some captions only"
    assert sorted(encoder.texts) == sorted([*dataset.texts, *changed])


@pytest.mark.slow
def test_any_thread_count_gives_the_same(tmp_path: Path) -> None:
    dataset = captions(10)
    tables = [text_study(dataset, Letters(), "char_swap,shuffle_all_words", threads=n).tables for n in (1, 3)]
    for name, table in tables[0].items():
        assert table.equals(tables[1][name]), name


def test_given_vectors_give_what_the_model_gives(tmp_path: Path) -> None:
    dataset, encoder = captions(10), Letters()
    names = "char_swap,shuffle_all_words"
    images = encoder.encode_texts(dataset.texts[::3])
    variants = {
        name: encoder.encode_texts([caption.text for caption in perturb(name, dataset)]) for name in names.split(",")
    }  # fmt: skip
    ready = cl.robustness(
        dataset, images=images, captions=encoder.encode_texts(dataset.texts), variants=variants, **QUICK
    )

    class Known(Letters):
        def encode_images(self, pictures: Any) -> np.ndarray:
            return images

    pictures(dataset, tmp_path)
    modelled = cl.robustness(
        with_files(dataset), model=Known(), image_folder=tmp_path, perturbations=names, batch_size=100, **QUICK
    )
    assert ready.drops.drop("model").equals(modelled.drops.drop("model"))
    assert ready.captions.equals(modelled.captions)


def test_perturbed_folders_of_the_command_are_read(tmp_path: Path) -> None:
    from crosslens.perturbations import write_perturbations
    from crosslens.pipeline import read_variants

    dataset = captions(8)
    write_perturbations(dataset, "char_swap,distraction_true", tmp_path / "perturbed", seed=5)
    vectors, perturbed = read_variants(tmp_path / "perturbed")
    assert not vectors
    folders = text_study(dataset, Letters(), None, perturbed=perturbed)  # type: ignore[arg-type]
    study = text_study(dataset, Letters(), "char_swap,distraction_true", seed=5)
    assert folders.perturbations == study.perturbations
    for table in ("changes", "captions", "queries"):
        assert folders.tables[table].drop("seed").equals(study.tables[table].drop("seed")), table


def test_a_variant_of_other_captions_is_refused() -> None:
    dataset, larger = captions(4), captions(5)
    with pytest.raises(UsageError, match="no embeddings of the variant 'char_swap'"):
        cl.robustness(dataset, images=np.eye(4), captions=np.ones((12, 4)), variants={}, perturbations="char_swap")
    with pytest.raises(InputError, match=r"variant 'char_swap'.*11"):
        cl.robustness(dataset, images=np.eye(4), captions=np.ones((12, 4)), variants={"char_swap": np.ones((11, 4))})
    texts = larger.captions.with_columns(pl.col("caption") + "x")
    with pytest.raises(InputError, match="not of the same captions"):
        text_study(dataset, Letters(), None, perturbed={"mine": replace(larger, captions=texts)})  # type: ignore[arg-type]


def test_changed_pictures_are_encoded_and_both_directions_change(tmp_path: Path) -> None:
    dataset = with_files(captions(8))
    pictures(dataset, tmp_path)
    encoder = Letters()
    result = cl.robustness(
        dataset,
        model=encoder,
        image_folder=tmp_path,
        perturbations="char_swap,noise@5",
        output=tmp_path / "rob",
        **QUICK,
    )
    assert encoder.pictures == 16
    runs = {name: cl.Run.load(tmp_path / "rob" / "letters" / name) for name in ("original", "noise@5")}
    inputs = {name: run.provenance["inputs"] for name, run in runs.items()}
    assert inputs["original"]["captions"] == inputs["noise@5"]["captions"]
    assert inputs["original"]["images"] != inputs["noise@5"]["images"]
    assert result.changes.filter(pl.col("perturbation") == "noise@5")["changed"].to_list() == [24]
    assert not list(tmp_path.rglob(".*"))
    again = Letters()
    cl.robustness(
        dataset, model=again, image_folder=tmp_path, perturbations="char_swap,noise@5", output=tmp_path / "rob", **QUICK
    )
    assert (again.pictures, again.texts) == (0, [])


@pytest.mark.parametrize(
    ("old", "new", "edit"),
    [
        ("a dog", "a dog and", (5, 5, "", " and")),
        ("a dog", "a dgo", (3, 5, "og", "go")),
        ("aa", "a", (1, 2, "a", "")),
        ("a", "b", (0, 1, "a", "b")),
    ],
)
def test_whole_edit(old: str, new: str, edit: tuple[int, int, str, str]) -> None:
    assert whole_edit(old, new) == (Edit(*edit),)

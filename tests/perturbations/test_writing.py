"""Datasets with changed captions: whole, readable, and gone on with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import crosslens as cl
from crosslens.core import ConflictError, InputError, UsageError
from crosslens.perturbations import (
    BRIT_PERTURBATIONS,
    GROUPS,
    chosen_perturbations,
    is_image_perturbation,
    read_perturbed,
    write_perturbations,
    writing,
)
from crosslens.perturbations.writing import SUMMARY
from crosslens.values import Dataset

NAMES = ("char_swap", "distraction_true", "shuffle_all_words")


@pytest.fixture
def dataset() -> Dataset:
    texts = {"a": ["A dog runs.", "The dog's ball"], "b": ["42", "Two cats, one \u201cbig\u201d\nand é"], "c": ["…!"]}
    return Dataset.of(texts, images={"category": ["x", "y", "z"]})


def test_each_folder_is_a_dataset_with_the_same_ids(dataset: Dataset, tmp_path: Path) -> None:
    facts = write_perturbations(dataset, NAMES, tmp_path / "out", seed=4)
    assert list(facts) == list(NAMES)
    for name in NAMES:
        perturbed = cl.load_dataset(tmp_path / "out" / name)
        expected = cl.perturb(name, dataset, seed=4)
        assert perturbed.caption_ids == dataset.caption_ids
        assert perturbed.image_ids == dataset.image_ids
        assert perturbed.images["category"].to_list() == ["x", "y", "z"]
        assert perturbed.texts == tuple(result.text for result in expected)
        assert read_perturbed(perturbed) == expected
        applied = sum(result.applied for result in expected)
        assert (facts[name]["captions"], facts[name]["applied"]) == (5, applied)
        assert facts[name]["applied_share"] == applied / 5
        assert sum(facts[name]["reasons"].values()) == 5 - applied
        assert facts[name]["fingerprint"] == perturbed.fingerprint
    for name in ("none", *NAMES):
        plain = cl.load_dataset(tmp_path / "out" / f"{name}.jsonl")
        whole = dataset if name == "none" else cl.load_dataset(tmp_path / "out" / name)
        assert plain.caption_ids == dataset.caption_ids
        assert plain.texts == whole.texts
        assert [plain.image_ids[row] for row in plain.caption_image] == dataset.captions["image"].to_list()
    summary = json.loads((tmp_path / "out" / SUMMARY).read_text(encoding="utf-8"))
    assert summary["perturbations"] == facts
    assert summary["dataset"]["fingerprint"] == dataset.fingerprint


def test_a_stopped_run_is_gone_on_with(dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = write_perturbations(dataset, NAMES, tmp_path / "whole")
    written: list[str] = []
    real = writing.perturbed_dataset

    def counting(based: Dataset, name: str, *rest: Any) -> Dataset:
        written.append(name)
        if len(written) == 2:
            raise KeyboardInterrupt
        return real(based, name, *rest)

    monkeypatch.setattr(writing, "perturbed_dataset", counting)
    with pytest.raises(KeyboardInterrupt):
        write_perturbations(dataset, NAMES, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert write_perturbations(dataset, NAMES, tmp_path / "out") == whole
    assert written == [NAMES[0], NAMES[1], NAMES[1], NAMES[2]]
    texts = [f"{name}.jsonl" for name in ("none", *NAMES)]
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == sorted([*NAMES, *texts, SUMMARY])
    write_perturbations(dataset, NAMES, tmp_path / "out")
    assert len(written) == 4
    shutil.rmtree(tmp_path / "out" / NAMES[0])
    write_perturbations(dataset, [*NAMES, "missing_char"], tmp_path / "out")
    assert written[4:] == [NAMES[0], "missing_char"]


def test_nothing_else_is_replaced_unasked(dataset: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_perturbations(dataset, NAMES, out)
    with pytest.raises(ConflictError, match="different: seed"):
        write_perturbations(dataset, NAMES, out, seed=1)
    with pytest.raises(ConflictError, match="different: options"):
        write_perturbations(dataset, NAMES, out, k=2)
    another = Dataset.of({"z": ["A cat sits."]}, name="other")
    with pytest.raises(ConflictError, match="another dataset"):
        write_perturbations(another, ["char_swap"], out)
    write_perturbations(dataset, NAMES, out, seed=1, overwrite=True)
    assert cl.load_dataset(out / "char_swap").texts == tuple(
        result.text for result in cl.perturb("char_swap", dataset, seed=1)
    )
    write_perturbations(another, ["char_swap"], out, overwrite=True)
    assert sorted(file.name for file in out.iterdir()) == ["char_swap", "char_swap.jsonl", "none.jsonl", SUMMARY]
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("keep")
    with pytest.raises(ConflictError, match="not empty"):
        write_perturbations(dataset, NAMES, mine, overwrite=True)
    with pytest.raises(ConflictError, match="is a file"):
        write_perturbations(dataset, NAMES, mine / "notes.txt")


def test_replacing_takes_nothing_that_is_not_ours(dataset: Dataset, tmp_path: Path) -> None:
    """Neither a person's file inside a dataset, nor a folder elsewhere that a summary from elsewhere names."""
    out = tmp_path / "out"
    write_perturbations(dataset, NAMES, out)
    note = out / "char_swap" / "notes.txt"
    note.write_text("keep")
    another = Dataset.of({"z": ["A cat sits."]}, name="other")
    for asked, seed in ((another, 0), (dataset, 1)):
        with pytest.raises(ConflictError, match=r"also holds char_swap/notes\.txt"):
            write_perturbations(asked, NAMES, out, seed=seed, overwrite=True)
        assert note.read_text() == "keep"
        assert all((out / name / "captions.parquet").exists() for name in NAMES)
    note.unlink()
    outside = tmp_path / "photos"
    outside.mkdir()
    summary = json.loads((out / SUMMARY).read_text(encoding="utf-8"))
    summary["perturbations"]["../photos"] = summary["perturbations"]["char_swap"]
    (out / SUMMARY).write_text(json.dumps(summary), encoding="utf-8")
    with cl.storage.verification(False):
        write_perturbations(another, ["char_swap"], out, overwrite=True)
    assert outside.is_dir()


def test_an_option_goes_to_those_that_know_it(dataset: Dataset, tmp_path: Path) -> None:
    facts = write_perturbations(dataset, NAMES, tmp_path / "out", k=2)
    assert facts["char_swap"]["options"] == {"k": 2}
    assert facts["distraction_true"]["options"] == {}
    with pytest.raises(UsageError, match="no option 'j'"):
        write_perturbations(dataset, NAMES, tmp_path / "other", j=2)
    assert not (tmp_path / "other").exists()


def test_pictures_are_still_found(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(b"x")
    dataset = Dataset.of({"a": ["A dog runs."]}, images={"file": ["a.jpg"]})
    write_perturbations(dataset, "char_swap", tmp_path / "out", image_folder=tmp_path / "photos")
    assert cl.load_dataset(tmp_path / "out" / "char_swap").images["file"].to_list() == [
        str(tmp_path / "photos" / "a.jpg")
    ]
    write_perturbations(dataset, "char_swap", tmp_path / "unknown")
    assert cl.load_dataset(tmp_path / "unknown" / "char_swap").images["file"].to_list() == ["a.jpg"]


def test_pictures_are_changed_too(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (16, 12), "red").save(tmp_path / "a.png")
    dataset = Dataset.of({"a": ["A dog runs."]}, images={"file": ["a.png"]})
    facts = write_perturbations(dataset, "char_swap,noise@5", tmp_path / "out", image_folder=tmp_path)
    assert list(facts) == ["char_swap", "noise@5"]
    assert facts["noise@5"]["images"] == 1
    perturbed = cl.load_dataset(tmp_path / "out" / "noise@5")
    assert perturbed.texts == dataset.texts
    assert write_perturbations(dataset, "char_swap,noise@5", tmp_path / "out", image_folder=tmp_path) == facts


def test_a_dataset_without_changes_is_refused(dataset: Dataset) -> None:
    with pytest.raises(InputError, match="no column 'original'"):
        read_perturbed(dataset)


# Lists of names


def test_names_and_groups() -> None:
    assert chosen_perturbations("all") == BRIT_PERTURBATIONS
    assert chosen_perturbations(" char_swap , all ")[:2] == ("char_swap", "missing_char")
    assert chosen_perturbations(["antonym", "adversarial"]) == GROUPS["adversarial"]
    assert chosen_perturbations("blur,char_swap,blur@3,noise@1") == ("blur@3", "char_swap", "noise@1")
    pictures = chosen_perturbations("images@2")
    assert {"blur@2", "jpeg@2"} <= set(pictures)
    assert all(map(is_image_perturbation, pictures))
    assert not any(map(is_image_perturbation, GROUPS["everything"]))


@pytest.mark.parametrize("names", ["", "char_swp", "blur@9", "char_swap@2", "images@x", []])
def test_unknown_names_are_explained(names: str | list[str]) -> None:
    with pytest.raises(cl.CrosslensError) as caught:
        chosen_perturbations(names)
    assert caught.value.fix

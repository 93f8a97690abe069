"""A hundred captions under every perturbation, as a person read and accepted them."""

from __future__ import annotations

from functools import lru_cache

import pytest

from crosslens.perturbations import PERTURBATIONS
from tests.language.pipelines import needs_the_small_pipeline
from write_golden_perturbations import CAPTIONS, FOLDER, golden

NAMES = [entry.name for entry in PERTURBATIONS]


@lru_cache
def written_outcomes(tags: bool) -> dict[str, str]:
    return golden([entry.name for entry in PERTURBATIONS if entry.details["tags"] == tags])


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(entry.name, marks=[needs_the_small_pipeline] if entry.details["tags"] else [])
        for entry in PERTURBATIONS
    ],
)
def test_outcomes_are_those_that_were_read(name: str) -> None:
    file = FOLDER / f"{name}.txt"
    assert file.exists(), (
        f"new perturbation: python scripts/write_golden_perturbations.py {name}, then read {file.name}"
    )
    outcomes = written_outcomes(bool(PERTURBATIONS[name].details["tags"]))[name].splitlines()
    expected = file.read_text(encoding="utf-8").splitlines()
    assert outcomes == expected, f"if the new outcomes are better: python scripts/write_golden_perturbations.py {name}"


def test_there_are_a_hundred_different_captions_and_no_stray_files() -> None:
    captions = CAPTIONS.read_text(encoding="utf-8").splitlines()
    assert len(captions) == len(set(captions)) == 100
    assert {file.stem for file in FOLDER.glob("*.txt")} == {"captions", *NAMES}

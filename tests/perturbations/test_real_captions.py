"""Every perturbation over every caption of Flickr8k and of COCO's test split: 65,460 captions, twenty perturbations."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from crosslens.perturbations import GROUPS, PERTURBATIONS, Perturbed, apply_edits, perturb_each, words_of
from crosslens.perturbations.text.surface import KEY_NEIGHBOURS
from tests.language.pipelines import needs_a_pipeline


def captions_of(folder: Path, name: str) -> dict[str, str]:
    """Id → text."""
    if name == "flickr8k":
        lines = (folder / "flickr8k" / "Flickr8k.token.txt").read_text(encoding="utf-8").splitlines()
        return dict(line.split("\t", 1) for line in lines if line)  # type: ignore[arg-type]
    with gzip.open(folder / "coco_karpathy_test" / "captions.tsv.gz", "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    return {caption: text for caption, _, text in rows}


def keeps_words(result: Perturbed) -> bool:
    return words(result.original) == words(result.text)


def swaps_two_neighbours(result: Perturbed) -> bool:
    (edit,) = result.edits
    return len(edit.before) == 2 and edit.after == edit.before[::-1] and edit.after != edit.before


def drops_a_letter(result: Perturbed) -> bool:
    (edit,) = result.edits
    return edit.after == "" and len(edit.before) == 1 and edit.before.isalpha()


def types_a_neighbour(result: Perturbed) -> bool:
    (edit,) = result.edits
    around = result.original[max(edit.start - 1, 0) : edit.start + 1].lower()
    return edit.before == "" and any(edit.after.lower() in KEY_NEIGHBOURS.get(key, ()) for key in around)


def hits_a_neighbour(result: Perturbed) -> bool:
    (edit,) = result.edits
    same_case = edit.after.isupper() == edit.before.isupper()
    return same_case and edit.after.lower() in KEY_NEIGHBOURS[edit.before.lower()]


def words(text: str) -> list[str]:
    return sorted(word.text.casefold() for word in words_of(text))


CHECKS: dict[str, Callable[[Perturbed], bool]] = {
    "char_swap": swaps_two_neighbours,
    "missing_char": drops_a_letter,
    "extra_char": types_a_neighbour,
    "nearby_char": hits_a_neighbour,
    "distraction_true": lambda result: result.text.endswith(" and true is true."),
    "distraction_false": lambda result: result.text.endswith(" and false is false."),
    **{name: keeps_words for name in GROUPS["all"] if name.startswith("shuffle")},
}


@needs_a_pipeline
@pytest.mark.slow
@pytest.mark.parametrize("name", ["flickr8k", "coco"])
def test_every_caption_comes_out_as_its_edits_say(shared_data: Path, name: str) -> None:
    captions = captions_of(shared_data, name)
    assert len(captions) == {"flickr8k": 40_460, "coco": 25_000}[name]
    everything = [perturbation.name for perturbation in PERTURBATIONS]
    for perturbation, results in perturb_each(everything, captions):
        check = CHECKS.get(perturbation, lambda result: True)
        for result in results:
            assert apply_edits(result.original, result.edits) == result.text
            assert result.applied == (result.text != result.original) == (not result.reason)
            assert not result.applied or check(result), (perturbation, result)
        assert any(result.applied for result in results)

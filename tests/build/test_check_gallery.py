"""The check against the selected images, D − x: by plain loops, from the definition."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import crosslens as cl
from crosslens.build import RecosSettings, build_recos
from crosslens.core import UsageError
from tests.build.recos_builds import SETTINGS, build, toy
from tests.build.toy_models import Fickle


def dis_of(text: list[float], others: list[list[float]], k: int, temperature: float) -> float:
    """−Σ p ln p over the k most similar of the others."""

    def cosine(left: list[float], right: list[float]) -> float:
        product = sum(a * b for a, b in zip(left, right, strict=True))
        return product / math.sqrt(sum(a * a for a in left)) / math.sqrt(sum(b * b for b in right))

    best = sorted((cosine(text, text_vector) for text_vector in others), reverse=True)[:k]
    weights = [math.exp((value - best[0]) / temperature) for value in best]
    return -sum(w / sum(weights) * math.log(w / sum(weights)) for w in weights if w > 0)


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6), eta=st.sampled_from([0.3, 0.5, 0.8]))
def test_every_description_lies_in_the_band_of_the_final_gallery(tmp_path: Path, seed: int, eta: float) -> None:
    """The selection after the last round is consistent with itself, and no dropped image would have fitted in."""
    chance = np.random.default_rng(seed)
    points = {f"image {n}": tuple(chance.normal(size=2)) for n in range(24)}
    dataset, encoder = toy(points, tmp_path / str(seed) / str(eta))
    k, temperature = 3, 0.05
    settings = RecosSettings(
        k=k, eta=eta, temperature=temperature, descriptions=2, originals=10, similar=0, duplicate_cosine=2,
        check_gallery="selected", seed=seed,
    )  # fmt: skip
    try:
        built = build_recos(dataset, encoder, settings, generator=None)
    except UsageError as error:
        assert "no image is left" in str(error) or "gallery of the check" in str(error)  # noqa: PT017
        return
    v0 = built.versions["v0"]
    for image, dis in v0.captions.select("image", "dis").iter_rows():
        others = [list(points[gallery_image]) for gallery_image in v0.image_ids if gallery_image != image]
        expected = dis_of(list(points[image]), others, k, temperature)
        assert dis == pytest.approx(expected, abs=1e-6)
        assert (1 - eta) / 2 * math.log(k) <= dis <= (1 + eta) / 2 * math.log(k)
    dropped = {entry["image"] for entry in built.log.of("original") if entry["verdict"] == "dropped"}
    assert not dropped & set(v0.image_ids)
    assert len(v0.image_ids) == 10 or len(dropped) == 24 - len(v0.image_ids), "the next of the task was tried"
    assert {entry["caption"] for entry in built.log.of("check")} == set(v0.caption_ids), "D's, against D − x"
    assert len(built.check.values) == 2 * len(v0.image_ids)


@pytest.mark.slow
def test_the_default_is_all_candidates(scenes: cl.Dataset, folder: Path) -> None:
    assert SETTINGS.check_gallery == "candidates"
    selected = build(scenes, folder, replace(SETTINGS, check_gallery="selected", originals=14))
    assert len(selected.check.values) == 5 * len(selected.versions["v0"].image_ids), "not those of all candidates"
    low, high = 0.1 * math.log(10), 0.9 * math.log(10)
    assert all(low <= dis <= high for dis in selected.versions["v0"].captions["dis"])


@pytest.mark.slow
def test_written_texts_stay_from_round_to_round_and_the_log_repeats_them(
    scenes: cl.Dataset, folder: Path, tmp_path: Path
) -> None:
    settings = replace(SETTINGS, check_gallery="selected", originals=16, eta=0.5)
    first = build(scenes, folder, settings, generator=Fickle(), output=tmp_path / "one")
    assert "fickle" in set(first.versions["v0"].captions["origin"])
    silent = Fickle(patience=0)
    again = build(scenes, folder, first.settings, generator=silent, repeat=first.log, output=tmp_path / "two")
    assert silent.asked == 0
    assert again.versions["v2"].fingerprint == first.versions["v2"].fingerprint
    up_to_date = build(scenes, folder, settings, generator=Fickle(), output=tmp_path / "one")
    assert up_to_date.already
    assert up_to_date.check.values.tolist() == pytest.approx(first.check.values.tolist())


def test_too_few_selected_images_for_k(tmp_path: Path) -> None:
    dataset, encoder = toy({f"image {n}": (1.0, n / 10) for n in range(9)}, tmp_path)
    settings = RecosSettings(k=5, temperature=0.1, originals=5, descriptions=2, check_gallery="selected", eta=1,
                           duplicate_cosine=2)  # fmt: skip
    with pytest.raises(UsageError, match="k = 5 and 5 images in the gallery of the check"):
        build_recos(dataset, encoder, settings, generator=None)

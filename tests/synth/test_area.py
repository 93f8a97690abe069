"""Area calculations: results by counting, twins and similar scenes, and that old sets stay as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from crosslens.core import UnknownNameError
from crosslens.synth import TASKS, generate, number_word, write_scenes
from crosslens.synth.tasks import EVERY_TASK, chosen_tasks
from crosslens.synth.tasks.worked_out import AreaFacts


def counted(shape: str, width: int, height: int) -> float:
    """The area by counting unit squares; of a triangle half of those of its box."""
    squares = sum(1 for _ in range(width) for _ in range(height))
    return squares / 2 if shape == "triangle" else squares


def test_areas_are_right_in_every_caption() -> None:
    shapes = set()
    for scene in generate(30, "area", seed=10):
        facts = scene.facts
        assert isinstance(facts, AreaFacts)
        texts = {caption.style: caption.text for caption in scene.captions}
        area = counted(facts.shape, facts.width, facts.height)
        assert area == facts.result == int(area)
        for style in ("literal", "sparse", "detailed"):
            assert re.search(rf"\b{int(area)}\b", texts[style])
        for style in ("paraphrased", "figurative"):
            assert number_word(int(area)) in texts[style]
        assert facts.shape in texts["literal"]
        assert (facts.width == facts.height) if facts.shape == "square" else True
        assert scene.task == "calculation"
        assert scene.source.startswith("area: ")
        assert scene.objects[0].look.text == f"{'▭□△'[['rectangle', 'square', 'triangle'].index(facts.shape)]} " + (
            f"{facts.width} × {facts.height}"
        )
        shapes.add(facts.shape)
    assert shapes == {"rectangle", "square", "triangle"}


def test_twins_and_similar_scenes_have_another_area() -> None:
    scenes = list(generate(8, "area", seed=3, version="v2", gallery=32))
    originals = {scene.number: scene.facts for scene in scenes[:8]}
    twins = {scene.of: scene.facts for scene in scenes[8:16]}
    for scene in scenes[8:]:
        assert scene.facts.result != originals[scene.of].result  # type: ignore[attr-defined, index]
        assert scene.facts.shape == originals[scene.of].shape  # type: ignore[attr-defined, index]
    for scene in scenes[16:]:
        assert scene.facts.result != twins[scene.of].result  # type: ignore[attr-defined, index]


def test_the_figure_shows_its_lengths() -> None:
    """Other lengths are other pixels, on the same board in the same hand."""
    import numpy as np

    pairs = list(generate(6, "area", seed=5, version="v1"))
    for scene, twin in zip(pairs[:6], pairs[6:], strict=True):
        before, after = (np.asarray(drawn_scene.render(), int) for drawn_scene in (scene, twin))
        changed = (before != after).any(axis=2).mean()
        assert 0.001 < changed < 0.2


def test_all_stands_for_the_twelve_and_area_has_to_be_named(tmp_path: Path) -> None:
    assert len(TASKS) == 12
    assert "area" not in TASKS
    assert chosen_tasks("all") == tuple(TASKS)
    assert chosen_tasks("area,all") == (*TASKS, "area") == tuple(EVERY_TASK)
    with pytest.raises(UnknownNameError, match="did you mean area"):
        chosen_tasks("all,aera")
    dataset = write_scenes(tmp_path / "set", 4, "calculation,area", seed=2, workers=1)
    assert dataset.images["task"].to_list() == ["calculation"] * 4
    assert [source.partition(":")[0] for source in dataset.images["source"]] == ["calculation", "area"] * 2

"""The scripts that measure difficulty on real data: what stands for an image, and what a head learns."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import crosslens as cl

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def panel(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(ROOT / "reproduce"))
    import panel

    return panel


def part(panel: ModuleType, counts: list[int], width: int = 6) -> Any:
    """Photos with these numbers of captions, and random vectors."""
    random = np.random.default_rng(3)
    dataset = cl.Dataset.of({f"p{n}": [f"caption {n} {k}" for k in range(count)] for n, count in enumerate(counts)})
    kept = {panel.L6: random.normal(size=(sum(counts), width))}
    return panel.Part("drawn", dataset, random.normal(size=(len(counts), 4)), kept=kept)


def test_text_only_leaves_a_caption_of_every_image_out(panel: ModuleType) -> None:
    """A slow reference: the caption in position k meets means of all captions but the k-th, or the k-th again."""
    drawn = part(panel, [5, 5, 6, 7])
    scores = panel.text_only(panel.L6)(drawn)
    vectors = [row / np.linalg.norm(row) for row in drawn.vectors(panel.L6)]
    captions_by_image: list[list[int]] = [[] for _ in drawn.dataset.image_ids]
    for row, image in enumerate(drawn.dataset.caption_image):
        captions_by_image[image].append(row)
    for rows in captions_by_image:
        for position, caption in enumerate(rows):
            for image, candidates in enumerate(captions_by_image):
                others = [row for k, row in enumerate(candidates) if k != position % len(candidates)]
                assert caption not in others
                mean = sum(vectors[row] for row in others) / len(others)
                expected = float(mean @ vectors[caption] / np.linalg.norm(mean))
                assert scores[image, caption] == pytest.approx(expected, abs=1e-6)


def test_canonical_correlation_finds_what_both_sides_share(panel: ModuleType) -> None:
    """Three shared directions among loud noise: each caption is nearest to its own photo once the noise is ignored."""
    random = np.random.default_rng(5)
    hidden = random.normal(size=(60, 3))
    features = np.hstack([hidden[:, ::-1], 20 * random.normal(size=(60, 2))])
    dataset = cl.Dataset.of({f"p{n}": ["a", "b"] for n in range(60)})
    captions = np.hstack([np.repeat(hidden, 2, axis=0), 20 * random.normal(size=(120, 2))])
    fitted = panel.Part("drawn", dataset, features, kept={panel.L6: captions})

    def hits(scores: Any) -> float:
        return float((scores.argmax(axis=0) == dataset.caption_image).mean())

    assert hits(panel.cca(panel.L6, (fitted,))(fitted)) > 0.5
    assert hits(panel.cosines(features, captions)) < 0.1


@pytest.mark.slow
def test_head_is_trained_once_and_read_again(
    panel: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import panel_heads

    monkeypatch.setattr(panel_heads, "BATCH", 8)
    monkeypatch.setattr(panel_heads, "EPOCHS", 2)
    features = np.random.default_rng(1).normal(size=(16, 10))
    texts = [f"{word} thing" for word in ("red", "blue", "green", "old") * 4 for _ in range(2)]
    owner = np.repeat(np.arange(16), 2)
    first = panel_heads.train(features, texts, None, owner, tmp_path)
    (file,) = tmp_path.iterdir()
    written = file.stat().st_mtime_ns
    again = panel_heads.train(features, texts, None, owner, tmp_path)
    assert file.stat().st_mtime_ns == written
    assert np.array_equal(first.images(features), again.images(features))
    assert np.array_equal(first.captions(texts, features), again.captions(texts, features))
    assert np.allclose(np.linalg.norm(first.captions(texts, features), axis=1), 1, atol=1e-5)
    anew = panel_heads.train(features, texts, None, owner, tmp_path / "other")
    assert np.array_equal(first.images(features), anew.images(features)), "a seed gives one model"


def test_captions_by_image_in_any_order(panel: ModuleType) -> None:
    import panel_heads

    grouped = panel_heads.captions_by_image(np.array([2, 0, 1, 0, 2]))
    assert [rows.tolist() for rows in grouped] == [[1, 3], [2], [0, 4]]


def test_every_looked_at_pair_says_what_it_is(panel: ModuleType) -> None:
    import hardest

    notes = hardest.notes()
    assert notes
    assert all(note["kind"] in hardest.KINDS[:-1] and note["note"] for note in notes.values())


@pytest.mark.slow
def test_ridge_reaches_the_known_figures(panel: ModuleType, shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSLENS_DATA", str(shared_data))
    split = panel.Data().splits["flickr8k"]
    scores = panel.ridge(panel.L6, split.fitted)(split.test)
    assert panel.figures(split.test.dataset, scores, ties="optimistic") == panel.EXPECTED["ridge L6"]

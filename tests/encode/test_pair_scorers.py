"""The second stage: a pair scorer re-orders the top of every list, and every place stays exact."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import InputError, UsageError
from crosslens.encode import load_pair_scorer, score_pairs
from crosslens.rank import ScoreMatrix, rerank
from crosslens.values import Ranking
from tests.tables import each_row

IMAGES, CAPTIONS = 6, 12


class Table:
    """Looks scores up: image ``i3`` is the picture 3, caption ``c7`` the text "7"."""

    name, revision = "table", "1"

    def __init__(self, scores: np.ndarray[Any, Any]) -> None:
        self.scores = scores
        self.pairs = 0

    def score_pairs(self, images: Sequence[Any], texts: Sequence[str]) -> np.ndarray[Any, Any]:
        self.pairs += len(images)
        return np.array([self.scores[image, int(text)] for image, text in zip(images, texts, strict=True)])


def world(seed: int, tied: bool) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], cl.Relevance]:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 4, (IMAGES, CAPTIONS)).astype(np.float32) if tied else rng.random((IMAGES, CAPTIONS))
    second = rng.integers(0, 3, (IMAGES, CAPTIONS)).astype(np.float32) if tied else rng.random((IMAGES, CAPTIONS))
    judged = {f"i{row}": [f"c{2 * row}", f"c{2 * row + 1}"] for row in range(IMAGES)}
    queries = [f"i{row}" for row in range(IMAGES)]
    pairs = [(image, caption) for image in queries for caption in judged[image]]
    relevance = cl.Relevance.from_pairs(
        *zip(*pairs, strict=True), query_ids=queries, item_ids=[f"c{column}" for column in range(CAPTIONS)]
    )
    return first.astype(np.float32), second.astype(np.float32), relevance


def ranked(scores: np.ndarray[Any, Any], relevance: cl.Relevance, direction: str) -> Ranking:
    return cl.rank.rank_both(ScoreMatrix(scores), relevance, depth=CAPTIONS)[direction]


def again(ranking: Ranking, scorer: Table, k: int, **options: Any) -> Ranking:
    images = {f"i{row}": row for row in range(IMAGES)}
    texts = {f"c{column}": str(column) for column in range(CAPTIONS)}
    return rerank(ranking, lambda pairs: score_pairs(pairs, scorer, images=images, texts=texts, **options), k)


@each_row("tied", [False, True])
@each_row("direction", ["i2t", "t2i"])
@each_row("k", [1, 3, 6])
@each_row("seed", range(4))
def test_it_equals_a_slow_obvious_way(seed: int, k: int, direction: str, tied: bool) -> None:
    first, second, relevance = world(seed, tied)
    before = ranked(first, relevance, direction)
    after = again(before, Table(second), k, batch_size=5)
    left, right = (first, second) if direction == "i2t" else (first.T, second.T)
    for row in range(len(before.query_ids)):
        order = sorted(range(left.shape[1]), key=lambda item: (-left[row, item], item))
        top = sorted(order[:k], key=lambda item: (-right[row, item], item))
        assert list(after.top_items[row]) == top
        np.testing.assert_allclose(after.top_scores[row], right[row, top])
        # Two levels: inside the first k by the second score, below them by the first.
        level = {item: (1, right[row, item]) if item in top else (0, left[row, item]) for item in order}
        for place in range(after.offsets[row], after.offsets[row + 1]):
            relevant = after.relevant[place]
            others = [item for item in order if item != relevant]
            assert after.above[place] == sum(level[item] > level[relevant] for item in others)
            assert after.tied[place] == sum(level[item] == level[relevant] for item in others)
            assert after.tied_before[place] == sum(
                level[item] == level[relevant] and item < relevant for item in others
            )


def test_only_the_top_is_scored() -> None:
    first, second, relevance = world(0, False)
    table = Table(second)
    after = again(ranked(first, relevance, "i2t"), table, 4)
    assert table.pairs == IMAGES * 4
    assert after.depth == 4


def test_mistakes_are_explained() -> None:
    first, second, relevance = world(0, False)
    before = ranked(first, relevance, "t2i")
    with pytest.raises(UsageError, match="depth"):
        again(before, Table(second), 50)
    with pytest.raises(InputError, match="no image for id"):
        score_pairs([("i0", "c0")], Table(second), images={}, texts={})

    class Short(Table):
        def score_pairs(self, images: Sequence[Any], texts: Sequence[str]) -> np.ndarray[Any, Any]:
            return np.zeros(1)

    with pytest.raises(InputError, match="scores for"):
        again(before, Short(second), 2)


@pytest.mark.parametrize(
    ("kind", "name", "head"),
    [
        ("blip", "BlipForImageTextRetrieval", "use_itm_head"),
        ("blip2", "Blip2ForImageTextRetrieval", "use_image_text_matching_head"),
    ],
)
def test_a_matching_head_is_the_library_s_own(tmp_path: Path, kind: str, name: str, head: str) -> None:
    pytest.importorskip("transformers", reason="pip install 'crosslens[encoders]'")
    import torch
    import transformers

    from tests.encode.tiny_models import TEXTS, pictures, save_model

    folder = save_model(kind, tmp_path / kind)
    scorer = load_pair_scorer(f"{kind}:{folder}", device="cpu", offline=True)
    images = pictures()
    scores = scorer.score_pairs([images[0], images[1], images[0], images[2]], TEXTS)
    assert len(set(scores.tolist())) == len(TEXTS), "the texts matter"
    model = getattr(transformers, name).from_pretrained(folder).eval()
    prepare = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for score, picture, text in zip(scores, [images[0], images[1], images[0], images[2]], TEXTS, strict=True):
        with torch.inference_mode():
            tokens = {name: value for name, value in tokenizer(text, return_tensors="pt").items() if "type" not in name}
            outputs = model(**tokens, **prepare(picture, return_tensors="pt"), **{head: True})
        (logits,) = outputs.itm_score if kind == "blip" else outputs.logits_per_image
        assert score == pytest.approx(float(logits[1] - logits[0]), abs=1e-5)


def test_a_matching_head_refuses_the_other_architecture(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="pip install 'crosslens[encoders]'")
    from tests.encode.tiny_models import save_model

    folder = save_model("blip", tmp_path / "blip")
    with pytest.raises(UsageError, match="not of blip2") as caught:
        load_pair_scorer(f"blip2:{folder}", device="cpu", offline=True)
    assert "blip:" in str(caught.value.fix)

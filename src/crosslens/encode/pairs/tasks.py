"""Scores of images and texts, in this process or in tasks of an engine: the same batches and blocks either way.

Features travel once per node, image files by their names; the model is loaded where the task runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crosslens.core import Engine, InputError, Progress, current_engine, missing_on_node, stage
from crosslens.data import outer_file
from crosslens.encode.batches import PAIRS, Batches
from crosslens.encode.encoder import Array, DivisibleScorer
from crosslens.encode.options import EncodeOptions
from crosslens.encode.tasks import ModelToLoad, in_groups, uses_gpu


class PairBatch(NamedTuple):
    """Images (pictures, paths or features), and as many texts."""

    images: list[Any]
    texts: list[str]


def run_pair_batches(
    scorer: Any,
    size: int | None,
    pairs: Sequence[Any],
    content: Callable[[Sequence[Any]], PairBatch],
    loader: Callable[[str, EncodeOptions], Any],
) -> Iterator[tuple[Sequence[Any], Array]]:
    """Batches of pairs with their scores, in order; ``content`` gives what the model reads of a batch."""
    batches, engine = Batches(PAIRS, scorer, size), current_engine()
    if not engine.distributed:
        for batch in batches.of(pairs):
            yield batch, _scored(scorer, batches, content(batch))
        return
    planned = list(batches.of(pairs))
    groups = in_groups(planned, engine)
    requests = ([_with_paths(content(batch)) for batch in group] for group in groups)
    scored = engine.run(score_batches, ModelToLoad.of(scorer, loader), requests, gpu=uses_gpu(scorer))
    for group, results in zip(groups, scored, strict=True):
        yield from zip(group, results, strict=True)


def score_batches(model: ModelToLoad, batches: Sequence[PairBatch]) -> list[Array]:
    """The scores of each batch, in a task."""
    scorer = model.load()
    for image in (image for batch in batches for image in batch.images if isinstance(image, str)):
        if not outer_file(image).exists():
            raise missing_on_node(f"{image} does not exist")
    return [_scored(scorer, Batches(PAIRS, scorer, len(batch.texts)), batch) for batch in batches]


def _with_paths(batch: PairBatch) -> PairBatch:
    """The same images where the working directory is another one."""
    paths = [os.path.abspath(image) if isinstance(image, str | Path) else image for image in batch.images]
    return PairBatch(paths, batch.texts)


def _scored(scorer: Any, batches: Batches, batch: PairBatch) -> Array:
    def score(rows: Sequence[int]) -> Array:
        values = scorer.score_pairs([batch.images[row] for row in rows], [batch.texts[row] for row in rows])
        return _checked(values, len(rows), scorer)

    return np.concatenate(batches.run(score, range(len(batch.texts))))


def _checked(values: Any, count: int, scorer: Any) -> Array:
    scores = np.asarray(values, np.float32).reshape(-1)
    if len(scores) != count:
        raise InputError(f"{scorer.name} gave {len(scores)} scores for {count} pairs", expected="one score per pair")
    if not np.isfinite(scores).all():
        raise InputError(f"{scorer.name} gave NaN or infinite scores for pairs", expected="finite numbers")
    return scores


class MatrixWork(NamedTuple):
    """What all blocks of a matrix of scores read."""

    model: ModelToLoad
    features: Sequence[Any]
    texts: Sequence[str]


class MatrixBlock(NamedTuple):
    """Some images and some texts, by their positions."""

    rows: slice
    columns: Array


def score_block(work: MatrixWork, block: MatrixBlock) -> Array:
    """The scores of a block, in a task."""
    scores = work.model.load().score_matrix(work.features[block.rows], [work.texts[text] for text in block.columns])
    return np.asarray(scores, np.float32)


def score_in_blocks(
    engine: Engine, scorer: DivisibleScorer, features: Sequence[Any], texts: Sequence[str], progress: Progress
) -> Array:
    """Images × texts, from tasks."""
    images, columns = scorer.divide(features, texts)
    blocks = [MatrixBlock(rows, part) for rows in images for part in columns]
    out = np.empty((len(features), len(texts)), np.float32)
    size = 4 * max((block.rows.stop - block.rows.start) * len(block.columns) for block in blocks)
    with stage(progress, "scoring pairs", len(images) * len(texts)):
        work = MatrixWork(ModelToLoad.of(scorer), features, texts)
        scored = engine.run(
            score_block, work, blocks, size=size, gpu=uses_gpu(scorer),
            done=lambda block: progress.advance(len(block.columns)),
        )  # fmt: skip
        for block, scores in zip(blocks, scored, strict=True):
            out[block.rows, block.columns] = scores
    return out

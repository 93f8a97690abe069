"""A run as a FiftyOne dataset: a sample per image, with captions, predictions, metrics and tags."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import UsageError, argument
from crosslens.explanations import dataset_of_run, image_files_of_run
from crosslens.metrics import select_metrics
from crosslens.report.export import write_changed
from crosslens.values import IMAGE_TO_TEXT, TEXT_TO_IMAGE, UNRANKED, Dataset, Ranking, Run, split_name


def write_fiftyone(
    run: Run,
    folder: str | Path,
    dataset: Dataset | str | Path | None = None,
    *,
    metrics: str | Sequence[str] | None = None,
    image_folder: str | Path | None = None,
    k: int = 10,
    overwrite: bool = False,
    **options: Any,
) -> list[Path]:
    """Write a run as a folder that FiftyOne imports (``fo.types.LegacyFiftyOneDataset``); pictures are not copied.

    A sample is an image: ``captions`` are its own captions, each with its metrics as a query and the images retrieved
    first; ``retrieved`` are the first ``k`` captions for the image, with their scores; metrics of the image are fields,
    such as ``i2t_Hit_at_1``, those of its captions averaged, ``t2i_Hit_at_1``. Samples and captions whose first hit is
    wrong are tagged ``i2t_miss`` and ``t2i_miss``. ``dataset`` is by default that of the run's recipe; ``options`` are
    its reader's.
    """
    dataset = dataset_of_run(run, dataset, **options)
    files, problem = image_files_of_run(run, dataset, dataset.image_ids, image_folder)
    if problem:
        raise UsageError(
            f"FiftyOne shows pictures, and they are not there: {problem}",
            fix=f"pass {argument('image_folder')}, the folder that the dataset's file names start from",
        )
    archived = next((file for file in files.values() if not Path(file).is_file()), None)
    if archived is not None:
        raise UsageError(f"{archived} is not a file of its own", fix="unpack the pictures: FiftyOne reads files")
    values = _values(run, select_metrics(run, metrics))
    texts = dict(zip(dataset.caption_ids, dataset.texts, strict=True))
    lists = {name: _retrieved(run.rankings.get(name), k) for name in (IMAGE_TO_TEXT, TEXT_TO_IMAGE)}
    samples = []
    captions: dict[str, list[str]] = {image: [] for image in dataset.image_ids}
    for caption, image in zip(dataset.caption_ids, dataset.captions["image"], strict=True):
        captions[image].append(caption)
    for image, caption_ids in captions.items():
        caption_values = [values.get(TEXT_TO_IMAGE, {}).get(caption, {}) for caption in caption_ids]
        means = {
            name: float(np.mean(numbers))
            for name in dict.fromkeys(name for figures in caption_values for name in figures)
            if (numbers := [figures[name] for figures in caption_values if name in figures])
        }
        labels = [
            {
                **_label(texts[caption], caption, _missed(figures, TEXT_TO_IMAGE)),
                **figures,
                "retrieved": [item for item, _, _ in lists[TEXT_TO_IMAGE].get(caption, [])],
            }
            for caption, figures in zip(caption_ids, caption_values, strict=True)
        ]
        figures = values.get(IMAGE_TO_TEXT, {}).get(image, {})
        retrieved = [
            {**_label(texts[item], item, []), "confidence": score, "rank": rank, "relevant": relevant}
            for rank, (item, score, relevant) in enumerate(lists[IMAGE_TO_TEXT].get(image, []), start=1)
            if item in texts
        ]
        missed = {tag: None for label in labels for tag in label["tags"]}
        samples.append(
            {
                "filepath": os.path.abspath(files[image]),
                "tags": [*_missed(figures, IMAGE_TO_TEXT), *missed],
                "image_id": image,
                "captions": {"_cls": "Classifications", "classifications": labels},
                **({"retrieved": {"_cls": "Classifications", "classifications": retrieved}} if retrieved else {}),
                **figures,
                **means,
            }
        )
    info = {"run": run.name, "dataset": dataset.name, "metrics": {name: run[name].mean for name in run}}
    metadata = {"name": run.name, "media_type": "image", "info": info}
    content = {"metadata.json": metadata, "samples.json": {"samples": samples}}
    data = {Path(folder) / name: json.dumps(part, ensure_ascii=False).encode() for name, part in content.items()}
    return write_changed(data, overwrite)


def _values(run: Run, names: Sequence[str]) -> dict[str, dict[str, dict[str, float]]]:
    """Direction, query and field; a query that does not count in a metric lacks the field."""
    values: dict[str, dict[str, dict[str, float]]] = {}
    for name in names:
        direction, metric = split_name(name)
        if direction not in (IMAGE_TO_TEXT, TEXT_TO_IMAGE) or len(run[name].values) != len(run[name].query_ids):
            continue
        field = f"{direction}_{re.sub(r'[^A-Za-z0-9]+', '_', metric.replace('@', '_at_')).strip('_')}"
        queries = values.setdefault(direction, {})
        for query, value in zip(run[name].query_ids, run[name].values.tolist(), strict=True):
            if isfinite(value):
                queries.setdefault(query, {})[field] = value
    return values


def _missed(figures: Mapping[str, float], direction: str) -> list[str]:
    return [f"{direction}_miss"] if figures.get(f"{direction}_Hit_at_1", 1) < 1 else []


def _label(text: str, caption: str, tags: list[str]) -> dict[str, Any]:
    return {"_cls": "Classification", "label": text, "caption_id": caption, "tags": tags}


def _retrieved(ranking: Ranking | None, k: int) -> dict[str, list[tuple[str, float, bool]]]:
    """By query: the items of the top k, their scores, and whether they are relevant."""
    lists: dict[str, list[tuple[str, float, bool]]] = {}
    for row, query in enumerate(ranking.query_ids if ranking is not None else ()):
        assert ranking is not None
        relevant = set(ranking.relevant[ranking.offsets[row] : ranking.offsets[row + 1]].tolist())
        items, scores = ranking.top_items[row, :k].tolist(), ranking.top_scores[row, :k].tolist()
        lists[query] = [
            (ranking.item_ids[item], score, item in relevant)
            for item, score in zip(items, scores, strict=True)
            if item != UNRANKED
        ]
    return lists

"""The dataset that a run was made from, whether it has changed, and its pictures."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import InputError, UsageError, argument
from crosslens.data import image_files, is_dataset_name, is_dataset_path, load_dataset, path_options
from crosslens.encode import EACH, MEAN, text_queries
from crosslens.storage import parse_toml
from crosslens.values import IMAGE_TO_TEXT, Dataset, Run


def dataset_of_run(run: Run, dataset: Dataset | str | Path | None = None, **options: Any) -> Dataset:
    """The dataset named, or else that of the run's recipe; ``options`` are its reader's.

    Of text-only retrieval it has the texts that stand for the images and do not ask as its ``corpus``. Over two text
    sets its captions are those of the query set. A dataset that is passed as a value is used as it is.
    """
    if isinstance(dataset, Dataset):
        return dataset
    source = _recipe_dataset(run, "dataset", options) if dataset is None else load_dataset(str(dataset), **options)
    if source is None:
        raise UsageError(f"the recipe of the run {run.name!r} names no dataset", fix=f"pass {argument('dataset')}")
    model, queries = _recipe_table(run, "model"), _recipe_dataset(run, "queries", {})
    asking = model.get("query_caption", 0)
    if queries is not None:
        shared = bool(model.get("shared_images"))
        query_dataset = text_queries(source, asking, queries, shared_images=shared).dataset
        if asking in (EACH, MEAN):
            return query_dataset
        return replace(text_queries(source, EACH, queries, shared_images=shared).dataset, corpus=query_dataset.corpus)
    if model.get("image_text") is None:
        return source
    return replace(source, corpus=source.captions.filter(pl.int_range(pl.len()).over("image") != asking))


def _recipe_dataset(run: Run, name: str, options: Mapping[str, Any]) -> Dataset | None:
    """The dataset in a table of the run's recipe; None where there is no such table."""
    table = _recipe_table(run, name)
    source = table.pop("source", None)
    if source is None:
        return None
    base = run.home or Path()
    plugins = _recipe_content(run).get("plugins", [])
    if plugins and not is_dataset_name(source, base) and not is_dataset_path(source, base):
        file = os.path.normpath(base / plugins[0])
        raise UsageError(
            f"the dataset reader {source!r} of the run {run.name!r} comes from a plugin that is not loaded",
            fix=f"load {file} first: {argument('plugin', file)}, or crosslens.load_plugin",
            code="unknown-name",
            subject=source,
        )
    paths = path_options(source, table, base)
    located = {key: str((base / value).absolute()) if key in paths else value for key, value in table.items()}
    return load_dataset(str((base / source).absolute()) if "source" in paths else source, **{**located, **options})


def dataset_change(run: Run, dataset: Dataset) -> str | None:
    """A warning where the dataset is no longer what the run was made from."""
    entry = run.provenance.get("dataset")
    stored = entry.get("fingerprint") if isinstance(entry, Mapping) else None
    same = stored is None or stored == dataset.fingerprint
    ranking = next(iter(run.rankings.values()), None)
    if not same and ranking is not None:
        # What was ranked may be a part: images that could be read; of text-only retrieval, captions that are queries.
        forward = ranking.direction == IMAGE_TO_TEXT
        images, captions = (ranking.query_ids, ranking.item_ids)[:: 1 if forward else -1]
        if set(images) <= set(dataset.image_ids) and set(captions) <= set(dataset.caption_ids):
            part = dataset if images == dataset.image_ids else dataset.select(images)
            order = pl.DataFrame({"caption": captions}, schema={"caption": pl.String})
            rows = order.join(part.captions, on="caption", how="inner", maintain_order="left")
            same = stored == replace(part, captions=rows.select(part.captions.columns)).fingerprint
    # Of a run over two text sets, the dataset's captions are its queries; its corpus is another dataset.
    corpus_hash = (run.provenance.get("text_sets") or {}).get("corpus", {}).get("fingerprint")
    if corpus_hash is not None and _recipe_table(run, "queries"):
        corpus = _recipe_dataset(run, "dataset", {})
        same = same and (corpus is None or corpus.fingerprint == corpus_hash)
    if same:
        return None
    return f"The dataset {dataset.name} has changed since the run was made: explanations use its current content."


def image_folder_of(run: Run) -> Path | None:
    """The image folder that the run's recipe names."""
    folder = _recipe_table(run, "model").get("image_folder")
    return None if folder is None else (run.home or Path()) / folder


def _recipe_content(run: Run) -> dict[str, Any]:
    try:
        return parse_toml(run.recipe)
    except InputError as error:
        problem = f"the recipe of the run {run.name!r} cannot be read: {error.problem}"
        raise UsageError(problem, fix=f"pass {argument('dataset')}") from error


def _recipe_table(run: Run, name: str) -> dict[str, Any]:
    table = _recipe_content(run).get(name, {})
    return dict(table) if isinstance(table, Mapping) else {}


def image_files_of_run(
    run: Run, dataset: Dataset, images: Iterable[str], folder: str | Path | None = None
) -> tuple[dict[str, str], str | None]:
    """The paths of these images' files, and why there are none where there are none.

    Looked for below ``folder``, else in the image folder of the run's recipe, else beside the dataset.
    """
    requested = set(images)
    ids = [image for image in dataset.image_ids if image in requested]
    if not ids:
        return {}, None
    subset = dataset.select(ids)
    path = image_folder_of(run)
    folders = [folder] if folder is not None else [*([path] if path is not None and path.is_dir() else []), None]
    problem = None
    for candidate in folders:
        try:
            paths = image_files(subset, candidate, skip_bad=True)
        except InputError as error:
            problem = str(error).splitlines()[0]
        else:
            return dict(zip(ids, paths, strict=True)), None
    return {}, problem

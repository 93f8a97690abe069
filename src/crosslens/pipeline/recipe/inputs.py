"""The files a recipe names, read into the values that :func:`crosslens.evaluate` takes, and checked by their ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from crosslens.core import (
    Dataset,
    Embeddings,
    Ids,
    InputError,
    Progress,
    RankedLists,
    Relevance,
    UnknownNameError,
    UsageError,
    file_fingerprint,
    reading,
)
from crosslens.data import (
    check_ids,
    check_known,
    check_unique,
    load_dataset,
    on_lines,
    read_array,
    read_lines,
    read_qrels,
    read_run,
)
from crosslens.encode import EncodeOptions, SecondStage, load_pair_scorer
from crosslens.pipeline.encoding import LoadedInputs, encode_with_model, stream_options
from crosslens.pipeline.inputs import direction_ids, lists_by_direction, relevance_by_direction
from crosslens.pipeline.recipe.graded_inputs import (
    relevance_encoders,
    similarity_files,
    similarity_revisions,
    source_fingerprint,
)
from crosslens.pipeline.recipe.options import NAMED_INPUTS, first_conflict, parse_named_input
from crosslens.pipeline.recipe.recipe import Recipe

_SAME_SPLIT = "check that both are of the same split and use the same ids"


def load_inputs(recipe: Recipe, options: EncodeOptions, progress: Progress | None = None) -> LoadedInputs:
    """Read every input of a recipe whose paths are absolute, or encode the dataset with its model."""
    conflict = first_conflict(
        recipe.inputs, recipe.model, recipe.rerank, recipe.options.directions, recipe.dataset is not None
    )
    if conflict is not None:
        raise UsageError(conflict.problem, fix=conflict.fix)
    encoding = recipe.model.encode_options(options)
    # A mistake in the name of the re-ranker is found before the dataset is encoded.
    scorer = None if recipe.rerank.model is None else load_pair_scorer(recipe.rerank.model, encoding)
    phi = similarity_files(recipe)
    loaded = _load(recipe, encoding, progress)
    encoders = relevance_encoders(recipe, loaded.dataset, options, progress, load_inputs)
    loaded = replace(loaded, phi=phi, scores_from=encoders)
    if scorer is None or loaded.dataset is None:
        return loaded
    second = SecondStage.over(
        loaded.dataset, scorer, recipe.rerank.depth, image_folder=encoding.image_folder,
        **stream_options(encoding, progress),
    )  # fmt: skip
    sources = {"rerank_model": second.scorer.revision, "pictures": second.content}
    fingerprints = {**loaded.fingerprints, **{key: value for key, value in sources.items() if value}}
    return replace(loaded, fingerprints=fingerprints, second_stage=second)


def _load(recipe: Recipe, encoding: EncodeOptions, progress: Progress | None) -> LoadedInputs:
    inputs = recipe.inputs
    dataset = None if recipe.dataset is None else load_dataset(recipe.dataset, **recipe.dataset_options)
    if dataset is not None and not dataset.caption_ids:
        raise InputError(
            "the dataset has no captions",
            file=recipe.dataset_options.get("captions", recipe.dataset),
            expected="at least one caption",
            fix="check the file and the options of its reader",
        )
    relevance = None if inputs.qrels is None else read_qrels(inputs.qrels)
    if recipe.model.name is not None:
        return replace(encode_with_model(recipe.model, dataset, encoding, progress), relevance=relevance)
    lists = _runs(recipe, dataset)
    if relevance is not None and inputs.qrels is not None:
        if dataset is not None:
            _check_judgements(inputs.qrels, relevance, dataset)
        else:
            _check_judged_queries(inputs.qrels, relevance, (lists or {}).values())
    image_ids, caption_ids = (None, None) if dataset is None else (dataset.image_ids, dataset.caption_ids)
    return LoadedInputs(
        dataset,
        read_embeddings(inputs.image_embeddings, inputs.image_ids, image_ids, "image"),
        read_embeddings(inputs.caption_embeddings, inputs.caption_ids, caption_ids, "caption"),
        None if inputs.scores is None else read_array(inputs.scores),
        lists,
        relevance,
    )


def fingerprints(recipe: Recipe, dataset: Dataset | None) -> dict[str, str | tuple[str, ...]]:
    """The content hash of every input: the dataset as it was understood, the other files byte by byte."""
    hashes: dict[str, str | tuple[str, ...]] = {}
    if dataset is not None:
        hashes["dataset"] = dataset.fingerprint
    for key, value in vars(recipe.inputs).items():
        if key in NAMED_INPUTS and value:
            hashes[key] = tuple(source_fingerprint(parse_named_input(entry, key)[1]) for entry in value)
        elif value:
            hashes[key] = tuple(map(_content, value)) if isinstance(value, tuple) else _content(value)
    revisions = similarity_revisions(recipe)
    return {**hashes, "similarities": revisions} if revisions else hashes


def _content(source: str) -> str:
    path = Path(source)
    return file_fingerprint(sorted(file for file in path.iterdir() if file.is_file()) if path.is_dir() else [path])


def read_embeddings(path: str | None, id_file: str | None, known: Ids | None, what: str) -> Embeddings | None:
    """Vectors with ids: those in the folder, those in the id file, or those of the dataset in its order."""
    if path is None:
        return None
    if Path(path).is_dir():
        if id_file is not None:
            raise UsageError(f"{path} holds its own ids", fix=f"leave out the file of {what} ids")
        folder = Embeddings.load(path, mmap=True)
        with reading(path):
            _require_all(folder.ids, known, what)
        return folder
    ids = known if id_file is None else _read_ids(id_file, known, what)
    if ids is None:
        raise UsageError(
            f"the {what} ids of the rows of {path} are unknown",
            fix=f"name the dataset (rows in its order), or a file of {what} ids with one per line",
        )
    with reading(path):
        return Embeddings(ids, read_array(path))


def _runs(recipe: Recipe, dataset: Dataset | None) -> dict[str, RankedLists] | None:
    """The ranked lists by direction: the one the recipe names, or the one that fits their ids."""
    directions, paths = recipe.options.directions, recipe.inputs.runs
    if not paths:
        return None
    runs: dict[str, RankedLists] = {}
    for number, path in enumerate(paths):
        with reading(path):
            by_direction = lists_by_direction(dataset, read_run(path), directions[number : number + 1])
        for direction, lists in by_direction.items():
            if direction in runs:
                raise UsageError(
                    f"two run files for {direction}",
                    fix="name the direction of each, or evaluate them one at a time and compare",
                )
            if dataset is not None:
                _check_lists(path, lists, direction, dataset)
        runs |= by_direction
    return runs


def _read_ids(path: str, known: Ids | None, what: str) -> Ids:
    """The ids in a file, one per line. They may be more than the ``known`` ones of the dataset, but not fewer."""
    with reading(path):
        lines = [line.strip() for line in read_lines(path)]
        location = on_lines(range(1, len(lines) + 1))
        ids = check_ids(lines, f"{what} id", location)
        check_unique(ids, what, location)
        if known is not None and not set(known) <= set(ids):
            check_known(ids, known, what, location)
            _require_all(ids, known, what)
        return tuple(ids)


def _require_all(ids: Sequence[str], known: Ids | None, what: str) -> None:
    """Every item of the dataset must be among the ids."""
    present = set(ids)
    missing = [item for item in known or () if item not in present]
    if missing:
        raise InputError(
            f"no vector for {what} {missing[0]!r}" + (f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""),
            expected=f"a vector for each of the {len(known or ()):,} {what}s of the dataset",
            fix="encode what is missing, or evaluate on the images that have one",
        )


def _check_judgements(path: str, relevance: Relevance, dataset: Dataset) -> None:
    """Judged queries and items must be images and captions of the dataset."""
    known = {*dataset.image_ids, *dataset.caption_ids}
    for what, ids in (("query", relevance.query_ids), ("item", relevance.item_ids)):
        _refuse_unknown(path, ids, known, what, _SAME_SPLIT)
    with reading(path):
        relevance_by_direction(dataset, relevance)


def _check_judged_queries(path: str, relevance: Relevance, lists: Iterable[RankedLists]) -> None:
    """Raise for judgements that contain no query of the ranked lists."""
    judged = {*relevance.query_ids, *relevance.item_ids}
    for queries in (ranked.query_ids for ranked in lists):
        if not judged.intersection(queries):
            raise InputError(
                f"none of the {len(queries):,} queries of the run is judged here (such as {queries[0]!r})",
                file=path,
                expected=f"judgements of those queries; here are ids such as {relevance.query_ids[0]!r}",
                fix=_SAME_SPLIT,
            )


def _check_lists(path: str, lists: RankedLists, direction: str, dataset: Dataset) -> None:
    """Queries and items of ranked lists must be those of the dataset."""
    queries, items = direction_ids(dataset, direction)
    _refuse_unknown(path, lists.query_ids, set(queries), "query", _SAME_SPLIT)
    unjudged = "or pass judgements instead of a dataset: unjudged items then count as irrelevant"
    _refuse_unknown(path, lists.item_ids, set(items), "item", f"{_SAME_SPLIT}, {unjudged}")


def _refuse_unknown(path: str, ids: Ids, known: set[str], what: str, fix: str) -> None:
    unknown = [name for name in ids if name not in known]
    if not unknown:
        return
    near = UnknownNameError(what, unknown[0], list(known)[:20_000]).suggestions
    raise InputError(
        f"unknown {what} id {unknown[0]!r}" + (f", and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""),
        file=path,
        row=_line_with(path, unknown[0]),
        expected="ids of the dataset",
        fix=f"did you mean {near[0]!r}?" if near and len(unknown) == 1 else fix,
    )


def _line_with(path: str, name: str) -> str | None:
    """The line on which a name first occurs as a word; None in files that are one line."""
    word = re.compile(rf"(?<![^\s\"\[{{:,]){re.escape(name)}(?![^\s\"\]}}:,])")
    lines = read_lines(path)
    number = next((number for number, line in enumerate(lines, start=1) if word.search(line)), None)
    return f"line {number}" if number and len(lines) > 1 else None

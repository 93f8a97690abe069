"""Whole datasets with changed captions, one folder per perturbation, as every command reads them.

``perturbations.json`` beside the folders says what stands in them. It is written anew after each folder, so that a
stopped run goes on with the first perturbation that is not in it.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core.atomic import refuse_strangers, sweep, write_text
from crosslens.core.bundle import HEADER, read_header
from crosslens.core.dataset import Dataset
from crosslens.core.errors import ConflictError, InputError
from crosslens.core.progress import Progress, Silent
from crosslens.data.picture_files import image_files
from crosslens.perturb.choice import chosen_perturbations, is_image_perturbation
from crosslens.perturb.edit import Edit, Perturbed
from crosslens.perturb.perturbation import PERTURBATIONS
from crosslens.perturb.perturbing import check_options, options_of, perturb_each

SUMMARY = "perturbations.json"
_KIND = "perturbations"
_DRAWING = 1
"""Raised whenever the same seed gives other captions than before."""


def write_perturbations(
    dataset: Dataset,
    names: str | Iterable[str],
    output: str | Path,
    *,
    seed: int = 0,
    pipeline: str | None = None,
    threads: int | None = None,
    image_folder: str | Path | None = None,
    skip_bad: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, dict[str, Any]]:
    """Write ``output/<perturbation>/`` for each of ``names``; returns what ``perturbations.json`` says about them.

    Captions keep their ids and order; beside ``text`` stand ``original``, ``applied``, ``reason`` and ``edits`` (JSON).
    Perturbations of images (``blur@3``) write the pictures too. What stands there already, made from the same dataset
    with the same seed and options, is kept; anything else is replaced only with ``overwrite``.
    """
    chosen = chosen_perturbations(names)
    folder = Path(output)
    texts = [name for name in chosen if not is_image_perturbation(name)]
    wanted = {name: _request(name, seed, options, pipeline) for name in chosen}
    check_options([PERTURBATIONS[name] for name in texts], options)
    done = _standing(folder, dataset, wanted, overwrite)
    _write_summary(folder, dataset, done)  # first of all: from now on the folder is known to be ours
    missing = [name for name in texts if name not in done]
    changed = perturb_each(
        missing, dataset, seed=seed, pipeline=pipeline, threads=threads, progress=progress, **_used(missing, options)
    )
    based = _with_full_paths(dataset, image_folder)
    for name, results in changed:
        written = perturbed_dataset(based, name, results, seed)
        written.save(folder / name, overwrite=True)
        done[name] = {**wanted[name], **counts(results), "fingerprint": written.fingerprint}
        _write_summary(folder, dataset, done)
    for name in chosen:
        if is_image_perturbation(name):
            done[name] = {
                **wanted[name],
                **_write_images(dataset, name, folder, seed, threads, image_folder, skip_bad, overwrite, progress),
            }
            _write_summary(folder, dataset, done)
    return {name: done[name] for name in chosen}


def counts(results: Sequence[Perturbed]) -> dict[str, Any]:
    """How many captions a perturbation changed, and why not the others."""
    reasons = Counter(one.reason for one in results if not one.applied)
    applied = len(results) - reasons.total()
    share = applied / len(results) if results else 0.0
    return {
        "captions": len(results),
        "applied": applied,
        "applied_share": share,
        "reasons": dict(sorted(reasons.items(), key=lambda one: (-one[1], one[0]))),
    }


def perturbed_dataset(dataset: Dataset, name: str, results: Sequence[Perturbed], seed: int) -> Dataset:
    """The dataset with the changed captions in the place of its own, and what was done to each beside it."""
    captions = dataset.captions.with_columns(
        pl.Series("text", [one.text for one in results], dtype=pl.String),
        pl.Series("original", [one.original for one in results], dtype=pl.String),
        pl.Series("applied", [one.applied for one in results], dtype=pl.Boolean),
        pl.Series("reason", [one.reason for one in results], dtype=pl.String),
        pl.Series("edits", [_as_json(one.edits) for one in results], dtype=pl.String),
    )
    about = f"captions changed by {name}, seed {seed}; the column original has them as they were"
    notes = ". ".join(one for one in (dataset.card.notes.rstrip(". "), about) if one)
    return replace(dataset, name=f"{dataset.name}, {name}", captions=captions, card=replace(dataset.card, notes=notes))


def read_perturbed(dataset: Dataset) -> tuple[Perturbed, ...]:
    """What was done to each caption, from a dataset that :func:`write_perturbations` wrote."""
    columns = ("original", "text", "applied", "reason", "edits")
    missing = [one for one in columns if one not in dataset.captions.columns]
    if missing:
        raise InputError(
            f"the captions of {dataset.name!r} have no column {missing[0]!r}",
            expected=f"the columns {', '.join(columns)}",
            fix="write it with crosslens perturb",
        )
    rows = dataset.captions.select(columns).iter_rows()
    return tuple(
        Perturbed(original, text, applied, reason, tuple(Edit(**edit) for edit in json.loads(edits)))
        for original, text, applied, reason, edits in rows
    )


def _as_json(edits: Sequence[Edit]) -> str:
    rows = [{"start": one.start, "end": one.end, "before": one.before, "after": one.after} for one in edits]
    return json.dumps(rows, ensure_ascii=False)


def _request(name: str, seed: int, options: Mapping[str, Any], pipeline: str | None) -> dict[str, Any]:
    """What makes two folders the same, beside the dataset."""
    if is_image_perturbation(name):
        return {"kind": "image", "seed": seed}
    entry = PERTURBATIONS[name]
    own = {key: value for key, value in options.items() if key in options_of(entry)}
    tagged = {"pipeline": pipeline} if entry.details["tags"] else {}
    return {"kind": entry.details["level"], "seed": seed, "options": own, **tagged, "drawing": _DRAWING}


def _used(names: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    known = {option for name in names for option in options_of(PERTURBATIONS[name])}
    return {key: value for key, value in options.items() if key in known}


def _standing(
    folder: Path, dataset: Dataset, wanted: Mapping[str, Mapping[str, Any]], overwrite: bool
) -> dict[str, dict[str, Any]]:
    """What the folder holds already and keeps; raises where something else stands in the way."""
    if folder.exists() and not folder.is_dir():
        raise ConflictError(f"{folder} is a file", fix="choose another output")
    if not folder.exists() or not any(folder.iterdir()):
        return {}
    if not (folder / SUMMARY).exists():
        raise ConflictError(f"{folder} is not empty, and holds no perturbations", fix="choose another output")
    sweep(folder)
    found = read_header(folder / SUMMARY, _KIND)
    there: dict[str, dict[str, Any]] = found["perturbations"]
    if found["dataset"]["fingerprint"] != dataset.fingerprint:
        if not overwrite:
            raise ConflictError(
                f"{folder} holds perturbations of another dataset ({found['dataset']['name']})",
                fix="choose another output, or pass --overwrite (overwrite=True)",
            )
        _clear(folder, there)
        return {}
    other = []
    for name, request in wanted.items():
        before = {key: value for key, value in there.get(name, request).items() if key in request}
        if before != request:
            if not overwrite:
                changed = ", ".join(key for key in request if before.get(key) != request[key])
                raise ConflictError(
                    f"{folder / name} was made otherwise (different: {changed})",
                    fix="choose another output, or pass --overwrite (overwrite=True)",
                )
            other.append(name)
    _clear(folder, other)
    return {name: one for name, one in there.items() if _complete(folder / name, one)}


def _clear(folder: Path, names: Iterable[str]) -> None:
    """Remove our own datasets, and only them: a person's file in one of them stops it before anything is gone."""
    from crosslens.perturb.images.folder import PICTURES, REQUEST

    known = set(names)
    ours = [place for place in folder.iterdir() if place.name in known and place.is_dir()]
    for place in ours:
        refuse_strangers(place, (HEADER, "*.parquet", REQUEST, PICTURES))
    for place in ours:
        shutil.rmtree(place)


def _complete(folder: Path, noted: Mapping[str, Any]) -> bool:
    try:
        header = read_header(folder / HEADER, "dataset")
    except InputError:
        return False
    return bool(header.get("fingerprint") == noted.get("fingerprint"))


def _write_summary(folder: Path, dataset: Dataset, done: Mapping[str, Any]) -> None:
    content = {
        "format": f"crosslens/{_KIND}",
        "version": 1,
        "dataset": {"name": dataset.name, "fingerprint": dataset.fingerprint},
        "perturbations": done,
    }
    write_text(folder / SUMMARY, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def _with_full_paths(dataset: Dataset, image_folder: str | Path | None) -> Dataset:
    """Pictures stay where they are: seen from the new folders, their files need the whole path."""
    if "file" not in dataset.images.columns:
        return dataset
    try:
        files = image_files(dataset, image_folder)
    except InputError:
        if image_folder is not None:
            raise
        return dataset  # captions alone are enough for most
    full = [str(Path(one).absolute()) for one in files]
    return replace(dataset, images=dataset.images.with_columns(pl.Series("file", full, dtype=pl.String)))


def _write_images(
    dataset: Dataset,
    name: str,
    folder: Path,
    seed: int,
    threads: int | None,
    image_folder: str | Path | None,
    skip_bad: bool,
    overwrite: bool,
    progress: Progress | None,
) -> dict[str, Any]:
    from crosslens.perturb.images import perturb_images

    made = perturb_images(
        dataset,
        name,
        folder / name,
        seed=seed,
        threads=threads,
        image_folder=image_folder,
        skip_bad=skip_bad,
        overwrite=overwrite,
        progress=progress or Silent(),
    )
    return {"images": len(made.image_ids), "fingerprint": made.fingerprint}

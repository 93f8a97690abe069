"""Whole datasets with changed captions, one folder per perturbation, as every command reads them.

``perturbations.json`` beside the folders describes them. It is written anew after each folder, so that an interrupted
run resumes with the first perturbation that is not in it.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import (
    HEADER_FILE,
    ConflictError,
    Dataset,
    InputError,
    Progress,
    argument,
    read_header,
    refuse_foreign_files,
    remove_partial_files,
    write_text,
)
from crosslens.data import image_files
from crosslens.perturbations.caption import Edit, Perturbed
from crosslens.perturbations.images.folder import OWN_FILES
from crosslens.perturbations.images.writing import perturb_images
from crosslens.perturbations.perturbing import check_options, options_of, perturb_each
from crosslens.perturbations.registry import PERTURBATIONS
from crosslens.perturbations.selection import chosen_perturbations, is_image_perturbation

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

    Captions keep their ids and order; new columns are ``original``, ``applied``, ``reason`` and ``edits`` (JSON).
    Perturbations of images (``blur@3``) write the images too. Folders made earlier from the same dataset with the same
    seed and options are kept; anything else is replaced only with ``overwrite``.
    """
    chosen = chosen_perturbations(names)
    folder = Path(output)
    of_captions = [name for name in chosen if not is_image_perturbation(name)]
    requests = {name: _request(name, seed, options, pipeline) for name in chosen}
    check_options([PERTURBATIONS[name] for name in of_captions], options)
    done = _existing(folder, dataset, requests, overwrite)
    _write_summary(folder, dataset, done)  # first of all: from now on the folder is known to be ours
    missing = [name for name in of_captions if name not in done]
    common: dict[str, Any] = {"seed": seed, "threads": threads, "progress": progress}
    based = _with_absolute_paths(dataset, image_folder)
    for name, results in perturb_each(missing, dataset, pipeline=pipeline, **common, **_known(missing, options)):
        perturbed = perturbed_dataset(based, name, results, seed)
        perturbed.save(folder / name, overwrite=True)
        done[name] = {**requests[name], **applied_counts(results), "fingerprint": perturbed.fingerprint}
        _write_summary(folder, dataset, done)
    for name in filter(is_image_perturbation, chosen):
        perturbed = perturb_images(
            dataset, name, folder / name, image_folder=image_folder, skip_bad=skip_bad, overwrite=overwrite, **common
        )
        done[name] = {**requests[name], "images": len(perturbed.image_ids), "fingerprint": perturbed.fingerprint}
        _write_summary(folder, dataset, done)
    return {name: done[name] for name in chosen}


def applied_counts(results: Sequence[Perturbed]) -> dict[str, Any]:
    """How many captions a perturbation changed, and why not the others."""
    reasons = Counter(result.reason for result in results if not result.applied)
    applied = len(results) - reasons.total()
    return {
        "captions": len(results),
        "applied": applied,
        "applied_share": applied / len(results) if results else 0.0,
        "reasons": dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
    }


def perturbed_dataset(dataset: Dataset, name: str, results: Sequence[Perturbed], seed: int) -> Dataset:
    """The dataset with changed captions, and columns that say what was done to each."""
    edits = [json.dumps([edit._asdict() for edit in result.edits], ensure_ascii=False) for result in results]
    captions = dataset.captions.with_columns(
        pl.Series("text", [result.text for result in results], dtype=pl.String),
        pl.Series("original", [result.original for result in results], dtype=pl.String),
        pl.Series("applied", [result.applied for result in results], dtype=pl.Boolean),
        pl.Series("reason", [result.reason for result in results], dtype=pl.String),
        pl.Series("edits", edits, dtype=pl.String),
    )
    about = f"captions changed by {name}, seed {seed}; the column original has them as they were"
    notes = ". ".join(note for note in (dataset.card.notes.rstrip(". "), about) if note)
    return replace(dataset, name=f"{dataset.name}, {name}", captions=captions, card=replace(dataset.card, notes=notes))


def read_perturbed(dataset: Dataset) -> tuple[Perturbed, ...]:
    """What was done to each caption, from a dataset that :func:`write_perturbations` wrote."""
    columns = ("original", "text", "applied", "reason", "edits")
    missing = [column for column in columns if column not in dataset.captions.columns]
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


def _request(name: str, seed: int, options: Mapping[str, Any], pipeline: str | None) -> dict[str, Any]:
    """What decides the content of a folder, besides the dataset."""
    if is_image_perturbation(name):
        return {"kind": "image", "seed": seed}
    details = PERTURBATIONS[name].details
    tagged = {"pipeline": pipeline} if details["tags"] else {}
    return {"kind": details["level"], "seed": seed, "options": _known([name], options), **tagged, "drawing": _DRAWING}


def _known(names: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    known = {option for name in names for option in options_of(PERTURBATIONS[name])}
    return {key: value for key, value in options.items() if key in known}


def _existing(
    folder: Path, dataset: Dataset, requests: Mapping[str, Mapping[str, Any]], overwrite: bool
) -> dict[str, dict[str, Any]]:
    """What the folder contains already and keeps; raises where it contains something else."""
    if folder.exists() and not folder.is_dir():
        raise ConflictError(f"{folder} is a file", fix="choose another output")
    if not folder.exists() or not any(folder.iterdir()):
        return {}
    if not (folder / SUMMARY).exists():
        raise ConflictError(f"{folder} is not empty and contains no perturbations", fix="choose another output")
    remove_partial_files(folder)
    summary = read_header(folder / SUMMARY, _KIND)
    existing: dict[str, dict[str, Any]] = summary["perturbations"]
    fix = f"choose another output, or pass {argument('overwrite', True)}"
    if summary["dataset"]["fingerprint"] != dataset.fingerprint:
        if not overwrite:
            other = summary["dataset"]["name"]
            raise ConflictError(f"{folder} contains perturbations of another dataset ({other})", fix=fix)
        _clear(folder, existing)
        return {}
    outdated = []
    for name, request in requests.items():
        before = {key: value for key, value in existing.get(name, request).items() if key in request}
        if before != request:
            if not overwrite:
                changed = ", ".join(key for key in request if before.get(key) != request[key])
                raise ConflictError(f"{folder / name} was made with other settings (different: {changed})", fix=fix)
            outdated.append(name)
    _clear(folder, outdated)
    return {name: facts for name, facts in existing.items() if _complete(folder / name, facts)}


def _clear(folder: Path, names: Collection[str]) -> None:
    """Remove our own datasets, and only them: a file of another kind in one raises before anything is removed."""
    own = [path for path in folder.iterdir() if path.name in names and path.is_dir()]
    for path in own:
        refuse_foreign_files(path, OWN_FILES)
    for path in own:
        shutil.rmtree(path)


def _complete(folder: Path, facts: Mapping[str, Any]) -> bool:
    try:
        header = read_header(folder / HEADER_FILE, "dataset")
    except InputError:
        return False
    return bool(header.get("fingerprint") == facts.get("fingerprint"))


def _write_summary(folder: Path, dataset: Dataset, done: Mapping[str, Any]) -> None:
    content = {
        "format": f"crosslens/{_KIND}",
        "version": 1,
        "dataset": {"name": dataset.name, "fingerprint": dataset.fingerprint},
        "perturbations": done,
    }
    write_text(folder / SUMMARY, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def _with_absolute_paths(dataset: Dataset, image_folder: str | Path | None) -> Dataset:
    """The image files stay where they are: seen from the new folders, they need an absolute path."""
    if "file" not in dataset.images.columns:
        return dataset
    try:
        files = image_files(dataset, image_folder)
    except InputError:
        if image_folder is not None:
            raise
        return dataset  # captions alone are enough for most
    absolute = [str(Path(file).absolute()) for file in files]
    return replace(dataset, images=dataset.images.with_columns(pl.Series("file", absolute, dtype=pl.String)))

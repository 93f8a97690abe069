"""Whole datasets with changed captions, one folder per perturbation, as every command reads them.

``perturbations.json`` beside the folders describes them, and plain files (``none.jsonl``, ``char_swap.jsonl``) have ids
and texts for whoever encodes them elsewhere. More perturbations are added in a copy that shares the files
of those that are there, and replaces the folder when it is complete; an interrupted run resumes in that copy.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.core import ConflictError, InputError, argument
from crosslens.data import image_files
from crosslens.engine import Progress
from crosslens.perturbations.caption import Edit, Perturbed
from crosslens.perturbations.images.changes import parse_image_perturbation
from crosslens.perturbations.images.writing import REQUEST, ChangedImages, perturb_images, stored_pictures
from crosslens.perturbations.perturbing import PERTURBATIONS, check_options, options_of, perturb_each
from crosslens.perturbations.selection import chosen_perturbations, is_image_perturbation
from crosslens.storage import (
    HEADER_FILE,
    Layout,
    link_tree,
    parse_json,
    read_header,
    remove,
    tidy_output,
    workspace,
    write_header,
    write_text,
)
from crosslens.values import DATASET_LAYOUT, Dataset

SUMMARY = "perturbations.json"
UNPERTURBED = "none"
"""What the captions as they were are called among the plain files."""
_LAYOUT = Layout("a folder of perturbations", SUMMARY, (*DATASET_LAYOUT.within("*"), f"*/{REQUEST}"))
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
    ``<perturbation>.jsonl`` has ids and texts alone, ``none.jsonl`` those of the unchanged captions.
    Perturbations of images (``blur@3``) write the images too. Folders made earlier from the same dataset with the same
    seed and options are kept; anything else is replaced only with ``overwrite``.
    """
    selected = chosen_perturbations(names)
    folder = Path(output)
    of_captions = [name for name in selected if not is_image_perturbation(name)]
    requests: dict[str, dict[str, Any]] = {}  # what decides the content of each folder, besides the dataset
    for name in selected:
        requests[name] = {"kind": "image", "seed": seed}
        if name in of_captions:
            details, applied = PERTURBATIONS[name].details, _accepted([name], options)
            tagged = {"pipeline": pipeline} if details["tags"] else {}
            requests[name] = {"kind": details["level"], "seed": seed, "options": applied, **tagged, "drawing": _DRAWING}
    check_options([PERTURBATIONS[name] for name in of_captions], options)
    common: dict[str, Any] = {"seed": seed, "progress": progress, "threads": threads}
    pictures: dict[str, Any] = {"image_folder": image_folder, "skip_bad": skip_bad}
    existing = partial(_existing, folder, dataset, requests, overwrite, seed=seed, **pictures)
    summary = existing()
    if all(name in summary for name in selected) and all((folder / file).exists() for file in _text_files(summary)):
        tidy_output(folder, dataset.fingerprint)
        return {name: summary[name] for name in selected}
    with workspace(folder, dataset.fingerprint) as work:
        summary = _prepare(work.new, folder, existing(), requests)
        missing = [name for name in of_captions if name not in summary]
        based = _with_absolute_paths(dataset, image_folder)
        texts = perturb_each(missing, dataset, pipeline=pipeline, **common, **_accepted(missing, options))

        def changed() -> Iterator[tuple[str, Dataset, dict[str, Any]]]:
            for name, results in texts:
                perturbed = perturbed_dataset(based, name, results, seed)
                perturbed.save(work.new / name, overwrite=True)
                yield name, perturbed, applied_counts(results)
            for name in filter(is_image_perturbation, selected):
                perturbed = perturb_images(dataset, name, work.new / name, overwrite=True, **common, **pictures)
                yield name, perturbed, {"images": len(perturbed.image_ids)}

        for name, perturbed, counts in changed():
            summary[name] = {**requests[name], **counts, "fingerprint": perturbed.fingerprint}
            content = {
                "format": f"crosslens/{_KIND}",
                "version": 1,
                "dataset": {"name": dataset.name, "fingerprint": dataset.fingerprint},
                "perturbations": summary,
            }
            write_header(work.new / SUMMARY, content)
        for file in _text_files(summary):
            name = file.removesuffix(".jsonl")
            captions = dataset if name == UNPERTURBED else Dataset.load(work.new / name)
            rows = captions.captions.select("caption", "image", "text").iter_rows(named=True)
            write_text(work.new / file, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        work.publish(_LAYOUT, _other_files(folder))
    return {name: summary[name] for name in selected}


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


def with_changed_texts(dataset: Dataset, results: Sequence[Perturbed]) -> Dataset:
    """The dataset with changed captions, and columns that say what they were and which of them changed."""
    captions = dataset.captions.with_columns(
        pl.Series("text", [result.text for result in results], dtype=pl.String),
        pl.Series("original", [result.original for result in results], dtype=pl.String),
        pl.Series("applied", [result.applied for result in results], dtype=pl.Boolean),
    )
    return replace(dataset, captions=captions)


def perturbed_dataset(dataset: Dataset, name: str, results: Sequence[Perturbed], seed: int) -> Dataset:
    """The dataset with changed captions, and columns that say what was done to each."""
    edits = [json.dumps([edit._asdict() for edit in result.edits], ensure_ascii=False) for result in results]
    captions = with_changed_texts(dataset, results).captions.with_columns(
        pl.Series("reason", [result.reason for result in results], dtype=pl.String),
        pl.Series("edits", edits, dtype=pl.String),
    )
    origin = f"captions changed by {name}, seed {seed}; the column original has them as they were"
    notes = ". ".join(note for note in (dataset.card.notes.rstrip(". "), origin) if note)
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
    results = []
    for row, (original, text, applied, reason, stored) in enumerate(dataset.captions.select(columns).iter_rows()):
        try:
            edits = tuple(Edit(**edit) for edit in parse_json(stored))
        except (InputError, TypeError) as error:
            problem, fix = f"the edits are {stored!r:.60}", "write it with crosslens perturb"
            raise InputError(problem, row=row, expected="a list of edits", fix=fix) from error
        results.append(Perturbed(original, text, applied, reason, edits))
    return tuple(results)


def _accepted(names: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    accepted = {option for name in names for option in options_of(PERTURBATIONS[name])}
    return {key: value for key, value in options.items() if key in accepted}


def _existing(
    folder: Path, dataset: Dataset, requests: Mapping[str, Mapping[str, Any]], overwrite: bool, **pictures: Any
) -> dict[str, dict[str, Any]]:
    """What the folder contains already and keeps; raises where it contains something else."""
    if not _LAYOUT.holds(folder):
        return {}
    summary = read_header(folder / SUMMARY, _KIND)
    existing: dict[str, dict[str, Any]] = summary["perturbations"]
    fix = f"choose another output, or pass {argument('overwrite', True)}"
    same_dataset = summary["dataset"]["fingerprint"] == dataset.fingerprint
    if not same_dataset and not overwrite:
        other = summary["dataset"]["name"]
        raise ConflictError(f"{folder} contains perturbations of another dataset ({other})", fix=fix)
    _LAYOUT.refuse_foreign_files(folder, _other_files(folder))
    if not same_dataset:
        return {}
    outdated = [name for name in requests if name in existing and _changes(existing[name], requests[name])]
    if outdated and not overwrite:
        changed = ", ".join(_changes(existing[outdated[0]], requests[outdated[0]]))
        raise ConflictError(f"{folder / outdated[0]} was made with other settings (different: {changed})", fix=fix)
    reusable = {}
    for name, facts in existing.items():
        if name in outdated or not _complete(folder / name, facts):
            continue
        if name in requests and is_image_perturbation(name):
            images = ChangedImages(dataset, parse_image_perturbation(name), **pictures)
            if images.folder(folder / name, overwrite).finished(images.stored_key, images.read) is None:
                continue
        reusable[name] = facts
    return reusable


def _changes(before: Mapping[str, Any], request: Mapping[str, Any]) -> list[str]:
    """What is requested otherwise than before."""
    return [key for key in request if key in before and before[key] != request[key]]


def _other_files(folder: Path) -> list[str]:
    """Files of a folder of perturbations that :data:`_LAYOUT` does not name: the changed pictures, the plain texts."""
    if not (folder / SUMMARY).exists():
        return []
    sets = [path.parent for path in folder.glob(f"*/{REQUEST}")]
    pictures = [f"{images.name}/{file}" for images in sets for file in stored_pictures(images)]
    return [*pictures, *_text_files(read_header(folder / SUMMARY, _KIND)["perturbations"])]


def _prepare(
    new: Path, folder: Path, finished: Mapping[str, dict[str, Any]], requests: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Make the new folder with what is kept of the old one, or of interrupted work; returns what it contains."""
    new.mkdir(exist_ok=True)
    begun = read_header(new / SUMMARY, _KIND)["perturbations"] if (new / SUMMARY).exists() else {}
    usable = {
        name: facts
        for name, facts in begun.items()
        if not _changes(facts, requests.get(name, {})) and _complete(new / name, facts)
    }
    for path in new.iterdir():
        # Changed images that are begun are not in the summary yet; they know themselves what they belong to.
        if path.is_dir() and path.name in begun and path.name not in usable:
            remove(path)
    for name, facts in finished.items():
        if name not in usable:
            link_tree(folder / name, new / name)
            usable[name] = facts
    return usable


def _complete(folder: Path, facts: Mapping[str, Any]) -> bool:
    try:
        header = read_header(folder / HEADER_FILE, "dataset")
    except InputError:
        return False
    return bool(header.get("fingerprint") == facts.get("fingerprint"))


def _text_files(summary: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The plain files beside the folders of perturbed captions."""
    names = [name for name, facts in summary.items() if facts.get("kind") != "image"]
    return [f"{name}.jsonl" for name in (UNPERTURBED, *names)] if names else []


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

"""Captions in, changed captions out: each by its own draws, whatever stands beside it."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UsageError
from crosslens.core.progress import Progress, Silent, stage
from crosslens.core.registry import Entry
from crosslens.language.parsing import parse_texts
from crosslens.perturb.caption import Caption
from crosslens.perturb.draws import Draws
from crosslens.perturb.edit import Perturbed, apply_edits
from crosslens.perturb.perturbation import PERTURBATIONS, CannotApply, Perturbation

Captions = Sequence[str] | Mapping[str, str] | Dataset

_STEP = 1_000
"""Captions between two reports of progress."""


def perturb(
    name: str,
    captions: Captions,
    *,
    seed: int = 0,
    pipeline: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> tuple[Perturbed, ...]:
    """Every caption changed by the perturbation ``name``, in their order.

    ``captions`` are texts, a mapping from id to text, or a dataset. What happens to a caption depends on the seed, the
    perturbation and its id (of plain texts: the text) alone, so that adding, removing or reordering captions changes
    no other. ``options`` go to the perturbation; ``pipeline`` names the spaCy pipeline that tags, where tags are
    needed, and ``threads`` how many processes tag.
    """
    results = perturb_all([name], captions, seed=seed, pipeline=pipeline, threads=threads, progress=progress, **options)
    return results[name]


def perturb_all(
    names: Sequence[str],
    captions: Captions,
    *,
    corpus: Captions | None = None,
    seed: int = 0,
    pipeline: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, tuple[Perturbed, ...]]:
    """Several perturbations of the same captions, which are parsed once; an option goes to all that know it.

    ``corpus`` are the captions that decide what follows from all of them, such as which colours occur (default: the
    captions themselves).
    """
    how: dict[str, Any] = {"seed": seed, "pipeline": pipeline, "threads": threads, "progress": progress}
    return dict(perturb_each(names, captions, corpus=corpus, **how, **options))


def perturb_each(
    names: Sequence[str],
    captions: Captions,
    *,
    corpus: Captions | None = None,
    seed: int = 0,
    pipeline: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Iterator[tuple[str, tuple[Perturbed, ...]]]:
    """As :func:`perturb_all`, one perturbation after the other, for those who need not hold them all at once."""
    entries = [PERTURBATIONS[name] for name in names]
    check_options(entries, options)
    watcher = progress or Silent()
    how: dict[str, Any] = {"pipeline": pipeline, "threads": threads, "progress": watcher}
    prepared = prepare(entries, captions, **how)
    asking_all = [entry for entry in entries if entry.details["corpus"] is not None]
    everything = prepare(asking_all, corpus, **how) if asking_all and corpus is not None else prepared
    for entry in entries:
        yield entry.name, _perturbed(entry, prepared, seed, options_for(entry, everything, options), watcher)


def prepare(
    entries: Sequence[Entry[Perturbation]],
    captions: Captions,
    *,
    pipeline: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[Caption]:
    """The captions as perturbations take them: parsed where one of these needs tags."""
    ids, texts = _ids_and_texts(captions)
    parses: Any = [None] * len(texts)
    if any(entry.details["tags"] for entry in entries):
        _check_whole(texts)
        parses = parse_texts(texts, pipeline=pipeline, threads=threads, progress=progress or Silent())
    with _uncollected():
        return [Caption(text, id, parse) for text, id, parse in zip(texts, ids, parses, strict=True)]


def options_for(
    entry: Entry[Perturbation], captions: Sequence[Caption], options: Mapping[str, Any]
) -> Mapping[str, Any]:
    """What a perturbation is called with: of the options those that it knows, and what follows from all captions."""
    own = {key: value for key, value in options.items() if key in options_of(entry)}
    corpus = entry.details["corpus"]
    return own if corpus is None else {**corpus(captions), **own}


def _perturbed(
    entry: Entry[Perturbation], captions: list[Caption], seed: int, own: Mapping[str, Any], progress: Progress
) -> tuple[Perturbed, ...]:
    results = []
    with stage(progress, f"perturbing: {entry.name}", len(captions)), _uncollected():
        for start in range(0, len(captions), _STEP):
            part = captions[start : start + _STEP]
            results += [_one(entry.value, caption, Draws(seed, entry.name, caption.id), own) for caption in part]
            progress.advance(len(part))
    return tuple(results)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Nothing made here refers back to itself, and all of it stays: looking through it for garbage takes most time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():  # to the old generation, unseen: the young one would be looked through now
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _one(change: Perturbation, caption: Caption, draws: Draws, options: Mapping[str, Any]) -> Perturbed:
    try:
        edits = change(caption, draws, **options)
    except CannotApply as reason:
        return Perturbed(caption.text, caption.text, False, str(reason))
    return Perturbed(caption.text, apply_edits(caption.text, edits), True, "", edits)


def _ids_and_texts(captions: Captions) -> tuple[Sequence[str | None], Sequence[str]]:
    if isinstance(captions, Dataset):
        return captions.caption_ids, captions.texts
    if isinstance(captions, str):
        raise InputError("one text where captions belong", expected="a list of texts", fix="put it into a list")
    if isinstance(captions, Mapping):
        ids: Sequence[str | None] = [str(id) for id in captions]
        texts: Sequence[str] = list(captions.values())
    else:
        texts = list(captions)
        ids = [None] * len(texts)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"{text!r:.60} is not a text", row=row, expected="texts", fix="remove or mend this row")
    return ids, texts


def _check_whole(texts: Sequence[str]) -> None:
    """Raise where a text holds half a character, as wrong decoding leaves it: no parser takes that."""
    for row, text in enumerate(texts):
        if not text.isascii() and any("\ud800" <= one <= "\udfff" for one in text):
            raise InputError(
                f"{text!r:.60} holds half a character",
                row=row,
                expected="valid Unicode",
                fix="decode the file as UTF-8",
            )


def options_of(entry: Entry[Perturbation]) -> dict[str, inspect.Parameter]:
    """The options that a perturbation takes, by name."""
    _, _, *known = inspect.signature(entry.value).parameters.values()
    return {one.name: one for one in known}


def check_options(entries: Sequence[Entry[Perturbation]], options: Mapping[str, Any]) -> None:
    """Raise where an option is known to none of the perturbations."""
    known = {option for entry in entries for option in options_of(entry)}
    for option in options:
        if option not in known:
            names = ", ".join(entry.name for entry in entries)
            takes = f"known: {', '.join(sorted(known))}" if known else "it takes none"
            raise UsageError(f"{names} has no option {option!r}", fix=takes)

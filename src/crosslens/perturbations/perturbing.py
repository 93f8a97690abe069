"""Captions in, changed captions out: each by its own draws, whatever other captions there are."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from crosslens.core import Entry, InputError, Registry, UsageError, call_function, wrong_code
from crosslens.engine import Progress, shown_progress, stage
from crosslens.language import parse_texts
from crosslens.perturbations.caption import Caption, Draws, Edit, Edits, Perturbed, apply_edits
from crosslens.values import Dataset

Perturbation = Callable[..., Edits]
"""A function of a :class:`Caption` and its :class:`Draws`, with options by keyword; returns the edits to make.

It raises :class:`CannotApply` where the caption offers nothing to change. It never returns edits that leave the text as
it was. What it returns depends on the caption, the draws and the options alone.
"""

Level = Literal["word", "sentence", "adversarial", "beyond"]

PERTURBATIONS: Registry[Perturbation] = Registry("perturbation", "perturbations", ("crosslens.perturbations.text",))

CorpusOptions = Callable[[Sequence[Caption]], Mapping[str, Any]]
"""Options that follow from all captions together, such as the colours that occur in them."""


class CannotApply(Exception):
    """The caption offers nothing that this perturbation could change; the message says what is missing."""


def check_count(k: int) -> None:
    """Refuse an option ``k`` that is no number of words."""
    if not isinstance(k, int) or k < 1:
        raise UsageError(f"k = {k!r}", fix="k, the number of words to change, must be a whole number of at least 1")


def perturbation(
    name: str,
    *,
    level: Level,
    phrase: str = "",
    tags: bool = False,
    corpus: CorpusOptions | None = None,
    order: int | None = None,
    brit: bool = False,
    aro: bool = False,
    typo: bool = False,
    keeps_meaning: bool = False,
) -> Callable[[Perturbation], Perturbation]:
    """Register a perturbation; its ``phrase`` stands for it in titles and sentences, such as "swapped letters".

    With ``tags`` its captions come parsed, so that it can read their ``tokens``. ``corpus`` computes, once per run, the
    options that depend on the whole set of captions and that the caller did not pass. ``order`` is its rank in listings
    and groups; without one it is in no group and listed last. Facts that :func:`perturbations_with` looks up: ``brit``
    (one of BRIT's thirteen), ``aro`` (a wrong order of COCO-Order and Flickr30k-Order), ``typo``, and ``keeps_meaning``
    (the caption stays as true as it was).
    """
    facts = {"brit": brit, "aro": aro, "typo": typo, "keeps_meaning": keeps_meaning}
    return PERTURBATIONS.register(name, level=level, phrase=phrase, tags=tags, corpus=corpus, order=order, **facts)


def ordered_perturbations() -> list[Entry[Perturbation]]:
    """All perturbations of captions: those with a declared ``order`` by it, then those of plugins by name."""
    return sorted(PERTURBATIONS, key=lambda entry: (entry.details["order"] is None, entry.details["order"] or 0))


def perturbations_with(fact: Literal["brit", "aro", "typo", "keeps_meaning"]) -> tuple[str, ...]:
    """The names of the perturbations that were registered with a fact, in their order."""
    return tuple(entry.name for entry in ordered_perturbations() if entry.details[fact])


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
    """Every caption changed by a perturbation, in their order.

    What happens to a caption depends on the seed, the perturbation and its id (of plain texts: the text) alone, so that
    adding, removing or reordering captions changes no other.

    Args:
        name: The perturbation.
        captions: Texts, a mapping from id to text, or a dataset.
        seed: Seed of what is changed.
        pipeline: The spaCy pipeline that tags, where tags are needed.
        threads: How many processes tag.
        progress: Told how much is done.
        options: Those of the perturbation.
    """
    results = perturb_all([name], captions, seed=seed, pipeline=pipeline, threads=threads, progress=progress, **options)
    return results[name]


def perturb_all(names: Sequence[str], captions: Captions, **options: Any) -> dict[str, tuple[Perturbed, ...]]:
    """Several perturbations of the same captions, which are parsed once; options are those of :func:`perturb_each`."""
    return dict(perturb_each(names, captions, **options))


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
    """As :func:`perturb_all`, one perturbation after the other, for those who need not hold all results at once.

    An option goes to all perturbations that know it. ``corpus`` are the captions that decide what follows from all of
    them, such as which colours occur (default: the captions themselves).
    """
    watcher = shown_progress(progress)
    prepared, calls = prepare_calls(names, captions, corpus, options, pipeline, threads, watcher)
    for call in calls:
        name, results = call.entry.name, []
        with stage(watcher, f"perturbing: {name}", len(prepared)), _without_garbage_collection():
            for start in range(0, len(prepared), _STEP):
                part = prepared[start : start + _STEP]
                results += [_perturb_caption(call, caption, Draws(seed, name, caption.id)) for caption in part]
                watcher.advance(len(part))
        yield name, tuple(results)


class PerturbationCall(NamedTuple):
    """A perturbation with the options that it is called with."""

    entry: Entry[Perturbation]
    options: Mapping[str, Any]


def prepare_calls(
    names: Sequence[str],
    captions: Captions,
    corpus: Captions | None,
    options: Mapping[str, Any],
    pipeline: str | None,
    threads: int | None,
    progress: Progress,
) -> tuple[list[Caption], list[PerturbationCall]]:
    """The captions, parsed where one of the perturbations needs tags, and each perturbation with its options.

    A perturbation gets the options that it knows, and those that follow from all captions.
    """
    entries = [PERTURBATIONS[name] for name in names]
    check_options(entries, options)
    prepared = everything = prepare_captions(entries, captions, pipeline, threads, progress)
    dependent = [entry for entry in entries if entry.details["corpus"]]
    if dependent and corpus is not None:
        everything = prepare_captions(dependent, corpus, pipeline, threads, progress)
    calls = []
    for entry in entries:
        accepted = {name: value for name, value in options.items() if name in options_of(entry)}
        derived = entry.details["corpus"](everything) if entry.details["corpus"] else {}
        calls.append(PerturbationCall(entry, {**derived, **accepted}))
    return prepared, calls


def prepare_captions(
    entries: Sequence[Entry[Perturbation]],
    captions: Captions,
    pipeline: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[Caption]:
    """The captions as the perturbations see them, parsed where one of them needs tags."""
    if isinstance(captions, str):
        raise InputError("captions is one text", expected="a list of texts", fix="put the text into a list")
    if isinstance(captions, Dataset):
        captions = dict(zip(captions.caption_ids, captions.texts, strict=True))
    texts = list(captions.values() if isinstance(captions, Mapping) else captions)
    ids: Iterable[str | None] = map(str, captions) if isinstance(captions, Mapping) else [None] * len(texts)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"{text!r:.60} is not a text", row=row, expected="texts", fix="remove or fix this row")
    parses: Any = [None] * len(texts)
    if any(entry.details["tags"] for entry in entries):
        parses = parse_texts(texts, pipeline=pipeline, threads=threads, progress=shown_progress(progress))
    with _without_garbage_collection():
        return [Caption(text, id, parse) for text, id, parse in zip(texts, ids, parses, strict=True)]


def _perturb_caption(call: PerturbationCall, caption: Caption, draws: Draws) -> Perturbed:
    try:
        edits = call_function(call.entry.value, caption, draws, **call.options)
    except CannotApply as reason:
        return Perturbed(caption.text, caption.text, False, str(reason))
    if not isinstance(edits, tuple) or not all(isinstance(edit, Edit) for edit in edits):
        problem = f"the perturbation {call.entry.name!r} returned {edits!r:.60}"
        raise wrong_code(call.entry.value, problem, "return a tuple of crosslens.perturbations.Edit")
    try:
        return Perturbed(caption.text, apply_edits(caption.text, edits), True, "", edits)
    except ValueError as error:
        problem = f"the perturbation {call.entry.name!r}: {error}"
        raise wrong_code(call.entry.value, problem, "check the edits") from error


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
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


def options_of(entry: Entry[Perturbation]) -> dict[str, inspect.Parameter]:
    """The options that a perturbation takes, by name."""
    _, _, *parameters = inspect.signature(entry.value).parameters.values()
    return {parameter.name: parameter for parameter in parameters}


def check_options(entries: Sequence[Entry[Perturbation]], options: Mapping[str, Any]) -> None:
    """Raise where an option is known to none of the perturbations."""
    names_known = {option for entry in entries for option in options_of(entry)}
    for option in options:
        if option not in names_known:
            names = ", ".join(entry.name for entry in entries)
            fix = f"known: {', '.join(sorted(names_known))}" if names_known else "it takes none"
            raise UsageError(f"{names} has no option {option!r}", fix=fix)

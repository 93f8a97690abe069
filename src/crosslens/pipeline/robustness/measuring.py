"""The study itself: every model on every variant, each encoded and ranked once, whenever the command is given again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UsageError
from crosslens.core.json_form import json_form
from crosslens.core.progress import Progress, Silent
from crosslens.encode import Cache, load_encoder
from crosslens.encode.encoder import Tell, to_stderr
from crosslens.metrics import MetricRequest, MetricSpec
from crosslens.perturb import PERTURBATIONS, chosen_perturbations
from crosslens.perturb.choice import is_image_perturbation
from crosslens.pipeline.robustness.outcome import Outcome
from crosslens.pipeline.robustness.place import PICTURES, Place, folder_name
from crosslens.pipeline.robustness.result import Robustness
from crosslens.pipeline.robustness.study import Study, Testing
from crosslens.pipeline.robustness.variants import (
    GIVEN,
    ORIGINAL,
    Variant,
    given_variant,
    make_variants,
)
from crosslens.pipeline.robustness.vectors import Encoding, ModelVectors, ReadyVectors, Vectors
from crosslens.pipeline.robustness.working import Setting, Work
from crosslens.statistics import correct


def robustness(
    dataset: Dataset,
    *,
    model: Any = None,
    models: Mapping[str, Any] | Sequence[Any] | None = None,
    images: Any = None,
    captions: Any = None,
    variants: Mapping[str, Any] | None = None,
    perturbed: Mapping[str, Dataset] | None = None,
    perturbations: str | Iterable[str] | None = None,
    seed: int = 0,
    seeds: int = 1,
    options: Mapping[str, Any] | None = None,
    image_folder: str | Path | None = None,
    image_text: Any = None,
    query_caption: int = 0,
    directions: Sequence[str] | None = None,
    metrics: str | Iterable[str | MetricSpec | MetricRequest] | None = None,
    score: str | None = None,
    correction: str = "holm",
    permutations: int = 10_000,
    resamples: int = 1000,
    level: float = 0.95,
    listed: int = 20,
    precision: str = "fp32",
    device: str | None = None,
    batch_size: int | None = None,
    cache: Cache | bool = True,
    offline: bool = False,
    threads: int | None = None,
    name: str = "embeddings",
    output: str | Path | None = None,
    overwrite: bool = False,
    command: Sequence[str] | None = None,
    progress: Progress | None = None,
    tell: Tell = to_stderr,
) -> Robustness:
    """Evaluate models on a dataset and on perturbed variants of it, and say what the perturbations did.

    ``models`` (or one ``model``) are names such as ``clip:…`` or encoders, as a list or under names of your own.
    Without one, ``images`` and ``captions`` are the vectors of the original and ``variants`` those of the variants by
    perturbation: of captions, or a pair (images, captions) with None for what did not change. ``perturbations`` are
    names and groups (``all``, ``adversarial``, ``beyond``, ``everything``, ``images``, ``blur@3``); without them,
    those that ``variants`` or ``perturbed`` name, or ``all``. ``perturbed`` holds datasets that are perturbed already,
    by name; the others are made here. With several ``seeds`` they are made anew under seed, seed + 1, ….
    ``image_text`` (``mean``, or a summariser) asks with caption ``query_caption`` of each image and finds the image's
    other captions, which stay as they are.

    What is perturbed: the captions, which ask in ``t2i`` and are the gallery of ``i2t``; or the pictures, the other
    way round. Only what changed is encoded. With ``output`` there is a run folder for every model and variant, and
    calling again goes on where it was: finished variants are neither encoded nor ranked again.
    """
    wanted = _wanted(perturbations, {**(variants or {}), **(perturbed or {})})
    _check(dataset, model, models, variants, seeds, image_text, wanted, correction)
    _check_ready(images, captions, variants, perturbed, seeds)
    setting = Setting.of(directions, metrics, score, image_text, query_caption, resamples, level, seed)
    testing = Testing(correction, permutations, resamples, level, seed, listed)
    place = None if output is None else Place(output, setting.key(dataset, options), overwrite=overwrite)
    if place is not None:
        place.refuse_loss("perturbations", wanted)
        place.refuse_fewer_seeds(seeds)
    progress = progress or Silent()
    with _scratch(place) as scratch:
        keep = (Cache(tell=tell) if cache else None) if isinstance(cache, bool) else cache
        how = Encoding(image_folder, image_text, query_caption, precision, keep, batch_size, threads, scratch)
        asking = how.asking(dataset)
        made = {"corpus": dataset, "options": options, "threads": threads, "progress": progress}
        changed = _variants(asking, wanted, perturbed or {}, range(seed, seed + seeds), made)
        if place is not None:
            place.begin()
        outcomes: dict[str, dict[str, Outcome]] = {}
        named = _named_models(name, model, models)
        for given, one in named:
            if one is None:
                vectors: Vectors = ReadyVectors(name, asking, images, captions, variants or {})
            else:
                encoder = load_encoder(one, device=device, precision=precision, offline=offline, tell=tell)
                vectors = ModelVectors(_unused(given or encoder.name, outcomes), encoder, dataset, how)
            if place is not None:  # names are known when models are loaded; work on them comes after
                place.refuse_loss("models", {*outcomes, vectors.name}, to_come=len(named) - len(outcomes) - 1)
            work = Work(asking, vectors, setting, place, threads, command, progress)
            outcomes[vectors.name] = {ORIGINAL: work.outcome(None)} | {v.label: work.outcome(v) for v in changed}
        study = Study(asking, {one.label: one for one in changed}, outcomes, testing)
        return _concluded(study, place, _about(dataset, setting, testing, seeds, options, command), threads, progress)


def _concluded(
    study: Study, place: Place | None, about: dict[str, Any], threads: int | None, progress: Progress
) -> Robustness:
    """The tables; where the same ones stand in the folder already, those."""
    if place is None:
        return study.result(about, threads, progress)
    about |= {"setting": place.setting, "key": study.key}
    result = _stored(place) if place.there.get("key") == study.key else None
    if result is None:
        result = study.result(about, threads, progress)
        result.save(place.folder)
    place.finish()
    return result


def _stored(place: Place) -> Robustness | None:
    """The tables that stand there; None where they are damaged."""
    try:
        return Robustness.load(place.folder)
    except InputError:
        return None


def _about(
    dataset: Dataset, setting: Setting, testing: Testing, seeds: int, options: Mapping[str, Any] | None,
    command: Sequence[str] | None,
) -> dict[str, Any]:  # fmt: skip
    facts = {"name": dataset.name, "images": len(dataset.image_ids), "captions": len(dataset.caption_ids),
             "fingerprint": dataset.fingerprint}  # fmt: skip
    asked = {**vars(setting), "seeds": seeds, "perturbing": json_form(dict(options or {}))}
    return {
        "dataset": facts, "options": asked, "testing": vars(testing),
        "command": list(command or ()), "notes": [],
    }  # fmt: skip


@contextmanager
def _scratch(place: Place | None) -> Iterator[Path]:
    """Where changed pictures lie while they are needed: in the study's folder, so that a stopped one goes on."""
    if place is not None:
        yield place.folder / PICTURES
        return
    with TemporaryDirectory(prefix="crosslens-") as folder:
        yield Path(folder)


def _wanted(perturbations: str | Iterable[str] | None, given: Mapping[str, Any]) -> tuple[str, ...]:
    if perturbations is None:
        return tuple(given) or chosen_perturbations("all")
    asked = perturbations.split(",") if isinstance(perturbations, str) else list(perturbations)
    found = [[one.strip()] if one.strip() in given else chosen_perturbations([one]) for one in asked if one.strip()]
    return tuple(dict.fromkeys(name for several in found for name in several)) or chosen_perturbations("")


def _check(
    dataset: Dataset, model: Any, models: Any, variants: Any, seeds: int, image_text: Any, wanted: Sequence[str],
    correction: str,
) -> None:  # fmt: skip
    """Mistakes that should not cost the wait."""
    if not isinstance(dataset, Dataset):
        raise UsageError(f"not a dataset: {dataset!r}", fix="pass what load_dataset returns")
    if model is not None and models is not None:
        raise UsageError("both model= and models=", fix="pass one of them")
    if variants is not None and (model is not None or models is not None):
        raise UsageError("both a model and the variants' vectors", fix="pass one or the other")
    if variants is None and model is None and not models:
        raise UsageError("neither a model nor the variants' vectors", fix="name a model, such as tiny (--model)")
    if seeds < 1:
        raise UsageError(f"{seeds} seeds", fix="use 1 or more")
    pictures = [name for name in wanted if is_image_perturbation(name)]
    if image_text is not None and pictures:
        raise UsageError(f"{pictures[0]} changes pictures, and text-only retrieval has none", fix="leave it out")
    correct([], correction)


def _check_ready(images: Any, captions: Any, variants: Any, perturbed: Any, seeds: int) -> None:
    """What is brought has to be of use, and under a name that can be told from the others."""
    if variants is None and (images is not None or captions is not None):
        raise UsageError("both a model and embeddings of the original", fix="pass one or the other")
    if variants and seeds > 1:
        raise UsageError(f"{seeds} seeds, but one set of vectors for each variant", fix="leave the seeds out")
    for name in (*(variants or ()), *(perturbed or ())):
        if name == ORIGINAL or folder_name(name) != name:
            raise UsageError(
                f"a variant cannot be called {name!r}",
                fix="name it by its perturbation, such as char_swap; the original's vectors go beside the variants",
            )


def _variants(
    dataset: Dataset, wanted: Sequence[str], given: Mapping[str, Dataset], seeds: Sequence[int], made: Mapping[str, Any]
) -> list[Variant]:
    """Those that are perturbed already, and those that are made here; of a name nobody knows, only vectors exist."""
    if given and len(seeds) > 1:
        raise UsageError("several seeds, but datasets that are perturbed already", fix="leave the number of seeds out")
    missing = [name for name in wanted if name not in given]
    known = [name for name in missing if is_image_perturbation(name) or name in PERTURBATIONS]
    found = make_variants(dataset, known, seeds, **made)
    found += [given_variant(dataset, name, one, seeds[0]) for name, one in given.items() if name in wanted]
    found += [Variant(name, seeds[0], name, GIVEN, dataset) for name in missing if name not in known]
    return sorted(found, key=lambda one: (one.seed, wanted.index(one.perturbation)))


def _named_models(name: str, model: Any, models: Mapping[str, Any] | Sequence[Any] | None) -> list[tuple[str, Any]]:
    """Names (empty: the model's own) and models; (name, None) where vectors are there instead."""
    if isinstance(models, Mapping):
        return list(models.items())
    several = [model] if model is not None else [models] if isinstance(models, str) else list(models or ())
    return [("", one) for one in several] or [(name, None)]


def _unused(name: str, taken: Mapping[str, Any]) -> str:
    label, number = name, 1
    while folder_name(label) in map(folder_name, taken):
        number += 1
        label = f"{name} ({number})"
    return label

"""Robustness studies: every model on every variant, each encoded and ranked once, however often it is called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from crosslens.core import (
    Dataset,
    InputError,
    Progress,
    UsageError,
    argument,
    json_form,
    require_one_source,
    shown_progress,
)
from crosslens.encode import MEAN, EncodeOptions, MatrixScorer, load_encoder
from crosslens.metrics import MetricRequest, MetricSpec
from crosslens.perturbations import chosen_perturbations, is_image_perturbation
from crosslens.pipeline.comparison import unused_label
from crosslens.pipeline.evaluation import dataset_facts, scratch_folder, text_set_facts, text_set_notes
from crosslens.pipeline.inputs import check_dataset
from crosslens.pipeline.options import RobustnessKeywords, RobustnessOptions, refuse_other_keywords
from crosslens.pipeline.protocol import follow_in_study, require_perturbations, study_record
from crosslens.pipeline.robustness_study.study import Robustness, folder_name, study_directory
from crosslens.pipeline.robustness_study.tables import StudyTables, significance_settings
from crosslens.pipeline.robustness_study.variant_runner import QueryResults, ResultSource, StudySettings, VariantRunner
from crosslens.pipeline.robustness_study.variants import (
    ORIGINAL,
    GivenVectors,
    MatrixScores,
    ModelVectors,
    Variant,
    VariantEncoding,
    make_variants,
    require_pixels,
)


def robustness(
    dataset: Dataset,
    *,
    model: Any = None,
    models: Mapping[str, Any] | Sequence[Any] | None = None,
    images: Any = None,
    captions: Any = None,
    variants: Mapping[str, Any] | None = None,
    perturbed: Mapping[str, Dataset] | None = None,
    queries: Dataset | None = None,
    perturbations: str | Iterable[str] | None = None,
    metrics: str | Iterable[str | MetricSpec | MetricRequest] | None = None,
    output: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Unpack[RobustnessKeywords],
) -> Robustness:
    """Evaluate models on a dataset and on perturbed variants of it, and measure what the perturbations change.

    ``models`` (or one ``model``) are names such as ``clip:…`` or encoders, as a list or under names of your own.
    Without one, ``images`` and ``captions`` are the vectors of the original and ``variants`` those of the variants by
    perturbation: of captions, or a pair (images, captions) with None for what did not change. ``perturbations`` are
    names and groups (``all``, ``adversarial``, ``beyond``, ``everything``, ``images``, ``blur@3``); without them,
    those that ``variants`` or ``perturbed`` name, or ``all``. ``perturbed`` holds datasets that are perturbed already,
    by name; the others are made here.

    Perturbed are the captions, which are the queries of ``t2i`` and the gallery of ``i2t``; or the pictures, the other
    way round. Only what changed is encoded. With ``output`` there is a run folder for every model and variant, and
    interrupted studies resume: finished variants are neither encoded nor ranked again.

    ``options`` are those of :class:`RobustnessOptions`: ``seed``, ``seeds`` (perturb with seed, seed + 1, …),
    ``options`` of the perturbations, ``image_text`` (``mean``, or a summariser: caption ``query_caption`` of each image
    is the query, the image's other captions stand for the image and stay as they are), ``shared_images``, ``protocol``
    (follow a paper: its perturbations, directions and metrics; ``metrics`` adds to them), ``directions``, ``score``,
    ``correction``, ``permutations``, ``resamples``, ``level``, ``listed``, ``match_by`` (``text``: captions of one text
    are one in groups and their overlap), ``threads``, ``name``, ``command``; and for a model those of
    :class:`EncodeOptions`: ``image_folder``, ``precision``, ``device``, ``batch_size``, ``cache``, ``offline``,
    ``notify``. With a second dataset as ``queries`` its captions are the queries, and perturbed: see
    :func:`crosslens.encode.text_only`. Where another program ranks, there is :func:`robustness_from_runs`.
    """
    refuse_other_keywords(options, robustness, RobustnessOptions, EncodeOptions)
    encode_options, study_options = EncodeOptions.pick(dict(options)), RobustnessOptions.pick(dict(options))
    if queries is not None:
        check_dataset(queries)
        study_options = replace(study_options, image_text=study_options.image_text or MEAN)
    elif study_options.shared_images:
        problem = f"{argument('shared_images', True)} requires {argument('queries')}"
        raise UsageError(problem, fix=f"pass {argument('queries')}, or drop it", option="shared_images")
    made = {**(variants or {}), **(perturbed or {})}
    protocol, study_options, metrics = follow_in_study(study_options, metrics)
    if protocol is not None and perturbations is None and not made:
        perturbations = protocol.setting("robustness", "perturbations")
    words = perturbations.split(",") if isinstance(perturbations, str) else list(perturbations or ())
    groups = [[word] if word in made else chosen_perturbations([word]) for word in map(str.strip, words) if word]
    names = tuple(dict.fromkeys(name for group in groups for name in group))
    if perturbations is None:
        names = tuple(made) or chosen_perturbations("all")
    names = names or chosen_perturbations("")
    require_perturbations(protocol, names)
    if dataset is None:
        raise UsageError("no dataset", fix="pass what load_dataset returns")
    check_dataset(dataset)
    if model is not None and models is not None:
        raise UsageError(f"both {argument('model')} and {argument('models')}", fix="pass one of them")
    source = require_one_source(
        f"pass {argument('model', 'tiny')}, say, or the variants' vectors: {argument('variants')}",
        model=models if model is None else [model],
        embeddings=[given for given in (images, captions, variants) if given is not None],
    )
    if source == "embeddings" and variants is None:
        raise UsageError("no embeddings of the variants", fix=f"pass {argument('variants')}, or a model")
    _check_options(study_options, encode_options, names, variants or (), perturbed or ())
    settings = StudySettings.of(study_options, metrics)
    data = {"dataset": dataset.fingerprint} | ({} if queries is None else {"queries": queries.fingerprint})
    progress = shown_progress(progress)
    with study_directory(output, settings.key(data, study_options.options), overwrite=overwrite) as directory:
        if directory is not None:
            directory.refuse_loss("perturbations", names)
            stored = directory.stored.get("options", {}).get("seeds", 1)  # the tables of more would be lost
            problem = f"the stored study has {stored} seeds, and this one {study_options.seeds}"
            directory.require(study_options.seeds >= stored, problem, f"use {stored} seeds")
        with scratch_folder(None if directory is None else directory.pictures) as pictures:
            encoding = VariantEncoding(encode_options, study_options, pictures, queries)
            asked = encoding.queries(dataset)
            changed = make_variants(asked, names, perturbed or {}, study_options, progress)
            several = [model] if models is None else [models] if isinstance(models, str) else models
            named = list(several.items()) if isinstance(several, Mapping) else [("", encoder) for encoder in several]

            def sources() -> Iterator[ResultSource]:
                """The vectors of every model, under a name that no other has; or those that are given."""
                if source == "embeddings":
                    name = study_options.name or "embeddings"
                    yield GivenVectors(name, asked.dataset, images, captions, variants or {})
                    return
                taken: set[str] = set()
                for name, encoder in named:
                    loaded = load_encoder(encoder, encoding.options)
                    label = unused_label(name or loaded.name, taken, folder_name)
                    taken.add(folder_name(label))
                    require_pixels(loaded, changed)
                    if isinstance(loaded, MatrixScorer):
                        yield MatrixScores(label, loaded, dataset, encoding)
                    else:
                        yield ModelVectors(label, loaded, dataset, encoding)

            runner = VariantRunner(asked.dataset, settings, directory, study_options, progress)
            results = runner.run(sources(), changed, len(named))
            facts = {"dataset": dataset_facts(dataset)}
            if asked.two_sets:
                facts["text_sets"] = text_set_facts(asked, settings.text)
            return study_result(runner, results, changed, facts, text_set_notes(asked, settings.text))


def _check_options(
    options: RobustnessOptions, encoding: EncodeOptions, names: Sequence[str], variants: Iterable[str],
    perturbed: Iterable[str],
) -> None:  # fmt: skip
    pictures = [name for name in names if is_image_perturbation(name)]
    if options.image_text is not None and pictures:
        raise UsageError(f"{pictures[0]} changes pictures, and text-only retrieval has none", fix="leave it out")
    if encoding.skip_bad:
        fix = f"leave out {argument('skip_bad')}"
        raise UsageError("robustness studies need every image", fix=fix, option="skip_bad")
    for name in ("skip_unknown", "dataset_name"):
        if getattr(options, name):
            problem = f"{argument(name)} is for ranked lists"
            raise UsageError(problem, fix=f"leave it out, or pass {argument('runs')}", option=name)
    made = {
        "one set of vectors for each variant": list(variants),
        "datasets that are perturbed already": list(perturbed),
    }
    for what, given in made.items():
        if given and options.seeds > 1:
            raise UsageError(f"{options.seeds} seeds, but {what}", fix="use one seed")
        for name in given:
            if name == ORIGINAL or folder_name(name) != name:
                fix = "name it by its perturbation, such as char_swap; the original's vectors are images and captions"
                raise UsageError(f"a variant cannot be called {name!r}", fix=fix)


def study_result(
    runner: VariantRunner,
    results: Mapping[str, Mapping[str, QueryResults]],
    variants: Sequence[Variant],
    data: Mapping[str, Any],
    notes: Sequence[str],
) -> Robustness:
    """The tables, and what the study says about its data and settings; those of the folder where it has the same."""
    settings, options, directory = runner.settings, runner.options, runner.directory
    about: dict[str, Any] = {
        **data,
        "options": {**vars(settings), "seeds": options.seeds, "perturbing": json_form(dict(options.options or {}))},
        "testing": significance_settings(options),
        "command": list(options.command or ()),
        "notes": list(notes),
        **study_record(options, settings.metrics),
    }
    tables = StudyTables(runner.dataset, {variant.label: variant for variant in variants}, results, options)
    if directory is None:
        return tables.result(about, runner.progress)
    about |= {"setting": directory.setting, "key": tables.key}
    result = None
    if directory.stored.get("key") == tables.key:
        with suppress(InputError):  # damaged tables are made again
            result = Robustness.load(directory.target)
    if result is None:
        result, directory.changed = tables.result(about, runner.progress), True
    directory.finish(result)
    return result

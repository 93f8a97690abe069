"""Robustness studies: one evaluation of every model on the dataset and on each variant, kept as run folders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import polars as pl

from crosslens.comparisons import unused_label
from crosslens.core import InputError, UsageError, accepts_options, argument, reading, refuse_other_keywords
from crosslens.encode import MEAN, EncodeOptions, TextQueries, load_encoder, require_one_source, text_queries
from crosslens.engine import Progress, note_resumed, shown_progress, stage
from crosslens.metrics import MetricRequest, MetricSpec, metric_plugins, parse_metrics, ranks_of
from crosslens.perturbations import chosen_perturbations, is_image_perturbation
from crosslens.pipeline.evaluations.evaluation import (
    dataset_facts,
    evaluate,
    scratch_folder,
    text_set_facts,
    text_set_notes,
)
from crosslens.pipeline.evaluations.inputs import TEXT_TO_TEXT, check_dataset, score_source
from crosslens.pipeline.options import RobustnessOptions
from crosslens.pipeline.protocols.protocol import follow_in_study, require_perturbations, study_record
from crosslens.pipeline.robustness_study.study import Robustness, StudyFolder, folder_name, study_folder
from crosslens.pipeline.robustness_study.tables import (
    DROP_COLUMNS,
    HEADLINE_COLUMNS,
    LISTED_RANKS,
    QUERY_COLUMNS,
    WORD_COLUMNS,
    Outcome,
    brittle_table,
    change_table,
    corrected,
    direction_rsum,
    drop_rows,
    edited_parts,
    headline,
    overlap_table,
    query_table,
    score_changes,
    spread,
    word_rows,
)
from crosslens.pipeline.robustness_study.variants import (
    ORIGINAL,
    Inputs,
    Variant,
    given_vectors,
    make_variants,
    model_inputs,
)
from crosslens.storage import FloatArray, fingerprint, json_form, remove
from crosslens.values import IMAGE_TO_TEXT, RUN_FILE, TEXT_TO_IMAGE, Dataset, Ranking, Run

if TYPE_CHECKING:
    from crosslens.pipeline.keywords import RobustnessKeywords

DEFAULT_METRICS = ("Hit@1", "Hit@5", "Hit@10", "MRR", "MedR")
BOTH_DIRECTIONS = (IMAGE_TO_TEXT, TEXT_TO_IMAGE)
Outcomes = Mapping[str, Mapping[str, Outcome]]
"""By model and variant, the original's under ``original``."""


@dataclass(frozen=True)
class StudySettings:
    """What all runs of a study share; stored, and part of their keys."""

    directions: tuple[str, ...]
    metrics: tuple[str, ...]
    options: RobustnessOptions

    @staticmethod
    def of(options: RobustnessOptions, metrics: Any, default_metrics: Sequence[str] = DEFAULT_METRICS) -> StudySettings:
        """With the default directions and metrics, where none are named."""
        text_only = options.image_text is not None
        allowed = (TEXT_TO_TEXT,) if text_only else BOTH_DIRECTIONS
        directions = tuple(options.directions or allowed)
        if text_only and directions != allowed:
            raise UsageError("text-only retrieval has one direction, t2t", fix="leave out the directions")
        for direction in directions:
            if direction not in allowed:
                is_for_texts = direction == TEXT_TO_TEXT
                problem = "t2t is for text-only retrieval" if is_for_texts else f"unknown direction {direction!r}"
                raise UsageError(problem, fix="use i2t or t2i; for text-only retrieval set image_text")
        sums = ("Rsum",) if set(BOTH_DIRECTIONS) <= set(directions) else ()
        requests = parse_metrics((*default_metrics, *sums) if metrics is None else metrics)
        return StudySettings(directions, tuple(map(str, requests)), options)

    @property
    def text(self) -> str:
        """What stands for an image in text-only retrieval; empty elsewhere."""
        image_text = self.options.image_text
        return "" if image_text is None else str(getattr(image_text, "name", image_text))

    @property
    def stored(self) -> dict[str, Any]:
        options = self.options
        names = ("shared_images", "resamples", "level", "seed", "protocol")
        return {
            "directions": self.directions, "metrics": self.metrics, "score": options.score, "text": self.text,
            "query": options.query_caption, **{name: getattr(options, name) for name in names},
        }  # fmt: skip

    @property
    def table_direction(self) -> str:
        """The direction whose queries the tables are about: captions, where captions are queries at all."""
        return next(name for name in (TEXT_TO_IMAGE, TEXT_TO_TEXT, IMAGE_TO_TEXT) if name in self.directions)

    def key(self, data: Mapping[str, str]) -> str:
        """Equal for two studies whose runs can be in one folder; ``data`` are fingerprints of what they share."""
        code, perturbing = metric_plugins(parse_metrics(self.metrics)), self.options.options
        settings = {name: value for name, value in self.stored.items() if name != "protocol" or value is not None}
        settings |= {"perturbing": repr(sorted(perturbing.items()))} if perturbing else {}
        return fingerprint("robustness", {**data, **settings, **({"plugins": code} if code else {})})


@dataclass(frozen=True)
class StudyRunner:
    """Evaluates models on the dataset and on its variants, and puts the results together."""

    dataset: Dataset | None
    variants: Sequence[Variant]
    settings: StudySettings
    folder: StudyFolder | None
    progress: Progress

    def run(self, sources: Iterable[tuple[str, Inputs]], models: int = 1) -> Outcomes:
        """The outcomes of every model on the original and on every variant.

        The names of the ``models`` are known when they are loaded; work on them comes after.
        """
        outcomes: dict[str, dict[str, Outcome]] = {}
        variants = [Variant(ORIGINAL, self.settings.options.seed, ORIGINAL, self.dataset), *self.variants]
        for number, (model, inputs) in enumerate(sources, start=1):
            folder = None
            if self.folder is not None:
                self.folder.refuse_loss("models", {*outcomes, model}, unnamed=models - number)
                folder = self.folder.runs_of(model)
                finished = sum((folder / variant.label / RUN_FILE).exists() for variant in variants)
                if finished < len(variants):
                    note_resumed(self.progress, model, finished, len(variants), "result")
            outcomes[model] = {variant.label: self._outcome(model, inputs, variant, folder) for variant in variants}
        return outcomes

    def _outcome(self, model: str, inputs: Inputs, variant: Variant, folder: Path | None) -> Outcome:
        settings, options, name = self.settings, self.settings.options, f"{model}, {variant.label}"
        direction = settings.table_direction
        progress = PrefixedProgress(self.progress, name)
        sources, output = inputs(variant, progress), folder and folder / variant.label

        def run_and_ranks() -> tuple[Run, Ranking, FloatArray]:
            run = evaluate(
                variant.dataset, **sources, directions=settings.directions,
                metrics=tuple(dict.fromkeys((*settings.metrics, direction_rsum(direction)))), score=options.score,
                resamples=options.resamples, level=options.level, seed=options.seed, threads=options.threads,
                name=name, output=output, overwrite=True, command=options.command, progress=progress,
            )  # fmt: skip
            ranking = run.rankings[direction]
            return run, ranking, np.where(ranking.relevant_counts > 0, ranks_of(ranking).first_listed(), np.nan)

        with reading(name) if "run" in sources else nullcontext():
            try:
                run, ranking, rank = run_and_ranks()
            except InputError as error:
                if output is None or error.code != "changed-file":
                    raise
                remove(output)  # damaged
                run, ranking, rank = run_and_ranks()
        own_score = np.full(len(rank), -np.inf)
        if variant.dataset is not None and "run" not in sources:
            pairs = (ranking.rows, ranking.relevant)
            scorer = score_source(variant.dataset, **sources, score=options.score).scorer
            scores = scorer.exact(*(pairs if direction == IMAGE_TO_TEXT else pairs[::-1]))
            np.maximum.at(own_score, ranking.rows, np.asarray(scores, np.float64))
        return Outcome(run, direction, rank, np.where(np.isfinite(own_score), own_score, np.nan))

    def result(self, outcomes: Outcomes, data: Mapping[str, Any], notes: Iterable[str]) -> Robustness:
        """The tables, and what the study says about its ``data`` and settings."""
        settings, options = self.settings, self.settings.options
        perturbing = json_form(dict(options.options or {}))
        facts: dict[str, Any] = {
            **data,
            "options": {**settings.stored, "seeds": options.seeds, "perturbing": perturbing},
            "testing": significance_settings(options),
            "command": list(options.command or ()),
            "notes": list(notes),
            **study_record(options, settings.metrics),
        }

        def make() -> Robustness:
            return make_study(self.dataset, self.variants, outcomes, options, facts, self.progress)

        if self.folder is None:
            return make()
        key = tables_key(self.variants, outcomes, options)
        facts |= {"setting": self.folder.setting, "key": key}
        return self.folder.finish(key, make)


def make_study(
    dataset: Dataset | None, variants: Sequence[Variant], outcomes: Outcomes, options: RobustnessOptions,
    facts: Mapping[str, Any], progress: Progress,
) -> Robustness:  # fmt: skip
    """Every table; all but the drops and the captions are of the first seed."""
    seed, original = variants[0].seed, next(iter(outcomes.values()))[ORIGINAL]
    first = [variant for variant in variants if variant.seed == seed]
    cases = [
        (model, variant, of_model[ORIGINAL], of_model[variant.label])
        for model, of_model in outcomes.items()
        for variant in variants
    ]
    by_text = options.match_by == "text"
    if by_text and (dataset is None or original.direction == IMAGE_TO_TEXT):
        lacks = "no texts are known" if dataset is None else "the queries are images"
        raise UsageError(
            f"{argument('match_by', 'text')}, but {lacks}",
            fix=f"pass {argument('dataset')} with the direction t2i, or match by id",
            option="match_by",
        )
    parts, note = ({}, "") if dataset is None else edited_parts(dataset, first, options.threads, progress)
    rows = []
    with stage(progress, "testing drops", len(cases)):
        for case in cases:
            rows += drop_rows(*case, options)
            progress.advance()
    drops = corrected(rows, options.correction)
    queries = pl.concat([query_table(*case) for case in cases])
    of_first = queries.filter(pl.col("seed") == seed)
    scores = score_changes(of_first, dataset.texts if by_text and dataset is not None else None)
    pairs = overlap_table(scores)
    name, headlines = headline(original.run, original.direction), [pl.DataFrame(schema=HEADLINE_COLUMNS)]
    for model, variant, before, after in cases:
        if variant.seed == seed and name != original.rsum.name:  # that of one direction is in the table of queries
            values = before.run[name]
            columns = (model, variant.perturbation, seed, values.query_ids, values.clusters, values.values)
            rows_of = dict(zip(HEADLINE_COLUMNS, (*columns, after.run[name].values), strict=True))
            headlines.append(pl.DataFrame(rows_of, schema_overrides=HEADLINE_COLUMNS))
    words = []
    for model, of_model in outcomes.items() if original.direction != IMAGE_TO_TEXT else ():
        by_name = {variant.perturbation: of_model[variant.label] for variant in first}
        words += word_rows(model, parts, of_model[ORIGINAL], by_name, options)
    tables = {
        "drops": drops,
        "spread": spread(drops),
        "changes": change_table(of_first, scores),
        "overlap": pairs.group_by("model", "group", maintain_order=True).agg(
            pl.col("jaccard", "among_changed").fill_nan(None).mean(),
            pl.col("jaccard").fill_nan(None).count().alias("pairs"),
        ),
        "overlap_pairs": pairs,
        "words": pl.DataFrame(words, schema=WORD_COLUMNS),
        "brittle": brittle_table(of_first, options.listed),
        "captions": pl.concat([variant.table() for variant in variants]),
        "queries": queries.select(*QUERY_COLUMNS).with_columns(LISTED_RANKS),
        "headline_queries": pl.concat(headlines),
    }
    perturbations = tuple(dict.fromkeys(variant.perturbation for variant in variants))
    facts = {**facts, "notes": [*facts.get("notes", ()), *([note] if note else [])]}
    return Robustness(tuple(outcomes), perturbations, name, original.direction, facts, None, **tables)


def tables_key(variants: Sequence[Variant], outcomes: Outcomes, options: RobustnessOptions) -> str:
    """Changes when any value of any query of any run does, the way they are tested, or what tables hold of it."""
    contents = {
        f"{model}/{label}": f"{outcome.run.fingerprint} {fingerprint('own', {'scores': outcome.own_score})}"
        for model, of_model in outcomes.items()
        for label, outcome in of_model.items()
    }
    texts = {f"texts of {variant.label}": variant.texts for variant in variants}
    columns = [*DROP_COLUMNS, *HEADLINE_COLUMNS]
    return fingerprint("study", {"testing": significance_settings(options), "columns": columns, **texts, **contents})


def significance_settings(options: RobustnessOptions) -> dict[str, Any]:
    """How drops are tested and listed, as the result stores it."""
    names = ("correction", "permutations", "resamples", "level", "seed", "listed", "match_by")
    return {name: getattr(options, name) for name in names}


class PrefixedProgress:
    """Progress labelled with a model and variant."""

    def __init__(self, progress: Progress, prefix: str) -> None:
        self._prefix, self.advance, self.finish, self._start = prefix, progress.advance, progress.finish, progress.start
        self._note = getattr(progress, "note", lambda _: None)

    def start(self, label: str, total: int) -> None:
        self._start(f"{self._prefix}: {label}", total)

    def note(self, text: str) -> None:
        self._note(f"{self._prefix}: {text}")


@accepts_options(RobustnessOptions, EncodeOptions)
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

    Perturbed are the captions, which are the queries of ``t2i`` and the gallery of ``i2t``; or the pictures, the other
    way round. Only what changed is encoded. Where another program ranks, there is :func:`robustness_from_runs`.

    Args:
        dataset: The original.
        model: A name such as ``clip:…``, or an encoder.
        models: Several of them, as a list or under names of your own.
        images: Instead of a model, vectors of the original's images.
        captions: Vectors of its captions.
        variants: Vectors of the variants by perturbation: of captions, or a pair (images, captions) with None for what
            did not change.
        perturbed: Datasets that are perturbed already, by name; the others are made here.
        queries: A second dataset, whose captions are the queries, and perturbed: see
            :func:`crosslens.encode.text_only`.
        perturbations: Names and groups (``all``, ``adversarial``, ``beyond``, ``everything``, ``images``, ``blur@3``);
            by default those that ``variants`` or ``perturbed`` name, or ``all``.
        metrics: Names of metrics.
        output: A folder with a run for every model and variant. The same call again resumes: vectors are those in the
            cache, and finished runs stay as they are.
        overwrite: Replace another study.
        progress: Told how much is done.
    """
    refuse_other_keywords(options, robustness)
    encode_options, study_options = EncodeOptions.pick(options), RobustnessOptions.pick(options)
    if queries is not None:
        check_dataset(queries)
        study_options = replace(study_options, image_text=study_options.image_text or MEAN)
    elif study_options.shared_images:
        problem = f"{argument('shared_images', True)} requires {argument('queries')}"
        raise UsageError(problem, fix=f"pass {argument('queries')}, or drop it", option="shared_images")
    prepared = {**(variants or {}), **(perturbed or {})}
    protocol, study_options, metrics = follow_in_study(study_options, metrics)
    if protocol is not None and perturbations is None and not prepared:
        perturbations = protocol.setting("robustness", "perturbations")
    words = perturbations.split(",") if isinstance(perturbations, str) else list(perturbations or ())
    groups = [[word] if word in prepared else chosen_perturbations([word]) for word in map(str.strip, words) if word]
    names = tuple(dict.fromkeys(name for group in groups for name in group))
    if perturbations is None:
        names = tuple(prepared) or chosen_perturbations("all")
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
        embeddings=[vectors for vectors in (images, captions, variants) if vectors is not None],
    )
    if source == "embeddings" and variants is None:
        raise UsageError("no embeddings of the variants", fix=f"pass {argument('variants')}, or a model")
    _check_options(study_options, encode_options, names, variants or (), perturbed or ())
    settings = StudySettings.of(study_options, metrics)
    texts = TextQueries.over(dataset)
    if study_options.image_text is not None:
        shared = study_options.shared_images
        texts = text_queries(dataset, study_options.query_caption, queries, shared_images=shared)
    data = {"dataset": dataset.fingerprint} | ({} if queries is None else {"queries": queries.fingerprint})
    setting, progress = settings.key(data), shown_progress(progress)
    with (
        study_folder(output, setting, names, seeds=study_options.seeds, overwrite=overwrite) as folder,
        scratch_folder(None if folder is None else folder.work.beside("pictures")) as pictures,
    ):
        changed = make_variants(texts, names, perturbed or {}, study_options, progress)
        several = [model] if models is None else [models] if isinstance(models, str) else models
        encoders = list(several.items()) if isinstance(several, Mapping) else [("", encoder) for encoder in several]

        def sources() -> Iterator[tuple[str, Inputs]]:
            """The vectors of every model, under a name that no other has; or those that are given."""
            if source == "embeddings":
                name = study_options.name or "embeddings"
                yield name, given_vectors(texts.dataset, images, captions, variants or {}, names)
                return
            labels: set[str] = set()
            for name, encoder in encoders:
                loaded = load_encoder(encoder, encode_options)
                label = unused_label(name or loaded.name, labels, folder_name)
                labels.add(folder_name(label))
                yield label, model_inputs(loaded, dataset, texts, changed, encode_options, study_options, pictures)

        runner = StudyRunner(texts.dataset, changed, settings, folder, progress)
        facts = {"dataset": dataset_facts(dataset)}
        if texts.two_sets:
            facts["text_sets"] = text_set_facts(texts, settings.text)
        return runner.result(runner.run(sources(), len(encoders)), facts, text_set_notes(texts, settings.text))


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
    prepared = {
        "one set of vectors for each variant": list(variants),
        "datasets that are perturbed already": list(perturbed),
    }
    for kind, variant_names in prepared.items():
        if variant_names and options.seeds > 1:
            raise UsageError(f"{options.seeds} seeds, but {kind}", fix="use one seed")
        for name in variant_names:
            if name == ORIGINAL or folder_name(name) != name:
                fix = "name it by its perturbation, such as char_swap; the original's vectors are images and captions"
                raise UsageError(f"a variant cannot be called {name!r}", fix=fix)

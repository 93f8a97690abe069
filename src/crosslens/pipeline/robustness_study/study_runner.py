"""Robustness studies: one evaluation of every model on the dataset and on each variant, kept as run folders."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import polars as pl

from crosslens.core import (
    IMAGE_TO_TEXT,
    RUN_FILE,
    TEXT_TO_IMAGE,
    ConflictError,
    Dataset,
    InputError,
    Progress,
    Run,
    UsageError,
    Workspace,
    argument,
    atomic_file,
    fingerprint,
    json_form,
    link_tree,
    note_resumed,
    parquet_bytes,
    reading,
    require_one_source,
    shown_progress,
    workspace,
)
from crosslens.encode import MEAN, EncodeOptions, load_encoder
from crosslens.metrics import MetricRequest, MetricSpec, metric_plugins, parse_metrics, ranks_of
from crosslens.perturbations import chosen_perturbations, is_image_perturbation
from crosslens.pipeline.comparison import unused_label
from crosslens.pipeline.evaluation import dataset_facts, evaluate, scratch_folder, text_set_facts, text_set_notes
from crosslens.pipeline.inputs import TEXT_TO_TEXT, check_dataset, score_source
from crosslens.pipeline.options import RobustnessKeywords, RobustnessOptions, refuse_other_keywords
from crosslens.pipeline.protocol import follow_in_study, require_perturbations, study_record
from crosslens.pipeline.robustness_study.drop_table import direction_rsum
from crosslens.pipeline.robustness_study.study import (
    ROBUSTNESS_FILE,
    STUDY_LAYOUT,
    Robustness,
    folder_name,
    read_study_header,
)
from crosslens.pipeline.robustness_study.tables import Outcome, make_study, significance_settings, tables_key
from crosslens.pipeline.robustness_study.variants import (
    ORIGINAL,
    ResultSource,
    Variant,
    VariantEncoding,
    given_vectors,
    make_variants,
    model_source,
)

DEFAULT_METRICS = ("Hit@1", "Hit@5", "Hit@10", "MRR", "MedR")
BOTH_DIRECTIONS = (IMAGE_TO_TEXT, TEXT_TO_IMAGE)
_KEY = "crosslens.key"


@dataclass(frozen=True)
class StudySettings:
    """What all runs of a study share; stored, and part of their keys."""

    directions: tuple[str, ...]
    metrics: tuple[str, ...]
    score: str | None
    text: str
    query: int | str
    shared_images: bool
    resamples: int
    level: float
    seed: int
    protocol: str | None = None

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
        text = str(getattr(options.image_text, "name", options.image_text)) if text_only else ""
        return StudySettings(
            directions, tuple(map(str, requests)), options.score, text, options.query_caption,
            options.shared_images, options.resamples, options.level, options.seed, options.protocol,
        )  # fmt: skip

    @property
    def table_direction(self) -> str:
        """The direction whose queries the tables are about: captions, where captions are queries at all."""
        return next(name for name in (TEXT_TO_IMAGE, TEXT_TO_TEXT, IMAGE_TO_TEXT) if name in self.directions)

    def key(self, data: Mapping[str, str], perturbing: Mapping[str, Any] | None = None) -> str:
        """Equal for two studies whose runs can be in one folder; ``data`` are fingerprints of what they share."""
        code = metric_plugins(parse_metrics(self.metrics))
        settings = {name: value for name, value in vars(self).items() if name != "protocol" or value is not None}
        options = {"perturbing": repr(sorted(perturbing.items()))} if perturbing else {}
        return fingerprint("robustness", {**data, **settings, **options, **({"plugins": code} if code else {})})


class StudyFolder:
    """The study in a folder and, beside it, the new one that replaces it when it is complete.

    The new one begins with the runs of the stored study, if that is of the same ``setting``: the fingerprint of what
    the runs of a study share.
    """

    def __init__(self, work: Workspace, setting: str, overwrite: bool) -> None:
        self.work, self.setting, self._overwrite = work, setting, overwrite
        self.changed = False
        """Whether the new study differs from the stored one."""
        self.stored: dict[str, Any] = {}
        """The header of a stored study of the same setting."""
        if not STUDY_LAYOUT.holds(work.target):
            return
        header: dict[str, Any] = {}
        try:
            header = read_study_header(work.target / ROBUSTNESS_FILE)[0]
        except InputError:  # a damaged one counts as none where it is to be replaced
            if not overwrite:
                raise
        if header.get("setting") == setting:
            STUDY_LAYOUT.refuse_foreign_files(work.target)
            self.stored = header
        else:
            STUDY_LAYOUT.refuse_other(work.target, overwrite=overwrite, why=" (other data, metrics or options)")

    def refuse_loss(self, kind: str, names: Collection[str], unnamed: int = 0) -> None:
        """Raise where the stored study has ``models`` or ``perturbations`` that the new one does not have.

        With ``unnamed`` ones whose names are not known yet, only where those cannot be all that is missing.
        """
        lost = [name for name in self.stored.get(kind, ()) if name not in names]
        if len(lost) > unnamed:
            problem = f"the stored study also has {', '.join(lost)}, which would be lost from its tables"
            self.refuse(problem, "name them too")

    def refuse(self, problem: str, fix: str) -> None:
        if not self._overwrite:
            otherwise = f"choose another output folder, or pass {argument('overwrite', True)}"
            raise ConflictError(f"{self.work.target}: {problem}", fix=f"{fix}, {otherwise}")

    def place(self, model: str) -> Path:
        """Where the runs of a model are made."""
        if not self.work.new.is_dir():  # else it is interrupted work of the same setting
            if self.stored:
                link_tree(self.work.target, self.work.new)
            else:
                self.work.new.mkdir()
        return self.work.new / folder_name(model)

    def finish(self, key: str, make: Callable[[], Robustness]) -> Robustness:
        """The study, whose stored tables stay where they are of the same key; put in place if anything is new."""
        result = None
        if self.stored.get("key") == key:
            with suppress(InputError):  # damaged tables are made again
                result = Robustness.load(self.work.target)
        if result is None:
            result, self.changed = make(), True
        if self.changed:
            result.write_into(self.work.new)
            self.work.publish(STUDY_LAYOUT)
        else:
            self.work.discard()
        return result


@contextmanager
def study_folder(
    output: str | Path | None, setting: str, perturbations: Collection[str], *, seeds: int = 1, overwrite: bool = False
) -> Iterator[StudyFolder | None]:
    """Lock and prepare the folder of a study; interrupted work of the same setting is continued."""
    if output is None:
        yield None
        return
    STUDY_LAYOUT.holds(Path(output))  # refused before anything is made beside it
    with workspace(output, setting) as work:
        folder = StudyFolder(work, setting, overwrite)
        folder.refuse_loss("perturbations", perturbations)
        stored = folder.stored.get("options", {}).get("seeds", 1)  # the tables of more would be lost
        if seeds < stored:
            folder.refuse(f"the stored study has {stored} seeds, and this one {seeds}", f"use {stored} seeds")
        yield folder


@dataclass(frozen=True)
class StudyRunner:
    """Evaluates models on the dataset and on its variants, and puts the results together."""

    dataset: Dataset | None
    variants: Sequence[Variant]
    settings: StudySettings
    options: RobustnessOptions
    folder: StudyFolder | None
    progress: Progress

    def run(self, sources: Iterable[ResultSource], models: int = 1) -> dict[str, dict[str, Outcome]]:
        """The outcomes of every model on the original and on every variant; finished ones are loaded.

        The names of the ``models`` are known when they are loaded; work on them comes after.
        """
        outcomes: dict[str, dict[str, Outcome]] = {}
        for number, source in enumerate(sources, start=1):
            if self.folder is not None:
                self.folder.refuse_loss("models", {*outcomes, source.name}, unnamed=models - number)
            tasks = {variant.label if variant else ORIGINAL: variant for variant in (None, *self.variants)}
            keys = {label: self._key(source, variant) for label, variant in tasks.items()}
            stored = {label: self._stored(source, label, key) for label, key in keys.items()}
            missing = [label for label, outcome in stored.items() if outcome is None]
            if missing:
                note_resumed(self.progress, source.name, len(tasks) - len(missing), len(tasks), "result")
            outcomes[source.name] = {
                label: outcome or self._evaluate(source, tasks[label], label, keys[label])
                for label, outcome in stored.items()
            }
        return outcomes

    def _key(self, source: ResultSource, variant: Variant | None) -> str:
        """A hash of all that an outcome depends on; empty where that is not known."""
        key, setting = source.key(variant), self.folder and self.folder.setting
        changed = [] if variant is None else [variant.label, str(variant.seed), *variant.texts]
        return key and fingerprint("outcome", {"source": key, "setting": setting or "", "variant": changed})

    def _stored(self, source: ResultSource, label: str, key: str) -> Outcome | None:
        """A finished outcome of this key; None where it has to be computed."""
        if self.folder is None or not key:
            return None
        run, file = self.folder.place(source.name) / label, self.folder.place(source.name) / f"{label}.parquet"
        if not (file.exists() and (run / RUN_FILE).exists()):
            return None
        try:
            table = pl.read_parquet(file, glob=False)
            if pl.read_parquet_metadata(file).get(_KEY) != fingerprint("result", {"key": key, "table": table}):
                return None
            arrays = (table[name].to_numpy() for name in ("rank", "own_score"))
            return Outcome(Run.load(run), self.settings.table_direction, *arrays)
        except (OSError, pl.exceptions.PolarsError, InputError):  # damaged
            return None

    def _evaluate(self, source: ResultSource, variant: Variant | None, label: str, key: str) -> Outcome:
        """The outcome, whose last part is stored beside the run: with that file it is finished."""
        settings, name = self.settings, f"{source.name}, {label}"
        direction, progress = settings.table_direction, PrefixedProgress(self.progress, name)
        dataset = self.dataset if variant is None else variant.dataset
        inputs = source.inputs(variant, progress)
        place = None if self.folder is None else self.folder.place(source.name)
        metrics = tuple(dict.fromkeys((*settings.metrics, direction_rsum(direction))))
        with reading(name) if "run" in inputs else nullcontext():
            run = evaluate(
                dataset, **inputs, directions=settings.directions, metrics=metrics, score=settings.score,
                resamples=settings.resamples, level=settings.level, seed=settings.seed, threads=self.options.threads,
                name=name, output=place and place / label, overwrite=True, command=self.options.command,
                progress=progress,
            )  # fmt: skip
        ranking = run.rankings[direction]
        rank = np.where(ranking.relevant_counts > 0, ranks_of(ranking).first_listed(), np.nan)
        own_score = np.full(len(rank), -np.inf)
        if dataset is not None and "run" not in inputs:
            pairs = (ranking.rows, ranking.relevant)
            scorer = score_source(dataset, **inputs, score=settings.score).scorer
            scores = scorer.exact(*(pairs if direction == IMAGE_TO_TEXT else pairs[::-1]))
            np.maximum.at(own_score, ranking.rows, np.asarray(scores, np.float64))
        own_score = np.where(np.isfinite(own_score), own_score, np.nan)
        if place is not None and self.folder is not None:
            self.folder.changed = True
            queries = pl.Series(ranking.query_ids, dtype=pl.String)
            table = pl.DataFrame({"query": queries, "rank": rank, "own_score": own_score})
            facts = {_KEY: fingerprint("result", {"key": key, "table": table})}
            with atomic_file(place / f"{label}.parquet") as partial:
                partial.write_bytes(parquet_bytes(table, metadata=facts))
        return Outcome(run, direction, rank, own_score)

    def result(
        self, outcomes: Mapping[str, Mapping[str, Outcome]], data: Mapping[str, Any], notes: Iterable[str]
    ) -> Robustness:
        """The tables, and what the study says about its ``data`` and settings."""
        settings, options = self.settings, self.options
        about: dict[str, Any] = {
            **data,
            "options": {**vars(settings), "seeds": options.seeds, "perturbing": json_form(dict(options.options or {}))},
            "testing": significance_settings(options),
            "command": list(options.command or ()),
            "notes": list(notes),
            **study_record(options, settings.metrics),
        }

        def make() -> Robustness:
            return make_study(self.dataset, self.variants, outcomes, options, about, self.progress)

        if self.folder is None:
            return make()
        key = tables_key(self.variants, outcomes, options)
        about |= {"setting": self.folder.setting, "key": key}
        return self.folder.finish(key, make)


class PrefixedProgress:
    """Progress labelled with a model and variant."""

    def __init__(self, progress: Progress, prefix: str) -> None:
        self._prefix, self.advance, self.finish, self._start = prefix, progress.advance, progress.finish, progress.start
        self._note = getattr(progress, "note", lambda _: None)

    def start(self, label: str, total: int) -> None:
        self._start(f"{self._prefix}: {label}", total)

    def note(self, text: str) -> None:
        self._note(f"{self._prefix}: {text}")


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
    setting, progress = settings.key(data, study_options.options), shown_progress(progress)
    with (
        study_folder(output, setting, names, seeds=study_options.seeds, overwrite=overwrite) as folder,
        scratch_folder(None if folder is None else folder.work.beside("pictures")) as pictures,
    ):
        encoding = VariantEncoding(encode_options, study_options, pictures, queries)
        asked = encoding.queries(dataset)
        changed = make_variants(asked, names, perturbed or {}, study_options, progress)
        several = [model] if models is None else [models] if isinstance(models, str) else models
        named = list(several.items()) if isinstance(several, Mapping) else [("", encoder) for encoder in several]

        def sources() -> Iterator[ResultSource]:
            """The vectors of every model, under a name that no other has; or those that are given."""
            if source == "embeddings":
                name = study_options.name or "embeddings"
                yield given_vectors(name, asked.dataset, images, captions, variants or {})
                return
            taken: set[str] = set()
            for name, encoder in named:
                loaded = load_encoder(encoder, encode_options)
                label = unused_label(name or loaded.name, taken, folder_name)
                taken.add(folder_name(label))
                yield model_source(label, loaded, dataset, encoding, changed)

        runner = StudyRunner(asked.dataset, changed, settings, study_options, folder, progress)
        facts = {"dataset": dataset_facts(dataset)}
        if asked.two_sets:
            facts["text_sets"] = text_set_facts(asked, settings.text)
        return runner.result(runner.run(sources(), len(named)), facts, text_set_notes(asked, settings.text))


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

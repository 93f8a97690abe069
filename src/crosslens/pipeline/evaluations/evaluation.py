"""Evaluation: scores or ranked lists in, a :class:`Run` with every metric, interval and ranking out."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
import polars as pl

from crosslens.core import (
    CrosslensError,
    InputError,
    MetricNameWarning,
    UsageError,
    accepts_options,
    argument,
    plugin_hashes,
    refuse_other_keywords,
    without_secrets,
)
from crosslens.encode import (
    EACH,
    MEAN,
    EncodeOptions,
    TextOnly,
    TextQueries,
    encoder_of,
    load_encoder,
    require_one_source,
)
from crosslens.engine import Progress, shown_progress
from crosslens.metrics import (
    GainMatrix,
    MetricRequest,
    MetricSpec,
    Ties,
    compute,
    compute_across,
    family_of,
    measure,
    metric_plugins,
)
from crosslens.pipeline.evaluations.encoding import encode_with
from crosslens.pipeline.evaluations.graded_relevance import GradedRelevance
from crosslens.pipeline.evaluations.inputs import TEXT_TO_TEXT, check_dataset
from crosslens.pipeline.evaluations.rankers import ListRanker, Ranker, ScoreRanker
from crosslens.pipeline.options import EvaluateArguments, EvaluateOptions
from crosslens.pipeline.protocols.protocol import (
    Protocol,
    RequestedMetrics,
    find_protocol,
    for_gallery,
    requested_metrics,
)
from crosslens.storage import Array, ResumableFolder, Workspace, fingerprint, local_output, read_json_file, remove
from crosslens.values import (
    BOTH,
    IMAGE_TO_TEXT,
    RUN_FILE,
    RUN_LAYOUT,
    TEXT_TO_IMAGE,
    Dataset,
    MetricValues,
    RankedLists,
    Ranking,
    Relevance,
    Run,
)

if TYPE_CHECKING:
    from crosslens.encode import SecondStage
    from crosslens.pipeline.keywords import EvaluateKeywords


_PACKAGES = ("crosslens", "numpy", "scipy", "polars", "numba")
_GROUPABLE = pl.exclude(pl.Struct, pl.Array, pl.Binary)
_FEWEST_IMAGES = 20
"""Of fewer images, chance alone may rank most items well."""
_ERRORS = 2.0
"""How many standard errors below the middle the mean position must be."""


@accepts_options(EvaluateArguments)
def evaluate(
    dataset: Dataset | TextOnly | None = None,
    *,
    images: Any = None,
    captions: Any = None,
    scores: Any = None,
    run: RankedLists | Mapping[str, Any] | None = None,
    model: Any = None,
    preprocess: Any = None,
    tokenizer: Any = None,
    image_folder: str | Path | None = None,
    batch_size: int | None = None,
    relevance: Relevance | Mapping[str, Any] | None = None,
    second_stage: SecondStage | None = None,
    metrics: str | Iterable[str | MetricSpec | MetricRequest] | None = None,
    output: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Unpack[EvaluateKeywords],
) -> Run:
    """Evaluate embeddings, a score matrix or ranked lists; or what :func:`crosslens.encode.text_only` returns.

    Lists and judgements may be plain ``{query: [item, …]}``, and given by direction: ``{"i2t": …, "t2i": …}``.

    Args:
        dataset: May be left out where ``run`` and ``relevance`` say it all.
        images: Vectors of the images: an array aligned with the dataset's ids, or :class:`Embeddings`, which are
            matched by id.
        captions: Vectors of the captions, likewise.
        scores: An images × captions matrix.
        run: Ranked lists.
        model: Encodes the dataset: an object in memory (see :func:`crosslens.encode.encoder_of`), or a name such as
            ``clip:openai/clip-vit-base-patch32``.
        preprocess: What the model in memory needs for images.
        tokenizer: What it needs for captions.
        image_folder: Where the model's images are.
        batch_size: How many of them are encoded at once.
        relevance: What is relevant; by default a caption belongs to its image.
        second_stage: Has a pair scorer re-rank the top of every list before anything is measured; the lists that the
            run keeps are no longer than what it re-ranked.
        metrics: Names of metrics.
        output: A folder for the run, here or at an address (``s3://…``, ``gs://…``). The same call again resumes the
            run or returns it; a folder with a different run raises.
        overwrite: Replace a different run.
        progress: Told how much is done.
    """
    refuse_other_keywords(options, evaluate)
    arguments = EvaluateArguments.pick(options)
    protocol = find_protocol(arguments.protocol, "evaluate")
    notes: list[str] = []
    if protocol is not None:
        protocol, notes = for_gallery(protocol, dataset) if run is None else (protocol, notes)
        arguments = protocol.applied("evaluate", arguments)
    if isinstance(dataset, TextOnly):
        require_one_source(texts=dataset, embeddings=(images, captions), scores=scores, runs=run)
        if arguments.directions not in ((), (TEXT_TO_TEXT,)):
            raise UsageError("text-only retrieval has one direction, t2t", fix=f"leave out {argument('directions')}")
        arguments = replace(arguments, texts=dataset, directions=(TEXT_TO_TEXT,))
        dataset, images, captions = dataset.dataset, dataset.images, dataset.captions
    check_dataset(dataset)
    needed = (
        f"{argument('images')} and {argument('captions')}, or {argument('scores')}, or {argument('run')}, "
        f"or {argument('model')}"
    )
    source = require_one_source(f"pass {needed}", embeddings=(images, captions), scores=scores, runs=run, model=model)
    if source == "model":
        if dataset is None:
            raise UsageError("a model without a dataset", fix="pass the dataset whose images and captions it encodes")
        encoder = load_encoder(model) if isinstance(model, str) else encoder_of(model, preprocess, tokenizer)
        loaded = encode_with(
            encoder, dataset, EncodeOptions(batch_size=batch_size, image_folder=image_folder), progress
        )
        dataset, images, captions, scores = loaded.dataset, loaded.images, loaded.captions, loaded.scores
    if run is not None:
        ranker: Ranker = ListRanker(dataset, run, relevance, arguments)
    elif arguments.complete_lists:
        raise UsageError(
            f"{argument('complete_lists', True)} without ranked lists",
            fix=f"drop it, or pass {argument('run')}: scores always cover the whole gallery",
        )
    elif dataset is None:
        raise UsageError("scores without a dataset", fix="pass the dataset whose ids the scores are aligned with")
    else:
        ranker = ScoreRanker(dataset, images, captions, scores, relevance, arguments)
    requested = requested_metrics(
        protocol, metrics, dataset=dataset is not None, directions=ranker.directions, phi=arguments.phi or {},
        encoders=arguments.scores_from or {},
    )  # fmt: skip
    requests = requested.requests
    for note in dict.fromkeys(note for request in requests for note in request.notes):
        warnings.warn(note, MetricNameWarning, stacklevel=2)
    over_all_pairs = next((request for request in requests if family_of(request.spec).graded), None)
    if arguments.queries is not None and over_all_pairs is not None:
        problem = f"{argument('queries', arguments.queries)} and {over_all_pairs}, which needs the gains of all pairs"
        raise UsageError(problem, fix=f"leave out the metric, or {argument('queries')}", option="queries")
    graded = GradedRelevance(requests, dataset, arguments.phi, arguments.scores_from, arguments.cache)
    depth = max(arguments.depth, *(request.spec.cutoff or 0 for request in requests), graded.depth(ranker.relevance))
    provenance = _provenance(dataset, requests, arguments, depth, ranker, graded, second_stage)
    provenance["notes"] += [*notes, *requested.notes]
    with run_folder(output, provenance["key"], overwrite=overwrite) as (work, finished):
        if finished is not None:
            return finished
        values, rankings = _measure(
            ranker, graded, second_stage, requested, protocol, arguments, provenance, shown_progress(progress), work
        )
        inputs = provenance.get("inputs", {}).values()
        models = {facts.get("model") or facts.get("system") or "" for facts in inputs} - {""}
        name = " + ".join(sorted(models)) or "run"
        if output is not None:
            name = Path(output).resolve().name
        elif second_stage is not None:
            name = f"{name}, re-ranked by {provenance['second_stage']['model']}"
        name = arguments.name or name
        recipe = arguments.recipe if isinstance(arguments.recipe, str) else arguments.recipe(values)
        result = Run(name, values, rankings, _grouping_columns(dataset, rankings, ranker), provenance, recipe)
        if work is not None:
            result.write_into(work.new)
            work.publish(RUN_LAYOUT)
    return result


def _measure(
    ranker: Ranker, graded: GradedRelevance, second_stage: SecondStage | None, requested: RequestedMetrics,
    protocol: Protocol | None, arguments: EvaluateArguments, provenance: dict[str, Any], progress: Progress,
    work: Workspace | None,
) -> tuple[dict[str, MetricValues], dict[str, Ranking]]:  # fmt: skip
    """The values and the rankings behind them; what there is to say about them is added to the provenance."""
    ties = cast(Ties, arguments.ties)
    depth = provenance["options"]["depth"]
    folders = {} if work is None else {name: work.new / f"ranking-{name}" for name in ranker.directions}
    rankings: dict[str, Ranking] = {}  # those that an interrupted run has stored, all of them, or new ones
    for direction, folder in folders.items():
        try:
            rankings |= {direction: Ranking.load(folder)} if folder.exists() else {}
        except CrosslensError:  # damaged
            remove(folder)
    if not folders or len(rankings) < len(folders):
        deepest = depth if second_stage is None else max(depth, second_stage.depth)
        rankings = ranker.rank(deepest, progress, None if work is None else work.beside("checkpoint"))
        if second_stage is not None:
            rankings = {name: second_stage.reorder(ranking, depth, progress) for name, ranking in rankings.items()}
        for direction, folder in folders.items():
            rankings[direction].save(folder, overwrite=True)
    clusters = ranker.clusters(rankings)
    with scratch_folder(None if work is None else work.beside("matrices")) as matrices:
        gains, fingerprints = graded.gains(
            ranker.relevance, ranker.parts, folder=matrices, threads=arguments.threads, progress=progress
        )
        requests, notes = _computable(requested, rankings, clusters, ties, gains)
        provenance["notes"] += notes
        if protocol is not None:
            provenance["protocol"] = protocol.record("evaluate", requested.followed(requests))
        values = measure(
            rankings, clusters, requests, ties=ties, strata=ranker.strata,
            resamples=arguments.resamples, level=arguments.level, seed=arguments.seed, gains=gains,
        )  # fmt: skip
        provenance["notes"] += graded.notes(rankings, gains)
    for similarity, facts in fingerprints.items():
        provenance["similarities"][similarity] |= facts
    if isinstance(ranker, ScoreRanker):
        directions = [name for name, ranking in rankings.items() if _is_chance(ranking, clusters[name])]
        if directions:
            reason = "are the rows in the dataset's order?"
            if any(facts.get("model") for facts in ranker.source.description.values()):
                reason = "are the model's weights loaded, and the images the right ones?"
            provenance["notes"].append(f"{' and '.join(directions)}: no better than chance: {reason}")
    elif second_stage is None:
        provenance["notes"] += ranker.notes_on_ties(rankings)
    return values, rankings


def _provenance(
    dataset: Dataset | None, requests: Sequence[MetricRequest], options: EvaluateArguments, depth: int,
    ranker: Ranker, graded: GradedRelevance, second_stage: SecondStage | None,
) -> dict[str, Any]:  # fmt: skip
    """Everything the result depends on, its fingerprint under ``key``, and then what is good to know."""
    recorded = EvaluateOptions.pick(vars(options)).recorded()
    metrics = [str(request) for request in requests]
    provenance: dict[str, Any] = {"options": {"metrics": metrics, **recorded, "depth": depth}}
    if dataset is not None:
        provenance["dataset"] = dataset_facts(dataset)
    if options.texts is not None:
        provenance["text_sets"] = text_set_facts(options.texts.queries, options.texts.image_text)
    provenance |= {**ranker.description, **graded.description}
    plugins = metric_plugins(requests) | plugin_hashes(graded.plugins)
    if plugins:  # another version of the file may give other values
        provenance["plugins"] = plugins
    texts = options.texts
    notes = [] if texts is None else text_set_notes(texts.queries, texts.image_text)
    if dataset is not None and IMAGE_TO_TEXT in ranker.relevance:
        relevance = ranker.relevance[IMAGE_TO_TEXT].relevant()
        bare = int((dataset.without_captions & (np.diff(relevance.offsets) == 0)).sum())
        of = f"{bare:,} of {len(dataset.image_ids):,}"
        notes += [f"{of} images have no caption: they are in the gallery, and no queries"] if bare else []
    notes += ranker.notes
    notes += list(dict.fromkeys(note for request in requests for note in request.notes))
    if second_stage is not None:
        provenance["second_stage"] = second_stage.description
        notes.append(f"the top {second_stage.depth:,} of every list is re-ranked by {second_stage.scorer.name}")
    scored = isinstance(ranker, ScoreRanker)
    return provenance | {
        "key": fingerprint("evaluation", provenance),
        "notes": notes,
        "seed": options.seed,
        "versions": dict(_versions()),
        "computed_with": {"backend": options.backend, "device": options.device} if scored else {},
        "command": list(map(without_secrets, options.command or ())),
    }


@cache
def _versions() -> dict[str, str]:
    """Looked up once: each look reads files, and a study evaluates many times."""
    return {"python": platform.python_version(), **{package: version(package) for package in _PACKAGES}}


def dataset_facts(dataset: Dataset) -> dict[str, Any]:
    """A dataset as runs describe it."""
    return {
        "name": dataset.name,
        "images": len(dataset.image_ids),
        "captions": len(dataset.caption_ids),
        "fingerprint": dataset.fingerprint,
    }


def text_set_facts(texts: TextQueries, image_text: str) -> dict[str, Any]:
    """Which text set has the queries and which stands for the images."""
    queries, corpus = map(dataset_facts, texts.sources)
    return {"queries": {**queries, "query_caption": texts.query}, "corpus": {**corpus, "image_text": image_text}}


def text_set_notes(texts: TextQueries, image_text: str) -> list[str]:
    """Which text set asks and which is searched, and which images only one of them has; nothing for a single set."""
    if not texts.two_sets:
        return []
    queries, corpus = texts.sources
    several = {MEAN: "the mean of all captions of an image", EACH: "every caption"}
    query = several.get(str(texts.query), f"caption {texts.query} of each image")
    how = "the mean of all texts of an image" if image_text == MEAN else f"texts by {image_text}"
    return [f"queries: {queries.name} ({query}); corpus: {corpus.name} ({how})", *texts.notes]


@contextmanager
def run_folder(
    output: str | Path | None, key: str, *, overwrite: bool = False
) -> Iterator[tuple[Workspace | None, Run | None]]:
    """Where the run of ``key`` is made, and the run where it is finished; neither without an output."""
    if output is None:
        yield None, None
        return

    def stored_key(folder: Path) -> str | None:
        try:
            return str(read_json_file(folder / RUN_FILE)["provenance"]["key"])
        except (InputError, KeyError, TypeError):
            return None

    with local_output(output, RUN_LAYOUT) as folder:
        assert folder is not None
        with ResumableFolder(RUN_LAYOUT, folder, key, overwrite).prepare(stored_key, Run.load) as prepared:
            yield prepared


@contextmanager
def scratch_folder(path: Path | None) -> Iterator[Path]:
    """A folder for what is too large for memory: ``path``, so that interrupted work resumes, or a temporary one."""
    if path is not None:
        yield path
        return
    with TemporaryDirectory(prefix="crosslens-") as folder:
        yield Path(folder)


def _computable(
    requested: RequestedMetrics, rankings: Mapping[str, Ranking], clusters: Mapping[str, Array], ties: Ties,
    gains: Mapping[str, GainMatrix],
) -> tuple[list[MetricRequest], list[str]]:  # fmt: skip
    """The metrics without those that nobody named and these rankings do not allow, and a note on too short lists."""
    requests, is_optional = requested.requests, requested.is_optional
    t2i, i2t = rankings.get(TEXT_TO_IMAGE), rankings.get(IMAGE_TO_TEXT)
    if not (
        t2i is not None and i2t is not None and (t2i.relevant_counts == 1).all()
        and {t2i.item_ids[item] for item in np.unique(t2i.relevant)} <= set(i2t.query_ids)  # over the same images
    ):  # fmt: skip
        requests = [request for request in requests if not (is_optional(request) and request.spans_both)]
    if all(ranking.complete for ranking in rankings.values()) or not requested.optional:
        return requests, []
    computable, too_deep = [], []
    for request in requests:
        if not is_optional(request):
            computable.append(request)
            continue
        try:
            if request.spans_both:
                compute_across(request.spec, rankings, clusters, ties, gains=gains)
            else:
                for direction, ranking in rankings.items():
                    if request.direction in (None, direction):
                        compute(request.spec, ranking, ties, gains)
            computable.append(request)
        except InputError:
            too_deep.append(str(request))
    if not computable:
        return requests, []
    return computable, [f"left out, as the lists are too short for them: {', '.join(too_deep)}"] if too_deep else []


def _grouping_columns(
    dataset: Dataset | None, rankings: Mapping[str, Ranking], ranker: Ranker
) -> dict[str, pl.DataFrame]:
    """Per direction, a table aligned with its queries to group results by; a caption has its image's columns too."""
    if dataset is None:
        return {}
    captions, image_columns = dataset.captions.select(_GROUPABLE), dataset.images.select(_GROUPABLE)
    if dataset.objects is not None and "objects" not in image_columns.columns:
        names = dataset.objects.group_by("image").agg(pl.col("name").drop_nulls().unique().sort().alias("objects"))
        image_columns = image_columns.join(names, on="image", how="left", maintain_order="left")
    images, other = image_columns, ("caption", "image", "text", *dataset.images.columns)
    flat = [name for name, kind in dataset.captions.schema.items() if name not in other and not kind.is_nested()]
    # Caption columns that describe the image: a table of captions often has them in every row. Where no image has two
    # captions, every column would pass: then nothing is known about the image.
    if flat and dataset.captions["image"].n_unique() < dataset.captions.height:
        by_image = dataset.captions.group_by("image")
        most = by_image.agg(pl.col(flat).n_unique()).select(pl.col(flat).max()).row(0, named=True)
        values = by_image.agg(pl.col(name).first() for name in flat if most[name] == 1)
        images = images.join(values, on="image", how="left", maintain_order="left")
    image_columns = image_columns.rename(
        {name: f"image_{name}" for name in image_columns.columns if name in captions.columns and name != "image"}
    )
    of_captions = captions.join(image_columns, on="image", how="left", maintain_order="left").drop("caption")
    of_images = images.drop("image")
    tables = {IMAGE_TO_TEXT: of_images, TEXT_TO_IMAGE: of_captions, TEXT_TO_TEXT: of_captions, BOTH: of_images}
    if isinstance(ranker, ScoreRanker):
        tables |= {name: tables[name][rows] for name, rows in ranker.sample.items()}
    queries = {direction: len(ranking.query_ids) for direction, ranking in rankings.items()}
    if len(rankings) > 1:
        queries[BOTH] = of_images.height
    return {name: table for name, table in tables.items() if table.width and table.height == queries.get(name)}


def _is_chance(ranking: Ranking, clusters: Array) -> bool:
    """Whether relevant items lie in the middle of their lists, or beyond, on average over images.

    Under chance an item's position, as a share of its list, is uniform: its mean is 1/2, and the standard error of the
    mean over n independent images at most 1/sqrt(12 n).
    """
    relevant = np.flatnonzero(ranking.grades > 0)
    rows = ranking.rows[relevant]
    if not ranking.complete or not len(relevant):
        return False
    before = ranking.above[relevant] + (ranking.tied[relevant] + 1) / 2
    share = before / ranking.known[rows]
    _, image = np.unique(clusters[rows], return_inverse=True)
    images = int(image.max()) + 1
    position = float((np.bincount(image, share) / np.bincount(image)).mean())
    return images >= _FEWEST_IMAGES and position > 0.5 - _ERRORS / sqrt(12 * images)

"""Explanations, agreement with people and granularity, as a paper's protocol prescribes them where one is named."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from crosslens.analyze import Granularity, HumanAgreement, measure_agreement, measure_granularity
from crosslens.core import accepts_options, refuse_unknown
from crosslens.data import Judgements
from crosslens.engine import Progress
from crosslens.explanations import Explanation, Overview, dataset_change, dataset_of_run, image_files_of_run
from crosslens.pipeline.protocols.protocol import find_protocol
from crosslens.similarity import Phi
from crosslens.values import Dataset, Run

if TYPE_CHECKING:
    from crosslens.pipeline.keywords import AgreementKeywords


class ExplainKeywords(TypedDict, total=False):
    """What one query, several and all failures have in common."""

    protocol: str | None
    dataset: Dataset | str | Path | None
    dataset_options: dict[str, Any] | None
    image_folder: str | Path | None
    direction: str | None
    threshold: float
    base: str
    areas: str


class QueryKeywords(ExplainKeywords, total=False):
    """Those of named queries."""

    competitors: int


class OverviewKeywords(ExplainKeywords, total=False):
    """Those of all failures."""

    depth: int | None
    minimum: int
    resamples: int
    level: float
    seed: int
    progress: Progress | None


@overload
def explain(run: Run | str | Path, query: None = None, **options: Unpack[OverviewKeywords]) -> Overview: ...
@overload
def explain(  # type: ignore[overload-overlap]  # a text is a sequence of texts, too
    run: Run | str | Path, query: str, **options: Unpack[QueryKeywords]
) -> Explanation: ...
@overload
def explain(run: Run | str | Path, query: Sequence[str], **options: Unpack[QueryKeywords]) -> list[Explanation]: ...


def explain(
    run: Run | str | Path,
    query: str | Sequence[str] | None = None,
    *,
    protocol: str | None = None,
    dataset: Dataset | str | Path | None = None,
    dataset_options: dict[str, Any] | None = None,
    image_folder: str | Path | None = None,
    direction: str | None = None,
    **options: Any,
) -> Overview | Explanation | list[Explanation]:
    """Why a query retrieved what it did: in full for one query or a list of them; without any, over all failures.

    Args:
        run: A run, or its folder.
        query: The id of a query, or several.
        protocol: A paper to follow, such as ``expl``; the notes of the result say so.
        dataset: A dataset, a reader's name or a path; by default the one that the run's recipe names.
        dataset_options: Those of the dataset's reader.
        image_folder: Where pictures of named queries are; by default that of the recipe, or beside the dataset.
        direction: ``t2i``, ``t2t`` or ``i2t``; by default the one that has the query, captions first.
        options: ``threshold``, ``base`` and ``areas`` of the size metrics. For named queries, ``competitors``; for all
            failures, ``depth``, ``minimum``, ``resamples``, ``level``, ``seed`` and ``progress``, as
            :func:`crosslens.explanations.explain_run` has them.
    """
    from crosslens.explanations import explain_queries, explain_run

    signature = inspect.signature(explain_run if query is None else explain_queries)
    keywords = [name for name, parameter in signature.parameters.items() if parameter.kind is parameter.KEYWORD_ONLY]
    refuse_unknown([name for name in options if name not in keywords], [*keywords, *ExplainKeywords.__annotations__])
    notes: list[str] = []
    last_notes: tuple[str, ...] = ()
    paper = find_protocol(protocol, "explain")
    if paper is not None:
        prescribed = paper.settings["explain"]
        for key in prescribed.keys() & options.keys():
            if options[key] != prescribed[key]:
                raise paper.contradiction(key, options[key], prescribed[key])
        options |= prescribed
        last_notes = (f"The figures follow the protocol {paper.name}.",)
    opened = Run.load(run) if isinstance(run, str | Path) else run
    data = dataset_of_run(opened, dataset, **(dataset_options or {}))
    if dataset is None and not dataset_options:  # a dataset named on purpose may well differ: it has more objects
        changed = dataset_change(opened, data)
        notes += [] if changed is None else [changed]
    if query is None:
        overview = explain_run(opened, data, direction, **options)
        return replace(overview, notes=(*notes, *overview.notes, *last_notes))
    explanations = explain_queries(opened, data, [query] if isinstance(query, str) else query, direction, **options)
    pictures = (picture for explained in explanations for picture in (explained.right, explained.other))
    images = {picture.image for picture in pictures if picture is not None}
    files, problem = image_files_of_run(opened, data, images, image_folder)
    if problem and image_folder is not None:
        notes.append(f"Boxes without pictures: {problem}")
    explanations = [
        replace(explained, notes=(*notes, *explained.notes, *last_notes), pictures=files) for explained in explanations
    ]
    return explanations[0] if isinstance(query, str) else explanations


@accepts_options(measure_agreement)
def agreement(
    dataset: Dataset,
    judgements: Judgements | str | Path,
    phi: Phi | Sequence[Phi] | Mapping[str, Phi] | None = None,
    *,
    protocol: str | None = None,
    **options: Unpack[AgreementKeywords],
) -> HumanAgreement:
    """How well each φ agrees with people: Pearson, Spearman, Kendall τ-b and τ-c, with intervals that resample images.

    Args:
        dataset: Images and their captions.
        judgements: A :class:`crosslens.data.Judgements` or a file (see :func:`crosslens.data.read_judgements`).
        phi: One or several of: a name (``cider``, ``semantic``), a matrix or its file, a function φ(references,
            caption), or one number per judged pair; a mapping names them. By default CIDEr.
        protocol: A paper to follow, such as ``five``: its φ come first, those named behind them.
    """
    paper = find_protocol(protocol, "agreement")
    if paper is None:
        return measure_agreement(dataset, judgements, ("cider",) if phi is None else phi, **options)
    prescribed = tuple(paper.setting("agreement", "phi"))
    if isinstance(phi, Mapping):
        return measure_agreement(dataset, judgements, {**{name: name for name in prescribed}, **phi}, **options)
    further = [] if phi is None else list(phi) if isinstance(phi, Sequence) and not isinstance(phi, str) else [phi]
    functions = [*prescribed, *(function for function in further if function not in prescribed)]
    return measure_agreement(dataset, judgements, functions, **options)


def granularity(
    captions: Dataset | Mapping[str, str] | Iterable[str],
    *,
    protocol: str | None = None,
    name: str | None = None,
    pipeline: str | None = None,
    cache: str | Path | bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Granularity:
    """Measure how fine-grained captions are; the result maps every feature to its mean over the captions.

    Captions are parsed by spaCy; parses are cached, so that a second call takes seconds.

    Args:
        captions: Texts, ``{id: text}`` or a dataset, whose images are what intervals resample.
        protocol: A paper to follow, such as ``brit``: only its features.
        name: What the captions are called.
        pipeline: The spaCy pipeline, one that is installed.
        cache: Where parses are kept: a folder, True for the usual one, or False for nowhere.
        threads: How many processes parse.
        progress: Told how much is done.
    """
    paper = find_protocol(protocol, "granularity")
    measured = measure_granularity(
        captions, name=name, pipeline=pipeline, cache=cache, threads=threads, progress=progress
    )
    return measured if paper is None else measured.only(paper.setting("granularity", "features"))

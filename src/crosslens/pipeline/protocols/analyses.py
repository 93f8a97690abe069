"""Explanations, agreement with people and granularity as a paper's protocol prescribes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

from crosslens.analyze import Granularity, HumanAgreement, measure_agreement, measure_granularity
from crosslens.core import accepts_options
from crosslens.data import Judgements
from crosslens.engine import Progress
from crosslens.explanations import Explanation, Overview, OverviewKeywords, QueryKeywords, explain
from crosslens.pipeline.protocols.protocol import find_protocol
from crosslens.similarity import Phi
from crosslens.values import Dataset, Run

if TYPE_CHECKING:
    from crosslens.pipeline.keywords import AgreementKeywords


@overload
def explain_by_protocol(
    run: Run | str | Path, query: None = None, *, protocol: str | None = None, **options: Unpack[OverviewKeywords]
) -> Overview: ...
@overload
def explain_by_protocol(  # type: ignore[overload-overlap]  # a text is a sequence of texts, too
    run: Run | str | Path, query: str, *, protocol: str | None = None, **options: Unpack[QueryKeywords]
) -> Explanation: ...
@overload
def explain_by_protocol(
    run: Run | str | Path, query: Sequence[str], *, protocol: str | None = None, **options: Unpack[QueryKeywords]
) -> list[Explanation]: ...


def explain_by_protocol(
    run: Run | str | Path,
    query: str | Sequence[str] | None = None,
    *,
    protocol: str | None = None,
    **options: Any,
) -> Overview | Explanation | list[Explanation]:
    """Why a query retrieved what it did: in full for one query or a list of them; without any, over all failures.

    ``run`` is a run or its folder. ``dataset`` is a dataset, a reader's name or a path with ``dataset_options`` for the
    reader; by default the one that the run's recipe names. Pictures of named queries are looked for below
    ``image_folder``; by default in that of the recipe, or beside the dataset. ``direction``: ``t2i``, ``t2t`` or
    ``i2t``; by default the one that has the query, captions first. ``protocol`` names a paper to follow, such as
    ``expl``; its notes say so. ``options`` for named queries: ``threshold``, ``base``, ``areas`` and ``competitors``;
    for all failures: ``depth``, ``threshold``, ``base``, ``areas``, ``minimum``, ``resamples``, ``level``, ``seed`` and
    ``progress``.
    """
    paper = find_protocol(protocol, "explain")
    if paper is None:
        return explain(run, query, **options)
    prescribed, given = paper.settings["explain"], dict[str, Any](options)
    for key in prescribed.keys() & given.keys():
        if given[key] != prescribed[key]:
            raise paper.contradiction(key, given[key], prescribed[key])
    result = explain(run, query, **{**given, **prescribed})
    note = f"The figures follow the protocol {paper.name}."
    if isinstance(result, list):
        return [replace(explained, notes=(*explained.notes, note)) for explained in result]
    return replace(result, notes=(*result.notes, note))


@accepts_options(measure_agreement)
def agreement_by_protocol(
    dataset: Dataset,
    judgements: Judgements | str | Path,
    phi: Phi | Sequence[Phi] | Mapping[str, Phi] | None = None,
    *,
    protocol: str | None = None,
    **options: Unpack[AgreementKeywords],
) -> HumanAgreement:
    """How well each φ agrees with people: Pearson, Spearman, Kendall τ-b and τ-c, with intervals that resample images.

    Without ``phi`` it is CIDEr. ``protocol`` names a paper to follow, such as ``five``: its φ come first, those named
    behind them. The other keywords are those of :func:`crosslens.analyze.measure_agreement`.
    """
    paper = find_protocol(protocol, "agreement")
    if paper is None:
        return measure_agreement(dataset, judgements, ("cider",) if phi is None else phi, **options)
    prescribed = tuple(paper.setting("agreement", "phi"))
    if isinstance(phi, Mapping):
        return measure_agreement(dataset, judgements, {**{name: name for name in prescribed}, **phi}, **options)
    named = [] if phi is None else list(phi) if isinstance(phi, Sequence) and not isinstance(phi, str) else [phi]
    functions = [*prescribed, *(function for function in named if function not in prescribed)]
    return measure_agreement(dataset, judgements, functions, **options)


def granularity_by_protocol(
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

    ``captions`` are texts, ``{id: text}`` or a dataset, whose images are what intervals resample. Captions are parsed
    by spaCy (``pipeline`` names one that is installed; ``cache`` and ``threads`` as in parsing); parses are cached, so
    that a second call takes seconds. ``protocol`` names a paper to follow, such as ``brit``: only its features.
    """
    paper = find_protocol(protocol, "granularity")
    measured = measure_granularity(
        captions, name=name, pipeline=pipeline, cache=cache, threads=threads, progress=progress
    )
    return measured if paper is None else measured.only(paper.setting("granularity", "features"))

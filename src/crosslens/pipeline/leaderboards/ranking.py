"""Leaderboards from runs: the best of every column, and paired tests of all pairs of models."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import isfinite, isnan
from pathlib import Path
from typing import Any

from crosslens.core import CrosslensError, Run, UnknownNameError, UsageError
from crosslens.metrics import facts_of, matching_names, split_metrics
from crosslens.pipeline.comparison import compare, unused_label
from crosslens.pipeline.leaderboards.results import Leaderboard, Standing
from crosslens.statistics import correct


def leaderboard(
    runs: Mapping[tuple[str, str], Run | str | Path],
    metrics: str | Sequence[str] | None = None,
    *,
    correction: str = "holm",
    permutations: int = 10_000,
    seed: int = 0,
) -> Leaderboard:
    """Runs (or run folders) by model and dataset as one table, on the metrics named or on all that any run has.

    Cells may be missing. On every dataset all pairs of models are tested by a paired permutation test over images, and
    each cell has the result of the pair with the best. The best is chosen by looking, so p-values are corrected
    (``holm``, ``bh`` or ``none``) for all pairs: the tests of ``compare(…, all_pairs=True)`` of these runs and metrics.
    """
    if not runs:
        raise UsageError("a leaderboard requires a run", fix="name at least one")
    correct([], correction)
    loaded = {key: run if isinstance(run, Run) else Run.load(run) for key, run in runs.items()}
    names = _metric_names(list(loaded.values()), metrics)
    datasets = tuple(dict.fromkeys(dataset for _, dataset in loaded))
    cells: dict[tuple[str, str, str], Standing] = {}
    notes: dict[str, None] = {}
    others: list[float] = []
    for dataset in datasets:
        models = {model: run for (model, where), run in loaded.items() if where == dataset}
        for name in names:
            column = {model: run for model, run in models.items() if name in run.values}
            standings, untold = _column(column, dataset, name, permutations, seed, notes)
            cells |= {(standing.model, dataset, name): standing for standing in standings}
            others += untold
    level = next(run[name].level for run in loaded.values() for name in run)
    tested = [key for key, cell in cells.items() if not isnan(cell.p_value)]
    adjusted = map(float, correct([*(cells[key].p_value for key in tested), *others], correction))
    for key, p in zip(tested, adjusted, strict=False):
        cells[key] = replace(cells[key], adjusted_p=p, significant=p < 1 - level)
    return Leaderboard(
        tuple(dict.fromkeys(model for model, _ in loaded)), datasets, tuple(names),
        cells, correction, permutations, seed, level, len(tested) + len(others), tuple(notes),
    )  # fmt: skip


def group_runs(runs: Sequence[Run]) -> dict[tuple[str, str], Run]:
    """Runs by the names of their model and dataset, as :func:`leaderboard` takes them.

    Runs share a dataset where its content, the relevance and the folds are the same. A model is called as its encoder
    where no dataset has two runs of that encoder, and as its run otherwise. What has the same name still gets a number.
    """
    datasets: dict[str, str] = {}
    for run in runs:
        if (key := _dataset_key(run)) not in datasets:
            datasets[key] = unused_label(dataset_label(run.provenance), datasets.values())
    encoders = Counter((_encoder(run), _dataset_key(run)) for run in runs)
    repeated = {encoder for (encoder, _), number in encoders.items() if number > 1} | {""}
    grouped: dict[tuple[str, str], Run] = {}
    for run in runs:
        dataset = datasets[_dataset_key(run)]
        name = run.label if _encoder(run) in repeated else _encoder(run)
        grouped[unused_label(name, [model for model, where in grouped if where == dataset]), dataset] = run
    return grouped


_CONTENT = re.compile(r"@[0-9a-f]{12}$")
"""What an encoder's name ends with: the beginning of its weights' hash."""


def _encoder(run: Run) -> str:
    """The encoder behind both sides of a run, with its protocol; empty where there is none or they differ."""
    inputs = run.provenance.get("inputs") or {}
    names = {facts.get("model", "") for facts in inputs.values() if isinstance(facts, Mapping)}
    name = _CONTENT.sub("", names.pop()) if len(names) == 1 else ""
    return replace(run, name=name).label if name else ""


def _dataset_key(run: Run) -> str:
    facts = run.provenance.get("dataset", {})
    options = run.provenance.get("options", {})
    content = [facts.get("fingerprint", facts.get("name")), run.provenance.get("relevance"), options.get("folds", 1)]
    return json.dumps(content, sort_keys=True, default=str)


def dataset_label(provenance: Mapping[str, Any]) -> str:
    """The name of a run's dataset, with whatever makes its figures different from the usual ones."""
    name = str((provenance.get("dataset") or {}).get("name", "")) or "dataset"
    folds = provenance.get("options", {}).get("folds", 1)
    parts = [*_sources(provenance.get("relevance") or {}), *([f"{folds} folds"] if folds != 1 else [])]
    return f"{name} ({', '.join(parts)})" if parts else name


def _sources(relevance: Mapping[str, Any]) -> list[str]:
    """What says which pairs are relevant, other than the captions themselves."""
    every = [relevance, *(part for part in relevance.values() if isinstance(part, Mapping))]
    named = dict.fromkeys(Path(str(part["source"])).name for part in every if part.get("source"))
    return [name for name in named if name != "captions"]


def _metric_names(runs: Sequence[Run], metrics: str | Sequence[str] | None) -> list[str]:
    """The full names of the metrics, in the order asked for; unknown in all runs is an error."""
    everything = list(dict.fromkeys(name for run in runs for name in run))
    if metrics is None:
        return everything
    chosen: dict[str, None] = {}
    for word in [
        part for words in ([metrics] if isinstance(metrics, str) else metrics) for part in split_metrics(words)
    ]:
        names = matching_names(word, everything)
        if not names:
            raise UnknownNameError("metric in these runs", word, everything)
        chosen |= dict.fromkeys(names)
    if not chosen:
        raise UsageError("no metrics", fix=f"choose from {', '.join(everything)}", option="metrics")
    return list(chosen)


def _column(
    runs: Mapping[str, Run], dataset: str, name: str, permutations: int, seed: int, notes: dict[str, None]
) -> tuple[list[Standing], list[float]]:
    """The standings of one metric on one dataset, and the p-values of pairs without the best; not corrected yet."""
    standings = {
        model: Standing(model, dataset, name, run[name].mean, run[name].low, run[name].high, run[name].n)
        for model, run in runs.items()
    }
    figures = {model: standing.mean for model, standing in standings.items() if isfinite(standing.mean)}
    if not figures:
        return list(standings.values()), []
    target = (max if facts_of(name).higher_is_better else min)(figures.values())
    leader = next(model for model, figure in figures.items() if figure == target)
    others = []
    for first, second in combinations([leader, *(model for model in figures if model != leader)], 2):
        try:
            (test,) = compare(
                runs[first], runs[second], metrics=[name], correction="none", permutations=permutations, seed=seed
            ).results
        except CrosslensError as error:  # other queries, or no pairs to test: the figure itself is still there
            notes[f"Not tested: {second} against {first} on {dataset} ({error.problem})."] = None
            continue
        if first != leader:
            others.append(test.p_value)
        else:
            standings[second] = replace(
                standings[second], difference=test.difference, difference_low=test.low, difference_high=test.high,
                p_value=test.p_value,
            )  # fmt: skip
    return [replace(standing, best=standing.mean == target) for standing in standings.values()], others

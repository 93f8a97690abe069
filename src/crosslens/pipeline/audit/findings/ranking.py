"""All findings of an audit, the most important first: what surprises, then what is true of every run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from crosslens.pipeline.audit.findings.captions import (
    diverse_captions,
    fine_grained,
    hard_pairs,
    suspect_labels,
    unannotated_matches,
)
from crosslens.pipeline.audit.findings.failures import brittle, counted_relevance, explained
from crosslens.pipeline.audit.findings.figures import Payload, Statements
from crosslens.pipeline.audit.findings.metrics import evaluated, grouped, hard_cases, ranked_models, tied
from crosslens.pipeline.audit.results import Finding, StageResult

_STATEMENTS: Mapping[str, Callable[[Payload], Statements]] = {
    "evaluate": evaluated,
    "ties": tied,
    "groups": grouped,
    "label-quality": suspect_labels,
    "missing-positives": unannotated_matches,
    "granularity": fine_grained,
    "robustness": brittle,
    "hard-negatives": hard_cases,
    "explain": explained,
    "polysemy": diverse_captions,
    "difficulty": hard_pairs,
    "curve": counted_relevance,
    "leaderboard": ranked_models,
}


_FADING = 0.8
"""How much less each further finding of a stage matters: ten lines should say ten things."""
_NOT_BEST = 0.75
"""How much less a finding about a run matters that is not the best on its dataset."""


def findings_of(results: Iterable[StageResult]) -> tuple[Finding, ...]:
    """What the results say, the most important first; of stages that nothing is known about, nothing."""
    results = list(results)
    behind = _runs_behind(results)
    by_stage: dict[str, list[Finding]] = {}
    for result in results:
        for text, importance in _STATEMENTS.get(result.stage, _nothing)(result.payload):
            weight = importance * (_NOT_BEST if result.model in behind else 1)
            finding = Finding(text, weight, result.stage, result.model, result.dataset)
            by_stage.setdefault(result.stage, []).append(finding)
    faded = [
        replace(finding, importance=round(finding.importance * _FADING**number, 4))
        for findings in by_stage.values()
        for number, finding in enumerate(_most_important_first(findings))
    ]
    return tuple(_most_important_first(faded))


def _runs_behind(results: Iterable[StageResult]) -> set[str]:
    """The runs that another one on their dataset beats, by how often the first item is right."""
    means: dict[str, dict[str, float]] = {}
    for result in results:
        metrics = result.payload.get("metrics", {}) if result.stage == "evaluate" else {}
        figure = metrics.get("t2i/Hit@1") or metrics.get("i2t/Hit@1") or {}
        if figure.get("mean") is not None:
            means.setdefault(result.dataset, {})[result.model] = figure["mean"]
    return {run for runs in means.values() for run, mean in runs.items() if mean < max(runs.values())}


def _most_important_first(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: -finding.importance)


def _nothing(payload: Payload) -> Statements:
    return ()

"""From what the stages of an audit observed to what it says: corrected, as sure as it was measured to be, in order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from crosslens.core import FINDING_KINDS, STATED_SIZE, Certainty, Finding, Observation, Precision
from crosslens.statistics import correct

SETTLED_P, LIKELY_P = 0.01, 0.05
SETTLED_PRECISION, LIKELY_PRECISION = 0.95, 0.8
SETTLED_CASES = 50
"""A kind is settled only if it was measured so often (SPEC §19)."""
ALL_ABOUT_THE_MODEL = "*"
"""What an unsound input silences where nothing that is said of the model holds."""


class Observed(NamedTuple):
    """An observation, the stage that made it, and the run or dataset that it is about."""

    observation: Observation
    stage: str = ""
    model: str = ""
    dataset: str = ""


@cache
def measured_precisions() -> Mapping[str, Precision]:
    """How often each kind was true where it was said, as ``make claims`` measured."""
    stored = json.loads(files("crosslens.pipeline.audit").joinpath("precisions.json").read_text(encoding="utf-8"))
    return {kind: Precision(**row) for kind, row in stored.items()}


def conclude(observed: Iterable[Observed], precisions: Mapping[str, Precision] | None = None) -> tuple[Finding, ...]:
    """What an audit says, the first thing first; p-values are corrected over everything that was observed.

    Unsound input is said first, and what depends on it is not said. Then what is settled or likely, by how much of the
    headline metric it accounts for; last what is open. The same thing said of one model on several datasets is said
    once.
    """
    observed = list(observed)
    precisions = measured_precisions() if precisions is None else precisions
    p_values = {row: entry.observation.p for row, entry in enumerate(observed) if entry.observation.p is not None}
    adjusted = dict(zip(p_values, correct(list(p_values.values()), "bh").tolist(), strict=True))
    findings = []
    for row, (observation, stage, model, dataset) in enumerate(observed):
        precision = precisions.get(observation.kind)
        certainty = certainty_of(observation, adjusted.get(row), precision)
        if certainty is not None:
            findings.append(Finding(
                observation.kind, observation.text, certainty, observation.effect, adjusted.get(row),
                tuple(observation.evidence), precision, observation.weight, stage, model, dataset, observation.subject,
            ))  # fmt: skip
    findings.sort(key=_order)
    return tuple(_said_once(finding for finding in findings if not _is_silenced(finding, findings)))


def certainty_of(observation: Observation, p: float | None, precision: Precision | None) -> Certainty | None:
    """How sure an observation is; None where it is not said: nothing was seen, or it may be chance."""
    significant = p is not None and p < LIKELY_P
    if not (significant or observation.bounded or observation.worth_a_look):
        return None
    if precision is None or not (significant or observation.bounded):
        return "open"
    certain = observation.bounded or (p is not None and p < SETTLED_P)
    if certain and precision.value >= SETTLED_PRECISION and precision.n >= SETTLED_CASES:
        return "settled"
    return "likely" if precision.value >= LIKELY_PRECISION else "open"


def _details(finding: Finding) -> Mapping[str, Any]:
    return FINDING_KINDS[finding.kind].details


def _order(finding: Finding) -> tuple[bool, bool, float]:
    return finding.certainty == "open", not _details(finding)["unsound"], -finding.weight


def _is_silenced(finding: Finding, findings: Iterable[Finding]) -> bool:
    """Whether the input is unsound in a way that this finding depends on."""
    for other in findings:
        silences = _details(other)["silences"]
        concerns = finding.dataset == other.dataset and finding.model in ("", other.model)
        if (
            other is not finding and concerns and silences and other.certainty == "settled"
            and other.weight >= STATED_SIZE and (
                finding.kind in silences or (ALL_ABOUT_THE_MODEL in silences and finding.model == other.model)
            )
        ):  # fmt: skip
            return True
    return False


def _said_once(findings: Iterable[Finding]) -> Iterable[Finding]:
    """Of one model, the same on several datasets: the first, which names the others."""
    said: dict[tuple[str, str, str, str], list[Finding]] = {}
    for finding in findings:
        said.setdefault((finding.kind, finding.model, finding.subject, finding.certainty), []).append(finding)
    for first, *others in said.values():
        yield replace(first, also=tuple(dict.fromkeys(other.dataset for other in others)))

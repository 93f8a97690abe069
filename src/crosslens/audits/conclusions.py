"""From what the stages of an audit observed to what it says: corrected, as sure as it was measured to be, in order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from crosslens.core import FINDING_KINDS, STATED_SIZE, Certainty, Finding, Observation, Precision
from crosslens.statistics import correct

SETTLED_P, LIKELY_P = 0.01, 0.05
SETTLED_PRECISION, LIKELY_PRECISION, ACCUSING_PRECISION = 0.95, 0.8, 0.9
SETTLED_CASES = 50
"""A kind is settled only if it was measured so often."""
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
    """How often each kind was true where it was said, as ``make claims`` measured; of one subject: ``kind/subject``."""
    stored = json.loads(files("crosslens.audits").joinpath("precisions.json").read_text(encoding="utf-8"))
    return {kind: Precision(**row) for kind, row in stored.items()}


def conclude(
    observed: Iterable[Observed],
    precisions: Mapping[str, Precision] | None = None,
    models: Mapping[str, str] | None = None,
) -> tuple[Finding, ...]:
    """What an audit says, the first thing first; p-values are corrected over everything that was observed.

    Unsound input is said first, and what depends on it is not said. Then what is settled or likely, by how much of the
    headline metric it accounts for; last what is open. Of each kind, the first comes before the second of any other:
    five sentences say five things. ``models`` are the models of the runs: the same of one model on several datasets is
    said once.
    """
    observed = list(observed)
    precisions = measured_precisions() if precisions is None else precisions
    p_values = {row: entry.observation.p for row, entry in enumerate(observed) if entry.observation.p is not None}
    tested = {row: p for row, p in p_values.items() if p > 0}  # what was counted makes no test more certain
    adjusted = {**p_values, **dict(zip(tested, correct(list(tested.values()), "bh").tolist(), strict=True))}
    findings = []
    for row, (observation, stage, model, dataset) in enumerate(observed):
        precision = precisions.get(observation.kind, precisions.get(f"{observation.kind}/{observation.subject}"))
        certainty = certainty_of(observation, adjusted.get(row), precision)
        if certainty is not None:
            findings.append(Finding(
                observation.kind, observation.text, certainty, observation.effect, adjusted.get(row),
                tuple(observation.evidence), precision, observation.weight, stage, model, dataset, observation.subject,
            ))  # fmt: skip
    findings.sort(key=_order)
    audible: list[Finding] = []
    for finding in findings:  # unsound input is before all that it silences
        if not any(_silences(other, finding) for other in audible):
            audible.append(finding)
    merged = list(_merge_datasets(audible, models or {}))
    if len({model for model in (models or {}) if model}) > 1:  # a sentence says of which run it is
        merged = [_of_run(finding) for finding in merged]
    earlier: Counter[str] = Counter()
    places = []
    for finding in merged:
        places.append((finding.certainty == "open", earlier[finding.kind] > 0))
        earlier[finding.kind] += 1
    return tuple(merged[row] for row in sorted(range(len(merged)), key=places.__getitem__))


def certainty_of(observation: Observation, p: float | None, precision: Precision | None) -> Certainty | None:
    """How sure an observation is; None where it is not said: nothing was seen, or it may be chance."""
    kind = FINDING_KINDS[observation.kind].details
    # Every dataset has groups: with 0.05, one in twenty without a weak one would be said to have one.
    significant = p is not None and p < (SETTLED_P if kind["searched"] else LIKELY_P)
    if not (significant or observation.bounded or observation.worth_a_look):
        return None
    if precision is None or not (significant or observation.bounded):
        return "open"
    certain = observation.bounded or (p is not None and p < SETTLED_P)
    if certain and precision.value >= SETTLED_PRECISION and precision.n >= SETTLED_CASES:
        return "settled"
    least = ACCUSING_PRECISION if kind["accuses"] else LIKELY_PRECISION
    return "likely" if precision.value >= least else "open"


def _details(finding: Finding) -> Mapping[str, Any]:
    return FINDING_KINDS[finding.kind].details


def _order(finding: Finding) -> tuple[bool, bool, bool, int, float]:
    """Open ones last; first what is unsound, if settled or no trifle, and of this what silences most."""
    silences, trifle = _details(finding)["silences"], finding.weight < STATED_SIZE
    unsound = _details(finding)["unsound"] and (finding.certainty == "settled" or not trifle)
    silencing = silences if unsound and not trifle else ()
    of_model = ALL_ABOUT_THE_MODEL in silencing
    return finding.certainty == "open", not unsound, not of_model, -len(silencing), -finding.weight


def _silences(unsound: Finding, finding: Finding) -> bool:
    """Whether an input is unsound in a way that a finding of the same run, or about the same dataset, depends on."""
    silences, explains = _details(unsound)["silences"], _details(unsound)["explains"]
    if not (silences or explains) or unsound.certainty == "open" or unsound.weight < STATED_SIZE:
        return False
    if unsound.p is not None and unsound.p >= SETTLED_P:
        return False
    if unsound.dataset != finding.dataset or finding.model not in ("", unsound.model):
        return False
    if finding.kind in explains:
        concerned = {entry.get("query") for entry in unsound.evidence}
        return 2 * sum(entry.get("query") in concerned for entry in finding.evidence) > len(finding.evidence)
    open_or_about = finding.certainty == "open" or not _details(finding)["unsound"]
    return bool(finding.kind in silences or (ALL_ABOUT_THE_MODEL in silences and finding.model and open_or_about))


def _of_run(finding: Finding) -> Finding:
    whose = finding.model or finding.dataset
    return finding if not whose or whose in finding.text else replace(finding, text=f"{whose}: {finding.text}")


def _merge_datasets(findings: Iterable[Finding], models: Mapping[str, str]) -> Iterable[Finding]:
    """Of one model, the same on several datasets: the first, which names the others."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        model = models.get(finding.model, finding.model)
        groups.setdefault((finding.kind, model, finding.subject, finding.certainty), []).append(finding)
    for first, *others in groups.values():
        yield replace(first, also=tuple(dict.fromkeys(other.dataset for other in others)))

"""What an audit says of models in memory: every question that findings come from, asked of a subject."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import crosslens as cl
from crosslens.analyze import ANALYSES, Subject
from crosslens.audits.conclusions import Observed, conclude
from crosslens.core import FINDING_KINDS, Finding, Observation, Precision

LEFT_OUT = ("missing-positives",)
"""It encodes every caption once more; what it proposes is measured on judged pairs."""
ASSUMED: Mapping[str, Precision] = defaultdict(lambda: Precision(1.0, 10_000, "assumed"))
"""While precisions are measured, none is held against a kind."""


class _Assumed(dict[str, Precision]):
    def get(self, key: str, default: Any = None) -> Precision:
        return ASSUMED[key]


def findings_of(subjects: Mapping[str, Subject], left_out: Collection[str] = LEFT_OUT) -> Sequence[Finding]:
    """Findings of each subject, and of the comparison of several, first what an audit says first."""
    observed = []
    for name, subject in subjects.items():
        observed += [
            Observed(observation, str(FINDING_KINDS[observation.kind].details["stage"]), name, "data")
            for observation in observations_of(subject, left_out)
        ]
    if len(subjects) > 1:
        observed += [Observed(observation, "leaderboard", "", "data") for observation in compared(subjects)]
    return conclude(observed, _Assumed())


def compared(subjects: Mapping[str, Subject]) -> Sequence[Observation]:
    """What is observed of several models on one dataset."""
    from crosslens.audits.comparing import compare_models

    runs = {
        name: cl.evaluate(
            subject.dataset, images=subject.images, captions=subject.captions, metrics="Hit@1", resamples=0, name=name
        )
        for name, subject in subjects.items()
    }
    return tuple(compare_models(runs).findings())


def observations_of(subject: Subject, left_out: Collection[str] = LEFT_OUT) -> list[Observation]:
    """Everything that was looked at, stage by stage."""
    observations: list[Observation] = []
    for entry in sorted(ANALYSES, key=lambda entry: entry.details["order"]):
        if entry.name not in left_out:
            observations += entry.value(subject).findings()
    return observations

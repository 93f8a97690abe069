"""What an audit says of models in memory: every question that findings come from, asked of a subject."""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import crosslens as cl
from crosslens.analyze.subject import Subject
from crosslens.core import FINDING_KINDS, Finding, Observation, Precision
from crosslens.pipeline.audit.conclusions import Observed, conclude

LOOKS: Mapping[str, tuple[str, ...]] = {
    "look_into_inputs": ("soundness", "soundness.result"),
    "probe_captions": ("probes",),
    "look_at_twins": ("near_twins",),
    "look_at_groups": ("weak_groups",),
    "look_at_labels": ("label_quality", "label_quality.look"),
}
"""The functions that look at one model on one dataset, and where they are."""
ASSUMED: Mapping[str, Precision] = defaultdict(lambda: Precision(1.0, 10_000, "assumed"))
"""While precisions are measured, none is held against a kind."""


class _Assumed(dict[str, Precision]):
    def get(self, key: str, default: Any = None) -> Precision:
        return ASSUMED[key]


def findings_of(subjects: Mapping[str, Subject]) -> Sequence[Finding]:
    """Findings of each subject, and of the comparison of several, first what an audit says first."""
    observed = []
    for name, subject in subjects.items():
        observed += [
            Observed(observation, str(FINDING_KINDS[observation.kind].details["stage"]), name, "data")
            for observation in observations_of(subject)
        ]
    if len(subjects) > 1:
        observed += [Observed(observation, "leaderboard", "", "data") for observation in compared(subjects)]
    return conclude(observed, _Assumed())


def compared(subjects: Mapping[str, Subject]) -> Sequence[Observation]:
    """What is observed of several models on one dataset."""
    from crosslens.pipeline.audit.comparing import compare_models

    runs = {
        name: cl.evaluate(
            subject.dataset, images=subject.images, captions=subject.captions, metrics="Hit@1", resamples=0, name=name
        )
        for name, subject in subjects.items()
    }
    return tuple(compare_models(runs).findings())


def observations_of(subject: Subject) -> list[Observation]:
    """Everything that was looked at, stage by stage."""
    observations: list[Observation] = []
    for name, modules in LOOKS.items():
        if name == "probe_captions" and (subject.encode is None or subject.images is None):
            continue
        for module in modules:
            look: Any = getattr(importlib.import_module(f"crosslens.analyze.{module}"), name, None)
            if look is not None:
                observations += look(subject).findings()
                break
    return observations

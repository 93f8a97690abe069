"""Whether the input is sound, all checks together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosslens.analyze.soundness.firsts import Firsts
from crosslens.analyze.soundness.languages import languages
from crosslens.analyze.soundness.lists import hubs, ties
from crosslens.analyze.soundness.order import chance, misaligned
from crosslens.analyze.soundness.vectors import blank_vectors, norms
from crosslens.analyze.subject import Subject, analysis
from crosslens.core import Figure, Observation, Presented, Section, Table, Text

_CHECKS = {
    "chance": "right item first",
    "misaligned": "captions with another image's row",
    "blank-vectors": "blank, equal or copied vectors",
    "norms": "Hit@1 lost to lengths",
    "hub": "queries that one item takes",
    "ties": "Hit@1 that ties decide",
    "language": "captions in another language",
}
_VERDICT = 0.01


@dataclass(frozen=True)
class Soundness(Presented):
    """What was looked at before anything is concluded from a ranking, and what was seen."""

    observations: tuple[Observation, ...]
    not_looked_at: tuple[str, ...] = ()

    title = "Is the input sound?"

    def findings(self) -> tuple[Observation, ...]:
        return self.observations

    def sections(self) -> Iterator[Section]:
        rows = []
        for row in self.observations:
            ends = (np.nan if end is None else end for end in row.effect[1:3])
            name = f"{_CHECKS[row.kind]} ({row.subject})" if row.subject else _CHECKS[row.kind]
            rows.append((row.kind, name, Figure.percent(row.effect.value, *ends, unit=" %"), _verdict(row)))
        notes = f"Not looked at, as it is not there: {', '.join(self.not_looked_at)}." if self.not_looked_at else ""
        table = Table(("check", "what", "value", "verdict"), rows, "llrl", title="What was checked")
        yield Section("Is the input sound?", (table, *((Text.of(notes, note=True),) if notes else ())))

    def as_dict(self) -> dict[str, Any]:
        return {
            "checks": [
                {
                    "kind": row.kind, "subject": row.subject, "effect": row.effect._asdict(), "p": row.p,
                    "bounded": row.bounded, "verdict": _verdict(row), "text": row.text,
                    "evidence": [dict(ids) for ids in row.evidence],
                }
                for row in self.observations
            ],
            "not_looked_at": list(self.not_looked_at),
        }  # fmt: skip


def _verdict(observation: Observation) -> str:
    if observation.bounded is not None:
        return "at chance level" if observation.bounded else "not shown to be at chance level"
    if observation.p is None:
        return "worth a look"
    return "unsound" if observation.p < _VERDICT else "nothing to see"


@analysis("soundness", order=15)
def look_into_inputs(subject: Subject) -> Soundness:
    """Whether the input is sound: chance, shifted rows, blank vectors, lengths, hubs, ties, language.

    What there is decides what is looked at: lists alone tell nothing of vectors.
    """
    firsts = Firsts.of(subject)
    observations = (
        *chance(subject, firsts), *misaligned(subject, firsts), *blank_vectors(subject), *norms(subject, firsts),
        *hubs(firsts), *ties(firsts), *languages(subject),
    )  # fmt: skip
    kinds = {observation.kind for observation in observations}
    return Soundness(observations, tuple(name for name in _CHECKS if name not in kinds))

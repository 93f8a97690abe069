"""What crosslens concludes: sentences with a measured effect, a test, and the ids that they count.

A result yields an :class:`Observation` for everything that it looked at, whether there is something to say or not:
corrections need all of them. An audit makes a :class:`Finding` of those whose test holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any, Literal, NamedTuple

from crosslens.core.parts.tables import Figure
from crosslens.core.registry import Registry

Certainty = Literal["settled", "likely", "open"]
Evidence = Mapping[str, Any]
"""``{"query": id}``, ``{"item": id}``, ``{"query": id, "item": id}`` or ``{"items": [id, id]}``."""

STATED_SIZE = 0.02
"""A share of the queries, or of the headline metric, below which something is said to be absent: two points."""


class Effect(NamedTuple):
    """What a finding measures, with its interval: ``unit`` is what the number counts, such as ``points``."""

    value: float
    low: float | None
    high: float | None
    unit: str

    @classmethod
    def of(cls, unit: str, value: float, low: float = nan, high: float = nan) -> Effect:
        """With an interval, or none where its ends are NaN."""
        return cls(value, None if isnan(low) else low, None if isnan(high) else high, unit)


@dataclass(frozen=True)
class Observation:
    """One thing that was looked at, and what was seen.

    ``words``    fill the sentence of the kind, figures among them as they are written
    ``p``        of a claim of presence: of its own test, not corrected; 0 for what was counted and cannot be chance
    ``bounded``  of a claim of absence: whether the far end of the interval is below the stated size
    ``weight``   how much of the headline metric it accounts for: points of it, or the share of queries concerned
    ``worth_a_look``  said as open where no test decides: a list for a person to look at
    ``subject``  what the finding is about besides run and dataset, such as a column: one finding is said of each
    """

    kind: str
    words: Mapping[str, Any]
    effect: Effect
    weight: float
    p: float | None = None
    bounded: bool | None = None
    worth_a_look: bool = False
    evidence: Sequence[Evidence] = ()
    subject: str = ""

    def __post_init__(self) -> None:  # as they are written: a stored observation says the same
        object.__setattr__(self, "words", {name: str(word) for name, word in self.words.items()})

    @property
    def text(self) -> str:
        sentence: str = FINDING_KINDS[self.kind].details["sentence"]
        return sentence.format(**self.words)


@dataclass(frozen=True)
class Precision:
    """How often what a kind of finding says was true, of ``n`` sentences or listed pairs, and where it was measured."""

    value: float
    n: int
    where: str


@dataclass(frozen=True)
class Finding:
    """A sentence that an audit says, and how sure it is. ``p`` is corrected over all that the audit looked at.

    ``model`` is empty where it is about the dataset. ``also`` are other datasets on which the same holds of the model.
    """

    kind: str
    text: str
    certainty: Certainty
    effect: Effect
    p: float | None
    evidence: tuple[Evidence, ...]
    precision: Precision | None
    weight: float = 0.0
    stage: str = ""
    model: str = ""
    dataset: str = ""
    subject: str = ""
    also: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """Why it is as sure as it says."""
        p = f"p {Figure.p(self.p).equation} after correction over everything that was looked at" if self.p else ""
        measured = "how often such statements are true was not measured"
        if self.precision is not None:
            share = f"{100 * self.precision.value:.0f} % of {self.precision.n:,}"
            measured = f"{share} such statements were true, measured in {self.precision.where}"
        reason = "; ".join(filter(None, (p, measured))) + "."
        return reason if p else reason[:1].upper() + reason[1:]

    def as_dict(self) -> dict[str, Any]:
        """As ``findings.json`` has it."""
        precision = None if self.precision is None else vars(self.precision)
        return {**vars(self), "effect": self.effect._asdict(), "precision": precision}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Finding:
        """A finding that was stored."""
        precision = stored["precision"] and Precision(**stored["precision"])
        evidence, also = tuple(stored["evidence"]), tuple(stored["also"])
        effect = Effect(**stored["effect"])
        return cls(**{**stored, "effect": effect, "precision": precision, "evidence": evidence, "also": also})


FINDING_KINDS: Registry[Callable[..., Any]] = Registry(
    "kind of finding", "findings", ("crosslens.analyze", "crosslens.audits.comparing")
)
"""The registered value is the plant: ``plant(subject, strength, stream)`` puts the defect into a dataset or a model."""


def finding_kind(
    name: str,
    sentence: str,
    *,
    stage: str,
    strengths: Sequence[float],
    strength_words: str,
    silences: Sequence[str] = (),
    explains: Sequence[str] = (),
    unsound: bool = False,
    causes: Sequence[str] = (),
    accuses: bool = False,
    searched: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate the plant of a kind of finding to register the kind.

    ``sentence`` is its template, filled with the words of an observation. ``stage`` is the stage of an audit that
    looks for it. ``strengths`` are those at which ``calibrate`` plants it, in ascending order; ``strength_words`` say
    what a strength is (``"a hub of {:.0%} of the captions"``). An ``unsound`` input is said first, and ``silences`` the
    kinds that depend on it (``"*"``: all that are about the model); what it ``explains`` it silences only where most of
    the evidence is its own, too. ``causes`` are kinds that are true as well where
    this one is planted. One that ``accuses`` labels or excuses misses is said as likely only with a precision of 0.9;
    one that was ``searched`` for, as the worst of many, is said only with p below 0.01.
    """
    return FINDING_KINDS.register(
        name, sentence=sentence, stage=stage, strengths=tuple(strengths), strength_words=strength_words,
        silences=tuple(silences), explains=tuple(explains), unsound=unsound, causes=tuple(causes), accuses=accuses,
        searched=searched,
    )  # fmt: skip

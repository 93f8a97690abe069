"""A protocol followed: the metrics of an evaluation and the settings of a robustness study, beside what users pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crosslens.core import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Dataset, MissingExtraError
from crosslens.metrics import OWN_SCORES, MetricRequest, MetricSpec, family_of, parse_metrics
from crosslens.pipeline.options import RobustnessOptions
from crosslens.pipeline.protocols.protocol import Protocol, find_protocol
from crosslens.similarity import load_similarity

Metrics = str | Iterable[str | MetricSpec | MetricRequest] | None


@dataclass(frozen=True)
class RequestedMetrics:
    """What is computed; those nobody asked for by name are ``optional``, and left out where they cannot be."""

    requests: list[MetricRequest]
    optional: frozenset[tuple[MetricSpec, str | None]] = frozenset()
    of_protocol: frozenset[tuple[MetricSpec, str | None]] = frozenset()
    notes: tuple[str, ...] = ()

    @staticmethod
    def of(metrics: Metrics) -> RequestedMetrics:
        """The metrics named, or the default ones."""
        requests = parse_metrics(metrics)
        return RequestedMetrics(requests, frozenset(map(_key, requests)) if metrics is None else frozenset())

    def is_optional(self, request: MetricRequest) -> bool:
        """Whether it may be left out."""
        return _key(request) in self.optional

    def followed(self, requests: Iterable[MetricRequest]) -> list[MetricRequest]:
        """Those among ``requests`` that are the protocol's."""
        return [request for request in requests if _key(request) in self.of_protocol]


def for_gallery(protocol: Protocol, dataset: Any) -> tuple[Protocol, list[str]]:
    """The protocol with the directions that it has where images lack captions, and a note on those left out."""
    bare = int(dataset.without_captions.sum()) if protocol.without_captions and isinstance(dataset, Dataset) else 0
    if not bare:
        return protocol, []
    settings = {**protocol.settings["evaluate"], "directions": protocol.without_captions}
    left_out = [name for name in (IMAGE_TO_TEXT, TEXT_TO_IMAGE) if name not in protocol.without_captions]
    note = (
        f"left out of the protocol {protocol.name}, as {bare:,} images have no caption: {', '.join(left_out)}, which "
        "is the same without them"
    )
    return replace(protocol, settings={**protocol.settings, "evaluate": settings}), [note]


def _key(request: MetricRequest) -> tuple[MetricSpec, str | None]:
    return request.spec, request.direction


def requested_metrics(
    protocol: Protocol | None, metrics: Metrics, *, dataset: bool, directions: Sequence[str], phi: Mapping[str, Any],
    encoders: Mapping[str, Any],
) -> RequestedMetrics:  # fmt: skip
    """The protocol's metrics and, behind them, those that are named; without a protocol, these alone.

    Metrics of the protocol that the inputs do not allow are left out, with a note: without a dataset there are no
    captions to compare, and SPICE needs a parser.
    """
    if protocol is None:
        return RequestedMetrics.of(metrics)
    left_out: dict[str, list[MetricRequest]] = {}
    kept = []
    for request in parse_metrics(protocol.metrics):
        reason = _obstacle(request, dataset, directions, phi)
        if reason:
            left_out.setdefault(reason, []).append(request)
        else:
            kept.append(_with_encoder(request, encoders))
    named = [] if metrics is None else parse_metrics(metrics)
    own = frozenset(map(_key, kept))
    added = [str(request) for request in named if _key(request) not in own]
    notes = [
        f"left out of the protocol {protocol.name}, {reason}: {_listed(requests)}"
        for reason, requests in left_out.items()
    ]
    if added:
        notes.append(f"not part of the protocol {protocol.name}: {', '.join(added)}")
    requests = parse_metrics([*kept, *named])
    return RequestedMetrics(requests, own - frozenset(map(_key, named)), own, tuple(notes))


def _listed(requests: Iterable[MetricRequest]) -> str:
    """Metrics in a sentence, the cutoffs of each together: ``NCS[cider]@1,5,10``."""
    cutoffs: dict[str, list[str]] = {}
    for request in requests:
        base = str(replace(request, spec=replace(request.spec, cutoff=None)))
        cutoffs.setdefault(base, []).extend([] if request.spec.cutoff is None else [str(request.spec.cutoff)])
    return ", ".join(f"{base}@{','.join(own)}" if own else base for base, own in cutoffs.items())


def _obstacle(request: MetricRequest, dataset: bool, directions: Sequence[str], phi: Mapping[str, Any]) -> str:
    """Why a metric cannot be computed, if that is known before anything is ranked."""
    family = family_of(request.spec)
    both = {IMAGE_TO_TEXT, TEXT_TO_IMAGE}
    if request.direction is not None and request.direction not in directions:
        return f"as there is no {request.direction}"
    if family.across and request.direction is None and not both <= set(directions):
        return "as there is one direction only"
    name = family.value_of(request.spec, "φ") if family.graded else None
    if name is None:
        return ""
    if not dataset:
        return "as they require a dataset with captions"
    if not set(directions) <= both:
        return "as they are metrics of i2t and t2i"
    try:
        if name not in phi:
            _ = load_similarity(name).revision  # where a package is missing, this says so
    except MissingExtraError as error:
        return f"as {error.problem} (pip install 'crosslens[{error.subject}]')"
    return ""


def _with_encoder(request: MetricRequest, encoders: Mapping[str, Any]) -> MetricRequest:
    """``DCGcm`` with the one relevance encoder that is given, instead of the model's own scores."""
    if len(encoders) != 1 or request.spec.setting("scores_from") != OWN_SCORES:
        return request
    own, given = f"scores_from={OWN_SCORES}", f"scores_from={next(iter(encoders))}"
    options = tuple(given if option == own else option for option in request.spec.options)
    return replace(request, spec=replace(request.spec, options=options))


def follow_in_study(
    protocol: Protocol, options: RobustnessOptions, metrics: Metrics, *, without: Collection[str] = ()
) -> tuple[RobustnessOptions, Metrics]:
    """The options and the metrics of a robustness study; ``without`` names options that its inputs do not allow."""
    own = protocol.setting("robustness", "metrics")
    return (
        protocol.applied("robustness", options, without=without),
        parse_metrics([*own, *([] if metrics is None else parse_metrics(metrics))]) if own else metrics,
    )


def study_record(options: RobustnessOptions, metrics: Iterable[str]) -> dict[str, Any]:
    """What a robustness study stores of the protocol that it follows."""
    protocol = find_protocol(options.protocol, "robustness")
    if protocol is None:
        return {}
    own = {_key(request) for request in parse_metrics(protocol.setting("robustness", "metrics") or metrics)}
    requests = [request for request in parse_metrics(metrics) if _key(request) in own]
    return {"protocol": protocol.record("robustness", requests, options)}


def require_perturbations(protocol: Protocol, names: Iterable[str]) -> None:
    """Raise for a perturbation that is not among the protocol's; of ready-made variants, variants in brackets count."""
    known = protocol.setting("robustness", "perturbations")
    plain = {name.partition("[")[0] for name in known or ()}
    for name in names:
        if known and name not in known and name not in plain:
            raise protocol.contradiction("perturbations", name, known)

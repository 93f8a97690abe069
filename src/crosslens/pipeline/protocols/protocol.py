"""A paper's protocol: the metrics it prints and the conventions behind them, to be followed by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, TypeVar

from crosslens.core import (
    FactList,
    MissingExtraError,
    Options,
    Presented,
    Registry,
    Section,
    Text,
    UsageError,
    argument,
)
from crosslens.metrics import OWN_SCORES, MetricRequest, MetricSpec, family_of, parse_metrics
from crosslens.pipeline.options import RobustnessOptions
from crosslens.similarity import load_similarity
from crosslens.storage import json_form
from crosslens.values import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Dataset

Chosen = TypeVar("Chosen", bound=Options)

COMMANDS = ("evaluate", "robustness", "explain", "granularity", "agreement", "curve")
"""What can follow a protocol."""


def _listed(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else value


class Convention(NamedTuple):
    """A convention of a paper: what, how, and a plain sentence; ``commands`` are those it matters to."""

    key: str
    value: str
    about: str
    commands: tuple[str, ...] = ("evaluate",)


@dataclass(frozen=True)
class Protocol:
    """How a paper evaluates.

    ``metrics`` are those of an evaluation; ``phi`` says which words each φ among them compares. ``settings`` are, per
    command (:data:`COMMANDS`), the options that the paper prescribes: what a user passes must not contradict them. A
    command that is not among them does not follow this protocol. ``without_captions`` are the directions of an
    evaluation where some images have no caption; empty: those of any other.
    """

    name: str
    paper: str
    summary: str
    metrics: tuple[str, ...] = ()
    phi: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    conventions: tuple[Convention, ...] = ()
    without_captions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # The registry takes its summary from the docstring, which is otherwise the class's.
        object.__setattr__(self, "__doc__", self.summary)

    def setting(self, command: str, key: str) -> Any:
        """What the paper prescribes for an option of a command; None if nothing."""
        return self.settings[command].get(key)

    def applied(self, command: str, options: Chosen, without: Collection[str] = ()) -> Chosen:
        """The options with what the paper prescribes (``without`` some); a contradiction that is no default raises."""
        defaults = {entry.name: entry.default for entry in fields(options)}
        prescribed = {
            key: value for key, value in self.settings[command].items() if key in defaults.keys() - set(without)
        }
        for key, value in prescribed.items():
            if getattr(options, key) not in (defaults[key], value):
                raise self.contradiction(key, getattr(options, key), value)
        return replace(options, **prescribed)

    def contradiction(self, key: str, actual: Any, value: Any) -> UsageError:
        """The error for an option that the paper prescribes otherwise."""
        return UsageError(
            f"{argument(key, _listed(actual))} contradicts the protocol {self.name}, which has {_listed(value)}",
            fix=f"drop {argument(key)}, or drop {argument('protocol')}",
            option=key,
        )

    def record(
        self, command: str, requests: Iterable[MetricRequest] = (), options: Options | None = None
    ) -> dict[str, Any]:
        """What a result stores: the paper, φ, tokens, the metrics with their variants, and the conventions.

        ``options`` are those in use, where some could not be the paper's.
        """
        settings = {key: getattr(options, key, value) for key, value in self.settings[command].items()}
        requests = list(requests)
        phi: dict[str, None] = {}
        variants: dict[str, dict[str, None]] = {}
        for spec in (request.spec for request in requests):
            similarity = family_of(spec).value_of(spec, "φ") if family_of(spec).graded else None
            phi |= {} if similarity is None else {similarity: None}
            if spec.options:
                variants.setdefault(spec.family, {})[", ".join(spec.options)] = None
        prescribed = self.setting(command, "phi") or ()
        phi |= dict.fromkeys([prescribed] if isinstance(prescribed, str) else prescribed)
        return {
            "name": self.name,
            "paper": self.paper,
            "phi": list(phi),
            "tokens": {name: self.phi[name] for name in phi if name in self.phi},
            "metrics": list(map(str, requests)),
            "variants": {family: list(options) for family, options in variants.items()},
            "settings": json_form(settings),
            "conventions": [
                {key: getattr(convention, key) for key in ("key", "value", "about")}
                for convention in self.conventions
                if command in convention.commands
            ],
        }


PROTOCOLS: Registry[Protocol] = Registry("protocol", "protocols", ("crosslens.pipeline.protocols.papers",))


def add_protocol(protocol: Protocol) -> Protocol:
    """Register a protocol under its name, so that ``--protocol`` knows it."""
    for command in protocol.settings:
        if command not in COMMANDS:
            fix = f"the commands that follow protocols are {', '.join(COMMANDS)}"
            raise UsageError(f"the protocol {protocol.name!r} has settings of {command!r}", fix=fix)
    return PROTOCOLS.register(protocol.name)(protocol)


def find_protocol(name: str | None, command: str) -> Protocol | None:
    """The protocol of that name, which must say something about the command; None without a name."""
    if name is None:
        return None
    protocol = PROTOCOLS[name].value
    if command not in protocol.settings:
        names = ", ".join(entry.name for entry in PROTOCOLS if command in entry.value.settings)
        raise UsageError(
            f"the protocol {name} says nothing about {command}",
            fix=f"drop {argument('protocol')}, or choose from {names}" if names else f"drop {argument('protocol')}",
            option="protocol",
        )
    return protocol


@dataclass(frozen=True)
class ProtocolList(Presented):
    """Protocols, a line each; one alone in full: its metrics, what it sets in which command, every convention."""

    protocols: tuple[Protocol, ...]

    title = "Protocols"

    def sections(self) -> Iterator[Section]:
        if len(self.protocols) > 1:
            listed = FactList(tuple((entry.name, f"{entry.summary} {entry.paper}") for entry in self.protocols))
            yield Section("", (listed, Text.of("Without --protocol, crosslens follows its own conventions.")))
            return
        (protocol,) = self.protocols
        rows = [("metrics", ", ".join(protocol.metrics))]
        rows += [(f"φ = {name}", f"tokens: {tokens}") for name, tokens in protocol.phi.items()]
        for command, settings in protocol.settings.items():
            rows.append((command, "; ".join(f"{key} = {_listed(value)}" for key, value in settings.items())))
        rows += [(convention.key, f"{convention.value}: {convention.about}") for convention in protocol.conventions]
        yield Section(f"{protocol.name}: {protocol.paper}", (FactList(tuple(rows), protocol.summary),))

    def as_dict(self) -> dict[str, Any]:
        listed = []
        for protocol in self.protocols:
            facts = {name: getattr(protocol, name) for name in ("name", "paper", "summary", "metrics")}
            more = {"tokens": protocol.phi, "settings": protocol.settings}
            conventions = [convention._asdict() for convention in protocol.conventions]
            listed.append({**facts, **more, "conventions": conventions})
        return json_form({"protocols": listed})


def protocol_facts(record: Mapping[str, Any]) -> FactList:
    """A stored protocol: its paper, φ with its tokens, and the conventions, one sentence each."""
    tokens = record.get("tokens", {})
    rows = [(f"φ = {name}", f"tokens: {tokens[name]}") for name in record.get("phi", ()) if name in tokens]
    rows += [(str(row["key"]), f"{row['value']}: {row['about']}") for row in record.get("conventions", ())]
    return FactList(tuple(rows), f"Protocol {record['name']}: {record['paper']}")


@dataclass(frozen=True)
class ProtocolResult(Presented):
    """A result that follows a protocol, which is said below it."""

    result: Presented
    record: Mapping[str, Any]

    @property
    def title(self) -> str:
        return self.result.title

    def sections(self) -> Iterator[Section]:
        yield from self.result.sections()
        yield Section("", (protocol_facts(self.record),))

    def as_dict(self) -> dict[str, Any]:
        return {**self.result.as_dict(), "protocol": dict(self.record)}


Metrics = str | Iterable[str | MetricSpec | MetricRequest] | None


@dataclass(frozen=True)
class RequestedMetrics:
    """What is computed; those nobody asked for by name are ``optional``, and left out where they cannot be."""

    requests: list[MetricRequest]
    optional: frozenset[tuple[MetricSpec, str | None]] = frozenset()
    of_protocol: frozenset[tuple[MetricSpec, str | None]] = frozenset()
    notes: tuple[str, ...] = ()

    def is_optional(self, request: MetricRequest) -> bool:
        return _key(request) in self.optional

    def followed(self, requests: Iterable[MetricRequest]) -> list[MetricRequest]:
        """The requests that are the protocol's."""
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
        requests = parse_metrics(metrics)
        return RequestedMetrics(requests, frozenset(map(_key, requests)) if metrics is None else frozenset())
    left_out: dict[str, list[MetricRequest]] = {}
    allowed = []
    for request in parse_metrics(protocol.metrics):
        reason = _obstacle(request, dataset, directions, phi)
        if reason:
            left_out.setdefault(reason, []).append(request)
        elif len(encoders) != 1 or request.spec.setting("scores_from") != OWN_SCORES:
            allowed.append(request)
        else:
            # DCGcm takes the one relevance encoder that is given, instead of the model's own scores.
            own_scores, encoder = f"scores_from={OWN_SCORES}", f"scores_from={next(iter(encoders))}"
            options = tuple(encoder if option == own_scores else option for option in request.spec.options)
            allowed.append(replace(request, spec=replace(request.spec, options=options)))
    further = [] if metrics is None else parse_metrics(metrics)
    of_protocol = frozenset(map(_key, allowed))
    added = [str(request) for request in further if _key(request) not in of_protocol]
    notes = []
    for reason, obstructed in left_out.items():
        cutoffs: dict[str, list[str]] = {}  # those of a metric together: NCS[cider]@1,5,10
        for request in obstructed:
            base = str(replace(request, spec=replace(request.spec, cutoff=None)))
            cutoffs.setdefault(base, []).extend([] if request.spec.cutoff is None else [str(request.spec.cutoff)])
        listed = ", ".join(f"{base}@{','.join(numbers)}" if numbers else base for base, numbers in cutoffs.items())
        notes.append(f"left out of the protocol {protocol.name}, {reason}: {listed}")
    if added:
        notes.append(f"not part of the protocol {protocol.name}: {', '.join(added)}")
    requests = parse_metrics([*allowed, *further])
    return RequestedMetrics(requests, of_protocol - frozenset(map(_key, further)), of_protocol, tuple(notes))


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


def follow_in_study(
    options: RobustnessOptions, metrics: Metrics, *, without: Collection[str] = ()
) -> tuple[Protocol | None, RobustnessOptions, Metrics]:
    """The protocol of a robustness study, if it follows one, with the options and metrics that it prescribes.

    ``without`` names options that its inputs do not allow.
    """
    protocol = find_protocol(options.protocol, "robustness")
    if protocol is None:
        return None, options, metrics
    if prescribed := protocol.setting("robustness", "metrics"):
        metrics = parse_metrics([*prescribed, *([] if metrics is None else parse_metrics(metrics))])
    return protocol, protocol.applied("robustness", options, without=without), metrics


def study_record(options: RobustnessOptions, metrics: Iterable[str]) -> dict[str, Any]:
    """What a robustness study stores of the protocol that it follows."""
    protocol = find_protocol(options.protocol, "robustness")
    if protocol is None:
        return {}
    prescribed = {_key(request) for request in parse_metrics(protocol.setting("robustness", "metrics") or metrics)}
    requests = [request for request in parse_metrics(metrics) if _key(request) in prescribed]
    return {"protocol": protocol.record("robustness", requests, options)}


def require_perturbations(protocol: Protocol | None, names: Iterable[str]) -> None:
    """Raise for a perturbation that is not among the protocol's; of ready-made variants, variants in brackets count."""
    allowed = (() if protocol is None else protocol.setting("robustness", "perturbations")) or ()
    for name in names if allowed else ():
        if protocol is not None and name not in (*allowed, *(other.partition("[")[0] for other in allowed)):
            raise protocol.contradiction("perturbations", name, allowed)

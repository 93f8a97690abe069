"""A paper's protocol: the metrics it prints and the conventions behind them, to be followed by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, TypeVar

from crosslens.core import FactList, Options, Presented, Registry, Section, Text, UsageError, argument, json_form
from crosslens.metrics import MetricRequest, family_of

Chosen = TypeVar("Chosen", bound=Options)

COMMANDS = ("evaluate", "robustness", "explain", "granularity", "agreement", "curve")
"""What can follow a protocol."""


class Convention(NamedTuple):
    """One thing a paper settles: what, how, and a plain sentence; ``commands`` are those it matters to."""

    key: str
    value: str
    about: str
    commands: tuple[str, ...] = ("evaluate",)


@dataclass(frozen=True)
class Protocol:
    """How a paper evaluates.

    ``metrics`` are those of an evaluation; ``phi`` says which words each φ among them compares. ``settings`` are, per
    command (:data:`COMMANDS`), the options that the paper settles: what a user passes must not contradict them. A
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
        """What the paper settles for an option of a command; None if nothing."""
        return self.settings[command].get(key)

    def applied(self, command: str, options: Chosen, without: Collection[str] = ()) -> Chosen:
        """The options with what the paper settles (``without`` some); what contradicts it and is no default raises."""
        defaults = {entry.name: entry.default for entry in fields(options)}
        settled = {key: value for key, value in self.settings[command].items() if key in defaults.keys() - set(without)}
        for key, value in settled.items():
            if getattr(options, key) not in (defaults[key], value):
                raise self.contradiction(key, getattr(options, key), value)
        return replace(options, **settled)

    def contradiction(self, key: str, given: Any, value: Any) -> UsageError:
        """The error for an option that the paper settles otherwise."""
        settled = value if isinstance(value, str) else ", ".join(value) if isinstance(value, tuple) else str(value)
        passed = given if isinstance(given, str) else ", ".join(given) if isinstance(given, tuple) else given
        return UsageError(
            f"{argument(key, passed)} contradicts the protocol {self.name}, which has {settled}",
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
        named: dict[str, None] = {}
        variants: dict[str, dict[str, None]] = {}
        for spec in (request.spec for request in requests):
            similarity = family_of(spec).value_of(spec, "φ") if family_of(spec).graded else None
            named |= {} if similarity is None else {similarity: None}
            if spec.options:
                variants.setdefault(spec.family, {})[", ".join(spec.options)] = None
        settled = self.setting(command, "phi") or ()
        named |= dict.fromkeys([settled] if isinstance(settled, str) else settled)
        return {
            "name": self.name,
            "paper": self.paper,
            "phi": list(named),
            "tokens": {name: self.phi[name] for name in named if name in self.phi},
            "metrics": list(map(str, requests)),
            "variants": {family: list(options) for family, options in variants.items()},
            "settings": json_form(settings),
            "conventions": [
                {"key": convention.key, "value": convention.value, "about": convention.about}
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
        known = ", ".join(entry.name for entry in PROTOCOLS if command in entry.value.settings)
        raise UsageError(
            f"the protocol {name} says nothing about {command}",
            fix=f"drop {argument('protocol')}, or choose from {known}" if known else f"drop {argument('protocol')}",
            option="protocol",
        )
    return protocol


@dataclass(frozen=True)
class ProtocolList(Presented):
    """Protocols, a line each; one alone in full: its metrics, what it sets in which command, every convention."""

    protocols: tuple[Protocol, ...]

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "Protocols"

    def sections(self, **options: Any) -> Iterator[Section]:
        """Names with their papers, or one protocol."""
        if len(self.protocols) > 1:
            listed = FactList(tuple((entry.name, f"{entry.summary} {entry.paper}") for entry in self.protocols))
            yield Section("", (listed, Text.of("Without --protocol, crosslens follows its own conventions.")))
            return
        (protocol,) = self.protocols
        rows = [("metrics", ", ".join(protocol.metrics))]
        rows += [(f"φ = {name}", f"tokens: {tokens}") for name, tokens in protocol.phi.items()]
        for command, settings in protocol.settings.items():
            values = {
                key: ", ".join(map(str, value)) if isinstance(value, tuple) else value
                for key, value in settings.items()
            }
            rows.append((command, "; ".join(f"{key} = {value}" for key, value in values.items())))
        rows += [(convention.key, f"{convention.value}: {convention.about}") for convention in protocol.conventions]
        yield Section(f"{protocol.name}: {protocol.paper}", (FactList(tuple(rows), protocol.summary),))

    def as_dict(self) -> dict[str, Any]:
        """All there is of each."""
        listed = [
            {
                "name": protocol.name,
                "paper": protocol.paper,
                "summary": protocol.summary,
                "metrics": list(protocol.metrics),
                "tokens": dict(protocol.phi),
                "settings": {command: dict(settings) for command, settings in protocol.settings.items()},
                "conventions": [convention._asdict() for convention in protocol.conventions],
            }
            for protocol in self.protocols
        ]
        return {"protocols": listed}


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
        """That of the result."""
        return self.result.title

    def sections(self, **options: Any) -> Iterator[Section]:
        """Those of the result, then the protocol."""
        yield from self.result.sections(**options)
        yield Section("", (protocol_facts(self.record),))

    def as_dict(self) -> dict[str, Any]:
        """That of the result, and the protocol."""
        return {**self.result.as_dict(), "protocol": dict(self.record)}

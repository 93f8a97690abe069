"""``crosslens protocols``: the papers' protocols, and what other commands print of the one they follow."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import crosslens.core as core
import crosslens.pipeline as pipeline
from crosslens.cli.flags import command

PROTOCOL_HELP = "Follow a paper and say so beside every figure: {} (see crosslens protocols)."


@command("crosslens protocols", "crosslens protocols five", "crosslens protocols --json", reads_files=False)
def protocols(
    name: Annotated[str | None, typer.Argument(help="Describe this protocol in full.")] = None,
) -> pipeline.ProtocolList:
    """List the papers' protocols: metrics and conventions."""
    chosen = pipeline.PROTOCOLS if name is None else [pipeline.PROTOCOLS[name]]
    return pipeline.ProtocolList(tuple(entry.value for entry in chosen))


def with_protocol(result: core.Presented, record: dict[str, Any] | None) -> core.Presented:
    """The result, and under it the protocol that it follows."""
    return result if record is None else pipeline.ProtocolResult(result, record)


def followed(name: str | None, command: str) -> tuple[pipeline.Protocol | None, dict[str, Any] | None]:
    """The protocol that a command follows, and what its result says of it."""
    protocol = pipeline.find_protocol(name, command)
    return protocol, None if protocol is None else protocol.record(command)

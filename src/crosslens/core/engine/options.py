"""The flags that choose an engine."""

from __future__ import annotations

from dataclasses import dataclass

from crosslens.core.errors import UsageError, argument
from crosslens.core.options import Options, option

LOCAL, RAY = "local", "ray"


@dataclass(frozen=True)
class EngineOptions(Options):
    """Where the work runs, which changes how fast the result comes and never the result."""

    engine: str = option(
        LOCAL,
        "Where the work runs: in this process, or in tasks on a Ray cluster.",
        metavar="local|ray",
        choices=(LOCAL, RAY),
    )
    ray_address: str | None = option(
        None,
        "For --engine ray, the cluster's head, or auto. [default: $RAY_ADDRESS, or a Ray of its own on this machine]",
        metavar="HOST:PORT",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ray_address is not None and self.engine != RAY:
            problem = f"{argument('ray_address')} requires {argument('engine', RAY)}"
            raise UsageError(problem, fix=f"add {argument('engine', RAY)}, or drop the address", option="ray_address")

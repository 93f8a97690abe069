# Written by scripts/generate_reference.py from what @accepts_options names: change that, run `make docs`.

from typing import TypedDict

class WorkloadKeywords(TypedDict, total=False):
    device: str
    nodes: int
    precision: str
    depth: int
    queries: int | None
    network: float
    storage: float

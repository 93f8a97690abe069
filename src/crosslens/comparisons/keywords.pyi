# Written by scripts/generate_reference.py from what @accepts_options names: change that, run `make docs`.

from typing import TypedDict

class PermutationKeywords(TypedDict, total=False):
    primary: str | None
    correction: str
    permutations: int
    seed: int

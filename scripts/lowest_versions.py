"""Print the lowest versions of an extra that pyproject.toml allows, one ``name==version`` per line.

``pip install --constraint`` takes the output; ``make test-lowest`` makes an environment of it.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
_LOWER_BOUND = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*>=\s*([0-9][0-9A-Za-z.]*)")


def lowest_versions(extra: str) -> list[str]:
    """The constraints of an extra, those of the extras that it includes too."""
    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    constraints: list[str] = []
    for requirement in extras[extra]:
        if own := re.match(r"crosslens\[([^]]+)\]", requirement):
            constraints += [line for name in own[1].split(",") for line in lowest_versions(name)]
        elif bound := _LOWER_BOUND.match(requirement):
            constraints.append(f"{bound[1]}=={bound[2]}")
        else:
            raise SystemExit(f"pyproject.toml: {requirement!r} of the extra {extra!r} has no lower bound")
    return constraints


if __name__ == "__main__":
    for extra in sys.argv[1:]:
        print(*lowest_versions(extra), sep="\n")

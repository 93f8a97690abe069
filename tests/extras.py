"""Modules of tests that need packages of an extra."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


def skip_without(extra: str, *packages: str) -> None:
    """Skip the calling module where a package is missing, without importing any of them.

    Every process collects every module, and one of them runs its tests: transformers and peft take seconds.
    """
    if missing := [package for package in packages if find_spec(package) is None]:
        pytest.skip(f"{', '.join(missing)}: pip install 'crosslens[{extra}]'", allow_module_level=True)

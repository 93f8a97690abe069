"""What tests share: where the optional real data lies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A loaded machine is slow, not wrong.
# The same change gets the same verdict twice; `make test-all` looks for new examples on every run.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("exploring", deadline=None)
settings.load_profile("repeatable")

_DEFAULT = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real datasets, or a skip: they are not the project's to ship."""
    folder = Path(os.environ.get("CROSSLENS_DATA", _DEFAULT))
    if not folder.is_dir():
        pytest.skip("real datasets are not here: set CROSSLENS_DATA to their folder")
    return folder

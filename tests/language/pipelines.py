"""Which tests need a spaCy pipeline, and which need the one that the documented parses come from."""

from __future__ import annotations

import pytest

from crosslens.core import MissingExtraError
from crosslens.language import find_pipeline
from crosslens.language.spacy_pipeline import PIPELINES, Pipeline


def installed() -> Pipeline | None:
    try:
        return find_pipeline()
    except MissingExtraError:
        return None


_FOUND = installed()

needs_a_pipeline = pytest.mark.skipif(_FOUND is None, reason="no spaCy pipeline is installed")
needs_the_small_pipeline = pytest.mark.skipif(
    _FOUND is None or _FOUND.name not in PIPELINES[:2] or not _FOUND.version.startswith("3.8."),
    reason=f"graphs were checked for parses of en_core_web_sm 3.8, not of {_FOUND}",
)

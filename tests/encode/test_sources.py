"""Where vectors come from: one kind of input, refused in one wording."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crosslens.core import UsageError
from crosslens.encode import require_one_source


@pytest.mark.parametrize(
    ("inputs", "kind"),
    [
        ({"model": "tiny", "embeddings": (None, None)}, "model"),
        ({"model": None, "embeddings": (np.zeros((0, 2)), np.ones((1, 2)))}, "embeddings"),
        ({"scores": np.eye(2), "runs": ()}, "scores"),
        ({"runs": ("a.run",), "scores": ""}, "runs"),
    ],
)
def test_the_source_that_is_given(inputs: dict[str, Any], kind: str) -> None:
    assert require_one_source(**inputs) == kind


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({"model": "tiny", "embeddings": (None, np.eye(2))}, "both embeddings and a model\n  fix: pass one of them"),
        ({"scores": np.eye(2), "runs": ["a.run"]}, "both scores and runs"),
        ({"model": None, "scores": None}, "nothing to evaluate\n  fix: name a model"),
        ({"embeddings": (np.eye(2), None)}, "no caption embeddings\n  fix: pass captions="),
    ],
)
def test_none_or_several_are_refused(inputs: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        require_one_source("name a model", **inputs)

"""A run by itself: its names, and how it prints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crosslens.core import ConflictError
from crosslens.values import BOTH, MetricValues, Run, split_name


def values(name: str, mean: float) -> MetricValues:
    return MetricValues(name, ("q1", "q2"), np.array([mean, np.nan]), np.arange(2), mean, mean / 2, float("nan"))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("t2i/Hit@5", ("t2i", "Hit@5")),
        ("Rsum", (BOTH, "Rsum")),
        ("t2i/NCS[embed:some/model]@10", ("t2i", "NCS[embed:some/model]@10")),
        ("Nsum[embed:some/model]", (BOTH, "Nsum[embed:some/model]")),
    ],
)
def test_names(name: str, parts: tuple[str, str], tmp_path: Path) -> None:
    assert split_name(name) == parts
    loaded = Run.load(Run("one", {name: values(name, 0.5)}).save(tmp_path / "run"))
    assert loaded[name].values.tolist()[:1] == [0.5]


def test_a_run_prints_its_figures() -> None:
    run = Run("my model", {name: values(name, mean) for name, mean in (("t2i/Hit@1", 0.25), ("Rsum", 312.5))})
    assert str(run).splitlines()[:5] == [
        "my model",
        "",
        "metric        text → image",
        "Hit@1         25.0",
        "Rsum (both)   312.5",
    ]
    assert "In percent, Rsum as a sum of percentages." in str(run)
    assert repr(run) == "Run('my model', 2 metrics)"
    noted = Run("my model", run.values, provenance={"notes": ["equal scores"]})
    assert str(noted) == f"{run}\n\nnote: equal scores"
    assert "equal scores" in noted._repr_html_()


def test_a_different_run_is_not_replaced(tmp_path: Path) -> None:
    first, second = (Run("r", {"Rsum": values("Rsum", mean)}) for mean in (1.0, 2.0))
    first.save(tmp_path / "run")
    first.save(tmp_path / "run")  # the same run again is fine
    with pytest.raises(ConflictError, match=r"already contains a different run\n  fix: .* pass overwrite=True"):
        second.save(tmp_path / "run")
    second.save(tmp_path / "run", overwrite=True)
    assert Run.load(tmp_path / "run").fingerprint == second.fingerprint

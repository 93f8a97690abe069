"""Comparisons as a person reads them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crosslens.core.run import Run
from crosslens.pipeline.compare import compare
from crosslens.report.comparison import comparison_text


def other(run: Run) -> Run:
    better = {
        name: replace(one, values=np.where(np.isnan(one.values), np.nan, 1.0), mean=1.0)
        for name, one in run.values.items()
        if "Hit" in name or "MedR" in name
    }
    return replace(run, name="other", values={**run.values, **better})


def test_a_comparison(run: Run) -> None:
    text = comparison_text(compare(run, other(run), metrics="t2i/Hit@1 t2i/MedR", permutations=100), 80)
    lines = text.splitlines()
    assert lines[0] == "other against toy model"
    assert lines[2].split() == ["metric", "toy", "model", "other", "difference", "p", "wins", ":", "losses"]
    assert lines[3].split()[:4] == ["t2i/Hit@1", "37.5", "100.0", "+62.5"]
    assert lines[4].startswith("t2i/MedR ↓ ")
    assert "t2i/MedR, other better: img4#1 9 → 1; img4#0 8 → 1" in text
    assert max(map(len, lines)) <= 80
    for sentence in ("In percent, MedR as a rank.", "↓: lower is better.", "corrected by Holm for 2 tests."):
        assert sentence in text.replace("\n", " ")


def test_many_metrics_leave_the_queries_out(run: Run) -> None:
    text = comparison_text(compare(run, other(run), permutations=50), 80)
    assert "Where they differ most" not in text
    assert "Choose a few metrics" in text

"""Scores that float64 cannot hold exactly are refused: two of them could become equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import InputError

LARGE = 2**53
NAMES = cl.Dataset.of({"a": ["x"], "b": ["y"]})


@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.longdouble])
def test_scores_beyond_float64_are_refused(kind: type) -> None:
    scores = np.full((2, 2), LARGE, kind)
    scores[1, 0] += kind(1)
    if kind is np.longdouble and np.finfo(kind).nmant <= 52:
        pytest.skip("longdouble is float64 here")
    with pytest.raises(InputError, match=r"row 1: the score \d+(.0)? in column 0 cannot be held exactly"):
        cl.evaluate(NAMES, scores=scores, metrics="Hit@1")
    scores[1, 0] = LARGE
    cl.evaluate(NAMES, scores=scores, metrics="Hit@1")


@pytest.mark.parametrize("scores", [[LARGE, LARGE + 1], [0.5, LARGE + 1], [0.5, 10**400], np.array([0, LARGE + 1])])
def test_lists_with_scores_beyond_float64_are_refused(scores: Any) -> None:
    with pytest.raises(InputError, match=r"the score \d+ of item 'b' cannot be held exactly"):
        cl.RankedLists.of({"q": dict(zip("ab", scores, strict=True))})
    with pytest.raises(InputError, match=r"the score \d+ of item 'b' cannot be held exactly"):
        cl.RankedLists.from_rows(["q", "q"], ["a", "b"], scores)
    assert cl.RankedLists.of({"q": {"a": LARGE, "b": 1e300}}).scores.tolist() == [1e300, LARGE]


@pytest.mark.parametrize("score", [str(LARGE + 1), str(-LARGE - 1), "1" + "0" * 400])
def test_files_with_scores_beyond_float64_are_refused(tmp_path: Path, score: str) -> None:
    (tmp_path / "run.json").write_text(f'{{"q": {{"a": 1, "b": {score}}}}}')
    with pytest.raises(InputError, match="query 'q': the number of item 'b' is"):
        cl.read_run(tmp_path / "run.json")
    (tmp_path / "run.trec").write_text(f"q Q0 a 1 {LARGE} s\nq Q0 b 2 {score} s\n")
    with pytest.raises(InputError, match="line 2: the score is"):
        cl.read_run(tmp_path / "run.trec")
    (tmp_path / "run.trec").write_text(f"q Q0 a 1 1e300 s\nq Q0 b 2 {LARGE} s\n")
    assert cl.read_run(tmp_path / "run.trec").scores.tolist() == [1e300, LARGE]

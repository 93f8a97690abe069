"""Tables as a person reads them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from crosslens.core import UnknownNameError
from crosslens.metrics import select_metrics
from crosslens.pipeline import runs_table
from crosslens.values import Run

WHOLE = """\
toy model

metric        image → text            text → image
Hit@1          66.7  [25.0, 100.0]    37.5  [12.5, 62.5]
Recall@5       66.7  [50.0, 75.0]     50.0  [20.0, 80.0]
MedR              1  [1, 2.5]            2  [1, 5]
Rsum (both)   328.1  [300.0, 400.0]

3 image queries (1 more without a relevant item), 8 caption queries.
In percent, MedR as a rank, Rsum as a sum of percentages.
In brackets: 95% intervals over images.
Hit@k: any relevant item in the top k: the “R@k” of most image–text papers.
Recall@k: relevant items in the top k ÷ all relevant items."""


def test_the_whole_table(run: Run) -> None:
    assert run.text().splitlines() == WHOLE.splitlines()


def test_a_run_without_intervals_says_nothing_of_them(run: Run) -> None:
    bare = replace(run, values={"i2t/Hit@1": replace(run["i2t/Hit@1"], low=math.nan, high=math.nan)})
    text = bare.text()
    assert "66.7" in text
    assert "[" not in text
    assert "interval" not in text


def test_selecting(run: Run) -> None:
    assert select_metrics(run, "t2i/Hit@1 MedR") == ["t2i/Hit@1", "i2t/MedR", "t2i/MedR"]
    assert select_metrics(run, "R@1") == ["i2t/Hit@1", "t2i/Hit@1"]
    assert select_metrics(run, "Rsum") == ["Rsum"]
    assert select_metrics(run) == list(run)
    with pytest.raises(UnknownNameError, match="did you mean Hit@1") as error:
        select_metrics(run, "Hti@1")
    assert error.value.exit_code == 2


def test_models_side_by_side(run: Run) -> None:
    without_medr = replace(
        run, name="other", values={name: values for name, values in run.values.items() if "MedR" not in name}
    )
    table = runs_table([run, without_medr], "Hit@1 MedR Rsum")
    assert table.header == ("model", "i2t Hit@1", "t2i Hit@1", "Rsum")
    assert tuple(map(str, table.rows[1])) == ("other", "66.7", "37.5", "328.1")


@pytest.mark.parametrize(("metric", "meant"), [("hit@1", "Hit@1"), ("T2I/HIT@1", "t2i/Hit@1"), ("RSUM", "Rsum")])
def test_a_name_in_another_case_is_the_one_that_it_can_only_mean(run: Run, metric: str, meant: str) -> None:
    assert select_metrics(run, metric) == select_metrics(run, meant)
    with pytest.raises(UnknownNameError, match=rf"did you mean {meant[:-1]}"):
        select_metrics(run, metric.replace("1", "").replace("UM", "U") + "x")

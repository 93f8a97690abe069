"""``crosslens sweep`` as a command: what it writes and prints, dry runs, lists, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

pytest.importorskip("torch")

from crosslens.train import plan_sweep, run_sweep
from tests.commands import Call as Call, call as call

from .test_sweep import copy as copy, finished, home as home, words


def test_every_output_says_the_same(call: Call, home: Path, copy: Path) -> None:
    outcome = call(*words(home, copy, "--json", "--metrics", "Rsum i2t/Hit@1", "--write", copy / "curves.html"))
    assert outcome.code == 0, outcome.err
    table = outcome.json
    assert [row["settings"] for row in table["rows"]][2] == {"loss": "sam-random", "fraction": "0.25"}
    assert table["rows"][2]["baseline"] == {"loss": "triplet", "fraction": "0.25"}
    figure = table["rows"][2]["test"]["Rsum"]
    assert figure["n"] == 3
    stored = json.loads((copy / "sweep.json").read_text())
    assert {name: stored[name] for name in table if name != "files"} == {
        name: value for name, value in table.items() if name != "files"
    }
    csv = pl.read_csv(copy / "table.csv", schema_overrides={"fraction": pl.String})
    line = csv.filter((pl.col("loss") == "sam-random") & (pl.col("fraction") == "0.25"), figure="test Rsum").to_dicts()
    assert line[0]["mean"] == figure["mean"]
    assert line[0]["p"] == figure["against_baseline"]["p"]
    assert line[0]["p_over_queries"] == figure["against_baseline"]["over_queries"]["p"]
    assert pl.read_csv(copy / "trainings.csv").height == 12
    latex = (copy / "table.tex").read_text()
    assert "\\\\\n & sam-random & 0.25 & 3 & " in latex
    page = (copy / "sweep.html").read_text()
    for text in ("sam-random", f"{figure['mean']:.1f}", "95% t intervals over seeds", "cannot give p below 0.25"):
        assert text in page
    assert 'href="loss%3Dtriplet%2Cfraction%3D1/seed-0/curves.html"' in page
    assert "share of the training images" in page
    assert (copy / "curves.html").exists()


def test_the_text_fits_a_terminal(home: Path) -> None:
    text = finished(home).text(80)
    assert max(map(len, text.splitlines())) <= 80
    assert "loss         fraction" in text
    assert "against loss=triplet with the same other settings" in text
    assert "3 seeds cannot give p below 0.25" in text
    single = run_sweep(
        plan_sweep(home / "small.toml", home / "data", ["loss=triplet", "fraction=1"], seeds=1), home / "finished"
    ).text(80)
    assert "there are no intervals" in single
    assert "difference" not in single


def test_a_dry_run_lists_and_writes_nothing(call: Call, home: Path, tmp_path: Path) -> None:
    output = tmp_path / "sweep"
    outcome = call(*words(home, output, "--dry-run"))
    assert outcome.code == 0, outcome.err
    assert not output.exists()
    assert "loss=sam-random,fraction=1/seed-2" in outcome.out
    assert "12 of 12 trainings to run" in outcome.out
    listed = call(*words(home, home / "finished", "--dry-run", "--json", seeds="4")).json["trainings"]
    assert [entry["seed"] for entry in listed if not entry["finished"]] == [3, 3, 3, 3]
    assert [entry["steps"] for entry in listed][-4:] == [2, 10, 2, 10]


def test_names_of_losses(call: Call) -> None:
    text = call("sweep", "--list-losses").out
    assert "sam-random " in text
    assert "+ sam (sampling" in text
    losses = call("sweep", "--list-losses", "--json").json["losses"]
    assert losses["sam-hard"][1] == {"kind": "sam", "sampling": "hard", "tau": 3.0, "weight": 1.0}
    assert losses["infonce"] == [{"kind": "infonce"}]


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (("--set", "fracton=0.1"), 2, "did you mean fraction"),
        (("--set", "epochs=few"), 2, "'few' is not a whole number"),
        (("--set", "loss="), 2, "loss= names no value"),
        (("--set", "loss=triplet", "--set", "loss=infonce"), 2, "loss is set twice"),
        (("--set", "seed=1"), 2, "--seeds"),
        (("--set", "threads=1,2"), 2, "--threads"),
        (("--seeds", "0"), 2, "seeds are '0'"),
        (("--seeds", "1.5"), 2, "--seeds 5"),
        (("--metrics", "NCS[cidr]@5"), 2, "did you mean cider"),
        (("--metrics", "Hti@1"), 2, "Hit"),
        (("--correction", "bonferoni"), 2, "correction"),
        (("--device", "gpu"), 2, "cannot use the device 'gpu'"),
        (("--jobs", "0"), 2, "--jobs"),
        (("--write", "curves.doc"), 2, "unknown form .doc"),
    ],
)
def test_wrong_calls(
    call: Call,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    more: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = call("sweep", home / "small.toml", "--data", home / "data", "-o", "sweep", *more)
    assert outcome.code == code
    assert message in outcome.err
    assert not list(tmp_path.iterdir())


def test_what_must_be_given(call: Call, home: Path, tmp_path: Path) -> None:
    assert "no data" in call("sweep", home / "small.toml", "-o", tmp_path / "s").err
    assert "no output folder" in call("sweep", home / "small.toml", "--data", home / "data").err
    assert "no recipe" in call("sweep", "--data", home / "data", "-o", tmp_path / "s").err

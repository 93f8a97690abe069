"""``crosslens robustness`` on drawn scenes with the built-in model: tables, show, plot, JSON, mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crosslens.values import Dataset
from tests.cli.conftest import Call

NAMES = "char_swap,antonym,shuffle_trigrams"
QUICK = ("--permutations", "50", "--resamples", "50")


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("PIL")
    pytest.importorskip("onnxruntime")
    from crosslens.synth import write_scenes

    folder = tmp_path_factory.mktemp("robust") / "scenes"
    write_scenes(folder, 16, seed=7, version="v0")
    return folder


@pytest.fixture(scope="module")
def study(scenes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that is written once."""
    from crosslens.cli import main

    folder = scenes.parent / "rob"
    words = ("robustness", "--dataset", scenes, "--model", "tiny", "--perturbations", NAMES, *QUICK)
    assert main([str(word) for word in (*words, "-o", folder)]) == 0
    return folder


def test_tables_fit_80_columns(call: Call, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosslens.cli.console.terminal_width", lambda: 80)
    every = "models drops applied seeds metrics changes groups overlap words captions"
    outcome = call("show", study, "--tables", every)
    assert outcome.code == 0
    assert max(map(len, outcome.out.splitlines())) <= 80
    for title in ("Drop of Rsum", "Every metric", "Where changed queries go", "Do perturbations hit the same queries?"):
        assert title in outcome.out


def test_the_command_again_does_nothing_again(call: Call, scenes: Path, study: Path) -> None:
    words = ("robustness", "--dataset", scenes, "--model", "tiny", "--perturbations", NAMES, *QUICK, "-o", study)
    stamps = {file: file.stat().st_mtime_ns for file in study.rglob("*.*") if file.is_file()}
    again = call(*words, "--json")
    assert again.code == 0
    assert stamps == {file: file.stat().st_mtime_ns for file in study.rglob("*.*") if file.is_file()}
    assert again.json["models"] == ["tiny"]
    assert again.json["perturbations"] == NAMES.split(",")
    assert {row["metric"] for row in again.json["drops"]} >= {"Rsum", "t2i/Hit@1", "i2t/Hit@1", "t2i/Rsum"}


def test_runs_inside_are_ordinary_runs(call: Call, study: Path) -> None:
    assert call("show", study / "tiny" / "char_swap", "--by", "applied", "--metrics", "t2i/Hit@1").code == 0
    compared = call("compare", study / "tiny" / "original", study / "tiny" / "char_swap", "--json")
    assert compared.json["others"] == ["tiny, char_swap"]


def test_heat_map(call: Call, study: Path, tmp_path: Path) -> None:
    written = call("show", study, "--write", tmp_path / "study.html", "--write", tmp_path / "study.md")
    assert written.code == 0, written.err
    page = (tmp_path / "study.html").read_text(encoding="utf-8")
    for words in ("shuffle_trigrams", "Where changed queries go", "Every metric: tiny"):
        assert words in page
        assert words in (tmp_path / "study.md").read_text(encoding="utf-8")
    assert "Every metric" not in written.out, "only by its name"
    assert call("plot", study, "--write", tmp_path / "heat.svg").code == 0
    assert "char_swap, tiny" in (tmp_path / "heat.svg").read_text(encoding="utf-8")
    assert (
        call("plot", study, "--metric", "t2i/Hit@1", "--write", tmp_path / "hit.html", "--json").json["metric"]
        == "t2i/Hit@1"
    )
    wrong = call("plot", study, "--metric", "t2i/Hit@7", "--write", tmp_path / "no.html")
    assert wrong.code == 2
    assert "did you mean" in wrong.err


def test_ready_made_variants(call: Call, study: Path, scenes: Path, tmp_path: Path) -> None:
    dataset = Dataset.load(scenes)
    random = np.random.default_rng(0)
    np.save(tmp_path / "img.npy", random.standard_normal((16, 8)).astype(np.float32))
    np.save(tmp_path / "cap.npy", random.standard_normal((len(dataset.caption_ids), 8)).astype(np.float32))
    (tmp_path / "variants").mkdir()
    np.save(tmp_path / "variants" / "char_swap.npy", random.standard_normal((len(dataset.caption_ids), 8), np.float32))
    np.save(tmp_path / "variants" / "blur@3.npy", random.standard_normal((16, 8), np.float32))
    vectors = ("--image-embeddings", tmp_path / "img.npy", "--caption-embeddings", tmp_path / "cap.npy")
    words = ("robustness", "--dataset", scenes, "--variants", tmp_path / "variants", *vectors, *QUICK)
    outcome = call(*words, "--json")
    assert outcome.code == 0, outcome.err
    assert sorted(outcome.json["perturbations"]) == ["blur@3", "char_swap"]
    (tmp_path / "none").mkdir()
    wrong = call("robustness", "--dataset", scenes, "--variants", tmp_path / "none", *vectors)
    assert wrong.code == 3
    assert "no variants here" in wrong.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--model", "tiny", "--tables", "drop"), "did you mean drops"),
        (("--model", "tiny", "--perturbations", "char_swip"), "did you mean char_swap"),
        (("--model", "tiny", "--write", "heat.gif"), "unknown form .gif"),
        (("--model", "tiny", "--option", "k"), "KEY=VALUE"),
        ((), "nothing to evaluate"),
    ],
)
def test_mistakes(call: Call, scenes: Path, words: tuple[str, ...], message: str) -> None:
    refused = call("robustness", "--dataset", scenes, *words)
    assert refused.code == 2
    assert message in refused.err


def test_drops_by_a_column_of_a_table(call: Call, study: Path, scenes: Path, tmp_path: Path) -> None:
    import polars as pl

    queries = pl.read_parquet(study / "queries.parquet")
    ids = queries["query"].unique().sort().to_list()
    levels = {query: "easy" if row < 8 else "hard" for row, query in enumerate(ids)}
    table = tmp_path / "levels.parquet"
    pl.DataFrame({"caption": list(levels), "difficulty": list(levels.values())}).write_parquet(table)
    groups = call("show", study, "--columns", table, "--by", "difficulty", "--json").json["groups"]
    assert len(groups) == 2 * len(NAMES.split(","))
    for row in groups:
        of_group = queries.filter(perturbation=row["perturbation"]).filter(
            pl.col("query").is_in([query for query in ids if levels[query] == row["group"]])
        )
        changes = [after - before for before, after in of_group.select("hits_before", "hits_after").iter_rows()]
        assert row["change"] == pytest.approx(100 * sum(changes) / len(changes))
        assert -300 <= row["low"] <= row["change"] <= row["high"] <= 300, (
            "hits have a range, so eight captions have an interval"
        )
    words = ("robustness", "--dataset", scenes, "--model", "tiny", "--perturbations", NAMES, *QUICK, "-o", study)
    printed = call(*words, "--columns", table, "--by", "difficulty")
    assert printed.code == 0, printed.err
    assert "by difficulty" in " ".join(printed.out.split())
    assert "--by and --columns require each other" in call(*words, "--by", "difficulty").err

"""Every export is read back by the program it is for, or by one that knows the format."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from crosslens.core import ConflictError, UnknownNameError, UsageError
from crosslens.report import render_export, write_export
from crosslens.values import Run


def test_trec_reads_back_as_lists(run: Run, tmp_path: Path) -> None:
    from crosslens.data import read_run

    first, second = write_export(render_export(run, "trec"), tmp_path / "model.run.gz")
    assert (first.name, second.name) == ("model-i2t.run.gz", "model-t2i.run.gz")
    lists = read_run(first)
    kept = run.rankings["i2t"]
    assert lists.query_ids == kept.query_ids
    assert lists.system == "toy_model"
    for row, query in enumerate(kept.query_ids):
        items = lists.items[lists.offsets[row] : lists.offsets[row + 1]]
        assert [lists.item_ids[item] for item in items] == [item for item, _ in kept.top(query)]
    assert gzip.decompress(first.read_bytes()).decode().splitlines()[0] == "img1 Q0 img1#0 1 0.9 toy_model"


def test_trec_has_ids_with_blanks_that_are_read_back(run: Run, tmp_path: Path) -> None:
    from crosslens.data import read_run

    names = ("img 1", "%%img2", "a\tb\n", "img4")
    spaced = replace(run, rankings={"i2t": replace(run.rankings["i2t"], query_ids=names)})
    (file,) = write_export(render_export(spaced, "trec"), tmp_path / "model.run")
    assert read_run(file).query_ids == names


@pytest.mark.slow
def test_ranx_itself_reads_its_file(run: Run, tmp_path: Path) -> None:
    ranx = pytest.importorskip("ranx")
    (path,) = write_export(render_export(run, "ranx", direction="t2i"), tmp_path / "model.json")
    theirs = ranx.Run.from_file(str(path), kind="json")
    kept = run.rankings["t2i"]
    assert set(theirs.keys()) == set(kept.query_ids)
    for query in kept.query_ids:
        assert {item: pytest.approx(score) for item, score in kept.top(query)} == dict(theirs[query])


def test_a_run_without_lists_cannot_become_lists(run: Run) -> None:
    with pytest.raises(UsageError, match="holds no ranked lists"):
        render_export(replace(run, rankings={}), "trec")


def test_clip_benchmark(run: Run) -> None:
    content = json.loads(render_export(run, "clip-benchmark")[""])
    assert content["task"] == "zeroshot_retrieval"
    assert (content["dataset"], content["model"]) == ("toys", "toy model")
    assert content["metrics"] == {
        "text_retrieval_recall@1": run["i2t/Hit@1"].mean,
        "image_retrieval_recall@1": run["t2i/Hit@1"].mean,
    }
    with pytest.raises(UsageError, match="has no Hit@k"):
        render_export(run, "clip-benchmark", metrics="Recall@5")


def test_mteb(run: Run) -> None:
    files = render_export(run, "mteb")
    assert set(files) == {"i2t", "t2i"}
    content = json.loads(files["t2i"])
    assert content["task_name"] == "toysT2IRetrieval"
    assert content["dataset_revision"] == "abc"
    (entry,) = content["scores"]["test"]
    assert entry["main_score"] == entry["cv_recall_at_1"] == entry["hit_rate_at_1"] == run["t2i/Hit@1"].mean
    assert entry["recall_at_5"] == run["t2i/Recall@5"].mean
    assert entry["hf_subset"] == "default"
    with pytest.raises(UsageError, match="none of the metrics mteb knows"):
        render_export(run, "mteb", metrics="MedR")


def test_csv_reads_back(run: Run) -> None:
    table = pl.read_csv(io.StringIO(render_export([run, replace(run, name='a "quoted", name')], "csv")[""]))
    assert table.height == 2 * len(run)
    row = table.row(
        by_predicate=(pl.col("run") == "toy model") & (pl.col("metric") == "MedR") & (pl.col("direction") == "i2t"),
        named=True,
    )
    assert (row["mean"], row["n"], row["excluded"], row["statistic"]) == (1.0, 3, 1, "median")
    assert set(table["run"]) == {"toy model", 'a "quoted", name'}
    assert table.filter(pl.col("metric") == "Rsum")["direction"].to_list() == ["both", "both"]


def test_markdown(run: Run) -> None:
    lines = render_export(run, "markdown", metrics="Hit@1 MedR")[""].splitlines()
    assert lines == [
        "| metric | image → text | text → image |",
        "| --- | --- | --- |",
        "| Hit@1 | 66.7 [25.0, 100.0] | 37.5 [12.5, 62.5] |",
        "| MedR | 1 [1, 2.5] | 2 [1, 5] |",
    ]
    several = render_export([run, replace(run, name="a|b")], "markdown", metrics="t2i/Hit@1")[""].splitlines()
    assert several == ["| model | t2i Hit@1 |", "| --- | ---: |", "| toy model | 37.5 |", "| a\\|b | 37.5 |"]


def test_latex_is_balanced_and_escaped(run: Run) -> None:
    text = render_export([replace(run, name="50%_of & {x}"), run], "latex", metrics="Hit@1")[""]
    assert r"50\%\_of \& \{x\} & 66.7 & 37.5 \\" in text
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 1
    widths = {line.replace(r"\&", "").count("&") for line in text.splitlines() if line.endswith(r"\\")}
    assert widths == {2}
    assert r"image $\rightarrow$ text" in render_export(run, "latex")[""]


def test_unknown_formats_and_directions(run: Run) -> None:
    with pytest.raises(UnknownNameError, match="did you mean latex"):
        render_export(run, "latx")
    with pytest.raises(UnknownNameError, match="unknown direction"):
        render_export(run, "trec", direction="t2t")
    with pytest.raises(UsageError, match="hold one run"):
        render_export([run, run], "trec")


def test_files_that_stand_there_are_kept(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "table.csv"
    target.write_text("mine")
    with pytest.raises(ConflictError, match="already exists"):
        write_export(render_export(run, "csv"), target)
    assert target.read_text() == "mine"
    write_export(render_export(run, "csv"), target, overwrite=True)
    assert target.read_text().startswith("run,")
    assert list(tmp_path.iterdir()) == [target]


def test_a_name_with_dots_keeps_them(run: Run, tmp_path: Path) -> None:
    paths = write_export(render_export(run, "ranx"), tmp_path / "clip.b32.json")
    assert [path.name for path in paths] == ["clip.b32-i2t.json", "clip.b32-t2i.json"]

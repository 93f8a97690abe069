"""``crosslens explain`` over all failures, as a person calls it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import Call

pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
pytest.importorskip("PIL", reason="pip install 'crosslens[scenes]'")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Drawn scenes and two runs over them, the second one better."""
    import numpy as np

    from crosslens.pipeline import EvaluateOptions, InputOptions, Recipe, run_recipe
    from crosslens.synth import write_scenes

    folder = tmp_path_factory.mktemp("explain")
    dataset = write_scenes(folder / "scenes", 16, "colour,object,count", seed=7, workers=1)
    is_own = np.equal.outer(np.arange(len(dataset.image_ids)), dataset.caption_image)
    noise = np.random.default_rng(0).random(is_own.shape)
    for name, bonus in (("worse", 0.3), ("better", 0.8)):
        np.save(folder / f"{name}.npy", (noise + bonus * is_own).astype(np.float32))
        recipe = Recipe(
            dataset=str(folder / "scenes"),
            inputs=InputOptions(scores=str(folder / f"{name}.npy")),
            options=EvaluateOptions(resamples=10, metrics=("Hit@1",)),
        )
        run_recipe(recipe, folder / "runs" / name)
    return folder


def test_all_failures_in_words_in_json_and_as_files(call: Call, root: Path, tmp_path: Path) -> None:
    run, page = root / "runs" / "worse", tmp_path / "failures.html"
    printed = call("explain", run, "--write", page)
    assert printed.code == 0
    for title in ("Causes", "Confused with", "Limits of these facts"):
        assert f"\n{title}\n" in printed.out
    text = page.read_text(encoding="utf-8")
    assert "Confused concepts" in text
    assert "Causes" in text
    assert "src=" not in text.split("<body>")[1]
    content = call("explain", run, "--json", "-o", tmp_path / "why").json
    assert content["files"] == [str(tmp_path / "why")]
    failures = pl.read_parquet(tmp_path / "why" / "failures.parquet")
    assert failures.height == content["failures"]
    assert {row["cause"]: row["main"] for row in content["causes"]} == {
        row["cause"]: int((failures["main_cause"] == row["cause"]).sum()) for row in content["causes"]
    }
    stored = json.loads((tmp_path / "why" / "overview.json").read_text())
    assert stored["metrics"] == content["metrics"]
    lifted = call("explain", run, "--depth", "3", "--size-base", "min", "--json").json
    assert lifted["settings"]["base"] == "min"
    assert lifted["confusions"][0]["count"] >= max(row["count"] for row in content["confusions"])
    assert any(row["expected"] == row["shown"] for row in lifted["confusions"])
    assert call("explain", run, "-o", tmp_path / "why").code == 0
    refused = call("explain", run, "--depth", "6", "-o", tmp_path / "why")
    assert refused.code == 5
    assert "--overwrite" in refused.err


def test_two_runs(call: Call, root: Path, tmp_path: Path) -> None:
    words = ["explain", root / "runs" / "worse", "--compare", root / "runs" / "better"]
    content = call(*words, "--json", "-o", tmp_path / "both").json
    assert content["failed"]["first"] > content["failed"]["second"]
    assert content["failed"]["difference"] < 0
    assert (tmp_path / "both" / "comparison.json").exists()


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--query", "1", "--compare", "x"), 2, "all failures"),
        (("--write", "failures.docx"), 2, ".svg"),
        (("--direction", "t2x"), 2, "t2i"),
        (("--compare", "nowhere"), 3, "nowhere"),
    ],
)
def test_mistakes(call: Call, root: Path, words: tuple[str, ...], code: int, says: str) -> None:
    outcome = call("explain", root / "runs" / "worse", *words)
    assert (outcome.code, says in outcome.err) == (code, True), outcome.err


def test_several_runs_are_one_table(call: Call, root: Path, tmp_path: Path) -> None:
    runs = [root / "runs" / name for name in ("worse", "better")]
    files = {ending: tmp_path / f"table.{ending}" for ending in ("csv", "tex", "md")}
    printed = call("explain", *runs, *(word for file in files.values() for word in ("--write", file)))
    assert printed.code == 0
    assert "Concept metrics, every object" in printed.out
    content = call("explain", *runs, "--json").json
    single = call("explain", runs[1], "--json").json
    rows = {(row["run"], row["scope"], row["metric"]): row for row in content["metrics"]}
    for row in single["metrics"]:
        assert {key: rows["better", row["scope"], row["metric"]][key] for key in row} == row
    assert [(row["run"], row["failures"]) for row in content["runs"]][1] == ("better", single["failures"])
    texts = {ending: file.read_text(encoding="utf-8") for ending, file in files.items()}
    assert texts["csv"].startswith('run,"fails, % ↓","fails, % ↓ low"')
    assert "\\toprule" in texts["tex"]
    assert "| run | fails, % ↓" in texts["md"]
    for words in (["--query", "1"], ["--compare", runs[0]], ["-o", "x"]):
        refused = call("explain", *runs, *words)
        assert (refused.code, "is for one run" in refused.err) == (2, True)


def test_a_protocol_and_another_size_base_contradict_each_other(call: Call, root: Path, tmp_path: Path) -> None:
    run = root / "runs" / "worse"
    refused = call("explain", run, "--protocol", "expl", "--size-base", "min", "-o", tmp_path / "why")
    assert refused.code == 2
    assert "--size-base min contradicts the protocol expl, which has ground_truth" in refused.err
    assert not (tmp_path / "why").exists()
    same = call("explain", run, "--protocol", "expl", "--size-base", "ground_truth", "--json")
    assert same.json["settings"]["base"] == "ground_truth"


def test_a_protocol_is_named_in_stored_forms(call: Call, root: Path, tmp_path: Path) -> None:
    run = root / "runs" / "worse"
    content = call("explain", run, "--protocol", "expl", "--json", "-o", tmp_path / "why").json
    assert content["protocol"]["settings"] == {"threshold": 1.0, "base": "ground_truth", "areas": "share"}
    stored = json.loads((tmp_path / "why" / "overview.json").read_text())
    assert "The figures follow the protocol expl." in stored["notes"]


@pytest.mark.slow
def test_failures_by_a_column_of_a_table(call: Call, root: Path, tmp_path: Path) -> None:
    run = root / "runs" / "worse"
    content = call("explain", run, "--json", "-o", tmp_path / "why").json
    failures = pl.read_parquet(tmp_path / "why" / "failures.parquet")
    queries = pl.read_parquet(run / "queries.parquet").filter(direction=content["direction"])["query"].to_list()
    levels = {query: "hard" if row % 3 else "easy" for row, query in enumerate(queries)}
    table = tmp_path / "levels.csv"
    pl.DataFrame({"caption": list(levels), "difficulty": list(levels.values())}).write_csv(table)
    groups = call("explain", run, "--columns", table, "--by", "difficulty", "--json").json["groups"]
    assert [row["group"] for row in groups] == ["hard", "easy"]
    for row in groups:
        of_group = [query for query in queries if levels[query] == row["group"]]
        failed = failures.filter(pl.col("query").is_in(of_group))
        assert (row["queries"], row["failures"]) == (len(of_group), failed.height)
        assert row["share"] == pytest.approx(failed.height / len(of_group))
        assert row["object"] == pytest.approx(failed["cause_object"].fill_null(False).mean())
    printed = call("explain", run, "--columns", table, "--by", "difficulty").out
    assert "percent of the group's failures" in " ".join(printed.split())
    assert "--columns requires --by" in call("explain", run, "--columns", table).err

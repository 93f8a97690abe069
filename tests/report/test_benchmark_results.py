"""Results of mteb and CLIP_benchmark are read as figures, and stand beside runs without being tested."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.comparisons import group_runs, leaderboard
from crosslens.core import InputError, UsageError
from crosslens.pipeline import side_by_side
from crosslens.report import holds_results, render_export, write_named_export
from crosslens.values import Run
from tests.commands import Call, call as call


def mteb_result(task: str, split: str = "test", **entries: dict[str, float]) -> dict[str, Any]:
    """A file as mteb 1.14 to 2.26 write it: also figures that are not read, and NaN."""
    also = {"main_score": 0.7, "nauc_recall_at_1_diff1": float("nan"), "languages": ["eng-Latn"]}
    scores = [{**figures, **also, "hf_subset": subset} for subset, figures in entries.items()]
    return {
        "dataset_revision": "6984df6", "evaluation_time": 7.9, "kg_co2_emissions": None, "mteb_version": "1.14.15",
        "scores": {split: scores}, "task_name": task,
    }  # fmt: skip


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    """mteb's folder of one model and revision."""
    folder = tmp_path / "openai__clip-vit-base-patch32" / "3d74acf9"
    folder.mkdir(parents=True)
    i2t = {"cv_recall_at_1": 0.781, "recall_at_5": 0.5812, "ndcg_at_10": 0.7149, "map_at_10": 0.6, "mrr_at_10": 0.85}
    files = {
        "Flickr30kI2TRetrieval": mteb_result("Flickr30kI2TRetrieval", default=i2t),
        "Flickr30kT2IRetrieval": mteb_result("Flickr30kT2IRetrieval", default={"hit_rate_at_1": 0.59}),
        "CIRRIT2IRetrieval": mteb_result("CIRRIT2IRetrieval", default={"recall_at_1": 0.1}),
        "XM3600T2IRetrieval": mteb_result("XM3600T2IRetrieval", de={"recall_at_1": 0.2}, en={"recall_at_1": 0.5}),
    }
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def test_a_folder_of_mteb_is_one_run_per_dataset(model_folder: Path) -> None:
    assert holds_results(model_folder) is False, "a folder is recognised by the description of the model"
    (model_folder / "model_meta.json").write_text(json.dumps({"name": "openai/clip", "revision": "3d74"}))
    assert holds_results(model_folder)
    runs = {run.provenance["dataset"]["name"]: run for run in cl.read_results(model_folder)}
    assert list(runs) == ["Flickr30k", "XM3600 de", "XM3600 en"], "a picture and a text together are no direction"
    flickr = runs["Flickr30k"]
    assert flickr.name == "openai/clip"
    assert {name: flickr[name].mean for name in flickr} == {
        "i2t/Hit@1": 0.781, "i2t/Recall@5": 0.5812, "i2t/MRR@10": 0.85, "i2t/AP@10": 0.6, "i2t/nDCG@10": 0.7149,
        "t2i/Hit@1": 0.59,
    }  # fmt: skip
    assert flickr["t2i/Hit@1"].n == 0
    assert np.isnan(flickr["t2i/Hit@1"].low)
    assert runs["XM3600 de"]["t2i/Recall@1"].mean == 0.2


def test_the_model_is_named_by_mtebs_folders(model_folder: Path) -> None:
    (run,) = cl.read_results(*sorted(model_folder.glob("Flickr*.json")))
    assert (run.name, len(run), len(run.published)) == ("openai/clip-vit-base-patch32", 6, 2)


def test_what_a_run_exports_is_read_back(run: Run, tmp_path: Path) -> None:
    paths = write_named_export(render_export(run, "mteb"), "toy", "mteb", folder=tmp_path)
    (read,) = cl.read_results(*paths)
    assert read.label == "toy (published)"
    assert {name: read[name].mean for name in read} == {
        name: run[name].mean for name in run if "Hit@" in name or "Recall@" in name
    }
    content = json.loads(render_export(run, "clip-benchmark")[""]) | {"pretrained": "laion2b", "dataset": "wds/toys"}
    (tmp_path / "result.json").write_text(json.dumps(content))
    (read,) = cl.read_results(tmp_path / "result.json")
    assert (read.name, read.provenance["dataset"]["name"]) == ("toy model laion2b", "toys")
    assert {name: read[name].mean for name in read} == {name: run[name].mean for name in run if "Hit@1" in name}


def test_mteb_gets_its_main_score(run: Run) -> None:
    values = {**run.values, "t2i/nDCG@10": run["t2i/Hit@1"], "t2i/AP@10": run["t2i/Recall@5"]}
    facts = {"dataset": {"name": "flickr30k", "fingerprint": "abc"}}
    content = json.loads(render_export(replace(run, values=values, provenance=facts), "mteb")["t2i"])
    assert content["task_name"] == "Flickr30kT2IRetrieval"
    (entry,) = content["scores"]["test"]
    assert entry["main_score"] == entry["ndcg_at_10"] == run["t2i/Hit@1"].mean
    assert entry["map_at_10"] == run["t2i/Recall@5"].mean


def test_published_figures_stand_beside_runs_untested(run: Run, tmp_path: Path) -> None:
    (tmp_path / "theirs.json").write_text(
        json.dumps(mteb_result("ToysT2IRetrieval", default={"cv_recall_at_1": 0.9, "precision_at_3": 0.3}))
    )
    (theirs,) = cl.read_results(tmp_path / "theirs.json")
    board = leaderboard(group_runs([theirs, run]), "t2i/Hit@1", permutations=10)
    assert board.datasets == ("toys",), "the name in other capitals is the same dataset"
    ours = board.cell("toy model", "toys", "t2i/Hit@1")
    assert ours is not None
    assert ours.significant is None
    assert board.best("toys", "t2i/Hit@1") == ("theirs (published)",)
    assert any("not tested here" in note for note in board.notes)
    table = side_by_side([run, theirs])
    assert "t2i/Precision@3" not in table.values, "only what the runs have"
    text = table.text(100)
    assert "theirs (published) unknown" in text
    assert "not computed and not tested here" in text
    assert "Published figures: their queries are not known" in theirs.text(100)
    with pytest.raises(UsageError, match="has published figures alone, without values per query"):
        cl.compare(run, theirs)
    with pytest.raises(UsageError, match="published figures alone"):
        theirs.save(tmp_path / "saved")
    assert theirs.save(tmp_path / "figures.md").is_file()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([], "neither a result of mteb nor one of CLIP_benchmark"),
        ({"task": "zeroshot_classification", "metrics": {}}, "the task is 'zeroshot_classification'"),
        (mteb_result("Banking77Classification", default={}), "the task is 'Banking77Classification'"),
        (mteb_result("AT2IRetrieval", default={"recall_at_1": 78.1}), "recall_at_1 is 78.1"),
        (mteb_result("AT2IRetrieval", default={"recall_at_1": float("nan")}), "recall_at_1 is nan"),
        ({"task_name": "AT2IRetrieval", "scores": {"test": 1}}, "the scores of 'test' are 1"),
        ({"task": "zeroshot_retrieval", "metrics": {"text_retrieval_recall@1": "a"}}, "text_retrieval_recall@1 is 'a'"),
    ],
)
def test_other_files_are_refused(content: Any, problem: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=problem) as error:
        cl.read_results(tmp_path / "a.json")
    assert error.value.file == str(tmp_path / "a.json")


def test_two_figures_for_one_thing_are_refused(tmp_path: Path) -> None:
    for revision, figure in (("a", 0.5), ("b", 0.6)):
        (tmp_path / "m__n" / revision).mkdir(parents=True)
        content = mteb_result("XT2IRetrieval", default={"recall_at_1": figure})
        (tmp_path / "m__n" / revision / "XT2IRetrieval.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"t2i/Recall@1 of m/n on X is 0\.6 here, and 0\.5 in another file"):
        cl.read_results(*sorted(tmp_path.glob("*/*/*.json")))
    (tmp_path / "model_meta.json").write_text("{}")
    with pytest.raises(InputError, match="no results of image-text retrieval"):
        cl.read_results(tmp_path)


def test_commands(run: Run, tmp_path: Path, call: Call) -> None:
    run.save(tmp_path / "run")
    (tmp_path / "c.json").write_text(render_export(run, "clip-benchmark")[""])
    ours, theirs = tmp_path / "run", tmp_path / "c.json"
    assert "toy model (published)" in call("show", ours, theirs).out
    assert "toy model (published)" in call("leaderboard", ours, theirs, "--permutations", "10").out
    assert "| toy model (published) |" in call("export", ours, theirs, "--to", "markdown").out
    refused = call("compare", ours, theirs)
    assert refused.code != 0
    assert "are for crosslens show, leaderboard and export" in refused.err

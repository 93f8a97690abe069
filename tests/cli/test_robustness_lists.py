"""``crosslens robustness --runs``: a whole study from the lists of another program, and the mistakes one can make."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Call

QUICK = ("--permutations", "50", "--resamples", "50")
IMAGES = 20


def write_lists(folder: Path, name: str, seed: int, direction: str = "t2i") -> Path:
    """Lists of twelve, in which the right answer is often near the top."""
    random = np.random.default_rng(seed)
    lists = {}
    for number in range(IMAGES):
        scores = random.standard_normal(IMAGES)
        scores[number] += 1.5
        query, item = ("c", "i") if direction == "t2i" else ("i", "c")
        lists[f"{query}{number}"] = [f"{item}{item_number}" for item_number in np.argsort(-scores)[:12]]
    file = folder / f"{name}.json"
    file.write_text(json.dumps(lists))
    return file


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "lists"
    folder.mkdir()
    for seed, name in enumerate(("none", "char_swap", "Extra Letter")):
        write_lists(folder, name, seed)
    (folder / "qrels.txt").write_text("".join(f"c{number} 0 i{number} 1\n" for number in range(IMAGES)))
    return folder


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    file = tmp_path / "captions.jsonl"
    rows = ({"image": f"i{number}", "caption": f"c{number}", "text": f"thing {number}"} for number in range(IMAGES))
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_a_study_from_lists(call: Call, files: Path, tmp_path: Path) -> None:
    run_flags = [word for name in ("none", "char_swap") for word in ("--runs", f"{name}={files / name}.json")]
    run_flags += ["--runs", f"Extra Letter={files / 'Extra Letter.json'}"]
    words = ("robustness", *run_flags, "--qrels", files / "qrels.txt", "--direction", "t2i", *QUICK)
    study = call(*words, "--json", "-o", tmp_path / "study", "--name", "mine", "--dataset-name", "toys")
    assert study.code == 0, study.err
    assert study.json["models"] == ["mine"]
    assert study.json["perturbations"] == ["char_swap", "Extra Letter"]
    assert study.json["headline"] == "t2i/Rsum"
    rows = {row["perturbation"]: row for row in study.json["drops"] if row["metric"] == "t2i/Rsum"}
    assert rows["char_swap"]["low"] <= rows["char_swap"]["drop"] <= rows["char_swap"]["high"]
    assert rows["char_swap"]["applied_share"] is None
    assert {row["group"] for row in study.json["overlap"]} == {"decreased", "increased", "unchanged"}
    outcome = call("show", tmp_path / "study", "--tables", "drops groups overlap")
    assert "toys: 20 captions query their images" in outcome.out
    assert "applied" not in outcome.out
    assert call("show", tmp_path / "study" / "mine" / "Extra-Letter").code == 0


def test_a_folder_of_lists(call: Call, files: Path) -> None:
    study = call("robustness", "--runs", files, "--qrels", files / "qrels.txt", *QUICK, "--json")
    assert study.code == 0, study.err
    assert study.json["perturbations"] == ["char_swap", "Extra Letter"]


def test_with_the_dataset(call: Call, files: Path, dataset: Path) -> None:
    judged = call("robustness", "--runs", files, "--qrels", files / "qrels.txt", *QUICK, "--json")
    study = call("robustness", "--runs", files, "--dataset", dataset, *QUICK, "--json")
    assert study.code == 0, study.err
    assert study.json["direction"] == "t2i", "recognised by the ids"
    figures = ("perturbation", "metric", "before", "after", "drop", "low", "high")
    drops = [[{key: row[key] for key in figures} for row in result.json["drops"]] for result in (judged, study)]
    assert drops[0] == drops[1]
    assert any(row["original"] == "thing 0" or row["original"] for row in study.json["brittle"])


def test_both_directions(call: Call, files: Path, dataset: Path, tmp_path: Path) -> None:
    folder = tmp_path / "i2t"
    folder.mkdir()
    words = []
    for seed, name in enumerate(("none", "char_swap")):
        words += ["--runs", f"{name}={files / name}.json"]
        words += ["--runs", f"{name}={write_lists(folder, name, seed + 7, 'i2t')}"]
    study = call("robustness", *words, "--dataset", dataset, *QUICK, "--json")
    assert study.code == 0, study.err
    assert study.json["headline"] == "Rsum"
    assert {row["metric"] for row in study.json["drops"]} >= {"i2t/Hit@1", "t2i/Hit@1", "Rsum", "t2i/Rsum"}
    alone = call("robustness", *words, "--dataset", dataset, "--direction", "i2t", *QUICK, "--json")
    assert alone.json["headline"] == "i2t/Rsum"
    missing = call("robustness", "--runs", files, "--dataset", dataset, "--direction", "both", *QUICK)
    assert missing.code == 2
    assert "no lists of 'none' for i2t" in missing.err or "no lists of 'char_swap' for i2t" in missing.err
    unnamed = call("robustness", *words, "--qrels", files / "qrels.txt", *QUICK)
    assert "2 lists of 'none' and 0 directions" in unnamed.err


def test_mistakes(call: Call, files: Path, dataset: Path) -> None:
    judged = ("--qrels", files / "qrels.txt")
    runs = ("--runs", f"char_swap={files / 'char_swap.json'}")

    def refused(code: int, message: str, *words: object) -> None:
        outcome = call("robustness", *words, *QUICK)
        assert outcome.code == code, outcome.err
        assert message in outcome.err

    refused(2, "there is no 'none' among the lists of char_swap", *runs, *runs[:1], f"b={files / 'none.json'}", *judged)
    refused(2, "neither NAME=FILE nor a folder", "--runs", files / "none.json", *judged)
    refused(2, "both --runs and --model", "--runs", files, *judged, "--model", "tiny")
    refused(2, "--qrels requires --runs", "--dataset", dataset, "--model", "tiny", *judged)
    refused(2, "pass --qrels, or --dataset", "--runs", files)
    refused(2, "--seeds cannot change", "--runs", files, *judged, "--seeds", "2")
    refused(3, "no such file", *runs, "--runs", "none=missing.run", *judged)
    refused(3, "has 12 items", "--runs", files, *judged, "--metrics", "Hit@20")
    lists = json.loads((files / "char_swap.json").read_text())
    (files / "char_swap.json").write_text(json.dumps({name: items for name, items in lists.items() if name != "c7"}))
    refused(3, "the list 'char_swap' lacks query 'c7', which 'none' has", "--runs", files, *judged)


def test_ids_that_the_dataset_lacks(call: Call, files: Path, dataset: Path) -> None:
    for file in files.glob("*.json"):
        lists = json.loads(file.read_text())
        file.write_text(json.dumps({**lists, **{f"other{n}": ["i0"] * 1 for n in range(5)}}))
    words = ("robustness", "--runs", files, "--dataset", dataset, *QUICK)
    refused = call(*words)
    assert refused.code == 3
    assert "--skip-unknown" in refused.err
    assert call(*words, "--skip-unknown", "--json").code == 0


@pytest.mark.slow
def test_several_studies_in_one_table(call: Call, files: Path, tmp_path: Path) -> None:
    judged = ("--qrels", files / "qrels.txt", *QUICK)
    for model in ("a", "b"):
        words = ("robustness", "--runs", files, *judged, "--name", model, "--dataset-name", "toys")
        assert call(*words, "-o", tmp_path / model).code == 0
    studies = (tmp_path / "a", tmp_path / "b")
    outcome = call("show", *studies)
    assert outcome.code == 0, outcome.err
    assert outcome.out.splitlines()[2].split() == ["perturbation", "a", "a,", "%", "b", "b,", "%"]
    means = call("show", *studies, "--by", "dataset", "--json").json
    assert means["columns"] == ["toys"]
    assert {row["models"] for row in means["drops"]} == {2}
    assert call("show", studies[0], "--metrics", "t2i/Hit@1", "--json").json["metric"] == "t2i/Hit@1"
    assert "\\midrule" in call("export", *studies, "--to", "latex").out
    assert call("export", *studies, "--to", "csv", "--by", "dataset").out.startswith("column,perturbation")
    drawn = call("plot", *studies, "--write", tmp_path / "map.html", "--json")
    assert drawn.json["metric"] == "t2i/Rsum"
    assert "Extra Letter" in (tmp_path / "map.html").read_text(encoding="utf-8")
    mixed = call("show", studies[0], studies[0] / "a" / "original")
    assert mixed.code == 2
    assert "is not a robustness study" in mixed.err
    assert "--by is for robustness studies" in call("export", studies[0] / "a" / "original", "--to", "csv",
                                                    "--by", "dataset").err  # fmt: skip


def test_from_texts_to_lists_and_back(call: Call, dataset: Path, tmp_path: Path) -> None:
    """What the how-to describes: perturb, rank elsewhere, come back with the lists."""
    names = ("char_swap", "distraction_true")
    texts = tmp_path / "texts"
    assert call("perturb", "--dataset", dataset, "--name", ",".join(names), "-o", texts).code == 0
    lists = tmp_path / "ranked"
    lists.mkdir()
    for name in ("none", *names):
        rows = [json.loads(line) for line in (texts / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
        ranked = {row["caption"]: _ranked_elsewhere(row["text"]) for row in rows}
        (lists / f"{name}.json").write_text(json.dumps(ranked))
    words = ("robustness", "--runs", lists, "--dataset", dataset, "--variants", texts, *QUICK)
    study = call(*words, "-o", tmp_path / "study", "--json")
    assert study.code == 0, study.err
    rows = {row["perturbation"]: row for row in study.json["drops"] if row["metric"] == "t2i/Rsum"}
    assert {name: row["applied_share"] for name, row in rows.items()} == dict.fromkeys(names, 1.0)
    assert rows["distraction_true"]["drop"] == 0
    assert "thing" in study.json["brittle"][0]["original"]
    assert call("robustness", "--runs", lists, "--dataset", dataset, "--variants", texts, "--match-by", "text",
                *QUICK, "--json").code == 0  # fmt: skip


def _ranked_elsewhere(text: str) -> list[str]:
    """A model that knows the word *thing* and a number: without the word it is wrong."""
    number = int("".join(letter for letter in text if letter.isdigit()) or 0)
    first = number if "thing" in text else number + 7
    return [f"i{(first + step) % IMAGES}" for step in range(IMAGES)]

"""Stored runs shown, compared and exported; datasets and metrics listed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crosslens.comparisons import compare
from crosslens.pipeline import evaluate
from crosslens.values import Dataset, Run

from .conftest import Call


def test_show(runs: tuple[Path, Path], call: Call) -> None:
    outcome = call("show", runs[0], "--metrics", "t2i/Hit@1 MedR")
    assert outcome.code == 0
    assert [line.split()[0] for line in outcome.out.splitlines()[3:5]] == ["Hit@1", "MedR"]
    content = call("show", runs[0], "--metrics", "MedR", "--json").json
    assert list(content["metrics"]) == ["i2t/MedR", "t2i/MedR"]


def test_metrics_that_are_named_one_flag_each(runs: tuple[Path, Path], call: Call) -> None:
    for words in (("show", runs[0]), ("compare", *runs, "--permutations", "50")):
        together = call(*words, "--metrics", "t2i/Hit@1 i2t/MedR")
        assert together.code == 0
        assert call(*words, "--metrics", "t2i/Hit@1", "--metrics", "i2t/MedR").out == together.out


def test_show_by_category(runs: tuple[Path, Path], call: Call) -> None:
    outcome = call("show", runs[0], "--by", "category")
    assert outcome.code == 0
    assert "animals" in outcome.out
    assert "choose others with --metrics" in outcome.err
    assert "t2i/MRR" in call("show", runs[0], "--by", "category", "--json").json["metrics"]
    content = call("show", runs[0], "--by", "category", "--metrics", "t2i/Hit@1", "--json").json
    groups = content["metrics"]["t2i/Hit@1"]
    whole = Run.load(runs[0])["t2i/Hit@1"]
    assert sum(entry["n"] for entry in groups.values()) == whole.n
    assert sum(entry["n"] * entry["mean"] for entry in groups.values()) / whole.n == pytest.approx(whole.mean)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a dataset with many kinds of objects, several in a picture, and a column of its captions."""
    kinds = [f"kind-{n:02}" for n in range(30)]
    images = [f"im{n}" for n in range(60)]
    rows = [(image, kind) for n, image in enumerate(images) for kind in kinds[: 1 + n % len(kinds)]]
    objects = pl.DataFrame(
        {
            "image": [image for image, _ in rows],
            "object": [str(n) for n in range(len(rows))],
            "name": [kind for _, kind in rows],
        }
    )
    dataset = Dataset.of({image: [f"a {image}", f"an {image}"] for image in images})
    captions = dataset.captions.with_columns(article=pl.Series(["a", "an"] * len(images)))
    vectors = np.random.default_rng(0).standard_normal((len(images), 8)).astype(np.float32)
    evaluate(
        replace(dataset, captions=captions, objects=objects),
        images=vectors,
        captions=np.repeat(vectors, 2, axis=0),
        metrics="Hit@1 MRR MedR",
        resamples=20,
        output=(folder := tmp_path_factory.mktemp("pictures") / "run"),
    )
    return folder


def test_show_by_objects(pictures: Path, call: Call) -> None:
    outcome = call("show", pictures, "--by", "objects")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[1].split() == ["objects", "queries", "Hit@1", "MRR"]
    assert [line.split()[:2] for line in lines[2:4]] == [["kind-00", "60"], ["kind-01", "58"]]
    assert lines[23] == "… and 10 smaller groups"
    assert "A query with several values of objects counts in each of their groups." in lines
    assert "note: the 20 largest groups; --all shows every group" in outcome.err
    whole = call("show", pictures, "--by", "objects", "--all", "--metrics", "t2i/Hit@1")
    assert whole.err == ""
    assert sum(line.startswith("kind-") for line in whole.out.splitlines()) == 30
    content = call("show", pictures, "--by", "objects", "--metrics", "i2t/Hit@1", "--json").json
    assert content["overlapping"]
    assert [entry["n"] for entry in content["metrics"]["i2t/Hit@1"].values()] == list(range(60, 0, -2))


def test_show_by_a_column_of_captions(pictures: Path, call: Call) -> None:
    outcome = call("show", pictures, "--by", "article")
    assert outcome.code == 0
    assert "text → image" in outcome.out
    assert "image → text" not in outcome.out


def test_an_unknown_column_is_answered_with_the_known_ones(pictures: Path, call: Call) -> None:
    outcome = call("show", pictures, "--by", "zzz")
    assert outcome.code == 2
    assert outcome.err == "error: unknown column 'zzz'\n  fix: known: article, caption_length, image, objects, text\n"


def test_show_suggests_columns_and_metrics(runs: tuple[Path, Path], call: Call) -> None:
    assert "did you mean category" in call("show", runs[0], "--by", "categry").err
    outcome = call("show", runs[0], "--metrics", "MdeR")
    assert outcome.code == 2
    assert "did you mean" in outcome.err


def test_a_run_that_is_not_there_is_answered_with_near_ones(runs: tuple[Path, Path], call: Call) -> None:
    missing = call("show", runs[0].with_name("aa"))
    assert missing.code == 3
    assert f"{runs[0].with_name('aa')}: no such folder" in missing.err
    assert f"did you mean {runs[0]}?" in missing.err
    assert f"check the path; there are {runs[0]}, {runs[1]}" in call("show", runs[0].with_name("zzzz")).err
    assert call("compare", runs[0], runs[0] / "no" / "such").err.endswith("fix: check the path\n")
    inside = call("export", runs[0].parent, "--to", "csv")
    assert inside.code == 3
    assert f"name a run inside it, such as {runs[0]}, {runs[1]}" in inside.err
    assert "this is a file" in call("show", runs[0] / "run.json").err


def test_show_several_side_by_side(runs: tuple[Path, Path], call: Call) -> None:
    outcome = call("show", *runs, "--by", "category")
    assert outcome.code == 0
    assert "the first metric of each direction" in outcome.err
    assert ["category", "a", "b"] in [line.split() for line in outcome.out.splitlines()]
    assert max(map(len, outcome.out.splitlines())) <= 80
    content = call("show", *runs, "--by", "category", "--metrics", "t2i/Hit@1", "--json").json
    alone = call("show", runs[1], "--by", "category", "--metrics", "t2i/Hit@1", "--json").json
    beside = content["metrics"]["t2i/Hit@1"]["b"]
    assert beside.pop("(all)")["mean"] == Run.load(runs[1])["t2i/Hit@1"].mean
    assert beside == alone["metrics"]["t2i/Hit@1"]
    whole = call("show", *runs, "--metrics", "Hit@1 MedR")
    assert [line.split()[0] for line in whole.out.splitlines()[1:5]] == [
        *("i2t/Hit@1", "t2i/Hit@1", "i2t/MedR", "t2i/MedR")
    ]
    assert "did you mean category" in call("show", *runs, "--by", "categry").err


def test_show_writes_every_form(runs: tuple[Path, Path], call: Call, tmp_path: Path) -> None:
    forms = [tmp_path / f"run{ending}" for ending in (".html", ".json", ".csv", ".md", ".tex", ".svg")]
    flags = [word for file in forms for word in ("--write", file)]
    for words, charts in (
        (runs[:1], 1),
        (runs, 1),
        ((*runs[:1], "--by", "category"), 4),
        ((*runs, "--by", "category"), 2),
    ):
        outcome = call("show", *words, *flags, "--overwrite", "--json")
        assert outcome.code == 0, outcome.err
        assert outcome.json["files"] == list(map(str, forms))
        assert json.loads(forms[1].read_text()) == {key: outcome.json[key] for key in outcome.json if key != "files"}
        assert all("Hit@1" in file.read_text() for file in forms[2:5])
        assert forms[0].read_text().count("<figure") >= charts
        assert forms[5].read_text().startswith("<svg")


def test_plot(runs: tuple[Path, Path], call: Call, tmp_path: Path) -> None:
    page = tmp_path / "categories.html"
    outcome = call("plot", *runs, "--by", "category", "--write", page)
    assert outcome.code == 0
    assert outcome.out.startswith("Hit@1, text → image, by category\n\ncategory ")
    assert outcome.err == f"note: t2i/Hit@1; choose another with --metric\n\nwritten to {page}\n"
    content = call("plot", *runs, "--by", "category", "--metric", "t2i/Hit@1", "--json").json
    groups = call("show", runs[0], "--by", "category", "--metrics", "t2i/Hit@1", "--json").json
    assert content["runs"]["a"] == groups["metrics"]["t2i/Hit@1"]
    plot = ("plot", runs[0], "--by", "category", "--metric", "t2i/MedR", "--write", page)
    assert call(*plot).code == 5
    assert call(*plot, "--overwrite").code == 0
    (tmp_path / "folder.html").mkdir()
    early = call("plot", tmp_path / "no run", "--write", tmp_path / "folder.html")
    assert (early.code, "folder.html already exists" in early.err) == (5, True), "refused before the work begins"
    for words, message in (
        (("plot", runs[0], "--metric", "Hit@1"), "choose i2t/Hit@1 or t2i/Hit@1"),
        (("plot", runs[0], "--by", "category", "--write", tmp_path / "x.jpg"), "end the name in .html"),
        (("plot", runs[0], "--by", "categry"), "did you mean category"),
        (("plot", runs[0], "--by", "category", "--metric", "Hit@1"), "choose i2t/Hit@1 or t2i/Hit@1"),
    ):
        refused = call(*words)
        assert refused.code == 2
        assert message in refused.err


def test_plot_without_groups(runs: tuple[Path, Path], call: Call, tmp_path: Path) -> None:
    words = ("plot", *runs, "--metric", "i2t/MRR")
    outcome = call(*words, "--write", tmp_path / "all.html")
    assert outcome.code == 0
    assert "note: all queries together; group them with --by: caption_length, category" in outcome.err
    content = call(*words, "--json").json
    assert (content["by"], content["metric"]) == (None, "i2t/MRR")
    assert content["runs"]["a"] == {"all queries": call("show", runs[0], "--json").json["metrics"]["i2t/MRR"]}


def test_a_run_without_columns_can_be_drawn(call: Call, tmp_path: Path) -> None:
    run = evaluate(run={"q": ["a", "b"]}, relevance={"q": ["a"]}, metrics="Hit@1", output=tmp_path / "run")
    assert not run.columns
    assert call("plot", tmp_path / "run", "--write", tmp_path / "all.html").code == 0
    refused = call("plot", tmp_path / "run", "--by", "category", "--write", tmp_path / "by.html")
    assert refused.code == 2
    assert "fix: evaluate with a dataset: its columns and the length of its captions make groups\n" in refused.err


def test_captions_are_grouped_by_their_length(tmp_path: Path, call: Call) -> None:
    dataset = Dataset.of({f"im{n}": ["a dog", "a dog , on a sofa !"] for n in range(6)})
    evaluate(dataset, scores=np.eye(6).repeat(2, axis=1), metrics="Hit@1", resamples=0, output=tmp_path / "run")
    groups = call("show", tmp_path / "run", "--by", "caption_length", "--json").json["metrics"]
    assert {name: {group: entry["n"] for group, entry in parts.items()} for name, parts in groups.items()} == {
        "t2i/Hit@1": {"2": 6, "5": 6}
    }
    several = call("show", tmp_path / "run", tmp_path / "run", "--by", "caption_length", "--metrics", "t2i/Hit@1")
    assert several.code == 0
    drawn = call("plot", tmp_path / "run", "--by", "caption_length", "--write", tmp_path / "by.html", "--json")
    assert list(drawn.json["runs"]["run"]) == ["2", "5"]


def test_a_column_of_that_name_goes_first(tmp_path: Path, call: Call) -> None:
    dataset = Dataset.of({f"im{n}": ["a dog"] for n in range(4)})
    captions = dataset.captions.with_columns(caption_length=pl.Series(["short", "long"] * 2))
    evaluate(replace(dataset, captions=captions), scores=np.eye(4), resamples=0, output=tmp_path / "run")
    stored_run = call("show", tmp_path / "run", "--by", "caption_length", "--metrics", "t2i/Hit@1", "--json").json
    assert set(stored_run["metrics"]["t2i/Hit@1"]) == {"short", "long"}


def test_compare(runs: tuple[Path, Path], call: Call) -> None:
    outcome = call("compare", *runs, "--metrics", "t2i/Hit@1 i2t/mAP@R", "--permutations", "200")
    assert outcome.code == 0
    assert "t2i/Hit@1" in outcome.out
    content = call("compare", *runs, "--metrics", "t2i/Hit@1", "--permutations", "200", "--json").json
    assert "t2i/Hit@1" in json.dumps(content)
    alone = call("compare", runs[0])
    assert alone.code == 2
    assert "requires two runs" in alone.err


def test_all_pairs_as_text_and_latex(runs: tuple[Path, Path], call: Call, tmp_path: Path) -> None:
    options = ("--metrics", "t2i/Hit@1 t2i/MedR", "--permutations", "200", "--all-pairs")
    table = call("compare", *runs, *options).out
    names = [run.name for run in runs]
    assert f"a: {names[0]}" in table
    assert f"b: {names[1]}" in table
    assert "corrected by Holm for 1 test; the others are secondary, corrected by Holm" in " ".join(table.split())
    assert "a test of MedR finds fewer differences" in table
    assert call("compare", *runs, *options, "--write", tmp_path / "table.tex").code == 0
    written = (tmp_path / "table.tex").read_text(encoding="utf-8")
    assert written.startswith("% needs \\usepackage{booktabs}\n% p: paired permutation test over images")
    assert f"\\begin{{tabular}}{{lll}}\n\\toprule\nmetric & a: {names[0]} & b: {names[1]} " in written
    assert "t2i/MedR $\\downarrow$ & " in written
    assert "\\textbf{" in written
    assert written.count("{\\small [") == 4


def test_compare_prints_what_python_prints(runs: tuple[Path, Path], call: Call) -> None:
    outcome = call("compare", *runs, "--metrics", "t2i/Hit@1", "--permutations", "200")
    comparison = compare(*(Run.load(folder) for folder in runs), metrics="t2i/Hit@1", permutations=200)
    assert outcome.out == f"{comparison}\n"


def test_export_to_standard_output_and_files(runs: tuple[Path, Path], call: Call, tmp_path: Path) -> None:
    assert call("export", runs[0], "--to", "csv").out.startswith("run,direction,metric,mean")
    assert call("export", runs[0], "--to", "latex", "-o", "-").out.endswith("\\end{tabular}\n")
    first = call("export", runs[0], "--to", "trec", "--direction", "i2t").out.splitlines()[0].split()
    assert (first[1], first[3], len(first)) == ("Q0", "1", 6)
    both = call("export", runs[0], "--to", "trec", "-o", "-")
    assert both.code == 2
    assert "-o FILE" in both.err
    written = call("export", runs[0], "--to", "trec", "-o", tmp_path / "a.run")
    assert (written.out, sorted(path.name for path in tmp_path.iterdir())) == ("", ["a-i2t.run", "a-t2i.run"])
    again = call("export", runs[0], "--to", "trec", "-o", tmp_path / "a.run")
    assert again.code == 0, "the same export again"
    assert call("export", runs[1], "--to", "trec", "-o", tmp_path / "a.run").code == 5
    files = call("export", runs[0], "--to", "ranx", "-o", tmp_path / "a.json", "--json").json["files"]
    assert [Path(file).name for file in files] == ["a-i2t.json", "a-t2i.json"]
    table = call("export", *runs, "--to", "markdown", "--metrics", "Hit@1").out
    assert table.splitlines()[0] == "| model | i2t Hit@1 | t2i Hit@1 |"
    assert "did you mean markdown" in call("export", runs[0], "--to", "markdwon").err
    content = call("export", runs[0], "--to", "csv", "--json").json["content"]
    assert content == call("export", runs[0], "--to", "csv").out


def test_several_files_go_into_the_current_folder(
    runs: tuple[Path, Path], call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = call("export", runs[0], "--to", "trec")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "written to a.i2t.run, a.t2i.run\n")
    assert Path("a.i2t.run").read_text().startswith(call("export", runs[0], "--to", "trec", "--direction", "i2t").out)
    assert call("export", runs[0], "--to", "ranx", "--json").json["files"] == ["a.i2t.ranx.json", "a.t2i.ranx.json"]
    assert call("export", runs[0], "--to", "mteb", "--json").json["files"] == ["a.i2t.mteb.json", "a.t2i.mteb.json"]
    assert call("export", runs[0], "--to", "trec").code == 0, "the same files again"


def test_a_different_file_in_the_current_folder_is_kept(
    runs: tuple[Path, Path], call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.t2i.run").write_text("mine")
    outcome = call("export", runs[0], "--to", "trec")
    assert outcome.code == 5
    assert "a.t2i.run already exists with other content" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["a.t2i.run"], "all of the files or none"
    assert call("export", runs[0], "--to", "trec", "--overwrite").code == 0
    assert Path("a.t2i.run").read_text() != "mine"


def test_an_exported_run_evaluates_to_the_same(
    runs: tuple[Path, Path], study: Path, call: Call, tmp_path: Path
) -> None:
    call("export", runs[0], "--to", "trec", "-o", tmp_path / "a.run.gz")
    words = ("--dataset", "coco", "--captions", study / "captions.json", "--metrics", "Hit@1 Recall@5", "--json")
    lists = call("evaluate", *words, "--run", tmp_path / "a-i2t.run.gz", "--run", tmp_path / "a-t2i.run.gz").json
    original = Run.load(runs[0])
    assert {name: entry["mean"] for name, entry in lists["metrics"].items() if "Hit@1" in name} == {
        name: original[name].mean for name in ("i2t/Hit@1", "t2i/Hit@1")
    }


def test_data_describe_and_convert(study: Path, call: Call, tmp_path: Path) -> None:
    words = ("coco", "--captions", study / "captions.json")
    outcome = call("data", "describe", *words)
    assert ["images", "40"] in [line.split() for line in outcome.out.splitlines()]
    assert "category" in outcome.out
    assert call("data", "describe", *words, "--json").json["captions"] == 120
    converted = call("data", "convert", "coco", tmp_path / "toy", "--captions", study / "captions.json")
    assert (converted.code, converted.out) == (0, "")
    assert call("data", "describe", tmp_path / "toy", "--json").json["images"] == 40
    assert call("data", "convert", "coco", tmp_path / "toy", "--captions", study / "captions.json").code == 5
    plain = call("data", "convert", tmp_path / "toy", tmp_path / "toy.jsonl", "--json")
    assert plain.json["form"] == "plain"
    assert len((tmp_path / "toy.jsonl").read_text().splitlines()) == 120
    assert "did you mean coco" in call("data", "convert", tmp_path / "toy", tmp_path / "x", "--to", "cocoo").err


def test_convert_renames(study: Path, call: Call, tmp_path: Path) -> None:
    words = ("data", "convert", "coco", "--captions", study / "captions.json", "--name", "streets")
    assert call(*words, tmp_path / "folder", "--json").json["name"] == "streets"
    assert Dataset.load(tmp_path / "folder").name == "streets"
    refused = call(*words, tmp_path / "captions.csv")
    assert refused.code == 2
    assert "the format plain holds no name" in refused.err
    assert not (tmp_path / "captions.csv").exists()


def test_convert_says_what_it_leaves_out(tmp_path: Path, call: Call) -> None:
    objects = pl.DataFrame({"image": ["a", "a"], "object": ["1", "2"], "name": ["dog", "cat"]})
    replace(Dataset.of({"b": ["x y"], "a": ["a b"]}), objects=objects).save(tmp_path / "data")
    outcome = call("data", "convert", tmp_path / "data", tmp_path / "c.csv", "--json")
    assert outcome.code == 0
    assert "note: left out, as a .csv file" in outcome.err
    assert "2 objects" in outcome.json["notes"][0]
    kept = call("data", "convert", tmp_path / "data", tmp_path / "c.jsonl", "--images-output", tmp_path / "i.jsonl")
    assert "note" not in kept.err


def test_convert_names_the_flag_that_helps(tmp_path: Path, call: Call) -> None:
    captions = pl.DataFrame({"caption": ["1", "2"], "image": ["b", "a"], "text": ["x y", "z"]})
    Dataset("odd", pl.DataFrame({"image": ["a", "b"]}), captions).save(tmp_path / "data")
    outcome = call("data", "convert", tmp_path / "data", tmp_path / "c.jsonl")
    assert outcome.code == 2
    assert "fix: pass --images-output" in outcome.err
    assert call("data", "convert", tmp_path / "data", tmp_path / "c.token", "--to", "flickr").code == 0


def test_data_formats(call: Call) -> None:
    names = [line.split()[0] for line in call("data", "formats").out.splitlines() if line[:1].strip()]
    assert {"coco", "flickr", "karpathy", "plain"} <= set(names)
    assert "captions: the captions JSON" in call("data", "formats", "coco").out
    readers = call("data", "formats", "--json").json["readers"]
    assert "captions" in next(entry for entry in readers if entry["name"] == "coco")["options"]


def test_metrics(call: Call) -> None:
    text = call("metrics").out
    for name in ("Hit@k", "Recall@k", "CappedRecall@k", "MRR[@k]", "mAP@R", "Rsum"):
        assert f"{name} " in text
    assert "lower is better" in call("metrics", "MedR").out
    assert call("metrics", "mAP@R", "--json").json["metrics"][0]["name"] == "mAP@R"
    assert call("metrics", "Hit@5").code == 0

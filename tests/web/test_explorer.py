"""What the explorer shows, against plain sorting and counting of the same scores."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from fastapi.testclient import TestClient
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.analyze import find_missing_positives
from crosslens.comparisons import compare, group_runs
from crosslens.core import Histogram
from crosslens.data import describe
from crosslens.language import count_words
from crosslens.pipeline import Robustness
from crosslens.pipeline.robustness_study.tables import DROP_COLUMNS
from crosslens.web.explorer.retrieval import QueryFilter, Retrieval
from crosslens.web.explorer.runs import RunFilter, ServedDataset, comparable_runs, run_list
from crosslens.web.library import RunSummary
from tests.web.conftest import IMAGES, copy_of, explorer_of, toys, write_run

RUN = "model-a"


def expected_lists(seed: int, direction: str) -> dict[str, list[tuple[str, float]]]:
    """Every query with all items, the highest score first: the scores of ``write_run`` again, sorted by Python."""
    dataset = toys()
    matrix = np.random.default_rng(seed).normal(size=(IMAGES, 2 * IMAGES)).astype(np.float32)
    for caption in range(2 * IMAGES):
        matrix[caption // 2, caption] += 1.5
    side = matrix if direction == "i2t" else matrix.T
    queries, items = (dataset.image_ids, dataset.caption_ids)[:: 1 if direction == "i2t" else -1]
    return {
        query: sorted(zip(items, map(float, side[row]), strict=True), key=lambda pair: -pair[1])
        for row, query in enumerate(queries)
    }


def is_relevant(first: str, second: str) -> bool:
    return first.split("#")[0] == second.split("#")[0]


@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_lists_and_ranks_agree_with_plain_sorting(client: TestClient, direction: str) -> None:
    for query, ranked in expected_lists(1, direction).items():
        view = client.get(f"/api/runs/{RUN}/query", params={"id": query, "direction": direction, "k": 7}).json()
        result, other_result = view["results"]
        assert (result["run"], other_result["run"]) == (RUN, "model-b")
        assert [item["item"] for item in result["items"]] == [item for item, _ in ranked[:7]]
        assert [item["score"] for item in result["items"]] == pytest.approx([score for _, score in ranked[:7]])
        assert [item["relevant"] for item in result["items"]] == [is_relevant(query, item) for item, _ in ranked[:7]]
        first = next(rank for rank, (item, _) in enumerate(ranked, 1) if is_relevant(query, item))
        assert result["rank"] == first
        assert result["outcome"] == ("hit" if first == 1 else "failed")
        relevant = {item: rank for rank, (item, _) in enumerate(ranked, 1) if is_relevant(query, item)}
        assert {item["item"]: item["rank"] for item in view["relevant"]} == relevant


@pytest.fixture(scope="module")
def queries(runs_folder: Path) -> Retrieval:
    return Retrieval(cl.Run.load(runs_folder / RUN), "t2i", toys())


@given(
    st.sampled_from(["", "dog", "CATS 1", "number", "script", "img1#", "nothing like it", "a dog  a"]),
    st.sampled_from(["order", "rank", "Hit@1", "MRR", "MedR", "surest", "nearest"]),
    st.booleans(),
    st.sampled_from([(), ("kind=odd",), ("kind=even",), ("kind=even", "caption_length=5")]),
    st.sampled_from(["", "hit", "failed", "2-5", "6-10", "11-"]),
)
def test_filters_facets_and_the_figure_agree_with_a_loop(
    queries: Retrieval, search: str, sort: str, descending: bool, where: tuple[str, ...], outcome: Any
) -> None:
    query_filter = QueryFilter(search, sort, descending, where, outcome)
    texts = dict(zip(toys().caption_ids, toys().texts, strict=True))
    lists = expected_lists(1, "t2i")
    bands = {"": (1, 99), "hit": (1, 1), "failed": (2, 99), "2-5": (2, 5), "6-10": (6, 10), "11-": (11, 99)}
    expected, kinds = [], {"odd": [0, 0], "even": [0, 0]}
    for row, query in enumerate(queries.query_ids):
        number = int(query.removeprefix("img").split("#")[0])
        rank = next(rank for rank, (item, _) in enumerate(lists[query], 1) if is_relevant(query, item))
        words, kind = f"{texts[query]} {query}".lower(), "odd" if number % 2 else "even"
        columns = {"kind": kind, "caption_length": str(len(texts[query].split()))}
        low, high = bands[outcome]
        if not (all(word in words for word in search.lower().split()) and low <= rank <= high):
            continue
        if all(
            columns[name] == value
            for name, _, value in (condition.partition("=") for condition in where)
            if name != "kind"
        ):
            kinds[kind][0] += 1
            kinds[kind][1] += rank == 1
        if any(columns[name] != value for name, _, value in (condition.partition("=") for condition in where)):
            continue
        scores = [score for _, score in lists[query]]
        lead = scores[0] - scores[min(rank, 10) - 1]
        by_lead = (rank == 1, -lead if sort == "surest" else lead)
        key: Any = {"order": row, "rank": rank, "MRR": 1 / rank, "MedR": rank, "Hit@1": float(rank == 1)}.get(sort, 0)
        expected.append(
            (by_lead if rank > 1 else (True, 0.0), row) if "est" in sort else (-key if descending else key, row)
        )
    if not set(where) <= {f"{name}={value}" for name in queries.groups for value in queries.group_rows(name)}:
        return  # no caption is so long
    rows = queries.select(query_filter)
    ordered = [row for _, row in sorted(expected)]
    assert [int(row) for row in rows] == ordered
    counted = {entry.value: (entry.count, entry.mean) for entry in queries.facets(query_filter)["kind"] if entry.count}
    assert counted == {kind: (count, hits / count) for kind, (count, hits) in kinds.items() if count}
    if ordered:
        values = queries.metrics["Hit@1"].values[ordered]
        figure = queries.figure(rows)
        assert figure.mean == pytest.approx(values.mean())
        assert not figure.low > figure.mean
        assert not figure.high < figure.mean


def test_queries_at_random_are_all_of_them_in_another_order(queries: Retrieval) -> None:
    rows = queries.select(QueryFilter(sort="random"))
    assert sorted(rows) == list(range(len(queries.query_ids)))
    assert list(rows) != sorted(rows)
    assert list(rows) == list(queries.select(QueryFilter(sort="random"))), "the same on every page"


def test_against_another_run(client: TestClient, runs_folder: Path) -> None:
    """The queries that only this run finds, only the other, both or neither; a facet of the page."""
    ours, theirs = (cl.Run.load(runs_folder / name)["t2i/Hit@1"] for name in (RUN, "model-b"))
    values_of_both = dict(zip(ours.query_ids, zip(ours.values, theirs.values, strict=True), strict=True))
    address, sizes = f"/api/runs/{RUN}/queries?against=model-b&limit=200", {}
    for side, pair in {"only_this": (1, 0), "only_other": (0, 1), "both": (1, 1), "neither": (0, 0)}.items():
        listed = client.get(f"{address}&side={side}").json()
        assert {row["query"] for row in listed["rows"]} == {
            query for query, values in values_of_both.items() if values == pair
        }
        sizes[side] = listed["matching"]
    facet = {entry["value"]: entry["count"] for entry in client.get(address).json()["facets"]["side"]}
    assert facet == {side: size for side, size in sizes.items() if size}
    page = client.get(f"/runs/{RUN}?against=model-b&side=only_this&where=kind%3Dodd").text
    assert "only this run finds" in page
    assert "100.0" in page.partition('class="headline"')[2][:60]
    paired = compare(runs_folder / "model-b", runs_folder / RUN, permutations=50).paired["model a"]
    assert [len(queries) for queries in paired.sets.values()] == [
        sizes[side] for side in ("only_other", "only_this", "both", "neither")
    ]
    page = client.get(f"/compare?run=model-b&run={RUN}").text
    for side in ("only_this", "only_other"):
        assert f"/runs/{RUN}?direction=t2i&amp;against=model-b&amp;side={side}" in page


def test_only_comparisons_that_work_are_offered() -> None:
    """The same content of the dataset or of the judgements, the same queries and folds, and a metric of both."""

    def summary(name: str, dataset: str = "d", n: int = 10, metric: str = "t2i/Hit@1", **more: Any) -> RunSummary:
        return RunSummary(name, Path(name), name, name, (), {metric: {"mean": 0.5, "n": n}}, dataset=dataset, **more)

    folds = {"options": {"folds": 5}}
    drawn, judged = ([{"options": {"queries": 5, "seed": seed}} for seed in (0, 1)],
                     [{"relevance": {"t2i": {"source": "qrels", "fingerprint": name}}} for name in "xy"])  # fmt: skip
    runs = [
        summary("a"), summary("b"), summary("other", "e"), summary("fewer", n=9), summary("rank", metric="t2i/MedR"),
        summary("folded", provenance=folds), summary("bad", problem="unreadable"), summary("lists", ""),
        summary("c", ""), summary("folded too", provenance=folds), summary("drawn", provenance=drawn[0]),
        summary("others drawn", provenance=drawn[1]), summary("judged", provenance=judged[0]),
        summary("judged again", provenance=judged[0]), summary("judged otherwise", provenance=judged[1]),
        summary("qrels", "", provenance=judged[0]), summary("qrels again", "", provenance=judged[0]),
        summary("odd", "", provenance={"relevance": {"t2i": 3}}), summary("as odd", "", provenance={"relevance": []}),
    ]  # fmt: skip
    assert [[run.name for run in group] for group in comparable_runs(runs)] == [
        ["a", "b"], ["folded", "folded too"], ["judged", "judged again"], ["qrels", "qrels again"],
    ]  # fmt: skip
    assert not comparable_runs(runs[2:5])


def test_pages_of_a_list_cover_it_once(client: TestClient) -> None:
    listed_queries = []
    for offset in range(0, 30, 7):
        part = client.get(f"/api/runs/{RUN}/queries", params={"offset": offset, "limit": 7, "sort": "MRR"}).json()
        assert part["matching"] == part["queries"] == 2 * IMAGES
        listed_queries += [row["query"] for row in part["rows"]]
    assert sorted(listed_queries) == sorted(toys().caption_ids)
    values = [
        client.get(f"/api/runs/{RUN}/queries?sort=MRR&limit=200").json()["rows"][n]["values"]["MRR"] for n in (0, -1)
    ]
    assert values[0] <= values[1]


def test_group_values_are_counted(client: TestClient) -> None:
    facets = client.get(f"/api/runs/{RUN}/queries").json()["facets"]
    assert {entry["value"]: entry["count"] for entry in facets["kind"]} == {"even": IMAGES, "odd": IMAGES}
    assert {"outcome", "kind", "caption_length"} <= set(facets)
    lengths = [int(entry["value"]) for entry in facets["caption_length"]]
    assert lengths == sorted(lengths), "numbers in their order, the others by how many have them"
    assert "file" not in facets


@pytest.mark.parametrize(
    ("address", "status"),
    [
        (f"/api/runs/{RUN}/queries?sort=nothing", 404),
        (f"/api/runs/{RUN}/queries?where=nothing%3D1", 404),
        (f"/api/runs/{RUN}/queries?where=kind%3Dnothing", 404),
        (f"/api/runs/{RUN}/queries?outcome=good", 422),
        (f"/api/runs/{RUN}/queries?against=nothing", 404),
        (f"/api/runs/{RUN}/queries?direction=x2y", 404),
        (f"/api/runs/{RUN}/queries?offset=-1", 422),
        (f"/api/runs/{RUN}/queries?limit=0", 422),
        (f"/api/runs/{RUN}/queries?limit=100000", 422),
        (f"/api/runs/{RUN}/queries?search={'x' * 501}", 422),
        (f"/api/runs/{RUN}/query?id=nothing", 404),
        (f"/api/runs/{RUN}/query", 422),
        ("/api/runs/..%2f..%2fetc", 404),
        ("/api/comparison?baseline=model-a&other=model-a", 422),
        ("/api/datasets/nothing", 404),
        ("/api/nothing", 404),
    ],
)
def test_bad_requests(client: TestClient, address: str, status: int) -> None:
    answer = client.get(address)
    assert answer.status_code == status
    assert set(answer.json()) == {"problem", "fix"}


def test_leaderboard_filters(client: TestClient) -> None:
    every = client.get("/api/runs").json()
    assert [row["id"] for row in every["runs"]] == ["model-a", "model-b", "broken"], "damaged ones last"
    assert [row["id"] for row in client.get("/api/runs?name=MODEL b").json()["runs"]] == ["model-b"]
    assert client.get("/api/runs?metric=medr").json()["metrics"] == ["i2t/MedR", "t2i/MedR"]
    dataset = every["runs"][0]["dataset"]
    assert {row["id"] for row in client.get(f"/api/runs?dataset={dataset}").json()["runs"]} == {
        "model-a", "model-b", "broken"
    }  # fmt: skip
    assert client.get("/api/runs?dataset=none").json()["runs"][0]["id"] == "broken"
    for metric in ("t2i/Hit@1", "t2i/MedR"):
        rows = client.get(f"/api/runs?sort={metric}&metric={metric}").json()
        means = {row["id"]: row["figures"][metric]["mean"] for row in rows["runs"] if row["problem"] is None}
        assert list(means.values()) == sorted(means.values(), reverse=True)
        top = (min if "MedR" in metric else max)(means.values())
        assert rows["best"][metric] == [run for run, mean in means.items() if mean == top]


def test_comparison_is_that_of_the_command(client: TestClient, runs_folder: Path) -> None:
    view = client.get("/api/comparison?baseline=model-a&other=model-b&metric=Hit").json()
    assert view["comparisons"] == view["metrics"]
    names = ["i2t/Hit@1", "t2i/Hit@1", "i2t/Hit@5", "t2i/Hit@5"]
    several = client.get("/api/comparison?baseline=model-a&other=model-b&metric=Hit@1 mrr").json()
    assert {row["metric"] for row in several["metrics"]} == {"i2t/Hit@1", "t2i/Hit@1", "i2t/MRR", "t2i/MRR"}
    expected = compare(runs_folder / "model-a", runs_folder / "model-b", metrics=names)
    assert [row["metric"] for row in view["metrics"]] == [result.metric for result in expected.results]
    for row, result in zip(view["metrics"], expected.results, strict=True):
        assert (row["difference"], row["adjusted_p"], row["wins"], row["losses"]) == (
            result.difference, result.adjusted_p, result.wins, result.losses
        )  # fmt: skip


def test_a_comparison_leaves_out_what_was_measured_differently(tmp_path: Path) -> None:
    """As in the command: the page of all other metrics, and a note."""
    dataset, rng = toys(), np.random.default_rng(5)
    shape = (len(dataset.image_ids), len(dataset.caption_ids))
    for name in ("first", "second"):
        scores, phi = (rng.random(shape, np.float32) for _ in range(2))
        run = cl.evaluate(dataset, scores=scores, metrics="Hit@1 NCS[mine]@3", phi={"mine": phi}, resamples=20)
        run.save(tmp_path / "runs" / name)
    with explorer_of(tmp_path / "runs", tmp_path / "cache") as client:
        view = client.get("/api/comparison?baseline=first&other=second").json()
        assert [row["metric"] for row in view["metrics"]] == ["i2t/Hit@1", "t2i/Hit@1"]
        assert sum("Left out" in note and "NCS[mine]@3" in note for note in view["notes"]) == 2


@pytest.mark.parametrize("control", [True, False])
def test_likely_positives_agree_with_the_whole_search(
    runs_folder: Path, tmp_path: Path, control: bool, request: pytest.FixtureRequest
) -> None:
    """Where similarity cannot tell, nothing is marked: of the toys, captions edited in a number pass."""
    if not control:
        request.getfixturevalue("without_control")
    client = explorer_of(runs_folder, tmp_path / "cache")
    whole = find_missing_positives(toys(), "cider", quantile=0.75)
    pairs = {(row["image"], row["caption"]): row["phi"] for row in whole.table.to_dicts()}
    marked = 0
    for query, ranked in expected_lists(1, "t2i").items():
        likely = client.get(f"/api/runs/{RUN}/likely-positives", params={"id": query, "k": 10}).json()
        assert likely["threshold"] == pytest.approx(whole.threshold)
        expected = {item: pairs[item, query] for item, _ in ranked[:10] if (item, query) in pairs}
        assert {entry["item"]: entry["phi"] for entry in likely["items"]} == pytest.approx(expected)
        marked += len(expected)
    assert (marked == 0) == control, "some are marked"


@pytest.mark.usefixtures("without_control")
def test_pages_mark_likely_positives_without_a_script(runs_folder: Path, tmp_path: Path) -> None:
    """Of every run that a page shows, as the search says; the second request need not wait for anything."""
    client = explorer_of(runs_folder, tmp_path / "cache")
    client.get(f"/api/runs/{RUN}/likely-positives", params={"id": "img8#0"})
    page = client.get(f"/runs/{RUN}/query", params={"id": "img8#0"}).text
    cards = re.findall(r'<li class="item likely" data-item="(\w+)"', page)
    views = client.get(f"/api/runs/{RUN}/query", params={"id": "img8#0"}).json()["results"]
    listed = [item["item"] for result in views for item in result["items"]]
    assert cards == [item for item in listed if item == "img9"], "its captions are the same"
    assert "not in the ground truth" in page
    unmarked = client.get(f"/runs/{RUN}/query", params={"id": "img2#0"}).text
    assert 'class="item likely"' not in unmarked
    assert "likely-note" not in unmarked


@pytest.mark.usefixtures("without_control")
def test_what_a_caption_denies_is_not_marked_as_likely(tmp_path: Path) -> None:
    """Eight laptops are not nine, however alike the captions are."""
    captions = {f"img{n}": [f"a dog and {n} cats", f"picture number {n}"] for n in range(IMAGES)}
    captions["img8"] = captions["img9"] = ["nine black laptops", "nine new black laptops"]
    captions["img7"] = ["eight black laptops", "eight new black laptops"]
    dataset = cl.Dataset.of(captions, name="toys")
    dataset.save(tmp_path / "runs" / "toys")
    write_run(tmp_path / "runs", dataset, "model a", 1)
    client = explorer_of(tmp_path / "runs", tmp_path / "cache")
    likely = client.get(f"/api/runs/{RUN}/likely-positives", params={"id": "img8#0", "k": IMAGES}).json()
    assert [entry["item"] for entry in likely["items"]] == ["img9"]
    whole = find_missing_positives(dataset, "cider", quantile=0.75)
    assert whole.denied > 0, "they are alike enough otherwise"


def test_a_dataset_that_cannot_be_prepared_leaves_the_page_without_marks(tmp_path: Path) -> None:
    plain = cl.Dataset.of({f"img{n}": [f"picture {n}"] for n in range(6)}, name="toys")
    plain.save(tmp_path / "runs" / "toys")
    write_run(tmp_path / "runs", plain, "model a", 1)
    single = explorer_of(tmp_path / "runs", tmp_path / "cache")
    assert single.get(f"/api/runs/{RUN}/likely-positives", params={"id": "img1#0"}).status_code == 422
    page = single.get(f"/runs/{RUN}/query", params={"id": "img1#0"})
    assert page.status_code == 200
    assert "data-again" not in page.text


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_explanations_are_those_of_the_command(client: TestClient, runs_folder: Path, direction: str) -> None:
    for query in ("img1", "img4", "img8"):
        query = query if direction == "i2t" else f"{query}#0"
        answer = client.get(f"/api/runs/{RUN}/explanation", params={"id": query, "direction": direction}).json()
        assert answer == cl.explain(runs_folder / RUN, query, direction=direction).as_dict()


def test_who_retrieves_an_image(client: TestClient) -> None:
    dataset = client.get("/api/runs").json()["runs"][0]["dataset"]
    lists = expected_lists(1, "t2i")
    for image in ("img0", "img7"):
        view = client.get(f"/api/datasets/{dataset}/image", params={"id": image}).json()
        ranks = {query: [item for item, _ in ranked].index(image) + 1 for query, ranked in lists.items()}
        assert {row["caption"]: row["ranks"][RUN] for row in view["captions"]} == {
            f"{image}#{n}": ranks[f"{image}#{n}"] for n in range(2)
        }
        wrong = {query: rank for query, rank in ranks.items() if rank <= 10 and not is_relevant(query, image)}
        assert view["wrong_counts"][RUN] == len(wrong)
        rank_of = {row["query"]: row["rank"] for row in view["retrieved_wrongly"][RUN]}
        assert rank_of == {query: wrong[query] for query in rank_of}
        assert sorted(rank_of.values()) == sorted(wrong.values())[: len(rank_of)]
    assert view["columns"]["kind"] == "odd"
    assert view["objects"] == ["dog"]


def test_dataset_page_counts(client: TestClient) -> None:
    dataset = client.get("/api/runs").json()["runs"][0]["dataset"]
    view = client.get(f"/api/datasets/{dataset}").json()
    lengths = count_words(pl.Series(toys().texts)).to_list()
    assert view["word_counts"] == {str(length): lengths.count(length) for length in sorted(set(lengths))}
    assert (view["images"], view["captions"], view["objects"]) == (IMAGES, 2 * IMAGES, IMAGES)
    assert {group["column"]: group["counts"] for group in view["groups"]}["images.kind"] == {"even": 6, "odd": 6}
    images = client.get(f"/api/datasets/{dataset}/images?search=dog 1&limit=3").json()
    whole = [" ".join([image, *toys().captions.filter(pl.col("image") == image)["text"]]) for image in toys().image_ids]
    assert images["matching"] == sum("1" in text and "dog" in text for text in whole)
    assert len(images["rows"]) == 3


def write_study(folder: Path) -> None:
    """A study of one model and two perturbations of one query, as ``crosslens robustness`` stores it."""
    dataset = toys()
    edit = {"start": 2, "end": 5, "before": "dog", "after": "dgo"}
    captions = [
        {"perturbation": name, "seed": 0, "caption": "img2#0", "original": "a dog and 2 cats", "applied": bool(edits),
         "text": "a dgo and 2 cats" if edits else "a dog and 2 cats", "reason": "", "edits": edits}
        for name, edits in (("char_swap", [edit]), ("synonym_noun", []))
    ]  # fmt: skip
    queries = [
        {"model": "m", "perturbation": name, "seed": 0, "query": "img2#0", "applied": applied, "rank_before": 2.0,
         "rank_after": rank}
        for name, applied, rank in (("char_swap", True, 7.0), ("synonym_noun", False, None))
    ]  # fmt: skip
    empty = pl.DataFrame(schema={"metric": pl.String, "percent": pl.Float64})
    tables = dict.fromkeys(("drops", "spread", "changes", "overlap", "overlap_pairs", "words", "brittle"), empty)
    tables |= {"captions": pl.DataFrame(captions), "queries": pl.DataFrame(queries)}
    tables["drops"] = pl.DataFrame(schema=dict(DROP_COLUMNS))
    metadata = {"dataset": {"name": dataset.name, "fingerprint": dataset.fingerprint}}
    Robustness(("m",), ("char_swap", "synonym_noun"), "t2i/Hit@1", "t2i", metadata, **tables).save(folder)


def test_perturbations_of_a_query(runs_folder: Path, tmp_path: Path) -> None:
    folder = copy_of(runs_folder, tmp_path)
    write_study(folder / "studies" / "one")
    shutil.copytree(folder / "model-a", folder / "studies" / "one" / "m" / "char_swap")
    shutil.copytree(folder / "studies" / "one", folder / "damaged-study")
    (folder / "damaged-study" / "queries.parquet").write_bytes(b"nothing")
    client = explorer_of(folder, tmp_path / "cache")
    assert "stud" not in str(client.get("/api/runs").json()["runs"]), "the runs inside a study are parts of it"
    rows = client.get(f"/api/runs/{RUN}/perturbations?id=img2%230").json()["rows"]
    assert [(row["perturbation"], row["rank_before"], row["rank_after"]) for row in rows] == [
        ("char_swap", 2, 7), ("synonym_noun", 2, None)
    ]  # fmt: skip
    spans = [(span["before"], span["after"]) for span in rows[0]["spans"]]
    assert spans == [("a ", "a "), ("dog", "dgo"), (" and 2 cats", " and 2 cats")]
    page = client.get(f"/runs/{RUN}/query?id=img2%230").text
    assert "a <del>dog</del><ins>dgo</ins> and 2 cats" in page
    assert "5 down" in page
    assert "not in list" in page
    assert client.get(f"/api/runs/{RUN}/perturbations?id=img2&direction=i2t").json() == {"rows": []}


def test_steps_through_the_list(client: TestClient) -> None:
    listed = [row["query"] for row in client.get(f"/api/runs/{RUN}/queries?sort=MRR&limit=200").json()["rows"]]
    page = client.get(f"/runs/{RUN}/query", params={"id": listed[3], "sort": "MRR", "at": 3}).text
    previous, following = (f"id={query.replace('#', '%23')}&amp;" for query in (listed[2], listed[4]))
    assert previous in page
    assert following in page


def test_a_run_of_lists_alone_has_the_dataset_that_leaderboards_name(tmp_path: Path) -> None:
    lists = {f"c{n}": [f"i{(n + k) % 20}" for k in range(12)] for n in range(20)}
    judged = {f"c{n}": [f"i{n}"] for n in range(20)}
    run = cl.evaluate(run=lists, relevance=judged, directions=["t2i"], metrics="Hit@1", resamples=20, name="lists")
    run.save(tmp_path / "runs" / "lists")
    ((_, name),) = group_runs([run])
    client = explorer_of(tmp_path / "runs", tmp_path / "cache")
    assert client.get("/api/runs").json()["runs"][0]["dataset_name"] == name
    listed = client.get("/api/runs/lists/queries?limit=200").json()
    missed = [row for row in listed["rows"] if row["outcome"] == "failed"]
    assert all(row["rank"] is not None or row["lead"] is None for row in missed), "a list may leave out anything"
    assert listed["rows"][0]["top"][0]["item"] in client.get("/runs/lists").text, "without pictures there are ids"
    page = client.get("/").text
    assert f"<td>{name}</td>" in page
    assert "unknown" not in page


def test_the_runs_are_a_table_of_figures() -> None:
    figures = {"t2i/Hit@1": 0.51234, "t2i/MedR": 12.0, "Rsum": 161.98}
    metrics = {name: {"mean": mean, "low": None, "high": None, "n": 9} for name, mean in figures.items()}
    better = metrics | {"t2i/Hit@1": {"mean": 0.6, "n": 9}}
    data, folds = {"dataset": {"name": "D"}}, {"options": {"folds": 2}}
    runs = [
        RunSummary("a", Path("a"), "a", "a", (), metrics, data, "d", "D"),
        RunSummary("b", Path("b"), "b", "b", (), better, data, "d", "D"),
        RunSummary("c", Path("c"), "c", "c", (), better | {"t2i/Hit@1": {"mean": 0.7, "n": 9}}, data | folds, "d", "D"),
        RunSummary("x", Path("x"), "x", "x", (), problem="unreadable"),
    ]
    (section,) = run_list(runs, RunFilter(sort="t2i/Hit@1")).sections()
    table, damaged = section.tables
    assert table.header == ("Run", "Dataset", "t2i/Hit@1", "t2i/MedR", "Rsum")
    assert [str(cell) for cell in table.rows[1][2:]] == ["60.0", "12", "162.0"]
    assert [row[:2] for row in table.rows] == [("c", "D (2 folds)"), ("b", "D"), ("a", "D")]
    assert [(row, 2) in table.best for row in range(3)] == [False, True, False], "a smaller gallery is no better"
    assert damaged.rows == (("x", "x", "unreadable"),)


def test_caption_lengths() -> None:
    served = ServedDataset("toys", describe(toys()), {3: 2, 5: 4}, (), {})
    (chart,) = (part for section in served.sections() for part in section.parts if isinstance(part, Histogram))
    assert chart.table.rows == (("3", "2"), ("4", "0"), ("5", "4")), "an empty length leaves a gap"

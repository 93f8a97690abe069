"""Text-only retrieval: the corpus says what is in an image, the queries ask; over one text set or two."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.analyze import assess_label_quality, find_missing_positives
from crosslens.cli import main
from crosslens.core import ConflictError
from crosslens.encode import load_encoder, text_only, text_queries
from crosslens.explanations import CAUSES, cause_column, compare_queries, dataset_of_run, explain_run
from crosslens.similarity import Cider, prepare_dataset, relevance_matrix
from tests.language.pipelines import needs_a_pipeline

pytestmark = needs_a_pipeline

TEXTS = {
    "gauge": ["gauge on a pipe", "round gauges", "pipes nearby", "an old gauge"],
    "dogs": ["a small brown dog runs on wet grass", "a brown dog in the grass", "a small dog is running", "wet dog"],
    "other": ["a large white dog sleeps", "a white dog", "a big dog sleeping on a sofa", "a dog at home"],
    "cat": ["a black cat sleeps on a sofa", "a black cat on a red sofa", "a sleeping cat", "a cat lies there"],
    "boat": ["two men in a boat", "men sail a wooden boat", "a boat with two men", "people on the water"],
    "men": ["two men stand in front of a wooden house", "a house", "two men standing", "a wooden house and men"],
}
"""The text at 0 asks."""
MODEL = """
import json
from pathlib import Path
import numpy as np

TEXTS = json.loads(Path("texts.json").read_text())

class Model:
    revision = "1"
    def encode_texts(self, texts):
        rows = np.zeros((len(texts), len(TEXTS)), np.float32)
        for row, text in enumerate(texts):
            image = next(number for number, own in enumerate(TEXTS.values()) if text in own)
            asks = text == list(TEXTS.values())[image][0]
            rows[row, (image + asks) % len(TEXTS)] = 1
        return rows
"""
"""Every text has the vector of its image, but those that ask have that of the next image: all queries fail."""
GRADED = ("NCS[cider]@1", "NCS[cider]@3", "NCS[cider, non-gt]@3", "SR[cider, m=2]@3", "NCS[spice-object]@3")


def call(*words: str) -> int:
    try:
        return int(main(list(words)) or 0)
    except SystemExit as end:
        return int(end.code or 0)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, cl.Run]:
    """The same retrieval three times: one text set, two sets with all texts on both sides, and two without overlap."""
    folder = tmp_path_factory.mktemp("corpus")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("CROSSLENS_CACHE", str(folder / "cache"))
        Path("texts.json").write_text(json.dumps(TEXTS))
        Path("model.py").write_text(MODEL)
        for name, numbers in {"all": range(4), "asking": range(1), "others": range(1, 4)}.items():
            rows = [(image, number) for image in TEXTS for number in numbers]
            lines = [{"image": image, "caption": f"{image}#{n}", "text": TEXTS[image][n]} for image, n in rows]
            Path(f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
        sides = {
            "one": ("--dataset", "all.jsonl", "--image-text", "mean"),
            "same": ("--dataset", "all.jsonl", "--queries", "all.jsonl"),
            "split": ("--dataset", "others.jsonl", "--queries", "asking.jsonl"),
        }
        for name, words in sides.items():
            model = ("--model", "callable:model.py:Model", "--metrics", ",".join(("Hit@1", *GRADED)), "--trust-code")
            assert call("evaluate", *words, *model, "-o", name) == 0
            stages = ("missing-positives", "label-quality", "explain") if name == "split" else ("missing-positives",)
            only = [word for stage in stages for word in ("--only", stage)]
            audit = ("audit", "--run", name, "-o", f"audit-{name}", *only, "--similarity", "cider", "--trust-code")
            assert call(*audit) == 0
    return {name: cl.Run.load(folder / name) for name in sides}


@pytest.fixture(scope="module")
def one_set(runs: dict[str, cl.Run]) -> Any:
    """Why the queries of one text set fail."""
    return cl.explain(runs["one"], resamples=20)


def columns() -> list[str]:
    names = ("query", "text", "ground_truth", "retrieved", "CA", "CE", "common", "missing", "query CA")
    return [*names, *map(cause_column, CAUSES), "main_cause", "mentions", "unjudged", "by_captions"]


@pytest.mark.parametrize("name", ["same", "split"])
def test_two_sets_of_the_same_texts_explain_as_one(runs: dict[str, cl.Run], one_set: Any, name: str) -> None:
    two_sets = cl.explain(runs[name], resamples=20)
    assert one_set.failures.height == len(TEXTS)
    assert two_sets.failures.select(columns()).equals(one_set.failures.select(columns()))
    for table in ("causes", "cause_numbers", "metrics", "totals", "confusions", "query_confusions"):
        assert getattr(two_sets, table).equals(getattr(one_set, table)), table
    assert two_sets.notes == one_set.notes
    counts = {row["cause"]: row["count"] for row in one_set.causes.to_dicts()}
    assert all(counts[cause] for cause in ("object", "colour", "size", "action")), "there are causes to compare"


@pytest.mark.parametrize("name", ["same", "split"])
def test_the_keyword_filter_too(runs: dict[str, cl.Run], name: str) -> None:
    def rows(run: cl.Run) -> pl.DataFrame:
        result = assess_label_quality(dataset_of_run(run), run)
        assert result.runs.select("queries", "failures").row(0) == (6, 6)
        asking = result.table.filter(pl.col("caption").str.ends_with("#0")).sort("caption")
        words = pl.col("evidence").str.extract(r"^((only here|the others): [^;]*)").alias("words")
        return asking.select("caption", "text", "reason", "proposal", "concept_share", words)

    assert rows(runs[name]).equals(rows(runs["one"]))
    shares = dict(rows(runs[name]).select("caption", "concept_share").iter_rows())
    assert shares["gauge#0"] == 1, "gauge and pipe are both in the corpus"


def test_a_query_that_the_corpus_bears_out_is_not_filtered() -> None:
    corpus = cl.Dataset.of({"a": ["round gauges", "pipes nearby"], "b": ["a dog", "a brown dog"]}, name="regions")
    queries = cl.Dataset.of({"a": ["gauge on a pipe"], "b": ["an elephant by a castle"]}, name="captions")
    dataset = text_queries(corpus, 0, queries).dataset  # ids of both sets are the same, their texts are not
    assert dataset.caption_ids == ("a#0", "b#0")
    assert dataset.corpus is not None
    assert dataset.corpus["text"].to_list() == ["round gauges", "pipes nearby", "a dog", "a brown dog"]
    table = assess_label_quality(dataset).table
    assert table["caption"].to_list() == ["b#0"]
    assert "only here: elephant, castle" in table["evidence"][0]
    # The other queries of an image are no evidence: both ask for what the corpus does not hold.
    twice = cl.Dataset.of({"a": ["an elephant", "the elephant sleeps"], "b": ["a dog"]})
    both = assess_label_quality(text_queries(corpus, "each", twice).dataset).table
    assert set(both.filter(pl.col("reason").str.contains("words"))["caption"]) == {"a#0", "a#1"}


def test_a_query_confirms_nothing_by_itself() -> None:
    """*Wet* is in the corpus of the dogs only as the query itself; *brown* also in another text."""
    corpus = cl.Dataset.of({"dog": ["a wet brown dog.", "a brown dog"], "other": ["a dog", "the dog is there"]})
    queries = cl.Dataset.of({"dog": ["a wet brown dog"], "other": ["dogs"]})
    texts = text_queries(corpus, 0, queries)
    scores = np.array([[0.0, 1.0], [1.0, 0.0]], np.float32)
    run = cl.evaluate(texts.dataset, scores=scores, metrics=["Hit@1"], directions=["t2i"], resamples=0)
    failure = explain_run(run, texts.dataset, resamples=0).failures.filter(query="dog#0").row(0, named=True)
    assert failure["cause_detail"] is None
    assert explain_run(run, replace(texts.dataset, corpus=None), resamples=0).failures.height == 2
    confirming = replace(corpus, captions=corpus.captions.with_columns(pl.col("text").str.replace("wet brown", "wet")))
    query_texts = text_queries(confirming, 0, queries).dataset
    assert explain_run(run, query_texts, resamples=0).failures.filter(query="dog#0")["cause_detail"][0] is True


def test_texts_that_all_ask_are_evidence_for_each_other() -> None:
    dataset = cl.Dataset.of(TEXTS)
    texts = text_queries(dataset, "each", cl.Dataset.of(TEXTS))
    random = np.random.default_rng(5)
    scores = random.normal(size=(len(TEXTS), 4 * len(TEXTS))).astype(np.float32)
    run = cl.evaluate(dataset, scores=scores, metrics=["Hit@1"], directions=["t2i"], resamples=0)
    first, second = (explain_run(run, corpus, resamples=0) for corpus in (dataset, texts.dataset))
    assert second.failures.equals(first.failures)
    labels = [assess_label_quality(corpus, run) for corpus in (dataset, texts.dataset)]
    assert labels[1].table.equals(labels[0].table)


def corpus_matrix(captions: list[str]) -> np.ndarray:
    """φ of every image's texts that do not ask, and a caption: text by text, with nothing of a dataset."""
    return Cider().prepare([texts[1:] for texts in TEXTS.values()], captions).block(slice(0, len(TEXTS)))


@pytest.mark.parametrize("name", ["same", "split"])
def test_graded_metrics_are_those_of_one_set(runs: dict[str, cl.Run], name: str) -> None:
    for metric in GRADED:
        first, second = (runs[name_of_run][f"t2t/{metric}"] for name_of_run in ("one", name))
        # Behind the first place the order is another: with the same texts on both sides, a query stands for its image.
        assert (name == "same" and not metric.endswith("@1")) or np.array_equal(first.values, second.values), metric
        assert 0 < second.mean < 1
    ranking = runs[name].rankings["t2t"]
    matrix = corpus_matrix([texts[0] for texts in TEXTS.values()])
    images = list(TEXTS)
    for row, (query, value) in enumerate(zip(ranking.query_ids, runs[name]["t2t/NCS[cider]@3"].values, strict=True)):
        column = matrix[:, images.index(query.removesuffix("#0"))].astype(float)
        top = [images.index(ranking.item_ids[item]) for item in ranking.top_items[row, :3]]
        assert value == pytest.approx(column[top].sum() / np.sort(column)[-3:].sum())


def test_what_is_asked_is_no_reference() -> None:
    """The corpus of the cat says what the first query says; the other queries of its image say nothing about it."""
    corpus = cl.Dataset.of(
        {"a": ["a dog runs on grass", "a brown dog"], "b": ["a cat", "a black cat"], "c": ["a boat"]}
    )
    queries = cl.Dataset.of({"a": ["a black cat sleeps", "a boat on a lake"], "b": ["a cat sleeps"]})
    asked = text_queries(corpus, "each", queries).dataset
    expected = Cider().prepare([["a dog runs on grass", "a brown dog"], ["a cat", "a black cat"], ["a boat"]],
                               asked.texts).block(slice(0, 3))  # fmt: skip
    assert np.array_equal(relevance_matrix(asked, cache=False), expected)
    assert expected[0, 0] == 0, "the query is in its own image's queries, not in its corpus"
    assert expected[2, 1] > 0, "an image without queries has texts"
    missing = find_missing_positives(asked, "cider", threshold=0.5)
    assert ("b", "a#0", "a cat") in set(missing.table.select("image", "caption", "image_caption").iter_rows())
    # The two queries of a, or the one of b, against the corpus of their images.
    assert set(missing.annotated.tolist()) <= {*expected[0, :2].tolist(), float(expected[1, 2])}


def test_a_stored_matrix_of_another_corpus_is_not_taken_for_this_one(tmp_path: Path) -> None:
    asked = text_queries(cl.Dataset.of(TEXTS), 0).dataset
    first = relevance_matrix(asked, output=tmp_path / "phi.npy")
    assert np.array_equal(relevance_matrix(asked, output=tmp_path / "phi.npy"), first)
    with pytest.raises(ConflictError, match="different matrix"):
        relevance_matrix(replace(asked, corpus=None), output=tmp_path / "phi.npy")


def test_texts_that_all_ask_are_compared_as_captions_are() -> None:
    """The same photos with the same texts on both sides: NCS, missing positives and φ of hits of the one-set run."""
    dataset = cl.Dataset.of(TEXTS)
    other_ids = replace(dataset, captions=dataset.captions.with_columns(caption="q" + pl.col("caption")))
    scores = np.random.default_rng(5).normal(size=(len(TEXTS), 4 * len(TEXTS))).astype(np.float32)
    for queries in (cl.Dataset.of(TEXTS), other_ids):
        asked = text_queries(dataset, "each", queries).dataset
        first, second = (
            cl.evaluate(texts_of_both, scores=scores, metrics=GRADED, resamples=0) for texts_of_both in (dataset, asked)
        )
        assert len(list(first)) == 2 * len(GRADED)
        assert all(np.array_equal(first[name].values, second[name].values, equal_nan=True) for name in first)
        missing = [find_missing_positives(texts_of_both, "cider", quantile=0.2) for texts_of_both in (dataset, asked)]
        assert missing[0].levels[0].pairs > 3
        assert missing[0].as_dict() == missing[1].as_dict()
        texts = ["image", "phi", "text", "caption_of", "image_caption"]
        assert missing[0].table.select(texts).equals(missing[1].table.select(texts))


def test_an_identical_text_asks_whatever_its_id() -> None:
    twice = {"a": ["a dog", "a dog", "a cat"], "b": ["a boat"]}
    queries = cl.Dataset.of({"a": ["a dog"], "b": ["a boat"]})
    queries = replace(queries, captions=queries.captions.with_columns(caption="q" + pl.col("caption")))
    asked = text_queries(cl.Dataset.of(twice), 0, queries).dataset
    assert asked.described.texts == ("a dog", "a cat", "a boat"), "once; and b has nothing else"


def test_an_audit_finds_the_missing_positives_of_one_set(runs: dict[str, cl.Run]) -> None:
    payloads = {}
    for name, run in runs.items():
        assert run.home is not None
        audit = run.home.parent / f"audit-{name}"
        stored = json.loads((audit / "results" / "missing-positives.json").read_text())
        payload = stored["payload"]
        pairs = pl.read_csv(audit / "missing-positives" / payload["dataset"] / "missing.csv")
        payloads[name] = {key: payload[key] for key in ("threshold", "pairs", "annotated", "levels")}
        payloads[name] |= {"table": pairs.rows(), "command": stored["command"]}
    commands = {name: payload.pop("command") for name, payload in payloads.items()}
    assert payloads["same"] == payloads["one"]
    matrix = corpus_matrix([texts[0] for texts in TEXTS.values()])
    own_scores = np.diag(matrix)
    assert payloads["split"]["threshold"] == pytest.approx(float(np.median(own_scores)))
    outside = matrix[~np.eye(len(TEXTS), dtype=bool)]
    assert payloads["split"]["pairs"] == int((outside >= np.float32(payloads["split"]["threshold"])).sum())
    assert ("--queries" in commands["split"], "--queries" in commands["one"]) == (True, False)


def test_missing_positives_of_two_text_sets(
    runs: dict[str, cl.Run], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = runs["split"].home
    assert home is not None
    monkeypatch.chdir(home.parent)
    stored = json.loads(Path("audit-split/results/missing-positives.json").read_text())["payload"]
    words = ("missing-positives", "--dataset", "others.jsonl", "--phi", "cider", "--json")
    assert call(*words, "--queries", "asking.jsonl") == 0
    printed = json.loads(capsys.readouterr().out)
    del printed["files"]
    assert printed == {key: stored[key] for key in printed}


def test_hits_are_compared_with_the_corpus(runs: dict[str, cl.Run]) -> None:
    """φ of top hits, where two runs are compared by query."""
    run = runs["split"]
    changes = compare_queries(run, run, dataset_of_run(run), permutations=10)
    matrix = corpus_matrix([texts[0] for texts in TEXTS.values()])
    count = len(TEXTS)
    assert changes.phi_means[0] == pytest.approx(np.mean([matrix[(row + 1) % count, row] for row in range(count)]))
    prepared = prepare_dataset(dataset_of_run(run))
    assert np.array_equal(prepared.block(slice(0, count)), matrix)


def test_one_query_shows_the_texts_of_the_corpus(runs: dict[str, cl.Run]) -> None:
    for run in runs.values():
        explained = cl.explain(run, "dogs#0")
        assert explained.query_text == TEXTS["dogs"][0]
        assert explained.right.captions == tuple(TEXTS["dogs"][1:])
        assert explained.other is not None
        assert explained.other.captions == tuple(TEXTS["other"][1:])


def test_a_dataset_named_for_a_run_over_two_sets_is_its_corpus(runs: dict[str, cl.Run]) -> None:
    run = runs["split"]
    assert run.home is not None
    others = dataset_of_run(run, run.home.parent / "others.jsonl")
    assert others.texts == tuple(captions[0] for captions in TEXTS.values())
    assert others.corpus is not None
    assert others.corpus.height == 3 * len(TEXTS)


def test_an_audit_reviews_and_explains_the_queries(runs: dict[str, cl.Run]) -> None:
    home = runs["split"].home
    assert home is not None
    results = home.parent / "audit-split" / "results"
    labels = json.loads((results / "label-quality.json").read_text())["payload"]
    assert labels["runs"][0] | {"run": ""} == labels["runs"][0] | {"run": "", "queries": 6, "failures": 6, "words": 0}
    stored = json.loads((results / "explain-split.json").read_text())["payload"]
    assert stored["causes"] == json.loads(json.dumps(cl.explain(runs["one"]).as_dict()))["causes"]


def test_a_changed_corpus_is_noted(runs: dict[str, cl.Run], tmp_path: Path) -> None:
    import shutil

    home = runs["split"].home
    assert home is not None
    moved = tmp_path / "moved"
    shutil.copytree(home.parent, moved)
    assert not any("changed since" in note for note in cl.explain(moved / "split").notes)
    with (moved / "others.jsonl").open("a") as file:
        file.write('\n{"caption": "more", "image": "cat", "text": "a tail"}')
    assert any("changed since" in note for note in cl.explain(moved / "split").notes)


def test_selected_images_keep_their_corpus() -> None:
    dataset = text_queries(cl.Dataset.of(TEXTS), 1).dataset
    part = dataset.select(["cat", "boat"])
    assert part.texts == (TEXTS["cat"][1], TEXTS["boat"][1])
    assert part.described.texts == tuple(TEXTS[image][n] for image in ("cat", "boat") for n in (0, 2, 3))
    assert dataset.fingerprint == replace(dataset, corpus=None).fingerprint


@pytest.mark.slow
def test_real_photos_with_their_captions_on_both_sides(shared_data: Path) -> None:
    """Photos of COCO with objects: every failure that two runs share has the same causes in both."""
    folder = shared_data / "coco_val2017_1k"
    coco = cl.load_dataset("coco", captions=folder / "captions.json", instances=folder / "instances.json")
    coco = coco.select(coco.image_ids[:60])
    encoder, analyses = load_encoder("tiny"), []
    for queries in (None, coco):
        texts = text_only(coco, encoder, query=0, queries=queries)
        run = cl.evaluate(texts, metrics=["Hit@1"], resamples=0)
        analyses.append((explain_run(run, texts.dataset, resamples=0), assess_label_quality(texts.dataset, run)))
    (explanation, labels), (second_explanation, other_labels) = analyses
    shared = ["query", "retrieved"]
    pairs = [
        table.failures.select(*shared, *columns()[-4:], *map(cause_column, CAUSES))
        for table in (explanation, second_explanation)
    ]
    left, right = (
        table.join(other_table, on=shared, how="semi").sort("query") for table, other_table in (pairs, pairs[::-1])
    )
    assert left.height > 10
    assert left.equals(right)
    filtered = pl.col("reason").str.contains("words")
    tables = [result.table.filter(filtered).sort("caption").select("caption", "text", "concept_share")
             for result in (labels, other_labels)]  # fmt: skip
    assert tables[0].equals(tables[1])

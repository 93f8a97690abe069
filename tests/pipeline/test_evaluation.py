"""Evaluation from every kind of input, and values that are known beforehand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.core import InputError, UsageError
from tests.pipeline.small_world import world
from tests.tables import each_row


def listed(matrix, queries, items):
    return {query: dict(zip(items, map(float, row), strict=True)) for query, row in zip(queries, matrix, strict=True)}


def test_every_kind_of_input_gives_the_same_run():
    dataset, pictures, texts = world()
    rng = np.random.default_rng(1)
    order, turn = rng.permutation(len(pictures)), rng.permutation(len(texts))
    from_arrays = cl.evaluate(dataset, images=pictures, captions=texts)
    by_id = cl.evaluate(
        dataset,
        images=cl.Embeddings.of(pictures[order], [dataset.image_ids[k] for k in order]),
        captions=cl.Embeddings.of(texts[turn], [dataset.caption_ids[k] for k in turn]),
    )
    unit = [
        rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (pictures.astype(float), texts.astype(float))
    ]
    matrix = (unit[0] @ unit[1].T).astype(np.float32)
    from_matrix = cl.evaluate(dataset, scores=matrix)
    lists = {"i2t": listed(matrix, dataset.image_ids, dataset.caption_ids)}
    lists["t2i"] = listed(matrix.T, dataset.caption_ids, dataset.image_ids)
    runs = {direction: cl.RankedLists.of(ranked) for direction, ranked in lists.items()}
    from_lists = cl.evaluate(dataset, run=runs)
    assert from_arrays.fingerprint == by_id.fingerprint == from_matrix.fingerprint == from_lists.fingerprint
    without_dataset = cl.evaluate(run=runs, relevance=cl.Relevance.from_dataset(dataset))
    assert without_dataset.fingerprint == from_lists.fingerprint
    for direction in ("i2t", "t2i"):
        alone = cl.evaluate(dataset, run=runs[direction])
        assert alone[f"{direction}/mAP@R"].interval == from_arrays[f"{direction}/mAP@R"].interval
        assert "Rsum" not in alone.values


def test_a_run_answers_as_the_documentation_says():
    dataset, pictures, texts = world()
    run = cl.evaluate(dataset, images=pictures, captions=texts)
    hits = run["t2i/Hit@5"]
    low, high = hits.interval
    assert low <= hits.mean <= high
    assert len(hits.values) == len(dataset.caption_ids)
    assert hits.values.mean() == pytest.approx(hits.mean)
    parts = [run[f"{d}/Hit@{k}"].mean for d in ("i2t", "t2i") for k in (1, 5, 10)]
    assert run["Rsum"].mean == pytest.approx(100 * sum(parts))
    with pytest.raises(KeyError, match="did you mean t2i/Hit@5"):
        run["t2i/Hits@5"]


def test_real_run_of_align_on_coco(shared_data):
    captions = shared_data / "coco_karpathy_test" / "captions.tsv.gz"
    table = pl.read_csv(captions, separator="\t", quote_char=None)
    relevance = cl.Relevance.from_pairs(table["coco_image_id"], table["coco_caption_id"])
    lists = cl.read_run(shared_data / "runs" / "align-coco5k-i2t.run.gz")
    run = cl.evaluate(run=lists, relevance=relevance, metrics="CappedRecall@1 CappedRecall@5 CappedRecall@10")
    recalls = [round(run[f"i2t/CappedRecall@{k}"].mean, 4) for k in (1, 5, 10)]
    assert recalls == [0.6044, 0.4220, 0.5440]
    with pytest.raises(InputError, match="has 10 items"):
        cl.evaluate(run=lists, relevance=relevance, metrics="Hit@20")


def test_lists_too_short_for_a_default_metric_say_so():
    relevance = cl.Relevance.from_pairs(["q", "p"], ["a", "b"])
    run = cl.evaluate(run=cl.RankedLists.of({"q": list("axyzvwst"), "p": list("xyzavwst")}), relevance=relevance)
    assert set(run) == {"i2t/Hit@1", "i2t/Hit@5", "i2t/mAP@R", "i2t/RPrecision", "i2t/Fails"}
    left_out = "left out, as the lists are too short for them: Hit@10, MRR, MedR"
    assert run.provenance["notes"] == [left_out]


def test_arrays_of_any_kind(tmp_path):
    torch = pytest.importorskip("torch")
    dataset, pictures, texts = world()
    whole = cl.evaluate(dataset, images=pictures, captions=texts)
    np.save(tmp_path / "texts.npy", texts)
    for images, captions in (
        (pictures.tolist(), texts.tolist()),
        (np.asfortranarray(pictures), np.load(tmp_path / "texts.npy", mmap_mode="r")),
        (torch.tensor(pictures, requires_grad=True), torch.tensor(texts)),
        (np.repeat(pictures, 2, axis=0)[::2], texts.astype(np.float64)),
    ):
        assert cl.evaluate(dataset, images=images, captions=captions).fingerprint == whole.fingerprint
    rounded = [torch.tensor(rows).bfloat16() for rows in (pictures, texts)]
    half = cl.evaluate(dataset, images=rounded[0], captions=rounded[1])
    assert half["Rsum"].mean == pytest.approx(whole["Rsum"].mean, abs=25)
    with pytest.raises(InputError, match="image embeddings cannot be read as an array"):
        cl.evaluate(dataset, images=[[1.0], [1.0, 2.0]], captions=texts)


def test_plain_mappings_work():
    lists, judged = {"q": ["a", "b"], "p": ["b", "a"]}, {"q": ["a"], "p": {"a": 2, "b": 0}}
    run = cl.evaluate(run=lists, relevance=judged, metrics="Hit@1 MRR")
    assert run["i2t/Hit@1"].values.tolist() == [1.0, 0.0]
    assert run["i2t/MRR"].values.tolist() == [1.0, 0.5]
    by_direction = cl.evaluate(run={"t2i": lists}, relevance={"t2i": judged}, metrics="Hit@1 MRR")
    assert by_direction["t2i/MRR"].values.tolist() == [1.0, 0.5]


def test_columns_that_captions_share_group_their_images():
    captions = pl.DataFrame({
        "caption": ["1", "2", "3", "4"], "image": ["a", "a", "b", "b"], "text": ["w", "x", "y", "z"],
        "category": ["cat", "cat", "dog", "dog"], "writer": ["k", "l", "k", "l"],
    })  # fmt: skip
    dataset = cl.Dataset("table", pl.DataFrame({"image": ["a", "b"]}), captions)
    run = cl.evaluate(dataset, scores=np.eye(4)[::3], metrics="Hit@1")
    assert run.columns["i2t"].columns == ["category"]
    assert run.columns["i2t"]["category"].to_list() == ["cat", "dog"]
    assert run.columns["t2i"].columns == ["image", "text", "category", "writer"]


def test_folds_rank_within_consecutive_parts():
    dataset, pictures, texts = world(images=30)
    run = cl.evaluate(dataset, images=pictures, captions=texts, folds=3, metrics="Hit@1 MedR t2i/AP")
    parts = [dataset.select(dataset.image_ids[k : k + 10]) for k in (0, 10, 20)]
    means: dict[str, list[float]] = {name: [] for name in run}
    for k, part in enumerate(parts):
        mine = (dataset.caption_image >= 10 * k) & (dataset.caption_image < 10 * k + 10)
        alone = cl.evaluate(
            part, images=pictures[10 * k : 10 * k + 10], captions=texts[mine], metrics="Hit@1 MedR t2i/AP"
        )
        for name in run:
            means[name].append(alone[name].mean)
            rows = [run[name].query_ids.index(query) for query in alone[name].query_ids]
            np.testing.assert_array_equal(run[name].values[rows], alone[name].values)
    for name in run:
        assert run[name].mean == pytest.approx(np.mean(means[name]))
    assert run.rankings["t2i"].known.tolist() == [10] * len(dataset.caption_ids)


def test_folds_follow_the_image_when_captions_are_scattered():
    dataset, pictures, texts = world(images=20)
    order = np.random.default_rng(0).permutation(len(texts))
    scattered = cl.Dataset("scattered", dataset.images, dataset.captions[order.tolist()])
    ordered = cl.evaluate(dataset, images=pictures, captions=texts, folds=4)
    shuffled = cl.evaluate(scattered, images=pictures, captions=texts[order], folds=4)
    for name in ordered:
        assert shuffled[name].mean == pytest.approx(ordered[name].mean), name


def test_judgements_other_than_captions():
    dataset, pictures, texts = world()
    pairs = [(dataset.image_ids[0], dataset.caption_ids[3]), (dataset.image_ids[5], dataset.caption_ids[0])]
    relevance = cl.Relevance.from_pairs(*zip(*pairs, strict=True), source="people")
    run = cl.evaluate(dataset, images=pictures, captions=texts, relevance=relevance, metrics="Recall@10")
    assert run["i2t/Recall@10"].n == 2
    assert run["i2t/Recall@10"].excluded == 38
    assert run["t2i/Recall@10"].n == 2
    assert run.as_dict()["metrics"]["i2t/Recall@10"]["excluded"] == 38
    only = cl.evaluate(
        dataset, images=pictures, captions=texts, relevance={"t2i": relevance.flip()}, metrics="Recall@10"
    )
    assert only.fingerprint == run.fingerprint


def test_backends_and_threads_leave_the_file_as_it_is(tmp_path):
    pytest.importorskip("torch")
    dataset, pictures, texts = world()
    for number, how in enumerate([{}, {"threads": 3, "tile": 5}, {"backend": "torch"}]):
        cl.evaluate(dataset, images=pictures, captions=texts, output=tmp_path / str(number) / "run", **how)
    plain, threaded, three = ((tmp_path / str(k) / "run" / "queries.parquet").read_bytes() for k in range(3))
    assert plain == threaded == three


@each_row(("arguments", "error", "message"), [
    ({}, UsageError, "nothing to evaluate\n  fix: pass images= and captions=, or scores=, or run="),
    ({"images": "pictures", "captions": "texts", "relevance": "cxc"}, UsageError, "pass what read_judgements returns"),
    ({"images": "pictures"}, UsageError, "no caption embeddings"),
    ({"images": "pictures", "captions": "short"}, InputError, "one row per caption, in the order"),
    ({"images": "pictures", "captions": "narrow"}, InputError, "vectors of 12 and of 5 dimensions"),
    ({"images": "nan", "captions": "texts"}, InputError, "row 3: NaN in vectors"),
    ({"images": "infinite", "captions": "texts"}, InputError, "row 3: infinity in vectors"),
    ({"images": "zero", "captions": "texts"}, InputError, "row 3: a vector of zeros has no direction"),
    ({"images": "words", "captions": "texts"}, InputError, "expected: real numbers"),
    ({"images": "flat", "captions": "texts"}, InputError, "for 40 images"),
    ({"images": "some", "captions": "texts"}, InputError, "no embedding for image 'im39'"),
    ({"images": "pictures", "captions": "texts", "score": "cosin"}, KeyError, "did you mean cosine"),
    ({"images": "pictures", "captions": "texts", "ties": "stabel"}, KeyError, "did you mean stable"),
    ({"images": "pictures", "captions": "texts", "backend": "numby"}, KeyError, "did you mean numpy"),
    ({"images": "pictures", "captions": "texts", "metrics": "Hits@5"}, KeyError, "did you mean Hit"),
    ({"images": "pictures", "captions": "texts", "metrics": "Hit@0"}, UsageError, "Hit@0"),
    ({"images": "pictures", "captions": "texts", "metrics": ""}, UsageError, "no metrics were named"),
    ({"images": "pictures", "captions": "texts", "directions": ["t2v"]}, UsageError, "use 'i2t' or 't2i'"),
    ({"images": "pictures", "captions": "texts", "folds": 0}, UsageError, "folds is 0"),
    ({"images": "pictures", "captions": "texts", "depth": 0}, UsageError, "depth is 0"),
    ({"images": "pictures", "captions": "texts", "level": 1.5}, UsageError, "below 1"),
    ({"images": "pictures", "captions": "texts", "resamples": -1}, UsageError, "resamples is -1"),
    ({"images": "pictures", "captions": "texts", "flods": 5}, KeyError, "did you mean folds"),
    ({"image": "pictures", "captions": "texts"}, KeyError, "did you mean image"),
    ({"images": "pictures", "captions": "texts", "scores": "matrix"}, UsageError, "both embeddings and scores"),
    ({"scores": "turned"}, InputError, "fix: transpose it"),
    ({"scores": "small"}, InputError, "expected: 40 images ×"),
    ({"scores": "nan matrix"}, InputError, "row 7: score nan in column 2"),
    ({"scores": "word matrix"}, InputError, "numbers"),
    ({"run": "unknown"}, InputError, "the ids of the run are not those of the dataset"),
    ({"run": "stray query"}, InputError, "unknown query id 'nobody'"),
    ({"run": "stray query", "directions": ["i2t"]}, InputError, "unknown query id 'nobody'"),
    ({"run": "stray item"}, InputError, "unknown item id 'nothing'"),
    ({"images": "pictures", "captions": "texts", "folds": 2.5}, UsageError, "folds is 2.5"),
    ({"images": "pictures", "captions": "texts", "device": "cuda"}, UsageError, "backend='torch'"),
    ({"run": "short lists", "metrics": "Hit@5"}, InputError, "i2t/Hit@5 cannot be computed: the list of"),
])  # fmt: skip
def test_bad_input_is_explained(arguments, error, message):
    dataset, pictures, texts = world()
    n, m = len(dataset.image_ids), len(dataset.caption_ids)

    def with_value(array, where, value):
        out = array.copy()
        out[where] = value
        return out

    values = {
        "pictures": pictures, "texts": texts, "short": texts[:-1], "narrow": texts[:, :5], "flat": pictures[:, 0],
        "nan": with_value(pictures, (3, 2), np.nan), "infinite": with_value(pictures, (3, 2), np.inf),
        "zero": with_value(pictures, 3, 0), "words": pictures.astype(str),
        "some": cl.Embeddings.of(pictures[:-1], dataset.image_ids[:-1]),
        "matrix": np.zeros((n, m)), "turned": np.zeros((m, n)), "small": np.zeros((2, 2)),
        "nan matrix": with_value(np.zeros((n, m)), (7, 2), np.nan), "word matrix": np.full((n, m), "x"),
        "unknown": cl.RankedLists.of({"nobody": ["nothing"]}),
        "stray query": cl.RankedLists.of({dataset.image_ids[0]: [dataset.caption_ids[0]], "nobody": []}),
        "stray item": cl.RankedLists.of({dataset.image_ids[0]: [dataset.caption_ids[0], "nothing"]}),
        "short lists": cl.RankedLists.of({image: list(dataset.caption_ids[:3]) for image in dataset.image_ids}),
    }  # fmt: skip
    given = {
        key: values[value] if key in ("images", "captions", "scores", "run") else value
        for key, value in arguments.items()
    }
    with pytest.raises(error) as raised:
        cl.evaluate(dataset, **given)
    assert message in str(raised.value)


def test_a_name_is_not_a_dataset():
    with pytest.raises(UsageError, match="load_dataset"):
        cl.evaluate("coco", scores=np.zeros((2, 2)))  # type: ignore[arg-type]


def test_the_interval_of_rsum_allows_for_unequal_numbers_of_captions():
    dataset, pictures, texts = world(images=60, spread=1.5)
    run = cl.evaluate(dataset, images=pictures, captions=texts)
    low, high = run["Rsum"].interval
    assert low < run["Rsum"].mean < high < 600
    rng = np.random.default_rng(0)
    hits = [(run[f"{d}/Hit@{k}"].values, run[f"{d}/Hit@{k}"].clusters) for d in ("i2t", "t2i") for k in (1, 5, 10)]
    sums = []
    for _ in range(1000):
        weight = np.bincount(rng.integers(0, 60, 60), minlength=60)
        sums.append(100 * sum(np.average(values, weights=weight[clusters]) for values, clusters in hits))
    assert np.quantile(sums, [0.025, 0.975]) == pytest.approx([low, high], abs=12)


def test_scores_without_a_dataset_and_runs_without_judgements():
    with pytest.raises(UsageError, match="scores without a dataset"):
        cl.evaluate(scores=np.zeros((2, 2)))
    with pytest.raises(UsageError, match="pass relevance="):
        cl.evaluate(run=cl.RankedLists.of({"q": ["a"]}))


def test_overlapping_ids_ask_for_the_direction():
    dataset = cl.Dataset(
        "numbers",
        pl.DataFrame({"image": ["1", "2"]}),
        pl.DataFrame({"caption": ["1", "2"], "image": ["1", "2"], "text": ["one", "two"]}),
    )
    lists = cl.RankedLists.of({"1": ["1", "2"], "2": ["1", "2"]})
    with pytest.raises(UsageError, match="fit both directions"):
        cl.evaluate(dataset, run=lists)
    run = cl.evaluate(dataset, run=lists, directions=["t2i"], metrics="Hit@1")
    assert run["t2i/Hit@1"].mean == 0.5

"""The values that flow: saved and loaded whole, fingerprinted by content, refused when they cannot be right."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.core import ConflictError, FormatVersionError, InputError
from crosslens.rank import ScoreMatrix
from tests.tables import each_row


def dataset() -> cl.Dataset:
    return cl.Dataset(
        "two",
        pl.DataFrame({"image": ["a", "b"], "width": [10, 20], "category": ["cat", "dog"]}),
        pl.DataFrame({"caption": ["a1", "a2", "b1"], "image": ["a", "a", "b"], "text": ["one", "zwei ✓", "three"]}),
        pl.DataFrame(
            {"image": ["a"], "object": ["o"], "name": ["cat"], "x": [0.0], "y": [0.0], "w": [3.0], "h": [4.0]}
        ),
        pl.DataFrame({"image": ["a"], "subject": ["o"], "predicate": ["on"], "object": ["o"]}),
        cl.values.Card(source="here", licence="CC0"),
    )


def embeddings(kind: str) -> cl.Embeddings:
    rng = np.random.default_rng(0)
    if kind == "probabilistic":
        return cl.Embeddings(("a", "b"), rng.random((2, 3)), rng.random((2, 3)), "m")
    return cl.Embeddings(
        ("a", "b"), rng.random((2, 3) if kind == "single" else (2, 4, 3)).astype(np.float16), None, "m"
    )


def relevance() -> cl.Relevance:
    return cl.Relevance.from_pairs(
        ["a", "a", "b"], ["x", "y", "y"], [1, 0, 2.5], item_ids=["x", "y", "z"], source="people"
    )


def ranking() -> cl.Ranking:
    return cl.rank.rank_both(ScoreMatrix(np.array([[1.0, 2, 2], [0, 3, 1]])), relevance())["i2t"]


@pytest.mark.parametrize("value", [
    dataset(), embeddings("single"), embeddings("multi"), embeddings("probabilistic"), relevance(), ranking(),
], ids=lambda value: repr(value)[:24])  # fmt: skip
def test_saved_values_come_back_equal(tmp_path, value):
    value.save(tmp_path / "v")
    again = type(value).load(tmp_path / "v")
    assert again.fingerprint == value.fingerprint
    assert repr(again) == repr(value)
    assert {file.suffix for file in (tmp_path / "v").iterdir()} <= {".json", ".npy", ".parquet"}
    with pytest.raises(ConflictError, match="already exists"):
        value.save(tmp_path / "v")
    value.save(tmp_path / "v", overwrite=True)
    header = json.loads((tmp_path / "v" / "header.json").read_text())
    (tmp_path / "v" / "header.json").write_text(json.dumps({**header, "version": 99}))
    with pytest.raises(FormatVersionError, match=r"format version 99.*up to version 1\n  fix: pip install --upgrade"):
        type(value).load(tmp_path / "v")
    for odd in ("1", 0, None):
        (tmp_path / "v" / "header.json").write_text(json.dumps({**header, "version": odd}))
        with pytest.raises(InputError, match=f"format version {odd!r}\n  expected: a whole number"):
            type(value).load(tmp_path / "v")
    (tmp_path / "v" / "header.json").write_text(json.dumps({**header, "format": "crosslens/soup"}))
    with pytest.raises(InputError, match="contains crosslens/soup"):
        type(value).load(tmp_path / "v")
    (tmp_path / "v" / "header.json").write_text("{")
    with pytest.raises(InputError, match="not valid JSON"):
        type(value).load(tmp_path / "v")


def test_a_damaged_part_is_named(tmp_path):
    path = relevance().save(tmp_path / "v")
    (path / "items.npy").write_bytes(b"\x93NUMPY broken")
    with pytest.raises(InputError, match=r"items\.npy: the file has changed since it was written"):
        cl.Relevance.load(path)
    with pytest.raises(InputError, match="damaged relevance folder"):
        cl.Relevance.load(path, verify=False)
    (path / "items.npy").unlink()
    with pytest.raises(InputError, match=r"items\.npy: the file is missing"):
        cl.Relevance.load(path)


def test_pickles_are_never_loaded(tmp_path):
    path = embeddings("single").save(tmp_path / "v")
    np.save(path / "vectors.npy", np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(InputError, match="damaged embeddings folder"):
        cl.Embeddings.load(path, verify=False)


def test_something_else_is_not_replaced(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("dear")
    with pytest.raises(ConflictError, match="is not a crosslens folder"):
        relevance().save(tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine" / "letter").read_text() == "dear"


def test_values_cannot_be_changed():
    for array in (embeddings("single").vectors, relevance().grades, ranking().above, dataset().caption_image):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_fingerprints_follow_content():
    first, again = dataset(), dataset()
    assert first.fingerprint == again.fingerprint
    changed = cl.Dataset("two", first.images, first.captions.with_columns(text=pl.Series(["one", "zwei", "three"])))
    assert changed.fingerprint != first.fingerprint
    vectors = embeddings("single")
    assert cl.Embeddings(vectors.ids, vectors.vectors.astype(np.float32), None, "m").fingerprint != vectors.fingerprint
    assert (
        cl.Embeddings(("ab", "c"), vectors.vectors).fingerprint
        != cl.Embeddings(("a", "bc"), vectors.vectors).fingerprint
    )


def test_any_number_of_captions_and_none_at_all():
    data = cl.Dataset.of({"a": ["x"], "b": [], "c": ["y", "z", "y"]})
    assert data.caption_ids == ("a#0", "c#0", "c#1", "c#2")
    assert data.caption_image.tolist() == [0, 2, 2, 2]
    assert data.select(["c", "b"]).image_ids == ("c", "b")
    assert data.select(["c", "b"]).texts == ("y", "z", "y")


def test_selecting_keeps_what_belongs_to_the_images():
    part = dataset().select(["b"])
    assert part.caption_ids == ("b1",)
    assert part.objects is not None
    assert part.objects.height == part.relations.height == 0
    assert part.images["category"].to_list() == ["dog"]


def test_unjudged_is_not_irrelevant():
    judged = relevance()
    assert judged.items.tolist() == [0, 1, 1]
    assert judged.grades.tolist() == [1.0, 0.0, 2.5]
    assert judged.relevant().items.tolist() == [0, 1]
    assert judged.relevant(at_least=2).offsets.tolist() == [0, 0, 1]


@given(st.sets(st.tuples(st.integers(0, 6), st.integers(0, 9))))
def test_flipping_twice_changes_nothing(pairs):
    queries, items = tuple(f"q{k}" for k in range(7)), tuple(f"i{k}" for k in range(10))
    rows, columns = (np.array([pair[side] for pair in sorted(pairs)], np.int64) for side in (0, 1))
    judged = cl.Relevance.from_indices(queries, items, rows, columns, np.arange(1.0, len(rows) + 1))
    assert judged.flip().flip().fingerprint == judged.fingerprint
    assert sorted(zip(judged.flip().items.tolist(), judged.flip().rows.tolist(), strict=True)) == sorted(pairs)


@each_row(("build", "message"), [
    (lambda: cl.Dataset.of({}), "no images"),
    (lambda: cl.Dataset.of({"a": "text"}), "captions of image 'a' are not a list of texts"),
    (lambda: cl.Dataset.of({"a": ["x", 3]}), "captions of image 'a' are not a list of texts"),
    (lambda: cl.Dataset.of({"a": [""]}), "row 0: empty caption 'a#0'"),
    (lambda: cl.Dataset.of({"a": ["x", "  "]}), "row 1: empty caption 'a#1'"),
    (lambda: cl.Dataset("n", pl.DataFrame({"id": ["a"]}), pl.DataFrame()), "the images table has no column 'image'"),
    (lambda: cl.Dataset("n", pl.DataFrame({"image": ["a", "a"]}), _captions()), "duplicate image id 'a' (first"),
    (lambda: cl.Dataset("n", pl.DataFrame({"image": ["a", None]}), _captions()), "row 1: empty image id"),
    (lambda: cl.Dataset("n", pl.DataFrame({"image": ["aa"]}), _captions()), "fix: did you mean 'aa'?"),
    (lambda: cl.Dataset("n", pl.DataFrame({"image": ["a"]}), _captions(text=[3])), "expected: strings"),
    (lambda: cl.Dataset("n", pl.DataFrame({"image": ["a"]}), _captions(), _boxes(w=-1.0)), "width and height above 0"),
    (lambda: cl.Dataset("n", pl.DataFrame({"image": ["a"]}), _captions(), _boxes(x=float("nan"))), "bad box"),
    (lambda: cl.Dataset("n", pl.DataFrame({"image": ["a"]}), _captions(), _boxes(h=None)), "leave all four empty"),
    (lambda: cl.Dataset("n", pl.DataFrame({"image": ["a"]}), _captions(), _boxes(image="q")), "unknown image id 'q'"),
    (lambda: cl.Embeddings(("a",), np.zeros((2, 3))), "2 vectors for 1 ids"),
    (lambda: cl.Embeddings(("a", "a"), np.zeros((2, 3))), "duplicate item id 'a'"),
    (lambda: cl.Embeddings.of(np.zeros(3)), "expected: n×d"),
    (lambda: cl.Embeddings.of(np.zeros((3, 0))), "expected: n×d"),
    (lambda: cl.Embeddings.of([["a"]]), "expected: real numbers"),
    (lambda: cl.Embeddings.of([[1.0, 2.0], [np.nan, 1.0]]), "row 1: NaN in vectors"),
    (lambda: cl.Embeddings(("a",), np.ones((1, 2)), -np.ones((1, 2))), "negative variance"),
    (lambda: cl.Embeddings(("a",), np.ones((1, 2)), np.ones((1, 3))), "of the same shape"),
    (lambda: cl.Relevance.from_pairs(["a", "a"], ["x", "x"]), "judged twice"),
    (lambda: cl.Relevance.from_pairs(["a"], ["x"], [-1]), "row 0: grade -1.0"),
    (lambda: cl.Relevance.from_pairs(["a"], ["x"], [np.nan]), "row 0: grade nan"),
    (lambda: cl.Relevance.from_pairs(["a"], ["x"], query_ids=["b"]), "unknown query id 'a'"),
    (lambda: cl.Relevance.from_pairs(["a"], ["x", "y"]), "expected: equal lengths"),
    (lambda: cl.RankedLists.of({"q": ["a", "a"]}), "item 'a' occurs twice in the list of query 'q'"),
    (lambda: cl.RankedLists.of({"q": {"a": np.inf}}), "score inf of item 'a'"),
    (lambda: ranking().top("nobody"), "unknown query id 'nobody'"),
])  # fmt: skip
def test_what_cannot_be_right_is_refused(build, message):
    with pytest.raises(InputError) as raised:
        build()
    assert message in str(raised.value)


@pytest.mark.parametrize(("build", "code", "subject"), [
    (lambda: cl.Dataset.of({"a": ["x", " "]}), "empty-caption", "a#1"),
    (lambda: cl.Dataset("n", pl.DataFrame({"image": ["b"]}), _captions()), "unknown-id", "a"),
    (lambda: dataset().select(["a", "q"]), "unknown-id", "q"),
    (lambda: cl.Embeddings(("a", "a"), np.zeros((2, 3))), "duplicate-id", "a"),
    (lambda: ranking().top("nobody"), "unknown-id", "nobody"),
])  # fmt: skip
def test_errors_say_what_they_are_about(build, code, subject):
    with pytest.raises(InputError) as raised:
        build()
    assert (raised.value.code, raised.value.subject) == (code, subject)


def _captions(**changes) -> pl.DataFrame:
    return pl.DataFrame({"caption": ["1"], "image": ["a"], "text": ["x"], **changes})


def _boxes(**changes) -> pl.DataFrame:
    return pl.DataFrame([{"image": "a", "object": "o", "name": "n", "x": 0.0, "y": 0.0, "w": 1.0, "h": 1.0, **changes}])


def test_a_notebook_shows_what_a_dataset_has() -> None:
    captions = {f"img{number}": ["a <b>dog</b>", f"caption {number}"] for number in range(1200)}
    page = cl.Dataset.of(captions, name="toys & co")._repr_html_()
    assert "toys &amp; co" in page
    assert "<td>1,200</td>" in page
    assert "<td>2,400</td>" in page
    assert "a &lt;b&gt;dog" in page
    assert "caption 1<" in page
    assert "caption 9" not in page, "the first captions only"

"""Queries from one text set, the corpus from another: against loops, on the command line, perturbed and explained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import crosslens as cl
from crosslens.cli import main
from crosslens.core import InputError, UsageError
from crosslens.encode import query_choice, sentence_parts, text_only, text_queries
from crosslens.perturbations import perturb
from tests.pipeline.robustness_study.letters import QUICK, Letters, captions

MODEL = """
import numpy as np

class Model:
    revision = "1"
    def encode_texts(self, texts):
        rows = np.ones((len(texts), 26), np.float32)
        for row, text in enumerate(texts):
            for number, letter in enumerate(text.lower()):
                if "a" <= letter <= "z":
                    rows[row, ord(letter) - 97] += 1 + number / 100
        return rows
"""


def slow_ranks(corpus: dict[str, list[str]], queries: dict[str, list[str]], how: int | str) -> dict[str, int]:
    """Per query the rank of its image, by loops: vectors averaged one by one, cosines sorted in the corpus' order."""

    def vector(text: str) -> np.ndarray:
        return np.asarray(Letters().encode_texts([text])[0], np.float64)

    def mean(texts: list[str]) -> np.ndarray:
        total = np.zeros(26)
        for text in texts:
            total = total + vector(text)
        return total / len(texts)

    gallery = {image: mean(texts) for image, texts in corpus.items()}
    ranks = {}
    for image, texts in queries.items():
        right = next(item for item in gallery if item.removesuffix(".jpg") == image)
        if how == "mean":
            asked = {right: mean(texts)}
        elif how == "each":
            asked = {f"{image}#{number}": vector(text) for number, text in enumerate(texts)}
        else:
            asked = {f"{image}#{how}": vector(texts[int(how)])}
        for query, query_vector in asked.items():
            scores = {
                item: query_vector @ item_vector / np.linalg.norm(query_vector) / np.linalg.norm(item_vector)
                for item, item_vector in gallery.items()
            }
            ranks[query] = 1 + sum(score > scores[right] + 1e-9 for score in scores.values())
    return ranks


def texts_of(dataset: cl.Dataset) -> dict[str, list[str]]:
    by_image: dict[str, list[str]] = {image: [] for image in dataset.image_ids}
    for image, text in zip(dataset.captions["image"], dataset.texts, strict=True):
        by_image[image].append(text)
    return by_image


def ranks_of_run(run: cl.Run) -> dict[str, int]:
    values = run["t2t/MRR"]
    return {query: round(1 / value) for query, value in zip(values.query_ids, values.values, strict=True)}


@pytest.mark.parametrize("how", [0, 1, "mean", "each"])
@settings(max_examples=5, deadline=None)
@given(images=st.integers(2, 12), extra=st.integers(0, 3), seed=st.integers(0, 1000))
def test_ranks_are_those_of_loops(how: int | str, images: int, extra: int, seed: int) -> None:
    corpus = cl.Dataset.of(
        {f"{image}.jpg": texts for image, texts in texts_of(captions(images + extra, 4, seed)).items()}
    )
    queries = captions(images, 2, seed + 1)
    texts = text_only(corpus, Letters(), queries=queries, query=how)
    run = cl.evaluate(texts, metrics="MRR", resamples=0)
    assert ranks_of_run(run) == slow_ranks(texts_of(corpus), texts_of(queries), how)
    # One image's queries are one cluster, whatever their number.
    assert len(set(run["t2t/MRR"].clusters)) == images


def test_the_order_of_either_set_does_not_matter() -> None:
    corpus, queries = captions(9, 4), captions(9, 3, seed=5)
    run = cl.evaluate(text_only(corpus, Letters(), queries=queries, query="mean"), metrics="MRR")
    sides = [dataset.select(dataset.image_ids[::-1]) for dataset in (corpus, queries)]
    turned = text_only(sides[0], Letters(), queries=sides[1], query="mean")
    again = cl.evaluate(turned, metrics="MRR")
    assert ranks_of_run(run) == ranks_of_run(again)


def test_a_run_says_which_set_is_which() -> None:
    corpus = cl.Dataset.of(texts_of(captions(6, 4)), name="regions")
    queries = cl.Dataset.of(texts_of(captions(5, 2, seed=3)), name="captions")
    run = cl.evaluate(text_only(corpus, Letters(), queries=queries, query="mean"))
    sets = run.provenance["text_sets"]
    assert (sets["queries"]["name"], sets["queries"]["query_caption"]) == ("captions", "mean")
    assert (sets["corpus"]["name"], sets["corpus"]["image_text"]) == ("regions", "mean")
    assert sets["corpus"]["fingerprint"] == corpus.fingerprint
    assert run.provenance["notes"][:2] == [
        "queries: captions (the mean of all captions of an image); corpus: regions (the mean of all texts of an image)",
        "1 of 6 images of the corpus have no query, and stay in the gallery",
    ]


def test_images_that_one_set_lacks() -> None:
    corpus, queries = captions(6, 4), captions(9, 2, seed=3)
    with pytest.raises(InputError, match=r"3 of 9 images of the queries have no text in the corpus \(such as 'i6'\)"):
        text_queries(corpus, "mean", queries)
    shared = text_queries(corpus.select(["i1", "i0", "i5"]), "mean", queries, shared_images=True)
    assert shared.dataset.image_ids == shared.dataset.caption_ids == ("i1", "i0", "i5")
    assert shared.notes == ("6 of 9 images of the queries have no text in the corpus: their queries are left out",)
    fewer = text_queries(corpus, "each", queries.select(["i2"]), shared_images=True)
    assert fewer.corpus.image_ids == ("i2",)
    assert fewer.notes == ("5 of 6 images of the corpus have no query, and are left out",)
    with pytest.raises(InputError, match="no image of the queries"):
        text_queries(corpus, 0, cl.Dataset.of({"other": ["a", "b"]}), shared_images=True)
    empty = cl.Dataset.of({"i0": ["a"], "i1": []})
    with pytest.raises(InputError, match="1 images of the corpus have no text"):
        text_queries(empty, 0, queries.select(["i0"]))


def test_wrong_choices_are_named() -> None:
    assert [query_choice(value) for value in (0, "3", "mean", "each")] == [0, 3, "mean", "each"]
    for value in (-1, "-1", "all", "", True, 1.5):
        with pytest.raises(UsageError, match="query_caption is"):
            query_choice(value)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="leaves no caption"):
        text_queries(captions(3), "mean")
    with pytest.raises(UsageError, match="without a second text set"):
        text_queries(captions(3), 0, shared_images=True)
    with pytest.raises(InputError, match="image 'i0' has 2 captions"):
        text_queries(captions(3), 2, captions(3, 2))


def test_objects_come_from_the_set_that_has_them() -> None:
    corpus = cl.Dataset.of({"a.jpg": ["x"], "b.jpg": ["y"]})
    queries = cl.Dataset.of({"a": ["one"], "b": ["two", "three"]})
    objects = pl.DataFrame({"image": ["b"], "object": ["1"], "name": ["dog"]})
    queries = cl.Dataset("q", queries.images, queries.captions, objects)
    queries_over = text_queries(corpus, "mean", queries).dataset
    assert queries_over.objects is not None
    assert queries_over.objects["image"].to_list() == ["b.jpg"]
    assert queries_over.texts == ("one.", "two. three.")


def test_adversarial_queries_of_several_sentences() -> None:
    corpus, queries = captions(12, 4), captions(12, 3, seed=8)
    encoder = Letters()
    study = cl.robustness(
        corpus, model=encoder, queries=queries, query_caption="mean", perturbations="size", cache=False, **QUICK
    )
    changed = dict(zip(queries.caption_ids, perturb("size", queries), strict=True))
    texts, applied = {}, set()
    for image, texts_of_image in texts_of(queries).items():
        sentences = [changed[f"{image}#{number}"] for number in range(len(texts_of_image))]
        texts[image] = [sentence.text for sentence in sentences]
        if any(sentence.applied for sentence in sentences):
            applied.add(image)
    assert 0 < len(applied) < 12
    table = study.tables["queries"]
    assert set(table.filter("applied")["query"]) == applied
    before, after = (slow_ranks(texts_of(corpus), side, "mean") for side in (texts_of(queries), texts))
    assert dict(zip(table["query"], table["rank_before"].to_list(), strict=True)) == before
    assert dict(zip(table["query"], table["rank_after"].to_list(), strict=True)) == after
    row = study.tables["changes"].to_dicts()[0]
    assert row["changed"] == len(applied)
    assert row["lower"] == sum(after[image] > before[image] for image in applied) / len(applied)
    # Only what changed is encoded, and each edit is at its position in the whole query.
    assert sorted(encoder.texts) == sorted(
        [*corpus.texts, *queries.texts, *(sentence.text for sentence in changed.values() if sentence.applied)]
    )
    for caption in study.captions.to_dicts():
        assert caption["text"] == "".join(sentence_parts(texts[caption["caption"]]))
        for edit in caption["edits"]:
            assert caption["original"][edit["start"] : edit["end"]] == edit["before"]
    assert study.about["text_sets"]["queries"]["query_caption"] == "mean"
    assert study.text().startswith("captions: 12 queries from captions for the texts of its images")


def test_robustness_refuses_what_two_text_sets_cannot_have() -> None:
    corpus, queries = captions(4, 4), captions(4, 2, seed=8)
    with pytest.raises(UsageError, match="text-only retrieval has none"):
        cl.robustness(corpus, model=Letters(), queries=queries, perturbations="blur@3")
    with pytest.raises(UsageError, match="requires queries"):
        cl.robustness(corpus, model=Letters(), image_text="mean", shared_images=True, perturbations="size")
    texts = text_only(corpus, Letters(), queries=queries)
    with pytest.raises(UsageError, match="one direction, t2t"):
        cl.evaluate(texts, directions=["t2i"])
    with pytest.raises(UsageError, match="both text-only retrieval and embeddings"):
        cl.evaluate(texts, images=texts.images)


def call(*words: str) -> int:
    try:
        return int(main(list(words)) or 0)
    except SystemExit as end:
        return int(end.code or 0)


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    Path("model.py").write_text(MODEL)
    corpus, queries = captions(8, 4), captions(6, 3, seed=4)
    for name, dataset in (("corpus", corpus), ("queries", queries)):
        rows = zip(dataset.caption_ids, dataset.captions["image"], dataset.texts, strict=True)
        lines = [json.dumps({"caption": caption, "image": image, "text": text}) for caption, image, text in rows]
        Path(f"{name}.jsonl").write_text("\n".join(lines))
    words = ["evaluate", "--model", "callable:model.py:Model", "--dataset", "corpus.jsonl", "--metrics", "MRR Hit@1"]
    words += ["--queries", "plain captions=queries.jsonl", "--query-caption", "mean", "--direction", "t2t"]
    assert call(*words, "-o", "run") == 0
    assert "queries: queries (the mean of all captions of an image); corpus: corpus" in capsys.readouterr().err
    run = cl.Run.load("run")
    assert ranks_of_run(run) == slow_ranks(texts_of(corpus), texts_of(queries), "mean")
    assert json.loads(Path("run/run.json").read_text())["provenance"]["text_sets"]["corpus"]["images"] == 8
    # The recipe repeats it, and refuses a query set that changed.
    assert call("run", "run/recipe.toml", "--trust-code", "-o", "again", "--json") == 0
    assert json.loads(capsys.readouterr().out)["metrics"] == json.loads(Path("run/run.json").read_text())["metrics"]
    assert call("explain", "run", "--json") == 0
    assert json.loads(capsys.readouterr().out)["queries"] == 6
    with Path("queries.jsonl").open("a") as file:
        file.write('\n{"caption": "more", "image": "i0", "text": "a new one"}')
    assert call("run", "run/recipe.toml", "--trust-code") == 3
    assert "the queries changed since the recipe was stored" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scores", "s.npy", "--queries", "q.jsonl"], "--queries requires --model"),
        (["--model", "tiny", "--image-text", "mean", "--shared-images"], "--shared-images requires --queries"),
        (["--model", "tiny", "--queries", "q.jsonl", "--direction", "t2i"], "one direction, t2t"),
        (["--model", "tiny", "--query-caption", "mean"], "--query-caption requires --image-text"),
        (["--model", "tiny", "--query-caption", "some"], "query_caption is 'some'"),
        (["--model", "tiny", "--direction", "t2t"], "t2t is text-only retrieval: --image-text"),
    ],
)
def test_conflicts_on_the_command_line(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("c.jsonl", "q.jsonl"):
        Path(name).write_text('{"image": "a", "text": "x"}')
    assert call("evaluate", "--dataset", "c.jsonl", *words) == 2
    assert message in capsys.readouterr().err

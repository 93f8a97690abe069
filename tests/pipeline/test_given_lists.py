"""Ready-made lists as they come: ties, ids that the dataset lacks, ids with and without the ending of an image file."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.core import InputError, UsageError
from crosslens.data import read_run
from crosslens.pipeline import EvaluateOptions, InputOptions, Recipe, run_recipe


def dataset_of(images: int = 50, captions: int = 2, ending: str = "") -> cl.Dataset:
    return cl.Dataset.of({f"im{n}{ending}": [f"caption {n} {k}" for k in range(captions)] for n in range(images)})


def perfect_lists(dataset: cl.Dataset, length: int = 4) -> dict[str, list[str]]:
    """For every image its own captions, then those of the next images."""
    captions_of: dict[str, list[str]] = {image: [] for image in dataset.image_ids}
    for caption, image in dataset.captions.select("caption", "image").iter_rows():
        captions_of[image].append(caption)
    images = list(captions_of)
    return {
        image: [caption for step in range(length) for caption in captions_of[images[(row + step) % len(images)]]][
            :length
        ]
        for row, image in enumerate(images)
    }


def notes(run: cl.Run) -> list[str]:
    return list(run.provenance["notes"])


CONSTANT = {f"q{n}": dict.fromkeys([f"d{n}", *(f"d{n}-{m}" for m in range(9))], 0.5) for n in range(10)}
JUDGED = {f"q{n}": [f"d{n}"] for n in range(10)}


class TestTies:
    def test_ranks_that_ties_decide_are_noted(self) -> None:
        run = cl.evaluate(run=CONSTANT, relevance=JUDGED, metrics="Hit@1", resamples=0)
        assert run["i2t/Hit@1"].mean == 1.0
        assert notes(run) == [
            "i2t: in 10 of 10 lists a relevant item has the same score as an irrelevant one; the order of the list "
            "decides between them (tie mode stable)"
        ]

    def test_one_note_for_both_directions(self) -> None:
        constant, judged = dict(CONSTANT), dict(JUDGED)
        constant["q0"] = dict(zip(constant["q0"], np.arange(10, 0, -1.0).tolist(), strict=True))
        run = cl.evaluate(
            run={"i2t": CONSTANT, "t2i": constant}, relevance={"i2t": JUDGED, "t2i": judged}, metrics="Hit@1",
            resamples=0,
        )  # fmt: skip
        assert notes(run) == [
            "in 10 (i2t) and 9 (t2i) of 10 lists a relevant item has the same score as an irrelevant one; the order of "
            "the list decides between them (tie mode stable)"
        ]

    def test_one_note_for_the_lists_of_twelve_perturbations(self) -> None:
        """A study printed one for each."""
        runs = {"none": dict(CONSTANT)}
        for number in range(12):
            ranked = {
                query: dict(zip(items, np.arange(10, 0, -1.0).tolist(), strict=True))
                for query, items in CONSTANT.items()
            }
            runs[f"p{number}"] = {
                query: CONSTANT[query] if row < number else ranked[query] for row, query in enumerate(ranked)
            }
        study = cl.robustness_from_runs(runs, relevance=JUDGED, resamples=0, permutations=99)
        (tie_note,) = (note for note in study.about["notes"] if "the same score" in note)
        counts = [f"{min(number, 10)} (p{number})" for number in range(1, 12)]
        assert tie_note == (
            f"t2i: in 10 (original), {', '.join(counts[:-1])} and {counts[-1]} of 10 lists a relevant item has the "
            "same score as an irrelevant one; the order of the list decides between them (tie mode stable)"
        )

    def test_a_printed_run_has_the_note(self) -> None:
        """Equal scores counted as hits, and nothing that Python printed said so."""
        run = cl.evaluate(run=CONSTANT, relevance=JUDGED, metrics="Hit@1", resamples=0)
        assert " ".join(str(run).split()).endswith(" note: " + notes(run)[0])

    def test_a_study_notes_ties_of_its_variants(self) -> None:
        distinct = {query: list(items) for query, items in CONSTANT.items()}
        options: dict[str, Any] = {"resamples": 0, "permutations": 5, "metrics": "t2i/Hit@1"}
        study = cl.robustness_from_runs({"none": distinct, "char_swap": CONSTANT}, JUDGED, **options)
        expected = "char_swap: t2i: in 10 of 10 lists a relevant item has the same score"
        assert any(note.startswith(expected) for note in study.about["notes"])

    def test_pairs_of_item_and_score_are_no_ids(self) -> None:
        """They were taken for ids such as "('d0', 0.5)": every query was missed."""
        pairs = {query: list(items.items()) for query, items in CONSTANT.items()}
        with pytest.raises(InputError, match=r"\('d0', 0.5\) in the list of query 'q0' is not an id"):
            cl.evaluate(run=pairs, relevance=JUDGED, metrics="Hit@1", resamples=0)

    def test_nothing_is_noted_where_ties_decide_nothing(self) -> None:
        untied = {query: list(items) for query, items in CONSTANT.items()}
        assert not notes(cl.evaluate(run=untied, relevance=JUDGED, metrics="Hit@1", resamples=0))
        among_relevant = {"q": {"a": 0.9, "b": 0.9, "c": 0.5, "d": 0.5}}
        assert not notes(cl.evaluate(run=among_relevant, relevance={"q": ["a", "b"]}, metrics="Hit@1", resamples=0))
        mixed = {"q": {"a": 0.9, "b": 0.9, "c": 0.9, "d": 0.5}}
        assert len(notes(cl.evaluate(run=mixed, relevance={"q": ["a", "b"]}, metrics="Hit@1", resamples=0))) == 1

    def test_complete_lists_of_equal_scores_get_chance(self) -> None:
        options: dict[str, Any] = {"relevance": JUDGED, "ties": "expected", "resamples": 0}
        with pytest.raises(InputError, match=r"may end within a tie(.|\n)*pass complete_lists=True if the lists hold"):
            cl.evaluate(run=CONSTANT, metrics="Hit@1", **options)
        run = cl.evaluate(run=CONSTANT, metrics="Hit@1 Hit@5 MeanR", complete_lists=True, **options)
        assert [run[name].mean for name in run] == pytest.approx([0.1, 0.5, 5.5])
        assert not notes(run)

    def test_complete_lists_agree_with_the_score_matrix(self) -> None:
        """Lists of the whole gallery, with their scores, give what the matrix gives, in every tie mode."""
        dataset = dataset_of(12)
        scores = np.random.default_rng(0).integers(0, 4, (12, 24)).astype(np.float64)
        lists = {
            image: dict(zip(dataset.caption_ids, row.tolist(), strict=True))
            for image, row in zip(dataset.image_ids, scores, strict=True)
        }
        judged = {f"im{n}": [f"im{n}#0", f"im{n}#1"] for n in range(12)}
        options: dict[str, Any] = {"metrics": "Hit@1 Hit@5 MeanR mAP@R nDCG@5", "depth": 24, "resamples": 0}
        for ties in ("stable", "optimistic", "pessimistic", "expected"):
            matrix = cl.evaluate(dataset, scores=scores, directions=["i2t"], ties=ties, **options)
            run = cl.evaluate(run=lists, relevance=judged, complete_lists=True, ties=ties, **options)
            assert [run[name].mean for name in run] == pytest.approx([matrix[name].mean for name in matrix])

    def test_lists_that_are_not_complete_are_refused(self) -> None:
        with pytest.raises(InputError, match=r"item 'b' is relevant to query 'q', but not in its list(.|\n)*drop comp"):
            cl.evaluate(run={"q": ["a"]}, relevance={"q": ["a", "b"]}, complete_lists=True, metrics="Hit@1")
        dataset = dataset_of(3)
        with pytest.raises(InputError, match="the list of query 'im0' has 4 of 6 items"):
            cl.evaluate(dataset, run=perfect_lists(dataset), complete_lists=True, metrics="Hit@1")


class TestUnknownIds:
    def test_a_few_unknown_items_keep_their_ranks(self) -> None:
        dataset = dataset_of()
        lists = perfect_lists(dataset)
        lists["im7"] = ["sixth caption", *lists["im7"][:3]]
        run = cl.evaluate(dataset, run=lists, metrics="Hit@1 Hit@4 Recall@4", resamples=0)
        assert run["i2t/Hit@1"].mean == pytest.approx(49 / 50)
        assert run["i2t/Hit@4"].mean == run["i2t/Recall@4"].mean == 1.0
        assert notes(run) == [
            "i2t: 1 of 200 list entries are not in the dataset (such as 'sixth caption'); they keep their ranks and "
            "count as irrelevant"
        ]
        judged = {f"im{n}": [f"im{n}#0", f"im{n}#1"] for n in range(50)}
        same = cl.evaluate(run=lists, relevance=judged, metrics="Hit@1 Hit@4 Recall@4", resamples=0)
        assert [same[name].mean for name in same] == [run[name].mean for name in run]

    def test_they_are_taken_out_on_request(self) -> None:
        dataset = dataset_of()
        lists = perfect_lists(dataset)
        lists["im7"] = ["sixth caption", *lists["im7"][:3]]
        run = cl.evaluate(dataset, run=lists, metrics="Hit@1 Hit@3", skip_unknown=True, resamples=0)
        assert run["i2t/Hit@1"].mean == 1.0
        assert "i2t: 1 of 200 list entries are left out, as the dataset does not have them" in notes(run)[0]
        with pytest.raises(InputError, match="the list of query 'im7' has 3 items"):
            cl.evaluate(dataset, run=lists, metrics="Hit@4", skip_unknown=True)

    def test_many_unknown_items_are_another_split(self) -> None:
        dataset = dataset_of()
        lists = {image: [*items[:3], f"other {image}"] for image, items in perfect_lists(dataset).items()}
        with pytest.raises(
            InputError, match=r"unknown item id 'other im0', and 49 more(.|\n)*skip_unknown=True leaves"
        ):
            cl.evaluate(dataset, run=lists, metrics="Hit@1")
        assert cl.evaluate(dataset, run=lists, metrics="Hit@1", skip_unknown=True)["i2t/Hit@1"].mean == 1.0

    def test_unknown_queries(self) -> None:
        dataset = dataset_of(120)
        lists = perfect_lists(dataset) | {"stray": ["im1#0", "nowhere", "im2#0", "im3#0"]}
        run = cl.evaluate(dataset, run=lists, metrics="Hit@1", resamples=0)
        assert (run["i2t/Hit@1"].mean, run["i2t/Hit@1"].n) == (1.0, 120)
        assert notes(run) == ["i2t: 1 of 121 queries are left out, as the dataset does not have them (such as 'stray')"]
        lists |= {f"stray {n}": ["im1#0", "im2#0"] for n in range(60)}
        with pytest.raises(InputError, match="unknown query id 'stray', and 60 more"):
            cl.evaluate(dataset, run=lists, metrics="Hit@1")
        assert cl.evaluate(dataset, run=lists, metrics="Hit@1", skip_unknown=True)["i2t/Hit@1"].n == 120

    def test_unknown_judgements(self) -> None:
        dataset = dataset_of(100)
        judged = {f"im{n}": [f"im{n}#0", f"im{n}#1"] for n in range(100)}
        judged["im3"].append("sixth caption")
        scores = np.kron(np.eye(100), np.ones((1, 2)))
        run = cl.evaluate(dataset, scores=scores, relevance=judged, metrics="Recall@2", resamples=0)
        assert run["i2t/Recall@2"].mean == 1.0
        assert (
            "i2t: 1 of 201 judged pairs are left out, as the dataset does not have them (such as 'sixth"
            in notes(run)[0]
        )
        judged |= {f"other {n}": ["im1#0"] for n in range(30)}
        with pytest.raises(InputError, match="unknown query id 'other 0', and 29 more"):
            cl.evaluate(dataset, scores=scores, relevance=judged, metrics="Recall@2")
        cl.evaluate(dataset, scores=scores, relevance=judged, metrics="Recall@2", skip_unknown=True, resamples=0)

    def test_nothing_known_is_refused_even_on_request(self) -> None:
        dataset = dataset_of(3)
        with pytest.raises(InputError, match="unknown query id 'a'"):
            cl.evaluate(dataset, run={"i2t": {"a": ["im0#0"]}}, metrics="Hit@1", skip_unknown=True)
        with pytest.raises(InputError, match="unknown item id 'x'"):
            cl.evaluate(dataset, run={"i2t": {"im0": ["x"]}}, metrics="Hit@1", skip_unknown=True)

    def test_graded_metrics_give_nothing_for_unknown_items(self) -> None:
        dataset = dataset_of()
        lists, phi = perfect_lists(dataset), np.full((50, 100), 0.5)
        lists["im7"] = ["sixth caption", *lists["im7"][:3]]
        run = cl.evaluate(dataset, run=lists, phi={"mine": phi}, metrics="NCS[mine]@2 SR[mine,m=3]@2", resamples=0)
        assert run["i2t/NCS[mine]@2"].values[7] == pytest.approx(0.5)
        assert run["i2t/NCS[mine]@2"].values[8] == pytest.approx(1.0)

    def test_it_is_stored_with_the_run(self, tmp_path: Path) -> None:
        dataset = dataset_of()
        lists = perfect_lists(dataset)
        lists["im7"] = ["sixth caption", *lists["im7"][:3]]
        options: dict[str, Any] = {"run": lists, "metrics": "Hit@1", "resamples": 0}
        run = cl.evaluate(dataset, output=tmp_path / "run", **options)
        assert notes(cl.Run.load(tmp_path / "run")) == notes(run)
        with pytest.raises(cl.CrosslensError, match="different run"):
            cl.evaluate(dataset, output=tmp_path / "run", skip_unknown=True, **options)


class TestDirection:
    def overlapping(self) -> cl.Dataset:
        """As in COCO: some captions have the id of an image."""
        images = [str(n) for n in range(100, 160)]
        captions = [str(n) for n in range(150, 270)]
        owners = [images[n // 2] for n in range(120)]
        texts = [f"text {n}" for n in range(120)]
        return cl.Dataset(
            "numbers", pl.DataFrame({"image": images}),
            pl.DataFrame({"caption": captions, "image": owners, "text": texts}),
        )  # fmt: skip

    def test_queries_that_are_all_images_say_it(self) -> None:
        dataset = self.overlapping()
        lists = perfect_lists(dataset)
        lists["107"] = ["9999", *lists["107"][:3]]
        run = cl.evaluate(dataset, run=lists, metrics="Hit@4", resamples=0)
        assert list(run) == ["i2t/Hit@4"]

    def test_the_other_direction(self) -> None:
        dataset = self.overlapping()
        lists = {caption: [image, "100"] for caption, image in dataset.captions.select("caption", "image").iter_rows()}
        lists = {caption: list(dict.fromkeys(items)) for caption, items in lists.items()}
        lists["9999"] = ["101"]
        assert list(cl.evaluate(dataset, run=lists, metrics="Hit@1", resamples=0)) == ["t2i/Hit@1"]

    def test_what_fits_both_is_asked(self) -> None:
        dataset = self.overlapping()
        with pytest.raises(UsageError, match="fit both directions"):
            cl.evaluate(dataset, run={"150": ["151", "152"], "151": ["150"]}, metrics="Hit@1")


class TestImageFileEndings:
    def test_lists_and_judgements_of_a_dataset(self) -> None:
        dataset = dataset_of(6, ending=".jpg")
        lists = {caption: [image.removesuffix(".jpg")] for caption, image in
                 dataset.captions.select("caption", "image").iter_rows()}  # fmt: skip
        run = cl.evaluate(dataset, run=lists, metrics="Hit@1", resamples=0)
        assert (run["t2i/Hit@1"].mean, notes(run)) == (1.0, [])
        assert set(run.rankings["t2i"].item_ids) == set(dataset.image_ids)
        judged = {f"im{n}.png": [f"im{n}.jpg#0"] for n in range(6)}
        scores = np.kron(np.eye(6), np.ones((1, 2)))
        run = cl.evaluate(dataset, scores=scores, relevance=judged, metrics="i2t/Recall@2", resamples=0)
        assert run["i2t/Recall@2"].mean == 1.0

    def test_lists_against_judgements_without_a_dataset(self) -> None:
        lists, judged = {"im0.jpg": ["c0"], "im1": ["c1"]}, {"im0": ["c0"], "im1.jpeg": ["c1"]}
        run = cl.evaluate(run=lists, relevance=judged, metrics="Hit@1", resamples=0)
        assert (run["i2t/Hit@1"].mean, run["i2t/Hit@1"].n) == (1.0, 2)
        turned = {"c0": ["im0.jpg"], "c1": ["im1"]}
        both = cl.evaluate(run={"i2t": lists, "t2i": turned}, relevance=judged, metrics="Hit@1", resamples=0)
        assert [both[name].mean for name in both] == [1.0, 1.0]

    def test_embeddings(self) -> None:
        dataset = dataset_of(6, ending=".jpg")
        vectors = np.eye(6)
        images = cl.Embeddings.of(vectors[::-1], [f"im{n}" for n in reversed(range(6))])
        run = cl.evaluate(dataset, images=images, captions=np.repeat(vectors, 2, axis=0), metrics="Hit@1", resamples=0)
        assert run["t2i/Hit@1"].mean == 1.0
        numbers = cl.Dataset.of({f"{n}.jpg": [f"caption {n}"] for n in (1, 0)})
        with pytest.raises(InputError, match=r"no embedding for image '1\.jpg'"):  # row 1 is not the image 1.jpg
            cl.evaluate(numbers, images=cl.Embeddings.of(np.eye(2)), captions=np.eye(2), metrics="Hit@1")

    def test_files(self, tmp_path: Path) -> None:
        dataset_of(6, ending=".jpg").save(tmp_path / "data")
        (tmp_path / "t2i.run").write_text("".join(f"im{n}.jpg#{k} Q0 im{n} 1 1 m\n" for n in range(6) for k in (0, 1)))
        (tmp_path / "q.txt").write_text("".join(f"im{n}.jpg#0 0 im{n}.png 1\n" for n in range(6)))
        np.save(tmp_path / "img.npy", np.eye(6))
        np.save(tmp_path / "cap.npy", np.repeat(np.eye(6), 2, axis=0))
        (tmp_path / "ids.txt").write_text("".join(f"im{n}\n" for n in range(6)))
        listed = InputOptions(runs=("t2i.run",), qrels="q.txt")
        vectors = InputOptions(image_embeddings="img.npy", image_ids="ids.txt", caption_embeddings="cap.npy")
        for source, inputs in (("data", listed), (None, listed), ("data", vectors)):
            options = EvaluateOptions(metrics=("t2i/Hit@1",), resamples=0, directions=("t2i",))
            run = run_recipe(Recipe(source, inputs=inputs, options=options, base=tmp_path))
            assert run["t2i/Hit@1"].mean == 1.0


@pytest.fixture(scope="module")
def coco(shared_data: Path) -> cl.Dataset:
    columns = {"image_column": "coco_image_id", "caption_column": "coco_caption_id", "text_column": "raw_caption"}
    return cl.load_dataset("plain", captions=shared_data / "coco_karpathy_test" / "captions.tsv.gz", **columns)


@pytest.mark.slow
def test_a_real_run_over_coco(coco: cl.Dataset, shared_data: Path) -> None:
    """Images and captions share ids, and the lists name sixth captions that the split leaves out."""
    lists = read_run(shared_data / "runs" / "align-coco5k-i2t.run.gz")
    run = cl.evaluate(coco, run=lists, metrics="CappedRecall@1 CappedRecall@5 CappedRecall@10", resamples=0)
    assert [run[name].mean for name in run] == pytest.approx([0.6044, 0.4220, 0.5440], abs=5e-5)
    assert notes(run)[0].startswith("i2t: 46 of 50,000 list entries are not in the dataset (such as '41111')")
    assert notes(run)[1].startswith("i2t: in 208 of 5,000 lists a relevant item has the same score")


def write_package(folder: Path) -> Path:
    """The files of ``eccv_caption`` that are read, for two images with a caption each."""
    data = folder / "eccv_caption" / "data"
    data.mkdir(parents=True)
    np.save(data / "coco_test_ids.npy", np.array([10, 20]))
    forward = {"original": {"1": [10], "2": [20]}, "eccv": {"1": [10, 20]}, "cxc": {"1": [10], "2": [20, 10]}}
    for kind, pairs in forward.items():
        turned: dict[str, list[int]] = {}
        for image, captions in pairs.items():
            for caption in captions:
                turned.setdefault(str(caption), []).append(int(image))
        (data / f"{kind}_image_to_caption.json").write_text(json.dumps(pairs))
        (data / f"{kind}_caption_to_image.json").write_text(json.dumps(turned))
    return data.parent


@pytest.mark.parametrize("name", ["eccv", "cxc"])
def test_judgements_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """``--qrels eccv`` is both directions of the set, with and without a dataset; a recipe keeps the name."""
    package = write_package(tmp_path)
    spec = SimpleNamespace(submodule_search_locations=[str(package)])
    monkeypatch.setattr("importlib.util.find_spec", lambda _: spec)
    (tmp_path / "data.csv").write_text("image,caption,text\n1,10,A dog.\n2,20,A cat.\n")
    (tmp_path / "i2t.run").write_text("1 Q0 20 1 0.9 m\n1 Q0 10 2 0.1 m\n2 Q0 10 1 0.9 m\n2 Q0 20 2 0.1 m\n")
    (tmp_path / "t2i.run").write_text("10 Q0 1 1 0.9 m\n20 Q0 1 1 0.9 m\n")
    options = EvaluateOptions(metrics=("Hit@1",), resamples=0)
    for source in ("data.csv", None):
        inputs = InputOptions(runs=("i2t.run", "t2i.run"), qrels=name)
        recipe = Recipe(source, inputs=inputs, options=options, base=tmp_path)
        run = run_recipe(recipe, tmp_path / f"run {source}")
        values = run["i2t/Hit@1"].values
        assert run["t2i/Hit@1"].values.tolist() == [1.0, 1.0 if name == "eccv" else 0.0]
        assert values[0] == (1.0 if name == "eccv" else 0.0)
        stored = Recipe.read(tmp_path / f"run {source}" / "recipe.toml")
        assert stored.inputs.qrels == name
        assert run_recipe(stored)["i2t/Hit@1"].mean == run["i2t/Hit@1"].mean
    (package / "data" / f"{name}_image_to_caption.json").write_text('{"1": [20]}')
    with pytest.raises(InputError, match="the qrels changed since the recipe was stored"):
        run_recipe(stored)


@pytest.mark.slow
def test_named_judgements(coco: cl.Dataset, shared_data: Path, tmp_path: Path) -> None:
    """``--qrels eccv`` is both directions of ECCV Caption, with and without a dataset; the recipe keeps the name."""
    pytest.importorskip("eccv_caption", reason="needs the extra 'eccv'")
    coco.save(tmp_path / "split")
    options = EvaluateOptions(metrics=("Hit@1", "Hit@5"), resamples=0)
    inputs = InputOptions(runs=(str(shared_data / "runs" / "align-coco5k-i2t.run.gz"),), qrels="eccv")
    runs = [
        run_recipe(Recipe(source, inputs=inputs, options=options, base=tmp_path), tmp_path / f"run-{source}")
        for source in ("split", None)
    ]
    assert [run["i2t/Hit@1"].n for run in runs] == [1261, 1261]
    assert [run["i2t/Hit@1"].mean for run in runs] == pytest.approx([0.7439, 0.7439], abs=5e-5)
    recipe = Recipe.read(tmp_path / "run-split" / "recipe.toml")
    assert recipe.inputs.qrels == "eccv"
    assert run_recipe(recipe)["i2t/Hit@1"].mean == runs[0]["i2t/Hit@1"].mean

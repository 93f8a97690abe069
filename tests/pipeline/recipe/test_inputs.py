"""The files of a recipe: every form of them, and errors that name the file and the row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosslens.core import CrosslensError, InputError
from crosslens.pipeline import EvaluateOptions, InputOptions, Recipe, run_recipe
from crosslens.pipeline.recipe import execute
from crosslens.values import Dataset, Embeddings
from tests.pipeline.recipe.study import figures, recipe


@pytest.mark.parametrize(
    "changes",
    [
        {"image_embeddings": "img-folder"},
        {"image_embeddings": "img.npy", "image_ids": "image-ids.txt"},
        {"image_embeddings": "reversed.npy", "image_ids": "reversed.txt"},
    ],
)
def test_every_form_of_embeddings_gives_the_same(study: Path, changes: dict[str, str]) -> None:
    usual = run_recipe(recipe(study))
    run = run_recipe(recipe(study, inputs=replace(recipe(study).inputs, **changes)))
    assert figures(run) == figures(usual)


def test_scores_instead_of_embeddings(study: Path) -> None:
    dot = run_recipe(recipe(study, options=EvaluateOptions(score="dot", resamples=0)))
    run = run_recipe(recipe(study, inputs=InputOptions(scores="scores.npy"), options=EvaluateOptions(resamples=0)))
    assert figures(run) == figures(dot)


def test_runs_and_qrels_without_a_dataset(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 0.9 s\nq1 Q0 d2 2 0.8 s\nq2 Q0 d1 1 0.9 s\nq2 Q0 d2 2 0.1 s\n")
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\nq2 0 d2 1\n")
    options = EvaluateOptions(metrics=("Hit@1 Hit@2",), resamples=0)
    base = Recipe(inputs=InputOptions(runs=("a.run",), qrels="qrels.txt"), options=options, base=tmp_path)
    assert figures(run_recipe(base)) == {"i2t/Hit@1": 0.5, "i2t/Hit@2": 1.0}
    one_direction = run_recipe(replace(base, options=replace(options, directions=("t2i",))))
    assert figures(one_direction) == {"t2i/Hit@1": 0.5, "t2i/Hit@2": 1.0}
    (tmp_path / "qrels.txt").write_text("x1 0 d1 1\nx2 0 d2 1\n")
    with pytest.raises(
        InputError, match=r"qrels.txt: none of the 2 queries of the run is judged here \(such as 'q1'\)"
    ):
        run_recipe(base)


def test_the_direction_of_a_run_follows_from_its_queries(study: Path) -> None:
    from crosslens.data import write_run

    both = run_recipe(recipe(study, options=EvaluateOptions(metrics=("Hit@1",), depth=6)))
    for direction, ranking in both.rankings.items():
        write_run(ranking, study / f"{direction}.run")
    inputs = InputOptions(runs=("t2i.run", "i2t.run"))
    run = run_recipe(recipe(study, inputs=inputs, options=EvaluateOptions(metrics=("Hit@1",))))
    assert figures(run) == figures(both)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": InputOptions()}, "nothing to evaluate"),
        ({"inputs": InputOptions(image_embeddings="img.npy")}, "caption"),
        (
            {"inputs": InputOptions(image_ids="image-ids.txt", scores="scores.npy")},
            "image ids without image embeddings",
        ),
        ({"inputs": InputOptions("img-folder", "cap.npy", "image-ids.txt")}, "holds its own ids"),
        (
            {"inputs": InputOptions(image_embeddings="cap.npy", caption_embeddings="img.npy")},
            "12 is the number of captions: are the arrays swapped",
        ),
        ({"inputs": InputOptions(scores="cap.npy")}, "expected: 6 images × 12 captions"),
        ({"inputs": InputOptions(scores="image-ids.txt")}, "expected: a .npy file"),
        ({"inputs": InputOptions(scores="no.npy")}, "no such file"),
        ({"dataset": None}, "the image ids of the rows of"),
        ({"dataset": None, "inputs": InputOptions(scores="scores.npy")}, "scores without a dataset"),
        ({"dataset": "coca"}, "did you mean coco"),
        ({"dataset": "coco", "dataset_options": {"captons": "x"}}, "did you mean captions"),
        (
            {"inputs": InputOptions(runs=("a", "b")), "options": EvaluateOptions(directions=("i2t",))},
            "2 run files and 1 directions",
        ),
    ],
)
def test_inputs_that_do_not_fit_are_refused(study: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CrosslensError) as error:
        run_recipe(recipe(study, **changes))
    assert message in str(error.value)


def nan_at(array: np.ndarray[Any, Any], *index: int) -> np.ndarray[Any, Any]:
    array = array.copy()
    array[index] = np.nan
    return array


@pytest.mark.parametrize(
    ("write", "inputs", "message"),
    [
        (
            lambda study: np.save(study / "s.npy", nan_at(np.load(study / "scores.npy"), 3, 5)),
            {"scores": "s.npy"},
            "s.npy, row 3: score nan in column 5",
        ),
        (
            lambda study: np.save(study / "zero.npy", np.load(study / "cap.npy") * (np.arange(12) != 7)[:, None]),
            {"image_embeddings": "img.npy", "caption_embeddings": "zero.npy"},
            "zero.npy, row 7: a vector of zeros",
        ),
        (
            lambda study: np.save(study / "zero.npy", np.load(study / "reversed.npy") * (np.arange(6) != 1)[:, None]),
            {"image_embeddings": "zero.npy", "image_ids": "reversed.txt", "caption_embeddings": "cap.npy"},
            "zero.npy, row 1: a vector of zeros",
        ),
        (
            lambda study: np.save(study / "wide.npy", np.ones((12, 9))),
            {"image_embeddings": "img.npy", "caption_embeddings": "wide.npy"},
            "wide.npy: vectors of 8 and of 9 dimensions",
        ),
        (
            lambda study: (study / "ids.txt").write_text("im0\nim1\nim2\nim3\nim4x\nim5\n"),
            {"image_embeddings": "img.npy", "image_ids": "ids.txt", "caption_embeddings": "cap.npy"},
            "ids.txt, line 5: unknown image id 'im4x'\n  expected: one of the 6 image ids\n  fix: did you mean 'im4'?",
        ),
        (
            lambda study: (study / "ids.txt").write_text("im0\nim1\nim2\nim3\nim4\n"),
            {"image_embeddings": "img.npy", "image_ids": "ids.txt", "caption_embeddings": "cap.npy"},
            "ids.txt: 5 image ids for 6 rows of embeddings",
        ),
        (
            lambda study: (study / "ids.txt").write_text("im0\nim1\nim2\nim3\nim1\nim5\n"),
            {"image_embeddings": "img.npy", "image_ids": "ids.txt", "caption_embeddings": "cap.npy"},
            "ids.txt, line 5: duplicate image id 'im1' (first at line 2)",
        ),
        (
            lambda study: Embeddings(("im0", "im1"), np.ones((2, 8))).save(study / "few"),
            {"image_embeddings": "few", "caption_embeddings": "cap.npy"},
            "few: no vector for image 'im2' and 3 more",
        ),
        (
            lambda study: (study / "q.txt").write_text("im0 0 im0#0 1\nim1 0 im9#0 1\n"),
            {"scores": "scores.npy", "qrels": "q.txt"},
            "q.txt, line 2: unknown item id 'im9#0'",
        ),
        (
            lambda study: (study / "q.txt").write_text("a 0 b 1\nc 0 d 1\n"),
            {"scores": "scores.npy", "qrels": "q.txt"},
            "q.txt, line 1: the ids of the judgements are not those of the dataset (such as 'a')",
        ),
        (
            lambda study: (study / "r.run").write_text("im0 Q0 im0#0 1 0.9 s\nim0 Q0 im9#0 2 0.8 s\n"),
            {"runs": ("r.run",)},
            "r.run, line 2: unknown item id 'im9#0'",
        ),
        (
            lambda study: (study / "r.run").write_text("im0 Q0 im0#0 1 0.9 s\n"),
            {"runs": ("r.run",)},
            "r.run: i2t/Hit@5 cannot be computed",
        ),
    ],
)
def test_what_is_wrong_in_a_file_names_the_file(
    study: Path, write: Callable[[Path], Any], inputs: dict[str, Any], message: str
) -> None:
    write(study)
    with pytest.raises(InputError) as error:
        run_recipe(
            recipe(study, inputs=InputOptions(**inputs), options=EvaluateOptions(metrics=("Hit@5",), resamples=0))
        )
    assert f"{study}/{message}" in str(error.value)


def test_vectors_of_more_items_than_the_dataset_has(study: Path) -> None:
    images = np.load(study / "img.npy")
    np.save(study / "more.npy", np.concatenate([images, images[:1]]))
    (study / "more.txt").write_text("im0\nim1\nim2\nim3\nim4\nim5\nanother\n")
    inputs = InputOptions(image_embeddings="more.npy", image_ids="more.txt", caption_embeddings="cap.npy")
    assert figures(run_recipe(recipe(study, inputs=inputs))) == figures(run_recipe(recipe(study)))


def test_a_dataset_without_captions_says_so(study: Path) -> None:
    Dataset.of({"im0": [], "im1": []}).save(study / "bare")
    with pytest.raises(InputError, match=r"bare: the dataset has no captions"):
        run_recipe(recipe(study, dataset="./bare"))


def test_pickled_arrays_are_refused(study: Path) -> None:
    np.save(study / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="plain numbers") as error:
        run_recipe(recipe(study, inputs=InputOptions(scores="objects.npy")))
    assert "numpy.save" in str(error.value)


def test_only_the_code_of_an_error_says_that_a_vector_is_zero(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(study / "zero.npy", np.load(study / "cap.npy") * (np.arange(12) != 7)[:, None])
    inputs = InputOptions(image_embeddings="img.npy", caption_embeddings="zero.npy")
    for code, location in (("zero-vector", "zero.npy, row 7"), (None, "img.npy and ")):

        def failing(*_: Any, code: str | None = code, **__: Any) -> None:
            raise InputError("a zero somewhere", row=3, code=code)

        monkeypatch.setattr(execute, "evaluate", failing)
        with pytest.raises(InputError) as error:
            run_recipe(recipe(study, inputs=inputs))
        assert f"{study}/{location}" in str(error.value)

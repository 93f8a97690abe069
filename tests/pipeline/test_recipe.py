"""Recipes: written by hand with every mistake named, stored with every input remembered, repeated exactly."""

from __future__ import annotations

import importlib
import inspect
import tomllib
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosslens.core.dataset import Dataset
from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import CrosslensError, FormatVersionError, InputError, UsageError
from crosslens.core.run import Run
from crosslens.metrics import DEFAULT_METRICS, request
from crosslens.pipeline import evaluate as evaluate_module
from crosslens.pipeline.recipe import Inputs, Options, Recipe, execute, toml

execute_module = importlib.import_module("crosslens.pipeline.recipe.execute")
"""The package offers the function under the module's name."""

GOOD = """\
name = "clip"

[dataset]
source = "coco"
captions = "data/captions.json"
split = "val"

[inputs]
image_embeddings = "img.npy"
caption_embeddings = "/far/away/cap.npy"
image_ids = "img.txt"

[options]
metrics = "Hit@1 t2i/MedR"
level = 0.9
folds = 5
"""


def test_reading(tmp_path: Path) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text(GOOD)
    recipe = Recipe.read(file)
    assert (recipe.name, recipe.dataset, recipe.base) == ("clip", "coco", tmp_path)
    assert recipe.dataset_options == {"captions": "data/captions.json", "split": "val"}
    assert recipe.inputs.image_ids == "img.txt"
    assert (recipe.options.level, recipe.options.folds, recipe.options.ties) == (0.9, 5, "stable")
    assert recipe.options.metrics == ("Hit@1 t2i/MedR",)


def test_a_single_run_needs_no_brackets() -> None:
    assert Recipe.parse('[inputs]\nruns = "one.run"\nqrels = "q.txt"\n').inputs.runs == ("one.run",)


def test_paths_start_from_the_recipe(tmp_path: Path) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text(GOOD)
    absolute = Recipe.read(file).absolute()
    assert absolute.dataset == "coco"
    assert absolute.dataset_options == {"captions": str(tmp_path / "data/captions.json"), "split": "val"}
    assert absolute.inputs.image_embeddings == str(tmp_path / "img.npy")
    assert absolute.inputs.caption_embeddings == "/far/away/cap.npy"


def test_writing_reads_back() -> None:
    recipe = Recipe.parse(GOOD)
    again = Recipe.parse(recipe.to_toml())
    assert again == recipe
    assert "numpy" in recipe.to_toml(), "every option is written out: defaults may change one day"


@pytest.mark.parametrize(
    ("before", "after", "line", "message"),
    [
        ("folds = 5", "flods = 5", 16, "unknown key 'flods' in [options]"),
        ("folds = 5", "flods = 5", 16, "did you mean folds"),
        ("folds = 5", 'folds = "5"', 16, "a whole number"),
        ("folds = 5", "folds = true", 16, "a whole number"),
        ("folds = 5", "folds = 0", 16, "at least 1"),
        ("folds = 5", "folds = ", 16, "not valid TOML"),
        ("folds = 5", 'directions = ["i2t", "up"]', 16, "i2t (image to text)"),
        ("folds = 5", 'ties = "stabel"', 16, "did you mean stable"),
        ("folds = 5", 'score = "cosin"', 16, "did you mean cosine"),
        ("folds = 5", 'backend = "nunpy"', 16, "did you mean numpy"),
        ("level = 0.9", "level = 90", 15, "between 0 and 1"),
        ("level = 0.9", 'level = "high"', 15, "a number"),
        ('"Hit@1 t2i/MedR"', '"Hti@1"', 14, "did you mean Hit"),
        ('"Hit@1 t2i/MedR"', '["Hit@1", 5]', 14, "a list of texts"),
        ('"img.npy"', "7", 9, "a text in quotes"),
        ("[inputs]", "[input]", 8, "unknown key 'input'"),
        ("[inputs]", "[[inputs]]", 8, "a table"),
        ("[inputs]", "[inputs", 8, "not valid TOML"),
        ('split = "val"', 'spilt = "val"', 6, "did you mean split"),
        ('source = "coco"', "source = 3", 4, "source = 3"),
        ('source = "coco"\n', "", 3, "the dataset has no source"),
        ('name = "clip"', "name = 3", 1, "a text in quotes"),
        (GOOD, 'dataset = "coco"\n', 1, "a table: [dataset]"),
        (GOOD, 'inputs = { scroes = "x" }', 1, "did you mean scores"),
        ('name = "clip"', 'version = "new"', 1, "the number 1"),
        (GOOD, 'inputs.scroes = "x"', 1, "did you mean scores"),
        ('source = "coco"', 'source = "cooc"', 4, "unknown dataset reader 'cooc'"),
        ('source = "coco"', 'source = "cooc"', 4, "did you mean coco"),
        ('"data/captions.json"', '["data/captions.json"]', 5, "a text in quotes"),
        ('"data/captions.json"', "5", 5, "a text in quotes"),
        ('source = "coco"', 'source = "karpathy"\nrestval = "yes"', 5, "expected: true or false"),
        ('source = "coco"', 'source = "./data.csv"\ntext_column = 3', 5, "a text in quotes"),
        ('name = "clip"', "version = 2", 1, "this crosslens reads up to version 1"),
        ('name = "clip"', "version = 0", 1, "the number 1"),
        (GOOD, "name = 'x'\n[inputs]\n", 2, "give image_embeddings and caption_embeddings, or scores, or runs"),
        ('image_ids = "img.txt"', 'scores = "s.npy"', 11, "both embeddings and scores"),
        ('image_ids = "img.txt"', 'runs = ["a.run", "b.run"]', 11, "both embeddings and runs"),
        ('image_embeddings = "img.npy"', 'qrels = "q.txt"', 11, "give image_embeddings too"),
        ('caption_embeddings = "/far/away/cap.npy"', 'qrels = "q.txt"', 9, "no caption embeddings"),
        ("[dataset]", "[model]\nskip_bad = true\n[dataset]", 3, "options for a model, but no model"),
        ("[dataset]", '[model]\nname = "clip"\n[dataset]', 4, "both embeddings and a model"),
        (GOOD, '[inputs]\nscores = "s.npy"\n', 2, "scores without a dataset"),
        (GOOD, '[inputs]\nruns = "s.run"\n', 2, "give qrels, or a [dataset]"),
        (GOOD, '[inputs]\nqrels = "q"\nruns = "r"\n[options]\ndirections = ["i2t", "t2i"]', 3, "1 run files and 2"),
        ("[options]", '[fingerprints]\nimages_embeddings = "x"\n[options]', 14, "did you mean image_embeddings"),
    ],
)
def test_mistakes_are_named_with_their_line(before: str, after: str, line: int, message: str, tmp_path: Path) -> None:
    assert before in GOOD
    file = tmp_path / "recipe.toml"
    file.write_text(GOOD.replace(before, after))
    with pytest.raises(InputError) as error:
        Recipe.read(file)
    assert message in str(error.value)
    assert str(error.value).startswith(f"{file}, line {line}: ")
    assert "--" not in str(error.value).replace("pip install --upgrade", ""), "a recipe has no flags"


def test_a_newer_recipe_says_so() -> None:
    with pytest.raises(FormatVersionError, match="upgrade"):
        Recipe.parse("version = 99\n")


def test_lines_of_keys() -> None:
    text = 'a = 1\n[one]\nb = """\nc = 3\n"""\n"d e" = 2\n[ two . three ]\nf.g = 4\n'
    assert toml.key_lines(text) == {
        ("a",): 1,
        ("one",): 2,
        ("one", "b"): 3,
        ("one", "d e"): 6,
        ("two", "three"): 7,
        ("two", "three", "f", "g"): 8,
    }


texts = st.text(st.characters(exclude_categories=["Cs"]))
scalars = texts | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.booleans()


@given(st.dictionaries(texts.filter(bool), st.dictionaries(texts, scalars | st.lists(texts, min_size=1), min_size=1)))
def test_what_is_written_is_what_tomllib_reads(tables: dict[str, dict[str, Any]]) -> None:
    assert tomllib.loads(toml.dump(tables)) == tables


def test_options_are_those_of_evaluate() -> None:
    """The same names, the same defaults; an empty tuple stands for None, which TOML cannot say."""
    parameters = inspect.signature(evaluate_module.evaluate).parameters
    for one in fields(Options):
        default = parameters[one.name].default
        assert (one.default or None) == default or one.default == default


def test_options_out_of_range_are_refused_without_a_file_too() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        Options(depth=0)


# --- carried out -----------------------------------------------------------------------------------------------------


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A folder with a dataset, embeddings and scores in every form."""
    dataset = Dataset.of(
        {f"im{n}": [f"caption {n} {m}" for m in range(2)] for n in range(6)}, images={"kind": list("aabbcc")}
    )
    dataset.save(tmp_path / "data")
    random = np.random.default_rng(0)
    images = random.standard_normal((6, 8)).astype(np.float32)
    captions = (np.repeat(images, 2, axis=0) + 0.5 * random.standard_normal((12, 8))).astype(np.float32)
    np.save(tmp_path / "img.npy", images)
    np.save(tmp_path / "cap.npy", captions)
    np.save(tmp_path / "scores.npy", images @ captions.T)
    (tmp_path / "image-ids.txt").write_text("\n".join(dataset.image_ids) + "\n")
    (tmp_path / "reversed.txt").write_text("\n".join(reversed(dataset.image_ids)) + "\n")
    np.save(tmp_path / "reversed.npy", images[::-1])
    Embeddings(dataset.image_ids, images, model="m").save(tmp_path / "img-folder")
    return tmp_path


def recipe(study: Path, **changes: Any) -> Recipe:
    inputs = Inputs(image_embeddings="img.npy", caption_embeddings="cap.npy")
    return replace(Recipe(dataset="./data", inputs=inputs, options=Options(resamples=20), base=study), **changes)


def figures(run: Run) -> dict[str, float]:
    return {name: one.mean for name, one in run.values.items()}


def test_executing(study: Path) -> None:
    run = execute(recipe(study, name="mine"))
    assert run.name == "mine"
    assert {"i2t/Hit@1", "t2i/Hit@1", "Rsum"} <= set(run)
    assert list(run.columns["t2i"]["kind"])[:4] == ["a", "a", "a", "a"]


@pytest.mark.parametrize(
    "changes",
    [
        {"image_embeddings": "img-folder"},
        {"image_embeddings": "img.npy", "image_ids": "image-ids.txt"},
        {"image_embeddings": "reversed.npy", "image_ids": "reversed.txt"},
    ],
)
def test_every_form_of_embeddings_gives_the_same(study: Path, changes: dict[str, str]) -> None:
    usual = execute(recipe(study))
    run = execute(recipe(study, inputs=replace(recipe(study).inputs, **changes)))
    assert figures(run) == figures(usual)


def test_scores_instead_of_embeddings(study: Path) -> None:
    dot = execute(recipe(study, options=Options(score="dot", resamples=0)))
    run = execute(recipe(study, inputs=Inputs(scores="scores.npy"), options=Options(resamples=0)))
    assert figures(run) == figures(dot)


def test_a_stored_recipe_repeats_exactly(study: Path) -> None:
    first = execute(recipe(study), study / "runs" / "one")
    stored = study / "runs" / "one" / "recipe.toml"
    content = tomllib.loads(stored.read_text())
    assert content["dataset"]["source"] == "../../data"
    assert content["inputs"]["image_embeddings"] == "../../img.npy"
    assert set(content["fingerprints"]) == {"dataset", "image_embeddings", "caption_embeddings"}
    again = execute(Recipe.read(stored))
    assert again.fingerprint == first.fingerprint
    assert {name: one.interval for name, one in again.values.items()} == {
        name: one.interval for name, one in first.values.items()
    }


def stored_metrics(folder: Path) -> list[str]:
    return list(tomllib.loads((folder / "recipe.toml").read_text())["options"]["metrics"])


def lists(study: Path, depth: int) -> Recipe:
    """The same ranking as ready-made lists of this many items."""
    from crosslens.data import write_run

    ranking = execute(recipe(study, options=Options(depth=depth, metrics=("Hit@1",), resamples=0))).rankings["t2i"]
    write_run(ranking, study / "t2i.run")
    return recipe(study, inputs=Inputs(runs=("t2i.run",)))


@pytest.mark.parametrize(
    ("make", "missing"),
    [
        (recipe, set()),
        (lambda study: recipe(study, options=Options(directions=("t2i",), resamples=20)), {"Rsum"}),
        (lambda study: lists(study, 5), {"Rsum", "Hit@10"}),
    ],
    ids=["both directions", "one direction", "short lists"],
)
def test_default_metrics_are_stored_by_name(
    study: Path, make: Callable[[Path], Recipe], missing: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What crosslens computes by default may change; what a stored recipe repeats must not."""
    folder = study / "runs" / "one"
    first = execute(make(study), folder)
    names = stored_metrics(folder)
    assert set(DEFAULT_METRICS) - set(names) == missing
    assert {name.rpartition("/")[2] for name in first} == set(names)
    assert first.recipe == Run.load(folder).recipe == (folder / "recipe.toml").read_text()
    monkeypatch.setattr(request, "DEFAULT_METRICS", ("Hit@3",))
    again = execute(Recipe.read(folder / "recipe.toml"))
    assert again.fingerprint == first.fingerprint
    before = {file.name: file.read_bytes() for file in folder.glob("*.*")}
    assert execute(Recipe.read(folder / "recipe.toml"), folder).fingerprint == first.fingerprint
    assert {file.name: file.read_bytes() for file in folder.glob("*.*")} == before


def test_a_recipe_that_could_not_be_completed_is_completed_by_the_same_command(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    folder = study / "runs" / "one"
    with monkeypatch.context() as patch:
        patch.setattr(execute_module, "write_text", killed)
        with pytest.raises(KeyboardInterrupt):
            execute(recipe(study), folder)
    assert "metrics" not in tomllib.loads((folder / "recipe.toml").read_text())["options"]
    execute(recipe(study), folder)
    assert stored_metrics(folder) == list(DEFAULT_METRICS)


def test_the_recipe_of_an_earlier_run_is_left_alone(study: Path) -> None:
    folder = study / "runs" / "one"
    execute(recipe(study), folder)
    (folder / "recipe.toml").write_text("# mine\n")
    execute(recipe(study), folder)
    assert (folder / "recipe.toml").read_text() == "# mine\n"


def test_the_folder_can_move_with_its_data(study: Path) -> None:
    first = execute(recipe(study), study / "runs" / "one")
    moved = study.with_name(study.name + "-moved")
    study.rename(moved)
    assert execute(Recipe.read(moved / "runs" / "one" / "recipe.toml")).fingerprint == first.fingerprint


def test_executing_a_stored_recipe_into_its_own_folder_finds_it_done(study: Path) -> None:
    first = execute(recipe(study), study / "runs" / "one")
    stored = study / "runs" / "one" / "recipe.toml"
    text = stored.read_text()
    again = execute(Recipe.read(stored), study / "runs" / "one")
    assert again.fingerprint == first.fingerprint
    assert stored.read_text() == text


def test_a_far_input_keeps_its_absolute_path(study: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    deep = study / "a" / "b" / "c" / "d" / "e"
    execute(recipe(study), deep)
    assert tomllib.loads((deep / "recipe.toml").read_text())["inputs"]["image_embeddings"] == str(study / "img.npy")


@pytest.mark.parametrize(
    ("change", "file", "what"),
    [
        (lambda study: np.save(study / "img.npy", np.load(study / "img.npy") + 1), "img.npy", "image embeddings"),
        (lambda study: _recaption(study), "data", "dataset"),
    ],
)
def test_changed_inputs_are_refused(study: Path, change: Callable[[Path], None], file: str, what: str) -> None:
    execute(recipe(study), study / "runs" / "one")
    stored = Recipe.read(study / "runs" / "one" / "recipe.toml")
    change(study)
    with pytest.raises(InputError, match=f"the {what} changed since the recipe was stored") as error:
        execute(stored)
    assert error.value.file is not None
    assert Path(error.value.file).name == file
    assert "--allow-changed" in str(error.value)
    assert execute(stored, allow_changed=True)


def _recaption(study: Path) -> None:
    dataset = Dataset.load(study / "data")
    captions = dataset.captions.with_columns(text=dataset.captions["text"] + " more")
    replace(dataset, captions=captions).save(study / "data", overwrite=True)


def test_runs_and_qrels_without_a_dataset(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 0.9 s\nq1 Q0 d2 2 0.8 s\nq2 Q0 d1 1 0.9 s\nq2 Q0 d2 2 0.1 s\n")
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\nq2 0 d2 1\n")
    options = Options(metrics=("Hit@1 Hit@2",), resamples=0)
    base = Recipe(inputs=Inputs(runs=("a.run",), qrels="qrels.txt"), options=options, base=tmp_path)
    assert figures(execute(base)) == {"i2t/Hit@1": 0.5, "i2t/Hit@2": 1.0}
    other = execute(replace(base, options=replace(options, directions=("t2i",))))
    assert figures(other) == {"t2i/Hit@1": 0.5, "t2i/Hit@2": 1.0}
    (tmp_path / "qrels.txt").write_text("x1 0 d1 1\nx2 0 d2 1\n")
    with pytest.raises(
        InputError, match=r"qrels.txt: none of the 2 queries of the run is judged here \(such as 'q1'\)"
    ):
        execute(base)


def test_the_direction_of_a_run_is_told_by_its_queries(study: Path) -> None:
    from crosslens.data import write_run

    both = execute(recipe(study, options=Options(metrics=("Hit@1",), depth=6)))
    for direction, ranking in both.rankings.items():
        write_run(ranking, study / f"{direction}.run")
    inputs = Inputs(runs=("t2i.run", "i2t.run"))
    run = execute(recipe(study, inputs=inputs, options=Options(metrics=("Hit@1",))))
    assert figures(run) == figures(both)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": Inputs()}, "nothing to evaluate"),
        ({"inputs": Inputs(image_embeddings="img.npy")}, "caption"),
        ({"inputs": Inputs(image_ids="image-ids.txt", scores="scores.npy")}, "image ids without image embeddings"),
        ({"inputs": Inputs("img-folder", "cap.npy", "image-ids.txt")}, "holds its own ids"),
        ({"inputs": Inputs(image_embeddings="cap.npy", caption_embeddings="img.npy")}, "12 vectors for 6 ids"),
        ({"inputs": Inputs(scores="cap.npy")}, "expected: images × captions, here 6×12"),
        ({"inputs": Inputs(scores="image-ids.txt")}, "expected: a .npy file"),
        ({"inputs": Inputs(scores="no.npy")}, "no such file"),
        ({"dataset": None}, "nothing says which images the rows of"),
        ({"dataset": None, "inputs": Inputs(scores="scores.npy")}, "scores without a dataset"),
        ({"dataset": "coca"}, "did you mean coco"),
        ({"dataset": "coco", "dataset_options": {"captons": "x"}}, "did you mean captions"),
        ({"inputs": Inputs(runs=("a", "b")), "options": Options(directions=("i2t",))}, "2 run files and 1 directions"),
    ],
)
def test_what_does_not_fit_is_said(study: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CrosslensError) as error:
        execute(recipe(study, **changes))
    assert message in str(error.value)


def nan_at(array: np.ndarray[Any, Any], *place: int) -> np.ndarray[Any, Any]:
    array = array.copy()
    array[place] = np.nan
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
            "ids.txt: no vector for image 'im5'",
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
            "q.txt, line 1: unknown query id 'a', and 1 more",
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
        execute(recipe(study, inputs=Inputs(**inputs), options=Options(metrics=("Hit@5",), resamples=0)))
    assert f"{study}/{message}" in str(error.value)


def test_vectors_of_more_items_than_the_dataset_has(study: Path) -> None:
    images = np.load(study / "img.npy")
    np.save(study / "more.npy", np.concatenate([images, images[:1]]))
    (study / "more.txt").write_text("im0\nim1\nim2\nim3\nim4\nim5\nanother\n")
    inputs = Inputs(image_embeddings="more.npy", image_ids="more.txt", caption_embeddings="cap.npy")
    assert figures(execute(recipe(study, inputs=inputs))) == figures(execute(recipe(study)))


def test_a_dataset_without_captions_says_so(study: Path) -> None:
    Dataset.of({"im0": [], "im1": []}).save(study / "bare")
    with pytest.raises(InputError, match=r"bare: the dataset has no captions"):
        execute(recipe(study, dataset="./bare"))


def test_pickled_arrays_are_refused(study: Path) -> None:
    np.save(study / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="plain numbers") as error:
        execute(recipe(study, inputs=Inputs(scores="objects.npy")))
    assert "numpy.save" in str(error.value)

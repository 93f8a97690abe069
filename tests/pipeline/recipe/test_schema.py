"""Recipes written by hand: read, written, and every mistake named with its line."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from crosslens.core import FormatVersionError, InputError, UsageError, is_plugin_loaded, load_plugin
from crosslens.pipeline import EvaluateArguments, EvaluateOptions, Recipe
from crosslens.pipeline.recipe.recipe import write_toml
from crosslens.storage import UntrustedCodeError
from crosslens.storage.settings import key_lines

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


def test_plugins_are_loaded_before_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("")
    with pytest.raises(UntrustedCodeError, match=r"mine\.py"):
        Recipe.parse(f'plugins = ["mine.py"]\n{GOOD}', tmp_path)
    load_plugin(tmp_path / "mine.py")  # the user's own choice
    for written in ('["mine.py"]', '"mine.py"'):
        recipe = Recipe.parse(f"plugins = {written}\n{GOOD}", tmp_path)
        assert recipe.plugins == ("mine.py",)
        assert recipe.absolute().plugins == (str(tmp_path / "mine.py"),)
        assert Recipe.parse(recipe.to_toml(), tmp_path) == recipe
        assert is_plugin_loaded(tmp_path / "mine.py")
    with pytest.raises(InputError, match="line 1: plugins = 3"):
        Recipe.parse(f"plugins = 3\n{GOOD}", tmp_path)
    with pytest.raises(InputError, match=r"missing\.py: no such file"):
        Recipe.parse(f'plugins = ["missing.py"]\n{GOOD}', tmp_path)


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
        ("level = 0.9", "level = 90", 15, "below 1"),
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
        (GOOD, "name = 'x'\n[inputs]\n", 2, "add image_embeddings and caption_embeddings, or scores, or runs"),
        ('image_ids = "img.txt"', 'scores = "s.npy"', 11, "both embeddings and scores"),
        ('image_ids = "img.txt"', 'runs = ["a.run", "b.run"]', 11, "both embeddings and runs"),
        ('image_embeddings = "img.npy"', 'qrels = "q.txt"', 11, "add image_embeddings"),
        ('caption_embeddings = "/far/away/cap.npy"', 'qrels = "q.txt"', 9, "no caption embeddings"),
        ("[dataset]", "[model]\nskip_bad = true\n[dataset]", 4, "skip_bad, but no model"),
        (
            "[dataset]",
            '[model]\nskip_bad = true\nprecision = "bf16"\n[dataset]',
            5,
            "precision and skip_bad, but no model",
        ),
        (GOOD, '[inputs]\nruns = "r"\nqrels = "q"\n[model]\nimage_folder = "photos"\n', 5, "add a [dataset]"),
        ("[dataset]", '[model]\nname = "clip"\n[dataset]', 4, "both embeddings and a model"),
        (GOOD, '[inputs]\nscores = "s.npy"\n', 2, "scores without a dataset"),
        (GOOD, '[inputs]\nruns = "s.run"\n', 2, "add qrels, or a [dataset]"),
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
    text = 'a = 1\n[one]\nb = """\nc = 3\n"""\n"d e" = 2\n[ two . three ]\nf.g = 4\n[[four]]\n[[four]]\nh = 5\n'
    assert key_lines(text) == {
        ("a",): 1,
        ("one",): 2,
        ("one", "b"): 3,
        ("one", "d e"): 6,
        ("two", "three"): 7,
        ("two", "three", "f", "g"): 8,
        ("four",): 9,
        ("four", 0): 9,
        ("four", 1): 10,
        ("four", 1, "h"): 11,
    }


texts = st.text(st.characters(exclude_categories=["Cs"]))


scalars = texts | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.booleans()


@given(st.dictionaries(texts.filter(bool), st.dictionaries(texts, scalars | st.lists(texts, min_size=1), min_size=1)))
def test_what_is_written_is_what_tomllib_reads(tables: dict[str, dict[str, Any]]) -> None:
    assert tomllib.loads(write_toml(tables)) == tables


def test_options_are_those_of_evaluate() -> None:
    """Every key of [options] is a keyword of evaluate, with the same default."""
    assert {entry.name: entry.default for entry in fields(EvaluateOptions)}.items() <= {
        entry.name: entry.default for entry in fields(EvaluateArguments)
    }.items()


def test_options_out_of_range_are_refused_without_a_file_too() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        EvaluateOptions(depth=0)

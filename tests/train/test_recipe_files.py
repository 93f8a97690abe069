"""Recipes that build on others: what they inherit, what they replace, and what cannot be built on."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosslens.core import InputError
from crosslens.train import load_training_recipe
from crosslens.train.recipe import merged

BASE = """
about = "the base"
phi = "bleu"
least_count = 2

[data]
kind = "precomp"
test = "testall"

[model]
kind = "vse"
dimension = 64
word_dimension = 32

[[loss]]
kind = "triplet"
margin = 0.1

[training]
epochs = 3
learning_rate = 1e-3

[[published]]
table = "A Table 1"
row = "mine"
Rsum = 300.5
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "base.toml").write_text(BASE)
    return tmp_path


def written(folder: Path, text: str, name: str = "child.toml") -> Path:
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def test_tables_merge_entry_by_entry(folder: Path) -> None:
    text = 'base = "base.toml"\n[model]\ndimension = 8\n[training]\nepochs = 5\nseed = 4\n'
    child, base = load_training_recipe(written(folder, text)), load_training_recipe(folder / "base.toml")
    assert child.model_settings == {"dimension": 8, "word_dimension": 32}
    assert (child.settings.epochs, child.settings.learning_rate, child.settings.seed) == (5, 1e-3, 4)
    assert (child.name, child.source) == ("child", str(folder / "child.toml"))
    assert (child.phi, child.least_count, child.data, child.losses) == ("bleu", 2, {"test": "testall"}, base.losses)
    assert (child.about, child.published) == ("", ()), "a description and a paper's row belong to one recipe alone"
    assert base.published[0].figures == {"Rsum": 300.5}
    assert "published" not in base.identity()


def test_a_table_of_another_kind_starts_anew(folder: Path) -> None:
    child = load_training_recipe(written(folder, 'base = "base.toml"\n[data]\nkind = "flickr8k"\n'))
    assert (child.layout, child.data) == ("flickr8k", {})
    same = load_training_recipe(written(folder, 'base = "base.toml"\n[data]\nkind = "precomp"\n'))
    assert same.data == {"test": "testall"}


def test_losses_are_replaced_or_kept(folder: Path) -> None:
    sam = '[[loss]]\nkind = "sam"\n'
    replaced = load_training_recipe(written(folder, f'base = "base.toml"\n{sam}'))
    assert replaced.losses == ({"kind": "sam"},)
    added = load_training_recipe(written(folder, f'base = "base.toml"\n[[loss]]\nkind = "base"\n{sam}'))
    assert added.losses == ({"kind": "triplet", "margin": 0.1}, {"kind": "sam"})
    single = load_training_recipe(written(folder, 'base = "base.toml"\n[loss]\nkind = "triplet"\n'))
    assert single.losses == ({"kind": "triplet"},), "a loss is never mixed with another"


def test_bases_of_bases_and_folders(folder: Path) -> None:
    written(folder, 'base = "../base.toml"\n[model]\ndimension = 8\n', "below/middle.toml")
    leaf = written(folder, 'base = "middle.toml"\n[model]\nword_dimension = 4\n', "below/leaf.toml")
    assert load_training_recipe(leaf).model_settings == {"dimension": 8, "word_dimension": 4}


def test_a_packaged_recipe_as_base(folder: Path) -> None:
    child = load_training_recipe(written(folder, 'base = "flickr8k-vse-sam-random"\n[training]\nepochs = 2\n'))
    packaged = load_training_recipe("flickr8k-vse-sam-random")
    assert (child.losses, child.settings.epochs) == (packaged.losses, 2)
    assert packaged.losses[0] == load_training_recipe("flickr8k-vse-triplet").losses[0]


def test_nothing_of_the_base_is_changed() -> None:
    base = {"model": {"kind": "vse", "dimension": 1}, "loss": [{"kind": "a"}]}
    merged(base, {"model": {"dimension": 2}, "loss": [{"kind": "b"}]})
    assert base == {"model": {"kind": "vse", "dimension": 1}, "loss": [{"kind": "a"}]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base = 3", "child.toml.*base is 3.*path from this file"),
        ('base = "nothing.toml"', "child.toml.*its base nothing.toml does not exist"),
        ('base = "flickr8k-vse-triplte"', "child.toml.*its base is unknown.*did you mean flickr8k-vse-triplet"),
        ('base = "child.toml"', r"builds on itself: child.toml → child.toml"),
        ('base = "round.toml"', r"builds on itself: child.toml → round.toml → child.toml"),
        ('base = "damaged.toml"', r"damaged.toml.*not valid TOML"),
        ('base = "base.toml"\n[[loss]]\nkind = "base"\nweight = 2.0', r'kind "base" with weight'),
        ('[[loss]]\nkind = "base"', r'kind "base" in a recipe without a base'),
        ('base = "base.toml"\nabuot = "x"', r"line 2: unknown key 'abuot'"),
        ('base = "base.toml"\n[[published]]\nrow = "x"', r"\[\[published\]\] has no table"),
        (
            'base = "base.toml"\n[[published]]\ntable = "x"\nrow = "y"\nRsum = "high"',
            r"line 5: Rsum = 'high'.*a number",
        ),
        ('base = "base.toml"\npublished = 3', "published is 3"),
    ],
)
def test_mistakes(folder: Path, text: str, message: str) -> None:
    written(folder, 'base = "child.toml"\n', "round.toml")
    written(folder, "about = \n", "damaged.toml")
    with pytest.raises(InputError, match=f"(?s){message}"):
        load_training_recipe(written(folder, text))

"""The packaged recipes in groups, by the data they are for, and those that a few words describe."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crosslens.core import UsageError
from crosslens.train.recipes.files import recipe_names
from crosslens.train.recipes.recipe import TrainingRecipe, load_training_recipe

TITLES = {
    "flickr8k": "Flickr8k, features of EfficientNet-lite0",
    "f30k": "Flickr30k, region features",
    "coco": "COCO, region features",
    "imp": "Pairs of pictures and captions, evaluated on IMP",
}
"""By how the names begin."""


@dataclass(frozen=True)
class RecipeGroup:
    """Recipes for the same data."""

    title: str
    recipes: tuple[TrainingRecipe, ...]


def recipe_groups(words: str = "") -> list[RecipeGroup]:
    """The packaged recipes whose name, description or published rows have words that begin with all of these."""
    recipes = [load_training_recipe(name) for name in recipe_names()]
    chosen = [recipe for recipe in recipes if all(_begins(word, _described(recipe)) for word in words.lower().split())]
    if not chosen:
        raise UsageError(f"no recipe is described by {words!r}", fix="use fewer words, such as f30k or sam")
    groups: dict[str, list[TrainingRecipe]] = {title: [] for title in TITLES.values()}
    for recipe in chosen:
        groups.setdefault(TITLES.get(recipe.name.partition("-")[0], "Others"), []).append(recipe)
    return [RecipeGroup(title, tuple(members)) for title, members in groups.items() if members]


def tables_of(recipe: TrainingRecipe) -> str:
    """The tables whose rows it repeats: ``FIVE Tables 2, 3``."""
    numbers: dict[str, list[str]] = {}
    for row in recipe.published:
        paper, _, rest = row.table.partition(" Table ")
        number = rest.partition(",")[0]
        if number not in numbers.setdefault(paper, []):
            numbers[paper].append(number)
    return "; ".join(
        f"{paper} {'Tables' if len(listed) > 1 else 'Table'} {', '.join(listed)}" for paper, listed in numbers.items()
    )


def _begins(word: str, text: str) -> bool:
    """Whether a word of the text begins like that: ``vse`` is in ``flickr8k-vse-sum``, not in ``cvse``."""
    return re.search(rf"(?<!\w){re.escape(word)}", text) is not None


def _described(recipe: TrainingRecipe) -> str:
    rows = (f"{row.table} {row.row}" for row in recipe.published)
    return " ".join([recipe.name, recipe.about, *rows]).lower()

"""Recipes: an evaluation written down, so that it can be read, repeated and changed.

A recipe is a TOML file. ``crosslens evaluate`` builds one from its flags, ``crosslens run`` reads one; both execute it
here, and every run folder keeps the one it came from.
"""

from __future__ import annotations

from crosslens.pipeline.recipe.execute import execute
from crosslens.pipeline.recipe.model import Encoding
from crosslens.pipeline.recipe.recipe import Recipe
from crosslens.pipeline.recipe.values import Inputs, Model, Options, Rerank

__all__ = ["Encoding", "Inputs", "Model", "Options", "Recipe", "Rerank", "execute"]

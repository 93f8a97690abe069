"""Recipes: an evaluation written down as TOML, so that it can be read, repeated and changed."""

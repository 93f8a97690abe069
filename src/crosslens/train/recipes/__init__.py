"""Recipes that come with crosslens, one TOML file each."""

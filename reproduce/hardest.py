"""The hardest pairs of a panel, and what is to be seen in them (``hardest_pairs.toml``)."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from crosslens.core.rendering import Grid
from pages import markdown
from panel_levels import SEED, Study

NOTES = Path(__file__).resolve().parent / "hardest_pairs.toml"
LOOKED_AT, COMPARED = 30, 18
KINDS = ("right", "right, another aspect", "interpretation", "says little", "misspelt", "partly wrong", "wrong",
         "not looked at")  # fmt: skip


def hardest(study: Study) -> pl.DataFrame:
    """The pairs furthest below the thresholds of all members with a vote."""
    return study.difficulty.hardest(LOOKED_AT)


def others(study: Study) -> list[str]:
    """Captions that are not hard, drawn with a seed: how often are those wrong?"""
    table = study.difficulty.table.filter(pl.col("difficulty") != "hard")
    rows = np.random.default_rng(SEED).choice(table.height, COMPARED, replace=False)
    return [table["caption"][int(row)] for row in rows]


def notes() -> dict[str, dict[str, str]]:
    """Caption → what it is."""
    return tomllib.loads(NOTES.read_text(encoding="utf-8")) if NOTES.exists() else {}


def count_kinds(captions: Sequence[str]) -> dict[str, int]:
    """How many of these captions are of each kind."""
    seen = notes()
    counts = Counter(seen.get(caption, {}).get("kind", KINDS[-1]) for caption in captions)
    return {kind: counts[kind] for kind in KINDS if counts[kind]}


def kinds_table(studies: Sequence[Study]) -> str:
    """How many of the hardest pairs are of each kind, and of pairs that are not hard."""
    looked_at = {}
    for study in studies:
        looked_at[f"{study.name}, hardest {LOOKED_AT}"] = hardest(study)["caption"].to_list()
        looked_at[f"{study.name}, {COMPARED} not hard"] = others(study)
    counts = [count_kinds(captions) for captions in looked_at.values()]
    rows = [(kind, *(str(own.get(kind, 0)) for own in counts)) for kind in KINDS if any(kind in own for own in counts)]
    return markdown(Grid(("what the caption is", *looked_at), tuple(rows), "l" + "r" * len(counts)))

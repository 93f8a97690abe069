"""The parts of a robustness report that look at words and captions, and at several seeds."""

from __future__ import annotations

import textwrap
from typing import Any

import polars as pl

from crosslens.core import PAGE_WIDTH, Grid
from crosslens.metrics import format_figure
from crosslens.pipeline import POOLED, Robustness
from crosslens.report.text.runs import difference_cells

MIN_CAPTIONS = 10
"""Fewer edited captions than this say nothing about a part of speech."""
_SHOWN, _WORST = 3, 2
PARTS_OF_SPEECH = {
    "NOUN": "noun", "PROPN": "proper noun", "VERB": "verb", "ADJ": "adjective", "ADV": "adverb", "ADP": "preposition",
    "DET": "determiner", "NUM": "number", "PRON": "pronoun", "AUX": "auxiliary", "CCONJ": "conjunction",
    "SCONJ": "subordinator", "PART": "particle", "PUNCT": "punctuation", "INTJ": "interjection", "SYM": "symbol",
    "X": "other", "SPACE": "space",
}  # fmt: skip


def word_grids(study: Robustness) -> list[tuple[str, Grid]]:
    """Per model, what typos cost by the part of speech they fall on; without typos, every perturbation of words."""
    words = study.words.filter(pl.col("captions") >= MIN_CAPTIONS)
    pooled = words.filter(pl.col("perturbation") == POOLED)
    chosen = pooled if pooled.height else words
    grids = []
    for model in study.models:
        rows = chosen.filter(pl.col("model") == model).sort("change").to_dicts()
        if not rows:
            continue
        costs = difference_cells(("Rsum", row["change"], row["low"], row["high"]) for row in rows)
        lines = tuple(
            (_part(row, pooled.height > 0), f"{row['captions']:,}", cost, f"{100 * row['decreased']:.1f}%")
            for row, cost in zip(rows, costs, strict=True)
        )
        title = "a typo in a" if pooled.height else "an edit of a"
        grids.append((model, Grid((title, "captions", "change", "decreased"), lines, "lrlr")))
    return grids


def _part(row: dict[str, Any], pooled: bool) -> str:
    part = PARTS_OF_SPEECH.get(row["part_of_speech"], row["part_of_speech"])
    return part if pooled else f"{part} ({row['perturbation']})"


def brittle_lines(study: Robustness) -> list[str]:
    """The most brittle captions of each model: what they say, and the perturbations that hurt most."""
    lines: list[str] = []
    for model in study.models:
        own = study.brittle.filter((pl.col("model") == model) & (pl.col("place") <= _SHOWN))
        if not own.height:
            continue
        lines += ([""] if lines else []) + [model]
        for position in own["place"].unique(maintain_order=True):
            rows = own.filter(pl.col("place") == position).sort(
                "rank_after", descending=True, nulls_last=False, maintain_order=True
            )
            lines += _one_caption(rows.to_dicts())
    return lines


def _one_caption(rows: list[dict[str, Any]]) -> list[str]:
    first = rows[0]
    before = f"rank {_rank(first['rank_before'])}, mean drop {first['mean_drop']:.2f} of 3"
    lines = [f"{first['place']}. {first['query']}: {before}", *_wrapped(first["original"] or "", "   ")]
    for row in rows[:_WORST]:
        lines.append(f"   {row['perturbation']}: rank {_rank(row['rank_before'])} → {_rank(row['rank_after'])}")
        if row["text"] and row["text"] != row["original"]:
            lines += _wrapped(row["text"], "     ")
    return lines


def _rank(rank: float | None) -> str:
    return "beyond the list" if rank is None else f"{rank:,.0f}"


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, PAGE_WIDTH, initial_indent=indent, subsequent_indent=indent) if text else []


def spread_grids(study: Robustness) -> list[tuple[str, Grid]]:
    """With several seeds: how much the drop depends on chance."""
    rows = study.spread.filter(pl.col("metric") == study.headline)
    grids = []
    for model in study.models:
        own = rows.filter(pl.col("model") == model).to_dicts()
        if own:
            lines = tuple(
                (row["perturbation"], *(format_figure(study.headline, row[key], signed=key != "deviation")
                                        for key in ("mean", "deviation", "lowest", "highest")))
                for row in own
            )  # fmt: skip
            header = ("perturbation", "mean drop", "deviation", "lowest", "highest")
            grids.append((f"{model}, {own[0]['seeds']} seeds", Grid(header, lines, "lrrrr")))
    return grids

"""Chosen images and their descriptions as ordinary datasets: v0, v1 and v2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from crosslens.build.candidates import Candidates
from crosslens.build.selection import Member
from crosslens.core.dataset import Card, Dataset
from crosslens.data.inside import MARK

NOTES = {
    "v0": "originals, whose descriptions neither fit too many images nor give theirs away",
    "v1": "v0, and for {which} a confusable image with descriptions changed as little as possible, or its own",
    "v2": "v1, and similar images without descriptions; for text to image only",
}
_CAPTIONS = {"caption": pl.String, "image": pl.String, "text": pl.String, "origin": pl.String, "dis": pl.Float64}


def version(name: str, candidates: Candidates, members: Sequence[Member], key: str) -> Dataset:
    """The dataset of these images, in this order; its images say what they are there for in ``role``."""
    ids = candidates.ids
    chosen = candidates.views.dataset.select(ids[one.image] for one in members)
    images = chosen.images.with_columns(
        pl.Series("task", [one.task for one in members], dtype=pl.String),
        pl.Series("source", [candidates.sources[one.image] for one in members], dtype=pl.String),
        pl.Series("role", [one.role for one in members], dtype=pl.String),
        pl.Series("original", [None if one.of is None else ids[one.of] for one in members], dtype=pl.String),
    )
    files = candidates.views.files
    if files is not None:
        places = [_absolute(files[one.image]) for one in members]
        images = images.with_columns(pl.Series("file", places, dtype=pl.String))
    rows = [
        (text.caption, ids[one.image], text.text, text.origin, round(text.dis, 6))
        for one in members
        for text in one.descriptions
    ]
    captions = pl.DataFrame(rows, schema=_CAPTIONS, orient="row")
    # Candidates keep what else was known of them, such as a style; of a new description nothing is.
    free = chosen.captions.drop("text", "image", "origin", "dis", strict=False)
    captions = captions.join(free, on="caption", how="left", maintain_order="left")
    old = candidates.views.dataset
    card = Card(
        source=f"built by crosslens build recos from {old.name}" + (f" ({old.card.source})" if old.card.source else ""),
        revision=f"{name}, build {key[:12]}",
        licence=old.card.licence,
        citation=old.card.citation,
        notes=NOTES[name].format(which=_which(members)),
    )
    return Dataset(f"recos-{name}", images, captions, chosen.objects, chosen.relations, card)


def _which(members: Sequence[Member]) -> str:
    """For how many originals there is a confusable image."""
    roles = Counter(one.role for one in members)
    if roles["confusable"] == roles["original"]:
        return "each original"
    return f"{roles['confusable']:,} of {roles['original']:,} originals"


def _absolute(file: str) -> str:
    archive, mark, member = file.partition(MARK)
    return f"{Path(archive).expanduser().resolve()}{mark}{member}"

"""What a person reads beside a benchmark: what it is, how it came about, what lay outside the band."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from crosslens.analyze import Discriminability, band, histogram
from crosslens.build.benchmark import Recos
from crosslens.build.descriptions import KEPT, PURPOSE
from crosslens.build.log import DecisionLog
from crosslens.build.settings import RecosSettings
from crosslens.core.dataset import Dataset


def verdicts(log: DecisionLog) -> dict[str, int]:
    """How many candidate descriptions lie in the band, above it and below it."""
    counts = {"kept": 0, "too vague": 0, "too sharp": 0}
    for entry in log.of("check"):
        counts[entry["verdict"]] += 1
    return counts


def regeneration_list(recos: Recos) -> pl.DataFrame:
    """Every candidate description outside the band, and what is wanted instead of it."""
    rows = [
        (one["caption"], one["image"], one["dis"], one["verdict"], PURPOSE[one["verdict"]])
        for one in recos.log.of("check")
        if one["verdict"] != KEPT
    ]
    names = ("caption", "image", "dis", "verdict", "wanted")
    kinds = {name: pl.Float64 if name == "dis" else pl.String for name in names}
    return pl.DataFrame(rows, schema=kinds, orient="row")


def check_summary(check: Discriminability, settings: RecosSettings, log: DecisionLog) -> str:
    """The histogram of dis with the band, and how many descriptions lie where."""
    low, high = band(settings.k, settings.eta)
    counts = verdicts(log)
    total = max(sum(counts.values()), 1)
    shares = ", ".join(f"{count:,} {name} ({count / total:.0%})" for name, count in counts.items())
    return (
        f"dis(t) of {len(check.values):,} descriptions; k = {settings.k}, temperature "
        f"{check.temperature:.4g}, band {low:.2f} to {high:.2f} (·)\n"
        f"{histogram(check.values, settings.k, settings.eta)}\n  {shares}"
    )


def version_page(name: str, dataset: Dataset) -> str:
    """The card of one version as a page."""
    card = dataset.card
    about = [("Source", card.source), ("Revision", card.revision), ("Licence", card.licence or "not stated")]
    about += [("Citation", card.citation)] if card.citation else []
    facts = "\n".join(f"- {what}: {value}" for what, value in about)
    return f"""# {dataset.name}

{card.notes[:1].upper()}{card.notes[1:]}.

{dataset.images.height:,} images, {dataset.captions.height:,} descriptions.

{facts}

Columns of the images: `task`, `source`, `role` (original, confusable, similar), `original` (which it was chosen for).
Columns of the captions: `origin` (candidate, or the generator that wrote it), `dis`.
"""


def build_page(recos: Recos, versions: Mapping[str, Dataset], *, copied: bool) -> str:
    """The front page of the folder."""
    head = recos.log.head
    rows = "\n".join(
        f"| `{name}/` | {one.images.height:,} | {one.captions.height:,} | {one.card.notes} |"
        for name, one in versions.items()
    )
    where = (
        "Image files are in `images/`."
        if copied
        else "Image files stay where they are; `file` in the tables is their full path."
    )
    encoder = head["encoders"]["encoder"]["name"]
    generator = head["generator"]["name"] if head["generator"] else "none"
    notes = "\n".join(f"- {one}" for one in recos.notes) or "- none"
    return f"""# A RECOS benchmark from {head["candidates"]["name"]}

| folder | images | descriptions | |
|---|---|---|---|
{rows}

Encoder: {encoder}. Generator: {generator}. Seed: {recos.settings.seed}. Build: {head["key"][:12]}. {where}

- `decisions.jsonl`: every decision with its number; `crosslens build recos --repeat` does the same again
- `regenerate.csv`: the candidates' descriptions outside the band

## The candidates' descriptions

```
{check_summary(recos.check, recos.settings, recos.log)}
```

## Notes

{notes}
"""

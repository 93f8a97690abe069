"""What the captions are like: how fine-grained, and how diverse for similar images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from crosslens.core import Chart, Figure, Grid, Lines
from crosslens.metrics import format_count
from crosslens.report.document.context import ReportContext
from crosslens.report.document.parts import Content, ReportSection, series_of, side_by_side, stored_figure, table_of
from crosslens.report.forms.page import paragraph


def captions(context: ReportContext) -> ReportSection | None:
    """Granularity as a table, polysemy as curves."""
    parts: list[Content] = []
    described: dict[str, Mapping[str, Any]] = {}
    for result in context.inputs.stage("granularity"):
        described |= {dataset["name"]: dataset for dataset in result.payload["datasets"]}
    if described:
        parts += _granularity(described)
    charts = [chart for result in context.inputs.stage("polysemy") for chart in _polysemy(result.payload, result.model)]
    if charts:
        parts.append(paragraph(
            "Polysemy: how similar the nearest images of an image are, and how far the captions of those images are "
            "from it. Similar images with distant captions can be described in several ways."
        ))  # fmt: skip
        parts.append(side_by_side(charts))
    return ReportSection("granularity", "Granularity of the captions", tuple(parts)) if parts else None


def _granularity(datasets: Mapping[str, Mapping[str, Any]]) -> list[Content]:
    features = list(dict.fromkeys(name for dataset in datasets.values() for name in dataset["features"]))
    rows = tuple(
        (name.replace("_", " "), *(_words(dataset["features"].get(name)) for dataset in datasets.values()))
        for name in features
    )
    sizes = "; ".join(
        f"{name}: {format_count(dataset['captions'], 'caption')} of {format_count(dataset['images'], 'image')}"
        for name, dataset in datasets.items()
    )
    grid = Grid(("per caption", *datasets), rows, "l" + "r" * len(datasets))
    return [paragraph(f"Means per caption with intervals over images. {sizes}."), table_of("Granularity", grid)]


def _words(feature: Mapping[str, Any] | None) -> str:
    return str(stored_figure(feature, Figure(None)))


def _polysemy(payload: Mapping[str, Any], model: str) -> Iterator[Chart]:
    for dataset in payload["datasets"]:
        across = [entry["R"] for entry in dataset["curves"]]
        series = {
            name.replace("_", " "): [stored_figure(entry[name], Figure(None)) for entry in dataset["curves"]]
            for name in ("image_similarity", "caption_distance")
        }
        if len(across) > 1:
            by = f", by {model}" if model else ""
            yield Lines(
                title=f"Neighbours of images of {dataset['name']}{by}", across=tuple(across),
                series=series_of(series), axis="R nearest images",
            )  # fmt: skip

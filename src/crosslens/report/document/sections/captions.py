"""What the captions are like: how fine-grained, and how diverse for similar images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from crosslens.core import Grid
from crosslens.metrics import format_count
from crosslens.report.charts.drawing import Point
from crosslens.report.charts.lines import line_chart
from crosslens.report.document.context import ReportContext
from crosslens.report.document.parts import Section, TableHtml, paragraph, side_by_side, stored_point


def captions(context: ReportContext) -> Section | None:
    """Granularity as a table, polysemy as curves."""
    parts: list[str] = []
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
    return Section("granularity", "Granularity of the captions", tuple(parts)) if parts else None


def _granularity(datasets: Mapping[str, Mapping[str, Any]]) -> list[str]:
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
    return [paragraph(f"Means per caption with intervals over images. {sizes}."), TableHtml("Granularity", grid)]


def _words(feature: Mapping[str, Any] | None) -> str:
    return stored_point(feature or {}).words(lambda value: f"{value:.2f}")


def _polysemy(payload: Mapping[str, Any], model: str) -> Iterator[str]:
    for dataset in payload["datasets"]:
        across = [entry["R"] for entry in dataset["curves"]]
        series: dict[str, list[Point]] = {
            name.replace("_", " "): [stored_point(entry[name]) for entry in dataset["curves"]]
            for name in ("image_similarity", "caption_distance")
        }
        if len(across) > 1:
            by = f", by {model}" if model else ""
            yield line_chart(
                f"Neighbours of images of {dataset['name']}{by}", across, series, axis="R nearest images",
                number=lambda value: f"{value:.2f}",
            )  # fmt: skip

"""What curves over the size of the gallery hold: figures by size, and runs whose order depends on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from crosslens.core import Presented, Section, json_form
from crosslens.pipeline.curves.sections import gallery_sections


@dataclass(frozen=True)
class GalleryPoint:
    """A figure at one size, with its interval over images; ``extrapolated`` beyond the run's own gallery."""

    size: int
    mean: float
    low: float
    high: float
    extrapolated: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The JSON form; null where there is no interval."""
        return {name: json_form(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class Lead:
    """Where a run is ahead of another by most, and whether that is chance."""

    leader: str
    size: int
    difference: float
    p_value: float | None = None
    adjusted_p: float | None = None


@dataclass(frozen=True)
class OrderChange:
    """Two runs whose order depends on the gallery: who leads where, and the sizes at which that changes."""

    metric: str
    runs: tuple[str, str]
    changes_at: tuple[int, ...]
    leads: tuple[Lead, ...]

    @property
    def tested(self) -> bool:
        """Whether there are p-values: not for medians, nor where the runs have different queries."""
        return all(lead.adjusted_p is not None for lead in self.leads)

    def significant(self, alpha: float = 0.05) -> bool:
        """Whether every lead is more than chance."""
        return self.tested and all((lead.adjusted_p or 0.0) < alpha for lead in self.leads)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "metric": self.metric,
            "runs": list(self.runs),
            "changes_at": list(self.changes_at),
            "leads": [{name: json_form(value) for name, value in vars(lead).items()} for lead in self.leads],
            "significant": self.significant() if self.tested else None,
        }


@dataclass(frozen=True)
class GalleryCurves(Presented):
    """``points[run][metric]`` are the figures by size; ``galleries[run][direction]`` is how many items were ranked."""

    sizes: tuple[int, ...]
    points: Mapping[str, Mapping[str, tuple[GalleryPoint, ...]]]
    galleries: Mapping[str, Mapping[str, int]]
    order_changes: tuple[OrderChange, ...]
    level: float
    correction: str
    notes: tuple[str, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics, in the order asked for."""
        return tuple(next(iter(self.points.values())))

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "Metrics against the size of the gallery"

    def sections(self, **options: Any) -> Iterator[Section]:
        """Lines and a table per metric, then which runs change places."""
        return gallery_sections(self)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: fractions, never percent."""
        return {
            "over": "gallery",
            "sizes": list(self.sizes),
            "galleries": {run: dict(sizes) for run, sizes in self.galleries.items()},
            "runs": {
                run: {metric: [point.as_dict() for point in points] for metric, points in own.items()}
                for run, own in self.points.items()
            },
            "order_changes": [change.as_dict() for change in self.order_changes],
            "level": self.level,
            "correction": self.correction,
            "notes": list(self.notes),
        }

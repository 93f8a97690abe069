"""Ranking in, one value per query out: classic and graded retrieval metrics, each defined once and named apart."""

# Importing them enrols their metrics.
from crosslens.metrics import gain, position, precision, recall, semantic, total  # noqa: F401
from crosslens.metrics.compute import Observations, compute, compute_across, observations, places_of
from crosslens.metrics.family import METRICS, Family, Option, family_of, metric
from crosslens.metrics.gains import Gains
from crosslens.metrics.graded import Graded
from crosslens.metrics.measure import measure
from crosslens.metrics.places import Places
from crosslens.metrics.request import DEFAULT_METRICS, MetricRequest, parse_metric, parse_metrics
from crosslens.metrics.spec import MetricSpec
from crosslens.metrics.ties import TIES, Ties

__all__ = [
    "DEFAULT_METRICS",
    "METRICS",
    "TIES",
    "Family",
    "Gains",
    "Graded",
    "MetricRequest",
    "MetricSpec",
    "Observations",
    "Option",
    "Places",
    "Ties",
    "compute",
    "compute_across",
    "family_of",
    "measure",
    "metric",
    "observations",
    "parse_metric",
    "parse_metrics",
    "places_of",
]

"""crosslens: how good is an image–text retrieval system, really?

Names are imported when first used, so that ``import crosslens`` stays fast and never loads an optional package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crosslens.analyze.agreement import agreement
    from crosslens.analyze.missing_positives import missing_positives
    from crosslens.core.dataset import Card, Dataset
    from crosslens.core.embeddings import Embeddings
    from crosslens.core.errors import CrosslensError, InputError
    from crosslens.core.lists import RankedLists
    from crosslens.core.metric_values import MetricValues
    from crosslens.core.ranking import Ranking
    from crosslens.core.relevance import Relevance
    from crosslens.core.run import Run
    from crosslens.data import (
        describe,
        load_dataset,
        read_judgements,
        read_qrels,
        read_run,
        write_dataset,
        write_qrels,
        write_run,
    )
    from crosslens.metrics import METRICS, metric, parse_metrics
    from crosslens.pipeline.compare import Comparison, compare
    from crosslens.pipeline.evaluate import evaluate
    from crosslens.rank import rank_both
    from crosslens.report.groups import by
    from crosslens.similarity import relevance_matrix, relevance_pairs

__version__ = "0.1.0"

_HOMES = {
    "agreement": "analyze.agreement",
    "missing_positives": "analyze.missing_positives",
    "Card": "core.dataset",
    "Dataset": "core.dataset",
    "Embeddings": "core.embeddings",
    "CrosslensError": "core.errors",
    "InputError": "core.errors",
    "RankedLists": "core.lists",
    "MetricValues": "core.metric_values",
    "Ranking": "core.ranking",
    "Relevance": "core.relevance",
    "Run": "core.run",
    "describe": "data",
    "load_dataset": "data",
    "read_judgements": "data",
    "read_qrels": "data",
    "read_run": "data",
    "write_dataset": "data",
    "write_qrels": "data",
    "write_run": "data",
    "METRICS": "metrics",
    "metric": "metrics",
    "parse_metrics": "metrics",
    "Comparison": "pipeline.compare",
    "compare": "pipeline.compare",
    "evaluate": "pipeline.evaluate",
    "rank_both": "rank",
    "by": "report.groups",
    "relevance_matrix": "similarity",
    "relevance_pairs": "similarity",
}

__all__ = [
    "METRICS",
    "Card",
    "Comparison",
    "CrosslensError",
    "Dataset",
    "Embeddings",
    "InputError",
    "MetricValues",
    "RankedLists",
    "Ranking",
    "Relevance",
    "Run",
    "agreement",
    "by",
    "compare",
    "describe",
    "evaluate",
    "load_dataset",
    "metric",
    "missing_positives",
    "parse_metrics",
    "rank_both",
    "read_judgements",
    "read_qrels",
    "read_run",
    "relevance_matrix",
    "relevance_pairs",
    "write_dataset",
    "write_qrels",
    "write_run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'crosslens' has no attribute {name!r}")
    value = getattr(import_module(f"crosslens.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""crosslens: how good is an image–text retrieval system, really?

Names are imported when first used, so that ``import crosslens`` stays fast and never loads an optional package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crosslens.analyze.agreement import agreement
    from crosslens.analyze.granularity import granularity
    from crosslens.analyze.label_quality import label_quality
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
    from crosslens.explain import explain
    from crosslens.explain.concepts.metrics import concept_metrics
    from crosslens.explain.counterfactuals.counterfactual import counterfactual, counterfactuals
    from crosslens.metrics import METRICS, metric, parse_metrics
    from crosslens.perturb import perturb
    from crosslens.pipeline.caption_sets import compare_caption_sets
    from crosslens.pipeline.compare import Comparison, compare
    from crosslens.pipeline.evaluate import evaluate
    from crosslens.pipeline.hard_negatives import hard_negatives
    from crosslens.pipeline.robustness import Robustness, robustness
    from crosslens.rank import rank_both
    from crosslens.report.groups import by
    from crosslens.similarity import relevance_matrix, relevance_pairs

__version__ = "0.1.0"

_HOMES = {
    "agreement": "analyze.agreement",
    "granularity": "analyze.granularity",
    "label_quality": "analyze.label_quality",
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
    "explain": "",
    "concept_metrics": "explain.concepts.metrics",
    "counterfactual": "explain.counterfactuals.counterfactual",
    "counterfactuals": "explain.counterfactuals.counterfactual",
    "METRICS": "metrics",
    "metric": "metrics",
    "parse_metrics": "metrics",
    "perturb": "",
    "compare_caption_sets": "pipeline.caption_sets",
    "Comparison": "pipeline.compare",
    "compare": "pipeline.compare",
    "evaluate": "pipeline.evaluate",
    "Robustness": "pipeline.robustness",
    "robustness": "pipeline.robustness",
    "hard_negatives": "pipeline.hard_negatives",
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
    "Robustness",
    "Run",
    "agreement",
    "by",
    "compare",
    "compare_caption_sets",
    "concept_metrics",
    "counterfactual",
    "counterfactuals",
    "describe",
    "evaluate",
    "explain",
    "granularity",
    "hard_negatives",
    "label_quality",
    "load_dataset",
    "metric",
    "missing_positives",
    "parse_metrics",
    "perturb",
    "rank_both",
    "read_judgements",
    "read_qrels",
    "read_run",
    "relevance_matrix",
    "relevance_pairs",
    "robustness",
    "write_dataset",
    "write_qrels",
    "write_run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'crosslens' has no attribute {name!r}")
    home = _HOMES[name]
    # A room that is called like its main verb is itself what the name stands for (core/rooms.py).
    value = getattr(import_module(f"crosslens.{home}"), name) if home else import_module(f"crosslens.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

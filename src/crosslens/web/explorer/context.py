"""What pages and the JSON interface of the explorer share."""

from __future__ import annotations

from crosslens.web.explorer.dataset_views import DatasetPages
from crosslens.web.explorer.explained import Explanations
from crosslens.web.explorer.leaderboard import compare_two, leaderboard, run_row
from crosslens.web.explorer.likely_positives import LikelyPositiveSearch
from crosslens.web.explorer.models import ComparisonView, PerturbationList, RunList, RunRow
from crosslens.web.explorer.perturbed import perturbations_of
from crosslens.web.explorer.tables import QueryTables
from crosslens.web.kept import Kept
from crosslens.web.services import Services

_COMPARISONS = 32


class ExplorerContext:
    """The services, and the results that are kept."""

    def __init__(self, services: Services) -> None:
        self.services, self.library = services, services.library
        self.tables = QueryTables(services)
        self.explanations = Explanations(self.tables)
        self.likely_positives = LikelyPositiveSearch(self.tables)
        self.datasets = DatasetPages(self.tables)
        self._comparisons: Kept[ComparisonView] = Kept(_COMPARISONS)

    def leaderboard(self, *, dataset: str, name: str, metric: str, sort: str, descending: bool) -> RunList:
        """The runs that match."""
        return leaderboard(
            self.library.runs(), dataset=dataset, name=name, metric=metric, sort=sort, descending=descending
        )

    def run_row(self, run: str) -> RunRow:
        """A run with its metrics."""
        return run_row(self.library.summary(run))

    def comparison(self, baseline: str, other: str, metric: str = "") -> ComparisonView:
        """Two runs, tested against each other."""
        first, second = self.library.summary(baseline), self.library.summary(other)
        runs = self.library.run(baseline), self.library.run(other)
        key = (baseline, first.signature, other, second.signature, metric)
        return self._comparisons.get(key, lambda: compare_two(first, second, runs, metric))

    def perturbations(self, run: str, direction: str | None, query: str) -> PerturbationList:
        """What perturbations do to a query."""
        return perturbations_of(self.tables, run, direction, query)

"""The tables behind the pages, made when first looked at and kept while they are in use."""

from __future__ import annotations

from crosslens.core import CrosslensError, Dataset, Run
from crosslens.web.explorer.query_table import QueryTable
from crosslens.web.explorer.retrieval import Retrieval, direction_of
from crosslens.web.kept import Kept
from crosslens.web.services import Services

_TABLES = 16


class QueryTables:
    """Queries of runs by run and direction."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._tables: Kept[QueryTable] = Kept(_TABLES)

    def run(self, run: str) -> Run:
        """A run by its id."""
        return self.services.library.run(run)

    def dataset_if_known(self, run: str) -> tuple[Dataset | None, str | None]:
        """The dataset of a run, or why it cannot be read."""
        try:
            return self.services.library.dataset_of(run), None
        except (CrosslensError, OSError) as error:
            return None, error.problem if isinstance(error, CrosslensError) else "the dataset cannot be read"

    def table(self, run: str, direction: str | None) -> QueryTable:
        """The queries of a direction of a run."""
        opened = self.run(run)
        chosen = direction_of(opened, direction)
        signature = self.services.library.summary(run).signature

        def make() -> QueryTable:
            return QueryTable(Retrieval(opened, chosen, self.dataset_if_known(run)[0]))

        return self._tables.get((run, signature, chosen), make)

    def has_picture(self, run_or_dataset: str, image: str | None) -> bool:
        """Whether there is a file for an image of a dataset."""
        return image is not None and bool(run_or_dataset) and self.services.pictures.exists(run_or_dataset, image)

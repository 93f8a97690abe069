"""A result that is shown by its sections, and the registries of forms and of how results are shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosslens.core.errors import UsageError
from crosslens.core.parts.sections import Section
from crosslens.core.registry import Registry

if TYPE_CHECKING:
    import polars as pl

    from crosslens.core.findings import Observation

PICTURES = (".svg", ".png", ".pdf")
ENDINGS = (".html", *PICTURES, ".csv", ".tex", ".md", ".json", ".txt")
"""Of the files that a result can be written to."""

FORMS: Registry[Callable[..., Any]] = Registry("form", "forms", ("crosslens.report.forms",))
"""Name of a form → a function that turns sections into it: ``terminal``, ``html``, ``chart``, ``content``, ``file``."""


SECTIONS: Registry[Callable[..., Iterable[Section]]] = Registry(
    "result", "sections", ("crosslens.pipeline.evaluations.sections",)
)
"""Class name → how it is shown, for results of this package, whose figures only others can read."""


class Presented(ABC):
    """A result that is shown by its sections: printed, in a notebook, and in files of every form."""

    def sections(self) -> Iterable[Section]:
        """What is shown, in order."""
        return SECTIONS[type(self).__name__].value(self)

    def findings(self) -> Iterable[Observation]:
        """What was looked at and what was seen, for the kinds of findings that the result is about."""
        return ()

    @property
    @abstractmethod
    def title(self) -> str:
        """The heading of a page that shows the result alone."""

    @abstractmethod
    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""

    def text(self, width: int | None = None, *, colour: bool = False) -> str:
        """As a terminal shows it; ``width``: the most columns tables may take, or None for as many as they need."""
        text: str = FORMS["terminal"].value(self.sections(), width, colour=colour)
        return text

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        html: str = FORMS["html"].value(self.sections())
        return html

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """In IPython, and wherever a notebook is shown without HTML."""
        printer.text(str(self))

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        # Of the nearest class that has either, IPython takes this or __repr__: a dataclass has one of its own.
        cls._repr_pretty_ = Presented._repr_pretty_  # type: ignore[method-assign]

    @cached_property
    def table(self) -> pl.DataFrame:
        """The first table, its values unrounded. A dataclass may have a field of this name: ``table: … = field()``."""
        return next(table for section in self.sections() for table in section.tables).frame

    def to_pandas(self) -> Any:
        """The first table as a data frame of pandas."""
        return self.table.to_pandas()

    def chart(self, number: int = 0) -> Any:
        """A chart as a drawing: ``.svg`` is its markup, ``.save("x.png")`` writes it; notebooks show it."""
        charts = [chart for section in self.sections() for chart in section.charts]
        if not 0 <= number < len(charts):
            raise UsageError(f"chart {number} of a result with {len(charts)}", fix="charts are numbered from 0")
        return FORMS["chart"].value(charts[number])

    def content(self, ending: str) -> bytes:
        """The bytes of a file with this ending."""
        content_bytes: bytes = FORMS["content"].value(self, ending)
        return content_bytes

    def save(self, file: str | Path, *, overwrite: bool = False) -> Path:
        """Write the result; the ending decides: .html .svg .png .pdf .csv .tex .md .json .txt."""
        path: Path = FORMS["file"].value(self, file, overwrite=overwrite)
        return path

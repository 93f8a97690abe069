"""A report written to files: the page, and on request every chart and table by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from crosslens.core import Chart, Dataset, Run, UsageError, refuse_existing, write_text
from crosslens.pipeline import Audit
from crosslens.report.document.collect import Source, report_inputs
from crosslens.report.document.inputs import QUERIES, SIZE_BUDGET, ReportInputs
from crosslens.report.document.page import Report
from crosslens.report.document.parts import ReportSection
from crosslens.report.export.files import write_changed
from crosslens.report.forms.charts import draw
from crosslens.report.forms.drawing import drawn_file
from crosslens.report.forms.tables import BOOKTABS, latex_table

_MEGABYTE = 1_000_000
NO_PDF = "no .pdf: install crosslens[pictures]; the .svg files are complete"


@dataclass(frozen=True)
class WrittenReport:
    """What was written."""

    page: Path
    size: int
    sections: tuple[str, ...]
    pictures: int
    pictures_left_out: int
    figures: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "written": str(self.page),
            "bytes": self.size,
            "sections": list(self.sections),
            "pictures": self.pictures,
            "pictures_left_out": self.pictures_left_out,
            "figures": [str(file) for file in self.figures],
            "notes": list(self.notes),
        }


def write_report(
    sources: Source | Sequence[Source],
    output: str | Path,
    *,
    title: str | None = None,
    dataset: Dataset | str | Path | None = None,
    dataset_options: dict[str, Any] | None = None,
    image_folder: str | Path | None = None,
    size_budget: float = SIZE_BUDGET / _MEGABYTE,
    queries: int = QUERIES,
    figures: str | Path | None = None,
    overwrite: bool = False,
    command: str = "",
) -> WrittenReport:
    """Write the report on runs and audits (values or folders) as one page that needs no other file.

    ``dataset`` and ``image_folder`` are by default those of the runs' recipes. ``size_budget`` is the size of the page
    in MB: its pictures are made to fit. ``queries`` of each kind are shown. ``figures`` is a folder for every chart
    (.svg, and .pdf with crosslens[pictures]) and every table (.tex).
    """
    output = Path(output)
    if output.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{output} is not .html", fix="end the name in .html", option="output")
    refuse_existing(output, overwrite)
    several: Sequence[Source] = [sources] if isinstance(sources, Run | Audit | str | Path) else sources
    inputs = report_inputs(
        several, title=title, dataset=dataset, dataset_options=dataset_options, image_folder=image_folder,
        size=int(size_budget * _MEGABYTE), queries=queries, command=command,
    )  # fmt: skip
    return write_inputs(inputs, output, figures=figures, overwrite=overwrite)


def write_inputs(
    inputs: ReportInputs, output: str | Path, *, figures: str | Path | None = None, overwrite: bool = False
) -> WrittenReport:
    """The same from inputs that are ready."""
    report = Report(inputs)
    content = report.page.encode()
    write_text(Path(output), report.page)
    notes, drawn = list(report.notes), []
    if figures is not None:
        endings = [".svg", *([".pdf"] if find_spec("vl_convert") is not None else [])]
        notes += [] if ".pdf" in endings else [NO_PDF]
        drawn = write_changed(dict(_figure_files(report.sections, Path(figures), endings)), overwrite)
    return WrittenReport(
        Path(output), len(content), tuple(section.target for section in report.sections), report.pictures,
        report.pictures_wanted - report.pictures, tuple(sorted(drawn)), tuple(notes),
    )  # fmt: skip


def _figure_files(
    sections: Sequence[ReportSection], folder: Path, endings: Sequence[str]
) -> Iterator[tuple[Path, bytes]]:
    """Every chart and table under the name of its section and its title."""
    taken: set[str] = set()
    for section in sections:
        for part in section.figures():
            name = _file_name(f"{section.target}-{part.title}", taken)
            table = part.table if isinstance(part, Chart) else part
            yield folder / f"{name}.tex", f"{BOOKTABS}{latex_table(table)}".encode()
            if isinstance(part, Chart):
                yield from ((folder / f"{name}{ending}", drawn_file([draw(part)], ending)) for ending in endings)


def _file_name(title: str, taken: set[str]) -> str:
    """Letters, digits and dashes; a number behind a name that is taken."""
    plain = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:80].strip("-")
    name = next(
        name
        for number in range(1, len(taken) + 2)
        if (name := plain if number == 1 else f"{plain}-{number}") not in taken
    )
    taken.add(name)
    return name

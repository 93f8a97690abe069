"""The report as one page that needs no other file: its sections in order, a table of contents, pictures that fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from crosslens.core import Chart, Dataset, Run, UsageError, refuse_existing, write_text
from crosslens.metrics import format_count
from crosslens.pipeline import Audit
from crosslens.report.document.inputs import QUERIES, SIZE_BUDGET, ReportContext, ReportInputs, Source, report_inputs
from crosslens.report.document.queries import causes, queries, summary
from crosslens.report.document.sections import (
    ReportSection,
    captions,
    everything,
    gallery,
    graded,
    groups,
    labels,
    leaderboard,
    provenance,
    reading,
    recalls,
    reproduction,
    robustness,
    sensitivity,
    soundness,
)
from crosslens.report.export import write_changed
from crosslens.report.forms.charts import draw
from crosslens.report.forms.drawing import drawn_file
from crosslens.report.forms.page import html_page, part_html
from crosslens.report.forms.tables import BOOKTABS, latex_table
from crosslens.report.forms.theme import PAGE_STYLE, SCRIPT

SECTIONS: tuple[Callable[[ReportContext], ReportSection | None], ...] = (
    summary, soundness, leaderboard, recalls, graded, groups, reading, robustness, gallery, captions, causes, queries,
    labels, everything, sensitivity, provenance, reproduction,
)  # fmt: skip
"""In the order in which they are read; one without content is left out."""
_FROM_STAGES = (soundness, leaderboard, graded, groups, reading, robustness, captions, causes, labels, sensitivity)
"""Those that read results of stages."""
_SAFETY = 8_000
"""Bytes that are left free for the frame of the page, its title and notes."""
_MEGABYTE = 1_000_000
NO_PDF = "no .pdf: install crosslens[pictures]; the .svg files are complete"


class Report:
    """A report: its page, its sections, and what it could not show."""

    def __init__(self, inputs: ReportInputs) -> None:
        if not inputs.runs:
            raise UsageError("a report requires a run", fix="name at least one run folder or audit folder")
        context = ReportContext(inputs)
        built = []
        for build in SECTIONS:
            if build in _FROM_STAGES:  # a stored result that cannot be read costs that section, not the report
                built.append(context.read_stored(partial(build, context), f"the section “{build.__name__}”", None))
            else:
                built.append(build(context))
        self.sections = tuple(section for section in built if section is not None)
        self.page = _page(context, self.sections)
        self.notes = tuple(dict.fromkeys(context.notes))
        self.pictures = context.pictures.shown
        self.pictures_wanted = context.pictures.wanted


def _page(context: ReportContext, sections: Sequence[ReportSection]) -> str:
    inputs = context.inputs
    entries = "".join(f'<li><a href="#{section.target}">{escape(section.title)}</a></li>' for section in sections)
    contents = f'<nav class="contents" aria-label="Contents"><ol>{entries}</ol></nav>'
    blocks = []
    for section in sections:
        inside = "\n".join(part if isinstance(part, str) else part_html(part) for part in section.parts)
        heading = f'<h2 id="{section.target}-title">{escape(section.title)}</h2>'
        place = f'id="{section.target}" aria-labelledby="{section.target}-title"'
        blocks.append(f"<section {place}>\n{heading}\n{inside}\n</section>")
    body = "\n".join(blocks)
    frame = len((PAGE_STYLE + SCRIPT + contents).encode()) + _SAFETY
    text, store = context.pictures.fill(body, max(0, inputs.size - len(body.encode()) - frame))
    missing = context.pictures.wanted - context.pictures.shown
    if missing:
        context.notes.append(
            f"{missing:,} of {format_count(context.pictures.wanted, 'picture')} are left out: they cannot be read, or "
            f"the report would exceed {inputs.size / 1e6:g} MB."
        )
    notes = "".join(f'<p class="facts" role="note">{escape(note)}</p>' for note in dict.fromkeys(context.notes))
    runs = ", ".join(inputs.runs)
    skip = '<a class="skip" href="#content">Skip to the content</a>'
    head = (
        f'<header class="top"><div><h1>{escape(inputs.title)}</h1>'
        f'<p class="about">{format_count(len(inputs.runs), "run")}: {escape(runs)}</p></div>'
        f'<button class="theme" id="theme" type="button" hidden>Dark colours</button></header>'
    )
    footer = f"<footer>{notes}<p>This file needs no other file and no network.</p></footer>"
    content = f'<div id="content" tabindex="-1">\n{text}\n{footer}\n</div>'
    before = f'{skip}\n{store}\n{head}\n<div class="layout">\n{contents}'
    return html_page(inputs.title, content, script=SCRIPT, heading=False, before=before, after="</div>")


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
    report = Report(inputs)
    content = report.page.encode()
    write_text(output, report.page)
    notes, drawn = list(report.notes), []
    if figures is not None:
        endings = [".svg", *([".pdf"] if find_spec("vl_convert") is not None else [])]
        notes += [] if ".pdf" in endings else [NO_PDF]
        drawn = write_changed(dict(_figure_files(report.sections, Path(figures), endings)), overwrite)
    return WrittenReport(
        output, len(content), tuple(section.target for section in report.sections), report.pictures,
        report.pictures_wanted - report.pictures, tuple(sorted(drawn)), tuple(notes),
    )  # fmt: skip


def _figure_files(
    sections: Sequence[ReportSection], folder: Path, endings: Sequence[str]
) -> Iterator[tuple[Path, bytes]]:
    """Every chart and table under the name of its section and its title."""
    taken: set[str] = set()
    for section in sections:
        for part in section.figures():
            plain = re.sub(r"[^a-z0-9]+", "-", f"{section.target}-{part.title}".lower()).strip("-")[:80].strip("-")
            numbered = (plain, *(f"{plain}-{number}" for number in range(2, len(taken) + 2)))
            name = next(name for name in numbered if name not in taken)
            taken.add(name)
            table = part.table if isinstance(part, Chart) else part
            yield folder / f"{name}.tex", f"{BOOKTABS}{latex_table(table)}".encode()
            if isinstance(part, Chart):
                yield from ((folder / f"{name}{ending}", drawn_file([draw(part)], ending)) for ending in endings)

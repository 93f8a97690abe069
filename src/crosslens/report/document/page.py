"""The report as one page that needs no other file: the answer, its evidence, all numbers; every picture in it once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from crosslens.audits import Audit
from crosslens.core import Beside, Chart, Part, Row, Section, Table, Text, UsageError, flat
from crosslens.metrics import format_count
from crosslens.report.document.answer import headline, questions, strip
from crosslens.report.document.bars import failure_picture
from crosslens.report.document.context import ReportContext
from crosslens.report.document.queries import example, misses
from crosslens.report.document.sections import better, groups, labels, numbers, reading
from crosslens.report.export import write_changed
from crosslens.report.forms.charts import draw
from crosslens.report.forms.drawing import drawn_file
from crosslens.report.forms.page import html_page, part_html, pictured, section_html
from crosslens.report.forms.pictures import shared_pictures
from crosslens.report.forms.tables import BOOKTABS, latex_table
from crosslens.report.inputs import QUERIES, SIZE_BUDGET, ReportInputs, Source, report_inputs
from crosslens.storage import refuse_existing, write_text
from crosslens.values import Dataset, Run

_SAFETY = 8_000
"""Bytes that are left free for the frame of the page, its title and notes."""
_AROUND = 500
"""Bytes around a picture and its uses, about."""
_MEGABYTE = 1_000_000
_SCRIPT = "\n" + files("crosslens.report.document").joinpath("page.js").read_text(encoding="utf-8")
"""It switches between light and dark, facets narrow the cards, printing opens what is folded."""
NO_PDF = "no .pdf: install crosslens[pictures]; the .svg files are complete"


class Report:
    """A report: its page, its sections, and what it could not show."""

    def __init__(self, inputs: ReportInputs) -> None:
        if not inputs.runs:
            raise UsageError("a report requires a run", fix="name at least one run folder or audit folder")
        context = ReportContext(inputs)

        def built(name: str, build: Any, otherwise: Any = None) -> Any:
            """A stored result that cannot be read costs its section, not the report."""
            return context.read_stored(partial(build, context), f"the section “{name}”", otherwise)

        example_part = built("example", example)
        sections: list[Section | None] = [
            built("better", better), built("failures", failure_picture), built("groups", groups),
            built("reading", reading), built("labels", labels), built("misses", misses),
        ]  # fmt: skip
        opening = strip(context)
        sections.append(built("numbers", numbers))  # which lists the queries behind both
        below = [section for section in sections if section is not None and section.parts]
        targets = frozenset(section.target for section in below)
        parts: list[Part] = [] if opening is None else [opening]
        if example_part is not None:
            parts = [Beside((tuple(parts), (Text(("For example, asked for",), note=True), example_part)))]
        first = Section(headline(context), (*parts, questions(context, targets)), target="answer")
        self.sections = (first, *below)
        self._context = context
        self.page = _page(context, first, below)
        self.notes = tuple(dict.fromkeys(context.notes))

    @property
    def pictures(self) -> int:
        """How many pictures the page shows."""
        return self._context.pictures_shown

    @property
    def pictures_wanted(self) -> int:
        return self._context.pictures_wanted


def _page(context: ReportContext, first: Section, below: Sequence[Section]) -> str:
    """The sections around pictures that fit: the frame is written once without them to know how large it is."""
    inputs = context.inputs
    wanted: dict[str, bool] = {}  # files in the order of the page, and whether one is shown large
    for section in (first, *below):
        for file, large in pictured(section.parts):
            wanted[file] = wanted.get(file, False) or large
    context.pictures_wanted = len(wanted)
    room = inputs.size - len(_html(context, first, below, {}, "").encode()) - _AROUND * len(wanted) - _SAFETY
    drawn, store = shared_pictures(wanted, max(0, room))
    if (over := len(_html(context, first, below, drawn, store).encode()) - inputs.size) > 0:  # some are used often
        drawn, store = shared_pictures(wanted, max(0, room - over - _SAFETY))
    context.pictures_shown, missing = len(drawn), len(wanted) - len(drawn)
    if missing:
        context.notes.append(
            f"{missing:,} of {format_count(context.pictures_wanted, 'picture')} are left out: they cannot be read, or "
            f"the report would exceed {inputs.size / 1e6:g} MB."
        )
    return _html(context, first, below, drawn, store)


def _html(context: ReportContext, first: Section, below: Sequence[Section], drawn: Any, store: str) -> str:
    inputs, runs = context.inputs, context.inputs.runs
    models = ", ".join(dict.fromkeys(map(context.model, context.ordered)))
    asked = max((run[metric].n for run in runs.values() if (metric := context.headline(run))), default=0)
    facts = [inputs.title, models if models not in inputs.title else "", format_count(asked, "query") if asked else ""]
    subtitle = " · ".join(filter(None, (*facts, inputs.date)))
    heading = f"<h1>{escape(first.title)}</h1>"
    opening, *others = first.parts
    if isinstance(opening, Beside):  # the sentence stands above its figures, the example beside both
        columns = ["".join(part_html(part, drawn) for part in column) for column in opening.columns]
        top = f'<div class="beside"><div>{heading}{columns[0]}</div><div>{columns[1]}</div></div>'
    else:
        top = heading + part_html(opening, drawn)
    top += "".join(part_html(part, drawn) for part in others)
    notes = "".join(f'<p class="facts" role="note">{escape(note)}</p>' for note in dict.fromkeys(context.notes))
    body = "\n".join(
        (
            '<a class="skip" href="#content">Skip to the content</a>',
            store,
            f'<header class="top"><p class="about">{escape(subtitle)}</p>'
            '<button class="theme" id="theme" type="button" hidden>Dark colours</button></header>',
            f'<div id="content" tabindex="-1"><div id="answer">{top}</div>',
            *(section_html(section, drawn) for section in below),
            f"<footer>{notes}<p>This file needs no other file and no network.</p></footer></div>",
        )
    )
    return html_page(inputs.title, body, script=_SCRIPT, heading=False)


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
    """Write the report on runs and audits as one page that needs no other file.

    Args:
        sources: Runs and audits, or their folders.
        output: The file of the page.
        title: By default made of the names of the runs.
        dataset: By default that of the runs' recipes.
        dataset_options: Those of the dataset's reader.
        image_folder: By default that of the runs' recipes.
        size_budget: The size of the page in MB; its pictures are made to fit, and below 2 MB its lists are shorter.
        queries: How many queries of each kind are shown.
        figures: A folder for every chart (.svg, and .pdf with crosslens[pictures]) and every table (.tex).
        overwrite: Replace an existing page.
        command: The command line, named on the page.
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


def _figure_files(sections: Sequence[Section], folder: Path, endings: Sequence[str]) -> Iterator[tuple[Path, bytes]]:
    """Every chart and table under the name of its section and its title."""
    taken: set[str] = set()
    for section in sections:
        parts = [inner for part in flat(section.parts) for inner in (part.charts if isinstance(part, Row) else (part,))]
        for part in parts:
            if not isinstance(part, Chart | Table):
                continue
            plain = re.sub(r"[^a-z0-9]+", "-", f"{section.target}-{part.title}".lower()).strip("-")[:80].strip("-")
            numbered = (plain, *(f"{plain}-{number}" for number in range(2, len(taken) + 2)))
            name = next(name for name in numbered if name not in taken)
            taken.add(name)
            table = part.table if isinstance(part, Chart) else part
            yield folder / f"{name}.tex", f"{BOOKTABS}{latex_table(table)}".encode()
            if isinstance(part, Chart):
                yield from ((folder / f"{name}{ending}", drawn_file([draw(part)], ending)) for ending in endings)

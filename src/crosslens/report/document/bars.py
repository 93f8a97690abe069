"""Bars that stages stored: of one run with the pictures and queries behind them, of other runs folded below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from crosslens.audits import StageResult
from crosslens.core import Folded, PairedBars, Part, QueryCards, Section
from crosslens.report.document.context import ReportContext
from crosslens.report.document.queries import PageQueries, shown_queries


def failure_picture(context: ReportContext) -> Section | None:
    """Near-twins where a run has any, else what it confuses."""
    twins = stored_bars(context, "twins")
    if twins:
        run = detailed_run(context, "twins")
        result = context.inputs.stage_of("twins", run)
        title = next(section.title for section in result.sections if section.charts) if result is not None else ""
        twins_finding = next(
            (finding for finding in context.findings if finding.kind == "twins" and finding.model in ("", run)), None
        )
        sure = ("", "") if twins_finding is None else (twins_finding.certainty, twins_finding.reason)
        return Section(of_model(context, run, title), tuple(twins), "", *sure, "twins")
    match stored_bars(context, "explain"):
        case [Folded() as confusions, *others]:
            title = of_model(context, detailed_run(context, "explain"), confusions.title)
            return Section(title, (*confusions.parts, *others), target="confusions")
    return None


def of_model(context: ReportContext, run: str, title: str) -> str:
    """A title that says which of several models it is about."""
    if context.shape not in ("models", "grid") or run not in context.inputs.runs:
        return title
    return f"{context.short(run)}: {title[:1].lower()}{title[1:]}"


def detailed_run(context: ReportContext, stage: str) -> str:
    """The run whose bars open: the one whose misses have cards, if the stage has bars of it."""
    names = [result.model for result in context.inputs.stage(stage) if next(_bars(result), None) is not None]
    run = PageQueries.of_page(context).run.name
    return run if run in names or not names else names[0]


def stored_bars(context: ReportContext, stage: str) -> list[Part]:
    """The bars of one run; below, folded, those of the others without what is behind them."""
    of_runs = {result.model: list(_bars(result)) for result in context.inputs.stage(stage)
               if result.model in context.inputs.runs}  # fmt: skip
    of_runs = {name: bars for name, bars in of_runs.items() if bars}
    if not of_runs:
        return []
    context.placed.add(stage)
    first = detailed_run(context, stage)
    opened = [with_files(part, context.files(first)) for part in of_runs.pop(first)]
    PageQueries.of_page(context).shown |= set(shown_queries(opened))
    others = []
    for name, bars in of_runs.items():
        closed = tuple(_closed(with_files(part, context.files(name))) for part in bars)
        others.append(Folded(f"The same for {context.short(name)}", closed))
    if isinstance(opened[-1], Folded):
        return [*opened[:-1], replace(opened[-1], parts=(*opened[-1].parts, *others))]
    return [*opened, *others]


def _bars(result: StageResult) -> Iterator[Part]:
    """The stored bars, and what has them in a fold."""
    for part in (part for section in result.sections for part in section.parts):
        if has_bars(part):
            yield part


def has_bars(part: Part) -> bool:
    """Whether a part is bars, or a fold that has some in it."""
    return isinstance(part, PairedBars) or (isinstance(part, Folded) and any(map(has_bars, part.parts)))


def _closed(part: Part) -> Part:
    """Bars alone, in no fold: what is behind them is told of another run."""
    if isinstance(part, Folded):
        return replace(part, parts=tuple(map(_closed, part.parts)), open=True)
    if not isinstance(part, PairedBars):
        return part
    return replace(part, rows=tuple(replace(row, details=()) for row in part.rows))


def with_files(part: Part, files: Mapping[str, str]) -> Part:
    """Stored bars and cards name images by their ids: with the files of these."""
    if isinstance(part, QueryCards):
        return replace(part, files=files)
    if isinstance(part, Folded):
        return replace(part, parts=tuple(with_files(inner, files) for inner in part.parts))
    if isinstance(part, PairedBars):
        rows = (replace(row, details=tuple(with_files(detail, files) for detail in row.details)) for row in part.rows)
        return replace(part, files=files, rows=tuple(rows))
    return part

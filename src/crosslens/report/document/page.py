"""The report as a page: its sections in order, a table of contents, and the pictures that fit."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from crosslens.core import UsageError
from crosslens.metrics import format_count
from crosslens.report.charts.theme import CHART_STYLE, THEME_STYLE
from crosslens.report.document.context import ReportContext
from crosslens.report.document.inputs import ReportInputs
from crosslens.report.document.parts import ReportSection
from crosslens.report.document.sections.captions import captions
from crosslens.report.document.sections.causes import causes
from crosslens.report.document.sections.comparison import leaderboard
from crosslens.report.document.sections.figures import everything, graded, recalls
from crosslens.report.document.sections.gallery_size import gallery
from crosslens.report.document.sections.groups import groups
from crosslens.report.document.sections.labels import labels
from crosslens.report.document.sections.origins import provenance, reproduction
from crosslens.report.document.sections.queries import queries
from crosslens.report.document.sections.robustness import robustness
from crosslens.report.document.sections.summary import summary
from crosslens.report.document.style import SCRIPT, STYLE
from crosslens.report.forms.page import part_html
from crosslens.report.html import html_page

SECTIONS: tuple[Callable[[ReportContext], ReportSection | None], ...] = (
    summary, leaderboard, recalls, graded, groups, robustness, gallery, captions, causes, queries, labels, everything,
    provenance, reproduction,
)  # fmt: skip
"""In the order in which they are read; one without content is left out."""
_FROM_STAGES = (leaderboard, graded, groups, robustness, captions, causes, labels)
"""Those that read results of stages."""
_LOOK = THEME_STYLE + STYLE + CHART_STYLE
_SAFETY = 8_000
"""Bytes that are left free for the frame of the page, its title and notes."""


class Report:
    """A report: its page, its sections, and what it could not show."""

    def __init__(self, inputs: ReportInputs) -> None:
        if not inputs.runs:
            raise UsageError("a report requires a run", fix="name at least one run folder or audit folder")
        context = ReportContext(inputs)
        self.sections = tuple(section for build in SECTIONS if (section := _built(build, context)) is not None)
        self.page = _page(context, self.sections)
        self.notes = tuple(dict.fromkeys(context.notes))
        self.pictures = context.pictures.shown
        self.pictures_wanted = context.pictures.wanted


def report_page(inputs: ReportInputs) -> str:
    """The whole report as one page that needs no other file."""
    return Report(inputs).page


def _built(build: Callable[[ReportContext], ReportSection | None], context: ReportContext) -> ReportSection | None:
    """The section; a stored result that cannot be read costs that section, not the report."""
    if build not in _FROM_STAGES:
        return build(context)
    return context.read_stored(lambda: build(context), f"the section “{build.__name__}”", None)


def _page(context: ReportContext, sections: tuple[ReportSection, ...]) -> str:
    inputs = context.inputs
    entries = "".join(f'<li><a href="#{section.target}">{escape(section.title)}</a></li>' for section in sections)
    contents = f'<nav class="contents" aria-label="Contents"><ol>{entries}</ol></nav>'
    body = "\n".join(map(_section, sections))
    frame = len((_LOOK + SCRIPT + contents).encode()) + _SAFETY
    text, store = context.pictures.fill(body, max(0, inputs.size - len(body.encode()) - frame))
    missing = context.pictures.wanted - context.pictures.shown
    if missing:
        context.notes.append(
            f"{missing:,} of {format_count(context.pictures.wanted, 'picture')} are left out: they cannot be read, or "
            f"the report would exceed {inputs.size / 1e6:g} MB."
        )
    told = "".join(f'<p class="facts" role="note">{escape(note)}</p>' for note in dict.fromkeys(context.notes))
    runs = ", ".join(inputs.runs)
    skip = '<a class="skip" href="#content">Skip to the content</a>'
    head = (
        f'<header class="top"><div><h1>{escape(inputs.title)}</h1>'
        f'<p class="about">{format_count(len(inputs.runs), "run")}: {escape(runs)}</p></div>'
        f'<button class="theme" id="theme" type="button" hidden>Dark colours</button></header>'
    )
    footer = f"<footer>{told}<p>This file needs no other file and no network.</p></footer>"
    content = f'<div id="content" tabindex="-1">\n{text}\n{footer}\n</div>'
    return html_page(
        inputs.title, content, style=_LOOK, script=SCRIPT, heading=False,
        before=f'{skip}\n{store}\n{head}\n<div class="layout">\n{contents}',
        after="</div>",
    )  # fmt: skip


def _section(section: ReportSection) -> str:
    inside = "\n".join(part if isinstance(part, str) else part_html(part) for part in section.parts)
    heading = f'<h2 id="{section.target}-title">{escape(section.title)}</h2>'
    return f'<section id="{section.target}" aria-labelledby="{section.target}-title">\n{heading}\n{inside}\n</section>'

"""The picture of the failure: near-twins that are told apart or not, and what is confused with what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from crosslens.core import EvidenceList, Figure, Finding, Folded, PairedBar, PairedBars, Part, QueryCards, Section
from crosslens.explanations import synset_word
from crosslens.metrics import dataset_name, format_count
from crosslens.pipeline import StageResult
from crosslens.report.document.inputs import ReportContext
from crosslens.report.document.queries import PageQueries, shown_queries

_MOST_CONFUSIONS, _FEWEST_CONFUSIONS, _ENOUGH_TO_CLAIM = 8, 2, 5
"""Confusions that are shown; how often they occur at least; and from how many on a heading says so."""


def failure_pictures(context: ReportContext) -> list[Section]:
    """Bars of near-twins where a run has any, else of what it confuses; those of other runs folded below."""
    page = PageQueries.of_page(context)
    first = page.run.name
    shown: list[Section] = []
    for stage, section_of in (("twins", _twins), ("explain", confusions)):
        sections = {result.model: own for result in context.inputs.stage(stage)
                    if (own := section_of(context, result)) is not None}  # fmt: skip
        if not sections or shown:
            continue
        name = first if first in sections else next(iter(sections))
        section = sections.pop(name)
        page.shown |= set(shown_queries(section.parts))
        others = tuple(
            Folded(f"The same for {other}", tuple(map(_without_details, own.parts))) for other, own in sections.items()
        )
        shown.append(replace(section, parts=(*section.parts, *others)))
    return shown


def _without_details(part: Part) -> Part:
    """Bars alone: what is behind them is told of the first run."""
    if not isinstance(part, PairedBars):
        return part
    return replace(part, rows=tuple(replace(row, details=(), addresses=()) for row in part.rows))


def _twins(context: ReportContext, result: StageResult) -> Section | None:
    """The stored bars of near-twins with their pictures, and how sure their heading is."""
    run = context.inputs.runs.get(result.model)
    stored = next(
        (section for section in result.sections if any(isinstance(part, PairedBars) for part in section.parts)), None
    )
    if run is None or stored is None:
        return None
    files = context.inputs.pictures.get(dataset_name(run), {})
    said = next((own for own in context.findings if own.kind == "twins" and own.model in ("", result.model)), None)
    sure = ("", "") if said is None else (said.certainty, certainty_words(said))
    parts = tuple(with_files(part, files) for part in stored.parts)
    return replace(stored, parts=parts, certainty=sure[0], reason=sure[1], target="twins")


def with_files(part: Part, files: Mapping[str, str]) -> Part:
    """Stored bars and cards name images by their ids: with the files of these."""
    if isinstance(part, QueryCards):
        return replace(part, files=files)
    if isinstance(part, PairedBars):
        rows = (replace(row, details=tuple(with_files(own, files) for own in row.details)) for row in part.rows)
        return replace(part, files=files, rows=tuple(rows))
    return part


def certainty_words(finding: Finding) -> str:
    """Why a finding is as sure as it says."""
    p = f"p {Figure.p(finding.p).equation} after correction over everything that was looked at" if finding.p else ""
    precision = finding.precision
    measured = (
        f"{100 * precision.value:.0f} % of {precision.n:,} such sentences were true ({precision.where})"
        if precision
        else "how often such sentences are true was not measured"
    )
    return "; ".join(filter(None, (p, measured)))


def confusions(context: ReportContext, result: StageResult) -> Section | None:
    """What a query asks for and what is in the picture that comes first instead: how often of how many misses."""
    run = context.inputs.runs.get(_name(result))
    outcomes = context.outcomes(_name(result)) if run is not None else None
    rows = [row for row in result.payload.get("query_atlas") or () if row["count"] >= _FEWEST_CONFUSIONS]
    if run is None or outcomes is None or not rows:
        return None
    bars = []
    for number, row in enumerate(rows[:_MOST_CONFUSIONS]):
        of = round(row["count"] / row["share_of_expected"])
        behind = outcomes.filter(pl.col("query").is_in(row["examples"])).to_dicts()
        example = behind[0] if behind else {}
        listed = EvidenceList(
            f"confused-{_name(result)}-{number}",
            f"For example {format_count(len(behind), 'query')}",
            tuple((own["query"], f"“{own['text']}”" if own["text"] else own["item"]) for own in behind),
        )
        bars.append(PairedBar(
            synset_word(row["expected"]), (row["count"], of - row["count"]), about=f"{row['count']:,} of {of:,} misses",
            changed=(synset_word(row["expected"]), synset_word(row["shown"])), details=(listed,),
            pictures=tuple(example[side] for side in ("ground_truth", "retrieved") if example),
            addresses=(f"#{listed.target}", ""),
        ))  # fmt: skip
    chart = PairedBars(
        title=f"What {_name(result)} confuses",
        about="Of the misses that ask for something which the picture that came first lacks, how many show the other "
        "thing instead.",
        levels=(("shows the other thing", "bad"), ("something else", "unsure")), rows=tuple(bars),
        heading="asked for ⇄ came first", noun="misses",
        files=context.inputs.pictures.get(dataset_name(run), {}),
    )  # fmt: skip
    first = bars[0]
    share = f"{first.counts[0]} of {sum(first.counts)}"
    title = "What is asked for, and what comes first instead"
    if first.counts[0] >= _ENOUGH_TO_CLAIM:
        title = f"Asked for “{first.changed[0]}”, {share} misses show “{first.changed[1]}”"
    return Section(title, (chart,), target="confusions")


def _name(result: StageResult) -> str:
    return result.model or str(result.payload.get("run", ""))

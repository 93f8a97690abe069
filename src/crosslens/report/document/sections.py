"""The sections of a report that arrange what runs and stages hold: groups, changed captions, labels, all numbers.

A stage's results are shown by the sections that it stored. Those of a new stage are folded below all numbers, without
a line here; the results of several runs that are on one scale stand beside each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import sqrt
from statistics import NormalDist

from crosslens import __version__
from crosslens.audits import all_stages, stages_that_answer
from crosslens.comparisons import query_bar, query_sets
from crosslens.core import (
    Cards,
    Cell,
    Chart,
    Code,
    EvidenceList,
    FactList,
    Figure,
    Finding,
    Folded,
    Heat,
    Interval,
    Intervals,
    Lines,
    Multiple,
    Part,
    Row,
    Section,
    Series,
    SmallMultiples,
    Table,
    Text,
    Tone,
)
from crosslens.explanations import first_relevant, join_words
from crosslens.metrics import facts_of, format_count, metric_figure, spec_of, unit_of, unit_sentence
from crosslens.perturbations import phrase_of
from crosslens.pipeline import DEFINITIONS, gallery_curve, run_facts, value_figure
from crosslens.report.document.answer import brief, costs_of_changes, metric_words
from crosslens.report.document.bars import detailed_run, has_bars, of_model, stored_bars
from crosslens.report.document.context import ReportContext
from crosslens.report.document.queries import PageQueries
from crosslens.values import DIRECTION_LABELS, MetricValues, Run, split_name

_RECALLS = ("Hit", "Recall", "CappedRecall")
_MAIN = ("Hit@1", "Hit@5", "Hit@10", "MRR", "MedR")
"""What the table of all numbers has; every other metric is folded below."""
_CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
_MOST_COLUMNS = 6
"""Runs beside each other in a chart; of more, the best of each dataset."""
_MOST_DRAWN = 3
"""Of more runs the intervals of the table are not drawn: it would be wider than the page."""
_MOST_ROWS = 44
_PLACED = ("groups", "twins", "comparison", "evaluate")
"""Stages that have a place of their own above; ``evaluate`` is the runs themselves."""


def _figure_of(values: MetricValues | None, metric: str) -> Figure:
    return metric_figure(metric, None) if values is None else value_figure(values)


def _stored(context: ReportContext, stage: str) -> list[Part]:
    """What a stage stored of how its results are shown; of several runs or datasets, their tables under their names."""
    results = [result for result in context.inputs.stage(stage) if result.sections]
    parts_shown: list[Part] = []
    for result in results:
        parts: list[Part] = []
        for section in result.sections:
            heading = [Text((section.title,))] if section.title and len(result.sections) > 1 else []
            kept = [part for part in section.parts if len(results) == 1 or not isinstance(part, Row | Chart)]
            kept = [part for part in kept if stage not in context.placed or not has_bars(part)]
            kept = [_in_words(part) for part in kept] if stage == "robustness" else kept
            parts += [*heading, *(replace(part, pictures={}) if isinstance(part, Cards) else part for part in kept)]
        whose = context.short(result.model) if result.model in context.inputs.runs else result.dataset
        parts_shown += [Folded(whose, tuple(parts))] if len(results) > 1 else parts
    return parts_shown


def _in_words(part: Part) -> Part:
    """Rows of perturbations under the phrases of these, as elsewhere on the page: commands ask for their names."""
    if isinstance(part, Row):
        heats = (replace(heat, rows=tuple(map(phrase_of, heat.rows))) for heat in part.charts if isinstance(heat, Heat))
        return replace(part, charts=tuple(heats))
    if not isinstance(part, Table) or part.header[0] not in ("perturbation", "over all queries"):
        return part
    return replace(part, rows=[(phrase_of(str(name)), *rest) for name, *rest in part.rows], narrow=None)


def _beside(context: ReportContext, stage: str) -> list[Part]:
    """The figures that a stage puts on one scale, those of several runs beside each other."""
    charts: dict[str, dict[str, Intervals]] = {}
    for result in context.inputs.stage(stage):
        for chart in (chart for section in result.sections for chart in section.charts):
            if isinstance(chart, Intervals) and result.model in context.inputs.runs:
                charts.setdefault(chart.title, {})[result.model] = chart
    parts: list[Part] = []
    for title, of_runs in charts.items():
        names = [name for name in context.ordered if name in of_runs][:_MOST_COLUMNS]
        first = of_runs[names[0]]
        if len(names) == 1:
            parts.append(first)
            continue
        rows = dict.fromkeys(row.name for name in names for row in of_runs[name].rows)
        cells = {name: {row.name: row for row in of_runs[name].rows} for name in names}
        opened = detailed_run(context, stage)  # of other runs the queries are not on the page
        cells = {name: {row: cell if name == opened else replace(cell, address="") for row, cell in row_cells.items()}
                 for name, row_cells in cells.items()}  # fmt: skip
        parts.append(SmallMultiples(
            title=title, about=first.about, columns=tuple(map(context.short, names)), limits=first.limits,
            rows=tuple(Multiple(row, tuple(cells[name].get(row) for name in names)) for row in rows),
            means=() if first.mark is None else (Figure(first.mark),) * len(names), axis=first.axis,
        ))  # fmt: skip
    return parts


def _claim(
    context: ReportContext, findings: Sequence[Finding], otherwise: str, words: str = ""
) -> tuple[str, str, str]:
    """The title of a section, how sure it is, and why: what was found first, of which model, or that nothing was."""
    first = next(iter(findings), None)
    if first is None:
        return otherwise, "", ""
    text = first.text.removeprefix(f"{first.model}: ").removeprefix(f"{first.dataset}: ")
    text = words or brief(text)
    text = text if text[1:2].isdigit() else text[:1].upper() + text[1:]
    return of_model(context, first.model, text), first.certainty, first.reason


# Groups


def groups(context: ReportContext) -> Section | None:
    """Every group on one scale: rows by column, a column per run, coloured where the corrected interval is clear."""
    names = _compared(context)
    metric = context.headline(context.inputs.runs[names[0]])
    if metric is None:
        return None
    behind: list[EvidenceList] = []
    rows = list(_group_rows(context, names, behind))
    findings = [finding for finding in context.of_stages(("groups",)) if finding.certainty != "open"]
    words = ""
    if findings:
        where = findings[0].text.removeprefix(f"{findings[0].model}: ").partition(" (")[0]
        words = f"{where}, about {100 * abs(findings[0].effect.value):.0f} points fewer are found"
    folded = _stored(context, "groups")
    detail = [Folded("The misses behind each dot", tuple(behind))] if behind else []
    detail += [Folded("How the weakest groups were searched", tuple(folded))] if folded else []
    if not rows and not detail:
        return None
    means = tuple(_figure_of(context.inputs.runs[name][metric], metric) for name in names)
    share = unit_of(metric) == "share"
    chart = SmallMultiples(
        title=f"{metric_words(metric)}, by group", columns=tuple(map(context.short, names)), rows=tuple(rows),
        means=means, abouts=tuple(f"{context.inputs.runs[name][metric].n:,} queries" for name in names),
        limits=(0.0, 1.0) if share else None,
        about="Dashed: all queries. Coloured: below or above that with the whole interval, made wider for the number "
        "of groups; grey: may not differ.",
    )  # fmt: skip
    title, certainty, reason = _claim(context, findings, "No group was shown to differ from the rest", words)
    return Section(title, (*((chart,) if rows else ()), *detail), "", certainty, reason, "groups")


def _compared(context: ReportContext) -> list[str]:
    """The runs that stand beside each other: all of a few, or the best of each dataset."""
    names = context.ordered
    if len(names) <= _MOST_COLUMNS:
        return names
    return [context.by_headline(runs)[0] for runs in context.inputs.by_dataset().values()][:_MOST_COLUMNS]


def _group_rows(context: ReportContext, names: Sequence[str], behind: list[EvidenceList]) -> Iterator[Multiple]:
    """Groups by column, from the weakest of the first run that has them to the strongest; ``behind`` gets the misses
    of each."""
    page = PageQueries.of_page(context)
    columns = {column: context.grouped(column) for column in context.columns()}
    kept = {column: grouped for column, grouped in columns.items() if any(len(some) > 1 for some in grouped.values())}
    number = max(1, sum(len({group for groups in grouped.values() for group in groups}) for grouped in kept.values()))
    wider = NormalDist().inv_cdf(1 - 0.025 / number) / NormalDist().inv_cdf(0.975)
    room = _MOST_ROWS
    for column, grouped in kept.items():
        groups = list(dict.fromkeys(group for name in names for group in grouped.get(name, {})))
        if len(groups) > room:
            continue
        room -= len(groups)

        def height(group: str, grouped: Mapping[str, Mapping[str, MetricValues]] = grouped) -> float:
            return next(grouped[name][group].mean for name in names if group in grouped.get(name, {}))

        if any(re.fullmatch(r"[\d.]+ to [\d.]+", group) for group in groups):  # bins keep their order
            order = sorted(groups, key=lambda text: float(text.split()[0]) if text[:1].isdigit() else 1e99)
        else:
            order = sorted(groups, key=height)
        for group in order:
            cells: list[Interval | None] = []
            for name in names:
                values = grouped.get(name, {}).get(group)
                mean = context.inputs.runs[name].values.get(values.name) if values is not None else None
                if values is None or mean is None:
                    cells.append(None)
                    continue
                figure, counted = _figure_of(values, values.name), format_count(values.n, "query")
                figure = replace(figure, digits=0) if figure.scale == 100 else figure
                target = f"group-{len(behind) + 1}"
                listed = page.of_group(name, f"{column.replace('_', ' ')} {group}", values.query_ids, target)
                behind += [listed] if listed is not None else []
                cells.append(Interval(
                    figure, f"{group}, {counted}", tone=_tone(values, mean.mean, wider),
                    address=f"#{target}" if listed is not None else "",
                ))  # fmt: skip
            yield Multiple(group, tuple(cells), f"by {column.replace('_', ' ')}")


def _tone(values: MetricValues, mean: float, wider: float) -> Tone:
    """Whether the interval, made wider on both sides, leaves out the mean; at least as wide as chance makes it."""
    low, high = values.mean - values.low, values.high - values.mean
    least = sqrt(mean * (1 - mean) / values.n) if 0 <= mean <= 1 and values.n else 0.0
    if values.mean + wider * max(high, least) < mean:
        return "bad"
    return "good" if values.mean - wider * max(low, least) > mean else "unsure"


# What was changed, and labels


def reading(context: ReportContext) -> Section | None:
    """What changing captions costs, and which false facts the model notices."""
    stages, folded = stages_that_answer("reading"), []
    parts = [part for stage in stages[::-1] for part in (*_beside(context, stage), *stored_bars(context, stage))]
    for stage in stages:
        inside = [part for part in _stored(context, stage) if not isinstance(part, Intervals)]  # these are above
        folded += [(stage, inside)] if inside else []
    titles = {"probes": "What each change was, and how often it can be made", "robustness": "Every change in detail"}
    if not parts and not folded:
        return None
    findings = [finding for finding in context.of_stages(stages) if finding.certainty != "open"]
    costs, where = costs_of_changes(context)
    otherwise = f"{costs[:1].upper()}{brief(costs)[1:]}{where}" if costs else "Nothing was shown to go unread"
    title, certainty, reason = _claim(context, findings, otherwise)
    more = (Folded(titles.get(stage) or _summaries()[stage], tuple(inside)) for stage, inside in folded)
    return Section(title, (*parts, *more), "", certainty, reason, "reading")


def labels(context: ReportContext) -> Section | None:
    """What may be said about the labels, and what a person should look at."""
    stages = stages_that_answer("labels")
    folded = [Folded(_summaries()[stage], tuple(part)) for stage in stages if (part := _stored(context, stage))]
    findings = context.of_stages(stages)
    if not folded:
        return None
    title, certainty, reason = _claim(context, findings, "No label was shown to be wrong")
    texts = [re.sub(rf"(?i){re.escape(title)}: (\w)", lambda match: match[1].upper(), sentence, count=1)  # it is above
            for sentence in map(context.said, findings[:4])]  # fmt: skip
    return Section(title, (*([Text.of(*texts)] if findings else []), *folded), "", certainty, reason, "labels")


def better(context: ReportContext) -> Section | None:
    """Which of several models is better, by the comparisons that the audit or this report made."""
    rows: list[tuple[Cell, ...]] = []
    for dataset, comparison in context.comparisons.items():
        for entry in comparison.results:
            names, counts = [entry.other, entry.baseline], [entry.wins, entry.losses]
            ends = entry.difference, entry.low, entry.high
            if (entry.difference < 0) == facts_of(entry.metric).higher_is_better:  # the better one is A
                names, counts, ends = names[::-1], counts[::-1], (-entry.difference, -entry.high, -entry.low)
            rows.append((
                dataset, *map(context.model, names), metric_figure(entry.metric, *ends, signed=True),
                Figure.p(entry.adjusted_p, comparison.permutations), ":".join(map("{:,}".format, counts)),
            ))  # fmt: skip
    if not rows:
        return None
    metric = next(iter(context.comparisons.values())).results[0].metric
    note = (f"{metric}, in points, over the same queries; p of a paired permutation test over images, corrected "
            "(Holm); each interval is of its pair alone. A:B are the queries on which either is better.")  # fmt: skip
    header = ("dataset", "A", "B", "A − B", "p", "A:B")
    left = int(len(context.comparisons) == 1)  # the heading of the page names the only dataset
    table = Table(header[left:], [row[left:] for row in rows], "lllrrr"[left:], notes=(note,))
    findings = context.of_stages(("comparison",))
    several = len(context.comparisons) > 1
    words = brief(context.said(findings[0])) if findings and several else ""
    title, certainty, reason = _claim(context, findings, "Which is better is open", words)
    parts: list[Part] = [table]
    for (best, second), entry in () if several else context.leading.values():
        sets = query_sets(context.inputs.runs[best], context.inputs.runs[second], entry.metric)
        only = [f"{len(queries):,}" for queries in sets.values()]
        if only[:2] in ([], ["0", "0"]):
            continue
        listed = PageQueries.of_page(context).of_sets((best, second), sets)
        addresses = tuple(f"#{listed[name].target}" if name in listed else "" for name in sets) if listed else ()
        bar = query_bar((best, second), sets, addresses, second_is_ahead=False)
        parts = [bar, *([Folded("The queries behind the bar", tuple(listed.values()))] if listed else []), table]
        title = (
            f"Only {best} finds {only[0]} of {bar.rows[0].name}, only {second} {only[1]}"  # which is better is above
        )
    return Section(title, tuple(parts), "", certainty, reason, "better")


# All numbers, and what is folded below


def numbers(context: ReportContext) -> Section:
    """Every figure of the runs once, and below what answers none of the questions."""
    runs = {name: context.inputs.runs[name] for name in context.ordered}
    every = list(dict.fromkeys(name for run in runs.values() for name in run))
    main = [name for name in every if split_name(name)[1] in _MAIN]
    main = sorted(main or every[:6], key=lambda name: split_name(name)[0] != context.direction)
    rest = [name for name in every if name not in main and _family(name) not in _RECALLS]
    parts: list[Part] = [replace(_metrics_table(context, main, runs), drawn=len(runs) <= _MOST_DRAWN)] if main else []
    if main:
        levels = " and ".join(sorted({f"{100 * run[name].level:g} %" for run in runs.values() for name in run}))
        over = ""
        if shared := context.shared:
            counted = [runs[name][shared[name].name].n for name in runs]
            if len(same := {values.n for values in shared.values()} | set(counted)) > 1:
                over = (f"Over all queries of each gallery ({join_words([f'{count:,}' for count in counted])}); "
                        f"at the top, over the {min(same):,} that all of them have.")  # fmt: skip
        parts.append(Text.of(f"{unit_sentence(main)} In brackets: {levels} intervals over images.", over, note=True))
    parts += _recalls(runs, context)
    behind = tuple(PageQueries.of_page(context).behind_figures.values())
    parts += [Folded("The misses behind each figure", behind)] if behind else []
    if rest:
        families = dict.fromkeys(map(_family, rest))
        words = [f"{name}@k: {DEFINITIONS[name]}." for name in families if name in DEFINITIONS]
        table = _metrics_table(context, rest, runs)
        parts.append(Folded("Every other metric", (table, Text.of(*words, unit_sentence(rest), note=True)),
                            ", ".join(filter(None, families))))  # fmt: skip
    parts += _gallery(context, runs)
    placed = {*_PLACED, *stages_that_answer("reading"), *stages_that_answer("labels")}
    for stage in dict.fromkeys(result.stage for result in context.inputs.results):
        if stage not in placed and (inside := _stored(context, stage)):
            parts.append(Folded(_summaries().get(stage, stage), tuple(inside)))
    calibrations = context.inputs.sensitivities
    sensitivity = [part for calibrated in calibrations for section in calibrated.sections() for part in (
        *([Text((section.title,))] if len(calibrations) > 1 else []), *section.parts)]  # fmt: skip
    sensitivity_title = "What this audit could have noticed"
    parts += [Folded(sensitivity_title, tuple(sensitivity), target="sensitivity")] if sensitivity else []
    if context.findings:
        sentences = [(context.said(finding), finding.certainty, finding.reason) for finding in context.findings]
        parts.append(Folded(f"Everything that was found: {format_count(len(sentences), 'sentence')}",
                            (Table(("sentence", "how sure", "why"), sentences),)))  # fmt: skip
    glossary = Folded("Words", (FactList(tuple(TERMS.items())),), "what the terms above mean")
    return Section("All numbers", (*parts, *_made(context, runs), glossary), target="numbers")


def _summaries() -> Mapping[str, str]:
    return {stage.name: stage.summary.rstrip(".") for stage in all_stages()}


def _family(metric: str) -> str:
    spec = spec_of(metric)
    return spec.family if spec is not None else ""


def _metrics_table(context: ReportContext, names: Sequence[str], runs: Mapping[str, Run]) -> Table:
    """A row per metric, a column per run; of many runs, a row per run. Figures lead to the queries behind them."""

    def cell(name: str, metric: str) -> Figure:
        values = runs[name].values.get(metric)
        address = "" if values is None else PageQueries.of_page(context).address(name, values)
        return replace(_figure_of(values, metric), address=address)

    if len(runs) > _MOST_COLUMNS:
        lines: list[tuple[Cell, ...]] = [(name, *(cell(name, metric) for metric in names)) for name in runs]
        return Table(("run", *names), lines, "l" * (1 + len(names)))
    lines = [(metric_words(metric), *(cell(name, metric) for name in runs)) for metric in names]
    return Table(("metric", *map(context.short, runs)), lines, "l" * (1 + len(runs)))


def _recalls(runs: Mapping[str, Run], context: ReportContext) -> Iterator[Part]:
    """Hit, Recall and CappedRecall beside each other: papers call all three R@k."""
    figures: dict[tuple[str, str, str], dict[int, Figure]] = {}
    for name, run in runs.items():
        for metric, values in run.values.items():
            if _family(metric) in _RECALLS and (match := re.fullmatch(r"(\w+)@(\d+)", split_name(metric)[1])):
                figures.setdefault((name, split_name(metric)[0], match[1]), {})[int(match[2])] = value_figure(values)
    if len({kind for _, _, kind in figures}) < 2:
        return
    cutoffs = sorted({k for by_cutoff in figures.values() for k in by_cutoff})
    ordered = sorted(figures, key=lambda key: (list(runs).index(key[0]), key[1] != "t2i", key[1:]))
    rows = [
        (context.short(name), f"{DIRECTION_LABELS.get(direction, direction)}: {kind}",
         *(figures[name, direction, kind].get(k) for k in cutoffs))
        for name, direction, kind in ordered
    ]  # fmt: skip
    words = Text.of(*(f"{name}@k: {DEFINITIONS[name]}." for name in _RECALLS), note=True)
    table = Table(("", "", *(f"@{k}" for k in cutoffs)), rows, "l" * (2 + len(cutoffs)), names=2)
    yield Folded("If a paper says “R@5”", (table, words), "three quantities have that name")


def _gallery(context: ReportContext, runs: Mapping[str, Run]) -> Iterator[Part]:
    """Hit@k against k, and Hit@1 if the gallery held only some of the items, from the ranks that a run keeps."""
    asked = context.direction
    rankings = {name: run.rankings[asked] for name, run in runs.items() if asked in run.rankings}
    firsts = {name: first_relevant(ranking) for name, ranking in rankings.items()}
    ranks = {name: rank[best >= 0] for name, (best, rank) in firsts.items() if (best >= 0).any()}
    charts: list[Chart] = []
    # Of lists that were cut off nothing is known below their end.
    ends = {name: len(lists.item_ids) if lists.complete else min(lists.known, default=0)
            for name, lists in rankings.items()}  # fmt: skip
    cutoffs = [k for k in _CUTOFFS if any(k <= end for end in ends.values())]
    if len(cutoffs) > 1:
        lines = []
        for name, of_run in ranks.items():
            rates = ((of_run >= 1) & (of_run <= k) for k in cutoffs if k <= ends[name] or rankings[name].complete)
            points = [*(Figure.percent(float(rate.mean())) for rate in rates), *[Figure.percent(None)] * len(cutoffs)]
            lines.append(Series(context.short(name), tuple(points[: len(cutoffs)])))
        charts.append(Lines(
            title=f"Hit@k, {context.direction}", across=tuple(map(float, cutoffs)), series=tuple(lines), axis="k",
            logarithmic=True, limits=(0, 1),
        ))  # fmt: skip
    complete = [  # only over the whole gallery every rank is known
        replace(runs[name], name=context.short(name)) for name, ranking in rankings.items()
        if ranking.complete and (ranking.relevant_counts > 0).any()
        and not (ranking.known < len(ranking.item_ids)).any()
    ]  # fmt: skip
    if complete:
        curves = gallery_curve(complete, f"{context.direction}/Hit@1", permutations=1)
        title = f"Hit@1 against the size of the gallery, {context.direction}"
        charts += [replace(chart, title=title) for chart in next(curves.sections()).charts if len(curves.sizes) > 1]
    if charts:
        explanation = (
            "If the gallery held only some of the items, drawn at random with the relevant ones kept: the mean over "
            "all such draws. Figures on galleries of different size cannot be compared; these curves can."
        ) if complete else ""  # fmt: skip
        title, summary = "How deep, and among how many", "Hit@k against k and against the size of the gallery"
        if not complete:
            title, summary = title.partition(",")[0], summary.partition(" and")[0]
        yield Folded(title, (Row(tuple(charts)), Text.of(explanation, note=True)), summary)


def _made(context: ReportContext, runs: Mapping[str, Run]) -> Iterator[Part]:
    """What every run was made from, and the commands that repeat it."""
    facts = {name: run_facts(run) for name, run in runs.items()}
    labels_of = dict.fromkeys(label for of_run in facts.values() for label in of_run)
    rows = [(label, *(of_run.get(label, "–") for of_run in facts.values())) for label in labels_of]
    inputs = context.inputs
    commands = dict.fromkeys([
        *(f"crosslens run {folder}/recipe.toml" for name, folder in inputs.sources.items() if inputs.runs[name].recipe),
        *(result.command for result in inputs.results), inputs.command,
    ])  # fmt: skip
    listed = "\n".join(command for command in commands if command)
    left_out = [f"{stage} {reason}." for stage, reason in inputs.skipped.items()]
    recipes = [Folded(f"Recipe of {name}", (Code(run.recipe),)) for name, run in runs.items() if run.recipe]
    noted = [f"{name}: {note}" for name, run in runs.items() for note in run.provenance.get("notes", ())]
    seed_text = [Text.of("The same seed gives the same numbers.", *left_out, *noted)] if listed or left_out else []
    parts: list[Part] = [Table(("", *runs), rows), *seed_text, *([Code(listed)] if listed else []), *recipes]
    yield Folded("How this was made, and how to repeat it", tuple(parts), f"crosslens {__version__}")


TERMS: Mapping[str, str] = {
    "t2i, i2t": "text → image: captions ask for their image; image → text: images ask for their captions",
    "Hit@1": "the share of queries with a right item first; papers often call it R@1 or Recall@1",
    "MRR, MedR": "the mean of 1 ÷ the rank of the first right item; the median of that rank",
    "interval": "another sample of images of this kind would give a figure in this range 95 times in 100; the queries "
    "of one image count together",
    "settled": "the test holds at p < 0.01 after correction, or the interval stays below two points, and at least 95 % "
    "of such sentences were true where that was measured",
    "likely": "the test holds at p < 0.05, and at least 80 % of such sentences were true",
    "open": "worth a look; no test decides it, or nobody has looked",
    "near-twin": "a picture that differs from another in one thing, which the captions say",
}

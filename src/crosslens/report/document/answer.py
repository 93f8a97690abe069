"""What a report says first: a sentence, figures on one scale, an example, and a line for each question.

Sentences are templates, filled with what was measured and with what the audit found; which of them applies depends on
what stands beside each other: one run, one model in several galleries, several models on one dataset, or both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite

from crosslens.audits import stages_that_answer
from crosslens.comparisons import same_lists, undecided
from crosslens.core import (
    FINDING_KINDS,
    STATED_SIZE,
    AnsweredQuestion,
    Answers,
    Figure,
    Finding,
    Interval,
    Intervals,
    Tone,
)
from crosslens.explanations import join_words
from crosslens.metrics import dataset_name, facts_of, format_count, metric_figure, unit_of
from crosslens.report.document.context import ReportContext
from crosslens.report.document.queries import PageQueries, counted_evidence, evidence_address
from crosslens.statistics import PairedTest, paired_permutation
from crosslens.values import MetricValues, split_name

_FINDS = {
    "t2i": ("the right picture", "caption"), "i2t": ("a right caption", "picture"), "t2t": ("a right text", "query"),
}  # fmt: skip
"""Per direction: what is found, and what asks."""
_MANY_IMAGES = 100
"""Over so many images a figure is settled; over fewer, likely."""
_LEVEL = 0.05
_POINTS = Figure(None, scale=100, digits=0, signed=True)
_NOT_LOOKED = "Not looked at"


def of_100(values: MetricValues) -> str:
    """A share as a count of a hundred; small ones and large ones are neither none nor all."""
    share = values.mean
    if 0 < share < 0.005 or 0.995 < share < 1:
        return "fewer than 1" if share < 0.5 else "more than 99"
    return Figure(share, scale=100, digits=0).number


# The sentence


def headline(context: ReportContext) -> str:
    """How good, and what breaks it, in a sentence or two."""
    metric = context.headline(context.inputs.runs[context.ordered[0]])
    if metric is None:
        return context.inputs.title
    return {"single": _one_run, "galleries": _galleries, "models": _models, "grid": _grid}[context.shape](
        context, metric
    )


def _finds(metric: str, values: MetricValues) -> str:
    """``finds the right picture for 88 of 100 captions``; of other metrics the figure."""
    direction, name = split_name(metric)
    if name != "Hit@1" or direction not in _FINDS:
        return f"reaches {metric_figure(metric, values.mean).number} in {metric}"
    item, asks = _FINDS[direction]
    return f"finds {item} for {of_100(values)} of {format_count(100, asks)}"


def _one_run(context: ReportContext, metric: str) -> str:
    name = context.ordered[0]
    return f"{name} {_finds(metric, context.inputs.runs[name][metric])}. {what_breaks(context)}".rstrip()


def what_breaks(context: ReportContext) -> str:
    """The first of what is likely or settled; that nothing was seen where nothing was; nothing where it is open."""
    other = (*stages_that_answer("labels"), "comparison")
    findings = [finding for finding in context.findings if finding.stage not in other]
    sure = [finding for finding in findings if finding.certainty != "open"]
    if not sure:
        return "Nothing that was looked for was shown to break it." if context.looked and not findings else ""
    first = sure[0]
    text = first.text.removeprefix(f"{first.model}: ")
    if FINDING_KINDS[first.kind].details["unsound"]:
        return f"But the input is not sound: {text[:1].lower()}{text[1:]}"
    if first.kind in ("group", "object-size"):
        return f"{text.partition(' (')[0]}, it is about {_POINTS.write(abs(first.effect.value)).lstrip('+')} fewer."
    if first.kind == "twins":
        pairs = f"{100 * first.effect.value:.0f} of 100 pairs"
        return f"Where two pictures differ in {first.subject} alone, it finds both in {pairs}."
    return f"{brief(text)}."


def brief(text: str) -> str:
    """What a sentence says before its colon, without what stands in brackets."""
    return re.sub(r" (?:\[.*?\]|\(.*?\))", "", text).partition(":")[0].rstrip(".")


def _galleries(context: ReportContext, metric: str) -> str:
    """Over the same queries, the largest of the losses from one gallery to the next."""
    runs, names = context.inputs.runs, context.ordered
    model = context.model(names[0])
    shared = context.shared
    if not shared:
        others = [f"{of_100(runs[name][metric])} of {context.short(name)}" for name in names[1:]]
        where = f"of {context.short(names[0])}, {join_words(others)}"
        where = where if split_name(metric)[1] == "Hit@1" else f"on {context.short(names[0])}"
        return f"{model} {_finds(metric, runs[names[0]][metric])} {where}."
    start = f"{model} {_finds(metric, shared[names[0]])}"
    losses = {name: gallery_change(context, name) for name in names[1:]}
    lost = [name for name in losses if losses[name].high < 0]
    if not lost:
        among = f"among {context.gallery(names[-1]):,} pictures"
        if all(loss.low > -STATED_SIZE for loss in losses.values()):
            return f"{start}, and as many {among}."
        return f"{start}. A{among[1:]} it is {of_100(shared[names[-1]])}."
    worst = min(lost, key=lambda name: losses[name].difference)
    before = names[names.index(worst) - 1]
    after = of_100(shared[worst])
    if before != names[0]:
        start += f", and for {of_100(shared[before])} among {context.gallery(before):,} pictures"
    if twins_added(context, before, worst):
        return f"{start}. Give each picture a near-twin, and it is {after}."
    return f"{start}. Among {context.gallery(worst):,} pictures it is {after}."


def gallery_change(context: ReportContext, name: str) -> PairedTest:
    """From the gallery before this one, over the queries that all of them share."""
    shared, names = context.shared, context.ordered
    after, before = shared[name], shared[names[names.index(name) - 1]]
    return paired_permutation(after.values, before.values, after.clusters, permutations=1, bounds=(0, 1))


def twins_added(context: ReportContext, before: str, after: str) -> bool:
    """Whether nearly every picture of one gallery has a near-twin in the next, and had none before."""
    pairs = []
    for name in (before, after):
        result = context.inputs.stage_of("twins", name)
        pairs.append(None if result is None else sum(fact["pairs"] for fact in result.payload.get("facts", ())))
    if pairs[0] is None or pairs[1] is None:
        return False
    gallery = context.gallery(before)
    return bool(pairs[0] < 0.1 * gallery and pairs[1] >= 0.9 * gallery)


def _models(context: ReportContext, metric: str) -> str:
    """The best model on a dataset, with those that give the same lists, and whether it is better than the next."""
    ((dataset, runs),) = context.inputs.by_dataset().items()
    best, *others = context.by_headline(runs)
    equal = [name for name in others if metric in runs[name] and same_lists(metric, runs[best], runs[name])]
    like = f", like {join_words(list(map(context.model, equal)))}," if equal else ""
    start = f"{context.model(best)}{like} {_finds(metric, runs[best][metric])}"
    second = next((name for name in others if name not in equal), "")
    if not second or metric not in runs[second]:
        return f"{start}."
    findings = [finding for finding in context.of_stages(("comparison",)) if finding.dataset in (dataset, "")]
    share = unit_of(metric) == "share"
    other = of_100(runs[second][metric]) if share else metric_figure(metric, runs[second][metric].mean).number
    more = f", the next best of {len(runs)}" if len(runs) > 2 else ""
    better = next((finding for finding in findings if finding.kind == "better" and finding.certainty != "open"), None)
    if better is not None:
        return f"{start}, {context.model(second)}{more} for {other}." if share else f"{start}, {second} {other}."
    leading = f"{' and '.join([best, *equal])}, "  # others may give the same lists, which says nothing of these two
    same = [finding for finding in findings if finding.kind == "no-difference" and finding.certainty != "open"]
    if any(finding.subject.startswith(leading) for finding in same):
        return f"{start}, and {context.model(second)} no fewer and no more."
    return f"{start}, {context.model(second)}{more} for {other}: which is better is open."


def _grid(context: ReportContext, metric: str) -> str:
    """Which model leads on each dataset, and where that was shown."""
    datasets = context.inputs.by_dataset()
    leads, decided, leading = {}, [], []
    proven = [finding for finding in context.findings if finding.kind == "better" and finding.certainty != "open"]
    for dataset, runs in datasets.items():
        best = context.by_headline(runs)[0]
        if metric not in runs[best]:
            continue
        leads[dataset] = (context.model(best), runs[best][metric])
        if any(dataset in (finding.dataset, *finding.also) for finding in proven):
            decided.append(dataset)
            most = runs[best][metric].mean
            equal = (name for name, run in runs.items() if metric in run and run[metric].mean == most)
            leading.append(set(map(context.model, equal)))
    share, asks = unit_of(metric) == "share", _FINDS.get(split_name(metric)[0], ("", "query"))[1]
    figures = [
        (dataset, model, of_100(values) if share else metric_figure(metric, values.mean).number)
        for dataset, (model, values) in leads.items()
    ]
    of = f" of {format_count(100, asks)}" if share else f" ({metric})"
    if all(len(runs) == 1 for runs in datasets.values()):  # nothing to compare
        alone = join_words([f"on {dataset}, {model} finds {figure}" for dataset, model, figure in figures])
        return f"O{alone[1:]}{of}."
    where = [f"on {dataset} ({figure})" for dataset, _, figure in figures]
    leaders = [f"{model} {place}" for (_, model, _), place in zip(figures, where, strict=True)]
    if len({model for _, model, _ in figures}) == 1:
        best = figures[0][1]
        start = f"Of {format_count(100, asks)}, {best} finds the most" if share else f"{best} has the best {metric}"
        text = f"{start} {join_words(where)}"
    elif len(decided) > 1 and not set.intersection(*leading):
        text = f"Which model finds the most{of} depends on the dataset: {join_words(leaders)}"
    else:
        text = f"The most{of} are found by {join_words(leaders)}"
    lead = f"on {join_words(decided)}" if decided else "on none of them"
    return f"{text}. It is shown to be better than the next {lead}."


# The figures


def strip(context: ReportContext) -> Intervals | None:
    """The headline of every run on one scale: of galleries, over the queries that they share, with what changed."""
    runs, names = context.inputs.runs, context.ordered
    metric = context.headline(runs[names[0]])
    if metric is None:
        return None
    share = unit_of(metric) == "share"
    shared, page = context.shared, PageQueries.of_page(context)
    direction = split_name(metric)[0]
    words, asks = _FINDS.get(direction, ("item", "query"))
    item, rows = words.split()[-1], list[Interval]()
    if context.shape == "single":
        run = runs[names[0]]
        hits = [name for name in (f"{direction}/Hit@{k}" for k in (5, 10)) if name in run and name != metric]
        rows += [
            Interval(_figure(name, run[name]), _place_words(name), tone="good" if name == metric else "",
                     address=page.address(names[0], run[name]))
            for name in (metric, *hits)
        ]  # fmt: skip
    else:
        best = [runs[context.by_headline(of_dataset)[0]] for of_dataset in context.inputs.by_dataset().values()]
        leads = {(dataset_name(run), run[metric].mean) for run in best if metric in run}
        for name in (name for name in names if metric in runs[name]):
            values, dataset = shared.get(name, runs[name][metric]), dataset_name(runs[name])
            label, detail, change = context.short(name), "", None
            tone: Tone = "good" if share and (dataset, values.mean) in leads else ""
            if context.shape == "grid":
                label, detail = context.model(name), dataset
            elif context.shape == "galleries":
                detail = f"{context.gallery(name):,} {item}s"
                tone = "good" if share and name == names[0] else ""
            if shared and name != names[0]:
                test = gallery_change(context, name)
                change, tone = _POINTS.of_row(vars(test), "difference"), "bad" if test.high < 0 else ""
            rows.append(Interval(_figure(metric, values), label, detail, change, tone, page.address(name, values)))
    counts = {values.n for values in shared.values()} or {run[metric].n for run in runs.values() if metric in run}
    over = f" over {'the same ' if shared else ''}{format_count(counts.pop(), asks)}" if len(counts) == 1 else ""
    title = f"{metric_words(metric)}{over}" + (" in each gallery" if shared else "")
    note = "With the change from the row above, over the same queries." if shared else ""
    return Intervals(title=title, rows=tuple(rows), limits=(0.0, 1.0) if share else None, about=note)


def _figure(metric: str, values: MetricValues) -> Figure:
    if unit_of(metric) != "share":
        return metric_figure(metric, values.mean, values.low, values.high)
    digits = 1 if values.mean < 0.1 or 0.99 < values.mean < 1 else 0
    return Figure(values.mean, values.low, values.high, scale=100, digits=digits, unit=" %")


def _place_words(metric: str) -> str:
    direction, name = split_name(metric)
    item = _FINDS.get(direction, ("the right one", ""))[0]
    return f"{item} {'first' if name.endswith('@1') else 'in the first ' + name.partition('@')[2]}"


def metric_words(metric: str) -> str:
    """A metric as titles say it: ``Right picture first (t2i/Hit@1)``."""
    direction, name = split_name(metric)
    if not name.startswith("Hit@") or direction not in _FINDS:
        return metric
    return f"{_place_words(metric).partition(' ')[2].capitalize()} ({metric})"


# The questions


def questions(context: ReportContext, targets: frozenset[str]) -> Answers:
    """A line for each question; ``targets`` are the sections that the page has, to which the lines lead."""
    asked: list[Callable[[ReportContext], AnsweredQuestion | None]] = [_how_good, _where, _reading, _labels]
    if context.shape in ("models", "grid"):
        asked[0] = _which
    answers = [answer for ask in asked if (answer := ask(context)) is not None]
    left = [answer for answer in answers if answer.text.startswith(_NOT_LOOKED)]
    if left and (not context.inputs.results or len(left) > len({answer.text for answer in left}) == 1):  # said once
        why = left[0].text if context.inputs.results else "These are runs alone; crosslens audit looks at more."
        text = f"{' '.join(answer.question for answer in left)} {why}"
        answers = [*(answer for answer in answers if answer not in left), AnsweredQuestion("Not asked", text)]
    return Answers(tuple(
        answer if answer.address.lstrip("#") in targets or answer.address.startswith("#evidence")
        else replace(answer, address="", link="")
        for answer in answers
    ))  # fmt: skip


def _how_good(context: ReportContext) -> AnsweredQuestion | None:
    runs, name = context.inputs.runs, context.ordered[-1]
    metric = context.headline(runs[name])
    if metric is None:
        return None
    values = context.shared.get(name, runs[name][metric])
    figure = _figure(metric, values)
    where = f"Among {context.gallery(name):,} pictures, " if context.shape == "galleries" else ""
    sentence_start = f"{where}{context.model(name)} {_finds(metric, values)} {figure.interval}".rstrip()
    direction, short = split_name(metric)
    if (deep := f"{direction}/Hit@5") in runs[name] and short == "Hit@1":
        among_five = context.over_shared(deep).get(name, runs[name][deep])
        text = f"{sentence_start}; it is among the first five for {of_100(among_five)}."
    else:
        text = f"{sentence_start}."
    images = len(set(values.clusters.tolist()))
    certainty = "settled" if images >= _MANY_IMAGES else "likely"
    reason = (
        f"The {100 * values.level:g} % interval over {format_count(images, 'image')} is {figure.interval}. "
        f"Settled: over {_MANY_IMAGES} images or more; likely: over fewer."
    )
    if not figure.bounded:
        certainty, reason = "open", "The run has no interval."
    elif any(
        "*" in FINDING_KINDS[finding.kind].details["silences"] and finding.model in ("", name)
        for finding in context.findings
        if finding.certainty != "open"
    ):
        certainty = "open"
        reason = "The input is not sound, so this says how good the files are, and not how good the model is."
    return AnsweredQuestion("How good is it?", text, certainty, reason, "#groups", "By group ↓")


def _which(context: ReportContext) -> AnsweredQuestion:
    findings = context.of_stages(("comparison",))
    if findings:
        return _answer(context, "Which is better?", findings, "#better", "The comparisons ↓")
    text = "Open: no difference was shown, and none was ruled out."
    alone: dict[str, list[str]] = {}
    for dataset, (leaders, entry) in context.leading.items():
        place = f"on {dataset} " if len(context.comparisons) > 1 else ""
        if entry.adjusted_p < _LEVEL:
            pair = join_words(list(map(context.model, leaders)))
            alone.setdefault(pair, []).append(f"{place}(p {Figure.p(entry.adjusted_p).equation})")
        elif not place and isfinite(entry.p_value):
            text = f"Open. {undecided(entry)}"
    if alone:
        differing = join_words([f"{pair} differ {join_words(places)}" for pair, places in alone.items()])
        text = f"Open: tested alone, {differing}; corrected over everything that was looked at, that is not shown."
    return AnsweredQuestion("Which is better?", text, "open", "No test decides it.", "#better", "The comparisons ↓")


_SILENT = (
    "A test that finds nothing does not show that nothing is there; crosslens calibrate says what it could notice."
)


def _where(context: ReportContext) -> AnsweredQuestion:
    question = "Where does it fail?" if context.shape in ("single", "galleries") else "Where do they fail?"
    findings = context.of_stages(("soundness", *stages_that_answer("failures")))
    metrics = [(run, context.headline(run)) for run in context.inputs.runs.values()]
    if not findings and all(
        metric is None or (facts_of(metric).higher_is_better and run[metric].mean == 1) for run, metric in metrics
    ):
        return AnsweredQuestion(question, "Nowhere: no query is missed.", "settled", "All queries were counted.")
    text = "Nowhere in particular: no group of queries was shown to be worse than the rest."
    return _answer(context, question, findings, "#groups", "Groups ↓", text, ("groups",))


def _reading(context: ReportContext) -> AnsweredQuestion:
    question = "What does it not read?" if context.shape in ("single", "galleries") else "What do they not read?"
    stages, (costs, where) = stages_that_answer("reading"), costs_of_changes(context)
    findings = context.of_stages((*stages, "twins"))
    text = "Nothing of what was tried was shown to go unread."
    if costs:
        text = f"Nothing was shown to go unread. Changed in every caption{where}: {costs}."
    pairs = bool(findings) and findings[0].stage == "twins"
    target = ("#twins", "The pairs ↓") if pairs else ("#reading", "What was changed ↓")
    return _answer(context, question, findings, *target, text, stages)


def costs_of_changes(context: ReportContext) -> tuple[str, str]:
    """What the dearest and the cheapest change of every caption cost; and on which of several runs."""
    rows = context.costs()
    ends = [f"{row.name} {_cost(replace(row.figure, digits=0))}" for row in rows[:1] + rows[1:][-1:]]
    where = f" on {context.short(context.ordered[-1])}" if len(context.inputs.runs) > 1 else ""
    return join_words(ends) if ends else "", where


def _cost(figure: Figure) -> str:
    """``cost 8 points [5, 11]``; of one that may cost nothing, that."""
    points = f"{figure.number} point{'s' * (figure.number.lstrip('-') != '1')} {figure.interval}"
    return f"cost {points}" if figure.low > 0 else f"cost nothing that can be told ({points})"


def _labels(context: ReportContext) -> AnsweredQuestion:
    stages, twice = stages_that_answer("labels"), ""
    if context.was_looked_at("label-quality"):
        twice = f": no caption {'and no picture ' if context.inputs.pictures else ''}was found twice"
    answer = _answer(
        context, "Can the labels be trusted?", context.of_stages(stages), "#labels", "Labels ↓",
        f"Nothing speaks against them{twice}.", stages,
    )  # fmt: skip
    return replace(answer, reason=f"{_SILENT} No person has judged them.") if answer.reason == _SILENT else answer


def _answer(
    context: ReportContext, question: str, findings: Sequence[Finding], target: str, link: str, nothing: str = "",
    stages: Sequence[str] = (),
) -> AnsweredQuestion:  # fmt: skip
    """The first finding, as sure as it is; ``nothing`` where these stages found none; else that nobody looked."""
    if not findings:
        if any(map(context.was_looked_at, stages)):
            return AnsweredQuestion(question, nothing, "open", _SILENT, target, link)
        why = context.why_not(stages)
        return AnsweredQuestion(question, f"{_NOT_LOOKED}{f', as {why}' if why else ''}.", "open", "Nobody has looked.")
    first = findings[0]
    text, whose = context.said(first), f"{context.short(first.model)}: " if first.model in context.inputs.runs else ""
    others = [  # of another kind, or another dataset's leader, and as sure
        context.said(finding)
        for finding in findings[1:]
        if (finding.kind != first.kind or (finding.dataset != first.dataset and first.kind == "better"))
        and finding.certainty == first.certainty != "open"
    ]
    text += f" {others[0].removeprefix(whose)}" if others else ""
    if evidence := evidence_address(context, first):
        target, link = evidence, f"The {counted_evidence(first)} ↓"
    return AnsweredQuestion(question, text, first.certainty, first.reason, target, link)

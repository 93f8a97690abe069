"""What the results of an audit say: sentences with figures, the most important first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

from crosslens.core import Figure
from crosslens.metrics import unit_of
from crosslens.pipeline.audit.results import Finding, StageResult
from crosslens.statistics import verdict_words

Payload = Mapping[str, Any]


class WeightedSentence(NamedTuple):
    """A sentence, and how important it is: 0–1."""

    text: str
    importance: float


def _figure(value: float, figure: Payload, unit: str) -> Figure:
    """A share in whole percent; with a decimal where a small share, or what is missing from all, would vanish."""
    digits = 1 if 0 < abs(value) < 0.05 or 0.95 < abs(value) < 1 else 0
    return replace(Figure(None, scale=100.0, digits=digits, unit=unit).of_row(figure), value=value)


def percent(figure: Payload, mean: str = "mean") -> str:
    """``43 % [41, 46]``; with a decimal where a whole number would say nothing: ``0.4 % [0.2, 0.7]``."""
    return str(_figure(figure[mean], figure, " %"))


def share(part: int, whole: int) -> str:
    """``12 %``, of counts."""
    return percent({"mean": part / whole})


def points(value: float, figure: Payload | None = None) -> str:
    """``18 points [15, 21]``: a difference of shares, with the interval of a figure."""
    written = _figure(value, figure or {}, " points")
    return str(replace(written, unit=" point") if written.number == "1 points" else written)


def surely_above(figure: Payload, limit: float = 0.0) -> bool:
    """Whether the whole interval lies above a limit."""
    low = figure.get("low")
    return low is not None and low > limit


def surprise(lost: float, whole: float) -> float:
    """The importance of a loss, in a group or by a change, by its share: half of a figure is 0.85, a quarter 0.75.

    Of a loss that has an interval, its sure part counts. What is said of every run, such as its mean, is below these.
    """
    return round(0.5 + 0.5 * min(1.0, max(0.0, lost / whole) ** 0.5), 4) if whole > 0 else 0.5


_QUERIES = {"t2i": "captions", "i2t": "images", "t2t": "captions"}
_SMALLEST_GROUP = 20
_NOTICEABLE_TIES = 0.005


def evaluated(payload: Payload) -> Iterator[WeightedSentence]:
    """How often the first result is right, and what R@5 would have meant: what everybody expects to be told."""
    metrics = payload["metrics"]
    for direction, importance in (("t2i", 0.55), ("t2t", 0.55), ("i2t", 0.45)):
        first = metrics.get(f"{direction}/Hit@1")
        if first is None or first["mean"] is None:
            continue
        tenth = metrics.get(f"{direction}/Hit@10")
        more = f"; one of the first ten is right for {percent(tenth)}" if tenth else ""
        yield WeightedSentence(
            f"The top result is right for {percent(first)} of {_QUERIES[direction]}{more}.", importance
        )
    hit, recall, capped = (metrics.get(f"i2t/{name}@5") for name in ("Hit", "Recall", "CappedRecall"))
    if hit and recall and capped and hit["mean"] - recall["mean"] >= 0.05:
        yield WeightedSentence(
            f"“R@5” of images may mean Hit@5 ({percent(hit)}), Recall@5 ({percent(recall)}) or CappedRecall@5 "
            f"({percent(capped)}): say which.",
            0.35,
        )
    name = next((name for name in metrics if name.startswith("t2i/NCS[")), None)
    if name is not None and "t2i/Hit@10" in metrics and metrics[name]["mean"] is not None:
        yield WeightedSentence(
            f"By what their captions say, the first ten images are worth {percent(metrics[name])} of the best possible "
            f"ten ({name.split('/')[1]}).",
            0.4,
        )


def tied(payload: Payload) -> Iterator[WeightedSentence]:
    """What the rule for ties decides, where it decides anything."""
    modes = payload["modes"]
    if not {"optimistic", "pessimistic"} <= set(modes):
        return
    for name in ("t2i/Hit@1", "i2t/Hit@1"):
        best, worst = modes["optimistic"].get(name), modes["pessimistic"].get(name)
        if best is None or worst is None:
            continue
        span = best["mean"] - worst["mean"]
        if span > _NOTICEABLE_TIES:
            yield WeightedSentence(
                f"Ties decide {points(span)} of {name}: it is {percent(worst)} if they are all lost and "
                f"{percent(best)} if they are all won.",
                min(0.98, 0.6 + 2 * span),
            )


def grouped(payload: Payload) -> Iterator[WeightedSentence]:
    """The group that is worst off in each column, where the intervals of best and worst do not overlap."""
    for table in payload["groups"]:
        for name in ("t2i/Hit@1", "i2t/Hit@1"):
            groups = {
                group: figure
                for group, figure in table["metrics"].get(name, {}).items()
                if figure["n"] >= _SMALLEST_GROUP and figure["mean"] is not None
            }
            if len(groups) < 2:
                continue
            worst, best = (choose(groups, key=lambda group: groups[group]["mean"]) for choose in (min, max))
            if groups[worst]["high"] is None or not surely_above(groups[best], groups[worst]["high"]):
                continue
            whole = sum(figure["n"] * figure["mean"] for figure in groups.values()) / sum(
                figure["n"] for figure in groups.values()
            )
            yield WeightedSentence(
                f"By {table['by'].replace('_', ' ')}, {name} is lowest for {_group_words(worst, table['by'])}: "
                f"{percent(groups[worst])}, against {percent(groups[best])} for {_group_words(best, table['by'])}.",
                surprise(whole - groups[worst]["high"], whole),
            )


def _group_words(group: str, column: str) -> str:
    """A group as a sentence says it: ``[3, 11)`` of caption lengths is ``3 to 10 words``."""
    lengths = re.fullmatch(r"\[(\d+), (\d+)([)\]])", group) if column == "caption_length" else None
    if lengths is None:
        return group
    shortest, longest = int(lengths[1]), int(lengths[2]) - (lengths[3] == ")")
    return f"{shortest} to {longest} words" if shortest < longest else f"{shortest} words"


def ranked_models(payload: Payload) -> Iterator[WeightedSentence]:
    """Which model is best on each dataset, and whether that could be chance."""
    candidates = (payload.get("primary", ""), "t2i/Hit@1", "i2t/Hit@1")
    metric = next((name for name in candidates if name in payload["metrics"] and unit_of(name) == "share"), None)
    for dataset in payload["datasets"]:
        cells = [cell for cell in payload["cells"] if cell["dataset"] == dataset and cell["metric"] == metric]
        best = next((cell for cell in cells if cell["best"]), None)
        others = [cell for cell in cells if cell["difference"] is not None]
        if best is None or not others:
            continue
        second = min(others, key=lambda cell: abs(cell["difference"]))
        images, smallest = second.get("images") or 0, second.get("smallest_p") or 0.0
        verdict = verdict_words(0.0 if second["significant"] else 1.0, smallest, images)
        where = f"On {dataset}, " if len(payload["datasets"]) > 1 else ""
        yield WeightedSentence(
            f"{where}{best['model']} is best by {metric} with {percent(best)}, "
            f"{points(abs(second['difference']))} ahead of {second['model']}: {verdict}.",
            0.6 if second["significant"] else 0.9,
        )


def hard_cases(payload: Payload) -> Iterator[WeightedSentence]:
    """How often the right caption wins against nearly right ones, beside chance."""
    for result in payload["results"]:
        figures = [figure for figure in result["figures"] if figure["value"] is not None]
        overall = next((figure for figure in figures if figure["grouping"] == "all"), None)
        if overall is None:
            continue
        text = f"Against captions that are nearly right, the right one wins in {percent(overall, 'value')} of cases"
        text += f" (chance: {100 * overall['chance']:.0f} %)"
        groups = [figure for figure in figures if figure["grouping"] not in ("all", "macro")]
        if len(groups) > 1:
            worst = min(groups, key=lambda figure: figure["value"])
            lowest = replace(_figure(worst["value"], worst, " %"), digits=0)
            text += f", least often for {worst['category']}: {lowest}"
        yield WeightedSentence(f"{text}.", 0.6 if surely_above(overall, overall["chance"]) else 0.9)


_FEW_WORDS = 8


def fine_grained(payload: Payload) -> Iterator[WeightedSentence]:
    """How long captions are, and how many adjectives they have."""
    for dataset in payload["datasets"]:
        features = dataset["features"]
        words, adjectives = (features.get(name, {}).get("mean") for name in ("words", "adjectives"))
        if words is not None and adjectives is not None:
            coarse = words < _FEW_WORDS
            yield WeightedSentence(
                f"Captions of {dataset['name']} have {words:.1f} words and {adjectives:.1f} adjectives on average"
                f"{': too few to tell similar images apart' if coarse else ''}.",
                0.4 if coarse else 0.15,
            )


def hard_pairs(payload: Payload) -> Iterator[WeightedSentence]:
    """How many pairs no model recognises as a match."""
    hard = payload["levels"].get("hard")
    if hard is None or hard["share"] is None:
        return
    models = len(payload["models"])
    who = "the model does not" if models == 1 else f"none of the {models} models does"
    yield WeightedSentence(f"{percent(hard, 'share')} of pairs are hard: {who} score them as a match.", 0.3)


def diverse_captions(payload: Payload) -> Iterator[WeightedSentence]:
    """How the distance of captions grows with the neighbourhood."""
    for dataset in payload["datasets"]:
        curves = [row for row in dataset["curves"] if row["caption_distance"]["mean"] is not None]
        if len(curves) < 2:
            continue
        first, last = curves[0], curves[-1]
        yield WeightedSentence(
            f"The captions of an image's {last['R']} most similar images are "
            f"{last['caption_distance']['mean'] / first['caption_distance']['mean']:.2f} times as far from it as those "
            f"of the {'single' if first['R'] == 1 else first['R']} most similar one.",
            0.1,
        )


_CHANGES: Mapping[str, str] = {
    "char_swap": "Swapping two letters",
    "missing_char": "Leaving out a letter",
    "extra_char": "Typing a letter too many",
    "nearby_char": "Hitting a neighbouring key",
    "synonym_noun": "Using synonyms of nouns",
    "synonym_adj": "Using synonyms of adjectives",
    "distraction_true": "Appending “and true is true”",
    "distraction_false": "Appending “and false is false”",
    "shuffle_nouns_and_adj": "Shuffling nouns and adjectives",
    "shuffle_all_words": "Shuffling all words",
    "shuffle_allbut_nouns_and_adj": "Shuffling all words but nouns and adjectives",
    "shuffle_within_trigrams": "Shuffling words within groups of three",
    "shuffle_trigrams": "Shuffling groups of three words",
    "antonym": "Turning adjectives into their opposite",
    "color_all": "Changing a colour",
    "color_in": "Changing a colour to another common one",
    "size": "Turning large into small",
}
_CAUSES: Mapping[str, str] = {
    "object": "an object that the caption names is missing",
    "count": "the number of objects is wrong",
    "colour": "a colour is wrong",
    "size": "a size is wrong",
    "position": "a position is wrong",
    "action": "an action is wrong",
    "detail": "a detail is missing",
}
_METRIC = "t2i/Hit@1"
_MAY_CHANGE = ("shuffle_", "antonym", "color_", "size", "verb_antonym", "number_change")
"""Changes after which a caption may mean something else: a small drop is then no merit."""


def brittle(payload: Payload) -> Iterator[WeightedSentence]:
    """What each perturbation costs; of those that scramble the meaning, where it costs nothing."""
    for row in payload["drops"]:
        if row["metric"] != _METRIC or row["drop"] is None:
            continue
        name = row["perturbation"]
        change = _CHANGES.get(name, f"The change {name}")
        if surely_above(row):
            cost = f"{change} costs {points(row['drop'], row)} of {_METRIC}"
            half = ": more than half of it" if row["drop"] > row["before"] / 2 else ""
            yield WeightedSentence(
                f"{cost}, which was {percent({'mean': row['before']})}{half}.", surprise(row["low"], row["before"])
            )
        elif name.startswith(_MAY_CHANGE) and (row["applied_share"] or 0) > 0.5 and row["before"] > 0.1:
            what = "reads word order" if name.startswith("shuffle_") else "notices"
            yield WeightedSentence(f"{change} costs nothing measurable: the model hardly {what}.", 0.8)


def explained(payload: Payload) -> Iterator[WeightedSentence]:
    """The most frequent main cause of failures, and the most frequent confusion."""
    if not payload["failures"]:
        return
    causes = [row for row in payload["causes"] if row["cause"] in _CAUSES and row["main_share"]]
    if causes:
        first, *others = sorted(causes, key=lambda row: -row["main_share"])
        misses = f"{payload['failures']:,} misses{' of a sample' if payload.get('sampled') else ''}"
        text = f"In {100 * first['main_share']:.0f} % of the {misses} {_CAUSES[first['cause']]}"
        if others:
            text += f"; in {100 * others[0]['main_share']:.0f} % {_CAUSES[others[0]['cause']]}"
        yield WeightedSentence(f"{text}.", 0.56)
    if payload["query_atlas"]:
        pair = payload["query_atlas"][0]
        yield WeightedSentence(
            f"The most frequent confusion: asked for {_word(pair['expected'])}, shown {_word(pair['shown'])} "
            f"({pair['count']:,} times).",
            0.25,
        )


def _word(synset: str) -> str:
    return synset.split(".")[0].replace("_", " ")


def counted_relevance(payload: Payload) -> Iterator[WeightedSentence]:
    """Whether the choice of m changes which run is ahead."""
    counts, runs = payload["m"], payload["runs"]
    if len(runs) < 2:
        return
    leaders = [max(runs, key=lambda run: runs[run]["SR"][index]["mean"] or 0) for index in range(len(counts))]
    if len(set(leaders)) > 1:
        changed = next(index for index, leader in enumerate(leaders) if leader != leaders[0])
        yield WeightedSentence(
            f"Which model is ahead by semantic recall depends on m: {leaders[0]} at {counts[0]}, {leaders[changed]} at "
            f"{counts[changed]}.",
            0.55,
        )


_SENTENCES: Mapping[str, Callable[[Payload], Iterable[WeightedSentence]]] = {
    "evaluate": evaluated,
    "ties": tied,
    "groups": grouped,
    "granularity": fine_grained,
    "robustness": brittle,
    "hard-negatives": hard_cases,
    "explain": explained,
    "polysemy": diverse_captions,
    "difficulty": hard_pairs,
    "curve": counted_relevance,
    "leaderboard": ranked_models,
}


_FADING = 0.8
"""How much less each further finding of a stage matters: ten lines should say ten things."""
_NOT_BEST = 0.75
"""How much less a finding about a run matters that is not the best on its dataset."""


def findings_of(results: Iterable[StageResult]) -> tuple[Finding, ...]:
    """What the results say, the most important first; of stages that nothing is known about, nothing."""
    results = list(results)
    means: dict[str, dict[str, float]] = {}
    for result in results:
        metrics = result.payload.get("metrics", {}) if result.stage == "evaluate" else {}
        figure = metrics.get("t2i/Hit@1") or metrics.get("i2t/Hit@1") or {}
        if figure.get("mean") is not None:
            means.setdefault(result.dataset, {})[result.model] = figure["mean"]
    behind = {run for runs in means.values() for run, mean in runs.items() if mean < max(runs.values())}
    by_stage: dict[str, list[Finding]] = {}
    for result in results:
        for text, importance in _SENTENCES[result.stage](result.payload) if result.stage in _SENTENCES else ():
            weight = importance * (_NOT_BEST if result.model in behind else 1)
            finding = Finding(text, weight, result.stage, result.model, result.dataset)
            by_stage.setdefault(result.stage, []).append(finding)
    by_importance = attrgetter("importance")
    faded = [
        replace(finding, importance=round(finding.importance * _FADING**number, 4))
        for findings in by_stage.values()
        for number, finding in enumerate(sorted(findings, key=by_importance, reverse=True))
    ]
    return tuple(sorted(faded, key=by_importance, reverse=True))

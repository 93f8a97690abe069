"""How a robustness study is shown: heat maps, drops by model, where queries go, which words matter, what is brittle."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import polars as pl

from crosslens.core import (
    Cards,
    Cell,
    EvidenceList,
    Figure,
    Folded,
    Interval,
    Intervals,
    PairedBar,
    PairedBars,
    Part,
    PictureCard,
    QueryCard,
    QueryCards,
    Row,
    Section,
    Table,
    Text,
    Tone,
    UnknownNameError,
)
from crosslens.explanations import first_relevant
from crosslens.metrics import facts_of, format_count, format_figure, metric_figure, unit_sentence
from crosslens.perturbations import phrase_of
from crosslens.pipeline.protocols.protocol import protocol_facts
from crosslens.pipeline.robustness_study.drop_table import (
    PERCENT_SENTENCE,
    drop_maps,
    drop_table,
    percent_figure,
    table_of_drops,
    table_of_tests,
)
from crosslens.pipeline.robustness_study.tables import (
    CHANGE_FIGURES,
    CHANGE_GROUPS,
    POOLED,
    StudyTables,
    direction_rsum,
)
from crosslens.statistics import significance_sentence
from crosslens.values import Ranking, split_name

_FOLDED = ("metrics", "groups")
"""Tables that are printed only by name; pages have them under a line to click on."""
_MIN_CAPTIONS = 10
"""Fewer edited captions than this say nothing about a part of speech."""
_MOST_BRITTLE, _WORST = 3, 2
_PARTS_OF_SPEECH = {
    "NOUN": "noun", "PROPN": "proper noun", "VERB": "verb", "ADJ": "adjective", "ADV": "adverb", "ADP": "preposition",
    "DET": "determiner", "NUM": "number", "PRON": "pronoun", "AUX": "auxiliary", "CCONJ": "conjunction",
    "SCONJ": "subordinator", "PART": "particle", "PUNCT": "punctuation", "INTJ": "interjection", "SYM": "symbol",
    "X": "other", "SPACE": "space",
}  # fmt: skip
Values = dict[str, Any]


def check_tables(names: Iterable[str]) -> None:
    """Raise for a name that no table of a study has."""
    for name in names:
        if name not in ROBUSTNESS_TABLES:
            raise UnknownNameError("table", name, ROBUSTNESS_TABLES)


def study_sections(study: StudyTables) -> Iterator[Section]:
    """The dataset and the heat maps, then a section per table, those without content left out."""
    data, protocol = study.about.get("dataset", {}), study.about.get("protocol", {})
    count = study.drops.filter(pl.col("metric") == direction_rsum(study.direction))["queries"][0]
    queries = format_count(count, "image" if study.direction == "i2t" else "caption")
    phrases = {"t2t": "query the other captions of their images", "t2i": "query their images"}
    if sets := study.about.get("text_sets"):
        queries = format_count(count, "query")
        phrases["t2t"] = f"from {sets['queries']['name']} for the texts of its images"
    summary = (
        f"{data.get('name', 'Ranked lists')}: {queries} {phrases.get(study.direction, 'query their captions')}, "
        f"{format_count(len(study.models), 'model')}, {format_count(len(study.perturbations), 'perturbation')}"
        + (f", protocol {protocol['name']}" if protocol else "")
    )
    yield Section("", (Text.of(summary), Row(drop_maps(drop_table({"": study}, study.headline)))))
    check_tables(study.shown or ())
    for name in ROBUSTNESS_TABLES if study.shown is None else study.shown:
        title, tables, notes = ROBUSTNESS_TABLES[name](study)
        if tables and study.shown is None and name in _FOLDED:
            # Their own titles say what the section's would.
            folded = (replace(part, title=f"{title}: {part.title}", notes=tuple(notes), folded=True)
                      for part in tables if isinstance(part, Table))  # fmt: skip
            yield Section("", tuple(folded))
        elif tables:
            yield Section(title, (*tables, Text.of(*notes, note=True)))
    if protocol:
        yield Section("", (protocol_facts(protocol),))


def drop_strip(study: StudyTables) -> Section:
    """What every perturbation costs of Hit@1, or of the headline where that was not measured, on one scale."""
    metric = f"{study.direction}/Hit@1"
    metric = metric if metric in study.drops["metric"].to_list() else study.headline
    rows = tuple(
        Interval(
            metric_figure(metric, None).of_row(row, "drop"),
            phrase_of(row["perturbation"]),
            tone="bad" if row["low"] > 0 else "good" if row["high"] < 0 else "unsure",
            address=f"#{_target('lost', row['perturbation'])}" if row["drop"] > 0 and metric.endswith("/Hit@1") else "",
        )
        for row in _of_metric(study, metric)
    )
    title = f"What changing every caption costs: points of {metric} lost"
    return Section("", (Intervals(title=title, rows=rows, mark=0.0, heading="change"),))


_LEVELS: tuple[tuple[str, Tone], ...] = (
    ("still first", "good"), ("no longer first", "bad"), ("first only when changed", ""), ("never first", "unsure")
)  # fmt: skip
_MOST_CARDS, _MOST_LISTED, _MOST_OPEN = 2, 40, 4
"""Behind a bar: cards, and captions in each list; and of how many bars the fold is open."""


def changed_captions(study: StudyTables, rankings: Mapping[str, Ranking]) -> Section:
    """What became of every caption when it was changed: examples with the picture that then comes first.

    ``rankings`` are those of the only model after each perturbation, text to image.
    """
    texts = _first_seed(study.captions).select("perturbation", "original", "text", query="caption")
    table = _first_seed(study.queries).join(texts, ["perturbation", "query"], maintain_order="left")
    bars = []
    for perturbation in study.perturbations:
        rows = table.filter((pl.col("perturbation") == perturbation) & ~pl.col("rank_before").is_nan().fill_null(False))
        if rows.height:
            bars.append(_bar(perturbation, rows.to_dicts(), rankings[perturbation]))
    chart = PairedBars(
        title="What became of every caption", rows=tuple(bars), levels=_LEVELS, heading="changed", noun="captions",
        about="Whether the right picture comes first with the caption as it is, and as it was changed.",
    )  # fmt: skip
    title = "Captions before and after, and what then comes first"
    return Section("", (Folded(title, (chart,), open=len(bars) <= _MOST_OPEN, paper=True),) if bars else ())


def _target(kind: str, perturbation: str) -> str:
    """The place of the captions that a perturbation loses or gains, in a page's address."""
    return f"{kind}-{re.sub(r'[^a-z0-9]+', '-', perturbation.lower()).strip('-')}"


def _bar(perturbation: str, rows: list[Values], ranking: Ranking) -> PairedBar:
    """How many captions keep, lose and gain their picture, and which; those that fall deepest first."""
    outcomes: dict[tuple[bool, bool], list[Values]] = {
        (True, True): [], (True, False): [], (False, True): [], (False, False): []
    }  # fmt: skip
    for row in rows:
        outcomes[row["rank_before"] == 1, row["rank_after"] == 1].append(row)
    lost, gained = outcomes[True, False], outcomes[False, True]
    lost.sort(key=lambda row: (-(row["rank_after"] or float("inf")), row["query"]))
    row_of = {query: number for number, query in enumerate(ranking.query_ids)}
    right, _ = first_relevant(ranking)

    def pictures(row: Values) -> tuple[str, str]:
        """What comes first when the caption is changed, and the right picture."""
        number = row_of[row["query"]]
        return ranking.item_ids[ranking.top_items[number, 0]], ranking.item_ids[right[number]]

    def card(row: Values) -> QueryCard:
        first, relevant = pictures(row)
        rank_words = "not in the list" if row["rank_after"] is None else f"rank {row['rank_after']:,.0f}"
        sides = (PictureCard("first", (), first, "wrong"), PictureCard(rank_words, (), relevant, "right"))
        name, facts = f"{row['query']} {perturbation}", (f"caption {row['query']}",)
        return QueryCard(name, row["text"], sides, (f"As written it finds it: “{row['original']}”",), facts)

    lists = []
    for kind, (words, _), part in zip(("lost", "gained"), _LEVELS[1:3], (lost, gained), strict=True):
        more = f", the first {_MOST_LISTED}" if len(part) > _MOST_LISTED else ""
        entries = tuple((row["query"], f"“{row['original']}” → “{row['text']}”") for row in part[:_MOST_LISTED])
        lists.append(
            EvidenceList(_target(kind, perturbation), f"{format_count(len(part), 'caption')}: {words}{more}", entries)
        )
    shortest = min(lost or rows, key=lambda row: (row["original"] == row["text"], len(row["original"]), row["query"]))
    cards = tuple(map(card, lost[:_MOST_CARDS]))
    return PairedBar(
        phrase_of(perturbation), tuple(map(len, outcomes.values())),
        about=f"“{shortest['original']}” → “{shortest['text']}”", pictures=pictures(shortest) if lost else (),
        details=(*([QueryCards(cards)] if cards else []), *(part for part in lists if part.entries)),
    )  # fmt: skip


Shown = tuple[str, Sequence[Part], Sequence[str]]
"""A heading, what is below it, and sentences that say what that is."""


def _models(study: StudyTables) -> Shown:
    """The heat map as a table, where there are several models."""
    if len(study.models) < 2:
        return "", (), ()
    table = drop_table({"": study}, study.headline)
    drops = replace(table_of_drops(table, intervals=False), notes=())  # those of every model have them
    tests = [table_of_tests(table)] if table.tests else []
    return f"Drop of {study.headline}, all models", [drops, *tests], ()


def _drops(study: StudyTables) -> Shown:
    tables, testing = [], study.testing
    for model, rows in _by_model(study, _of_metric(study, study.headline)):
        columns: dict[str, list[Cell]] = {
            "perturbation": [row["perturbation"] for row in rows],
            "points lost": [metric_figure(study.headline, None).of_row(row, "drop") for row in rows],
            "% lost": [percent_figure(row) for row in rows],
            "applied": [Figure.percent(row["applied_share"], unit="%") for row in rows],
            # A tenth: one decimal less than the test could give.
            "p": [Figure.p(row["adjusted_p"], testing.permutations // 10) for row in rows],
        }
        if not _knows_changes(study):
            del columns["applied"]
        before = format_figure(study.headline, rows[0]["before"])
        lines = tuple(zip(*columns.values(), strict=True))
        tables.append(Table(tuple(columns), lines, title=f"{model}: {study.headline} {before} before"))
    share = f"{100 * testing.level:g}%"
    direction, name = split_name(study.headline)
    half = f" It is Hit@1 + Hit@5 + Hit@10 of {direction}, in percent." if name != study.headline else ""
    tests = len(study.models) * study.drops.select("perturbation", "seed").n_unique()
    applied = "Applied: the share of captions that changed. " if _knows_changes(study) else ""
    test = significance_sentence("paired permutation test over images", testing.permutations, testing.correction, tests)
    note = (
        f"Lost: before − after, in points and in {PERCENT_SENTENCE} Below 0 it is gained.{half} In brackets: {share} "
        "interval over images; that of percent is of the ratio, with the figures before and after from the same "
        f"images. {applied}{test}"
    )
    return f"Drop of {study.headline}", tables, (note,)


def _applied(study: StudyTables) -> Shown:
    """The drop over the queries that changed, where some did not; of one direction, as images mix their captions."""
    metric = direction_rsum(study.direction)
    rows = [row for row in _of_metric(study, metric) if row["applied_share"] < 1 and row["applied"]]
    tables = _tables(
        study, rows, ("perturbation", "applied to", "lost over those"),
        lambda row: (
            row["perturbation"], row["applied"],
            metric_figure(metric, None).of_row(row, "applied_drop", "applied_"),
        ),
    )  # fmt: skip
    return f"Drop of {metric} where it applied", tables, ()


def _tables(
    study: StudyTables, rows: list[Values], header: tuple[str, ...], line: Callable[[Values], tuple[Cell, ...]]
) -> list[Table]:
    """A table per model, with a line for each of its rows."""
    return [Table(header, tuple(map(line, model_rows)), title=model) for model, model_rows in _by_model(study, rows)]


def _seeds(study: StudyTables) -> Shown:
    """With several seeds: how much the drop depends on chance."""
    spread = study.spread.filter(pl.col("metric") == study.headline).to_dicts()
    keys = ("mean", "deviation", "lowest", "highest")
    tables = _tables(
        study,
        spread,
        ("perturbation", "mean drop", "deviation", "lowest", "highest"),
        lambda row: (row["perturbation"], *(metric_figure(study.headline, row[key]) for key in keys)),
    )
    tables = [replace(table, title=f"{table.title}, {spread[0]['seeds']} seeds") for table in tables]
    note = "The drop under several seeds of the perturbations; the other tables are of the first seed."
    return f"Drop of {study.headline} over seeds", tables, (note,)


def _metrics(study: StudyTables) -> Shown:
    """Every chosen metric after, and its drop."""
    names = [name for name in study.drops["metric"].unique(maintain_order=True) if name != study.headline]
    tables = []
    for model, rows in _by_model(study, _first_seed(study.drops).to_dicts()):
        cells = {(row["perturbation"], row["metric"]): row for row in rows}
        first = study.perturbations[0]
        lines: list[tuple[Cell, ...]] = [
            ("original", *(metric_figure(name, cells[first, name]["before"]) for name in names))
        ]
        for variant in study.perturbations:
            figures = []
            for name in names:
                before, after = float(cells[variant, name]["before"]), cells[variant, name]["after"]
                change = metric_figure(name, float(after) - before, signed=True)
                figures.append(replace(metric_figure(name, after), mark=f"({change})"))
            lines.append((variant, *figures))
        titles = tuple(name + ("" if facts_of(name).higher_is_better else " ↓") for name in names)
        tables.append(Table(("perturbation", *titles), tuple(lines), title=model))
    note = f"The figure after, and in brackets after − before. {unit_sentence(names)}" if names else ""
    return "Every metric", tables, (note,)


def _changes(study: StudyTables) -> Shown:
    tables = []
    for model, rows in _by_model(study, study.changes.to_dicts()):
        moves = tuple(
            (row["perturbation"], row["changed"],
             *(Figure.percent(row[way], unit="%") for way in ("lower", "higher", "same")),
             Figure(row["up_while_similarity_down"], digits=0))
            for row in rows
        )  # fmt: skip
        tables.append(Table(("perturbation", "changed", "lower", "higher", "same", "odd"), moves, title=model))
        lines = [("original", rows[0], "before"), *((row["perturbation"], row, "after") for row in rows)]
        figures: tuple[tuple[Cell, ...], ...] = tuple(
            (name, *(Figure.percent(row[f"{figure} {when}"], unit="%") for figure in CHANGE_FIGURES))
            for name, row, when in lines
        )
        tables.append(Table(("over all queries", *CHANGE_FIGURES[:-1], "Fails ↓"), figures))
    note = (
        "Changed: queries that the perturbation applied to. Lower, higher, same: the share of those whose right answer "
        "is ranked lower (a larger rank), higher, or the same. Odd: ranked higher although its own "
        "similarity to the query went down."
    )
    return "Where changed queries go", tables, (note,)


def _groups(study: StudyTables) -> Shown:
    tables = _tables(
        study, study.changes.to_dicts(), ("perturbation", *CHANGE_GROUPS),
        lambda row: (row["perturbation"], *(row[group] for group in CHANGE_GROUPS)),
    )  # fmt: skip
    return "Queries by score", tables, ("The score of a query is Hit@1 + Hit@5 + Hit@10, from 0 to 3.",)


def _overlap(study: StudyTables) -> Shown:
    values = {(row["model"], row["group"]): row for row in study.overlap.to_dicts()}
    if not values:
        return "", (), ()
    edits_known = _knows_changes(study)
    cells = [(group, column) for column in ("jaccard", "among_changed")[: 1 + edits_known] for group in CHANGE_GROUPS]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (model, *(Figure(values[model, group][column], digits=4) for group, column in cells)) for model in study.models
    )
    header = ("model", *CHANGE_GROUPS, *(("decr.*", "incr.*", "unch.*") if edits_known else ()))
    starred = "With *: only queries that both of a pair changed. " if edits_known else ""
    note = (
        "Jaccard similarity of the sets of queries whose score (Hit@1 + Hit@5 + Hit@10) decreased, increased or "
        f"stayed, mean over all pairs of perturbations but those whose sets are both empty. {starred}Scores and groups "
        "are those of the paper on brittleness; which pairs its table averages is not published."
    )
    return "Do perturbations hit the same queries?", [Table(header, rows)], (note,)


def _words(study: StudyTables) -> Shown:
    """Per model, what typos cost by the part of speech they fall on; without typos, every perturbation of words."""
    words = study.words.filter(pl.col("captions") >= _MIN_CAPTIONS)
    pooled = words.filter(pl.col("perturbation") == POOLED)
    typos = pooled.height > 0
    tables = []
    for model, rows in _by_model(study, (pooled if typos else words).sort("change").to_dicts()):
        lines = []
        for row in rows:
            part = _PARTS_OF_SPEECH.get(row["part_of_speech"], row["part_of_speech"])
            name = part if typos else f"{part} ({row['perturbation']})"
            lost = metric_figure("Rsum", -row["change"], -row["high"], -row["low"])
            lines.append((name, row["captions"], lost, Figure.percent(row["decreased"], unit="%")))
        header = ("a typo in a" if typos else "an edit of a", "captions", "lost", "decreased")
        tables.append(Table(header, tuple(lines), title=model))
    note = (
        "What the score of a caption loses on average when a word of this kind is edited, in points of half an Rsum (a "
        "caption at rank 1 scores 300), with its interval; decreased: the share of those captions that lose "
        f"score. Parts of speech with fewer than {_MIN_CAPTIONS} captions are left out."
    )
    return "Which words matter most?", tables, (note,)


def _captions(study: StudyTables) -> Shown:
    """The most brittle captions of each model: what they say, and the perturbations that hurt most."""
    worst = study.brittle.filter(pl.col("place") <= _MOST_BRITTLE).sort(
        "place", "rank_after", descending=[False, True], nulls_last=False, maintain_order=True
    )

    def rank(row: Values, when: str) -> str:
        position = row[f"rank_{when}"]
        return "beyond the list" if position is None else f"{position:,.0f}"

    parts = []
    for model, rows in _by_model(study, worst.to_dicts()):
        cards = []
        for order, variants in groupby(rows, key=lambda row: row["place"]):
            several = list(variants)
            first = several[0]
            lines = [first["original"]] if first["original"] else []
            for row in several[:_WORST]:
                line = f"{phrase_of(row['perturbation'])}: rank {rank(row, 'before')} → {rank(row, 'after')}"
                lines.append(f"{line}: {row['text']}" if row["text"] and row["text"] != row["original"] else line)
            before = f"rank {rank(first, 'before')}, mean drop {first['mean_drop']:.2f} of 3"
            cards.append(PictureCard(f"{order}. {first['query']}: {before}", tuple(lines)))
        parts.append(Cards(model, tuple(cards)))
    queries = "images" if study.direction == "i2t" else "captions"
    note = "Mean drop: of Hit@1 + Hit@5 + Hit@10, over all perturbations."
    return f"The most brittle {queries}", parts, (note,)


def _first_seed(table: pl.DataFrame) -> pl.DataFrame:
    return table.filter(pl.col("seed") == table["seed"][0]) if table.height else table


def _of_metric(study: StudyTables, metric: str) -> list[Values]:
    """The drops of a metric; over several seeds, the first one's."""
    return _first_seed(study.drops).filter(pl.col("metric") == metric).to_dicts()


def _by_model(study: StudyTables, rows: list[Values]) -> list[tuple[str, list[Values]]]:
    each = [(model, [row for row in rows if row["model"] == model]) for model in study.models]
    return [(model, model_rows) for model, model_rows in each if model_rows]


def _knows_changes(study: StudyTables) -> bool:
    """Whether it is known which captions changed: not from ranked lists alone."""
    return bool(study.drops["applied_share"].is_finite().any())


ROBUSTNESS_TABLES: dict[str, Callable[[StudyTables], Shown]] = {
    "models": _models,
    "drops": _drops,
    "applied": _applied,
    "seeds": _seeds,
    "metrics": _metrics,
    "changes": _changes,
    "groups": _groups,
    "overlap": _overlap,
    "words": _words,
    "captions": _captions,
}
"""Name → what it shows, in order."""

"""All failures of one run: how the concepts of relevant and retrieved images differ, causes, and confused concepts.

Saved as a folder:

``failures.parquet``     one row per failure: every metric, query-agnostic and query-informed, and every cause
``overview.json``        means, correlations, causes, rules, the most frequent confusions, settings and notes
``confusions.parquet``   which concepts are confused with which; ``query-confusions.parquet``: asked and shown
``rules.csv``            association rules between causes
``comparison.json``      only of two runs: where they fail differently
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.core import (
    Cell,
    EvidenceList,
    Figure,
    Folded,
    Heat,
    InputError,
    PairedBar,
    PairedBars,
    Presented,
    Section,
    Table,
    Text,
    argument,
)
from crosslens.engine import Progress
from crosslens.explanations.causes import (
    CAUSES,
    cause_column,
    cause_numbers,
    cause_shares,
    cause_table,
    judge_failures,
    limitations,
    texts_of,
)
from crosslens.explanations.failures import failed, query_outcomes, ranking_of
from crosslens.explanations.lexicon import hypernym_path, plain_name, synset_word
from crosslens.explanations.mentions import QueryMentions, mentioned_concepts
from crosslens.explanations.objects import objects_of
from crosslens.explanations.statistics import (
    QUERY,
    SCOPES,
    association_rules,
    column_of,
    concept_pairs,
    count_confusions,
    metric_correlations,
    metric_means,
)
from crosslens.language import load_wordnet
from crosslens.metrics import format_count
from crosslens.statistics import Bootstrap
from crosslens.storage import Layout, atomic_folder, for_spreadsheets, json_form, other_content, parquet_bytes
from crosslens.values import Dataset, Ranking, Run

TOP = 20
"""Confusions that a summary lists; all of them are a table of its own."""
_MOST_CONFUSIONS, _FEWEST_CONFUSIONS, _ENOUGH_TO_CLAIM = 8, 2, 5
"""Confusions with a bar; how often they occur at least; and from how many on a heading says so."""
_TOTALS: dict[str, Any] = {
    "scope": pl.String,
    **dict.fromkeys(("common_synsets", "non_common_synsets", "matchings"), pl.Int64),
    **dict.fromkeys(("same_multiplicity", "different_multiplicities"), pl.Int64),
    **dict.fromkeys(("same_share", "different_share"), pl.Float64),
    **dict.fromkeys(("most_common_CE", "most_common_CE_failures"), pl.Int64),
}
_SUMMARY, _COMPARISON = "overview.json", "comparison.json"
_LAYOUT = Layout(
    "an overview of failures",
    _SUMMARY,
    ("failures.parquet", "confusions.parquet", "query-confusions.parquet", "rules.csv", _COMPARISON),
)


@dataclass(frozen=True, eq=False)
class Overview(Presented):
    """The summary of all failures of a run.

    ``queries``       every answered query and its relevant image; ``failures`` those that failed, with every metric
                      (those that begin with "query " count only what the query mentions) and cause
    ``metrics``       means and intervals; ``correlations`` of metrics with each other and with the rank
    ``totals``        synsets, matchings and multiplicities over all failures together
    ``causes``        the share of failures by cause; ``cause_numbers`` by how many causes they have; ``rules`` between
                      causes
    ``confusions``    which concepts are confused; ``query_confusions`` what was asked for, and what was shown instead
    ``pairs``         the matched concepts behind the confusions, by failure
    ``notes``         what the annotation cannot decide
    ``names``         what the dataset calls a synset, where that is one name
    ``listed``        how many rules and confusions are shown
    """

    run: str
    dataset: str
    direction: str
    source: str
    queries: pl.DataFrame
    failures: pl.DataFrame
    metrics: pl.DataFrame
    correlations: pl.DataFrame
    causes: pl.DataFrame
    cause_numbers: pl.DataFrame
    rules: pl.DataFrame
    pairs: pl.DataFrame
    confusions: pl.DataFrame
    query_confusions: pl.DataFrame
    notes: tuple[str, ...] = ()
    depth: int | None = None
    level: float = 0.95
    resamples: int = 1000
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    listed: int = 10

    @cached_property
    def totals(self) -> pl.DataFrame:
        """One row per scope: what EXPL counts over all failures together (its section on global evaluation).

        ``common_synsets`` and ``non_common_synsets`` of the two images, ``matchings`` of the latter in pairs; how many
        common synsets have the ``same_multiplicity`` in both images or ``different_multiplicities``, and their shares;
        ``most_common_CE``, the smallest of several, and in how many failures it is CE.
        """
        tallies = ("common", "missing", "extra", "concept_pairs", "wrong_counts")
        rows = []
        for scope in SCOPES:
            sums = (int(self.failures[column_of(name, scope)].sum()) for name in tallies)
            common, missing, extra, matchings, different = sums
            values = self.failures[column_of("CE", scope)].drop_nulls().to_numpy()
            errors, counts = np.unique(values, return_counts=True)
            most = int(counts.argmax()) if counts.size else None
            multiplicities = (common - different, different)
            shares = (count / common if common else None for count in multiplicities)
            error = (None, 0) if most is None else (int(errors[most]), int(counts[most]))
            rows.append((scope, common, missing + extra, matchings, *multiplicities, *shares, *error))
        return pl.DataFrame(rows, schema=_TOTALS, orient="row")

    @property
    def title(self) -> str:
        return f"Why {self.run} fails"

    def sections(self) -> Iterator[Section]:
        """Both maps of confusions, then a table per question; those that would be empty are left out."""
        whole, failing = self.queries.height, self.failures.height
        head = (
            f"{self.run} on {self.dataset}: {failing:,} of {format_count(whole, 'query')} failed "
            f"({100 * failing / whole:.1f}%), {self.direction}; concepts from {self.source}"
        )
        query_title = "Query concepts, and what was retrieved instead"
        maps = [
            confusion_map(self, confusions, title)
            for confusions, title in ((self.confusions, "Confused concepts"), (self.query_confusions, query_title))
            if confusions.height
        ]
        yield Section("", (Text.of(head), *maps))
        bars = confusion_bars(self)
        if bars is not None:
            yield Section("", (bars,))
        kinds = "" if self.depth is None else f", {self.depth} steps below the top of WordNet's tree"
        confused = replace(table_of_confusions(self.confusions, self.listed, self.names), notes=(
            "times: failures whose right image has the first and whose retrieved image has the second instead; lift: "
            "how much more often than chance; (2): the word's second sense in WordNet.",
        ))  # fmt: skip
        tables = {
            "Right and retrieved image, mean over failures": _table_of_metrics(self),
            "Over all failures together": table_of_totals(self.metrics.to_dicts(), self.totals.to_dicts()),
            "Causes": _table_of_causes(self),
            "Number of causes": _table_of_cause_numbers(self),
            "Rules": table_of_rules(self.rules, self.listed),
            f"Confused with{kinds}": confused,
            f"{query_title}{kinds}": table_of_confusions(self.query_confusions, self.listed, self.names),
            "Correlations over failures": table_of_correlations(self),
        }
        for title, table in tables.items():
            if table.rows:
                yield Section(title, (table,))
        yield from self.limits()

    def limits(self) -> Iterator[Section]:
        """What the annotation cannot decide."""
        if self.notes:
            yield Section("Limits of these facts", (Text.of(*self.notes, note=True),))

    def as_dict(self) -> dict[str, Any]:
        names = ("run", "dataset", "direction", "source", "depth", "level", "resamples", "seed")
        table_names = ("metrics", "totals", "correlations", "causes", "cause_numbers", "rules")
        return json_form(
            {
                "format": "crosslens/explain-overview",
                "version": 1,
                **{name: getattr(self, name) for name in names},
                "queries": self.queries.height,
                "failures": self.failures.height,
                "settings": self.settings,
                **{name: getattr(self, name) for name in table_names},
                "confusions": self.confusions.head(TOP),
                "query_confusions": self.query_confusions.head(TOP),
                "notes": self.notes,
            }
        )

    def __repr__(self) -> str:
        return f"<Overview of {self.run}: {self.failures.height:,} failures of {self.queries.height:,} queries>"


def explain_run(
    run: Run | Mapping[str, Ranking],
    dataset: Dataset,
    direction: str | None = None,
    *,
    depth: int | None = None,
    threshold: float = 1.0,
    base: str = "ground_truth",
    areas: str = "share",
    minimum: int = 5,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
) -> Overview:
    """Explain every failure of a run, and summarise them.

    ``depth`` replaces the concepts of the confusions by their hypernyms that many steps below the root of WordNet.
    ``threshold``, ``base`` and ``areas`` are those of the size metrics; ``minimum`` is how often a cause must occur to
    be part of a rule. Intervals resample images.
    """
    from crosslens.explanations.concept_batches import concept_table  # compiled code loads slowly

    outcomes = query_outcomes(run, dataset, direction)
    name = run.name if isinstance(run, Run) else "run"
    failures = outcomes.filter(failed())
    if not failures.height:
        raise InputError(
            f"{name} has no failures in this direction",
            expected="at least one query whose relevant item is not first",
            fix=f"there is nothing to explain; choose another run or another {argument('direction')}",
        )
    objects = objects_of(dataset, areas=areas, progress=progress)
    queries = mentioned_concepts(texts_of(failures), progress=progress)
    of_noun = {
        mention.noun: QueryMentions("", (mention,)).mentioned(objects.synsets)
        for mention in {mention.noun: mention for query in queries for mention in query.of("object")}.values()
    }
    mentioned = [frozenset().union(*(of_noun[mention.noun] for mention in query.of("object"))) for query in queries]
    rows = objects.rows(failures["ground_truth"]), objects.rows(failures["retrieved"])
    metrics = concept_table(objects, *rows, threshold=threshold, base=base)
    informed = concept_table(objects, *rows, mentioned=mentioned, threshold=threshold, base=base)
    judgements = judge_failures(failures, dataset, objects, queries, progress)
    causes = cause_table([[judgement for _, judgement in mentions] for mentions in judgements])
    table = pl.concat([failures, metrics, informed.select(pl.all().name.prefix(QUERY)), causes], how="horizontal")
    clusters = np.unique(failures["ground_truth"].to_numpy(), return_inverse=True)[1]
    draws = Bootstrap(clusters, resamples, seed)
    pairs = concept_pairs(objects, *rows)
    query_ids = failures["query"].to_list()
    by_cause = table.select(pl.col(cause_column(cause)).alias(cause) for cause in CAUSES)
    return Overview(
        run=name,
        dataset=dataset.name,
        direction=ranking_of(run, direction).direction,
        source=objects.source,
        queries=outcomes.select("query", "ground_truth"),
        failures=table,
        metrics=metric_means(table, draws, level),
        correlations=metric_correlations(table, clusters, resamples=min(resamples, 200), level=level, seed=seed),
        causes=cause_shares(table, draws, level),
        cause_numbers=cause_numbers(by_cause, draws, level),
        rules=association_rules(by_cause, clusters, minimum=minimum, seed=seed),
        pairs=pairs,
        confusions=count_confusions(pairs, query_ids, depth=depth),
        query_confusions=count_confusions(concept_pairs(objects, *rows, mentioned=mentioned), query_ids, depth=depth),
        notes=limitations(dataset, objects, table, queries),
        depth=depth,
        level=level,
        resamples=resamples,
        seed=seed,
        settings={"threshold": threshold, "base": base, "areas": areas, "minimum": minimum},
        names=objects.names_of_synsets(),
    )


def save_overview(
    overview: Overview, path: str | Path, *, comparison: dict[str, Any] | None = None, overwrite: bool = False
) -> Path:
    """Write the folder, whole or not at all; the same overview gives the same bytes.

    A folder that holds another overview is kept unless ``overwrite``; one with other files is never replaced.
    """
    path = Path(path)
    summary = _json(overview.as_dict())
    if _LAYOUT.holds(path):
        stored = path / _SUMMARY
        if not overwrite and stored.exists() and stored.read_text(encoding="utf-8") != summary:
            raise other_content(path, "overview")
    with atomic_folder(path, _LAYOUT) as folder:
        for name in ("failures", "confusions", "query_confusions"):
            file = folder / f"{name.replace('_', '-')}.parquet"
            file.write_bytes(parquet_bytes(getattr(overview, name)))
        rules = overview.rules.with_columns(pl.col("if").list.join(" + "))
        for_spreadsheets(rules).write_csv(folder / "rules.csv")
        if comparison is not None:
            (folder / _COMPARISON).write_text(_json(json_form(comparison)), encoding="utf-8")
        (folder / _SUMMARY).write_text(summary, encoding="utf-8")
    return path


def _json(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


METRIC_NAMES: Mapping[str, str] = {
    "CA": "CA, %",
    "NonCommonSimilarity": "concept similarity",
    "CE": "CE",
    "SD": "SD",
    "SD[binary]": "SD[binary], %",
    "object_hit": "objects hit",
    "object_miss": "objects missed",
    "object_extra": "objects extra",
    "matched_synsets": "matched, %",
    "wrong_count": "wrong count, %",
    "attribute_agreement": "attributes, %",
    "spatial_agreement": "places, %",
}
"""How tables call the metrics."""
_PERCENT = tuple(name for name, words in METRIC_NAMES.items() if words.endswith("%"))
_MOST_CONCEPTS = 30
"""Along each side of a map; the table has the most frequent confusions."""
GROUND_TRUTH = "ground_truth"


def confusion_map(overview: Overview, confusions: pl.DataFrame, title: str) -> Heat:
    """The most frequent concepts, by their path down WordNet's tree, so that related ones are adjacent.

    A number says in how many failures.
    """
    sides = []
    for side in ("expected", "shown"):
        totals = confusions.group_by(side).agg(pl.col("count").sum()).sort(["count", side], descending=[True, False])
        frequent = totals[side].head(_MOST_CONCEPTS)
        sides.append(sorted(frequent, key=lambda synset: hypernym_path(synset)[::-1]))
    counts = {(expected, shown): count for expected, shown, count, *_ in confusions.iter_rows()}
    failures = format_count(overview.failures.height, "failure")
    rows, columns = (tuple(synset_label(synset, overview.names) for synset in side) for side in sides)
    return Heat(
        title=title,
        about=f"{overview.run} on {overview.dataset}, {failures}, concepts from {overview.source}; expected down, "
        "shown instead across",
        rows=rows,
        columns=columns,
        cells=tuple(tuple(Figure(counts.get((down, across)), digits=0) for across in sides[1]) for down in sides[0]),
        heading="expected",
    )


def confusion_bars(overview: Overview) -> Folded | None:
    """What queries ask for and what the picture that came first has instead: how often, of how many failures.

    Nothing where no two failures confuse the same.
    """
    rows = overview.query_confusions.head(TOP).filter(pl.col("count") >= _FEWEST_CONFUSIONS).to_dicts()
    if not rows:
        return None
    rows = rows[:_MOST_CONFUSIONS]
    words = [[_as_asked(overview, row[side]) for side in ("expected", "shown")] for row in rows]
    bars = []
    for number, row in enumerate(rows):
        of = round(row["count"] / row["share_of_expected"])
        behind = overview.failures.filter(pl.col("query").is_in(row["examples"])).to_dicts()
        examples = EvidenceList(
            f"confused-{overview.run}-{number}",
            f"For example {format_count(len(behind), 'query')}",
            tuple((miss["query"], f"“{miss['text']}”" if miss["text"] else miss["item"]) for miss in behind),
        )
        bars.append(PairedBar(
            " → ".join(words[number]), (row["count"], of - row["count"]), about=f"{row['count']:,} of {of:,} misses",
            details=(examples,),
            pictures=tuple(behind[0][side] for side in ("ground_truth", "retrieved") if behind),
        ))  # fmt: skip
    chart = PairedBars(
        title=f"What {overview.run} confuses", rows=tuple(bars), heading="asked for → came first", noun="misses",
        about="Of the misses that ask for something which the picture that came first lacks, how many show the other "
        "thing instead.",
        levels=(("shows the other thing", "bad"), ("something else", "unsure")),
    )  # fmt: skip
    first, claim = bars[0], "What is asked for, and what comes first instead"
    if first.counts[0] >= _ENOUGH_TO_CLAIM:
        asked, instead = words[0]
        claim = f"Asked for “{asked}”, {first.counts[0]} of {sum(first.counts)} misses show “{instead}”"
    return Folded(claim, (chart,))


def _table_of_metrics(overview: Overview) -> Table:
    """Metrics down; query-agnostic and query-informed side by side."""
    by_scope = {(row["scope"], row["metric"]): row for row in overview.metrics.to_dicts()}
    rows = []
    for metric, words in METRIC_NAMES.items():
        sides = [by_scope["all", metric], by_scope["query", metric]]
        if any(row["mean"] is not None for row in sides):
            rows.append((words, *(cell for row in sides for cell in (concept_figure(metric, row), row["undefined"]))))
    notes = (
        "CA: concepts of the right image that the retrieved one has; concept similarity: path similarity of the "
        "others, matched in pairs; CE: difference of counts; SD: difference of box areas; matched: synsets in such a "
        "pair, of all not in common; wrong count: of common concepts; attributes, places: agreement of common objects.",
        *size_notes(overview.settings, overview.metrics),
        f"skipped: failures in which a metric is undefined. {100 * overview.level:g}% intervals over images.",
    )
    return Table(("", "every object", "skipped", "query concepts", "skipped"), rows, notes=notes)


def table_of_totals(metrics: Sequence[Mapping[str, Any]], totals: Sequence[Mapping[str, Any]]) -> Table:
    """Sums and pooled shares down, query-agnostic and query-informed side by side."""
    by_metric = {(row["scope"], row["metric"]): row for row in metrics}
    columns = []
    for row in totals:
        hit, missed = (by_metric[row["scope"], name]["total"] for name in ("object_hit", "object_miss"))
        agreement, sizes = (by_metric[row["scope"], name]["pooled"] for name in ("CA", "SD[binary]"))
        matched = row["matchings"] / row["non_common_synsets"] if row["non_common_synsets"] else None
        most = "–" if row["most_common_CE"] is None else f"{row['most_common_CE']:,}"
        columns.append({
            "objects hit": f"{hit:,.0f}",
            "objects missed": f"{missed:,.0f}",
            "common synsets": f"{row['common_synsets']:,}",
            "non-common synsets": f"{row['non_common_synsets']:,}",
            "matchings (% of non-common)": _share(row["matchings"], matched),
            "same multiplicity (% of common)": _share(row["same_multiplicity"], row["same_share"]),
            "different multiplicities (% of common)": _share(row["different_multiplicities"], row["different_share"]),
            "most common CE (failures)": f"{most} ({row['most_common_CE_failures']:,})",
            "CA, %": "–" if agreement is None else f"{100 * agreement:.1f}",
            "SD[binary], %": "–" if sizes is None else f"{100 * sizes:.1f}",
        })  # fmt: skip
    rows = tuple((name, *(column[name] for column in columns)) for name in columns[0])
    note = (
        "Synsets, matchings and multiplicities as EXPL counts them: non-common synsets of both images, matched in "
        "pairs; common synsets with as many objects in both images, or not."
    )
    return Table(("", "every object", "query concepts"), rows, "lrr", notes=(note,))


def _share(number: int, share: float | None) -> str:
    return f"{number:,}" if share is None else f"{number:,} ({100 * share:.1f})"


def concept_figure(metric: str, row: Mapping[str, Any]) -> Figure:
    """The mean of a concept metric with its interval."""
    scale, digits = (100, 1) if metric in _PERCENT else (1, 3 if metric == "NonCommonSimilarity" else 2)
    return Figure(None, scale=scale, digits=digits).of_row(row)


def size_notes(settings: Mapping[str, Any], metrics: pl.DataFrame) -> tuple[str, ...]:
    """What the base of SD hides: relative to the right image's box, a smaller box differs by less than 1."""
    compared = metrics.filter((pl.col("metric") == "SD[binary]") & pl.col("mean").is_not_null()).height > 0
    if not compared or settings.get("base", GROUND_TRUTH) != GROUND_TRUTH or settings.get("threshold", 1.0) < 1:
        return ()
    return (
        "SD[binary] counts boxes that differ from those of the right image by at least "
        f"{100 * settings.get('threshold', 1.0):g}% of their area: a box that shrank never does, however small it "
        "became; the base min (--size-base min) is symmetric.",
    )


def _table_of_causes(overview: Overview) -> Table:
    rows = []
    for row in overview.causes.to_dicts():
        shares: tuple[Cell, ...] = (Figure.percent(None).of_row(row, "share"), Figure.percent(row["main_share"]))
        counts = (None, None) if row["asked"] is None else (row["asked"], row["open"])
        rows.append((row["cause"], *counts, row["count"], *(("open",) * 2 if is_open(row) else shares)))
    note = (
        "asked: failures whose query mentions it; open: of these, undecided, and in place of a share that most of "
        "them leave undecided; main: counted once per failure, by the first that applies from above."
    )
    return Table(("cause", "asked", "open", "failures", "% of failures", "main, %"), rows, "lrrrrr", notes=(note,))


def is_open(row: Mapping[str, Any]) -> bool:
    """Whether more of the failures that ask for a cause are undecided than decided: its share would say too little."""
    return bool(row["asked"]) and 2 * row["open"] > row["asked"]


def _table_of_cause_numbers(overview: Overview) -> Table:
    """How many failures have no cause, one, two …"""
    rows = tuple(
        (
            f"{row['causes']}", row["count"], Figure.percent(None).of_row(row, "share"),
            None if row["of_caused"] is None else Figure.percent(row["of_caused"]),
        )
        for row in overview.cause_numbers.to_dicts()
    )  # fmt: skip
    note = "of caused: of the failures with a cause; those that are not explained have none."
    return Table(("causes", "failures", "% of failures", "of caused, %"), rows, notes=(note,))


def table_of_rules(rules: pl.DataFrame, most: int) -> Table:
    """Rules that chance does not explain first; only those that make something likelier."""
    rows = tuple(
        (
            " and ".join(row["if"]), row["then"], row["count"], Figure.percent(row["support"]),
            Figure.percent(row["confidence"]), Figure(row["lift"]), Figure.p(row["p_adjusted"], 1000),
        )
        for row in rules.filter(pl.col("lift") > 1).head(most).to_dicts()
    )  # fmt: skip
    header = ("if wrong", "then wrong", "times", "support, %", "confidence, %", "lift", "p")
    note = (
        "p: permutation test that A makes B likelier, which moves the failures of an image together, corrected for all "
        "rules tested."
    )
    return Table(header, rows, notes=(note,))


def table_of_confusions(confusions: pl.DataFrame, most: int, names: Mapping[str, str] | None = None) -> Table:
    """The most frequent confusions."""
    rows = tuple(
        (
            synset_label(row["expected"], names), synset_label(row["shown"], names), row["count"],
            Figure(row["share_of_expected"], scale=100, digits=0), Figure(row["lift"], digits=1),
            Figure(row["similarity"]),
        )
        for row in confusions.head(most).to_dicts()
    )  # fmt: skip
    return Table(("expected", "shown", "times", "of expected, %", "lift", "similarity"), rows)


def table_of_correlations(overview: Overview) -> Table:
    """Each two metrics, Spearman and Kendall."""
    rows = []
    for row in overview.correlations.filter(pl.col("spearman").is_not_null()).to_dicts():
        figures = [Figure(None).of_row(row, name, f"{name}_") for name in ("spearman", "kendall-b")]
        names = (METRIC_NAMES.get(row[side], row[side]).removesuffix(", %") for side in ("first", "second"))
        rows.append((", ".join(names), *figures, row["failures"]))
    return Table(("", "Spearman ρ", "Kendall τ-b", "failures"), rows)


def _as_asked(overview: Overview, synset: str) -> str:
    """A synset by its label; where no failed query has that word, by the word for it which most of them have."""
    label, asked = synset_label(synset, overview.names), " ".join(overview.failures["text"].drop_nulls()).lower()
    unsaid = synset not in overview.names and label == synset_word(synset) and label not in asked
    words = map(plain_name, load_wordnet().lemmas(synset) if unsaid else ())
    return max((label, *words), key=lambda word: len(re.findall(rf"\b{re.escape(word)}\b", asked)))


def synset_label(synset: str, names: Mapping[str, str] | None = None) -> str:
    """A synset as the dataset calls it (``names``), else its first word; with its number if it is a later sense."""
    if names and synset in names:
        return names[synset]
    word, number = synset_word(synset), synset.rsplit(".", 1)[-1]
    return word if number == "01" else f"{word} ({number.lstrip('0')})"

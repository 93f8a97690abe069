"""Single queries on a page: an example at the top, the misses as cards, and the queries behind findings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import inf, isfinite
from weakref import WeakKeyDictionary

import polars as pl

from crosslens.analyze import TWIN
from crosslens.core import EvidenceList, Facet, FacetValue, Finding, Folded, PairedBars, Part, QueryCards, Section, Text
from crosslens.metrics import dataset_name, format_count
from crosslens.report.document.context import ReportContext
from crosslens.report.document.misses import CAME_FIRST, Miss, RunMisses, reason_of
from crosslens.report.forms.cards import card_target
from crosslens.report.inputs import SIZE_BUDGET
from crosslens.values import MetricValues, split_name

# So many on a page of the usual size and on a larger one; on a smaller one as many fewer as it is smaller.
_MOST_CARDS, _OF_EACH = 240, 4
"""All cards; and cards of every group, where it has so many misses."""
_MOST_LISTED, _MOST_ELSEWHERE, _MOST_BEHIND = 1000, 300, 500
"""Queries in the list of the run whose misses have cards, in that of another run, and in that behind a finding."""
_MOST_OF_GROUP, _MOST_OF_OTHERS = 12, 24
"""Misses that are listed behind the figure of a group, and cards of each run but the first."""
_CANDIDATES = 24
"""Misses that are explained, to choose an example from."""


def example(context: ReportContext, finding: Finding | None = None) -> QueryCards | None:
    """The most telling miss behind a finding (default: the first that counts misses), with both pictures."""
    page = PageQueries.of_page(context)
    return page.example(finding or page.first_finding)


def misses(context: ReportContext) -> Section | None:
    """Misses as cards; those of all runs, and what is behind the findings, as lists."""
    return PageQueries.of_page(context).section()


def counted_evidence(finding: Finding) -> str:
    """How many queries, items or pairs a finding counts; pairs, too, where a query stands with several items.

    A finding that counts more pairs than it keeps has the first of them.
    """
    kept, counted = len(finding.evidence), finding.effect.value if finding.effect.unit == "pairs" else 0
    if counted >= kept:
        return f"{'first ' if counted > kept else ''}{format_count(kept, 'pair')}"
    queries = {str(entry["query"]) for entry in finding.evidence if "query" in entry}
    if any("items" in entry for entry in finding.evidence) or 0 < len(queries) < len(finding.evidence):
        noun = "pair"
    else:
        noun = "query" if queries else "item"
    return format_count(kept, noun)


def evidence_address(context: ReportContext, finding: Finding) -> str:
    """Where the queries behind a finding are listed; empty where it counts none."""
    number = list(context.findings).index(finding) if finding in context.findings else -1
    listed = number >= 0 and PageQueries.of_page(context).evidence_run(finding) is not None
    return f"#evidence-{number + 1}" if listed else ""


class PageQueries:
    """The queries of a page: one has a card once, and what is said of it elsewhere leads there.

    ``shown`` are queries that have cards in other parts of the page than the section of misses; ``behind_figures`` are
    lists that figures lead to, by their places.
    """

    def __init__(self, context: ReportContext) -> None:
        self.context = context
        self.shown: set[str] = set()
        self.behind_figures: dict[str, EvidenceList] = {}
        self._of_run: dict[tuple[str, str], RunMisses] = {}

    @classmethod
    def of_page(cls, context: ReportContext) -> PageQueries:
        """Those that all sections of a page share."""
        return _PAGES.setdefault(context, cls(context))

    def most(self, number: int) -> int:
        """Of what may be listed so often: what has room on a page of this size."""
        return max(1, round(number * min(1, self.context.inputs.size / SIZE_BUDGET)))

    def of(self, name: str, direction: str = "") -> RunMisses:
        key = name, direction or self.context.direction
        if key not in self._of_run:
            self._of_run[key] = RunMisses(self.context, *key)
        return self._of_run[key]

    @cached_property
    def run(self) -> RunMisses:
        """The run whose misses have cards: the best of several models, else that where most near-twins came first.

        The best on most datasets is the one that would be used; where it misses nothing, it is the next.
        """
        runs, by_headline = self.context.inputs.runs, self.context.by_headline
        ordered = [by_headline(of_dataset) for of_dataset in self.context.inputs.by_dataset().values()]
        if self.context.shape in ("models", "grid"):
            leads = Counter(self.context.model(names[0]) for names in ordered)
            first = [names[0] for names in ordered]
            first.sort(key=lambda name: (-leads[self.context.model(name)], -len(self.of(name).misses)))
            names = (*first, *(name for names in ordered for name in names))
            return self.of(next((name for name in names if self.of(name).misses), names[0]))
        twins = {name: sum(miss.first == TWIN for miss in self.of(name).misses) for name in runs}
        best = next((finding.model for finding in self.context.findings if finding.model in runs), ordered[0][0])
        return self.of(max(runs, key=lambda name: (twins[name], name == best)))

    @property
    def first_finding(self) -> Finding | None:
        """The first that is true of the run whose misses have cards, and counts queries that miss in it.

        Where near-twins make most of the misses, that is one of near-twins if there is any.
        """
        missed = {miss.row["query"] for miss in self.run.misses}
        of_run = [finding for finding in self.context.findings if self._holds_of(self.run, finding)]
        if 2 * sum(miss.first == TWIN for miss in self.run.misses) > len(missed):
            of_run.sort(key=lambda finding: finding.kind != "twins")
        return next(
            (finding for finding in of_run if any(str(entry.get("query")) in missed for entry in finding.evidence)),
            None,
        )

    def _holds_of(self, run: RunMisses, finding: Finding) -> bool:
        """Whether a finding about a model is of the run, or the same was seen on its dataset."""
        return finding.model == run.name or bool(finding.model and dataset_name(run.run) in finding.also)

    @cached_property
    def with_cards(self) -> tuple[Miss, ...]:
        """The surest of all and of every group, none of them shown elsewhere."""
        free = [miss for miss in self.run.misses if miss.row["query"] not in self.shown]
        taken: Counter[tuple[str, str | None]] = Counter()
        most, of_each = self.most(_MOST_CARDS), self.most(_OF_EACH)
        kept = []
        for number, miss in enumerate(free):
            groups = [(CAME_FIRST, miss.first), *miss.values.items()]
            if number < most or any(value and taken[name, value] < of_each for name, value in groups):
                taken.update(groups)
                kept.append(miss)
        return tuple(kept)

    def section(self) -> Section | None:
        """Misses as cards, under what they are told apart by; those of every run as lists."""
        lists = tuple(misses for name in self.context.inputs.runs if (misses := self._list(name)) is not None)
        behind = tuple(queries for finding in self.context.findings if (queries := self.evidence(finding)) is not None)
        folded = [Folded("The queries behind the findings", behind)] if behind else []
        if not lists:
            return Section("", tuple(folded), target="misses") if folded else None
        run, kept = self.run, self.with_cards
        what = "pictures" if run.by_images else "captions"
        opening = f"{len(run.misses):,} of {run.asked:,} {what} ({self.context.short(run.name)})"
        opening += ", the surest mistakes first." if len(kept) > 1 else "."
        most = self.most(_MOST_LISTED)
        listed = "all of them" if len(run.misses) <= most else f"{most:,}"
        fewer = "" if len(kept) in (0, len(run.misses)) else f"{len(kept):,} have cards; the list below has {listed}."
        facets = tuple(_facets(run.misses))
        cards = QueryCards(run.cards(kept, facets), facets=facets, files=run.files, most=self.context.inputs.queries)
        title, bars = run.came_first()
        cards_of_misses: list[Part] = [*bars, cards] if kept else []
        parts: list[Part] = [Text.of(opening, fewer), *cards_of_misses, *self._others(), *lists, *folded]
        return Section(title or "Look at the misses yourself", tuple(parts), target="misses")

    def of_group(
        self, name: str, group: str, queries: Sequence[str], target: str, *, beyond: int = 1, direction: str = ""
    ) -> EvidenceList | None:
        """The misses of a run in a group of its queries, the surest first; nothing where there are none.

        A query is missed where the right item has a rank ``beyond`` this one.
        """
        members, run = frozenset(queries), self.of(name, direction)
        misses = [miss for miss in run.misses if miss.row["query"] in members and (miss.row["rank"] or inf) > beyond]
        if not misses:
            return None
        title = f"{group}, {self.context.short(name)}: {len(misses):,} of {len(members):,} missed"
        most = self.most(_MOST_OF_GROUP)
        title += f", the surest {most}" if len(misses) > most else ""
        return self._listed(run, misses[:most], target, title)

    def of_sets(self, names: tuple[str, str], sets: Mapping[str, Sequence[str]]) -> dict[str, EvidenceList]:
        """The queries that only the first run finds, only the second, both or neither, as a run that misses them."""
        lists, most = {}, self.most(_MOST_ELSEWHERE)
        words = (f"Only {names[0]} finds", f"Only {names[1]} finds", "Both find", "Neither finds")
        for (kind, queries), title, name in zip(sets.items(), words, (names[1], *names[:1] * 3), strict=True):
            if (outcomes := self.context.outcomes(name)) is not None and queries:
                rows = {row["query"]: row for row in outcomes.filter(pl.col("query").is_in(queries[:most])).to_dicts()}
                title += f": {format_count(len(queries), 'query')}{f', the first {most:,}' * (len(queries) > most)}"
                entries = tuple(self.of(name).entry(rows[query]) for query in queries[:most] if query in rows)
                addresses = tuple(self._card_address(self.of(name), query) for query, _ in entries)
                lists[kind] = EvidenceList(f"{kind}-{'-'.join(names)}", title, entries, addresses)
        return lists

    def address(self, name: str, values: MetricValues) -> str:
        """Where the queries are listed that a metric of ranks counts as missed, the list kept for the page's end."""
        run, (direction, metric) = self.context.inputs.runs[name], split_name(values.name)
        counted = re.fullmatch(r"Hit@(\d+)|\w*Recall@1|MRR|MedR", metric)
        if counted is None or direction not in run.rankings or not self.of(name, direction).misses:
            return ""
        beyond, whole = int(counted[1] or 1), len(values.query_ids) == len(run[values.name].query_ids)
        if beyond == 1 and whole and direction == self.context.direction:
            return f"#misses-of-{name}"
        target = f"misses-of-{name}-{direction}-{f'beyond-{beyond}' if whole else 'shared'}"
        words = f"{direction}/Hit@{beyond}{'' if whole else ' over the queries that all galleries have'}"
        asked = [query for query, value in zip(values.query_ids, values.values, strict=True) if isfinite(value)]
        behind = self.of_group(name, words, asked, target, beyond=beyond, direction=direction)
        self.behind_figures |= {} if behind is None else {target: behind}
        return f"#{target}" if behind is not None else ""

    def _others(self) -> Iterator[Folded]:
        """Of every other run, the surest of the misses that have no card above."""
        above = set(self._ids_with_cards) | self.shown
        for name in self.context.inputs.runs:
            run = self.of(name)
            free = [miss for miss in run.misses if miss.row["query"] not in above][: self.most(_MOST_OF_OTHERS)]
            if run is not self.run and free:
                above |= {miss.row["query"] for miss in free}
                cards = QueryCards(run.cards(free), files=run.files)
                yield Folded(f"The surest mistakes of {self.context.short(name)} that are not above", (cards,))

    def _list(self, name: str) -> EvidenceList | None:
        run = self.of(name)
        most = self.most(_MOST_LISTED if run is self.run else _MOST_ELSEWHERE)
        counted = f"{format_count(len(run.misses), 'missed query')} of {self.context.short(name)}"
        every = f"All {counted}".replace("All 1 ", "The ")
        title = every if len(run.misses) <= most else f"The surest {most:,} of {counted}"
        return self._listed(run, run.misses[:most], f"misses-of-{name}", title) if run.misses else None

    def _listed(self, run: RunMisses, misses: Sequence[Miss], target: str, title: str) -> EvidenceList:
        """Misses as entries that lead to their cards."""
        addresses = tuple(self._card_address(run, miss.row["query"]) for miss in misses)
        return EvidenceList(target, title, tuple(run.entry(miss.row) for miss in misses), addresses)

    def example(self, finding: Finding | None = None) -> QueryCards | None:
        """The most telling miss behind a finding, else of the run: what differs is known, and no label is doubted."""
        run = self.run
        if finding is not None and finding.model in self.context.inputs.runs and not self._holds_of(run, finding):
            run = self.of(finding.model)
        behind = {str(entry["query"]) for entry in (finding.evidence if finding else ()) if "query" in entry}
        clear = [miss for miss in run.misses if not miss.doubt]
        candidates = [miss for miss in clear if miss.row["query"] in behind] or clear
        # One change that can be quoted, in few words, says most; then any that is known; then the surest mistake.
        candidates.sort(
            key=lambda miss: ("“" not in miss.reason, "…" in miss.reason, not miss.reason,
                              len((miss.row["text"] or "").split()) if miss.reason else 0, -miss.lead)
        )  # fmt: skip
        explained = run.explained(candidates[:_CANDIDATES]) if candidates and not candidates[0].reason else {}
        reasons = {query: reason_of(explanation) for query, explanation in explained.items()}
        free = [miss for miss in candidates if not reasons.get(miss.row["query"], ("", ""))[1]]
        free.sort(key=lambda miss: not (miss.reason or reasons.get(miss.row["query"], ("",))[0]))
        if not free:
            return None
        self.shown.add(free[0].row["query"])
        return QueryCards(run.cards(free[:1]), files=run.files, large=True)

    def evidence_run(self, finding: Finding) -> RunMisses | None:
        """The run whose queries a finding counts."""
        runs = self.context.inputs.runs
        name = next((name for name, run in runs.items() if finding.model in ("", name)
                     and finding.dataset in ("", dataset_name(run))), None)  # fmt: skip
        return self.of(name) if name is not None and finding.evidence else None

    def evidence(self, finding: Finding) -> EvidenceList | None:
        """The queries and items that a finding counts."""
        run = self.evidence_run(finding)
        if run is None:
            return None
        most = self.most(_MOST_BEHIND)
        listed = finding.evidence[:most]
        asked = [str(entry["query"]) for entry in listed if "query" in entry]
        outcomes = self.context.outcomes(run.name)
        rows = [] if outcomes is None else outcomes.filter(pl.col("query").is_in(asked)).to_dicts()
        by_query = {row["query"]: row for row in rows}
        entries = []
        for entry in listed:
            query, items = entry.get("query"), entry.get("items", [entry["item"]] if "item" in entry else [])
            row = by_query.get(str(query))
            if row is not None:
                items = [item for item in items if item not in (row["retrieved"], row["item"])]
            rank_texts = [run.entry(row)[1]] if row is not None else []
            label = ", ".join(map(str, items)) if query is None else str(query)
            entries.append((label, "; ".join((*rank_texts, *map(run.named, items)))))
        more = f", the first {most:,}" if len(finding.evidence) > most else ""
        target = evidence_address(self.context, finding).removeprefix("#")
        addresses = tuple(self._card_address(run, label) for label, _ in entries)
        return EvidenceList(target, f"{counted_evidence(finding)}{more}: {finding.text}", tuple(entries), addresses)

    def _card_address(self, run: RunMisses, query: str) -> str:
        return f"#{card_target(query)}" if run is self.run and query in self._ids_with_cards else ""

    @cached_property
    def _ids_with_cards(self) -> frozenset[str]:
        return frozenset(miss.row["query"] for miss in self.with_cards)


def _facets(misses: Sequence[Miss]) -> Iterator[Facet]:
    """What misses are told apart by; the most frequent first."""
    counts: dict[str, Counter[str]] = {}
    for miss in misses:
        for name, value in ((CAME_FIRST, miss.first), *miss.values.items()):
            counts.setdefault(name, Counter()).update([value] if value else [])
    for name, of_value in counts.items():
        if len(of_value) > 1:
            yield Facet(name, tuple(FacetValue(value, count) for value, count in of_value.most_common()))


def shown_queries(parts: Sequence[Part]) -> Iterator[str]:
    """The queries that have cards among parts, in folds and behind bars too."""
    for part in parts:
        if isinstance(part, QueryCards):
            yield from (card.query for card in part.cards)
        elif isinstance(part, Folded):
            yield from shown_queries(part.parts)
        elif isinstance(part, PairedBars):
            cards = (detail for row in part.rows for detail in row.details if isinstance(detail, QueryCards))
            yield from (query for group in cards for card in group.cards for query in (card.query, *card.facts))


_PAGES: WeakKeyDictionary[ReportContext, PageQueries] = WeakKeyDictionary()

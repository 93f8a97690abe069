"""Sections, and the parts that have other parts in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from crosslens.core.parts.cards import Cards, Diffs, Facet, MarkedText, PictureCard, QueryCard
from crosslens.core.parts.charts import Chart, Intervals, Row, SmallMultiples, Tone
from crosslens.core.parts.tables import Code, FactList, Figure, Table, Text


class Composed(ABC):
    """A part that forms without one of their own for it show as other parts."""

    @property
    @abstractmethod
    def plain(self) -> tuple[Part, ...]:
        """The parts that say the same."""


@dataclass(frozen=True)
class AnsweredQuestion:
    """A question and what answers it, how sure that is and why; ``address`` leads to the evidence called ``link``."""

    question: str
    text: str
    certainty: str = ""
    reason: str = ""
    address: str = ""
    link: str = ""


@dataclass(frozen=True)
class Answers(Composed):
    """Questions with their answers, a line each."""

    answers: tuple[AnsweredQuestion, ...]

    @property
    def plain(self) -> tuple[Part, ...]:
        rows = ((row.question, f"{row.text} ({row.certainty})" if row.certainty else row.text) for row in self.answers)
        return (FactList(tuple(rows)),)


@dataclass(frozen=True)
class PairedBar:
    """How often each of the levels of :class:`PairedBars` occurred in one kind of pairs, or of queries.

    ``figure`` is written behind the bar and its interval drawn on it, on the bar's scale: a share of the whole.
    ``about`` stands under the name, ``changed`` are words that differ, ``pictures`` images that are shown small.
    ``details`` are folded under the bar; where nothing is, ``addresses`` lead to the queries of each level.
    """

    name: str
    counts: tuple[int, ...]
    figure: Figure | None = None
    about: str = ""
    changed: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()
    details: tuple[Part, ...] = ()
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PairedBars(Chart):
    """Bars of equal length, divided among what can happen to two that belong together.

    ``levels`` are both right, the same picture for both, swapped; or only A, only B, both, neither: names and tones.
    ``chance`` is where the first level would end by guessing. ``heading`` says what the rows are.
    """

    levels: tuple[tuple[str, Tone], ...]
    rows: tuple[PairedBar, ...]
    chance: float | None = None
    heading: str = ""
    measure: str = ""
    """What the figure behind a bar is."""
    noun: str = "pairs"
    files: Mapping[str, str] = field(default_factory=dict)
    """Files of the images that rows name."""

    @property
    def table(self) -> Table:
        figures = any(row.figure is not None for row in self.rows)
        header = (self.heading, *(name for name, _ in self.levels), *((self.measure or "share",) if figures else ()))
        rows = tuple(
            (" · ".join(filter(None, (row.name, " ⇄ ".join(row.changed)))), *row.counts,
             *((row.figure,) if figures else ()))
            for row in self.rows
        )  # fmt: skip
        return Table(header, rows, title=self.title)


@dataclass(frozen=True)
class QueryCards(Composed):
    """Cards of queries under facets that narrow them.

    Pages show the first ``most``, and the others under a line to click on; a terminal shows the first ``printed``.
    ``files`` are those of the images that cards name. ``large`` cards fill the width that they have.
    """

    cards: tuple[QueryCard, ...]
    title: str = ""
    facets: tuple[Facet, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    most: int | None = None
    printed: int = 3
    large: bool = False

    @property
    def plain(self) -> tuple[Part, ...]:
        """Of facets a table, of queries cards of text."""
        rows = [
            (facet.name, choice.name, choice.count, *([choice.figure] if self._figures else []))
            for facet in self.facets
            for choice in facet.choices
        ]
        header = ("facet", "value", "queries", *(["figure"] if self._figures else []))
        table = Table(header, rows, "llrl"[: len(header)], names=2)
        cards = []
        for card in self.cards:
            pictures = []
            for picture in card.pictures:
                words = " ".join(dict.fromkeys(filter(None, (*picture.lines, picture.image))))  # unseen, it has its id
                pictures.append(f"{picture.marked_title}: {words}" if words else picture.marked_title)
            title = f"{card.query}: {card.asked}".removesuffix(": ")
            cards.append(PictureCard(title, (*pictures, *card.lines), details=card.facts))
        return (*([table] if rows else []), Cards(self.title, tuple(cards), most=self.printed))

    @property
    def _figures(self) -> bool:
        return any(choice.figure is not None for facet in self.facets for choice in facet.choices)


@dataclass(frozen=True)
class EvidenceList(Composed):
    """The queries behind a figure: ids, and what each says. An address ``#target`` leads here and opens it."""

    target: str
    title: str
    entries: tuple[tuple[str, str], ...]
    addresses: tuple[str, ...] = ()
    """Of a page about each."""

    @property
    def plain(self) -> tuple[Part, ...]:
        return (Folded(self.title, (FactList(self.entries),)),)


@dataclass(frozen=True)
class Folded(Composed):
    """Parts under a line to click on; ``about`` says what is in them. A terminal leaves them out.

    One that is ``open`` from the start can be closed; printing opens others where ``paper`` says so.
    """

    title: str
    parts: tuple[Part, ...]
    about: str = ""
    open: bool = False
    paper: bool = False
    target: str = ""

    @property
    def plain(self) -> tuple[Part, ...]:
        return self.parts


@dataclass(frozen=True)
class Beside(Composed):
    """Parts in columns where there is room: the first is the widest, or ``even`` ones are equally wide."""

    columns: tuple[tuple[Part, ...], ...]
    even: bool = False

    @property
    def plain(self) -> tuple[Part, ...]:
        return tuple(part for column in self.columns for part in column)


def flat(parts: Iterable[Part], *, folded: bool = True) -> Iterator[Part]:
    """Parts with what they are composed of in their place; without ``folded``, what is folded is left out."""
    for part in parts:
        if isinstance(part, Composed):
            if folded or not isinstance(part, Folded) or part.open:
                yield from flat(part.plain, folded=folded)
        else:
            yield part


Part = Text | Code | FactList | Table | Chart | Cards | MarkedText | Diffs | Row | Composed


@dataclass(frozen=True)
class Section:
    """Parts under a heading; without a title they follow what is above.

    ``query`` is the id of the query that all of it is about: a page with several begins with links to them, and CSV has
    a column of them. ``certainty`` is how sure the title is, where it claims something, and ``reason`` why. ``target``
    is its place in the page's address.
    """

    title: str
    parts: tuple[Part, ...]
    query: str = ""
    certainty: str = ""
    reason: str = ""
    target: str = ""

    @property
    def tables(self) -> list[Table]:
        """Its tables in order, and those of charts that are text beside drawings."""
        scales = (Intervals, SmallMultiples, PairedBars)
        parts = (part.table if isinstance(part, scales) else part for part in flat(self.parts))
        return [part for part in parts if isinstance(part, Table)]

    @property
    def charts(self) -> list[Chart]:
        """Its charts in order, those of rows as well."""
        nested = [part.charts if isinstance(part, Row) else (part,) for part in flat(self.parts)]
        return [part for parts in nested for part in parts if isinstance(part, Chart)]

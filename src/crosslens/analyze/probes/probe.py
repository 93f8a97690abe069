"""What a model cannot do: whether it notices that a caption has been made false, and what of captions it reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from crosslens.analyze.probes.limits import Truncation, Typos, find_truncation, measure_typos, with_typos
from crosslens.analyze.probes.pairs import (
    LEAST_CONTROL,
    Encodings,
    FalseCaption,
    Probe,
    control,
    edit_captions,
    is_steady,
    probe,
    visited,
)
from crosslens.analyze.subject import Subject, analysis
from crosslens.core import (
    STATED_SIZE,
    Cell,
    Effect,
    EvidenceList,
    Figure,
    Folded,
    Interval,
    Intervals,
    Observation,
    PairedBar,
    PairedBars,
    PictureCard,
    Presented,
    QueryCard,
    QueryCards,
    Section,
    Table,
    Text,
)
from crosslens.engine import stage
from crosslens.statistics import Estimate
from crosslens.storage import json_form


@dataclass(frozen=True)
class Probes(Presented):
    """Each kind of fact, the tail of captions and typing errors. Without an encoder of texts nothing is in it.

    ``control`` is the share noticed where another image's caption is put in. ``steady``: encoding a text again gives
    the same vector.
    """

    probes: tuple[Probe, ...] = ()
    truncation: Truncation | None = None
    typos: Typos | None = None
    control: Estimate | None = None
    compared: int = 0
    steady: bool = True
    reason: str = ""

    title = "What the model cannot do"

    def findings(self) -> Iterator[Observation]:
        """Of facts whether they go unread, of the tail whether it is cut off, of typing errors what they cost."""
        unread = {result.name for result in self.probes if result.unread and not result.sort}
        for result in self.probes:
            if not result.n:
                continue
            is_unread = result.unread and not (result.sort and result.name in unread)
            words = {
                "reads": "does not read" if result.same > 0.95 else "hardly reads", "what": result.plural,
                "share": Figure.share(*_numbers(result.noticed)), "n": f"{result.n:,}", "images": f"{result.images:,}",
                "editable": Figure.share(result.editable.mean),
                "same": f"; for {Figure.share(result.same)} the vector stays the same" if result.same > 0.05 else "",
            }  # fmt: skip
            yield Observation(
                result.name, words, Effect(*_effect(result.noticed), "share noticed"), result.weight,
                bounded=is_unread, evidence=result.evidence if is_unread else (), subject=result.sort,
            )  # fmt: skip
        if self.truncation is not None:
            cut, total = self.truncation.share, self.truncation.captions
            missed = self.truncation.missed
            limits = {"words": self.truncation.most or 0, "cut": f"{len(self.truncation.cut):,}", "total": f"{total:,}"}
            yield Observation(
                "truncation", {**limits, "share": Figure.percent(cut, unit=" %").number},
                Effect(cut, cut, cut, "share of captions"), missed,
                p=0.0 if cut >= STATED_SIZE and self.steady else 1.0,
                evidence=tuple({"query": caption} for caption in self.truncation.cut),
            )  # fmt: skip
        if self.typos is not None:
            loss, low, high = (
                0.0 - end for end in (self.typos.test.difference, self.typos.test.high, self.typos.test.low)
            )
            yield Observation(
                "typos",
                {
                    "loss": Figure(loss, low, high, scale=100, digits=1), "n": f"{self.typos.n:,}",
                    "before": Figure.percent(self.typos.before, unit=" %").number,
                    "after": Figure.percent(self.typos.after, unit=" %").number,
                },
                Effect(loss, low, high, "points"), max(loss, 0.0),
                p=self.typos.p if self.steady else 1.0, evidence=self.typos.evidence,
            )  # fmt: skip

    def sections(self) -> Iterator[Section]:
        """One table: what was changed, in how many captions it can be, and how often it is noticed."""
        if self.reason:
            yield Section(self.title, (Text.of(self.reason),))
            return
        rows: list[list[Cell]] = [
            [result.changed, Figure.percent(result.editable.mean), result.n, _edit(result.example)]
            for result in self.probes
        ]
        noticed = [(result.changed, result.noticed, _address(result)) for result in self.probes if result.n]
        if self.control is not None:
            name = "all: another image's caption"
            rows.append([name, Figure.percent(1.0), self.compared, ""])
            noticed.append((name, self.control, ""))
        strip = Intervals(
            title="How often a caption made false in one fact is noticed", axis="noticed, %", limits=(0.0, 1.0),
            mark=0.5, heading="changed", about="Dashed: chance, 50 %.",
            rows=tuple(
                Interval(
                    replace(Figure.percent(*_numbers(share)), digits=0), changed,
                    tone="good" if share.low > 0.5 else "bad" if share.high < 0.5 + STATED_SIZE else "unsure",
                    address=address,
                )
                for changed, share, address in noticed
            ),
        )  # fmt: skip
        header = ("changed", "captions that can be (%)", "n", "example")
        notes = [
            "A caption is made false in one fact. Noticed: its own image then scores lower; a tie counts one half. "
            "Intervals are over images.",
        ]
        if self.truncation is not None:
            notes.append(_tail_sentence(self.truncation))
        if self.typos is not None:
            change = Figure(self.typos.test.difference, *self.typos.test.interval, scale=100, digits=1, signed=True)
            before, after = (Figure.percent(value, unit=" %") for value in (self.typos.before, self.typos.after))
            notes.append(
                f"With one typing error in each of {self.typos.n:,} captions Hit@1 is {after}, without {before}: "
                f"{change} points."
            )
        if not self.steady:
            notes.append("The encoder gives a text another vector each time: nothing is concluded.")
        table = Table(header, rows, "lrrl", cut=True)
        bars = [_bar(result) for result in self.probes if result.n]
        chart = PairedBars(
            title="Captions made false in one fact", rows=tuple(bars), chance=0.5, heading="changed", noun="captions",
            about="A caption counts as unnoticed where its own image scores at least as high with the false one.",
            levels=(("the false caption scores lower", "good"), ("unnoticed", "bad")),
        )  # fmt: skip
        behind = [Folded("Captions before and after, and whether it is noticed", (chart,))] if bars else []
        opening = [strip] if strip.rows else []
        yield Section(self.title, (*opening, *behind, table, Text(tuple(notes), note=True)))

    def as_dict(self) -> dict[str, Any]:
        return json_form(self)


def _numbers(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.mean, estimate.low, estimate.high


def _effect(estimate: Estimate) -> tuple[float, float | None, float | None]:
    _, low, high = estimate.cells
    return estimate.mean, low, high


_MOST_CARDS = 2


def _address(result: Probe) -> str:
    """Where a page lists the captions of which it is not noticed; empty where there are none."""
    group = "-".join(filter(None, (result.name, result.sort and "between")))
    return f"#unnoticed-{group.replace(' ', '-')}" if result.unnoticed else ""


def _bar(result: Probe) -> PairedBar:
    """How often it was noticed, an example, and the captions of which it was not."""
    unnoticed, pairs, count_words = len(result.evidence), result.unnoticed, f"{len(result.evidence):,} unnoticed"
    cards = tuple(
        QueryCard(
            f"{pair.query} {result.changed}", pair.edited, (PictureCard("its own image", (), pair.image),),
            (f"The image scores no lower with this than with its caption: “{pair.text}”",), (f"caption {pair.query}",),
        )
        for pair in pairs[:_MOST_CARDS]
    )  # fmt: skip
    behind = EvidenceList(
        _address(result).removeprefix("#"),
        f"{count_words}, the first {len(pairs)}" if len(pairs) < unnoticed else count_words,
        tuple((pair.query, f"“{pair.text}” → “{pair.edited}”") for pair in pairs),
    )
    return PairedBar(
        result.changed, (result.n - unnoticed, unnoticed), about=_edit(result.example),
        pictures=(result.example.image,) if result.example else (),
        details=(QueryCards(cards), behind) if pairs else (),
    )  # fmt: skip


def _edit(example: FalseCaption | None) -> str:
    """The words that differ, with one on either side."""
    if example is None:
        return ""
    before, after = example.text.split(), example.edited.split()
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    sides = (words[max(start - 1, 0) : len(words) - end + (end > 0)] for words in (before, after))
    return " → ".join(" ".join(words) for words in sides)


def _tail_sentence(truncation: Truncation) -> str:
    if truncation.most is None:
        return f"Captions are read to their end: {truncation.examined} were examined with other last words."
    return (
        f"Of a caption no more than the first {truncation.most} words are read: {len(truncation.cut):,} of "
        f"{truncation.captions:,} captions are longer."
    )


@analysis(
    "probes", order=35, needs=("a model that makes vectors of captions", "caption queries for images"), cost=(2, 4),
    quick={"most": 200}, answers="reading",
)  # fmt: skip
def probe_captions(subject: Subject, *, most: int = 400, scanned: int = 4000, seed: int | None = None) -> Probes:
    """What the model reads: captions edited in one fact, which must lower the score of their own image.

    At most so many minimal pairs of each kind, each encoded once. ``scanned``: how many captions are looked at for what
    can be edited.
    """
    seed = subject.seed if seed is None else seed
    if subject.encode is None or subject.images is None or subject.images.kind == "probabilistic":
        return Probes(reason="Not probed: that takes the vectors of the images, and the model to encode texts with.")
    with stage(subject.progress, "probing: what the model cannot do", 1):
        edits = edit_captions(subject, most=most, scanned=scanned, seed=seed)
        typed = with_typos(subject, visited(subject, seed, most), seed)
        texts = [text for edited in edits for pair in edited.captions for text in pair.texts]
        texts += [text for _, before, after in typed for text in (before, after)]
        if not texts:
            return Probes(reason="Not probed: no caption has a word that could be edited.")
        encodings = Encodings(subject, texts, seed)
        steady = is_steady(encodings)
        originals = {pair.row: pair.text for edited in edits for pair in edited.captions}
        originals |= {row: text for row, text, _ in typed}
        noticed, compared = control(encodings, list(originals.items()), seed)
        trusted = steady and noticed.low >= LEAST_CONTROL
        truncation = find_truncation(encodings, seed)
        if truncation.least:  # what is behind the words that are read says nothing about the fact
            edits = [edited.within(truncation.least) for edited in edits]
        return Probes(
            tuple(probe(encodings, edited, trusted=trusted, seed=seed) for edited in edits),
            truncation,
            measure_typos(encodings, typed, seed),
            noticed,
            compared,
            steady,
        )

"""Single queries on the page: what came first and why, the surest first, each once; and what is behind findings."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.analyze import changed_sentence
from crosslens.audits import StageResult
from crosslens.core import (
    Effect,
    EvidenceList,
    Finding,
    Folded,
    MissingExtraError,
    PairedBars,
    QueryCard,
    QueryCards,
    Section,
    Text,
    flat,
)
from crosslens.report import ReportInputs, report_inputs, write_report
from crosslens.report.document.bars import failure_picture
from crosslens.report.document.context import ReportContext
from crosslens.report.document.misses import reason_of
from crosslens.report.document.queries import PageQueries, counted_evidence, evidence_address, example, misses
from crosslens.report.document.sections import better

SIDES = {"left": "right", "right": "left"}
ANIMALS = ("dog", "cat", "horse", "cow", "sheep", "goat")
STYLES = {"plain": "easy", "terse": "easy", "wordy": "hard"}


def scenes() -> cl.Dataset:
    """Six pictures and a twin of each, where the sides are exchanged; and of each a variant that has no captions.

    Captions have a style, and a difficulty that follows from it.
    """
    captions: dict[str, list[str]] = {}
    for number, animal in enumerate(ANIMALS):
        second_animal = ANIMALS[(number + 1) % 6]
        for role, side in (("o", "left"), ("t", "right")):
            captions[f"{role}{number}"] = [
                f"a {animal} {side} of a {second_animal}",
                f"{animal}, {side}",
                f"here a {animal} is {side} of a {second_animal}",
            ]
    captions |= {f"v{number}": [] for number in range(6)}
    order = sorted(captions, key=lambda image: "otv".index(image[0]))
    dataset = cl.Dataset.of(
        {image: captions[image] for image in order},
        images={
            "original": [None if image[0] == "o" else f"o{image[1:]}" for image in order],
            "changed": [{"o": None, "t": "relation", "v": "count"}[image[0]] for image in order],
            "place": ["pets" if int(image[1:]) < 2 else "farm" for image in order],
        },
        name="sides",
    )
    styles = [list(STYLES)[row % 3] for row in range(dataset.captions.height)]
    columns = (pl.Series("style", styles), pl.Series("difficulty", [STYLES[style] for style in styles]))
    return replace(dataset, captions=dataset.captions.with_columns(*columns))


DATASET = scenes()
PLANTED = {  # query: what comes first, and by how much
    "o0#0": ("t0", 0.9), "o0#1": ("v0", 0.4), "t1#0": ("o1", 0.8), "o1#2": ("o0", 0.3), "o2#0": ("t2", 0.2),
    "o3#1": ("o0", 0.7), "t4#1": ("v4", 0.6),
}  # fmt: skip


def run_with(planted: dict[str, tuple[str, float]] = PLANTED, name: str = "model") -> cl.Run:
    """A run that finds every picture but where other ones are planted."""
    owner = DATASET.caption_image
    scores = np.full((len(DATASET.image_ids), len(DATASET.caption_ids)), 0.0, np.float32)
    scores += np.linspace(0, 0.01, scores.shape[0], dtype=np.float32)[:, None]
    scores[owner, np.arange(len(owner))] = 1.0
    for query, (image, lead) in planted.items():
        scores[DATASET.image_rows[image], DATASET.caption_rows[query]] = 1.0 + lead
    return cl.evaluate(DATASET, scores=scores, metrics="Hit@1", directions=("t2i",), resamples=0, name=name)


def inputs_of(*results: StageResult, findings: tuple[Finding, ...] = (), **runs: cl.Run) -> ReportInputs:
    inputs = report_inputs(list(runs.values()) or [run_with()], dataset=DATASET)
    return replace(inputs, results=results, findings=findings)


def parts_of(section: Section | None, kind: type) -> list[object]:
    assert section is not None
    return [part for part in section.parts if isinstance(part, kind)]


def cards_of(inputs: ReportInputs) -> dict[str, QueryCard]:
    (cards,) = parts_of(misses(ReportContext(inputs)), QueryCards)
    assert isinstance(cards, QueryCards)
    return {card.query: card for card in cards.cards}


def finding(kind: str, text: str, queries: list[str], model: str = "model") -> Finding:
    evidence = tuple({"query": query} for query in queries)
    return Finding(kind, text, "likely", Effect.of("points", 0.1), 0.01, evidence, None, model=model)


def test_what_a_finding_counts_has_its_name() -> None:
    three = finding("same-caption", "Said of two.", ["a", "b", "c"])
    assert counted_evidence(three) == "3 queries"
    pairs: list[dict[str, str]] = [
        {"query": "a", "item": "x"},
        {"query": "a", "item": "y"},
        {"query": "b", "item": "x"},
    ]
    assert counted_evidence(replace(three, evidence=tuple(pairs))) == "3 pairs", "two queries, one of them with two"
    assert counted_evidence(replace(three, evidence=tuple(pairs[1:]))) == "2 queries"
    assert counted_evidence(replace(three, evidence=({"items": ["x", "y"]},))) == "1 pair"
    assert counted_evidence(replace(three, evidence=({"item": "x"},))) == "1 item"
    kept = replace(three, evidence=tuple(pairs[1:]), effect=Effect.of("pairs", 2))
    assert counted_evidence(kept) == "2 pairs"
    assert counted_evidence(replace(kept, effect=Effect.of("pairs", 141))) == "first 2 pairs"
    assert counted_evidence(replace(kept, effect=Effect.of("pairs", 0.5))) == "2 queries", "a share of pairs"


def test_the_surest_mistakes_come_first_each_once() -> None:
    section = misses(ReportContext(inputs_of()))
    (cards,) = parts_of(section, QueryCards)
    assert isinstance(cards, QueryCards)
    order = sorted(PLANTED, key=lambda query: -PLANTED[query][1])
    assert [card.query for card in cards.cards] == order
    (text,) = parts_of(section, Text)
    assert isinstance(text, Text)
    assert text.sentences[0].startswith("7 of 36 captions ")
    (whole,) = parts_of(section, EvidenceList)
    assert isinstance(whole, EvidenceList)
    assert [query for query, _ in whole.entries] == order
    assert whole.addresses[0] == "#q-o0%230"


def test_what_came_first_is_told_apart_and_counted() -> None:
    section = misses(ReportContext(inputs_of()))
    (cards,) = parts_of(section, QueryCards)
    assert isinstance(cards, QueryCards)
    facets = {facet.name: {choice.name: choice.count for choice in facet.choices} for facet in cards.facets}
    assert facets["what came first"] == {
        "its near-twin": 3, "a variant of it": 2, "the same place": 1, "another place": 1
    }  # fmt: skip
    tasks = ["pets" if int(query[1]) < 2 else "farm" for query in PLANTED]
    assert facets["place"] == dict(Counter(tasks))
    assert "difficulty" not in facets, "it follows from the style, which says more"
    assert sum(facets["style"].values()) == len(PLANTED)
    for number, facet in enumerate(cards.facets):
        values = Counter(card.values[number] for card in cards.cards if card.values[number])
        assert values == facets[facet.name], facet.name


def test_what_a_dataset_knows_to_differ_is_said_without_a_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_parser(*_: object, **__: object) -> None:
        raise MissingExtraError("reading captions", "spacy", "language")

    monkeypatch.setattr("crosslens.explanations.explainer.mentioned_concepts", without_parser)
    monkeypatch.setattr("crosslens.explanations.objects.mentioned_concepts", without_parser, raising=False)
    cards = cards_of(inputs_of())
    assert cards["o0#0"].lines[0] == "The picture that came first differs in position: “right”, not “left”."
    assert cards["t1#0"].lines[0] == "The picture that came first differs in position: “left”, not “right”."
    assert cards["o0#1"].lines[0] == "The picture that came first differs in count."


def test_only_words_that_stand_in_each_others_place_are_quoted() -> None:
    assert changed_sentence("a lamp above a dog", "a lamp below a dog") == ": “below”, not “above”"
    racquet = ("a man with a racquet on a tennis court", "a man with a racquet standing on a court")
    assert not changed_sentence(*racquet), "one word came, another went"
    assert not changed_sentence("a dog", "a dog")
    assert not changed_sentence("one two three four five", "six seven eight nine ten")


def test_nothing_is_said_of_a_picture_whose_captions_are_unknown() -> None:
    """The query is what was asked, never what is in the picture that came first."""
    cards = cards_of(inputs_of())
    for query, (image, _) in PLANTED.items():
        first, right = cards[query].pictures
        assert (first.image, first.mark, right.mark) == (image, "wrong", "right")
        texts_of_image = DATASET.captions.filter(DATASET.captions["image"] == image)["text"].to_list()
        assert bool(first.lines) == bool(texts_of_image)
        assert set(first.lines) <= set(texts_of_image)
        assert cards[query].asked == DATASET.texts[DATASET.caption_rows[query]]
        assert cards[query].asked not in first.lines
    assert cards["o0#0"].pictures[0].lines == ("a dog right of a cat",), "of its captions the one most alike"


def test_a_query_has_one_card_on_the_page() -> None:
    context = ReportContext(inputs_of(findings=(finding("twins", "sides are not read", ["o0#0", "t1#0"]),)))
    top = example(context)
    assert top is not None
    (card,) = top.cards
    assert card.query in ("o0#0", "t1#0")
    assert card.lines[0].startswith("The picture that came first differs in position: “")
    section = misses(context)
    (cards,) = parts_of(section, QueryCards)
    assert isinstance(cards, QueryCards)
    assert {card.query, *(card.query for card in cards.cards)} == set(PLANTED)
    assert len(cards.cards) == len(PLANTED) - 1


def test_the_example_is_of_what_makes_most_misses() -> None:
    """Of a group where nothing else is known; of near-twins where they make most of the misses."""
    twins = {query: planted for query, planted in PLANTED.items() if query in ("o0#0", "t1#0", "o3#1")}
    findings = (finding("group", "farms are hard", ["o3#1"]), finding("twins", "sides are not read", ["o0#0"]))
    for run, query in ((run_with(), "o3#1"), (run_with(twins), "o0#0")):
        top = example(ReportContext(inputs_of(findings=findings, model=run)))
        assert top is not None
        assert top.cards[0].query == query
    elsewhere = replace(finding("group", "farms are hard", ["o3#1"], "other"), also=("sides",))
    top = example(ReportContext(inputs_of(findings=(elsewhere,))))
    assert top is not None
    assert top.cards[0].query == "o3#1", "the same was seen on this dataset"


def test_an_example_has_no_doubted_label() -> None:
    doubted = [query for query in PLANTED if query != "o3#1"]
    review = [{"caption": caption, "reason": "same caption + far"} for caption in doubted]
    stage = StageResult("label-quality", {"review": review, "runs": []}, "", dataset="sides")
    top = example(ReportContext(inputs_of(stage, findings=(finding("twins", "sides", ["o0#0", "o3#1"]),))))
    assert top is not None
    assert top.cards[0].query == "o3#1"
    lines = cards_of(inputs_of(stage))["o0#0"].lines
    assert "Doubtful label: another picture has this very caption." in lines
    every = [{"caption": caption, "reason": "same caption"} for caption in PLANTED]
    stage = replace(stage, payload={"review": every, "runs": []})
    assert example(ReportContext(inputs_of(stage))) is None
    far = [{"caption": caption, "reason": "exchanged + far"} for caption in PLANTED]
    assert example(ReportContext(inputs_of(replace(stage, payload={"review": far, "runs": []})))) is not None


def test_findings_open_the_queries_that_they_count() -> None:
    behind = finding("group", "pets are hard", ["o0#0", "o0#1", "o5#0"])
    pairs = replace(
        finding("same-caption", "two captions are alike", []), model="", dataset="sides",
        evidence=({"items": ["o0", "o1"]}, {"query": "o3#1", "item": "o0"}),
    )  # fmt: skip
    elsewhere = finding("group", "of a run that is not here", ["o0#0"], model="other")
    context = ReportContext(inputs_of(findings=(behind, pairs, elsewhere)))
    assert [evidence_address(context, finding) for finding in context.findings] == ["#evidence-1", "#evidence-2", ""]
    section = misses(context)
    assert section is not None
    lists = {part.target: part for part in _lists(section)}
    assert [query for query, _ in lists["evidence-1"].entries] == ["o0#0", "o0#1", "o5#0"]
    texts = dict(lists["evidence-1"].entries)
    assert texts["o0#0"] == "“a dog left of a cat” t0: “a dog right of a cat” came first, the right one at rank 2"
    assert texts["o5#0"] == "“a goat left of a dog” finds the right one first"
    assert lists["evidence-1"].addresses == ("#q-o0%230", "#q-o0%231", "")
    assert lists["evidence-2"].entries[0] == ("o0, o1", "o0: “a dog left of a cat”; o1: “a cat left of a horse”")


def _lists(section: Section) -> list[EvidenceList]:
    inside = [
        part
        for part_of_section in section.parts
        for part in (part_of_section.parts if isinstance(part_of_section, Folded) else (part_of_section,))
    ]
    return [part for part in inside if isinstance(part, EvidenceList)]


def test_queries_behind_findings_are_on_the_page_without_a_dataset() -> None:
    runs = {name: replace(run_with(name=name), provenance={}) for name in ("first", "second")}
    context = ReportContext(ReportInputs("t", runs, findings=(finding("better", "It is better.", ["o0#0"], ""),)))
    section = misses(context)
    assert section is not None
    assert [part.target for part in _lists(section)] == ["evidence-1"]
    assert evidence_address(context, context.findings[0]) == "#evidence-1"


def test_a_single_miss_is_counted_in_the_singular() -> None:
    context = ReportContext(inputs_of(model=run_with({"o3#1": ("o0", 0.7)})))
    assert example(context) is not None
    section = misses(context)
    assert section is not None
    assert section.parts[0] == Text.of("1 of 36 captions (model)."), "its card is the example at the top"
    assert [part.title for part in _lists(section)] == ["The missed query of model"]


def test_queries_outside_the_sample_of_causes_have_a_chip(tmp_path: Path) -> None:
    pl.DataFrame({"query": ["v9"], "main_cause": ["object"]}).write_parquet(tmp_path / "failures.parquet")
    stage = StageResult("explain", {}, "", "model", folder=tmp_path, sections=())
    (cards,) = parts_of(misses(ReportContext(inputs_of(stage, model=run_with()))), QueryCards)
    assert isinstance(cards, QueryCards)
    (facet,) = (facet for facet in cards.facets if facet.name == "what differs")
    assert sum(choice.count for choice in facet.choices) == len(PLANTED), "chips add up to all misses"
    assert "not in the sample" in [choice.name for choice in facet.choices]


def test_a_run_without_misses_has_none_to_show() -> None:
    context = ReportContext(inputs_of(model=run_with({})))
    assert misses(context) is None
    assert example(context) is None
    assert failure_picture(context) is None


def test_of_several_runs_all_misses_are_listed() -> None:
    few = {query: PLANTED[query] for query in list(PLANTED)[3:4]}
    context = ReportContext(inputs_of(first=run_with(few, "first"), second=run_with(PLANTED, "second")))
    section = misses(context)
    assert section is not None
    assert [(part.target, len(part.entries)) for part in _lists(section)] == [
        ("misses-of-first", 1), ("misses-of-second", 7)
    ]  # fmt: skip


def test_of_several_models_the_misses_are_those_of_the_one_to_use() -> None:
    """A finding of the weaker model, and more of its near-twins, do not put its misses on top."""
    few = {query: PLANTED[query] for query in list(PLANTED)[3:4]}
    of_weak = finding("twins", "Position is not read.", ["o0#0"], "weak")
    stored = StageResult("explain", {}, "", "weak", "sides", sections=())
    context = ReportContext(inputs_of(
        stored, findings=(of_weak,), weak=run_with(PLANTED, "weak"), strong=run_with(few, "strong")
    ))  # fmt: skip
    page, section = PageQueries.of_page(context), misses(context)
    assert page.run.name == "strong"
    (text,) = (part for part in (section.parts if section else ()) if isinstance(part, Text))
    assert text.sentences[0].startswith("1 of 36 captions (strong)")
    faultless = ReportContext(inputs_of(weak=run_with(PLANTED, "weak"), strong=run_with({}, "strong")))
    assert PageQueries.of_page(faultless).run.name == "weak", "the best misses nothing"


def test_in_a_grid_the_misses_are_those_of_the_model_that_leads_most() -> None:
    few = {query: PLANTED[query] for query in list(PLANTED)[3:4]}
    datasets = {name: replace(DATASET, name=name) for name in ("x", "y", "z")}
    runs = {}
    for dataset, planted in (("x", (few, PLANTED)), ("y", (PLANTED, few)), ("z", (PLANTED, few))):
        for model, of_model in zip("ab", planted, strict=True):
            run = run_with(of_model, f"{model}-{dataset}")
            dataset_entry = {**run.provenance["dataset"], "name": dataset}
            runs[run.name] = replace(run, provenance={**run.provenance, "dataset": dataset_entry})
    of_weakest = finding("group", "Pets are hard.", ["o0#0"], "a-y")
    context = ReportContext(ReportInputs("t", runs, findings=(of_weakest,), datasets=datasets))
    assert context.shape == "grid"
    assert PageQueries.of_page(context).run.name == "b-y", "b leads on two of three"
    bars = PairedBars(title="What it confuses", levels=(("a", ""),), rows=())
    stored = [
        StageResult("explain", {}, "", name, sections=(Section("", (Folded("Asked for “x”", (bars,)),)),))
        for name in ("a-y", "b-y")
    ]
    section = failure_picture(ReportContext(ReportInputs("t", runs, tuple(stored), datasets=datasets)))
    assert section is not None
    assert section.title == "b on y: asked for “x”", "it is said whose confusions these are"


def test_what_came_first_is_claimed_where_most_misses_share_it() -> None:
    section = misses(ReportContext(inputs_of()))
    assert section is not None
    assert section.title == "Look at the misses yourself", "3 of 7 are not most"
    (bars,) = parts_of(section, PairedBars)
    assert isinstance(bars, PairedBars)
    (row,) = bars.rows
    assert row.name == "7 missed queries"
    assert dict(zip((name for name, _ in bars.levels), row.counts, strict=True)) == {
        "its near-twin": 3, "a variant of it": 2, "the same place": 1, "another place": 1,
    }  # fmt: skip
    twins = {f"o{animal}#{caption}": (f"t{animal}", 0.5) for animal in range(6) for caption in range(3)}
    planted = {**twins, "t0#0": ("v0", 0.5), "t1#0": ("v1", 0.5)}
    section = misses(ReportContext(inputs_of(model=run_with(planted))))
    assert section is not None
    assert section.title == "In 90 % of the misses, the right picture's near-twin came first"
    (bars,) = parts_of(section, PairedBars)
    assert isinstance(bars, PairedBars)
    figure = bars.rows[0].figure
    assert figure is not None
    assert 0.5 < figure.low < figure.value == 0.9 < figure.high
    two = misses(ReportContext(inputs_of(
        first=run_with(planted, "first"), second=run_with({**planted, **PLANTED}, "second")
    )))  # fmt: skip
    assert two is not None
    assert two.title == "In 90 % of the misses of first, the right picture's near-twin came first"


def test_other_runs_have_cards_of_what_is_not_above() -> None:
    planted = {**dict(list(PLANTED.items())[:2]), "o5#2": ("o0", 0.5)}
    context = ReportContext(inputs_of(first=run_with(planted, "first"), second=run_with(PLANTED, "second")))
    section = misses(context)
    assert section is not None
    (folded,) = (part for part in section.parts if isinstance(part, Folded))
    assert folded.title == "The surest mistakes of second that are not above"
    (cards,) = folded.parts
    assert isinstance(cards, QueryCards)
    assert {card.query for card in cards.cards} == set(PLANTED) - set(planted)
    assert [picture.image for picture in cards.cards[0].pictures] == ["o1", "t1"]


def test_pages_have_every_part_as_text_too() -> None:
    section = misses(ReportContext(inputs_of(findings=(finding("group", "pets are hard", ["o0#0"]),))))
    assert section is not None
    text = " ".join(str(part) for part in flat(section.parts))
    assert re.search("differs in position", text)


def test_every_chip_of_a_written_page_finds_cards(tmp_path: Path) -> None:
    write_report([run_with()], tmp_path / "page.html", dataset=DATASET)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    cards = [unescape(values).split("\n") for values in re.findall(r'data-values="([^"]*)"', page)]
    chips = re.findall(r'data-facet="(\d+)" data-value="([^"]*)"><?[^<]*<small>(\d+)', page)
    assert len(cards) >= len(PLANTED) - 1
    assert len(chips) >= 4
    for facet, value, _ in chips:
        assert any(values[int(facet)] == unescape(value) for values in cards), value
    assert 'split("\\n")' in page


@pytest.mark.parametrize(
    ("difference", "expected"),
    [
        ("unlike the retrieved one, it has no boat.", "Unlike the retrieved one, the right picture has no boat."),
        ("it has two dogs, the retrieved picture six.", "The right picture has two dogs, the retrieved picture six."),
        ("unlike those of the retrieved one, its captions mention a dog.",
         "Unlike those of the retrieved one, the captions of the right picture mention a dog."),
        ("both pictures have a train.", "Both pictures have a train."),
    ],
)  # fmt: skip
def test_what_two_pictures_differ_in_is_a_sentence_of_its_own(difference: str, expected: str) -> None:
    words = SimpleNamespace(text="", claims=())
    ranking = SimpleNamespace(text=f"The right picture comes second of 9 pictures; {difference}")
    assert reason_of(SimpleNamespace(sentences=(words, ranking))) == (expected, "")  # type: ignore[arg-type]


def test_the_bar_of_two_models_opens_its_queries() -> None:
    """The first finds three captions that the second misses, and misses one that the second finds."""
    order = list(PLANTED)
    first, second = ({query: PLANTED[query] for query in queries} for queries in (order[:2], order[1:5]))
    context = ReportContext(inputs_of(first=run_with(first, "first"), second=run_with(second, "second")))
    section = better(context)
    assert section is not None
    assert section.title == "Only first finds 3 of 36 queries, only second 1"
    (bars,) = parts_of(section, PairedBars)
    assert isinstance(bars, PairedBars)
    assert [(row.name, row.counts) for row in bars.rows] == [("36 queries", (3, 1, 31, 1))]
    (fold,) = parts_of(section, Folded)
    assert isinstance(fold, Folded)
    lists = [part for part in fold.parts if isinstance(part, EvidenceList)]
    assert [f"#{listed.target}" for listed in lists] == list(bars.rows[0].addresses)
    assert [sorted(query for query, _ in listed.entries) for listed in lists[:2] + lists[3:]] == [
        sorted(order[2:5]), order[:1], order[1:2],
    ]  # fmt: skip
    assert [len(listed.entries) for listed in lists] == [3, 1, 31, 1]
    assert [listed.title for listed in lists] == [
        "Only first finds: 3 queries", "Only second finds: 1 query", "Both find: 31 queries", "Neither finds: 1 query",
    ]  # fmt: skip
    assert dict(lists[1].entries)[order[0]].startswith("“a dog left of a cat” t0"), "what the first put first"

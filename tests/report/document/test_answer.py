"""The sentences that a report begins with, against planted truth; and that they are silent where there is nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import crosslens as cl
from crosslens.audits import StageResult
from crosslens.core import Effect, Figure, Finding, Interval, Intervals, PairedBars, Section, Table, Text
from crosslens.report import ReportInputs
from crosslens.report.document.answer import headline, questions, strip
from crosslens.report.document.context import ReportContext
from crosslens.report.document.sections import better, labels, numbers, reading
from crosslens.values import Dataset, Run

TARGETS = frozenset({"groups", "reading", "labels", "twins", "better", "numbers"})


def planted(name: str, hits: Sequence[bool], dataset: str = "toys", extra: int = 0, text: str = "caption") -> Run:
    """A run in which so many captions, one of each image, find their image first; ``extra`` images nobody asks for."""
    images = len(hits) + extra
    data = Dataset.of(
        {f"i{row}": [f"{text} {row}"] if row < len(hits) else [f"other {row}"] for row in range(images)}, name=dataset
    )
    scores = np.zeros((images, images), np.float32)
    for row in range(images):
        scores[row if row >= len(hits) or hits[row] else (row + 1) % images, row] = 1
    return cl.evaluate(data, scores=scores, metrics="Hit@1 Hit@5", name=name, resamples=100)


def context(*runs: Run, findings: Sequence[Finding] = (), results: Sequence[StageResult] = ()) -> ReportContext:
    return ReportContext(ReportInputs("t", {run.name: run for run in runs}, tuple(results), tuple(findings)))


def finding(kind: str, text: str, stage: str, certainty: str = "likely", **more: object) -> Finding:
    effect = Effect(0.4, 0.2, 0.5, "points")
    return replace(Finding(kind, text, certainty, effect, 0.01, (), None, stage=stage), **more)  # type: ignore[arg-type]


LOOKED = StageResult("soundness", {}, "")
GROUP = finding("group", "For style = sparse (12 captions), t2i/Hit@1 is about 40 points below the others.", "groups")
THREE_OF_FOUR = [True, True, True, False] * 10


@pytest.mark.parametrize(
    ("findings", "sentence"),
    [
        ((), "Nothing that was looked for was shown to break it."),
        ((GROUP,), "For style = sparse, it is about 40 fewer."),
        ((replace(GROUP, certainty="open"),), ""),
        (
            (finding("twins", "…", "twins", subject="colour", effect=Effect(0.1, 0.0, 0.2, "pairs")),),
            "Where two pictures differ in colour alone, it finds both in 10 of 100 pairs.",
        ),
        (
            (finding("hub", "Image 7 comes first for 20 % of the queries.", "soundness"),),
            "But the input is not sound: image 7 comes first for 20 % of the queries.",
        ),
        ((finding("colour", "The model hardly reads colours: of 50.", "probes"),), "The model hardly reads colours."),
        ((finding("same-caption", "6 captions are word for word another's.", "label-quality"),),
         "Nothing that was looked for was shown to break it."),
    ],
)  # fmt: skip
def test_one_run_how_good_and_what_breaks_it(findings: Sequence[Finding], sentence: str) -> None:
    sentence_printed = headline(context(planted("m", THREE_OF_FOUR), findings=findings, results=[LOOKED]))
    assert sentence_printed == f"m finds the right picture for 75 of 100 captions. {sentence}".strip()


def test_where_nothing_looked_nothing_is_said_to_be_missing() -> None:
    labels = StageResult("label-quality", {}, "", sections=())
    text = headline(context(planted("m", THREE_OF_FOUR), results=[labels]))
    assert text == "m finds the right picture for 75 of 100 captions."


def galleries(after: Sequence[bool], extra: int = 40) -> tuple[Run, Run]:
    return planted("m-small", THREE_OF_FOUR, "small"), planted("m-large", after, "large", extra)


def test_galleries_are_compared_over_the_same_queries() -> None:
    lost = [True, False, False, False] * 10
    runs = galleries(lost)
    report = context(*runs, results=[LOOKED])
    assert report.shape == "galleries"
    assert headline(report) == "m finds the right picture for 75 of 100 captions. Among 80 pictures it is 25."
    chart = strip(report)
    assert chart is not None
    assert [row.name for row in chart.rows] == ["small", "large"]
    assert [row.figure.value for row in chart.rows] == [0.75, 0.25]
    change = chart.rows[1].change
    assert change is not None
    assert change.value == pytest.approx(-0.5)
    assert change.low < -0.5 < change.high < 0
    whole = runs[1]["t2i/Hit@1"]
    assert (whole.n, report.shared["m-large"].n) == (80, 40), "the larger gallery has queries that the smaller lacks"
    assert whole.mean != pytest.approx(0.25)
    five = runs[1]["t2i/Hit@5"]
    shared, every = (Figure(values.mean(), scale=100, digits=0).number for values in (five.values[:40], five.values))
    assert shared != every
    text = lines(report)["How good is it?"][0]
    assert text.endswith(f"; it is among the first five for {shared}."), "over the shared queries, too"
    (note,) = [part for part in numbers(report).parts if isinstance(part, Text)]
    assert note.sentences[1:] == (
        "Over all queries of each gallery (40 and 80); at the top, over the 40 that all of them have.",
    )


def test_a_gallery_of_near_twins_is_called_so() -> None:
    def twins(run: str, dataset: str, pairs: int) -> StageResult:
        return StageResult("twins", {"facts": [{"fact": "colour", "pairs": pairs}]}, "", run, dataset)

    runs = galleries([True, False, False, False] * 10)
    results = [twins("m-small", "small", 0), twins("m-large", "large", 40)]
    assert headline(context(*runs, results=results)).endswith(". Give each picture a near-twin, and it is 25.")
    few = [twins("m-small", "small", 0), twins("m-large", "large", 8)]
    assert headline(context(*runs, results=few)).endswith(". Among 80 pictures it is 25.")


def test_galleries_without_a_loss_claim_none() -> None:
    many = THREE_OF_FOUR * 6
    same = planted("m-small", many, "small"), planted("m-large", many, "large", 40)
    assert headline(context(*same)).endswith(", and as many among 280 pictures.")
    one_lost = [False, *THREE_OF_FOUR[1:]]
    text = headline(context(*galleries(one_lost)))
    assert text == "m finds the right picture for 75 of 100 captions. Among 80 pictures it is 73."


def test_galleries_of_other_queries_are_not_compared() -> None:
    first, _ = galleries(THREE_OF_FOUR)
    other_gallery = planted("m-large", [True, False, False, False] * 10, "large", text="another")
    report = context(first, other_gallery)
    assert report.shared == {}
    assert headline(report) == "m finds the right picture for 75 of 100 captions of small, 25 of large."
    chart = strip(report)
    assert chart is not None
    assert all(row.change is None for row in chart.rows)


A, B = planted("a", THREE_OF_FOUR), planted("b", [True, False, False, False] * 10)


@pytest.mark.parametrize(
    ("findings", "sentence"),
    [
        ((), "a finds the right picture for 75 of 100 captions, b for 25: which is better is open."),
        ((finding("better", "…", "comparison", dataset="toys"),),
         "a finds the right picture for 75 of 100 captions, b for 25."),
        ((finding("better", "…", "comparison", "open", dataset="toys"),),
         "a finds the right picture for 75 of 100 captions, b for 25: which is better is open."),
        ((finding("no-difference", "…", "comparison", dataset="toys", subject="a, b"),),
         "a finds the right picture for 75 of 100 captions, and b no fewer and no more."),
    ],
)  # fmt: skip
def test_several_models_on_one_dataset(findings: Sequence[Finding], sentence: str) -> None:
    assert headline(context(A, B, findings=findings, results=[LOOKED])) == sentence


def test_models_with_the_same_lists_say_nothing_of_the_others() -> None:
    b_again = replace(B, name="b again")
    equal = finding("no-difference", "…", "comparison", dataset="toys", subject="b = b again")
    assert headline(context(A, B, b_again, findings=[equal], results=[LOOKED])) == (
        "a finds the right picture for 75 of 100 captions, b, the next best of 3 for 25: which is better is open."
    )
    a_again = replace(A, name="a again")
    better = finding("better", "…", "comparison", dataset="toys", subject="a and a again, b")
    assert headline(context(A, a_again, B, findings=[better], results=[LOOKED])) == (
        "a, like a again, finds the right picture for 75 of 100 captions, b, the next best of 3 for 25."
    )
    assert headline(context(A, a_again, results=[LOOKED])) == (
        "a, like a again, finds the right picture for 75 of 100 captions."
    )


def test_a_model_that_is_among_the_best_on_every_dataset_leads_on_all() -> None:
    weak = [True, False, False, False] * 10
    hits_of = {"x": (THREE_OF_FOUR, THREE_OF_FOUR, weak), "y": (weak, THREE_OF_FOUR, weak)}
    runs = [
        planted(f"{model}-{dataset}", hits, dataset, text=dataset)
        for dataset, of_models in hits_of.items()
        for model, hits in zip("abc", of_models, strict=True)
    ]
    sentence = headline(context(*runs, findings=[
        finding("better", "…", "comparison", dataset="x"), finding("better", "…", "comparison", dataset="y"),
    ]))  # fmt: skip
    assert sentence.endswith("It is shown to be better than the next on x and y.")
    assert "depends" not in sentence, "b is the best on x too, beside a"


def test_several_models_on_several_datasets() -> None:
    runs = [
        planted(f"{model}-{dataset}", hits, dataset, text=dataset)
        for dataset in ("x", "y")
        for model, hits in (("a", THREE_OF_FOUR), ("b", [True, False, False, False] * 10))
    ]
    report = context(*runs, results=[LOOKED])
    assert report.shape == "grid"
    assert headline(report) == (
        "Of 100 captions, a finds the most on x (75) and on y (75). It is shown to be better than the next on none of "
        "them."
    )
    better_on_y = finding("better", "…", "comparison", dataset="y")
    assert headline(context(*runs, findings=[better_on_y])).endswith("It is shown to be better than the next on y.")
    leaders_apart = [*runs[:2], replace(runs[2], values=runs[3].values), replace(runs[3], values=runs[2].values)]
    assert headline(context(*leaders_apart, results=[LOOKED])) == (
        "The most of 100 captions are found by a on x (75) and b on y (75). It is shown to be better than the next on "
        "none of them."
    )
    assert headline(context(*leaders_apart)).startswith(
        "Which model finds the most of 100 captions depends on the dataset: a on x (75) and b on y (75)."
    )
    apart = planted("a-x", THREE_OF_FOUR, "x", text="x"), planted("b-y", THREE_OF_FOUR, "y", text="y")
    assert headline(context(*apart)) == "On x, a finds 75 and on y, b finds 75 of 100 captions."
    chart = strip(report)
    assert chart is not None
    assert [(row.name, row.about) for row in chart.rows] == [("a", "x"), ("b", "x"), ("a", "y"), ("b", "y")]
    section = better(report)
    assert section is not None
    assert [type(part) for part in section.parts] == [Table], "a bar is of one dataset"


def test_what_is_open_is_between_the_two_that_lead() -> None:
    """The third of three models is far behind; only of the first two it is not known which is better."""
    runs = [planted(name, [row % 10 < hits for row in range(60)]) for name, hits in (("a", 9), ("b", 8), ("c", 1))]
    report = context(*runs, results=[LOOKED])
    compared = report.comparisons["toys"].results
    first = next(entry for entry in compared if {entry.baseline, entry.other} == {"a", "b"})
    assert first.adjusted_p < 0.05
    assert min(entry.adjusted_p for entry in compared) < first.adjusted_p
    p = Figure.p(first.adjusted_p).equation
    assert lines(report)["Which is better?"][:2] == (
        f"Open: tested alone, a and b differ (p {p}); corrected over everything that was looked at, that is not shown.",
        "open",
    )
    section = better(report)
    assert section is not None
    bars, table = section.parts
    assert isinstance(bars, PairedBars)
    assert [name for name, _ in bars.levels][:2] == ["only a finds", "only b finds"], "not the third"
    assert isinstance(table, Table)
    assert table.header[:2] == ("A", "B"), "one dataset, which the heading names"


def test_an_undecided_difference_is_said_with_its_interval_and_its_queries() -> None:
    """Of 40 captions 28 are found by both models, 2 by the first alone, 1 by the second and 9 by neither."""
    hits = [(row < 30, row < 28 or row == 30) for row in range(40)]
    runs = [planted(name, [of_query[column] for of_query in hits]) for column, name in enumerate("ab")]
    report = context(*runs, results=[LOOKED])
    text, certainty, _ = lines(report)["Which is better?"]
    assert certainty == "open"
    assert re.fullmatch(
        r"Open\. Whether \w or \w is better cannot be decided with 40 images: the difference \(\w − \w\) is between "
        r"-\d+ and \+\d+ points\.", text
    ), text  # fmt: skip
    section = better(report)
    assert section is not None
    assert section.title == "Only a finds 2 of 40 queries, only b 1", "the answer is not said again"
    bars = section.parts[0]
    assert isinstance(bars, PairedBars)
    assert [row.counts for row in bars.rows] == [(2, 1, 28, 9)]
    assert bars.rows[0].addresses == (), "without the dataset no query can be listed"


def test_a_model_with_the_same_name_on_two_datasets_is_one_model() -> None:
    of_y = {
        "a (2)": planted("a", THREE_OF_FOUR, "y", text="y"),
        "b (2)": planted("b", [False, True] * 20, "y", text="y"),
    }
    of_x = {"a": planted("a", THREE_OF_FOUR, "x", text="x"), "b": planted("b", [False, True] * 20, "x", text="x")}
    report = ReportContext(ReportInputs("t", {**of_x, **of_y}))
    assert report.shape == "grid"
    assert headline(report).startswith("Of 100 captions, a finds the most on x (75) and on y (75).")
    twice = ReportContext(ReportInputs("t", {**of_x, "a (2)": of_x["a"], "b (2)": of_y["b (2)"]}))
    assert [twice.model(name) for name in twice.inputs.runs] == ["a", "b", "a (2)", "b"], "two runs of one dataset"
    also = finding("better", "a is better", "comparison", dataset="x", also=("y",))
    shared = ReportContext(ReportInputs("t", {**of_x, **of_y}, findings=[also]))
    assert headline(shared).endswith("It is shown to be better than the next on x and y.")
    assert shared.said(also) == "x: a is better The same on y."


def test_where_no_query_is_missed_it_fails_nowhere() -> None:
    answers = lines(context(planted("m", [True] * 40), results=[LOOKED]))
    assert answers["Where does it fail?"][:2] == ("Nowhere: no query is missed.", "settled")


def lines(report: ReportContext) -> dict[str, tuple[str, str, str]]:
    answers = questions(report, TARGETS).answers
    return {answer.question: (answer.text, answer.certainty, answer.address) for answer in answers}


def test_four_questions_with_what_was_found() -> None:
    unread = finding("colour", "The model hardly reads colours: of 50 captions it notices 3.", "probes", "settled")
    same = finding("same-caption", "6 captions are word for word the caption of another image too: …", "label-quality")
    answers = lines(context(planted("m", THREE_OF_FOUR), findings=[GROUP, unread, same], results=[LOOKED]))
    assert list(answers) == ["How good is it?", "Where does it fail?", "What does it not read?",
                          "Can the labels be trusted?"]  # fmt: skip
    text, certainty, _ = answers["How good is it?"]
    assert text.startswith("m finds the right picture for 75 of 100 captions [")
    assert certainty == "likely", "40 images are fewer than 100"
    assert answers["Where does it fail?"] == (GROUP.text, "likely", "#groups")
    assert answers["What does it not read?"] == (unread.text, "settled", "#reading")
    assert answers["Can the labels be trusted?"] == (same.text, "likely", "#labels")


def test_where_nothing_is_wrong_the_lines_say_what_was_looked_at() -> None:
    results = [StageResult(stage, {}, "", "m") for stage in ("soundness", "groups", "probes", "label-quality")]
    answers = lines(context(planted("m", THREE_OF_FOUR), results=results))
    assert answers["Where does it fail?"][:2] == (
        "Nowhere in particular: no group of queries was shown to be worse than the rest.", "open",
    )  # fmt: skip
    assert answers["What does it not read?"][:2] == ("Nothing of what was tried was shown to go unread.", "open")
    assert answers["Can the labels be trusted?"][0] == "Nothing speaks against them: no caption was found twice."
    report = context(planted("m", THREE_OF_FOUR), results=results)
    report.inputs = replace(report.inputs, pictures={"toys": {"a": "a.png"}})
    both = "Nothing speaks against them: no caption and no picture was found twice."
    assert lines(report)["Can the labels be trusted?"][0] == both
    search_results = [StageResult("missing-positives", {}, "", "m")]
    text = lines(context(planted("m", THREE_OF_FOUR), results=search_results))["Can the labels be trusted?"][0]
    assert text == "Nothing speaks against them.", "nobody looked for captions that are there twice"


def test_how_good_a_model_is_stays_open_where_rows_are_shifted() -> None:
    shifted = finding(
        "misaligned", "30 % of the captions are compared with the vectors of another image: …", "soundness"
    )
    many = planted("m", THREE_OF_FOUR * 4)
    for certainty, answer in (("settled", "open"), ("likely", "open"), ("open", "settled")):
        findings = [replace(shifted, certainty=certainty)]
        assert lines(context(many, findings=findings, results=[LOOKED]))["How good is it?"][1] == answer


def test_what_nobody_looked_at_is_said_to_be_so() -> None:
    report = context(planted("m", THREE_OF_FOUR), results=[StageResult("evaluate", {}, "")])
    report.inputs = replace(report.inputs, skipped={"probes": "needs a model that makes vectors of captions"})
    answers = lines(report)
    assert (
        answers["What does it not read?"][0] == "Not looked at, as that needs a model that makes vectors of captions."
    )
    assert answers["Can the labels be trusted?"][0] == "Not looked at."
    alone = lines(context(planted("m", THREE_OF_FOUR)))
    assert list(alone) == ["How good is it?", "Not asked"]
    assert "Can the labels be trusted? These are runs alone; crosslens audit looks at more." in alone["Not asked"][0]


def test_what_nobody_looked_at_for_one_reason_is_said_once() -> None:
    report = context(planted("m", THREE_OF_FOUR), results=[StageResult("evaluate", {}, "")])
    stages = ("soundness", "groups", "probes", "robustness", "twins", "label-quality", "missing-positives")
    report.inputs = replace(report.inputs, skipped=dict.fromkeys(stages, "needs a dataset: none is given"))
    answers = lines(report)
    assert list(answers) == ["How good is it?", "Not asked"]
    assert answers["Not asked"][0] == (
        "Where does it fail? What does it not read? Can the labels be trusted? "
        "Not looked at, as that needs a dataset: none is given."
    )


def test_titles_say_which_of_several_models_and_leave_out_brackets() -> None:
    typing = "One typing error costs 9.5 [4.6, 15.1] points of Hit@1 (63.5 % without, 54.0 % with one)."
    seen = finding("typos", f"weak: {typing}", "probes", model="weak")
    stage = StageResult("probes", {}, "", "weak", sections=(Section("", (Text(("a change",)),)),))
    weak, strong = planted("weak", THREE_OF_FOUR), planted("strong", [True] * 40)
    section = reading(context(weak, strong, findings=[seen], results=[stage]))
    assert section is not None
    assert section.title == "weak: one typing error costs 9.5 points of Hit@1"
    alone = reading(context(weak, findings=[seen], results=[stage]))
    assert alone is not None
    assert alone.title == "One typing error costs 9.5 points of Hit@1"
    answer = headline(context(weak, findings=[seen], results=[LOOKED]))
    assert answer.endswith("for 75 of 100 captions. One typing error costs 9.5 points of Hit@1.")


def test_a_finding_does_not_name_the_only_dataset() -> None:
    doubled = finding("same-caption", "toys: 2 captions are doubled.", "label-quality", dataset="toys")
    assert context(planted("m", THREE_OF_FOUR)).said(doubled) == "2 captions are doubled."
    several = context(planted("m", THREE_OF_FOUR), planted("n", THREE_OF_FOUR, "others"))
    assert several.said(doubled) == "toys: 2 captions are doubled."


def test_what_a_title_claims_is_not_said_again_below_it() -> None:
    doubled = "6 captions are the caption of another image too"
    same_caption = finding(
        "same-caption", f"{doubled}: no model can tell which is meant.", "label-quality", dataset="toys"
    )
    stage = StageResult("label-quality", {}, "", dataset="toys", sections=(Section("", (Text(("a label",)),)),))
    section = labels(context(planted("m", THREE_OF_FOUR), findings=[same_caption], results=[stage]))
    assert section is not None
    assert (section.title, section.parts[0]) == (doubled, Text(("No model can tell which is meant.",)))


def test_costs_of_changes_are_told_from_none() -> None:
    points = Figure(None, scale=100, digits=1)
    rows = (
        Interval(replace(points, value=0.08, low=0.05, high=0.11), "char swap"),
        Interval(replace(points, value=-0.01, low=-0.03, high=0.01), "shuffle all words"),
    )
    study = StageResult("robustness", {}, "", "m", sections=(Section("", (Intervals(title="lost", rows=rows),)),))
    answer = lines(context(planted("m", THREE_OF_FOUR), results=[study]))["What does it not read?"]
    assert answer[0] == (
        "Nothing was shown to go unread. Changed in every caption: char swap cost 8 points [5, 11] and shuffle all "
        "words cost nothing that can be told (-1 point [-3, 1])."
    )


def test_a_line_leads_only_to_what_the_page_has() -> None:
    report = context(planted("m", THREE_OF_FOUR), findings=[GROUP], results=[LOOKED])
    assert {answer.address for answer in questions(report, frozenset()).answers} == {""}

"""From observations to what an audit says: corrected together, as sure as measured, unsound input first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from crosslens.audits.conclusions import Observed, certainty_of, conclude
from crosslens.core import FINDING_KINDS, Effect, Figure, Finding, Observation, Precision, finding_kind
from crosslens.storage import json_form

SURE = Precision(0.98, 200, "drawn scenes")
PRECISIONS = dict.fromkeys(("weak", "slow", "shifted", "blank", "foreign"), SURE)


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds that are about nothing; those of the package are left alone."""
    monkeypatch.setattr(FINDING_KINDS, "_entries", {})
    monkeypatch.setattr(FINDING_KINDS, "_loaded", True)
    common: dict[str, Any] = {"stage": "made-up", "strengths": (1.0,), "strength_words": "{}"}
    for name, details in {
        "weak": {}, "slow": {}, "list": {}, "shifted": {"unsound": True, "silences": ("*",)},
        "blank": {"unsound": True, "silences": ("slow",)}, "foreign": {"unsound": True, "explains": ("weak",)},
        "accusing": {"accuses": True},
        "worst": {"searched": True},
    }.items():  # fmt: skip

        def plant() -> None:
            """Nothing."""

        finding_kind(name, f"{name}: {{what}}.", **{**common, **details})(plant)
    return


def observation(kind: str = "weak", **more: Any) -> Observation:
    effect = Effect(0.1, 0.05, 0.15, "points")
    return Observation(**{"kind": kind, "words": {"what": "words"}, "effect": effect, "weight": 0.1, **more})


def kinds_concluded(*observations: Observation | Observed, precisions: Any = PRECISIONS) -> list[str]:
    observed = [
        entry if isinstance(entry, Observed) else Observed(entry, "made-up", "a", "d") for entry in observations
    ]
    return [finding.kind for finding in conclude(observed, precisions)]


def test_p_values_are_corrected_over_all_that_was_looked_at() -> None:
    lucky = observation(p=0.02)
    assert kinds_concluded(lucky) == ["weak"]
    assert kinds_concluded(lucky, *(observation("slow", p=0.5) for _ in range(20))) == [], (
        "1 of 21 tests is expected by chance"
    )
    (finding,) = conclude([Observed(lucky), Observed(observation("slow", p=0.9))], PRECISIONS)
    assert finding.p == pytest.approx(0.04)


def test_a_list_cites_the_precision_of_its_own_similarity() -> None:
    lists = [Observed(observation("list", worth_a_look=True, subject=phi)) for phi in ("semantic", "cider")]
    measured, not_measured = conclude(lists, {"list/semantic": SURE})
    assert (measured.subject, measured.precision, measured.certainty) == ("semantic", SURE, "open")
    assert "98 % of 200 such statements were true, measured in drawn scenes" in measured.reason
    assert (not_measured.precision, not_measured.certainty) == (None, "open")


def test_what_was_counted_makes_no_test_more_certain() -> None:
    lucky, others = observation(p=0.02), [observation("slow", p=0.9) for _ in range(3)]
    counted = [observation("blank", p=0.0, subject=str(number)) for number in range(5)]
    assert kinds_concluded(lucky, *others) == []
    assert kinds_concluded(lucky, *others, *counted) == ["blank"] * 5


def test_what_was_not_seen_is_not_said() -> None:
    assert kinds_concluded(observation()) == []
    assert kinds_concluded(observation(p=0.2), observation("slow", bounded=False)) == []


@pytest.mark.parametrize(
    ("fields", "p", "precision", "expected"),
    [
        ({"p": 0.001}, 0.001, SURE, "settled"),
        ({"p": 0.02}, 0.02, SURE, "likely"),
        ({"bounded": True}, None, SURE, "settled"),
        ({"p": 0.001}, 0.001, Precision(0.98, 49, ""), "likely"),
        ({"p": 0.001}, 0.001, Precision(0.9, 200, ""), "likely"),
        ({"p": 0.001}, 0.001, Precision(0.79, 200, ""), "open"),
        ({"p": 0.001}, 0.001, None, "open"),
        ({"worth_a_look": True}, None, SURE, "open"),
        ({"p": 0.2, "worth_a_look": True}, 0.2, SURE, "open"),
        ({"p": 0.05}, 0.05, SURE, None),
        ({"bounded": False}, None, SURE, None),
    ],
)
def test_certainty(fields: dict[str, Any], p: float | None, precision: Precision | None, expected: str | None) -> None:
    assert certainty_of(observation(**fields), p, precision) == expected


def test_what_accuses_labels_takes_more() -> None:
    accusing = observation("accusing", p=0.001)
    assert certainty_of(accusing, 0.001, Precision(0.89, 200, "")) == "open"
    assert certainty_of(accusing, 0.001, Precision(0.9, 200, "")) == "likely"


def test_the_worst_of_many_takes_more() -> None:
    """Of 0.05, one in twenty datasets without a weak group would be said to have one."""
    assert certainty_of(observation("worst", p=0.009), 0.009, SURE) == "settled"
    assert certainty_of(observation("worst", p=0.009), 0.009, Precision(0.98, 49, "")) == "likely"
    assert certainty_of(observation("worst", p=0.011), 0.011, SURE) is None


def test_what_accounts_for_more_is_said_first_and_open_ones_last() -> None:
    small, large = observation(p=0.0, weight=0.05), observation("slow", p=0.0, weight=0.4)
    listed = observation("list", worth_a_look=True, weight=0.9)
    assert kinds_concluded(listed, small, large) == ["slow", "weak", "list"]


def test_five_sentences_say_five_things() -> None:
    groups = [observation(p=0.0, weight=0.3, subject=str(number)) for number in range(6)]
    assert kinds_concluded(*groups, observation("slow", p=0.0, weight=0.1))[:2] == ["weak", "slow"]


def test_unsound_input_is_said_first_and_silences_what_depends_on_it() -> None:
    weak, slow = observation(p=0.0, weight=0.5), observation("slow", p=0.0, weight=0.4)
    blank = observation("blank", p=0.0, weight=0.05)
    assert kinds_concluded(weak, slow, blank) == ["blank", "weak"]
    assert kinds_concluded(weak, slow, observation("shifted", p=0.0, weight=0.3)) == ["shifted"]
    assert kinds_concluded(blank, observation("shifted", p=0.0, weight=0.02))[0] == "shifted", (
        "what silences the model first"
    )


def test_unsound_ids_silence_only_what_consists_of_them() -> None:
    def of(kind: str, *queries: str, **more: Any) -> Observation:
        return observation(kind, p=0.0, evidence=[{"query": query} for query in queries], **more)

    foreign = of("foreign", "a", "b", "c")
    assert kinds_concluded(of("weak", "a", "b", "x"), foreign) == ["foreign"], "two of three are explained"
    assert kinds_concluded(of("weak", "a", "x", "y"), of("slow", "a"), foreign) == ["foreign", "weak", "slow"]
    assert kinds_concluded(of("weak"), foreign) == ["foreign", "weak"]
    assert kinds_concluded(of("weak", "a"), of("foreign", "a", weight=0.001)) == ["foreign", "weak"], "a trifle"


def test_a_trifle_or_a_doubt_silences_nothing() -> None:
    slow = observation("slow", p=0.0)
    assert kinds_concluded(slow, observation("blank", p=0.0, weight=0.001)) == ["blank", "slow"], (
        "first, as it is settled"
    )
    assert set(kinds_concluded(slow, observation("shifted", p=0.03, weight=0.3))) == {"shifted", "slow"}, (
        "likely, not settled"
    )


def test_an_unsound_run_silences_neither_another_run_nor_the_dataset() -> None:
    shifted = Observed(observation("shifted", p=0.0, weight=0.3), "made-up", "a", "d")
    other_run = Observed(observation(p=0.0), "made-up", "b", "d")
    dataset = Observed(observation("slow", p=0.0), "made-up", "", "d")
    assert set(kinds_concluded(shifted, other_run, dataset)) == {"shifted", "weak", "slow"}


def test_the_same_of_one_model_on_several_datasets_is_said_once() -> None:
    entries = [
        Observed(observation(p=0.0, weight=weight), "made-up", "a", name) for name, weight in (("x", 0.1), ("y", 0.3))
    ]
    (finding,) = conclude(entries, PRECISIONS)
    assert (finding.dataset, finding.also) == ("y", ("x",))
    runs = {"a-x": "a", "a-y": "a", "b-y": "b"}
    of_runs = [Observed(observation(p=0.0), "made-up", run, run[-1]) for run in runs]
    assert [(finding.model, finding.also) for finding in conclude(of_runs, PRECISIONS, runs)] == [
        ("a-x", ("y",)),
        ("b-y", ()),
    ]
    by_column = [Observed(observation(p=0.0, subject=column), "made-up", "a", "x") for column in ("style", "place")]
    assert len(conclude(by_column, PRECISIONS)) == 2


def test_stored_observations_say_the_same() -> None:
    figure = Figure(0.125, 0.06, 0.2, scale=100, digits=1)
    with_figure = observation(words={"what": figure})
    assert with_figure.text == "weak: 12.5 [6.0, 20.0]."
    assert Observation(**{**json_form(vars(with_figure)), "effect": with_figure.effect}).text == with_figure.text


def test_findings_are_stored_by_contract() -> None:
    weak = observation(p=0.001, evidence=({"query": "q"}, {"items": ["a", "b"]}))
    (finding,) = conclude([Observed(weak, "made-up", "a", "d")], PRECISIONS)
    assert finding.reason == (
        "p = 0.0010 after correction over everything that was looked at; 98 % of 200 such statements were true, "
        "measured in drawn scenes."
    )
    assert replace(finding, p=None, precision=None).reason == "How often such statements are true was not measured."
    stored = json_form(finding.as_dict())
    assert stored["text"] == "weak: words."
    assert stored["effect"] == {"value": 0.1, "low": 0.05, "high": 0.15, "unit": "points"}
    assert stored["precision"] == {"value": 0.98, "n": 200, "where": "drawn scenes"}
    assert stored["evidence"] == [{"query": "q"}, {"items": ["a", "b"]}]
    assert {"kind", "text", "certainty", "effect", "p", "evidence", "precision"} <= set(stored)
    assert Finding.from_dict(stored) == finding

"""Requirements are read as the grammar says; an independent pattern of the whole grammar decides what is one."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, strategies as st

from crosslens.audits import Requirement, parse_requirement
from crosslens.core import UsageError
from tests.tables import each_row

# The grammar once more, as one pattern without a tokenizer.
_NAME = r"""(?:"[^"]+"|'[^']+'|(?:\[[^\[\]]*\]|[^\s,()<>=≥≤"'\[\]])+)"""
_CALLS = (
    rf"drop\s*\(\s*{_NAME}\s*(?:,\s*{_NAME}\s*)?\)",
    rf"group\s*\(\s*{_NAME}\s*=\s*{_NAME}\s*,\s*{_NAME}\s*\)",
    rf"worst\s*\(\s*{_NAME}\s*,\s*{_NAME}\s*\)",
    rf"gap\s*\(\s*{_NAME}\s*(?:,\s*{_NAME}\s*)?\)",
)
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
WHOLE = re.compile(rf"\s*(?:{'|'.join(_CALLS)}|{_NAME})\s*(?:>=|<=|≥|≤|>|<)\s*({_NUMBER})\s*%?\s*")

PIECES = st.sampled_from(
    [
        *("t2i/Hit@1", "SR[spice, m=20]@5", "drop", "group", "worst", "gap", "mean", "category", '"a b"', "'(none)'"),
        *("(", ")", ",", "=", ">=", "<=", ">", "<", "≥", "%", "[", "]", '"', ".", " ", "  ", "\t", "\x1b"),
        *("0.6", "60", "-1", "60%", "1e3", "٣"),
    ]
)

names = st.text(st.characters(exclude_characters="\"'"), min_size=1, max_size=12) | st.sampled_from(
    ["t2i/Hit@1", "SR[spice, m=20]@5", "category", "a b", "[4, 8)", "drop", "it's", 'say "x"', "60%"]
)


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    kind = draw(st.sampled_from(["metric", "drop", "group", "worst", "gap"]))
    metric, subject, value = draw(names), draw(names), draw(names)
    if kind == "drop":
        metric = draw(st.sampled_from(["", metric]))
    if kind == "gap":
        subject = draw(st.sampled_from(["", subject]))
    return Requirement(
        kind, metric, draw(st.sampled_from([">=", "<=", ">", "<"])),
        draw(st.floats(allow_nan=False, allow_infinity=False)), draw(st.booleans()),
        "" if kind == "metric" else subject, value if kind == "group" else "",
    )  # fmt: skip


@given(requirements())
def test_what_is_written_is_read_again(requirement: Requirement) -> None:
    assert parse_requirement(str(requirement)) == requirement


@st.composite
def nearly_requirements(draw: st.DrawFn) -> str:
    """A requirement with up to two places where something was put in or taken out."""
    text = str(draw(requirements()))
    for _ in range(draw(st.integers(0, 2))):
        start = draw(st.integers(0, len(text)))
        text = text[:start] + draw(PIECES | st.just("")) + text[start + draw(st.integers(0, 2)) :]
    return text


@given(nearly_requirements() | st.lists(PIECES, max_size=9).map("".join))
def test_the_parser_accepts_exactly_the_grammar(text: str) -> None:
    whole = WHOLE.fullmatch(text)
    try:
        parse_requirement(text)
        accepted = True
    except UsageError:
        accepted = False
    assert accepted == (whole is not None and math.isfinite(float(whole[1])))


@given(st.text(max_size=40) | nearly_requirements())
def test_whatever_is_wrong_has_a_position_inside_the_text(text: str) -> None:
    try:
        requirement = parse_requirement(text)
    except UsageError as error:
        position = int(re.findall(r"character (\d+): ", error.problem)[-1])
        assert 1 <= position <= len(text) + 1
    else:
        assert set(requirement.positions.values()) <= set(range(len(text)))


def test_a_requirement_cut_short_is_refused() -> None:
    text = "worst(category, t2i/Hit@1) >="
    for cut in range(len(text) + 1):
        with pytest.raises(UsageError, match=r"character \d+: expected"):
            parse_requirement(text[:cut])


@each_row(
    ("text", "expected"),
    [
        ("t2i/Hit@1 >= 0.6", Requirement("metric", "t2i/Hit@1", ">=", 0.6)),
        ("t2i/Hit@1≥60%", Requirement("metric", "t2i/Hit@1", ">=", 60, percent=True)),
        ("t2i/MedR<3", Requirement("metric", "t2i/MedR", "<", 3)),
        ("SR[spice, m=20]@5 > .5", Requirement("metric", "SR[spice, m=20]@5", ">", 0.5)),
        ("drop(char_swap) <= 5", Requirement("drop", "", "<=", 5, subject="char_swap")),
        ("drop(blur@3, t2i/Hit@1) <= 5 %", Requirement("drop", "t2i/Hit@1", "<=", 5, True, "blur@3")),
        (
            "group(category = 'street signs', t2i/Hit@1) >= 1e-1",
            Requirement("group", "t2i/Hit@1", ">=", 0.1, False, "category", "street signs"),
        ),
        ("worst(task,Hit@1) >= 40%", Requirement("worst", "Hit@1", ">=", 40, True, "task")),
        ("gap(Rsum) >= -1", Requirement("gap", "Rsum", ">=", -1)),
        ("gap(Rsum, runs/old one) >= -1", None),
        ('gap(Rsum, "runs/old one") >= -1', Requirement("gap", "Rsum", ">=", -1, False, "runs/old one")),
    ],
)
def test_forms(text: str, expected: Requirement | None) -> None:
    if expected is None:
        with pytest.raises(UsageError, match=re.escape("character 20: expected ')', not 'one'")):
            parse_requirement(text)
    else:
        assert parse_requirement(text) == expected


@each_row(
    ("text", "message"),
    [
        ("", "character 1: expected a metric, such as t2i/Hit@1, not the end"),
        ("t2i/Hit@1", "character 10: expected one of >=, <=, > and <, not the end"),
        ("t2i/Hit@1 = 0.6", "character 11: expected one of >=, <=, > and <, not '='"),
        ("t2i/Hit@1 >= lots", "character 14: expected a number, such as 0.6 or 60%, not 'lots'"),
        ("t2i/Hit@1 >= 1e999", "character 14: expected a number"),
        ("t2i/Hit@1 >= 0.6 0.7", "character 18: expected nothing more, not '0.7'"),
        ("t2i/Hit@1 >= 0.6 and", "character 18: expected nothing more"),
        ("wurst(category, Hit@1) > 0", "character 1: unknown function 'wurst'"),
        ("drop() <= 5", "character 6: expected a perturbation, such as char_swap, not ')'"),
        ("group(category, Hit@1) > 0", "character 15: expected '=', not ','"),
        ("worst(category) > 0", "character 15: expected ',', not ')'"),
        ("worst(category, Hit@1 > 0", "character 23: expected ')', not '>'"),
        ("group(category='', Hit@1) > 0", "character 16: expected a value of category"),
        ("SR[spice@5 > 0", "character 3: expected one of >=, <=, > and <, not '['"),
    ],
)
def test_mistakes_are_named_with_their_position(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_requirement(text)
    assert message in caught.value.problem
    assert caught.value.exit_code == 2

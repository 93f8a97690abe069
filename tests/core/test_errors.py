"""Errors: where, what, how to fix it; options spelled for each audience; facts beside the text."""

from __future__ import annotations

import pytest

from crosslens.core import (
    ConflictError,
    CrosslensError,
    InputError,
    MissingExtraError,
    UnknownNameError,
    UsageError,
    argument,
    reading,
    where_option,
)


def on_the_command_line(name: str, value: str | None) -> str:
    flag = "--" + name.replace("_", "-")
    return flag if value in (None, "True") else f"{flag} {value.strip(chr(39))}"


def test_an_input_error_names_location_expectation_and_fix() -> None:
    error = InputError("no text", file="captions.json", row=17, expected="a string", fix="write one")
    assert str(error) == "captions.json, row 17: no text\n  expected: a string\n  fix: write one"
    assert str(InputError("no text", row="line 3")) == "line 3: no text"
    assert (error.problem, error.fix, error.row) == ("no text", "write one", 17)


def test_reading_adds_the_file_once() -> None:
    with pytest.raises(InputError, match=r"^inner\.json: bad"), reading("outer.json"), reading("inner.json"):
        raise InputError("bad")


@pytest.mark.parametrize(
    ("name", "value", "python", "command_line"),
    [
        ("overwrite", True, "overwrite=True", "--overwrite"),
        ("score", "dot", "score='dot'", "--score dot"),
        ("rerank_depth", 5, "rerank_depth=5", "--rerank-depth 5"),
        ("depth", None, "depth=", "--depth"),
        ("note", "two\nlines", "note='two\\nlines'", "--note two\\nlines"),
    ],
)
def test_options_are_spelled_for_each_audience(name: str, value: object, python: str, command_line: str) -> None:
    error = ConflictError("it exists", fix=f"pass {argument(name, value)}, or stop")
    assert error.fix == f"pass {python}, or stop"
    assert str(error) == f"it exists\n  fix: pass {python}, or stop"
    assert error.render(on_the_command_line) == f"it exists\n  fix: pass {command_line}, or stop"


def test_every_option_of_a_message_is_spelled() -> None:
    error = UsageError(f"{argument('model')} needs {argument('dataset', 'coco')}")
    assert error.problem == str(error) == "model= needs dataset='coco'"
    assert error.render(on_the_command_line) == "--model needs --dataset coco"


def test_a_part_for_those_who_have_the_option() -> None:
    fix = "repair it" + where_option("skip_bad", f", or pass {argument('skip_bad', True)}")
    error = UsageError("bad", fix=fix)
    assert error.fix == "repair it, or pass skip_bad=True"
    assert error.render(on_the_command_line) == "bad\n  fix: repair it, or pass --skip-bad"
    assert error.render(lambda name, value: None) == "bad\n  fix: repair it"


def test_errors_carry_their_facts() -> None:
    plain = CrosslensError("bad")
    assert (plain.code, plain.subject, plain.option, plain.fix) == (None, None, None, None)
    error = InputError("empty caption 'c1'", row=3, code="empty-caption", subject="c1", option="captions")
    assert (error.code, error.subject, error.option) == ("empty-caption", "c1", "captions")
    unknown = UnknownNameError("metric", "hit", ["Hit"])
    assert (unknown.code, unknown.subject, unknown.suggestions) == ("unknown-name", "hit", ["Hit"])


def test_context_comes_before_the_problem_and_keeps_the_rest() -> None:
    error = InputError("too short", row=2, expected="more", fix=f"use {argument('ties', 'stable')}", code="short")
    error.add_context("t2i/Hit@5 cannot be computed")
    error.fix = f"{error.fix}, or stop"
    assert str(error) == (
        "row 2: t2i/Hit@5 cannot be computed: too short\n  expected: more\n  fix: use ties='stable', or stop"
    )
    assert error.code == "short"


def test_a_missing_extra_carries_the_command() -> None:
    error = MissingExtraError("the torch backend", "torch", "torch")
    assert "pip install 'crosslens[torch]'" in str(error)
    assert isinstance(error, ImportError)


def test_unknown_names_suggest_near_ones() -> None:
    assert "did you mean Hit?" in str(UnknownNameError("metric", "hit", ["Hit", "MRR"]))
    assert "did you mean Hit or SRhit?" in str(UnknownNameError("metric", "hitt", ["SRhit", "Hit"])), "case is no error"
    assert "known: a, b" in str(UnknownNameError("metric", "zzz", ["b", "a"]))
    assert "known: none" in str(UnknownNameError("metric", "zzz", []))


def test_exit_codes() -> None:
    errors = (InputError("x"), UsageError("x"), UnknownNameError("x", "y", ()), ConflictError("x"))
    assert [error.exit_code for error in errors] == [3, 2, 2, 5]

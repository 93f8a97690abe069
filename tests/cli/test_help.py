"""The help of every command: short where there are many flags, whole with ``--help-all``, groups in the same order."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from crosslens.cli.app import _command_of
from crosslens.cli.flags import command
from crosslens.cli.help import MOST_LISTED, CommandHelp, group_of
from crosslens.core import GROUPS, METHOD, READER, Options, declarations, option
from tests.tables import each_row

from .conftest import Call
from .test_main import COMMANDS

_ROW = re.compile(r"^  (-.*?)(?:  .*)?$", re.MULTILINE)
"""The left column of a row that describes a flag."""
_FLAG = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")
LONG = [words for words in COMMANDS if _command_of(words).is_long]


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def listed(text: str, flags: list[Any]) -> Counter[str]:
    """How often each flag begins a row, or stands in the list of reader options."""
    left = " ".join(_ROW.findall(_behind_examples(text)))
    readers = re.search(rf"^{READER}.*:\n((?:  .*\n)+)", text, re.MULTILINE)
    if readers is not None:
        left = left.replace(" ".join(_ROW.findall(readers[1])), "") + readers[1]
    words = Counter(_FLAG.findall(left))
    return Counter({flag.name: words[max(flag.opts, key=len)] for flag in flags})


def _behind_examples(text: str) -> str:
    examples = re.search(r"^Examples:\n(?:  .*\n)+", text, re.MULTILINE)
    return text if examples is None else text[examples.end() :]


@each_row("words", COMMANDS)
def test_help_of_every_command(words: tuple[str, ...], call: Call) -> None:
    parsed, outcome = _command_of(words), call(*words, "--help")
    text = outcome.out
    assert outcome.code == 0
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert f"\n  Examples:\n    crosslens {words[0]}" in text or f"\nExamples:\n  crosslens {words[0]}" in text
    assert re.search(rf"^ +crosslens {' '.join(words)}\b", text, re.MULTILINE)
    flags = [flag for flag, times in listed(text, parsed.flags).items() if times]
    assert len(flags) <= MOST_LISTED
    assert {flag.name for flag in parsed.flags if flag.required} <= set(flags)
    assert "json" in flags
    assert ("--help-all" in text) == parsed.is_long
    if not parsed.is_long:
        assert set(flags) == {flag.name for flag in parsed.flags}
        assert call(*words, "--help-all").out == text


@each_row("words", LONG)
def test_short_help(words: tuple[str, ...], call: Call) -> None:
    """Usage, a sentence, one to three examples that use what is explained, some flags, and where the others are."""
    parsed, text = _command_of(words), call(*words, "--help").out
    assert text.splitlines()[-1] == f"--help-all lists all {len(parsed.flags)} options."
    examples = re.search(r"^Examples:\n((?:  .*\n)+)", text, re.MULTILINE)
    assert examples is not None
    assert 1 <= len(re.findall(r"^  \S", examples[1], re.MULTILINE)) <= 3
    explained = set(_FLAG.findall(" ".join(_ROW.findall(_behind_examples(text)))))
    assert set(re.findall(r"(?<!\S)--?[a-zA-Z][\w-]*", examples[1])) <= explained
    groups = [group_of(flag) for flag in parsed.common_flags]
    assert groups == sorted(groups, key=GROUPS.index)
    assert len(groups) >= 4
    paragraphs = text.split("\n\n")
    assert paragraphs[1].count(".") == 1, "one sentence"


@each_row("words", LONG)
def test_help_of_all_flags(words: tuple[str, ...], call: Call) -> None:
    parsed, outcome = _command_of(words), call(*words, "--help-all")
    text = outcome.out
    assert outcome.code == 0
    assert listed(text, parsed.flags) == Counter({flag.name: 1 for flag in parsed.flags})
    assert max(map(len, text.splitlines())) <= 80
    headings = [line.partition(":")[0].partition(" (")[0] for line in text.splitlines() if re.match(r"[A-Z].*:$", line)]
    headings_of_flags = [heading for heading in headings if heading not in ("Examples", "Arguments")]
    assert headings_of_flags == [group for group in GROUPS if group in headings_of_flags]
    assert set(headings_of_flags) == {group_of(flag) for flag in parsed.flags}
    assert all(example in text for example in (line.strip() for line in parsed.epilog.splitlines()[2:]))
    assert " ".join(parsed.help.split()) in " ".join(text.split())


def test_every_flag_has_a_group() -> None:
    for words in COMMANDS:
        for flag in _command_of(words).flags:
            assert flag.rich_help_panel in GROUPS, (words, flag.name)


def test_a_flag_is_in_one_group_wherever_it_says_the_same() -> None:
    groups: dict[tuple[str, str], set[str]] = {}
    for words in COMMANDS:
        for flag in _command_of(words).flags:
            groups.setdefault((flag.name, flag.help), set()).add(group_of(flag))
    assert {key: values for key, values in groups.items() if len(values) > 1} == {}


def test_reader_options_are_said_once(call: Call) -> None:
    text = call("evaluate", "--help-all").out
    heading = "Reader options (crosslens data formats describes them):\n"
    assert text.partition(heading)[2].partition("\n\n")[0].split() == [
        "--captions", "FILE", "--instances", "FILE", "--images", "FILE", "--split", "NAME", "-D,", "--data",
        "KEY=VALUE",
    ]  # fmt: skip
    assert "Reader option" not in text.replace(heading, "")
    described = call("data", "formats").out
    for flag in ("--captions", "--instances", "--images", "--split", "-D KEY=VALUE"):
        assert flag in described


@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_help_fits_the_terminal(columns: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for flag in ("--help", "--help-all"):
        text = _behind_examples(call("robustness", flag).out)
        assert max(map(len, text.splitlines())) <= int(columns)


def test_flags_that_help_leaves_out_are_accepted(call: Call) -> None:
    sizes = ("--images", "1000", "--captions", "5000", "--dim", "64")
    assert "--network" not in call("plan", "--help").out
    slow, fast = (call("plan", *sizes, "--nodes", "4", "--network", speed, "--json") for speed in ("1", "1000"))
    assert slow.code == fast.code == 0
    assert slow.json != fast.json


def test_an_unknown_flag_is_answered_with_the_list_of_all(call: Call) -> None:
    assert "see crosslens evaluate --help-all" in call("evaluate", "--metrik", "x", mistyped=True).err
    assert "see crosslens doctor --help\n" in call("doctor", "--metrik", "x", mistyped=True).err


# How a group is declared


@dataclass(frozen=True)
class SearchOptions(Options, group="Metrics"):
    """How lists are made."""

    weight: float = option(1.0, "Of its class.", metavar="X")
    host: str | None = option(None, "Its own.", metavar="HOST", group="Execution")
    seed: int = option(0, "By its name.", metavar="N")
    level: float = option(0.5, "Its own before its name.", metavar="X", group="Input")


@dataclass(frozen=True)
class MoreOptions(SearchOptions, group="Output"):
    """A class that adds one."""

    page: str | None = option(None, "Of this class.", metavar="FILE")


@dataclass(frozen=True)
class Many(Options):
    """More than fit one list."""

    a: int = option(1, "A.", metavar="N")
    b: int = option(2, "B.", metavar="N")
    c: int = option(3, "C.", metavar="N")


def test_the_group_of_an_option() -> None:
    groups = {name: declared.group for name, declared in declarations(MoreOptions).items()}
    assert groups == {
        "weight": "Metrics", "host": "Execution", "seed": "Statistics and seeds", "level": "Input", "page": "Output",
    }  # fmt: skip


def test_a_command_of_many_flags() -> None:
    """A new flag is in the help by its declaration alone."""

    @command(
        "crosslens search --level 1 --d 2", "crosslens search --level 1", "crosslens search --page x \\", "    --c 2",
        reads_files=False, common=("level", "c"), group="Judging",
    )  # fmt: skip
    def search(
        options: MoreOptions,
        many: Many,
        part: int = option(1, "Of the command."),
        allow_host: str | None = option(None, "Its own.", metavar="HOST", group="Execution"),
        d: int = option(1, "D."),
        e: int = option(1, "E."),
        f: int = option(1, "F."),
    ) -> None:
        """Search.

        In more words.
        """

    application = typer.Typer(rich_markup_mode=None, add_completion=False)
    application.command(cls=CommandHelp, epilog=vars(search)["epilog"])(search)
    short, whole = (CliRunner().invoke(application, [flag]).output for flag in ("--help", "--help-all"))
    assert re.findall(r"^  (--\w+)", short, re.MULTILINE) == ["--level", "--c"]
    assert re.findall(r"^  crosslens (.*)", short, re.MULTILINE) == ["search --level 1"]
    assert "In more words." not in short
    assert short.endswith("\n--help-all lists all 14 options.\n")
    sections = dict(re.findall(r"^(\w[\w ]*):\n((?:  .*\n)+)", whole, re.MULTILINE))
    assert list(sections) == ["Examples", *(group for group in GROUPS if group in sections)]
    assert re.findall(r"^  (--[\w-]+)", sections["Execution"], re.MULTILINE) == ["--host", "--allow-host", "--plugin"]
    assert re.findall(r"^  (--[\w-]+)", sections[METHOD], re.MULTILINE) == ["--a", "--b", "--c"]
    assert re.findall(r"^  (--[\w-]+)", sections["Judging"], re.MULTILINE) == ["--part", "--d", "--e", "--f"]


def test_a_misspelled_common_flag_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="no option depht"):

        @command("crosslens search", common=("depht",))
        def search(options: MoreOptions) -> None: ...

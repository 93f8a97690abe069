"""Files of settings: read by the options classes, every mistake with its file, line, key and rule."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from crosslens.core import InputError, Options, ValueType, option
from crosslens.storage import SettingsFile
from crosslens.storage.settings import key_lines


@dataclass(frozen=True)
class Search(Options):
    """Options as a command has them."""

    depth: int = option(10, "How many.", minimum=1)
    share: float = option(0.5, "Of all.", below=1)
    name: str | None = option(None, "Whose.")
    exact: bool = option(False, "No approximation.")
    files: tuple[str, ...] = option((), "Which.")
    order: str = option("up", "Direction.", choices=("up", "down"))


GOOD = '# search\n[search]\ndepth = 3\nshare = 0\nname = "x"\nexact = true\nfiles = ["a", "b"]\n'


def test_a_table_becomes_its_options() -> None:
    assert SettingsFile.parse(GOOD).options(Search, "search") == Search(3, 0.0, "x", True, ("a", "b"))
    assert SettingsFile.parse('search.files = "a"').options(Search, "search") == Search(files=("a",))
    assert SettingsFile.parse("").options(Search, "search") == Search()
    as_json = SettingsFile.parse('{"search": {"depth": 3}}', "s.JSON")
    assert as_json.options(Search, "search") == Search(3)


def test_mistakes_name_file_line_key_and_rule() -> None:
    for before, after, message in (
        ("depth = 3", "dpeth = 3", "s.toml, line 3: unknown key 'dpeth' in [search]\n  fix: did you mean depth?"),
        ("depth = 3", "depth = 0", "s.toml, line 3: depth is 0\n  fix: depth must be at least 1"),
        ("depth = 3", "depth = true", "s.toml, line 3: depth = True\n  expected: a whole number"),
        ("depth = 3", f"depth = {10**30}", "at most 9,223"),
        ("share = 0", 'share = "0"', "s.toml, line 4: share = '0'\n  expected: a number"),
        ("share = 0", "share = nan", "s.toml, line 4: share is nan"),
        ('name = "x"', "name = 5", "s.toml, line 5: name = 5\n  expected: a text in quotes"),
        ("exact = true", "exact = 1", "s.toml, line 6: exact = 1\n  expected: true or false"),
        ('["a", "b"]', '["a", 1]', "s.toml, line 7: files = ['a', 1]\n  expected: a list of texts"),
        ("exact = true", 'order = "dwon"', "s.toml, line 6: unknown order 'dwon'\n  fix: did you mean down?"),
        ("[search]", "[search", "s.toml, line 2: not valid TOML"),
        (GOOD, "\nsearch = 3", "s.toml, line 2: search = 3\n  expected: a table: [search]"),
        (GOOD, f"search = {'[' * 5000}", "s.toml: nested too deeply"),
        (GOOD, f"search = {'9' * 5000}", "s.toml: not valid TOML"),
    ):
        with pytest.raises(InputError) as caught:
            SettingsFile.parse(GOOD.replace(before, after), "s.toml").options(Search, "search")
        assert message in str(caught.value)
    for text in ("[1]", '{"search": {"depth": 1, "depth": 2}}', "{"):
        with pytest.raises(InputError, match=r"s\.json"):
            SettingsFile.parse(text, "s.json")


def test_tables_of_an_array_have_lines_of_their_own() -> None:
    file = SettingsFile.parse("[[loss]]\na = 1\n[[loss]]\na = 2\n[other]\na = 3\n", "s.toml")
    lines = [file.line(path) for path in (("loss",), ("loss", 1), ("loss", 1, "a"), ("loss", 1, "b"), ("none",))]
    assert lines == ["line 1", "line 3", "line 4", "line 3", None]


def instructions(work: Callable[[], object]) -> int:
    """How many instructions of Python the work takes: as a time, but the same on every machine."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def test_twice_as_many_tables_take_twice_as_long() -> None:
    def text(count: int) -> str:
        return "".join(f'[[labels]]\nname = "n{number}"\n[labels.more]\na = 1\n' for number in range(count))

    key_lines(text(1))  # what is prepared once is not counted
    few, many = (instructions(partial(key_lines, text(count))) for count in (50, 100))
    assert few > 0
    assert many < 2.1 * few


def test_texts_and_values_of_a_type() -> None:
    kinds: tuple[tuple[str, Any], ...] = (("3", int), ("1e3", "float"), ("Yes", bool), ("0", bool))
    assert [ValueType.of(kind).read(text) for text, kind in kinds] == [3, 1000.0, True, False]
    for text, kind in (("3.5", int), ("many", float), ("maybe", bool)):
        with pytest.raises(ValueError, match=text):
            ValueType.of(kind).read(text)
    assert ValueType.of(float).convert(3) == 3.0
    assert ValueType.of(float).convert(10**400) is None
    assert ValueType.of(int).convert(True) is None
    assert ValueType.of(bool).convert(1) is None
    assert ValueType.of("int | str").convert("mean") == "mean"
    assert ValueType.of(tuple[str, ...]).convert("a") == ("a",)
    assert ValueType.of("tuple[float, ...]").convert([1, 0.5]) == (1.0, 0.5)
    assert ValueType.of("tuple[float, ...]").convert(["a"]) is None


@pytest.mark.parametrize(
    ("annotation", "declared"),
    [
        ("int", ValueType((int,))),
        (str | None, ValueType((str,), optional=True)),
        ("str | pathlib.Path | None", ValueType((str, Path), optional=True)),
        ("Cache | str | Path | bool | None", ValueType((str, Path, bool), only_plain=False, optional=True)),
        ("str | Sequence[str] | None", ValueType((str,), only_plain=False, optional=True)),
        ("Sequence[int]", ValueType((int,), several=True)),
        ("tuple[float, float] | None", ValueType((float,), several=True, length=2, optional=True)),
        ("tuple[Path, ...]", ValueType((Path,), several=True)),
        ("Mapping[str, int] | None", ValueType((), only_plain=False, optional=True)),
        ("<object at 0x7f>", ValueType((), only_plain=False)),
        (None, ValueType((), only_plain=False, optional=True)),
    ],
)
def test_types_of_an_annotation(annotation: Any, declared: ValueType) -> None:
    assert ValueType.of(annotation) == declared

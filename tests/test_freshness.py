"""A figure is stale when code that it was computed by has changed, and then alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.tables import each_row

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = '''"""A module."""

from crosslens.limits import FEWEST

HALF = 0.5
OTHER = 2
PLACES = {"crosslens.limits": HALF}


def counted(rows: list[int], extra: int = 0) -> float:
    """How many."""
    if not rows:
        raise ValueError("no rows")
    doubled = [2 * row for row in rows]
    return PLACES["crosslens.limits"] * max(len(doubled), FEWEST) + extra  # never fewer


def reported(rows: list[int]) -> str:
    return f"{counted(rows, extra=1)} of {Words().kept()}"


def beside(rows: list[int]) -> int:
    return OTHER * len(rows)


class Words:
    longest = 3

    def kept(self) -> int:
        return self.longest

    def dropped(self) -> int:
        return 0
'''
MODULES = {"sample.py": SAMPLE, "limits.py": "FEWEST = 1\nMOST = 9\n"}


@pytest.fixture
def freshness(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModuleType]:
    """With a package of two modules in the place of crosslens."""
    monkeypatch.syspath_prepend(str(ROOT / "reproduce"))
    import freshness

    package = tmp_path / "src" / "crosslens"
    package.mkdir(parents=True)
    for name, text in MODULES.items():
        (package / name).write_text(text)
    for name, value in (("ROOT", tmp_path), ("SOURCE", tmp_path / "src"), ("CODE", {package: "crosslens"})):
        monkeypatch.setattr(freshness, name, value)
    freshness.forget()
    yield freshness
    freshness.forget()


def load(folder: Path) -> dict[str, object]:
    file = folder / "src" / "crosslens" / "sample.py"
    names: dict[str, object] = {"FEWEST": 1, "__name__": "crosslens.sample"}
    exec(compile(file.read_text().replace("from crosslens.limits import FEWEST", ""), str(file), "exec"), names)
    return names


def test_functions_that_run_are_noted(freshness: ModuleType, tmp_path: Path) -> None:
    names = load(tmp_path)
    table = tmp_path / "src" / "crosslens" / "words.txt"
    table.write_text("a\n")
    with freshness.traced() as trace:
        names["counted"]([1, 2])  # type: ignore[operator]
        names["Words"]().kept()  # type: ignore[operator]
        table.read_text()
    assert trace.functions == {"crosslens.sample": {"counted", "Words.kept"}}
    assert trace.files == {"src/crosslens/words.txt"}
    assert sys.gettrace() is None or "coverage" in sys.modules


RAN = {"crosslens.sample": ["counted", "reported", "Words.kept"]}


def rewrite(freshness: ModuleType, folder: Path, *changes: tuple[str, str]) -> None:
    """The two modules with texts replaced in them."""
    for name, text in MODULES.items():
        for before, after in changes:
            text = text.replace(before, after)
        (folder / "src" / "crosslens" / name).write_text(text)
    freshness.forget()


@each_row(
    "before, after, stale",
    [
        ("HALF = 0.5", "HALF = 0.25", "sample.HALF"),
        ("max(len(doubled), FEWEST)", "min(len(doubled), FEWEST)", "sample.counted"),
        ("max(len(doubled), FEWEST)", "max(len(rows), FEWEST)", "sample.counted"),
        ("2 * row for", "2 + row for", "sample.counted"),
        ("if not rows", "if rows", "sample.counted"),
        ("extra: int = 0", "extra: int = 1", "sample.counted"),
        ("Words().kept()", "Words().dropped()", "sample.reported"),
        ("extra=1", "rows=1", "sample.reported"),
        ("longest = 3", "longest = 4", "sample.Words"),
        ("return self.longest", "return self.longest + 1", "sample.Words.kept"),
        ("FEWEST = 1", "FEWEST = 2", "limits.FEWEST"),
        ("import FEWEST", "import MOST as FEWEST", "sample.counted"),
    ],
)
def test_another_meaning_makes_a_figure_stale(
    freshness: ModuleType, tmp_path: Path, before: str, after: str, stale: str
) -> None:
    rewrite(freshness, tmp_path)
    kept = freshness.code_of(RAN, [])
    assert freshness.changed(kept) == []
    rewrite(freshness, tmp_path, (before, after))
    assert freshness.changed(kept) == [f"crosslens.{stale}"]


@pytest.mark.parametrize(
    "changes",
    [
        [("OTHER = 2", "OTHER = 3")],
        [("return OTHER * len(rows)", "return len(rows)")],
        [("return 0", "return 1")],
        [("MOST = 9", "MOST = 8")],
        [("# never fewer", "# at least one"), ("How many.", "How many there are.")],
        [("max(len(doubled), FEWEST)", "max(\n        len(doubled),\n        FEWEST,\n    )")],
        [("rows: list[int], extra: int", "rows: object, extra: float")],
        [('ValueError("no rows")', 'TypeError("there are no rows")')],
        [("doubled", "twice"), ("2 * row for row", "2 * number for number")],
        [
            ("rows: list[int]) -> str", "number: list[int]) -> str"),
            ("counted(rows, extra=1)", "counted(number, number=1)"),
            ("extra: int", "number: int"),
            ("+ extra", "+ number"),
        ],  # two arguments get the same name
        [("from crosslens.limits", "import math\n\nfrom crosslens.limits")],
        [("FEWEST", "LEAST")],
        [('"crosslens.limits"', '"crosslens.rules.limits"')],
        [("HALF", "PORTION")],
        [("import FEWEST", "import FEWEST as LEAST"), (", FEWEST)", ", LEAST)")],
        [("longest", "size")],
        [("kept", "retained")],
        [("counted", "numbered")],
        [("extra", "more")],
        [("Words", "Texts")],
    ],
    ids=lambda changes: changes[-1][1].strip(),
)
def test_the_same_in_other_words_does_not(
    freshness: ModuleType, tmp_path: Path, changes: list[tuple[str, str]]
) -> None:
    rewrite(freshness, tmp_path)
    kept = freshness.code_of(RAN, [])
    rewrite(freshness, tmp_path, *changes)
    assert freshness.changed(kept) == []


@pytest.mark.parametrize("half", [0.5, 0.25])
def test_moved_definitions_are_followed(freshness: ModuleType, tmp_path: Path, half: float) -> None:
    """A function, a class with its methods and a constant, which only counts where its value is the same there."""
    kept = freshness.code_of(RAN, [])
    folder = tmp_path / "src" / "crosslens"
    (folder / "other.py").write_text(SAMPLE.replace("HALF = 0.5", f"HALF = {half}"))
    (folder / "sample.py").write_text("from crosslens.other import counted\n")
    freshness.forget()
    assert freshness.changed(kept) == ([] if half == 0.5 else ["crosslens.other.HALF", "crosslens.sample.HALF"])


def test_a_function_that_is_gone_is_a_change(freshness: ModuleType, tmp_path: Path) -> None:
    kept = freshness.code_of(RAN, [])
    (tmp_path / "src" / "crosslens" / "sample.py").unlink()
    freshness.forget()
    assert {"crosslens.sample.counted", "crosslens.sample.Words.kept"} <= set(freshness.changed(kept))


def test_compiled_functions_count_where_they_are_named(freshness: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "src" / "crosslens" / "sample.py"
    functions = "def slow(x):\n    return x\n\n\ndef run(x):\n    return fast(slow(x))\n"
    path.write_text(f"@_compiled\ndef fast(x):\n    return x\n\n\n{functions}")
    freshness.forget()
    places = freshness.places_of({"crosslens.sample": ["run"]})
    assert places == [("crosslens.sample", "fast"), ("crosslens.sample", "run")]


def test_what_says_and_checks_does_not_count(freshness: ModuleType) -> None:
    assert freshness.counts("crosslens.rank.tiles", "run_pass")
    for module, name in (("crosslens.cli.console", "progress_bar"),
                         ("crosslens.pipeline.evaluations.evaluation", "_provenance"),
                         ("crosslens.values.ids", "check_ids"), ("crosslens.values.run", "Run.__repr__")):  # fmt: skip
        assert not freshness.counts(module, name), name

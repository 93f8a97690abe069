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


def counted(rows: list[int]) -> float:
    """How many."""
    return HALF * max(len(rows), FEWEST)  # never fewer


def beside(rows: list[int]) -> int:
    return OTHER * len(rows)


class Words:
    longest = 3

    def kept(self) -> int:
        return self.longest

    def dropped(self) -> int:
        return 0
'''


@pytest.fixture
def freshness(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModuleType]:
    """With a package of two modules in the place of crosslens."""
    monkeypatch.syspath_prepend(str(ROOT / "reproduce"))
    import freshness

    package = tmp_path / "src" / "crosslens"
    package.mkdir(parents=True)
    (package / "sample.py").write_text(SAMPLE)
    (package / "limits.py").write_text("FEWEST = 1\nMOST = 9\n")
    for name, value in (("ROOT", tmp_path), ("SOURCE", tmp_path / "src"), ("CODE", {package: "crosslens"})):
        monkeypatch.setattr(freshness, name, value)
    for memory in (freshness.parsed, freshness.public):
        memory.cache_clear()
    yield freshness
    for memory in (freshness.parsed, freshness.public):
        memory.cache_clear()


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


RAN = {"crosslens.sample": ["counted", "Words.kept"]}


SAME, SAMPLED, LIMITED = "", "crosslens.sample", "crosslens.limits"


@each_row(
    "before, after, stale",
    [
        ("HALF = 0.5", "HALF = 0.25", SAMPLED),
        ("max(len(rows), FEWEST)", "min(len(rows), FEWEST)", SAMPLED),
        ("longest = 3", "longest = 4", SAMPLED),
        ("return self.longest", "return self.longest + 1", SAMPLED),
        ("def kept(", "def renamed(", SAMPLED),
        ("FEWEST = 1", "FEWEST = 2", LIMITED),
        ("OTHER = 2", "OTHER = 3", SAME),
        ("return OTHER * len(rows)", "return len(rows)", SAME),
        ("return 0", "return 1", SAME),
        ("# never fewer", "# at least one", SAME),
        ("How many.", "How many there are.", SAME),
        ("max(len(rows), FEWEST)", "max(\n        len(rows),\n        FEWEST,\n    )", SAME),
        ("MOST = 9", "MOST = 8", SAME),
    ],
)
def test_code_of_a_figure(freshness: ModuleType, tmp_path: Path, before: str, after: str, stale: str) -> None:
    freshness.parsed.cache_clear()
    kept = freshness.code_of(RAN, [])
    paths = [tmp_path / "src" / "crosslens" / name for name in ("sample.py", "limits.py")]
    (path,) = [path for path in paths if before in path.read_text()]
    text = path.read_text()
    path.write_text(text.replace(before, after))
    freshness.parsed.cache_clear()
    try:
        assert freshness.changed(kept, freshness.code_of(RAN, [])) == ([stale] if stale else [])
    finally:
        path.write_text(text)


def test_a_module_that_is_gone_is_a_change(freshness: ModuleType, tmp_path: Path) -> None:
    kept = freshness.code_of(RAN, [])
    (tmp_path / "src" / "crosslens" / "sample.py").unlink()
    freshness.parsed.cache_clear()
    assert "crosslens.sample" in freshness.changed(kept, freshness.code_of(RAN, []))


def test_compiled_functions_count_where_they_are_named(freshness: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "src" / "crosslens" / "sample.py"
    functions = "def slow(x):\n    return x\n\n\ndef run(x):\n    return fast(slow(x))\n"
    path.write_text(f"@_compiled\ndef fast(x):\n    return x\n\n\n{functions}")
    freshness.parsed.cache_clear()
    assert set(freshness.texts_of({"crosslens.sample": ["run"]})["crosslens.sample"]) == {"run", "fast"}

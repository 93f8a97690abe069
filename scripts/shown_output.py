"""Pages that show what commands print: read, run, and compared with what is printed today.

Figures that come from drawn pictures and a model may differ a little from machine to machine, so a page has to be near,
not equal. ``python scripts/shown_output.py`` runs the commands of the pages and brings their figures up to date; it
takes minutes, and is needed when the drawings, the built-in model or the form of a table changed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TUTORIAL, README = ROOT / "docs" / "tutorial.md", ROOT / "README.md"
_HOW_TO = ("agreement.md", "difficulty.md", "polysemy.md")
RUNNING = (TUTORIAL, *(ROOT / "docs" / "how-to" / name for name in _HOW_TO))
"""Pages whose bash and python blocks are run in order; a text block shows what the block before it prints."""

_NUMBER = re.compile(r"(?<![\w@.])[+-]?\d[\d,]*(?:\.\d+)?")
_BAR = re.compile(r"[▏▎▍▌▋▊▉█]+")
_NEAR, _SHARE = 4.0, 0.1


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    """Fenced blocks, indented ones too."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL):
        indent, language, body = found.groups()
        yield Block(language, re.sub(rf"^{indent}", "", body, flags=re.MULTILINE), text.count("\n", 0, found.start()))


def run_block(block: Block, folder: Path) -> str:
    """What a bash or python block prints, run in a folder; a block that fails is an error with its text."""
    program = ["bash", "-euo", "pipefail", "-c"] if block.language == "bash" else [sys.executable, "-c"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": "120", "NO_COLOR": "1"}
    environment["CROSSLENS_CACHE"] = str(folder / ".cache")
    done = subprocess.run(
        [*program, block.text], cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, f"line {block.line}:\n{block.text}\n{done.stderr}"
    return done.stdout


def outline(line: str) -> str:
    """A line without its numbers, its bars and its spaces."""
    return re.sub(r"\s+", " ", _NUMBER.sub("#", _BAR.sub("", line))).strip()


def numbers(line: str) -> list[float]:
    """The numbers in a line, in order."""
    return [float(found.replace(",", "")) for found in _NUMBER.findall(line)]


def alike(shown: str, printed: str) -> bool:
    """Whether two lines say the same, up to a few points or a tenth in their numbers."""
    return outline(shown) == outline(printed) and all(
        abs(one - two) <= max(near, _SHARE * abs(two))
        for one, two, near in zip(numbers(shown), numbers(printed), _tolerances(shown), strict=True)
    )


def _tolerances(line: str) -> list[float]:
    """How far each number may be off: figures with three decimals are shares, others percent or counts."""
    return [_NEAR / 100 if len(found.partition(".")[2]) >= 3 else _NEAR for found in _NUMBER.findall(line)]


def shown_lines(text: str) -> list[str]:
    """The lines of a block that claim to have been printed: not those that say that something was left out."""
    return [line for line in text.splitlines() if line.strip(" …") and not line.startswith("$ ")]


def typed(console: str, demo: str = "crosslens demo") -> Block:
    """The commands of a console block; ``make demo`` is ``crosslens demo`` in an environment of its own."""
    lines = [line[2:].replace("make demo", demo) for line in console.splitlines() if line.startswith("$ ")]
    return Block("bash", "\n".join(lines), 0)


def refreshed(text: str, shown: Iterable[str], printed: str) -> str:
    """A page's text in which shown lines are replaced by those that are printed now, found by their outline.

    Tables of one page can have rows that differ in nothing but numbers: a line is looked for behind the one before it.
    """
    left, follows = printed.splitlines(), 0
    lines, place_on_page = text.splitlines(keepends=True), -1
    for line in shown:
        behind = [*range(follows, len(left)), *range(follows)]
        follows = next((place for place in behind if outline(left[place]) == outline(line)), -1)
        if follows < 0:
            raise SystemExit(f"nothing like this line is printed any more; change the page by hand: {line}")
        place_on_page = lines.index(line + "\n", place_on_page + 1)
        lines[place_on_page] = left.pop(follows).rstrip() + "\n"
    return "".join(lines)


def _refresh_running(page: Path, folder: Path) -> str:
    text, printed = page.read_text(encoding="utf-8"), ""
    for block in blocks(page):
        if block.language in ("bash", "python"):
            printed = run_block(block, folder)
        elif block.language == "text":
            new = refreshed(block.text, shown_lines(block.text), printed)
            text = text.replace(block.text, new, 1)
    return text


def _refresh_readme(folder: Path) -> str:
    text = README.read_text(encoding="utf-8")
    console = next(block for block in blocks(README) if block.language == "console")
    new = refreshed(console.text, shown_lines(console.text), run_block(typed(console.text), folder))
    return text.replace(console.text, new, 1)


def main() -> None:
    """Bring the figures of the pages up to date."""
    running = [(page, partial(_refresh_running, page)) for page in RUNNING]
    for page, refresh in (*running, (README, _refresh_readme)):
        with tempfile.TemporaryDirectory() as folder:
            page.write_text(refresh(Path(folder)), encoding="utf-8")
        print(f"wrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

"""docs/reproduction.md: every table and figure of the five papers, with the command, the printed figure, and ours.

    make reproduce                                   # all that can run here, then the page
    python reproduce/reproduction.py --only agreement   # one measurement, then the page
    python reproduce/reproduction.py --page          # the page from what is measured already

The data: CROSSLENS_DATA, or ../shared/data beside the repository. Every finished measurement is kept in
runs/reproduction/ with a fingerprint of code and data, so that a second call resumes an interrupted one. A result of
other code or other data is never shown: it is measured again. Rows are in reproduce/papers/, measurements in
reproduce/measurements.py. The exit status is 1 where a measurement failed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from crosslens.core.errors import CrosslensError, UnknownNameError

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGE = ROOT / "docs" / "reproduction.md"
RESULTS = ROOT / "runs" / "reproduction"
ORDER = ("five", "brit", "expl", "recos", "imp")
STATUS = {
    "measured": "measured here",
    "needed": "data or weights missing here",
    "missing": "not in crosslens yet",
    "drawing": "nothing to compute",
}
PREFIX = {"needed": "needs ", "drawing": "nothing to compute: "}
HEAD = """---
hide: [navigation, toc]
---

# Reproduction

Written by `make reproduce`; do not edit it by hand. The rows are in `reproduce/papers/`, the measurements in
`reproduce/measurements.py`. An interrupted run resumes; `make reproduce ARGS="--only agreement"` makes one measurement,
`ARGS=--fresh` all of them anew.

Every table and figure of the five papers that crosslens follows: the command that makes it, the printed figure, ours on
the data at hand, and why the two differ or what is missing. All figures under *ours* are from the same code and data.
How crosslens differs from the papers in general: [Deviations](deviations.md); what `--protocol` sets:
[Follow a paper's protocol](how-to/repeat.md#protocols-of-papers). File names in commands stand for your files.
"""


@dataclass(frozen=True)
class Row:
    """A table or figure of a paper."""

    paper: str
    item: str
    shows: str
    printed: str
    status: str
    why: str
    command: str = ""
    measurements: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """As measurements name it."""
        return f"{self.paper} {self.item}"


@dataclass(frozen=True)
class Paper:
    """``text`` is the file with the paper's text, where that is at hand."""

    name: str
    title: str
    text: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Outcome:
    """Figures by row, or the reason why there are none."""

    figures: Mapping[str, str]
    reason: str = ""


def read_paper(file: Path) -> Paper:
    """A paper's rows from its TOML file."""
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    rows = tuple(read_row(content["paper"], row) for row in content["row"])
    return Paper(content["paper"], content["title"], content["text"], rows)


def read_row(paper: str, content: dict[str, Any]) -> Row:
    """A row; a measurement may be one name or several."""
    named = content.pop("measurement", ())
    row = Row(paper, measurements=(named,) if isinstance(named, str) else tuple(named), **content)
    if row.status not in STATUS:
        raise UnknownNameError("status", row.status, STATUS)
    return row


def papers() -> list[Paper]:
    """The five papers."""
    return [read_paper(HERE / "papers" / f"{name}.toml") for name in ORDER]


# Results


@dataclass(frozen=True)
class Results:
    """What is measured already, in a folder; a result with another fingerprint does not count."""

    folder: Path
    data: Path

    @cached_property
    def fingerprint(self) -> str:
        """Of the code that measures, and of the data's names and sizes."""
        code = [
            *(ROOT / "src").rglob("*.py"),
            *(file for file in HERE.glob("*.py") if file.name != Path(__file__).name),
        ]
        digest = hashlib.sha256()
        for file in sorted(code):
            digest.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
        for file in sorted(self.data.rglob("*")) if self.data.is_dir() else ():
            if file.is_file():
                digest.update(f"{file.relative_to(self.data)} {file.stat().st_size}\n".encode())
        return digest.hexdigest()[:12]

    def read(self, name: str) -> Outcome | None:
        """A finished measurement."""
        file = self.folder / f"{name}.json"
        if not file.exists():
            return None
        stored = json.loads(file.read_text(encoding="utf-8"))
        return Outcome(stored["figures"]) if stored["fingerprint"] == self.fingerprint else None

    def write(self, name: str, outcome: Outcome, seconds: float) -> None:
        """Keep a finished measurement."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {"fingerprint": self.fingerprint, "seconds": round(seconds, 1), "figures": dict(outcome.figures)}
        replace(self.folder / f"{name}.json", json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def replace(file: Path, text: str) -> None:
    """Write a file so that it is never half written."""
    scratch = file.with_name(f".{file.name}.part")
    scratch.write_text(text, encoding="utf-8")
    os.replace(scratch, file)


def measure(name: str, results: Results) -> Outcome:
    """One measurement: what is stored, or a new one; without its data, or where it fails, the reason."""
    from measurements import MEASUREMENTS

    stored = results.read(name)
    if stored is not None:
        print(f"{name}: measured already", flush=True)
        return stored
    lacking = MEASUREMENTS[name].lacks(results.data)
    if lacking:
        return Outcome({}, f"needs {', '.join(lacking)}")
    print(f"{name} …", flush=True)
    start = time.perf_counter()
    try:
        outcome = Outcome(MEASUREMENTS[name].compute(results.data))
    except Exception as error:  # the other measurements go on, and the page says which one failed
        traceback.print_exc()
        return Outcome({}, f"failed: {error if isinstance(error, CrosslensError) else repr(error)}")
    seconds = time.perf_counter() - start
    results.write(name, outcome, seconds)
    print(f"{name}: {seconds:.0f} s", flush=True)
    return outcome


def known(names: Sequence[str]) -> tuple[str, ...]:
    """The named measurements, which must be registered; all of them without names."""
    from measurements import MEASUREMENTS

    for name in names:
        if name not in MEASUREMENTS:
            raise UnknownNameError("measurement", name, MEASUREMENTS)
    return tuple(names) or tuple(MEASUREMENTS)


# The page


def ours(row: Row, outcomes: Mapping[str, Outcome]) -> str:
    """The figures of a row, and of what was not measured the reason."""
    parts, reasons = [], []
    for name in row.measurements:
        outcome = outcomes.get(name, Outcome({}, "not run"))
        if row.key in outcome.figures:
            parts.append(outcome.figures[row.key])
        else:
            reasons.append(f"{name}: {outcome.reason or 'gave no figure'}")
    return "; ".join([*parts, *(f"not measured ({reason})" for reason in reasons)]) or "–"


def cell(text: str) -> str:
    """Text inside a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


def paper_table(paper: Paper, outcomes: Mapping[str, Outcome]) -> str:
    """A paper's rows."""
    lines = [
        "| | what it shows | command | printed | ours | why they differ, or what is missing |",
        "|---|---|---|---|---|---|",
    ]
    for row in paper.rows:
        command = f"`{cell(row.command)}`" if row.command else "–"
        why = PREFIX.get(row.status, "") + row.why
        cells = (row.item, cell(row.shows), command, *map(cell, (row.printed, ours(row, outcomes), why)))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def summary(found: Sequence[Paper]) -> str:
    """How many rows there are of each kind."""
    lines = [f"| paper | rows | {' | '.join(STATUS.values())} |", "|---" * (len(STATUS) + 2) + "|"]
    total: Counter[str] = Counter()
    for paper in found:
        counts = Counter(row.status for row in paper.rows)
        total += counts
        lines.append(f"| {paper.name} | {len(paper.rows)} | {' | '.join(str(counts[status]) for status in STATUS)} |")
    lines.append(f"| all | {total.total()} | {' | '.join(str(total[status]) for status in STATUS)} |")
    return "\n".join(lines)


def page(found: Sequence[Paper], outcomes: Mapping[str, Outcome], fingerprint: str) -> str:
    """The whole page."""
    parts = [HEAD, f"Fingerprint of code and data: `{fingerprint}`.\n", summary(found)]
    parts += [f"\n## {paper.name}\n\n*{paper.title}*\n\n{paper_table(paper, outcomes)}" for paper in found]
    return "\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the page, and say what could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this measurement; repeatable")
    parser.add_argument("--fresh", action="store_true", help="measure again what is measured already")
    parser.add_argument(
        "--page", action="store_true", help="measure nothing, write the page from finished measurements"
    )
    asked = parser.parse_args(arguments)
    try:
        names = known(asked.only)
    except CrosslensError as error:
        parser.error(str(error))
    data = Path(os.environ.get("CROSSLENS_DATA") or ROOT.parent / "shared" / "data")
    results = Results(RESULTS, data)
    if asked.fresh:
        for name in names:
            (RESULTS / f"{name}.json").unlink(missing_ok=True)
    outcomes = {} if asked.page else {name: measure(name, results) for name in names}
    outcomes |= {
        name: stored for name in known(()) if name not in outcomes and (stored := results.read(name)) is not None
    }
    replace(PAGE, page(papers(), outcomes, results.fingerprint))
    print(f"\nwrote {PAGE}")
    without = {name: outcomes[name].reason if name in outcomes else "not run" for name in known(())}
    for name, reason in without.items():
        if reason:
            print(f"  {name}: no figures: {reason}")
    return 1 if any(reason.startswith("failed") for reason in without.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

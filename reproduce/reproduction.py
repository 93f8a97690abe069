"""docs/reproduction.md: every table and figure of the five papers, with the command, the printed figure, and ours.

    make reproduce                                   # what is stale and can run here, then the page
    python reproduce/reproduction.py --only agreement   # one measurement, then the page
    python reproduce/reproduction.py --check         # which figures are of other code or data; measures nothing
    python reproduce/reproduction.py --page          # the page from what is measured already

The data: CROSSLENS_DATA, or ../shared/data beside the repository. Every finished measurement is kept in
reproduce/measured/, with its time, the functions that it called and a hash of their code (reproduce/freshness.py) and
of its data: a second call measures only what is missing, or of other code or data, the quickest first; the page never
shows figures of other code or data. A measurement
runs in a process and with a cache of its own, so that all it takes is seen. Rows are in reproduce/papers/, measurements
in reproduce/measurements.py. The exit status is 1 where a measurement failed, with --check where one is stale.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace as replaced
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from crosslens.core.errors import CrosslensError, UnknownNameError
from freshness import changed, code_of, traced

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGE = ROOT / "docs" / "reproduction.md"
RESULTS = HERE / "measured"
CACHES = ROOT / "runs" / "reproduction"
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
`reproduce/measurements.py`. `make reproduce` measures what is missing and what is stale, of other code or data than
today's; `make reproduce ARGS=--check` lists it, `ARGS="--only agreement"` makes one measurement, `ARGS=--fresh` all of
them anew.

Every table and figure of the five papers that crosslens follows: the command that makes it and what its input is made
by, the printed figure, ours on the data at hand with the measurement that gives it, and why the two differ or what is
missing. How crosslens differs from the papers in general: [Deviations](deviations.md); what `--protocol` sets:
[Follow a paper's protocol](how-to/repeat.md#protocols-of-papers). File names in commands stand for your files.
"""
INPUT_LINK = "[inputs](#inputs)"
INPUTS = "What no command above writes. Models are loaded by name, from the hub or from the cache."
MEASURED = """With each measurement is kept which functions of crosslens it calls, how long it took, and a hash of each
function's code (`reproduce/measured/`). Its figures are stale when one of these functions, a constant that they name,
or the data's files change; a test fails until they are measured again. Moved functions, other names, comments, messages
and layout are no change. `make reproduce` measures what is stale, the quickest first."""


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
class Input:
    """A file or folder that commands of rows read: the commands that make it, or where it is from, or both."""

    name: str
    command: str = ""
    source: str = ""


@dataclass(frozen=True)
class Outcome:
    """Figures by row, or the reason why there are none."""

    figures: Mapping[str, str]
    reason: str = ""
    fingerprint: str = ""
    seconds: int | None = None


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


def inputs() -> list[Input]:
    """What no row writes."""
    content = tomllib.loads((HERE / "papers" / "inputs.toml").read_text(encoding="utf-8"))
    return [Input(**entry) for entry in content["input"]]


def needed(command: str, names: Iterable[str]) -> list[str]:
    """Those of the names that a command line reads, themselves or something in them."""
    words = re.split(r"[\s=\"]", re.sub(r" (?:-o|--write) \S+", "", command))
    return [name for name in names if any(word == name or word.startswith(f"{name}/") for word in words)]


def makers(found: Sequence[Paper]) -> dict[str, str]:
    """What the commands of rows and inputs write and others may read, and where on the page that command is."""
    made: dict[str, str] = {}
    for row in (row for paper in found for row in paper.rows):
        for command in row.command.split(" && "):
            flag = "--folder" if " judging new " in command else "-o"
            if re.match(r"crosslens (?:analyze|build|evaluate|judging new|robustness|synth|train) ", command):
                for name in re.findall(rf" {flag} (\S+)", command):  # of several rows that write it, the first
                    made.setdefault(name, f"[{row.key}](#{row.paper.lower()})")
    names = [name for entry in inputs() for name in (entry.name, *re.findall(r" -o (\S+)", entry.command))]
    return {**made, **dict.fromkeys(names, INPUT_LINK)}


def papers() -> list[Paper]:
    """The five papers."""
    return [read_paper(HERE / "papers" / f"{name}.toml") for name in ORDER]


# Results


@dataclass(frozen=True)
class Results:
    """What is measured already, in a folder; what is of other code or other data does not count."""

    folder: Path
    data: Path

    def stored(self, name: str) -> dict[str, Any]:
        """A finished measurement as it is kept; empty where there is none."""
        file = self.folder / f"{name}.json"
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}

    def stale(self, name: str) -> list[str]:
        """What is other than when a measurement was made: definitions, tables, data. Absent data count as the same."""
        kept = self.stored(name)
        if not kept:
            return []
        return [*changed(kept["code"]), *(["data"] if self.of_data(name) not in ("", kept["data"]) else [])]

    def quickest(self, names: Iterable[str]) -> list[str]:
        """The same names, those first that took the least time, those last that were never measured."""
        return sorted(names, key=lambda name: self.stored(name).get("seconds", float("inf")))

    def of_data(self, name: str) -> str:
        """Of the names and sizes of the files that a measurement reads; empty where some are not here."""
        from measurements import MEASUREMENTS

        if MEASUREMENTS[name].lacks(self.data):
            return ""
        parts = [self.data / part for part in MEASUREMENTS[name].needs]
        files = sorted({file for part in parts for file in [part, *part.rglob("*")] if file.is_file()})
        lines = (f"{file.relative_to(self.data)} {file.stat().st_size}\n" for file in files)
        return hashlib.sha256("".join(lines).encode()).hexdigest()[:12]

    def read(self, name: str) -> Outcome | None:
        """A finished measurement of today's code and data."""
        kept = self.stored(name)
        return outcome_of(kept) if kept and not self.stale(name) else None


def outcome_of(kept: Mapping[str, Any]) -> Outcome:
    """The figures of a kept measurement, with one hash of its code and data."""
    made_of = json.dumps([kept["code"], kept["data"]], sort_keys=True)
    return Outcome(kept["figures"], "", hashlib.sha256(made_of.encode()).hexdigest()[:12], kept.get("seconds"))


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
    imported = find_spec("crosslens")
    if imported is None or ROOT not in Path(str(imported.origin)).parents:
        raise SystemExit(f"crosslens is not imported from {ROOT}: set PYTHONPATH={ROOT}/src")
    print(f"{name} …", flush=True)
    start = time.perf_counter()
    cache = CACHES / name
    shutil.rmtree(cache, ignore_errors=True)  # of an interrupted measurement: what it kept would not be called again
    os.environ["CROSSLENS_CACHE"] = str(cache)
    try:
        with traced() as trace:
            figures = MEASUREMENTS[name].compute(results.data)
    except Exception as error:  # the other measurements go on, and the page says which one failed
        traceback.print_exc()
        return Outcome({}, f"failed: {error if isinstance(error, CrosslensError) else repr(error)}")
    seconds = round(time.perf_counter() - start)
    content = {
        "figures": figures,
        "seconds": seconds,
        "data": results.of_data(name),
        "code": code_of(trace.functions, trace.files),
    }
    results.folder.mkdir(parents=True, exist_ok=True)
    replace(results.folder / f"{name}.json", json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    shutil.rmtree(cache, ignore_errors=True)
    print(f"{name}: {seconds} s", flush=True)
    return outcome_of(content)


def apart(name: str, results: Results) -> Outcome:
    """The same in a process of its own, in which nothing is loaded yet."""
    ended = subprocess.run([sys.executable, __file__, "--only", name], check=False)
    return results.read(name) or Outcome({}, f"failed: exit status {ended.returncode}")


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
            parts.append(f"{outcome.figures[row.key]} (`--only {name}`)")
        else:
            reasons.append(f"{name}: {outcome.reason or 'gave no figure'}")
    return "; ".join([*parts, *(f"not measured ({reason})" for reason in reasons)]) or "–"


def cell(text: str) -> str:
    """Text inside a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


def paper_table(paper: Paper, outcomes: Mapping[str, Outcome], made: Mapping[str, str]) -> str:
    """A paper's rows."""
    lines = [
        "| | what it shows | command | printed | ours | why they differ, or what is missing |",
        "|---|---|---|---|---|---|",
    ]
    for rows in alike(paper.rows):
        row = rows[0]
        shows = "; ".join(dict.fromkeys(row.shows for row in rows))
        texts = (row.printed, ours(row, outcomes), PREFIX.get(row.status, "") + row.why)
        keys = "<br>".join(row.key for row in rows)  # each in full, so that a search finds it
        lines.append(f"| {' | '.join((keys, cell(shows), commands(row.command, made), *map(cell, texts)))} |")
    return "\n".join(lines)


def alike(rows: Sequence[Row]) -> list[list[Row]]:
    """Neighbours that differ in what they show alone, together; a row with figures of ours by itself."""
    groups: list[list[Row]] = []
    for row in rows:
        same = groups and replaced(groups[-1][0], item="", shows="") == replaced(row, item="", shows="")
        if same and row.command and not row.measurements:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def commands(command: str, made: Mapping[str, str]) -> str:
    """A command, and where the commands are that make the files that it reads."""
    if not command:
        return "–"
    own = re.findall(r" -o (\S+)", command)
    reads = [
        f"[`{name}`](#inputs)" if made[name] == INPUT_LINK else f"`{name}` ({made[name]})"
        for name in needed(command, made)
        if name not in own
    ]
    return f"`{cell(command)}`" + (f"<br>reads {', '.join(reads)}" if reads else "")


def input_table(made: Mapping[str, str]) -> str:
    """What is read and how it is made or where it is from."""
    lines = ["| file or folder | how to make it, or where it is from |", "|---|---|"]
    for entry in inputs():
        others = {name: maker for name, maker in made.items() if name != entry.name}
        how = [commands(entry.command, others), entry.source]
        lines.append(f"| `{entry.name}` | {'<br>'.join(part for part in how if part not in ('', '–'))} |")
    return "\n".join(lines)


def measurement_table(found: Sequence[Paper], outcomes: Mapping[str, Outcome]) -> str:
    """What is measured: the rows that it fills, and of which code and data."""
    lines = ["| `--only` | fills | seconds | code and data |", "|---|---|---|---|"]
    for name in known(()):
        rows = [row.key for paper in found for row in paper.rows if name in row.measurements]
        outcome = outcomes.get(name, Outcome({}))
        took = "–" if outcome.seconds is None else str(outcome.seconds)
        lines.append(f"| `{name}` | {', '.join(rows)} | {took} | {outcome.fingerprint or '–'} |")
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


def page(found: Sequence[Paper], outcomes: Mapping[str, Outcome]) -> str:
    """The whole page."""
    made = makers(found)
    parts = [HEAD, summary(found)]
    parts += [f"\n## {paper.name}\n\n*{paper.title}*\n\n{paper_table(paper, outcomes, made)}" for paper in found]
    parts += [f"\n## Inputs\n\n{INPUTS}\n\n{input_table(made)}"]
    parts += [f"\n## Measurements\n\n{MEASURED}\n\n{measurement_table(found, outcomes)}"]
    return "\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the page, and say what could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this measurement; repeatable")
    parser.add_argument("--fresh", action="store_true", help="measure again what is measured already")
    parser.add_argument(
        "--page", action="store_true", help="measure nothing, write the page from finished measurements"
    )
    parser.add_argument(
        "--check", action="store_true", help="measure nothing, say which figures are of other code or data"
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
    if asked.check:
        stale = {name: results.stale(name) for name in results.quickest(names)}
        for name, parts in stale.items():
            if parts:
                took = f" ({results.stored(name)['seconds']} s)" if "seconds" in results.stored(name) else ""
                print(f"{name}{took}: made by other {', '.join(parts)}")
        return 1 if any(stale.values()) else 0
    if asked.page:
        outcomes = {}
    elif asked.only:
        outcomes = {name: measure(name, results) for name in names}
    else:
        outcomes = {name: results.read(name) or apart(name, results) for name in results.quickest(names)}
    outcomes |= {
        name: stored for name in known(()) if name not in outcomes and (stored := results.read(name)) is not None
    }
    replace(PAGE, page(papers(), outcomes))
    print(f"\nwrote {PAGE}")
    without = {name: outcomes[name].reason if name in outcomes else "not run" for name in known(())}
    for name, reason in without.items():
        if reason:
            print(f"  {name}: no figures: {reason}")
    return 1 if any(reason.startswith("failed") for reason in without.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

"""What every command shows, prints and writes, compared with what was last recorded, and written in every form.

``python -m pytest tests/golden --record`` records the outputs anew and lists the files that changed.
"""

from __future__ import annotations

import contextlib
import difflib
import html
import json
import platform
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crosslens.core import Figure, Presented, Section, Table, UsageError
from reference_pages.commands import commands
from tests.build.generators.test_http import Server, content
from tests.golden.cases import CASES, NO_OUTPUT, OF_STUDIES, PRINTED, Case
from tests.golden.plain import SHOWN, plain_file, plain_json, plain_text, structure
from tests.golden.study import Study, call

HERE = Path(__file__).parent
MACHINE = HERE / "machine.txt"
"""Where figures were recorded: on another kind of processor the last digit that is shown may be another."""
PAGE = "out/written page.html"
RECORD = "python -m pytest tests/golden --record"
TEXT = {".html", ".svg", ".parquet", ".npy", ".png", ".pdf"}
"""Endings of files that are recorded as text of another form."""

ALL = [(command, case, form) for command, cases in CASES.items() for case in cases for form in case.calls]
_NUMBER = re.compile(r"(?<![\w@.#])[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.]*\w)")


def folder_of(command: str) -> Path:
    return HERE / command.replace(" ", "-")


WRITING = {
    path.removeprefix("crosslens ") for path, command in commands() if any(p.name == "write" for p in command.params)
}
"""The commands that write their result in every form."""


def parameters() -> Iterator[Any]:
    for command, case, form in ALL:
        marks = [pytest.mark.slow] if case.is_slow(form) else []
        yield pytest.param(command, case, form, id=f"{command}/{case.name}/{form}", marks=marks)


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """A vision-language model that finds everything good."""
    server = Server()
    labels = {"labels": ["good"]}
    failure = {"labels": ["details"], "rating": 4}
    server.answer = lambda body: content(json.dumps(failure if "rating" in json.dumps(body) else labels))
    yield server.address
    server.httpd.shutdown()
    server.httpd.server_close()


@pytest.mark.parametrize(("command", "case", "form"), list(parameters()))
def test_output(
    command: str, case: Case, form: str, study: Study, request: pytest.FixtureRequest, record_property: Any,
) -> None:  # fmt: skip
    words = case.typed(form)
    if "--clusters" in words and platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("UMAP places points otherwise on other processors than the one that recorded them")
    if "{endpoint}" in words:
        words = words.replace("{endpoint}", request.getfixturevalue("endpoint"))
    if form == "json" and command in WRITING:
        words += f" --write '{PAGE}'"
    with study.copy(case.part) as folder, saved_results() as results:
        done = call(
            words, folder, None if form == "json" else int(form) if form.isdecimal() else 80, colour=case.colour
        )
        assert done.code == case.code, f"crosslens {words}\n{done.err}"
        rendered_results = []
        for result in tuple(results):
            sections = tuple(result.sections())
            check_page((folder / PAGE).read_text(encoding="utf-8"), sections)
            rendered_results.append({"forms": forms_of(result, folder), "sections": structure(sections)})
        (folder / PAGE).unlink(missing_ok=True)
        texts = outputs(case, form, done.out, done.err, folder, rendered_results)
    stored = {file.name: file for file in folder_of(command).glob("*") if is_of(file.name, case, form)}
    if request.config.getoption("--record", False):
        record(folder_of(command), texts, stored, partial(record_property, "recorded"), case)
    else:
        check(f"crosslens {words}", texts, stored, case)


@contextlib.contextmanager
def saved_results() -> Iterator[list[Presented]]:
    """What is written to the page meanwhile."""
    results: list[Presented] = []
    save = Presented.save

    def remembered(result: Presented, file: str | Path, **options: Any) -> Path:
        if str(file) == PAGE:
            results.append(result)
        return save(result, file, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Presented, "save", remembered)
        yield results


def check_page(page: str, sections: Sequence[Section]) -> None:
    """A page holds every title and every number that is in the sections."""
    words = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())
    for section in sections:
        titles = [section.title, *(part.title for part in (*section.tables, *section.charts))]
        cells = [cell for table in section.tables for row in table.rows for cell in row]
        for text in (*titles, *(cell.number for cell in cells if isinstance(cell, Figure))):
            assert " ".join(text.split()) in words, f"not on the page: {text}"


def forms_of(result: Presented, folder: Path) -> str:
    """The endings of files that the result can be written to; others are refused for want of a table or chart."""
    endings = []
    for ending in (".md", ".csv", ".tex", ".svg"):
        try:
            assert result.save(folder / f"of-forms{ending}").read_bytes()
        except UsageError as error:
            if not re.search("no (table|chart)", str(error)):
                raise
        else:
            (folder / f"of-forms{ending}").unlink()
            endings.append(ending)
    return " ".join(endings)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in OF_STUDIES else ()) for name in PRINTED]
)
def test_printed_result(name: str, study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """``print(result)`` shows in Python what a terminal does: every section, table and number of it."""
    with study.copy("studies" if name in OF_STUDIES else "tables") as folder, monkeypatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("CROSSLENS_CACHE", str(folder / "cache"))
        result = PRINTED[name]()
        text = str(result)
        sections = tuple(result.sections())
    assert text == result.text()
    words = " ".join(text.split())
    for section in sections:
        assert section.title in words
        tables = [part for part in section.parts if isinstance(part, Table) and not part.folded]
        for number in (
            cell.number for table in tables for row in table.overview.rows for cell in row if isinstance(cell, Figure)
        ):
            assert number in words


def check(what: str, texts: dict[str, str], stored: dict[str, Path], case: Case) -> None:
    strict = MACHINE.read_text().strip() == platform.machine()
    differences = [
        text
        for name in sorted({*texts, *stored})
        if (text := difference(name, stored.get(name), texts.get(name), case, strict=strict))
    ]
    assert not differences, "\n".join([what, *differences, f"if this is intended: {RECORD}"])


def outputs(case: Case, form: str, out: str, err: str, folder: Path, results: list[Any]) -> dict[str, str]:
    """What a call made, by the names under which it is recorded."""
    texts = {}
    if form == "json":
        texts[f"{case.name}.json"] = plain_json(out, folder, shown=results)
    elif form in case.forms:
        err = re.sub(r"(?m)^.*\d s elapsed.*\n", "", err)  # progress of work that happens to take long
        printed = out + (f"\n[standard error]\n{err.lstrip()}" if err.strip() else "")
        texts[f"{case.name}.{form}.txt"] = plain_text(printed, folder)
    if form in case.forms[1:]:
        return texts
    kept = [file for pattern in case.keeps for file in folder.glob(pattern)] if form in case.forms else []
    files = {file: file.relative_to(folder) for file in kept}
    written = sorted(file for file in (folder / "out").rglob("*") if file.is_file())
    listed = [file.relative_to(folder / "out") for file in written]
    files |= {
        file: path
        for file, path in zip(written, listed, strict=True)
        if len(path.parts) == 1 or (path.suffix in SHOWN and "images" not in path.parts)
    }
    for file, path in files.items():
        texts[recorded_name(case, path)] = plain_file(file, folder)
    folders = sorted({path.parts[0] for path in listed if len(path.parts) > 1})
    for top in folders:
        texts[f"{case.name}.{top}.files.txt"] = "".join(
            f"{plain_text(str(path), folder)}" for path in listed if path.parts[0] == top and path.suffix != ".png"
        )
    return texts


def recorded_name(case: Case, path: Path) -> str:
    return f"{case.name}.{'.'.join(path.parts)}" + (".txt" if path.suffix in TEXT else "")


def is_of(name: str, case: Case, form: str) -> bool:
    """Whether a recorded file is one that this call makes, by its name alone."""
    if not name.startswith(f"{case.name}."):
        return False
    rest = name.removeprefix(f"{case.name}.")
    if rest == ("json" if form == "json" else f"{form}.txt"):
        return True
    if rest == "json" or re.fullmatch(r"\d+\.txt", rest):
        return False
    if form in case.forms[1:]:
        return False
    if form in case.forms and any(
        fnmatchcase(rest.removesuffix(".txt"), pattern.replace("/", ".")) for pattern in case.keeps
    ):
        return True
    for word in shlex.split(case.typed(form)):
        if word.startswith("out/"):
            path = Path(word.removeprefix("out/"))
            exact = re.escape(path.stem) + r"(-i2t|-t2i)?" + re.escape(path.suffix)
            if re.fullmatch(rf"{exact}(\.txt|\.json)?", rest) or (not path.suffix and rest.startswith(f"{path}.")):
                return True
    return False


def record(folder: Path, texts: dict[str, str], stored: dict[str, Path], note: Any, case: Case) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        file = folder / name
        before = file.read_text(encoding="utf-8") if file.exists() else None
        if before is None or settled(text, before, case, strict=True) != before:
            file.write_text(text, encoding="utf-8")
            note(f"{'new' if before is None else 'changed'}: {file.relative_to(HERE)}")
    for name in stored.keys() - texts.keys():
        stored[name].unlink()
        note(f"removed: {stored[name].relative_to(HERE)}")
    MACHINE.write_text(f"{platform.machine()}\n")


def difference(name: str, stored: Path | None, text: str | None, case: Case, *, strict: bool) -> str:
    """How an output differs from the recorded one; empty where it does not."""
    if stored is None:
        return f"{name}: nothing is recorded under this name"
    if text is None:
        return f"{name}: no longer made"
    before = stored.read_text(encoding="utf-8")
    after = settled(text, before, case, strict=strict)
    if after == before:
        return ""
    path = str(stored.relative_to(HERE))
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), path, "now", lineterm="", n=2)
    return "\n".join(lines)


def settled(text: str, before: str, case: Case, *, strict: bool) -> str:
    """The text, with the recorded lines where nothing but the rounding of a computation differs."""
    if text == before:
        return text
    new, old = text.splitlines(), before.splitlines()
    outlines = [[outline(line) for line in lines] for lines in (old, new)]
    for first, start, size in equal_parts(*outlines):
        for row, line in enumerate(old[first : first + size], start=start):
            if line != new[row] and is_near(line, new[row], case, strict=strict):
                new[row] = line
    return "\n".join(new) + "\n" * text.endswith("\n")


def equal_parts(old: list[str], new: list[str]) -> Iterable[tuple[int, int, int]]:
    """Where each run of equal lines begins in both texts, and how long it is."""
    if old == new:
        return [(0, 0, len(old))]  # looking for it would take a second for a long page
    return difflib.SequenceMatcher(None, old, new, False).get_matching_blocks()


def outline(line: str) -> str:
    return _NUMBER.sub("#", line)


def is_near(old: str, new: str, case: Case, *, strict: bool) -> bool:
    if not strict and case.part == "training":
        return True  # training amplifies every rounding
    pairs = zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=True)
    return all(old_part == new_part or _near(old_part, new_part, strict=strict) for old_part, new_part in pairs)


def _near(old: str, new: str, *, strict: bool) -> bool:
    """Long numbers agree to five digits or to a millionth; short ones, which people read, to every digit."""
    old_value, new_value = (float(number.replace(",", "")) for number in (old, new))
    mantissa = old.lower().partition("e")[0]
    digits = len(re.sub(r"\D", "", mantissa).lstrip("0"))
    if ("." in mantissa and digits >= 5) or "e" in old:
        return abs(old_value - new_value) <= 1e-6 + 2e-5 * abs(old_value)
    unit = 10.0 ** -len(mantissa.partition(".")[2])
    return not strict and "." in mantissa and abs(old_value - new_value) <= 1.01 * unit


def test_every_command_has_a_case() -> None:
    existing = {path.removeprefix("crosslens ") for path, _ in commands()}
    without = {path.removeprefix("crosslens ") for path in NO_OUTPUT}
    assert existing == {*CASES, *without}


def test_words_of_a_case_call_its_command() -> None:
    assert not [
        case.words
        for command, cases in CASES.items()
        for case in cases
        if not f"{case.words} ".startswith(f"{command} ")
    ]
    for command, cases in CASES.items():
        assert len({case.name for case in cases}) == len(cases), command


def test_every_recorded_file_is_still_made(request: pytest.FixtureRequest) -> None:
    calls: dict[Path, list[tuple[Case, str]]] = {}
    for command, case, form in ALL:
        calls.setdefault(folder_of(command), []).append((case, form))
    abandoned = [
        file
        for file in sorted(HERE.glob("*/*"))
        if file.parent.name not in ("__pycache__", "forms")
        and not any(is_of(file.name, case, form) for case, form in calls.get(file.parent, ()))
    ]
    if request.config.getoption("--record", False):
        for file in abandoned:
            file.unlink()
        abandoned = []
    assert not abandoned, "no case makes these any more: delete them"


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("mean 0.123456 of 5", "mean 0.123457 of 5", True),
        ("mean 0.123456 of 5", "mean 0.123556 of 5", False),
        ("mean 0.123456 of 5", "mean 0.123456 of 6", False),
        ("Hit@1  40.5", "Hit@1  40.6", False),
        ("Hit@1  40.5", "Hit@1   40.5", False),
        ("Hit@1  40.5 *", "Hit@1  40.5", False),
        ("p 2.00001e-05", "p 2.00002e-05", True),
    ],
)
def test_what_counts_as_the_same(old: str, new: str, same: bool) -> None:
    case = Case("", "")
    assert (settled(new, old, case, strict=True) == old) == same

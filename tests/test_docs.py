"""Undocumented means failing: pages match the code, every command in them exists, and the tutorial runs."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from crosslens.cli.flags import spread_values
from crosslens.pipeline import EvaluateOptions, InputOptions, ModelOptions
from crosslens.planning import EXTRAS
from generate_reference import pages
from reference_pages.commands import commands
from reference_pages.keywords import keyword_stubs
from reference_pages.registries import registered, split_parameters
from shown_output import README, RUNNING, alike, blocks, outline, refreshed, run_block, shown_lines, typed
from tests.tables import each_row

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
WRITTEN = [page for page in PAGES if page.parent.name != "reference"]

GENERATED = cache(pages)
COMMANDS: dict[str, Any] = dict(commands())
DEMO = "crosslens demo --images 24"
REFRESH = "if the new figures are right: python scripts/shown_output.py"


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


# The reference pages


@each_row("name", lambda: sorted(GENERATED()))
def test_reference_page_is_up_to_date(name: str) -> None:
    current = (DOCS / "reference" / name).read_text(encoding="utf-8")
    assert current == GENERATED()[name], "run: make docs"


def test_keywords_for_editors_are_up_to_date() -> None:
    for file, text in keyword_stubs().items():
        assert file.read_text(encoding="utf-8") == text, f"{page_name(file)}: run: make docs"


@each_row("path", sorted(COMMANDS))
def test_every_command_and_option_has_help(path: str) -> None:
    command = COMMANDS[path]
    assert (command.help or "").strip(), f"{path} has no help"
    assert "crosslens" in f"{command.help} {command.epilog or ''}", f"{path} --help shows no example"
    for parameter in command.params:
        assert (getattr(parameter, "help", "") or "").strip(), f"{path}: {parameter.name} has no help"


def test_every_registered_thing_is_on_its_page() -> None:
    for page, entries in registered().items():
        text = (DOCS / "reference" / page).read_text(encoding="utf-8")
        for entry in entries:
            assert entry.summary.strip()
            assert f"## {entry.name}\n" in text, f"{entry.name} is missing from {page}"


def test_every_metric_says_what_it_computes() -> None:
    for entry in registered()["metrics.md"]:
        assert entry.value.definition.strip(), f"{entry.name} has no definition"
        for option in entry.value.options:
            assert option.summary.strip(), f"{entry.name}: {option.name} is not explained"


def test_every_reader_explains_its_options() -> None:
    for entry in registered()["readers.md"]:
        text, described = split_parameters(entry.value)
        assert text
        missing = set(inspect.signature(entry.value).parameters) - set(described)
        assert not missing, f"the docstring of {entry.name} lacks lines `name: meaning` for {sorted(missing)}"


def test_every_recipe_key_is_explained() -> None:
    page = (DOCS / "reference" / "formats.md").read_text(encoding="utf-8")
    keys = [field.name for kind in (InputOptions, ModelOptions, EvaluateOptions) for field in dataclasses.fields(kind)]
    assert not [key for key in keys if f"`{key}`" not in page]
    defaults = dict(re.findall(r"^\| `(\w+)` \| `?\"?([^|`\"]*?)\"?`? \|", page, re.MULTILINE))
    for field in dataclasses.fields(EvaluateOptions):
        if field.default not in (None, ()):
            written = (
                str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
            )  # as in TOML
            assert defaults[field.name] == written, f"the default of {field.name} is {written}"


# Dependencies


def declared_dependencies() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    optional = project["project"]["optional-dependencies"].values()
    servers = (Path(__file__).parent / "servers" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    listed = [
        *(line for line in servers if not line.startswith("#")),
        *project["project"]["dependencies"],
        *project["build-system"]["requires"],
        *(x for extra in optional for x in extra),
    ]
    return {re.split(r"[\[<>=!~; ]", requirement)[0] for requirement in listed} - {"crosslens"}


def test_dependencies_page_matches_pyproject() -> None:
    page = (DOCS / "dependencies.md").read_text(encoding="utf-8")
    packages = re.findall(r"^\| `([\w-]+)` \|(?:[^|\n]*\|){3}", page, re.MULTILINE)  # extras have two columns
    assert set(packages) == declared_dependencies()


def test_every_extra_is_on_the_dependencies_page() -> None:
    page = (
        (DOCS / "dependencies.md").read_text(encoding="utf-8").partition("## Extras\n")[2].partition("The packages")[0]
    )
    assert dict(re.findall(r"^\| `([\w-]+)` \| (.*) \|$", page, re.MULTILINE)) == EXTRAS


# The first page


def test_the_readme_is_short_and_has_its_parts() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 110
    parts = dict(re.findall(r"^## (.*)\n((?:(?!^## ).*\n)*)", text, re.MULTILINE))
    first, start, *_ = parts
    assert (first, start) == ("Which command is mine?", "Start")
    assert "make demo" in parts[start]
    assert "make test" in parts[start]
    for part in ("Audit", "Evaluate", "Compare", "Python"):
        assert len(re.findall(r"^!\[.+\]\(docs/pictures/.*\)$", parts[part], re.MULTILINE)) == 1, f"a picture of {part}"
        assert f"](#{part.lower()})" in parts[first]
    mentioned = re.findall(r"`crosslens ([\w-]+)", parts[first])
    assert set(mentioned) <= {path.split()[1] for path in COMMANDS} | {"COMMAND"}


# The map


def test_the_map_names_every_package_and_only_files_that_exist() -> None:
    page, source = (DOCS / "architecture.md").read_text(encoding="utf-8"), ROOT / "src" / "crosslens"
    folders = [ROOT / name for name in ("src", "tests", "docs", "examples")]
    files = [path.relative_to(ROOT).as_posix() for folder in folders for path in (folder, *folder.rglob("*"))]
    mentioned = set(re.findall(r"`([\w./-]+(?:\.pyi?|\.toml|\.txt|/))`", page))
    assert len(mentioned) > 100
    assert not [name for name in mentioned if not any(f"/{file}/".endswith(f"/{name.rstrip('/')}/") for file in files)]
    packages = {path.parent.name for path in source.glob("*/__init__.py")}
    assert packages == set(re.findall(r"^\| `(\w+)/` \|", page, re.MULTILINE))


# Commands that pages tell people to type


def spoken_commands(page: Path) -> Iterator[tuple[int, str]]:
    """The ``crosslens …`` lines of a page's shell blocks, continued lines joined, comments gone."""
    for block in blocks(page):
        if block.language in ("bash", "sh", "console", "shell"):
            for line in block.text.replace("\\\n", " ").splitlines():
                command = re.match(r"^\s*(?:\$ )?(crosslens\b.*)$", line)
                if command:
                    yield block.line, command[1]


def fault(line: str) -> str:
    """What is wrong with a ``crosslens …`` line; empty where nothing is."""
    words = shlex.split(re.split(r"\s(?:\||>|&&)\s", line)[0], comments=True)
    path = next((" ".join(words[:n]) for n in (3, 2) if " ".join(words[:n]) in COMMANDS), None)
    if path is None:
        return "" if words[1:] in ([], ["--help"], ["--version"]) else "no such command"
    command = COMMANDS[path]
    rest = spread_values(words[len(path.split()) :], command)
    flags = {
        name
        for parameter in command.params
        if getattr(parameter, "is_flag", False)
        for name in [*parameter.opts, *parameter.secondary_opts]
    }
    accepted = {name for parameter in command.params for name in [*parameter.opts, *parameter.secondary_opts]} | {
        "--help",
        "-h",
        "--help-all",
    }
    values = {name: parameter.nargs for parameter in command.params for name in parameter.opts}
    positional, skip = [], 0
    for word in rest:
        name = word.split("=")[0]
        if skip:
            skip -= 1
        elif word.startswith("-") and word != "-":
            if name not in accepted:
                return f"no such option: {name}"
            skip = 0 if "=" in word or name in flags | {"--help"} else values.get(name, 1)
        else:
            positional.append(word)
    if skip:
        return f"{rest[-1]} lacks its value"
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    fewest = sum(parameter.required for parameter in arguments)
    if "--help" not in rest and len(positional) < fewest:
        return f"needs {fewest} arguments"
    if all(parameter.nargs == 1 for parameter in arguments) and len(positional) > len(arguments):
        return f"takes at most {len(arguments)} arguments"
    return ""


@each_row("page", PAGES, ids=page_name)
def test_commands_on_pages_exist(page: Path) -> None:
    faults = [f"line {line}: {text}: {wrong}" for line, text in spoken_commands(page) if (wrong := fault(text))]
    assert not faults


@pytest.mark.parametrize(
    "line", ["crosslens evalaute", "crosslens evaluate --no-such-option 3", "crosslens show", "crosslens data"]
)
def test_a_wrong_command_is_found(line: str) -> None:
    assert fault(line)


def test_every_command_is_taught_somewhere() -> None:
    taught = " ".join(page.read_text(encoding="utf-8") for page in WRITTEN)
    assert not [path for path in COMMANDS if path not in taught]


# Pages that run


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNING, ids=page_name)
def test_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    """Runs every bash and python block in order; a text block shows lines that the block before it really printed."""
    printed: list[str] = []
    for block in blocks(page):
        if block.language in ("bash", "python"):
            printed = run_block(block, tmp_path).splitlines()
        elif block.language == "text":
            missing = [
                line
                for line in shown_lines(block.text)
                if not any(alike(line, printed_line) for printed_line in printed)
            ]
            assert not missing, f"line {block.line}: not printed any more: {missing} ({REFRESH})"


def readme_console() -> str:
    return next(block.text for block in blocks(README) if block.language == "console")


@pytest.mark.slow
def test_readme_shows_what_is_printed(tmp_path: Path) -> None:
    """A smaller demo prints the same lines with other numbers."""
    printed = {outline(line) for line in run_block(typed(readme_console(), DEMO), tmp_path).splitlines()}
    readme_lines = shown_lines(readme_console())
    assert len(readme_lines) > 5
    assert not [line for line in readme_lines if outline(line) not in printed]


@pytest.mark.slow
def test_figures_in_the_readme_are_those_of_the_demo(tmp_path: Path) -> None:
    printed = run_block(typed(readme_console()), tmp_path).splitlines()
    readme_lines = shown_lines(readme_console())
    assert not [line for line in readme_lines if not any(alike(line, printed_line) for printed_line in printed)], (
        REFRESH
    )


@pytest.mark.parametrize(
    ("line", "printed", "same"),
    [
        ("Hit@1   40.5  [34.0, 47.0]", "Hit@1  42.1 [35.0, 48.5]", True),
        ("Hit@1   40.5  [34.0, 47.0]", "Hit@1  51.0 [45.0, 58.5]", False),
        ("Hit@1   40.5", "Hit@5   40.5", False),
        ("colour  20  60.0  [50.0, 70.0]   ██████", "colour  20  60.0  [50.0, 70.0]", True),
        ("cosine 0.751 [0.740, 0.760]", "cosine 0.749 [0.741, 0.757]", True),
        ("cosine 0.751 [0.740, 0.760]", "cosine 0.871 [0.860, 0.880]", False),
        ("1,200 captions", "1,250 captions", True),
        ("1,200 captions", "2,400 captions", False),
    ],
)
def test_near_is_near_and_far_is_far(line: str, printed: str, same: bool) -> None:
    assert alike(line, printed) == same


def test_lines_are_brought_up_to_date() -> None:
    page = "Hit@1   40.5\n…\nHit@5   80.0\n"
    new = refreshed(page, shown_lines(page), "model\nHit@1   41.0\nHit@3   70.0\nHit@5   81.5\n")
    assert new == "Hit@1   41.0\n…\nHit@5   81.5\n"
    with pytest.raises(SystemExit, match="by hand"):
        refreshed(page, ["MedR   3"], "Hit@1   41.0")


def test_a_row_is_taken_from_its_own_table() -> None:
    page = "…\nAUPRC\nmodel   99.0\n"
    new = refreshed(page, shown_lines(page), "Hit@1\nmodel   41.0\nAUPRC\nmodel   99.5\n")
    assert new == "…\nAUPRC\nmodel   99.5\n"


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in WRITTEN if ">>>" in page.read_text(encoding="utf-8")], ids=page_name)
def test_examples_on_pages_hold(page: Path) -> None:
    """In a process of its own: an example may register things."""
    options = ["-o", "ELLIPSIS", "-o", "NORMALIZE_WHITESPACE"]
    done = subprocess.run(
        [sys.executable, "-m", "doctest", *options, str(page)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


# The site


def test_how_to_pages_are_few_and_one_leads_to_all() -> None:
    how_to = {page.name: page.read_text(encoding="utf-8") for page in (DOCS / "how-to").glob("*.md")}
    assert len(how_to) <= 30
    assert sum(len(text.split()) for text in how_to.values()) <= 30_000
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", how_to["index.md"])) == set(how_to) - {"index.md"}


@pytest.mark.parametrize("page", list(ROOT.glob("*.md")), ids=page_name)
def test_links_of_top_pages_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert not [link for link in links if not (ROOT / link).exists()]


@pytest.mark.slow
def test_site_builds_strictly(tmp_path: Path) -> None:
    """Without --quiet: it would hide warnings from --strict, too."""
    pytest.importorskip("mkdocs", reason="pip install 'crosslens[docs]'")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    home = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert not re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=\"https?:", home), "the site must work offline"

"""The options classes that Python functions take as a value, and commands spell out as flags."""

from __future__ import annotations

from dataclasses import fields

from crosslens.analyze import LabelSettings
from crosslens.build import RecosSettings
from crosslens.core import Options, declarations
from reference_pages.markdown import cell, cleaned, tidy, word

INTRO = """# Options

An option is declared once, with its default and its help text: Python functions take it as a keyword and refuse an
unknown one with the nearest names ([Python](python.md) lists the options of each), commands have it as a flag
([command line](command-line.md)), and recipes as a key. The classes below are passed as a value: `settings=…`."""

CLASSES: dict[type[Options], str] = {
    RecosSettings: "`build_recos`",
    LabelSettings: "`assess_label_quality`",
}


def options() -> str:
    """One table per options class."""
    return "\n\n".join([INTRO, *(_section(kind, functions) for kind, functions in CLASSES.items())]) + "\n"


def _section(kind: type[Options], functions: str) -> str:
    declared = declarations(kind)
    rows = [
        f"| `{entry.name}` | {cell(tidy(word(entry.type)))} | {_default(entry.default)} | "
        f"{cell(cleaned(declared[entry.name].help))} |"
        for entry in fields(kind)
        if entry.name in declared
    ]
    table = "\n".join(["| option | type | default | |", "|---|---|---|---|", *rows])
    return "\n\n".join([f"## {kind.__name__}", f"For {functions}.", table])


def _default(value: object) -> str:
    if callable(value):
        return ""
    return f"`{value!r}`"

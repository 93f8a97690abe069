"""The options classes: what functions with ``**options`` take, and commands spell out as flags."""

from __future__ import annotations

from dataclasses import fields

from crosslens.analyze import CaseOptions, JudgingOptions, LabelSettings
from crosslens.build import RecosSettings
from crosslens.core import Options, declarations
from crosslens.encode import EncodeOptions
from crosslens.explanations import CounterfactualOptions
from crosslens.pipeline import CaptionSetOptions, EvaluateArguments, RobustnessOptions
from reference_pages.markdown import cell, cleaned, tidy, word

INTRO = """# Options

Python functions that end in `**options` take these keywords, and refuse an unknown one with the nearest names. Each is
declared once, with its default and its help text; commands spell the same declarations out as flags, and recipes have
them as keys."""

CLASSES: dict[type[Options], str] = {
    EvaluateArguments: "`evaluate`",
    EncodeOptions: "all that runs a model: `load_encoder`, `robustness`, `compare_caption_sets`, `counterfactuals`",
    RobustnessOptions: "`robustness`",
    CaptionSetOptions: "`compare_caption_sets`",
    CaseOptions: "`hard_negatives`: the cases",
    JudgingOptions: "`hard_negatives`: how they are judged",
    CounterfactualOptions: "`counterfactual` and `counterfactuals`",
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

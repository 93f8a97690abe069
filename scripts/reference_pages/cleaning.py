"""The page of the rules by which captions are cleaned."""

from __future__ import annotations

from crosslens.build import cleaning_rules
from reference_pages.markdown import cell

_ABOUT = """# Cleaning captions

What `crosslens build clean` and `crosslens build imp` do with [captions of web
pages](../how-to/build-imp.md#clean-web-captions). Repairs are applied in this order, again and again until none changes
the text any more:

"""
_REASONS = "The first of these reasons that applies drops a repaired text:\n\n"
_NEAR_DUPLICATE = "| `near_duplicate` | With `--near-duplicates`: it repeats an earlier caption, or nearly. |"


def cleaning() -> str:
    """Every repair and every reason, in order."""
    rows: dict[str, list[str]] = {"repair": [], "reason": []}
    for rule, kind, explained in cleaning_rules().select("rule", "kind", "about").iter_rows():
        rows[kind].append(f"| `{rule}` | {cell(explained)} |")
    repairs = ["| repair | what it does |", "|---|---|", *rows["repair"]]
    reasons = ["| reason | when |", "|---|---|", *rows["reason"], _NEAR_DUPLICATE]
    return _ABOUT + "\n".join(repairs) + "\n\n" + _REASONS + "\n".join(reasons) + "\n"

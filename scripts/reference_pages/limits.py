"""The page of limits."""

from __future__ import annotations

from crosslens.storage import LIMITS
from reference_pages.markdown import cell

_ABOUT = """# Limits

A file of a few kilobytes can unpack to gigabytes. What is above one of these limits is refused with an error that names
the limit; images above one can be left out with `--skip-bad`. Each limit is a whole number, and an environment variable
sets it: `CROSSLENS_MAX_IMAGE_PIXELS=200000000 crosslens encode …`.

"""


def limits() -> str:
    """Every limit on input, with its default."""
    rows = ["| variable | default | of what |", "|---|---|---|"]
    rows += [f"| `{limit.variable}` | {limit.default:,} {limit.unit} | {cell(limit.help)} |" for limit in LIMITS]
    return _ABOUT + "\n".join(rows) + "\n"

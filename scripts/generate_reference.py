"""Write what is generated from the code: docs/reference/*.md (commands, metrics, readers …) and types of keywords.

``python scripts/generate_reference.py`` rewrites the files; ``--check`` only says which are out of date. They are
committed, so that a reader of the repository sees them and a change of behaviour shows in the diff.
"""

from __future__ import annotations

import sys
from pathlib import Path

from reference_pages.cleaning import cleaning
from reference_pages.commands import command_line, exit_codes
from reference_pages.keywords import keyword_stubs
from reference_pages.limits import limits
from reference_pages.names import python_names
from reference_pages.options import options
from reference_pages.perturbations import perturbations
from reference_pages.registries import (
    encoders,
    exports,
    findings,
    image_perturbations,
    metrics,
    protocols,
    readers,
    scores,
    similarities,
)
from reference_pages.training import training

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"
NOTE = "<!-- Written by scripts/generate_reference.py: change the code it describes, then run `make docs`. -->\n\n"


def pages() -> dict[str, str]:
    """File name → Markdown of every generated page."""
    made = {
        "command-line.md": command_line(),
        "metrics.md": metrics(),
        "protocols.md": protocols(),
        "scores.md": scores(),
        "readers.md": readers(),
        "encoders.md": encoders(),
        "similarities.md": similarities(),
        "training.md": training(),
        "perturbations.md": perturbations(),
        "image-perturbations.md": image_perturbations(),
        "exports.md": exports(),
        "findings.md": findings(),
        "cleaning.md": cleaning(),
        "python.md": python_names(),
        "options.md": options(),
        "exit-codes.md": exit_codes(),
        "limits.md": limits(),
    }
    return {name: NOTE + text for name, text in made.items()}


def files() -> dict[Path, str]:
    """File → text of everything that is generated."""
    return {**{FOLDER / name: text for name, text in pages().items()}, **keyword_stubs()}


def main() -> int:
    """Write the files, or with ``--check`` compare them; the exit status says whether any differed."""
    check = "--check" in sys.argv
    stale = {file: text for file, text in files().items() if _current(file) != text}
    for file, text in stale.items():
        if not check:
            file.write_text(text, encoding="utf-8")
        print(("stale: " if check else "wrote ") + file.relative_to(ROOT).as_posix())
    return int(check and bool(stale))


def _current(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


if __name__ == "__main__":
    sys.exit(main())

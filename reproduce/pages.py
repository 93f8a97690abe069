"""What the scripts of this folder share: where the real data are, and tables that a page holds between two marks."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from crosslens.core.rendering import Grid


def real_data(*parts: str) -> Path:
    """The folder of the real datasets; where one of ``parts`` is missing in it, the script ends with exit code 3."""
    folder = Path(os.environ.get("CROSSLENS_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    for part in parts:
        if not (folder / part).exists():
            print(f"{folder / part} is missing: set CROSSLENS_DATA to the folder that holds {part}", file=sys.stderr)
            raise SystemExit(3)
    return folder


def markdown(grid: Grid) -> str:
    """A table as a page shows it."""
    lines = [grid.header, tuple("---:" if letter == "r" else "---" for letter in grid.align), *grid.rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)


def update_page(page: Path, tables: Mapping[str, str], *, write: bool) -> int:
    """Print the tables, and write them into the page or compare them with it; 1 where the page has other figures."""
    text = updated = page.read_text(encoding="utf-8")
    for name, table in tables.items():
        print(f"\n{name}\n\n{table}", flush=True)
        block = re.compile(rf"(<!-- begin: {name} -->\n).*?(<!-- end: {name} -->)", re.DOTALL)
        updated = block.sub(lambda match, table=table: f"{match[1]}{table}\n{match[2]}", updated)
    if write:
        page.write_text(updated, encoding="utf-8")
        return 0
    same = text == updated
    print("\nthe page has the same figures" if same else "\nthe page has other figures: see --write")
    return 0 if same else 1

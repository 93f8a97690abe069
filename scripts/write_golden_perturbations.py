"""Write tests/perturbations/golden/<perturbation>.txt: what each perturbation makes of a hundred captions.

``python scripts/write_golden_perturbations.py [NAME …]`` rewrites the files, all of them or those named. They are
committed, so that a changed outcome shows as a diff to be read: every line should be what the perturbation promises, in
English that a person could have written (but for the slips and shuffles, which are wrong on purpose).
"""

from __future__ import annotations

import sys
from pathlib import Path

from crosslens.perturbations import PERTURBATIONS, perturb_all

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "perturbations" / "golden"
CAPTIONS = FOLDER / "captions.txt"


def golden(names: list[str]) -> dict[str, str]:
    """Name → the content of its file: per caption what happened, a tab, and the text."""
    captions = CAPTIONS.read_text(encoding="utf-8").splitlines()
    made = perturb_all(names, captions, seed=0)
    return {
        name: "".join(f"{'changed' if one.applied else one.reason}\t{one.text}\n" for one in results)
        for name, results in made.items()
    }


def main() -> None:
    """Write what changed."""
    names = sys.argv[1:] or [one.name for one in PERTURBATIONS]
    for name, content in golden(names).items():
        file = FOLDER / f"{name}.txt"
        if not file.exists() or file.read_text(encoding="utf-8") != content:
            file.write_text(content, encoding="utf-8")
            print(f"wrote {file.relative_to(FOLDER.parents[2])}")


if __name__ == "__main__":
    main()

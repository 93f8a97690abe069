"""Does ``semantic`` hear who does what to whom? SugarCrepe's altered captions, judged by a photo's other captions.

    make reproduce-semantic-roles                            # the data: CROSSLENS_DATA, or ../shared/data
    python reproduce/semantic_roles.py --phi cider --phi spice
    python reproduce/semantic_roles.py --write               # put the tables into docs/explanation/semantic.md

A case is a photo of COCO val2017, a caption of it that a person wrote (the true one) and an altered copy: two of its
parts swapped, or one replaced. φ is right where the true caption has the higher value; a tie is wrong. The references
are other captions of the photo, never the true one: each of them alone (``one``; the mean over them) and all of them
together (``others``). Photos are divided at the middle of their COCO ids: ``semantic`` was fitted with cases of the
first half, and the tables hold the second.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.cli.console import progress_bar
from crosslens.similarity import load_similarity
from pages import real_data, update_page

Array = np.ndarray[Any, Any]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "semantic.md"
FILES = {"swaps": ("swap_obj", "swap_att"), "replacements": ("replace_obj", "replace_att", "replace_rel")}
PHIS: dict[str, dict[str, str]] = {"semantic": {}, "semantic, without roles": {"fit": "without-roles"}}
"""What the page compares: φ as it is shown → the options it is loaded with."""
READINGS = {"one": "one other caption", "others": "all other captions"}


@dataclass(frozen=True)
class Case:
    """A photo's true caption, its altered copy, and the photo's other captions."""

    file: str
    photo: int
    true: str
    altered: str
    others: tuple[str, ...]


def read_cases(data: Path) -> list[Case]:
    """The cases whose photo has captions here, in the order of the files."""
    with gzip.open(data / "coco_val2017" / "captions.json.gz", "rt", encoding="utf-8") as file:
        content = json.load(file)
    captions: dict[int, list[str]] = defaultdict(list)
    for entry in content["annotations"]:
        captions[entry["image_id"]].append(entry["caption"].strip())
    photos = {entry["file_name"]: entry["id"] for entry in content["images"]}
    cases = []
    for name in (name for names in FILES.values() for name in names):
        for row in json.loads((data / "sugar_crepe" / f"{name}.json").read_text("utf-8")).values():
            photo = photos.get(row["filename"])
            true, altered = row["caption"].strip(), row["negative_caption"].strip()
            others = tuple(text for text in captions.get(photo, ()) if _letters(text) != _letters(true))
            if photo is not None and others:
                cases.append(Case(name, photo, true, altered, others))
    return cases


def _letters(text: str) -> str:
    """A caption without case, punctuation and spaces: SugarCrepe tidied some of the true ones."""
    return "".join(character for character in text.lower() if character.isalnum())


def first_half(cases: Sequence[Case]) -> Array:
    """Which cases are of the first half of the photos, by COCO id: no photo is in both."""
    photos = np.unique([case.photo for case in cases])
    return np.array([case.photo for case in cases]) < photos[len(photos) // 2]


def preferred(phi: str, cases: Sequence[Case], reading: str) -> Array:
    """Per case, the share of reference sets with which φ of the true caption is above φ of the altered one."""
    sets = [[[text] for text in case.others] if reading == "one" else [list(case.others)] for case in cases]
    case_of = np.repeat(np.arange(len(cases)), [len(own) for own in sets])
    references = [texts for own in sets for texts in own]
    texts = [text for case in cases for text in (case.true, case.altered)]
    similarity = load_similarity(phi.partition(",")[0], **PHIS.get(phi, {}))
    prepared = similarity.prepare(references, texts, progress=progress_bar())
    rows = np.arange(len(references))
    right = prepared.pairs(rows, 2 * case_of) > prepared.pairs(rows, 2 * case_of + 1)
    return np.bincount(case_of, weights=right) / np.bincount(case_of)


def table(phis: Sequence[str], cases: Sequence[Case]) -> str:
    """φ and reading down, kinds and files across."""
    names = [name for group, files in FILES.items() for name in (group, *files)]
    file_of = np.array([case.file for case in cases])
    chosen = {name: np.isin(file_of, FILES.get(name, (name,))) for name in names}
    header = " | ".join(f"{name} ({int(rows.sum())})" for name, rows in chosen.items())
    lines = [f"| φ | references | {header} |", "|---" * (len(names) + 2) + "|"]
    for phi in phis:
        for reading, label in READINGS.items():
            right = preferred(phi, cases, reading)
            shares = " | ".join(f"{100 * right[rows].mean():.1f} %" for rows in chosen.values())
            name, _, rest = phi.partition(",")
            lines.append(f"| `{name}`{rest and f',{rest}'} | {label} | {shares} |")
    return "\n".join(lines)


def failing(cases: Sequence[Case], count: int) -> str:
    """Swaps that ``semantic`` gets wrong with all other captions, drawn by a fixed seed, for a person to read."""
    swaps = [case for case in cases if case.file in FILES["swaps"]]
    wrong = [case for case, right in zip(swaps, preferred("semantic", swaps, "others"), strict=True) if not right]
    drawn = random.Random(0).sample(wrong, min(count, len(wrong)))
    return "\n\n".join("\n".join((case.true, case.altered, *(f"  - {text}" for text in case.others))) for case in drawn)


def main() -> int:
    """Compute, print, and compare with the page or write into it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--phi", action="append", help="only this φ; may be given again")
    parser.add_argument("--first-half", action="store_true", help="the cases that semantic was fitted with")
    parser.add_argument("--failing", type=int, metavar="N", help="print N swaps that semantic gets wrong, and stop")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    asked = parser.parse_args()
    cases = read_cases(real_data("sugar_crepe", "coco_val2017"))
    first = first_half(cases)
    chosen = [case for case, is_first in zip(cases, first, strict=True) if is_first == asked.first_half]
    if asked.failing:
        print(failing(chosen, asked.failing))
        return 0
    result = table(asked.phi or list(PHIS), chosen)
    if asked.first_half or asked.phi:
        print(result)
        return 0
    return update_page(PAGE, {"roles": result}, write=asked.write)


if __name__ == "__main__":
    sys.exit(main())

"""What a matrix on disk is: a ``.json`` beside the ``.npy`` with the φ, the dataset and the ids of rows and columns."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crosslens.core.atomic import write_text
from crosslens.core.errors import InputError
from crosslens.core.ids import Ids, as_ids

KIND = "crosslens-similarity"


@dataclass(frozen=True)
class Description:
    """Which φ of which collection; equal descriptions, equal numbers (unless ``revision`` is unknown)."""

    phi: str
    revision: str
    dataset: str
    fingerprint: str
    image_ids: Ids
    caption_ids: Ids

    def as_dict(self) -> dict[str, Any]:
        """As it is written."""
        shape = [len(self.image_ids), len(self.caption_ids)]
        return {"kind": KIND, "version": 1, "shape": shape, **asdict(self)}


def description_file(matrix: str | Path) -> Path:
    """``N.npy`` → ``N.npy.json``."""
    matrix = Path(matrix)
    return matrix.with_name(matrix.name + ".json")


def write_description(matrix: Path, description: Description) -> None:
    """Write the file beside the matrix."""
    write_text(description_file(matrix), json.dumps(description.as_dict(), ensure_ascii=False, indent=1) + "\n")


def read_description(matrix: Path) -> Description | None:
    """The description beside a matrix; None where there is none, or where the file is something else."""
    file = description_file(matrix)
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise InputError(
            f"is no JSON: {error}", file=file, fix="compute the matrix again, or remove the file"
        ) from error
    if not isinstance(found, dict) or found.get("kind") != KIND:
        return None
    try:
        return Description(
            str(found["phi"]),
            str(found["revision"]),
            str(found["dataset"]),
            str(found["fingerprint"]),
            as_ids(found["image_ids"], "image"),
            as_ids(found["caption_ids"], "caption"),
        )
    except KeyError as error:
        raise InputError(f"has no {error.args[0]!r}", file=file, fix="compute the matrix again") from error

"""What a long pass keeps on disk, so that an interruption costs minutes and not hours."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

from crosslens.core.bundle import read_bundle, write_bundle
from crosslens.core.errors import CrosslensError
from crosslens.core.fingerprint import fingerprint
from crosslens.rank.side import Side, Tally


class Found(NamedTuple):
    """What a checkpoint holds: blocks done, and the tallies up to there."""

    done: int
    outer: Tally
    inner: list[Tally]


def key_of(outer: Side, inner: Side, tile: int) -> str:
    """Changes when anything that the tallies depend on does."""
    parts = {"tile": tile, "keep": [outer.keep, inner.keep], "queries": [outer.queries, inner.queries]}
    for name, side in (("outer", outer), ("inner", inner)):
        parts |= {f"{name} offsets": side.offsets, f"{name} targets": side.targets, f"{name} slack": side.slack}
    return fingerprint("checkpoint", parts)


def save_checkpoint(folder: str | Path, key: str, done: int, outer: Tally, inner: Sequence[Tally]) -> None:
    """Replace the checkpoint by a newer one."""
    arrays = {
        f"{owner}-{part.name}": getattr(tally, part.name)
        for owner, tally in [("outer", outer), *((f"inner{n}", one) for n, one in enumerate(inner))]
        for part in fields(Tally)
    }
    header = {"key": key, "done": done, "workers": len(inner)}
    write_bundle(folder, "checkpoint", header=header, arrays=arrays, overwrite=True)


def load_checkpoint(folder: str | Path, key: str) -> Found | None:
    """The checkpoint of this very pass, or None; one of another pass, or a damaged one, is of no use."""
    if not Path(folder).exists():
        return None
    try:
        header, arrays, _ = read_bundle(folder, "checkpoint")
    except CrosslensError:
        return None
    if header.get("key") != key:
        return None

    def tally(owner: str) -> Tally:
        return Tally(**{part.name: arrays[f"{owner}-{part.name}"] for part in fields(Tally)})

    return Found(header["done"], tally("outer"), [tally(f"inner{n}") for n in range(header["workers"])])


def drop_checkpoint(folder: str | Path) -> None:
    """Remove the checkpoint of a finished pass."""
    shutil.rmtree(folder, ignore_errors=True)

"""Changed copies of picture files, worked out by several threads and written one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from crosslens.core.atomic import atomic_file
from crosslens.core.errors import InputError
from crosslens.core.progress import Progress, stage
from crosslens.data.inside import read_address
from crosslens.perturb.images.perturbation import ImagePerturbation
from crosslens.perturb.images.picture import perturb_picture
from crosslens.perturb.images.planes import opened, png

_AHEAD = 4
"""Pictures in the making for each thread: enough to keep it busy while files are written."""


@dataclass(frozen=True)
class Copy:
    """One picture: its id, where it is read, where it goes."""

    image: str
    source: str
    place: Path


def write_copies(
    copies: Sequence[Copy],
    wanted: ImagePerturbation,
    seed: int,
    *,
    threads: int,
    skip_bad: bool,
    progress: Progress,
) -> dict[str, str]:
    """Write those that are not there yet; returns the ids of unreadable ones, and why (with ``skip_bad``)."""
    missing = [one for one in copies if not one.place.exists()]
    bad: dict[str, str] = {}
    with stage(progress, f"changing pictures: {wanted}", len(copies)), ThreadPoolExecutor(threads) as pool:
        progress.advance(len(copies) - len(missing))
        waiting: deque[tuple[Copy, Future[bytes]]] = deque()
        left = iter(missing)
        try:
            while True:
                while len(waiting) < _AHEAD * threads and (copy := next(left, None)) is not None:
                    waiting.append((copy, pool.submit(_changed, copy, wanted, seed)))
                if not waiting:
                    return bad
                copy, future = waiting.popleft()
                _write(copy, future, bad if skip_bad else None)
                progress.advance()
        finally:
            for _, future in waiting:
                future.cancel()


def _changed(copy: Copy, wanted: ImagePerturbation, seed: int) -> bytes:
    try:
        content = read_address(copy.source)
    except OSError as error:
        problem = "not there" if isinstance(error, FileNotFoundError) else f"cannot be opened: {error}"
        raise InputError(problem) from error
    return png(perturb_picture(wanted, opened(content), seed=seed, key=copy.image))


def _write(copy: Copy, future: Future[bytes], bad: dict[str, str] | None) -> None:
    try:
        content = future.result()
    except InputError as error:
        if bad is None:
            raise InputError(
                f"image {copy.image!r} is {error.problem}",
                file=copy.source,
                fix="repair or remove the file, or pass --skip-bad (skip_bad=True) to leave such images out",
            ) from error
        bad[copy.image] = error.problem
        return
    with atomic_file(copy.place) as partial:
        partial.write_bytes(content)

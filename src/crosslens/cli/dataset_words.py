"""A dataset in one word of the command line, for commands that take several.

A path stands by itself; a reader's name is followed by the reader's options: ``"coco captions=captions.json"``.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crosslens.cli.dataset_flags import reader_options
from crosslens.core.errors import UsageError

if TYPE_CHECKING:
    from crosslens.core.dataset import Dataset

SPELLING = '"NAME KEY=VALUE …"|PATH'
"""How such an option is announced in help texts."""


def dataset_of(words: str, more: Sequence[str] | None = None, **named: str | None) -> Dataset:
    """Load what the words name; ``more`` and ``named`` are reader options that came as flags of their own."""
    from crosslens.data import load_dataset

    source, pairs = _apart(words)
    return load_dataset(source, **reader_options(source, [*pairs, *(more or ())], **named))


def _apart(words: str) -> tuple[str, list[str]]:
    if words.strip() and Path(words).exists():  # a path may hold spaces
        return words, []
    try:
        parts = shlex.split(words)
    except ValueError as error:
        raise UsageError(f"{words!r}: {error}", fix='write, for example, "coco captions=captions.json"') from error
    if not parts:
        raise UsageError("an empty dataset", fix="name a path, or a reader with its options")
    return parts[0], parts[1:]

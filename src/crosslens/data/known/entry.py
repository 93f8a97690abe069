"""What is known of a dataset: its names of files, the reader of each form, where to get it, under which licence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Purpose = Literal["retrieval", "hard negatives"]


@dataclass(frozen=True)
class FileForm:
    """One form in which a dataset is found on disks: a folder, the files in it, and the reader that takes them.

    ``files`` maps options of the reader to paths below one of ``folders``; those in ``optional`` may be missing. Every
    text file may be compressed (.gz). With ``is_folder`` the folder is meant, and the file tells that it is the right
    one. Without a ``reader`` what is under ``""`` is loaded as it is. ``pictures`` are folders that the dataset's file
    names start from, each with a path that exists if the pictures are there.
    """

    reader: str
    folders: tuple[str, ...]
    files: Mapping[str, str]
    options: Mapping[str, Any] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    is_folder: bool = False
    pictures: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Download:
    """A part of a dataset: where it comes from, as a text, and where its files go below the folder of datasets."""

    what: str
    source: str
    to: tuple[str, ...] = ()


@dataclass(frozen=True)
class KnownDataset:
    """A dataset that has a name.

    ``relevance`` and ``folds`` are what an evaluation under this name implies. ``images`` is how many images the whole
    dataset has; 0 where that is not fixed. ``called`` is the name of the dataset itself where this one is a way to
    evaluate it.
    """

    name: str
    title: str
    forms: tuple[FileForm, ...]
    downloads: tuple[Download, ...]
    licence: str
    purpose: Purpose = "retrieval"
    images: int = 0
    relevance: str | None = None
    folds: int = 1
    called: str = ""

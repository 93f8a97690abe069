"""The easier versions inside a harder one: a v2 set holds a v1 set, and that a v0 set."""

from __future__ import annotations

from dataclasses import replace

from crosslens.core.dataset import Dataset
from crosslens.core.errors import InputError, UsageError
from crosslens.synth.generation import ROLES, VERSIONS


def select_version(dataset: Dataset, version: str) -> Dataset:
    """The scenes of a set that belong to ``version``: v0 the originals, v1 their twins too, v2 all.

    Scenes of one number are the same in all versions, so this is the very set that ``write_scenes`` would write; the
    pictures are where they were.
    """
    if version not in VERSIONS:
        raise UsageError(f"unknown version {version!r}", fix=f"use one of {', '.join(VERSIONS)}")
    if "role" not in dataset.images.columns:
        raise InputError(
            f"the dataset {dataset.name!r} has no column 'role'",
            expected="a set of scenes, as crosslens synth writes it",
            fix="draw one: crosslens synth --version v2 -o FOLDER",
        )
    roles = ROLES[: VERSIONS.index(version) + 1]
    if roles[-1] not in set(dataset.images["role"]):
        raise UsageError(
            f"{dataset.name} has no {roles[-1]} scenes, and so no version {version}",
            fix=f"draw it with --version {version}",
        )
    chosen = dataset.images.filter(dataset.images["role"].is_in(roles))["image"]
    revision = dataset.card.revision.replace(_version_of(dataset), version, 1)
    return replace(dataset.select(chosen), name=f"scenes-{version}", card=replace(dataset.card, revision=revision))


def _version_of(dataset: Dataset) -> str:
    present = set(dataset.images["role"])
    return next(version for version, role in reversed(list(zip(VERSIONS, ROLES, strict=True))) if role in present)

"""The folder a benchmark is written to: resumes an interrupted build, never replaces another unasked."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl

from crosslens.build.benchmark import Recos
from crosslens.build.generators.protocol import Generator
from crosslens.build.generators.recorded import Recorded
from crosslens.build.log import DecisionLog
from crosslens.build.pages import build_page, regeneration_list, version_page
from crosslens.core import (
    ConflictError,
    Dataset,
    InputError,
    argument,
    atomic_file,
    fingerprint,
    remove_partial_files,
    replace_folder,
    write_text,
)
from crosslens.data import MEMBER_SEPARATOR, read_image_bytes

LOG = "decisions.jsonl"
"""Written last: with it the benchmark is complete."""
ANSWERS = "answers"
"""The generators' answers while a build is in progress; then they are in the log."""
VERSIONS = ("v0", "v1", "v2")
_OWN_FILES = {LOG, ANSWERS, "README.md", "regenerate.csv", "images", *VERSIONS}


class BuildFolder:
    """``key`` identifies the build: a complete build of another key is replaced only with ``overwrite``, when done."""

    def __init__(self, folder: str | Path, key: str, *, overwrite: bool = False) -> None:
        self.target = self.folder = Path(folder)
        self.finished, self.damaged = False, ""
        if self.target.exists() and not self.target.is_dir():
            raise ConflictError(f"{self.target} is a file", fix="choose another output")
        if (self.target / LOG).exists():
            if DecisionLog.load(self.target / LOG).head.get("key") == key:
                self.damaged = self._damaged()
                self.finished = not self.damaged
                return
            if not overwrite:
                raise ConflictError(
                    f"{self.target} already contains a different benchmark",
                    fix=f"choose another output, or pass {argument('overwrite', True)}",
                )
            self.folder = self.target.with_name(f".{self.target.name}.new")
        self._prepare()

    def recorded(self, generator: Generator) -> Recorded:
        """The generator with its answers kept here as they come, apart from those of any other generator."""
        name = fingerprint("generator", {"name": generator.name, "revision": generator.revision})
        return Recorded(generator, self.folder / ANSWERS / name[:12])

    def log(self) -> DecisionLog:
        """The decisions of the build in this folder."""
        return DecisionLog.load(self.target / LOG)

    def versions(self) -> dict[str, Dataset]:
        """The versions in this folder."""
        return {name: Dataset.load(self.target / name) for name in VERSIONS}

    def write(self, recos: Recos, copy_images: bool) -> Mapping[str, Dataset]:
        """Write everything, the log last; returns the versions as written."""
        versions = dict(recos.versions)
        if copy_images:
            files = self._copy(versions["v2"])
            for name, dataset in versions.items():
                column = pl.Series("file", [files[image] for image in dataset.image_ids], dtype=pl.String)
                images = dataset.images.with_columns(column)
                versions[name] = replace(dataset, images=images, home=self.target / name)
        for name, dataset in versions.items():
            dataset.save(self.folder / name, overwrite=True)
            write_text(self.folder / name / "README.md", version_page(name, dataset))
        write_text(self.folder / "README.md", build_page(recos, versions, copied=copy_images))
        with atomic_file(self.folder / "regenerate.csv") as partial:
            regeneration_list(recos).write_csv(partial)
        recos.log.save(self.folder / LOG)
        shutil.rmtree(self.folder / ANSWERS, ignore_errors=True)
        if self.folder != self.target:
            replace_folder(self.folder, self.target)
        return versions

    def _damaged(self) -> str:
        """The first version that was deleted or cannot be read though the log says that all are there; empty: none."""
        for name in VERSIONS:
            try:
                Dataset.load(self.target / name)
            except InputError:
                return name
        copied = self.log().head.get("copy_images") and not (self.target / "images").is_dir()
        return "images" if copied else ""

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_partial_files(self.folder)
        foreign = sorted(path.name for path in self.folder.iterdir() if path.name not in _OWN_FILES)
        begun = (self.folder / ANSWERS).exists() or not any(self.folder.iterdir())
        if foreign or not begun:
            raise ConflictError(f"{self.folder} is not empty and is not a benchmark", fix="choose another output")
        # What an interrupted build wrote goes; its generator's answers stay, whichever settings they belong to.
        for name in VERSIONS:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        (self.folder / ANSWERS).mkdir(exist_ok=True)

    def _copy(self, dataset: Dataset) -> dict[str, str]:
        """Copy every picture once; returns each image's path, seen from the folder of a version."""
        files: dict[str, str] = {}
        used: set[str] = set()
        for image, file in dataset.images.select("image", "file").iter_rows():
            stem = re.sub(r"[^\w.-]+", "_", image)[:100].strip(".") or "image"
            ending = Path(file.partition(MEMBER_SEPARATOR)[2] or file).suffix
            stem = stem.removesuffix(ending) if ending else stem
            name, number = f"{stem}{ending}", 1
            while name.casefold() in used:
                number += 1
                name = f"{stem}-{number}{ending}"
            used.add(name.casefold())
            files[image] = f"../images/{name}"
            with atomic_file(self.folder / "images" / name) as partial:
                partial.write_bytes(read_image_bytes(file))
        return files

"""The folder a benchmark is written to: an interrupted build resumes, another one is never replaced unasked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from crosslens.build.benchmark import Recos
from crosslens.build.copied_images import copied_paths, copy_pictures, with_files
from crosslens.build.generators.protocol import Generator
from crosslens.build.generators.recorded import Recorded
from crosslens.build.log import DecisionLog
from crosslens.build.pages import build_page, regeneration_list, version_page
from crosslens.build.sheets import write_sheet
from crosslens.build.verification import SHEET, VerificationSheet, sheet_table, unused_verdicts
from crosslens.core import (
    DATASET_LAYOUT,
    ConflictError,
    Dataset,
    InputError,
    Layout,
    Workspace,
    argument,
    fingerprint,
    remove,
    tidy_output,
    workspace,
    write_text,
)

LOG = "decisions.jsonl"
ANSWERS = "answers"
"""The generators' answers while a build is in progress; then they are in the log."""
VERSIONS = ("v0", "v1", "v2")
_LAYOUT = Layout(
    "a benchmark",
    LOG,
    (
        "README.md",
        "regenerate.csv",
        SHEET,
        *(file for v in VERSIONS for file in (*DATASET_LAYOUT.within(v), f"{v}/README.md")),
    ),
)
"""Without copied images: their names are in the datasets."""


class BuildFolder:
    """The benchmark in a folder, and the new one that replaces it when it is done.

    ``finished``: the one that is there is of the same key; ``damaged`` names what is missing or unreadable in it.
    """

    def __init__(
        self,
        target: Path,
        key: str,
        sheet: VerificationSheet,
        work: Workspace | None = None,
        *,
        overwrite: bool = False,
    ) -> None:
        self.target, self._work = target, work
        self.unused_verdicts = 0
        """How many verdicts people wrote into the sheet in this folder that this build does not take into account."""
        self.finished, self.damaged = False, ""
        if not _LAYOUT.holds(target):
            return
        self.unused_verdicts = unused_verdicts(target / SHEET, sheet)
        if self.log().head.get("key") == key:
            self.damaged = self._damaged()
            self.finished = not self.damaged
        elif not overwrite:
            raise ConflictError(
                f"{target} already contains a different benchmark",
                fix=f"choose another output, or pass {argument('overwrite', True)}",
            )
        if not self.finished and self.unused_verdicts:
            raise ConflictError(
                f"{target / SHEET} has verdicts that would be lost: {self.unused_verdicts:,}",
                fix=f"use them ({argument('verified', str(target / SHEET))}), or move the file",
            )
        if not self.finished:
            _LAYOUT.refuse_foreign_files(target, self._copied_images())

    def recorded(self, generator: Generator) -> Recorded:
        """The generator with its answers kept here as they come, apart from those of any other generator."""
        name = fingerprint("generator", {"name": generator.name, "revision": generator.revision})
        assert self._work is not None
        return Recorded(generator, self._work.beside(ANSWERS) / name[:12])

    def log(self) -> DecisionLog:
        """The decisions of the build in this folder."""
        return DecisionLog.load(self.target / LOG)

    def versions(self) -> dict[str, Dataset]:
        """The versions in this folder."""
        return {name: Dataset.load(self.target / name) for name in VERSIONS}

    def write(self, recos: Recos, copy_images: bool) -> Mapping[str, Dataset]:
        """Write everything and put it in place; returns the versions as written."""
        assert self._work is not None
        new = self._work.new
        remove(new)  # of an interrupted build only the answers are of use
        new.mkdir()
        versions = dict(recos.versions)
        if copy_images:
            files = copy_pictures(versions["v2"], new / "images")
            versions = {name: with_files(dataset, files, self.target / name) for name, dataset in versions.items()}
        for name, dataset in versions.items():
            (new / name).mkdir()
            dataset.write_into(new / name)
            write_text(new / name / "README.md", version_page(name, dataset))
        write_text(new / "README.md", build_page(recos, versions, copied=copy_images))
        write_sheet(regeneration_list(recos), new / "regenerate.csv")
        write_sheet(sheet_table(versions, recos.sheet), new / SHEET)
        recos.log.save(new / LOG)
        self._work.publish(_LAYOUT, [*self._copied_images(), *copied_paths(new / "images")])
        return versions

    def _copied_images(self) -> list[str]:
        """The images that were copied into the folder, as far as its datasets can be read."""
        files: set[str] = set()
        for name in VERSIONS:
            with suppress(InputError):
                images = Dataset.load(self.target / name).images
                files.update(images["file"].drop_nulls() if "file" in images.columns else ())
        prefix = "../"
        return [file.removeprefix(prefix) for file in files if file.startswith(f"{prefix}images/")]

    def _damaged(self) -> str:
        """The first version that was deleted or cannot be read though the log says that all are there; empty: none."""
        for name in VERSIONS:
            try:
                Dataset.load(self.target / name)
            except InputError:
                return name
        copied = self.log().head.get("copy_images") and not (self.target / "images").is_dir()
        return "images" if copied else ""


@contextmanager
def build_folder(
    output: str | Path | None, key: str, sheet: VerificationSheet, *, overwrite: bool = False
) -> Iterator[BuildFolder | None]:
    """The folder of the build of ``key``; the answers of an interrupted build are kept, whichever its settings."""
    if output is None:
        yield None
        return
    target = Path(output)
    folder = BuildFolder(target, key, sheet, overwrite=overwrite)
    if folder.finished:
        tidy_output(target, key)
        yield folder
        return
    with workspace(target, key, keep=(ANSWERS,)) as work:
        yield BuildFolder(target, key, sheet, work, overwrite=overwrite)

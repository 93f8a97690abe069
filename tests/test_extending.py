"""One new file is enough: put beside the built-in ones, an entry is found by name, with no list to add it to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ENTRIES = {
    "metric": (
        "crosslens.metrics.families",
        "crosslens.metrics.METRICS",
        """
        from crosslens.metrics import metric

        @metric("Newcomer", definition="always 1")
        def newcomer(ranks, spec):
            "Always 1."
            return ranks.relevant / ranks.relevant
        """,
    ),
    "reader": (
        "crosslens.data.readers",
        "crosslens.data.READERS",
        """
        from crosslens.values import Dataset
        from crosslens.data import READERS

        @READERS.register("Newcomer")
        def read_newcomer(captions: str) -> Dataset:
            "One image with one caption."
            return Dataset.of({"image": [captions]})
        """,
    ),
    "writer": (
        "crosslens.data.writers",
        "crosslens.data.WRITERS",
        """
        from crosslens.data import WRITERS

        @WRITERS.register("Newcomer")
        def write_newcomer(dataset, path):
            "The captions, one per line."
            path.write_text("\\n".join(dataset.texts))
        """,
    ),
    "encoder": (
        "crosslens.encode.adapters",
        "crosslens.encode.ENCODERS",
        """
        from crosslens.encode import ENCODERS

        @ENCODERS.register("Newcomer", needs_source=False, extra=None)
        def load_newcomer(source, options):
            "An encoder."
        """,
    ),
    "similarity": (
        "crosslens.similarity.measures",
        "crosslens.similarity.SIMILARITIES",
        """
        from crosslens.similarity import SIMILARITIES

        @SIMILARITIES.register("Newcomer")
        def load_newcomer():
            "A similarity."
        """,
    ),
    "perturbation": (
        "crosslens.perturbations.text",
        "crosslens.perturbations.PERTURBATIONS",
        """
        from crosslens.perturbations import perturbation

        @perturbation("Newcomer", level="beyond", keeps_meaning=True)
        def newcomer(caption, draws):
            "A perturbation."
        """,
    ),
    "image perturbation": (
        "crosslens.perturbations.images",
        "crosslens.perturbations.IMAGE_PERTURBATIONS",
        """
        from crosslens.perturbations import image_perturbation

        @image_perturbation("Newcomer", amounts=(1, 2, 3, 4, 5), unit="steps")
        def newcomer(pixels, amount, draws):
            "A perturbation of images."
            return pixels
        """,
    ),
    "export": (
        "crosslens.report.export",
        "crosslens.report.EXPORTS",
        """
        from crosslens.report import EXPORTS

        @EXPORTS.register("Newcomer", suffix=".txt")
        def newcomer(runs):
            "An export."
        """,
    ),
}


def test_a_new_file_is_all_it_takes(tmp_path: Path) -> None:
    script = ["import importlib"]
    for kind, (package, _, source) in ENTRIES.items():
        (tmp_path / kind).mkdir()
        lines = [line.removeprefix("        ") for line in source.strip("\n").splitlines()]
        (tmp_path / kind / "newcomer.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
        script += [f"import {package}", f"{package}.__path__.append({str(tmp_path / kind)!r})"]
    for kind, (_, registry, _) in ENTRIES.items():
        home, _, name = registry.rpartition(".")
        script += [
            f"registry = importlib.import_module({home!r}).{name}",
            "entry = registry['Newcomer']",
            "assert entry.summary, entry",
            f"print({kind!r}, entry.name, len(list(registry)), sep='\\t')",
        ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(script)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [(kind, name) for kind, name, _ in rows] == [(kind, "Newcomer") for kind in ENTRIES]
    assert all(int(entries) > 1 for *_, entries in rows), "the built-in entries are there, too"

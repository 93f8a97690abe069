"""Run the notebooks of ``examples/`` anew, in a folder of their own, and store their outputs in them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def main() -> None:
    """Bars, which slow cells leave behind empty, and times are not stored: they differ from run to run."""
    with TemporaryDirectory() as folder:
        for file in sorted(EXAMPLES.glob("*.ipynb")):
            notebook = nbformat.read(file, nbformat.NO_CONVERT)
            NotebookClient(
                notebook, timeout=600, record_timing=False, resources={"metadata": {"path": folder}}
            ).execute()
            for cell in notebook.cells:
                if cell.cell_type == "code":
                    cell.outputs = [output for output in cell.outputs if any(output.get("data", {"text": 1}).values())]
            notebook.metadata.language_info = {"name": "python"}  # not the version of Python that it ran on
            nbformat.write(notebook, file)
            print(f"{file.name}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

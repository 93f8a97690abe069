"""What a run says about where it came from."""

from __future__ import annotations

from crosslens.core.run import Run


def dataset_name(run: Run) -> str:
    """The name of the dataset behind a run, as far as the run knows it."""
    dataset = run.provenance.get("dataset")
    return str(dataset.get("name", "")) if isinstance(dataset, dict) else str(dataset or "")


def dataset_revision(run: Run) -> str:
    """The fingerprint of the dataset behind a run, as far as the run knows it."""
    dataset = run.provenance.get("dataset")
    return str(dataset.get("fingerprint", "")) if isinstance(dataset, dict) else ""

"""What a run says about where it came from."""

from __future__ import annotations

from crosslens.core.run import Run


def dataset_name(run: Run) -> str:
    """The name of the dataset behind a run; nothing where it had none."""
    return str(run.provenance.get("dataset", {}).get("name", ""))


def dataset_revision(run: Run) -> str:
    """The fingerprint of the dataset behind a run; nothing where it had none."""
    return str(run.provenance.get("dataset", {}).get("fingerprint", ""))

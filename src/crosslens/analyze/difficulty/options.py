"""Settings of thresholds and filters, as flags and recipes know them too."""

from __future__ import annotations

from dataclasses import dataclass

from crosslens.core import Options, option

IN_BATCH, ALL_NEGATIVES = "in-batch", "all"
WEB_THRESHOLDS = (0.28, 0.3)
"""Of CLIP ViT-B/32's cosine: LAION-5B's English part and LAION-400M (Schuhmann et al.)."""


@dataclass(frozen=True)
class CalibrationOptions(Options):
    """Which pairs count as mismatches when a threshold is computed."""

    negatives: str = option(
        IN_BATCH, "Mismatches of a calibration set: in-batch (within random batches) or all.", metavar="NAME",
        choices=(IN_BATCH, ALL_NEGATIVES),
    )  # fmt: skip
    batch_size: int = option(256, "Pairs in a batch, for in-batch.", metavar="N", minimum=2)
    seed: int = option(0, "Seed of the batches and of the panels of --stability.", metavar="N")

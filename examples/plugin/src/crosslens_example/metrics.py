"""A metric: ranks of the relevant items in, one number per query out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import crosslens as cl
from crosslens.metrics import MetricSpec, RelevantRanks


@cl.metric("Shallow", cutoff="required", definition="1 if the best relevant item has a rank from 2 to k, else 0")
def shallow(ranks: RelevantRanks, spec: MetricSpec) -> npt.NDArray[Any]:
    """How often the best relevant item is near the top, but not first."""
    return np.asarray(ranks.hit(spec.k) - ranks.hit(1))

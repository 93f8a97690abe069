"""Why a retrieval failed, and what would have mended it. The room can be called: ``crosslens.explain(run, query)``."""

from __future__ import annotations

from crosslens.core.rooms import make_callable
from crosslens.explain.asking import explain

__all__ = ["explain"]

make_callable(__name__)

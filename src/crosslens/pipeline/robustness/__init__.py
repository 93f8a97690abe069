"""Change the captions a little, or the pictures, and see what a model makes of it."""

from __future__ import annotations

from crosslens.pipeline.robustness.measuring import robustness
from crosslens.pipeline.robustness.result import Robustness

__all__ = ["Robustness", "robustness"]

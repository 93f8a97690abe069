"""New benchmarks from candidates: descriptions checked, rewritten, and set beside pictures easy to confuse."""

from __future__ import annotations

from crosslens.build.benchmark import Recos
from crosslens.build.log import DecisionLog
from crosslens.build.recos import build_recos
from crosslens.build.settings import RecosSettings
from crosslens.build.views import Encoders

__all__ = ["DecisionLog", "Encoders", "Recos", "RecosSettings", "build_recos"]

"""``tiny``: the dual encoder that comes with the package. Its files are made by ``training/tiny`` in the repository."""

from __future__ import annotations

from pathlib import Path

from crosslens.core.errors import UsageError
from crosslens.encode.encoder import ENCODERS, Encoder, Settings
from crosslens.encode.onnx import described

FOLDER = Path(__file__).parent


@ENCODERS.register("tiny", needs_source=False, extra="onnx")
def load_tiny(source: str, settings: Settings) -> Encoder:
    """The built-in encoder of images and texts: small, quick, without torch, trained on drawn scenes only.

    It is for trying things out, for demonstrations and tests. It knows the world that ``crosslens synth`` draws and
    nothing else: on photographs it is of no use.
    """
    if source:
        raise UsageError(f"tiny:{source}: there is only one tiny", fix="write --model tiny")
    if settings.precision != "fp32":
        raise UsageError(f"precision {settings.precision}: tiny computes in fp32", fix="leave --precision out")
    return described(FOLDER / "towers.json", "tiny", settings)

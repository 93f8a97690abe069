"""``tiny``: the dual encoder that comes with the package. Its files are made by ``training/tiny`` in the repository."""

from __future__ import annotations

from pathlib import Path

from crosslens.core import UsageError
from crosslens.encode.adapters.onnx import described
from crosslens.encode.encoder import ENCODERS, Encoder
from crosslens.encode.options import EncodeOptions

FOLDER = Path(__file__).parents[1] / "tiny"


@ENCODERS.register("tiny", needs_source=False, extra="onnx")
def load_tiny(source: str, options: EncodeOptions) -> Encoder:
    """The built-in encoder of images and texts: small, quick, without torch, trained on drawn scenes only.

    It is for trying things out, for demonstrations and tests. It knows the world that ``crosslens synth`` draws and
    nothing else: on photographs it is of no use.
    """
    if source:
        raise UsageError(f"tiny:{source}: tiny takes no source", fix="write --model tiny")
    if options.precision != "fp32":
        raise UsageError(f"precision {options.precision}: tiny computes in fp32", fix="leave --precision out")
    return described(FOLDER / "towers.json", "tiny", options)

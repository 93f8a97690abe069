"""How much crosslens takes from one input. Each limit is declared here and set by its environment variable.

A file of a few kilobytes can unpack to gigabytes, and a picture of one row can be resized to billions of pixels.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from crosslens.core.errors import InputError, UsageError


@dataclass(frozen=True)
class Limit:
    """The largest amount of something, in ``unit``, unless the environment variable ``variable`` says otherwise."""

    variable: str
    default: int
    unit: str
    help: str

    @property
    def value(self) -> int:
        """The limit that holds now."""
        text = os.environ.get(self.variable, "").strip()
        if not text:
            return self.default
        if not (text.isascii() and text.isdecimal() and len(text) <= 18 and int(text) > 0):
            raise UsageError(
                f"the environment variable {self.variable} is {text!r:.60}",
                fix=f"set it to a whole number of {self.unit} above 0, or unset it (default: {self.default})",
                option=self.variable,
            )
        return int(text)

    def check(self, amount: int, what: str, *, file: str | Path | None = None, row: int | str | None = None) -> None:
        """Raise if ``amount`` is above the limit."""
        if amount > self.value:
            raise self.error(f"{what} has {amount:,} {self.unit}", file=file, row=row)

    def error(self, problem: str, *, file: str | Path | None = None, row: int | str | None = None) -> InputError:
        """The error for more than the limit."""
        fix = f"leave it out; if it is meant, set the environment variable {self.variable} higher"
        expected = f"at most {self.value:,} {self.unit}"
        return InputError(problem, file=file, row=row, expected=expected, fix=fix, code="limit", subject=self.variable)


IMAGE_PIXELS = Limit("CROSSLENS_MAX_IMAGE_PIXELS", 100_000_000, "pixels", "Width times height of one image.")
PIXELS_IN_FLIGHT = Limit(
    "CROSSLENS_MAX_PIXELS_IN_FLIGHT",
    250_000_000,
    "pixels",
    "Images decoded ahead of their use, all together, and those of a batch: 4 bytes of memory per pixel.",
)
ASPECT_RATIO = Limit(
    "CROSSLENS_MAX_ASPECT_RATIO",
    200,
    "times the shorter side",
    "The longer side of an image: models scale the shorter side to a fixed length, and the longer one with it.",
)
IMAGE_BYTES = Limit("CROSSLENS_MAX_IMAGE_BYTES", 256 << 20, "bytes", "The file of one image.")
MEMBER_BYTES = Limit("CROSSLENS_MAX_MEMBER_BYTES", 256 << 20, "bytes", "One member of a tar file, unpacked.")
UNPACKED_BYTES = Limit(
    "CROSSLENS_MAX_UNPACKED_BYTES", 4 << 30, "bytes", "What a compressed file, tar file or table unpacks to."
)
VECTOR_BYTES = Limit(
    "CROSSLENS_MAX_VECTOR_BYTES",
    6 << 30,
    "bytes",
    "Vectors held in memory, by ranking as float32; those of a side beyond it are read from their files in blocks.",
)
DEVICE_BYTES = Limit(
    "CROSSLENS_MAX_DEVICE_BYTES",
    1 << 40,
    "bytes",
    "Memory of each GPU that ranking uses, if so much is free; what does not fit is ranked in blocks.",
)
REMOTE_BYTES = Limit(
    "CROSSLENS_MAX_REMOTE_BYTES", 16 << 30, "bytes", "One file that is copied from an address, announced or not."
)
REMOTE_SECONDS = Limit(
    "CROSSLENS_MAX_REMOTE_SECONDS",
    120,
    "seconds",
    "How long a server or store may take to answer, and then for every megabyte that it sends.",
)
CAPTION_CHARACTERS = Limit("CROSSLENS_MAX_CAPTION_CHARACTERS", 100_000, "characters", "One caption.")

LIMITS = (
    IMAGE_PIXELS,
    PIXELS_IN_FLIGHT,
    ASPECT_RATIO,
    IMAGE_BYTES,
    MEMBER_BYTES,
    UNPACKED_BYTES,
    VECTOR_BYTES,
    DEVICE_BYTES,
    REMOTE_BYTES,
    REMOTE_SECONDS,
    CAPTION_CHARACTERS,
)

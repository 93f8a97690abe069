"""What decides a RECOS build besides its candidates, its encoders and its generator."""

from __future__ import annotations

from dataclasses import dataclass

from crosslens.analyze import band
from crosslens.analyze.picture_hash import BITS
from crosslens.core.errors import UsageError


@dataclass(frozen=True)
class RecosSettings:
    """The numbers of a build.

    ``k``, ``eta``        the check: dis(t) over the k most similar images must lie in the band of eta
    ``temperature``       of that check; None: the inverse of the encoder's logit scale
    ``descriptions``      how many each image has in the end
    ``attempts``          how often the generator may try to replace a description outside the band; 0: never
    ``originals``         how many images v0 should have; None: a third of the candidates
    ``similar``           how many similar images without text each image of v1 brings into v2
    ``duplicate_cosine``  two images whose vectors are at least this near are the same picture; 2: never
    ``duplicate_bits``    two pictures whose hashes (192 bits) differ in at most so many bits are the same; -1: never
    ``task_column``, ``source_column``  where the images' task and source stand
    """

    k: int = 20
    eta: float = 0.8
    temperature: float | None = None
    descriptions: int = 5
    attempts: int = 3
    originals: int | None = None
    similar: int = 20
    duplicate_cosine: float = 0.98
    duplicate_bits: int = 12
    task_column: str = "task"
    source_column: str = "source"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.k < 2:
            raise UsageError(f"k = {self.k}", fix="choose at least 2: one image alone has no entropy")
        band(self.k, self.eta)
        for name, least in (("descriptions", 1), ("attempts", 0), ("similar", 0)):
            if getattr(self, name) < least:
                raise UsageError(f"{name} = {getattr(self, name)}", fix=f"choose {least} or more")
        if not -1 <= self.duplicate_cosine <= 2:
            fix = "choose a cosine from -1 to 1, or 2 for never"
            raise UsageError(f"duplicate_cosine = {self.duplicate_cosine}", fix=fix)
        if not -1 <= self.duplicate_bits <= BITS:
            fix = f"choose 0 to {BITS} bits, or -1 for never"
            raise UsageError(f"duplicate_bits = {self.duplicate_bits}", fix=fix)
        if self.originals is not None and self.originals < 1:
            raise UsageError(f"originals = {self.originals}", fix="choose 1 or more, or leave it out")
        if self.temperature is not None and not self.temperature > 0:
            raise UsageError(f"temperature = {self.temperature}", fix="choose a number above 0")

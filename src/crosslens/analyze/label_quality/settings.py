"""What makes a label suspect."""

from __future__ import annotations

from dataclasses import dataclass

from crosslens.core import Options, UsageError, option


@dataclass(frozen=True)
class LabelSettings(Options):
    """When :func:`crosslens.analyze.assess_label_quality` suspects a label."""

    threshold: float = option(
        1 / 3, "Keyword filter: share of words that other texts of the image have.", metavar="SHARE"
    )
    far: float = option(0.05, "Far: ranked behind this share of the images in every run.", metavar="SHARE")
    shortest: int = option(3, "A caption of fewer words says too little.", metavar="N")
    bits: int = option(6, "Same picture: hashes differ in at most N of 192 bits; -1: never.", metavar="N")
    cosine: float = option(0.99, "Same picture: cosine of at least this; 2: never.", metavar="NUMBER")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least, most in (("threshold", 0, 1), ("far", 0, 1), ("cosine", -1, 2), ("bits", -1, 192)):
            value = getattr(self, name)
            if not least <= value <= most:  # NaN too
                raise UsageError(f"{name} = {value}", fix=f"choose a number from {least} to {most}", option=name)
        if self.shortest < 0:
            raise UsageError(f"shortest = {self.shortest}", fix="choose 0 words or more", option="shortest")

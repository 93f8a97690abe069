"""How sure a figure is: intervals over images, paired tests, corrections for many comparisons."""

from crosslens.statistics.bootstrap import Bootstrap, Estimate, estimate, sum_of_means
from crosslens.statistics.centre import centre
from crosslens.statistics.corrections import CORRECTIONS, benjamini_hochberg, correct, holm
from crosslens.statistics.paired_samples import PairedChange, Samples, paired_samples
from crosslens.statistics.permutation import PairedTest, paired_permutation

__all__ = [
    "CORRECTIONS",
    "Bootstrap",
    "Estimate",
    "PairedChange",
    "PairedTest",
    "Samples",
    "benjamini_hochberg",
    "centre",
    "correct",
    "estimate",
    "holm",
    "paired_permutation",
    "paired_samples",
    "sum_of_means",
]

"""One reader and writer per format, rankings and judgements in and out, and what a dataset is like in numbers."""

from __future__ import annotations

# Importing a format's module registers its reader.
from crosslens.data import (  # noqa: F401
    coco,
    fine_grained,
    flickr,
    huggingface,
    kaggle_csv,
    karpathy,
    plain,
    visual_genome,
    webdataset,
)
from crosslens.data.description import Description, Spread, describe
from crosslens.data.eccv import read_eccv
from crosslens.data.hard_negatives import HardNegatives
from crosslens.data.hard_negatives_loading import load_hard_negatives
from crosslens.data.judgements import Judgements, read_judgements
from crosslens.data.loading import load_dataset
from crosslens.data.losses import left_out
from crosslens.data.precomputed import read_precomputed
from crosslens.data.rankings import read_qrels, read_run, write_qrels, write_run
from crosslens.data.readers import READERS
from crosslens.data.writing import write_dataset

__all__ = [
    "READERS",
    "Description",
    "HardNegatives",
    "Judgements",
    "Spread",
    "describe",
    "left_out",
    "load_dataset",
    "load_hard_negatives",
    "read_eccv",
    "read_judgements",
    "read_precomputed",
    "read_qrels",
    "read_run",
    "write_dataset",
    "write_qrels",
    "write_run",
]

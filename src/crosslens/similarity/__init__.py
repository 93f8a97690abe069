"""φ: how much a caption says what an image's captions say."""

from __future__ import annotations

# Importing a module registers its φ; none of them imports a heavy package before it is used. ``embed`` comes from the
# room of the encoders, which stands above this one and announces it by an entry point.
from crosslens.similarity import cider, overlap, spice  # noqa: F401
from crosslens.similarity.cider import Cider
from crosslens.similarity.description import Description, read_description
from crosslens.similarity.embedding import EmbeddingSimilarity
from crosslens.similarity.matrix import describe_matrix, relevance_matrix, relevance_pairs
from crosslens.similarity.similarity import (
    SIMILARITIES,
    KnowsIds,
    Phi,
    Prepared,
    Similarity,
    load_similarity,
    prepare_dataset,
    references_of,
)

__all__ = [
    "SIMILARITIES",
    "Cider",
    "Description",
    "EmbeddingSimilarity",
    "KnowsIds",
    "Phi",
    "Prepared",
    "Similarity",
    "describe_matrix",
    "load_similarity",
    "prepare_dataset",
    "read_description",
    "references_of",
    "relevance_matrix",
    "relevance_pairs",
]

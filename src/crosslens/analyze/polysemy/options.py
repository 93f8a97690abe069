"""Settings of clusters, as flags know them too: importing them loads no arrays."""

from __future__ import annotations

from dataclasses import dataclass

from crosslens.core import Options, option


@dataclass(frozen=True)
class ClusterOptions(Options):
    """How images are clustered."""

    min_cluster_size: int = option(10, "Clusters: the fewest images of one.", metavar="N", minimum=2)
    umap_neighbours: int = option(
        15, "Clusters: neighbours of an image that the map preserves.", metavar="N", minimum=2
    )
    purity_by: str | None = option(
        None, "Clusters: how pure they are by this column of the images, such as category.", metavar="COLUMN"
    )

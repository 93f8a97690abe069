"""Single pairs in float32 where there are no kernels: a sparse product decides most of those that halves cannot."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

from crosslens.rank.gpu.exact import fused
from crosslens.rank.gpu.rounded import float32_slack, lengths_of

Tensor = Any


def worthwhile(device: str) -> bool:
    """Whether sparse products are fast and exact scores are not: these would be gathered, a vector per pair."""
    return device == "cuda" and not fused(device)


class SampledProducts:
    """Inner products of some pairs of queries and items."""

    def __init__(self, queries: Tensor, gallery: Tensor) -> None:
        self.queries, self.gallery = queries, gallery

    @cached_property
    def slack(self) -> Tensor:
        """How far the scores of each query may be off."""
        return float32_slack(lengths_of(self.queries), lengths_of(self.gallery), self.queries.shape[1])

    def around(self, queries: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """What the exact scores of pairs are at least and at most, in float64."""
        import torch

        count, width = len(self.queries), len(self.gallery)
        # Several relevant items of a query may have to be compared with the same item: patterns hold it once.
        keys, inverse = torch.unique(queries * width + items, return_inverse=True)
        rows = torch.div(keys, width, rounding_mode="floor")
        offsets = torch.searchsorted(rows, torch.arange(count + 1, device=rows.device))
        nothing = torch.zeros(len(keys), device=rows.device)
        pattern = _sparse(offsets.int(), (keys - rows * width).int(), nothing, (count, width))
        products = torch.sparse.sampled_addmm(pattern, self.queries, self.gallery.T, beta=0.0).values()
        scores, slack = products[inverse].double(), self.slack[queries]
        return scores - slack, scores + slack


def _sparse(offsets: Tensor, items: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    import torch

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse (CSR tensor support is in beta|invariant checks are implicitly dis)")
        return torch.sparse_csr_tensor(offsets, items, values, shape, check_invariants=False)

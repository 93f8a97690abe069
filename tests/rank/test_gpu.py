"""The ranking passes of devices, on the CPU: every rank, tie and list is that of the slow reference."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.engine import SilentProgress
from crosslens.values import Relevance
from tests.rank.test_exactness import check as compare, random_relevance

torch = pytest.importorskip("torch")

from crosslens.rank.gpu import block_ranking, frequent, tile_pass as passes  # noqa: E402
from crosslens.rank.gpu.block_ranking import rank_pair  # noqa: E402
from crosslens.rank.gpu.direction import (  # noqa: E402
    DeviceDirection,
    best_items,
    exact_scores,
    float32_slack,
    halves,
    orderable,
    product_slack,
)
from crosslens.rank.gpu.tile_levels import FlagBuffers, HalfLevel, product_levels, rounded_down  # noqa: E402
from crosslens.rank.gpu.tile_pass import full_precision, tile_pass  # noqa: E402
from tests.tables import each_row, rest_slow  # noqa: E402

KINDS = ("model", "random", "constant", "copies", "some alike", "zeros", "lengths", "long")


def vectors_of(kind: str, n: int, m: int, dimension: int, seed: int) -> tuple[np.ndarray, np.ndarray, Relevance]:
    """Images and captions as float32; several captions per image."""
    rng = np.random.default_rng(seed)
    owners = rng.integers(0, n, m)
    images = rng.standard_normal((n, dimension))
    captions = (
        rng.standard_normal((m, dimension))
        if kind == "random"
        else images[owners] + rng.standard_normal((m, dimension))
    )
    if kind == "constant":
        captions[:] = captions[0]
    elif kind == "copies":
        captions[m // 2 :] = captions[: m - m // 2]
        images[n // 2 :] = images[: n - n // 2]
    elif kind == "zeros":
        captions[::3], images[::4] = 0, 0
    elif kind == "some alike":
        captions[: m // 2] = captions[0]
    elif kind == "lengths":
        images, captions = (part * 10.0 ** rng.uniform(-2, 2, (len(part), 1)) for part in (images, captions))
    elif kind == "long":
        captions *= 10.0 ** rng.integers(-12, 12, (m, 1))
    ids = tuple(f"i{k}" for k in range(n)), tuple(f"c{k}" for k in range(m))
    return np.float32(images), np.float32(captions), Relevance.from_indices(*ids, owners, np.arange(m))


def check(
    images: np.ndarray, captions: np.ndarray, relevance: Relevance, depth: int, tile: int | None = None,
    half: bool = False,
) -> None:  # fmt: skip
    """Compare with the reference; ``half`` makes tiles as tensor cores would."""
    left, right = torch.from_numpy(images), torch.from_numpy(captions)

    def both() -> tuple[DeviceDirection, DeviceDirection]:
        return (
            DeviceDirection.of(relevance, left, right, depth),
            DeviceDirection.of(relevance.flip(), right, left, depth),
        )

    if half:
        directions = both()
        tile_pass(*directions, SilentProgress(), half=True, tile=tile)
    else:
        directions = rank_pair(both, tile, SilentProgress())
    rows, columns = np.divmod(np.arange(len(images) * len(captions)), len(captions))
    scores = (images[rows].astype(np.float64) * captions[columns]).sum(1).astype(np.float32)
    scores = scores.reshape(len(images), len(captions))
    rankings = {
        name: direction.lists().ranking(name, direction.relevance)
        for name, direction in zip(("i2t", "t2i"), directions, strict=True)
    }
    compare(scores, relevance, rankings)


PAIRWISE = [(kind, tile, bool(n % 2)) for n, (kind, tile) in enumerate(product(KINDS, [None, 13, 64]))]
"""Every kind with every tile, and each of both in single and in half precision."""


@each_row(("kind", "tile", "half"), [PAIRWISE[3 * n + n % 3] for n in range(len(KINDS))])
def test_tiles(kind: str, tile: int | None, half: bool) -> None:
    """Every kind, with the tiles and precisions in turn."""
    check(*vectors_of(kind, 40, 130, 24, seed=3), depth=5, tile=tile, half=half)


@pytest.mark.slow
@each_row(("kind", "tile", "half"), PAIRWISE)
def test_every_kind_in_every_tile(kind: str, tile: int | None, half: bool) -> None:
    check(*vectors_of(kind, 40, 130, 24, seed=3), depth=5, tile=tile, half=half)


@pytest.mark.parametrize(("fewest", "depth"), rest_slow([(2, 5), (8, 100), (8, 5)], fast=2))
@pytest.mark.parametrize("kind", KINDS)
def test_vectors_that_occur_often_are_left_out_of_the_pass(kind: str, fewest: int, depth: int, monkeypatch) -> None:
    monkeypatch.setattr(frequent, "_FEWEST", fewest)
    shapes = []
    whole = block_ranking.tile_pass
    monkeypatch.setattr(
        block_ranking,
        "tile_pass",
        lambda rows, columns, *given, **options: (
            shapes.append((len(rows.queries), len(columns.queries))) or whole(rows, columns, *given, **options)
        ),
    )
    check(*vectors_of(kind, 40, 130, 24, seed=3), depth=depth)
    left = {"constant": [], "zeros": [(30, 86)], "some alike": [(40, 65)]}
    if kind in left:
        assert shapes == left[kind]
    elif kind == "copies" and fewest == 2:
        assert shapes == []
    else:
        assert shapes == [(40, 130)]


def test_frequent_vectors_fill_lists_that_are_longer_than_what_is_left() -> None:
    """Five captions that fit the images, and twenty copies of one that fits none."""
    rng = np.random.default_rng(0)
    images, captions = np.float32(rng.random((12, 6))), np.float32(rng.random((25, 6)))
    captions[3:23] = -1
    check(images, captions, random_relevance(rng, 12, 25, 0.2), depth=10, tile=4)


@given(
    n=st.integers(1, 10), m=st.integers(1, 40), levels=st.integers(1, 4), share=st.floats(0, 1),
    depth=st.integers(1, 50), tile=st.integers(1, 50), seed=st.integers(0, 2**32), half=st.booleans(),
    few=st.sampled_from([0, 2, 32]), sparse=st.sampled_from([0.0, 0.25]),
    undecided=st.sampled_from([0.0, 1 / 128, 9.0]), queue=st.sampled_from([0, 9, 1 << 21]),
    piece=st.sampled_from([3, 2048]),
)  # fmt: skip
def test_whole_numbers_with_many_ties(
    n, m, levels, share, depth, tile, seed, half, few, sparse, undecided, queue, piece
):
    """Whatever is compared entry by entry, compared as a whole, or made again more precisely."""
    rng = np.random.default_rng(seed)
    images, captions = (np.float32(rng.integers(-levels, levels + 1, (count, 3))) for count in (n, m))
    with pytest.MonkeyPatch.context() as patch:
        constants = {"_FEW_RELEVANT": few, "_SPARSE": sparse, "_UNDECIDED": undecided, "_QUEUE": queue}
        for name, value in {**constants, "_SMALLEST_TILE": piece}.items():
            patch.setattr(passes, name, value)
        patch.setattr(passes, "_MANY", undecided)
        check(images, captions, random_relevance(rng, n, m, share), depth, tile=tile, half=half)


@pytest.mark.parametrize(
    ("kind", "rows", "columns"),
    [
        ("model", (0, False), (0, False)),
        ("random", (0, True), (0, True)),
        ("constant", (2, True), (0, True)),
        ("long", (2, True), (0, False)),
    ],
)
def test_tiles_are_made_no_more_precisely_than_needed(kind: str, rows: Any, columns: Any, monkeypatch) -> None:
    """Half precision, entry by entry; unrelated vectors: as a whole; where all captions are alike: float64.

    Lengths of captions that are 24 powers of ten apart are no trouble for captions, each by itself, as queries.
    """
    last: dict[int, tuple[int, bool]] = {}
    look_at = passes._DirectionPass.look_at

    def noted(self: Any, *parts: slice) -> None:
        look_at(self, *parts)
        last[self.direction.axis] = self.start, self.dense

    monkeypatch.setattr(passes._DirectionPass, "look_at", noted)
    check(*vectors_of(kind, 200, 300, 24, seed=3), depth=1, tile=150, half=True)
    assert last == {0: rows, 1: columns}


def uneven_vectors(dimension: int, seed: int, exponent: int, spread: int) -> list[Any]:
    """Two times twelve vectors whose lengths are around a power of ten, some powers apart."""
    rng = np.random.default_rng(seed)
    size = 10.0 ** (exponent + rng.uniform(-spread / 2, spread / 2, (12, 1)))
    return [torch.from_numpy(np.float32(rng.standard_normal((12, dimension)) * size)) for _ in range(2)]


@given(
    dimension=st.integers(1, 100), seed=st.integers(0, 2**32), exponent=st.integers(-15, 11), spread=st.integers(0, 12)
)
def test_tile_values_are_within_the_bounds_of_their_level(dimension, seed, exponent, spread):
    left, right = uneven_vectors(dimension, seed, exponent, spread)
    exact = (left.double() @ right.double().T).float()
    whole = slice(0, 12)
    flags = FlagBuffers(left.device)
    for level in (HalfLevel(left, right, flags), *product_levels(left, right, flags)):
        for axis, scores in ((0, exact), (1, exact.T)):
            values = level.tile(axis, whole, whole).by_query
            for item in range(12):
                low, high = level.bounds(scores[:, item], axis, whole)
                assert (values[:, item] >= low).all()
                assert (values[:, item] <= high).all()
                assert (scores[:, item] >= level.lowest(values[:, item], axis, whole)).all()
            entries = level.find(axis, whole, whole, scores[:, 5], 1.0)
            assert entries is not None
            pairs = set(zip(entries.queries.tolist(), entries.items.tolist(), strict=True))
            assert pairs >= {tuple(pair) for pair in torch.nonzero(scores >= scores[:, 5:6]).tolist()}
            assert len(pairs) == len(entries)
            assert (scores[entries.queries, entries.items] >= entries.lowest).all()
            assert (scores[entries.queries, entries.items] <= entries.highest).all()


def test_settings_of_products_are_restored_when_the_last_pass_ends() -> None:
    """Passes on several GPUs run at the same time, in threads that share these settings."""
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_tf32
    matmul.allow_tf32 = True
    try:
        with full_precision():
            with full_precision():
                assert not matmul.allow_tf32
            assert not matmul.allow_tf32
            assert not matmul.allow_fp16_reduced_precision_reduction
        assert matmul.allow_tf32
        assert matmul.allow_fp16_reduced_precision_reduction
    finally:
        matmul.allow_tf32 = before


@pytest.mark.parametrize(("bits", "kind"), [(11, np.float16), (24, np.float32)])
def test_thresholds_arerounded_down(bits: int, kind: type) -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([
        rng.standard_normal(2000) * 10.0 ** rng.integers(-9, 4, 2000), kind(rng.standard_normal(100)),
        2.0 ** np.arange(-30, 15), -(2.0 ** np.arange(-30, 15)), [0.0, np.inf, -np.inf],
    ])  # fmt: skip
    nearest = values.astype(kind)
    expected = np.where(nearest > values, np.nextafter(nearest, kind(-np.inf)), nearest)
    np.testing.assert_array_equal(rounded_down(torch.from_numpy(values), bits).numpy(), expected.astype(np.float32))


@given(
    dimension=st.integers(1, 300), seed=st.integers(0, 2**32), exponent=st.integers(-30, 15), spread=st.integers(0, 12)
)
def test_the_error_of_rounded_products_is_within_its_bound(dimension, seed, exponent, spread):
    left, right = uneven_vectors(dimension, seed, exponent, spread)
    exact = left.double() @ right.double().T
    for each in (False, True):
        pair = [halves(part, 8, 16, each=each) for part in (left, right)]
        values = [part.values[:12, :dimension].double() / part.units[:, None] for part in pair]
        off = values[0] @ values[1].T - exact
        for axis, (queries, gallery) in enumerate((pair, pair[::-1])):
            slack = product_slack(queries, gallery, dimension)
            assert (off.abs().amax(dim=1 - axis) <= slack).all()
            size = queries.lengths * gallery.lengths.max()
            if each:
                assert (slack <= 4 * 2.0**-11 * size * (1 + dimension / 100) + 2.0**-117).all()
            sums = (left @ right.T).double() - exact
            bound = float32_slack(queries.lengths, gallery.lengths, dimension)
            assert (sums.abs().amax(dim=1 - axis) <= bound).all()


def test_halves_are_padded_and_neither_overflow_nor_vanish() -> None:
    vectors = torch.tensor([[3e30, -1.0], [1e25, 0.0], [0.0, 0.0], [-1e-30, 2e-33]])
    for each in (False, True):
        rounded = halves(vectors, 8, 8, each=each, spare=3)
        assert rounded.values.shape == (11, 8)
        assert torch.isfinite(rounded.values).all()
        assert rounded.values[0, 0] == pytest.approx(float(3e30 * rounded.units[0]), rel=2**-11)
        assert rounded.values[1, 0] != 0
        assert bool(rounded.values[3, 0] != 0) == each
        assert rounded.shared != each
    assert halves(torch.zeros(2, 3), 4, 8, each=True).lengths.tolist() == [0, 0]
    nearly = torch.nn.functional.normalize(torch.randn(1000, 40), dim=1)
    assert halves(nearly, 4, 8, each=True).shared  # lengths just below and just above 1


@pytest.mark.parametrize("kind", ["model", "copies"])
def test_undecided_pairs_are_decided_by_exact_scores(kind: str) -> None:
    images, captions, relevance = vectors_of(kind, 200, 300, 24, seed=3)
    direction = DeviceDirection.of(relevance, torch.from_numpy(images), torch.from_numpy(captions), 5)
    direction.count_exactly(torch.arange(300).repeat_interleave(300), torch.arange(300).repeat(300))
    exact = np.float32((images[:, None].astype(np.float64) * captions[None]).sum(2))
    targets = exact[relevance.rows, relevance.items]
    assert direction.above.tolist() == [
        (exact[row] > score).sum() for row, score in zip(relevance.rows, targets, strict=True)
    ]
    assert direction.tied.tolist() == [
        (exact[row] == score).sum() - 1 for row, score in zip(relevance.rows, targets, strict=True)
    ]


def test_the_best_items_come_by_score_and_then_by_index() -> None:
    scores = torch.tensor([[1.5, -2.0, 0.0, -0.0, 1.5, 1e-45, 3e38], [0.0] * 7])
    assert best_items(scores, 6).tolist() == [[6, 0, 4, 5, 2, 3], [0, 1, 2, 3, 4, 5]]
    assert best_items(scores, 9).shape == (2, 7)


def test_scores_sort_as_their_keys() -> None:
    scores = torch.tensor([-torch.inf, -2.5, -1e-30, 0.0, 1e-30, 7.0, torch.inf])
    keys = orderable(scores)
    assert (keys[1:] > keys[:-1]).all()
    assert exact_scores(torch.ones(1, 2), torch.ones(1, 2), torch.empty(0), torch.empty(0)).shape == (0,)


FUSED = """
import sys
import numpy as np
from crosslens.rank.gpu import block_ranking
from crosslens.rank.gpu import fused_pass
from tests.rank.test_gpu import check, vectors_of

kind, crowded = sys.argv[1:]
fused_pass.TILE = {"height": 64, "width": 64}
fused_pass._PANEL = 64 if kind == "some alike" else 1_024
fused_pass._NOTED, fused_pass._WIDTH = 16, 64
if crowded == "crowded":
    fused_pass._WIDTH, fused_pass._CROWDED = 16, 1.0
    fused_pass._UNROLLED = {"row": (0, 1), "column": (0,)}
block_ranking.SMALLEST = 32
if kind != "zeros":  # else nothing is left for the kernels where all captions are alike
    block_ranking.frequent_vectors = lambda vectors: []
outcomes = []
whole = block_ranking.fused_pass
block_ranking.fused_pass = lambda *given: outcomes.append(whole(*given)) or outcomes[-1]
check(*vectors_of(kind, 150, 210, 40, seed=1), depth=2)
print(len(outcomes[0]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "crowded", "left"),
    [
        ("model", "no", [0]),
        ("copies", "no", [0]),
        ("model", "crowded", [0]),
        ("lengths", "no", [0]),
        ("zeros", "no", [0]),
        ("constant", "no", [1]),
        ("some alike", "no", range(1, 9)),
    ],
)
def test_fused_kernels_in_the_interpreter(kind: str, crowded: str, left: Any) -> None:
    """How many blocks are left to be looked at in tiles: one of all; some of twelve where half of the captions, which
    come first, are alike."""
    pytest.importorskip("triton")
    root = Path(__file__).resolve().parents[2]
    environment = {
        **os.environ,
        "TRITON_INTERPRET": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(root / "src"), str(root), os.environ.get("PYTHONPATH")])),
    }
    done = subprocess.run(
        [sys.executable, "-c", FUSED, kind, crowded], capture_output=True, text=True, env=environment, cwd=root
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) in left


@pytest.mark.slow
def test_neither_numba_nor_polars_is_imported() -> None:
    code = (
        "import sys; sys.modules['numba'] = sys.modules['polars'] = None\n"
        "import numpy as np\n"
        "from crosslens.values import Embeddings, Relevance\n"
        "from crosslens.rank import rank_both, scorer_of\n"
        "vectors = [Embeddings.of(np.eye(4, dtype=np.float32)) for _ in range(2)]\n"
        "sets = [Embeddings.of(np.stack([part.vectors] * 2, axis=1)) for part in vectors]\n"
        "relevance = Relevance.of({str(k): [str(k)] for k in range(4)})\n"
        "for scorer in (scorer_of(*vectors), scorer_of(*sets, 'max')):\n"
        "    rankings = rank_both(scorer, relevance, backend='torch', device='cpu')\n"
        "    print(rankings['i2t'].above.tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split("\n")[:2] == ["[0, 0, 0, 0]"] * 2, done.stderr


def test_vectors_are_scaled_alike_without_numba() -> None:
    from crosslens.rank import scale_to_unit
    from crosslens.rank.scorers import _scale_to_unit

    vectors = np.float32(
        np.random.default_rng(0).standard_normal((200, 77)) * 10.0 ** np.arange(-10, 10).repeat(10)[:, None]
    )
    compiled, plain = np.empty_like(vectors), np.empty_like(vectors)
    assert scale_to_unit(vectors, compiled) == _scale_to_unit(vectors, plain) == -1
    np.testing.assert_array_equal(compiled, plain)
    vectors[[5, 9]] = 0
    assert scale_to_unit(vectors, compiled) == _scale_to_unit(vectors, plain) == 5

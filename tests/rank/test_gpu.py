"""The ranking passes of devices, on the CPU: every rank, tie and list is that of the slow reference."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from crosslens.core import Relevance, SilentProgress
from tests.rank.test_exactness import check as compare, random_relevance

torch = pytest.importorskip("torch")

from crosslens.rank.gpu.exact import exact_scores, orderable  # noqa: E402
from crosslens.rank.gpu.ranking import rank_vectors  # noqa: E402
from crosslens.rank.gpu.rounded import float32_slack, halves, product_slack  # noqa: E402
from crosslens.rank.gpu.side import Side  # noqa: E402
from crosslens.rank.gpu.tiles import exact_tile, tile_pass as passes  # noqa: E402
from crosslens.rank.gpu.tiles.levels import _rounded_down, full_precision, product_levels  # noqa: E402
from crosslens.rank.gpu.tiles.tile_pass import tile_pass  # noqa: E402

KINDS = ("model", "random", "constant", "copies", "zeros", "long")


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
    if half:
        sides = Side.of(relevance, left, right, depth), Side.of(relevance.flip(), right, left, depth)
        tile_pass(*sides, SilentProgress(), half=True, tile=tile)
    else:
        sides = rank_vectors(left, right, [relevance, relevance.flip()], depth, tile, SilentProgress())
    rows, columns = np.divmod(np.arange(len(images) * len(captions)), len(captions))
    scores = (images[rows].astype(np.float64) * captions[columns]).sum(1).astype(np.float32)
    scores = scores.reshape(len(images), len(captions))
    rankings = {name: side.ranking(name) for name, side in zip(("i2t", "t2i"), sides, strict=True)}
    compare(scores, relevance, rankings)


@pytest.mark.parametrize("half", [False, True], ids=["single", "half"])
@pytest.mark.parametrize("tile", [None, 13, 64])
@pytest.mark.parametrize("kind", KINDS)
def test_tiles(kind: str, tile: int | None, half: bool) -> None:
    check(*vectors_of(kind, 40, 130, 24, seed=3), depth=5, tile=tile, half=half)


@settings(max_examples=25)
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
        patch.setattr(exact_tile, "_MANY", undecided)
        check(images, captions, random_relevance(rng, n, m, share), depth, tile=tile, half=half)


@pytest.mark.parametrize(("kind", "level", "dense"), [("model", 0, False), ("random", 0, True), ("constant", 2, True)])
def test_tiles_are_made_no_more_precisely_than_needed(kind: str, level: int, dense: bool, monkeypatch) -> None:
    """Half precision, entry by entry; unrelated vectors: as a whole; all alike: float64."""
    last: list[tuple[int, bool]] = []
    look_at = passes._TilePass.look_at

    def noted(self: Any, *parts: slice) -> None:
        look_at(self, *parts)
        last.append((self.start, self.dense))

    monkeypatch.setattr(passes._TilePass, "look_at", noted)
    check(*vectors_of(kind, 200, 300, 24, seed=3), depth=1, tile=150, half=True)
    assert last[-1] == (level, dense)


def uneven_vectors(dimension: int, seed: int, exponent: int, spread: int) -> list[Any]:
    """Two times twelve vectors whose lengths are around a power of ten, some powers apart."""
    rng = np.random.default_rng(seed)
    size = 10.0 ** (exponent + rng.uniform(-spread / 2, spread / 2, (12, 1)))
    return [torch.from_numpy(np.float32(rng.standard_normal((12, dimension)) * size)) for _ in range(2)]


@settings(max_examples=40)
@given(
    dimension=st.integers(1, 100), seed=st.integers(0, 2**32), exponent=st.integers(-15, 11), spread=st.integers(0, 12)
)
def test_tile_values_are_within_the_bounds_of_their_level(dimension, seed, exponent, spread):
    left, right = uneven_vectors(dimension, seed, exponent, spread)
    exact = (left.double() @ right.double().T).float()
    for level in product_levels(left, right, half=True):
        tile = level.tile(slice(0, 12), slice(0, 12)).float()
        for axis, values, scores in ((0, tile.T, exact.T), (1, tile, exact)):  # queries last
            assert (values >= level.at_least(scores, axis)).all()
            assert (values <= level.at_most(scores, axis)).all()
            assert (scores >= level.surely(values, axis, slice(None))).all()


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
def test_thresholds_are_rounded_down(bits: int, kind: type) -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([
        rng.standard_normal(2000) * 10.0 ** rng.integers(-9, 4, 2000), kind(rng.standard_normal(100)),
        2.0 ** np.arange(-30, 15), -(2.0 ** np.arange(-30, 15)), [0.0, np.inf, -np.inf],
    ])  # fmt: skip
    nearest = values.astype(kind)
    expected = np.where(nearest > values, np.nextafter(nearest, kind(-np.inf)), nearest)
    np.testing.assert_array_equal(_rounded_down(torch.from_numpy(values), bits).numpy(), expected.astype(np.float32))


@settings(max_examples=40)
@given(
    dimension=st.integers(1, 300), seed=st.integers(0, 2**32), exponent=st.integers(-30, 15), spread=st.integers(0, 12)
)
def test_the_error_of_rounded_products_is_within_its_bound(dimension, seed, exponent, spread):
    left, right = uneven_vectors(dimension, seed, exponent, spread)
    exact = left.double() @ right.double().T
    pair = [halves(part, 8, 16) for part in (left, right)]
    values = [part.values[:12, :dimension].double() / part.unit for part in pair]
    off = (values[0] @ values[1].T - exact).abs().max()
    assert off <= product_slack(*pair, dimension)
    size = pair[0].length * pair[1].length
    assert product_slack(*pair, dimension) <= 4 * 2.0**-11 * size * (1 + dimension / 100) + 2.0**-117
    sums = (left @ right.T).double() - exact
    assert sums.abs().max() <= float32_slack(*pair, dimension)


def test_halves_are_padded_and_neither_overflow_nor_vanish() -> None:
    vectors = torch.tensor([[3e30, -1.0], [1e25, 0.0]])
    rounded = halves(vectors, 4, 8)
    assert rounded.values.shape == (4, 8)
    assert torch.isfinite(rounded.values).all()
    assert rounded.values[0, 0] == pytest.approx(3e30 * rounded.unit, rel=2**-11)
    assert rounded.values[1, 0] != 0
    assert halves(torch.zeros(2, 3), 4, 8).length == 0


def test_scores_sort_as_their_keys() -> None:
    scores = torch.tensor([-torch.inf, -2.5, -1e-30, 0.0, 1e-30, 7.0, torch.inf])
    keys = orderable(scores)
    assert (keys[1:] > keys[:-1]).all()
    assert exact_scores(torch.ones(1, 2), torch.ones(1, 2), torch.empty(0), torch.empty(0)).shape == (0,)


FUSED = """
import sys
import numpy as np
from crosslens.rank.gpu import fused_pass, ranking
from tests.rank.test_gpu import check, vectors_of

kind, crowded = sys.argv[1:]
fused_pass.TILE = {"height": 64, "width": 64}
fused_pass._PANEL, fused_pass._NOTED, fused_pass._WIDTH = 1_024, 8, 64
if crowded == "crowded":
    fused_pass._WIDTH, fused_pass._CROWDED = 16, 1.0
    fused_pass._UNROLLED = {"row": (0, 1), "column": (0,)}
ranking.SMALLEST = 32
outcomes = []
whole = ranking.fused_pass
ranking.fused_pass = lambda *sides: outcomes.append(whole(*sides)) or outcomes[-1]
check(*vectors_of(kind, 150, 210, 40, seed=1), depth=2)
print(outcomes)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "crowded", "decided"),
    [("model", "no", True), ("copies", "no", True), ("model", "crowded", True), ("constant", "no", False)],
)
def test_fused_kernels_in_the_interpreter(kind: str, crowded: str, decided: bool) -> None:
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
    assert done.stdout.strip() == f"[{decided}]"


def test_neither_numba_nor_polars_is_imported() -> None:
    code = (
        "import sys; sys.modules['numba'] = sys.modules['polars'] = None\n"
        "import numpy as np\n"
        "from crosslens.core import Embeddings, Relevance\n"
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
    from crosslens.rank.kernels import scale_to_unit
    from crosslens.rank.scorers import _scale_to_unit

    vectors = np.float32(
        np.random.default_rng(0).standard_normal((200, 77)) * 10.0 ** np.arange(-10, 10).repeat(10)[:, None]
    )
    compiled, plain = np.empty_like(vectors), np.empty_like(vectors)
    assert scale_to_unit(vectors, compiled) == _scale_to_unit(vectors, plain) == -1
    np.testing.assert_array_equal(compiled, plain)
    vectors[[5, 9]] = 0
    assert scale_to_unit(vectors, compiled) == _scale_to_unit(vectors, plain) == 5

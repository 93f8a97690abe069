"""PVSE, PCME and DivE: their heads and scores against loops written from the equations, and what must not matter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, strategies as st  # noqa: E402

from crosslens.core import UsageError  # noqa: E402
from crosslens.train import LOSSES, MODELS, BatchOutput, CaptionBatch, ImageBatch, InputShape  # noqa: E402
from crosslens.train.models.one_to_many import LocalAttention, match_log_odds, slot_weights, smooth_chamfer  # noqa: E402
from crosslens.train.models.protocol import Parts  # noqa: E402
from tests.tables import each_row, rest_slow  # noqa: E402

KINDS = ("pvse", "pcme", "dive")
SHAPE = InputShape(6, 10, (), (4, 5))
WORDS = CaptionBatch(torch.tensor([[2, 3, 4, 0, 0], [5, 6, 7, 8, 9], [2, 0, 0, 0, 0]]), torch.tensor([3, 5, 1]))


def model(kind: str, shape: InputShape = SHAPE, **options: Any) -> Any:
    torch.manual_seed(0)
    return MODELS[kind].value(shape, **{"dimension": 8, "word_dimension": 7, **options}).double().eval()


def images(count: int = 3, seed: int = 0, *, vectors: bool = True) -> ImageBatch:
    stream = torch.Generator().manual_seed(seed)
    regions = torch.randn(count, 4, 5, generator=stream, dtype=torch.float64)
    return ImageBatch(torch.randn(count, 6, generator=stream, dtype=torch.float64) if vectors else None, regions)


def unit(*shape: int, seed: int = 0) -> Any:
    vectors = torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))
    return torch.nn.functional.normalize(vectors, dim=-1)


def array(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach())


# Heads


def slow_attention(attention: Any, local: np.ndarray, count: int) -> np.ndarray:
    """One item of ``count`` features: a softmax over them for every head, as loops."""
    hidden, heads = array(attention.hidden.weight), array(attention.heads.weight)
    logits = [[float(head @ np.tanh(hidden @ local[t])) for t in range(count)] for head in heads]
    out = []
    for row in logits:
        total = sum(math.exp(value) for value in row)
        out.append(sum(math.exp(value) / total * local[t] for t, value in enumerate(row)))
    return np.array(out)


def test_attention_equals_loops_and_leaves_padding_out() -> None:
    torch.manual_seed(0)
    attention = LocalAttention(5, 3).double()
    local = torch.randn(2, 4, 5, dtype=torch.float64)
    padding = torch.tensor([[False, False, True, True], [False] * 4])
    result = array(attention(Parts(local[:, 0], local, padding)))
    for item, count in enumerate((2, 4)):
        assert np.allclose(result[item], slow_attention(attention, array(local[item]), count))


def test_a_pvse_vector_is_the_normed_sum_of_global_vector_and_attention() -> None:
    built, batch = model("pvse", k=3), images()
    encoded, parts = built.encode_images(batch), built.parts.images(batch)
    weight, bias = array(built.image.out.weight), array(built.image.out.bias)
    for item in range(3):
        attended = slow_attention(built.image.attention, array(parts.local[item]), 4)
        for head in range(3):
            residual = 1 / (1 + np.exp(-(weight @ attended[head] + bias)))
            total = array(parts.vector[item]) + residual
            normed = (total - total.mean()) / np.sqrt(total.var() + 1e-5)
            assert np.allclose(array(encoded.residuals[item, head]), residual)
            assert np.allclose(array(encoded.vectors[item, head]), normed / np.linalg.norm(normed))


def test_slots_share_out_every_feature_and_average_what_they_get() -> None:
    stream = torch.Generator().manual_seed(1)
    queries, keys = torch.randn(2, 3, 6, generator=stream), torch.randn(2, 4, 6, generator=stream)
    padding = torch.tensor([[False, False, False, True], [False] * 4])
    weights = slot_weights(queries, keys, padding)
    for item, count in enumerate((3, 4)):
        shares = np.zeros((3, 4))
        for t in range(count):
            powers = [math.exp(float(queries[item, slot] @ keys[item, t])) for slot in range(3)]
            shares[:, t] = [power / sum(powers) for power in powers]
        assert np.allclose(array(weights[item]), shares / shares.sum(axis=1, keepdims=True), atol=1e-5)


def test_more_rounds_of_slot_attention_repeat_the_same_step() -> None:
    one_round, two_rounds = (model("dive", iterations=count) for count in (1, 2))
    two_rounds.load_state_dict(one_round.state_dict())  # the same weights serve every round
    slots, parts = one_round.image.slots, one_round.parts.images(images())
    features = slots.local(parts.local)
    state = slots.initial.expand(3, -1, -1)
    for _ in range(2):
        queries = slots.query(slots.before_attention(state)) / math.sqrt(8)
        state = state + slots.out(slot_weights(queries, slots.key(features), None) @ slots.value(features))
        state = state + slots.network(slots.before_network(state))
    assert torch.allclose(two_rounds.encode_images(images()).residuals, slots.last(state))


@pytest.mark.parametrize("kind", ["pvse", "dive"])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_sets_have_k_unit_vectors(kind: str, k: int) -> None:
    built = model(kind, k=k)
    for encoded in (built.encode_images(images()), built.encode_captions(WORDS)):
        assert encoded.vectors.shape == encoded.residuals.shape == (3, k, 8)
        assert torch.allclose(encoded.vectors.norm(dim=-1), torch.ones(3, k, dtype=torch.float64))


# Scores


def test_pvse_scores_are_the_highest_cosines() -> None:
    built = model("pvse", k=3)
    encoded, captions = built.encode_images(images()), built.encode_captions(WORDS)
    scores = array(built.scores(encoded, captions))
    for i in range(3):
        for j in range(3):
            cosines = [x @ y for x in array(encoded.vectors[i]) for y in array(captions.vectors[j])]
            assert scores[i, j] == pytest.approx(max(cosines))


def test_pvse_with_one_vector_is_the_plain_model() -> None:
    built = model("pvse", k=1)
    encoded, captions = built.encode_images(images()), built.encode_captions(WORDS)
    scores, cosines = built.scores(encoded, captions), encoded.vectors[:, 0] @ captions.vectors[:, 0].T
    assert torch.equal(scores, cosines)
    for kind in ("triplet", "infonce", "siglip"):
        losses = [
            LOSSES[kind].value()(BatchOutput(s, torch.eye(3, dtype=torch.bool), encoded, captions, None, None))
            for s in (scores, cosines)
        ]
        assert torch.equal(*losses)
        of_scores, of_cosines = (
            torch.autograd.grad(loss, built.image.out.weight, retain_graph=True)[0] for loss in losses
        )
        assert torch.equal(of_scores, of_cosines)


def chamfer(cosines: np.ndarray) -> float:
    """Of a K×L table: the mean of the rows' highest entries and the mean of the columns', averaged."""
    return float(cosines.max(axis=1).mean() + cosines.max(axis=0).mean()) / 2


def slow_smooth_chamfer(cosines: np.ndarray, alpha: float) -> float:
    rows = sum(math.log(sum(math.exp(alpha * c) for c in row)) for row in cosines) / (2 * alpha * len(cosines))
    columns = sum(math.log(sum(math.exp(alpha * c) for c in row)) for row in cosines.T)
    return rows + columns / (2 * alpha * len(cosines.T))


@given(st.integers(1, 5), st.integers(1, 5), st.floats(0.5, 200), st.integers(0, 10**6))
def test_smooth_chamfer_equals_loops_and_is_near_the_chamfer_similarity(
    k: int, count: int, alpha: float, seed: int
) -> None:
    cosines = np.random.default_rng(seed).uniform(-1, 1, (2, k, 3, count))
    result = array(smooth_chamfer(torch.from_numpy(cosines), alpha))
    for i in range(2):
        for j in range(3):
            table = cosines[i, :, j]
            assert result[i, j] == pytest.approx(slow_smooth_chamfer(table, alpha), abs=1e-9)
            above = result[i, j] - chamfer(table)
            assert -1e-9 <= above <= (math.log(k) + math.log(count)) / (2 * alpha) + 1e-9


def test_smooth_chamfer_tends_to_the_chamfer_similarity_and_not_to_the_highest_cosine() -> None:
    cosines = np.array([[0.9, 0.1], [0.2, 0.3]])
    tensor = torch.from_numpy(cosines)[None, :, None, :]
    gaps = [float(smooth_chamfer(tensor, alpha)) - 0.6 for alpha in (1.0, 4.0, 16.0, 64.0, 1024.0)]
    assert chamfer(cosines) == pytest.approx(((0.9 + 0.3) / 2 + (0.9 + 0.3) / 2) / 2) == pytest.approx(0.6)
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] == pytest.approx(0, abs=1e-12)


def test_dive_with_one_slot_scores_cosines() -> None:
    built = model("dive", k=1)
    encoded, captions = built.encode_images(images()), built.encode_captions(WORDS)
    cosines = encoded.vectors[:, 0] @ captions.vectors[:, 0].T
    assert torch.allclose(built.scores(encoded, captions), cosines)


def test_pcme_scores_are_log_odds_of_the_mean_match_probability() -> None:
    built = model("pcme", samples=3)
    encoded, captions = built.encode_images(images()), built.encode_captions(WORDS)
    scores = array(built.scores(encoded, captions))
    for i in range(3):
        for j in range(3):
            pairs = [(x, y) for x in array(encoded.samples[i]) for y in array(captions.samples[j])]
            distances = [np.linalg.norm(x - y) for x, y in pairs]
            p = sum(1 / (1 + math.exp(-(15 - 15 * distance))) for distance in distances) / 9
            assert scores[i, j] == pytest.approx(math.log(p / (1 - p)))


def test_pcme_samples_have_the_mean_and_the_variance_they_say() -> None:
    built = model("pcme", samples=20_000).train()
    torch.manual_seed(1)
    encoded = built.encode_captions(WORDS)
    assert torch.allclose(encoded.samples.mean(dim=1), encoded.mean, atol=5e-3)
    assert torch.allclose(encoded.samples.var(dim=1), encoded.log_variance.exp(), rtol=0.05)
    assert torch.allclose(encoded.mean.norm(dim=1), torch.ones(3, dtype=torch.float64))
    assert not torch.equal(built.encode_captions(WORDS).samples, encoded.samples), "drawn anew in training"
    built.eval()
    assert torch.equal(built.encode_captions(WORDS).samples, built.encode_captions(WORDS).samples)


@given(st.integers(0, 10**6), st.floats(0.1, 100), st.floats(-50, 50))
def test_pcme_without_variance_gives_the_order_of_the_cosine(seed: int, scale: float, shift: float) -> None:
    means, others = unit(6, 5, seed=seed), unit(20, 5, seed=seed + 1)
    samples, other_samples = means[:, None].expand(-1, 7, -1), others[:, None].expand(-1, 7, -1)
    scores = match_log_odds(samples, other_samples, torch.tensor(scale), torch.tensor(shift))
    cosines = means @ others.T
    assert torch.equal(scores.argsort(dim=1), cosines.argsort(dim=1))
    assert torch.allclose(scores, shift - scale * (2 - 2 * cosines).sqrt(), atol=1e-6)


def test_probabilities_that_round_to_one_or_zero_have_an_order_and_a_gradient() -> None:
    captions = torch.tensor([[0.0], [0.1], [50.0], [60.0]])[:, None]
    image = torch.zeros(1, 1, 1, requires_grad=True)
    scores = match_log_odds(image + 0.01, captions, torch.tensor(15.0), torch.tensor(90.0))[0]
    assert (scores.diff() < 0).all()
    assert torch.isfinite(scores).all()
    assert torch.isfinite(torch.autograd.grad(scores.sum(), image)[0]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [{"text": "gru"}, {"text": "gru", "both": True}, {"text": "transformer"}])
def test_padding_does_not_matter(kind: str, text: dict[str, Any]) -> None:
    built = model(kind, **text)
    together = built.encode_captions(WORDS)
    for row, length in enumerate((3, 5, 1)):
        alone = built.encode_captions(CaptionBatch(WORDS.words[row : row + 1, :length], torch.tensor([length])))
        for whole, part in zip(together, alone, strict=True):
            assert torch.allclose(whole[row], part[0], atol=1e-6)
    assert not torch.allclose(together[0][0], together[0][1], atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_score_as_the_whole(kind: str) -> None:
    built = model(kind)
    encoded, captions = built.encode_images(images(5)), built.encode_captions(WORDS)
    whole = built.scores(encoded, captions)
    batch = images(5)
    for rows in (slice(0, 2), slice(2, 5)):
        part = built.encode_images(ImageBatch(batch.vectors[rows], batch.regions[rows]))
        for columns in (slice(0, 1), slice(1, 3)):
            part_of_captions = built.encode_captions(CaptionBatch(WORDS.words[columns], WORDS.lengths[columns]))
            assert torch.allclose(built.scores(part, part_of_captions), whole[rows, columns], atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pair_takes_no_more_memory_than_it_says(kind: str) -> None:
    from torch.profiler import ProfilerActivity, profile

    built, shapes = model(kind), {"pcme": ((4,), (4,), (7, 4))}.get(kind, ((4, 4), (4, 4)))
    encoded = [tuple(torch.rand(count, *shape) for shape in shapes) for count in (40, 50)]
    with torch.inference_mode(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as measured:
        built.float().scores(*encoded)
    events = measured.profiler.kineto_results.events()
    changes = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]")
    most = np.cumsum([change for _, change in changes]).max() / 4
    promised_bytes = 40 * 50 * built.numbers_per_pair(*encoded)
    assert promised_bytes / 2 < most <= promised_bytes


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_global_feature_regions_are_averaged(kind: str) -> None:
    built = model(kind, InputShape(0, 10, (), (4, 5)))
    batch = images(vectors=False)
    with_mean = built.encode_images(ImageBatch(batch.regions.mean(dim=1), batch.regions))
    assert torch.equal(built.encode_images(batch)[0], with_mean[0])


@pytest.mark.parametrize("kind", KINDS)
def test_both_global_and_local_features_count(kind: str) -> None:
    built, batch, second_batch = model(kind), images(), images(seed=1)
    encoded = built.encode_images(batch)[0]
    assert not torch.allclose(
        built.encode_images(ImageBatch(second_batch.vectors, batch.regions))[0], encoded, atol=1e-3
    )
    assert not torch.allclose(
        built.encode_images(ImageBatch(batch.vectors, second_batch.regions))[0], encoded, atol=1e-4
    )


@pytest.mark.parametrize("kind", rest_slow(KINDS))
def test_gradients_of_scores_are_right(kind: str) -> None:
    built = model(kind, dimension=4, word_dimension=3)

    def scores(vectors: Any, regions: Any) -> Any:
        return built.scores(built.encode_images(ImageBatch(vectors, regions)), built.encode_captions(WORDS))

    batch = images()
    assert torch.autograd.gradcheck(scores, (batch.vectors.requires_grad_(), batch.regions.requires_grad_()))


@pytest.mark.parametrize("kind", KINDS)
def test_every_weight_learns(kind: str) -> None:
    built = model(kind, dropout=0.1).train()
    scores = built.scores(built.encode_images(images()), built.encode_captions(WORDS))
    scores.diagonal().sum().backward()
    assert all(parameter.grad is not None for parameter in built.parameters())


# Mistakes


@each_row(
    ("kind", "options", "message"),
    [
        ("pvse", {"k": 0}, "k is 0.*k must be at least 1"),
        ("dive", {"k": -1}, "k must be at least 1"),
        ("dive", {"iterations": 0}, "iterations must be at least 1"),
        ("dive", {"alpha": 0.0}, "alpha must be above 0"),
        ("dive", {"alpha": math.nan}, "alpha must be above 0"),
        ("pcme", {"samples": 0}, "samples must be at least 1"),
        ("pcme", {"scale": -1.0}, "scale must be above 0"),
        *((kind, {"text": "sentence"}, "needs a vector per word.*choose gru or transformer") for kind in KINDS),
        *((kind, {"text": "lstm"}, "choose gru") for kind in KINDS),
        *((kind, {"dropout": 1.0}, "dropout must be") for kind in KINDS),
        *((kind, {"dimension": 0}, "dimension must be at least 1") for kind in KINDS),
    ],
)  # fmt: skip
def test_wrong_settings_are_named(kind: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=f"(?s){message}"):
        model(kind, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_data_without_local_features_are_refused(kind: str) -> None:
    with pytest.raises(UsageError, match=r"(?s)the data have no local features.*images × regions × dimension"):
        model(kind, InputShape(6, 10))

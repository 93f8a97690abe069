"""MMD, diversity, soft contrastive and VIB: loops from the equations, batches worked by hand, gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from crosslens.core import UsageError  # noqa: E402
from crosslens.train import LOSSES, BatchOutput  # noqa: E402
from crosslens.train.models.protocol import EmbeddingSet, Gaussian  # noqa: E402
from tests.tables import each_row  # noqa: E402


def batch(images: Any, captions: Any, scores: Any = None, image_of: list[int] | None = None) -> BatchOutput:
    of_image = torch.tensor(image_of if image_of is not None else [0, 1, 2])
    return BatchOutput(scores, of_image[:, None] == of_image[None, :], images, captions, None, None)  # type: ignore[arg-type]


def tensor(values: Any) -> Any:
    return torch.as_tensor(np.asarray(values), dtype=torch.float64)


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def sets(residuals: Any) -> EmbeddingSet:
    return EmbeddingSet(torch.nn.functional.normalize(tensor(residuals), dim=-1), tensor(residuals))


def gaussian(mean: Any, log_variance: Any) -> Gaussian:
    return Gaussian(tensor(mean), tensor(log_variance), tensor(mean)[:, None])


# MMD


def slow_mmd(images: np.ndarray, captions: np.ndarray, gamma: float) -> float:
    def mean(first: np.ndarray, second: np.ndarray) -> float:
        return float(np.mean([[math.exp(-gamma * np.linalg.norm(x - y)) for y in second] for x in first]))

    return mean(images, images) - 2 * mean(images, captions) + mean(captions, captions)


@pytest.mark.parametrize(("gamma", "used"), [(0.0, 1 / 4), (0.5, 0.5)])
@pytest.mark.parametrize("k", [1, 3])
def test_mmd_equals_loops(gamma: float, used: float, k: int) -> None:
    images, captions = sets(drawn(3, k, 4)), sets(drawn(3, k, 4, seed=1))
    flat = [np.asarray(item.vectors).reshape(-1, 4) for item in (images, captions)]
    loss = LOSSES["mmd"].value(gamma=gamma)
    assert float(loss(batch(images, captions))) == pytest.approx(slow_mmd(flat[0], flat[1], used))
    plain = loss(batch(tensor(flat[0]), tensor(flat[1])))
    assert float(plain) == pytest.approx(slow_mmd(flat[0], flat[1], used)), "one vector per item"


def test_mmd_of_three_pairs_by_hand() -> None:
    images, captions = tensor([[0.0], [0.0], [1.0]]), tensor([[1.0], [1.0], [0.0]])
    # distances: within images 4 of 9 are 1, within captions 4 of 9, between them 5 of 9; the others are 0
    near = math.exp(-0.5)
    expected = (5 + 4 * near) / 9 - 2 * (4 + 5 * near) / 9 + (5 + 4 * near) / 9
    assert float(LOSSES["mmd"].value(gamma=0.5)(batch(images, captions))) == pytest.approx(expected)
    assert float(LOSSES["mmd"].value()(batch(images, images.flip(0)))) == pytest.approx(0), "the same vectors"


def test_mmd_of_many_float_vectors_stays_accurate() -> None:
    """More than 25 vectors are compared through a matrix product."""
    images, captions = (
        torch.nn.functional.normalize(torch.from_numpy(drawn(64, 2, 32, seed=seed)).float(), dim=-1) for seed in (0, 1)
    )
    images[1] = images[0]  # an image may be twice in a batch
    images.requires_grad_()
    loss = LOSSES["mmd"].value(gamma=0.5)(batch(images, captions))
    flat = [array.detach().double().numpy().reshape(-1, 32) for array in (images, captions)]
    assert float(loss.detach()) == pytest.approx(slow_mmd(flat[0], flat[1], 0.5), abs=1e-5)
    exact = tensor(images.detach()).requires_grad_()
    LOSSES["mmd"].value(gamma=0.5)(batch(exact, tensor(captions))).backward()
    loss.backward()
    assert torch.allclose(images.grad.double(), exact.grad, atol=1e-6)


# Diversity


def slow_diversity(residuals: np.ndarray, form: str, t: float) -> float:
    values = []
    for item in residuals:
        rows = [row / np.linalg.norm(row) for row in item]
        pairs = [(a, b) for a in range(len(rows)) for b in range(len(rows)) if a != b]
        if form == "gram":
            values.append(math.sqrt(sum(float(rows[a] @ rows[b]) ** 2 for a, b in pairs)) / len(rows) ** 2)
        else:
            values.append(sum(math.exp(-t * float(np.sum((rows[a] - rows[b]) ** 2))) for a, b in pairs) / len(pairs))
    return sum(values) / len(values)


@pytest.mark.parametrize("form", ["gram", "gaussian"])
@pytest.mark.parametrize("k", [2, 4, 5])
def test_diversity_equals_loops(form: str, k: int) -> None:
    images, captions = drawn(3, k, 6), drawn(3, k, 6, seed=1)
    loss = LOSSES["diversity"].value(form=form, t=1.5)(batch(sets(images), sets(captions)))
    expected = slow_diversity(images, form, 1.5) + slow_diversity(captions, form, 1.5)
    assert float(loss) == pytest.approx(expected)


def test_diversity_of_three_items_by_hand() -> None:
    residuals = [[[3.0, 0.0], [0.0, 2.0]], [[1.0, 0.0], [4.0, 0.0]], [[1.0, 0.0], [-1.0, 0.0]]]  # cosines 0, 1, −1
    both = batch(sets(residuals), sets(residuals))
    gram = (0 + math.sqrt(2) + math.sqrt(2)) / 4 / 3
    assert float(LOSSES["diversity"].value()(both)) == pytest.approx(2 * gram)
    potential = (math.exp(-2 * 2) + math.exp(0) + math.exp(-2 * 4)) / 3
    assert float(LOSSES["diversity"].value(form="gaussian")(both)) == pytest.approx(2 * potential)


@pytest.mark.parametrize("form", ["gram", "gaussian"])
def test_one_vector_is_as_diverse_as_it_can_be(form: str) -> None:
    single = sets(drawn(3, 1, 4))
    assert float(LOSSES["diversity"].value(form=form)(batch(single, single))) == 0


# Soft contrastive, VIB


def test_soft_contrastive_of_three_pairs_by_hand() -> None:
    probabilities = np.array([[0.9, 0.2, 0.1], [0.3, 0.5, 0.4], [0.25, 0.1, 0.8]])
    scores = tensor(np.log(probabilities / (1 - probabilities)))
    item = gaussian(drawn(3, 2), drawn(3, 2))
    loss = float(LOSSES["pcme"].value()(batch(item, item, scores)))
    kept = [0.9, 0.8, 0.9, 0.7, 0.5, 0.6, 0.75, 0.9, 0.8]
    assert loss == pytest.approx(-sum(math.log(p) for p in kept))
    same_image = float(LOSSES["pcme"].value()(batch(item, item, scores, image_of=[4, 4, 5])))
    kept[1], kept[3] = 0.2, 0.3
    assert same_image == pytest.approx(-sum(math.log(p) for p in kept)), "other captions of the image match"


def test_vib_equals_loops_and_is_0_for_the_standard_normal() -> None:
    means, log_variances = drawn(2, 3, 4), drawn(2, 3, 4, seed=1)
    expected = 0.0
    for mean, log_variance in zip(means.ravel(), log_variances.ravel(), strict=True):
        expected += 0.5 * (mean**2 + math.exp(log_variance) - 1 - log_variance)
    pair = batch(gaussian(means[0], log_variances[0]), gaussian(means[1], log_variances[1]))
    assert float(LOSSES["vib"].value()(pair)) == pytest.approx(expected)
    standard = gaussian(np.zeros((3, 2)), np.zeros((3, 2)))
    assert float(LOSSES["vib"].value()(batch(standard, standard))) == 0


def test_vib_equals_the_divergence_of_torch() -> None:
    mean, log_variance = tensor(drawn(3, 4)), tensor(drawn(3, 4, seed=1))
    normal = torch.distributions.Normal
    expected = torch.distributions.kl_divergence(normal(mean, (log_variance / 2).exp()), normal(0.0, 1.0)).sum()
    item = gaussian(mean, log_variance)
    assert float(LOSSES["vib"].value()(batch(item, item))) == pytest.approx(float(2 * expected))


# Gradients


@pytest.mark.parametrize(
    ("kind", "options"),
    [("mmd", {}), ("mmd", {"gamma": 0.5}), ("diversity", {}), ("diversity", {"form": "gaussian"}), ("vib", {})],
)
def test_gradients_of_losses_on_encodings_are_right(kind: str, options: dict[str, Any]) -> None:
    loss = LOSSES[kind].value(**options)

    def value(*parts: Any) -> Any:
        if kind == "vib":
            means, log_variances = (part[:, 0] for part in parts)
            return loss(batch(Gaussian(means, log_variances, parts[0]), Gaussian(log_variances, means, parts[1])))
        return loss(batch(EmbeddingSet(parts[0], parts[0]), EmbeddingSet(parts[1], parts[1])))

    inputs = tuple(tensor(drawn(3, 2, 4, seed=seed)).requires_grad_() for seed in (0, 1))
    assert torch.autograd.gradcheck(value, inputs)


def test_gradients_of_the_soft_contrastive_loss_are_right() -> None:
    item = gaussian(drawn(3, 2), drawn(3, 2))
    loss = LOSSES["pcme"].value()
    scores = tensor(drawn(3, 3)).requires_grad_()
    assert torch.autograd.gradcheck(lambda value: loss(batch(item, item, value)), (scores,))


# Mistakes


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("mmd", {"gamma": -1.0}, "gamma must be at least 0"),
        ("mmd", {"gamma": math.nan}, "gamma must be at least 0"),
        ("diversity", {"form": "gramm"}, "choose gram or gaussian"),
        ("diversity", {"t": 0.0}, "t must be above 0"),
    ],
)
def test_wrong_settings_are_named(kind: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LOSSES[kind].value(**options)


@each_row(
    ("kind", "message"),
    [
        ("diversity", "(?s)needs a model with several vectors per item.*pvse or dive"),
        ("pcme", "(?s)the loss pcme needs a model with a variance per item.*the model pcme"),
        ("vib", "the loss vib needs a model with a variance per item"),
    ],
)
@each_row("shapes", [((3, 4),), ((3, 2, 4), (3, 4)), ((3, 2, 4), (3,)), ((3, 4), (3, 2, 4), (3, 4))])
def test_losses_that_need_another_model_say_so(kind: str, message: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    parts = tuple(tensor(drawn(*shape)) for shape in shapes)
    encoding = parts if len(parts) > 1 else parts[0]
    with pytest.raises(UsageError, match=message):
        LOSSES[kind].value()(batch(encoding, encoding, tensor(drawn(3, 3))))


def test_encodings_may_be_plain_tuples() -> None:
    """As they are where the shares of several processes are put together."""
    item, several = gaussian(drawn(3, 4), drawn(3, 4, seed=1)), sets(drawn(3, 2, 4))
    scores = tensor(drawn(3, 3))
    for kind, encoding in (("pcme", item), ("vib", item), ("mmd", item), ("mmd", several), ("diversity", several)):
        loss = LOSSES[kind].value()
        plain = tuple(encoding)
        assert torch.equal(loss(batch(encoding, encoding, scores)), loss(batch(plain, plain, scores)))

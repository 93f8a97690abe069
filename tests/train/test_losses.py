"""Losses against plain loops written from their equations, against hand-worked batches, and their gradients."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from crosslens.core import UsageError  # noqa: E402
from crosslens.train import LOSSES, BatchOutput, build_loss  # noqa: E402
from crosslens.train.processes import Group  # noqa: E402


def batch(scores: Any, *, image_of: list[int] | None = None, phi: Any = None, seed: int = 0) -> BatchOutput:
    scores = torch.as_tensor(scores, dtype=torch.float64) if not torch.is_tensor(scores) else scores
    of_image = torch.tensor(image_of if image_of is not None else list(range(len(scores))))
    table = torch.as_tensor(np.asarray(phi if phi is not None else np.zeros(scores.shape)), dtype=torch.float64)
    return BatchOutput(
        scores, of_image[:, None] == of_image[None, :], None, None, lambda rows, columns: table[rows, columns],
        torch.Generator().manual_seed(seed),
    )  # fmt: skip


SCORES = [[0.9, 0.8, 0.1], [0.3, 0.6, 0.5], [0.2, 0.7, 0.4]]
"""Three pairs. Hinges with margin 0.2, worked by hand:
images: row 0: [.2−.9+.8]=.1, 0; row 1: 0, [.2−.6+.5]=.1; row 2: 0, [.2−.4+.7]=.5
captions: column 0: 0, 0; column 1: [.2−.6+.8]=.4, [.2−.6+.7]=.3; column 2: 0, [.2−.4+.5]=.3"""


def test_triplet_of_three_pairs_by_hand() -> None:
    assert float(LOSSES["triplet"].value(negatives="sum")(batch(SCORES))) == pytest.approx(
        0.1 + 0.1 + 0.5 + 0.4 + 0.3 + 0.3
    )
    assert float(LOSSES["triplet"].value(negatives="hardest")(batch(SCORES))) == pytest.approx(
        0.1 + 0.1 + 0.5 + 0.4 + 0.3
    )


def test_other_captions_of_the_same_image_are_no_negatives() -> None:
    scores = [[0.5, 0.9, 0.0], [0.9, 0.5, 0.0], [0.0, 0.0, 0.5]]
    assert float(LOSSES["triplet"].value()(batch(scores, image_of=[7, 7, 8]))) == 0
    assert float(LOSSES["triplet"].value()(batch(scores))) > 0


def slow_adaptive(scores: list[list[float]], phi: list[list[float]], tau: float, sampling: str) -> float:
    """Equation 7 of FIVE with the closest or the furthest negative, as loops."""
    count, total = len(scores), 0.0
    choice = max if sampling == "hard" else min
    for i in range(count):
        others = [j for j in range(count) if j != i]
        caption = choice(others, key=lambda j: scores[i][j])
        image = choice(others, key=lambda j: scores[j][i])
        margin = min(1.0, (phi[i][i] - phi[i][caption]) / tau)
        total += max(0.0, margin - scores[i][i] + scores[i][caption])
        margin = min(1.0, (phi[i][i] - phi[i][image]) / tau)
        total += max(0.0, margin - scores[i][i] + scores[image][i])
    return total


@pytest.mark.parametrize("sampling", ["hard", "soft"])
@pytest.mark.parametrize("tau", [3.0, 5.0, 10.0])
def test_adaptive_margins_equal_the_equation(sampling: str, tau: float) -> None:
    stream = np.random.default_rng(3)
    for _ in range(30):
        scores, phi = stream.uniform(-1, 1, (6, 6)), stream.uniform(0, 9, (6, 6))
        loss = LOSSES["sam"].value(sampling=sampling, tau=tau)
        expected = slow_adaptive(scores.tolist(), phi.tolist(), tau, sampling)
        assert float(loss(batch(scores, phi=phi))) == pytest.approx(expected)


def test_random_negatives_are_never_matches_and_depend_on_the_seed_alone() -> None:
    scores = np.full((4, 4), -1.0)
    np.fill_diagonal(scores, 1.0)
    scores[0, 1] = scores[1, 0] = 1.0  # two captions of one image: a loss above 0 would mean that they were taken
    phi = np.where(scores > 0, 3.0, 0.0)
    loss = LOSSES["sam"].value()
    values = [float(loss(batch(scores, image_of=[5, 5, 6, 7], phi=phi, seed=seed))) for seed in range(20)]
    assert values == [0.0] * 20
    drawn = np.random.default_rng(0).uniform(-1, 1, (8, 8))
    assert float(loss(batch(drawn, seed=1))) == float(loss(batch(drawn, seed=1)))
    assert len({float(loss(batch(drawn, seed=seed))) for seed in range(10)}) > 1


def test_constant_similarity_is_the_fixed_margin_with_the_same_negatives() -> None:
    scores = np.random.default_rng(1).uniform(-1, 1, (5, 5))
    phi = np.full((5, 5), 0.0)
    np.fill_diagonal(phi, 0.6)  # (0.6 − 0) ÷ 3 = 0.2 for every negative
    adaptive = LOSSES["sam"].value(sampling="hard", tau=3.0)(batch(scores, phi=phi))
    assert float(adaptive) == pytest.approx(float(LOSSES["triplet"].value(margin=0.2)(batch(scores))))


@pytest.mark.parametrize("kind", ["triplet", "sam"])
@pytest.mark.parametrize("sampling", ["random", "hard", "soft"])
def test_a_pair_without_negatives_has_no_loss(kind: str, sampling: str) -> None:
    settings = {"sampling": sampling} if kind == "sam" else {}
    phi = [[3.0, 0.0], [0.0, 3.0]]
    loss = LOSSES[kind].value(**settings)
    assert float(loss(batch([[0.1, 0.9], [0.9, 0.1]], image_of=[4, 4], phi=phi))) == 0


def test_margins_are_at_most_one() -> None:
    phi = np.diag([30.0, 30.0])
    assert float(LOSSES["sam"].value()(batch([[0.0, 0.0], [0.0, 0.0]], phi=phi))) == pytest.approx(4.0)


def test_infonce_equals_loops() -> None:
    stream = np.random.default_rng(2)
    scores, image_of = stream.uniform(-1, 1, (5, 5)), [0, 1, 1, 2, 3]
    total = 0.0
    for matrix in (scores, scores.T):
        for i in range(5):
            kept = [j for j in range(5) if j == i or image_of[j] != image_of[i]]
            total -= matrix[i, i] / 0.1 - math.log(sum(math.exp(matrix[i, j] / 0.1) for j in kept))
    loss = LOSSES["infonce"].value(temperature=0.1)(batch(scores, image_of=image_of))
    assert float(loss) == pytest.approx(total / 10)


def test_siglip_equals_loops() -> None:
    stream = np.random.default_rng(4)
    scores, image_of = stream.uniform(-1, 1, (4, 4)), [0, 0, 1, 2]
    total = 0.0
    for i in range(4):
        for j in range(4):
            sign = 1 if image_of[i] == image_of[j] else -1
            total += math.log1p(math.exp(-sign * (scores[i, j] / 0.1 - 10.0)))
    assert float(LOSSES["siglip"].value()(batch(scores, image_of=image_of))) == pytest.approx(total / 4)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [("triplet", {}), ("triplet", {"negatives": "sum"}), ("sam", {}), ("sam", {"sampling": "hard"}),
     ("sam", {"sampling": "soft"}), ("infonce", {}), ("siglip", {})],
)  # fmt: skip
def test_gradients_are_right(kind: str, settings: dict[str, Any]) -> None:
    stream = np.random.default_rng(9)
    phi = stream.uniform(0, 5, (5, 5))
    scores = torch.tensor(stream.uniform(-1, 1, (5, 5)), requires_grad=True)
    loss = LOSSES[kind].value(**settings)
    assert torch.autograd.gradcheck(lambda value: loss(batch(value, phi=phi)), (scores,))


def test_losses_of_a_recipe_are_added_by_weight() -> None:
    total, needs_phi = build_loss([{"kind": "triplet"}, {"kind": "sam", "weight": 5.0, "sampling": "hard"}])
    assert needs_phi
    phi = np.random.default_rng(0).uniform(0, 5, (3, 3))
    parts = [LOSSES["triplet"].value()(batch(SCORES)), LOSSES["sam"].value(sampling="hard")(batch(SCORES, phi=phi))]
    assert float(total(batch(SCORES, phi=phi))) == pytest.approx(float(parts[0] + 5 * parts[1]))


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("triplet", {"negatives": "all"}),
        ("sam", {"sampling": "softest"}),
        ("sam", {"tau": 0}),
        ("infonce", {"temperature": 0}),
    ],
)
def test_wrong_settings_are_named(kind: str, settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(settings))):
        LOSSES[kind].value(**settings)


# Learnt temperatures, and targets from the model's own similarities


def encoded(seed: int = 6, count: int = 5) -> tuple[Any, Any]:
    stream = np.random.default_rng(seed)
    rows = [stream.standard_normal((count, 3)) for _ in range(2)]
    return tuple(torch.tensor(part / np.linalg.norm(part, axis=1, keepdims=True)) for part in rows)  # type: ignore[return-value]


def slow_self_targets(images: Any, captions: Any, image_of: list[int], share: float) -> float:
    """The cross-entropy with mixed targets, as loops; temperatures 0.1 and 0.2."""
    count, total = len(images), 0.0
    scores = (images @ captions.T).tolist()
    for i in range(count):
        kept = [j for j in range(count) if j == i or image_of[j] != image_of[i]]
        similarities = {j: float(captions[i] @ captions[j] + images[i] @ images[j]) / 2 / 0.2 for j in kept}
        below = sum(math.exp(value) for value in similarities.values())
        for row in ([scores[i][j] for j in range(count)], [scores[j][i] for j in range(count)]):
            logs = math.log(sum(math.exp(row[j] / 0.1) for j in kept))
            for j in kept:
                target = (1 - share) * (i == j) + share * math.exp(similarities[j]) / below
                total -= target * (row[j] / 0.1 - logs)
    return total / (2 * count)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_self_targets_equal_loops(share: float) -> None:
    images, captions = encoded()
    image_of = [0, 1, 1, 2, 3]
    batch_with_vectors = replace(batch(images @ captions.T, image_of=image_of), images=images, captions=captions)
    loss = LOSSES["infonce"].value(temperature=0.1, self_targets=share, target_temperature=0.2)
    assert float(loss(batch_with_vectors)) == pytest.approx(slow_self_targets(images, captions, image_of, share))


def test_self_targets_of_three_pairs_by_hand() -> None:
    """Unit vectors at right angles: the similarity of a pair with itself is 1, with others 0, so with temperature 1 the
    softmax is e ÷ (e + 2) and 1 ÷ (e + 2) twice; scores and their softmax are the same, and the loss is its entropy."""
    rows = torch.eye(3, dtype=torch.float64)
    batch_with_vectors = replace(batch(rows), images=rows, captions=rows)
    loss = LOSSES["infonce"].value(temperature=1.0, self_targets=1.0, target_temperature=1.0)
    high, low = math.e / (math.e + 2), 1 / (math.e + 2)
    assert float(loss(batch_with_vectors)) == pytest.approx(-high * math.log(high) - 2 * low * math.log(low))


def test_no_gradient_flows_through_the_targets() -> None:
    images, captions = (part.requires_grad_() for part in encoded())
    scores = torch.tensor(np.random.default_rng(1).uniform(-1, 1, (5, 5)), requires_grad=True)
    batch_with_vectors = replace(batch(scores), images=images, captions=captions)
    LOSSES["infonce"].value(self_targets=0.5)(batch_with_vectors).backward()
    assert images.grad is None
    assert captions.grad is None
    assert scores.grad is not None
    assert torch.autograd.gradcheck(
        lambda value: LOSSES["infonce"].value(self_targets=0.5)(replace(batch_with_vectors, scores=value)), (scores,)
    )


def test_self_targets_need_one_vector_each() -> None:
    with pytest.raises(UsageError, match="one vector per image and per caption"):
        LOSSES["infonce"].value(self_targets=0.5)(batch(SCORES))
    with pytest.raises(UsageError, match="self_targets must be from 0 to 1"):
        LOSSES["infonce"].value(self_targets=1.5)


@pytest.mark.parametrize(("kind", "names"), [("infonce", ["temperature"]), ("siglip", ["temperature", "bias"])])
def test_learnt_numbers_begin_at_those_of_the_recipe(kind: str, names: list[str]) -> None:
    fixed, learnt = LOSSES[kind].value(temperature=0.2), LOSSES[kind].value(temperature=0.2, learnt=True)
    assert list(learnt.learnt) == names
    assert not fixed.learnt
    assert float(learnt(batch(SCORES)).detach()) == pytest.approx(float(fixed(batch(SCORES))))
    scores = torch.tensor(SCORES, dtype=torch.float64, requires_grad=True)
    for parameter in learnt.learnt.values():
        parameter.data = parameter.data.double()
    assert torch.autograd.gradcheck(lambda *_: learnt(batch(scores)), (scores, *learnt.learnt.values()))
    learnt.learnt["temperature"].data.fill_(math.log(2))  # twice the factor: half the temperature
    halved = LOSSES[kind].value(temperature=0.1)(batch(SCORES))
    assert float(learnt(batch(SCORES)).detach()) == pytest.approx(float(halved))


def test_a_learnt_temperature_does_not_vanish() -> None:
    learnt = LOSSES["infonce"].value(temperature=0.2, learnt=True)
    learnt.learnt["temperature"].data.fill_(50.0)
    smallest = LOSSES["infonce"].value(temperature=0.01)(batch(SCORES))
    assert float(learnt(batch(SCORES)).detach()) == pytest.approx(float(smallest))


def test_parameters_of_a_recipe_s_losses_have_names_of_their_own() -> None:
    total, _ = build_loss(
        [{"kind": "triplet"}, {"kind": "infonce", "learnt": True}, {"kind": "siglip", "learnt": True}]
    )
    assert list(total.learnt) == ["1_temperature", "2_temperature", "2_bias"]  # type: ignore[attr-defined]


def test_several_processes_add_all_gradients_but_the_loss_s() -> None:
    """Every process computes the whole loss, so each has the whole gradient of what the loss learns."""

    class Doubling(Group):
        def add(self, tensor: Any) -> None:
            tensor.mul_(2)  # a second process with the same gradient

    model = torch.nn.Linear(2, 1, bias=False)
    model.loss = torch.nn.ParameterDict(dict(LOSSES["infonce"].value(learnt=True).learnt))
    (model(torch.ones(1, 2)).sum() + 3 * model.loss["temperature"]).backward()
    Doubling(0, 2).add_gradients(model)
    assert model.weight.grad.tolist() == [[2.0, 2.0]]
    assert float(model.loss["temperature"].grad) == 3.0

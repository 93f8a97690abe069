"""Losses that read φ of a whole batch, and the published code's own: loops, batches worked by hand, gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from crosslens.core import UsageError  # noqa: E402
from crosslens.train import LOSSES, build_loss  # noqa: E402
from tests.tables import each_row  # noqa: E402

from .test_losses import SCORES, batch  # noqa: E402

PHI = [[6.0, 3.0, 0.0], [1.5, 4.5, 3.0], [0.0, 3.0, 9.0]]
"""φ(captions of image i, caption j) of the three pairs."""


def scores_and_phi(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    stream = np.random.default_rng(seed)
    return stream.uniform(-1, 1, (count, count)), stream.uniform(0, 9, (count, count))


class TestReleased:
    """The published code's adaptive margins."""

    @staticmethod
    def slow(scores: Any, phi: Any, tau: float, first: Sequence[int], second: Sequence[int]) -> float:
        """The published code's formula with the columns already chosen, as loops."""
        count, total = len(scores), 0.0
        u = [min(1.0, (phi[k][k] - phi[k][second[k]]) / tau) for k in range(count)]
        v = [min(1.0, (phi[k][k] - phi[k][first[k]]) / tau) for k in range(count)]
        for i in range(count):
            total += max(0.0, scores[i][first[i]] - scores[i][i] + u[first[i]])
            total += max(0.0, scores[i][second[i]] - scores[second[i]][second[i]] + v[second[i]])
        return total

    @staticmethod
    def second_of(scores: Any, *, largest: bool) -> tuple[list[int], list[int]]:
        """The second of each row when its differences are sorted, in both matrices."""
        columns = range(len(scores))
        first = [sorted(columns, key=lambda j: scores[i][j] - scores[i][i], reverse=largest)[1] for i in columns]
        second = [sorted(columns, key=lambda j: scores[i][j] - scores[j][j], reverse=largest)[1] for i in columns]
        return first, second

    @pytest.mark.parametrize("sampling", ["hard", "soft"])
    def test_three_pairs_by_hand(self, sampling: str) -> None:
        """Of three differences the second is the same from either end, so `hard` and `soft` agree.

        Differences to the own caption: [0, −.1, −.8], [−.3, 0, −.1], [−.2, .3, 0]: the second are columns 1, 2 and 2.
        Differences to the own image: [0, .2, −.3], [−.6, 0, .1], [−.7, .1, 0]: columns 0, 1 and 2, each pair itself.
        u = (φ − φ of itself) ÷ 3 = 0, 0, 0; v = (6 − 3) ÷ 3 = 1, (4.5 − 3) ÷ 3 = .5, (9 − 9) ÷ 3 = 0.
        First term: −.1 + u(1) < 0; −.1 + u(2) < 0; 0 + u(2) = 0. Second: 0 + v(0) = 1; 0 + v(1) = .5; 0 + v(2) = 0.
        """
        scores = torch.tensor(SCORES, dtype=torch.float64, requires_grad=True)
        value = LOSSES["sam-released"].value(sampling=sampling)(batch(scores, phi=PHI))
        assert float(value.detach()) == pytest.approx(1.5)
        value.backward()
        assert not scores.grad.any(), "pairs compared with themselves teach nothing"

    def test_three_pairs_drawn_by_hand(self) -> None:
        """Columns 1, 2, 0 of the first matrix and 2, 0, 1 of the second: as on the page on adaptive margins."""
        assert self.slow(SCORES, PHI, 3.0, (1, 2, 0), (2, 0, 1)) == pytest.approx(0.9 + 0.9 + 0.8 + 0.7 + 0.4 + 0.6)
        loss = LOSSES["sam-released"].value()
        assert 4.3 in {round(float(loss(batch(SCORES, phi=PHI, seed=seed))), 9) for seed in range(400)}

    def test_two_pairs_by_hand(self) -> None:
        """With two pairs a random negative is the other one: d = e = (1, 0).

        D = [0, −.2], [−.1, 0]; E = [0, .2], [−.5, 0]. u = v = (6 − 3) ÷ 3 = 1 and (4.5 − 1.5) ÷ 3 = 1, for τ = 3.
        Hinges: D(0, 1) + u(1) = .8, D(1, 0) + u(0) = .9; E(0, 1) + v(1) = 1.2, E(1, 0) + v(0) = .5.
        """
        scores, phi = [[0.9, 0.7], [0.4, 0.5]], [[6.0, 3.0], [1.5, 4.5]]
        value = LOSSES["sam-released"].value()(batch(scores, phi=phi))
        assert float(value) == pytest.approx(0.8 + 0.9 + 1.2 + 0.5)

    def test_a_hinge_has_the_margin_of_its_negatives_pair(self) -> None:
        """φ differs by pair: 3 ÷ 3 = 1 and .6 ÷ 3 = .2. Equation 7 would add each to its own row's hinge."""
        scores, phi = [[0.5, 0.5], [0.5, 0.5]], [[3.0, 0.0], [0.0, 0.6]]
        loss = LOSSES["sam-released"].value()
        table = torch.tensor(scores, dtype=torch.float64)
        table[0, 1] = -0.4  # D(0, 1) = E(0, 1) = −.9: with margin .2 of pair 1 no loss; with pair 0's own, .1
        assert float(loss(batch(table, phi=phi))) == pytest.approx(1.0 + 1.0)
        assert float(LOSSES["sam"].value()(batch(table, phi=phi))) == pytest.approx(0.1 + 0.2 + 1.0 + 0.0)

    @pytest.mark.parametrize("sampling", ["hard", "soft"])
    @pytest.mark.parametrize("tau", [3.0, 10.0])
    def test_chosen_columns_equal_loops(self, sampling: str, tau: float) -> None:
        for seed in range(20):
            scores, phi = scores_and_phi(seed, 6)
            columns = self.second_of(scores, largest=sampling == "soft")
            value = LOSSES["sam-released"].value(sampling=sampling, tau=tau)(batch(scores, phi=phi))
            assert float(value) == pytest.approx(self.slow(scores, phi, tau, *columns))

    def test_names_are_the_reverse_of_the_papers(self) -> None:
        """Where every pair's own score is the highest, `soft` takes the closest negative and `hard` a far one."""
        scores, _ = scores_and_phi(5, 6)
        np.fill_diagonal(scores, 2.0)
        soft, hard = (self.second_of(scores, largest=largest)[0] for largest in (True, False))
        for i in range(6):
            order = [j for j in np.argsort(-scores[i]) if j != i]
            assert (soft[i], hard[i]) == (order[0], order[-2])

    def test_random_columns_are_any_but_the_own(self) -> None:
        scores, phi = scores_and_phi(1, 3)
        others = [[j for j in range(3) if j != i] for i in range(3)]
        possible = [
            self.slow(scores, phi, 3.0, first, second)
            for first, second in product(list(product(*others)), list(product(*others)))
        ]
        loss = LOSSES["sam-released"].value()
        drawn = {round(float(loss(batch(scores, phi=phi, seed=seed))), 9) for seed in range(400)}
        assert drawn == {round(value, 9) for value in possible}

    def test_mixed_is_hard_or_random(self) -> None:
        scores, phi = scores_and_phi(2, 5)
        loss, hard = (LOSSES["sam-released"].value(sampling=name) for name in ("mixed", "hard"))
        values = [float(loss(batch(scores, phi=phi, seed=seed))) for seed in range(200)]
        same = sum(value == float(hard(batch(scores, phi=phi))) for value in values)
        assert 70 <= same <= 130
        assert len(set(values)) > 5

    def test_constant_similarity_is_a_fixed_margin_for_the_chosen_columns(self) -> None:
        scores, _ = scores_and_phi(3, 5)
        phi = np.zeros((5, 5))
        np.fill_diagonal(phi, 0.6)
        np.fill_diagonal(scores, 1.5)  # nobody is chosen as its own negative
        first, second = self.second_of(scores, largest=True)
        fixed = sum(max(0.0, 0.2 + scores[i, first[i]] - 1.5) for i in range(5))
        fixed += sum(max(0.0, 0.2 + scores[i, second[i]] - 1.5) for i in range(5))
        assert float(LOSSES["sam-released"].value(sampling="soft")(batch(scores, phi=phi))) == pytest.approx(fixed)

    def test_other_captions_of_the_image_count_as_negatives(self) -> None:
        scores, phi = [[0.5, 0.9], [0.9, 0.5]], [[3.0, 0.0], [0.0, 3.0]]
        same_image = batch(scores, image_of=[4, 4], phi=phi)
        assert float(LOSSES["sam-released"].value()(same_image)) > 0
        assert float(LOSSES["sam"].value()(same_image)) == 0


def test_equation_seven_of_three_pairs_by_hand() -> None:
    """The closest captions are 1, 2, 1 and images 1, 0, 1; the furthest captions 2, 0, 0 and images 2, 2, 0."""
    hard, soft = (LOSSES["sam"].value(sampling=name)(batch(SCORES, phi=PHI)) for name in ("hard", "soft"))
    assert float(hard) == pytest.approx(0.9 + 0.4 + 1.3 + 0.4 + 1.2 + 1.1)
    assert float(soft) == pytest.approx(0.2 + 0.7 + 0.8 + 0.3 + 0.6 + 0.7)


class TestAllNegatives:
    """Adaptive margins against every negative of the batch."""

    @staticmethod
    def slow(scores: Any, phi: Any, tau: float, image_of: Sequence[int]) -> float:
        total = 0.0
        for p, q in product(range(len(scores)), repeat=2):
            if image_of[p] != image_of[q]:
                margin = min(1.0, (phi[p][p] - phi[p][q]) / tau)
                total += max(0.0, margin - scores[p][p] + scores[p][q])
                total += max(0.0, margin - scores[p][p] + scores[q][p])
        return total

    def test_three_pairs_by_hand(self) -> None:
        """Margins (φ − φ⁻) ÷ 3 by rows: [–, 1, 1 (2 at most 1)], [1, –, .5], [1 (3), 1 (2), –].

        Images: row 0: 1 − .9 + .8 = .9, 1 − .9 + .1 = .2; row 1: 1 − .6 + .3 = .7, .5 − .6 + .5 = .4;
        row 2: 1 − .4 + .2 = .8, 1 − .4 + .7 = 1.3. Captions: column 0: 1 − .9 + .3 = .4, 1 − .9 + .2 = .3;
        column 1: 1 − .6 + .8 = 1.2, .5 − .6 + .7 = .6; column 2: 1 − .4 + .1 = .7, 1 − .4 + .5 = 1.1.
        """
        expected = 0.9 + 0.2 + 0.7 + 0.4 + 0.8 + 1.3 + 0.4 + 0.3 + 1.2 + 0.6 + 0.7 + 1.1
        assert float(LOSSES["sam"].value(sampling="all")(batch(SCORES, phi=PHI))) == pytest.approx(expected)

    @pytest.mark.parametrize("image_of", [[0, 1, 2, 3, 4], [0, 0, 1, 2, 2], [7, 7, 7, 7, 7]])
    def test_loops(self, image_of: list[int]) -> None:
        for seed in range(10):
            scores, phi = scores_and_phi(seed, 5)
            value = LOSSES["sam"].value(sampling="all", tau=5.0)(batch(scores, phi=phi, image_of=image_of))
            assert float(value) == pytest.approx(self.slow(scores, phi, 5.0, image_of))

    def test_constant_similarity_is_the_fixed_margin(self) -> None:
        scores, _ = scores_and_phi(4, 6)
        phi = np.diag(np.full(6, 0.6))
        fixed = LOSSES["triplet"].value(margin=0.2, negatives="sum")(batch(scores))
        assert float(LOSSES["sam"].value(sampling="all")(batch(scores, phi=phi))) == pytest.approx(float(fixed))


class TestGraded:
    """InfoNCE with targets from φ."""

    @staticmethod
    def slow(scores: Any, phi: Any, image_of: Sequence[int], settings: tuple[float, float, float]) -> float:
        temperature, target_temperature, share = settings
        count, total = len(scores), 0.0
        for transposed, i in product((False, True), range(count)):
            kept = [j for j in range(count) if j == i or image_of[j] != image_of[i]]
            score = [scores[j][i] if transposed else scores[i][j] for j in kept]
            similar = [phi[j][i] if transposed else phi[i][j] for j in kept]
            log_sum = math.log(sum(math.exp(value / temperature) for value in score))
            weights = [math.exp(value / target_temperature) for value in similar]
            for at, j in enumerate(kept):
                target = (1 - share) * (j == i) + share * weights[at] / sum(weights)
                total -= target * (score[at] / temperature - log_sum)
        return total / (2 * count)

    def test_three_pairs_by_hand(self) -> None:
        """φ is ln of whole numbers, so targets are fractions: [2, 1, 1] ÷ 4 by rows and by columns; scores are ln, too.

        All softmaxes of the scores are [4, 2, 2] ÷ 8 with the match first, so that −log is ln 2 and ln 4 = 2 ln 2. Half
        of the target is the match: .5 + .5 · .5 = .75 for it and .125 for the others: (.75 + 2 · .25) ln 2 = 1.25 ln 2.
        """
        scores = np.log(np.full((3, 3), 2.0) + 2 * np.eye(3))
        phi = np.log(np.ones((3, 3)) + np.eye(3))
        value = LOSSES["graded-infonce"].value(temperature=1.0)(batch(scores, phi=phi))
        assert float(value) == pytest.approx(1.25 * math.log(2))

    @pytest.mark.parametrize("image_of", [[0, 1, 2, 3, 4], [0, 0, 1, 2, 2]])
    @pytest.mark.parametrize("settings", [(0.05, 1.0, 0.5), (0.2, 0.3, 1.0), (1.0, 5.0, 0.1)])
    def test_loops(self, image_of: list[int], settings: tuple[float, float, float]) -> None:
        temperature, target_temperature, share = settings
        loss = LOSSES["graded-infonce"].value(
            temperature=temperature, target_temperature=target_temperature, share=share
        )
        for seed in range(5):
            scores, phi = scores_and_phi(seed, 5)
            expected = self.slow(scores, phi, image_of, settings)
            assert float(loss(batch(scores, phi=phi, image_of=image_of))) == pytest.approx(expected)

    def test_without_a_share_it_is_infonce(self) -> None:
        scores, phi = scores_and_phi(6, 5)
        graded = LOSSES["graded-infonce"].value(share=0.0)(batch(scores, phi=phi, image_of=[0, 0, 1, 2, 3]))
        plain = LOSSES["infonce"].value()(batch(scores, image_of=[0, 0, 1, 2, 3]))
        assert float(graded) == pytest.approx(float(plain))

    def test_one_similarity_for_all_is_label_smoothing(self) -> None:
        scores, _ = scores_and_phi(7, 4)
        table = torch.tensor(scores / 0.05)
        flat = [torch.nn.functional.cross_entropy(part, torch.full((4, 4), 0.25, dtype=torch.float64))
                for part in (table, table.T)]  # fmt: skip
        value = LOSSES["graded-infonce"].value(share=1.0)(batch(scores, phi=np.full((4, 4), 3.0)))
        assert float(value) == pytest.approx(float(sum(flat)) / 2)


LOSSES_WITH_SETTINGS = [
    *(("sam-released", {"sampling": name}) for name in ("random", "hard", "soft", "mixed")),
    ("sam", {"sampling": "all"}),
    ("graded-infonce", {"temperature": 0.3}),
    ("graded-infonce", {"temperature": 0.3, "share": 1.0, "target_temperature": 4.0}),
]


@each_row(("kind", "settings"), LOSSES_WITH_SETTINGS)
@each_row("image_of", [[0, 1, 2, 3, 4], [0, 0, 1, 2, 2]])
def test_gradients_are_right(kind: str, settings: dict[str, Any], image_of: list[int]) -> None:
    values, phi = scores_and_phi(9, 5)
    scores = torch.tensor(values, requires_grad=True)
    loss = LOSSES[kind].value(**settings)
    assert torch.autograd.gradcheck(lambda table: loss(batch(table, phi=phi, image_of=image_of)), (scores,))
    scores.grad = None
    loss(batch(scores, phi=phi, image_of=image_of)).backward()
    assert torch.isfinite(scores.grad).all()


def test_they_ask_for_similarities_once() -> None:
    """All pairs of a batch in one call: a loop over pairs would cost more than the step."""
    for kind, settings in (("sam", {"sampling": "all"}), ("graded-infonce", {})):
        asked: list[int] = []
        values, phi = scores_and_phi(0, 4)
        part = batch(values, phi=phi)

        def counted(rows: Any, columns: Any, inner: Any = part.phi, asked: list[int] = asked) -> Any:
            asked.append(len(rows))
            return inner(rows, columns)

        loss, needs_phi = build_loss([{"kind": kind, **settings}])
        loss(replace(part, phi=counted))
        assert needs_phi
        assert asked == [16]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("sam-released", {"sampling": "all"}),
        ("sam-released", {"tau": -1}),
        ("sam", {"sampling": "mixed"}),
        ("graded-infonce", {"share": 1.1}),
        ("graded-infonce", {"temperature": 0}),
        ("graded-infonce", {"target_temperature": 0}),
    ],
)
def test_wrong_settings_are_named(kind: str, settings: dict[str, Any]) -> None:
    name = next(iter(settings))
    with pytest.raises(UsageError, match=f"^{name} is") as refused:
        LOSSES[kind].value(**settings)
    assert refused.value.fix

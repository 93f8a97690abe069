"""The GRU of the CPU: torch's own numbers and gradients."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence  # noqa: E402

from crosslens.train import CaptionBatch  # noqa: E402
from crosslens.train.models.towers import Recurrence, WordStates, run_gru  # noqa: E402

LENGTHS = [[3, 1, 5, 5, 2], [1, 1], [4]]


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_states_and_gradients_equal_those_of_torch(lengths: list[int]) -> None:
    torch.manual_seed(0)
    model = WordStates(9, 4, 6).double()
    words = torch.zeros(len(lengths), max(lengths), dtype=torch.int64)
    for row, length in enumerate(lengths):
        words[row, :length] = torch.randint(1, 9, (length,))
    counts = torch.tensor(lengths)
    factor = torch.randn(len(lengths), max(lengths), 6, dtype=torch.float64)
    results = []
    for own_cells in (True, False):
        model.zero_grad()
        if own_cells:
            padded = model(CaptionBatch(words, counts))
        else:
            packed = pack_padded_sequence(model.embedding(words), counts, batch_first=True, enforce_sorted=False)
            padded, _ = pad_packed_sequence(model.gru(packed)[0], batch_first=True)
        (padded * factor).sum().backward()
        results.append([padded.detach(), *(parameter.grad.clone() for parameter in model.parameters())])
    for ours, theirs in zip(*results, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-12, rtol=0)


def test_the_gradient_is_the_numerical_one() -> None:
    torch.manual_seed(1)
    inputs, weight, bias = (
        torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((6, 9), (9, 3), (9,))
    )
    assert torch.autograd.gradcheck(lambda *values: Recurrence.apply(*values, [3, 2, 1]), (inputs, weight, bias))


def test_both_directions_are_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosslens.train.models.towers.run_gru", None)
    batch = CaptionBatch(torch.ones(2, 3, dtype=torch.int64), torch.tensor([3, 2]))
    assert WordStates(4, 2, 2, both=True)(batch).shape == (2, 3, 2)
    with pytest.raises(TypeError):
        WordStates(4, 2, 2)(batch)
    assert callable(run_gru)

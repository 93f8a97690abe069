"""Checkpoints: weights, optimiser and history of a step, written whole or not at all, without pickle."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslens.core import CrosslensError, InputError
from crosslens.storage import atomic_file, parse_json, regular_bytes

LOSS = "loss"
"""The part of a model's state that belongs to its loss."""


def trained_state(model: Any) -> dict[str, Any]:
    """The state of a model without the weights that are kept by reference."""
    left_out = _by_reference(model)
    return {name: tensor for name, tensor in model.state_dict().items() if name not in left_out}


def load_trained_state(model: Any, state: Mapping[str, Any]) -> None:
    """Put a state of :func:`trained_state` back; whatever does not fit raises a ``RuntimeError``, as torch does."""
    loaded = {name: tensor for name, tensor in state.items() if hasattr(model, LOSS) or not name.startswith(f"{LOSS}.")}
    missing, unexpected = model.load_state_dict(loaded, strict=False)
    wrong = {*missing, *unexpected} - _by_reference(model)
    if wrong:
        raise RuntimeError(f"{len(wrong)} weights are missing or unknown, such as {min(wrong)}")


def _by_reference(model: Any) -> set[str]:
    return {
        f"{prefix}.{name}" if prefix else name
        for prefix, module in model.named_modules()
        for name in getattr(module, "by_reference", ())
    }


STATE = "state"
MOST_THREADS = 4096
_PARTS = ("weights", "optimizer", "best")


@dataclass(frozen=True)
class Checkpoint:
    """Where a training stands: after ``step`` steps."""

    step: int
    weights: Mapping[str, Any]
    optimizer: Mapping[str, Any]
    history: list[dict[str, Any]]
    """A row per validation."""
    best: Mapping[str, Any]
    """The best weights so far."""
    losses: tuple[float, int] = (0.0, 0)
    """The sum of the losses since the last validation, and their number."""
    threads: int | None = None
    """With how many threads it was computed; None in a file of an earlier version."""


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """One file; a killed process leaves the last one whole."""
    from safetensors.torch import save

    stored = {
        f"{part}/{name}": tensor.detach().cpu().clone().contiguous()
        for part in _PARTS
        for name, tensor in getattr(checkpoint, part).items()
    }
    state = json.dumps({name: getattr(checkpoint, name) for name in ("step", "history", "losses", "threads")})
    try:
        with atomic_file(path) as partial:
            partial.write_bytes(save(stored, {STATE: state}))
    except OSError as error:
        before = "; the one before it is kept" if path.exists() else ""
        raise CrosslensError(
            f"cannot write the checkpoint of step {checkpoint.step}: {error.strerror or error}{before}",
            fix="free space on the disk; the same command resumes", code="checkpoint-not-written", subject=str(path),
        ) from error  # fmt: skip


def load_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint of a file; whatever is wrong with it raises."""
    from safetensors.torch import load

    content = regular_bytes(path)
    try:
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        state = parse_json(header["__metadata__"][STATE])
        tensors = load(content)
        parts: dict[str, dict[str, Any]] = {part: {} for part in _PARTS}
        for name, tensor in tensors.items():
            part, _, rest = name.partition("/")
            parts[part][rest] = tensor
        total, count = state["losses"]
        losses, threads = (float(total), int(count)), state.get("threads")
        if threads is not None and (type(threads) is not int or not 1 <= threads <= MOST_THREADS):
            raise ValueError(f"threads = {threads!r}")
        return Checkpoint(int(state["step"]), history=list(state["history"]), losses=losses, threads=threads, **parts)
    except Exception as error:  # safetensors has an exception of its own
        of_content = isinstance(error, ValueError | KeyError | TypeError | OverflowError)
        raise InputError(
            f"{'not a checkpoint of a training' if of_content else 'a damaged checkpoint'}: {error}", file=path,
            expected="a file that crosslens train wrote", fix="remove the file to train from the start",
        ) from error  # fmt: skip


class SaveTimes:
    """When the next checkpoint is due, so that writing them takes at most a share of the time."""

    def __init__(self, share: float) -> None:
        self._share, self._took, self._last = share, 0.0, time.monotonic()

    def is_due(self) -> bool:
        """Whether enough time has passed; the first one always is."""
        return self._share >= 1 or self._took <= self._share * (time.monotonic() - self._last)

    @contextmanager
    def saving(self) -> Iterator[None]:
        start = time.monotonic()
        yield
        self._last = time.monotonic()
        self._took = self._last - start

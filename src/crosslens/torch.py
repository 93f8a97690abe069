"""Retrieval metrics inside a training loop: a :class:`torchmetrics.Metric` (extra ``torch``)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
import torch.distributed
from torch import Tensor

from crosslens.core import InputError, MissingExtraError
from crosslens.pipeline import Metrics, measure_vectors, vector_metrics
from crosslens.storage import Array

try:
    from torchmetrics import Metric
    from torchmetrics.utilities.distributed import gather_all_tensors
except ImportError as error:
    raise MissingExtraError("RetrievalMetric", "torchmetrics", "torch") from error

__all__ = ["RetrievalMetric"]

Ids: TypeAlias = Tensor | Sequence[int] | Sequence[str]
_STATES = {
    "image_features": torch.float32, "image_ids": torch.int64,
    "caption_features": torch.float32, "caption_images": torch.int64, "caption_ids": torch.int64,
    "caption_process": torch.int64,
}  # fmt: skip


class RetrievalMetric(Metric):  # type: ignore[misc]
    """Image–text retrieval over all that ``update`` was given: ``{"t2i/Hit@1": tensor(0.41), …}``.

    ``metrics`` are named as in :func:`crosslens.evaluate`, whose figures these are for the same vectors; ``score`` is
    the score function (default: cosine). Features are kept in float32 in the CPU's memory, whatever device they come
    from. Further keywords are those of :class:`torchmetrics.Metric`.
    """

    is_differentiable = False
    higher_is_better = None
    full_state_update = False
    width: Tensor

    def __init__(self, metrics: Metrics = None, *, score: str | None = None, **keywords: Any) -> None:
        keywords.setdefault("dist_sync_fn", _gather)
        super().__init__(**keywords)
        self.metrics, self.score = vector_metrics(metrics), score
        self._names: dict[int, str] = {}
        for name in _STATES:
            self.add_state(name, [], dist_reduce_fx="cat")
        self.add_state("width", torch.zeros(1, dtype=torch.int64), dist_reduce_fx="max")

    def update(
        self,
        image_features: Tensor | None = None,
        caption_features: Tensor | None = None,
        image_ids: Ids | None = None,
        caption_images: Ids | None = None,
        caption_ids: Ids | None = None,
    ) -> None:
        """Take a batch: vectors of images with their ids, of captions with the ids of their images, or of both.

        An image that comes again, as a distributed sampler repeats some, counts once. So does a caption that another
        process has given with the same vector; to tell captions of one image with equal vectors apart wherever they
        come from, pass ``caption_ids``.
        """
        if image_features is not None:
            ids = self._numbers(image_ids, "image_ids", len(image_features))
            self._append(image_features=image_features, image_ids=ids)
        elif image_ids is not None and caption_features is None:
            raise InputError("image_ids without image_features", fix="pass both, or neither")
        if caption_features is not None:
            count = len(caption_features)
            owners = self._numbers(caption_images, "caption_images", count)
            own_ids = (
                torch.full((count,), -1) if caption_ids is None else self._numbers(caption_ids, "caption_ids", count)
            )
            process = torch.full((count,), _process())
            self._append(
                caption_features=caption_features, caption_images=owners, caption_ids=own_ids, caption_process=process
            )

    def _append(self, **values: Tensor) -> None:
        for name, value in values.items():
            if name.endswith("features"):
                if value.ndim != 2:
                    raise InputError(f"{name} of shape {tuple(value.shape)}", expected="one vector per item: n × d")
                width = int(self.width)
                if width not in (0, value.shape[1]):
                    raise InputError(f"{name} with {value.shape[1]} numbers each", expected=f"{width}, as before")
                self.width = torch.full_like(self.width, value.shape[1])
                # Flat: processes without any can take part in the exchange.
                value = value.detach().to("cpu", torch.float32).reshape(-1)
            getattr(self, name).append(value.cpu())

    def _numbers(self, ids: Ids | None, name: str, count: int) -> Tensor:
        """Ids as 64-bit numbers, which processes can exchange; of a text, a hash."""
        if ids is None or len(ids) != count:
            id_count = "none" if ids is None else len(ids)
            raise InputError(f"{id_count} {name} for {count} vectors", expected="an id for every vector")
        if isinstance(ids, Tensor):
            return ids.detach().to("cpu", torch.int64)
        numbers = []
        for value in ids:
            number = value if isinstance(value, int) else _hash(str(value))
            numbers.append(number)
            if not isinstance(value, int):
                self._names[number] = str(value)
        return torch.tensor(numbers, dtype=torch.int64)

    def sync(self, *arguments: Any, **keywords: Any) -> None:
        for name, kind in _STATES.items():
            if isinstance(getattr(self, name), list) and not getattr(self, name):
                getattr(self, name).append(torch.empty(0, dtype=kind))
        super().sync(*arguments, **keywords)

    def compute(self) -> dict[str, Tensor]:
        """The metrics over all batches, and in several processes over all of these."""
        states = {name: self._all(name) for name in _STATES}
        width = int(self.width)
        if not len(states["image_ids"]) or not len(states["caption_images"]):
            side = "captions" if len(states["image_ids"]) else "images"
            raise InputError(f"no features of {side} were given", fix="call update() with both sides before compute()")
        rows: Any = np.sort(np.unique(states["image_ids"], return_index=True)[1])
        if len(rows) == len(states["image_ids"]):
            rows = slice(None)  # no copy
        ids, images = states["image_ids"][rows], states["image_features"].reshape(-1, width)[rows]
        captions = states["caption_features"].reshape(-1, width)
        distinct = _distinct(captions, states["caption_images"], states["caption_ids"], states["caption_process"])
        owners, names = (
            [self._names.get(number, number) for number in numbers.tolist()]
            for numbers in (states["caption_images"][distinct], ids)
        )
        values = measure_vectors(images, captions[distinct], owners, names, self.metrics, score=self.score)
        return {name: torch.tensor(value, dtype=torch.float64, device=self.device) for name, value in values.items()}

    def _all(self, name: str) -> Array:
        state = getattr(self, name)
        parts = state if isinstance(state, list) else [state]
        return torch.cat([part.cpu() for part in parts]).numpy() if parts else np.empty(0, np.int64)


def _distinct(vectors: Any, owners: Any, ids: Any, process: Any) -> Array | slice:
    """The rows of captions, each once; a slice, which copies no vectors, where these are all rows.

    By their ids where these are given. Otherwise captions of one image with equal vectors are as many as the process
    that has most of them: a sampler's copies are in another process than the original.
    """
    if (ids == -1).all() and len(np.unique(process)) <= 1:
        return slice(None)
    count: dict[tuple[Any, ...], int] = {}
    first_rows: dict[tuple[Any, ...], int] = {}
    for row in range(len(vectors)):
        if ids[row] != -1:
            key: tuple[Any, ...] = (int(owners[row]), "id", int(ids[row]))
        else:
            copy = (int(owners[row]), vectors[row].tobytes())
            count[(*copy, int(process[row]))] = number = count.get((*copy, int(process[row])), 0) + 1
            key = (*copy, number)
        first_rows.setdefault(key, row)
    return np.array(list(first_rows.values()), np.int64)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


def _process() -> int:
    available = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_rank() if available else 0


def _gather(tensor: Tensor, group: Any = None) -> list[Tensor]:
    """The tensors of all processes in the CPU's memory, by way of the GPU where the processes exchange only those."""
    on_gpu = torch.distributed.get_backend(group) == "nccl"
    device = torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")
    gather: Callable[..., list[Tensor]] = gather_all_tensors
    return [part.cpu() for part in gather(tensor.to(device), group)]

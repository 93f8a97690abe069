"""Train ``tiny`` on drawn scenes: one command, one seed.

    python training/tiny/train.py --scenes 60000 --epochs 12 --output trained/

draws the corpus (all cores), learns the tokenizer, trains both towers against each other and writes ``tiny.pt``,
``tokenizer.json`` and ``curve.jsonl``; ``export.py`` turns them into what the package ships. A GPU helps.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from corpus import Corpus, draw
from towers import SIZE, Tiny
from words import learn

PIXEL_MEAN, PIXEL_STD = 0.5, 0.25
SHIFT = 5
"""Pictures are moved by up to so many pixels, so that a position in the picture is not one column of weights."""
TEXTS_PER_IMAGE = 2
AVERAGE = 0.999
"""The weights that are kept are a running average of those that are trained."""
WATCHED_SEED = 30_000
"""Of the scenes the curve is measured on; figures about the finished model come from others (``held_out.py``)."""


def main() -> None:
    """Draw, train, write."""
    options = arguments()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(options.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    options.output.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    corpus = draw(options.corpus, options.scenes, options.seed, SIZE, options.workers)
    watched = draw(options.corpus / "watched", options.watched, WATCHED_SEED, SIZE, options.workers, "v1")
    print(f"corpus: {len(corpus.pixels):,} pictures after {time.monotonic() - began:.0f} s", flush=True)
    tokenizer = learn(text for five in corpus.captions for text in five)
    tokenizer.save(str(options.output / "tokenizer.json"))
    model = Tiny(tokenizer.get_vocab_size()).to(device)
    print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters, {device}", flush=True)
    curve = train(model, Batches(corpus, tokenizer, device), Batches(watched, tokenizer, device), options)
    (options.output / "curve.jsonl").write_text("".join(json.dumps(point) + "\n" for point in curve))


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", type=int, default=60_000, help="how many to draw")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=1024, help="scenes in a batch")
    parser.add_argument("--rate", type=float, default=1.5e-3, help="highest learning rate")
    parser.add_argument("--seed", type=int, default=20_000, help="of the scenes, the weights and the order")
    parser.add_argument("--watched", type=int, default=1000, help="scenes the curve is measured on")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--corpus", type=Path, default=Path("trained/corpus"))
    parser.add_argument("--output", type=Path, default=Path("trained"))
    return parser.parse_args()


class Batches:
    """A corpus on the device: pixels, the tokens of every caption, and which captions are word for word the same."""

    def __init__(self, corpus: Corpus, tokenizer: Any, device: torch.device) -> None:
        self.count = len(corpus.captions)
        self.pixels = torch.from_numpy(np.array(corpus.pixels)).to(device)
        texts = [text for five in corpus.captions for text in five]
        numbers: dict[str, int] = {}
        same = [numbers.setdefault(text, len(numbers)) for text in texts]
        distinct = tokenizer.encode_batch(list(numbers))
        ids = np.array([encoding.ids for encoding in distinct], np.int16)
        self.same = torch.tensor(same, device=device).reshape(len(corpus.captions), -1)
        self.ids = torch.from_numpy(ids).to(device)

    def tokens(self, texts: Tensor) -> tuple[Tensor, Tensor]:
        """Token ids and mask of distinct texts, no longer than the longest of them."""
        ids = self.ids[texts].long()
        length = int((ids != 0).sum(1).max())
        return ids[:, :length], (ids != 0)[:, :length]

    def images(self, rows: Tensor, shift: tuple[int, int] | None = None) -> Tensor:
        """Pixels as the tower takes them."""
        pixels = self.pixels[rows].permute(0, 3, 1, 2).float() / 255
        if shift is not None:
            down, across = (torch.arange(SIZE, device=rows.device).add(by).clamp(0, SIZE - 1) for by in shift)
            pixels = pixels[:, :, down][:, :, :, across]
        return ((pixels - PIXEL_MEAN) / PIXEL_STD).contiguous(memory_format=torch.channels_last)


def train(model: Tiny, batches: Batches, watched: Batches, options: argparse.Namespace) -> list[dict[str, float]]:
    """Train with a one-cycle rate; a point of the curve for every epoch."""
    steps = max(1, batches.count // options.batch)
    total = steps * options.epochs
    optimiser = torch.optim.AdamW(_groups(model), lr=options.rate, betas=(0.9, 0.98))
    average = deepcopy(model).eval()
    order = np.random.default_rng(options.seed)
    device = batches.pixels.device
    curve: list[dict[str, float]] = []
    began, step, losses = time.monotonic(), 0, torch.zeros((), device=device)
    for epoch in range(options.epochs):
        model.train()
        for mixed in _shuffled(batches.count, options.batch, steps, order):
            for group in optimiser.param_groups:
                group["lr"] = options.rate * _cycle(step, total)
            rows = torch.from_numpy(mixed).to(device)
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                loss = _loss(model, batches, rows, order)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            model.log_scale.data.clamp_(max=math.log(100))
            _follow(average, model, min(AVERAGE, (1 + step) / (10 + step)))
            losses += loss.detach()
            step += 1
        point = {"epoch": epoch + 1, "step": step, "loss": round(float(losses) / steps, 4)}
        for version, share in (("v0", 2), ("v1", 1)):
            hits = hit_at(average, watched, watched.count // share)
            point.update({f"{version} t2i Hit@{k}": hit for k, hit in hits.items()})
        point.update(scale=round(model.log_scale.exp().item(), 2), seconds=round(time.monotonic() - began, 1))
        losses.zero_()
        curve.append(point)
        print(json.dumps(point), flush=True)
        torch.save(average.state_dict(), options.output / "tiny.pt")
    return curve


def _groups(model: Tiny) -> list[dict[str, Any]]:
    matrices = [parameter for parameter in model.parameters() if parameter.ndim >= 2]
    rest = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    return [{"params": matrices, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}]


def _shuffled(count: int, batch: int, steps: int, order: np.random.Generator) -> Iterator[np.ndarray[Any, Any]]:
    mixed = order.permutation(count)
    return (mixed[step * batch : (step + 1) * batch] for step in range(steps))


def _cycle(step: int, total: int) -> float:
    return min(1.0, (step + 1) / (0.05 * total)) * (0.5 + 0.5 * math.cos(math.pi * step / total)) + 1e-3


def _loss(model: Tiny, batches: Batches, rows: Tensor, order: np.random.Generator) -> Tensor:
    """Each text must find its image among the batch's and each image its text; equal texts are no rivals."""
    down, across = (int(pixels) for pixels in order.integers(-SHIFT, SHIFT + 1, 2))
    images = model.image(batches.images(rows, (down, across)))
    scale = model.log_scale.exp()
    styles = np.stack([order.permutation(5)[:TEXTS_PER_IMAGE] for _ in range(len(rows))], axis=1)
    losses = []
    for chosen in styles:
        texts = batches.same[rows, torch.from_numpy(chosen).to(rows.device)]
        scores = (scale * model.text(*batches.tokens(texts)) @ images.T).float()
        equal = (texts[:, None] == texts[None, :]).fill_diagonal_(False)
        scores = scores.masked_fill(equal, -1e4)
        right = torch.arange(len(rows), device=rows.device)
        losses.append(functional.cross_entropy(scores, right) + functional.cross_entropy(scores.T, right))
    return torch.stack(losses).mean() / 2


@torch.no_grad()
def _follow(average: Tiny, model: Tiny, keep: float) -> None:
    for kept, now in zip(average.state_dict().values(), model.state_dict().values(), strict=True):
        if kept.dtype.is_floating_point:
            kept.lerp_(now, 1 - keep)
        else:
            kept.copy_(now)


@torch.no_grad()
def hit_at(model: Tiny, batches: Batches, count: int) -> dict[int, float]:
    """Text-to-image Hit@k over the first so many rows, all five captions as queries."""
    rows = torch.arange(count, device=batches.pixels.device)
    images = torch.cat([model.image(batches.images(part)) for part in rows.split(500)])
    texts = batches.same[rows].flatten()
    scores = torch.cat([model.text(*batches.tokens(part)) for part in texts.split(2000)]) @ images.T
    relevant = scores.gather(1, rows.repeat_interleave(5)[:, None])
    better = (scores > relevant).sum(1)
    return {k: round(float((better < k).float().mean()), 4) for k in (1, 10)}


if __name__ == "__main__":
    main()

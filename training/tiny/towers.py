"""The two towers of ``tiny``: a small convolutional network with attention on top, and a small transformer."""

from __future__ import annotations

import torch
from torch import Tensor, nn

SIZE = 96
"""Pictures are squares of this many pixels."""
LONGEST = 64
"""Captions are cut after this many tokens."""
WIDTH, HEADS, JOINT = 128, 4, 128


class Convolution(nn.Sequential):
    """Convolution, normalisation and, unless it is the last of a block, a nonlinearity."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1, active: bool = True
    ) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(outputs),
            nn.Hardswish() if active else nn.Identity(),
        )


class Widened(nn.Module):
    """A residual block that works in more channels than it takes and gives."""

    def __init__(self, channels: int, widening: int) -> None:
        super().__init__()
        inner = channels * widening
        self.body = nn.Sequential(
            Convolution(channels, inner),
            Convolution(inner, inner, kernel=5, groups=inner),
            Convolution(inner, channels, active=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class Attention(nn.Module):
    """Self-attention written out: every step exports to plain matrix products."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor, hidden: Tensor | None) -> Tensor:
        batch, length, width = x.shape
        query, key, value = self.mixed(x).reshape(batch, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        weights = query @ key.transpose(-1, -2) * (width // HEADS) ** -0.5
        if hidden is not None:
            weights = weights + hidden
        return self.out((weights.softmax(-1) @ value).transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    """A transformer layer, normalised before each part."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.before, self.attention = nn.LayerNorm(width), Attention(width)
        self.between = nn.LayerNorm(width)
        self.thinking = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> Tensor:
        x = x + self.attention(self.before(x), hidden)
        return x + self.thinking(self.between(x))


class ImageTower(nn.Module):
    """n×3×96×96 pixels, scaled to −2…2 → n×128."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            Convolution(3, 16, kernel=3, stride=2),
            Convolution(16, 32, kernel=3, stride=2),
            Widened(32, 2),
            Convolution(32, 64, kernel=3, stride=2),
            *(Widened(64, 3) for _ in range(2)),
            Convolution(64, WIDTH, kernel=3, stride=2),
            Widened(WIDTH, 2),
        )
        self.places = nn.Parameter(torch.randn(1, (SIZE // 16) ** 2, WIDTH) * 0.02)
        self.layers = nn.ModuleList(Layer(WIDTH) for _ in range(2))
        self.last, self.joint = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, JOINT, bias=False)

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.convolutions(pixels).flatten(2).transpose(1, 2) + self.places
        for layer in self.layers:
            x = layer(x)
        return nn.functional.normalize(self.joint(self.last(x).mean(1)), dim=-1)


class TextTower(nn.Module):
    """n×length token ids and their mask → n×128."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, WIDTH)
        self.places = nn.Parameter(torch.randn(1, LONGEST, WIDTH) * 0.02)
        nn.init.normal_(self.words.weight, std=0.02)
        self.layers = nn.ModuleList(Layer(WIDTH) for _ in range(2))
        self.last, self.joint = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, JOINT, bias=False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        mask = attention_mask.to(torch.float32)
        hidden = (1 - mask)[:, None, None, :] * -1e4
        x = self.words(input_ids) + self.places[:, : input_ids.shape[1]]
        for layer in self.layers:
            x = layer(x, hidden)
        mean = (self.last(x) * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)  # "" has no tokens
        return nn.functional.normalize(self.joint(mean), dim=-1)


class Tiny(nn.Module):
    """Both towers and the temperature they are trained with."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.image, self.text = ImageTower(), TextTower(vocabulary)
        self.log_scale = nn.Parameter(torch.tensor(2.5))

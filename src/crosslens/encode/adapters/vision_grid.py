"""Local features of pictures: the patches of a vision model's last layer, as they are or averaged in a coarser grid."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from crosslens.core import UsageError
from crosslens.encode.encoder import ENCODERS, IMAGES, Array
from crosslens.encode.images import as_pictures
from crosslens.encode.options import EncodeOptions
from crosslens.encode.torch_model import PretrainedModel

_SOURCE = re.compile(r"(?P<path>.*?)(?:#(?P<side>\d{1,3}))?")


@ENCODERS.register("grid", example="openai/clip-vit-base-patch32#3", extra="encoders", path=_SOURCE.pattern)
class GridEncoder(PretrainedModel):
    """Grid features, images only: a vector for every patch of a vision model; ``#3`` averages them to 3 × 3.

    For the models that ``crosslens train`` trains on local features. The source is any vision model of transformers, or
    a dual encoder, of which the image tower is used. The patches are those of the last layer, row by row, without the
    tokens that stand for the whole picture.
    """

    abilities = frozenset((IMAGES,))
    logit_scale: float | None = None

    def __init__(self, source: str, options: EncodeOptions) -> None:
        match = _SOURCE.fullmatch(source)
        assert match is not None
        self.side = None if match["side"] is None else int(match["side"])
        if self.side == 0:
            raise UsageError(f"grid:{source}: a grid of 0 × 0", fix="write the side of the grid after #, such as #3")
        super().__init__("grid", match["path"], options, "grid features", "AutoModel", texts=False)
        if self.side is not None:
            self.name += f"#{self.side}"
        self.tower = getattr(self.model, "vision_model", self.model)
        self.dimension: int | None = None
        settings = json.loads(self._prepare.to_json_string())
        self.preprocessing = json.dumps({"images": settings, "side": self.side}, sort_keys=True, default=str)

    def encode_images(self, images: Sequence[Any]) -> Array:
        """n pictures → n × cells × dimension."""
        pixels = self._pixels(as_pictures(images))
        with self._compute.torch.inference_mode():
            states = self.tower(**pixels).last_hidden_state
            grid = patch_grid(states, patch_counts(self.model, pixels["pixel_values"]))
            if self.side is not None:
                grid = self._compute.torch.nn.functional.adaptive_avg_pool2d(grid, self.side)
            return self._compute.numpy(grid.flatten(2).transpose(1, 2))

    def encode_texts(self, texts: Sequence[str]) -> Array:
        """Not what this encoder does."""
        raise UsageError(f"{self.name} encodes images only", fix="use a dual encoder for texts")


def patch_counts(model: Any, pixels: Any) -> tuple[int, int]:
    """Rows and columns of patches that a model cuts pictures into; 0 where its settings do not say."""
    size = getattr(getattr(model, "vision_model", model).config, "patch_size", None)
    if size is None:
        return 0, 0
    height, width = (size, size) if isinstance(size, int) else size[-2:]
    return pixels.shape[-2] // height, pixels.shape[-1] // width


def patch_grid(states: Any, patches: tuple[int, int]) -> Any:
    """Last states of a vision model → n × dimension × rows × columns.

    Convolutional networks have a grid already. Of a sequence, the patches come last: class and register tokens stand
    before them. A model that merges patches on its way (Swin) ends with fewer, a square of them.
    """
    if states.ndim == 4:
        return states
    rows, columns = patches
    count = states.shape[1]
    if not rows or count < rows * columns:
        rows = columns = math.isqrt(count)
    if rows * columns == 0 or (count < patches[0] * patches[1] and rows * columns != count):
        raise UsageError(
            f"the model ends with {count} vectors per picture, which are no grid",
            fix="use a model whose last layer has a vector per patch",
        )
    return states[:, count - rows * columns :].transpose(1, 2).reshape(len(states), -1, rows, columns)

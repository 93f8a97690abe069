"""Grid features: the patches of the last layer in their places, without the tokens of the whole picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.extras import skip_without

torch = pytest.importorskip("torch", reason="pip install 'crosslens[encoders]'")
skip_without("encoders", "transformers")

from crosslens.core import UsageError  # noqa: E402
from crosslens.encode import encode_dataset, load_encoder  # noqa: E402
from crosslens.encode.adapters.torch_encoders import patch_grid  # noqa: E402
from crosslens.values import Dataset  # noqa: E402
from tests.encode.tiny_models import pictures, save_model  # noqa: E402
from tests.tables import rest_slow  # noqa: E402


def tokens_of(kind: str, folder: Path) -> np.ndarray[Any, Any]:
    """The last states as the library gives them."""
    import transformers

    model = transformers.AutoModel.from_pretrained(folder).eval()
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    with torch.inference_mode():
        tower = getattr(model, "vision_model", model)
        states = tower(**processor(pictures(), return_tensors="pt")).last_hidden_state
    return np.asarray(states)


@pytest.mark.parametrize(("kind", "extra"), rest_slow([("siglip", 0), ("dinov2", 1), ("clip", 1)], fast=2))
def test_patches_without_the_tokens_of_the_whole(tmp_path: Path, kind: str, extra: int) -> None:
    folder = save_model(kind, tmp_path / kind)
    states = tokens_of(kind, folder)
    assert states.shape == (4, 16 + extra, 16), "pictures of 32 × 32 in patches of 8"
    grid = load_encoder(f"grid:{folder}", device="cpu").encode_images(pictures())
    np.testing.assert_allclose(grid, states[:, extra:], atol=1e-5)
    coarse = load_encoder(f"grid:{folder}#2", device="cpu").encode_images(pictures())
    for image in range(4):
        for row in range(2):
            for column in range(2):
                cells = [4 * (2 * row + down) + 2 * column + right for down in (0, 1) for right in (0, 1)]
                expected = sum(grid[image, cell] for cell in cells) / 4
                np.testing.assert_allclose(coarse[image, 2 * row + column], expected, atol=1e-5)


def test_grids_of_convolutions_and_of_merged_patches() -> None:
    maps = torch.arange(24.0).reshape(1, 2, 3, 4)
    assert patch_grid(maps, (0, 0)) is maps
    merged = patch_grid(torch.arange(8.0).reshape(1, 4, 2), (8, 8))
    assert merged[0, 0].tolist() == [[0.0, 2.0], [4.0, 6.0]]
    registers = patch_grid(torch.arange(7.0).reshape(1, 7, 1), (1, 2))
    assert registers.flatten().tolist() == [5.0, 6.0]
    with pytest.raises(UsageError, match="5 vectors per picture, which are no grid"):
        patch_grid(torch.zeros(1, 5, 2), (3, 3))


def test_a_dataset_s_grid_features_are_stored_like_other_embeddings(tmp_path: Path, photos: Dataset) -> None:
    folder = save_model("clip", tmp_path / "clip")
    encoder = load_encoder(f"grid:{folder}#3", device="cpu")
    encoded = encode_dataset(photos, encoder, image_folder=tmp_path / "photos")
    assert encoded.captions is None
    assert encoded.images is not None
    assert encoded.images.vectors.shape == (6, 9, 16)
    assert encoder.name.endswith("clip#3")
    second_grid = load_encoder(f"grid:{folder}", device="cpu")
    assert (second_grid.revision, second_grid.preprocessing != encoder.preprocessing) == (encoder.revision, True)


def test_wrong_grids(tmp_path: Path) -> None:
    folder = save_model("clip", tmp_path / "clip")
    with pytest.raises(UsageError, match="a grid of 0 × 0"):
        load_encoder(f"grid:{folder}#0")
    with pytest.raises(UsageError, match="encodes images, not texts"):
        load_encoder(f"grid:{folder}", device="cpu").encode_texts(["a"])

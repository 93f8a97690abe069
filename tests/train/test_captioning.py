"""VSRN's loss of generated captions: by plain loops, its gradients, and what is left of it in use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from crosslens.core import CrosslensError, InputError  # noqa: E402
from crosslens.train import (  # noqa: E402
    LOSSES,
    MODELS,
    BatchOutput,
    CaptionBatch,
    ImageBatch,
    InputShape,
    TrainingData,
    TrainingRecipe,
    build_loss,
    load_model,
    train_model,
)
from crosslens.train.stored.model_folder import read_model  # noqa: E402

from .slow_layers import sigmoid, softmax  # noqa: E402
from .test_region_training import recipe_of  # noqa: E402

WORDS, REGIONS = 7, 5
TEXTS = [[2, 3, 4], [5, 6], [1]]


def batch(images: Any, captions: Any) -> BatchOutput:
    count = len(TEXTS)
    return BatchOutput(
        torch.zeros(count, count), torch.eye(count, dtype=torch.bool), images, captions, lambda *_: None,
        torch.Generator(),
    )  # fmt: skip


def model_and_inputs() -> tuple[Any, Any, Any]:
    """The loss in float64, regions of three images, and their captions' word ids."""
    torch.manual_seed(4)
    loss = LOSSES["captioning"].value(words=WORDS, regions=REGIONS, dimension=6, word_dimension=4)
    for parameter in loss.learnt.values():
        parameter.data = torch.randn(parameter.shape, dtype=torch.float64) * 0.7
    regions = torch.randn(3, 4, REGIONS, dtype=torch.float64)
    return loss, regions, torch.tensor([text + [0] * (3 - len(text)) for text in TEXTS])


def slow_loss(weights: dict[str, Any], regions: Any, words: list[int]) -> float:
    """−log p of a caption and of its end, word after word."""

    def linear(name: str, vector: Any) -> Any:
        return weights[f"{name}_weight"] @ vector + weights.get(f"{name}_bias", 0.0)

    state, total = np.tanh(linear("first", regions.mean(axis=0))), 0.0
    for before, word in zip([0, *words], [*words, 0], strict=True):
        logits = [float(linear("weight", np.tanh(linear("key", r) + linear("query", state)))[0]) for r in regions]
        attended_region = sum(share * region for share, region in zip(softmax(logits), regions, strict=True))
        inputs = np.concatenate([weights["embedding_weight"][before], attended_region])
        given = weights["cell_weight_ih"] @ inputs + weights["cell_bias_ih"]
        kept = weights["cell_weight_hh"] @ state + weights["cell_bias_hh"]
        reset, update = sigmoid(given[:6] + kept[:6]), sigmoid(given[6:12] + kept[6:12])
        state = (1 - update) * np.tanh(given[12:] + reset * kept[12:]) + update * state
        total -= float(np.log(softmax(list(linear("out", state)))[word]))
    return total


def test_the_loss_equals_plain_loops() -> None:
    loss, regions, words = model_and_inputs()
    weights = {name: parameter.detach().numpy() for name, parameter in loss.learnt.items()}
    expected = np.mean([slow_loss(weights, regions[n].numpy(), text) for n, text in enumerate(TEXTS)])
    vectors = torch.zeros(3, 2)
    assert float(loss(batch((vectors, regions), (vectors, words))).detach()) == pytest.approx(expected, rel=1e-10)
    longer = torch.nn.functional.pad(words, (0, 4))
    padded = float(loss(batch((vectors, regions), (vectors, longer))).detach())
    assert padded == pytest.approx(expected, rel=1e-10)


def test_its_gradient_is_right_and_reaches_every_weight() -> None:
    loss, regions, words = model_and_inputs()
    vectors = torch.zeros(3, 2)
    regions.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda image_regions: loss(batch((vectors, image_regions), (vectors, words))), (regions,)
    )
    loss(batch((vectors, regions), (vectors, words))).backward()
    assert all(parameter.grad.abs().max() > 1e-9 for parameter in loss.learnt.values())


def test_what_it_trains_of_the_model() -> None:
    """Regions and their graph; neither the GRU that reads them for retrieval nor the caption's side."""
    torch.manual_seed(0)
    model = (
        MODELS["vsrn"].value(InputShape(0, WORDS, (), (4, 6)), dimension=REGIONS, layers=1, word_dimension=4).train()
    )
    torch.nn.init.ones_(model.graph[0].norm.weight)
    images = model.encode_images(ImageBatch(None, torch.randn(3, 4, 6)))
    captions = model.encode_captions(CaptionBatch(model_and_inputs()[2], torch.tensor([3, 2, 1])))
    assert [part.shape for part in images] == [(3, REGIONS), (3, 4, REGIONS)]
    loss, _ = build_loss([{"kind": "captioning"}], words=WORDS, regions=model.region_dimension)
    loss(batch(images, captions)).backward()
    reached = {name.split(".")[0] for name, weight in model.named_parameters() if weight.grad is not None}
    assert reached == {"regions", "graph"}
    model.eval()
    assert model.encode_images(ImageBatch(None, torch.randn(3, 4, 6))).shape == (3, REGIONS)


def test_a_stored_model_has_no_use_for_the_decoder(
    tmp_path: Path, recipe: TrainingRecipe, region_data: TrainingData
) -> None:
    """The weights of retrieval begin alike with the loss and without it, and have the same names and shapes."""
    shapes = []
    for name in ("vsrn", "vsrn-captioning"):
        path = train_model(recipe_of(recipe, name, epochs=1, fraction=0.25), region_data, tmp_path / name).path
        loaded = load_model(path).model
        assert not hasattr(loaded, "loss")
        shapes.append({key: tuple(weight.shape) for key, weight in loaded.state_dict().items()})
    assert shapes[0] == shapes[1]
    stored = read_model(path).weights
    assert {key for key in stored if key.startswith("loss.")} >= {"loss.1_out_weight", "loss.1_cell_weight_ih"}


def test_the_captions_become_more_probable(tmp_path: Path, recipe: TrainingRecipe, region_data: TrainingData) -> None:
    captioning = recipe_of(recipe, "vsrn-captioning", epochs=3, batch_size=20)
    rows = train_model(replace(captioning, losses=captioning.losses[1:]), region_data, tmp_path / "model").card[
        "history"
    ]
    assert [row["loss"] for row in rows] == sorted((row["loss"] for row in rows), reverse=True)
    words, uniform = 5, np.log(14 + 1)  # "a" and four of twelve words, and the end
    assert rows[-1]["loss"] < 0.7 * (words + 1) * uniform


def test_mistakes(tmp_path: Path, recipe: TrainingRecipe, region_data: TrainingData) -> None:
    loss, _ = build_loss([{"kind": "captioning"}])
    for images, captions in ((torch.zeros(3, 2), torch.zeros(3, 2)), ((torch.zeros(3, 2),) * 2,) * 2):
        with pytest.raises(CrosslensError, match="the loss captioning requires the model vsrn"):
            loss(batch(images, captions))
    with pytest.raises(InputError, match=r"(?s)dimension is 0.*must be at least 1"):
        build_loss([{"kind": "captioning", "dimension": 0}])
    captioning = replace(recipe_of(recipe, "vsrn"), losses=({"kind": "captioning", "words": 5},))
    with pytest.raises(InputError, match="captioning has no setting 'words'"):
        train_model(captioning, region_data, tmp_path / "model")

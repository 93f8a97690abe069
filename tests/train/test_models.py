"""Models and text towers: shapes, unit length, padding without influence; and the factor of the learning rate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from crosslens.core import UsageError  # noqa: E402
from crosslens.train import MODELS, CaptionBatch, ImageBatch, InputShape, TrainingSettings  # noqa: E402
from crosslens.train.models.towers import Standardisation  # noqa: E402
from crosslens.train.training import rate_factor  # noqa: E402

WORDS = CaptionBatch(torch.tensor([[2, 3, 4, 0, 0], [5, 6, 7, 8, 9], [2, 0, 0, 0, 0]]), torch.tensor([3, 5, 1]))


def model(shape: InputShape, **settings: Any) -> Any:
    torch.manual_seed(0)
    return MODELS["vse"].value(shape, dimension=12, word_dimension=10, **settings).eval()


@pytest.mark.parametrize("settings", [{"text": "gru"}, {"text": "gru", "both": True}, {"text": "transformer"}])
def test_words_become_unit_vectors_and_padding_does_not_matter(settings: dict[str, Any]) -> None:
    built = model(InputShape(6, 10), **settings)
    encoded = built.encode_captions(WORDS)
    assert encoded.shape == (3, 12)
    assert torch.allclose(encoded.norm(dim=1), torch.ones(3), atol=1e-5)
    alone = built.encode_captions(CaptionBatch(torch.tensor([[2, 3, 4]]), torch.tensor([3])))
    assert torch.allclose(encoded[:1], alone, atol=1e-5)
    assert not torch.allclose(encoded[0], encoded[2], atol=1e-3)


def test_vectors_of_a_sentence_encoder_become_unit_vectors() -> None:
    built = model(InputShape(6, 0, (7,)), text="sentence", image="residual", dropout=0.5)
    vectors = torch.randn(3, 7)
    encoded = built.encode_captions(CaptionBatch(None, None, vectors))
    assert torch.allclose(encoded.norm(dim=1), torch.ones(3), atol=1e-5)
    assert torch.equal(encoded, built.encode_captions(CaptionBatch(None, None, vectors))), "no dropout in use"
    built.train()
    assert not torch.equal(encoded, built.encode_captions(CaptionBatch(None, None, vectors)))


@pytest.mark.parametrize("image", ["linear", "residual"])
def test_images_become_unit_vectors_and_scores_are_cosines(image: str) -> None:
    built = model(InputShape(6, 10), image=image)
    images, captions = built.encode_images(ImageBatch(torch.randn(4, 6))), built.encode_captions(WORDS)
    assert torch.allclose(images.norm(dim=1), torch.ones(4), atol=1e-5)
    expected = torch.nn.functional.cosine_similarity(images[:, None], captions[None], dim=-1)
    assert torch.allclose(built.scores(images, captions), expected, atol=1e-5)
    regions = torch.randn(4, 3, 6)
    assert torch.allclose(
        built.encode_images(ImageBatch(regions=regions)), built.encode_images(ImageBatch(regions.mean(dim=1)))
    )


def test_a_word_dimension_without_many_divisors_is_fine() -> None:
    built = MODELS["vse"].value(InputShape(6, 10), dimension=4, word_dimension=199, text="transformer")
    assert built.encode_captions(WORDS).shape == (3, 4)


@pytest.mark.parametrize(
    ("settings", "text", "message"),
    [
        ({"image": "cubic"}, (), "choose linear, residual or grid"),
        ({"text": "lstm"}, (), "choose gru, transformer, sentence or encoder"),
        ({"dropout": 1.0}, (), "dropout must be"),
        ({"text": "sentence"}, (), "the recipe names no text_model"),
        ({"text": "gru"}, (7,), "the recipe names a text_model"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], text: tuple[int, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        model(InputShape(6, 10, text), **settings)
    with pytest.raises(UsageError, match="dimension must be at least 1"):
        MODELS["vse"].value(InputShape(6, 10), dimension=0)


# The learning rate


def factors(steps: int = 20, **settings: Any) -> list[float]:
    return [rate_factor(TrainingSettings(**settings), step, steps, per_epoch=2) for step in range(steps)]


def test_schedules() -> None:
    assert factors() == [1.0] * 20
    assert factors(schedule="step", decay_epochs=4) == pytest.approx([1.0] * 8 + [0.1] * 8 + [0.01] * 4)
    cosine = factors(schedule="cosine")
    assert cosine == pytest.approx([(1 + math.cos(math.pi * step / 20)) / 2 for step in range(20)])
    assert factors(warm_up=0.25)[:6] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0, 1.0])
    warm = factors(warm_up=0.25, schedule="cosine")
    assert warm[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert warm[5:] == pytest.approx([(1 + math.cos(math.pi * step / 15)) / 2 for step in range(15)])


@pytest.mark.parametrize("warm_up", [0.0, 0.01, 0.03, 0.12, 0.99])
def test_the_rate_never_exceeds_its_highest(warm_up: float) -> None:
    assert all(0 < factor <= 1 for factor in factors(warm_up=warm_up, schedule="cosine"))


# Image towers


def test_standardised_features_equal_loops() -> None:
    stream = np.random.default_rng(0)
    vectors, regions = stream.normal(3, 5, (7, 4)), stream.normal(-1, 2, (7, 3, 2))
    vectors[:, 2] = 6.5  # never varies
    scale = Standardisation(InputShape(4, 10, (), (3, 2)))
    scale.fit({"vectors": vectors.astype(np.float16), "regions": regions.astype(np.float32)})
    scaled_batch = scale(
        ImageBatch(torch.tensor(vectors, dtype=torch.float32), torch.tensor(regions, dtype=torch.float32))
    )
    halves = vectors.astype(np.float16).astype(float)
    for column in range(4):
        values = [halves[row, column] for row in range(7)]
        mean = sum(values) / 7
        deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / 7)
        for row in range(7):
            expected = 0.0 if column == 2 else (vectors[row, column] - mean) / deviation
            assert float(scaled_batch.vectors[row, column]) == pytest.approx(expected, abs=1e-4)
    flat = regions.reshape(21, 2)
    expected_regions = (regions - flat.mean(axis=0)) / flat.std(axis=0)
    assert np.allclose(scaled_batch.regions.numpy(), expected_regions, atol=1e-4)
    assert set(scale.state_dict()) == {"vectors_mean", "vectors_deviation", "regions_mean", "regions_deviation"}


@pytest.mark.parametrize("vector", [0, 6])
@pytest.mark.parametrize("standardise", [False, True])
def test_the_grid_tower_reads_global_and_local_features(vector: int, standardise: bool) -> None:
    built = model(InputShape(vector, 10, (), (4, 5)), image="grid", standardise=standardise, dropout=0.5)
    vectors, regions = torch.randn(3, 6) if vector else None, torch.randn(3, 4, 5)
    encoded = built.encode_images(ImageBatch(vectors, regions))
    assert torch.allclose(encoded.norm(dim=1), torch.ones(3), atol=1e-5)
    assert not torch.allclose(encoded, built.encode_images(ImageBatch(vectors, regions.flip(1))), atol=1e-4), "places"
    if vector:
        other_features = built.encode_images(ImageBatch(torch.randn(3, 6), regions))
        assert not torch.allclose(encoded, other_features, atol=1e-4)
    twice = built.encode_images(ImageBatch(None if vectors is None else 2 * vectors, 2 * regions))
    assert torch.allclose(encoded, twice, atol=1e-5) != standardise, "unit length forgets the scale"
    built.train()
    assert not torch.equal(built.encode_images(ImageBatch(vectors, regions)), encoded), "dropout"


def test_the_grid_tower_pools_by_attention() -> None:
    """With zero weights of attention and an identity for a layer, the pooled vector is the mean of the cells."""
    built = model(InputShape(0, 10, (), (4, 5)), image="grid").image
    with torch.no_grad():
        built.attention.weight.zero_()
        built.layer = torch.nn.Identity()
        regions = torch.nn.functional.normalize(torch.randn(3, 4, 5), dim=-1)
        cells = built.cells(regions) + built.position
        expected = built.head(torch.cat([regions.mean(dim=1), cells.mean(dim=1)], dim=-1))
        assert torch.allclose(built(ImageBatch(regions=regions)), expected, atol=1e-5)
        built.attention.weight.normal_(std=50)  # the largest logit takes all
        best = built.attention(cells)[..., 0].argmax(dim=1)
        taken = built.head(torch.cat([regions.mean(dim=1), cells[torch.arange(3), best]], dim=-1))
        assert torch.allclose(built(ImageBatch(regions=regions)), taken, atol=1e-2)


def test_a_grid_tower_without_local_features_says_so() -> None:
    with pytest.raises(UsageError, match="no local features"):
        model(InputShape(6, 10), image="grid")

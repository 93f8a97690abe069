"""SCAN, VSRN, CVSE, SGR and SAF: every score equals one computed with plain loops from the published formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from crosslens.core import UsageError  # noqa: E402
from crosslens.train import MODELS, CaptionBatch, ImageBatch, InputShape  # noqa: E402
from crosslens.train.evaluation import scores_in_blocks  # noqa: E402
from tests.tables import rest_slow  # noqa: E402

from .slow_layers import (  # noqa: E402
    attended,
    cosine,
    gru,
    linear,
    pooled,
    region_states,
    sigmoid,
    softmax,
    unit,
    weight,
    word_states,
)

Array = Any
TEXTS = [[2, 3, 4], [5, 6, 7, 8, 9], [2], [9, 4, 2]]
GRAPH = {"concept_numbers": [3, 4, 7, 9], "concept_edges": [[0, 1], [1, 0], [2, 3], [0, 3]]}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "scan-t2i": ("scan", {}),
    "scan-t2i-lse": ("scan", {"aggregation": "lse", "both": False}),
    "scan-i2t": ("scan", {"direction": "i2t"}),
    "scan-i2t-lse": ("scan", {"direction": "i2t", "aggregation": "lse", "lse_scale": 5.0}),
    "vsrn": ("vsrn", {"layers": 2}),
    "cvse": ("cvse", {"concepts": 4, **GRAPH}),
    "sgr": ("sgr", {"similarity_dimension": 7, "steps": 2}),
    "saf": ("saf", {"similarity_dimension": 7}),
}
every_model = pytest.mark.parametrize("name", KINDS)
with_and_without_vector = pytest.mark.parametrize("vector", [0, 6], ids=["regions", "regions+vector"])


def model(name: str, vector: int = 0, **settings: Any) -> Any:
    """A small model in float64 whose weights are all random, so that nothing is left at 0 or 1."""
    kind, settings_of_kind = KINDS[name]
    torch.manual_seed(3)
    shape = InputShape(vector, 10, (), (4, 5))
    built = MODELS[kind].value(shape, dimension=8, word_dimension=6, **{**settings_of_kind, **settings}).double().eval()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.6)
        for key, buffer in built.named_buffers():
            if "running" in key:
                buffer.copy_(torch.rand_like(buffer) + 0.5)
    return built


def batches(vector: int = 0) -> tuple[ImageBatch, CaptionBatch]:
    stream = np.random.default_rng(5)
    regions, vectors = (torch.from_numpy(stream.standard_normal(shape)) for shape in ((3, 4, 5), (3, 6)))
    words = torch.tensor([text + [0] * (5 - len(text)) for text in TEXTS])
    return ImageBatch(vectors if vector else None, regions), CaptionBatch(words, torch.tensor([3, 5, 1, 3]))


def scores(built: Any, images: ImageBatch, captions: CaptionBatch) -> Array:
    return built.scores(built.encode_images(images), built.encode_captions(captions))


# Slow references: one image, one caption


def slow_scan(built: Any, regions: list[Array], words: list[Array]) -> float:
    regions, words = [unit(state) for state in regions], [unit(state) for state in words]
    if built.direction == "t2i":
        pairs = zip(words, attended(words, regions, 9.0), strict=True)
    else:
        pairs = zip(regions, attended(regions, words, 4.0), strict=True)
    cosines = [cosine(left, right) for left, right in pairs]
    if built.aggregation == "mean":
        return sum(cosines) / len(cosines)
    return float(np.log(sum(np.exp(built.lse_scale * value) for value in cosines)) / built.lse_scale)


def slow_vsrn(built: Any, regions: list[Array], words: list[Array]) -> float:
    for layer in built.graph:
        queries, keys, values = (
            [linear(module, region) for region in regions] for module in (layer.query, layer.key, layer.value)
        )
        mean, variance = (getattr(layer.norm, f"running_{name}").numpy() for name in ("mean", "var"))
        reasoned = []
        for query, region in zip(queries, regions, strict=True):
            message = sum(float(query @ key) * value for key, value in zip(keys, values, strict=True)) / len(regions)
            scaled = (linear(layer.out, message) - mean) / np.sqrt(variance + layer.norm.eps)
            reasoned.append(region + weight(layer.norm, "weight") * scaled + weight(layer.norm, "bias"))
        regions = reasoned
    return cosine(gru(built.reader, [unit(region) for region in regions])[-1], words[-1])


def slow_concepts(built: Any) -> list[Array]:
    neighbours = [[int(i == k or [i, k] in GRAPH["concept_edges"]) for k in range(4)] for i in range(4)]
    degree = [sum(row) for row in neighbours]
    shares = [[neighbours[i][k] / np.sqrt(degree[i] * degree[k]) for k in range(4)] for i in range(4)]
    states = [weight(built.words, "embedding.weight")[number] for number in GRAPH["concept_numbers"]]
    for layer in (built.graph.first, built.graph.second):
        moved = [linear(layer, state) for state in states]
        states = [sum(shares[i][k] * moved[k] for k in range(4)) for i in range(4)]
        if layer is built.graph.first:
            states = [np.where(state > 0, state, 0.2 * state) for state in states]
    return [unit(state) for state in states]


def slow_cvse(built: Any, regions: list[Array], words: list[Array], text: list[int]) -> float:
    concepts = slow_concepts(built)

    def fused(vector: Array, weights: list[float]) -> Array:
        shared = unit(sum(share * concept for share, concept in zip(weights, concepts, strict=True)))
        return 0.75 * vector + 0.25 * shared

    def close_to(vector: Array, layer: Any) -> list[float]:
        return softmax([10 * float(linear(layer, vector) @ concept) for concept in concepts])

    image = pooled(built.image_pool, [unit(region) for region in regions])
    caption = pooled(built.caption_pool, words)
    label_weights = softmax([10.0 * (number in text) for number in GRAPH["concept_numbers"]])
    near = close_to(caption, built.caption_concepts)
    mixed = [0.35 * label + 0.65 * nearness for label, nearness in zip(label_weights, near, strict=True)]
    return cosine(fused(image, close_to(image, built.image_concepts)), fused(caption, mixed))


def slow_similarity(built: Any, regions: list[Array], words: list[Array]) -> float:
    """SGR and SAF."""
    regions, words = [unit(state) for state in regions], [unit(state) for state in words]
    wholes = pooled(built.image_pool, regions) - pooled(built.caption_pool, words)
    vectors = [unit(linear(built.whole, wholes**2))]
    for word, context in zip(words, attended(words, regions, 9.0), strict=True):
        vectors.append(unit(linear(built.local, (unit(context) - word) ** 2)))
    if hasattr(built, "filter"):
        gates = [sigmoid(linear(built.filter, vector)[0]) for vector in vectors]
        total = sum(gates)
        result = unit(sum(gate / total * vector for gate, vector in zip(gates, vectors, strict=True)))
    else:
        for step in built.graph:
            edges = [
                softmax([float(linear(step.query, left) @ linear(step.key, right)) for right in vectors])
                for left in vectors
            ]
            vectors = [
                np.maximum(linear(step.out, sum(e * v for e, v in zip(row, vectors, strict=True))), 0) for row in edges
            ]
        result = vectors[0]
    return float(sigmoid(linear(built.score, result)[0]))


def slow_score(name: str, built: Any, images: ImageBatch, image: int, text: list[int]) -> float:
    vector = None if images.vectors is None else images.vectors[image].numpy()
    regions = region_states(built.regions, images.regions[image].numpy(), vector)
    if name == "vsrn":
        return slow_vsrn(built, regions, word_states(built.text.states, text))
    words = word_states(built.words, text)
    if name == "cvse":
        return slow_cvse(built, regions, words, text)
    return slow_scan(built, regions, words) if "scan" in name else slow_similarity(built, regions, words)


@every_model
@with_and_without_vector
def test_scores_equal_plain_loops(name: str, vector: int) -> None:
    built, (images, captions) = model(name, vector), batches(vector)
    expected = [[slow_score(name, built, images, image, text) for text in TEXTS] for image in range(3)]
    assert np.ptp(expected) > 1e-3, "the pairs differ"
    tolerance = 1e-7 if name == "cvse" else 1e-9  # the graph of concepts is made in float32
    assert scores(built, images, captions).detach().numpy() == pytest.approx(np.array(expected), abs=tolerance)


# Padding, blocks, gradients


@every_model
def test_padding_and_neighbours_in_the_batch_do_not_matter(name: str) -> None:
    built, (images, captions) = model(name), batches()
    whole = scores(built, images, captions)
    for column, text in enumerate(TEXTS):
        alone = CaptionBatch(torch.tensor([text]), torch.tensor([len(text)]))
        assert torch.allclose(scores(built, images, alone)[:, 0], whole[:, column], atol=1e-12)
        longer = CaptionBatch(torch.tensor([text + [0] * 7]), torch.tensor([len(text)]))
        assert torch.allclose(scores(built, images, longer)[:, 0], whole[:, column], atol=1e-12)


@every_model
@pytest.mark.parametrize("largest", rest_slow([200, 10**9, 1, 2_000], fast=2))
def test_blocks_equal_the_whole(name: str, largest: int) -> None:
    built, (images, captions) = model(name), batches()
    with torch.inference_mode():
        encoded = built.encode_images(images), built.encode_captions(captions)
        whole = built.scores(*encoded).float().numpy()
        covered = np.zeros(whole.shape, int)
        for rows, columns, block in scores_in_blocks(built, *encoded, largest):
            covered[rows, columns] += 1
            assert block == pytest.approx(whole[rows, columns], abs=1e-6)
    assert (covered == 1).all()


@pytest.mark.parametrize("name", ["scan-t2i", "scan-i2t", "sgr", "saf"])
def test_blocks_stay_below_the_bound(name: str) -> None:
    built, (images, captions) = model(name), batches()
    with torch.inference_mode():
        encoded = built.encode_images(images), built.encode_captions(captions)
        size = built.numbers_per_pair(*encoded)
        for pairs in (1, 2, 3, 5, 11):
            sizes = [block.size for _, _, block in scores_in_blocks(built, *encoded, pairs * size)]
            assert max(sizes) <= pairs
            assert sum(sizes) == 12


def most_numbers(function: Any) -> float:
    """The most numbers that a function's tensors hold at once, in float32."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as measured:
        function()
    events = measured.profiler.kineto_results.events()
    changes = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]")
    assert changes
    return float(np.cumsum([change for _, change in changes]).max() / 4)


@pytest.mark.parametrize("name", ["scan-t2i", "scan-i2t", "scan-t2i-lse", "sgr", "saf"])
def test_a_pair_takes_no_more_than_it_says(name: str) -> None:
    built = model(name).float()
    stream = torch.Generator().manual_seed(0)
    images = ImageBatch(None, torch.randn(20, 9, 5, generator=stream))
    captions = CaptionBatch(torch.randint(2, 10, (30, 12), generator=stream), torch.full((30,), 12))
    with torch.inference_mode():
        encoded = built.encode_images(images), built.encode_captions(captions)
        most = most_numbers(lambda: built.scores(*encoded))
        assert most <= 600 * built.numbers_per_pair(*encoded)
        assert most > 600 * built.numbers_per_pair(*encoded) / 8, "and not far less"


@every_model
@with_and_without_vector
def test_gradients_reach_all_parameters(name: str, vector: int) -> None:
    built, (images, captions) = model(name, vector).train(), batches(vector)
    target = torch.from_numpy(np.random.default_rng(1).standard_normal((3, 4)))
    (scores(built, images, captions) * target).sum().backward()
    without = [key for key, parameter in built.named_parameters() if not parameter.grad.abs().max() > 1e-9]
    assert without == []


@pytest.mark.parametrize("name", rest_slow(["scan-t2i", "scan-i2t-lse", "scan-t2i-lse", "scan-i2t"], fast=2))
def test_gradients_of_scan_are_right(name: str) -> None:
    built = model(name)
    stream = torch.Generator().manual_seed(2)
    regions, words = (
        torch.nn.functional.normalize(torch.randn(shape, generator=stream, dtype=torch.float64), dim=-1)
        for shape in ((2, 3, 4), (3, 4, 4))
    )

    def of(regions: Any, words: Any) -> Any:
        return built.scores(regions, (words, torch.tensor([4, 2, 4])))

    assert torch.autograd.gradcheck(of, (regions.requires_grad_(), words.requires_grad_()))


@pytest.mark.parametrize("name", ["sgr", "saf"])
def test_gradients_of_similarity_vectors_are_right(name: str) -> None:
    built, (images, captions) = model(name), batches()
    with torch.no_grad():
        regions, whole = (tensor[:1] for tensor in built.encode_images(images))
        words, caption, lengths = (tensor[1:3] for tensor in built.encode_captions(captions))

    def of(regions: Any, whole: Any) -> Any:
        return built.scores((regions, whole), (words, caption, lengths))

    assert torch.autograd.gradcheck(of, (regions.requires_grad_(), whole.requires_grad_()))


@pytest.mark.parametrize("name", ["vsrn", "cvse"])
def test_models_of_one_vector_give_unit_vectors(name: str) -> None:
    built, (images, captions) = model(name), batches()
    assert MODELS[KINDS[name][0]].details["vectors"]
    for encoding in (built.encode_images(images), built.encode_captions(captions)):
        assert torch.allclose(encoding.norm(dim=1), torch.ones(len(encoding), dtype=torch.float64))


def test_a_layer_of_vsrn_begins_as_the_identity() -> None:
    torch.manual_seed(0)
    built = MODELS["vsrn"].value(InputShape(0, 10, (), (4, 5)), dimension=8, layers=3)
    regions = torch.randn(2, 4, 8)
    assert torch.equal(built.graph(regions), regions)


def test_vsrn_reads_captions_with_a_sentence_encoder() -> None:
    built = MODELS["vsrn"].value(InputShape(0, 0, (7,), (4, 5)), dimension=8, layers=1, text="sentence")
    assert built.encode_captions(CaptionBatch(None, None, torch.randn(3, 7))).shape == (3, 8)


# Mistakes


@pytest.mark.parametrize("kind", ["scan", "vsrn", "cvse", "sgr", "saf"])
def test_local_features_are_required(kind: str) -> None:
    settings = {"concepts": 4, **GRAPH} if kind == "cvse" else {}
    with pytest.raises(UsageError, match="the data have no local features"):
        MODELS[kind].value(InputShape(6, 10), dimension=8, **settings)


@pytest.mark.parametrize("kind", ["scan", "cvse", "sgr", "saf"])
def test_models_that_compare_words_refuse_vectors_of_captions(kind: str) -> None:
    settings = {"concepts": 4, **GRAPH} if kind == "cvse" else {}
    with pytest.raises(UsageError, match=r"the recipe names a text_model.*this model compares words"):
        MODELS[kind].value(InputShape(0, 0, (7,), (4, 5)), dimension=8, **settings)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("scan-t2i", {"direction": "both"}, "direction is 'both'.*choose t2i or i2t"),
        ("scan-t2i", {"aggregation": "max"}, "aggregation is 'max'.*choose mean or lse"),
        ("scan-t2i", {"attention_scale": -1.0}, "attention_scale must be above 0"),
        ("scan-t2i", {"lse_scale": 0.0}, "lse_scale must be above 0"),
        ("vsrn", {"layers": 0}, "layers must be at least 1"),
        ("sgr", {"steps": 0}, "steps must be at least 1"),
        ("saf", {"similarity_dimension": 0}, "similarity_dimension must be at least 1"),
        ("saf", {"dropout": 1.0}, "dropout must be at least 0 and below 1"),
        ("cvse", {"instance_share": 1.5}, "instance_share must be from 0 to 1"),
    ],
)
def test_wrong_settings_are_named(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=f"(?s){message}"):
        model(name, **settings)

"""CVSE's concepts, its losses, and what a model prepares from the training captions."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, strategies as st

torch = pytest.importorskip("torch")

from crosslens.core import CrosslensError, InputError  # noqa: E402
from crosslens.train import MODELS, BatchOutput, InputShape, build_loss  # noqa: E402
from crosslens.train.captions import CaptionVocabulary, words_of  # noqa: E402
from crosslens.train.models.protocol import build_model, prepare_model  # noqa: E402
from crosslens.train.models.vectors import STOP_WORDS, concept_graph  # noqa: E402

TEXTS = ["A dog runs.", "a dog and a cat", "The dog runs, 2 dogs run", "a cat sleeps on the dog", "a red ball", "a cat"]


def slow_graph(texts: list[str], concepts: int) -> tuple[list[str], set[tuple[str, str]]]:
    """The concepts and edges of texts, by counting one by one."""
    everything = [word for text in texts for word in words_of(text)]
    content = {word for word in everything if word not in STOP_WORDS and not word.isdigit()}
    vocabulary = sorted(content, key=lambda word: (-everything.count(word), word))[:concepts]
    edges = set()
    for left, right in permutations(vocabulary, 2):
        with_left = [words_of(text) for text in texts if left in words_of(text)]
        share = sum(right in words for words in with_left) / len(with_left)
        if 5 ** (share - 0.02) - 5**-0.02 >= 0.3:
            edges.add((left, right))
    return vocabulary, edges


def check_graph(texts: list[str], concepts: int) -> None:
    graph = concept_graph(texts, concepts=concepts)
    vocabulary, edges = slow_graph(texts, concepts)
    for least in (1, 2):  # rarer words come last: their absence moves no number
        words = dict(enumerate(CaptionVocabulary.of(texts, least).words, 2))
        words_of_graph = [words.get(number) for number in graph["concept_numbers"]]
        assert words_of_graph == [word if word in words.values() else None for word in vocabulary]
    edges_of_graph = {(vocabulary[left], vocabulary[right]) for left, right in graph["concept_edges"]}
    assert edges_of_graph == edges


def test_concepts_and_edges_by_hand() -> None:
    graph = concept_graph(TEXTS, concepts=3)
    words = CaptionVocabulary.of(TEXTS, 1).words
    assert [words[number - 2] for number in graph["concept_numbers"]] == ["dog", "cat", "runs"]
    # dog in 4 captions, cat in 3, runs in 2: dog → cat 2/4, dog → runs 2/4, cat → dog 2/3, runs → dog 2/2
    assert graph["concept_edges"] == [[0, 1], [0, 2], [1, 0], [2, 0]]
    check_graph(TEXTS, 5)


words = st.sampled_from(["dog", "cat", "ball", "red", "the", "runs", "tree", "3", "on"])


@given(st.lists(st.lists(words, min_size=1, max_size=6).map(" ".join), min_size=1, max_size=12))
def test_concepts_equal_counting(texts: list[str]) -> None:
    content = {word for text in texts for word in words_of(text)} - STOP_WORDS - {"3"}
    if content:
        check_graph(texts, max(1, len(content) - 1))


def test_there_are_as_many_concepts_as_the_captions_have() -> None:
    graph = concept_graph(TEXTS)
    vocabulary, edges = slow_graph(TEXTS, 300)
    assert len(vocabulary) == len(graph["concept_numbers"]) == 8
    assert len(graph["concept_edges"]) == len(edges)


@pytest.mark.parametrize(("least", "available"), [(1, 8), (2, 3)])
def test_concepts_that_the_vocabulary_lacks_are_left_out_with_a_note(least: int, available: int) -> None:
    """Of the eight content words dog, cat and runs occur twice or more; the model is that of three concepts."""
    shape = InputShape(0, len(CaptionVocabulary.of(TEXTS, least)), (), (4, 5))
    models = []
    for concepts in (300, available):
        torch.manual_seed(0)
        settings = {"concepts": concepts, "dimension": 8, "word_dimension": 4}
        prepared = prepare_model("cvse", settings, TEXTS, "mine.toml")
        models.append(build_model("cvse", settings, shape, prepared, "mine.toml"))
    capped, exact = models
    assert capped.notes == (f"{available} concepts, not 300: the vocabulary has no more content words",)
    assert not hasattr(exact, "notes")
    assert torch.equal(capped.graph.adjacency, exact.graph.adjacency)
    assert torch.equal(capped.column_of, exact.column_of)
    assert [weight.shape for weight in capped.parameters()] == [weight.shape for weight in exact.parameters()]


def test_without_any_content_word_there_is_no_model() -> None:
    with pytest.raises(InputError, match=r"mine.toml.*the vocabulary has no content word"):
        build_model("cvse", {}, InputShape(0, 2, (), (4, 5)), concept_graph(["a the", "2"]), "mine.toml")


def test_preparing_takes_only_the_settings_it_needs_and_checks_all() -> None:
    settings = {"concepts": 3, "dimension": 8, "word_dimension": 4}
    prepared = prepare_model("cvse", settings, TEXTS, "mine.toml")
    assert prepared == concept_graph(TEXTS, concepts=3)
    shape = InputShape(0, 20, (), (4, 5))
    assert build_model("cvse", settings, shape, prepared, "mine.toml").graph.adjacency.shape == (3, 3)
    assert prepare_model("vse", {}, TEXTS, "mine.toml") == {}
    with pytest.raises(InputError, match=r"mine.toml.*has no setting 'concept_edges'"):
        prepare_model("cvse", {"concept_edges": []}, TEXTS, "mine.toml")
    with pytest.raises(InputError, match=r"mine.toml.*concepts of \[model\] cvse is 'all'"):
        prepare_model("cvse", {"concepts": "all"}, TEXTS, "mine.toml")


def test_the_graph_is_no_weight() -> None:
    built = MODELS["cvse"].value(
        InputShape(0, 20, (), (4, 5)), concepts=3, dimension=8, **concept_graph(TEXTS, concepts=3)
    )
    assert not {"graph.adjacency", "numbers", "column_of"} & built.state_dict().keys()


# The losses


def batch(images: Any, captions: Any) -> BatchOutput:
    return BatchOutput(
        torch.zeros(3, 3), torch.eye(3, dtype=torch.bool), images, captions, lambda *_: None, torch.Generator()
    )


def unit_rows(*rows: list[float]) -> Any:
    return torch.nn.functional.normalize(torch.tensor(rows, dtype=torch.float64), dim=1)


def test_a_batch_of_three_by_hand() -> None:
    x, y = [1.0, 0.0], [0.0, 1.0]
    own_image, own_caption = unit_rows(x, x, y), unit_rows(x, y, y)
    # scores 1 0 0 / 1 0 0 / 0 1 1; hardest caption: 0, 1.2, 0.2; hardest image: 0.2, 1.2, 0
    shared_image, shared_caption = unit_rows(x, y, x), unit_rows(x, y, x)
    # scores 1 0 1 / 0 1 0 / 1 0 1; hardest caption 0.2, 0, 0.2; the same of images
    half, sure = [0.5, 0.5], [0.75, 0.25]
    log_image = torch.tensor([half, half, sure], dtype=torch.float64).log()
    log_caption = torch.tensor([half, sure, sure], dtype=torch.float64).log()
    divergence = 0.75 * torch.tensor(1.5).log() + 0.25 * torch.tensor(0.5).log()
    images = (own_image, own_image, shared_image, log_image)
    captions = (own_caption, own_caption, shared_caption, log_caption)
    for weights, expected in (
        ({"instance": 1.0, "concepts": 0.0, "agreement": 0.0}, 2.8),
        ({"instance": 0.0, "concepts": 1.0, "agreement": 0.0}, 0.8),
        ({"instance": 0.0, "concepts": 0.0, "agreement": 1.0}, float(divergence)),
        ({}, 5 * 2.8 + 0.8 + 2 * float(divergence)),
    ):
        loss, needs_phi = build_loss([{"kind": "consensus", **weights}])
        assert not needs_phi
        assert float(loss(batch(images, captions))) == pytest.approx(expected, abs=1e-6)


def test_its_gradient_is_right() -> None:
    stream = torch.Generator().manual_seed(0)
    tensors = tuple(
        torch.randn(shape, generator=stream, dtype=torch.float64).requires_grad_()
        for shape in [(3, 4), (3, 4), (3, 5)] * 2
    )
    loss, _ = build_loss([{"kind": "consensus", "negatives": "sum"}])

    def of(*parts: Any) -> Any:
        own_image, shared_image, image, own_caption, shared_caption, caption = parts
        return loss(
            batch(
                (own_image, own_image, shared_image, image.log_softmax(1)),
                (own_caption, own_caption, shared_caption, caption.log_softmax(1)),
            )
        )

    assert torch.autograd.gradcheck(of, tensors)


def test_other_models_have_no_concepts() -> None:
    loss, _ = build_loss([{"kind": "consensus"}])
    with pytest.raises(CrosslensError, match="the loss consensus requires the model cvse"):
        loss(batch(torch.zeros(3, 2), torch.zeros(3, 2)))

"""Whether the input is sound: found where planted, silent in clean worlds and where something else is planted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from crosslens.analyze import Planted, Subject, look_into_inputs
from crosslens.analyze.soundness import languages, lists, order, vectors
from crosslens.core import FINDING_KINDS, Observation
from crosslens.rank import rank_lists
from crosslens.storage import Array, random_stream
from crosslens.values import IMAGE_TO_TEXT, TEXT_TO_IMAGE, Dataset, RankedLists, Relevance

_WORDS = (
    "dog cat ball house tree river man woman child street red blue green small large old young runs sits holds near "
    "under behind two three car bus train beach snow table chair cup bird horse boat kite phone"
)
WORDS = _WORDS.split()
PLANTS: Mapping[str, Any] = {
    "chance": order.plant_chance,
    "misaligned": order.plant_misaligned,
    "blank-vectors": vectors.plant_blank_vectors,
    "norms": vectors.plant_norms,
    "hub": lists.plant_hub,
    "ties": lists.plant_ties,
    "language": languages.plant_language,
}
CLEAN: tuple[dict[str, Any], ...] = (
    {},
    {"noise": 2.0},
    {"noise": 3.5, "captions": 1, "images": 300},
    {"twins": 1.0, "noise": 0.8},
    {"twins": 0.6, "blocks": True},
    {"captions": 1, "images": 100},
    {"cone": 2.0},
    {"cone": 2.0, "dimensions": 50, "noise": 2.5},
    {"score": "dot", "noise": 1.0},
    {"score": "dot", "lengths": 0.002, "noise": 1.5},
    {"dimensions": 100, "noise": 3.0},
    {"dimensions": 6, "noise": 0.8},
)
"""Models that are perfect, weak, blind to what tells twins apart, anisotropic; short and long lists of captions."""


def world(
    seed: int, *, images: int = 200, captions: int = 5, noise: float = 0.6, dimensions: int = 24, score: str = "cosine",
    lengths: float = 0.0, twins: float = 0.0, blocks: bool = False, cone: float = 0.0,
) -> Subject:  # fmt: skip
    """Images as points, captions near them. Twins stand next to each other, or in two ``blocks``."""
    stream = random_stream(seed, "world")
    points = stream.standard_normal((images, dimensions))
    rows = np.arange(images // 2)
    first, second = (rows, rows + images // 2) if blocks else (2 * rows, 2 * rows + 1)
    alike = stream.random(len(rows)) < twins
    points[second[alike]] = points[first[alike]] + 0.02 * stream.standard_normal((alike.sum(), dimensions))
    owner = np.repeat(np.arange(images), captions)
    shift = cone * stream.standard_normal(dimensions)
    of_captions = points[owner] + noise * stream.standard_normal((len(owner), dimensions)) + shift
    of_images = points + noise / 2 * stream.standard_normal(points.shape) + 1.1 * shift
    if score == "dot":
        of_images, of_captions = (
            side
            / np.linalg.norm(side, axis=1, keepdims=True)
            * np.exp(lengths * stream.standard_normal((len(side), 1)))
            for side in (of_images, of_captions)
        )
    texts = {f"image {row}": [" ".join(stream.choice(WORDS, 8)) for _ in range(captions)] for row in range(images)}
    return Subject.of(Dataset.of(texts), of_images.astype(np.float32), of_captions.astype(np.float32), score=score)


@pytest.mark.parametrize(("strength", "count"), [(0.01, 1), (0.05, 5), (0.1, 10)])
def test_as_many_vectors_are_blank_as_the_strength_says(strength: float, count: int) -> None:
    subject = world(0, images=100)
    assert subject.images is not None
    planted = vectors.plant_blank_vectors(subject, strength, random_stream(0, "blank"))
    assert planted.subject.images is not None
    changed = (planted.subject.images.vectors != subject.images.vectors).any(axis=1)
    assert changed.sum() == count == len(planted.ids)


@lru_cache(maxsize=4)
def usual() -> Subject:
    return world(0)


def observations(subject: Subject, limit: float = 0.005) -> dict[str, Observation]:
    """What is concluded, by kind: as an audit would, whose correction asks for a p below 5 % by some margin."""
    return {
        observation.kind: observation
        for observation in look_into_inputs(subject).findings()
        if observation.bounded or (observation.p is not None and observation.p < limit)
    }


def moved(subject: Subject, *, images: Array | None = None, captions: Array | None = None) -> Subject:
    """The subject whose vectors stand in other rows."""
    assert subject.images is not None
    assert subject.captions is not None
    if images is not None:
        subject = replace(subject, images=subject.images.part(images, subject.images.ids))
    if captions is not None:
        assert subject.captions is not None
        subject = replace(subject, captions=subject.captions.part(captions, subject.captions.ids))
    return subject.ranked()


def rolled(size: int, start: int, stop: int, by: int) -> Array:
    rows = np.arange(size)
    rows[start:stop] = np.roll(rows[start:stop], by)
    return rows


def clean_worlds(count: int) -> Iterator[tuple[int, dict[str, Any]]]:
    yield from ((seed, CLEAN[seed % len(CLEAN)]) for seed in range(1000, 1000 + count))


@pytest.mark.parametrize(("seed", "options"), [*clean_worlds(7)])
def test_nothing_is_said_of_sound_inputs(seed: int, options: dict[str, Any]) -> None:
    assert not observations(world(seed, **options))


@pytest.mark.slow
def test_nothing_is_said_of_two_hundred_sound_inputs() -> None:
    false = {
        seed: list(kinds) for seed, options in clean_worlds(204) if (kinds := observations(world(seed, **options)))
    }
    assert not false


@pytest.mark.parametrize(
    ("kind", "strength", "options"),
    [
        ("chance", 1.0, {}),
        ("chance", 1.0, {"images": 100, "captions": 1}),
        ("misaligned", 0.1, {}),
        ("misaligned", 0.3, {"noise": 1.5}),
        ("misaligned", 1.0, {"noise": 2.5}),
        ("blank-vectors", 0.05, {}),
        ("blank-vectors", 0.08, {"score": "dot"}),
        ("norms", 0.5, {"score": "dot", "noise": 1.0}),
        ("hub", 0.05, {}),
        ("hub", 0.05, {"score": "dot", "noise": 1.5}),
        ("ties", 0.1, {}),
        ("language", 0.05, {}),
    ],
)
def test_a_planted_defect_is_found_and_no_other(kind: str, strength: float, options: dict[str, Any]) -> None:
    planted: Planted = PLANTS[kind](world(7, **options), strength, random_stream(7, kind))
    observed = observations(planted.subject)
    assert kind in observed
    assert planted.ids
    causes = FINDING_KINDS[kind].details["causes"]
    assert set(observed) <= {kind, *causes}
    evidence = {identifier for ids in observed[kind].evidence for identifier in ids.values()}
    assert kind == "chance" or evidence & planted.ids
    assert observed[kind].text.endswith(".")


@pytest.mark.parametrize("kind", PLANTS)
def test_lists_alone_have_no_plant(kind: str) -> None:
    subject = replace(usual(), images=None, captions=None)
    planted = PLANTS[kind](subject, 0.5, random_stream(0, kind))
    assert bool(planted.ids) == (kind == "language")


@pytest.mark.parametrize(
    ("rows", "start", "stop", "share"),
    [
        (rolled(200, 0, 200, 1), 0, 200, 1.0),
        (rolled(200, 0, 200, -60), 0, 200, 1.0),
        (rolled(200, 140, 200, 1), 140, 200, 0.3),
        (rolled(200, 80, 100, 3), 80, 100, 0.1),
        (np.arange(200)[::-1], 0, 200, 1.0),
        (np.array([*range(60), *range(119, 59, -1), *range(120, 200)]), 60, 120, 0.3),
        (np.argsort([str(row) for row in range(200)]), 0, 200, 1.0),
    ],
    ids=["all by one", "all by sixty", "the last 30 %", "a block", "reversed", "a reversed block", "by sorted ids"],
)
def test_shifted_images_are_located(rows: Array, start: int, stop: int, share: float) -> None:
    observation = observations(moved(usual(), images=rows))["misaligned"]
    assert observation.effect.value == pytest.approx(share, abs=0.04)
    assert observation.effect.low is not None
    assert observation.effect.high is not None
    assert observation.effect.low <= observation.effect.value <= observation.effect.high
    concerned = {int(ids["query"].split("#")[0].split()[1]) for ids in observation.evidence}
    assert concerned <= set(range(start, stop))


def test_rows_in_the_order_of_file_names_are_many_shifts_and_all_of_them_counted() -> None:
    rows = np.array(sorted(range(200), key=lambda row: str(row + 1)))  # 1.jpg, 10.jpg, 100.jpg, …: the ids are others
    observation = observations(moved(usual(), images=rows))["misaligned"]
    assert observation.effect.value > 0.7
    assert (
        len({ids["query"] for ids in observation.evidence})
        == len(observation.evidence)
        == round(1000 * observation.effect.value)
    )
    images = [int(ids["query"].split("#")[0].split()[1]) for ids in observation.evidence]
    assert np.mean(rows[images] != images) > 0.97
    assert "among others" in observation.text


@pytest.mark.parametrize(("by", "share"), [(1, 0.2), (-2, 0.4), (5, 1.0), (12, 1.0)])
def test_shifted_captions_concern_those_that_change_their_image(by: int, share: float) -> None:
    observation = observations(moved(usual(), captions=rolled(1000, 0, 1000, by)))["misaligned"]
    assert observation.effect.value == pytest.approx(share, abs=0.03)


def exchanged(share: float, seed: int, *, in_pairs: bool) -> Array:
    """Rows of which a share stand in a random order among themselves, or are exchanged two by two."""
    stream, rows = random_stream(seed, "exchanged"), np.arange(200)
    part = stream.permutation(200)[: round(200 * share)]
    rows[part] = np.roll(part.reshape(-1, 2), 1, axis=1).ravel() if in_pairs else stream.permutation(part)
    return rows


@pytest.mark.parametrize(
    ("share", "in_pairs", "options"),
    [
        (0.1, True, {}), (0.3, True, {"captions": 1}), (0.3, False, {"noise": 1.2}),
        (0.3, False, {"twins": 1.0, "noise": 0.8}), (0.6, False, {}),
    ],
)  # fmt: skip
def test_exchanged_images_are_located(share: float, in_pairs: bool, options: dict[str, Any]) -> None:
    for seed in range(2):
        rows = exchanged(share, seed, in_pairs=in_pairs)
        observation = observations(moved(world(seed, **options), images=rows))["misaligned"]
        assert observation.effect.value == pytest.approx(np.mean(rows != np.arange(200)), rel=0.25)
        assert observation.effect.high is not None
        assert observation.effect.low == observation.effect.value <= observation.effect.high
        images = [int(ids["query"].split("#")[0].split()[1]) for ids in observation.evidence]
        assert np.mean(rows[images] != images) > 0.9


def test_images_that_are_found_by_one_of_their_captions_are_not_among_the_exchanged() -> None:
    rows = exchanged(0.2, 0, in_pairs=False)
    subject = moved(usual(), images=rows)
    assert subject.captions is not None
    unmoved = np.flatnonzero(rows == np.arange(200))[::40]
    captions = np.array(subject.captions.vectors)
    wrong = np.flatnonzero(np.isin(subject.owner, unmoved) & (np.arange(1000) % 5 > 0))  # four of five captions
    captions[wrong] = random_stream(0, "wrong captions").standard_normal((len(wrong), captions.shape[1]))
    misaligned = observations(subject.with_vectors(captions=captions))["misaligned"]
    images = {int(ids["query"].split("#")[0].split()[1]) for ids in misaligned.evidence}
    assert len(images) > 30
    assert not images & {*unmoved.tolist()}


@pytest.mark.slow
@pytest.mark.parametrize("options", [
    *CLEAN, *({"dimensions": number, "noise": number / 3} for number in (1, 2, 3)), {"noise": 1.5},
    {"dimensions": 4, "noise": 1.5, "captions": 1, "images": 800}, {"twins": 1.0, "noise": 1.5, "blocks": True},
], ids=str)  # fmt: skip
def test_what_a_model_cannot_place_is_not_called_exchanged(options: dict[str, Any]) -> None:
    assert not [seed for seed in range(8) if "misaligned" in observations(world(seed, **options))]


@pytest.mark.parametrize("items", [1, 2, 5])
def test_the_chance_of_so_many_different_draws_is_counted(items: int) -> None:
    draws = [len(set(draw)) for draw in product(range(items), repeat=items)]
    for different in range(1, items + 1):
        counted = np.mean([drawn >= different for drawn in draws])
        assert order._so_many_different(different, items) == pytest.approx(counted)


def test_a_random_order_is_chance() -> None:
    assert set(observations(moved(usual(), images=random_stream(0, "order").permutation(200)))) == {"chance"}


def test_a_weak_model_is_not_called_chance() -> None:
    for seed in range(2):
        weak = world(seed, noise=4.0)
        assert np.nanmean(weak.caption_hits) < 0.05
        assert "chance" not in observations(weak)


def test_twins_that_are_taken_for_each_other_are_not_shifted() -> None:
    for options in ({"twins": 1.0}, {"twins": 1.0, "blocks": True}):
        subject = world(3, **options)
        assert np.nanmean(subject.caption_hits) < 0.7
        assert "misaligned" not in observations(subject)


def test_copies_that_are_worse_than_the_original_are_not_shifted() -> None:
    """The captions of a blurred copy fit the original better, which stands a constant number of rows away."""
    subject = world(3, twins=1.0, blocks=True)
    assert subject.images is not None
    blurred = np.arange(100, 200)
    noise = 0.5 * random_stream(0, "blur").standard_normal((100, 24))
    worse = subject.images.with_rows(blurred, subject.images.vectors[blurred] + noise)
    assert "misaligned" not in observations(replace(subject, images=worse).ranked())


def test_three_kinds_of_hubs() -> None:
    """A mean-like vector under cosine, a long one under the inner product, and a column of a score matrix."""
    near = world(1, noise=1.2)
    assert near.images is not None
    assert near.captions is not None
    gap = 2 * random_stream(0, "gap").standard_normal(24)  # images and captions lie apart, as those of most models do
    captions = near.captions.with_rows(np.arange(1000), near.captions.vectors + gap)
    like_captions = near.images.with_rows([7], near.images.vectors[[7]] + 0.7 * gap)
    observation = observations(replace(near, images=like_captions, captions=captions).ranked())["hub"]
    assert {ids["item"] for ids in observation.evidence} == {"image 7"}

    dot = world(1, score="dot", noise=1.5)
    assert dot.images is not None
    long = dot.images.with_rows([7], 4 * dot.images.vectors[[7]])
    observation = observations(replace(dot, images=long).ranked())["hub"]
    assert {ids["item"] for ids in observation.evidence} == {"image 7"}
    assert observation.effect.value > 0.02

    subject = usual()
    ids, taken = subject.dataset.image_ids, set(random_stream(0, "taken").choice(1000, 50, replace=False).tolist())
    assert subject.captions is not None
    ranking = subject.rankings[TEXT_TO_IMAGE]
    given = {query: [ids[item] for item in ranking.top_items[row]] for row, query in enumerate(ranking.query_ids)}
    for row, (query, items) in enumerate(given.items()):
        if row in taken:
            given[query] = ["image 7", *(item for item in items if item != "image 7")]
    assert observations(of_lists(subject, given))["hub"].effect.value == pytest.approx(0.05, abs=0.01)


def test_the_p_of_a_hub_is_that_of_counts_that_fall_off_exponentially() -> None:
    stream = random_stream(0, "counts")
    p_values = []
    for _ in range(2000):
        top = np.sort(np.floor(stream.exponential(6, 200)))[::-1][: lists._TAIL + lists._MOST_HUBS + 1]
        p_values.append(lists._hubs_in(top, 450)[1])
    assert np.mean(np.array(p_values) < 0.05) <= 0.05
    assert np.mean(np.array(p_values) < 0.002) <= 0.004
    few = np.array([30, 6, 5, 3, 3, *[2] * 12, *[1] * 7], np.float64)
    assert lists._hubs_in(few, 450)[1] < 0.005, "nothing among such counts comes so often"
    assert lists._hubs_in(np.array([14, *few[1:]]), 450)[1] > 0.05, "a count of six is itself uncertain"
    beside = np.array([68, 25, 9, *[4] * 10, *[3] * 10], np.float64)
    assert lists._hubs_in(beside, 750)[1] < 0.005, "beside another hub"
    many = np.array([35, 17, 13, 11, 10, 10, 9, 9, 8, 8, *[7] * 6, *[6] * 8], np.float64)
    assert lists._hubs_in(many, 750)[1] == 1, "of a weak model an item may come twice as often as the next"


def of_lists(subject: Subject, given: Mapping[str, list[str]]) -> Subject:
    """The same dataset with lists of images by caption, and nothing else."""
    data = subject.dataset
    truth = Relevance.from_dataset(data, TEXT_TO_IMAGE)
    return Subject(data, {TEXT_TO_IMAGE: rank_lists(RankedLists.of(given), truth, TEXT_TO_IMAGE)})


def test_lists_alone_are_looked_into() -> None:
    subject = moved(usual(), images=rolled(200, 140, 200, 2))
    only = replace(subject, rankings={TEXT_TO_IMAGE: subject.rankings[TEXT_TO_IMAGE]}, images=None, captions=None)
    result = look_into_inputs(only)
    assert result.not_looked_at == ("blank-vectors", "norms")
    assert set(observations(only)) == {"misaligned"}
    by_image = replace(subject, rankings={IMAGE_TO_TEXT: subject.rankings[IMAGE_TO_TEXT]}, images=None, captions=None)
    assert set(observations(by_image)) == {"misaligned"}


def test_the_result_is_a_table_and_json() -> None:
    result = look_into_inputs(vectors.plant_blank_vectors(usual(), 0.1, random_stream(0, "blank")).subject)
    (section,) = result.sections()
    (table,) = section.tables
    assert table.header == ("check", "what", "value", "verdict")
    assert {row[0] for row in table.rows} == set(PLANTS) - {"norms"}
    assert "unsound" in str(result)
    checks = json.loads(json.dumps(result.as_dict()))["checks"]
    assert {"kind", "text", "effect", "p", "evidence"} <= set(checks[0])


def test_blank_vectors_are_counted() -> None:
    subject = usual()
    assert subject.images is not None
    assert subject.captions is not None
    rows = np.arange(0, 1000, 12)
    for kind, value in (("level", np.full(24, 0.1)), ("equal", subject.captions.vectors.mean(axis=0))):
        blank = subject.captions.with_rows(rows, np.repeat(value[None], len(rows), axis=0).astype(np.float32))
        observation = observations(replace(subject, captions=blank).ranked())["blank-vectors"]
        assert observation.subject == f"captions: {kind}"
        assert observation.effect.value == len(rows) / 1000
        assert {ids["query"] for ids in observation.evidence} == {subject.dataset.caption_ids[row] for row in rows}
    nearly = np.array(subject.images.vectors)
    nearly[::12] = nearly[0] * (1 + 1e-5 * random_stream(0, "rounding").standard_normal((17, 24)))
    observation = observations(subject.with_vectors(nearly))["blank-vectors"]
    assert (observation.subject, observation.effect.value) == ("images: equal", 17 / 200)
    copies = np.array(subject.captions.vectors)
    copies[1:40:2] = copies[0:40:2]
    copied = subject.with_vectors(captions=copies)
    assert observations(copied)["blank-vectors"].subject == "captions: copied"
    vectors_of = dict(zip(copied.dataset.texts, copies, strict=True))  # what a model makes of them is no mistake
    by_model = replace(copied, encode=lambda texts: np.array([vectors_of[text] for text in texts]))
    assert "blank-vectors" not in observations(by_model)
    # Even of a model that gives most captions the vector of another, it tells which captions have what it did not make.
    pairs = np.repeat(subject.captions.vectors[::2], 2, axis=0)
    vectors_of = dict(zip(subject.dataset.texts, pairs, strict=True))
    wrong = pairs.copy()
    wrong[:20] = wrong[500:520]
    coarse = subject.with_vectors(captions=wrong)
    assert "blank-vectors" not in observations(coarse)
    asked = replace(coarse, encode=lambda texts: np.array([vectors_of[text] for text in texts]))
    observation = observations(asked)["blank-vectors"]
    assert {ids["query"] for ids in observation.evidence} == set(subject.dataset.caption_ids[:20])
    few = subject.captions.with_rows([3, 4], np.ones((2, 24), np.float32))
    observation = next(
        observation
        for observation in look_into_inputs(replace(subject, captions=few).ranked()).findings()
        if observation.worth_a_look
    )
    assert observation.p is None  # two of a thousand are worth a look, and make nothing else unsound


def test_shifted_rows_and_blank_vectors_silence_what_they_cause() -> None:
    """Shifted, rows of equal vectors belong to other texts; which captions a blank vector takes is chance."""
    silences = {kind: set(FINDING_KINDS[kind].details["silences"]) for kind in ("misaligned", "blank-vectors", "hub")}
    assert {"*", "blank-vectors"} <= silences["misaligned"]
    assert silences["hub"] < silences["blank-vectors"]


def test_a_constant_with_a_little_noise_is_nearly_one_vector() -> None:
    subject, stream = world(3, cone=1.0), random_stream(0, "nearly")
    assert subject.images is not None
    values = np.array(subject.images.vectors)
    drawn = np.sort(stream.permutation(len(values))[:12])
    spread = float(np.linalg.norm(values - values.mean(axis=0), axis=1).mean())
    for noise, nearly in ((0.01, True), (0.3, False)):
        changed = values.copy()
        moved_by = stream.standard_normal((12, values.shape[1])) / values.shape[1] ** 0.5
        changed[drawn] = values.mean(axis=0) + noise * spread * moved_by
        observation = observations(subject.with_vectors(changed)).get("blank-vectors")
        assert (observation is not None) == nearly
        if observation is not None:
            assert "6.0 % (12) of the images have nearly one and the same vector" in observation.text
            assert {ids["item"] for ids in observation.evidence} == {subject.dataset.image_ids[row] for row in drawn}
    chain = values.copy()  # neighbours on a line, far apart at its ends
    chain[:, :] = values[0]
    chain[:, 0] += np.linspace(0, 40 * spread, len(values))
    assert "blank-vectors" not in observations(subject.with_vectors(chain))


def test_vectors_may_be_equal_for_a_reason() -> None:
    """Encoders that read a part of a caption, and models that tell few things apart."""
    stream = random_stream(0, "points")
    texts = {f"image {row}": [" ".join(stream.choice(WORDS, 8))] for row in range(200)}
    for row in range(100, 200):
        texts[f"image {row}"] = [f"a red ball lies {' '.join(stream.choice(WORDS, 4))}"]
    cut = stream.standard_normal((200, 24)).astype(np.float32)
    cut[100:] = cut[100]
    assert "blank-vectors" not in observations(Subject.of(Dataset.of(texts), stream.standard_normal((200, 24)), cut))
    coarse = world(0, captions=1)
    assert coarse.images is not None
    assert coarse.captions is not None
    few = coarse.images.vectors[np.arange(200) % 10]
    assert "blank-vectors" not in observations(Subject.of(coarse.dataset, few, coarse.captions.vectors))


def test_ties_are_exact() -> None:
    planted = lists.plant_ties(usual(), 0.1, random_stream(0, "ties"))
    observation = observations(planted.subject)["ties"]
    tied = planted.subject.rankings[TEXT_TO_IMAGE]
    assert observation.effect.value == pytest.approx(float(((tied.above == 0) & (tied.tied > 0)).mean()))
    assert observation.p == 0


def test_short_captions_and_typing_mistakes_are_english() -> None:
    stream = random_stream(0, "typing")
    texts: dict[str, list[str]] = {}
    for row in range(200):
        words = [" ".join(stream.choice(WORDS, 3)) for _ in range(2)]
        letters = list(" ".join(stream.choice(WORDS, 9)))
        for place in stream.integers(0, len(letters) - 1, 4):
            letters[place], letters[place + 1] = letters[place + 1], letters[place]
        texts[f"image {row}"] = [*words, "".join(letters)]
    vectors_of = [stream.standard_normal((size, 8)) for size in (200, 600)]
    assert "language" not in observations(Subject.of(Dataset.of(texts), vectors_of[0], vectors_of[1]))


def test_the_language_is_told() -> None:
    planted = languages.plant_language(usual(), 0.03, random_stream(0, "language"))
    observation = observations(planted.subject)["language"]
    assert "German" in observation.text
    assert {ids["query"] for ids in observation.evidence} <= planted.ids

"""Weak groups: silent where all groups are equal, found where one is weak, said once, with a figure that holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from crosslens.analyze import QueryGroup, Subject, group_columns, look_at_groups, look_at_object_sizes, makes_groups
from crosslens.analyze.weak_groups import plant_small_objects, plant_weak_group
from crosslens.values import Dataset


def outcomes(
    captions: Sequence[int],
    columns: Mapping[str, Sequence[str]],
    hits: np.ndarray,
    image_hits: np.ndarray | None = None,
    caption_columns: Mapping[str, Sequence[str]] | None = None,
    seed: int = 0,
) -> Subject:
    """A subject whose outcomes are given: ``captions`` is the number of captions of each image."""
    dataset = Dataset.of({f"i{image}": ["a dog"] * number for image, number in enumerate(captions)}, images=columns)
    if caption_columns:
        table = dataset.captions.with_columns(**{name: pl.Series(values) for name, values in caption_columns.items()})
        dataset = replace(dataset, captions=table)
    subject = Subject(dataset, {}, seed=seed)
    subject.__dict__["caption_hits"] = hits
    subject.__dict__["image_hits"] = np.full(len(captions), np.nan) if image_hits is None else image_hits
    return subject


def random_columns(stream: np.random.Generator, images: int, *, skewed: bool = False) -> dict[str, list[str]]:
    """Six columns of ten values that mean nothing."""
    weights = 0.55 ** np.arange(10) if skewed else np.ones(10)
    draws = stream.choice(10, (6, images), p=weights / weights.sum())
    return {f"column {number}": [f"value {value}" for value in values] for number, values in enumerate(draws)}


def equal_groups(seed: int, images: int, per_image: int | None, mean: float, *, skewed: bool) -> Subject:
    """Images of different difficulty; whether one is found has nothing to do with any column."""
    stream = np.random.default_rng([seed, images, int(1000 * mean)])
    captions = stream.integers(1, 7, images) if per_image is None else np.full(images, per_image)
    ease = stream.beta(mean, 1 - mean, images) if 0 < mean < 1 else np.full(images, mean)
    owner = np.repeat(np.arange(images), captions)
    hits = (stream.random(len(owner)) < ease[owner]).astype(float)
    styles = {"style": [f"style {row % 5}" for row in range(len(owner))]}
    found_by_caption = (stream.random(images) < mean).astype(float)
    return outcomes(captions, random_columns(stream, images, skewed=skewed), hits, found_by_caption, styles, seed)


WORLDS = (
    (600, 1, 0.6, False),
    (600, 1, 0.6, True),
    (120, 5, 0.6, False),
    (120, 5, 0.7, True),
    (200, None, 0.6, True),
    (600, 1, 0.97, False),
    (600, 1, 1.0, False),
    (600, 1, 0.005, False),
)


def share_accused(worlds: Sequence[tuple[int, int | None, float, bool]], audits: int, permutations: int) -> float:
    """In which share of audits a group is named."""
    count = 0
    for images, per_image, mean, skewed in worlds:
        for seed in range(audits):
            subject = equal_groups(seed, images, per_image, mean, skewed=skewed)
            count += bool(look_at_groups(subject, permutations=permutations).weak)
    return count / (audits * len(worlds))


def test_equal_groups_are_not_accused() -> None:
    assert share_accused(WORLDS, 3, 300) <= 0.17  # 24 audits: 1.2 expected at most


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_at_most_one_audit_in_twenty_names_an_equal_group(world: tuple[int, int | None, float, bool]) -> None:
    assert share_accused([world], 300, 1000) <= 0.05 + 2 * (0.05 * 0.95 / 300) ** 0.5


def weak(size: int, points: float, seed: int) -> Subject:
    """600 captions of 600 images, one group of which is below the others by so many points."""
    stream = np.random.default_rng([seed, size])
    columns = random_columns(stream, 600)
    columns["column 0"] = ["weak"] * size + [f"value {value}" for value in stream.integers(0, 9, 600 - size)]
    chances = np.where(np.arange(600) < size, 0.7 - points, 0.7)
    return outcomes([1] * 600, columns, (stream.random(600) < chances).astype(float), seed=seed)


@pytest.mark.parametrize(("size", "points"), [(20, 0.6), (40, 0.5), (100, 0.5)])
def test_a_weak_group_is_named_once_with_its_figure(size: int, points: float) -> None:
    for seed in range(3):
        result = look_at_groups(weak(size, points, seed), permutations=1000)
        first, *others = (group for group in result.groups if group.p <= 0.05)
        assert (*first.group[:2], first.queries) == ("column 0", "weak", size)
        assert not others
        assert first.low - 0.05 <= points <= first.high + 0.05
        observation = next(iter(result.findings()))
        assert observation.kind == "group"
        assert {entry["query"] for entry in observation.evidence} <= {f"i{row}#0" for row in range(size)}
        assert observation.weight == pytest.approx(first.points * size / 600)


@pytest.mark.slow
def test_the_figure_is_not_that_of_the_raw_extreme() -> None:
    intervals = []
    for seed in range(150):
        (group, *_) = look_at_groups(weak(40, 0.25, seed), permutations=1000).groups
        if group.p <= 0.05 and group.group.name == "weak":
            intervals.append((group.points, group.low <= 0.25 <= group.high))
    points, covered = map(np.array, zip(*intervals, strict=True))
    assert len(intervals) > 40
    assert abs(points.mean() - 0.25) < 0.05
    assert covered.mean() > 0.9


@pytest.mark.parametrize(
    ("column", "name", "words"),
    [
        ("style", "sparse", "style “sparse”"),
        ("ship_type", "two masts", "ship type “two masts”"),
        ("things", "1", "queries where “things” is 1"),
        ("tone", "-0.5", "queries where “tone” is -0.5"),
        ("year_taken", "[1990, 2001)", "queries where “year taken” is from 1990 to below 2001"),
        ("area", "[0.25, 0.5]", "queries where “area” is from 0.25 to 0.5"),
        ("caption_length", "[3, 7)", "captions of 3 to 6 words"),
        ("caption_length", "4", "captions of 4 words"),
    ],
)
def test_a_group_is_called_by_words(column: str, name: str, words: str) -> None:
    assert QueryGroup(column, name, "t2i", False, np.zeros(0, np.int64)).where == words


def test_what_two_columns_say_of_the_same_queries_is_said_once() -> None:
    subject = weak(60, 0.6, 0)
    images = subject.dataset.images.with_columns(again=pl.col("column 0"))
    copied = outcomes([1] * 600, {name: images[name].to_list() for name in images.columns[1:]}, subject.caption_hits)
    (group,) = look_at_groups(copied, permutations=1000).weak
    assert group.also == ("again “weak”",)


def test_a_second_weak_group_is_named_after_the_first() -> None:
    stream = np.random.default_rng(0)
    columns = random_columns(stream, 600)
    columns["other"] = ["weak too" if row >= 500 else f"value {row % 7}" for row in range(600)]
    columns["column 0"] = ["weak"] * 80 + ["strong"] * 520
    chances = np.where(np.arange(600) < 80, 0.1, np.where(np.arange(600) >= 500, 0.3, 0.8))
    subject = outcomes([1] * 600, columns, (stream.random(600) < chances).astype(float))
    groups = look_at_groups(subject, permutations=1000).weak
    assert [group.group.name for group in groups] == ["weak", "weak too"]
    assert groups[0].p <= groups[1].p


def by_words(chances: Mapping[int, float], per_length: int, **columns: Callable[[int], str]) -> Subject:
    """Captions of so many words, and how often each length is found; columns that are functions of the length."""
    words = np.repeat(sorted(chances), per_length)
    texts = {f"i{row}": [" ".join(["dog"] * length)] for row, length in enumerate(words.tolist())}
    values = {name: [function(length) for length in words.tolist()] for name, function in columns.items()}
    subject = Subject(Dataset.of(texts, images=values), {})
    caption_hits = [(np.arange(per_length) < round(chances[length] * per_length)) for length in sorted(chances)]
    subject.__dict__["caption_hits"] = np.concatenate(caption_hits).astype(float)
    subject.__dict__["image_hits"] = np.full(len(words), np.nan)
    return subject


def where(subject: Subject) -> list[str]:
    return [group.group.where for group in look_at_groups(subject, permutations=600).weak]


def test_lengths_that_are_weak_together_are_one_group() -> None:
    chances = {length: 0.3 if length in (5, 6, 7) else 0.8 for length in range(4, 13)}
    assert where(by_words(chances, 30)) == ["captions of 5 to 7 words"]
    few = by_words({length: 0.6 if length > 8 else 0.8 for length in range(4, 13)}, 30)
    assert where(few) == ["captions of 9 to 12 words"], "one alone is too small"
    bins = {length: 0.3 if 11 <= length < 21 else 0.8 for length in range(1, 41)}  # quartiles
    assert where(by_words(bins, 8)) == ["captions of 11 to 20 words"]


def test_a_slope_is_said_once_and_a_second_hollow_too() -> None:
    slope = {length: min(0.9, 0.2 + 0.1 * (length - 4)) for length in range(4, 12)}
    assert len(where(by_words(slope, 40))) == 1
    hollows = {length: 0.2 if length < 6 else 0.35 if length > 10 else 0.85 for length in range(4, 13)}
    assert where(by_words(hollows, 40)) == ["captions of 4 to 5 words", "captions of 11 to 12 words"]


def test_a_column_that_follows_from_another_says_nothing_again() -> None:
    slope = {length: min(0.85, 0.2 + 0.11 * (length - 4)) for length in range(4, 12)}
    kind = {"size": lambda length: "short" if length < 8 else "long", "parity": lambda length: str(length % 2)}
    assert len(where(by_words(slope, 40, **kind))) == 1


def test_the_order_of_rows_makes_no_group_weak() -> None:
    """Of two images with one vector the first comes first; the second is found no worse for it."""
    stream = np.random.default_rng(0)
    vectors = stream.standard_normal((100, 16)).astype(np.float32)
    dataset = Dataset.of(
        {f"i{image}": [f"caption {image}"] for image in range(200)}, images={"role": ["first"] * 100 + ["second"] * 100}
    )
    subject = Subject.of(dataset, np.tile(vectors, (2, 1)), np.tile(vectors, (2, 1)))
    assert set(subject.caption_hits) == set(subject.image_hits) == {0.5}
    assert not look_at_groups(subject, permutations=200).weak


def test_captions_of_an_image_are_one_unit() -> None:
    """Twenty images whose five captions fail or succeed together say no more than twenty outcomes."""
    accused = 0
    for seed in range(20):
        stream = np.random.default_rng(seed)
        hits = np.repeat(stream.random(60) < 0.5, 5).astype(float)
        columns = random_columns(stream, 60)
        accused += bool(look_at_groups(outcomes([5] * 60, columns, hits), permutations=400).weak)
    assert accused <= 4


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("Nr", list(range(100)), False),
        ("width", [640, 480] * 50, False),
        ("image_id", ["a", "b"] * 50, False),
        ("score", [number / 7 for number in range(100)], True),
        ("rank", [float(number) for number in range(100)], False),
        ("kind", ["a", "b"] * 50, True),
        ("name", [f"name {number}" for number in range(100)], False),
        ("things", [1, 2, 3, 4] * 25, True),
        ("same", ["a"] * 100, False),
        ("tags", [["a"], ["b"]] * 50, False),
    ],
)
def test_columns_that_make_groups(name: str, values: list[object], expected: bool) -> None:
    assert makes_groups(pl.Series(name, values)) is expected


def test_a_column_that_names_other_images_makes_no_groups() -> None:
    columns = {"original": [f"i{row % 3}" for row in range(60)], "kind": ["a", "b", "c"] * 20}
    subject = outcomes([1] * 60, columns, np.ones(60))
    assert list(group_columns(subject.dataset)) == ["kind"]


# With vectors, and objects


def with_objects(seed: int = 0, images: int = 300) -> Subject:
    """Images of one to three objects, each with a box; captions near their images."""
    stream = np.random.default_rng(seed)
    rows = [
        {"image": f"i{image}", "name": "dog", "x": 0.0, "y": 0.0, "w": side, "h": side}
        for image in range(images)
        for side in stream.uniform(5, 90, 1 + image % 3)
    ]
    columns = {
        "width": [100] * images,
        "height": [100] * images,
        "kind": [f"kind {image % 3}" for image in range(images)],
    }
    dataset = Dataset.of({f"i{image}": ["a dog runs", "a dog"] for image in range(images)}, images=columns)
    dataset = replace(dataset, objects=pl.DataFrame(rows))
    pictures = stream.standard_normal((images, 24)).astype(np.float32)
    texts = pictures[dataset.caption_image] + 0.9 * stream.standard_normal((2 * images, 24)).astype(np.float32)
    return Subject.of(dataset, pictures, texts.astype(np.float32), seed=seed)


def test_small_objects() -> None:
    clean = with_objects()
    result = look_at_object_sizes(clean, permutations=400)
    assert result.small is not None
    assert result.small.p > 0.05
    for strength in (0.25, 0.5):
        planted = plant_small_objects(clean, strength, np.random.default_rng(1))
        groups = look_at_groups(planted.subject, permutations=1000)
        assert groups.sizes.small is not None
        assert groups.sizes.small.p < 0.01
        assert not groups.weak, "what small objects explain is not said of columns"
        assert abs(groups.sizes.small.points - strength * np.nanmean(clean.caption_hits)) < 0.15
        (observation,) = (observation for observation in groups.findings() if observation.kind == "object-size")
        assert {entry["query"] for entry in observation.evidence} <= planted.ids


def test_a_group_of_many_objects_is_not_blamed_on_their_size() -> None:
    clean = with_objects()
    sizes = clean.dataset.objects
    assert sizes is not None
    shrunk = sizes.with_columns(
        w=pl.when(pl.col("image").str.slice(1).cast(pl.Int64) % 3 == 2).then(pl.col("w") / 9).otherwise(pl.col("w"))
    )
    subject = replace(clean, dataset=replace(clean.dataset, objects=shrunk))
    rows = np.flatnonzero(subject.owner % 3 == 2)
    hits = clean.caption_hits.copy()
    hits[rows[::2]] = 0  # the weak group is a kind, whose objects are small
    subject.__dict__["caption_hits"] = hits
    result = look_at_groups(subject, permutations=1000)
    assert result.sizes.small is None or result.sizes.small.p > 0.05
    assert [group.group.name for group in result.weak][:1] == ["kind 2"]


def test_a_planted_group_is_found() -> None:
    clean = with_objects()
    assert not look_at_groups(clean, permutations=400).weak
    planted = plant_weak_group(clean, 0.5, np.random.default_rng(2))
    groups = look_at_groups(planted.subject, permutations=1000)
    assert groups.weak
    evidence = {entry["query"] for entry in next(iter(groups.findings())).evidence}
    assert len(evidence & planted.ids) > 0.8 * len(evidence)


def test_without_vectors_nothing_is_planted() -> None:
    subject = equal_groups(0, 60, 1, 0.6, skewed=False)
    assert not plant_weak_group(subject, 0.5, np.random.default_rng(0)).ids
    assert not plant_small_objects(subject, 0.5, np.random.default_rng(0)).ids


@pytest.mark.parametrize("defect", ["blank", "hub", "swapped", "noise"])
def test_silent_where_another_defect_is_planted(defect: str) -> None:
    """Defects that have nothing to do with columns or sizes."""
    accused = 0
    for seed in range(6):
        clean, stream = with_objects(seed, 200), np.random.default_rng(100 + seed)
        assert clean.images is not None
        assert clean.captions is not None
        images, captions = (np.array(side.vectors, np.float32) for side in (clean.images, clean.captions))
        rows = stream.permutation(len(captions))[: len(captions) // 5]
        if defect == "blank":
            images[stream.permutation(len(images))[:16]] = 1e-6
        elif defect == "hub":
            images[3] = 4 * captions.mean(axis=0) + images[3]
        elif defect == "swapped":
            captions[rows] = captions[np.roll(rows, 1)]
        else:
            captions[rows] = stream.standard_normal((len(rows), captions.shape[1]))
        result = look_at_groups(Subject.of(clean.dataset, images, captions, seed=seed), permutations=300)
        accused += sum(observation.p is not None and observation.p < 0.05 for observation in result.findings())
    assert accused <= 2

"""Defects of our own, planted into worlds: each at several strengths, with the ids that have it."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from claims_encoders import COLOURS, NUMBERS, POSITIONS, blind, brittle, truncating, unit, words_of
from claims_oracle import hits
from claims_worlds import CACHE, World, grammar_facts, in_german

Array = np.ndarray[Any, Any]
Random = np.random.Generator


class Defect(NamedTuple):
    """A world with a defect; the ids that have it (None: all), and further kinds that are true for the same reason."""

    world: World
    ids: set[str] | None = None
    also: Mapping[str, set[str] | None] = {}


Plant = Callable[[World, Any, Random], Defect]


@dataclass(frozen=True)
class Planting:
    """A way to plant a kind of defect: at which strengths, weakest first, and into which worlds."""

    name: str
    kind: str
    strengths: tuple[Any, ...]
    worlds: tuple[str, ...]
    plant: Plant = field(repr=False)


PLANTINGS: dict[str, Planting] = {}


def planting(name: str, kind: str, strengths: Sequence[Any], worlds: str) -> Callable[[Plant], Plant]:
    """Register a way to plant a kind of defect."""

    def register(plant: Plant) -> Plant:
        PLANTINGS[name] = Planting(name, kind, tuple(strengths), tuple(worlds.split()), plant)
        return plant

    return register


def _some(random: Random, number: int, share: float, least: int = 1) -> Array:
    return np.sort(random.permutation(number)[: max(least, round(share * number))])


def _ids(ids: Sequence[str], rows: Array) -> set[str]:
    return {ids[row] for row in rows.tolist()}


# Vectors and scores


def _strong_enough(
    make: Callable[[float], World], effect: Callable[[World], float], wanted: float, most: float
) -> World:
    """The world whose defect has the wanted effect, which grows with what ``make`` is given, up to ``most``."""
    low, high, changed = 0.0, most, make(most)
    for _ in range(14):
        middle = (low + high) / 2
        weaker = make(middle)
        if effect(weaker) < wanted:
            low = middle
        else:
            high, changed = middle, weaker
    return changed


def _takes(row: int) -> Callable[[World], float]:
    """The share of the captions for which an image is first."""
    return lambda world: float((world.similarity.argmax(axis=0) == row).mean())


@planting("hub, mean vector", "hub", (0.05, 0.1, 0.3), "grammar scenes-v0-good flickr-hashing")
def mean_hub(world: World, strength: float, random: Random) -> Defect:
    """An image is near the mean of all captions, which have so much in common that it is first for this share."""
    row = int(random.integers(len(world.images)))
    common = unit(random.standard_normal(world.images.shape[1]))

    def make(part: float) -> World:
        captions = unit(unit(world.captions) + part * common)
        images = unit(world.images)
        images[row] = unit(images[row] + part * unit(captions.mean(axis=0)))
        return replace(world, images=images, captions=captions, encode=None, given=True)

    return Defect(_strong_enough(make, _takes(row), strength, 6.0), {world.dataset.image_ids[row]})


@planting("hub, long vector", "hub", (0.05, 0.1, 0.3), "grammar scenes-v0-good flickr-hashing")
def long_hub(world: World, strength: float, random: Random) -> Defect:
    """One image's vector is so long that it is first for this share by the dot product."""
    row = int(random.integers(len(world.images)))

    def make(longer: float) -> World:
        images = unit(world.images)
        images[row] *= 1 + longer
        return replace(world, images=images, captions=unit(world.captions), score="dot")

    return Defect(_strong_enough(make, _takes(row), strength, 50.0), {world.dataset.image_ids[row]})


@planting("hub, inflated scores", "hub", (0.05, 0.1, 0.3), "grammar scenes-v0-good coco-hashing")
def score_hub(world: World, strength: float, random: Random) -> Defect:
    """One image's scores are so much higher that it is first for this share; only scores are given."""
    row, before = int(random.integers(len(world.images))), world.similarity

    def make(higher: float) -> World:
        scores = before.copy()
        scores[row] += higher
        return replace(world, scores=scores, encode=None)

    most = float(before.max() - before.min())
    return Defect(_strong_enough(make, _takes(row), strength, most), {world.dataset.image_ids[row]})


@planting("blank images", "blank-vectors", (0.02, 0.08), "grammar scenes-v0-good flickr-hashing scenes-v0-tiny")
def blank_images(world: World, strength: float, random: Random) -> Defect:
    """This share of the images has a vector of zeros."""
    rows, images = _some(random, len(world.images), strength, 2), unit(world.images)
    images[rows] = 0  # which have no cosine
    changed = replace(world, images=images, captions=unit(world.captions), score="dot")
    return Defect(changed, _ids(world.dataset.image_ids, rows))


@planting("constant images", "blank-vectors", (0.02, 0.08), "grammar coco-hashing scenes-v0-tiny")
def constant_images(world: World, strength: float, random: Random) -> Defect:
    """This share of the images has the vector of one of them."""
    rows, images = _some(random, len(world.images), strength, 3), world.images.copy()
    images[rows] = images[rows[0]]
    return Defect(replace(world, images=images), _ids(world.dataset.image_ids, rows))


@planting("blank captions", "blank-vectors", (0.02, 0.08), "grammar flickr-hashing")
def blank_captions(world: World, strength: float, random: Random) -> Defect:
    """This share of the captions has a vector of zeros."""
    rows, captions = _some(random, len(world.captions), strength, 2), unit(world.captions)
    captions[rows] = 0
    changed = replace(world, images=unit(world.images), captions=captions, score="dot", encode=None, given=True)
    return Defect(changed, _ids(world.dataset.caption_ids, rows))


@planting("unequal lengths", "norms", (0.3, 1.0), "grammar scenes-v0-good flickr-hashing")
def unequal_lengths(world: World, strength: float, random: Random) -> Defect:
    """Lengths of image vectors are log-normal with this σ, and the score is the dot product."""
    images = unit(world.images) * np.exp(strength * random.standard_normal((len(world.images), 1)))
    return Defect(replace(world, images=images, captions=unit(world.captions), score="dot"))


@planting("shift of images", "misaligned", (0.3, 1.0), "grammar scenes-v0-good flickr-hashing scenes-v0-tiny")
def shift_images(world: World, strength: float, random: Random) -> Defect:
    """The last rows, this share of them, hold the vector of the image before."""
    number = len(world.images)
    rows = np.arange(number - round(strength * number), number)
    images = world.images.copy()
    images[rows] = np.roll(images[rows], 1, axis=0)
    return Defect(replace(world, images=images), _shifted(world, rows))


def _shifted(world: World, rows: Array) -> set[str]:
    captions = np.flatnonzero(np.isin(world.owner, rows))
    return _ids(world.dataset.image_ids, rows) | _ids(world.dataset.caption_ids, captions)


@planting("shift in the middle", "misaligned", (0.33,), "grammar flickr-hashing")
def shift_middle(world: World, strength: float, random: Random) -> Defect:
    """The middle rows, this share of them, hold the vector of the image after."""
    number = len(world.images)
    start = round(number * (1 - strength) / 2)
    rows = np.arange(start, start + round(strength * number))
    images = world.images.copy()
    images[rows] = np.roll(images[rows], -1, axis=0)
    return Defect(replace(world, images=images), _shifted(world, rows))


@planting("rows in random order", "misaligned", (0.1, 0.3), "grammar flickr-hashing scenes-v0-tiny")
def rows_in_random_order(world: World, strength: float, random: Random) -> Defect:
    """This share of the images, from anywhere, have changed places."""
    rows = np.sort(random.choice(len(world.images), round(strength * len(world.images)), replace=False))
    images = world.images.copy()
    images[rows] = images[random.permutation(rows)]
    return Defect(replace(world, images=images), _shifted(world, rows))


@planting("captions shifted by one", "misaligned", (1,), "grammar flickr-hashing scenes-v0-good")
def shift_captions(world: World, strength: int, random: Random) -> Defect:
    """Every caption has the vector of the caption before."""
    captions = np.roll(world.captions, strength, axis=0)
    return Defect(replace(world, captions=captions, encode=None, given=True))


@planting("random images", "chance", (1.0,), "grammar scenes-v0-good flickr-hashing coco-hashing")
def random_images(world: World, strength: float, random: Random) -> Defect:
    """Image vectors are noise."""
    return Defect(replace(world, images=unit(random.standard_normal(world.images.shape))))


@planting("shuffled images", "chance", (1.0,), "grammar flickr-hashing coco-hashing")
def shuffled_images(world: World, strength: float, random: Random) -> Defect:
    """Rows of images are in another order."""
    images = world.images[random.permutation(len(world.images))]
    return Defect(replace(world, images=images), None, {"misaligned": None})


def decided_by_ties(world: World) -> float:
    """The share of the captions whose own image has the highest score, and not alone."""
    scores = world.similarity.astype(np.float32)
    top = scores.max(axis=0)
    own = scores[world.owner, np.arange(len(world.owner))] == top
    return float((own & ((scores == top).sum(axis=0) > 1)).mean())


@planting("rounded scores", "ties", (0.04, 0.15), "grammar scenes-v0-good coco-hashing")
def rounded_scores(world: World, strength: float, random: Random) -> Defect:
    """Scores are rounded so much that ties decide this share of Hit@1; only scores are given."""
    scores = world.similarity

    def make(step: float) -> World:
        return replace(world, scores=np.round(scores / max(step, 1e-9)), encode=None)

    return Defect(_strong_enough(make, decided_by_ties, strength, float(np.ptp(scores)) / 4))


@planting("quantised vectors", "ties", (0.04, 0.1), "grammar scenes-v0-good flickr-hashing")
def quantised(world: World, strength: float, random: Random) -> Defect:
    """Vectors of 64 numbers have so few steps that ties decide this share of Hit@1."""

    def coarse(vectors: Array, step: float) -> Array:
        part = unit(vectors)[:, :64]
        return np.round(part / max(step, 1e-6))

    def make(step: float) -> World:
        images, captions = coarse(world.images, step), coarse(world.captions, step)
        return replace(world, images=images, captions=captions, score="dot", encode=None, given=True)

    changed = _strong_enough(make, decided_by_ties, strength, 0.5)
    return Defect(changed, None, {"blank-vectors": None, "norms": None})


# What the model reads


_MANY = "grammar scenes-v0-good flickr-hashing coco-hashing scenes-v0-tiny flickr-minilm"
for _ability, _worlds in (
    *((_stated, _MANY) for _stated in ("colour", "count", "position", "order")),
    ("action", "flickr-hashing coco-hashing flickr-minilm"),
    ("text", "scenes-v0-good scenes-v0-tiny"),
):

    @planting(f"{_ability}-blind", _ability, (1.0,), _worlds)
    def blind_encoder(world: World, strength: float, random: Random, ability: str = _ability) -> Defect:
        """The text encoder cannot tell captions apart that differ in nothing else."""
        assert world.encode is not None
        return Defect(world.encoded_anew(blind(world.encode, ability)))


@planting(
    "reads eight words", "truncation", (10, 6), "grammar scenes-v0-good flickr-hashing coco-hashing scenes-v0-tiny"
)
def few_words(world: World, strength: int, random: Random) -> Defect:
    """The text encoder reads so many words."""
    assert world.encode is not None
    return Defect(world.encoded_anew(truncating(world.encode, strength)))


@planting("77 words of long captions", "truncation", (77,), "flickr-hashing coco-hashing")
def long_captions(world: World, strength: int, random: Random) -> Defect:
    """Captions are all of an image in a row, three times; the text encoder reads so many words of them."""
    assert world.encode is not None
    texts: list[str] = []
    for row, text in enumerate(world.dataset.texts):
        others = [
            world.dataset.texts[other] for other in np.flatnonzero(world.owner == world.owner[row]) if other != row
        ]
        texts.append(" ".join([text, *others, *random.permutation(others).tolist()]))
    dataset = replace(world.dataset, captions=world.dataset.captions.with_columns(pl.Series("text", texts)))
    return Defect(replace(world, dataset=dataset).encoded_anew(truncating(world.encode, strength)))


@planting("brittle to typos", "typos", (1.0,), "grammar scenes-v0-good flickr-hashing coco-hashing")
def typo_brittle(world: World, strength: float, random: Random) -> Defect:
    """A text with an unknown word means nothing to the model."""
    assert world.encode is not None
    vocabulary = frozenset(word for text in world.dataset.texts for word in words_of(text))
    return Defect(world.encoded_anew(brittle(world.encode, vocabulary | COLOURS | NUMBERS | POSITIONS)))


# Groups


def _weakened(world: World, members: Array, points: float, random: Random) -> World:
    """The members' captions hit less often by so many points: as many of those that hit have another's vector."""
    hit = hits(world)
    lost = round(points * members.sum())
    candidates = random.permutation(np.flatnonzero(members & hit))[:lost]
    captions = np.array(world.captions)
    noise = random.standard_normal((len(candidates), captions.shape[1]))
    others = random.permutation(len(captions))[: len(candidates)]
    captions[candidates] = unit(0.5 * unit(noise) + 0.5 * unit(captions[others]))
    return replace(world, captions=captions, encode=None, given=True)


@planting("weak category", "group", (0.25, 0.5), "grammar scenes-v0-good flickr-hashing coco-hashing")
def weak_category(world: World, strength: float, random: Random) -> Defect:
    """A fifth of the images is of a category in which captions hit so many points less often."""
    number = len(world.dataset.image_ids)
    rows = _some(random, number, 0.2)
    names = np.array(["indoors", "street", "nature", "sports"])[random.integers(0, 4, number)]
    names[rows] = "night"
    dataset = replace(world.dataset, images=world.dataset.images.with_columns(pl.Series("scene_kind", names.tolist())))
    members = np.isin(world.owner, rows)
    changed = _weakened(replace(world, dataset=dataset), members, strength, random)
    return Defect(changed, _shifted(world, rows))


@planting("weak long captions", "group", (0.25, 0.5), "flickr-hashing coco-hashing scenes-v0-good")
def weak_length(world: World, strength: float, random: Random) -> Defect:
    """The longest quarter of the captions hits so many points less often."""
    lengths = np.array([len(words_of(text)) for text in world.dataset.texts])
    members = lengths >= np.quantile(lengths, 0.75)
    changed = _weakened(world, members, strength, random)
    # A group of lengths may reach below the planted one.
    near = np.flatnonzero(lengths >= np.quantile(lengths, 0.7))
    return Defect(changed, _ids(world.dataset.caption_ids, near))


@planting("weak on small objects", "object-size", (0.3, 0.6), "scenes-v0-good coco-hashing")
def small_objects(world: World, strength: float, random: Random) -> Defect:
    """Images whose largest object is among the smallest quarter lose so many points."""
    assert world.dataset.objects is not None
    area = world.dataset.objects.group_by("image").agg((pl.col("w") * pl.col("h")).max().alias("area"))
    size = dict(area.iter_rows())
    frame = world.dataset.images
    whole = {
        image: (frame["width"][row] * frame["height"][row] if "width" in frame.columns else 1)
        for row, image in enumerate(world.dataset.image_ids)
    }
    parts = np.array([size.get(image) and size[image] / whole[image] for image in world.dataset.image_ids], float)
    rows = np.flatnonzero(parts <= np.nanquantile(parts, 0.3))
    changed = _weakened(world, np.isin(world.owner, rows), strength, random)
    near = np.flatnonzero(parts <= np.nanquantile(parts, 0.4))
    ids = _shifted(world, near)
    return Defect(changed, ids, {"group": ids})


@planting("twins told apart by nothing", "twins", (0.9, 1.0), "grammar-twins signs-v1-perfect sides-v1-perfect")
def confused_twins(world: World, strength: float, random: Random) -> Defect:
    """Captions of two pictures that are twins have one vector, up to noise, in so many of the pairs."""
    ids = world.dataset.image_ids
    if "original" in world.dataset.images.columns:
        originals = zip(ids, world.dataset.images["original"], strict=True)
        pairs = [(world.dataset.image_rows[of], world.dataset.image_rows[image]) for image, of in originals if of]
    else:
        pairs = [(row, row + 1) for row in range(0, len(ids) - 1, 2)]
    captions = np.array(world.captions)
    names: set[str] = set()
    for number in random.permutation(len(pairs))[: round(strength * len(pairs))].tolist():
        for both in zip(*(np.flatnonzero(world.owner == image) for image in pairs[number]), strict=False):
            mean = unit(captions[list(both)].sum(axis=0))
            captions[list(both)] = unit(mean + 0.02 * random.standard_normal((2, len(mean))) / len(mean) ** 0.5)
            names |= _ids(world.dataset.caption_ids, np.array(both))
    return Defect(replace(world, captions=captions, encode=None, given=True), names, {"group": None})


# Labels


@planting(
    "swapped captions",
    "swapped-captions",
    (0.03, 0.05, 0.1),
    "grammar scenes-v0-good flickr-hashing coco-hashing flickr-minilm",
)
def swapped(world: World, strength: float, random: Random) -> Defect:
    """This share of the captions stands at another image, two and two."""
    number = max(2, round(strength * len(world.owner)) // 2 * 2)
    rows: list[int] = []
    for row in random.permutation(len(world.owner)).tolist():
        if len(rows) < number and (len(rows) % 2 == 0 or world.owner[row] != world.owner[rows[-1]]):
            rows.append(row)
    images = world.dataset.captions["image"].to_list()
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        images[first], images[second] = images[second], images[first]
    dataset = replace(world.dataset, captions=world.dataset.captions.with_columns(pl.Series("image", images)))
    ids = _ids(world.dataset.caption_ids, np.array(rows))
    own = dict(zip(world.dataset.caption_ids, world.dataset.captions["image"], strict=True))
    fits = world.fits

    def fits_now(caption: str, image: str) -> bool:
        return own[caption] == image if caption in ids else fits(caption, image)

    return Defect(replace(world, dataset=dataset, fits=fits_now), ids, {"missing-positives": ids})


@planting("pictures saved again", "same-image", (0.02, 0.06), "scenes-v0-good scenes-v0-tiny coco-hashing")
def saved_again(world: World, strength: float, random: Random) -> Defect:
    """This share of the images is in the dataset again as a JPEG, with captions of its own."""
    from PIL import Image

    candidates = [row for row, image in enumerate(world.dataset.image_ids) if image in world.pictures]
    rows = np.array(sorted(random.permutation(candidates)[: max(2, round(strength * len(candidates)))].tolist()))
    folder = CACHE / "pictures" / f"{world.name}-{world.seed}-{strength}"
    folder.mkdir(parents=True, exist_ok=True)
    names = {world.dataset.image_ids[row]: f"9{row:05d}" for row in rows.tolist()}
    pictures, image_rows, captions = dict(world.pictures), [], world.dataset.captions
    for image, copy in names.items():
        content = io.BytesIO()
        with Image.open(world.pictures[image]) as picture:
            picture.convert("RGB").save(content, "JPEG", quality=88)
        (folder / f"{copy}.jpg").write_bytes(content.getvalue())
        pictures[copy] = str(folder / f"{copy}.jpg")
        row = world.dataset.images.filter(pl.col("image") == image).with_columns(pl.lit(copy).alias("image"))
        image_rows.append(row.with_columns(pl.lit(pictures[copy]).alias("file")) if "file" in row.columns else row)
    # Half of the captions of each go to the copy, so that both have captions of their own.
    moved = {
        caption for image in names for caption in captions.filter(pl.col("image") == image)["caption"].to_list()[::2]
    }
    owners = [
        names[image] if caption in moved else image
        for caption, image in captions.select("caption", "image").iter_rows()
    ]
    dataset = replace(
        world.dataset, images=pl.concat([world.dataset.images, *image_rows], how="vertical_relaxed"),
        captions=captions.with_columns(pl.Series("image", owners)),
    )  # fmt: skip
    noise = 0.02 * random.standard_normal((len(rows), world.images.shape[1]))
    images = np.concatenate([world.images, unit(unit(world.images[rows]) + noise)])
    ids = {*names, *names.values()}
    concerned = set(dataset.captions.filter(pl.col("image").is_in(list(ids)))["caption"])
    twin_of = {**names, **{copy: image for image, copy in names.items()}}
    own = dict(zip(dataset.captions["caption"], dataset.captions["image"], strict=True))
    fits = world.fits

    def fits_now(caption: str, image: str) -> bool:
        return twin_of.get(own[caption]) == image or fits(caption, image)

    changed = replace(world, dataset=dataset, images=images, pictures=pictures, fits=fits_now)
    return Defect(changed, ids, {"missing-positives": concerned | ids})


@planting("captions used twice", "same-caption", (0.02, 0.06), "grammar flickr-hashing coco-hashing scenes-v0-good")
def used_twice(world: World, strength: float, random: Random) -> Defect:
    """This share of the captions has the text of another image's caption."""
    rows = random.permutation(len(world.owner))
    number = max(2, round(strength * len(rows)))
    to, texts = rows[:number], list(world.dataset.texts)
    sources = [int(row) for row in rows[number:] if world.owner[row] not in world.owner[to]][:number]
    captions = np.array(world.captions)
    for row, source in zip(to.tolist(), sources, strict=True):
        texts[row] = texts[source]
        captions[row] = captions[source]
    dataset = replace(world.dataset, captions=world.dataset.captions.with_columns(pl.Series("text", texts)))
    ids = _ids(world.dataset.caption_ids, np.concatenate([to, np.array(sources)]))
    # The caption that was replaced is wrong about its image: it is a swapped caption, too.
    wrong = _ids(world.dataset.caption_ids, to)
    return Defect(
        replace(world, dataset=dataset, captions=captions), ids, {"swapped-captions": wrong, "missing-positives": ids}
    )


_SENTENCES = (
    "Ein Mann mit einem Hut steht neben seinem alten Fahrrad",
    "Zwei Kinder spielen am Strand mit einem bunten Ball",
    "Die Frau trägt einen roten Mantel und geht über die Straße",
    "Ein brauner Hund springt über einen kleinen Zaun",
    "Mehrere Leute sitzen vor dem Haus und unterhalten sich",
    "Auf dem Tisch liegt ein Teller mit frischem Gemüse",
    "Der Junge fährt mit seinem Skateboard die Rampe hinunter",
    "Eine Gruppe von Wanderern steht auf einem verschneiten Berg",
    "Das Mädchen lacht und hält einen gelben Luftballon in der Hand",
    "Ein Zug fährt langsam in den alten Bahnhof ein",
    "Die Katze schläft auf dem weichen Sofa im Wohnzimmer",
    "Zwei Männer in blauen Trikots kämpfen um den Ball",
    "Ein Reiter auf einem weißen Pferd galoppiert durch den Wald",
    "Viele Boote liegen am Abend ruhig im Hafen",
)


@planting("captions in German", "language", (0.05, 0.2), "grammar flickr-hashing coco-hashing")
def in_another_language(world: World, strength: float, random: Random) -> Defect:
    """This share of the captions is in German; a model of both languages has the same vectors for them."""
    rows, texts = _some(random, len(world.owner), strength, 5), list(world.dataset.texts)
    stated = getattr(world.encode, "facts", None)
    for row in rows.tolist():
        facts = {**grammar_facts(random), **(stated(texts[row]) if stated else {})}
        texts[row] = (
            in_german(facts) if stated else str(random.choice(_SENTENCES)) + f" um {int(random.integers(1, 24))} Uhr"
        )
    dataset = replace(world.dataset, captions=world.dataset.captions.with_columns(pl.Series("text", texts)))
    ids = _ids(world.dataset.caption_ids, rows)
    also: dict[str, set[str] | None] = {} if stated else {"swapped-captions": ids}
    changed = replace(world, dataset=dataset)
    if stated:
        assert world.encode is not None
        changed = changed.encoded_anew(world.encode)
    return Defect(changed, ids, also)

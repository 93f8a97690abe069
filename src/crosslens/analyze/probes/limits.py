"""How much of a caption a model reads, and what typing errors cost it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from crosslens.analyze.probes.pairs import Encodings, lengths
from crosslens.analyze.subject import Subject
from crosslens.core import STATED_SIZE, Evidence
from crosslens.language import QUOTED, Words, load_wordnet
from crosslens.perturbations import perturb_all
from crosslens.rank import scorer_of
from crosslens.statistics import PairedTest, paired_permutation
from crosslens.storage import Array, BoolArray, IntArray, random_stream
from crosslens.values import Embeddings

_LONGEST, _OTHERS = 32, 64
"""Captions that are examined: the longest ones, and others of all lengths."""
_FEWEST_WORDS = 4
_CLEAR = 20.0
"""A word at the start must change a vector by so many times what counts as rounding, for a tail without effect to mean
that it is not read."""
_FILLERS = 2
_NARROW = 0.5
_CONSISTENT = 0.85
_CELLS = 1 << 24


@dataclass(frozen=True)
class Truncation:
    """Of each caption at most ``most`` words are read (``least`` of the one that is cut first); None: all of them.

    ``examined`` is the number of captions whose last words were replaced; ``cut`` the ids of all that are longer.
    """

    examined: int
    captions: int
    least: int | None = None
    most: int | None = None
    cut: tuple[str, ...] = field(default=(), metadata={"json": False})
    missed: float = 0.0
    """The share of all captions that are longer and whose image is not first."""
    example: tuple[str, str] | None = None

    @property
    def share(self) -> float:
        return len(self.cut) / self.captions if self.captions else 0.0


def find_truncation(encodings: Encodings, seed: int) -> Truncation:
    """From which word on captions are not read: other words there change nothing, at the start they do.

    A limit is concluded only where it is one: no caption that is longer is read to its end, and nearly all that are
    shorter are. A model that skips single words, or reads late ones weakly, has none.
    """
    subject = encodings.subject
    texts = subject.dataset.texts
    counts = np.array([len(text.split()) for text in texts])
    stream = random_stream(seed, "probes", "truncation")
    longest = np.argsort(-counts, kind="stable")[:_LONGEST]
    sample = stream.permutation(len(texts))[:_OTHERS]
    rows = [int(row) for row in dict.fromkeys([*longest, *sample]) if counts[row] >= _FEWEST_WORDS]
    nothing = Truncation(len(rows), len(texts))
    if not rows:
        return nothing
    fillers = _frequent_words(texts)
    reader = _Tails(encodings, fillers, stream)
    cut, clear = reader.unchanged([texts[row] for row in rows], [int(counts[row]) - 1 for row in rows])
    is_cut = cut & clear
    among_longest = np.array([row in set(map(int, longest)) for row in rows])
    if not (is_cut & among_longest).any():
        return nothing
    candidates = list(np.flatnonzero(is_cut))[:_LONGEST]
    limits = reader.limits([texts[rows[at]] for at in candidates])
    least, most = int(min(limits)), int(max(limits))
    lengths_read = counts[rows]
    longer, shorter = lengths_read > most, lengths_read <= least
    wrong = (longer & clear & ~cut).any() or (shorter.any() and (~cut)[shorter & clear].mean() < _CONSISTENT)
    if wrong or not least or least < _NARROW * most or clear.mean() < _CONSISTENT:
        return nothing
    example = texts[rows[candidates[0]]]
    ids = tuple(subject.dataset.caption_ids[row] for row in np.flatnonzero(counts > most))
    missed = float(np.mean((counts > most) & ~(subject.caption_hits > 0)))
    return Truncation(len(rows), len(texts), least, most, ids, missed, (example, reader.with_tail(example, most, 0)))


def _frequent_words(texts: Sequence[str]) -> list[str]:
    """Words that captions often use, of four letters or more: a model that reads at all knows them."""
    counts = Counter(word for text in texts[:5000] for word in set(re.findall(r"[^\W\d_]{4,}", text.lower())))
    return [word for word, _ in counts.most_common(60)] or ["word"]


class _Tails:
    """Captions with other words behind a position."""

    def __init__(self, encodings: Encodings, fillers: Sequence[str], stream: np.random.Generator) -> None:
        self.encodings, self.stream = encodings, stream
        self.fillers = [[str(word) for word in stream.permutation(list(fillers))] for _ in range(_FILLERS)]

    def _other_words(self, text: str, number: int, filler: int) -> list[str]:
        caption_words = set(re.findall(r"\w+", text.lower()))
        free = [word for word in self.fillers[filler] if word not in caption_words] or self.fillers[filler]
        return [free[at % len(free)] for at in range(number)]

    def with_tail(self, text: str, limit: int, filler: int) -> str:
        words = text.split()
        return " ".join([*words[:limit], *self._other_words(text, len(words) - limit, filler)])

    def with_start(self, text: str, filler: int) -> str:
        return " ".join([*self._other_words(text, 2, filler), *text.split()[2:]])

    def unchanged(self, texts: Sequence[str], limits: Sequence[int]) -> tuple[BoolArray, BoolArray]:
        """Of each text, whether other words behind the kept ones change nothing, and whether at the start they do."""
        changes = self._changes(texts, partial(self._with_tail_at, limits))
        starts = self._changes(texts, lambda text, at, filler: self.with_start(text, filler))
        rounding = self.encodings.rounding
        # Rounding differs from text to text, a weak effect is there in all: its mean may not exceed that of rounding.
        weak = changes.max(axis=0).mean() > 3 * self.encodings.differences.mean() + rounding / 3
        cut = changes.max(axis=0) <= rounding
        if weak and cut.all():
            cut[:] = False
        return cut, starts.max(axis=0) > _CLEAR * rounding

    def limits(self, texts: Sequence[str]) -> list[int]:
        """How many words of each are read: the fewest behind which nothing changes."""
        low, high = [0] * len(texts), [len(text.split()) - 1 for text in texts]
        while any(start < end for start, end in zip(low, high, strict=True)):
            middle = [(start + end) // 2 for start, end in zip(low, high, strict=True)]
            changes = self._changes(texts, partial(self._with_tail_at, middle))
            for at, same in enumerate(changes.max(axis=0) <= self.encodings.rounding):
                if low[at] < high[at]:
                    low[at], high[at] = (low[at], middle[at]) if same else (middle[at] + 1, high[at])
        return low

    def _with_tail_at(self, limits: Sequence[int], text: str, at: int, filler: int) -> str:
        return self.with_tail(text, limits[at], filler)

    def _changes(self, texts: Sequence[str], edit: Callable[[str, int, int], str]) -> Array:
        """How far an edit moves each text's vector: fillers × texts. All are encoded together."""
        edited = [edit(text, at, filler) for filler in range(_FILLERS) for at, text in enumerate(texts)]
        vectors = self.encodings.encode([*texts, *edited])
        before, after = vectors[: len(texts)], vectors[len(texts) :]
        return np.stack([lengths(after[at : at + len(texts)] - before) for at in range(0, len(after), len(texts))])


_TYPOS = ("char_swap", "missing_char", "extra_char", "nearby_char")
_ATTEMPTS = 3


@dataclass(frozen=True)
class Typos:
    """Hit@1 of captions as they are, and with one typing error each, over the same images."""

    n: int
    images: int
    before: float
    after: float
    test: PairedTest
    p: float
    """Of the loss being larger than the stated size by chance."""
    example: tuple[str, str]
    evidence: tuple[Evidence, ...] = ()


def with_typos(subject: Subject, rows: Sequence[int], seed: int) -> list[tuple[int, str, str]]:
    """Captions (rows), as they are and with a typing error; those in which none can be made are left out.

    It makes no other word of one, and is in no number, name or written word: *a car* is no slip of *a cat*, nor 45 one
    of 54, but another caption.
    """
    ids, texts = subject.dataset.caption_ids, subject.dataset.texts
    words = {word for text in texts for word in Words(text).lower}
    stream = random_stream(seed, "probes", "typos")
    typed: dict[int, str] = {}
    for attempt in range(_ATTEMPTS):
        untyped = {ids[row]: texts[row] for row in rows if row not in typed}
        perturbed = perturb_all(_TYPOS, untyped, seed=seed + attempt)
        for at, row in enumerate(row for row in rows if row not in typed):
            for kind in stream.permutation(len(_TYPOS)):
                result = perturbed[_TYPOS[kind]][at]
                if result.applied and _is_slip(texts[row], result.text, words):
                    typed[row] = result.text
                    break
    return [(row, texts[row], typed[row]) for row in rows if row in typed]


def _is_slip(text: str, typed: str, words: Collection[str]) -> bool:
    """Whether one word in lower case was changed, outside quotation marks, into what is no word."""
    before, after = (QUOTED.sub(lambda match: match.group().upper(), line).split() for line in (text, typed))
    changed = [pair for pair in zip(before, after, strict=False) if pair[0] != pair[1]]
    if len(before) != len(after) or len(changed) != 1:
        return False
    old, new = (word.strip(".,;:!?()").removesuffix("'s") for word in changed[0])
    plain = old.isalpha() and old.islower() and new.isalpha() and len(old) > 2
    return plain and new not in words and not any(load_wordnet().morphy(new, part) for part in "nvar")


def measure_typos(encodings: Encodings, typed: Sequence[tuple[int, str, str]], seed: int) -> Typos | None:
    """What one typing error per caption costs in points of Hit@1."""
    if not typed:
        return None
    subject = encodings.subject
    rows = np.array([row for row, _, _ in typed], np.int64)
    owners = subject.owner[rows]
    before = first_hits(encodings, owners, [text for _, text, _ in typed])
    after = first_hits(encodings, owners, [text for _, _, text in typed])
    test = paired_permutation(after, before, owners, permutations=5000, seed=seed, bounds=(0, 1))
    beyond = paired_permutation(after + STATED_SIZE, before, owners, permutations=5000, resamples=0, seed=seed)
    lost = np.flatnonzero(after < before)
    ids, image_ids = subject.dataset.caption_ids, subject.dataset.image_ids
    example = typed[int(lost[0])] if len(lost) else typed[0]
    return Typos(
        len(rows), len(np.unique(owners)), float(before.mean()), float(after.mean()), test,
        p=beyond.p_value if test.difference < -STATED_SIZE else 1.0, example=(example[1], example[2]),
        evidence=tuple({"query": ids[rows[at]], "item": image_ids[owners[at]]} for at in lost),
    )  # fmt: skip


def first_hits(encodings: Encodings, owners: IntArray, texts: Sequence[str]) -> Array:
    """Of each text, whether its image has the highest score of all; shared among those that have it too."""
    subject = encodings.subject
    assert subject.images is not None
    vectors = encodings.of(texts)
    scorer = scorer_of(subject.images, Embeddings(range(len(texts)), vectors), subject.score)
    count = len(subject.images)
    hits = np.empty(len(texts))
    step = max(1, _CELLS // max(count, 1))
    for start in range(0, len(texts), step):
        stop = min(start + step, len(texts))
        scores = np.asarray(scorer.tile(slice(0, count), slice(start, stop)))
        right = scores[owners[start:stop], np.arange(stop - start)]
        hits[start:stop] = np.where(right >= scores.max(axis=0), 1.0, 0.0) / (scores == scores.max(axis=0)).sum(axis=0)
    return hits

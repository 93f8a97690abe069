"""Captions that belong to another image: what a model, the words of other captions and the exchange itself agree on.

A caption is doubted where all of this holds: its image is far down its list in every run, though the image's other
captions find it; one of the first images of the list has captions in its words, at least two of them, and its own
image's captions share hardly any. Models err on odd captions too. But where captions were exchanged, the image that a
caption belongs to has lost one and got a wrong one for it: so it is *evidence* that this image holds a doubted caption
itself, and the number of such captions is compared with chance: with other images of the same lists. Images with one
caption have no others to ask; there only two captions that find each other's image are evidence.

The image of an odd caption is far down its list, but seldom in the lower half, and what comes first fits it little;
that of an exchanged caption is anywhere. So where images have three captions or more, the *plain* cases among the
doubted ones count alone: their image is still further down, and one of the first few has much more of their words.
They are evidence by themselves once they are so many that hardly one in ten can be odd; before, where they are mutual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.stats import binom

from crosslens.analyze.label_quality.contradictions import content_words, contradicts, words_in_order
from crosslens.explanations import first_relevant, item_rows
from crosslens.storage import Array, IntArray, random_stream
from crosslens.values import UNRANKED, Dataset, Ranking, positions

_FAR, _SIBLINGS = 0.1, 0.1
"""A caption's image is far down behind this share of the images, and its other captions find it within this share."""
_FARTHEST = 10
_SHARED, _AHEAD = 0.06, 0.15
"""How much more of a caption's words (cosine of tf-idf) its own image's captions may have than those of any image, and
how much more another's has to have."""
_CANDIDATES, _DRAWS, _FEWEST = 10, 2000, 5
_PLAIN_FAR, _PLAIN_AHEAD, _PLAIN_PLACES = 0.4, 0.2, 5
_ODD, _TENTH, _SURELY, _FEWEST_PLAIN = 0.0004, 10, 0.05, 3
"""Captions that are plain cases where none was exchanged: 0 to 0.04 % of those of Flickr8k and COCO, with models from
17 to 52 % Hit@1. There have to be so many that, but in one dataset of twenty, more than nine of ten were exchanged."""

CHANCE = 0.01
"""What p has to be below, for exchanged captions to be certain."""


@dataclass(frozen=True)
class MovedCaption:
    """A caption (row) and the image (row) that it seems to belong to.

    ``rank`` is that of its own image, ``first`` says that all runs rank the other image first; ``mutual``: a caption of
    that image is doubted as well; ``plain``: it cannot well be an odd caption of its own image.
    """

    caption: int
    image: int
    rank: int
    first: bool
    mutual: bool
    plain: bool


@dataclass(frozen=True)
class MovedCaptions:
    """The captions that are doubted.

    ``evidence`` are the plain ones: all where they are too ``many`` to be odd, else those that are mutual.
    """

    captions: tuple[MovedCaption, ...] = ()
    queries: int = 0
    many: bool = False
    p: float | None = None

    @property
    def evidence(self) -> tuple[MovedCaption, ...]:
        return tuple(swap for swap in self.captions if swap.plain and (swap.mutual or self.many))


def find_swaps(dataset: Dataset, rankings: Sequence[Ranking], seed: int = 0) -> MovedCaptions:
    """Captions that seem to belong to another image, by rankings of images for captions, one per run."""
    images, captions = len(dataset.image_ids), len(dataset.caption_ids)
    owner = dataset.caption_image
    ranks, lists = np.full((len(rankings), captions), np.nan), []
    for run, ranking in enumerate(rankings):
        rows = positions(ranking.query_ids, dataset.caption_ids, "caption")
        best, rank = first_relevant(ranking)
        ranks[run, rows] = np.where(rank == UNRANKED, ranking.known + 1, rank)
        ranks[run, rows[best == UNRANKED]] = np.nan
        top = np.full((captions, _CANDIDATES), -1)
        items = ranking.top_items[:, :_CANDIDATES]
        top[rows, : items.shape[1]] = np.where(items == UNRANKED, -1, item_rows(ranking, dataset)[items])
        lists.append(top)
    is_query = ~np.isnan(ranks).any(axis=0) if len(rankings) else np.zeros(captions, np.bool_)
    if images < 2 * _FARTHEST or not is_query.any():
        return MovedCaptions()
    word_lists = [words_in_order(text) for text in dataset.texts]
    often = Counter(word_lists)  # of a caption that two images have, nobody knows whose it is
    once = np.array([often[words] == 1 for words in word_lists], np.bool_)
    far = is_query & once & (ranks > max(_FARTHEST, _FAR * images)).all(axis=0)
    words = _tf_idf(dataset.texts)
    usual = float((np.asarray(words.sum(axis=0)) ** 2).sum()) / max(captions, 1) ** 2
    members = [np.flatnonzero(owner == image) for image in range(images)]
    most = max(map(len, members))
    single = most == 1
    target, ahead = np.full(captions, -1), np.zeros(captions)
    for row in np.flatnonzero(far).tolist():
        candidates = set.intersection(*(set(top[row].tolist()) for top in lists)) - {-1, int(owner[row])}
        if most <= 2:  # too few captions to choose by: the images must be the first
            candidates &= {int(top[row, 0]) for top in lists}
        if single:
            target[row] = min(candidates, default=-1)
            continue
        siblings = members[owner[row]][members[owner[row]] != row]
        if not len(siblings) or np.nanmedian(ranks[:, siblings]) > max(_FARTHEST, _SIBLINGS * images):
            continue
        shared = _overlap(words, row, siblings)
        if shared.mean() > usual + _SHARED:
            continue
        fits = [(_support(dataset, words, row, members[image]), -image) for image in candidates]
        support, image = max(fits, default=(0.0, 0))
        if support > shared.max() + _AHEAD:
            target[row], ahead[row] = -image, support - shared.max()
    doubted = np.flatnonzero(target >= 0)
    if not len(doubted):
        return MovedCaptions((), int(is_query.sum()), False, 1.0)
    pairs = set(zip(owner[doubted].tolist(), target[doubted].tolist(), strict=True))
    holds = np.zeros(images, np.bool_)
    holds[owner[doubted]] = True

    def mutual(targets: IntArray) -> Array:
        if single:
            return np.array([(image, home) in pairs for home, image in zip(owner[doubted], targets, strict=True)], bool)
        return holds[targets]

    evidence = mutual(target[doubted])
    stream = random_stream(seed, "swapped captions")
    offered = [[image for image in lists[0][row].tolist() if image not in (-1, owner[row])] for row in doubted]
    width = np.array([len(images_of) for images_of in offered])
    padded = np.array([images_of + [0] * (_CANDIDATES - len(images_of)) for images_of in offered])
    picks = (stream.random((_DRAWS, len(doubted))) * width).astype(np.int64)
    counts = [int(mutual(padded[np.arange(len(doubted)), places]).sum()) for places in picks]
    p = 1.0 if evidence.sum() < _FEWEST else (1 + sum(count >= evidence.sum() for count in counts)) / (1 + _DRAWS)
    plain = (ahead[doubted] > _PLAIN_AHEAD) & (ranks[:, doubted] > _PLAIN_FAR * images).all(axis=0)
    for top in lists:
        plain &= (top[doubted, :_PLAIN_PLACES] == target[doubted, None]).any(axis=1)
    if most <= 2:  # too few captions to tell
        plain[:] = True
    per_image = np.bincount(owner[is_query], minlength=images)
    asked_images = per_image[per_image > 0]
    odd = 1 - float(((1 - _ODD) ** asked_images).mean())
    number = int(plain.sum())
    enough = most > 2 and number >= _FEWEST and binom.sf(number // _TENTH, is_query.sum(), _ODD) < _SURELY
    holding = len(np.unique(owner[doubted[plain]]))
    too_many = float(binom.sf(holding - 1, len(asked_images), odd)) if enough else 1.0
    if (evidence & plain).sum() < _FEWEST_PLAIN:
        p = 1.0
    swaps = []
    for position, row in enumerate(doubted.tolist()):
        first = all(top[row, 0] == target[row] for top in lists)
        sure = bool(evidence[position]), bool(plain[position])
        swaps.append(MovedCaption(row, int(target[row]), int(np.nanmin(ranks[:, row])), first, *sure))
    return MovedCaptions(tuple(swaps), int(is_query.sum()), too_many < CHANCE, min(1.0, 2 * min(p, too_many)))


def only_at_home(dataset: Dataset, copies: Mapping[int, Iterable[int]]) -> set[tuple[int, int]]:
    """Captions (rows), with the images (rows) that have them too, of which only their own image's other captions have
    the words: the copy there may be a mistake, and does not make the caption fit.
    """
    home_only, owner = set(), dataset.caption_image
    words = _tf_idf(dataset.texts) if copies else sparse.csr_array((0, 1))
    for row, images in copies.items():
        shared = _overlap(words, row, np.arange(len(owner)))
        shared[shared > 1 - 1e-9] = np.nan  # the copies themselves
        home = np.fmax.reduce(shared[owner == owner[row]], initial=0.0)
        home_only |= {
            (row, image) for image in images if home > np.fmax.reduce(shared[owner == image], initial=np.nan) + _AHEAD
        }
    return home_only


def _support(dataset: Dataset, words: sparse.csr_array, row: int, captions: IntArray) -> float:
    """How much of a caption's words two captions of an image have; none where most of its captions deny the caption."""
    shared = np.sort(_overlap(words, row, captions))
    support = float(shared[-2] if len(shared) > 2 else shared[-1]) if len(shared) else 0.0
    texts = [dataset.texts[caption] for caption in captions.tolist()]
    if support <= _AHEAD or not _is_denied(dataset.texts[row], texts):
        return support if support > _AHEAD else 0.0
    # Where they deny each other as well, one thing is said there in different orders, and it means nothing.
    among = sum(_is_denied(text, [*texts[:position], *texts[position + 1 :]]) for position, text in enumerate(texts))
    return support if 2 * among > len(texts) else 0.0


def _is_denied(text: str, others: Sequence[str]) -> bool:
    return 2 * sum(contradicts(text, other) is not None for other in others) > len(others)


def _overlap(words: sparse.csr_array, row: int, others: IntArray) -> Array:
    return np.asarray((words[others] @ words[[row]].T).todense()).ravel()


def _tf_idf(texts: Sequence[str]) -> sparse.csr_array:
    """Of each text the words that name something, rare ones weighing more, at length 1."""
    words = [sorted(set(content_words(words_in_order(text)))) for text in texts]
    column = {word: position for position, word in enumerate(sorted({word for text in words for word in text}))}
    columns = np.array([column[word] for text in words for word in text], np.int64)
    rows = np.repeat(np.arange(len(texts)), [len(text) for text in words])
    weight = np.log((1 + len(texts)) / np.bincount(columns, minlength=len(column)))[columns]
    length = np.sqrt(np.bincount(rows, weight**2, len(texts)))[rows]
    values = np.divide(weight, length, out=np.zeros_like(weight), where=length > 0)
    return sparse.csr_array((values, (rows, columns)), shape=(len(texts), max(len(column), 1)))

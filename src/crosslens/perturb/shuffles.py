"""Words in another order: all of them, some kinds of them, or in groups of three.

Every word of a caption has a slot, and the words change slots; blanks and punctuation stay where they are. The words
are kept exactly, but for the capital at the start of a sentence, which stays at the start.

Each result is drawn from the orders that read differently, all equally likely: with a word that occurs twice, swapping
it with itself is not another order. At least half of all orders of words that are not all alike read differently, so
drawing again until one does is soon over.
"""

from __future__ import annotations

from collections.abc import Sequence

from crosslens.perturb.capitals import recased, sentence_starts
from crosslens.perturb.caption import Caption
from crosslens.perturb.draws import Draws
from crosslens.perturb.edit import Edit
from crosslens.perturb.perturbation import CannotApply, Edits, perturbation
from crosslens.perturb.slots import slot_kinds

Block = Sequence[int]
"""Slots whose words move together."""


@perturbation("shuffle_nouns_and_adj", level="sentence", tags=True)
def shuffle_nouns_and_adj(caption: Caption, draws: Draws) -> Edits:
    """Permute the nouns among the nouns, and the adjectives among the adjectives."""
    kinds = slot_kinds(caption)
    nouns = [slot for slot, kind in enumerate(kinds) if kind in ("noun", "name")]
    adjectives = [slot for slot, kind in enumerate(kinds) if kind == "adjective"]
    return _shuffled(caption, draws, [nouns, adjectives], "no two different nouns or adjectives", kinds)


@perturbation("shuffle_all_words", level="sentence")
def shuffle_all_words(caption: Caption, draws: Draws) -> Edits:
    """Permute all words."""
    return _shuffled(caption, draws, [range(len(caption.words))], "no two different words")


@perturbation("shuffle_allbut_nouns_and_adj", level="sentence", tags=True)
def shuffle_allbut_nouns_and_adj(caption: Caption, draws: Draws) -> Edits:
    """Permute all words but the nouns and adjectives."""
    kinds = slot_kinds(caption)
    others = [slot for slot, kind in enumerate(kinds) if kind == "other"]
    return _shuffled(caption, draws, [others], "no two different words besides nouns and adjectives", kinds)


@perturbation("shuffle_within_trigrams", level="sentence")
def shuffle_within_trigrams(caption: Caption, draws: Draws) -> Edits:
    """Permute the words within each three, and within the two that may be left."""
    return _shuffled(caption, draws, _trigrams(caption), "no two different words")


@perturbation("shuffle_trigrams", level="sentence")
def shuffle_trigrams(caption: Caption, draws: Draws) -> Edits:
    """Permute the groups of three words; each group keeps its order."""
    keys = _keys(caption)
    order = _other_blocks(draws, _trigrams(caption), keys)
    if order is None:
        raise CannotApply("no two different groups of three words")
    return _moved(caption, order)


def _trigrams(caption: Caption) -> list[range]:
    count = len(caption.words)
    return [range(first, min(first + 3, count)) for first in range(0, count, 3)]


def _shuffled(
    caption: Caption, draws: Draws, groups: Sequence[Block], reason: str, kinds: Sequence[str] | None = None
) -> Edits:
    """Each group of slots gets its own words in another order, where there is one."""
    keys = _keys(caption)
    sources = list(range(len(keys)))
    changed = False
    for group in groups:
        order = _other_order(draws, group, keys)
        if order is not None:
            changed = True
            for slot, source in zip(group, order, strict=True):
                sources[slot] = source
    if not changed:
        raise CannotApply(reason)
    return _moved(caption, sources, kinds)


def _other_order(draws: Draws, slots: Sequence[int], keys: Sequence[str]) -> list[int] | None:
    """The slots in a random order that reads differently; None where all orders read the same."""
    as_is = [keys[slot] for slot in slots]
    if len(set(as_is)) < 2:
        return None
    while True:
        order = draws.shuffled(slots)
        if [keys[slot] for slot in order] != as_is:
            return order


def _other_blocks(draws: Draws, blocks: Sequence[Block], keys: Sequence[str]) -> list[int] | None:
    """The same for blocks whose words stay together."""
    # Blocks that read alike, or made of one word only, can be put in any order and nobody would see it.
    if len(set(keys)) < 2 or len({tuple([keys[slot] for slot in block]) for block in blocks}) < 2:
        return None
    while True:
        order = [slot for block in draws.shuffled(blocks) for slot in block]
        if [keys[slot] for slot in order] != keys:
            return order


def _keys(caption: Caption) -> list[str]:
    """What a word is known by: capitals do not make another word of it."""
    return [word.text.casefold() for word in caption.words]


def _moved(caption: Caption, sources: Sequence[int], kinds: Sequence[str] | None = None) -> Edits:
    """The edits that put into every slot the word of the slot named for it, capitals mended."""
    words = caption.words
    starts = sentence_starts(caption)
    edits = []
    for slot, source in enumerate(sources):
        if slot == source:
            continue
        start, end, before = words[slot]
        after = words[source].text
        if source in starts or slot in starts:
            name = kinds is not None and kinds[source] == "name"
            after = recased(after, leaves=source in starts, enters=slot in starts, name=name)
        if after != before:
            edits.append(Edit(start, end, before, after))
    return tuple(edits)

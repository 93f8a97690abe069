"""A word for large or small replaced by one of the other side that fits there."""

from __future__ import annotations

from crosslens.language import inflected, word_set
from crosslens.perturbations.caption import Caption, Edits, Token, replaced
from crosslens.perturbations.draws import Draws
from crosslens.perturbations.registry import CannotApply, perturbation
from crosslens.perturbations.text.described_nouns import described_noun, noun_kinds

LARGE = ("large", "big", "enormous", "huge")
SMALL = ("small", "little", "minor", "tiny")

_COMPARED = {"large": ("large", "big"), "small": ("small", "tiny")}
"""Those that are compared: nobody writes *huger* or *littler*."""
_BASES = {"larger": "large", "largest": "large", "bigger": "big", "biggest": "big", "smaller": "small"} | {
    "smallest": "small", "tinier": "tiny", "tiniest": "tiny", "littlest": "little", "hugest": "huge",
}  # fmt: skip

_MASS = word_set("""bit while water snow milk sugar salt sauce food time help fun light space room sunlight grass
    dirt sand money work traffic ice butter cheese rain hair clothing furniture vegetation foliage
    effort attention luck wind more less over under too later way one something extra""")
"""What *a little* counts rather than measures."""
_AMOUNTS = word_set("amount number quantity percentage portion degree extent majority")
_NAMES = word_set("""league leaguer brother sister bit air top rig screen bang foot apple deal shot wheel smile toe
    finger dipper italy mac ben""")
_MINOR_READS = word_set("""accident adjustment bruise change collision crack crash cut damage dent detail difference
    earthquake error fault injury leak league mistake part problem quake repair road role scratch
    setback spill street surgery wound""")
_OTHERS = word_set("giant gigantic great massive mini miniature oversized vast")
"""Further words for size, beside which another one is left alone."""
_DEGREES = word_set("very so too as quite how really fairly rather extremely pretty somewhat")


@perturbation("size", level="adversarial", tags=True, order=17)
def size(caption: Caption, draws: Draws, *, minor: bool = False, every: bool = False) -> Edits:
    """Replace a word for large by one for small, or the other way: *a big dog* becomes *a tiny dog*.

    minor: offer *minor* wherever another word for small can stand, not only where it reads well
    every: replace every such word of the caption, not one of them
    """
    uses = []
    for position, token in enumerate(caption.tokens):
        base = size_of(token)
        if base is None or (noun := described_noun(caption, position)) is None:
            continue
        if not _excluded(caption, position, base, noun):
            uses.append((position, _replacements(caption, position, base, noun, minor)))
    if not uses:
        raise CannotApply("no word for large or small")
    chosen = uses if every else [draws.choice(uses)]
    return sum((replaced(caption, position, draws.choice(words)) for position, words in chosen), ())


def size_of(token: Token) -> str | None:
    """The size word that a token is a form of."""
    word = token.text.lower()
    base = _BASES.get(word, word)
    return base if token.pos == "ADJ" and (base in LARGE or base in SMALL) else None


def _excluded(caption: Caption, position: int, base: str, noun: int) -> bool:
    tokens = caption.tokens
    name = tokens[noun].lemma
    between = {token.lemma for token in tokens[position + 1 : noun + 1]}
    if between & _NAMES:
        return True
    others = tokens[:position] + tokens[position + 1 :]
    rivals = (token for token in others if size_of(token) or token.text in _OTHERS)
    if any(rival.head == tokens[position].head and rival.arc == "amod" for rival in rivals):
        return True  # a great big dog: one word would contradict the other
    if base == "little":
        bare = position > 0 and tokens[noun].tag == "NN" and not _has_determiner(caption, position)
        return name in _MASS or noun < position or bare
    return False


def _has_determiner(caption: Caption, position: int) -> bool:
    noun = caption.tokens[position].head
    arcs = (token.arc for token in caption.tokens[:position] if token.head == noun)
    return not {"det", "poss", "nummod", "predet"}.isdisjoint(arcs)


def _replacements(caption: Caption, position: int, base: str, noun: int, minor: bool) -> tuple[str, ...]:
    """The words of the other side that can replace a size, in its own form."""
    tokens = caption.tokens
    name, tag = tokens[noun].lemma, tokens[position].tag
    others = SMALL if base in LARGE else LARGE
    if tag in ("JJR", "JJS"):
        return tuple(inflected(word, tag) for word in _COMPARED[others[0]])
    predicate = noun < position
    degree = position > 0 and tokens[position - 1].text.lower() in _DEGREES
    refused = set()
    if not minor and (predicate or name not in _MINOR_READS):
        refused.add("minor")
    if predicate or degree:
        refused.add("little")
    if degree:
        refused |= {"huge", "enormous"}
    if name in _AMOUNTS:
        refused |= {"little", "big"}
    if base in SMALL and "person" in noun_kinds(name):
        refused |= {"huge", "enormous"}
    return tuple(word for word in others if word not in refused)

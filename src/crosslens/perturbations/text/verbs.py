"""Verbs replaced by their opposites."""

from __future__ import annotations

from functools import lru_cache

from crosslens.language import CO_CAPTION_QUANTITIES, COUNTED_AS, inflected, load_wordnet, word_set
from crosslens.perturbations.caption import Caption, Edits, Token, replaced
from crosslens.perturbations.draws import Draws
from crosslens.perturbations.registry import CannotApply, perturbation

_TAGS = frozenset({"VB", "VBP", "VBZ", "VBG", "VBD"})
_MAIN = frozenset({"ROOT", "acl", "relcl", "advcl", "conj", "ccomp", "pcomp", "xcomp"})

_REVIEWED = {
    "attack": ("defend",), "come": ("go",), "cry": ("laugh",), "float": ("sink",), "have": ("lack",), "hit": ("miss",),
    "laugh": ("cry",), "lie": ("sit", "stand"), "lower": ("raise",), "raise": ("lower",), "win": ("lose",),
}  # fmt: skip
"""Opposites in WordNet that belong to another sense than the first, and are the opposite that captions mean."""

_LEFT_ALONE = word_set(
    """act add admire arrange background balance begin bend box change color continue cover divide dress end fill
    follow gather give go include know let make attach pass relax repel rest scramble set show sink spread start stop
    stretch tie travel twist wet work"""
)
"""Verbs whose listed opposite says nothing about an image, or does not fit where the verb was."""

_WITHOUT_OBJECT = word_set("sit stand lie walk come sleep wake arrive leave float sink laugh cry rise fall win")
"""Verbs that are opposed only where they have no object: *walk down the street*, not *walk a dog*."""

_POSTURES = frozenset({"sit", "stand", "lie"})
"""Opposites only for who can take another posture: a vase that sits on a table stands on it as well."""

_ONLY_WITH_OBJECT = frozenset({"have", "hit", "pull", "push", "raise", "lower", "attack"})


@perturbation("verb_antonym", level="beyond", tags=True, order=18)
def verb_antonym(caption: Caption, draws: Draws) -> Edits:
    """Replace one verb by an opposite that WordNet lists, in the same form: *opens* → *closes*."""
    tokens = caption.tokens
    verbs = [at for at, token in enumerate(tokens) if token.pos == "VERB" and token.tag in _TAGS]
    if not verbs:
        raise CannotApply("no verb")
    fit = [(verb, words) for verb in verbs if (words := _opposites_here(tokens, verb))]
    if not fit:
        raise CannotApply("no verb with an opposite")
    verb, words = draws.choice(fit)
    return replaced(caption, verb, inflected(draws.choice(words), tokens[verb].tag))


def _opposites_here(tokens: tuple[Token, ...], verb: int) -> tuple[str, ...]:
    """The opposites of a verb, none where its particle, its object or its position in the sentence forbid them."""
    token = tokens[verb]
    words = opposites(token.lemma)
    if not words or token.arc not in _MAIN:
        return ()
    arcs = {other.arc for other in tokens if other.head == verb}
    if arcs & {"prt", "xcomp", "auxpass"} or (token.tag == "VBD" and token.text.endswith("ed")):
        return ()
    with_object = bool(arcs & {"dobj", "dative"})
    if (with_object and token.lemma in _WITHOUT_OBJECT) or (not with_object and token.lemma in _ONLY_WITH_OBJECT):
        return ()
    nobody_leaves_at = token.lemma == "arrive" and "prep" in arcs
    if nobody_leaves_at or (token.lemma == "have" and token.tag == "VBG"):
        return ()
    if token.lemma in _POSTURES and (who := _subject(tokens, verb)) is not None and _is_inanimate(tokens[who].lemma):
        return ()
    return words


def _subject(tokens: tuple[Token, ...], verb: int) -> int | None:
    """Who or what does a verb, as far as the parse shows it; of *a row of chairs*, the chairs."""
    for _ in range(len(tokens)):  # a damaged parse may go round in circles
        own = [at for at, token in enumerate(tokens) if token.head == verb and token.arc in ("nsubj", "nsubjpass")]
        if own and tokens[own[0]].tag not in ("WDT", "WP"):
            return _counted(tokens, own[0])
        head, arc = tokens[verb].head, tokens[verb].arc
        if arc in ("acl", "relcl"):
            return _counted(tokens, head)
        if head == verb or tokens[head].pos not in ("VERB", "AUX"):
            return None
        verb = head
    return None


def _counted(tokens: tuple[Token, ...], noun: int) -> int:
    if tokens[noun].lemma not in CO_CAPTION_QUANTITIES and tokens[noun].lemma not in COUNTED_AS:
        return noun
    links = [at for at, token in enumerate(tokens) if token.head == noun and token.text.lower() == "of"]
    return next((at for at, token in enumerate(tokens) if token.head in links and token.arc == "pobj"), noun)


@lru_cache(maxsize=1 << 12)
def _is_inanimate(noun: str) -> bool:
    """Whether a noun's first sense is of something physical that is neither a person nor an animal."""
    words = load_wordnet()
    senses = words.synsets(noun, "n")
    above = set(words.hypernym_closure(int(senses[0])).tolist()) if senses.size else set()
    beings = {words.synset("person.n.01"), words.synset("animal.n.01")}
    return words.synset("physical_entity.n.01") in above and not beings & {*above, int(senses[0])}


@lru_cache(maxsize=1 << 12)
def opposites(verb: str) -> tuple[str, ...]:
    """The opposites of a verb's first sense that are known first of all for that, and the reviewed ones of others."""
    if verb in _REVIEWED:
        return _REVIEWED[verb]
    if verb in _LEFT_ALONE:
        return ()
    words = load_wordnet()
    listed = ((other, synset) for number, other, synset in words.opposites(verb, "v") if number == 1)
    known = (other for other, synset in listed if words.synsets(other, "v")[:1].tolist() == [synset])
    return tuple(dict.fromkeys(filter(str.isalpha, known)))

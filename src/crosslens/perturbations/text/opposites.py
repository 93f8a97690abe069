"""An adjective replaced by its opposite, in the sense in which captions use it.

WordNet proposes: its direct antonyms, then those of the adjectives a word is similar to. But *green* has *ripe* for an
antonym, and *open* has forty. A table read by hand, ``antonyms.txt``, says which of WordNet's opposites captions mean,
beside which nouns. Words that it does not have are settled by kind: the first sense of the word and the sense of its
opposite must be values of the same attribute (*size*, *age*, *wetness* …), and the opposite an everyday word.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from crosslens.language import CO_CAPTION_QUANTITIES, COUNTED_AS, inflected, load_wordnet, word_set
from crosslens.perturbations.caption import Caption, Draws, Edits, Token, replaced
from crosslens.perturbations.perturbing import CannotApply, perturbation
from crosslens.perturbations.text.colours import TABLES, colour_uses, described_noun, noun_kinds

TABLE = Path(__file__).with_name("antonyms.txt")
COLOURED = "+coloured"
"""Of nouns that have a colour as such: whether they do depends on the caption."""

_LISTS = {f"+{name}": word_set(nouns) for name, nouns in TABLES["lists"].items()}
_STEADY = ("size.n.01", "beauty.n.01", "cleanness.n.01")
"""Attributes whose words mean the same thing more or less strongly."""
_FEWEST_USES = 2
"""How often WordNet's tagged texts must use an opposite for it to count as an everyday word."""


@perturbation("antonym", phrase="opposite adjectives", level="adversarial", tags=True, order=14)
def antonym(caption: Caption, draws: Draws, *, every: bool = False) -> Edits:
    """Replace an adjective by its opposite: *a young man* becomes *an old man*.

    every: replace every adjective that has an opposite, not one of them
    """
    coloured = {use.first for use in colour_uses(caption) if not use.beside and not use.plain}
    opposed: list[tuple[int, int, tuple[str, ...]]] = []
    for position, token in enumerate(caption.tokens):
        if token.pos != "ADJ" or (noun := described_noun(caption, position)) is None:
            continue
        base, tag = _base_form(token)
        between = frozenset(word.text.lower() for word in caption.tokens[position + 1 : noun])
        words = opposites_of(base, caption.tokens[noun].lemma, between=between, coloured=position in coloured)
        if tag != "JJ":
            words = tuple(inflected(word, tag) for word in words if word != "little")
        if words:
            opposed.append((position, noun, words))
    # Beside a word of the same meaning the opposite would be a contradiction: a small tiny dog.
    candidates = [
        (position, words)
        for position, noun, words in opposed
        if not any(noun == other and position != at and set(words) & set(same) for at, other, same in opposed)
    ]
    return _substituted(caption, draws, candidates, every, "no adjective that has an opposite here")


@perturbation("antonym[any]", phrase="opposite adjectives of any sense", level="adversarial", tags=True, order=24)
def any_antonym(caption: Caption, draws: Draws, *, every: bool = False) -> Edits:
    """Replace an adjective by any word that WordNet opposes to it, in whatever sense, as the EXPL paper says.

    The words are antonyms of the adjective itself, not of those similar to it, and any adjective counts: *a dark horse*
    becomes *a light horse*, and *a green field* *a ripe field*.

    every: replace every adjective that has an antonym, not one of them
    """
    candidates = []
    for position, token in enumerate(caption.tokens):
        if token.pos == "ADJ":
            base, tag = _base_form(token)
            forms = (inflected(word.replace("_", " "), tag) for word in load_wordnet().antonyms(base, "a"))
            words = tuple(dict.fromkeys(form for form in forms if form.lower() != token.text.lower()))
            candidates += [(position, words)] if words else []
    return _substituted(caption, draws, candidates, every, "no adjective that has an antonym in WordNet")


def _substituted(
    caption: Caption, draws: Draws, candidates: list[tuple[int, tuple[str, ...]]], every: bool, reason: str
) -> Edits:
    if not candidates:
        raise CannotApply(reason)
    selected = candidates if every else [draws.choice(candidates)]
    return sum((replaced(caption, position, draws.choice(words)) for position, words in selected), ())


def _base_form(token: Token) -> tuple[str, str]:
    """An adjective as the table has it, and the tag of the degree to put its opposite into: taggers overlook some."""
    word = token.text.lower()
    if word in antonym_table():
        return word, "JJ"
    if token.tag == "JJ" and word.endswith(("er", "est")):
        base = load_wordnet().morphy(word, "a")
        if base not in (None, word):
            return base or word, "JJR" if word.endswith("er") else "JJS"
    return (word, "JJ") if token.tag == "JJ" else (token.lemma, token.tag)


class TableRow(NamedTuple):
    """A row of the table: these opposites, beside these nouns (all, where none are named), not beside those."""

    opposites: tuple[str, ...]
    nouns: frozenset[str]
    refused: frozenset[str]


@lru_cache(maxsize=1 << 14)
def opposites_of(
    adjective: str, noun: str = "", *, between: frozenset[str] = frozenset(), coloured: bool = False
) -> tuple[str, ...]:
    """What a caption could say instead to mean the contrary, of this noun (empty: of one not named).

    ``between`` are the words between the two; ``coloured``: the adjective is the one colour of the noun.
    """
    rows = antonym_table().get(adjective)
    if rows is None:
        return attribute_antonyms(adjective)
    kinds = {noun, *(f"+{kind}" for kind in noun_kinds(noun))} | ({COLOURED} if coloured else set())
    kinds |= {name for name, nouns in _LISTS.items() if noun in nouns}
    suiting = (row for row in rows if not (kinds | between) & row.refused and (not row.nouns or kinds & row.nouns))
    return next((row.opposites for row in suiting), ())


@lru_cache(maxsize=1)
def antonym_table() -> dict[str, tuple[TableRow, ...]]:
    """The table read by hand, by adjective."""
    rows: dict[str, tuple[TableRow, ...]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        adjectives, opposites, nouns = (part.split() for part in line.split("|"))
        row = TableRow(
            tuple(word for word in opposites if word != "-"),
            frozenset(noun for noun in nouns if not noun.startswith("-")),
            frozenset(noun[1:] for noun in nouns if noun.startswith("-")),
        )
        for adjective in adjectives:
            rows[adjective] = (*rows.get(adjective, ()), row)
    return rows


@lru_cache(maxsize=1 << 12)
def attribute_antonyms(adjective: str) -> tuple[str, ...]:
    """The antonyms of its first sense that are values of the same attribute as it.

    Where it has none of its own, those of the adjective it is similar to; but similar words stray (*puffy* is filed
    under *large*), so only a word of one sense may go that way, and only for attributes in which few do.
    """
    net = load_wordnet()
    senses = net.synsets(adjective, "a")
    if not senses.size or adjective not in (lemma.lower() for lemma in net.lemmas(int(senses[0]))):
        return ()
    first = int(senses[0])
    direct = [synset for number, _, synset in net.opposites(adjective, "a") if number == 1]
    attributes = set(net.attributes(first).tolist())
    if not direct:
        if senses.size > 1 or net.part(first) != "s":
            return ()
        head = int(net.similar_to(first)[0])
        direct = net.antonym_synsets(head).tolist()
        attributes = set(net.attributes(head).tolist()) & set(map(net.synset, _STEADY))
    words: dict[str, None] = {}
    for synset in direct:
        if attributes & set(net.attributes(synset).tolist()):
            # The word that the synset is best known by, if it is one word and often used.
            count, word = max(zip(net.uses(synset), net.lemmas(synset), strict=True), key=lambda pair: pair[0])
            if count >= _FEWEST_USES and word.isalpha() and word.islower():
                words[word] = None
    return tuple(words)


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


@perturbation("size", phrase="opposite sizes", level="adversarial", tags=True, order=17)
def size(caption: Caption, draws: Draws, *, minor: bool = False, every: bool = False) -> Edits:
    """Replace a word for large by one for small, or the other way: *a big dog* becomes *a tiny dog*.

    minor: offer *minor* wherever another word for small can stand, not only where it reads well
    every: replace every such word of the caption, not one of them
    """
    uses = []
    for position, token in enumerate(caption.tokens):
        noun = described_noun(caption, position) if size_of(token) else None
        if noun is not None and (words := _other_sizes(caption, position, noun, minor)):
            uses.append((position, words))
    return _substituted(caption, draws, uses, every, "no word for large or small")


def size_of(token: Token) -> str | None:
    """The size word that a token is a form of."""
    word = token.text.lower()
    base = _BASES.get(word, word)
    return base if token.pos == "ADJ" and (base in LARGE or base in SMALL) else None


def _other_sizes(caption: Caption, position: int, noun: int, minor: bool) -> tuple[str, ...]:
    """The words of the other side that can replace a size, in its own form; none where it is part of something else."""
    tokens = caption.tokens
    base, head, tag, name = size_of(tokens[position]), tokens[position].head, tokens[position].tag, tokens[noun].lemma
    rivals = (tokens[at] for at in caption.below(head, "amod") if at != position)
    # a great big dog: one word would contradict the other
    contradicts = any(size_of(rival) or rival.text in _OTHERS for rival in rivals)
    if contradicts or any(token.lemma in _NAMES for token in tokens[position + 1 : noun + 1]):
        return ()
    predicate = noun < position
    if base == "little":
        determined = any(at < position for at in caption.below(head, "det", "poss", "nummod", "predet"))
        bare = position > 0 and tokens[noun].tag == "NN" and not determined
        if name in _MASS or predicate or bare:
            return ()
    others = SMALL if base in LARGE else LARGE
    if tag in ("JJR", "JJS"):
        return tuple(inflected(word, tag) for word in _COMPARED[others[0]])
    degree = caption.token(position - 1).text.lower() in _DEGREES
    refused = set()
    if not minor and (predicate or name not in _MINOR_READS):
        refused.add("minor")
    if predicate or degree:
        refused.add("little")
    if degree or (base in SMALL and "person" in noun_kinds(name)):
        refused |= {"huge", "enormous"}
    if name in _AMOUNTS:
        refused |= {"little", "big"}
    return tuple(word for word in others if word not in refused)


_TAGS = frozenset({"VB", "VBP", "VBZ", "VBG", "VBD"})
_MAIN = frozenset({"ROOT", "acl", "relcl", "advcl", "conj", "ccomp", "pcomp", "xcomp"})

_REVIEWED = {verb: tuple(words.split()) for verb, words in TABLES["opposite_verbs"].items()}
"""Opposites in WordNet that belong to another sense than the first, and are the opposite that captions mean."""

_LEFT_ALONE = word_set(TABLES["words"]["verbs_left_alone"])
"""Verbs whose listed opposite says nothing about an image, or does not fit where the verb was."""

_WITHOUT_OBJECT = word_set("sit stand lie walk come sleep wake arrive leave float sink laugh cry rise fall win")
"""Verbs that are opposed only where they have no object: *walk down the street*, not *walk a dog*."""

_POSTURES = frozenset({"sit", "stand", "lie"})
"""Opposites only for who can take another posture: a vase that sits on a table stands on it as well."""

_ONLY_WITH_OBJECT = frozenset({"have", "hit", "pull", "push", "raise", "lower", "attack"})


@perturbation("verb_antonym", phrase="opposite verbs", level="beyond", tags=True, order=18)
def verb_antonym(caption: Caption, draws: Draws) -> Edits:
    """Replace one verb by an opposite that WordNet lists, in the same form: *opens* → *closes*."""
    tokens = caption.tokens
    verbs = [at for at, token in enumerate(tokens) if token.pos == "VERB" and token.tag in _TAGS]
    if not verbs:
        raise CannotApply("no verb")
    fit = []
    for verb in verbs:
        token = tokens[verb]
        if token.arc not in _MAIN or not (words := opposites(token.lemma)):
            continue
        arcs = {tokens[child].arc for child in caption.below(verb)}
        with_object = bool(arcs & {"dobj", "dative"})
        if not (
            arcs & {"prt", "xcomp", "auxpass"}
            or (token.tag == "VBD" and token.text.endswith("ed"))
            or token.lemma in (_WITHOUT_OBJECT if with_object else _ONLY_WITH_OBJECT)
            or (token.lemma == "arrive" and "prep" in arcs)  # nobody leaves at
            or (token.lemma == "have" and token.tag == "VBG")
            or (token.lemma in _POSTURES and _is_inanimate(_subject(caption, verb)))
        ):
            fit.append((verb, words))
    if not fit:
        raise CannotApply("no verb with an opposite")
    verb, words = draws.choice(fit)
    return replaced(caption, verb, inflected(draws.choice(words), tokens[verb].tag))


def _subject(caption: Caption, verb: int) -> str:
    """Who or what does a verb, of *a row of chairs* the chairs; empty where the parse does not show it."""
    tokens = caption.tokens
    for _ in tokens:  # a damaged parse may go round in circles
        head, arc = tokens[verb].head, tokens[verb].arc
        subjects = caption.below(verb, "nsubj", "nsubjpass")
        if subjects and tokens[subjects[0]].tag not in ("WDT", "WP"):
            noun = subjects[0]
        elif arc in ("acl", "relcl"):
            noun = head
        elif head == verb or tokens[head].pos not in ("VERB", "AUX"):
            return ""
        else:
            verb = head
            continue
        if tokens[noun].lemma in CO_CAPTION_QUANTITIES or tokens[noun].lemma in COUNTED_AS:
            links = [child for child in caption.below(noun) if tokens[child].text.lower() == "of"]
            noun = next((counted for link in links for counted in caption.below(link, "pobj")), noun)
        return tokens[noun].lemma
    return ""


@lru_cache(maxsize=1 << 12)
def _is_inanimate(noun: str) -> bool:
    """Whether a noun's first sense is of something physical that is neither a person nor an animal."""
    net = load_wordnet()
    first = net.synsets(noun, "n")[:1].tolist()
    physical = first and net.is_a(first[0], "physical_entity.n.01")
    return bool(physical and not net.is_a(first[0], "person.n.01") and not net.is_a(first[0], "animal.n.01"))


@lru_cache(maxsize=1 << 12)
def opposites(verb: str) -> tuple[str, ...]:
    """The opposites of a verb's first sense that are known first of all for that, and the reviewed ones of others."""
    if verb in _REVIEWED:
        return _REVIEWED[verb]
    if verb in _LEFT_ALONE:
        return ()
    words = load_wordnet()
    listed = ((other, synset) for number, other, synset in words.opposites(verb, "v") if number == 1)
    first_senses = (other for other, synset in listed if words.synsets(other, "v")[:1].tolist() == [synset])
    return tuple(dict.fromkeys(filter(str.isalpha, first_senses)))

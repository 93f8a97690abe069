"""Verbs that the tagger took for nouns.

A small pipeline reads *blue shirt runs* as one noun phrase, as if *a boy in a blue shirt runs* asked for blue runs. A
word is a verb where the sentence leaves it no other part: it has a subject, or *a* stands before its *-s*. Elsewhere
WordNet's counts of its uses as verb and as noun decide: after a plural (*in sunglasses smiles*), after a person or an
animal that begins the sentence, joined to a verb by *and*, or where the sentence has no other verb.
``reproduce/verbs_as_nouns.py`` measures what remains wrong.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from crosslens.language.parse import MODIFIER_ARCS, Parse, is_phrase
from crosslens.language.wordnet import load_wordnet
from crosslens.language.words import ALWAYS_PAIRS, COLOURS, STOP_WORDS

_CLAUSE_ARCS = frozenset({"advcl", "ccomp", "relcl"})
_PHRASE_ARCS = frozenset({"acl", "agent", "appos", "conj", "dobj", "pcomp", "pobj", "prep"})
"""The way up through a noun phrase: from the *shirt* to the *boy* in it."""
_SINGULAR_DETERMINERS = frozenset({"a", "an", "another", "each", "every", "one", "this"})
_FINITE = frozenset({"MD", "VBD", "VBP", "VBZ"})
_PLURAL = frozenset({"NNS", "NNPS"})
_OBJECTS = frozenset({"matter.n.03", "object.n.01"})
_LIVING = frozenset({"animal.n.01", "people.n.01", "person.n.01"})


class VerbForm(NamedTuple):
    """What a word is as a verb: its lemma, and whether it is *runs* (VBZ), *running* (VBG) or *run* (VBP).

    ``as_verb`` and ``as_noun`` count its uses in WordNet's tagged texts; None where it has no sense as a noun.
    ``is_object`` says whether the noun's first sense is physical, as that of *watch*, not that of *smile*.
    """

    lemma: str
    tag: str
    as_verb: int
    as_noun: int | None
    is_object: bool


@lru_cache(maxsize=1 << 14)
def verb_form(word: str) -> VerbForm | None:
    """What a word in lower case is as a verb; None where it is none, or where the noun is far more frequent."""
    net = load_wordnet()
    lemma = net.morphy(word, "v")
    if lemma is None or word in STOP_WORDS or word in ALWAYS_PAIRS or not _LIVING.isdisjoint(_kinds(word)):
        return None
    tag = "VBP" if word == lemma else "VBG" if word.endswith("ing") else "VBZ" if word.endswith("s") else None
    as_verb, as_noun = _uses(word, "v"), _uses(word, "n")
    if tag is None or as_noun > 4 * (as_verb + 1):
        return None
    is_object = not _OBJECTS.isdisjoint(_kinds(word, 2 if tag == "VBG" else 1))  # *drawing*: first the act
    return VerbForm(lemma, tag, as_verb, as_noun if net.morphy(word, "n") else None, is_object)


def _uses(word: str, part: str) -> int:
    net = load_wordnet()
    forms = {word, net.morphy(word, part), net.lemmatise(word, part)}
    senses = net.synsets(word, part).tolist()
    counts = (pair for sense in senses for pair in zip(net.lemmas(sense), net.uses(sense), strict=True))
    return sum(count for lemma, count in counts if lemma.lower() in forms)


@lru_cache(maxsize=1 << 14)
def _kinds(word: str, senses: int = 1) -> frozenset[str]:
    """The first senses of a noun, with all their hypernyms."""
    net = load_wordnet()
    first = net.synsets(word, "n")[:senses].tolist()
    return frozenset(net.name(int(row)) for sense in first for row in (sense, *net.hypernym_closure(sense)))


def restore_verbs(parse: Parse) -> Parse:
    """The parse, with verbs that were tagged as nouns as verbs, and the words before them where they belong.

    For what is asserted of a caption. Scores such as SPICE read parses as they are: errors are alike on both sides.
    """
    for token in range(len(parse)):
        form = verb_form(parse.words[token].lower()) if parse.pos[token] in ("NOUN", "PROPN") else None
        if form is not None and _reads_as_verb(parse, token, form):
            parse = _as_verb(parse, token, form)
    return parse


def _reads_as_verb(parse: Parse, token: int, form: VerbForm) -> bool:
    arc, head, tags, previous = parse.arcs[token], parse.heads[token], parse.tags, token - 1
    before = {child: parse.arcs[child] for child in range(token) if parse.heads[child] == token}
    words = {parse.words[child].lower() for child in before}
    singular = not _SINGULAR_DETERMINERS.isdisjoint(words)
    if singular and form.tag == "VBP":  # *a walk*
        return False
    if subjects := [child for child, part in before.items() if part in ("nsubj", "nsubjpass")]:
        return form.tag in ("VBG", _agreeing_tag(parse, subjects[0])) or not form.is_object
    if arc in ("compound", "nmod"):
        return False
    as_noun, modified = form.as_noun or 0, before.get(previous, "det") not in ("det", "poss")
    is_name = modified and is_phrase(f"{parse.words[previous]} {parse.words[token]}")  # *rock climbing*, *snack bar*
    if form.tag == "VBG":
        return form.as_verb > as_noun and not form.is_object and (_in_place(parse, token) or not is_name)
    if is_name and (form.is_object or not singular):
        return False
    if singular:  # *a puppy runs*, *another runs*, unlike *a few balls* and *a tub, sinks*
        several = "few" in words or any(tags[child] in ("CD", ",") for child in before if child != previous)
        likely = form.as_verb >= as_noun or parse.pos[previous] != "ADJ"
        return (modified or words.isdisjoint(("a", "an"))) and likely and not several
    verbless = _FINITE.isdisjoint(tags)
    if modified and arc == "ROOT" and verbless and _is_living(parse, previous):
        return form.tag == _agreeing_tag(parse, previous) and 2 * form.as_verb >= as_noun
    of_owner = "poss" in before.values() and (form.tag == "VBP" or not modified)  # *her walk*, *her tears*
    if form.as_verb < as_noun or of_owner:
        return False
    if form.as_noun is None or arc in _CLAUSE_ARCS or (arc == "appos" and head == previous):
        return True
    if arc == "conj" and parse.pos[head] == "VERB":
        joined = ("VB", "VBP") if form.is_object else ("VB", "VBP", "VBG")
        return tags[head] in (joined if form.tag == "VBP" else ("VBZ",))
    beside = (arc, head) == ("pobj", parse.heads[previous]) and parse.arcs[previous] == "pobj"
    if beside or (modified and tags[previous] in _PLURAL):  # *with sunglasses watches*, *in sunglasses smiles*
        return True
    if form.as_verb <= 2 * as_noun or arc not in _PHRASE_ARCS:
        return False
    clause = _clause_head(parse, token)
    if not modified:  # *wears a purple outfit and swings*
        return arc == "conj" and parse.arcs[previous] == "cc" and tags[clause] == form.tag
    worn = form.tag == "VBZ" or parse.lemmas[head] in ("in", "wear")  # *two women in black embrace*
    return verbless and worn and not form.is_object and form.tag == _agreeing_tag(parse, clause)


def _in_place(parse: Parse, token: int) -> bool:
    """Whether the token is where a verb may be, once it is tagged as one."""
    arc, head = parse.arcs[token], parse.heads[token]
    return arc in _CLAUSE_ARCS or arc in ("ROOT", "attr") or (arc == "conj" and parse.pos[head] == "VERB")


def _is_living(parse: Parse, token: int) -> bool:
    """Whether it names a person or an animal; taggers take some for adjectives: *the bee hovers*."""
    word = parse.words[token].lower()
    is_name = parse.pos[token] in ("NOUN", "PROPN", "ADJ") and word not in COLOURS
    no_adjective = parse.pos[token] != "ADJ" or not load_wordnet().synsets(word, "a").size
    return is_name and no_adjective and not _LIVING.isdisjoint(_kinds(word))


def _agreeing_tag(parse: Parse, subject: int) -> str:
    """The tag of a verb in the present tense that has this subject."""
    joined = any(head == subject and arc == "conj" for head, arc in zip(parse.heads, parse.arcs, strict=True))
    return "VBP" if joined or parse.tags[subject] in _PLURAL else "VBZ"


def _clause_head(parse: Parse, token: int) -> int:
    """The finite verb or the noun at the top of the phrase that a token is in."""
    head = parse.heads[token]
    while parse.arcs[head] in _PHRASE_ARCS and parse.tags[head] not in _FINITE:
        head = parse.heads[head]
    return head


def _as_verb(parse: Parse, verb: int, form: VerbForm) -> Parse:
    """A noun before it takes its place in the phrase, with the modifiers; it becomes a verb of the clause's subject."""
    arc, head, clause, in_place = parse.arcs[verb], parse.heads[verb], _clause_head(parse, verb), _in_place(parse, verb)
    pos, tags, lemmas = list(parse.pos), list(parse.tags), list(parse.lemmas)
    arcs, heads = list(parse.arcs), list(parse.heads)
    pos[verb], tags[verb], lemmas[verb] = "VERB", form.tag, form.lemma
    before = [child for child in range(verb) if heads[child] == verb]
    modifiers = [child for child in before if arcs[child] in MODIFIER_ARCS]
    living = [child for child in modifiers if _is_living(parse, child) and (pos[child] != "ADJ" or child == verb - 1)]
    nouns = sorted({child for child in modifiers if pos[child] in ("NOUN", "PROPN")} | set(living))
    if in_place:  # *a man rock climbs*: the man
        candidates = living or (nouns if form.tag != "VBG" else [])
    else:
        candidates = nouns or [child for child in modifiers if arcs[child] == "amod"]  # *a girl wearing blue smiles*
    for noun in candidates[-1:]:
        for child in modifiers:
            heads[child] = noun if child < noun else verb
        arcs[noun], heads[noun] = ("nsubj", verb) if in_place else (arc, head)
        if noun in living:
            pos[noun] = "NOUN"
            clause = noun if form.tag == "VBG" else clause  # *a view of a cyclist riding*: it is the cyclist
    for child in modifiers:
        if heads[child] == verb and arcs[child] != "nsubj" and pos[child] in ("NOUN", "PROPN"):
            pos[child], arcs[child] = "ADV", "advmod"  # *a man rock climbs* has no rock for an object
    if not in_place and len(before) == len(modifiers):  # without a subject before it
        arcs[verb], heads[verb] = "conj" if pos[clause] in ("AUX", "VERB") else "acl", clause
    for child in range(verb + 1, len(parse)):
        if heads[child] == verb and arcs[child] == "appos":
            arcs[child] = "dobj"  # *chases a doberman*
    return replace(parse, pos=pos, tags=tags, lemmas=lemmas, arcs=arcs, heads=heads)

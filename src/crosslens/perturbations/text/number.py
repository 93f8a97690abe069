"""One object becomes several, or several one: *A dog runs* → *Dogs run*, *Two dogs run* → *A dog runs*."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import pairwise

from crosslens.language import (
    CO_CAPTION_QUANTITIES,
    COUNTED_AS,
    FEMALE,
    HE,
    IT,
    KINDS,
    MALE,
    SAME_IN_PLURAL,
    SHE,
    THEY,
    inflected,
    is_number,
    is_plural,
    load_wordnet,
    pluralise,
    singularise,
    takes_an,
    word_set,
)
from crosslens.perturbations.caption import Caption, Draws, Edit, Edits, Token, cased_like
from crosslens.perturbations.perturbing import CannotApply, perturbation
from crosslens.perturbations.text.colours import TABLES
from crosslens.perturbations.text.synonyms import is_noun_first, is_often_verb

_OF_ONE = (HE | SHE | IT) - {"it"}
"""Pronouns that refer to a single being or object; a bare *it* may refer to anything."""
_IN_NAMES = frozenset({"compound", "nmod", "npadvmod"})
_INSIDE = frozenset({"pobj", "dobj", "dative"})
"""Arcs of nouns that decide no verb of their own sentence."""
_SUBJECTS = frozenset({"nsubj", "nsubjpass"})
_PLURAL_OF = {"is": "are", "was": "were", "has": "have", "does": "do"}
_SINGULAR_OF = {"are": "is", "were": "was", "have": "has", "do": "does"}
_WITH_NUMBER = frozenset({"VBZ", "VBP", "VB", "VBD"})

_THEY = {"they": 0, "them": 1, "their": 2, "theirs": 3, "themselves": 4}
_FORMS = {
    "he": ("he", "him", "his", "his", "himself"),
    "she": ("she", "her", "her", "hers", "herself"),
    "it": ("it", "it", "its", "its", "itself"),
}
_PLURAL_PRONOUN = {
    form: tuple(_THEY)[case] for forms in _FORMS.values() for case, form in reversed(list(enumerate(forms)))
}


class Unclear(Exception):
    """The parse does not show what would have to agree."""


class NumberAgreement:
    """The changes that follow a noun, as new texts by the position of the token."""

    def __init__(self, caption: Caption) -> None:
        self.caption = caption
        self.tokens = caption.tokens
        self.below = caption.below

    def changes(self, noun: int, *, plural: bool) -> dict[int, str]:
        """What must change beside the noun itself; raises :class:`Unclear` where a verb cannot be made to agree."""
        if self.tokens[noun].arc not in _INSIDE and self._has_stray_verb:
            raise Unclear
        changes: dict[int, str] = {}
        for verb in self._verbs(noun):
            changes.update(self._agreeing(verb, plural=plural))
        for pronoun in self._pronouns(noun, plural=plural):
            token, lemma = self.tokens[pronoun], self.tokens[noun].lemma
            word = token.text.lower()
            if plural and word == "her":
                owning = token.tag == "PRP$" or self.caption.token(pronoun + 1).pos in ("NOUN", "ADJ")
                changes[pronoun] = "their" if owning else "them"
            elif plural:
                changes[pronoun] = _PLURAL_PRONOUN[word]
            elif lemma in MALE | FEMALE or not _is_person(lemma):
                changes[pronoun] = _FORMS["he" if lemma in MALE else "she" if lemma in FEMALE else "it"][_THEY[word]]
            else:  # of a person who may be either, *they* stays
                continue
            for verb in self._verbs(pronoun):
                changes.update(self._agreeing(verb, plural=plural))
        return changes

    def _verbs(self, subject: int) -> Iterator[int]:
        """The verbs whose number a subject decides: its own, those listed beside them, those of relative clauses."""
        token = self.tokens[subject]
        alone = not self.below(subject, "conj")
        if token.arc in _SUBJECTS and alone:
            yield from self._listed(token.head)
        elif token.arc == "attr" and self.below(token.head, "expl"):
            yield token.head
        for clause in self.below(subject, "relcl"):
            inner = self.below(clause, *_SUBJECTS)
            if alone and inner and self.tokens[inner[0]].tag in ("WDT", "WP"):
                yield from self._listed(clause)

    def _listed(self, verb: int) -> Iterator[int]:
        yield verb
        for other in self.below(verb, "conj"):
            if self.tokens[other].pos not in ("VERB", "AUX"):
                raise Unclear  # a verb that was taken for something else: Dogs run and jump
            if not self.below(other, *_SUBJECTS):
                yield from self._listed(other)

    def _agreeing(self, verb: int, *, plural: bool) -> dict[int, str]:
        """The one word of a verb that shows number: its first auxiliary, or else itself."""
        token = self.tokens[verb]
        finite = min(self.below(verb, "aux", "auxpass"), default=verb)
        form = self.tokens[finite]
        if form.tag in ("MD", "VBG", "VBN", "TO") or (form.tag == "VBD" and form.lemma != "be"):
            return {}
        if form.tag == "VB" and token.arc in ("ccomp", "xcomp"):
            return {}  # watch the horses go
        if token.pos not in ("VERB", "AUX") or form.tag not in _WITH_NUMBER or not form.text.isalpha():
            raise Unclear
        if form.tag in (("VBP", "VB") if plural else ("VBZ",)):
            return {}  # it agreed with something else, or shows no number
        lower = form.text.lower()
        if not plural:
            new = _SINGULAR_OF.get(lower) or inflected(lower, "VBZ")
        elif lower in _PLURAL_OF:
            new = _PLURAL_OF[lower]
        else:
            new = form.lemma if form.lemma != lower else load_wordnet().lemmatise(lower, "v")
        return {} if new == form.text else {finite: new}

    def _pronouns(self, noun: int, *, plural: bool) -> list[int]:
        """The pronouns behind a noun that refer to it: captions begin with whom they are about."""
        tokens, pronouns = self.tokens, _OF_ONE if plural else THEY
        behind = [at for at in range(noun + 1, len(tokens)) if tokens[at].text.lower() in pronouns]
        nouns = (at for at, token in enumerate(tokens) if token.pos == "NOUN" and token.arc not in _IN_NAMES)
        if not behind or noun != next(nouns, -1) or self.below(noun, "conj"):
            return []
        is_person = _is_person(tokens[noun].lemma)
        referring: list[int] = []
        for pronoun in behind:
            word = tokens[pronoun].text.lower()
            # What once referred to the noun goes on doing so: a mother holds her baby in her arms.
            same = next((kind for kind in (HE, SHE) if word in kind), frozenset())
            again = any(tokens[other].text.lower() in same for other in referring)
            # A personal pronoun may as well refer to another person, named after the noun.
            between = tokens[noun + 1 : pronoun] if same else ()
            others = any(token.tag == "NN" and _is_person(token.lemma) for token in between)
            if not (is_person and word in IT) and (again or not others):
                referring.append(pronoun)
        return referring

    @cached_property
    def _has_stray_verb(self) -> bool:
        """Whether a verb that shows number has no subject in the parse: its subject may be any noun."""
        for verb, token in enumerate(self.tokens):
            if token.tag not in ("VBZ", "VBP"):
                if self.is_hidden_verb(verb):
                    return True
                continue
            while not self.below(verb, *_SUBJECTS, "expl"):
                token = self.tokens[verb]
                if token.head == verb or token.arc not in ("conj", "aux", "auxpass"):
                    return True
                verb = token.head
        return False

    def is_hidden_verb(self, position: int) -> bool:
        """Whether a noun is likely a verb that was tagged as one: *kicks the ball*, *the crowd cheers*."""
        token, behind = self.tokens[position], self.caption.token(position + 1).tag
        if token.tag not in ("NN", "NNS"):
            return False
        after_noun = self.caption.token(position - 1).pos == "NOUN"
        if after_noun and behind == "IN" and token.tag == "NNS":  # around his neck points at
            return is_often_verb(token.lemma, share=0.1)
        return is_often_verb(token.lemma) and (behind == "DT" or after_noun or not is_noun_first(token.lemma))


@lru_cache(maxsize=1 << 12)
def _is_person(noun: str) -> bool:
    net = load_wordnet()
    return noun == "people" or any(net.is_a(int(synset), "person.n.01") for synset in net.synsets(noun, "n")[:1])


_TAGS = frozenset({"NN", "NNS"})
_ARTICLES = frozenset({"a", "an"})
_SINGLE = {"one": "two", "another": "other", "this": "these", "that": "those"}
_SEVERAL = word_set("some several many few multiple numerous various")
_POINTING = {"these": "this", "those": "that", "other": "another"}
_KEPT = frozenset({"the", "his", "her", "its", "their", "my", "your", "our"})
_BEFORE_NOUN = word_set("det amod nummod compound nmod poss advmod npadvmod punct conj cc")
_ONLY_ONE = word_set("single lone solitary whole only very first last entire")
_TOGETHER = frozenset({"each", "another", "together", "both", "all", "between", "among", "amongst"})
_PARTS = word_set("half majority member minority percent percentage portion quarter remainder rest third")
"""Nouns before *of* that say how many of several: *the rest of the players*."""
_BEFORE_ARTICLE = frozenset({"such", "what", "half", "many", "quite", "rather"})
_IDIOMS = word_set(TABLES["words"]["idioms"])
"""Nouns whose *a* counts nothing: *in a row*, *at a distance*, *a lot of*."""


@perturbation("number_change", phrase="exchanged singular and plural", level="beyond", tags=True, order=19)
def number_change(caption: Caption, draws: Draws) -> Edits:
    """Turn one noun from singular to plural or back, with its determiner, its verb and the pronouns that point to it.

    The plural of *a dog* is *dogs*, of *one dog* *two dogs*, of *this dog* *these dogs*; the singular of *dogs*,
    *two dogs* and *some dogs* is *a dog*, of *the dogs* *the dog*. A singular with *the*, or without any article, may
    be no countable thing (*in the snow*), and stays.
    """
    agreement = NumberAgreement(caption)
    nouns = [at for at, token in enumerate(caption.tokens) if _may_change(agreement, at, token)]
    for noun in draws.shuffled(nouns):
        try:
            changes = _to_plural(agreement, noun) if caption.tokens[noun].tag == "NN" else _to_one(agreement, noun)
        except Unclear:
            continue
        edits = []
        for position in sorted(changes):
            token, new = caption.tokens[position], changes[position]
            if position and changes.get(position - 1) == "":
                continue
            if new == "":  # a word that goes takes the blank behind it, and leaves its capital
                behind = caption.tokens[position + 1]
                after = cased_like(token.text[:1], changes.get(position + 1, behind.text))
                edits.append(Edit(token.start, behind.end, caption.text[token.start : behind.end], after))
            elif (cased := cased_like(token.text, new)) != token.text:
                edits.append(Edit(token.start, token.end, token.text, cased))
        return tuple(edits)
    has_noun = any(token.tag in _TAGS for token in caption.tokens)
    raise CannotApply("no noun whose number can change" if has_noun else "no common noun")


def _may_change(agreement: NumberAgreement, noun: int, token: Token) -> bool:
    if token.tag not in _TAGS or token.arc in _IN_NAMES or not token.text.isalpha():
        return False
    if not is_noun_first(singularise(token.text.lower())) or agreement.below(noun, "predet"):
        return False
    if token.lemma in SAME_IN_PLURAL or agreement.below(noun, "case"):
        return False
    before, behind = (agreement.caption.token(noun + step) for step in (-1, 1))
    tied = before.end == token.start and before.text[-1:] in "-/'"  # a piece of a longer word: *t-shirt*
    if tied or (behind.start == token.end and (behind.text[:1] in "-/'’" or behind.text[:1].isalpha())):
        return False
    # Where the next word is a noun, too, whatever it was taken for, the parser tore *microwave oven* apart.
    torn = behind.pos == "VERB" and load_wordnet().morphy(behind.text.lower(), "v") is None
    if agreement.is_hidden_verb(noun) or behind.tag in _TAGS or torn:
        return False
    # What the subject is (*This is a dog*), alone or in a list, follows the subject.
    first = token
    while first.arc == "conj" and agreement.tokens[first.head] is not first:
        first = agreement.tokens[first.head]
    if first.arc == "attr" and not agreement.below(first.head, "expl"):
        return False
    return token.lemma not in CO_CAPTION_QUANTITIES | KINDS | _IDIOMS | set(COUNTED_AS) and (
        token.text.islower() or noun == 0
    )


def _to_plural(agreement: NumberAgreement, noun: int) -> dict[int, str]:
    tokens, edge = agreement.tokens, _left_edge(agreement, noun)
    first = tokens[edge].text.lower()
    before = agreement.caption.token(edge - 1).text.lower()
    words = {token.text.lower() for token in tokens[edge + 1 : noun]}
    countable = first in _ARTICLES or first in _SINGLE
    if edge == noun or not countable or words & _ONLY_ONE or is_plural(tokens[noun].text):
        raise Unclear
    if (first in _ARTICLES and before in _BEFORE_ARTICLE) or tokens[edge].tag in ("IN", "WDT"):
        raise Unclear
    changes = agreement.changes(noun, plural=True)
    changes[edge] = _SINGLE.get(first, "")
    changes[noun] = pluralise(tokens[noun].text.lower())
    return changes


def _to_one(agreement: NumberAgreement, noun: int) -> dict[int, str]:
    tokens, edge = agreement.tokens, _left_edge(agreement, noun)
    single = singularise(tokens[noun].text.lower())
    # What counts it from outside: *a group of dogs*, *the rest of the dogs*, *between two dogs*.
    link = tokens[tokens[noun].head]
    whole, word = tokens[link.head], link.text.lower()
    counts = whole.pos != "NOUN" or whole.lemma in CO_CAPTION_QUANTITIES | set(COUNTED_AS) | _PARTS
    counted = tokens[noun].arc == "pobj" and ((word == "of" and counts) or word in _TOGETHER)
    if counted or single == tokens[noun].text.lower():
        raise Unclear
    # A subject may do what only several can do: look at each other.
    together = any(token.text.lower() in _TOGETHER for token in tokens[noun + 1 :])
    if (together and tokens[noun].arc not in ("pobj", "dobj")) or agreement.below(noun, "appos"):
        raise Unclear  # two dogs, one big and one little
    changes = agreement.changes(noun, plural=False)
    changes[noun] = single
    first = tokens[edge].text.lower()
    if first in _POINTING:
        changes[edge] = _POINTING[first]
    elif edge < noun and (first in _SEVERAL or is_number(first)) and not agreement.below(edge):
        changes[edge] = "an" if takes_an(changes.get(edge + 1, tokens[edge + 1].text)) else "a"
    elif (edge < noun and first in _KEPT) or agreement.below(noun, "poss"):
        pass
    elif tokens[edge].arc in ("det", "nummod", "quantmod", "predet") or first in ("more", "most", "fewer"):
        raise Unclear
    else:
        start = changes.get(edge, tokens[edge].text)
        plain = start if tokens[edge].pos == "PROPN" else start[:1].lower() + start[1:]
        changes[edge] = f"{'an' if takes_an(plain) else 'a'} {plain}"
    return changes


def _left_edge(agreement: NumberAgreement, noun: int) -> int:
    """The first token of a noun's phrase; raises :class:`Unclear` where something else is inside it."""
    tokens, edge = agreement.tokens, noun
    while edge and tokens[edge - 1].arc in _BEFORE_NOUN and tokens[edge - 1].head >= edge - 1:
        edge -= 1
    while edge < noun and (tokens[edge].arc in ("punct", "cc", "conj") or not edge <= tokens[edge].head <= noun):
        edge += 1
    # "a blue tent preparing food" is no kind of food: what is done belongs to the noun before it.
    inner = pairwise(tokens[edge : noun + 1])
    activity = any(token.text.endswith("ing") and before.pos == "NOUN" for before, token in inner)
    if activity or any(token.arc == "det" for token in tokens[edge + 1 : noun]):
        raise Unclear
    return edge

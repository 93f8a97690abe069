"""What else changes in a sentence when a noun changes its number: its verbs, and the pronouns that refer to it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache

from crosslens.language import FEMALE, HE, IT, MALE, SHE, THEY, inflected, load_wordnet
from crosslens.perturbations.caption import Caption, Token
from crosslens.perturbations.text.synonym_lexicon import is_noun_first, is_often_verb

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
        self.tokens = caption.tokens
        self.children: list[list[int]] = [[] for _ in self.tokens]
        for position, token in enumerate(self.tokens):
            if token.head != position:
                self.children[token.head].append(position)

    def below(self, position: int, *arcs: str) -> list[int]:
        """The children of a token that hang on it by one of these arcs."""
        return [child for child in self.children[position] if self.tokens[child].arc in arcs]

    def changes(self, noun: int, *, plural: bool) -> dict[int, str]:
        """What must change beside the noun itself; raises :class:`Unclear` where a verb cannot be made to agree."""
        if self.tokens[noun].arc not in _INSIDE and self._has_stray_verb:
            raise Unclear
        changes: dict[int, str] = {}
        for verb in self._verbs(noun):
            changes.update(self._agreeing(verb, plural=plural))
        for pronoun in self._pronouns(noun, plural=plural):
            new = self._pronoun(pronoun, noun, plural=plural)
            if new is not None:
                changes[pronoun] = new
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
        helpers = self.below(verb, "aux", "auxpass")
        finite = min(helpers, default=verb)
        shown = self.tokens[finite]
        if shown.tag in ("MD", "VBG", "VBN", "TO") or (shown.tag == "VBD" and shown.lemma != "be"):
            return {}
        if shown.tag == "VB" and token.arc in ("ccomp", "xcomp"):
            return {}  # watch the horses go
        if token.pos not in ("VERB", "AUX") or shown.tag not in _WITH_NUMBER or not shown.text.isalpha():
            raise Unclear
        new = self._numbered(shown, plural=plural)
        return {} if new == shown.text else {finite: new}

    def _numbered(self, verb: Token, *, plural: bool) -> str:
        lower = verb.text.lower()
        if plural:
            if verb.tag in ("VBP", "VB"):
                return verb.text  # it agreed with something else, or shows no number
            if lower in _PLURAL_OF:
                return _PLURAL_OF[lower]
            return verb.lemma if verb.lemma != lower else load_wordnet().lemmatise(lower, "v")
        if verb.tag == "VBZ":
            return verb.text
        return _SINGULAR_OF.get(lower) or inflected(lower, "VBZ")

    def _pronouns(self, noun: int, *, plural: bool) -> list[int]:
        """The pronouns behind a noun that refer to it: captions begin with whom they are about."""
        pronouns = _OF_ONE if plural else THEY
        behind = [at for at in range(noun + 1, len(self.tokens)) if self.tokens[at].text.lower() in pronouns]
        if not behind or noun != self._first_noun or self.below(noun, "conj"):
            return []
        is_person = _is_person(self.tokens[noun].lemma)
        referring: list[int] = []
        for pronoun in behind:
            word = self.tokens[pronoun].text.lower()
            # What once referred to the noun goes on doing so: a mother holds her baby in her arms.
            same = next((kind for kind in (HE, SHE) if word in kind), frozenset())
            again = any(self.tokens[other].text.lower() in same for other in referring)
            if not (is_person and word in IT) and (again or not self._is_someone_between(noun, pronoun)):
                referring.append(pronoun)
        return referring

    def _is_someone_between(self, noun: int, pronoun: int) -> bool:
        """Whether a personal pronoun may as well refer to another person, named after the noun."""
        if self.tokens[pronoun].text.lower() not in HE | SHE:
            return False
        return any(token.tag == "NN" and _is_person(token.lemma) for token in self.tokens[noun + 1 : pronoun])

    @cached_property
    def _has_stray_verb(self) -> bool:
        """Whether a verb that shows number has no subject in the parse: its subject may be any noun."""
        return any(
            self._is_stray(position) if token.tag in ("VBZ", "VBP") else self.is_hidden_verb(position)
            for position, token in enumerate(self.tokens)
        )

    def is_hidden_verb(self, position: int) -> bool:
        """Whether a noun is likely a verb that was tagged as one: *kicks the ball*, *the crowd cheers*."""
        token = self.tokens[position]
        if token.tag not in ("NN", "NNS"):
            return False
        behind = self.tokens[position + 1].tag if position + 1 < len(self.tokens) else ""
        after_noun = position > 0 and self.tokens[position - 1].pos == "NOUN"
        if after_noun and behind == "IN" and token.tag == "NNS":  # around his neck points at
            return is_often_verb(token.lemma, share=0.1)
        return is_often_verb(token.lemma) and (behind == "DT" or after_noun or not is_noun_first(token.lemma))

    def is_predicate(self, position: int) -> bool:
        """Whether a noun says what the subject is (*This is a dog*), alone or in a list: it follows the subject."""
        while self.tokens[position].arc == "conj" and self.tokens[position].head != position:
            position = self.tokens[position].head
        token = self.tokens[position]
        return token.arc == "attr" and not self.below(token.head, "expl")

    def _is_stray(self, verb: int) -> bool:
        while not self.below(verb, *_SUBJECTS, "expl"):
            token = self.tokens[verb]
            if token.head == verb or token.arc not in ("conj", "aux", "auxpass"):
                return True
            verb = token.head
        return False

    def _is_before_noun(self, position: int) -> bool:
        return position + 1 < len(self.tokens) and self.tokens[position + 1].pos in ("NOUN", "ADJ")

    @cached_property
    def _first_noun(self) -> int:
        nouns = (at for at, token in enumerate(self.tokens) if token.pos == "NOUN" and token.arc not in _IN_NAMES)
        return next(nouns, -1)

    def _pronoun(self, pronoun: int, noun: int, *, plural: bool) -> str | None:
        token = self.tokens[pronoun]
        word = token.text.lower()
        if plural:
            if word == "her":
                return "their" if token.tag == "PRP$" or self._is_before_noun(pronoun) else "them"
            return _PLURAL_PRONOUN.get(word)
        lemma = self.tokens[noun].lemma
        if lemma in MALE or lemma in FEMALE:
            return _FORMS["he" if lemma in MALE else "she"][_THEY[word]]
        return None if _is_person(lemma) else _FORMS["it"][_THEY[word]]  # of a person who may be either, *they* stays


@lru_cache(maxsize=1 << 12)
def _is_person(noun: str) -> bool:
    words = load_wordnet()
    person = words.synset("person.n.01")
    first = map(int, words.synsets(noun, "n")[:1])
    return noun == "people" or any(person in (synset, *words.hypernym_closure(synset)) for synset in first)

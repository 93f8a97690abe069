"""Questions about a parse: the noun that a word refers to, what is listed beside it, the subjects of a verb."""

from __future__ import annotations

from collections.abc import Iterator

from crosslens.language.parse import Parse, is_phrase, repaired
from crosslens.language.scene_words import (
    ALWAYS_PAIRS,
    CO_CAPTION_QUANTITIES,
    COUNTED_AS,
    FEMALE,
    FIXED_PHRASES,
    HE,
    IT,
    KINDS,
    MALE,
    RELATIVE,
    SHE,
    SIDES,
    THEY,
    number_word,
)

_PREPOSITIONS = frozenset({"prep", "agent", "dative"})
_BEFORE_NOUN = frozenset({"compound", "nmod"})


class Grammar:
    """Questions about one parse. Positions are those of its tokens."""

    def __init__(self, parse: Parse) -> None:
        parse = self.parse = repaired(parse)
        self.children: list[list[int]] = [[] for _ in parse.words]
        for token, head in enumerate(parse.heads):
            if token != head:
                self.children[head].append(token)
        self.absorbed: set[int] = set()
        """Nouns that are no objects: they are part of another's name, a quantity, or part of a preposition."""
        self.quantity_of: dict[int, int] = {}
        self.side_of: dict[int, int] = {}
        """A noun that is part of a preposition → the *of* behind it: *on top of*."""
        self.names: dict[int, str] = {}
        nouns = [token for token in range(len(parse)) if self.is_noun(token)]
        for token in range(len(parse)):
            if parse.words[token].lower() == "of" and parse.arcs[token] == "prep":
                self._see_quantity(parse.heads[token], token)
                self._see_side(parse.heads[token], token)
        for token in nouns:
            if parse.arcs[token] not in _BEFORE_NOUN:
                self._name(token)

    def below(self, token: int, *arcs: str) -> list[int]:
        """The children of a token by one of these arcs."""
        return [child for child in self.children[token] if self.parse.arcs[child] in arcs]

    def is_noun(self, token: int) -> bool:
        """Nouns and names, and pronouns such as *someone*."""
        pos, tag = self.parse.pos[token], self.parse.tags[token]
        return pos in ("NOUN", "PROPN") or (pos == "PRON" and tag == "NN")

    def objects(self) -> list[int]:
        """The tokens that are objects, from left to right."""
        return [token for token in self.names if token not in self.absorbed]

    def listed(self, token: int) -> list[int]:
        """A token and what is joined to it by *and*, *or* or a comma, if it is of the same kind."""
        tokens = [token]
        for other in self.below(token, "conj"):
            if self._alike(token, other):
                tokens += self.listed(other)
        return tokens

    def referents(self, token: int) -> list[int]:
        """The objects that a token and those listed beside it refer to."""
        referents = map(self.referent, self.listed(token))
        return [referent for referent in dict.fromkeys(referents) if referent is not None]

    def referent(self, token: int) -> int | None:
        """The object that a token refers to: itself, what it is a quantity of, or the noun of a pronoun."""
        if token in self.quantity_of:
            return self.referent(self.quantity_of[token])
        if token in self.names and token not in self.absorbed:
            return token
        if self.parse.pos[token] == "PRON" or self.parse.tags[token] in ("WDT", "WP", "WP$"):
            return self._antecedent(token)
        return None

    def prepositions(self, token: int) -> Iterator[tuple[str, list[int]]]:
        """Each preposition on a token, as one string, with the objects behind it."""
        for child in self.children[token]:
            if self.parse.arcs[child] == "dative" and (self.is_noun(child) or self.parse.pos[child] == "PRON"):
                yield "to", self.referents(child)  # gives the goat an apple
            elif self.parse.arcs[child] in _PREPOSITIONS:
                yield from self._behind(child, self.parse.words[child].lower())
            elif self.parse.arcs[child] == "advmod" and self.below(child, "prep"):  # next to, close to
                for inner in self.below(child, "prep"):
                    yield from self._behind(inner, self._both(child, inner))

    def _behind(self, preposition: int, name: str) -> Iterator[tuple[str, list[int]]]:
        for noun in self.below(preposition, "pobj"):
            if noun in self.side_of:
                inner = self.side_of[noun]
                yield from self._behind(inner, f"{name} {self._both(noun, inner)}")
            else:
                yield name, self.referents(noun)
        for inner in self.below(preposition, "prep"):  # out of, up against
            yield from self._behind(inner, f"{name} {self.parse.words[inner].lower()}")
        for other in self.below(preposition, "conj"):  # over and under
            yield from self._behind(other, self.parse.words[other].lower())

    def _both(self, first: int, second: int) -> str:
        return f"{self.parse.words[first]} {self.parse.words[second]}".lower()

    def _see_side(self, token: int, of: int) -> None:
        if self.parse.words[token].lower() in SIDES and self.parse.arcs[token] == "pobj" and self.below(of, "pobj"):
            self.side_of[token] = of
            self.absorbed.add(token)

    def _see_quantity(self, token: int, of: int) -> None:
        """*a group of people*, *two of the sheep*: the first word is absorbed, and refers to the second."""
        lemma = self.parse.lemmas[token]
        noun = lemma in CO_CAPTION_QUANTITIES or lemma in COUNTED_AS or lemma in KINDS
        if (self.is_noun(token) and noun) or self.parse.pos[token] in ("NUM", "DET", "PRON"):
            for whole in self.below(of, "pobj"):
                self.quantity_of[token] = whole
                self.absorbed.add(token)

    def quantity(self, token: int) -> str | None:
        """What a quantity says of its object: *two* for a couple, *group* for a group, nothing for a kind."""
        lemma = self.parse.lemmas[token]
        if not self.is_noun(token):
            return self.numeral(token) if self.parse.pos[token] == "NUM" else None
        if lemma == "pair" and self.parse.words[self.quantity_of[token]].lower() in ALWAYS_PAIRS:
            return None
        return None if lemma in KINDS else COUNTED_AS.get(lemma, lemma)

    def _name(self, token: int) -> None:
        """A noun's name: with the nouns before it where WordNet lists them as one word, else alone."""
        lemma = self.parse.lemmas[token]
        before = self._before(token)
        for start in range(len(before)):
            front = before[start:]
            words = " ".join(self.parse.words[word].lower() for word in front)
            names = all(self.parse.pos[word] == "PROPN" for word in (*front, token))
            if names or is_phrase(f"{words} {lemma}") or f"{words} {lemma}" in FIXED_PHRASES:
                self.names[token] = f"{words} {lemma}"
                self.absorbed.update(front)
                break
        else:
            self.names[token] = lemma
        self.absorbed.update(filter(self.is_noun, before))

    def _before(self, token: int) -> list[int]:
        """The unbroken run of modifying nouns right before a noun; of adjectives, those of a fixed phrase."""
        run: list[int] = []
        before = token - 1
        while before >= 0 and self.parse.arcs[before] in _BEFORE_NOUN and self._leads_to(before, token):
            run.insert(0, before)
            before -= 1
        if not run and before >= 0 and self.parse.heads[before] == token and self.parse.arcs[before] == "amod":
            return [before] if self._both(before, token) in FIXED_PHRASES else []
        return run

    def _leads_to(self, token: int, target: int) -> bool:
        while self.parse.arcs[token] in _BEFORE_NOUN and token != target:
            token = self.parse.heads[token]
        return token == target

    def _alike(self, token: int, other: int) -> bool:
        if self.is_noun(token) or token in self.names:
            return self.is_noun(other) or self.parse.pos[other] == "PRON"
        return not self.is_noun(other)

    def _antecedent(self, token: int) -> int | None:
        """The noun that a pronoun refers to: of a relative clause, the noun it depends on; else an earlier one.

        A person's pronoun takes the first noun that fits in number and sex, as captions begin with their subject; *it*
        takes the nearest.
        """
        word = self.parse.words[token].lower()
        clause = self._clause(token)
        if word in RELATIVE and clause is not None:
            return self.referent(self.parse.heads[clause])
        before = [noun for noun in self.objects() if noun < token]
        single = [noun for noun in before if self.parse.tags[noun] not in ("NNS", "NNPS")]
        if word in THEY:
            return next((noun for noun in before if noun not in single or self.below(noun, "conj")), None)
        if word in IT:
            return next((noun for noun in reversed(single) if self.parse.lemmas[noun] not in MALE | FEMALE), None)
        if word in HE | SHE:
            own, others = (MALE, FEMALE) if word in HE else (FEMALE, MALE)
            fitting = [noun for noun in single if self.parse.lemmas[noun] not in others]
            return next((noun for noun in fitting if self.parse.lemmas[noun] in own), next(iter(fitting), None))
        return None

    def _clause(self, token: int) -> int | None:
        """The verb of the relative clause that a word is in."""
        while self.parse.heads[token] != token:
            if self.parse.arcs[token] == "relcl":
                return token
            token = self.parse.heads[token]
        return None

    def numeral(self, token: int) -> str:
        """A numeral with the words that belong to it."""
        parts = [*self.below(token, "compound", "quantmod"), token]
        return " ".join(number_word(self.parse.words[part]) for part in sorted(parts))

    def subjects(self, verb: int) -> list[int]:
        """The subjects of a verb; without one of its own, those of the verb it depends on."""
        own = self.below(verb, "nsubj", "nsubjpass")
        if own:
            return [noun for subject in own for noun in self.referents(subject)]
        arc, head = self.parse.arcs[verb], self.parse.heads[verb]
        if arc in ("acl", "relcl"):
            return self.referents(head)
        if arc == "pcomp":
            head = self.parse.heads[head]
        if arc in ("conj", "xcomp", "advcl", "pcomp", "dep", "ccomp") and head != verb:
            if self.is_verb(head):
                return self.subjects(head)
            referent = self.referent(head)
            return [] if referent is None else [referent]
        return []

    def is_verb(self, token: int) -> bool:
        """Main verbs, and *be* where it is one."""
        pos, arc = self.parse.pos[token], self.parse.arcs[token]
        return pos in ("VERB", "AUX") and arc not in ("aux", "auxpass", "amod", "compound", "case", "mark", "prep")

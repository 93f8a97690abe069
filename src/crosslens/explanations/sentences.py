"""What is certain about one query: the facts that its two sentences may be built from."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from math import isfinite
from typing import Any, NamedTuple

from crosslens.explanations.explanation import Claim, Sentence
from crosslens.explanations.lexicon import ATTRIBUTE_FAMILIES, TABLES, are_related, is_object_word, is_visible, word_set
from crosslens.explanations.mentions import SATISFIED, VIOLATED, MentionCheck, QueryMentions
from crosslens.explanations.objects import AnnotatedImage, ImageObject
from crosslens.language import ALWAYS_PAIRS, NUMBERS, is_plural, pluralise, takes_an

_LISTED = re.compile(r"\s*,?\s*(?:and\s+)?|\s*[/-]\s*")


class ObjectPhrase(NamedTuple):
    """Objects under one noun: ``plural`` where they are several, ``number`` how many, where the text states it."""

    noun: str
    plural: bool = False
    number: int | None = None


class WrongValue(NamedTuple):
    """The text states ``wording`` (as written); every such object of the image is ``observed`` instead."""

    phrase: ObjectPhrase
    family: str
    wording: str
    observed: tuple[str, ...]
    number: int


@dataclass(frozen=True)
class QueryFacts:
    """Everything that a sentence may state.

    The mentions are the query's, or the retrieved caption's for an image query; they are checked against the image that
    should satisfy them: the retrieved one, or the query image. ``right`` is the image that is relevant to the query,
    ``other`` the one that was retrieved (or, where the query succeeded, came next).

    ``lacking``      mentioned objects of which the checked image has none, but the other does (or may)
    ``lacking_both`` mentioned objects of which neither image has any
    ``wrong_counts`` (noun, number mentioned, number of such objects in the checked image: at least one)
    ``misplaced``    (noun, side, other noun): mentioned on a side of the other, where none of the checked image's is
    ``fitting``      mentioned objects that the checked image has
    ``checked``      whether the text was parsed at all
    ``incomplete``   whether the list came ready-made, and may be shorter than the gallery: ``gallery`` is its length
    ``only_right``   objects of the right image of which the other has none; ``only_other`` the reverse
    ``shared``       objects of both; ``counts`` (noun, right, other) where their numbers differ
    """

    direction: str
    source: str
    succeeded: bool
    rank: int | None
    gallery: int
    margin: float | None = None
    margin_at_least: float | None = None
    compared: bool = True
    checked: bool = True
    lacking: tuple[ObjectPhrase, ...] = ()
    lacking_both: tuple[ObjectPhrase, ...] = ()
    wrong_counts: tuple[tuple[str, int, int], ...] = ()
    wrong_values: tuple[WrongValue, ...] = ()
    misplaced: tuple[tuple[str, str, str], ...] = ()
    fitting: tuple[ObjectPhrase, ...] = ()
    only_right: tuple[ObjectPhrase, ...] = ()
    only_other: tuple[ObjectPhrase, ...] = ()
    shared: tuple[ObjectPhrase, ...] = ()
    counts: tuple[tuple[str, int, int], ...] = ()
    incomplete: bool = False


def mention_facts(
    mentions: QueryMentions, checked: Sequence[MentionCheck], own_checks: Sequence[MentionCheck]
) -> dict[str, Any]:
    """The fields of :class:`QueryFacts` about the mentions, by their checks against the image that should satisfy them
    and by ``own_checks``, against the image that the text was written for."""
    numbers = {mention.noun: mention.number for mention in mentions.of("count")}
    phrases = {
        mention.noun: ObjectPhrase(mention.noun, is_plural(mention.text.lower()), numbers.get(mention.noun))
        for mention in mentions.of("object")
    }
    objects = [check for check in checked if check.word.kind == "object"]
    lacking = list(dict.fromkeys(check.word.noun for check in objects if check.verdict == VIOLATED))
    doubtful = {check.word for check in own_checks if check.verdict == VIOLATED}
    lacking_own = {mention.noun for mention in doubtful if mention.kind == "object"}
    wrong = [check for check in checked if check.verdict == VIOLATED and check.word.noun not in lacking]
    wrong.sort(key=lambda check: check.word in doubtful)  # what fits neither image says little about this one
    counts, misplaced = [], []
    values: dict[WrongValue, None] = {}
    for check in wrong:
        word = check.word
        if word.kind == "count" and check.number and word.number is not None:
            counts.append((word.noun, word.number, check.number))
        elif word.kind in ATTRIBUTE_FAMILIES and check.observed:
            wording = _wording(check, mentions)
            values[WrongValue(phrases[word.noun], word.kind, wording, check.observed, check.number or 1)] = None
        elif word.kind == "relation" and word.other not in lacking and check.side:
            misplaced.append((word.noun, check.side, word.other))
    # What is there, once: sheet and paper are one object where a sheet of paper is all that they name.
    satisfied = [check for check in objects if check.verdict == SATISFIED]
    distinct = {(check.observed, check.number): check for check in reversed(satisfied)}
    fitting: dict[ObjectPhrase, None] = {}
    for check in reversed(distinct.values()):
        phrase = phrases[check.word.noun]
        if phrase.plural and check.number == 1:  # several were mentioned and one is there: of people, the person
            phrase = ObjectPhrase(check.observed[0] if is_plural(phrase.noun) else phrase.noun)
        fitting[phrase] = None
    return {
        "lacking": tuple(phrases[noun] for noun in lacking if noun not in lacking_own),
        "lacking_both": tuple(phrases[noun] for noun in lacking if noun in lacking_own),
        "wrong_counts": tuple(counts),
        "wrong_values": tuple(values),
        "misplaced": tuple(misplaced),
        "fitting": tuple(fitting),
    }


def _wording(check: MentionCheck, mentions: QueryMentions) -> str:
    """A value with those that are listed with it: of a *black and white dog*, both."""
    start, end = check.word.start, check.word.end
    alike = [word for word in mentions.of(check.word.kind) if word.noun == check.word.noun]
    for word in [*alike, *reversed(alike)]:
        if end < word.start and _LISTED.fullmatch(mentions.text[end : word.start]):
            end = word.end
        elif word.end < start and _LISTED.fullmatch(mentions.text[word.end : start]):
            start = word.start
    if (start, end) == (check.word.start, check.word.end):
        return check.word.text.lower()
    return re.sub(r"\s+,", ",", mentions.text[start:end].lower())


def image_facts(right: AnnotatedImage, other: AnnotatedImage, reported: Collection[str] = ()) -> dict[str, Any]:
    """The fields of :class:`QueryFacts` about both images: only what no other annotation in them makes doubtful.

    Objects that the nouns ``reported`` name are left out where only one image has them.
    """
    mine, theirs = _by_name(right), _by_name(other)
    shared = [name for name in mine if name in theirs]
    countable = [name for name in shared if _is_countable(name, right) and _is_countable(name, other)]
    return {
        "only_right": _only(mine, other, reported),
        "only_other": _only(theirs, right, reported),
        "shared": tuple(ObjectPhrase(name, len(mine[name]) > 1 and len(theirs[name]) > 1) for name in shared),
        "counts": tuple(
            (name, len(mine[name]), len(theirs[name])) for name in countable if len(mine[name]) != len(theirs[name])
        ),
    }


def _by_name(image: AnnotatedImage) -> dict[str, list[ImageObject]]:
    """The objects by name, those that fill most of the image first."""
    objects: dict[str, list[ImageObject]] = {}
    for item in image.objects:
        if image.source == "annotations" or (is_object_word(item.name) and is_visible(item.name)):
            objects.setdefault(item.name, []).append(item)
    size = {name: sum(item.area or 0.0 for item in items) for name, items in objects.items()}
    return dict(sorted(objects.items(), key=lambda entry: (-size[entry[0]], entry[0])))


def _only(
    by_name: Mapping[str, Sequence[ImageObject]], other: AnnotatedImage, reported: Collection[str]
) -> tuple[ObjectPhrase, ...]:
    """What the other image lacks: it has nothing of that name, no synonym, and nothing that may be the same after all.

    Of an object without a synset it is unknown what it is.
    """
    present = {item.synset for item in other.objects if item.synset is not None}
    phrases = []
    for name, items in by_name.items():
        if other.of(name) or other.may_have(name) or (other.source == "captions" and other.says(name)):
            continue
        if any(item.synset is None or any(map(item.is_a, reported)) for item in items):
            continue
        if not any(are_related(item.synset, synset) for item in items if item.synset for synset in present):
            phrases.append(ObjectPhrase(name, len(items) > 1))
    return tuple(phrases)


def _is_countable(name: str, image: AnnotatedImage) -> bool:
    """Whether the objects of that name are all that the name can mean, and each is a single one."""
    objects = [item for item in image.objects if item.name == name]
    if image.source == "captions" or is_plural(name) or any(item.crowd for item in objects):
        return False
    return len(image.of(name)) == len(objects) and not image.may_have(name)


_MASS = word_set(TABLES["nouns"]["mass"])
"""Nouns without an article or a plural."""
_CAPITALS = {"tv": "TV", "atm": "ATM", "suv": "SUV", "dvd": "DVD", "cd": "CD", "pc": "PC", "usb": "USB", "atv": "ATV"}
_ALWAYS_PLURAL = {word[:-2] if word.endswith("sses") else word[:-1]: word for word in ALWAYS_PAIRS - {"glasses"}}
"""Lemmas that are no words of their own: a *jean*."""
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_DIGITS = 3
_NEXT_TO_NOTHING = 1e-4
"""A distance between scores below which its digits say nothing."""


# Forms of nouns and numbers


def spelled(name: str) -> str:
    """Names are kept in lower case, as lemmas; a few have capitals or are always plural."""
    *words, head = name.split(" ")
    return " ".join(_CAPITALS.get(word, word) for word in (*words, _ALWAYS_PLURAL.get(head, head)))


def with_article(name: str) -> str:
    """A noun with its indefinite article, if it takes one."""
    name = spelled(name)
    if is_plural(name) or _is_mass(name):
        return name
    return f"{'an' if takes_an(name) else 'a'} {name}"


def plural(name: str) -> str:
    """The plural; a name that is plural already stays."""
    name = spelled(name)
    return name if is_plural(name) or _is_mass(name) else pluralise(name)


def _is_mass(name: str) -> bool:
    """By the head noun: *loaf of bread* is countable."""
    return name.split(" of ")[0].split(" ")[-1] in _MASS


def with_number(number: int, name: str) -> str:
    """*one dog*, *three dogs*, *42 dogs*; *no dog*."""
    if number == 0:
        return f"no {spelled(name)}"
    return f"{number_word(number)} {spelled(name) if number == 1 else plural(name)}"


def number_word(number: int) -> str:
    """Small numbers as words."""
    return NUMBERS[number] if number < len(NUMBERS) else f"{number:,}"


def join_words(parts: Sequence[str], joint: str = "and") -> str:
    """*a*, *a and b*, *a, b and c*."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {joint} {parts[-1]}"


def ordinal(rank: int) -> str:
    """*second*, *13th*."""
    if rank <= len(_ORDINALS):
        return _ORDINALS[rank - 1]
    ending = "th" if rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank:,}{ending}"


def rounded(value: float) -> str:
    """Three significant digits of a distance between scores; what is next to nothing is less than a limit."""
    if value < _NEXT_TO_NOTHING:
        return f"less than {_NEXT_TO_NOTHING:.4f}"
    return f"{value:.{_DIGITS}g}" if value < 10**_DIGITS else f"{value:,.0f}"


def rounded_down(value: float) -> str:
    """Three significant digits, never more than the value: for what is said to be *at least* so much."""
    if not isfinite(value) or value <= 0:
        return "0"
    # In decimals: between the smallest floats no power of ten has a reciprocal.
    digits = Context(prec=_DIGITS, rounding=ROUND_DOWN).create_decimal_from_float(value)
    return f"{float(digits):.{_DIGITS}g}"


RIGHT, OTHER, WORDS, RANKING = "right", "other", "words", "ranking"
_MOST_NAMES, _MOST_FAULTS = 3, 2
_SIDES = {"left": "to the left of", "right": "to the right of", "above": "above", "below": "below"}


@dataclass(frozen=True)
class _Terms:
    """How the images and the text are called: it depends on the direction, and on what came first."""

    subject: str
    """Whose words they are: *The query*."""
    verb: str
    checked: str
    """The image that the words are checked against, and ``side`` which of the two that is."""
    side: str
    other: str
    """The other image, seen from the right one."""
    other_image: str
    right: str
    """The right image as the subject of a clause after *unlike*."""

    @staticmethod
    def of(facts: QueryFacts) -> _Terms:
        if facts.direction == "i2t":
            caption = "The next caption of another picture" if facts.succeeded else "The retrieved caption"
            home = f"the picture of {'that' if facts.succeeded else 'the retrieved'} caption"
            return _Terms(caption, "speaks of", "the query picture", RIGHT, home, home, "the query picture")
        kind = "next" if facts.succeeded else "retrieved"
        checked = f"the {kind} picture"
        return _Terms("The query", "asks for", checked, OTHER, f"the {kind} one", checked, "it")

    @property
    def lower_subject(self) -> str:
        return self.subject[:1].lower() + self.subject[1:]


def sentences(facts: QueryFacts) -> tuple[Sentence, Sentence]:
    """What is wrong (or right) with the retrieved image, and the rank: of a failure the words first."""
    terms = _Terms.of(facts)
    clauses = [_rank(facts), *([_difference(facts, terms)] if facts.compared else [])]
    clauses = [clause for clause in clauses if clause.text]
    ranking = Sentence("; ".join(clause.text for clause in clauses) + ".", _claims(clauses))
    words = _about_words(facts, terms)
    return (ranking, words) if facts.succeeded else (words, ranking)


# What the words ask for


def _about_words(facts: QueryFacts, terms: _Terms) -> Sentence:
    if not facts.compared:
        return Sentence("No other picture was kept to compare it with.")
    faults = _faults(facts, terms)[:_MOST_FAULTS]
    if faults:
        text = f"; it also {terms.verb} ".join(clause.text for clause in faults)
        return Sentence(f"{terms.subject} {terms.verb} {text}.", _claims(faults))
    if items := facts.lacking_both[:_MOST_NAMES]:
        alone = "one" if with_article(items[0].noun) != spelled(items[0].noun) and not items[0].plural else "any"
        text = f"neither picture has {(alone, 'either', 'any of them')[len(items) - 1]}"
        if facts.source == "captions":
            text = f"no caption of either picture mentions {'that' if len(items) == 1 else 'any of them'}"
        lacks = [Claim(image, "lacks", item.noun) for item in items for image in (RIGHT, OTHER)]
        names = join_words([_called(item) for item in items])
        return Sentence(f"{terms.subject} names {names}, but {text}.", (*_as_claimed(items), *lacks))
    if items := facts.fitting[:_MOST_NAMES]:
        names = join_words([_plainly(item) for item in items])
        more = " among others," if len(facts.fitting) > len(items) else ""
        where = terms.checked if facts.source != "captions" else f"the captions of {terms.checked}"
        claims = [
            Claim(image, kind, item.noun) for item in items for image, kind in ((WORDS, "name"), (terms.side, "has"))
        ]
        text = f"What can be checked of {terms.lower_subject}, {names},{more} is in {where}."
        return Sentence(text, (*claims, Claim(WORDS, "no fault")))
    if not facts.checked:
        return Sentence(f"{terms.subject} was not read word by word.")
    source = "captions" if facts.source == "captions" else "annotated objects"
    text = f"Nothing that {terms.lower_subject} {terms.verb} can be checked against the {source}."
    return Sentence(text, (Claim(WORDS, "unchecked"),))


def _faults(facts: QueryFacts, terms: _Terms) -> list[Sentence]:
    """What is wrong with the checked image, the plainest first; each continues after *asks for*."""
    faults = []
    if items := facts.lacking[:_MOST_NAMES]:
        text = f"but {terms.checked} has {('none', 'neither', 'none of them')[len(items) - 1]}"
        if facts.source == "captions":
            pronoun = ("", " either of them", " any of them")[len(items) - 1]
            text = f"{'which' if len(items) == 1 else 'but'} no caption of {terms.checked} mentions{pronoun}"
        lacks = [Claim(terms.side, "lacks", item.noun) for item in items]
        names = join_words([_called(item) for item in items])
        faults.append(Sentence(f"{names}, {text}", (*_as_claimed(items), *lacks)))
    for noun, count, observed in facts.wrong_counts:
        text = f"{with_number(count, noun)}, but {terms.checked} has {number_word(observed)}"
        faults.append(Sentence(text, (Claim(WORDS, "count", noun, count), Claim(terms.side, "count", noun, observed))))
    faults += [_wrong_value(wrong, facts, terms) for wrong in facts.wrong_values]
    for noun, side, other in facts.misplaced:
        where = f"{_SIDES[side]} {with_article(other)}"
        verb = "are" if is_plural(noun) else "is"
        text = f"{with_article(noun)} {where}, but in {terms.checked} no {spelled(noun)} {verb} {where}"
        claims = Claim(WORDS, "place", noun, (side, other)), Claim(terms.side, "not placed", noun, (side, other))
        faults.append(Sentence(text, claims))
    return faults


def _as_claimed(phrases: Sequence[ObjectPhrase]) -> list[Claim]:
    """What the words are said to ask for."""
    counts = [Claim(WORDS, "count", item.noun, item.number) for item in phrases if item.number is not None]
    return [*(Claim(WORDS, "name", item.noun) for item in phrases), *counts]


def _wrong_value(wrong: WrongValue, facts: QueryFacts, terms: _Terms) -> Sentence:
    name, observed = wrong.phrase.noun, join_words(wrong.observed)
    wanted = f"{wrong.wording} {plural(name)}" if wrong.phrase.plural else with_article(f"{wrong.wording} {name}")
    value = f"made of {observed}" if wrong.family == "material" else observed
    if facts.source == "captions":
        pronoun = "them" if wrong.phrase.plural else "it"
        text = f"{wanted}, but the captions of {terms.checked} call {pronoun} {observed}"
    elif wrong.number == 1:
        text = f"{wanted}, but the one in {terms.checked} is {value}"
    else:
        text = f"{wanted}, but those in {terms.checked} are {value}"
    claims = (
        Claim(WORDS, wrong.family, name, wrong.wording),
        Claim(terms.side, wrong.family, name, wrong.observed),
        Claim(terms.side, "several" if wrong.number > 1 else "single", name, wrong.number),
    )
    return Sentence(text, claims[:2] if facts.source == "captions" else claims)


# The rank of the relevant item, and how the images differ


def _rank(facts: QueryFacts) -> Sentence:
    noun = "caption" if facts.direction == "i2t" else "picture"
    right = "A caption of the query picture" if facts.direction == "i2t" else "The right picture"
    # A ready-made list may hold the first few of a large gallery: its length is all that is known.
    among = f"in a list of {facts.gallery:,} {noun}s" if facts.incomplete else f"of {facts.gallery:,} {noun}s"
    if facts.rank is None:
        return Sentence(f"{right} is not in the list that was kept", (Claim(RANKING, "unlisted"),))
    if facts.succeeded:
        text = f"{right} comes first {among}"
    else:
        best = "The best caption of the query picture" if facts.direction == "i2t" else right
        text = f"{best} comes {ordinal(facts.rank)} {among}"
    size = "list" if facts.incomplete else "gallery"
    claims = [Claim(RANKING, "rank", value=facts.rank), Claim(RANKING, size, value=facts.gallery)]
    if facts.margin == 0:
        text += ", with the same score as the next" if facts.succeeded else ", with the same score as the first"
        claims.append(Claim(RANKING, "margin", value=0.0))
    elif facts.margin is not None:
        ahead = "ahead of the next" if facts.succeeded else "behind the first"
        text += f", {rounded(abs(facts.margin))} {ahead} in score"
        claims.append(Claim(RANKING, "margin", value=facts.margin))
    elif facts.margin_at_least and facts.margin_at_least >= _NEXT_TO_NOTHING:
        text += f", at least {rounded_down(facts.margin_at_least)} behind the first in score"
        claims.append(Claim(RANKING, "margin at least", value=facts.margin_at_least))
    return Sentence(text, tuple(claims))


def _difference(facts: QueryFacts, terms: _Terms) -> Sentence:
    """What the right image has and the other lacks, or the reverse; else a count; else what both have."""
    reported = {item.noun for item in (*facts.lacking, *facts.lacking_both)}
    more = [item for item in facts.only_right if item.noun not in reported][:_MOST_NAMES]
    less = [item for item in facts.only_other if item.noun not in reported][:_MOST_NAMES]
    if more or less:
        claims = [*_one_sided(more, RIGHT, OTHER), *_one_sided(less, OTHER, RIGHT)]
        have = join_words([_plainly(item) for item in more]) if more else ""
        lack = f"no {join_words([spelled(item.noun) for item in less], 'or')}" if less else ""
        unlike = f"unlike {terms.other}, {terms.right} has"
        if facts.source == "captions":
            its = "its captions" if terms.right == "it" else f"the captions of {terms.right}"
            unlike = f"unlike those of {terms.other}, {its} mention"
        return Sentence(f"{unlike} {', but '.join(part for part in (have, lack) if part)}", tuple(claims))
    if facts.counts:
        name, mine, theirs = facts.counts[0]
        text = f"{terms.right} has {with_number(mine, name)}, {terms.other_image} {number_word(theirs)}"
        return Sentence(text, (Claim(RIGHT, "count", name, mine), Claim(OTHER, "count", name, theirs)))
    if facts.shared:
        shared = facts.shared[:_MOST_NAMES]
        verb = "the captions of both mention" if facts.source == "captions" else "both pictures have"
        claims = [Claim(image, "has", item.noun) for item in shared for image in (RIGHT, OTHER)]
        return Sentence(f"{verb} {join_words([_plainly(item) for item in shared])}", tuple(claims))
    return Sentence("")


def _one_sided(phrases: Sequence[ObjectPhrase], having: str, lacking: str) -> list[Claim]:
    return [
        claim for item in phrases for claim in (Claim(having, "has", item.noun), Claim(lacking, "lacks", item.noun))
    ]


# Forms of a phrase


def _plainly(item: ObjectPhrase) -> str:
    return plural(item.noun) if item.plural else with_article(item.noun)


def _called(item: ObjectPhrase) -> str:
    """As the words call it, with its number if they give one."""
    return _plainly(item) if not item.number else with_number(item.number, item.noun)


def _claims(clauses: Sequence[Sentence]) -> tuple[Claim, ...]:
    return tuple(claim for clause in clauses for claim in clause.claims)

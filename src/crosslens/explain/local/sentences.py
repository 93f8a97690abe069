"""Two sentences in plain English about one query. Every clause is built from a fact, and names the claims it makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from crosslens.explain.local.facts import Facts, Named, WrongValue
from crosslens.explain.local.phrases import (
    counted,
    listed,
    many,
    number_word,
    one,
    ordinal,
    rounded,
    rounded_down,
    spelled,
)

RIGHT, OTHER, WORDS, RANKING = "right", "other", "words", "ranking"
_MOST_NAMES, _MOST_FAULTS = 3, 2
_SIDES = {"left": "to the left of", "right": "to the right of", "above": "above", "below": "below"}


class Claim(NamedTuple):
    """Something that a sentence says: of what (``right``, ``other``, ``words``, ``ranking``), what, and how much."""

    about: str
    kind: str
    name: str = ""
    value: Any = None


@dataclass(frozen=True)
class Sentence:
    """A sentence with all that it claims."""

    text: str
    claims: tuple[Claim, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {"text": self.text, "claims": [claim._asdict() for claim in self.claims]}


@dataclass(frozen=True)
class _Clause:
    text: str
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True)
class _Voice:
    """What the pictures and the words are called: it depends on who asked, and on who came first."""

    words: str
    """Who speaks, with the verb: *The query asks for*."""
    checked: str
    """The picture that the words are checked against, and ``about`` which of the two that is."""
    about: str
    other: str
    """The other picture, seen from the right one."""
    other_picture: str
    right: str
    """The right picture as the subject of a clause after *unlike*."""

    @staticmethod
    def of(facts: Facts) -> _Voice:
        if facts.direction == "i2t":
            which = "next caption of another picture" if facts.succeeded else "retrieved caption"
            home = f"the picture of {'that' if facts.succeeded else 'the retrieved'} caption"
            return _Voice(f"The {which} speaks of", "the query picture", RIGHT, home, home, "the query picture")
        which = "next" if facts.succeeded else "retrieved"
        checked = f"the {which} picture"
        return _Voice("The query asks for", checked, OTHER, f"the {which} one", checked, "it")


def sentences(facts: Facts) -> tuple[Sentence, Sentence]:
    """What went wrong (or right), and how far: the words first, as they were what was asked for."""
    voice = _Voice.of(facts)
    words, places = _about_words(facts, voice), _about_places(facts, voice)
    return (places, words) if facts.succeeded else (words, places)


# What the words ask for


def _about_words(facts: Facts, voice: _Voice) -> Sentence:
    if not facts.compared:
        return Sentence("No other picture was kept to compare it with.")
    faults = _faults(facts, voice)[:_MOST_FAULTS]
    if faults:
        text = f"; it also {_verb(voice)} ".join(clause.text for clause in faults)
        return Sentence(f"{voice.words} {text}.", _claims(faults))
    if facts.lacking_both:
        clause = _lacking_both(facts)
        return Sentence(f"{_subject(voice)} names {clause.text}.", clause.claims)
    if facts.fitting:
        return _fitting(facts, voice)
    if not facts.checked:
        return Sentence(f"{_subject(voice)} was not read word by word.")
    seen = "captions" if facts.source == "captions" else "annotated objects"
    text = f"Nothing that {_lower(voice.words)} can be checked against the {seen}."
    return Sentence(text, (Claim(WORDS, "unchecked"),))


def _faults(facts: Facts, voice: _Voice) -> list[_Clause]:
    """What is wrong with the checked picture, the plainest first; each goes on after *asks for*."""
    found = [_lacking(facts, voice)] if facts.lacking else []
    for wrong in facts.wrong_counts:
        text = f"{counted(wrong.asked, wrong.thing)}, but {voice.checked} has {number_word(wrong.found)}"
        claims = Claim(WORDS, "count", wrong.thing, wrong.asked), Claim(voice.about, "count", wrong.thing, wrong.found)
        found.append(_Clause(text, claims))
    found += [_wrong_value(wrong, facts, voice) for wrong in facts.wrong_values]
    for misplaced in facts.misplaced:
        place = f"{_SIDES[misplaced.side]} {one(misplaced.other)}"
        text = f"{one(misplaced.thing)} {place}, but in {voice.checked} no {spelled(misplaced.thing)} is there"
        value = (misplaced.side, misplaced.other)
        claims = Claim(WORDS, "place", misplaced.thing, value), Claim(voice.about, "not placed", misplaced.thing, value)
        found.append(_Clause(text, claims))
    return found


def _lacking(facts: Facts, voice: _Voice) -> _Clause:
    shown = facts.lacking[:_MOST_NAMES]
    if facts.source == "captions":
        them = ("", " either of them", " any of them")[len(shown) - 1]
        text = f"{'which' if len(shown) == 1 else 'but'} no caption of {voice.checked} mentions{them}"
    else:
        text = f"but {voice.checked} has {('none', 'neither', 'none of them')[len(shown) - 1]}"
    claims = (*_as_claimed(shown), *(Claim(voice.about, "lacks", asked.thing) for asked in shown))
    return _Clause(f"{listed([_called(asked) for asked in shown])}, {text}", claims)


def _lacking_both(facts: Facts) -> _Clause:
    shown = facts.lacking_both[:_MOST_NAMES]
    alone = "one" if one(shown[0].thing) != spelled(shown[0].thing) and not shown[0].plural else "any"
    if facts.source == "captions":
        text = f"no caption of either picture mentions {'that' if len(shown) == 1 else 'any of them'}"
    else:
        text = f"neither picture has {(alone, 'either', 'any of them')[len(shown) - 1]}"
    lacks = [Claim(about, "lacks", asked.thing) for asked in shown for about in (RIGHT, OTHER)]
    return _Clause(f"{listed([_called(asked) for asked in shown])}, but {text}", (*_as_claimed(shown), *lacks))


def _as_claimed(some: Sequence[Named]) -> list[Claim]:
    """What the words are said to ask for."""
    counts = [Claim(WORDS, "count", asked.thing, asked.number) for asked in some if asked.number is not None]
    return [*(Claim(WORDS, "name", asked.thing) for asked in some), *counts]


def _wrong_value(wrong: WrongValue, facts: Facts, voice: _Voice) -> _Clause:
    name, found = wrong.thing.thing, listed(wrong.found)
    thing = f"{wrong.asked} {many(name)}" if wrong.thing.plural else one(f"{wrong.asked} {name}")
    value = f"made of {found}" if wrong.family == "material" else found
    if facts.source == "captions":
        it = "them" if wrong.thing.plural else "it"
        text = f"{thing}, but the captions of {voice.checked} call {it} {found}"
    elif wrong.things == 1:
        text = f"{thing}, but the one in {voice.checked} is {value}"
    else:
        text = f"{thing}, but those in {voice.checked} are {value}"
    claims = (
        Claim(WORDS, wrong.family, name, wrong.asked),
        Claim(voice.about, wrong.family, name, wrong.found),
        Claim(voice.about, "several" if wrong.things > 1 else "single", name, wrong.things),
    )
    return _Clause(text, claims[:2] if facts.source == "captions" else claims)


def _fitting(facts: Facts, voice: _Voice) -> Sentence:
    shown = facts.fitting[:_MOST_NAMES]
    things = listed([_plainly(asked) for asked in shown])
    if facts.source == "captions":
        fits = f"the captions of {voice.checked} fit: they mention {things}"
    else:
        fits = f"{voice.checked} fits: it has {things}"
    claims = [
        Claim(about, kind, asked.thing) for asked in shown for about, kind in ((WORDS, "name"), (voice.about, "has"))
    ]
    text = f"As far as {_words_of(voice)} can be checked, {fits}."
    return Sentence(text, (*claims, Claim(WORDS, "no fault")))


# Where the right answer stands, and how the pictures differ


def _about_places(facts: Facts, voice: _Voice) -> Sentence:
    clauses = [_place(facts), *([_difference(facts, voice)] if facts.compared else [])]
    clauses = [clause for clause in clauses if clause.text]
    return Sentence("; ".join(clause.text for clause in clauses) + ".", _claims(clauses))


def _place(facts: Facts) -> _Clause:
    what = "caption" if facts.direction == "i2t" else "picture"
    right = "A caption of the query picture" if facts.direction == "i2t" else "The right picture"
    among = f"of {facts.gallery:,} {what}s"
    if facts.rank is None:
        return _Clause(f"{right} is not in the list that was kept", (Claim(RANKING, "unlisted"),))
    if facts.succeeded:
        text = f"{right} comes first {among}"
    else:
        best = "The best caption of the query picture" if facts.direction == "i2t" else right
        text = f"{best} comes {ordinal(facts.rank)} {among}"
    claims = [Claim(RANKING, "rank", value=facts.rank), Claim(RANKING, "gallery", value=facts.gallery)]
    if facts.margin == 0:
        text += ", with the same score as the next" if facts.succeeded else ", with the same score as the first"
        claims.append(Claim(RANKING, "margin", value=0.0))
    elif facts.margin is not None:
        ahead = "ahead of the next" if facts.succeeded else "behind the first"
        text += f", {rounded(abs(facts.margin))} {ahead} in score"
        claims.append(Claim(RANKING, "margin", value=facts.margin))
    elif facts.margin_at_least:
        text += f", at least {rounded_down(facts.margin_at_least)} behind the first in score"
        claims.append(Claim(RANKING, "margin at least", value=facts.margin_at_least))
    return _Clause(text, tuple(claims))


def _difference(facts: Facts, voice: _Voice) -> _Clause:
    """What the right picture has and the other lacks, or the reverse; else a count; else what both have."""
    said = {asked.thing for asked in (*facts.lacking, *facts.lacking_both)}
    more = [named for named in facts.only_right if named.thing not in said][:_MOST_NAMES]
    less = [named for named in facts.only_other if named.thing not in said][:_MOST_NAMES]
    if more or less:
        claims = [*_one_sided(more, RIGHT, OTHER), *_one_sided(less, OTHER, RIGHT)]
        have = listed([_plainly(named) for named in more]) if more else ""
        lack = f"no {listed([spelled(named.thing) for named in less], 'or')}" if less else ""
        return _Clause(f"{_unlike(facts, voice)} {', but '.join(part for part in (have, lack) if part)}", tuple(claims))
    if facts.counts:
        name, mine, theirs = facts.counts[0]
        text = f"{voice.right} has {counted(mine, name)}, {voice.other_picture} {number_word(theirs)}"
        return _Clause(text, (Claim(RIGHT, "count", name, mine), Claim(OTHER, "count", name, theirs)))
    if facts.both:
        shared = facts.both[:_MOST_NAMES]
        verb = "the captions of both mention" if facts.source == "captions" else "both pictures have"
        claims = [Claim(about, "has", named.thing) for named in shared for about in (RIGHT, OTHER)]
        return _Clause(f"{verb} {listed([_plainly(named) for named in shared])}", tuple(claims))
    return _Clause("")


def _one_sided(some: Sequence[Named], having: str, lacking: str) -> list[Claim]:
    return [
        claim for named in some for claim in (Claim(having, "has", named.thing), Claim(lacking, "lacks", named.thing))
    ]


def _unlike(facts: Facts, voice: _Voice) -> str:
    if facts.source == "captions":
        its = "its captions" if voice.right == "it" else f"the captions of {voice.right}"
        return f"unlike those of {voice.other}, {its} mention"
    return f"unlike {voice.other}, {voice.right} has"


# Small words


def _plainly(named: Named) -> str:
    return many(named.thing) if named.plural else one(named.thing)


def _called(asked: Named) -> str:
    """As the words call it, with its number if they give one."""
    return _plainly(asked) if not asked.number else counted(asked.number, asked.thing)


def _subject(voice: _Voice) -> str:
    return voice.words.removesuffix(" asks for").removesuffix(" speaks of")


def _words_of(voice: _Voice) -> str:
    subject = _lower(_subject(voice))
    return f"the words of {subject}"


def _verb(voice: _Voice) -> str:
    return "asks for" if voice.words.endswith("asks for") else "speaks of"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _claims(clauses: Sequence[_Clause]) -> tuple[Claim, ...]:
    return tuple(claim for clause in clauses for claim in clause.claims)

"""English forms: tables written by hand, and the way back through WordNet's own morphology for all of its words."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from crosslens.language import inflected, is_plural, load_wordnet, pluralise, singularise
from crosslens.language.inflection import PAST_FORMS, PLURALS
from tests.tables import each_row, rest_slow


def pairs(text: str) -> list[tuple[str, ...]]:
    return [tuple(part.strip().replace("_", " ") for part in pair.split(":")) for pair in text.split()]


NOUNS = pairs(
    """dog:dogs box:boxes church:churches city:cities boy:boys bus:buses dress:dresses wish:wishes quiz:quizzes
    fish:fish sheep:sheep deer:deer man:men woman:women policeman:policemen german:germans human:humans person:people
    child:children grandchild:grandchildren foot:feet tooth:teeth goose:geese mouse:mice ox:oxen knife:knives
    wife:wives leaf:leaves roof:roofs cliff:cliffs shelf:shelves bookshelf:bookshelves scarf:scarves hoof:hooves
    tomato:tomatoes potato:potatoes hero:heroes piano:pianos photo:photos video:videos taxi:taxis ski:skis lens:lenses
    crisis:crises jellyfish:jellyfish spacecraft:spacecraft hot_dog:hot_dogs fire_hydrant:fire_hydrants
    set_of_stairs:sets_of_stairs brother-in-law:brothers-in-law passer-by:passers-by merry-go-round:merry-go-rounds
    grown-up_fellow:grown-up_fellows"""
)
VERBS = pairs(
    """run:runs:running:ran:run sit:sits:sitting:sat:sat stand:stands:standing:stood:stood lie:lies:lying:lay:lain
    ride:rides:riding:rode:ridden carry:carries:carrying:carried:carried play:plays:playing:played:played
    watch:watches:watching:watched:watched go:goes:going:went:gone do:does:doing:did:done have:has:having:had:had
    stop:stops:stopping:stopped:stopped travel:travels:traveling:traveled:traveled open:opens:opening:opened:opened
    visit:visits:visiting:visited:visited begin:begins:beginning:began:begun
    prefer:prefers:preferring:preferred:preferred control:controls:controlling:controlled:controlled
    panic:panics:panicking:panicked:panicked see:sees:seeing:saw:seen ski:skis:skiing:skied:skied
    dye:dyes:dyeing:dyed:dyed fix:fixes:fixing:fixed:fixed show:shows:showing:showed:shown
    overtake:overtakes:overtaking:overtook:overtaken rebuild:rebuilds:rebuilding:rebuilt:rebuilt
    remain:remains:remaining:remained:remained withdraw:withdraws:withdrawing:withdrew:withdrawn
    let_go_of:lets_go_of:letting_go_of:let_go_of:let_go_of be:is:being:was:been wave:waves:waving:waved:waved
    jog:jogs:jogging:jogged:jogged swim:swims:swimming:swam:swum quit:quits:quitting:quit:quit"""
)
ADJECTIVES = pairs(
    """big:bigger:biggest large:larger:largest happy:happier:happiest good:better:best bad:worse:worst
    red:redder:reddest gray:grayer:grayest simple:simpler:simplest narrow:narrower:narrowest free:freer:freest
    thin:thinner:thinnest dry:drier:driest beautiful:more_beautiful:most_beautiful striped:more_striped:most_striped
    exciting:more_exciting:most_exciting snow-covered:more_snow-covered:most_snow-covered"""
)


@each_row(("singular", "many"), NOUNS)
def test_nouns_go_to_the_plural_and_back(singular: str, many: str) -> None:
    assert pluralise(singular) == many
    assert singularise(many) == singular
    assert is_plural(many) or singular == many
    assert not is_plural(singular)


def test_capitals_stay() -> None:
    assert [pluralise(word) for word in ("TV", "HYDRANT", "BUS", "Man")] == ["TVs", "HYDRANTS", "BUSES", "Men"]


@pytest.mark.parametrize("word", ["scissors", "jeans", "sunglasses", "swimming trunks", "suits of clothes", "people"])
def test_plurals_are_seen(word: str) -> None:
    assert is_plural(word)


@pytest.mark.parametrize("word", ["glass", "bus", "tennis", "grass", "motorbus", "suit of clothes", "chassis", "sheep"])
def test_an_s_at_the_end_is_no_plural(word: str) -> None:
    assert not is_plural(word)
    assert singularise(word) == word


@pytest.mark.parametrize("word", ["scissors", "jeans", "binoculars"])
def test_what_is_always_plural_stays(word: str) -> None:
    assert singularise(word) == pluralise(word) == word


@each_row(("base", "third", "ing", "before", "done"), VERBS)
def test_forms_of_verbs(base: str, third: str, ing: str, before: str, done: str) -> None:
    assert [inflected(base, tag) for tag in ("VB", "VBZ", "VBG", "VBD", "VBN")] == [base, third, ing, before, done]


@each_row(("plain", "more", "most"), ADJECTIVES)
def test_degrees_of_adjectives(plain: str, more: str, most: str) -> None:
    assert [inflected(plain, tag) for tag in ("JJ", "JJR", "JJS")] == [plain, more, most]


# The way back, for every word that WordNet lists: another author's rules undo ours


def lemmas(part: str) -> list[str]:
    words = load_wordnet()
    lemmas_of_part = {
        lemma
        for synset in range(len(words))
        if words.part(synset).replace("s", "a") == part
        for lemma in words.lemmas(synset)
    }
    return sorted(lemma for lemma in lemmas_of_part if lemma.isalpha() and lemma.islower())


def undone_by_wordnet(form: str, base: str, part: str) -> bool:
    words = load_wordnet()
    return base in words._lexicon.forms(form, part)


def share(part: str, tag: str, step: int = 1) -> tuple[float, int]:
    forms = [(base, inflected(base, tag)) for base in lemmas(part)[::step]]
    kept = [(base, form) for base, form in forms if tag != "NNS" or form != base]
    good = sum(undone_by_wordnet(form, base, part) for base, form in kept)
    return good / len(kept), len(kept)


@pytest.mark.parametrize("step", rest_slow([5, 1]))
def test_plurals_of_all_nouns_come_back(step: int) -> None:
    share_undone, count = share("n", "NNS", step)
    assert count > 40_000 / step
    assert share_undone > 0.985


@pytest.mark.parametrize("tag", rest_slow(["VBZ", "VBD", "VBG", "VBN"], 2))
def test_forms_of_all_verbs_come_back(tag: str) -> None:
    share_undone, count = share("v", tag)
    assert count > 8_000
    assert share_undone > 0.985


@pytest.mark.parametrize(("tag", "ending"), [("JJR", "er"), ("JJS", "est")])
def test_degrees_are_those_that_wordnet_lists(tag: str, ending: str) -> None:
    listed = {
        base: [form for form in forms if form.endswith(ending) and form != base]
        for base, forms in load_wordnet().irregular_forms("a").items()
        if base.isalpha() and len(base) > 2
    }
    listed = {base: forms for base, forms in listed.items() if forms}
    good = sum(inflected(base, tag) in forms for base, forms in listed.items())
    assert len(listed) > 600
    assert good / len(listed) > 0.9


def test_the_tables_agree_with_the_list_of_load_wordnet() -> None:
    """Each irregular form in our tables is one that WordNet lists for that word, or that its rules undo."""
    strangers = [(singular, many) for singular, many in PLURALS.items() if not undone_by_wordnet(many, singular, "n")]
    assert set(strangers) <= {
        ("person", "people"),
        ("die", "dice"),
        ("mango", "mangoes"),
        ("domino", "dominoes"),
        ("passerby", "passersby"),
    }
    for base, forms in PAST_FORMS.items():
        assert all(undone_by_wordnet(form, base, "v") for form in forms), base


@given(st.text(max_size=12))
def test_any_text_has_its_forms(text: str) -> None:
    for tag in ("NNS", "VBZ", "VBG", "VBD", "VBN", "JJR", "JJS"):
        assert isinstance(inflected(text, tag), str)
    assert isinstance(singularise(text), str)

"""Words for other words: synonyms, opposites, one for many. Read by a person here, and checked by rule."""

from __future__ import annotations

import random
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.core import UsageError
from crosslens.language import Parse, is_plural, load_wordnet, parse_texts
from crosslens.perturbations import PERTURBATIONS, CannotApply, Caption, Edit, Perturbed, apply_edits
from crosslens.perturbations.caption import Draws
from crosslens.perturbations.text.opposites import _LEFT_ALONE, _REVIEWED, opposites
from crosslens.perturbations.text.synonyms import (
    COMMON,
    EVERYDAY,
    LEFT_ALONE,
    NEVER,
    SENSES,
    UNFIT,
    is_everyday,
    is_noun_first,
    loose_synonyms,
    rarest_synonyms,
    sensible_synonyms,
)
from tests.language.pipelines import needs_a_pipeline, needs_the_small_pipeline
from tests.tables import each_row

PARTS = ("n", "a")


def perturbed(name: str, text: str, seed: int = 0, **options: object) -> Perturbed:
    return cl.perturb(name, [text], seed=seed, **options)[0]


@lru_cache
def parsed(text: str) -> Caption:
    return Caption(text, None, parse_texts([text])[0])


def outcomes(name: str, text: str, seeds: int = 60, **options: object) -> set[str]:
    """Everything that comes out under many seeds; the caption itself where the perturbation cannot apply."""
    caption, texts = parsed(text), set()
    for seed in range(seeds):
        try:
            texts.add(apply_edits(text, PERTURBATIONS[name].value(caption, Draws(seed, name, text), **options)))
        except CannotApply:
            texts.add(text)
    return texts


# Which synonyms


@each_row(
    ("word", "part", "expected"),
    [
        ("child", "n", {"kid", "youngster"}),
        ("couch", "n", {"sofa"}),
        ("rock", "n", {"stone"}),
        ("bike", "n", {"bicycle"}),
        ("dog", "n", {"domestic dog"}),
        ("fire hydrant", "n", {"fireplug"}),
        ("large", "a", {"big"}),
        ("young", "a", {"youthful"}),
        ("red", "a", {"crimson", "reddish", "scarlet"}),
        ("hat", "n", set()),  # lid, chapeau
        ("cat", "n", set()),  # true cat
        ("green", "a", {"greenish"}),  # not unripe
        ("court", "n", set()),  # not a tribunal
        ("runner", "n", set()),  # not a smuggler
        ("next", "a", set()),
        ("qwzx", "n", set()),
    ],
)
def test_synonyms_as_a_person_would_choose(word: str, part: str, expected: set[str]) -> None:
    assert set(sensible_synonyms(word, part)) == expected


@pytest.mark.parametrize(
    ("word", "rare"),
    [("giraffe", ("camelopard",)), ("hat", ("chapeau",)), ("meal", ("repast",)), ("building", ("edifice",))],
)
def test_rarest_synonyms(word: str, rare: tuple[str, ...]) -> None:
    assert rarest_synonyms(word, "n") == rare


def test_loose_synonyms_are_those_of_all_senses() -> None:
    assert {"frump", "andiron", "chase"} <= set(loose_synonyms("dog", None))
    assert "chase" not in loose_synonyms("dog", "n")


def test_synonyms_share_a_synset_and_are_others() -> None:
    """An independent look at WordNet, for words drawn from all of it."""
    words = load_wordnet()
    rng = random.Random(0)
    for synset in rng.sample(range(len(words)), 1500):
        part = words.part(synset).replace("s", "a")
        if part not in PARTS:
            continue
        for lemma in words.lemmas(synset):
            word = lemma.replace("_", " ").lower()
            for synonym in (*sensible_synonyms(word, part), *rarest_synonyms(word, part)):
                shared = set(words.synsets(word, part).tolist()) & set(words.synsets(synonym, part).tolist())
                assert shared, (word, synonym)
                assert synonym.lower() != word
                assert "_" not in synonym
                assert synonym not in NEVER[part]
            assert all(is_everyday(synonym, part) for synonym in sensible_synonyms(word, part))


def test_the_tables_name_what_wordnet_has() -> None:
    words = load_wordnet()
    for part in PARTS:
        assert set(SENSES[part]) & LEFT_ALONE[part] == set()
        assert EVERYDAY[part] & (UNFIT[part] | NEVER[part]) == set()
        for name in SENSES[part].values():
            words.synset(name)
        for table in (EVERYDAY, UNFIT, NEVER, COMMON):
            strangers = {word for word in table[part] if not words.synsets(word, part).size}
            assert strangers == set()


def test_what_is_a_noun_first() -> None:
    assert all(is_noun_first(word) for word in ("dog", "building", "face", "light", "park"))
    assert not any(is_noun_first(word) for word in ("wrestle", "smile", "run", "kneeling", "qwzx"))


# Captions


@needs_a_pipeline
def test_compounds_go_as_one_or_not_at_all() -> None:
    assert outcomes("synonym_noun", "a red fire hydrant on grass") == {"a red fireplug on grass"}
    assert outcomes("synonym_noun", "a hot dog with mustard") <= {
        f"a {word} with mustard" for word in ("frank", "frankfurter", "wiener", "hot dog", "hotdog", "red hot")
    }


@needs_a_pipeline
def test_number_capitals_and_articles_are_kept() -> None:
    assert outcomes("synonym_noun", "Children play.") == {"Kids play.", "Youngsters play."}
    assert outcomes("synonym_noun", "A person stands there.") == {"An individual stands there."}
    assert outcomes("synonym_noun", "A MAN IN A HAT") <= {"AN ADULT MALE IN A HAT", "A MAN IN A HAT"}
    assert outcomes("synonym_adj", "Two larger boxes") == {"Two bigger boxes"}


@needs_a_pipeline
def test_names_and_complements_stay() -> None:
    for text in ("John walks past Big Ben.", "A bowl full of rice next to a pan"):
        for name in ("synonym_noun", "synonym_adj"):
            assert perturbed(name, text).text == text


@needs_a_pipeline
def test_k_words_at_most() -> None:
    text = "A child and a kid sit on a couch near a building"
    counts = [len(perturbed("synonym_noun", text, k=k).edits) for k in (1, 2, 3, 4, 9)]
    words = [
        sum(edit.before not in ("a", "A", "an") for edit in perturbed("synonym_noun", text, k=k).edits)
        for k in (1, 2, 9)
    ]
    assert words == [1, 2, 4]
    assert counts == sorted(counts)


@needs_a_pipeline
@pytest.mark.parametrize("k", [0, -1, 1.5, "two"])
def test_k_must_be_a_count(k: object) -> None:
    with pytest.raises(UsageError, match="number of words"):
        perturbed("synonym_noun", "a child", k=k)


@needs_a_pipeline
def test_the_looser_choice_of_the_paper() -> None:
    text = "a dog"
    assert {"a frump", "an andiron"} <= outcomes("synonym_noun", text, 300, any_pos=True)
    first = loose_synonyms("dog", None)[0]
    assert outcomes("synonym_noun", text, any_pos=True, first=True) == {f"a {first}"}
    assert outcomes("synonym_noun", "two children", first=True) == {f"two {sensible_synonyms('child', 'n')[0]}s"}


@needs_a_pipeline
def test_reasons() -> None:
    assert perturbed("synonym_noun", "hello there").reason == "no noun"
    assert perturbed("synonym_noun", "a cat").reason == "no noun with a synonym"
    assert perturbed("synonym_adj", "a cat").reason == "no adjective"
    assert perturbed("verb_antonym", "a cat").reason == "no verb"
    assert perturbed("number_change", "happily").reason == "no common noun"


# Opposites


def test_opposites_are_those_of_load_wordnet() -> None:
    words = load_wordnet()
    for verb, others in _REVIEWED.items():
        assert set(others) <= set(words.antonyms(verb, "v")), verb
    for verb in ("sit", "push", "open", "descend", "whisper"):
        assert opposites(verb)
        assert set(opposites(verb)) <= set(words.antonyms(verb, "v"))
    assert all(words.antonyms(verb, "v") for verb in _LEFT_ALONE)
    assert opposites("wear") == ()


@needs_the_small_pipeline
@each_row(
    ("text", "expected"),
    [
        ("A man opens a door.", {"A man closes a door."}),
        (
            "Two girls are sitting on a bench.",
            {"Two girls are standing on a bench."},
        ),
        ("A boy pushes a cart", {"A boy pulls a cart"}),
        ("A man walks his dog.", {"A man walks his dog."}),
        ("A train arrives at the station.", {"A train arrives at the station."}),
        ("The train arrives.", {"The train leaves."}),
        ("A woman dressed in red", {"A woman dressed in red"}),
        ("A player hits the ball.", {"A player misses the ball."}),
        ("A white vase sits on a table.", {"A white vase sits on a table."}),
        ("A row of chairs standing on a lawn", {"A row of chairs standing on a lawn"}),
        ("A group of boys standing on a lawn", {"A group of boys sitting on a lawn"}),
    ],
)
def test_verbs_and_their_opposites(text: str, expected: set[str]) -> None:
    assert outcomes("verb_antonym", text) == expected


@needs_the_small_pipeline
def test_rare_words_keep_grammar_and_sense() -> None:
    """*a nutrient*, not *nutrient*; a fire-eater is no firefighter to anybody; *merchandise* is not counted."""
    assert not any("nutrient" in text for text in outcomes("rare_synonym", "a plate of food"))
    assert not any("eater" in text for text in outcomes("rare_synonym", "The firefighters rest."))
    assert not any("merchandise" in text for text in outcomes("rare_synonym", "A man shows a product."))


# One and many


@needs_the_small_pipeline
@each_row(
    ("text", "expected"),
    [
        ("A dog runs across the grass.", {"Dogs run across the grass."}),
        ("Two dogs run.", {"A dog runs."}),
        ("An old man is smiling.", {"Old men are smiling."}),
        ("The dogs run and are barking.", {"The dog runs and is barking."}),
        ("A girl with her doll", {"Girls with their doll"}),
        ("The women are dancing.", {"The woman is dancing."}),
        ("There are three cats here.", {"There is a cat here."}),
        ("a group of people", {"a group of people"}),
        ("Snow in the sun", {"Snow in the sun"}),
        ("Elephants drink water.", {"An elephant drinks water."}),
        ("This child was crying.", {"These children were crying."}),
        ("People wearing jeans", {"A person wearing jeans"}),
        ("two men look at each other", {"two men look at each other"}),
        ("One bird is singing.", {"Two birds are singing."}),
        ("Dogs run and jump.", {"Dogs run and jump."}),
        # Several of which only a part is meant stay several.
        ("the rest of the players watch", {"the rest of the players watch"}),
        ("half of the riders are women", {"half of the riders are women"}),
        # A noun that says what the subject is has the subject's number.
        ("This is a dog.", {"This is a dog."}),
        ("Is that a zebra or a horse?", {"Is that a zebra or a horse?"}),
        # What points to the first noun once does so again, though another person was named.
        (
            "A mother holds her baby in her arms.",
            {"Mothers hold their baby in their arms.", "A mother holds her baby in her arm."},
        ),
        ("Two dogs, one big and one little, sleep.", {"Two dogs, one big and one little, sleep."}),
    ],
)
def test_number_changes_with_all_that_agrees(text: str, expected: set[str]) -> None:
    assert outcomes("number_change", text) == expected


@needs_the_small_pipeline
def test_what_the_parser_tears_apart_or_glues_together_stays() -> None:
    ovens = outcomes("number_change", "a kitchen with a small refrigerator and a microwave oven")
    assert not any("microwaves" in text for text in ovens)
    tents = outcomes("number_change", "A man standing under a blue tent preparing food.")
    assert not any("under blue tent " in text for text in tents)


# What holds whatever the parser says

_WORDS = "a An the two some dog children Men hot dogs fire hydrant red larger sits were running its with of John . - t"
_POS = ("NOUN", "ADJ", "VERB", "DET", "ADP", "PROPN", "NUM", "PRON", "AUX", "PUNCT")
_TAGS = ("NN", "NNS", "JJ", "JJR", "JJS", "VB", "VBZ", "VBP", "VBG", "VBD", "VBN", "DT", "IN", "CD", "PRP$", "NNP")
_ARCS = (
    "ROOT",
    "nsubj",
    "dobj",
    "pobj",
    "det",
    "amod",
    "compound",
    "conj",
    "cc",
    "prep",
    "nummod",
    "attr",
    "relcl",
    "aux",
)


@st.composite
def captions(draw: st.DrawFn) -> Caption:
    """Any words under any parse, however wrong."""
    words = draw(st.lists(st.sampled_from(_WORDS.split()), min_size=1, max_size=8))
    count = len(words)

    def each(values: tuple[str, ...]) -> list[str]:
        return draw(st.lists(st.sampled_from(values), min_size=count, max_size=count))

    heads = draw(st.lists(st.integers(0, count - 1), min_size=count, max_size=count))
    lemmas = [load_wordnet().lemmatise(word.lower()) for word in words]
    return Caption(" ".join(words), "id", Parse(words, lemmas, each(_POS), each(_TAGS), each(_ARCS), heads))


@pytest.mark.parametrize("name", ["synonym_noun", "synonym_adj", "rare_synonym", "verb_antonym", "number_change"])
@given(caption=captions(), seed=st.integers(0, 3))
def test_no_parse_is_too_odd(name: str, caption: Caption, seed: int) -> None:
    try:
        edits = PERTURBATIONS[name].value(caption, Draws(seed, name))
    except CannotApply:
        return
    assert list(edits) == sorted(edits)
    assert apply_edits(caption.text, edits) != caption.text
    assert all(isinstance(edit, Edit) and edit.before != edit.after for edit in edits)


@given(caption=captions(), k=st.integers(1, 4))
def test_nouns_keep_their_number_and_at_most_k_change(caption: Caption, k: int) -> None:
    try:
        edits = PERTURBATIONS["synonym_noun"].value(caption, Draws(0, "x"), k=k)
    except CannotApply:
        return
    changed = [edit for edit in edits if edit.before.lower() not in ("a", "an")]
    assert 1 <= len(changed) <= k
    tags = {token.start: token.tag for token in caption.tokens} | {token.end: token.tag for token in caption.tokens}
    for edit in changed:
        if tags[edit.end] == "NNS":
            assert is_plural(edit.after)


@pytest.mark.slow
@needs_the_small_pipeline
def test_on_real_captions_the_new_words_are_of_the_same_kind(shared_data: Path) -> None:
    lines = (shared_data / "flickr8k" / "Flickr8k.token.txt").read_text(encoding="utf-8").splitlines()
    texts = [line.split("\t")[1] for line in random.Random(0).sample(lines, 400)]
    for name, pos in (("synonym_noun", {"NOUN", "PROPN"}), ("synonym_adj", {"ADJ"})):
        done = [result for result in cl.perturb(name, texts) if result.applied]
        assert len(done) > 60
        right = 0
        for result, parse in zip(done, parse_texts([result.text for result in done]), strict=True):
            last = next(edit for edit in result.edits if edit.before.lower() not in ("a", "an")).after.split()[-1]
            right += any(word == last and kind in pos for word, kind in zip(parse.words, parse.pos, strict=True))
        assert right / len(done) > 0.85

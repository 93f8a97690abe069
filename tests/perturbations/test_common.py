"""What holds for every perturbation of texts that is registered, whoever wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import crosslens as cl
from crosslens.core import InputError, UsageError
from crosslens.perturbations import (
    BRIT_PERTURBATIONS,
    GROUPS,
    IMAGE_PERTURBATIONS,
    PERTURBATIONS,
    CannotApply,
    Caption,
    Edit,
    Perturbed,
    apply_edits,
    perturbation,
    perturbations_with,
    phrase_of,
)
from crosslens.perturbations.caption import Draws
from crosslens.values import Dataset
from tests.language.pipelines import needs_a_pipeline

ENTRIES = list(PERTURBATIONS)
every_perturbation = pytest.mark.parametrize(
    "name",
    [pytest.param(entry.name, marks=[needs_a_pipeline] if entry.details["tags"] else []) for entry in ENTRIES],
)

ORDINARY = (
    "A man in a blue T-shirt holds the dog's leash.",
    "two small girls ride a large brown horse near an old barn",
    "The tall woman opens a green umbrella; it isn't raining!",
    "Three white boats, a red one and an orange one.",
)
ODD = (
    "",
    " ",
    "dog",
    "I",
    "42",
    "3 1/2 42,000.5",
    "!?…",
    "🐕🏽‍🦺 👨‍👩‍👧",
    "a 🐕 runs ❤️",
    "شخص يركب حصانًا بنيًّا",
    "איש רוכב על סוס",
    "कुत्ता दौड़ता है",
    "二匹の犬が走る",
    "cafe\u0301 noir, e\u0301",
    "A man.\nA dog.\r\n\tTwo cats.\n",
    "the the the the",
    "The the THE",
    "A" * 300,
    "a\u200bb \u00a0 c\ufeff",
    "ǅ ŉ ß İ ı ﬁ",
    "\x00\x1b[31m red",
    "<b>two</b> & three",
)

_WORDS = "a an the The A big small red green young old dog dogs man woman's T-shirt isn't two 3 and on runs John"
_SENTENCES = st.lists(st.sampled_from(_WORDS.split()), max_size=9).map(" ".join)
_TEXTS = st.one_of(_SENTENCES, st.text(max_size=25), st.text(alphabet="aAbé\u0301 .-'\n", max_size=15))


def check(original: str, perturbed: Perturbed) -> None:
    """The contract of one result."""
    assert perturbed.original == original
    assert apply_edits(original, perturbed.edits) == perturbed.text
    assert list(perturbed.edits) == sorted(perturbed.edits)
    for edit in perturbed.edits:
        assert original[edit.start : edit.end] == edit.before
        assert edit.span == (edit.start, edit.end)
        assert edit.before != edit.after
    if perturbed.applied:
        assert perturbed.text != original
        assert perturbed.reason == ""
        assert perturbed.edits
    else:
        assert perturbed.text == original
        assert perturbed.reason.strip()
        assert not perturbed.edits


def quick(name: str) -> int:
    """Parsing takes its time."""
    most: int = settings.default.max_examples
    return min(12, most // 2) if PERTURBATIONS[name].details["tags"] else min(100, most)


@every_perturbation
def test_ordinary_and_odd_captions(name: str) -> None:
    texts = [*ORDINARY, *ODD]
    for text, perturbed in zip(texts, cl.perturb(name, texts), strict=True):
        check(text, perturbed)


@every_perturbation
def test_the_common_group_changes_ordinary_captions(name: str) -> None:
    results = cl.perturb(name, ORDINARY)
    assert any(result.applied for result in results), [result.reason for result in results]


@every_perturbation
def test_any_text(name: str) -> None:
    @settings(max_examples=quick(name), suppress_health_check=[HealthCheck.too_slow])
    @given(texts=st.lists(_TEXTS, max_size=12), seed=st.integers(0, 2**40))
    def holds(texts: list[str], seed: int) -> None:
        for text, perturbed in zip(texts, cl.perturb(name, texts, seed=seed), strict=True):
            check(text, perturbed)

    holds()


@every_perturbation
def test_a_caption_does_not_depend_on_its_neighbours(name: str) -> None:
    texts = [*ORDINARY, *ODD]
    pool = dict(zip(texts, cl.perturb(name, texts, seed=3, **corpus_options(name)), strict=True))
    for some in (texts[::-1], texts[1::2], [*texts, *texts]):
        again = cl.perturb(name, some, seed=3, **corpus_options(name))
        assert list(again) == [pool[text] for text in some]


@lru_cache
def corpus_options(name: str) -> dict[str, object]:
    """What follows from all captions together, held still."""
    corpus = PERTURBATIONS[name].details["corpus"]
    if corpus is None:
        return {}
    from crosslens.perturbations.perturbing import prepare_captions

    return dict(corpus(prepare_captions([PERTURBATIONS[name]], ORDINARY)))


@every_perturbation
def test_ids_seed_the_draws_and_texts_are_their_own_ids(name: str) -> None:
    texts = list(ORDINARY)
    by_text = cl.perturb(name, texts)
    assert cl.perturb(name, {text: text for text in texts}) == by_text
    dataset = Dataset.of({f"i{n}": [text] for n, text in enumerate(texts)})
    by_id = cl.perturb(name, {f"i{n}#0": text for n, text in enumerate(texts)})
    assert cl.perturb(name, dataset) == by_id
    assert cl.perturb(name, dataset) == by_id


@needs_a_pipeline
def test_the_seed_matters_where_there_is_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice is a draw among several, observed; without one, every seed has the same outcome."""
    choices: list[int] = []

    def observed(draw: Callable[..., Any]) -> Callable[..., Any]:
        def drawing(stream: Draws, among: Any) -> Any:
            among = among if isinstance(among, int) else list(among)
            choices.append(among if isinstance(among, int) else len(among))
            return draw(stream, among)

        return drawing

    for name in ("below", "shuffled", "favourite"):
        monkeypatch.setattr(Draws, name, observed(getattr(Draws, name)))
    for entry in ENTRIES:
        choices.clear()
        outcomes = {tuple(result.text for result in cl.perturb(entry.name, ORDINARY, seed=seed)) for seed in range(5)}
        assert (len(outcomes) > 1) == (max(choices, default=0) > 1), entry.name


def test_all_names_of_the_groups_are_registered() -> None:
    assert [name for names in GROUPS.values() for name in names if name not in PERTURBATIONS] == []
    assert len(BRIT_PERTURBATIONS) == 13
    variants = {"synonym_noun[released]", "synonym_adj[released]", "extra_char[any]", "antonym[any]"}
    assert {name for name in PERTURBATIONS.names() if "[" in name} == variants
    assert not variants & {name for names in GROUPS.values() for name in names}, "a group has each change once"


@pytest.fixture
def shout() -> Iterator[str]:
    @perturbation("shout", level="beyond")
    def shout(caption: Caption, draws: Draws, mark: str = "!") -> tuple[Edit, ...]:
        """Add a mark at the end."""
        if not caption.words:
            raise CannotApply("no words")
        end = len(caption.text)
        return (Edit(end, end, "", mark),)

    yield "shout"
    del PERTURBATIONS._entries["shout"]


def test_registering_enrols(shout: str) -> None:
    assert PERTURBATIONS[shout].summary == "Add a mark at the end."
    texts: Sequence[str] = [*ORDINARY, *ODD]
    for text, perturbed in zip(texts, cl.perturb(shout, texts, mark="?"), strict=True):
        check(text, perturbed)
        assert perturbed.applied == bool(Caption(text).words)
    with pytest.raises(UsageError, match="no option 'loudness'"):
        cl.perturb(shout, texts, loudness=3)


def test_mistakes_are_explained() -> None:
    with pytest.raises(InputError, match="put the text into a list"):
        cl.perturb("char_swap", "one text")
    with pytest.raises(InputError, match="row 1"):
        cl.perturb("char_swap", ["a dog", 3])  # type: ignore[list-item]
    with pytest.raises(cl.CrosslensError, match="char_swap"):
        cl.perturb("char_swp", ["a dog"])
    for k in ("2", 1.5, 0):
        with pytest.raises(UsageError, match="number of words"):
            cl.perturb("char_swap", ["a dog"], k=k)
    with pytest.raises(InputError, match=r"row 1: .* is not a text"):
        cl.perturb("synonym_noun", ["a dog", "a dog \udc80"])
    assert cl.perturb("char_swap", []) == ()


def test_titles_and_sentences_call_a_perturbation_by_words() -> None:
    assert phrase_of("char_swap") == "swapped letters"
    assert (phrase_of("blur"), phrase_of("pixelate@5")) == ("blur (severity 3)", "coarse squares (severity 5)")
    assert phrase_of("somebody_elses") == "somebody elses"
    phrases = [entry.details["phrase"] for registry in (PERTURBATIONS, IMAGE_PERTURBATIONS) for entry in registry]
    assert all(phrases)
    assert len(set(phrases)) == len(phrases)
    assert not [phrase for phrase in phrases if "_" in phrase or phrase.endswith(".")]


def test_facts_are_declared_with_the_perturbation() -> None:
    typos = ("char_swap", "missing_char", "extra_char", "nearby_char", "extra_char[any]")
    assert set(typos) <= set(perturbations_with("typo"))
    assert perturbations_with("brit") == BRIT_PERTURBATIONS == GROUPS["all"]
    assert set(perturbations_with("aro")) < {name for name in BRIT_PERTURBATIONS if name.startswith("shuffle")}
    assert set(typos) < set(perturbations_with("keeps_meaning"))
    assert not set(perturbations_with("keeps_meaning")) & {*GROUPS["adversarial"], *perturbations_with("aro")}

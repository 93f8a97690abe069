"""``synonym_noun[released]`` and ``synonym_adj[released]``: what the code released with BRIT does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import crosslens as cl
from crosslens.cli import main
from crosslens.language import load_wordnet, parse_texts
from tests.language.pipelines import needs_a_pipeline


@needs_a_pipeline
class TestReleased:
    """What the code released with the BRIT paper does, written down from its rule."""

    @staticmethod
    def by_hand(text: str, tags: tuple[str, ...]) -> str | None:
        """The caption with the first tagged word that has another lemma replaced by it; None where there is none."""
        wordnet, parse = load_wordnet(), parse_texts([text], cache=False)[0]
        start = 0
        for word, tag in zip(parse.words, parse.tags, strict=True):
            start = text.index(word, start)
            if tag in tags:
                for synset in wordnet.synsets(word).tolist():
                    for lemma in wordnet.lemmas(synset):
                        if lemma.lower() != word.lower():
                            return text[:start] + lemma.replace("_", " ") + text[start + len(word) :]
            start += len(word)
        return None

    @pytest.mark.parametrize(
        ("name", "tags"),
        [
            ("synonym_noun[released]", ("NN", "NNS", "NNP", "NNPS")),
            ("synonym_adj[released]", ("JJ", "JJR", "JJS")),
        ],
    )
    def test_the_first_word_with_another_lemma(self, name: str, tags: tuple[str, ...]) -> None:
        captions = [
            "Two dogs run on a beach.", "A man and an old woman", "the zzyzx drove his car", "red", "it runs",
            "A young boy eats a very big apple", "John sleeps in Paris",
        ]  # fmt: skip
        for text, result in zip(captions, cl.perturb(name, captions), strict=True):
            expected = self.by_hand(text, tags)
            assert result.text == (text if expected is None else expected)
            assert result.applied == (expected is not None)
        assert cl.perturb(name, captions, seed=1) == cl.perturb(name, captions, seed=2), "nothing is drawn"

    def test_by_eye(self) -> None:
        texts = ["Two dogs run.", "A man eats an apple", "a t-shirt", "he runs", "a well-worn car"]
        nouns = cl.perturb("synonym_noun[released]", texts)
        # No inflection, no article: "two dog", "a adult male". A word with a hyphen is one word.
        assert [result.text for result in nouns] == [
            "Two dog run.", "A adult male eats an apple", "a jersey", "he runs", "a well-worn auto",
        ]  # fmt: skip
        assert nouns[3].reason == "no noun"
        assert cl.perturb("synonym_adj[released]", ["a small red bus"])[0].text == "a little red bus"
        assert cl.perturb("synonym_noun[released]", ["A man eats an apple"], k=2)[0].text.count("adult male") == 1

    @pytest.mark.slow
    def test_everywhere(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        dataset = cl.Dataset.of({f"im{n}": [f"a small dog {n}", f"two men {n}"] for n in range(6)})
        dataset.save(tmp_path / "data")
        names = "synonym_noun[released],synonym_adj[released]"
        assert (
            main(["perturb", "--dataset", str(tmp_path / "data"), "--name", names, "-o", str(tmp_path / "texts")]) == 0
        )
        written = cl.Dataset.load(tmp_path / "texts" / "synonym_noun[released]")
        assert written.texts[:2] == ("a small domestic dog 0", "two work force 0")
        vectors = np.random.default_rng(0).standard_normal((18, 4))
        arguments = {"images": vectors[:6], "captions": vectors[6:], "output": tmp_path / "study", "permutations": 20}
        variants = {"synonym_noun[released]": vectors[6:] + 0.1}
        first = cl.robustness(dataset, variants=variants, perturbed={"synonym_noun[released]": written}, **arguments)
        again = cl.robustness(dataset, variants=variants, perturbed={"synonym_noun[released]": written}, **arguments)
        assert first.drops["perturbation"].unique().to_list() == ["synonym_noun[released]"]
        assert again.drops.equals(first.drops)

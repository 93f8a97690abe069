"""How fine-grained a caption is, in numbers: one value per caption and feature, from its parse.

adjectives           tokens with a tag JJ, JJR or JJS
complement phrases   prepositions that have an object: *on a road*
articles             a, an, the
determiners          tokens with the tag DT: articles, and *this*, *some*, *another* and the like
quantifiers          words that quantify (see ``QUANTIFIERS``), used as determiners, adjectives or pronouns
cardinals            cardinal numbers, in letters or digits: tokens with the tag CD
concept depth        of every token that WordNet has, the largest ``min_depth`` of its synsets; their mean
concept depth, nouns the same over the noun synsets of tokens that are tagged as nouns
characters           of the text as it is
words                runs of letters and digits, as :func:`crosslens.language.count_words` counts them
diversity            distinct lemma names of all synsets of all tokens, divided by the number of tokens
diversity ratio      the same divided by the number of words: punctuation does not make a caption poorer
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosslens.analyze.caption_features import CaptionFeatures, FeatureComparison, distribution_lines
from crosslens.core import Dataset, Figure, Ids, InputError, Progress, Row, Section, frozen, json_form
from crosslens.language import Parses, count_words, load_wordnet, parse_texts

Array = np.ndarray[Any, Any]

ARTICLES = frozenset({"a", "an", "the"})
QUANTIFIERS = frozenset(
    {
        "all", "another", "any", "both", "each", "either", "enough", "every", "few", "fewer", "half", "less", "many",
        "more", "most", "much", "neither", "no", "none", "plenty", "several", "some",
    }
)  # fmt: skip
"""Quantifying determiners and pronouns. Without *little*, which in captions nearly always means small."""
QUANTIFYING_TAGS = frozenset({"DT", "PDT", "JJ", "JJR", "JJS"})
"""How the tagger calls a quantifier; as an adverb (*more slowly*), a noun (*cut in half*) or a conjunction (*both …
and*) the same word quantifies nothing."""
QUANTIFYING_NOUNS = frozenset({"none", "plenty"})
"""Quantifiers that are tagged as nouns."""


@dataclass(frozen=True)
class WordFacts:
    """Facts about distinct words in lower case, one row each.

    ``is_article``   a, an or the
    ``quantifies``   whether it is among the quantifiers
    ``depth``        the largest ``min_depth`` among its synsets of any part of speech; NaN where WordNet has none
    ``noun_depth``   the same among its noun synsets
    ``lemmas``       the lemma names of all its synsets as numbers; those of w are ``lemmas[starts[w]:starts[w+1]]``
    """

    is_article: Array
    quantifies: Array
    depth: Array
    noun_depth: Array
    starts: Array
    lemmas: Array


def word_facts(words: Sequence[str]) -> WordFacts:
    """Look up distinct words, given in lower case."""
    known = load_wordnet()
    depths = known.min_depth()
    numbers: dict[str, int] = {}
    depth, noun_depth, lemmas = [], [], []
    for word in words:
        synsets = known.synsets(word)
        depth.append(_deepest(depths, synsets))
        noun_depth.append(_deepest(depths, known.synsets(word, "n")))
        names = dict.fromkeys(name for synset in synsets for name in known.lemmas(int(synset)))
        lemmas.append([numbers.setdefault(name, len(numbers)) for name in names])
    return WordFacts(
        np.array([word in ARTICLES for word in words], np.bool_),
        np.array([word in QUANTIFIERS for word in words], np.bool_),
        np.array(depth, np.float64),
        np.array(noun_depth, np.float64),
        np.concatenate([[0], np.cumsum([len(group) for group in lemmas])]).astype(np.int64),
        np.array([number for group in lemmas for number in group], np.int64),
    )


def _deepest(depths: Array, synsets: Array) -> float:
    return float(depths[synsets].max()) if synsets.size else float("nan")


FEATURES: Mapping[str, str] = {
    "adjectives": "adjectives",
    "complement_phrases": "complement phrases",
    "articles": "articles",
    "determiners": "determiners",
    "quantifiers": "quantifiers",
    "cardinals": "cardinals",
    "concept_depth": "concept depth",
    "concept_depth_nouns": "concept depth, nouns",
    "characters": "characters",
    "words": "words",
    "diversity": "diversity",
    "diversity_ratio": "diversity ratio",
}
"""Every feature by its key, and how people read it."""

_BLOCK = 20_000
"""Captions worked on at once: their words with all synonyms take about 30 MB."""


def caption_features(texts: Sequence[str], parses: Parses) -> dict[str, Array]:
    """For every feature one value per caption; NaN where a mean has nothing to be taken of."""
    table = parses.table.select("words", "tags", "arcs", "heads")
    vocabulary = (
        table.select(pl.col("words").explode().str.to_lowercase().alias("word")).drop_nulls().unique().sort("word")
    ).with_row_index("number")
    facts = word_facts(vocabulary["word"].to_list())
    words = count_words(pl.Series(texts, dtype=pl.String)).to_numpy().astype(np.float64)
    blocks = [
        _features(_tokens(table[start : start + _BLOCK], vocabulary), facts, words[start : start + _BLOCK])
        for start in range(0, table.height, _BLOCK)
    ]
    features = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]} if blocks else {}
    features["characters"] = np.array([len(text) for text in texts], np.float64)
    return {name: features[name] for name in FEATURES if name in features}


def _tokens(table: pl.DataFrame, vocabulary: pl.DataFrame) -> pl.DataFrame:
    """One row per token: its caption, the number of its word, what the tagger and the parser say."""
    return (
        table.with_row_index("caption")
        .explode("words", "tags", "arcs", "heads")
        .filter(pl.col("words").str.strip_chars() != "")  # a second space is a token too; null means no token
        .with_columns(pl.col("words").str.to_lowercase())
        .join(vocabulary, left_on="words", right_on="word", how="left", maintain_order="left")
    )


def _features(tokens: pl.DataFrame, facts: WordFacts, words: Array) -> dict[str, Array]:
    captions = len(words)
    owner, word = (tokens[name].to_numpy().astype(np.int64) for name in ("caption", "number"))

    def counted(chosen: Array) -> Array:
        return np.bincount(owner[chosen], minlength=captions).astype(np.float64)

    def mean_of(values: Array, chosen: Array) -> Array:
        known = chosen & ~np.isnan(values)
        return _ratio(np.bincount(owner[known], values[known], captions), counted(known))

    tags = tokens["tags"]
    # A preposition with two objects (*on cars and trucks* read apart) counts once.
    phrases = tokens.filter(pl.col("arcs") == "pobj").select("caption", "heads").unique()["caption"].to_numpy()
    noun = pl.col("tags").str.starts_with("NN") & pl.col("words").is_in(sorted(QUANTIFYING_NOUNS))
    quantifying = tokens.select(pl.col("tags").is_in(sorted(QUANTIFYING_TAGS)) | noun).to_series().to_numpy()
    everything = np.ones(len(word), np.bool_)
    nouns = tags.str.starts_with("NN").to_numpy()
    names = _distinct_lemmas(owner, word, facts, captions)
    return {
        "adjectives": counted(tags.str.starts_with("JJ").to_numpy()),
        "complement_phrases": np.bincount(phrases, minlength=captions).astype(np.float64),
        "articles": counted(facts.is_article[word]),
        "determiners": counted((tags == "DT").to_numpy()),
        "quantifiers": counted(facts.quantifies[word] & quantifying),
        "cardinals": counted((tags == "CD").to_numpy()),
        "concept_depth": mean_of(facts.depth[word], everything),
        "concept_depth_nouns": mean_of(facts.noun_depth[word], nouns),
        "words": words,
        "diversity": _ratio(names, counted(everything)),
        "diversity_ratio": _ratio(names, words),
    }


def _distinct_lemmas(owner: Array, word: Array, facts: WordFacts, captions: int) -> Array:
    """How many distinct lemma names the synsets of a caption's tokens have."""
    pairs = np.unique(owner * (len(facts.starts) + 1) + word)  # a word that is there twice adds nothing
    owners, words = np.divmod(pairs, len(facts.starts) + 1)
    sizes = facts.starts[words + 1] - facts.starts[words]
    firsts = np.repeat(facts.starts[words] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    names = facts.lemmas[np.arange(int(sizes.sum())) + firsts] if len(sizes) else np.empty(0, np.int64)
    most = int(facts.lemmas.max(initial=0)) + 1
    distinct = np.unique(np.repeat(owners, sizes) * most + names)
    return np.bincount(distinct // most, minlength=captions).astype(np.float64)


def _ratio(above: Array, below: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(below > 0, above / below, np.nan)


@dataclass(frozen=True, eq=False)
class Granularity(CaptionFeatures):
    """The features of a set of captions; as a mapping, the mean of each over the captions.

    NaN in ``per_caption``: the caption has nothing to take a mean of, and does not count. Captions without images are
    an image each.
    """

    pipeline: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: the means."""
        return {"name": self.name, "captions": len(self.caption_ids), "features": json_form(dict(self))}


def measure_granularity(
    captions: Dataset | Mapping[str, str] | Iterable[str],
    *,
    name: str | None = None,
    pipeline: str | None = None,
    cache: str | Path | bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Granularity:
    """Measure how fine-grained captions are; the result maps every feature to its mean over the captions.

    ``captions`` are texts, ``{id: text}`` or a dataset, whose images are what intervals resample. Captions are parsed
    by spaCy (``pipeline`` names one that is installed; ``cache`` and ``threads`` as in parsing); parses are cached, so
    that a second call takes seconds.
    """
    ids, texts, images, clusters = _columns(captions)
    parses = parse_texts(texts, pipeline=pipeline, cache=cache, threads=threads, progress=progress)
    features = caption_features(texts, parses)
    return Granularity(
        name or (captions.name if isinstance(captions, Dataset) else "captions"),
        ids,
        images,
        frozen(clusters),
        {feature: frozen(features[feature]) for feature in FEATURES},
        parses.pipeline,
    )


def _columns(captions: Dataset | Mapping[str, str] | Iterable[str]) -> tuple[Ids, tuple[str, ...], Ids, Array]:
    if isinstance(captions, Dataset):
        taken = captions.caption_ids, captions.texts, captions.image_ids, captions.caption_image
    elif isinstance(captions, str):
        raise InputError("captions is a single text", expected="a list of texts", fix="put it into a list")
    elif not isinstance(captions, Iterable):
        raise InputError(f"{captions!r:.60} is not a list of captions", expected="texts, {id: text} or a dataset")
    else:
        pairs = captions if isinstance(captions, Mapping) else dict(enumerate(captions))
        ids = tuple(map(str, pairs))
        texts = tuple(pairs.values())
        for row, text in enumerate(texts):
            if not isinstance(text, str) or not text.strip():
                raise InputError(
                    f"caption {ids[row]!r} is {text!r:.60}", row=row, expected="a non-empty text",
                    fix="write the caption or remove it",
                )  # fmt: skip
        taken = ids, texts, ids, np.arange(len(ids))
    if not taken[0]:
        raise InputError(
            "no captions", expected="at least one caption", fix="check the file and the options of its reader"
        )
    return taken


@dataclass(frozen=True)
class GranularityComparison(FeatureComparison[Granularity]):
    """The granularity of several sets side by side."""

    @property
    def title(self) -> str:
        return "How fine-grained the captions are"

    def sections(self) -> Iterator[Section]:
        """How every feature is distributed, the means, and the changes against the first set."""
        charts = (
            distribution_lines(
                FEATURES[feature], "per caption", {captions.name: captions.of(feature) for captions in self.sets},
                about="percent of captions with each value",
            )
            for feature in self.features
        )  # fmt: skip
        parts = self.feature_parts(
            FEATURES,
            lambda _, mean: Figure(mean.mean, mean.low, mean.high),
            lambda _, change: Figure.percent(
                change.relative, change.relative_low, change.relative_high, signed=True, unit=" %"
            ),
        )
        yield Section("", (Row(tuple(charts)), *parts))

    def as_dict(self) -> dict[str, Any]:
        return {**super().as_dict(), "pipeline": self.sets[0].pipeline}


compare_granularity = GranularityComparison.of

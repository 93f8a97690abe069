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
from crosslens.core import Figure, InputError, Row, Section
from crosslens.engine import Progress
from crosslens.language import Parses, count_words, load_wordnet, parse_texts
from crosslens.storage import Array, frozen, json_form
from crosslens.values import Dataset

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
    table = parses.table.select("words", "tags", "arcs", "heads").with_row_index("caption")
    distinct = table.select(pl.col("words").explode().str.to_lowercase()).drop_nulls().unique()
    # Of each distinct word: the largest ``min_depth`` among its synsets and among its noun synsets, null where WordNet
    # has none; and the lemma names of all its synsets, as numbers.
    wordnet = load_wordnet()
    depths = wordnet.min_depth()
    numbers: dict[str, int] = {}
    rows = []
    for token in distinct["words"]:
        synsets, nouns = wordnet.synsets(token), wordnet.synsets(token, "n")
        names = dict.fromkeys(name for synset in synsets for name in wordnet.lemmas(int(synset)))
        deepest = (float(depths[senses].max()) if senses.size else None for senses in (synsets, nouns))
        rows.append((token, *deepest, [numbers.setdefault(name, len(numbers)) for name in names]))
    schema: dict[str, Any] = {"words": pl.String, **dict.fromkeys(("depth", "noun_depth"), pl.Float64)}
    facts = pl.DataFrame(rows, schema=schema | {"lemmas": pl.List(pl.UInt32)}, orient="row")
    words = pl.DataFrame({"words": count_words(pl.Series(texts, dtype=pl.String)).cast(pl.Float64)})
    lengths = pl.Series("characters", [len(text) for text in texts], dtype=pl.Float64)
    blocks = [_features(table[start : start + _BLOCK], facts) for start in range(0, table.height, _BLOCK)]
    features = pl.concat([pl.concat(blocks or [_features(table, facts)]), words], how="horizontal").with_columns(
        lengths,
        diversity=pl.when(pl.col("tokens") > 0).then(pl.col("lemmas") / pl.col("tokens")),
        diversity_ratio=pl.when(pl.col("words") > 0).then(pl.col("lemmas") / pl.col("words")),
    )
    return {name: features[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in FEATURES}


def _features(table: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """A row per caption with what its tokens make of it, how many they are, and how many lemma names they have."""
    word, tag = pl.col("words"), pl.col("tags")
    tokens = (
        table.explode("words", "tags", "arcs", "heads")
        .filter(word.str.strip_chars() != "")  # a second space is a token too; null means no token
        .with_columns(word.str.to_lowercase())
        .join(facts.drop("lemmas"), on="words", how="left")
    )
    noun = tag.str.starts_with("NN")
    quantifying = tag.is_in(sorted(QUANTIFYING_TAGS)) | (noun & word.is_in(sorted(QUANTIFYING_NOUNS)))
    counts = tokens.group_by("caption").agg(
        adjectives=tag.str.starts_with("JJ").sum(),
        # A preposition with two objects (*on cars and trucks* read apart) counts once.
        complement_phrases=pl.col("heads").filter(pl.col("arcs") == "pobj").n_unique(),
        articles=word.is_in(sorted(ARTICLES)).sum(),
        determiners=(tag == "DT").sum(),
        quantifiers=(word.is_in(sorted(QUANTIFIERS)) & quantifying).sum(),
        cardinals=(tag == "CD").sum(),
        concept_depth=pl.col("depth").mean(),
        concept_depth_nouns=pl.col("noun_depth").filter(noun).mean(),
        tokens=pl.len(),
    )
    # A word that is there twice adds no lemma name.
    names = tokens.select("caption", "words").unique().join(facts.select("words", "lemmas"), on="words")
    lemmas = names.explode("lemmas").drop_nulls().select("caption", "lemmas").unique().group_by("caption").len("lemmas")
    joined = table.select("caption").join(counts, on="caption", how="left", maintain_order="left")
    joined = joined.join(lemmas, on="caption", how="left", maintain_order="left").drop("caption")
    means = ("concept_depth", "concept_depth_nouns")
    return joined.with_columns(pl.all().exclude(means).fill_null(0))


@dataclass(frozen=True, eq=False)
class Granularity(CaptionFeatures):
    """The features of a set of captions; as a mapping, the mean of each over the captions.

    NaN in ``per_caption``: the caption has nothing to take a mean of, and does not count. Captions without images are
    an image each.
    """

    pipeline: str = ""

    def alone(self) -> GranularityComparison:
        return GranularityComparison.of((self,))

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
    if isinstance(captions, Dataset):
        ids, texts, images, clusters = captions.caption_ids, captions.texts, captions.image_ids, captions.caption_image
    elif isinstance(captions, str):
        raise InputError("captions is a single text", expected="a list of texts", fix="put it into a list")
    elif not isinstance(captions, Iterable):
        raise InputError(f"{captions!r:.60} is not a list of captions", expected="texts, {id: text} or a dataset")
    else:
        pairs = captions if isinstance(captions, Mapping) else dict(enumerate(captions))
        ids, texts = tuple(map(str, pairs)), tuple(pairs.values())
        images, clusters = ids, np.arange(len(ids))
        for row, text in enumerate(texts):
            if not isinstance(text, str) or not text.strip():
                raise InputError(
                    f"caption {ids[row]!r} is {text!r:.60}", row=row, expected="a non-empty text",
                    fix="write the caption or remove it",
                )  # fmt: skip
    if not ids:
        raise InputError(
            "no captions", expected="at least one caption", fix="check the file and the options of its reader"
        )
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


@dataclass(frozen=True)
class GranularityComparison(FeatureComparison[Granularity]):
    """The granularity of several sets side by side."""

    title = "How fine-grained the captions are"

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

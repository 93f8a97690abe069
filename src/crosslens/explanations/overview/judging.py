"""Every mention of many failed queries, judged against what they retrieved."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from crosslens.core import Dataset, Progress, SilentProgress, stage
from crosslens.explanations.concepts.lexicon import ATTRIBUTE_FAMILIES
from crosslens.explanations.concepts.objects import ImageObjects
from crosslens.explanations.overview.causes import MentionJudgement, judged_mentions
from crosslens.explanations.overview.evidence import Evidence
from crosslens.explanations.words.mentions import Mention, QueryMentions


def texts_of(failures: pl.DataFrame) -> list[str]:
    """The text whose mentions are judged: the query or, of an image query, the caption that it retrieved."""
    return failures["text"].fill_null(failures["answer"]).fill_null("").to_list()


def judge_failures(
    failures: pl.DataFrame,
    dataset: Dataset,
    objects: ImageObjects,
    queries: Sequence[QueryMentions],
    progress: Progress | None = None,
) -> list[list[tuple[Mention, MentionJudgement]]]:
    """Per row of :func:`failed_queries`, every mention with its judgement; ``queries`` are the mentions of the rows."""
    if not failures.height:
        return []
    by_images = failures["text"][0] is None
    checked = failures["ground_truth" if by_images else "retrieved"]
    with_attributes = [
        image for image, query in zip(checked, queries, strict=True) if any(map(query.of, ATTRIBUTE_FAMILIES))
    ]
    images = [*failures["ground_truth"], *failures["retrieved"]]
    evidence = Evidence.of(dataset, objects, images, attributes_of=with_attributes, progress=progress)
    # An image query is judged by the caption it retrieved: that caption's own image confirms its words.
    columns = ("item", "retrieved", "ground_truth") if by_images else ("query", "ground_truth", "retrieved")
    judged = []
    with stage(progress or SilentProgress(), "judging failures", failures.height) as shown:
        for query, (caption, right, wrong) in zip(queries, failures.select(columns).iter_rows(), strict=True):
            judged.append(judged_mentions(query, caption, right, wrong, evidence))
            shown.advance()
    return judged

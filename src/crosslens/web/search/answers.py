"""The JSON of live search."""

from __future__ import annotations

from typing import Literal
from urllib.parse import quote

from pydantic import BaseModel, Field

from crosslens.explanations import HitComparison
from crosslens.web.explorer.addresses import address
from crosslens.web.jobs import JobProgress
from crosslens.web.search.search import LONGEST_TEXT, MOST_HITS, FoundItem, SearchResult

Among = Literal["images", "captions"]
_DEPTH = 12


class Choice(BaseModel):
    """A dataset or an encoder that can be chosen."""

    id: str
    name: str


class Choices(BaseModel):
    """What can be searched, and with what."""

    datasets: list[Choice]
    encoders: list[Choice]


class Preparation(BaseModel):
    """Whether the vectors of the dataset are in memory.

    ``state`` is ``done``, ``waiting``, ``running`` (with stage, done and total; total 0: unknown) or ``failed``.
    """

    state: str
    stage: str = ""
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    problem: str = ""
    fix: str = ""


class TextQuestion(BaseModel):
    """A sentence to search with."""

    dataset: str
    encoder: str
    text: str = Field(max_length=LONGEST_TEXT)
    among: Among = "images"
    depth: int = Field(_DEPTH, ge=1, le=MOST_HITS)


class HitAnswer(BaseModel):
    """An item of the list, with the addresses of the picture and of the page of its image."""

    rank: int
    id: str
    kind: str
    score: float
    text: str | None
    image: str
    picture: str
    page: str


class WordAnswer(BaseModel):
    """What a word adds to the score of the first hit, and to its lead over the second."""

    word: str
    start: int
    end: int
    effect: float
    lead: float | None


class SearchAnswer(BaseModel):
    """The hits, what was searched, how long each step took, and the effect of every word."""

    hits: list[HitAnswer]
    gallery: int
    encoder: str
    milliseconds: dict[str, float]
    words: list[WordAnswer]
    shared_words: list[list[str]]


class MentionAnswer(BaseModel):
    """Something that the sentence mentions, and whether each of the two images has it, with the reason."""

    text: str
    kind: str
    verdicts: list[str]
    reasons: list[str]


class WhyAnswer(BaseModel):
    """How the first two images compare: what the sentence mentions, and their objects."""

    images: list[str]
    source: str
    sentences: list[str]
    mentions: list[MentionAnswer]
    common: list[str]
    only_first: list[str]
    only_second: list[str]
    notes: list[str]


def preparation(progress: JobProgress) -> Preparation:
    """The JSON of a progress."""
    return Preparation(
        state=progress.state, stage=progress.stage, done=progress.done, total=progress.total,
        seconds=round(progress.seconds, 1), problem=progress.problem, fix=progress.fix,
    )  # fmt: skip


def search_answer(result: SearchResult, among: str, encoder: str, dataset: str) -> SearchAnswer:
    """The JSON of a result in a dataset, which is known by its id."""
    return SearchAnswer(
        hits=[_hit(item, among, dataset) for item in result.items],
        gallery=result.gallery,
        encoder=encoder,
        milliseconds={name: round(value, 2) for name, value in result.milliseconds.items()},
        words=[WordAnswer(**word._asdict()) for word in result.words],
        shared_words=[list(words) for words in result.shared_words],
    )


def _hit(item: FoundItem, among: str, dataset: str) -> HitAnswer:
    own = quote(dataset, safe="")
    return HitAnswer(
        rank=item.hit.rank, id=item.id, kind=among.removesuffix("s"), score=item.hit.score, text=item.text,
        image=item.image, picture=f"/pictures/{own}/{quote(item.image)}?size=320",
        page=address(f"/datasets/{own}/image", {"id": item.image}),
    )  # fmt: skip


def why_answer(comparison: HitComparison) -> WhyAnswer:
    """The JSON of a comparison of the first images."""
    mentions = [
        MentionAnswer(
            text=checks[0].word.text, kind=checks[0].word.kind, verdicts=[check.verdict for check in checks],
            reasons=[check.why for check in checks],
        )
        for checks in comparison.checks
    ]  # fmt: skip
    return WhyAnswer(
        images=list(comparison.images), source=comparison.source, sentences=comparison.sentences, mentions=mentions,
        common=list(comparison.common), only_first=list(comparison.only_first),
        only_second=list(comparison.only_second), notes=list(comparison.notes),
    )  # fmt: skip

"""One query in full: what it mentions, what it retrieved, and how the two images differ, object by object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from crosslens.core import Presented, Section, json_form
from crosslens.explanations.concepts.lexicon import shortest_path, synset_word
from crosslens.explanations.concepts.metrics import METRICS
from crosslens.explanations.local.sections import explanation_sections
from crosslens.explanations.words.checks import MentionCheck
from crosslens.explanations.words.images import AnnotatedImage

FORMAT = "crosslens/explanation"
VERSION = 1


class Claim(NamedTuple):
    """Something that a sentence states: of what (``right``, ``other``, ``words``, ``ranking``), what, and how much."""

    about: str
    kind: str
    name: str = ""
    value: Any = None


@dataclass(frozen=True)
class Sentence:
    """A sentence with all that it claims."""

    text: str
    claims: tuple[Claim, ...] = ()


class Competitor(NamedTuple):
    """One item of the top k; ``image`` is the item itself, or the image of a caption."""

    rank: int
    item: str
    image: str
    score: float | None
    right: bool
    text: str | None = None


class MentionComparison(NamedTuple):
    """One mention of the query (or of the caption that an image retrieved), checked against both images."""

    right: MentionCheck
    other: MentionCheck


@dataclass(frozen=True, eq=False)
class Explanation(Presented):
    """Everything about one query.

    ``right`` is the image that is relevant to the query (an image query is its own), ``other`` the top-1 image; of a
    query that succeeded, the first one that is not relevant, ``None`` where the top k has none. ``words`` are the
    mentions of the query, or of the other caption for an image query, ``spoken`` the text that contains them.
    ``gallery`` is how many items were ranked; None where a ready-made list tells only its own length.
    ``comparison`` has the keys of :func:`crosslens.concept_metrics`, ``informed`` those of its metrics over what the
    query mentions only.
    """

    run: str
    dataset: str
    direction: str
    source: str
    query: str
    query_text: str | None
    succeeded: bool
    rank: int | None
    gallery: int | None
    score: float | None
    truth_score: float | None
    margin: float | None
    margin_at_least: float | None
    right: AnnotatedImage
    other: AnnotatedImage | None
    other_item: str | None
    spoken: str | None
    competitors: tuple[Competitor, ...]
    words: tuple[MentionComparison, ...]
    comparison: Mapping[str, Any] = field(default_factory=dict)
    informed: Mapping[str, Any] = field(default_factory=dict)
    sentences: tuple[Sentence, ...] = ()
    notes: tuple[str, ...] = ()
    pictures: Mapping[str, str] = field(default_factory=dict)
    """The files of both images, where they are known."""

    @property
    def summary(self) -> str:
        """What went wrong, in a sentence or two."""
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def title(self) -> str:
        """The heading of a page."""
        return f"Why: {self.query}, {self.run} on {self.dataset}"

    def sections(self, **options: Any) -> Iterator[Section]:
        """The query in full."""
        return explanation_sections(self, self.pictures)

    def __repr__(self) -> str:
        return f"<Explanation of {self.query} ({self.direction}): {self.summary}>"

    @property
    def paths(self) -> list[dict[str, Any]]:
        """Every matched pair of concepts that only one image has, with the shortest path between them in WordNet."""
        pairs = []
        for missing, extra, similarity in self.comparison.get("concept_pairs", ()):
            path, top = shortest_path(missing, extra)
            pair = {"missing": missing, "extra": extra, "similarity": similarity}
            pairs.append({**pair, "path": path, "common_hypernym": top})
        return pairs

    @property
    def boxes(self) -> list[dict[str, Any]]:
        """Every matched pair of boxes: the objects' numbers in both images, areas, their ratio and difference."""
        names = ("synset", "right", "other", "area_right", "area_other", "ratio", "difference")
        return [
            dict(zip(names, (*pair[:5], pair[4] / pair[3], pair[5]), strict=True))
            for pair in self.comparison.get("box_pairs", ())
        ]

    def called(self, synset: str) -> str:
        """The name of a concept in these images."""
        objects = (*self.right.objects, *(self.other.objects if self.other is not None else ()))
        return next((item.name for item in objects if item.synset == synset), synset_word(synset))

    def as_dict(self) -> dict[str, Any]:
        """For JSON: every number and pair."""
        compared = self.comparison
        lists = {name: compared.get(name, []) for name in ("common", "missing", "extra", "attributes", "relations")}
        counts = {name: {"right": right, "other": other} for name, (right, other) in compared.get("counts", {}).items()}
        plain = (
            "run", "dataset", "direction", "source", "query", "text", "succeeded", "rank", "gallery", "score",
            "truth_score", "margin", "margin_at_least", "other_item", "spoken",
        )  # fmt: skip
        places = ("place", *Competitor._fields[1:])
        content: dict[str, Any] = json_form(
            {
                "format": FORMAT,
                "version": VERSION,
                **{name: getattr(self, "query_text" if name == "text" else name) for name in plain},
                "sentences": [
                    {"text": sentence.text, "claims": [claim._asdict() for claim in sentence.claims]}
                    for sentence in self.sentences
                ],
                "right": self.right.as_dict(),
                "other": None if self.other is None else self.other.as_dict(),
                "words": [
                    {**right.word.as_dict(), "right": right.as_dict(), "other": other.as_dict()}
                    for right, other in self.words
                ],
                "metrics": {name: compared.get(name) for name in METRICS},
                "query_informed": {name: self.informed.get(name) for name in METRICS},
                **lists,
                "counts": counts,
                "concept_pairs": self.paths,
                "box_pairs": self.boxes,
                "competitors": [dict(zip(places, item, strict=True)) for item in self.competitors],
                "notes": self.notes,
            }
        )
        return content

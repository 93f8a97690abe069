"""One query in full: what it asked for, what it found, and how the two pictures differ, object by object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crosslens.core.json_form import json_form
from crosslens.explain.concepts.metrics import METRICS
from crosslens.explain.local.sentences import Sentence
from crosslens.explain.words.kinship import plain_word, shortest_path
from crosslens.explain.words.pictures import Picture
from crosslens.explain.words.query_answers import Answer

FORMAT = "crosslens/explanation"
VERSION = 1


@dataclass(frozen=True)
class Competitor:
    """One place of the list; ``image`` is the item itself, or the image of a caption."""

    place: int
    item: str
    image: str
    score: float | None
    right: bool
    text: str | None = None


@dataclass(frozen=True)
class Verdict:
    """One word of the query (or of the caption that an image found), and what both pictures say to it."""

    right: Answer
    other: Answer

    def as_dict(self) -> dict[str, Any]:
        return {
            **self.right.word.as_dict(),
            "right": self.right.as_dict(),
            "other": self.other.as_dict(),
        }


@dataclass(frozen=True, eq=False)
class Explanation:
    """Everything about one query.

    ``right`` is the picture that belongs to the query (an image that asks is its own), ``other`` the one at the first
    place; of a query that succeeded, the first wrong one, ``None`` where the list kept none. ``words`` are those of the
    query, or of the other caption where an image asked, ``spoken`` the text that they stand in. ``comparison`` has the
    keys of :func:`crosslens.concept_metrics`, ``informed`` those of its metrics over what the query mentions only.
    """

    run: str
    dataset: str
    direction: str
    source: str
    query: str
    text: str | None
    succeeded: bool
    rank: int | None
    gallery: int
    score: float | None
    truth_score: float | None
    margin: float | None
    margin_at_least: float | None
    right: Picture
    other: Picture | None
    other_item: str | None
    spoken: str | None
    competitors: tuple[Competitor, ...]
    words: tuple[Verdict, ...]
    comparison: Mapping[str, Any] = field(default_factory=dict)
    informed: Mapping[str, Any] = field(default_factory=dict)
    sentences: tuple[Sentence, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)

    def __repr__(self) -> str:
        return f"<Explanation of {self.query} ({self.direction}): {self}>"

    @property
    def paths(self) -> list[dict[str, Any]]:
        """Every matched pair of concepts that only one picture has, with the shortest way between them in WordNet."""
        found = []
        for missing, extra, similarity in self.comparison.get("concept_pairs", ()):
            path, top = shortest_path(missing, extra)
            pair = {"missing": missing, "extra": extra, "similarity": similarity}
            found.append({**pair, "path": path, "common_hypernym": top})
        return found

    @property
    def boxes(self) -> list[dict[str, Any]]:
        """Every matched pair of boxes: the objects' numbers in both pictures, areas, their ratio and difference."""
        return [
            {
                "synset": synset,
                "right": one,
                "other": two,
                "area_right": area,
                "area_other": other_area,
                "ratio": other_area / area,
                "difference": difference,
            }
            for synset, one, two, area, other_area, difference in self.comparison.get("box_pairs", ())
        ]

    def called(self, synset: str) -> str:
        """How a concept is called in these pictures."""
        things = (*self.right.things, *(self.other.things if self.other is not None else ()))
        return next((thing.name for thing in things if thing.synset == synset), plain_word(synset))

    def as_dict(self) -> dict[str, Any]:
        """For JSON: every number and pair."""
        compared = self.comparison
        lists = {name: compared.get(name, []) for name in ("common", "missing", "extra", "attributes", "relations")}
        counts = {one: {"right": mine, "other": two} for one, (mine, two) in compared.get("counts", {}).items()}
        plain = (
            "run", "dataset", "direction", "source", "query", "text", "succeeded", "rank", "gallery", "score",
            "truth_score", "margin", "margin_at_least", "other_item", "spoken",
        )  # fmt: skip
        whole: dict[str, Any] = json_form(
            {
                "format": FORMAT,
                "version": VERSION,
                **{name: getattr(self, name) for name in plain},
                "sentences": [sentence.as_dict() for sentence in self.sentences],
                "right": self.right.as_dict(),
                "other": None if self.other is None else self.other.as_dict(),
                "words": [verdict.as_dict() for verdict in self.words],
                "metrics": {name: compared.get(name) for name in METRICS},
                "query_informed": {name: self.informed.get(name) for name in METRICS},
                **lists,
                "counts": counts,
                "concept_pairs": self.paths,
                "box_pairs": self.boxes,
                "competitors": [vars(one) for one in self.competitors],
                "notes": self.notes,
            }
        )
        return whole


def by_verdict(words: Sequence[Verdict], verdict: str) -> list[Verdict]:
    """The words to which the other picture gives this verdict."""
    return [one for one in words if one.other.verdict == verdict]

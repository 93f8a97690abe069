"""An IMP benchmark: how far its build has come, what it consists of, and what each stage left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.build.imp.candidates import KEPT, NEAR_DUPLICATE, NOT_DRAWN, TITLE, Candidates
from crosslens.build.imp.leakage import CAPTION, IMAGE
from crosslens.build.imp.people.agreement import AnnotatorAgreement
from crosslens.build.imp.people.annotation import GOOD, Verdict
from crosslens.build.imp.sampling import Array, SampleSpread
from crosslens.build.imp.sections import dropped_captions, imp_sections
from crosslens.build.log import DecisionLog
from crosslens.core import Card, Dataset, Presented, Section

DATASET = "dataset"
"""The folder of the benchmark itself."""

_CAPTIONS = {
    "caption": pl.String, "image": pl.String, "text": pl.String, "pool_caption": pl.String, "pool_image": pl.String,
    "cosine": pl.Float64, "before": pl.String, "change": pl.String, "source": pl.String,
}  # fmt: skip
REJECTED_COLUMNS = {
    "image": pl.String, "caption": pl.String, "text": pl.String, "verdict": pl.String, "reason": pl.String,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Imp(Presented):
    """What a build gives. Before it is ``done`` there is no dataset; ``waiting`` then says which sheet lacks how much.

    ``rejected``  captions that people called bad, generic or unsure: negatives that were looked at
    ``leaks``     captions and images that a corpus has
    """

    status: str
    candidates: Candidates
    spreads: tuple[SampleSpread, ...]
    log: DecisionLog
    dataset: Dataset | None = None
    rejected: pl.DataFrame | None = None
    leaks: pl.DataFrame | None = None
    agreement: AnnotatorAgreement | None = None
    waiting: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Sheet → how many verdicts it has, and how many it needs."""
    notes: tuple[str, ...] = ()
    already: bool = False
    """Whether it was built before."""
    encode: Callable[[list[str]], Array] | None = field(default=None, repr=False)
    """Captions → vectors, as the text encoder of the build has them."""
    output: Path | None = None
    """Its folder."""
    mapped: Presented | None = None
    """The map of an image's captions, where it is shown too."""

    @property
    def counts(self) -> dict[str, int]:
        """How many images and captions each stage left, in the order of the stages."""
        return stage_counts(self.candidates, self.log)

    @property
    def title(self) -> str:
        """The heading of a page that shows the build."""
        return "Build of an IMP benchmark"

    def sections(self, **options: Any) -> Iterator[Section]:
        """The counts of all stages, then whatever is known so far."""
        return imp_sections(self)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "output": None if self.output is None else str(self.output),
            "key": self.log.head["key"],
            "status": self.status,
            "counts": self.counts,
            "dropped": dropped_captions(self),
            "spread": [vars(spread) for spread in self.spreads],
            "agreement": None if self.agreement is None else vars(self.agreement),
            "waiting": {name: {"verdicts": has, "needed": needs} for name, (has, needs) in self.waiting.items()},
            "leaks": 0 if self.leaks is None else self.leaks.height,
            "fingerprint": None if self.dataset is None else self.dataset.fingerprint,
            "notes": list(self.notes),
        }


def stage_counts(candidates: Candidates, log: DecisionLog) -> dict[str, int]:
    """Name → number, for every stage that the log has come to."""
    images, captions = candidates.images, candidates.captions
    reasons, titles = Counter(captions["reason"]), captions.filter(source=TITLE).height
    least = log.head["settings"]["cluster_sizes"][0]
    clean = reasons[None] + reasons[NEAR_DUPLICATE] + reasons[NOT_DRAWN]
    counts = {
        "images given": int(log.head["images"]["images"]),
        "images sampled": images.height,
        "images with a large enough cluster": images.filter(pl.col("cluster") >= least).height,
        "captions in their clusters": captions.height - titles,
        **({"titles of their own": titles} if "titles" in log.head else {}),
        "captions left by cleaning": clean,
        "captions that are no near-duplicates": clean - reasons[NEAR_DUPLICATE],
        "images with enough candidates": images.filter(verdict=KEPT).height,
        "captions to judge": candidates.kept.height,
    }
    if log.of("benchmark"):
        verdicts = [entry["verdict"] for entry in log.of("verdict")]
        (built,) = log.of("benchmark")
        counts |= {
            "captions called good": sum(verdict[0] == GOOD for verdict in verdicts),
            "captions corrected": sum(bool(verdict[1]) for verdict in verdicts),
            "images in the benchmark": built["images"],
            "captions in the benchmark": built["captions"],
            **({"titles in the benchmark": built["titles"]} if "titles" in built else {}),
            "captions rejected": built["rejected"],
        }
    return counts


def good_captions(
    candidates: Candidates, verdicts: Mapping[str, Verdict], leaks: pl.DataFrame | None = None
) -> list[tuple[str, str, str]]:
    """Image, caption and text, as corrected, of the captions that people called good; without ``leaks``, if given."""
    lost = (set(), set()) if leaks is None else tuple(set(leaks.filter(kind=kind)[kind]) for kind in (IMAGE, CAPTION))
    return [
        (image, caption, verdicts[caption].correction or text)
        for image, caption, text in candidates.kept.select("image", "caption", "text").iter_rows()
        if verdicts[caption].verdict == GOOD and image not in lost[0] and caption not in lost[1]
    ]


def benchmark_dataset(
    candidates: Candidates, chosen: Mapping[str, Sequence[str]], verdicts: Mapping[str, Verdict],
    images: Dataset, log: DecisionLog,
) -> Dataset:  # fmt: skip
    """The images in the order of sampling, each with its chosen captions."""
    ids = pl.DataFrame({"image": list(chosen)}, schema={"image": pl.String})
    about = images.select(chosen).images.drop("file", strict=False)
    sampled = candidates.images.select("image", "file", "order")
    table = ids.join(about, on="image", how="left", maintain_order="left")
    table = table.join(sampled, on="image", how="left", maintain_order="left")
    table = table.drop("file") if table["file"].null_count() == table.height else table
    by_caption = {row["caption"]: row for row in candidates.kept.iter_rows(named=True)}
    rows: list[tuple[Any, ...]] = []
    for image, captions in chosen.items():
        for caption in captions:
            row, verdict = by_caption[caption], verdicts[caption]
            text = verdict.correction or row["text"]
            before = row["text"] if verdict.correction else None
            origin = (row["pool_caption"], row["pool_image"], row["cosine"])
            rows.append((caption, image, text, *origin, before, verdict.change or None, row["source"]))
    return Dataset("imp", table, pl.DataFrame(rows, schema=_CAPTIONS, orient="row"), card=_card(images, log))


def rejected_captions(candidates: pl.DataFrame, verdicts: Mapping[str, Verdict]) -> pl.DataFrame:
    """The captions that people did not accept, and what they said."""
    rows = [
        (image, caption, text, verdicts[caption].verdict, f"annotators: {verdicts[caption].verdict}")
        for image, caption, text in candidates.select("image", "caption", "text").iter_rows()
        if verdicts[caption].verdict != GOOD
    ]
    return pl.DataFrame(rows, schema=REJECTED_COLUMNS, orient="row")


def _card(images: Dataset, log: DecisionLog) -> Card:
    pool, own = log.head["pool"]["name"], ", and titles of their own" if "titles" in log.head else ""
    verdicts, people = log.of("verdict"), log.head["settings"]["annotators"]
    good = [entry for entry in verdicts if entry["verdict"][0] == GOOD]
    origin = f" ({images.card.source})" if images.card.source else ""
    return Card(
        source=f"built by crosslens build imp from {images.name}{origin} and captions of {pool}",
        revision=f"build {log.head['key'][:12]}",
        licence=images.card.licence,
        citation=images.card.citation,
        notes=f"diverse captions of visually similar images{own}, judged by {people} people: "
        f"{len(good):,} of {len(verdicts):,} candidate captions were good",
    )

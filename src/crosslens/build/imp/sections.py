"""How a build is shown: what each stage left, the spread of the images, what to do next; the page of the benchmark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crosslens.core import Cards, Cell, FactList, Figure, Part, PictureCard, Presented, Section, Table, Text

if TYPE_CHECKING:
    from crosslens.build.imp.benchmark import Imp

ANNOTATE = "annotate"
AGREE = "agree"
DONE = "done"
"""How far a build has come: sheets are to be filled in, disagreements to be settled, or the benchmark is there."""
MOST_SHOWN = 100
"""How many images the page shows: pictures are part of it."""
NEXT = {
    ANNOTATE: "Fill in the column verdict of {sheets} (good, bad, unsure or generic; a corrected text goes into "
    "correction), then run the same command again.",
    AGREE: "The annotators differ, or are unsure, on {open:,} captions: fill in the column verdict of agree.csv "
    "together, then run the same command again.",
}


def next_step(imp: Imp) -> str:
    """What people have to do now; empty where nothing is left to do."""
    if imp.status not in NEXT:
        return ""
    names = list(imp.waiting)
    sheets = " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "".join(names)
    return NEXT[imp.status].format(sheets=sheets, open=sum(needed for _, needed in imp.waiting.values()))


def dropped_captions(imp: Imp) -> dict[str, int]:
    """Reason → how many captions were dropped for it before people saw them, the most frequent first."""
    counts = Counter(imp.candidates.captions["reason"].drop_nulls())
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def agreement_line(imp: Imp) -> str:
    """Cohen's κ and shares in a sentence."""
    agreement = imp.agreement
    assert agreement is not None
    if agreement.share is None:
        return f"{agreement.captions:,} captions, one annotator; {agreement.open:,} were looked at again."
    kappa, kept = (
        "not defined" if value is None else f"{value:.3f}" for value in (agreement.kappa, agreement.kappa_kept)
    )
    return (
        f"{agreement.captions:,} captions; the same verdict on {agreement.share:.1%}, Cohen's κ {kappa} "
        f"(good against the rest: {kept}); {agreement.open:,} went to the agreement stage."
    )


def imp_sections(imp: Imp) -> Iterator[Section]:
    """The counts of all stages, then whatever is known so far."""
    parts: list[Part] = _counts(imp)
    if dropped := dropped_captions(imp):
        text = ", ".join(f"{reason} {count:,}" for reason, count in dropped.items())
        parts.append(FactList((("captions dropped", text),)))
    if imp.agreement is not None:
        parts.append(FactList((("annotators", agreement_line(imp)),)))
    if imp.waiting:
        sheets = [(name, f"{judged:,} of {needed:,} verdicts") for name, (judged, needed) in imp.waiting.items()]
        parts += [FactList(tuple(sheets)), Text.of(next_step(imp))]
    yield Section("", tuple(parts))
    if imp.mapped is not None:
        yield from imp.mapped.sections()


def _counts(imp: Imp) -> list[Part]:
    spreads: list[tuple[Cell, ...]] = [
        (spread.space, *(Figure(value, digits=4) for value in (
            spread.nearest_mean, spread.nearest_min, spread.covered_mean, spread.covered_max)))
        for spread in imp.spreads
    ]  # fmt: skip
    header = ("sampled in", "nearest, mean", "least", "coverage, mean", "most")
    return [Table(("stage", ""), tuple(imp.counts.items()), "lr"), Table(header, tuple(spreads), "lrrrr")]


@dataclass(frozen=True)
class ImpPage(Presented):
    """Every picture with its captions, where they come from, and what people rejected."""

    imp: Imp

    @property
    def title(self) -> str:
        """The heading."""
        return "An IMP benchmark"

    def as_dict(self) -> dict[str, Any]:
        """That of the benchmark."""
        return self.imp.as_dict()

    def sections(self, **options: Any) -> Iterator[Section]:
        """The first images of the benchmark, then how it was built."""
        imp, dataset = self.imp, self.imp.dataset
        assert dataset is not None
        assert imp.rejected is not None
        total = len(dataset.image_ids)
        captions: dict[str, list[str]] = {}
        for row in dataset.captions.iter_rows(named=True):
            own = captions.setdefault(row["image"], [])
            own.append(f"{len(own) + 1}. {_caption(row)}")
        refused = imp.rejected.select("image", "verdict", "text").rows()
        counts, shown = Counter(image for image, *_ in refused), dataset.image_ids[:MOST_SHOWN]
        cards = [PictureCard(image, (*captions[image], f"{counts[image]:,} rejected"), image) for image in shown]
        table = Table(
            ("image", "verdict", "caption"), tuple(row for row in refused if row[0] in shown), "lll",
            title="Captions of these images that people rejected", folded=True,
        )  # fmt: skip
        files = {image: file for image, file in imp.candidates.images.select("image", "file").iter_rows() if file}
        few = f"The first {MOST_SHOWN} of {total:,} images." if total > MOST_SHOWN else ""
        facts = Text.of(f"{total:,} images, {len(dataset.caption_ids):,} captions.", few)
        yield Section("", (facts, Cards("", tuple(cards), files), table))
        distances = (
            "Distances between sampled images (nearest), and from any image to the nearest sampled one (coverage): "
            "1 − cosine in the full space."
        )
        agreement = agreement_line(imp) if imp.agreement is not None else ""
        yield Section("How it was built", (*_counts(imp), Text.of(distances, agreement, *imp.notes)))


def _caption(row: dict[str, Any]) -> str:
    before = f"{row['before']} → " if row["before"] else ""
    change = f", corrected: {row['change']}" if row["change"] else ", corrected" if row["before"] else ""
    is_title = row["pool_image"] is None
    origin = "a title of the image" if is_title else f"from {row['pool_image']}, cosine {row['cosine']:.2f}"
    return f"{before}{row['text']} ({origin}{change})"

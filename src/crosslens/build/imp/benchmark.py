"""An IMP benchmark: how far its build has come, what it consists of, and what each stage left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from crosslens.build.folder import DecisionLog, FolderPage
from crosslens.build.imp.candidates import KEPT, NEAR_DUPLICATE, NOT_DRAWN, SMALL_CLUSTER, TITLE, Candidates
from crosslens.build.imp.leakage import CAPTION, IMAGE
from crosslens.build.imp.people import AGREE, ANNOTATE, GOOD, AnnotatorAgreement, Verdict
from crosslens.build.imp.sampling import SampleSpread
from crosslens.core import Cards, Cell, FactList, Figure, Part, PictureCard, Presented, Section, Table, Text
from crosslens.storage import Array
from crosslens.values import Card, Dataset

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

    ``rejected``  captions that people called bad, generic or unsure: negatives of the dataset's images
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
        """Name → number, for every stage that the log has come to."""
        log, images, captions = self.log, self.candidates.images, self.candidates.captions
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
            "captions to judge": self.candidates.kept.height,
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

    title = "Build of an IMP benchmark"

    def sections(self) -> Iterator[Section]:
        """The counts of all stages, then whatever is known so far."""
        parts: list[Part] = [*count_tables(self)]
        if dropped := dropped_captions(self):
            text = ", ".join(f"{reason} {count:,}" for reason, count in dropped.items())
            parts.append(FactList((("captions dropped", text),)))
        if self.agreement is not None:
            parts.append(FactList((("annotators", agreement_line(self)),)))
        if self.waiting:
            sheets = [(name, f"{judged:,} of {needed:,} verdicts") for name, (judged, needed) in self.waiting.items()]
            parts += [FactList(tuple(sheets)), Text.of(next_step(self))]
        yield Section("", tuple(parts))
        if self.mapped is not None:
            yield from self.mapped.sections()

    def as_dict(self) -> dict[str, Any]:
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
    candidates: Candidates, captions_of: Mapping[str, Sequence[str]], verdicts: Mapping[str, Verdict],
    images: Dataset, log: DecisionLog,
) -> Dataset:  # fmt: skip
    """The images in the order of sampling, each with its chosen captions."""
    ids = pl.DataFrame({"image": list(captions_of)}, schema={"image": pl.String})
    columns = images.select(captions_of).images.drop("file", strict=False)
    sampled = candidates.images.select("image", "file", "order")
    table = ids.join(columns, on="image", how="left", maintain_order="left")
    table = table.join(sampled, on="image", how="left", maintain_order="left")
    table = table.drop("file") if table["file"].null_count() == table.height else table
    by_caption = {row["caption"]: row for row in candidates.kept.iter_rows(named=True)}
    rows: list[tuple[Any, ...]] = []
    for image, captions in captions_of.items():
        for caption in captions:
            row, verdict = by_caption[caption], verdicts[caption]
            text = verdict.correction or row["text"]
            before = row["text"] if verdict.correction else None
            nearby = (row["pool_caption"], row["pool_image"], row["cosine"])
            rows.append((caption, image, text, *nearby, before, verdict.change or None, row["source"]))
    pool, with_titles = log.head["pool"]["name"], ", and titles of their own" if "titles" in log.head else ""
    verdict_entries, people = log.of("verdict"), log.head["settings"]["annotators"]
    good = [entry for entry in verdict_entries if entry["verdict"][0] == GOOD]
    origin = f" ({images.card.source})" if images.card.source else ""
    card = Card(
        source=f"built by crosslens build imp from {images.name}{origin} and captions of {pool}",
        revision=f"build {log.head['key'][:12]}",
        licence=images.card.licence,
        citation=images.card.citation,
        notes=f"diverse captions of visually similar images{with_titles}, judged by {people} people: "
        f"{len(good):,} of {len(verdict_entries):,} candidate captions were good",
    )
    return Dataset("imp", table, pl.DataFrame(rows, schema=_CAPTIONS, orient="row"), card=card)


MOST_SHOWN = 100
"""How many images the page shows: pictures are part of it."""
DISTANCES = (
    "Distances between sampled images (nearest), and from any image to the nearest sampled one (coverage): "
    "1 − cosine in the full space."
)
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
    kappa, kappa_kept = (
        "not defined" if value is None else f"{value:.3f}" for value in (agreement.kappa, agreement.kappa_kept)
    )
    return (
        f"{agreement.captions:,} captions; the same verdict on {agreement.share:.1%}, Cohen's κ {kappa} "
        f"(good against the rest: {kappa_kept}); {agreement.open:,} went to the agreement stage."
    )


def count_tables(imp: Imp) -> tuple[Table, Table]:
    """What each stage left, and the spread of the sampled images."""
    spreads: list[tuple[Cell, ...]] = [
        (spread.space, *(Figure(value, digits=4) for value in (
            spread.nearest_mean, spread.nearest_min, spread.covered_mean, spread.covered_max)))
        for spread in imp.spreads
    ]  # fmt: skip
    header = ("sampled in", "nearest, mean", "least", "coverage, mean", "most")
    return Table(("stage", ""), tuple(imp.counts.items()), "lr"), Table(header, tuple(spreads), "lrrrr")


def imp_page(imp: Imp) -> FolderPage:
    """The first pictures with their captions, where these come from, what people rejected, and how it was built."""
    dataset = imp.dataset
    assert dataset is not None
    assert imp.rejected is not None
    total = len(dataset.image_ids)
    captions: dict[str, list[str]] = {}
    for row in dataset.captions.iter_rows(named=True):
        numbered = captions.setdefault(row["image"], [])
        before = f"{row['before']} → " if row["before"] else ""
        change = f", corrected: {row['change']}" if row["change"] else ", corrected" if row["before"] else ""
        origin = "a title of the image"
        if row["pool_image"] is not None:
            origin = f"from {row['pool_image']}, cosine {row['cosine']:.2f}"
        numbered.append(f"{len(numbered) + 1}. {before}{row['text']} ({origin}{change})")
    refused = imp.rejected.select("image", "verdict", "text").rows()
    counts, image_ids = Counter(image for image, *_ in refused), dataset.image_ids[:MOST_SHOWN]
    cards = [PictureCard(image, (*captions[image], f"{counts[image]:,} rejected"), image) for image in image_ids]
    table = Table(
        ("image", "verdict", "caption"), tuple(row for row in refused if row[0] in image_ids), "lll",
        title="Captions of these images that people rejected", folded=True,
    )  # fmt: skip
    files = {image: file for image, file in imp.candidates.images.select("image", "file").iter_rows() if file}
    few = f"The first {MOST_SHOWN} of {total:,} images." if total > MOST_SHOWN else ""
    facts = Text.of(f"{total:,} images, {len(dataset.caption_ids):,} captions.", few)
    shown_images = Section("", (facts, Cards("", tuple(cards), files), table))
    agreement = agreement_line(imp) if imp.agreement is not None else ""
    built = Section("How it was built", (*count_tables(imp), Text.of(DISTANCES, agreement, *imp.notes)))
    return FolderPage("An IMP benchmark", (shown_images, built))


def readme(imp: Imp, *, copied: bool) -> FolderPage:
    """The front page of the folder."""
    head = imp.log.head
    encoder = head["encoder"]["name"] if head["encoder"] else "stored vectors"
    where = "are in images/" if copied else "stay where they are; the column file of the tables is their full path"
    built = f"The benchmark is in {DATASET}/; those that people rejected for its images are in rejected.parquet."
    facts = (
        f"Pool: {head['pool']['name']}. Encoder: {encoder}. Texts: {head['text_encoder']['name']}. "
        f"Seed: {head['settings']['seed']}. Build: {head['key'][:12]}. Image files {where}."
    )
    counts, spreads = count_tables(imp)
    dropped = Table(("reason", "captions"), tuple(dropped_captions(imp).items()))
    sections = [
        Section("", (Text.of(next_step(imp) or built), counts, Text.of(facts))),
        Section("Spread of the sampled images", (Text.of(DISTANCES), spreads)),
    ]
    if imp.agreement is not None:
        sections.append(Section("Agreement of the annotators", (Text.of(agreement_line(imp)),)))
    files = [
        (f"{DATASET}/", "images and captions, as crosslens reads them", imp.dataset is not None),
        ("rejected.parquet", "captions of these images that people rejected", imp.rejected is not None),
        ("candidates.parquet", "all captions of the clusters and titles, with the reason for dropped ones", True),
        ("sampled.parquet", "the sampled images, with cluster sizes and verdicts", True),
        ("annotate-1.csv …", "the sheets of the annotators", True),
        ("agree.csv", "what they agreed on", imp.agreement is not None and imp.agreement.open > 0),
        ("leaks.csv", "captions and images that a corpus has", imp.leaks is not None and imp.leaks.height > 0),
        ("page.html", "pictures with their captions", imp.dataset is not None),
        ("decisions.jsonl", "every decision; crosslens build imp --repeat does the same again", True),
    ]
    sections += [
        Section("Captions dropped before annotation", (dropped if dropped.rows else Text.of("None."),)),
        Section("Files", (FactList(tuple((name, content) for name, content, there in files if there)),)),
        Section("Notes", (Text.of(*(imp.notes or ("None.",))),)),
    ]
    return FolderPage(f"An IMP benchmark from {head['images']['name']}", tuple(sections))


def build_notes(imp: Imp) -> tuple[str, ...]:
    """What a person should know about the build."""
    images, settings = imp.candidates.images, imp.log.head["settings"]
    notes = list(imp.notes)
    small = images.filter(verdict=SMALL_CLUSTER).height
    if small:
        least = settings["cluster_sizes"][0]
        notes.append(f"{small:,} of {images.height:,} sampled images have fewer than {least:,} pool images in the band")
    few = images.height - small - imp.counts["images with enough candidates"]
    if few:
        notes.append(f"{few:,} sampled images have fewer than {settings['captions']} candidate captions")
    if "titles" in imp.log.head:
        total = imp.log.head["titles"]["captions"]
        titles = imp.candidates.captions.filter(source=TITLE)
        to_judge = imp.candidates.kept.filter(source=TITLE).height
        notes.append(
            f"{total:,} titles: {total - titles.height:,} of images that were not sampled, "
            f"{titles.height - to_judge:,} dropped, {to_judge:,} to judge"
        )
    same = images.filter(images["nearest"] >= 0.98).height
    if same:
        notes.append(f"{same:,} sampled images have a cosine of 0.98 or more with a pool image: maybe the same picture")
    wordless = [entry for entry in imp.log.of("selected") if "verdict" in entry]
    if wordless:
        notes.append(f"{len(wordless):,} images have fewer than {settings['captions']} good captions and are left out")
    if imp.leaks is not None and imp.leaks.height:
        kinds = Counter(imp.leaks["kind"])
        leaks = " and ".join(f"{count:,} {kind}{'' if count == 1 else 's'}" for kind, count in sorted(kinds.items()))
        treatment = "left out" if imp.log.head["selection"]["drop_leaks"] else "kept (--drop-leaks leaves them out)"
        notes.append(f"a corpus has {leaks}, listed in leaks.csv: {treatment}")
    return tuple(notes)

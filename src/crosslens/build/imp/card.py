"""The front page of a benchmark's folder: counts of every stage, what is in which file, and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from crosslens.build.imp.benchmark import DATASET, Imp
from crosslens.build.imp.candidates import SMALL_CLUSTER, TITLE
from crosslens.build.imp.sections import agreement_line, dropped_captions, next_step


def readme(imp: Imp, *, copied: bool) -> str:
    """The page as Markdown."""
    head = imp.log.head
    encoder = head["encoder"]["name"] if head["encoder"] else "stored vectors"
    where = "are in `images/`" if copied else "stay where they are; `file` in the tables is their full path"
    parts = [
        f"# An IMP benchmark from {head['images']['name']}",
        next_step(imp) or f"The benchmark is in `{DATASET}/`; captions that people rejected are in `rejected.parquet`.",
        _table(("stage", "number"), [(name, f"{count:,}") for name, count in imp.counts.items()]),
        f"Pool: {head['pool']['name']}. Encoder: {encoder}. Texts: {head['text_encoder']['name']}. "
        f"Seed: {head['settings']['seed']}. Build: {head['key'][:12]}. Image files {where}.",
        "## Spread of the sampled images",
        "Distances are 1 − cosine, in the full space.",
        _table(
            ("sampled in", "to the nearest sampled image", "the least", "any image to the nearest sampled one",
             "the most"),
            [(spread.space, *(f"{value:.4f}" for value in list(vars(spread).values())[1:])) for spread in imp.spreads],
        ),
    ]  # fmt: skip
    if imp.agreement is not None:
        parts += ["## Agreement of the annotators", agreement_line(imp)]
    dropped = [(reason, f"{count:,}") for reason, count in dropped_captions(imp).items()]
    parts += ["## Captions dropped before annotation", _table(("reason", "captions"), dropped) if dropped else "None."]
    parts += ["## Files", _files(imp), "## Notes", "\n".join(f"- {note}" for note in imp.notes) or "- none"]
    return "\n\n".join(parts) + "\n"


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
        given = imp.log.head["titles"]["captions"]
        own = imp.candidates.captions.filter(source=TITLE)
        judged = imp.candidates.kept.filter(source=TITLE).height
        notes.append(
            f"{given:,} titles: {given - own.height:,} of images that were not sampled, {own.height - judged:,} "
            f"dropped, {judged:,} to judge"
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
        what = "left out" if imp.log.head["selection"]["drop_leaks"] else "kept (--drop-leaks leaves them out)"
        notes.append(f"a corpus has {leaks}, listed in leaks.csv: {what}")
    return tuple(notes)


def _files(imp: Imp) -> str:
    files = [
        (f"`{DATASET}/`", "images and captions, as crosslens reads them", imp.dataset is not None),
        ("`rejected.parquet`", "captions that people called bad, generic or unsure", imp.rejected is not None),
        ("`candidates.parquet`", "all captions of the clusters and titles, with the reason for dropped ones", True),
        ("`sampled.parquet`", "the sampled images, with cluster sizes and verdicts", True),
        ("`annotate-1.csv` …", "the sheets of the annotators", True),
        ("`agree.csv`", "what they agreed on", imp.agreement is not None and imp.agreement.open > 0),
        ("`leaks.csv`", "captions and images that a corpus has", imp.leaks is not None and imp.leaks.height > 0),
        ("`page.html`", "pictures with their captions", imp.dataset is not None),
        ("`decisions.jsonl`", "every decision; `crosslens build imp --repeat` does the same again", True),
    ]
    return "\n".join(f"- {name}: {what}" for name, what, there in files if there)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)]
    return "\n".join(lines)

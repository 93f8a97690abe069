"""How labels to review are shown: whose the failures are, why labels are suspect, and the first of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from crosslens.analyze.label_quality.signals import REASONS, VERDICTS
from crosslens.core import Cards, FactList, Figure, Part, PictureCard, Section, Table, Text
from crosslens.metrics import format_count

if TYPE_CHECKING:
    from crosslens.analyze.label_quality.review import LabelQuality, ReviewedLabels

_SHOWN, _ON_PAGES = 10, 60


def label_sections(result: LabelQuality) -> Iterator[Section]:
    """What the list has, then its first labels."""
    parts: list[Part] = [Text.of(f"{result.dataset.name}: {format_count(result.suspects, 'suspect label')} to review")]
    if result.runs.height:
        parts.append(_failure_table(result))
    if reasons := result.reasons:
        rows = ((f"{name}: {reasons[name]:,}", f"{words}.") for name, words in REASONS.items() if name in reasons)
        parts.append(FactList(tuple(rows)))
    shown = _SHOWN if result.shown is None else result.shown
    first = result.table.head(min(result.suspects, max(shown, _ON_PAGES)))
    if first.height:
        cards = tuple(map(_card, first.iter_rows(named=True)))
        parts.append(Cards("The first:", cards, result.pictures, most=shown))
    if missed := len(result) - result.suspects:
        parts.append(Text.of(
            f"Last in the list, and not suspect: {format_count(missed, 'caption')} that every run ranks far down, or "
            "below an image that has all that the caption names."
        ))  # fmt: skip
    parts.append(Text.of(*(f"note: {note}" for note in result.notes), note=True))
    yield Section("", tuple(parts))


def reviewed_sections(result: ReviewedLabels) -> Iterator[Section]:
    """What a review changed, in a sentence."""
    counts = [f"{result.counts[verdict]:,} {verdict}" for verdict in (*VERDICTS, "undecided") if result.counts[verdict]]
    dataset = result.dataset
    yield Section("", (Text.of(
        f"{', '.join(counts) or 'no verdicts'}: {format_count(len(dataset.image_ids), 'image')}, "
        f"{format_count(len(dataset.caption_ids), 'caption')}, "
        f"{format_count(len(result.relevance.items), 'relevant pair')}"
    ),))  # fmt: skip


def _failure_table(result: LabelQuality) -> Table:
    """Of each run, how many failures are annotation problems, and how many remain the model's."""
    counted = ("failures", "words", "same_caption", "same_picture", "annotation")
    rows = []
    for row in result.runs.iter_rows(named=True):
        share = f"({100 * row['model'] / row['failures']:.1f} %)" if row["failures"] else ""
        model = Figure(row["model"] if row["failures"] else None, digits=0, mark=share)
        rows.append((row["run"], *(row[name] for name in counted), model))
    header = ("run", *(name.replace("_", " ") for name in counted), "model")
    about = (
        f"words: less than {result.settings['threshold']:.3g} of what the query names is named elsewhere; same "
        "caption, same picture: the first place has it too; annotation: any of these; model: what remains."
    )
    return Table(header, tuple(rows), "l" + "r" * 6, notes=(about,))


def _card(row: dict[str, Any]) -> PictureCard:
    label = f"image {row['image']}"
    label += f", caption {row['caption']}" if row["caption"] is not None else f" and image {row['suggested_image']}"
    text = (f"“{' '.join(row['text'].split())}”",) if row["text"] else ()
    evidence = (row["evidence"],) if row["evidence"] else ()
    title = f"{row['place']}. {label}: {row['reason']} → {row['proposal']}"
    return PictureCard(title, (*text, *evidence), image=row["image"])

"""What a person should know about a benchmark, read off its decisions: the same when it is built and ever after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from crosslens.build.candidates import Candidates
from crosslens.build.descriptions import CANDIDATE
from crosslens.build.log import DecisionLog
from crosslens.core.dataset import Dataset

_MANY = 10  # a source is to blame where at least every tenth original finds no confusable in it


def notes_of(candidates: Candidates, log: DecisionLog, versions: Mapping[str, Dataset]) -> tuple[str, ...]:
    """The notes on the candidates, and those on what was made of them."""
    notes = [*candidates.notes]
    if log.head["generator"] is not None and candidates.views.read is None:
        notes.append("nothing encodes new descriptions (--text-encoder): those outside the band were dropped")
    notes += [*_on_originals(candidates, log), *_on_confusables(candidates, log)]
    written = Counter(versions["v1"].captions["origin"])
    for origin, count in sorted(written.items()):
        if origin != CANDIDATE:
            notes.append(f"{count:,} of {sum(written.values()):,} descriptions were written by {origin}: read some")
    return tuple(notes)


def _on_originals(candidates: Candidates, log: DecisionLog) -> list[str]:
    """Where there are fewer than asked for: what became of every other image."""
    settings, there = candidates.settings, len(candidates.ids)
    asked = settings.originals or max(1, there // 3)
    verdicts = Counter(one["verdict"] for one in log.of("original"))
    kept, dropped, twins = verdicts["kept"], verdicts["dropped"], len(log.of("duplicate"))
    if kept >= asked:
        return []
    why = [f"there are {there:,} candidates"] if there < asked else []
    if dropped:
        why.append(f"{_images(dropped)} had fewer than {settings.descriptions} descriptions in the band")
    if twins:
        same = "was the same picture as another" if twins == 1 else "were the same picture as others"
        why.append(f"{_images(twins)} {same} (--duplicate-cosine, --duplicate-bits)")
    if untried := there - kept - dropped - twins:
        why.append(f"{_images(untried)} {'is' if untried == 1 else 'are'} of tasks that have their share already")
    return [f"{kept:,} of {asked:,} originals: {'; '.join(why)}"]


def _on_confusables(candidates: Candidates, log: DecisionLog) -> list[str]:
    notes = []
    sought = log.of("confusable")
    alone = sum(one["confusable"] is None for one in sought)
    wordless = sum(one["verdict"] == "dropped" for one in log.of("described"))
    if alone:
        why = f"{alone:,} of {len(sought):,} originals have no confusable: their source has no image left"
        notes.append(why + (_wider_source(candidates) if alone * _MANY >= len(sought) else ""))
    if wordless:
        why = "the nearest image has too few descriptions"
        notes.append(f"{wordless:,} of {len(sought):,} originals have no confusable: {why}")
    return notes


def _wider_source(candidates: Candidates) -> str:
    """Advice where the sources are finer than the tasks."""
    settings = candidates.settings
    if settings.source_column == settings.task_column or len(set(candidates.sources)) <= len(set(candidates.tasks)):
        return ""
    if settings.task_column not in candidates.views.dataset.images.columns:
        return ""
    return f"; --source-column {settings.task_column} takes confusables from the whole task"


def _images(count: int) -> str:
    return f"{count:,} image{'' if count == 1 else 's'}"

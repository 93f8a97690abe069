"""A RECOS benchmark: what a build gives, how it is shown and explained, and notes derived from its decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslens.analyze import Discriminability, entropy_band, entropy_histogram
from crosslens.build.candidates import CandidatePool
from crosslens.build.descriptions import CANDIDATE, KEPT, SHARP, UNGRAMMATICAL, VAGUE
from crosslens.build.folder import DecisionLog, FolderPage
from crosslens.build.settings import RecosSettings
from crosslens.build.verification import BAD, CORRECTION, OK, SHEET, VerificationSheet
from crosslens.core import Cell, FactList, Presented, Section, Table, Text
from crosslens.values import Dataset


@dataclass(frozen=True, eq=False)
class Recos(Presented):
    """A finished benchmark: its three versions, the check of the candidates' descriptions, how many originals each
    task should have, every decision, and notes.
    """

    versions: Mapping[str, Dataset]
    check: Discriminability
    quotas: Mapping[str, int]
    settings: RecosSettings
    log: DecisionLog
    notes: tuple[str, ...]
    sheet: VerificationSheet
    """What people said about descriptions; empty where nobody did."""
    already: bool = False
    """True where the output folder contained it before."""
    output: Path | None = None
    """Its folder."""

    @property
    def title(self) -> str:
        return f"A RECOS benchmark from {self.log.head['candidates']['name']}"

    def sections(self) -> Iterator[Section]:
        """The check of the candidates' descriptions, the sizes of the versions, and the originals of each task."""
        yield check_section(self.check, self.settings, self.log)
        sizes = tuple(
            (str(name if self.output is None else self.output / name), dataset.images.height, dataset.captions.height)
            for name, dataset in self.versions.items()
        )
        quotas = self.settings.quota is not None
        originals: tuple[tuple[Cell, ...], ...] = tuple(
            (task, count["originals"], *((count["quota"],) if quotas else ()))
            for task, count in self.tasks.items()
            if quotas or count["originals"]
        )
        header = ("task", "originals", *(("quota",) if quotas else ()))
        versions = Table(("version", "images", "descriptions"), sizes, "lrr")
        yield Section("", (versions, Table(header, originals, title="originals by task")))

    def as_dict(self) -> dict[str, Any]:
        return {
            "output": None if self.output is None else str(self.output),
            "key": self.log.head["key"],
            "temperature": self.check.temperature,
            "descriptions": verdict_counts(self.log),
            "tasks": self.tasks,
            "grammar": grammar_counts(self.log) if "grammar" in self.log.head else None,
            "verified": verification_counts(self.log, self.versions),
            "versions": {
                name: {
                    "images": len(dataset.image_ids),
                    "captions": len(dataset.caption_ids),
                    "fingerprint": dataset.fingerprint,
                }
                for name, dataset in self.versions.items()
            },
            "notes": list(self.notes),
        }

    @property
    def tasks(self) -> dict[str, dict[str, int]]:
        counts = Counter(self.versions["v0"].images["task"])
        return {task: {"quota": quota, "originals": counts[task]} for task, quota in sorted(self.quotas.items())}


def verdict_counts(log: DecisionLog) -> dict[str, int]:
    """How many candidate descriptions lie in the band, above it and below it."""
    counts = Counter(entry["verdict"] for entry in log.of("check"))
    return {verdict: counts[verdict] for verdict in (KEPT, VAGUE, SHARP)}


def grammar_counts(log: DecisionLog) -> dict[str, int]:
    """How many texts the generator wrote, how many of them are ungrammatical, and how often which rule was broken."""
    written = [entry for step in ("rewritten", "likened") for entry in log.of(step) if entry["origin"] != CANDIDATE]
    failed = [entry for entry in written if entry["verdict"] == UNGRAMMATICAL]
    rules = Counter(rule for entry in failed for rule in {text.partition(":")[0] for text in entry["problems"]})
    return {"written": len(written), UNGRAMMATICAL: len(failed), **dict(sorted(rules.items()))}


def verification_counts(log: DecisionLog, versions: Mapping[str, Dataset]) -> dict[str, int]:
    """How many descriptions people confirmed, rejected and corrected, and how many of v1 nobody has looked at."""
    verdicts = {entry["caption"]: entry["verdict"] for entry in log.of("verified")}
    counts = Counter(verdicts.values())
    unread = sum(not verdicts.get(caption) for caption in versions["v1"].caption_ids)
    return {**{verdict: counts[verdict] for verdict in (OK, BAD, CORRECTION)}, "unread": unread}


def check_section(check: Discriminability, settings: RecosSettings, log: DecisionLog) -> Section:
    """The histogram of dis with the band, and how many descriptions lie where."""
    low, high = entropy_band(settings.k, settings.eta)
    counts = verdict_counts(log)
    total = max(sum(counts.values()), 1)
    shares = ", ".join(f"{count:,} {name} ({count / total:.0%})" for name, count in counts.items())
    against = "against the selected images, " if settings.check_gallery == "selected" else ""
    title = (
        f"dis(t) of {len(check.values):,} descriptions; k = {settings.k}, temperature {check.temperature:.4g}, "
        f"band {low:.2f} to {high:.2f} (·)"
    )
    label = f"shaded: kept at η = {settings.eta:g}"
    histogram = entropy_histogram(check.values, settings.k, settings.eta, title=title, about=label, noun="descriptions")
    return Section("", (histogram, Text.of(against + shares)))


def version_page(dataset: Dataset) -> FolderPage:
    """The card of one version."""
    card = dataset.card
    facts = {"Source": card.source, "Revision": card.revision, "Licence": card.licence or "not stated"}
    facts |= {"Citation": card.citation} if card.citation else {}
    sizes = f"{dataset.images.height:,} images, {dataset.captions.height:,} descriptions."
    columns = {
        "Columns of the images": "task, source, role (original, confusable, similar), original (which it was "
        "chosen for).",
        "Columns of the captions": "origin (candidate, or the generator that wrote it), dis.",
    }
    first = Text.of(f"{card.notes[:1].upper()}{card.notes[1:]}.", sizes)
    parts = (first, FactList(tuple(facts.items())), FactList(tuple(columns.items())))
    return FolderPage(dataset.name, (Section("", parts),))


def build_page(recos: Recos, versions: Mapping[str, Dataset], *, copied: bool) -> FolderPage:
    """The front page of the folder."""
    head = recos.log.head
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (f"{name}/", dataset.images.height, dataset.captions.height, dataset.card.notes)
        for name, dataset in versions.items()
    )
    where = "are in images/." if copied else "stay where they are; the column file of the tables is their full path."
    generator = head["generator"]["name"] if head["generator"] else "none"
    facts = (
        f"Encoder: {head['encoders']['encoder']['name']}. Generator: {generator}. Seed: {recos.settings.seed}. "
        f"Build: {head['key'][:12]}. Image files {where}"
    )
    files = {
        "decisions.jsonl": "every decision with its number; crosslens build recos --repeat does the same again",
        "regenerate.csv": "the candidates' descriptions outside the band",
        f"{SHEET}": "every description, for people to write ok, bad or a correction beside it (--verified)",
    }
    first = (Table(("folder", "images", "descriptions", ""), rows), Text.of(facts), FactList(tuple(files.items())))
    check = check_section(recos.check, recos.settings, recos.log)
    return FolderPage(
        recos.title,
        (
            Section("", first),
            Section("The candidates' descriptions", check.parts),
            Section("Notes", (Text.of(*(recos.notes or ("None.",))),)),
        ),
    )


def build_notes(candidates: CandidatePool, log: DecisionLog, versions: Mapping[str, Dataset]) -> tuple[str, ...]:
    """The notes on the candidates, and those on what was made of them."""
    notes = [*candidates.notes]
    if log.head["generator"] is not None and candidates.encoded.encode_texts is None:
        notes.append("nothing encodes new descriptions (--text-encoder): those outside the band were dropped")
    notes += _on_originals(candidates, log)
    sought = {entry["image"]: entry["confusable"] for entry in log.of("confusable")}  # the last one counts
    short = {entry["of"] for entry in log.of("described") if entry["verdict"] == "dropped"}
    without = {original for original, confusable in sought.items() if confusable is None}
    if alone := len(without - short):
        notes.append(f"{alone:,} of {len(sought):,} originals have no confusable: their source has no image left")
        task, source = candidates.settings.task_column, candidates.settings.source_column
        is_finer = task != source and len(set(candidates.sources)) > len(set(candidates.tasks))
        # A source is to blame where at least every tenth original finds no confusable in it.
        if alone * 10 >= len(sought) and is_finer and task in candidates.encoded.dataset.images.columns:
            notes[-1] += f"; --source-column {task} takes confusables from the whole task"
    if wordless := len(without & short):
        why = "the nearest images have too few descriptions"
        notes.append(f"{wordless:,} of {len(sought):,} originals have no confusable: {why}")
    if "verified" in log.head:
        counts = verification_counts(log, versions)
        notes.append(
            f"verification: {counts[OK]:,} confirmed, {counts[BAD]:,} rejected, {counts[CORRECTION]:,} corrected; "
            f"{counts['unread']:,} of {len(versions['v1'].caption_ids):,} descriptions are not verified"
        )
    if "grammar" in log.head:
        counts = grammar_counts(log)
        rules = ", ".join(f"{rule} {count:,}" for rule, count in list(counts.items())[2:])
        failed = f"{counts[UNGRAMMATICAL]:,} of {counts['written']:,} generated descriptions are ungrammatical"
        notes.append(f"{failed}, and not used" + (f" ({rules})" if rules else ""))
    written = Counter(versions["v1"].captions["origin"])
    for origin, count in sorted(written.items()):
        if origin not in (CANDIDATE, CORRECTION):
            notes.append(f"{count:,} of {sum(written.values()):,} descriptions were written by {origin}: read some")
    return tuple(notes)


def _on_originals(candidates: CandidatePool, log: DecisionLog) -> list[str]:
    """Where there are fewer than requested, in all or of a task with a quota: what became of the other images."""
    settings, ids = candidates.settings, candidates.ids
    by_task = settings.quota is not None
    group_of = dict(zip(ids, candidates.tasks, strict=True)) if by_task else dict.fromkeys(ids, "")
    total = Counter(group_of.values())
    tried = {entry["image"]: entry["verdict"] for entry in log.of("original")}
    verdicts = Counter((group_of[image], verdict) for image, verdict in tried.items())
    copies = Counter(group_of[entry["image"]] for entry in log.of("duplicate"))
    described = (entry["image"] for entry in log.of("described") if entry["verdict"] == "kept")
    confusables = Counter(group_of[image] for image in described if image not in tried)
    notes = []
    for group, requested in (
        candidates.quotas if by_task else {"": settings.originals or max(1, len(ids) // 3)}
    ).items():
        kept, dropped = verdicts[group, "kept"], verdicts[group, "dropped"]
        same, reserved = copies[group], confusables[group]
        if kept >= requested:
            continue
        why = []
        if by_task or total[group] < requested:
            why.append(f"there are {total[group]:,} candidates" if total[group] else "there is no such task")
        if dropped:
            why.append(f"{_images(dropped)} had fewer than {settings.descriptions} descriptions in the band")
        if same:
            twin = "was the same picture as another" if same == 1 else "were the same picture as others"
            why.append(f"{_images(same)} {twin} (--duplicate-cosine, --duplicate-bits)")
        if reserved:
            why.append(f"{_images(reserved)} {'is a confusable' if reserved == 1 else 'are confusables'} of others")
        if not by_task and (untried := total[group] - kept - dropped - same - reserved):
            why.append(f"{_images(untried)} {'is' if untried == 1 else 'are'} of tasks that have their share already")
        label = f"task {group}: " if by_task else ""
        notes.append(f"{label}{kept:,} of {requested:,} originals: {'; '.join(why)}")
    if by_task and (left_out := [task for task in sorted(total) if not candidates.quotas[task]]):
        notes.append(f"no quota, and therefore no originals: {', '.join(left_out)}")
    return notes


def _images(count: int) -> str:
    return f"{count:,} image{'' if count == 1 else 's'}"

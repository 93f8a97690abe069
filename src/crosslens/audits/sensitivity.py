"""What an audit could have noticed: each defect planted into its own data, at several strengths, and looked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from crosslens.analyze import ANALYSES, Subject
from crosslens.audits.comparing import COMPARISON, compare_with_planted
from crosslens.audits.conclusions import Observed, conclude
from crosslens.audits.results import SENSITIVITY_FILE, Audit, AuditFolder, complete, load_audit
from crosslens.audits.sources import subject_of_run
from crosslens.audits.stage import RUN, all_stages
from crosslens.core import (
    FINDING_KINDS,
    Entry,
    Finding,
    MissingExtraError,
    Presented,
    Section,
    Table,
    Text,
    UnknownNameError,
    UsageError,
    argument,
)
from crosslens.encode import EncodeOptions
from crosslens.engine import Progress, shown_progress, stage
from crosslens.metrics import dataset_name
from crosslens.storage import TrustCode, fingerprint, hold_output, json_form, offline, random_stream, trusting

_FEWEST_FOR_WORDS = 10
"""Trials that "always" and "never" take."""
FIRST_FIVE = 5
"""What a reader of an audit sees first."""


@dataclass(frozen=True)
class NoticedDefect:
    """How often a defect of one strength was noticed: said at all, and among the first five findings."""

    kind: str
    strength: float
    words: str
    planted: int
    said: int
    first: int


@dataclass(frozen=True)
class Sensitivity(Presented):
    """Of every defect and strength, how often an audit of this run's data would have noticed it."""

    run: str
    rows: tuple[NoticedDefect, ...]
    left_out: Mapping[str, str]
    """Kinds that could not be planted, and why."""

    @property
    def title(self) -> str:
        return f"What this audit could have noticed: {self.run}"

    def sections(self) -> Iterator[Section]:
        rows = [(row.words, _noticed_words(row), f"{row.first} of {row.planted}") for row in self.rows]
        note = (
            "Each defect was planted into the data of this audit, with another seed each time, and looked for as the "
            "audit does, with the same corrections; first five: among the first five findings. What was not noticed "
            "here may be there without being said."
        )
        left_out = [f"{kind}: {reason}." for kind, reason in self.left_out.items()]
        table = Table(("planted", "noticed", "first five"), rows, "llr", notes=(note, *left_out))
        yield Section(self.title, (table,) if rows else (Text.of(note, *left_out),))

    def as_dict(self) -> dict[str, Any]:
        return json_form({"run": self.run, "planted": self.rows, "left_out": self.left_out})

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Sensitivity:
        """A sensitivity that was stored."""
        return cls(content["run"], tuple(NoticedDefect(**row) for row in content["planted"]), content["left_out"])


class StoredSensitivity(NamedTuple):
    """What was measured of a run, and the key of what it depends on."""

    key: str
    sensitivity: Sensitivity


def stored_sensitivities(folder: AuditFolder) -> dict[str, StoredSensitivity]:
    """What was measured of an audit, by run."""
    file = folder.path / SENSITIVITY_FILE
    with complete(file, fix="remove it, and calibrate again"):
        stored = folder.sensitivities().items()
        return {name: StoredSensitivity(row["key"], Sensitivity.from_dict(row)) for name, row in stored}


def _noticed_words(row: NoticedDefect) -> str:
    share, count = row.said / row.planted, f"{row.said} of {row.planted}"
    if row.planted < _FEWEST_FOR_WORDS:
        return count
    word = "always" if share == 1 else "never" if share == 0 else "mostly" if share >= 0.8 else "sometimes"
    return f"{word} ({count})"


def calibrate(
    audit: Audit | str | Path,
    *,
    run: str | None = None,
    only: Iterable[str] = (),
    repeats: int = 10,
    seed: int = 0,
    encoding: EncodeOptions | None = None,
    progress: Progress | None = None,
    trust_code: TrustCode | None = None,
    allow_hosts: Iterable[str] = (),
) -> Sensitivity:
    """Plant every defect into the data of an audit, and count how often the audit would have noticed it.

    What an interrupted call has done is kept in the audit's folder and not repeated.

    Args:
        audit: An audit, or its folder.
        run: The name of one of the audit's runs; by default the first.
        only: Kinds of findings; by default all.
        repeats: How often each strength is planted.
        seed: Seed of what is planted.
        encoding: How the model is run.
        progress: Told how much is done.
        trust_code: Decides whether code of files that are named may run.
        allow_hosts: Hosts that addresses in files may name.
    """
    progress, encoding = shown_progress(progress), encoding or EncodeOptions()
    if not isinstance(audit, Audit):
        audit = load_audit(audit)
    names = list(audit.runs)
    name = run or next(iter(names), None)
    if name is None:
        raise UsageError("an audit without runs", fix="run the same audit again")
    if name not in names:
        raise UnknownNameError("run", name, names)
    kinds = [FINDING_KINDS[kind] for kind in only] or list(FINDING_KINDS)
    if repeats < 1:
        raise UsageError(f"{argument('repeats', repeats)} plants nothing", fix="plant each strength at least once")
    folder = AuditFolder(audit.folder)
    with offline(encoding.offline), hold_output(audit.folder), trusting(trust_code, allow_hosts):
        subject = subject_of_run(audit.runs[name], encoding, dataset=audit.datasets.get(name))
        dataset = dataset_name(audit.runs[name])
        others = [
            entry for result in audit.results for entry in result.observed()
            if result.model == name or (not result.model and result.dataset in ("", dataset))
        ]  # fmt: skip
        key = fingerprint("sensitivity", {"run": audit.runs[name].fingerprint, "repeats": repeats, "seed": seed})
        stored = stored_sensitivities(folder).get(name)
        done = stored.sensitivity if stored is not None and stored.key == key else Sensitivity(name, (), {})
        rows, left_out = {(row.kind, row.strength): row for row in done.rows}, dict(done.left_out)
        cases = [(entry, strength) for entry in kinds for strength in entry.details["strengths"]]
        with stage(progress, "planting", len(cases) * repeats) as bar:
            for entry, strength in cases:
                if (entry.name, strength) not in rows and entry.name not in left_out:
                    noticed = _noticed(entry, strength, subject, others, (name, dataset), repeats, seed, bar)
                    if isinstance(noticed, str):
                        left_out[entry.name] = noticed
                    else:
                        rows[entry.name, strength] = noticed
                    reached = Sensitivity(name, tuple(rows.values()), left_out)
                    folder.keep_sensitivity(name, key, reached.as_dict())
                else:
                    bar.advance(repeats)
    kind_names = {entry.name for entry in kinds}
    return Sensitivity(
        name,
        tuple(row for row in rows.values() if row.kind in kind_names),
        {kind: reason for kind, reason in left_out.items() if kind in kind_names},
    )


def _noticed(
    entry: Entry[Any], strength: float, subject: Subject, others: list[Observed], names: tuple[str, str],
    repeats: int, seed: int, progress: Progress,
) -> NoticedDefect | str:  # fmt: skip
    """How often the defect was noticed; or why it cannot be planted."""
    stage_name, count, first = entry.details["stage"], 0, 0
    rest = [observed for observed in others if observed.stage != stage_name]
    name, dataset = names
    model = name if any(stage.name == stage_name and stage.about == RUN for stage in all_stages()) else ""
    for repeat in range(repeats):
        stream = random_stream(seed, f"calibrate-{entry.name}-{strength:g}-{repeat}")
        planted = entry.value(subject, strength, stream)
        if not planted.ids:
            return "this data has nothing to plant it into"
        with_defect = replace(planted.subject, seed=repeat)
        try:
            compares = stage_name == COMPARISON
            result = compare_with_planted(subject, with_defect) if compares else ANALYSES[stage_name].value(with_defect)
        except MissingExtraError as error:  # without it, the audit does not look either
            return f"needs {error.fix}"
        observed = [Observed(observation, stage_name, model, dataset) for observation in result.findings()]
        concluded = conclude([*rest, *observed])
        places = [place for place, finding in enumerate(concluded) if _is_of(finding, entry.name, planted.ids)]
        count += bool(places)
        first += bool(places) and places[0] < FIRST_FIVE
        progress.advance()
    words = entry.details["strength_words"].format(strength).replace("%", " %")
    return NoticedDefect(entry.name, strength, words, repeats, count, first)


def _is_of(finding: Finding, kind: str, planted: Collection[str]) -> bool:
    """Whether a finding is about what was planted: of the kind, and at least half of its evidence names a planted id.

    The data may have had the same fault elsewhere before.
    """
    if finding.kind != kind:
        return False
    id_sets = [{*entry.get("items", ()), entry.get("query"), entry.get("item")} for entry in finding.evidence]
    return 2 * sum(not ids.isdisjoint(planted) for ids in id_sets) >= len(id_sets)

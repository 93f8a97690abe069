"""Judgements of captions as the sheets that ``build imp`` reads: verdicts, corrections, what the owner decided."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crosslens.build import VERDICTS, Verdict, candidate_captions, write_verdicts
from crosslens.core import UsageError, argument
from crosslens.web.judging.options import ANSWERS
from crosslens.web.judging.results.stored import ProjectAnswers
from crosslens.web.judging.results.table import PERSON, REAL, judged_by

_GOOD, _BAD = "good", "bad"


def export_sheets(
    answers: ProjectAnswers, folder: str | Path, *, source: str = PERSON, overwrite: bool = False
) -> list[Path]:
    """Write the judgements of a project into the folder of an IMP build; returns the sheets."""
    known = set(candidate_captions(folder)["caption"])
    captions = {item: caption for item, (_, caption) in answers.pairs.items() if caption in known}
    if not captions:
        raise UsageError(
            f"no item of the project is a candidate of the benchmark in {folder}",
            fix=f"import its candidates first, or pass {argument('form', ANSWERS)}",
        )
    texts = {item: answers.items[item].content.texts[0].text for item in captions}
    said: dict[str, dict[str, Verdict]] = {}
    for row in judged_by(answers.table, source, (REAL,)).iter_rows(named=True):
        if row["item"] in captions:
            verdict = as_imp_verdict(row["labels"], row["text"] or "", texts[row["item"]])
            said.setdefault(captions[row["item"]], {})[row["account"]] = verdict
    decided = {
        captions[item]: as_imp_verdict(answer.labels, answer.text, texts[item])
        for item, answer in answers.adjudicated.items()
        if item in captions and source == PERSON
    }
    return write_verdicts(folder, said, decided, overwrite=overwrite)


def as_imp_verdict(labels: Sequence[str], correction: str, text: str) -> Verdict:
    """An answer as a verdict. A bad caption with a correction is, for the benchmark, a good one that was corrected."""
    label = labels[0] if len(labels) == 1 else ""
    if label not in VERDICTS:
        raise UsageError(
            f"the answer {', '.join(labels)!r} is no verdict of an IMP benchmark",
            fix=f"export a project whose labels are {', '.join(VERDICTS)}",
        )
    corrected = correction.strip() if correction.strip() != text.strip() else ""
    if corrected and label in (_GOOD, _BAD):
        return Verdict(_GOOD, corrected)
    return Verdict(label)

"""The threshold of every model of a panel: computed on a calibration set, read from a file, or given as a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crosslens.analyze import Calibration, calibrate
from crosslens.core import Dataset, Progress, UsageError, argument
from crosslens.pipeline.panel.scores import ModelScores, parse_source, read_panel

SELF = "self"
"""The calibration set is the dataset that is evaluated."""


def calibrate_panel(
    panel: Sequence[ModelScores],
    calibration: Sequence[str] = (),
    *,
    known: Mapping[str, Calibration] | None = None,
    dataset: Dataset | None = None,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **reading: Any,
) -> dict[str, Calibration]:
    """A threshold for every model of a panel.

    ``calibration`` are the same models' runs over a calibration set, matched by the name of the folder or the model, or
    ``NAME=SOURCE``, where a source is a run folder, a score matrix over ``dataset``, or a number; ``self`` takes the
    panel's own dataset. ``known`` are thresholds from a file, for models that ``calibration`` does not name.
    ``settings`` are those of :func:`crosslens.analyze.calibrate`, ``reading`` the keywords of :func:`read_panel`.
    """
    sources, numbers, own = _split(calibration, panel)
    thresholds = {member.name: (known or {})[member.name] for member in panel if member.name in (known or {})}
    thresholds |= {name: Calibration(value) for name, value in numbers.items()}
    keywords: dict[str, Any] = {**(settings or {}), "progress": progress}
    if sources:
        for scores in read_panel(sources, dataset, progress=progress, **reading):
            name = _member(scores, panel)
            thresholds[name] = calibrate(scores.dataset, scores.scores, model=name, **keywords)
    for member in panel:
        if own and member.name not in thresholds:
            thresholds[member.name] = calibrate(member.dataset, member.scores, model=member.name, **keywords)
    missing = [member.name for member in panel if member.name not in thresholds]
    if missing:
        fix = (
            f"name a run of it over a calibration set, a number ({argument('calibration', f'{missing[0]}=0.25')}), "
            f"or {argument('calibration', SELF)}"
        )
        raise UsageError(f"no threshold for {', '.join(missing)}", fix=fix, option="calibration")
    return {member.name: thresholds[member.name] for member in panel}


def _split(words: Sequence[str], panel: Sequence[ModelScores]) -> tuple[list[str], dict[str, float], bool]:
    """The sources to read, the thresholds that are given as numbers, and whether ``self`` is among the words."""
    numbers: dict[str, float] = {}
    sources = []
    for word in words:
        name, source = parse_source(word)
        value = _number(source)
        if value is not None and name is None:
            fix = f"write {argument('calibration', f'{panel[0].name}={word}')}"
            raise UsageError(f"the threshold {word} does not say whose it is", fix=fix, option="calibration")
        if value is not None and name is not None:
            _require_member(name, panel)
            numbers[name] = value
        elif word != SELF:
            if name is not None:
                _require_member(name, panel)
            sources.append(word)
    return sources, numbers, SELF in words


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _require_member(name: str, panel: Sequence[ModelScores]) -> None:
    names = [member.name for member in panel]
    if name not in names:
        fix = f"use the name of one: {', '.join(names)}"
        raise UsageError(f"no model of the panel is called {name!r}", fix=fix, option="calibration")


def _member(scores: ModelScores, panel: Sequence[ModelScores]) -> str:
    """The name of the panel's model that a calibration run belongs to: of the same name, or else the same model."""
    if scores.name in {member.name for member in panel}:
        return scores.name
    same = [member.name for member in panel if member.model and member.model == scores.model]
    if len(same) != 1:
        names = ", ".join(member.name for member in panel)
        raise UsageError(
            f"{scores.source} does not say which model of the panel it calibrates ({names})",
            fix=f"write {argument('calibration', f'{panel[0].name}={scores.source}')}",
            option="calibration",
        )
    return same[0]

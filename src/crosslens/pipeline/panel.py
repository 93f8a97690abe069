"""The scores behind stored runs and in files, of several models over one dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

from crosslens.analyze import Calibration, calibrate
from crosslens.core import InputError, UsageError, argument, reading
from crosslens.data import ARRAY_SUFFIXES
from crosslens.encode import EncodeOptions
from crosslens.engine import Progress
from crosslens.pipeline.evaluations.inputs import read_scores, score_source
from crosslens.pipeline.recipe.inputs import inputs_of_run, load_inputs, require_trusted_run
from crosslens.storage import TrustCode, trusting
from crosslens.values import Dataset


@dataclass(frozen=True, eq=False)
class ModelScores:
    """A model's scores of every image and caption of a dataset, computed when they are asked for.

    ``model`` is what encoded them, where that is known; ``home`` is the folder with the dataset's images, likewise.
    """

    name: str
    dataset: Dataset
    scores: Any
    source: str
    model: str = ""
    home: Path | None = None


def parse_source(word: str) -> tuple[str | None, str]:
    """The name, where one is given, and the source in ``NAME=SOURCE`` or ``SOURCE``."""
    name, mark, source = word.partition("=")
    return (None, word) if Path(word).exists() or not (mark and name and source) else (name, source)


class PanelKeywords(TypedDict, total=False):
    """How the inputs of runs are read: the model's options, and what of that recipes name may run or be opened."""

    encoding: EncodeOptions | None
    trust_code: TrustCode | None
    allow_hosts: Iterable[str]
    progress: Progress | None


def read_panel(
    sources: Sequence[str], dataset: Dataset | None = None, **reading_runs: Unpack[PanelKeywords]
) -> list[ModelScores]:
    """The scores of each source: a run folder, or a matrix of images × captions in a file; all of one dataset.

    A source may be given a name, ``NAME=SOURCE``; a run's is otherwise that of its folder, a file's its own. Matrices
    alone do not say of what: ``dataset`` does. Scores of a run come from what its recipe names: vectors, a matrix, or
    its model, whose vectors are usually in the cache.
    """
    panel: list[ModelScores] = []
    trust = reading_runs.get("trust_code"), reading_runs.get("allow_hosts")
    with trusting(*trust):  # of all runs, before the first is encoded
        for word in sources:
            require_trusted_run(Path(parse_source(word)[1]))
    for word in sources:
        name, source = parse_source(word)
        if Path(source).suffix.lower() in ARRAY_SUFFIXES:
            scored = dataset or (panel[0].dataset if panel else None)
            if scored is None:
                problem = f"{source} does not say which images and captions it scores"
                raise UsageError(problem, fix=f"pass {argument('dataset')}, or name a run first", option="dataset")
            with reading(source):
                matrix = read_scores(scored, source)
                score_source(scored, scores=matrix)  # a wrong shape or type raises
            member = ModelScores(name or Path(source).stem, scored, matrix, source)
        else:
            with trusting(*trust):
                member = _from_run(name or Path(source).resolve().name, source, reading_runs)
        if member.name in {other.name for other in panel}:
            raise UsageError(
                f"two models of the panel are called {member.name!r}",
                fix=f"name them: {argument('runs', f'{member.name}-2={source}')}",
                option="runs",
            )
        first = panel[0].dataset if panel else dataset or member.dataset
        for what, get in (("images", "image_ids"), ("captions", "caption_ids"), ("texts", "texts")):
            ids, others = getattr(member.dataset, get), getattr(first, get)
            if first is not member.dataset and list(ids) != list(others):
                whose = panel[0].source if panel else f"the dataset {first.name!r}"
                counts = f"{len(ids):,} {what} against {len(others):,}" if len(ids) != len(others) else f"other {what}"
                raise UsageError(
                    f"{member.source} is over another dataset than {whose}: {counts}",
                    fix="name runs of one dataset, all images and captions of it in the same order",
                    code="different-datasets",
                    option="runs",
                )
        panel.append(member)
    if not panel:
        raise UsageError("no models", fix=f"name run folders or score matrices: {argument('runs')}", option="runs")
    return panel


def _from_run(name: str, source: str, reading_runs: PanelKeywords) -> ModelScores:
    folder, encoding = Path(source), reading_runs.get("encoding") or EncodeOptions()
    recipe, loaded = inputs_of_run(folder, encoding, reading_runs.get("progress"), load_inputs)
    problem = ""
    if loaded.dataset is None:
        problem = "a run without a dataset"
    elif loaded.second_stage is not None:
        problem = "a re-ranked run, whose second stage scored the top of each list only"
    elif loaded.scores is None and (loaded.images is None or loaded.captions is None):
        problem = "a run of ranked lists, which do not score every pair"
    if problem:
        raise InputError(
            problem,
            file=folder,
            expected="a run from embeddings, from a model or from a score matrix, over a dataset",
            fix=f"name its scores of all pairs instead: {name}=scores.npy (images × captions)",
        )
    assert loaded.dataset is not None
    source_of = score_source(loaded.dataset, loaded.images, loaded.captions, loaded.scores, recipe.options.score)
    scores = loaded.scores if loaded.scores is not None else source_of.scorer
    model = recipe.absolute().model
    encoder = model.name or (loaded.images.model if loaded.images is not None else "")
    home = None if model.image_folder is None else Path(model.image_folder)
    return ModelScores(name, loaded.dataset, scores, source, encoder or "", home)


SELF = "self"
"""The calibration set is the dataset that is evaluated."""


def calibrate_panel(
    panel: Sequence[ModelScores],
    calibration: Sequence[str] = (),
    *,
    stored: Mapping[str, Calibration] | None = None,
    dataset: Dataset | None = None,
    settings: Mapping[str, Any] | None = None,
    **reading_runs: Unpack[PanelKeywords],
) -> dict[str, Calibration]:
    """A threshold for every model of a panel.

    ``calibration`` are the same models' runs over a calibration set, matched by the name of the folder or the model, or
    ``NAME=SOURCE``, where a source is a run folder, a score matrix over ``dataset``, or a number; ``self`` takes the
    panel's own dataset. ``stored`` are thresholds from a file, for models that ``calibration`` does not name.
    ``settings`` are those of :func:`crosslens.analyze.calibrate`, and there are the keywords of :func:`read_panel`.
    """
    names = [member.name for member in panel]
    thresholds = {name: (stored or {})[name] for name in names if name in (stored or {})}
    sources = []
    for word in calibration:
        name, source = parse_source(word)
        value = None
        with suppress(ValueError):
            value = float(source)
        if value is not None and name is None:
            fix = f"write {argument('calibration', f'{names[0]}={word}')}"
            raise UsageError(f"the threshold {word} does not say whose it is", fix=fix, option="calibration")
        if name is not None and name not in names:
            fix = f"use the name of one: {', '.join(names)}"
            raise UsageError(f"no model of the panel is called {name!r}", fix=fix, option="calibration")
        if value is not None and name is not None:
            thresholds[name] = Calibration(value)
        elif word != SELF:
            sources.append(word)
    keywords: dict[str, Any] = {**(settings or {}), "progress": reading_runs.get("progress")}
    if sources:
        for scores in read_panel(sources, dataset, **reading_runs):
            # Of the same name, or else of the same model.
            same = [member.name for member in panel if member.model and member.model == scores.model]
            same = [scores.name] if scores.name in names else same
            if len(same) != 1:
                raise UsageError(
                    f"{scores.source} does not say which model of the panel it calibrates ({', '.join(names)})",
                    fix=f"write {argument('calibration', f'{names[0]}={scores.source}')}",
                    option="calibration",
                )
            name = same[0]
            thresholds[name] = calibrate(scores.dataset, scores.scores, model=name, **keywords)
    for member in panel:
        if SELF in calibration and member.name not in thresholds:
            thresholds[member.name] = calibrate(member.dataset, member.scores, model=member.name, **keywords)
    missing = [member.name for member in panel if member.name not in thresholds]
    if missing:
        fix = (
            f"name a run of it over a calibration set, a number ({argument('calibration', f'{missing[0]}=0.25')}), "
            f"or {argument('calibration', SELF)}"
        )
        raise UsageError(f"no threshold for {', '.join(missing)}", fix=fix, option="calibration")
    return {member.name: thresholds[member.name] for member in panel}

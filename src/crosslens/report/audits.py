"""An audit from beginning to end: every stage, and the report."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from crosslens.core import refuse_unknown
from crosslens.encode import EncodeKeywords, EncodeOptions
from crosslens.pipeline import (
    AUDIT_DATASETS,
    Audit,
    AuditOptions,
    AuditRequest,
    DatasetSource,
    EvaluateOptions,
    InputOptions,
    ModelOptions,
    Sensitivity,
    calibrate as plant_and_look,
    load_audit,
    run_audit,
)
from crosslens.report.document.inputs import report_inputs
from crosslens.report.document.page import Report
from crosslens.storage import hold_output, write_text
from crosslens.values import Dataset

if TYPE_CHECKING:
    from crosslens.engine import Progress
    from crosslens.pipeline import Display
    from crosslens.storage import TrustCode


class FileKeywords(TypedDict, total=False):
    """Files that are evaluated instead of a model."""

    image_embeddings: str | Path
    caption_embeddings: str | Path
    image_ids: str | Path
    caption_ids: str | Path
    scores: str | Path
    qrels: str | Path


class EvaluatingKeywords(TypedDict, total=False):
    """What is measured."""

    metrics: str | Sequence[str]
    directions: str | Sequence[str]
    score: str | None
    folds: int


class AuditKeywords(FileKeywords, EncodeKeywords, EvaluatingKeywords, total=False):
    """Those of :class:`AuditOptions`, of what is evaluated, and of :func:`run_audit`."""

    quick: bool
    only: Sequence[str]
    skip: Sequence[str]
    similarity: str | None
    perturbations: str | None
    hard_negatives: str | None
    seed: int
    resamples: int
    level: float
    threads: int | None
    overwrite: bool
    display: Display | None
    trust_code: TrustCode | None
    allow_hosts: Iterable[str]


class CalibrateKeywords(TypedDict, total=False):
    """Those of calibrating an audit."""

    run: str | None
    only: Iterable[str]
    repeats: int
    seed: int
    encoding: EncodeOptions | None
    progress: Progress | None
    trust_code: TrustCode | None
    allow_hosts: Iterable[str]


def audit(
    dataset: Dataset | str | Path | Sequence[Dataset | str | Path] = (),
    model: str | Sequence[str] = (),
    *,
    output: str | Path,
    dataset_options: Mapping[str, Any] | None = None,
    run: str | Path | Sequence[str | Path] = (),
    name: str | None = None,
    **options: Unpack[AuditKeywords],
) -> Audit:
    """Everything that can be computed from what is given, as a folder with a report.

    ``dataset`` and ``model`` may be lists: every model is evaluated on every dataset. Instead of a model,
    ``image_embeddings`` and ``caption_embeddings``, ``scores`` or ``run`` name files; ``run`` also run folders.
    ``dataset_options`` are those of the dataset's reader. ``options`` are those of :class:`AuditOptions` (``quick``,
    ``only``, ``skip``, …); ``image_ids``, ``caption_ids`` and ``qrels`` of files; ``image_folder``, ``precision`` and
    ``skip_bad`` of models, with ``device``, ``batch_size``, ``cache``, ``offline`` and ``notify``; ``metrics``,
    ``directions``, ``score`` and ``folds`` of evaluating. The same call again resumes an interrupted audit;
    ``overwrite`` replaces another one.
    """
    rest: dict[str, Any] = dict(options)
    what = AuditOptions.pick(rest)
    runs = tuple(map(str, _listed(run)))
    kinds: tuple[Iterable[str], ...] = (
        FileKeywords.__annotations__,
        ("image_folder", "precision", "skip_bad"),
        EvaluatingKeywords.__annotations__,
        ("overwrite", "display", "trust_code", "allow_hosts"),
    )
    inputs, model_options, evaluating, keywords = (
        {key: rest.pop(key) for key in names if key in rest} for names in kinds
    )
    files: dict[str, Any] = {key: str(value) for key, value in inputs.items()}
    encoding = EncodeOptions.pick(rest)
    refuse_unknown(rest, AuditKeywords.__optional_keys__)
    request = AuditRequest(
        tuple(_source(entry, dataset_options or {}, Path(output)) for entry in _listed(dataset)),
        _listed(model),
        InputOptions(**files, runs=runs),
        ModelOptions(**model_options),
        EvaluateOptions(**evaluating),
        name,
    )
    return audit_with_report(request, output, what, encoding=encoding, **keywords)


def _listed(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, str | Path | Dataset) else tuple(value)


def _source(dataset: Dataset | str | Path, options: Mapping[str, Any], output: Path) -> DatasetSource:
    """What a recipe names: a dataset that is a value is written into the audit's folder."""
    if not isinstance(dataset, Dataset):
        return DatasetSource(str(dataset), options)
    return DatasetSource(str(output.absolute() / AUDIT_DATASETS / dataset.fingerprint[:16]), value=dataset)


def audit_with_report(
    request: AuditRequest, output: str | Path, options: AuditOptions | None = None, **keywords: Any
) -> Audit:
    """Run an audit, and write its report into the folder; keywords are those of :func:`run_audit`."""
    result = run_audit(request, output, options, **keywords)
    with hold_output(result.folder):
        _write_report(result)
    return result


def calibrate(audit: Audit | str | Path, **options: Unpack[CalibrateKeywords]) -> Sensitivity:
    """What an audit could have noticed: every defect planted into its own data at several strengths, and looked for.

    Says how often each would have been said, and how often among the first five findings; the audit's report shows it.
    ``run`` names one of the audit's runs (default: the first), ``only`` kinds of findings, ``repeats`` how often each
    strength is planted. The same call again resumes an interrupted one.
    """
    result = plant_and_look(audit, **options)
    again = load_audit(audit.folder if isinstance(audit, Audit) else audit)
    with hold_output(again.folder):
        _write_report(again)
    return result


def _write_report(result: Audit) -> None:
    inputs = report_inputs([result], command=shlex.join(result.header["command"]))
    write_text(result.report, Report(inputs).page)

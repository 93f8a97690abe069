"""An audit from beginning to end: every stage, and the report."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from crosslens.audits import (
    AUDIT_DATASETS,
    Audit,
    AuditRequest,
    DatasetSource,
    Sensitivity,
    calibrate as plant_and_look,
    load_audit,
    run_audit,
)
from crosslens.core import accepts_options, refuse_other_keywords
from crosslens.encode import EncodeOptions
from crosslens.pipeline import AuditOptions, EvaluateOptions, InputOptions, ModelOptions
from crosslens.report.document.page import Report
from crosslens.report.inputs import report_inputs
from crosslens.storage import hold_output, write_text
from crosslens.values import Dataset

if TYPE_CHECKING:
    from crosslens.audits import Display
    from crosslens.report.keywords import AuditKeywords, CalibrateKeywords
    from crosslens.storage import TrustCode


_EVALUATING = "metrics directions score folds"


@accepts_options(AuditOptions, EncodeOptions, (EvaluateOptions, _EVALUATING))
def audit(
    dataset: Dataset | str | Path | Sequence[Dataset | str | Path] = (),
    model: str | Sequence[str] = (),
    *,
    output: str | Path,
    dataset_options: Mapping[str, Any] | None = None,
    run: str | Path | Sequence[str | Path] = (),
    name: str | None = None,
    image_embeddings: str | Path | None = None,
    caption_embeddings: str | Path | None = None,
    image_ids: str | Path | None = None,
    caption_ids: str | Path | None = None,
    scores: str | Path | None = None,
    qrels: str | Path | None = None,
    overwrite: bool = False,
    display: Display | None = None,
    trust_code: TrustCode | None = None,
    allow_hosts: Iterable[str] = (),
    **options: Unpack[AuditKeywords],
) -> Audit:
    """Everything that can be computed from what is given, as a folder with a report.

    The same call again resumes an interrupted audit. Instead of a ``model``, there may be vectors, scores or runs in
    files.

    Args:
        dataset: One or several; every model is evaluated on each.
        model: The name of one or several models.
        output: The audit's folder.
        dataset_options: Those of the dataset's reader.
        run: Files of ranked lists, or run folders.
        name: What the model is called whose vectors, scores or lists are given.
        image_embeddings: A file of vectors.
        caption_embeddings: A file of vectors.
        image_ids: A file with the ids of images, in the order of the vectors or scores.
        caption_ids: A file with the ids of captions, likewise.
        scores: A file with an images × captions matrix.
        qrels: A file that says what is relevant.
        overwrite: Replace another audit.
        display: Told of each stage.
        trust_code: Decides whether code of files that are named may run.
        allow_hosts: Hosts that addresses in files may name.
    """
    refuse_other_keywords(options, audit)
    files: dict[str, Any] = {
        "image_embeddings": image_embeddings, "caption_embeddings": caption_embeddings, "image_ids": image_ids,
        "caption_ids": caption_ids, "scores": scores, "qrels": qrels,
    }  # fmt: skip
    files = {name: str(file) for name, file in files.items() if file is not None}
    evaluating: dict[str, Any] = {name: value for name, value in options.items() if name in _EVALUATING.split()}
    request = AuditRequest(
        tuple(_source(entry, dataset_options or {}, Path(output)) for entry in _listed(dataset)),
        _listed(model),
        InputOptions(**files, runs=tuple(map(str, _listed(run)))),
        ModelOptions.pick(options),
        EvaluateOptions(**evaluating),
        name,
    )
    return audit_with_report(
        request, output, AuditOptions.pick(options), encoding=EncodeOptions.pick(options), overwrite=overwrite,
        display=display, trust_code=trust_code, allow_hosts=allow_hosts,
    )  # fmt: skip


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


@accepts_options(plant_and_look)
def calibrate(audit: Audit | str | Path, **options: Unpack[CalibrateKeywords]) -> Sensitivity:
    """What an audit could have noticed: every defect planted into its own data at several strengths, and looked for.

    Says how often each would have been said, and how often among the first five findings; the audit's report shows it.
    The same call again resumes an interrupted one.

    Args:
        audit: An audit, or its folder.
    """
    result = plant_and_look(audit, **options)
    again = load_audit(audit.folder if isinstance(audit, Audit) else audit)
    with hold_output(again.folder):
        _write_report(again)
    return result


def _write_report(result: Audit) -> None:
    inputs = report_inputs([result], command=shlex.join(result.header["command"]))
    write_text(result.report, Report(inputs).page)

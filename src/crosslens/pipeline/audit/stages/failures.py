"""Why a model fails, and how easily: perturbed captions, hard negatives, explanations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crosslens.analyze import score_hard_negatives
from crosslens.core import TEXT_TO_IMAGE, Run, random_stream
from crosslens.explanations import explain_run, ranking_of, save_overview
from crosslens.pipeline.audit.needs import A_DATASET, A_MODEL, CAPTION_QUERIES, CASES, LANGUAGE, TEXT_QUERIES
from crosslens.pipeline.audit.options import AuditOptions
from crosslens.pipeline.audit.stage import RUN, StageOutput, StageWork, audit_stage
from crosslens.pipeline.robustness_study.study_runner import robustness

QUICK_PERTURBATIONS = "char_swap,shuffle_all_words"
QUICK_QUERIES = 1000
"""Caption queries that a quick audit explains."""
_PERMUTATIONS, _QUICK_PERMUTATIONS = 10_000, 1000


@audit_stage(
    "robustness", about=RUN, order=70, needs=(A_DATASET, A_MODEL, CAPTION_QUERIES), cost=(5, 20), quick_cost=(2, 2)
)
def perturb_captions(work: StageWork) -> StageOutput:
    """What small changes of captions cost."""
    options, source = work.options, work.run.source
    names = options.perturbations or (QUICK_PERTURBATIONS if options.quick else "all")
    folder = work.stage_folder("robustness")
    encoding = {name: value for name, value in vars(_encoding(work)).items() if name != "skip_bad"}
    study = robustness(
        work.known_dataset, models={source.name: source.recipe.model.name}, perturbations=names,
        directions=(TEXT_TO_IMAGE,), output=folder, progress=work.progress, seed=options.seed,
        resamples=options.resamples, level=options.level, threads=options.threads, command=work.command,
        score=source.recipe.options.score, permutations=_QUICK_PERMUTATIONS if options.quick else _PERMUTATIONS,
        **encoding,
    )  # fmt: skip
    command = (
        f"crosslens robustness --dataset {source.dataset_words} --model {source.recipe.model.name} "
        f"--perturbations {names} --direction t2i -o {folder}"
    )
    return StageOutput(study.as_dict(), command, folder)


def _encoding(work: StageWork) -> Any:
    return work.run.source.recipe.model.encode_options(work.encoding)


@audit_stage("hard-negatives", about=RUN, order=80, needs=(CASES, A_MODEL), cost=(10, 0))
def hard_negatives(work: StageWork) -> StageOutput:
    """Whether the right caption wins against captions that are nearly right."""
    options, recipe = work.options, work.run.source.recipe
    encoding = {name: value for name, value in vars(_encoding(work)).items() if name not in ("skip_bad",)}
    result = score_hard_negatives(
        options.hard_negatives, recipe.model.name, name=work.run.source.name, progress=work.progress,
        resamples=options.resamples, level=options.level, seed=options.seed, **encoding,
    )  # fmt: skip
    payload = {"results": [result.as_dict(5)], "comparisons": [], "files": []}
    return StageOutput(payload, f"crosslens hard-negatives {options.hard_negatives} --model {recipe.model.name}")


@audit_stage("explain", about=RUN, order=90, needs=(A_DATASET, TEXT_QUERIES, LANGUAGE), cost=(3, 5), quick_cost=(3, 1))
def explain(work: StageWork) -> StageOutput:
    """Why caption queries fail: objects, counts, causes, confusions."""
    options, audited = work.options, work.run
    run, notes = _sampled(audited.evaluated, options)
    overview = explain_run(
        run, work.queried_dataset(), resamples=options.resamples, level=options.level, seed=options.seed,
        progress=work.progress,
    )  # fmt: skip
    overview = replace(overview, notes=(*overview.notes, *notes))
    folder = work.stage_folder("explanations")
    save_overview(overview, folder, overwrite=True)
    payload = {**overview.as_dict(), "sampled": bool(notes), "written": [str(folder)]}
    return StageOutput(payload, f"crosslens explain {audited.folder} -o {folder}", folder)


def _sampled(run: Run, options: AuditOptions) -> tuple[Run, tuple[str, ...]]:
    """In a quick audit, the run with some of its caption queries, and a note that says so."""
    ranking = ranking_of(run)
    queries = len(ranking.query_ids)
    if not options.quick or queries <= QUICK_QUERIES:
        return run, ()
    rows = random_stream(options.seed, "audit-explain").choice(queries, QUICK_QUERIES, replace=False)
    sample = ranking.of_queries(sorted(rows.tolist()))
    return replace(run, rankings={ranking.direction: sample}), (
        f"A sample of {QUICK_QUERIES:,} of {queries:,} queries.",
    )

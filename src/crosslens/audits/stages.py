"""The stages of an audit: each looks at one thing of a run, a dataset or several runs, and says what it found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from crosslens.analyze import (
    ANALYSES,
    NEIGHBOURHOOD_SIZES,
    Subject,
    assess_label_quality,
    compare_granularity,
    difficulty,
    find_missing_positives,
    group_columns,
    look_at_groups,
    measure_caption_diversity,
    measure_granularity,
    polysemy,
    score_hard_negatives,
)
from crosslens.audits.comparing import COMPARISON, compare_models
from crosslens.audits.conclusions import Observed, conclude
from crosslens.audits.sources import DatasetSource
from crosslens.audits.stage import (
    A_DATASET,
    A_MODEL,
    ALL,
    CAPTION_QUERIES,
    CASES,
    DATASET,
    FIRST,
    LANGUAGE,
    RUN,
    SCORES,
    SEVERAL_CAPTIONS,
    SEVERAL_IMAGES,
    SEVERAL_RUNS,
    TEXT_QUERIES,
    VECTORS,
    Condition,
    StageOutput,
    StageWork,
    audit_stage,
)
from crosslens.comparisons import leaderboard
from crosslens.core import Finding, InputError, MissingExtraError, without_secrets
from crosslens.data import image_files, outer_file, write_qrels
from crosslens.explanations import TEXT_TO_TEXT, explain_run, ranking_of, save_overview
from crosslens.metrics import dataset_name
from crosslens.pipeline import (
    calibrate_panel,
    changed_captions,
    curve,
    drop_strip,
    folder_name,
    group_metrics,
    group_names,
    groupable_metrics,
    load_inputs,
    read_panel,
    robustness,
    run_recipe,
)
from crosslens.similarity import load_similarity
from crosslens.storage import random_stream
from crosslens.values import TEXT_TO_IMAGE, Dataset, Run, split_name

_COMPARED = ("Hit@1", "Hit@5", "Hit@10", "MRR", "mAP@R", "Rsum")
_GROUPED = ("Hit@1", "Hit@10", "Hit@5", "MRR")
"""What is shown by group; in a quick audit, the first two of them."""
_MOST_GROUPS = 20
_MOST_COLUMNS = 12


@audit_stage(FIRST, about=RUN, order=10, cost=(4, 2))
def evaluate(work: StageWork) -> StageOutput:
    """Classic and graded metrics with intervals, both directions."""
    audited = work.run
    run = run_recipe(
        audited.recipe, audited.folder, progress=work.progress, command=work.command, encoding=work.encoding
    )
    notes = [str(note) for note in run.provenance.get("notes", ())]
    return StageOutput(
        {**run.as_dict(), "notes": notes}, f"crosslens run {audited.folder / 'recipe.toml'}", audited.folder
    )


SEMANTIC_PHI = "semantic"
"""The similarity that agrees best with people: without it, or another that was named, nothing is proposed."""


def _without_semantic(work: StageWork) -> str | None:
    try:
        load_similarity(work.options.similarity or SEMANTIC_PHI)
    except MissingExtraError as error:
        return error.fix
    return None


SEMANTIC = Condition("a similarity that agrees with people", _without_semantic)


_COLUMNS = Condition.of(
    "columns that make groups", lambda work: group_columns(work.subject.dataset), "the dataset has none"
)


@audit_stage("groups", about=RUN, order=30, needs=(A_DATASET, _COLUMNS), cost=(1, 0.5), answers="failures")
def groups(work: StageWork) -> StageOutput:
    """Metrics by every column of the dataset that makes groups, and by caption length."""
    run, options, subject = work.run.evaluated, work.options, work.subject
    metrics = _GROUPED[:2] if options.quick else _GROUPED
    tables: list[dict[str, Any]] = []
    for column in [name for name in group_names(run) if name in group_columns(subject.dataset)][:_MOST_COLUMNS]:
        names = [name for name in groupable_metrics(run, column) if split_name(name)[1] in metrics]
        if names:
            grouped = group_metrics(
                run, column, names, largest=_MOST_GROUPS, seed=options.seed, resamples=options.resamples
            )
            tables.append(grouped.figures())
    weak = look_at_groups(subject)
    command = f"crosslens show {work.run.folder} --by {'|'.join(table['by'] for table in tables)}"
    content = {"name": run.name, "groups": tables, "weak": weak.as_dict()}
    return StageOutput(content, command, None, tuple(weak.sections()), tuple(weak.findings()))


@audit_stage(COMPARISON, about=DATASET, order=125, needs=(SEVERAL_RUNS,), cost=(0.5, 0.1))
def compare_on_dataset(work: StageWork) -> StageOutput:
    """Which run over a dataset is better, and which do not differ."""
    return StageOutput.of(compare_models(work.loaded()), f"crosslens compare {work.folders}")


@audit_stage("leaderboard", about=ALL, order=130, needs=(SEVERAL_RUNS,), cost=(1, 0.1))
def compare_runs(work: StageWork) -> StageOutput:
    """Models × datasets, the best marked, with paired tests within a dataset."""
    runs = {(source.model, source.dataset): source.evaluated for source in work.runs.values()}
    present = {name for run in runs.values() for name in run}
    metrics = [name for metric in _COMPARED for name in (f"t2i/{metric}", f"i2t/{metric}", metric) if name in present]
    table = leaderboard(runs, metrics or None, seed=work.options.seed)
    return StageOutput(table.as_dict(), f"crosslens leaderboard {work.folders}")


_LISTED = 10
"""Labels that a result holds; all of them are in a file."""


@audit_stage("label-quality", about=DATASET, order=40, needs=(A_DATASET,), cost=(3, 3), answers="labels")
def label_quality(work: StageWork) -> StageOutput:
    """Labels that a person should review, with reasons."""
    dataset, image_folder = work.queried_dataset(), work.run.recipe.model.image_folder
    pictures: dict[str, str] = {}
    try:
        paired = zip(dataset.image_ids, image_files(dataset, image_folder, skip_bad=True), strict=True)
        pictures = {image: path for image, path in paired if outer_file(path).is_file()}
    except InputError:
        if image_folder is not None:
            raise
    result = assess_label_quality(
        dataset,
        {name: run for name, run in work.loaded().items() if _asks(run, dataset)},
        pictures=pictures,
        words=LANGUAGE.missing(work) is None,
        progress=work.progress,
    )
    folder = work.stage_folder("label-quality")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "review.csv"
    result.write(file, result.suspects)
    result = replace(result, shown=min(_LISTED, result.suspects))
    command = f"crosslens analyze labels {work.folders} -o {file} --limit {result.suspects}"
    return StageOutput.of(result, command, folder, files=[str(file)])


def _asks(run: Run, dataset: Dataset) -> bool:
    """Whether the queries of a run are captions of the dataset; text-only retrieval may ask with another text set."""
    ranking = run.rankings.get(TEXT_TO_IMAGE, run.rankings.get(TEXT_TO_TEXT))
    return ranking is not None and set(ranking.query_ids) <= set(dataset.caption_ids)


@audit_stage(
    "missing-positives",
    about=DATASET,
    order=50,
    needs=(A_DATASET, SEVERAL_CAPTIONS, SEMANTIC),
    cost=(1, 0.5),
    answers="labels",
)
def missing_positives(work: StageWork) -> StageOutput:
    """Pairs that nobody annotated and that are worth a look, where similarity can tell on this data."""
    dataset, options = work.labelled_dataset(), work.options
    phi = options.similarity or SEMANTIC_PHI
    result = find_missing_positives(dataset, phi, seed=options.seed, threads=options.threads, progress=work.progress)
    folder = work.stage_folder("missing-positives")
    folder.mkdir(parents=True, exist_ok=True)
    qrels, table = folder / "completed.qrels", folder / "missing.csv"
    write_qrels(result.relevance(), qrels, notify=work.encoding.notify)
    result.write_table(table)
    words, recipe = work.run.dataset_words, work.run.recipe
    if recipe.queries is not None:  # a second text set asks
        words += f" --queries {DatasetSource(recipe.queries, recipe.queries_options).words()}"
        words += " --shared-images" * bool(recipe.model.shared_images)
    command = f"crosslens missing-positives --dataset {words} --phi {phi} -o {qrels} --table {table}"
    return StageOutput.of(result, command, folder, files=[str(qrels), str(table)])


@audit_stage("granularity", about=DATASET, order=60, needs=(A_DATASET, LANGUAGE), cost=(2, 2))
def granularity(work: StageWork) -> StageOutput:
    """How fine-grained the captions are."""
    features = measure_granularity(work.known_dataset, threads=work.options.threads, progress=work.progress)
    result = compare_granularity([features], **work.intervals)
    return StageOutput.of(result, f"crosslens analyze granularity --dataset {work.run.dataset_words}", files=[])


QUICK_PERTURBATIONS = "char_swap,shuffle_all_words"
QUICK_QUERIES = 1000
"""Caption queries that a quick audit explains."""


@audit_stage(
    "robustness",
    about=RUN,
    order=70,
    needs=(A_DATASET, A_MODEL, CAPTION_QUERIES),
    cost=(5, 20),
    quick_cost=(2, 2),
    answers="reading",
)
def perturb_captions(work: StageWork) -> StageOutput:
    """What small changes of captions cost."""
    options, source = work.options, work.run
    names = options.perturbations or (QUICK_PERTURBATIONS if options.quick else "all")
    folder = work.stage_folder("robustness")
    study = robustness(
        work.known_dataset, models={source.name: source.recipe.model.name}, perturbations=names,
        directions=(TEXT_TO_IMAGE,), output=folder, progress=work.progress, threads=options.threads,
        command=work.command, score=source.recipe.options.score, permutations=1000 if options.quick else 10_000,
        **work.intervals, **_encoding(work),
    )  # fmt: skip
    command = (
        f"crosslens robustness --dataset {source.dataset_words} --model {source.recipe.model.name} "
        f"--perturbations {names} --direction t2i -o {folder}"
    )
    runs = folder / folder_name(source.name)
    rankings = {name: Run.load(runs / name).rankings[TEXT_TO_IMAGE] for name in study.perturbations}
    sections = drop_strip(study), changed_captions(study, rankings), *study.sections()
    return StageOutput(study.as_dict(), command, folder, sections)


def _encoding(work: StageWork) -> dict[str, Any]:
    """How the run's model encodes, as keywords; every picture is needed, so that bad ones are not skipped."""
    options = vars(work.run.recipe.model.encode_options(work.encoding))
    return {name: value for name, value in options.items() if name != "skip_bad"}


@audit_stage("hard-negatives", about=RUN, order=80, needs=(CASES, A_MODEL), cost=(10, 0), answers="failures")
def hard_negatives(work: StageWork) -> StageOutput:
    """Whether the right caption wins against captions that are nearly right."""
    options, recipe = work.options, work.run.recipe
    result = score_hard_negatives(
        options.hard_negatives, recipe.model.name, name=work.run.name, progress=work.progress,
        **work.intervals, **_encoding(work),
    )  # fmt: skip
    payload = {"results": [result.as_dict(5)], "comparisons": [], "files": []}
    command = f"crosslens hard-negatives {options.hard_negatives} --model {recipe.model.name}"
    return StageOutput(payload, command, None, tuple(result.sections()))


@audit_stage(
    "explain",
    about=RUN,
    order=90,
    needs=(A_DATASET, TEXT_QUERIES, LANGUAGE),
    cost=(3, 5),
    quick_cost=(3, 1),
    answers="failures",
)
def explain(work: StageWork) -> StageOutput:
    """Why caption queries fail: objects, counts, causes, confusions."""
    run = work.run.evaluated
    ranking = ranking_of(run)
    queries = len(ranking.query_ids)
    sampled = work.options.quick and queries > QUICK_QUERIES
    if sampled:
        rows = random_stream(work.options.seed, "audit-explain").choice(queries, QUICK_QUERIES, replace=False)
        run = replace(run, rankings={ranking.direction: ranking.of_queries(sorted(rows.tolist()))})
    overview = explain_run(run, work.queried_dataset(), progress=work.progress, **work.intervals)
    if sampled:
        note = f"A sample of {QUICK_QUERIES:,} of {queries:,} queries."
        overview = replace(overview, notes=(*overview.notes, note))
    folder = work.stage_folder("explanations")
    save_overview(overview, folder, overwrite=True)
    payload = {**overview.as_dict(), "sampled": sampled, "written": [str(folder)]}
    return StageOutput(payload, f"crosslens explain {work.run.folder} -o {folder}", folder, tuple(overview.sections()))


_COUNTS = tuple(range(1, 51))
_QUICK_COUNTS = (1, 2, 5, 10, 20, 50)
_HARDEST = 5


@audit_stage("polysemy", about=RUN, order=100, needs=(A_DATASET, VECTORS, SEVERAL_IMAGES), cost=(2, 1.5))
def measure_polysemy(work: StageWork) -> StageOutput:
    """How diverse the captions of similar images are."""
    options, source = work.options, work.run
    inputs = load_inputs(source.recipe.absolute(), work.encoding, work.progress)
    assert inputs.dataset is not None
    vectors = {"images": inputs.images, "captions": inputs.captions}
    common: dict[str, Any] = {**vectors, **work.intervals, "progress": work.progress}
    sizes = [size for size in NEIGHBOURHOOD_SIZES if size < len(inputs.dataset.image_ids)]
    curves = polysemy(inputs.dataset, sizes=sizes, **common)
    diversity = measure_caption_diversity(inputs.dataset, cider=not options.quick, **common)
    payload = {"datasets": [{**curves.as_dict(), "diversity": diversity.as_dict()}], "files": []}
    files, flags = source.recipe.inputs, f"--model {source.recipe.model.name}"
    if not source.recipe.model.name:
        flags = f"--image-embeddings {files.image_embeddings} --caption-embeddings {files.caption_embeddings}"
    command = f"crosslens analyze polysemy --dataset {source.dataset_words} {without_secrets(flags)}"
    return StageOutput(payload, command, None, tuple(curves.sections()))


@audit_stage("difficulty", about=DATASET, order=110, needs=(A_DATASET, SCORES), cost=(1, 0.5))
def measure_difficulty(work: StageWork) -> StageOutput:
    """How hard each pair is, by whether the models' scores reach their thresholds."""
    words = [f"{name}={audited.folder}" for name, audited in work.runs.items()]
    reading: dict[str, Any] = {"encoding": work.encoding, "trust_code": True, "progress": work.progress}
    panel = read_panel(words, **reading)
    thresholds = calibrate_panel(panel, ("self",), settings={"seed": work.options.seed}, **reading)
    result = difficulty(
        panel[0].dataset,
        {member.name: member.scores for member in panel},
        {name: calibration.threshold for name, calibration in thresholds.items()},
    )
    folder = work.stage_folder("difficulty")
    folder.mkdir(parents=True, exist_ok=True)
    file = result.write(folder / "difficulty.parquet")
    payload = {
        **result.as_dict(),
        "calibration": {name: calibration.as_dict() for name, calibration in thresholds.items()},
        "beside": [],
        "stability": None,
        "hardest": result.hardest(_HARDEST).to_dicts(),
        "files": [str(file)],
    }
    return StageOutput(
        payload, f"crosslens analyze difficulty --runs {' '.join(words)} --calibration self -o {file}", folder,
        tuple(result.sections()),
    )  # fmt: skip


@audit_stage("curve", about=DATASET, order=120, needs=(A_DATASET, CAPTION_QUERIES), cost=(1, 0.6), quick_cost=(1, 0.4))
def semantic_recall(work: StageWork) -> StageOutput:
    """Semantic recall against m: whether conclusions depend on how many items count as relevant."""
    options, dataset = work.options, work.known_dataset
    counts = [m for m in (_QUICK_COUNTS if options.quick else _COUNTS) if m < len(dataset.image_ids)]
    curves = curve(
        list(work.loaded().values()), dataset, options.phi, m=counts, direction=TEXT_TO_IMAGE,
        threads=options.threads, progress=work.progress, **work.intervals,
    )  # fmt: skip
    m = ",".join(map(str, counts)) if options.quick else f"1..{counts[-1]}"
    command = f"crosslens curve {work.folders} --phi {options.phi} --m {m}"
    return StageOutput(curves.as_dict(), command, None, tuple(curves.sections()))


def findings_of_runs(runs: Mapping[str, tuple[Run, Dataset | None]]) -> tuple[Finding, ...]:
    """What runs without an audit say by the same tests, as far as their rankings alone tell."""
    observed: list[Observed] = []
    by_dataset: dict[str, dict[str, Run]] = {}
    for name, (run, dataset) in runs.items():
        by_dataset.setdefault(dataset_name(run), {})[name] = run
        if dataset is not None and TEXT_TO_IMAGE in run.rankings and _asks(run, dataset):
            subject = Subject(dataset, run.rankings)
            for stage in ("soundness", "twins", "groups"):
                observations = ANALYSES[stage].value(subject).findings()
                observed += (Observed(observation, stage, name, dataset.name) for observation in observations)
    for dataset_of, compared in by_dataset.items():
        if len(compared) > 1:
            observed += (Observed(entry, COMPARISON, "", dataset_of) for entry in compare_models(compared).findings())
    return conclude(observed)

"""``crosslens show`` and ``compare``: stored runs as tables, and tested against each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from crosslens import audits, comparisons, explanations, pipeline, values
from crosslens.cli.answers import end_with
from crosslens.cli.console import print_note, print_notes, print_result, progress_bar
from crosslens.cli.datasets import DatasetOfRuns, DatasetOptions
from crosslens.cli.exit_codes import UNMET
from crosslens.cli.flags import ColumnOptions, Flags, Json, command, positional
from crosslens.cli.stored_runs import dataset_of_run, drops_by_column, load_runs, load_studies, named_tables
from crosslens.comparisons import PermutationOptions
from crosslens.core import Options, Presented, UsageError, option
from crosslens.encode import EncodeOptions


@dataclass(frozen=True)
class ChangeOptions(Options):
    """What changed between two runs, query by query."""

    changes: bool = option(False, "Show what changed from the first of two runs to the second, and why.")
    direction: str | None = option(None, "Of --changes: which queries. [default: texts first]", metavar="t2i|t2t|i2t")
    phi: str = option("cider", "Of --changes: the similarity of top hits to queries.")
    show: int = option(20, "Of --changes: so many won and so many lost queries.", minimum=1)


_PUBLISHED = "Results of mteb and CLIP_benchmark (.json, or mteb's folder of a model) stand beside runs."
_MAX_METRICS = 2
_MAX_GROUPS = 20


@command(
    "crosslens show runs/clip-b32",
    "crosslens show runs/clip-b32 --by category",
    'crosslens show runs/clip-b32 --by category --metrics "t2i/MedR Hit@1" --json',
    "crosslens show runs/clip-b32 runs/siglip --by category --metrics t2i/Hit@1",
    "crosslens show runs/rob-coco runs/rob-flickr30k --by dataset",
    "crosslens show runs/clip-b32 --columns difficulty.parquet --by difficulty",
    "crosslens show runs/clip-b32 --by category --write categories.html",
    "crosslens show runs/clip-b32 Flickr30kT2IRetrieval.json",
)
def show(
    *,
    runs: list[Path] = positional(
        ..., f"Run folders or robustness studies, one or several to put side by side. {_PUBLISHED}"
    ),
    by: str | None = option(
        None, "Group by a column of the dataset, or by caption_length; studies by dataset: the mean over models."
    ),
    added: ColumnOptions,
    metrics: str | None = option(None, 'Only these, such as "Hit@1 t2i/MedR".'),
    all_groups: bool = option(False, "Every group, not only the largest.", flags=("--all",)),
    tables: str | None = option(None, 'Of a robustness study, such as "drops words captions".'),
    json: Json = False,
) -> Presented:
    """Print the values of a run, or of several side by side.

    To test whether runs differ, use `crosslens compare`.
    """
    if (studies := load_studies(runs)) is not None:
        first = next(iter(studies.values()))
        if added.columns is not None:
            return drops_by_column(first, by, added.columns)
        if len(studies) == 1 and by is None and metrics is None:
            print_notes(first.about.get("notes", ()))
            return replace(first, shown=named_tables(tables))
        if tables is not None:
            raise UsageError("--tables is of one study", fix="name one study, or drop --tables")
        return pipeline.drop_table(studies, metrics, by=by)
    loaded = load_runs(runs, added.columns, with_published=True)
    run, largest = loaded[0], None if all_groups or json else _MAX_GROUPS
    if len(loaded) == 1 and by is None:
        from crosslens.metrics import select_metrics

        return replace(run, values={name: run[name] for name in select_metrics(run, metrics)})
    table: pipeline.SideBySide | pipeline.GroupedMetrics
    if len(loaded) > 1:
        table = pipeline.side_by_side(loaded, metrics, column=by, largest=largest)
    else:
        assert by is not None
        if (column := pipeline.column_of(run, by)) != by:
            print_note(f"note: the dataset's {by} is called {column} in runs, which have a {by} of their own")
        metric_names: str | list[str] | None = metrics
        if metrics is None and not json:
            by_direction: dict[str, list[str]] = {}
            for name in pipeline.groupable_metrics(run, by):
                by_direction.setdefault(values.split_name(name)[0], []).append(name)
            metric_names = [name for names in by_direction.values() for name in names[:_MAX_METRICS]]
        table = pipeline.group_metrics(run, by, metric_names, largest=largest)
        if run.protocol and not json:
            print_note(f"note: {run.label}")
    if metrics is None and by is not None and not json:
        which = "metric" if len(loaded) > 1 else "metrics"
        print_note(f"note: the first {which} of each direction; choose others with --metrics")
    if any(table.left_out.values()):
        print_note(f"note: the {_MAX_GROUPS} largest groups; --all shows every group")
    return table


@command(
    "crosslens compare runs/clip-b32 runs/siglip",
    'crosslens compare runs/clip-b32 runs/siglip --metrics "t2i/Hit@1 i2t/mAP@R"',
    "crosslens compare runs/a runs/b --columns difficulty.parquet --by difficulty",
    "crosslens compare runs/a runs/b runs/c --all-pairs",
    "crosslens compare runs/a runs/b runs/c --all-pairs --write table.tex",
    "crosslens compare runs/triplet runs/sam --changes --write changes.html",
    common=("by", "primary", "all_pairs", "changes"),
)
def compare(
    source: DatasetOfRuns,
    encode: Annotated[EncodeOptions, Flags(only=("image_folder",))],
    *,
    runs: list[Path] = positional(..., "Two or more run folders; the first is compared with the others."),
    metrics: str | None = option(None, 'Only these, such as "t2i/Hit@1 i2t/mAP@R".'),
    by: str | None = option(None, "Compare within each group of a column of the dataset."),
    added: ColumnOptions,
    test: PermutationOptions,
    all_pairs: bool = option(False, "Compare every run with every other one: one table with significance marks."),
    options: ChangeOptions,
) -> comparisons.Comparison | pipeline.GroupedComparison:
    """Test whether runs differ significantly.

    Runs must share their queries. Tests are paired, over images, and corrected for multiple comparisons: one metric is
    primary and decides, the others are secondary and corrected among themselves. --changes
    shows what changed from the first of two runs to the second: queries won and lost, with pictures on a page
    (--write changes.html), and why.
    """
    if len(runs) < 2:
        raise UsageError("a comparison requires two runs", fix="name a second run folder")
    if options.changes and (len(runs) > 2 or by is not None or all_pairs):
        raise UsageError("--changes is of two runs", fix="name two runs, without --by and --all-pairs")
    if not options.changes and (
        source != DatasetOptions() or encode.image_folder is not None or options != ChangeOptions()
    ):
        raise UsageError(
            "a dataset, --image-folder, --direction, --phi and --show are of --changes", fix="pass --changes"
        )
    loaded = load_runs(runs, added.columns)
    if by is not None:
        return pipeline.compare_groups(loaded, by, metrics=metrics, all_pairs=all_pairs, **vars(test))
    primary = f"{options.direction}/Hit@1"
    if test.primary is None and metrics is None and all(primary in run.values for run in loaded):
        test = replace(test, primary=primary)
    comparison = comparisons.compare(*loaded, metrics=metrics, all_pairs=all_pairs, **vars(test))
    if not options.changes:
        return comparison
    changes = explanations.compare_queries(
        loaded[0],
        loaded[1],
        dataset_of_run(loaded[0], source),
        options.direction,
        names=(comparison.baseline, comparison.others[0]),
        phi=options.phi,
        most=options.show,
        permutations=test.permutations,
        seed=test.seed,
        image_folder=encode.image_folder,
        progress=progress_bar(),
    )
    return replace(comparison, changes=changes)


_MOST_DRAWN = 20
_BY = "Group by a column of the dataset, or by caption_length."


@command(
    "crosslens plot runs/clip-b32 --by category --write categories.html",
    "crosslens plot runs/clip-b32 runs/siglip --by category --metric t2i/Hit@5 --write categories.svg",
)
def plot(
    *,
    runs: list[Path] = positional(..., "One or more run folders, or robustness studies."),
    by: str | None = option(None, f"{_BY} Studies by dataset: the mean over models. [default: all queries together]"),
    added: ColumnOptions,
    metric: str | None = option(None, "Such as t2i/Hit@5. [default: t2i/Hit@1, or the first shared]"),
    all_groups: bool = option(False, "Every group, not only the 20 largest.", flags=("--all",)),
) -> pipeline.GroupChart | pipeline.DropTable:
    """Plot a metric of runs by group, with intervals.

    Prints the numbers; --write draws them. A page (.html) opens in any browser without a network. Several runs stand
    side by side; of robustness studies, heat maps of the drops.
    """
    if (studies := load_studies(runs)) is not None:
        return pipeline.drop_table(studies, metric, by=by)
    loaded = load_runs(runs, added.columns)
    chart = pipeline.plot(loaded, by, metric, largest=None if all_groups else _MOST_DRAWN)
    if metric is None:
        print_note(f"note: {chart.metric}; choose another with --metric")
    if by is None and (columns := pipeline.group_names(loaded[0])):
        print_note(f"note: all queries together; group them with --by: {', '.join(columns)}")
    if chart.left_out:
        print_note(f"note: the {_MOST_DRAWN} largest groups; --all draws every group")
    return chart


@command(
    "crosslens leaderboard runs/*",
    'crosslens leaderboard runs/coco-* runs/f30k-* --metrics "t2i/Hit@1 MedR"',
    "crosslens leaderboard runs/* --write table.tex --write leaderboard.html",
    "crosslens leaderboard runs/* results/openai__clip-vit-base-patch32/3d74acf9",
)
def leaderboard(
    *,
    runs: list[Path] = positional(..., f"Run folders, of any models and datasets. {_PUBLISHED}"),
    metrics: str | None = option(None, 'These, such as "t2i/Hit@1 MedR". [default: the first of each direction]'),
    test: PermutationOptions,
    json: Json = False,
) -> comparisons.Leaderboard:
    """Compare models over datasets, with the best marked.

    Runs are grouped by their model's name and their dataset. On each dataset every model is tested against the best;
    tests are paired, over images, and corrected for multiple comparisons. Cells may be missing.
    """
    loaded = load_runs(runs, with_published=True)
    if metrics is None and not json:
        print_note("note: the first metric of each direction; choose others with --metrics")
    first: dict[str, str] = {}
    for name in (name for run in loaded for name in run):
        first.setdefault(values.split_name(name)[0], name)
    if len(first) > 1:
        first.pop(values.BOTH, None)
    names = list(first.values()) if metrics is None else metrics
    return comparisons.leaderboard(comparisons.group_runs(loaded), names, **vars(test))


@command(
    'crosslens check runs/x --require "t2i/Hit@1 >= 0.6" --require "MedR <= 3"',
    'crosslens check runs/x --require "worst(category, t2i/Hit@1) >= 40%"',
    'crosslens check runs/x --robustness runs/rob --require "drop(char_swap, t2i/Hit@1) <= 5"',
    'crosslens check runs/new --baseline runs/old --confident --require "gap(Hit@1) >= -1"',
    "crosslens check audits/x --requirements requirements.toml --github",
)
def check(
    *,
    folder: Path = positional(..., "A run folder, or the folder of a robustness study or an audit."),
    require: list[str] | None = option(None, 'Such as "t2i/Hit@1 >= 0.6". May be repeated.', metavar="TEXT"),
    requirements: Path | None = option(None, "A TOML file with more: require = [TEXT, …]."),
    robustness: Path | None = option(None, "The robustness study of the run, for drop(…).", metavar="FOLDER"),
    baseline: Path | None = option(None, "The run that gap(…) compares with.", metavar="FOLDER"),
    confident: bool = option(False, "The whole interval must fulfil the requirement, not only the value."),
    smallest_group: int = option(
        1, "Groups with fewer queries do not count in worst(…).", minimum=1, maximum=1_000_000_000
    ),
    github: bool = option(False, "Print an annotation of a GitHub workflow for each requirement, too."),
    json: Json = False,
) -> audits.RequirementCheck:
    """Check whether a model fulfils requirements.

    A requirement compares a metric, drop(PERTURBATION[, METRIC]), group(COLUMN=VALUE, METRIC), worst(COLUMN, METRIC) or
    gap(METRIC[, RUN]) with a number by >=, <=, > or <. Shares are fractions or have a percent sign; drops and gaps are
    in points. The exit code is 7 where a requirement is not met.
    """
    if github and json:
        raise UsageError("--github does not go with --json", fix="drop one of them")
    read = [
        *map(audits.parse_requirement, require or ()),
        *(audits.read_requirements(requirements) if requirements is not None else ()),
    ]
    if not read:
        raise UsageError("no requirements", fix="pass --require or --requirements")
    models = audits.read_checked(folder, robustness)
    sources = audits.Sources(
        lambda run, column, metric: pipeline.group_metrics(run, column, metric).values, baseline, smallest_group
    )
    result = audits.check_requirements(models, read, sources, confident=confident)
    if github:
        print_result("\n".join(audits.github_annotations(result)))
    if not result.met:
        end_with(UNMET)
    return result

"""``crosslens show`` and ``compare``: stored runs as tables, and tested against each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

import crosslens.core as core
import crosslens.explanations as explanations
import crosslens.pipeline as pipeline
import crosslens.report as report
from crosslens.cli.console import (
    check_outputs,
    print_json,
    print_note,
    print_notes,
    print_result,
    progress_bar,
    terminal_width,
)
from crosslens.cli.datasets import DatasetOfRuns, DatasetOptions
from crosslens.cli.flags import ColumnOptions, Flags, Json, Overwrite, command
from crosslens.cli.stored_runs import drops_by_column, load_runs, load_studies, named_tables
from crosslens.core import Options, UsageError, option
from crosslens.encode import EncodeOptions


@dataclass(frozen=True)
class ChangeOptions(Options):
    """The page of what changed between two runs."""

    html: Path | None = option(None, "A page of the queries won and lost, and why.", metavar="FILE")
    direction: str | None = option(None, "With --html: which queries. [default: texts first]", metavar="t2i|t2t|i2t")
    phi: str = option("cider", "With --html: the similarity of top hits to queries.", metavar="NAME")
    show: int = option(20, "With --html: so many won and so many lost queries.", metavar="N", minimum=1)


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
)
def show(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, or robustness studies: one, or several to put side by side.")
    ],
    *,
    by: str | None = option(
        None,
        "Group by a column of the dataset, or by caption_length; studies by dataset: the mean over models.",
        metavar="COLUMN",
    ),
    added: ColumnOptions,
    metrics: str | None = option(None, 'Only these, such as "Hit@1 t2i/MedR".', metavar="NAMES", joins=" "),
    all_groups: bool = option(False, "Every group, not only the largest.", flags=("--all",)),
    tables: str | None = option(
        None, 'Of a robustness study, such as "drops words captions".', metavar="NAMES", joins=" "
    ),
    json: Json = False,
) -> core.Presented:
    """Print the values of a run, or of several side by side.

    To test whether runs differ, use `crosslens compare`.
    """
    if (studies := load_studies(runs)) is not None:
        return _shown_studies(studies, by, metrics, tables, added.columns)
    loaded = load_runs(runs, added.columns)
    run, largest = loaded[0], None if all_groups or json else _MAX_GROUPS
    if len(loaded) == 1 and by is None:
        from crosslens.metrics import select_metrics

        return replace(run, values={name: run[name] for name in select_metrics(run, metrics)})
    shown: report.SideBySide | report.GroupedMetrics
    if len(loaded) > 1:
        shown = report.side_by_side(loaded, metrics, column=by, largest=largest)
    else:
        assert by is not None
        if (own := report.column_of(run, by)) != by:
            print_note(f"note: the dataset's {by} is called {own} in runs, which have a {by} of their own")
        few = _first_of_each_direction(report.groupable_metrics(run, by)) if metrics is None and not json else metrics
        shown = report.group_metrics(run, by, few, largest=largest)
        if run.protocol and not json:
            print_note(f"note: {run.label}")
    if metrics is None and by is not None and not json:
        which = "metric" if len(loaded) > 1 else "metrics"
        print_note(f"note: the first {which} of each direction; choose others with --metrics")
    if any(shown.left_out.values()):
        print_note(f"note: the {_MAX_GROUPS} largest groups; --all shows every group")
    return shown


def _shown_studies(
    studies: dict[str, pipeline.Robustness], by: str | None, metric: str | None, tables: str | None,
    columns: Path | None,
) -> pipeline.Robustness | pipeline.DropTable | report.GroupedTable:  # fmt: skip
    """All tables of one study; of several, or of a metric of one, the drops in one table."""
    first = next(iter(studies.values()))
    if columns is not None:
        return drops_by_column(first, by, columns)
    if len(studies) == 1 and by is None and metric is None:
        print_notes(first.about.get("notes", ()))
        return replace(first, shown=named_tables(tables))
    if tables is not None:
        raise UsageError("--tables is of one study", fix="name one study, or drop --tables")
    return pipeline.drop_table(studies, metric, by=by)


def _first_of_each_direction(names: list[str]) -> list[str]:
    chosen: dict[str, list[str]] = {}
    for name in names:
        chosen.setdefault(core.split_name(name)[0], []).append(name)
    return [name for group in chosen.values() for name in group[:_MAX_METRICS]]


@command(
    "crosslens compare runs/clip-b32 runs/siglip",
    'crosslens compare runs/clip-b32 runs/siglip --metrics "t2i/Hit@1 i2t/mAP@R"',
    "crosslens compare runs/a runs/b --columns difficulty.parquet --by difficulty",
    "crosslens compare runs/a runs/b runs/c --all-pairs",
    "crosslens compare runs/a runs/b runs/c --all-pairs --latex > table.tex",
    "crosslens compare runs/triplet runs/sam --html changes.html",
)
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Two or more run folders; the first is compared with the others.")],
    source: DatasetOfRuns,
    encode: Annotated[EncodeOptions, Flags(only=("image_folder",))],
    *,
    metrics: str | None = option(None, 'Only these, such as "t2i/Hit@1 i2t/mAP@R".', metavar="NAMES", joins=" "),
    by: str | None = option(None, "Compare within each group of a column of the dataset.", metavar="COLUMN"),
    added: ColumnOptions,
    correction: str = option("holm", "For multiple comparisons: holm, bh or none.", metavar="NAME"),
    permutations: int = option(10_000, "Permutations of the paired test.", metavar="N", minimum=1, maximum=10_000_000),
    seed: int = option(0, "Seed of the permutations.", metavar="N"),
    all_pairs: bool = option(False, "Compare every run with every other one: one table with significance marks."),
    latex: bool = option(False, "Print a LaTeX table: intervals, the best in bold, significance marks."),
    page: ChangeOptions,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Test whether runs differ significantly.

    Runs must share their queries. Tests are paired, over images, and corrected for multiple comparisons. With --html,
    a page shows what changed from the first of two runs to the second: queries won and lost, with pictures, and why.
    """
    if len(runs) < 2:
        raise UsageError("a comparison requires two runs", fix="name a second run folder")
    if page.html is not None and (len(runs) > 2 or by is not None or all_pairs):
        raise UsageError("--html is a page of two runs", fix="name two runs, without --by and --all-pairs")
    if page.html is None and (source != DatasetOptions() or encode.image_folder is not None or page != ChangeOptions()):
        raise UsageError(
            "a dataset, --image-folder, --direction, --phi and --show are for --html", fix="pass --html FILE"
        )
    check_outputs(page.html, overwrite=overwrite)
    loaded = load_runs(runs, added.columns)
    if by is not None:
        if latex:
            raise UsageError("--latex does not go with --by", fix="drop one of them, or use --json")
        options: dict[str, Any] = {"correction": correction, "permutations": permutations, "seed": seed}
        _compare_groups(
            report.compare_groups(loaded, by, metrics=metrics, all_pairs=all_pairs, **options), by, json=json
        )
        return
    comparison = pipeline.compare(
        *loaded, metrics=metrics, all_pairs=all_pairs, correction=correction, permutations=permutations, seed=seed
    )
    changed: dict[str, Any] = {}
    if page.html is not None:
        changed = _write_changes(loaded, comparison, source, encode.image_folder, page)
    if json:
        print_json({**comparison.as_dict(), **changed})
    elif latex:
        print_result(report.comparison_latex(comparison).removesuffix("\n"))
    else:
        print_result(comparison.text(terminal_width()))


def _write_changes(
    runs: list[core.Run], comparison: pipeline.Comparison, source: DatasetOptions, image_folder: str | Path | None,
    options: ChangeOptions,
) -> dict[str, Any]:  # fmt: skip
    """Write the page of what changed; returns what JSON says of it."""
    assert options.html is not None
    reader_options = source.reader_options()
    dataset = explanations.dataset_of_run(runs[0], source.dataset, **reader_options)
    if source.dataset is None and not reader_options and (note := explanations.dataset_change(runs[0], dataset)):
        print_note(f"note: {note}")
    changes = explanations.compare_queries(
        runs[0], runs[1], dataset, options.direction, names=(comparison.baseline, comparison.others[0]),
        phi=options.phi, most=options.show, permutations=comparison.permutations, seed=comparison.seed,
        progress=progress_bar(),
    )  # fmt: skip
    files, problem = explanations.image_files_of_run(runs[0], dataset, changes.images, image_folder)
    page = report.run_changes_page(changes, comparison, dataset, files, problem=problem)
    core.write_text(options.html, page)
    print_note(f"written: {options.html}")
    return {"changes": changes.as_dict(), "written": [str(options.html)]}


def _compare_groups(compared: dict[str, pipeline.Comparison], column: str, *, json: bool) -> None:
    if json:
        print_json({"by": column, "groups": {group: comparison.as_dict() for group, comparison in compared.items()}})
        return
    print_result(report.grouped_comparison_text(compared, column, terminal_width()))

"""``crosslens explain`` and ``counterfactual``: why queries fail, and the smallest edit that changes their result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from crosslens import comparisons, explanations, pipeline, values
from crosslens.cli.answers import Write, wrote
from crosslens.cli.commands.evaluate import PROTOCOL_HELP, encoding_of, followed, with_protocol
from crosslens.cli.console import print_note, progress_bar
from crosslens.cli.datasets import DatasetOfRuns, DatasetOptions
from crosslens.cli.flags import ColumnOptions, Flags, Overwrite, command, output_option, positional
from crosslens.cli.stored_runs import dataset_of_run, load_run, load_runs
from crosslens.core import Options, Presented, UsageError, option
from crosslens.encode import EncodeOptions
from crosslens.explanations import CounterfactualOptions

_DEFAULT_SAMPLE = 50


@dataclass(frozen=True)
class FailureOptions(Options):
    """What is done with all failures of a run."""

    compare: Path | None = option(None, "All failures: how this other run's confusions differ.", metavar="RUN")
    depth: int | None = option(
        None, "All failures: merge concepts into hypernyms, N steps below the top of WordNet's tree.", minimum=0
    )
    size_base: str = option(
        "ground_truth", "All failures: what differences of box areas are divided by: the right image's box "
        "(ground_truth), or the smaller of the two (min).", choices=("ground_truth", "min"),
    )  # fmt: skip
    show: int = option(10, "All failures: rows of rules and confusions.", minimum=1)
    seed: int = option(0, "All failures: seed of the intervals.")
    output: Path | None = output_option("All failures: a folder with every table.", "FOLDER")


@command(
    "crosslens explain runs/tiny --query 102",
    "crosslens explain runs/tiny --query 102 --query 702 --write why.html",
    "crosslens explain runs/tiny",
    "crosslens explain runs/tiny -o why/ --write failures.html --depth 6",
    "crosslens explain runs/tiny --compare runs/clip",
    "crosslens explain runs/tiny runs/clip runs/siglip --write table.tex",
    "crosslens explain runs/clip --dataset coco --query 91654 --json \\",
    "    --captions captions_val2017.json --instances instances_val2017.json",
    common=("query", "direction", "by", "compare", "show"),
)
def explain(
    source: DatasetOfRuns,
    encode: Annotated[EncodeOptions, Flags(only=("image_folder",))],
    *,
    runs: list[Path] = positional(..., "A run folder, or several for one table of their metrics."),
    query: list[str] | None = option(None, "A query to explain in full, by its id; may be repeated.", metavar="ID"),
    direction: str | None = option(None, "[default: the one that has the query; texts first]", metavar="t2i|t2t|i2t"),
    protocol: str | None = option(None, PROTOCOL_HELP.format("expl")),
    by: str | None = option(None, "All failures: how many and why, by a column of the dataset."),
    added: ColumnOptions,
    failures: FailureOptions,
    write: Write = None,
    overwrite: Overwrite = False,
) -> Presented:
    """Explain failures in objects, counts and words.

    With --query, one query in full: what it asks for and whether the retrieved image has it, what both images have
    in common, and two sentences that say what went wrong. Without, all failures of the run: concept metrics, causes,
    rules, and which concepts are confused, which --write draws as heat maps. Several runs give one table of concept
    metrics, a row per run.
    """
    single = {"--query": query, "--compare": failures.compare, "--output": failures.output}
    if len(runs) > 1 and (flags := [flag for flag, value in single.items() if value]):
        raise UsageError(f"{flags[0]} is for one run, not for {len(runs)}", fix=f"drop {flags[0]}, or name one run")
    if query and (failures.compare or failures.output or failures.depth is not None):
        raise UsageError(
            "--compare, --depth and --output are for all failures, not for --query", fix="drop them, or drop --query"
        )
    paper, record = followed(protocol, "explain")
    settings = {} if paper is None else dict(paper.settings["explain"])
    if paper is not None and failures.size_base != settings["base"]:
        raise paper.contradiction("size_base", failures.size_base, settings["base"])
    if added.columns is not None and by is None:
        raise UsageError("--columns requires --by", fix="name one of its columns: --by difficulty")
    if by is not None and (query or len(runs) > 1 or failures.compare or failures.output):
        raise UsageError("--by is for all failures of one run", fix="drop --by, or the other options")
    loaded = load_runs(runs[:1], added.columns)[0]
    dataset = dataset_of_run(loaded, source)
    result: Presented
    if query:
        explained = tuple(explanations.explain_queries(loaded, dataset, query, direction, **settings))
        files: dict[str, str] = {}
        if write:
            pictures = (picture for entry in explained for picture in (entry.right, entry.other))
            images = {picture.image for picture in pictures if picture is not None}
            files, problem = explanations.image_files_of_run(loaded, dataset, images, encode.image_folder)
            if problem:
                print_note(f"note: boxes without pictures: {problem}")
        result = explanations.ExplainedQueries(loaded.name, dataset.name, explained, files)
        return with_protocol(result, record)
    settings |= {"depth": failures.depth, "base": failures.size_base, "seed": failures.seed, "progress": progress_bar()}
    if by is not None:
        overview = explanations.explain_run(loaded, dataset, direction, **settings)
        groups = pipeline.group_members(loaded, overview.direction, by)
        labels = {query: group for group, queries in groups.items() for query in queries}
        result = pipeline.failures_by(overview, labels, by)
    elif len(runs) > 1:
        several = [loaded, *map(load_run, runs[1:])]
        overviews: dict[str, explanations.Overview] = {}
        for name, run in zip(comparisons.run_labels(tuple(several)), several, strict=True):
            first = next(iter(overviews.values()), None)
            way = direction if first is None else first.direction
            overviews[name] = explanations.explain_run(run, dataset, way, **settings)
        result = explanations.tabulate_overviews(overviews)
    else:
        result = _explain_failures(loaded, dataset, direction, failures, overwrite, settings, record)
    return with_protocol(result, record)


def _explain_failures(
    run: values.Run, dataset: values.Dataset, direction: str | None, options: FailureOptions, overwrite: bool,
    settings: dict[str, Any], record: dict[str, Any] | None,
) -> explanations.Overview | explanations.OverviewComparison:  # fmt: skip
    def explain(run: values.Run, direction: str | None) -> explanations.Overview:
        overview = explanations.explain_run(run, dataset, direction, **settings)
        followed_note = () if record is None else (f"The figures follow the protocol {record['name']}.",)
        return replace(overview, notes=(*overview.notes, *followed_note), listed=options.show)

    failures = explain(run, direction)
    comparison = None
    if options.compare is not None:
        other = explain(load_run(options.compare), failures.direction)
        comparison = explanations.compare_overviews(failures, other, depth=options.depth)
    if options.output is not None:
        content = None if comparison is None else comparison.as_dict()
        wrote(explanations.save_overview(failures, options.output, comparison=content, overwrite=overwrite))
    return failures if comparison is None else comparison


@command(
    "crosslens counterfactual --dataset scenes/ --model tiny --query 101",
    "crosslens counterfactual --dataset scenes/ --model tiny --sample 50 --only wrong",
    "crosslens counterfactual --dataset captions.jsonl --image-folder photos \\",
    "    --model clip:openai/clip-vit-base-patch32 --perturbations adversarial --write flips.html",
    "crosslens counterfactual --dataset captions.jsonl --image-text mean --model sentence:all-MiniLM-L6-v2 \\",
    "    --sample 20 --perturbations char_swap,antonym",
    common=("query", "sample", "only", "perturbations", "show"),
)
def counterfactual(
    source: Annotated[DatasetOptions, Flags(required=("dataset",))],
    encode: EncodeOptions,
    options: Annotated[
        CounterfactualOptions,
        Flags(help={"sample": f"Draw N queries by the seed. [default: {_DEFAULT_SAMPLE} without --query]"}),
    ],
    model: str = option(..., "The model (see crosslens encode --list)."),
    query: list[str] | None = option(None, "A caption query, by its id; may be repeated.", metavar="ID"),
    show: int = option(5, "Print N queries, the smallest edits first.", minimum=0),
) -> explanations.Counterfactuals:
    """Find the smallest edit of a query that flips its top-1.

    Every single edit that the perturbations can make is a candidate; those that change the fewest characters are tried
    first. A correct result becomes wrong, or a wrong one correct; where nothing flips within the budget, the closest
    edit is shown.
    """
    if options.query_caption and options.image_text is None:
        raise UsageError("--query-caption requires --image-text", fix="pass --image-text, or drop --query-caption")
    if options.sample is None and not query:
        options = replace(options, sample=_DEFAULT_SAMPLE)
    encoding = encoding_of(encode)
    result = explanations.find_counterfactuals(
        source.load(), model, query, progress=progress_bar(), **vars(options), **vars(encoding)
    )
    return replace(result, shown=show)

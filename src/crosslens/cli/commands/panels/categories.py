"""``crosslens analyze categories``: results by level of difficulty, or by any other column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

import crosslens.analyze as analyze
import crosslens.core as core
import crosslens.encode as encoders
import crosslens.statistics as statistics
from crosslens.cli.answers import wrote
from crosslens.cli.commands.evaluate import open_cache
from crosslens.cli.commands.panels.sources import SourceOptions, StoredRuns, dataset_of, load_runs, scores_of_run
from crosslens.cli.console import check_outputs, print_note, progress_bar
from crosslens.cli.datasets import DatasetOfRuns
from crosslens.cli.flags import OUTPUT, Flags, IntervalOptions, Overwrite, TrustCodeFlag, command
from crosslens.core import Options, UsageError, option
from crosslens.encode import EncodeOptions


@dataclass(frozen=True)
class NegativeOptions(Options):
    """Pairs that do not match."""

    rejected: Path | None = option(
        None, "Captions that do not match: image, text; score[MODEL] if scored.", metavar="FILE"
    )
    negatives: str | None = option(
        None, "How many such pairs per image; without --rejected, drawn captions of other images. [default: 1]",
        metavar="N|all",
    )  # fmt: skip
    area: str = option("step", "AUPRC as average precision (step) or by trapezoids.", metavar="step|trapezoid")


@command(
    "crosslens analyze categories runs/clip runs/blip --difficulty levels.parquet",
    "crosslens analyze categories runs/clip --difficulty texts.csv --by style \\",
    "    --metrics 'Hit@1 Hit@10' -o styles.csv",
    "crosslens analyze categories runs/clip --difficulty levels.parquet \\",
    "    --rejected rejected.csv --write difficulty.html",
)
def categories(
    source: DatasetOfRuns,
    encode: Annotated[EncodeOptions, Flags(without=("skip_bad",))],
    intervals: IntervalOptions,
    pairs: NegativeOptions,
    models: SourceOptions,
    runs: Annotated[list[Path] | None, typer.Argument(help="Run folders of one dataset, one per model.")] = None,
    difficulty: Path = option(
        ..., "A table with the ids of captions, images or both: .parquet, .csv or .tsv.", metavar="FILE"
    ),
    by: str = option("difficulty", "The column of the table that holds the categories.", metavar="COLUMN"),
    metrics: str | None = option(
        None, "Metrics of ranks. [default: Hit@1 Hit@5 Hit@10 MedR[all] MeanR[all] mAP@R]", metavar="NAMES"
    ),
    output: Path | None = option(None, "Every figure as a row: .parquet or .csv.", metavar="FILE", flags=OUTPUT),
    overwrite: Overwrite = False,
    trust_code: TrustCodeFlag = False,
) -> analyze.CategoryResults:
    """Show results by level of difficulty, or by any column.

    Retrieval from the ranks that runs keep, divided by all queries (the captions' columns add up to the total) and by
    the category's own. With --rejected or --negatives also the area under the precision-recall curve (AUPRC): each
    category's pairs against pairs that do not match. Several runs are a panel, with mean and spread.
    """
    check_outputs(output, overwrite=overwrite)
    if output is not None:
        analyze.check_table_file(output)
    if pairs.area not in statistics.AREAS:
        raise core.UnknownNameError("area", pairs.area, statistics.AREAS)
    labels = analyze.Categories.of(difficulty, by)
    loaded = load_runs(runs or [])
    labelled, scores = None, {}
    if pairs.rejected or pairs.negatives or models.given:
        encoding = replace(encode, cache=open_cache(encode), notify=print_note)
        dataset = source.load_if_given() or dataset_of(loaded)
        labelled = analyze.classification_pairs(
            dataset, labels, pairs.rejected, negatives=pairs.negatives or 1, seed=intervals.seed
        )
        scores = _scores_of_runs(labelled, loaded, encoding, rejected=bool(pairs.rejected), trust_code=trust_code)
        scores |= models.cosines(labelled.pairs, encoding) | models.others(labelled.pairs, encoding)
    result = analyze.category_results(
        {name: run for name, (_, run) in loaded.items()}, labels, metrics=metrics, pairs=labelled, scores=scores,
        area=pairs.area, **vars(intervals),
    )  # fmt: skip
    if output is not None:
        wrote(analyze.write_table(result.table, output))
    return result


def _scores_of_runs(
    labelled: analyze.ClassificationPairs,
    runs: StoredRuns,
    encoding: EncodeOptions,
    *,
    rejected: bool,
    trust_code: bool,
) -> dict[str, Any]:
    """What each run's recipe names scores the pairs; captions that were rejected, only a model can."""
    scores: dict[str, Any] = {}
    for name, (folder, _) in runs.items():
        if name in labelled.scores:
            continue
        member = scores_of_run(name, folder, encoding, trust_code=trust_code)
        if not rejected:
            scores[name] = labelled.pairs.from_matrix(member.scores, f"the scores of {name}")
            continue
        if not member.model:
            raise UsageError(
                f"the run {name!r} names no model that could score the rejected captions",
                fix=f"add a column score[{name}] to both tables, or pass --scores with the scores of all pairs",
            )
        own = replace(encoding, image_folder=encoding.image_folder or member.home)
        encoder = encoders.load_encoder(member.model, own)
        scores[name] = labelled.pairs.from_model(encoder, own, progress=progress_bar())
    return scores

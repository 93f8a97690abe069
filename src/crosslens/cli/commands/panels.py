"""What scores pairs: the models behind stored runs, models that are named, and tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from crosslens import analyze, encode as encoders, pipeline, statistics, storage
from crosslens.cli.answers import check_tables, write_table
from crosslens.cli.commands.evaluate import encoding_of
from crosslens.cli.console import confirm_code, progress_bar
from crosslens.cli.datasets import DatasetOfRuns, picture_files
from crosslens.cli.flags import Flags, IntervalOptions, Overwrite, TrustCodeFlag, command, output_option, positional
from crosslens.cli.stored_runs import StoredRuns, dataset_of, load_named_runs
from crosslens.core import Options, UnknownNameError, UsageError, option
from crosslens.encode import EncodeOptions


@dataclass(frozen=True)
class SourceOptions(Options, group="Model"):
    """What scores pairs besides runs."""

    model: tuple[str, ...] = option((), "A model, or file:FOLDER; may be repeated.")
    pair_model: tuple[str, ...] = option((), "A model that scores pairs, such as blip:… or vqa:…; may be repeated.")
    scores: tuple[Path, ...] = option((), "A table: image, caption, score; may be repeated.")

    @property
    def are_named(self) -> bool:
        return bool(self.model or self.pair_model or self.scores)

    def cosines(self, pairs: analyze.ImageCaptionPairs, encoding: EncodeOptions) -> dict[str, Any]:
        scores = {}
        for name in self.model:
            encoder = encoders.load_encoder(name, encoding)
            scores[encoder.name] = pairs.from_model(encoder, encoding, progress=progress_bar())
        return scores

    def others(self, pairs: analyze.ImageCaptionPairs, encoding: EncodeOptions) -> dict[str, Any]:
        """The scores of models of pairs, and those in tables."""
        scores: dict[str, Any] = {}
        for name in self.pair_model:
            scorer = encoders.load_pair_scorer(name, encoding)
            scores[scorer.name] = pairs.from_pair_model(scorer, encoding, progress_bar())
        return scores | {file.stem: pairs.from_table(file) for file in self.scores}


def scores_of_runs(
    runs: StoredRuns, encoding: EncodeOptions, *, trust_code: bool
) -> Iterator[tuple[str, pipeline.ModelScores]]:
    """The scores that each run was computed from, one after the other."""
    trusted = trust_code or confirm_code
    with storage.trusting(trusted):  # asked about the code that any of them names before the first is encoded
        for folder, _ in runs.values():
            pipeline.require_trusted_run(folder)
    for name, (folder, _) in runs.items():
        source = f"{name}={folder}"
        yield name, pipeline.read_panel([source], encoding=encoding, trust_code=trusted, progress=progress_bar())[0]


@dataclass(frozen=True)
class NegativeOptions(Options):
    """Pairs that do not match."""

    rejected: Path | None = option(None, "Captions that do not match: image, text; score[MODEL] if scored.")
    negatives: str | None = option(
        None,
        "How many such pairs per image; without --rejected, drawn captions of other images. [default: 1]",
        metavar="N|all",
    )
    area: str = option("step", "AUPRC as average precision (step) or by trapezoids.", metavar="step|trapezoid")


@command(
    "crosslens analyze categories runs/clip runs/blip --difficulty levels.parquet",
    "crosslens analyze categories runs/clip --difficulty texts.csv --by style --metrics 'Hit@1 Hit@10' -o styles.csv",
    "crosslens analyze categories runs/clip --difficulty levels.parquet \\",
    "    --rejected rejected.csv --write difficulty.html",
    common=("by", "rejected", "negatives"),
)
def categories(
    source: DatasetOfRuns,
    encode: Annotated[EncodeOptions, Flags(without=("skip_bad",))],
    intervals: IntervalOptions,
    pairs: NegativeOptions,
    models: SourceOptions,
    runs: list[Path] | None = positional(None, "Run folders of one dataset, one per model."),
    difficulty: Path = option(..., "A table with the ids of captions, images or both: .parquet, .csv or .tsv."),
    by: str = option("difficulty", "The column of the table that holds the categories."),
    metrics: str | None = option(None, "Metrics of ranks. [default: Hit@1 Hit@5 Hit@10 MedR[all] MeanR[all] mAP@R]"),
    output: Path | None = output_option("Every figure as a row: .parquet or .csv."),
    overwrite: Overwrite = False,
    trust_code: TrustCodeFlag = False,
) -> analyze.CategoryResults:
    """Show results by level of difficulty, or by any column.

    Retrieval from the ranks that runs keep, divided by all queries (the captions' columns add up to the total) and by
    the category's own. With --rejected or --negatives also the area under the precision-recall curve (AUPRC): each
    category's pairs against pairs that do not match. Several runs are a panel, with mean and spread.
    """
    check_tables(output, overwrite=overwrite)
    if pairs.area not in statistics.AREAS:
        raise UnknownNameError("area", pairs.area, statistics.AREAS)
    labels = analyze.Categories.of(difficulty, by)
    loaded = load_named_runs(runs or [])
    labelled, scores = None, dict[str, Any]()
    if pairs.rejected or pairs.negatives or models.are_named:
        encoding = encoding_of(encode)
        dataset = source.load_if_given() or dataset_of(loaded)
        labelled = analyze.classification_pairs(
            dataset, labels, pairs.rejected, negatives=pairs.negatives or 1, seed=intervals.seed
        )
        needed = {name: stored for name, stored in loaded.items() if name not in labelled.scores}
        for name, member in scores_of_runs(needed, encoding, trust_code=trust_code):
            if not pairs.rejected:
                scores[name] = labelled.pairs.from_matrix(member.scores, name)
                continue
            if not member.model:  # which alone can score captions that were rejected
                raise UsageError(
                    f"the run {name!r} names no model that could score the rejected captions",
                    fix=f"add a column score[{name}] to both tables, or pass --scores with the scores of all pairs",
                )
            options = replace(encoding, image_folder=encoding.image_folder or member.home)
            encoder = encoders.load_encoder(member.model, options)
            scores[name] = labelled.pairs.from_model(encoder, options, progress=progress_bar())
        scores |= models.cosines(labelled.pairs, encoding) | models.others(labelled.pairs, encoding)
    result = analyze.category_results(
        {name: run for name, (_, run) in loaded.items()}, labels, metrics=metrics, pairs=labelled, scores=scores,
        area=pairs.area, **vars(intervals),
    )  # fmt: skip
    write_table(result.table, output)
    return result


# Written out: help must not load the module that holds them, which loads numpy.
_FORMS = ("cosine", "clipscore", "hessel")


@command(
    "crosslens analyze scorers runs/clip --pair-model vqa:models/llava \\",
    "    --difficulty difficulty.parquet --write disagreements.html",
    "crosslens analyze scorers --dataset captions.jsonl --form clipscore \\",
    "    --model clip:openai/clip-vit-base-patch32 --phi cider --write s.html",
    "crosslens analyze scorers runs/clip --pair-model 'vqa:http://127.0.0.1:8000/v1?model=NAME' -o pairs.csv",
    common=("scores", "pair_model", "phi", "form", "difficulty"),
)
def scorers(
    source: DatasetOfRuns,
    encode: Annotated[EncodeOptions, Flags(without=("skip_bad",))],
    intervals: IntervalOptions,
    models: SourceOptions,
    runs: list[Path] | None = positional(None, "Run folders, whose models are scorers."),
    phi: list[str] | None = option(None, "A similarity of a caption to the image's other captions; may be repeated."),
    form: str = option(
        "cosine", "What becomes of the cosine of a model or a run.", metavar="|".join(_FORMS), choices=_FORMS
    ),
    difficulty: Path | None = option(None, "A table with the ids of captions, images or both, to split the pairs by."),
    by: str = option("difficulty", "The column of that table."),
    show: int = option(5, "How many disagreements are shown.", minimum=0),
    output: Path | None = output_option("Every pair with both scores: .parquet or .csv."),
    overwrite: Overwrite = False,
    trust_code: TrustCodeFlag = False,
) -> analyze.ScorerComparison:
    """Compare two scorers of the same images and captions.

    Name two: runs, models, models of pairs (blip:, vqa:), similarities of captions, or tables of scores. Every caption
    is scored with its image; shown are distributions by difficulty, correlations, Bland-Altman limits of agreement,
    and the pairs on which the two disagree most.
    """
    check_tables(output, overwrite=overwrite)
    words = [*(runs or ()), *models.model, *models.pair_model, *(phi or ()), *models.scores]
    if len(words) != 2:
        raise UsageError(f"{len(words)} of two scorers", fix="name two: runs, --model, --pair-model, --phi or --scores")
    loaded = load_named_runs(runs or [])
    dataset = source.load_if_given() or dataset_of(loaded)
    encoding = encoding_of(encode)
    pairs = analyze.ImageCaptionPairs.of_captions(dataset)
    cosines: dict[str, Any] = {}
    for name, member in scores_of_runs(loaded, encoding, trust_code=trust_code):
        cosines[name] = pairs.from_matrix(member.scores, name)
    cosines |= models.cosines(pairs, encoding)
    scores: dict[str, Any] = {name: analyze.clipscore(values, form) for name, values in cosines.items()}
    scores |= models.others(pairs, encoding)
    scores |= {name: pairs.from_similarity(name, progress=progress_bar()) for name in phi or ()}
    if len(scores) != 2:
        raise UsageError(f"both scorers are called {next(iter(scores))!r}", fix="name two different ones")
    result = analyze.compare_scorers(dataset, scores, difficulty, by=by, **vars(intervals))
    write_table(result.table, output)
    pictures = picture_files(dataset, [run for _, run in loaded.values()], encode.image_folder)
    return replace(result, shown=show, pictures=pictures)

"""``crosslens analyze difficulty`` and ``filter-loss``: how hard pairs are, and which of them a filter loses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from crosslens import analyze, data, pipeline
from crosslens.analyze import CalibrationOptions
from crosslens.cli.answers import check_tables, write_table, wrote
from crosslens.cli.commands.evaluate import encoding_of
from crosslens.cli.console import check_outputs, confirm_code, progress_bar
from crosslens.cli.datasets import DATASET_WORDS, DatasetOptions, load_dataset_words, picture_files
from crosslens.cli.flags import SEVERAL, Flags, Overwrite, TrustCodeFlag, command, output_option, positional
from crosslens.cli.stored_runs import load_run
from crosslens.core import Options, UsageError, option
from crosslens.encode import EncodeOptions


@dataclass(frozen=True)
class ThresholdOptions(Options, group="Input"):
    """Where the models' thresholds come from and go to."""

    calibration: tuple[str, ...] = option(
        (),
        "Where thresholds come from: runs of the same models over a calibration set (NAME=RUN where names differ), "
        "NAME=SCORES.npy, NAME=NUMBER, or self (the evaluated pairs).",
        metavar=f"RUN|NAME=NUMBER{SEVERAL}",
    )
    calibration_dataset: str | None = option(
        None, "The dataset of score matrices among --calibration.", metavar=DATASET_WORDS
    )
    thresholds: Path | None = option(None, "Thresholds that --save-thresholds wrote.")
    save_thresholds: Path | None = option(None, "Keep the thresholds and what they come from, as JSON.", group="Output")


@dataclass(frozen=True)
class PanelOptions(Options):
    """How the votes of the panel become levels, and what else is measured of it."""

    tie_breaker: str | None = option(None, "The model that is asked where the others, of an even number, disagree.")
    mapping: str | None = option(
        None,
        f"Levels by votes or shares: 'easy=5-6 medium=2-4 hard=0-1'. [default: {analyze.DEFAULT_LEVELS}]",
        metavar="LEVELS",
    )
    stability: int | None = option(None, "Repeat with random panels of N models: Cohen's κ.", minimum=1)
    disagree: tuple[str, ...] = option(
        (), "Show the pairs that one of two models matches and the other does not.", metavar=f"NAME{SEVERAL}"
    )
    levels: Path | None = option(None, "With --disagree: levels of the same pairs by another panel, as -o wrote them.")
    repeats: int = option(10, "How many random panels.", minimum=2, maximum=1000)


@command(
    "crosslens analyze difficulty --runs runs/clip runs/siglip runs/blip \\",
    "    --calibration cal/clip cal/siglip cal/blip -o difficulty.parquet",
    "crosslens analyze difficulty --runs runs/* --calibration self --write hardest.html",
    "crosslens analyze difficulty --dataset coco.jsonl --runs a=a.npy b=b.npy \\",
    "    --calibration a=0.26 b=0.22 --mapping 'easy=2 hard=0-1'",
    "crosslens analyze difficulty --runs runs/* --thresholds thresholds.json \\",
    "    --tie-breaker clip-g --stability 5 --write shares.svg",
    "crosslens analyze difficulty --runs runs/convnext runs/eva02 --thresholds thresholds.json \\",
    "    --disagree convnext eva02 --levels difficulty.parquet --write disagreements.html",
    common=("calibration", "thresholds", "mapping", "disagree", "show"),
)
def difficulty(
    *,
    runs: list[str] = option(
        ...,
        "The panel: run folders of one dataset, or NAME=SCORES.npy (images × captions).",
        metavar=f"RUN|NAME=FILE{SEVERAL}",
    ),
    choice: ThresholdOptions,
    calibration: CalibrationOptions,
    votes: PanelOptions,
    output: Path | None = output_option("Every pair: .parquet or .csv."),
    show: int = option(5, "How many of the hardest pairs are printed.", minimum=0),
    beside: list[Path] | None = option(
        None, "Tables of other datasets, to show their shares beside.", metavar=f"FILE{SEVERAL}"
    ),
    source: Annotated[
        DatasetOptions, Flags(help={"dataset": "What score matrices are over. [default: as in the first run's recipe]"})
    ],
    qrels: Path | None = option(
        None, "The pairs, where captions have several images. [default: each caption with its image]"
    ),
    encode: Annotated[EncodeOptions, Flags(only=("device", "cache", "offline", "image_folder"))],
    trust_code: TrustCodeFlag = False,
    overwrite: Overwrite = False,
) -> analyze.DifficultyStudy:
    """Measure how hard each pair is for a panel of models.

    Each model says whether a caption and its image match: whether their score reaches the model's threshold, that of
    the highest F1 on a calibration set. Easy: all say so; hard: none does; medium: the rest.
    """
    check_outputs(output, choice.save_thresholds, overwrite=overwrite)
    if output is not None:
        analyze.check_table_file(output)
    disagree = votes.disagree
    if disagree and len(disagree) != 2:
        raise UsageError(f"{len(disagree)} models after --disagree", fix="name two")
    if votes.levels is not None and not disagree:
        raise UsageError("--levels without --disagree", fix="name two models by --disagree")
    others = [analyze.read_difficulty(file) for file in beside or ()]
    stored = [
        load_run(Path(name))
        for _, name in map(pipeline.parse_source, runs)
        if Path(name).suffix.lower() not in data.ARRAY_SUFFIXES
    ]
    keywords: dict[str, Any] = {
        "encoding": encoding_of(encode),
        "trust_code": True if trust_code else confirm_code,
        "progress": progress_bar(),
    }
    panel = pipeline.read_panel(runs, source.load_if_given(), **keywords)
    if not choice.calibration and choice.thresholds is None:
        raise UsageError(
            "no thresholds",
            fix="pass --calibration with runs over a calibration set, NAME=NUMBER or self, or --thresholds FILE",
        )
    words = choice.calibration_dataset
    thresholds = pipeline.calibrate_panel(
        panel,
        choice.calibration,
        stored=None if choice.thresholds is None else analyze.read_thresholds(choice.thresholds),
        dataset=None if words is None else load_dataset_words(words),
        settings=vars(calibration),
        **keywords,
    )
    dataset = panel[0].dataset
    result = analyze.difficulty(
        dataset,
        {member.name: member.scores for member in panel},
        {name: calibrated.threshold for name, calibrated in thresholds.items()},
        tie_breaker=votes.tie_breaker,
        mapping=votes.mapping,
        relevance=None if qrels is None else data.read_qrels(qrels),
    )
    panels = None
    if votes.stability is not None:
        panels = analyze.measure_stability(result, votes.stability, repeats=votes.repeats, seed=calibration.seed)
    left_out = analyze.measure_left_out(result)
    differ = None
    if disagree:
        judges = None if votes.levels is None else analyze.read_difficulty(votes.levels)
        differ = result.disagreements(disagree[0], disagree[1], judges)
    pictures = picture_files(dataset, stored, encode.image_folder)
    if output is not None:
        wrote(result.write(output))
    if choice.save_thresholds is not None:
        wrote(analyze.write_thresholds(choice.save_thresholds, thresholds))
    return analyze.DifficultyStudy(result, tuple(others), thresholds, left_out, panels, differ, dataset, pictures, show)


_THRESHOLDS = ", ".join(map(str, analyze.WEB_THRESHOLDS))


@command(
    "crosslens analyze filter-loss difficulty.parquet --model clip-b32",
    "crosslens analyze filter-loss difficulty.parquet --model clip-b32 \\",
    "    --web-scores datacomp.npy --keep 0.9 0.4 0.1 --write loss.html",
)
def filter_loss(
    *,
    table: Path = positional(..., "The table that crosslens analyze difficulty -o wrote."),
    model: str | None = option(None, "Whose scores filter. [default: the only model]", metavar="NAME"),
    threshold: list[float] | None = option(
        None,
        f"Pairs below it are lost. [default without --keep: {_THRESHOLDS}, LAION's for CLIP ViT-B/32]",
        metavar=f"SCORE{SEVERAL}",
    ),
    keep: list[float] | None = option(
        None, "Thresholds that keep this share of --web-scores.", metavar=f"SHARE{SEVERAL}"
    ),
    web_scores: Path | None = option(
        None, "The same model's scores of unfiltered web pairs: .npy, .npz, .safetensors, .pt."
    ),
    output: Path | None = output_option("The table: .parquet or .csv."),
    overwrite: Overwrite = False,
) -> analyze.FilterLoss:
    """Measure which valid captions a filter throws away.

    Web data are filtered by a model's score of image and text. This is the share of a dataset's pairs that such a
    filter would lose, over all and by level of difficulty.
    """
    check_tables(output, overwrite=overwrite)
    result = analyze.measure_filter_loss(
        analyze.read_difficulty(table), model, thresholds=threshold or None, keep=keep or (),
        web_scores=None if web_scores is None else data.read_array(web_scores),
    )  # fmt: skip
    write_table(result.table, output)
    return result

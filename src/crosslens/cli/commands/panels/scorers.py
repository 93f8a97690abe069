"""``crosslens analyze scorers``: two scorers of the same pairs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import crosslens.analyze as analyze
import crosslens.core as core
from crosslens.cli.answers import wrote
from crosslens.cli.commands.evaluate import open_cache
from crosslens.cli.commands.panels.sources import SourceOptions, StoredRuns, dataset_of, load_runs, scores_of_run
from crosslens.cli.console import check_outputs, print_note, progress_bar
from crosslens.cli.datasets import DatasetOfRuns, picture_files
from crosslens.cli.flags import OUTPUT, Flags, IntervalOptions, Overwrite, TrustCodeFlag, command
from crosslens.core import UsageError, option
from crosslens.encode import EncodeOptions

# Written out: help must not load the module that holds them, which loads numpy.
_FORMS = ("cosine", "clipscore", "hessel")


@command(
    "crosslens analyze scorers runs/clip --pair-model vqa:models/llava \\",
    "    --difficulty difficulty.parquet --write disagreements.html",
    "crosslens analyze scorers --dataset captions.jsonl --form clipscore \\",
    "    --model clip:openai/clip-vit-base-patch32 --phi cider --write s.html",
    "crosslens analyze scorers runs/clip \\",
    "    --pair-model 'vqa:http://127.0.0.1:8000/v1?model=NAME' -o pairs.csv",
)
def scorers(
    source: DatasetOfRuns,
    encode: Annotated[EncodeOptions, Flags(without=("skip_bad",))],
    intervals: IntervalOptions,
    models: SourceOptions,
    runs: Annotated[list[Path] | None, typer.Argument(help="Run folders, whose models are scorers.")] = None,
    phi: list[str] | None = option(
        None, "A similarity of a caption to the image's other captions; may be repeated.", metavar="NAME"
    ),
    form: str = option(
        "cosine",
        "What becomes of the cosine of a model or a run.",
        metavar="|".join(_FORMS),
        choices=_FORMS,
    ),
    difficulty: Path | None = option(
        None, "A table with the ids of captions, images or both, to split the pairs by.", metavar="FILE"
    ),
    by: str = option("difficulty", "The column of that table.", metavar="COLUMN"),
    show: int = option(5, "How many disagreements are shown.", metavar="N", minimum=0),
    output: Path | None = option(None, "Every pair with both scores: .parquet or .csv.", metavar="FILE", flags=OUTPUT),
    overwrite: Overwrite = False,
    trust_code: TrustCodeFlag = False,
) -> analyze.ScorerComparison:
    """Compare two scorers of the same images and captions.

    Name two: runs, models, models of pairs (blip:, vqa:), similarities of captions, or tables of scores. Every caption
    is scored with its image; shown are distributions by difficulty, correlations, Bland-Altman limits of agreement,
    and the pairs on which the two disagree most.
    """  # fmt: skip
    check_outputs(output, overwrite=overwrite)
    if output is not None:
        analyze.check_table_file(output)
    named = [*(runs or ()), *models.model, *models.pair_model, *(phi or ()), *models.scores]
    if len(named) != 2:
        raise UsageError(f"{len(named)} of two scorers", fix="name two: runs, --model, --pair-model, --phi or --scores")
    loaded = load_runs(runs or [])
    dataset = source.load_if_given() or dataset_of(loaded)
    encoding = replace(encode, cache=open_cache(encode), notify=print_note)
    scores = _scores(dataset, loaded, models, phi or [], form, encoding, trust_code=trust_code)
    result = analyze.compare_scorers(dataset, scores, difficulty, by=by, **vars(intervals))
    if output is not None:
        wrote(analyze.write_table(result.table, output))
    pictures = picture_files(dataset, [run for _, run in loaded.values()], encode.image_folder)
    return replace(result, shown=show, pictures=pictures)


def _scores(
    dataset: core.Dataset, runs: StoredRuns, models: SourceOptions, phi: list[str], form: str,
    encoding: EncodeOptions, *, trust_code: bool,
) -> dict[str, Any]:  # fmt: skip
    """The scores of every caption with its image, by scorer: of two with one name, the second gets a number."""
    pairs = analyze.ImageCaptionPairs.own(dataset)
    cosines: dict[str, Any] = {}
    for name, (folder, _) in runs.items():
        member = scores_of_run(name, folder, encoding, trust_code=trust_code)
        cosines[name] = pairs.from_matrix(member.scores, f"the scores of {name}")
    cosines |= models.cosines(pairs, encoding)
    scores: dict[str, Any] = {name: analyze.clipscore(values, form) for name, values in cosines.items()}
    scores |= models.others(pairs, encoding)
    scores |= {name: pairs.from_similarity(name, progress=progress_bar()) for name in phi}
    if len(scores) != 2:
        raise UsageError(f"both scorers are called {next(iter(scores))!r}", fix="name two different ones")
    return scores

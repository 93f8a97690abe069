"""``crosslens analyze scorers``: two scorers of the same pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

import crosslens.analyze as analyze
import crosslens.core as core
import crosslens.data as data
import crosslens.report as report
from crosslens.cli.commands.evaluate import open_cache
from crosslens.cli.commands.panels.sources import SourceOptions, StoredRuns, dataset_of, load_runs, scores_of_run
from crosslens.cli.console import (
    check_outputs,
    print_json,
    print_note,
    print_result,
    print_written,
    progress_bar,
    terminal_width,
)
from crosslens.cli.datasets import DatasetOfRuns, picture_files
from crosslens.cli.flags import OUTPUT, Flags, IntervalOptions, Json, Overwrite, TrustCodeFlag, command
from crosslens.core import Options, UsageError, option
from crosslens.encode import EncodeOptions

_TABLES = (".csv", ".parquet")
# Written out: help must not load the modules that hold them, which load numpy.
_SCALES = ("raw", "z", "rank", "range")
_FORMS = ("cosine", "clipscore", "hessel")


@dataclass(frozen=True)
class ScorerFiles(Options):
    """What is written."""

    output: Path | None = option(None, "Every pair with both scores: .csv or .parquet.", metavar="FILE", flags=OUTPUT)
    plot: Path | None = option(None, "Distributions, scatter, Bland-Altman: .html, .svg, .png or .pdf.", metavar="FILE")
    scale: str = option("rank", "The scale of the Bland-Altman figure.", metavar="|".join(_SCALES), choices=_SCALES)
    page: Path | None = option(None, "The largest disagreements with their pictures: .html.", metavar="FILE")
    show: int = option(5, "How many disagreements are printed.", metavar="N", minimum=0)

    def check(self, overwrite: bool) -> None:
        """Refuse files that cannot be written, before the work begins."""
        check_outputs(self.output, self.plot, self.page, overwrite=overwrite)
        if self.output is not None and self.output.suffix.lower() not in _TABLES:
            raise UsageError(f"{self.output} is neither .csv nor .parquet", fix="end the name in .csv or .parquet")
        if self.page is not None and self.page.suffix.lower() != ".html":
            raise UsageError(f"{self.page} does not end in .html", fix="end the name in .html")
        if self.plot is not None:
            report.figure_suffix(self.plot)


@command(
    "crosslens analyze scorers runs/clip --pair-model vqa:models/llava \\",
    "    --difficulty difficulty.parquet --page disagreements.html",
    "crosslens analyze scorers --dataset captions.jsonl --form clipscore \\",
    "    --model clip:openai/clip-vit-base-patch32 --phi cider --plot s.html",
    "crosslens analyze scorers runs/clip \\",
    "    --pair-model 'vqa:http://127.0.0.1:8000/v1?model=NAME' -o pairs.csv",
)
def scorers(
    source: DatasetOfRuns,
    encode: Annotated[EncodeOptions, Flags(without=("skip_bad",))],
    intervals: IntervalOptions,
    models: SourceOptions,
    files: ScorerFiles,
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
    overwrite: Overwrite = False,
    trust_code: TrustCodeFlag = False,
    json: Json = False,
) -> None:
    """Compare two scorers of the same images and captions.

    Name two: runs, models, models of pairs (blip:, vqa:), similarities of captions, or tables of scores. Every caption
    is scored with its image; shown are distributions by difficulty, correlations, Bland-Altman limits of agreement,
    and the pairs on which the two disagree most.
    """  # fmt: skip
    files.check(overwrite)
    named = [*(runs or ()), *models.model, *models.pair_model, *(phi or ()), *models.scores]
    if len(named) != 2:
        raise UsageError(f"{len(named)} of two scorers", fix="name two: runs, --model, --pair-model, --phi or --scores")
    loaded = load_runs(runs or [])
    dataset = source.load_if_given() or dataset_of(loaded)
    encoding = replace(encode, cache=open_cache(encode), notify=print_note)
    scores = _scores(dataset, loaded, models, phi or [], form, encoding, trust_code=trust_code)
    result = analyze.compare_scorers(dataset, scores, difficulty, by=by, **vars(intervals))
    written = _write(result, files, overwrite=overwrite)
    if files.page is not None:
        pictures = picture_files(dataset, [run for _, run in loaded.values()], encode.image_folder)
        core.write_text(files.page, report.disagreements_page(result, pictures))
        written.append(str(files.page))
    if json:
        print_json({**result.as_dict(files.show), "files": written})
        return
    print_result(result.text(terminal_width(), most=files.show))
    print_written(written)


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


def _write(result: analyze.ScorerComparison, files: ScorerFiles, *, overwrite: bool) -> list[str]:
    written = []
    if files.output is not None:
        with data.writing_bytes(files.output) as out:
            if files.output.suffix.lower() == ".csv":
                result.table.write_csv(out)
            else:
                out.write(core.parquet_bytes(result.table))
        written.append(str(files.output))
    if files.plot is not None:
        written.append(str(report.write_scorers_plot(result, files.plot, scale=files.scale, overwrite=overwrite)))
    return written

"""``crosslens judge``: the tasks of judging projects, answered by a vision-language model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import crosslens.core as core
import crosslens.web as web
from crosslens.cli.console import print_json, print_note, print_result, print_written, progress_bar
from crosslens.cli.datasets import DATASET_WORDS, DatasetOptions, served_data
from crosslens.cli.flags import OUTPUT, Flags, Json, Overwrite, command
from crosslens.core import UsageError, option
from crosslens.web import AskingOptions, JudgingFolder

_OF_TABLE = {"dataset": "Of a table: the dataset whose images it names: a reader's name, or a path."}


@command(
    "crosslens judge 1 --folder runs --model qwen2.5-vl \\",
    "    --endpoint http://127.0.0.1:8000/v1 --max-requests 100",
    "crosslens judge 1 --folder runs --model qwen2.5-vl --dry-run",
    "crosslens judge pairs.csv --task pairs --dataset captions.jsonl \\",
    "    --model gpt-4o --endpoint https://api.openai.com/v1 -o answers.jsonl",
)
def judge(
    source: Annotated[
        str, typer.Argument(help="A project's number or name, or a table of pairs.", metavar="PROJECT|TABLE")
    ],
    asking: AskingOptions,
    location: JudgingFolder,
    pairs: Annotated[DatasetOptions, Flags(without=("data",), help=_OF_TABLE)],
    model: str = option(..., "The model's name, as the endpoint knows it.", metavar="NAME"),
    endpoint: str | None = option(
        None, "An OpenAI-compatible address; may hold ?timeout=60&retries=5. Key: CROSSLENS_API_KEY.", metavar="URL"
    ),
    name: str | None = option(None, "The judge's name in results. [default: the model's]", metavar="NAME"),
    record: Path | None = option(
        None, "Keep answers here; those that are there are not asked for again.", metavar="FOLDER"
    ),
    task: str = option("pairs", "Of a table: failures, validity, pairs or relevance.", metavar="NAME"),
    images_in: Path | None = option(
        None, "Of a table: where the images are.", metavar="FOLDER", flags=("--image-folder",)
    ),
    served: list[str] | None = option(
        None, "As in crosslens serve: pictures or datasets.", metavar=f"FOLDER|{DATASET_WORDS}", flags=("--serve-data",)
    ),
    pixels: int = option(768, "Pictures are sent with at most so many pixels a side.", metavar="N", minimum=32),
    offline: bool = option(False, "Refuse an endpoint that is not on this machine."),
    dry_run: bool = option(False, "Show the request about the first item, and send nothing."),
    output: Path | None = option(None, "Of a table: the answers, as .jsonl.", metavar="FILE", flags=OUTPUT),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Have a vision-language model judge.

    The model gets what people get: guidelines, question, labels, texts and pictures. Its answers are read strictly,
    kept apart from people's, and compared with them on the owner's pages. The same command goes on where it stopped.
    """
    is_table = Path(source).is_file()
    if (output is None) == is_table and not dry_run:
        raise UsageError(
            "a table requires --output" if is_table else f"--output is for tables, and {source!r} is no file",
            fix="pass -o answers.jsonl" if is_table else "drop it: answers go into the project",
        )
    chosen = _model(model, endpoint, name, record, offline, dry_run)
    if is_table:
        dataset = pairs.load()
        pictures = web.dataset_pictures(dataset, images_in, pixels)
        if dry_run:
            print_result(web.table_prompt(Path(source), dataset, task, chosen, pictures))
            return
        assert output is not None
        result = web.judge_table(
            Path(source), output, dataset, task, chosen, pictures, asking, progress_bar(), overwrite=overwrite
        )
    else:
        loaded, folders = served_data(served or ())
        pictures = web.library_pictures(web.folder_store(location.folder, loaded, folders), pixels)
        database = web.judging_database(location)
        project = web.project_named(database, source)
        if dry_run:
            print_result(web.project_prompt(database, project, chosen, pictures))
            return
        result = web.judge_project(database, project, chosen, pictures, asking, progress=progress_bar())
    if json:
        print_json({**result.as_dict(), "file": None if output is None else str(output)})
        return
    _print(result)
    print_written([] if output is None else [output])


def _model(
    model: str, endpoint: str | None, name: str | None, record: Path | None, offline: bool, dry_run: bool
) -> web.ModelSource:
    if endpoint is None and record is None and not dry_run:
        raise UsageError(
            "no endpoint is named", fix="pass --endpoint URL, or --record FOLDER to replay answers", option="endpoint"
        )
    address, _ = core.read_address(endpoint or "http://127.0.0.1:8000/v1", "endpoint", {}, {}, model)
    if offline:
        core.refuse_network(address, "replay recorded answers (--record)")
    if endpoint is not None and not dry_run:
        print_note(f"note: texts and pictures are sent to {address.host} (model {model})")
    recorded = None if record is None else core.RecordedAnswers(record, model)
    return web.ModelSource(address, name or model, recorded, replay_only=endpoint is None)


def _print(result: web.JudgedByModel) -> None:
    outcome = result.outcome
    print_result(
        f"{result.model}: {outcome.answered:,} items judged with {outcome.requests:,} requests; {result.known:,} were "
        f"judged before, {outcome.left:,} are left"
    )
    if outcome.requests:
        print_result(_tokens_line(result.asked))
    for number, problem in list(outcome.unusable.items())[:5]:
        print_note(f"note: item {result.names[number]}: no usable answer: {problem}")
    if len(outcome.unusable) > 5:
        print_note(f"note: and {len(outcome.unusable) - 5:,} more")


def _tokens_line(asked: web.ModelRequests) -> str:
    tokens = asked.tokens
    if tokens.uncounted == asked.requests:
        return "tokens: the endpoint does not count them"
    cost = "" if asked.cost is None else f"; cost {asked.cost:,.4f}"
    missing = f" ({tokens.uncounted:,} answers without a count)" if tokens.uncounted else ""
    return f"tokens: {tokens.sent:,} sent, {tokens.received:,} received{missing}{cost}"

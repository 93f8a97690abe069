"""``crosslens judging new`` and ``status``: projects, and how far they have come."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from crosslens import encode, report, web
from crosslens.cli.answers import CommandAnswer, wrote
from crosslens.cli.console import print_json, print_note, print_notes, print_result, progress_bar
from crosslens.cli.datasets import DATASET_WORDS, DatasetOptions, served_data
from crosslens.cli.flags import OUTPUT, Flags, Json, Overwrite, command, output_option, positional
from crosslens.core import Cell, FactList, Options, Part, Presented, Table, Text, UsageError, option
from crosslens.web import AskingOptions, ExportOptions, ImportOptions, JudgingFolder, ProjectOptions

_ANY_PROJECT = positional(None, "The number or the name of a project. [default: all]", metavar="PROJECT")
_PROJECT = positional(..., "The number or the name of a project.", metavar="PROJECT")


@command(
    'crosslens judging new "Failures of CLIP" --task failures --folder runs',
    "crosslens judging new Survey --task pairs --overlap 10 --per-person 25",
    "crosslens judging new Relevance --task relevance --labels form.toml",
    reads_files=False,
    group="Judging",
    common=("folder", "task", "overlap", "per_person", "labels", "guidelines"),
)
def new(
    options: ProjectOptions,
    location: JudgingFolder,
    name: str = positional(..., "What the project is called.", metavar="NAME"),
) -> CommandAnswer:
    """Make a judging project.

    Its items come from crosslens judging import; people judge them in the pages of crosslens serve.
    """
    project = web.new_project(web.judging_database(location, create=True), name, options)
    print_note(f"next: crosslens judging import {project.id} RUN|TABLE --folder {location.folder}")
    summary = f"project {project.id}: {project.name} ({project.task}, {project.overlap} people per item)"
    return CommandAnswer(
        project.name, (Text.of(summary),), {"project": project.id, "name": project.name, "task": project.task}
    )


@command(
    "crosslens judging status --folder runs",
    "crosslens judging status 1 --folder runs --json",
    "crosslens judging status 1 --folder runs --write results.html",
    "crosslens judging status 3 --serve-data imp/dataset --serve-data photos --write survey.html",
    reads_files=False,
)
def status(
    location: JudgingFolder,
    project: str | None = _ANY_PROJECT,
    served: list[str] | None = option(
        None, "Pictures for a page, as in crosslens serve.", metavar=f"FOLDER|{DATASET_WORDS}", flags=("--serve-data",)
    ),
) -> Presented:
    """Show how far projects have come, and how far people agree.

    Of a survey of pairs, also every pair with its score and the share of people who say that it fits.
    """
    database = web.judging_database(location)
    if project is None:
        listed = web.list_projects(database)
        rows = tuple((f"{entry.project.id} {entry.project.name}", entry.line) for entry in listed)
        return CommandAnswer("Judging projects", (FactList(rows),), listed)
    files = web.picture_files(location.folder, *served_data(served)) if served else None
    return web.results_of(database, web.project_named(database, project).id, files)


_OF_RUN = Annotated[DatasetOptions, Flags(help={"dataset": "A reader's name or a path. [default: that of the run]"})]
_TRUTH = {"dataset": "Qrels: also the pairs of this dataset, unless judged: a reader's name, or a path."}


@command(
    "crosslens judging import 1 runs/clip --folder runs --limit 200",
    "crosslens judging import 2 missing.csv --dataset captions.jsonl",
    "crosslens judging import 1 why/failures.parquet --dataset coco \\",
    "    --captions captions.json --instances instances.json",
    "crosslens judging import 3 difficulty.parquet --part survey --model clip \\",
    "    --dataset imp/dataset --rejected imp/rejected.parquet",
    group="Judging",
    common=("folder", "direction", "limit", "part"),
)
def import_(
    options: ImportOptions,
    dataset: _OF_RUN,
    location: JudgingFolder,
    project: str = _PROJECT,
    source: Path = positional(
        ..., "A run's folder, a table of pairs, failures or levels, or what build imp wrote.", metavar="SOURCE"
    ),
) -> CommandAnswer:
    """Add items to a judging project.

    Of a run, or of failures.parquet of crosslens explain -o: each failed query with what it retrieved, its concept
    metrics and derived causes (of a run: where the dataset has objects). Of a table: each row, with the columns image
    and caption or text; the tables of missing-positives and of analyze labels are such. With --part survey, of a table
    of analyze difficulty: the hard pairs with the lowest scores, and true negatives. Of answers that judging export
    wrote (.csv, .jsonl): the judgements and their items; exporting them again gives the same file. Of tasks that Label
    Studio exported (.json): the annotations. What is there already is not added again.
    """
    database = web.judging_database(location)
    number = web.project_named(database, project).id
    imported = web.import_items(database, number, source, dataset.load_if_given(), options, progress_bar())
    added = ", ".join(f"{count:,} {kind}" for kind, count in imported.added.items()) or "no"
    lines = (
        f"{added} items added to project {number}; {imported.known:,} were there already",
        f"{imported.judgements:,} judgements added" if imported.judgements else "",
        f"{imported.updated:,} of these got other metrics or causes than they had" if imported.updated else "",
    )
    print_notes(filter(None, (imported.note,)))
    print_note(f"their pictures are those of the dataset {imported.dataset}")
    return CommandAnswer(f"Items of project {number}", (Text.of(*lines),), asdict(imported))


@command(
    "crosslens judging export 1 --folder runs -o judgements.parquet --dataset captions.jsonl",
    "crosslens evaluate --dataset captions.jsonl --scores scores.npy --qrels judgements.parquet",
    "crosslens judging export 1 --folder runs -o answers.csv",
    "crosslens judging export 1 --folder runs -o label-studio.json",
    "crosslens judging export 3 --folder runs -o bench/ --form imp",
    group="Judging",
    common=("folder", "form", "rule", "source"),
)
def export(
    options: ExportOptions,
    dataset: Annotated[DatasetOptions, Flags(help=_TRUTH)],
    location: JudgingFolder,
    project: str = _PROJECT,
    output: Path = option(
        ...,
        "The file: .parquet (qrels), .csv or .jsonl (answers), .json (Label Studio); imp: the folder of the build.",
        flags=OUTPUT,
    ),
    interface: Path | None = option(
        None, "Label Studio: the labelling interface that shows the tasks.", metavar="FILE.xml"
    ),
    overwrite: Overwrite = False,
) -> CommandAnswer:
    """Write the judgements of a project to a file.

    Qrels hold each judge's score and one grade per pair: evaluate --qrels uses the grades, agreement --judgements the
    scores. What the owner decided wins over what people said.
    """
    form = web.export_form(output, options)
    if interface is not None and form != web.LABEL_STUDIO:
        raise UsageError("--interface is for Label Studio", fix="name an output that ends in .json")
    if dataset.dataset is not None and form != web.QRELS:
        raise UsageError("--dataset is for qrels", fix="name an output that ends in .parquet, or drop --dataset")
    database = web.judging_database(location)
    answers = web.load_answers(database, web.project_named(database, project).id)
    if form == web.IMP_SHEETS:
        files_written = web.export_sheets(answers, output, source=options.source, overwrite=overwrite)
    else:
        files = {output: web.export_content(answers, output, options, dataset.load_if_given())}
        if interface is not None:
            files[interface] = web.interface_of(answers.project.form, answers.items).encode()
        files_written = report.write_changed(files, overwrite)
    web.note_export(database, answers.project.id, output.name)
    wrote(*files_written)
    if form == web.IMP_SHEETS:
        print_note(f"next: run the command that built {output} again")
    counted = f"{answers.table.height:,} judgements of {len(answers.items):,} items"
    return CommandAnswer(answers.project.name, (Text.of(counted),), {"form": form, "judgements": answers.table.height})


_REVOKE = option(None, "End this invitation; who has joined by it stays.", metavar="ID")
_ADDRESS = option(
    None, "Where people reach the server. [default: where it runs on this computer, else you are asked]", metavar="URL"
)
_USUAL_ADDRESS = "http://127.0.0.1:8000"


@command(
    "crosslens judging invite 1 --folder runs --uses 10",
    "crosslens judging invite 1 --role owner --address https://example.org",
    "crosslens judging invite --role owner --folder runs",
    reads_files=False,
)
def invite(
    location: JudgingFolder,
    project: str | None = positional(
        None,
        "The number or the name of a project. [default: none: the link makes an owner of the server]",
        metavar="PROJECT",
    ),
    role: str = option("annotator", "What the person becomes.", metavar="annotator|owner"),
    uses: int = option(1, "How many people can use the link.", minimum=1),
    days: float = option(7.0, "How many days it is valid.", metavar="DAYS"),
    address: str | None = _ADDRESS,
) -> CommandAnswer:
    """Make a link by which people join a project.

    Whoever has the link can join: it is shown once, and only a hash of it is stored.
    """
    database = web.judging_database(location)
    server = _address(address, location.folder)  # asked for before there is an invitation
    number = None if project is None else web.project_named(database, project).id
    link = f"{server}/join/{web.create_invitation(database, number, role=role, uses=uses, days=days)}"
    return CommandAnswer("An invitation", (_unbroken(link),), {"link": link})


def _address(given_address: str | None, folder: Path) -> str:
    """Where people reach the server: as typed, where it runs, what a person at the terminal says, else a guess."""
    address = given_address or web.running_address(folder)
    if address is not None:
        return address.rstrip("/")
    unknown = f"no server of {folder} is known on this computer"
    if sys.stdin.isatty() and sys.stderr.isatty():
        question = f"{unknown}. Where do people reach it? [{_USUAL_ADDRESS}]"
        return str(typer.prompt(question, default=_USUAL_ADDRESS, show_default=False, err=True)).strip().rstrip("/")
    print_note(f"note: {unknown}: the link is for {_USUAL_ADDRESS}; name another with --address")
    return _USUAL_ADDRESS


@command(
    "crosslens judging members 1 --folder runs",
    "crosslens judging members 1 --folder runs --remove Ann",
    "crosslens judging members 1 --folder runs --revoke 3f2a91c07b1d",
    reads_files=False,
)
def members(
    location: JudgingFolder,
    project: str = _PROJECT,
    remove: str | None = option(None, "Remove this member; the judgements stay."),
    revoke: str | None = _REVOKE,
) -> CommandAnswer:
    """List or remove members and invitations of a project.

    It holds from the next request on: a member who is removed sees neither the project nor its pictures any more, and
    the items that were open go to others.
    """
    database = web.judging_database(location)
    number = web.project_named(database, project).id
    if remove is not None:
        web.remove_member(database, number, web.account_named(database, remove).id)
    if revoke is not None:
        web.revoke_invitation(database, number, revoke)
    people, invitations = web.members(database, number), web.open_invitations(database, number)
    content = {
        "members": [{"account": account, "name": name, "role": role} for account, name, role in people],
        "invitations": invitations,
    }
    listed = _table(("member", "role"), [(name, role) for _, name, role in people], "ll")
    return CommandAnswer(f"Members of project {number}", (listed, *_invitations(invitations)), content)


@command(
    "crosslens judging accounts --folder runs",
    "crosslens judging accounts --folder runs --reset Ann",
    "crosslens judging accounts --folder runs --close Ann",
    reads_files=False,
)
def accounts(
    location: JudgingFolder,
    reset: str | None = option(None, "End this account's password and sessions; prints a link to a new password."),
    end_sessions: str | None = option(None, "Log this account out everywhere."),
    close: str | None = option(
        None, "Close this account for ever: its judgements stay under a pseudonym, its name is gone."
    ),
    revoke: str | None = _REVOKE,
    address: str | None = _ADDRESS,
) -> CommandAnswer:
    """List, reset or close accounts.

    Those of all projects, and the invitations for owners of the server. The last owner's account cannot be closed.
    """
    actions = {"reset": reset, "end-sessions": end_sessions, "close": close}
    requested = {name: value for name, value in actions.items() if value is not None}
    if len(requested) > 1:
        raise UsageError(f"{' and '.join(f'--{name}' for name in requested)} at once", fix="do one after the other")
    database = web.judging_database(location)
    if revoke is not None:
        web.revoke_invitation(database, None, revoke)
    if not requested:
        listed, invitations = web.list_accounts(database), web.open_invitations(database, None)
        rows: list[tuple[Cell, ...]] = [
            (line.name, line.kind, line.judgements, line.sessions, ", ".join(line.projects)) for line in listed
        ]
        accounts = _table(("account", "kind", "judgements", "sessions", "projects"), rows, "llrrl")
        content = {"accounts": listed, "invitations": invitations}
        return CommandAnswer("Accounts", (accounts, *_invitations(invitations)), content)
    ((action, name),) = requested.items()
    account = web.account_named(database, name)
    answer: dict[str, Any]
    if action == "reset":
        answer = {"link": f"{_address(address, location.folder)}/reset/{web.make_reset_link(database, account.id)}"}
        text = answer["link"]
    elif action == "close":
        answer = {"pseudonym": web.close_account(database, account.id)}
        text = f"closed; its judgements are those of {answer['pseudonym']}"
    else:
        answer = {"sessions": web.end_sessions(database, account.id)}
        text = f"sessions ended: {answer['sessions']:,}"
    return CommandAnswer(f"Account {name}", (_unbroken(text),), {"account": account.id, **answer})


@command(
    "crosslens judging audit --folder runs",
    "crosslens judging audit 1 --folder runs --limit 20 --json",
    reads_files=False,
)
def audit(
    location: JudgingFolder,
    project: str | None = _ANY_PROJECT,
    limit: int = option(100, "How many entries, the newest first.", minimum=1, maximum=1_000_000),
) -> CommandAnswer:
    """Show who did what, the newest first.

    Accounts, invitations, members, settings, imports, decisions and exports. Closed accounts appear under their
    pseudonyms, commands under the name of the computer's user.
    """
    database = web.judging_database(location)
    number = None if project is None else web.project_named(database, project).id
    entries = web.audit_log(database, number, limit=limit)
    rows = [
        (
            f"{entry.time:%Y-%m-%d %H:%M}",
            entry.who,
            entry.action,
            "; ".join(filter(None, (entry.about, entry.project_name, entry.detail))),
        )
        for entry in entries
    ]
    if len(entries) == limit:
        print_note(f"note: there may be more than {limit:,} entries: pass --limit")
    log = _table(("time (UTC)", "who", "what", "about"), rows, "llll")
    return CommandAnswer("Who did what", (log,), entries)


def _unbroken(link: str) -> FactList:
    """A line that is not wrapped: a broken link leads nowhere."""
    return FactList(((link, ""),))


def _invitations(invitations: Sequence[web.OpenInvitation]) -> tuple[Part, ...]:
    rows: list[tuple[Cell, ...]] = [
        (entry.id, entry.role, f"{entry.used} of {entry.uses}", f"{entry.expires:%Y-%m-%d %H:%M}")
        for entry in invitations
    ]
    return (_table(("invitation", "role", "used", "until (UTC)"), rows, "llrl"),) if rows else ()


def _table(header: tuple[str, ...], rows: Sequence[tuple[Cell, ...]], align: str) -> Part:
    return Table(header, tuple(rows), align) if rows else Text.of("none")


_OF_TABLE = {"dataset": "Of a table: the dataset whose images it names: a reader's name, or a path."}


@dataclass(frozen=True)
class ModelJudgeOptions(Options, group="Judging"):
    """The model that judges, and what it is shown."""

    model: str = option(..., "The model's name, as the endpoint knows it.", metavar="NAME")
    endpoint: str | None = option(
        None, "An OpenAI-compatible address; may hold ?timeout=60&retries=5. Key: CROSSLENS_API_KEY.", metavar="URL"
    )
    name: str | None = option(None, "The judge's name in results. [default: the model's]")
    record: Path | None = option(
        None, "Keep answers here; those that are there are not asked for again.", metavar="FOLDER"
    )
    task: str = option("pairs", "Of a table: failures, validity, pairs or relevance.")
    images_in: Path | None = option(None, "Of a table: where the images are.", flags=("--image-folder",))
    served: tuple[str, ...] = option(
        (), "As in crosslens serve: pictures or datasets.", metavar=f"FOLDER|{DATASET_WORDS}", flags=("--serve-data",)
    )
    pixels: int = option(768, "Pictures are sent with at most so many pixels a side.", minimum=32)
    offline: bool = option(False, "Refuse an endpoint that is not on this machine.")
    dry_run: bool = option(False, "Show the request about the first item, and send nothing.")

    def source(self) -> web.ModelSource:
        """Where the model is asked, or its recorded answers."""
        if self.endpoint is None and self.record is None and not self.dry_run:
            raise UsageError(
                "no endpoint is named",
                fix="pass --endpoint URL, or --record FOLDER to replay answers",
                option="endpoint",
            )
        address = encode.Endpoint("http://127.0.0.1:8000/v1", self.model)  # shown by --dry-run
        if self.endpoint is not None:
            address, _ = encode.read_address(self.endpoint, "endpoint", {}, {}, self.model)
        if self.endpoint is not None and not self.dry_run:
            print_note(f"note: texts and pictures are sent to {address.host} (model {self.model})")
        recorded = None if self.record is None else encode.RecordedAnswers(self.record, self.model)
        return web.ModelSource(address, self.name or self.model, recorded, replay_only=self.endpoint is None)


@command(
    "crosslens judge 1 --folder runs --model qwen2.5-vl --endpoint http://127.0.0.1:8000/v1 --max-requests 100",
    "crosslens judge 1 --folder runs --model qwen2.5-vl --dry-run",
    "crosslens judge pairs.csv --task pairs --dataset captions.jsonl \\",
    "    --model gpt-4o --endpoint https://api.openai.com/v1 -o answers.jsonl",
    common=("folder", "endpoint", "record", "task", "max_requests", "dry_run"),
)
def judge(
    asking: AskingOptions,
    location: JudgingFolder,
    pairs: Annotated[DatasetOptions, Flags(without=("data",), help=_OF_TABLE)],
    options: ModelJudgeOptions,
    source: str = positional(..., "A project's number or name, or a table of pairs.", metavar="PROJECT|TABLE"),
    output: Path | None = output_option("Of a table: the answers, as .jsonl."),
    overwrite: Overwrite = False,
    json: Json = False,
) -> CommandAnswer | None:
    """Have a vision-language model judge.

    The model gets what people get: guidelines, question, labels, texts and pictures. Its answers are read strictly,
    kept apart from people's, and compared with them on the owner's pages. The same command goes on where it stopped.
    """
    is_table = Path(source).is_file()
    if (output is None) == is_table and not options.dry_run:
        raise UsageError(
            "a table requires --output" if is_table else f"--output is for tables, and {source!r} is no file",
            fix="pass -o answers.jsonl" if is_table else "drop it: answers go into the project",
        )
    origin = options.source()
    if is_table:
        dataset = pairs.load()
        pictures = web.dataset_pictures(dataset, options.images_in, options.pixels)
        if options.dry_run:
            _show_prompt(web.table_prompt(Path(source), dataset, options.task, origin, pictures), json)
            return None
        assert output is not None
        result = web.judge_table(
            Path(source), output, dataset, options.task, origin, pictures, asking, progress_bar(), overwrite=overwrite
        )
    else:
        loaded, folders = served_data(options.served)
        pictures = web.library_pictures(location.folder, loaded, folders, options.pixels)
        database = web.judging_database(location)
        project = web.project_named(database, source)
        if options.dry_run:
            _show_prompt(web.project_prompt(database, project, origin, pictures), json)
            return None
        result = web.judge_project(database, project, origin, pictures, asking, progress=progress_bar())
    wrote(output)
    outcome = result.outcome
    for number, problem in list(outcome.unusable.items())[:5]:
        print_note(f"note: item {result.names[number]}: no usable answer: {problem}")
    if len(outcome.unusable) > 5:
        print_note(f"note: and {len(outcome.unusable) - 5:,} more")
    summary = (
        f"{result.model}: {outcome.answered:,} items judged with {outcome.requests:,} requests; "
        f"{result.judged_before:,} were judged before, {outcome.left:,} are left"
    )
    counted, usage, tokens = "", result.usage, result.usage.tokens
    if outcome.requests and tokens.uncounted == usage.requests:
        counted = "tokens: the endpoint does not count them"
    elif outcome.requests:
        cost = "" if usage.cost is None else f"; cost {usage.cost:,.4f}"
        missing = f" ({tokens.uncounted:,} answers without a count)" if tokens.uncounted else ""
        counted = f"tokens: {tokens.sent:,} sent, {tokens.received:,} received{missing}{cost}"
    lines = Text.of(summary, counted)
    return CommandAnswer(result.model, (lines,), {**result.as_dict(), "file": None if output is None else str(output)})


def _show_prompt(prompt: str, json: bool) -> None:
    """Line by line as the model gets it, not wrapped."""
    if json:
        print_json({"prompt": prompt})
    else:
        print_result(prompt)

"""Results of projects, computed once for as long as nobody judges."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, File, Form, Query, UploadFile
from sqlalchemy import func, select
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from crosslens.core import CrosslensError, Dataset, Figure, InputError, Section, Table, percent
from crosslens.web.background import RecentCache
from crosslens.web.judging.accounts import (
    RESET_DAYS,
    Account,
    close_account,
    create_invitation,
    end_sessions,
    list_accounts,
    make_reset_link,
    open_invitations,
    remove_member,
    revoke_invitation,
)
from crosslens.web.judging.context import JudgingContext, RowId, sentence
from crosslens.web.judging.database.assigning import project_progress
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.judgements import requests_by_model
from crosslens.web.judging.database.projects import audit_log, members, note_export, set_guidelines, set_overlap
from crosslens.web.judging.database.tables import (
    OWNER,
    AccountRow,
    AdjudicationRow,
    ItemRow,
    JudgementHistoryRow,
    JudgementRow,
    ProjectRow,
)
from crosslens.web.judging.exporting import export_content, interface_of
from crosslens.web.judging.importing import ImportedItems, add_new_items, pair_items, run_items, shown_as
from crosslens.web.judging.options import ExportOptions
from crosslens.web.judging.results import (
    ProjectAnswers,
    ProjectResults,
    adjudicate,
    correlation_sections,
    load_answers,
    model_sections,
    overview_sections,
    withdraw_decision,
)
from crosslens.web.judging.shares import run_metrics
from crosslens.web.judging.tasks import Answer
from crosslens.web.pages import render, sections_html
from crosslens.web.security import Services, own_address

_MOST = 8


class CachedResults:
    """The results of the projects that were looked at last."""

    def __init__(self) -> None:
        self._kept: RecentCache[ProjectResults] = RecentCache(_MOST)

    def of(self, database: Database, project: int) -> ProjectResults:
        key = (project, *_state(database, project))
        return self._kept.get(key, lambda: ProjectResults(load_answers(database, project)))


def _state(database: Database, project: int) -> tuple[object, ...]:
    """Changes with every judgement, undo, decision, import, change of settings, and name that is gone."""
    mine = select(ItemRow.id).where(ItemRow.project == project)
    queries = [
        select(ProjectRow.overlap, ProjectRow.guidelines, ProjectRow.settings).where(ProjectRow.id == project),
        select(func.count(), func.max(ItemRow.id)).where(ItemRow.project == project),
        select(func.count(), func.max(JudgementRow.id)).where(JudgementRow.item.in_(mine)),
        select(func.count(), func.max(JudgementHistoryRow.id)).where(JudgementHistoryRow.item.in_(mine)),
        select(func.count(), func.max(AdjudicationRow.created)).where(AdjudicationRow.item.in_(mine)),
        select(func.count(AccountRow.closed)),
    ]
    with database.reading() as session:
        return tuple(str(value) for query in queries for value in session.execute(query).one())


_LONGEST_GUIDELINES, _MOST_PEOPLE = 20_000, 1000
TABS = (
    ("", "Results"), ("/people", "People"), ("/disagreements", "Disagreements"), ("/correlations", "Correlations"),
    ("/models", "Models"), ("/items", "Items and export"), ("/log", "Log"),
)  # fmt: skip


def page(request: Request, template: str, account: Any, results: ProjectResults, **values: Any) -> Response:
    """A page of the owner, with the tabs of the project."""
    shown: dict[str, Any] = {"project": results.answers.project, "results": results, "titles": results.answers.titles}
    shown |= {"percent": percent, "number": lambda value, digits=2: Figure(value, digits=digits).number}
    status = 422 if values.get("problem") else 200
    return render(request, f"judging/{template}", status=status, account=account, tabs=TABS, **shown, **values)


def _add_results(routes: APIRouter, context: JudgingContext, kept: CachedResults) -> None:
    @routes.get("/projects/{project}/owner", include_in_schema=False)
    def overview(request: Request, project: RowId, note: str = "") -> Response:
        account = context.require_owner(request, project)
        results = kept.of(context.database, project)
        first, *others = overview_sections(results)
        return page(
            request, "results.html", account, results, article=sections_html([replace(first, title=""), *others]),
            progress=project_progress(context.database, project), note=_NOTES.get(note, ""),
        )  # fmt: skip

    @routes.get("/api/projects/{project}/results", tags=["judging"])
    def results_json(request: Request, project: RowId) -> dict[str, Any]:
        """Agreement, shares of labels, people, models and correlations of a project; for its owners."""
        context.require_owner(request, project)
        return kept.of(context.database, project).as_dict()

    @routes.post("/projects/{project}/owner/settings", include_in_schema=False)
    def change_settings(
        request: Request,
        project: RowId,
        overlap: Annotated[int, Form(ge=1, le=_MOST_PEOPLE)],
        guidelines: Annotated[str, Form()] = "",
    ) -> Response:
        account = context.require_owner(request, project)
        set_overlap(context.database, project, overlap, account.id)
        text = guidelines.replace("\r\n", "\n")[:_LONGEST_GUIDELINES]
        set_guidelines(context.database, project, text, account.id)
        return RedirectResponse(f"/projects/{project}/owner?note=saved", 303)


_NOTES = {"saved": "The settings were saved."}


def _add_comparisons(routes: APIRouter, context: JudgingContext, services: Services, kept: CachedResults) -> None:
    @routes.get("/projects/{project}/owner/correlations", include_in_schema=False)
    def correlations(request: Request, project: RowId, run: str = "") -> Response:
        account = context.require_owner(request, project)
        results = kept.of(context.database, project)
        runs = [summary for summary in services.library.runs() if summary.problem is None]
        further: dict[str, dict[str, float]] = {}
        if run:
            directions = {str(item.content.about.get("direction", "t2i")) for item in results.answers.items.values()}
            loaded = services.library.run(run)
            for direction in sorted(directions):
                further |= run_metrics(loaded, direction, results.answers.queries)
        article = sections_html(correlation_sections(results, further))
        return page(request, "correlations.html", account, results, article=article, runs=runs, chosen=run)

    @routes.get("/projects/{project}/owner/models", include_in_schema=False)
    def models(request: Request, project: RowId) -> Response:
        account = context.require_owner(request, project)
        results, asked = kept.of(context.database, project), requests_by_model(context.database, project)
        sections = list(model_sections(results))
        if asked:
            rows = tuple(
                (model, total.requests, total.tokens.sent, total.tokens.received, Figure(total.cost))
                for model, total in asked.items()
            )
            about = (
                "As the endpoint counts tokens, over all runs of the command. The cost is that of runs with --price."
            )
            header = ("model", "requests", "tokens sent", "tokens received", "cost")
            sections.append(Section("Requests", (Table(header, rows, "lrrrr", notes=(about,)),)))
        return page(request, "models.html", account, results, article=sections_html(sections))


LOG_PAGE = 100
Before = Annotated[int, Query(ge=0, le=10**9)]


def _add_members(routes: APIRouter, context: JudgingContext, kept: CachedResults) -> None:
    owner = Depends(context.require_owner)

    def people_page(request: Request, project: int, account: Account, **values: Any) -> Response:
        results = kept.of(context.database, project)
        rows = {row["account"]: row for row in results.people.iter_rows(named=True)}
        listed = [(number, name, role, rows.get(name)) for number, name, role in members(context.database, project)]
        links = open_invitations(context.database, project)
        shown = {"link": "", "problem": ""} | values
        return page(request, "people.html", account, results, people=listed, invitations=links, **shown)

    @routes.get("/projects/{project}/owner/people", include_in_schema=False)
    def people(request: Request, project: RowId, account: Account = owner) -> Response:
        return people_page(request, project, account)

    @routes.post("/projects/{project}/owner/invite", include_in_schema=False)
    def invite(
        request: Request, project: RowId, account: Account = owner, uses: Annotated[int, Form()] = 1,
        days: Annotated[float, Form()] = 7, role: Annotated[str, Form()] = "annotator",
    ) -> Response:  # fmt: skip
        try:
            token = create_invitation(context.database, project, role=role, uses=uses, days=days, by=account.id)
        except CrosslensError as error:
            return people_page(request, project, account, problem=sentence(error))
        return people_page(request, project, account, link=f"{own_address(request)}/join/{token}")

    def after(change: Callable[[], None], request: Request, project: int, account: Account) -> Response:
        try:
            change()
        except CrosslensError as error:
            return people_page(request, project, account, problem=sentence(error))
        return RedirectResponse(f"/projects/{project}/owner/people", 303)

    @routes.post("/projects/{project}/owner/people/{member}/remove", include_in_schema=False)
    def remove(request: Request, project: RowId, member: RowId, account: Account = owner) -> Response:
        removal = partial(remove_member, context.database, project, member, account.id)
        return after(removal, request, project, account)

    @routes.post("/projects/{project}/owner/invitations/{invitation}/revoke", include_in_schema=False)
    def revoke(request: Request, project: RowId, invitation: str, account: Account = owner) -> Response:
        revocation = partial(revoke_invitation, context.database, project, invitation, account.id)
        return after(revocation, request, project, account)

    @routes.get("/projects/{project}/owner/log", include_in_schema=False)
    def project_log(request: Request, project: RowId, account: Account = owner, before: Before = 0) -> Response:
        entries = audit_log(context.database, project, limit=LOG_PAGE + 1, before=before)
        return page(
            request, "log.html", account, kept.of(context.database, project), entries=entries[:LOG_PAGE],
            older=before + LOG_PAGE if len(entries) > LOG_PAGE else None,
        )  # fmt: skip


def _add_accounts(routes: APIRouter, context: JudgingContext) -> None:
    owner = Depends(context.require_owner_account)

    def accounts_page(
        request: Request, account: Account, problem: str = "", link: str = "", note: str = ""
    ) -> Response:
        return render(
            request, "judging/accounts.html", status=422 if problem else 200, account=account,
            accounts=list_accounts(context.database), invitations=open_invitations(context.database, None),
            problem=problem, link=link, note=note,
        )  # fmt: skip

    @routes.get("/accounts", include_in_schema=False)
    def accounts(request: Request, account: Account = owner) -> Response:
        return accounts_page(request, account)

    @routes.post("/accounts/{other}/{action}", include_in_schema=False)
    def change(
        request: Request, other: RowId, action: Literal["sessions", "reset", "close"], account: Account = owner
    ) -> Response:
        try:
            if action == "sessions":
                ended = end_sessions(context.database, other, account.id)
                return accounts_page(request, account, note=f"Sessions ended: {ended}.")
            if action == "reset":
                token = make_reset_link(context.database, other, account.id)
                note = (
                    f"The old password and all sessions have ended. The link sets a new one, within {RESET_DAYS} days."
                )
                return accounts_page(request, account, link=f"{own_address(request)}/reset/{token}", note=note)
            pseudonym = close_account(context.database, other, account.id)
        except CrosslensError as error:
            return accounts_page(request, account, problem=sentence(error))
        if other == account.id:
            return RedirectResponse("/login", 303)
        return accounts_page(request, account, note=f"The account was closed; it is now {pseudonym}.")

    @routes.post("/accounts/invite", include_in_schema=False)
    def invite_owner(request: Request, account: Account = owner) -> Response:
        token = create_invitation(context.database, None, role=OWNER, by=account.id)
        note = "The link makes one person an owner of the server, who sees and changes everything, within 7 days."
        return accounts_page(request, account, link=f"{own_address(request)}/join/{token}", note=note)

    @routes.post("/accounts/invitations/{invitation}/revoke", include_in_schema=False)
    def revoke_owner(request: Request, invitation: str, account: Account = owner) -> Response:
        try:
            revoke_invitation(context.database, None, invitation, account.id)
        except CrosslensError as error:
            return accounts_page(request, account, problem=sentence(error))
        return RedirectResponse("/accounts", 303)

    @routes.get("/accounts/log", include_in_schema=False)
    def log(request: Request, account: Account = owner, before: Before = 0) -> Response:
        entries = audit_log(context.database, limit=LOG_PAGE + 1, before=before)
        older = before + LOG_PAGE if len(entries) > LOG_PAGE else None
        return render(request, "judging/full_log.html", account=account, entries=entries[:LOG_PAGE], older=older)


PAGE = 20
_MOST_LABELS = 100


def _add_decisions(routes: APIRouter, context: JudgingContext, kept: CachedResults) -> None:
    """Add the addresses."""

    def cases(
        request: Request, project: int, shown: str, start: int, problem: str = "", at: int | None = None,
        answer: Answer | None = None,
    ) -> Response:  # fmt: skip
        account = context.require_owner(request, project)
        results = kept.of(context.database, project)
        every = [case for case in results.disagreements if shown == "all" or case.adjudicated is None]
        start = max(0, min(start, len(every) - 1)) // PAGE * PAGE
        return page(
            request, "disagreements.html", account, results, cases=every[start : start + PAGE], total=len(every),
            decided=sum(case.adjudicated is not None for case in results.disagreements), shown=shown, start=start,
            size=PAGE, items=results.answers.items, problem=problem, at=at, answer=answer,
        )  # fmt: skip

    @routes.get("/projects/{project}/owner/disagreements", include_in_schema=False)
    def disagreements(request: Request, project: RowId, shown: str = "open", start: int = 0) -> Response:
        return cases(request, project, "all" if shown == "all" else "open", start)

    @routes.post("/projects/{project}/owner/items/{item}/decide", include_in_schema=False)
    def decide(
        request: Request, project: RowId, item: RowId, label: Annotated[list[str] | None, Form()] = None,
        rating: Annotated[str, Form()] = "", text: Annotated[str, Form()] = "",
        shown: Annotated[str, Form()] = "open", start: Annotated[int, Form()] = 0,
    ) -> Response:  # fmt: skip
        account = context.require_owner(request, project)
        number = int(rating) if rating.isascii() and rating.isdigit() and len(rating) < 5 else None
        answer = Answer(tuple(label or ())[:_MOST_LABELS], number, text.replace("\r\n", "\n"))
        try:
            adjudicate(context.database, project, item, account.id, answer)
        except CrosslensError as error:
            return cases(request, project, shown, start, sentence(error), item, answer)
        return RedirectResponse(_back(project, shown, start), 303)

    @routes.post("/projects/{project}/owner/items/{item}/reopen", include_in_schema=False)
    def reopen(
        request: Request, project: RowId, item: RowId, shown: Annotated[str, Form()] = "all",
        start: Annotated[int, Form()] = 0,
    ) -> Response:  # fmt: skip
        account = context.require_owner(request, project)
        withdraw_decision(context.database, project, item, account.id)
        return RedirectResponse(_back(project, shown, start), 303)


def _back(project: int, shown: str, start: int) -> str:
    return f"/projects/{project}/owner/disagreements?shown={'all' if shown == 'all' else 'open'}&start={max(0, start)}"


FILES = {
    "answers.csv": ("text/csv; charset=utf-8", "Every judgement as a table"),
    "answers.jsonl": ("application/x-ndjson", "Every judgement as JSON lines"),
    "judgements.parquet": ("application/vnd.apache.parquet", "Judged pairs, for evaluate --qrels and agreement"),
    "judgements.csv": ("text/csv; charset=utf-8", "The same as a table"),
    "label-studio.json": ("application/json", "Tasks for Label Studio"),
    "label-studio.xml": ("application/xml", "The labelling interface for them"),
}
"""The files that can be downloaded: their type, and what they are."""
_TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
_UNPACKED, _MEMORY, _SECONDS = 64 << 20, 512 << 20, 60
"""What an uploaded Parquet file may unpack to as text, in bytes, and what trying that may take."""
_UNPACK = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[3]),) * 2)
import polars
polars.read_parquet(sys.argv[1], glob=False).write_ndjson(sys.argv[1] + ".jsonl")
"""
_UNPACKING = Lock()
"""One such process at a time, however many upload at once."""
_MOST_ITEMS = 100_000
UPLOAD_BYTES = 20 << 20


def _add_exchange(routes: APIRouter, context: JudgingContext, services: Services, kept: CachedResults) -> None:
    """Add the addresses."""

    def items_page(
        request: Request, project: int, problem: str = "", imported: ImportedItems | None = None
    ) -> Response:
        account = context.require_owner(request, project)
        results = kept.of(context.database, project)
        return page(
            request, "items.html", account, results, files=FILES, problem=problem, imported=imported,
            kinds=Counter(item.kind for item in results.answers.items.values()),
            runs=[summary for summary in services.library.runs() if summary.problem is None],
            datasets=services.library.datasets(), tables=", ".join(_TABLES),
        )  # fmt: skip

    @routes.get("/projects/{project}/owner/items", include_in_schema=False)
    def items(request: Request, project: RowId) -> Response:
        return items_page(request, project)

    @routes.post("/projects/{project}/owner/import", include_in_schema=False)
    def import_run(
        request: Request, project: RowId, run: Annotated[str, Form()], direction: Annotated[str, Form()] = "",
        limit: Annotated[int, Form(ge=1, le=_MOST_ITEMS)] = 200, seed: Annotated[int, Form()] = 0,
    ) -> Response:  # fmt: skip
        account = context.require_owner(request, project)
        try:
            loaded, dataset = services.library.run(run), services.library.dataset_of(run)
            served = services.library.summary(run).dataset or shown_as(dataset)
            new, note = run_items(loaded, dataset, direction or None, shown_as=served, limit=limit, seed=seed)
            added = add_new_items(context.database, project, new, dataset.name, note, account.id)
            return items_page(request, project, "", added)
        except CrosslensError as error:
            return items_page(request, project, sentence(error))

    @routes.post("/judging/upload/{project}", include_in_schema=False)
    def import_table(
        request: Request, project: RowId, table: Annotated[UploadFile, File()], dataset: Annotated[str, Form()]
    ) -> Response:
        account = context.require_owner(request, project)
        try:
            suffix = Path(table.filename or "").suffix.lower()
            if suffix not in _TABLES:  # compressed text is refused: it may hold far more than it weighs
                raise CrosslensError(f"a table has one of the endings {', '.join(_TABLES)}", fix="upload such a file")
            data = services.library.dataset(dataset)
            new = _uploaded(table, suffix, data, dataset)
            added = add_new_items(context.database, project, new, data.name, by=account.id)
            return items_page(request, project, "", added)
        except CrosslensError as error:
            return items_page(request, project, sentence(error))

    @routes.get("/projects/{project}/owner/export/{name}", include_in_schema=False)
    def export(
        request: Request, project: RowId, name: str, rule: str = "majority", ground_truth: bool = False
    ) -> Response:
        account = context.require_owner(request, project)
        if name not in FILES:
            raise HTTPException(404, "There is no such file.")
        answers = kept.of(context.database, project).answers
        content = _exported(request, services, answers, name, rule, ground_truth)
        note_export(context.database, project, name, account.id)
        held = {"Content-Disposition": f'attachment; filename="project-{project}-{name}"', "Cache-Control": "no-store"}
        return Response(content, media_type=FILES[name][0], headers=held)


def _exported(
    request: Request, services: Services, answers: ProjectAnswers, name: str, rule: str, ground_truth: bool
) -> bytes:
    if name == "label-studio.xml":
        return interface_of(answers).encode()
    form = "qrels" if name.startswith("judgements") else "label-studio" if name.startswith("label") else "answers"
    pictures = f"{own_address(request)}/pictures/"
    options = ExportOptions(form=form, rule=rule, pictures=pictures)
    # The dataset that most items show pictures of.
    shown = Counter(picture.dataset for item in answers.items.values() for picture in item.content.pictures)
    own_pairs = ground_truth and form == "qrels" and shown
    dataset = services.library.dataset(shown.most_common(1)[0][0]) if own_pairs else None
    return export_content(answers, name, options, dataset)


def _uploaded(table: UploadFile, suffix: str, dataset: Dataset, served_as: str) -> Any:
    """The items of an uploaded table; only the ending of its name is used."""
    with tempfile.TemporaryDirectory(prefix="crosslens-") as folder:
        file = Path(folder) / f"table{suffix}"
        file.write_bytes(table.file.read())
        if suffix == ".parquet":
            _require_small(file)
        try:
            return pair_items(file, dataset, shown_as=served_as)
        except InputError as error:
            where = "" if error.row is None else f", {error.row}"
            raise CrosslensError(f"{error.problem} ({table.filename}{where})"[:400], fix=error.fix) from None


def _require_small(file: Path) -> None:
    """Unpack a Parquet file in a process of little memory: 20 kB can hold gigabytes, whatever its header says."""
    words = [sys.executable, "-I", "-c", _UNPACK, str(file), str(_UNPACKED), str(_MEMORY)]
    try:
        with _UNPACKING:
            subprocess.run(words, check=True, capture_output=True, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError):
        problem = f"the file is no Parquet file, or holds more than {_UNPACKED >> 20} MB of text"
        raise CrosslensError(problem, fix="upload a smaller table, or use crosslens judging import") from None


def owner_router(context: JudgingContext, services: Services) -> APIRouter:
    """Results, people, disagreements, correlations, models, import and export: for owners of the project only."""
    services.body_limits["/judging/upload/"] = UPLOAD_BYTES
    kept = CachedResults()
    routes = APIRouter()
    _add_results(routes, context, kept)
    _add_comparisons(routes, context, services, kept)
    _add_members(routes, context, kept)
    _add_accounts(routes, context)
    _add_decisions(routes, context, kept)
    _add_exchange(routes, context, services, kept)
    return routes

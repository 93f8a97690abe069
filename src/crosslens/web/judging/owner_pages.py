"""The pages of owners: results, people, accounts, disagreements, import and export."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, File, Form, Query, UploadFile
from sqlalchemy import func, select
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from crosslens.core import CrosslensError, Figure, InputError, Section, Table, percent
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
from crosslens.web.judging.database.judgements import requests_by_model
from crosslens.web.judging.database.projects import audit_log, change_project, members, note_export
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
from crosslens.web.judging.options import ANSWERS, LABEL_STUDIO, QRELS, ExportOptions
from crosslens.web.judging.results import (
    ProjectResults,
    adjudicate,
    correlation_sections,
    load_answers,
    model_sections,
    overview_sections,
    withdraw_decision,
)
from crosslens.web.judging.tasks import Answer
from crosslens.web.pages import feature_router, render, sections_html
from crosslens.web.security import Services, own_address

_CACHED, _LONGEST_GUIDELINES, _MOST_PEOPLE, _MOST_LABELS, PAGE, LOG_PAGE = 8, 20_000, 1000, 100, 20, 100
TABS = (
    ("", "Results"), ("/people", "People"), ("/disagreements", "Disagreements"), ("/correlations", "Correlations"),
    ("/models", "Models"), ("/items", "Items and export"), ("/log", "Log"),
)  # fmt: skip
_NOTES = {"saved": "The settings were saved."}
Before = Annotated[int, Query(ge=0, le=10**9)]


class OwnerPages:
    """Pages of a project for its owners. Results are computed once for as long as nobody judges."""

    def __init__(self, context: JudgingContext, services: Services) -> None:
        self.context, self.library = context, services.library
        self._results: RecentCache[ProjectResults] = RecentCache(_CACHED)

    def results(self, project: int) -> ProjectResults:
        """The results of a project, kept until a judgement, undo, decision, import, setting or name changes."""
        database, items = self.context.database, select(ItemRow.id).where(ItemRow.project == project)
        queries = [
            select(ProjectRow.overlap, ProjectRow.guidelines, ProjectRow.settings).where(ProjectRow.id == project),
            select(func.count(), func.max(ItemRow.id)).where(ItemRow.project == project),
            select(func.count(), func.max(JudgementRow.id)).where(JudgementRow.item.in_(items)),
            select(func.count(), func.max(JudgementHistoryRow.id)).where(JudgementHistoryRow.item.in_(items)),
            select(func.count(), func.max(AdjudicationRow.created)).where(AdjudicationRow.item.in_(items)),
            select(func.count(AccountRow.closed)),
        ]
        with database.reading() as session:
            key = project, *(str(value) for query in queries for value in session.execute(query).one())
        return self._results.get(key, lambda: ProjectResults(load_answers(database, project)))

    def page(self, request: Request, project: int, template: str, **values: Any) -> Response:
        """A page for owners of the project, with its tabs."""
        account, results = self.context.require_owner(request, project), self.results(project)
        content = {"project": results.answers.project, "results": results, "titles": results.answers.titles}
        content |= {"percent": percent, "number": lambda value, digits=2: Figure(value, digits=digits).number}
        status = 422 if values.get("problem") else 200
        return render(
            request, f"judging/{template}.html", status=status, account=account, tabs=TABS, **content, **values
        )

    def log(self, project: int | None, before: int) -> dict[str, Any]:
        """A page of the log, and where the next one begins."""
        entries = audit_log(self.context.database, project, limit=LOG_PAGE + 1, before=before)
        return {"entries": entries[:LOG_PAGE], "older": before + LOG_PAGE if len(entries) > LOG_PAGE else None}


def _add_results(routes: APIRouter, pages: OwnerPages) -> None:
    context, library = pages.context, pages.library

    @routes.get("/projects/{project}/owner")
    def overview(request: Request, project: RowId, note: str = "") -> Response:
        first, *others = overview_sections(pages.results(project))
        return pages.page(
            request, project, "results", article=sections_html([replace(first, title=""), *others]),
            progress=project_progress(context.database, project), note=_NOTES.get(note, ""),
        )  # fmt: skip

    @routes.post("/projects/{project}/owner/settings")
    def change_settings(
        request: Request,
        project: RowId,
        overlap: Annotated[int, Form(ge=1, le=_MOST_PEOPLE)],
        guidelines: Annotated[str, Form()] = "",
    ) -> Response:
        account = context.require_owner(request, project)
        text = guidelines.replace("\r\n", "\n")[:_LONGEST_GUIDELINES]
        change_project(context.database, project, overlap, text, account.id)
        return RedirectResponse(f"/projects/{project}/owner?note=saved", 303)

    @routes.get("/projects/{project}/owner/correlations")
    def correlations(request: Request, project: RowId, run: str = "") -> Response:
        results = pages.results(project)
        runs = [summary for summary in library.runs() if summary.problem is None]
        further = results.answers.run_metrics(library.run(run)) if run else {}
        article = sections_html(correlation_sections(results, further))
        return pages.page(request, project, "correlations", article=article, runs=runs, run=run)

    @routes.get("/projects/{project}/owner/models")
    def models(request: Request, project: RowId) -> Response:
        sections, requests = list(model_sections(pages.results(project))), requests_by_model(context.database, project)
        if requests:
            rows = tuple(
                (model, total.requests, total.tokens.sent, total.tokens.received, Figure(total.cost))
                for model, total in requests.items()
            )
            note = "As the endpoint counts tokens, over all runs of the command. The cost is that of runs with --price."
            header = ("model", "requests", "tokens sent", "tokens received", "cost")
            sections.append(Section("Requests", (Table(header, rows, notes=(note,)),)))
        return pages.page(request, project, "models", article=sections_html(sections))


def _add_members(routes: APIRouter, pages: OwnerPages) -> None:
    context = pages.context
    owner = Depends(context.require_owner)

    def people_page(request: Request, project: int, link: str = "", problem: str = "") -> Response:
        rows = {row["account"]: row for row in pages.results(project).people.iter_rows(named=True)}
        return pages.page(
            request, project, "people", link=link, problem=problem,
            people=[(number, name, role, rows.get(name)) for number, name, role in members(context.database, project)],
            invitations=open_invitations(context.database, project),
        )  # fmt: skip

    @routes.get("/projects/{project}/owner/people")
    def people(request: Request, project: RowId) -> Response:
        return people_page(request, project)

    @routes.post("/projects/{project}/owner/invite")
    def invite(
        request: Request, project: RowId, account: Account = owner, uses: Annotated[int, Form()] = 1,
        days: Annotated[float, Form()] = 7, role: Annotated[str, Form()] = "annotator",
    ) -> Response:  # fmt: skip
        try:
            token = create_invitation(context.database, project, role=role, uses=uses, days=days, by=account.id)
        except CrosslensError as error:
            return people_page(request, project, problem=sentence(error))
        return people_page(request, project, link=f"{own_address(request)}/join/{token}")

    @routes.post("/projects/{project}/owner/people/{member}/remove")
    def remove(request: Request, project: RowId, member: RowId, account: Account = owner) -> Response:
        return after(request, project, lambda: remove_member(context.database, project, member, account.id))

    @routes.post("/projects/{project}/owner/invitations/{invitation}/revoke")
    def revoke(request: Request, project: RowId, invitation: str, account: Account = owner) -> Response:
        return after(request, project, lambda: revoke_invitation(context.database, project, invitation, account.id))

    def after(request: Request, project: int, change: Callable[[], None]) -> Response:
        try:
            change()
        except CrosslensError as error:
            return people_page(request, project, problem=sentence(error))
        return RedirectResponse(f"/projects/{project}/owner/people", 303)

    @routes.get("/projects/{project}/owner/log")
    def project_log(request: Request, project: RowId, before: Before = 0) -> Response:
        return pages.page(request, project, "log", **pages.log(project, before))


def _add_accounts(routes: APIRouter, pages: OwnerPages) -> None:
    context = pages.context
    owner = Depends(context.require_owner_account)

    def accounts_page(
        request: Request, account: Account, problem: str = "", link: str = "", note: str = ""
    ) -> Response:
        return render(
            request, "judging/accounts.html", status=422 if problem else 200, account=account,
            accounts=list_accounts(context.database), invitations=open_invitations(context.database, None),
            problem=problem, link=link, note=note,
        )  # fmt: skip

    @routes.get("/accounts")
    def accounts(request: Request, account: Account = owner) -> Response:
        return accounts_page(request, account)

    @routes.post("/accounts/{other}/{action}")
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

    @routes.post("/accounts/invite")
    def invite_owner(request: Request, account: Account = owner) -> Response:
        token = create_invitation(context.database, None, role=OWNER, by=account.id)
        note = "The link makes one person an owner of the server, who sees and changes everything, within 7 days."
        return accounts_page(request, account, link=f"{own_address(request)}/join/{token}", note=note)

    @routes.post("/accounts/invitations/{invitation}/revoke")
    def revoke_owner(request: Request, invitation: str, account: Account = owner) -> Response:
        try:
            revoke_invitation(context.database, None, invitation, account.id)
        except CrosslensError as error:
            return accounts_page(request, account, problem=sentence(error))
        return RedirectResponse("/accounts", 303)

    @routes.get("/accounts/log")
    def log(request: Request, account: Account = owner, before: Before = 0) -> Response:
        return render(request, "judging/full_log.html", account=account, **pages.log(None, before))


def _add_decisions(routes: APIRouter, pages: OwnerPages) -> None:
    context = pages.context

    def cases(
        request: Request, project: int, shown: str, start: int, problem: str = "", at: int | None = None,
        answer: Answer | None = None,
    ) -> Response:  # fmt: skip
        results = pages.results(project)
        every = [case for case in results.disagreements if shown == "all" or case.adjudicated is None]
        start = max(0, min(start, len(every) - 1)) // PAGE * PAGE
        return pages.page(
            request, project, "disagreements", cases=every[start : start + PAGE], total=len(every),
            decided=sum(case.adjudicated is not None for case in results.disagreements), shown=shown, start=start,
            size=PAGE, items=results.answers.items, problem=problem, at=at, answer=answer,
        )  # fmt: skip

    def back(project: int, shown: str, start: int) -> Response:
        view = f"shown={'all' if shown == 'all' else 'open'}&start={max(0, start)}"
        return RedirectResponse(f"/projects/{project}/owner/disagreements?{view}", 303)

    @routes.get("/projects/{project}/owner/disagreements")
    def disagreements(request: Request, project: RowId, shown: str = "open", start: int = 0) -> Response:
        return cases(request, project, "all" if shown == "all" else "open", start)

    @routes.post("/projects/{project}/owner/items/{item}/decide")
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
        return back(project, shown, start)

    @routes.post("/projects/{project}/owner/items/{item}/reopen")
    def reopen(
        request: Request, project: RowId, item: RowId, shown: Annotated[str, Form()] = "all",
        start: Annotated[int, Form()] = 0,
    ) -> Response:  # fmt: skip
        account = context.require_owner(request, project)
        withdraw_decision(context.database, project, item, account.id)
        return back(project, shown, start)


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


def _add_exchange(routes: APIRouter, pages: OwnerPages) -> None:
    context, library = pages.context, pages.library

    def items_page(
        request: Request, project: int, problem: str = "", imported: ImportedItems | None = None
    ) -> Response:
        return pages.page(
            request, project, "items", files=FILES, problem=problem, imported=imported,
            kinds=Counter(item.kind for item in pages.results(project).answers.items.values()),
            runs=[summary for summary in library.runs() if summary.problem is None],
            datasets=library.datasets(), tables=", ".join(_TABLES),
        )  # fmt: skip

    @routes.get("/projects/{project}/owner/items")
    def items(request: Request, project: RowId) -> Response:
        return items_page(request, project)

    @routes.post("/projects/{project}/owner/import")
    def import_run(
        request: Request, project: RowId, run: Annotated[str, Form()], direction: Annotated[str, Form()] = "",
        limit: Annotated[int, Form(ge=1, le=_MOST_ITEMS)] = 200, seed: Annotated[int, Form()] = 0,
    ) -> Response:  # fmt: skip
        account = context.require_owner(request, project)
        try:
            loaded, dataset = library.run(run), library.dataset_of(run)
            served = library.summary(run).dataset or shown_as(dataset)
            new, note = run_items(loaded, dataset, direction or None, shown_as=served, limit=limit, seed=seed)
            imported = add_new_items(context.database, project, new, dataset.name, note, account.id)
            return items_page(request, project, "", imported)
        except CrosslensError as error:
            return items_page(request, project, sentence(error))

    @routes.post("/judging/upload/{project}")
    def import_table(
        request: Request, project: RowId, table: Annotated[UploadFile, File()], dataset: Annotated[str, Form()]
    ) -> Response:
        account = context.require_owner(request, project)
        try:
            suffix = Path(table.filename or "").suffix.lower()
            if suffix not in _TABLES:  # compressed text is refused: it may hold far more than it weighs
                raise CrosslensError(f"a table has one of the endings {', '.join(_TABLES)}", fix="upload such a file")
            data = library.dataset(dataset)
            with tempfile.TemporaryDirectory(prefix="crosslens-") as folder:
                file = Path(folder) / f"table{suffix}"  # of its name only the ending is used
                file.write_bytes(table.file.read())
                if suffix == ".parquet":
                    _require_small(file)
                try:
                    new = pair_items(file, data, shown_as=dataset)
                except InputError as error:
                    where = "" if error.row is None else f", {error.row}"
                    raise CrosslensError(f"{error.problem} ({table.filename}{where})"[:400], fix=error.fix) from None
            imported = add_new_items(context.database, project, new, data.name, by=account.id)
            return items_page(request, project, "", imported)
        except CrosslensError as error:
            return items_page(request, project, sentence(error))

    @routes.get("/projects/{project}/owner/export/{name}")
    def export(
        request: Request, project: RowId, name: str, rule: str = "majority", ground_truth: bool = False
    ) -> Response:
        account = context.require_owner(request, project)
        if name not in FILES:
            raise HTTPException(404, "There is no such file.")
        answers = pages.results(project).answers
        if name == "label-studio.xml":
            content = interface_of(answers.project.form, answers.items).encode()
        else:
            form = {"answers": ANSWERS, "judgements": QRELS}.get(name.partition(".")[0], LABEL_STUDIO)
            options = ExportOptions(form=form, rule=rule, pictures=f"{own_address(request)}/pictures/")
            # The dataset that most items show pictures of.
            counts = Counter(picture.dataset for item in answers.items.values() for picture in item.content.pictures)
            with_pairs = ground_truth and form == QRELS and counts
            dataset = library.dataset(counts.most_common(1)[0][0]) if with_pairs else None
            content = export_content(answers, name, options, dataset)
        note_export(context.database, project, name, account.id)
        head = {"Content-Disposition": f'attachment; filename="project-{project}-{name}"', "Cache-Control": "no-store"}
        return Response(content, media_type=FILES[name][0], headers=head)


def _require_small(file: Path) -> None:
    """Unpack a Parquet file in a process of little memory: 20 kB can hold gigabytes, whatever its header says."""
    words = [sys.executable, "-I", "-c", _UNPACK, str(file), str(_UNPACKED), str(_MEMORY)]
    try:
        with _UNPACKING:
            subprocess.run(words, check=True, capture_output=True, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError):
        problem = f"the file is no Parquet file, or holds more than {_UNPACKED >> 20} MB of text"
        raise CrosslensError(problem, fix="upload a smaller table, or use crosslens judging import") from None


def owner_routers(context: JudgingContext, services: Services) -> list[APIRouter]:
    """Results, people, disagreements, correlations, models, import and export: for owners of the project only."""
    services.body_limits["/judging/upload/"] = UPLOAD_BYTES
    api, routes = feature_router(tags=["judging"]), feature_router(include_in_schema=False, responses=None)
    pages = OwnerPages(context, services)

    @api.get("/api/projects/{project}/results")
    def results_json(request: Request, project: RowId) -> dict[str, Any]:
        """Agreement, shares of labels, people, models and correlations of a project; for its owners."""
        context.require_owner(request, project)
        return pages.results(project).as_dict()

    for add in (_add_results, _add_members, _add_accounts, _add_decisions, _add_exchange):
        add(routes, pages)
    return [routes, api]

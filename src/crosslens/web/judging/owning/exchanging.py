"""Items into a project from runs and tables, judgements out of it as files."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from threading import Lock
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from crosslens.core import CrosslensError, Dataset, InputError
from crosslens.web.judging.context import JudgingContext, RowId
from crosslens.web.judging.database.audit import note_export
from crosslens.web.judging.exchange.exporting import export_content, interface_of
from crosslens.web.judging.exchange.importing import ImportedItems, add_new_items, shown_as
from crosslens.web.judging.exchange.pair_lists import pair_items
from crosslens.web.judging.exchange.run_failures import run_items
from crosslens.web.judging.options import ExportOptions
from crosslens.web.judging.owning.kept_results import KeptResults
from crosslens.web.judging.owning.results_pages import page
from crosslens.web.judging.results.stored import ProjectAnswers
from crosslens.web.judging.wording import sentence
from crosslens.web.security import own_address
from crosslens.web.services import Services

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


def add_pages(routes: APIRouter, context: JudgingContext, services: Services, kept: KeptResults) -> None:
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
            new, note = run_items(
                loaded, dataset, direction or None, shown_as=_served_as(services, run, dataset), limit=limit, seed=seed
            )
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
            suffix = _table_suffix(table)
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
    dataset = _dataset_of(services, answers) if ground_truth and form == "qrels" else None
    return export_content(answers, name, options, dataset)


def _dataset_of(services: Services, answers: ProjectAnswers) -> Dataset | None:
    """The dataset that most items show pictures of."""
    shown = Counter(picture.dataset for item in answers.items.values() for picture in item.content.pictures)
    return services.library.dataset(shown.most_common(1)[0][0]) if shown else None


def _served_as(services: Services, run: str, dataset: Dataset) -> str:
    """The name in addresses of a run's dataset."""
    return services.library.summary(run).dataset or shown_as(dataset)


def _table_suffix(table: UploadFile) -> str:
    """The ending of an uploaded table. Compressed text is refused: it may hold far more than it weighs."""
    suffix = Path(table.filename or "").suffix.lower()
    if suffix not in _TABLES:
        raise CrosslensError(f"a table has one of the endings {', '.join(_TABLES)}", fix="upload such a file")
    return suffix


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

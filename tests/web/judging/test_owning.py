"""The pages of a project's owner, asked as a browser would, without JavaScript."""

from __future__ import annotations

import html
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from crosslens.explanations import explain_run
from crosslens.storage import parquet_bytes
from crosslens.web import load_answers
from crosslens.web.judging import owner_pages
from crosslens.web.judging.database.projects import create_project
from crosslens.web.judging.tasks import Answer
from tests.tables import rest_slow
from tests.web.conftest import NASTY
from tests.web.judging.owned import Owned
from tests.web.judging.samples import items
from tests.web.judging.site import Visitor, addresses

PAGES = ("", "/people", "/disagreements", "/correlations", "/models", "/items")


@pytest.mark.parametrize("path", PAGES)
def test_every_page_and_no_markup_of_others(owned: Owned, owner: Visitor, path: str) -> None:
    page = owner.get(owned.address(path))
    assert page.status_code == 200, page.text
    assert "<script>alert" not in page.text
    assert 'aria-current="page">' in page.text
    assert not re.search(r'\sstyle="|\son\w+="', html.unescape(re.sub(re.escape(html.escape(NASTY)), "", page.text)))


@pytest.mark.parametrize("path", [*PAGES, "/export/answers.csv", "/export/judgements.parquet"])
def test_only_owners_reach_them(owned: Owned, path: str) -> None:
    annotator = owned.site.visitor(owned.people["ann"])
    assert annotator.get(owned.address(path)).status_code == 403
    stranger = owned.site.visitor()
    assert stranger.get(owned.address(path)).status_code == 303
    other_project = create_project(owned.site.database, "Other", "pairs")
    assert owned.site.visitor(owned.people["bob"]).get(f"/projects/{other_project.id}/owner{path}").status_code == 404


def test_annotators_change_nothing_and_no_form_works_without_its_token(owned: Owned, owner: Visitor) -> None:
    posts = [path for method, path in addresses(owned.site.app.routes) if method == "POST" and "/owner/" in path]
    assert len(posts) >= 5
    annotator = owned.site.visitor(owned.people["ann"])
    good = {"label": "size", "rating": "3", "uses": 1, "overlap": 9, "run": "model-a"}
    for path in [*posts, "/judging/upload/{project}"]:
        parts = {"item": owned.items[0].id, "member": owned.people["ann"], "invitation": "0123456789ab"}
        address = path.format(project=owned.project, **parts)
        files = {"table": ("a.csv", b"image,caption\n")} if "upload" in path else None
        annotator.get("/login")
        token = {"csrf_token": annotator.client.cookies["crosslens_csrf"], "dataset": "x"}
        sent = annotator.client.post(address, data={**good, **token}, files=files)
        assert sent.status_code == 403, address
        assert owner.client.post(address, data=good, files=files).status_code == 403, address
    answers = load_answers(owned.site.database, owned.project)
    assert (answers.project.overlap, answers.adjudicated) == (3, {})


def test_the_results_say_what_was_counted(owned: Owned, owner: Visitor) -> None:
    page = html.unescape(owner.get(owned.address()).text)
    stored = owner.get(f"/api/projects/{owned.project}/results").json()
    assert f"Krippendorff's α {stored['agreement']['answers']['alpha']:.3f}" in page
    assert "human ceiling" in page
    assert page.count("<svg") >= 3
    assert page.count("<details") >= 3  # a table behind each chart
    mean, low, high = (stored["rating"][name] for name in ("mean", "low", "high"))
    assert f">mean rating</th><td>{mean:.2f} [{low:.2f}, {high:.2f}]<" in page
    assert sum(row["count"] for row in stored["ratings"]) == stored["rating"]["judgements"] == 3 * len(owned.items)
    people = owner.get(owned.address("/people")).text
    assert "1 of 1 right" not in people  # the check asks for one label, and they gave others
    assert "0 of 1 right" in people
    models = owner.get(owned.address("/models")).text
    assert "qwen2.5-vl" in models
    assert stored["models"][0]["model"] == "qwen2.5-vl"
    assert {row["account"] for row in stored["people"]} == set(owned.people)


def test_concept_metrics_and_derived_causes_beside_what_people_said(owned: Owned, owner: Visitor) -> None:
    pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
    page = html.unescape(owner.get(owned.address("/correlations")).text)
    stored = owner.get(f"/api/projects/{owned.project}/results").json()
    assert {"CA", "rank"} <= {row["metric"] for row in stored["correlations"]}
    assert "<td>CA</td>" in page
    assert "People's causes and derived ones" in page
    derived = stored["derived_causes"]
    assert derived["items"] == stored["decided"]["all"]
    (details,) = [row for row in derived["kappa"] if row["label"] == "details"]
    cells = [details[name] for name in ("items", "both", "people", "derived", "neither")]
    assert details["items"] == sum(cells[1:])
    cells_of_table = "".join(f'<td class="number">{count}</td>' for count in cells)
    assert f'<th scope="row">Details</th><td>detail</td>{cells_of_table}' in page


def test_the_true_image_is_shown_beside_the_retrieved_one(owned: Owned, tmp_path: Path) -> None:
    people = owned.site.visitor(owned.owner)
    page = people.get(owned.address("/disagreements")).text
    assert page.count("<figcaption>Retrieved</figcaption>") == page.count("<figcaption>True image</figcaption>") == 2
    plain = create_project(owned.site.database, "Without", "failures").id
    people.post(f"/projects/{plain}/owner/import", {"run": "model-b", "limit": 1})
    page = people.get(f"/projects/{plain}/annotate").text
    assert "Retrieved" in page
    assert "True image" not in page


def test_a_disagreement_is_decided_changed_and_taken_back(owned: Owned, owner: Visitor) -> None:
    page = owner.get(owned.address("/disagreements")).text
    assert page.count('class="case"') == 2
    item = owned.disputed[0]
    decide, reopen = owned.address(f"/items/{item}/decide"), owned.address(f"/items/{item}/reopen")
    wrong = owner.post(decide, {"label": "size", "rating": "11"})
    assert "out of range" in wrong.text
    assert 'value="size" checked' in wrong.text  # nothing has to be typed again
    assert "no label" in owner.post(decide, {"rating": "3"}).text.lower()
    sent = owner.post(decide, {"label": ["size", "count"], "rating": "3", "shown": "open"})
    assert (sent.status_code, sent.headers["location"]) == (303, owned.address("/disagreements?shown=open&start=0"))
    assert owner.get(sent.headers["location"]).text.count('class="case"') == 1
    assert owner.get(owned.address("/disagreements?shown=all")).text.count('class="case"') == 2
    assert load_answers(owned.site.database, owned.project).adjudicated == {item: Answer(("count", "size"), 3)}
    owner.post(decide, {"label": "colour", "rating": "2"})
    assert load_answers(owned.site.database, owned.project).adjudicated == {item: Answer(("colour",), 2)}
    assert owner.post(reopen).status_code == 303
    assert owner.post(reopen).status_code == 409
    assert owner.post(owned.address("/items/999999/decide"), {"label": "colour", "rating": "2"}).status_code == 422


def test_files_that_are_exported(owned: Owned, owner: Visitor) -> None:
    count = len(owned.items)
    csv = owner.get(owned.address("/export/answers.csv"))
    assert csv.headers["content-disposition"] == f'attachment; filename="project-{owned.project}-answers.csv"'
    assert len(csv.text.splitlines()) >= 1 + 4 * (count + 1)
    lines = owner.get(owned.address("/export/answers.jsonl")).text.splitlines()
    assert {json.loads(line)["source"] for line in lines} == {"person", "model"}
    table = pl.read_parquet(owner.get(owned.address("/export/judgements.parquet")).content)
    assert set(table["judge"]) == set(owned.people)
    whole = pl.read_parquet(owner.get(owned.address("/export/judgements.parquet?ground_truth=true&rule=mean")).content)
    assert "ground truth" in set(whole["by"])
    tasks = owner.get(owned.address("/export/label-studio.json")).json()
    assert tasks[0]["data"]["image"].startswith("http://127.0.0.1:8000/pictures/toys-")
    assert owner.client.get(tasks[0]["data"]["image"]).status_code == 200
    assert "<Choices" in owner.get(owned.address("/export/label-studio.xml")).text
    assert owner.get(owned.address("/export/other.csv")).status_code == 404
    assert owner.get(owned.address("/export/judgements.parquet?rule=best")).status_code == 404


def test_items_from_a_run_and_from_a_table(owned: Owned, owner: Visitor) -> None:
    number = create_project(owned.site.database, "New", "pairs").id
    page = owner.get(f"/projects/{number}/owner/items").text
    assert "model b" in page
    assert "broken" not in page
    sent = {"run": "model-b", "limit": 3}
    assert "Added: 3 real." in owner.post(f"/projects/{number}/owner/import", sent).text
    assert "Nothing new. 3 were there already." in owner.post(f"/projects/{number}/owner/import", sent).text
    assert "nknown run" in owner.post(f"/projects/{number}/owner/import", {"run": "../model-b"}).text
    dataset = items(owned.site.database, number)[0].content.pictures[0].dataset

    def upload(name: str, content: str, dataset: str = dataset) -> str:
        fields = {"csrf_token": owner.client.cookies["crosslens_csrf"], "dataset": dataset}
        files = {"table": (name, content.encode())}
        return html.unescape(owner.client.post(f"/judging/upload/{number}", data=fields, files=files).text)

    assert "Added: 1 real, 1 check." in upload(
        "pairs.csv", "image,caption,kind,expected\nimg1,img0#0,,\nimg1,img1#0,check,good\n"
    )
    assert (
        "image 'img99' is not in the dataset (pairs.csv, line 2)"
        in upload("pairs.csv", "image,text\nimg99,x\n").lower()
    )
    assert "a table has one of the endings" in upload("../../x.py", "image,text\n").lower()
    assert "unknown dataset" in upload("pairs.csv", "image,text\nimg1,x\n", "nope").lower()
    assert len(items(owned.site.database, number)) == 5


@pytest.mark.slow
def test_failures_of_explain_by_page(owned: Owned, owner: Visitor, tmp_path: Path) -> None:
    """``failures.parquet`` makes the items that its run makes, derived causes included."""
    pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
    library = owned.site.app.state.services.library
    run, dataset = library.run("model-b"), library.dataset_of("model-b")
    explain_run(run, dataset, resamples=0).failures.write_parquet(tmp_path / "failures.parquet")
    by_run, by_table = (create_project(owned.site.database, name, "failures").id for name in ("run", "table"))
    owner.post(f"/projects/{by_run}/owner/import", {"run": "model-b", "limit": 1000})
    expected = items(owned.site.database, by_run)
    assert "failures.parquet" in owner.get(f"/projects/{by_table}/owner/items").text
    fields = {"csrf_token": owner.client.cookies["crosslens_csrf"], "dataset": expected[0].content.pictures[0].dataset}
    files = {"table": ("failures.parquet", (tmp_path / "failures.parquet").read_bytes())}
    page = owner.client.post(f"/judging/upload/{by_table}", data=fields, files=files).text
    assert f"Added: {len(expected)} real." in page
    items_of_table = items(owned.site.database, by_table)

    def compared(item: Any) -> tuple[Any, ...]:
        content = item.content
        return (
            content.about["query"],
            content.texts,
            content.pictures[0],
            content.about["metrics"],
            content.about["causes"],
        )

    assert sorted(map(compared, items_of_table), key=str) == sorted(map(compared, expected), key=str)


@pytest.mark.parametrize(("rows", "characters"), rest_slow([(80_000, 1000), (1, 80_000_000), (0, 0)]))
def test_tables_in_parquet_by_page(owned: Owned, owner: Visitor, rows: int, characters: int) -> None:
    number = create_project(owned.site.database, "parquet", "pairs").id
    owner.get("/judging")
    dataset = owned.items[0].content.pictures[0].dataset
    fields = {"csrf_token": owner.client.cookies["crosslens_csrf"], "dataset": dataset}
    files = {"table": ("a.parquet", bytes(parquet_bytes(pl.DataFrame({"image": ["img1"], "text": ["x"]}))))}
    assert "Added: 1 real." in owner.client.post(f"/judging/upload/{number}", data=fields, files=files).text
    large = pl.DataFrame({"image": ["img1"] * rows, "text": ["x" * characters] * rows})
    content = bytes(parquet_bytes(large)) if rows else b"PAR1"
    assert len(content) < 1 << 16, "a few kB that hold 80 MB"
    answer = owner.client.post(f"/judging/upload/{number}", data=fields, files={"table": ("a.parquet", content)})
    assert answer.status_code == 422
    assert "is no Parquet file, or holds more than 64 MB of text" in answer.text
    assert len(items(owned.site.database, number)) == 1


def test_invitations_settings_and_correlations_with_a_run(owned: Owned, owner: Visitor) -> None:
    invitation = owner.post(owned.address("/invite"), {"uses": "2", "days": "1"})
    token = re.search(r"http://127\.0\.0\.1:8000(/join/[\w-]+)", invitation.text)
    assert token is not None
    assert owned.site.visitor().get(token[1]).status_code == 200
    assert "uses is 0" in owner.post(owned.address("/invite"), {"uses": "0"}).text.lower()
    text = "Look twice.\n" + NASTY
    saved = owner.post(owned.address("/settings"), {"overlap": "4", "guidelines": text})
    assert saved.status_code == 303
    page = owner.get(owned.address()).text
    assert 'name="overlap" min="1" max="1000" value="4"' in page
    assert html.escape(NASTY).split("&lt;")[1][:10] in page
    assert owner.post(owned.address("/settings"), {"overlap": "99999999999"}).status_code == 422
    with_run = owner.get(owned.address("/correlations?run=model-a")).text
    assert "t2i/MRR" in with_run
    assert "rank" in with_run
    assert owner.get(owned.address("/correlations?run=nope")).status_code == 404


def test_pages_of_a_project_without_judgements(owned: Owned, owner: Visitor, tmp_path: Path) -> None:
    number = create_project(owned.site.database, "Empty", "relevance").id
    for path in PAGES:
        assert owner.get(f"/projects/{number}/owner{path}").status_code == 200, path
    assert owner.get(f"/projects/{number}/owner/export/judgements.parquet").status_code == 422
    assert owner.get(f"/api/projects/{number}/results").json()["agreement"]["items"] == 0


def test_uploaded_tables_are_unpacked_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight uploads of 1.3 kB at once, 200 MB of text in each, took 1.9 GB in eight processes."""
    at_work: list[int] = []
    most = 0

    def unpack(*_: object, **__: object) -> None:
        nonlocal most
        at_work.append(1)
        most = max(most, len(at_work))
        time.sleep(0.02)
        at_work.pop()

    monkeypatch.setattr(owner_pages.subprocess, "run", unpack)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(owner_pages._require_small, [tmp_path / "table.parquet"] * 8))
    assert most == 1

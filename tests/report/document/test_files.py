"""Reports as files: from run folders and audit folders, with figures, never over something else by accident."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import ConflictError, InputError, UsageError
from crosslens.report import is_audit, report_inputs, write_report
from crosslens.report.document import page as document
from tests.commands import Call as Call, call as call

from .conftest import Study, command


def small_run(name: str = "m", dataset: str = "small") -> cl.Run:
    data = cl.Dataset.of({"a": ["one", "two"], "b": ["three", "four"]}, name=dataset)
    scores = np.array([[3, 1, 0, 2], [0, 2, 3, 1]], np.float32)
    return cl.evaluate(data, scores=scores, metrics="Hit@1 Recall@1", name=name, resamples=50)


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path, study: Study) -> None:
    page = tmp_path / "report.html"
    written = write_report(study.runs[0], page, image_folder=study.folder / "photos", queries=1)
    assert written.size == page.stat().st_size
    assert written.as_dict()["written"] == str(page)
    assert written.pictures > 0
    before = page.read_bytes()
    with pytest.raises(ConflictError, match="already exists"):
        write_report(study.runs[0], page)
    assert page.read_bytes() == before
    write_report(small_run(), page, overwrite=True)
    assert page.read_bytes() != before


def test_the_same_runs_give_the_same_page(tmp_path: Path, study: Study) -> None:
    pages = []
    for name in ("a", "b"):
        write_report(study.runs, tmp_path / f"{name}.html", queries=1, command="crosslens report")
        pages.append((tmp_path / f"{name}.html").read_bytes())
    assert pages[0] == pages[1]


def test_only_pages(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is not \.html"):
        write_report(small_run(), tmp_path / "report.pdf")


def test_runs_of_one_name_get_numbers() -> None:
    inputs = report_inputs([small_run(), small_run(), small_run("other")])
    assert list(inputs.runs) == ["m", "m (2)", "other"]


def test_neither_a_run_nor_an_audit(tmp_path: Path) -> None:
    assert not is_audit(tmp_path)
    with pytest.raises(InputError, match="neither a run nor an audit"):
        report_inputs([tmp_path])


def test_a_dataset_that_is_asked_for_must_be_there(study: Study) -> None:
    with pytest.raises(InputError):
        report_inputs(study.runs, dataset=study.folder / "nowhere")


def test_runs_on_two_datasets_stand_beside_each_other(tmp_path: Path) -> None:
    write_report([small_run("x", "first set"), small_run("y", "second set")], tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert text.index("On first set, x finds 50") < text.index("on second set, y finds 50 of 100 captions")
    assert 'id="better"' not in text, "figures on different datasets are not compared"


# Figures


def test_every_chart_and_table_becomes_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "find_spec", lambda name: None)
    written = write_report(small_run("<m>"), tmp_path / "r.html", figures=tmp_path / "figures")
    kinds = {file.suffix for file in written.figures}
    assert kinds == {".svg", ".tex"}
    assert document.NO_PDF in written.notes
    page = (tmp_path / "r.html").read_text()
    svgs = [file for file in written.figures if file.suffix == ".svg"]
    assert len(svgs) == page.count('<figure class="chart-figure') > 0
    for file in svgs:
        ElementTree.parse(file)
        assert file.with_suffix(".tex").exists(), "no chart without its table"
    for file in written.figures:
        assert re.fullmatch(r"[a-z0-9-]+", file.stem)
        if file.suffix == ".tex":
            assert file.read_text().count("\\begin{tabular}") == file.read_text().count("\\end{tabular}") == 1
    main = (tmp_path / "figures" / "numbers.tex").read_text()
    assert "Hit@1" in main
    assert "\\toprule" in main


def test_charts_are_vectors_in_pdf_files(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="pip install 'crosslens[pictures]'")
    written = write_report(small_run("m"), tmp_path / "r.html", figures=tmp_path / "figures")
    documents = [file.read_bytes() for file in written.figures if file.suffix == ".pdf"]
    assert len(documents) == sum(file.suffix == ".svg" for file in written.figures)
    for content in documents:
        assert content.startswith(b"%PDF")
        assert b"/Subtype /Image" not in content, "vectors, not pixels"


# The command


def test_the_command_says_what_it_wrote(tmp_path: Path, study: Study, call: Call) -> None:
    page = tmp_path / "r.html"
    folder = study.folder / "photos"
    words = ("--image-folder", folder, "--queries", "1", "--title", "A <title>", "--json")
    done = call("report", *study.runs, "-o", page, *words)
    assert done.code == 0, done.err
    assert done.json["written"] == str(page)
    assert done.json["bytes"] == page.stat().st_size
    assert done.json["sections"][0] == "answer"
    assert done.json["pictures"] > 0
    text = page.read_text()
    assert "<title>A &lt;title&gt;</title>" in text
    assert "crosslens report" in text
    again = call("report", study.runs[0], "-o", page)
    assert again.code == 5
    assert "already exists" in again.err


def test_mistakes_of_the_command(tmp_path: Path, call: Call) -> None:
    missing = call("report", tmp_path / "nowhere", "-o", tmp_path / "r.html")
    assert missing.code == 3
    assert "no such folder" in missing.err
    assert not (tmp_path / "r.html").exists()
    assert call("report", "-o", tmp_path / "r.html", mistyped=True).code == 2


@pytest.mark.slow
def test_a_report_of_an_audit_has_what_its_stages_computed(tmp_path: Path) -> None:
    command("synth", "--images", "24", "--seed", "3", "-o", tmp_path / "scenes")
    audit = tmp_path / "audit"
    command("audit", "--dataset", tmp_path / "scenes", "--model", "tiny", "--quick", "-o", audit, "--no-cache")
    assert is_audit(audit)
    written = write_report([audit, small_run()], tmp_path / "r.html")
    assert {"answer", "groups", "reading", "labels", "numbers"} <= set(written.sections)
    for page in (tmp_path / "r.html", audit / "report.html"):
        assert "Whether the input is sound" in page.read_text()

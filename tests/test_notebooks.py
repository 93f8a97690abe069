"""The notebooks of ``examples/`` run anew, and how a notebook shows progress."""

from __future__ import annotations

import inspect
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from tests.language.pipelines import installed

nbformat = pytest.importorskip("nbformat", reason="pip install 'crosslens[test]'")
nbclient = pytest.importorskip("nbclient", reason="pip install 'crosslens[test]'")
pytest.importorskip("ipykernel", reason="pip install 'crosslens[test]'")

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.ipynb"))
_PLACES = re.compile(r"(?<![\w.:/])/(home|root|tmp|work|Users|opt|usr)/|[A-Z]:\\\\Users")
_BAR = """
import time
from crosslens.engine import in_threads, shown_progress, stage

def work(blocks, worker, stop):
    for block in blocks:
        time.sleep(0.05)

with stage(shown_progress(None), "quick", 1) as quick:
    quick.advance()
for number in range(2):
    print("stage", number)
    with stage(shown_progress(None), f"<b>{number}</b>", 40) as bar:
        in_threads(range(40), 2, bar, work)
with stage(shown_progress(None), "outer", 1):
    with stage(shown_progress(None), "inner", 1):
        time.sleep(0.8)
"""


class Watched(nbclient.NotebookClient):
    """A client that remembers what is displayed while a cell runs."""

    def __init__(self, notebook: Any, folder: Path) -> None:
        super().__init__(notebook, timeout=300, resources={"metadata": {"path": str(folder)}})
        self.shown: list[tuple[str, dict[str, str]]] = []

    def process_message(self, message: Any, cell: Any, index: int) -> Any:
        if message["msg_type"] in ("display_data", "update_display_data"):
            self.shown.append((message["msg_type"], message["content"]["data"]))
        return super().process_message(message, cell, index)


def outputs(notebook: Any) -> list[list[tuple[str, ...]]]:
    """Per cell, its outputs by kind and what they are titled; a bar, which slow cells leave empty, does not count."""
    return [
        [
            (output.output_type, *sorted(output.get("data", {})), *titles(output.get("data", {}).get("text/html", "")))
            for output in cell.outputs
            if not is_empty(output)
        ]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def titles(page: str) -> list[str]:
    """Headings without their figures, which may differ in the last digit on another machine."""
    return [re.sub(r"[\d.,]+", "#", title) for title in re.findall(r"<h\d[^>]*>(.*?)</h\d>", page)]


def is_empty(output: Any) -> bool:
    return output.output_type == "display_data" and not any(output.data.values())


@pytest.mark.slow
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_a_notebook_runs_anew(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="pip install 'crosslens[demo]'")
    pytest.importorskip("PIL", reason="pip install 'crosslens[demo]'")
    if file.stem.startswith("why") and installed() is None:
        pytest.skip("no spaCy pipeline is installed")
    stored, again = nbformat.read(file, 4), nbformat.read(file, 4)
    Watched(again, tmp_path).execute()
    assert outputs(again) == outputs(stored), "run `make notebooks`"


def test_stored_outputs_are_small_and_of_no_machine() -> None:
    assert len(EXAMPLES) == 3
    assert sum(file.stat().st_size for file in EXAMPLES) < 1_500_000
    for file in EXAMPLES:
        assert not _PLACES.search(file.read_text()), file
        notebook = nbformat.read(file, 4)
        cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), "run `make notebooks`"
        assert not any(output.output_type == "error" for cell in cells for output in cell.outputs)
        assert any("text/html" in output.get("data", {}) for cell in cells for output in cell.outputs)


PLAIN = {"MetricRequest", "Perturbed", "Judgements", "RankedLists", "Ranking", "Relevance", "WrittenReport", "Engine"}
"""What functions return that is no result to look at."""


def test_what_functions_return_shows_itself() -> None:
    for name in dir(cl):
        function = getattr(cl, name)
        if inspect.isfunction(function):
            for kind in set(re.findall(r"\w+", str(inspect.signature(function).return_annotation))):
                value = getattr(sys.modules[function.__module__], kind, None)
                if isinstance(value, type) and value.__module__.startswith("crosslens") and kind not in PLAIN:
                    assert hasattr(value, "_repr_html_"), f"{name} returns {kind}"


def test_charts_and_texts_of_a_run() -> None:
    pretty = pytest.importorskip("IPython.lib.pretty").pretty
    dataset = cl.Dataset.of({f"image {n}": [f"caption {n}"] for n in range(4)})
    run = cl.evaluate(dataset, scores=np.eye(4), resamples=20, metrics="Hit@1")
    assert {"chart", "save", "table"} <= set(dir(run))
    assert repr(run.chart()) == "ChartDrawing('Metrics of run')"
    drawn = cl.plot([run], "caption_length")
    assert (drawn.metric, "plot" in dir(cl)) == ("t2i/Hit@1", True)
    for result in (run, drawn, cl.compare(run, run, permutations=10)):
        assert pretty(result) == str(result), "not the fields of a dataclass"
        assert "<svg" in result._repr_html_()


def test_progress_is_one_bar_that_goes(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(_BAR)])
    client = Watched(notebook, tmp_path)
    begin = time.monotonic()
    client.execute()
    took = time.monotonic() - begin
    kinds, data = zip(*client.shown, strict=True)
    assert kinds == ("display_data", *("update_display_data",) * (len(kinds) - 1)), "the stages of a cell share a bar"
    lines = [bundle["text/plain"] for bundle in data]
    assert len(lines) < 10 * took + 10, "at most ten a second"
    assert {line.partition(":")[0] for line in lines} == {"<b>0</b>", "<b>1</b>", "outer", ""}
    assert any(re.fullmatch(r"<b>0</b>: \d+ of 40, about \d+ s left", line) for line in lines)
    assert '<progress value="' in data[0]["text/html"]
    assert "&lt;b&gt;0" in data[0]["text/html"]
    assert [(output.output_type, output.get("text", "")) for output in notebook.cells[0].outputs] == [
        ("stream", "stage 0\n"), ("display_data", ""), ("stream", "stage 1\n")
    ]  # fmt: skip
    assert is_empty(notebook.cells[0].outputs[1])

"""A judging project that goes to Label Studio, is annotated there, and comes back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import polars as pl
import pytest

from tests.commands import Call, call as call
from tests.servers.processes import free_port, program, running

pytestmark = pytest.mark.slow
TOKEN = "0123456789abcdef0123456789abcdef01234567"
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def label_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Asks the API of a Label Studio with one user; its first start makes a database, which takes a while."""
    folder, port = tmp_path_factory.mktemp("label-studio"), free_port()
    words = [
        program("label-studio"), "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(port),
        "--data-dir", str(folder), "--username", "judge@example.org", "--password", "a-password", "--user-token", TOKEN,
        "--log-level", "ERROR",
    ]  # fmt: skip
    settings = {"LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true", "COLLECT_ANALYTICS": "0", "SENTRY_DSN": "",
                "FRONTEND_SENTRY_DSN": "", "PYTHONPATH": "", "DEBUG": "0"}  # fmt: skip

    def ask(path: str, content: Any = None) -> Any:
        headers = {"Authorization": f"Token {TOKEN}", "Content-Type": "application/json"}
        body = None if content is None else json.dumps(content).encode()
        with urlopen(Request(f"http://127.0.0.1:{port}/api/{path}", body, headers), timeout=120) as answer:
            return json.load(answer)

    with running(words, folder, f"http://127.0.0.1:{port}/health", settings):
        yield ask


@pytest.fixture
def judging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> Call:
    """``crosslens judging`` with a project of three pairs that ann has begun to judge."""
    monkeypatch.chdir(tmp_path)
    rows = [("a b.jpg", "a <dog> & a cat"), ("c.jpg", "rain"), ("d.jpg", "a boat")]
    Path("d.csv").write_text("image,text\n" + "".join(f"{image},{text}\n" for image, text in rows))
    pairs = (f"{image},c{number},{text}\n" for number, (image, text) in enumerate(rows))
    Path("pairs.csv").write_text("image,caption,text\n" + "".join(pairs))

    def run(command: str, *words: str, folder: str = "runs") -> Any:
        outcome = call("judging", command, *words, "--folder", folder, *(("--json",) if command == "import" else ()))
        assert outcome.code == 0, outcome.err
        return outcome

    run("new", "pairs", "--task", "pairs")
    run("import", "1", "pairs.csv", "--dataset", "d.csv")
    run("export", "1", "-o", "none.json")
    item = json.loads(Path("none.json").read_text())[0]["data"]["item"]
    answer = {
        "item": item, "kind": "real", "judge": "ann", "source": "person", "labels": ["good"], "rating": None,
        "text": "", "seconds": 2.5, "created": "2026-01-02T03:04:05+00:00", "image": rows[0][0], "caption": "c0",
        "shown_text": rows[0][1], "expected": "", "metrics": {},
    }  # fmt: skip
    Path("ann.jsonl").write_text(json.dumps(answer) + "\n")
    assert run("import", "1", "ann.jsonl", "--dataset", "d.csv").json["judgements"] == 1
    return run


def test_a_round_trip(judging: Call, label_studio: Ask) -> None:
    pictures = ("--pictures", "http://127.0.0.1:8000/pictures/")
    judging("export", "1", "-o", "tasks.json", "--interface", "interface.xml", *pictures)
    tasks = json.loads(Path("tasks.json").read_text())
    project = label_studio("projects", {"title": "pairs", "label_config": Path("interface.xml").read_text()})["id"]
    imported = label_studio(f"projects/{project}/import", tasks)
    assert (imported["task_count"], imported["annotation_count"]) == (3, 1)
    label_of = {}
    for task in label_studio(f"tasks?project={project}&fields=all")["tasks"]:
        label_of[task["data"]["text"]] = "bad" if task["data"]["text"] == "rain" else "good"
        value = {"choices": [label_of[task["data"]["text"]]]}
        result = [{"from_name": "labels", "to_name": "image", "type": "choices", "value": value}]
        label_studio(f"tasks/{task['id']}/annotations/", {"result": result, "lead_time": 3.5})
    annotated = label_studio(f"projects/{project}/export?exportType=JSON&download_all_tasks=true")
    Path("annotated.json").write_text(json.dumps(annotated))

    assert judging("import", "1", "annotated.json", "--dataset", "d.csv").json["judgements"] == 3
    assert judging("import", "1", "annotated.json", "--dataset", "d.csv").json["judgements"] == 0, "all are there"
    judging("new", "elsewhere", "--task", "pairs", folder="other")
    there = judging("import", "1", "annotated.json", "--dataset", "d.csv", folder="other").json
    assert (there["added"], there["judgements"]) == ({"real": 3}, 4)
    for folder in ("runs", "other"):
        judging("export", "1", "-o", f"{folder}.jsonl", folder=folder)
        rows = [json.loads(line) for line in Path(f"{folder}.jsonl").read_text().splitlines()]
        (first,) = [row for row in rows if row["judge"] == "ann"]
        assert (first["shown_text"], first["image"], first["labels"]) == ("a <dog> & a cat", "a b.jpg", ["good"])
        others = [row for row in rows if row["judge"] == "label-studio 1"]
        assert {row["shown_text"]: row["labels"][0] for row in others} == label_of
        assert [row["seconds"] for row in others] == [3.5] * 3
    judging("export", "1", "-o", "judgements.parquet")
    table = pl.read_parquet("judgements.parquet")
    assert dict(table.select("caption", "grade").iter_rows()) == {"c0": 1.0, "c1": 0.0, "c2": 1.0}


def test_a_file_that_is_not_label_studio_s(judging: Call, call: Call) -> None:
    for content in ("{}", "[1]", '[{"data": {}, "annotations": []}]', '[{"data": {"item": 1}, "annotations": 3}]'):
        Path("x.json").write_text(content)
        refused = call("judging", "import", "1", "x.json", "--dataset", "d.csv", "--folder", "runs")
        assert refused.code == 3
        assert "x.json, task 0: not a task with annotations as Label Studio exports it" in refused.err

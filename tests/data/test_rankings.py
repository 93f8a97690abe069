"""Runs and judgements in and out: TREC, JSON, JSON lines."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from crosslens.core import UsageError
from crosslens.data import read_qrels, read_run, write_qrels, write_run
from crosslens.values import RankedLists, Ranking, Relevance
from tests.data.files import write, write_json


def lists_of(run: RankedLists) -> dict[str, list[tuple[str, float]]]:
    return {
        query: [
            (run.item_ids[run.items[at]], float(run.scores[at])) for at in range(run.offsets[row], run.offsets[row + 1])
        ]
        for row, query in enumerate(run.query_ids)
    }


def judged(relevance: Relevance) -> dict[tuple[str, str], float]:
    return {
        (relevance.query_ids[row], relevance.item_ids[item]): float(grade)
        for row, item, grade in zip(relevance.rows, relevance.items, relevance.grades, strict=True)
    }


RUN = "q1 Q0 a 1 0.5 m\nq1 Q0 b 2 0.5 m\nq1 Q0 c 3 0.9 m\nq2 Q0 a 1 -3e-2 m\n"
RANKED = {"q1": [("c", 0.9), ("a", 0.5), ("b", 0.5)], "q2": [("a", -0.03)]}


@pytest.mark.parametrize(
    "content",
    [
        RUN,
        RUN.replace(" ", "\t"),
        RUN.replace(" ", "   "),
        RUN.replace(" ", " \t").replace("\n", " \r\n"),
        "\n" + RUN.replace("\n", "\n\n") + "  \n",
        RUN.replace("\n", "\r\n"),
        "\ufeff" + RUN,
        RUN.rstrip("\n"),
        "q1 Q0 b 2 0.5 m\nq2 Q0 a 1 -3e-2 m\nq1 Q0 a 1 0.5 m\nq1 Q0 c 3 0.9 m\n",  # in no order
    ],
)
def test_trec_run_however_it_is_spaced(tmp_path: Path, content: str) -> None:
    run = read_run(write(tmp_path / "model.run", content))
    assert lists_of(run) == RANKED
    assert run.system == "m"


@pytest.mark.parametrize("blank", [" ", "\t", "  "])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_comments_and_text_after_the_system_as_trec_eval_reads_them(tmp_path: Path, blank: str, mark: str) -> None:
    """trec_eval's own sample files have comments, and whatever follows the run id is ignored."""
    lines = RUN.replace(" ", blank).splitlines()
    content = [
        mark + "# my best run",
        lines[0] + " tuned on val",
        "  # indented",
        *lines[1:3],
        "#",
        lines[3] + "\tx y z",
    ]
    run = read_run(write(tmp_path / "model.run", "\n".join(content) + "\n"))
    assert lists_of(run) == RANKED
    assert run.system == "m"


@pytest.mark.parametrize(
    "content", ["# a\nq1 0 a#1 2\nq1 0 b -1\n#b\nq2 0 a#1 -2\n", "q1\t0\ta#1\t2\n# c\nq1\t0\tb\t-1\nq2 0 a#1 -2\n"]
)
def test_grades_below_0_are_no_judgement(tmp_path: Path, content: str) -> None:
    """As in trec_eval, where such a pair counts as neither relevant nor judged; its query and item are still known."""
    trec = read_qrels(write(tmp_path / "q.txt", content))
    mapping = read_qrels(write_json(tmp_path / "q.json", {"q1": {"a#1": 2, "b": -1}, "q2": {"a#1": -2}}))
    for relevance in (trec, mapping):
        assert judged(relevance) == {("q1", "a#1"): 2.0}
        assert (relevance.query_ids, relevance.item_ids) == (("q1", "q2"), ("a#1", "b"))


def test_ids_stay_as_they_are_written(tmp_path: Path) -> None:
    run = read_run(write(tmp_path / "r.txt.gz", '007 Q0 1e3 1 1 "m"\n007 Q0 "x 2 0 "m"\n'))
    assert run.query_ids == ("007",)
    assert run.item_ids == ("1e3", '"x')


def test_a_real_run(shared_data: Path) -> None:
    file = shared_data / "runs" / "align-coco5k-i2t.run.gz"
    run = read_run(file)
    assert (len(run.query_ids), len(run.items), run.system) == (5000, 50000, "ALIGN")
    with gzip.open(file, "rt") as lines:
        first = [line.split()[2] for _, line in zip(range(10), lines, strict=False)]
    assert [item for item, _ in lists_of(run)["391895"]] == first


@given(st.data())
def test_reading_a_run_agrees_with_the_slow_way(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    pairs = data.draw(
        st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("uvwxyz")), min_size=1, max_size=15, unique=True)
    )
    scores = data.draw(st.lists(st.sampled_from([-1.0, 0.25, 3.0]), min_size=len(pairs), max_size=len(pairs)))
    ranks = data.draw(st.lists(st.integers(0, 3), min_size=len(pairs), max_size=len(pairs)))
    rows = list(zip(pairs, scores, ranks, strict=True))
    text = "".join(f"{query} Q0 {item} {rank} {score} m\n" for (query, item), score, rank in rows)
    file = write(tmp_path_factory.mktemp("run") / "r.run", text)
    expected: dict[str, list[tuple[str, float]]] = {}
    for (query, _), _, _ in rows:
        expected.setdefault(query, [])
    for (query, item), score, _ in sorted(rows, key=lambda row: (-row[1], row[2])):
        expected[query].append((item, score))
    assert lists_of(read_run(file)) == expected


@pytest.mark.parametrize("name", ["r.json", "r.json.gz", "r.txt"])
def test_json_runs(tmp_path: Path, name: str) -> None:
    scored = {"q1": {"a": 0.5, "b": 0.5, "c": 0.9}, "q2": {"a": -0.03}}
    assert lists_of(read_run(write_json(tmp_path / name, scored))) == RANKED
    bare = read_run(write_json(tmp_path / f"bare-{name}", {"q1": ["c", 7], "q2": []}))
    assert lists_of(bare) == {"q1": [("c", -1.0), ("7", -2.0)], "q2": []}


@pytest.mark.parametrize("name", ["r.jsonl", "r.txt"])
def test_json_lines_runs(tmp_path: Path, name: str) -> None:
    rows = ['{"query": "q1", "items": ["a", "b", "c"], "scores": [0.5, 0.5, 0.9]}', '{"query": 2, "items": ["a"]}']
    run = read_run(write(tmp_path / name, "\n".join(rows)))
    assert lists_of(run) == {"q1": RANKED["q1"], "2": [("a", -1.0)]}


def test_qrels_in_every_form(tmp_path: Path) -> None:
    expected = {("q1", "a"): 2.0, ("q1", "b"): 0.0, ("q2", "a"): 1.0}
    trec = read_qrels(write(tmp_path / "qrels.txt", "q1 0 a 2\nq1 0 b 0\nq2 0 a 1\n"))
    mapping = read_qrels(write_json(tmp_path / "qrels.json", {"q1": {"a": 2, "b": 0}, "q2": {"a": 1}}))
    lines = '{"query": "q1", "items": ["a", "b"], "grades": [2, 0]}\n{"query": "q2", "items": ["a"]}\n'
    assert judged(trec) == judged(mapping) == judged(read_qrels(write(tmp_path / "q.jsonl.gz", lines))) == expected
    assert trec.source == "qrels"
    assert trec.query_ids == ("q1", "q2")
    bare = read_qrels(write_json(tmp_path / "bare.json", {"q1": ["a", "b"], "q2": []}))
    assert judged(bare) == {("q1", "a"): 1.0, ("q1", "b"): 1.0}
    assert bare.query_ids == ("q1", "q2")


@pytest.mark.parametrize("name", ["out.run", "out.run.gz", "out.json", "out.jsonl", "out.jsonl.gz"])
def test_runs_come_back(tmp_path: Path, name: str) -> None:
    run = RankedLists.of({"q1": {"c": 0.1 + 0.2, "é": 1e-12, "a": 1e-12}, "q2": {"a": -5.0}}, system="mine")
    again = read_run(write_run(run, tmp_path / "new" / name))
    assert lists_of(again) == lists_of(run)
    assert again.system == ("mine" if ".run" in name else "")


def test_a_ranking_is_written_as_its_lists(tmp_path: Path) -> None:
    empty = np.zeros(0, np.int64)
    ranking = Ranking(
        "i2t",
        ("q1", "q2"),
        ("a", "b"),
        np.array([[1, 0], [0, -1]]),
        np.array([[0.7, 0.1], [0.2539, np.nan]], np.float32),
        np.array([2, 1]),
        np.zeros(3, np.int64),
        empty,
        np.zeros(0, np.float32),
        empty,
        empty,
        empty,
    )
    path = write_run(ranking, tmp_path / "top.run", system="clip")
    assert path.read_text() == "q1 Q0 b 1 0.7 clip\nq1 Q0 a 2 0.1 clip\nq2 Q0 a 1 0.2539 clip\n"
    json_path = write_run(ranking, tmp_path / "top.json")
    assert json.loads(json_path.read_text()) == {"q1": {"b": 0.7, "a": 0.1}, "q2": {"a": 0.2539}}
    assert not list(tmp_path.glob(".partial-*"))


@pytest.mark.parametrize("name", ["q.txt", "q.txt.gz", "q.json", "q.jsonl"])
def test_qrels_come_back(tmp_path: Path, name: str) -> None:
    relevance = Relevance.from_pairs(["q1", "q1", "q2"], ["a", "b", "a"], [1, 0, 0.5])
    assert judged(read_qrels(write_qrels(relevance, tmp_path / name))) == judged(relevance)


@pytest.mark.parametrize("name", ["q.csv", "q.tsv.gz", "q.parquet"])
def test_qrels_are_not_called_as_a_table_that_they_are_not(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"not as \.\w+\n  fix: end the name in \.qrels or \.json"):
        write_qrels(Relevance.from_pairs(["q"], ["a"]), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_whole_grades_are_written_whole_and_the_same_bytes_every_time(tmp_path: Path) -> None:
    relevance = Relevance.from_pairs(["q1", "q2"], ["a", "b"])
    assert write_qrels(relevance, tmp_path / "q.txt").read_text() == "q1 0 a 1\nq2 0 b 1\n"
    first = write_qrels(relevance, tmp_path / "one.txt.gz").read_bytes()
    assert write_qrels(relevance, tmp_path / "two.txt.gz").read_bytes() == first


def test_ids_with_spaces_are_escaped_and_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(RankedLists.of({"a query": ["x"]}), tmp_path / "r.run", system="my model")
    assert (tmp_path / "r.run").read_text() == "%%a%20query Q0 x 1 -1.0 %%my%20model\n"
    note = "note: 1 id holds what separates columns, and 'a query' is written as %%a%20query: crosslens reads it back\n"
    assert capsys.readouterr().err == note
    again = read_run(tmp_path / "r.run")
    assert lists_of(again) == {"a query": [("x", -1.0)]}
    assert again.system == "my model"
    notes: list[str] = []
    write_qrels(Relevance.from_pairs(["q"], ["an item"]), tmp_path / "q.txt", notify=notes.append)
    assert (tmp_path / "q.txt").read_text() == "q 0 %%an%20item 1\n"
    assert len(notes) == 1
    write_qrels(Relevance.from_pairs(["q"], ["item"]), tmp_path / "q.txt")
    assert not capsys.readouterr().err


@pytest.mark.slow
def test_agrees_with_ranx(tmp_path: Path) -> None:
    ranx = pytest.importorskip("ranx")
    scores = {"q1": {"a": 0.5, "b": 0.25}, "q2": {"c": 0.125}}
    ranx.Run(scores, name="m").save(str(tmp_path / "r.json"))
    ranx.Run(scores, name="m").save(str(tmp_path / "r.trec"), kind="trec")
    assert lists_of(read_run(tmp_path / "r.json")) == lists_of(read_run(tmp_path / "r.trec"))
    grades = {"q1": {"a": 2, "b": 0}, "q2": {"c": 1}}
    ranx.Qrels(grades).save(str(tmp_path / "q.json"))
    assert judged(read_qrels(tmp_path / "q.json")) == {("q1", "a"): 2.0, ("q1", "b"): 0.0, ("q2", "c"): 1.0}

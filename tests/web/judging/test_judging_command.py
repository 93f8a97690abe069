"""The commands of judging, from failures of a run to relevance and the human ceiling."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

pytest.importorskip("PIL", reason="pip install 'crosslens[web]'")
pytest.importorskip("sqlalchemy", reason="pip install 'crosslens[web]'")

import crosslens as cl
from crosslens.encode import Tokens
from crosslens.synth import write_scenes
from crosslens.web import load_answers
from crosslens.web.judging.database.engine import Database, open_database
from crosslens.web.judging.database.judgements import record_judgement, requests_by_model
from crosslens.web.judging.tasks import Answer
from tests.build.generators.test_http import Server, content, fails
from tests.commands import Call, call as call
from tests.web.judging.samples import items, person, two_people_judge

IMAGES = 9


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Drawn scenes and the scores of a poor model."""
    folder = tmp_path_factory.mktemp("judging")
    write_scenes(folder / "scenes", IMAGES, seed=3, workers=1)
    dataset = cl.load_dataset(folder / "scenes")
    noise = np.random.default_rng(0).normal(size=(len(dataset.image_ids), len(dataset.caption_ids)))
    matches = np.equal.outer(np.arange(len(dataset.image_ids)), dataset.caption_image)
    np.save(folder / "scores.npy", noise + 2 * matches)
    return folder


@pytest.fixture
def root(scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenes").symlink_to(scenes / "scenes")
    (tmp_path / "scores.npy").symlink_to(scenes / "scores.npy")
    done = call("evaluate", "--dataset", "scenes", "--scores", "scores.npy", "--metrics",
                "Hit@1 Hit@5", "--resamples", "0", "-o", "runs/poor")  # fmt: skip
    assert done.code == 0, done.err
    return tmp_path


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.delenv("CROSSLENS_API_KEY", raising=False)
    started = Server()
    yield started
    started.httpd.shutdown()
    started.httpd.server_close()


def opened(root: Path) -> Database:
    return open_database(root / "runs" / "judging.sqlite")


@pytest.mark.slow
def test_from_failures_to_relevance_and_the_human_ceiling(root: Path, call: Call) -> None:
    assert call("judging", "new", "Poor", "--task", "failures").code == 0
    imported = call("judging", "import", "1", "runs/poor", "--json")
    assert imported.code == 0, imported.err
    count = imported.json["added"]["real"]
    again = call("judging", "import", "Poor", "runs/poor", "--json")
    assert (again.json["added"], again.json["known"]) == ({}, count)
    assert two_people_judge(root / "runs" / "judging.sqlite") == count

    status = call("judging", "status", "1")
    assert "human ceiling" in status.out
    assert re.search(r"disagreements +1\n", status.out)
    stored = call("judging", "status", "1", "--json").json
    assert stored["decided"] == {"adjudicated": 1, "all": count - 1}
    assert re.search(r"% \[[\d., ]+\] on average\n", status.out), (
        "two judges: one of them always gives the most frequent answer"
    )
    (listed,) = call("judging", "status", "--json").json
    assert listed["judgements"] == 2 * count
    assert listed["agreement"] == {
        "alpha": stored["agreement"]["answers"]["alpha"], "by_item": stored["agreement"]["by_item"]["mean"]
    }  # fmt: skip
    assert re.search(r"judgements; agreement: α 0\.\d{3}, \d\d\.\d % on average", call("judging", "status").out)

    exported = call("judging", "export", "1", "-o", "judgements.parquet", "--dataset", "scenes")
    assert exported.code == 0, exported.err
    table = pl.read_parquet("judgements.parquet")
    dataset = cl.load_dataset("scenes")
    assert table.filter(pl.col("by") == "ground truth").height == len(dataset.caption_ids)
    alternatives = set(table.filter((pl.col("grade") == 1) & (pl.col("by") != "ground truth"))["caption"])

    words = ("evaluate", "--dataset", "scenes", "--scores", "scores.npy", "--metrics", "Hit@1",
             "--resamples", "0", "--direction", "t2i")  # fmt: skip
    before, after = (call(*words, *more, "-o", f"runs/{name}", "--json") for name, more in
                     (("own", ()), ("judged", ("--qrels", "judgements.parquet"))))  # fmt: skip
    assert after.code == 0, after.err
    gained = after.json["metrics"]["t2i/Hit@1"]["mean"] - before.json["metrics"]["t2i/Hit@1"]["mean"]
    assert gained == pytest.approx(len(alternatives) / len(dataset.caption_ids))
    values = cl.Run.load("runs/judged")["t2i/Hit@1"]
    assert {query for query, hit in zip(values.query_ids, values.values, strict=True) if hit} >= alternatives

    ceiling = call("agreement", "--dataset", "scenes", "--judgements", "judgements.parquet",
                   "--phi", "cider", "--resamples", "0")  # fmt: skip
    assert ceiling.code == 0, ceiling.err
    assert "one judge" in ceiling.out
    assert "ceiling" in ceiling.out
    judges = call("agreement", "--dataset", "scenes", "--judgements", "judgements.parquet",
                 "--resamples", "0", "--json").json["judges"]  # fmt: skip
    assert judges["pairs"] == count
    assert 0 < judges["ceiling"] <= 1
    rated = call("judging", "export", "1", "-o", "ratings.parquet", "--rule", "rating")
    assert rated.code == 0
    assert pl.read_parquet("ratings.parquet")["grade"].max() == 9  # the owner's rating


def test_causes_of_people_against_concept_metrics(root: Path, call: Call) -> None:
    pytest.importorskip("spacy", reason="pip install 'crosslens[language]'")
    assert call("explain", "runs/poor", "-o", "why").code == 0
    call("judging", "new", "Poor", "--with-truth")
    table = call("judging", "import", "1", "why/failures.parquet", "--dataset", "scenes", "--json")
    assert table.code == 0, table.err
    count = table.json["added"]["real"]
    again = call("judging", "import", "1", "runs/poor", "--json").json
    assert (again["added"], again["known"], again["updated"], again["note"]) == ({}, count, 0, "")
    two_people_judge(root / "runs" / "judging.sqlite")
    status, status_page = call("judging", "status", "1", "--json").json, call("judging", "status", "1").out
    failures = {row["query"]: row for row in pl.read_parquet("why/failures.parquet").to_dicts()}
    answers = load_answers(opened(root), 1)
    rows = [(failures[item.content.about["query"]], name) for name, item in answers.items.items()]
    judged = dict(answers.table.group_by("item").agg(pl.col("rating").mean()).iter_rows())
    judged |= {item: answer.rating for item, answer in answers.adjudicated.items()}
    for metric in ("NonCommonSimilarity", "rank"):  # CA is the same for all of these
        both = [(row[metric], judged[name]) for row, name in rows if row[metric] is not None]
        (correlation,) = [row for row in status["correlations"] if (row["judged"], row["metric"]) == ("rating", metric)]
        assert correlation["items"] == len(both)
        assert correlation["spearman"] == pytest.approx(spearmanr(*zip(*both, strict=True)).statistic)
        assert f"{correlation['spearman']:.2f}" in status_page.split(f"\n{metric} ")[1].splitlines()[0]
    assert "not explained" not in {row["cause"] for row in status["derived_causes"]["kappa"]}
    ratings = answers.table["rating"]
    assert status["rating"]["mean"] == pytest.approx(ratings.mean())
    assert re.search(rf"mean rating +{ratings.mean():.2f} \[", status_page)
    assert [row["count"] for row in status["ratings"]] == [int((ratings == n).sum()) for n in range(1, 11)]


def test_a_survey_of_the_hard_pairs_with_the_lowest_scores(root: Path, call: Call) -> None:
    noisy = np.random.default_rng(1).normal(size=np.load("scores.npy").shape)
    np.save("other.npy", noisy)
    table_call = call("analyze", "difficulty", "--runs", "poor=scores.npy", "other=other.npy", "--dataset", "scenes",
                "--calibration", "poor=2.5", "other=0.5", "-o", "difficulty.parquet")  # fmt: skip
    assert table_call.code == 0, table_call.err
    hard = pl.read_parquet("difficulty.parquet").filter(difficulty="hard")
    assert hard.height > 5
    call("judging", "new", "Survey", "--task", "pairs", "--overlap", "2", "--per-person", "2")
    words = ("judging", "import", "1", "difficulty.parquet", "--part", "survey", "--dataset", "scenes")
    assert "pass --model with one of: poor, other" in call(*words).err
    assert "--part survey requires a table" in call("judging", "import", "1", "runs/poor", "--part", "survey").err
    assert "pass --hardest 5" in call(*words, "--limit", "5").err
    done = call(*words, "--model", "other", "--hardest", "5", "--distractors", "3", "--json")
    assert done.code == 0, done.err
    assert done.json["added"] == {"real": 5, "distractor": 3}
    stored = items(opened(root), 1)
    lowest = sorted(zip(hard["score[other]"], hard["caption"], strict=True))[:5]
    assert [item.content.about["caption"] for item in stored if item.kind == "real"] == [pair[1] for pair in lowest]
    database = opened(root)
    ann = person(database, "ann", project=1)
    bob = person(database, "bob", project=1)
    for item in stored:
        good = item.content.about["caption"] == lowest[0][1]
        if item.content.about["caption"] in (lowest[0][1], lowest[3][1]):
            record_judgement(database, item.id, bob, Answer(("good",)), source="person")
        record_judgement(database, item.id, ann, Answer(("good" if good else "bad",)), source="person")
    database.close()
    status = call("judging", "status", "1").out
    assert re.search(r"agreement that a pair fits +30\.0 % \[[\d., ]+\] on average, 0\.0 % at least", status)
    assert re.search(r"true negatives +3 of 3 judgements right \(100\.0 %\)", status)
    # in subsets of as many pairs as one person gets, and one by one, the lowest score first, with their pictures
    for line in ("1 to 2 +50.0 +0.0", "3 to 4 +25.0 +0.0", "5 to 5 +0.0 +0.0"):
        assert re.search(line, status), line
    call("judging", "status", "1", "--serve-data", "scenes", "--write", "survey.html")
    page = Path("survey.html").read_text()
    pairs = re.findall(
        r"([\d.]+) % of (\d) say that it fits(?:(?!say that).)*?score\[other\] (-?[\d.]+)", page, re.DOTALL
    )
    shares = [("100.0", "2"), ("0.0", "1"), ("0.0", "1"), ("50.0", "2"), ("0.0", "1")]
    assert pairs == [
        (*shares_of_pair, f"{score:.3f}") for shares_of_pair, (score, _) in zip(shares, lowest, strict=True)
    ]
    assert page.count('src="data:image') >= len({item.content.pictures[0].image for item in stored[:5]})


def test_answers_label_studio_and_what_does_not_go_together(root: Path, call: Call) -> None:
    call("judging", "new", "Poor", "--with-truth")
    call("judging", "import", "1", "runs/poor", "--limit", "4")
    nothing = call("judging", "export", "1", "-o", "qrels.parquet")
    assert (nothing.code, "nothing to export as qrels" in nothing.err) == (2, True)
    count = two_people_judge(root / "runs" / "judging.sqlite")
    assert count == 4
    assert call("judging", "export", "1", "-o", "answers.csv").code == 0
    assert len(Path("answers.csv").read_text().splitlines()) == 1 + 2 * count + 1
    assert call("judging", "export", "1", "-o", "answers.csv").code == 0, "it holds the same already"
    Path("other.csv").write_text("something else\n")
    assert call("judging", "export", "1", "-o", "other.csv").code == 5
    assert Path("other.csv").read_text() == "something else\n"
    done = call("judging", "export", "1", "-o", "tasks.json", "--interface", "interface.xml")
    assert done.code == 0
    tasks = json.loads(Path("tasks.json").read_text())
    assert [len(task["annotations"]) for task in tasks] == [3, 2, 2, 2]
    assert Path("interface.xml").read_text().startswith("<View>")
    for words, problem in (
        (("-o", "answers.xlsx"), "does not end in"),
        (("-o", "a.csv", "--dataset", "scenes"), "--dataset is for qrels"),
        (("-o", "a.csv", "--interface", "b.xml"), "--interface is for Label Studio"),
        (("-o", "a.parquet", "--grade", "colour"), "is not LABEL=NUMBER"),
        (("-o", "a.parquet", "--grade", "color=1"), "color"),
        (("-o", "a.parquet", "--rule", "best"), "best"),
    ):
        refused = call("judging", "export", "1", *words)
        assert refused.code != 0
        assert problem in refused.err


def test_projects_that_do_not_exist(root: Path, call: Call) -> None:
    missing = call("judging", "status")
    assert "no judging projects" in missing.err
    call("judging", "new", "Survey", "--task", "pairs")
    call("judging", "new", "Survey", "--task", "pairs")
    assert "2 projects are named 'Survey'" in call("judging", "status", "Survey").err
    assert "nknown project 'Surve'" in call("judging", "status", "Surve").err
    assert "a table of pairs does not say whose images" in call("judging", "import", "1", "scores.npy").err
    assert "nothing.csv" in call("judging", "import", "1", "nothing.csv").err
    assert "neither a run nor an IMP benchmark" in call("judging", "import", "1", "runs").err
    assert "unknown task 'tasks'" in call("judging", "new", "x", "--task", "tasks").err
    invited = call("judging", "invite", "1", "--uses", "3")
    assert invited.out.startswith("http://127.0.0.1:8000/join/")


def test_labels_of_ones_own(root: Path, call: Call) -> None:
    Path("form.toml").write_text(
        'question = "Fits?"\n[[labels]]\nname = "yes"\ngrade = 2\n[[labels]]\nname = "no"\ngrade = 0\n'
    )
    done = call("judging", "new", "Own", "--task", "pairs", "--labels", "form.toml", "--json")
    assert done.code == 0, done.err
    assert load_answers(opened(root), 1).labels == ("yes", "no")
    Path("form.toml").write_text("question = ")
    assert "line 1: not valid TOML" in call("judging", "new", "Own", "--task", "pairs", "--labels", "form.toml").err


def test_a_model_judges_a_project_and_stops_where_it_may(root: Path, call: Call, server: Server) -> None:
    call("judging", "new", "Poor")
    count = call("judging", "import", "1", "runs/poor", "--json").json["added"]["real"]
    two_people_judge(root / "runs" / "judging.sqlite")
    dry = call("judge", "1", "--model", "vlm", "--dry-run")
    assert "What does the retrieved picture get wrong" in dry.out
    assert "<image/jpeg, " in dry.out
    prompt = json.loads(call("judge", "1", "--model", "vlm", "--dry-run", "--json").out)["prompt"]
    assert prompt == dry.out.removesuffix("\n")
    server.answer = lambda body: content('{"labels": ["details"], "rating": 3}')
    words = ("judge", "1", "--model", "vlm", "--endpoint", server.address, "--record", "answers")
    first = call(*words, "--max-requests", "2", "--json")
    assert first.code == 0, first.err
    assert (first.json["answered"], first.json["left"]) == (2, count - 2)
    second = call(*words)
    assert f"{count - 2} items judged with {count - 2} requests; 2 were judged before, 0 are left" in second.out
    assert len(server.asked) == count
    answers = load_answers(opened(root), 1)
    assert answers.table.filter(source="model").height == count
    status = call("judging", "status", "1", "--json").json
    assert status["agreement"]["judges"] == 2  # people only
    assert status["models"][0]["model"] == "vlm"
    replayed = call("judge", "1", "--model", "vlm", "--name", "again", "--record", "answers", "--json")
    assert (replayed.json["answered"], replayed.json["requests"]) == (count, 0)
    call("judging", "export", "1", "-o", "model.parquet", "--source", "model")
    assert set(pl.read_parquet("model.parquet")["judge"]) == {"vlm", "again"}


def test_a_model_judges_a_table(root: Path, call: Call, server: Server) -> None:
    dataset = cl.load_dataset("scenes")
    pairs = pl.DataFrame({"image": dataset.image_ids[:2], "caption": dataset.caption_ids[:2]})
    pairs.write_csv("pairs.csv")
    server.answer = lambda body: content('{"labels": ["good"]}')
    words = ("judge", "pairs.csv", "--task", "pairs", "--dataset", "scenes", "--model", "vlm")
    assert "a table requires --output" in call(*words, "--endpoint", server.address).err
    assert "no endpoint is named" in call(*words, "-o", "a.jsonl").err
    assert "is on the network" in call(*words, "-o", "a.jsonl", "--endpoint", "https://example.org/v1", "--offline").err
    done = call(*words, "--endpoint", server.address, "-o", "answers.jsonl", "--pixels", "64")
    assert done.code == 0, done.err
    lines = [json.loads(line) for line in Path("answers.jsonl").read_text().splitlines()]
    assert [(line["image"], line["labels"], line["source"]) for line in lines] == [
        (image, ["good"], "model") for image in dataset.image_ids[:2]
    ]
    assert "Do picture and text go together?" in call(*words, "--dry-run").out


def test_an_interrupted_table_is_gone_on_with(root: Path, call: Call, server: Server) -> None:
    dataset = cl.load_dataset("scenes")
    pairs = pl.DataFrame({"image": dataset.image_ids[:4], "caption": dataset.caption_ids[:4]})
    pairs.write_csv("pairs.csv")
    words = ("judge", "pairs.csv", "--dataset", "scenes", "--model", "vlm", "-o", "answers.jsonl", "--workers", "1",
             "--endpoint", f"{server.address}?retries=0", "--price", "3", "15")  # fmt: skip
    reply = {**json.loads(content('{"labels": ["good"]}')[2]), "usage": {"prompt_tokens": 500, "completion_tokens": 9}}
    server.replies = [(200, {}, json.dumps(reply).encode())] * 2
    server.answer = lambda body: fails(429)
    failed = call(*words)
    assert failed.code != 0
    assert "answers so far are kept" in failed.err
    assert len(Path("answers.jsonl").read_text().splitlines()) == 2
    server.answer = lambda body: (200, {}, json.dumps(reply).encode())
    before = len(server.asked)
    done = call(*words, "--json")
    assert done.code == 0, done.err
    assert (done.json["known"], done.json["answered"], len(server.asked) - before) == (2, 2, 2)
    assert done.json["tokens"] == {"sent": 1_000, "received": 18, "uncounted": 0}
    assert done.json["cost"] == pytest.approx((1_000 * 3 + 18 * 15) / 1e6)
    lines = [json.loads(line) for line in Path("answers.jsonl").read_text().splitlines()]
    assert [line["image"] for line in lines] == list(dataset.image_ids[:4])
    renamed = call(*words, "--name", "another")
    assert renamed.code != 0
    assert "answers.jsonl holds other answers than those of another" in renamed.err
    again = call(*words, "--name", "another", "--overwrite")
    assert "tokens: 2,000 sent, 36 received; cost 0.0065" in again.out


def test_tokens_of_a_project_are_kept_and_shown(root: Path, call: Call, server: Server) -> None:
    call("judging", "new", "Failures", "--task", "failures")
    call("judging", "import", "1", "runs/poor", "--limit", "3")
    reply = json.loads(content('{"labels": ["colour"], "rating": 3}')[2])
    reply["usage"] = {"prompt_tokens": 1_200, "completion_tokens": 30}
    server.answer = lambda body: (200, {}, json.dumps(reply).encode())
    words = ("judge", "1", "--model", "vlm", "--endpoint", server.address)
    assert "tokens: 2,400 sent, 60 received" in call(*words, "--max-requests", "2").out
    call(*words, "--price", "10", "20")
    database = opened(root)
    (asked,) = requests_by_model(database, 1).values()
    assert (asked.requests, asked.tokens) == (3, Tokens(3_600, 90))
    assert asked.cost == pytest.approx((1_200 * 10 + 30 * 20) / 1e6)
    database.close()

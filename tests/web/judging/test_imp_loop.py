"""From the builder of an IMP benchmark to a judging project and back: the verdicts become the benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

pytest.importorskip("PIL", reason="pip install 'crosslens[web]'")
pytest.importorskip("sqlalchemy", reason="pip install 'crosslens[web]'")
pytest.importorskip("py3langid", reason="pip install 'crosslens[imp]'")

import crosslens as cl
from crosslens.build import Verdict, candidate_captions, candidate_dataset, is_imp_folder, write_verdicts
from crosslens.cli.datasets import served_data
from crosslens.core import ConflictError, InputError, UsageError
from crosslens.web import WebSettings
from crosslens.web.judging.database.engine import Database, open_database
from crosslens.web.judging.database.judgements import record_judgement
from crosslens.web.judging.database.projects import StoredItem
from crosslens.web.judging.exporting import as_imp_verdict
from crosslens.web.judging.results import adjudicate
from crosslens.web.judging.tasks import Answer
from tests.build.conftest import folder as folder, scenes as scenes
from tests.build.imp_builds import build
from tests.build.test_imp_command import BUILD, place as place
from tests.commands import Call, call as call
from tests.web.judging.samples import items, person
from tests.web.judging.site import Site

EXPORT = ("judging", "export", "1", "--folder", "runs", "-o", "bench")


def pool_text(stored: StoredItem) -> str:
    return stored.content.texts[0].text


def judge_all(database: Database, stored: list[StoredItem]) -> dict[str, str]:
    """Ann and ben call everything good, but differ on the first, both correct the second and reject the third."""
    ann, ben = (person(database, name, project=1) for name in ("ann", "ben"))
    for at, item in enumerate(stored):
        for who in (ann, ben):
            answer = Answer(("good",))
            if at == 0 and who == ben:
                answer = Answer(("unsure",))
            elif at == 1:
                answer = Answer(("bad",), None, "a corrected caption of the picture")
            elif at == 2:
                answer = Answer(("bad",))
            record_judgement(database, item.id, who, answer, source="person")
    return {name: str(stored[at].content.about["caption"]) for at, name in enumerate(("disputed", "corrected", "bad"))}


@pytest.mark.slow
def test_builder_project_judgements_builder(place: Path, call: Call) -> None:
    def told(*words: str) -> str:
        done = call(*words)
        assert done.code == 0, done.err
        return done.out

    assert "annotate-1.csv" in told(*BUILD)
    told("judging", "new", "Captions", "--task", "validity", "--overlap", "2", "--folder", "runs")
    told("judging", "import", "1", "bench", "--folder", "runs")
    database = open_database(place / "runs" / "judging.sqlite")
    stored = items(database, 1)
    assert {item.content.about["caption"] for item in stored} == set(candidate_captions("bench")["caption"])
    # Nobody has judged: the sheets stay empty, and the builder waits.
    told(*EXPORT)
    assert json.loads(told(*BUILD, "--json"))["status"] == "annotate"
    names = judge_all(database, stored)
    assert "annotate-2.csv" in call(*EXPORT).err
    assert json.loads(told(*BUILD, "--json"))["waiting"] == {"agree.csv": {"verdicts": 0, "needed": 1}}
    owner = person(database, "olga")
    adjudicate(database, 1, stored[0].id, owner, Answer(("bad",)))
    told(*EXPORT)
    done = json.loads(told(*BUILD, "--json"))
    assert (done["status"], done["agreement"]["open"]) == ("done", 1)
    rejected = pl.read_parquet("bench/rejected.parquet")
    assert set(rejected.filter(verdict="bad")["caption"]) == {names["disputed"], names["bad"]}
    log = [json.loads(line) for line in Path("bench/decisions.jsonl").read_text().splitlines()]
    (log_entry,) = [
        entry for entry in log if entry.get("step") == "annotated" and entry["caption"] == names["corrected"]
    ]
    assert log_entry["said"] == [["good", "a corrected caption of the picture", ""]] * 2
    database.close()


def test_the_server_shows_the_pictures_of_candidates(
    scenes: cl.Dataset, folder: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    build(scenes, folder, output=tmp_path / "bench")
    dataset = candidate_dataset("bench")
    assert set(dataset.image_ids) <= set(scenes.image_ids[:20])
    (loaded,), pictures = served_data(["bench"])
    assert (loaded.fingerprint, pictures) == (dataset.fingerprint, ())
    site = Site(tmp_path / "runs", datasets=(loaded,))
    assert isinstance(site.settings, WebSettings)
    assert call("judging", "new", "Captions", "--task", "validity", "--folder", "runs").code == 0
    assert call("judging", "import", "1", "bench", "--folder", "runs").code == 0
    picture = items(site.database, 1)[0].content.pictures[0]
    answer = site.visitor(site.owner()).get(f"/pictures/{picture.dataset}/{picture.image}")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/jpeg")
    names = judge_all(site.database, items(site.database, 1))
    exported = call(*EXPORT)
    assert (exported.code, "annotate-2.csv" in exported.err) == (0, True)
    sheets = [dict(pl.read_csv(f"bench/annotate-{n}.csv")["caption", "verdict"].iter_rows()) for n in (1, 2)]
    assert [sheet[names["disputed"]] for sheet in sheets] == ["good", "unsure"]
    assert [sheet[names["bad"]] for sheet in sheets] == ["bad", "bad"]
    site.database.close()


@pytest.mark.parametrize(
    ("labels", "text", "verdict"),
    [
        (("good",), "", Verdict("good")),
        (("good",), " a cat ", Verdict("good")),
        (("good",), "two cats", Verdict("good", "two cats")),
        (("bad",), "", Verdict("bad")),
        (("bad",), "two cats", Verdict("good", "two cats")),
        (("unsure",), "two cats", Verdict("unsure")),
    ],
)
def test_answers_as_verdicts(labels: tuple[str, ...], text: str, verdict: Verdict) -> None:
    assert as_imp_verdict(labels, text, "a cat") == verdict


def test_answers_that_are_no_verdicts() -> None:
    for labels in (("colour",), ("good", "bad"), ()):
        with pytest.raises(UsageError, match="no verdict"):
            as_imp_verdict(labels, "", "a cat")


def test_every_person_keeps_their_sheet_and_nothing_is_lost(scenes: cl.Dataset, folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "bench"
    build(scenes, folder, output=target)
    assert is_imp_folder(target)
    assert not is_imp_folder(tmp_path)
    first, second, *_ = captions = candidate_captions(target)["caption"].to_list()
    write_verdicts(
        target, {first: {"zoe": Verdict("bad")}, second: {"ann": Verdict("good"), "zoe": Verdict("bad")}}, {}
    )
    sheets = [dict(pl.read_csv(target / f"annotate-{n}.csv")["caption", "verdict"].iter_rows()) for n in (1, 2)]
    assert (sheets[0][first], sheets[1][first]) == (None, "bad"), "zoe's sheet is the second"
    assert (sheets[0][second], sheets[1][second]) == ("good", "bad")
    assert len(sheets[0]) == len(captions)
    with pytest.raises(ConflictError, match="would be lost: 3"):
        write_verdicts(target, {}, {})
    write_verdicts(target, {}, {}, overwrite=True)
    with pytest.raises(InputError, match="judged by 3 people, and the benchmark has 2 annotators"):
        write_verdicts(target, {first: dict.fromkeys("abc", Verdict("good"))}, {})
    with pytest.raises(InputError, match="no candidates of an IMP benchmark"):
        write_verdicts(tmp_path, {}, {})


def test_a_project_without_candidates(place: Path, call: Call) -> None:
    assert call(*BUILD).code == 0
    call("judging", "new", "Captions", "--task", "validity", "--folder", "runs")
    done = call(*EXPORT)
    assert done.code == 2
    assert "no item of the project is a candidate of the benchmark in bench" in done.err

"""Audits: stages in order, each once, refusals in one line, resumed after any interruption."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosslens.analyze import ANALYSES, Subject, look_at_groups, look_into_inputs
from crosslens.audits import (
    AuditFolder,
    AuditRequest,
    Condition,
    DatasetSource,
    StageOutput,
    StageWork,
    all_stages,
    audit_stage,
    load_audit,
    run_audit,
    sources,
    stage as stage_module,
)
from crosslens.audits.conclusions import Observed, conclude
from crosslens.core import ConflictError, CrosslensError, InputError, UnknownNameError, UsageError
from crosslens.encode import EncodeOptions
from crosslens.pipeline import AuditOptions, InputOptions, ModelOptions
from crosslens.storage import write_header
from crosslens.values import Dataset
from tests.pipeline.small_world import world

LIGHT = ("evaluate", "soundness", "curve")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    dataset, images, captions = world(images=12)
    dataset.save(tmp_path / "data")
    np.save(tmp_path / "images.npy", images)
    np.save(tmp_path / "captions.npy", captions)
    return tmp_path


def request(**more: Any) -> AuditRequest:
    inputs = InputOptions(image_embeddings="images.npy", caption_embeddings="captions.npy")
    return AuditRequest(**{"datasets": (DatasetSource("data"),), "inputs": inputs, **more})


def payloads(folder: Path) -> dict[str, Any]:
    return {file.name: json.loads(file.read_text())["payload"] for file in sorted((folder / "results").iterdir())}


@pytest.fixture
def own_stages() -> Iterator[None]:
    """Forget stages that a test registers."""
    all_stages()
    before = dict(stage_module.STAGES._entries)
    yield
    stage_module.STAGES._entries = before


def test_groups_of_german_captions_are_the_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the captions in German, longer than the others, which the model does not read; some long English ones
    are weak, too, and remain."""
    pytest.importorskip("py3langid", reason="pip install 'crosslens[imp]'")
    stream = np.random.default_rng(0)
    german = "Ein Mann mit einem Hut steht neben seinem alten Fahrrad und wartet auf die anderen um {} Uhr"
    texts = {
        f"i{row}": [
            german.format(row) if row % 3 == 0 else f"a dog {row} runs over the green grass" + " again" * (row % 2)
        ]
        for row in range(300)
    }
    dataset = Dataset.of(texts, images={"part": ["far" if row >= 240 else "near" for row in range(300)]})
    images = stream.standard_normal((300, 32)).astype(np.float32)
    misses = [row for row in range(300) if row % 3 == 0 or row >= 240]
    captions = images.copy()
    captions[misses] = stream.standard_normal((len(misses), 32))
    subject = Subject.of(dataset, images, captions)
    observed = [
        Observed(observation, "", "a", "d")
        for look in (look_into_inputs, look_at_groups) for observation in look(subject).findings()
    ]  # fmt: skip
    texts_said = [finding.text for finding in conclude(observed) if finding.kind in ("language", "group")]
    assert "German" in texts_said[0]
    assert "part “far”" in texts_said[1]
    assert len(texts_said) == 2


def test_stages_and_their_order() -> None:
    stages = all_stages()
    names = [stage.name for stage in stages]
    assert names[:2] == ["evaluate", "soundness"], "what is evaluated, and whether the input is sound, comes first"
    assert names[-2:] == ["comparison", "leaderboard"], "what sets runs side by side comes last"
    assert {entry.name for entry in ANALYSES} <= set(names), "an analysis is a stage, or has one of its own"
    assert len(set(names)) == len(names)
    assert all(stage.summary and sum(stage.cost) > 0 for stage in stages)


def test_what_stages_compute_is_what_their_commands_print(files: Path) -> None:
    audit = run_audit(request(), "out", AuditOptions(only=LIGHT, resamples=50))
    results = {result.stage: result for result in audit.results}
    run = audit.runs["embeddings"]
    assert results["evaluate"].payload["metrics"] == json.loads(json.dumps(run.as_dict()["metrics"]))
    dataset, images, captions = world(images=12)
    sound = look_into_inputs(Subject.of(dataset, images, captions))
    assert results["soundness"].payload == json.loads(json.dumps(sound.as_dict()))
    assert [(entry.kind, entry.effect, entry.p, entry.text) for entry in results["soundness"].observations] == [
        (entry.kind, entry.effect, entry.p, entry.text) for entry in sound.findings()
    ]
    assert results["curve"].payload["runs"]["embeddings"]["SR"][0]["n"] == len(dataset.caption_ids)
    graded = [name for name in run if "NCS[cider]@10" in name]
    assert graded, "classic and graded metrics"
    assert {"i2t/Recall@5", "i2t/CappedRecall@5", "i2t/Hit@5"} <= set(run)


def test_each_stage_says_in_one_line_why_it_cannot_run(files: Path) -> None:
    audit = run_audit(request(), "out", AuditOptions(only=("robustness", "hard-negatives", "leaderboard")))
    reasons = {entry.stage: entry.reason for entry in audit.skipped}
    assert reasons == {
        "robustness": "needs a model that encodes new captions: only vectors, scores or lists are given",
        "hard-negatives": "needs hard negatives: none are given",
        "leaderboard": "needs several runs of a dataset: there is one",
    }
    assert load_audit("out").skipped == audit.skipped


@pytest.mark.parametrize(
    ("stage", "dataset", "inputs", "reason"),
    [
        ("missing-positives", {"a": ["x"], "b": ["y"], "c": ["z"]}, "embeddings", "no image has two captions"),
        ("polysemy", {"a": ["x", "y"], "b": ["z", "w"], "c": ["u"]}, "scores", "only scores or lists are given"),
        ("polysemy", {"a": ["x", "y"], "b": ["z", "w"]}, "embeddings", "there are 2"),
    ],
)
def test_needs_of_a_dataset(files: Path, stage: str, dataset: dict[str, Any], inputs: str, reason: str) -> None:
    saved_dataset = Dataset.of(dataset)
    saved_dataset.save(files / "own")
    random = np.random.default_rng(0)
    np.save("i.npy", random.standard_normal((len(saved_dataset.image_ids), 4)))
    np.save("c.npy", random.standard_normal((len(saved_dataset.caption_ids), 4)))
    np.save("s.npy", random.standard_normal((len(saved_dataset.image_ids), len(saved_dataset.caption_ids))))
    given = InputOptions(scores="s.npy") if inputs == "scores" else InputOptions("i.npy", "c.npy")
    audit = run_audit(AuditRequest((DatasetSource("own"),), inputs=given), "out", AuditOptions(only=(stage,)))
    assert [entry.reason.split(": ")[1] for entry in audit.skipped] == [reason]


def test_lists_without_a_dataset(files: Path) -> None:
    Path("model.run").write_text("q1 Q0 a 1 2.0 m\nq1 Q0 b 2 1.0 m\nq2 Q0 b 1 2.0 m\nq2 Q0 a 2 1.0 m\n")
    Path("qrels.txt").write_text("q1 0 a 1\nq2 0 a 1\n")
    lists = AuditRequest(inputs=InputOptions(runs=("model.run",), qrels="qrels.txt"), name="mine")
    audit = run_audit(lists, "out")
    assert set(audit.runs) == {"mine"}
    assert audit.runs["mine"]["i2t/Hit@1"].mean == 0.5
    reasons = {entry.stage: entry.reason for entry in audit.skipped}
    assert reasons["explain"] == "needs a dataset: none is given"
    assert {result.stage for result in audit.results} == {"evaluate"}
    assert reasons["soundness"] == "needs a dataset: none is given"
    assert audit.dataset is None


def test_the_same_call_again_computes_nothing(files: Path) -> None:
    options = AuditOptions(only=LIGHT, resamples=50)
    first = run_audit(request(), "out", options)
    before = {file: file.stat().st_mtime_ns for file in Path("out/results").iterdir()}
    lines: list[str] = []
    again = run_audit(request(), "out", options, notify=lines.append)
    assert {file: file.stat().st_mtime_ns for file in Path("out/results").iterdir()} == before
    assert all(line.endswith("done before") for line in lines)
    assert [vars(finding) for finding in again.findings] == [vars(finding) for finding in first.findings]
    loaded = load_audit("out")
    assert [vars(result) for result in loaded.results] == [vars(result) for result in again.results]
    assert loaded.findings == first.findings
    assert loaded.dataset is not None
    assert loaded.dataset.fingerprint == world(images=12)[0].fingerprint


def test_interrupted_anywhere_it_ends_with_the_same_result(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C after each of the writes, again and again, until the audit is through."""
    options = AuditOptions(only=LIGHT, resamples=50)
    run_audit(request(), "whole", options)
    from crosslens.audits import results as folder

    write, interrupted = write_header, 0
    failed = set[str]()

    def fail_once(file: Path, content: Any) -> None:
        write(file, content)
        if file.name not in failed:
            failed.add(file.name)
            raise KeyboardInterrupt

    monkeypatch.setattr(folder, "write_header", fail_once)
    while True:
        try:
            run_audit(request(), "out", options)
        except KeyboardInterrupt:
            interrupted += 1
            assert Path("out").exists() == (interrupted > 1), "it appears with its header"
            if interrupted > 1:
                load_audit("out")
        else:
            break
    assert interrupted == 5, "the header, three stages, the findings"
    assert payloads(Path("out")) == {
        name: json.loads(json.dumps(payload).replace("whole", "out"))
        for name, payload in payloads(Path("whole")).items()
    }


def test_a_damaged_result_is_computed_again(files: Path) -> None:
    options = AuditOptions(only=("soundness",), resamples=50)
    run_audit(request(), "out", options)
    file = Path("out/results/soundness-embeddings.json")
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"0.", b"1.", 1))
    lines: list[str] = []
    run_audit(request(), "out", options, notify=lines.append)
    assert not next(line for line in lines if line.startswith("soundness")).endswith("done before")
    assert json.loads(file.read_bytes())["payload"] == json.loads(whole)["payload"]


def test_another_audit_is_not_replaced_unless_told(files: Path) -> None:
    options = AuditOptions(only=("soundness",), resamples=50)
    run_audit(request(), "out", options)
    with pytest.raises(ConflictError, match="already contains a different audit"):
        run_audit(request(), "out", AuditOptions(only=("soundness",), resamples=60))
    Path("out/mine.txt").write_text("a person's")
    run_audit(request(name="other"), "out", options, overwrite=True)
    assert set(load_audit("out").runs) == {"other"}
    assert not Path("out/results/soundness-embeddings.json").exists()
    assert Path("out/mine.txt").exists(), "only what audits write is removed"
    Path("elsewhere").mkdir()
    Path("elsewhere/mine.txt").write_text("a person's")
    with pytest.raises(ConflictError, match="is not an audit"):
        run_audit(request(), "elsewhere", options)


def test_corrected_data_take_over_a_folder_without_a_finished_stage(files: Path) -> None:
    options = AuditOptions(only=("soundness",), resamples=50)
    right = np.load("images.npy")
    np.save("images.npy", np.full_like(right, np.nan))
    Path("out").mkdir()
    with pytest.raises(CrosslensError, match="NaN"):
        run_audit(request(), "out", options)
    assert Path("out/header.json").exists(), "the failed audit leaves its header"
    Path("out/mine.txt").write_text("a person's")
    np.save("images.npy", right)
    changed_options = AuditOptions(only=("soundness",), resamples=60)
    audit = run_audit(request(name="corrected"), "out", changed_options)
    assert {result.stage for result in audit.results} == {"evaluate", "soundness"}
    assert set(load_audit("out").runs) == {"corrected"}
    assert Path("out/mine.txt").exists()
    with pytest.raises(ConflictError, match="already contains a different audit"):
        run_audit(request(), "out", options)


def test_a_corrected_dataset_given_as_a_value_replaces_the_one_before(files: Path) -> None:
    data, random = Dataset.of({"a": ["x", "y"], "b": ["z", "w"]}), np.random.default_rng(0)
    np.save("scores.npy", random.standard_normal((2, 3)))
    inputs = InputOptions(scores="scores.npy")
    options = AuditOptions(only=("soundness",), resamples=50)
    with pytest.raises(CrosslensError, match=r"score matrix of shape \(2, 3\)"):
        run_audit(AuditRequest((DatasetSource("out/datasets/d", value=data),), inputs=inputs), "out", options)
    fitting = Dataset.of({"a": ["x", "y"], "b": ["z"]})
    given = AuditRequest((DatasetSource("out/datasets/d", value=fitting),), inputs=inputs)
    audit = run_audit(given, "out", options)
    assert audit.dataset is not None
    assert audit.dataset.fingerprint == fitting.fingerprint


def test_changed_files_are_noticed(files: Path) -> None:
    options = AuditOptions(only=("evaluate",), resamples=50)
    run_audit(request(), "out", options)
    np.save("images.npy", -np.load("images.npy"))
    with pytest.raises(ConflictError, match="different run"):
        run_audit(request(), "out", options)


def test_selected_stages(files: Path) -> None:
    options = AuditOptions(skip=("curve",), only=LIGHT, resamples=50)
    assert {result.stage for result in run_audit(request(), "out", options).results} == {"evaluate", "soundness"}
    more = run_audit(request(), "out", AuditOptions(only=("curve",), resamples=50))
    assert {result.stage for result in more.results} == set(LIGHT), "what was computed before stays"
    with pytest.raises(UnknownNameError, match="robustnes"):
        run_audit(request(), "out", AuditOptions(only=("robustnes",)))
    with pytest.raises(UsageError, match="every other stage needs evaluate"):
        run_audit(request(), "out", AuditOptions(skip=("evaluate",)))


def test_a_stage_that_fails_leaves_the_others(files: Path, own_stages: None) -> None:
    @audit_stage("broken", about="run", order=11)
    def broken(work: StageWork) -> StageOutput:
        """Always fails."""
        raise InputError("the third row\nis odd", fix="remove it")

    @audit_stage("choosy", about="dataset", order=12, needs=(Condition("luck", lambda work: "there is none"),))
    def choosy(work: StageWork) -> StageOutput:
        """Never runs."""
        raise AssertionError

    lines: list[str] = []
    audit = run_audit(request(), "out", AuditOptions(only=("broken", "choosy", "soundness")), notify=lines.append)
    assert {entry.stage: entry.reason for entry in audit.skipped} == {
        "broken": "the third row is odd; remove it",
        "choosy": "needs luck: there is none",
    }
    assert "broken: left out, the third row is odd; remove it" in lines
    assert "soundness" in {result.stage for result in audit.results}


def test_a_bug_is_not_hidden(files: Path, own_stages: None) -> None:
    @audit_stage("broken", about="run", order=11)
    def broken(work: StageWork) -> StageOutput:
        """Has a bug."""
        return StageOutput({}[work], "")  # type: ignore[index]

    with pytest.raises(KeyError):
        run_audit(request(), "out", AuditOptions(only=("broken",)))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (AuditRequest(), "nothing to evaluate"),
        (AuditRequest(models=("tiny",)), "model.* requires .*dataset"),
        (request(models=("tiny",)), "both embeddings and a model"),
        (AuditRequest((DatasetSource("data"), DatasetSource("data"))), "several datasets and no model"),
        (AuditRequest((DatasetSource("data"), DatasetSource("data")), ("tiny",)), "two datasets are called"),
    ],
)
def test_wrong_requests(files: Path, wrong: AuditRequest, message: str) -> None:
    with pytest.raises(CrosslensError, match=message):
        run_audit(wrong, "out")


def test_models_by_datasets(files: Path) -> None:
    """Two models of one's own on two datasets: a run per pair, and a leaderboard."""
    Path("models.py").write_text(MODELS)
    Path("pictures").mkdir()
    for name, seed in (("left", 0), ("right", 1)):
        random = np.random.default_rng(seed)
        letters = [chr(97 + number) for number in range(8)]
        images = {f"{name}{letter}.ppm": [f"a {letter * 3}", f"the {letter * 2}"] for letter in letters}
        for image in images:
            content = random.integers(0, 255, (4, 4, 3), dtype=np.uint8).tobytes()
            Path("pictures", image).write_bytes(b"P6 4 4 255\n" + content)
        Dataset.of(images, name=name).save(files / name)
    several = AuditRequest(
        (DatasetSource("left"), DatasetSource("right")),
        ("callable:models.py:Letters", "callable:models.py:Noise"),
        model=ModelOptions(image_folder="pictures"),
    )
    options = AuditOptions(only=("leaderboard", "curve"), resamples=50)
    audit = run_audit(several, "out", options, encoding=EncodeOptions(cache=False), trust_code=True)
    assert len(audit.runs) == 4
    table = next(result.payload for result in audit.results if result.stage == "leaderboard")
    assert table["datasets"] == ["left", "right"]
    assert len(table["models"]) == 2
    assert {result.dataset for result in audit.results if result.stage == "curve"} == {"left", "right"}
    assert set(audit.datasets) == {"left", "right"}
    for run in audit.runs.values():
        assert run.provenance["dataset"]["name"] in ("left", "right")


MODELS = """
import numpy as np

class Letters:
    '''Counts letters; pictures are noise.'''
    revision = "one"
    def encode_images(self, images):
        return np.stack([np.asarray(image, np.float32).reshape(-1)[:26] for image in images])
    def encode_texts(self, texts):
        return np.array([[text.count(chr(97 + n)) + 0.1 for n in range(26)] for text in texts], np.float32)

class Noise(Letters):
    '''The other way round.'''
    revision = "two"
    def encode_texts(self, texts):
        return -super().encode_texts(texts)
"""


@pytest.mark.parametrize(
    ("model", "label"),
    [("tiny", "tiny"), ("clip:openai/clip-vit-b32", "clip-openai-clip-vit-b32"), ("callable:my/model.py:mine", "mine")],
)
def test_names_of_models(model: str, label: str) -> None:
    assert sources._label(model) == label


def test_what_killed_audits_leave_is_removed(tmp_path: Path) -> None:
    """Also of stages that are done and not computed again; work that can be resumed stays for the same audit."""
    out = tmp_path / "out"

    def leave(target: Path, key: str) -> Path:
        """As a process that was killed after its file was in place, or in the middle of its work."""
        folder = target.with_name(f".{target.name}.crosslens-partial")
        folder.mkdir(parents=True)
        (folder / "writer.json").write_text("{}")
        (folder / "key").write_text(key)
        (folder / "new").write_text("half")
        return folder

    folder = AuditFolder.open(out, "key", {"runs": {}}, overwrite=False)
    leftovers = [
        leave(path, "") for path in (out / "report.html", out / "results" / "soundness.json", out / "header.json")
    ]
    unfinished = leave(out / "runs" / "scores", "run")
    AuditFolder.open(out, "key", {"runs": {}}, overwrite=False)
    assert [path for path in (*leftovers, unfinished) if path.exists()] == [unfinished]
    AuditFolder.open(out, "another", {"runs": {}}, overwrite=False)  # nothing was finished: it takes the folder over
    assert not unfinished.exists()
    assert folder.header()["key"] == "another"


def test_an_audit_killed_before_its_header_is_written_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(folder: AuditFolder, name: str, *_: object) -> None:
        partial = folder.path / f".{name}.crosslens-partial"
        partial.mkdir()
        (partial / "writer.json").write_text("{}")
        raise KeyboardInterrupt

    for overwrite in (False, True):
        with monkeypatch.context() as patched:
            patched.setattr(AuditFolder, "_write", killed)
            with pytest.raises(KeyboardInterrupt):
                AuditFolder.open(tmp_path / "out", f"key {overwrite}", {"runs": {}}, overwrite=overwrite)
        AuditFolder.open(tmp_path / "out", f"key {overwrite}", {"runs": {}}, overwrite=overwrite)
        assert load_audit(tmp_path / "out").header["key"] == f"key {overwrite}"

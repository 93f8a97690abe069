"""What shells are told for what is typed: names from registries, and paths where a path may stand, too."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from crosslens.cli.app import _command_of
from tests.commands import Call, call as call
from tests.tables import each_row

from .test_main import COMMANDS


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder, with a dataset and folders of files."""
    (tmp_path / "cocktails.jsonl").touch()
    (tmp_path / "photos").mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / "photos" / name).touch()
    monkeypatch.chdir(tmp_path)


def in_bash(words: list[str], call: Call) -> list[str]:
    """What bash proposes; it passes words as lines, cut at its word breaks, the last one being typed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("_CROSSLENS_COMPLETE", "complete_bash")
        patch.setenv("COMP_WORDS", "\n".join(words))
        patch.setenv("COMP_CWORD", str(len(words) - 1))
        done = call()
    assert (done.code, done.err) == (0, "")
    return [line for line in done.out.splitlines() if line]


def in_zsh(typed: str, call: Call) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("_CROSSLENS_COMPLETE", "complete_zsh")
        patch.setenv("_TYPER_COMPLETE_ARGS", typed)
        done = call()
    assert (done.code, done.err) == (0, "")
    lines = done.out.removeprefix("_arguments '*: :((").removesuffix("))'\n")
    return [value.replace("\\\\:", ":") for value in re.findall(r'^"((?:[^"]|"")*)"', lines, re.MULTILINE)]


@each_row(
    "typed, proposed",
    [
        ("doc", ["doctor"]),
        ("evaluate --metr", ["--metrics"]),
        ("evaluate --help", ["--help-all", "--help"]),
        ("demo --help", ["--help"]),
        ("evaluate --metrics CappedR", ["CappedRecall@1", "CappedRecall@5", "CappedRecall@10"]),
        ("evaluate --metrics t2i/Hi", ["t2i/Hit@1", "t2i/Hit@5", "t2i/Hit@10"]),
        ("evaluate --metrics t2", ["t2i/", "t2t/"]),
        ("evaluate --metrics mAP", ["mAP@R"]),
        ("evaluate --metrics t2i/SR", ["t2i/SR@", "t2i/SRhit@"]),
        ("plot runs/a --metric i2t/Med", ["i2t/MedR", "i2t/MedR["]),
        ("evaluate --metrics NCS[rou", ["NCS[rouge-l]@1", "NCS[rouge-l]@5", "NCS[rouge-l]@10"]),
        ("evaluate --metrics MedR[f", ["MedR[floor]"]),
        ("evaluate --metrics SR[spice,by", [f"SR[spice,by-image]@{k}" for k in (1, 5, 10)]),
        ("train flickr8k-fi", ["flickr8k-first"]),
        ("export runs/a --to late", ["latex"]),
        ("export runs/a --to m", ["markdown", "model-index", "mteb", "mlflow"]),
        ("export runs/a --format fi", ["fiftyone"]),
        ("data convert a b --to coco_", ["coco_instances"]),
        ("evaluate --engine r", ["ray"]),
        ("evaluate --direction i", ["i2t"]),
        ("evaluate --model ti", ["tiny"]),
        ("evaluate --model altc", ["altclip:", "altclip:BAAI/AltCLIP"]),
        ("evaluate --rerank blip", ["blip:", "blip2:"]),
        ("build imp --encoder din", ["dinov2:", "dinov2:facebook/dinov2-base"]),
        ("analyze scorers --phi spice-c", ["spice-cardinality", "spice-colour"]),
        ("robustness --perturbations char_swap,jp", ["char_swap,jpeg"]),
        ("perturb --name adv", ["adversarial"]),
        ("audit --only missing", ["missing-positives"]),
        ("evaluate --dataset cock", ["cocktails.jsonl"]),
        ("evaluate --dataset pho", ["photos/", "photos/a.jsonl", "photos/b.jsonl"]),
        ("similarity --phi photos/a", ["photos/a.jsonl"]),
        ("metrics nD", ["nDCG"]),
        ("protocols fi", ["five"]),
        ("data formats kar", ["karpathy"]),
        ("data known sug", ["sugar-crepe"]),
    ],
)
def test_proposals(typed: str, proposed: list[str], call: Call) -> None:
    assert in_bash(["crosslens", *typed.split(" ")], call) == proposed
    assert in_zsh(f"crosslens {typed}", call) == proposed


def test_datasets_are_names_and_files_alike(call: Call) -> None:
    for proposed in (in_bash(["crosslens", "evaluate", "--dataset", "coc"], call),
                     in_zsh("crosslens evaluate --dataset coc", call)):  # fmt: skip
        assert {"coco", "coco-karpathy-5k", "cocktails.jsonl"} <= set(proposed)
    everything = in_bash(["crosslens", "audit", "--dataset", ""], call)
    assert {"karpathy", "flickr30k", "photos/"} <= set(everything)
    assert "sugar-crepe" not in everything, "it is for crosslens hard-negatives"


@each_row(
    "words, proposed",
    [
        (["--model", "clip", ":"], ["openai/clip-vit-base-patch32"]),
        (["--model", "clip", ":", "op"], ["openai/clip-vit-base-patch32"]),
        (["--model", "file", ":", "photos/a"], ["photos/a.jsonl"]),
        (["--metrics", "t2i/Hit", "@"], ["1", "5", "10"]),
        (["--metrics", "t2i/Hit", "@", "1"], ["1", "10"]),
        (["--metrics", "="], None),
        (["--metrics", "=", "t2i/Hi"], ["t2i/Hit@1", "t2i/Hit@5", "t2i/Hit@10"]),
        (["--metrics", "=", "t2i/Hit", "@", "5"], ["5"]),
        (["--metrics", '"Hit@1 t2i/Hi'], ["Hit@1 t2i/Hit@1", "Hit@1 t2i/Hit@5", "Hit@1 t2i/Hit@10"]),
        (["--model", "clip", ":", "openai/clip-vit-base-patch32", "--engine", "l"], ["local"]),
    ],
)
def test_words_that_bash_cuts(words: list[str], proposed: list[str] | None, call: Call) -> None:
    """``:``, ``@`` and ``=`` end a word in bash: what stands before the last of them is not proposed again."""
    answer = in_bash(["crosslens", "evaluate", *words], call)
    assert answer == proposed if proposed is not None else {"i2t/", "Hit@", "MedR"} <= set(answer)


_REGISTERED = re.compile(r"KIND:SOURCE|NAME.*PATH|NAME KEY=VALUE|STAGE|FORMAT|[a-z0-9]+(\|[a-z0-9]+)+")
_BY_FLAG = ("--metrics", "--metric", "--similarity", "--perturbations", "--perturb", "--score", "--protocol",
            "--generator", "--grammar", "--precision", "--dataset", "--tasks")  # fmt: skip


def test_every_flag_with_registered_values_completes(call: Call) -> None:
    completed: dict[tuple[str, str], tuple[str, ...]] = {}
    for words in COMMANDS:
        for flag in _command_of(words).flags:
            name, metavar = max(flag.opts, key=len), flag.metavar or ""
            from_registry = _REGISTERED.fullmatch(metavar) or "NAME KEY=VALUE" in metavar or name in _BY_FLAG
            if from_registry or (name == "--phi" and metavar != "NAME=FILE"):
                assert flag._custom_shell_complete is not None, (words, name)
                completed[name, metavar] = words
    assert len(completed) > 40
    for (name, _), words in completed.items():
        assert in_bash(["crosslens", *words, name, ""], call), (words, name)


def test_without_names_it_is_left_to_the_shell(call: Call) -> None:
    """Which proposes files: of a similarity in a file, of runs, of columns."""
    for words in (["evaluate", "--phi", "a"], ["evaluate", "--run", "p"], ["judge", "1", "--model", "cl"]):
        assert in_bash(["crosslens", *words], call) == []


def test_the_completion_script() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "crosslens", "--show-completion", "bash"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "complete -o default -F _crosslens_completion crosslens" in done.stdout

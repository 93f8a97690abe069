"""``crosslens check``: exit codes, tables, JSON, annotations, mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Call


def test_the_exit_code_says_whether_all_are_met(runs: tuple[Path, Path], call: Call) -> None:
    outcome = call("check", runs[0], "--require", "t2i/Hit@1 >= 0", "--require", "t2i/MedR <= 100")
    assert outcome.code == 0
    assert "2 requirements: all met." in outcome.out
    outcome = call("check", runs[0], "--require", "t2i/Hit@1 >= 0", "--require", "t2i/Hit@1 > 100%")
    assert outcome.code == 7
    assert "NOT MET" in outcome.out


def test_json_file_and_annotations(runs: tuple[Path, Path], tmp_path: Path, call: Call) -> None:
    file = tmp_path / "requirements.toml"
    file.write_text('require = ["worst(category, t2i/Hit@1) >= 0%"]\n', encoding="utf-8")
    content = call("check", runs[0], "--requirements", file, "--require", "t2i/Hit@1 > 100%", "--json").json
    assert [entry["met"] for entry in content["results"]] == [False, True]
    outcome = call("check", runs[0], "--requirements", file, "--github")
    assert outcome.code == 0
    assert outcome.out.splitlines()[0].startswith("::notice title=a%3A worst(category%2C t2i/Hit@1)")


def test_a_gap_and_confidence(runs: tuple[Path, Path], call: Call) -> None:
    words = ("check", runs[1], "--baseline", runs[0], "--require", "gap(t2i/Hit@1) > 0")
    content = call(*words, "--json").json["results"][0]
    confident = call(*words, "--confident")
    assert content["value"] > 0
    assert confident.code == (0 if content["low"] > 0 else 7)
    assert "The whole interval had to keep the bound." in confident.out.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "no requirements"),
        (("--require", "t2i/Hit@1 => 1"), 2, "character 11: expected one of >=, <=, > and <, not '='"),
        (("--require", "t2i/Hit@2 > 1"), 2, "character 1: unknown metric in 'a'"),
        (("--require", "drop(char_swap) < 1"), 2, "pass --robustness with the study's folder"),
        (("--require", "gap(Hit@1) < 1"), 2, "pass --baseline"),
        (("--requirements", "missing.toml"), 3, "missing.toml"),
        (("--require", "t2i/Hit@1 > 0", "--github", "--json"), 2, "--github does not go with --json"),
    ],
)
def test_mistakes(runs: tuple[Path, Path], call: Call, words: tuple[str, ...], code: int, message: str) -> None:
    outcome = call("check", runs[0], *words)
    assert outcome.code == code
    assert message in outcome.err

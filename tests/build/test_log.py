"""The decision log of a build, and settings that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crosslens.build import RECOS as FORMAT, DecisionLog, RecosSettings
from crosslens.build.folder import VERSION
from crosslens.core import FormatVersionError, InputError, UsageError

HEAD = {"step": "settings", "format": FORMAT, "version": VERSION}


def test_a_log_comes_back_as_it_was(tmp_path: Path) -> None:
    log = DecisionLog([HEAD])
    log("check", caption="a\u2028b", dis=1 / 3, near=[(1, 0.12345678)], none=None)
    log.save(tmp_path / "decisions.jsonl")
    again = DecisionLog.load(tmp_path)
    assert again.entries == log.entries
    assert again.entries[1] == {
        "step": "check", "caption": "a\u2028b", "dis": 0.333333, "near": [[1, 0.123457]], "none": None
    }  # fmt: skip
    assert again.of("check") == again.entries[1:]


def test_a_repeated_build_must_decide_the_same() -> None:
    def log(**facts: Any) -> DecisionLog:
        written = DecisionLog([HEAD])
        written("check", **facts)
        return written

    log(dis=0.5, verdict="kept").check_same(log(dis=0.50001, verdict="kept"))
    with pytest.raises(UsageError, match="line 2"):
        log(dis=0.5, verdict="kept").check_same(log(dis=0.5, verdict="too vague"))
    with pytest.raises(UsageError, match="line 2"):
        log(dis=0.5).check_same(log(dis=0.6))
    with pytest.raises(UsageError, match="0 decisions, the log 1"):
        log(dis=0.5).check_same(DecisionLog([HEAD]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"step": "settings"}\n', "not a decision log"),
        (f'{{"step": "settings", "format": "{FORMAT}", "version": 1}}\nnot json\n', "line 2"),
        (f'{{"step": "settings", "format": "{FORMAT}", "version": 1}}\n[1, 2]\n', "line 2"),
    ],
)
def test_a_damaged_log_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "log.jsonl").write_text(text)
    with pytest.raises(InputError, match=message):
        DecisionLog.load(tmp_path / "log.jsonl")


def test_other_logs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        DecisionLog.load(tmp_path / "none.jsonl")
    (tmp_path / "new.jsonl").write_text(f'{{"step": "settings", "format": "{FORMAT}", "version": 99}}\n')
    with pytest.raises(FormatVersionError, match="version 99"):
        DecisionLog.load(tmp_path / "new.jsonl")


@pytest.mark.parametrize(
    "wrong",
    [{"k": 1}, {"eta": 0}, {"eta": 2}, {"descriptions": 0}, {"attempts": -1}, {"originals": 0}, {"temperature": -1},
     {"duplicate_bits": -2}, {"similar": -1}],
)  # fmt: skip
def test_settings_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        RecosSettings(**wrong)

"""Progress where there is no terminal: a plain line now and then, with what is done and what is left."""

from __future__ import annotations

import io
from typing import Any

import pytest

from crosslens.cli import console
from crosslens.cli.console import Bar, LogLines, duration, progress_bar
from crosslens.engine import note_resumed, stage


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    passing = Clock()
    monkeypatch.setattr(console, "time", passing)
    return passing


def test_long_work_prints_a_line_every_half_a_minute(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with stage(LogLines(), "encoding images", 4_000) as progress:
        for _ in range(10):
            clock.now += 10
            progress.advance(100)
    assert capsys.readouterr().err.splitlines() == [
        "encoding images: 300 of 4,000, 30 s elapsed, about 6 min 10 s left",
        "encoding images: 600 of 4,000, 1 min 0 s elapsed, about 5 min 40 s left",
        "encoding images: 900 of 4,000, 1 min 30 s elapsed, about 5 min 10 s left",
    ]


def test_many_short_stages_are_not_silent_together(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    progress = LogLines()
    for number in range(4):
        with stage(progress, f"variant {number}", 2):
            clock.now += 12
            progress.advance()
    assert capsys.readouterr().err == "variant 2: 1 of 2, 12 s elapsed, about 12 s left\n"


def test_a_stage_that_begins_late_says_so(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    progress = LogLines()
    clock.now += 31
    progress.start("ranking", 5)
    assert capsys.readouterr().err == "ranking: 0 of 5, 0 s elapsed\n"


def test_resumed_work_says_where_it_goes_on(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    for progress in (LogLines(), Bar()):
        with stage(progress, "training", 60, done=45):
            pass
        with stage(progress, "similarity", 8_000, done=4_096, unit="image"), stage(progress, "ranking", 5):
            note_resumed(progress, "clip", 3, 13, "result")
        resume_notes = [line.strip() for line in capsys.readouterr().err.splitlines() if "note:" in line]
        assert resume_notes == [
            "note: training: resumed at step 45 of 60",
            "note: similarity: resumed at image 4,096 of 8,000",
            "note: clip: resumed at result 3 of 13",
        ]
    with stage(Plain(), "training", 60, done=45):  # of somebody else, which takes no notes
        pass
    assert capsys.readouterr().err == ""


class Plain:
    def start(self, label: str, total: int) -> None: ...
    def advance(self, steps: int = 1) -> None: ...
    def finish(self) -> None: ...


def test_short_work_is_silent(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with stage(LogLines(), "ranking", 10) as progress:
        clock.now += 29
        progress.advance(10)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert isinstance(progress_bar(), LogLines)
    monkeypatch.setattr("sys.stderr", Terminal())
    bar: Any = progress_bar()
    assert isinstance(bar, Bar)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7505, "2 h 5 min")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text

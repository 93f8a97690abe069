"""One display for all stages: it never goes back, and is full when all are done, whatever they count."""

from __future__ import annotations

from hypothesis import given, strategies as st

from crosslens.audits.running import StageProgress, total_steps


class Counter:
    def __init__(self) -> None:
        self.steps: list[int] = []
        self.texts: list[str] = []

    def start(self, label: str, total: int) -> None: ...

    def advance(self, steps: int = 1) -> None:
        self.steps.append(steps)

    def finish(self) -> None: ...

    def show_beside(self, text: str) -> None:
        self.texts.append(text)


counts = st.lists(st.tuples(st.integers(0, 50), st.lists(st.integers(0, 60), max_size=5), st.booleans()), max_size=6)


@given(seconds=st.floats(0, 1000), counted=counts)
def test_a_stage_fills_its_part_exactly(seconds: float, counted: list[tuple[int, list[int], bool]]) -> None:
    display = Counter()
    stage = StageProgress(display, "explain", seconds)
    for total, advances, finishes in counted:
        stage.start("counting", total)
        for steps in advances:
            stage.advance(steps)
        assert sum(display.steps) < max(2, total_steps(seconds)), "not done before it is"
        if finishes:
            stage.finish()
    stage.complete()
    assert sum(display.steps) == total_steps(seconds)
    assert all(steps >= 0 for steps in display.steps)


def test_the_display_says_what_is_done() -> None:
    display = Counter()
    StageProgress(display, "explain", 1).start("parsing captions", 10)
    assert display.texts == ["explain", "explain: parsing captions"]

"""The command line called in this process on hostile input: it must refuse, soon, in words, and write nothing."""

from __future__ import annotations

import signal
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import FrameType

import pytest

from crosslens.core import CrosslensError
from tests.commands import Call as Call, Outcome as Outcome, call as call
from tests.conftest import leaves_out_slow
from tests.hostile.writing_commands import make_inputs

SECONDS = 30
"""More than any case takes on a busy machine; what hangs does not end at all."""


LONG = (
    "test_kills", "test_races", "test_full_disk", "test_integrity", "test_memory", "test_uploads",
    "test_read_during_write", "test_planted_links",
)  # fmt: skip
"""Modules of which a case runs many processes, or many loads."""


@pytest.fixture(autouse=True)
def _bounded_time(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.path.stem in LONG:
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"still running after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


Refused = Callable[..., str]
USER_ERRORS = (2, 3, 5)
"""The exit codes for a mistake in the arguments, in the data, and for an output path that is taken."""


Refuses = Callable[[Callable[[], object]], str]


@pytest.fixture
def refuses(tmp_path: Path) -> Refuses:
    """Call a function that must raise a user's error and leave ``tmp_path`` as it was; its message."""

    def run(function: Callable[[], object]) -> str:
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(CrosslensError) as caught:
            function()
        assert caught.value.exit_code in USER_ERRORS
        assert sorted(tmp_path.rglob("*")) == before, "something was written"
        message = str(caught.value)
        assert len(message) < 5_000, "no message quotes a whole file"
        return message

    return run


def refused_path(function: Callable[[], object]) -> None:
    """Call a function on a path that leads to no file: what the system says of it is as good an answer."""
    with pytest.raises((CrosslensError, OSError)):
        function()


SAMPLED = ("test_readers", "test_sources", "test_options", "test_arrays", "test_stored", "test_texts")
"""Modules of hundreds of cases each, of which a few of each test run among the fast ones."""
STEP = 80


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None, None, None]:
    """Of a test in ``SAMPLED``, every so many-th case is fast; ``make test-hostile`` runs them all."""
    yield
    if metafunc.module.__name__.rpartition(".")[2] in SAMPLED and leaves_out_slow(metafunc.config):
        first = zlib.crc32(metafunc.function.__name__.encode()) % min(STEP, len(metafunc._calls) or 1)
        metafunc._calls[:] = metafunc._calls[first::STEP]


@pytest.fixture
def refused(call: Call, tmp_path: Path) -> Refused:
    """Run a command that must end in a user's error and leave ``tmp_path`` as it was; its message."""

    def run(*words: str | Path, mistyped: bool = False) -> str:
        before = sorted(tmp_path.rglob("*"))
        outcome = call(*words, mistyped=mistyped)
        assert outcome.code in USER_ERRORS, f"exit code {outcome.code}: {outcome.out}{outcome.err}"
        assert outcome.err.startswith(("error: ", "note: "))
        assert "error: " in outcome.err
        assert sorted(tmp_path.rglob("*")) == before, "something was written"
        return outcome.err

    return run


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("PIL", reason="pip install 'crosslens[scenes]'")
    folder = tmp_path_factory.mktemp("hostile") / "inputs"
    folder.mkdir()
    make_inputs(folder)
    return folder

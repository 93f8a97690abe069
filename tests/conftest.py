"""What tests share: where the optional real data lies, and that nothing skips where everything is at hand."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.report.browser import opened_browser, running_chromium

# A loaded machine is slow, not wrong.
# The same change gets the same verdict twice; `make test-all` looks for new examples on every run.
settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=8)
settings.register_profile("exploring", deadline=None, max_examples=150)
settings.load_profile("repeatable")

_DEFAULT = Path(__file__).resolve().parents[2] / "shared" / "data"

_FINISHED = count(1)
NO_SKIPS = "CROSSLENS_NO_SKIPS"
"""Set where every package, browser and dataset is at hand (CI): a test that skips there has lost what it needs."""


_SLOW_MODULE = re.compile(r"^pytestmark = pytest\.mark\.slow$", re.MULTILINE)


def leaves_out_slow(config: pytest.Config) -> bool:
    """Whether only fast tests are asked for: slow ones are then not even collected."""
    return bool(config.getoption("markexpr") == "not slow")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no module of slow tests alone."""
    if not leaves_out_slow(config) or collection_path.suffix != ".py":
        return None
    return bool(_SLOW_MODULE.search(collection_path.read_text(encoding="utf-8"))) or None


class FastTests:
    """Leaves out slow tests where they are made: their cases cost time in every process that collects them."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, obj: object) -> list[pytest.Item] | None:
        marks = getattr(obj, "pytestmark", [])
        return [] if isinstance(marks, list) and any(mark.name == "slow" for mark in marks) else None

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> Generator[None, None, None]:
        yield
        fast = [case for case in metafunc._calls if not any(mark.name == "slow" for mark in case.marks)]
        metafunc._calls[:] = fast or metafunc._calls[:1]  # without a case a test would be skipped, not left out


def pytest_configure(config: pytest.Config) -> None:
    if leaves_out_slow(config):
        config.pluginmanager.register(FastTests(), "fast-tests")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without looking for garbage: a million objects are made, and all of them stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()  # and back, to the old generation: the young one would be looked through now
        gc.unfreeze()
        gc.set_threshold(20_000, 20, 1_000_000)  # the old one is looked through below, seldom
        gc.enable()


SERVED = ("tests/web/", "tests/report/")
"""Folders of tests that start Chromium or PostgreSQL."""
TRAINED = (
    "tests/encode/",
    "tests/hostile/test_options.py",
    "tests/reproduce/",
    "tests/similarity/",
    "tests/train/",
    "tests/training_loop/",
)
"""Folders of tests that import transformers, sentence-transformers or peft, and a module that imports everything."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one of two processes start all servers, and the other import the heaviest packages.

    Each gets one half of the tests; what it does not come to is taken by the other, from the end of the half.
    """
    groups: dict[tuple[str, ...], list[pytest.Item]] = {SERVED: [], TRAINED: [], (): []}
    for item in items:
        group = next((names for names in (SERVED, TRAINED) if item.nodeid.startswith(names)), ())
        groups[group].append(item)
    others = groups[()]
    here = max(0, len(items) // 2 - len(groups[SERVED]))
    items[:] = groups[SERVED] + others[:here] + groups[TRAINED] + others[here:]


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish() -> None:
    """Look through everything once in 5,000 tests: millions of objects of imported packages, ten seconds."""
    if next(_FINISHED) % 5000 == 0:
        gc.collect()


def pytest_sessionfinish() -> None:
    """Leave what there is to the end of the process: pytest and the interpreter would look through all of it again."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped test into a failed one where nothing may skip."""
    report = yield
    if report.skipped and os.environ.get(NO_SKIPS) and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome, report.longrepr = "failed", f"{reason}\n({NO_SKIPS} is set: nothing may skip here)"
    return report


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real datasets, or a skip: they are not the project's to ship."""
    folder = Path(os.environ.get("CROSSLENS_DATA", _DEFAULT))
    if not folder.is_dir():
        pytest.skip("real datasets are not here: set CROSSLENS_DATA to their folder")
    return folder


@pytest.fixture
def no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """For protocols, as where the extra ``language`` is not installed: SPICE takes its time."""
    from crosslens.core import MissingExtraError
    from crosslens.pipeline.protocols import protocol as following

    load = following.load_similarity

    def refusing(name: str) -> object:
        if name == "spice":
            raise MissingExtraError("parsing captions", "spacy", "language")
        return load(name)

    monkeypatch.setattr(following, "load_similarity", refusing)


@pytest.fixture(scope="session")
def chromium_address() -> Iterator[str]:
    with running_chromium() as address:
        yield address


@pytest.fixture(scope="module")
def browser(chromium_address: str) -> Iterator[Any]:
    """The browser that all tests share, opened for those of a file."""
    with opened_browser(chromium_address) as opened:
        yield opened

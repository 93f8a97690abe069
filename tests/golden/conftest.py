"""Golden outputs: an option that records them, and the study that commands are called on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.commands import tiny_opened_once as tiny_opened_once
from tests.golden.study import Study


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="tests/golden: write the outputs instead of comparing them")


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    base = tmp_path_factory.getbasetemp()
    shared: Path = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return Study(shared / "golden-study", tmp_path_factory.mktemp("golden-copies"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what was recorded, from all processes."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, ())]
    changed = sorted(text for report in reports for name, text in report.user_properties if name == "recorded")
    if changed:
        terminalreporter.section(f"{len(changed)} recorded files")
        terminalreporter.write("".join(f"{line}\n" for line in changed))

"""The demo from the command to its report in a real browser: what a newcomer sees first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crosslens.audits import load_audit
from crosslens.cli import main
from tests.report.browser import Watched

from .test_browser import DESK, PHONE, serious


@pytest.mark.slow
def test_the_audit_of_the_demo_opens_without_complaint(
    tmp_path: Path, browser: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    assert main(["demo", "-o", str(tmp_path / "demo"), "--images", "24"]) == 0
    printed = capsys.readouterr().out
    lines = [line for line in printed.splitlines() if line[:3].strip().rstrip(".").isdigit()]
    audit = load_audit(tmp_path / "demo" / "audit")
    assert len(lines) == len(audit.findings[:10])
    for finding in audit.findings[:10]:
        assert finding.text in " ".join(printed.split())
    report = audit.report
    assert str(report) in "".join(printed.split())
    for size, scheme in ((DESK, "light"), (PHONE, "dark")):
        context = browser.new_context(viewport=size, color_scheme=scheme)
        watched = Watched(context.new_page())
        watched.page.goto(report.as_uri())
        watched.page.wait_for_load_state("networkidle")
        root = "document.documentElement"
        assert watched.page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth")
        assert not serious(watched.page)
        assert not watched.complaints
        context.close()

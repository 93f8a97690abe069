"""Every kind of part in every form, as whole files: all results are shown by these parts, in these forms."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.core.test_stored_parts import PARTS
from tests.golden.cases import Case
from tests.golden.plain import plain_text
from tests.golden.test_outputs import HERE, check, record
from tests.report.test_forms import CHARTS, TABLE, Shown

FORMS = HERE / "forms"
RESULTS = {"charts": Shown(CHARTS), "parts": Shown((TABLE, *PARTS))}
_FLOAT = re.compile(r"-?\d+\.\d{3,}")


@pytest.mark.parametrize("ending", [".html", ".svg", ".md", ".csv", ".tex", ".txt"])
@pytest.mark.parametrize("name", RESULTS)
def test_form(name: str, ending: str, tmp_path: Path, request: pytest.FixtureRequest, record_property: Any) -> None:
    content = RESULTS[name].save(tmp_path / f"{name}{ending}").read_text(encoding="utf-8")
    if ending in (".html", ".svg"):  # a tag per line; how a page is styled, a browser tests
        content = re.sub(r"(?s)(<(style|script)[^>]*>).*?(</\2>)", r"\1\3", content).replace("><", ">\n<")
    rounded = _FLOAT.sub(lambda number: f"{float(number[0]):.2f}", content)
    texts, stored = {f"{name}{ending}.txt": plain_text(rounded, tmp_path)}, FORMS / f"{name}{ending}.txt"
    files, case = {stored.name: stored} if stored.exists() else {}, Case(name, "")
    if request.config.getoption("--record", False):
        record(FORMS, texts, files, partial(record_property, "recorded"), case)
    else:
        check(f"{name} as {ending}", texts, files, case)

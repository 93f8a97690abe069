"""Python files of the user: executed as they are now, and nothing is written beside them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from crosslens.core import load_module


def test_a_file_changed_within_the_same_second_is_executed_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python itself takes a stored ``.pyc`` of the same size and second for current."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "changing.py"
    for number in (1, 2):
        file.write_text(f"value = {number}\n", encoding="utf-8")
        os.utime(file, (1_700_000_000, 1_700_000_000))
        assert load_module(str(file)).value == number
    assert [entry.name for entry in tmp_path.iterdir()] == ["changing.py"]

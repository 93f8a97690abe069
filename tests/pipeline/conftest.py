"""What tests of the pipeline share."""

from __future__ import annotations

from tests.commands import tiny_opened_once as tiny_opened_once

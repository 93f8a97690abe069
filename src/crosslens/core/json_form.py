"""Values as JSON can hold them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any


def json_form(value: Any) -> Any:
    """The same content in mappings, lists and plain values; a number that is none (NaN, infinity) is None."""
    if isinstance(value, Mapping):
        return {str(key): json_form(one) for key, one in value.items()}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [json_form(one) for one in value]
    return value

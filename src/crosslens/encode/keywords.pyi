# Written by scripts/generate_reference.py from what @accepts_options names: change that, run `make docs`.

from pathlib import Path
from typing import TypedDict

from crosslens.core import Notify
from crosslens.encode import Cache

class EncodeKeywords(TypedDict, total=False):
    device: str | None
    precision: str
    batch_size: int | None
    cache: Cache | str | Path | bool | None
    offline: bool
    image_folder: str | Path | None
    skip_bad: bool
    notify: Notify

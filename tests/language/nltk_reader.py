"""nltk's WordNet reader over a plain ``dict`` folder, without nltk's own data: the independent reference.

The folder is that of Debian's packages wordnet-base and wordnet-sense-index, or what CROSSLENS_WORDNET_DICT names.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("CROSSLENS_WORDNET_DICT", "/usr/share/wordnet"))
NEEDED = [f"{kind}.{part}" for kind in ("data", "index") for part in ("noun", "verb", "adj", "adv")]
NEEDED += [f"{part}.exc" for part in ("noun", "verb", "adj", "adv")] + ["index.sense"]


@cache
def missing(folder: Path = FOLDER) -> str | None:
    """Why the reference cannot be asked here; None where it can."""
    if absent := [name for name in NEEDED if not (folder / name).exists()]:
        return f"no {absent[0]} in {folder}: apt install wordnet-base wordnet-sense-index"
    if "02423762 41 v 03 inhibit 0 bottle_up 0 suppress 0 005 @ 02422663" in (folder / "data.verb").read_text("utf-8"):
        return f"{folder} holds Princeton's own files, whose verbs run in a circle; ours are Debian's"
    return None if find_spec("nltk") else "nltk is not installed: pip install nltk"


def open_reader(place: Path, folder: Path = FOLDER) -> Any:
    """A reader; ``place`` is an empty folder for the files that Debian leaves out."""
    import nltk
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class Offline(WordNetCorpusReader):
        def map_wn(self, version: str = "wordnet") -> None:
            """Maps other versions through nltk's own data, which is not needed here."""

    for name in [*NEEDED, "cntlist.rev"]:
        (place / name).write_bytes((folder / name).read_bytes())
    (place / "lexnames").write_text("".join(f"{number:02d} file{number:02d} 0\n" for number in range(45)))
    nltk.data.path.append(str(place))  # nltk reads nowhere else
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it misses its multilingual data
        return Offline(str(place), None)

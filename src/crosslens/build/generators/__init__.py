"""Writers of descriptions: rules, a language model behind an address, and a record of what they answered."""

from __future__ import annotations

# Importing a generator's module registers it.
from crosslens.build.generators import http, rules  # noqa: F401
from crosslens.build.generators.annotations import Annotations, annotations_of
from crosslens.build.generators.generator import (
    CONFUSABLE,
    DESCRIBE,
    GENERATORS,
    SHARPER,
    VAGUER,
    Annotation,
    Generator,
    Request,
    load_generator,
)
from crosslens.build.generators.recorded import Recorded

__all__ = [
    "CONFUSABLE",
    "DESCRIBE",
    "GENERATORS",
    "SHARPER",
    "VAGUER",
    "Annotation",
    "Annotations",
    "Generator",
    "Recorded",
    "Request",
    "annotations_of",
    "load_generator",
]

"""Reader options as flags: the common ones by name, any other by ``-D KEY=VALUE``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from crosslens.core.errors import UsageError

Captions = Annotated[str | None, typer.Option(metavar="FILE", help="Reader option: the captions.")]
Instances = Annotated[str | None, typer.Option(metavar="FILE", help="Reader option: objects with boxes.")]
Images = Annotated[str | None, typer.Option(metavar="FILE", help="Reader option: the images, or a list of them.")]
Split = Annotated[str | None, typer.Option(metavar="NAME", help="Reader option: which part of the dataset.")]
Data = Annotated[
    list[str] | None,
    typer.Option("-D", "--data", metavar="KEY=VALUE", help="Any other reader option (see crosslens data formats)."),
]

NAMED = ("captions", "instances", "images", "split")
"""The reader options that have a flag of their own."""

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_CONVERT: dict[str, tuple[Callable[[str], Any], str]] = {
    "int": (int, "a whole number"),
    "float": (float, "a number"),
    "bool": (_TRUTH.__getitem__, "true or false"),
}


def reader_options(source: str | None, pairs: Sequence[str] | None, **named: str | None) -> dict[str, Any]:
    """The options of the reader ``source``, from ``-D`` pairs and from named flags, as the types that it declares."""
    options: dict[str, Any] = {key: value for key, value in named.items() if value is not None}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not (equals and key):
            raise UsageError(f"-D {pair!r} is not KEY=VALUE", fix="write, for example, -D captions_per_image=5")
        if key in options:
            raise UsageError(f"the reader option {key!r} is given twice", fix="drop one of the two")
        options[key] = value
    if source is None:
        if options:
            raise UsageError(f"the reader option {next(iter(options))!r} without a dataset", fix="pass --dataset too")
        return {}
    return {key: _typed(source, key, value) for key, value in options.items()}


def _typed(source: str, key: str, value: str) -> Any:
    from crosslens.data.reader_paths import reader_parameters

    return typed(f"the reader option {key}", value, reader_parameters(source).get(key))


def typed(what: str, value: str, parameter: inspect.Parameter | None) -> Any:
    """The value as the type that a parameter declares; as it is where it declares a text, or nothing."""
    kinds = set(re.findall(r"\w+", str(parameter.annotation))) if parameter is not None else set()
    for kind, (convert, noun) in _CONVERT.items():
        if kind in kinds and "str" not in kinds:
            try:
                return convert(value.lower())
            except (ValueError, KeyError) as error:
                raise UsageError(f"{what} = {value!r}", fix=f"give it {noun}") from error
    return value

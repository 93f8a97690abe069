"""Options declared once: a field with its help text serves Python, recipes and the command line.

An options class is a frozen dataclass that derives from :class:`Options` and whose fields come from :func:`option`::

    @dataclass(frozen=True)
    class SearchOptions(Options):
        depth: int = option(10, "How many items of each list are kept.", metavar="N", minimum=1)

Python passes ``depth=5``, a recipe ``depth = 5``, the command line ``--depth 5``: each reads this declaration. Help
texts list options by their group: that of the field (``group="Output"``), of its name where it is one that many
commands have, or of its class: ``class SearchOptions(Options, group="Metrics")``.
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Self, TypeVar

from crosslens.core.errors import UnknownNameError, UsageError
from crosslens.core.value_types import ValueType

F = TypeVar("F", bound=Callable[..., Any])

_LARGEST = 2**63 - 1
_TEXTS = "tuple[str, ...]"
"""The type of an option of several texts, for which Python may pass a single one, a list, or None."""

INPUT, READER, MODEL, METRICS, METHOD = "Input", "Reader options", "Model", "Metrics", "Method"
STATISTICS, OUTPUT, EXECUTION = "Statistics and seeds", "Output", "Execution"
GROUPS = (INPUT, READER, MODEL, METRICS, METHOD, "Training", "Judging", "Server", STATISTICS, OUTPUT, EXECUTION)
"""What options are for, in the order of every help text."""
_MANY_COMMANDS = {
    INPUT: "dataset data_folder dataset_name image_folder extra_images queries image_embeddings caption_embeddings "
    "scores run runs qrels columns skip_bad skip_unknown shared_images",
    MODEL: "model visual_model text_model pair_model encoder image_encoder text_encoder image_text query_caption "
    "precision",
    METRICS: "metrics metric direction protocol phi similarity score ties folds",
    STATISTICS: "seed resamples level primary correction permutations",
    OUTPUT: "output write overwrite json name show tables",
    EXECUTION: "threads device batch_size cache offline plugin trust_code allow_host no_verify",
}
_GROUP_BY_NAME = {name: group for group, names in _MANY_COMMANDS.items() for name in names.split()}
_NAMES = "NAMES"
_VALUES = {
    "KIND:SOURCE": "model pair_model visual_model text_model encoder text_encoder image_encoder",
    "FILE": "image_embeddings caption_embeddings scores image_ids caption_ids",
    "FOLDER": "data_folder image_folder cache",
    "COLUMN": "by purity_by",
    _NAMES: "metrics tables",
    "HOW": "image_text",
    "SHARE": "level",
}
_VALUE_BY_NAME = {name: value for value, names in _VALUES.items() for name in names.split()}


@dataclass(frozen=True)
class Declaration:
    """What is known of an option besides its name, type and default."""

    help: str
    metavar: str | None = None
    """What its value is called, where that does not follow from its name or its type."""
    flags: tuple[str, ...] = ()
    """Spelling on the command line where it is not ``--name``; none if ``hidden``."""
    switch_off: str | None = None
    """A flag of its own that sets the option to False, for example ``--no-cache``, and its help text after a space."""
    joins: str | None = None
    """Of a text of several names: what joins the values of a repeated flag, which is refused without.

    That of ``metrics`` and ``tables`` is a space.
    """
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    hidden: bool = False
    """True for what only Python can pass: an object, a callable."""
    group: str = ""
    """What it is for: one of ``GROUPS``."""
    recorded: bool | None = None
    """Whether runs record it, and are other runs where it differs; if None, where it is not the default."""

    def in_group(self, name: str, group: str) -> Declaration:
        """With a group, and with what its value is called and joined by: its own, those of its name, or this group."""
        name = max(self.flags, key=len).removeprefix("--").replace("-", "_") if self.flags else name
        value, group = _VALUE_BY_NAME.get(name), self.group or _GROUP_BY_NAME.get(name, group)
        joins = self.joins or (" " if value == _NAMES else None)
        return replace(self, group=group, joins=joins, metavar=self.metavar or value or (joins and _NAMES))


def option(default: Any, help: str, **declared: Any) -> Any:
    """A dataclass field that is an option; keywords are the attributes of :class:`Declaration`."""
    return field(default=default, metadata={"option": Declaration(help, **declared)})


@dataclass(frozen=True)
class Options:
    """What all options classes can do: check their values, and pick their own out of keyword arguments."""

    def __init_subclass__(cls, group: str = METHOD, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for name, entry in vars(cls).items():
            if isinstance(entry, Field) and (declared := entry.metadata.get("option")) is not None:
                entry.metadata = MappingProxyType({"option": declared.in_group(name, group)})

    def __post_init__(self) -> None:
        for entry in fields(self):
            name, value = entry.name, getattr(self, entry.name)
            declared: Declaration | None = entry.metadata.get("option")
            if declared is None:
                continue
            if entry.type == _TEXTS and not isinstance(value, tuple):
                value = (value,) if isinstance(value, str) else tuple(value or ())
                object.__setattr__(self, name, value)
            check_number(name, value, str(entry.type))
            if value is None:
                continue
            if declared.choices and value not in declared.choices:
                error = UnknownNameError(name.replace("_", " "), str(value), declared.choices)
                error.option = name
                raise error
            for bound, rule, holds in (
                (declared.minimum, "at least", operator.ge),
                (declared.maximum, "at most", operator.le),
                (declared.above, "above", operator.gt),
                (declared.below, "below", operator.lt),
            ):
                if bound is not None and not holds(value, bound):
                    raise UsageError(f"{name} is {value}", fix=f"{name} must be {rule} {bound:,}", option=name)

    @classmethod
    def pick(cls, arguments: Mapping[str, Any]) -> Self:
        """The options among ``arguments``."""
        return cls(**{name: arguments[name] for name in declarations(cls) if name in arguments})

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Self:
        """The options; an argument of another name raises, with the nearest names."""
        names = declarations(cls)
        refuse_unknown((name for name in arguments if name not in names), names)
        return cls.pick(arguments)

    def recorded(self) -> dict[str, Any]:
        """What runs record of them, by which they are told apart; first what every run records."""
        entries = [(entry, entry.metadata["option"].recorded, getattr(self, entry.name)) for entry in fields(self)]
        always = {entry.name: value for entry, recorded, value in entries if recorded}
        return always | {
            entry.name: value for entry, recorded, value in entries if recorded is None and value != entry.default
        }


def declarations(kind: type) -> dict[str, Declaration]:
    """Name → declaration of every option of an options class, in order."""
    return {field.name: field.metadata["option"] for field in fields(kind) if "option" in field.metadata}


@dataclass(frozen=True)
class AcceptedKeyword:
    """A keyword of a function that its signature does not spell out: ``home`` is the module that writes its type."""

    parameter: inspect.Parameter
    home: str
    help: str = ""


def accepts_options(*sources: type[Options] | tuple[type[Options], str] | Callable[..., Any]) -> Callable[[F], F]:
    """Decorate a function whose ``**options: Unpack[SomeKeywords]`` are the fields of options classes.

    Beside a class may stand the names of the fields that are meant; of another function, or of a class without options,
    it is the parameters with a default. The signature lists them with their defaults, the ``Args`` of the docstring
    with their help texts, and ``scripts/generate_reference.py`` writes ``SomeKeywords``, for editors and type checkers,
    into ``keywords.pyi`` of the package. A keyword that the function names itself is its own.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        *parameters, options = signature.parameters.values()
        own_names = {parameter.name for parameter in parameters}
        accepted = {
            keyword.parameter.name: keyword
            for source in sources
            for keyword in _keywords_of(source)
            if keyword.parameter.name not in own_names
        }
        parameters += [keyword.parameter for keyword in accepted.values()]
        helps = [f"    {name}: {keyword.help}" for name, keyword in accepted.items() if keyword.help]
        text = inspect.cleandoc(str(function.__doc__))
        section = [] if "\nArgs:\n" in text or not helps else ["", "Args:"]
        function.__doc__ = "\n".join([text, *section, *helps])
        vars(function)["__signature__"] = signature.replace(parameters=parameters)
        vars(function)["accepted_keywords"] = str(options.annotation), tuple(accepted.values())
        return function

    return decorate


def _keywords_of(source: Any) -> Iterator[AcceptedKeyword]:
    kind, names = source if isinstance(source, tuple) else (source, None)
    if not (isinstance(kind, type) and issubclass(kind, Options)):
        helps = argument_helps(kind)
        for name, parameter in inspect.signature(kind).parameters.items():
            if parameter.default is not parameter.empty:
                keyword_only = parameter.replace(kind=parameter.KEYWORD_ONLY)
                yield AcceptedKeyword(keyword_only, kind.__module__, helps.get(name, ""))
        return
    for entry in fields(kind):
        if "option" in entry.metadata and (names is None or entry.name in names.split()):
            # Of several texts, Python may pass a single one.
            annotation = "str | Sequence[str] | None" if entry.type == _TEXTS else str(entry.type)
            parameter = inspect.Parameter(
                entry.name, inspect.Parameter.KEYWORD_ONLY, default=entry.default, annotation=annotation
            )
            home = next(ancestor for ancestor in kind.__mro__ if entry.name in inspect.get_annotations(ancestor))
            yield AcceptedKeyword(parameter, home.__module__, entry.metadata["option"].help)


def argument_helps(function: Callable[..., Any]) -> dict[str, str]:
    """Parameter → what the section ``Args`` of a docstring says of it."""
    section = (inspect.getdoc(function) or "").partition("\nArgs:\n")[2].partition("\n\n")[0]
    entries = re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", section, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


def refuse_other_keywords(arguments: Iterable[str], function: Callable[..., Any]) -> None:
    """Raise for the first keyword argument that neither ``function`` nor the options classes that it accepts have."""
    parameters = inspect.signature(function).parameters
    refuse_unknown((name for name in arguments if name not in parameters), parameters)


def refuse_unknown(arguments: Iterable[str], names: Iterable[str]) -> None:
    """Raise for the first of ``arguments``, if there is any: it is none of ``names``."""
    for name in arguments:
        raise UnknownNameError("option", name, names)


def check_number(name: str, value: Any, annotation: str) -> None:
    """Raise unless a number is one, and of a size that arrays and files can hold."""
    declared = ValueType.of(annotation)
    if value is None or declared.several or not declared.only_plain or declared.kinds not in ((int,), (float,)):
        return
    noun = declared.noun
    if not declared.accepts(value):
        raise UsageError(f"{name} is {value!r:.60}", fix=f"{name} must be {noun}", option=name)
    if not -_LARGEST <= value <= _LARGEST:  # NaN, too
        fix = f"{name} must be {noun} of at most {_LARGEST:,}"
        raise UsageError(f"{name} is {short_number(value)}", fix=fix, option=name)


def short_number(number: Any) -> str:
    """A number for a message; Python does not print one of thousands of digits."""
    return "a number of thousands of digits" if isinstance(number, int) and abs(number) > 10**1000 else str(number)

"""Flags of the command line, spelled out from options classes, and options in messages written as flags."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import typer

import crosslens.data as data
from crosslens.cli.answers import ANSWER_FLAGS, Json as Json, Overwrite as Overwrite, answer
from crosslens.cli.completion import completion, names_of
from crosslens.cli.help import COMMON, HELP_ALL
from crosslens.core import (
    METHOD,
    Declaration,
    Options,
    UsageError,
    ValueType,
    check_number,
    declarations,
    load_plugin,
    option,
)
from crosslens.storage import offline, trusting, verification

F = TypeVar("F", bound=Callable[..., Any])

Threads = Annotated[
    int | None, Declaration("Threads or processes. [default: all cores]", metavar="N", minimum=1, maximum=4096)
]
TrustCodeFlag = Annotated[bool, Declaration("Run Python code that a recipe, a run or a log names, without asking.")]
AllowHost = Annotated[
    list[str] | None,
    Declaration(
        "Open addresses of this host (example.org, s3://bucket) that a recipe or a run names. May be repeated.",
        metavar="HOST",
    ),
]
"""Every command with ``--trust-code`` has this flag, too."""
Plugins = Annotated[
    list[Path] | None, Declaration("Load your own metrics, readers and so on. May be repeated.", metavar="FILE.py")
]
"""Every command has this flag; one that needs the names of the files declares ``plugin: Plugins``."""
_NoVerify = Annotated[bool, Declaration("Do not check stored files for changes.")]

OUTPUT = ("-o", "--output")
"""The spelling of the flag that says where results are written."""


def output_option(help: str, metavar: str = "FILE") -> Any:
    """The flag that says where results are written, if anywhere."""
    return option(None, help, metavar=metavar, flags=OUTPUT)


def positional(default: Any, help: str, *, metavar: str | None = None, names: str = "") -> Any:
    """A word of the command line without a flag; ``names`` is the kind of names that a shell proposes for it."""
    completes = names_of(names) if names else None
    return field(
        default=default, metadata={"word": typer.Argument(metavar=metavar, help=help, autocompletion=completes)}
    )


_LONGEST_LINE = 79
IMAGE_TEXT = "For {} of texts: an image is the mean of its captions' vectors (mean), or a summary of them (extractive)."

_METAVARS = {int: "N", float: "NUMBER", str: "NAME", Path: "FILE"}
"""What a flag's value is called where its option does not say."""
_PYTHON_NAMES: dict[str, tuple[str, ...]] = {
    "relevance": ("qrels",),
    "runs": ("run",),
    "directions": ("direction",),
    "models": ("model",),
    "images": ("image_embeddings", "images_output"),
    "captions": ("caption_embeddings",),
    "perturbations": ("perturb", "name"),
    "skip_bad": ("skip_missing",),
    "allowed_hosts": ("allowed_host",),
    "base": ("size_base",),
    "allow_hosts": ("allow_host",),
}
"""Keyword arguments of Python functions whose flags have other names: the first that a command has is meant."""


@dataclass(frozen=True)
class IntervalOptions(Options):
    """How the intervals of a result are computed."""

    seed: int = option(0, "Seed of the intervals.")
    resamples: int = option(1000, "Resamples for the intervals; 0 for none.", minimum=0, maximum=10_000_000)
    level: float = option(0.95, "Confidence level of the intervals.")


@dataclass(frozen=True)
class ColumnOptions(Options):
    """Columns to group by that are in a file of their own."""

    columns: Path | None = option(
        None, "More columns for --by: a table (.parquet, .csv) with a column caption or image, or a FiftyOne folder."
    )


@dataclass(frozen=True)
class Flags:
    """How a command takes an options class: ``Annotated[EncodeOptions, Flags(without=("skip_bad",))]``.

    ``required`` fields must be given, ``help`` replaces help texts.
    """

    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    help: Mapping[str, str] = field(default_factory=dict)


def command(
    *examples: str, reads_files: bool = True, group: str = METHOD, common: tuple[str, ...] = ()
) -> Callable[[F], F]:
    """Decorate a command: its options classes become flags, the examples are part of its help text.

    An example that is too long for a string goes on in the next one, behind a backslash; the help breaks it anew.
    One that reads stored files gets the flag ``--no-verify``; one that returns a result ``ANSWER_FLAGS``, and the
    result is printed and written. ``group`` is what its own options are for that do not say, ``common`` are the flags
    that ``--help`` lists besides those that it lists of every command.
    """

    def decorate(function: F) -> F:
        # Not looked up: the classes of results need numpy, which `crosslens --help` does without.
        answers = function.__annotations__.pop("return", "None") != "None"
        expanded = expand_options(function, group)
        own_flags = inspect.signature(expanded).parameters
        for name in common:
            assert name in own_flags, f"{function.__name__} has no option {name}"
        added = {**(ANSWER_FLAGS if answers else {}), **({"no_verify": _NoVerify} if reads_files else {})}

        def call(help_all: bool, no_verify: bool = False, **arguments: Any) -> None:
            with verification(not no_verify):
                if answers:
                    answer(expanded, own_flags, **arguments)
                else:
                    expanded(**arguments)

        flags = [
            _annotated_flag(name, kind, False if get_args(kind)[0] is bool else None)
            for name, kind in added.items()
            if name not in own_flags
        ]
        decorated = _named_as(function, call, [*own_flags.values(), *flags, HELP_ALL])
        # The first line keeps click from wrapping the others.
        whole = re.sub(r" \\\n *", " ", "\n".join(examples)).splitlines()
        epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for example in whole for line in _wrapped(example))
        vars(decorated).update(epilog=epilog, common=(*COMMON, *common))
        return decorated

    return decorate


def _wrapped(example: str) -> list[str]:
    """A command line as help texts print it: where it is long, it goes on in further lines, each with whole flags."""
    lines: list[str] = []
    line, *flags = [example] if len(example) <= _LONGEST_LINE else re.split(r" (?=--?[a-zA-Z])", example)
    for flag in flags:
        if len(f"{line} {flag} \\") >= _LONGEST_LINE:
            lines, line = [*lines, f"{line} \\"], f"    {flag}"
        else:
            line = f"{line} {flag}"
    return [*lines, line]


def expand_options(function: F, group: str = METHOD) -> F:
    """The function with a flag for each parameter that is an ``option``, and each field of its options classes."""
    hints = get_type_hints(function, include_extras=True)
    parameters: list[inspect.Parameter] = []
    expanded: dict[str, tuple[type[Options], set[str]]] = {}
    own_types: dict[str, str] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        kind, *details = get_args(hints[name]) or (hints[name],)
        if isinstance(kind, type) and issubclass(kind, Options):
            flags = _flags_of(kind, next((detail for detail in details if isinstance(detail, Flags)), Flags()))
            expanded[name] = kind, {flag.name for flag in flags}
            parameters += flags
        elif isinstance(parameter.default, Field) and (word := parameter.default.metadata.get("word")) is not None:
            default = parameter.empty if parameter.default.default is ... else parameter.default.default
            typed = parameter.replace(annotation=Annotated[hints[name], word], default=default)
            parameters.append(typed.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        elif isinstance(parameter.default, Field):
            declared = parameter.default.metadata["option"]
            parameters.append(_flag(name, hints[name], parameter.default.default, declared.in_group(name, group)))
            own_types[name] = str(parameter.annotation)
        elif _declaration(hints[name]) is not None:
            parameters.append(_annotated_flag(name, hints[name], parameter.default))
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))
    if any(parameter.name == "trust_code" for parameter in parameters):
        parameters.append(_annotated_flag("allow_host", AllowHost, None))
    keeps_plugins = "plugin" in hints
    if not keeps_plugins:
        parameters.append(_annotated_flag("plugin", Plugins, None))

    singles = {parameter.name: detail for parameter in parameters for detail in get_args(parameter.annotation)
               if isinstance(detail, _Single)}  # fmt: skip

    def call(**arguments: Any) -> Any:
        arguments |= {name: single.value(arguments[name]) for name, single in singles.items()}
        plugins = arguments["plugin"] if keeps_plugins else arguments.pop("plugin")
        for file in plugins or ():  # before anything looks a name up
            load_plugin(file)
        for name, kind in own_types.items():  # an options class checks its own
            check_number(name, arguments[name], kind)
        hosts, is_offline = arguments.pop("allow_host", None), bool(arguments.get("offline"))
        options = {name: _collect(kind, names, arguments) for name, (kind, names) in expanded.items()}
        with trusting(allow_hosts=hosts), offline(is_offline):
            return function(**arguments, **options)

    return _named_as(function, call, parameters)


def _named_as(function: F, call: Callable[..., Any], parameters: Sequence[inspect.Parameter]) -> F:
    """``call`` under the name of a command, with these parameters for typer to read."""
    call.__name__, call.__doc__, call.__module__ = function.__name__, function.__doc__, function.__module__
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(call)["__signature__"] = inspect.Signature(list(parameters))
    return call  # type: ignore[return-value]


@dataclass(frozen=True)
class _Single:
    """A flag with a single value, of which the parser would silently keep the last: it reads all of them instead.

    ``joins`` is what a text of several names is joined with; without it, a second value is refused.
    """

    flag: str
    default: Any
    joins: str | None

    def value(self, words: list[Any] | None) -> Any:
        """The single value; the default where none is given."""
        if not words:
            return self.default
        if len(words) > 1 and self.joins is None:
            values = ", ".join(map(str, words))
            raise UsageError(f"{self.flag} takes one value, not {len(words)}: {values}", fix="keep one of them")
        return words[0] if len(words) == 1 else str(self.joins).join(words)


def _flags_of(kind: type[Options], flags: Flags) -> list[inspect.Parameter]:
    parameters = []
    declared = declarations(kind)
    for name in (*flags.only, *flags.without, *flags.required, *flags.help):
        assert name in declared, f"{kind.__name__} has no option {name}"
    by_name: dict[str, Field[Any]] = {entry.name: entry for entry in fields(kind)}
    for name, declaration in declared.items():
        if declaration.hidden or name in flags.without or (flags.only and name not in flags.only):
            continue
        annotation, default = _flag_type(str(by_name[name].type)), by_name[name].default
        if default is None or default == ():
            annotation, default = annotation | None, None
        if name in flags.required:
            default = ...
        declaration = replace(declaration, help=flags.help.get(name, declaration.help))
        parameters.append(_flag(_parameter_name(name, declaration), annotation, default, declaration))
        if declaration.switch_off is not None:
            flag, _, help_text = declaration.switch_off.partition(" ")
            off = Declaration(help_text, flags=(flag,), group=declaration.group)
            parameters.append(_flag(_switch_name(flag), bool, False, off))
    return parameters


def _flag(name: str, annotation: Any, default: Any, declared: Declaration) -> inspect.Parameter:
    """A parameter that typer reads; a default of ``...`` makes it required."""
    spelled = declared.flags or (f"--{name.replace('_', '-')}",)
    kind = annotation
    while get_args(kind):  # of `list[int] | None` the int
        kind = get_args(kind)[0]
    declared = replace(declared, metavar=None if kind is bool else declared.metavar or _METAVARS.get(kind))
    bounds = {"min": declared.minimum, "max": declared.maximum}
    limits: dict[str, Any] = {name: bound for name, bound in bounds.items() if bound is not None}
    flag = max(spelled, key=len)
    info = typer.Option(
        *spelled,
        metavar=declared.metavar,
        help=declared.help,
        rich_help_panel=declared.group,
        autocompletion=completion(flag, declared),
        **limits,
    )
    single = None
    if kind is not bool and annotation in (kind, kind | None):
        single = _Single(flag, None if default is ... else default, declared.joins)
        annotation = list[kind] | None if default is None else list[kind]  # type: ignore[valid-type]
        default = default if default in (None, ...) else [default]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[annotation, info, single],
        default=inspect.Parameter.empty if default is ... else default,
    )  # fmt: skip


def _annotated_flag(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """The flag of a parameter whose annotation declares it: ``Annotated[bool, Declaration(…)]``."""
    declared = _declaration(annotation)
    assert declared is not None
    return _flag(name, get_args(annotation)[0], default, declared.in_group(name, METHOD))


def _declaration(annotation: Any) -> Declaration | None:
    return next((detail for detail in get_args(annotation)[1:] if isinstance(detail, Declaration)), None)


def _flag_type(annotation: str) -> Any:
    """What a flag holds, from the annotation of its field: the first type of a union that can be typed in."""
    declared = ValueType.of(annotation)
    kind = declared.kinds[0]
    if not declared.several:
        return kind
    return list[kind] if declared.length is None else tuple[kind, kind]  # type: ignore[valid-type]


def _switch_name(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _parameter_name(name: str, declared: Declaration) -> str:
    """What the command calls an option: as its flag, for two options classes may have fields of one name."""
    return _switch_name(max(declared.flags, key=len).partition("/")[0]) if declared.flags else name


def _collect(kind: type[Options], own_flags: set[str], arguments: dict[str, Any]) -> Options:
    """The options object of a command, from its ``own_flags``, which are taken out of ``arguments``."""
    values = {}
    for name, declared in declarations(kind).items():
        parameter = _parameter_name(name, declared)
        if parameter in own_flags:
            value = arguments.pop(parameter)
            values[name] = tuple(value) if isinstance(value, list) else value
            if declared.switch_off is not None and arguments.pop(_switch_name(declared.switch_off.split()[0])):
                values[name] = False
    defaults = {entry.name for entry in fields(kind) if entry.default == ()}
    return kind(**{name: () if value is None and name in defaults else value for name, value in values.items()})


def flag_spelling(command: Any) -> Callable[[str, str | None], str | None]:
    """How options in messages are written for whoever called this command."""
    flags = {parameter.name: parameter for parameter in command.params if parameter.param_type_name == "option"}

    def spell(name: str, value: str | None) -> str | None:
        name = next((alias for alias in _PYTHON_NAMES.get(name, ()) if alias in flags), name)
        off = flags[f"no_{name}"].opts if f"no_{name}" in flags else getattr(flags.get(name), "secondary_opts", ())
        if value == "False" and off:
            return str(max(off, key=len))
        if name in flags:
            flag = max(flags[name].opts, key=len)
            return flag if value is None or flags[name].is_flag else f"{flag} {_typed_in(value)}"
        if any(name in entry.details["options"] for entry in data.READERS):
            return f"-D {name}={'' if value is None else _typed_in(value)}"
        return None

    return spell


SEVERAL = " …"
"""How the metavar of a flag ends that takes several values at once: ``--runs a b c``."""


def spread_values(words: Sequence[str], command: Any) -> list[str]:
    """The words of a command line with ``--runs a b`` written as ``--runs a --runs b``, which the parser can read.

    A flag of two values that is given twice raises: the parser would silently keep the last.
    """
    several: set[str] = set()
    for parameter in getattr(command, "params", ()):
        if parameter.param_type_name != "option":
            continue
        several |= set(parameter.opts) if (parameter.metavar or "").endswith(SEVERAL) else set()
        times = sum(word.partition("=")[0] in parameter.opts for word in words)
        if times > 1 and parameter.nargs > 1 and not parameter.multiple:
            name = max(parameter.opts, key=len)
            raise UsageError(f"{name} is given {times} times", fix=f"pass {name} {parameter.metavar} once")
    spread: list[str] = []
    flag, count = None, 0
    for word in words:
        if word.startswith("-") and word != "-":
            flag, count = word if word in several else None, 0
            spread.append(word)
        elif flag is not None:
            spread += [flag, word] if count else [word]
            count += 1
        else:
            spread.append(word)
    return spread


def _typed_in(value: str) -> str:
    """A value as it is typed in a shell, from how Python writes it."""
    try:
        content = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value
    if isinstance(content, tuple):
        return " ".join(map(str, content))
    return str(content).lower() if isinstance(content, bool) else str(content)

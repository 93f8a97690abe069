"""What a shell proposes for a value: names from the registries, and paths where a path may stand, too.

Registries are loaded when somebody presses Tab, not before: ``crosslens --help`` does without them.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from glob import escape, glob
from importlib import import_module
from pathlib import Path
from typing import Any

from crosslens.core import Declaration

Names = Iterable[tuple[str, str]]
"""Values, each with what it stands for."""

_DIRECTIONS = {"i2t/": "image queries", "t2i/": "caption queries", "t2t/": "captions for both"}
_UNFINISHED = ("/", ":", "@", "[")
"""How a value ends that something must follow."""
_LOCAL_MODELS = ("callable", "file", "onnx", "path")


def completion(flag: str, declared: Declaration) -> Callable[[str], list[tuple[str, str]]] | None:
    """The function that proposes values of a flag; None for one that is left to the shell, which proposes files."""
    metavar = declared.metavar or ""
    words = declared.choices or (metavar.split("|") if re.fullmatch(r"[a-z0-9]+(\|[a-z0-9]+)+", metavar) else ())
    names = _NAMES.get(f"{flag} {metavar}") or _NAMES.get(metavar)
    if words:
        return completing(lambda _: [(word, "") for word in words])
    return None if names is None else completing(names, declared.joins or "")


def names_of(kind: str) -> Callable[[str], list[tuple[str, str]]]:
    """The function that proposes values of an argument."""
    return completing(_NAMES[kind])


def completing(names: Callable[[str], Names], joins: str = "") -> Callable[[str], list[tuple[str, str]]]:
    """A function that proposes the names that begin with what is typed; of several that are joined, the last."""

    def complete(incomplete: str) -> list[tuple[str, str]]:
        before, mark, text = incomplete.rpartition(joins) if joins else ("", "", incomplete)
        begun = [(name, summary) for name, summary in names(text) if name.startswith(text)]
        if len(begun) == 1 and (only := begun[0][0]).endswith(_UNFINISHED):
            # A shell ends a single proposal with a space: with what may follow there are several.
            begun += [(name, summary) for name, summary in names(only) if name.startswith(only) and name != only]
        return [(f"{before}{mark}{name}", summary) for name, summary in begun]

    return complete


def _registered(package: str, registry: str) -> Callable[[str], Names]:
    """The names of a registry, each with its summary."""
    return lambda _: [(entry.name, entry.summary) for entry in getattr(import_module(package), registry)]


_similarities = _registered("crosslens.similarity", "SIMILARITIES")


def _paths(text: str) -> Iterator[tuple[str, str]]:
    for path in sorted(glob(escape(text) + "*")):
        yield (f"{path}/" if Path(path).is_dir() else path), ""


def _or_paths(names: Callable[[str], Names]) -> Callable[[str], Names]:
    return lambda text: [*names(text), *_paths(text)]


def _metrics(text: str) -> Iterator[tuple[str, str]]:
    """Families, after the direction that is typed; once a single one is meant, with cutoffs, or options in brackets."""
    direction, slash, metric = text.rpartition("/")
    if not slash:
        yield from _DIRECTIONS.items()
    families = [entry.value for entry in import_module("crosslens.metrics").METRICS]
    possible = [family for family in families if family.name.startswith(metric)]
    possible = possible or [family for family in families if re.match(re.escape(family.name) + r"[@\[]", metric)]
    for family in possible:
        required, name = family.cutoff == "required", f"{direction}{slash}{family.name}"
        cutoffs = [] if family.cutoff == "none" else ["@1", "@5", "@10"]
        endings = cutoffs if required else ["", *cutoffs]
        if len(possible) > 1:
            endings = ["@" if required else ""]
        elif "[" in metric:
            begun = metric.removeprefix(family.name)
            head = begun[: max(begun.rfind(","), begun.rfind("[")) + 1]
            options_left = [option for option in family.options if option.kind != "name" or "," not in head]
            options = [value for option in options_left for value in _option_values(option)]
            endings = [f"{head}{option}]{cutoff}" for option in options for cutoff in endings]
        elif family.options:
            endings.append("[")
        yield from ((name + ending, family.definition) for ending in endings)


def _option_values(option: Any) -> list[str]:
    """What may stand in the brackets of a metric for one of its options."""
    if option.kind == "name":
        return [name for name, _ in _similarities("")]
    return [f"{option.name}={option.default or 20}" if option.kind == "setting" else option.name]


def _models(registry: str) -> Callable[[str], Names]:
    def names(text: str) -> Iterator[tuple[str, str]]:
        kind, colon, source = text.partition(":")
        for entry in getattr(import_module("crosslens.encode"), registry):
            if not colon:
                yield entry.name + (":" if entry.details.get("needs_source", True) else ""), entry.summary
            elif entry.name == kind:
                is_local = kind in _LOCAL_MODELS
                if not is_local:
                    yield f"{kind}:{entry.details.get('example', '')}", entry.summary
                if is_local or source:
                    yield from ((f"{kind}:{path}", summary) for path, summary in _paths(source))

    return names


def _known_datasets(purpose: str = "") -> list[tuple[str, str]]:
    entries = import_module("crosslens.data").KNOWN.values()
    return [(entry.name, entry.title) for entry in entries if purpose in ("", entry.purpose)]


def _datasets(text: str) -> Iterator[tuple[str, str]]:
    yield from _known_datasets("retrieval")
    yield from _registered("crosslens.data", "READERS")(text)
    yield from _paths(text)


def _perturbations(text: str) -> Iterator[tuple[str, str]]:
    perturbations = import_module("crosslens.perturbations")
    yield from ((name, "a group of perturbations") for name in (*perturbations.GROUPS, perturbations.IMAGES))
    for registry in ("PERTURBATIONS", "IMAGE_PERTURBATIONS"):
        yield from _registered("crosslens.perturbations", registry)(text)


_NAMES: dict[str, Callable[[str], Names]] = {
    "KIND:SOURCE": _models("ENCODERS"),
    "--rerank KIND:SOURCE": _models("PAIR_SCORERS"),
    "--pair-model KIND:SOURCE": _models("PAIR_SCORERS"),
    "NAME|PATH": _datasets,
    '"NAME KEY=VALUE …"|PATH': _datasets,
    'N|"NAME KEY=VALUE …"|PATH': _datasets,
    'PATH|"NAME KEY=VALUE …"': _datasets,
    'FILE|"NAME KEY=VALUE …"': _datasets,
    'FOLDER|"NAME KEY=VALUE …"|PATH': _datasets,
    "--metrics NAMES": _metrics,
    "--metric NAME": _metrics,
    "--phi NAME": _similarities,
    "--phi NAME|FILE": _or_paths(_similarities),
    "--similarity NAME": _similarities,
    "--perturbations NAMES": _perturbations,
    "--perturb NAMES": _perturbations,
    "--name NAMES": _perturbations,
    "--score NAME": _registered("crosslens.rank", "SCORES"),
    "--protocol NAME": _registered("crosslens.pipeline", "PROTOCOLS"),
    "--generator NAME": _registered("crosslens.build", "GENERATORS"),
    "--grammar NAME": _registered("crosslens.build", "GRAMMAR_CHECKS"),
    "--to FORMAT": _registered("crosslens.data", "WRITERS"),
    "--format FORMAT": lambda _: import_module("crosslens.report").export_formats().items(),
    "--tasks NAMES": lambda _: [(name, "") for name in ("all", *import_module("crosslens.synth").TASKS)],
    "ANALYSIS": _registered("crosslens.analyze", "ANALYSES"),
    "METRIC": _registered("crosslens.metrics", "METRICS"),
    "PROTOCOL": _registered("crosslens.pipeline", "PROTOCOLS"),
    "READER": _registered("crosslens.data", "READERS"),
    "KNOWN DATASET": lambda _: _known_datasets(),
    "RECIPE": _or_paths(lambda _: [(name, "") for name in import_module("crosslens.train").recipe_names()]),
    "STAGE": lambda _: [(stage.name, stage.summary) for stage in import_module("crosslens.audits").all_stages()],
}
"""How the help writes a flag and its value, or the value alone; or what an argument is → what can stand there."""


def complete_bash(complete: Callable[[], object]) -> object:
    """Answer bash, which cuts words at ``:``, ``@`` and ``=`` (``clip:op`` are three) and replaces the last part.

    The parts are put together for ``complete``, which prints proposals; of each, what bash is to insert is printed.
    """
    words, position = os.environ["COMP_WORDS"].split("\n"), int(os.environ["COMP_CWORD"])
    joined, inside = [""], True
    for word in words[: position + 1]:
        is_mark = re.fullmatch("[:@=]+", word) is not None
        if is_mark or inside:
            joined[-1] += word
        else:
            joined.append(word)
        inside = is_mark
    was_cut = len(joined) < len(words[: position + 1])
    if was_cut:
        os.environ |= {"COMP_WORDS": "\n".join(joined), "COMP_CWORD": str(len(joined) - 1)}
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            return complete()
    finally:
        stays = re.sub("[^:@=]*$", "", joined[-1]) if was_cut else ""
        stays = stays.partition("=")[2] if stays.startswith("--") else stays
        sys.stdout.writelines(f"{line.removeprefix(stays)}\n" for line in printed.getvalue().splitlines())

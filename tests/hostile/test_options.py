"""Every numeric option with every hostile value, from Python and on the command line."""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
from dataclasses import fields
from functools import cache
from typing import Any, get_args

import numpy as np
import pytest

import crosslens
from crosslens.cli.app import GROUPS, HEADINGS, _command_of
from crosslens.core import Options, declarations
from crosslens.metrics import parse_metrics
from crosslens.rank import scorer_of
from crosslens.storage import LIMITS
from crosslens.values import Embeddings
from tests.hostile.conftest import Refused, Refuses
from tests.tables import each_row

HOSTILE = {
    "NaN": math.nan,
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "beyond a float": 10**400,
    "thousands of digits": 10**5000,
    "beyond 64 bits": 2**63,
    "far below zero": -(10**30),
    "text": "5",
    "truth": True,
    "list": [1],
}
TYPED = ("", "nan", "-inf", "1e400", "9" * 400, "9" * 5000, "0x10", "1 2", "\x00", "１" * 400, "--", "-" + "9" * 30)


@cache
def options_classes() -> list[type[Options]]:
    for module in pkgutil.walk_packages(crosslens.__path__, "crosslens."):
        # Kernels need Triton.
        if ".tiny" not in module.name and not module.name.endswith(("__main__", ".fused_kernels")):
            importlib.import_module(module.name)
    pending, classes = [Options], []
    while pending:
        kinds = pending.pop().__subclasses__()
        pending += kinds
        classes += [kind for kind in kinds if kind.__module__.startswith("crosslens.")]
    return sorted(classes, key=lambda kind: kind.__name__)


def numeric(kind: type[Options]) -> list[str]:
    numbers = {"int", "float", "int | None", "float | None"}
    declared = declarations(kind)
    return [entry.name for entry in fields(kind) if entry.name in declared and str(entry.type) in numbers]


@pytest.fixture(scope="module")
def _whole_package() -> None:
    """Imported before the time of a test begins, and only where one asks for it."""
    assert len(options_classes()) > 20


@each_row(
    ("kind", "name", "value"),
    lambda: ((kind, name, value) for kind in options_classes() for name in numeric(kind) for value in HOSTILE),
)
@pytest.mark.usefixtures("_whole_package")
def test_value_from_python(kind: type[Options], name: str, value: str, refuses: Refuses) -> None:
    message = refuses(lambda: kind(**{name: HOSTILE[value]}))
    assert name in message


def numeric_flags() -> list[tuple[str, str]]:
    commands = {name: command for names in HEADINGS.values() for name, command in names.items() if command is not None}
    for group, (_, inner) in GROUPS.items():
        commands |= {f"{group} {name}": function for name, function in inner.items()}
    pairs = []
    for command, function in commands.items():
        for parameter in inspect.signature(function).parameters.values():
            kind, *details = get_args(parameter.annotation) or (parameter.annotation,)
            if {int, float} & {kind, *get_args(kind)} and details:
                spelled = details[0].param_decls or (f"--{parameter.name.replace('_', '-')}",)
                pairs.append((command, max(spelled, key=len)))
    return pairs


@pytest.mark.parametrize(("command", "flag"), numeric_flags(), ids=[" ".join(pair) for pair in numeric_flags()])
def test_value_on_the_command_line(command: str, flag: str, refused: Refused) -> None:
    """All else that the command requires is given: what is refused is the value, by its name."""
    required = [parameter for parameter in _command_of(command.split()).params if parameter.required]
    given: list[str] = []
    for parameter in required:
        if parameter.param_type_name == "argument":
            given += ["x"] * max(parameter.nargs, 1)
        elif flag not in parameter.opts:
            given += [parameter.opts[-1], "x"]
    for value in TYPED:
        assert flag.rpartition("-")[2] in refused(*command.split(), *given, flag, value)


@pytest.mark.parametrize(
    "metric",
    [
        "Hit@" + "1" + "0" * 5000,
        "R@" + "9" * 5000,
        "Hit@0",
        "Hit@-1",
        "Hit@1e400",
        "Hit@١",
        "Hit@",
        "Hit@@5",
        "SR[m=" + "9" * 5000 + "]@5",
        "[" * 5000,
        "Hit[" + "a," * 5000 + "]@5",
        "\x00",
        "Hit@5\ud800",
        "x" * 100_000,
        "t2i/" * 1000 + "Hit@5",
    ],
    ids=lambda metric: ascii(metric)[:30],
)
def test_metric_name(metric: str, refuses: Refuses) -> None:
    refuses(lambda: parse_metrics(metric))


@pytest.mark.parametrize("value", ["nan", "inf", "9" * 5000, "9" * 400, "-1", "0", "", "x", "\x00"])
def test_score_option(value: str, refuses: Refuses) -> None:
    several = Embeddings.of(np.ones((2, 2, 2), np.float32))
    refuses(lambda: scorer_of(several, several, f"smooth-chamfer[alpha={value}]"))


@pytest.mark.parametrize("value", ["-1", "0", "1.5", "nan", "many", "9" * 5000, "１２", "\udcff"])
@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.variable)
def test_limit_in_the_environment(limit: Any, value: str, monkeypatch: pytest.MonkeyPatch, refuses: Refuses) -> None:
    monkeypatch.setenv(limit.variable, value)
    assert limit.variable in refuses(lambda: limit.value)

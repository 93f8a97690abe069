"""What a person meets first: the import is quick and light, the version is one, the public names are there."""

from __future__ import annotations

import ast
import importlib.metadata
import inspect
import json
import re
import subprocess
import sys
import time
import tomllib
from operator import attrgetter
from pathlib import Path

import pytest
import yaml

import crosslens
from crosslens.core.options import argument_helps

ROOT = Path(__file__).resolve().parents[1]
HEAVY = (
    "torch",
    "transformers",
    "onnxruntime",
    "vl_convert",
    "pandas",
    "matplotlib",
    "numba",
    "datasets",
    "eccv_caption",
    "pyarrow",
    "sklearn",
)


def python(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(statement: str) -> set[str]:
    return set(json.loads(python(f"import sys, json\n{statement}\nprint(json.dumps(sorted(sys.modules)))")))


def test_the_package_and_the_command_line_load_nothing_heavy() -> None:
    """``crosslens --help`` answers at once."""
    assert not set(HEAVY) & loaded_by("import crosslens.cli.app")


def test_importing_touches_no_network_and_warns_about_nothing() -> None:
    python(
        "import socket\n"
        "def refuse(*arguments, **options):\n"
        "    raise AssertionError('a connection was tried')\n"
        "socket.socket = socket.create_connection = socket.getaddrinfo = refuse\n"
        "import crosslens, crosslens.cli.app\n"
        "[getattr(crosslens, name) for name in getattr(crosslens, '__all__', ())]\n",
        "-W",
        "error",
    )


def test_importing_is_quick() -> None:
    """A generous bound that survives a busy machine; ``make bench`` measures the real figure."""

    def seconds() -> float:
        start = time.perf_counter()
        python("import crosslens")
        return time.perf_counter() - start

    assert any(seconds() < 1.5 for _ in range(5))


def test_one_version() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert crosslens.__version__ == declared == importlib.metadata.version("crosslens")


def test_citation() -> None:
    """What GitHub and reference managers read, and what the schema of CITATION.cff requires, is there and agrees."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation.keys() >= {"cff-version", "message", "title", "authors"}, "required by the schema"
    assert citation["cff-version"] == "1.2.0"
    for key, value in {"title": project["name"], "version": project["version"], "license": project["license"]}.items():
        assert citation[key] == value
    assert citation["authors"] == project["authors"]
    assert citation["abstract"] == project["description"]


def test_public_names() -> None:
    assert 30 <= len(crosslens.__all__) <= 45, "each one is a promise; what few programs need is in its package"
    for name in crosslens.__all__:
        value = getattr(crosslens, name)
        assert value.__name__ == name, "help and tracebacks call it as it is defined"
        assert (value.__doc__ or "").strip(), f"crosslens.{name} has no docstring"


def test_all_packages_but_the_applications_are_attributes() -> None:
    folders = {folder.parent.name for folder in (ROOT / "src" / "crosslens").glob("*/__init__.py")}
    assert set(dir(crosslens)) - set(crosslens.__all__) == folders - {"cli", "web"}
    assert python("import crosslens\nprint(crosslens.analyze.__name__)").strip() == "crosslens.analyze"
    assert not {"crosslens.analyze", "numpy"} & loaded_by("import crosslens")
    assert "numpy" not in loaded_by("import crosslens\ncrosslens.analyze")


def test_every_parameter_of_a_public_function_is_documented() -> None:
    """In the section ``Args`` of its docstring, which editors show."""
    reference = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    names = re.findall(r"^## ([\w.]+)$", reference, re.MULTILINE)  # those of packages, too, that pages call
    assert set(names) > set(crosslens.__all__)
    for name in names:
        value = attrgetter(name)(crosslens)
        if inspect.isfunction(value):
            assert argument_helps(value).keys() == inspect.signature(value).parameters.keys(), name


def test_dir_shows_public_names_only() -> None:
    """In a fresh process, and once packages and names have been loaded, which sets attributes of the package."""
    script = "import crosslens.core, crosslens.cli, crosslens\ncrosslens.evaluate\nprint(*dir(crosslens))"
    assert python(script).split() == dir(crosslens)
    assert not hasattr(crosslens, "lazy_names")


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'evalute'") as raised:
        crosslens.evalute  # noqa: B018
    assert (raised.value.obj, raised.value.name) == (crosslens, "evalute"), "Python adds the nearest name"
    assert not hasattr(crosslens, "evalute")


def test_types_travel_with_the_package() -> None:
    assert (ROOT / "src" / "crosslens" / "py.typed").exists()


def test_errors_about_missing_packages_name_real_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set()
    for file in (ROOT / "src").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        # Parsing all modules takes seconds.
        for node in ast.walk(ast.parse(text if "MissingExtraError" in text or "import_library" in text else "")):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("MissingExtraError", "import_library"):
                extras |= {argument.value for argument in node.args[2:3] if isinstance(argument, ast.Constant)}
            elif isinstance(node, ast.FunctionDef) and node.name == "import_library":
                extras.add(ast.literal_eval(node.args.defaults[0]))
    assert len(extras) > 3
    assert extras <= set(project["optional-dependencies"])

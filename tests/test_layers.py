"""The plan of the packages, held by the code: imports point down, packages form no circle, no module is an attic."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = "crosslens"
ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / PACKAGE

FLOORS = (
    ("core",),
    ("storage",),
    ("engine", "values"),
    ("language", "rank", "statistics"),
    ("data", "similarity", "perturbations", "synth"),
    ("metrics", "encode"),
    ("explanations", "analyze", "train"),
    ("comparisons",),
    ("pipeline", "build"),
    ("audits", "planning"),
    ("report",),
    ("web",),
    ("cli",),
)
FLOOR_OF = {package: floor for floor, packages in enumerate(FLOORS) for package in packages}
ROOF = ("__init__", "__main__", "sentence_transformers", "torch", "transformers")
"""The modules outside any package: they stand above all packages and may import from each. Those named after a library
are for its users, who have imported it already."""

ATTIC_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "base", "manager", "tools", "stuff"}
HEAVY = {
    "torch", "datasets", "eccv_caption", "pandas", "matplotlib", "transformers", "sentence_transformers", "onnxruntime",
    "tokenizers", "huggingface_hub", "open_clip", "vl_convert", "spacy", "faiss", "ftfy",
    "py3langid", "umap", "sklearn", "peft", "fastapi", "starlette", "uvicorn", "jinja2", "markupsafe", "pydantic",
    "sqlalchemy", "argon2", "mlflow", "wandb", "ray",
}  # fmt: skip
DEFINES_MODULES = f"{PACKAGE}.train.models."
"""The modules that may import torch at once: they define classes that derive from ``torch.nn.Module``. They are only
imported when a model is looked up (test_the_training_package_loads_without_torch)."""
WEB_PACKAGES = {
    "fastapi",
    "starlette",
    "uvicorn",
    "jinja2",
    "markupsafe",
    "pydantic",
    "sqlalchemy",
    "argon2",
}
"""What modules of the package ``web`` may import at once: only commands import them, and only when they run
(test_the_web_package_loads_without_a_web_framework)."""

Importing = ast.Import | ast.ImportFrom | ast.Call


@dataclass(frozen=True)
class Import:
    """One import statement: who imports what, and where it stands."""

    module: str
    target: str
    names: tuple[str, ...]
    line: int
    at_start: bool
    """True where it runs as soon as the module is imported."""

    @property
    def package(self) -> str:
        return package_of(self.module)

    @property
    def target_package(self) -> str:
        return package_of(self.target)


def package_of(module: str) -> str:
    """The package of a dotted name below the package; ``""`` for the package itself and its topmost modules."""
    parts = module.split(".")
    return "" if len(parts) == 1 or parts[1] in ROOF else parts[1]


def modules_in(source: Path) -> dict[str, Path]:
    """Dotted name → file, ``crosslens.rank`` for ``rank/__init__.py``."""
    files = {}
    for file in sorted(source.rglob("*.py")):
        parts = [source.name, *file.relative_to(source).with_suffix("").parts]
        files[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = file
    return files


@lru_cache(maxsize=1)
def imports_in(source: Path) -> list[Import]:
    """Every import of the package from itself, wherever it stands: in functions and under TYPE_CHECKING too."""
    modules = modules_in(source)
    imports = []
    for module, file in modules.items():
        for node, at_start in _walk(file.read_text(encoding="utf-8"), file):
            for target, names in _targets(node, module, is_package=file.name == "__init__.py"):
                imports.append(Import(module, target, names, node.lineno, at_start))
    return imports


def _walk(text: str, file: Path) -> Iterator[tuple[Importing, bool]]:
    """What may import, and whether it does when its module is loaded."""
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "import" in line]
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse(text, filename=str(file)), True)]
    while waiting:
        node, at_start = waiting.pop()
        if hasattr(node, "lineno") and bisect_left(lines, node.lineno) == bisect_right(lines, node.end_lineno):
            continue  # nothing in it imports
        if isinstance(node, Importing):
            yield node, at_start
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            at_start = False
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            at_start = False
        waiting += [(child, at_start) for child in ast.iter_child_nodes(node)][::-1]


def _targets(node: Importing, module: str, is_package: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name, ()
    elif isinstance(node, ast.ImportFrom):
        start = ""
        if node.level:
            here = module.split(".") if is_package else module.split(".")[:-1]
            start = ".".join(here[: len(here) - node.level + 1])
        target = ".".join(part for part in (start, node.module) if part)
        names = tuple(alias.name for alias in node.names)
        if target == PACKAGE:
            # `from crosslens import rank` reaches a package, `from crosslens import evaluate` the topmost module.
            for name in names:
                yield (f"{PACKAGE}.{name}", ()) if name in FLOOR_OF else (PACKAGE, (name,))
        else:
            yield target, names
    elif node.args and isinstance(node.args[0], ast.Constant) and "import" in ast.unparse(node.func):
        yield str(node.args[0].value), ()


def within_package(imports: list[Import]) -> list[Import]:
    return [statement for statement in imports if statement.target.split(".")[0] == PACKAGE]


def unknown_packages(source: Path) -> list[str]:
    """Folders and files directly below the package that the plan does not know."""
    entries = [entry for entry in source.iterdir() if entry.name != "__pycache__"]
    packages = {entry.name for entry in entries if entry.is_dir() and any(entry.rglob("*.py"))}
    loose = {entry.stem for entry in entries if entry.suffix == ".py"} - set(ROOF)
    return sorted((packages - set(FLOOR_OF)) | loose)


def upward_imports(source: Path) -> list[str]:
    """Imports from a lower floor to a higher one, or from a package to the topmost modules (its version excepted)."""
    faults = []
    for statement in within_package(imports_in(source)):
        if not statement.package or (not statement.target_package and statement.names == ("__version__",)):
            continue
        reach = FLOOR_OF.get(statement.target_package, -1) if statement.target_package else len(FLOORS)
        if reach > FLOOR_OF.get(statement.package, len(FLOORS)):
            faults.append(
                f"{statement.module}, line {statement.line}: {statement.package} must not import "
                f"{statement.target} from above"
            )
    return faults


def package_circle(source: Path) -> list[str]:
    """Packages that import each other in a circle; empty where there is none."""
    graph: dict[str, set[str]] = {}
    for statement in within_package(imports_in(source)):
        if statement.package and statement.target_package and statement.package != statement.target_package:
            graph.setdefault(statement.package, set()).add(statement.target_package)
    return circle(graph)


def module_circle(source: Path) -> list[str]:
    """Modules that import each other in a circle, in functions and for the type checker too."""
    modules = modules_in(source)
    graph: dict[str, set[str]] = {}
    for statement in within_package(imports_in(source)):
        target, names = statement.target, statement.names
        reached = {f"{target}.{name}" for name in names if f"{target}.{name}" in modules}
        if len(reached) < len(names) or not names:
            reached.add(target)
        graph.setdefault(statement.module, set()).update(reached - {statement.module})
    return circle(graph)


def public_names(package: Path) -> dict[str, str]:
    """The public names of a package → their modules."""
    stub = package / "__init__.pyi"
    statements = ast.parse(stub.read_text(encoding="utf-8")).body if stub.exists() else []
    return {
        alias.asname or alias.name: str(statement.module)
        for statement in statements
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def imports_past_public_names(source: Path) -> list[str]:
    """Imports from another package that name one of its modules instead of what its ``__init__.pyi`` lists."""
    offered = {package.name: public_names(package) for package in source.iterdir() if package.is_dir()}
    return [
        f"{statement.module}, line {statement.line}: from {statement.target} import {', '.join(statement.names)}"
        for statement in within_package(imports_in(source))
        if statement.package and statement.target_package and statement.package != statement.target_package
        if statement.target != f"{PACKAGE}.{statement.target_package}"
        or not set(statement.names) <= set(offered[statement.target_package])
    ]


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_every_package_is_in_the_plan() -> None:
    assert not unknown_packages(SOURCE), "add the package to a floor here and to docs/architecture.md, or move the file"


def test_no_import_points_up() -> None:
    assert not upward_imports(SOURCE)


def test_packages_form_no_circle() -> None:
    assert not package_circle(SOURCE)


def test_modules_form_no_circle() -> None:
    assert not module_circle(SOURCE)


def test_packages_are_imported_by_their_public_names() -> None:
    assert not imports_past_public_names(SOURCE), (
        "list the name in the package's __init__.pyi and import it from the package"
    )


def test_public_names_are_of_their_package() -> None:
    """A name that is also a module's would be the module or the value, depending on who imported what before."""
    for package in (entry for entry in SOURCE.iterdir() if (entry / "__init__.pyi").exists()):
        modules = {entry.stem for entry in package.iterdir()}
        for name, module in public_names(package).items():
            assert module.startswith(f"{PACKAGE}.{package.name}."), f"{package.name} lists {name} of another package"
            assert name not in modules, f"{package.name}.{name} is a module and a public name"


def test_public_names_are_those_of_the_definitions() -> None:
    for stub in SOURCE.rglob("__init__.pyi"):
        for node in ast.walk(ast.parse(stub.read_text(encoding="utf-8"))):
            for alias in node.names if isinstance(node, ast.ImportFrom) else ():
                assert alias.asname == alias.name, f"{stub.parent.name}: help and tracebacks say {alias.name}"


def test_one_name_one_class() -> None:
    homes: dict[str, list[str]] = {}
    for module, file in modules_in(SOURCE).items():
        for name in re.findall(r"^class ([^\W_]\w*)", file.read_text(encoding="utf-8"), re.MULTILINE):
            homes.setdefault(name, []).append(module)
    assert len(homes) > 100
    assert not {name: modules for name, modules in homes.items() if len(modules) > 1}


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    faults = [
        f"{statement.module}, line {statement.line}: {statement.target}"
        for statement in imports_in(SOURCE)
        if statement.at_start and statement.target.split(".")[0] in HEAVY
        if not (statement.target.split(".")[0] == "torch" and statement.module.startswith(DEFINES_MODULES))
        if not (statement.target.split(".")[0] in WEB_PACKAGES and statement.package == "web")
        if statement.module.removeprefix(f"{PACKAGE}.") not in ROOF
    ]
    assert not faults, "import these inside the function that needs them"


def test_types_are_checked_alike_wherever_extras_are_missing() -> None:
    """``make lint`` installs no extra but ``web``: mypy is told of every other package that is imported somewhere."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, overrides = settings["project"], settings["tool"]["mypy"]["overrides"]
    installed = {
        re.split(r"[\[<>=]", requirement)[0].lower().replace("-", "_")
        for requirement in (*project["dependencies"], *project["optional-dependencies"]["web"])
    }
    names_of = {"argon2_cffi": "argon2", "pillow": "PIL", "python_multipart": "multipart"}
    allowed = {names_of.get(name, name) for name in installed} | {"click", "anyio", "markupsafe", "crosslens"}
    allowed |= sys.stdlib_module_names
    allowed |= {
        name.split(".")[0] for entry in overrides if entry.get("ignore_missing_imports") for name in entry["module"]
    }
    faults = {
        f"{imported.module}, line {imported.line}: {imported.target}"
        for imported in imports_in(SOURCE)
        if imported.target.split(".")[0] not in allowed
    }
    assert not faults, "name these packages in [[tool.mypy.overrides]] of pyproject.toml"
    # Where such a package is missing its classes are Any, of which mypy allows a subclass only where that is said.
    missing = {
        name.split(".")[0] for entry in overrides for name in entry["module"] if entry.get("ignore_missing_imports")
    }
    loose = [name for entry in overrides for name in entry["module"] if entry.get("disallow_subclassing_any") is False]
    for file in sorted(SOURCE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        nodes = list(ast.walk(ast.parse(text)))
        foreign = {alias.asname or alias.name for node in nodes if isinstance(node, ast.ImportFrom) and node.module
                   and node.module.split(".")[0] in missing for alias in node.names}  # fmt: skip
        module = ".".join(("crosslens", *file.relative_to(SOURCE).with_suffix("").parts))
        for node in nodes:
            if isinstance(node, ast.ClassDef) and foreign & {ast.unparse(base) for base in node.bases}:
                marked = "type: ignore[misc" in text.splitlines()[node.lineno - 1]
                assert marked or any(fnmatch(module, name) for name in loose), f"{module}, line {node.lineno}"


def test_the_training_package_loads_without_torch() -> None:
    """Every public name of it, and the list of recipes."""
    code = (
        "import sys, crosslens.train as train\n"
        "[getattr(train, name) for name in train.__all__]\n"
        "[train.load_training_recipe(name) for name in train.recipe_names()], list(train.LOSSES)\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_the_web_package_loads_without_a_web_framework() -> None:
    """What the command line reads of it for its help."""
    code = (
        "import sys, crosslens.cli.app, crosslens.web as web\n"
        "web.ServeOptions, web.WebSettings, web.serve_pages\n"
        f"assert not {WEB_PACKAGES!r} & set(sys.modules), sorted(set(sys.modules) & {WEB_PACKAGES!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_no_attics() -> None:
    for module in modules_in(SOURCE):
        assert not ATTIC_NAMES & set(module.split(".")), f"{module}: name it after what it does"


def test_architecture_page_names_every_package() -> None:
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    missing = [
        package.name for package in SOURCE.iterdir() if package.name in FLOOR_OF and f"{package.name}/" not in page
    ]
    assert not missing


# The checks themselves, on made-up houses.


def house(folder: Path, files: Mapping[str, str]) -> Path:
    source = folder / PACKAGE
    for name, text in files.items():
        file = source / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return source


@pytest.mark.parametrize(
    "statement",
    [
        "import crosslens.cli",
        "from crosslens.pipeline import evaluate",
        "from crosslens import pipeline",
        "from crosslens import evaluate",
        "from ..metrics.hits import hit",
        "def late():\n    from crosslens.report.text.runs import table",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from crosslens.data import load",
        "import importlib\n\ndef late():\n    importlib.import_module('crosslens.web')",
    ],
)
def test_an_upward_import_is_found(tmp_path: Path, statement: str) -> None:
    source = house(tmp_path, {"rank/tiles.py": statement, "rank/__init__.py": ""})
    assert len(upward_imports(source)) == 1


@pytest.mark.parametrize(
    "statement",
    ["from crosslens.core.errors import InputError", "from . import ties", "from crosslens import __version__"],
)
def test_a_downward_import_is_fine(tmp_path: Path, statement: str) -> None:
    assert not upward_imports(house(tmp_path, {"rank/tiles.py": statement, "rank/__init__.py": ""}))


def test_a_circle_on_one_floor_is_found(tmp_path: Path) -> None:
    source = house(
        tmp_path,
        {
            "data/coco.py": "from crosslens.synth.scenes import scene",
            "synth/scenes.py": "def late():\n    import crosslens.data.readers.coco",
        },
    )
    assert not upward_imports(source)
    assert set(package_circle(source)) == {"data", "synth"}


@pytest.mark.parametrize(
    "statement", ["from .a import x", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import x"]
)
def test_a_circle_of_modules_is_found(tmp_path: Path, statement: str) -> None:
    files = {"rank/a.py": "from crosslens.rank import b", "rank/b.py": statement, "rank/__init__.py": ""}
    assert {"crosslens.rank.a", "crosslens.rank.b"} == set(module_circle(house(tmp_path, files)))


def test_an_unplanned_package_is_found(tmp_path: Path) -> None:
    source = house(tmp_path, {"values/run.py": "", "magic/spell.py": "", "loose.py": "", "__init__.py": ""})
    assert unknown_packages(source) == ["loose", "magic"]

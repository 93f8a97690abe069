"""Which code made a figure, and whether it has changed since.

While a measurement runs, :func:`traced` notes every function of crosslens and of this folder that is called, and every
table that is read from there. :func:`code_of` makes a hash per module of these functions and of the constants that they
name, whichever module those are in; a comment, a docstring, an annotation's line break or a function beside them leaves
it as it is. So a figure becomes stale when its own code changes, and not with every commit. What only reads files,
prints, shows progress or parses the command line does not count (:data:`APART`).
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import io
import re
import sys
import threading
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SOURCE = ROOT / "src"
CODE = {SOURCE / "crosslens": "crosslens", HERE: "reproduce"}
APART = re.compile(
    r"(?:crosslens\.(?:cli|data|report|web|pipeline\.(?:comparison\w*|options|recipe)|statistics\.paired|train\.recipe"
    r"|explanations\.changes|encode\.(?:cache|loading|options)|core\.(?:addresses|errors|findings|input_files|lazy"
    r"|long_work|options|output|parts|provenance|registry|remote|rendering|resumable|settings|sources|storage|trust"
    r"|user_code))|reproduce\.(?:freshness|pages|reproduction))(?:\.|$)"
)
"""Modules whose functions no figure is computed by, though they run: they read files, keep, print and test them.

No figure of the page is a test's result, and what files hold is checked by the tests of their readers.
"""
COMPILED = re.compile(r"jit|compiled|reassociated")
"""Decorators of functions that machine code is made of: their calls are not seen, so being named is being called."""
DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class Trace:
    """Names of functions by module, and files of data in the packages."""

    functions: dict[str, set[str]] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)


@contextmanager
def traced() -> Iterator[Trace]:
    """Note what is called and read meanwhile."""
    called: set[CodeType] = set()
    opened: set[str] = set()
    current.append(opened)
    add = called.add

    def note(frame: FrameType, event: str, argument: object) -> None:
        add(frame.f_code)

    found = Trace()
    previous = sys.gettrace()
    threading.settrace(note)
    sys.settrace(note)
    try:
        yield found
    finally:
        sys.settrace(previous)
        threading.settrace(previous)  # type: ignore[arg-type]
        current.remove(opened)
        for ran in called:
            module = module_of(Path(ran.co_filename))
            name = ran.co_qualname.split(".<locals>")[0]
            ran_as_function = ran.co_flags & inspect.CO_OPTIMIZED  # not the body of a class or module: an import
            if module and ran_as_function and not APART.match(module) and not name.startswith("<"):
                found.functions.setdefault(module, set()).add(name)
        for file in map(Path, opened):
            code = file.suffix in (".py", ".pyc", ".pyi") or file.parent.name == "__pycache__"
            if SOURCE in file.parents and not code and file.is_file():
                found.files.add(file.relative_to(ROOT).as_posix())


current: list[set[str]] = []


def _note_opened(event: str, arguments: tuple[object, ...]) -> None:
    if current and event == "open" and isinstance(arguments[0], str | Path):
        for opened in current:
            opened.add(str(arguments[0]))


sys.addaudithook(_note_opened)


def module_of(file: Path) -> str:
    """The module that a file of crosslens or of this folder holds; empty for other files."""
    for folder, package in CODE.items():
        if file.suffix == ".py" and folder in file.parents:
            parts = file.relative_to(folder).with_suffix("").parts
            return ".".join((package, *(part for part in parts if part != "__init__")))
    return ""


def file_of(module: str) -> Path | None:
    """The file of a module, where there still is one."""
    package, *parts = module.split(".")
    folder = next(folder for folder, name in CODE.items() if name == package)
    return next((file for file in (folder.joinpath(*parts).with_suffix(".py"), folder.joinpath(*parts, "__init__.py"))
                 if file.is_file()), None)  # fmt: skip


# The text of what ran


@dataclass(frozen=True)
class Module:
    """What a module defines, by name: functions and methods, the fields of classes, constants; and what it imports."""

    functions: Mapping[str, ast.AST]
    fields: Mapping[str, Sequence[ast.AST]]
    constants: Mapping[str, ast.AST]
    imports: Mapping[str, tuple[str, str]]
    lines: Sequence[str]

    def text(self, node: ast.AST) -> str:
        """Its source without comments, docstrings and layout, equal in every version of Python."""
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])  # type: ignore[attr-defined]
        lines = list(self.lines[first - 1 : node.end_lineno])  # type: ignore[attr-defined]
        for inner in ast.walk(node):
            if isinstance(inner, (*DEFINED, ast.ClassDef)) and ast.get_docstring(inner, clean=False) is not None:
                documented = inner.body[0]
                for number in range(documented.lineno, (documented.end_lineno or documented.lineno) + 1):
                    lines[number - first] = "\n"
        kept = list(lines)
        try:
            for token in tokenize.generate_tokens(io.StringIO("".join(lines)).readline):
                if token.type == tokenize.COMMENT:
                    row, column = token.start
                    kept[row - 1] = kept[row - 1][:column]
        except (tokenize.TokenError, IndentationError):  # a part of a file may end inside a bracket's indentation
            pass
        return re.sub(r",(?=[)\]}])", "", re.sub(r"\s+", "", "".join(kept)))


@cache
def parsed(module: str) -> Module | None:
    """A module's definitions; None where it is gone."""
    file = file_of(module)
    if file is None:
        return None
    source = file.read_text(encoding="utf-8")
    functions: dict[str, ast.AST] = {}
    fields: dict[str, list[ast.AST]] = {}
    constants: dict[str, ast.AST] = {}
    imports: dict[str, tuple[str, str]] = {}

    def read(body: Sequence[ast.stmt], within: str) -> None:
        for statement in body:
            if isinstance(statement, DEFINED):
                # of a name defined twice, such as a property and its setter, both
                place = within + statement.name
                functions[place if place not in functions else f"{place} {statement.lineno}"] = statement
            elif isinstance(statement, ast.ClassDef):
                fields[within + statement.name] = [*statement.bases, *statement.keywords, *statement.decorator_list]
                read(statement.body, f"{within}{statement.name}.")
            elif within and not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                fields[within.rstrip(".")].append(statement)
            elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                for target in targets:
                    constants.update({name.id: statement for name in ast.walk(target) if isinstance(name, ast.Name)})
            elif isinstance(statement, (ast.If, ast.Try, ast.With, ast.For)):
                for inner in ast.iter_child_nodes(statement):
                    read([inner] if isinstance(inner, ast.stmt) else [], within)

    tree = ast.parse(source)
    read(tree.body, "")
    for statement in ast.walk(tree):
        if isinstance(statement, ast.ImportFrom) and statement.module:
            imports |= {one.asname or one.name: (statement.module, one.name) for one in statement.names}
        elif isinstance(statement, ast.Import):
            imports |= {one.asname or one.name: (one.name, "") for one in statement.names}
    return Module(functions, fields, constants, imports, source.splitlines(keepends=True))


@cache
def public(module: str) -> Mapping[str, str]:
    """Where the public names of a package are defined, as its ``__init__.pyi`` says."""
    file = SOURCE.joinpath(*module.split("."), "__init__.pyi")
    if not file.is_file():
        return {}
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {one.asname or one.name: str(statement.module) for statement in ast.walk(tree)
            if isinstance(statement, ast.ImportFrom) for one in statement.names}  # fmt: skip


def texts_of(functions: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """The source of functions, and of the constants and fields that they name, by module and name."""
    texts: dict[str, dict[str, str]] = {}
    waiting: list[tuple[str, str]] = [(module, name) for module, names in functions.items() for name in names]
    seen = set(waiting)
    while waiting:
        module, name = waiting.pop()
        content = parsed(module)
        if content is None:
            texts.setdefault(module, {})[name] = "gone"
            continue
        owner = name.rpartition(".")[0]
        nodes: list[ast.AST] = []
        if name in content.functions:
            nodes = [node for place, node in content.functions.items() if place.split(" ")[0] == name]
            if owner in content.fields and (module, owner) not in seen:
                seen.add((module, owner))
                waiting.append((module, owner))
        elif name in content.fields:
            nodes = list(content.fields[name])
        elif name in content.constants:
            nodes = [content.constants[name]]
        texts.setdefault(module, {})[name] = "".join(map(content.text, nodes)) if nodes else "gone"
        for node in nodes:
            for used in names_in(node):
                place = constant(module, used)
                if place and place not in seen:
                    seen.add(place)
                    waiting.append(place)
    return texts


def names_in(node: ast.AST) -> set[str]:
    """Names, and what is asked of names: ``PANEL`` and ``difficulty.PANEL``."""
    names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    return names | {f"{inner.value.id}.{inner.attr}" for inner in ast.walk(node)
                    if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name)}  # fmt: skip


def constant(module: str, name: str) -> tuple[str, str] | None:
    """Where a constant, class or compiled function that a module names is defined; None for what is not ours."""
    whole, _, attribute = name.partition(".")
    if attribute:
        content = parsed(module)
        if content is None or content.imports.get(whole, ("", "-"))[1]:
            return None
        module, name = content.imports[whole][0], attribute
        module = f"reproduce.{module}" if (HERE / f"{module}.py").is_file() else public(module).get(name, module)
    for _ in range(5):
        content = parsed(module) if module.split(".")[0] in CODE.values() else None
        if content is None or APART.match(module):
            return None
        if name in content.constants or name in content.fields or compiled(content.functions.get(name)):
            return module, name
        if name not in content.imports:
            return None
        module, name = content.imports[name]
        module = public(module).get(name, module)
        if (HERE / f"{module}.py").is_file():
            module = f"reproduce.{module}"
    return None


def compiled(node: ast.AST | None) -> bool:
    """Whether a function is decorated so that its calls are not seen."""
    return any(COMPILED.search(ast.unparse(one)) for one in getattr(node, "decorator_list", ()))


def digest(text: str) -> str:
    """A short hash."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def code_of(functions: Mapping[str, Sequence[str]], files: Sequence[str]) -> dict[str, str]:
    """A hash per module of what ran in it, and one per file of data."""
    hashes = {
        module: digest("\n".join(f"{name}:{text}" for name, text in sorted(texts.items())))
        for module, texts in sorted(texts_of(functions).items())
        if not APART.match(module)
    }
    for file in sorted(files):
        path = ROOT / file
        hashes[file] = hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.is_file() else "gone"
    return hashes


def changed(stored: Mapping[str, str], today: Mapping[str, str]) -> list[str]:
    """Modules and files whose part in a measurement is other than it was."""
    names = (name for name in {*stored, *today} if not APART.match(name))
    return sorted(name for name in names if stored.get(name) != today.get(name))

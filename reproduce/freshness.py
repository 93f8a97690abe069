"""Which code made a figure, and whether it means something else today.

While a measurement runs, :func:`traced` notes every function of crosslens and of this folder that is called, and every
table that is read from there. :func:`code_of` keeps a hash of each of these functions, and of the constants and classes
that they name. The hash is of what Python is told to do: it stays the same where a function moves to another module,
where a variable, a definition, an argument or a field is renamed, and where imports, annotations, docstrings, comments,
messages of errors or the layout change; an operator, a constant or another function called in its place changes it. So
a figure becomes stale when its own code changes, and not with every commit. What only reads files, prints, keeps, shows
progress or parses the command line does not count (:data:`APART`, :data:`APART_FUNCTIONS`).
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import islice, product
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SOURCE = ROOT / "src"
CODE = {SOURCE / "crosslens": "crosslens", HERE: "reproduce"}
APART = re.compile(
    r"(?:crosslens\.(?:cli|data|report|web|comparisons|pipeline\.(?:options|recipe)|statistics\.paired|train\.recipe"
    r"|explanations\.changes|encode\.(?:cache|loading|options|sources)|engine\.long_work|core"
    r"|storage\.(?:folders|input_files|output|remote|resumable|settings|trust))|reproduce\.(?:freshness|pages|reproduction))(?:\.|$)"
)
"""Modules whose functions no figure is computed by, though they run: they read files, keep, print and test them.

No figure of the page is a test's result, and what files hold is checked by the tests of their readers.
"""
APART_FUNCTIONS = re.compile(
    r"(?:^|\.)(?:__str__|__repr__|_?(?:provenance|versions|readme|fingerprint|describe|described|header|label|origin"
    r"|note_origin|run_folder|scratch_folder|write_into|save|findings|sections)|_?(?:check|require|warn)_\w+)$"
)
"""Functions of other modules that no figure is computed by: they say what ran and what is wrong, and keep results."""
COMPILED = re.compile(r"jit|compiled|reassociated")
"""Decorators of functions that machine code is made of: their calls are not seen, so being named is being called."""
MODULE = re.compile(r"crosslens(?:\.\w+)+")
DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENDED = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
UNWRITTEN = ("ctx", "kind", "type_comment", "type_params", "returns", "annotation")
PRESENTED = ("fix", "help", "metavar", "phrase", "progress")
"""Arguments by name that are for people who look on."""
TRIES = 256
"""Ways to undo renamings that are tried on a definition."""
TELLING = 20
"""Tokens of a definition that can be told from all others by its code alone."""


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

    trace = Trace()
    previous = sys.gettrace()
    threading.settrace(note)
    sys.settrace(note)
    try:
        yield trace
    finally:
        sys.settrace(previous)
        threading.settrace(previous)  # type: ignore[arg-type]
        current.remove(opened)
        for ran in called:
            module = module_of(Path(ran.co_filename))
            name = ran.co_qualname.split(".<locals>")[0]
            ran_as_function = ran.co_flags & inspect.CO_OPTIMIZED  # not the body of a class or module: an import
            if module and ran_as_function and counts(module, name) and not name.startswith("<"):
                trace.functions.setdefault(module, set()).add(name)
        for file in map(Path, opened):
            code = file.suffix in (".py", ".pyc", ".pyi") or file.parent.name == "__pycache__"
            if SOURCE in file.parents and not code and file.is_file():
                trace.files.add(file.relative_to(ROOT).as_posix())


def counts(module: str, name: str) -> bool:
    """Whether figures are computed by a definition."""
    return not APART.match(module) and not APART_FUNCTIONS.search(name)


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


# What ran, in a form that only its meaning changes


@dataclass(frozen=True)
class Module:
    """What a module defines, by name: functions, methods, classes with their fields, constants; and its imports."""

    functions: Mapping[str, Sequence[ast.AST]]
    classes: Mapping[str, Sequence[ast.AST]]
    fields: Mapping[str, Sequence[str]]
    constants: Mapping[str, ast.AST]
    imports: Mapping[str, tuple[str, str]]

    def nodes(self, name: str) -> Sequence[ast.AST]:
        """What defines a name here; nothing where it is not defined here."""
        constant = [self.constants[name]] if name in self.constants else []
        return self.functions.get(name) or self.classes.get(name) or constant


Place = tuple[str, str]
"""A module, and the name of a definition in it."""


@cache
def parsed(module: str) -> Module | None:
    """A module's definitions; None where it is gone."""
    file = file_of(module)
    if file is None:
        return None
    functions: dict[str, list[ast.AST]] = {}
    classes: dict[str, list[ast.AST]] = {}
    fields: dict[str, list[str]] = {}
    constants: dict[str, ast.AST] = {}
    imports: dict[str, tuple[str, str]] = {}

    def read(body: Sequence[ast.stmt], within: str) -> None:
        for statement in body:
            if isinstance(statement, DEFINED):
                if not any("overload" in ast.unparse(mark) for mark in statement.decorator_list):
                    functions.setdefault(within + statement.name, []).append(statement)  # a property and its setter
                    assigned = [
                        inner.attr
                        for inner in ast.walk(statement)
                        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store)
                        if ast.unparse(inner.value) == "self"
                    ]
                    fields.get(within.rstrip("."), []).extend(assigned)
            elif isinstance(statement, ast.ClassDef):
                place = within + statement.name
                classes[place] = [*statement.bases, *statement.keywords, *statement.decorator_list]
                fields[place] = []
                read(statement.body, f"{place}.")
                fields[place] = list(dict.fromkeys(fields[place]))
            elif within and not is_text(statement):
                classes[within.rstrip(".")].append(statement)
                fields[within.rstrip(".")] += targets(statement)
            elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                constants.update(dict.fromkeys(targets(statement), statement))
            elif isinstance(statement, (ast.If, ast.Try, ast.With, ast.For)):
                for inner in ast.iter_child_nodes(statement):
                    read([inner] if isinstance(inner, ast.stmt) else [], within)

    tree = ast.parse(file.read_text(encoding="utf-8"))
    read(tree.body, "")
    for statement in ast.walk(tree):
        if isinstance(statement, ast.ImportFrom) and statement.module:
            imports |= {name.asname or name.name: (statement.module, name.name) for name in statement.names}
        elif isinstance(statement, ast.Import):
            imports |= {name.asname or name.name: (name.name, "") for name in statement.names}
    return Module(functions, classes, fields, constants, imports)


def is_text(statement: ast.AST) -> bool:
    """Whether it is a docstring, or another text that stands by itself."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def targets(statement: ast.AST) -> list[str]:
    """Names that a statement assigns."""
    return [name.id for name in ast.walk(statement) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)]


def modules() -> list[str]:
    """Every module of crosslens and of this folder."""
    return sorted(module_of(file) for folder in CODE for file in folder.rglob("*.py"))


@cache
def public(module: str) -> Mapping[str, str]:
    """Where the public names of a package are defined, as its ``__init__.pyi`` says."""
    file = SOURCE.joinpath(*module.split("."), "__init__.pyi")
    if not file.is_file():
        return {}
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {name.asname or name.name: str(statement.module) for statement in ast.walk(tree)
            if isinstance(statement, ast.ImportFrom) for name in statement.names}  # fmt: skip


@cache
def defined(module: str, name: str) -> Place | None:
    """Where the definition is that a module means by ``NAME`` or ``module.NAME``; None for what is not ours."""
    whole, _, attribute = name.partition(".")
    if attribute:
        content = parsed(module)
        if content is None or content.imports.get(whole, ("", "-"))[1]:
            return None
        module, name = content.imports[whole][0], attribute
        module = f"reproduce.{module}" if (HERE / f"{module}.py").is_file() else public(module).get(name, module)
    for _ in range(5):
        content = parsed(module) if module.split(".")[0] in CODE.values() else None
        if content is None:
            return None
        if content.nodes(name):
            return module, name
        if name not in content.imports:
            return None
        module, name = content.imports[name]
        module = public(module).get(name, module)
        if (HERE / f"{module}.py").is_file():
            module = f"reproduce.{module}"
    return None


Token = tuple[str, str]
"""A kind and a text: ``name`` is a name that others give (of a definition, a field, an argument), ``code`` all else."""


class Writer:
    """Writes a definition as tokens: without imports, annotations, docstrings and messages, its variables numbered."""

    def __init__(self, module: str) -> None:
        self.module, self.tokens, self.references = module, list[Token](), list[Place]()
        self.scopes: list[tuple[int, set[str]]] = []
        self.numbers: dict[tuple[int, str], int] = {}

    def put(self, kind: str, text: str) -> None:
        self.tokens.append((kind, text))

    def local(self, name: str) -> bool:
        """Write the number of a variable, where the name is one."""
        for scope, names in reversed(self.scopes):
            if name in names:
                self.put("code", f"v{self.numbers.setdefault((scope, name), len(self.numbers))}")
                return True
        return False

    def reference(self, name: str) -> bool:
        """Write the name by which a definition of ours is called where it is defined."""
        place = defined(self.module, name)
        if place is None:
            return False
        self.references.append(place)
        self.put("name", place[1])
        return True

    def write(self, node: object) -> None:
        if isinstance(node, list | tuple):
            for part in node:
                self.write(part)
            self.put("code", ";")
        elif not isinstance(node, ast.AST):
            self.put("code", repr(node))
        elif isinstance(node, (ast.Import, ast.ImportFrom)) or is_text(node):
            pass
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and MODULE.fullmatch(node.value):
            self.put("code", "a module")  # a registry names where its entries are
        elif isinstance(node, ast.Raise):  # what it says is no figure
            self.put("code", "raise")
        elif isinstance(node, ast.Name):
            if not self.scopes and isinstance(node.ctx, ast.Store):  # a constant or a field
                self.put("name", node.id)
            elif not self.local(node.id) and not self.reference(node.id):
                source, original = self.imported(node.id)
                self.put("code", f"{source}.{original}" if original else source)
        elif isinstance(node, ast.Attribute):
            named_module = isinstance(node.value, ast.Name) and not any(
                node.value.id in names for _, names in self.scopes
            )
            if not (named_module and self.reference(f"{node.value.id}.{node.attr}")):  # type: ignore[attr-defined]
                self.write(node.value)
                self.put("name", node.attr)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "cast":
            self.write(node.args[1])
        elif isinstance(node, ast.Call):
            self.write(node.func)
            positional = node.args[:1] if isinstance(node.func, ast.Name) and node.func.id == "option" else node.args
            self.write(positional)
            for keyword in sorted(node.keywords, key=lambda keyword: keyword.arg or ""):
                if keyword.arg not in PRESENTED:
                    self.put("name", keyword.arg or "**")
                    self.write(keyword.value)
            self.put("code", ";")
        elif isinstance(node, ast.AnnAssign):
            self.write([node.target, node.value])
        elif isinstance(node, (*DEFINED, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            self.scope(node)
        elif isinstance(node, ast.arg):
            self.local(node.arg)
        else:
            self.put("code", type(node).__name__)
            for name, value in ast.iter_fields(node):
                if name in UNWRITTEN or value is None or value == []:
                    continue
                if isinstance(node, ast.Constant) or not isinstance(value, str) or not self.local(value):
                    self.write(value)

    def imported(self, name: str) -> Place:
        """What a name is of a library, whatever it is called here; itself where it is no import."""
        content = parsed(self.module)
        return content.imports.get(name, (name, "")) if content else (name, "")

    def scope(self, node: Any) -> None:
        """A function, a lambda or a comprehension, with variables of its own."""
        if isinstance(node, DEFINED):
            self.write(node.decorator_list)
            if self.scopes:
                self.local(node.name)
        self.scopes.append((len(self.numbers) + 1000 * len(self.tokens), bound(node)))
        self.put("code", type(node).__name__)
        if isinstance(node, DEFINED):
            self.write(node.args)
            self.write(node.body)
        else:
            for _, value in reversed(list(ast.iter_fields(node))):
                self.write(value)
        self.scopes.pop()


def bound(scope: ast.AST) -> set[str]:
    """Names that a function, a lambda or a comprehension binds itself."""
    names: set[str] = set()
    outer: set[str] = set()

    def look(node: ast.AST) -> None:
        if isinstance(node, (*DEFINED, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            outer.update(node.names)
        if not isinstance(node, (*DEFINED, ast.ClassDef, ast.Lambda, *COMPREHENDED)):
            for inner in ast.iter_child_nodes(node):
                look(inner)
        elif isinstance(node, COMPREHENDED):  # `:=` binds outside
            names.update(inner.target.id for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr))

    for child in ast.iter_child_nodes(scope):
        look(child)
    return names - outer


@dataclass(frozen=True)
class Part:
    """A definition: its tokens, the definitions of ours that it names, and its arguments or fields."""

    tokens: Sequence[Token]
    references: Sequence[Place]
    fields: Sequence[str]

    def hashed(self, renamed: Mapping[str, str]) -> str:
        """Of its code whatever the names, and of both, with the names that were before a renaming."""
        named = " ".join(renamed.get(text, text) if kind == "name" else text for kind, text in self.tokens)
        return self.shape() + digest(named)

    def shape(self) -> str:
        """Of its code, whatever the names."""
        return digest(" ".join("." if kind == "name" else text for kind, text in self.tokens))


@cache
def part_of(place: Place) -> Part:
    """What a place of today defines."""
    module, name = place
    content = parsed(module)
    assert content is not None, place
    nodes = content.nodes(name)
    writer = Writer(module)
    writer.write(nodes)
    arguments = [node.arg for function in content.functions.get(name, ()) for node in ast.walk(function.args)  # type: ignore[attr-defined]
                 if isinstance(node, ast.arg)]  # fmt: skip
    return Part(writer.tokens, writer.references, content.fields.get(name, arguments))


@cache
def hash_of(place: Place) -> str:
    """Of what a place of today defines."""
    return part_of(place).hashed({})


def digest(text: str) -> str:
    """A short hash."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def is_defined(place: Place) -> bool:
    """Whether something is defined there today."""
    content = parsed(place[0])
    return content is not None and bool(content.nodes(place[1]))


def places_of(functions: Mapping[str, Iterable[str]]) -> list[Place]:
    """The functions that ran with their classes, and the constants, classes and compiled functions that these name."""
    waiting = [(module, name) for module, names in functions.items() for name in names if is_defined((module, name))]
    seen = set(waiting)
    while waiting:
        module, name = waiting.pop()
        owner = (module, name.rpartition(".")[0])
        named = [place for place in part_of((module, name)).references if is_constant(place)]
        for place in [owner, *named] if is_defined(owner) else named:
            if place not in seen and counts(*place):
                seen.add(place)
                waiting.append(place)
    return sorted(place for place in seen if counts(*place))


def is_constant(place: Place) -> bool:
    """Whether being named is taking part: a constant, a class, a compiled function."""
    content, name = parsed(place[0]), place[1]
    if content is None or name in content.constants or name in content.classes:
        return content is not None
    decorators = (mark for node in content.functions.get(name, ()) for mark in getattr(node, "decorator_list", ()))
    return any(COMPILED.search(ast.unparse(mark)) for mark in decorators)


# What is kept with a measurement


def code_of(functions: Mapping[str, Iterable[str]], files: Iterable[str]) -> dict[str, str]:
    """By module what ran in it, with its hashes, arguments or fields; by file of data its hash."""
    kept = defaultdict(list)
    for module, name in places_of(functions):
        part = part_of((module, name))
        kept[module].append(" ".join((name, hash_of((module, name)), *part.fields)))
    return {module: "; ".join(parts) for module, parts in sorted(kept.items())} | file_hashes(files)


def file_hashes(files: Iterable[str]) -> dict[str, str]:
    """Of files of data."""
    paths = {file: ROOT / file for file in sorted(files)}
    return {file: hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.is_file() else "gone"
            for file, path in paths.items()}  # fmt: skip


def changed(kept: Mapping[str, str]) -> list[str]:
    """Definitions and files whose part in a measurement is other than it was."""
    files = {name: own for name, own in kept.items() if "/" in name}
    stored: dict[Place, tuple[str, list[str]]] = {}
    for module in kept.keys() - files:
        for name, hashed, *fields in map(str.split, kept[module].split("; ")):
            if counts(module, name):
                stored[module, name] = hashed, fields
    today = {place: place if is_defined(place) else moved(place, hashed, stored)
             for place, (hashed, _) in stored.items()}  # fmt: skip
    renamed: dict[str, set[str]] = defaultdict(set)  # two definitions may have renamed different names to the same one
    for before, now in today.items():
        if now is not None:
            fields, own = stored[before][1], part_of(now).fields
            lost, new = [name for name in fields if name not in own], [name for name in own if name not in fields]
            pairs = list(zip(new, lost, strict=True)) if len(lost) == len(new) else []
            for name, earlier in [*pairs, (now[1], before[1])]:
                renamed[name].add(earlier)
            renamed[now[1].rpartition(".")[2]].add(before[1].rpartition(".")[2])
    other = {place for place, now in today.items() if now is None or not is_same(now, stored[place][0], renamed)}
    # a function that has moved may name a constant that is called the same there
    hashes = {name: {hashed for (_, same), (hashed, _) in stored.items() if same == name} for _, name in stored}
    named = {place for now in today.values() if now for place in part_of(now).references if is_constant(place)}
    other |= {
        place for place in named - set(today.values()) if place[1] in hashes and hash_of(place) not in hashes[place[1]]
    }
    return sorted([*map(".".join, other), *(file for file, own in file_hashes(files).items() if own != files[file])])


def is_same(now: Place, hashed: str, renamed: Mapping[str, Iterable[str]]) -> bool:
    """Whether a definition is what it was, but for names that were renamed."""
    part = part_of(now)
    names = sorted({text for kind, text in part.tokens if kind == "name" and text in renamed})
    earlier = product(*(sorted(renamed[name]) for name in names))
    tries = (dict(zip(names, before, strict=True)) for before in islice(earlier, TRIES))
    return hash_of(now) == hashed or any(part.hashed(renaming) == hashed for renaming in tries)


def moved(place: Place, hashed: str, stored: Iterable[Place]) -> Place | None:
    """Where a definition is today that is no longer where it was: under its name elsewhere, or renamed."""
    shape = hashed[:8]
    same_name = sorted(definitions()[place[1].rpartition(".")[2]], key=lambda now: now[1] != place[1])
    for candidates in (
        (now for now in same_name if part_of(now).shape() == shape),
        (now for now in places_in(place[0]) if now not in stored and part_of(now).shape() == shape),
        (now for now in shapes().get(shape, ()) if now not in stored and len(part_of(now).tokens) > TELLING),
    ):
        if now := next(candidates, None):
            return now
    return None


@cache
def definitions() -> Mapping[str, Sequence[Place]]:
    """All that is defined today, by the last part of its name."""
    index = defaultdict(list)
    for place in (place for module in modules() for place in places_in(module)):
        index[place[1].rpartition(".")[2]].append(place)
    return index


@cache
def shapes() -> Mapping[str, Sequence[Place]]:
    """All that is defined today, by its code without names."""
    index = defaultdict(list)
    for place in (place for places in definitions().values() for place in places):
        index[part_of(place).shape()].append(place)
    return index


def places_in(module: str) -> list[Place]:
    """What a module defines today."""
    content = parsed(module)
    names = [*content.functions, *content.classes, *content.constants] if content else []
    return [(module, name) for name in names]


def forget() -> None:
    """Read all code again."""
    for memory in (parsed, public, defined, part_of, hash_of, definitions, shapes):
        memory.cache_clear()

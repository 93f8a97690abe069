"""A training written down: data, model, losses, and how long and how fast; a TOML file or one of the packaged ones.

Settings of a recipe's table are checked against what the registered function takes, before it is called.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from crosslens.core import Entry, InputError, Options, UnknownNameError, UsageError, ValueType, option
from crosslens.data import read_text
from crosslens.storage import SettingsFile, TrustCode, named_by, parse_json, require_openable, trusting


def call_registered(entry: Entry[Any], settings: Mapping[str, Any], *leading: Any, table: str, source: str) -> Any:
    """Call a registered function with the settings of a recipe's table; a mistake names the recipe and the rule.

    Keywords without a default are not a recipe's to set: a caller that has them passes them among the settings.
    """
    required = {name for name, option in _keywords(entry.value).items() if option.default is option.empty}
    of_recipe = {name: settings[name] for name in settings if name not in required}
    check_settings(entry, of_recipe, table=table, source=source)
    with naming_recipe(entry, table, source):
        return entry.value(*leading, **settings)


@contextmanager
def naming_recipe(entry: Entry[Any], table: str, source: str) -> Iterator[None]:
    """What is wrong with settings names the recipe that has them."""
    try:
        yield
    except UsageError as error:
        problem, row = f"{table} {entry.name}: {error.args[0]}", _line(source, table, error.option)
        raise InputError(problem, file=source, row=row, fix=error.fix) from error


def settings_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The keywords of a function that a recipe may set: those with a default."""
    return [option for option in _keywords(function).values() if option.default is not option.empty]


def _keywords(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Its own, and of a class that passes ``**`` others on, those of the class that it extends."""
    parameters = inspect.signature(function).parameters
    keywords = {name: option for name, option in parameters.items() if option.kind is option.KEYWORD_ONLY}
    if isinstance(function, type) and any(option.kind is option.VAR_KEYWORD for option in parameters.values()):
        for base in function.__bases__:
            keywords |= _keywords(base)
    return keywords


def declared_settings(entry: Entry[Any]) -> dict[str, str]:
    """Name → annotation of the settings of a registered function."""
    return {option.name: str(option.annotation) for option in settings_of(entry.value)}


def check_settings(entry: Entry[Any], settings: Mapping[str, Any], *, table: str, source: str) -> None:
    """Raise unless all settings of a recipe's table exist and have the right type."""
    declared = declared_settings(entry)
    for name, value in settings.items():
        try:
            if name not in declared:
                fix = f"choose from {', '.join(sorted(declared))}" if declared else "remove it: there are none"
                raise InputError(f"{table} {entry.name} has no setting {name!r}", file=source, fix=fix)
            check_type(f"{name} of {table} {entry.name}", value, declared[name], source)
        except InputError as error:
            error.row = _line(source, table, name)
            raise


def check_type(name: str, value: Any, annotation: str, source: str) -> None:
    """Raise unless a value read from TOML is of the annotated type; other annotations accept everything."""
    declared = ValueType.of(annotation)
    if declared.only_plain and declared.convert(value) is None:
        raise InputError(f"{name} is {value!r:.60}", file=source, expected=declared.expected)


def _line(source: str, table: str, name: str | None) -> str | None:
    """The line of a setting, where the file itself has it, once; not one that a base or a flag sets."""
    lines = SettingsFile.parse(read_text(source), source).lines if Path(source).is_file() else {}
    paths = [path for path in lines if path[0] == table.strip("[]") and path[1:] and path[-1] == name]
    return f"line {lines[paths[0]]}" if len(paths) == 1 else None


def check_sizes(*, dropout: float = 0.0, **sizes: int) -> None:
    """Raise unless every size is at least 1, and dropout is a share below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise UsageError(f"{name} is {size}", fix=f"{name} must be at least 1", option=name)
    if not 0 <= dropout < 1:
        raise UsageError(f"dropout is {dropout}", fix="dropout must be at least 0 and below 1", option="dropout")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise unless the value of a setting is one of the choices."""
    if value not in choices:
        raise UsageError(f"{name} is {value!r}", fix=f"choose {', '.join(choices[:-1])} or {choices[-1]}", option=name)


def check_scale(name: str, value: float) -> None:
    """Raise unless the factor of a setting is a number above 0."""
    if not 0 < value < math.inf:
        raise UsageError(f"{name} is {value}", fix=f"{name} must be above 0", option=name)


def check_share(name: str, value: float) -> None:
    """Raise unless a share is from 0 to 1."""
    if not 0 <= value <= 1:
        raise UsageError(f"{name} is {value}", fix=f"{name} must be from 0 to 1", option=name)


BASE = "base"
SUFFIX = ".toml"


def recipe_names() -> list[str]:
    """The recipes that come with crosslens."""
    return sorted(_packaged())


@cache
def _packaged() -> dict[str, Traversable]:
    """The packaged files by name, those in folders below included."""
    folders = [files("crosslens.train").joinpath("recipes")]
    packaged: dict[str, Traversable] = {}
    for folder in folders:
        for entry in folder.iterdir():
            if entry.name.endswith(SUFFIX):
                packaged[entry.name.removesuffix(SUFFIX)] = entry
            elif entry.is_dir():
                folders.append(entry)
    return packaged


def read_recipe_file(name: str | Path, folder: Path = Path(), above: tuple[str, ...] = ()) -> SettingsFile:
    """A packaged recipe by its name, or a TOML file by its path from ``folder``; what its bases say is included.

    ``above`` are the recipes that build on it.
    """
    path, name = folder / name, str(name)
    is_file = path.suffix == SUFFIX or path.is_file()
    source = str(path) if is_file else f"{name}{SUFFIX}"
    key = str(path.resolve()) if is_file else name
    if key in above:
        circle = " → ".join(Path(step).name for step in (*above[above.index(key) :], key))
        raise InputError(f"the recipe builds on itself: {circle}", file=source, fix="remove one of these bases")
    if is_file:
        text = read_text(path)
    else:
        packaged = _packaged()
        if name not in packaged:
            raise UnknownNameError("recipe", name, list(packaged))
        text = packaged[name].read_text("utf-8")
    file = SettingsFile.parse(text, source)
    content = {key: value for key, value in file.content.items() if key != BASE}
    if BASE not in file.content:
        return replace(file, content=_with_losses_of(None, content, file))
    base, fix = file.content[BASE], "write the name of a recipe, or a path from this file"
    if not isinstance(base, str):
        raise file.fail((BASE,), f"base is {base!r:.60}", fix=fix)
    folder = path.parent if is_file else Path()
    try:
        below = read_recipe_file(base, folder, (*above, key)).content
    except UnknownNameError as error:
        raise file.fail((BASE,), f"its base is unknown: {error.args[0]}", fix=error.fix) from error
    except InputError as error:
        if (folder / base).exists() or not base.endswith(SUFFIX):
            raise
        raise file.fail((BASE,), f"its base {base} does not exist", fix=fix) from error
    return replace(file, content=merged(below, _with_losses_of(below.get("loss"), content, file)))


def merged(base: Mapping[str, Any], entries: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe's entries over those of its base: tables entry by entry, unless they name another kind; losses anew."""
    content = {key: value for key, value in base.items() if key not in ("about", "published")}
    for key, value in entries.items():
        below: Any = content.get(key)
        tables = key != "loss" and isinstance(value, dict) and isinstance(below, dict)
        extends = tables and ("kind" not in value or value["kind"] == below.get("kind"))
        content[key] = {**below, **value} if extends else value
    return content


def _with_losses_of(base: Any, content: dict[str, Any], file: SettingsFile) -> dict[str, Any]:
    """The content with the base's losses in place of an entry [[loss]] of kind "base"."""
    if not isinstance(content.get("loss"), list):
        return content
    losses: list[Any] = []
    for number, entry in enumerate(content["loss"]):
        if not (isinstance(entry, dict) and entry.get("kind") == BASE):
            losses.append(entry)
            continue
        if len(entry) > 1:
            problem = f'a [[loss]] of kind "base" with {", ".join(key for key in entry if key != "kind")}'
            raise file.fail(("loss", number), problem, fix="write the losses themselves to change them")
        if base is None:
            fix = "name one (base = …), or write the losses themselves"
            raise file.fail(("loss", number), 'a [[loss]] of kind "base" in a recipe without a base', fix=fix)
        losses += base if isinstance(base, list) else [base]
    return {**content, "loss": losses}


CONSTANT, STEP, COSINE = "constant", "step", "cosine"
_TEXTS = ("table", "row", "flags")


@dataclass(frozen=True)
class TrainingSettings(Options, group="Training"):
    """How a model is trained: the same names in a recipe, in Python and as flags."""

    fraction: float = option(
        1.0,
        "Share of the training images; a smaller share is part of a larger one.",
        metavar="SHARE",
        above=0,
        maximum=1,
    )
    seed: int = option(0, "Seed of weights, order, dropout and sampling.", minimum=0)
    epochs: int = option(30, "Passes over the training captions.", minimum=1)
    max_steps: int = option(0, "Steps at most, where the epochs would take more; 0: no limit.", minimum=0)
    batch_size: int = option(128, "Pairs in a batch.", minimum=2, group="Training")
    optimizer: str = option("adam", "What takes the steps: adam or adamw.", choices=("adam", "adamw"))
    learning_rate: float = option(2e-4, "Learning rate at its highest.", above=0)
    image_rate: float = option(
        1.0, "Factor of the learning rate for what reads images; 0: not trained.", metavar="FACTOR", minimum=0
    )
    text_rate: float = option(
        1.0, "Factor of the learning rate for what reads captions; 0: not trained.", metavar="FACTOR", minimum=0
    )
    weight_decay: float = option(0.0, "Weight decay.", minimum=0)
    schedule: str = option(CONSTANT, "How the rate falls: constant, step or cosine.", choices=(CONSTANT, STEP, COSINE))
    decay_epochs: int = option(15, "With step: the rate is divided by 10 every N epochs.", minimum=1)
    warm_up: float = option(
        0.0, "Share of the steps in which the rate rises to its highest.", metavar="SHARE", minimum=0, below=1
    )
    clip: float = option(2.0, "Gradients are scaled down to this norm; 0: never.", minimum=0)
    precision: str = option(
        "fp32", "What the model computes in: fp32 or bf16.", choices=("fp32", "bf16"), group="Training"
    )
    validate_every: int = option(1, "Epochs between validations.", minimum=1)
    metric: str = option("Rsum", "The metric by which the best checkpoint is chosen.")
    test_metrics: str = option("", "Metrics of the test split besides Hit@1, Hit@5, Hit@10, MedR and Rsum.", joins=" ")
    patience: int = option(0, "Stop after N validations without a better value; 0: never.", minimum=0)
    device: str | None = option(None, "Where to compute: cpu, cuda, cuda:1. [default: a GPU if there is one]")
    processes: int = option(1, "Processes that train together: one per GPU, or on the CPU.", minimum=1)
    threads: int | None = option(None, "Threads to use, of each process.", minimum=1)
    checkpoint_share: float = option(
        0.1,
        "The share of the time that may be spent on checkpoints; 1: one after every validation.",
        metavar="SHARE",
        above=0,
        maximum=1,
    )

    def steps(self, per_epoch: int) -> int:
        """Steps in all, with so many per epoch."""
        return min(self.epochs * per_epoch, self.max_steps or self.epochs * per_epoch)


IGNORED_FOR_IDENTITY = ("device", "threads", "processes", "checkpoint_share", "test_metrics")
"""What does not decide about the weights."""
_NOT_IDENTITY = ("settings", "name", "about", "source", "published")


@dataclass(frozen=True)
class TrainingRecipe:
    """What ``crosslens train`` repeats."""

    name: str
    about: str
    layout: str
    """A registered feature set: how the data folder is read."""
    data: Mapping[str, Any]
    model: str
    model_settings: Mapping[str, Any]
    losses: tuple[Mapping[str, Any], ...]
    phi: str = "cider"
    least_count: int = 4
    """A word of the vocabulary occurs at least this often in the training captions."""
    text_model: str = ""
    """An encoder, as KIND:SOURCE: frozen with the text ``sentence``, trained further with ``encoder``."""
    settings: TrainingSettings = field(default_factory=TrainingSettings)
    source: str = "recipe"
    """The file, for messages."""
    published: tuple[PublishedRow, ...] = ()
    """The rows of papers that it repeats."""

    def with_settings(self, changes: Mapping[str, Any]) -> TrainingRecipe:
        """The recipe with other settings; None changes nothing."""
        return replace(self, settings=replace(self.settings, **{k: v for k, v in changes.items() if v is not None}))

    def identity(self) -> dict[str, Any]:
        """All that decides about the weights."""
        settings = {name: value for name, value in vars(self.settings).items() if name not in IGNORED_FOR_IDENTITY}
        entries = {name: value for name, value in vars(self).items() if name not in _NOT_IDENTITY}
        return {**entries, "losses": [dict(entry) for entry in self.losses], "settings": settings}


_ENTRIES = {"about": str, "phi": str, "text_model": str, "least_count": int}
_TABLES = ("data", "model")


def load_training_recipe(
    name: str | Path, *, trust_code: TrustCode | None = None, allow_hosts: Iterable[str] = ()
) -> TrainingRecipe:
    """A packaged recipe by its name, or a TOML file by its path.

    Code and addresses that it names, wherever in it, are its author's: ``trust_code`` allows the one to run,
    ``allow_hosts`` names the hosts of the other.
    """
    from crosslens.encode import require_trusted_model  # needs numpy, which help texts do without

    file = read_recipe_file(name)
    content = file.content
    with trusting(trust_code, allow_hosts), named_by(file.file):
        for text in _texts(content):
            for model in _CODE.findall(text):
                require_trusted_model(model)
            for address in _ADDRESS.findall(text):
                require_openable(address)
    file.refuse_unknown((), content, (*_ENTRIES, *_TABLES, "loss", "training", "published"))
    entries = {key: file.value((key,), content[key], kind) for key, kind in _ENTRIES.items() if key in content}
    if entries.get("least_count", 1) < 1:
        raise file.fail(("least_count",), f"least_count = {entries['least_count']}", "1 or more")
    for table in _TABLES:
        if table not in content:
            raise file.fail((), f"no table [{table}]", fix=f"add [{table}]")
    (layout, data), (model, model_settings) = (_kind_of(file.table(table), (table,), file) for table in _TABLES)
    losses = content.get("loss")
    losses = [losses] if isinstance(losses, dict) else losses
    if not losses or not isinstance(losses, list) or not all(isinstance(entry, dict) for entry in losses):
        raise file.fail(("loss",), "no loss", "one table [[loss]] or more", "add [[loss]]")
    for number, entry in enumerate(losses):
        _kind_of(entry, ("loss", number), file)
    file.options(TrainingSettings, "training")
    published = content.get("published", [])
    if not (isinstance(published, list) and all(isinstance(entry, dict) for entry in published)):
        raise file.fail(("published",), f"published is {published!r:.60}", "tables [[published]]")
    rows = []
    for number, entry in enumerate(published):
        for key in ("table", "row"):
            if key not in entry:
                raise file.fail(("published", number), f"[[published]] has no {key}", fix=f'write {key} = "…"')
        values = {
            key: file.value(("published", number, key), value, str if key in _TEXTS else float)
            for key, value in entry.items()
        }
        figures = {key: value for key, value in values.items() if key not in _TEXTS}  # every other key is a metric
        rows.append(PublishedRow(entry["table"], entry["row"], figures, entry.get("flags", "")))
    return TrainingRecipe(
        Path(str(file.file)).stem, entries.pop("about", ""), layout, data, model, model_settings, tuple(losses),
        **entries, source=str(file.file), published=tuple(rows),
        settings=TrainingSettings(**file.table("training")),  # as written: the keys of stored models tell 2 from 2.0
    )  # fmt: skip


_CODE = re.compile(r"callable\s*:[^\]]+", re.IGNORECASE)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://[^\s\],]+", re.IGNORECASE)


def _texts(value: Any, key: str = "") -> Iterator[str]:
    """Every text of a recipe at any depth, but those that describe it."""
    if isinstance(value, str):
        yield from () if key in (*_TEXTS, "about") else (value,)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, key)


def _kind_of(table: Mapping[str, Any], path: tuple[str | int, ...], file: SettingsFile) -> tuple[str, dict[str, Any]]:
    """The kind that a table names, and its other entries."""
    name = f"[{path[0]}]" if len(path) == 1 else f"[[{path[0]}]]"
    kind = table.get("kind")
    if not isinstance(kind, str):
        problem = f"{name} has no kind" if kind is None else f"the kind of {name} is {kind!r:.60}"
        raise file.fail((*path, "kind"), problem, fix=f'name it in {name}: kind = "…"')
    return kind, {key: value for key, value in table.items() if key != "kind"}


@dataclass(frozen=True)
class PublishedRow:
    """A row of a paper's table."""

    table: str
    row: str
    figures: Mapping[str, float]
    """By metric, as printed."""
    flags: str = ""
    """What to add to the command: the share of the data."""


TITLES = {
    "flickr8k": "Flickr8k, features of EfficientNet-lite0",
    "f30k": "Flickr30k, region features",
    "coco": "COCO, region features",
    "imp": "Pairs of pictures and captions, evaluated on IMP",
}
"""By how the names begin."""


@dataclass(frozen=True)
class RecipeGroup:
    """Recipes for the same data."""

    title: str
    recipes: tuple[TrainingRecipe, ...]


def recipe_groups(words: str = "") -> list[RecipeGroup]:
    """The packaged recipes whose name, description or published rows have words that begin with all of these."""
    recipes = []
    for recipe in map(load_training_recipe, recipe_names()):
        rows = (f"{row.table} {row.row}" for row in recipe.published)
        described = " ".join([recipe.name, recipe.about, *rows]).lower()
        # A word begins like that: vse is in flickr8k-vse-sum, not in cvse.
        if all(re.search(rf"(?<!\w){re.escape(word)}", described) for word in words.lower().split()):
            recipes.append(recipe)
    if not recipes:
        raise UsageError(f"no recipe is described by {words!r}", fix="use fewer words, such as f30k or sam")
    groups: dict[str, list[TrainingRecipe]] = {title: [] for title in TITLES.values()}
    for recipe in recipes:
        groups.setdefault(TITLES.get(recipe.name.partition("-")[0], "Others"), []).append(recipe)
    return [RecipeGroup(title, tuple(members)) for title, members in groups.items() if members]


@dataclass(frozen=True)
class RecipeMinutes:
    """Processor minutes of packaged recipes, as ``benchmarks/training.py --minutes`` expects them from a few steps."""

    machine: str
    recipe: Mapping[str, float]
    """By name, with the recipe's own settings."""
    tenth: Mapping[str, float]
    """By name, on a tenth of the training images."""


def recipe_minutes() -> RecipeMinutes:
    """The packaged record; recipes whose data were not at hand are not in it."""
    record = parse_json(files("crosslens.train").joinpath("minutes.json").read_text("utf-8"))
    entries = record["recipes"]
    recipe, tenth = ({name: entry[kind] for name, entry in entries.items()} for kind in ("recipe", "tenth"))
    return RecipeMinutes(record["machine"], recipe, tenth)


def tables_of(recipe: TrainingRecipe) -> str:
    """The tables whose rows it repeats: ``FIVE Tables 2, 3``."""
    numbers: dict[str, list[str]] = {}
    for row in recipe.published:
        paper, _, rest = row.table.partition(" Table ")
        number = rest.partition(",")[0]
        if number not in numbers.setdefault(paper, []):
            numbers[paper].append(number)
    return "; ".join(
        f"{paper} {'Tables' if len(listed) > 1 else 'Table'} {', '.join(listed)}" for paper, listed in numbers.items()
    )

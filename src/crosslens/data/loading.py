"""Loading a dataset: by a reader's name and its options, or by a path.

A reader is one function per format, registered under the name people type. What the rest of the package has to know of
it is declared at its registration; its options are derived from the function's parameters and docstring.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

from crosslens.core import (
    Entry,
    InputError,
    Registry,
    UnknownNameError,
    UsageError,
    ValueType,
    call_function,
    reading,
    wrong_code,
)
from crosslens.data.files import existing_file, format_suffix, read_json, read_lines
from crosslens.data.known import DATA_FOLDER, KNOWN, find_known, is_known, known_dataset, require_captions
from crosslens.data.variants import EXTRA_IMAGES, read_image_names
from crosslens.storage import HEADER_FILE, being_written, read_whole
from crosslens.values import Dataset

Reader = Callable[..., Dataset]


@dataclass(frozen=True)
class ReaderOption:
    """An option of a reader; a value of a type that is not plain only the reader can check."""

    name: str
    type: ValueType
    default: Any
    is_required: bool
    help: str

    @property
    def is_path(self) -> bool:
        return Path in self.type.kinds

    @property
    def expected(self) -> str:
        return "a path" if self.is_path else self.type.noun

    def accepts(self, value: Any) -> bool:
        """Whether the value is of one of the option's types."""
        is_checked = self.type.only_plain and not self.type.several and (value is not None or self.is_required)
        return not is_checked or self.type.accepts(value) or (self.is_path and isinstance(value, str))

    def parse(self, text: str) -> Any:
        """A value written as text, as on a command line."""
        try:
            return self.type.read(text) if self.type.only_plain else text
        except ValueError:
            problem = f"the reader option {self.name} = {text!r}"
            raise UsageError(problem, fix=f"give it {self.expected}", option=self.name) from None


@dataclass(frozen=True)
class JsonFile:
    """A kind of JSON file that a reader takes under ``option``, and how its parsed content is recognised."""

    option: str
    title: str
    layout: str
    matches: Callable[[Any], bool]


class ReaderRegistry(Registry[Reader]):
    """Readers with their options."""

    def register(self, name: str, **details: Any) -> Callable[[Reader], Reader]:
        """Decorate a reader to enrol it. Details that are understood, all optional.

        suffixes: a path that ends in one of these is loaded by this reader
        json_files: the kinds of :class:`JsonFile` that are loaded by this reader when given as a path
        folders: a folder that holds one of these folders is loaded by this reader, as its option ``folder``
        folder_files: a folder that holds one of these files is loaded by this reader, as its first option
        prefix: a source that begins with it is loaded by this reader; what follows is its first option
        suggested_for: endings that do not tell the format, for which this reader is proposed
        """

        def enrol(reader: Reader) -> Reader:
            lines = re.findall(r"^(\w+): (.*(?:\n    .*)*)", inspect.getdoc(reader) or "", flags=re.MULTILINE)
            hints, explained = get_type_hints(reader), {name: " ".join(text.split()) for name, text in lines}
            options = {}
            for option, parameter in inspect.signature(reader).parameters.items():
                hint, is_required = hints.get(option), parameter.default is parameter.empty
                default = None if is_required else parameter.default
                kind, explanation = ValueType.of(hint), explained.get(option, "")
                options[option] = ReaderOption(option, kind, default, is_required, explanation)
            return super(ReaderRegistry, self).register(name, options=options, **details)(reader)

        return enrol


READERS = ReaderRegistry("dataset reader", "readers", ("crosslens.data.readers",))


def is_dataset_name(source: str, base: Path = Path()) -> bool:
    """Whether a dataset's source is the name of a reader or of a known dataset, seen from the folder ``base``.

    A name after a reader's prefix, such as ``hf:owner/name``, is one, too. A name in another case is one unless there
    is such a path.
    """
    if source in READERS or is_known(source, base):
        return source in (*READERS.names(), *KNOWN) or not (base / source).exists()
    return _by_prefix(source) is not None


def _by_prefix(source: str) -> Entry[Reader] | None:
    begins, colon, name = source.partition(":")
    matching = (entry for entry in READERS if entry.details.get("prefix") == begins + colon)
    return next(matching, None) if colon and name and not name.startswith("//") else None


_FOLDER_OPTION = ReaderOption(DATA_FOLDER, ValueType.of(Path), None, False, "The folder below which the dataset is.")
"""What every known dataset takes, besides the options of its readers."""


def reader_options(source: str) -> Mapping[str, ReaderOption]:
    """The options of the reader ``source``, or of the readers of a known dataset.

    For a path, those of all readers that a path alone may lead to.
    """
    reader = READERS[source] if source in READERS else _by_prefix(source)
    if reader is not None:
        options: Mapping[str, ReaderOption] = reader.details["options"]
        return options
    if is_known(source):
        readers = [READERS[form.reader] for form in known_dataset(source).forms if form.reader]
        of_readers = {name: option for entry in readers for name, option in entry.details["options"].items()}
        return {**of_readers, DATA_FOLDER: _FOLDER_OPTION}
    by_path = [
        entry for entry in READERS if {"suffixes", "json_files", "folders", "folder_files"} & entry.details.keys()
    ]
    return {name: option for entry in by_path for name, option in entry.details["options"].items()}


def path_options(source: str | None, options: Mapping[str, Any], base: Path = Path()) -> set[str]:
    """Which entries of a dataset table are paths; ``source`` itself is one unless it names a reader."""
    if source is None:
        return set()
    declared = reader_options(source)
    paths = {
        key
        for key, value in options.items()
        if isinstance(value, str) and (key == EXTRA_IMAGES or (key in declared and declared[key].is_path))
    }
    return paths | ({"source"} if is_dataset_path(source, base) else set())


def is_dataset_path(source: str, base: Path = Path()) -> bool:
    """Whether a dataset's source is a path, seen from the folder ``base``, and not a name."""
    if is_dataset_name(source, base):
        return False
    return "/" in source or "\\" in source or Path(source).suffix != "" or (base / source).exists()


def load_dataset(source: str | Path, **options: Any) -> Dataset:
    """Load a dataset.

    A dataset that people know by a name, such as ``flickr30k`` or ``coco-karpathy-5k``, is looked for below the option
    ``data_folder``, or else below the folder in the environment variable ``CROSSLENS_DATA`` and the current one; where
    it is not, the error says what to get from where.

    Args:
        source: The name of a reader, such as ``coco``; of a known dataset; ``hf:owner/name``, a dataset on the Hugging
            Face hub or in its cache on this machine; or the path of a folder that ``Dataset.save``, clip-retrieval or
            Hugging Face's ``save_to_disk`` wrote, of a plain .jsonl, .csv, .tsv or .parquet file, or of a .json file,
            whose content tells its format: COCO captions or instances, Karpathy's ``dataset_*.json``, fine-grained
            captions, BLIP's and ALBEF's annotations. Files of a saved dataset that have changed since are refused,
            unless ``verify=False``.
        options: Those of the reader; and of every dataset ``extra_images``, a folder of images, or a list of images,
            that have no captions and enlarge the gallery (see :meth:`Dataset.with_extra_images`).
    """
    extra = options.pop(EXTRA_IMAGES, None)
    dataset = _load(source, options)
    if extra is None:
        return dataset
    path = Path(extra).expanduser()
    if path.is_dir():
        return dataset.with_extra_images(path)
    names = read_image_names(path)
    with reading(path):
        return dataset.with_extra_images(names, folder=path.parent)


def _load(source: str | Path, options: dict[str, Any]) -> Dataset:
    if isinstance(source, str) and not is_dataset_path(source):
        if is_known(source):
            require_captions(known_dataset(source))
            # A known dataset under its name, with its licence; a copy that is not whole says so.
            files = find_known(source, options.pop(DATA_FOLDER, None))
            facts = files.entry
            if files.reader:
                dataset = _call(READERS[files.reader], {**files.options, **options})
            else:
                dataset = _load_folder(files.path, options)
            notes = dataset.card.notes
            if facts.images and len(dataset.image_ids) != facts.images and not options:
                notes = f"{facts.name} has {facts.images:,} images, and this copy {len(dataset.image_ids):,}"
            card = replace(dataset.card, licence=dataset.card.licence or facts.licence, notes=notes)
            home = dataset.home or files.pictures
            name = facts.called or facts.name
            return replace(dataset, name=dataset.name if options else name, card=card, home=home)
        if (entry := _by_prefix(source)) is not None:
            return _call(entry, {_first_option(entry): source.partition(":")[2], **options})
        if source not in READERS:
            raise UnknownNameError("dataset reader", source, [*READERS.names(), *KNOWN])
        return _call(READERS[source], options)
    path = Path(source)
    if path.is_dir() or (not path.exists() and being_written(path)):
        return read_whole(path, read=lambda: _load_folder(path, dict(options)))
    suffix = format_suffix(existing_file(path))
    if suffix == ".json":
        content = read_json(path)
        kinds = [(entry, file) for entry in READERS for file in entry.details.get("json_files", ())]
        for entry, file in kinds:
            if file.matches(content):
                return _call(entry, {file.option: path, **options})
        keys = f"an object with the keys {', '.join(list(content)[:8]) or 'none'}" if isinstance(content, dict) else ""
        raise InputError(
            f"not recognised as a dataset: the file holds {keys or f'a {type(content).__name__}'}",
            file=path,
            expected="one of " + "; ".join(f"{file.title} {file.layout}" for _, file in kinds),
            fix="name the reader, for example load_dataset('coco', captions=…); readers: "
            + ", ".join(entry.name for entry in READERS),
            code="unknown-format",
        )
    reader = next((entry for entry in READERS if suffix in entry.details.get("suffixes", ())), None)
    if reader is None:
        likely = next((entry for entry in READERS if suffix in entry.details.get("suggested_for", ())), READERS["coco"])
        option = _first_option(likely)
        raise UsageError(
            f"{path}: the ending {suffix!r} does not tell the format",
            fix=f"name the reader, for example load_dataset({likely.name!r}, {option}={path.name!r}); "
            f"readers: {', '.join(entry.name for entry in READERS)}",
            code="unknown-format",
        )
    if suffix == ".csv" and "|" in read_lines(path)[0]:
        reader = READERS["csv"]
    return _call(reader, {"captions": path, **options})


def _load_folder(path: Path, options: dict[str, Any]) -> Dataset:
    if not (path / HEADER_FILE).exists():
        for entry in READERS:
            if any((path / name).is_dir() for name in entry.details.get("folders", ())):
                return _call(entry, {"folder": path, **options})
            if any((path / name).is_file() for name in entry.details.get("folder_files", ())):
                return _call(entry, {_first_option(entry): str(path), **options})
        expected = f"a folder with {HEADER_FILE}, as Dataset.save writes it"
        fix = f"name the reader: {', '.join(entry.name for entry in READERS)}"
        raise InputError("not a saved dataset", file=path, expected=expected, fix=fix)
    verify = options.pop("verify", True)
    if options:
        raise UsageError(f"a saved dataset has no options (given: {', '.join(options)})", fix="leave them out")
    return Dataset.load(path, verify=verify)


def _first_option(entry: Entry[Reader]) -> str:
    return str(next(iter(entry.details["options"])))


def _call(entry: Entry[Reader], options: dict[str, Any]) -> Dataset:
    """Call a reader; an option that is unknown, missing or of a wrong type is named."""
    schema: dict[str, ReaderOption] = entry.details["options"]
    listed = ", ".join(name if option.is_required else f"{name} (optional)" for name, option in schema.items())
    for name, value in options.items():
        if name not in schema:
            near = difflib.get_close_matches(name, schema, n=1, cutoff=0.5)
            suggestion = f"did you mean {near[0]}? " if near else ""
            raise UsageError(
                f"the reader {entry.name!r} has no option {name!r}", fix=f"{suggestion}its options: {listed}"
            )
        if value is not None and not schema[name].accepts(value):
            raise UsageError(
                f"the option {name!r} is {value!r:.60}", fix=f"give it {schema[name].expected}", option=name
            )
    for name, option in schema.items():
        if option.is_required and options.get(name) is None:
            raise UsageError(
                f"the reader {entry.name!r} needs the option {name!r}", fix=f"its options: {listed}", option=name
            )
    files = [Path(options[name]) for name, option in schema.items() if option.is_path and options.get(name) is not None]
    read = partial(call_function, entry.value, **options)
    # A folder, or several files, may be replaced as a whole while it is read.
    dataset = read_whole(*files, read=read) if len(files) > 1 or not all(map(Path.is_file, files)) else read()
    if not isinstance(dataset, Dataset):
        problem = f"the reader {entry.name!r} returned {dataset!r:.60}"
        raise wrong_code(entry.value, problem, "return a Dataset, for example Dataset.of({image: captions})")
    return dataset

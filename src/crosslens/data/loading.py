"""One way to load a dataset: by a reader's name and its options, or by a path."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from crosslens.core import HEADER_FILE, Dataset, Entry, InputError, UsageError
from crosslens.data.io.files import existing_file, format_suffix, read_json, read_lines
from crosslens.data.registries import READERS, JsonFile, Reader, ReaderOption, is_dataset_path


def load_dataset(source: str | Path, **options: Any) -> Dataset:
    """Load a dataset.

    ``source`` is the name of a reader, such as ``coco``, with the reader's options as keyword arguments; or the path of
    a folder that ``Dataset.save`` wrote, of a plain .jsonl, .csv, .tsv or .parquet file, or of a .json file, whose
    content tells its format: COCO captions or instances, Karpathy's ``dataset_*.json``, fine-grained captions.
    """
    if isinstance(source, str) and not is_dataset_path(source):
        return _call(READERS[source], options)
    path = Path(source)
    if path.is_dir():
        return _load_folder(path, options)
    suffix = format_suffix(existing_file(path))
    if suffix == ".json":
        entry, file = _recognise(path)
        return _call(entry, {file.option: path, **options})
    reader = next((entry for entry in READERS if suffix in entry.details.get("suffixes", ())), None)
    if reader is None:
        raise _unknown_suffix(path, suffix)
    if suffix == ".csv" and "|" in read_lines(path)[0]:
        reader = READERS["csv"]
    return _call(reader, {"captions": path, **options})


def _recognise(path: Path) -> tuple[Entry[Reader], JsonFile]:
    """The reader of a JSON file, and the kind of file it is, by its content."""
    content = read_json(path)
    kinds = [(entry, file) for entry in READERS for file in entry.details.get("json_files", ())]
    for entry, file in kinds:
        if file.matches(content):
            return entry, file
    keys = f"an object with the keys {', '.join(list(content)[:8]) or 'none'}" if isinstance(content, dict) else ""
    raise InputError(
        f"not recognised as a dataset: the file holds {keys or f'a {type(content).__name__}'}",
        file=path,
        expected="one of " + "; ".join(f"{file.title} {file.layout}" for _, file in kinds),
        fix="name the reader, for example load_dataset('coco', captions=…); readers: "
        + ", ".join(entry.name for entry in READERS),
        code="unknown-format",
    )


def _unknown_suffix(path: Path, suffix: str) -> UsageError:
    likely = next((entry for entry in READERS if suffix in entry.details.get("suggested_for", ())), READERS["coco"])
    option = next(iter(likely.details["options"]))
    return UsageError(
        f"{path}: the ending {suffix!r} does not tell the format",
        fix=f"name the reader, for example load_dataset({likely.name!r}, {option}={path.name!r}); "
        f"readers: {', '.join(entry.name for entry in READERS)}",
        code="unknown-format",
    )


def _load_folder(path: Path, options: dict[str, Any]) -> Dataset:
    if not (path / HEADER_FILE).exists():
        raise InputError(
            "not a saved dataset",
            file=path,
            expected=f"a folder with {HEADER_FILE}, as Dataset.save writes it",
            fix=f"name the reader: {', '.join(entry.name for entry in READERS)}",
        )
    if options:
        raise UsageError(f"a saved dataset has no options (given: {', '.join(options)})", fix="leave them out")
    return Dataset.load(path)


def _call(entry: Entry[Reader], options: dict[str, Any]) -> Dataset:
    """Call a reader; an option that is unknown, missing or of a wrong type is named."""
    known: dict[str, ReaderOption] = entry.details["options"]
    listed = ", ".join(name if option.is_required else f"{name} (optional)" for name, option in known.items())
    for name, value in options.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            suggestion = f"did you mean {near[0]}? " if near else ""
            raise UsageError(
                f"the reader {entry.name!r} has no option {name!r}", fix=f"{suggestion}its options: {listed}"
            )
        if value is not None and not known[name].accepts(value):
            raise UsageError(
                f"the option {name!r} is {value!r:.60}", fix=f"give it {known[name].expected}", option=name
            )
    for name, option in known.items():
        if option.is_required and options.get(name) is None:
            raise UsageError(
                f"the reader {entry.name!r} needs the option {name!r}", fix=f"its options: {listed}", option=name
            )
    return entry.value(**options)

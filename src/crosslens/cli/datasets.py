"""Which dataset a command reads: the common reader options by name, any other by ``-D KEY=VALUE``.

Commands that take several datasets take each as one word: a path, or a reader with its options, such as
``"coco captions=captions.json"``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from crosslens import audits, build, data, explanations, storage, values as value_types
from crosslens.cli.flags import Flags
from crosslens.core import InputError, Options, UsageError, option
from crosslens.data import KnownDataset

DATASET_WORDS = '"NAME KEY=VALUE …"|PATH'
"""The metavar of options that name a dataset in one word."""
DATASETS = option(..., "A dataset's path, or a reader with its options; may be repeated.", metavar=DATASET_WORDS)
SPLIT_BY = option(None, "Split one dataset's captions by this column, such as style.", metavar="COLUMN")

_NAMED = ("captions", "instances", "images", "split", "extra_images")


@dataclass(frozen=True)
class DatasetOptions(Options, group="Reader options"):
    """A dataset, and the options of its reader."""

    dataset: str | None = option(
        None, "A known dataset, a reader, or a path (see crosslens data known).", metavar="NAME|PATH"
    )
    captions: str | None = option(None, "Reader option: the captions.", metavar="FILE")
    instances: str | None = option(None, "Reader option: objects with boxes.", metavar="FILE")
    images: str | None = option(None, "Reader option: the images, or a list of them.", metavar="FILE")
    split: str | None = option(None, "Reader option: which split of the dataset.")
    extra_images: str | None = option(
        None, "Images without captions that enlarge the gallery: a folder, or a list of them.", metavar="PATH"
    )
    data_folder: str | None = option(
        None, "Where known datasets are. [default: $CROSSLENS_DATA, or the current folder]"
    )
    data: tuple[str, ...] = option(
        (), "Any other reader option (see crosslens data formats).", metavar="KEY=VALUE", flags=("-D", "--data")
    )

    def reader_options(self, source: str | None = None) -> dict[str, Any]:
        """The options of the reader (default: of ``dataset``), as the types that it declares."""
        source = source or self.dataset
        reader_flags = {name: value for name in _NAMED if (value := getattr(self, name)) is not None}
        options = key_values("-D", self.data, "captions_per_image=5", reader_flags)
        if source is None and options:
            raise UsageError(f"the reader option {next(iter(options))!r} requires --dataset", fix="pass --dataset too")
        declared = data.reader_options(source) if source is not None and options else {}
        parsed = {key: declared[key].parse(value) if key in declared else value for key, value in options.items()}
        if source is None or not data.is_known(source):
            if self.data_folder is not None and source is not None:
                raise UsageError(
                    f"--data-folder is for datasets that are known by a name, and {source!r} is none",
                    fix="leave it out, or see crosslens data known",
                )
            return parsed
        data.require_captions(data.known_dataset(source))
        # Recipes name the folder that a known dataset is in, so that they can be repeated from anywhere.
        folder = data.find_known(source, parsed.get(data.DATA_FOLDER, self.data_folder)).root
        return {**parsed, data.DATA_FOLDER: str(folder)}

    @property
    def known(self) -> KnownDataset | None:
        """What is known of the dataset, where it is one with a name."""
        return data.known_dataset(self.dataset) if self.dataset is not None and data.is_known(self.dataset) else None

    def load(self, source: str | None = None) -> value_types.Dataset:
        """Read the dataset that ``--dataset`` names, or this one."""
        dataset = self.load_if_given(source)
        if dataset is None:
            raise UsageError("missing option --dataset", fix="name a dataset's path, or a reader", option="dataset")
        return dataset

    def load_if_given(self, source: str | None = None) -> value_types.Dataset | None:
        """Read the dataset; None where no dataset is named, which must then have no options either."""
        source = source or self.dataset
        options = self.reader_options(source)
        return None if source is None else data.load_dataset(source, **options)


DatasetOfRuns = Annotated[
    DatasetOptions, Flags(help={"dataset": "A known dataset, a reader or a path. [default: as in the recipe]"})
]
"""The dataset of commands that take runs, whose recipes know it."""


QUERIES = "Text-only retrieval: the text set whose captions are the queries; --dataset is then the corpus."
"""The help of ``--queries``."""


def dataset_words(words: str) -> tuple[str, dict[str, Any]]:
    """What the words name: a path or a reader, and the options of the reader."""
    source, pairs = _split_words(words)
    return source, DatasetOptions(data=tuple(pairs)).reader_options(source)


def load_dataset_words(words: str, options: DatasetOptions | None = None) -> value_types.Dataset:
    """Load what the words name; ``options`` are reader options that were given as flags."""
    options = options or DatasetOptions()
    source, pairs = _split_words(words)
    return replace(options, dataset=None, data=(*pairs, *options.data)).load(source)


def served_data(every: Sequence[str]) -> tuple[tuple[value_types.Dataset, ...], tuple[Path, ...]]:
    """The datasets among the words, and the folders of pictures; of a folder of build imp, its candidates."""
    loaded: list[value_types.Dataset] = []
    pictures: list[Path] = []
    for words in every:
        folder = Path(words)
        if build.is_imp_folder(folder):
            loaded.append(build.candidate_dataset(folder))
        elif folder.is_dir() and not (folder / storage.HEADER_FILE).exists():
            pictures.append(folder)
        else:
            loaded.append(load_dataset_words(words))
    return tuple(loaded), tuple(pictures)


def dataset_sources(every: Sequence[str], options: DatasetOptions) -> tuple[audits.DatasetSource, ...]:
    """What each of the words names; reader options as flags are refused for several datasets."""
    _refuse_shared_options(every, options)
    sources = []
    for words in every:
        source, pairs = _split_words(words)
        part = replace(options, dataset=None, data=(*pairs, *options.data))
        sources.append(audits.DatasetSource(source, part.reader_options(source)))
    if not every and options != DatasetOptions():
        options.reader_options()
    return tuple(sources)


def load_datasets(every: Sequence[str], options: DatasetOptions) -> list[value_types.Dataset]:
    """Load what each of the words names; reader options as flags are refused for several datasets."""
    _refuse_shared_options(every, options)
    return [load_dataset_words(words, options) for words in every]


def _refuse_shared_options(every: Sequence[str], options: DatasetOptions) -> None:
    if len(every) > 1 and options != DatasetOptions():
        raise UsageError(
            "reader options with several datasets", fix='write them with each: --dataset "coco captions=a.json"'
        )


def _split_words(words: str) -> tuple[str, list[str]]:
    if words.strip() and Path(words).exists():  # a path may hold spaces
        return words, []
    try:
        parts = shlex.split(words)
    except ValueError as error:
        raise UsageError(f"{words!r}: {error}", fix='write, for example, "coco captions=captions.json"') from error
    if not parts:
        raise UsageError("the name of the dataset is empty", fix="name a path, or a reader with its options")
    return parts[0], parts[1:]


def picture_files(
    dataset: value_types.Dataset, runs: Iterable[value_types.Run] = (), folder: str | Path | None = None
) -> dict[str, str]:
    """The image files that exist, by image; a folder that is named must hold them, those of runs are only tried."""
    if folder is not None:
        folders: list[Path | None] = [Path(folder)]
    else:
        run_folders = (explanations.image_folder_of(run) for run in runs)
        folders = [*dict.fromkeys(path for path in run_folders if path is not None), None]
    for candidate in folders:
        try:
            files = data.image_files(dataset, candidate, skip_bad=True)
        except InputError:
            if folder is not None:
                raise
        else:
            paired = zip(dataset.image_ids, files, strict=True)
            return {image: file for image, file in paired if data.outer_file(file).is_file()}
    return {}


def image_vectors(dataset: value_types.Dataset, path: str | Path | None) -> value_types.Embeddings | None:
    """The vectors of a dataset's images in a file, if one is named, in the dataset's order."""
    if path is None:
        return None
    return value_types.align_embeddings(data.read_vectors(path, "image"), dataset.image_ids, "image")


def key_values(flag: str, pairs: Sequence[str], example: str, earlier: dict[str, str] | None = None) -> dict[str, str]:
    """``KEY=VALUE`` arguments of a flag, added to ``earlier`` ones."""
    values = dict(earlier or {})
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (equals and key):
            raise UsageError(f"{flag} {pair!r} is not KEY=VALUE", fix=f"write, for example, {flag} {example}")
        if key in values:
            raise UsageError(f"the option {key!r} is given twice", fix="drop one of the two")
        values[key] = value
    return values

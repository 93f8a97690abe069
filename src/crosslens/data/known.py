"""Datasets under the names people know them by: which files they are, where those lie, and where they come from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from crosslens.core import HEADER_FILE, InputError, UnknownNameError, UsageError, argument

Purpose = Literal["retrieval", "hard negatives"]


@dataclass(frozen=True)
class FileForm:
    """One form in which a dataset is found on disks: a folder, the files in it, and the reader that takes them.

    ``files`` maps options of the reader to paths below one of ``folders``; those in ``optional`` may be missing. Every
    text file may be compressed (.gz). With ``is_folder`` the folder is meant, and the file tells that it is the right
    one. Without a ``reader`` what is under ``""`` is loaded as it is. ``pictures`` are folders that the dataset's file
    names start from, each with a path that exists if the pictures are there.
    """

    reader: str
    folders: tuple[str, ...]
    files: Mapping[str, str]
    options: Mapping[str, Any] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    is_folder: bool = False
    pictures: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Download:
    """A part of a dataset: where it comes from, as a text, and where its files go below the folder of datasets."""

    what: str
    source: str
    to: tuple[str, ...] = ()


@dataclass(frozen=True)
class KnownDataset:
    """A dataset that has a name.

    ``relevance`` and ``folds`` are what an evaluation under this name implies. ``images`` is how many images the whole
    dataset has; 0 where that is not fixed. ``called`` is the name of the dataset itself where this one is a way to
    evaluate it.
    """

    name: str
    title: str
    forms: tuple[FileForm, ...]
    downloads: tuple[Download, ...]
    licence: str
    purpose: Purpose = "retrieval"
    images: int = 0
    relevance: str | None = None
    folds: int = 1
    called: str = ""


_COCO = ("coco", "COCO", "mscoco", "")
_COCO_LICENCE = "COCO's annotations: CC BY 4.0; the photos: Flickr's terms of use, each with a licence of its own"
_FLICKR_LICENCE = "the photos: Flickr's terms of use, provided for non-commercial research and education only"
_KARPATHY = "https://cs.stanford.edu/people/karpathy/deepimagesent/caption_datasets.zip"
_VAL2014 = (("", "val2014"), ("images", "images/val2014"))
_VAL2017 = (("val2017", "val2017"), ("images/val2017", "images/val2017"))
_FLICKR30K_PHOTOS = tuple((name, name) for name in ("flickr30k-images", "flickr30k_images", "images"))
_PHOTOS_2014 = Download("photos", "http://images.cocodataset.org/zips/val2014.zip", ("coco/val2014",))
_PHOTOS_2017 = Download("photos", "http://images.cocodataset.org/zips/val2017.zip", ("coco/val2017",))

_BY_KARPATHY = FileForm(
    "karpathy", (*_COCO, "caption_datasets"), {"captions": "dataset_coco.json"}, {"split": "test"}, pictures=_VAL2014
)
_BY_BLIP = FileForm(
    "blip", (*_COCO, "coco/annotations"), {"captions": "coco_karpathy_test.json"}, {"coco_ids": True}, pictures=_VAL2014
)
_AS_TABLE = FileForm(
    "plain", ("coco_karpathy_test",), {"captions": "captions.tsv"},
    {"image_column": "coco_image_id", "caption_column": "coco_caption_id", "text_column": "raw_caption"},
)  # fmt: skip

_KARPATHY_5K = KnownDataset(
    "coco-karpathy-5k",
    "COCO captions, Karpathy's test split: 5,000 images with five captions each",
    (_BY_KARPATHY, _AS_TABLE, _BY_BLIP),
    (Download("captions", f"{_KARPATHY} (dataset_coco.json in it)", ("coco/dataset_coco.json",)), _PHOTOS_2014),
    _COCO_LICENCE,
    images=5000,
)
_JUDGED = replace(_KARPATHY_5K, forms=(_BY_KARPATHY, _AS_TABLE), called="coco-karpathy-5k")
_JUDGEMENTS = "pip install 'crosslens[eccv]'"


def _built(name: str, title: str, folder: str, command: str, images: str) -> KnownDataset:
    """A benchmark that crosslens builds: nothing to download, a command to run."""
    return KnownDataset(
        name,
        title,
        (FileForm("", (folder,), {"": "header.json"}, is_folder=True),),
        (Download("the benchmark", f"built by `{command}`", (folder,)),),
        images,
    )


_ENTRIES: Iterable[KnownDataset] = (
    _KARPATHY_5K,
    replace(
        _KARPATHY_5K,
        name="coco-karpathy-1k",
        title="COCO captions, “1K”: Karpathy's test split in five folds of 1,000 images, figures averaged",
        folds=5,
        called="coco-karpathy-5k",
    ),
    replace(
        _JUDGED,
        name="eccv",
        title="ECCV Caption: the COCO 5K test split with positives that people verified",
        relevance="eccv",
        downloads=(*_KARPATHY_5K.downloads, Download("judgements", f"{_JUDGEMENTS} (they are in eccv_caption)")),
        licence=f"ECCV Caption (https://github.com/naver-ai/eccv-caption): MIT; {_COCO_LICENCE}",
    ),
    replace(
        _JUDGED,
        name="cxc",
        title="Crisscrossed Captions: the COCO 5K test split with the positives of CxC",
        relevance="cxc",
        downloads=(*_KARPATHY_5K.downloads, Download("judgements", f"{_JUDGEMENTS} (they are in eccv_caption)")),
        licence="CxC: see https://github.com/google-research-datasets/Crisscrossed-Captions; " + _COCO_LICENCE,
    ),
    KnownDataset(
        "coco-val2017",
        "COCO val2017: 5,000 images with captions and boxes of objects",
        (
            FileForm(
                "coco",
                _COCO,
                {"captions": "annotations/captions_val2017.json", "instances": "annotations/instances_val2017.json"},
                optional=("instances",),
                pictures=_VAL2017,
            ),
            FileForm(
                "coco",
                ("coco_val2017",),
                {"captions": "captions.json", "instances": "instances.json"},
                optional=("instances",),
                pictures=(("images", "images"), ("val2017", "val2017")),
            ),
        ),
        (
            Download(
                "captions and boxes",
                "http://images.cocodataset.org/annotations/annotations_trainval2017.zip",
                ("coco/annotations/captions_val2017.json", "coco/annotations/instances_val2017.json"),
            ),
            _PHOTOS_2017,
        ),
        _COCO_LICENCE,
        images=5000,
    ),
    KnownDataset(
        "flickr30k",
        "Flickr30k, Karpathy's test split: 1,000 images with five captions each",
        (
            FileForm(
                "karpathy",
                ("flickr30k", "Flickr30k", "caption_datasets", ""),
                {"captions": "dataset_flickr30k.json"},
                {"split": "test"},
                pictures=_FLICKR30K_PHOTOS,
            ),
            FileForm(
                "blip",
                ("flickr30k", "Flickr30k", ""),
                {"captions": "flickr30k_test.json"},
                pictures=(("", "flickr30k-images"),),
            ),
        ),
        (
            Download("captions", f"{_KARPATHY} (dataset_flickr30k.json in it)", ("flickr30k/dataset_flickr30k.json",)),
            Download(
                "photos",
                "on request: https://shannon.cs.illinois.edu/DenotationGraph/",
                ("flickr30k/flickr30k-images",),
            ),
        ),
        _FLICKR_LICENCE,
        images=1000,
    ),
    KnownDataset(
        "flickr8k",
        "Flickr8k, the test split: 1,000 images with five captions each",
        (
            FileForm(
                "flickr",
                ("flickr8k", "Flickr8k", "Flickr8k_text", ""),
                {"captions": "Flickr8k.token.txt", "images": "Flickr_8k.testImages.txt"},
                pictures=(("Flicker8k_Dataset", "Flicker8k_Dataset"), ("images", "images")),
            ),
            FileForm(
                "karpathy",
                ("flickr8k", "Flickr8k", "caption_datasets", ""),
                {"captions": "dataset_flickr8k.json"},
                {"split": "test"},
                pictures=(("Flicker8k_Dataset", "Flicker8k_Dataset"), ("images", "images")),
            ),
        ),
        (
            Download(
                "captions (Flickr8k_text.zip) and photos (Flickr8k_Dataset.zip)",
                "on request: https://forms.illinois.edu/sec/1713398",
                ("flickr8k/Flickr8k.token.txt", "flickr8k/Flickr_8k.testImages.txt", "flickr8k/Flicker8k_Dataset"),
            ),
        ),
        _FLICKR_LICENCE,
        images=1000,
    ),
    KnownDataset(
        "coco-fg",
        "MSCOCO-FG: finer captions of the COCO 5K test images",
        (
            FileForm(
                "fine_grained",
                ("coco-fg", "MSCOCO-Flikcr30K_FG/Annotations", "MSCOCO-Flikcr30K_FG", "coco", ""),
                {"captions": "MSCOCO_FG_ann.json"},
                {"coco_ids": True},
            ),
        ),
        (
            Download(
                "captions",
                "https://github.com/cwj1412/MSCOCO-Flikcr30K_FG (Annotations/MSCOCO_FG_ann.json in it)",
                ("coco-fg/MSCOCO_FG_ann.json",),
            ),
            _PHOTOS_2014,
        ),
        f"no licence is stated for the captions; {_COCO_LICENCE}",
    ),
    KnownDataset(
        "visual-genome",
        "Visual Genome: region descriptions, objects, attributes and relationships",
        (
            FileForm(
                "visual_genome",
                ("visual-genome", "visual_genome", "VisualGenome", "vg"),
                {"folder": "image_data.json"},
                is_folder=True,
                pictures=(("", "VG_100K"),),
            ),
        ),
        (
            Download(
                "image_data.json, region_descriptions.json, objects.json, attributes.json, relationships.json",
                "https://homes.cs.washington.edu/~ranjay/visualgenome/api.html",
                ("visual-genome",),
            ),
        ),
        "CC BY 4.0; the photos are from Flickr",
    ),
    KnownDataset(
        "sugar-crepe",
        "SugarCrepe: hard negatives in seven files, on photos of COCO val2017",
        (
            FileForm(
                "",
                ("sugar-crepe", "sugar_crepe", "SugarCrepe", "sugar-crepe/data"),
                {"": "replace_obj.json"},
                is_folder=True,
                pictures=tuple(
                    (f"../{root}{folder}", f"../{root}{probe}")
                    for folder, probe in _VAL2017
                    for root in ("coco/", "../coco/", "")
                ),
            ),
        ),
        (
            Download(
                "the seven files", "https://github.com/RAIVNLab/sugar-crepe (the folder data in it)", ("sugar-crepe",)
            ),
            _PHOTOS_2017,
        ),
        f"SugarCrepe: MIT; {_COCO_LICENCE}",
        "hard negatives",
    ),
    KnownDataset(
        "winoground",
        "Winoground: 400 pairs of images and captions with the same words",
        (FileForm("", ("winoground", "winoground/data", "Winoground"), {"": "examples.jsonl"}, is_folder=True),),
        (
            Download(
                "examples.jsonl and images.zip, to be unpacked there",
                "after its terms are accepted: https://huggingface.co/datasets/facebook/winoground (data/ in it)",
                ("winoground/examples.jsonl", "winoground/images"),
            ),
        ),
        "for research only; the licence agreement is among the dataset's files",
        "hard negatives",
    ),
    *(
        KnownDataset(
            f"aro-{kind}",
            f"ARO, Visual Genome {kind}: captions with {what} swapped",
            (FileForm("", ("aro", "ARO", ""), {"": f"visual_genome_{kind}.json"}),),
            (
                Download(
                    f"visual_genome_{kind}.json and the photos",
                    "https://github.com/mertyg/vision-language-models-are-bows (its dataset_zoo downloads them)",
                    (f"aro/visual_genome_{kind}.json", "aro/images"),
                ),
            ),
            "ARO: MIT; Visual Genome: CC BY 4.0",
            "hard negatives",
        )
        for kind, what in (("relation", "the order of two objects"), ("attribution", "the attributes of two objects"))
    ),
    *(
        _built(
            f"recos-{version}",
            f"A RECOS-like benchmark of your own, version {version}",
            f"recos/{version}",
            "crosslens build recos -o recos",
            "that of the captions and images it was built from",
        )
        for version in ("v0", "v1", "v2")
    ),
    _built(
        "imp",
        "A polysemy benchmark of your own, built as IMP was",
        "imp/dataset",
        "crosslens build imp -o imp",
        "that of the captions and images it was built from (IMP: the Unsplash Lite Dataset, https://unsplash.com/data)",
    ),
)
KNOWN = {entry.name: entry for entry in _ENTRIES}
"""Name → what is known of the dataset, in the order in which people read them."""


DATA_VARIABLE = "CROSSLENS_DATA"
DATA_FOLDER = "data_folder"


@dataclass(frozen=True)
class KnownFiles:
    """A dataset that was found: its reader (none: ``path`` is loaded as it is) with its options, and its pictures."""

    known: KnownDataset
    root: Path
    """The folder of datasets that it is in."""
    reader: str
    options: Mapping[str, Any]
    path: Path
    """The folder or file that was recognised."""
    pictures: Path | None = None


def is_known(source: str, base: Path = Path()) -> bool:
    """Whether a source is the name of a known dataset; a saved dataset of that name in ``base`` is meant before."""
    return source in KNOWN and not (base / source / HEADER_FILE).exists()


def data_roots(folder: str | Path | None = None) -> list[Path]:
    """Where datasets are looked for: the folder given, or that of the environment and the current one."""
    if folder is not None:
        return [Path(folder).expanduser()]
    variable = os.environ.get(DATA_VARIABLE)
    return [*([Path(variable).expanduser()] if variable else []), Path()]


def look_for_known(name: str, folder: str | Path | None = None) -> KnownFiles | None:
    """The files of a known dataset; None where they are not there."""
    known = known_dataset(name)
    for root, form in ((root, form) for root in data_roots(folder) for form in known.forms):
        for home in (root / below for below in form.folders):
            paths: dict[str, Path] = {}
            for option, file in form.files.items():
                path = next((path for path in (home / file, home / f"{file}.gz") if path.is_file()), None)
                if path is not None:
                    paths[option] = path.parent if form.is_folder else path
            if all(option in paths for option in form.files if option not in form.optional):
                options = {**form.options, **{option: str(path) for option, path in paths.items() if option}}
                pictures = next((home / folder for folder, probe in form.pictures if (home / probe).is_dir()), None)
                return KnownFiles(known, root, form.reader, options, next(iter(paths.values())), pictures)
    return None


def find_known(name: str, folder: str | Path | None = None) -> KnownFiles:
    """Where :func:`look_for_known` finds nothing, the error says what to download from where, to which path."""
    files = look_for_known(name, folder)
    if files is not None:
        return files
    known, roots = known_dataset(name), data_roots(folder)
    searched = " or ".join("the current folder" if root == Path() else str(root) for root in roots)
    first = known.forms[0]
    needed = (file for option, file in first.files.items() if option not in first.optional)
    expected = " and ".join(str(Path(first.folders[0]) / file) for file in needed)
    elsewhere = f"or, if it is elsewhere, pass {argument(DATA_FOLDER)} or set {DATA_VARIABLE}"
    other = look_for_known(known.called, folder) if known.called else None
    without_ids = f": {other.path} is there, and has no ids of captions, by which its judgements go" if other else ""
    raise InputError(
        f"the dataset {known.name} ({known.title}) is not in {searched}{without_ids}",
        expected=f"{expected} there",
        fix="\n    ".join(["get it,", *where_to_get(known, roots[0]), *([elsewhere] if folder is None else [])]),
        code="missing-dataset",
        subject=known.name,
    )


def known_dataset(name: str) -> KnownDataset:
    """What is known under a name."""
    if name not in KNOWN:
        raise UnknownNameError("dataset", name, KNOWN)
    return KNOWN[name]


def require_captions(known: KnownDataset) -> None:
    """Raise for a known dataset that is not for retrieval."""
    if known.purpose != "retrieval":
        raise UsageError(
            f"{known.name} is a set of hard negatives, not a dataset for retrieval",
            fix=f"see crosslens hard-negatives {known.name}",
        )


def where_to_get(known: KnownDataset, root: Path) -> list[str]:
    """What to download from where, to which path, as lines; the last one is the licence."""
    lines = []
    for part in known.downloads:
        targets = " and ".join(str(root / path) for path in part.to)
        lines.append(f"{part.what}: {part.source}" + (f" → {targets}" if targets else ""))
    return [*lines, f"licence: {known.licence}"]
